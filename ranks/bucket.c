/* SPDX-License-Identifier: Apache-2.0
 * The buckets of ranks/bucket.h. The rules are those of compute_bucket_assignment_by_size and
 * rebuild_buckets in torch's reducer.cpp, of distributed.py, and of foreach_reduce_scatter in
 * _fsdp_collectives.py; tests/ranks/test_bucket.c holds them against torch 2.15. */
#include "ranks/bucket.h"

#include <string.h>

#define COUNT_MAX ((uint64_t)1 << 48)
#define RANKS_MAX 1024u

static enum status check(const struct bucket_call *call) {
    if (call->count == 0 || call->count > UINT32_MAX)
        FAIL(STATUS_INPUT, "tensors: expected 1 to 2^32 - 1, got %zu", call->count);
    if (call->first == 0 || call->cap == 0)
        FAIL(STATUS_INPUT, "bucket: expected limits of 1 byte at least, got %llu and %llu",
             (unsigned long long)call->first, (unsigned long long)call->cap);
    uint64_t total = 0;
    for (size_t i = 0; i < call->count; i++) {
        if (call->sizes[i] == 0 || call->sizes[i] > COUNT_MAX - total)
            FAIL(STATUS_INPUT,
                 "tensor %zu: expected 1 to 2^48 elements, also of all together, got "
                 "%llu behind %llu",
                 i, (unsigned long long)call->sizes[i], (unsigned long long)total);
        total += call->sizes[i];
    }
    return STATUS_OK;
}

/* Copies the order of arrival; `seen` is there to find a tensor that comes twice. */
static enum status take_arrival(const struct bucket_call *call, uint32_t *order, uint64_t *seen) {
    memset(seen, 0, call->count * sizeof *seen);
    for (size_t i = 0; i < call->count; i++) {
        order[i] = call->arrival == NULL ? (uint32_t)(call->count - 1 - i) : call->arrival[i];
        if (order[i] >= call->count || seen[order[i]])
            FAIL(STATUS_INPUT, "arrival: expected each of %zu tensors once, got %u at place %zu",
                 call->count, order[i], i);
        seen[order[i]] = 1;
    }
    return STATUS_OK;
}

/* A bucket is full when it has reached its limit, so the tensor that passes the limit is in it. */
static size_t fill(const struct bucket_call *call, const uint32_t *order, uint64_t first,
                   uint64_t later, struct bucket_place *places, uint64_t *lengths) {
    size_t bucket = 0;
    uint64_t length = 0;
    for (size_t i = 0; i < call->count; i++) {
        const uint32_t tensor = order[i];
        places[tensor] = (struct bucket_place){.bucket = (uint32_t)bucket, .offset = length};
        length += call->sizes[tensor];
        lengths[bucket] = length;
        if (length * call->width < (bucket == 0 ? first : later)) continue;
        bucket++;
        length = 0;
    }
    return length > 0 ? bucket + 1 : bucket;
}

/* Before update 1 nothing has arrived. DDP then takes the tensors in the order of their definition,
 * in one bucket, because it knows that it will lay them out anew; with unused parameters it will
 * not, so it fills buckets and reduces the last of them first. */
enum status bucket_ddp(const struct bucket_call *call, uint64_t update, uint32_t *scratch,
                       struct bucket_place *places, uint64_t *lengths, size_t *out_buckets) {
    TRY(check(call));
    TRY(take_arrival(call, scratch, lengths));
    if (update > 1 && !call->finds_unused) {
        *out_buckets = fill(call, scratch, call->first, call->cap, places, lengths);
        return STATUS_OK;
    }
    for (size_t i = 0; i < call->count; i++)
        scratch[i] = (uint32_t)i;
    if (!call->finds_unused) {
        *out_buckets = fill(call, scratch, UINT64_MAX, UINT64_MAX, places, lengths);
        return STATUS_OK;
    }
    const size_t buckets = fill(call, scratch, call->first, call->cap, places, lengths);
    for (size_t i = 0; i < call->count; i++)
        places[i].bucket = (uint32_t)buckets - 1 - places[i].bucket;
    for (size_t i = 0; i < buckets / 2; i++) {
        const uint64_t length = lengths[i];
        lengths[i] = lengths[buckets - 1 - i];
        lengths[buckets - 1 - i] = length;
    }
    *out_buckets = buckets;
    return STATUS_OK;
}

enum status bucket_group_check(const struct bucket_group *group) {
    uint64_t total = 0;
    if (group->ranks < 1 || group->ranks > RANKS_MAX)
        FAIL(STATUS_INPUT, "ranks: expected 1 to %u, got %u", RANKS_MAX, group->ranks);
    if (group->count == 0) FAIL(STATUS_INPUT, "tensors: expected one at least, got none");
    for (size_t i = 0; i < group->count; i++) {
        const uint64_t rows = group->rows[i], length = group->row_lengths[i];
        if (rows == 0 || length == 0 || rows > COUNT_MAX || length > COUNT_MAX / (rows + RANKS_MAX))
            FAIL(STATUS_INPUT, "tensor %zu: expected 1 to 2^48 elements, got %llu rows of %llu", i,
                 (unsigned long long)rows, (unsigned long long)length);
        total += bucket_group_part(group, i) * group->ranks;
        if (total > COUNT_MAX)
            FAIL(STATUS_INPUT, "tensor %zu: expected at most 2^48 elements of all together", i);
    }
    return STATUS_OK;
}

uint64_t bucket_group_part(const struct bucket_group *group, size_t tensor) {
    const uint64_t rows = (group->rows[tensor] + group->ranks - 1) / group->ranks;
    return rows * group->row_lengths[tensor];
}

uint64_t bucket_group_length(const struct bucket_group *group) {
    uint64_t part = 0;
    for (size_t i = 0; i < group->count; i++)
        part += bucket_group_part(group, i);
    return part * group->ranks;
}

uint64_t bucket_group_place(const struct bucket_group *group, size_t tensor, uint64_t element) {
    const uint64_t own = bucket_group_part(group, tensor), rank = element / own;
    uint64_t before = 0;
    for (size_t i = 0; i < tensor; i++)
        before += bucket_group_part(group, i);
    return rank * (bucket_group_length(group) / group->ranks) + before + element % own;
}
