/* SPDX-License-Identifier: Apache-2.0
 * Walks the values, and lays out a zip byte by byte. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <string.h>
#include <zlib.h>

#include "tests/checkpoints/helper_torch.h"

#include "determinism/digest.h"

static void print_bytes(FILE *out, const char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++) {
        const unsigned char byte = (unsigned char)bytes[i];
        if (byte > 0x20 && byte < 0x7F && byte != '\\')
            fputc(byte, out);
        else
            fprintf(out, "\\x%02x", (unsigned)byte);
    }
}

static void print_digest(FILE *out, const void *bytes, size_t length) {
    struct digest digest;
    digest_sha256(bytes, length, &digest);
    for (size_t i = 0; i < DIGEST_BYTES; i++)
        fprintf(out, "%02x", (unsigned)digest.byte[i]);
}

static void print_tensor(FILE *out, const struct torch_file *file,
                         const struct torch_tensor *tensor) {
    struct arena arena = ARENA_EMPTY;
    struct safetensors_tensor rows;
    char shape[SAFETENSORS_SHAPE_TEXT];
    assert_int_equal(torch_tensor_rows(file, tensor, "t", &arena, &rows), STATUS_OK);
    safetensors_shape_text(&rows, shape);
    fprintf(out, "tensor %s ", shape);
    print_digest(out, rows.data, (size_t)(rows.end - rows.begin));
    arena_close(&arena);
}

static void print_leaf(FILE *out, const struct torch_file *file, const struct torch_value *value) {
    uint64_t bits;
    switch (value->kind) {
    case TORCH_NONE:
        fprintf(out, "none");
        break;
    case TORCH_BOOL:
        fprintf(out, "bool %" PRId64, value->as.integer);
        break;
    case TORCH_INT:
        fprintf(out, "int %" PRId64, value->as.integer);
        break;
    case TORCH_REAL:
        memcpy(&bits, &value->as.real, sizeof bits);
        fprintf(out, "float %016" PRIx64, bits);
        break;
    case TORCH_TENSOR:
        print_tensor(out, file, value->as.tensor);
        break;
    case TORCH_TEXT:
    case TORCH_BYTES:
    case TORCH_BIG:
        fprintf(out, "%s ",
                value->kind == TORCH_TEXT  ? "text"
                : value->kind == TORCH_BIG ? "big"
                                           : "bytes");
        print_bytes(out, value->as.text->bytes, value->as.text->length);
        break;
    default:
        fprintf(out, "opaque");
    }
}

/* `way` has room for what is added; members that stand in many places are listed in each. */
static void list_value(FILE *out, const struct torch_file *file, const struct torch_value *value,
                       const char *way) {
    static const char *const names[] = {
        [TORCH_LIST] = "list", [TORCH_TUPLE] = "tuple", [TORCH_DICT] = "dict"};
    fprintf(out, "%s ", way);
    if (value->kind != TORCH_LIST && value->kind != TORCH_TUPLE && value->kind != TORCH_DICT) {
        print_leaf(out, file, value);
        fputc('\n', out);
        return;
    }
    const struct torch_members *members = value->as.members;
    fprintf(out, "%s %zu\n", names[value->kind], members->count);
    for (size_t i = 0; i < members->count; i++) {
        char inner[2048];
        const struct torch_value *key = members->keys == NULL ? NULL : &members->keys[i];
        if (key == NULL || key->kind == TORCH_INT)
            snprintf(inner, sizeof inner, "%s[%" PRId64 "]", way,
                     key == NULL ? (int64_t)i : key->as.integer);
        else if (key->kind == TORCH_TEXT)
            snprintf(inner, sizeof inner, "%s.%s", way, key->as.text->bytes);
        else
            snprintf(inner, sizeof inner, "%s.?", way);
        list_value(out, file, &members->values[i], inner);
    }
}

void helper_torch_list(const struct torch_file *file, FILE *out) {
    list_value(out, file, &file->root, "");
}

void helper_zip_put(struct helper_zip *zip, size_t at, size_t width, uint64_t value) {
    assert_true(at + width <= HELPER_ZIP_ROOM);
    for (size_t i = 0; i < width; i++)
        zip->bytes[at + i] = (unsigned char)(value >> (8 * i));
}

static void append(struct helper_zip *zip, const void *bytes, size_t length) {
    assert_true(length <= HELPER_ZIP_ROOM - zip->length);
    if (length > 0) memcpy(zip->bytes + zip->length, bytes, length);
    zip->length += length;
}

static void append_number(struct helper_zip *zip, size_t width, uint64_t value) {
    helper_zip_put(zip, zip->length, width, value);
    zip->length += width;
}

void helper_zip_add(struct helper_zip *zip, const char *name, const void *bytes, size_t length) {
    assert_true(zip->count < HELPER_ZIP_MEMBERS);
    zip->headers[zip->count++] = zip->length;
    append(zip, "PK\3\4\0\0\0\0\0\0\0\0\0\0", 14);
    append_number(zip, 4, crc32(0, (const unsigned char *)bytes, (unsigned)length));
    append_number(zip, 4, length);
    append_number(zip, 4, length);
    append_number(zip, 2, strlen(name));
    append_number(zip, 2, 0);
    append(zip, name, strlen(name));
    append(zip, bytes, length);
}

/* The directory's entry repeats what the local header says. */
static void append_entry(struct helper_zip *zip, size_t number) {
    const size_t header = zip->headers[number];
    const size_t name = zip->bytes[header + 26] + 256u * zip->bytes[header + 27];
    zip->entries[number] = zip->length;
    append(zip, "PK\1\2\0\0", 6);
    append(zip, zip->bytes + header + 4, 26);
    append_number(zip, 2, 0);
    append_number(zip, 8, 0);
    append_number(zip, 4, header);
    append(zip, zip->bytes + header + 30, name);
}

void helper_zip_end(struct helper_zip *zip, int is_wide) {
    const size_t begin = zip->length;
    for (size_t i = 0; i < zip->count; i++)
        append_entry(zip, i);
    const size_t size = zip->length - begin, wide = zip->length;
    if (is_wide) {
        append(zip, "PK\6\6", 4);
        append_number(zip, 8, 44);
        append_number(zip, 4, 0);
        append_number(zip, 8, 0);
        append_number(zip, 8, zip->count);
        append_number(zip, 8, zip->count);
        append_number(zip, 8, size);
        append_number(zip, 8, begin);
        append(zip, "PK\6\7\0\0\0\0", 8);
        append_number(zip, 8, wide);
        append_number(zip, 4, 1);
    }
    zip->end = zip->length;
    append(zip, "PK\5\6\0\0\0\0", 8);
    append_number(zip, 2, zip->count);
    append_number(zip, 2, zip->count);
    append_number(zip, 4, is_wide ? 0xFFFFFFFFu : size);
    append_number(zip, 4, is_wide ? 0xFFFFFFFFu : begin);
    append_number(zip, 2, 0);
}

void helper_torch_make(struct helper_zip *zip, const void *pickle, size_t length, size_t count) {
    unsigned char storage[16];
    for (size_t i = 0; i < sizeof storage; i++)
        storage[i] = (unsigned char)i;
    zip->length = zip->count = 0;
    helper_zip_add(zip, "a/data.pkl", pickle, length);
    helper_zip_add(zip, "a/byteorder", "little", 6);
    for (size_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "a/data/%zu", i);
        helper_zip_add(zip, name, storage, sizeof storage);
    }
    helper_zip_end(zip, 1);
}

static uint64_t draw(uint64_t *seed) {
    *seed += 0x9E3779B97F4A7C15u;
    uint64_t x = *seed;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

/* Where data.pkl lies in a file that torch wrote, and where the directory has its checksum. */
static size_t find_pickle(const unsigned char *bytes, size_t length, size_t *out_size,
                          size_t *out_sum) {
    for (size_t at = length - 46; at > 0; at--) {
        if (memcmp(bytes + at, "PK\1\2", 4) != 0) continue;
        const size_t name = bytes[at + 28];
        if (name < 8 || memcmp(bytes + at + 46 + name - 8, "data.pkl", 8) != 0) continue;
        memcpy(out_size, bytes + at + 24, 4);
        *out_sum = at + 16;
        return 30u + bytes[26] + 256u * bytes[27] + bytes[28] + 256u * bytes[29];
    }
    fail_msg("no data.pkl");
    return 0;
}

void helper_torch_mutate(unsigned char *bytes, size_t length, uint64_t number) {
    uint64_t *seed = &number;
    static const char opcodes[] = "(.0}]()NKMJXqrhjQRbtsuae\x81\x85\x86\x87\x8a";
    size_t size = 0, sum = 0;
    const size_t pickle = find_pickle(bytes, length, &size, &sum);
    const int inside = draw(seed) % 4 != 0;
    const size_t first = inside ? pickle : 0, room = inside ? size : length;
    const uint64_t changes = 1 + draw(seed) % 4;
    for (uint64_t i = 0; i < changes; i++) {
        const size_t at = first + (size_t)(draw(seed) % room);
        switch (draw(seed) % 4) {
        case 0:
            bytes[at] ^= (unsigned char)(1u << draw(seed) % 8);
            break;
        case 1:
            bytes[at] = (unsigned char)draw(seed);
            break;
        case 2:
            bytes[at] = (unsigned char)opcodes[draw(seed) % (sizeof opcodes - 1)];
            break;
        default:
            bytes[at] = bytes[first + (size_t)(draw(seed) % room)];
        }
    }
    if (!inside) return;
    const uLong checksum = crc32_z(0, bytes + pickle, size);
    for (size_t i = 0; i < 4; i++)
        bytes[sum + i] = (unsigned char)(checksum >> (8 * i));
}
