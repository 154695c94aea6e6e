/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short golden
 * Rotary frequencies must be those of transformers' own functions (tests/golden/rope, made by
 * make_inv_freq.py) within a few ulps of f32, as must the attention factor; and a table must hold
 * what follows from them. Each kind of scaling must change some frequency by far more than that
 * distance, or the comparison would prove nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/real.h"
#include "model/rope_table.h"
#include "tests/trainer/helper_train.h"

#define GOLDEN TWINSTEP_SOURCE_DIR "/tests/golden/rope/inv_freq.txt"
/* transformers rounds every step to f32, twinstep only the result, so a few ulps are allowed:
 * smoothing amplifies what the f32 power lost. */
#define ULP 3

static void check_factor(const struct config *config, const char *line) {
    const double wanted = strtod(line + strlen("factor "), NULL);
    const double got = config->model.rope_attention_factor;
    if (real_ulp_distance_f64(wanted, got) > 1) fail_msg("factor %.17g, got %.17g", wanted, got);
}

/* Writes the largest distance in ulps, and to `moved` the largest relative change that the scaling
 * makes. */
static void check_pair(const struct config *config, uint32_t pair, const char *line,
                       uint64_t *worst, double *moved) {
    const float wanted = strtof(line, NULL), got = (float)rope_frequency(config, pair);
    struct config unstretched = *config;
    unstretched.model.rope_scaling = ROPE_PLAIN;
    const double before = rope_frequency(&unstretched, pair);
    const uint64_t distance = real_ulp_distance_f32(wanted, got);
    if (distance > *worst) *worst = distance;
    if (fabs((double)got - before) / before > *moved) *moved = fabs((double)got - before) / before;
}

static void corroborate_frequencies(void **state) {
    char line[512], words[600];
    struct config config;
    uint64_t worst = 0;
    double moved = 0.0;
    uint32_t pair = 0, blocks = 0;
    FILE *file = fopen(GOLDEN, "r");
    (void)state;
    assert_non_null(file);
    while (1) {
        const int more = fgets(line, sizeof line, file) != NULL;
        if ((!more || line[0] == 'm') && blocks > 0) {
            print_message("%s %ju: %u frequencies, worst %ju ulp, moved by up to %.2f\n",
                          config.model.rope_scaling == ROPE_YARN ? "yarn" : "llama3",
                          (uintmax_t)config.model.head_dim, pair, (uintmax_t)worst, moved);
            assert_int_equal(pair, config.model.head_dim / 2);
            assert_true(worst <= ULP);
            assert_true(moved > 0.3 || config.model.rope_factor == 1.0);
        }
        if (!more) break;
        if (line[0] == '#') continue;
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == 'm') {
            snprintf(words, sizeof words, "task: sft, model: {%s}", line + strlen("model "));
            helper_config(1, &config, "%s", words);
            worst = pair = 0;
            moved = 0.0;
            blocks++;
        } else if (line[0] == 'f') {
            check_factor(&config, line);
        } else {
            check_pair(&config, pair++, line, &worst, &moved);
        }
    }
    assert_int_equal(fclose(file), 0);
    assert_int_equal(blocks, 10);
}

/* The factor multiplies cosine and sine, so at position 0 the cosine is the factor itself. */
static void validate_table(void **state) {
    static float cosine[2][8 * 4], sine[2][8 * 4];
    struct config plain, yarn;
    (void)state;
    helper_config(1, &plain, "task: sft, model: {head_dim: 8, rope_theta: 10000}");
    helper_config(1, &yarn,
                  "task: sft, model: {head_dim: 8, rope_theta: 10000, rope_scaling: yarn, "
                  "rope_factor: 1, rope_attention_factor: 1.5}");
    rope_table_fill(&plain, 8, form_carried(DTYPE_F32), cosine[0], sine[0]);
    rope_table_fill(&yarn, 8, form_carried(DTYPE_F32), cosine[1], sine[1]);
    for (size_t i = 0; i < 8 * 4; i++) {
        assert_true(cosine[1][i] == cosine[0][i] * 1.5f);
        assert_true(sine[1][i] == sine[0][i] * 1.5f);
    }
    assert_true(cosine[1][0] == 1.5f && sine[1][0] == 0.0f);
    assert_true(cosine[0][4] == (float)cos(1.0) && sine[0][4] == (float)sin(1.0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_frequencies),
        cmocka_unit_test(validate_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
