/* SPDX-License-Identifier: Apache-2.0
 * Finds the update that differs, reaches the state before it, and watches it twice. The two passes
 * must give the same root and the same cells, or the result is undecided: a run that does not
 * repeat itself has no first difference. */
#include "experiment/locate/locate.h"

#include <string.h>

#include "determinism/chain.h"
#include "experiment/locate/locate_private.h"
#include "model/pretrained.h"
#include "scenarios/scenario.h"
#include "trainer/snapshot.h"
#include "trainer/watch_run.h"

/* What a watched update calls: the caller's watch, then digests, then sums for signatures. */
struct looking {
    struct watch *before;
    struct locate_cells *cells;
    struct signature_gather *gather;
};

static enum status step(struct locating *l, int which, const struct record **out) {
    struct locate_arm *side = &l->sides[which];
    if (l->request->interrupted != NULL && *l->request->interrupted)
        FAIL(STATUS_INTERRUPTED, "interrupted after %ju updates", (uintmax_t)l->done);
    const enum status status = run_step(side->run, out);
    if (status != STATUS_OK) return status_prefix(status, "%s", l->request->sides[which].name);
    l->done++;
    const struct locate_progress progress = {l->done, l->total};
    if (l->request->progress != NULL) l->request->progress(l->request->context, &progress);
    return STATUS_OK;
}

static enum status open_side(struct locating *l, int which) {
    const struct locate_side *asked = &l->request->sides[which];
    struct locate_arm *side = &l->sides[which];
    const struct dataset_options source = run_dataset_options(asked->config);
    const struct run_options options = {.readback = 1,
                                        .steps = l->request->steps,
                                        .order_seed = asked->config->numerics.order_seed};
    enum status status = dataset_open(&source, l->arena, &side->dataset);
    if (status == STATUS_OK) status = pretrained_check_text(asked->config, &side->dataset);
    if (status == STATUS_OK) status = run_open(asked->config, &side->dataset, &options, &side->run);
    if (status != STATUS_OK) return status_prefix(status, "%s", asked->name);
    side->open = 1;
    if (l->request->before[which] != NULL) watch_hang(side->run, l->request->before[which]);
    TRY(run_kept_open(side->run, &side->state));
    side->before = &side->state;
    return STATUS_OK;
}

static const uint8_t *root_of(const struct record *record) {
    return record->digests[DIGEST_ROOT];
}

/* Trains both side by side up to the first update whose roots differ. */
static enum status train_together(struct locating *l) {
    struct locate_result *out = l->out;
    l->total = 2 * out->steps + 4;
    for (uint64_t k = 1; k <= out->steps && out->update == 0; k++) {
        const struct record *records[2];
        for (int s = 0; s < 2; s++) {
            TRY(run_keep(l->sides[s].run, &l->sides[s].state));
            TRY(step(l, s, &records[s]));
            memcpy(l->sides[s].root.byte, root_of(records[s]), DIGEST_BYTES);
            out->trained[s]++;
        }
        out->comparisons++;
        if (!record_equal_roots(records[0], records[1])) out->update = k;
    }
    return STATUS_OK;
}

static enum status equal_at(void *context, uint64_t update, int *out_equal) {
    const struct locate_request *request = (const struct locate_request *)context;
    *out_equal = record_equal_roots(trace_row(request->sides[0].recorded, update - 1),
                                    trace_row(request->sides[1].recorded, update - 1));
    return STATUS_OK;
}

static enum status undecide(struct locating *l, const char *why, const char *name,
                            uint64_t update) {
    char *text;
    TRY(arena_format(l->arena, &text, "%s %s at update %ju", name, why, (uintmax_t)update));
    l->out->undecided = text;
    return STATUS_OK;
}

/* Brings a side to the state before the update, from the last stored state or from the start. */
static enum status reach(struct locating *l, int which) {
    const struct locate_side *asked = &l->request->sides[which];
    struct locate_arm *side = &l->sides[which];
    const uint64_t update = l->out->update;
    uint64_t index = 0, after = 0;
    if (trace_snapshot_find(asked->recorded, update - 1, &index)) {
        TRY(snapshot_take(asked->path, asked->recorded, index, side->run));
        after = asked->recorded->snapshot_steps[index];
        l->out->stored[which] = 1;
        l->out->restored[which] = after;
    }
    for (uint64_t k = after + 1; k < update; k++) {
        const struct record *record;
        TRY(step(l, which, &record));
        l->out->trained[which]++;
        if (!record_equal_roots(record, trace_row(asked->recorded, k - 1)))
            return undecide(l, "does not train as it was recorded (twinstep replay says more)",
                            asked->name, k);
    }
    TRY(run_keep(side->run, &side->state));
    memcpy(side->root.byte, root_of(trace_row(asked->recorded, update - 1)), DIGEST_BYTES);
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
    if (looking->before != NULL) watch_hand_on(looking->before, view);
    locate_cells_see(looking->cells, view);
    if (looking->gather != NULL) signature_gather_see(looking->gather, view);
}

/* Trains one update from the state before it, under a watch. */
static enum status watch_update(struct locating *l, int which, int pass,
                                struct locate_capture *capture) {
    struct locate_arm *side = &l->sides[which];
    struct looking looking = {.before = l->request->before[which],
                              .gather = pass == 1 ? &l->gather : NULL};
    TRY(arena_take(l->arena, 1, sizeof *looking.cells, "digests of an update", &looking.cells));
    locate_cells_open(l->arena, looking.cells);
    looking.cells->capture = capture;
    side->cells[pass] = looking.cells;
    struct watch watch = {.see = look,
                          .context = &looking,
                          .only_reads = looking.before == NULL,
                          .arena = ARENA_EMPTY};
    const struct record *record;
    l->gather.side = which;
    l->gather.has_master = run_layout(side->run)->has_master;
    TRY(run_take_back(side->run, side->before));
    watch_hang(side->run, &watch);
    watch_start(side->run);
    enum status status = step(l, which, &record);
    if (status == STATUS_OK) watch_end(side->run);
    watch_hang(side->run, l->request->before[which]);
    arena_close(&watch.arena);
    if (status != STATUS_OK) return status;
    if (watch.status != STATUS_OK) return watch.status;
    if (looking.cells->status != STATUS_OK) return looking.cells->status;
    if (l->gather.status != STATUS_OK) return l->gather.status;
    /* A training of ours sets one LR in all its groups (trainer/phases.c). */
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
    out->sides = run_batch(l->sides[0].run)->sides;
    out->view = captures[0].view;
    out->view.op = out->first.key->op;
    for (int s = 0; s < 2; s++)
        out->dtype[s] = captures[s].view.dtype;
    return STATUS_OK;
}

/* Finds the rows of the data set that the element's sample is in each run. Samples left over from
 * an epoch have numbers of their own, and then nothing is said. */
static void find_data(struct locating *l) {
    const enum watch_axis axis = l->out->view.axis;
    if (!l->out->value || axis == WATCH_WHOLE || axis == WATCH_POSITIONS) return;
    for (int s = 0; s < 2; s++) {
        const struct sampler_plan *plan = run_sampler_plan(l->sides[s].run);
        if (plan->leaked.micros > 0 || l->out->element.sample >= plan->samples) return;
        l->out->data_row[s] = plan->sample[l->out->element.sample];
    }
    l->out->has_data = 1;
}

/* Watches the update once and names the first tensor that differs. */
static enum status name_first(struct locating *l) {
    struct locate_result *out = l->out;
    TRY(watch_both(l, 0, NULL));
    if (out->undecided != NULL) return STATUS_OK;
    locate_cells_first(l->sides[0].cells[0], l->sides[1].cells[0], &out->first);
    if (out->first.key == NULL && out->first.structure == LOCATE_SAME)
        return undecide(l, "differs from the other in its roots and in nothing that is watched",
                        l->request->sides[0].name, out->update);
    if (out->first.key == NULL) return STATUS_OK;
    out->micro = locate_cells_at(out->first.key, out->first.level, out->first.index)->micro;
    return STATUS_OK;
}

static enum status look_inside(struct locating *l) {
    struct locate_capture captures[2];
    struct locate_result *out = l->out;
    TRY(name_first(l));
    if (out->undecided != NULL) return STATUS_OK;
    for (int s = 0; s < 2 && out->first.key != NULL; s++)
        TRY(locate_capture_open(&out->first, l->arena, &captures[s]));
    TRY(signature_gather_open(run_table(l->sides[0].run), l->arena, &l->gather));
    TRY(watch_both(l, 1, out->first.key == NULL ? NULL : captures));
    for (int s = 0; s < 2 && out->undecided == NULL; s++)
        if (!locate_cells_equal(l->sides[s].cells[0], l->sides[s].cells[1]))
            TRY(undecide(l, "does not train alike twice", l->request->sides[s].name, out->update));
    if (out->undecided != NULL) return STATUS_OK;
    if (out->first.key != NULL) TRY(compare_tensor(l, captures));
    find_data(l);
    return locate_recognise(l);
}

/* Why no two passes over an update of these configurations are alike; NULL: they are. */
static const char *racing(const struct locate_request *request) {
    for (int s = 0; s < 2; s++) {
        const struct config *config = request->sides[s].config;
        const int on_device = config->numerics.backend == BACKEND_CUDA;
        if (!config_races(config) || (config->numerics.threads == 1 && !on_device)) continue;
        return config->numerics.mode == MODE_ATOMIC
                   ? "numerics.mode atomic: threads race, and no two passes are alike; mode "
                     "shuffled can be looked into"
                   : "numerics.determinism leaves sums to race on a device, and no two passes are "
                     "alike; mode shuffled can be looked into";
    }
    return NULL;
}

static enum status locate_all(struct locating *l) {
    struct locate_result *out = l->out;
    out->undecided = racing(l->request);
    if (out->undecided != NULL) return STATUS_OK;
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
    for (int s = 0; s < 2; s++) {
        run_kept_close(&l->sides[s].state);
        if (l->sides[s].open) run_close(l->sides[s].run);
    }
    return status;
}

enum status locate_in_update(const struct locate_request *request, const struct locate_update *at,
                             struct arena *arena, struct locate_result *out) {
    struct locating *l;
    memset(out, 0, sizeof *out);
    out->update = at->update;
    out->undecided = racing(request);
    if (out->undecided != NULL) return STATUS_OK;
    TRY(arena_take(arena, 1, sizeof *l, "localisation", &l));
    *l = (struct locating){.request = request, .arena = arena, .out = out, .total = 2};
    for (int s = 0; s < 2; s++) {
        l->sides[s].run = at->runs[s];
        l->sides[s].before = at->states[s];
        memcpy(l->sides[s].root.byte, at->roots[s], DIGEST_BYTES);
    }
    return name_first(l);
}
