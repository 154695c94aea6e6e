/* SPDX-License-Identifier: Apache-2.0
 * Compares two recorded ledgers of random draws: which consumer first drew another number of words
 * than its counterpart in the other run, in which update, and which streams had other seeds.
 *
 * Consumers are matched by name; a consumer that a run cannot have drew 0 words in it. The
 * comparison says nothing of the values of words: equal numbers of words from one seed are equal
 * words only where addresses or offsets are equal, too. */
#ifndef TWINSTEP_DETERMINISM_LEDGER_H
#define TWINSTEP_DETERMINISM_LEDGER_H

#include "base/status.h"
#include "determinism/stream.h"

struct arena;
struct record;
struct trace_run;
struct trace_run_plan;

/* A stream from which both runs drew with different seeds. */
struct ledger_seed {
    char stream[16]; /* "dropout" */
    uint64_t seed[2];
};

/* A stream that stands at another place before an update than its counterpart in the other run. */
struct ledger_place {
    /* NULL if there is none, or only ones that the seeds at the start explain */
    const char *stream;
    uint64_t update;
    uint64_t seed[2], clock[2];
};

struct ledger_difference {
    int recorded;    /* both runs have a ledger; otherwise nothing below means anything */
    int found;       /* some consumer drew another number of words than its counterpart */
    uint64_t update; /* the first such update; 0 means before the first update */
    /* the first such consumer in that update, in the order of run a, then of b */
    const char *consumer;
    uint64_t words[2]; /* that this consumer drew in each run */
    uint32_t others;   /* the number of other consumers that differ in that update */
    struct ledger_seed seeds[STREAM_COUNT];
    uint32_t seed_count;
    /* The first stream that stands elsewhere although its seeds at the start were equal, or that
     * has another clock. The stream of orders is left out by its seed, because repeats are given
     * other ones on purpose. */
    struct ledger_place place;
};

/* Adds up the ledger of one update in the form that digest_ledger takes. Returns 0 if the run
 * recorded none, or if a consumer has numbers that no stream has. */
int ledger_of(const struct trace_run_plan *plan, const struct record *record,
              struct stream_ledger *out);

/* Compares the updates that both runs recorded. Names in `out` point into the runs. */
void ledger_compare(const struct trace_run *a, const struct trace_run *b,
                    struct ledger_difference *out);

/* Writes the difference as words without an end of line: "update 1: dropout/attention drew 1024
 * words in A, 2048 in B (and 2 other consumers); seed of data: 1 in A, 2 in B", or "" if there is
 * nothing to tell. */
TWINSTEP_MUST_USE enum status ledger_words(const struct ledger_difference *difference,
                                           const char *const names[2], struct arena *arena,
                                           char **out);

#endif
