/* SPDX-License-Identifier: Apache-2.0
 * What tests know of the library's twin on the host (library_twin.c); nothing of a device's path
 * includes it. */
#ifndef TWINSTEP_TESTS_SHIM_LIBRARY_TWIN_H
#define TWINSTEP_TESTS_SHIM_LIBRARY_TWIN_H

/* Terms of a product that the twin has no way for without a split of k: what cuBLAS may say of any
 * shape, and what tests must be able to see. */
#define LIBRARY_TWIN_LACKS 1021u

#endif
