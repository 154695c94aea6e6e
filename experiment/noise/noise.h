/* SPDX-License-Identifier: Apache-2.0
 * The noise floor of one configuration: how far runs are apart that are meant to be the same, one
 * stratum at a time.
 *
 * Every stratum changes one thing of the protocol and nothing of the training: run again, opened
 * again, another process, other threads, other micro-batches, other padding, other layout; and the
 * 1-ulp twin, which changes one weight. Prints nothing and starts no process (the caller does).
 * Invariant: a stratum that cannot be measured says why; nothing is guessed. */
#ifndef TWINSTEP_EXPERIMENT_NOISE_NOISE_H
#define TWINSTEP_EXPERIMENT_NOISE_NOISE_H

#include "determinism/floor_file.h"
#include "experiment/noise/noise_path.h"

enum noise_stratum {
    NOISE_REPEAT = 0, /* the same run object, restored to its start */
    NOISE_INSTANCE,   /* a second run opened in the same process */
    NOISE_PROCESS,    /* a second process */
    NOISE_THREADS,    /* numerics.threads */
    NOISE_MICRO,      /* batch.micro */
    NOISE_PADDING,    /* batch.pad, batch.padding */
    NOISE_LAYOUT,     /* batch.layout */
    NOISE_ONE_ULP,    /* one weight moved by one unit in the last place of numerics.compute */
    NOISE_F64,        /* the measured run's own rounding: the same training, all of it in f64 */
    NOISE_DEVICE,     /* a second device */
    NOISE_STRATA
};
const char *noise_stratum_name(enum noise_stratum stratum); /* "repeat", ..., "device" */

#define NOISE_VARIANT_SIZE 160
#define NOISE_REASON_SIZE 256
#define NOISE_ROWS_MAX 16

/* One stratum in one way of changing it: "threads 2". */
struct noise_row {
    enum noise_stratum stratum;
    char variant[NOISE_VARIANT_SIZE];   /* what was changed; "" */
    char untestable[NOISE_REASON_SIZE]; /* why there are no figures; "" when there are */
    uint32_t repeats;
    /* The worst of the repeats. Of stratum f64: of update 1, and there are no shares of what is
     * bit-equal, no ulps and no place. */
    struct noise_figures figures;
};

struct noise_table {
    struct noise_row rows[NOISE_ROWS_MAX];
    uint32_t count;
    struct noise_layout layout;       /* names that the figures point to */
    struct noise_perturbed perturbed; /* of the first one-ulp path; NULL arrays: there is none */
    /* Paths of the baseline and of the first other instance, whose order is another one where it is
     * drawn; NULL: not measured. */
    const unsigned char *path, *instance;
    const char *products; /* of the baseline, those that its library had no way for; "": none */
};

/* Two orders of sums of one configuration and their neutral reference, mode order-free: how far
 * each is from the other, and from the reference (baseline of it). Figures as of stratum f64. */
struct noise_orders {
    struct noise_figures apart;      /* the orders from each other */
    struct noise_figures neutral[2]; /* each from the reference */
};
TWINSTEP_MUST_USE enum status noise_orders_measure(const struct noise_table *measured,
                                                   const struct noise_table *reference,
                                                   struct arena *arena, struct noise_orders *out);

struct noise_request {
    const struct config *config; /* numerics.order_seed may be free (KEY_WORD_UINT) */
    uint64_t steps;              /* that are trained */
    uint64_t resolved;           /* for which the configuration was resolved; 0: steps */
    uint32_t repeats;
    uint64_t processors; /* what `all` threads are */
    /* Trains `config` in another process and hands back the bytes of its path. NULL: there is none,
     * and the stratum is untestable. */
    enum status (*process)(void *context, const struct config *config, uint64_t steps,
                           unsigned char *out_path, size_t size);
    void *context;
    const volatile int *interrupted; /* NULL: never */
    /* Told how many strata, or pairs, are done, from 0 on; NULL: nobody is. */
    void (*progress)(void *progress_context, const char *what, uint64_t done, uint64_t total);
    void *progress_context;
};

/* Everything lives in `arena`. */
TWINSTEP_MUST_USE enum status noise_measure(const struct noise_request *request,
                                            struct arena *arena, struct noise_table *out);

/* Whether every repeat of a configuration has the same bits by construction: neither races nor
 * draws its order. */
int noise_is_exact(const struct config *config);

/* Seed of the order of sums of run number `run`: the configuration's own, or drawn where it leaves
 * it free. */
uint64_t noise_order_seed(const struct config *config, uint64_t run);

/* Pairs of runs opened in this process and used for nothing else. */
struct noise_pairs_plan {
    const struct noise_request *of; /* of.config is run a of every pair */
    const struct config *other;     /* run b; the same for A/A pairs */
    uint64_t pairs;
    const char *what;   /* for progress: "A/A pairs" */
    uint64_t first_run; /* for order seeds that are free: 2 i and 2 i + 1 behind it are pair i's */
};
#define NOISE_PAIRS_RUN 1000000u /* first_run of a floor's pairs */

/* Column c of pair i and update k stands in columns[c][i * steps + k - 1]. */
TWINSTEP_MUST_USE enum status noise_pairs_measure(const struct noise_pairs_plan *plan,
                                                  struct arena *arena,
                                                  double *columns[FLOOR_COLUMNS]);
extern const char noise_pairs_protocol[];

/* noise_strata.c: the configurations of a stratum. Entry i of `out` (room for NOISE_ROWS_MAX) gets
 * the changed configuration and its name, or a reason. */
struct noise_variant {
    struct config config;
    enum noise_stratum stratum;
    char name[NOISE_VARIANT_SIZE];
    char untestable[NOISE_REASON_SIZE];
};
uint32_t noise_variants(const struct config *config, uint64_t steps, uint64_t processors,
                        struct noise_variant *out);

/* Sets the mode ("invariant", ...) or the dtypes ("f32", "bf16", "f16", "f64") of a resolved
 * configuration. f32 and f64: parameters, activations, gradients, slots alike, no masters; bf16 and
 * f16: those with f32 masters and slots. STATUS_INPUT names what was expected. */
TWINSTEP_MUST_USE enum status noise_set_mode(struct config *config, const char *mode);
TWINSTEP_MUST_USE enum status noise_set_dtype(struct config *config, const char *dtype);

/* The reference of the stratum f64: every dtype f64 (numerics.*, clip.dtype, the DPO reference), no
 * masters, since nothing is wider, mode invariant. */
TWINSTEP_MUST_USE enum status noise_set_f64(struct config *config);

#endif
