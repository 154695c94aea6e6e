/* SPDX-License-Identifier: Apache-2.0
 * Console formats whose rows are lines that say their step at the start. They share one walk over
 * the lines; what makes the format is a grammar, handed in as data. Private to logs/.
 *
 * The walk opens the source, claims it, leaves out what other ranks print, starts rows and notes
 * what is cut. A grammar looks at one line and keeps nothing between lines. */
#ifndef TWINSTEP_LOGS_GRAMMAR_H
#define TWINSTEP_LOGS_GRAMMAR_H

#include "logs/lines.h"

struct log_row {
    int64_t step;         /* the step as the format counts */
    uint64_t max_steps;   /* updates of the whole run; 0: the line does not say */
    struct log_span rest; /* the part of the line that holds the fields */
    int open;             /* as in struct log_line: the line may be cut */
};

struct log_grammar {
    /* Looks at the head of a line. Returns 0 when the line is no row. Otherwise it fills step and
     * rest, and max_steps (0 before the call) where the line says it. */
    int (*head)(struct log_span line, struct log_row *out);
    /* Puts the values of the fields of `row` into the row at hand. */
    TWINSTEP_MUST_USE enum status (*fields)(struct log_build *build, const struct log_row *row);
    int marked; /* 1: `fields` takes a value only together with the mark behind it, so it never
                   takes a cut one */
};

/* Returns the first answer of `claim_line` that is not 0, over the beginning of the source; the
 * meaning is that of log_reader.claim. */
int log_claim_lines(const struct log_source *source, int (*claim_line)(struct log_span line));

/* Does what log_reader.read has to do, for a format that is a grammar. */
TWINSTEP_MUST_USE enum status log_read_rows(const struct log_source *source,
                                            struct log_build *build,
                                            const struct log_grammar *grammar);

#endif
