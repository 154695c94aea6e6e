/* SPDX-License-Identifier: Apache-2.0
 * `twinstep noise`: the strata of every mode and dtype that was asked for, and its floor file. */
#ifndef TWINSTEP_CLI_NOISE_MEASURING_H
#define TWINSTEP_CLI_NOISE_MEASURING_H

#include "cli/noise_asking.h"
#include "cli/noise_report.h"

/* Digests of `config` trained in a process of its own; `context` is the struct cli. */
TWINSTEP_MUST_USE enum status noise_measuring_process(void *context, const struct config *config,
                                                      uint64_t steps, unsigned char *out_path,
                                                      size_t size);

/* Of `config`, as often and as long as was asked. */
struct noise_request noise_measuring_request(const struct noise_asking *asking,
                                             const struct config *config);

/* What the arm's ops run on. After what is measured: by then the device has loaded what it needs,
 * and its clocks are those of work. */
TWINSTEP_MUST_USE enum status noise_measuring_device(const struct noise_asking *asking,
                                                     struct noise_report *out);

/* All cases; one that cannot be measured says why. */
TWINSTEP_MUST_USE enum status noise_measuring_run(const struct noise_asking *asking,
                                                  struct noise_report *out);

/* The floor file of the first case, with A/A pairs trained for it; nothing without --output. */
TWINSTEP_MUST_USE enum status noise_measuring_write(const struct noise_asking *asking,
                                                    const struct noise_report *report);

#endif
