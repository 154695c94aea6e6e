/* SPDX-License-Identifier: Apache-2.0
 * Tells this program from one that was built of other sources: version, compiler and flags are the
 * same while its source changes. */
#ifndef TWINSTEP_CLI_BUILD_ID_H
#define TWINSTEP_CLI_BUILD_ID_H

#include "determinism/digest.h"

/* Writes the linker's digest over the program (NT_GNU_BUILD_ID), in hexadecimal, from memory; the
 * SHA-256 of the program's file where the linker made none, which fails where it cannot be read. */
TWINSTEP_MUST_USE enum status build_id(char out[DIGEST_HEX]);

#endif
