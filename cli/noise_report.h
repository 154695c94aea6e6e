/* SPDX-License-Identifier: Apache-2.0
 * What `twinstep noise` measured, as it is printed: one table per mode and dtype. */
#ifndef TWINSTEP_CLI_NOISE_REPORT_H
#define TWINSTEP_CLI_NOISE_REPORT_H

#include <jansson.h>

#include "experiment/backend_record.h"
#include "experiment/noise/noise.h"
#include "experiment/noise/noise_parts.h"

struct noise_case {
    const char *mode, *dtype; /* "own": as the scenario has them */
    uint64_t threads;
    struct config *config;
    char untestable[NOISE_REASON_SIZE]; /* the whole case; "" */
    struct noise_table table;
    struct noise_parts *parts; /* of the repeats that differ: instance, else process, else repeat */
    const char *parts_of;      /* that stratum; "" and NULL: none differs */
    struct noise_orders *orders; /* of mode shuffled, where order-free was measured, too; or NULL */
};

struct noise_report {
    const char *scenario, *arm;
    struct backend_seen device; /* of the arm's ops */
    const char *device_line;
    uint64_t steps;
    uint32_t repeats;
    struct noise_case *cases;
    uint32_t count;
};

/* How many strata that must be equal by what a mode promises were not; untestable ones apart. */
struct noise_counts {
    uint32_t equal, apart, untestable;
};
struct noise_counts noise_count(const struct noise_report *report);

void noise_print(const struct noise_report *report, FILE *out);
json_t *noise_case_json(const struct noise_case *one, uint64_t steps);
/* Facts of the device, momentary ones too; null: the CPU. */
json_t *noise_device_json(const struct backend_seen *seen);
json_t *noise_json(const struct noise_report *report);

#endif
