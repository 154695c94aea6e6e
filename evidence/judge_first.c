/* SPDX-License-Identifier: Apache-2.0
 * The first difference of the two arms, found by digests alone: its update, phase, and tensor or
 * activation; and which arm drew other random words. */
#include "evidence/judge_parts.h"

#include <string.h>

#include "determinism/first.h"

void judge_first(struct judging *judging) {
    for (uint64_t i = 0; i < judging->out->updates; i++) {
        const struct record *a = &judging->run[0]->records[i], *b = &judging->run[1]->records[i];
        if (memcmp(a->digests[DIGEST_ROOT], b->digests[DIGEST_ROOT], RECORD_DIGEST_BYTES) == 0)
            continue;
        struct first_difference first;
        first_find(&judging->run[0]->plan, a, &judging->run[1]->plan, b, &first);
        judging->out->first_step = (int64_t)a->step;
        judging->out->first_phase = first.phase;
        judging->out->first_tensor = first.tensor;
        return;
    }
}

enum status judge_rng(struct judging *judging) {
    struct judgement *out = judging->out;
    char *words;
    ledger_compare(judging->run[0], judging->run[1], &out->rng);
    if (out->first_step < 0) return STATUS_OK;
    TRY(ledger_words(&out->rng, out->arms, judging->arena, &words));
    out->rng_words = words;
    return STATUS_OK;
}
