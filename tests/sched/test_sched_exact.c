/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Schedules that tests/golden/lr does not hold, bit for bit: OLMo-core's of several stages (as
 * ai2-olmo-core 3.0.0 prints them), DeepSpeed's cycle and range test (as lr_schedules.py of 0.15.4
 * prints them), and llm.c's (as a C program with its expressions in float, cosf and sqrtf prints
 * them). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/macro.h"
#include "base/real.h"
#include "sched/sched.h"

static const struct exact_case {
    const char *schedule;
    double lr, warmup, total;
    const char *settings[6][2];
    size_t count;
    double counter[20], expected[20];
} cases[] = {
    {"olmo-core.wsds",
     1e-3,
     3,
     40,
     {{"period", "12"},
      {"decay_ratio", "0.25"},
      {"decay_min_lr", "1e-5"},
      {"warmup_min_lr", "1e-6"}},
     19,
     {0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 20, 21, 22, 24, 25, 34, 35, 36, 39},
     {0x1.0c6f7a0b5ed8dp-20, 0x1.5e39713ad5befp-12, 0x1.5db3397dd00f8p-11, 0x1.0624dd2f1a9fcp-10,
      0x1.0624dd2f1a9fcp-10, 0x1.0624dd2f1a9fcp-10, 0x1.5f45e0b4e11dcp-11, 0x1.64840e1719f80p-12,
      0x1.4f8b588e368f1p-17, 0x1.0624dd2f1a9fcp-10, 0x1.0624dd2f1a9fcp-10, 0x1.0624dd2f1a9fcp-10,
      0x1.5f45e0b4e11dcp-11, 0x1.4f8b588e368f1p-17, 0x1.0624dd2f1a9fcp-10, 0x1.5f45e0b4e11dcp-11,
      0x1.64840e1719f80p-12, 0x1.4f8b588e368f1p-17, 0x1.4f8b588e368f1p-17}},
    {"olmo-core.sequential",
     1e-3,
     4,
     30,
     {{"change", "10"}, {"second", "cosine"}, {"second_warmup", "2"}},
     14,
     {0, 1, 3, 4, 5, 9, 10, 11, 12, 13, 17, 22, 29, 30},
     {0x0.0p+0, 0x1.0624dd2f1a9fcp-12, 0x1.89374bc6a7efap-11, 0x1.0624dd2f1a9fcp-10,
      0x1.0624dd2f1a9fcp-10, 0x1.0624dd2f1a9fcp-10, 0x1.0624dd2f1a9fcp-10, 0x1.0624dd2f1a9fcp-11,
      0x1.0624dd2f1a9fcp-10, 0x1.045a12d11de55p-10, 0x1.b802d271f5fccp-11, 0x1.eec780d8ec506p-12,
      0x1.c01ad4918fd9fp-14, 0x1.a36e2eb1c432dp-14}},
    {"olmo-core.sequential",
     1e-3,
     4,
     30,
     {{"change", "11"}, {"first", "linear"}, {"min_lr_ratio", "0.3"}},
     14,
     {0, 1, 3, 4, 5, 9, 10, 11, 12, 13, 17, 22, 29, 30},
     {0x0.0p+0, 0x1.0624dd2f1a9fcp-12, 0x1.89374bc6a7efap-11, 0x1.0624dd2f1a9fcp-10,
      0x1.d7dbf487fcb92p-11, 0x1.0624dd2f1a9fbp-11, 0x1.a36e2eb1c432cp-12, 0x1.3a92a30553261p-12,
      0x1.2efbb7f64ebcfp-12, 0x1.2364cce74a53cp-12, 0x1.ea124156715e6p-13, 0x1.762d12c04542dp-13,
      0x1.a7d86fdc0f058p-14, 0x1.797cc39ffd60ep-14}},
    {"deepspeed.one_cycle",
     1e-3,
     0,
     18,
     {{"cycle_min_lr", "1e-5"},
      {"first", "7"},
      {"second", "5"},
      {"decay_step", "3"},
      {"decay_rate", "0.5"}},
     18,
     {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17},
     {0x1.3d91986205ebap-13, 0x1.33153d9d9437ap-12, 0x1.c761af0a25790p-12, 0x1.2dd7103b5b5d3p-11,
      0x1.77fd48f1a3fe1p-11, 0x1.c22381a7ec9ecp-11, 0x1.0624dd2f1a9fbp-10, 0x1.a47a9e2bcf91ep-11,
      0x1.3cab81f969e3ep-11, 0x1.a9b8cb8e086b9p-12, 0x1.b43526527a213p-13, 0x1.4f8b588e368f1p-17,
      0x1.1f9c02c30a317p-17, 0x1.f75104d551d6ap-18, 0x1.bf647612f3697p-18, 0x1.92a737110e455p-18,
      0x1.6e0c609b243efp-18, 0x1.4f8b588e368f1p-18}},
    {"deepspeed.lr_range_test",
     1e-3,
     0,
     18,
     {{"step_size", "5"}, {"step_rate", "0.3"}},
     14,
     {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13},
     {0x1.15df6555c52e8p-10, 0x1.2599ed7c6fbd3p-10, 0x1.355475a31a4bep-10, 0x1.450efdc9c4da9p-10,
      0x1.54c985f06f695p-10, 0x1.64840e1719f7fp-10, 0x1.743e963dc486bp-10, 0x1.83f91e646f156p-10,
      0x1.93b3a68b19a42p-10, 0x1.a36e2eb1c432dp-10, 0x1.b328b6d86ec19p-10, 0x1.c2e33eff19503p-10,
      0x1.d29dc725c3defp-10, 0x1.e2584f4c6e6d9p-10}},
    {"deepspeed.lr_range_test",
     1e-3,
     0,
     18,
     {{"step_size", "5"}, {"step_rate", "0.3"}, {"steps", "staircase"}},
     14,
     {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13},
     {0x1.0624dd2f1a9fcp-10, 0x1.0624dd2f1a9fcp-10, 0x1.0624dd2f1a9fcp-10, 0x1.0624dd2f1a9fcp-10,
      0x1.54c985f06f695p-10, 0x1.54c985f06f695p-10, 0x1.54c985f06f695p-10, 0x1.54c985f06f695p-10,
      0x1.54c985f06f695p-10, 0x1.a36e2eb1c432dp-10, 0x1.a36e2eb1c432dp-10, 0x1.a36e2eb1c432dp-10,
      0x1.a36e2eb1c432dp-10, 0x1.a36e2eb1c432dp-10}},
    {"llmc.linear",
     6e-4,
     6,
     37,
     {{"min_lr_ratio", "0.1"}},
     16,
     {0, 1, 4, 5, 6, 9, 15, 20, 27, 28, 29, 30, 31, 33, 35, 36},
     {0x1.a36e3p-14, 0x1.a36e3p-13, 0x1.0624dep-11, 0x1.3a92a4p-11, 0x1.3a92a4p-11, 0x1.1f2caep-11,
      0x1.d0c188p-12, 0x1.756daap-12, 0x1.eb23b4p-13, 0x1.c69bc4p-13, 0x1.a213dp-13, 0x1.7d8bep-13,
      0x1.5903ecp-13, 0x1.0ff408p-13, 0x1.8dc84p-14, 0x1.44b87p-14}},
    {"llmc.cosine",
     6e-4,
     6,
     37,
     {{"min_lr_ratio", "0.1"}},
     16,
     {0, 1, 4, 5, 6, 9, 15, 20, 27, 28, 29, 30, 31, 33, 35, 36},
     {0x1.a36e3p-14, 0x1.a36e3p-13, 0x1.0624dep-11, 0x1.3a92a4p-11, 0x1.3a92a4p-11, 0x1.3414b4p-11,
      0x1.03a9d6p-11, 0x1.84e6d2p-12, 0x1.888b5ap-13, 0x1.597784p-13, 0x1.2df218p-13,
      0x1.066d84p-13, 0x1.c6a30cp-14, 0x1.576f78p-14, 0x1.12d6fcp-14, 0x1.0177f4p-14}},
    {"llmc.wsd",
     6e-4,
     6,
     37,
     {{"min_lr_ratio", "0.1"}},
     16,
     {0, 1, 4, 5, 6, 9, 15, 20, 27, 28, 29, 30, 31, 33, 35, 36},
     {0x1.a36e3p-14, 0x1.a36e3p-13, 0x1.0624dep-11, 0x1.3a92a4p-11, 0x1.3a92a4p-11, 0x1.3a92a4p-11,
      0x1.3a92a4p-11, 0x1.3a92a4p-11, 0x1.3a92a4p-11, 0x1.3a92a4p-11, 0x1.3a92a4p-11,
      0x1.acf3e4p-12, 0x1.5a07b4p-12, 0x1.c98506p-13, 0x1.158cep-13, 0x1.8df098p-14}},
};

static void validate_bits(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct exact_case *c = &cases[i];
        const struct sched_class *schedule = sched_find(c->schedule);
        double values[32] = {0};
        const struct sched_call call = {.size = sizeof call,
                                        .base_lr = c->lr,
                                        .warmup = c->warmup,
                                        .total = c->total,
                                        .values = values};
        assert_non_null(schedule);
        assert_int_equal(sched_values_standard(schedule, values), STATUS_OK);
        for (size_t s = 0; s < COUNT_OF(c->settings) && c->settings[s][0] != NULL; s++)
            assert_int_equal(
                sched_values_set(schedule, values, c->settings[s][0], c->settings[s][1]),
                STATUS_OK);
        assert_int_equal(schedule->validate(&call), STATUS_OK);
        for (size_t k = 0; k < c->count; k++) {
            const double lr = schedule->value(&call, c->counter[k]);
            if (real_bits_f64(lr) != real_bits_f64(c->expected[k]))
                fail_msg("%s, case %zu, counter %g: expected %a, got %a", c->schedule, i,
                         c->counter[k], c->expected[k], lr);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
