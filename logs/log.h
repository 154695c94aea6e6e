/* SPDX-License-Identifier: Apache-2.0
 * The log model: what a training printed, as columns over rows, each value with its print quantum.
 *
 * Knows no format (readers fill it) and judges nothing (forensics/ does). A row is what the log
 * printed at one update; rows stand in the order of the file, so a resumed run shows its repeats.
 *
 * Quantum q of a value v: the distance of neighbouring printable values there. The number that was
 * printed lies in [v - q/2, v + q/2]. q = 0: v is the double itself (a shortest repr, HDF5 f64).
 * q = NaN: the row has no value in this column (v is NaN, too). A printed NaN or infinity has q =
 * 0. Invariant: equal within q is never "equal"; whoever compares uses log_compare. */
#ifndef TWINSTEP_LOGS_LOG_H
#define TWINSTEP_LOGS_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

/* Our names. Everything else is LOG_OTHER and keeps its source name only. */
enum log_name {
    LOG_OTHER = 0,
    LOG_LOSS,
    LOG_LR_LOGGED,  /* "lr_logged": the LR column of a foreign log; whether applied or next is what
                       the contract says */
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
    LOG_TOKENS,  /* of this update, or cumulative: log_column.cumulative */
    LOG_SAMPLES, /* cumulative (Megatron: consumed samples) */
    LOG_EPOCH,
    LOG_LOSS_SCALE,
    LOG_SKIPPED, /* cumulative number, or 1 in a skipped row */
    LOG_PARAM_NORM,
    LOG_GLOBAL_BATCH,
    LOG_TOTAL_STEPS, /* printed total of updates */
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
    uint8_t cumulative; /* LOG_TOKENS, LOG_SAMPLES, LOG_SKIPPED: running total */
    uint8_t windowed;   /* mean since the last row (HF: loss) */
    const char *source; /* as the log spells it: "rewards/chosen" */
    double *value;      /* (rows) */
    float *quantum;     /* (rows); rounded up */
};

struct log {
    const char *path;
    const char *format; /* "hf-trainer-state", "megatron", ...; what logs/format.h lists */
    const char *title;  /* "Hugging Face trainer_state.json" */
    size_t rows;
    int64_t *step;  /* (rows) update, 1-based, whatever the source counts from; 0: unknown */
    uint32_t *line; /* (rows) line in the source, 0: has none */
    uint32_t *part; /* (rows) file of a run of several files, or segment after a resume: 0, 1, .. */
    struct log_column *columns;
    size_t column_count;
    int64_t step_base;        /* what the source called update 1 (0 for llm.c's main.log) */
    const char *step_name;    /* for export; NULL: "step" */
    int step_guessed;         /* 1: rows were numbered by us (HF console lines print no step) */
    uint64_t max_steps;       /* the source's own total, 0: not said */
    const char *const *notes; /* what a reader should know: repeated rows, sampled history, ... */
    size_t note_count;
};

/* First column of that name; NULL when there is none. */
const struct log_column *log_column_of(const struct log *log, enum log_name name);
/* By the source's spelling. */
const struct log_column *log_column_by_source(const struct log *log, const char *source);

static inline int log_has(const struct log_column *column, size_t row) {
    return column->quantum[row] == column->quantum[row];
}

enum log_order {
    LOG_EQUAL = 0, /* both exact (q = 0) and equal, or both NaN */
    LOG_WITHIN,    /* differ by no more than half of each quantum: equal within the precision */
    LOG_DIFFERENT,
    LOG_MISSING /* one of them or both are absent */
};
/* q: quanta as defined above. */
enum log_order log_compare(double a, double qa, double b, double qb);

#endif
