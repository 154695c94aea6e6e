/* SPDX-License-Identifier: Apache-2.0
 * Writes config.json so that both transformers v4 and v5 read it: a value that the two spell
 * differently stands in both spellings (hf_config.h names them), so that neither takes a default
 * silently.
 *
 * Invariant: hf_config_parse of the text gives the same configuration. */
#ifndef TWINSTEP_CHECKPOINTS_HF_CONFIG_WRITE_H
#define TWINSTEP_CHECKPOINTS_HF_CONFIG_WRITE_H

#include "checkpoints/hf_config.h"

/* Stores the text in `arena`. STATUS_UNSUPPORTED, by name, if the family's class in transformers
 * cannot express what the configuration holds (a bias, tf32). */
TWINSTEP_MUST_USE enum status hf_config_text(const struct hf_config *config, struct arena *arena,
                                             char **out_text);

/* Writes the text to `path`, whole or not at all. STATUS_IO if `path` exists and `overwrite` is 0,
 * or if it cannot be written. */
TWINSTEP_MUST_USE enum status hf_config_write(const char *path, int overwrite,
                                              const struct hf_config *config);

#endif
