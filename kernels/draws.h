/* SPDX-License-Identifier: Apache-2.0
 * Fills a matrix, or a block of one, with normal random numbers: element e of the block is std
 * times the number of word e of its site (determinism/normal.h), rounded once to the dtype.
 *
 * A word is a function of its address, so threads share out the elements, and neither they nor the
 * instruction set move a bit. It knows nothing of a model: whoever calls packs the address. */
#ifndef TWINSTEP_KERNELS_DRAWS_H
#define TWINSTEP_KERNELS_DRAWS_H

#include "base/dtype.h"
#include "determinism/stream.h"

struct draws_args {
    uint64_t seed;
    struct stream_site site;
    double std;
    enum dtype dtype;
    size_t width;           /* columns of the whole matrix */
    size_t row, rows;       /* the block: rows from `row` on ... */
    size_t column, columns; /* ... and their columns from `column` on */
    void *values;           /* the whole matrix, in the carrier of `dtype` */
};

/* Done when it returns; `threads` >= 1. */
void draws_normal(int threads, const struct draws_args *args);

#endif
