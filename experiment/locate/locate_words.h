/* SPDX-License-Identifier: Apache-2.0
 * Puts a located difference into words; prints nothing. Updates and micro-batches count from 1,
 * everything else from 0, as the names of tensors and the data do. */
#ifndef TWINSTEP_EXPERIMENT_LOCATE_LOCATE_WORDS_H
#define TWINSTEP_EXPERIMENT_LOCATE_LOCATE_WORDS_H

#include "experiment/locate/locate.h"
#include "trainer/loop.h"

#define LOCATE_WORDS 512

struct locate_text {
    char text[LOCATE_WORDS];
};

/* "backward, micro-batch 2, layer 1, attention dQ". `micro` 0 is left out. */
struct locate_text locate_place(const struct locate_key *key, uint32_t micro);

/* "sample 4 chosen, position 17, head 2, channel 5"; "" for a single number. */
struct locate_text locate_address(const struct locate_result *result);

/* "0x1.8p-9 (0.0029296875) against ..., 1 ulp of f32; 1 of 6144 elements differ, at most 1 ulp". */
struct locate_text locate_values(const struct locate_result *result);

/* Says what only one side does; "" where both do the same. */
struct locate_text locate_structure_words(const struct locate_request *request,
                                          const struct locate_result *result);

/* Whether the phases of a loop's list, or their order, differ; and both lists in words. */
int locate_loops_differ(const struct locate_request *request, enum loop_list list);
struct locate_text locate_loop_words(const struct locate_request *request, enum loop_list list);

/* "lr-ratio: the updates are parallel, ratio 0.8; LRs 5e-07 and 4e-07, ratio 0.8". */
struct locate_text locate_signature_words(const struct locate_result *result);

#endif
