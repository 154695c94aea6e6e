/* SPDX-License-Identifier: Apache-2.0
 * A configuration that does not validate is untestable; other errors are errors. */
#include "cli/noise_case.h"

#include <stdio.h>
#include <string.h>

#include "scenarios/scenario.h"

static enum status with_option(enum status status, const char *option) {
    return status == STATUS_OK ? status : status_prefix(status, "noise: %s", option);
}

enum status noise_case_set_up(const struct noise_case *one, uint64_t threads,
                              struct config *config) {
    const int races = strcmp(one->mode, "atomic") == 0;
    if (strcmp(one->mode, "own") != 0)
        TRY(with_option(noise_set_mode(config, one->mode), "--modes"));
    if (strcmp(one->dtype, "own") != 0)
        TRY(with_option(noise_set_dtype(config, one->dtype), "--dtypes"));
    if (threads != 0)
        config->numerics.threads = threads;
    else if (races && config->numerics.threads == 1)
        config->numerics.threads = 2;
    return STATUS_OK;
}

enum status noise_case_measure(const struct noise_request *request, struct arena *arena,
                               struct noise_case *one) {
    one->threads = one->config->numerics.threads;
    enum status status = STATUS_UNTESTABLE;
    if (config_validate(one->config, request->resolved) == STATUS_OK)
        status = noise_measure(request, arena, &one->table);
    if (status != STATUS_UNSUPPORTED && status != STATUS_UNTESTABLE) return status;
    snprintf(one->untestable, sizeof one->untestable, "%s", status_text());
    return STATUS_OK;
}
