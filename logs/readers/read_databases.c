/* SPDX-License-Identifier: Apache-2.0
 * The databases of Trackio (PROJECT.db: a row of JSON per call of log) and of MLflow (mlflow.db,
 * its default since 3: a row per value).
 *
 * Source of the tables: trackio/sqlite_storage.py (metrics: run_name, step, metrics);
 * mlflow/store/tracking/dbmodels/models.py (metrics: key, value, is_nan, step, run_uuid; runs). A
 * database holds many runs: --run NAME chooses, else the first is read and a note names the others.
 * Trackio's step counts calls of log, so a step that the program logs is preferred to it. MLflow
 * stores an infinity as the largest binary64 and a NaN as 0 with a mark. */
#include <inttypes.h>
#include <string.h>

#include "base/real.h"
#include "logs/database.h"
#include "logs/json_row.h"
#include "logs/lines.h"

#define RUNS_SHOWN 8

struct visit {
    const struct log_source *source;
    struct log_build *build;
    struct database *database;
};

/* ---- which run ---- */

/* Chooses the run that --run names, or the first, and notes what others there are. The query gives
 * an identifier and a name per run, the oldest first. */
static enum status choose_run(struct visit *v, const char *query, char **out) {
    const char *wanted = log_build_options(v->build)->run;
    struct arena *scratch = log_build_scratch(v->build);
    char *names;
    size_t runs = 0;
    int more;
    *out = NULL;
    TRY(arena_format(scratch, &names, "%s", ""));
    TRY(database_ask(v->database, query, NULL));
    for (;;) {
        TRY(database_next(v->database, &more));
        if (!more) break;
        const struct log_span id = database_text(v->database, 0);
        char shown[96], *kept;
        TRY(arena_text(scratch, id.text, id.length, &kept));
        const struct log_span name = database_text(v->database, 1);
        log_show(name.text, name.length, shown, sizeof shown);
        if (runs++ < RUNS_SHOWN)
            TRY(arena_format(scratch, &names, "%s%s%s", names, runs == 1 ? "" : ", ", shown));
        if (*out != NULL) continue;
        if (wanted == NULL || log_span_is(name, wanted) || strcmp(kept, wanted) == 0) *out = kept;
    }
    if (*out == NULL)
        FAIL(STATUS_INPUT, "%s: expected a run%s%s, got %s%s", v->source->name,
             wanted == NULL ? "" : " called ", wanted == NULL ? "" : wanted,
             runs == 0 ? "none" : names, runs > RUNS_SHOWN ? ", .." : "");
    if (runs > 1 && wanted == NULL)
        TRY(log_build_note(v->build, "it holds %zu runs (%s%s); the first is read: --run NAME",
                           runs, names, runs > RUNS_SHOWN ? ", .." : ""));
    return STATUS_OK;
}

static int64_t step_limit(void) {
    return (int64_t)1 << 53;
}

static enum status check_step(const struct visit *v, int64_t step) {
    if (step >= -step_limit() && step <= step_limit()) return STATUS_OK;
    FAIL(STATUS_INPUT, "%s: expected a step within 2^53, got %" PRId64, v->source->name, step);
}

/* ---- Trackio ---- */

static const char *const trackio_steps[] = {"train/global_step", "trainer/global_step",
                                            "training_step", "global_step", NULL};
static const char trackio_rows[] =
    "SELECT metrics, step FROM metrics WHERE run_name = ? ORDER BY id";

/* Reads the JSON of the row at hand. */
static enum status read_json(struct visit *v, struct json_row *row) {
    const struct log_span text = database_text(v->database, 0);
    const struct log_source json = {
        .name = v->source->name, .bytes = (const unsigned char *)text.text, .length = text.length};
    struct scan scan;
    scan_open(&scan, &json);
    TRY(scan_next(&scan));
    return json_row_read(&scan, row);
}

static enum status choose_trackio_step(struct visit *v, struct json_row *row, const char *run,
                                       const char **out) {
    size_t best = COUNT_OF(trackio_steps) - 1;
    int more;
    *out = log_build_step_source(v->build);
    if (*out != NULL) return STATUS_OK;
    TRY(database_ask(v->database, trackio_rows, run));
    for (;;) {
        int64_t step;
        TRY(database_next(v->database, &more));
        if (!more) break;
        TRY(read_json(v, row));
        for (size_t i = 0; i < best; i++)
            if (json_row_step(row, trackio_steps[i], &step)) best = i;
    }
    *out = trackio_steps[best];
    return STATUS_OK;
}

static enum status read_trackio(struct visit *v) {
    struct json_row *row;
    const char *name;
    char *run;
    int more;
    TRY(arena_take(log_build_scratch(v->build), 1, sizeof *row, "row", &row));
    TRY(choose_run(v, "SELECT run_name, run_name FROM metrics GROUP BY run_name ORDER BY min(id)",
                   &run));
    TRY(choose_trackio_step(v, row, run, &name));
    TRY(database_ask(v->database, trackio_rows, run));
    for (;;) {
        TRY(database_next(v->database, &more));
        if (!more) break;
        int64_t step = database_integer(v->database, 1);
        TRY(read_json(v, row));
        const int own = name == NULL || json_row_step(row, name, &step);
        TRY(check_step(v, step));
        TRY(log_build_row(v->build, own ? step : INT64_MIN, 0, v->source->part));
        TRY(json_row_put(row, name, 0, log_rules_json, v->build));
    }
    if (name != NULL) return STATUS_OK;
    return log_build_note(v->build, "the step is Trackio's, which counts calls of log unless the "
                                    "program gave one");
}

/* ---- MLflow ---- */

/* SQLite stores any value in any column: what is no number would be read as 0. Where is_nan is set
 * the value does not count, and may be NULL. */
#define MLFLOW_NUMBERS                                                                             \
    "typeof(key) = 'text' AND (typeof(value) IN ('real', 'integer') OR ifnull(is_nan, 0)) AND "    \
    "typeof(step) = 'integer'"

/* Values of one metric at one step are one cell. Where they all lie at step 0, there is no row to
 * put them into. */
static enum status check_mlflow_steps(struct visit *v, const char *run) {
    int more;
    TRY(database_ask(v->database,
                     "SELECT key, count(*), count(DISTINCT step), max(step) FROM metrics WHERE "
                     "run_uuid = ? AND " MLFLOW_NUMBERS
                     " GROUP BY key HAVING count(*) > count(DISTINCT step) ORDER BY key",
                     run));
    for (;;) {
        char name[96];
        TRY(database_next(v->database, &more));
        if (!more) return STATUS_OK;
        const struct log_span key = database_text(v->database, 0);
        const int64_t count = database_integer(v->database, 1);
        const int64_t steps = database_integer(v->database, 2);
        log_show(key.text, key.length, name, sizeof name);
        if (steps == 1 && database_integer(v->database, 3) == 0)
            FAIL(STATUS_INPUT,
                 "%s: expected steps, got %" PRId64 " values of %s at step 0: the program gave "
                 "MLflow no step",
                 v->source->name, count, name);
        TRY(log_build_note(v->build,
                           "%s: %" PRId64 " values have the step of another: the last counts", name,
                           count - steps));
    }
}

static enum status note_no_numbers(struct visit *v, const char *run) {
    int more;
    TRY(database_ask(v->database,
                     "SELECT count(*) FROM metrics WHERE run_uuid = ? AND NOT (" MLFLOW_NUMBERS ")",
                     run));
    TRY(database_next(v->database, &more));
    const int64_t count = more ? database_integer(v->database, 0) : 0;
    if (count == 0) return STATUS_OK;
    return log_build_note(
        v->build, "rows without a name, a number or a step that were left out: %" PRId64, count);
}

static enum status read_mlflow(struct visit *v) {
    char *run;
    int more;
    TRY(choose_run(v, "SELECT run_uuid, name FROM runs ORDER BY start_time, run_uuid", &run));
    TRY(check_mlflow_steps(v, run));
    TRY(note_no_numbers(v, run));
    TRY(database_ask(v->database,
                     "SELECT key, value, is_nan, step FROM metrics WHERE run_uuid = ? "
                     "AND " MLFLOW_NUMBERS " ORDER BY step, timestamp",
                     run));
    for (;;) {
        size_t column;
        TRY(database_next(v->database, &more));
        if (!more) return STATUS_OK;
        const struct log_span key = database_text(v->database, 0);
        const int64_t step = database_integer(v->database, 3);
        double value = database_number(v->database, 1);
        if (value == 0x1.fffffffffffffp1023) value = real_inf_f64();
        if (value == -0x1.fffffffffffffp1023) value = -real_inf_f64();
        if (database_integer(v->database, 2) != 0) value = real_nan_f64();
        TRY(check_step(v, step));
        TRY(log_build_column(v->build, key.text, key.length, log_rules_exact, &column));
        TRY(log_build_row_of(v->build, step, 0, v->source->part));
        TRY(log_build_value(v->build, column, value, 0.0));
    }
}

/* ---- readers ---- */

static const char *const trackio_columns[] = {"id", "run_name", "step", "metrics", NULL};
static const char *const mlflow_columns[] = {"key",       "value",    "is_nan", "step",
                                             "timestamp", "run_uuid", NULL};
static const char *const mlflow_runs[] = {"run_uuid", "name", "start_time", NULL};

static int is_trackio(struct database *database) {
    return database_has(database, "metrics", trackio_columns);
}

static int is_mlflow(struct database *database) {
    return database_has(database, "metrics", mlflow_columns) &&
           database_has(database, "runs", mlflow_runs);
}

static int claim(const struct log_source *source, int (*is)(struct database *database)) {
    struct arena arena = ARENA_EMPTY;
    struct database *database = NULL;
    int found = 0;
    if (database_is(source)) {
        const enum status status = database_open(source, &arena, &database);
        if (status == STATUS_OK) found = is(database) ? 3 : 0;
        if (status == STATUS_MEMORY) found = LOG_CLAIM_FAILED;
    }
    database_close(database);
    arena_close(&arena);
    return found;
}

static int claim_trackio(const struct log_source *source) {
    return claim(source, is_trackio);
}

static int claim_mlflow(const struct log_source *source) {
    return claim(source, is_mlflow);
}

static enum status read_with(const struct log_source *source, struct log_build *build,
                             int (*is)(struct database *database), const char *tool,
                             enum status (*read)(struct visit *v)) {
    struct visit v = {source, build, NULL};
    enum status status = database_open(source, log_build_scratch(build), &v.database);
    if (status == STATUS_OK && !is(v.database))
        status = status_fail(STATUS_INPUT, "%s: expected the tables of %s, got others",
                             source->name, tool);
    if (status == STATUS_OK) status = read(&v);
    database_close(v.database);
    return status;
}

static enum status read_trackio_file(const struct log_source *source, struct log_build *build) {
    return read_with(source, build, is_trackio, "Trackio", read_trackio);
}

static enum status read_mlflow_file(const struct log_source *source, struct log_build *build) {
    return read_with(source, build, is_mlflow, "MLflow", read_mlflow);
}

const struct log_reader log_reader_trackio = {
    .step_base = INT64_MIN, .claim = claim_trackio, .read = read_trackio_file};
const struct log_reader log_reader_mlflow_db = {
    .step_base = INT64_MIN, .claim = claim_mlflow, .read = read_mlflow_file};
