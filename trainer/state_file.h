/* SPDX-License-Identifier: Apache-2.0
 * A state in the form in which files have it: numbers of bf16 and f16 in their own two bytes, every
 * other byte as in a state whose numbers lie in carriers (docs/decisions/carriers.md).
 *
 * It walks parameters, stored gradients and slots of one of these dtypes, and those of ranks'
 * copies (masters and accumulators are never narrower than f32). What lies between them is copied.
 * Invariant: a state that was made and read back is the state, NaN with their signs and fractions
 * included. A NaN whose fraction the dtype has not, which no operation makes, is the one exception:
 * it comes back as the pattern that digests have. */
#ifndef TWINSTEP_TRAINER_STATE_FILE_H
#define TWINSTEP_TRAINER_STATE_FILE_H

#include "trainer/state.h"

/* Bytes of the form; layout->bytes where no number is narrow in it, and the form is the memory
 * itself. Two layouts of one training that differ in widths have one form. */
size_t state_file_bytes(const struct param_table *table, const struct state_layout *layout);

/* Writes state_file_bytes() bytes to `out`. Fails with STATUS_INTERNAL where a number is none of
 * its dtype: somebody did not round. */
TWINSTEP_MUST_USE enum status state_file_make(const struct param_table *table,
                                              const struct state_layout *layout,
                                              const unsigned char *state, unsigned char *out);

/* Writes layout->bytes bytes to `out_state`, which is aligned as a state is (64 bytes). */
void state_file_read(const struct param_table *table, const struct state_layout *layout,
                     const unsigned char *bytes, unsigned char *out_state);

#endif
