/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Digests must be those of an independent implementation in Python (hashlib and integers, written
 * from docs/decisions/digest.md). Also what must and what must not change them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/real.h"
#include "determinism/digest.h"
#include "determinism/leafhash.h"
#include "determinism/stream.h"

static void expect_hex(const struct digest *digest, const char *expected) {
    char text[DIGEST_HEX];
    digest_hex(digest, text);
    assert_string_equal(text, expected);
}

static struct digest tensor(const char *name, enum dtype dtype, size_t rank, const size_t *shape,
                            const void *data) {
    struct digest out;
    assert_int_equal(digest_tensor(name, dtype, rank, shape, data, &out), STATUS_OK);
    return out;
}

static void validate_tensors(void **state) {
    (void)state;
    const float three[] = {1.0f, -2.5f, 0.1f};
    struct digest out = tensor("w", DTYPE_F32, 1, (const size_t[]){3}, three);
    expect_hex(&out, "16284a8373f4704c2024a30db7cebaacf930a7871f0d515906e5a18bfe5c1d14");
    const float norm[] = {1.0f, -2.5f, real_from_bits_f32(0xFF800001u), -real_inf_f32()};
    out = tensor("model.norm.weight", DTYPE_BF16, 2, (const size_t[]){2, 2}, norm);
    expect_hex(&out, "01404cc6c159f1ad4623f85a46f3a4bffd94f72610f1c37716ed9a30f0dabefc");
    const float halves[] = {1.0f, -65504.0f, 0x1p-24f, -0.0f};
    out = tensor("h", DTYPE_F16, 2, (const size_t[]){2, 2}, halves);
    expect_hex(&out, "f0537ef72d58d0486b8363d3281e7a69373cf180e4435940a707b1e40fc85f98");
    const double scalar = 0.1;
    out = tensor("d", DTYPE_F64, 0, NULL, &scalar);
    expect_hex(&out, "e6d0542b55b6d995088f06c84d1014e8af6da33ee059c6047a832abbc35b787a");
    const float tf32 = 0x1.004p0f;
    out = tensor("t", DTYPE_TF32, 1, (const size_t[]){1}, &tf32);
    expect_hex(&out, "8b04e7b04bfd1121eb685f0d01e2913927cb764198af54a472e7c325e545b64e");
    out = tensor("empty", DTYPE_F32, 2, (const size_t[]){0, 7}, &tf32);
    expect_hex(&out, "818bb0b0f2d616dbc8e9a70675fa40173f08a42c40441d722a8b7b75bc702aa7");
}

/* 160000 bytes are two full leaves and a part of one. */
static void validate_several_leaves(void **state) {
    (void)state;
    static float big[40000];
    for (size_t i = 0; i < COUNT_OF(big); i++)
        big[i] = (float)i;
    const struct digest out = tensor("big", DTYPE_F32, 2, (const size_t[]){200, 200}, big);
    expect_hex(&out, "130c3248b08243d08ded8dd6153c61a68d0f18673e78352abcb09f21f87f439f");
}

/* A tensor that ends in half a word, behind a full piece whose bytes must not show through the
 * padding. */
static void validate_odd_halves(void **state) {
    (void)state;
    static float odd[2049];
    for (size_t i = 0; i < COUNT_OF(odd); i++)
        odd[i] = (float)(i % 200) * 0.5f;
    const struct digest out = tensor("odd", DTYPE_BF16, 1, (const size_t[]){2049}, odd);
    expect_hex(&out, "45bfaf8806cc9eddf9f86f7e095d0b5fe8241ae4f236b054ea9fdf7cfd062679");
}

static void validate_other_kinds(void **state) {
    (void)state;
    struct digest out;
    uint8_t bytes[200];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    digest_bytes("counters", bytes, sizeof bytes, &out);
    expect_hex(&out, "77242591bea6d43d3696755df80051f768dc4e9ef9802372a2fd17910a17b1a2");
    struct digest list[2];
    digest_sha256("", 0, &list[0]);
    expect_hex(&list[0], "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    digest_sha256("abc", 3, &list[1]);
    expect_hex(&list[1], "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    struct digest_bytes_so_far portions; /* of the 200 bytes above; sha256sum has the same */
    digest_sha256_begin(&portions);
    digest_sha256_add(&portions, bytes, 0);
    digest_sha256_add(&portions, bytes, 63);
    digest_sha256_add(&portions, bytes + 63, 66);
    digest_sha256_add(&portions, bytes + 129, 71);
    digest_sha256_end(&portions, &out);
    expect_hex(&out, "1901da1c9f699b48f6b2636e65cbf73abf99d0441ef67f5c540a42f7051dec6f");
    digest_root("phases", list, 2, &out);
    expect_hex(&out, "76fdb1007a9a28e5240d6678e78d5f0ff68505845d2c0bf369282c8c944adcfe");
    static struct stream_ledger ledger;
    stream_ledger_add(&ledger, STREAM_INIT, 3, 100);
    stream_ledger_add(&ledger, STREAM_DROPOUT, 511, 7);
    digest_ledger(&ledger, &out);
    expect_hex(&out, "dedce97cf2f72357b79731ae96e1224cf39971550cb27f269fd13625f1b56ad1");
    struct digest_stream stream;
    digest_stream_init(&stream, "forward");
    digest_stream_add(&stream, &list[0]);
    digest_stream_add(&stream, &list[1]);
    digest_stream_close(&stream, &out);
    expect_hex(&out, "89147a8c5c0ca762a3dd7c2a2eb8cce663cee7b0fedb24e840a65828bed5cbef");
}

/* Every part of a tensor's identity counts; each row differs from the first in one of them. */
static void verify_identity_counts(void **state) {
    (void)state;
    const float data[] = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f};
    const float zero[] = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, -0.0f};
    const float plus[] = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 0.0f};
    struct digest all[8];
    all[0] = tensor("a", DTYPE_F32, 2, (const size_t[]){2, 3}, data);
    all[1] = tensor("b", DTYPE_F32, 2, (const size_t[]){2, 3}, data);
    all[2] = tensor("a", DTYPE_TF32, 2, (const size_t[]){2, 3}, data);
    all[3] = tensor("a", DTYPE_F32, 2, (const size_t[]){3, 2}, data);
    all[4] = tensor("a", DTYPE_F32, 1, (const size_t[]){6}, data);
    all[5] = tensor("a", DTYPE_F32, 3, (const size_t[]){1, 2, 3}, data);
    all[6] = tensor("a", DTYPE_F32, 2, (const size_t[]){2, 3}, zero);
    all[7] = tensor("a", DTYPE_F32, 2, (const size_t[]){2, 3}, plus);
    for (size_t i = 0; i < COUNT_OF(all); i++)
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(digest_compare(&all[i], &all[j]), 0);
    const struct digest again = tensor("a", DTYPE_F32, 2, (const size_t[]){2, 3}, data);
    assert_int_equal(digest_compare(&all[0], &again), 0);
    assert_int_equal(digest_compare(&all[0], &all[1]), -digest_compare(&all[1], &all[0]));
}

static void verify_nans_are_one(void **state) {
    (void)state;
    static const uint32_t nans[] = {0x7F800001u, 0x7FC00000u, 0x7FFFFFFFu, 0xFF800001u,
                                    0xFFC00000u};
    for (int d = 0; d < DTYPE_COUNT; d++) {
        if (d == DTYPE_F64) continue;
        struct digest all[COUNT_OF(nans)];
        for (size_t i = 0; i < COUNT_OF(nans); i++) {
            const float value = real_from_bits_f32(nans[i]);
            all[i] = tensor("n", (enum dtype)d, 0, NULL, &value);
            assert_int_equal(digest_compare(&all[i], &all[0]), 0);
        }
        const float infinite = d == DTYPE_E4M3 ? 448.0f : real_inf_f32();
        const struct digest other = tensor("n", (enum dtype)d, 0, NULL, &infinite);
        assert_int_not_equal(digest_compare(&other, &all[0]), 0);
    }
}

static void validate_misfit_is_named(void **state) {
    (void)state;
    float data[12] = {0.0f};
    struct digest out;
    data[7] = 0x1.234568p0f;
    assert_int_equal(digest_tensor("q", DTYPE_BF16, 1, (const size_t[]){12}, data, &out),
                     STATUS_INTERNAL);
    assert_string_equal(status_text(),
                        "digest of q: carrier 7 holds 0x1.234568p+0 (3f91a2b4), expected a value "
                        "of bf16: the operation that wrote it did not round");
    const size_t most[] = {2, 1, 1, 3, 1, 1, 2, 1};
    assert_int_equal(digest_tensor("q", DTYPE_F32, 8, most, data, &out), STATUS_OK);
    assert_int_equal(digest_tensor("q", DTYPE_F32, 9, NULL, data, &out), STATUS_INTERNAL);
    assert_string_equal(status_text(), "digest of q: rank 9, expected at most 8");
}

/* The same items must give the same digest in any portions, and another order, other items or
 * another count another one. */
static void verify_stream(void **state) {
    (void)state;
    struct digest items[6];
    for (size_t i = 0; i < COUNT_OF(items); i++)
        digest_sha256(&i, sizeof i, &items[i]);
    struct digest all[4];
    static const size_t orders[4][6] = {
        {0, 1, 2, 3, 4, 5}, {0, 1, 2, 3, 4, 4}, {1, 0, 2, 3, 4, 5}, {0, 1, 2, 3, 5, 4}};
    for (size_t o = 0; o < 4; o++) {
        struct digest_stream stream;
        digest_stream_init(&stream, "forward");
        for (size_t i = 0; i < 6; i++) {
            struct digest_stream copy; /* a snapshot in between moves nothing */
            memcpy(&copy, &stream, sizeof copy);
            digest_stream_add(&copy, &items[orders[o][i]]);
            memcpy(&stream, &copy, sizeof copy);
        }
        digest_stream_close(&stream, &all[o]);
        for (size_t p = 0; p < o; p++)
            assert_int_not_equal(digest_compare(&all[o], &all[p]), 0);
    }
    struct digest_stream shorter;
    digest_stream_init(&shorter, "forward");
    for (size_t i = 0; i < 5; i++)
        digest_stream_add(&shorter, &items[i]);
    struct digest out;
    digest_stream_close(&shorter, &out);
    assert_int_not_equal(digest_compare(&out, &all[0]), 0);
}

/* A tensor of 70,000 bytes whose two leaves somebody else hashed, lane by lane as a device does:
 * the digest is that of the values. */
static void corroborate_leaves_of_others(void **state) {
    (void)state;
    static float values[17500];
    static struct leafhash_leaf leaves[2];
    const size_t shape[] = {175, 100};
    struct digest expected, got;
    for (size_t i = 0; i < 17500; i++)
        values[i] = (float)i - 8000.5f;
    for (size_t leaf = 0; leaf < 2; leaf++) {
        const size_t first = leaf * LEAFHASH_BLOCK / 4;
        const size_t count = leaf == 0 ? LEAFHASH_BLOCK / 4 : 17500 - LEAFHASH_BLOCK / 4;
        for (uint32_t lane = 0; lane < LEAFHASH_LANES; lane++) {
            struct leafhash_lane now = leafhash_begin(lane);
            for (size_t i = lane; i < count; i += LEAFHASH_LANES)
                now = leafhash_step(now, real_bits_f32(values[first + i]));
            leaves[leaf].lane[lane] = leafhash_end(now, (uint32_t)(4 * count));
        }
    }
    expected = tensor("w", DTYPE_F32, 2, shape, values);
    assert_int_equal(digest_tensor_leaves("w", DTYPE_F32, 2, shape, values, leaves, &got),
                     STATUS_OK);
    assert_memory_equal(&got, &expected, sizeof got);
    leaves[1].misfit[LEAFHASH_LANES - 1] = 1; /* a claim that the values do not bear out */
    assert_int_equal(digest_tensor_leaves("w", DTYPE_F32, 2, shape, values, leaves, &got),
                     STATUS_INTERNAL);
    assert_string_equal(status_text(),
                        "digest of w: its leaves were made of a value outside f32, expected none: "
                        "all values of the tensor are inside");
}

/* SHA-256 of files, as hashlib has them (FIPS 180-2 has the first): of "abc", of nothing, and of
 * 40,000 letters a, which are more than one piece. */
static void validate_files(void **state) {
    (void)state;
    static const struct {
        size_t length;
        const char *letters, *digest;
    } files[] = {
        {3, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {0, "a", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {40000, "a", "72a2f8d2643328a2e03dcb1b66fdc6610b95ba3019d88d8849ce060d0be634ce"},
    };
    char path[] = "/tmp/twinstep-digest-XXXXXX", got[DIGEST_HEX];
    const int file = mkstemp(path);
    assert_true(file >= 0);
    FILE *const stream = fdopen(file, "w");
    assert_non_null(stream);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        rewind(stream);
        assert_int_equal(ftruncate(file, 0), 0);
        for (size_t k = 0; k < files[i].length; k++)
            fputc(files[i].letters[k % strlen(files[i].letters)], stream);
        assert_int_equal(fflush(stream), 0);
        assert_int_equal(digest_file(path, got), STATUS_OK);
        assert_string_equal(got, files[i].digest);
    }
    assert_int_equal(fclose(stream), 0);
    unlink(path);
    assert_int_equal(digest_file(path, got), STATUS_INPUT);
    assert_non_null(strstr(status_text(), path));
    assert_int_equal(digest_file("/tmp", got), STATUS_INPUT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_tensors),
        cmocka_unit_test(validate_several_leaves),
        cmocka_unit_test(validate_odd_halves),
        cmocka_unit_test(validate_other_kinds),
        cmocka_unit_test(verify_identity_counts),
        cmocka_unit_test(verify_nans_are_one),
        cmocka_unit_test(validate_misfit_is_named),
        cmocka_unit_test(verify_stream),
        cmocka_unit_test(corroborate_leaves_of_others),
        cmocka_unit_test(validate_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
