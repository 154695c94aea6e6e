/* SPDX-License-Identifier: Apache-2.0
 * What the files of `twinstep noise` share: what was asked for, the five things that the verb can
 * be asked to do, and what they print alike.
 *
 * All measuring is done by experiment/noise; here are options, text and JSON. Errors in options are
 * STATUS_INPUT and name the option. */
#ifndef TWINSTEP_CLI_NOISE_NOISE_ASKING_H
#define TWINSTEP_CLI_NOISE_NOISE_ASKING_H

#include <jansson.h>

#include "cli/options.h"
#include "cli/progress.h"
#include "cli/verb.h"
#include "experiment/noise/noise_report.h"
#include "scenarios/scenario.h"

/* The options that no other verb has. */
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
    KEY_SWITCHES,
    KEY_ROOM
};

#define NOISE_WORDS 8 /* the longest list of modes or of dtypes */

struct noise_asking {
    struct cli *cli;
    const struct options *options;
    struct progress *progress;
    struct scenario *scenario;
    const struct scenario_arm *arm;
    uint64_t steps;
    uint64_t threads;    /* 0: as the scenario has them */
    uint64_t processors; /* that this process may use, at least 1 */
    uint64_t pairs;      /* A/A pairs; 0: none */
    uint32_t repeats;
    char modes[NOISE_WORDS][CONFIG_NAME_SIZE], dtypes[NOISE_WORDS][CONFIG_NAME_SIZE];
    uint32_t mode_count, dtype_count;
};

/* Reads modes and dtypes, names parted by commas; `modes` and `dtypes` hold where the option was
 * not given. */
TWINSTEP_MUST_USE enum status noise_read_lists(struct noise_asking *asking, const char *modes,
                                               const char *dtypes);

/* Reads a number of 1 ... `most`, else sets `standard`, which may lie outside. */
TWINSTEP_MUST_USE enum status noise_read_number(const struct options *options, int key,
                                                const char *name, uint64_t most, uint64_t standard,
                                                uint64_t *out);

/* Opens the scenario that was named, else one of noise's own. */
TWINSTEP_MUST_USE enum status noise_load(struct noise_asking *asking);

/* Reads scenario, arm, lists and numbers; cli, options and progress are set. */
TWINSTEP_MUST_USE enum status noise_ask(struct noise_asking *asking);

/* The protocol that was asked for, of `config`: the second process, the question for room, the
 * interruption and the progress are this program's. */
struct noise_request noise_request_of(struct noise_asking *asking, const struct config *config);
struct noise_words noise_words_of(const struct noise_asking *asking);

/* Each measures what one option asks for and prints it. Where only --plan takes a scenario,
 * noise_ask() was called before; the others ask themselves. */
TWINSTEP_MUST_USE enum status noise_run_plan(struct noise_asking *asking, int *out_exit);
TWINSTEP_MUST_USE enum status noise_run_switches(struct noise_asking *asking, int *out_exit);
TWINSTEP_MUST_USE enum status noise_run_ops(struct noise_asking *asking, int *out_exit);
TWINSTEP_MUST_USE enum status noise_run_models(struct noise_asking *asking, int *out_exit);

/* What a script learns: something was apart, all that was measured is equal, or nothing was
 * measured. */
int noise_exit(uint32_t equal, uint32_t apart);

/* What is printed of the strata: the title, a table of each case, and what is behind the last. */
void noise_print_title(const struct noise_report *report, FILE *out);
void noise_print_case(const struct noise_report *report, const struct noise_case *one, FILE *out);
void noise_print_end(const struct noise_report *report, FILE *out);
json_t *noise_case_json(const struct noise_case *one, uint64_t steps);
/* The update and the place of the first difference; null if there is none. */
json_t *noise_first_json(const struct noise_figures *figures);
/* Every fact of the device, momentary ones too; null for the CPU. */
json_t *noise_device_json(const struct backend_seen *seen);
json_t *noise_json(const struct noise_report *report);

#endif
