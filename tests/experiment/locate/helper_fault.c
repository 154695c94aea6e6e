/* SPDX-License-Identifier: Apache-2.0
 * Draws a fault, plants it in one of two equal trainings, has the difference located, and scores
 * what was found. Trainings and faults come from addressed streams, by number. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/experiment/locate/helper_fault.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "determinism/philox.h"
#include "experiment/locate/locate_words.h"
#include "tests/trainer/helper_train.h"
#include "trainer/watch_run.h"

enum { UPDATES = 3, EVENTS_MOST = 4096, KINDS = 9 };

#define MODEL "init: {std: 0.3}, optimizer: {lr: 1e-3}, "
#define TINY "layers: 3, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 19"
#define DROPS ", dropout: {embedding: 0.1, attention: 0.2, residual: 0.3}"

/* The trainings in which faults are planted. Where bits allow it the other arm has another layout:
 * its keys change no bit of a training. */
static const struct kind {
    const char *common, *other;
    int split; /* into other micro-batches */
} kinds[KINDS] = {
    {MODEL "task: sft, model: {" TINY "}, batch: {size: 4, micro: 2}", "", 0},
    {MODEL "model: {" TINY "}, batch: {size: 4, micro: 2", ", pad: 3, layout: concatenated", 0},
    {MODEL "model: {family: llama, " TINY "}, batch: {size: 4, micro: 4", ", layout: separate", 0},
    {MODEL "model: {" TINY ", tied: true}, batch: {size: 4, micro: 2}, numerics: {compute: bf16}",
     "", 0},
    {MODEL "model: {" TINY "}, numerics: {param: bf16, master: f32, compute: bf16}, "
           "batch: {size: 2, micro: 2}",
     "", 0},
    {MODEL "model: {" TINY "}, batch: {size: 4, micro: 2}" DROPS, "", 0},
    {MODEL "task: sft, model: {" TINY "}, batch: {size: 4, micro: 2}, rng: {kind: torch, sms: 1, "
           "threads_per_sm: 256}" DROPS,
     "", 0},
    {MODEL "task: sft, model: {" TINY "}, numerics: {mode: shuffled, order_seed: 5}, "
           "shuffle: {chunk: 4}, clip: {max_norm: 0.1}, batch: {size: 4, micro: 2}",
     "", 0},
    {MODEL "model: {" TINY "}, batch: {size: 4", ", micro: 2, pad: 1", 1},
};

/* The place of a fault and, once it is planted, the values before and after. */
struct label {
    uint64_t update;
    uint32_t event, cell, row; /* in the disturbed training's own order */
    size_t column;
    enum fault_change change;
    uint32_t vocab;
    int split; /* the other training has other micro-batches */
    int planted;
    struct locate_key key; /* stage, layer, op, tensor */
    char op[128], tensor[64];
    uint32_t micro, sample, side, position;
    uint64_t before, after;
};

struct injector {
    struct watch watch;
    struct label *label;
    uint32_t event;
};

/* Draws from the first view of an update. */
static int begins(const struct watch_view *view) {
    return view->stage == WATCH_PHASE + (int)PHASE_FETCH && view->micro == 1 &&
           view->tensor.label == LABEL_TOKENS;
}

static int outside(const struct watch_view *view) {
    return view->stage == WATCH_START || view->stage == WATCH_END || view->stage == WATCH_REFERENCE;
}

static void change_words(const struct label *label, enum watch_kind kind, void *at) {
    if (kind == WATCH_WORDS) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        word ^= UINT64_C(1) << (label->change * 7 + 2);
        memcpy(at, &word, sizeof word);
    } else {
        uint32_t *id = (uint32_t *)at;
        *id = (*id + 1 + (uint32_t)label->change) % label->vocab;
    }
}

/* Moves a value by one or by 37 steps of its dtype's grid, or changes its sign. The grid of bf16 is
 * that of f32 without its 16 low bits. */
static void change_real(const struct label *label, enum dtype dtype, void *at) {
    const int64_t steps[FAULT_CHANGES] = {1, -1, 37, 0};
    if (dtype == DTYPE_F64) {
        uint64_t bits;
        memcpy(&bits, at, sizeof bits);
        bits = label->change == FAULT_SIGN ? bits ^ UINT64_C(1) << 63
                                           : bits + (uint64_t)steps[label->change];
        memcpy(at, &bits, sizeof bits);
        return;
    }
    const int shift = dtype == DTYPE_BF16 ? 16 : 0;
    uint32_t bits;
    assert_true(dtype == DTYPE_BF16 || dtype == DTYPE_F32);
    memcpy(&bits, at, sizeof bits);
    bits = label->change == FAULT_SIGN ? bits ^ UINT32_C(1) << 31
                                       : bits + ((uint32_t)steps[label->change] << shift);
    memcpy(at, &bits, sizeof bits);
}

static void plant(struct label *label, const struct watch_view *view) {
    const struct watch_cell cell = watch_cell_of(view, label->cell);
    const unsigned char *row = (const unsigned char *)watch_row(view, &cell, label->row);
    unsigned char *at = (unsigned char *)view->data + (row - (const unsigned char *)view->data) +
                        label->column * watch_element(view);
    label->planted = 1;
    snprintf(label->op, sizeof label->op, "%s", view->op.text);
    snprintf(label->tensor, sizeof label->tensor, "%s", view->tensor.text);
    label->key = (struct locate_key){.stage = view->stage,
                                     .layer = view->layer,
                                     .op = {view->op.label, label->op},
                                     .tensor = {view->tensor.label, label->tensor}};
    label->micro = view->micro;
    label->sample = cell.sample;
    label->side = cell.side;
    label->position = watch_position(view, &cell, label->row);
    label->before = watch_bits(view, row, label->column);
    if (view->kind == WATCH_REALS)
        change_real(label, view->dtype, at);
    else
        change_words(label, view->kind, at);
    label->after = watch_bits(view, row, label->column);
}

static void inject(void *context, const struct watch_view *view) {
    struct injector *injector = (struct injector *)context;
    if (outside(view)) return;
    if (begins(view)) injector->event = 0;
    if (view->update == injector->label->update && injector->event == injector->label->event)
        plant(injector->label, view);
    injector->event++;
}

/* Lists what can be disturbed in one update. */
struct seen {
    enum fault_class class_;
    uint32_t event, cells;
};

struct surveyor {
    struct watch watch;
    uint64_t seed;
    uint32_t number;
    uint64_t update;
    uint32_t event, count;
    enum fault_class wanted;
    struct label *label;
    uint32_t draws;
    int split;
};

static uint32_t draw(struct surveyor *surveyor, uint32_t bound) {
    const struct philox_block counter = {{surveyor->number, surveyor->draws++, 77, 0}};
    return (uint32_t)(((uint64_t)philox_draw(counter, surveyor->seed).word[0] * bound) >> 32);
}

/* Returns the class of a view, or FAULT_CLASSES where it has none. A logged number, a counter and
 * what only a record holds disturb no training; an LR that `schedule` sets acts in the next update,
 * where it is applied. */
static enum fault_class class_of(const struct watch_view *view) {
    if (view->kind == WATCH_MASK || outside(view)) return FAULT_CLASSES;
    if (view->kind == WATCH_WORDS)
        return view->stage == WATCH_PHASE + (int)PHASE_FORWARD ? FAULT_RNG : FAULT_CLASSES;
    switch ((int)view->stage - WATCH_PHASE) {
    case PHASE_FETCH:
        return FAULT_DATA;
    case PHASE_FORWARD:
        return FAULT_FORWARD;
    case PHASE_BACKWARD:
        return FAULT_BACKWARD;
    case PHASE_CLIP:
    case PHASE_OPTIMIZE:
        return view->parameter == WATCH_NO_PARAMETER ? FAULT_CLASSES : FAULT_OPTIMIZER;
    default:
        return FAULT_CLASSES;
    }
}

/* Keeps one view of the class, each with equal chance, and one of its elements. */
static void survey(void *context, const struct watch_view *view) {
    struct surveyor *surveyor = (struct surveyor *)context;
    if (outside(view)) return;
    if (begins(view)) surveyor->event = 0;
    const uint32_t event = surveyor->event++;
    if (view->update != surveyor->update || class_of(view) != surveyor->wanted) return;
    if (surveyor->split && view->covered % 4 != 0) return; /* a sum that the other never holds */
    if (draw(surveyor, ++surveyor->count) != 0) return;
    struct label *label = surveyor->label;
    label->update = surveyor->update;
    label->event = event;
    label->cell = draw(surveyor, watch_cells(view));
    const struct watch_cell cell = watch_cell_of(view, label->cell);
    label->row = draw(surveyor, cell.rows);
    label->column = draw(surveyor, (uint32_t)view->width);
    if (surveyor->wanted == FAULT_RNG) label->column = 0; /* the seed */
}

static void train(const struct config *config, struct watch *watch, struct digest *out) {
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    struct run run;
    struct digest_stream stream;
    const struct run_options options = {
        .readback = 1, .steps = UPDATES, .order_seed = config->numerics.order_seed};
    helper_data_open(config, &arena, &dataset);
    helper_run_open(config, &dataset, &options, &run);
    watch_hang(&run, watch);
    for (int k = 0; k < UPDATES; k++)
        helper_step(&run);
    digest_stream_init(&stream, "params");
    for (uint32_t i = 0; i < run.owner_count; i++) {
        struct digest item;
        const struct param_row *row = &run.table.rows[run.owner[i]];
        digest_bytes("p", run_param(&run, run.owner[i]), row->count * dtype_carrier(row->dtype),
                     &item);
        digest_stream_add(&stream, &item);
    }
    digest_stream_close(&stream, out);
    run_close(&run);
    arena_close(&arena);
}

/* Writes samples of both tasks, which are there as long as faults are looked for. */
struct files {
    char pairs[HELPER_PATH_SIZE], text[HELPER_PATH_SIZE];
};

static void configure(const struct files *files, uint32_t kind, int other, struct config *out) {
    const int layouts = kinds[kind].other[0] != '\0';
    helper_config(UPDATES, out, "data: {max_len: 16, pairs: %s, text: %s}, %s%s%s", files->pairs,
                  files->text, kinds[kind].common, other ? kinds[kind].other : "",
                  layouts ? "}" : ""); /* list `batch` is open */
}

/* Finds a label of the class in this kind of training; 0: it has nothing of the class. */
static int draw_label(uint64_t seed, uint32_t number, const struct config *config,
                      enum fault_class class_, int split, struct label *out) {
    struct surveyor surveyor = {
        .seed = seed, .number = number, .wanted = class_, .label = out, .split = split};
    struct digest params;
    memset(out, 0, sizeof *out);
    surveyor.update = 1 + draw(&surveyor, UPDATES);
    out->change = (enum fault_change)draw(&surveyor, FAULT_CHANGES);
    out->split = split;
    out->vocab = (uint32_t)config->model.vocab;
    surveyor.watch = (struct watch){.see = survey, .context = &surveyor, .arena = ARENA_EMPTY};
    train(config, &surveyor.watch, &params);
    arena_close(&surveyor.watch.arena);
    return surveyor.count > 0;
}

static int same_tensor(const struct label *label, const struct locate_result *result) {
    const struct locate_key *key = result->first.key;
    return key != NULL && result->update == label->update && key->stage == label->key.stage &&
           key->layer == label->key.layer && strcmp(key->op.text, label->op) == 0 &&
           strcmp(key->tensor.text, label->tensor) == 0 &&
           (result->micro == label->micro || label->split);
}

static int same_element(const struct label *label, const struct locate_result *result) {
    const struct locate_element *element = &result->element;
    return result->value && element->sample == label->sample && element->side == label->side &&
           element->position == label->position && element->column == label->column &&
           element->a == label->before && element->b == label->after;
}

static void print_miss(uint32_t number, const struct label *label,
                       const struct locate_result *result) {
    printf("fault %u: update %ju, %s, sample %u side %u position %u column %zu\n  found: ", number,
           (uintmax_t)label->update, locate_place(&label->key, label->micro).text, label->sample,
           label->side, label->position, label->column);
    if (result->undecided != NULL)
        printf("undecided: %s\n", result->undecided);
    else if (result->first.key == NULL)
        printf("update %ju, nothing\n", (uintmax_t)result->update);
    else
        printf("update %ju, %s, [%s]: %s\n", (uintmax_t)result->update,
               locate_place(result->first.key, result->micro).text, locate_address(result).text,
               locate_values(result).text);
}

static void look_for(const struct config configs[2], struct watch *before, struct arena *arena,
                     struct locate_result *out) {
    const struct locate_request request = {
        .sides = {{.name = "a", .config = &configs[0]}, {.name = "b", .config = &configs[1]}},
        .steps = UPDATES,
        .before = {NULL, before}};
    const enum status status = locate_first_difference(&request, arena, out);
    if (status != STATUS_OK) fail_msg("status %d: %s", (int)status, status_text());
}

static void add_score(struct fault_score *score, int found, int exact, int element) {
    score->faults++;
    score->found += (uint32_t)found;
    score->exact += (uint32_t)exact;
    score->element += (uint32_t)element;
}

struct trial {
    uint64_t seed;
    uint32_t number, attempt;
    enum fault_class class_;
    uint32_t kind;
    const struct files *files;
};

/* Returns 0 where the fault was no difference, or this kind of training has none of the class. */
static int try_fault(const struct trial *trial, struct fault_score *by_class,
                     struct fault_score *by_change, struct fault_score *total) {
    struct config configs[2];
    struct label label;
    struct arena arena = ARENA_EMPTY;
    struct locate_result result;
    configure(trial->files, trial->kind, 0, &configs[0]);
    configure(trial->files, trial->kind, 1, &configs[1]);
    if (!draw_label(trial->seed, trial->number * 64 + trial->attempt, &configs[1], trial->class_,
                    kinds[trial->kind].split, &label))
        return 0;
    struct injector injector = {.label = &label};
    injector.watch = (struct watch){.see = inject, .context = &injector, .arena = ARENA_EMPTY};
    look_for(configs, &injector.watch, &arena, &result);
    assert_true(label.planted);
    if (result.update == 0 && result.undecided == NULL) {
        struct digest clean, faulty;
        train(&configs[1], NULL, &clean);
        train(&configs[1], &injector.watch, &faulty);
        assert_int_equal(digest_compare(&clean, &faulty), 0);
        total->redrawn++;
        by_class[trial->class_].redrawn++;
        by_change[label.change].redrawn++;
        arena_close(&injector.watch.arena);
        arena_close(&arena);
        return 0;
    }
    const int exact = same_tensor(&label, &result);
    const int element = exact && same_element(&label, &result);
    add_score(total, result.update > 0, exact, element);
    add_score(&by_class[trial->class_], result.update > 0, exact, element);
    add_score(&by_change[label.change], result.update > 0, exact, element);
    if (!element) print_miss(trial->number, &label, &result);
    arena_close(&injector.watch.arena);
    arena_close(&arena);
    return 1;
}

void helper_faults(uint64_t seed, uint32_t first, uint32_t count,
                   struct fault_score by_class[FAULT_CLASSES],
                   struct fault_score by_change[FAULT_CHANGES], struct fault_score *total) {
    struct files files;
    helper_ids_write(TASK_DPO, 19, seed, 24, 14, files.pairs);
    helper_ids_write(TASK_SFT, 19, seed, 24, 14, files.text);
    for (uint32_t i = first; i < first + count; i++) {
        struct trial trial = {
            .seed = seed, .number = i, .class_ = (enum fault_class)(i % 5), .files = &files};
        int done = 0;
        for (uint32_t attempt = 0; attempt < 64 && !done; attempt++) {
            trial.attempt = attempt;
            trial.kind = (i / 5 + attempt) % KINDS;
            if (trial.class_ == FAULT_RNG) trial.kind = 5 + (i / 5 + attempt) % 2;
            done = try_fault(&trial, by_class, by_change, total);
        }
        assert_true(done);
    }
    unlink(files.pairs);
    unlink(files.text);
}

static void print_row(const char *name, const struct fault_score *score) {
    printf("%-24s %6u %9u %9u %9u %9u\n", name, score->faults, score->found, score->exact,
           score->element, score->redrawn);
}

void helper_faults_print(const struct fault_score by_class[FAULT_CLASSES],
                         const struct fault_score by_change[FAULT_CHANGES],
                         const struct fault_score *total) {
    static const char *const classes[FAULT_CLASSES] = {"forward", "backward", "optimizer",
                                                       "random numbers", "data"};
    static const char *const changes[FAULT_CHANGES] = {"1 ulp up", "1 ulp down", "37 ulp", "sign"};
    printf("%-24s %6s %9s %9s %9s %9s\n", "", "faults", "found", "tensor", "element", "redrawn");
    for (int c = 0; c < FAULT_CLASSES; c++)
        print_row(classes[c], &by_class[c]);
    for (int c = 0; c < FAULT_CHANGES; c++)
        print_row(changes[c], &by_change[c]);
    print_row("all", total);
}
