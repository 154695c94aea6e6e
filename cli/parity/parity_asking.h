/* SPDX-License-Identifier: Apache-2.0
 * What the files of `twinstep parity` share: what it was asked for (parity_asking.c), the two
 * configurations that its words name (parity_load.c), and what it says as text and JSON
 * (parity_print.c, parity_json.c). Figures are those of experiment/parity.
 *
 * A word is a checkpoint folder, a scenario (file or name of the catalogue) for its first arm, or
 * SCENARIO:ARM. One word alone means a scenario's two arms or, of a folder or one arm, the same
 * thing with what --set changes. Errors in options are STATUS_INPUT and name the option. */
#ifndef TWINSTEP_CLI_PARITY_PARITY_ASKING_H
#define TWINSTEP_CLI_PARITY_PARITY_ASKING_H

#include <jansson.h>
#include <stdio.h>

#include "cli/output.h"
#include "cli/progress.h"
#include "cli/verb.h"
#include "evidence/judge.h"
#include "experiment/parity/parity_components.h"
#include "experiment/parity/parity_logits.h"
#include "experiment/parity/parity_logprob.h"
#include "scenarios/scenario.h"

struct parity_word {
    const char *name;   /* "SCENARIO:ARM", or the name of the folder */
    const char *folder; /* of a checkpoint; NULL: the word names a scenario */
    const char *path;   /* of the scenario, as it was given; NULL: the word names a folder */
    const struct scenario *scenario; /* for a folder, one that is made up around it */
    const struct scenario_arm *arm;
};

struct parity_words {
    struct parity_word side[2];
};

/* Reads the words. `steps` is the number of updates of both sides, as digits; NULL leaves them
 * their own. STATUS_INPUT: a word that names nothing, an arm that does not exist, one arm without
 * --set. */
TWINSTEP_MUST_USE enum status parity_load(struct cli *cli, const struct options *options,
                                          const char *steps, struct arena *arena,
                                          struct parity_words *out);

/* So many keys that differ are named in the text; --json has all. */
#define PARITY_KEYS_SHOWN 8

/* What was measured. Parts that were not asked for are NULL. */
struct parity_report {
    const struct parity_words *words;
    const struct parity *parity;
    /* The keys in which the configurations of A and B differ, as they were measured: B with A's
     * data. The values are those of A, then of B. */
    struct factor *factors;
    uint32_t factor_count;
    struct parity_weights weights; /* of B against those of A, before any training */
    char *dtype_note[2]; /* names tensors of another dtype than config.json says; NULL if there are
                            none */
    const struct parity_components *components;
    const struct parity_logits *logits;
    const struct parity_logprob *logprob;
    const struct parity_grid *grid;
    const struct judgement *training;
    const struct trace_image *recorded; /* what `training` rests on; NULL without it */
};

const char *parity_finding_name(enum parity_finding finding); /* "within", "outside", ... */
enum parity_finding parity_training_finding(const struct judgement *judgement);
/* The finding of all parts together: outside beats untestable, which beats within. */
enum parity_finding parity_overall(const struct parity_report *report);

void parity_print_text(const struct parity_report *report, FILE *out);
/* Returns a new reference, or NULL if there is no memory. */
json_t *parity_json(const struct parity_report *report);

/* The options that no other verb has; the first four name the parts. */
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
    KEY_DATA,
    KEY_ROLLOUTS
};

struct parity_asking {
    struct cli *cli;
    const struct options *options;
    struct parity_words words;
    struct parity_request request;
    struct parity_grid grid;
    struct parity parity;
    struct parity_components components; /* the parts that the report points to */
    struct parity_logits logits;
    struct parity_logprob logprob;
    struct judgement training;
    struct trace_image *recorded;
    struct parity_report report;
    struct progress progress;
    struct output rollouts; /* of --rollouts, while it is open */
};

/* Reads a number of 1 ... `most`; without the option *value stays. */
TWINSTEP_MUST_USE enum status parity_read_count(const struct options *options, int key,
                                                const char *name, uint64_t most, uint64_t *value);

/* Returns whether the part that this key names is measured. */
int parity_wants(const struct parity_asking *asking, int key);

/* Refuses an option whose parts are not measured, because it would change nothing. */
TWINSTEP_MUST_USE enum status parity_check_parts(const struct parity_asking *asking);

/* Refuses -o FILE if it cannot be written or is one of the files that are read, before the long
 * measuring begins. Leaves nothing behind. */
TWINSTEP_MUST_USE enum status parity_check_output(const struct parity_asking *asking);

/* Reads request and grid; cli, options and words are set. */
TWINSTEP_MUST_USE enum status parity_read_request(struct parity_asking *asking);

#endif
