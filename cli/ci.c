/* SPDX-License-Identifier: Apache-2.0
 * Writes JUnit XML, as Jenkins and GitLab read it, and the workflow commands of GitHub Actions. */
#include "cli/ci.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/input.h"
#include "cli/output.h"
#include "cli/plain_text.h"
#include "cli/xml.h"
#include "model/save_model.h"

enum status ci_add(struct cli *cli, const struct ci_case *add) {
    struct ci *ci = &cli->ci;
    char *name, *title, *message, *file = NULL;
    TRY(arena_grow(&cli->arena, ci->count + 1, &ci->room, sizeof *ci->cases, "cases", &ci->cases));
    TRY(arena_format(&cli->arena, &name, "%s", add->name));
    TRY(arena_format(&cli->arena, &title, "%s", add->title != NULL ? add->title : ""));
    TRY(arena_format(&cli->arena, &message, "%s", add->message != NULL ? add->message : ""));
    if (add->file != NULL) TRY(arena_format(&cli->arena, &file, "%s", add->file));
    ci->cases[ci->count] = *add;
    ci->cases[ci->count].name = name;
    ci->cases[ci->count].title = title;
    ci->cases[ci->count].message = message;
    ci->cases[ci->count++].file = file;
    return STATUS_OK;
}

/* --output has the name PATH.part until it is whole; where it is a folder the verb names files. */
static enum status apart_from_output(const char *junit, const char *output) {
    char live[4096];
    struct stat info;
    if (save_model_same_place(junit, output))
        FAIL(STATUS_INPUT, "--junit: expected another file than --output, got %s", junit);
    snprintf(live, sizeof live, "%s.part", output);
    if (!(stat(output, &info) == 0 && S_ISDIR(info.st_mode)) && save_model_same_place(junit, live))
        FAIL(
            STATUS_INPUT,
            "--junit: expected a file apart from --output's, got %s, which %s is until it is whole",
            junit, output);
    return STATUS_OK;
}

/* The value of any option may be a file that is read (--floor, --resume, --names); where it is not,
 * no file of that name is replaced either. */
enum status ci_check(const struct options *options) {
    const char *const junit = options->junit;
    if (junit == NULL) return STATUS_OK;
    for (size_t i = 0; i < options->argument_count; i++) {
        TRY(output_apart(junit, options->arguments[i]));
        TRY(output_apart_folder(junit, options->arguments[i]));
    }
    for (size_t i = 0; i < options->given_count; i++)
        if (options->given[i].value != NULL) TRY(output_apart(junit, options->given[i].value));
    if (options->trusted != NULL) TRY(output_apart(junit, options->trusted));
    return options->output == NULL ? STATUS_OK : apart_from_output(junit, options->output);
}

enum status ci_try(const struct options *options) {
    return options->junit == NULL ? STATUS_OK : output_try(options->junit, 1);
}

/* ---- JUnit ---- */

static size_t count_of(const struct ci *ci, int outcome) {
    size_t count = 0;
    for (size_t i = 0; i < ci->count; i++)
        count += ci->cases[i].outcome == outcome;
    return count;
}

static void put_case(FILE *out, const struct ci_case *put, const char *verb) {
    const char *const kind = put->outcome == EXIT_DIFFERS      ? "failure"
                             : put->outcome == EXIT_UNTESTABLE ? "skipped"
                             : put->outcome == EXIT_ERROR      ? "error"
                                                               : NULL;
    fprintf(out, "    <testcase classname=\"twinstep.%.*s\"", (int)strcspn(verb, " "), verb);
    xml_attribute(out, "name", put->name);
    if (put->seconds >= 0.0) fprintf(out, " time=\"%.3f\"", put->seconds);
    fputc('>', out);
    if (kind != NULL) {
        fprintf(out, "<%s", kind);
        xml_attribute(out, "message", put->message);
        fputs("/>", out);
    }
    fputs("</testcase>\n", out);
}

static void put_cases(FILE *out, const struct ci *ci, const char *verb) {
    double seconds = 0.0;
    for (size_t i = 0; i < ci->count; i++)
        seconds += ci->cases[i].seconds > 0.0 ? ci->cases[i].seconds : 0.0;
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n", out);
    fprintf(out,
            "  <testsuite name=\"twinstep %s\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" "
            "skipped=\"%zu\"",
            verb, ci->count, count_of(ci, EXIT_DIFFERS), count_of(ci, EXIT_ERROR),
            count_of(ci, EXIT_UNTESTABLE));
    if (seconds > 0.0) fprintf(out, " time=\"%.3f\"", seconds);
    fputs(">\n", out);
    for (size_t i = 0; i < ci->count; i++)
        put_case(out, &ci->cases[i], verb);
    fputs("  </testsuite>\n</testsuites>\n", out);
}

static enum status write_junit(const struct ci *ci, const char *path, const char *verb) {
    struct output output;
    TRY(output_open(path, 1, &output));
    put_cases(output.file, ci, verb);
    return output_close(&output, STATUS_OK);
}

/* ---- GitHub Actions ---- */

/* Escapes as the toolkit of GitHub Actions does (actions/toolkit, packages/core/src/command.ts,
 * escapeData and escapeProperty). */
static void put_escaped(const char *text, int property) {
    for (; *text != '\0'; text++) {
        if (*text == '%')
            fputs("%25", stdout);
        else if (*text == '\r')
            fputs("%0D", stdout);
        else if (*text == '\n')
            fputs("%0A", stdout);
        else if (property && *text == ':')
            fputs("%3A", stdout);
        else if (property && *text == ',')
            fputs("%2C", stdout);
        else
            putchar(*text);
    }
}

static void annotate(const struct ci_case *put) {
    if (put->outcome == EXIT_AS_EXPECTED) return;
    printf("::%s ", put->outcome == EXIT_UNTESTABLE ? "warning" : "error");
    if (put->file != NULL) {
        fputs("file=", stdout);
        put_escaped(put->file, 1);
        if (put->line > 0) printf(",line=%u", put->line);
        putchar(',');
    }
    fputs("title=", stdout);
    put_escaped(put->title, 1);
    fputs("::", stdout);
    put_escaped(put->message, 0);
    putchar('\n');
}

/* ---- both ---- */

/* Adds a case for the whole verb, which its arguments name. */
static enum status add_whole(struct cli *cli, const struct options *options, const char *verb,
                             int outcome, const char *message) {
    struct ci_case one = {.outcome = outcome, .message = message, .seconds = -1.0};
    char *name, *title;
    TRY(arena_format(&cli->arena, &name, "%s", options->argument_count == 0 ? verb : ""));
    for (size_t i = 0; i < options->argument_count; i++)
        TRY(arena_format(&cli->arena, &name, "%s%s%s", name, i > 0 ? " " : "",
                         options->arguments[i]));
    TRY(arena_format(&cli->arena, &title, "twinstep %s", verb));
    one.name = name;
    one.title = title;
    return ci_add(cli, &one);
}

/* Adds the one case of a verb that names none: what its exit status means. */
static enum status add_outcome(struct cli *cli, const struct options *options, const char *verb,
                               int code) {
    static const char *const meanings[] = {"as expected",
                                           "a difference, or an expectation that is missed",
                                           "an error", "cannot be decided from this evidence"};
    const int known = code >= EXIT_AS_EXPECTED && code <= EXIT_UNTESTABLE;
    return add_whole(cli, options, verb, known ? code : EXIT_ERROR,
                     known ? meanings[code] : "interrupted");
}

/* Whether what is there, if anything, can be no data; ci.h says why. */
static int is_outcome(const char *path) {
    static const char begin[] = "<?xml";
    const char *const end = strrchr(path, '.');
    char read[sizeof begin - 1];
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0) return 1;
    if (end != NULL && strcmp(end, ".xml") == 0) return 1;
    FILE *file;
    struct input input;
    if (input_open_stream(path, INPUT_FILE, path, "a file", &file, &input) != STATUS_OK) return 0;
    const size_t length = fread(read, 1, sizeof read, file);
    fclose(file);
    return length == sizeof read && memcmp(read, begin, sizeof read) == 0;
}

enum status ci_publish(struct cli *cli, const struct options *options, const char *verb, int code) {
    if (options->junit == NULL && !options->github) return STATUS_OK;
    if (cli->ci.count == 0) TRY(add_outcome(cli, options, verb, code));
    plain_text_commands(stdout, 1);
    for (size_t i = 0; options->github && !options->json && i < cli->ci.count; i++)
        annotate(&cli->ci.cases[i]);
    plain_text_commands(stdout, 0);
    if (options->junit == NULL || cli->ci.withheld) return STATUS_OK;
    const int decided = code == EXIT_AS_EXPECTED || code == EXIT_DIFFERS || code == EXIT_UNTESTABLE;
    if (!decided && !is_outcome(options->junit)) {
        fprintf(stderr,
                "twinstep: --junit: %s: left as it is, because it holds no XML and may be data of "
                "what could not be read\n",
                options->junit);
        return STATUS_OK;
    }
    return write_junit(&cli->ci, options->junit, verb);
}

/* What cannot be written was either told by ci_try() or would hide the error that comes first. */
enum status ci_publish_error(struct cli *cli, const struct options *options, const char *verb,
                             enum status failed) {
    char *text;
    const int code = exit_of_status(failed);
    const int outcome = code == EXIT_UNTESTABLE ? EXIT_UNTESTABLE : EXIT_ERROR;
    if (arena_format(&cli->arena, &text, "%s", status_text()) != STATUS_OK) return failed;
    enum status status = add_whole(cli, options, verb, outcome, text);
    if (status == STATUS_OK && !cli->ci.withheld) cli->ci.withheld = ci_try(options) != STATUS_OK;
    if (status == STATUS_OK) status = ci_publish(cli, options, verb, code);
    (void)status;
    return status_fail(failed, "%s", text);
}
