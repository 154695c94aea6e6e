/* SPDX-License-Identifier: Apache-2.0
 * Which values transformers and TRL take for the names that twinstep init translates.
 *
 * A value that they refuse too (a text for a learning rate, a schedule that no trainer has) is a
 * slip, and an error here; one that they take and that has no counterpart here is no slip, and
 * init's to say. Types, and names of schedules, optimizers and losses, are those of TRL 1.16 on
 * transformers 5.24, with names that older versions had. Invariant:
 * tests/python/test_init_torch.py compares all of these with what is installed. */
#ifndef TWINSTEP_CLI_INIT_VALUES_H
#define TWINSTEP_CLI_INIT_VALUES_H

#include "base/arena.h"
#include "scenarios/yaml.h"

/* Fails with STATUS_INPUT at the place of the first value, in the order of the file, that no
 * trainer takes for its name. Names of DPOConfig alone count where `dpo` is 1. */
TWINSTEP_MUST_USE enum status init_check_values(const struct yaml_node *config, int dpo);

/* Gives the map of lr_scheduler_kwargs, which can stand there as a text of JSON, whose numbers are
 * numbers. `node` has passed init_check_values. */
TWINSTEP_MUST_USE enum status init_schedule_own(struct arena *arena, const struct yaml_node *node,
                                                const struct yaml_node **out);

/* Whether a value is no number above 0, or infinite: trainers do not clip then, or clip nothing. */
int init_is_unclipped(const struct yaml_node *node);

/* What a value says of a name that is on or off. */
enum turned { TURNED_OFF, TURNED_ON, TURNED_UNKNOWN };

/* Reads a value as a trainer does. What is not quoted PyYAML reads by YAML 1.1, where on and off
 * are booleans in three cases of letters each; a text goes to string_to_bool() of transformers,
 * which takes a few words in any case. Nothing and null are off. */
enum turned init_turned(const struct yaml_node *node);

#endif
