/* SPDX-License-Identifier: Apache-2.0
 * labels: cli
 * suite: the order of the scenarios, exit statuses, JUnit XML, JSON, and where the traces go. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cli/helper_cli.h"

#define LATE_LOOP "loop: {update: [count, clip, schedule, optimize, log, zero]}"

static void fill(const char *folder) {
    char path[256];
    assert_int_equal(mkdir(folder, 0777), 0);
    snprintf(path, sizeof path, "%s/b-met.yaml", folder);
    helper_scenario(path, "name: same-name\nsteps: 1\nexpect: {verdict: identical}", "seed: 3", "");
    snprintf(path, sizeof path, "%s/a-none.yaml", folder);
    helper_scenario(path, "name: same-name\nsteps: 1", "seed: 3", LATE_LOOP);
    snprintf(path, sizeof path, "%s/.hidden.yaml", folder);
    helper_write(path, "not a scenario");
    snprintf(path, sizeof path, "%s/notes.txt", folder);
    helper_write(path, "not a scenario");
}

static void add_missed(const char *folder) {
    char path[256];
    snprintf(path, sizeof path, "%s/c-missed.yaml", folder);
    helper_scenario(path, "steps: 1\nexpect: {verdict: outside-floor, word: oppose}", "seed: 3",
                    LATE_LOOP);
}

static size_t entries(const char *folder) {
    DIR *stream = opendir(folder);
    size_t count = 0;
    assert_non_null(stream);
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(stream);
    return count;
}

static void validate_table_and_order(void **state) {
    (void)state;
    fill("table");
    struct said said = helper_run(0, "suite table");
    const char *head = strstr(said.out, "scenario "), *a = strstr(said.out, "\na-none "),
               *b = strstr(said.out, "\nb-met ");
    assert_non_null(head);
    assert_true(head < a && a < b);
    assert_non_null(strstr(a, "outside-floor schedule"));
    assert_non_null(strstr(a, "update 1 optimize"));
    assert_non_null(strstr(a, "none given"));
    assert_non_null(strstr(b, "identical"));
    assert_non_null(strstr(said.out, "1 met, 0 missed, 0 errors, 1 without an expect block\n"));
    assert_string_equal(said.err, "");
    helper_free(&said);
    add_missed("table");
    said = helper_run(1, "suite table/");
    assert_non_null(strstr(said.out, "\n  missed: "));
    assert_non_null(strstr(said.out, "1 met, 1 missed, 0 errors"));
    helper_free(&said);
    helper_write("table/d-broken.yaml", "twinstep: 1\nstepz: 3\n");
    said = helper_run(2, "suite table");
    assert_non_null(strstr(said.out, "table/d-broken.yaml:2:1: error: unknown key"));
    assert_non_null(strstr(said.out, "1 met, 1 missed, 1 errors"));
    helper_free(&said);
}

static void validate_json(void **state) {
    (void)state;
    static const char *const fields[] = {"name",        "verdict", "cause",  "first",
                                         "expectation", "missed",  "seconds"};
    json_error_t error;
    fill("json");
    struct said said = helper_run(0, "suite json --json");
    json_t *object = json_loads(said.out, JSON_REJECT_DUPLICATES, &error);
    assert_non_null(object);
    const json_t *list = json_object_get(object, "scenarios");
    assert_int_equal(json_array_size(list), 2);
    for (size_t i = 0; i < 2; i++)
        for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++)
            assert_non_null(json_object_get(json_array_get(list, i), fields[f]));
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "expectation")),
                        "none");
    assert_int_equal(json_integer_value(json_object_get(object, "met")), 1);
    json_decref(object);
    helper_free(&said);
}

static void validate_folder_of_traces(void **state) {
    (void)state;
    fill("traces");
    assert_int_equal(mkdir("scratch", 0777), 0);
    char here[4096], scratch[4200];
    assert_non_null(getcwd(here, sizeof here));
    snprintf(scratch, sizeof scratch, "%s/scratch", here);
    setenv("TMPDIR", scratch, 1);
    helper_accept(0, "suite traces");
    assert_int_equal(entries("scratch"), 0); /* nothing stays */
    setenv("TMPDIR", "/no/such/folder", 1);
    helper_refuse(2, "suite traces", "cannot create a folder for the traces");
    helper_accept(0, "suite traces --keep kept");
    unsetenv("TMPDIR");
    assert_true(helper_exists("kept/a-none.h5"));
    assert_true(helper_exists("kept/b-met.h5"));
    assert_int_equal(entries("kept"), 2);
    struct said said = helper_run(2, "suite traces --keep kept"); /* they exist */
    assert_non_null(strstr(said.out, "kept/a-none.h5: exists"));
    helper_free(&said);
    helper_accept(0, "suite traces --keep kept --overwrite");
    helper_accept(1, "attribute kept/a-none.h5");
}

/* The file is also read by an XML parser where the machine has one. */
static void parse_xml(const char *path) {
    char command[512];
    if (system("/usr/bin/python3 -c 'import xml.dom.minidom' 2>/dev/null") != 0) {
        print_message("python3: left out\n");
        return;
    }
    snprintf(command, sizeof command,
             "/usr/bin/python3 -c \"import xml.etree.ElementTree as e; s = "
             "e.parse('%s').getroot()[0]; assert [int(s.get(k)) for k in ('tests', 'failures', "
             "'errors', 'skipped')] == [4, 1, 1, 1], s.attrib; assert [c.get('name') for c in s] "
             "== ['<&>x', 'a-none', 'b-met', 'c-missed'], [c.get('name') for c in s]; assert "
             "s[1][0].tag == 'skipped' and s[3][0].tag == 'failure' and s[0][0].tag == 'error'; "
             "assert 'a<b>&' in s[0][0].get('message'), s[0][0].get('message')\"",
             path);
    assert_int_equal(system(command), 0);
}

/* A failure is one annotation: one line that begins so. */
static void require_one_line(const char *text, const char *head) {
    const char *const found = strstr(text, head);
    if (found == NULL || (found > text && found[-1] != '\n') || strstr(found + 1, head) != NULL)
        fail_msg("expected one line \"%s\" in: %s", head, text);
}

static void validate_junit(void **state) {
    (void)state;
    fill("junit");
    add_missed("junit");
    helper_write("junit/<&>x.yaml", "twinstep: 1\n\"a<b>&\xc3\xa9'\\\"\": 3\n");
    struct said said = helper_run(2, "suite junit --junit out.xml --github");
    require_one_line(said.out, "::error file=junit/c-missed.yaml,title=expectation of a "
                               "scenario::c-missed: expected word oppose, got cause\n");
    require_one_line(said.out, "::error file=junit/<&>x.yaml,title=expectation of a scenario::");
    require_one_line(said.out, "::warning file=junit/a-none.yaml,title=expectation of a "
                               "scenario::a-none: no expect block\n");
    helper_free(&said);
    char *xml = helper_read("out.xml", NULL);
    static const char *const needles[] = {
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>",
        "tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\"",
        "<testcase classname=\"twinstep.suite\" name=\"b-met\" time=\"",
        "<skipped message=\"a-none: no expect block\"/>",
        "<failure message=\"",
        "name=\"&lt;&amp;&gt;x\"",
        "</testsuites>\n"};
    for (size_t i = 0; i < sizeof needles / sizeof needles[0]; i++)
        if (strstr(xml, needles[i]) == NULL) fail_msg("expected %s\nin: %s", needles[i], xml);
    free(xml);
    parse_xml("out.xml");
    helper_refuse(2, "suite junit --set nothing", "--set nothing: error: expected KEY=VALUE");
    helper_refuse(2, "suite junit --set steps=[", "--set steps=[: error");
    helper_refuse(2, "suite junit --quiet --junit /no/such/folder/x.xml",
                  "/no/such/folder/x.xml: cannot create");
    assert_int_equal(symlink("/dev/full", "full"), 0);
    helper_fail(2, "suite junit --quiet --junit full", "full: cannot write");
    assert_int_equal(link("out.xml", "old.xml"), 0); /* holds the old file */
    said = helper_run(2, "suite junit --quiet --junit out.xml");
    helper_free(&said);
    parse_xml("out.xml");
    struct stat now, before;
    assert_true(stat("out.xml", &now) == 0 && stat("old.xml", &before) == 0);
    assert_true(now.st_ino != before.st_ino); /* replaced by renaming, never cut and rewritten */
    parse_xml("old.xml");
    assert_false(helper_exists("out.xml.part"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_table_and_order),
        cmocka_unit_test(validate_json),
        cmocka_unit_test(validate_folder_of_traces),
        cmocka_unit_test(validate_junit),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
