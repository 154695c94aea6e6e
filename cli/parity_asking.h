/* SPDX-License-Identifier: Apache-2.0
 * What `parity` was asked for, read from its options. Errors are STATUS_INPUT and name the option.
 */
#ifndef TWINSTEP_CLI_PARITY_ASKING_H
#define TWINSTEP_CLI_PARITY_ASKING_H

#include "cli/parity_print.h"
#include "cli/progress.h"
#include "cli/verb.h"

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
