/* SPDX-License-Identifier: Apache-2.0
 * Reads `--set PATH=VALUE` as a small document of its own: maps along the path, YAML at its end.
 * Errors begin with the whole option, since it has no line. */
#ifndef TWINSTEP_SCENARIOS_OVERRIDE_H
#define TWINSTEP_SCENARIOS_OVERRIDE_H

#include "scenarios/yaml.h"

TWINSTEP_MUST_USE enum status override_parse(struct arena *arena, const char *option,
                                             struct yaml_node **out_root);

#endif
