/* SPDX-License-Identifier: Apache-2.0
 * One safetensors file: 8 bytes of header length (little-endian), a JSON header, then the data.
 *
 * Reading follows the rules of the format's own reader and is stricter in two places: a key that a
 * tensor's entry does not know is refused, and so is a key twice anywhere. The data are mapped, not
 * copied. Rules: header at most 100,000,000 bytes, valid UTF-8, beginning with '{'; `__metadata__`
 * from string to string; sizes are product(shape) * width without overflow; the tensors tile the
 * data, no hole, no overlap, nothing behind them. Rank 0 and sizes of 0 are fine.
 * Source: the format's README and its reader (github.com/huggingface/safetensors). */
#ifndef TWINSTEP_CHECKPOINTS_SAFETENSORS_H
#define TWINSTEP_CHECKPOINTS_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "checkpoints/mapped.h"

#define SAFETENSORS_HEADER_LIMIT 100000000u

/* In the order of the format's own serializer: by alignment, then as it lists them. */
enum safetensors_dtype {
    SAFETENSORS_BOOL = 0,
    SAFETENSORS_F4,
    SAFETENSORS_F6_E2M3,
    SAFETENSORS_F6_E3M2,
    SAFETENSORS_U8,
    SAFETENSORS_I8,
    SAFETENSORS_F8_E5M2,
    SAFETENSORS_F8_E4M3,
    SAFETENSORS_F8_E8M0,
    SAFETENSORS_F8_E4M3FNUZ,
    SAFETENSORS_F8_E5M2FNUZ,
    SAFETENSORS_I16,
    SAFETENSORS_U16,
    SAFETENSORS_F16,
    SAFETENSORS_BF16,
    SAFETENSORS_I32,
    SAFETENSORS_U32,
    SAFETENSORS_F32,
    SAFETENSORS_C64,
    SAFETENSORS_F64,
    SAFETENSORS_I64,
    SAFETENSORS_U64,
    SAFETENSORS_DTYPES
};

struct safetensors_pair {
    const char *key, *value;
};

struct safetensors_tensor {
    const char *name;
    const char *path; /* of its file */
    enum safetensors_dtype dtype;
    size_t rank;
    const uint64_t *shape;     /* [rank] */
    uint64_t count;            /* elements: product of the shape, 1 for rank 0 */
    uint64_t begin, end;       /* bytes in the data */
    const unsigned char *data; /* end - begin bytes, row-major, little-endian, not aligned */
};

struct safetensors_file {
    const char *path;
    struct mapped mapped;
    size_t count;
    const struct safetensors_tensor **tensors; /* by name, byte by byte */
    size_t metadata_count;
    const struct safetensors_pair *metadata; /* in the order of the header */
};

/* Opens and checks all but the values. Everything but the data lives in `arena`. STATUS_INPUT and
 * STATUS_IO name the file, the tensor, what was expected and what came; then nothing is open. */
TWINSTEP_MUST_USE enum status safetensors_open(const char *path, struct arena *arena,
                                               struct safetensors_file *out);
/* The same of bytes that stay the caller's; `name` stands for the path. */
TWINSTEP_MUST_USE enum status safetensors_open_bytes(const char *name, const unsigned char *bytes,
                                                     size_t length, struct arena *arena,
                                                     struct safetensors_file *out);
/* Ends every use of `data`. */
void safetensors_close(struct safetensors_file *file);

/* Among tensors that stand by name; NULL when there is none of that name. */
const struct safetensors_tensor *safetensors_search(const struct safetensors_tensor *const *tensors,
                                                    size_t count, const char *name);
const struct safetensors_tensor *safetensors_find(const struct safetensors_file *file,
                                                  const char *name);
/* Its value; NULL when there is none. */
const char *safetensors_metadata(const struct safetensors_file *file, const char *key);

/* "BF16", as headers spell it; SAFETENSORS_DTYPES for a name that is none. */
const char *safetensors_dtype_name(enum safetensors_dtype dtype);
enum safetensors_dtype safetensors_dtype_of(const char *name);
/* Bits of one element: 4, 6, 8, 16, 32 or 64. */
unsigned safetensors_dtype_bits(enum safetensors_dtype dtype);

/* Which of our dtypes it is: F32, BF16, F16, F64, F8_E4M3, F8_E5M2. 0: it is none of them. */
int safetensors_dtype_number(enum safetensors_dtype dtype, enum dtype *out);
enum safetensors_dtype safetensors_dtype_from(enum dtype dtype); /* tf32 is stored as F32 */

/* Elements and bytes of a shape. 0: the product, the bits or the bytes overflow, or the bits make
 * no whole bytes. */
int safetensors_size(enum safetensors_dtype dtype, const uint64_t *shape, size_t rank,
                     uint64_t *out_count, uint64_t *out_bytes);

/* "F32 [2, 3]" */
#define SAFETENSORS_SHAPE_TEXT 128
void safetensors_shape_text(const struct safetensors_tensor *tensor,
                            char out[SAFETENSORS_SHAPE_TEXT]);

/* Elements [first, first + count) as carriers (base/dtype.h), exactly; every NaN keeps its sign and
 * payload. STATUS_INPUT: the dtype is not one of ours, by name, or the range leaves the tensor. */
TWINSTEP_MUST_USE enum status safetensors_numbers(const struct safetensors_tensor *tensor,
                                                  uint64_t first, size_t count, void *out_carriers);

/* What to write of one tensor: `bytes` in the file's format, or `carriers` of
 * safetensors_dtype_number (whose NaNs become the one quiet NaN, as digests have it). */
struct safetensors_source {
    const char *name;
    enum safetensors_dtype dtype;
    size_t rank;
    const uint64_t *shape;
    const void *bytes; /* or NULL: */
    const void *carriers;
};

/* Writes a file that is there whole or not at all, with the bytes that the format's own serializer
 * makes: tensors by falling dtype, then by name; the header filled with blanks to 8 bytes (metadata
 * in the order given). STATUS_IO: `path` is there and `overwrite` is 0, or it cannot be written.
 * STATUS_INPUT: a name twice or not UTF-8, "__metadata__" as a name, a size that overflows, a
 * header over the limit, a carrier that its dtype cannot hold. */
TWINSTEP_MUST_USE enum status safetensors_write(const char *path, int overwrite,
                                                const struct safetensors_source *sources,
                                                size_t count,
                                                const struct safetensors_pair *metadata,
                                                size_t metadata_count);

#endif
