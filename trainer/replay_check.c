/* SPDX-License-Identifier: Apache-2.0
 * Keeps the state before the micro-batches, runs them again from it, and compares the two states
 * that they leave, byte by byte: by the state law nothing else goes on from them. The first one is
 * kept. While they run again nobody watches and nothing is recorded. */
#include "trainer/replay_check.h"

#include <string.h>

#include "model/backends.h"
#include "scenarios/scenario.h"
#include "trainer/run_private.h"
#include "trainer/run_tensors.h"
#include "trainer/watch_run.h"

struct replay_check {
    struct run_kept before, after; /* states of the update that is checked */
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
    if (config_ranks_close(config))
        FAIL(STATUS_UNSUPPORTED,
             "record.replay_check: not available with several ranks in modes shaped and shuffled, "
             "whose gradients are no part of the state: expected parallel.ranks 1");
    if (config->parallel.ranks > 1)
        FAIL(STATUS_UNSUPPORTED,
             "record.replay_check: not available with several ranks, whose sums are no part of the "
             "state until phase reduce joins them: expected parallel.ranks 1, with which the bits "
             "are the same");
    if (config_parts_tensor_ranks(config))
        FAIL(
            STATUS_UNSUPPORTED,
            "record.replay_check: not available with %s, whose ranks have sums that are no part of "
            "the state: expected %s",
            config_fed_ranks(config) > 1 ? "parallel.feeds own-on-tensor" : "parallel.forgets",
            config_fed_ranks(config) > 1 ? "parallel.feeds own" : "parallel.forgets none");
    if (config_races(config) && !alone)
        FAIL(STATUS_INPUT, "record.replay_check: sums of this training race, so it does not repeat "
                           "itself: expected another numerics.mode");
    TRY(arena_take(&run->arena, 1, sizeof *run->replay, "replay check", &run->replay));
    TRY(run_kept_open(run, &run->replay->before));
    return run_kept_open(run, &run->replay->after);
}

void replay_check_close(struct run *run) {
    if (run->replay == NULL) return;
    run_kept_close(&run->replay->before);
    run_kept_close(&run->replay->after);
}

enum status replay_check_begin(struct run *run) {
    struct replay_check *check = run->replay;
    if (check == NULL) return STATUS_OK;
    check->due = (run_head(run)->done + 1) % run->options.replay_every == 0;
    return check->due ? run_keep(run, &check->before) : STATUS_OK;
}

/* The first parameter of which gradient or accumulators differ between two states. */
static const char *differing(const struct run *run, const unsigned char *x,
                             const unsigned char *y) {
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct param_row *row = &run->table.rows[run->owner[i]];
        const struct state_tensor *tensor = &run->layout.tensor[run->owner[i]];
        int differs = memcmp(x + tensor->gradient, y + tensor->gradient,
                             row->count * dtype_carrier(run->layout.gradient_dtype)) != 0;
        for (uint32_t use = 0; use < row->uses; use++)
            differs |= memcmp(x + tensor->accumulator[use], y + tensor->accumulator[use],
                              row->count * run->layout.accumulator) != 0;
        if (differs) return row->name;
    }
    return NULL;
}

/* Says what is different, the first time that something is. */
static enum status explain(struct run *run, struct host_window *window) {
    struct replay_check *check = run->replay;
    struct replay_seen *seen = &check->seen;
    const unsigned char *before, *now;
    TRY(run_kept_read(&check->after, window, &before));
    TRY(run_read_state(run, &now));
    struct state_head a, b;
    memcpy(&a, before, sizeof a);
    memcpy(&b, now, sizeof b);
    seen->first = run_head(run)->done + 1;
    seen->loss = memcmp(&a.window, &b.window, sizeof a.window) != 0;
    seen->tensor = differing(run, before, now);
    return STATUS_OK;
}

static enum status compare(struct run *run) {
    struct replay_check *check = run->replay;
    struct host_window window = HOST_WINDOW_EMPTY;
    int equal;
    check->seen.checks++;
    TRY(run_kept_equal(run, &check->after, &equal));
    if (equal || check->seen.differing++ > 0) return STATUS_OK;
    const enum status status = explain(run, &window);
    host_window_close(&window);
    return status;
}

/* The update goes on, so a bit that has flipped in it is not to flip again. */
static enum status take_back(struct run *run, const struct run_kept *kept) {
    TRY(run_load(run, kept));
    run->weights_fresh = 0;
    return STATUS_OK;
}

enum status replay_check_end(struct run *run, enum status (*micros)(struct run *)) {
    struct replay_check *check = run->replay;
    if (check == NULL || !check->due) return STATUS_OK;
    struct watch *const hung = run->model.watch;
    const struct library_count products = run->model.products;
    TRY(model_wait(&run->model));
    TRY(run_keep(run, &check->after));
    TRY(take_back(run, &check->before));
    run->replaying = 1;
    watch_hang(run, NULL);
    enum status status = micros(run);
    if (status == STATUS_OK) status = model_wait(&run->model);
    watch_hang(run, hung);
    run->replaying = 0;
    run->model.products = products;
    if (status == STATUS_OK) status = compare(run);
    return status == STATUS_OK ? take_back(run, &check->after) : status;
}
