/* SPDX-License-Identifier: Apache-2.0
 * Which objects stand for an instruction set.
 *
 * Arithmetic is compiled once per instruction set, and a table has the objects of each. Builds that
 * only test, on the machine that makes them, compile less (cmake/kernels.cmake). Those with a
 * sanitizer compile the portable objects alone (TWINSTEP_BASE_ONLY), because a sanitizer sees the
 * same source lines in every one of them, and compiling them takes most of such a build. Those of
 * another compiler or optimisation level compile, besides, the widest set that the machine has
 * (TWINSTEP_WIDEST, its suffix). The objects that there are serve the other sets, too. All
 * instruction sets give the same bits, so no result depends on it. */
#ifndef TWINSTEP_BASE_ISA_OBJECTS_H
#define TWINSTEP_BASE_ISA_OBJECTS_H

/* The suffix of the objects that serve AVX2 (v3) and AVX-512 (v4). */
#ifdef TWINSTEP_BASE_ONLY
#define OBJECTS_V3 base
#define OBJECTS_V4 base
#elif defined(TWINSTEP_WIDEST)
#define OBJECTS_V3 TWINSTEP_WIDEST
#define OBJECTS_V4 TWINSTEP_WIDEST
#else
#define OBJECTS_V3 v3
#define OBJECTS_V4 v4
#endif

/* NAME_SUFFIX, where the suffix may be one of the macros above. */
#define OBJECTS_PASTE(name, suffix) name##_##suffix
#define OBJECTS_OF(name, suffix) OBJECTS_PASTE(name, suffix)

#endif
