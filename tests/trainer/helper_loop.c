/* SPDX-License-Identifier: Apache-2.0
 * Reads loops that are written as text. It holds no expectation. */
#include "tests/trainer/helper_loop.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static uint8_t phase_number(const char *name, size_t length) {
    for (uint8_t p = 0; p < PHASE_TOTAL; p++) {
        const char *candidate = loop_phases()[p].name;
        if (strlen(candidate) == length && memcmp(candidate, name, length) == 0) return p;
    }
    fail_msg("no phase is called %.*s", (int)length, name);
    return 0;
}

void helper_loop_list(const char *names, struct key_list *out_list) {
    memset(out_list, 0, sizeof *out_list);
    while (*names != '\0') {
        const size_t length = strcspn(names, " ,");
        if (length > 0) out_list->item[out_list->count++] = phase_number(names, length);
        names += length;
        names += strspn(names, " ,");
    }
}

void helper_loop_standard(struct config *out_config) {
    memset(out_config, 0, sizeof *out_config);
    out_config->batch.size = 4;
    out_config->batch.micro = 2;
    out_config->clip.max_norm = 1.0;
    out_config->schedule.increment = 1;
    out_config->schedule.start = START_F0;
    out_config->parallel.ranks = 1;
    memcpy(out_config->schedule.contract, CONFIG_NO_CONTRACT, sizeof CONFIG_NO_CONTRACT);
    helper_loop_list("fetch forward backward", &out_config->loop.micro);
    helper_loop_list("clip optimize log count schedule zero", &out_config->loop.update);
}

void helper_loop_orders(const char *micro, const char *update, struct config *out_config) {
    helper_loop_standard(out_config);
    if (micro != NULL) helper_loop_list(micro, &out_config->loop.micro);
    helper_loop_list(update, &out_config->loop.update);
}
