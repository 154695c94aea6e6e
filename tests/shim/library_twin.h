/* SPDX-License-Identifier: Apache-2.0
 * What tests need to know of the library's twin on the host (library_twin.c); nothing of a device's
 * path includes it. */
#ifndef TWINSTEP_TESTS_SHIM_LIBRARY_TWIN_H
#define TWINSTEP_TESTS_SHIM_LIBRARY_TWIN_H

/* The number of terms of a product for which the twin has no algorithm without a split of k. cuBLAS
 * may say so of any shape, and tests must be able to see it. */
#define LIBRARY_TWIN_LACKS 1021u

#endif
