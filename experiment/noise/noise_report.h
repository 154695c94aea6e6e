/* SPDX-License-Identifier: Apache-2.0
 * The noise floors of one arm of a scenario in several modes and dtypes: `twinstep noise`.
 *
 * A case is one mode in one dtype. It is set up from the arm's configuration, then its strata are
 * measured (experiment/noise/noise.h) and its differences are gathered by where they arose. Nothing
 * is printed here. Invariant: a case that cannot be measured says why. */
#ifndef TWINSTEP_EXPERIMENT_NOISE_NOISE_REPORT_H
#define TWINSTEP_EXPERIMENT_NOISE_NOISE_REPORT_H

#include "experiment/backend_record.h"
#include "experiment/noise/noise.h"
#include "experiment/noise/noise_parts.h"

struct noise_case {
    const char *mode, *dtype; /* "own" leaves that of the scenario as it is */
    uint64_t threads;         /* of the baseline */
    struct config *config;
    /* Keys of numerics.determinism that were given beside the mode of the arm and that this mode
     * sets otherwise, "key: a -> b" joined by ", "; "" where there is none. */
    char reset[NOISE_REASON_SIZE];
    char untestable[NOISE_REASON_SIZE]; /* why nothing of the case was measured; "" when it was */
    struct noise_table table;
    /* Where the gradients differ in the first of the strata instance, process and repeat that
     * differs; NULL if all three are bit-equal. `parts_of` is that stratum's name, else "". */
    struct noise_parts *parts;
    const char *parts_of;
    struct noise_orders *orders; /* of mode shuffled if order-free was measured, too; else NULL */
};

struct noise_report {
    const char *scenario, *arm; /* their names */
    struct backend_seen device; /* what the arm's ops run on */
    const char *device_line;    /* the same in one line of text */
    uint64_t steps;
    uint32_t repeats;
    struct noise_case *cases;
    uint32_t count; /* of cases that are measured; the last one in part where it was interrupted */
    /* Is told of each case as soon as it is measured, and may end the report; NULL: nobody is. */
    enum status (*ready)(void *context, const struct noise_report *report,
                         const struct noise_case *one);
    void *ready_context;
};

/* Lists of modes and dtypes; every mode is measured in every dtype. */
struct noise_words {
    const char (*modes)[CONFIG_NAME_SIZE];
    uint32_t mode_count;
    const char (*dtypes)[CONFIG_NAME_SIZE];
    uint32_t dtype_count;
};

/* The number of strata that are bit-equal, that are apart, and that could not be measured. The
 * strata one-ulp and f64 are meant to differ and are not counted; an untestable case counts once.
 */
struct noise_counts {
    uint32_t equal, apart, untestable;
};
struct noise_counts noise_count(const struct noise_report *report);

/* Writes which keys of numerics.determinism were given beside the mode of `own` and are otherwise
 * in `config`, which has another mode: as in struct noise_case. */
void noise_note_resets(const struct config *own, const struct config *config,
                       char out[NOISE_REASON_SIZE]);

/* Puts the mode and the dtype of `one` into `config`, and says in one->reset which keys that were
 * given the mode takes back. With threads 0 the configuration keeps its own number, but mode atomic
 * gets at least 2, because one thread alone cannot race. STATUS_INPUT, naming the option, if there
 * is no such mode or dtype. */
TWINSTEP_MUST_USE enum status noise_case_set_up(struct noise_case *one, uint64_t threads,
                                                struct config *config);

/* Whether every mode and dtype is one, so that a report of several measures none of them where one
 * is misspelt. STATUS_INPUT, naming the option. */
TWINSTEP_MUST_USE enum status noise_words_check(const struct noise_words *words);

/* Fills one->table, or one->untestable. request->config must be one->config. */
TWINSTEP_MUST_USE enum status noise_case_measure(const struct noise_request *request,
                                                 struct arena *arena, struct noise_case *one);

/* Asks what the ops of `config` run on and keeps it in `out`. It is called after the measuring: by
 * then the device has loaded what it needs, and its clocks are those of work. */
TWINSTEP_MUST_USE enum status noise_report_device(const struct config *config, struct arena *arena,
                                                  struct noise_report *out);

/* Measures every case. STATUS_INTERRUPTED: `out` holds what was measured until then. `of` is the
 * protocol, and of->config the arm's configuration; `threads` is as in noise_case_set_up. The
 * caller has set the names, steps, repeats and `ready` of `out`; all that is added to it lives in
 * `arena`. */
TWINSTEP_MUST_USE enum status noise_report_measure(const struct noise_request *of,
                                                   const struct noise_words *words,
                                                   uint64_t threads, struct arena *arena,
                                                   struct noise_report *out);

#endif
