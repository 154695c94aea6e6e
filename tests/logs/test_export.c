/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Import, export, import: the updates, values and quanta must be the same in every form; through a
 * trace, everything must be. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/real.h"
#include "logs/export.h"
#include "tests/logs/helper_logs.h"

/* Rounded and exact numbers, short reprs, whole numbers, a NaN, an absent cell, and values whose
 * digits carry. */
static const char mixed[] =
    "{\"log_history\": [\n"
    "{\"step\": 1, \"loss\": 0.6931, \"learning_rate\": 5e-07, \"grad_norm\": 18.41716194152832, "
    "\"num_tokens\": 4096, \"rewards/chosen\": 0.5},\n"
    "{\"step\": 2, \"loss\": 0.69, \"learning_rate\": 2.5e-07, \"grad_norm\": NaN, \"num_tokens\": "
    "8192, \"rewards/chosen\": -0.25},\n"
    "{\"step\": 3, \"loss\": 9.9999, \"learning_rate\": 0.0, \"grad_norm\": 1.5}\n],\"max_steps\": "
    "3}";

/* Quanta that differ inside a column, as Megatron's %E gives. */
static const char scientific[] =
    "{\"step\": 1, \"loss\": 1.219037E+01, \"lr\": 3.900183E-07, \"n\": 1.2E+03}\n"
    "{\"step\": 2, \"loss\": 9.912345E-01, \"lr\": 4E-07, \"n\": 0E+02}\n"
    "{\"step\": 4, \"loss\": -9.9E-02, \"lr\": 0.0E+00, \"n\": 7E+00}\n";

static char *export_text(const struct log *log, const char *format, size_t *out_length) {
    FILE *file = tmpfile();
    assert_non_null(file);
    if (log_export(log, format, file) != STATUS_OK) fail_msg("%s: %s", format, status_text());
    const long length = ftell(file);
    assert_true(length > 0);
    char *text = (char *)malloc((size_t)length + 1);
    rewind(file);
    assert_int_equal(fread(text, 1, (size_t)length, file), length);
    text[length] = '\0';
    fclose(file);
    *out_length = (size_t)length;
    return text;
}

static void expect_equal_rows(const struct log *a, const struct log *b) {
    assert_int_equal(a->rows, b->rows);
    for (size_t i = 0; i < a->rows; i++) {
        assert_int_equal(a->step[i], b->step[i]);
        assert_int_equal(a->part[i], b->part[i]);
    }
}

static void expect_equal_column(const struct log_column *a, const struct log_column *b,
                                size_t rows) {
    for (size_t i = 0; i < rows; i++) {
        const int same_value = a->value[i] == b->value[i] ||
                               (a->value[i] != a->value[i] && b->value[i] != b->value[i]);
        const double qa = (double)a->quantum[i], qb = (double)b->quantum[i];
        const int same_quantum =
            (qa != qa && qb != qb) || (qa <= qb * 1.000001 && qb <= qa * 1.000001);
        if (!same_value || !same_quantum)
            fail_msg("%s row %zu: %.17g (%g) came back as %.17g (%g)", a->source, i, a->value[i],
                     qa, b->value[i], qb);
    }
}

static struct log *round_trip(struct arena *arena, const struct log *log, const char *format,
                              const char *back_as) {
    size_t length;
    char *text = export_text(log, format, &length);
    struct log *back = logs_read(arena, text, NULL);
    assert_string_equal(back->format, back_as);
    logs_cut(text, length, back_as);
    free(text);
    return back;
}

static void expect_round_trip(const char *text, const char *format, const char *back_as) {
    struct arena arena = ARENA_EMPTY;
    const struct log *log = logs_read(&arena, text, NULL);
    const struct log *back = round_trip(&arena, log, format, back_as);
    expect_equal_rows(log, back);
    assert_int_equal(log->column_count, back->column_count);
    for (size_t c = 0; c < log->column_count; c++) {
        const struct log_column *other = log_column_by_source(back, log->columns[c].source);
        if (other == NULL && log->columns[c].name != LOG_OTHER) /* under the tool's own tag */
            other = log_column_of(back, (enum log_name)log->columns[c].name);
        if (other == NULL) fail_msg("%s: %s is missing", format, log->columns[c].source);
        expect_equal_column(&log->columns[c], other, log->rows);
    }
    arena_close(&arena);
}

static void verify_csv(void **state) {
    (void)state;
    expect_round_trip(mixed, "csv", "csv");
    expect_round_trip(scientific, "csv", "csv");
}

static void verify_jsonl(void **state) {
    (void)state;
    expect_round_trip(mixed, "jsonl", "jsonl");
    expect_round_trip(scientific, "jsonl", "jsonl");
}

static void verify_megatron(void **state) {
    (void)state;
    expect_round_trip(mixed, "megatron", "megatron-golden");
    expect_round_trip(scientific, "megatron", "megatron-golden");
}

/* Of NeMo-RL's file a column of nothing but binary32 comes back with their spacing, since it was
 * dumped from TensorBoard for all that the file says; other columns are as they were. */
static void verify_nemo_rl(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log = logs_read(&arena, mixed, NULL);
    const struct log *back = round_trip(&arena, log, "nemo-rl", "nemo-rl");
    expect_equal_rows(log, back);
    expect_equal_column(log_column_of(log, LOG_LOSS), log_column_of(back, LOG_LOSS), log->rows);
    expect_equal_column(log_column_of(log, LOG_LR_LOGGED), log_column_of(back, LOG_LR_LOGGED),
                        log->rows);
    const struct log_column *norm = log_column_of(back, LOG_GRAD_NORM);
    assert_true(norm->quantum[0] == 0x1p-19f); /* binary32 at 18.4, of 24 bits */
    assert_true(norm->quantum[2] == 0x1p-23f); /* and at 1.5 */
    arena_close(&arena);
    expect_round_trip(scientific, "nemo-rl", "nemo-rl");
}

static void verify_torchtitan(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    static const char *const texts[] = {
        "1 8.049097061157227\n2 7.5\n3 6.9061431884765625\n",
        "{\"step\": 1, \"loss\": 0.6930}\n{\"step\": 2, \"loss\": 0.5100}\n",
    };
    for (size_t i = 0; i < 2; i++) {
        const struct log *log = logs_read(&arena, texts[i], NULL);
        const struct log *back = round_trip(&arena, log, "torchtitan", "torchtitan-golden");
        expect_equal_rows(log, back);
        expect_equal_column(log_column_of(log, LOG_LOSS), log_column_of(back, LOG_LOSS), log->rows);
    }
    arena_close(&arena);
}

/* The exact texts that are exported, so that other tools' readers can read them. */
static void validate_texts(void **state) {
    struct arena arena = ARENA_EMPTY;
    static const struct {
        const char *format, *text;
    } cases[] = {
        {"csv", "step,loss,learning_rate,\"a\"\"b\"\n1,0.6931,4.9999999999999998e-07,0.5\n"},
        {"jsonl", "{\"step\": 1, \"loss\": 0.6931, \"learning_rate\": 4.9999999999999998e-07, "
                  "\"a\\\"b\": 0.5}\n"},
        {"torchtitan", "1 0.6931\n"},
        {"megatron",
         "{\n    \"lm loss\": {\"start_step\": 1, \"end_step\": 1, \"step_interval\": 1, "
         "\"values\": {\"1\": 0.6931}},\n    \"learning-rate\": {\"start_step\": 1, \"end_step\": "
         "1, \"step_interval\": 1, \"values\": {\"1\": 4.9999999999999998e-07}},\n    \"a\\\"b\": "
         "{\"start_step\": 1, \"end_step\": 1, \"step_interval\": 1, \"values\": {\"1\": "
         "0.5}}\n}\n"},
        {"nemo-rl", "{\n    \"train/loss\": {\"1\": 0.6931},\n    \"train/lr\": {\"1\": "
                    "4.9999999999999998e-07},\n    \"a\\\"b\": {\"1\": 0.5}\n}\n"},
    };
    (void)state;
    const struct log *log = logs_read(&arena,
                                      "{\"step\": 1, \"loss\": 0.6931, \"learning_rate\": "
                                      "5.0000000000000000e-07, \"a\\\"b\": 0.5}",
                                      NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t length;
        char *text = export_text(log, cases[i].format, &length);
        assert_string_equal(text, cases[i].text);
        free(text);
    }
    arena_close(&arena);
}

/* Python's json reads NaN as a name; Megatron's own files hold it as a string. */
static void validate_texts_of_nan(void **state) {
    struct arena arena = ARENA_EMPTY;
    size_t length;
    (void)state;
    const struct log *log = logs_read(&arena, "{\"step\": 1, \"loss\": NaN}", NULL);
    char *text = export_text(log, "megatron", &length);
    assert_non_null(strstr(text, "{\"1\": \"NaN\"}"));
    free(text);
    text = export_text(log, "jsonl", &length);
    assert_string_equal(text, "{\"step\": 1, \"loss\": NaN}\n");
    free(text);
    text = export_text(log, "csv", &length);
    assert_string_equal(text, "step,loss\n1,nan\n");
    free(text);
    arena_close(&arena);
}

static void verify_refusals(void **state) {
    struct arena arena = ARENA_EMPTY;
    FILE *file = tmpfile();
    (void)state;
    const struct log *no_loss = logs_read(&arena, "{\"step\": 1, \"lr\": 0.5}", NULL);
    assert_int_equal(log_export(no_loss, "torchtitan", file), STATUS_INPUT);
    assert_non_null(strstr(status_text(), "expected a loss"));
    const struct log *resumed =
        logs_read(&arena, "{\"step\": 2, \"loss\": 0.5}\n{\"step\": 1, \"loss\": 0.5}", NULL);
    static const char *const series[] = {"torchtitan", "megatron", "nemo-rl"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(log_export(resumed, series[i], file), STATUS_INPUT);
        assert_non_null(strstr(status_text(), "got 1 behind 2"));
    }
    assert_int_equal(log_export(resumed, "csv", file), STATUS_OK);
    assert_int_equal(log_export(resumed, "xml", file), STATUS_INPUT);
    fclose(file);
    FILE *full = fopen("/dev/full", "w");
    if (full != NULL) {
        assert_int_equal(log_export(resumed, "csv", full), STATUS_IO);
        fclose(full);
    }
    arena_close(&arena);
}

/* ---- traces ---- */

static void expect_same(const struct log *a, const struct log *b) {
    expect_equal_rows(a, b);
    assert_string_equal(a->format, b->format);
    assert_string_equal(a->title, b->title);
    assert_int_equal(a->step_base, b->step_base);
    assert_int_equal(a->step_guessed, b->step_guessed);
    assert_int_equal(a->max_steps, b->max_steps);
    assert_int_equal(a->note_count, b->note_count);
    for (size_t i = 0; i < a->note_count; i++)
        assert_string_equal(a->notes[i], b->notes[i]);
    assert_int_equal(a->column_count, b->column_count);
    assert_memory_equal(a->line, b->line, a->rows * sizeof *a->line);
    for (size_t c = 0; c < a->column_count; c++) {
        assert_string_equal(a->columns[c].source, b->columns[c].source);
        assert_int_equal(a->columns[c].name, b->columns[c].name);
        assert_int_equal(a->columns[c].cumulative, b->columns[c].cumulative);
        assert_int_equal(a->columns[c].windowed, b->columns[c].windowed);
        assert_memory_equal(a->columns[c].value, b->columns[c].value, a->rows * sizeof(double));
        for (size_t i = 0; i < a->rows; i++) /* NaN of any pattern: absent */
            assert_true(a->columns[c].quantum[i] == b->columns[c].quantum[i] ||
                        (!log_has(&a->columns[c], i) && !log_has(&b->columns[c], i)));
    }
}

static struct log *through_trace(struct arena *arena, const struct log *log, const char *path) {
    struct log_options options;
    struct log *back = NULL;
    log_options_init(&options);
    if (log_write_trace(log, path, 1, arena) != STATUS_OK ||
        log_import(path, &options, arena, &back) != STATUS_OK)
        fail_msg("%s", status_text());
    assert_string_equal(back->path, path);
    return back;
}

static void verify_trace(void **state) {
    static const char resumed[] =
        "{\"step\": 0, \"a/b\": 1.5, \"a_b\": 2, \"step_\": 1, \"loss\": "
        "0.25}\n{\"loss\": 0.5}\n{\"step\": 2, \"loss\": 0.50}\n{\"step\": "
        "1, \"value\": Infinity, \"\": 1, \"log\": 2}\n";
    static const char *const texts[] = {mixed, scientific, resumed, "{\"x\": 1.5}"};
    char path[] = "/tmp/twinstep-export-XXXXXX";
    struct arena arena = ARENA_EMPTY;
    (void)state;
    close(mkstemp(path));
    for (size_t i = 0; i < 4; i++) {
        const struct log *log = logs_read(&arena, texts[i], NULL);
        const struct log *back = through_trace(&arena, log, path);
        expect_same(log, back);
        expect_same(log, through_trace(&arena, back, path)); /* and once more */
    }
    unlink(path);
    arena_close(&arena);
}

static void verify_trace_refusals(void **state) {
    char path[] = "/tmp/twinstep-export-XXXXXX";
    struct arena arena = ARENA_EMPTY;
    struct log_options options;
    struct log *back = NULL;
    (void)state;
    close(mkstemp(path));
    const struct log *log = logs_read(&arena, mixed, NULL);
    assert_int_equal(log_write_trace(log, path, 0, &arena), STATUS_IO); /* exists */
    assert_int_equal(log_write_trace(log, path, 1, &arena), STATUS_OK);
    log_options_init(&options);
    options.step_base = 0;
    assert_int_equal(log_import(path, &options, &arena, &back), STATUS_INPUT);
    assert_non_null(strstr(status_text(), "when the log was imported"));
    assert_non_null(strstr(logs_refuse(&arena, "\x89HDF\r\n\x1a\nrest", 12, NULL), "as a file"));
    unlink(path);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_csv),
        cmocka_unit_test(verify_jsonl),
        cmocka_unit_test(verify_megatron),
        cmocka_unit_test(verify_nemo_rl),
        cmocka_unit_test(verify_torchtitan),
        cmocka_unit_test(validate_texts),
        cmocka_unit_test(validate_texts_of_nan),
        cmocka_unit_test(verify_refusals),
        cmocka_unit_test(verify_trace),
        cmocka_unit_test(verify_trace_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
