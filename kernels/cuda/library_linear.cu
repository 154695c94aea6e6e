/* SPDX-License-Identifier: Apache-2.0
 * A linear op through a library's dense product, in modes fast and deterministic
 * (kernels/cpu/linear_library.c is the CPU's): operands are packed into dense matrices of the dtype
 * that the library multiplies, padded rows as zeros where the op's rows are a call's (a library
 * sees the padded batch); sums are rounded once and scattered. No promise about bits.
 *
 * Operands that lie as the library wants them are not copied. Invariant: rows not listed are
 * neither read nor written, whatever the library does. */
#include "kernels/cuda/library.h"
#include "kernels/cuda/linear_tile.h"
#include "kernels/cuda/short.h"

/* Whether numbers of the carrier are summed as they are, without a conversion. */
#if defined(TWINSTEP_CARRIER_f64) || defined(TWINSTEP_ACCUMULATOR_f32)
#define LIBRARY_SAME 1
#else
#define LIBRARY_SAME 0
#endif
#define LIBRARY_WIDE (sizeof(accumulator) == sizeof(double))
#define LIBRARY_ROWS 64u /* of C, at least, on a stream of their own */

/* Lines of `width` numbers, `stride` apart, into a matrix of lines `pitch` apart. */
struct library_pack {
    const carrier *from;
    size_t lines, width, stride, pitch;
    struct row_list rows; /* physical rows of the lines */
    size_t first;         /* physical row that is line 0 of the matrix, where it has them all */
    int placed;           /* 1: it has them all; 0: it has the listed ones */
    enum dtype product, type;
    int paired; /* short numbers */
    void *to;
};

/* `count` words of one value. */
struct library_fill {
    uint32_t *words;
    size_t count;
    uint32_t value;
};

/* Sums of C to where the op wants them, rounded. */
struct library_scatter {
    struct linear_job job;
    const accumulator *sums;
    size_t first;
    int placed;
};

KERNEL(library_fill_kernel, struct library_fill) {
    const size_t i = (size_t)BLOCK * THREADS + THREAD;
    if (i < args->count) args->words[i] = args->value;
}

/* A thread has one number, or two neighbours of a line of short ones; what follows a line is +0. */
KERNEL(library_pack_kernel, struct library_pack) {
    const size_t i = (size_t)BLOCK * THREADS + THREAD, each = args->paired ? 2 : 1;
    if (i >= args->lines * (args->pitch / each)) return;
    const size_t line = i / (args->pitch / each), column = i % (args->pitch / each) * each;
    const size_t row = list_row(&args->rows, line);
    const size_t at = (args->placed ? row - args->first : line) * args->pitch + column;
    const carrier *const from = args->from + row * args->stride + column;
    accumulator number[2] = {0, 0};
    for (unsigned k = 0; k < each; k++)
        if (column + k < args->width) number[k] = operand(from[k], args->product);
    if (args->paired)
        short_put((uint16_t *)args->to + at, (float)number[0], (float)number[1], args->type);
    else if (args->type == DTYPE_F64)
        ((double *)args->to)[at] = (double)number[0];
    else
        ((float *)args->to)[at] = (float)number[0];
}

KERNEL(library_scatter_kernel, struct library_scatter) {
    const struct linear_job *const job = &args->job;
    const size_t i = (size_t)BLOCK * THREADS + THREAD;
    if (i >= job->M * job->N) return;
    const size_t row = i / job->N, column = i % job->N;
    const size_t place = args->placed ? list_row(&job->rows, row) - args->first : row;
    linear_round(job, row, column, args->sums[place * job->N + column]);
}

/* One op on its way: where its dense matrices are in scratch. */
struct library_way {
    const struct op_call *call;
    const struct linear_job *job;
    struct library_product product;
    int placed; /* A and C have the call's physical rows, padding included */
    char *next;
};

/* What the library multiplies: exact for operands of that dtype. */
static enum dtype library_type(const struct op_call *call, const struct linear_job *job) {
    const enum dtype type = job->product == DTYPE_F64 ? call->compute : job->product;
    if (LIBRARY_WIDE) return DTYPE_F64;
    return type == DTYPE_BF16 || type == DTYPE_F16 || type == DTYPE_TF32 ? type : DTYPE_F32;
}

static size_t library_size(enum dtype type) {
    if (type == DTYPE_F64) return sizeof(double);
    return type == DTYPE_BF16 || type == DTYPE_F16 ? sizeof(uint16_t) : sizeof(float);
}

static void library_set(void *memory, size_t bytes, uint32_t value) {
    const struct library_fill fill = {(uint32_t *)memory, (bytes + 3) / 4, value};
    LAUNCH(library_fill_kernel, element_blocks(fill.count), ELEMENT_THREADS, 0, &fill);
}

/* A piece of scratch. */
static void *library_take(struct library_way *way, size_t count, size_t size) {
    void *const piece = way->next;
    way->next += (count * size + 255) / 256 * 256;
    if (way->call->library->fill) library_set(piece, count * size, 0xffffffffu);
    return piece;
}

static int library_as_it_lies(const struct library_way *way, const struct row_list *rows) {
    return LIBRARY_SAME && way->job->product == DTYPE_F64 && rows->index == NULL &&
           library_size(way->product.type) == sizeof(carrier);
}

/* Between lines: tensor cores want those of short numbers at multiples of 16 bytes. */
static size_t library_pitch(enum dtype type, size_t width) {
    return library_size(type) == sizeof(uint16_t) ? (width + 7) / 8 * 8 : width;
}

/* A matrix of `lines` lines, or of all physical rows where they are placed; where its lines are. */
static const void *library_dense(struct library_way *way, const carrier *from, size_t lines,
                                 size_t width, size_t stride, struct row_list rows, int placed,
                                 size_t *out_pitch) {
    const enum dtype type = way->product.type;
    const size_t pitch = library_pitch(type, width);
    const size_t count = (placed ? way->call->rows : lines) * pitch;
    *out_pitch = pitch;
    if (library_as_it_lies(way, &rows) && stride == width) return from;
    void *const to = library_take(way, count, library_size(type));
    if (placed) library_set(to, count * library_size(type), 0);
    const struct library_pack pack = {
        .from = from,
        .lines = lines,
        .width = width,
        .stride = stride,
        .pitch = pitch,
        .rows = rows,
        .first = way->call->first_row,
        .placed = placed,
        .product = way->job->product,
        .type = type,
        .paired = library_size(type) == sizeof(uint16_t),
        .to = to,
    };
    LAUNCH(library_pack_kernel, element_blocks(lines * pitch / (pack.paired ? 2 : 1)),
           ELEMENT_THREADS, 0, &pack);
    return to;
}

static void library_operands(struct library_way *way) {
    const struct linear_job *const job = way->job;
    const struct row_list all = {NULL, 0};
    struct library_product *const p = &way->product;
    if (job->by_terms) {
        p->a =
            library_dense(way, job->a, job->K, job->M, job->a_stride, job->rows, 0, &p->a_stride);
        p->b =
            library_dense(way, job->b, job->K, job->N, job->b_stride, job->rows, 0, &p->b_stride);
    } else {
        p->a = library_dense(way, job->a, job->M, job->K, job->a_stride, job->rows, way->placed,
                             &p->a_stride);
        p->b =
            library_dense(way, job->b, job->b_transposed ? job->N : job->K,
                          job->b_transposed ? job->K : job->N, job->b_stride, all, 0, &p->b_stride);
    }
}

/* Where sums go: to the accumulators, to the op's rows as they lie, or to scratch. */
static void library_results(struct library_way *way) {
    const struct linear_job *const job = way->job;
    struct library_product *const p = &way->product;
    const int rounds = job->dtype != (LIBRARY_WIDE ? DTYPE_F64 : DTYPE_F32);
    p->held = job->held != NULL;
    if (p->held)
        p->c = job->held;
    else if (LIBRARY_SAME && !rounds && !job->add && job->rows.index == NULL)
        p->c = job->out;
    else
        p->c = library_take(way, p->M * p->N, sizeof(accumulator));
}

/* Rows of C by streams where the order is free, from multiples of 8 on; else all on one. */
static void library_run(const struct library_mode *mode, const struct library_product *whole) {
    const size_t most = (whole->M + LIBRARY_ROWS - 1) / LIBRARY_ROWS;
    const size_t parts = mode->ordered ? 1 : most < LIBRARY_STREAMS ? most : LIBRARY_STREAMS;
    const size_t step = whole->a_transposed ? 1 : whole->a_stride;
    for (size_t part = 0; part < parts; part++) {
        const size_t first = whole->M * part / parts / 8 * 8;
        const size_t next = whole->M * (part + 1) / parts / 8 * 8;
        const size_t end = part + 1 == parts ? whole->M : next;
        struct library_product own = *whole;
        own.M = end - first;
        own.a = (const char *)whole->a + first * step * library_size(whole->type);
        own.c = (char *)whole->c + first * whole->N * sizeof(accumulator);
        library_multiply(mode, &own, (unsigned)part);
    }
}

static void library_linear(const struct op_call *call, const struct linear_job *job) {
    struct library_way way = {.call = call, .job = job, .next = (char *)call->scratch};
    struct library_product *const p = &way.product;
    if (job->M == 0 || job->N == 0 || job->K == 0) return;
    way.placed = call->rows != 0 && !job->by_terms && job->rows.index != NULL;
    p->M = way.placed ? call->rows : job->M;
    p->N = job->N;
    p->K = job->K;
    p->a_transposed = job->by_terms;
    p->b_transposed = job->b_transposed;
    p->type = library_type(call, job);
    p->sum = LIBRARY_WIDE ? DTYPE_F64 : DTYPE_F32;
    library_operands(&way);
    library_results(&way);
    library_run(call->library, p);
    if (p->held || p->c == job->out) return;
    const struct library_scatter scatter = {*job, (const accumulator *)p->c, call->first_row,
                                            way.placed};
    LAUNCH(library_scatter_kernel, element_blocks(job->M * job->N), ELEMENT_THREADS, 0, &scatter);
}
