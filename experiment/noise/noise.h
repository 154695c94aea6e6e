/* SPDX-License-Identifier: Apache-2.0
 * Measures the noise floor of one configuration: how far runs are apart that are meant to be the
 * same, one stratum at a time.
 *
 * Each stratum changes one thing about how the training is carried out, and nothing about the
 * training: it is run again, opened again, in another process, with other threads, micro-batches,
 * padding, layout or ranks. The 1-ulp perturbation, which moves one weight, stands beside them.
 * Prints nothing and starts no process (the caller does). Invariant: a stratum that cannot be
 * measured says why; nothing is guessed. */
#ifndef TWINSTEP_EXPERIMENT_NOISE_NOISE_H
#define TWINSTEP_EXPERIMENT_NOISE_NOISE_H

#include "determinism/floor_file.h"
#include "experiment/experiment.h"
#include "experiment/noise/noise_path.h"

enum noise_stratum {
    NOISE_REPEAT = 0, /* the same run object, restored to its start */
    NOISE_INSTANCE,   /* a second run opened in the same process */
    NOISE_PROCESS,    /* a second process */
    NOISE_THREADS,    /* numerics.threads */
    NOISE_MICRO,      /* batch.micro */
    NOISE_PADDING,    /* batch.pad, batch.padding */
    NOISE_LAYOUT,     /* batch.layout */
    NOISE_RANKS,      /* parallel.ranks, or the order in which a collective adds what ranks have */
    NOISE_ONE_ULP,    /* one weight moved by one unit in the last place of numerics.compute */
    NOISE_F64,        /* the measured run's own rounding: the same training, all of it in f64 */
    NOISE_DEVICE,     /* a second device */
    NOISE_STRATA
};
const char *noise_stratum_name(enum noise_stratum stratum); /* "repeat", ..., "device" */

#define NOISE_VARIANT_SIZE 160
#define NOISE_REASON_SIZE 256
#define NOISE_ROWS_MAX 24

/* One stratum, measured with one way of changing it: "threads 2". */
struct noise_row {
    enum noise_stratum stratum;
    char variant[NOISE_VARIANT_SIZE];   /* what was changed; "" */
    char untestable[NOISE_REASON_SIZE]; /* why there are no figures; "" when there are some */
    uint32_t repeats;
    /* The worst of the repeats. For the stratum f64 they are of update 1 and hold no shares of what
     * is bit-equal, no ulps and no place, since the two paths have different dtypes. */
    struct noise_figures figures;
};

struct noise_table {
    struct noise_row rows[NOISE_ROWS_MAX];
    uint32_t count;
    /* form of the paths, with the names that the figures point to */
    struct noise_layout layout;
    /* of the first one-ulp path; its arrays are NULL where there is none */
    struct noise_perturbed perturbed;
    /* Paths of the baseline and of the first other instance, whose order of sums is drawn anew
     * where it is free; NULL: not measured. */
    const unsigned char *path, *instance;
    /* products of the baseline that its library could not make as the mode wants; "": none */
    const char *products;
};

/* How far two orders of sums of one configuration are from each other, and each from a neutral
 * reference (the baseline of a measurement in mode order-free). The figures are of the same kind as
 * those of stratum f64. */
struct noise_orders {
    struct noise_figures apart;      /* from each other */
    struct noise_figures neutral[2]; /* each from the reference */
};
TWINSTEP_MUST_USE enum status noise_orders_measure(const struct noise_table *measured,
                                                   const struct noise_table *reference,
                                                   struct arena *arena, struct noise_orders *out);

struct noise_request {
    const struct config *config; /* numerics.order_seed may be free (KEY_WORD_UINT) */
    uint64_t steps;              /* updates that are trained */
    /* updates for which the configuration was resolved; 0: the same as `steps` */
    uint64_t resolved;
    uint32_t repeats;
    uint64_t processors; /* number of threads that `all` stands for */
    /* Trains `config` in another process and writes the bytes of its path to out_path. NULL: there
     * is no such process, and the stratum is untestable. */
    enum status (*process)(void *context, const struct config *config, uint64_t steps,
                           unsigned char *out_path, size_t size);
    void *context;
    /* Asked once a run is open, before what it is measured with is taken: fails if there is no
     * room. NULL: not asked. */
    enum status (*room)(void *room_context, const struct experiment_needs *needs);
    void *room_context;
    uint64_t cases; /* strata of so many cases, of which this is the first, stay in memory; 0: 1 */
    const volatile int *interrupted; /* NULL: never */
    /* Is told how many strata, or pairs, are done, from 0 on; may be NULL. */
    void (*progress)(void *progress_context, const char *what, uint64_t done, uint64_t total);
    void *progress_context;
};

/* Tells the request's progress, if it has one. */
void noise_tell(const struct noise_request *request, const char *what, uint64_t done,
                uint64_t total);

/* Asks for room for this run, which is open, and for so many bytes beside it. */
TWINSTEP_MUST_USE enum status noise_ask_room(const struct noise_request *request,
                                             const struct run *run, uint64_t beside);

/* Measures all strata. Everything lives in `arena`. */
TWINSTEP_MUST_USE enum status noise_measure(const struct noise_request *request,
                                            struct arena *arena, struct noise_table *out);

/* Whether every repeat of a configuration has the same bits by construction, because its threads do
 * not race and its order of sums is not drawn. */
int noise_is_exact(const struct config *config);

/* The order seed of run number `run`: the configuration's own, or one that is drawn where the
 * configuration leaves it free. */
uint64_t noise_order_seed(const struct config *config, uint64_t run);

/* Plans pairs of runs that are opened in this process and used for nothing else. */
struct noise_pairs_plan {
    const struct noise_request *of; /* its config is run a of every pair */
    const struct config *other;     /* run b of every pair; the same configuration for A/A pairs */
    uint64_t pairs;
    const char *what;   /* what progress is told: "A/A pairs" */
    uint64_t first_run; /* pair i draws free order seeds of runs first_run + 2 i and + 2 i + 1 */
};
#define NOISE_PAIRS_RUN 1000000u /* first_run of a floor's pairs, beyond any run of the strata */

/* Trains the pairs and measures each after every update: column c of pair i and update k stands in
 * columns[c][i * steps + k - 1]. */
TWINSTEP_MUST_USE enum status noise_pairs_measure(const struct noise_pairs_plan *plan,
                                                  struct arena *arena,
                                                  double *columns[FLOOR_COLUMNS]);
extern const char noise_pairs_protocol[];

/* noise_strata.c: lists the configurations that the strata are measured with. Entry i of `out`
 * (room for NOISE_ROWS_MAX) gets the changed configuration and its name, or a reason why there is
 * none. Returns their number. */
struct noise_variant {
    struct config config;
    enum noise_stratum stratum;
    char name[NOISE_VARIANT_SIZE];
    char untestable[NOISE_REASON_SIZE];
};
uint32_t noise_variants(const struct config *config, uint64_t steps, uint64_t processors,
                        struct noise_variant *out);

/* Set the mode ("invariant", ...) or the dtypes ("f32", "bf16", "f16", "f64") of a resolved
 * configuration. f32 and f64 stand for parameters, activations, gradients and slots alike, without
 * masters; bf16 and f16 are combined with f32 masters and slots. STATUS_INPUT names what was
 * expected. */
TWINSTEP_MUST_USE enum status noise_set_mode(struct config *config, const char *mode);
TWINSTEP_MUST_USE enum status noise_set_dtype(struct config *config, const char *dtype);

/* Makes the reference of stratum f64: every dtype is f64 (numerics.*, clip.dtype, the DPO
 * reference), the mode is invariant, and there are no masters, since nothing is wider. */
TWINSTEP_MUST_USE enum status noise_set_f64(struct config *config);

#endif
