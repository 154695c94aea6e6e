/* SPDX-License-Identifier: Apache-2.0
 * Which YAML library reads scenarios, for the record of a run's environment. */
#ifndef TWINSTEP_SCENARIOS_YAML_VERSION_H
#define TWINSTEP_SCENARIOS_YAML_VERSION_H

/* The version of libfyaml that is loaded: "0.7.12". */
const char *yaml_version(void);

#endif
