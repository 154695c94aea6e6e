/* SPDX-License-Identifier: Apache-2.0
 * Draws the prompts from which B generates. Invariant: a prompt depends on its row's kind of data,
 * the seed and its number alone. */
#ifndef TWINSTEP_EXPERIMENT_PARITY_PARITY_PROMPTS_H
#define TWINSTEP_EXPERIMENT_PARITY_PARITY_PROMPTS_H

#include "experiment/parity/parity_logprob.h"
#include "model/generate.h"

/* Draws (row->batch) prompts of at most a fourth of row->length; sets row->prompt and
 * row->generated. */
TWINSTEP_MUST_USE enum status parity_draw_prompts(const struct parity *parity,
                                                  struct parity_row *row, struct arena *arena,
                                                  struct generate_prompt **out);

#endif
