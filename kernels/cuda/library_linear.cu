/* SPDX-License-Identifier: Apache-2.0
 * A linear op through a library's dense product, in modes fast and deterministic
 * (kernels/cpu/linear_library.c is the CPU's): operands are packed into dense matrices of the dtype
 * that the library multiplies, padded rows as zeros where the op's rows are a call's (a library
 * sees the padded batch); sums are rounded once and scattered. No promise about bits.
 *
 * Operands and results that lie as the library wants them are not copied, and an operand that the
 * op before has packed is used again (library_kept.h). What does not fit in LIBRARY_SCRATCH_MOST is
 * made in pieces of C, each over all of its terms. An op that the library
 * has no allowed way for is left to the kernel of mode invariant, whole. Operands and results in
 * two bytes (gemm.narrow) are what the library itself reads and writes, where their lines begin at
 * multiples of 16 bytes. Invariant: rows not listed
 * are neither read nor written, whatever the library does. */
#include "kernels/cuda/fill.h"
#include "kernels/cuda/library.h"
#include "kernels/cuda/library_kept.h"
#include "kernels/cuda/linear_tile.h"

/* Whether numbers of the carrier can be summed as they are, without a conversion. */
#if defined(TWINSTEP_CARRIER_f64) || defined(TWINSTEP_ACCUMULATOR_f32)
#define LIBRARY_SAME 1
#else
#define LIBRARY_SAME 0
#endif
#define LIBRARY_WIDE (sizeof(accumulator) == sizeof(double))
#define LIBRARY_FOUR 4u  /* columns of C that a thread rounds */
#define LIBRARY_ROWS 64u /* rows of C that a stream of their own is worth */

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

/* Rounds LIBRARY_FOUR finished sums to C, as linear_round does each. */
GPU_INLINE void library_round_four(const struct gemm *job, carrier *out, const accumulator *sums,
                                   enum dtype dtype) {
    accumulator sum[LIBRARY_FOUR];
    carrier rounded[LIBRARY_FOUR], held[LIBRARY_FOUR];
    ACC_NAME_(gpu_load4)(sum, sums);
    if (job->add) CARRIER_NAME_(gpu_load4)(held, out);
    UNROLL
    for (unsigned k = 0; k < LIBRARY_FOUR; k++) {
        rounded[k] = carrier_round(sum[k], dtype);
        if (job->add) rounded[k] = rule_add(held[k], rounded[k], dtype);
    }
    CARRIER_NAME_(gpu_put4)(out, rounded);
}

/* The same for results in two bytes, whose first one is in column `column`. A sum that a bias is
 * added to is rounded to its carrier (law 17), so it stays as it is. */
GPU_INLINE void library_round_short(const struct gemm *job, void *out, const accumulator *sums,
                                    size_t column, unsigned each) {
    const struct form form = form_own(job->dtype);
    for (unsigned k = 0; k < each; k++) {
        carrier rounded = carrier_round(sums[k], job->bias == NULL ? job->dtype : DTYPE_F32);
        if (job->bias != NULL)
            rounded =
                rule_add(rounded, (carrier)form_get_f32(job->bias, form, column + k), job->dtype);
        if (job->add) rounded = rule_add((carrier)form_get_f32(out, form, k), rounded, job->dtype);
        form_set_f32(out, form, k, (float)rounded);
    }
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
    if (job->narrow) {
        const size_t at = list_row(&job->rows, row) * job->N + args->column + column;
        library_round_short(job, form_place(job->out, form_own(job->dtype), at), sums,
                            args->column + column, args->each);
        return;
    }
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
    char *next;   /* free scratch */
    char *most;   /* how far into scratch the op goes, once it has been asked for */
    char *filled; /* up to where scratch is NaN, under `fill` */
    int asks, lacks;
    int keeps; /* 1: it is one product, in order, so that its operands may be used again */
    const struct library_operand *found[LIBRARY_SIDES]; /* kept by the op before; NULL: packed */
    struct library_operand used[LIBRARY_SIDES];         /* what the next op may use */
};

/* The dtype that the library is told; exact for operands of it. */
static enum dtype library_type(const struct op_call *call, const struct gemm *job) {
    const enum dtype type = job->product == DTYPE_F64 ? call->compute : job->product;
    if (LIBRARY_WIDE) return DTYPE_F64;
    return type == DTYPE_BF16 || type == DTYPE_F16 || type == DTYPE_TF32 ? type : DTYPE_F32;
}

/* How the numbers of the op's matrices lie. */
static struct form library_form(const struct op_call *call, const struct gemm *job) {
    const struct form carriers = {call->compute, sizeof(carrier)};
    return job->narrow ? form_own(call->compute) : carriers;
}

/* The bytes that a piece of scratch takes: the next one begins at a multiple of 256. */
static size_t library_whole(size_t count, size_t size) {
    return (count * size + 255) / 256 * 256;
}

/* Makes scratch NaN from `first` to `end`, if it is not yet. An op without padding that is one
 * product goes on up to the end of its last piece, which is one launch for all of them; it stops
 * where an operand lies that was found packed. */
static void library_fill(struct library_way *way, char *first, char *end) {
    const struct library_operand *const found = way->found[LIBRARY_LEFT];
    if (!way->call->library->fill || first < way->filled) return;
    if (way->keeps && !way->placed && (found == NULL || first >= found->end))
        end = way->filled = way->most;
    const struct fill_args no_numbers = {(size_t)(end - first), 0xffffffffu, first};
    fill(way->call, &no_numbers);
}

/* Takes a piece of scratch, zeroed where only listed rows will be written. With `fill` everything
 * else of it is NaN, and so is what lies between it and the next piece: whoever reads beyond his
 * piece shows. */
static void *library_take(struct library_way *way, size_t count, size_t size, int zeros) {
    char *const piece = way->next;
    const size_t blank = zeros ? count * size : 0;
    const struct fill_args nothing = {blank, 0, piece};
    way->next += library_whole(count, size);
    if (way->next > way->most) way->most = way->next;
    if (way->asks) return piece;
    if (zeros) fill(way->call, &nothing);
    library_fill(way, piece + blank, way->next);
    return piece;
}

/* Packs the operand, unless it was found in scratch; returns where it is. An operand found behind
 * this one stays where it is: this one is packed in front of it, or behind it. */
static const void *library_dense(struct library_way *way, struct library_pack pack,
                                 enum library_side side) {
    const struct library_operand *const found = way->found[side];
    const struct library_operand *const other =
        side == LIBRARY_RIGHT ? way->found[LIBRARY_LEFT] : NULL;
    const size_t size = library_size(pack.type);
    const size_t count = (pack.placed ? pack.places : pack.lines) * pack.pitch;
    if (found != NULL) {
        if (found->end > way->next) way->next = found->end;
        if (!way->asks) way->used[side] = *found;
        return found->pack.to;
    }
    if (other != NULL && way->next + library_whole(count, size) > (char *)other->pack.to)
        way->next = other->end;
    pack.to = library_take(way, count, size, pack.placed);
    if (way->asks) return pack.to;
    pack.each = library_each(&pack);
    LAUNCH_ELEMENTS(library_pack_kernel, pack.lines * pack.pitch / pack.each, &pack);
    way->used[side].pack = pack;
    way->used[side].end = way->next;
    return pack.to;
}

/* How A is packed for the rows of C from way->row on; by terms these are columns of what lies in
 * memory. */
static struct library_pack library_left_pack(const struct library_way *way, size_t rows) {
    const struct gemm *const job = &way->job;
    const struct form form = library_form(way->call, job);
    struct library_pack pack = {
        .from = job->a,
        .form = form,
        .lines = rows,
        .width = job->K,
        .stride = job->a_stride,
        .rows = job->rows,
        .product = job->product,
        .type = way->type,
    };
    if (job->by_terms) {
        pack.from = form_at(job->a, form, way->row);
        pack.lines = job->K;
        pack.width = rows;
    } else if (way->placed) {
        pack.lines = job->M;
        pack.placed = 1;
        pack.first = way->call->first_row + way->row;
        pack.places = rows;
    } else if (job->rows.index == NULL) {
        pack.from = form_at(job->a, form, way->row * job->a_stride);
        pack.rows.count = (uint32_t)rows;
    } else {
        pack.rows.index += way->row;
    }
    pack.pitch = library_pitch(pack.type, pack.width);
    return pack;
}

/* How B is packed for the columns of C from way->column on. */
static struct library_pack library_right_pack(const struct library_way *way, size_t columns) {
    const struct gemm *const job = &way->job;
    const struct row_list all = {NULL, 0};
    const struct form form = library_form(way->call, job);
    struct library_pack pack = {
        .from = form_at(job->b, form, way->column * (job->b_transposed ? job->b_stride : 1)),
        .form = form,
        .lines = job->b_transposed ? columns : job->K,
        .width = job->b_transposed ? job->K : columns,
        .stride = job->b_stride,
        .rows = job->by_terms ? job->rows : all,
        .product = job->product,
        .type = way->type,
    };
    pack.pitch = library_pitch(pack.type, pack.width);
    return pack;
}

/* Prepares an operand: where it lies in memory, or packed. */
static void library_operand_of(struct library_way *way, struct library_pack pack,
                               enum library_side side, int packs, const void **out,
                               size_t *out_stride) {
    *out = packs ? library_dense(way, pack, side) : pack.from;
    *out_stride = packs ? pack.pitch : pack.stride;
}

/* Decides where sums go: to the accumulators, to the op's rows as they lie, or to scratch. */
static void library_results(struct library_way *way) {
    const struct gemm *const job = &way->job;
    struct library_product *const p = &way->product;
    const size_t at = way->row * job->N + way->column;
    p->c_stride = way->packs_c ? p->N : job->N;
    p->held = !way->packs_c && (job->held != NULL || job->add);
    p->out = way->packs_c || !job->narrow || job->held != NULL ? p->sum : job->dtype;
    if (way->packs_c)
        p->c = library_take(way, p->M * p->N, sizeof(accumulator), 0);
    else if (job->held != NULL)
        p->c = job->held + at;
    else
        p->c = form_place(job->out, library_form(way->call, job), at);
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
        own.c = (char *)whole->c + first * whole->c_stride * library_size(whole->out);
        if (way->asks) {
            if (!library_has(mode, &own, (unsigned)part)) way->lacks = 1;
            continue;
        }
        library_multiply(mode, &own, (unsigned)part);
        GPU_WORK(1);
    }
    if (joins) library_join();
}

/* Makes `rows` by `columns` of C, from way->row and way->column on. */
static void library_piece(struct library_way *way, size_t rows, size_t columns) {
    const struct gemm *const job = &way->job;
    struct library_product *const p = &way->product;
    p->M = rows;
    p->N = columns;
    library_operand_of(way, library_left_pack(way, rows), LIBRARY_LEFT, way->packs_a, &p->a,
                       &p->a_stride);
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
        (job->narrow || lines_aligned(job->out + way->column, job->N * sizeof(carrier))))
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
    const size_t first = call->first_row;
    own.a = (const carrier *)form_at(job->a, library_form(call, job), first * job->a_stride);
    own.out = (carrier *)form_place(job->out, library_form(call, job), first * job->N);
    own.rows.index = NULL;
    return own;
}

/* Whether an operand lies as the library reads it, but for the order of its lines. */
static int library_lies(const struct library_way *way, const void *from, size_t stride) {
    const struct form form = library_form(way->call, &way->job);
    if (form_is_narrow(form))
        return way->type == form.dtype && lines_aligned(from, stride * form.width);
    return LIBRARY_SAME && way->job.product == DTYPE_F64 &&
           library_size(way->type) == sizeof(carrier);
}

/* Decides how sums become the results of a layer. A library rounds a sum to bf16 or f16 once, as
 * linear_round does, and writes it in place; where it cannot, sums are rounded behind it. */
static void library_place_results(struct library_way *way, int listed) {
    const struct gemm *const job = &way->job;
    const int rounds = job->dtype != (LIBRARY_WIDE ? DTYPE_F64 : DTYPE_F32);
    if (job->held != NULL) return;
    if (job->narrow) {
        way->rounds = way->packs_c = listed || job->add || job->bias != NULL || LIBRARY_WIDE ||
                                     way->type != job->dtype ||
                                     !lines_aligned(job->out, job->N * sizeof(uint16_t));
    } else {
        way->packs_c = !LIBRARY_SAME || listed || (rounds && job->add);
        way->rounds = way->packs_c || rounds;
    }
}

static struct library_way library_way_of(const struct op_call *call, const struct gemm *job) {
    struct library_way way = {.call = call, .job = library_job(call, job)};
    const int listed = way.job.rows.index != NULL;
    way.type = library_type(call, job);
    way.placed = call->rows != 0 && !job->by_terms && listed;
    way.M = way.placed ? call->rows : job->M;
    way.packs_a = listed || !library_lies(&way, way.job.a, job->a_stride);
    way.packs_b = (job->by_terms && listed) || !library_lies(&way, way.job.b, job->b_stride);
    library_place_results(&way, listed);
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
        library_operand_of(way, library_right_pack(way, wide), LIBRARY_RIGHT, way->packs_b,
                           &way->product.b, &way->product.b_stride);
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

/* ---- operands of the op before ---- */

/* Looks for the op's operands among those that the op before has left packed. Pieces and products
 * on several streams keep nothing and find nothing. */
static void library_find_kept(struct library_way *way, size_t rows, size_t columns) {
    way->keeps = rows == way->M && columns == way->job.N && way->call->library->ordered;
    if (!way->keeps) return;
    const struct library_pack left = library_left_pack(way, rows);
    const struct library_pack right = library_right_pack(way, columns);
    if (way->packs_a) way->found[LIBRARY_LEFT] = library_kept_of(&left);
    if (way->packs_b) way->found[LIBRARY_RIGHT] = library_kept_of(&right);
}

/* Whether what the op writes may be of what was packed. */
static int library_way_spoils(const struct library_way *way, const struct library_pack *pack) {
    const struct gemm *const job = &way->job;
    if (job->held != NULL) return library_spoils(pack, job->held, job->held + job->M * job->N);
    const size_t rows = way->placed ? way->call->first_row + way->M : job->M;
    const struct form form = library_form(way->call, job);
    return library_spoils(pack, job->out, form_at(job->out, form, rows * job->N));
}

/* Keeps the operands of an op that has started all of its work. */
static void library_keep(const struct library_way *way) {
    for (int side = 0; side < LIBRARY_SIDES; side++) {
        const struct library_operand *const used = &way->used[side];
        struct library_operand *const kept = &library_kept.operand[side];
        *kept = *used;
        if (!way->keeps || (used->pack.to != NULL && library_way_spoils(way, &used->pack)))
            kept->pack.to = NULL;
    }
    if (way->most > library_kept.most) library_kept.most = way->most;
    library_kept.work = GPU_WORK(0);
}

/* Asks the library for each product, with the addresses that it will have. An op whose operands
 * were found goes no further into scratch than those before it, since nobody says how much there
 * is; otherwise it packs them itself. */
static void library_ask(struct library_way *way, size_t rows, size_t columns) {
    way->asks = 1;
    library_go(way, rows, columns);
    if ((way->found[LIBRARY_LEFT] != NULL || way->found[LIBRARY_RIGHT] != NULL) &&
        way->most > library_kept.most) {
        way->found[LIBRARY_LEFT] = way->found[LIBRARY_RIGHT] = NULL;
        way->lacks = 0;
        way->most = NULL;
        library_go(way, rows, columns);
    }
    way->asks = 0;
}

/* Makes the op by the library. Returns 0 where the library has no algorithm that the mode allows;
 * then nothing was done. */
static int library_linear(const struct op_call *call, const struct gemm *job) {
    struct library_way way = library_way_of(call, job);
    size_t rows, columns;
    if (job->M == 0 || job->N == 0 || job->K == 0) return 1;
    library_pieces(&way, &rows, &columns);
    library_kept_check(call);
    library_find_kept(&way, rows, columns);
    library_ask(&way, rows, columns);
    if (!way.lacks) {
        library_go(&way, rows, columns);
        library_keep(&way);
    }
    if (call->library->count != NULL) library_tell(call->library->count, &way);
    return !way.lacks;
}
