/* SPDX-License-Identifier: Apache-2.0
 * labels: unit whole
 * Causes that are planted into rollouts of a real model, and rollouts without any: at least 90 % of
 * the planted are named, at most 10 % are undecided, none is called by another name; of the clean
 * ones none is called outside. All 200 and 500 are nightly (docs/measurements/rollout.md). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/base/helper_size.h"
#include "tests/rollout/helper_plant.h"

static char folder[] = "/tmp/twinstep-planted-XXXXXX";
static char path[64], floor_path[64];

static void expect_ok(enum status status) {
    if (status != STATUS_OK) fail_msg("status %d: %s", (int)status, status_text());
}

static const struct pool *pool_now(void) {
    return pool_open((uint32_t)helper_size(48, 48, 320), (uint32_t)helper_size(40, 48, 128));
}

/* ---- one case ---- */

struct answer {
    enum rollout_verdict verdict;
    unsigned named; /* bits by cause */
    double strength;
    char why[400], texts[1200];
};

static void judge_case(const struct plant *plant, struct answer *out) {
    struct arena arena = ARENA_EMPTY;
    const struct rollout_files files = {{path, NULL}, {{NULL}}},
                               floors = {{floor_path, NULL}, {{NULL}}};
    struct rollout_measure *measure, *floor;
    static struct rollout_judgement judgement;
    plant_write(pool_now(), plant, path, floor_path);
    expect_ok(rollout_measure_files(&floors, 0.0, &arena, &floor));
    const struct rollout_measure *const list[] = {floor};
    expect_ok(rollout_measure_files(&files, rollout_far_line(list, 1), &arena, &measure));
    rollout_judge(measure, list, 1, &judgement);
    memset(out, 0, sizeof *out);
    out->verdict = judgement.verdict;
    out->strength = judgement.strength;
    memcpy(out->why, judgement.why, sizeof out->why);
    for (int i = 0; i < ROLLOUT_CAUSES; i++) {
        if (judgement.claim[i].state != ROLLOUT_NAMED) continue;
        out->named |= 1u << i;
        const size_t used = strlen(out->texts);
        snprintf(out->texts + used, sizeof out->texts - used, "; %s: %s", rollout_cause_names[i],
                 judgement.claim[i].text);
    }
    arena_close(&arena);
}

static int is_loud(void) {
    return getenv("TWINSTEP_PLANTED") != NULL; /* prints every case, for docs/measurements */
}

static void tell(const struct plant *plant, uint32_t number, const struct answer *answer,
                 const char *result) {
    print_message("%3u %-14s %-26s %5.0f floors %3u sequences%s: %s: %s, %.3g, %s%s\n", number,
                  plant->cause == PLANT_CLEAN     ? "clean"
                  : plant->cause == PLANT_FOREIGN ? "foreign"
                                                  : rollout_cause_names[plant->cause],
                  plant_kind_name(plant), plant->strength, plant->sequences,
                  plant->sparse ? " (sparse)" : "", result, rollout_verdict_names[answer->verdict],
                  answer->strength, answer->why, answer->texts);
}

/* ---- planted ---- */

static uint32_t fitted(uint32_t sequences) {
    const uint32_t most = pool_now()->sequences / 2;
    return sequences < most ? sequences : most;
}

static void verify_planted_causes_are_named(void **state) {
    (void)state;
    const uint32_t count = (uint32_t)helper_size(8, 16, 200);
    uint32_t named = 0, undecided = 0, wrong = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct plant plant = plant_case(PLANTED_CAUSE, i);
        struct answer answer;
        plant.sequences = fitted(plant.sequences);
        judge_case(&plant, &answer);
        const unsigned right = plant_allowed(&plant);
        const char *result = answer.named == right          ? "named"
                             : (answer.named & ~right) != 0 ? "WRONG"
                                                            : "undecided";
        named += answer.named == right;
        wrong += (answer.named & ~right) != 0;
        undecided += answer.named == 0;
        if (answer.named != right || is_loud()) tell(&plant, i, &answer, result);
    }
    print_message("planted: %u named, %u undecided, %u wrong of %u\n", named, undecided, wrong,
                  count);
    assert_int_equal(wrong, 0);
    /* The default run has 24 short sequences a file, too few for the weak causes. */
    const uint32_t least = count < 200 ? count * 6 / 10 : count * 9 / 10;
    assert_true(named >= least);
    assert_true(undecided <= count - least);
}

/* ---- clean ---- */

static void verify_clean_rollouts_are_not_accused(void **state) {
    (void)state;
    const uint32_t count = (uint32_t)helper_size(4, 8, 500);
    uint32_t within = 0, accused = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct plant plant = plant_case(PLANTED_NOTHING, i);
        struct answer answer;
        plant.sequences = fitted(plant.sequences);
        judge_case(&plant, &answer);
        const int is_accused = answer.verdict == ROLLOUT_OUTSIDE || answer.named != 0;
        accused += (uint32_t)is_accused;
        within += answer.verdict == ROLLOUT_WITHIN;
        if (is_accused || is_loud()) tell(&plant, i, &answer, is_accused ? "ACCUSED" : "clean");
    }
    print_message("clean: %u within the floor, %u undecided, %u accused of %u\n", within,
                  count - within - accused, accused, count);
    assert_int_equal(accused, 0);
    assert_true(10 * within >= 9 * count);
}

/* ---- what is none of the eight, and two at once ---- */

static void verify_no_other_name_is_given(void **state) {
    (void)state;
    const uint32_t count = (uint32_t)helper_size(5, 10, 200);
    uint32_t wrong = 0, named = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct plant plant = plant_case(PLANTED_FOREIGN, i);
        struct answer answer;
        plant.sequences = fitted(plant.sequences);
        judge_case(&plant, &answer);
        const int is_wrong = (answer.named & ~plant_allowed(&plant)) != 0;
        wrong += (uint32_t)is_wrong;
        named += answer.named != 0;
        if (is_wrong || is_loud()) tell(&plant, i, &answer, is_wrong ? "WRONG" : "foreign");
    }
    print_message("foreign: %u wrong, %u with a right name, of %u\n", wrong, named - wrong, count);
    assert_int_equal(wrong, 0);
}

static int enter(void **state) {
    (void)state;
    if (mkdtemp(folder) == NULL) return -1;
    snprintf(path, sizeof path, "%s/rows.jsonl", folder);
    snprintf(floor_path, sizeof floor_path, "%s/floor.jsonl", folder);
    return 0;
}

static int leave(void **state) {
    (void)state;
    unlink(path);
    unlink(floor_path);
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_planted_causes_are_named),
        cmocka_unit_test(verify_clean_rollouts_are_not_accused),
        cmocka_unit_test(verify_no_other_name_is_given),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
