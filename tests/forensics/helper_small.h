/* SPDX-License-Identifier: Apache-2.0
 * Logs of few rows at the borders of everything: each contract and schedule by turns, a total or a
 * warm-up of 0, 1 and as many as there are rows, and twenty shapes of what can be in them. A log is
 * a function of its number and its size. */
#ifndef TWINSTEP_TESTS_FORENSICS_HELPER_SMALL_H
#define TWINSTEP_TESTS_FORENSICS_HELPER_SMALL_H

#include <stdint.h>
#include <stdio.h>

#include "forensics/fit.h"
#include "tests/base/helper_draws.h"

enum small_shape {
    SMALL_PLAIN,
    SMALL_SKIPS_TOLD,
    SMALL_SKIP_HIDDEN,
    SMALL_SKIP_NORM,
    SMALL_SKIP_COUNTED,
    SMALL_SKIP_SINCE,
    SMALL_SKIP_SCALE,
    SMALL_REPEATED,
    SMALL_RESET,
    SMALL_OTHER_TOTAL,
    SMALL_OTHER_PEAK,
    SMALL_DOUBLED,
    SMALL_TWICE,
    SMALL_GAP,
    SMALL_FIRST_ODD,
    SMALL_LAST_OFF,
    SMALL_NO_STEPS,
    SMALL_CONSTANT,
    SMALL_ZEROS,
    SMALL_AHEAD,
    SMALL_SHAPES
};
/* What a shape is called. */
extern const char *const small_shapes[SMALL_SHAPES];

enum small_size {
    SMALL_SHORT, /* 1 to 12 rows */
    SMALL_LONG,  /* 19 to 30 rows, with skips or a resume, where the contract holds at a skip */
    SMALL_FEW    /* 3 to 5 rows, with skips or a resume */
};

struct small {
    struct arena arena;
    struct draws draws;
    struct contract_request request; /* what it was made with */
    struct contract_plan plan;
    enum small_size size;
    enum small_shape shape;
    uint64_t skipped[2];
    struct log *log;
    struct series series;
    struct fit_known known; /* what the log itself says */
    struct fit_set fits;
};

/* Draws a log, with what it says by itself in `known`. The arena is to be closed by the caller. */
void small_draw(struct small *s, uint32_t number, enum small_size size);

/* All that is said of one thing. */
struct small_said {
    FILE *stream;
    char *text;
    size_t size;
};
FILE *small_said_begin(struct small_said *said);
/* Ends it: one number made of it goes to `out` behind its first words, as the end of a line. With
 * TWINSTEP_SHOW=NUMBER all of it is printed. */
void small_said_end(struct small_said *said, uint32_t number, FILE *out);
/* Fits the log, with everything that is concluded from the fits, and puts the first one's words. */
void small_ask_fit(struct small *s, FILE *out);

#endif
