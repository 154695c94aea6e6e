/* SPDX-License-Identifier: Apache-2.0
 * The scalar twin of cuBLAS on the host, for the shim: it takes the same operands, the same memory
 * and the same calls.
 *
 * Its order of sums is as follows. Terms are dealt evenly to `parts` workers, at least 32 to each
 * and to 4 of them at most, where K may be split; else there is one. A worker takes slabs of its
 * terms in ascending order: 16 terms, twice as many where the workspace is the library's own, four
 * times as many where several streams work at once. A slab is a chain of fused multiply-adds from
 * +0 in the dtype of the sum (products of bf16, f16 and tf32 numbers are exact in f32); its sum is
 * added to the worker's. The workers' sums are added in ascending order, and then to what C holds.
 * So each mechanism that is left free changes bits, and none does by chance. What tensor cores do
 * inside a step is not imitated.
 *
 * It runs when its turn comes among the kernels that the shim has queued, on one stream. It reports
 * what would have no order on several streams: two products of one epoch, which a join ends, of
 * which one writes what the other touches. Kernels between them do not count as a join, since our
 * ops do not rely on that. */
#include "tests/shim/library_twin.h"

#include "base/real.h"
#include "kernels/cuda/library.h"
#include "tests/shim/shim.h"
#include "kernels/cuda/short.h"

enum status library_open(void) {
    return STATUS_OK;
}

void library_version(struct library_versions *out) {
    *out = (struct library_versions){{0}, {0}};
}

/* ---- products that no join has separated ---- */

enum { KEPT = 64 };

struct started {
    struct library_product product;
    unsigned part;
};

/* The products of this host thread since its last join. */
static _Thread_local struct epoch {
    struct started kept[KEPT];
    unsigned count;
    int met;
} epoch;

struct span {
    uintptr_t first, end;
};

static struct span span_of(const void *matrix, size_t lines, size_t width, size_t stride,
                           enum dtype type) {
    const size_t size = type == DTYPE_F64                         ? sizeof(double)
                        : type == DTYPE_BF16 || type == DTYPE_F16 ? sizeof(uint16_t)
                                                                  : sizeof(float);
    const uintptr_t first = (uintptr_t)matrix;
    return (struct span){first, lines == 0 ? first : first + ((lines - 1) * stride + width) * size};
}

static int meet(struct span a, struct span b) {
    return a.first < b.end && b.first < a.end;
}

static struct span span_a(const struct library_product *p) {
    return p->a_transposed ? span_of(p->a, p->K, p->M, p->a_stride, p->type)
                           : span_of(p->a, p->M, p->K, p->a_stride, p->type);
}

static struct span span_b(const struct library_product *p) {
    return p->b_transposed ? span_of(p->b, p->N, p->K, p->b_stride, p->type)
                           : span_of(p->b, p->K, p->N, p->b_stride, p->type);
}

static struct span span_c(const struct library_product *p) {
    return span_of(p->c, p->M, p->N, p->c_stride, p->out);
}

static int spoils(const struct library_product *p, const struct library_product *other) {
    const struct span c = span_c(p);
    return meet(c, span_a(other)) || meet(c, span_b(other)) || meet(c, span_c(other));
}

static void epoch_note(const struct library_product *product, unsigned part) {
    const unsigned kept = epoch.count < KEPT ? epoch.count : KEPT;
    for (unsigned i = 0; i < kept; i++) {
        const struct started *const other = &epoch.kept[i];
        if (other->part != part &&
            (spoils(product, &other->product) || spoils(&other->product, product)))
            epoch.met = 1;
    }
    epoch.kept[epoch.count % KEPT] = (struct started){*product, part};
    epoch.count++;
}

void library_join(void) {
    epoch.count = 0;
}

/* It is asked when everything has ended, so it counts as a join, too. */
enum status library_error(void) {
    const int met = epoch.met;
    epoch.met = 0;
    epoch.count = 0;
    if (met)
        FAIL(STATUS_INTERNAL,
             "library: expected streams to be joined between products of which one "
             "writes what another touches, found two without");
    return STATUS_OK;
}

/* ---- one product ---- */

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

/* The order in which the sums of one product are made. */
struct plan {
    size_t parts, slab;
};

static struct plan plan_of(const struct library_mode *mode, size_t terms) {
    const size_t parts = terms / 32 < 4 ? terms / 32 : 4;
    return (struct plan){.parts = mode->split_k && parts > 1 ? parts : 1,
                         .slab = 16u << !mode->pinned << 2 * !mode->ordered};
}

/* Makes one fused step. f32 numbers are summed in f32, so every step is rounded to it. */
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
            } else if (product->out == DTYPE_BF16) {
                ((uint16_t *)product->c)[at] =
                    short_bits(real_round_bf16_f32((float)sum), DTYPE_BF16);
            } else if (product->out == DTYPE_F16) {
                ((uint16_t *)product->c)[at] =
                    short_bits(real_round_f16_f32((float)sum), DTYPE_F16);
            } else {
                float *const c = (float *)product->c + at;
                *c = product->held ? *c + (float)sum : (float)sum;
            }
        }
}

void library_multiply(const struct library_mode *mode, const struct library_product *product,
                      unsigned part) {
    const struct twin_job job = {*product, plan_of(mode, product->K)};
    epoch_note(product, part);
    shim_host(multiply, &job, sizeof job);
}
