/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short plugin
 * The plug-in templates must train bit for bit as the built-in class of the same arithmetic does,
 * in every dtype; the state and root of each update are compared. And a module that misbehaves
 * while training must be named. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/fpenv.h"
#include "tests/trainer/helper_train.h"
#include "trainer/schema_classes.h"

enum { UPDATES = 6 };

struct bench {
    struct config config;
    struct arena arena;
    struct dataset dataset;
    struct run run;
};

#define SMALL "{layers: 1, hidden: 16, heads: 2, mlp: 24, vocab: 19}"
static const char *model = SMALL;

static enum status bench_try(struct bench *bench, const char *words) {
    bench->arena = (struct arena)ARENA_EMPTY;
    helper_config(UPDATES, &bench->config,
                  "%s, data: {max_len: 16}, batch: {size: 4, micro: 2}, init: {std: 0.1}, "
                  "model: %s",
                  words, model);
    helper_ids_open(&bench->config, 8, 20, 16, &bench->arena, &bench->dataset);
    return run_open_at(&bench->config, &bench->dataset,
                       &(struct run_options){.readback = 1, .steps = UPDATES}, &bench->run);
}

static void bench_open(struct bench *bench, const char *words) {
    if (bench_try(bench, words) != STATUS_OK) fail_msg("%s", status_text());
}

static void bench_close(struct bench *bench) {
    run_close(&bench->run);
    arena_close(&bench->arena);
}

#define SIGNUM "name: signum, sign: false, module: " TWINSTEP_PLUGINS "/signum.so"
#define AGAIN "name: signum, sign: false, module: " TWINSTEP_PLUGINS "/signum_again.so"
#define MOMENT "name: signum, sign: false, module: " TWINSTEP_PLUGINS "/moment.so"
#define TRAPEZOID "name: trapezoid, module: " TWINSTEP_PLUGINS "/trapezoid.so"

/* Steps two trainings that must be one; returns how often the read-back gave a figure. */
static int same_bits(const char *a_words, const char *b_words) {
    struct bench a, b;
    int read = 0;
    bench_open(&a, a_words);
    bench_open(&b, b_words);
    for (int k = 1; k <= UPDATES; k++) {
        const struct record *x = helper_step(&a.run);
        const struct record *y = helper_step(&b.run);
        if (memcmp(x->digests, y->digests, sizeof x->digests) != 0)
            fail_msg("update %d differs\n  %s\n  %s", k, a_words, b_words);
        assert_memory_equal(x->groups, y->groups, sizeof *x->groups * a.run.shape.groups);
        read += x->groups[0][GROUP_LR_READBACK] == x->groups[0][GROUP_LR_READBACK];
    }
    assert_int_equal(a.run.layout.bytes, b.run.layout.bytes);
    assert_memory_equal(run_state_host(&a.run), run_state_host(&b.run), a.run.layout.bytes);
    bench_close(&a);
    bench_close(&b);
    return read;
}

static void corroborate_optimizer(void **state) {
    (void)state;
    static const char *const numerics[] = {
        "param: f32, compute: f32",
        "param: bf16, compute: bf16, master: f32, optimizer: f32, gradient: f32",
        "param: bf16, compute: bf16, master: f32",
        "param: bf16, compute: bf16",
        "param: bf16, compute: bf16, master: f32, optimizer: bf16",
        "param: f64, compute: f64",
        "param: f32, compute: f32, optimizer: f64",
        "param: f32, compute: f32, master: f64",
    };
    static const char *const keys[] = {"momentum: 0.9, weight_decay: 0.1", "momentum: 0",
                                       "momentum: 0.7, nesterov: true",
                                       "momentum: 0.7, nesterov: true, weight_decay: 0.01"};
    for (size_t n = 0; n < COUNT_OF(numerics); n++)
        for (size_t k = 0; k < COUNT_OF(keys); k++) {
            char a[1024], b[1024];
            snprintf(a, sizeof a, "numerics: {%s}, optimizer: {" SIGNUM ", lr: 3e-3, %s}",
                     numerics[n], keys[k]);
            snprintf(b, sizeof b, "numerics: {%s}, optimizer: {name: sgd, lr: 3e-3, %s}",
                     numerics[n], keys[k]);
            assert_true(same_bits(a, b) > 0);
        }
}

/* What an optimizer took in is read back of its first moment, in blocks of one sum, whether its
 * steps are a rule of one element or a module's, which tells its moment. */
static void corroborate_what_was_taken(void **state) {
    (void)state;
    static const char *const numerics[] = {
        "param: f32, compute: f32",
        "param: bf16, compute: bf16, master: f32, optimizer: f32, gradient: f32",
        "param: f64, compute: f64",
    };
    static const char *const keys[] = {"momentum: 0.9", "momentum: 0.7, nesterov: true",
                                       "momentum: 0.9, weight_decay: 0.1"};
    model = "{layers: 1, hidden: 64, heads: 2, mlp: 96, vocab: 19}"; /* tensors of several blocks */
    for (size_t n = 0; n < COUNT_OF(numerics); n++)
        for (size_t k = 0; k < COUNT_OF(keys); k++) {
            char words[1024];
            struct bench a, b;
            snprintf(words, sizeof words, "numerics: {%s}, optimizer: {" MOMENT ", lr: 3e-3, %s}",
                     numerics[n], keys[k]);
            bench_open(&a, words);
            snprintf(words, sizeof words, "numerics: {%s}, optimizer: {name: sgd, lr: 3e-3, %s}",
                     numerics[n], keys[k]);
            bench_open(&b, words);
            for (int update = 1; update <= UPDATES; update++) {
                const double *const x = helper_step(&a.run)->reals;
                const double *const y = helper_step(&b.run)->reals;
                assert_true(x[REAL_GRAD_NORM] == y[REAL_GRAD_NORM]);
                assert_true(x[REAL_GRAD_TAKEN] > 0.0 && x[REAL_GRAD_TAKEN_ERROR] > 0.0);
                const double clip = x[REAL_CLIP_COEF] < 1.0 ? x[REAL_CLIP_COEF] : 1.0;
                assert_true(fabs(x[REAL_GRAD_TAKEN] - clip * x[REAL_GRAD_NORM]) <=
                            x[REAL_GRAD_TAKEN_ERROR]);
                assert_true(x[REAL_GRAD_TAKEN_ERROR] < 1e-2 * x[REAL_GRAD_NORM]);
                assert_true(x[REAL_GRAD_TAKEN] == y[REAL_GRAD_TAKEN]);
                assert_true(x[REAL_GRAD_TAKEN_ERROR] == y[REAL_GRAD_TAKEN_ERROR]);
            }
            bench_close(&a);
            bench_close(&b);
        }
    model = SMALL;
}

/* A module built with other flags is another file, but must be the same optimizer. */
static void verify_flags_move_no_bit(void **state) {
    (void)state;
    same_bits("optimizer: {" SIGNUM ", lr: 3e-3, weight_decay: 0.1}",
              "optimizer: {" AGAIN ", lr: 3e-3, weight_decay: 0.1}");
}

/* Taking the sign makes it another optimizer: every element of a matrix changes by the LR. */
static void validate_sign(void **state) {
    (void)state;
    struct bench bench;
    bench_open(&bench, "optimizer: {name: signum, lr: 0.0625, module: " TWINSTEP_PLUGINS
                       "/signum.so}, schedule: {name: constant}, numerics: {param: f64, "
                       "compute: f64}");
    const struct record *record = helper_step(&bench.run);
    size_t moved = 0, still = 0;
    const struct param_row *row = &bench.run.table.rows[0];
    const double *now = (const double *)run_param(&bench.run, 0);
    const double *initial = (const double *)(const void *)bench.run.initial;
    for (size_t i = 0; i < row->count; i++) {
        const double step = now[i] - initial[i];
        const double size = step < 0 ? -step : step;
        if (step == 0.0)
            still++;
        else if (size > 0.0625 - 0x1p-50 && size < 0.0625 + 0x1p-50)
            moved++;
    }
    assert_int_equal(moved + still, row->count);
    assert_true(moved > row->count / 2);
    assert_true(record->groups[0][GROUP_LR_READBACK] > 0.0624);
    assert_true(record->groups[0][GROUP_LR_READBACK] < 0.0626);
    bench_close(&bench);
}

static void corroborate_schedule(void **state) {
    (void)state;
    static const struct {
        const char *ours, *theirs, *common;
    } cases[] = {
        {"decay: 2", "decay: 2, decay_type: linear", "total: 6"},
        {"decay: 3, floor: 0.1, shape: 1-sqrt", "decay: 3, min_lr_ratio: 0.1, decay_type: 1-sqrt",
         "total: 6, warmup: 2"},
        {"decay: 2, floor: 0.25", "decay: 2, min_lr_ratio: 0.25, decay_type: linear",
         "total: 5, warmup: 3, start: min"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char a[1024], b[1024];
        snprintf(a, sizeof a, "schedule: {" TRAPEZOID ", %s, %s}", cases[i].ours, cases[i].common);
        snprintf(b, sizeof b, "schedule: {name: warmup_stable_decay, %s, %s}", cases[i].theirs,
                 cases[i].common);
        same_bits(a, b);
    }
}

/* The state law holds for plug-ins, too: a snapshot must continue to the same bits. */
static void verify_snapshot(void **state) {
    (void)state;
    struct bench bench;
    static unsigned char snapshot[4 << 20];
    bench_open(&bench, "optimizer: {" SIGNUM ", lr: 3e-3}, schedule: {" TRAPEZOID ", total: 6}");
    assert_true(bench.run.layout.bytes <= sizeof snapshot);
    for (int k = 0; k < 3; k++)
        (void)helper_step(&bench.run);
    assert_int_equal(run_snapshot(&bench.run, snapshot), STATUS_OK);
    uint8_t roots[3][RECORD_DIGEST_BYTES];
    for (int k = 0; k < 3; k++)
        memcpy(roots[k], helper_step(&bench.run)->digests[DIGEST_ROOT], sizeof roots[k]);
    assert_int_equal(run_restore(&bench.run, snapshot), STATUS_OK);
    for (int k = 0; k < 3; k++)
        assert_memory_equal(roots[k], helper_step(&bench.run)->digests[DIGEST_ROOT],
                            sizeof roots[k]);
    bench_close(&bench);
}

/* Two paths to the same bytes must be the same class, and other bytes another. */
static void verify_layout_by_digest(void **state) {
    (void)state;
    struct bench a, b;
    bench_open(&a, "optimizer: {" SIGNUM "}");
    bench_open(&b, "optimizer: {name: signum, sign: false, module: " TWINSTEP_PLUGINS
                   "/../plugins/signum.so}");
    assert_true(run_same_layout(&a.run, &b.run));
    bench_close(&b);
    bench_open(&b, "optimizer: {" AGAIN "}");
    assert_false(run_same_layout(&a.run, &b.run));
    bench_close(&b);
    bench_close(&a);
}

static void validate_misconduct(void **state) {
    (void)state;
    static const struct {
        const char *words, *text;
        enum status status;
        int control; /* only where there is a control word to set */
    } cases[] = {
        {"optimizer: {name: broken, module: " TWINSTEP_PLUGINS "/optim_step_round.so}",
         "/optim_step_round.so: broken: step() changed the floating-point environment of the "
         "whole process to round down",
         STATUS_INPUT, 1},
        {"optimizer: {name: broken, module: " TWINSTEP_PLUGINS "/optim_step_flush.so}",
         "/optim_step_flush.so: broken: step() changed the floating-point environment of the "
         "whole process to round to nearest, subnormals flushed",
         STATUS_INPUT, 1},
        {"optimizer: {name: broken, module: " TWINSTEP_PLUGINS "/optim_direction_round.so}",
         "/optim_direction_round.so: broken: direction() changed", STATUS_INPUT, 1},
        {"optimizer: {name: broken, module: " TWINSTEP_PLUGINS "/optim_step_fail.so}",
         "/optim_step_fail.so: broken: update 1 of model.embed_tokens.weight is not for me",
         STATUS_UNSUPPORTED, 0},
        {"optimizer: {name: broken, module: " TWINSTEP_PLUGINS "/optim_step_mute.so}",
         "/optim_step_mute.so: broken: step() returned status 1 without a text", STATUS_INPUT, 0},
        {"optimizer: {name: broken, module: " TWINSTEP_PLUGINS "/optim_step_status.so}",
         "/optim_step_status.so: broken: step() returned status 6 which stands for no failure",
         STATUS_INPUT, 0},
        {"schedule: {name: broken, module: " TWINSTEP_PLUGINS "/sched_nan.so}",
         "/sched_nan.so: broken: value(): expected a finite learning rate, got nan (counter 2)",
         STATUS_INPUT, 0},
        {"schedule: {name: broken, module: " TWINSTEP_PLUGINS "/sched_value_round.so}",
         "/sched_value_round.so: broken: value() changed the floating-point environment",
         STATUS_INPUT, 1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bench bench;
        const struct record *record;
        struct fpenv_kept kept;
#if !defined(__x86_64__)
        if (cases[i].control) continue;
#endif
        fpenv_keep(&kept);
        enum status status = bench_try(&bench, cases[i].words);
        const int open = status == STATUS_OK;
        for (int k = 0; k < UPDATES && status == STATUS_OK; k++)
            status = run_step(&bench.run, &record);
        if (status != cases[i].status || strstr(status_text(), cases[i].text) == NULL)
            fail_msg("status %d: %s\nexpected %s", (int)status, status_text(), cases[i].text);
        assert_false(fpenv_changed(&kept));
        if (open) run_close(&bench.run);
        arena_close(&bench.arena);
    }
}

/* The module's file has been replaced since the configuration was made, as a second process may
 * find it. */
static void validate_changed_file(void **state) {
    (void)state;
    struct bench bench;
    bench_open(&bench, "optimizer: {" SIGNUM "}");
    run_close(&bench.run);
    snprintf(bench.config.optimizer.which.module, sizeof bench.config.optimizer.which.module,
             "%s/signum_again.so", TWINSTEP_PLUGINS);
    assert_int_equal(run_open_at(&bench.config, &bench.dataset,
                                 &(struct run_options){.steps = UPDATES}, &bench.run),
                     STATUS_INPUT);
    assert_non_null(strstr(status_text(), "/signum_again.so: expected the module with SHA-256 "));
    assert_non_null(strstr(status_text(), "the file was changed"));
    arena_close(&bench.arena);
}

static void put_file(const char *module, const char *as) {
    static unsigned char bytes[8 << 20];
    char path[512];
    snprintf(path, sizeof path, "%s/%s.so", TWINSTEP_PLUGINS, module);
    FILE *from = fopen(path, "rb");
    assert_non_null(from);
    const size_t length = fread(bytes, 1, sizeof bytes, from);
    fclose(from);
    unlink(as); /* a linker makes a new file, too */
    FILE *to = fopen(as, "wb");
    assert_non_null(to);
    assert_int_equal(fwrite(bytes, 1, length, to), length);
    assert_int_equal(fclose(to), 0);
}

/* dlopen would return the old code for a new file of the same name. */
static void validate_rebuilt_while_open(void **state) {
    (void)state;
    char folder[] = "/tmp/twinstep-plugin-XXXXXX";
    char module[64], text[256];
    struct arena arena = ARENA_EMPTY;
    const struct schema *schema;
    struct scenario *scenario;
    assert_non_null(mkdtemp(folder));
    snprintf(module, sizeof module, "%s/m.so", folder);
    const int length =
        snprintf(text, sizeof text,
                 "twinstep: 1\ncommon: {optimizer: {name: signum, module: %s}}\n", module);
    assert_int_equal(schema_with_classes(&arena, &schema), STATUS_OK);
    put_file("signum", module);
    for (int i = 0; i < 2; i++)
        if (scenario_parse(&arena, schema, "f", text, (size_t)length, NULL, 0, &scenario))
            fail_msg("%s", status_text());
    put_file("signum_again", module);
    assert_int_equal(scenario_parse(&arena, schema, "f", text, (size_t)length, NULL, 0, &scenario),
                     STATUS_INPUT);
    assert_non_null(strstr(status_text(), "m.so: the file was changed while this process had it "
                                          "open (SHA-256 "));
    unlink(module);
    rmdir(folder);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_optimizer),    cmocka_unit_test(corroborate_what_was_taken),
        cmocka_unit_test(verify_flags_move_no_bit), cmocka_unit_test(validate_sign),
        cmocka_unit_test(corroborate_schedule),     cmocka_unit_test(verify_snapshot),
        cmocka_unit_test(verify_layout_by_digest),  cmocka_unit_test(validate_rebuilt_while_open),
        cmocka_unit_test(validate_misconduct),      cmocka_unit_test(validate_changed_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
