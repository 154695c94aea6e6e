/* SPDX-License-Identifier: Apache-2.0
 * Traces in memory for the tests of report/: an experiment of any length, complete or not, with
 * what a test puts in; and its page. Values are functions of (run, update). */
#ifndef TWINSTEP_TESTS_REPORT_HELPER_PAGE_H
#define TWINSTEP_TESTS_REPORT_HELPER_PAGE_H

#include "base/arena.h"
#include "report/report.h"

struct fake_plan {
    uint64_t updates[2]; /* finished by the arms */
    uint64_t steps;      /* planned; 0: as the arms finished */
    uint32_t tensors, sites, groups;
    uint32_t repeats; /* of each arm besides the arm itself; 0: the floor is exact */
    uint32_t factors; /* that differ, 0 ... 2; shares are there when the trace is complete */
    int equal;        /* the arms are bit for bit equal */
    uint32_t ranks;   /* of the test arm, of which rank 1 parts at update 4, tensor 2; 0: one */
    const char *rank_keys;   /* further lines of the test arm's configuration, NULL for none */
    int incomplete;          /* no floor, no shares, complete = 0 */
    int marks;               /* of 2 factors: other measures, earlier updates, when each acted */
    double twin;             /* of the perturbed run, as a multiple of that before; 0: none */
    double projection_noise; /* of 2 factors: 4 runs of each hybrid with this noise; 0: none */
    const char *hostile;     /* stands in every text of the trace; NULL */
};

struct fake {
    struct arena arena;
    struct trace_image image;
};

void fake_open(struct fake *fake, const struct fake_plan *plan);
/* Opens an imported log with a loss, an LR, and `others` further columns. */
void fake_open_log(struct fake *fake, uint64_t rows, uint32_t others, const char *hostile);
void fake_close(struct fake *fake);

/* Returns the whole page with a NUL at its end; free() it. Fails the test where it cannot be
 * written or is not what helper_markup.h asks for. */
char *fake_page(struct fake *fake, size_t *out_length);

#endif
