/* SPDX-License-Identifier: Apache-2.0
 * What the parts of `twinstep certify` share: one run of one trace with its certificate, a
 * comparison of two of them, and the functions that show both. */
#ifndef TWINSTEP_CLI_CERTIFY_PRINT_H
#define TWINSTEP_CLI_CERTIFY_PRINT_H

#include <jansson.h>

#include "determinism/certify.h"
#include "determinism/comparable.h"
#include "determinism/first.h"
#include "determinism/ledger.h"
#include "determinism/trace.h"

struct certify_side {
    const char *path;
    struct trace_image *image;
    const struct trace_run *run;
    struct certificate certificate;
    char configuration[DIGEST_HEX]; /* SHA-256 of the text of the run's resolved configuration */
    char scenario[DIGEST_HEX];      /* SHA-256 of the scenario's text; "" if the trace has none */
    const char *overrides;          /* every --set, one per line */
    const char *device;             /* what the run's ops ran on */
    int altered;     /* the texts of both arms no longer give the trace's configuration_digest */
    int states_read; /* the run's stored states were held against their digests */
    struct trace_states states; /* which do not match; none where they were not read */
};

/* A comparison of two runs whose chains are sound, from update 1 on. */
struct certify_pair {
    uint64_t updates;     /* the number that both runs have */
    uint64_t first;       /* the first update whose roots differ; 0 if there is none */
    uint32_t comparisons; /* the number of roots that the bisection compared */
    struct first_difference where;
    struct ledger_difference rng;
    const char *rng_words; /* how the random streams differ; "" if they do not */
    const char *devices;   /* how the devices differ; "" if they do not */
    const char *ended;    /* which run ends while the other one goes on; "": none, or they differ */
    int common;           /* 1: the caller said that it may */
    struct batch_gap gap; /* the updates of which one of them alone has a digest of the batch */
};

/* Returns the root after `update`, or NULL if the trace did not record it. */
const uint8_t *certify_root(const struct certify_side *side, uint64_t update);
void certify_hex(const uint8_t *root, char out_text[DIGEST_HEX]);

/* Fails where the chain of a run is broken, for verbs that would train what was changed. */
TWINSTEP_MUST_USE enum status certify_refuse(const struct trace_image *image, const char *path,
                                             const struct trace_run *run);

/* Says which stored states do not match their digests; "" if none is known to. */
#define CERTIFY_STATES_ROOM                                                                        \
    320 /* TRACE_STATES_NAMED numbers of 20 digits, and the words around                           \
         */
void certify_states_words(const struct certify_side *side, char out_text[CERTIFY_STATES_ROOM]);

/* Returns the exit status for one run: 0, 1 or 3. */
int certify_exit(const struct certify_side *side);

/* What JSON calls the state of the run's chain. */
const char *certify_chain_word(const struct certify_side *side);

void certify_print(const struct certify_side *side);
void certify_print_pair(const struct certify_side sides[2], const struct certify_pair *pair);
json_t *certify_json(const struct certify_side *side);
json_t *certify_pair_json(const struct certify_side sides[2], const struct certify_pair *pair);

#endif
