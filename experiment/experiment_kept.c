/* SPDX-License-Identifier: Apache-2.0
 * What an experiment carries besides its rows, kept beside the live trace for a run that goes on
 * after an interruption: the states of the runs that are stepped, and what finished ones left for
 * the floor, the hybrids and the verdict. Two files are written in turns, each whole or not at all,
 * always after the rows that it belongs to; they are removed once their own trace is finished.
 *
 * A file is taken only where the root of every run that it knows is that of the recorded row: roots
 * are chains, so it is of these rows and of no others. Its pieces have digests. Invariant: a run
 * that goes on from a file writes what one that was never interrupted writes. */
#include "experiment/experiment_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CARRIED_FORK = 0, CARRIED_PARTING, CARRIED_SAME, CARRIED_COUNT };

int experiment_is_behind(const struct experiment *e, uint32_t index) {
    return e->kept.behind[index] == e->plan.scenario->steps;
}

static int is_finished(const struct experiment *e, uint32_t index) {
    return e->kept.reached[index] == e->plan.scenario->steps;
}

/* ---- the list of pieces ---- */

struct pieces {
    struct kept_piece *list;
    size_t count;
};

static void add(struct pieces *to, const void *bytes, size_t length, const char *format, ...)
    TWINSTEP_PRINTF(4, 5);
static void add(struct pieces *to, const void *bytes, size_t length, const char *format, ...) {
    struct kept_piece *const piece = &to->list[to->count];
    va_list arguments;
    if (bytes == NULL || length == 0) return;
    va_start(arguments, format);
    vsnprintf(piece->name, sizeof piece->name, format, arguments);
    va_end(arguments);
    piece->bytes = bytes;
    piece->length = length;
    to->count++;
}

/* A state that was kept where the tensors are, as bytes that the host has while the file is
 * written. */
static enum status add_kept(struct pieces *to, const struct run_kept *kept, struct arena *arena,
                            const char *name) {
    const unsigned char *bytes = kept->memory;
    unsigned char *copy;
    if (kept->backend != NULL) {
        TRY(arena_take(arena, kept->bytes, 1, "kept states", &copy));
        TRY(backends_pull(kept->backend, copy, kept->memory, kept->bytes));
        bytes = copy;
    }
    add(to, bytes, kept->bytes, "%s", name);
    return STATUS_OK;
}

/* Fills a state that is kept from a piece, where the file has one. */
static enum status take_kept(const struct experiment *e, const char *name,
                             const struct run_kept *kept) {
    const unsigned char *bytes;
    if (!e->kept.is_open) return STATUS_OK;
    TRY(kept_find(&e->kept.from, name, kept->bytes, &bytes));
    return run_kept_write(kept, bytes);
}

/* What the file has of a series is in the trace; the chain says what that must be. */
static void add_series(struct pieces *to, const struct experiment_series *series) {
    if (series->path == NULL) return;
    add(to, &series->chain, sizeof series->chain, "%s chain", series->path);
    add(to, series->block, series->rows * (size_t)SERIES_BLOCK * sizeof(double), "%s block",
        series->path);
}

static enum status add_arms(struct pieces *to, const struct experiment *e, const uint64_t *carried,
                            struct arena *arena) {
    const struct parting *const parting = &e->parting;
    add(to, carried, CARRIED_COUNT * sizeof *carried, "carried");
    for (int i = 0; i < 2; i++)
        add_series(to, &e->steps[i]);
    if (is_finished(e, 0) || parting->update == 0) return STATUS_OK;
    TRY(add_kept(to, parting->before[0], arena, "before 0"));
    return carried[CARRIED_SAME] ? STATUS_OK : add_kept(to, parting->before[1], arena, "before 1");
}

/* The baseline's state from which the full hybrid goes on, until it is trained. */
static int needs_fork(const struct experiment *e) {
    return e->fork_step > 0 && e->plan.attributable &&
           !is_finished(e, e->plan.hybrids[e->plan.hybrid_count - 1].run);
}

static enum status add_fork(struct pieces *to, const struct experiment *e, struct arena *arena) {
    return needs_fork(e) ? add_kept(to, &e->fork, arena, "fork") : STATUS_OK;
}

static void add_values(struct pieces *to, const struct experiment *e) {
    const struct hybrid_values *const of = &e->hybrids;
    const size_t point = experiment_point_bytes(e), row = of->count * sizeof(double);
    for (uint32_t m = 0; m < of->marks && of->mark[m] <= (double)e->kept.reached[0]; m++) {
        add(to, of->point[m], point, "point %u", m);
        add(to, of->test_point[m], point, "test point %u", m);
    }
    for (uint32_t game = 0; game < HYBRID_GAMES; game++)
        add(to, of->at[game], of->marks * row, "game %u", game);
    add(to, of->kl, row, "kl");
    add(to, of->first, row, "first");
    add(to, of->moved, row, "moved");
}

static void add_eval(struct pieces *to, const struct experiment *e, size_t samples) {
    const struct experiment_eval *const eval = &e->eval;
    if (eval->held_out.count == 0) return;
    for (int i = 0; i < 2; i++)
        add(to, eval->drawn[i], samples, "drawn %d", i);
    for (int set = 0; set < EVAL_SETS; set++) {
        add(to, eval->end[set], (size_t)e->plan.run_count * EVAL_VALUES * sizeof(double),
            "eval end %d", set);
        add(to, eval->start[set], (size_t)2 * EVAL_VALUES * sizeof(double), "eval start %d", set);
    }
}

/* Whether a hybrid that is not trained yet goes on from what this slot holds. */
static int is_held(const struct experiment *e, uint32_t slot) {
    for (uint32_t i = 0; i < e->branches.count; i++) {
        const struct branch *const branch = &e->branches.of[i];
        if (branch->shared > 0 && branch->slot == slot && branch->kept > 0 &&
            !is_finished(e, e->plan.hybrids[i].run))
            return 1;
    }
    return 0;
}

static void add_branches(struct pieces *to, const struct experiment *e, const uint64_t *kept) {
    add(to, kept, e->branches.count * sizeof *kept, "branches");
    for (uint32_t slot = 0; slot < e->branches.slots; slot++)
        if (is_held(e, slot))
            add(to, e->branches.state[slot], e->branches.bytes, "branch %u", slot);
}

static uint32_t projection_count(const struct experiment *e) {
    return e->projection == NULL ? 0 : ((1u << e->plan.factor_count) - 2) * e->plan.projection_runs;
}

static void add_ends(struct pieces *to, const struct experiment *e) {
    const size_t point = experiment_point_bytes(e);
    for (uint32_t i = 0; i < e->point_count; i++)
        add(to, e->points[i], point, "floor point %u", i);
    for (uint32_t i = 0; i < projection_count(e); i++)
        if (is_finished(e, e->plan.first_projection + i))
            add(to, e->projection[i], point, "projection %u", i);
    add_series(to, &e->response);
}

static enum status add_state(struct pieces *to, const struct experiment *e, uint32_t index,
                             const struct run *run) {
    const unsigned char *state;
    TRY(run_read_state(run, &state));
    add(to, state, run_layout(run)->bytes, "state %s", e->plan.runs[index].id);
    return STATUS_OK;
}

/* A run that has not begun is opened again, and of arms that one training serves there is one
 * state. The rerun of an exact floor stays open beside others, which are held against it. */
static enum status add_states(struct pieces *to, const struct experiment *e) {
    const struct experiment_kept *const kept = &e->kept;
    for (uint32_t i = 0; i < kept->runs; i++)
        if (kept->reached[kept->index[i]] > 0 && (i == 0 || kept->run[i] != kept->run[0]))
            TRY(add_state(to, e, kept->index[i], kept->run[i]));
    if (e->rerun_open && (kept->runs == 0 || kept->run[0] != e->rerun) &&
        is_finished(e, e->plan.first_floor))
        return add_state(to, e, e->plan.first_floor, e->rerun);
    return STATUS_OK;
}

static enum status write_file(struct experiment *e, struct arena *arena) {
    struct experiment_kept *const kept = &e->kept;
    const size_t runs = e->plan.run_count, samples = e->datasets[0].dataset.samples;
    const int same = e->parting.before[0] == e->parting.before[1];
    const uint64_t carried[CARRIED_COUNT] = {[CARRIED_FORK] = e->fork_step,
                                             [CARRIED_PARTING] = e->parting.update,
                                             [CARRIED_SAME] = same ? 1 : 0};
    struct pieces pieces = {NULL, 0};
    uint64_t *branches;
    TRY(arena_take(arena,
                   32 + 2 * HYBRID_MARKS + e->point_count + e->branches.slots + projection_count(e),
                   sizeof *pieces.list, "kept states", &pieces.list));
    TRY(arena_take(arena, e->branches.count, sizeof *branches, "kept states", &branches));
    for (uint32_t i = 0; i < e->branches.count; i++)
        branches[i] = e->branches.of[i].kept;
    add(&pieces, kept->reached, runs * sizeof *kept->reached, "reached");
    add(&pieces, kept->root, runs * sizeof *kept->root, "roots");
    TRY(add_arms(&pieces, e, carried, arena));
    TRY(add_fork(&pieces, e, arena));
    add_values(&pieces, e);
    add_eval(&pieces, e, samples);
    add_branches(&pieces, e, branches);
    add_ends(&pieces, e);
    TRY(add_states(&pieces, e));
    kept->number++;
    return kept_write(kept->path[kept->number % 2], kept->number, pieces.list, pieces.count);
}

/* ---- when ---- */

/* The files have the trace's name. Where another run has that name they are its own, and nothing is
 * written; where nobody has it, they are of no use. */
static enum status refuse_others_files(struct experiment *e) {
    char told[1024];
    struct stat info;
    char *part;
    const enum status status = trace_refuse_replaced(e->output.trace);
    if (status == STATUS_OK) return status;
    snprintf(told, sizeof told, "%s", status_text());
    TRY(arena_format(e->arena, &part, "%s.part", e->options->path));
    if (lstat(part, &info) != 0 && errno == ENOENT) TRY(experiment_kept_end(e));
    return status_fail(status, "%s", told);
}

enum status experiment_keep(struct experiment *e) {
    struct experiment_kept *const kept = &e->kept;
    const int stopping = e->options->interrupted != NULL && *e->options->interrupted;
    struct arena arena = ARENA_EMPTY;
    if (kept->path[0] == NULL || kept->failed || kept->done == e->done) return STATUS_OK;
    if (!stopping && !kept->hurry && !e->options->keep_now(e->options->context)) return STATUS_OK;
    TRY(refuse_others_files(e));
    const enum status status = write_file(e, &arena);
    arena_close(&arena);
    kept->hurry = 0;
    kept->done = e->done;
    e->options->kept(e->options->context);
    kept->failed = status == STATUS_IO; /* the training goes on; the file before it serves */
    return kept->failed ? STATUS_OK : status;
}

void experiment_kept_runs(struct experiment *e, uint32_t first, const struct run *a,
                          uint32_t second, const struct run *b) {
    struct experiment_kept *const kept = &e->kept;
    kept->run[0] = a;
    kept->run[1] = b;
    kept->index[0] = first;
    kept->index[1] = second;
    kept->runs = a == NULL ? 0 : b == NULL ? 1 : 2;
}

void experiment_kept_note(struct experiment *e, uint32_t index, const struct record *record) {
    e->kept.reached[index] = record->step;
    memcpy(e->kept.root[index], record->digests[DIGEST_ROOT], DIGEST_BYTES);
}

/* ---- the files ---- */

static enum status name_files(struct experiment *e, const char *path, const char *suffix,
                              char *out[2]) {
    for (int i = 0; i < 2; i++)
        TRY(arena_format(e->arena, &out[i], "%s%s.kept-%d", path, suffix, i + 1));
    return STATUS_OK;
}

static enum status remove_file(struct experiment *e, const char *path) {
    char *live;
    TRY(arena_format(e->arena, &live, "%s.part", path));
    if (unlink(path) != 0 && errno != ENOENT)
        FAIL(STATUS_IO, "%s: cannot remove: %s", path, strerror(errno));
    if (unlink(live) != 0 && errno != ENOENT)
        FAIL(STATUS_IO, "%s: cannot remove: %s", live, strerror(errno));
    return STATUS_OK;
}

int experiment_keeps(const struct experiment *e) {
    if (e->options->keep_now == NULL || e->plan.scenario->record.replay_check != 0) return 0;
    for (uint32_t i = 0; i < e->plan.run_count; i++) {
        const struct config *const config = &e->plan.runs[i].config;
        if (config_uses_cublas(config) || config_races(config)) return 0;
    }
    return 1;
}

enum status experiment_kept_begin(struct experiment *e) {
    char *path[2];
    TRY(name_files(e, e->options->path, ".part", path));
    for (int i = 0; i < 2; i++)
        TRY(remove_file(e, path[i]));
    if (experiment_keeps(e)) memcpy(e->kept.path, path, sizeof path);
    return STATUS_OK;
}

enum status experiment_kept_end(struct experiment *e) {
    for (int i = 0; i < 2 && e->kept.path[i] != NULL; i++)
        TRY(remove_file(e, e->kept.path[i]));
    return STATUS_OK;
}

/* Says whether every run that the file knows is recorded as far, with the same root. Fewer rows are
 * those of a file that was cut short after it was written. */
static enum status check_roots(struct experiment *e, const struct kept_file *file) {
    struct experiment_kept *const kept = &e->kept;
    const size_t runs = e->plan.run_count;
    TRY(kept_copy(file, "reached", kept->behind, runs * sizeof *kept->behind));
    TRY(kept_copy(file, "roots", kept->root, runs * sizeof *kept->root));
    for (uint32_t i = 0; i < runs; i++) {
        if (kept->behind[i] == 0) continue;
        const struct record *const row = resume_row(&e->resume, i, kept->behind[i]);
        if (row == NULL || memcmp(row->digests[DIGEST_ROOT], kept->root[i], DIGEST_BYTES) != 0)
            FAIL(STATUS_INPUT, "%s: is not of %s: update %" PRIu64 " of run %s is %s",
                 file->file.path, e->options->resume, kept->behind[i], e->plan.runs[i].id,
                 row == NULL ? "not in it" : "another in it");
    }
    return STATUS_OK;
}

/* Says whether the trace has the numbers of a series up to the last update of run `index` that the
 * file knows. */
static enum status check_series(struct experiment *e, const struct kept_file *file,
                                const char *path, uint32_t index) {
    const struct trace_array *const array = trace_array_of(e->resume.image, path);
    const uint64_t behind = e->kept.behind[index];
    struct digest kept, found;
    char name[96];
    if (behind == 0) return STATUS_OK;
    snprintf(name, sizeof name, "%s chain", path);
    TRY(kept_copy(file, name, &kept, sizeof kept));
    if (array == NULL || array->plan.shape[array->plan.rank - 1] != e->plan.scenario->steps)
        FAIL(STATUS_INPUT, "%s: damaged: no /%s of %" PRIu64 " updates", e->options->resume, path,
             e->plan.scenario->steps);
    series_chain(array, behind, &found);
    if (digest_compare(&kept, &found) == 0) return STATUS_OK;
    FAIL(STATUS_INPUT, "%s: is not of %s: /%s is another up to update %" PRIu64, file->file.path,
         e->options->resume, path, behind);
}

static enum status check_file(struct experiment *e, const struct kept_file *file) {
    TRY(check_roots(e, file));
    TRY(check_series(e, file, STEPS_MEANT_PATH, 0));
    TRY(check_series(e, file, STEPS_LOST_PATH, 0));
    return e->plan.perturbed == 0 ? STATUS_OK
                                  : check_series(e, file, RESPONSE_PATH, e->plan.perturbed);
}

/* Takes the later one of two files that fit; one that does not is told if there is no other. */
static enum status choose(struct experiment *e, char *const path[2]) {
    struct kept_file files[2];
    enum status status[2] = {STATUS_OK, STATUS_OK};
    char why[1024] = "";
    int there[2], open[2];
    for (int i = 0; i < 2; i++) {
        status[i] = kept_open(path[i], e->arena, &files[i], &there[i]);
        open[i] = there[i] && status[i] == STATUS_OK;
        if (status[i] != STATUS_OK) snprintf(why, sizeof why, "%s", status_text());
    }
    const int later = open[1] && (!open[0] || files[1].number > files[0].number);
    for (int turn = 0; turn < 2; turn++) {
        const int i = turn == 0 ? later : !later;
        if (!open[i]) continue;
        if (!e->kept.is_open && check_file(e, &files[i]) == STATUS_OK) {
            e->kept.from = files[i];
            e->kept.is_open = 1;
            continue;
        }
        if (!e->kept.is_open) snprintf(why, sizeof why, "%s", status_text());
        kept_close(&files[i]);
    }
    if (e->kept.is_open) e->kept.number = e->kept.from.number;
    if (e->kept.is_open || (!there[0] && !there[1])) return STATUS_OK;
    FAIL(STATUS_INPUT, "%s; without %s and %s the arms are trained again", why, path[0], path[1]);
}

enum status experiment_kept_open(struct experiment *e) {
    struct experiment_kept *const kept = &e->kept;
    const size_t runs = e->plan.run_count;
    char *path[2];
    TRY(arena_take(e->arena, runs, sizeof *kept->reached, "kept states", &kept->reached));
    TRY(arena_take(e->arena, runs, sizeof *kept->behind, "kept states", &kept->behind));
    TRY(arena_take(e->arena, runs, sizeof *kept->root, "kept states", &kept->root));
    /* checks that were not made cannot be told, so such arms are trained again */
    const int checked = e->plan.scenario->record.replay_check != 0;
    if (e->options->resume == NULL || e->options->verify || checked) return STATUS_OK;
    TRY(name_files(e, e->options->resume, "", path));
    TRY(choose(e, path));
    /* the arms' last states are not kept: what is to be saved of them is trained again */
    const int saving = e->options->save[0] != NULL || e->options->save[1] != NULL;
    if (kept->is_open && saving && experiment_is_behind(e, 0)) {
        kept_close(&kept->from);
        kept->is_open = 0;
    }
    if (!kept->is_open) memset(kept->behind, 0, runs * sizeof *kept->behind);
    kept->hurry = kept->is_open;
    return STATUS_OK;
}

/* ---- taking back ---- */

enum status experiment_kept_piece(struct experiment *e, const char *what, uint32_t number,
                                  void *into, size_t length) {
    char name[96];
    if (!e->kept.is_open) return STATUS_OK;
    snprintf(name, sizeof name, "%s %u", what, number);
    return kept_copy(&e->kept.from, name, into, length);
}

enum status experiment_kept_series(struct experiment *e, struct experiment_series *series) {
    char name[96];
    snprintf(name, sizeof name, "%s block", series->path);
    if (!e->kept.is_open || !kept_has(&e->kept.from, name)) return STATUS_OK;
    return kept_copy(&e->kept.from, name, series->block,
                     series->rows * (size_t)SERIES_BLOCK * sizeof *series->block);
}

enum status experiment_kept_state(struct experiment *e, uint32_t index, struct run *run) {
    char name[96];
    const unsigned char *state;
    if (e->kept.behind[index] == 0) return STATUS_OK;
    snprintf(name, sizeof name, "state %s", e->plan.runs[index].id);
    TRY(kept_find(&e->kept.from, name, run_layout(run)->bytes, &state));
    TRY(run_restore(run, state));
    if (memcmp(run_state_head(run)->root.byte, e->kept.root[index], DIGEST_BYTES) == 0)
        return STATUS_OK;
    FAIL(STATUS_INPUT, "%s: damaged: the state of run %s is not the one that its root names",
         e->kept.from.file.path, e->plan.runs[index].id);
}

static enum status take_parting(struct experiment *e, const struct run *a, const struct run *b,
                                int same) {
    struct parting *const parting = &e->parting;
    const struct run *const runs[2] = {a, b};
    for (uint32_t i = 0; i < 2; i++) {
        if (i == 1 && same) {
            parting->before[1] = parting->before[0];
            break;
        }
        TRY(run_kept_open(runs[i], &parting->room[i]));
        TRY(take_kept(e, i == 0 ? "before 0" : "before 1", &parting->room[i]));
        parting->before[i] = &parting->room[i];
    }
    return STATUS_OK;
}

static enum status take_values(struct experiment *e) {
    const struct hybrid_values *const of = &e->hybrids;
    const struct kept_file *const from = &e->kept.from;
    const size_t point = experiment_point_bytes(e), row = of->count * sizeof(double);
    for (uint32_t m = 0;
         m < of->marks && of->mark[m] <= (double)e->kept.behind[0] && of->elements > 0; m++) {
        TRY(experiment_kept_piece(e, "point", m, of->point[m], point));
        TRY(experiment_kept_piece(e, "test point", m, of->test_point[m], point));
    }
    for (uint32_t game = 0; game < HYBRID_GAMES; game++)
        TRY(experiment_kept_piece(e, "game", game, of->at[game], of->marks * row));
    TRY(kept_copy(from, "kl", of->kl, row));
    TRY(kept_copy(from, "first", of->first, row));
    return kept_copy(from, "moved", of->moved, row);
}

static enum status take_eval(struct experiment *e, size_t samples) {
    const struct experiment_eval *const eval = &e->eval;
    if (eval->held_out.count == 0) return STATUS_OK;
    for (uint32_t i = 0; i < 2; i++)
        TRY(experiment_kept_piece(e, "drawn", i, eval->drawn[i], samples));
    for (uint32_t set = 0; set < EVAL_SETS; set++) {
        TRY(experiment_kept_piece(e, "eval end", set, eval->end[set],
                                  (size_t)e->plan.run_count * EVAL_VALUES * sizeof(double)));
        TRY(experiment_kept_piece(e, "eval start", set, eval->start[set],
                                  (size_t)2 * EVAL_VALUES * sizeof(double)));
    }
    return STATUS_OK;
}

static enum status take_branches(struct experiment *e) {
    struct branches *const branches = &e->branches;
    struct arena arena = ARENA_EMPTY;
    uint64_t *kept;
    enum status status = arena_take(&arena, branches->count, sizeof *kept, "kept states", &kept);
    if (status == STATUS_OK)
        status = kept_copy(&e->kept.from, "branches", kept, branches->count * sizeof *kept);
    for (uint32_t i = 0; i < branches->count && status == STATUS_OK; i++)
        branches->of[i].kept = (size_t)kept[i];
    arena_close(&arena);
    TRY(status);
    for (uint32_t slot = 0; slot < branches->slots; slot++)
        if (is_held(e, slot))
            TRY(experiment_kept_piece(e, "branch", slot, branches->state[slot], branches->bytes));
    return STATUS_OK;
}

enum status experiment_kept_take(struct experiment *e, const struct run *a, const struct run *b) {
    const struct kept_file *const from = &e->kept.from;
    uint64_t carried[CARRIED_COUNT];
    if (!e->kept.is_open) return STATUS_OK;
    memcpy(e->kept.reached, e->kept.behind, e->plan.run_count * sizeof *e->kept.reached);
    TRY(kept_copy(from, "carried", carried, sizeof carried));
    e->fork_step = carried[CARRIED_FORK];
    if (needs_fork(e)) TRY(take_kept(e, "fork", &e->fork));
    for (uint32_t i = 0; i < 2; i++)
        TRY(experiment_kept_series(e, &e->steps[i]));
    TRY(take_values(e));
    TRY(take_eval(e, run_dataset(a)->samples));
    TRY(take_branches(e));
    if (experiment_is_behind(e, 0)) return STATUS_OK;
    e->parting.update = carried[CARRIED_PARTING];
    return e->parting.update == 0 ? STATUS_OK : take_parting(e, a, b, carried[CARRIED_SAME] != 0);
}

/* ---- copying ---- */

enum status experiment_copy_row(struct experiment *e, uint32_t index, uint64_t step,
                                const struct record **out) {
    TRY(resume_copy(&e->resume, index, step, out));
    return experiment_trace_record(&e->output, index, *out);
}

enum status experiment_copy_state(struct experiment *e, uint32_t index, uint64_t step, int start) {
    const uint64_t every = e->output.every;
    struct arena arena = ARENA_EMPTY;
    unsigned char *state = NULL;
    uint64_t at = 0;
    if (every == 0 || (!start && step % every != 0)) return STATUS_OK;
    const struct trace_run *const recorded = trace_run_of(e->resume.image, e->plan.runs[index].id);
    if (!trace_snapshot_find(recorded, step, &at) || recorded->snapshot_steps[at] != step)
        FAIL(STATUS_INPUT, "%s: damaged: no stored state of update %" PRIu64 " of run %s",
             e->options->resume, step, e->plan.runs[index].id);
    const struct trace_snapshot_plan *const there = &recorded->plan.snapshots,
                                            *const here =
                                                &e->output.image.runs[index].plan.snapshots;
    if (there->bytes != here->bytes || there->format != here->format ||
        memcmp(there->layout, here->layout, sizeof here->layout) != 0)
        FAIL(
            STATUS_INPUT,
            "%s: run %s: its states (version %jd, %ju bytes) were stored by a build that lays them "
            "out differently (version %jd, %ju bytes here)",
            e->options->resume, e->plan.runs[index].id, (intmax_t)there->format,
            (uintmax_t)there->bytes, (intmax_t)here->format, (uintmax_t)here->bytes);
    enum status status = trace_snapshot_read(e->options->resume, recorded, at, &arena, &state);
    if (status == STATUS_OK) status = trace_put_snapshot(e->output.trace, index, step, state);
    arena_close(&arena);
    return status;
}

enum status experiment_copy_pair(struct experiment *e, uint32_t pair, uint64_t step) {
    const struct trace_pair *const recorded = &e->resume.image->pairs[pair];
    if (step > recorded->updates)
        FAIL(STATUS_INPUT, "%s: damaged: no update %" PRIu64 " of pair %s-%s", e->options->resume,
             step, recorded->plan.a, recorded->plan.b);
    const struct pair_record *const row = trace_pair_row(recorded, step - 1);
    TRY(trace_rows_status(e->resume.image));
    return experiment_trace_pair(&e->output, pair, row);
}

enum status experiment_copy_series(struct experiment *e, struct experiment_series *series,
                                   uint64_t step) {
    return series_copy(series, &e->output, step, trace_array_of(e->resume.image, series->path));
}

enum status experiment_lacks(const struct experiment *e, const char *path) {
    FAIL(STATUS_INPUT,
         "%s: damaged: %s has runs as finished that put %s, and there is none; without %s the arms "
         "are trained again",
         e->options->resume, e->kept.from.file.path, path, e->kept.from.file.path);
}

/* A trace's arrays are filled with NaN when they are planned, so a NaN at the beginning is one that
 * was never put. */
const double *experiment_copied_array(const struct experiment *e, const char *path) {
    const struct trace_array *const array = trace_array_of(e->resume.image, path);
    return array == NULL || array->values[0] != array->values[0] ? NULL : array->values;
}
