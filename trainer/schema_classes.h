/* SPDX-License-Identifier: Apache-2.0
 * The whole schema: the keys of scenarios/schema.c, with what optimizers, schedules and LR
 * contracts hand in. scenarios/ knows none of these; this is where they meet. */
#ifndef TWINSTEP_TRAINER_SCHEMA_CLASSES_H
#define TWINSTEP_TRAINER_SCHEMA_CLASSES_H

#include "scenarios/scenario.h"

/* The schema with the keys of every built-in class; the keys of a module's classes join when a
 * configuration names that module. The schema lives as long as the arena. */
TWINSTEP_MUST_USE enum status schema_with_classes(struct arena *arena, const struct schema **out);

#endif
