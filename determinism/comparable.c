/* SPDX-License-Identifier: Apache-2.0
 * Compares what two foreign runs say of their digests: kind, tensors, processes. */
#include "determinism/comparable.h"

#include <string.h>

#include "determinism/trace.h"

static enum status compare_tensors(const struct trace_run_plan *a, const struct trace_run_plan *b) {
    const uint32_t counts[2] = {a->shape.tensors, b->shape.tensors};
    for (uint32_t i = 0; i < counts[0] && i < counts[1]; i++) {
        if (strcmp(a->tensors[i], b->tensors[i]) != 0)
            FAIL(STATUS_INPUT,
                 "tensor %u is \"%s\" in A and \"%s\" in B: digests of unlike tensors cannot be "
                 "compared",
                 i, a->tensors[i], b->tensors[i]);
        if (strcmp(a->foreign->dtypes[i], b->foreign->dtypes[i]) != 0 ||
            strcmp(a->foreign->shapes[i], b->foreign->shapes[i]) != 0)
            FAIL(STATUS_INPUT,
                 "tensor \"%s\" is %s [%s] in A and %s [%s] in B: digests of unlike tensors cannot "
                 "be compared",
                 a->tensors[i], a->foreign->dtypes[i], a->foreign->shapes[i], b->foreign->dtypes[i],
                 b->foreign->shapes[i]);
    }
    if (counts[0] == counts[1]) return STATUS_OK;
    const struct trace_run_plan *more = counts[0] > counts[1] ? a : b;
    FAIL(STATUS_INPUT,
         "A has %u tensors and B %u: \"%s\" is in %s alone, so digests cannot be compared",
         counts[0], counts[1], more->tensors[counts[0] < counts[1] ? counts[0] : counts[1]],
         more == a ? "A" : "B");
}

static enum status compare_processes(const struct trace_foreign *a, const struct trace_foreign *b) {
    if (strcmp(a->digest, b->digest) != 0)
        FAIL(STATUS_INPUT,
             "A has digests of kind \"%s\" and B of kind \"%s\": digests of unlike kinds cannot be "
             "compared",
             a->digest, b->digest);
    if (a->world != b->world && strcmp(a->digest, "keyed 1") != 0)
        FAIL(
            STATUS_INPUT,
            "A is of %lld processes and B of %lld: digests \"%s\" of shards do not add up, \"keyed "
            "1\" do",
            (long long)a->world, (long long)b->world, a->digest);
    if (a->world == b->world && a->rank != b->rank)
        FAIL(STATUS_INPUT, "A is of process %lld and B of process %lld: expected the same one",
             (long long)a->rank, (long long)b->rank);
    return STATUS_OK;
}

static int has_root(const struct record *record) {
    static const uint8_t none[RECORD_DIGEST_BYTES] = {0};
    return memcmp(record->digests[DIGEST_ROOT], none, sizeof none) != 0;
}

enum status runs_comparable(const struct trace_run *a, const struct trace_run *b, uint64_t *out) {
    const struct trace_foreign *x = a->plan.foreign, *y = b->plan.foreign;
    *out = 0;
    if ((x == NULL) != (y == NULL)) return STATUS_OK;
    if (x != NULL && x->digest[0] != '\0' && y->digest[0] != '\0') {
        TRY(compare_processes(x, y));
        TRY(compare_tensors(&a->plan, &b->plan));
    }
    for (uint64_t i = 0, j = 0; i < a->updates && j < b->updates;) {
        const struct record *one = trace_row(a, i), *other = trace_row(b, j);
        *out += one->step == other->step && has_root(one) && has_root(other);
        i += one->step <= other->step;
        j += other->step <= one->step;
    }
    return STATUS_OK;
}
