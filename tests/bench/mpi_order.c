/* SPDX-License-Identifier: Apache-2.0
 * Asks the installed MPI in which order it adds: tests/bench/ranks_record.py compiles it with mpicc
 * and starts it under mpirun. No build of twinstep has a target for it.
 *
 *   mpi_order allreduce|reduce_scatter COUNT...
 *
 * One probe per pair of ranks i < j: rank i gives M = 2^30, rank j gives -M, all others give 1.
 * What is added to M or -M before these two meet is lost to rounding, so the sum counts the ranks
 * that are added later (Xie et al., FPRev, arXiv 2411.00442). Rank 0 prints a line per run of
 * elements with equal counts: P COUNT START END DIGITS, with a digit for each pair (0,1), (0,2),
 * ... */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS_MAX 9 /* a digit holds P - 2 */
#define PAIRS_MAX (RANKS_MAX * (RANKS_MAX - 1) / 2)

static int rank, ranks;

static void fill(float *values, int count, int i, int j) {
    const float value = rank == i ? 0x1p30f : rank == j ? -0x1p30f : 1.0f;
    for (int e = 0; e < count; e++)
        values[e] = value;
}

/* The blocks of MPI_Reduce_scatter are those of a vector that is dealt evenly; block r stays with
 * rank r, and rank 0 gathers them. */
static void reduce_scatter(const float *in, float *out, int count) {
    int lengths[RANKS_MAX], starts[RANKS_MAX];
    for (int r = 0, next = 0; r < ranks; r++) {
        lengths[r] = count / ranks + (r < count % ranks);
        starts[r] = next;
        next += lengths[r];
    }
    float *block = malloc(((size_t)lengths[rank] + 1) * sizeof *block);
    if (block == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Reduce_scatter(in, block, lengths, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Gatherv(block, lengths[rank], MPI_FLOAT, out, lengths, starts, MPI_FLOAT, 0,
                MPI_COMM_WORLD);
    free(block);
}

static void print_runs(char (*digits)[PAIRS_MAX + 1], int count) {
    for (int start = 0, e = 1; e <= count; e++) {
        if (e < count && strcmp(digits[e], digits[start]) == 0) continue;
        printf("%d %d %d %d %s\n", ranks, count, start, e, digits[start]);
        start = e;
    }
}

static void probe(int count, int is_scattered) {
    float *in = malloc((size_t)count * sizeof *in), *out = malloc((size_t)count * sizeof *out);
    char(*digits)[PAIRS_MAX + 1] = calloc((size_t)count, sizeof *digits);
    int pair = 0;
    if (in == NULL || out == NULL || digits == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < ranks; i++)
        for (int j = i + 1; j < ranks; j++, pair++) {
            fill(in, count, i, j);
            if (is_scattered)
                reduce_scatter(in, out, count);
            else
                MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
            for (int e = 0; rank == 0 && e < count; e++)
                digits[e][pair] = (char)('0' + (int)out[e]);
        }
    if (rank == 0) print_runs(digits, count);
    free(in);
    free(out);
    free(digits);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 3 || ranks > RANKS_MAX) MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 2; i < argc; i++)
        probe(atoi(argv[i]), strcmp(argv[1], "reduce_scatter") == 0);
    MPI_Finalize();
    return 0;
}
