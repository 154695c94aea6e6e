/* SPDX-License-Identifier: Apache-2.0
 * Sums of a ledger of random words, which the program itself keeps by stream and op. */
#ifndef TWINSTEP_TESTS_DETERMINISM_HELPER_LEDGER_H
#define TWINSTEP_TESTS_DETERMINISM_HELPER_LEDGER_H

#include "determinism/stream.h"

/* The words that all ops drew from a stream. */
static inline uint64_t helper_ledger_total(const struct stream_ledger *ledger, enum stream stream) {
    uint64_t total = 0;
    for (size_t op = 0; op < STREAM_OPS; op++)
        total += ledger->words[stream][op];
    return total;
}

#endif
