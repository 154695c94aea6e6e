/* SPDX-License-Identifier: Apache-2.0
 * What `noise` was asked for, read from its options. Errors are STATUS_INPUT and name the option.
 */
#ifndef TWINSTEP_CLI_NOISE_ASKING_H
#define TWINSTEP_CLI_NOISE_ASKING_H

#include "cli/options.h"
#include "cli/progress.h"
#include "cli/verb.h"
#include "scenarios/scenario.h"

/* Options of the verb. */
enum {
    KEY_ARM = KEY_OWN,
    KEY_MODES,
    KEY_DTYPES,
    KEY_REPEAT,
    KEY_STEPS,
    KEY_THREADS,
    KEY_PAIRS,
    KEY_PLAN,
    KEY_LR_ERROR,
    KEY_ALPHA,
    KEY_POWER,
    KEY_FLOOR,
    KEY_OPS,
    KEY_MODELS,
    KEY_SWITCHES
};

#define NOISE_WORDS 8 /* modes, dtypes */

struct noise_asking {
    struct cli *cli;
    const struct options *options;
    struct progress *progress;
    struct scenario *scenario;
    const struct scenario_arm *arm;
    uint64_t steps, threads, processors; /* threads 0: as the scenario has them */
    uint64_t pairs;                      /* A/A pairs; 0: none */
    uint32_t repeats;
    char modes[NOISE_WORDS][CONFIG_NAME_SIZE], dtypes[NOISE_WORDS][CONFIG_NAME_SIZE];
    uint32_t mode_count, dtype_count;
};

/* Names parted by commas, `standard` where the option was not given. */
TWINSTEP_MUST_USE enum status noise_read_words(const struct options *options, int key,
                                               const char *name, const char *standard,
                                               char words[NOISE_WORDS][CONFIG_NAME_SIZE],
                                               uint32_t *out_count);

/* 1 ... most; `standard` may lie outside. */
TWINSTEP_MUST_USE enum status noise_read_number(const struct options *options, int key,
                                                const char *name, uint64_t most, uint64_t standard,
                                                uint64_t *out);

/* Between 0 and 1, neither of them. */
TWINSTEP_MUST_USE enum status noise_read_share(const struct options *options, int key,
                                               const char *name, double standard, double *out);

/* The scenario that was named, else one of noise's own. */
TWINSTEP_MUST_USE enum status noise_load(struct noise_asking *asking);

/* Scenario, arm, lists and numbers; cli, options, progress and processors are set. */
TWINSTEP_MUST_USE enum status noise_ask(struct noise_asking *asking);

/* Of this machine, at least 1. */
uint64_t noise_count_processors(void);

#endif
