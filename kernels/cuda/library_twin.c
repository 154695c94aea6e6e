/* SPDX-License-Identifier: Apache-2.0
 * The twin of cuBLAS on the host, for the shim: same operands, same memory, same calls.
 *
 * Its order of sums, stated. Terms are dealt evenly to `parts` workers, at least 32 each and 4 of
 * them at most, where K may be split; else there is one. A worker takes slabs of its terms in
 * ascending order: 16 terms, twice as many where the workspace is the library's own, four times as
 * many where several streams work at once. A slab is a chain of fused multiply-adds from +0 in the
 * dtype of the sum (products of bf16, f16 and tf32 numbers are exact in f32); its sum is added to
 * the worker's. Workers' sums are added in ascending order, and then to what C holds.
 * So each mechanism that is left free moves bits, and none by chance. What tensor cores do inside a
 * step is not imitated.
 * It runs when its turn comes among the kernels that the shim has queued. */
#include "kernels/cuda/library_twin.h"

#include "base/real.h"
#include "kernels/cuda/library.h"
#include "kernels/cuda/shim.h"
#include "kernels/cuda/short.h"

enum status library_open(void) {
    return STATUS_OK;
}

enum status library_error(void) {
    return STATUS_OK;
}

static double number(const void *matrix, size_t at, enum dtype type) {
    if (type == DTYPE_F64) return ((const double *)matrix)[at];
    if (type == DTYPE_BF16 || type == DTYPE_F16)
        return (double)short_value(((const uint16_t *)matrix)[at], type);
    return (double)((const float *)matrix)[at];
}

static double left(const struct library_product *p, size_t row, size_t term) {
    const size_t at = p->a_transposed ? term * p->a_stride + row : row * p->a_stride + term;
    return number(p->a, at, p->type);
}

static double right(const struct library_product *p, size_t term, size_t column) {
    const size_t at = p->b_transposed ? column * p->b_stride + term : term * p->b_stride + column;
    return number(p->b, at, p->type);
}

int library_has(const struct library_mode *mode, const struct library_product *product,
                unsigned part) {
    (void)part;
    return mode->split_k || product->K != LIBRARY_TWIN_LACKS;
}

/* How the sums of one product are ordered. */
struct plan {
    size_t parts, slab;
};

static struct plan plan_of(const struct library_mode *mode, size_t terms) {
    const size_t parts = terms / 32 < 4 ? terms / 32 : 4;
    return (struct plan){.parts = mode->split_k && parts > 1 ? parts : 1,
                         .slab = 16u << !mode->pinned << 2 * !mode->ordered};
}

/* f32 numbers are summed in f32: every step is rounded to it. */
static double step(double a, double b, double sum, enum dtype dtype) {
    if (dtype == DTYPE_F64) return real_fma_f64(a, b, sum);
    return (double)real_fma_f32((float)a, (float)b, (float)sum);
}

static double join(double a, double b, enum dtype dtype) {
    return dtype == DTYPE_F64 ? a + b : (double)((float)a + (float)b);
}

static double worker(const struct library_product *p, size_t row, size_t column, size_t first,
                     size_t end, size_t slab) {
    double sum = 0.0;
    for (size_t term = first; term < end; term += slab) {
        double chain = 0.0;
        for (size_t t = term; t < end && t < term + slab; t++)
            chain = step(left(p, row, t), right(p, t, column), chain, p->sum);
        sum = term == first ? chain : join(sum, chain, p->sum);
    }
    return sum;
}

static double output(const struct library_product *p, const struct plan *plan, size_t row,
                     size_t column) {
    double sum = 0.0;
    for (size_t part = 0; part < plan->parts; part++) {
        const double own = worker(p, row, column, p->K * part / plan->parts,
                                  p->K * (part + 1) / plan->parts, plan->slab);
        sum = part == 0 ? own : join(sum, own, p->sum);
    }
    return sum;
}

struct twin_job {
    struct library_product product;
    struct plan plan;
};

static void multiply(const void *args) {
    const struct twin_job *const job = (const struct twin_job *)args;
    const struct library_product *const product = &job->product;
    for (size_t i = 0; i < product->M; i++)
        for (size_t j = 0; j < product->N; j++) {
            const size_t at = i * product->c_stride + j;
            double sum = output(product, &job->plan, i, j);
            if (product->sum == DTYPE_F64) {
                double *const c = (double *)product->c + at;
                *c = product->held ? *c + sum : sum;
            } else {
                float *const c = (float *)product->c + at;
                *c = product->held ? *c + (float)sum : (float)sum;
            }
        }
}

void library_multiply(const struct library_mode *mode, const struct library_product *product,
                      unsigned part) {
    const struct twin_job job = {*product, plan_of(mode, product->K)};
    (void)part; /* streams: one after another is one of the orders that they allow */
    shim_host(multiply, &job, sizeof job);
}
