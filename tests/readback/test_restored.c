/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What a restart restored, part by part, from numbers that were made here. Restarts of real
 * trainers are judged in tests/cli/test_cli_readback.c and tests/bench/readback_table.py. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/macro.h"
#include "tests/readback/helper_step.h"
#include "readback/restored.h"

static struct arena arena = ARENA_EMPTY;
static struct rate_room *room;
static struct scene *scene, *other;
static struct training_folder before, after;
static struct restart_more more;
static struct restart_item items[RESTART_PARTS];
static struct training_folder uninterrupted;
static double counted[2], processes; /* by the scheduler; by Accelerate */

static int open_room(void **unused) {
    (void)unused;
    if (rate_room_open(&arena, &room) != STATUS_OK) return -1;
    if (arena_take(&arena, 1, sizeof *other, "scene", &other) != STATUS_OK) return -1;
    return arena_take(&arena, 1, sizeof *scene, "scene", &scene) == STATUS_OK ? 0 : -1;
}

static int close_room(void **unused) {
    (void)unused;
    arena_close(&arena);
    return 0;
}

static int begin(void **unused) {
    (void)unused;
    memset(&before, 0, sizeof before);
    memset(&after, 0, sizeof after);
    counted[0] = counted[1] = processes = (double)NAN;
    before.path = "checkpoint-2";
    after.path = "checkpoint-3";
    before.optimizer_path = after.optimizer_path = "optimizer.pt";
    more = (struct restart_more){.loss_before = (double)NAN, .loss_after = (double)NAN};
    return 0;
}

static struct update_reading read(const struct scene *from) {
    const double nan = (double)NAN;
    const struct update_said said = {.before = "checkpoint-2",
                                     .after = "checkpoint-3",
                                     .scheduler_counted = counted[1],
                                     .scheduler_before = counted[0],
                                     .processes = processes,
                                     .expected = {nan, nan, nan, nan, nan, nan}};
    struct update_reading out;
    assert_int_equal(update_read(&from->step, &said, room, &arena, &out), STATUS_OK);
    return out;
}

static void judge(void) {
    const struct update_reading reading = read(scene);
    assert_int_equal(restart_read(&before, &after, &scene->step, &reading, &more, &arena, items),
                     STATUS_OK);
}

static void assert_part(enum restart_part part, enum restart_state state, const char *text) {
    if (items[part].state != state || strstr(items[part].text, text) == NULL)
        fail_msg("%s is %s, \"%s\": expected %s, \"%s\"", restart_part_names[part],
                 restart_state_names[items[part].state], items[part].text,
                 restart_state_names[state], text);
}

/* The same update with nothing lost, with weights that were rounded, from another start, with
 * moments that began anew, and with a count that did. */
static void verify_weights_moments_count(void **unused) {
    (void)unused;
    struct scene_asked asked = scene_usual();
    scene_make(&asked, scene);
    judge();
    assert_part(RESTART_WEIGHTS, RESTART_RESTORED, "its own direction explains");
    assert_part(RESTART_MOMENTS, RESTART_RESTORED, "with one gradient");
    assert_part(RESTART_COUNT, RESTART_RESTORED, "went from 2 to 3");
    assert_part(RESTART_SCHEDULER, RESTART_ABSENT, "");
    assert_part(RESTART_SCALER, RESTART_ABSENT, "");
    assert_part(RESTART_GENERATORS, RESTART_UNTOLD, "no generator's state");
    assert_part(RESTART_POSITION, RESTART_UNTOLD, "no checkpoint says");
    asked.rounds_start = 1;
    scene_make(&asked, scene);
    judge();
    assert_part(RESTART_WEIGHTS, RESTART_LOST, "rounded to bf16");
    asked = scene_usual();
    scene_make(&asked, scene);
    scene->tensor[0].old = scene->tensor[1].old;
    judge();
    assert_part(RESTART_WEIGHTS, RESTART_UNTOLD, "began from other weights");
    asked.is_lost = 1;
    asked.updates = 1;
    scene_make(&asked, scene);
    for (int t = 0; t < SCENE_TENSORS; t++)
        scene->tensor[t].updates_before = 4.0;
    judge();
    assert_part(RESTART_WEIGHTS, RESTART_RESTORED, "");
    assert_part(RESTART_MOMENTS, RESTART_LOST, "the moments were lost");
    assert_part(RESTART_COUNT, RESTART_LOST, "was 4 and is 1 after one update");
    asked = scene_usual();
    asked.count_ahead = -2.0; /* update 3 is made with a count of 1, and its moments go on */
    scene_make(&asked, scene);
    for (int t = 0; t < SCENE_TENSORS; t++)
        scene->tensor[t].updates = 1.0;
    judge();
    assert_part(RESTART_MOMENTS, RESTART_RESTORED, "");
    assert_part(RESTART_COUNT, RESTART_LOST, "was 2 and is 1 after one update");
    asked = scene_usual();
    asked.rule = STEP_RULE_SGD;
    scene_make(&asked, scene);
    for (int t = 0; t < SCENE_TENSORS; t++)
        scene->tensor[t].updates_before = (double)NAN;
    judge();
    assert_part(RESTART_MOMENTS, RESTART_UNTOLD, "of a rule");
    assert_part(RESTART_COUNT, RESTART_ABSENT, "stores no count");
    struct training_folder *const bare[] = {&after, &before};
    for (int i = 0; i < 2; i++) {
        bare[i]->optimizer_path = NULL;
        bare[i]->rule_reason = "the folder holds none";
        judge();
        assert_part(RESTART_MOMENTS, RESTART_UNTOLD,
                    i == 0 ? "checkpoint-3: the folder holds none" : "checkpoint-2: the folder");
        assert_part(RESTART_COUNT, RESTART_ABSENT, "no optimizer is stored in both");
    }
    before.optimizer_path = after.optimizer_path = "optimizer.pt";
    for (int t = 0; t < SCENE_TENSORS; t++) {
        scene->tensor[t].is_left_out = 1;
        scene->tensor[t].updates_before = scene->tensor[t].updates;
    }
    judge();
    assert_part(RESTART_COUNT, RESTART_UNTOLD, "it made no update");
}

static struct training_scheduler scheduler(int64_t count, const double *peak) {
    return (struct training_scheduler){
        .is_there = 1, .has_last_epoch = 1, .last_epoch = count, .base_count = 1, .base_lrs = peak};
}

static void verify_scheduler(void **unused) {
    (void)unused;
    static const double peak = 5e-4, high = 1e-3;
    struct scene_asked asked = scene_usual();
    scene_make(&asked, scene);
    before.scheduler = scheduler(2, &peak);
    judge();
    assert_part(RESTART_SCHEDULER, RESTART_UNTOLD, "is stored in one of the two checkpoints only");
    after.scheduler = scheduler(3, &peak);
    judge();
    assert_part(RESTART_SCHEDULER, RESTART_RESTORED,
                "went from 2 to 3, and the LR that was promised was applied");
    after.scheduler = scheduler(1, &peak);
    judge();
    assert_part(RESTART_SCHEDULER, RESTART_LOST,
                "its count (last_epoch) was 2 and is 1; the LR that was promised was applied");
    after.scheduler = scheduler(3, &high);
    judge();
    assert_part(RESTART_SCHEDULER, RESTART_LOST, "its peak (base_lrs) was 0.0005 and is 0.001; ");
    after.scheduler = scheduler(3, &peak);
    after.scheduler.has_last_epoch = 0;
    judge();
    assert_part(RESTART_SCHEDULER, RESTART_UNTOLD, "stores no count");
    after.scheduler.has_last_epoch = 1;
    scene->group.promised = 2.0 * asked.lr;
    judge();
    assert_part(RESTART_SCHEDULER, RESTART_LOST, "checkpoint-2 promised 0.001, and ");
    after.scheduler = scheduler(4, &peak);
    judge();
    assert_part(RESTART_SCHEDULER, RESTART_LOST,
                "its count (last_epoch) was 2 and is 4 after one update; checkpoint-2 promised");
}

/* A count that moved by another number than the updates is never restored without a word, and an LR
 * was applied only where it was read. */
static void verify_scheduler_counts(void **unused) {
    (void)unused;
    static const double peak = 5e-4, high = 1e-3;
    struct scene_asked asked = scene_usual();
    scene_make(&asked, scene);
    before.scheduler = scheduler(2, &peak);
    after.scheduler = scheduler(4, &peak);
    counted[0] = 2.0;
    counted[1] = 4.0;
    judge();
    assert_part(RESTART_SCHEDULER, RESTART_LOST,
                "went from 2 to 4 in one update: it was not restored as it was, or steps 2 times "
                "in every update; the LR that was promised was applied");
    processes = 2.0;
    judge();
    assert_part(RESTART_SCHEDULER, RESTART_RESTORED,
                "went from 2 to 4, as where each process counts, or where several updates lie "
                "between; the LR that was promised was applied");
    for (int t = 0; t < SCENE_TENSORS; t++)
        scene->tensor[t].updates_before = scene->tensor[t].updates - 2.0;
    judge();
    assert_part(RESTART_SCHEDULER, RESTART_UNTOLD,
                "went from 2 to 4, as the optimizer's did: 2 updates lie between, or both began "
                "from elsewhere; ");
    scene_make(&asked, scene);
    after.scheduler = scheduler(2, &peak);
    judge();
    assert_part(RESTART_SCHEDULER, RESTART_RESTORED, "stayed at 2, as of one that counts epochs");
    scene->tensor[0].old = scene->tensor[1].old;
    judge();
    assert_part(RESTART_SCHEDULER, RESTART_UNTOLD,
                "stayed at 2, as of one that counts epochs or did not step; which LR the first "
                "update applied cannot be read");
    after.scheduler = scheduler(3, &peak);
    judge();
    assert_part(RESTART_SCHEDULER, RESTART_RESTORED,
                "went from 2 to 3, and which LR the first update applied cannot be read");
    /* The optimizer's file is missing, and the scheduler's has an LR. */
    scene_make(&asked, scene);
    scene->group.promised = (double)NAN;
    judge();
    assert_part(RESTART_SCHEDULER, RESTART_RESTORED, "cannot be read");
    before.scheduler.last_count = 1;
    before.scheduler.last_lrs = &peak;
    judge();
    assert_part(RESTART_SCHEDULER, RESTART_RESTORED, "and the numbers do not exclude the LR");
    before.scheduler.last_lrs = &high;
    judge();
    assert_part(RESTART_SCHEDULER, RESTART_LOST,
                "went from 2 to 3, and checkpoint-2 promised 0.001, and 5.0000");
    after.scheduler = scheduler(1, &peak);
    judge();
    assert_part(RESTART_SCHEDULER, RESTART_LOST,
                "was 2 and is 1; checkpoint-2 promised 0.001, and 5.0000");
    /* An optimizer that began anew has its own LR. */
    asked.is_lost = 1;
    asked.updates = 1;
    scene_make(&asked, scene);
    for (int t = 0; t < SCENE_TENSORS; t++)
        scene->tensor[t].updates_before = 4.0;
    scene->group.promised = 2.0 * asked.lr;
    before.scheduler = scheduler(4, &peak);
    after.scheduler = scheduler(5, &peak);
    judge();
    assert_part(RESTART_SCHEDULER, RESTART_RESTORED,
                "was applied: the LR of an optimizer that began anew, which keeps its own until "
                "the scheduler sets the next");
    after.scheduler = scheduler(1, &peak);
    judge();
    assert_part(RESTART_SCHEDULER, RESTART_LOST, "was 4 and is 1; checkpoint-2 promised 0.001");
}

/* A scheduler that nobody stores shows in the LR that the optimizer's file holds. */
static void verify_unstored_scheduler(void **unused) {
    (void)unused;
    static const double peak = 5e-4;
    static struct training_number lrs[3] = {{"lr", 5e-4}, {"lr", 5e-4}, {"lr", 5e-4}};
    static struct training_group of[3];
    struct training_folder *const folders[] = {&before, &after, &uninterrupted};
    struct scene_asked asked = scene_usual();
    scene_make(&asked, scene);
    for (size_t f = 0; f < COUNT_OF(folders); f++) {
        of[f] = (struct training_group){.number_count = 1, .numbers = &lrs[f]};
        folders[f]->groups = &of[f];
        folders[f]->group_count = 1;
    }
    judge();
    assert_part(RESTART_SCHEDULER, RESTART_ABSENT, "no scheduler is stored in either checkpoint");
    lrs[1].value = 6e-4;
    judge();
    assert_part(RESTART_SCHEDULER, RESTART_UNTOLD,
                "no scheduler is stored in either checkpoint, and the LR moved from 0.0005 to "
                "0.0006: a schedule that began anew shows in the next update; the checkpoint of a "
                "run that was not interrupted (--uninterrupted) would tell");
    lrs[2].value = 6e-4 * (1.0 + 1e-12);
    more.of_whole = &uninterrupted;
    judge();
    assert_part(RESTART_SCHEDULER, RESTART_RESTORED,
                "either checkpoint; the optimizer's LR after the update is that of the run that "
                "was not interrupted");
    lrs[2].value = 4e-4;
    judge();
    assert_part(RESTART_SCHEDULER, RESTART_LOST,
                "the optimizer of checkpoint-3 holds LR 0.0006 after the update, and that of the "
                "run that was not interrupted 0.0004; no scheduler is stored in either");
    before.scheduler = scheduler(2, &peak); /* whatever the schedulers' files say */
    after.scheduler = scheduler(3, &peak);
    judge();
    assert_part(RESTART_SCHEDULER, RESTART_LOST, "0.0004; its count (last_epoch) went from 2 to 3");
    uninterrupted.group_count = 0; /* one without an optimizer has no LR */
    judge();
    assert_part(RESTART_SCHEDULER, RESTART_RESTORED, "its count (last_epoch) went from 2 to 3");
    after.scheduler.is_there = before.scheduler.is_there = 0;
    judge();
    assert_part(RESTART_SCHEDULER, RESTART_UNTOLD, "the LR moved from 0.0005 to 0.0006");
}

/* torch's GradScaler doubles its scale after `growth_interval` updates without an overflow, and
 * halves it after one (torch 2.15, torch/amp/grad_scaler.py). */
static void verify_scaler(void **unused) {
    (void)unused;
    static const struct {
        struct training_scaler then, now;
        enum restart_state state;
    } cases[] = {
        {{1, 1024.0, 1, 3}, {1, 1024.0, 2, 3}, RESTART_RESTORED},
        {{1, 1024.0, 2, 3}, {1, 2048.0, 0, 3}, RESTART_RESTORED},
        {{1, 1024.0, 1, 3}, {1, 2048.0, 0, 3}, RESTART_LOST}, /* too early to grow */
        {{1, 1024.0, 1, 0}, {1, 2048.0, 0, 0}, RESTART_RESTORED},
        {{1, 1024.0, 1, 3}, {1, 512.0, 0, 3}, RESTART_UNTOLD},
        {{1, 1024.0, 2, 3}, {1, 1024.0, 1, 3}, RESTART_LOST},
        {{1, 1024.0, 2, 3}, {1, 65536.0, 1, 3}, RESTART_LOST},
        {{1, 1024.0, 2, 3}, {0, 0.0, 0, 0}, RESTART_LOST},
        {{0, 0.0, 0, 0}, {0, 0.0, 0, 0}, RESTART_ABSENT},
    };
    struct scene_asked asked = scene_usual();
    scene_make(&asked, scene);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        before.scaler = cases[i].then;
        after.scaler = cases[i].now;
        judge();
        assert_part(RESTART_SCALER, cases[i].state, "");
    }
}

static void verify_sampler(void **unused) {
    (void)unused;
    static const struct training_number then[] = {{"epoch", 1.0}, {"position", 40.0}};
    static const struct training_number on[] = {{"epoch", 1.0}, {"position", 48.0}};
    static const struct training_number anew[] = {{"epoch", 1.0}, {"position", 8.0}};
    struct scene_asked asked = scene_usual();
    scene_make(&asked, scene);
    before.sampler = then;
    before.sampler_count = after.sampler_count = 2;
    after.sampler = on;
    judge();
    assert_part(RESTART_POSITION, RESTART_RESTORED, "position went from 40 to 48");
    after.sampler = anew;
    judge();
    assert_part(RESTART_POSITION, RESTART_LOST, "position was 40 and is 8");
    after.sampler = then;
    judge();
    assert_part(RESTART_POSITION, RESTART_UNTOLD, "no checkpoint says");
}

/* A state of CUDA's generator, a seed and an offset, alone or in a list. */
static struct training_generator philox(const char *name, uint64_t seed, uint64_t offset,
                                        int is_listed) {
    struct torch_tensor *tensor;
    struct torch_members *list;
    struct torch_value *values;
    unsigned char *bytes;
    assert_int_equal(arena_take(&arena, 1, sizeof *tensor, "tensor", &tensor), STATUS_OK);
    assert_int_equal(arena_take(&arena, 1, sizeof *list, "list", &list), STATUS_OK);
    assert_int_equal(arena_take(&arena, 1, sizeof *values, "list", &values), STATUS_OK);
    assert_int_equal(arena_take(&arena, 16, 1, "state", &bytes), STATUS_OK);
    memcpy(bytes, &seed, sizeof seed);
    memcpy(bytes + 8, &offset, sizeof offset);
    *tensor = (struct torch_tensor){.dtype = SAFETENSORS_U8,
                                    .rank = 1,
                                    .count = 16,
                                    .is_contiguous = 1,
                                    .storage = {.bytes = bytes, .length = 16}};
    values[0] = (struct torch_value){.kind = TORCH_TENSOR, .as = {.tensor = tensor}};
    *list = (struct torch_members){.count = 1, .values = values};
    struct training_generator out = {
        .name = name,
        .value = is_listed ? (struct torch_value){.kind = TORCH_LIST, .as = {.members = list}}
                           : values[0]};
    digest_bytes("state", bytes, 16, &out.digest);
    return out;
}

/* Generators by the names that everybody knows; a number is none. */
static void verify_generators(void **unused) {
    (void)unused;
    struct scene_asked asked = scene_usual();
    struct training_generator then[6], now[6];
    static const char *const names[6] = {"step",        "random_state",      "numpy_random_seed",
                                         "rank 1: cpu", "torch_manual_seed", "rank 12: cuda"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        then[i] = now[i] = philox(names[i], 7, 4, 0);
    then[0].value = now[0].value = (struct torch_value){.kind = TORCH_INT, .as = {.integer = 1}};
    before.generators = then;
    after.generators = now;
    before.generator_count = after.generator_count = COUNT_OF(names);
    scene_make(&asked, scene);
    judge();
    assert_part(RESTART_GENERATORS, RESTART_RESTORED,
                "python, numpy, torch cpu of rank 1, torch cpu, torch cuda of rank 12: nothing "
                "drawn");
    now[0].digest = now[1].digest; /* the count of steps moves */
    now[2] = philox(names[2], 7, 12, 0);
    then[5] = philox(names[5], 7, 4, 1);
    now[5] = philox(names[5], 7, 20, 1);
    judge();
    assert_part(RESTART_GENERATORS, RESTART_RESTORED,
                "python, torch cpu of rank 1, torch cpu: nothing drawn; numpy: went on (8 drawn); "
                "torch cuda of rank 12: went on (16 drawn)");
    now[3] = philox(names[3], 7, 0, 0);
    judge();
    assert_part(RESTART_GENERATORS, RESTART_LOST,
                "; torch cpu of rank 1: does not go on from the checkpoint's state; torch cuda");
    now[3] = then[3];
    now[5].value.kind = TORCH_NONE;
    judge();
    assert_part(RESTART_GENERATORS, RESTART_UNTOLD,
                "torch cuda of rank 12: another state, of a kind that is not known here");
    before.generator_count = after.generator_count = 1; /* the count of steps alone */
    judge();
    assert_part(RESTART_GENERATORS, RESTART_UNTOLD, "no generator's state is stored in both");
}

/* What drew nothing was restored, so that no dropout explains another loss. */
static void give_generator(void) {
    static const struct training_generator same = {.name = "torch"};
    before.generators = after.generators = &same;
    before.generator_count = after.generator_count = 1;
}

static void verify_losses(void **unused) {
    (void)unused;
    static const struct {
        double before, after;
        enum restart_state state;
    } cases[] = {{2.5, 2.5, RESTART_RESTORED},
                 {2.5, 2.5001, RESTART_UNTOLD},
                 {2.5, 2.25, RESTART_LOST},
                 {(double)NAN, 2.5, RESTART_UNTOLD}};
    struct scene_asked asked = scene_usual();
    give_generator();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        scene_make(&asked, scene);
        more.loss_before = cases[i].before;
        more.loss_after = cases[i].after;
        judge();
        assert_part(RESTART_POSITION, cases[i].state, "");
        if (cases[i].state != RESTART_LOST) continue;
        scene->tensor[0].old = scene->tensor[1].old; /* other weights have another loss, too */
        judge();
        assert_part(RESTART_POSITION, RESTART_UNTOLD, "has the loss 2.5");
        assert_int_equal(items[RESTART_POSITION].is_apart, 1);
        scene_make(&asked, scene); /* so does other dropout, where no generator is stored */
        before.generator_count = 0;
        judge();
        assert_part(RESTART_POSITION, RESTART_UNTOLD, ": another batch, or other dropout");
        assert_int_equal(items[RESTART_POSITION].is_apart, 1);
        before.generator_count = 1;
        judge();
        assert_part(RESTART_POSITION, RESTART_LOST, ": another batch, or other dropout");
    }
    assert_int_equal(items[RESTART_POSITION].is_apart, 0);
}

static void compare(const struct scene_asked *whole) {
    const struct update_reading reading = read(scene);
    scene_make(whole, other);
    const struct update_reading of_whole = read(other);
    assert_int_equal(
        restart_compare(&scene->step, &reading, &other->step, &of_whole, room, &arena, &more.whole),
        STATUS_OK);
    assert_int_equal(restart_read(&before, &after, &scene->step, &reading, &more, &arena, items),
                     STATUS_OK);
}

/* The gradients of a scene times x are apart by |1 - 1/x| of the larger one's norm. */
static void verify_gradients(void **unused) {
    (void)unused;
    static const struct {
        double times;
        enum restart_state state;
        const char *text;
    } cases[] = {{1.0, RESTART_RESTORED, "is that of the run that was not interrupted, to "},
                 {1.01, RESTART_RESTORED, "by 9.9e-03 of its norm, as sums in another order do"},
                 {1.1, RESTART_UNTOLD, "by 9.1e-02 of its norm: more than sums"},
                 {1.5, RESTART_LOST, "by 3.3e-01 of its norm: another batch"}};
    give_generator();
    more.of_whole = &uninterrupted;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct scene_asked asked = scene_usual();
        scene_make(&asked, scene);
        asked.fresh = cases[i].times;
        compare(&asked);
        assert_part(RESTART_POSITION, cases[i].state, cases[i].text);
        assert_int_equal(items[RESTART_POSITION].is_apart, i == 2);
        after.generator_count = 0; /* where none is told, other dropout may explain it */
        compare(&asked);
        if (i < 2)
            assert_part(RESTART_POSITION, cases[i].state, cases[i].text);
        else
            assert_part(RESTART_POSITION, RESTART_UNTOLD,
                        "of its norm: another batch, or other dropout, because whether generators "
                        "were restored cannot be told");
        assert_int_equal(items[RESTART_POSITION].is_apart, i >= 2);
        after.generator_count = 1;
    }
    /* With moments that were lost the gradient is known all the same. */
    struct scene_asked asked = scene_usual(), whole = scene_usual();
    asked.is_lost = 1;
    scene_make(&asked, scene);
    compare(&whole);
    assert_part(RESTART_MOMENTS, RESTART_LOST, "");
    assert_part(RESTART_POSITION, RESTART_RESTORED, "");
    /* Without a second moment nothing says that the first one was restored. */
    asked = scene_usual();
    asked.rule = STEP_RULE_SGD;
    asked.coupled = 1;
    scene_make(&asked, scene);
    whole = asked;
    whole.fresh = 1.5;
    compare(&whole);
    assert_part(RESTART_POSITION, RESTART_UNTOLD, "another batch, or other moments before it");
    /* Too narrow to tell two batches apart. */
    asked = scene_usual();
    asked.weights = asked.state = DTYPE_BF16;
    asked.beta1 = 0.99;
    scene_make(&asked, scene);
    compare(&asked);
    assert_part(RESTART_POSITION, RESTART_UNTOLD, "of its norm only");
    /* A gradient that is not known leaves the question open. */
    asked = scene_usual();
    scene_make(&asked, scene);
    for (int t = 0; t < SCENE_TENSORS; t++)
        scene->tensor[t].first_before = scene->tensor[(t + 1) % SCENE_TENSORS].first_before;
    compare(&asked);
    assert_part(RESTART_POSITION, RESTART_UNTOLD,
                "the gradient cannot be held against that of the run that was not interrupted, "
                "because that of this update cannot be read: the moments follow neither");
    scene_make(&asked, scene);
    const struct update_reading reading = read(scene);
    scene_make(&asked, other);
    for (int t = 0; t < SCENE_TENSORS; t++)
        other->tensor[t].has_before = 0;
    const struct update_reading whole_reading = read(other);
    assert_int_equal(restart_compare(&scene->step, &reading, &other->step, &whole_reading, room,
                                     &arena, &more.whole),
                     STATUS_OK);
    judge();
    assert_part(RESTART_POSITION, RESTART_UNTOLD,
                "because that one cannot be read: the optimizer's state before the update is "
                "needed; a log that holds this update twice would tell");
}

/* The numbers of two parameter groups as torch's AdamW writes them. */
static struct training_number numbers[2][2][5];
static struct training_group groups[2][2];

static void give_settings(void) {
    static const struct training_number usual[5] = {
        {"lr", 5e-4}, {"betas[0]", 0.9}, {"betas[1]", 0.999}, {"eps", 1e-8}, {"weight_decay", 0.1}};
    struct training_folder *const folders[] = {&before, &after};
    for (int f = 0; f < 2; f++) {
        for (int g = 0; g < 2; g++) {
            memcpy(numbers[f][g], usual, sizeof usual);
            groups[f][g] = (struct training_group){.number_count = 5, .numbers = numbers[f][g]};
        }
        folders[f]->groups = groups[f];
        folders[f]->group_count = 2;
    }
    numbers[1][0][0].value = 4e-4; /* the LR is the scheduler's */
}

/* What load_state_dict takes from the checkpoint and a trainer set anew behind it; what moves by
 * itself is no such thing. */
static void verify_settings(void **unused) {
    (void)unused;
    const struct scene_asked asked = scene_usual();
    scene_make(&asked, scene);
    judge();
    assert_part(RESTART_SETTINGS, RESTART_ABSENT, "no optimizer is stored in both");
    give_settings();
    judge();
    assert_part(RESTART_SETTINGS, RESTART_RESTORED, "that they held");
    numbers[1][1][4].value = 0.01;
    judge();
    assert_part(RESTART_SETTINGS, RESTART_LOST, "weight_decay of group 1 was 0.1 and is 0.01");
    numbers[1][0][2].value = 0.95;
    judge();
    assert_part(RESTART_SETTINGS, RESTART_LOST,
                "betas[1] of group 0 was 0.999 and is 0.95; weight_decay of group 1 was");
    give_settings();
    numbers[1][0][4].value = 0.0;
    judge();
    assert_part(RESTART_SETTINGS, RESTART_LOST, "weight_decay of group 0 was 0.1 and is 0");
    give_settings();
    numbers[1][0][4].value = 0.101;
    judge();
    assert_part(RESTART_SETTINGS, RESTART_UNTOLD, "a schedule of the decay itself");
    give_settings();
    for (int f = 0; f < 2; f++)
        numbers[f][0][3] = (struct training_number){"max_momentum", 0.95};
    numbers[1][0][1].value = 0.91; /* OneCycleLR moves the first beta */
    judge();
    assert_part(RESTART_SETTINGS, RESTART_RESTORED, "that they held");
    give_settings();
    for (int f = 0; f < 2; f++) /* Prodigy's estimate of the step size */
        numbers[f][0][3] = (struct training_number){"d", f == 0 ? 1e-6 : 3e-6};
    judge();
    assert_part(RESTART_SETTINGS, RESTART_RESTORED, "that they held");
    for (int f = 0; f < 2; f++) /* and Adafactor's limit */
        numbers[f][0][2] = (struct training_number){"beta2_decay", -0.8};
    judge();
    assert_part(RESTART_SETTINGS, RESTART_LOST, "d of group 0 was 1e-06 and is 3e-06");
    after.group_count = 1;
    judge();
    assert_part(RESTART_SETTINGS, RESTART_UNTOLD, "had 2 parameter groups and has 1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(verify_weights_moments_count, begin),
        cmocka_unit_test_setup(verify_scheduler, begin),
        cmocka_unit_test_setup(verify_scheduler_counts, begin),
        cmocka_unit_test_setup(verify_unstored_scheduler, begin),
        cmocka_unit_test_setup(verify_generators, begin),
        cmocka_unit_test_setup(verify_scaler, begin),
        cmocka_unit_test_setup(verify_sampler, begin),
        cmocka_unit_test_setup(verify_losses, begin),
        cmocka_unit_test_setup(verify_gradients, begin),
        cmocka_unit_test_setup(verify_settings, begin),
    };
    return cmocka_run_group_tests(tests, open_room, close_room);
}
