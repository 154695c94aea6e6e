/* SPDX-License-Identifier: Apache-2.0
 * labels: cli omp whole
 * twinstep noise: the table, the second process, exit statuses, and words that are not
 * understood. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#include "base/arena.h"
#include "base/macro.h"
#include "determinism/floor_file.h"
#include "determinism/trace.h"
#include "tests/base/helper_size.h"
#include "tests/cli/helper_cli.h"

static void expect(struct said *said, const char *const *needles) {
    for (size_t i = 0; needles[i] != NULL; i++)
        if (strstr(said->out, needles[i]) == NULL) fail_msg("no %s in\n%s", needles[i], said->out);
    helper_free(said);
}

static void verify_equal(void **state) {
    (void)state;
    helper_scenario("s.yaml", helper_size(1, 1, 0) ? "steps: 1" : "steps: 3", "seed: 3", "");
    struct said said = helper_run(0, "noise s.yaml --modes own,invariant --dtypes f32,bf16");
    static const char *const needles[] = {"own, f32, 1 thread",
                                          "invariant, bf16, 1 thread",
                                          "  process      bit-equal:",
                                          "  layout       bit-equal:",
                                          "  device       untestable: no second device",
                                          " strata bit-equal, 0 not, 4 untestable",
                                          NULL};
    /* 9 of each case, 10 where `all` processors are a third number; the perturbed run and f64 do
     * not count */
    struct said environment = helper_run(0, "env");
    const char *const cores = strstr(environment.out, "usable_cores");
    assert_non_null(cores);
    const int is_third = atoi(cores + strcspn(cores, "0123456789")) > 2;
    if (strstr(said.out, is_third ? "\n40 strata" : "\n36 strata") == NULL)
        fail_msg("%s", said.out);
    helper_free(&environment);
    expect(&said, needles);
}

/* Whether this machine is noisy in mode fast is no matter here. */
static struct said say_noise(const char *modes, const char *form) {
    const char *const words[] = {"noise", "s.yaml",  "--modes", modes, "--repeat",
                                 "1",     "--steps", "1",       form,  NULL};
    struct said said = helper_say(words, NULL);
    assert_true(said.code == 0 || said.code == 1);
    return said;
}

/* A mode takes given keys of numerics.determinism back, and says which; own keeps them. A key that
 * nothing reads, as `order` on the CPU, is no matter. */
static void verify_what_modes_set(void **state) {
    (void)state;
    static const char keys[] = "numerics: {determinism: {order: free, fill: torch}}";
    helper_scenario("s.yaml", "steps: 1", keys, "");
    struct said said = say_noise("own,deterministic", "--quiet");
    const char *const line = strstr(said.out, "  set by mode");
    if (line == NULL || line < strstr(said.out, "\ndeterministic, ") ||
        strstr(line, "  set by mode  numerics.determinism.fill: torch -> none (own keeps what the "
                     "scenario gives)\n") != line)
        fail_msg("%s", said.out);
    helper_free(&said);
    helper_scenario("s.yaml", "steps: 1", "numerics: {mode: fast}", ""); /* nothing was given */
    said = say_noise("deterministic", "--quiet");
    assert_null(strstr(said.out, "set by mode"));
    helper_free(&said);
    helper_scenario("s.yaml", "steps: 1", keys, "");
    said = say_noise("own,invariant", "--json"); /* its own mode by name is that mode as well */
    assert_non_null(strstr(said.out, "\"set_by_mode\": \"\""));
    assert_non_null(
        strstr(said.out, "\"set_by_mode\": \"numerics.determinism.fill: torch -> none\""));
    helper_free(&said);
}

/* So does the base of --switches, from which every switch begins. */
static void verify_what_the_base_of_switches_sets(void **state) {
    (void)state;
    helper_write("w.yaml", "twinstep: 1\nsteps: 1\n"
                           "common: {data: {max_len: 80}, batch: {size: 2, micro: 1},\n"
                           "  model: {layers: 1, hidden: 8, heads: 1, mlp: 8},\n"
                           "  numerics: {determinism: {order: free, fill: torch}}}\n"
                           "arms: {baseline: {}, test: {}}\n");
    struct said said = helper_run(0, "noise w.yaml --switches --repeat 1 --steps 1");
    static const char *const line[] = {
        "\nmode invariant sets numerics.determinism.fill: torch -> none (every switch begins from "
        "that, not from what the scenario gives)\n\n  switch ",
        NULL};
    expect(&said, line);
}

static void verify_apart(void **state) {
    (void)state;
    helper_scenario("s.yaml", "steps: 3", "shuffle: {kinds: [weight], chunk: 2}", "");
    struct said said = helper_run(1, "noise s.yaml --modes shuffled --repeat 1 --steps 2 --json");
    static const char *const needles[] = {"\"stratum\": \"process\"", "\"place\": \"gradient ",
                                          "\"untestable\": \"no second device\"",
                                          "\"distance_share\"", NULL};
    expect(&said, needles);
}

/* Each case's own rounding error, and the neutral reference between two orders. */
static void verify_references(void **state) {
    (void)state;
    helper_scenario("s.yaml", "steps: 2", "seed: 3", "");
    struct said said = helper_run(1, "noise s.yaml --modes shuffled,order-free --repeat 1");
    static const char *const text[] = {
        "  f64                -        -         -   ",
        "two orders of sums, from each other",
        "first order, from order-free",
        "second order, from order-free",
        "  instance towards layer 0: untestable: a trend needs 5 values, got ",
        NULL};
    expect(&said, text);
    said = helper_run(1, "noise s.yaml --modes shuffled,order-free --repeat 1 --json");
    static const char *const json[] = {"\"stratum\": \"f64\"", "\"bit_equal\": null",
                                       "\"second_from_order_free\": {", NULL};
    expect(&said, json);
    said = helper_run(0, "noise s.yaml --modes order-free --repeat 1");
    if (strstr(said.out, "two orders") != NULL) fail_msg("%s", said.out);
    helper_free(&said);
    said = helper_run(1, "noise s.yaml --modes shuffled --dtypes f64 --repeat 1");
    static const char *const none[] = {"  f64          untestable: numerics.param", NULL};
    expect(&said, none);
}

/* Packed rows have no masks in torch's order: the variant must be named as untestable, not left
 * out. */
static void verify_untestable(void **state) {
    (void)state;
    helper_scenario("s.yaml", "steps: 2", "dropout: {attention: 0.1}\n  rng: {kind: torch}", "");
    const char *const words[] = {"noise", "s.yaml", "--repeat", "1", NULL};
    struct said said = helper_say(words, NULL);
    static const char *const needles[] = {"  padding      untestable: rng.kind: torch draws", NULL};
    if (said.code > 1) fail_msg("%s", said.err);
    expect(&said, needles);
}

static void verify_refusals(void **state) {
    (void)state;
    helper_scenario("s.yaml", "steps: 3", "seed: 3", "");
    /* fewer updates than the scenario has, one of which a key names */
    helper_scenario("late.yaml", "steps: 3", "resume: {after: 2}", "");
    helper_accept(0, "noise late.yaml --steps 1 --repeat 1");
    helper_refuse(2, "noise s.yaml --modes quick", "noise: --modes: expected invariant");
    helper_refuse(2, "noise s.yaml --dtypes tf32", "noise: --dtypes: expected f32");
    helper_refuse(2, "noise s.yaml --modes invariant,", "noise: --modes: expected up to 8 names");
    helper_refuse(2, "noise s.yaml --arm nobody", "noise: --arm: expected baseline or test");
    helper_refuse(2, "noise s.yaml --repeat 0", "noise: --repeat: expected a number from 1");
    helper_refuse(2, "noise s.yaml --steps x", "noise: --steps: expected a number from 1");
    helper_refuse(2, "noise s.yaml --floor f.h5", "noise: --floor: acts on --plan alone");
    helper_refuse(2, "noise s.yaml --power 0.5", "noise: --power: acts on --plan alone");
    /* the second word is read before the first one is measured */
    helper_refuse(2, "noise s.yaml --modes invariant,quick", "noise: --modes: expected invariant");
    helper_refuse(2, "noise s.yaml --dtypes f32,f8", "noise: --dtypes: expected f32");
    helper_refuse(2, "noise s.yaml -o never.h5 --dtypes f32,f8", "noise: --dtypes: expected f32");
    helper_write("left.h5.part", "");
    helper_refuse(2, "noise s.yaml -o left.h5 --pairs 1 --repeat 1", "left.h5.part: exists: a run");
    helper_refuse(2, "noise --models --modes invariant,quick", "noise: --modes: expected");
    helper_refuse(2, "noise --models --dtypes f32,f8", "noise: --dtypes: expected f32");
    helper_refuse(2, "noise --ops --modes invariant,quick", "noise: --ops: --modes: expected");
    helper_refuse(2, "noise --ops --dtypes f32,f8", "noise: --ops: --dtypes: expected f32 or");
    helper_refuse(2, "noise s.yaml --plan --modes fast,quick", "noise: --plan: expected one mode");
    /* what is not read */
    static const char *const unread[][2] = {
        {"--ops --repeat 3", "--repeat: expected no such option beside --ops, which does not"},
        {"--ops --steps 3", "--steps: expected no such option beside --ops"},
        {"--ops --arm test", "--arm: expected no such option beside --ops"},
        {"--models --arm test", "--arm: expected no such option beside --models"},
        {"--models --pairs 3", "--pairs: expected no such option beside --models"},
        {"--switches --pairs 3", "--pairs: expected no such option beside --switches"},
        {"--plan --repeat 3", "--repeat: expected no such option beside --plan"},
        {"--plan -o never.h5", "--plan writes no file: expected no output"},
        {"--pairs 3", "--pairs: acts on --output and on --plan, of which neither is asked for"},
        {"--ops --models", "expected one of --plan, --switches, --models and --ops, got --models"},
        {"--plan --switches", "and --ops, got --plan and --switches"}};
    for (size_t i = 0; i < COUNT_OF(unread); i++) {
        char line[128];
        snprintf(line, sizeof line, "noise %s", unread[i][0]);
        helper_refuse(2, line, unread[i][1]);
    }
    assert_false(helper_exists("never.h5"));
    helper_refuse(2, "noise nothing.yaml/", "nothing.yaml/");
}

/* Equal measurements must give equal bytes, whatever the time, and an existing file must never be
 * replaced. */
static void verify_file(void **state) {
    (void)state;
    helper_scenario("s.yaml", "steps: 2", "numerics: {mode: shuffled}", "");
    struct said said = helper_run(1, "noise s.yaml -o f.h5 --pairs 3 --repeat 1 --reproducible");
    static const char *const needles[] = {"floor    f.h5: 3 A/A pairs of own, own", NULL};
    expect(&said, needles);
    helper_accept(1, "noise s.yaml -o g.h5 --pairs 3 --repeat 1 --reproducible");
    assert_true(helper_same_bytes("f.h5", "g.h5"));
    helper_refuse(2, "noise s.yaml -o f.h5", "f.h5: exists");
    helper_refuse(2, "noise s.yaml -o nowhere/f.h5", "nowhere/f.h5: cannot create");
    helper_accept(1, "noise s.yaml -o f.h5 --pairs 1 --repeat 1 --overwrite");
    assert_false(helper_exists("f.h5.part"));
    helper_refuse(2, "noise s.yaml -o h.h5 --pairs 0", "noise: --pairs: expected a number from 1");
    helper_refuse(2, "noise s.yaml -o nowhere/h.h5 --pairs 1 --repeat 1", "nowhere/h.h5");
}

static const struct floor_stratum *stratum_of(const struct floor_file *file, const char *name) {
    for (uint32_t i = 0; i < file->stratum_count; i++)
        if (strcmp(file->strata[i].words[WORD_STRATUM], name) == 0) return &file->strata[i];
    fail_msg("no stratum %s", name);
    return NULL;
}

static int is_dated(const struct floor_file *file) {
    for (uint32_t i = 0; i < file->environment_count; i++)
        if (strcmp(file->environment[i].path, "env/volatile") == 0) return 1;
    return 0;
}

/* The file must hold what the table shows, and a date only where its bytes need not repeat. */
static void validate_content(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct floor_file file;
    helper_scenario("s.yaml", "steps: 2", "numerics: {mode: shuffled}", "");
    helper_accept(1, "noise s.yaml -o f.h5 --pairs 3 --repeat 2 --reproducible --overwrite");
    assert_int_equal(floor_file_open("f.h5", &arena, &file), STATUS_OK);
    const struct floor_stratum *instance = stratum_of(&file, "instance");
    const struct floor_stratum *repeat = stratum_of(&file, "repeat");
    assert_true(repeat->figures[FIGURE_REPEATS] == 2.0 && repeat->figures[FIGURE_FIRST] == 0.0);
    assert_true(instance->figures[FIGURE_FIRST] == 1.0);
    assert_true(instance->figures[FIGURE_TENSORS] > instance->figures[FIGURE_GRADIENTS_EQUAL]);
    assert_true(instance->figures[FIGURE_GRADIENT_ULP] > 0.0);
    assert_true(instance->figures[FIGURE_TENSOR_RELATIVE] > 0.0 && instance->share[1] > 0.0);
    assert_string_equal(file.twin.weight, stratum_of(&file, "one-ulp")->words[WORD_VARIANT]);
    assert_non_null(strstr(file.twin.weight, "weight["));
    assert_false(is_dated(&file));
    helper_accept(1, "noise s.yaml -o f.h5 --pairs 1 --repeat 1 --overwrite");
    assert_int_equal(floor_file_open("f.h5", &arena, &file), STATUS_OK);
    assert_true(is_dated(&file));
    arena_close(&arena);
}

/* Copies the line of a text that begins with these words, up to its end. */
static void line_of(const struct said *said, const char *words, char *out, size_t size) {
    const char *at = strstr(said->out, words);
    assert_non_null(at);
    const size_t length = strcspn(at, "\n");
    assert_true(length < size);
    memcpy(out, at, length);
    out[length] = '\0';
}

/* Mode atomic needs two threads; a dtype's orders are compared with a reference of its own; and
 * what cannot be measured must leave no file. */
static void validate_cases(void **state) {
    (void)state;
    char alone[256], beside[256];
    helper_scenario("s.yaml", "steps: 1", "seed: 3", "");
    const char *const words[] = {"noise", "s.yaml", "--repeat", "1", "--modes", "atomic", NULL};
    struct said said = helper_say(words, NULL);
    static const char *const needles[] = {"atomic, own, 2 threads", NULL};
    assert_true(said.code <= 1);
    expect(&said, needles);
    said = helper_run(1, "noise s.yaml --modes shuffled,order-free --repeat 1");
    line_of(&said, "first order, from order-free", alone, sizeof alone);
    helper_free(&said);
    said =
        helper_run(1, "noise s.yaml --modes shuffled,order-free --repeat 1 --dtypes own,f32,bf16");
    line_of(&said, "first order, from order-free", beside, sizeof beside);
    assert_string_equal(alone, beside);
    helper_free(&said);
    helper_refuse(3, "noise s.yaml --modes order-free --dtypes f64 -o no.h5",
                  "noise: numerics.compute: mode order-free");
    assert_false(helper_exists("no.h5"));
}

/* The same floor must give run and attribute the same p. Another baseline, too few pairs, and a
 * file that is no floor must be told apart. */
static void verify_floor(void **state) {
    (void)state;
    helper_scenario("s.yaml", "steps: 2", "numerics: {mode: shuffled}", "optimizer: {lr: 1e-3}");
    struct said said = helper_run(1, "noise s.yaml -o floor.h5 --repeat 1");
    static const char *const standard[] = {"floor    floor.h5: 99 A/A pairs of own, own", NULL};
    expect(&said, standard);
    static const char *const outside[] = {
        "OUTSIDE THE FLOOR", "from a file: rank among 99 A/A pairs",
        "p = 0.01 (least possible 0.01), alpha = 0.01, power 0.28 for a shift of 3 sigma", NULL};
    said = helper_run(1, "run s.yaml --floor floor.h5 -o r.h5");
    expect(&said, outside);
    said = helper_run(1, "attribute r.h5");
    expect(&said, outside);
    /* a floor of its own that decides nothing */
    helper_accept(3, "run s.yaml -o own.h5 --set floor.replicates=1");
    said = helper_run(1, "attribute own.h5 --floor floor.h5");
    expect(&said, outside);
    said = helper_run(1, "attribute own.h5 --floor floor.h5 --json");
    static const char *const json[] = {"\"kind\": \"file\"", "\"pairs_of_file\": 99", NULL};
    expect(&said, json);
    said =
        helper_run(3, "run s.yaml --floor floor.h5 -o same.h5 --set arms.test.optimizer.lr=1e-6");
    static const char *const alike[] = {"UNTESTABLE. p = ", "is above alpha", NULL};
    expect(&said, alike);
    helper_accept(1, "noise s.yaml -o few.h5 --pairs 9 --repeat 1");
    said = helper_run(3, "run s.yaml --floor few.h5 -o few-run.h5");
    static const char *const few[] = {"twinstep noise --pairs 99 would", NULL};
    expect(&said, few);
    helper_refuse(
        2, "run s.yaml --floor floor.h5 -o x.h5 --set common.batch.size=2",
        "floor.h5: this floor was measured for another configuration: batch.size: 4 there, 2 "
        "here");
    helper_refuse(2, "run s.yaml --floor floor.h5 -o x.h5 --set steps=3", "floor.h5: this floor");
    helper_refuse(2, "run s.yaml --floor r.h5 -o x.h5", "r.h5: expected a floor file");
    helper_refuse(2, "attribute r.h5 --floor s.yaml", "s.yaml: expected a trace");
    assert_false(helper_exists("x.h5"));
}

/* Measures the floors of two updates in mode shuffled, of 99 pairs and of 9, for all tests that
 * need one. */
static void measure_floors(const char *scenario) {
    char line[128];
    snprintf(line, sizeof line, "noise %s -o floor.h5 --repeat 1", scenario);
    if (!helper_exists("floor.h5")) helper_accept(1, line);
    snprintf(line, sizeof line, "noise %s -o few.h5 --pairs 9 --repeat 1", scenario);
    if (!helper_exists("few.h5")) helper_accept(1, line);
}

/* Logs against a floor: noise alone must be inside, another LR outside; with few pairs or few
 * digits nothing is decided. */
static void verify_compare(void **state) {
    (void)state;
    helper_scenario("c.yaml", "steps: 2", "numerics: {mode: shuffled}", "");
    measure_floors("c.yaml");
    helper_accept(3, "run c.yaml --floor floor.h5 -o c.h5");
    helper_accept(1, "run c.yaml --floor floor.h5 -o lr.h5 --set arms.test.batch.size=2");
#define BOTH " --run-a baseline --run-b test --floor "
    struct said said = helper_run(0, "compare c.h5 c.h5" BOTH "floor.h5");
    static const char *const inside[] = {"Floor: inside-floor: p = 0.", "is above alpha = 0.01",
                                         "n = 99 A/A pairs", "0 of 2 updates above the bound",
                                         NULL};
    expect(&said, inside);
    said = helper_run(1, "compare lr.h5 lr.h5" BOTH "floor.h5 --json");
    static const char *const outside[] = {"\"verdict\": \"outside-floor\"", "\"p\": 0.01", NULL};
    expect(&said, outside);
    said = helper_run(3, "compare c.h5 c.h5" BOTH "few.h5");
    static const char *const few[] = {"untestable: 9 A/A pairs cannot give p <= 0.01",
                                      "twinstep noise --pairs 99 would", NULL};
    expect(&said, few);
    helper_accept(0, "compare c.h5 c.h5" BOTH "few.h5 --alpha 0.2");
    helper_write("a.csv", "step,loss\n1,0.69\n2,0.69\n");
    helper_write("b.csv", "step,loss\n1,0.69\n2,0.71\n");
    helper_write("d.csv", "step,loss\n1,0.69\n2,0.70\n");
    said = helper_run(1, "compare a.csv b.csv --floor floor.h5");
    static const char *const apart[] = {"Floor: outside-floor: p = 0.01 is not above", NULL};
    expect(&said, apart);
    said = helper_run(3, "compare a.csv d.csv --floor floor.h5");
    /* these logs agree within what was printed; how far apart they are is not known */
    static const char *const digits[] = {"Floor: untestable: the printed digits leave p between",
                                         NULL};
    expect(&said, digits);
    helper_refuse(2, "compare c.h5 c.h5 --alpha 2", "compare: --alpha: expected");
    helper_refuse(2, "compare s.yaml s.yaml --floor floor.h5", "s.yaml");
    helper_refuse(2, "compare lr.h5 lr.h5 --run-a test --run-b baseline --floor floor.h5",
                  "batch.size: 4 there, 2 here");
}

/* Checks `seen`, the median, the power and the exit status of a plan whose pairs are partly seen,
 * as JSON and as text. A median above the bound means that more than half of the pairs are; the
 * power is the lower end of their share; and "runs without a floor" is the answer where no column
 * has one. */
static void check_seen(const char *floor, const char *error) {
    static const char *const names[] = {"loss", "grad_norm", "distance"};
    char line[128];
    int partly = 0;
    snprintf(line, sizeof line, "noise --plan --floor %s --power 0.7 --lr-error %s --json", floor,
             error);
    struct said said = helper_run(0, line);
    json_t *plan = json_loads(said.out, 0, NULL);
    const json_int_t pairs = json_integer_value(json_object_get(plan, "pairs"));
    helper_free(&said);
    line[strlen(line) - strlen(" --json")] = '\0';
    said = helper_run(0, line);
    assert_true(json_integer_value(json_object_get(plan, "runs_of_each_arm")) > 0);
    const char *text = said.out;
    for (int c = 2; c >= 0; c--) { /* as the text has them */
        const json_t *column = json_object_get(json_object_get(plan, "columns"), names[c]);
        json_t *cell;
        size_t i;
        assert_true(json_is_null(json_object_get(column, "update")));
        json_array_foreach(json_object_get(column, "updates"), i, cell) {
            const json_int_t seen = json_integer_value(json_object_get(cell, "seen"));
            const double power = json_number_value(json_object_get(cell, "power"));
            const double effect = json_number_value(json_object_get(cell, "effect"));
            char share[32];
            assert_int_equal(effect > json_number_value(json_object_get(cell, "bound")),
                             2 * seen > pairs);
            assert_int_equal(power > 0.0, seen > 0);
            assert_true(power <= (double)seen / (double)pairs);
            partly += seen > 0 && seen < pairs;
            snprintf(share, sizeof share, " %d/%d ", (int)seen, (int)pairs);
            text = strstr(text, share);
            if (text == NULL) fail_msg("no%sin its place: %s", share, said.out);
            text += strlen(share);
        }
    }
    assert_true(partly > 1);
    json_decref(plan);
    helper_free(&said);
}

/* The error asked for decides: a large one shows in the weights at once, one below rounding never,
 * and of one between a floor of few pairs cannot say. */
static void verify_plan(void **state) {
    (void)state;
    helper_scenario("p.yaml", "steps: 2", "numerics: {mode: shuffled}", "");
    measure_floors("p.yaml");
    struct said said = helper_run(0, "noise --plan --floor floor.h5 --lr-error 0.1 --power 0.7");
    static const char *const seen[] = {"an LR error of 10 % (optimizer.lr 1e-06 -> 1.1e-06)",
                                       "measured: 99 A/A pairs, 9 A/B pairs",
                                       "from weights: 2 runs, 1 update\n",
                                       "from losses: ",
                                       "without a floor: 5 + 5 runs, 1 update",
                                       "9/9",
                                       "checked: twice the error moved the weights ",
                                       "times as far after update 2.\n",
                                       NULL};
    if (strstr(said.out, "least is no guide") != NULL) fail_msg("%s", said.out);
    expect(&said, seen);
    said =
        helper_run(3, "noise p.yaml --plan --floor floor.h5 --lr-error 1e-17 --power 0.5 --json");
    static const char *const never[] = {"\"update\": null", "\"runs_of_each_arm\": null", NULL};
    expect(&said, never);
    said = helper_run(3, "noise --plan --floor few.h5");
    static const char *const few[] = {"untestable: 9 A/A pairs cannot give p <= 0.01: twinstep "
                                      "noise --pairs 99 would",
                                      NULL};
    expect(&said, few);
    said = helper_run(0, "noise p.yaml --plan --alpha 0.2 --power 0.5");
    static const char *const own[] = {"measured: 4 A/A pairs, 5 A/B pairs", NULL};
    expect(&said, own);
    check_seen("floor.h5", "1e-7");
    helper_refuse(2, "noise --plan --alpha 0", "noise: --alpha: expected a number between 0 and 1");
    helper_refuse(2, "noise p.yaml --plan --floor floor.h5 --set steps=3", "another configuration");
}

static void verify_ops(void **state) {
    (void)state;
    /* the nightly run takes deterministic, too, whose bits are the same */
    struct said said =
        helper_run(0, helper_size(1, 1, 0) ? "noise --ops --modes invariant"
                                           : "noise --ops --modes invariant,deterministic");
    static const char *const equal[] = {"invariant, bf16\n  16 of 16 ops and sizes bit-equal",
                                        " 0 not", NULL};
    expect(&said, equal);
    const char *const words[] = {"noise",    "--ops", "--modes", "shaped large-batch",
                                 "--dtypes", "f32",   NULL};
    said = helper_say(words, NULL);
    static const char *const apart[] = {"linear forward      64 x 64    from 33 on, ", NULL};
    assert_int_equal(said.code, 1);
    expect(&said, apart);
    said = helper_run(3, "noise --ops --modes order-free --json");
    static const char *const none[] = {"\"untestable\": \"order-free keeps sums", NULL};
    expect(&said, none);
    helper_refuse(2, "noise --ops --modes quick", "noise: --ops: --modes: expected invariant");
    helper_refuse(2, "noise --ops --dtypes f64", "noise: --ops: --dtypes: expected f32 or bf16");
    helper_refuse(2, "noise null-pair --ops", "expected no scenario");
}

/* Finds the worst of all measured variants of a stratum, as `noise --models` writes it. */
static void worst_of(const json_t *one, const char *stratum, const char *figure, int f64,
                     char out[16], int *out_unlike) {
    double worst = 0.0;
    int measured = 0, equal = 1;
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(one, "strata"), i, row) {
        if (strcmp(json_string_value(json_object_get(row, "stratum")), stratum) != 0) continue;
        if (json_object_get(row, "untestable") != NULL) continue;
        const double value = json_number_value(json_object_get(row, figure));
        *out_unlike += measured > 0 && value != worst;
        if (value > worst) worst = value;
        equal = equal && json_is_true(json_object_get(row, "bit_equal"));
        measured++;
    }
    if (measured == 0)
        strcpy(out, "-");
    else if (equal && !f64)
        strcpy(out, "=");
    else
        snprintf(out, 16, "%.1e", worst);
}

/* Compares every cell of the text with every variant of the JSON. */
static void check_cells(char *text, const json_t *cases) {
    static const char *const strata[] = {"instance",    "instance", "repeat", "process", "threads",
                                         "micro-batch", "padding",  "layout", "one-ulp", "f64"};
    int unlike = 0, numbers = 0;
    size_t i;
    json_t *one;
    char *line = strstr(text, "one-ulp      f64\n");
    assert_non_null(line);
    json_array_foreach(cases, i, one) {
        line = strchr(line, '\n') + 1;
        const size_t length = strcspn(line, "\n");
        const char *at = strstr(line, " of ");
        assert_true(at != NULL && (size_t)(at - line) < length);
        at += 4 + strcspn(at + 4, " ");
        for (size_t c = 0; c < COUNT_OF(strata); c++) {
            char want[16], got[16];
            int used;
            worst_of(one, strata[c], c == 1 ? "total_relative" : "tensor_relative", c == 9, want,
                     &unlike);
            assert_int_equal(sscanf(at, "%15s%n", got, &used), 1);
            if (strcmp(want, got) != 0)
                fail_msg("%s: expected %s: %.*s", strata[c], want, (int)length, line);
            numbers += c == 9 && got[0] != '-';
            at += used;
        }
    }
    assert_true(unlike > 0); /* variants differ, so the worst is no other one by chance */
    assert_int_equal(numbers, json_array_size(cases));
}

/* There is one line for each model, and on every rung a mode must keep what it promises. */
static void verify_models(void **state) {
    (void)state;
#define SMALL "noise --models --set common.model.layers=1 --set common.model.hidden=32 --modes "
    /* the nightly run takes mode invariant, too */
    const int whole = (int)helper_size(0, 0, 1);
    struct said said =
        helper_run(1, whole ? SMALL "invariant,shaped --dtypes f32" : SMALL "shaped --dtypes f32");
    const char *const text[] = {"noise of 24 models: 1 update, worst of 1 repeat",
                                whole ? "olmo2 sft 1x32     f32    invariant "
                                      : "olmo2 sft 1x32     f32    shaped ",
                                "llama dpo 1x32     f32    shaped ", NULL};
    for (const char *line = strstr(said.out, "invariant "); line != NULL;
         line = strstr(line + 1, "invariant ")) {
        const char *cells = strstr(line, " of ");
        assert_non_null(cells);
        cells = strstr(cells, "=        =        =        =        =        =        =");
        if (cells == NULL || cells - line > 60) fail_msg("%.200s", line);
    }
    struct said all = helper_run(1, whole ? SMALL "invariant,shaped --dtypes f32 --json"
                                          : SMALL "shaped --dtypes f32 --json");
    json_t *object = json_loads(all.out, 0, NULL);
    check_cells(said.out, json_object_get(object, "cases"));
    json_decref(object);
    expect(&said, text);
    static const char *const json[] = {"\"family\": \"llama\"", "\"hidden\": 32",
                                       "\"stratum\": \"f64\"", NULL};
    expect(&all, json);
    said = helper_run(3, "noise --models --modes order-free --dtypes f64");
    static const char *const none[] = {"untestable: numerics.compute: mode order-free", NULL};
    expect(&said, none);
    helper_refuse(2, "noise null-pair --models", "expected no scenario");
    helper_refuse(2, "noise --models --modes quick", "noise: --modes: expected invariant");
}

/* Starts `noise`, reads its standard output until `tables` tables are complete, interrupts it, and
 * reads the rest into `out`. Returns the exit status. */
static int interrupt_after(const char *words, int tables, char *out, size_t size) {
    char command[512], line[256];
    int seen = 0;
    size_t used = 0;
    /* the shell's number is that of the program it becomes */
    snprintf(command, sizeof command, "echo $$; exec '%s' noise %s 2>err.txt", TWINSTEP_BINARY,
             words);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_non_null(fgets(line, sizeof line, pipe));
    const pid_t child = (pid_t)strtol(line, NULL, 10);
    assert_true(child > 1);
    while (fgets(line, sizeof line, pipe) != NULL && used + strlen(line) < size) {
        used += (size_t)snprintf(out + used, size - used, "%s", line);
        if (strncmp(line, "  device ", 9) == 0 && ++seen == tables) kill(child, SIGINT);
    }
    const int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Starts `noise` with a floor file, interrupts it in front of the first table, and reads all that
 * it says into `out`: as soon as the title is there, or once a second process is started, for which
 * two strata have been measured. Returns the exit status. */
static int interrupt_early(int strata, char *out, size_t size) {
    char command[256], line[256], path[64];
    int last = 0;
    snprintf(command, sizeof command,
             "echo $$; exec '%s' noise early.yaml --repeat 1 -o early.h5 2>&1", TWINSTEP_BINARY);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_non_null(fgets(line, sizeof line, pipe));
    const pid_t child = (pid_t)strtol(line, NULL, 10);
    assert_true(child > 1);
    assert_non_null(fgets(line, sizeof line, pipe)); /* the title comes at once */
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)child, (int)child);
    while (strata && !last) { /* ends with the program, too, whose list is gone then */
        FILE *file = fopen(path, "r");
        last = file == NULL || fgetc(file) != EOF;
        if (file != NULL) fclose(file);
        if (!last) nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    kill(child, SIGINT);
    const size_t used = fread(out, 1, size - 1, pipe);
    out[used] = '\0';
    const int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void require_in(const char *text, const char *needle) {
    if (strstr(text, needle) == NULL) fail_msg("no %s in\n%s", needle, text);
}

/* Without a scenario the machine is measured: the noisy modes come first, and a table is there
 * before the next one is measured. What was measured stays when the run is interrupted. */
static void verify_interrupted(void **state) {
    (void)state;
    static char out[65536];
    struct arena arena = ARENA_EMPTY;
    struct floor_file file;
#define LITTLE                                                                                     \
    "--set common.model.layers=1 --set common.model.hidden=16 --set common.model.mlp=24 "          \
    "--steps 2 --repeat 1"
    assert_int_equal(interrupt_after(LITTLE, 1, out, sizeof out), 130);
    require_in(out,
               "noise, arm baseline: 2 updates, worst of 1 repeat\n\nfast, f32, 1 thread: what "
               "this machine does fastest; sums may change with shapes and threads\n");
    require_in(out, " of 10 tables, the last perhaps in part\n");
    require_in(out, " untestable\ninterrupted: ");
    assert_null(strstr(out, "\ninvariant, "));
    /* the pairs of a floor file come right after the first table */
    assert_int_equal(
        interrupt_after(LITTLE " --pairs 2 -o kept.h5 --dtypes f32,f64,bf16", 2, out, sizeof out),
        130);
    require_in(
        out, " of 6 tables, the last perhaps in part\nfloor    kept.h5: 2 A/A pairs of fast, f32 ");
    assert_int_equal(floor_file_open("kept.h5", &arena, &file), STATUS_OK);
    assert_int_equal(file.pairs, 2);
    arena_close(&arena);
    /* two tables fit into a buffer: the first one is only seen in time where it is flushed */
    helper_scenario("long.yaml", "steps: 40", "seed: 3", "");
    assert_int_equal(
        interrupt_after("long.yaml --repeat 1 --modes invariant,atomic", 1, out, sizeof out), 130);
    require_in(out, " of 2 tables, the last perhaps in part\n");
    assert_true(strlen(out) < 4096);
    /* a run that reaches its end says so, too */
    helper_scenario("s.yaml", "steps: 2", "seed: 3", "");
    struct said said = helper_run(0, "noise s.yaml --repeat 1 --json");
    require_in(said.out, "\"interrupted\": false");
    helper_free(&said);
}

/* A floor file holds A/A pairs, so in front of the first one there is none, which is said; strata
 * that were measured are printed. */
static void verify_interrupted_before_the_first_table(void **state) {
    (void)state;
    static char out[8192];
    helper_scenario("early.yaml", "steps: 200", "seed: 3", "");
    assert_int_equal(interrupt_early(0, out, sizeof out), 130);
    assert_string_equal(
        out, "twinstep: error: noise: interrupted before the first stratum was measured; "
             "early.h5 was not written\n");
    assert_int_equal(interrupt_early(1, out, sizeof out), 130);
    require_in(out, "\n  repeat       bit-equal:");
    require_in(out, "\n  instance     bit-equal:");
    require_in(out, "\ninterrupted: 1 of 1 tables, the last perhaps in part\n"
                    "floor    early.h5 was not written: it holds A/A pairs, and the run was "
                    "interrupted before the first of them\n");
    assert_false(helper_exists("early.h5"));
}

/* A reader who meets a mode here first is told what it does, and what `own` is. */
static void validate_words(void **state) {
    (void)state;
    helper_scenario("s.yaml", "steps: 1", "seed: 3", "");
    static const char *const needles[] = {
        "\nown, own, 1 thread: invariant, sums have one order, whatever shapes, threads and the "
        "machine are\n",
        "\nshaped, own, 1 thread: sums are cut by operation and shape, as a library cuts them\n",
        "\ndeterministic, own, 1 thread: the same bits again for the same shapes on the same "
        "machine\n",
        "\norder-free, own, 1 thread: sums are exact and rounded once, so they have no order\n",
        NULL};
    const char *const words[] = {
        "noise", "s.yaml", "--repeat", "1", "--modes", "own,shaped,deterministic,order-free", NULL};
    struct said said = helper_say(words, NULL);
    assert_true(said.code <= 1);
    expect(&said, needles);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_interrupted_before_the_first_table),
        cmocka_unit_test(verify_interrupted),
        cmocka_unit_test(validate_words),
        cmocka_unit_test(verify_equal),
        cmocka_unit_test(verify_what_modes_set),
        cmocka_unit_test(verify_what_the_base_of_switches_sets),
        cmocka_unit_test(verify_apart),
        cmocka_unit_test(verify_references),
        cmocka_unit_test(verify_untestable),
        cmocka_unit_test(verify_file),
        cmocka_unit_test(verify_floor),
        cmocka_unit_test(verify_compare),
        cmocka_unit_test(verify_plan),
        cmocka_unit_test(verify_ops),
        cmocka_unit_test(verify_models),
        cmocka_unit_test(verify_refusals),
        cmocka_unit_test(validate_content),
        cmocka_unit_test(validate_cases),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
