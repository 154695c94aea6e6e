/* SPDX-License-Identifier: Apache-2.0
 * Walks a trace's tree for what the experiment chose to put in: attributes of groups, arrays and
 * texts. The attributes and steps of runs and pairs are left to trace_read.c. The walk is bounded
 * in depth and, through reader_spend, by the file's length. */
#include "determinism/trace/hdf5_reader.h"

#include <string.h>

/* Groups of a trace nest four deep; the limit keeps a damaged file from exhausting the stack. */
#define MAX_DEPTH 8
#define OBJECT_BYTES 32 /* fewest bytes that one object takes in a file */

static int is_one_of(const char *name, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0) return 1;
    return 0;
}

/* Whether trace_create writes the attribute itself. */
static int is_reserved(const struct reader *reader, const char *path, const char *name) {
    static const char *const root[] = {"twinstep_trace", "Conventions", "NX_class", "default"};
    static const char *const foreign[] = {"kind", "writer", "writer_version", "digest",
                                          "rank", "world",  "causes"};
    static const char *const run[] = {"arm",           "replicate", "mask",     "first_step",
                                      "configuration", "groups",    "NX_class", "default"};
    static const char *const pair[] = {"a", "b", "NX_class", "default"};
    if (reader->file.foreign && (path[0] == '\0' || strncmp(path, "runs/", 5) == 0) &&
        is_one_of(name, foreign, COUNT_OF(foreign)))
        return 1;
    if (path[0] == '\0') return is_one_of(name, root, COUNT_OF(root));
    if (strncmp(path, "runs/", 5) == 0) return is_one_of(name, run, COUNT_OF(run));
    if (strncmp(path, "pairs/", 6) == 0) return is_one_of(name, pair, COUNT_OF(pair));
    return 0;
}

/* Whether another module reads this part of the tree. */
static int is_elsewhere(const char *path, const char *name) {
    static const char *const root[] = {"arms", "complete", "seal", "snapshots"};
    if (path[0] == '\0') return is_one_of(name, root, COUNT_OF(root));
    const int entry = strncmp(path, "runs/", 5) == 0 || strncmp(path, "pairs/", 6) == 0;
    return entry && strcmp(name, "steps") == 0;
}

struct attribute_walk {
    struct reader *reader;
    struct trace_image *image;
    const char *path;
    enum status status;
};

/* Texts that verbs print inside of a line. Others may hold lines: a path has a line end, where its
 * owner likes, and lists have one item in each. */
static int is_inside_line(const char *path, const char *name) {
    static const char *const of_root[] = {"name", "baseline", "test", "kind"};
    for (size_t i = 0; i < COUNT_OF(of_root); i++)
        if (path[0] == '\0' && strcmp(name, of_root[i]) == 0) return 1;
    const size_t known = strlen("factor_");
    return strcmp(path, "attribution") == 0 && strncmp(name, "factor_", known) == 0 &&
           strspn(name + known, "0123456789") == strlen(name + known);
}

static enum status keep_attribute(struct attribute_walk *walk, hid_t group, const char *name) {
    struct trace_image *image = walk->image;
    struct trace_attribute found = {.path = walk->path};
    char *text;
    TRY(reader_text(walk->reader, group, name, &found.text));
    if (is_inside_line(walk->path, name)) TRY(reader_check_name(walk->reader, name, found.text));
    TRY(arena_text(walk->reader->arena, name, strlen(name), &text));
    found.name = text;
    TRY(reader_grow(walk->reader, image->attribute_count, sizeof found, &image->attributes));
    image->attributes[image->attribute_count++] = found;
    return STATUS_OK;
}

static int is_text_attribute(const struct reader *reader, hid_t group, const char *name) {
    const hid_t attribute = H5Aopen(group, name, H5P_DEFAULT);
    const hid_t type = attribute < 0 ? -1 : H5Aget_type(attribute);
    const hid_t space = attribute < 0 ? -1 : H5Aget_space(attribute);
    const int unknown = type < 0 || space < 0; /* reading it says why */
    const int text =
        unknown || (H5Tget_class(type) == H5T_STRING &&
                    (reader->file.foreign ? H5Sget_simple_extent_type(space) == H5S_SCALAR
                                          : H5Tis_variable_str(type) == 0));
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    if (attribute >= 0) H5Aclose(attribute);
    return text;
}

static herr_t visit_attribute(hid_t group, const char *name, const H5A_info_t *info, void *data) {
    struct attribute_walk *walk = (struct attribute_walk *)data;
    (void)info;
    if (is_reserved(walk->reader, walk->path, name) ||
        !is_text_attribute(walk->reader, group, name))
        return 0;
    walk->status = keep_attribute(walk, group, name);
    return walk->status == STATUS_OK ? 0 : -1;
}

static enum status read_attributes(struct reader *reader, hid_t group, const char *path,
                                   struct trace_image *image) {
    struct attribute_walk walk = {reader, image, path, STATUS_OK};
    hsize_t next = 0;
    const herr_t bad = H5Aiterate2(group, reader_order(reader, group, 1), H5_ITER_INC, &next,
                                   visit_attribute, &walk);
    TRY(walk.status);
    if (bad < 0)
        return hdf5_fail(STATUS_INPUT, reader->file.name, "list attributes of \"%s\"", path);
    return STATUS_OK;
}

enum content { CONTENT_OTHER = 0, CONTENT_ARRAY, CONTENT_TEXT, CONTENT_UNKNOWN };

/* A fixed f64 dataset of rank 1 or 2 is an array; a growing byte dataset of rank 1 is a text. */
static enum content classify(hid_t dataset) {
    enum content content = CONTENT_OTHER;
    hsize_t shape[2] = {0};
    hsize_t limit[2] = {0};
    const hid_t type = H5Dget_type(dataset);
    const hid_t space = H5Dget_space(dataset);
    const int rank = space < 0 ? 0 : H5Sget_simple_extent_ndims(space);
    if (type >= 0 && (rank == 1 || rank == 2) &&
        H5Sget_simple_extent_dims(space, shape, limit) == rank) {
        const int fixed = memcmp(shape, limit, sizeof shape) == 0;
        if (fixed && H5Tequal(type, H5T_IEEE_F64LE) > 0) content = CONTENT_ARRAY;
        if (!fixed && rank == 1 && H5Tequal(type, H5T_STD_U8LE) > 0) content = CONTENT_TEXT;
    }
    if (type < 0 || space < 0) content = CONTENT_UNKNOWN;
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    return content;
}

static enum status fill_array(struct reader *reader, hid_t dataset, struct trace_array *array) {
    TRY(reader_text(reader, dataset, "units", &array->plan.units));
    TRY(reader_text(reader, dataset, "long_name", &array->plan.long_name));
    const uint64_t *shape = array->plan.shape;
    const uint64_t columns = array->plan.rank == 2 ? shape[1] : 1;
    if (columns != 0 && shape[0] > UINT64_MAX / 8 / columns)
        FAIL(STATUS_INPUT, "%s: damaged: \"%s\" is too large", reader->file.name, array->plan.path);
    double *values;
    TRY(reader_check_place(reader, dataset, array->plan.path));
    TRY(reader_spend(reader, shape[0] * columns, sizeof *values, array->plan.path));
    TRY(arena_take(reader->arena, shape[0] * columns, sizeof *values, "array", &values));
    array->values = values;
    if (H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
        return hdf5_fail(STATUS_INPUT, reader->file.name, "read \"%s\"", array->plan.path);
    return STATUS_OK;
}

static enum status read_array(struct reader *reader, hid_t where, const char *name,
                              const char *path, struct trace_image *image) {
    struct trace_array array = {.plan = {.path = path}};
    hsize_t shape[HDF5_MAX_RANK] = {0};
    struct reader_form form = {.type = H5T_IEEE_F64LE, .rank = 1, .shape = {0}};
    hid_t dataset;
    if (reader_dataset(reader, where, name, &form, shape, &dataset) != STATUS_OK) {
        form.rank = 2;
        TRY(reader_dataset(reader, where, name, &form, shape, &dataset));
    }
    array.plan.rank = (uint32_t)form.rank;
    array.plan.shape[0] = shape[0];
    array.plan.shape[1] = shape[1];
    TRY(fill_array(reader, dataset, &array));
    H5Dclose(dataset);
    TRY(reader_grow(reader, image->array_count, sizeof array, &image->arrays));
    image->arrays[image->array_count++] = array;
    return STATUS_OK;
}

static enum status read_text(struct reader *reader, hid_t where, const char *name, const char *path,
                             struct trace_image *image) {
    const struct reader_form form = {.type = H5T_STD_U8LE, .rank = 1, .shape = {0}};
    hsize_t shape[HDF5_MAX_RANK] = {0};
    hid_t dataset;
    TRY(reader_dataset(reader, where, name, &form, shape, &dataset));
    char *bytes;
    TRY(reader_spend(reader, shape[0], 1, path));
    TRY(arena_take(reader->arena, shape[0] + 1, 1, "text", &bytes));
    if (shape[0] != 0 &&
        H5Dread(dataset, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes) < 0)
        return hdf5_fail(STATUS_INPUT, reader->file.name, "read \"%s\"", path);
    H5Dclose(dataset);
    const struct trace_text text = {.path = path, .text = bytes, .length = shape[0]};
    TRY(reader_grow(reader, image->text_count, sizeof text, &image->texts));
    image->texts[image->text_count++] = text;
    return STATUS_OK;
}

static enum status walk_group(struct reader *reader, hid_t group, const char *path, int depth,
                              struct trace_image *image);

static enum status walk_object(struct reader *reader, hid_t group, const char *name,
                               const char *path, int depth, struct trace_image *image) {
    TRY(reader_spend(reader, OBJECT_BYTES, 1, "a list of objects"));
    const hid_t object = H5Oopen(group, name, H5P_DEFAULT);
    if (object < 0) return hdf5_fail(STATUS_INPUT, reader->file.name, "read \"%s\"", path);
    enum status status = STATUS_OK;
    const H5I_type_t kind = H5Iget_type(object);
    const enum content content = kind == H5I_DATASET ? classify(object) : CONTENT_OTHER;
    if (kind == H5I_BADID || content == CONTENT_UNKNOWN)
        status = hdf5_fail(STATUS_INPUT, reader->file.name, "look at \"%s\"", path);
    if (kind == H5I_GROUP) status = walk_group(reader, object, path, depth + 1, image);
    if (content == CONTENT_ARRAY) status = read_array(reader, group, name, path, image);
    if (content == CONTENT_TEXT) status = read_text(reader, group, name, path, image);
    H5Oclose(object);
    return status;
}

static enum status walk_group(struct reader *reader, hid_t group, const char *path, int depth,
                              struct trace_image *image) {
    if (depth > MAX_DEPTH)
        FAIL(STATUS_INPUT, "%s: damaged, or not a trace: groups nest deeper than %d",
             reader->file.name, MAX_DEPTH);
    TRY(read_attributes(reader, group, path, image));
    struct reader_links links;
    TRY(reader_list(reader, group, &links));
    for (uint32_t i = 0; i < links.count; i++) {
        if (is_elsewhere(path, links.names[i])) continue;
        char *child;
        TRY(arena_format(reader->arena, &child, "%s%s%s", path, path[0] == '\0' ? "" : "/",
                         links.names[i]));
        TRY(walk_object(reader, group, links.names[i], child, depth, image));
    }
    return STATUS_OK;
}

enum status reader_walk(struct reader *reader, hid_t root, struct trace_image *image) {
    return walk_group(reader, root, "", 0, image);
}
