/* SPDX-License-Identifier: Apache-2.0
 * Starts the processes that train for an experiment (experiment.h, struct experiment_children). */
#ifndef TWINSTEP_CLI_CHILDREN_H
#define TWINSTEP_CLI_CHILDREN_H

#include "experiment/experiment.h"

/* How many may train at once where one takes `memory` bytes and `threads` cores: as many as `cores`
 * and the memory that is left have room for; 0, too, where this process has threads that a copy of
 * it would lack. */
uint32_t children_most(uint64_t cores, uint64_t memory, uint64_t threads);

/* As the members of struct experiment_children say; the context of children_read(), which is one of
 * them as it is, is not looked at. */
TWINSTEP_MUST_USE enum status children_start(void (*work)(void *of, uint32_t number, int file,
                                                          int said),
                                             void *of, uint32_t number,
                                             struct experiment_child *out);
TWINSTEP_MUST_USE enum status children_wait(struct experiment_child *children, uint32_t count);
TWINSTEP_MUST_USE enum status children_read(void *context, const struct experiment_child *child,
                                            uint64_t at, void *bytes, size_t length);
void children_end(struct experiment_child *child);

/* Returns when the process is gone that holds the other end of the pipe `said`; at once for -1. */
void children_await(int said);

#endif
