/* SPDX-License-Identifier: Apache-2.0
 * Machines with PyTorch often export environment variables of cuBLAS, which a backend refuses or
 * reports. The tests expect what is so without them; this header removes them for the test program
 * and for the programs that it starts. */
#ifndef TWINSTEP_TESTS_KERNELS_HELPER_VARIABLES_H
#define TWINSTEP_TESTS_KERNELS_HELPER_VARIABLES_H

#include <stdlib.h>

#include "base/macro.h"
#include "kernels/cuda/variable_names.h"

/* Must be called first in main, before there are threads: unsetenv is not safe beside them. */
static inline void helper_unset_variables(void) {
    for (size_t i = 0; i < COUNT_OF(variables_refused); i++)
        (void)unsetenv(variables_refused[i]);
    for (size_t i = 0; i < COUNT_OF(variables_kept); i++)
        (void)unsetenv(variables_kept[i].name);
}

#endif
