/* SPDX-License-Identifier: Apache-2.0
 * labels: repro unit
 * The signatures of real trainings: each cause that has a signature must be named, causes that look
 * like it must not be, and equal pairs never. Where the first difference of each lies is checked
 * too. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "experiment/locate/locate_words.h"
#include "tests/trainer/helper_train.h"
#include "trainer/watch_run.h"

#define TINY                                                                                       \
    "init: {std: 0.3}, model: {layers: 4, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 19}"
#define SFT "task: sft, " TINY ", batch: {size: 4, micro: 2}"
#define DPO TINY ", batch: {size: 4, micro: 2}"

enum { UPDATES = 3 };

/* `ratio` is the one that belongs to the signature; 0: none does. */
static const struct pair {
    const char *name, *common, *a, *b;
    enum signature_kind kind;
    double ratio;
    uint64_t update;
    const char *phase, *op, *tensor;
} pairs[] = {
    {"equal", SFT, "", "", SIGNATURE_NONE, 0, 0, NULL, NULL, NULL},
    {"equal, noisy order of one seed", SFT ", numerics: {mode: shuffled, order_seed: 3}", "", "",
     SIGNATURE_NONE, 0, 0, NULL, NULL, NULL},
    {"equal, other layout", DPO, "parallel: {ranks: 1}", "numerics: {threads: 2}", SIGNATURE_NONE,
     0, 0, NULL, NULL, NULL},

    {"order of dQ", DPO,
     "numerics: {mode: shuffled, order_seed: 1}, shuffle: {chunk: 2, kinds: [dq]}",
     "numerics: {mode: shuffled, order_seed: 2}, shuffle: {chunk: 2, kinds: [dq]}",
     SIGNATURE_BACKWARD_ORDER, 0, 1, "backward", "attention", "dQ"},
    {"order of norm weights' sums", DPO,
     "numerics: {mode: shuffled, order_seed: 1}, shuffle: {chunk: 2, kinds: [norm]}",
     "numerics: {mode: shuffled, order_seed: 2}, shuffle: {chunk: 2, kinds: [norm]}",
     SIGNATURE_NONE, 0, 1, "backward", "norm", "weight gradient"},
    {"order of the forward", DPO,
     "numerics: {mode: shuffled, order_seed: 1}, shuffle: {chunk: 2, kinds: [forward]}",
     "numerics: {mode: shuffled, order_seed: 2}, shuffle: {chunk: 2, kinds: [forward]}",
     SIGNATURE_NONE, 0, 1, "forward", "reference", "log-probs of both sides"},

    {"rotary table", SFT, "", "numerics: {rope: bf16}", SIGNATURE_ROPE_TABLE, 0, 1,
     "before the update", "rotary table", "cosine"},
    {"order of attention's sums", SFT,
     "numerics: {mode: shuffled, order_seed: 1}, shuffle: {chunk: 1, kinds: [forward]}",
     "numerics: {mode: shuffled, order_seed: 2}, shuffle: {chunk: 1, kinds: [forward]}",
     SIGNATURE_NONE, 0, 1, "forward", "q_proj", "output"},
    {"other initial weights", SFT, "", "init: {std: 0.3, seed: 9}", SIGNATURE_NONE, 0, 1,
     "before the update", "model.embed_tokens.weight", "parameter"},

    {"clip", SFT, "clip: {max_norm: 0.2}", "clip: {max_norm: 0.1}", SIGNATURE_CONSTANT_RATIO, 0.5,
     1, "clip", "clip", "coefficient"},
    {"loss scale left in", SFT, "", "scaler: {kind: static, init_scale: 3}",
     SIGNATURE_CONSTANT_RATIO, 3, 1, "forward", "loss", "coefficient"},
    {"reward scale", DPO, "", "dpo: {beta: 0.2}", SIGNATURE_CONSTANT_RATIO, 2, 1, "forward", "loss",
     "coefficient"},
    {"clipped before it is unscaled",
     SFT ", scaler: {kind: static, init_scale: 8}, clip: {max_norm: 0.1}",
     "loop: {update: [unscale, clip, optimize, log, count, schedule, zero]}",
     "loop: {update: [clip, unscale, optimize, log, count, schedule, zero]}",
     SIGNATURE_CONSTANT_RATIO, 0.125, 1, "unscale", "model.embed_tokens.weight",
     "unscaled gradient"},
    {"reference of one pair", TINY ", batch: {size: 1}", "", "dpo: {reference_compute: bf16}",
     SIGNATURE_NONE, 0, 1, "forward", "reference", "log-probs of both sides"},
    {"other divisor per micro-batch", SFT, "", "loss: {divisor: mean-of-means}", SIGNATURE_NONE, 0,
     1, "forward", "loss", "coefficient"},

    {"LR", SFT, "optimizer: {lr: 1e-3}", "optimizer: {lr: 8e-4}", SIGNATURE_LR_RATIO, 0.8, 1,
     "optimize", "model.embed_tokens.weight", "LR applied"},
    {"LR that rounding hides", SFT, "optimizer: {lr: 5e-7}", "optimizer: {lr: 4.8e-7}",
     SIGNATURE_NONE, 0, 1, "optimize", "model.embed_tokens.weight", "LR applied"},
    {"steps counted twice", SFT, "", "optimizer: {t: twice}", SIGNATURE_LR_RATIO, 0, 1, "optimize",
     "optimizer", "steps counted"},
    {"steps not counted", SFT, "", "optimizer: {t: frozen}", SIGNATURE_NONE, 0, 1, "optimize",
     "optimizer", "steps counted"},
    {"LR and decay", SFT, "optimizer: {lr: 1e-3, weight_decay: 0.5}",
     "optimizer: {lr: 8e-4, weight_decay: 0}", SIGNATURE_NONE, 0, 1, "optimize",
     "model.embed_tokens.weight", "LR applied"},
    {"other beta1", SFT, "", "optimizer: {beta1: 0.5}", SIGNATURE_NONE, 0, 1, "optimize",
     "model.embed_tokens.weight", "exp_avg"},

    {"who decays", SFT, "optimizer: {lr: 1e-2, weight_decay: 0.5, decay: matrices}",
     "optimizer: {lr: 1e-2, weight_decay: 0.5, decay: all}", SIGNATURE_ONE_TENSOR, 0, 1, "optimize",
     "model.layers.0.self_attn.q_norm.weight", "weight decay"},
    {"decay of all", SFT, "optimizer: {lr: 1e-2, weight_decay: 0.5, decay: all}",
     "optimizer: {lr: 1e-2, weight_decay: 0.25, decay: all}", SIGNATURE_NONE, 0, 1, "optimize",
     "model.embed_tokens.weight", "weight decay"},
    {"data", SFT, "", "data: {max_len: 16, pairs: PAIRS, text: TEXT, seed: 5}", SIGNATURE_NONE, 0,
     1, "fetch", "data", "tokens"},
};

struct files {
    char pairs[HELPER_PATH_SIZE], text[HELPER_PATH_SIZE];
};

static void replace(char *text, size_t size, const char *word, const char *by) {
    char *at = strstr(text, word);
    char rest[1024];
    if (at == NULL) return;
    snprintf(rest, sizeof rest, "%s", at + strlen(word));
    snprintf(at, size - (size_t)(at - text), "%s%s", by, rest);
}

/* `own` may name a list that `common` names too; the list then is that of `own` alone. */
static void configure(const struct files *files, const char *common, const char *own,
                      struct config *out) {
    char text[2048];
    snprintf(text, sizeof text, "%s%s%s%s", common, own[0] == '\0' ? "" : ", ", own,
             strstr(own, "data:") != NULL ? "" : ", data: {max_len: 16, pairs: PAIRS, text: TEXT}");
    if (strstr(own, "init:") != NULL) replace(text, sizeof text, "init: {std: 0.3}, ", "");
    replace(text, sizeof text, "PAIRS", files->pairs);
    replace(text, sizeof text, "TEXT", files->text);
    helper_config(UPDATES, out, "%s", text);
}

static void check_place(const struct pair *pair, const struct locate_result *result) {
    const struct locate_key *key = result->first.key;
    if (result->undecided != NULL) fail_msg("%s: %s", pair->name, result->undecided);
    if (result->update != pair->update)
        fail_msg("%s: update %ju", pair->name, (uintmax_t)result->update);
    if (pair->update == 0) return;
    if (key == NULL) fail_msg("%s: no value differs", pair->name);
    if (strcmp(stage_name((uint32_t)key->stage), pair->phase) != 0 ||
        strcmp(key->op.text, pair->op) != 0 || strcmp(key->tensor.text, pair->tensor) != 0)
        fail_msg("%s: %s, %s %s", pair->name, stage_name((uint32_t)key->stage), key->op.text,
                 key->tensor.text);
}

static void check_pair(const struct files *files, const struct pair *pair) {
    struct config configs[2];
    struct arena arena = ARENA_EMPTY;
    struct locate_result result;
    configure(files, pair->common, pair->a, &configs[0]);
    configure(files, pair->common, pair->b, &configs[1]);
    const struct locate_request request = {
        .sides = {{.name = "a", .config = &configs[0]}, {.name = "b", .config = &configs[1]}},
        .steps = UPDATES};
    const enum status status = locate_first_difference(&request, &arena, &result);
    if (status != STATUS_OK) fail_msg("%s: %s", pair->name, status_text());
    check_place(pair, &result);
    if (result.signature.kind != pair->kind)
        fail_msg("%s: expected %s, got %s", pair->name, signature_name(pair->kind),
                 locate_signature_words(&result).text);
    if (pair->ratio > 0 && !(fabs(result.signature.ratio / pair->ratio - 1) < 1e-3))
        fail_msg("%s: ratio %.9g", pair->name, result.signature.ratio);
    printf("%-32s %s\n", pair->name, locate_signature_words(&result).text);
    arena_close(&arena);
}

static void validate_signatures(void **state) {
    (void)state;
    struct files files;
    helper_ids_write(TASK_DPO, 19, 5, 24, 14, files.pairs);
    helper_ids_write(TASK_SFT, 19, 5, 24, 14, files.text);
    for (size_t i = 0; i < COUNT_OF(pairs); i++)
        check_pair(&files, &pairs[i]);
    unlink(files.pairs);
    unlink(files.text);
}

/* Pairs that differ in the order of sums alone must get no name, for every kind of sum but dQ. */
static void verify_noise(void **state) {
    (void)state;
    static const char *const kinds[] = {"forward",   "weight",
                                        "embedding", "norm",
                                        "loss",      "forward, weight, dq, embedding, norm, loss"};
    struct files files;
    helper_ids_write(TASK_DPO, 19, 5, 24, 14, files.pairs);
    helper_ids_write(TASK_SFT, 19, 5, 24, 14, files.text);
    for (size_t i = 0; i < COUNT_OF(kinds) * 4; i++) {
        struct config configs[2];
        struct arena arena = ARENA_EMPTY;
        struct locate_result result;
        char own[256];
        for (unsigned arm = 0; arm < 2; arm++) {
            snprintf(own, sizeof own,
                     "numerics: {mode: shuffled, order_seed: %u}, shuffle: {chunk: 2, kinds: [%s]}",
                     (unsigned)i * 2 + arm, kinds[i % COUNT_OF(kinds)]);
            configure(&files, DPO, own, &configs[arm]);
        }
        const struct locate_request request = {
            .sides = {{.name = "a", .config = &configs[0]}, {.name = "b", .config = &configs[1]}},
            .steps = UPDATES};
        const enum status status = locate_first_difference(&request, &arena, &result);
        if (status != STATUS_OK) fail_msg("%s: %s", own, status_text());
        if (result.signature.kind != SIGNATURE_NONE)
            fail_msg("%s: %s", own, locate_signature_words(&result).text);
        arena_close(&arena);
    }
    unlink(files.pairs);
    unlink(files.text);
}

/* Scales a slot of one tensor by hand in update 2. */
struct spoiler {
    struct watch watch;
    const char *parameter, *tensor;
};

static void spoil(void *context, const struct watch_view *view) {
    const struct spoiler *spoiler = (const struct spoiler *)context;
    float *values = (float *)view->data;
    if (view->update != 2 || view->stage != WATCH_PHASE + (int)PHASE_OPTIMIZE ||
        strcmp(view->tensor.text, spoiler->tensor) != 0 ||
        strcmp(view->op.text, spoiler->parameter) != 0)
        return;
    for (size_t i = 0; i < view->count; i++)
        values[i] *= 1.5f;
}

static void validate_slot(void **state) {
    (void)state;
    struct files files;
    struct config config;
    struct arena arena = ARENA_EMPTY;
    struct locate_result result;
    static const char name[] = "model.layers.2.mlp.up_proj.weight";
    struct spoiler spoiler = {.parameter = name, .tensor = "exp_avg_sq"};
    helper_ids_write(TASK_DPO, 19, 5, 24, 14, files.pairs);
    helper_ids_write(TASK_SFT, 19, 5, 24, 14, files.text);
    configure(&files, SFT, "", &config);
    spoiler.watch = (struct watch){.see = spoil, .context = &spoiler, .arena = ARENA_EMPTY};
    const struct locate_request request = {
        .sides = {{.name = "a", .config = &config}, {.name = "b", .config = &config}},
        .steps = UPDATES,
        .before = {NULL, &spoiler.watch}};
    assert_int_equal(locate_first_difference(&request, &arena, &result), STATUS_OK);
    assert_int_equal(result.update, 2);
    assert_string_equal(result.first.key->op.text, name);
    assert_string_equal(result.first.key->tensor.text, "exp_avg_sq");
    assert_int_equal(result.signature.kind, SIGNATURE_ONE_TENSOR);
    assert_string_equal(result.signature.where, name);
    arena_close(&arena);
    unlink(files.pairs);
    unlink(files.text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_signatures),
                                       cmocka_unit_test(verify_noise),
                                       cmocka_unit_test(validate_slot)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
