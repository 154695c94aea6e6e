/* SPDX-License-Identifier: Apache-2.0
 * The forms of tiles that products of mode invariant with f32 sums are cut into, and which of them
 * a product takes. For a host; usable without a variant. No bit depends on it. */
#ifndef TWINSTEP_KERNELS_CUDA_LINEAR_FORM_H
#define TWINSTEP_KERNELS_CUDA_LINEAR_FORM_H

#include <stddef.h>

/* A tile: its threads along the rows of C and along the columns, the outputs of each thread along
 * both, and whether threads read four terms ahead of their chains: that needs registers, and pays
 * where a multiprocessor has too few warps to hide a read behind the others. */
struct linear_form {
    unsigned down, across, rows, columns;
    int ahead;
};

#define LINEAR_TALL 16u, 8u, 8u, 8u, 0   /* 128 x 64 */
#define LINEAR_SQUARE 8u, 16u, 8u, 4u, 0 /* 64 x 64 */
#define LINEAR_SMALL 8u, 8u, 4u, 4u, 0   /* 32 x 32 */
#define LINEAR_TINY 8u, 16u, 2u, 2u, 0   /* 16 x 32 */
#define LINEAR_CUT 16u, 8u, 6u, 6u, 1    /* 96 x 48: 768 x 768 weights are 128 such tiles */

#define FORM_THREADS(...) FORM_THREADS_(__VA_ARGS__)
#define FORM_THREADS_(down, across, rows, columns, ahead) ((down) * (across))
#define FORM_ROWS(...) FORM_ROWS_(__VA_ARGS__)
#define FORM_ROWS_(down, across, rows, columns, ahead) ((down) * (rows))
#define FORM_COLUMNS(...) FORM_COLUMNS_(__VA_ARGS__)
#define FORM_COLUMNS_(down, across, rows, columns, ahead) ((across) * (columns))

enum linear_form_name { FORM_TALL, FORM_SQUARE, FORM_SMALL, FORM_TINY, FORM_CUT, LINEAR_FORMS };

/* The forms, and how many outputs a multiprocessor makes in a time in which it makes 100 of the
 * first form: with one tile, and with `full` or more. Measured on an H200
 * (docs/measurements/gpu-nvidia-h200.md); in between a line is drawn. */
static const struct {
    unsigned rows, columns, alone, most, full;
    int weight; /* 1: for weight gradients alone */
    int apart;  /* 1: also where lines are no multiples of 16 bytes apart */
} linear_forms[LINEAR_FORMS] = {
    {FORM_ROWS(LINEAR_TALL), FORM_COLUMNS(LINEAR_TALL), 68, 100, 3, 0, 1},
    {FORM_ROWS(LINEAR_SQUARE), FORM_COLUMNS(LINEAR_SQUARE), 56, 93, 3, 0, 0},
    {FORM_ROWS(LINEAR_SMALL), FORM_COLUMNS(LINEAR_SMALL), 26, 72, 4, 0, 1},
    {FORM_ROWS(LINEAR_TINY), FORM_COLUMNS(LINEAR_TINY), 21, 38, 4, 0, 0},
    {FORM_ROWS(LINEAR_CUT), FORM_COLUMNS(LINEAR_CUT), 68, 80, 2, 1, 0},
};

static inline size_t linear_form_tiles(enum linear_form_name form, size_t M, size_t N) {
    const size_t rows = linear_forms[form].rows, columns = linear_forms[form].columns;
    return ((M + rows - 1) / rows) * ((N + columns - 1) / columns);
}

/* How long the multiprocessor with most tiles takes. */
static inline size_t linear_form_cost(enum linear_form_name form, size_t M, size_t N,
                                      size_t multiprocessors) {
    const size_t outputs = (size_t)linear_forms[form].rows * linear_forms[form].columns;
    const size_t tiles = linear_form_tiles(form, M, N);
    const size_t own = (tiles + multiprocessors - 1) / multiprocessors;
    const size_t alone = linear_forms[form].alone, full = linear_forms[form].full;
    size_t speed = linear_forms[form].most;
    if (own > 0 && own < full) speed = alone + (speed - alone) * (own - 1) / (full - 1);
    return own * outputs * 100 / speed;
}

/* Returns the form that costs least. */
static inline enum linear_form_name linear_form_for(size_t M, size_t N, int weight, int apart,
                                                    size_t multiprocessors) {
    enum linear_form_name best = FORM_TALL;
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
