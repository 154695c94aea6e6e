/* SPDX-License-Identifier: Apache-2.0
 * Who draws random words in a run: the readable names of the ledger's (stream, op) pairs, and which
 * of them a configuration can draw. The only place that names them.
 *
 * Stream `order` (mode shuffled) is not in the ledger: its keys are drawn inside the kernels, per
 * tile and possibly more than once for one tile, so an exact count outside would be a second
 * implementation of every kernel's blocking; and since each word has an address, the number of
 * words drawn cannot move any other draw. Where it stands is recorded like that of the others. */
#ifndef TWINSTEP_TRAINER_CONSUMERS_H
#define TWINSTEP_TRAINER_CONSUMERS_H

#include "base/arena.h"
#include "determinism/record.h"
#include "determinism/stream.h"
#include "model/params.h"
#include "scenarios/config.h"

/* The consumers of a configuration, by stream, then op; names like "init/embedding",
 * "data/permute", "dropout/branch-mlp", "rounding/q". `initial` is filled but for data/reject,
 * whose words are dataset.words. Everything lives in `arena`. */
TWINSTEP_MUST_USE enum status consumers_open(const struct config *config,
                                             const struct param_table *table, struct arena *arena,
                                             struct record_consumer **out, uint32_t *out_count);

/* The streams that the updates of a configuration draw from, of data, dropout, order and rounding:
 * names and numbers. Returns how many. */
uint32_t consumers_streams(const struct config *config, const char *out_names[STREAM_COUNT],
                           uint8_t out_streams[STREAM_COUNT]);

/* The words that `ledger` counted, by consumer. */
void consumers_count(const struct record_consumer *consumers, uint32_t count,
                     const struct stream_ledger *ledger, int64_t (*out_words)[RECORD_LEDGERS]);

#endif
