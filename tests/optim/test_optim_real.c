/* SPDX-License-Identifier: Apache-2.0
 * labels: unit golden short
 * The optimizers and clipping against what the real libraries computed (tests/golden/optim, whose
 * README names the versions). Keys are set by name, so that a case is what a scenario would say. */
#include "optim/optim.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "optim/clip.h"
#include "tests/optim/helper_clip.h"
#include "tests/optim/helper_optim.h"

enum { COUNT = 32, STEPS = 6, WORDS = 32, LINE = 8192 };

static struct helper_tensor one;

/* The same mixing function as in tests/golden/optim/generate.py. */
static uint32_t mix(uint32_t stream, uint32_t index) {
    uint32_t x = stream * 0x9E3779B9u + index * 0x85EBCA6Bu;
    x ^= x >> 16;
    x *= 0x7FEB352Du;
    x ^= x >> 15;
    x *= 0x846CA68Bu;
    return x ^ x >> 16;
}

static double draw(uint32_t stream, uint32_t index, enum dtype dtype, int exponent) {
    const double whole = (double)(mix(stream, index) >> 8) - 8388608.0;
    return helper_round(ldexp(whole, exponent), dtype);
}

/* One line of a golden file: its first word, then words KEY=VALUE or flags. */
struct line {
    const char *name;
    char *word[WORDS];
    size_t words;
    enum dtype dtype;
};

static void split(char *text, struct line *out) {
    memset(out, 0, sizeof *out);
    text[strcspn(text, "\n")] = '\0';
    out->name = strtok(text, " ");
    for (char *word = strtok(NULL, " "); word != NULL; word = strtok(NULL, " ")) {
        assert_true(out->words < WORDS);
        out->word[out->words++] = word;
    }
}

static const char *value_of(const struct line *line, const char *key) {
    const size_t length = strlen(key);
    for (size_t i = 0; i < line->words; i++)
        if (strncmp(line->word[i], key, length) == 0 && line->word[i][length] == '=')
            return line->word[i] + length + 1;
    return NULL;
}

static double number_of(const struct line *line, const char *key, double otherwise) {
    const char *text = value_of(line, key);
    return text == NULL ? otherwise : strtod(text, NULL);
}

static enum dtype dtype_of(const struct line *line) {
    const char *text = value_of(line, "dtype");
    if (strcmp(text, "f64") == 0) return DTYPE_F64;
    return strcmp(text, "bf16") == 0 ? DTYPE_BF16 : DTYPE_F32;
}

/* Returns element i of a string of hexadecimal bits; NaN where the string has n. */
static double hexadecimal(const char *text, enum dtype dtype, size_t i) {
    const size_t digits = dtype == DTYPE_F64 ? 16 : 8;
    char part[17] = {0};
    memcpy(part, text + i * digits, digits);
    if (part[0] == 'n') return (double)NAN;
    const uint64_t bits = strtoull(part, NULL, 16);
    double wide;
    float narrow;
    const uint32_t low = (uint32_t)bits;
    memcpy(&wide, &bits, sizeof wide);
    memcpy(&narrow, &low, sizeof narrow);
    return dtype == DTYPE_F64 ? wide : (double)narrow;
}

/* Sets one key of a class's values: to the line's word, or to the default where the line has
 * none. */
static void fill_row(const struct key_row *row, const char *text, unsigned char *values) {
    if (row->type == KEY_REAL) {
        const int is_word = row->word != NULL && strcmp(text, row->word) == 0;
        const double real = is_word ? KEY_WORD_REAL : strtod(text, NULL);
        memcpy(values + row->offset, &real, sizeof real);
    } else if (row->type == KEY_BOOL) {
        values[row->offset] = strcmp(text, "true") == 0;
    } else {
        int32_t index = 0;
        assert_int_equal(row->type, KEY_ENUM);
        while (strcmp(row->names[index], text) != 0)
            assert_non_null(row->names[++index]);
        memcpy(values + row->offset, &index, sizeof index);
    }
}

static void fill_values(const struct line *line, const struct optim_class *class_,
                        unsigned char *values) {
    memset(values, 0, class_->values_size);
    for (size_t i = 0; i < class_->key_count; i++) {
        const char *text = value_of(line, class_->keys[i].path);
        fill_row(&class_->keys[i], text == NULL ? class_->keys[i].standard : text, values);
    }
    assert_int_equal(class_->validate(values), STATUS_OK);
}

static void open_tensor(const struct line *line, const struct optim_class *class_,
                        const unsigned char *values) {
    const enum dtype dtype = line->dtype;
    const uint64_t rows = (uint64_t)number_of(line, "rows", 1);
    const enum dtype slot =
        strcmp(line->name, "adafactor") == 0 && dtype == DTYPE_BF16 ? DTYPE_F32 : dtype;
    helper_open(&one, COUNT, (struct helper_dtypes){dtype, dtype, slot, -1}, 1);
    one.tensor.rank = rows > 1 ? 2 : 1;
    one.tensor.shape[0] = rows > 1 ? rows : COUNT;
    one.tensor.shape[1] = rows > 1 ? COUNT / rows : 1;
    for (uint32_t s = 0; s < class_->slot_count; s++)
        if (optim_slot_elements(class_, values, s, one.tensor.rank, one.tensor.shape) == 0)
            one.tensor.slots[s] = NULL;
    for (uint32_t i = 0; i < COUNT; i++)
        helper_set(one.param, dtype, i, draw(1, i, dtype, -27));
}

/* Returns how many elements differ by more than `within`, which is relative to the largest
 * element. */
static int compare(const struct line *line, const char *what, const void *ours, enum dtype dtype,
                   double within) {
    const char *text = value_of(line, what);
    int misses = 0;
    double largest = 0.0;
    if (text == NULL) return 0;
    const size_t count = strlen(text) / (dtype == DTYPE_F64 ? 16 : 8);
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(hexadecimal(text, dtype, i)));
    for (size_t i = 0; i < count; i++) {
        const double theirs = hexadecimal(text, dtype, i);
        const double mine = helper_get(ours, dtype, i);
        const int same = mine == theirs || (isnan(mine) && isnan(theirs)) ||
                         fabs(mine - theirs) <= within * largest;
        if (!same && misses++ == 0)
            print_message("%s %s %s %s: %s[%zu] expected %a, got %a (%.3g of the largest)\n",
                          line->name, value_of(line, "by"), value_of(line, "dtype"),
                          value_of(line, "variant"), what, i, theirs, mine,
                          fabs(mine - theirs) / largest);
    }
    return misses;
}

static int run_optimizer(const struct line *line) {
    static _Alignas(8) unsigned char values[256];
    static const char *const slots[] = {"slot0", "slot1", "slot2", "slot3"};
    const struct optim_class *class_ = optim_find(line->name);
    assert_non_null(class_);
    fill_values(line, class_, values);
    open_tensor(line, class_, values);
    const struct optim_group group = {number_of(line, "lr", 0), number_of(line, "weight_decay", 0)};
    const double skip = number_of(line, "skip", -1);
    uint64_t t = 0;
    struct optim_call call = helper_call(&one.tensor, 1, &group, 1, &t, values);
    call.grad_scale = number_of(line, "scale", 1);
    for (uint32_t step = 0; step < STEPS; step++) {
        for (uint32_t i = 0; i < COUNT; i++)
            helper_set(one.gradient, line->dtype, i,
                       call.grad_scale * draw(step + 2, i, line->dtype, -29));
        call.found_inf = (double)step == skip;
        if (call.found_inf) helper_set(one.gradient, line->dtype, 5, (double)NAN);
        assert_int_equal(class_->step(&call), STATUS_OK);
    }
    const double within = number_of(line, "within", 0);
    int misses = compare(line, "p", one.param, line->dtype, within);
    for (size_t s = 0; s < COUNT_OF(slots); s++)
        misses += compare(line, slots[s], one.slot[s], one.tensor.slot_dtype, within);
    return misses;
}

/* torch's norm of norms, in the gradients' dtype. Its f32 sums add in another order than law 2,
 * which 2e-7 (three half ulps of f32) allows for; 1e-15 does so in f64, and the narrow dtypes must
 * be equal. */
static int run_clip(const struct line *line) {
    static const size_t counts[] = {32, 7, 100};
    static struct helper_tensor buffers[3];
    static _Alignas(64) unsigned char scratch[1 << 20];
    struct clip_tensor tensors[3];
    for (uint32_t k = 0; k < 3; k++) {
        for (uint32_t i = 0; i < counts[k]; i++)
            helper_set(buffers[k].gradient, line->dtype, i, draw(30 + k, i, line->dtype, -29));
        tensors[k] = (struct clip_tensor){buffers[k].gradient, counts[k], line->dtype, NULL};
    }
    const struct op_table *ops = NULL;
    assert_int_equal(backend_ops(ISA_BASE, DTYPE_F32, DTYPE_F32, &ops), STATUS_OK);
    const struct op_call call = {.compute = DTYPE_F32, .threads = 1, .scratch = scratch};
    struct clip_call clip = {.ops = ops,
                             .call = &call,
                             .tensors = tensors,
                             .tensor_count = 3,
                             .rule = helper_clip_rule(number_of(line, "max_norm", 0))};
    clip.rule.norm = CLIP_NORMS;
    clip.rule.dtype = CLIP_GRADIENT;
    struct clip_result result;
    clip_gradients(&clip, &result);
    const double within = line->dtype == DTYPE_F64 ? 1e-15 : line->dtype == DTYPE_F32 ? 2e-7 : 0.0;
    double norm[1];
    helper_set(norm, line->dtype, 0, result.norm);
    return compare(line, "norm", norm, line->dtype, within) +
           compare(line, "p", buffers[0].gradient, line->dtype, within);
}

static void corroborate_real_libraries(void **state) {
    (void)state;
    static char text[LINE];
    FILE *file = fopen(TWINSTEP_SOURCE_DIR "/tests/golden/optim/vectors.txt", "r");
    int misses = 0;
    int lines = 0;
    assert_non_null(file);
    while (fgets(text, sizeof text, file) != NULL) {
        struct line line;
        assert_non_null(strchr(text, '\n'));
        if (text[0] == '#') continue;
        split(text, &line);
        line.dtype = dtype_of(&line);
        misses += strcmp(line.name, "clip") == 0 ? run_clip(&line) : run_optimizer(&line);
        ++lines;
    }
    fclose(file);
    assert_int_equal(lines, 89);
    assert_int_equal(misses, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(corroborate_real_libraries)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
