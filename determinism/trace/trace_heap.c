/* SPDX-License-Identifier: Apache-2.0
 * Reads texts of variable length, which h5py writes, out of the file's global heap by itself.
 *
 * HDF5 1.10 copies as many bytes as an object of the heap has into a buffer as long as the
 * reference says, so a file whose two lengths disagree would write over memory. Here HDF5 hands
 * out the references alone, through a conversion that keeps their bytes, and every length is
 * checked before it is used (HDF5 File Format Specification 3.0, III.E, version 1).
 *
 * Invariant: the work is bounded by the file's length. */
#include "determinism/trace/hdf5_reader.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* A reference holds the text's length (4 bytes), the address of its heap (8) and its number there
 * (4). A heap begins with a signature, a version, three zero bytes and its length (8); an object
 * with its number (2), a count (2), four zero bytes and its length (8). Object 0 is the free
 * space. */
#define REFERENCE_BYTES 16
#define HEAD_BYTES 16
#define SPARE_LOOKS 1000000

struct heap {
    struct reader *reader;
    const char *what; /* "attribute \"writer\"" */
    int handle;
    uint64_t file_bytes;
    uint64_t looks;    /* how many more objects may be looked at */
    uint64_t at, next; /* the heap that was looked at last, and where in it the next object lies */
};

static uint64_t number(const uint8_t *bytes, int count) {
    uint64_t value = 0;
    for (int i = count - 1; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

static enum status damaged(const struct heap *heap) {
    FAIL(STATUS_INPUT, "%s: damaged: %s: its text is not where it should be",
         heap->reader->file.name, heap->what);
}

static enum status peek(const struct heap *heap, uint64_t at, size_t count, void *out) {
    if (at > heap->file_bytes || count > heap->file_bytes - at) return damaged(heap);
    const ssize_t got = pread(heap->handle, out, count, (off_t)at);
    if (got < 0) FAIL(STATUS_IO, "%s: cannot read: %s", heap->reader->file.name, strerror(errno));
    return (size_t)got == count ? STATUS_OK : damaged(heap);
}

/* Looks for object `wanted` of the heap at `at`, which is `length` bytes long, among the objects
 * from heap->next on. *out_bytes stays UINT64_MAX if none of them is it. */
static enum status look(struct heap *heap, uint64_t at, uint64_t length, uint64_t wanted,
                        uint64_t *out_at, uint64_t *out_bytes) {
    uint8_t head[HEAD_BYTES];
    while (length >= HEAD_BYTES && heap->next <= length - HEAD_BYTES) {
        if (heap->looks-- == 0) return damaged(heap);
        TRY(peek(heap, at + heap->next, sizeof head, head));
        const uint64_t bytes = number(head + 8, 8), left = length - heap->next - HEAD_BYTES;
        if (bytes > left || number(head, 2) == 0) break;
        *out_at = at + heap->next + HEAD_BYTES;
        heap->next += HEAD_BYTES + (bytes + 7) / 8 * 8;
        if (number(head, 2) != wanted) continue;
        *out_bytes = bytes;
        return STATUS_OK;
    }
    return STATUS_OK;
}

/* Finds object `wanted` of the heap at `at`: where its bytes begin, and how many there are. Texts
 * are mostly asked for in the order in which they lie, so the look begins behind the last one. */
static enum status find(struct heap *heap, uint64_t at, uint64_t wanted, uint64_t *out_at,
                        uint64_t *out_bytes) {
    uint8_t head[HEAD_BYTES];
    TRY(peek(heap, at, sizeof head, head));
    const uint64_t length = number(head + 8, 8);
    if (memcmp(head, "GCOL\1", 5) != 0 || length > heap->file_bytes - at) return damaged(heap);
    if (heap->at != at) heap->next = HEAD_BYTES;
    heap->at = at;
    *out_bytes = UINT64_MAX;
    TRY(look(heap, at, length, wanted, out_at, out_bytes));
    if (*out_bytes != UINT64_MAX) return STATUS_OK;
    heap->next = HEAD_BYTES;
    TRY(look(heap, at, length, wanted, out_at, out_bytes));
    return *out_bytes != UINT64_MAX ? STATUS_OK : damaged(heap);
}

static enum status read_one(struct heap *heap, const uint8_t *reference, const char **out) {
    const uint64_t length = number(reference, 4);
    uint64_t at = 0, bytes = 0;
    char *text;
    *out = "";
    if (length == 0) return STATUS_OK;
    TRY(find(heap, number(reference + 4, 8), number(reference + 12, 4), &at, &bytes));
    if (bytes < length) return damaged(heap);
    TRY(reader_spend(heap->reader, length, 1, heap->what));
    TRY(arena_take(heap->reader->arena, length + 1, 1, "text", &text));
    TRY(peek(heap, at, length, text));
    *out = text;
    return STATUS_OK;
}

/* The conversion from a text of variable length, as it lies in the file, to 16 bytes of no kind:
 * they stay what they are. */
static herr_t keep_bytes(hid_t from, hid_t to, H5T_cdata_t *data, size_t count, size_t stride,
                         size_t background_stride, void *bytes, void *background, hid_t list) {
    (void)from, (void)to, (void)count, (void)stride, (void)background_stride;
    (void)bytes, (void)background, (void)list;
    data->need_bkg = H5T_BKG_NO;
    return 0;
}

static herr_t read_references(hid_t object, uint8_t *out) {
    const hid_t text = H5Tcopy(H5T_C_S1);
    const hid_t raw = H5Tcreate(H5T_OPAQUE, REFERENCE_BYTES);
    herr_t bad = text < 0 || raw < 0 || H5Tset_size(text, H5T_VARIABLE) < 0 ||
                         H5Tregister(H5T_PERS_SOFT, "twinstep", text, raw, keep_bytes) < 0
                     ? -1
                     : 0;
    if (bad >= 0)
        bad = H5Iget_type(object) == H5I_ATTR
                  ? H5Aread(object, raw, out)
                  : H5Dread(object, raw, H5S_ALL, H5S_ALL, H5P_DEFAULT, out);
    if (bad < 0) return bad; /* closing anything would clear what HDF5 says */
    H5Tunregister(H5T_PERS_SOFT, "twinstep", text, raw, keep_bytes);
    H5Tclose(raw);
    return H5Tclose(text);
}

static enum status read_all(struct heap *heap, hid_t object, uint64_t count, const char **out) {
    uint8_t *references;
    TRY(reader_spend(heap->reader, count, REFERENCE_BYTES, heap->what));
    TRY(arena_take(heap->reader->arena, count, REFERENCE_BYTES, "texts", &references));
    if (read_references(object, references) < 0)
        return hdf5_fail(STATUS_INPUT, heap->reader->file.name, "read %s", heap->what);
    for (uint64_t i = 0; i < count; i++)
        TRY(read_one(heap, references + i * REFERENCE_BYTES, &out[i]));
    return STATUS_OK;
}

enum status reader_variable_texts(struct reader *reader, hid_t object, const char *what,
                                  uint64_t count, const char **out) {
    struct heap heap = {.reader = reader, .what = what};
    TRY(reader_handle(reader, &heap.handle, &heap.file_bytes));
    heap.looks = 4 * heap.file_bytes + SPARE_LOOKS;
    return read_all(&heap, object, count, out);
}
