/* SPDX-License-Identifier: Apache-2.0
 * .npz as numpy.savez and savez_compressed write it: a ZIP archive (APPNOTE.TXT 6.3) of .npy
 * members (NEP 1), stored or deflated. Stored members are read in place, deflated ones are unpacked
 * into the arena. */
#include <stdio.h>
#include <string.h>

#include "base/real.h"
#include "logs/unpack.h"
#include "rollout/arrays.h"

struct npy {
    const char *path;
    const unsigned char *data;
    uint64_t bytes;
    char kind; /* f, i, u, b */
    int size;
};

static uint64_t little(const unsigned char *p, int bytes) {
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--)
        value = value << 8 | p[i];
    return value;
}

static double half(uint16_t bits) {
    const double sign = (bits >> 15) != 0 ? -1.0 : 1.0;
    const int exponent = (bits >> 10) & 31;
    const double fraction = (double)(bits & 1023);
    if (exponent == 31) return fraction != 0.0 ? real_nan_f64() : sign * real_inf_f64();
    if (exponent == 0) return sign * fraction * 0x1p-24;
    return sign * (fraction + 1024.0) * real_from_bits_f64((uint64_t)(1023 + exponent - 25) << 52);
}

static double element(const struct npy *npy, uint64_t index) {
    const unsigned char *p = npy->data + index * (uint64_t)npy->size;
    const uint64_t bits = little(p, npy->size);
    float single;
    if (npy->kind == 'u' || npy->kind == 'b') return (double)bits;
    if (npy->kind == 'i') {
        const unsigned shift = 64u - 8u * (unsigned)npy->size;
        return (double)((int64_t)(bits << shift) / ((int64_t)1 << shift));
    }
    if (npy->size == 8) return real_from_bits_f64(bits);
    if (npy->size == 2) return half((uint16_t)bits);
    const uint32_t word = (uint32_t)bits;
    memcpy(&single, &word, sizeof single);
    return (double)single;
}

static enum status read(struct rollout_array *array, uint64_t first, uint64_t count, double *out) {
    const struct npy *npy = (const struct npy *)array->handle;
    for (uint64_t i = 0; i < count; i++)
        out[i] = element(npy, first + i);
    return STATUS_OK;
}

/* ---- the header of a .npy: a Python dict of descr, fortran_order, shape ---- */

static const char *after(const char *text, const char *word) {
    const char *at = strstr(text, word);
    return at == NULL ? NULL : at + strlen(word);
}

static int read_type(const char *header, struct npy *npy) {
    const char *at = after(header, "'descr':");
    if (at == NULL) return 0;
    while (*at == ' ')
        at++;
    if (*at++ != '\'') return 0;
    const char order = *at++;
    npy->kind = *at++;
    npy->size = *at - '0';
    const int plain = at[1] == '\'' && (order == '<' || order == '|');
    if (!plain) return 0;
    if (npy->kind == 'f') return npy->size == 2 || npy->size == 4 || npy->size == 8;
    if (npy->kind == 'b') return npy->size == 1;
    return (npy->kind == 'i' || npy->kind == 'u') &&
           (npy->size == 1 || npy->size == 2 || npy->size == 4 || npy->size == 8);
}

static int read_shape(const char *header, struct rollout_array *array) {
    const char *at = after(header, "'shape':");
    if (at == NULL || strstr(header, "'fortran_order': False") == NULL) return 0;
    at = strchr(at, '(');
    if (at == NULL) return 0;
    for (at++; *at != ')' && *at != '\0';) {
        if (*at == ' ' || *at == ',') {
            at++;
            continue;
        }
        if (*at < '0' || *at > '9' || array->rank == 3) return 0;
        uint64_t extent = 0;
        for (; *at >= '0' && *at <= '9'; at++) {
            if (extent > (UINT64_C(1) << 40)) return 0;
            extent = 10 * extent + (uint64_t)(*at - '0');
        }
        array->shape[array->rank++] = extent;
    }
    return *at == ')';
}

/* Returns 1 where the member is an array that can be read, 0 where it is none of ours. */
static int read_npy(struct npy *npy, struct rollout_array *array) {
    char header[1024];
    if (npy->bytes < 12 || memcmp(npy->data, "\x93NUMPY", 6) != 0) return 0;
    const int wide = npy->data[6] >= 2;
    const uint64_t start = wide ? 12 : 10, length = little(npy->data + 8, wide ? 4 : 2);
    if (length >= sizeof header || start + length > npy->bytes) return 0;
    memcpy(header, npy->data + start, (size_t)length);
    header[length] = '\0';
    if (!read_type(header, npy) || !read_shape(header, array)) return 0;
    npy->data += start + length;
    npy->bytes -= start + length;
    uint64_t elements = 1;
    for (uint32_t i = 0; i < array->rank; i++) {
        if (array->shape[i] != 0 && elements > (UINT64_C(1) << 44) / array->shape[i]) return 0;
        elements *= array->shape[i];
    }
    return elements <= npy->bytes / (uint64_t)npy->size;
}

/* ---- the archive ---- */

struct zip {
    const char *path;
    const unsigned char *bytes;
    uint64_t length, directory, entries;
};

static enum status broken(const struct zip *zip, const char *what) {
    FAIL(STATUS_INPUT, "%s: expected a .npz archive, got one that is damaged: %s", zip->path, what);
}

/* Finds the end record, which stands in the last 65557 bytes. */
static enum status find_directory(struct zip *zip) {
    const uint64_t least = zip->length > 65557 ? zip->length - 65557 : 0;
    if (zip->length < 22) return broken(zip, "it is too short");
    for (uint64_t at = zip->length - 22;; at--) {
        if (memcmp(zip->bytes + at, "PK\5\6", 4) == 0) {
            zip->entries = little(zip->bytes + at + 10, 2);
            zip->directory = little(zip->bytes + at + 16, 4);
            return STATUS_OK;
        }
        if (at == least) return broken(zip, "it has no directory (cut short?)");
    }
}

/* Sizes and offset of 0xffffffff stand in the ZIP64 field (id 1) of the entry. */
static void widen(const unsigned char *extra, uint64_t length, uint64_t *size, uint64_t *packed,
                  uint64_t *offset) {
    for (uint64_t at = 0; at + 4 <= length;) {
        const uint64_t id = little(extra + at, 2), bytes = little(extra + at + 2, 2);
        uint64_t field = at + 4;
        if (field + bytes > length) return;
        uint64_t *const wide[3] = {size, packed, offset};
        for (int i = 0; id == 1 && i < 3; i++)
            if (*wide[i] == 0xffffffffu && field + 8 <= at + 4 + bytes) {
                *wide[i] = little(extra + field, 8);
                field += 8;
            }
        at += 4 + bytes;
    }
}

struct member {
    const unsigned char *name;
    uint64_t name_length, size, packed, offset, method, crc;
};

static enum status next_member(struct zip *zip, struct member *out) {
    const unsigned char *p = zip->bytes + zip->directory;
    if (zip->directory + 46 > zip->length || memcmp(p, "PK\1\2", 4) != 0)
        return broken(zip, "its directory has no entry where one should be");
    const uint64_t name = little(p + 28, 2), extra = little(p + 30, 2), note = little(p + 32, 2);
    if (zip->directory + 46 + name + extra + note > zip->length)
        return broken(zip, "an entry of its directory is cut");
    *out = (struct member){.name = p + 46,
                           .name_length = name,
                           .size = little(p + 24, 4),
                           .packed = little(p + 20, 4),
                           .offset = little(p + 42, 4),
                           .method = little(p + 10, 2),
                           .crc = little(p + 16, 4)};
    widen(p + 46 + name, extra, &out->size, &out->packed, &out->offset);
    zip->directory += 46 + name + extra + note;
    return STATUS_OK;
}

static enum status place_member(const struct zip *zip, const struct member *member,
                                struct npy *npy) {
    const unsigned char *p = zip->bytes + member->offset;
    if (member->offset > zip->length || zip->length - member->offset < 30 ||
        memcmp(p, "PK\3\4", 4) != 0)
        return broken(zip, "a member is not where the directory says");
    const uint64_t start = member->offset + 30 + little(p + 26, 2) + little(p + 28, 2);
    if (start > zip->length || member->packed > zip->length - start)
        return broken(zip, "a member is cut short");
    npy->data = zip->bytes + start;
    npy->bytes = member->packed;
    return STATUS_OK;
}

#define STORED 0
#define DEFLATED 8

/* Unpacks a deflated member, which place_member has placed. A directory that says more than deflate
 * can hold gets no memory. */
static enum status unpack_member(const struct zip *zip, const struct member *member,
                                 const char *name, struct arena *arena, struct npy *npy) {
    unsigned char *bytes;
    if (member->size > UNPACK_DEFLATE_MOST(member->packed))
        return broken(zip, "a member says that it unpacks to more than it can");
    TRY(arena_take(arena, member->size, 1, "an unpacked array", &bytes));
    const char *const wrong =
        unpack_deflate(npy->data, npy->bytes, bytes, member->size, (uint32_t)member->crc);
    if (wrong != NULL) FAIL(STATUS_INPUT, "%s: %s: cannot be unpacked: %s", zip->path, name, wrong);
    npy->data = bytes;
    npy->bytes = member->size;
    return STATUS_OK;
}

static enum status take_member(const struct zip *zip, const struct member *member,
                               const struct rollout_naming *naming, struct arena *arena,
                               struct npy *npy, struct rollout_array *array, size_t *count) {
    uint64_t length = member->name_length;
    int rank, pairs;
    if (length > 4 && memcmp(member->name + length - 4, ".npy", 4) == 0) length -= 4;
    if (length >= sizeof array->name) return STATUS_OK;
    memset(array, 0, sizeof *array);
    memcpy(array->name, member->name, (size_t)length);
    const enum rollout_field field =
        rollout_field_of(naming, array->name, (size_t)length, ROLLOUT_FIELDS, &rank, &pairs);
    const int ours = strcmp(array->name, "offsets") == 0 || strcmp(array->name, "length") == 0 ||
                     strcmp(array->name, "response_length") == 0 || field != ROLLOUT_FIELDS;
    if (!ours) return STATUS_OK;
    if (member->method != STORED && member->method != DEFLATED)
        FAIL(STATUS_UNSUPPORTED,
             "%s: %s: expected a member that is stored or deflated, as numpy.savez and "
             "savez_compressed write it, got ZIP method %u",
             zip->path, array->name, (unsigned)member->method);
    TRY(place_member(zip, member, npy));
    if (member->method == DEFLATED) TRY(unpack_member(zip, member, array->name, arena, npy));
    npy->path = zip->path;
    const int is_read = read_npy(npy, array);
    /* Objects under a name that --field does not give are no rewards. */
    if (!is_read && field == ROLLOUT_REWARD && rank > 0) return STATUS_OK;
    if (!is_read)
        FAIL(STATUS_INPUT,
             "%s: %s: expected an array of numbers in C order with up to three axes, little-endian "
             "(float16, float32, float64, integers, bool)",
             zip->path, array->name);
    array->handle = npy;
    array->read = read;
    ++*count;
    return STATUS_OK;
}

enum status rollout_npz_open(const char *path, const unsigned char *bytes, size_t length,
                             const struct rollout_naming *naming, struct arena *arena,
                             struct rollout_arrays **out) {
    struct zip zip = {.path = path, .bytes = bytes, .length = length};
    struct rollout_array *list;
    struct npy *npy;
    size_t count = 0;
    TRY(find_directory(&zip));
    TRY(arena_take(arena, zip.entries, sizeof *list, "arrays", &list));
    TRY(arena_take(arena, zip.entries, sizeof *npy, "arrays", &npy));
    for (uint64_t i = 0; i < zip.entries; i++) {
        struct member member = {0};
        TRY(next_member(&zip, &member));
        TRY(take_member(&zip, &member, naming, arena, &npy[count], &list[count], &count));
    }
    return rollout_arrays_set(path, naming, list, count, arena, out);
}
