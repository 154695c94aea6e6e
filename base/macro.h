/* SPDX-License-Identifier: Apache-2.0
 * Spellings that differ between the compilers that build this project (gcc, clang, nvcc), and a few
 * macros that every folder uses. It holds no arithmetic. Headers that .cu files read use only these
 * spellings. */
#ifndef TWINSTEP_BASE_MACRO_H
#define TWINSTEP_BASE_MACRO_H

#if defined(__CUDACC__)
#define TWINSTEP_HD static __host__ __device__ inline
#define TWINSTEP_RESTRICT __restrict__
#else
#define TWINSTEP_HD static inline
#ifdef __cplusplus
#define TWINSTEP_RESTRICT __restrict__
#else
#define TWINSTEP_RESTRICT restrict
#endif
#endif

#define TWINSTEP_MUST_USE __attribute__((warn_unused_result))
#define TWINSTEP_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
