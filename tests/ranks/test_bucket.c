/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Where tensors stand in the buckets of DDP, against recordings of torch, and in the vector that
 * FSDP2 reduces, against torch's rule written out for one rank after another. */
#include "ranks/bucket.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "tests/ranks/helper_recorded.h"

#define TENSORS 32
#define LINE 512

struct recorded {
    char options[16];
    unsigned long long cap; /* MiB */
    uint64_t sizes[TENSORS];
    size_t count;
};

/* Writes the buckets as the recording has them: tensors in their order, " | " between buckets. */
static void write_buckets(const struct recorded *recorded, const struct bucket_place *places,
                          const uint64_t *lengths, size_t buckets, char *out) {
    size_t at = 0;
    for (size_t bucket = 0; bucket < buckets; bucket++) {
        uint64_t offset = 0;
        for (size_t i = 0; i < recorded->count; i++)
            for (size_t tensor = 0; tensor < recorded->count; tensor++) {
                if (places[tensor].bucket != bucket || places[tensor].offset != offset) continue;
                const char *before = offset > 0 ? " " : bucket > 0 ? " | " : "";
                at += (size_t)snprintf(out + at, LINE - at, "%s%zu", before, tensor);
                offset += recorded->sizes[tensor];
                break;
            }
        assert_int_equal(offset, lengths[bucket]);
    }
}

static void expect_update(const struct recorded *recorded, uint64_t update, const char *expected) {
    const struct bucket_call call = {.sizes = recorded->sizes,
                                     .count = recorded->count,
                                     .width = 4,
                                     .first = recorded->cap == 25 ? BUCKET_FIRST_BYTES
                                                                  : (uint64_t)recorded->cap << 20,
                                     .cap = (uint64_t)recorded->cap << 20,
                                     .finds_unused = strcmp(recorded->options, "unused") == 0};
    uint32_t scratch[TENSORS];
    struct bucket_place places[TENSORS];
    uint64_t lengths[TENSORS];
    size_t buckets;
    char got[LINE];
    assert_int_equal(bucket_ddp(&call, update, scratch, places, lengths, &buckets), STATUS_OK);
    write_buckets(recorded, places, lengths, buckets, got);
    assert_string_equal(got, expected);
}

/* Gradients of a chain of layers arrive from the last parameter to the first, a bias before its
 * weight, in all that was recorded. */
static void corroborate_ddp(void **state) {
    (void)state;
    FILE *file = recorded_open("buckets.txt");
    struct recorded recorded = {.count = 0};
    char line[LINE];
    int cases = 0, updates = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        char *rest = strchr(line, ' ') + 1;
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == 'c') {
            assert_int_equal(sscanf(rest, "%15s %llu", recorded.options, &recorded.cap), 2);
            cases++;
        } else if (line[0] == 's') {
            recorded.count = 0;
            while (*rest != '\0')
                recorded.sizes[recorded.count++] = strtoull(rest, &rest, 10);
        } else {
            const uint64_t update = strtoull(rest, &rest, 10);
            expect_update(&recorded, update, rest + 1);
            updates++;
        }
    }
    fclose(file);
    assert_int_equal(cases, 7);
    assert_int_equal(updates, 3 * 7);
}

/* A tensor that passes the limit is still in the bucket, and what arrives first comes first. */
static void validate_arrival(void **state) {
    (void)state;
    static const uint64_t sizes[] = {10, 20, 30, 40};
    static const uint32_t arrival[] = {2, 0, 3, 1};
    const struct bucket_call call = {
        .sizes = sizes, .arrival = arrival, .count = 4, .width = 4, .first = 121, .cap = 160};
    uint32_t scratch[4];
    struct bucket_place places[4];
    uint64_t lengths[4];
    size_t buckets;
    assert_int_equal(bucket_ddp(&call, 2, scratch, places, lengths, &buckets), STATUS_OK);
    assert_int_equal(buckets, 3);
    static const struct bucket_place expected[] = {{0, 30}, {2, 0}, {0, 0}, {1, 0}};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(places[i].bucket, expected[i].bucket);
        assert_int_equal(places[i].offset, expected[i].offset);
    }
    assert_int_equal(lengths[0], 40);
    assert_int_equal(lengths[1], 40);
    assert_int_equal(lengths[2], 20);
}

/* With unused parameters buckets are filled in the order of definition, and the last is the first
 * that is reduced: five of them here, of one tensor each. */
static void validate_reversal(void **state) {
    (void)state;
    static const uint64_t sizes[] = {1, 2, 3, 4, 5};
    const struct bucket_call call = {
        .sizes = sizes, .count = 5, .width = 4, .first = 4, .cap = 4, .finds_unused = 1};
    uint32_t scratch[5];
    struct bucket_place places[5];
    uint64_t lengths[5];
    size_t buckets;
    assert_int_equal(bucket_ddp(&call, 1, scratch, places, lengths, &buckets), STATUS_OK);
    assert_int_equal(buckets, 5);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(places[i].bucket, 4 - i);
        assert_int_equal(lengths[i], 5 - i);
    }
}

/* For every rank: its rows of every tensor, one tensor behind another, filled up to equal parts. */
static void corroborate_group(void **state) {
    (void)state;
    static const uint64_t rows[] = {59, 6, 2, 40}, row_lengths[] = {7, 1, 3, 5};
    const struct bucket_group group = {rows, row_lengths, 4, 3};
    uint64_t next = 0;
    assert_int_equal(bucket_group_check(&group), STATUS_OK);
    for (uint32_t rank = 0; rank < 3; rank++)
        for (size_t tensor = 0; tensor < 4; tensor++) {
            const uint64_t chunk = (rows[tensor] + 2) / 3;
            for (uint64_t row = rank * chunk; row < (rank + 1) * chunk; row++)
                for (uint64_t i = 0; i < row_lengths[tensor]; i++, next++) {
                    if (row >= rows[tensor]) continue;
                    const uint64_t element = row * row_lengths[tensor] + i;
                    assert_int_equal(bucket_group_place(&group, tensor, element), next);
                }
        }
    assert_int_equal(bucket_group_length(&group), next);
}

static void verify_refusals(void **state) {
    (void)state;
    static const uint64_t sizes[] = {10, 20}, empty[] = {10, 0};
    static const uint32_t twice[] = {1, 1}, above[] = {0, 2};
    const struct bucket_call good = {.sizes = sizes, .count = 2, .width = 4, .first = 1, .cap = 1};
    uint32_t scratch[2];
    struct bucket_place places[2];
    uint64_t lengths[2];
    size_t buckets;
    struct bucket_call call = good;
    call.count = 0;
    assert_int_equal(bucket_ddp(&call, 1, scratch, places, lengths, &buckets), STATUS_INPUT);
    assert_string_equal(status_text(), "tensors: expected 1 to 2^32 - 1, got 0");
    call = good;
    call.sizes = empty;
    assert_int_equal(bucket_ddp(&call, 1, scratch, places, lengths, &buckets), STATUS_INPUT);
    assert_string_equal(
        status_text(),
        "tensor 1: expected 1 to 2^48 elements, also of all together, got 0 behind 10");
    call = good;
    call.cap = 0;
    assert_int_equal(bucket_ddp(&call, 1, scratch, places, lengths, &buckets), STATUS_INPUT);
    call = good;
    call.arrival = twice;
    assert_int_equal(bucket_ddp(&call, 2, scratch, places, lengths, &buckets), STATUS_INPUT);
    assert_string_equal(status_text(),
                        "arrival: expected each of 2 tensors once, got 1 at place 1");
    /* Also where the buckets do not depend on it. */
    assert_int_equal(bucket_ddp(&call, 1, scratch, places, lengths, &buckets), STATUS_INPUT);
    call.finds_unused = 1;
    assert_int_equal(bucket_ddp(&call, 2, scratch, places, lengths, &buckets), STATUS_INPUT);
    call.finds_unused = 0;
    const struct bucket_group good_group = {sizes, sizes, 2, 3};
    struct bucket_group group = good_group;
    group.ranks = 1;
    assert_int_equal(bucket_group_check(&group), STATUS_OK);
    group.ranks = 0;
    assert_int_equal(bucket_group_check(&group), STATUS_INPUT);
    assert_string_equal(status_text(), "ranks: expected 1 to 1024, got 0");
    group = good_group;
    group.rows = empty;
    assert_int_equal(bucket_group_check(&group), STATUS_INPUT);
    assert_string_equal(status_text(), "tensor 1: expected 1 to 2^48 elements, got 0 rows of 20");
    /* 2^80 elements, of which 64 bits would keep 2^41. */
    static const uint64_t huge[] = {(uint64_t)1 << 40, 1};
    group = good_group;
    group.rows = huge;
    group.row_lengths = huge;
    assert_int_equal(bucket_group_check(&group), STATUS_INPUT);
    static const uint64_t large[] = {(uint64_t)1 << 46, (uint64_t)1 << 47}, one[] = {1, 1};
    group.rows = large;
    group.row_lengths = one;
    assert_int_equal(bucket_group_check(&group), STATUS_OK);
    static const uint64_t larger[] = {(uint64_t)1 << 47, ((uint64_t)1 << 47) + 1};
    group.rows = larger;
    assert_int_equal(bucket_group_check(&group), STATUS_INPUT);
    assert_string_equal(status_text(), "tensor 1: expected at most 2^48 elements of all together");
    group = good_group;
    group.count = 0;
    assert_int_equal(bucket_group_check(&group), STATUS_INPUT);
    call.arrival = above;
    assert_int_equal(bucket_ddp(&call, 2, scratch, places, lengths, &buckets), STATUS_INPUT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_ddp),   cmocka_unit_test(validate_arrival),
        cmocka_unit_test(validate_reversal), cmocka_unit_test(corroborate_group),
        cmocka_unit_test(verify_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
