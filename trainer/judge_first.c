/* SPDX-License-Identifier: Apache-2.0
 * The first difference of two arms, by digests: update, phase, tensor or activation site. */
#include "trainer/judge_parts.h"

#include <string.h>

static int digest_differs(const uint8_t *a, const uint8_t *b) {
    return memcmp(a, b, RECORD_DIGEST_BYTES) != 0;
}

static int digest_absent(const uint8_t *digest) {
    for (int i = 0; i < RECORD_DIGEST_BYTES; i++)
        if (digest[i] != 0) return 0;
    return 1;
}

static int find_name(const char *const *names, uint32_t count, const char *name) {
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return (int)i;
    return -1;
}

/* First phase, in the baseline's order, that both arms ran and whose digests differ. */
static void find_phase(struct court *court, const struct record *a, const struct record *b) {
    const struct trace_run_plan *x = &court->run[0]->plan, *y = &court->run[1]->plan;
    for (uint32_t i = 0; i < x->shape.phases; i++) {
        int other = find_name(y->phases, y->shape.phases, x->phases[i]);
        if (other < 0 || digest_absent(a->phases[i]) || digest_absent(b->phases[other])) continue;
        if (!digest_differs(a->phases[i], b->phases[other])) continue;
        court->out->first_phase = x->phases[i];
        return;
    }
}

static void find_site(struct court *court, const struct record *a, const struct record *b) {
    const struct trace_run_plan *x = &court->run[0]->plan, *y = &court->run[1]->plan;
    for (uint32_t i = 0; i < x->shape.sites && i < y->shape.sites; i++)
        if (digest_differs(a->sites[i], b->sites[i])) {
            court->out->first_tensor = x->sites[i];
            return;
        }
}

/* Backward runs from the head to the embedding: the last tensor of the table comes first. */
static void find_tensor(struct court *court, const struct record *a, const struct record *b,
                        enum record_tensor_digest which) {
    const struct trace_run_plan *x = &court->run[0]->plan, *y = &court->run[1]->plan;
    uint32_t count = x->shape.tensors < y->shape.tensors ? x->shape.tensors : y->shape.tensors;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t t = which == TENSOR_DIGEST_GRADIENT ? count - 1 - i : i;
        if (!digest_differs(a->tensor_digests[t][which], b->tensor_digests[t][which])) continue;
        court->out->first_tensor = x->tensors[t];
        return;
    }
}

void judge_first(struct court *court) {
    for (uint64_t i = 0; i < court->out->updates; i++) {
        const struct record *a = &court->run[0]->records[i], *b = &court->run[1]->records[i];
        if (!digest_differs(a->digests[DIGEST_ROOT], b->digests[DIGEST_ROOT])) continue;
        court->out->first_step = (int64_t)a->step;
        find_phase(court, a, b);
        if (strcmp(court->out->first_phase, "forward") == 0) find_site(court, a, b);
        if (strcmp(court->out->first_phase, "backward") == 0)
            find_tensor(court, a, b, TENSOR_DIGEST_GRADIENT);
        if (strcmp(court->out->first_phase, "optimize") == 0)
            find_tensor(court, a, b, TENSOR_DIGEST_PARAMETER);
        return;
    }
}

enum status judge_rng(struct court *court) {
    struct judgement *out = court->out;
    char *words;
    ledger_compare(court->run[0], court->run[1], &out->rng);
    if (out->first_step < 0) return STATUS_OK;
    TRY(ledger_words(&out->rng, out->arms, court->arena, &words));
    out->rng_words = words;
    return STATUS_OK;
}
