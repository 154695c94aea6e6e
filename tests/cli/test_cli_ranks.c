/* SPDX-License-Identifier: Apache-2.0
 * labels: cli memory
 * ranks order, ranks buckets and ranks deal: what they print, their JSON, and refusals that name
 * the option. That the numbers are those of real libraries is tests/ranks/. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "tests/cli/helper_cli.h"

static json_t *json_of(const char *line) {
    struct said said = helper_run(0, line);
    json_error_t error;
    assert_string_equal(said.err, "");
    json_t *json = json_loads(said.out, JSON_REJECT_DUPLICATES, &error);
    if (json == NULL) fail_msg("%s: %s in %s", line, error.text, said.out);
    helper_free(&said);
    return json;
}

static void require_said(const char *line, const char *const *needles) {
    struct said said = helper_run(0, line);
    assert_string_equal(said.err, "");
    for (; *needles != NULL; needles++)
        if (strstr(said.out, *needles) == NULL)
            fail_msg("%s: expected %s in %s", line, *needles, said.out);
    helper_free(&said);
}

static void validate_order_bytes(void **state) {
    (void)state;
    struct said said = helper_run(0, "ranks order --algorithm ring --ranks 3 --count 4 --json");
    assert_string_equal(said.out, "{\n"
                                  "  \"algorithm\": \"ring\",\n"
                                  "  \"recorded\": true,\n"
                                  "  \"ranks\": 3,\n"
                                  "  \"count\": 4,\n"
                                  "  \"dtype\": \"f32\",\n"
                                  "  \"runs\": [\n"
                                  "    {\"first\": 0, \"last\": 1, \"order\": \"0 + 1 + 2\"},\n"
                                  "    {\"first\": 2, \"last\": 2, \"order\": \"1 + 2 + 0\"},\n"
                                  "    {\"first\": 3, \"last\": 3, \"order\": \"2 + 0 + 1\"}\n"
                                  "  ]\n"
                                  "}\n");
    helper_free(&said);
}

/* The run of one element alone is one of the runs of all. */
static void verify_element(void **state) {
    (void)state;
    json_t *all = json_of("ranks order --algorithm gloo --ranks 5 --count 777 --dtype bf16 --json");
    json_t *one = json_of("ranks order --algorithm gloo --ranks 5 --count 777 --dtype bf16 "
                          "--element 400 --json");
    const json_t *run = json_array_get(json_object_get(one, "runs"), 0);
    assert_int_equal(json_array_size(json_object_get(one, "runs")), 1);
    assert_true(json_integer_value(json_object_get(run, "first")) <= 400);
    assert_true(json_integer_value(json_object_get(run, "last")) >= 400);
    size_t index, found = 0;
    json_t *other;
    json_array_foreach(json_object_get(all, "runs"), index, other) found +=
        (size_t)json_equal(run, other);
    assert_int_equal(found, 1);
    json_decref(all);
    json_decref(one);
}

static void validate_nccl(void **state) {
    (void)state;
    static const char *const ring[] = {"nccl-ring, 2 ranks, 100 elements of f32; read in the "
                                       "library's source",
                                       "0             3  1 + 0", "4             7  0 + 1", NULL};
    static const char *const tree[] = {"0            49  0 + (2 + 1 + 3)",
                                       "50            99  3 + (1 + 2 + 0)", NULL};
    static const char *const chains[] = {"2 + 1 + (5 + 4 + 3) + 0", NULL};
    static const char *const scatter[] = {"0             2  3 + 1 + 2 + 0",
                                          "3             5  2 + 0 + 3 + 1", NULL};
    static const char *const places[] = {"3 + 1 + 2 + 0", NULL};
    require_said("ranks order --algorithm nccl-ring --ranks 2 --count 100 --chunk 16", ring);
    require_said("ranks order --algorithm nccl-tree --ranks 4 --count 100 --parts 50,50", tree);
    require_said("ranks order --algorithm nccl-tree --ranks 6 --node 3 --count 9 --pattern split",
                 chains);
    require_said("ranks order --algorithm nccl-ring-scatter --ranks 4 --count 12 --places 0,3,1,2",
                 scatter);
    require_said(
        "ranks order --algorithm nccl-ring --ranks 4 --count 9 --chunk 64 --places 0,3,1,2",
        places);
}

static void validate_buckets(void **state) {
    (void)state;
    json_t *json = json_of("ranks buckets --shapes 300x1000,10,2x5x2 --arrival 1,0,2 --json");
    json_t *later = json_object_get(json, "later");
    static const struct {
        json_int_t bucket, first, elements, count;
    } expected[] = {{0, 10, 300000, 300010}, {0, 0, 10, 300010}, {1, 0, 20, 20}};
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        const json_t *row = json_array_get(later, i);
        assert_int_equal(json_integer_value(json_object_get(row, "parameter")), i);
        assert_int_equal(json_integer_value(json_object_get(row, "bucket")), expected[i].bucket);
        assert_int_equal(json_integer_value(json_object_get(row, "first")), expected[i].first);
        assert_int_equal(json_integer_value(json_object_get(row, "elements")),
                         expected[i].elements);
        assert_int_equal(json_integer_value(json_object_get(row, "count")), expected[i].count);
    }
    const json_t *row = json_array_get(json_object_get(json, "update_1"), 2);
    assert_int_equal(json_integer_value(json_object_get(row, "first")), 300010);
    json_decref(json);
    static const char *const whole[] = {"update 2 and later, buckets: 1\n", NULL};
    static const char *const unused[] = {"update 1, buckets: 2\n",
                                         "         0           1             0  ", NULL};
    require_said("ranks buckets --shapes 300x1000,10,2x5x2 --arrival 1,0,2 --dtype bf16", whole);
    require_said("ranks buckets --shapes 300x1000,10,2x5x2 --find-unused", unused);
}

static void validate_fsdp2(void **state) {
    (void)state;
    static const char *const text[] = {
        "one vector of 6120 elements, in each rank's part: 2040\n",
        "         2            41                14              1200\n", NULL};
    require_said("ranks buckets --shapes 59x59,59,41x59,41 --fsdp2 3", text);
    struct said said = helper_run(0, "ranks buckets --shapes 3x2,1 --fsdp2 2 --json");
    assert_string_equal(said.out, "{\n"
                                  "  \"ranks\": 2,\n"
                                  "  \"count\": 10,\n"
                                  "  \"part\": 5,\n"
                                  "  \"parameters\": [\n"
                                  "    {\"parameter\": 0, \"rows\": 3, \"rows_of_rank\": 2, "
                                  "\"first\": 0},\n"
                                  "    {\"parameter\": 1, \"rows\": 1, \"rows_of_rank\": 1, "
                                  "\"first\": 4}\n"
                                  "  ]\n"
                                  "}\n");
    helper_free(&said);
}

static void validate_deals(void **state) {
    (void)state;
    static const struct {
        const char *line;
        const char *needles[4];
    } cases[] = {
        {"ranks deal --samples 22 --ranks 4 --batch 2",
         {"dealt: 24, so 2 of them repeat a sample\n", "3  2, 6 | 10, 14 | 18, 0\n"}},
        {"ranks deal --samples 22 --ranks 4 --batch 2 --tail drop",
         {"dealt: 20, so 2 samples are left out\n", "3  2, 6 | 10, 14 | 18\n"}},
        {"ranks deal --samples 24 --ranks 4 --batch 2", {"dealt: each sample once\n"}},
        {"ranks deal --deal slices --samples 10 --ranks 2 --batch 4",
         {"batches of 2", "3  0, 1 | 4, 5 | 8, 9\n", "3  2, 3 | 6, 7 | 0, 1\n"}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        require_said(cases[i].line, cases[i].needles);
    struct said said = helper_run(0, "ranks deal --deal micros --tail short --samples 3 --ranks 3 "
                                     "--batch 2 --json");
    assert_string_equal(said.out, "{\n"
                                  "  \"deal\": \"micros\",\n"
                                  "  \"tail\": \"short\",\n"
                                  "  \"samples\": 3,\n"
                                  "  \"dealt\": 3,\n"
                                  "  \"ranks\": [\n"
                                  "    [[0, 1]],\n"
                                  "    [[2]],\n"
                                  "    []\n"
                                  "  ]\n"
                                  "}\n");
    helper_free(&said);
}

struct refusal {
    const char *line, *needle;
};

static void require_refused(const struct refusal *cases, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct said said = helper_run(2, cases[i].line);
        assert_string_equal(said.out, "");
        if (strstr(said.err, cases[i].needle) == NULL)
            fail_msg("%s: expected %s in %s", cases[i].line, cases[i].needle, said.err);
        helper_free(&said);
    }
}

/* Products of extents of which 64 bits would keep 0 or a small rest. */
static void verify_large_shapes(void **state) {
    (void)state;
    static const struct refusal cases[] = {
        {"ranks buckets --shapes 1x1099511627776x1099511627776",
         "--shapes: expected at most 2^48 elements of a parameter, got "
         "1x1099511627776x1099511627776"},
        {"ranks buckets --shapes 7,1x8589934592x2147483649,7",
         "of a parameter, got 1x8589934592x2147483649\n"},
        {"ranks buckets --shapes 2x281474976710656", "of a parameter, got 2x281474976710656\n"},
    };
    require_refused(cases, COUNT_OF(cases));
    static const char *const largest[] = {"281474976710656", NULL};
    require_said("ranks buckets --shapes 1x16777216x16777216", largest);
}

/* A number is refused as it was given, not as what a narrower type keeps of it. */
static void verify_given_numbers(void **state) {
    (void)state;
    static const struct refusal cases[] = {
        {"ranks buckets --shapes 5,3 --arrival 99999999999,0",
         "--arrival: expected parameters from 0 to 1, got 99999999999\n"},
        {"ranks buckets --shapes 5,3 --arrival 0,2",
         "--arrival: expected parameters from 0 to 1, got 2\n"},
        {"ranks order --algorithm nccl-ring --ranks 3 --count 9 --chunk 16 --places 0,2,70000",
         "--places: expected ranks from 0 to 2, got 70000\n"},
    };
    require_refused(cases, COUNT_OF(cases));
}

static void verify_useless_arrival(void **state) {
    (void)state;
    static const struct refusal cases[] = {
        {"ranks buckets --shapes 5,3 --find-unused --arrival 9,9",
         "--arrival: the buckets of --find-unused do not depend on it"},
        {"ranks buckets --shapes 5,3 --find-unused --arrival 1,0",
         "--arrival: the buckets of --find-unused do not depend on it"},
    };
    require_refused(cases, COUNT_OF(cases));
}

/* One sample, padded to whole rounds, would be printed 20,480,000 times. */
static void verify_large_deals(void **state) {
    (void)state;
    static const struct refusal cases[] = {
        {"ranks deal --deal micros --samples 1 --ranks 1024 --batch 20000",
         "--batch: expected at most 20000000 samples dealt to all ranks together, got 20480000"},
        {"ranks deal --deal micros --samples 1 --ranks 1024 --batch 20000 --json",
         "--batch: expected at most 20000000 samples dealt to all ranks together, got 20480000"},
    };
    static const char *const dropped[] = {"dealt: 0, so 1 samples are left out\n", NULL};
    require_refused(cases, COUNT_OF(cases));
    require_said("ranks deal --deal micros --samples 1 --ranks 1024 --batch 20000 --tail drop",
                 dropped);
}

/* Only the dtypes and numbers of ranks that were recorded are said to be. */
static void validate_recorded(void **state) {
    (void)state;
    static const struct {
        const char *line, *text;
        int is_recorded;
    } cases[] = {
        {"--algorithm gloo --ranks 5 --dtype bf16", "; held against recordings of the library\n",
         1},
        {"--algorithm gloo --ranks 3 --dtype e4m3",
         "; not recorded itself, by a rule that is held against recordings of f32, bf16 and f16 on "
         "2 to 5 ranks\n",
         0},
        {"--algorithm gloo --ranks 3 --dtype tf32", "; not recorded itself, by a rule", 0},
        {"--algorithm gloo --ranks 6", "; not recorded itself, by a rule", 0},
        {"--algorithm linear --ranks 8", "; held against recordings of the library\n", 1},
        {"--algorithm linear --ranks 9",
         "; not recorded itself, by a rule that is held against recordings of f32 on 2 to 8 "
         "ranks\n",
         0},
        {"--algorithm ring --ranks 4 --dtype bf16", "; not recorded itself, by a rule", 0},
        {"--algorithm nccl-tree --ranks 4", "; read in the library's source\n", 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char line[128];
        const char *const needles[] = {cases[i].text, NULL};
        snprintf(line, sizeof line, "ranks order --count 40 %s", cases[i].line);
        require_said(line, needles);
        snprintf(line, sizeof line, "ranks order --count 40 %s --json", cases[i].line);
        json_t *json = json_of(line);
        assert_int_equal(json_is_true(json_object_get(json, "recorded")), cases[i].is_recorded);
        json_decref(json);
    }
}

static void verify_refusals(void **state) {
    (void)state;
    static const struct refusal cases[] = {
        {"ranks order", "--algorithm: expected a name, got nothing"},
        {"ranks order --algorithm rign --ranks 2 --count 4", "got \"rign\"; did you mean ring?"},
        {"ranks order --algorithm ring --count 4",
         "--ranks: expected a whole number from 1 to 1024, got nothing"},
        {"ranks order --algorithm ring --ranks 1025 --count 4",
         "--ranks: expected a whole number from 1 to 1024, got \"1025\""},
        {"ranks order --algorithm ring --ranks 2 --count 0", "--count: expected a whole number"},
        {"ranks order --algorithm ring --ranks 2 --count 4 --element 4",
         "--element: expected a whole number from 0 to 3, got \"4\""},
        {"ranks order --algorithm ring --ranks 2 --count 4 --dtype f23",
         "got \"f23\"; did you mean f32?"},
        {"ranks order --algorithm ring --ranks 2 --count 4 --chunk 16",
         "--chunk: ring does not depend on it"},
        {"ranks order --algorithm nccl-ring-scatter --ranks 2 --count 4 --chunk 16",
         "--chunk: nccl-ring-scatter does not depend on it"},
        {"ranks order --algorithm nccl-ring-scatter --ranks 2 --count 5",
         "count: expected a multiple of 2"},
        {"ranks order --algorithm nccl-ring --ranks 2 --count 4 --node 2",
         "--node: nccl-ring does not depend on it"},
        {"ranks order --algorithm nccl-ring --ranks 2 --count 4",
         "chunk: expected a multiple of 16 bytes"},
        {"ranks order --algorithm nccl-ring --ranks 2 --count 4 --chunk 16 --places 0",
         "--places: expected 2 ranks, got 1"},
        {"ranks order --algorithm nccl-ring --ranks 2 --count 4 --chunk 16 --places 0,9",
         "places: expected ranks from 0 to 1, got 9"},
        {"ranks order --algorithm nccl-tree --ranks 2 --count 4 --parts 1,2,3",
         "--parts: expected FIRST or FIRST,FURTHER, got 3 numbers"},
        {"ranks order --algorithm nccl-tree --ranks 2 --count 4 --parts 1,x",
         "--parts: expected whole numbers between commas, got \"x\" in \"1,x\""},
        {"ranks buckets", "--shapes: expected shapes between commas, as 59x59,59, got nothing"},
        {"ranks buckets --shapes 1x0",
         "--shapes: expected shapes between commas, as 59x59,59, got \"0\""},
        {"ranks buckets --shapes 3,4y",
         "--shapes: expected shapes between commas, as 59x59,59, got \"4y\""},
        {"ranks buckets --shapes 16777216x16777217",
         "--shapes: expected at most 2^48 elements of a parameter"},
        {"ranks buckets --shapes 281474976710656,1", "tensor 1: expected 1 to 2^48 elements"},
        {"ranks buckets --shapes 1 --fsdp2 0", "--fsdp2: expected a whole number from 1 to 1024"},
        {"ranks buckets --shapes 1 --fsdp2 2 --cap 4",
         "--cap: the vector of --fsdp2 does not depend on it"},
        {"ranks buckets --shapes 281474976710656 --fsdp2 2",
         "tensor 0: expected 1 to 2^48 elements"},
        {"ranks buckets --shapes 1,2 --arrival 0",
         "--arrival: expected the numbers of 2 parameters"},
        {"ranks buckets --shapes 1,2 --arrival 0,0", "arrival: expected each of 2 tensors once"},
        {"ranks buckets --shapes 1 --cap 0", "--cap: expected a whole number from 1 to"},
        {"ranks deal --samples 4 --ranks 2",
         "--batch: expected a whole number from 1 to 10000000, got nothing"},
        {"ranks deal --samples 4 --ranks 2 --batch 1 --deal cylic",
         "--deal: expected cyclic, micros or slices, got \"cylic\"; did you mean cyclic?"},
        {"ranks deal --samples 4 --ranks 2 --batch 3 --deal slices",
         "batch: expected a multiple of 2"},
        {"ranks deal --samples 4 --ranks 2 --batch 3 --tail short",
         "tail: DistributedSampler pads or drops"},
    };
    require_refused(cases, COUNT_OF(cases));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_order_bytes),   cmocka_unit_test(verify_element),
        cmocka_unit_test(validate_nccl),          cmocka_unit_test(validate_buckets),
        cmocka_unit_test(validate_fsdp2),         cmocka_unit_test(validate_deals),
        cmocka_unit_test(verify_large_shapes),    cmocka_unit_test(verify_given_numbers),
        cmocka_unit_test(verify_useless_arrival), cmocka_unit_test(verify_large_deals),
        cmocka_unit_test(validate_recorded),      cmocka_unit_test(verify_refusals),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
