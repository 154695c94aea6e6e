/* SPDX-License-Identifier: Apache-2.0
 * LR contracts: which learning rate a framework applies at update k and which one it logs there, as
 * data.
 *
 * A contract is the fields of `struct contract` (docs/LR.md says where they come from) and a family
 * of schedules. Together with the numbers of one training (`struct contract_request`) it becomes a
 * plan, and the plan answers for any k, past the end too. Nothing here trains or reads a log.
 *
 * Notation: k is the update, counted from 1. f(s) is the schedule at counter s. T is the total, W
 * the warm-up, a the accumulation, P the number of processes, B the samples of an update, L the
 * peak rate. n(k) is the number of counted updates before update k: k - 1, minus the skipped ones
 * under CONTRACT_SKIP_HOLD. Invariant: applied and logged rates are two columns, never one. */
#ifndef TWINSTEP_SCHED_CONTRACT_H
#define TWINSTEP_SCHED_CONTRACT_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/key.h"
#include "base/status.h"
#include "sched/sched.h"

/* The rate before the schedule was ever called. Update 1 applies it when the schedule only runs
 * after that update. */
enum contract_start {
    CONTRACT_START_F0 = 0, /* f(0), which a constructor installed */
    CONTRACT_START_BASE,   /* the optimizer's own rate, L */
    CONTRACT_START_ZERO,
    CONTRACT_START_MIN, /* the schedule's own minimum (DeepSpeed after its fix: warmup_min_lr) */
    CONTRACT_START_NONE /* nothing: the schedule sets the rate before every update */
};

/* What one counted update adds to the counter. T and W are in the same unit. */
enum contract_unit {
    CONTRACT_UNIT_UPDATE = 0,
    CONTRACT_UNIT_PROCESS, /* P per update (accelerate with split_batches=False) */
    CONTRACT_UNIT_SAMPLE,  /* B per update */
    CONTRACT_UNIT_TOKEN,   /* contract_request.tokens per update */
    CONTRACT_UNIT_MICRO, /* a per update: a scheduler that is stepped once per micro-batch, a known
                            kind of bug */
    CONTRACT_UNIT_EPOCH  /* the counter is floor(updates / updates_per_epoch) */
};

enum contract_skip { CONTRACT_SKIP_HOLD = 0, CONTRACT_SKIP_ADVANCE };

/* The rule by which T * ratio becomes the length of the warm-up. */
enum contract_rounding {
    CONTRACT_ROUND_NONE = 0, /* it stays a fraction */
    CONTRACT_ROUND_FLOOR,    /* Python's int() */
    CONTRACT_ROUND_CEIL,     /* math.ceil of the binary number: ceil(100 * 0.07) is 8 */
    CONTRACT_ROUND_HALF_EVEN
};

/* How updates per epoch follow from the number of micro-batches of one process. */
enum contract_epoch_rule {
    CONTRACT_EPOCH_CEIL = 0,  /* ceil(batches / a) */
    CONTRACT_EPOCH_FLOOR,     /* max(1, batches / a) */
    CONTRACT_EPOCH_UNSHARDED, /* ceil(batches of all processes / a) (open-instruct
                                 dpo_tune_cache.py) */
    CONTRACT_EPOCH_NONE       /* there is no rule, and T must be given */
};

enum contract_logged { CONTRACT_LOGGED_USED = 0, CONTRACT_LOGGED_NEXT };

enum contract_past { CONTRACT_PAST_SCHEDULE = 0, CONTRACT_PAST_ABORT };

/* What happens to a warm-up that is longer than the run. */
enum contract_cap {
    CONTRACT_CAP_NONE = 0,
    CONTRACT_CAP_TOTAL, /* it is cut to T (torchtitan) */
    CONTRACT_CAP_BELOW  /* it is cut to one counter unit below T (Megatron-Bridge) */
};

/* How well the row is known; it is printed with the row. */
enum contract_evidence {
    CONTRACT_READ = 0, /* read in the source of the release that `source` names */
    CONTRACT_DERIVED,  /* derived from the source, but not confirmed by a run */
    CONTRACT_RECALLED, /* general knowledge that is still to be confirmed */
    CONTRACT_RUN       /* the framework's own loop ran; its rates are in tests/golden/lr */
};

struct contract {
    const char *name;   /* "hf", "olmo-core", ... */
    const char *alias;  /* another name, or NULL */
    const char *family; /* whose schedules bare names mean: "hf", "olmo-core", "megatron", ... */
    int32_t offset;     /* d: update k applies f(c0 + inc * (n(k) + d)); d is 0, 1 or -1 */
    int32_t start;      /* enum contract_start */
    int32_t unit;
    int32_t on_skip;
    int32_t warmup_rule;
    int32_t epoch_rule;
    int32_t past_end;
    int32_t cap;
    int32_t logged;
    int32_t evidence;
    uint8_t float32;   /* 1: rates are computed in binary32 (llm.c) */
    uint8_t scaled;    /* 1: a correct script multiplies T and W by P (accelerate) */
    uint8_t bug;       /* 1: this is a known bug, kept so that it is recognised */
    uint8_t drop_last; /* 1: its loader always drops a short last batch */
    const char *default_schedule;
    const char *preset[3]; /* schedule, key and value, where its default is not the schedule's */
    const char *help;      /* one sentence */
    const char *source;    /* project, file, version or commit; issue numbers of a bug */
};

/* All shipped contracts, in the order of docs/LR.md; *count becomes their number. */
const struct contract *contract_list(size_t *count);
/* "read", "derived", "recalled", "run". */
const char *contract_evidence_name(int32_t evidence);
/* The contract of this name or alias; NULL when there is none. */
const struct contract *contract_find(const char *name);
/* The name of the contract that holds for a version of transformers which is written as contracts
 * are ("hf-4.57", "hf-4.46.3"); NULL where the word is no such version. */
const char *contract_name_of_version(const char *word);

/* Which lengths the script turned from updates into counter units. */
enum contract_rescaled {
    CONTRACT_RESCALED_DEFAULT = 0, /* both lengths where the contract is `scaled`, else none */
    CONTRACT_RESCALED_NONE,
    CONTRACT_RESCALED_TOTAL,
    CONTRACT_RESCALED_WARMUP,
    CONTRACT_RESCALED_BOTH
};

#define CONTRACT_VALUES 16

/* The numbers of one training. Zero means "not given", and NaN means it for reals;
 * contract_request_init sets both. */
struct contract_request {
    const struct contract *contract;
    const char *schedule; /* a bare name in the contract's family, or "family.name"; NULL: the
                             contract's default */
    double lr;            /* L: finite and above 0 */
    double warmup;        /* W in updates; NaN: it follows from warmup_ratio, else it is 0 */
    double warmup_ratio;  /* W as a share of T; NaN: not given */
    uint64_t steps;       /* T in updates; 0: it is derived from the next six fields */
    uint64_t dataset;     /* rows */
    double epochs;
    uint64_t batch;      /* rows per process and micro-batch */
    uint64_t accumulate; /* a; 0 stands for 1 */
    uint64_t processes;  /* P; 0 stands for 1 */
    int drop_last;
    int32_t rescaled;           /* enum contract_rescaled */
    uint64_t global_batch;      /* B; 0: batch * accumulate * processes */
    uint64_t tokens;            /* tokens of one update, for CONTRACT_UNIT_TOKEN */
    uint64_t updates_per_epoch; /* for CONTRACT_UNIT_EPOCH; 0: it follows from the epoch rule */
    const uint64_t *skipped;    /* ascending, 1-based: updates whose step was skipped */
    size_t skipped_count;
    const uint64_t *metric_update; /* ascending: the update after which each value was evaluated */
    const double *metric_value;    /* what a feedback schedule follows; others ignore it */
    size_t metric_count;
    double min_lr_ratio; /* NaN: the schedule's default; it sets min_lr where the schedule has that
                            key */
    size_t value_count;  /* parameters of the schedule, by the keys of its class; lengths (unit
                            "counter") are in updates, as warmup is */
    struct {
        const char *key, *text;
    } values[CONTRACT_VALUES];
};

/* A request in which nothing is given. */
void contract_request_init(struct contract_request *request);

/* A resolved contract. All its memory is the arena's. Copies share the state of a recursive
 * schedule, which only saves time, so one thread at a time evaluates a plan and its copies. */
struct contract_plan {
    const struct contract *contract;
    const struct sched_class *schedule;
    struct sched_call call; /* base_lr, warmup and total in counter units */
    double increment;       /* counter units that one counted update is worth */
    uint64_t steps;         /* T in updates */
    uint64_t updates_per_epoch;
    double warmup_updates;
    const uint64_t *skipped;
    size_t skipped_count;
};

/* Resolves a request into *out, with its memory from `arena`. STATUS_INPUT names the option that is
 * missing, contradictory or out of range, or says that the family has no such schedule and lists
 * those that it has. */
TWINSTEP_MUST_USE enum status contract_resolve(const struct contract_request *request,
                                               struct arena *arena, struct contract_plan *out);

/* The rate that update k >= 1 applies. A skipped update applies nothing: there it is the rate in
 * force. Past the end of a contract that aborts there it is NaN. */
double contract_applied(const struct contract_plan *plan, uint64_t k);
/* The rate that the framework prints for update k. For a feedback schedule it is the rate in use,
 * whatever the contract's `logged` says, because the evaluation comes after the line of the
 * update. */
double contract_logged(const struct contract_plan *plan, uint64_t k);

/* Both rates for k = 1 .. count at once, bit-equal to the single evaluations, in O(count + skipped)
 * time. A column that is NULL is not written. */
void contract_columns(const struct contract_plan *plan, uint64_t count, double *applied,
                      double *logged);

#endif
