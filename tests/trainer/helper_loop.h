/* SPDX-License-Identifier: Apache-2.0
 * Loops written as text, for the tests of trainer/loop*.c. */
#ifndef TWINSTEP_TESTS_TRAINER_HELPER_LOOP_H
#define TWINSTEP_TESTS_TRAINER_HELPER_LOOP_H

#include "trainer/loop.h"

/* Names separated by spaces or commas; an unknown name fails the test. */
void helper_loop_list(const char *names, struct key_list *out_list);

/* PyTorch's loop: 4 samples in 2 micro-batches, clip at 1, start f0, f(n), LR logged as it is. */
void helper_loop_standard(struct config *out_config);

/* The standard loop with another list update (and, when not NULL, micro). */
void helper_loop_orders(const char *micro, const char *update, struct config *out_config);

#endif
