/* SPDX-License-Identifier: Apache-2.0
 * What a trace holds about the arms' last weights on fixed rows (docs/EVAL.md): the arrays of
 * /eval, and their columns. The experiment writes them, evidence/judge_eval.c reads them back. */
#ifndef TWINSTEP_EVIDENCE_EVAL_SEEN_H
#define TWINSTEP_EVIDENCE_EVAL_SEEN_H

enum eval_column {
    EVAL_LOSS = 0,
    EVAL_MARGIN, /* this one and all below are NaN for sft */
    EVAL_ACCURACY,
    EVAL_LOGP_CHOSEN,
    EVAL_LOGP_REJECTED,
    EVAL_COLUMNS,             /* those that are measures */
    EVAL_TIES = EVAL_COLUMNS, /* pairs whose rewards are equal, which the accuracy counts as wrong;
                                 traces of older programs end before it */
    EVAL_VALUES
};

enum eval_set { EVAL_HELD_OUT = 0, EVAL_TRAINED, EVAL_SETS };

struct eval_paths {
    const char *end;   /* (runs, values) the last weights of each run; NaN: not measured */
    const char *start; /* (2, values) the arms before update 1 */
    const char *line;  /* (rows) lines in the source; NaN: no row */
};
extern const struct eval_paths eval_paths[EVAL_SETS];

#endif
