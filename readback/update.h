/* SPDX-License-Identifier: Apache-2.0
 * What one update of somebody's training did, judged against what its files promise: the LR of each
 * parameter group, its decay, Adam's count, the norm that the optimizer took in, and tensors that
 * did not move.
 *
 * A finding is said only where the numbers exclude the promise; where they hold both, the answer is
 * "undecided". Nothing here knows a file; the texts name what the caller calls the two checkpoints.
 */
#ifndef TWINSTEP_READBACK_UPDATE_H
#define TWINSTEP_READBACK_UPDATE_H

#include "base/number.h"
#include "readback/rate.h"
#include "readback/input_gradient.h"

/* What the user configured, by the user's word. NaN: nothing was said. */
struct update_expected {
    double max_norm; /* gradients are clipped to it; 0: they are not */
    double decay;    /* of the groups that decay */
    double beta1, beta2, eps;
    double decoupled; /* 1: Adam's decay acts on weights, as AdamW's does; 0: on gradients */
};

/* A row of the log. */
struct update_logged {
    double update;
    double lr, norm; /* NaN: not in this row */
};

/* What the trainer wrote beside the weights. Numbers that nobody wrote are NaN. */
struct update_said {
    const char *before, *after; /* what the checkpoints are called: "checkpoint-1" */
    double scheduler_counted;   /* the scheduler's: last_epoch after this update */
    double scheduler_before;
    int has_scaler;   /* a loss scaler may have skipped updates, which only a log counts */
    double processes; /* Accelerate's, as far as it saved their generators */
    struct update_expected expected;
    const struct update_logged *log; /* [log_count] */
    size_t log_count;
    /* Settings of the optimizer that the two hold otherwise ("weight_decay of group 0 was 0.1 and
     * is 0"); NULL or "": none. */
    const char *moved;
    uint32_t matched; /* parameters that were named by what their state explains */
    uint32_t unnamed; /* parameters without a name: nothing is read of them */
};

enum update_verdict {
    UPDATE_KEPT =
        0,         /* the promise lies inside the bar, and what it must be told from lies outside */
    UPDATE_BROKEN, /* it lies outside */
    UPDATE_UNDECIDED, /* the bar is too wide, or nothing was promised */
    UPDATE_VERDICTS
};

struct update_group {
    struct rate_reading reading;
    struct input_betas betas;
    struct input_coupled coupled;
    enum update_verdict verdict;
    double logged;       /* the log's LR for this update; NaN: none, or it is of another group */
    double fewest, most; /* the optimizer's counts over the group's tensors; NaN: none */
    int fell;            /* 1: they are less than before the update: the state is another one */
    int is_assumed;      /* no file holds them */
    uint32_t tensors, frozen;         /* known to the optimizer; of these without any movement */
    const char *lr_text, *decay_text; /* a sentence about each; never NULL */
    /* What the configured decay acts as: 1 - lr * decay is rounded to f32 before it meets a weight
     * of f32 or narrower, so at small rates this is another number than the configured one, and it
     * is what the reading of the decay is held against. NaN: none acts on weights, or no LR is
     * known. */
    double decay_rounded;
    /* Where the bar holds the promised LR and the next update's, which of them the update was made
     * with (replayed_which): 1, 2, or 0 for neither. */
    int replayed;
};

/* Which values of the schedule f an update applied and logged, by the scheduler's own count
 * (last_epoch): f(applied), f(logged). That is what contracts differ in (sched/contract.h). */
struct update_schedule {
    const char *why; /* NULL: `applied` is known; else a sentence that says what leaves it open */
    double applied;
    double logged; /* NaN: no row of the log says it, or one says another LR than these two */
    double stride; /* what the update added to the count: 1, or Accelerate's number of processes */
};

enum update_finding_kind {
    UPDATE_LR = 0,        /* the applied LR is not the promised one */
    UPDATE_COUNT,         /* Adam's count is not the trainer's */
    UPDATE_RESTART,       /* the optimizer's state began anew */
    UPDATE_DECAY,         /* a decay acted that is not configured, or did not that is */
    UPDATE_DECAY_ROUNDED, /* remark: rounding swallowed the decay */
    UPDATE_COUPLED,       /* the decay went through the gradient */
    UPDATE_CLIP,          /* the norm that was taken in is not the clipped one */
    UPDATE_BETAS,         /* the moments were made with other betas */
    UPDATE_EPS,           /* the weights moved as with another eps */
    UPDATE_SETTINGS,      /* another number in the optimizer's file than the user
                             configured; a remark: than in the file before */
    UPDATE_SCHEDULER,     /* the scheduler counted more or less than once */
    UPDATE_MASTERS,       /* the update began from rounded weights */
    UPDATE_FROZEN,  /* tensors that did not move; a remark, unless their gradients are missing */
    UPDATE_OUTSIDE, /* tensors that the optimizer does not know, but that moved */
    UPDATE_UNNAMED, /* remark: parameters whose weights are not known */
    UPDATE_UNEXPLAINED, /* the optimizer's rule does not explain the movement */
    UPDATE_FINDINGS
};

/* Remarks accuse nobody: they say what a reader would want to know. */
struct update_finding {
    enum update_finding_kind kind;
    int is_remark;
    uint32_t group; /* STEP_NO_GROUP: of all */
    const char *text;
};

struct update_reading {
    double update; /* the number of the update; NaN: nobody says */
    enum step_numbered_by numbered_by;
    double logged_norm;          /* what the log has for this update; NaN: nothing */
    struct update_group *groups; /* [group_count] */
    uint32_t group_count;
    /* [group_count]: the step's, with the numbers that the update used (update_settle) */
    const struct step_group *settings;
    struct input_norm norm;
    uint32_t stateless; /* tensors that did not move and have no state: frozen, or forgotten */
    struct update_schedule schedule;
    struct update_finding *findings;
    size_t finding_count, room;
    enum update_verdict verdict; /* broken if there is a finding that is no remark */
};

TWINSTEP_MUST_USE enum status update_read(const struct step *step, const struct update_said *said,
                                          struct rate_room *room, struct arena *arena,
                                          struct update_reading *out);

/* Words of JSON and tests: "lr", "count", ...; "kept", "broken", "undecided". */
extern const char *const update_finding_names[UPDATE_FINDINGS];
extern const char *const update_verdict_names[UPDATE_VERDICTS];

/* A number with as many digits as its bar lets stand: "4.9999993e-04". */
struct number_text update_number(double value, double bar);
/* A bar, with two digits: "1.6e-10". */
struct number_text update_bar(double bar);

#endif
