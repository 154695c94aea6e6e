/* SPDX-License-Identifier: Apache-2.0
 * Where placeholders of an ablation may stand. Private to ablate/. */
#ifndef TWINSTEP_ABLATE_ABLATE_PLACES_H
#define TWINSTEP_ABLATE_ABLATE_PLACES_H

#include "ablate/ablate_file.h"
#include "scenarios/yaml.h"

/* Checks all texts of a file that was read from `root`: afterwards each placeholder has a value
 * wherever it is expanded, and every factor's words stand somewhere. */
TWINSTEP_MUST_USE enum status ablate_places_check(const struct yaml_node *root,
                                                  const struct ablate_file *file);

#endif
