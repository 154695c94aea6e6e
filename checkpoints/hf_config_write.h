/* SPDX-License-Identifier: Apache-2.0
 * config.json as both transformers v4 and v5 read it: every value that the two spell differently
 * stands in both spellings (hf_config.h has the table), so that neither takes a default in silence.
 * Invariant: hf_config_parse of the text gives the same configuration. */
#ifndef TWINSTEP_CHECKPOINTS_HF_CONFIG_WRITE_H
#define TWINSTEP_CHECKPOINTS_HF_CONFIG_WRITE_H

#include "checkpoints/hf_config.h"

/* STATUS_UNSUPPORTED: the family's class in transformers has no word for what the configuration
 * holds (a bias, tf32), by name. */
TWINSTEP_MUST_USE enum status hf_config_text(const struct hf_config *config, struct arena *arena,
                                             char **out_text);

/* Writes it whole or not at all. STATUS_IO: `path` is there and `overwrite` is 0, or it cannot be
 * written. */
TWINSTEP_MUST_USE enum status hf_config_write(const char *path, int overwrite,
                                              const struct hf_config *config);

#endif
