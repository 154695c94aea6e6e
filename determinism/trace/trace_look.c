/* SPDX-License-Identifier: Apache-2.0
 * Words for types are numpy's, because those who write such files know them: '<f8' is f64,
 * little-endian. */
#include "determinism/trace/trace_look.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct word {
    char text[128];
};

static void add_line(struct checker *checker, char ***list, uint32_t *count, const char *line) {
    if (checker->status != STATUS_OK) return;
    checker->status = reader_grow(checker->reader, *count, sizeof **list, list);
    if (checker->status == STATUS_OK)
        checker->status = arena_text(checker->reader->arena, line, strlen(line), &(*list)[*count]);
    if (checker->status == STATUS_OK) ++*count;
}

/* Names come from a stranger's file, so nothing that a terminal obeys goes through. */
static void make_plain(char *line) {
    while (*line != '\0') {
        const size_t length = look_character(line);
        if (length == 0) *line = '?';
        line += length == 0 ? 1 : length;
    }
}

static void write_path(const struct checker *checker, const char *name, char *out, size_t room) {
    snprintf(out, room, "%s%s%s", checker->path,
             checker->path[0] == '\0' || name[0] == '\0' ? "" : "/", name);
}

void look_problem(struct checker *checker, const char *name, const char *format, ...) {
    char text[512], path[512], line[1100];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (checker->problem_count == FOREIGN_PROBLEMS) {
        checker->left_out++;
        return;
    }
    write_path(checker, name, path, sizeof path);
    snprintf(line, sizeof line, "%s: %s", path[0] == '\0' ? "/" : path, text);
    make_plain(line);
    add_line(checker, &checker->problems, &checker->problem_count, line);
}

void look_note(struct checker *checker, const char *name) {
    char path[512];
    if (checker->note_count == FOREIGN_PROBLEMS) return;
    write_path(checker, name, path, sizeof path);
    make_plain(path);
    add_line(checker, &checker->notes, &checker->note_count, path);
}

/* ---- words ---- */

static struct word type_word(hid_t type) {
    static const char *const names[] = {
        [H5T_TIME] = "a time",           [H5T_BITFIELD] = "bits",
        [H5T_OPAQUE] = "bytes",          [H5T_COMPOUND] = "a compound",
        [H5T_REFERENCE] = "a reference", [H5T_ENUM] = "an enum or bool",
        [H5T_VLEN] = "a list",           [H5T_ARRAY] = "an array"};
    struct word word;
    const H5T_class_t kind = H5Tget_class(type);
    const size_t size = H5Tget_size(type);
    if (kind == H5T_INTEGER || kind == H5T_FLOAT)
        snprintf(word.text, sizeof word.text, "'%c%c%zu'",
                 size == 1                            ? '|'
                 : H5Tget_order(type) == H5T_ORDER_BE ? '>'
                                                      : '<',
                 kind == H5T_FLOAT                   ? 'f'
                 : H5Tget_sign(type) == H5T_SGN_NONE ? 'u'
                                                     : 'i',
                 size);
    else if (kind == H5T_STRING && H5Tis_variable_str(type) > 0)
        snprintf(word.text, sizeof word.text, "str");
    else if (kind == H5T_STRING)
        snprintf(word.text, sizeof word.text, "'S%zu'", size);
    else
        snprintf(word.text, sizeof word.text, "%s",
                 kind >= 0 && (size_t)kind < COUNT_OF(names) && names[kind] != NULL
                     ? names[kind]
                     : "another type");
    return word;
}

static const char *const look_words[] = {"'<f8'", "'<i8'", "'<u4'", "'|u1'", "a text"};

static hid_t look_hdf5(enum look_type type) {
    if (type == LOOK_F64) return H5T_IEEE_F64LE;
    if (type == LOOK_I64) return H5T_STD_I64LE;
    return type == LOOK_U32 ? H5T_STD_U32LE : H5T_STD_U8LE;
}

static int type_is(hid_t type, enum look_type wanted) {
    if (wanted == LOOK_TEXT) return H5Tget_class(type) == H5T_STRING;
    return H5Tequal(type, look_hdf5(wanted)) > 0;
}

/* "[20, 3]", with "n" for any length, and "" for one value. */
static struct word shape_word(int rank, const hsize_t *shape, int any) {
    struct word word = {""};
    size_t used = 0;
    for (int axis = 0; axis < rank && used < sizeof word.text; axis++) {
        const char *const lead = axis == 0 ? " [" : ", ";
        used += (size_t)(any && shape[axis] == 0
                             ? snprintf(word.text + used, sizeof word.text - used, "%sn", lead)
                             : snprintf(word.text + used, sizeof word.text - used, "%s%llu", lead,
                                        (unsigned long long)shape[axis]));
    }
    if (rank > 0 && used < sizeof word.text)
        snprintf(word.text + used, sizeof word.text - used, "]");
    return word;
}

/* ---- objects ---- */

/* Tells whether the link is there and leads to an object of this file. */
static int look_link(struct checker *checker, hid_t where, const char *name, const char *what,
                     int required) {
    H5L_info_t info;
    const htri_t there = H5Lexists(where, name, H5P_DEFAULT);
    if (there > 0 && H5Lget_info(where, name, &info, H5P_DEFAULT) >= 0) {
        if (info.type == H5L_TYPE_HARD) return 1;
        look_problem(checker, name, "expected %s of this file, got %s", what,
                     hdf5_link_word(info.type));
        return 0;
    }
    if (required) look_problem(checker, name, "missing: expected %s", what);
    return 0;
}

static hid_t look_object(struct checker *checker, hid_t where, const char *name, H5I_type_t kind,
                         const char *what) {
    const hid_t object = H5Oopen(where, name, H5P_DEFAULT);
    if (object < 0) {
        look_problem(checker, name, "expected %s, got an object that HDF5 cannot open", what);
        return object;
    }
    if (H5Iget_type(object) == kind) return object;
    look_problem(checker, name, "expected %s, got a %s", what,
                 H5Iget_type(object) == H5I_GROUP     ? "group"
                 : H5Iget_type(object) == H5I_DATASET ? "dataset"
                                                      : "type");
    H5Oclose(object);
    return H5I_INVALID_HID;
}

int look_group(struct checker *checker, hid_t where, const char *name, int required,
               hid_t *out_group) {
    *out_group = H5I_INVALID_HID;
    if (!look_link(checker, where, name, "a group", required)) return 0;
    *out_group = look_object(checker, where, name, H5I_GROUP, "a group");
    return *out_group >= 0;
}

static int form_fits(hid_t type, hid_t space, const struct look_form *form, int rank,
                     const hsize_t *shape) {
    if (!type_is(type, form->type) || rank != form->rank) return 0;
    if (rank == 0 && H5Sget_simple_extent_type(space) != H5S_SCALAR) return 0;
    for (int axis = 0; axis < rank; axis++) {
        const int more = axis == 0 && form->grows && shape[0] > form->shape[0];
        if (form->shape[axis] != 0 && form->shape[axis] != shape[axis] && !more) return 0;
    }
    return 1;
}

/* Compares an attribute or a dataset with its form, and says how they differ. */
static int look_form(struct checker *checker, const char *name, const char *prefix, hid_t type,
                     hid_t space, const struct look_form *form, hsize_t *out_shape) {
    hsize_t shape[H5S_MAX_RANK] = {0};
    const int rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
    if (type < 0 || rank < 0 || (rank > 0 && H5Sget_simple_extent_dims(space, shape, NULL) < 0)) {
        look_problem(checker, name, "%sexpected a type and a shape, got what HDF5 cannot read",
                     prefix);
        return 0;
    }
    if (form_fits(type, space, form, rank, shape)) {
        memcpy(out_shape, shape, HDF5_MAX_RANK * sizeof *shape);
        return 1;
    }
    look_problem(checker, name, "%sexpected %s%s, got %s%s", prefix, look_words[form->type],
                 shape_word(form->rank, form->shape, 1).text, type_word(type).text,
                 H5Sget_simple_extent_type(space) == H5S_NULL ? " without a value"
                                                              : shape_word(rank, shape, 0).text);
    return 0;
}

static int look_storage(struct checker *checker, const char *name, hid_t dataset) {
    const hid_t list = H5Dget_create_plist(dataset);
    const H5D_layout_t layout = list < 0 ? H5D_LAYOUT_ERROR : H5Pget_layout(list);
    const int filters = list < 0 ? -1 : H5Pget_nfilters(list);
    const int external = list < 0 ? -1 : H5Pget_external_count(list);
    const char *got = NULL;
    if (layout != H5D_CONTIGUOUS && layout != H5D_CHUNKED) got = "compact or virtual storage";
    if (external != 0) got = "bytes in another file";
    if (filters != 0) got = "a filter (compression, shuffle, checksum)";
    if (list >= 0) H5Pclose(list);
    if (got != NULL) look_problem(checker, name, "expected its bytes as they are, got %s", got);
    return got == NULL;
}

int look_dataset(struct checker *checker, hid_t where, const char *name,
                 const struct look_form *form, hsize_t out_shape[HDF5_MAX_RANK]) {
    char what[64];
    snprintf(what, sizeof what, "a dataset %s",
             form->type == LOOK_TEXT ? "of texts" : look_words[form->type]);
    if (!look_link(checker, where, name, what, form->required)) return 0;
    const hid_t dataset = look_object(checker, where, name, H5I_DATASET, what);
    if (dataset < 0) return 0;
    const hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset);
    const int fits = look_form(checker, name, "", type, space, form, out_shape) &&
                     (form->rank == 0 || look_storage(checker, name, dataset));
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    H5Dclose(dataset);
    return fits;
}

int look_attribute(struct checker *checker, hid_t object, const char *name, enum look_type type,
                   int required) {
    const struct look_form form = {.type = type};
    hsize_t shape[HDF5_MAX_RANK];
    char prefix[128];
    snprintf(prefix, sizeof prefix, "attribute \"%s\": ", name);
    if (H5Aexists(object, name) <= 0) {
        if (required) look_problem(checker, "", "%smissing: expected %s", prefix, look_words[type]);
        return 0;
    }
    const hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    const hid_t stored = attribute < 0 ? attribute : H5Aget_type(attribute);
    const hid_t space = attribute < 0 ? attribute : H5Aget_space(attribute);
    const int fits = look_form(checker, "", prefix, stored, space, &form, shape);
    if (space >= 0) H5Sclose(space);
    if (stored >= 0) H5Tclose(stored);
    if (attribute >= 0) H5Aclose(attribute);
    return fits;
}
