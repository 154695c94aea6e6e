/* SPDX-License-Identifier: Apache-2.0
 * The version of libfyaml. It stands apart from yaml.c, which has no other use for it. */
#include "scenarios/yaml_version.h"

#include <libfyaml.h>

const char *yaml_version(void) {
    return fy_library_version();
}
