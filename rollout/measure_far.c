/* SPDX-License-Identifier: Apache-2.0
 * Which tokens are further apart than a floor's, and what else is known of them: where they stand,
 * their ids, how likely they are, what stands before them. Counts alone; claims_far.c says what
 * they mean. Tokens with pi >= 0.9 are left out, as they are among sizes (measure_shape.c). */
#include "base/real.h"
#include "rollout/measure_private.h"

enum status rollout_far_open(struct rollout_far *far, double line, struct arena *arena) {
    static const size_t groups[FAR_WAYS] = {
        [FAR_POSITION] = FAR_PLACES, [FAR_FIRST] = FAR_PLACES,      [FAR_LAST] = FAR_PLACES,
        [FAR_ORDER] = FAR_PLACES,    [FAR_LEFT] = FAR_PLACES,       [FAR_SINCE] = FAR_PLACES,
        [FAR_UNTIL] = FAR_PLACES,    [FAR_VERSION] = FAR_PLACES,    [FAR_PART] = FAR_PARTS,
        [FAR_ID] = MEASURE_IDS,      [FAR_ID_BEFORE] = MEASURE_IDS, [FAR_AGAIN] = FAR_PLACES,
        [FAR_ENGINE] = FAR_LOGPS,    [FAR_TRAINER] = FAR_LOGPS,     [FAR_BEHIND] = 2};
    far->line = line;
    if (!(line > 0.0)) return STATUS_OK;
    far->before = 1;
    TRY(arena_take(arena, MEASURE_IDS, sizeof *far->last, "ids", &far->last));
    for (int way = 0; way < FAR_WAYS; way++) {
        far->groups[way] = groups[way];
        TRY(arena_take(arena, groups[way], sizeof *far->all[way], "groups", &far->all[way]));
        TRY(arena_take(arena, groups[way], sizeof *far->apart[way], "groups", &far->apart[way]));
    }
    return STATUS_OK;
}

static void count_in(struct rollout_far *far, enum rollout_way way, double group, int is_far) {
    if (!(group >= 0.0)) return; /* unknown */
    const double last = (double)(far->groups[way] - 1);
    if (group > last && (way == FAR_ID || way == FAR_ID_BEFORE)) return;
    const size_t at = (size_t)(group < last ? group : last);
    far->all[way][at]++;
    far->apart[way][at] += (uint32_t)is_far;
}

static int is_uncertain(const struct rollout_token *token) {
    return !token->aside && token->pi < 0.9;
}

static int is_id(double id) {
    return id >= 0.0 && id < (double)MEASURE_IDS;
}

/* Where each id was last, of the places from `from` up to `end`, whether they count or not. */
static void note_ids(struct rollout_far *far, const struct rollout_list *ids, size_t from,
                     size_t end) {
    for (size_t i = from; ids->given == 1 && i < end && i < ids->count; i++)
        if (is_id(ids->value[i])) far->last[(size_t)ids->value[i]] = far->before + i;
}

static double again_after(const struct rollout_far *far, const struct rollout_token *token) {
    if (!is_id(token->id)) return real_nan_f64();
    const uint64_t last = far->last[(size_t)token->id];
    return last < far->before ? (double)FAR_PLACES : (double)(far->before + token->at - last);
}

/* What is known of one token apart from its place among those that are not certain. */
static void count_token(struct rollout_far *far, const struct rollout_work *work, size_t i,
                        size_t since, size_t until, int is_far) {
    const struct rollout_token *token = &work->token[i];
    const struct rollout_list *ids = &work->sequence.list[ROLLOUT_TOKENS];
    const size_t first = work->token[0].at, last = work->token[work->count - 1].at;
    count_in(far, FAR_POSITION, (double)token->position, is_far);
    count_in(far, FAR_FIRST, (double)(token->at - first), is_far);
    count_in(far, FAR_LAST, (double)(last - token->at), is_far);
    count_in(far, FAR_SINCE, (double)since, is_far);
    count_in(far, FAR_UNTIL, (double)until, is_far);
    count_in(far, FAR_PART, (double)((token->at - first) * FAR_PARTS) / (double)(last - first + 1),
             is_far);
    count_in(far, FAR_ID, token->id, is_far);
    if (token->at > 0 && ids->given == 1 && token->at - 1 < ids->count)
        count_in(far, FAR_ID_BEFORE, ids->value[token->at - 1], is_far);
    count_in(far, FAR_AGAIN, again_after(far, token), is_far);
    count_in(far, FAR_ENGINE, -token->engine * FAR_LOGP_CELLS, is_far);
    count_in(far, FAR_TRAINER, -token->trainer * FAR_LOGP_CELLS, is_far);
}

void rollout_far_add(struct rollout_work *work) {
    struct rollout_far *far = &work->out->shape.far;
    const struct rollout_list *ids = &work->sequence.list[ROLLOUT_TOKENS];
    size_t uncertain = 0, order = 0, since = 0, end = 0, noted = 0, changed = 0;
    int before = -1; /* whether the last one was far that is not certain */
    if (!(far->line > 0.0)) return;
    for (size_t i = 0; i < work->count; i++)
        uncertain += (size_t)is_uncertain(&work->token[i]);
    for (size_t i = 0; i < work->count; i++) {
        const struct rollout_token *token = &work->token[i];
        since = i > 0 && token->at == token[-1].at + 1 ? since + 1 : 0;
        for (end = end > i ? end : i; end + 1 < work->count;) {
            if (work->token[end + 1].at != work->token[end].at + 1) break;
            end++;
        }
        note_ids(far, ids, noted, token->at);
        noted = token->at;
        if (i > 0 && token->version != token[-1].version && token->version == token->version)
            changed = token->at + 1;
        if (!is_uncertain(token)) continue;
        const int is_far = real_abs_f64(token->d) / (1.0 - token->pi) >= far->line;
        far->tokens++;
        far->far += (uint64_t)is_far;
        count_in(far, FAR_ORDER, (double)order, is_far);
        count_in(far, FAR_LEFT, (double)(uncertain - 1 - order), is_far);
        count_token(far, work, i, since, end - i, is_far);
        if (changed > 0) count_in(far, FAR_VERSION, (double)(token->at + 1 - changed), is_far);
        if (before >= 0) count_in(far, FAR_BEHIND, (double)before, is_far);
        before = is_far;
        order++;
    }
    far->before += work->sequence.count;
}
