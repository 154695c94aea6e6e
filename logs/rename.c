/* SPDX-License-Identifier: Apache-2.0
 * The table of names, from the tools' sources: TRL's DPOTrainer over transformers' Trainer,
 * open-instruct's dpo.py and dpo_tune_cache.py, torchtune's full_dpo recipes.
 *
 * Tokens are not in it, since each tool counts them differently. */
#include "logs/rename.h"

#include <string.h>

#include "base/macro.h"
#include "base/real.h"

enum { TRL = 0, OPEN_INSTRUCT, TORCHTUNE, NAMINGS };

static const struct log_naming namings[NAMINGS + 1] = {
    [TRL] = {"trl", "DPOTrainer's, and those of transformers' Trainer"},
    [OPEN_INSTRUCT] = {"open-instruct", "those of dpo.py and dpo_tune_cache.py"},
    [TORCHTUNE] = {"torchtune", "those of its DPO recipes"},
    [NAMINGS] = {NULL, NULL},
};

static const char *const step_names[NAMINGS] = {"step", "training_step", "step"};

/* NULL: the tool has no name for it. */
static const char *const names[LOG_NAMES][NAMINGS] = {
    [LOG_LOSS] = {"loss", "train_loss", "loss"},
    [LOG_LR_LOGGED] = {"learning_rate", "learning_rate", "lr"},
    [LOG_GRAD_NORM] = {"grad_norm", "optim/total grad norm", "grad_norm"},
    [LOG_LOGP_CHOSEN] = {"logps/chosen", "logps/chosen", "log_probs/chosen"},
    [LOG_LOGP_REJECTED] = {"logps/rejected", "logps/rejected", "log_probs/rejected"},
    [LOG_REWARD_CHOSEN] = {"rewards/chosen", "rewards/chosen", "rewards/chosen"},
    [LOG_REWARD_REJECTED] = {"rewards/rejected", "rewards/rejected", "rewards/rejected"},
    [LOG_REWARD_MARGIN] = {"rewards/margins", "rewards/margin", "rewards/margins"},
    [LOG_REWARD_ACCURACY] = {"rewards/accuracies", "rewards/accuracy", "rewards/accuracies"},
    [LOG_LOGITS_CHOSEN] = {"logits/chosen", NULL, "logits/chosen"},
    [LOG_LOGITS_REJECTED] = {"logits/rejected", NULL, "logits/rejected"},
    [LOG_EPOCH] = {"epoch", "epoch", NULL},
};

const struct log_naming *log_namings(void) {
    return namings;
}

static enum status find(const char *naming, int *out) {
    for (*out = 0; *out < NAMINGS; ++*out)
        if (strcmp(namings[*out].name, naming) == 0) return STATUS_OK;
    FAIL(STATUS_INPUT, "expected names of trl, open-instruct or torchtune, got \"%s\"", naming);
}

static enum status check_unique(const struct log *log, const char *naming) {
    for (size_t a = 0; a < log->column_count; a++)
        for (size_t b = 0; b < a; b++)
            if (strcmp(log->columns[a].source, log->columns[b].source) == 0)
                FAIL(STATUS_INPUT,
                     "%s: expected one column to be \"%s\" in the names of %s, got two", log->path,
                     log->columns[a].source, naming);
    return STATUS_OK;
}

static int is_exact(const struct log_column *column, size_t rows) {
    for (size_t i = 0; i < rows; i++)
        if (log_has(column, i) && column->quantum[i] != 0.0f) return 0;
    return 1;
}

static size_t rows_with_both(const struct log_column *a, const struct log_column *b, size_t rows) {
    size_t count = 0;
    for (size_t i = 0; i < rows; i++)
        count += log_has(a, i) && log_has(b, i);
    return count;
}

/* Adds rewards/average, (chosen + rejected) / 2 of the two means. It needs exact rewards, because
 * the mean of two rounded numbers has no quantum that a text can carry. */
static enum status add_average(struct log *log, struct arena *arena) {
    const struct log_column *chosen = log_column_of(log, LOG_REWARD_CHOSEN);
    const struct log_column *rejected = log_column_of(log, LOG_REWARD_REJECTED);
    struct log_column *average = &log->columns[log->column_count];
    if (chosen == NULL || rejected == NULL || !is_exact(chosen, log->rows) ||
        !is_exact(rejected, log->rows) || rows_with_both(chosen, rejected, log->rows) == 0 ||
        log_column_by_source(log, "rewards/average") != NULL)
        return STATUS_OK;
    *average = (struct log_column){.source = "rewards/average", .windowed = chosen->windowed};
    TRY(arena_take(arena, log->rows, sizeof *average->value, "column", &average->value));
    TRY(arena_take(arena, log->rows, sizeof *average->quantum, "column", &average->quantum));
    for (size_t i = 0; i < log->rows; i++) {
        const int has = log_has(chosen, i) && log_has(rejected, i);
        average->quantum[i] = has ? 0.0f : real_nan_f32();
        average->value[i] = has ? (chosen->value[i] + rejected->value[i]) / 2 : real_nan_f64();
    }
    log->column_count++;
    return STATUS_OK;
}

enum status log_rename(const struct log *log, const char *naming, struct arena *arena,
                       struct log *out) {
    int which;
    TRY(find(naming, &which));
    *out = *log;
    out->step_name = step_names[which];
    TRY(arena_take(arena, log->column_count + 1, sizeof *out->columns, "columns", &out->columns));
    for (size_t c = 0; c < log->column_count; c++) {
        struct log_column *column = &out->columns[c];
        *column = log->columns[c];
        if (names[column->name][which] != NULL) column->source = names[column->name][which];
    }
    if (which == OPEN_INSTRUCT) TRY(add_average(out, arena));
    return check_unique(out, naming);
}
