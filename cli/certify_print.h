/* SPDX-License-Identifier: Apache-2.0
 * What the parts of `twinstep certify` share: one run of one trace and its certificate, two of them
 * compared, and how both are shown. */
#ifndef TWINSTEP_CLI_CERTIFY_PRINT_H
#define TWINSTEP_CLI_CERTIFY_PRINT_H

#include <jansson.h>

#include "determinism/certify.h"
#include "determinism/first.h"
#include "determinism/ledger.h"

struct certify_side {
    const char *path;
    const struct trace_image *image;
    const struct trace_run *run;
    struct certificate certificate;
    char configuration[DIGEST_HEX]; /* SHA-256 of the run's resolved text */
    char scenario[DIGEST_HEX];      /* SHA-256 of the scenario's text; "": the trace has none */
    const char *overrides;          /* each --set, one per line */
    const char *device;             /* what the run's ops ran on */
    int altered; /* the texts of both arms do not give the trace's configuration_digest */
};

/* Two sound runs from update 1 on. */
struct certify_pair {
    uint64_t updates;     /* that both have */
    uint64_t first;       /* first whose roots differ; 0: none */
    uint32_t comparisons; /* of roots */
    struct first_difference where;
    struct ledger_difference rng;
    const char *rng_words; /* "" nothing to tell */
    const char *devices;   /* how what they ran on differs; "" */
};

/* Root after `update`; NULL: not recorded. */
const uint8_t *certify_root(const struct certify_side *side, uint64_t update);
void certify_hex(const uint8_t *root, char out_text[DIGEST_HEX]);

/* What a script should see of one run: 0, 1 or 3. */
int certify_exit(const struct certify_side *side);

void certify_print(const struct certify_side *side);
void certify_print_pair(const struct certify_side sides[2], const struct certify_pair *pair);
json_t *certify_json(const struct certify_side *side);
json_t *certify_pair_json(const struct certify_side sides[2], const struct certify_pair *pair);

#endif
