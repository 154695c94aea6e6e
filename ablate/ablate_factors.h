/* SPDX-License-Identifier: Apache-2.0
 * The keys `files` and `factors` of an ablation. Private to ablate/. */
#ifndef TWINSTEP_ABLATE_ABLATE_FACTORS_H
#define TWINSTEP_ABLATE_ABLATE_FACTORS_H

#include "ablate/ablate_file.h"
#include "scenarios/yaml.h"

/* `map` NULL: there are none. Read before the factors, which name them. */
TWINSTEP_MUST_USE enum status ablate_composed_read(const struct yaml_node *map,
                                                   struct ablate_file *out);
TWINSTEP_MUST_USE enum status ablate_factors_read(const struct yaml_node *map, struct arena *arena,
                                                  struct ablate_file *out);

#endif
