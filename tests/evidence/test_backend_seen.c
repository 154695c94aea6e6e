/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What runs and floors were computed on, by the attributes of their files: which group they are of,
 * where none was recorded; the line about it; and what differs, of what both sides recorded. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "evidence/backend_seen.h"

#define CPU "numerics.backend: cpu\n"
#define CUDA "numerics.backend: cuda\n"

static struct trace_attribute attributes[12];

static struct trace_attribute of(const char *path, const char *name, const char *text) {
    return (struct trace_attribute){.path = path, .name = name, .text = text};
}

static void same_text(const char *got, const char *expected, int line) {
    if ((got == NULL) != (expected == NULL) || (got != NULL && strcmp(got, expected) != 0))
        fail_msg("line %d: %s", line, got != NULL ? got : "none");
}
#define SAME(got, expected) same_text(got, expected, __LINE__)

static void validate_groups(void **state) {
    (void)state;
    static const struct {
        const char *group, *configuration, *run, *floor;
    } cases[] = {{NULL, CPU, "cpu", "cpu"},
                 {NULL, CUDA, NULL, NULL},
                 {"gpu", CPU, "gpu", "gpu"},
                 {"gpu", CUDA, "gpu", "gpu"},
                 {"cpu", CUDA, "cpu", "cpu"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (int floor = 0; floor < 2; floor++) {
            struct trace_run run = {.plan = {.id = "run", .configuration = cases[i].configuration}};
            struct trace_image image = {
                .runs = &run, .run_count = 1, .attributes = attributes, .attribute_count = 2};
            struct floor_file file = {.configuration = cases[i].configuration,
                                      .environment = attributes,
                                      .environment_count = 2};
            attributes[0] = of("backend", "another", "other");
            attributes[1] = of(cases[i].group != NULL ? "backend" : "else", floor ? "noise" : "run",
                               cases[i].group);
            const struct backend_seen seen =
                floor ? backends_of_floor(&file) : backends_of_run(&image, "run");
            SAME(seen.group, floor ? cases[i].floor : cases[i].run);
            assert_ptr_equal(seen.attributes, attributes);
            assert_int_equal(seen.attribute_count, 2);
            if (floor) continue;
            image.run_count = 0; /* a run that is not there is of no group */
            SAME(backends_of_run(&image, "run").group, cases[i].group);
        }
}

static void validate_momentary_facts(void **state) {
    (void)state;
    static const struct {
        const char *path;
        int momentary;
    } cases[] = {{"backend/gpu/volatile", 1}, {"backend/volatile", 1}, {"backend/gpu", 0},
                 {"env/volatile", 0},         {"/volatile", 0},        {"backend/gpu/volatile2", 0},
                 {"backends/gpu/volatile", 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct trace_attribute attribute = of(cases[i].path, "clock", "1");
        assert_int_equal(backends_is_volatile(&attribute), cases[i].momentary);
    }
}

static struct backend_seen seen_of(const char *group, uint32_t from, uint32_t count) {
    return (struct backend_seen){
        .attributes = &attributes[from], .attribute_count = count, .group = group};
}

static void validate_lines(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    char *line;
    attributes[0] = of("backend/other", "device", "OTHER");
    attributes[1] = of("backend/gpu", "driver", "535");
    attributes[2] = of("backend/gpu", "sha256", "abc");
    attributes[3] = of("backend/gpu", "device", "A100");
    attributes[4] = of("backend/gpu/volatile", "clock", "1410");
    attributes[5] = of("backend/gpu", "memory", "40 GiB");
    const struct {
        const char *group;
        uint32_t count;
        const char *line;
    } cases[] = {{"gpu", 6, "gpu: A100, driver 535, memory 40 GiB"},
                 {"gpu", 3, "gpu, driver 535"},
                 {"other", 6, "other: OTHER"},
                 {"none", 6, "none"},
                 {"cpu", 6, "cpu"},
                 {NULL, 6, "not recorded"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct backend_seen seen = seen_of(cases[i].group, 0, cases[i].count);
        assert_int_equal(backends_line(&seen, &arena, &line), STATUS_OK);
        assert_string_equal(line, cases[i].line);
    }
    attributes[0] = of("backend/cpu", "device", "X"); /* what runs without a module has no facts */
    const struct backend_seen own = seen_of("cpu", 0, 1);
    assert_int_equal(backends_line(&own, &arena, &line), STATUS_OK);
    assert_string_equal(line, "cpu");
    arena_close(&arena);
}

static void validate_differences(void **state) {
    (void)state;
    static const char *const names[] = {"in A", "in B"};
    struct arena arena = ARENA_EMPTY;
    attributes[0] = of("backend/gpu", "device", "A100");
    attributes[1] = of("backend/gpu", "driver", "535");
    attributes[2] = of("backend/gpu", "only", "A");
    attributes[3] = of("backend/gpu/volatile", "clock", "1");
    attributes[6] = of("backend/gpu", "device", "H100");
    attributes[7] = of("backend/gpu", "driver", "550");
    attributes[8] = of("backend/gpu/volatile", "clock", "2");
    attributes[9] = of("backend/gpu", "more", "B");
    static const struct {
        const char *a, *b;
        uint32_t counts[2];
        const char *text;
    } cases[] = {
        {"gpu", "gpu", {4, 4}, "device: A100 in A, H100 in B; driver: 535 in A, 550 in B"},
        {"gpu", "gpu", {4, 1}, "device: A100 in A, H100 in B"},
        {"gpu", "gpu", {1, 4}, "device: A100 in A, H100 in B"},
        {"gpu", "gpu", {0, 4}, ""},
        {"gpu", "cpu", {4, 4}, "backend: gpu in A, cpu in B"},
        {"cpu", "gpu", {4, 4}, "backend: cpu in A, gpu in B"},
        {"cpu", "cpu", {4, 4}, ""},
        {NULL, "gpu", {4, 4}, ""}, /* what one side lacks is unknown */
        {"gpu", NULL, {4, 4}, ""},
        {NULL, "cpu", {4, 4}, ""},
        {NULL, NULL, {4, 4}, ""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct backend_seen seen[2] = {seen_of(cases[i].a, 0, cases[i].counts[0]),
                                             seen_of(cases[i].b, 6, cases[i].counts[1])};
        char *text;
        assert_int_equal(backends_difference(seen, names, &arena, &text), STATUS_OK);
        assert_string_equal(text, cases[i].text);
    }
    const struct backend_seen same[2] = {seen_of("gpu", 0, 4), seen_of("gpu", 0, 4)};
    char *text;
    assert_int_equal(backends_difference(same, names, &arena, &text), STATUS_OK);
    assert_string_equal(text, "");
    assert_string_equal(backends_here[0], "there");
    assert_string_equal(backends_here[1], "here");
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_groups),
        cmocka_unit_test(validate_momentary_facts),
        cmocka_unit_test(validate_lines),
        cmocka_unit_test(validate_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
