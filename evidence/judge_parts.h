/* SPDX-License-Identifier: Apache-2.0
 * What the parts of the judge share: the trace that is judged, and which part decides what.
 *
 * Private to evidence/judge*.c. The parts run in the order in which they stand below. Invariant:
 * each reads the trace and the fields of the parts before it, and writes fields of its own. */
#ifndef TWINSTEP_EVIDENCE_JUDGE_PARTS_H
#define TWINSTEP_EVIDENCE_JUDGE_PARTS_H

#include "determinism/orders.h"
#include "evidence/judge.h"

struct judging {
    const struct trace_image *image;
    struct arena *arena;
    const struct trace_run *run[2];
    struct judgement *out;
};

/* The text of an attribute; "" when the trace has no such attribute. */
const char *judging_text(const struct judging *judging, const char *path, const char *name);

/* The number in an attribute. STATUS_INPUT: it is missing, or no number. */
TWINSTEP_MUST_USE enum status judging_number(const struct judging *judging, const char *path,
                                             const char *name, double *out);

/* The same of a whole number from 0 to `most`. STATUS_INPUT: it is missing, or not such a one. */
TWINSTEP_MUST_USE enum status judging_count(const struct judging *judging, const char *path,
                                            const char *name, uint32_t most, uint32_t *out);

/* The array `path`; NULL when the trace has none. STATUS_INPUT: it has not exactly `rows` x
 * `columns` values. */
TWINSTEP_MUST_USE enum status judging_array(const struct judging *judging, const char *path,
                                            uint64_t rows, uint64_t columns,
                                            const struct trace_array **out);

/* The verdict, from what repeats show: judge_floor.c. */
TWINSTEP_MUST_USE enum status judge_floor(struct judging *judging);

/* Says of arms that differ exactly whether their trainings do: judge_same.c. */
void judge_same(struct judging *judging);

/* Whether nothing in which the arms differ can reach a weight, in whatever update: it is in what
 * they report alone. judge_reports.c. */
int judge_only_reported(const struct judging *judging);

/* Where the replicas of each arm part: judge_replicas.c. */
TWINSTEP_MUST_USE enum status judge_replicas(struct judging *judging);

/* Whether the verdict is what the scenario expects: judge_expected.c. */
TWINSTEP_MUST_USE enum status judge_expectation(struct judging *judging);

/* How the distance of the arms grew, and that of the perturbed run: judge_growth.c. */
TWINSTEP_MUST_USE enum status judge_growth(struct judging *judging);

/* Whether what one ulp makes explains the distance: of judge_growth.c, after the causes. */
void judge_saturation(struct judging *judging);

/* The values of the hybrids that were trained. */
struct hybrid_table {
    uint32_t factors, count;
    const uint32_t *masks;  /* ascending; NULL: value i is of mask i */
    const double *distance; /* |theta_S - A| at the end */
    const double *way;      /* <d_S, d_N> / D at the end; NULL: the trace holds none */
    const double *moved;    /* the first update at which weights differ; 0: none */
    struct orders orders;   /* sampled; count 0: every hybrid was trained */
};

/* Reads it. out->count is 0 where the trace holds no finished hybrids. STATUS_INPUT: its arrays do
 * not fit together. judge_hybrids.c. */
TWINSTEP_MUST_USE enum status judge_hybrids(struct judging *judging, struct hybrid_table *out);

/* The value of the hybrid `mask`; NaN: it was not trained, or `values` is NULL. */
double hybrid_value(const struct hybrid_table *table, const double *values, uint32_t mask);

/* The causes by other measures, and shares at earlier updates; order[i] is the factor of causes[i].
 * Every hybrid was trained. judge_measures.c. */
TWINSTEP_MUST_USE enum status judge_measures(struct judging *judging, const uint32_t *order);

/* What mixtures of causes do where the arms lie inside the floor, in the order of the factors, and
 * the word that this bears: judge_mixtures.c. */
TWINSTEP_MUST_USE enum status judge_mixtures(struct judging *judging);

/* Whether the causes are all of the difference: judge_closure.c. */
TWINSTEP_MUST_USE enum status judge_closure(struct judging *judging);

/* The causes and their shares; calls the three before: judge_shares.c. */
TWINSTEP_MUST_USE enum status judge_causes(struct judging *judging);

/* Whether the test arm got worse on fixed rows: judge_eval.c. */
TWINSTEP_MUST_USE enum status judge_eval(struct judging *judging);

/* The verdict in words, from all other fields: judge_rows.c. STATUS_MEMORY. */
TWINSTEP_MUST_USE enum status judge_rows(struct arena *arena, struct judgement *out);

#endif
