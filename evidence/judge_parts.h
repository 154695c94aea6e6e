/* SPDX-License-Identifier: Apache-2.0
 * What the parts of the judge share: the evidence of one trace, and who decides what.
 *
 * Private to trainer/judge*.c. Order: first difference, floor, shares, expectation; each reads the
 * image and writes its own fields of the judgement. */
#ifndef TWINSTEP_EVIDENCE_JUDGE_PARTS_H
#define TWINSTEP_EVIDENCE_JUDGE_PARTS_H

#include "evidence/judge.h"

struct judging {
    const struct trace_image *image;
    struct arena *arena;
    const struct trace_run *run[2];
    struct judgement *out;
};

/* Text of an attribute; "" when the trace has none. */
const char *judging_text(const struct judging *judging, const char *path, const char *name);

/* Its number. STATUS_INPUT: missing, or no number. */
TWINSTEP_MUST_USE enum status judging_number(const struct judging *judging, const char *path,
                                             const char *name, double *out);

/* A whole number from 0 to `most`. */
TWINSTEP_MUST_USE enum status judging_count(const struct judging *judging, const char *path,
                                            const char *name, uint32_t most, uint32_t *out);

/* The array `path` with exactly `rows` x `columns` values; NULL when the trace has none. */
TWINSTEP_MUST_USE enum status judging_array(const struct judging *judging, const char *path,
                                            uint64_t rows, uint64_t columns,
                                            const struct trace_array **out);

/* Step, phase and tensor of the first difference: judge_first.c. */
void judge_first(struct judging *judging);

/* Who drew other random words, where the arms differ at all: judge_first.c. */
TWINSTEP_MUST_USE enum status judge_rng(struct judging *judging);

/* The verdict, from what repeats show: judge_floor.c. */
TWINSTEP_MUST_USE enum status judge_floor(struct judging *judging);

/* How the distance grew, and a twin's: judge_growth.c. */
TWINSTEP_MUST_USE enum status judge_growth(struct judging *judging);

/* Shares by other measures and at earlier updates; order[i] is the factor of causes[i]:
 * judge_measures.c. */
TWINSTEP_MUST_USE enum status judge_measures(struct judging *judging, const uint32_t *order);

/* Whether causes are all of the difference: judge_closure.c. */
TWINSTEP_MUST_USE enum status judge_closure(struct judging *judging);

/* Causes, their shares: judge_shares.c. */
TWINSTEP_MUST_USE enum status judge_causes(struct judging *judging);

/* The verdict in words, from all other fields: judge_rows.c. STATUS_MEMORY. */
TWINSTEP_MUST_USE enum status judge_rows(struct arena *arena, struct judgement *out);

#endif
