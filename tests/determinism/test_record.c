/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Records: a record as bytes and back, for shapes in which each axis is there or not; and the roots
 * of a foreign run, made of what its writer recorded, which touch no tensor or group beyond. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "determinism/digest.h"
#include "determinism/foreign.h"
#include "determinism/trace.h"

enum { AXES = 8, BYTES = 1 << 16, MANY = 3 };

/* The length of each axis: a bit of `has` for it, and lengths that differ. */
static struct record_shape shape_of(unsigned has) {
    uint32_t length[AXES];
    for (uint32_t a = 0; a < AXES; a++)
        length[a] = (has >> a & 1u) != 0 ? 1 + a % MANY : 0;
    return (struct record_shape){length[0], length[1], length[2], length[3],
                                 length[4], length[5], length[6], length[7]};
}

/* The parts of a record as struct record names them, with their sizes in bytes. */
struct part {
    void *bytes;
    size_t size;
};

static size_t parts_of(const struct record_shape *shape, const struct record *record,
                       struct part out[11]) {
    size_t count = 0;
#define PART(member, axis)                                                                         \
    out[count++] = (struct part){record->member, shape->axis * sizeof *record->member}
    PART(groups, groups);
    PART(tensors, tensors);
    PART(tensor_digests, tensors);
    PART(phases, phases);
    PART(phase_places, phases);
    PART(sites, sites);
    PART(micros, micros);
    PART(ledger, consumers);
    PART(places, streams);
    PART(rank_digests, ranks);
    PART(ranks, ranks);
    return count;
}

static void fill(const struct record_shape *shape, struct record *record, unsigned seed) {
    struct part parts[11];
    const size_t count = parts_of(shape, record, parts);
    unsigned char *const own = (unsigned char *)record;
    for (size_t i = 0; i < offsetof(struct record, groups); i++)
        own[i] = (unsigned char)(i * 7 + seed);
    for (size_t p = 0; p < count; p++)
        for (size_t i = 0; i < parts[p].size; i++)
            ((unsigned char *)parts[p].bytes)[i] = (unsigned char)(i * 11 + p * 31 + seed + 1);
}

static void verify_bytes(void **state) {
    (void)state;
    static unsigned char bytes[BYTES];
    for (unsigned has = 0; has < 1u << AXES; has++) {
        struct arena arena = ARENA_EMPTY;
        const struct record_shape shape = shape_of(has);
        struct record records[2];
        struct part parts[2][11];
        size_t size = offsetof(struct record, groups);
        memset(records, 0, sizeof records);
        assert_int_equal(record_take(&arena, &shape, 2, records), STATUS_OK);
        const size_t count = parts_of(&shape, &records[0], parts[0]);
        (void)parts_of(&shape, &records[1], parts[1]);
        for (size_t p = 0; p < count; p++)
            size += parts[0][p].size;
        assert_int_equal(record_packed(&shape), size);
        assert_true(size < BYTES);
        fill(&shape, &records[0], has);
        fill(&shape, &records[1], has + 100);
        memset(bytes, 0xa5, sizeof bytes);
        record_pack(&shape, &records[0], bytes);
        assert_int_equal(bytes[size], 0xa5);
        record_unpack(&shape, bytes, &records[1]);
        assert_memory_equal(&records[0], &records[1], offsetof(struct record, groups));
        for (size_t p = 0; p < count; p++)
            if (parts[0][p].size > 0)
                assert_memory_equal(parts[0][p].bytes, parts[1][p].bytes, parts[0][p].size);
        arena_close(&arena);
    }
}

static void validate_digests_that_are_there(void **state) {
    (void)state;
    uint8_t digest[RECORD_DIGEST_BYTES] = {0};
    assert_false(record_has_digest(digest));
    for (size_t i = 0; i < RECORD_DIGEST_BYTES; i++) {
        digest[i] = 1;
        assert_true(record_has_digest(digest));
        digest[i] = 0;
    }
}

/* ---- roots of a foreign run ---- */

static uint32_t group_of[MANY] = {0, 1, 0};
static double groups[MANY + 1][RECORD_GROUPS];
static uint8_t tensors[MANY + 1][RECORD_TENSOR_DIGESTS][RECORD_DIGEST_BYTES];
static struct record record;
static struct trace_foreign foreign;
static struct trace_run_plan plan;

/* What lies behind the last tensor and group is another one's. */
static void open_foreign(uint32_t tensor_count, uint32_t group_count) {
    memset(&record, 0, sizeof record);
    for (size_t t = 0; t <= MANY; t++)
        memset(tensors[t], (int)(0x10 + t), sizeof tensors[t]);
    for (size_t g = 0; g <= MANY; g++)
        for (size_t c = 0; c < RECORD_GROUPS; c++)
            groups[g][c] = c == GROUP_LR_APPLIED ? 0.25 * (double)(g + 1) : -1.0;
    record.tensor_digests = tensors;
    record.groups = groups;
    foreign = (struct trace_foreign){.digest = "leaf 1", .causes = "", .groups = group_of};
    plan = (struct trace_run_plan){.foreign = &foreign,
                                   .shape = {.tensors = tensor_count, .groups = group_count}};
}

/* The digests of the weights and of the LRs, made of lists that lie together. */
static void expect_parts(uint32_t tensor_count) {
    struct digest parts[MANY], lrs[MANY], want;
    struct digest_stream stream;
    for (uint32_t t = 0; t < tensor_count; t++)
        memcpy(parts[t].byte, tensors[t][TENSOR_DIGEST_PARAMETER], DIGEST_BYTES);
    digest_root("weights", parts, tensor_count, &want);
    assert_memory_equal(record.digests[DIGEST_WEIGHTS], want.byte, DIGEST_BYTES);
    digest_stream_init(&stream, "lr_applied");
    for (uint32_t t = 0; t < tensor_count; t++) {
        digest_bytes("lr", &groups[group_of[t]][GROUP_LR_APPLIED], sizeof(double), &lrs[t]);
        digest_stream_add(&stream, &lrs[t]);
    }
    digest_stream_close(&stream, &want);
    assert_memory_equal(record.digests[DIGEST_LR], want.byte, DIGEST_BYTES);
}

static void validate_foreign_parts(void **state) {
    (void)state;
    uint32_t index;
    for (uint32_t count = 1; count <= MANY; count++) {
        open_foreign(count, 2);
        assert_null(foreign_missing(&plan, &record, &index));
        assert_int_equal(foreign_parts(&plan, &record), 1);
        expect_parts(count);
        /* what was recorded stays */
        open_foreign(count, 2);
        memset(record.digests[DIGEST_WEIGHTS], 7, DIGEST_BYTES);
        memset(record.digests[DIGEST_LR], 9, DIGEST_BYTES);
        assert_int_equal(foreign_parts(&plan, &record), 1);
        assert_int_equal(record.digests[DIGEST_WEIGHTS][0], 7);
        assert_int_equal(record.digests[DIGEST_LR][31], 9);
    }
}

/* Each tensor's digest and each group's LR must be there, and where several are not, the first is
 * named; the digest of another column, and of a tensor behind the last, does not matter. */
static void validate_what_is_missing(void **state) {
    (void)state;
    for (uint32_t t = 0; t <= MANY; t++) {
        uint32_t index = 99;
        open_foreign(MANY, 2);
        for (uint32_t k = t; k <= MANY; k++)
            memset(tensors[k][TENSOR_DIGEST_PARAMETER], 0, DIGEST_BYTES);
        const char *const said = foreign_missing(&plan, &record, &index);
        if (t == MANY)
            assert_null(said);
        else
            assert_string_equal(said, "tensors/digest_parameter");
        assert_int_equal(index, t < MANY ? t : 0);
        assert_int_equal(foreign_parts(&plan, &record), t == MANY);
    }
    uint32_t index = 99;
    open_foreign(0, 2);
    assert_string_equal(foreign_missing(&plan, &record, &index), "tensors/digest_parameter");
    memset(record.digests[DIGEST_WEIGHTS], 7, DIGEST_BYTES);
    assert_null(foreign_missing(&plan, &record, &index));
    open_foreign(MANY, 2);
    foreign.groups = NULL;
    assert_string_equal(foreign_missing(&plan, &record, &index), "tensors/group");
    memset(record.digests[DIGEST_LR], 7, DIGEST_BYTES);
    assert_null(foreign_missing(&plan, &record, &index));
}

/* An LR that is not there says "no step" where the row was skipped or another group has one; it
 * gets the bits of one NaN, and that of a group behind the last keeps its own. */
static void validate_absent_rates(void **state) {
    (void)state;
    for (unsigned lacking = 0; lacking < 4; lacking++)
        for (int64_t skipped = -1; skipped < 3; skipped++) {
            const double beyond = -(double)NAN;
            uint32_t index = 99;
            open_foreign(MANY, 2);
            record.integers[INTEGER_SKIPPED] = skipped;
            for (uint32_t g = 0; g < 2; g++)
                if ((lacking >> g & 1u) != 0) groups[g][GROUP_LR_APPLIED] = -(double)NAN;
            groups[2][GROUP_LR_APPLIED] = beyond;
            const int may = lacking < 3 || skipped == 1;
            const char *const said = foreign_missing(&plan, &record, &index);
            if (may)
                assert_null(said);
            else
                assert_string_equal(said, "lr_applied");
            assert_int_equal(index, 0);
            assert_int_equal(foreign_parts(&plan, &record), may);
            assert_memory_equal(&groups[2][GROUP_LR_APPLIED], &beyond, sizeof beyond);
            if (!may) continue;
            for (uint32_t g = 0; g < 2; g++) {
                const double one = (double)NAN;
                if ((lacking >> g & 1u) != 0)
                    assert_memory_equal(&groups[g][GROUP_LR_APPLIED], &one, sizeof one);
            }
            expect_parts(MANY);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_bytes),           cmocka_unit_test(validate_digests_that_are_there),
        cmocka_unit_test(validate_foreign_parts), cmocka_unit_test(validate_what_is_missing),
        cmocka_unit_test(validate_absent_rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
