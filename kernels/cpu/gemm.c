/* SPDX-License-Identifier: Apache-2.0
 * Products by law 1: columns are walked in blocks, terms in blocks inside them, panels of rows and
 * strips of columns are dealt to threads. The right operand's block is packed by all threads
 * together, each panel of the left one by the thread that uses it; or, where there are blocks of
 * columns enough, each thread has some of these for itself and waits for nobody.
 *
 * Where C is rounded and cannot hold unrounded sums itself, they wait in scratch between blocks.
 * Sums of several parts (law 23) have blocks that end where a part does, and a slot of such waiting
 * sums for each node of the tree that is held.
 * Operands that are bf16 numbers are packed as pairs, too, where the call allows it, and each tile
 * goes by the instruction for pairs or by fma (gemm_bf16.h).
 * Invariant: the deal decides who computes an output, and none of this moves a bit of it. */
#include "kernels/cpu/gemm_block.h"

#include "kernels/cpu/gemm_bf16.h"

#include <omp.h>

/* Terms of several panels that are packed before the next terms, and how many terms ahead of them
 * memory is asked for. Tried: without asking, panels that are packed together gain nothing. */
#define PACKED_TERMS ((size_t)8)
#define ASKED_TERMS ((size_t)16)
#define CACHE_LINE ((size_t)64)

/* A call as every thread sees it: how the product is cut. */
struct plan {
    const struct gemm *g;
    size_t strips;                     /* over all N columns */
    size_t column_blocks, term_blocks; /* >= 1 each; term_blocks: in a part */
    size_t term_step;                  /* the terms of a block; the last of a part may be shorter */
    uint32_t cuts;                     /* parts of each sum */
    int in_place;                      /* C itself has room for the unrounded sums */
    int apart;                 /* each thread packs and multiplies column blocks of its own */
    accumulator *block, *sums; /* shared by all threads: packed B, and M x GEMM_WIDTH sums that wait
                                  between blocks, for each slot */
    char *own;                 /* GEMM_THREAD_BYTES for each thread */
    struct bf16_tiles *bf16;   /* counts the tiles; NULL: nothing is packed as pairs */
    uint32_t *pairs;           /* the block as pairs, a strip behind another as in `block` */
    int32_t *exponents;        /* of each strip of the block, as gemm_bf16_b returns them */
};

/* One thread's view: its place in the grid of threads, `rows` x `columns`, and its buffers. */
struct worker {
    const struct plan *plan;
    size_t threads, index;
    size_t panels, first_panel,
        last_panel; /* panels: over all M rows; its own are first_panel .. last_panel-1 */
    size_t grid_columns, grid_column;
    accumulator *left, *tile, *sums;
    uint32_t *left_pairs;
    struct bf16_tiles counted;
};

/* The part of the product that lies between two barriers. */
struct block {
    size_t first_strip, last_strip; /* over all N columns */
    size_t term, depth;
    uint32_t part, slot; /* which part of the sums, and where it waits */
    int opens, closes;   /* 1: the first, or the last, block of the part's chains */
};

/* A panel times a strip, over a block's terms. */
struct tile {
    size_t rows, vectors;
    const accumulator *left; /* the packed panel */
    size_t columns;          /* real ones, of the 1 or 2 vectors */
    size_t strip;            /* counted in the block */
    int32_t left_least;      /* as gemm_bf16_a returned it for the panel */
    enum gemm_start start;
};

static size_t parts_of(size_t total, size_t most) {
    return total == 0 ? 1 : (total + most - 1) / most;
}

static void place_block(struct plan *plan, char *start) {
    plan->block = (accumulator *)(void *)start;
    plan->pairs = (uint32_t *)(void *)(start + GEMM_BLOCK_BYTES);
    plan->exponents = (int32_t *)(void *)(start + GEMM_BLOCK_BYTES + GEMM_PAIRS_BYTES);
}

/* Blocks that threads have for themselves are as many as divide evenly. A thread has no room there
 * for sums that wait in scratch. */
static void part_columns(struct plan *plan, size_t threads) {
    plan->column_blocks = parts_of(plan->strips, GEMM_WIDTH / GEMM_COLUMNS);
    plan->apart =
        threads > 1 && plan->in_place && plan->cuts == 1 && plan->column_blocks >= threads;
    if (plan->apart) plan->column_blocks = parts_of(plan->column_blocks, threads) * threads;
}

static struct plan plan_of(const struct gemm *g, uint32_t cuts, struct bf16_tiles *bf16,
                           size_t threads, void *scratch) {
    struct plan plan = {.g = g, .cuts = cuts, .bf16 = bf16};
    const size_t terms = parts_of(g->K, cuts); /* of the longest part */
    plan.strips = parts_of(g->N, GEMM_COLUMNS);
    const size_t even = parts_of(terms, parts_of(terms, GEMM_DEPTH));
    plan.term_step = parts_of(even, VEC_LANES) * VEC_LANES;
    plan.term_blocks = parts_of(terms, plan.term_step);
    const int has_room = CARRIER_ACCUMULATES && sizeof *g->out == sizeof(accumulator);
    plan.in_place = g->held != NULL || (has_room && !g->add);
    part_columns(&plan, threads);
    char *const start = (char *)scratch + (-(uintptr_t)scratch & (GEMM_VECTOR_BYTES - 1));
    place_block(&plan, start);
    plan.own = start + GEMM_SHARED_BYTES;
    plan.sums = (accumulator *)(void *)(plan.own + threads * GEMM_THREAD_BYTES);
    return plan;
}

static struct worker worker_of(const struct plan *plan, size_t threads, size_t index) {
    struct worker w = {.plan = plan, .threads = threads, .index = index};
    const size_t M = plan->g->M;
    const size_t fit = M / GEMM_ROWS > 0 ? M / GEMM_ROWS : 1;
    const size_t grid_rows = least(threads, fit);
    w.grid_columns = threads / grid_rows;
    w.grid_column = index / grid_rows;
    w.panels = parts_of(parts_of(M, GEMM_ROWS), grid_rows) * grid_rows;
    w.first_panel = gemm_cut(w.panels, grid_rows, index % grid_rows);
    w.last_panel = gemm_cut(w.panels, grid_rows, index % grid_rows + 1);
    if (w.grid_column >= w.grid_columns) w.last_panel = w.first_panel;
    char *const own = plan->own + index * GEMM_THREAD_BYTES;
    w.left = (accumulator *)(void *)own;
    w.left_pairs = (uint32_t *)(void *)(own + GEMM_PANELS * GEMM_PANEL_BYTES);
    w.tile = (accumulator *)(void *)(own + GEMM_LEFT_BYTES);
    w.sums = (accumulator *)(void *)(own + GEMM_LEFT_BYTES + GEMM_TILE_BYTES);
    return w;
}

/* Block `terms` of all blocks along the terms. Parts differ by at most one term, so of a shorter
 * part the last block may have none. */
static struct block block_of(const struct plan *plan, size_t columns, size_t terms) {
    const uint32_t part = (uint32_t)(terms / plan->term_blocks);
    const size_t inside = terms % plan->term_blocks;
    const size_t term = cut_start(plan->g->K, plan->cuts, part) + inside * plan->term_step;
    const size_t end = cut_start(plan->g->K, plan->cuts, part + 1);
    return (struct block){
        .first_strip = gemm_cut(plan->strips, plan->column_blocks, columns),
        .last_strip = gemm_cut(plan->strips, plan->column_blocks, columns + 1),
        .term = term,
        .depth = term < end ? least(plan->term_step, end - term) : 0,
        .part = part,
        .slot = cut_slot(part),
        .opens = inside == 0,
        .closes = inside + 1 == plan->term_blocks,
    };
}

/* Where row `row` of C keeps the unrounded sums of this block's columns in slot `slot`. */
static accumulator *sums_of(const struct worker *w, const struct block *b, uint32_t slot,
                            size_t row, size_t i) {
    const struct gemm *const g = w->plan->g;
    const size_t column = b->first_strip * GEMM_COLUMNS;
    if (g->held != NULL) return g->held + row * g->N + column;
    if (w->plan->in_place && slot == 0) {
        return (accumulator *)(void *)(g->out + list_row(&g->rows, row) * g->N + column);
    }
    if (b->opens && b->closes && w->plan->cuts == 1) return w->sums + i * GEMM_WIDTH;
    return w->plan->sums + (slot * g->M + row) * GEMM_WIDTH;
}

/* Whether the tile's chains may go by pairs: the proof is in gemm_bf16.h. */
static int goes_by_pairs(const struct worker *w, const struct tile *t, accumulator *const *c,
                         size_t column) {
    if (t->left_least + w->plan->exponents[t->strip] < GEMM_BF16_LEAST) return 0;
    return t->start == GEMM_START || VARIANT(gemm_bf16_continues)(c, t->rows, column, t->columns);
}

static void multiply_tile(struct worker *w, const struct block *b, const struct tile *t,
                          accumulator *const *c, size_t column) {
    const struct plan *const plan = w->plan;
    const int by_terms = plan->g->by_terms;
    const size_t first = t->strip * GEMM_COLUMNS;
    if (plan->bf16 != NULL) {
        const size_t pairs = (b->depth + 1) / 2;
        w->counted.tiles++;
        if (goes_by_pairs(w, t, c, column)) {
            VARIANT(gemm_bf16_micro_of)
            (t->rows, t->vectors, by_terms)(pairs, w->left_pairs, plan->pairs + first * pairs, c,
                                            column, t->start);
            return;
        }
        w->counted.by_fma++;
    }
    VARIANT(gemm_micro_of)
    (t->rows, t->vectors, by_terms)(b->depth, t->left, plan->block + first * b->depth, c, column,
                                    t->start);
}

/* The last strip of C may be narrower than its vectors. It is computed aside, so that nothing is
 * written beyond C. */
static void multiply_edge(struct worker *w, const struct block *b, const struct tile *t,
                          accumulator *const *c, size_t column) {
    accumulator *aside[GEMM_ROWS];
    for (size_t i = 0; i < t->rows; i++) {
        aside[i] = w->tile + i * GEMM_COLUMNS;
        if (t->start == GEMM_CONTINUE) memcpy(aside[i], c[i] + column, t->columns * sizeof **c);
    }
    multiply_tile(w, b, t, aside, 0);
    for (size_t i = 0; i < t->rows; i++)
        memcpy(c[i] + column, aside[i], t->columns * sizeof **c);
}

/* Asks for `count` numbers of the left operand before they are packed: what lies a row apart in
 * memory is no stream that the processor foresees. Inline, since gcc takes a function that only
 * prefetches for one without effect and drops its calls. */
VEC_INLINE void ask(const struct gemm *g, size_t row, size_t column, size_t count) {
    const char *const from = (const char *)(g->a + list_row(&g->rows, row) * g->a_stride + column);
    const size_t bytes = count * sizeof *g->a;
    for (size_t at = 0; at < bytes; at += CACHE_LINE)
        __builtin_prefetch(from + at);
    if (bytes > 0) __builtin_prefetch(from + bytes - 1); /* they may begin inside of a line */
}

/* Asks for a share of the rows of the panel that begins at `row`, while the one before it is
 * multiplied by strip `strip` of `strips`. */
VEC_INLINE void ask_next(const struct gemm *g, const struct block *b, size_t row, size_t strip,
                         size_t strips) {
    const size_t rows = least(GEMM_ROWS, g->M - row);
    for (size_t i = gemm_cut(rows, strips, strip); i < gemm_cut(rows, strips, strip + 1); i++)
        ask(g, row + i, b->term, b->depth);
}

static void multiply_panel(struct worker *w, const struct block *b, const accumulator *left,
                           size_t row, size_t rows, int32_t left_least, size_t first_strip,
                           size_t last_strip) {
    const struct gemm *const g = w->plan->g;
    struct tile t = {.rows = rows, .left = left, .left_least = left_least};
    accumulator *c[GEMM_ROWS];
    t.start = b->opens && (g->held == NULL || g->opens) ? GEMM_START : GEMM_CONTINUE;
    for (size_t i = 0; i < rows; i++)
        c[i] = sums_of(w, b, b->slot, row + i, i);
    for (size_t strip = first_strip; strip < last_strip; strip++) {
        if (!g->by_terms) ask_next(g, b, row + rows, strip - first_strip, last_strip - first_strip);
        t.columns = least(g->N - strip * GEMM_COLUMNS, GEMM_COLUMNS);
        t.vectors = gemm_vectors(t.columns);
        t.strip = strip - b->first_strip;
        const size_t column = t.strip * GEMM_COLUMNS;
        if (t.columns == t.vectors * VEC_LANES || !w->plan->in_place) {
            multiply_tile(w, b, &t, c, column);
        } else {
            multiply_edge(w, b, &t, c, column);
        }
    }
}

/* Joins the nodes that a part has completed: each time the last slot into the one before it. */
static void join_panel(const struct worker *w, const struct block *b, size_t row, size_t rows,
                       size_t first_strip, size_t last_strip) {
    if (!b->closes) return;
    const size_t first = (first_strip - b->first_strip) * GEMM_COLUMNS;
    const size_t end = least(last_strip * GEMM_COLUMNS, w->plan->g->N);
    const size_t columns = end - first_strip * GEMM_COLUMNS;
    for (uint32_t join = 0, joins = cut_joins(b->part); join < joins; join++) {
        const uint32_t right = b->slot - join;
        for (size_t i = 0; i < rows; i++) {
            accumulator *const to = sums_of(w, b, right - 1, row + i, i) + first;
            const accumulator *const from = sums_of(w, b, right, row + i, i) + first;
            for (size_t j = 0; j < columns; j++)
                to[j] = to[j] + from[j];
        }
    }
}

/* Rounds the final sums of a panel out to C. Sums that already stand rounded in C do not move. */
static void close_panel(const struct worker *w, const struct block *b, size_t row, size_t rows,
                        size_t first_strip, size_t last_strip) {
    const struct gemm *const g = w->plan->g;
    const enum dtype exact = sizeof(accumulator) == sizeof(float) ? DTYPE_F32 : DTYPE_F64;
    if (!b->closes || b->part + 1 < w->plan->cuts) return;
    if (g->held != NULL || (w->plan->in_place && g->dtype == exact)) return;
    const size_t column = first_strip * GEMM_COLUMNS;
    const size_t end = least(last_strip * GEMM_COLUMNS, g->N);
    const size_t offset = column - b->first_strip * GEMM_COLUMNS;
    for (size_t i = 0; i < rows; i++)
        VARIANT(gemm_round)
    (g, row + i, column, end - column, sums_of(w, b, 0, row + i, i) + offset);
}

/* Returns how many rows a panel of C has, of which *first is the first: none where M is so small
 * that there are more panels than rows. */
static size_t panel_rows(const struct worker *w, size_t panel, size_t *first) {
    const size_t M = w->plan->g->M;
    *first = gemm_cut(M, w->panels, panel);
    return gemm_cut(M, w->panels, panel + 1) - *first;
}

/* Returns where the panel of that number, counted in its group, is packed. */
static accumulator *panel_at(const struct worker *w, size_t number) {
    return w->left + number * (GEMM_PANEL_BYTES / sizeof(accumulator));
}

/* Packs panels first .. last-1 of a product whose panels are a few numbers of each of many rows in
 * memory. A few terms of all panels are packed before the next terms, so that a cache line is read
 * once, and the terms behind those are asked for. */
static void pack_by_terms(const struct worker *w, const struct block *b, size_t first,
                          size_t last) {
    const struct gemm *const g = w->plan->g;
    const size_t start = gemm_cut(g->M, w->panels, first), end = gemm_cut(g->M, w->panels, last);
    for (size_t term = 0; term < b->depth; term += PACKED_TERMS) {
        const size_t depth = least(PACKED_TERMS, b->depth - term);
        for (size_t p = term + ASKED_TERMS; p < least(b->depth, term + ASKED_TERMS + depth); p++)
            ask(g, b->term + p, start, end - start);
        for (size_t panel = first; panel < last; panel++) {
            size_t row;
            const size_t rows = panel_rows(w, panel, &row);
            if (rows == 0) continue;
            VARIANT(gemm_pack_a)
            (g, row, rows, b->term + term, depth, panel_at(w, panel - first) + rows * term);
        }
    }
}

static void multiply_block(struct worker *w, const struct block *b) {
    const struct gemm *const g = w->plan->g;
    const size_t most = g->by_terms ? GEMM_PANELS : 1;
    const size_t strips = b->last_strip - b->first_strip;
    const size_t first = b->first_strip + gemm_cut(strips, w->grid_columns, w->grid_column);
    const size_t last = b->first_strip + gemm_cut(strips, w->grid_columns, w->grid_column + 1);
    if (first == last) return;
    for (size_t group = w->first_panel; group < w->last_panel; group += most) {
        const size_t end = least(group + most, w->last_panel);
        if (g->by_terms) pack_by_terms(w, b, group, end);
        for (size_t panel = group; panel < end; panel++) {
            size_t row;
            const size_t rows = panel_rows(w, panel, &row);
            if (rows == 0) continue;
            accumulator *const left = panel_at(w, panel - group);
            if (!g->by_terms) VARIANT(gemm_pack_a)(g, row, rows, b->term, b->depth, left);
            const int32_t left_least =
                w->plan->bf16 == NULL
                    ? GEMM_BF16_NEVER
                    : VARIANT(gemm_bf16_a)(g, rows, b->depth, left, w->left_pairs);
            multiply_panel(w, b, left, row, rows, left_least, first, last);
            join_panel(w, b, row, rows, first, last);
            close_panel(w, b, row, rows, first, last);
        }
    }
}

static void pack_block(const struct worker *w, const struct block *b) {
    const struct plan *const plan = w->plan;
    for (size_t strip = b->first_strip + w->index; strip < b->last_strip; strip += w->threads) {
        const size_t number = strip - b->first_strip;
        const size_t column = strip * GEMM_COLUMNS;
        accumulator *const to = plan->block + number * GEMM_COLUMNS * b->depth;
        VARIANT(gemm_pack_b)(plan->g, column, b->term, b->depth, to);
        if (plan->bf16 == NULL) continue;
        uint32_t *const pairs = plan->pairs + number * GEMM_COLUMNS * ((b->depth + 1) / 2);
        const size_t vectors = gemm_vectors(least(plan->g->N - column, GEMM_COLUMNS));
        plan->exponents[number] = VARIANT(gemm_bf16_b)(vectors, b->depth, to, pairs);
    }
}

/* Where a thread leaves what it counted when it is done with its tiles. */
static struct bf16_tiles *tiles_of(const struct plan *plan, size_t index) {
    return (struct bf16_tiles *)(void *)(plan->own + index * GEMM_THREAD_BYTES + GEMM_LEFT_BYTES);
}

/* Column blocks first .. last-1. All threads of a plan run them in step: a barrier ends the packing
 * of each block, and another its use. */
static void multiply_columns(const struct plan *plan, size_t threads, size_t index, size_t first,
                             size_t last) {
    struct worker w = worker_of(plan, threads, index);
    const size_t along = plan->cuts * plan->term_blocks; /* blocks along the terms */
    for (size_t i = first * along; i < last * along; i++) {
        const struct block b = block_of(plan, i / along, i % along);
        pack_block(&w, &b);
        if (threads > 1) {
#pragma omp barrier
        }
        multiply_block(&w, &b);
        if (threads > 1 && i + 1 < last * along) {
#pragma omp barrier
        }
    }
    if (plan->bf16 != NULL) *tiles_of(plan, index) = w.counted;
}

/* The part of one thread. Where threads work apart, each has a plan of one thread: the first one
 * has the block of all, the others have theirs where sums would wait. */
static void work(const struct plan *plan, size_t threads, size_t index) {
    if (!plan->apart) {
        multiply_columns(plan, threads, index, 0, plan->column_blocks);
        return;
    }
    struct plan own = *plan;
    own.own += index * GEMM_THREAD_BYTES;
    if (index > 0) place_block(&own, (char *)plan->sums + (index - 1) * GEMM_SHARED_BYTES);
    multiply_columns(&own, 1, 0, gemm_cut(plan->column_blocks, threads, index),
                     gemm_cut(plan->column_blocks, threads, index + 1));
}

void VARIANT(gemm_chain)(const struct gemm *g, uint32_t cuts, struct bf16_tiles *bf16, int threads,
                         void *scratch) {
    if (g->M == 0 || g->N == 0) return;
    const size_t used = g->M * g->N * g->K < GEMM_WORTH_WAKING ? 1 : (size_t)threads;
    const struct plan plan = plan_of(g, cuts, bf16, used, scratch);
    for (size_t i = 0; bf16 != NULL && i < used; i++)
        memset(tiles_of(&plan, i), 0, sizeof *bf16);
    if (used == 1) {
        work(&plan, 1, 0);
    } else {
#pragma omp parallel num_threads(used)
        work(&plan, (size_t)omp_get_num_threads(), (size_t)omp_get_thread_num());
    }
    for (size_t i = 0; bf16 != NULL && i < used; i++) {
        bf16->tiles += tiles_of(&plan, i)->tiles;
        bf16->by_fma += tiles_of(&plan, i)->by_fma;
    }
}
