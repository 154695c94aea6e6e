/* SPDX-License-Identifier: Apache-2.0
 * labels: unit
 * docs/TRACE.md against the code: it must have every column of the record tables with its units,
 * and the snippet that it shows must run on a trace, finished and killed alike. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/determinism/helper_trace.h"

static void read_document(struct arena *arena, char **out_text) {
    size_t length;
    const char *bytes = sample_bytes(arena, TWINSTEP_SOURCE_DIR "/docs/TRACE.md", &length);
    if (arena_text(arena, bytes, length, out_text) != STATUS_OK) abort();
}

/* Tells whether a line documents `folder` + `name`: it starts with "| `", holds the name in
 * backquotes before the second bar, and has its units. */
static int is_documented(const char *text, const char *section, const char *folder,
                         const struct record_column *column) {
    char name[128];
    char units[64];
    snprintf(name, sizeof name, "`%s%s`", folder, column->name);
    snprintf(units, sizeof units, "| %s |", column->units);
    const char *line = strstr(text, section);
    const char *end = line == NULL ? NULL : strstr(line + 3, "\n## ");
    while (line != NULL && line < end) {
        const char *next = strchr(line, '\n');
        char row[512];
        snprintf(row, sizeof row, "%.*s", (int)(next - line), line);
        if (strncmp(row, "| `", 3) == 0 && strstr(row, name) != NULL && strstr(row, units) != NULL)
            return 1;
        line = next + 1;
    }
    return 0;
}

static void verify_every_column_is_documented(void **state) {
    (void)state;
    static const struct {
        const char *section, *folder;
        const struct record_column *columns;
        size_t count;
    } tables[] = {
        {"## Columns of a run", "", record_reals, RECORD_REALS},
        {"## Columns of a run", "", record_integers, RECORD_INTEGERS},
        {"## Columns of a run", "", record_digests, RECORD_DIGESTS},
        {"## Columns of a run", "", record_groups, RECORD_GROUPS},
        {"## Columns of a run", "tensors/", record_tensors, RECORD_TENSORS},
        {"## Columns of a run", "tensors/", record_tensor_digests, RECORD_TENSOR_DIGESTS},
        {"## Columns of a run", "phases/", record_phases, RECORD_PHASES},
        {"## Columns of a run", "micro/", record_micros, RECORD_MICROS},
        {"## Columns of a run", "ledger/", record_ledgers, RECORD_LEDGERS},
        {"## Columns of a run", "streams/", record_places, RECORD_PLACES},
        {"## Columns of a run", "ranks/", record_rank_digests, RECORD_RANK_DIGESTS},
        {"## Columns of a run", "ranks/", record_ranks, RECORD_RANKS},
        {"## Columns of a pair", "", record_pairs, RECORD_PAIRS},
        {"## Columns of a pair", "", record_pair_integers, RECORD_PAIR_INTEGERS},
    };
    struct arena arena = ARENA_EMPTY;
    char *text;
    read_document(&arena, &text);
    for (size_t t = 0; t < COUNT_OF(tables); t++)
        for (size_t c = 0; c < tables[t].count; c++)
            if (!is_documented(text, tables[t].section, tables[t].folder, &tables[t].columns[c]))
                fail_msg("docs/TRACE.md: no row for %s%s in %s", tables[t].folder,
                         tables[t].columns[c].name, tables[t].columns[c].units);
    arena_close(&arena);
}

/* Column names must be unique in their group, and each must have all three texts. */
static void verify_names_are_unique(void **state) {
    (void)state;
    const struct record_column
        *all[RECORD_REALS + RECORD_INTEGERS + RECORD_DIGESTS + RECORD_GROUPS];
    size_t count = 0;
    for (size_t i = 0; i < RECORD_REALS; i++)
        all[count++] = &record_reals[i];
    for (size_t i = 0; i < RECORD_INTEGERS; i++)
        all[count++] = &record_integers[i];
    for (size_t i = 0; i < RECORD_DIGESTS; i++)
        all[count++] = &record_digests[i];
    for (size_t i = 0; i < RECORD_GROUPS; i++)
        all[count++] = &record_groups[i];
    for (size_t i = 0; i < count; i++) {
        assert_true(all[i]->name[0] != '\0' && all[i]->units[0] != '\0' &&
                    all[i]->long_name[0] != '\0');
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(all[i]->name, all[j]->name);
    }
}

/* Runs `script` with h5py in the sample's folder; returns 0 where it succeeds. */
static int run_python(const struct sample *sample, const char *script, char *output, size_t room) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (chdir(sample->folder) != 0 || dup2(ends[1], 1) < 0) _exit(126);
        close(ends[0]);
        execl("/usr/bin/python3", "/usr/bin/python3", "-c", script, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    size_t used = 0;
    for (ssize_t got; (got = read(ends[0], output + used, room - 1 - used)) > 0;)
        used += (size_t)got;
    output[used] = '\0';
    close(ends[0]);
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    return result;
}

static void require(enum status status) {
    if (status != STATUS_OK) fail_msg("%s", status_text());
}

static void verify_snippet_runs(void **state) {
    (void)state;
    struct sample sample;
    char output[65536];
    sample_open(&sample, 3);
    if (run_python(&sample, "import h5py", output, sizeof output) != 0) {
        print_message("left out: /usr/bin/python3 cannot import h5py\n");
        sample_close(&sample);
        skip();
    }
    char *text;
    read_document(&sample.arena, &text);
    const char *begin = strstr(text, "```python\n");
    assert_non_null(begin);
    begin += strlen("```python\n");
    char *script;
    require(arena_text(&sample.arena, begin, (size_t)(strstr(begin, "```") - begin), &script));
    require(sample_write(&sample, sample.path, 5));
    assert_int_equal(run_python(&sample, script, output, sizeof output), 0);
    const char *last = strstr(output, "first difference: (1, 'model.layers.0.self_attn");
    if (last == NULL) fail_msg("unexpected output: %s", output);
    sample_close(&sample);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_every_column_is_documented),
        cmocka_unit_test(verify_names_are_unique),
        cmocka_unit_test(verify_snippet_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
