/* SPDX-License-Identifier: Apache-2.0
 * Thin wrappers over the HDF5 calls that create things. Every creation list switches object times
 * off and fixes the order of links and attributes, so equal input gives equal bytes. */
#include "determinism/trace/hdf5_tools.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <hdf5_hl.h>

#include "base/arena.h"

/* A kill can cut a write at a page boundary. What a run rewrites in place (object headers of about
 * 400 bytes, index headers) starts at a multiple of this, so no page boundary lies inside it. */
#define ALIGNMENT 512

struct reason {
    char text[256];
    int from_system;
};

/* Keeps the best reason while walking HDF5's error stack. The library puts errno into a
 * description: "..., errno = 28, error message = 'No space left on device', ...". The first such
 * text wins; without one the innermost description does. */
static herr_t keep_reason(unsigned index, const H5E_error2_t *entry, void *data) {
    struct reason *reason = (struct reason *)data;
    (void)index;
    if (reason->from_system || entry->desc == NULL) return 0;
    const char *mark = "error message = '";
    const char *system = strstr(entry->desc, mark);
    const char *text = system == NULL ? entry->desc : system + strlen(mark);
    const size_t length = system == NULL ? strlen(text) : strcspn(text, "'");
    snprintf(reason->text, sizeof reason->text, "%.*s", (int)length, text);
    reason->from_system = system != NULL;
    return 0;
}

int hdf5_is_locked(void) {
    struct reason reason = {"", 0};
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_reason, &reason);
    return reason.from_system && strcmp(reason.text, strerror(EAGAIN)) == 0;
}

int hdf5_has_no_locks(void) {
    static const int wanting[] = {ENOLCK, EOPNOTSUPP, 524}; /* 524: ENOTSUPP of Linux */
    struct reason reason = {"", 0};
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_reason, &reason);
    for (size_t i = 0; i < sizeof wanting / sizeof *wanting && reason.from_system; i++)
        if (strcmp(reason.text, strerror(wanting[i])) == 0) return 1;
    return 0;
}

herr_t hdf5_lock_none(hid_t list) {
#if H5_VERSION_GE(1, 10, 7)
    return H5Pset_file_locking(list, 0, 1);
#else
    (void)list;
    return -1;
#endif
}

enum status hdf5_fail(enum status code, const char *file_name, const char *format, ...) {
    struct reason reason = {"no reason given by HDF5", 0};
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_reason, &reason);
    char action[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(action, sizeof action, format, arguments);
    va_end(arguments);
    return status_fail(code, "%s: cannot %s: %s", file_name, action, reason.text);
}

enum status hdf5_access_list(const char *file_name, hid_t *out_list) {
    /* At exit HDF5 would close files that are still open; version 1.10 crashes in that when the
     * disk is full, so a trace whose write failed is left open on purpose (trace_write.c). */
    H5dont_atexit();
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    const hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    if (list < 0) return hdf5_fail(STATUS_IO, file_name, "start HDF5");
    herr_t bad = H5Pset_libver_bounds(list, H5F_LIBVER_V110, H5F_LIBVER_V110);
    if (bad >= 0) bad = H5Pset_fclose_degree(list, H5F_CLOSE_STRONG);
    if (bad >= 0) bad = H5Pset_alignment(list, 1, ALIGNMENT);
#if H5_VERSION_GE(1, 10, 7)
    if (bad >= 0) bad = H5Pset_file_locking(list, 1, 1); /* hdf5_has_no_locks: the others */
#endif
    *out_list = list;
    if (bad < 0) {
        const enum status status = hdf5_fail(STATUS_IO, file_name, "set up HDF5");
        H5Pclose(list);
        return status;
    }
    return STATUS_OK;
}

static herr_t set_group_order(hid_t list) {
    const unsigned order = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
    if (H5Pset_obj_track_times(list, 0) < 0) return -1;
    if (H5Pset_link_creation_order(list, order) < 0) return -1;
    return H5Pset_attr_creation_order(list, order);
}

hid_t hdf5_file_type(enum layout_kind kind) {
    if (kind == KIND_REAL) return H5T_IEEE_F64LE;
    return kind == KIND_INTEGER ? H5T_STD_I64LE : H5T_STD_U8LE;
}

hid_t hdf5_memory_type(enum layout_kind kind) {
    if (kind == KIND_REAL) return H5T_NATIVE_DOUBLE;
    return kind == KIND_INTEGER ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT8;
}

static hid_t create_group(hid_t where, const char *name) {
    const hid_t list = H5Pcreate(H5P_GROUP_CREATE);
    if (list < 0) return -1;
    hid_t group = -1;
    if (set_group_order(list) >= 0) group = H5Gcreate2(where, name, H5P_DEFAULT, list, H5P_DEFAULT);
    if (group >= 0) H5Pclose(list); /* a failed call must stay the last one, for its reason */
    return group;
}

static hid_t enter_group(hid_t where, const char *name) {
    const htri_t there = H5Lexists(where, name, H5P_DEFAULT);
    if (there < 0) return -1;
    return there ? H5Gopen2(where, name, H5P_DEFAULT) : create_group(where, name);
}

enum status hdf5_open_group(const struct hdf5_file *file, const char *path, hid_t *out_group) {
    hid_t group = H5Gopen2(file->id, "/", H5P_DEFAULT);
    const char *rest = path;
    while (group >= 0 && *rest != '\0') {
        char name[256];
        const size_t length = strcspn(rest, "/");
        if (length == 0 || length >= sizeof name) {
            H5Gclose(group);
            FAIL(STATUS_INTERNAL, "%s: \"%s\" is not a group path", file->name, path);
        }
        memcpy(name, rest, length);
        name[length] = '\0';
        const hid_t next = enter_group(group, name);
        if (next >= 0) H5Gclose(group);
        group = next;
        rest += length + (rest[length] == '/' ? 1 : 0);
    }
    if (group < 0) return hdf5_fail(STATUS_IO, file->name, "create group \"%s\"", path);
    *out_group = group;
    return STATUS_OK;
}

enum status hdf5_close(const struct hdf5_file *file, hid_t object) {
    if (H5Oclose(object) < 0) return hdf5_fail(STATUS_IO, file->name, "write what was created");
    return STATUS_OK;
}

static herr_t write_attribute(hid_t object, const char *name, hid_t type, const void *value) {
    const hid_t space = H5Screate(H5S_SCALAR);
    const hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    if (attribute < 0 || H5Awrite(attribute, type, value) < 0) return -1;
    if (H5Aclose(attribute) < 0) return -1;
    return H5Sclose(space);
}

/* The type of a text: fixed length, zero padded, UTF-8; an empty text is one zero byte. */
static hid_t text_type(size_t length) {
    const hid_t type = H5Tcopy(H5T_C_S1);
    if (type < 0 || H5Tset_size(type, length == 0 ? 1 : length) < 0) return -1;
    if (H5Tset_strpad(type, H5T_STR_NULLPAD) < 0) return -1;
    return H5Tset_cset(type, H5T_CSET_UTF8) < 0 ? -1 : type;
}

enum status hdf5_put_text(const struct hdf5_file *file, hid_t object, const char *name,
                          const char *text) {
    const hid_t type = text_type(file->foreign ? H5T_VARIABLE : strlen(text));
    const void *const value = file->foreign ? (const void *)&text : text;
    if (type < 0 || write_attribute(object, name, type, value) < 0)
        return hdf5_fail(STATUS_IO, file->name, "write attribute \"%s\"", name);
    H5Tclose(type);
    return STATUS_OK;
}

enum status hdf5_put_value(const struct hdf5_file *file, hid_t object, const char *name, hid_t type,
                           const void *value) {
    if (write_attribute(object, name, type, value) < 0)
        return hdf5_fail(STATUS_IO, file->name, "write attribute \"%s\"", name);
    return STATUS_OK;
}

static hid_t creation_list(const struct hdf5_form *form) {
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    if (list < 0 || H5Pset_obj_track_times(list, 0) < 0) return -1;
    if (form->fill != NULL && H5Pset_fill_value(list, form->type, form->fill) < 0) return -1;
    if (form->chunk_rows == 0) {
        if (H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY) < 0) return -1;
        return list;
    }
    hsize_t chunk[HDF5_MAX_RANK] = {form->chunk_rows, 0, 0};
    for (int axis = 1; axis < form->rank; axis++)
        chunk[axis] = form->shape[axis];
    if (form->chunk_columns != 0) chunk[1] = form->chunk_columns;
    return H5Pset_chunk(list, form->rank, chunk) < 0 ? -1 : list;
}

static hid_t form_space(const struct hdf5_form *form) {
    if (form->rank == 0) return H5Screate(H5S_SCALAR);
    hsize_t limit[HDF5_MAX_RANK];
    memcpy(limit, form->shape, sizeof limit);
    if (form->chunk_rows != 0) limit[0] = H5S_UNLIMITED;
    return H5Screate_simple(form->rank, form->shape, limit);
}

/* Is shown the beginning of a path up to one of its slashes, or with `is_last` the whole of it.
 * What it returns ends the walk if it is not 0. */
typedef int (*part_looker)(hid_t where, const char *part, int is_last, void *out);

/* Shows PATH from its beginning up to each slash, then the whole of it, to `look`: "a", "a/b" and
 * "a/b/c" of "a/b/c". HDF5's queries of a link fail where a group before it is absent, and follow
 * links on the way, so each is asked for in turn. Returns 1 as soon as `look` does not return 0, 0
 * where it never does, and -1 where PATH is longer than any name that twinstep gives. */
static int for_parts(hid_t where, const char *path, part_looker look, void *out) {
    char part[512];
    for (const char *slash = strchr(path, '/');; slash = strchr(slash + 1, '/')) {
        const size_t length = slash == NULL ? strlen(path) : (size_t)(slash - path);
        if (length >= sizeof part) return -1;
        memcpy(part, path, length);
        part[length] = '\0';
        if (length > 0 && look(where, part, slash == NULL, out)) return 1;
        if (slash == NULL) return 0;
    }
}

static int note_kind(hid_t where, const char *part, int is_last, void *out) {
    H5L_type_t *const kind = (H5L_type_t *)out;
    H5L_info_t info;
    (void)is_last;
    *kind = H5Lget_info(where, part, &info, H5P_DEFAULT) < 0 ? H5L_TYPE_ERROR : info.type;
    return *kind != H5L_TYPE_HARD;
}

H5L_type_t hdf5_way(hid_t where, const char *path) {
    H5L_type_t kind = H5L_TYPE_HARD;
    (void)for_parts(where, path, note_kind, &kind);
    return kind;
}

const char *hdf5_link_word(H5L_type_t type) {
    if (type == H5L_TYPE_SOFT) return "a soft link";
    return type == H5L_TYPE_EXTERNAL ? "an external link" : "a user's link";
}

/* Writes whether the link is there. One of which HDF5 cannot tell counts as there: whoever opens it
 * is told why. */
static int note_presence(hid_t where, const char *part, int is_last, void *out) {
    H5L_type_t kind;
    int *const there = (int *)out;
    *there = H5Lexists(where, part, H5P_DEFAULT) != 0;
    /* asking for what lies behind a link of another kind would follow it */
    return !*there || (!is_last && note_kind(where, part, 0, &kind));
}

int hdf5_may_have(hid_t where, const char *path) {
    int there = 0;
    return for_parts(where, path, note_presence, &there) >= 0 && there;
}

int hdf5_may_have_attribute(hid_t object, const char *name) {
    return H5Aexists(object, name) != 0;
}

const char *hdf5_last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

enum status hdf5_create(const struct hdf5_file *file, hid_t where, const struct hdf5_form *form,
                        hid_t *out_dataset) {
    const hid_t list = creation_list(form);
    const hid_t space = list < 0 ? -1 : form_space(form);
    const hid_t dataset = space < 0 ? -1
                                    : H5Dcreate2(where, form->name, form->type, space, H5P_DEFAULT,
                                                 list, H5P_DEFAULT);
    if (dataset < 0) return hdf5_fail(STATUS_IO, file->name, "create dataset \"%s\"", form->name);
    H5Sclose(space);
    H5Pclose(list);
    *out_dataset = dataset;
    if (form->units != NULL) TRY(hdf5_put_text(file, dataset, "units", form->units));
    if (form->long_name != NULL) TRY(hdf5_put_text(file, dataset, "long_name", form->long_name));
    if (form->scale != NULL && H5DSset_scale(dataset, form->scale) < 0)
        return hdf5_fail(STATUS_IO, file->name, "make \"%s\" a dimension scale", form->scale);
    return form->axes == NULL ? STATUS_OK : hdf5_attach(file, dataset, form->rank, form->axes);
}

static size_t longest(const char *const *texts, uint32_t count) {
    size_t most = 1;
    for (uint32_t i = 0; i < count; i++)
        if (strlen(texts[i]) > most) most = strlen(texts[i]);
    return most;
}

static enum status write_names(const struct hdf5_file *file, hid_t dataset, hid_t type,
                               const char *const *texts, uint32_t count) {
    struct arena arena = ARENA_EMPTY;
    const size_t cell = H5Tget_size(type);
    char *cells;
    enum status status = arena_take(&arena, count, cell, "names", &cells);
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++)
        memcpy(cells + i * cell, texts[i], strlen(texts[i]));
    if (status == STATUS_OK && H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, cells) < 0)
        status = hdf5_fail(STATUS_IO, file->name, "write names");
    arena_close(&arena);
    return status;
}

enum status hdf5_put_names(const struct hdf5_file *file, hid_t where, const char *name,
                           const char *long_name, const char *const *texts, uint32_t count,
                           const hid_t *axis, hid_t *out_dataset) {
    const hid_t type = text_type(longest(texts, count));
    if (type < 0) return hdf5_fail(STATUS_IO, file->name, "make the type of \"%s\"", name);
    const struct hdf5_form form = {.name = name,
                                   .type = type,
                                   .rank = 1,
                                   .shape = {count, 1, 1},
                                   .units = "1",
                                   .long_name = long_name,
                                   .scale = axis == NULL ? hdf5_last_part(name) : NULL,
                                   .axes = axis};
    enum status status = hdf5_create(file, where, &form, out_dataset);
    if (status == STATUS_OK) status = write_names(file, *out_dataset, type, texts, count);
    H5Tclose(type);
    return status;
}
