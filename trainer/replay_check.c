/* SPDX-License-Identifier: Apache-2.0
 * Keeps the state before the micro-batches, runs them again from it, and compares the two states
 * that they leave, byte by byte: by the state law nothing else goes on from them. The first one is
 * kept. While they run again nobody watches and nothing is recorded. */
#include "trainer/replay_check.h"

#include <string.h>

#include "scenarios/scenario.h"
#include "trainer/run_private.h"
#include "trainer/watch_run.h"

struct replay_check {
    unsigned char *before, *after; /* states of the update that is checked */
    int due;
    struct replay_seen seen;
};

struct replay_seen run_replay_seen(const struct run *run) {
    return run->replay == NULL ? (struct replay_seen){0} : run->replay->seen;
}

/* Whether what runs again is forward and backward of micro-batches, and nothing that a record would
 * note twice: with a leaking tail, list `epoch` runs among them. */
static int is_plain(const struct config *config) {
    return config->loop.micro.count == 3 &&
           (config->batch.tail != TAIL_LEAK || config->loop.epoch.count == 0);
}

enum status replay_check_open(struct run *run) {
    const struct config *config = &run->config;
    const int alone = config->numerics.threads == 1 && run->backend == NULL;
    if (run->options.replay_every == 0) return STATUS_OK;
    if (!is_plain(config))
        FAIL(STATUS_INPUT, "record.replay_check: expected loop.micro [fetch, forward, backward], "
                           "which can run again, and no list loop.epoch with batch.tail leak");
    if (config_races(config) && !alone)
        FAIL(STATUS_INPUT, "record.replay_check: sums of this training race, so it does not repeat "
                           "itself: expected another numerics.mode");
    TRY(arena_take(&run->arena, 1, sizeof *run->replay, "replay check", &run->replay));
    TRY(arena_take(&run->arena, run->layout.bytes, 1, "replay check", &run->replay->before));
    return arena_take(&run->arena, run->layout.bytes, 1, "replay check", &run->replay->after);
}

void replay_check_begin(struct run *run) {
    struct replay_check *check = run->replay;
    if (check == NULL) return;
    check->due = (run_head(run)->done + 1) % run->options.replay_every == 0;
    if (check->due) memcpy(check->before, run->state, run->layout.bytes);
}

/* The first parameter of which gradient or accumulators differ. */
static const char *differing(const struct run *run) {
    const struct replay_check *check = run->replay;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct param_row *row = &run->table.rows[run->owner[i]];
        const struct state_tensor *tensor = &run->layout.tensor[run->owner[i]];
        int differs = memcmp(check->after + tensor->gradient, run->state + tensor->gradient,
                             row->count * dtype_carrier(run->layout.gradient_dtype)) != 0;
        for (uint32_t use = 0; use < row->uses; use++)
            differs |= memcmp(check->after + tensor->accumulator[use],
                              run->state + tensor->accumulator[use],
                              row->count * run->layout.accumulator) != 0;
        if (differs) return row->name;
    }
    return NULL;
}

static void compare(struct run *run) {
    struct replay_check *check = run->replay;
    struct replay_seen *seen = &check->seen;
    const struct state_head *a = state_head_of(check->after), *b = run_head(run);
    seen->checks++;
    if (memcmp(check->after, run->state, run->layout.bytes) == 0) return;
    if (seen->differing++ > 0) return;
    seen->first = run_head(run)->done + 1;
    seen->loss = memcmp(&a->window, &b->window, sizeof a->window) != 0;
    seen->tensor = differing(run);
}

enum status replay_check_end(struct run *run, enum status (*micros)(struct run *)) {
    struct replay_check *check = run->replay;
    if (check == NULL || !check->due) return STATUS_OK;
    struct watch *const hung = run->model.watch;
    const struct library_count products = run->model.products;
    TRY(model_wait(&run->model));
    memcpy(check->after, run->state, run->layout.bytes);
    memcpy(run->state, check->before, run->layout.bytes);
    run->weights_fresh = 0;
    run->replaying = 1;
    watch_hang(run, NULL);
    enum status status = micros(run);
    if (status == STATUS_OK) status = model_wait(&run->model);
    watch_hang(run, hung);
    run->replaying = 0;
    run->model.products = products;
    if (status == STATUS_OK) compare(run);
    memcpy(run->state, check->after, run->layout.bytes);
    run->weights_fresh = 0;
    return status;
}
