/* SPDX-License-Identifier: Apache-2.0
 * How much of its cases a long test takes. The default run takes a part of them, at least one of
 * every kind; a build with a sanitizer, whose programs run 5 to 30 times as long, may take fewer;
 * the nightly run of a test with label `whole` takes all (tests/CMakeLists.txt sets
 * TWINSTEP_WHOLE). */
#ifndef TWINSTEP_TESTS_BASE_HELPER_SIZE_H
#define TWINSTEP_TESTS_BASE_HELPER_SIZE_H

#include <stddef.h>
#include <stdlib.h>

/* One of three sizes: a number of cases, or a distance between those that are taken. */
static inline size_t helper_size(size_t sanitized, size_t usual, size_t whole) {
    if (getenv("TWINSTEP_WHOLE") != NULL) return whole;
#ifdef TWINSTEP_SANITIZED
    (void)usual;
    return sanitized;
#else
    (void)sanitized;
    return usual;
#endif
}

/* The same choice for a build without optimisation, whose programs run about ten times as long. */
#ifdef __OPTIMIZE__
#define HELPER_UNOPTIMISED 0
#else
#define HELPER_UNOPTIMISED (getenv("TWINSTEP_WHOLE") == NULL)
#endif

/* First in a case of cmocka whose code other cases of its program run, too: a build with a
 * sanitizer, which looks at code and not at results, leaves it to the nightly run. */
#define HELPER_LEAVE_SANITIZED()                                                                   \
    do {                                                                                           \
        if (helper_size(1, 0, 0)) skip();                                                          \
    } while (0)

#endif
