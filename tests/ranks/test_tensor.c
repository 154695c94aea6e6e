/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Sums of torch's tensor parallelism over Gloo (tests/golden/ranks/tensor.txt), whose ranks have
 * one product of each: rounded by each rank to the dtype, then added in the order of Gloo, they are
 * torch's numbers, to the bit. Over a balanced tree four ranks miss some. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/dtype.h"
#include "ranks/join.h"
#include "tests/ranks/helper_recorded.h"

#define TOKENS 100
#define RANKS_MOST 4
#define MOST (RANKS_MOST * TOKENS) /* numbers in a tensor */

struct recorded {
    uint32_t ranks;
    enum dtype dtype;
    float h[MOST], w[MOST], y[MOST], dh[MOST], v[MOST], dx[MOST];
};

/* Reads the tensor of this name, of `count` numbers in f32. */
static void tensor(const char *line, const char *name, size_t count, float *out) {
    char sought[16];
    snprintf(sought, sizeof sought, " %s=", name);
    const char *at = strstr(line, sought);
    assert_non_null(at);
    at += strlen(sought);
    assert_true(count <= MOST && strlen(at) > 8 * count);
    for (size_t i = 0; i < count; i++, at += 8) {
        char digits[9] = {0};
        memcpy(digits, at, 8);
        const uint32_t bits = (uint32_t)strtoul(digits, NULL, 16);
        memcpy(&out[i], &bits, sizeof bits);
    }
    assert_true(*at == ' ' || *at == '\n');
}

static void recorded_read(const char *line, struct recorded *out) {
    out->ranks = (uint32_t)strtoul(line, NULL, 10);
    assert_true(out->ranks == 2 || out->ranks == 4);
    out->dtype = strstr(line, " bfloat16 ") != NULL ? DTYPE_BF16 : DTYPE_F32;
    tensor(line, "h", (size_t)out->ranks * TOKENS, out->h);
    tensor(line, "dh", (size_t)out->ranks * TOKENS, out->dh);
    tensor(line, "w", (size_t)out->ranks * 4, out->w);
    tensor(line, "v", (size_t)out->ranks * 3, out->v);
    tensor(line, "y", (size_t)4 * TOKENS, out->y);
    tensor(line, "dx", (size_t)3 * TOKENS, out->dx);
}

/* How many of `width` numbers for each token differ from `due`, when rank r's term of number j is
 * inner[token][r] times weight[j * number + r * rank], and terms are added by `algorithm`. */
static size_t differing(const struct recorded *of, enum grouping_algorithm algorithm,
                        const float *inner, const float *weight, size_t width, size_t number,
                        size_t rank, const float *due) {
    static float terms[RANKS_MOST][MOST], sum[MOST];
    const float *vectors[RANKS_MOST];
    const struct grouping_call call = {.algorithm = algorithm,
                                       .ranks = of->ranks,
                                       .count = width * TOKENS,
                                       .width = (uint32_t)dtype_width(of->dtype)};
    size_t count = 0;
    for (uint32_t r = 0; r < of->ranks; r++) {
        for (size_t i = 0; i < width * TOKENS; i++) {
            const float product =
                inner[i / width * of->ranks + r] * weight[i % width * number + r * rank];
            terms[r][i] = (float)dtype_round((double)product, of->dtype);
        }
        vectors[r] = terms[r];
    }
    assert_int_equal(join_vectors(&call, of->dtype, vectors, sum), STATUS_OK);
    for (size_t i = 0; i < width * TOKENS; i++)
        count += memcmp(&sum[i], &due[i], sizeof sum[i]) != 0;
    return count;
}

static size_t differing_by(const struct recorded *of, enum grouping_algorithm algorithm) {
    return differing(of, algorithm, of->h, of->w, 4, of->ranks, 1, of->y) +
           differing(of, algorithm, of->dh, of->v, 3, 1, 3, of->dx);
}

static void corroborate_torch(void **state) {
    static struct recorded of;
    static char line[1 << 16];
    size_t lines = 0;
    FILE *const file = recorded_open("tensor.txt");
    (void)state;
    while (fgets(line, sizeof line, file) != NULL) {
        recorded_read(line, &of);
        assert_int_equal(differing_by(&of, GROUPING_GLOO), 0);
        assert_int_equal(differing_by(&of, GROUPING_RECURSIVE), of.ranks == 2 ? 0 : 237);
        lines++;
    }
    assert_int_equal(fclose(file), 0);
    assert_int_equal(lines, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(corroborate_torch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
