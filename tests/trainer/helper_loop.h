/* SPDX-License-Identifier: Apache-2.0
 * Loops written as text, random orders of phases, and the meaning of an order, for the tests of
 * trainer/loop*.c. */
#ifndef TWINSTEP_TESTS_TRAINER_HELPER_LOOP_H
#define TWINSTEP_TESTS_TRAINER_HELPER_LOOP_H

#include "trainer/loop.h"

/* Reads names that are separated by spaces or commas; an unknown name fails the test. */
void helper_loop_list(const char *names, struct key_list *out_list);

/* Returns PyTorch's loop: 4 samples in 2 micro-batches, clip at 1, start f0, f(n), the LR logged as
 * it is. */
void helper_loop_standard(struct config *out_config);

/* Returns the standard loop with another list update (and, where not NULL, micro). */
void helper_loop_orders(const char *micro, const char *update, struct config *out_config);

/* Replaces the lists micro and update by a random legal order; epoch, eval and on_skip stay. The
 * same seed gives the same lists everywhere. */
void helper_loop_random(uint64_t seed, struct config *config);

/* Replaces micro and update of a legal loop by a random order with the same signature; returns the
 * number of swaps made (0: none was found). */
uint32_t helper_loop_random_equal(uint64_t seed, struct config *config);

/* The meaning of a legal loop: a hash over what the parameters, slots, log rows, LR and counter of
 * each update are computed from. It covers the lists, the number of micro-batches (3 stands for
 * more), schedule.start, schedule.logged, whether clipping is on, the skip rule, and whether there
 * is a loss scale. It covers nothing else. */
struct loop_signature {
    uint64_t word[2];
};
void loop_signature_of(const struct config *config, struct loop_signature *out_signature);

/* Returns 1 when both loops have the same signature. Both must be legal. */
int loop_equal(const struct config *a, const struct config *b);

#endif
