/* SPDX-License-Identifier: Apache-2.0
 * labels: cli memory
 * lr table, lr compare and list contracts: what they print, their JSON and CSV, exit statuses, and
 * refusals that name the option. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "tests/cli/helper_cli.h"

static void require_in(const char *text, const char *needle) {
    if (strstr(text, needle) == NULL) fail_msg("expected: %s\nin: %s", needle, text);
}

static void require_said(int code, const char *line, const char *const *needles) {
    struct said said = helper_run(code, line);
    assert_string_equal(said.err, "");
    for (; *needles != NULL; needles++)
        require_in(said.out, *needles);
    helper_free(&said);
}

static json_t *json_of(int code, const char *line) {
    struct said said = helper_run(code, line);
    json_error_t error;
    assert_string_equal(said.err, "");
    json_t *json = json_loads(said.out, JSON_REJECT_DUPLICATES, &error);
    if (json == NULL) fail_msg("%s: %s in %s", line, error.text, said.out);
    helper_free(&said);
    return json;
}

/* Printed reals have the fewest digits that read back, so bytes can be compared. */
static void validate_json_bytes(void **state) {
    (void)state;
    struct said said = helper_run(0, "lr table --contract olmo-core --schedule linear "
                                     "--min-lr-ratio 0 --lr 5e-7 --steps 5 --json");
    assert_string_equal(said.out, "{\n"
                                  "  \"contract\": \"olmo-core\",\n"
                                  "  \"schedule\": \"linear\",\n"
                                  "  \"applied\": [4e-07, 3e-07, 2e-07, 1e-07, 0],\n"
                                  "  \"logged\": [4e-07, 3e-07, 2e-07, 1e-07, 0]\n"
                                  "}\n");
    helper_free(&said);
}

/* Every contract must have four keys and two columns of equal length. */
static void verify_json_of_every_contract(void **state) {
    (void)state;
    json_t *list = json_of(0, "list contracts --json");
    json_t *contracts = json_object_get(list, "contracts");
    size_t index;
    json_t *entry;
    assert_true(json_array_size(contracts) >= 30);
    json_array_foreach(contracts, index, entry) {
        char line[256];
        const char *name = json_string_value(json_object_get(entry, "name"));
        snprintf(line, sizeof line,
                 "lr table --contract %s --lr 1e-3 --warmup 2 --steps 6 --count 7 --tokens 64 "
                 "--updates-per-epoch 2 --json",
                 name);
        json_t *table = json_of(0, line);
        assert_int_equal(json_object_size(table), 4);
        assert_string_equal(json_string_value(json_object_get(table, "contract")), name);
        assert_true(json_is_string(json_object_get(table, "schedule")));
        assert_int_equal(json_array_size(json_object_get(table, "applied")), 7);
        assert_int_equal(json_array_size(json_object_get(table, "logged")), 7);
        json_decref(table);
    }
    json_decref(list);
}

static void validate_csv(void **state) {
    (void)state;
    struct said said = helper_run(0, "lr table --contract llmc --schedule linear --lr 1 --steps 2 "
                                     "--count 3 --csv");
    assert_string_equal(said.out, "update,lr_applied,lr_logged\n1,1,1\n2,0.5,0.5\n3,nan,nan\n");
    helper_free(&said);
}

static void validate_text(void **state) {
    (void)state;
    require_said(0,
                 "lr table --contract hf-4.50 --lr 1 --warmup-ratio 0.07 --steps 100 --count 102 "
                 "--skipped 3,7",
                 (const char *const[]){"evidence: run (", "total 100 updates, warm-up 8 updates",
                                       "\n       3  0.25                     0.25  skipped\n",
                                       "\n     102  0.010869565217391304     0  past the end\n",
                                       NULL});
}

/* Whole numbers are printed whole, however large; the rounding of a share is left out. */
static void validate_whole_numbers(void **state) {
    (void)state;
    require_said(
        0,
        "lr table --contract hf --schedule linear --lr 1e-3 --steps 100000000001 --warmup "
        "12345678901 --count 1",
        (const char *const[]){"total 100000000001 updates, warm-up 12345678901 updates\n", NULL});
    require_said(0,
                 "lr table --contract torchtune --schedule cosine --lr 1e-3 --steps "
                 "9007199254740992 --warmup 9007199254740991 --count 1",
                 (const char *const[]){"warm-up 9007199254740991 updates\n", NULL});
}

static const struct {
    int code;
    const char *line;
    const char *needles[8];
} comparisons[] = {
    {1,
     "lr compare olmo-core hf --lr 5e-7 --steps 5 --min-lr-ratio 0",
     {"update k of olmo-core uses what update k+1 of hf uses.\n",
      "the last update of olmo-core has LR 0.\n", "first at update 1: 4e-07 against 5e-07.\n",
      "is 0.666667 of that of hf.\n", "the logged LR differs at 5 of 5 updates.\n",
      "\n       5* 0                      1e-07 "}},
    {1,
     "lr compare hf olmo-core --lr 5e-7 --steps 5 --min-lr-ratio 0",
     {"update k of olmo-core uses what update k+1 of hf uses.\n",
      "the last update of olmo-core has LR 0.\n"}},
    {1,
     "lr compare open-instruct-dpo open-instruct-tune-cache --lr 5e-7 --steps 5",
     {"columns logged are equal although the applied ones differ: a log comparison cannot see "
      "this.\n"}},
    {0,
     "lr compare hf hf-4.50 --warmup 3",
     {"hf and hf-4.50 apply the same LR at every update, to the last bit.\n",
      "their logs differ at 10 of 10 updates although the training is the same",
      "with update 1 skipped, as a loss scaler may, hf-4.50 logs what hf logs.\n"}},
    {0, "lr compare hf megatron --warmup 3 --global-batch 64", {"up to rounding"}},
    {0, "lr compare hf step-then-set-f0 --warmup 3", {"apply the same LR"}},
    {1,
     "lr compare hf open-instruct-h17 --warmup 3",
     {"the first update of open-instruct-h17 runs at the full LR although there is a warm-up.\n",
      "differs at 1 of 10 updates, first at update 1: 0 against 0.001.\n"}},
    {1,
     "lr compare hf open-instruct-h17-h25",
     {"the first update of open-instruct-h17-h25 has LR 0.\n"}},
    {0, "lr compare hf open-instruct-h17-h25 --warmup 3", {"apply the same LR"}},
    {1,
     "lr compare accelerate hf --processes 2 --rescaled none",
     {"the counter of accelerate runs 2 times as fast through its schedule as that of hf.\n"}},
    {0, "lr compare accelerate hf --processes 2", {"apply the same LR"}},
    {0, "lr compare hf torchtune", {"B: torchtune, linear\n"}}, /* not its own default */
    {1,
     "lr compare hf hf-4.51 --dataset 100 --batch 4 --epochs 3 --accumulate 4",
     {"hf makes 21 updates of these numbers, hf-4.51 18.\n"}},
    {1,
     "lr compare hf open-instruct-dpo --warmup-ratio 0.07 --steps 100",
     {"hf warms up over 8 updates, open-instruct-dpo over 7.\n"}},
    {1,
     "lr compare open-instruct-dpo hf --schedule cosine",
     {"the floors differ: 0.0001 of open-instruct-dpo against 0 of hf.\n"}},
};

static void validate_comparisons(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(comparisons); i++)
        require_said(comparisons[i].code, comparisons[i].line, comparisons[i].needles);
}

static void validate_comparison_json(void **state) {
    (void)state;
    json_t *json = json_of(1, "lr compare open-instruct-dpo open-instruct-tune-cache --lr 5e-7 "
                              "--steps 5 --json");
    json_t *b = json_object_get(json, "b");
    assert_true(json_is_false(json_object_get(json, "equal")));
    assert_true(json_is_true(json_object_get(json, "logged_equal")));
    assert_int_equal(json_integer_value(json_object_get(json, "first_difference")), 1);
    assert_int_equal(json_integer_value(json_object_get(json, "shift")), 1);
    assert_string_equal(json_string_value(json_object_get(b, "contract")),
                        "open-instruct-tune-cache");
    assert_int_equal(json_array_size(json_object_get(b, "applied")), 5);
    assert_true(json_array_size(json_object_get(json, "words")) >= 4);
    json_decref(json);
    json = json_of(0, "lr compare hf trl --json");
    assert_true(json_is_true(json_object_get(json, "equal")));
    assert_true(json_is_null(json_object_get(json, "first_difference")));
    json_decref(json);
}

static const struct {
    const char *line, *needle;
} refused[] = {
    {"lr table --lr 1 --steps 5", "--contract: expected a name"},
    {"lr table --contract olmo --lr 1 --steps 5", "unknown contract \"olmo\""},
    {"lr table --contract olmo-cor --lr 1 --steps 5", "did you mean olmo-core?"},
    {"lr table --contract hf-4.57 --lr 1 --steps 5", "did you mean hf, which holds for it?"},
    {"lr table --contract hf --steps 5", "--lr: expected a finite number above 0, got none"},
    {"lr table --contract hf --lr abc --steps 5", "--lr: expected a finite number, got \"abc\""},
    {"lr table --contract hf --lr inf --steps 5", "--lr: expected a finite number, got \"inf\""},
    {"lr table --contract hf --lr 1", "--steps: expected the number of updates"},
    {"lr table --contract hf --lr 1 --steps 0", "--steps: expected a whole number >= 1, got 0"},
    {"lr table --contract hf --lr 1 --steps -3", "--steps: expected a whole number"},
    {"lr table --contract hf --lr 1 --steps 99999999999999999999", "--steps: expected a whole"},
    {"lr table --contract hf --lr 1 --steps 90000000", "--count: expected at most"},
    {"lr table --contract hf --lr 1 --steps 5 --warmup 1 --warmup-ratio 0.1",
     "--warmup and --warmup-ratio: expected one of them, got both"},
    {"lr table --contract hf --lr 1 --steps 5 --schedule wsd",
     "--schedule: hf (family hf) has no schedule \"wsd\"; expected one of constant, linear"},
    {"lr table --contract hf --lr 1 --steps 5 --rescaled all",
     "--rescaled: expected none, total, warmup or both, got \"all\""},
    {"lr table --contract hf --lr 1 --steps 5 --skipped 3,,7", "--skipped: expected updates"},
    {"lr table --contract hf --lr 1 --steps 5 --skipped 3,x", "--skipped: expected updates"},
    {"lr table --contract hf --lr 1 --steps 5 --skipped 7,3", "in ascending order, got 3"},
    {"lr table --contract hf --lr 1 --steps 5 --value lr_end", "--value: expected KEY=VALUE"},
    {"lr table --contract hf --lr 1 --steps 5 --value =0", "--value: expected KEY=VALUE"},
    {"lr table --contract hf --lr 1 --steps 5 --value lr_end=0",
     "--value: schedule linear has no parameter \"lr_end\"; it has min_lr_ratio"},
    {"lr table --contract hf --lr 1 --steps 5 --json --csv", "--json and --csv"},
    {"lr table --contract hf --lr 1 --steps 5 extra", "expected no argument"},
    {"lr compare hf", "lr compare: "},
    {"lr compare hf nosuch", "lr compare: unknown contract \"nosuch\""},
    {"lr compare hf olmo-core --schedule polynomial", "--schedule: olmo-core"},
    {"lr table --contract hf --lr 1 --steps 5 --count 0", "--count: expected a whole number >= 1"},
    {"lr table --contract hf --lr 1 --steps 5 --skipped 9",
     "--skipped: expected updates up to the total of 5, got 9"},
    {"lr table --contract hf --lr 1 --steps 5 --dataset 8 --batch 2 --epochs 1",
     "--steps and --epochs: expected one of them, got both"},
    {"lr table --contract hf --lr 1 --dataset 8 --batch 2", "--epochs: expected a number above 0 "
                                                            "and at most 1e9, got none"},
    {"lr", "lr: expected one more word; see twinstep lr --help"},
    {"lr tabel", "unknown verb \"lr tabel\"; did you mean lr table?"},
};

static void validate_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refused); i++)
        helper_refuse(2, refused[i].line, refused[i].needle);
}

static void validate_derived_total(void **state) {
    (void)state;
    require_said(0,
                 "lr table --contract hf --lr 1e-4 --dataset 1000 --epochs 3 --batch 8 "
                 "--accumulate 4 --processes 2 --warmup-ratio 0.1",
                 (const char *const[]){"total 48 updates, warm-up 5 updates", NULL});
    require_said(0,
                 "lr table --contract hf --lr 1e-4 --dataset 100 --epochs 1 --batch 8 --drop-last",
                 (const char *const[]){"total 12 updates", NULL});
    require_said(0,
                 "lr table --contract megatron --schedule wsd --value decay=2 --value "
                 "decay_style=linear --lr 1 --steps 6 --global-batch 32",
                 (const char *const[]){"\n       5  1 ", "\n       6  0.5 ", NULL});
}

static void validate_group_help(void **state) {
    (void)state;
    require_said(0, "lr --help",
                 (const char *const[]){"Usage: twinstep lr VERB", "\n  lr table ",
                                       "\n  lr compare ", "\n  lr check ", "\n  lr fit ", NULL});
}

static void validate_list(void **state) {
    (void)state;
    require_said(0, "list contracts",
                 (const char *const[]){"  hf  ", "  llmc  ", "[read]", "[derived, bug]", NULL});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_json_bytes),
        cmocka_unit_test(verify_json_of_every_contract),
        cmocka_unit_test(validate_csv),
        cmocka_unit_test(validate_text),
        cmocka_unit_test(validate_whole_numbers),
        cmocka_unit_test(validate_comparisons),
        cmocka_unit_test(validate_comparison_json),
        cmocka_unit_test(validate_refusals),
        cmocka_unit_test(validate_derived_total),
        cmocka_unit_test(validate_list),
        cmocka_unit_test(validate_group_help),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
