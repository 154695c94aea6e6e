/* SPDX-License-Identifier: Apache-2.0
 * Two recorded ledgers of random draws side by side: which consumer first drew another number of
 * words than its counterpart, in which update, and which streams had another seed.
 *
 * Consumers are matched by name; one that a run cannot have drew 0 words in it. Tells nothing of
 * the values of words: equal numbers from one seed are equal words only where addresses or offsets
 * are equal, too. */
#ifndef TWINSTEP_DETERMINISM_LEDGER_H
#define TWINSTEP_DETERMINISM_LEDGER_H

#include "base/arena.h"
#include "determinism/stream.h"
#include "determinism/trace.h"

/* A stream that both runs drew from, with different seeds. */
struct ledger_seed {
    char stream[16]; /* "dropout" */
    uint64_t seed[2];
};

/* A stream that stands elsewhere before an update than its counterpart. */
struct ledger_place {
    const char *stream; /* NULL: none that the seeds at the start do not tell */
    uint64_t update;
    uint64_t seed[2], clock[2];
};

struct ledger_difference {
    int recorded;         /* both runs have a ledger; else nothing below means anything */
    int found;            /* some consumer drew another number of words */
    uint64_t update;      /* the first such update; 0: before the first update */
    const char *consumer; /* the first such consumer then, in the order of run a, then of b */
    uint64_t words[2];    /* of it */
    uint32_t others;      /* more consumers that differ in that update */
    struct ledger_seed seeds[STREAM_COUNT];
    uint32_t seed_count;
    struct ledger_place place; /* the first, of streams with one seed at the start, or other clocks;
                                  not of stream order by its seed, which repeats are given */
};

/* The ledger of one update as digest_ledger takes it. Returns 0 when the run recorded none, or one
 * of its consumers has numbers that no stream has. */
int ledger_of(const struct trace_run_plan *plan, const struct record *record,
              struct stream_ledger *out);

/* Compares updates that both have. Names point into the runs. */
void ledger_compare(const struct trace_run *a, const struct trace_run *b,
                    struct ledger_difference *out);

/* "update 1: dropout/attention drew 1024 words in A, 2048 in B (and 2 other consumers); seed of
 * data: 1 in A, 2 in B", without an end of line; "" where there is nothing to tell. */
TWINSTEP_MUST_USE enum status ledger_words(const struct ledger_difference *difference,
                                           const char *const names[2], struct arena *arena,
                                           char **out);

#endif
