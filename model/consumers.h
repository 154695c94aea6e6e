/* SPDX-License-Identifier: Apache-2.0
 * Who draws random words in a run: the readable names of the ledger's (stream, op) pairs, and which
 * of them a configuration can draw. No other place names them.
 *
 * Stream `order` (mode shuffled) is not in the ledger. Its keys are drawn inside the kernels, per
 * tile and possibly more than once for one tile, so an exact count outside would be a second
 * implementation of every kernel's blocking. It is not needed either: since each word has an
 * address, the number of words drawn cannot move any other draw. Where the stream stands is
 * recorded like the place of the others. */
#ifndef TWINSTEP_MODEL_CONSUMERS_H
#define TWINSTEP_MODEL_CONSUMERS_H

#include "base/arena.h"
#include "determinism/record.h"
#include "determinism/stream.h"
#include "model/params.h"
#include "scenarios/config.h"

/* Lists the consumers of a configuration, by stream and then by op, under names like
 * "init/embedding", "data/permute", "dropout/branch-mlp" and "rounding/q". `initial` is filled but
 * for data/reject, whose words are dataset.words. Everything lives in `arena`. */
TWINSTEP_MUST_USE enum status consumers_open(const struct config *config,
                                             const struct param_table *table, struct arena *arena,
                                             struct record_consumer **out, uint32_t *out_count);

/* Lists names and numbers of those streams among data, dropout, order and rounding that the updates
 * of a configuration draw from. Returns how many there are. */
uint32_t consumers_streams(const struct config *config, const char *out_names[STREAM_COUNT],
                           uint8_t out_streams[STREAM_COUNT]);

/* Writes the words that `ledger` counted, by consumer. */
void consumers_count(const struct record_consumer *consumers, uint32_t count,
                     const struct stream_ledger *ledger, int64_t (*out_words)[RECORD_LEDGERS]);

#endif
