/* SPDX-License-Identifier: Apache-2.0
 * Two logs side by side: where they first differ, column by column, and what that order means.
 *
 * Columns are matched by name, rows by update. An update that a log has twice (a resume from an
 * older checkpoint) counts with its later row. Every comparison is log_compare: equal within what
 * was printed is never called equal. The printed LR is not the applied LR: the contracts that
 * explain both LR columns are set beside each other, too.
 * No noise floor is measured here: "differs" is not "wrong", unless a ratio or the LR says so.
 * The order and the ratios are those of docs/FORENSICS.md.
 * Invariant: a verdict rests on at least one pair of printed values, else it is untestable. */
#ifndef TWINSTEP_FORENSICS_COMPARE_H
#define TWINSTEP_FORENSICS_COMPARE_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/key.h"
#include "base/status.h"
#include "determinism/ledger.h"
#include "forensics/fit.h"
#include "logs/log.h"

enum compare_class {
    COMPARE_EQUAL = 0, /* every pair to the last bit of what was printed, both exact */
    COMPARE_WITHIN,    /* some pairs are equal only within the printed precision */
    COMPARE_DIFFERENT,
    COMPARE_ABSENT /* no pair: one log lacks the column, or no update is in both */
};
/* "equal", "equal within precision", "different", "not in both". */
const char *compare_class_name(enum compare_class class_of);

/* One column of one of the logs, ascending by update, each update once. */
struct compare_side {
    const struct log_column *column; /* NULL: not there */
    const struct series_point *points;
    size_t count;
    size_t repeated; /* rows that a later row of the same update replaced */
};

struct compare_column {
    int32_t name; /* enum log_name */
    struct compare_side side[2];
    int32_t class_of;
    size_t pairs, equal, within, different;
    size_t unlike;         /* updates whose windows (means since the last row) differ */
    uint64_t first_update; /* first different pair; 0: none */
    struct series_point first[2];
    double largest; /* relative difference, max |a-b| / max(|a|, |b|), over pairs */
    uint64_t largest_update;
    uint64_t from, to; /* first and last update in both */
    const char *why;   /* COMPARE_ABSENT: what is missing */
};

enum compare_factor {
    COMPARE_FACTOR_NONE = 0,
    COMPARE_FACTOR_WHOLE,   /* a = n b */
    COMPARE_FACTOR_INVERSE, /* a = b / n */
    COMPARE_FACTOR_ROOT,    /* a = sqrt(n) b */
    COMPARE_FACTOR_ROOT_INVERSE,
    COMPARE_FACTOR_TOKENS, /* a = tokens(k) b */
    COMPARE_FACTOR_TOKENS_INVERSE,
    COMPARE_FACTOR_CONSTANT /* a = factor b with any other constant */
};

struct compare_ratio {
    int32_t name;
    int32_t kind; /* enum compare_factor */
    uint64_t n;
    double factor;      /* a / b */
    size_t pairs, held; /* pairs looked at; pairs that have the ratio within precision or 0.5 % */
    int first_exact;    /* the first pair has it within its precision */
    const char *meaning;
    const char *bug; /* names of the catalogue */
};

enum compare_lr_state {
    COMPARE_LR_NONE = 0,  /* no LR column in one of the logs */
    COMPARE_LR_UNFITTED,  /* one column is explained by no contract (or not by the stated one) */
    COMPARE_LR_SAME,      /* applied LRs agree under every pair of explanations */
    COMPARE_LR_DIFFERENT, /* ... differ under every pair */
    COMPARE_LR_UNTESTABLE /* they agree under some and differ under others */
};

struct compare_lr {
    int32_t state;
    int32_t logged;           /* enum compare_class of the printed columns */
    const struct fit *fit[2]; /* of the example: the best pair, or a pair that differs */
    size_t fits[2];
    size_t agree, differ;  /* pairs of explanations */
    int64_t shift;         /* A's applied LR at k is B's at k + shift, for all k; else 0 */
    uint64_t first_update; /* of the example */
    double first[2];
    int stated; /* both contracts were given, not only fitted */
    const char *words;
};

struct compare_floor;

enum compare_verdict {
    COMPARE_VERDICT_EQUAL = 0,
    COMPARE_VERDICT_DIFFERS,
    COMPARE_VERDICT_UNTESTABLE
};
/* "equal-within-precision", "differs", "untestable". */
const char *compare_verdict_name(enum compare_verdict verdict);

struct compare_input {
    const struct log *log;
    const struct fit_set *fits;  /* of its LR column; NULL: not fitted */
    const char *contract;        /* stated by the user; NULL: fitted */
    const struct trace_run *run; /* the log is this run of a trace; NULL: it is another log */
};

struct compare_report {
    int32_t verdict;
    const char *why;                      /* of the verdict, one sentence */
    const struct compare_column *columns; /* those that either log has, in the order of log_names */
    size_t column_count;
    const uint32_t *order; /* indices of the different columns, by first difference, then by the
                              order of tests */
    size_t order_count;
    const struct compare_ratio *ratios;
    size_t ratio_count;
    struct compare_lr lr;
    struct ledger_difference rng; /* of two runs: who drew other random words */
    const char *rng_words;        /* the same as a sentence about A and B; "" nothing to tell */
    uint64_t root_update; /* of two runs: first update whose roots differ; 0: none, or no runs */
    uint64_t from, to;    /* updates that both logs have in some column */
    size_t repeated[2];   /* rows replaced by later ones */
    const char *meaning;  /* of the order of first differences */
    int32_t cause;        /* enum cause it points to; -1: none */
    const char *next;     /* what to try */
    const struct compare_floor *floor; /* compare_floor.h; NULL: none was given */
    /* How what two runs of traces ran on differs, and what the floor was measured on from A; filled
     * by who compares, NULL or "": nothing to tell. */
    const char *devices, *elsewhere;
};

/* input: two, A and B. Everything lives in `arena`. */
TWINSTEP_MUST_USE enum status compare_logs(const struct compare_input *input, struct arena *arena,
                                           struct compare_report *out);

#endif
