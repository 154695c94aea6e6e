/* SPDX-License-Identifier: Apache-2.0
 * The product in mode invariant with f32 sums: the kernels of each kind of product and form of
 * tile, and which of them it takes. What they compute is in linear_stages.h. */
#include "kernels/cuda/linear_form.h"
#include "kernels/cuda/linear_stages.h"

#define STAGED(name, kind, threads, blocks, apart, ...)                                            \
    KERNEL_BY(name, struct gemm, threads, blocks) {                                                \
        const struct linear_form shape = {__VA_ARGS__};                                            \
        SHARED(float, shared);                                                                     \
        stage_tile(GPU_ARG args, shared, kind, shape, apart);                                      \
    }

STAGED(linear_tall_forward, LINEAR_FORWARD, 128, 3, 0, LINEAR_TALL)
STAGED(linear_tall_input, LINEAR_INPUT, 128, 3, 0, LINEAR_TALL)
STAGED(linear_tall_weight, LINEAR_WEIGHT, 128, 3, 0, LINEAR_TALL)
STAGED(linear_square_forward, LINEAR_FORWARD, 128, 4, 0, LINEAR_SQUARE)
STAGED(linear_square_input, LINEAR_INPUT, 128, 4, 0, LINEAR_SQUARE)
STAGED(linear_square_weight, LINEAR_WEIGHT, 128, 4, 0, LINEAR_SQUARE)
STAGED(linear_small_forward, LINEAR_FORWARD, 64, 8, 0, LINEAR_SMALL)
STAGED(linear_small_input, LINEAR_INPUT, 64, 8, 0, LINEAR_SMALL)
STAGED(linear_small_weight, LINEAR_WEIGHT, 64, 8, 0, LINEAR_SMALL)
STAGED(linear_tiny_forward, LINEAR_FORWARD, 128, 4, 0, LINEAR_TINY)
STAGED(linear_tiny_input, LINEAR_INPUT, 128, 4, 0, LINEAR_TINY)
STAGED(linear_tiny_weight, LINEAR_WEIGHT, 128, 4, 0, LINEAR_TINY)
STAGED(linear_cut_weight, LINEAR_WEIGHT, 128, 2, 0, LINEAR_CUT)
/* Of operands whose lines are no multiples of 16 bytes apart. */
STAGED(linear_apart_tall_forward, LINEAR_FORWARD, 128, 3, 1, LINEAR_TALL)
STAGED(linear_apart_tall_input, LINEAR_INPUT, 128, 3, 1, LINEAR_TALL)
STAGED(linear_apart_tall_weight, LINEAR_WEIGHT, 128, 3, 1, LINEAR_TALL)
STAGED(linear_apart_small_forward, LINEAR_FORWARD, 64, 8, 1, LINEAR_SMALL)
STAGED(linear_apart_small_input, LINEAR_INPUT, 64, 8, 1, LINEAR_SMALL)
STAGED(linear_apart_small_weight, LINEAR_WEIGHT, 64, 8, 1, LINEAR_SMALL)

#define STAGED_START(name, ...)                                                                    \
    LAUNCH(name, tiles, FORM_THREADS(__VA_ARGS__), STAGES_SHARED(__VA_ARGS__), job)

/* Starts the kernel of the product's kind among the three whose names begin alike. */
#define STAGED_START_KIND(name, ...)                                                               \
    do {                                                                                           \
        if (job->by_terms)                                                                         \
            STAGED_START(name##_weight, __VA_ARGS__);                                              \
        else if (job->b_transposed)                                                                \
            STAGED_START(name##_forward, __VA_ARGS__);                                             \
        else                                                                                       \
            STAGED_START(name##_input, __VA_ARGS__);                                               \
    } while (0)

/* Tests on the host take every form that there is, by turns (cmake/shim.cmake). */
static enum linear_form_name staged_form(const struct gemm *job, int apart) {
#if defined(LINEAR_FORMS_IN_TURN)
    static const enum linear_form_name turns[2][LINEAR_FORMS] = {
        {FORM_TALL, FORM_SQUARE, FORM_SMALL, FORM_TINY, FORM_CUT}, {FORM_TALL, FORM_SMALL}};
    const unsigned forms = apart ? 2 : job->by_terms ? LINEAR_FORMS : LINEAR_FORMS - 1;
    return turns[apart][(job->M + job->N + job->K) % forms];
#else
    return linear_form_for(job->M, job->N, job->by_terms, apart, gpu_multiprocessors());
#endif
}

static void linear_staged(const struct gemm *job) {
    const int apart = !lines_aligned(job->a, job->a_stride * sizeof(float)) ||
                      !lines_aligned(job->b, job->b_stride * sizeof(float));
    const enum linear_form_name form = staged_form(job, apart);
    const size_t tiles = linear_form_tiles(form, job->M, job->N);
    if (apart && form == FORM_TALL)
        STAGED_START_KIND(linear_apart_tall, LINEAR_TALL);
    else if (apart)
        STAGED_START_KIND(linear_apart_small, LINEAR_SMALL);
    else if (form == FORM_TALL)
        STAGED_START_KIND(linear_tall, LINEAR_TALL);
    else if (form == FORM_SQUARE)
        STAGED_START_KIND(linear_square, LINEAR_SQUARE);
    else if (form == FORM_SMALL)
        STAGED_START_KIND(linear_small, LINEAR_SMALL);
    else if (form == FORM_TINY)
        STAGED_START_KIND(linear_tiny, LINEAR_TINY);
    else
        STAGED_START(linear_cut_weight, LINEAR_CUT);
}
