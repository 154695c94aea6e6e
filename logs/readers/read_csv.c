/* SPDX-License-Identifier: Apache-2.0
 * CSV of three kinds: Lightning's metrics.csv, W&B's exports, and any other table with a header.
 *
 * Lightning: header in byte order with epoch and step, one record per logger call, so the values of
 * one step come in several records with blank cells; step counts from 0. Other tables have such a
 * header, too, and count from 1, so the first records are asked who wrote them.
 * W&B chart export: "Step","run - key","run - key__MIN","run - key__MAX"; may hold several runs and
 * is sampled for long ones. W&B API: _step, _runtime, _timestamp beside the keys; _step counts
 * log calls, so a step that the training itself logged is preferred. (The chart export's shape is
 * taken from memory.) */
#include <inttypes.h>
#include <string.h>

#include "logs/csv.h"

/* Python's csv module writes the shortest repr. Lightning rounds nothing before that; other tools
 * may have. */
static const struct log_rule rules_others[] = {
    /* the table of a notebook: "%.6f" of a mean that transformers before 5 had rounded */
    {.source = "Training Loss",
     .name = LOG_LOSS,
     .print = LOG_PRINT_DECIMALS,
     .decimals = 4,
     .windowed = 1},
    LOG_RULES_END(LOG_PRINT_TABLE),
};

static struct log_csv open_head(const struct log_source *source) {
    struct log_csv csv;
    log_csv_open(&csv, source, LOG_CLAIM_BYTES);
    return csv;
}

struct header_signs {
    int epoch, step, first_step, dash, minimum, w_step, w_time, known_step, most;
    int index, value; /* of a table that names no metric: Aim's, one metric a file */
    int trainer;      /* 1: a summary of the Hugging Face Trainer's */
    int norm, rate, loss;
    int monitor;    /* 1: an LR as Lightning's LearningRateMonitor names it, "lr-AdamW" */
    int numbered;   /* 1: its first column has no name, as the index of a DataFrame of pandas */
    size_t step_at; /* the column of the step */
    size_t epoch_at;
};

static const char *const usual_steps[] = {"step",
                                          "global_step",
                                          "train/global_step",
                                          "trainer/global_step",
                                          "training_step",
                                          "train/step",
                                          "iteration",
                                          "iter",
                                          "current_steps",
                                          "update",
                                          "optimizer_step",
                                          "Step",
                                          "_step",
                                          "STEP",
                                          NULL};

static void see(void *self, struct log_span name, size_t index) {
    struct header_signs *signs = (struct header_signs *)self;
    signs->first_step |= index == 0 && log_span_is(name, "step");
    if (log_span_is(name, "epoch")) signs->epoch = 1, signs->epoch_at = index;
    if (log_span_is(name, "step")) signs->step_at = index;
    signs->trainer |= log_span_is(name, "total_flos") || log_span_is(name, "train_runtime");
    signs->norm |= log_span_is(name, "grad_norm");
    signs->rate |= log_span_is(name, "learning_rate");
    signs->loss |= log_span_is(name, "loss");
    signs->monitor |= log_span_starts(name, "lr-");
    signs->numbered |= index == 0 && name.length == 0;
    signs->index |= log_span_is(name, "idx");
    signs->value |= log_span_is(name, "value");
    signs->step |= log_span_is(name, "step");
    signs->dash |= log_span_after(name, " - ").text != NULL;
    signs->minimum |= log_span_ends(name, "__MIN") || log_span_ends(name, "__MAX");
    signs->w_step |= log_span_is(name, "_step");
    signs->w_time |= log_span_is(name, "_runtime") || log_span_is(name, "_timestamp");
    for (size_t i = 0; usual_steps[i] != NULL; i++)
        signs->known_step |= log_span_is(name, usual_steps[i]);
}

static int look(const struct log_source *source, struct header_signs *signs) {
    struct log_csv csv = open_head(source);
    size_t columns;
    memset(signs, 0, sizeof *signs);
    return log_csv_claim_header(&csv, &columns, see, signs) &&
           log_csv_claim_record(&csv, columns, &signs->most);
}

/* ---- Lightning ---- */

/* Lightning's header is sorted, or has step last. A table that begins with step is another tool's
 * (our own export of a run has an epoch column, too) and does not count from 0; nor does Aim's
 * Metric.dataframe(): "idx, step, value, epoch, time". */
static int has_lightning_header(const struct header_signs *signs) {
    return signs->epoch && signs->step && !signs->first_step && !signs->dash && !signs->minimum &&
           !signs->w_step && !(signs->index && signs->value);
}

struct record_signs {
    int64_t first, second; /* the first two different steps; INT64_MIN: there are fewer */
    int from_one;          /* 1: as many updates lie in front of the first row as between two */
    int from_zero;         /* 1: one fewer does */
    int part_epoch;        /* 1: an epoch is a fraction, which Lightning's never is */
    int printed;           /* 1: a number is no shortest repr, which all of Lightning's are */
};

static void see_step(struct record_signs *records, int64_t step) {
    if (records->first == INT64_MIN) records->first = step;
    if (records->second == INT64_MIN && step > records->first) records->second = step;
    if (records->second == INT64_MIN) return;
    const int64_t apart = records->second - records->first;
    if (records->first != apart || step % apart != 0) records->from_one = 0;
}

static void see_cell(struct record_signs *records, const struct header_signs *signs, size_t at,
                     struct log_span cell) {
    struct log_number number;
    if (!log_number_read(cell.text, cell.length, &number)) return;
    const int whole = number.value > -0x1p52 && number.value < 0x1p52 &&
                      number.value == (double)(int64_t)number.value;
    records->printed |= log_text_is_printed(cell.text, cell.length);
    records->part_epoch |= at == signs->epoch_at && !whole;
    if (at == signs->step_at && whole) see_step(records, (int64_t)number.value);
}

/* Looks at the records of the first table in the head of the file. */
static struct record_signs look_at_records(const struct log_source *source,
                                           const struct header_signs *signs) {
    struct record_signs records = {.first = INT64_MIN, .second = INT64_MIN, .from_one = 1};
    struct log_csv csv = open_head(source);
    struct log_csv_field field;
    size_t columns, at = 0;
    if (!log_csv_claim_header(&csv, &columns, NULL, NULL)) return records;
    while (log_csv_next(&csv, at == 0, &field)) {
        if (field.open) break;                                              /* it may be cut */
        if (at == signs->step_at && log_span_is(field.text, "step")) break; /* another header */
        see_cell(&records, signs, at, field.text);
        at = field.last ? 0 : at + 1;
    }
    const int64_t apart = records.second == INT64_MIN ? 0 : records.second - records.first;
    records.from_one &= apart > 0;
    records.from_zero =
        records.first == 0 || (apart > 1 && records.first >= 0 && (records.first + 1) % apart == 0);
    return records;
}

enum writer { OTHER_WRITER, MAYBE_LIGHTNING, LIGHTNING };

/* Says who wrote a table with Lightning's header. Lightning counts from 0 and logs the update that
 * completes a number of them (steps 49, 99, ..), so what begins with 1, 2, 3 or 10, 20, 30 is of
 * another tool, but where LearningRateMonitor's column stands. Lightning's epochs are whole, and
 * its numbers reprs; who rewrote its table may have changed the latter, but not its steps. */
static enum writer writer_of(const struct header_signs *signs, const struct record_signs *records) {
    if (signs->trainer || signs->numbered || (signs->norm && signs->rate && signs->loss))
        return OTHER_WRITER;
    if (signs->monitor) return records->from_one ? MAYBE_LIGHTNING : LIGHTNING;
    if (records->from_one || records->part_epoch) return OTHER_WRITER;
    if (records->printed && (records->first == 0 || !records->from_zero)) return OTHER_WRITER;
    return records->from_zero ? LIGHTNING : MAYBE_LIGHTNING;
}

static int is_lightning(const struct log_source *source, const struct header_signs *signs) {
    if (!has_lightning_header(signs)) return 0;
    const struct record_signs records = look_at_records(source, signs);
    return writer_of(signs, &records) != OTHER_WRITER;
}

static int lightning_claim(const struct log_source *source) {
    struct header_signs signs;
    return look(source, &signs) && is_lightning(source, &signs) ? 3 : 0;
}

static enum status lightning_read(const struct log_source *source, struct log_build *build) {
    static const char *const steps[] = {"step", NULL};
    const struct log_options *const options = log_build_options(build);
    struct header_signs signs;
    const int known = look(source, &signs);
    const struct record_signs records = look_at_records(source, &signs);
    const struct csv_habit habit = {
        .rules = records.printed ? rules_others : log_rules_exact, .steps = steps, .merges = 1};
    TRY(log_csv_read(source, build, &habit));
    if (!known || options->format != NULL || options->step_base != INT64_MIN ||
        writer_of(&signs, &records) != MAYBE_LIGHTNING)
        return STATUS_OK;
    return log_build_note(build,
                          "its header is that of Lightning's metrics.csv, so step %" PRId64
                          " was read as update %" PRId64
                          "; if another program wrote it and counts from 1, --format csv reads its "
                          "steps as they stand",
                          records.first, records.first + 1);
}

const struct log_reader log_reader_lightning = {
    .step_base = 0, .claim = lightning_claim, .read = lightning_read};

/* ---- W&B ---- */

static int is_wandb(const struct header_signs *signs) {
    return (signs->dash && signs->minimum) || (signs->w_step && signs->w_time);
}

static int wandb_claim(const struct log_source *source) {
    struct header_signs signs;
    return look(source, &signs) && is_wandb(&signs) ? 3 : 0;
}

struct wandb {
    struct log_build *build;
    const char *wanted; /* the run that was asked for, or NULL */
    char run[256];      /* the run that is read */
    size_t run_length;
    int has_run, other_runs;
};

/* Splits "run - key". A run's name may hold " - " itself, a key does not, so the last one parts
 * them. */
static struct log_span split_run(struct log_span name, struct log_span *key) {
    struct log_span rest = name;
    *key = (struct log_span){NULL, 0};
    while ((rest = log_span_after(rest, " - ")).text != NULL)
        *key = rest;
    if (key->text == NULL) return (struct log_span){NULL, 0};
    return (struct log_span){name.text, (size_t)(key->text - name.text) - 3};
}

/* Columns that W&B adds itself (_runtime, _timestamp) differ in every record of a step, so only
 * _step is of use. */
static enum csv_role wandb_role(void *self, struct log_span *name, size_t index) {
    struct wandb *wandb = (struct wandb *)self;
    struct log_span key;
    const struct log_span run = split_run(*name, &key);
    if (run.text == NULL && index == 0) return CSV_STEP;
    if (run.text == NULL) return log_span_starts(*name, "_") ? CSV_OWN : CSV_VALUE;
    if (log_span_ends(key, "__MIN") || log_span_ends(key, "__MAX")) return CSV_SKIP;
    if (!wandb->has_run && run.length < sizeof wandb->run &&
        (wandb->wanted == NULL || log_span_is(run, wandb->wanted))) {
        memcpy(wandb->run, run.text, run.length);
        wandb->run_length = run.length;
        wandb->has_run = 1;
    }
    if (!wandb->has_run || wandb->run_length != run.length ||
        memcmp(wandb->run, run.text, run.length) != 0) {
        wandb->other_runs = 1;
        return CSV_SKIP;
    }
    *name = key;
    return CSV_VALUE;
}

static enum status wandb_read(const struct log_source *source, struct log_build *build) {
    static const char *const steps[] = {"train/global_step",
                                        "trainer/global_step",
                                        "global_step",
                                        "training_step",
                                        "Step",
                                        "_step",
                                        NULL};
    struct wandb wandb = {.build = build, .wanted = log_build_options(build)->run};
    const struct csv_habit habit = {
        .role = wandb_role, .self = &wandb, .rules = rules_others, .steps = steps, .merges = 1};
    TRY(log_csv_read(source, build, &habit));
    if (wandb.other_runs && !wandb.has_run)
        FAIL(STATUS_INPUT, "%s: expected columns of run \"%s\", got only others", source->name,
             wandb.wanted);
    if (wandb.other_runs)
        TRY(log_build_note(build, "it holds several runs: \"%.*s\" was read (--run NAME)",
                           (int)(wandb.run_length < 100 ? wandb.run_length : 100), wandb.run));
    if (wandb.has_run)
        TRY(log_build_note(build, "W&B samples charts of long runs: rows may be missing"));
    return STATUS_OK;
}

const struct log_reader log_reader_wandb_csv = {
    .step_base = INT64_MIN, .claim = wandb_claim, .read = wandb_read};

/* ---- any other ---- */

static int csv_claim(const struct log_source *source) {
    struct header_signs signs;
    if (!look(source, &signs) || is_lightning(source, &signs) || is_wandb(&signs)) return 0;
    return signs.known_step ? 2 : signs.most; /* console lines with a comma in them are no table */
}

static enum status csv_read(const struct log_source *source, struct log_build *build) {
    const struct csv_habit habit = {.rules = rules_others, .steps = usual_steps, .merges = 0};
    return log_csv_read(source, build, &habit);
}

const struct log_reader log_reader_csv = {
    .step_base = INT64_MIN, .claim = csv_claim, .read = csv_read};
