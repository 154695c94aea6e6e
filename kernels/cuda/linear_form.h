/* SPDX-License-Identifier: Apache-2.0
 * The forms of tiles that products of mode invariant with f32 sums are cut into, and which of them
 * a product takes. For a host; usable without a variant. No bit depends on it. */
#ifndef TWINSTEP_KERNELS_CUDA_LINEAR_FORM_H
#define TWINSTEP_KERNELS_CUDA_LINEAR_FORM_H

#include <stddef.h>

/* A tile: its threads along the rows of C and along the columns, and the outputs of each thread
 * along both. */
struct linear_form {
    unsigned down, across, rows, columns;
};

#define LINEAR_WIDE 16u, 16u, 8u, 8u  /* 128 x 128 */
#define LINEAR_NARROW 8u, 16u, 8u, 4u /* 64 x 64 */
#define LINEAR_SMALL 8u, 16u, 4u, 2u  /* 32 x 32 */
#define LINEAR_CUT 16u, 8u, 6u, 6u    /* 96 x 48: 768 x 768 weights are 128 such tiles */

#define FORM_THREADS(...) FORM_THREADS_(__VA_ARGS__)
#define FORM_THREADS_(down, across, rows, columns) ((down) * (across))
#define FORM_ROWS(...) FORM_ROWS_(__VA_ARGS__)
#define FORM_ROWS_(down, across, rows, columns) ((down) * (rows))
#define FORM_COLUMNS(...) FORM_COLUMNS_(__VA_ARGS__)
#define FORM_COLUMNS_(down, across, rows, columns) ((across) * (columns))

/* The forms, and what an output costs in each, in per cent of one in the widest. */
enum linear_form_name { FORM_WIDE, FORM_NARROW, FORM_SMALL, FORM_CUT, LINEAR_FORMS };

static const struct {
    unsigned rows, columns, cost;
    int weight; /* 1: for weight gradients alone */
    int apart;  /* 1: also where lines are no multiples of 16 bytes apart */
} linear_forms[LINEAR_FORMS] = {
    {FORM_ROWS(LINEAR_WIDE), FORM_COLUMNS(LINEAR_WIDE), 100, 0, 1},
    {FORM_ROWS(LINEAR_NARROW), FORM_COLUMNS(LINEAR_NARROW), 120, 0, 0},
    {FORM_ROWS(LINEAR_SMALL), FORM_COLUMNS(LINEAR_SMALL), 250, 0, 1},
    {FORM_ROWS(LINEAR_CUT), FORM_COLUMNS(LINEAR_CUT), 115, 1, 0},
};

static inline size_t linear_form_tiles(enum linear_form_name form, size_t M, size_t N) {
    const size_t rows = linear_forms[form].rows, columns = linear_forms[form].columns;
    return ((M + rows - 1) / rows) * ((N + columns - 1) / columns);
}

/* What the multiprocessor with most tiles has to do. */
static inline size_t linear_form_cost(enum linear_form_name form, size_t M, size_t N,
                                      size_t multiprocessors) {
    const size_t outputs = (size_t)linear_forms[form].rows * linear_forms[form].columns;
    const size_t tiles = linear_form_tiles(form, M, N);
    return (tiles + multiprocessors - 1) / multiprocessors * outputs * linear_forms[form].cost;
}

/* Returns the form that costs least. */
static inline enum linear_form_name linear_form_for(size_t M, size_t N, int weight, int apart,
                                                    size_t multiprocessors) {
    enum linear_form_name best = FORM_WIDE;
    for (int i = 0; i < LINEAR_FORMS; i++) {
        const enum linear_form_name form = (enum linear_form_name)i;
        if ((linear_forms[i].weight && !weight) || (apart && !linear_forms[i].apart)) continue;
        if (linear_form_cost(form, M, N, multiprocessors) <
            linear_form_cost(best, M, N, multiprocessors))
            best = form;
    }
    return best;
}

#endif
