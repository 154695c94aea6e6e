/* SPDX-License-Identifier: Apache-2.0
 * The number that a backend's module and this program must have in common: a hash of the headers of
 * base/, determinism/ and kernels/ (cmake/backend_layout.cmake), of structs and of the arithmetic
 * alike. A file of its own, since it changes with each of them. */
#ifndef TWINSTEP_KERNELS_BACKEND_LAYOUT_H
#define TWINSTEP_KERNELS_BACKEND_LAYOUT_H

#include <stdint.h>

#if !defined(BACKEND_LAYOUT) /* a test's module has a wrong one */
#include <layout_word.h>     /* made by the build */
#endif

#endif
