/* SPDX-License-Identifier: Apache-2.0
 * labels: cli whole
 * Every place where the host looks at a tensor (docs/CUDA.md, Memory): what a command says with a
 * backend whose tensors the host must not touch is what it says on the CPU. The backend is the shim
 * of kernels/cuda/, where a touch ends the program with SIGSEGV. And whichever call of a run fails,
 * the run ends with exit status 2 and a text. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <unistd.h>

#include "base/macro.h"
#include "tests/base/helper_size.h"
#include "tests/cli/helper_cli.h"
#include "tests/kernels/helper_variables.h"

#define SHIM TWINSTEP_BACKENDS "/twinstep_backend_shim.so"

static void write_rows(const char *path, const char *more) {
    char text[512];
    snprintf(text, sizeof text,
             "{\"prompt\": \"a%s\", \"chosen\": \"bd\", \"rejected\": \"c\"}\n"
             "{\"prompt\": \"x\", \"chosen\": \"yz%s\", \"rejected\": \"z\"}\n",
             more, more);
    helper_write(path, text);
}

#define HEAD                                                                                       \
    "twinstep: 1\nname: t\nabout: Tiny\nsteps: 3\nrecord: {probe_every: 2}\ncommon:\n"             \
    "  model: {layers: 1, hidden: 8, heads: 2, mlp: 12}\n"                                         \
    "  data: {pairs: pairs.jsonl, max_len: 24}\n"                                                  \
    "  batch: {size: 2, micro: 1}\n"

static void write_scenario(const char *common, const char *test) {
    char text[2048];
    write_rows("pairs.jsonl", "");
    snprintf(text, sizeof text, HEAD "%sarms:\n  baseline: {}\n  test: {%s}\n", common, test);
    helper_write("t.yaml", text);
}

/* Whether a line names the machine, which is meant to be another one. */
static int is_of_machine(const char *line, size_t length) {
    static const char *const words[] = {"device", "backend", "ran on", "trace    ", ".h5"};
    char copy[512];
    snprintf(copy, sizeof copy, "%.*s", (int)length, line);
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strstr(copy, words[i]) != NULL) return 1;
    return 0;
}

/* Returns the next line that is compared, NULL at the end; moves *at behind it. */
static const char *next_line(const char **at, size_t *out_length) {
    while (**at != '\0') {
        const char *const line = *at;
        *out_length = strcspn(line, "\n");
        *at = line + *out_length + (line[*out_length] == '\n');
        if (!is_of_machine(line, *out_length)) return line;
    }
    return NULL;
}

static void expect_same_words(const char *what, const char *cpu, const char *shim) {
    const char *x = cpu, *y = shim;
    size_t compared = 0;
    for (;;) {
        size_t a = 0, b = 0;
        const char *const p = next_line(&x, &a), *const q = next_line(&y, &b);
        if (p == NULL && q == NULL) break;
        if (p == NULL || q == NULL || a != b || memcmp(p, q, a) != 0)
            fail_msg("%s: on the CPU\n%.*s\nand with the backend\n%.*s\nin\n%s", what, (int)a,
                     p == NULL ? "" : p, (int)b, q == NULL ? "" : q, shim);
        compared++;
    }
    if (compared == 0) fail_msg("%s: said nothing", what);
}

#define ON_SHIM                                                                                    \
    " --set common.numerics.backend=cuda --set common.numerics.backend_module=" SHIM               \
    " --allow-modules"

/* Runs the command on both, with `%s` in the place of the words for the machine, and expects the
 * same exit status and words. */
static void expect_same(int code, const char *command) {
    char line[512];
    struct said said[2];
    for (int who = 0; who < 2; who++) {
        snprintf(line, sizeof line, "%s%s", command, who == 0 ? "" : ON_SHIM);
        said[who] = helper_run(code, line);
    }
    expect_same_words(command, said[0].out, said[1].out);
    helper_free(&said[0]);
    helper_free(&said[1]);
}

/* One run for each of what the host does with tensors, and in front of them three that do most of
 * it together, which the default run takes. */
static void corroborate_runs(void **state) {
    (void)state;
    static const struct {
        int code;
        const char *common, *test;
    } cases[] = {
        /* drawn roundings until a bit of a parameter flips; a step on the host of nudged weights,
         * one of which flips before an update of both arms;
         * masters and moments that a restart rounds and moves, with drawn orders */
        {1, "  optimizer: {lr: 1e-3}\n  numerics: {param: bf16, rounding: stochastic}\n",
         "fault: {update: 2, phase: optimize, op: model.layers.0.mlp.up_proj.weight, tensor: "
         "parameter, element: 3, bit: 10}"},
        {1,
         "  optimizer: {name: adafactor, lr: 1e-3}\n  fault: {update: 3, phase: before-the-update, "
         "op: lm_head.weight, tensor: parameter, element: 3, bit: 29}\n",
         "init: {nudge: model.layers.0.mlp.up_proj.weight}"},
        {1,
         "  optimizer: {lr: 1e-3}\n  resume: {after: 1}\n  clip: {dtype: f64}\n"
         "  numerics: {param: bf16, master: f32, mode: shuffled, order_seed: 1}\n",
         "resume: {wrong: [masters-bf16, shards-by-index], ranks: 3}"},
        /* points, hybrids, branches, probes, the twin, the first difference under a watch */
        {1, "", "optimizer: {lr: 2e-3, weight_decay: 0.1}"},
        /* equal arms, compared and kept, until a bit flips in an op, and in a tensor */
        {1, "",
         "fault: {update: 2, phase: backward, layer: 0, op: down_proj, tensor: weight gradient, "
         "bit: 26}"},
        {1, "",
         "fault: {update: 2, phase: optimize, op: model.layers.0.mlp.up_proj.weight, tensor: "
         "parameter, element: 3, bit: 20}"},
        {1, "", "init: {nudge: model.layers.0.mlp.up_proj.weight}"},
        /* a step on the host, with its read-back; drawn roundings; fp8 without masters */
        {1, "  optimizer: {name: adafactor, lr: 1e-3}\n", "optimizer: {lr: 2e-3}"},
        {1, "  optimizer: {lr: 1e-3}\n  numerics: {param: bf16, rounding: stochastic}\n",
         "optimizer: {lr: 2e-3}"},
        {1, "  optimizer: {lr: 1e-1}\n  numerics: {param: e4m3}\n", "optimizer: {lr: 2e-1}"},
        /* masters that a restart rounds, and an optimizer that it forgets */
        {1,
         "  optimizer: {lr: 1e-3}\n  numerics: {param: bf16, master: f32}\n"
         "  resume: {after: 1}\n",
         "resume: {wrong: [masters-bf16]}"},
        /* moments and masters that a restart moves from tensor to tensor */
        {1,
         "  optimizer: {lr: 1e-3}\n  numerics: {param: bf16, master: f32}\n"
         "  resume: {after: 1}\n",
         "resume: {wrong: [shards-by-index], ranks: 3}"},
        {1, "  resume: {after: 1}\n", "resume: {restores: [schedule, data, rng, scaler]}"},
        /* the order of the loss, and a norm whose sum is drawn, which the host joins */
        {0, "  numerics: {mode: shuffled, order_seed: 1}\n  clip: {dtype: f64}\n", ""},
        {0, "  numerics: {compute: bf16}\n  dpo: {reference_compute: f32}\n", ""},
    };
    for (size_t i = 0; i < helper_size(3, 3, COUNT_OF(cases)); i++) {
        write_scenario(cases[i].common, cases[i].test);
        expect_same(cases[i].code, "run t.yaml --quiet --overwrite --reproducible -o t.h5");
    }
    write_scenario("", "");
    expect_same(0, "run t.yaml --quiet --overwrite --reproducible -o t.h5 --set "
                   "record.replay_check=1");
}

/* Rows of eval: weights of both arms go to a model of their own. */
static void corroborate_eval(void **state) {
    (void)state;
    write_rows("held.jsonl", "q");
    write_scenario("", "optimizer: {lr: 2e-3}");
    expect_same(1, "run t.yaml --quiet --overwrite --reproducible -o t.h5 --set "
                   "eval.from=held.jsonl");
}

#define ON_DEVICE "numerics: {backend: cuda, backend_module: " SHIM "}"
#define FLIP                                                                                       \
    "fault: {update: 3, phase: backward, layer: 0, op: down_proj, tensor: weight gradient, bit: "  \
    "26}"

/* Arms on two machines are equal, from the comparison of their states to that of their weights; and
 * a hybrid of one machine goes on from the fork that the other one kept, whichever it is (by
 * default one of the two). */
static void corroborate_two_machines(void **state) {
    (void)state;
    static const struct {
        int code;
        const char *baseline, *test, *told;
    } cases[] = {
        {0, "", ON_DEVICE, "t: IDENTICAL"},
        {1, "", "optimizer: {lr: 2e-3}, " ON_DEVICE, "closure  exact"},
        {1, "", FLIP ", " ON_DEVICE, "forked before update 3"},
        {1, ON_DEVICE, FLIP ", numerics: {backend: cpu}", "forked before update 3"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i += helper_size(2, 2, 1)) {
        char text[1024];
        snprintf(text, sizeof text, HEAD "arms:\n  baseline: {%s}\n  test: {%s}\n",
                 cases[i].baseline, cases[i].test);
        helper_write("t.yaml", text);
        struct said said =
            helper_run(cases[i].code, "run t.yaml --quiet --overwrite --allow-modules -o t.h5");
        if (strstr(said.out, cases[i].told) == NULL)
            fail_msg("no %s in\n%s", cases[i].told, said.out);
        helper_free(&said);
    }
}

/* States and models that leave a run: their bytes are the CPU's. */
static void corroborate_files(void **state) {
    (void)state;
    static const char *const line =
        "run t.yaml --quiet --overwrite --reproducible --checkpoint-every=1 --save-model=%s -o "
        "%s.h5%s";
    char text[768];
    write_scenario("", "optimizer: {lr: 2e-3}");
    for (int who = 0; who < 2; who++) {
        snprintf(text, sizeof text, line, who == 0 ? "cpu" : "shim", who == 0 ? "cpu" : "shim",
                 who == 0 ? "" : ON_SHIM);
        struct said said = helper_run(1, text);
        helper_free(&said);
    }
    assert_true(helper_same_bytes("cpu/test/model.safetensors", "shim/test/model.safetensors"));
    struct said said = helper_run(0, "replay shim.h5 --allow-modules --from 2");
    helper_free(&said);
    said = helper_run(0, "replay shim.h5 --allow-modules --run baseline --divisor 2");
    assert_non_null(strstr(said.out, "divisor"));
    struct said cpu = helper_run(0, "replay cpu.h5 --run baseline --divisor 2");
    expect_same_words("replay --divisor", cpu.out, said.out);
    helper_free(&cpu);
    helper_free(&said);
}

/* A run that its device left goes on from the states that it kept, to the trace that it would have
 * had. */
static void corroborate_resume(void **state) {
    (void)state;
    write_scenario("", "fault: {update: 3, phase: backward, layer: 0, op: down_proj, tensor: "
                       "weight gradient, bit: 26}");
    struct said whole =
        helper_run(1, "run t.yaml --quiet --overwrite --reproducible -o whole.h5" ON_SHIM);
    int gone_on = 0;
    for (int wait = 60; wait < 400; wait += (int)helper_size(200, 200, 90)) {
        char fails[32];
        snprintf(fails, sizeof fails, "wait %d 719", wait);
        assert_int_equal(setenv("TWINSTEP_SHIM_FAILS", fails, 1), 0);
        struct said said = helper_run(
            2, "run t.yaml --quiet --overwrite --reproducible --keep-every=0 -o left.h5" ON_SHIM);
        helper_free(&said);
        assert_int_equal(unsetenv("TWINSTEP_SHIM_FAILS"), 0);
        if (!helper_exists("left.h5.part.kept-1")) continue;
        said = helper_run(1, "run t.yaml --quiet --overwrite --reproducible --resume left.h5.part "
                             "-o again.h5" ON_SHIM);
        expect_same_words("run --resume", whole.out, said.out);
        helper_free(&said);
        gone_on++;
    }
    assert_true(gone_on > (int)helper_size(0, 0, 1));
    helper_free(&whole);
}

static void corroborate_others(void **state) {
    (void)state;
    static const struct {
        int code;
        const char *command;
    } cases[] = {
        {1, "bisect t.yaml --quiet"},
        {0, "noise t.yaml --quiet --overwrite --repeat 2 -o t.floor"},
        {0, "parity t.yaml --quiet --components --logits --replicas 2 --batches 1"},
    };
    write_scenario("", "optimizer: {lr: 2e-3}");
    expect_same(cases[0].code, cases[0].command);
    write_scenario("", "numerics: {compute: bf16}");
    expect_same(cases[2].code, cases[2].command);
}

/* Lets call after call fail, `step` apart, and no call behind it, so that an error that somebody
 * drops is not told by the next call. The last `enough` ones end well, as whole runs: they are
 * beyond the run's end, unless so many errors in a row are dropped. */
static void let_fail(const char *steps, int step, int enough) {
    int beyond = 0;
    for (int n = 1; beyond < enough; n += step) {
        char fails[32];
        snprintf(fails, sizeof fails, "once %d 719", n);
        assert_int_equal(setenv("TWINSTEP_SHIM_FAILS", fails, 1), 0);
        struct said said =
            helper_say((const char *const[]){"run", "t.yaml", "--quiet", "--overwrite", "--set",
                                             steps, "--set", "common.numerics.backend=cuda",
                                             "--set", "common.numerics.backend_module=" SHIM,
                                             "--allow-modules", "-o", "t.h5", NULL},
                       NULL);
        beyond += said.code < 2;
        if (said.code >= 2 && beyond > 0)
            fail_msg("call %d: the one before it failed, and nobody told", n);
        if (said.code > 2 || (said.code == 2 && strstr(said.err, "cuda: ") == NULL))
            fail_msg("call %d: status %d, %s", n, said.code, said.err);
        helper_free(&said);
    }
    assert_int_equal(unsetenv("TWINSTEP_SHIM_FAILS"), 0);
}

/* Calls of one update of two equal arms (nightly every one), and of a run with all that differing
 * arms ask for. */
static void verify_each_call_may_fail(void **state) {
    (void)state;
    write_scenario("", "");
    let_fail("steps=1", (int)helper_size(127, 127, 1), (int)helper_size(2, 2, 8));
    write_scenario("", "optimizer: {lr: 2e-3}");
    let_fail("steps=3", (int)helper_size(1409, 1409, 37), (int)helper_size(2, 2, 8));
}

int main(void) {
    helper_unset_variables();
    (void)unsetenv("TWINSTEP_SHIM_FAILS");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_runs),          cmocka_unit_test(corroborate_eval),
        cmocka_unit_test(corroborate_two_machines),  cmocka_unit_test(corroborate_files),
        cmocka_unit_test(corroborate_resume),        cmocka_unit_test(corroborate_others),
        cmocka_unit_test(verify_each_call_may_fail),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
