/* SPDX-License-Identifier: Apache-2.0
 * The seals of a trace: digests over what no row's `check` covers, names, texts, axes,
 * configuration and results. docs/FOREIGN.md has the same in Python.
 *
 * One walk over the tree, by name, feeds all three digests, because the opening seal leaves out
 * what is written later, and the two closing ones differ in their word alone. Numbers go in as they
 * are stored, in parts of a MiB, so that no dataset is in memory as a whole. HDF5 protects its own
 * structures with checksums, attributes of datasets among them, which are therefore left out.
 *
 * Invariant: reader and writer walk with the same code. */
#include "determinism/trace/trace_seal.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"

#define MAX_DEPTH 8
#define OBJECT_BYTES 16 /* fewest bytes that one link or attribute takes in a file */
#define PIECE ((size_t)1 << 20)

enum part { PART_EARLY = 0, PART_LATE }; /* in all seals, or in the closing ones alone */
enum rows { ROWS_NONE = 0, ROWS_CHECKED, ROWS_STATES };

struct sealing {
    struct reader *reader;
    struct digest_stream streams[SEALS];
    struct digest_bytes_so_far item; /* what came of one item so far */
    struct arena kept;               /* of `bytes`, which outlive one dataset */
    unsigned char *bytes;            /* numbers on their way into it */
    size_t room;                     /* bytes of these */
};

static const char *const words[SEALS] = {"seal opening", "seal complete", "seal unfinished"};

static void begin_bytes(struct sealing *s, uint64_t length) {
    uint8_t bytes[sizeof length];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(length >> 8 * i);
    digest_sha256_add(&s->item, bytes, sizeof bytes);
}

static void add_bytes(struct sealing *s, const void *bytes, uint64_t length) {
    digest_sha256_add(&s->item, bytes, (size_t)length);
}

static void put(struct sealing *s, const void *bytes, uint64_t length) {
    begin_bytes(s, length);
    add_bytes(s, bytes, length);
}

/* What HDF5 cannot tell of an object is no answer: a seal over less would fit, or call a sound file
 * damaged. */
static enum status fail_look(const struct sealing *s, const char *path) {
    return hdf5_fail(STATUS_INPUT, s->reader->file.name, "look at \"%s\"", path);
}

static void put_text(struct sealing *s, const char *text) {
    put(s, text, strlen(text));
}

static void close_item(struct sealing *s, enum part part) {
    struct digest digest;
    digest_sha256_end(&s->item, &digest);
    digest_sha256_begin(&s->item);
    for (int i = part == PART_EARLY ? SEAL_OPENING : SEAL_COMPLETE; i < SEALS; i++)
        digest_stream_add(&s->streams[i], &digest);
}

/* ---- attributes of groups ---- */

static enum status add_number(struct sealing *s, hid_t attribute, hid_t type) {
    unsigned char bytes[16];
    const size_t size = H5Tget_size(type);
    if (size == 0 || (size <= sizeof bytes && H5Aread(attribute, type, bytes) < 0))
        return hdf5_fail(STATUS_INPUT, s->reader->file.name, "read an attribute");
    put(s, bytes, size <= sizeof bytes ? size : 0);
    return STATUS_OK;
}

static enum status add_attribute(struct sealing *s, hid_t group, const char *path, const char *name,
                                 hid_t attribute, hid_t type) {
    const H5T_class_t kind = H5Tget_class(type);
    const char *text;
    const htri_t variable = kind == H5T_STRING ? H5Tis_variable_str(type) : 0;
    if (kind == H5T_NO_CLASS || variable < 0) return fail_look(s, path);
    const int is_text = kind == H5T_STRING && (s->reader->file.foreign || !variable);
    if (!is_text && kind != H5T_INTEGER && kind != H5T_FLOAT) return STATUS_OK;
    TRY(reader_spend(s->reader, OBJECT_BYTES, 1, "a list of attributes"));
    put_text(s, "attribute");
    put_text(s, path);
    put_text(s, name);
    if (is_text) {
        TRY(reader_text(s->reader, group, name, &text));
        put_text(s, text);
    } else {
        TRY(add_number(s, attribute, type));
    }
    close_item(s, PART_EARLY);
    return STATUS_OK;
}

struct attribute_visit {
    struct sealing *s;
    const char *path;
    enum status status;
};

static herr_t visit_attribute(hid_t group, const char *name, const H5A_info_t *info, void *data) {
    struct attribute_visit *visit = (struct attribute_visit *)data;
    (void)info;
    const hid_t attribute = H5Aopen(group, name, H5P_DEFAULT);
    if (attribute < 0) return -1;
    const hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    if (type < 0 || space < 0) return -1;
    const H5S_class_t extent = H5Sget_simple_extent_type(space);
    if (extent == H5S_NO_CLASS) return -1;
    if (extent == H5S_SCALAR)
        visit->status = add_attribute(visit->s, group, visit->path, name, attribute, type);
    if (visit->status != STATUS_OK) return -1;
    H5Sclose(space);
    H5Tclose(type);
    return H5Aclose(attribute);
}

static enum status add_attributes(struct sealing *s, hid_t group, const char *path) {
    struct attribute_visit visit = {s, path, STATUS_OK};
    hsize_t next = 0;
    const herr_t bad =
        H5Aiterate2(group, H5_INDEX_NAME, H5_ITER_INC, &next, visit_attribute, &visit);
    TRY(visit.status);
    if (bad < 0)
        return hdf5_fail(STATUS_INPUT, s->reader->file.name, "list attributes of \"%s\"", path);
    return STATUS_OK;
}

/* ---- datasets ---- */

struct content {
    const char *path;
    hid_t dataset, type;
    int rank, grows;
    hsize_t shape[HDF5_MAX_RANK];
    uint64_t count; /* number of elements */
    size_t cell;    /* bytes of one */
};

/* Room for so many bytes, which stays for what comes behind them. */
static enum status take_room(struct sealing *s, uint64_t bytes, const char *path) {
    if (bytes <= s->room) return STATUS_OK;
    const size_t room = bytes < PIECE ? PIECE : (size_t)bytes;
    arena_close(&s->kept); /* what is there has gone in */
    s->room = 0;
    TRY(arena_take(&s->kept, room, 1, path, &s->bytes));
    s->room = room;
    return STATUS_OK;
}

/* Reads `size` cells from `from` on into room for them. Returns below 0 where HDF5 fails. */
static herr_t read_cells(const struct sealing *s, const struct content *c,
                         const hsize_t from[HDF5_MAX_RANK], const hsize_t size[HDF5_MAX_RANK]) {
    herr_t result = -1;
    if (c->rank == 0) return H5Dread(c->dataset, c->type, H5S_ALL, H5S_ALL, H5P_DEFAULT, s->bytes);
    const hid_t file = H5Dget_space(c->dataset), memory = H5Screate_simple(c->rank, size, NULL);
    if (file >= 0 && memory >= 0)
        result = H5Sselect_hyperslab(file, H5S_SELECT_SET, from, NULL, size, NULL);
    if (result >= 0) result = H5Dread(c->dataset, c->type, memory, file, H5P_DEFAULT, s->bytes);
    if (memory >= 0) H5Sclose(memory);
    if (file >= 0) H5Sclose(file);
    return result;
}

/* Adds rows first ... first + rows - 1, which are one item. A row that is longer than a piece goes
 * in by parts of its second axis. */
static enum status add_item(struct sealing *s, const struct content *c, uint64_t first,
                            uint64_t rows, uint64_t row_bytes) {
    const uint64_t across = c->rank > 1 ? c->shape[1] : 1, slice = row_bytes / across;
    uint64_t wide = across;
    if (row_bytes > PIECE) wide = slice >= PIECE ? 1 : PIECE / slice;
    put_text(s, "bytes");
    begin_bytes(s, rows * row_bytes);
    for (uint64_t at = 0; at < across; at += wide) {
        const hsize_t from[HDF5_MAX_RANK] = {first, at};
        hsize_t size[HDF5_MAX_RANK];
        const uint64_t count = across - at < wide ? across - at : wide;
        memcpy(size, c->shape, sizeof size);
        size[0] = rows;
        if (c->rank > 1) size[1] = count;
        TRY(take_room(s, rows * count * slice, c->path));
        if (read_cells(s, c, from, size) < 0)
            return hdf5_fail(STATUS_INPUT, s->reader->file.name, "read \"%s\"", c->path);
        add_bytes(s, s->bytes, rows * count * slice);
    }
    close_item(s, c->grows ? PART_LATE : PART_EARLY);
    return STATUS_OK;
}

static enum status add_rows(struct sealing *s, const struct content *c) {
    const uint64_t rows = c->rank == 0 ? 1 : c->shape[0];
    if (c->count == 0) return STATUS_OK;
    const uint64_t row_bytes = c->count / rows * c->cell;
    const uint64_t many = row_bytes >= PIECE ? 1 : PIECE / row_bytes;
    TRY(reader_spend(s->reader, c->count, c->cell, c->path));
    for (uint64_t row = 0; row < rows; row += many)
        TRY(add_item(s, c, row, rows - row < many ? rows - row : many, row_bytes));
    return STATUS_OK;
}

static enum status read_fixed(struct sealing *s, const struct content *c, const char **out) {
    char *cells, *text;
    TRY(reader_spend(s->reader, c->count, c->cell, c->path));
    TRY(arena_take(s->reader->arena, c->count, c->cell, c->path, &cells));
    if (H5Dread(c->dataset, c->type, H5S_ALL, H5S_ALL, H5P_DEFAULT, cells) < 0)
        return hdf5_fail(STATUS_INPUT, s->reader->file.name, "read \"%s\"", c->path);
    for (uint64_t i = 0; i < c->count; i++) {
        const char *const cell = cells + i * c->cell;
        TRY(arena_text(s->reader->arena, cell, strnlen(cell, c->cell), &text));
        out[i] = text;
    }
    return STATUS_OK;
}

static enum status add_texts(struct sealing *s, const struct content *c) {
    const char **texts;
    TRY(reader_spend(s->reader, c->count, 1, c->path));
    TRY(arena_take(s->reader->arena, c->count, sizeof *texts, c->path, &texts));
    const htri_t variable = H5Tis_variable_str(c->type);
    if (variable < 0) return fail_look(s, c->path);
    if (c->count > 0)
        TRY(variable ? reader_variable_texts(s->reader, c->dataset, c->path, c->count, texts)
                     : read_fixed(s, c, texts));
    put_text(s, "texts");
    for (uint64_t i = 0; i < c->count; i++)
        put_text(s, texts[i]);
    close_item(s, c->grows ? PART_LATE : PART_EARLY);
    return STATUS_OK;
}

/* Numbers as numpy writes them ("<f8"), "text", or "other" for what the seal passes over. */
static enum status word_of(const struct sealing *s, const struct content *c, char out[16]) {
    const H5T_class_t kind = H5Tget_class(c->type);
    const int small = c->rank <= HDF5_MAX_RANK;
    if (kind == H5T_NO_CLASS || c->cell == 0) return fail_look(s, c->path);
    snprintf(out, 16, "%s", small && kind == H5T_STRING ? "text" : "other");
    if (!small || (kind != H5T_INTEGER && kind != H5T_FLOAT)) return STATUS_OK;
    const H5T_order_t order = H5Tget_order(c->type);
    const H5T_sign_t sign = kind == H5T_FLOAT ? H5T_SGN_2 : H5Tget_sign(c->type);
    if (order == H5T_ORDER_ERROR || sign == H5T_SGN_ERROR) return fail_look(s, c->path);
    const char letter = kind == H5T_FLOAT ? 'f' : sign == H5T_SGN_NONE ? 'u' : 'i';
    snprintf(out, 16, "%c%c%zu",
             c->cell == 1            ? '|'
             : order == H5T_ORDER_BE ? '>'
                                     : '<',
             letter, c->cell);
    return STATUS_OK;
}

/* What is written before the first update: all that lies below runs, pairs and states and does not
 * grow. */
static int is_early(const struct content *c) {
    return !c->grows && (strncmp(c->path, "runs/", 5) == 0 || strncmp(c->path, "pairs/", 6) == 0 ||
                         strncmp(c->path, "snapshots/", 10) == 0);
}

static enum status add_content(struct sealing *s, struct content *c, enum rows rows) {
    char word[16];
    TRY(word_of(s, c, word));
    put_text(s, "dataset");
    put_text(s, c->path);
    put_text(s, word);
    close_item(s, PART_EARLY);
    if (strcmp(word, "other") == 0) return STATUS_OK;
    const int row_data = rows == ROWS_STATES || (rows == ROWS_CHECKED && c->grows);
    c->grows = !is_early(c); /* from here on: whether it belongs to the closing seals alone */
    put_text(s, "shape");
    for (int axis = 0; axis < c->rank; axis++) {
        unsigned char bytes[8];
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (unsigned char)(c->shape[axis] >> 8 * i);
        put(s, bytes, sizeof bytes);
    }
    close_item(s, c->grows ? PART_LATE : PART_EARLY);
    if (row_data) return STATUS_OK;
    TRY(reader_check_plain(s->reader, c->dataset, c->path));
    return H5Tget_class(c->type) == H5T_STRING ? add_texts(s, c) : add_rows(s, c);
}

static enum status add_dataset(struct sealing *s, hid_t dataset, const char *path, enum rows rows) {
    struct content c = {.path = path, .dataset = dataset, .count = 1};
    hsize_t limit[HDF5_MAX_RANK] = {0};
    const hid_t space = H5Dget_space(dataset);
    c.type = H5Dget_type(dataset);
    c.rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
    if (c.type < 0 || c.rank < 0 ||
        (c.rank <= HDF5_MAX_RANK && H5Sget_simple_extent_dims(space, c.shape, limit) < 0))
        return hdf5_fail(STATUS_INPUT, s->reader->file.name, "read \"%s\"", path);
    c.grows = c.rank > 0 && limit[0] == H5S_UNLIMITED;
    c.cell = H5Tget_size(c.type);
    for (int axis = 0; axis < c.rank && axis < HDF5_MAX_RANK; axis++) {
        if (c.shape[axis] != 0 && c.count > UINT64_MAX / 64 / c.shape[axis])
            FAIL(STATUS_INPUT, "%s: damaged: \"%s\" is too large", s->reader->file.name, path);
        c.count *= c.shape[axis];
    }
    struct arena scratch = ARENA_EMPTY, *const outer = s->reader->arena;
    s->reader->arena = &scratch;
    const enum status status = add_content(s, &c, rows);
    s->reader->arena = outer;
    arena_close(&scratch);
    TRY(status);
    H5Tclose(c.type);
    return H5Sclose(space) < 0 ? hdf5_fail(STATUS_INPUT, s->reader->file.name, "read \"%s\"", path)
                               : STATUS_OK;
}

/* ---- the tree ---- */

struct link {
    char *name;
    H5L_type_t type;
    size_t bytes; /* of a soft link's target */
};

struct link_list {
    struct sealing *s;
    struct link *links;
    uint32_t count;
    enum status status;
};

/* Hard links are walked and soft ones sealed with their target. No reader follows others. */
static enum status keep_link(struct link_list *list, const char *name, const H5L_info_t *info) {
    struct reader *reader = list->s->reader;
    struct link link = {.type = info->type};
    if (info->type != H5L_TYPE_HARD && info->type != H5L_TYPE_SOFT)
        FAIL(STATUS_INPUT, "%s: \"%s\": expected an object of this file, got %s", reader->file.name,
             name, hdf5_link_word(info->type));
    TRY(reader_spend(reader, OBJECT_BYTES, 1, "a list of links"));
    TRY(arena_text(reader->arena, name, strlen(name), &link.name));
    if (info->type == H5L_TYPE_SOFT) link.bytes = info->u.val_size;
    TRY(reader_grow(reader, list->count, sizeof link, &list->links));
    list->links[list->count++] = link;
    return STATUS_OK;
}

static herr_t visit_link(hid_t group, const char *name, const H5L_info_t *info, void *data) {
    struct link_list *list = (struct link_list *)data;
    (void)group;
    list->status = keep_link(list, name, info);
    return list->status == STATUS_OK ? 0 : -1;
}

static enum status add_link(struct sealing *s, hid_t group, const struct link *link,
                            const char *path) {
    char *target;
    TRY(reader_spend(s->reader, link->bytes, 1, path));
    TRY(arena_take(s->reader->arena, link->bytes + 1, 1, "a link", &target));
    if (H5Lget_val(group, link->name, target, link->bytes, H5P_DEFAULT) < 0)
        return hdf5_fail(STATUS_INPUT, s->reader->file.name, "read link \"%s\"", path);
    put_text(s, "link");
    put_text(s, path);
    put_text(s, target);
    close_item(s, PART_EARLY);
    return STATUS_OK;
}

static enum status add_group(struct sealing *s, hid_t group, const char *path, enum rows rows,
                             int depth);

static enum status add_object(struct sealing *s, hid_t group, const struct link *link,
                              const char *path, enum rows rows, int depth) {
    if (link->type != H5L_TYPE_HARD) return add_link(s, group, link, path);
    const hid_t object = H5Oopen(group, link->name, H5P_DEFAULT);
    if (object < 0) return hdf5_fail(STATUS_INPUT, s->reader->file.name, "read \"%s\"", path);
    const H5I_type_t kind = H5Iget_type(object);
    enum status status = kind == H5I_BADID ? fail_look(s, path) : STATUS_OK;
    if (kind == H5I_GROUP) status = add_group(s, object, path, rows, depth + 1);
    if (kind == H5I_DATASET) status = add_dataset(s, object, path, rows);
    H5Oclose(object);
    return status;
}

/* Rows that carry a `check`, and stored states, which carry a digest, are not hashed again. */
static enum status rows_below(const struct sealing *s, hid_t group, const char *path,
                              enum rows above, enum rows *out) {
    const size_t length = strlen(path);
    *out = above != ROWS_NONE ? above : strcmp(path, "snapshots") == 0 ? ROWS_STATES : ROWS_NONE;
    if (*out != ROWS_NONE || length <= 6 || strcmp(path + length - 6, "/steps") != 0)
        return STATUS_OK;
    const htri_t has_check = H5Lexists(group, "check", H5P_DEFAULT);
    if (has_check < 0) return fail_look(s, path);
    if (has_check) *out = ROWS_CHECKED;
    return STATUS_OK;
}

static enum status add_group(struct sealing *s, hid_t group, const char *path, enum rows rows,
                             int depth) {
    struct link_list list = {.s = s};
    hsize_t next = 0;
    if (depth > MAX_DEPTH)
        FAIL(STATUS_INPUT, "%s: damaged, or not a trace: groups nest deeper than %d",
             s->reader->file.name, MAX_DEPTH);
    put_text(s, "group");
    put_text(s, path);
    close_item(s, PART_EARLY);
    TRY(add_attributes(s, group, path));
    const herr_t bad = H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, &next, visit_link, &list);
    TRY(list.status);
    if (bad < 0) return hdf5_fail(STATUS_INPUT, s->reader->file.name, "list \"%s\"", path);
    enum rows below;
    TRY(rows_below(s, group, path, rows, &below));
    for (uint32_t i = 0; i < list.count; i++) {
        const char *const name = list.links[i].name;
        char *child;
        if (path[0] == '\0' && (strcmp(name, "complete") == 0 || strcmp(name, SEAL_NAME) == 0))
            continue;
        TRY(arena_format(s->reader->arena, &child, "%s%s%s", path, path[0] == '\0' ? "" : "/",
                         name));
        TRY(add_object(s, group, &list.links[i], child, below, depth));
    }
    return STATUS_OK;
}

static enum status walk(struct sealing *s) {
    hid_t root;
    TRY(reader_group(s->reader, s->reader->file.id, "/", &root));
    TRY(add_group(s, root, "", ROWS_NONE, 0));
    H5Gclose(root);
    return STATUS_OK;
}

enum status seal_compute(const struct reader *reader, struct digest out[SEALS]) {
    struct arena arena = ARENA_EMPTY;
    struct reader own = *reader;
    struct sealing s = {.reader = &own};
    own.arena = &arena;
    own.spent = 0;
    digest_sha256_begin(&s.item);
    for (int i = 0; i < SEALS; i++)
        digest_stream_init(&s.streams[i], words[i]);
    const enum status status = walk(&s);
    for (int i = 0; i < SEALS; i++)
        digest_stream_close(&s.streams[i], &out[i]);
    arena_close(&s.kept);
    arena_close(&arena);
    return status;
}

/* ---- reading ---- */

static int is_zero(const struct digest *digest) {
    static const struct digest zero = {{0}};
    return digest_compare(digest, &zero) == 0;
}

static enum status read_stored(struct reader *reader, struct digest out[2]) {
    const struct reader_form form = {.type = H5T_STD_U8LE, .rank = 1, .shape = {SEAL_BYTES}};
    hsize_t shape[HDF5_MAX_RANK] = {0};
    hid_t dataset;
    memset(out, 0, 2 * sizeof *out);
    if (!hdf5_may_have(reader->file.id, SEAL_NAME)) return STATUS_OK;
    TRY(reader_dataset(reader, reader->file.id, SEAL_NAME, &form, shape, &dataset));
    TRY(reader_check_place(reader, dataset, SEAL_NAME));
    if (H5Dread(dataset, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) < 0)
        return hdf5_fail(STATUS_INPUT, reader->file.name, "read \"%s\"", SEAL_NAME);
    H5Dclose(dataset);
    return STATUS_OK;
}

static enum status fail_broken(const struct reader *reader, const char *what) {
    FAIL(STATUS_INPUT,
         "%s: damaged: %s are not those that were sealed (docs/TRACE.md): something changed the "
         "file after it was written",
         reader->file.name, what);
}

/* A finished trace has both seals. A live one, and that of a killed run, has the first. Its closing
 * one may be there although `complete` was not yet 1 when this reader looked: then it covers
 * results and rows that came after the reader had begun, and it says nothing about what was read.
 * In a file that was closed, a closing seal that fits says that `complete` was 1. */
static enum status judge(const struct reader *reader, const struct digest stored[2],
                         const struct digest made[SEALS], struct trace_image *image) {
    if (!is_zero(&stored[0]) && digest_compare(&stored[0], &made[SEAL_OPENING]) != 0)
        return fail_broken(reader, "names, texts, axes or configurations");
    image->seal = TRACE_SEAL_BEGUN;
    if (reader->live && !image->complete) return STATUS_OK;
    if (is_zero(&stored[1])) return image->complete ? fail_broken(reader, "results") : STATUS_OK;
    if (digest_compare(&stored[1], &made[SEAL_COMPLETE]) == 0) {
        image->seal = TRACE_SEAL_WHOLE;
        image->complete = 1;
        return STATUS_OK;
    }
    if (image->complete || digest_compare(&stored[1], &made[SEAL_UNFINISHED]) != 0)
        return fail_broken(reader, "results");
    image->seal = TRACE_SEAL_UNFINISHED;
    return STATUS_OK;
}

enum status seal_check(struct reader *reader, int demanded, struct trace_image *image) {
    struct digest stored[2], made[SEALS];
    TRY(read_stored(reader, stored));
    image->seal = TRACE_SEAL_NONE;
    if (demanded && is_zero(&stored[0])) return fail_broken(reader, "its seals");
    if (is_zero(&stored[0]) && is_zero(&stored[1])) return STATUS_OK;
    TRY(seal_compute(reader, made));
    return judge(reader, stored, made, image);
}

const char *trace_seal_word(enum trace_seal seal) {
    static const char *const names[] = {
        [TRACE_SEAL_NONE] = "none",
        [TRACE_SEAL_BEGUN] = "opening",
        [TRACE_SEAL_UNFINISHED] = "unfinished",
        [TRACE_SEAL_WHOLE] = "whole",
    };
    return names[seal];
}
