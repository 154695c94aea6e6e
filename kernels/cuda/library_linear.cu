/* SPDX-License-Identifier: Apache-2.0
 * A linear op through a library's dense product, in modes fast and deterministic
 * (kernels/cpu/linear_library.c is the CPU's): operands are packed into dense matrices of the dtype
 * that the library multiplies, padded rows as zeros where the op's rows are a call's (a library
 * sees the padded batch); sums are rounded once and scattered. No promise about bits.
 *
 * Operands and results that lie as the library wants them are not copied. What does not fit in
 * LIBRARY_SCRATCH_MOST is made in pieces of C, each over all of its terms. An op that the library
 * has no allowed way for is left to the kernel of mode invariant, whole. Invariant: rows not listed
 * are neither read nor written, whatever the library does. */
#include "kernels/cuda/fill.h"
#include "kernels/cuda/library.h"
#include "kernels/cuda/linear_tile.h"
#include "kernels/cuda/short.h"

/* Whether numbers of the carrier can be summed as they are, without a conversion. */
#if defined(TWINSTEP_CARRIER_f64) || defined(TWINSTEP_ACCUMULATOR_f32)
#define LIBRARY_SAME 1
#else
#define LIBRARY_SAME 0
#endif
#define LIBRARY_WIDE (sizeof(accumulator) == sizeof(double))
#define LIBRARY_LINE 8u  /* numbers of a line that a thread packs */
#define LIBRARY_FOUR 4u  /* columns of C that a thread rounds */
#define LIBRARY_ROWS 64u /* rows of C that a stream of their own is worth */

/* Copies lines of `width` numbers, `stride` apart, into a matrix whose lines are `pitch` apart. */
struct library_pack {
    const carrier *from;
    size_t lines, width, stride, pitch;
    struct row_list rows; /* physical rows of the lines */
    size_t first, places; /* the physical row that is line 0 of the matrix, and how many lines that
                             has, where `placed` */
    int placed;           /* 1: listed rows stand where they are; 0: one behind another */
    enum dtype product, type;
    unsigned each; /* numbers of a thread: LIBRARY_LINE where all lines can be read and written in
                      pieces of 16 bytes; else 2 short ones, which share a store, or 1 */
    void *to;
};

/* Brings the sums of a piece of C to where the op wants them, rounded: to its rows from row `first`
 * of the op (or physical row `first`) on, and its columns from `column` on. They may stand there
 * already. */
struct library_scatter {
    struct gemm job;
    const accumulator *sums;
    size_t stride, first, rows, column, columns;
    int placed;
    unsigned each; /* columns of a thread: LIBRARY_FOUR, or 1 where lines begin anywhere */
};

GPU_INLINE int library_is_short(enum dtype type) {
    return type == DTYPE_BF16 || type == DTYPE_F16;
}

struct library_place {
    size_t line, column;
};

/* Where number i of lines of `width` stands. It divides in 32 bits where it can, which is much
 * faster on a device. */
GPU_INLINE struct library_place library_place_of(size_t i, size_t width) {
    struct library_place place;
    if ((i | width) >> 31 == 0) {
        place.line = (uint32_t)i / (uint32_t)width;
        place.column = (uint32_t)i % (uint32_t)width;
    } else {
        place.line = i / width;
        place.column = i % width;
    }
    return place;
}

/* Packs LIBRARY_LINE neighbours: 16 bytes go with a load and with a store. */
GPU_INLINE void library_pack_line(const struct library_pack *args, const carrier *from, size_t at,
                                  enum dtype product) {
    carrier given[LIBRARY_LINE];
    float number[LIBRARY_LINE];
    load4(given, from);
    load4(given + 4, from + 4);
    UNROLL
    for (unsigned k = 0; k < LIBRARY_LINE; k++)
        number[k] = (float)operand(given[k], product);
    if (library_is_short(args->type)) {
        short_put8((uint16_t *)args->to + at, number, args->type);
        return;
    }
    gpu_store4_f32((float *)args->to + at, number);
    gpu_store4_f32((float *)args->to + at + 4, number + 4);
}

/* Packs one number, or two short neighbours; what follows a line is +0. */
GPU_INLINE void library_pack_few(const struct library_pack *args, const carrier *from, size_t at,
                                 size_t column) {
    accumulator number[2] = {0, 0};
    for (unsigned k = 0; k < args->each; k++)
        if (column + k < args->width) number[k] = operand(from[k], args->product);
    if (library_is_short(args->type))
        short_put((uint16_t *)args->to + at, (float)number[0], (float)number[1], args->type);
    else if (args->type == DTYPE_F64)
        ((double *)args->to)[at] = (double)number[0];
    else
        ((float *)args->to)[at] = (float)number[0];
}

KERNEL(library_pack_kernel, struct library_pack) {
    const size_t i = (size_t)BLOCK * THREADS + THREAD, each = args->each;
    if (i >= args->lines * (args->pitch / each)) return;
    const struct library_place own = library_place_of(i, args->pitch / each);
    const size_t line = own.line, column = own.column * each;
    const size_t row = list_row(&args->rows, line);
    const size_t place = args->placed ? row - args->first : line;
    if (args->placed && place >= args->places)
        return; /* it belongs to another piece; a row below `first` wraps to a large number */
    const size_t at = place * args->pitch + column;
    const carrier *const from = args->from + row * args->stride + column;
    if (each != LIBRARY_LINE)
        library_pack_few(args, from, at, column);
    else if (args->product == DTYPE_BF16)
        library_pack_line(args, from, at, DTYPE_BF16); /* the dtype is a constant there */
    else
        library_pack_line(args, from, at, args->product);
}

/* Rounds LIBRARY_FOUR finished sums to C, as linear_round does each. */
GPU_INLINE void library_round_four(const struct gemm *job, carrier *out, const accumulator *sums,
                                   enum dtype dtype) {
    accumulator sum[LIBRARY_FOUR];
    carrier rounded[LIBRARY_FOUR], held[LIBRARY_FOUR];
    ACC_NAME_(gpu_load4)(sum, sums);
    if (job->add) load4(held, out);
    UNROLL
    for (unsigned k = 0; k < LIBRARY_FOUR; k++) {
        rounded[k] = carrier_round(sum[k], dtype);
        if (job->add) rounded[k] = rule_add(held[k], rounded[k], dtype);
    }
    store4(out, rounded);
}

KERNEL(library_scatter_kernel, struct library_scatter) {
    const struct gemm *const job = &args->job;
    const size_t i = (size_t)BLOCK * THREADS + THREAD, lines = args->placed ? job->M : args->rows;
    const size_t each = args->each;
    if (i >= lines * (args->columns / each)) return;
    const struct library_place own = library_place_of(i, args->columns / each);
    const size_t line = own.line, column = own.column * each;
    const size_t row = args->placed ? line : args->first + line;
    const size_t place = args->placed ? list_row(&job->rows, row) - args->first : line;
    if (place >= args->rows) return;
    const accumulator *const sums = args->sums + place * args->stride + column;
    if (each != LIBRARY_FOUR) {
        linear_round(job, row, args->column + column, *sums);
        return;
    }
    carrier *const out = job->out + list_row(&job->rows, row) * job->N + args->column + column;
    if (job->dtype == DTYPE_BF16)
        library_round_four(job, out, sums, DTYPE_BF16);
    else
        library_round_four(job, out, sums, job->dtype);
}

/* One op on its way. It is walked twice: first the library is asked for each product, and nothing
 * is started. */
struct library_way {
    const struct op_call *call;
    struct gemm job;
    size_t M; /* rows of C, as the library sees them */
    enum dtype type;
    int placed;                     /* A and C have the call's physical rows, padding included */
    int packs_a, packs_b, packs_c;  /* 1: this operand, or C, goes through scratch */
    int rounds;                     /* 1: sums of C are rounded once they are finished */
    struct library_product product; /* the product of a piece: some rows of C, some columns */
    size_t row, column;
    char *next; /* free scratch */
    int asks, lacks;
};

/* The dtype that the library is told; exact for operands of it. */
static enum dtype library_type(const struct op_call *call, const struct gemm *job) {
    const enum dtype type = job->product == DTYPE_F64 ? call->compute : job->product;
    if (LIBRARY_WIDE) return DTYPE_F64;
    return type == DTYPE_BF16 || type == DTYPE_F16 || type == DTYPE_TF32 ? type : DTYPE_F32;
}

static size_t library_size(enum dtype type) {
    if (type == DTYPE_F64) return sizeof(double);
    return type == DTYPE_BF16 || type == DTYPE_F16 ? sizeof(uint16_t) : sizeof(float);
}

/* Takes a piece of scratch, zeroed where only listed rows will be written. With `fill` everything
 * else of it is NaN, and so is what lies between it and the next piece: whoever reads beyond his
 * piece shows. */
static void *library_take(struct library_way *way, size_t count, size_t size, int zeros) {
    void *const piece = way->next;
    const size_t whole = (count * size + 255) / 256 * 256;
    const size_t blank = zeros ? count * size : 0;
    const struct fill_args nothing = {blank, 0, piece};
    const struct fill_args no_numbers = {whole - blank, 0xffffffffu, (char *)piece + blank};
    way->next += whole;
    if (way->asks) return piece;
    if (zeros) fill(way->call, &nothing);
    if (way->call->library->fill) fill(way->call, &no_numbers);
    return piece;
}

/* The distance between lines: tensor cores want what they read at multiples of 16 bytes. */
static size_t library_pitch(enum dtype type, size_t width) {
    if (library_size(type) == sizeof(uint16_t)) return (width + 7) / 8 * 8;
    return type == DTYPE_TF32 ? (width + 3) / 4 * 4 : width;
}

/* How many numbers a thread packs. */
static unsigned library_each(const struct library_pack *pack) {
    const size_t size = library_size(pack->type);
    if (pack->width % LIBRARY_LINE == 0 && pack->type != DTYPE_F64 &&
        lines_aligned(pack->from, pack->stride * sizeof(carrier)) &&
        lines_aligned(pack->to, pack->pitch * size))
        return LIBRARY_LINE;
    return size == sizeof(uint16_t) ? 2 : 1;
}

/* Packs `lines` lines of `width` numbers; *out_pitch says how far apart they lie. */
static const void *library_dense(struct library_way *way, struct library_pack pack,
                                 size_t *out_pitch) {
    pack.type = way->type;
    pack.product = way->job.product;
    pack.pitch = *out_pitch = library_pitch(pack.type, pack.width);
    pack.to = library_take(way, (pack.placed ? pack.places : pack.lines) * pack.pitch,
                           library_size(pack.type), pack.placed);
    if (way->asks) return pack.to;
    pack.each = library_each(&pack);
    LAUNCH_ELEMENTS(library_pack_kernel, pack.lines * pack.pitch / pack.each, &pack);
    return pack.to;
}

/* Prepares A for the rows of C from way->row on; by terms these are columns of what lies in memory.
 */
static void library_left(struct library_way *way) {
    const struct gemm *const job = &way->job;
    struct library_product *const p = &way->product;
    struct library_pack pack = {
        .from = job->a,
        .lines = p->M,
        .width = job->K,
        .stride = job->a_stride,
        .rows = job->rows,
    };
    if (job->by_terms) {
        pack.from += way->row;
        pack.lines = job->K;
        pack.width = p->M;
    } else if (way->placed) {
        pack.lines = job->M;
        pack.placed = 1;
        pack.first = way->call->first_row + way->row;
        pack.places = p->M;
    } else if (job->rows.index == NULL) {
        pack.from += way->row * job->a_stride;
    } else {
        pack.rows.index += way->row;
    }
    p->a = pack.from;
    p->a_stride = pack.stride;
    if (way->packs_a) p->a = library_dense(way, pack, &p->a_stride);
}

/* Prepares B for the columns of C from way->column on. */
static void library_right(struct library_way *way) {
    const struct gemm *const job = &way->job;
    struct library_product *const p = &way->product;
    const struct row_list all = {NULL, 0};
    const struct library_pack pack = {
        .from = job->b + way->column * (job->b_transposed ? job->b_stride : 1),
        .lines = job->b_transposed ? p->N : job->K,
        .width = job->b_transposed ? job->K : p->N,
        .stride = job->b_stride,
        .rows = job->by_terms ? job->rows : all,
    };
    p->b = pack.from;
    p->b_stride = pack.stride;
    if (way->packs_b) p->b = library_dense(way, pack, &p->b_stride);
}

/* Decides where sums go: to the accumulators, to the op's rows as they lie, or to scratch. */
static void library_results(struct library_way *way) {
    const struct gemm *const job = &way->job;
    struct library_product *const p = &way->product;
    const size_t at = way->row * job->N + way->column;
    p->c_stride = way->packs_c ? p->N : job->N;
    p->held = !way->packs_c && (job->held != NULL || job->add);
    if (way->packs_c)
        p->c = library_take(way, p->M * p->N, sizeof(accumulator), 0);
    else if (job->held != NULL)
        p->c = job->held + at;
    else
        p->c = job->out + at;
}

/* Deals the rows of C to streams where the order is free, in multiples of 8; else all to one.
 * Several streams are joined before and behind, since other products may have been dealt otherwise.
 */
static void library_run(struct library_way *way) {
    const struct library_mode *const mode = way->call->library;
    const struct library_product *const whole = &way->product;
    const size_t most = (whole->M + LIBRARY_ROWS - 1) / LIBRARY_ROWS;
    const size_t parts = mode->ordered ? 1 : most < LIBRARY_STREAMS ? most : LIBRARY_STREAMS;
    const size_t step = whole->a_transposed ? 1 : whole->a_stride;
    const int joins = parts > 1 && !way->asks;
    if (joins) library_join();
    for (size_t part = 0; part < parts; part++) {
        const size_t first = whole->M * part / parts / 8 * 8;
        const size_t next = whole->M * (part + 1) / parts / 8 * 8;
        const size_t end = part + 1 == parts ? whole->M : next;
        struct library_product own = *whole;
        own.M = end - first;
        own.a = (const char *)whole->a + first * step * library_size(whole->type);
        own.c = (char *)whole->c + first * whole->c_stride * sizeof(accumulator);
        if (!way->asks)
            library_multiply(mode, &own, (unsigned)part);
        else if (!library_has(mode, &own, (unsigned)part))
            way->lacks = 1;
    }
    if (joins) library_join();
}

/* Makes `rows` by `columns` of C, from way->row and way->column on. */
static void library_piece(struct library_way *way, size_t rows, size_t columns) {
    const struct gemm *const job = &way->job;
    struct library_product *const p = &way->product;
    p->M = rows;
    p->N = columns;
    library_left(way);
    library_results(way);
    library_run(way);
    if (!way->rounds || way->asks) return;
    struct library_scatter scatter = {
        .job = *job,
        .sums = (const accumulator *)p->c,
        .stride = p->c_stride,
        .first = way->row + (way->placed ? way->call->first_row : 0),
        .rows = rows,
        .column = way->column,
        .columns = columns,
        .placed = way->placed,
        .each = 1,
    };
    if (columns % LIBRARY_FOUR == 0 &&
        lines_aligned(scatter.sums, scatter.stride * sizeof(accumulator)) &&
        lines_aligned(job->out + way->column, job->N * sizeof(carrier)))
        scatter.each = LIBRARY_FOUR;
    LAUNCH_ELEMENTS(library_scatter_kernel,
                    (way->placed ? job->M : rows) * (columns / scatter.each), &scatter);
}

/* ---- pieces ---- */

/* How many lines of `each` bytes fit into `left` bytes: one at least, `all` at most. */
static size_t library_lines(size_t left, size_t each, size_t all) {
    const size_t lines = each == 0 ? all : left / each / LIBRARY_PIECE * LIBRARY_PIECE;
    return lines >= all ? all : lines < LIBRARY_PIECE ? least(LIBRARY_PIECE, all) : lines;
}

/* How many rows and columns of C are made at a time: all where scratch holds them; else all
 * columns, or those whose part of B takes half of it, and as many rows as then fit. */
static void library_pieces(const struct library_way *way, size_t *rows, size_t *columns) {
    const struct gemm *const job = &way->job;
    const size_t line = library_pitch(way->type, job->K) * library_size(way->type);
    const size_t a = way->packs_a ? line : 0, b = way->packs_b ? line : 0;
    const size_t c = way->packs_c ? sizeof(accumulator) : 0;
    const size_t M = library_pitch(way->type, way->M), N = library_pitch(way->type, job->N);
    const size_t first = least(LIBRARY_PIECE, M) * a;
    *rows = way->M;
    *columns = job->N;
    if (M * a + N * b + way->M * job->N * c <= LIBRARY_SCRATCH_MOST) return;
    *columns =
        library_lines(LIBRARY_SCRATCH_MOST / 2 > first ? LIBRARY_SCRATCH_MOST / 2 - first : 0,
                      b + LIBRARY_PIECE * c, N);
    const size_t taken = *columns * b;
    *columns = least(*columns, job->N);
    *rows = library_lines(LIBRARY_SCRATCH_MOST > taken ? LIBRARY_SCRATCH_MOST - taken : 0,
                          a + *columns * c, M);
    *rows = least(*rows, way->M);
}

/* The job as the library walks it. Rows that are all of the call's need no list, since they lie one
 * behind another. */
static struct gemm library_job(const struct op_call *call, const struct gemm *job) {
    struct gemm own = *job;
    if (job->by_terms || job->rows.index == NULL || job->M != call->rows) return own;
    own.a += (size_t)call->first_row * job->a_stride;
    own.out += (size_t)call->first_row * job->N;
    own.rows.index = NULL;
    return own;
}

static struct library_way library_way_of(const struct op_call *call, const struct gemm *job) {
    struct library_way way = {.call = call, .job = library_job(call, job)};
    const int listed = way.job.rows.index != NULL;
    const int rounds = job->dtype != (LIBRARY_WIDE ? DTYPE_F64 : DTYPE_F32);
    way.type = library_type(call, job);
    const int lies =
        LIBRARY_SAME && job->product == DTYPE_F64 && library_size(way.type) == sizeof(carrier);
    way.placed = call->rows != 0 && !job->by_terms && listed;
    way.M = way.placed ? call->rows : job->M;
    way.packs_a = !lies || listed;
    way.packs_b = !lies || (job->by_terms && listed);
    way.packs_c = job->held == NULL && (!LIBRARY_SAME || listed || (rounds && job->add));
    way.rounds = job->held == NULL && (way.packs_c || rounds);
    way.product.K = job->K;
    way.product.a_transposed = job->by_terms;
    way.product.b_transposed = job->b_transposed;
    way.product.type = way.type;
    way.product.sum = LIBRARY_WIDE ? DTYPE_F64 : DTYPE_F32;
    return way;
}

static void library_go(struct library_way *way, size_t rows, size_t columns) {
    for (way->column = 0; way->column < way->job.N; way->column += columns) {
        const size_t wide = least(columns, way->job.N - way->column);
        way->next = (char *)way->call->scratch;
        way->product.N = wide;
        library_right(way);
        char *const behind = way->next;
        for (way->row = 0; way->row < way->M; way->row += rows) {
            way->next = behind;
            library_piece(way, least(rows, way->M - way->row), wide);
        }
    }
}

static void library_tell(struct library_count *count, const struct library_way *way) {
    count->products++;
    if (!way->lacks) return;
    if (count->ours == 0) {
        count->first[0] = way->M;
        count->first[1] = way->job.N;
        count->first[2] = way->job.K;
    }
    count->ours++;
}

/* Makes the op by the library. Returns 0 where the library has no algorithm that the mode allows;
 * then nothing was done. */
static int library_linear(const struct op_call *call, const struct gemm *job) {
    struct library_way way = library_way_of(call, job);
    size_t rows, columns;
    if (job->M == 0 || job->N == 0 || job->K == 0) return 1;
    library_pieces(&way, &rows, &columns);
    way.asks = 1;
    library_go(&way, rows, columns);
    way.asks = 0;
    if (!way.lacks) library_go(&way, rows, columns);
    if (call->library->count != NULL) library_tell(call->library->count, &way);
    return !way.lacks;
}
