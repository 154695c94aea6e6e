/* SPDX-License-Identifier: Apache-2.0
 * Makes the roots of a foreign run of the columns that its writer recorded (docs/FOREIGN.md). */
#include <string.h>

#include "base/real.h"
#include "determinism/digest.h"
#include "determinism/foreign.h"
#include "determinism/root.h"
#include "determinism/trace.h"

static int lacks_lr(const struct record *record, uint32_t group) {
    return record->groups[group][GROUP_LR_APPLIED] != record->groups[group][GROUP_LR_APPLIED];
}

/* Whether an LR that is not there says that its group took no step: the row was skipped, or another
 * group of it has one (optimizers that alternate, or that begin later). Anywhere else the writer
 * left it out, and what was applied is not known. */
static int may_lack_lr(const struct trace_run_plan *plan, const struct record *record) {
    if (record->integers[INTEGER_SKIPPED] == 1) return 1;
    for (uint32_t g = 0; g < plan->shape.groups; g++)
        if (!lacks_lr(record, g)) return 1;
    return 0;
}

const char *foreign_missing(const struct trace_run_plan *plan, const struct record *record,
                            uint32_t *out_index) {
    *out_index = 0;
    if (!record_has_digest(record->digests[DIGEST_WEIGHTS])) {
        for (uint32_t t = 0; t < plan->shape.tensors; t++)
            if (!record_has_digest(record->tensor_digests[t][TENSOR_DIGEST_PARAMETER])) {
                *out_index = t;
                return "tensors/digest_parameter";
            }
        if (plan->shape.tensors == 0) return "tensors/digest_parameter";
    }
    if (record_has_digest(record->digests[DIGEST_LR])) return NULL;
    if (plan->foreign->groups == NULL) return "tensors/group";
    for (uint32_t g = 0; g < plan->shape.groups; g++)
        if (lacks_lr(record, g) && !may_lack_lr(plan, record)) {
            *out_index = g;
            return "lr_applied";
        }
    return NULL;
}

/* Every absent LR gets the bits of one NaN first: writers may store any NaN, and two rows that both
 * say "no step" are the same. */
int foreign_parts(const struct trace_run_plan *plan, struct record *record) {
    struct digest digest;
    uint32_t index;
    if (foreign_missing(plan, record, &index) != NULL) return 0;
    if (!record_has_digest(record->digests[DIGEST_WEIGHTS])) {
        digest_root_apart("weights", record->tensor_digests[0][TENSOR_DIGEST_PARAMETER],
                          sizeof *record->tensor_digests, plan->shape.tensors, &digest);
        memcpy(record->digests[DIGEST_WEIGHTS], digest.byte, DIGEST_BYTES);
    }
    if (record_has_digest(record->digests[DIGEST_LR])) return 1;
    for (uint32_t g = 0; g < plan->shape.groups; g++)
        if (lacks_lr(record, g)) record->groups[g][GROUP_LR_APPLIED] = real_nan_f64();
    root_lr_groups(record, plan->foreign->groups, plan->shape.tensors, &digest);
    memcpy(record->digests[DIGEST_LR], digest.byte, DIGEST_BYTES);
    return 1;
}

void trace_derive_roots(struct trace_run *run) {
    struct digest root = {{0}};
    int whole = run->updates > 0;
    for (uint64_t i = 0; i < run->updates; i++)
        whole = foreign_parts(&run->plan, &run->records[i]) && whole &&
                !record_has_digest(run->records[i].digests[DIGEST_ROOT]);
    for (uint64_t i = 0; i < run->updates && whole; i++) {
        root_next(&root, &run->records[i], &root);
        memcpy(run->records[i].digests[DIGEST_ROOT], root.byte, DIGEST_BYTES);
    }
    run->derived = whole;
}
