/* SPDX-License-Identifier: Apache-2.0
 * What an experiment is going to take besides its trace: kept states, saved models, and memory. It
 * counts what the other files of the folder take from the arena, stage by stage, and opens nothing.
 *
 * Each number is a bound that stands near what is taken (tests/cli/room.py holds it against runs);
 * not counted are the program itself, its libraries and what they buffer. */
#include "experiment/experiment_private.h"

#include "trainer/snapshot.h"

#define PIECE_BYTES 256 /* of the header of a kept file: a name, a shape, offsets, a digest */
#define KEPT_FILES 3    /* two that serve, and the one that is being written */

struct sizes {
    uint64_t state[2];        /* of each arm */
    uint64_t larger;          /* of these */
    uint64_t point;           /* an end point; 0: the arms have no distance */
    uint64_t fork, before[2]; /* copies of states that both arms leave behind while they train */
    uint64_t branches;        /* states that hybrids begin with */
    uint64_t floor, projection;
    uint64_t tables; /* numbers of updates, runs and hybrids */
    uint64_t stored; /* a state on its way into the trace, where its form is not the memory */
    struct hybrid_values_size values;
};

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* Numbers of each update, of each run, of each sample. */
static uint64_t tables_bytes(const struct experiment *e, size_t samples) {
    const uint64_t steps = e->plan.scenario->steps, runs = e->plan.run_count;
    uint64_t bytes = 4 * steps * sizeof(double) + runs * (sizeof(uint64_t) + DIGEST_BYTES);
    if (e->plan.perturbed > 0) bytes += steps * sizeof(double);
    if (e->eval.held_out.count > 0)
        bytes += 2 * samples + EVAL_SETS * EVAL_VALUES * (runs + 2) * sizeof(double);
    return bytes + e->branches.count * sizeof(uint64_t);
}

/* `equal`: whether the arms' states are, before their first update. */
static void find_sizes(const struct experiment *e, const struct run *a, const struct run *b,
                       int equal, struct sizes *out) {
    const struct experiment_plan *const plan = &e->plan;
    const int noisy = plan->floor != FLOOR_EXACT;
    const size_t elements = pair_comparable(a, b) ? point_count(a) : 0;
    *out = (struct sizes){.state = {run_layout(a)->bytes, b == a ? 0 : run_layout(b)->bytes},
                          .point = elements * dtype_carrier(plan->point_dtype),
                          .branches = e->branches.slots * (uint64_t)e->branches.bytes,
                          .tables = tables_bytes(e, run_dataset(a)->samples),
                          .values = hybrid_values_size(plan, a, elements)};
    out->larger = larger(out->state[0], out->state[1]);
    if (plan->scenario->record.snapshots > 0)
        out->stored = larger(snapshot_room(a), snapshot_room(b));
    /* states that are equal part in one update, before which one copy is of both; those of one run
     * never part */
    out->fork = equal && b != a ? out->state[0] : 0;
    out->before[0] = b == a ? 0 : out->state[0];
    out->before[1] = equal ? 0 : out->state[1];
    if (noisy) out->floor = (plan->floor_runs[0] + plan->floor_runs[1]) * out->point;
    if (plan->projection_runs > 0)
        out->projection =
            ((1u << plan->factor_count) - 2) * (uint64_t)plan->projection_runs * out->point;
}

/* Whether the baseline's repeat is open beside another run: beside the perturbed one, and beside
 * hybrids, which are held against it. */
static int has_company(const struct experiment *e) {
    return e->plan.floor == FLOOR_EXACT && (e->plan.attributable || e->plan.perturbed > 0);
}

/* The longest kept file: before the last update of both arms, or later, when at most two runs are
 * open and what the floor and the hybrids have left is kept with them. */
static uint64_t kept_file_bytes(const struct experiment *e, const struct sizes *of) {
    const uint64_t pieces =
        32 + 2 * HYBRID_MARKS + e->branches.slots + (of->floor + of->projection) / (of->point + 1);
    const uint64_t fork = e->plan.attributable ? of->fork : 0;
    const uint64_t common = pieces * PIECE_BYTES + of->tables + of->values.values + of->branches;
    const uint64_t pair = of->state[0] + of->state[1] + of->before[0] + of->before[1] + fork +
                          of->values.points - of->values.mark;
    const uint64_t later = of->larger + (has_company(e) ? of->state[0] : 0) + of->floor +
                           larger(fork, of->projection) + of->values.points;
    return common + larger(pair, later);
}

/* The arms, and what is taken beside them: states and end points, which are held until the end. Of
 * arms that begin equal the fork is the state before the update in which they part, too; only one
 * that is gone on with may hold another. What is open later than the arms is at most as much: the
 * baseline's repeat and one more run, in this process or in a second one. The model that measures
 * held-out rows has no state of an optimizer. */
static uint64_t memory_bytes(const struct experiment *e, const struct sizes *of) {
    const uint64_t run = larger(e->memory[0], e->memory[1]);
    const int shared = of->fork > 0 && !e->kept.is_open;
    const uint64_t before = shared ? 0 : of->before[0] + of->before[1];
    const uint64_t kept = of->fork + of->branches + of->values.points + of->values.values +
                          of->values.scratch + of->tables;
    const uint64_t probe = has_company(e) && e->branches.ordered >= 2 ? of->values.probe : 0;
    const uint64_t late = kept + probe + of->floor + of->projection;
    const uint64_t evaluator =
        e->eval.held_out.count > 0 && run > of->larger ? run - of->larger + of->point : 0;
    const uint64_t open = has_company(e) ? e->memory[0] + run : run;
    return larger(e->memory[0] + e->memory[1] + before + kept, open + late) + evaluator +
           of->stored;
}

enum status experiment_needs(struct experiment *e, const struct run *a, const struct run *b,
                             struct experiment_needs *out) {
    const struct run *const runs[2] = {a, b};
    struct sizes sizes;
    uint64_t kept = 0;
    char *what;
    int equal;
    TRY(experiment_equal_states(a, b, &equal));
    find_sizes(e, a, b, equal, &sizes);
    if (experiment_keeps(e)) kept = kept_file_bytes(e, &sizes);
    TRY(arena_format(e->arena, &what, "a trace of %llu updates in all",
                     (unsigned long long)(e->plan.run_count * e->plan.scenario->steps)));
    *out = (struct experiment_needs){
        .what = what,
        .path = e->options->path,
        .kept = KEPT_FILES * kept,
        .kept_once = kept,
        .memory = memory_bytes(e, &sizes),
        .held = e->memory[0] + e->memory[1],
        .less_disk = "train fewer updates (steps), record less (record.tensors, record.phases), "
                     "store fewer states (--checkpoint-every), keep none (--keep-every never)",
        .less_memory = "make the model, batch.micro or data.max_len smaller"};
    for (int arm = 0; arm < 2; arm++) {
        out->save[arm] = e->options->save[arm];
        if (out->save[arm] != NULL) out->saved[arm] = run_save_bytes(runs[arm]);
    }
    return STATUS_OK;
}
