/* SPDX-License-Identifier: Apache-2.0
 * Source: torch 2.15, torch/optim/adam.py, _single_tensor_adam: param.mul_(1 - lr * weight_decay);
 * denom = (exp_avg_sq.sqrt() / bias_correction2_sqrt).add_(eps); param.addcdiv_(exp_avg, denom,
 * value=-step_size), whose loop computes in f32 and rounds once to the dtype of the weights. */
#include "readback/replayed.h"

#include "base/real.h"
#include "base/real_round.h"

/* Weights that one rate must explain and the other not: below that chance may decide. */
#define REPLAYED_AHEAD 16

/* What every element shares, as f32 holds it. */
struct scalars {
    float keep, root, eps, size; /* 1 - lr * decay; sqrt(1 - beta2^t); eps; -lr / (1 - beta1^t) */
    enum dtype dtype;
};

static double update_of(const struct scalars *k, double old, double m, double v) {
    const double kept = dtype_round(old * (double)k->keep, k->dtype);
    double bottom = dtype_round(real_sqrt_f64(v), k->dtype);
    bottom = dtype_round(bottom / (double)k->root, k->dtype);
    bottom = dtype_round(bottom + (double)k->eps, k->dtype);
    const float step = k->size * (float)m / (float)bottom;
    return dtype_round((double)((float)kept + step), k->dtype);
}

static void replay_tensor(const struct step_group *group, const struct step_tensor *tensor,
                          double lr, struct rate_room *room, struct replayed *out) {
    const double correction = 1.0 - real_pow_f64(group->beta1, tensor->updates);
    const double decay = group->decoupled && group->decay > 0.0 ? group->decay : 0.0;
    const struct scalars k = {
        (float)(1.0 - lr * decay),
        (float)real_sqrt_f64(1.0 - real_pow_f64(group->beta2, tensor->updates)), (float)group->eps,
        (float)(-lr / correction), tensor->now.dtype};
    struct direction_block *const block = &room->block;
    for (uint64_t first = 0; first < tensor->count; first += READBACK_BLOCK) {
        const uint64_t left = tensor->count - first;
        const size_t count = left < READBACK_BLOCK ? (size_t)left : READBACK_BLOCK;
        block->count = count;
        stored_get(&tensor->old, first, count, block->old);
        stored_get(&tensor->now, first, count, block->now);
        stored_get(&tensor->first, first, count, block->state[0]);
        stored_get(group->amsgrad ? &tensor->largest : &tensor->second, first, count,
                   block->state[1]);
        direction_passed(block);
        for (size_t i = 0; i < count; i++) {
            if (block->now[i] == block->old[i] || block->state[0][i] == 0.0) continue;
            const double made =
                update_of(&k, block->old[i], block->state[0][i], block->state[1][i]);
            out->moved++;
            out->equal += made == block->now[i];
        }
    }
}

struct replayed replayed_with(const struct step *step, uint32_t group, double lr,
                              struct rate_room *room) {
    const struct step_group *const settings = &step->groups[group];
    struct replayed out = {0, 0};
    const char *why;
    for (uint32_t i = 0; i < step->tensor_count; i++) {
        const struct step_tensor *const tensor = &step->tensors[i];
        if (tensor->group != group || settings->rule != STEP_RULE_ADAM ||
            !direction_is_known(settings, tensor, &why) ||
            tensor->first.dtype != tensor->now.dtype || tensor->now.dtype == DTYPE_F64)
            continue;
        replay_tensor(settings, tensor, lr, room, &out);
    }
    return out;
}

int replayed_which(struct replayed first, struct replayed second) {
    if (2 * first.equal >= first.moved && first.equal >= second.equal + REPLAYED_AHEAD) return 1;
    if (2 * second.equal >= second.moved && second.equal >= first.equal + REPLAYED_AHEAD) return 2;
    return 0;
}
