/* SPDX-License-Identifier: Apache-2.0
 * Finds the tensor that section `fault` names, and flips the bit when a watch shows it.
 *
 * The flip hangs in as a watch of its own (model/watch.h) for the one update, in front of the watch
 * that hangs there already: so it sees each tensor when it has been written and before anything
 * reads it, on the host and on a device alike, whose memory the host may write. */
#include "trainer/corruption.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype_bits.h"
#include "base/element.h"
#include "model/model_ops.h"
#include "scenarios/scenario.h"
#include "scenarios/selection.h"
#include "scenarios/suggest.h"
#include "trainer/corruption_places.h"
#include "trainer/plugins/plugin.h"
#include "trainer/run_private.h"
#include "trainer/run_tensors.h"
#include "trainer/watch_run.h"

/* ---- the tensor by its name ---- */

/* How far the words of section `fault` lead: each step keeps the places that fit it, too. */
enum step { STEP_LAYER, STEP_OP, STEP_TENSOR, STEPS };

struct search {
    const struct config *config;
    enum step step;                /* the places that fit the steps before it are listed */
    uint32_t fitting;              /* places that fit all steps */
    struct corruption_place found; /* one of them */
    int elsewhere;    /* 1: the op stands in this phase in (or outside of) other layers */
    char listed[320]; /* what this step could be, without repeats */
    struct suggestion nearest;
};

static uint32_t layer_of(const struct config *config) {
    return config->fault.layer == KEY_WORD_UINT ? PASS_NO_LAYER : (uint32_t)config->fault.layer;
}

/* Adds a word to "a, b, c" once; words that no longer fit become "and others". */
static void list(char *out, size_t size, const char *word) {
    static const char others[] = " and others";
    const size_t used = strlen(out), length = strlen(word);
    for (const char *at = strstr(out, word); at != NULL; at = strstr(at + 1, word)) {
        const int begins = at == out || at[-1] == ' ';
        if (begins && (at[length] == ',' || at[length] == '\0')) return;
    }
    if (used >= sizeof others && strcmp(out + used + 1 - sizeof others, others) == 0) return;
    if (used + length + sizeof ", " + sizeof others > size)
        snprintf(out + used, size - used, "%s", others);
    else
        snprintf(out + used, size - used, "%s%s", used == 0 ? "" : ", ", word);
}

static void look(void *context, const struct corruption_place *place) {
    struct search *search = (struct search *)context;
    const struct config *config = search->config;
    const int layer = place->layer == layer_of(config);
    const int op = strcmp(place->op, config->fault.op) == 0;
    if (place->phase != (enum fault_phase)config->fault.phase) return;
    if (op && !layer) search->elsewhere = 1;
    if (!layer) return;
    if (search->step == STEP_OP) {
        list(search->listed, sizeof search->listed, place->op);
        suggest_offer(&search->nearest, place->op);
    }
    if (search->step > STEP_LAYER && !op) return;
    if (search->step == STEP_TENSOR) {
        list(search->listed, sizeof search->listed, place->tensor);
        suggest_offer(&search->nearest, place->tensor);
        if (strcmp(place->tensor, config->fault.tensor) != 0) return;
    }
    search->fitting++;
    search->found = *place;
}

static void search_for(const struct corruption_source *source, enum step step, const char *word,
                       struct search *out) {
    memset(out, 0, sizeof *out);
    out->config = source->config;
    out->step = step;
    out->nearest.word = word;
    corruption_places(source, look, out);
}

static const char *phase_word(const struct config *config) {
    return schema_find("fault.phase", NULL)->names[config->fault.phase];
}

static enum status refuse_layer(const struct config *config, struct fault *fault) {
    if (config->fault.phase != FAULT_AT_FORWARD && config->fault.phase != FAULT_AT_BACKWARD)
        return fault_set(fault, STATUS_INPUT, "fault.layer",
                         "expected none with fault.phase %s, whose tensors are named in full "
                         "(model.layers.1.mlp.up_proj.weight), got %" PRIu64,
                         phase_word(config), config->fault.layer);
    return fault_set(fault, STATUS_INPUT, "fault.layer",
                     "expected none or a layer from 0 to %" PRIu64 ", got %" PRIu64,
                     config->model.layers - 1, config->fault.layer);
}

static enum status refuse_op(const struct corruption_source *source, const struct search *search,
                             struct fault *fault) {
    const struct config *config = source->config;
    char hint[SUGGEST_HINT_SIZE], layer[64] = "";
    for (uint32_t i = 0; i < source->table->count; i++) {
        const struct param_row *row = &source->table->rows[i];
        if (row->tied_to >= 0 && strcmp(row->name, config->fault.op) == 0)
            return fault_set(fault, STATUS_INPUT, "fault.op",
                             "%s is tied: the tensor that is stored is %s", row->name,
                             source->table->rows[row->tied_to].name);
    }
    if (search->elsewhere && config->fault.layer == KEY_WORD_UINT)
        return fault_set(fault, STATUS_INPUT, "fault.op",
                         "%s stands in layers: expected fault.layer with it, from 0 to %" PRIu64,
                         config->fault.op, config->model.layers - 1);
    if (search->elsewhere)
        return fault_set(fault, STATUS_INPUT, "fault.op",
                         "%s stands outside layers: expected fault.layer none, got %" PRIu64,
                         config->fault.op, config->fault.layer);
    if (config->fault.layer != KEY_WORD_UINT)
        snprintf(layer, sizeof layer, ", layer %" PRIu64, config->fault.layer);
    return fault_set(fault, STATUS_INPUT, "fault.op",
                     "expected an op of phase %s%s: %s; got \"%s\"%s", phase_word(config), layer,
                     search->listed[0] == '\0' ? "none runs" : search->listed, config->fault.op,
                     suggest_hint(&search->nearest, hint));
}

static enum status refuse_tensor(const struct config *config, const struct search *search,
                                 struct fault *fault) {
    char hint[SUGGEST_HINT_SIZE];
    return fault_set(fault, STATUS_INPUT, "fault.tensor",
                     "expected what %s writes: %s; got \"%s\"%s", config->fault.op, search->listed,
                     config->fault.tensor, suggest_hint(&search->nearest, hint));
}

/* Gradients of weights in exact sums are words that no dtype has. */
static enum status refuse_exact(const struct config *config, struct fault *fault) {
    static const char *const sums[] = {"weight gradient", "bias gradient",
                                       "weight gradient, second use"};
    for (size_t i = 0; i < COUNT_OF(sums); i++)
        if (config->numerics.mode == MODE_ORDER_FREE && config->fault.phase == FAULT_AT_BACKWARD &&
            strcmp(config->fault.tensor, sums[i]) == 0)
            return fault_set(fault, STATUS_UNSUPPORTED, "fault.tensor",
                             "%s: numerics.mode order-free keeps exact sums there, whose words are "
                             "no number of a dtype; expected gradient, the one that is closed",
                             config->fault.tensor);
    return STATUS_OK;
}

static enum status find_place(const struct corruption_source *source, struct fault *fault,
                              struct corruption_place *out) {
    const struct config *config = source->config;
    struct search search;
    search_for(source, STEP_LAYER, "", &search);
    if (search.fitting == 0 && config->fault.layer != KEY_WORD_UINT)
        return refuse_layer(config, fault);
    search_for(source, STEP_OP, config->fault.op, &search);
    if (search.fitting == 0) return refuse_op(source, &search, fault);
    TRY(refuse_exact(config, fault));
    search_for(source, STEP_TENSOR, config->fault.tensor, &search);
    if (search.fitting == 0) return refuse_tensor(config, &search, fault);
    *out = search.found;
    return STATUS_OK;
}

/* ---- micro-batch, element, bit ---- */

/* How many elements the tensor has at most: an activation has those of the tokens that there are,
 * which only the data tell. */
static uint64_t most_elements(const struct config *config, const struct corruption_place *place) {
    const uint64_t sides = config->task == TASK_DPO ? 2 : 1;
    if (place->axis == WATCH_WHOLE) return place->count;
    return config->batch.micro * sides * config->data.max_len * place->count;
}

static enum status check_numbers(const struct config *config, const struct corruption_place *place,
                                 struct fault *fault) {
    const uint64_t micros = place->repeats ? batch_micro_batches(config) : 1;
    const uint64_t most = most_elements(config, place);
    const uint64_t bits = 8 * (uint64_t)dtype_width(place->dtype);
    if (config->fault.micro > micros)
        return fault_set(fault, STATUS_INPUT, "fault.micro", "expected %s%" PRIu64 ", got %" PRIu64,
                         place->repeats && micros > 1 ? "a micro-batch from 1 to "
                         : place->repeats             ? "the only micro-batch, "
                                          : "1, because this happens once in an update: ",
                         micros, config->fault.micro);
    if (config->fault.element >= most)
        return fault_set(fault, STATUS_INPUT, "fault.element",
                         "%s %s has %s%" PRIu64 " elements: expected 0 to %" PRIu64
                         ", got %" PRIu64,
                         place->op, place->tensor, place->axis == WATCH_WHOLE ? "" : "at most ",
                         most, most - 1, config->fault.element);
    if (config->fault.bit >= bits)
        return fault_set(
            fault, STATUS_INPUT, "fault.bit",
            "%s %s is stored as %s: expected a bit from 0 to %" PRIu64 ", got %" PRIu64, place->op,
            place->tensor, dtype_name(place->dtype), bits - 1, config->fault.bit);
    return STATUS_OK;
}

static enum status check_in(const struct config *config, struct arena *arena, struct fault *fault) {
    const struct sched_class *schedule;
    struct param_table table;
    struct state_layout layout;
    struct corruption_place place;
    struct corruption_source source = {.config = config, .table = &table, .layout = &layout};
    TRY(plugin_optimizer(&config->optimizer.which, &source.optimizer));
    TRY(plugin_schedule(&config->schedule.which, &schedule));
    TRY(params_open(config, arena, &table));
    TRY(state_layout_open(config, &table, source.optimizer, schedule, 0, 0, arena, &layout));
    TRY(find_place(&source, fault, &place));
    return check_numbers(config, &place, fault);
}

enum status corruption_check(const struct config *config, struct fault *fault) {
    struct arena arena = ARENA_EMPTY;
    if (config->fault.update == 0) return STATUS_OK;
    const enum status status = check_in(config, &arena, fault);
    arena_close(&arena);
    return status;
}

enum status corruption_validate(const struct config *config) {
    struct fault fault = {.status = STATUS_OK};
    const enum status status = corruption_check(config, &fault);
    if (status == STATUS_OK || fault.path == NULL) return status;
    FAIL(status, "%s: %s", fault.path, fault.text);
}

/* ---- the flip ---- */

struct corruption {
    struct corruption_place place;
    struct run *run;
    struct watch watch, *hung; /* hung: the watch that was there before */
    int active;                /* this update is the one */
    int flipped;               /* in this update, or by corruption_start before it */
    uint64_t met;              /* how often the update wrote the tensor so far */
    uint64_t elements;         /* what the tensor turned out to have, where it has too few */
};

static void flip(const struct corruption_place *place, enum dtype carrier, uint64_t bit,
                 void *values, size_t at) {
    /* Log-probs and coefficients are kept in f64 and hold numbers of numerics.loss. */
    double number[1] = {0.0};
    void *const own = place->dtype == carrier ? NULL : (void *)number;
    if (own == NULL) {
        dtype_set_bits(values, carrier, at, dtype_bits(values, carrier, at) ^ UINT64_C(1) << bit);
        return;
    }
    element_set(own, place->dtype, 0, element_get(values, carrier, at));
    dtype_set_bits(own, place->dtype, 0, dtype_bits(own, place->dtype, 0) ^ UINT64_C(1) << bit);
    element_set(values, carrier, at, element_get(own, place->dtype, 0));
}

/* Finds the row of an activation: sequences in canonical order, so that neither padding nor layout
 * moves the number of an element. Returns 0 where this call wrote other sequences. */
static int find_row(struct corruption *c, const struct watch_view *view, size_t *out_at) {
    const struct batch *batch = view->batch;
    const uint64_t wanted = c->run->config.fault.element;
    uint64_t before = 0;
    for (uint32_t i = 0; i < batch->sequence_count; i++) {
        const uint32_t sequence = batch->canonical_sequence[i];
        const uint64_t rows = view->axis == WATCH_LABELS ? batch->label_length[sequence]
                                                         : batch->sequences[sequence].length;
        const uint64_t here = rows * view->width;
        if (wanted >= before + here) {
            before += here;
            continue;
        }
        if (sequence < view->first_sequence ||
            sequence >= view->first_sequence + view->sequence_count)
            return 0;
        const struct watch_cell cell = watch_cell_of(view, sequence - view->first_sequence);
        const unsigned char *const row = (const unsigned char *)watch_row(
            view, &cell, (uint32_t)((wanted - before) / view->width));
        *out_at = (size_t)(row - (const unsigned char *)view->data) / watch_element(view) +
                  (size_t)((wanted - before) % view->width);
        return 1;
    }
    c->elements = before;
    return 0;
}

static int names(const struct corruption *c, const struct watch_view *view) {
    static const int phases[] = {[FAULT_AT_FORWARD] = PHASE_FORWARD,
                                 [FAULT_AT_BACKWARD] = PHASE_BACKWARD,
                                 [FAULT_AT_UNSCALE] = PHASE_UNSCALE,
                                 [FAULT_AT_CLIP] = PHASE_CLIP,
                                 [FAULT_AT_OPTIMIZE] = PHASE_OPTIMIZE};
    const struct corruption_place *place = &c->place;
    return place->phase != FAULT_AT_START && view->kind == WATCH_REALS &&
           (int)view->stage == WATCH_PHASE + phases[place->phase] && view->layer == place->layer &&
           strcmp(view->op.text, place->op) == 0 && strcmp(view->tensor.text, place->tensor) == 0;
}

/* Whether this is the micro-batch: as the view says, or as the tensor's n-th writing, where the
 * view knows of none. */
static int is_turn(struct corruption *c, const struct watch_view *view) {
    const uint64_t micro = c->run->config.fault.micro;
    c->met++;
    if (!c->place.repeats) return 1;
    return view->micro == 0 ? c->met == micro : view->micro == micro;
}

static void see(void *context, const struct watch_view *view) {
    struct corruption *c = (struct corruption *)context;
    size_t at = (size_t)c->run->config.fault.element;
    if (!c->flipped && names(c, view) && is_turn(c, view) &&
        (view->axis == WATCH_WHOLE || find_row(c, view, &at))) {
        flip(&c->place, view->dtype, c->run->config.fault.bit, view->data, at);
        c->flipped = 1;
    }
    if (c->hung != NULL) watch_hand_on(c->hung, view);
}

enum status corruption_open(struct run *run) {
    const struct corruption_source source = {.config = &run->config,
                                             .table = &run->table,
                                             .optimizer = run->optimizer,
                                             .layout = &run->layout};
    struct fault fault = {.status = STATUS_OK};
    if (run->config.fault.update == 0) return STATUS_OK;
    TRY(arena_take(&run->arena, 1, sizeof *run->corruption, "run", &run->corruption));
    run->corruption->run = run;
    enum status status = find_place(&source, &fault, &run->corruption->place);
    if (status == STATUS_OK) status = check_numbers(&run->config, &run->corruption->place, &fault);
    if (status == STATUS_OK || fault.path == NULL) return status;
    FAIL(status, "%s: %s", fault.path, fault.text);
}

static int is_update(struct run *run) {
    return run->corruption != NULL && run_head(run)->done + 1 == run->config.fault.update;
}

enum status corruption_start(struct run *run) {
    struct corruption *c = run->corruption;
    if (!is_update(run) || c->flipped || c->place.phase != FAULT_AT_START) return STATUS_OK;
    const struct state_tensor *tensor = &run->layout.tensor[c->place.row];
    const int is_master = strcmp(c->place.tensor, watch_named(LABEL_MASTER).text) == 0;
    const size_t at = c->place.slot >= 0 ? tensor->slot[c->place.slot]
                      : is_master        ? tensor->master
                                         : tensor->param;
    const struct form form = c->place.slot >= 0 ? run->layout.slots : form_carried(c->place.dtype);
    void *const element = form_place(run_at(run, at), form, (size_t)run->config.fault.element);
    double carrier[1];
    void *values;
    TRY(run_read(run, WINDOW_NOW, element, form.width, &values));
    form_widen(values, form, 1, carrier);
    flip(&c->place, c->place.dtype, run->config.fault.bit, carrier, 0);
    form_narrow(carrier, form, 1, values);
    TRY(run_store(run, WINDOW_NOW, element, form.width));
    c->flipped = 1;
    run->weights_fresh = 0;
    return STATUS_OK;
}

/* Copies of the weights are made anew in this update, whatever came before it, and again behind it:
 * a copy in which a bit has flipped is no state. */
enum status corruption_begin(struct run *run) {
    struct corruption *c = run->corruption;
    if (!is_update(run)) return STATUS_OK;
    TRY(corruption_start(run));
    c->active = 1;
    c->met = c->elements = 0;
    c->hung = run->model.watch;
    c->watch = (struct watch){.see = see, .context = c, .arena = ARENA_EMPTY};
    run->weights_fresh = 0;
    watch_hang(run, &c->watch);
    return STATUS_OK;
}

static enum status refuse_absent(const struct corruption *c) {
    const struct config *config = &c->run->config;
    const uintmax_t update = (uintmax_t)config->fault.update;
    if (c->elements > 0)
        FAIL(STATUS_INPUT,
             "fault.element: %s %s has %ju elements in micro-batch %ju of update %ju: expected 0 "
             "to %ju, got %ju",
             c->place.op, c->place.tensor, (uintmax_t)c->elements, (uintmax_t)config->fault.micro,
             update, (uintmax_t)c->elements - 1, (uintmax_t)config->fault.element);
    FAIL(STATUS_INPUT,
         "fault.update: update %ju did not write %s %s in micro-batch %ju, so no bit could flip "
         "there: it was skipped, or had fewer micro-batches",
         update, c->place.op, c->place.tensor, (uintmax_t)config->fault.micro);
}

enum status corruption_end(struct run *run, enum status status) {
    struct corruption *c = run->corruption;
    if (c == NULL || !c->active) return status;
    const int flipped = c->flipped;
    watch_hang(run, c->hung);
    arena_close(&c->watch.arena);
    if (c->hung != NULL) {
        c->hung->update = c->watch.update;
        c->hung->stage = c->watch.stage;
        c->hung->micro = c->watch.micro;
        if (c->hung->status == STATUS_OK) c->hung->status = c->watch.status;
    }
    c->active = c->flipped = 0;
    run->weights_fresh = 0;
    if (status != STATUS_OK) return status;
    if (c->watch.status != STATUS_OK) return c->watch.status;
    return flipped ? STATUS_OK : refuse_absent(c);
}

void corruption_forget(struct run *run) {
    if (run->corruption != NULL) run->corruption->flipped = 0;
}
