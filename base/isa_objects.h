/* SPDX-License-Identifier: Apache-2.0
 * Which objects stand for an instruction set.
 *
 * Arithmetic is compiled once per instruction set, and a table has the objects of each. Builds that
 * only test, on the machine that makes them, have one set of objects that serves all
 * (TWINSTEP_ONE_ISA, cmake/kernels.cmake), because compiling them takes most of such a build: a
 * sanitizer sees the same source lines in every one of them, and another compiler or optimisation
 * level is tried on the widest. All instruction sets give the same bits, so no result depends on
 * it; that they do is what the other builds test. */
#ifndef TWINSTEP_BASE_ISA_OBJECTS_H
#define TWINSTEP_BASE_ISA_OBJECTS_H

/* The suffix of the objects that serve AVX2 (v3) and AVX-512 (v4). */
#ifdef TWINSTEP_ONE_ISA
#define OBJECTS_V3 base
#define OBJECTS_V4 base
#else
#define OBJECTS_V3 v3
#define OBJECTS_V4 v4
#endif

/* NAME_SUFFIX, where the suffix may be one of the macros above. */
#define OBJECTS_PASTE(name, suffix) name##_##suffix
#define OBJECTS_OF(name, suffix) OBJECTS_PASTE(name, suffix)

#endif
