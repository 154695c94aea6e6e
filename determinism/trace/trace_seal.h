/* SPDX-License-Identifier: Apache-2.0
 * The seals of a trace (docs/TRACE.md): digests over names, texts, axes, configurations and
 * results, which no row's `check` covers. They find damage, not forgery: who can write a trace can
 * write its seals, too.
 *
 * The file is private to determinism/trace/. */
#ifndef TWINSTEP_DETERMINISM_TRACE_TRACE_SEAL_H
#define TWINSTEP_DETERMINISM_TRACE_TRACE_SEAL_H

#include "determinism/digest.h"
#include "determinism/trace.h"
#include "determinism/trace/hdf5_reader.h"

#define SEAL_NAME "seal" /* u8 [64]: the opening seal, then one of the closing ones */
#define SEAL_BYTES 64

enum { SEAL_OPENING, SEAL_COMPLETE, SEAL_UNFINISHED, SEALS };

/* Computes all three from the open file of `reader`, whose arena and budget stay as they are. */
TWINSTEP_MUST_USE enum status seal_compute(const struct reader *reader, struct digest out[SEALS]);

/* Holds the file against the seals that it stores, and says in `image` which they are. STATUS_INPUT
 * where they do not agree, or where `demanded` and there are none. */
TWINSTEP_MUST_USE enum status seal_check(struct reader *reader, int demanded,
                                         struct trace_image *image);

#endif
