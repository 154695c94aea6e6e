/* SPDX-License-Identifier: Apache-2.0
 * One safetensors file: 8 bytes of header length (little-endian), a JSON header, then the data,
 * which are mapped, not copied.
 *
 * Reading follows the rules of the format's own reader and is stricter in two places: it refuses a
 * key that a tensor's entry does not know, and a key that appears twice anywhere. The rules: the
 * header has at most 100,000,000 bytes, is valid UTF-8 and begins with '{'; `__metadata__` maps
 * strings to strings; sizes are product(shape) * width without overflow; the tensors tile the data,
 * without a hole, without overlap, with nothing behind them. Rank 0 and sizes of 0 are fine.
 * Source: the format's README and its reader (huggingface/safetensors on GitHub). */
#ifndef TWINSTEP_CHECKPOINTS_SAFETENSORS_H
#define TWINSTEP_CHECKPOINTS_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "checkpoints/mapped.h"

#define SAFETENSORS_HEADER_LIMIT 100000000u

/* The dtypes in the order of the format's own serializer: by alignment, then as it lists them. */
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
    const char *path; /* the path of its file */
    enum safetensors_dtype dtype;
    size_t rank;
    const uint64_t *shape;     /* [rank] */
    uint64_t count;            /* number of elements: product of the shape, 1 for rank 0 */
    uint64_t begin, end;       /* its bytes in the data */
    const unsigned char *data; /* end - begin bytes, row-major, little-endian, not aligned */
};

struct safetensors_file {
    const char *path;
    struct mapped mapped;
    size_t count;
    const struct safetensors_tensor **tensors; /* sorted by name, byte by byte */
    size_t metadata_count;
    const struct safetensors_pair *metadata; /* in the order of the header */
};

/* Opens a file and checks all but the values. Everything but the data lives in `arena`.
 * STATUS_INPUT and STATUS_IO name the file, the tensor, what was expected and what came; then
 * nothing is open. */
TWINSTEP_MUST_USE enum status safetensors_open(const char *path, struct arena *arena,
                                               struct safetensors_file *out);
/* Does the same with bytes that stay the caller's; `name` stands for the path. */
TWINSTEP_MUST_USE enum status safetensors_open_bytes(const char *name, const unsigned char *bytes,
                                                     size_t length, struct arena *arena,
                                                     struct safetensors_file *out);
/* Closes the file. No `data` may be used afterwards. */
void safetensors_close(struct safetensors_file *file);

/* The place of a tensor among `count` that are sorted by name; `count` if there is none of that
 * name. */
size_t safetensors_place(const struct safetensors_tensor *const *tensors, size_t count,
                         const char *name);

/* The name as headers spell it, "BF16"; and back: SAFETENSORS_DTYPES for a name that is none. */
const char *safetensors_dtype_name(enum safetensors_dtype dtype);
enum safetensors_dtype safetensors_dtype_of(const char *name);
/* The bits of one element: 4, 6, 8, 16, 32 or 64. */
unsigned safetensors_dtype_bits(enum safetensors_dtype dtype);

/* Stores which of base/dtype.h's dtypes it is: F32, BF16, F16, F64, F8_E4M3, F8_E5M2. Returns 0 if
 * it is none of them. */
int safetensors_dtype_number(enum safetensors_dtype dtype, enum dtype *out);
enum safetensors_dtype safetensors_dtype_from(enum dtype dtype); /* tf32 is stored as F32 */

/* Stores the elements and bytes of a shape. Returns 0 if the product, the bits or the bytes
 * overflow, or the bits make no whole bytes. */
int safetensors_size(enum safetensors_dtype dtype, const uint64_t *shape, size_t rank,
                     uint64_t *out_count, uint64_t *out_bytes);

/* Writes dtype and shape: "F32 [2, 3]". */
#define SAFETENSORS_SHAPE_TEXT 128
void safetensors_shape_text(const struct safetensors_tensor *tensor,
                            char out[SAFETENSORS_SHAPE_TEXT]);

/* Stores elements [first, first + count) as carriers (base/dtype.h), exactly; every NaN keeps its
 * sign and payload. STATUS_INPUT, with the dtype's name, if it is none of base/dtype.h's;
 * STATUS_INTERNAL if the range leaves the tensor. */
TWINSTEP_MUST_USE enum status safetensors_numbers(const struct safetensors_tensor *tensor,
                                                  uint64_t first, size_t count, void *out_carriers);

/* What to write of one tensor: `bytes` in the file's format, or `carriers` of the dtype that
 * safetensors_dtype_number gives. The NaNs of carriers become the one quiet NaN that digests
 * have. */
struct safetensors_source {
    const char *name;
    enum safetensors_dtype dtype;
    size_t rank;
    const uint64_t *shape;
    const void *bytes; /* if NULL, `carriers` are written */
    const void *carriers;
};

/* Writes a file, whole or not at all, with the bytes that the format's own serializer makes:
 * tensors by falling dtype, then by name; the header is filled up with blanks to a multiple of 8
 * bytes, and metadata stand in the order given. STATUS_IO if `path` exists and `overwrite` is 0, or
 * if it cannot be written. STATUS_INPUT: a name twice or not UTF-8, "__metadata__" as a name, a
 * size that overflows, a header over the limit, a carrier that its dtype cannot hold. */
TWINSTEP_MUST_USE enum status safetensors_write(const char *path, int overwrite,
                                                const struct safetensors_source *sources,
                                                size_t count,
                                                const struct safetensors_pair *metadata,
                                                size_t metadata_count);

#endif
