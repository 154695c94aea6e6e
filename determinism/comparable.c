/* SPDX-License-Identifier: Apache-2.0
 * Compares what two foreign runs say of their digests: kind, tensors, processes. */
#include "determinism/comparable.h"

#include <stdio.h>
#include <string.h>

#include "determinism/trace.h"

int runs_unlike(const struct trace_run *a, const struct trace_run *b,
                char out_text[COMPARABLE_WHY]) {
    const struct trace_run_plan *const x = &a->plan, *const y = &b->plan;
    const uint32_t counts[2] = {x->shape.tensors, y->shape.tensors};
    out_text[0] = '\0';
    if (x->foreign == NULL || y->foreign == NULL || x->foreign->digest[0] == '\0' ||
        y->foreign->digest[0] == '\0')
        return 0;
    for (uint32_t i = 0; i < counts[0] && i < counts[1]; i++) {
        if (strcmp(x->tensors[i], y->tensors[i]) != 0) {
            snprintf(out_text, COMPARABLE_WHY, "tensor %u is \"%s\" in A and \"%s\" in B", i,
                     x->tensors[i], y->tensors[i]);
            return 1;
        }
        if (strcmp(x->foreign->dtypes[i], y->foreign->dtypes[i]) != 0 ||
            strcmp(x->foreign->shapes[i], y->foreign->shapes[i]) != 0) {
            snprintf(out_text, COMPARABLE_WHY, "tensor \"%s\" is %s [%s] in A and %s [%s] in B",
                     x->tensors[i], x->foreign->dtypes[i], x->foreign->shapes[i],
                     y->foreign->dtypes[i], y->foreign->shapes[i]);
            return 1;
        }
    }
    if (counts[0] == counts[1]) return 0;
    const struct trace_run_plan *more = counts[0] > counts[1] ? x : y;
    snprintf(out_text, COMPARABLE_WHY, "A has %u tensors and B %u: \"%s\" is in %s alone",
             counts[0], counts[1], more->tensors[counts[0] < counts[1] ? counts[0] : counts[1]],
             more == x ? "A" : "B");
    return 1;
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
        char why[COMPARABLE_WHY];
        if (runs_unlike(a, b, why))
            FAIL(STATUS_INPUT, "%s: digests of unlike tensors cannot be compared", why);
    }
    for (uint64_t i = 0, j = 0; i < a->updates && j < b->updates;) {
        const struct record *one = trace_row(a, i), *other = trace_row(b, j);
        *out += one->step == other->step && has_root(one) && has_root(other);
        i += one->step <= other->step;
        j += other->step <= one->step;
    }
    return STATUS_OK;
}
