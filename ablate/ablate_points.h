/* SPDX-License-Identifier: Apache-2.0
 * What runs left, as numbers: digests, end points of weights with their inner products, losses by
 * update, and where traces part. Judges nothing.
 *
 * Values are compared exactly: every conversion to f64 is exact, sums are those of base/sum.h over
 * tensors in the order of their names, and no file is copied into memory. */
#ifndef TWINSTEP_ABLATE_ABLATE_POINTS_H
#define TWINSTEP_ABLATE_ABLATE_POINTS_H

#include "ablate/ablate_folder.h"
#include "ablate/ablate_names.h"
#include "ablate/ablate_torch.h"
#include "checkpoints/checkpoint.h"

struct trace_image;

/* What one run left. */
struct ablate_left {
    int has_weights, has_torch;
    struct checkpoint weights;       /* their names without wrappers: ablate_names.h */
    struct checkpoint as_named;      /* the same by the names in the file */
    unsigned wrappers;               /* which these had, bit by bit (checkpoints/layers.h) */
    struct torch_file torch;         /* which holds the weights, where has_torch */
    const struct trace_image *trace; /* NULL: none */
    size_t rows;                     /* of losses, from the log or else from the trace */
    const int64_t *step;
    const double *loss;
    const char *digest[READ_KINDS]; /* hexadecimal; NULL: not left */
};

/* Reads what a run left in `dir`. STATUS_INPUT or STATUS_IO: something is missing or is no such
 * file; the text names it. */
TWINSTEP_MUST_USE enum status ablate_left_open(const struct ablate_file *file,
                                               const struct ablate_run *run, const char *dir,
                                               struct arena *arena, struct ablate_left *out);
void ablate_left_close(struct ablate_left *left);

/* Whether what was left is what a run recorded when it ended. Programs from before names were taken
 * without wrappers digested weights by the names in the file, and their records hold, too. */
TWINSTEP_MUST_USE enum status ablate_left_is(const struct ablate_left *left, enum ablate_read kind,
                                             const char *recorded, struct arena *arena, int *out);

/* The path of what a run left in `dir`, of a kind that the file reads. */
TWINSTEP_MUST_USE enum status ablate_left_path(const struct ablate_file *file,
                                               const struct ablate_run *run, enum ablate_read kind,
                                               const char *dir, struct arena *arena, char **out);

/* Returns the kinds of `reads` (bits of enum ablate_read) in which two runs are not known to be
 * equal. */
unsigned ablate_left_differ(const struct ablate_left *a, const struct ablate_left *b,
                            unsigned reads);

/* Whether a run left a loss of an update, which may be no number. */
int ablate_has_step(const struct ablate_left *left, int64_t step);

/* The loss after the last update that every one of `count` runs has; 0 if there is none. */
int64_t ablate_common_step(const struct ablate_left *const *runs, uint32_t count);
double ablate_loss_at(const struct ablate_left *left, int64_t step);

/* Two runs i and j: the inner product of (x_i - x_origin) and (x_j - x_origin), or, with
 * `difference`, |x_i - x_j|^2. */
struct ablate_pair {
    uint32_t i, j;
    int difference;
    double value;
};

struct ablate_shape {
    size_t tensors;    /* that the arms have both */
    uint64_t elements; /* of tensors of numbers, which distances are of */
    size_t others;     /* tensors of integers, of which only equality counts */
    /* The first of all runs' tensors with a number that is not finite: its run, or `count`. */
    uint32_t broken;
    const char *broken_tensor;
};

/* Computes the pairs over the common tensors in one pass over all files; others are not looked at.
 * STATUS_UNTESTABLE: there is none, a run lacks one, or has another shape of it; the text names the
 * first. */
TWINSTEP_MUST_USE enum status ablate_products(const struct ablate_left *const *runs,
                                              const char *const *names, uint32_t count,
                                              uint32_t origin, const struct ablate_common *common,
                                              struct ablate_pair *pairs, size_t pair_count,
                                              struct arena *arena, struct ablate_shape *out);

/* Where two traces part first, or, without traces, two logs of losses. update 0: nowhere, or it was
 * not recorded. */
struct ablate_first {
    int64_t update;
    const char *phase, *tensor; /* "" where not recorded; "loss" of logs */
};
void ablate_find_first(const struct ablate_left *a, const struct ablate_left *b,
                       struct ablate_first *out);

#endif
