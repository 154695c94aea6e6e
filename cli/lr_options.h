/* SPDX-License-Identifier: Apache-2.0
 * The options that describe one training to a contract. The lr verbs share them.
 *
 * A verb puts LR_OPTION_ROWS into its option table and calls lr_options_read. Which contract is
 * meant, each verb says in its own way (--contract, --expect or arguments); lr_contract finds it by
 * name. Keys lie from KEY_OWN + 64 on, so that a verb's further options use KEY_OWN + 0 to + 63. */
#ifndef TWINSTEP_CLI_LR_OPTIONS_H
#define TWINSTEP_CLI_LR_OPTIONS_H

#include "base/arena.h"
#include "cli/options.h"
#include "sched/contract.h"

enum lr_option_key {
    LR_SCHEDULE = KEY_OWN + 64,
    LR_PEAK,
    LR_WARMUP,
    LR_WARMUP_RATIO,
    LR_STEPS,
    LR_MIN_LR_RATIO,
    LR_PROCESSES,
    LR_RESCALED,
    LR_GLOBAL_BATCH,
    LR_ACCUMULATE,
    LR_DATASET,
    LR_EPOCHS,
    LR_BATCH,
    LR_DROP_LAST,
    LR_TOKENS,
    LR_UPDATES_PER_EPOCH,
    LR_SKIPPED,
    LR_VALUE,
    LR_METRIC,
    LR_METRIC_EVERY,
    LR_LOG_EVERY
};

#define LR_OPTION_ROWS                                                                             \
    OPTION("schedule", LR_SCHEDULE, "S",                                                           \
           "Schedule of the contract's family (twinstep list schedules)"),                         \
        OPTION("lr", LR_PEAK, "X", "Peak learning rate"),                                          \
        OPTION("warmup", LR_WARMUP, "W", "Warm-up in updates"),                                    \
        OPTION("warmup-ratio", LR_WARMUP_RATIO, "R",                                               \
               "Warm-up as a share of the total, rounded as the framework does"),                  \
        OPTION("steps", LR_STEPS, "T", "Total number of updates"),                                 \
        OPTION("min-lr-ratio", LR_MIN_LR_RATIO, "M",                                               \
               "Floor of the schedule as a share of the peak"),                                    \
        OPTION("processes", LR_PROCESSES, "P", "Data-parallel processes"),                         \
        OPTION("rescaled", LR_RESCALED, "WHAT",                                                    \
               "What was brought to counter units: none, total, warmup or both"),                  \
        OPTION("global-batch", LR_GLOBAL_BATCH, "B", "Samples per update"),                        \
        OPTION("accumulate", LR_ACCUMULATE, "A", "Micro-batches per update"),                      \
        OPTION("dataset", LR_DATASET, "N", "Rows, to derive the total"),                           \
        OPTION("epochs", LR_EPOCHS, "E", "Epochs, to derive the total"),                           \
        OPTION("batch", LR_BATCH, "b", "Rows per process and micro-batch, to derive the total"),   \
        OPTION("drop-last", LR_DROP_LAST, NULL, "The loader drops a short last batch"),            \
        OPTION("tokens", LR_TOKENS, "N", "Tokens per update, where the counter is tokens"),        \
        OPTION("updates-per-epoch", LR_UPDATES_PER_EPOCH, "N",                                     \
               "Where the counter is epochs and no dataset is given"),                             \
        OPTION("skipped", LR_SKIPPED, "K,K",                                                       \
               "Updates whose optimizer step was skipped, e.g. 3,7"),                              \
        OPTION("value", LR_VALUE, "KEY=VALUE",                                                     \
               "A parameter of the schedule (twinstep keys); lengths in updates (repeatable)"),    \
        OPTION(                                                                                    \
            "metric", LR_METRIC, "LIST|FILE[:COLUMN]",                                             \
            "What reduce_lr_on_plateau follows: values between commas, or a log; a log that is "   \
            "checked or fitted has its own"),                                                      \
        OPTION("metric-every", LR_METRIC_EVERY, "N", "Updates between the values of a list (1)")

/* Only verbs that read a log take this option. */
#define LR_OPTION_LOG_EVERY                                                                        \
    OPTION("log-every", LR_LOG_EVERY, "N",                                                         \
           "Updates between two rows (logging_steps), for a log that prints no update numbers")

/* Fills all members of `out` but its contract. Texts point into `options`. STATUS_INPUT names the
 * option; what only the contract can judge is left to contract_resolve. */
TWINSTEP_MUST_USE enum status lr_options_read(const struct options *options, struct arena *arena,
                                              struct contract_request *out);

/* Finds a contract by name or alias. STATUS_INPUT: it is unknown, and the text has the nearest
 * name. `option` is what the user wrote it behind ("--contract"). */
TWINSTEP_MUST_USE enum status lr_contract(const char *option, const char *name,
                                          const struct contract **out);

/* Reads an option that holds a whole number from 1 to 2^53; *out stays if it was not given. */
TWINSTEP_MUST_USE enum status lr_option_count(const struct options *options, int key,
                                              const char *name, uint64_t *out);

#endif
