/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * Checks across several keys, made on a configuration that did not come from a file, as hybrids
 * meet them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "scenarios/fault.h"
#include "tests/scenarios/helper_scenario.h"

static void set_list(struct key_list *list, const char *phases) {
    memset(list, 0, sizeof *list);
    for (; *phases != '\0'; phases++)
        list->item[list->count++] = (uint8_t)(*phases - 'a');
}

/* Makes the change of case `which`. Phases are written as letters, where a is fetch. */
static void change(struct config *c, int which) {
    switch (which) {
    case 0:
        c->model.kv_heads = 3;
        break;
    case 1:
        c->model.head_dim = 15;
        break;
    case 2:
        c->batch.micro = 16;
        break;
    case 3:
        c->numerics.compute = DTYPE_F64;
        break;
    case 4:
        c->numerics.master = DTYPE_F32;
        break;
    case 5:
        c->numerics.param = DTYPE_F64;
        c->numerics.master = DTYPE_F64;
        break;
    case 6:
        c->numerics.gradient = DTYPE_TF32;
        break;
    case 7:
        c->numerics.shards = 2;
        c->parallel.ranks = 3;
        break;
    case 8:
        set_list(&c->loop.micro, "ab");
        break;
    case 9:
        set_list(&c->loop.micro, "abcb");
        break;
    case 10:
        set_list(&c->loop.update, "af");
        break;
    case 11:
        set_list(&c->shuffle.kinds, "bb");
        break;
    case 12:
        c->schedule.increment = (uint64_t)1 << 53;
        break;
    case 13:
        c->schedule.origin = (uint64_t)1 << 53;
        c->schedule.logged_shift = -1;
        break;
    case 14:
        c->dpo.reference_compute = DTYPE_F64;
        break;
    case 15:
        set_list(&c->loop.on_skip, "a");
        break;
    case 16:
        c->numerics.shards = 6;
        break;
    case 17:
        c->numerics.product = DTYPE_F32;
        break;
    case 18:
        c->numerics.product = DTYPE_TF32;
        c->numerics.compute = DTYPE_BF16;
        break;
    case 19:
        c->numerics.softmax = DTYPE_F64;
        break;
    case 20:
        c->numerics.mode = MODE_ATOMIC;
        set_list(&c->atomic.kinds, "bab");
        break;
    case 21:
        c->numerics.mode = MODE_ATOMIC;
        set_list(&c->atomic.kinds, "faf");
        break;
    case 22:
        c->numerics.mode = MODE_ATOMIC;
        set_list(&c->atomic.kinds, "cdc");
        break;
    case 23:
    case 24:
    case 25:
        c->numerics.mode = MODE_ORDER_FREE;
        c->numerics.accumulate = DTYPE_F64;
        *(which == 23   ? &c->numerics.compute
          : which == 24 ? &c->dpo.reference_compute
                        : &c->numerics.gradient) = DTYPE_F64;
        break;
    case 26:
        c->numerics.mode = MODE_FAST;
        c->numerics.library = LIBRARY_CUBLAS;
        break;
    case 27:
        c->numerics.backend = BACKEND_CUDA;
        c->numerics.mode = MODE_DETERMINISTIC;
        c->numerics.library = LIBRARY_OPENBLAS;
        break;
    case 28:
        c->numerics.backend = BACKEND_CUDA;
        c->numerics.mode = MODE_ORDER_FREE;
        break;
    case 29:
        c->numerics.optimizer = DTYPE_E4M3;
        break;
    case 30:
        c->numerics.compute = DTYPE_E5M2;
        break;
    case 31:
        c->numerics.product = DTYPE_E4M3;
        break;
    case 32:
        c->numerics.softmax = DTYPE_E5M2;
        break;
    default:
        fail_msg("no case %d", which);
    }
}

static const char *const faults[] = {
    "model.kv_heads: expected a divisor of model.heads (4), got 3",
    "model.head_dim: expected an even number (rotary pairs), got 15",
    "batch.micro: expected a divisor of batch.size (8), got 16",
    "numerics.accumulate: f64 compute needs f64 accumulation, got f32",
    "numerics.master: expected none or a dtype wider than numerics.param (f32), got f32",
    "numerics.master: expected none or a dtype wider than numerics.param (f64), got f64",
    "numerics.gradient: expected f32, f64, bf16 or f16, got tf32: it is a format of operands, not "
    "of stored numbers (torch's allow_tf32 is numerics.compute: f32 with numerics.product: tf32)",
    "parallel.ranks: expected at most numerics.shards (2), got 3: a rank has the samples of whole "
    "shards, and bits depend on shards alone; set numerics.shards to 4 or a larger power of two, "
    "in both arms if they are to agree",
    "loop.micro: expected backward once, got it 0 times",
    "loop.micro: expected forward once, got it 2 times",
    "loop.update: fetch belongs to loop.micro and stands there once",
    "shuffle.kinds: an entry is given twice",
    "schedule.increment: the counter of 5 updates passes 2^53",
    "schedule.increment: the counter of 5 updates passes 2^53",
    "dpo.reference_compute: f64 compute needs f64 numerics.accumulate, got f32",
    "loop.on_skip: fetch belongs to loop.micro and stands there once",
    "numerics.shards: expected a power of two, of which a balanced tree is made, got 6",
    "numerics.product: expected compute, or tf32, bf16 or f16 under f32 numerics.compute, got f32 "
    "under f32",
    "numerics.product: expected compute, or tf32, bf16 or f16 under f32 numerics.compute, got tf32 "
    "under bf16",
    "numerics.softmax: expected compute, or f32, bf16 or f16 under numerics.compute other than "
    "f64, got f64 under f32",
    "atomic.kinds: an entry is given twice",
    "atomic.kinds: an entry is given twice",
    "atomic.kinds: an entry is given twice",
    "numerics.compute: mode order-free needs products that f64 holds exactly: expected f32, bf16 "
    "or f16, got f64",
    "dpo.reference_compute: mode order-free needs products that f64 holds exactly: expected f32, "
    "bf16 or f16, got f64",
    "numerics.gradient: mode order-free sums squares that f64 holds exactly: expected f32, bf16 or "
    "f16, got f64",
    "numerics.library: numerics.backend cpu has no cublas: expected auto, none or openblas",
    "numerics.library: numerics.backend cuda has no openblas: expected auto, none or cublas",
    "numerics.mode: order-free is not available on numerics.backend cuda",
    "numerics.optimizer: e4m3 is not available here: fp8 is a format of stored weights and "
    "gradients (numerics.param, numerics.gradient); what else is kept or multiplied in fp8 has "
    "scales, which this version does not have; expected f32, f64, bf16 or f16",
    "numerics.compute: e5m2 is not available here: fp8 is a format of stored weights and gradients "
    "(numerics.param, numerics.gradient); what else is kept or multiplied in fp8 has scales, which "
    "this version does not have; expected f32, f64, bf16 or f16",
    "numerics.product: e4m3 is not available here: operands of fp8 products have a scale per "
    "tensor, which this version does not have; expected compute, tf32, bf16 or f16",
    "numerics.softmax: expected compute, or f32, bf16 or f16 under numerics.compute other than "
    "f64, got e5m2 under f32",
};

static void validate_faults(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    const struct scenario *s = helper_parse(&arena, "twinstep: 1", NULL);
    assert_int_equal(config_validate(&s->arms[0].config, 5), STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        struct config config = s->arms[0].config;
        change(&config, (int)i);
        int is_unsupported = strstr(faults[i], "not available") != NULL;
        assert_int_equal(config_validate(&config, 5),
                         is_unsupported ? STATUS_UNSUPPORTED : STATUS_INPUT);
        assert_string_equal(status_text(), faults[i]);
    }
    arena_close(&arena);
}

static void validate_wide_masters(void **state) {
    (void)state;
    static const struct {
        int32_t param, master;
        int fine;
    } cases[] = {
        {DTYPE_BF16, DTYPE_F32, 1}, {DTYPE_BF16, DTYPE_F64, 1},          {DTYPE_F32, DTYPE_F64, 1},
        {DTYPE_E4M3, DTYPE_F32, 1}, {DTYPE_E5M2, CONFIG_MASTER_NONE, 1}, {DTYPE_F32, DTYPE_F32, 0},
        {DTYPE_F64, DTYPE_F32, 0},  {DTYPE_F64, CONFIG_MASTER_NONE, 1},
    };
    struct arena arena = ARENA_EMPTY;
    const struct scenario *s = helper_parse(&arena, "twinstep: 1", NULL);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct config config = s->arms[0].config;
        config.numerics.param = cases[i].param;
        config.numerics.master = cases[i].master;
        assert_int_equal(config_validate(&config, 5) == STATUS_OK, cases[i].fine);
    }
    arena_close(&arena);
}

/* A counter must be an exact double: the largest one is accepted up to the last update, and refused
 * one further. */
static void validate_counter_limit(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    const struct scenario *s = helper_parse(&arena, "twinstep: 1", NULL);
    struct config config = s->arms[0].config;
    config.schedule.increment = (uint64_t)1 << 50;
    config.schedule.shift = -1;
    assert_int_equal(config_validate(&config, 7), STATUS_OK);
    assert_int_equal(config_validate(&config, 8), STATUS_INPUT);
    config.schedule.shift = 0;
    assert_int_equal(config_validate(&config, 8), STATUS_OK);
    arena_close(&arena);
}

/* A resolved configuration has nothing left to derive, so deriving again must change nothing. */
static void verify_derivation_is_idempotent(void **state) {
    (void)state;
    struct helper_random random = {77};
    int seen = 0;
    for (int i = 0; i < 600; i++) {
        struct arena arena = ARENA_EMPTY;
        const struct scenario *s = helper_random_scenario(&random, &arena);
        for (int a = 0; s != NULL && a < 2; a++) {
            struct config again = s->arms[a].config;
            struct fault fault = {.status = STATUS_OK};
            assert_int_equal(config_derive(&again, s->steps, 1, &fault), STATUS_OK);
            assert_memory_equal(&again, &s->arms[a].config, sizeof again);
            assert_int_equal(config_validate(&again, s->steps), STATUS_OK);
            seen++;
        }
        arena_close(&arena);
    }
    assert_true(seen > 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_faults),
        cmocka_unit_test(validate_wide_masters),
        cmocka_unit_test(validate_counter_limit),
        cmocka_unit_test(verify_derivation_is_idempotent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
