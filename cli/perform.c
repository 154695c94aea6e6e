/* SPDX-License-Identifier: Apache-2.0
 * Puts an experiment together: environment, progress and second process are given to experiment/,
 * which knows none of them. */
#include "cli/perform.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/children.h"
#include "cli/cores.h"
#include "cli/environment.h"
#include "cli/plain_text.h"
#include "cli/progress.h"
#include "cli/room.h"
#include "cli/second.h"
#include "trainer/real_ranks.h"

/* States take at most this share of the time, but where every update's were asked for. */
#define KEEPING_SHARE 0.05
/* Bytes a second that the first keeping is taken to write, since none was timed: those of a slow
 * disk, so that it does not take more than its share either. */
#define KEEPING_PACE 2.5e8

/* Processes beside the one that trains the arms: what an exact floor repeats here and in a process
 * started anew, and the hybrid of all differences. */
#define MOST_BESIDE 3

struct performing {
    const struct cli *cli;
    struct progress progress;
    const struct performance_watch *watch; /* NULL: none */
    int wanted;                            /* words besides the verdict */
    double keep_every, cost; /* seconds: as asked for, and what a keeping takes, by the last one */
    uint64_t memory;         /* bytes that both arms need; 0: not known */
    uint64_t cores;          /* that its processes may fill together */
    uint64_t free_cores;     /* beside the arms; 0, too, where nothing may be trained beside them */
    struct real_ranks *ranks; /* NULL: none */
    struct second second;     /* begun before it is asked for, where there is room for it */
    pid_t aside[MOST_BESIDE]; /* processes that leave a core to this one while it trains */
    int aside_count;
    double asked, kept; /* by the clock: when it began, and when it ended */
};

/* The clock decides how much an interruption costs; it reaches no result. */
static int keep_now(void *context) {
    struct performing *const performing = (struct performing *)context;
    const double waited = progress_clock() - performing->kept;
    performing->asked = performing->kept + waited;
    return waited >= performing->keep_every &&
           (performing->keep_every == 0.0 ||
            performing->cost <= KEEPING_SHARE * (waited + performing->cost));
}

static void kept(void *context) {
    struct performing *const performing = (struct performing *)context;
    performing->kept = progress_clock();
    performing->cost = performing->kept - performing->asked;
}

static void show(void *context, const struct experiment_progress *now) {
    struct performing *performing = (struct performing *)context;
    if (performing->watch != NULL)
        performing->watch->far(performing->watch->context, now);
    else
        progress_show(&performing->progress, now);
}

/* Says what a long training will take, and refuses one that does not fit. */
static enum status ask_room(void *context, const struct experiment_needs *needs) {
    struct performing *const performing = (struct performing *)context;
    const struct performance_watch *const watch = performing->watch;
    TRY(watch != NULL ? watch->room(watch->context, needs) : room_check(needs));
    performing->memory = needs->memory;
    performing->cost = (double)needs->kept_once / KEEPING_PACE;
    if (performing->wanted) room_tell(needs, stderr);
    return STATUS_OK;
}

/* Whether one training alone has a core for itself beside the arms; children have a thread each. */
static int has_one_core(const struct performing *performing) {
    return performing->free_cores < 2;
}

static void await_child(void *context, const struct experiment_child *before) {
    if (has_one_core((const struct performing *)context)) children_await(before->said);
}

/* The arms are two trainings and what is measured between them, more than any other process has to
 * do: left to share the cores evenly, this one would end last and alone. */
static void set_aside(struct performing *performing, pid_t pid) {
    if (performing->aside_count == MOST_BESIDE) return;
    performing->aside[performing->aside_count++] = pid;
    cores_set_aside(pid, 1 + MOST_BESIDE);
}

/* Called before this process waits for one of them: none has been waited for, so all are its own.
 */
static void let_back(struct performing *performing) {
    for (int i = 0; i < performing->aside_count; i++)
        cores_let_back(performing->aside[i]);
    performing->aside_count = 0;
}

static enum status start_child(void *context,
                               void (*work)(void *of, uint32_t number, int file, int said),
                               void *of, uint32_t number, int beside,
                               struct experiment_child *out) {
    TRY(children_start(work, of, number, out));
    if (beside) set_aside((struct performing *)context, out->pid);
    return STATUS_OK;
}

static enum status wait_children(void *context, struct experiment_child *children, uint32_t count) {
    let_back((struct performing *)context);
    return children_wait(children, count);
}

static void end_child(void *context, struct experiment_child *child) {
    let_back((struct performing *)context);
    children_end(child);
}

/* Begins the rerun beside the arms where a core is free for it, and memory: it takes about half of
 * what both arms do, and so does each run of the children. Beside a child that trains what an exact
 * floor repeats there is one process more than cores then, for a while: all of them end sooner than
 * if this one waited for its turn. What prevents it is no error: it comes after the arms, as on one
 * core. */
static void rerun_coming(void *context, const struct config *config, uint64_t steps,
                         const struct experiment_child *child, int waits) {
    struct performing *const performing = (struct performing *)context;
    const uint64_t needs = performing->memory + performing->memory / 2;
    if (performing->free_cores < config->numerics.threads || needs == 0 ||
        room_memory() < needs + (child == NULL ? 0 : performing->memory))
        return;
    const int turn = waits && child != NULL && has_one_core(performing) ? child->said : -1;
    if (second_begin(config, steps, turn, &performing->second) != STATUS_OK) {
        performing->second.pid = 0;
        return;
    }
    set_aside(performing, performing->second.pid);
    /* The repeat beside it, which records its rows, has more to do and would end last and alone. */
    if (has_one_core(performing)) cores_give_way(performing->second.pid);
}

/* How many runs children may train at once. Behind the arms this process waits meanwhile. With
 * --no-room-check nobody knows what memory there is. */
static uint32_t most_children(void *context, uint64_t memory, uint64_t threads, int beside) {
    const struct performing *const performing = (const struct performing *)context;
    if (performing->free_cores == 0 || performing->memory == 0) return 0;
    return children_most(beside ? performing->free_cores : performing->cores, memory, threads);
}

/* Other ranks wait meanwhile, and wait only so long. */
static enum status tell_ranks(void *context) {
    const struct performing *const performing = (const struct performing *)context;
    return real_ranks_beat(performing->ranks);
}

static enum status rerun_elsewhere(void *context, const struct config *config, uint64_t steps,
                                   struct digest *out_root) {
    struct performing *const performing = (struct performing *)context;
    if (performing->second.pid == 0) TRY(second_begin(config, steps, -1, &performing->second));
    let_back(performing);
    performing->second.waits = performing->ranks == NULL ? NULL : tell_ranks;
    performing->second.context = performing;
    return second_root(&performing->second, performing->cli->interrupted, out_root);
}

int progress_wanted(const struct options *options) {
    return !options->quiet && (!options->json || isatty(STDOUT_FILENO));
}

enum status check_backend(const char *backend) {
    if (backend == NULL || strcmp(backend, "cpu") == 0 || strcmp(backend, "cuda") == 0)
        return STATUS_OK;
    FAIL(STATUS_INPUT, "--backend: expected cpu or cuda, got \"%s\"", backend);
}

enum status set_backend(const struct options *options, struct arena *arena, struct options *out) {
    return options_with(options, arena, "common.numerics.backend", options->backend, out);
}

int trains_alone(const struct scenario *scenario) {
    for (int arm = 0; arm < 2; arm++) {
        const struct config *const config = &scenario->arms[arm].config;
        if (config_races(config) || config_uses_openblas(config) ||
            config->numerics.backend != BACKEND_CPU)
            return 1;
    }
    return 0;
}

uint64_t trains_threads(const struct scenario *scenario) {
    const uint64_t a = scenario->arms[0].config.numerics.threads,
                   b = scenario->arms[1].config.numerics.threads;
    return a > b ? a : b;
}

enum status perform(const struct cli *cli, const struct scenario *scenario,
                    const struct performance *how, struct arena *arena, struct judgement *out) {
    struct performing performing = {.cli = cli,
                                    .watch = how->watch,
                                    .wanted = how->progress,
                                    .keep_every = how->keep_every,
                                    .cores = how->cores,
                                    .ranks = how->ranks};
    static const struct experiment_children children = {most_children, start_child, wait_children,
                                                        children_read, end_child,   await_child};
    performing.asked = performing.kept = progress_clock();
    struct experiment_options options = {.path = how->path,
                                         .resume = how->resume,
                                         .overwrite = how->overwrite,
                                         .reproducible = how->reproducible,
                                         .save = {how->save[0], how->save[1]},
                                         .schema = cli->schema,
                                         .scenario = scenario,
                                         .room = how->unasked_room ? NULL : ask_room,
                                         .progress = show,
                                         .second_process = rerun_elsewhere,
                                         .second_coming = rerun_coming,
                                         .children = &children,
                                         .interrupted = cli->interrupted,
                                         .keep_now = how->keep ? keep_now : NULL,
                                         .kept = kept,
                                         .ranks = how->ranks,
                                         .both_arms = how->both_arms,
                                         .verify = how->verify,
                                         .context = &performing};
    /* OpenBLAS is opened and named in the trace only if an arm may send linear layers through it.
     */
    const int blas = config_uses_openblas(&scenario->arms[0].config) ||
                     config_uses_openblas(&scenario->arms[1].config);
    TRY(environment_attributes(cli, blas, arena, &options.environment, &options.environment_count));
    progress_open(&performing.progress, scenario->name, how->progress && how->watch == NULL);
    if (!trains_alone(scenario) && how->cores > trains_threads(scenario))
        performing.free_cores = how->cores - trains_threads(scenario);
    enum status status = experiment_run(&options, arena, out);
    second_end(&performing.second);
    progress_close(&performing.progress);
    return status;
}

enum status print_judgement(const struct judgement *judgement, const char *path, int json) {
    if (json) return judgement_print_json(judgement, stdout);
    judgement_print(judgement, stdout);
    fputs("  trace    ", stdout);
    plain_text_put(path, stdout);
    fputs(" (twinstep attribute ", stdout);
    plain_text_put(path, stdout);
    puts("; h5py)");
    return STATUS_OK;
}
