/* SPDX-License-Identifier: Apache-2.0
 * labels: cli memory whole
 * check: what it says of arms, factors, loops, floor, trainings, data and numerics, as text and as
 * JSON; and that it writes nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/base/helper_size.h"
#include "tests/cli/helper_cli.h"

static json_t *check(const char *path) {
    char line[256];
    json_error_t error;
    snprintf(line, sizeof line, "check %s --json", path);
    struct said said = helper_run(0, line);
    json_t *value = json_loads(said.out, JSON_REJECT_DUPLICATES, &error);
    if (value == NULL) fail_msg("%s: %s\n%s", line, error.text, said.out);
    assert_string_equal(said.err, "");
    helper_free(&said);
    return value;
}

static const char *text(const json_t *object, const char *name) {
    const char *value = json_string_value(json_object_get(object, name));
    if (value == NULL) fail_msg("no text %s", name);
    return value;
}

static long long whole(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    if (!json_is_integer(value)) fail_msg("no integer %s", name);
    return (long long)json_integer_value(value);
}

static const json_t *arm(const json_t *object, size_t index) {
    return json_array_get(json_object_get(object, "arms"), index);
}

static void require_in(const char *told, const char *needle) {
    if (strstr(told, needle) == NULL) fail_msg("expected: %s\nin: %s", needle, told);
}

/* The number of parameters of one layer of OLMo-2: hidden 16, two heads of 8, mlp 24, 259
 * tokens. */
#define PARAMETERS                                                                                 \
    (2 * 259 * 16 + 4 * 16 * 16 + 2 * 16 /* q, k norms */ + 3 * 16 * 24 + 2 * 16 + 16)

static void validate_facts(void **state) {
    (void)state;
    helper_scenario("loop.yaml", "steps: 7", "seed: 3",
                    "loop: {update: [count, clip, schedule, optimize, log, zero]}");
    json_t *object = check("loop.yaml");
    assert_string_equal(text(object, "name"), "loop");
    assert_int_equal(whole(object, "steps"), 7);
    assert_int_equal(whole(arm(object, 0), "parameters"), PARAMETERS);
    assert_string_equal(text(arm(object, 1), "name"), "test");
    const json_t *loops[2] = {json_object_get(arm(object, 0), "loop"),
                              json_object_get(arm(object, 1), "loop")};
    assert_string_equal(text(loops[0], "applied"), "f(k-1)");
    assert_string_equal(text(loops[1], "applied"), "f(k)");
    assert_int_equal(json_array_size(json_object_get(loops[1], "update")), 6);
    int warned = 0;
    size_t i;
    json_t *hazard;
    json_array_foreach(json_object_get(loops[1], "hazards"), i, hazard) warned +=
        strcmp(text(hazard, "severity"), "warning") == 0;
    assert_int_equal(warned, 1);
    const json_t *factors = json_object_get(object, "factors");
    assert_int_equal(json_array_size(factors), 1);
    assert_string_equal(text(json_array_get(factors, 0), "cause"), "schedule");
    const json_t *key = json_array_get(json_object_get(json_array_get(factors, 0), "keys"), 0);
    assert_string_equal(text(key, "key"), "loop.update");
    assert_string_equal(text(key, "test"), "[count, clip, schedule, optimize, log, zero]");
    assert_string_equal(text(json_object_get(object, "floor"), "kind"), "exact");
    assert_int_equal(whole(object, "hybrids"), 1);
    assert_int_equal(whole(object, "trainings"), 6);
    assert_int_equal(whole(json_object_get(arm(object, 0), "data"), "samples"), 1670);
    json_decref(object);
}

static void validate_numbers_of_trainings(void **state) {
    (void)state;
    static const struct {
        const char *head, *common, *test, *floor;
        int trainings, hybrids;
    } plans[] = {
        /* where arms differ, an exact floor trains a perturbed run, too */
        {"steps: 1", "seed: 3", "", "exact", 4, 0},
        {"steps: 1", "seed: 3", "numerics: {rope: bf16}, optimizer: {lr: 1e-5}", "exact", 8, 3},
        {"steps: 1", "seed: 3",
         "numerics: {rope: bf16}, optimizer: {lr: 1e-5}, data: {shuffle: false}", "exact", 12, 7},
        /* drawn seeds differ, so they are a factor; 5 runs of each arm, or the baseline and 13
         * replicates */
        {"steps: 1\nfloor: {replicates: 5}", "numerics: {mode: shuffled}", "", "permutation", 11,
         1},
        {"steps: 1\nfloor: {design: baseline}", "numerics: {mode: shuffled}", "", "rank", 16, 1},
        {"steps: 1", "numerics: {mode: shuffled, order_seed: 4}", "", "exact", 4, 0},
        /* a race is noise that no seed replays, whatever the other arm does */
        {"steps: 1\nfloor: {replicates: 5}", "numerics: {mode: atomic, threads: 2}", "",
         "permutation", 10, 0},
        {"steps: 1\nfloor: {replicates: 5}", "seed: 3", "numerics: {mode: atomic, threads: 2}",
         "permutation", 11, 1},
        {"steps: 1\nfloor: {design: baseline}", "numerics: {mode: atomic}", "", "rank", 15, 0},
    };
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        helper_scenario("plan.yaml", plans[i].head, plans[i].common, plans[i].test);
        json_t *object = check("plan.yaml");
        assert_string_equal(text(json_object_get(object, "floor"), "kind"), plans[i].floor);
        assert_int_equal(whole(object, "trainings"), plans[i].trainings);
        assert_int_equal(whole(object, "hybrids"), plans[i].hybrids);
        json_decref(object);
    }
}

static int notes(const json_t *object, size_t index, const char *needle) {
    int found = 0;
    size_t i;
    json_t *note;
    json_array_foreach(json_object_get(arm(object, index), "notes"), i, note) found +=
        strstr(json_string_value(note), needle) != NULL;
    return found;
}

#define RANKS(mode)                                                                                \
    "loop: {update: [reduce, clip, optimize, log, count, schedule, zero]}\n  "                     \
    "shuffle: {kinds: []}\n  numerics: {mode: " mode "}\n  "

static void validate_notes(void **state) {
    (void)state;
    static const struct {
        const char *common, *needle;
        int times;
    } cases[] = {
        {"seed: 3", "", 0},
        /* 4 pairs of 96 tokens in chunks of 400: 768 terms of weight and embedding, 96 of dq; norm
           has more */
        {"numerics: {mode: shuffled}\n  shuffle: {chunk: 400}", "makes no noise:", 3},
        {"numerics: {mode: shuffled}\n  shuffle: {chunk: 16}", "makes no noise", 0},
        {"numerics: {mode: shuffled}\n  shuffle: {kinds: [loss]}", "makes no noise at all", 1},
        {"numerics: {mode: shuffled}\n  shuffle: {kinds: [loss], chunk: 1}", "no noise", 0},
        {"numerics: {mode: shuffled}\n  shuffle: {kinds: [loss], chunk: 2}",
         "at most 4 terms, fewer than 3 chunks of 2", 1},
        {"numerics: {grad_accumulate: storage}", "grad_accumulate storage rounds", 1},
        {"loss: {divisor: mean-of-means}", "one micro-batch", 1},
        {"loss: {divisor: mean-of-means}\n  task: sft", "mean-of-means", 1},
        {"numerics: {param: bf16}", "bf16 parameters without masters", 1},
        {"numerics: {param: bf16, master: f32}", "masters", 0},
        {"numerics: {param: e4m3}", "fp8 parameters without masters", 1},
        {"numerics: {param: e4m3}", "fp8 gradients", 0},
        {"numerics: {param: e4m3, master: f32, gradient: e5m2}", "fp8 gradients", 1},
        {"numerics: {param: e5m2, master: f32}", "masters", 0},
        {"numerics: {threads: 2}", "threads moves no bit", 1},
        {RANKS("shaped") "parallel: {ranks: 2}", "reduce moves no bit with 2 ranks", 1},
        {RANKS("shaped") "parallel: {ranks: 4}", "parallel.average moves no bit", 1},
        {RANKS("shaped") "parallel: {ranks: 4}", "parallel.bucket move no bit", 1},
        {RANKS("shaped") "parallel: {ranks: 4, reduce: ring}", "parallel.bucket", 0},
        {RANKS("shuffled") "parallel: {ranks: 4, reduce: arrival}", "makes no noise", 0},
        {RANKS("shuffled") "parallel: {ranks: 2, reduce: arrival}", "makes no noise", 2},
        {"numerics: {mode: atomic}", "races with nobody at numerics.threads 1", 1},
        {"numerics: {mode: atomic, threads: 2}", "race", 0},
        {"numerics: {mode: atomic, threads: 2}\n  atomic: {kinds: []}", "nothing races", 1},
        {"numerics: {mode: atomic, threads: 2}\n  atomic: {chunk: 400}", "dq does not race", 1},
        {"numerics: {mode: atomic, threads: 2}\n  atomic: {chunk: 400}", "does not race", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        helper_scenario("notes.yaml", "steps: 1", cases[i].common, "");
        json_t *object = check("notes.yaml");
        if (notes(object, 0, cases[i].needle) != cases[i].times)
            fail_msg("%s: expected %d notes \"%s\"", cases[i].common, cases[i].times,
                     cases[i].needle);
        json_decref(object);
    }
}

/* Whether an order that no epoch draws anew is ever drawn a second time. There are 22 samples. */
static void validate_order_notes(void **state) {
    (void)state;
#define ONE_ORDER_IN(file)                                                                         \
    "check " file " --json --set common.data.samples=22 --set common.data.epoch_seed=first "       \
    "--set common.batch.size=8 --set common.batch.micro=2 --set steps="
#define ONE_ORDER ONE_ORDER_IN("order.yaml")
    /* of 22 samples, two ranks with 8 of their own have one update */
#define FED                                                                                        \
    ONE_ORDER_IN("fed.yaml --set common.model.family=llama --set common.data.max_len=16 --set "    \
                 "common.data.text=builtin:devil-text")
    static const struct {
        const char *line;
        int times;
    } cases[] = {
        {ONE_ORDER "2", 1},
        {ONE_ORDER "3", 0},
        {ONE_ORDER "3 --set common.batch.tail=keep", 1},
        {ONE_ORDER "4 --set common.batch.tail=keep", 0},
        {ONE_ORDER "2 --set common.batch.tail=leak", 1},
        {ONE_ORDER "3 --set common.batch.tail=leak", 0},
        {ONE_ORDER "3 --set common.batch.tail=leak --set common.data.samples=23", 1},
        {ONE_ORDER "2 --set common.data.epoch_seed=own", 0},
        {ONE_ORDER "2 --set common.data.shuffle=false", 0},
        {ONE_ORDER "2 --set common.resume.after=1", 0},
        {ONE_ORDER_IN("moved.yaml") "2", 0},
        {ONE_ORDER_IN("dealt.yaml") "3 --set common.parallel.uneven=pad", 1},
        {ONE_ORDER_IN("dealt.yaml") "3", 0},
        {FED "1", 1},
        {FED "2", 0},
    };
    helper_scenario("order.yaml", "steps: 1", "seed: 3", "");
    helper_scenario("moved.yaml", "steps: 1", "rng: {data: advance 2 at 2}", "");
    helper_scenario("fed.yaml", "steps: 1",
                    "task: sft\n  numerics: {cuts: 2}\n"
                    "  parallel: {tensor: 2, feeds: own-on-tensor}",
                    "");
    helper_scenario("dealt.yaml", "steps: 1",
                    "parallel: {ranks: 4, deal: cyclic}\n  numerics: {shards: 4}\n"
                    "  loop: {update: [reduce, clip, optimize, log, count, schedule, zero]}",
                    "");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct said said = helper_run(0, cases[i].line);
        json_t *object = json_loads(said.out, 0, NULL);
        assert_non_null(object);
        if (notes(object, 0, "data.epoch_seed is without effect") != cases[i].times)
            fail_msg("%s: expected %d notes in %s", cases[i].line, cases[i].times, said.out);
        json_decref(object);
        helper_free(&said);
    }
}

/* There are 4 samples; `sets` are overrides of what both arms share. */
static void validate_divisor_notes(void **state) {
    (void)state;
    static const struct {
        const char *sets, *needle;
        int times;
    } cases[] = {
        {"loss.divisor=update-and-micros", "update-and-micros is that of the update", 1},
        {"loss.divisor=update-and-micros batch.micro=1", "loss.divisor", 0},
        {"loss.divisor=sum-of-means batch.micro=1", "loss.divisor", 0},
        {"loss.divisor=mean-of-means batch.micro=1", "equally many pairs", 1},
        {"loss.divisor=mean-of-means batch.micro=1 batch.tail=keep", "loss.divisor", 0},
        {"loss.divisor=mean-of-ranks", "there is one rank", 1},
        {"loss.divisor=mean-of-ranks loss.ranks=2", "ranks of dpo have equally many pairs", 1},
        {"loss.divisor=mean-of-ranks loss.ranks=2 task=sft", "loss.divisor", 0},
        {"loss.divisor=update-unshifted", "it counts pairs", 1},
        {"loss.divisor=update-unshifted task=sft", "no first token is labelled", 1},
        {"loss.divisor=means-over-size", "loss.divisor", 0},
        {"loss.divisor=micros-by-tokens", "micros-by-tokens is that of the update", 1},
        {"batch.tail=keep data.samples=16", "updates fill the epoch", 1},
        {"batch.tail=keep data.samples=15", "batch.tail", 0},
        {"batch.tail=leak batch.micro=2 data.samples=15", "batch.tail is keep in effect", 1},
        {"batch.tail=leak batch.micro=2 data.samples=14", "batch.tail", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char words[512] = "divisor.yaml", list[256];
        snprintf(list, sizeof list, "%s", cases[i].sets);
        for (char *set = strtok(list, " "); set != NULL; set = strtok(NULL, " ")) {
            const size_t used = strlen(words);
            snprintf(words + used, sizeof words - used, " --set common.%s", set);
        }
        helper_scenario("divisor.yaml", "steps: 1", "seed: 3", "");
        json_t *object = check(words);
        if (notes(object, 0, cases[i].needle) != cases[i].times)
            fail_msg("%s: expected %d notes \"%s\"", cases[i].sets, cases[i].times,
                     cases[i].needle);
        json_decref(object);
    }
}

static void validate_text(void **state) {
    (void)state;
    static const char *const needles[] = {
        "null: 2 updates of baseline and test\n",
        "  factors  none: both arms have the same configuration (a null pair)\n",
        "  loop     baseline: update k applies f(k-1), logs f(k-1)\n",
        "           update   clip optimize log count schedule zero\n",
        "  floor    exact: baseline once more, and one arm in a process started anew\n",
        "  runs     4 trainings of 2 updates: 2 arms, 2 for the floor, 0 hybrids\n"
        "           nothing that differs between the arms acts up to update 2, where one training "
        "may serve both\n",
        "data of both arms\nquiz.tsv: 1670 samples",
        "[Algiers<eos>]"};
    helper_scenario("null.yaml", "steps: 2", "seed: 3", "");
    struct said said = helper_run(0, "check null.yaml");
    for (size_t i = 0; i < sizeof needles / sizeof needles[0]; i++)
        if (strstr(said.out, needles[i]) == NULL)
            fail_msg("expected: %s\nin: %s", needles[i], said.out);
    helper_free(&said);
    said = helper_run(0, "check null.yaml --set steps=9 --set arms.test.data.seed=5");
    assert_non_null(strstr(said.out, "trainings of 9 updates"));
    assert_null(strstr(said.out, "one training may serve both"));
    assert_non_null(strstr(said.out, "  factor   data-order\n           data.seed: 3 -> 5\n"));
    assert_non_null(strstr(said.out, "data of test"));
    helper_free(&said);
    assert_false(helper_exists("null.h5"));
    assert_false(helper_exists("null.h5.part"));
}

/* A model in the binary is found from any folder, and said with its digest. */
static void validate_shipped_model(void **state) {
    (void)state;
    assert_int_equal(mkdir("deep", 0777), 0);
    helper_write("deep/base.yaml", "twinstep: 1\nsteps: 1\n"
                                   "common: {model: {from: \"builtin:base\"}}\n"
                                   "arms: {baseline: {}, test: {}}\n");
    struct said said = helper_run(0, "check deep/base.yaml");
    require_in(said.out, "dpo, olmo2, 4 layers, hidden 64, 4 heads, mlp 172, vocabulary 259\n"
                         "           231872 parameters in 47 tensors");
    require_in(said.out, "\n           weights of builtin:base, digest 811abe61acd1d8c2");
    helper_free(&said);
    helper_refuse(2, "check deep/base.yaml --set common.model.from=builtin:case",
                  "model.from: builtin:case: no such model; there is builtin:base");
}

/* A key written where nothing reads it must be reported, and must not be a factor. */
static void validate_inert_keys(void **state) {
    (void)state;
    helper_scenario("inert.yaml", "steps: 1", "loop: {on_skip: [log]}",
                    "dpo: {beta: 0.5}, numerics: {order_seed: 3}");
    json_t *object = check("inert.yaml");
    const json_t *inert = json_object_get(object, "inert");
    assert_int_equal(json_array_size(json_object_get(object, "factors")), 1);
    assert_int_equal(whole(object, "hybrids"), 1);
    assert_int_equal(json_array_size(inert), 2);
    assert_string_equal(text(json_array_get(inert, 0), "key"), "loop.on_skip");
    assert_true(json_is_null(json_object_get(json_array_get(inert, 0), "arm")));
    assert_string_equal(text(json_array_get(inert, 1), "key"), "numerics.order_seed");
    assert_string_equal(text(json_array_get(inert, 1), "why"), "numerics.mode is not shuffled");
    assert_string_equal(text(json_array_get(inert, 1), "arm"), "test");
    json_decref(object);
    struct said said = helper_run(0, "check inert.yaml");
    assert_non_null(strstr(
        said.out, "  note     both arms: loop.on_skip has no effect here: loop.skip is none\n"
                  "  note     test: numerics.order_seed has no effect here: numerics.mode is not "
                  "shuffled\n"));
    helper_free(&said);
    /* Only one arm draws an order, so the seed is no difference. */
    helper_scenario("one.yaml", "steps: 1", "seed: 3", "numerics: {mode: shuffled}");
    said = helper_run(0, "check one.yaml");
    assert_non_null(strstr(said.out, "  factor   nondeterminism\n           numerics.mode: "
                                     "invariant -> shuffled\n  loop "));
    helper_free(&said);
}

/* The contract of each arm must be shown, with the words of its loop, and as the factor. */
static void validate_contract(void **state) {
    (void)state;
    helper_scenario("contract.yaml", "steps: 7", "schedule: {name: linear, warmup: 2}",
                    "schedule: {contract: open-instruct-tune-cache, processes: 2}");
    json_t *object = check("contract.yaml");
    const json_t *loops[2] = {json_object_get(arm(object, 0), "loop"),
                              json_object_get(arm(object, 1), "loop")};
    assert_string_equal(text(loops[0], "contract"), "none");
    assert_string_equal(text(loops[1], "contract"), "open-instruct-tune-cache");
    assert_string_equal(text(loops[1], "schedule"), "linear");
    assert_string_equal(text(loops[1], "applied"), "f(2(k-1))");
    assert_string_equal(text(loops[1], "logged"), "f(2k)");
    const json_t *factors = json_object_get(object, "factors");
    assert_int_equal(json_array_size(factors), 1);
    assert_string_equal(text(json_array_get(factors, 0), "cause"), "schedule");
    json_decref(object);
    struct said said = helper_run(0, "check contract.yaml");
    assert_non_null(strstr(said.out, "  loop     test: update k applies f(2(k-1)), logs f(2k)\n"
                                     "           contract open-instruct-tune-cache, schedule "
                                     "linear\n"));
    assert_non_null(strstr(said.out, "schedule.contract: none -> open-instruct-tune-cache\n"));
    assert_non_null(strstr(said.out, "schedule.warmup: 2 -> 4\n"));
    helper_free(&said);
}

/* What the list says of a dtype must be what a scenario may do with it. */
static void validate_dtypes(void **state) {
    (void)state;
    struct said said = helper_run(0, "list dtypes");
    assert_non_null(strstr(said.out, "tf32                      numerics: product\n"));
    assert_non_null(strstr(said.out, "e4m3                      numerics: param, gradient\n"));
    assert_non_null(
        strstr(said.out, "param, compute, accumulate, gradient, optimizer, master, rope"));
    helper_free(&said);
    helper_accept(0, "check null-pair --set common.numerics.param=e4m3");
    helper_refuse(2, "check null-pair --set common.numerics.compute=e4m3", "numerics.compute");
}

/* Every scenario of the catalogue must pass. */
static void verify_catalogue(void **state) {
    (void)state;
    json_error_t error;
    struct said said = helper_run(0, "list scenarios --json");
    json_t *list = json_loads(said.out, 0, &error);
    assert_non_null(list);
    size_t i;
    json_t *entry;
    assert_true(json_array_size(json_object_get(list, "scenarios")) >= 16);
    json_array_foreach(json_object_get(list, "scenarios"), i, entry) {
        if (i % helper_size(8, 3, 1) != 0) continue;
        json_t *object = check(text(entry, "name"));
        assert_string_equal(text(object, "name"), text(entry, "name"));
        json_decref(object);
    }
    json_decref(list);
    helper_free(&said);
}

/* ---- warnings ---- */

/* The same rows must get the same words from `data show`. */
static void validate_data_warnings(void **state) {
    (void)state;
    helper_write("odd.jsonl", "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"b\"}\n"
                              "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\"}\n");
    helper_write("odd.yaml", "twinstep: 1\nname: odd\nsteps: 1\ncommon: {task: dpo, data: {pairs: "
                             "odd.jsonl}, batch: {size: 2}}\narms: {a: {}, b: {}}\n");
    json_t *object = check("odd.yaml");
    const json_t *warnings = json_object_get(json_object_get(arm(object, 0), "data"), "warnings");
    struct said said = helper_run(0, "data show odd.jsonl --json");
    json_t *shown = json_loads(said.out, 0, NULL);
    assert_int_equal(json_array_size(warnings), 1);
    assert_true(json_equal(warnings, json_object_get(json_array_get(shown, 0), "warnings")));
    helper_free(&said);
    said = helper_run(0, "check odd.yaml");
    require_in(said.out, "\nwarning: 1 of 2 pairs have the same tokens on both sides\n");
    helper_free(&said);
    json_decref(object);
    json_decref(shown);
    helper_scenario("fine.yaml", "", "", "");
    said = helper_run(0, "check fine.yaml");
    if (strstr(said.out, "warning") != NULL) fail_msg("%s", said.out);
    helper_free(&said);
}

#define GOLDEN TWINSTEP_SOURCE_DIR "/tests/golden/hf/llama/"

/* Writes the golden checkpoint with another dtype in config.json and another first value of
 * lm_head. */
static void write_folder(const char *folder, const char *dtype, float first) {
    static const char said[] = "\"float32\"";
    char path[64], text[2048];
    size_t length;
    uint64_t header;
    assert_int_equal(mkdir(folder, 0777), 0);
    char *config = helper_read(GOLDEN "config.json", &length);
    const char *at = strstr(config, said);
    assert_true(at != NULL && length < sizeof text - 32);
    snprintf(text, sizeof text, "%.*s\"%s\"%s", (int)(at - config), config, dtype,
             at + strlen(said));
    snprintf(path, sizeof path, "%s/config.json", folder);
    helper_write(path, text);
    char *bytes = helper_read(GOLDEN "model.safetensors", &length);
    memcpy(&header, bytes, sizeof header);
    if (first != 0.0f) memcpy(bytes + 8 + header, &first, sizeof first);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    helper_write_bytes(path, bytes, length);
    free(bytes);
    free(config);
}

static void require_warnings(const char *folder, const char *more, size_t count,
                             const char *needle) {
    char body[512];
    snprintf(body, sizeof body,
             "twinstep: 1\nname: from\nsteps: 1\ncommon:\n  task: sft\n  model: {from: %s}\n"
             "  data: {text: " GOLDEN "../texts.jsonl}\n%sarms: {a: {}, b: {}}\n",
             folder, more);
    helper_write("from.yaml", body);
    json_t *object = check("from.yaml");
    const json_t *warnings = json_object_get(arm(object, 1), "warnings");
    if (json_array_size(warnings) != count) fail_msg("%s: %zu", folder, json_array_size(warnings));
    if (needle != NULL) require_in(json_string_value(json_array_get(warnings, 0)), needle);
    json_decref(object);
    struct said said = helper_run(0, "check from.yaml");
    if (needle != NULL) require_in(said.out, needle);
    if ((strstr(said.out, "\n  warning  b: ") != NULL) != (count > 0)) fail_msg("%s", said.out);
    helper_free(&said);
}

static void validate_weight_warnings(void **state) {
    (void)state;
    write_folder("fine", "float32", 0.0f);
    write_folder("broken", "float32", (float)NAN);
    write_folder("endless", "float32", -(float)INFINITY);
    write_folder("large", "float32", 70000.0f);
    write_folder("cast", "bfloat16", 0.0f);
    require_warnings("fine", "", 0, NULL);
    require_warnings(
        "broken", "", 1,
        "1 of 35 tensors hold NaN or infinity in numerics.param, first lm_head.weight");
    require_warnings("endless", "", 1,
                     "hold NaN or infinity in numerics.param, first lm_head.weight");
    require_warnings("large", "", 0, NULL);
    require_warnings("large", "  numerics: {param: f16}\n", 1, "infinity in numerics.param");
    require_warnings("cast", "", 1,
                     "the dtype of config.json is bf16, 35 of 35 tensors have another, first "
                     "lm_head.weight with F32");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_facts),           cmocka_unit_test(validate_numbers_of_trainings),
        cmocka_unit_test(validate_notes),           cmocka_unit_test(validate_divisor_notes),
        cmocka_unit_test(validate_order_notes),     cmocka_unit_test(validate_text),
        cmocka_unit_test(validate_shipped_model),   cmocka_unit_test(validate_inert_keys),
        cmocka_unit_test(validate_dtypes),          cmocka_unit_test(verify_catalogue),
        cmocka_unit_test(validate_contract),        cmocka_unit_test(validate_data_warnings),
        cmocka_unit_test(validate_weight_warnings),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
