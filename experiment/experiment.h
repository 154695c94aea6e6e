/* SPDX-License-Identifier: Apache-2.0
 * Runs a whole experiment: both arms in lockstep, the floor, the hybrids, everything recorded in
 * one trace and judged at the end. It knows scenarios, runs and traces; it prints nothing (the
 * caller gets progress events) and starts no process (the caller reruns the baseline in a second
 * one).
 * Invariant: every run of the trace was opened from a resolved configuration that the trace holds.
 */
#ifndef TWINSTEP_EXPERIMENT_EXPERIMENT_H
#define TWINSTEP_EXPERIMENT_EXPERIMENT_H

#include "evidence/judge.h"
#include "trainer/run.h"

enum experiment_stage {
    STAGE_PAIR = 0, /* both arms in lockstep */
    STAGE_FLOOR,    /* reruns or replicates of the arms */
    STAGE_HYBRIDS,
    STAGE_DONE
};

struct experiment_progress {
    enum experiment_stage stage;
    const char *run;               /* id of the run that just finished an update */
    uint64_t step, steps;          /* update finished, updates of this run */
    uint64_t run_index, run_count; /* in the whole experiment */
    uint64_t done, total;          /* updates of the whole experiment: finished, and planned */
    double loss[2];                /* of both arms in STAGE_PAIR, else NaN */
    double distance_share;         /* |a-b| / |a-a0| of the arms in STAGE_PAIR, else NaN */
};

/* What is going to be taken of disk and memory, as far as the plan tells. Sizes are bytes. */
struct experiment_needs {
    const char *what;    /* the file, in words: "a trace of 40 updates in all" */
    const char *path;    /* of it; NULL: no file is written */
    uint64_t disk;       /* its length */
    uint64_t kept;       /* kept states beside it at most, the one that is written included */
    uint64_t kept_once;  /* the longest of these files */
    const char *save[2]; /* folders of saved models; NULL: none */
    uint64_t saved[2];   /* what goes into each */
    uint64_t memory;     /* at most at once; what lies on a device is not counted */
    uint64_t held;       /* the part of it that this process holds already */
    /* what makes it need less, in words, each with commas between: of the file, and of memory */
    const char *less_disk, *less_memory;
};

/* A process that trains for an experiment, ahead of the turn of what it trains. */
struct experiment_child {
    int pid;
    int file;      /* in which it writes, without a name */
    int said;      /* a pipe: a byte for each piece of work that it has done; closed when it ends */
    uint64_t done; /* pieces, as far as they were heard of */
    int has_ended; /* 1: nothing more comes of it */
};

/* Who starts such processes, since experiment/ starts none: copies of this one, which end by
 * themselves. What they compute does not depend on who trains beside them. */
struct experiment_children {
    /* How many may train at once, where each takes up to `memory` bytes and `threads` cores; beside
     * this process, if that trains meanwhile (`beside`). */
    uint32_t (*most)(void *context, uint64_t memory, uint64_t threads, int beside);
    /* Starts one, which calls work(of, number, file, said) and ends; `beside` as above. */
    enum status (*start)(void *context, void (*work)(void *of, uint32_t number, int file, int said),
                         void *of, uint32_t number, int beside, struct experiment_child *out);
    /* Waits until one of `count` children says something or ends, or a moment. */
    enum status (*wait)(void *context, struct experiment_child *children, uint32_t count);
    /* Reads `length` bytes of its file from byte `at` on, each once and in order. */
    enum status (*read)(void *context, const struct experiment_child *child, uint64_t at,
                        void *bytes, size_t length);
    /* Ends it, where it still trains, and gives its file away. */
    void (*end)(void *context, struct experiment_child *child);
    /* Called in a child which started behind `before`: waits until that one has ended, where there
     * is no core for both beside the process that started them. */
    void (*await)(void *context, const struct experiment_child *before);
};

struct experiment_options {
    const char *path;   /* of the trace; never NULL */
    const char *resume; /* the trace of an interrupted experiment (resume.h); NULL: none */
    int overwrite;
    /* leaves /env/volatile out, so that two runs of the experiment write equal files */
    int reproducible;
    const char *save[2]; /* folders for the final weights of the arms (save_model.h); NULL: none */
    const struct schema *schema;
    const struct scenario *scenario;
    /* Asked once, before anything is written: fails if there is no room (experiment_needs.c).
     * NULL: not asked. */
    enum status (*room)(void *context, const struct experiment_needs *needs);
    /* Called after every update of every run; may be NULL. */
    void (*progress)(void *context, const struct experiment_progress *progress);
    /* 1: both arms are trained even for updates in which nothing that differs between them acts
     * (experiment_alike.c) */
    int both_arms;
    /* Reruns `config` for `steps` updates in another process and returns its last root. NULL: the
     * exact floor consists of the rerun in this process only, and the verdict says so. */
    enum status (*second_process)(void *context, const struct config *config, uint64_t steps,
                                  struct digest *out_root);
    /* Told before the first update what second_process() will be asked for, so that it may begin
     * meanwhile, beside `child` and as struct experiment_children says of await() behind it where
     * `waits`. NULL for `child`: none has begun. NULL: not told. */
    void (*second_coming)(void *context, const struct config *config, uint64_t steps,
                          const struct experiment_child *child, int waits);
    /* Trains repeats and hybrids at once where that moves no bit. NULL: one after the other. */
    const struct experiment_children *children;
    /* Becomes nonzero when the user asks to stop; looked at between updates. NULL: never. */
    const volatile int *interrupted;
    /* Asked between updates whether the states are to be kept now, for an experiment that goes on
     * after an interruption; told when that is done. NULL: nothing is kept. */
    int (*keep_now)(void *context);
    void (*kept)(void *context);
    struct real_ranks *ranks; /* processes that train with this one; NULL: none do */
    int verify; /* `resume` alone: 1 trains all that can be trained again, kept states or not */
    void *context;
    /* what the caller found under /env and /env/volatile; may be empty */
    const struct trace_attribute *environment;
    uint32_t environment_count;
};

/* Trains, records, judges and finishes the trace, verdict texts included; `out` lives in `arena`.
 * On STATUS_INTERRUPTED and on errors PATH.part stays behind, readable, with every finished update.
 */
TWINSTEP_MUST_USE enum status experiment_run(const struct experiment_options *options,
                                             struct arena *arena, struct judgement *out);

/* What the second process does: opens `config`, trains `steps` updates, returns the last root. */
TWINSTEP_MUST_USE enum status experiment_rerun(const struct config *config, uint64_t steps,
                                               struct digest *out_root);

#endif
