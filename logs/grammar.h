/* SPDX-License-Identifier: Apache-2.0
 * Console formats whose rows are lines that say their step at the start: one walk over the lines,
 * the grammar of a format as its argument. Private to logs/.
 *
 * The walk opens, claims, leaves other ranks out, starts rows and notes what is cut; a grammar
 * looks at one line and keeps nothing between lines. */
#ifndef TWINSTEP_LOGS_GRAMMAR_H
#define TWINSTEP_LOGS_GRAMMAR_H

#include "logs/lines.h"

struct log_row {
    int64_t step;         /* as the format counts */
    uint64_t max_steps;   /* updates of the whole run; 0: the line does not say */
    struct log_span rest; /* the fields */
    int open;             /* as of struct log_line */
};

struct log_grammar {
    /* 0: no row. Fills step and rest, and max_steps (0 before the call) where it is said. */
    int (*head)(struct log_span line, struct log_row *out);
    /* Puts the values of `row` into the row at hand. */
    TWINSTEP_MUST_USE enum status (*fields)(struct log_build *build, const struct log_row *row);
    int marked; /* 1: `fields` takes a value only with the mark behind it, so never a cut one */
};

/* The first answer of `claim_line` that is not 0, as log_reader.claim gives it. */
int log_claim_lines(const struct log_source *source, int (*claim_line)(struct log_span line));

/* log_reader.read of a format that is a grammar. */
TWINSTEP_MUST_USE enum status log_read_rows(const struct log_source *source,
                                            struct log_build *build,
                                            const struct log_grammar *grammar);

#endif
