/* SPDX-License-Identifier: Apache-2.0
 * Variables of the environment that cuBLAS reads by itself (names: libcublas.so.13 and
 * libcublasLt.so.13 of CUDA 13.0; NVIDIA's documentation has some of them).
 *
 * Those that change what a product computes are refused where a library multiplies; those that only
 * move its memory or how it looks algorithms up are facts of the backend. Logs and traces of the
 * library change nothing and are let be. Included once by each module. */
#ifndef TWINSTEP_KERNELS_CUDA_LIBRARY_VARIABLES_H
#define TWINSTEP_KERNELS_CUDA_LIBRARY_VARIABLES_H

#include <stdlib.h>

#include "base/module_kit.h"
#include "kernels/cuda/facts.h"

/* NULL where it is not set, or is empty. */
static const char *variable_text(const char *name) {
    const char *const text = getenv(name);
    return text == NULL || text[0] == '\0' ? NULL : text;
}

/* STATUS_INPUT names the first that is set. */
static enum status variables_check(void) {
    static const char *const refused[] = {
        "NVIDIA_TF32_OVERRIDE",
        "CUBLAS_EMULATE_SINGLE_PRECISION",
        "CUBLAS_EMULATE_DOUBLE_PRECISION",
        "CUBLAS_EMULATION_STRATEGY",
        "CUBLAS_EMULATION_SPECIAL_VALUES_SUPPORT_MASK",
        "CUBLAS_FIXEDPOINT_EMULATION_MANTISSA_BIT_COUNT",
        "CUBLASLT_HEURISTICS_LUT_FILE",
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (variable_text(refused[i]) != NULL)
            FAIL(STATUS_INPUT,
                 "%s: expected not to be set where cuBLAS multiplies, whose products it changes "
                 "behind the scenario, got \"%.60s\"; numerics.library: none goes without it",
                 refused[i], variable_text(refused[i]));
    return STATUS_OK;
}

/* What is no printable character of ASCII shows as ?. */
static void variables_add(struct facts *facts) {
    static const struct {
        const char *name, *fact;
    } kept[] = {
        {"CUBLAS_WORKSPACE_CONFIG", "env_cublas_workspace_config"},
        {"CUBLASLT_HEURISTICS_CACHE_CAPACITY", "env_cublaslt_heuristics_cache"},
        {"CUBLASLT_DISABLE_CPU_INSTRUCTIONS_MASK", "env_cublaslt_cpu_instructions"},
    };
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        if (variable_text(kept[i].name) == NULL || facts->count == BACKEND_FACTS_MAX) continue;
        facts_add(facts, kept[i].fact, "%s", variable_text(kept[i].name));
        for (char *at = facts->list[facts->count - 1].text; *at != '\0'; at++)
            if (*at < ' ' || *at > '~') *at = '?';
    }
}

#endif
