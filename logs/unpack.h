/* SPDX-License-Identifier: Apache-2.0
 * Packed logs: gzip, xz and zstd, told by their first bytes, unpacked into a temporary file that is
 * mapped as any other. For logs/, rollout/ and dumps/.
 *
 * What a small file unpacks to is bounded (a bomb is an error), and so is the memory. A file that
 * ends early gives what stands before the end. */
#ifndef TWINSTEP_LOGS_UNPACK_H
#define TWINSTEP_LOGS_UNPACK_H

#include "logs/map_file.h"
#include "logs/reader.h"

/* A file may unpack to UNPACK_RATIO times its size, or to UNPACK_FREE where that is more, and never
 * to more than UNPACK_MOST. Text packs to a tenth or a hundredth of its size; what packs to less
 * than a 250th says nothing. */
#define UNPACK_FREE ((uint64_t)64 << 20)
#define UNPACK_RATIO 250
#define UNPACK_MOST ((uint64_t)16 << 30)

/* The name of the packer of such bytes, or NULL when they are not packed. */
const char *log_packed(const struct log_source *source);
/* Unpacks into *out. *cut: 1 when the packed bytes end early. */
TWINSTEP_MUST_USE enum status log_unpack(const struct log_source *source, struct log_mapping *out,
                                         int *cut);
/* Unpacks raw deflate (RFC 1951), as a member of a ZIP archive holds it, into exactly `size` bytes
 * whose CRC-32 is `crc`. Returns NULL, or what is wrong. */
const char *unpack_deflate(const unsigned char *packed, uint64_t packed_size, unsigned char *out,
                           uint64_t size, uint32_t crc);
/* What `packed` bytes of deflate unpack to at the most: 1032 times as many. */
#define UNPACK_DEFLATE_MOST(packed) (1032 * (uint64_t)(packed) + 1032)

#endif
