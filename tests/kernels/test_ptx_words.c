/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The PTX instructions that are no single operation of C (tests/kernels/ptx_words.h) must give the
 * values worked out by hand from NVIDIA's PTX ISA, and must report what a device would stop at. */
#include "tests/kernels/ptx_words.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

static void validate_shifts(void **state) {
    (void)state;
    assert_int_equal(shl_b32(1u, 31), 0x80000000u);
    assert_int_equal(shl_b32(1u, 32), 0);
    assert_int_equal(shl_b32(1u, 33), 0); /* the host's own shift would be by 1 */
    assert_int_equal(shr_u32(0x80000000u, 31), 1);
    assert_int_equal(shr_u32(0x80000000u, 255), 0);
    assert_int_equal(shr_s32(0x80000000u, 4), 0xf8000000u);
    assert_int_equal(shr_s32(0x80000000u, 64), 0xffffffffu);
    assert_int_equal(shr_s32(0x40000000u, 64), 0);
    assert_true(shl_b64(1u, 63) == UINT64_C(1) << 63 && shl_b64(1u, 64) == 0);
    assert_true(shr_s64(UINT64_C(1) << 63, 99) == ~(u64)0);
    assert_int_equal(shl_b16(0xffffu, 8), 0xff00u);
    assert_int_equal(shr_u16(0xffffu, 16), 0);
}

static void validate_bytes(void **state) {
    (void)state;
    const u32 a = 0x83828180u, b = 0x07060504u;
    assert_int_equal(prmt_b32(a, b, 0x3210u), a);
    assert_int_equal(prmt_b32(a, b, 0x7654u), b);
    assert_int_equal(prmt_b32(a, b, 0x0123u), 0x80818283u);
    assert_int_equal(prmt_b32(a, b, 0x4070u), 0x04800780u);
    assert_int_equal(prmt_b32(a, b, 0xc8b9u), 0x00ffffffu); /* signs of 4, 0, 3, 1 */
    assert_int_equal(prmt_b32(a, b, 0xfff03210u), a);       /* the rest is ignored */
}

static void validate_fields(void **state) {
    (void)state;
    const u64 ones = ~(u64)0;
    assert_true(bfi_b64(0xabu, ones, 8, 8) == UINT64_C(0xffffffffffffabff));
    assert_true(bfi_b64(0xfabu, 0, 8, 4) == UINT64_C(0xb00));
    assert_true(bfi_b64(ones, 0, 60, 8) == UINT64_C(0xf000000000000000)); /* the rest is dropped */
    assert_true(bfi_b64(ones, 5, 64, 8) == 5 && bfi_b64(ones, 5, 0, 0) == 5);
    assert_true(bfi_b64(ones, 5, 256, 257) == 5); /* low bytes count: bit 0, one bit */
    assert_true(bfi_b64(0, 5, 256, 257) == 4);
    assert_int_equal(bfi_b32(0xffu, 0, 28, 8), 0xf0000000u);
    assert_int_equal(bfi_b32(0xffu, 7, 32, 8), 7);
}

static void validate_conversion(void **state) {
    (void)state;
    assert_true(cvt_rzi_u64_f64(2.9) == 2 && cvt_rzi_u64_f64(0.9) == 0);
    assert_true(cvt_rzi_u64_f64(-3.0) == 0 && cvt_rzi_u64_f64(-0.0) == 0);
    assert_true(cvt_rzi_u64_f64(0x1p63) == UINT64_C(1) << 63);
    assert_true(cvt_rzi_u64_f64(0x1.fffffffffffffp63) == UINT64_C(0xfffffffffffff800));
    assert_true(cvt_rzi_u64_f64(0x1p64) == ~(u64)0);
    assert_true(cvt_rzi_u64_f64(f64_of_u64(0x7ff0000000000000u)) == ~(u64)0);
    assert_true(cvt_rzi_u64_f64(f64_of_u64(0xfff0000000000000u)) == 0);
    assert_true(cvt_rzi_u64_f64(f64_of_u64(0x7ff8000000000000u)) == UINT64_C(1) << 63);
}

static void validate_atomic(void **state) {
    struct gpu gpu = {0, 32, 0, NULL, NULL};
    f32 sum = 1.0f;
    (void)state;
    assert_true(atom_global_add_f32(&gpu, &sum, 2.5f) == 1.0f && sum == 3.5f);
    sum = 0x1p-127f; /* subnormal sums count as 0; the old value is returned */
    assert_true(atom_global_add_f32(&gpu, &sum, 0x1p-126f) == 0x1p-127f && sum == 0x1p-126f);
    sum = 0x1.8p-126f;
    (void)atom_global_add_f32(&gpu, &sum, -0x1p-126f);
    assert_int_equal(u32_of_f32(sum), 0);
    sum = -0x1.8p-126f;
    (void)atom_global_add_f32(&gpu, &sum, 0x1p-126f);
    assert_int_equal(u32_of_f32(sum), 0x80000000u);
    f64 wide = 0x1p-1070;
    assert_true(atom_global_add_f64(&gpu, &wide, 0x1p-1070) == 0x1p-1070 && wide == 0x1p-1069);
}

/* Each of these must be reported, once. */
static void verify_told(void **state) {
    struct gpu gpu = {0, 64, 0, NULL, NULL};
    (void)state;
    assert_int_equal(shim_error(), STATUS_OK);
    assert_true(ptx_aligned(48, 16) == 48 && ptx_within(8, 8, 16) == 8 &&
                ptx_begins(&gpu, 8, 8, 64));
    assert_int_equal(shim_error(), STATUS_OK);
    (void)ptx_aligned(56, 16);
    assert_int_equal(shim_error(), STATUS_INTERNAL);
    assert_int_equal(ptx_within(12, 8, 16), 0);
    assert_int_equal(shim_error(), STATUS_INTERNAL);
    assert_int_equal(ptx_within((u64)0 - 8, 8, 16), 0);
    assert_int_equal(shim_error(), STATUS_INTERNAL);
    assert_int_equal(ptx_begins(&gpu, 8, 16, 64), 0);
    assert_int_equal(shim_error(), STATUS_INTERNAL);
    assert_int_equal(ptx_begins(&gpu, 8, 8, 32), 0);
    assert_int_equal(shim_error(), STATUS_INTERNAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_shifts), cmocka_unit_test(validate_bytes),
        cmocka_unit_test(validate_fields), cmocka_unit_test(validate_conversion),
        cmocka_unit_test(validate_atomic), cmocka_unit_test(verify_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
