/* SPDX-License-Identifier: Apache-2.0
 * What a log says beside its LRs: totals, skipped updates, the metric that a feedback schedule
 * followed, and which contracts its format speaks for (a trainer_state.json is the Hugging Face
 * Trainer's).
 *
 * The last is an assumption and no proof (a Trainer may run DeepSpeed's scheduler). So fits of
 * these contracts come first, and nothing is left out for it without a word. */
#include <string.h>

#include "base/real.h"
#include "forensics/fit_samples.h"
#include "forensics/fit_solve.h"

/* A contract belongs to a format when its name begins with the prefix. torchtitan's golden text is
 * not among them: it has no LR, so one that is found in such lines is a script's. */
static const struct {
    const char *format, *prefix;
} natives[] = {{"hf-trainer-state", "hf"},
               {"hf-console", "hf"},
               {"llama-factory", "hf"},
               {"megatron", "megatron"},
               {"torchtitan", "torchtitan"},
               {"torchtune", "torchtune"},
               {"torchtune-jsonl", "torchtune"},
               {"olmo-core", "olmo-core"},
               {"olmo-core-metrics", "olmo-core"},
               {"open-instruct", "open-instruct"},
               {"llmc", "llmc"},
               {"nemo-rl-console", "nemo-rl"},
               {"llmc-console", "llmc"},
               {"lightning", "lightning"},
               {"deepspeed", "deepspeed"}};

/* ---- the metric that a feedback schedule followed ---- */

static const struct log_column *metric_of(const struct log *log, const char *column) {
    if (column != NULL) {
        for (int32_t name = LOG_OTHER + 1; name < LOG_NAMES; name++)
            if (strcmp(log_names[name].name, column) == 0)
                return log_column_of(log, (enum log_name)name);
        return log_column_by_source(log, column);
    }
    const struct log_column *eval = log_column_of(log, LOG_EVAL_LOSS);
    return eval != NULL ? eval : log_column_of(log, LOG_LOSS);
}

/* A resumed run shows updates again; the later rows count, as the schedule saw them last. */
enum status fit_metric_from_log(const struct log *log, const char *column, struct arena *arena,
                                struct contract_request *out) {
    const struct log_column *metric = metric_of(log, column);
    uint64_t *updates;
    double *values;
    size_t count = 0;
    if (metric == NULL || log->step_guessed) return STATUS_OK;
    TRY(arena_take(arena, log->rows, sizeof *updates, "metric", &updates));
    TRY(arena_take(arena, log->rows, sizeof *values, "metric", &values));
    for (size_t row = 0; row < log->rows; row++) {
        if (!log_has(metric, row) || log->step[row] < 1) continue;
        const uint64_t update = (uint64_t)log->step[row];
        while (count > 0 && updates[count - 1] >= update)
            count--;
        updates[count] = update;
        values[count++] = metric->value[row];
    }
    out->metric_update = updates;
    out->metric_value = values;
    out->metric_count = count;
    return STATUS_OK;
}

/* ---- what is known ---- */

static void read_total(struct fit_known *known, const struct log *log) {
    const struct log_column *total = log_column_of(log, LOG_TOTAL_STEPS);
    known->run_steps = log->max_steps;
    for (size_t row = 0; total != NULL && known->run_steps == 0 && row < log->rows; row++)
        if (log_has(total, row) && total->value[row] >= 1.0 && total->value[row] < 0x1p53)
            known->run_steps = (uint64_t)total->value[row];
}

/* Trainers log an evaluation or a summary when the run ends, behind the last row with an LR. */
static void read_end(struct fit_known *known, const struct log *log) {
    for (size_t row = 0; row < log->rows; row++)
        if (log->step[row] > 0 && (uint64_t)log->step[row] > known->end)
            known->end = (uint64_t)log->step[row];
}

/* ---- skipped updates ---- */

/* Parts whose beginnings are looked up: a log that is out of order has one at every row. */
#define PARTS 64

/* Returns the row that comes before this one in the order of updates: where a part begins, the run
 * went on from a checkpoint behind it. SIZE_MAX: there is none. */
static size_t row_before(const struct log *log, size_t row) {
    size_t before = row;
    if (row == 0 || log->part[row] > PARTS) return SIZE_MAX;
    if (log->part[row] == log->part[row - 1]) return row - 1;
    while (before-- > 0)
        if (log->step[before] < log->step[row]) return before;
    return SIZE_MAX;
}

/* Returns how many updates were skipped between the row before and this one; NaN: a running count
 * that a resume set back does not tell. */
static double skipped_at(const struct log *log, const struct log_column *column, size_t row) {
    if (!log_has(column, row)) return 0.0;
    if (!column->cumulative) return column->value[row];
    const size_t before = row_before(log, row);
    const double count = before != SIZE_MAX && log_has(column, before)
                             ? column->value[row] - column->value[before]
                             : column->value[row];
    return count < 0.0 ? real_nan_f64() : count;
}

enum status fit_skipped_from_log(struct fit_known *known, const struct log *log,
                                 struct arena *arena, size_t *out_count) {
    const struct log_column *column = log_column_of(log, LOG_SKIPPED);
    const uint64_t last = known->request.steps > 0 ? known->request.steps : known->run_steps;
    uint64_t *updates;
    *out_count = 0;
    if (column == NULL || log->step_guessed || known->request.skipped_count > 0) return STATUS_OK;
    TRY(arena_take(arena, log->rows, sizeof *updates, "skipped updates", &updates));
    for (size_t row = 0; row < log->rows; row++) {
        const int64_t before = row > 0 ? log->step[row - 1] : 0;
        if (log->step[row] != before + 1) { /* the log shows every n-th update, or a resume */
            *out_count = 0;
            return STATUS_OK;
        }
        if (last > 0 && (uint64_t)log->step[row] > last) break;
        if (skipped_at(log, column, row) == 1.0) updates[(*out_count)++] = (uint64_t)log->step[row];
    }
    known->request.skipped = updates;
    known->request.skipped_count = *out_count;
    return STATUS_OK;
}

/* Takes the number of skipped updates from its own column. Where lines between the rows were
 * counted, several ranks may have printed them, so they show that there was one at least. */
static void read_counts(const struct log *log, const struct log_column *column, uint32_t *least,
                        uint32_t *most) {
    const int lines = strcmp(column->source, LOG_SKIP_LINES) == 0;
    for (size_t row = 0; row < log->rows; row++) {
        const double count = skipped_at(log, column, row);
        if (!log_has(column, row) || !(count >= 0.0 && count < 0x1p31)) continue;
        least[row] = lines ? count > 0.0 : (uint32_t)count;
        if (!lines) most[row] = (uint32_t)count;
    }
}

/* A gradient norm that is not finite is that of a skipped update. A loss scale of 1 throughout is
 * that of a training without a scaler, in which nothing is skipped but for such a norm, and so is a
 * log that says bf16. */
static void read_signs(const struct log *log, uint32_t *least, uint32_t *most) {
    const struct log_column *norm = log_column_of(log, LOG_GRAD_NORM);
    const struct log_column *scale = log_column_of(log, LOG_LOSS_SCALE);
    size_t ones = 0;
    for (size_t row = 0; row < log->rows; row++) {
        least[row] = norm != NULL && log_has(norm, row) && !real_finite_f64(norm->value[row]);
        ones += scale != NULL && log_has(scale, row) && scale->value[row] == 1.0;
    }
    for (size_t row = 0; (ones == log->rows || log->bf16) && row < log->rows; row++)
        most[row] = least[row];
}

static int is_quiet(const struct log *log) {
    const struct log_column *norm = log_column_of(log, LOG_GRAD_NORM);
    if (norm == NULL) return 0;
    for (size_t row = 0; row < log->rows; row++)
        if (log->step[row] != (int64_t)row + 1 || !log_has(norm, row) ||
            !real_finite_f64(norm->value[row]))
            return 0;
    return 1;
}

/* Marks the rows at which the loss scale fell, and returns how many. Which update was skipped it
 * does not tell: some print the scale before the update, some behind it. */
static uint64_t falls_of_scale(const struct log *log, uint32_t *fell) {
    const struct log_column *scale = log_column_of(log, LOG_LOSS_SCALE);
    uint64_t falls = 0;
    for (size_t row = 1; scale != NULL && row < log->rows; row++) {
        fell[row] =
            log->part[row] == log->part[row - 1] && scale->value[row] < scale->value[row - 1];
        falls += fell[row];
    }
    return falls;
}

/* Returns how many updates lie between the row before and this one: UINT32_MAX where that cannot be
 * told, as where a part begins. */
static uint32_t updates_since(const struct log *log, size_t row) {
    const int64_t before = row > 0 ? log->step[row - 1] : 0;
    if (row > 0 && log->part[row] != log->part[row - 1]) return UINT32_MAX;
    if (log->step[row] < before || log->step[row] - before >= UINT32_MAX) return UINT32_MAX;
    return (uint32_t)(log->step[row] - before);
}

/* Writes how many updates can have been skipped since the row before. A skipped update has a norm
 * that is not finite, or, under DeepSpeed, prints that of the update before again: so where a
 * finite norm is another one than the last, some update in between was made. Returns whether any
 * norm says so. */
static int read_room(const struct log *log, uint32_t *room) {
    const struct log_column *norm = log_column_of(log, LOG_GRAD_NORM);
    double last = 0.0;
    int limited = 0;
    for (size_t row = 0; norm != NULL && row < log->rows; row++) {
        room[row] = updates_since(log, row);
        if (!log_has(norm, row) || !real_finite_f64(norm->value[row])) continue;
        if (norm->value[row] != last && room[row] > 0 && room[row] < UINT32_MAX) {
            room[row]--;
            limited = 1;
        }
        last = norm->value[row];
    }
    return limited;
}

static enum status read_skips(struct fit_known *known, const struct log *log, struct arena *arena) {
    const struct log_column *column = log_column_of(log, LOG_SKIPPED);
    uint32_t *least, *most, *fell, *room;
    if (log->step_guessed) return STATUS_OK;
    if (column == NULL && log_column_of(log, LOG_GRAD_NORM) == NULL &&
        log_column_of(log, LOG_LOSS_SCALE) == NULL && !log->bf16)
        return STATUS_OK; /* nothing tells, and a number for every row would say so */
    TRY(arena_take(arena, log->rows, sizeof *least, "skipped updates", &least));
    TRY(arena_take(arena, log->rows, sizeof *most, "skipped updates", &most));
    for (size_t row = 0; row < log->rows; row++)
        most[row] = UINT32_MAX;
    if (column != NULL) {
        read_counts(log, column, least, most);
        known->skips.counted =
            strcmp(column->source, LOG_SKIP_LINES) == 0 ? FIT_COUNTED_LINES : FIT_COUNTED_EXACTLY;
    } else {
        read_signs(log, least, most);
    }
    int limited = 0;
    known->skips.quiet = is_quiet(log);
    for (size_t row = 0; row < log->rows; row++) {
        known->skips.shown += least[row];
        limited |= most[row] < UINT32_MAX;
    }
    if (known->skips.shown > 0 || limited) {
        known->skips.least = least;
        known->skips.most = most;
        known->skips.part = log->part;
    }
    if (column != NULL) return STATUS_OK;
    if (known->skips.shown == 0 && log_column_of(log, LOG_LOSS_SCALE) != NULL) {
        TRY(arena_take(arena, log->rows, sizeof *fell, "skipped updates", &fell));
        known->skips.shown = falls_of_scale(log, fell);
        if (known->skips.shown > 0) {
            /* Something was skipped and no norm shows it, so they are not those of the updates. */
            known->skips.fell = fell;
            known->skips.part = log->part;
            return STATUS_OK;
        }
    }
    if (log_column_of(log, LOG_GRAD_NORM) == NULL) return STATUS_OK;
    TRY(arena_take(arena, log->rows, sizeof *room, "skipped updates", &room));
    if (!read_room(log, room)) return STATUS_OK;
    known->skips.room = room;
    known->skips.part = log->part;
    return STATUS_OK;
}

/* Returns how many updates an epoch has, from a column that counts parts of it, or from two epochs
 * that begin in rows of a column that counts whole ones; 0: it cannot be read. */
static double updates_of_epoch(const struct log *log) {
    const struct log_column *epoch = log_column_of(log, LOG_EPOCH);
    double before = real_nan_f64(), began = 0.0, updates = 0.0;
    for (size_t row = 0; epoch != NULL && row < log->rows; row++) {
        const double at = epoch->value[row], update = (double)log->step[row];
        if (!log_has(epoch, row) || !(at >= 0.0) || update < 1.0) continue;
        if (at > 0.0 && at != fit_round(at)) {
            updates = update / at;
            continue;
        }
        if (at == before + 1.0) {
            if (began > 0.0 && updates == 0.0) updates = update - began;
            began = update;
        }
        before = at;
    }
    return updates;
}

/* Returns the most updates that rows of one epoch show, by a column that counts whole ones. An
 * epoch has as many or more, also where no second one ends in the log. */
static double least_of_epoch(const struct log *log) {
    const struct log_column *epoch = log_column_of(log, LOG_EPOCH);
    double before = real_nan_f64(), first = 0.0, last = 0.0, most = 0.0;
    for (size_t row = 0; epoch != NULL && row < log->rows; row++) {
        const double at = epoch->value[row], update = (double)log->step[row];
        if (!log_has(epoch, row) || update < 1.0) continue;
        if (at != fit_round(at)) return 0.0;
        if (at != before || update < last) first = update;
        if (update - first + 1.0 > most) most = update - first + 1.0;
        before = at;
        last = update;
    }
    return most;
}

/* Tells whether an evaluation stands where no epoch ends: a hundredth of an epoch is more than the
 * two digits leave to which transformers rounds it. */
static int evaluates_within_epoch(const struct log *log) {
    const struct log_column *eval = log_column_of(log, LOG_EVAL_LOSS),
                            *epoch = log_column_of(log, LOG_EPOCH);
    if (eval == NULL || epoch == NULL) return 0;
    for (size_t row = 0; row < log->rows; row++) {
        if (!log_has(eval, row) || !log_has(epoch, row)) continue;
        const double at = epoch->value[row];
        if (real_abs_f64(at - fit_round(at)) > 0.01) return 1;
    }
    return 0;
}

enum status fit_known_from_log(struct fit_known *known, const struct log *log,
                               struct arena *arena) {
    size_t count, kept = 0;
    const struct contract *list = contract_list(&count);
    const char *prefix = NULL;
    const char **names;
    read_total(known, log);
    if (!log->step_guessed) read_end(known, log);
    TRY(read_skips(known, log, arena));
    known->steps_guessed = log->step_guessed;
    TRY(fit_samples_from_log(known, log, arena));
    known->epoch_updates = updates_of_epoch(log);
    known->epoch_least = least_of_epoch(log);
    if (known->request.metric_count == 0) {
        TRY(fit_metric_from_log(log, NULL, arena, &known->request));
        known->evals_within_epoch = evaluates_within_epoch(log);
    }
    for (size_t i = 0; i < COUNT_OF(natives); i++)
        if (strcmp(natives[i].format, log->format) == 0) prefix = natives[i].prefix;
    if (prefix == NULL) return STATUS_OK;
    TRY(arena_take(arena, count + 1, sizeof *names, "contracts", &names));
    for (size_t i = 0; i < count; i++)
        if (strncmp(list[i].name, prefix, strlen(prefix)) == 0) names[kept++] = list[i].name;
    known->possible = names;
    known->logs_next = log->logs_next;
    known->logs_used = log->logs_used;
    return STATUS_OK;
}

int fit_is_of_later_release(const struct fit_known *known, const struct contract *contract) {
    return known->logs_next && contract->logged != CONTRACT_LOGGED_NEXT;
}

int fit_is_of_earlier_release(const struct fit_known *known, const struct contract *contract) {
    return known->logs_used && contract->logged == CONTRACT_LOGGED_NEXT;
}

int fit_is_native(const struct fit_known *known, const struct contract *contract) {
    if (known->possible == NULL) return 1;
    if ((fit_is_of_later_release(known, contract) || fit_is_of_earlier_release(known, contract)) &&
        contract != known->request.contract && contract != known->expected)
        return 0;
    for (size_t i = 0; known->possible[i] != NULL; i++)
        if (strcmp(known->possible[i], contract->name) == 0) return 1;
    return 0;
}

/* A fiftieth is more than the two digits leave to which transformers rounds an epoch. */
int fit_stairs_are_epochs(const struct fit *fit, const struct fit_known *known) {
    const double stair = (double)fit->epoch_updates;
    if (known->request.updates_per_epoch > 0 || known->request.dataset > 0) return 1;
    if (known->epoch_updates > 0.0)
        return real_abs_f64(stair - known->epoch_updates) <= 0.02 * stair + 0.5;
    /* One update more, where a row shows the LR of the next one. */
    if (stair + 1.0 < known->epoch_least) return 0;
    if (known->expected != NULL) return strncmp(known->expected->name, "lightning", 9) == 0;
    if (known->possible == NULL) return known->request.contract != NULL;
    return fit_is_native(known, fit->contract);
}

void fit_keep_native(const struct fit_known *known, struct fit_set *set) {
    size_t natives_found = 0;
    while (natives_found < set->count && fit_is_native(known, set->fits[natives_found].contract))
        natives_found++;
    if (natives_found == 0 || natives_found == set->count) return;
    set->foreign = set->count - natives_found;
    set->count = natives_found;
}
