/* SPDX-License-Identifier: Apache-2.0
 * Random legal orders of phases for the property tests: any legal order must run, and orders with
 * one meaning must give one result. They are drawn by counter from the seed. As they are no part of
 * a training, they are not in law 10's table.
 *
 * Invariant: what is drawn passes loop_check. */
#include "tests/trainer/helper_loop.h"

#include "determinism/philox.h"

enum { ATTEMPTS = 64, SWAPS = 40 };

struct draw {
    uint64_t seed;
    uint64_t next;
};

static uint32_t draw_below(struct draw *draw, uint32_t bound) {
    const struct philox_block counter = {
        {(uint32_t)draw->next, (uint32_t)(draw->next >> 32), 0, 0}};
    draw->next++;
    return (uint32_t)(((uint64_t)philox_draw(counter, draw->seed).word[0] * bound) >> 32);
}

static void insert(struct key_list *list, uint32_t position, enum phase phase) {
    if (list->count == KEY_LIST_MAX) return;
    for (uint32_t i = list->count; i > position; --i)
        list->item[i] = list->item[i - 1];
    list->item[position] = (uint8_t)phase;
    list->count++;
}

static void insert_anywhere(struct draw *draw, struct key_list *list, enum phase phase) {
    insert(list, draw_below(draw, (uint32_t)list->count + 1), phase);
}

/* Writes fetch, forward and backward, with another phase among them now and then. */
static void draw_micro(struct draw *draw, struct key_list *list) {
    static const enum phase extra[] = {PHASE_ZERO,     PHASE_CLIP,   PHASE_COUNT_UPDATE,
                                       PHASE_SCHEDULE, PHASE_REDUCE, PHASE_UNSCALE,
                                       PHASE_OPTIMIZE};
    *list = (struct key_list){.count = 0};
    insert(list, 0, PHASE_FETCH);
    insert(list, 1, PHASE_FORWARD);
    insert(list, 2, PHASE_BACKWARD);
    for (size_t i = 0; i < COUNT_OF(extra); i++)
        if (draw_below(draw, 12) == 0) insert_anywhere(draw, list, extra[i]);
}

static void draw_update(struct draw *draw, struct key_list *list) {
    static const enum phase optional[] = {PHASE_CLIP, PHASE_COUNT_UPDATE, PHASE_SCHEDULE,
                                          PHASE_ZERO, PHASE_REDUCE,       PHASE_UNSCALE};
    *list = (struct key_list){.count = 0};
    insert(list, 0, PHASE_OPTIMIZE);
    insert_anywhere(draw, list, PHASE_LOG);
    for (size_t i = 0; i < COUNT_OF(optional); i++)
        if (draw_below(draw, 8) != 0) insert_anywhere(draw, list, optional[i]);
    for (size_t i = 0; i < COUNT_OF(optional); i++)
        if (draw_below(draw, 12) == 0) insert_anywhere(draw, list, optional[i]);
    if (draw_below(draw, 16) == 0) insert_anywhere(draw, list, PHASE_OPTIMIZE);
}

void helper_loop_random(uint64_t seed, struct config *config) {
    struct draw draw = {seed, 0};
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        draw_micro(&draw, &config->loop.micro);
        draw_update(&draw, &config->loop.update);
        if (loop_check(config, NULL) == STATUS_OK) return;
    }
    /* PyTorch's order is always legal. */
    config->loop.micro = (struct key_list){3, {PHASE_FETCH, PHASE_FORWARD, PHASE_BACKWARD}, 0};
    config->loop.update = (struct key_list){
        6,
        {PHASE_CLIP, PHASE_OPTIMIZE, PHASE_LOG, PHASE_COUNT_UPDATE, PHASE_SCHEDULE, PHASE_ZERO},
        0};
}

static void swap(struct key_list *list, uint32_t i) {
    const uint8_t kept = list->item[i];
    list->item[i] = list->item[i + 1];
    list->item[i + 1] = kept;
}

uint32_t helper_loop_random_equal(uint64_t seed, struct config *config) {
    struct draw draw = {seed, 0};
    const struct config start = *config;
    uint32_t made = 0;
    for (int attempt = 0; attempt < SWAPS; attempt++) {
        struct key_list *list =
            draw_below(&draw, 4) == 0 ? &config->loop.micro : &config->loop.update;
        if (list->count < 2) continue;
        const uint32_t i = draw_below(&draw, (uint32_t)list->count - 1);
        if (list->item[i] == list->item[i + 1]) continue;
        swap(list, i);
        if (loop_check(config, NULL) == STATUS_OK && loop_equal(&start, config))
            made++;
        else
            swap(list, i);
    }
    return made;
}
