/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * How values of a file of torch.save are reached: by key, by place, as a number of any kind; and
 * what an error says, with the way to the value. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/macro.h"
#include "checkpoints/torch_file.h"
#include "tests/checkpoints/helper_checkpoint.h"
#include "tests/checkpoints/helper_torch.h"

#define GOLDEN TWINSTEP_SOURCE_DIR "/tests/golden/foreign/torch/"

struct opened {
    struct arena arena;
    struct torch_file file;
    struct torch_place root;
};

static void open_golden(const char *path, struct opened *out) {
    out->arena = (struct arena)ARENA_EMPTY;
    if (torch_file_open(path, TORCH_STRICT, &out->arena, &out->file) != STATUS_OK)
        fail_msg("%s", status_text());
    out->file.path = "x.pt";
    out->root = torch_root(&out->file);
}

static void close_golden(struct opened *opened) {
    torch_file_close(&opened->file);
    arena_close(&opened->arena);
}

static void validate_ways(void **state) {
    (void)state;
    struct opened x;
    struct torch_place states, third, moment, groups, first, betas, none;
    const struct torch_tensor *tensor;
    double number;
    int64_t whole;
    size_t count;
    open_golden(GOLDEN "optimizer_adamw_float32.pt", &x);
    assert_int_equal(torch_key(&x.root, "state", &states), STATUS_OK);
    assert_true(torch_find_number(&states, 3, &third));
    assert_false(torch_find_number(&states, 17, &none));
    assert_int_equal(torch_key(&third, "exp_avg", &moment), STATUS_OK);
    assert_int_equal(torch_tensor_of(&moment, &tensor), STATUS_OK);
    helper_require(torch_number(&moment, &number), STATUS_INPUT,
                   "x.pt: state[3].exp_avg: expected a number, got a tensor F32 [6]");
    helper_require(torch_key(&third, "gone", &none), STATUS_INPUT,
                   "x.pt: state[3]: expected the key \"gone\", which is missing");
    helper_require(torch_key(&moment, "step", &none), STATUS_INPUT,
                   "x.pt: state[3].exp_avg: expected a dict, got a tensor");
    assert_int_equal(torch_key(&x.root, "param_groups", &groups), STATUS_OK);
    assert_int_equal(torch_item(&groups, 0, &first), STATUS_OK);
    assert_int_equal(torch_key(&first, "betas", &betas), STATUS_OK);
    assert_int_equal(torch_count(&betas, "two betas", &count), STATUS_OK);
    assert_int_equal(count, 2);
    helper_require(torch_item(&betas, 2, &none), STATUS_INPUT,
                   "x.pt: param_groups[0].betas: expected at least 3 members, got 2");
    helper_require(torch_item(&first, 0, &none), STATUS_INPUT, "expected a list, got a dict");
    helper_require(torch_integer(&betas, &whole), STATUS_INPUT,
                   "x.pt: param_groups[0].betas: expected a whole number, got a tuple");
    helper_require(torch_tensor_of(&x.root, &tensor), STATUS_INPUT,
                   "x.pt: expected a tensor, got a dict");
    assert_true(strncmp(status_text(), "x.pt: expected", 14) == 0);
    helper_require(torch_entry(&first, 99, &none), STATUS_INPUT, "expected at least 100 entries");
    close_golden(&x);
    open_golden(GOLDEN "keys.pt", &x);
    assert_int_equal(torch_entry(&x.root, 0, &first), STATUS_OK);
    assert_true(first.key == NULL && first.index == 1);
    assert_int_equal(torch_entry(&x.root, 1, &first), STATUS_OK);
    assert_string_equal(first.key, "1");
    helper_require(torch_count(&first, "a list", &count), STATUS_INPUT,
                   "x.pt: [\"1\"]: expected a list, got the text \"text\"");
    helper_require(torch_entry(&x.root, 4, &first), STATUS_INPUT,
                   "x.pt: expected keys that are texts or whole numbers, got None");
    assert_true(torch_find_number(&x.root, (int64_t)1 << 40, &first));
    assert_true(torch_find_number(&x.root, -5, &first));
    close_golden(&x);
}

/* The list of numbers.pt: which are whole numbers, and which are numbers. */
static void validate_numbers(void **state) {
    (void)state;
    struct opened x;
    struct torch_place at;
    const char *text;
    double number;
    int64_t whole;
    int flag;
    open_golden(GOLDEN "numbers.pt", &x);
    static const int64_t wholes[] = {0,         1,         255, 256,       65535,
                                     65536,     INT32_MAX, -1,  INT32_MIN, (int64_t)1 << 31,
                                     INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < COUNT_OF(wholes); i++) {
        assert_int_equal(torch_item(&x.root, i, &at), STATUS_OK);
        assert_int_equal(torch_integer(&at, &whole), STATUS_OK);
        assert_true(whole == wholes[i]);
        assert_int_equal(torch_number(&at, &number), STATUS_OK);
        assert_true(number == (double)wholes[i]);
    }
    for (size_t i = COUNT_OF(wholes); i < 16; i++) {
        assert_int_equal(torch_item(&x.root, i, &at), STATUS_OK);
        assert_int_equal(at.value.kind, TORCH_BIG);
        helper_require(torch_number(&at, &number), STATUS_INPUT,
                       "expected a number, got a whole number beyond 64 bits");
    }
    assert_int_equal(torch_item(&x.root, 16, &at), STATUS_OK);
    assert_int_equal(torch_number(&at, &number), STATUS_OK);
    assert_true(number == 0.1);
    helper_require(torch_integer(&at, &whole), STATUS_INPUT,
                   "x.pt: [16]: expected a whole number, got the number 0.1");
    assert_int_equal(torch_item(&x.root, 17, &at), STATUS_OK);
    assert_int_equal(torch_integer(&at, &whole), STATUS_OK); /* -0.0 */
    assert_true(whole == 0);
    assert_int_equal(torch_item(&x.root, 18, &at), STATUS_OK);
    helper_require(torch_integer(&at, &whole), STATUS_INPUT, "got the number inf");
    assert_int_equal(torch_item(&x.root, 20, &at), STATUS_OK);
    assert_int_equal(torch_flag(&at, &flag), STATUS_OK);
    assert_int_equal(flag, 1);
    assert_int_equal(torch_item(&x.root, 21, &at), STATUS_OK);
    assert_int_equal(torch_flag(&at, &flag), STATUS_OK);
    assert_int_equal(flag, 0);
    helper_require(torch_number(&at, &number), STATUS_INPUT, "expected a number, got False");
    assert_int_equal(torch_item(&x.root, 22, &at), STATUS_OK);
    helper_require(torch_flag(&at, &flag), STATUS_INPUT, "expected True or False, got None");
    helper_require(torch_text_of(&at, &text), STATUS_INPUT, "expected a text, got None");
    close_golden(&x);
}

/* A storage of 16 bytes as one element of each dtype, the last of it. */
static void validate_tensors_as_numbers(void **state) {
    (void)state;
    static const unsigned char bytes[8] = {0, 0, 0, 0, 0, 0, 0xF0, 0x3F};
    static const struct {
        enum safetensors_dtype dtype;
        size_t width;
        double number;
        int is_number;
    } cases[] = {
        {SAFETENSORS_F64, 8, 1.0, 1},    {SAFETENSORS_I64, 8, 0x1.FF8p61, 1},
        {SAFETENSORS_F32, 4, 1.875, 1},  {SAFETENSORS_I32, 4, 0x1.FF8p29, 1},
        {SAFETENSORS_BF16, 2, 1.875, 1}, {SAFETENSORS_F16, 2, 0x1.FCp0, 1},
        {SAFETENSORS_U8, 1, 0.0, 0},     {SAFETENSORS_BOOL, 1, 0.0, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct torch_tensor tensor = {.storage = {.bytes = bytes, .length = sizeof bytes},
                                      .dtype = cases[i].dtype,
                                      .offset = 8 / cases[i].width - 1,
                                      .count = 1,
                                      .is_contiguous = 1};
        const struct torch_value value = {.kind = TORCH_TENSOR, .as.tensor = &tensor};
        const struct torch_file file = {.path = "x.pt"};
        const struct torch_place at = {.file = &file, .value = value};
        double number = -1.0;
        assert_int_equal(torch_is_number(&value), cases[i].is_number);
        if (!cases[i].is_number) continue;
        assert_int_equal(torch_number(&at, &number), STATUS_OK);
        if (number != cases[i].number) fail_msg("case %zu: %a", i, number);
        tensor.count = 2;
        assert_int_equal(torch_is_number(&value), 0);
    }
}

/* A view that repeats four elements more than a million times is refused; a smaller one is
 * copied. */
static void validate_repeats(void **state) {
    (void)state;
    static const float numbers[4] = {1.0f, 2.0f, 3.0f, 4.0f};
    struct arena arena = ARENA_EMPTY;
    struct safetensors_tensor rows;
    const struct torch_file file = {.path = "x.pt"};
    uint64_t shape[2] = {1 << 18, 4};
    const uint64_t strides[2] = {0, 1};
    struct torch_tensor tensor = {
        .storage = {.bytes = (const unsigned char *)numbers, .length = sizeof numbers},
        .dtype = SAFETENSORS_F32,
        .rank = 2,
        .shape = shape,
        .strides = strides,
        .count = 1 << 20};
    float last;
    assert_int_equal(torch_tensor_rows(&file, &tensor, "t", &arena, &rows), STATUS_OK);
    memcpy(&last, rows.data + rows.end - sizeof last, sizeof last);
    assert_true(last == 4.0f && rows.end == (uint64_t)4 << 20);
    shape[0]++;
    tensor.count += 4;
    helper_require(torch_tensor_rows(&file, &tensor, "t", &arena, &rows), STATUS_INPUT,
                   "x.pt: tensor \"t\": expected no more elements than its storage has (4)");
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_ways),
        cmocka_unit_test(validate_numbers),
        cmocka_unit_test(validate_tensors_as_numbers),
        cmocka_unit_test(validate_repeats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
