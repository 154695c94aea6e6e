/* SPDX-License-Identifier: Apache-2.0
 * LR contracts: which LR a framework applies at update k and which one it logs there, as data.
 *
 * A contract is the eight fields of `struct contract` (their source: docs/LR.md) and a family of
 * schedules. With the numbers of one training (`struct contract_request`) it becomes a plan, and
 * the plan answers for any k, past the end too. Trains nothing, reads no log.
 *
 * Notation: k update, 1-based. f(s) schedule at counter s. T total, W warm-up, a accumulation,
 * P processes, B samples per update, L peak LR. n(k) = counted updates before update k, which is
 * k - 1 minus the skipped ones under CONTRACT_SKIP_HOLD.
 * Invariant: applied and logged are two columns, never one. */
#ifndef TWINSTEP_SCHED_CONTRACT_H
#define TWINSTEP_SCHED_CONTRACT_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/key.h"
#include "base/status.h"
#include "sched/sched.h"

/* LR before any schedule call; what update 1 applies when the schedule only runs after it. */
enum contract_start {
    CONTRACT_START_F0 = 0, /* f(0) installed by a constructor */
    CONTRACT_START_BASE,   /* the optimizer's LR */
    CONTRACT_START_ZERO,
    CONTRACT_START_MIN, /* the schedule's own minimum (new DeepSpeed: warmup_min_lr) */
    CONTRACT_START_NONE /* the schedule sets the LR before every update */
};

/* What one counted update is worth to the counter; T and W are in the same unit. */
enum contract_unit {
    CONTRACT_UNIT_UPDATE = 0,
    CONTRACT_UNIT_PROCESS, /* P per update (accelerate without split_batches) */
    CONTRACT_UNIT_SAMPLE,  /* B per update */
    CONTRACT_UNIT_TOKEN,   /* tokens_per_update */
    CONTRACT_UNIT_MICRO,   /* a per update: stepping per micro-batch, a bug class */
    CONTRACT_UNIT_EPOCH    /* floor(updates / updates_per_epoch) */
};

enum contract_skip { CONTRACT_SKIP_HOLD = 0, CONTRACT_SKIP_ADVANCE };

/* warm-up = rule(T * ratio) */
enum contract_rounding {
    CONTRACT_ROUND_NONE = 0, /* stays a float */
    CONTRACT_ROUND_FLOOR,    /* int(...) */
    CONTRACT_ROUND_CEIL,     /* of the binary float: ceil(100 * 0.07) is 8 */
    CONTRACT_ROUND_HALF_EVEN
};

/* Updates per epoch from the number of micro-batches of one process. */
enum contract_epoch_rule {
    CONTRACT_EPOCH_CEIL = 0,  /* ceil(batches / a) */
    CONTRACT_EPOCH_FLOOR,     /* max(1, batches / a) */
    CONTRACT_EPOCH_UNSHARDED, /* ceil(batches of all processes / a) (open-instruct tune-cache) */
    CONTRACT_EPOCH_NONE       /* no such rule: T must be given */
};

enum contract_logged { CONTRACT_LOGGED_USED = 0, CONTRACT_LOGGED_NEXT };

enum contract_past { CONTRACT_PAST_SCHEDULE = 0, CONTRACT_PAST_ABORT };

/* A warm-up longer than the run. */
enum contract_cap {
    CONTRACT_CAP_NONE = 0,
    CONTRACT_CAP_TOTAL, /* cut to T (torchtitan) */
    CONTRACT_CAP_BELOW  /* cut to T - 1 counter unit (Megatron-Bridge) */
};

/* How well the row is known. Printed with it. */
enum contract_evidence {
    CONTRACT_READ = 0, /* from the source of the release named in `source` */
    CONTRACT_DERIVED,  /* followed from source, not confirmed by a run */
    CONTRACT_RECALLED, /* general knowledge: to be confirmed */
    CONTRACT_RUN       /* the framework's own loop ran; its LRs are in tests/golden/lr */
};

struct contract {
    const char *name;   /* "hf", "olmo-core", ... */
    const char *alias;  /* another name, or NULL */
    const char *family; /* whose schedules bare names mean: "hf", "olmo-core", "megatron", ... */
    int32_t offset;     /* d: update k applies f(c0 + inc * (n(k) + d)); 0, 1 or -1 */
    int32_t start;      /* enum contract_start */
    int32_t unit;
    int32_t on_skip;
    int32_t warmup_rule;
    int32_t epoch_rule;
    int32_t past_end;
    int32_t cap;
    int32_t logged;
    int32_t evidence;
    uint8_t float32;   /* LR arithmetic in binary32 (llm.c) */
    uint8_t scaled;    /* correct use multiplies T and W by P (accelerate) */
    uint8_t bug;       /* a known bug, kept for recognition */
    uint8_t drop_last; /* its loader always drops a short last batch */
    const char *default_schedule;
    const char *preset[3]; /* schedule, key, value where it differs from the schedule's default */
    const char *help;      /* one sentence */
    const char *source;    /* project, file, version or commit; issue numbers of a bug */
};

/* All shipped contracts, in the order of docs/LR.md; *count of them. */
const struct contract *contract_list(size_t *count);
/* "read", "derived", "recalled", "run". */
const char *contract_evidence_name(int32_t evidence);
/* By name or alias; NULL when unknown. */
const struct contract *contract_find(const char *name);

enum contract_rescaled {
    CONTRACT_RESCALED_DEFAULT = 0, /* both where the contract is `scaled` */
    CONTRACT_RESCALED_NONE,
    CONTRACT_RESCALED_TOTAL,
    CONTRACT_RESCALED_WARMUP,
    CONTRACT_RESCALED_BOTH
};

#define CONTRACT_VALUES 16

/* Numbers of one training. Zeroed means "not given" (NaN for reals: contract_request_init). */
struct contract_request {
    const struct contract *contract;
    const char *schedule; /* bare name in the contract's family, or "family.name" */
    double lr;            /* L, finite, > 0 */
    double warmup;        /* in updates; NaN: from warmup_ratio, else 0 */
    double warmup_ratio;  /* of T; NaN: none */
    uint64_t steps;       /* T in updates; 0: derived from the next six */
    uint64_t dataset;     /* rows */
    double epochs;
    uint64_t batch;      /* rows per process and micro-batch */
    uint64_t accumulate; /* a; 0 is 1 */
    uint64_t processes;  /* P; 0 is 1 */
    int drop_last;
    int32_t rescaled;           /* enum contract_rescaled */
    uint64_t global_batch;      /* B; 0: batch * accumulate * processes, else 1 */
    uint64_t tokens;            /* per update, for CONTRACT_UNIT_TOKEN */
    uint64_t updates_per_epoch; /* for CONTRACT_UNIT_EPOCH; 0: by the epoch rule */
    const uint64_t *skipped;    /* ascending, 1-based: updates whose optimizer step was skipped */
    size_t skipped_count;
    const uint64_t *metric_update; /* ascending: the update after which it was evaluated */
    const double *metric_value;    /* for a feedback schedule; others do not look */
    size_t metric_count;
    double min_lr_ratio; /* NaN: the schedule's default; becomes min_lr where it has that */
    size_t value_count;  /* parameters of the schedule, by the keys of its class; lengths (unit
                            "counter") are in updates like warmup */
    struct {
        const char *key, *text;
    } values[CONTRACT_VALUES];
};

void contract_request_init(struct contract_request *request);

/* Owns nothing but arena memory. Copies share the state of a recursive schedule, which only saves
 * time: one thread evaluates a plan and its copies. */
struct contract_plan {
    const struct contract *contract;
    const struct sched_class *schedule;
    struct sched_call call; /* base_lr, warmup, total in counter units; values in the arena */
    double increment;       /* counter units of one counted update */
    uint64_t steps;         /* T in updates */
    uint64_t updates_per_epoch;
    double warmup_updates;
    const uint64_t *skipped;
    size_t skipped_count;
};

/* STATUS_INPUT names the option that is missing, contradicts or is out of range; and a schedule
 * that the family does not have, with those it has. */
TWINSTEP_MUST_USE enum status contract_resolve(const struct contract_request *request,
                                               struct arena *arena, struct contract_plan *out);

/* LR that update k >= 1 applies. A skipped update applies nothing: this is the LR in force there.
 * Past the end of a contract that aborts there: NaN. */
double contract_applied(const struct contract_plan *plan, uint64_t k);
/* LR that the framework prints for update k. Of a feedback schedule: the LR in use, whatever the
 * contract's `logged`, for the evaluation comes after the update's line. */
double contract_logged(const struct contract_plan *plan, uint64_t k);

/* The same over k = 1 .. count at once, in O(count + skipped). NULL columns are left out. */
void contract_columns(const struct contract_plan *plan, uint64_t count, double *applied,
                      double *logged);

#endif
