/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Which keys a preference loss reads, and which values it must refuse. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "tests/scenarios/helper_scenario.h"

#define BETA(column)                                                                               \
    column ": error: dpo.beta: expected more than 0 with dpo.loss ipo, ipo-sum and sppo-hard, "    \
           "whose target is 1 / (2 beta), got 0"
#define DIVERGENCE(column)                                                                         \
    column ": error: dpo.f_divergence: expected reverse-kl, or another with dpo.loss sigmoid, "    \
           "sigmoid-norm, hinge, ipo, exo-pair, robust or discopop: what a divergence adds to "    \
           "every reward cancels in a margin only"

/* The message is what follows "f.yaml:2:". */
static const struct {
    const char *words, *message;
} refused[] = {
    {"loss: wpo",
     "22: error: dpo.loss: expected one of sigmoid, cdpo, robust, hinge, ipo, ipo-sum, dpo-norm, "
     "sigmoid-norm, simpo, apo-zero, apo-down, exo-pair, nca-pair, bco-pair, sppo-hard, discopop, "
     "got \"wpo\"; did you mean ipo?"},
    {"label_smoothing: 0, loss: exo-pair",
     "33: error: dpo.label_smoothing: expected more than 0 with dpo.loss exo-pair, which takes its "
     "logarithm (the paper's value is 1e-3), got 0"},
    {"loss: robust, label_smoothing: 0.5",
     "47: error: dpo.label_smoothing: expected less than 0.5 with dpo.loss robust, which divides "
     "by 1 - 2 label_smoothing, got 0.5"},
    {"label_smoothing: 1",
     "33: error: dpo.label_smoothing: expected a number >= 0 and < 1, got \"1\""},
    {"loss: ipo, beta: 0", BETA("33")},
    {"loss: ipo-sum, beta: 0", BETA("37")},
    {"loss: sppo-hard, beta: 0", BETA("39")},
    {"loss: cdpo, f_divergence: js", DIVERGENCE("42")},
    {"loss: simpo, f_divergence: alpha", DIVERGENCE("43")},
    {"f_divergence: kl",
     "30: error: dpo.f_divergence: expected one of reverse-kl, forward-kl, js, alpha, got \"kl\""},
};

static void validate_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        char text[256], message[512];
        snprintf(text, sizeof text, "twinstep: 1\ncommon: {dpo: {%s}}\n", refused[i].words);
        snprintf(message, sizeof message, "f.yaml:2:%s", refused[i].message);
        helper_refuse(text, NULL, STATUS_INPUT, message);
    }
}

static const char *const accepted[] = {
    "loss: robust, label_smoothing: 0.49",
    "loss: exo-pair, label_smoothing: 1e-3",
    "loss: sigmoid, beta: 0",
    "loss: exo-pair, label_smoothing: 0.1, f_divergence: js",
    "loss: discopop, f_divergence: alpha, f_alpha: 1",
};

static void validate_accepted(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(accepted); i++) {
        struct arena arena = ARENA_EMPTY;
        char text[256];
        snprintf(text, sizeof text, "dpo: {%s}", accepted[i]);
        helper_common(&arena, text);
        arena_close(&arena);
    }
}

static const struct {
    const char *words, *key, *why; /* NULL: the key is read */
} inert[] = {
    {"label_smoothing: 0.1", "dpo.label_smoothing", "dpo.loss does not smooth labels"},
    {"loss: ipo, label_smoothing: 0.1", "dpo.label_smoothing", "dpo.loss does not smooth labels"},
    {"loss: cdpo, label_smoothing: 0.1", NULL, NULL},
    {"loss: dpo-norm, label_smoothing: 0.1", NULL, NULL},
    {"loss: simpo, label_smoothing: 0.1", NULL, NULL},
    {"loss: robust, label_smoothing: 0.1", NULL, NULL},
    {"loss: exo-pair, label_smoothing: 0.1", NULL, NULL},
    {"gamma_beta_ratio: 1", "dpo.gamma_beta_ratio", "dpo.loss is not simpo"},
    {"loss: simpo, gamma_beta_ratio: 1", NULL, NULL},
    {"discopop_tau: 1", "dpo.discopop_tau", "dpo.loss is not discopop"},
    {"loss: discopop, discopop_tau: 1", NULL, NULL},
    {"f_alpha: 2", "dpo.f_alpha", "dpo.f_divergence is not alpha"},
    {"f_alpha: 2, f_divergence: alpha", NULL, NULL},
    {"loss: simpo, reference: live", "dpo.reference", "dpo.loss is simpo"},
    {"loss: simpo, reference_batch: 2", "dpo.reference_batch", "dpo.loss is simpo"},
    {"loss: simpo, reference_compute: bf16", "dpo.reference_compute", "dpo.loss is simpo"},
    {"loss: simpo, reference_layout: concatenated", "dpo.reference_layout", "dpo.loss is simpo"},
};

static void validate_inert(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(inert); i++) {
        struct arena arena = ARENA_EMPTY;
        char text[256];
        snprintf(text, sizeof text, "dpo: {%s}", inert[i].words);
        const struct scenario *scenario = helper_common(&arena, text);
        assert_int_equal(scenario->inert_count, inert[i].key != NULL);
        if (inert[i].key != NULL) {
            assert_string_equal(scenario->inert[0].key, inert[i].key);
            assert_string_equal(scenario->inert[0].why, inert[i].why);
        }
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_refusals),
        cmocka_unit_test(validate_accepted),
        cmocka_unit_test(validate_inert),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
