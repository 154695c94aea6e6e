/* SPDX-License-Identifier: Apache-2.0
 * The first difference of two arms, by digests: update, phase, tensor or activation site; and who
 * drew other random words. */
#include "evidence/judge_parts.h"

#include <string.h>

#include "determinism/first.h"

void judge_first(struct court *court) {
    for (uint64_t i = 0; i < court->out->updates; i++) {
        const struct record *a = &court->run[0]->records[i], *b = &court->run[1]->records[i];
        if (memcmp(a->digests[DIGEST_ROOT], b->digests[DIGEST_ROOT], RECORD_DIGEST_BYTES) == 0)
            continue;
        struct first_difference first;
        first_find(&court->run[0]->plan, a, &court->run[1]->plan, b, &first);
        court->out->first_step = (int64_t)a->step;
        court->out->first_phase = first.phase;
        court->out->first_tensor = first.tensor;
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
