/* SPDX-License-Identifier: Apache-2.0
 * labels: repro unit
 * A bit that flips (section `fault`): every tensor that may be named is one that a watch shows, and
 * every number that a watch shows in a phase may be named; the flip changes exactly the named bit
 * of the named element, in its update and in no other; it does not depend on padding, layout,
 * threads or the backend, and comes again behind a snapshot; what cannot be is refused by name. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/dtype_bits.h"
#include "base/element.h"
#include "tests/trainer/helper_train.h"
#include "trainer/corruption.h"
#include "trainer/corruption_places.h"
#include "trainer/schema_classes.h"
#include "trainer/watch_run.h"

#define SIZES "layers: 2, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 19"
#define SHIM TWINSTEP_BACKENDS "/twinstep_backend_shim.so"
enum { MOST = 1024, UPDATES = 4 };

static const char *const trainings[] = {
    "task: sft, batch: {size: 4, micro: 2}, model: {" SIZES "}",
    "task: dpo, batch: {size: 4, micro: 2}, model: {family: llama, tied: true, " SIZES "}",
    "task: dpo, batch: {size: 4, micro: 2, layout: concatenated}, model: {family: qwen2, "
    "output_bias: true, mlp_bias: true, " SIZES "}, dpo: {reference: live}, "
    "numerics: {param: bf16, compute: bf16, master: f32}",
    "task: sft, batch: {size: 4, micro: 1}, model: {family: qwen3, " SIZES "}, "
    "numerics: {param: f32, compute: bf16, gradient: bf16, grad_accumulate: storage}, "
    "optimizer: {name: adafactor}",
    "task: sft, batch: {size: 4, micro: 2}, model: {" SIZES "}, dropout: {embedding: 0.1, "
    "attention: 0.2, residual: 0.1, recompute: redraw}, numerics: {compute: f16}, "
    "scaler: {kind: static, init_scale: 64}, "
    "loop: {update: [unscale, clip, optimize, log, count, schedule, zero]}",
    "task: sft, batch: {size: 4, micro: 2}, model: {" SIZES "}, numerics: {mode: order-free}",
    "task: sft, batch: {size: 4, micro: 2}, model: {" SIZES "}, numerics: {param: e4m3, gradient: "
    "e5m2, compute: bf16}, optimizer: {name: sgd, momentum: 0.9}, clip: {max_norm: 0}, "
    "loop: {micro: [fetch, forward, backward, clip, optimize, zero], update: [log, count, "
    "schedule]}",
    "task: sft, batch: {size: 4, micro: 2}, model: {" SIZES "}, numerics: {param: f64, compute: "
    "f64}, optimizer: {name: lion}",
};

/* A run of one of these trainings, with these words for `fault`. */
struct bench {
    struct config config;
    struct arena arena;
    struct dataset dataset;
    struct run run;
};

static void bench_open(struct bench *bench, const char *training, const char *fault) {
    const struct run_options options = {
        .tensors = 1, .phases = 1, .readback = 1, .poison = 1, .steps = UPDATES};
    bench->arena = (struct arena)ARENA_EMPTY;
    helper_config(UPDATES, &bench->config, "data: {max_len: 16}, init: {std: 0.3}, fault: {%s}, %s",
                  fault, training);
    bench->config.numerics.order_seed = 0;
    helper_ids_open(&bench->config, 7, 40, 16, &bench->arena, &bench->dataset);
    helper_run_open(&bench->config, &bench->dataset, &options, &bench->run);
}

static void bench_close(struct bench *bench) {
    run_close(&bench->run);
    arena_close(&bench->arena);
}

/* ---- the list of tensors ---- */

/* What a watch has shown, and whether the list has it. */
struct met {
    enum fault_phase phase;
    uint32_t layer;
    char op[CONFIG_NAME_SIZE], tensor[CONFIG_NAME_SIZE];
    enum watch_axis axis;
    enum dtype dtype;
    size_t count;
    uint32_t times, micros; /* how often in the update, and in how many micro-batches */
    int listed;
};

struct survey {
    struct met met[MOST];
    uint32_t count;
    uint32_t per_micro; /* samples of a micro-batch */
};

/* The phases of a stage; -1: a bit may not flip there. */
static int phase_of(enum watch_stage stage) {
    static const int stages[] = {[FAULT_AT_START] = WATCH_START,
                                 [FAULT_AT_FORWARD] = WATCH_PHASE + PHASE_FORWARD,
                                 [FAULT_AT_BACKWARD] = WATCH_PHASE + PHASE_BACKWARD,
                                 [FAULT_AT_UNSCALE] = WATCH_PHASE + PHASE_UNSCALE,
                                 [FAULT_AT_CLIP] = WATCH_PHASE + PHASE_CLIP,
                                 [FAULT_AT_OPTIMIZE] = WATCH_PHASE + PHASE_OPTIMIZE};
    for (size_t i = 0; i < COUNT_OF(stages); i++)
        if (stages[i] == (int)stage) return (int)i;
    return -1;
}

/* Scalars (LR, norms), tables, masks, ids and the reference's sums are no tensors of the list, nor
 * is what a layer writes that is recomputed in the backward, and nor are exact sums. */
static int is_of_the_list(const struct watch_view *view) {
    if (view->kind != WATCH_REALS || phase_of(view->stage) < 0) return 0;
    if (view->axis == WATCH_POSITIONS || view->op.label == LABEL_REFERENCE) return 0;
    return view->axis != WATCH_WHOLE || view->parameter != WATCH_NO_PARAMETER;
}

static struct met *met_of(struct survey *survey, int phase, uint32_t layer, const char *op,
                          const char *tensor) {
    for (uint32_t i = 0; i < survey->count; i++) {
        struct met *met = &survey->met[i];
        if ((int)met->phase == phase && met->layer == layer && strcmp(met->op, op) == 0 &&
            strcmp(met->tensor, tensor) == 0)
            return met;
    }
    return NULL;
}

/* Says how many samples a tensor is summed over: of gradients those of the micro-batch and the ones
 * before it in the update, which has 4, and of whatever else none. */
static void check_covered(const struct survey *survey, const struct watch_view *view) {
    const uint32_t last = view->micro == 0 ? 4 : view->micro * survey->per_micro;
    const uint32_t before = view->micro == 0 ? 0 : last - survey->per_micro;
    if (view->axis != WATCH_WHOLE) return;
    if (strstr(view->tensor.text, "gradient") == NULL
            ? view->covered != 0
            : view->covered <= before || view->covered > last)
        fail_msg("%s %s, micro-batch %u: of %u samples", view->op.text, view->tensor.text,
                 view->micro, view->covered);
}

static void note_view(void *context, const struct watch_view *view) {
    struct survey *survey = (struct survey *)context;
    if (!is_of_the_list(view)) return;
    check_covered(survey, view);
    const int phase = phase_of(view->stage);
    struct met *met = met_of(survey, phase, view->layer, view->op.text, view->tensor.text);
    if (met == NULL) {
        assert_true(survey->count < MOST);
        met = &survey->met[survey->count++];
        *met = (struct met){.phase = (enum fault_phase)phase,
                            .layer = view->layer,
                            .axis = view->axis,
                            .dtype = view->dtype,
                            .count = view->axis == WATCH_WHOLE ? view->count : view->width};
        snprintf(met->op, sizeof met->op, "%s", view->op.text);
        snprintf(met->tensor, sizeof met->tensor, "%s", view->tensor.text);
    }
    met->times++;
    if (view->micro > met->micros) met->micros = view->micro;
}

struct listing {
    struct survey *survey;
    const struct bench *bench;
    uint32_t places;
};

static void hold_place(void *context, const struct corruption_place *place) {
    const struct listing *listing = (const struct listing *)context;
    const struct config *config = &listing->bench->config;
    struct met *met = met_of(listing->survey, place->phase, place->layer, place->op, place->tensor);
    if (met == NULL)
        fail_msg("nobody shows %s %s (phase %d, layer %u)", place->op, place->tensor,
                 (int)place->phase, place->layer);
    assert_false(met->listed);
    met->listed = 1;
    assert_int_equal(met->axis, place->axis);
    assert_int_equal(met->count, place->count);
    /* numbers of numerics.loss lie in f64 */
    const int wide = met->dtype == DTYPE_F64 && place->axis == WATCH_LABELS && place->count == 1;
    assert_int_equal(wide ? (enum dtype)config->numerics.loss : met->dtype, place->dtype);
    const uint32_t micros = (uint32_t)(config->batch.size / config->batch.micro);
    assert_int_equal(met->micros == micros || (met->micros == 0 && met->times == micros),
                     place->repeats);
}

static int is_left_out(const struct bench *bench, const struct met *met) {
    const int exact = bench->config.numerics.mode == MODE_ORDER_FREE;
    const int again = bench->config.dropout.recompute == RECOMPUTE_REDRAW;
    if (exact && met->phase == FAULT_AT_BACKWARD && strstr(met->tensor, "weight gradient") != NULL)
        return 1;
    return again && met->phase == FAULT_AT_BACKWARD && met->layer != PASS_NO_LAYER;
}

static void verify_list(void **state) {
    (void)state;
    for (size_t t = 0; t < COUNT_OF(trainings); t++) {
        static struct survey survey;
        struct bench bench;
        bench_open(&bench, trainings[t], "update: 0");
        survey.count = 0;
        survey.per_micro = (uint32_t)bench.config.batch.micro;
        struct watch watch = {.see = note_view, .context = &survey, .arena = ARENA_EMPTY};
        helper_step(&bench.run);
        watch_hang(&bench.run, &watch);
        watch_start(&bench.run);
        helper_step(&bench.run);
        watch_hang(&bench.run, NULL);
        arena_close(&watch.arena);
        const struct corruption_source source = {.config = &bench.config,
                                                 .table = run_table(&bench.run),
                                                 .optimizer = bench.run.optimizer,
                                                 .layout = run_layout(&bench.run)};
        struct listing listing = {.survey = &survey, .bench = &bench};
        corruption_places(&source, hold_place, &listing);
        for (uint32_t i = 0; i < survey.count; i++)
            if (!survey.met[i].listed && !is_left_out(&bench, &survey.met[i]))
                fail_msg("%s: the list lacks %s %s", trainings[t], survey.met[i].op,
                         survey.met[i].tensor);
        print_message("# training %zu: %u tensors\n", t, survey.count);
        bench_close(&bench);
    }
}

/* ---- the flip ---- */

/* Keeps the first tensor of each view in canonical order, as bits, and finds what differs. */
enum { KEPT = 1 << 21 };
struct keep {
    const struct bench *bench;
    uint64_t *bits; /* (KEPT) */
    size_t count;
    size_t *starts; /* where each view begins */
    uint32_t views;
    char (*names)[2 * CONFIG_NAME_SIZE];
};

static void keep_view(void *context, const struct watch_view *view) {
    struct keep *keep = (struct keep *)context;
    if (!is_of_the_list(view)) return;
    assert_true(keep->views < 4 * MOST);
    keep->starts[keep->views] = keep->count;
    snprintf(keep->names[keep->views++], sizeof *keep->names, "%s %s", view->op.text,
             view->tensor.text);
    const uint32_t cells = watch_cells(view);
    for (uint32_t i = 0; i < cells; i++) {
        const struct watch_cell cell = watch_cell_of(view, i);
        for (uint32_t r = 0; r < cell.rows; r++)
            for (size_t c = 0; c < view->width; c++) {
                assert_true(keep->count < KEPT);
                keep->bits[keep->count++] = dtype_bits(watch_row(view, &cell, r), view->dtype, c);
            }
    }
}

static struct keep keep_of(struct bench *bench, struct arena *arena) {
    struct keep keep = {.bench = bench};
    assert_int_equal(arena_take(arena, KEPT, sizeof *keep.bits, "bits", &keep.bits), STATUS_OK);
    assert_int_equal(arena_take(arena, 4 * MOST, sizeof *keep.starts, "views", &keep.starts),
                     STATUS_OK);
    assert_int_equal(arena_take(arena, 4 * MOST, sizeof *keep.names, "names", &keep.names),
                     STATUS_OK);
    struct watch watch = {.see = keep_view, .context = &keep, .arena = ARENA_EMPTY};
    watch_hang(&bench->run, &watch);
    watch_start(&bench->run);
    helper_step(&bench->run);
    watch_hang(&bench->run, NULL);
    arena_close(&watch.arena);
    return keep;
}

/* Where a bit flips, and what must be seen first: one element of this tensor, with this bit. */
static const struct flip {
    const char *name;
    int training;
    const char *fault, *first;
    size_t element; /* of the view that first differs */
    uint64_t mask;
} flips[] = {
    {"weight gradient", 0,
     "phase: backward, micro: 2, layer: 1, op: up_proj, tensor: weight gradient, element: 33, bit: "
     "22",
     "up_proj weight gradient", 33, UINT64_C(1) << 22},
    {"sign of a weight", 0,
     "phase: before-the-update, op: model.layers.0.mlp.up_proj.weight, tensor: parameter, element: "
     "319, bit: 31",
     "model.layers.0.mlp.up_proj.weight parameter", 319, UINT64_C(1) << 31},
    {"tied weight", 1,
     "phase: optimize, op: model.embed_tokens.weight, tensor: parameter, element: 5, bit: 3",
     "model.embed_tokens.weight parameter", 5, UINT64_C(1) << 3},
    {"moment in f32", 0,
     "phase: optimize, op: lm_head.weight, tensor: exp_avg_sq, element: 303, bit: 30",
     "lm_head.weight exp_avg_sq", 303, UINT64_C(1) << 30},
    /* bf16 numbers are kept in the upper half of their carrier; dtype_bits() is of bf16 */
    {"bit 14 of bf16", 2, "layer: 0, op: q_proj, element: 3, bit: 14", "q_proj output", 3,
     UINT64_C(1) << 14},
    {"master behind bf16", 2,
     "phase: optimize, op: model.norm.weight, tensor: master, element: 15, bit: 23",
     "model.norm.weight master", 15, UINT64_C(1) << 23},
    {"compute copy", 3, "op: model.norm.weight, tensor: compute copy, element: 15, bit: 15",
     "model.norm.weight compute copy", 15, UINT64_C(1) << 15},
    {"closed gradient, second micro-batch", 3,
     "phase: backward, micro: 2, op: model.norm.weight, tensor: gradient, element: 2, bit: 7",
     "model.norm.weight gradient", 2, UINT64_C(1) << 7},
    {"unscaled gradient", 4,
     "phase: unscale, op: model.norm.weight, tensor: unscaled gradient, element: 2, bit: 20",
     "model.norm.weight unscaled gradient", 2, UINT64_C(1) << 20},
    {"f16 sign", 4, "layer: 1, op: residual, tensor: after MLP, element: 17, bit: 15",
     "residual after MLP", 17, UINT64_C(1) << 15},
    {"closed gradient of exact sums", 5,
     "phase: backward, op: model.norm.weight, tensor: gradient, element: 0, bit: 1",
     "model.norm.weight gradient", 0, UINT64_C(1) << 1},
    {"weight in e4m3", 6,
     "phase: optimize, micro: 2, op: model.norm.weight, tensor: parameter, element: 9, bit: 6",
     "model.norm.weight parameter", 9, UINT64_C(1) << 6},
    {"bit 62 of f64", 7, "layer: 0, op: attention, element: 18, bit: 62", "attention output", 18,
     UINT64_C(1) << 62},
};

static const char *view_name(const struct keep *keep, size_t at, size_t *out_element) {
    uint32_t view = 0;
    while (view + 1 < keep->views && keep->starts[view + 1] <= at)
        view++;
    *out_element = at - keep->starts[view];
    return keep->names[view];
}

/* The first number that a watch sees otherwise is the named one, by the named bit, and no other
 * number of that tensor differs; the updates before have equal roots, and that one has not. */
static void validate_flips(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(flips); i++) {
        const struct flip *flip = &flips[i];
        char words[512];
        struct bench benches[2];
        struct keep keeps[2];
        struct arena arena = ARENA_EMPTY;
        snprintf(words, sizeof words, "update: 3, %s", flip->fault);
        bench_open(&benches[0], trainings[flip->training], "update: 0");
        bench_open(&benches[1], trainings[flip->training], words);
        for (int k = 1; k <= 2; k++)
            assert_true(
                record_equal_roots(helper_step(&benches[0].run), helper_step(&benches[1].run)));
        for (int b = 0; b < 2; b++)
            keeps[b] = keep_of(&benches[b], &arena);
        assert_int_equal(keeps[0].count, keeps[1].count);
        size_t at = 0, element, next;
        while (at < keeps[0].count && keeps[0].bits[at] == keeps[1].bits[at])
            at++;
        assert_true(at < keeps[0].count);
        const char *const name = view_name(&keeps[0], at, &element);
        if (strcmp(name, flip->first) != 0 || element != flip->element)
            fail_msg("%s: first %s, element %zu", flip->name, name, element);
        assert_true((keeps[0].bits[at] ^ keeps[1].bits[at]) == flip->mask);
        for (size_t j = at + 1; j < keeps[0].count && view_name(&keeps[0], j, &next) == name; j++)
            assert_true(keeps[0].bits[j] == keeps[1].bits[j]);
        bench_close(&benches[1]);
        bench_close(&benches[0]);
        arena_close(&arena);
    }
}

static void outcome_of(const char *training, const char *fault, struct helper_outcome *out) {
    struct bench bench;
    bench_open(&bench, training, fault);
    helper_outcome_of(&bench.run, UPDATES, out);
    bench_close(&bench);
}

/* A flip is named by tokens of samples, so that where they lie moves no bit of it. */
static void verify_layouts(void **state) {
    static const char *const layouts[] = {
        "batch: {size: 4, micro: 2}", "batch: {size: 4, micro: 2, pad: 3}",
        "batch: {size: 4, micro: 2, layout: concatenated}",
        "batch: {size: 4, micro: 2, padding: packed}, numerics: {threads: 2, isa: base}",
        "batch: {size: 4, micro: 2}, numerics: {backend: cuda, backend_module: " SHIM "}"};
    /* elements of the chosen side, and of the rejected one of the second sample */
    static const char *const faults[] = {
        "update: 2, micro: 2, layer: 0, op: v_proj, element: 40, bit: 21",
        "update: 2, micro: 2, layer: 1, op: down_proj, element: 600, bit: 20",
        "update: 2, op: lm_head, tensor: logits, element: 300, bit: 23",
        "update: 2, op: loss, tensor: coefficient, element: 9, bit: 24",
        "update: 2, phase: backward, layer: 1, op: attention, tensor: dK, element: 311, bit: 28",
        "update: 2, phase: optimize, op: lm_head.weight, tensor: exp_avg, element: 3, bit: 28"};
    (void)state;
    for (size_t f = 0; f < COUNT_OF(faults); f++) {
        struct helper_outcome clean, first;
        for (size_t l = 0; l < COUNT_OF(layouts); l++) {
            char training[512];
            struct helper_outcome other;
            snprintf(training, sizeof training, "task: dpo, model: {" SIZES "}, %s", layouts[l]);
            if (l == 0) outcome_of(training, "update: 0", &clean);
            outcome_of(training, faults[f], l == 0 ? &first : &other);
            if (l == 0) {
                assert_non_null(helper_outcome_gap(&clean, &first));
                continue;
            }
            const char *const gap = helper_outcome_gap(&first, &other);
            if (gap != NULL) fail_msg("%s, %s: %s differs", faults[f], layouts[l], gap);
        }
    }
}

/* The state law holds with a flip: what goes on from a snapshot flips the bit, too, also where
 * somebody has looked at the state before, and where the update that read a copy of the weights was
 * skipped and nothing else makes that copy anew. */
static void ignore_view(void *context, const struct watch_view *view) {
    (void)context;
    (void)view;
}

static void verify_snapshots(void **state) {
    (void)state;
    static const struct {
        const char *fault;
        uint64_t skipped;
    } cases[] = {
        {"update: 3, op: norm, element: 20, bit: 13", 0},
        {"update: 3, op: model.norm.weight, tensor: compute copy, bit: 14", 3},
        {"update: 3, phase: before-the-update, op: model.norm.weight, tensor: parameter, bit: 29",
         0}};
    for (size_t f = 0; f < COUNT_OF(cases); f++) {
        char training[512];
        struct bench benches[2];
        struct arena arena = ARENA_EMPTY;
        unsigned char *kept;
        snprintf(training, sizeof training, "%s, loop: {skip: nonfinite}", trainings[3]);
        for (int b = 0; b < 2; b++)
            bench_open(&benches[b], training, cases[f].fault);
        struct run *const never = &benches[0].run, *const again = &benches[1].run;
        const size_t bytes = run_layout(never)->bytes;
        assert_int_equal(arena_take(&arena, bytes, 1, "state", &kept), STATUS_OK);
        for (uint64_t k = 1; k <= UPDATES; k++) {
            struct watch watch = {.see = ignore_view, .arena = ARENA_EMPTY};
            assert_int_equal(run_snapshot(never, kept), STATUS_OK);
            assert_int_equal(run_restore(again, kept), STATUS_OK);
            watch_hang(again, &watch);
            watch_start(again);
            watch_hang(again, NULL);
            assert_int_equal(run_restore(again, kept), STATUS_OK);
            const struct record *const record = helper_step(never);
            assert_true(record_equal_roots(record, helper_step(again)));
            assert_memory_equal(run_state_host(never), run_state_host(again), bytes);
            assert_int_equal(record->integers[INTEGER_SKIPPED], k == cases[f].skipped);
        }
        arena_close(&arena);
        bench_close(&benches[1]);
        bench_close(&benches[0]);
    }
}

/* ---- the numbers of an activation's elements ---- */

struct place_of_element {
    uint32_t sample, side, position;
    size_t column;
};

/* Where element `number` is, counted as the key's help says: sample after sample, chosen before
 * rejected, without padding. */
static struct place_of_element place_of(const struct batch *batch, size_t width, size_t number) {
    for (uint32_t sample = batch->first_sample;; sample++)
        for (uint32_t side = 0; side < batch->sides; side++)
            for (uint32_t i = 0; i < batch->sequence_count; i++) {
                const struct sequence *sequence = &batch->sequences[i];
                if (sequence->sample != sample || sequence->side != side) continue;
                const size_t here = sequence->length * width;
                if (number < here)
                    return (struct place_of_element){sample, side, (uint32_t)(number / width),
                                                     number % width};
                number -= here;
            }
}

/* Keeps what q_proj of layer 0 wrote in the second micro-batch, by sample, side and position. */
enum { WIDE = 16, LONG = 16 };
static uint64_t written[2][8][2][LONG][WIDE];

static void keep_element(void *context, const struct watch_view *view) {
    if (view->op.label != LABEL_Q_PROJ || view->tensor.label != LABEL_OUTPUT || view->layer != 0 ||
        view->micro != 2 || view->stage != WATCH_PHASE + PHASE_FORWARD)
        return;
    for (uint32_t i = 0; i < watch_cells(view); i++) {
        const struct watch_cell cell = watch_cell_of(view, i);
        for (uint32_t r = 0; r < cell.rows; r++)
            for (size_t c = 0; c < view->width; c++)
                written[*(const int *)context][cell.sample][cell.side][r][c] =
                    watch_bits(view, watch_row(view, &cell, r), c);
    }
}

static void verify_numbers(void **state) {
    static const char *const layouts[] = {"", ", layout: concatenated", ", pad: 2"};
    (void)state;
    for (size_t l = 0; l < COUNT_OF(layouts); l++)
        for (size_t number = 5; number < 400; number += 97) {
            char training[256], fault[128];
            struct place_of_element expected = {0};
            memset(written, 0, sizeof written);
            for (int b = 0; b < 2; b++) {
                struct bench bench;
                struct watch watch = {.see = keep_element, .context = &b, .arena = ARENA_EMPTY};
                snprintf(training, sizeof training,
                         "task: dpo, model: {" SIZES "}, batch: {size: 4, micro: 2%s}", layouts[l]);
                snprintf(fault, sizeof fault,
                         "update: %d, micro: 2, layer: 0, op: q_proj, element: %zu, bit: 12", b,
                         number);
                bench_open(&bench, training, fault);
                watch_hang(&bench.run, &watch);
                helper_step(&bench.run);
                expected = place_of(run_batch(&bench.run), WIDE, number);
                bench_close(&bench);
            }
            for (uint32_t s = 0; s < 8; s++)
                for (uint32_t side = 0; side < 2; side++)
                    for (uint32_t p = 0; p < LONG; p++)
                        for (size_t c = 0; c < WIDE; c++)
                            assert_int_equal(written[0][s][side][p][c] != written[1][s][side][p][c],
                                             s == expected.sample && side == expected.side &&
                                                 p == expected.position && c == expected.column);
        }
}

/* ---- refusals ---- */

static void validate_refusals(void **state) {
    static const struct {
        int training;
        const char *fault, *path, *text;
    } cases[] = {
        {0, "update: 1", "fault.op", "expected an op of phase forward: "},
        {0, "update: 1, op: q_proj", "fault.op",
         "q_proj stands in layers: expected fault.layer with it, from 0 to 1"},
        {0, "update: 1, op: lm_head, layer: 0", "fault.op",
         "lm_head stands outside layers: expected fault.layer none, got 0"},
        {0, "update: 1, op: q_proj, layer: 2", "fault.layer",
         "expected none or a layer from 0 to 1, got 2"},
        {0, "update: 1, op: qproj, layer: 1", "fault.op", "did you mean q_proj?"},
        {0, "update: 1, op: input_layernorm, layer: 1", "fault.op",
         "expected an op of phase forward, layer 1: "},
        {0, "update: 1, op: attention, layer: 1, tensor: dQ", "fault.tensor",
         "expected what attention writes: output; got \"dQ\""},
        {0, "update: 1, phase: backward, op: attention, layer: 1, tensor: dq", "fault.tensor",
         "expected what attention writes: dQ, dK, dV; got \"dq\"; did you mean dQ?"},
        {0, "update: 1, phase: optimize, op: lm_head.weight, tensor: parameter, layer: 1",
         "fault.layer", "expected none with fault.phase optimize"},
        {0, "update: 1, phase: optimize, op: lm_head.weight, tensor: exp_avg_sqr", "fault.tensor",
         "did you mean exp_avg_sq?"},
        {0, "update: 1, phase: unscale, op: lm_head.weight, tensor: unscaled gradient", "fault.op",
         "expected an op of phase unscale: none runs; got"},
        {0, "update: 1, phase: optimize, op: lm_head.weight, tensor: parameter, element: 304",
         "fault.element", "lm_head.weight parameter has 304 elements: expected 0 to 303, got 304"},
        {0, "update: 1, op: norm, element: 512", "fault.element",
         "norm output has at most 512 elements: expected 0 to 511, got 512"},
        {0, "update: 1, op: norm, bit: 32", "fault.bit",
         "norm output is stored as f32: expected a bit from 0 to 31, got 32"},
        {2, "update: 1, op: norm, bit: 16", "fault.bit",
         "norm output is stored as bf16: expected a bit from 0 to 15, got 16"},
        {0, "update: 1, op: norm, micro: 3", "fault.micro",
         "expected a micro-batch from 1 to 2, got 3"},
        {0, "update: 1, phase: optimize, op: lm_head.weight, tensor: parameter, micro: 2",
         "fault.micro", "expected 1, because this happens once in an update: 1, got 2"},
        {1, "update: 1, phase: optimize, op: lm_head.weight, tensor: parameter", "fault.op",
         "lm_head.weight is tied: the tensor that is stored is model.embed_tokens.weight"},
        {5, "update: 1, phase: backward, layer: 0, op: q_proj, tensor: weight gradient",
         "fault.tensor", "numerics.mode order-free keeps exact sums there"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        const struct schema *schema;
        struct scenario *scenario;
        char text[2048];
        snprintf(text, sizeof text,
                 "twinstep: 1\nsteps: 4\ncommon: {data: {max_len: 16}, %s}\narms:\n  a: {}\n"
                 "  b:\n    fault: {%s}\n",
                 trainings[cases[i].training], cases[i].fault);
        assert_int_equal(schema_with_classes(&arena, &schema), STATUS_OK);
        const enum status status =
            scenario_parse(&arena, schema, "f.yaml", text, strlen(text), NULL, 0, &scenario);
        assert_int_equal(status, i + 1 == COUNT_OF(cases) ? STATUS_UNSUPPORTED : STATUS_INPUT);
        const int named = strstr(cases[i].fault, cases[i].path + strlen("fault.")) != NULL;
        if (strstr(status_text(), cases[i].text) == NULL ||
            strstr(status_text(), cases[i].path) == NULL ||
            strncmp(status_text(), named ? "f.yaml:7:" : "f.yaml: ", 8) != 0)
            fail_msg("{%s}: %s", cases[i].fault, status_text());
        arena_close(&arena);
    }
}

/* What only the data tell: the element behind the last token, and an update that is skipped. */
static void validate_absent(void **state) {
    static const struct {
        const char *fault, *more, *text;
    } cases[] = {
        {"update: 2, op: norm, element: 511", "", "fault.element: norm output has "},
        {"update: 2, phase: optimize, op: lm_head.weight, tensor: parameter",
         ", loop: {skip: nonfinite}, scaler: {kind: static, init_scale: 1e38}, "
         "numerics: {compute: f16}",
         "fault.update: update 2 did not write lm_head.weight parameter in micro-batch 1"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char training[512];
        struct bench bench;
        const struct record *record;
        snprintf(training, sizeof training, "%s%s", trainings[0], cases[i].more);
        bench_open(&bench, training, cases[i].fault);
        helper_step(&bench.run);
        assert_int_equal(run_step(&bench.run, &record), STATUS_INPUT);
        if (strncmp(status_text(), cases[i].text, strlen(cases[i].text)) != 0)
            fail_msg("%s", status_text());
        bench_close(&bench);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_list),     cmocka_unit_test(validate_flips),
        cmocka_unit_test(verify_layouts),  cmocka_unit_test(verify_snapshots),
        cmocka_unit_test(verify_numbers),  cmocka_unit_test(validate_refusals),
        cmocka_unit_test(validate_absent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
