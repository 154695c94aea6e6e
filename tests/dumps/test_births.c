/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The rule of births on small dumps whose answer is plain: each row of a dump is an op, its inputs
 * and its outputs. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "tests/dumps/helper_dump.h"

#define MM "t: f32[2, 2], t: f32[2, 2]"
#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])
#define JUDGE(a, b) helper_judge(&arena, a, COUNT(a), b, COUNT(b), &j)

/* x=1 w=2 -> 3; view; 3 and w -> 5; relu -> 6 */
static const struct helper_op base[] = {
    {"m.up", "aten::mm", MM, "1 2", "t: f32[2, 2]", "3"},
    {"m", "aten::view", "t: f32[2, 2], [4]", "3", "t: f32[4]", "3"},
    {"m.down", "aten::mul.Tensor", "t: f32[4], 0.5", "3", "t: f32[4]", "5"},
    {"", "aten::relu", "t: f32[4]", "5", "t: f32[4]", "6"},
};

static const char *word(const struct dump_judgement *j, uint32_t number) {
    return j->words->list[number].text;
}

static void expect_first(const struct dump_judgement *j, int side, const char *op,
                         const char *module) {
    assert_non_null(j->first);
    const struct dump_op *found = &j->dump[j->first->side]->ops[j->first->op];
    assert_int_equal(j->first->side, side);
    assert_string_equal(word(j, found->op), op);
    assert_string_equal(word(j, found->module), module);
}

/* The only birth of B is that op. */
static void expect_birth_in_b(const struct dump_judgement *j, uint32_t op) {
    assert_int_equal(j->births[1], 1);
    for (size_t i = 0; i < j->event_count; i++)
        if (j->events[i].side == 1 && j->events[i].kind == DUMP_BIRTH)
            assert_int_equal(j->events[i].op, op);
}

static void validate_equal_dumps_have_no_birth(void **state) {
    struct arena arena = ARENA_EMPTY;
    struct dump_judgement j;
    (void)state;
    JUDGE(base, base);
    assert_int_equal(j.verdict, DUMP_EQUAL);
    assert_int_equal(j.event_count, 0);
    assert_int_equal(j.aligned, 4);
    assert_int_equal(j.differing, 0);
    arena_close(&arena);
}

static void verify_another_literal_is_one_birth_on_both_sides(void **state) {
    static const struct helper_op other[] = {
        {"m.up", "aten::mm", MM, "1 2", "t: f32[2, 2]", "3"},
        {"m", "aten::view", "t: f32[2, 2], [4]", "3", "t: f32[4]", "3"},
        {"m.down", "aten::mul.Tensor", "t: f32[4], 0.25", "3", "t: f32[4]", "5.5"},
        {"", "aten::relu", "t: f32[4]", "5.5", "t: f32[4]", "6.5"},
    };
    struct arena arena = ARENA_EMPTY;
    struct dump_judgement j;
    struct dump_change change;
    (void)state;
    JUDGE(base, other);
    assert_int_equal(j.verdict, DUMP_DIFFERS);
    assert_int_equal(j.event_count, 2);
    assert_int_equal(j.births[0], 1);
    assert_int_equal(j.births[1], 1);
    assert_int_equal(j.differing, 2);
    assert_int_equal(j.inherited, 1);
    expect_first(&j, 1, "aten::mul.Tensor", "m.down");
    assert_true(j.first->site);
    assert_int_equal(j.first->counterpart, 2);
    assert_int_equal(dump_other_input(&j, j.first), -1);
    dump_changed(word(&j, j.dump[1]->ops[2].literals), word(&j, j.dump[0]->ops[2].literals),
                 &change);
    assert_int_equal(change.length[0], 4);
    assert_memory_equal(change.text[0], "0.25", 4);
    assert_int_equal(change.length[1], 3);
    assert_memory_equal(change.text[1], "0.5", 3);
    arena_close(&arena);
}

/* A gradient that is summed in another order: the op that is aligned adds other values, all of
 * which both dumps have, so it is not the same call that gave another value. */
static void verify_another_order_of_a_sum_is_another_call(void **state) {
    static const struct helper_op one[] = {
        {"", "aten::mul.Tensor", "t: f32[4], 2", "1", "t: f32[4]", "2"},
        {"", "aten::mul.Tensor", "t: f32[4], 3", "1", "t: f32[4]", "3"},
        {"", "aten::add.Tensor", "t: f32[4], t: f32[4]", "2 3", "t: f32[4]", "5"},
    };
    static const struct helper_op two[] = {
        {"", "aten::mul.Tensor", "t: f32[4], 2", "1", "t: f32[4]", "2"},
        {"", "aten::mul.Tensor", "t: f32[4], 3", "1", "t: f32[4]", "3"},
        {"", "aten::add.Tensor", "t: f32[4], t: f32[4]", "2 2", "t: f32[4]", "4"},
    };
    struct arena arena = ARENA_EMPTY;
    struct dump_judgement j;
    (void)state;
    JUDGE(one, two);
    expect_first(&j, 1, "aten::add.Tensor", "");
    assert_int_equal(j.first->counterpart, 2);
    assert_int_equal(dump_other_input(&j, j.first), 1);
    arena_close(&arena);
}

/* A slice has a value of its own, and is no birth: what is made of it is. */
static void verify_a_move_is_no_birth_and_stays_clean(void **state) {
    static const struct helper_op other[] = {
        {"m.up", "aten::mm", MM, "1 2", "t: f32[2, 2]", "3"},
        {"m.a", "aten::slice.Tensor", "t: f32[2, 2], 0, 0, 1", "3", "t: f32[1, 2]", "1.75"},
        {"m.b", "aten::_to_copy", "t: f32[1, 2]", "1.75", "t: f64[1, 2]", "1.75"},
        {"m.c", "aten::exp", "t: f64[1, 2]", "1.75", "t: f64[1, 2]", "9"},
        {"m.d", "aten::exp", "t: f64[1, 2]", "9", "t: f64[1, 2]", "11"},
    };
    struct arena arena = ARENA_EMPTY;
    struct dump_judgement j;
    (void)state;
    JUDGE(base, other);
    assert_int_equal(j.outside[1], 0);
    expect_birth_in_b(&j, 3);
    arena_close(&arena);
}

/* The same cast to a dtype that cannot hold every value rounds, so it makes values. */
static void verify_a_cast_that_rounds_is_a_birth(void **state) {
    static const struct helper_op other[] = {
        {"m.up", "aten::mm", MM, "1 2", "t: f32[2, 2]", "3"},
        {"m.cast", "aten::_to_copy", "t: f32[2, 2]", "3", "t: bf16[2, 2]", "3"},
        {"m.cast", "aten::_to_copy", "t: bf16[2, 2]", "3", "t: f32[2, 2]", "3"},
    };
    struct arena arena = ARENA_EMPTY;
    struct dump_judgement j;
    (void)state;
    JUDGE(base, other);
    expect_birth_in_b(&j, 1);
    arena_close(&arena);
}

static void verify_a_parameter_that_differs_is_no_birth(void **state) {
    static const struct helper_op other[] = {
        {"m.up", "aten::mm", MM, "1 2.5", "t: f32[2, 2]", "3.5"},
        {"m", "aten::view", "t: f32[2, 2], [4]", "3.5", "t: f32[4]", "3.5"},
        {"m.down", "aten::mul.Tensor", "t: f32[4], 0.5", "3.5", "t: f32[4]", "5.5"},
        {"", "aten::relu", "t: f32[4]", "5.5", "t: f32[4]", "6.5"},
    };
    struct arena arena = ARENA_EMPTY;
    struct dump_judgement j;
    (void)state;
    JUDGE(base, other);
    assert_int_equal(j.verdict, DUMP_DIFFERS);
    assert_int_equal(j.births[0] + j.births[1], 0);
    assert_int_equal(j.outside[0], 1);
    assert_int_equal(j.outside[1], 1);
    assert_int_equal(j.first->kind, DUMP_OUTSIDE);
    assert_int_equal(j.first->input, 1);
    assert_int_equal(j.inherited, 4);
    arena_close(&arena);
}

/* One op instead of two: the fused one has no like, and the pair has none either. */
static void verify_a_fused_op_is_found_from_both_sides(void **state) {
    static const struct helper_op parts[] = {
        {"m.a", "aten::mm", MM, "1 2", "t: f32[2, 2]", "3"},
        {"m.a", "aten::add.Tensor", MM, "3 1", "t: f32[2, 2]", "4"},
        {"m.b", "aten::relu", "t: f32[2, 2]", "4", "t: f32[2, 2]", "5"},
    };
    static const struct helper_op fused[] = {
        {"m.a", "aten::addmm", MM ", t: f32[2, 2]", "1 1 2", "t: f32[2, 2]", "4.5"},
        {"m.b", "aten::relu", "t: f32[2, 2]", "4.5", "t: f32[2, 2]", "5.5"},
    };
    struct arena arena = ARENA_EMPTY;
    struct dump_judgement j;
    (void)state;
    JUDGE(parts, fused);
    assert_int_equal(j.births[0], 1);
    assert_int_equal(j.births[1], 1);
    expect_first(&j, 1, "aten::addmm", "m.a");
    assert_int_equal(j.first->counterpart, UINT32_MAX);
    arena_close(&arena);
}

/* An op that only one side has lies before what the other made of the same value. */
static void verify_an_op_left_out_is_placed_by_the_alignment(void **state) {
    static const struct helper_op without[] = {
        {"m.up", "aten::mm", MM, "1 2", "t: f32[2, 2]", "3"},
        {"m", "aten::view", "t: f32[2, 2], [4]", "3", "t: f32[4]", "3"},
        {"", "aten::relu", "t: f32[4]", "3", "t: f32[4]", "6.5"},
    };
    struct arena arena = ARENA_EMPTY;
    struct dump_judgement j;
    (void)state;
    JUDGE(base, without);
    expect_first(&j, 0, "aten::mul.Tensor", "m.down");
    assert_int_equal(j.births[1], 1);
    arena_close(&arena);
}

/* What copy_ writes over may be anything: memory that nobody has written yet. */
static void verify_what_is_overwritten_does_not_count(void **state) {
    static const struct helper_op a[] = {
        {"m", "aten::copy_", MM, "77 1", "t: f32[2, 2]", "1"},
        {"m", "aten::exp", "t: f32[2, 2]", "1", "t: f32[2, 2]", "3"},
    };
    static const struct helper_op b[] = {
        {"m", "aten::copy_", MM, "78 1", "t: f32[2, 2]", "1"},
        {"m", "aten::exp", "t: f32[2, 2]", "1", "t: f32[2, 2]", "3"},
    };
    static const struct helper_op adds[] = {
        {"m", "aten::add_.Tensor", MM, "78 1", "t: f32[2, 2]", "1"},
        {"m", "aten::exp", "t: f32[2, 2]", "1", "t: f32[2, 2]", "3"},
    };
    struct arena arena = ARENA_EMPTY;
    struct dump_judgement j;
    (void)state;
    JUDGE(a, b);
    assert_int_equal(j.verdict, DUMP_EQUAL);
    JUDGE(a, adds);
    assert_int_equal(j.verdict, DUMP_DIFFERS);
    assert_int_equal(j.outside[1], 1);
    arena_close(&arena);
}

static void verify_a_floor_takes_noise_out(void **state) {
    static const struct helper_op noisy[] = {
        {"m.up", "aten::mm", MM, "1 2", "t: f32[2, 2]", "3.25"},
        {"m", "aten::view", "t: f32[2, 2], [4]", "3.25", "t: f32[4]", "3.25"},
        {"m.down", "aten::mul.Tensor", "t: f32[4], 0.5", "3.25", "t: f32[4]", "5.25"},
        {"", "aten::relu", "t: f32[4]", "5.25", "t: f32[4]", "6.25"},
    };
    static const struct helper_op other[] = {
        {"m.up", "aten::mm", MM, "1 2", "t: f32[2, 2]", "3.5"},
        {"m", "aten::view", "t: f32[2, 2], [4]", "3.5", "t: f32[4]", "3.5"},
        {"m.x", "aten::exp", "t: f32[2, 2]", "1", "t: f32[2, 2]", "8"},
    };
    struct arena arena = ARENA_EMPTY;
    struct dump_judgement j;
    (void)state;
    helper_judge_floor(&arena, base, COUNT(base), other, 2, noisy, COUNT(noisy), &j);
    assert_int_equal(j.verdict, DUMP_ONLY_NOISE);
    assert_int_equal(j.noise, 2);
    assert_null(j.first);
    helper_judge_floor(&arena, base, COUNT(base), other, 3, noisy, COUNT(noisy), &j);
    assert_int_equal(j.verdict, DUMP_DIFFERS);
    expect_first(&j, 1, "aten::exp", "m.x");
    helper_judge(&arena, base, COUNT(base), other, 2, &j);
    expect_first(&j, 1, "aten::mm", "m.up");
    arena_close(&arena);
}

/* The same values, made in another order by the same call: nobody can say that it matters. */
static void verify_another_order_is_undecided(void **state) {
    static const struct helper_op a[] = {
        {"m", "aten::exp", "t: f32[2]", "1", "t: f32[2]", "3"},
        {"m", "aten::exp", "t: f32[2]", "2", "t: f32[2]", "4"},
    };
    static const struct helper_op b[] = {
        {"m", "aten::exp", "t: f32[2]", "2", "t: f32[2]", "4"},
        {"m", "aten::exp", "t: f32[2]", "1", "t: f32[2]", "3"},
    };
    struct arena arena = ARENA_EMPTY;
    struct dump_judgement j;
    (void)state;
    JUDGE(a, b);
    assert_int_equal(j.verdict, DUMP_UNDECIDED);
    assert_int_equal(j.differing, 2);
    assert_int_equal(j.first_differing, 0);
    arena_close(&arena);
}

/* An op that only one side has, before the place where both differ, is not what is named. */
static void verify_the_site_goes_before_what_one_side_has_alone(void **state) {
    static const struct helper_op b[] = {
        {"m", "aten::full", "[2, 2], 7", "", "t: f32[2, 2]", "7"},
        {"m.up", "aten::mm", MM, "1 2", "t: f32[2, 2]", "3.5"},
    };
    struct arena arena = ARENA_EMPTY;
    struct dump_judgement j;
    (void)state;
    JUDGE(base, b);
    assert_int_equal(j.births[1], 2);
    expect_first(&j, 1, "aten::mm", "m.up");
    arena_close(&arena);
}

/* The tensor behind out= is written over: what was in it does not matter. */
static void verify_out_is_not_read(void **state) {
    static const struct helper_op one[] = {
        {"m", "aten::mul.out", "t: f32[4], 2.0, out=t: f32[4]", "3 98", "t: f32[4]", "6"}};
    static const struct helper_op other[] = {
        {"m", "aten::mul.out", "t: f32[4], 2.0, out=t: f32[4]", "3 99", "t: f32[4]", "6"}};
    static const struct helper_op born[] = {
        {"m", "aten::mul.out", "t: f32[4], 2.5, out=t: f32[4]", "3 99", "t: f32[4]", "7.5"}};
    struct arena arena = ARENA_EMPTY;
    struct dump_judgement j;
    (void)state;
    JUDGE(one, other);
    assert_int_equal(j.verdict, DUMP_EQUAL);
    assert_int_equal(j.differing, 0);
    JUDGE(one, born);
    expect_birth_in_b(&j, 0);
    arena_close(&arena);
}

/* A flat parameter that is only cut into the other dump's parameters is no difference; one of which
 * something else is computed is, and it is told where it came in. */
static void verify_outside_that_is_only_moved(void **state) {
    static const struct helper_op cut[] = {
        {"m.up", "aten::slice.Tensor", "t: f32[12], 0, 0, 4", "40", "t: f32[4]", "2"},
        {"m.up", "aten::slice.Tensor", "t: f32[12], 0, 4, 8", "40", "t: f32[4]", "44"},
        {"m.up", "aten::mul.Tensor", "t: f32[4], 3", "2", "t: f32[4]", "6"},
        {"m.down", "aten::relu", "t: f32[4]", "44", "t: f32[4]", "45"},
    };
    static const struct helper_op whole[] = {
        {"m.up", "aten::mul.Tensor", "t: f32[4], 3", "2", "t: f32[4]", "6"}};
    struct arena arena = ARENA_EMPTY;
    struct dump_judgement j;
    (void)state;
    helper_judge(&arena, whole, 1, cut, 3, &j);
    assert_int_equal(j.verdict, DUMP_EQUAL);
    JUDGE(whole, cut);
    assert_int_equal(j.outside[1], 1);
    expect_first(&j, 1, "aten::slice.Tensor", "m.up");
    assert_int_equal(j.first->op, 1);
    arena_close(&arena);
}

/* DDP, FSDP and torch.compile put names of their own around a model's. */
static void verify_wrapped_models_are_aligned(void **state) {
    static const char *const wrappers[][2] = {
        {"DistributedDataParallel.module.up", "DistributedDataParallel.up"},
        {"FullyShardedDataParallel._fsdp_wrapped_module.up", "FullyShardedDataParallel.up"},
        {"OptimizedModule._orig_mod.up", "OptimizedModule.up"},
        {"FSDPNet.up", "Net.up"},
        {"Net._checkpoint_wrapped_module.up", "Net.up"},
    };
    static const struct helper_op bare[] = {
        {"Net.up", "aten::mul.Tensor", "t: f32[4], 2", "3", "t: f32[4]", "6"}};
    struct arena arena = ARENA_EMPTY;
    struct dump_judgement j;
    (void)state;
    for (size_t i = 0; i < COUNT(wrappers); i++) {
        const struct helper_op one[] = {
            {wrappers[i][0], "aten::mul.Tensor", "t: f32[4], 2", "3", "t: f32[4]", "7"}};
        JUDGE(bare, one);
        assert_int_equal(j.aligned, 1);
        expect_first(&j, 1, "aten::mul.Tensor", wrappers[i][1]);
        assert_true(j.first->site);
    }
    static const struct helper_op part[] = {
        /* "module" is a part of this model */
        {"Other.module.up", "aten::mul.Tensor", "t: f32[4], 2", "3", "t: f32[4]", "6"}};
    JUDGE(bare, part);
    assert_int_equal(j.aligned, 0);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_equal_dumps_have_no_birth),
        cmocka_unit_test(verify_another_literal_is_one_birth_on_both_sides),
        cmocka_unit_test(verify_another_order_of_a_sum_is_another_call),
        cmocka_unit_test(verify_a_move_is_no_birth_and_stays_clean),
        cmocka_unit_test(verify_a_cast_that_rounds_is_a_birth),
        cmocka_unit_test(verify_a_parameter_that_differs_is_no_birth),
        cmocka_unit_test(verify_a_fused_op_is_found_from_both_sides),
        cmocka_unit_test(verify_an_op_left_out_is_placed_by_the_alignment),
        cmocka_unit_test(verify_what_is_overwritten_does_not_count),
        cmocka_unit_test(verify_a_floor_takes_noise_out),
        cmocka_unit_test(verify_another_order_is_undecided),
        cmocka_unit_test(verify_out_is_not_read),
        cmocka_unit_test(verify_outside_that_is_only_moved),
        cmocka_unit_test(verify_wrapped_models_are_aligned),
        cmocka_unit_test(verify_the_site_goes_before_what_one_side_has_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
