/* SPDX-License-Identifier: Apache-2.0
 * Makes the roots of a foreign run of the columns that its writer recorded (docs/FOREIGN.md). */
#include <string.h>

#include "determinism/digest.h"
#include "determinism/foreign.h"
#include "determinism/root.h"
#include "determinism/trace.h"

static int is_absent(const uint8_t *digest) {
    static const uint8_t none[DIGEST_BYTES] = {0};
    return memcmp(digest, none, DIGEST_BYTES) == 0;
}

/* Makes digest_weights of the tensors' digests. Returns 0 where one of them was not taken. */
static int derive_weights(const struct trace_run_plan *plan, struct record *record) {
    const uint32_t count = plan->shape.tensors;
    struct digest digest;
    for (uint32_t t = 0; t < count; t++)
        if (is_absent(record->tensor_digests[t][TENSOR_DIGEST_PARAMETER])) return 0;
    if (count == 0) return 0;
    digest_root_apart("weights", record->tensor_digests[0][TENSOR_DIGEST_PARAMETER],
                      sizeof *record->tensor_digests, count, &digest);
    memcpy(record->digests[DIGEST_WEIGHTS], digest.byte, DIGEST_BYTES);
    return 1;
}

static int derive_lr(const struct trace_run_plan *plan, struct record *record) {
    const uint32_t *groups = plan->foreign->groups;
    struct digest digest;
    if (groups == NULL) return 0;
    for (uint32_t g = 0; g < plan->shape.groups; g++)
        if (record->groups[g][GROUP_LR_APPLIED] != record->groups[g][GROUP_LR_APPLIED]) return 0;
    root_lr_groups(record, groups, plan->shape.tensors, &digest);
    memcpy(record->digests[DIGEST_LR], digest.byte, DIGEST_BYTES);
    return 1;
}

int foreign_parts(const struct trace_run_plan *plan, struct record *record) {
    if (is_absent(record->digests[DIGEST_WEIGHTS]) && !derive_weights(plan, record)) return 0;
    return !is_absent(record->digests[DIGEST_LR]) || derive_lr(plan, record);
}

void trace_derive_roots(struct trace_run *run) {
    struct digest root = {{0}};
    int whole = run->updates > 0;
    for (uint64_t i = 0; i < run->updates; i++)
        whole = foreign_parts(&run->plan, &run->records[i]) && whole &&
                is_absent(run->records[i].digests[DIGEST_ROOT]);
    for (uint64_t i = 0; i < run->updates && whole; i++) {
        root_next(&root, &run->records[i], &root);
        memcpy(run->records[i].digests[DIGEST_ROOT], root.byte, DIGEST_BYTES);
    }
    run->derived = whole;
}
