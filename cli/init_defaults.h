/* SPDX-License-Identifier: Apache-2.0
 * What TRL's trainers take for the names that a file of settings leaves out.
 *
 * The defaults are those of SFTConfig and DPOConfig of TRL 1.16 on transformers 5.24. Of those
 * names stand here that twinstep init translates and whose default is a setting; the rest are off
 * by default (None, False, 0) there and here. Invariant: tests/python/test_init_torch.py compares
 * each row with the dataclass of the TRL that is installed. */
#ifndef TWINSTEP_CLI_INIT_DEFAULTS_H
#define TWINSTEP_CLI_INIT_DEFAULTS_H

#include "scenarios/yaml.h"

#define INIT_DEFAULTS_OF "TRL 1.16"

/* Returns the default of a name as a value of YAML; NULL where the trainer has none that counts. */
const struct yaml_node *init_default(const char *name, int dpo);

#endif
