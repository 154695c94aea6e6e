/* SPDX-License-Identifier: Apache-2.0
 * Variables of the environment that cuBLAS reads by itself: those that change what a product
 * computes are refused where a library multiplies; those that do not are facts of the backend. And
 * the one by which the driver is told which devices there are, for texts. Included once by each
 * module. */
#ifndef TWINSTEP_KERNELS_CUDA_LIBRARY_VARIABLES_H
#define TWINSTEP_KERNELS_CUDA_LIBRARY_VARIABLES_H

#include <stdlib.h>

#include "base/module_kit.h"
#include "kernels/cuda/facts.h"
#include "kernels/cuda/variable_names.h"

/* The variable's text; NULL where it is not set, or is empty. */
static const char *variable_text(const char *name) {
    const char *const text = getenv(name);
    return text == NULL || text[0] == '\0' ? NULL : text;
}

/* The devices that this process may see; NULL where it sees all. An empty list shows none. */
static const char *variable_devices(void) {
    return getenv("CUDA_VISIBLE_DEVICES");
}

/* Refuses the first variable that is set and would change a product: STATUS_INPUT names it. */
static enum status variables_check(void) {
    for (size_t i = 0; i < sizeof variables_refused / sizeof variables_refused[0]; i++) {
        const char *const name = variables_refused[i];
        if (variable_text(name) != NULL)
            FAIL(STATUS_INPUT,
                 "%s: expected not to be set where cuBLAS multiplies, whose products it changes "
                 "behind the scenario, got \"%.60s\"; numerics.library: none goes without it",
                 name, variable_text(name));
    }
    return STATUS_OK;
}

/* Adds the harmless variables that are set as facts. A character that is not printable ASCII shows
 * as ?. */
static void variables_add(struct facts *facts) {
    for (size_t i = 0; i < sizeof variables_kept / sizeof variables_kept[0]; i++) {
        const char *const text = variable_text(variables_kept[i].name);
        if (text == NULL || facts->count == BACKEND_FACTS_MAX) continue;
        facts_add(facts, variables_kept[i].fact, "%s", text);
        for (char *at = facts->list[facts->count - 1].text; *at != '\0'; at++)
            if (*at < ' ' || *at > '~') *at = '?';
    }
}

#endif
