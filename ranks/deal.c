/* SPDX-License-Identifier: Apache-2.0
 * The deals of ranks/deal.h. Held against DistributedSampler and BatchSamplerShard themselves:
 * tests/ranks/test_deal.c. */
#include "ranks/deal.h"

#define COUNT_MAX ((uint64_t)1 << 48)
#define RANKS_MAX 1024u

const char *deal_name(enum deal_kind kind) {
    static const char *const names[] = {
        [DEAL_CYCLIC] = "cyclic", [DEAL_MICROS] = "micros", [DEAL_SLICES] = "slices"};
    return names[kind];
}

const char *deal_tail_name(enum deal_tail tail) {
    static const char *const names[] = {
        [DEAL_PAD] = "pad", [DEAL_DROP] = "drop", [DEAL_SHORT] = "short"};
    return names[tail];
}

enum status deal_check(const struct deal_call *call) {
    if (call->count < 1 || call->count > COUNT_MAX)
        FAIL(STATUS_INPUT, "samples: expected 1 to 2^48, got %llu",
             (unsigned long long)call->count);
    if (call->ranks < 1 || call->ranks > RANKS_MAX)
        FAIL(STATUS_INPUT, "ranks: expected 1 to %u, got %u", RANKS_MAX, call->ranks);
    if (call->batch < 1 || call->batch > COUNT_MAX / RANKS_MAX)
        FAIL(STATUS_INPUT, "batch: expected 1 to 2^38 samples, got %llu",
             (unsigned long long)call->batch);
    if (call->kind == DEAL_SLICES && call->batch % call->ranks != 0)
        FAIL(STATUS_INPUT,
             "batch: expected a multiple of %u, because split_batches cuts a batch into as many "
             "slices as there are ranks, got %llu",
             call->ranks, (unsigned long long)call->batch);
    if (call->kind == DEAL_CYCLIC && call->tail == DEAL_SHORT)
        FAIL(STATUS_INPUT, "tail: DistributedSampler pads or drops; expected pad or drop, got "
                           "short");
    return STATUS_OK;
}

/* Samples of a piece. */
static uint64_t piece_of(const struct deal_call *call) {
    if (call->kind == DEAL_CYCLIC) return 1;
    return call->kind == DEAL_SLICES ? call->batch / call->ranks : call->batch;
}

uint64_t deal_batch_size(const struct deal_call *call) {
    return call->kind == DEAL_SLICES ? call->batch / call->ranks : call->batch;
}

uint64_t deal_length(const struct deal_call *call, uint32_t rank) {
    const uint64_t piece = piece_of(call), round = piece * call->ranks;
    const uint64_t whole = call->count / round * piece, rest = call->count % round;
    if (rest == 0 || call->tail == DEAL_DROP) return whole;
    if (call->tail == DEAL_PAD) return whole + piece;
    if (rest <= rank * piece) return whole;
    return whole + (rest - rank * piece < piece ? rest - rank * piece : piece);
}

/* What is missing in the last round begins anew with the first samples, over and over where a round
 * is longer than the epoch. */
uint64_t deal_sample(const struct deal_call *call, uint32_t rank, uint64_t index) {
    const uint64_t piece = piece_of(call);
    const uint64_t sample = (index / piece * call->ranks + rank) * piece + index % piece;
    return sample < call->count ? sample : (sample - call->count) % call->count;
}
