/* SPDX-License-Identifier: Apache-2.0
 * Decides before anything is trained which runs an experiment has: arms, floor and hybrids, with
 * their configurations and order seeds, and the factors that hybrids swap. Trains nothing. Private
 * to the experiment. */
#ifndef TWINSTEP_EXPERIMENT_EXPERIMENT_PLAN_H
#define TWINSTEP_EXPERIMENT_EXPERIMENT_PLAN_H

#include "determinism/orders.h"
#include "evidence/judge.h"
#include "trainer/run.h"

enum planned_kind {
    PLANNED_ARM = 0,
    PLANNED_RERUN,
    PLANNED_PERTURBED, /* the baseline with one weight one unit in the last place off */
    PLANNED_REPLICATE,
    PLANNED_HYBRID
};

struct planned_run {
    char id[64];
    enum planned_kind kind;
    uint32_t arm;         /* 0 baseline, 1 test */
    uint32_t replicate;   /* number of the repeat; 0: the arm itself */
    uint32_t mask;        /* bit i: factor i of the plan comes from the test arm; for hybrids */
    struct config config; /* with its order seed resolved */
    struct run_axes axes;
    char *text; /* canonical text of the configuration */
    /* digest of the rows that it reads (data/dataset.h); "": the data are not open yet */
    char data[DIGEST_HEX];
};

/* A factor as it is swapped: one cause, or several that validate only together. */
struct planned_factor {
    char name[96];
    uint32_t causes; /* bits of enum cause */
    char *keys;      /* "key: a -> b" lines */
};

/* A hybrid: the baseline with the factors of `mask` (bit i: factor i) taken from the test arm. */
struct planned_hybrid {
    uint32_t mask;
    /* index of the hybrid that is trained for it: its own, or that of one determined alike */
    uint32_t same;
    /* index of its run where it is trained itself; 0 for mask 0, which is the baseline */
    uint32_t run;
    struct digest determines;
};

struct experiment_plan {
    const struct schema *schema;
    const struct scenario *scenario;
    struct run_options options;
    struct planned_factor factors[CAUSE_COUNT];
    uint32_t factor_count;
    int attributable; /* hybrids are planned */
    /* why factors were merged, or why there are no hybrids; may be "" */
    char *merged;
    /* which rows data.no_label dropped, one line per arm or one for both; NULL: none, or the data
     * are not open yet */
    const char *dropped;
    /* Rows of eval.* as they are told: how many were held out and from where, which of them are
     * trained on, too, and in which keys the arms differ that the measuring takes from the
     * baseline. NULL: nothing is measured, or there is nothing to say. */
    struct {
        const char *rows, *seen, *as_baseline;
        uint32_t held_out, trained; /* at most so many are measured */
    } eval;
    /* sampled orders in which factors enter; count 0: every hybrid is planned */
    struct orders orders;
    struct planned_hybrid *hybrids; /* by ascending mask, from none to all */
    uint32_t hybrid_count;
    uint32_t shared; /* hybrids that are not trained because another one is determined alike */
    /* Known once the arms are open (experiment_alike.c): the updates, from the first one on, in
     * which nothing that differs between the arms acts, and those for which one training serves
     * both: all of these, or 0. */
    uint64_t alike, served;
    enum floor_kind floor;
    uint32_t floor_runs[2]; /* runs of each arm in the floor, the arms themselves included */
    struct planned_run *runs;
    uint32_t run_count;
    uint32_t first_floor, first_hybrid; /* indices into runs */
    uint32_t perturbed;                 /* index of the perturbed run; 0: there is none */
    enum dtype point_dtype;    /* that holds the weights of every run exactly (experiment/pair.h) */
    uint32_t projection_runs;  /* runs of each hybrid for the intervals of noisy shares; 0: none */
    uint32_t first_projection; /* index of the first of them; by mask, without none and all */
};

TWINSTEP_MUST_USE enum status experiment_plan_open(const struct schema *schema,
                                                   const struct scenario *scenario,
                                                   struct arena *arena,
                                                   struct experiment_plan *out);

/* experiment_alike.c: For who tells what a run would do: for how many updates, from the first one
 * on, one training may serve both arms, since nothing that differs between them acts; `samples` is
 * the size of the baseline's data. The arms' states and what is recorded of them may forbid it, and
 * a drawn share of scenarios trains both. */
TWINSTEP_MUST_USE enum status experiment_may_share(const struct experiment_plan *plan,
                                                   uint64_t samples, uint64_t *out_updates);

/* experiment_factors.c. The first fills plan->factors with the causes in which two configurations
 * differ. The second merges factors that validate only together, and plan->merged says why. */
TWINSTEP_MUST_USE enum status experiment_find_factors(struct experiment_plan *plan,
                                                      const struct config *a,
                                                      const struct config *b, struct arena *arena);
TWINSTEP_MUST_USE enum status experiment_settle_factors(struct experiment_plan *plan,
                                                        const struct config *a,
                                                        const struct config *b,
                                                        struct arena *arena);

/* Takes the factors of `mask` over from another configuration. */
void experiment_swap_mask(const struct experiment_plan *plan, struct config *into,
                          const struct config *from, uint32_t mask);

/* Digests everything that decides what a configuration trains: its canonical text, in which every
 * key that nothing reads (scenarios/inert.h) has the value that an empty scenario gives it. Equal
 * digests mean equal bits. */
TWINSTEP_MUST_USE enum status experiment_determines(const struct schema *schema,
                                                    const struct config *config,
                                                    struct arena *arena, struct digest *out);

/* Digests the resolved configurations of both arms; `purpose` keeps digests of one use apart from
 * those of another. */
void experiment_digest_arms(const struct experiment_plan *plan, const char *purpose,
                            struct digest *out);

/* Draws the order seed of run number `run` of an experiment whose arm leaves it free. */
uint64_t experiment_order_seed(uint64_t seed, uint64_t run);

#endif
