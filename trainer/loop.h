/* SPDX-License-Identifier: Apache-2.0
 * The training loop as data: what each phase reads and writes, which orders of phases are legal,
 * what is risky about an order, and which LR it applies (docs/decisions/the-loop-is-data.md).
 * Nothing here executes a phase or knows the model.
 *
 * One update k (counted from 1) runs list `micro` once per micro-batch and then list `update`. List
 * `eval` follows when k is a multiple of loop.eval_every, and list `epoch` when the epoch ended. A
 * skip rule looks at the gradient before list `update`, which closes the gradient (law 4 of
 * docs/DETERMINISM.md). In a skipped update only those phases of list `update` run that
 * loop.on_skip names.
 *
 * Invariant: what is said about an order follows from the table of phases and the lists alone. */
#ifndef TWINSTEP_TRAINER_LOOP_H
#define TWINSTEP_TRAINER_LOOP_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "scenarios/config.h"

/* The number of a list is also its index in scenario.loop_line[arm]. */
enum loop_list { LOOP_MICRO = 0, LOOP_UPDATE, LOOP_EPOCH, LOOP_EVAL, LOOP_ON_SKIP, LOOP_LISTS };

/* The resources that phases pass to each other, as bits of a mask. */
enum loop_resource {
    LOOP_BATCH = 1 << 0,    /* the micro-batch that fetch brought */
    LOOP_GRAPH = 1 << 1,    /* activations and loss of the last forward */
    LOOP_WINDOW = 1 << 2,   /* sums of loss, tokens and metrics since the last log */
    LOOP_GRADIENT = 1 << 3, /* accumulators and stored gradient (law 4) */
    LOOP_NORM = 1 << 4,     /* gradient norm and clip coefficient; not finite until clip ran */
    LOOP_LR = 1 << 5,       /* current LR of each group */
    LOOP_COUNTER = 1 << 6,  /* n: only `count` advances it */
    LOOP_PARAMS = 1 << 7,   /* parameters and masters */
    LOOP_SLOTS = 1 << 8,    /* optimizer slots and the optimizer's own t */
    LOOP_ROW = 1 << 9,      /* the row of the log */
    LOOP_RESOURCES = 10
};

struct loop_phase {
    const char *name; /* the name in scenarios and traces */
    uint32_t reads;   /* loop_resource bits */
    uint32_t needs;   /* the bits of `reads` that an earlier phase must have written */
    uint32_t writes;
    const char *help; /* one sentence without full stop */
};

/* Returns PHASE_TOTAL rows, indexed by enum phase. */
const struct loop_phase *loop_phases(void);

/* Returns the key of a list under `loop`: "micro", "update", "epoch", "eval" or "on_skip". */
const char *loop_list_name(enum loop_list list);

const struct key_list *loop_list_of(const struct config *config, enum loop_list list);

/* Returns 1 when `phase` of list `update` runs. In a skipped update that is so only where
 * loop.on_skip names it. */
int loop_runs(const struct config *config, enum phase phase, int skipped);

/* Returns how often `phase` stands in `list`. */
uint32_t loop_count(const struct config *config, enum loop_list list, enum phase phase);

/* Returns the position in `list` at which `phase` stands for the nth time, counted from 1, or
 * LOOP_NO_POSITION. */
#define LOOP_NO_POSITION UINT32_MAX
uint32_t loop_position(const struct config *config, enum loop_list list, enum phase phase,
                       uint32_t nth);

/* Returns how often `phase` runs in one update. Lists `micro` (once per micro-batch) and `update`
 * count; `epoch` and `eval` do not. */
uint64_t loop_runs_per_update(const struct config *config, enum phase phase);

/* Returns the counter that phase `schedule` hands to the schedule f after n counts: c0 + inc * n +
 * d, which are the keys schedule.origin, schedule.increment and schedule.shift. */
double loop_schedule_counter(const struct config *config, uint64_t n);
/* Returns the counter of the LR that `log` recomputes for printing under schedule.logged
 * `recomputed`: c0 + inc * n + d', with schedule.logged_shift as d'. */
double loop_logged_counter(const struct config *config, uint64_t n);
/* Returns the counter at which schedule.start `f0` evaluates the schedule: c0, whatever the shift.
 */
double loop_start_counter(const struct config *config);

/* The place at which an order is illegal. `position` is an index in the list, or LOOP_NO_POSITION
 * where a phase is missing. */
struct loop_fault {
    enum loop_list list;
    uint32_t position;
    enum phase phase;
};

/* Checks whether an order is legal. Fails with STATUS_INPUT and the text "loop.LIST[POSITION]
 * (PHASE): reason"; the caller puts file and line before it. `out_fault` may be NULL and is written
 * only on failure. */
TWINSTEP_MUST_USE enum status loop_check(const struct config *config, struct loop_fault *out_fault);

enum loop_severity { LOOP_NOTE = 0, LOOP_WARNING };

enum loop_hazard_kind {
    LOOP_LR_OLDER = 0,      /* optimize reads an LR of an earlier update, as in PyTorch */
    LOOP_LR_OFFSET,         /* update k does not apply f(c0 + inc * (k - 1)) */
    LOOP_SCHEDULE_ALONE,    /* schedule runs before optimize, count after it: no LR moves */
    LOOP_LR_START,          /* update 1 applies an LR that no schedule gave */
    LOOP_LR_FROZEN,         /* schedule or count never runs, or inc is 0 */
    LOOP_LOGGED_DIFFERS,    /* lr_logged is not lr_applied */
    LOOP_COUNT_OFTEN,       /* the counter advances other than once per update */
    LOOP_SCHEDULE_OFTEN,    /* schedule runs several times per update */
    LOOP_GRADIENT_CARRIES,  /* gradients of earlier updates reach optimize */
    LOOP_GRADIENT_EMPTY,    /* no gradient of this update reaches optimize */
    LOOP_GRADIENT_PARTIAL,  /* some micro-batches do not reach optimize */
    LOOP_CLIP_NEVER,        /* clip does not run */
    LOOP_CLIP_LATE,         /* clip runs, but not between the last backward and optimize */
    LOOP_CLIP_MICRO,        /* clip runs per micro-batch */
    LOOP_OPTIMIZE_OFTEN,    /* several optimizer steps in one update */
    LOOP_OPTIMIZE_IN_GRAPH, /* optimize runs between forward and backward */
    LOOP_OUTSIDE_UPDATE,    /* state changes in list epoch or eval */
    LOOP_SKIP_ADVANCES,     /* a skipped update still advances the schedule */
    LOOP_SKIP_APPLIES,      /* a skipped update still changes parameters */
    LOOP_SKIP_CARRIES,      /* a skipped update leaves its gradients for the next one */
    LOOP_UNSCALE_LATE,      /* clip sees gradients that still hold the loss scale */
    LOOP_UNSCALE_EARLY,     /* unscale before the last backward: two scales in one gradient */
    LOOP_OVERFLOW_APPLIED,  /* a dynamic loss scale without a skip rule */
    LOOP_HAZARD_KINDS
};

#define LOOP_TEXT 512
struct loop_hazard {
    enum loop_hazard_kind kind;
    enum loop_severity severity;
    char text[LOOP_TEXT]; /* one sentence without full stop */
};

/* Writes the hazards of a legal loop, at most one of each kind, in the order of the enum. Returns
 * their number. */
size_t loop_hazards(const struct config *config, struct loop_hazard out[LOOP_HAZARD_KINDS]);

/* Says in a phrase which f(.) update k applies and logs: "f(k-1)", or "base at k=1, then f(k-1)".
 * Where optimize runs several times in an update, the phrase is about the last time. */
#define LOOP_PHRASE 192
struct loop_words {
    char applied[LOOP_PHRASE];
    char logged[LOOP_PHRASE];
};
void loop_words_of(const struct config *config, struct loop_words *out_words);

#endif
