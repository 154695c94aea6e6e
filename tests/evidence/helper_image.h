/* SPDX-License-Identifier: Apache-2.0
 * The image of a trace that a test makes by hand, so that what a verdict should say can be worked
 * out on paper: two arms, their records, and the attributes and arrays that `run` would have
 * written. Nothing is trained, and no file is touched. */
#ifndef TWINSTEP_TESTS_EVIDENCE_HELPER_IMAGE_H
#define TWINSTEP_TESTS_EVIDENCE_HELPER_IMAGE_H

#include "base/arena.h"
#include "evidence/judge.h"

#define HELPER_RUNS 24

struct helper_image {
    struct arena arena;
    struct trace_image image;
    struct trace_run runs[HELPER_RUNS];
    struct trace_pair pairs[2]; /* of the arms, and of the perturbed run */
    struct trace_attribute attributes[48];
    struct trace_array arrays[24];
    struct trace_text texts[2];
    struct judgement judgement;
    char *words; /* the whole verdict, as a terminal shows it */
};

/* Arms "left" and "right" of so many updates that agree in everything: LR 0.001, loss 2, gradient
 * norm 0.5, every weight moved by every update, |a-a0| = k after update k; one tensor, one group.
 * The baseline was repeated bit for bit. */
void helper_image_open(struct helper_image *of, uint64_t updates);
void helper_image_close(struct helper_image *of);

/* Sets an attribute, anew where it has a value. Texts must outlive the image. */
void helper_image_set(struct helper_image *of, const char *path, const char *name,
                      const char *text);
/* Sets an array; one of one column has rank 1. Values must outlive the image. */
void helper_image_put(struct helper_image *of, const char *path, uint64_t rows, uint64_t columns,
                      const double *values);
/* Adds a run with a copy of the baseline's records. */
struct trace_run *helper_image_run(struct helper_image *of, const char *id, const char *arm,
                                   uint64_t mask);
/* Lets weights and roots of the arms differ from this update on; |a-b| is `distance` after it, and
 * grows by as much in each further update. */
void helper_image_part(struct helper_image *of, uint64_t step, double distance);
/* Lets these causes differ, in this order; each has the line "NAME.key: 1 -> 2". */
void helper_image_causes(struct helper_image *of, const char *const *names, uint32_t count);

/* Judges it; fails the test unless this has the status. */
void helper_image_judge(struct helper_image *of, enum status expected);
/* The text of the row number `index` of a kind, counted from 0; "" where there is none. */
const char *helper_image_row(const struct helper_image *of, enum judged_row_kind kind,
                             uint32_t index);
/* Fails the test unless that row has this text. */
void helper_image_expect(const struct helper_image *of, enum judged_row_kind kind, uint32_t index,
                         const char *text);

#endif
