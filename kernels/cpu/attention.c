/* SPDX-License-Identifier: Apache-2.0
 * What attention's forward and backward share (law 6; law 9 where sums are shuffled): dealing the
 * work into units, packing operands, the probabilities, and products over keys. Both directions
 * compute the probabilities here, so they get the same bits. */
#include "kernels/cpu/attention.h"

#include "base/splits.h"
#include "kernels/cpu/gemm_vector.h"
#include "kernels/cpu/softmax.h"

static accumulator *take(accumulator **next, size_t count) {
    accumulator *const piece = *next;
    *next += count;
    return piece;
}

/* Deals out one thread's scratch for a sequence of `length`; `far` and `wide` are
 * attention_padded() of the length and of D. attention_bytes() pads what it is given, so that it is
 * the same of D and of `wide`, and grows with the length: what own_bytes() asks for by the longest
 * sequence and D covers every sequence of the call. The exact sums stand behind it, where
 * own_bytes() asks for them in a call whose order is free alone. Nothing is cleared. */
static struct attention_space space_of(void *scratch, size_t length, size_t far, size_t wide) {
    accumulator *next = (accumulator *)scratch;
    struct attention_space space;
    space.k_rows = take(&next, far * wide);
    space.v_rows = take(&next, far * wide);
    space.k_columns = take(&next, far * wide);
    space.v_columns = take(&next, far * wide);
    space.dk = take(&next, far * wide);
    space.dv = take(&next, far * wide);
    space.p = take(&next, ATTENTION_QUERIES * far);
    space.dp = take(&next, ATTENTION_QUERIES * far);
    space.q = take(&next, ATTENTION_QUERIES * wide);
    space.dout = take(&next, ATTENTION_QUERIES * wide);
    space.result = take(&next, ATTENTION_QUERIES * wide);
    space.line = (carrier *)take(&next, far);
    space.kept = (uint8_t *)next;
    space.order = (char *)scratch + attention_bytes(length, wide) - order_bytes(length);
    space.exact_dk = (struct exact_sum *)(void *)((char *)scratch + attention_bytes(length, wide));
    space.exact_dv = space.exact_dk + far * wide;
    return space;
}

static size_t longest(const struct attention_problem *problem) {
    size_t length = 0;
    for (uint32_t i = 0; i < problem->count; i++)
        length = problem->sequences[i].length > length ? problem->sequences[i].length : length;
    return length;
}

/* Bytes of one thread's scratch in this call, for the longest sequence; also writes how much work
 * the call is. */
static size_t own_bytes(const struct op_call *call, const struct attention_problem *problem,
                        size_t *out_work) {
    size_t work = 0;
    for (uint32_t i = 0; i < problem->count; i++)
        work += (size_t)problem->sequences[i].length * problem->sequences[i].length;
    *out_work = work * problem->H * problem->D / 8;
    const size_t exact = exact_attention_bytes(longest(problem), problem->D);
    return attention_bytes(longest(problem), problem->D) + (call->order_free ? exact : 0);
}

struct attention_task VARIANT(attention_task)(const struct op_call *call,
                                              const struct attention_problem *problem, size_t own,
                                              size_t index) {
    const struct sequence *const sequence = problem->sequences + index / problem->G;
    const size_t head = index % problem->G;
    const size_t D = problem->D;
    struct attention_task task = {
        .call = call,
        .dtype = call->compute,
        .sequence = sequence,
        .dropout = problem->dropout,
        .flash = problem->flash,
        .score = call_score(call),
        .product = call_product(call),
        .scale = (carrier)problem->scale,
        .H = problem->H,
        .D = D,
        .heads = problem->H / problem->G,
        .row = sequence->row,
        .length = sequence->length,
        .keys = call->length > sequence->length ? call->length : sequence->length,
        .wide = attention_padded(D),
        .far = attention_padded(sequence->length),
        .q_line = problem->H * D,
        .k_line = problem->G * D,
    };
    task.first_head = head * task.heads;
    for (const struct sequence *s = problem->sequences; s != sequence; s++)
        task.counted += s->length;
    const size_t at = task.row * task.k_line + head * D;
    task.q = (const struct stored *)problem->q + task.row * task.q_line;
    task.k = (const struct stored *)problem->k + at;
    task.v = (const struct stored *)problem->v + at;
    const size_t state = task.row * task.H * 2;
    if (problem->keeps != NULL) task.keeps = problem->keeps + state;
    if (problem->kept != NULL) task.kept = problem->kept + state;
    task.space = space_of(call_scratch(call, 0, own), task.length, task.far, task.wide);
    return task;
}

ROW_INLINE void round_row(accumulator *x, size_t n, enum dtype dtype) {
    EACH for (size_t i = 0; i < n; i++) x[i] = (accumulator)carrier_round(x[i], dtype);
}

void VARIANT(attention_operand)(const struct attention_task *task, accumulator *values, size_t line,
                                size_t rows, size_t n) {
    if (task->product == DTYPE_F64) return;
    for (size_t i = 0; i < rows; i++) {
#define OPERAND(d) round_row(values + i * line, n, d)
        DTYPE_SWITCH(task->product, OPERAND);
    }
}

void VARIANT(attention_rows)(const struct attention_task *task, const struct stored *x, size_t line,
                             size_t rows, accumulator *out) {
    accumulator *const first = out;
    for (size_t i = 0; i < rows; i++, x += line, out += task->wide) {
        for (size_t d = 0; d < task->D; d++)
            out[d] = (accumulator)stored_load(x[d]);
        for (size_t d = task->D; d < task->wide; d++)
            out[d] = 0;
    }
    VARIANT(attention_operand)(task, first, task->wide, rows, task->D);
}

void VARIANT(attention_columns)(const struct attention_task *task, const struct stored *x,
                                size_t line, accumulator *out) {
    for (size_t i = 0; i < task->far; i += VEC_LANES) {
        const size_t count = i < task->length ? least(VEC_LANES, task->length - i) : 0;
        vec_columns(count > 0 ? x + i * line : x, line, count, task->D, out + i, task->far);
    }
    VARIANT(attention_operand)(task, out, task->far, task->D, task->length);
}

/* ---- dropout ---- */

void VARIANT(attention_masks)(const struct attention_task *task,
                              const struct attention_block *block) {
    if (task->dropout == NULL) return;
    for (size_t i = 0; i < block->count; i++) {
        const uint32_t query = (uint32_t)(block->first + i);
        dropout_attention(task->dropout, task->sequence, (uint32_t)task->H, (uint32_t)block->head,
                          query, query + 1, task->space.kept + i * task->far);
    }
}

ROW_INLINE void drop_scores(accumulator *x, const uint8_t *kept, size_t n, accumulator scale,
                            enum dtype dtype) {
    EACH for (size_t i = 0; i < n; i++) x[i] =
        kept[i] ? (accumulator)carrier_round(x[i] * scale, dtype) : ACC(0.0);
}

void VARIANT(attention_drop)(const struct attention_task *task, const struct attention_block *block,
                             accumulator *values) {
    if (task->dropout == NULL) return;
    const accumulator scale = dropout_scale(task->dropout);
    for (size_t i = 0; i < block->count; i++) {
        const size_t at = i * task->far;
        const size_t keys = block->first + i + 1;
#define DROP(d) drop_scores(values + at, task->space.kept + at, keys, scale, d)
        DTYPE_SWITCH(task->score, DROP);
    }
}

/* ---- orders of law 9 ---- */

/* The order of the tile in which row `row` and column `column` of the call lie. It is drawn anew
 * only when the tile changes. */
struct tile_order {
    struct shuffle shuffle;
    uint64_t row_tile, column_tile;
    struct row_order by;
};

static struct tile_order tile_open(const struct attention_task *task, enum op_pass pass,
                                   uint32_t parts) {
    struct tile_order tile = {.row_tile = UINT64_MAX};
    tile.shuffle = parts > 1 ? shuffle_split(parts, task->keys) : shuffle_open(task->call, pass);
    tile.by.chunk = tile.shuffle.chunk;
    tile.by.chunks = shuffle_chunks(&tile.shuffle, task->length);
    return tile;
}

static void tile_move(struct tile_order *tile, const struct attention_task *task, size_t query,
                      size_t column) {
    const uint64_t row_tile = (task->counted + query) / SHUFFLE_TILE;
    const uint64_t column_tile = column / SHUFFLE_TILE;
    if (row_tile == tile->row_tile && column_tile == tile->column_tile) return;
    tile->row_tile = row_tile;
    tile->column_tile = column_tile;
    tile->by.order =
        shuffle_order(&tile->shuffle, row_tile, column_tile, tile->by.chunks, task->space.order);
}

/* ---- probabilities ---- */

/* Element-wise work on a row of keys runs on to a whole number of vectors: what it computes for the
 * keys behind the query's own is never read. */

/* The scores of a query: s = round(round(q . k) * scale). */
ROW_INLINE void score_row(const accumulator *c, carrier *line, size_t n, carrier scale,
                          enum dtype dtype) {
    EACH for (size_t j = 0; j < n; j++) line[j] =
        rule_mul(carrier_round(c[j], dtype), scale, dtype);
}

ROW_INLINE void probability_row(accumulator *e, size_t n, accumulator sum, enum dtype dtype) {
    EACH for (size_t j = 0; j < n; j++) e[j] = (accumulator)rule_prob(e[j], sum, dtype);
}

/* `at` is where the query's maximum and sum are kept. */
ROW_INLINE void softmax_row(const struct attention_task *task, accumulator *p, size_t n, size_t at,
                            const struct row_order *by, enum dtype dtype) {
    carrier *const line = task->space.line;
    const size_t whole = attention_padded(n);
    const accumulator *const kept = task->kept == NULL ? NULL : task->kept + at;
    score_row(p, line, whole, task->scale, dtype);
    const accumulator maximum = kept == NULL ? row_maximum(line, n) : kept[0];
    if (kept == NULL || !task->flash) row_exp(line, whole, maximum, p);
    const accumulator sum = kept == NULL ? row_sum(p, n, by) : kept[1];
    if (task->keeps != NULL) {
        task->keeps[at] = maximum;
        task->keeps[at + 1] = sum;
    }
    if (task->flash) {
        row_exp(line, whole, rule_log_sum_exp(maximum, sum), p);
        round_row(p, whole, dtype);
    } else {
        probability_row(p, whole, sum, dtype);
    }
}

static void softmax_rows(const struct attention_task *task, const struct attention_block *block) {
    const int drawn = task->kept == NULL && shuffle_active(task->call, SUM_FORWARD);
    struct tile_order tile = {.row_tile = UINT64_MAX, .by.free = task->call->order_free};
    if (drawn) tile = tile_open(task, SHUFFLE_PASS_ROW, 1);
    for (size_t i = 0; i < block->count; i++) {
        const size_t query = block->first + i, at = (query * task->H + block->head) * 2;
        if (drawn) tile_move(&tile, task, query, block->head);
#define SOFTMAX(d) softmax_row(task, task->space.p + i * task->far, query + 1, at, &tile.by, d)
        DTYPE_SWITCH(task->score, SOFTMAX);
    }
}

void VARIANT(product_of)(const struct attention_task *task, const struct product *p) {
    if (task->call->order_free) {
        VARIANT(product_exact)(p);
        return;
    }
    for (size_t i = 0; i < p->rows; i++)
        memset(p->c + i * p->c_line, 0, p->columns * sizeof *p->c);
    VARIANT(product_full)(p);
}

void VARIANT(attention_probabilities)(const struct attention_task *task,
                                      const struct attention_block *block) {
    const struct product scores = {
        .c = task->space.p,
        .c_line = task->far,
        .a = task->space.q,
        .a_row = task->wide,
        .a_term = 1,
        .b = task->space.k_columns,
        .b_line = task->far,
        .rows = block->count,
        .columns = block->keys,
        .depth = task->D,
    };
    const struct stored *const q = task->q + block->first * task->q_line + block->head * task->D;
    VARIANT(attention_rows)(task, q, task->q_line, block->count, task->space.q);
    VARIANT(product_of)(task, &scores);
    softmax_rows(task, block);
}

/* ---- products over keys ---- */

/* Into how many parts mode shaped cuts the sum over keys. A library is called with the padded
 * length, so that decides. */
static uint32_t parts_of(const struct attention_task *task, enum op_pass pass) {
    const struct split_shape shape = {task->keys, task->D, task->keys};
    if (task->call->splits == NULL) return 1;
    return splits_parts(task->call->splits, pass == PASS_FORWARD ? SPLIT_ATTENTION : SPLIT_DQ,
                        shape);
}

/* Columns d .. d+n-1 of one query's output: sums of chunks of keys, each from +0, joined from +0 in
 * the tile's order. */
static void shuffled_row(const accumulator *weights, const accumulator *rows, size_t line,
                         size_t keys, size_t n, const struct row_order *by, accumulator *out) {
    memset(out, 0, n * sizeof *out);
    for (uint32_t c = 0; c < by->chunks; c++) {
        const size_t first = (size_t)by->order[c] * by->chunk;
        accumulator sum[SHUFFLE_TILE] = {0};
        for (size_t j = first; j < least(first + by->chunk, keys); j++) {
            EACH for (size_t d = 0; d < n; d++) sum[d] =
                acc_fma(weights[j], rows[j * line + d], sum[d]);
        }
        if (first >= keys) continue;
        for (size_t d = 0; d < n; d++)
            out[d] += sum[d];
    }
}

/* A head's columns may lie in several tiles of law 9; each piece of them takes the order of its own
 * tile. */
static void shuffled_rows(const struct attention_task *task, const struct attention_block *block,
                          const accumulator *weights, const accumulator *rows, enum op_pass pass,
                          uint32_t parts) {
    const size_t start = block->head * task->D;
    const size_t end = start + task->D;
    struct tile_order tile = tile_open(task, pass, parts);
    for (size_t column = start; column < end;) {
        const size_t next = least(end, (column / SHUFFLE_TILE + 1) * SHUFFLE_TILE);
        for (size_t i = 0; i < block->count; i++) {
            const size_t query = block->first + i;
            tile_move(&tile, task, query, column);
            shuffled_row(weights + i * task->far, rows + (column - start), task->wide, query + 1,
                         next - column, &tile.by,
                         task->space.result + i * task->wide + (column - start));
        }
        column = next;
    }
}

/* Makes space.result the block's sums over keys: a chain, or chunks in a drawn order where they are
 * shuffled. */
static void sum_over_keys(const struct attention_task *task, const struct attention_block *block,
                          int backward) {
    const struct attention_space *const space = &task->space;
    const accumulator *const weights = backward ? space->dp : space->p;
    const accumulator *const rows = backward ? space->k_rows : space->v_rows;
    const enum op_pass pass = backward ? PASS_INPUT : PASS_FORWARD;
    const struct product over = {
        .c = task->space.result,
        .c_line = task->wide,
        .a = weights,
        .a_row = task->far,
        .a_term = 1,
        .b = rows,
        .b_line = task->wide,
        .rows = block->count,
        .columns = task->wide,
    };
    const uint32_t parts = parts_of(task, pass);
    if (shuffle_active(task->call, backward ? SUM_DQ : SUM_FORWARD) || parts > 1) {
        shuffled_rows(task, block, weights, rows, pass, parts);
        return;
    }
    if (task->call->order_free) {
        VARIANT(product_exact_keys)(&over, block->first);
        return;
    }
    memset(task->space.result, 0, block->count * task->wide * sizeof *task->space.result);
    VARIANT(product_keys)(&over, block->first);
}

static void run_unit(const struct attention_pass *pass, size_t index) {
    const struct attention_task task =
        VARIANT(attention_task)(pass->call, pass->problem, pass->own, index);
    pass->open_unit(&task);
    for (size_t h = task.first_head; h < task.first_head + task.heads; h++) {
        for (size_t first = 0; first < task.length; first += ATTENTION_QUERIES) {
            const struct attention_block block = attention_block_at(&task, h, first);
            pass->open_block(&task, &block, pass->data);
            sum_over_keys(&task, &block, pass->backward);
            pass->close_block(&task, &block, pass->data);
        }
    }
    if (pass->close_unit != NULL) pass->close_unit(&task, pass->data);
}

void VARIANT(attention_run)(struct attention_pass pass) {
    const size_t units = (size_t)pass.problem->count * pass.problem->G;
    size_t work = 0;
    pass.own = own_bytes(pass.call, pass.problem, &work);
    if (race_active(pass.call, pass.backward ? SUM_DQ : SUM_FORWARD)) {
        VARIANT(attention_racing)(&pass);
        return;
    }
    if (pass.backward) work *= 2;
#pragma omp parallel for schedule(dynamic) num_threads(call_threads(pass.call, work))
    for (size_t i = 0; i < units; i++)
        run_unit(&pass, i);
}
