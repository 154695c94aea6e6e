/* SPDX-License-Identifier: Apache-2.0
 * How the rows of a verdict are made, and the parts that make them.
 *
 * Private to evidence/judge_rows*.c. A part begins each of its rows with row_add and goes on in it
 * with row_put. No part looks at errors: the pen keeps the first one, and judge_rows returns it.
 * Invariant: parts read the judgement and the trace, and compute nothing that another part or a
 * writer would have to compute again. */
#ifndef TWINSTEP_EVIDENCE_JUDGE_ROWS_H
#define TWINSTEP_EVIDENCE_JUDGE_ROWS_H

#include "evidence/judge.h"

struct row_pen {
    struct arena *arena;
    struct judged_row *rows;
    uint32_t count;
    char *text; /* of the last row, which is still being written */
    size_t length, room;
    enum status status; /* of the first call that failed; all later calls do nothing */
};

/* Begins a row, whose label follows from its kind, with this text. */
void row_add(struct row_pen *pen, enum judged_row_kind kind, const char *format, ...)
    TWINSTEP_PRINTF(3, 4);

/* Adds text to the last row. A newline begins the row's next line; the last line has none. */
void row_put(struct row_pen *pen, const char *format, ...) TWINSTEP_PRINTF(2, 3);

/* judge_rows_head.c: the headline, which applied LR differs first, and what identical arms
 * report otherwise. */
void judge_row_headline(const struct judgement *judgement, struct row_pen *pen);
void judge_row_why(const struct judgement *judgement, struct row_pen *pen);
void judge_row_reported(const struct judgement *judgement, struct row_pen *pen);

/* judge_rows_count.c: what another step count of Adam did to an update. */
void judge_row_count(const struct judgement *judgement, struct row_pen *pen);

/* judge_rows_corruption.c: which bit flips in an arm. */
void judge_row_corruption(const struct judgement *judgement, struct row_pen *pen);

/* judge_replicas.c: where replicas part. */
void judge_row_replicas(const struct judgement *judgement, struct row_pen *pen);

/* judge_rows_floor.c: what the runs were computed on, and the floor of repeats. */
void judge_row_devices(const struct judgement *judgement, struct row_pen *pen);
void judge_row_products(const struct judgement *judgement, struct row_pen *pen);
void judge_row_arms(const struct judgement *judgement, struct row_pen *pen);
void judge_row_floor(const struct judgement *judgement, struct row_pen *pen);

/* judge_rows_mixtures.c: what mixtures do where the arms lie inside the floor; the first goes on in
 * the headline. */
void judge_put_mixtures(const struct judgement *judgement, struct row_pen *pen);
void judge_row_mixtures(const struct judgement *judgement, struct row_pen *pen);

/* judge_rows_eval.c: whether the test arm got worse on fixed rows. */
void judge_row_eval(const struct judgement *judgement, struct row_pen *pen);

/* judge_rows_shares.c: the parts of the causes, and whether they are all of the difference. */
void judge_row_shares(const struct judgement *judgement, struct row_pen *pen);
void judge_row_closure(const struct judgement *judgement, struct row_pen *pen);

/* judge_rows_causes.c: the causes over time, growth, and what was not tested. */
void judge_row_arm(const struct judgement *judgement, int arm, struct row_pen *pen);
void judge_row_measures(const struct judgement *judgement, struct row_pen *pen);
void judge_row_growth(const struct judgement *judgement, struct row_pen *pen);
void judge_row_untested(const struct judgement *judgement, struct row_pen *pen);

#endif
