/* SPDX-License-Identifier: Apache-2.0
 * Finds the update, reaches the state before it, watches it twice. */
#include "trainer/locate.h"

#include <math.h>
#include <string.h>

#include "determinism/chain.h"
#include "trainer/signature_gather.h"
#include "trainer/snapshot.h"
#include "trainer/watch_run.h"

struct side {
    struct dataset dataset;
    struct run run;
    int open;
    unsigned char *state; /* before the update */
    struct digest root;   /* after it */
    struct locate_cells *cells[2];
};

/* What a watched update calls: the caller's watch, digests, sums for signatures. */
struct looking {
    struct watch *before;
    struct locate_cells *cells;
    struct signature_gather *gather;
};

struct locating {
    const struct locate_request *request;
    struct arena *arena;
    struct locate_result *out;
    struct side sides[2];
    struct signature_gather gather;
    uint64_t done, total;
};

static enum status check_interrupt(const struct locating *l) {
    if (l->request->interrupted != NULL && *l->request->interrupted)
        FAIL(STATUS_INTERRUPTED, "interrupted after %ju updates", (uintmax_t)l->done);
    return STATUS_OK;
}

static enum status step(struct locating *l, int which, const struct record **out) {
    struct side *side = &l->sides[which];
    TRY(check_interrupt(l));
    const enum status status = run_step(&side->run, out);
    if (status != STATUS_OK) return status_prefix(status, "%s", l->request->sides[which].name);
    l->done++;
    const struct locate_progress progress = {l->done, l->total};
    if (l->request->progress != NULL) l->request->progress(l->request->context, &progress);
    return STATUS_OK;
}

static enum status open_side(struct locating *l, int which) {
    const struct locate_side *asked = &l->request->sides[which];
    struct side *side = &l->sides[which];
    const struct dataset_options source = run_dataset_options(asked->config);
    const struct run_options options = {.readback = 1,
                                        .steps = l->request->steps,
                                        .order_seed = asked->config->numerics.order_seed};
    enum status status = dataset_open(&source, l->arena, &side->dataset);
    if (status == STATUS_OK) status = run_open(asked->config, &side->dataset, &options, &side->run);
    if (status != STATUS_OK) return status_prefix(status, "%s", asked->name);
    side->open = 1;
    if (l->request->before[which] != NULL) watch_hang(&side->run, l->request->before[which]);
    return arena_take(l->arena, side->run.layout.bytes, 1, "state before the update", &side->state);
}

static const uint8_t *root_of(const struct record *record) {
    return record->digests[DIGEST_ROOT];
}

static int equal_roots(const struct record *a, const struct record *b) {
    return memcmp(root_of(a), root_of(b), DIGEST_BYTES) == 0;
}

/* Both side by side up to the first update whose roots differ. */
static enum status train_together(struct locating *l) {
    struct locate_result *out = l->out;
    l->total = 2 * out->steps + 4;
    for (uint64_t k = 1; k <= out->steps && out->update == 0; k++) {
        const struct record *records[2];
        for (int s = 0; s < 2; s++) {
            run_snapshot(&l->sides[s].run, l->sides[s].state);
            TRY(step(l, s, &records[s]));
            memcpy(l->sides[s].root.byte, root_of(records[s]), DIGEST_BYTES);
            out->trained[s]++;
        }
        out->comparisons++;
        if (!equal_roots(records[0], records[1])) out->update = k;
    }
    return STATUS_OK;
}

static enum status equal_at(void *context, uint64_t update, int *out_equal) {
    const struct locate_request *request = (const struct locate_request *)context;
    *out_equal = equal_roots(&request->sides[0].recorded->records[update - 1],
                             &request->sides[1].recorded->records[update - 1]);
    return STATUS_OK;
}

static enum status undecide(struct locating *l, const char *why, const char *name,
                            uint64_t update) {
    char *text;
    TRY(arena_format(l->arena, &text, "%s %s at update %ju", name, why, (uintmax_t)update));
    l->out->undecided = text;
    return STATUS_OK;
}

/* From the last stored state, or from the start, to the state before the update. */
static enum status reach(struct locating *l, int which) {
    const struct locate_side *asked = &l->request->sides[which];
    struct side *side = &l->sides[which];
    const uint64_t update = l->out->update;
    uint64_t index = 0, after = 0;
    if (trace_snapshot_find(asked->recorded, update - 1, &index)) {
        TRY(snapshot_take(asked->path, asked->recorded, index, &side->run));
        after = asked->recorded->snapshot_steps[index];
        l->out->stored[which] = 1;
        l->out->restored[which] = after;
    }
    for (uint64_t k = after + 1; k < update; k++) {
        const struct record *record;
        TRY(step(l, which, &record));
        l->out->trained[which]++;
        if (!equal_roots(record, &asked->recorded->records[k - 1]))
            return undecide(l, "does not train as it was recorded (twinstep replay says more)",
                            asked->name, k);
    }
    run_snapshot(&side->run, side->state);
    memcpy(side->root.byte, root_of(&asked->recorded->records[update - 1]), DIGEST_BYTES);
    return STATUS_OK;
}

static enum status find_recorded(struct locating *l) {
    struct locate_request request = *l->request;
    struct locate_result *out = l->out;
    TRY(chain_first_difference(equal_at, &request, out->steps, &out->update, &out->comparisons));
    if (out->update == 0) return STATUS_OK;
    l->total = 2 * out->update + 2;
    for (int s = 0; s < 2 && out->undecided == NULL; s++) {
        TRY(open_side(l, s));
        TRY(reach(l, s));
    }
    return STATUS_OK;
}

static void look(void *context, const struct watch_view *view) {
    const struct looking *looking = (const struct looking *)context;
    if (looking->before != NULL) looking->before->see(looking->before->context, view);
    locate_cells_see(looking->cells, view);
    if (looking->gather != NULL) signature_gather_see(looking->gather, view);
}

/* One update from the state before it, under a watch. */
static enum status watch_update(struct locating *l, int which, int pass,
                                struct locate_capture *capture) {
    struct side *side = &l->sides[which];
    struct looking looking = {.before = l->request->before[which],
                              .gather = pass == 1 ? &l->gather : NULL};
    TRY(arena_take(l->arena, 1, sizeof *looking.cells, "digests of an update", &looking.cells));
    locate_cells_open(l->arena, looking.cells);
    looking.cells->capture = capture;
    side->cells[pass] = looking.cells;
    struct watch watch = {.see = look, .context = &looking, .arena = ARENA_EMPTY};
    const struct record *record;
    l->gather.side = which;
    l->gather.has_master = side->run.layout.has_master;
    run_restore(&side->run, side->state);
    watch_hang(&side->run, &watch);
    watch_start(&side->run);
    enum status status = step(l, which, &record);
    if (status == STATUS_OK) watch_end(&side->run);
    watch_hang(&side->run, l->request->before[which]);
    arena_close(&watch.arena);
    if (status != STATUS_OK) return status;
    if (watch.status != STATUS_OK) return watch.status;
    if (looking.cells->status != STATUS_OK) return looking.cells->status;
    if (l->gather.status != STATUS_OK) return l->gather.status;
    l->out->lr[which] = record->groups[0][GROUP_LR_APPLIED];
    l->out->events[which] = looking.cells->events;
    if (memcmp(root_of(record), side->root.byte, DIGEST_BYTES) == 0) return STATUS_OK;
    return undecide(l, "does not train alike twice", l->request->sides[which].name, l->out->update);
}

static enum status watch_both(struct locating *l, int pass, struct locate_capture captures[2]) {
    for (int s = 0; s < 2 && l->out->undecided == NULL; s++)
        TRY(watch_update(l, s, pass, captures == NULL ? NULL : &captures[s]));
    return STATUS_OK;
}

static enum status compare_tensor(struct locating *l, const struct locate_capture captures[2]) {
    struct locate_result *out = l->out;
    TRY(locate_capture_compare(&captures[0], &captures[1], l->arena, &out->element));
    out->value = 1;
    out->sides = l->sides[0].run.batch.sides;
    out->view = captures[0].view;
    out->view.op = out->first.key->op;
    for (int s = 0; s < 2; s++)
        out->dtype[s] = captures[s].view.dtype;
    return STATUS_OK;
}

/* Stages whose results are the forward's, and what comes before it. */
static int is_forward(const struct locate_key *key) {
    const int stage = (int)key->stage - WATCH_PHASE;
    return key->stage == WATCH_START || key->stage == WATCH_REFERENCE || stage == PHASE_FETCH ||
           (stage == PHASE_FORWARD && strcmp(key->op, "loss") != 0);
}

static int key_equal(const struct locate_key *a, const struct locate_key *b) {
    uint32_t level = 0;
    if (b == NULL) return 0;
    for (const struct locate_level *at = a->levels; at != NULL; at = at->next, level++)
        for (uint32_t i = 0; i < at->capacity; i++) {
            const struct locate_cell *other = locate_cells_at(b, level, i);
            if (at->cells[i].event != 0 && other != NULL &&
                memcmp(at->cells[i].digest, other->digest, sizeof other->digest) != 0)
                return 0;
        }
    return 1;
}

/* What optimize left of each tensor: slots, and weights. */
static void note_optimized(struct locating *l, const struct locate_key *key, int equal) {
    if (key->parameter == WATCH_NO_PARAMETER || key->stage != WATCH_PHASE + (int)PHASE_OPTIMIZE ||
        equal)
        return;
    struct signature_tensor *tensor = &l->gather.tensors[key->parameter];
    if (strcmp(key->tensor, "parameter") == 0 || strcmp(key->tensor, "master") == 0)
        tensor->weights_equal = 0;
    else
        tensor->slots_equal = 0;
}

static void read_cells(struct locating *l, struct signature_input *input) {
    const struct locate_cells *a = l->sides[0].cells[1], *b = l->sides[1].cells[1];
    for (uint32_t i = 0; i < l->gather.count; i++)
        l->gather.tensors[i].slots_equal = l->gather.tensors[i].weights_equal = 1;
    input->forward_equal = 1;
    for (uint32_t i = 0; i < a->count; i++) {
        const struct locate_key *key = &a->keys[i];
        const int equal = key_equal(key, locate_cells_key(b, key));
        if (is_forward(key) && !equal) input->forward_equal = 0;
        input->roundings += key->stage == WATCH_PHASE + (int)PHASE_BACKWARD;
        note_optimized(l, key, equal);
    }
}

static double half_ulp(enum dtype dtype) {
    return dtype_epsilon(dtype) / 2;
}

/* Coarsest of what the backward writes in either run. */
static double coarsest(const struct locating *l) {
    double unit = 0.0;
    for (int s = 0; s < 2; s++) {
        const struct run *run = &l->sides[s].run;
        const enum dtype dtypes[] = {run->model.compute, run->model.accumulate, run->model.loss,
                                     run->layout.gradient_dtype};
        for (size_t i = 0; i < COUNT_OF(dtypes); i++)
            if (half_ulp(dtypes[i]) > unit) unit = half_ulp(dtypes[i]);
    }
    return unit;
}

/* Longest sum of a backward: over the update's tokens, the vocabulary or the widest layer. */
static uint64_t longest_sum(const struct run *run) {
    const struct model *model = &run->model;
    uint64_t terms = (uint64_t)run->limits.tokens * run->plan.micros;
    const uint64_t widths[] = {model->V, model->M, model->C, model->Q};
    for (size_t i = 0; i < COUNT_OF(widths); i++)
        if (widths[i] > terms) terms = widths[i];
    return terms;
}

static enum status read_positions(struct locating *l, struct signature_input *input) {
    const struct locate_element *element = &l->out->element;
    struct signature_position *positions;
    if (!l->out->value || element->positions == 0) return STATUS_OK;
    TRY(arena_take(l->arena, element->positions, sizeof *positions, "positions", &positions));
    for (uint32_t p = 0; p < element->positions; p++)
        positions[p] = (struct signature_position){element->by_position[p].differing,
                                                   element->by_position[p].squares,
                                                   element->by_position[p].distance};
    input->positions = positions;
    input->position_count = element->positions;
    return STATUS_OK;
}

static int is_rotary(const struct locate_key *key) {
    const int forward = key->stage == WATCH_PHASE + (int)PHASE_FORWARD;
    return strcmp(key->op, "rotary table") == 0 || (forward && strcmp(key->op, "rotary") == 0);
}

static enum dtype working_dtype(const struct run *run) {
    return run->layout.has_master ? run->layout.master_dtype
                                  : (enum dtype)run->config.numerics.param;
}

static struct signature_tensor group_of(struct signature_tensor tensor, const struct run *run,
                                        uint32_t row) {
    if (row < run->table.count) tensor.group = run->table.rows[row].group;
    return tensor;
}

static enum status recognise(struct locating *l) {
    const struct run *a = &l->sides[0].run;
    const struct locate_key *key = l->out->first.key;
    struct signature_tensor *tensors;
    struct signature_input input = {.layers = a->model.layers,
                                    .terms = longest_sum(a),
                                    .unit = coarsest(l),
                                    .gradient_unit = half_ulp(a->layout.gradient_dtype),
                                    .weight_unit = half_ulp(working_dtype(a)),
                                    .lr = {l->out->lr[0], l->out->lr[1]}};
    if (key == NULL || locate_structure_first(&l->out->first)) return STATUS_OK;
    input.backward_first = key->stage == WATCH_PHASE + (int)PHASE_BACKWARD;
    input.rotary_first = is_rotary(key);
    read_cells(l, &input);
    TRY(read_positions(l, &input));
    const struct run *grouped = a; /* the side that tells two groups apart, if one does */
    if (l->sides[1].run.table.groups > a->table.groups) grouped = &l->sides[1].run;
    input.groups = grouped->table.groups;
    TRY(arena_take(l->arena, a->owner_count, sizeof *tensors, "signature", &tensors));
    for (uint32_t i = 0; i < a->owner_count; i++)
        tensors[i] = group_of(l->gather.tensors[a->owner[i]], grouped, a->owner[i]);
    input.tensors = tensors;
    input.count = a->owner_count;
    signature_recognise(&input, &l->out->signature);
    const char *where = l->out->signature.where;
    char *kept; /* names of parameters go with their run */
    if (where == NULL) return STATUS_OK;
    TRY(arena_text(l->arena, where, strlen(where), &kept));
    l->out->signature.where = kept;
    return STATUS_OK;
}

static void find_data(struct locating *l) {
    const struct sampler_plan *plan = &l->sides[0].run.plan;
    const enum watch_axis axis = l->out->view.axis;
    if (!l->out->value || axis == WATCH_WHOLE || axis == WATCH_POSITIONS) return;
    if (l->out->element.sample >= plan->samples) return;
    l->out->data_sample = plan->sample[l->out->element.sample];
    l->out->has_data = 1;
}

static enum status look_inside(struct locating *l) {
    struct locate_capture captures[2];
    struct locate_result *out = l->out;
    TRY(watch_both(l, 0, NULL));
    if (out->undecided != NULL) return STATUS_OK;
    locate_cells_first(l->sides[0].cells[0], l->sides[1].cells[0], &out->first);
    if (out->first.key == NULL && out->first.structure == LOCATE_SAME)
        return undecide(l, "differs from the other in its roots and in nothing that is watched",
                        l->request->sides[0].name, out->update);
    if (out->first.key != NULL) {
        const struct locate_cell *cell =
            locate_cells_at(out->first.key, out->first.level, out->first.index);
        out->micro = cell->micro;
        for (int s = 0; s < 2; s++)
            TRY(locate_capture_open(&out->first, l->arena, &captures[s]));
    }
    TRY(signature_gather_open(&l->sides[0].run.table, l->arena, &l->gather));
    TRY(watch_both(l, 1, out->first.key == NULL ? NULL : captures));
    for (int s = 0; s < 2 && out->undecided == NULL; s++)
        if (!locate_cells_equal(l->sides[s].cells[0], l->sides[s].cells[1]))
            TRY(undecide(l, "does not train alike twice", l->request->sides[s].name, out->update));
    if (out->undecided != NULL) return STATUS_OK;
    if (out->first.key != NULL) TRY(compare_tensor(l, captures));
    find_data(l);
    return recognise(l);
}

static enum status locate_all(struct locating *l) {
    struct locate_result *out = l->out;
    for (int s = 0; s < 2; s++) {
        const struct config *config = l->request->sides[s].config;
        if (config->numerics.mode == MODE_ATOMIC && config->numerics.threads > 1) {
            out->undecided = "numerics.mode atomic: threads race, and no two passes are alike; "
                             "mode shuffled can be looked into";
            return STATUS_OK;
        }
    }
    if (out->recorded) {
        TRY(find_recorded(l));
    } else {
        TRY(open_side(l, 0));
        TRY(open_side(l, 1));
        TRY(train_together(l));
    }
    return out->update == 0 || out->undecided != NULL ? STATUS_OK : look_inside(l);
}

enum status locate_first_difference(const struct locate_request *request, struct arena *arena,
                                    struct locate_result *out) {
    struct locating *l;
    memset(out, 0, sizeof *out);
    TRY(arena_take(arena, 1, sizeof *l, "localisation", &l));
    *l = (struct locating){.request = request, .arena = arena, .out = out};
    out->steps = request->steps;
    out->recorded = request->sides[0].recorded != NULL && request->sides[1].recorded != NULL;
    const enum status status = locate_all(l);
    for (int s = 0; s < 2; s++)
        if (l->sides[s].open) run_close(&l->sides[s].run);
    return status;
}
