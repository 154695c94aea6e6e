/* SPDX-License-Identifier: Apache-2.0
 * The game of an ablation with sets of factors that cancel as one player each, from the hybrids
 * that were run: of the mixtures of groups each is a mixture of factors. It has figures and a word
 * of its own, in a copy of the verdict. Where a mixture was not run, as with sampled orders, there
 * is none. */
#include <math.h>

#include "ablate/ablate_private.h"
#include "determinism/shapley.h"

static struct attributed exactly(double value) {
    return (struct attributed){value, value, value};
}

/* Marks the sets that become groups: those that cancel in the baseline and in test, and that share
 * no factor with one before. Returns their factors. */
static uint32_t choose_groups(struct ablate_verdict *out) {
    uint32_t taken = 0;
    for (uint32_t l = 0; l < out->linked_count; l++) {
        struct ablate_linked *const linked = &out->linked[l];
        if (linked->how != ABLATE_CANCEL || (linked->mask & taken) != 0) continue;
        linked->is_joined = 1;
        taken |= linked->mask;
    }
    return taken;
}

/* "a with b": the names in the file's order. */
static enum status name_of(const struct judging *judging, uint32_t mask, const char **out) {
    char *text = NULL;
    for (uint32_t i = 0; i < judging->plan->file->factor_count; i++) {
        const char *const name = judging->plan->file->factors[i].name;
        if ((mask >> i & 1u) == 0) continue;
        if (text == NULL)
            TRY(arena_format(judging->arena, &text, "%s", name));
        else
            TRY(arena_format(judging->arena, &text, "%s with %s", text, name));
    }
    *out = text;
    return STATUS_OK;
}

static double loss_of(const struct judging *judging, uint32_t mask) {
    const int64_t step = judging->out->step;
    const struct ablate_left *const left = ablate_hybrid_of(judging, mask);
    if (step == 0 || left == NULL) return ABLATE_UNKNOWN;
    return ablate_loss_at(left, step) - ablate_loss_at(ablate_left_of(judging, 0, 0, 1), step);
}

/* A group as a factor of the verdict; of one factor all stays but what the game decides. */
static enum status make_player(const struct judging *judging, uint32_t mask, uint32_t index,
                               struct ablate_judged *out) {
    const struct ablate_verdict *const verdict = judging->out;
    const uint32_t rest = judging->full & ~mask;
    *out = (struct ablate_judged){.pairs = 1,
                                  .planned = 1,
                                  .alone_equal = -1,
                                  .left_equal = -1,
                                  .repeats_alone = -1,
                                  .first = {0, "", ""}};
    for (uint32_t i = 0; i < verdict->factor_count; i++)
        if (verdict->factors[i].mask == mask) *out = verdict->factors[i];
    TRY(name_of(judging, mask, &out->name));
    out->factor = index;
    out->mask = mask;
    out->moves_alone = judging->size[ablate_place_of(judging, mask)];
    out->moves_left = judging->size[ablate_place_of(judging, rest)];
    out->alone = exactly(out->moves_alone / verdict->full);
    out->left = exactly(out->moves_left / verdict->full);
    out->loss_alone = loss_of(judging, mask);
    out->loss_left = loss_of(judging, rest);
    return STATUS_OK;
}

static int is_group(const struct ablate_judged *of) {
    return (of->mask & (of->mask - 1)) != 0;
}

enum status ablate_join(struct judging *judging) {
    struct ablate_verdict *const out = judging->out, *joined;
    const uint32_t factors = judging->plan->file->factor_count;
    if (judging->plan->orders.count > 0 || factors > SHAPLEY_MAX ||
        isnan(out->factors[0].share.value))
        return STATUS_OK;
    const uint32_t taken = choose_groups(out);
    if (taken == 0) return STATUS_OK;
    TRY(arena_take(judging->arena, 1, sizeof *joined, "verdict", &joined));
    *joined = *out;
    uint32_t count = 0;
    for (uint32_t l = 0; l < out->linked_count; l++)
        if (out->linked[l].is_joined) {
            TRY(make_player(judging, out->linked[l].mask, count, &joined->factors[count]));
            count++;
        }
    for (uint32_t i = 0; i < factors; i++)
        if ((taken >> i & 1u) == 0) {
            TRY(make_player(judging, 1u << i, count, &joined->factors[count]));
            count++;
        }
    joined->factor_count = count;
    struct judging game = *judging;
    game.out = joined;
    game.set_count = 1u << count;
    game.largest = 0.0; /* a part of a group may go far, and is no mixture of this game */
    TRY(arena_take(judging->arena, game.set_count, sizeof *game.sets, "hybrids", &game.sets));
    double way[SHAPLEY_SUBSETS];
    for (uint32_t set = 0; set < game.set_count; set++) {
        uint32_t mask = 0;
        for (uint32_t g = 0; g < count; g++)
            if ((set >> g & 1u) != 0) mask |= joined->factors[g].mask;
        const uint32_t place = ablate_place_of(judging, mask);
        way[set] = judging->way[place];
        if (judging->size[place] > game.largest) game.largest = judging->size[place];
        game.sets[set] = (struct attribution_set){set, exactly(judging->size[place] / out->full)};
    }
    struct shapley shapley;
    TRY(shapley_attribute(count, way, &shapley));
    for (uint32_t g = 0; g < count; g++)
        joined->factors[g].share = exactly(shapley.share[g]);
    joined->residual = shapley.residual / shapley.whole;
    joined->joined = NULL;
    ablate_sort_factors(joined);
    TRY(ablate_choose_word(&game));
    /* a list of causes leaves out a group that makes none of the way, as it does a factor */
    for (uint32_t g = 0; g < count; g++)
        joined->factors[g].is_idle |=
            is_group(&joined->factors[g]) && fabs(joined->factors[g].share.value) <= SHARE_TIE;
    out->joined = joined;
    return STATUS_OK;
}
