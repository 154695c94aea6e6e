/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Databases of Trackio and MLflow: files that the tools wrote (packed), tables made here with many
 * runs and awkward numbers, a write-ahead log, views, damage. */
#include "tests/logs/helper_logs.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/real.h"
#include "logs/import.h"

#define N real_nan_f64()
#define INF real_inf_f64()

#define TRACKIO                                                                                    \
    "CREATE TABLE metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, timestamp TEXT, run_name TEXT, "  \
    "step INTEGER, metrics TEXT);"
#define MLFLOW                                                                                     \
    "CREATE TABLE runs (run_uuid TEXT, name TEXT, start_time BIGINT);"                             \
    "CREATE TABLE metrics (key TEXT, value DOUBLE, timestamp BIGINT, run_uuid TEXT, "              \
    "step BIGINT, is_nan BOOLEAN);"

static unsigned char *bytes;
static sqlite3_int64 length;

/* Makes a database of small pages out of SQL, as bytes. */
static void make(const char *sql) {
    sqlite3 *d;
    char *error = NULL;
    assert_int_equal(sqlite3_open(":memory:", &d), SQLITE_OK);
    assert_int_equal(sqlite3_exec(d, "PRAGMA page_size=512", NULL, NULL, NULL), SQLITE_OK);
    if (sqlite3_exec(d, sql, NULL, NULL, &error) != SQLITE_OK) fail_msg("%s", error);
    sqlite3_free(bytes);
    bytes = sqlite3_serialize(d, "main", &length, 0);
    assert_non_null(bytes);
    sqlite3_close(d);
}

static enum status read_as(struct arena *arena, const char *format, const char *run, size_t end,
                           struct log **out) {
    struct log_options options;
    log_options_init(&options);
    options.format = format;
    options.run = run;
    return log_import_bytes("test", bytes, end, &options, arena, out);
}

static const struct log *read_good(struct arena *arena, const char *run) {
    struct log *log = NULL;
    if (read_as(arena, NULL, run, (size_t)length, &log) != STATUS_OK) fail_msg("%s", status_text());
    return log;
}

static void expect_refusal(const char *format, const char *run, const char *words) {
    struct arena arena = ARENA_EMPTY;
    struct log *log;
    assert_int_equal(read_as(&arena, format, run, (size_t)length, &log), STATUS_INPUT);
    if (strstr(status_text(), words) == NULL)
        fail_msg("expected \"%s\", got %s", words, status_text());
    arena_close(&arena);
}

/* What the scripts logged: loss 2.5/s and a rate 1e-6 s at step 5 s; s is 1 to 10. */
static void validate_files_of_the_tools(void **state) {
    static const char *const files[][3] = {{"trackio", "train/loss", "lr"},
                                           {"mlflow", "loss", "train/learning_rate"}};
    (void)state;
    for (size_t f = 0; f < COUNT_OF(files); f++) {
        struct arena arena = ARENA_EMPTY;
        struct log_options options;
        struct log *log;
        char path[512];
        log_options_init(&options);
        snprintf(path, sizeof path, "%s/tests/logs/databases/%s.db.gz", TWINSTEP_SOURCE_DIR,
                 files[f][0]);
        if (log_import(path, &options, &arena, &log) != STATUS_OK) fail_msg("%s", status_text());
        assert_int_equal(log->rows, 10);
        for (int s = 1; s <= 10; s++) {
            assert_int_equal(log->step[s - 1], 5 * s);
            logs_expect(log, files[f][1], (size_t)s - 1, 2.5 / s, 0.0);
            logs_expect(log, files[f][2], (size_t)s - 1, 1e-6 * s, 0.0);
        }
        if (f == 1) logs_expect(log, "grad_norm", 3, N, 0.0);
        assert_string_equal(log_column_of(log, LOG_LR_LOGGED)->source, files[f][2]);
        arena_close(&arena);
    }
}

static void validate_trackio(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    make(TRACKIO
         "INSERT INTO metrics(run_name, step, metrics) VALUES"
         "('b', 0, '{\"loss\": 0.6930, \"x\": \"NaN\"}'), ('a', 0, '{\"loss\": 7}'),"
         "('b', 1, '{\"loss\": 0.5, \"x\": \"Infinity\", \"text\": \"hello\", \"y\": null}');");
    const struct log *log = read_good(&arena, NULL);
    assert_int_equal(log->rows, 2);
    assert_int_equal(log->step_base, 0);
    logs_expect(log, "loss", 0, 0.693, 1e-4);
    logs_expect(log, "x", 0, N, 0.0);
    logs_expect(log, "x", 1, INF, 0.0);
    assert_null(log_column_by_source(log, "text"));
    assert_true(logs_has_note(log, "it holds 2 runs (b, a); the first is read: --run NAME"));
    assert_true(logs_has_note(log, "the step is Trackio's"));
    log = read_good(&arena, "a");
    assert_int_equal(log->rows, 1);
    logs_expect(log, "loss", 0, 7.0, 0.0);
    expect_refusal(NULL, "c", "expected a run called c, got b, a");
    make(TRACKIO "INSERT INTO metrics(run_name, step, metrics) VALUES ('b', 0, '{\"loss\": ');");
    expect_refusal(NULL, NULL, "expected");
    make(TRACKIO);
    expect_refusal(NULL, NULL, "expected a run, got none");
    arena_close(&arena);
}

static void validate_mlflow(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    make(MLFLOW
         "INSERT INTO runs VALUES ('u1', 'calm', 2), ('u0', 'bold', 1);"
         "INSERT INTO metrics VALUES ('loss', 0.1, 1, 'u0', 10, 0), ('loss', 0.25, 2, 'u0', 20, 0),"
         "('norm', 0, 1, 'u0', 10, 1), ('norm', 1.7976931348623157e308, 2, 'u0', 20, 0),"
         "('norm', -1.7976931348623157e308, 3, 'u0', 30, 0),"
         "('loss', 9, 1, 'u1', 1, 0), ('loss', 8, 2, 'u1', 1, 0), ('loss', 7, 3, 'u1', 2, 0);");
    const struct log *log = read_good(&arena, NULL);
    assert_int_equal(log->rows, 3);
    logs_expect(log, "loss", 0, 0.1, 0.0);
    logs_expect(log, "loss", 2, 0.0, N);
    logs_expect(log, "norm", 0, N, 0.0);
    logs_expect(log, "norm", 1, INF, 0.0);
    logs_expect(log, "norm", 2, -INF, 0.0);
    log = read_good(&arena, "calm");
    assert_int_equal(log->rows, 2);
    logs_expect(log, "loss", 0, 8.0, 0.0);
    assert_true(logs_has_note(log, "loss: 1 values have the step of another"));
    logs_expect(read_good(&arena, "u1"), "loss", 1, 7.0, 0.0);
    make(MLFLOW "INSERT INTO runs VALUES ('u', 'n', 1);"
                "INSERT INTO metrics VALUES ('loss', 1, 1, 'u', 0, 0), ('loss', 2, 2, 'u', 0, 0);");
    expect_refusal(NULL, NULL, "got 2 values of loss at step 0: the program gave MLflow no step");
    arena_close(&arena);
}

/* A view may run anything for any time, so it is no table; other tables are of other tools. */
/* SQLite keeps any value in any column; what is no number is no 0. */
static void verify_what_is_no_number(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    make(MLFLOW
         "INSERT INTO runs VALUES ('u', 'one', 1);"
         "INSERT INTO metrics(key, value, timestamp, run_uuid, step, is_nan) VALUES"
         "('loss', 0.5, 1, 'u', 1, 0), ('loss', 0.25, 2, 'u', 2, 0), ('lr', NULL, 1, 'u', 1, 0),"
         "('lr', 'high', 2, 'u', 2, 0), ('lr', x'0001', 3, 'u', 3, 0),"
         "('loss', 7.0, 4, 'u', 'x', 0), (NULL, 7.0, 4, 'u', 1, 0), ('lr', 1, 5, 'u', 2, 0);");
    const struct log *log = read_good(&arena, NULL);
    assert_int_equal(log->rows, 2);
    logs_expect(log, "loss", 0, 0.5, 0.0);
    logs_expect(log, "loss", 1, 0.25, 0.0);
    assert_false(log_has(log_column_by_source(log, "lr"), 0));
    logs_expect(log, "lr", 1, 1.0, 0.0);
    assert_null(log_column_by_source(log, ""));
    assert_true(logs_has_note(log, "without a name, a number or a step that were left out: 5"));
    /* is_nan stands in for a value that is none, and is none itself where it is NULL */
    make(MLFLOW "INSERT INTO runs VALUES ('u', 'one', 1);"
                "INSERT INTO metrics(key, value, timestamp, run_uuid, step, is_nan) VALUES"
                "('loss', 0.5, 1, 'u', 1, 0), ('loss', NULL, 2, 'u', 2, 1),"
                "('loss', 'NaN', 3, 'u', 3, 1), ('loss', NULL, 4, 'u', 4, NULL);");
    log = read_good(&arena, NULL);
    assert_int_equal(log->rows, 3);
    logs_expect(log, "loss", 1, N, 0.0);
    logs_expect(log, "loss", 2, N, 0.0);
    assert_true(logs_has_note(log, "without a name, a number or a step that were left out: 1"));
    arena_close(&arena);
}

static void verify_refusals(void **state) {
    (void)state;
    make("CREATE TABLE t (id INTEGER, run_name TEXT, step INTEGER, metrics TEXT);"
         "INSERT INTO t VALUES (1, 'a', 1, '{\"loss\": 1}');"
         "CREATE VIEW metrics AS SELECT * FROM t;");
    expect_refusal("trackio", NULL, "expected the tables of Trackio, got others");
    expect_refusal(NULL, NULL, "expected a database of MLflow or Trackio, got one without");
    make("CREATE TABLE metrics (id INTEGER, run_name TEXT, step INTEGER);");
    expect_refusal("trackio", NULL, "expected the tables of Trackio, got others");
    make(TRACKIO "INSERT INTO metrics(run_name, step, metrics) VALUES "
                 "('a', 9223372036854775807, '{\"loss\": 1}');");
    expect_refusal(NULL, NULL, "expected a step within 2^53");
    memset(bytes, 'x', 16);
    expect_refusal("trackio", NULL, "expected a SQLite database, got other bytes");
}

static void verify_damage(void **state) {
    (void)state;
    make(TRACKIO "INSERT INTO metrics(run_name, step, metrics) VALUES"
                 "('a', 1, '{\"loss\": 1.5}'), ('a', 2, '{\"loss\": 2.5}');");
    for (sqlite3_int64 i = 0; i < length; i++) {
        struct arena arena = ARENA_EMPTY;
        struct log *log;
        const unsigned char kept = bytes[i];
        bytes[i] ^= i % 2 == 0 ? 0x55 : 0xff;
        if (read_as(&arena, "trackio", NULL, (size_t)length, &log) != STATUS_OK)
            assert_true(strlen(status_text()) > 10);
        bytes[i] = kept;
        arena_close(&arena);
    }
    for (sqlite3_int64 end = 0; end < length; end += 61) {
        struct arena arena = ARENA_EMPTY;
        struct log *log;
        if (read_as(&arena, "trackio", NULL, (size_t)end, &log) != STATUS_OK)
            assert_non_null(strstr(status_text(), "expected"));
        arena_close(&arena);
    }
}

static size_t files_in(const char *folder) {
    size_t count = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    while (readdir(d) != NULL)
        count++;
    closedir(d);
    return count;
}

/* The writer is alive and its last rows are in the write-ahead log: they are read, and nothing
 * appears beside the database. A path has bytes that a URI has not. */
static void verify_a_write_ahead_log(void **state) {
    char folder[] = "/tmp/twinstep-test-XXXXXX", path[128], beside[160];
    struct arena arena = ARENA_EMPTY;
    struct log_options options;
    struct log *log;
    sqlite3 *writer;
    (void)state;
    log_options_init(&options);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a b%%?#.db", folder);
    assert_int_equal(sqlite3_open(path, &writer), SQLITE_OK);
    assert_int_equal(sqlite3_exec(writer,
                                  "PRAGMA journal_mode=WAL;" TRACKIO
                                  "PRAGMA wal_checkpoint(TRUNCATE);"
                                  "INSERT INTO metrics(run_name, step, metrics) VALUES ('a', 1, "
                                  "'{\"loss\": 1.5}'), ('a', 2, '{\"loss\": 2.5}');",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    const size_t files = files_in(folder);
    if (log_import(path, &options, &arena, &log) != STATUS_OK) fail_msg("%s", status_text());
    assert_int_equal(log->rows, 2);
    assert_int_equal(files_in(folder), files);
    sqlite3_close(writer); /* the last one moves the rows into the database */
    assert_int_equal(files_in(folder), files - 2);
    assert_int_equal(log_import(path, &options, &arena, &log), STATUS_OK);
    assert_int_equal(log->rows, 2);
    assert_int_equal(files_in(folder), files - 2);
    snprintf(beside, sizeof beside, "%s-wal", path);
    unlink(beside);
    unlink(path);
    rmdir(folder);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_files_of_the_tools),
        cmocka_unit_test(validate_trackio),
        cmocka_unit_test(validate_mlflow),
        cmocka_unit_test(verify_what_is_no_number),
        cmocka_unit_test(verify_refusals),
        cmocka_unit_test(verify_damage),
        cmocka_unit_test(verify_a_write_ahead_log),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sqlite3_free(bytes);
    return failed;
}
