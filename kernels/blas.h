/* SPDX-License-Identifier: Apache-2.0
 * The library arm: OpenBLAS, found at run time, for the linear layers of mode `fast`.
 *
 * A real source of variance with batch size, threads and machine on a CPU; promises nothing. What
 * it is (version, core type, threads) is recorded with every trace. Knows no op.
 * Invariant: a core type forced by OPENBLAS_CORETYPE that this processor cannot run is refused
 * before the library is opened; it would die of an illegal instruction. */
#ifndef TWINSTEP_KERNELS_BLAS_H
#define TWINSTEP_KERNELS_BLAS_H

#include <stddef.h>

#include "base/status.h"

#define BLAS_ROW_MAJOR 101
#define BLAS_PLAIN 111
#define BLAS_TRANSPOSED 112

typedef void (*blas_sgemm)(int order, int transa, int transb, int m, int n, int k, float alpha,
                           const float *a, int lda, const float *b, int ldb, float beta, float *c,
                           int ldc);
typedef void (*blas_dgemm)(int order, int transa, int transb, int m, int n, int k, double alpha,
                           const double *a, int lda, const double *b, int ldb, double beta,
                           double *c, int ldc);

struct blas {
    blas_sgemm sgemm;
    blas_dgemm dgemm;
    void (*set_threads)(int threads);
    char config[256]; /* "OpenBLAS 0.3.21 ... USE_OPENMP Haswell MAX_THREADS=64" */
    char core[64];    /* kernels in use: "Haswell", "SkylakeX", ... */
};

/* Opens OpenBLAS. STATUS_UNSUPPORTED: it is not installed. STATUS_INPUT: OPENBLAS_CORETYPE names a
 * core type that OpenBLAS does not know or that this processor lacks. */
TWINSTEP_MUST_USE enum status blas_open(struct blas *out);

/* Writes the version of the cuBLAS (of CUDA 13 or 12) that the module for devices would open, and
 * its file, as "13.1.0 (/usr/local/cuda/lib64/libcublas.so.13)"; the library stays loaded.
 * STATUS_UNSUPPORTED: none is found, and the text says where was looked. */
TWINSTEP_MUST_USE enum status blas_cublas_version(char *text, size_t size);

/* Writes the file of the NVML that the module for devices would open; likewise. */
TWINSTEP_MUST_USE enum status blas_nvml_file(char *text, size_t size);

/* Refuses a core type as blas_open does. NULL and "" mean that none is forced. */
TWINSTEP_MUST_USE enum status blas_check_core(const char *core);

#endif
