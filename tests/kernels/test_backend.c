/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The choice of an op table: which one each name and `auto` give, that no table lacks an op, which
 * names are refused, and that the scratch asked for grows with the limits. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "kernels/op.h"

static const struct {
    enum dtype compute, accumulate;
    const char *prefix;
} pairs[] = {
    {DTYPE_F32, DTYPE_F32, "f32_f32_"},  {DTYPE_BF16, DTYPE_F32, "f32_f32_"},
    {DTYPE_F16, DTYPE_F64, "f32_f64_"},  {DTYPE_TF32, DTYPE_F32, "f32_f32_"},
    {DTYPE_BF16, DTYPE_F64, "f32_f64_"}, {DTYPE_F64, DTYPE_F64, "f64_f64_"},
};

static void assert_full(const struct op_table *ops) {
    void (*entries[sizeof *ops / sizeof(void (*)(void))])(void);
    memcpy(entries, ops, sizeof *ops);
    for (size_t i = 0; i < COUNT_OF(entries); i++)
        assert_true(entries[i] != NULL);
}

static void verify_tables(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        for (int isa = ISA_BASE; isa < ISA_COUNT; isa++) {
            const struct op_table *ops = NULL;
            const enum status status =
                backend_ops((enum isa)isa, pairs[i].compute, pairs[i].accumulate, &ops);
            if (status == STATUS_UNSUPPORTED && isa != ISA_BASE) continue;
            assert_int_equal(status, STATUS_OK);
            assert_memory_equal(ops->name, pairs[i].prefix, 8);
#ifdef TWINSTEP_ONE_ISA /* base/isa_objects.h */
            assert_string_equal(ops->name + 8, isa_name(ISA_BASE));
#else
            assert_string_equal(ops->name + 8, isa_name(backend_isa((enum isa)isa)));
#endif
            assert_full(ops);
        }
    }
}

/* `auto` must be the widest instruction set that can also be had by its name. */
static void verify_auto(void **state) {
    (void)state;
    const struct op_table *chosen = NULL;
    const struct op_table *last = NULL;
    assert_int_equal(backend_ops(ISA_AUTO, DTYPE_F32, DTYPE_F32, &chosen), STATUS_OK);
    for (int isa = ISA_BASE; isa < ISA_COUNT; isa++) {
        const struct op_table *ops = NULL;
        if (backend_ops((enum isa)isa, DTYPE_F32, DTYPE_F32, &ops) == STATUS_OK) last = ops;
    }
    assert_ptr_equal(chosen, last);
    assert_string_equal(isa_name(ISA_AUTO), "auto");
}

/* The instruction for pairs of bf16 numbers is used only where it can be had by its name, and never
 * with a narrower set. */
static void verify_bf16(void **state) {
    (void)state;
    const struct op_table *ops = NULL;
    const int has = backend_ops(ISA_V4_BF16, DTYPE_BF16, DTYPE_F32, &ops) == STATUS_OK;
    assert_int_equal(backend_bf16(ISA_V4_BF16), has);
    assert_true(has || !backend_bf16(ISA_AUTO));
    for (int isa = ISA_BASE; isa <= ISA_V4; isa++)
        assert_false(backend_bf16((enum isa)isa));
    assert_int_equal(backend_isa(ISA_V4_BF16), ISA_V4);
    assert_string_equal(isa_name(ISA_V4_BF16), "v4-bf16");
    if (!has) assert_non_null(strstr(status_text(), "v4-bf16: this machine lacks it"));
}

static void verify_refused(void **state) {
    (void)state;
    const struct op_table *ops = NULL;
    size_t bytes = 0;
    const struct op_limits idle = {8, 0, 8, 8, 1, 1, 8, 0, 0, 0, 0, 0, 0};
    const struct op_limits huge = {8, 0, 8, 8, 1, 1, 70000, 1, 0, 0, 0, 0, 0};
    assert_int_equal(backend_ops(ISA_AUTO, DTYPE_F64, DTYPE_F32, &ops), STATUS_INPUT);
    assert_non_null(strstr(status_text(), "f64"));
    assert_int_equal(backend_ops(ISA_AUTO, DTYPE_F32, DTYPE_BF16, &ops), STATUS_INPUT);
    assert_non_null(strstr(status_text(), "bf16"));
    assert_int_equal(backend_scratch(&idle, &bytes), STATUS_INPUT);
    assert_non_null(strstr(status_text(), "threads"));
    assert_int_equal(backend_scratch(&huge, &bytes), STATUS_INPUT);
    assert_non_null(strstr(status_text(), "70000"));
}

/* More of anything never needs less scratch, so a call within the limits always fits. */
static void verify_scratch_grows(void **state) {
    (void)state;
    struct op_limits limits = {300, 0, 256, 60, 4, 4, 16, 1, 0, 0, 0, 0, 0};
    size_t before = 0;
    assert_int_equal(backend_scratch(&limits, &before), STATUS_OK);
    for (int step = 0; step < 12; step++) {
        size_t bytes = 0;
        limits.rows += step % 4 == 0 ? 2000 : 0;
        limits.width += step % 4 == 1 ? 3000 : 0;
        limits.length += step % 4 == 2 ? 500 : 0;
        limits.D += step % 4 == 3 ? 64 : 0;
        limits.threads += step == 11;
        assert_int_equal(backend_scratch(&limits, &bytes), STATUS_OK);
        assert_true(bytes >= before);
        before = bytes;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_tables),        cmocka_unit_test(verify_auto),
        cmocka_unit_test(verify_bf16),          cmocka_unit_test(verify_refused),
        cmocka_unit_test(verify_scratch_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
