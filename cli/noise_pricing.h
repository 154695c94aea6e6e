/* SPDX-License-Identifier: Apache-2.0
 * `twinstep noise --switches`: what each mechanism of determinism costs and buys, printed. */
#ifndef TWINSTEP_CLI_NOISE_PRICING_H
#define TWINSTEP_CLI_NOISE_PRICING_H

#include "cli/noise_report.h"
#include "cli/verb.h"
#include "experiment/noise/noise_switches.h"

struct noise_pricing {
    struct cli *cli;
    const struct noise_report *report;   /* scenario, arm, steps; when printed device; no cases */
    const struct noise_request *request; /* of->config: dtype and threads set */
    const char *dtype;
    int json;
};

TWINSTEP_MUST_USE enum status noise_pricing_measure(const struct noise_pricing *pricing,
                                                    struct noise_switches *out);
TWINSTEP_MUST_USE enum status noise_pricing_print(const struct noise_pricing *pricing,
                                                  const struct noise_switches *switches);

#endif
