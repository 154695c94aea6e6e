/* SPDX-License-Identifier: Apache-2.0
 * Finds where the replicas of an arm part: the first update after which a rank holds other weights
 * or slots than rank 0. No log of rank 0 can show it.
 *
 * Read from the columns ranks/ of each arm alone, so that it holds whatever the verdict is. */
#include "evidence/judge_rows.h"

#include "evidence/judge_parts.h"

/* Whether a rank holds something else than rank 0 after an update. */
static int differs(const struct record *row, uint32_t rank) {
    return row->ranks[rank][RANK_FIRST_TENSOR] >= 0;
}

static enum status find(struct judging *judging, const struct trace_run *run,
                        struct judged_parting *out) {
    const uint32_t tensors = run->plan.shape.tensors;
    char *name;
    out->ranks = run->plan.shape.ranks;
    out->tensor = "";
    for (uint64_t i = 0; i < judging->out->updates; i++) {
        const struct record *const row = trace_row(run, i);
        out->parted = 0;
        for (uint32_t rank = out->ranks; rank-- > 1;) {
            if (!differs(row, rank)) continue;
            out->parted++;
            if (out->update != 0 && out->update != row->step) continue;
            const uint64_t first = (uint64_t)row->ranks[rank][RANK_FIRST_TENSOR];
            out->update = row->step;
            out->rank = rank;
            /* Without record.tensors the trace has no names. */
            TRY(arena_format(judging->arena, &name, "number %llu of the model",
                             (unsigned long long)first + 1));
            out->tensor = first < tensors ? run->plan.tensors[first] : name;
        }
    }
    return STATUS_OK;
}

enum status judge_replicas(struct judging *judging) {
    for (int arm = 0; arm < 2; arm++)
        TRY(find(judging, judging->run[arm], &judging->out->parting[arm]));
    return STATUS_OK;
}

void judge_row_replicas(const struct judgement *judgement, struct row_pen *pen) {
    for (int arm = 0; arm < 2; arm++) {
        const struct judged_parting *const parting = &judgement->parting[arm];
        if (parting->update == 0) continue;
        row_add(pen, ROW_REPLICAS, "those of %s part at update %llu, rank %u, tensor %s",
                judgement->arms[arm], (unsigned long long)parting->update, parting->rank,
                parting->tensor);
        row_put(
            pen,
            "\nafter update %llu, %u of %u ranks hold other bits than rank 0, whose weights and "
            "norm are those told here",
            (unsigned long long)judgement->updates, parting->parted, parting->ranks);
    }
}
