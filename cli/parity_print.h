/* SPDX-License-Identifier: Apache-2.0
 * What `twinstep parity` says: text, and one JSON object. Figures are those of trainer/parity_*.h.
 */
#ifndef TWINSTEP_CLI_PARITY_PRINT_H
#define TWINSTEP_CLI_PARITY_PRINT_H

#include <jansson.h>
#include <stdio.h>

#include "cli/parity_load.h"
#include "evidence/judge.h"
#include "experiment/parity/parity_components.h"
#include "experiment/parity/parity_logits.h"
#include "experiment/parity/parity_logprob.h"

/* Parts that were not asked for are NULL. */
struct parity_report {
    const struct parity_words *words;
    const struct parity *parity;
    struct parity_weights weights; /* of B against A's, before anything was trained */
    char *dtype_note[2];           /* tensors of another dtype than config.json says; NULL */
    const struct parity_components *components;
    const struct parity_logits *logits;
    const struct parity_logprob *logprob;
    const struct parity_grid *grid;
    const struct judgement *training;
};

const char *parity_finding_name(enum parity_finding finding); /* "within", "outside", ... */
enum parity_finding parity_training_finding(const struct judgement *judgement);
/* Of all parts: outside beats untestable beats within. */
enum parity_finding parity_overall(const struct parity_report *report);

void parity_print_text(const struct parity_report *report, FILE *out);
/* A new reference; NULL: no memory. */
json_t *parity_json(const struct parity_report *report);

#endif
