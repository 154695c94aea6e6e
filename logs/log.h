/* SPDX-License-Identifier: Apache-2.0
 * The log model: what a training printed, as columns over rows, each value with its print quantum.
 *
 * This file knows no format (readers fill the model) and judges nothing (forensics/ does that). A
 * row is what the log printed at one update. Rows stand in the order of the file, so the log of a
 * resumed run shows the repeated updates.
 *
 * The quantum q of a value v is the distance between neighbouring printable values at v. The number
 * that the program held lies in [v - q/2, v + q/2]. q = 0 says that v is that number to the last
 * bit (a shortest repr, an HDF5 double). q = NaN says that the row has no value in this column; v
 * is NaN as well. A printed NaN or infinity has q = 0. Invariant: two values that agree within q
 * are never called "equal"; whoever compares uses log_compare. */
#ifndef TWINSTEP_LOGS_LOG_H
#define TWINSTEP_LOGS_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

/* Our own names of columns. A column that has none of them is LOG_OTHER and keeps only the name
 * that the source gave it. */
enum log_name {
    LOG_OTHER = 0,
    LOG_LOSS,
    LOG_LR_LOGGED,  /* the LR column of a foreign log; the contract (sched/contract.h) says whether
                       it was applied in this update or in the next */
    LOG_LR_APPLIED, /* only from our own traces */
    LOG_GRAD_NORM,
    LOG_LOGP_CHOSEN,
    LOG_LOGP_REJECTED,
    LOG_REWARD_CHOSEN,
    LOG_REWARD_REJECTED,
    LOG_REWARD_MARGIN,
    LOG_REWARD_ACCURACY,
    LOG_LOGITS_CHOSEN,
    LOG_LOGITS_REJECTED,
    LOG_TOKENS,  /* of this update alone, or a running total: log_column.cumulative says which */
    LOG_SAMPLES, /* a running total (Megatron's consumed samples) */
    LOG_EPOCH,
    LOG_LOSS_SCALE,
    LOG_SKIPPED, /* a running total, or how many updates were skipped since the row before. Where
                    only lines between the rows say so ("OVERFLOW! .. Skipping step"), it is their
                    count: the column LOG_SKIP_LINES, with a value in every row. A NaN or infinite
                    LOG_GRAD_NORM and a falling LOG_LOSS_SCALE are evidence of a skip, too. */
    LOG_PARAM_NORM,
    LOG_GLOBAL_BATCH,
    LOG_TOTAL_STEPS, /* the total of updates as the log prints it */
    LOG_EVAL_LOSS,
    LOG_NAMES
};

struct log_name_row {
    const char *name; /* "loss", "lr_logged", ... */
    const char *units;
    const char *long_name;
};
extern const struct log_name_row log_names[LOG_NAMES];

struct log_column {
    int32_t name;       /* enum log_name */
    uint8_t cumulative; /* 1: a running total (possible for LOG_TOKENS, LOG_SAMPLES, LOG_SKIPPED) */
    uint8_t windowed;   /* 1: a mean over the updates since the last row (as Hugging Face's loss) */
    const char *source; /* the name as the log spells it: "rewards/chosen" */
    double *value;      /* (rows) */
    /* (rows); rounded up to float, so that it is never finer than what was printed. */
    float *quantum;
};

struct log {
    const char *path;
    const char *format; /* name of the reader: "hf-trainer-state", "megatron", ... (log_formats
                           lists them) */
    const char *title;  /* "Hugging Face trainer_state.json" */
    size_t rows;
    /* (rows) the update, counted from 1 whatever the source counts from; 0: unknown. */
    int64_t *step;
    uint32_t *line; /* (rows) line in the source; 0: the source has no lines */
    uint32_t *part; /* (rows) number of the file in a run of several, or of the segment after a
                       resume: 0, 1, .. */
    struct log_column *columns;
    size_t column_count;
    int64_t step_base; /* what the source called update 1 (0 for llm.c's main.log, which counts from
                          0) */
    const char *step_name; /* what an export calls the step; NULL: "step" */
    int step_guessed; /* 1: the source prints no steps (Hugging Face's console), so we numbered the
                         rows */
    int base_open;    /* 1: neither the format nor an option nor a step 0 says what it calls update
                         1, so it was taken as counted from 1 */
    int by_epochs;    /* 1: it counts steps in each epoch anew, and no row says how many there are,
                         so we numbered the rows */
    int bf16;         /* 1: the source says that it trained in bf16, so without a loss scaler */
    int blank_loss;   /* 1: it names the loss, and no row has a number there */
    int logs_next;    /* 1: by its own fields the release that wrote it logs the LR of the next
                         update */
    int logs_used;    /* 1: by its own numbers the release that wrote it logs the LR that was used
                       */
    uint64_t max_steps; /* the total of updates as the source says it; 0: it does not */
    /* Remarks for whoever reads the log: repeated rows, a sampled history, ... */
    const char *const *notes;
    size_t note_count;
};

/* Source name of the column that counts lines between the rows. It is LOG_OTHER where the log
 * prints a count itself. */
#define LOG_SKIP_LINES "skip_lines"

/* Returns the first column that has that name of ours, or NULL when there is none. */
const struct log_column *log_column_of(const struct log *log, enum log_name name);
/* Returns the column that the source spells exactly so, or NULL. */
const struct log_column *log_column_by_source(const struct log *log, const char *source);

static inline int log_has(const struct log_column *column, size_t row) {
    return column->quantum[row] == column->quantum[row];
}

/* How many samples skipped updates consumed, from the first row of a part to this row: the number
 * lies in [least, most]. A schedule that counts samples and holds on a skip (Megatron's) has
 * counted the row's LOG_SAMPLES less this, and less what was skipped before the part. */
struct log_lag {
    double least, most;
};
/* Tells whether the rows lie `every` updates apart as `logging_steps` lays them: at its multiples,
 * and at update 1 (`logging_first_step`). */
int log_is_every(const struct log *log, uint64_t every);

/* Sets *out to one lag per row; to NULL when the log has no running total of samples or does not
 * say what was skipped. A row without either has the lag of the row before. least is below most
 * only where updates were skipped while the batch grew. */
TWINSTEP_MUST_USE enum status log_lag_of(const struct log *log, struct arena *arena,
                                         struct log_lag **out);

enum log_order {
    LOG_EQUAL = 0, /* both are exact (q = 0) and equal, or both are NaN */
    LOG_WITHIN,    /* they differ by no more than half of each quantum, so the printed digits cannot
                      tell them apart */
    LOG_DIFFERENT,
    LOG_MISSING /* one of them is absent, or both are */
};
/* Compares two printed values; qa and qb are their quanta as defined at the top of this file. An
 * infinite number is within no quantum of another one. */
enum log_order log_compare(double a, double qa, double b, double qb);

#endif
