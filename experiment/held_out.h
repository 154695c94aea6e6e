/* SPDX-License-Identifier: Apache-2.0
 * The rows of eval.from: read as the baseline reads its own data, and compared with the rows that
 * the arms train on. For `run` and `check`; nothing is trained. */
#ifndef TWINSTEP_EXPERIMENT_HELD_OUT_H
#define TWINSTEP_EXPERIMENT_HELD_OUT_H

#include "data/dataset.h"
#include "scenarios/scenario.h"

struct held_out {
    struct dataset dataset;
    uint32_t *index;  /* (count) the rows' numbers in the data set, ascending */
    uint32_t count;   /* 0: eval.from is none */
    uint32_t seen;    /* rows with the same tokens and labels stand in an arm's training data */
    size_t seen_line; /* the line of the first of these; 0: there is none */
};

/* Where the rows are, "quiz.tsv, lines 41 to 56", and how many of them are `seen`: NULL for none.
 * Both texts live in `arena`. */
TWINSTEP_MUST_USE enum status held_out_words(const struct held_out *held_out, struct arena *arena,
                                             const char **out_rows, const char **out_seen);

/* At most so many rows that were trained on are measured, too. */
uint32_t held_out_trained(const struct scenario *scenario, const struct dataset *baseline);

/* Reads them. `datasets` are those of the arms. STATUS_INPUT: a bad row, no row is left, fewer than
 * eval.rows, or text where the training has ids; it names eval.from. */
TWINSTEP_MUST_USE enum status held_out_open(const struct scenario *scenario,
                                            const struct dataset *const datasets[2],
                                            struct arena *arena, struct held_out *out);

#endif
