/* SPDX-License-Identifier: Apache-2.0
 * A whole trace into memory: runs, pairs, and the attributes, arrays and texts of every other
 * group.
 *
 * What docs/TRACE.md does not name is passed over, so that later versions may add; what it names is
 * checked. The walk is bounded in depth and by the file's length. */
#include "determinism/hdf5_reader.h"

#include <stdio.h>
#include <string.h>

#define MAX_DEPTH 8
#define OBJECT_BYTES 32 /* at least, of one object in a file */

static int is_one_of(const char *name, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0) return 1;
    return 0;
}

/* Attributes that trace_create writes itself. */
static int is_reserved(const char *path, const char *name) {
    static const char *const root[] = {"twinstep_trace", "Conventions", "NX_class", "default"};
    static const char *const run[] = {"arm",           "replicate", "mask",   "first_step",
                                      "configuration", "NX_class",  "default"};
    static const char *const pair[] = {"a", "b", "NX_class", "default"};
    if (path[0] == '\0') return is_one_of(name, root, COUNT_OF(root));
    if (strncmp(path, "runs/", 5) == 0) return is_one_of(name, run, COUNT_OF(run));
    if (strncmp(path, "pairs/", 6) == 0) return is_one_of(name, pair, COUNT_OF(pair));
    return 0;
}

/* Parts of the tree that the walk leaves to others. */
static int is_elsewhere(const char *path, const char *name) {
    if (path[0] == '\0') return strcmp(name, "arms") == 0 || strcmp(name, "complete") == 0;
    const int entry = strncmp(path, "runs/", 5) == 0 || strncmp(path, "pairs/", 6) == 0;
    return entry && strcmp(name, "steps") == 0;
}

struct attribute_walk {
    struct reader *reader;
    struct trace_image *image;
    const char *path;
    enum status status;
};

static enum status keep_attribute(struct attribute_walk *walk, hid_t group, const char *name) {
    struct trace_image *image = walk->image;
    struct trace_attribute found = {.path = walk->path};
    char *text;
    TRY(reader_text(walk->reader, group, name, &text));
    found.text = text;
    TRY(arena_text(walk->reader->arena, name, strlen(name), &text));
    found.name = text;
    TRY(reader_grow(walk->reader, image->attribute_count, sizeof found, &image->attributes));
    image->attributes[image->attribute_count++] = found;
    return STATUS_OK;
}

static int is_text_attribute(hid_t group, const char *name) {
    const hid_t attribute = H5Aopen(group, name, H5P_DEFAULT);
    const hid_t type = attribute < 0 ? -1 : H5Aget_type(attribute);
    const int text = type >= 0 && H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0;
    if (type >= 0) H5Tclose(type);
    if (attribute >= 0) H5Aclose(attribute);
    return text;
}

static herr_t visit_attribute(hid_t group, const char *name, const H5A_info_t *info, void *data) {
    struct attribute_walk *walk = (struct attribute_walk *)data;
    (void)info;
    if (is_reserved(walk->path, name) || !is_text_attribute(group, name)) return 0;
    walk->status = keep_attribute(walk, group, name);
    return walk->status == STATUS_OK ? 0 : -1;
}

static enum status read_attributes(struct reader *reader, hid_t group, const char *path,
                                   struct trace_image *image) {
    struct attribute_walk walk = {reader, image, path, STATUS_OK};
    hsize_t next = 0;
    const herr_t bad =
        H5Aiterate2(group, H5_INDEX_CRT_ORDER, H5_ITER_INC, &next, visit_attribute, &walk);
    TRY(walk.status);
    if (bad < 0)
        return hdf5_fail(STATUS_INPUT, reader->file.name, "list attributes of \"%s\"", path);
    return STATUS_OK;
}

enum content { CONTENT_OTHER = 0, CONTENT_ARRAY, CONTENT_TEXT };

/* A fixed f64 dataset of rank 1 or 2 is an array, a growing byte dataset of rank 1 a text. */
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
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    return content;
}

/* In a file that was not closed, data behind its end would read as zeros. */
static enum status check_stored(const struct reader *reader, hid_t dataset, const char *path) {
    const haddr_t at = H5Dget_offset(dataset);
    const hsize_t bytes = H5Dget_storage_size(dataset);
    hsize_t length;
    if (at == HADDR_UNDEF || reader->closed) return STATUS_OK;
    if (H5Fget_filesize(reader->file.id, &length) < 0 || at > length || bytes > length - at)
        FAIL(STATUS_INPUT, "%s: truncated: \"%s\" lies behind the end", reader->file.name, path);
    return STATUS_OK;
}

static enum status fill_array(struct reader *reader, hid_t dataset, struct trace_array *array) {
    char *text;
    TRY(reader_text(reader, dataset, "units", &text));
    array->plan.units = text;
    TRY(reader_text(reader, dataset, "long_name", &text));
    array->plan.long_name = text;
    const uint64_t *shape = array->plan.shape;
    const uint64_t columns = array->plan.rank == 2 ? shape[1] : 1;
    if (columns != 0 && shape[0] > UINT64_MAX / 8 / columns)
        FAIL(STATUS_INPUT, "%s: damaged: \"%s\" is too large", reader->file.name, array->plan.path);
    double *values;
    TRY(check_stored(reader, dataset, array->plan.path));
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
    const enum status status = fill_array(reader, dataset, &array);
    H5Dclose(dataset);
    TRY(status);
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
    char *bytes = NULL;
    enum status status = reader_spend(reader, shape[0], 1, path);
    if (status == STATUS_OK) status = arena_text(reader->arena, "", 0, &bytes);
    if (status == STATUS_OK && shape[0] != 0) {
        status = arena_take(reader->arena, shape[0] + 1, 1, "text", &bytes);
        if (status == STATUS_OK &&
            H5Dread(dataset, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes) < 0)
            status = hdf5_fail(STATUS_INPUT, reader->file.name, "read \"%s\"", path);
    }
    H5Dclose(dataset);
    TRY(status);
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

static enum status read_length(struct reader *reader, hid_t steps, enum layout_axis axis,
                               uint32_t *out_length) {
    const struct layout_axis_name *label = &layout_axes[axis];
    const struct reader_form form = {.type = H5T_STD_I64LE, .rank = 1, .shape = {0}};
    hsize_t shape[HDF5_MAX_RANK] = {0};
    char path[LAYOUT_NAME];
    snprintf(path, sizeof path, "%s%s%s", label->folder, label->folder[0] == '\0' ? "" : "/",
             label->scale);
    *out_length = 0;
    if (label->folder[0] != '\0' && H5Lexists(steps, label->folder, H5P_DEFAULT) <= 0)
        return STATUS_OK;
    if (H5Lexists(steps, path, H5P_DEFAULT) <= 0) return STATUS_OK;
    hid_t dataset;
    TRY(reader_dataset(reader, steps, path, &form, shape, &dataset));
    H5Dclose(dataset);
    TRY(reader_spend(reader, shape[0], sizeof(int64_t), path));
    if (shape[0] > UINT32_MAX)
        FAIL(STATUS_INPUT, "%s: damaged: axis \"%s\" is too long", reader->file.name, path);
    *out_length = (uint32_t)shape[0];
    return STATUS_OK;
}

static enum status read_axis_names(struct reader *reader, hid_t steps, enum layout_axis axis,
                                   uint32_t *out_count, const char *const **out_names) {
    const struct layout_axis_name *label = &layout_axes[axis];
    char path[LAYOUT_NAME];
    *out_count = 0;
    *out_names = NULL;
    if (H5Lexists(steps, label->folder, H5P_DEFAULT) <= 0) return STATUS_OK;
    snprintf(path, sizeof path, "%s/%s", label->folder, label->scale);
    return reader_names(reader, steps, path, out_count, out_names);
}

static enum status read_shape(struct reader *reader, hid_t steps, struct trace_run_plan *plan) {
    struct record_shape *shape = &plan->shape;
    TRY(read_length(reader, steps, AXIS_GROUP, &shape->groups));
    TRY(read_length(reader, steps, AXIS_MICRO, &shape->micros));
    TRY(read_axis_names(reader, steps, AXIS_PHASE, &shape->phases, &plan->phases));
    TRY(read_axis_names(reader, steps, AXIS_SITE, &shape->sites, &plan->sites));
    return read_axis_names(reader, steps, AXIS_TENSOR, &shape->tensors, &plan->tensors);
}

static enum status read_run(struct reader *reader, hid_t group, struct trace_run *run) {
    char *text;
    TRY(reader_text(reader, group, "arm", &text));
    run->plan.arm = text;
    TRY(reader_text(reader, group, "configuration", &text));
    run->plan.configuration = text;
    TRY(reader_integer(reader, group, "replicate", H5T_NATIVE_INT64, &run->plan.replicate));
    TRY(reader_integer(reader, group, "mask", H5T_NATIVE_UINT64, &run->plan.mask));
    TRY(reader_integer(reader, group, "first_step", H5T_NATIVE_UINT64, &run->plan.first_step));
    hid_t steps;
    TRY(reader_group(reader, group, "steps", &steps));
    enum status status = read_shape(reader, steps, &run->plan);
    if (status == STATUS_OK) status = reader_run_rows(reader, steps, run);
    H5Gclose(steps);
    return status;
}

static enum status read_pair(struct reader *reader, hid_t group, struct trace_pair *pair) {
    char *text;
    TRY(reader_text(reader, group, "a", &text));
    pair->plan.a = text;
    TRY(reader_text(reader, group, "b", &text));
    pair->plan.b = text;
    hid_t steps;
    TRY(reader_group(reader, group, "steps", &steps));
    const enum status status = reader_pair_rows(reader, steps, pair);
    H5Gclose(steps);
    return status;
}

static enum status add_run(struct reader *reader, hid_t group, const char *name,
                           struct trace_image *image) {
    struct trace_run run = {.plan = {.id = name}};
    TRY(read_run(reader, group, &run));
    TRY(reader_grow(reader, image->run_count, sizeof run, &image->runs));
    image->runs[image->run_count++] = run;
    return STATUS_OK;
}

static enum status add_pair(struct reader *reader, hid_t group, const char *name,
                            struct trace_image *image) {
    (void)name;
    struct trace_pair pair = {.updates = 0};
    TRY(read_pair(reader, group, &pair));
    TRY(reader_grow(reader, image->pair_count, sizeof pair, &image->pairs));
    image->pairs[image->pair_count++] = pair;
    return STATUS_OK;
}

typedef enum status (*entry_reader)(struct reader *reader, hid_t group, const char *name,
                                    struct trace_image *image);

static enum status read_entry(struct reader *reader, hid_t parent, const char *folder,
                              const char *name, entry_reader read, struct trace_image *image) {
    const char *file_name = reader->file.name;
    char *label;
    hid_t group;
    TRY(arena_format(reader->arena, &label, "%s: %s/%s", file_name, folder, name));
    TRY(reader_group(reader, parent, name, &group));
    reader->file.name = label;
    const enum status status = read(reader, group, name, image);
    reader->file.name = file_name;
    H5Gclose(group);
    return status;
}

static enum status read_entries(struct reader *reader, const char *folder, entry_reader read,
                                struct trace_image *image) {
    if (H5Lexists(reader->file.id, folder, H5P_DEFAULT) <= 0) return STATUS_OK;
    hid_t parent;
    TRY(reader_group(reader, reader->file.id, folder, &parent));
    struct reader_links links;
    TRY(reader_list(reader, parent, &links));
    for (uint32_t i = 0; i < links.count; i++)
        TRY(read_entry(reader, parent, folder, links.names[i], read, image));
    H5Gclose(parent);
    return STATUS_OK;
}

static enum status check_version(const struct reader *reader, hid_t root) {
    int64_t version = 0;
    if (H5Aexists(root, "twinstep_trace") <= 0)
        FAIL(STATUS_INPUT, "%s: expected a trace, got an HDF5 file without twinstep's attributes",
             reader->file.name);
    TRY(reader_integer(reader, root, "twinstep_trace", H5T_NATIVE_INT64, &version));
    if (version < 1 || version > TRACE_VERSION)
        FAIL(STATUS_INPUT, "%s: trace version %lld; this twinstep reads versions 1 to %d",
             reader->file.name, (long long)version, TRACE_VERSION);
    return STATUS_OK;
}

static enum status read_complete(const struct reader *reader, hid_t root, int *out_complete) {
    const struct reader_form form = {.type = H5T_STD_I64LE, .rank = 0, .shape = {0}};
    hsize_t shape[HDF5_MAX_RANK];
    hid_t dataset;
    int64_t complete = 0;
    TRY(reader_dataset(reader, root, "complete", &form, shape, &dataset));
    const herr_t bad = H5Dread(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &complete);
    if (bad < 0) return hdf5_fail(STATUS_INPUT, reader->file.name, "read \"complete\"");
    H5Dclose(dataset);
    *out_complete = complete == 1;
    return STATUS_OK;
}

static enum status read_root(struct reader *reader, struct trace_image *image) {
    hid_t root;
    TRY(reader_group(reader, reader->file.id, "/", &root));
    TRY(check_version(reader, root));
    TRY(read_complete(reader, root, &image->complete)); /* first: what it vouches for comes later */
    TRY(walk_group(reader, root, "", 0, image));
    TRY(read_entries(reader, "runs", add_run, image));
    TRY(read_entries(reader, "pairs", add_pair, image));
    H5Gclose(root);
    return STATUS_OK;
}

enum status trace_open(const char *path, struct arena *arena, struct trace_image **out) {
    struct reader reader = {.file = {H5I_INVALID_HID, path}, .arena = arena};
    struct trace_image *image;
    TRY(arena_take(arena, 1, sizeof *image, "trace", &image));
    TRY(reader_open(&reader, path));
    const enum status status = read_root(&reader, image);
    reader_close(&reader);
    if (status == STATUS_OK) *out = image;
    return status;
}

const char *trace_attribute_of(const struct trace_image *image, const char *path,
                               const char *name) {
    for (uint32_t i = 0; i < image->attribute_count; i++)
        if (strcmp(image->attributes[i].path, path) == 0 &&
            strcmp(image->attributes[i].name, name) == 0)
            return image->attributes[i].text;
    return NULL;
}

const struct trace_text *trace_text_of(const struct trace_image *image, const char *path) {
    for (uint32_t i = 0; i < image->text_count; i++)
        if (strcmp(image->texts[i].path, path) == 0) return &image->texts[i];
    return NULL;
}

const struct trace_array *trace_array_of(const struct trace_image *image, const char *path) {
    for (uint32_t i = 0; i < image->array_count; i++)
        if (strcmp(image->arrays[i].plan.path, path) == 0) return &image->arrays[i];
    return NULL;
}

const struct trace_run *trace_run_of(const struct trace_image *image, const char *id) {
    for (uint32_t i = 0; i < image->run_count; i++)
        if (strcmp(image->runs[i].plan.id, id) == 0) return &image->runs[i];
    return NULL;
}
