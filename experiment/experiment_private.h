/* SPDX-License-Identifier: Apache-2.0
 * What the files of an experiment share: experiment.c trains the arms, experiment_floor.c what
 * repeats show, experiment_hybrids.c the hybrids. Private to them; whoever runs an experiment
 * includes experiment.h. */
#ifndef TWINSTEP_EXPERIMENT_EXPERIMENT_PRIVATE_H
#define TWINSTEP_EXPERIMENT_EXPERIMENT_PRIVATE_H

#include "evidence/eval_seen.h"
#include "experiment/branches.h"
#include "experiment/evaluator.h"
#include "experiment/experiment.h"
#include "experiment/experiment_plan.h"
#include "experiment/experiment_series.h"
#include "experiment/experiment_trace.h"
#include "experiment/held_out.h"
#include "experiment/hybrid_values.h"
#include "experiment/kept_file.h"
#include "experiment/pair.h"
#include "experiment/resume.h"
#include "trainer/run_tensors.h"

/* A data set, opened once for all runs whose options for it are equal. */
struct shared_dataset {
    struct dataset_options options;
    struct dataset dataset;
};

/* The first update whose roots differ, and the arms' states before it. */
struct parting {
    uint64_t update;                  /* 0: none so far */
    const struct run_kept *before[2]; /* e->fork for both while the arms are equal */
    struct run_kept room[2];
};

/* What is measured on the rows of eval.*: nothing where held_out.count is 0. */
struct experiment_eval {
    struct held_out held_out;
    uint8_t *drawn[2]; /* (samples of the baseline's data) 1: the arm trained on it */
    uint32_t *trained; /* rows that both arms trained on */
    uint32_t trained_count;
    struct evaluator *evaluator; /* NULL: the arms have not ended yet, or the floor has */
    double *end[EVAL_SETS];      /* (runs, columns) */
    double *start[EVAL_SETS];    /* (2, columns) */
    double *line[EVAL_SETS];     /* (rows) */
};

/* What is kept for a run that goes on after an interruption (experiment_kept.c). */
struct experiment_kept {
    char *path[2];                 /* of the files, beside the live trace; NULL: nothing is kept */
    uint64_t number;               /* of the file that was written last */
    uint64_t done;                 /* experiment.done when it was */
    int hurry;                     /* 1: what was gone on from is copied, and not kept here yet */
    int failed;                    /* a file could not be written, so no other one is */
    uint64_t *reached;             /* (runs) the last update of each run so far; 0: none */
    uint8_t (*root)[DIGEST_BYTES]; /* (runs) the root of that update */
    const struct run *run[2];      /* those that are stepped now, and their places in the plan */
    uint32_t index[2], runs;
    struct kept_file from; /* what is gone on from, where is_open */
    int is_open;
    uint64_t *behind; /* (runs) the updates that `from` has behind it; 0 without it */
};

struct experiment;

/* What a child trains: `train` is called in it. */
struct ahead_task {
    enum status (*train)(struct experiment *e, uint32_t first, uint32_t count);
    uint32_t first, count;
};

/* Runs that children train before it is their turn (experiment_ahead.c). Of `count` children, child
 * c trains tasks c, c + count, and so on, one behind the other. */
struct experiment_ahead {
    int beside; /* struct ahead_size */
    struct ahead_task *tasks;
    uint32_t task_count, room;
    struct experiment_child *children; /* (count) */
    uint64_t *at;                      /* (count) bytes of its file that were read */
    uint32_t count;
    int begun;            /* 1: the children were started */
    uint32_t next;        /* the task whose turn is next */
    uint32_t from;        /* the child of the one before it */
    unsigned char *bytes; /* one row */
};

struct experiment {
    const struct experiment_options *options;
    struct arena *arena;
    struct experiment_plan plan;
    struct experiment_trace output;
    struct shared_dataset *datasets;
    uint32_t dataset_count;

    /* the baseline's state before the first update in which the arms may differ */
    struct run_kept fork;
    uint64_t fork_step; /* that update, counted from 1; 0: the states differ from the start */
    struct parting parting;
    struct experiment_series steps[2]; /* STEPS_MEANT_PATH and STEPS_LOST_PATH, of the arms */
    void **points;  /* end points of the floor's runs, in the order of the floor */
    double *losses; /* their last losses */
    uint32_t point_count;
    struct experiment_series response; /* RESPONSE_PATH */
    void **projection;                 /* end points of the hybrids between none and all, by mask */
    /* of an end point; 0: the arms have different parameters and no distance */
    size_t elements;
    struct hybrid_values hybrids;
    struct branches branches;
    struct pair_room room; /* what measuring two runs in lockstep needs */
    struct experiment_eval eval;
    struct resume resume;
    struct experiment_kept kept;
    struct experiment_ahead ahead;      /* the runs of the stage */
    struct experiment_ahead full_ahead; /* the full hybrid, from where the arms part on */
    struct experiment_ahead *taken;     /* whose results are read; in a child, what it works on */
    uint64_t far;        /* updates that children trained and whose turn has not come, about */
    int file;            /* in a child: where its results go */
    struct run *arms[2]; /* open while they are trained in lockstep; one run may be both */
    struct run *rerun;   /* the baseline trained once more; equal to it in an exact floor */
    int rerun_open;
    uint64_t done, total; /* updates finished, and planned */
    uint64_t memory[2];   /* bytes of each arm once it is open; 0: on a device, or not open */
};

/* A run that is stepped alone. */
struct alone {
    enum experiment_stage stage;
    uint32_t index;               /* of the planned run */
    uint64_t first;               /* its next update */
    const struct trace_run *like; /* the run whose roots it is compared with, or NULL */
    uint32_t hybrid;              /* the hybrid that this run trains, or NO_HYBRID */
};

extern const double experiment_no_loss[2]; /* two NaN, for progress events that have no losses */

/* Hands out the data set of a configuration; equal options open it once. */
TWINSTEP_MUST_USE enum status experiment_dataset(struct experiment *e, const struct config *config,
                                                 const struct dataset **out);
TWINSTEP_MUST_USE enum status experiment_open_planned(struct experiment *e, uint32_t index,
                                                      struct run **out);
/* Closes the arms, or the one run that is both. */
void experiment_close_arms(const struct experiment *e);
TWINSTEP_MUST_USE enum status experiment_check_interrupt(const struct experiment *e);
/* The same, where no update is trained; `what` says what is done. */
TWINSTEP_MUST_USE enum status experiment_check_interrupt_while(const struct experiment *e,
                                                               const char *what);
void experiment_report(struct experiment *e, enum experiment_stage stage, uint32_t run,
                       uint64_t step, const double loss[2], double share);

/* experiment_alike.c. Tells, with the baseline open, whether one run is both arms from the first
 * update to the last: the test arm is not opened then, and `b` below is `a`. */
TWINSTEP_MUST_USE enum status experiment_find_one(const struct experiment *e, const struct run *a,
                                                  int *out_one);
/* Finds for how many updates the arms are alike, and whether one training serves both (e->plan),
 * with both arms open. The test arm takes over the baseline's state behind the last such update.
 * Where both are trained, they must have the same roots there. */
TWINSTEP_MUST_USE enum status experiment_share(struct experiment *e, const struct run *a,
                                               const struct run *b);
TWINSTEP_MUST_USE enum status experiment_take_over(struct experiment *e, const struct run *a,
                                                   struct run *b);
TWINSTEP_MUST_USE enum status experiment_check_alike(const struct experiment *e,
                                                     const struct record *a,
                                                     const struct record *b);

/* Trains one run alone from alone->first to the end. *out_equal (may be NULL) says whether all its
 * roots equal those of alone->like. A run that is behind (below) is copied, and `run` is NULL. */
TWINSTEP_MUST_USE enum status experiment_step_alone(struct experiment *e, const struct alone *alone,
                                                    struct run *run, int *out_equal);

/* Whether both have one state, byte for byte. */
TWINSTEP_MUST_USE enum status experiment_equal_states(const struct run *a, const struct run *b,
                                                      int *out_equal);

/* Bytes of a point, and room for one. */
size_t experiment_point_bytes(const struct experiment *e);
TWINSTEP_MUST_USE enum status experiment_take_point(struct experiment *e, const char *what,
                                                    void **out);
/* (elements) The end point of an arm: 0 is the baseline. */
const void *experiment_end(const struct experiment *e, int arm);

/* experiment_first.c. The first is called before each update of both arms; `equal` says that their
 * states are one. The last is called once they are trained, names what differs first, and leaves
 * the runs somewhere in their training. */
TWINSTEP_MUST_USE enum status experiment_first_keep(struct experiment *e, const struct run *a,
                                                    const struct run *b, int equal);
void experiment_first_note(struct experiment *e, const struct record *a, const struct record *b);
TWINSTEP_MUST_USE enum status experiment_first_place(struct experiment *e, struct run *a,
                                                     struct run *b);
/* In the place of all of these where the interrupted experiment had named it. */
TWINSTEP_MUST_USE enum status experiment_first_copy(struct experiment *e);

/* experiment_eval.c. Data are opened before the trace is; every update of both arms is noted; then
 * both arms are measured, each run of the floor when it ends, and the results are put. */
TWINSTEP_MUST_USE enum status experiment_eval_open(struct experiment *e);
void experiment_eval_note(struct experiment *e, const struct run *a, const struct run *b);
TWINSTEP_MUST_USE enum status experiment_eval_arms(struct experiment *e, const struct run *a,
                                                   const struct run *b);
TWINSTEP_MUST_USE enum status experiment_eval_run(struct experiment *e, uint32_t index,
                                                  const struct run *run);
/* What a child measured of a run, from it and in the parent (experiment_ahead.c). */
TWINSTEP_MUST_USE enum status experiment_eval_hand_on(struct experiment *e, uint32_t index);
TWINSTEP_MUST_USE enum status experiment_eval_take(struct experiment *e, uint32_t index);
TWINSTEP_MUST_USE enum status experiment_eval_put(struct experiment *e);

/* experiment_needs.c. Called with both arms open, before the trace is created: what the experiment
 * is going to take besides the trace itself. */
TWINSTEP_MUST_USE enum status experiment_needs(struct experiment *e, const struct run *a,
                                               const struct run *b, struct experiment_needs *out);

/* experiment_kept.c. Whether anything is kept of this experiment. */
int experiment_keeps(const struct experiment *e);

/* experiment_kept.c. The first finds the file that an interrupted experiment goes on from; the
 * second removes what an earlier run left beside the trace, which has just been created, and the
 * third what this one did, whose trace is finished. */
TWINSTEP_MUST_USE enum status experiment_kept_open(struct experiment *e);
TWINSTEP_MUST_USE enum status experiment_kept_begin(struct experiment *e);
TWINSTEP_MUST_USE enum status experiment_kept_end(struct experiment *e);

/* Whether the interrupted experiment had finished this run: nothing of it is trained. */
int experiment_is_behind(const struct experiment *e, uint32_t index);

/* Put back what was kept: what the experiment carries, once its arrays are open; the state of a run
 * that stands at its start; one piece, where any is gone on from. */
TWINSTEP_MUST_USE enum status experiment_kept_take(struct experiment *e, const struct run *a,
                                                   const struct run *b);
TWINSTEP_MUST_USE enum status experiment_kept_state(struct experiment *e, uint32_t index,
                                                    struct run *run);
TWINSTEP_MUST_USE enum status experiment_kept_piece(struct experiment *e, const char *what,
                                                    uint32_t number, void *into, size_t length);
/* Takes back what the trace does not have of a series yet. */
TWINSTEP_MUST_USE enum status experiment_kept_series(struct experiment *e,
                                                     struct experiment_series *series);

/* Names the runs that are stepped from here on (the second may be NULL), and notes an update. */
void experiment_kept_runs(struct experiment *e, uint32_t first, const struct run *a,
                          uint32_t second, const struct run *b);
void experiment_kept_note(struct experiment *e, uint32_t index, const struct record *record);

/* Called between two updates, before an interruption is looked for: keeps the states where it is
 * time to, or where the user asks to stop. */
TWINSTEP_MUST_USE enum status experiment_keep(struct experiment *e);

/* Copies the row, or the stored state if one is due, that the interrupted experiment recorded. */
TWINSTEP_MUST_USE enum status experiment_copy_row(struct experiment *e, uint32_t index,
                                                  uint64_t step, const struct record **out);
TWINSTEP_MUST_USE enum status experiment_copy_state(struct experiment *e, uint32_t index,
                                                    uint64_t step, int start);
TWINSTEP_MUST_USE enum status experiment_copy_pair(struct experiment *e, uint32_t pair,
                                                   uint64_t step);
TWINSTEP_MUST_USE enum status experiment_copy_series(struct experiment *e,
                                                     struct experiment_series *series,
                                                     uint64_t step);
/* Refuses to go on: `path` of the trace, which runs that are finished by the kept states had left,
 * is not there. (A live file was copied before it was put, and the kept states after.) */
TWINSTEP_MUST_USE enum status experiment_lacks(const struct experiment *e, const char *path);
/* The values of an array that it had written; NULL: it had not. */
const double *experiment_copied_array(const struct experiment *e, const char *path);

/* experiment_floor.c. The first comes before the arms are trained: what an exact floor repeats may
 * begin beside them. */
TWINSTEP_MUST_USE enum status experiment_floor_coming(struct experiment *e);
/* Whether a child beside the arms trains two runs, as this process does: where there are two cores,
 * these two come first, and what is one run each shares the cores with the end of the arms. Were
 * all as fast as each other from the start, one would be left over at the end, and an idle core. */
int experiment_floor_is_long(const struct experiment *e);
TWINSTEP_MUST_USE enum status experiment_exact_floor(struct experiment *e);
TWINSTEP_MUST_USE enum status experiment_noise_floor(struct experiment *e);

/* What a child takes, besides records: runs that it has open at once, and the bytes that it hands
 * on behind a run. */
struct ahead_size {
    uint32_t runs;
    uint64_t tail;
    int beside; /* 1: this process trains meanwhile */
};

/* Whether a run's results and what is recorded of it are the same in whichever process it trains,
 * and whatever was trained there before: not where threads race, a library or a device multiplies,
 * or a module of the user's runs, which may hold what a copy of the process does not have. */
int experiment_may_move(const struct config *config);

/* experiment_ahead.c. Children train runs where cores and memory allow it and no bit and nothing
 * that is recorded depends on the process. The first takes the room for `tasks` tasks, and does
 * nothing where none may be trained so; the second adds one, in the order in which they are asked
 * for. The third begins, which the fourth does if it was not called. The fourth says whether the
 * next task was trained by a child, and waits for it: where it was not, it is trained here. The
 * last ends what still trains. */
TWINSTEP_MUST_USE enum status experiment_ahead_open(struct experiment *e,
                                                    struct experiment_ahead *ahead, uint32_t tasks,
                                                    const struct ahead_size *size);
void experiment_ahead_add(struct experiment_ahead *ahead,
                          enum status (*train)(struct experiment *, uint32_t, uint32_t),
                          uint32_t first, uint32_t count);
void experiment_ahead_start(struct experiment *e, struct experiment_ahead *ahead);
TWINSTEP_MUST_USE enum status experiment_ahead_next(struct experiment *e,
                                                    struct experiment_ahead *ahead,
                                                    enum experiment_stage stage, uint32_t run,
                                                    int *out_trained);
void experiment_ahead_close(struct experiment *e, struct experiment_ahead *ahead);

/* In a child: trains a run from alone->first to the end, and hands on its rows; hands on bytes. */
TWINSTEP_MUST_USE enum status experiment_ahead_train(struct experiment *e,
                                                     const struct alone *alone, struct run *run);
TWINSTEP_MUST_USE enum status experiment_ahead_put(struct experiment *e, const void *bytes,
                                                   size_t length);

/* A record of planned run `index`, in a child, and in the parent, where record_take() has taken its
 * arrays. */
TWINSTEP_MUST_USE enum status experiment_ahead_put_row(struct experiment *e, uint32_t index,
                                                       const struct record *record);
TWINSTEP_MUST_USE enum status experiment_ahead_get_row(struct experiment *e, uint32_t index,
                                                       struct record *record);

/* In the parent, in the order in which the child did: records the rows as experiment_step_alone
 * does; takes bytes. */
TWINSTEP_MUST_USE enum status experiment_ahead_rows(struct experiment *e, const struct alone *alone,
                                                    int *out_equal);
TWINSTEP_MUST_USE enum status experiment_ahead_get(struct experiment *e, void *bytes,
                                                   size_t length);

/* experiment_hybrids.c. Branches are planned before the first update. The second is called once the
 * arms' states differ, before the update that begins then: the full hybrid, which goes on from
 * before it, may begin beside them. Hybrids and projection are trained after the floor. */
TWINSTEP_MUST_USE enum status experiment_branches(struct experiment *e, size_t bytes);
TWINSTEP_MUST_USE enum status experiment_full_coming(struct experiment *e);
/* Whether hybrids answer anything, once the arms are trained. */
int experiment_asks_hybrids(const struct experiment *e);
TWINSTEP_MUST_USE enum status experiment_hybrids(struct experiment *e);
TWINSTEP_MUST_USE enum status experiment_projection(struct experiment *e);

#endif
