/* SPDX-License-Identifier: Apache-2.0
 * What the files of `twinstep parity` share: what it was asked for (parity_asking.c), the two
 * configurations that its words name (parity_load.c), and what it says as text and JSON
 * (parity_print.c, parity_json.c). Figures are those of experiment/parity.
 *
 * A word is a checkpoint folder, a scenario (file or name of the catalogue) for its first arm, or
 * SCENARIO:ARM. One word alone means a scenario's two arms or, of a folder or one arm, the same
 * thing with what --set changes. Errors in options are STATUS_INPUT and name the option. */
#ifndef TWINSTEP_CLI_PARITY_ASKING_H
#define TWINSTEP_CLI_PARITY_ASKING_H

#include <jansson.h>
#include <stdio.h>

#include "cli/progress.h"
#include "cli/verb.h"
#include "evidence/judge.h"
#include "experiment/parity/parity_components.h"
#include "experiment/parity/parity_logits.h"
#include "experiment/parity/parity_logprob.h"

struct parity_word {
    const char *name;                /* "SCENARIO:ARM", or the folder */
    const char *folder;              /* NULL: a scenario */
    const char *path;                /* of the scenario, as given; NULL: a folder */
    const struct scenario *scenario; /* of a folder: one made up for it */
    const struct scenario_arm *arm;
};

struct parity_words {
    struct parity_word side[2];
};

/* `steps`: updates of both, as digits; NULL: their own. STATUS_INPUT: a word that names nothing, an
 * arm that is not there, one arm without --set. */
TWINSTEP_MUST_USE enum status parity_load(const struct cli *cli, const struct options *options,
                                          const char *steps, struct arena *arena,
                                          struct parity_words *out);

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

/* Options of the verb; the first four are parts. */
enum {
    KEY_COMPONENTS = KEY_OWN,
    KEY_LOGITS,
    KEY_LOGPROBS,
    KEY_TRAINING,
    KEY_BATCHES,
    KEY_REPLICAS,
    KEY_FULL,
    KEY_LENGTHS,
    KEY_SIZES,
    KEY_REPEATS,
    KEY_TEMPERATURE,
    KEY_TOP_P,
    KEY_NO_REFIT,
    KEY_STALE,
    KEY_STEPS,
    KEY_DATA
};

struct parity_asking {
    struct cli *cli;
    const struct options *options;
    struct parity_words words;
    struct parity_request request;
    struct parity_grid grid;
    struct parity parity;
    struct parity_report report;
    struct progress progress;
};

/* 1 ... most; without the option `value` stays. */
TWINSTEP_MUST_USE enum status parity_read_count(const struct options *options, int key,
                                                const char *name, uint64_t most, uint64_t *value);

/* Whether the part of this key is measured. */
int parity_wants(const struct parity_asking *asking, int key);

/* An option whose parts are not measured would change nothing. */
TWINSTEP_MUST_USE enum status parity_check_parts(const struct parity_asking *asking);

/* That -o FILE can be written, and is none of the files that are read; better now than after all
 * measuring. Leaves nothing behind. */
TWINSTEP_MUST_USE enum status parity_check_output(const struct parity_asking *asking);

/* Request and grid; cli, options and words are set. */
TWINSTEP_MUST_USE enum status parity_read_request(struct parity_asking *asking);

#endif
