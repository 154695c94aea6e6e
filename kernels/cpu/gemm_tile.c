/* SPDX-License-Identifier: Apache-2.0
 * Packs a chunk of a tile's operands and multiplies it. */
#include "kernels/cpu/gemm_tile.h"

struct tile VARIANT(gemm_tile)(const struct gemm *g, size_t row_tile, size_t column_tile,
                               char *own) {
    struct tile t = {.g = g, .row = row_tile * TILE, .column = column_tile * TILE};
    t.rows = least(g->M - t.row, TILE);
    t.columns = least(g->N - t.column, TILE);
    t.panels = (t.rows + GEMM_ROWS - 1) / GEMM_ROWS;
    t.left = (accumulator *)(void *)own;
    t.right = (accumulator *)(void *)(own + GEMM_LEFT_BYTES);
    t.held = (accumulator *)(void *)(own + GEMM_LEFT_BYTES + GEMM_RIGHT_BYTES);
    t.chain = t.held + TILE * TILE;
    return t;
}

void VARIANT(gemm_tile_terms)(const struct tile *t, size_t term, size_t depth, accumulator *to,
                              enum gemm_start start) {
    const struct gemm *const g = t->g;
    const size_t left_line = g->by_terms ? depth : GEMM_LINE;
    for (size_t panel = 0; panel < t->panels; panel++) {
        const size_t row = gemm_cut(t->rows, t->panels, panel);
        const size_t rows = gemm_cut(t->rows, t->panels, panel + 1) - row;
        VARIANT(gemm_pack_a)(g, t->row + row, rows, term, depth, t->left + row * left_line);
    }
    for (size_t column = 0; column < t->columns; column += GEMM_COLUMNS) {
        const size_t vectors = gemm_vectors(least(t->columns - column, GEMM_COLUMNS));
        VARIANT(gemm_pack_b)(g, t->column + column, term, depth, t->right);
        for (size_t panel = 0; panel < t->panels; panel++) {
            const size_t row = gemm_cut(t->rows, t->panels, panel);
            const size_t rows = gemm_cut(t->rows, t->panels, panel + 1) - row;
            accumulator *c[GEMM_ROWS];
            for (size_t i = 0; i < rows; i++)
                c[i] = to + (row + i) * TILE;
            VARIANT(gemm_micro_of)
            (rows, vectors, g->by_terms)(depth, t->left + row * left_line, t->right, c, column,
                                         start);
        }
    }
}

void VARIANT(gemm_tile_chain)(const struct tile *t, size_t term, size_t count) {
    for (size_t done = 0; done < count; done += GEMM_DEPTH) {
        VARIANT(gemm_tile_terms)
        (t, term + done, least(count - done, GEMM_DEPTH), t->chain,
         done == 0 ? GEMM_START : GEMM_CONTINUE);
    }
}
