/* SPDX-License-Identifier: Apache-2.0
 * Variables of the environment that cuBLAS reads by itself (names: libcublas.so.13 and
 * libcublasLt.so.13 of CUDA 13.0; NVIDIA's documentation has some of them). Logs and traces of the
 * library change nothing and are not here. */
#ifndef TWINSTEP_KERNELS_CUDA_VARIABLE_NAMES_H
#define TWINSTEP_KERNELS_CUDA_VARIABLE_NAMES_H

/* Variables that change what a product computes. */
static const char *const variables_refused[] = {
    "NVIDIA_TF32_OVERRIDE",
    "CUBLAS_EMULATE_SINGLE_PRECISION",
    "CUBLAS_EMULATE_DOUBLE_PRECISION",
    "CUBLAS_EMULATION_STRATEGY",
    "CUBLAS_EMULATION_SPECIAL_VALUES_SUPPORT_MASK",
    "CUBLAS_FIXEDPOINT_EMULATION_MANTISSA_BIT_COUNT",
    "CUBLASLT_HEURISTICS_LUT_FILE",
};

/* Variables that only move the library's memory or how it looks algorithms up, each with the fact
 * that tells them. */
static const struct {
    const char *name, *fact;
} variables_kept[] = {
    {"CUBLAS_WORKSPACE_CONFIG", "env_cublas_workspace_config"},
    {"CUBLASLT_HEURISTICS_CACHE_CAPACITY", "env_cublaslt_heuristics_cache"},
    {"CUBLASLT_DISABLE_CPU_INSTRUCTIONS_MASK", "env_cublaslt_cpu_instructions"},
};

#endif
