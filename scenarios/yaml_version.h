/* SPDX-License-Identifier: Apache-2.0
 * Which YAML library reads scenarios, for the record of a run's environment. */
#ifndef TWINSTEP_SCENARIOS_YAML_VERSION_H
#define TWINSTEP_SCENARIOS_YAML_VERSION_H

/* Of libfyaml, as loaded: "0.7.12". */
const char *yaml_version(void);

#endif
