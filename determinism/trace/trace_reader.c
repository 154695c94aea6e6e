/* SPDX-License-Identifier: Apache-2.0
 * Opens a trace and takes single things out of it, distrusting all of it.
 *
 * HDF5 reads what lies behind the end of a file as zeros, and a killed file records no end. So the
 * end is checked here if the superblock has one, and rows carry digests (trace_rows.c). */
#include "determinism/trace/hdf5_reader.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/input.h"
#include "base/network.h"

/* The superblock of format 1.10 (HDF5 File Format Specification 3.0, II.A, version 3): offsets of
 * its fields, and two bits of its flags. */
#define SUPERBLOCK_BYTES 48
#define SUPERBLOCK_VERSION 3
#define AT_VERSION 8
#define AT_OFFSET_SIZE 9
#define AT_FLAGS 11
#define AT_END 28
#define FLAG_WRITING 1u
#define FLAG_SWMR 4u

struct superblock {
    uint8_t bytes[SUPERBLOCK_BYTES];
    size_t got;
    uint64_t length; /* length of the file */
};

static enum status refuse(const char *path) {
    return status_fail(STATUS_IO, "%s: cannot read: %s", path, strerror(errno));
}

static enum status peek(const char *path, struct superblock *block) {
    struct input input;
    TRY(input_open(path, INPUT_FILE, path, "a trace", &input));
    struct stat info = {.st_size = 0};
    const ssize_t got = pread(input.descriptor, block->bytes, SUPERBLOCK_BYTES, 0);
    /* the length comes after the end that it is compared with: a live file grows in between */
    const int bad = got < 0 || fstat(input.descriptor, &info) != 0;
    const int reason = errno;
    close(input.descriptor);
    errno = reason;
    if (bad) return refuse(path);
    block->got = (size_t)got;
    block->length = (uint64_t)info.st_size;
    return STATUS_OK;
}

static uint64_t little_endian(const uint8_t *bytes) {
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

static const uint8_t signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};

static enum status check_signature(const char *path, const struct superblock *block) {
    if (block->got == 0) /* also where its writer has begun since */
        FAIL(STATUS_INPUT, "%s: expected a trace, got an empty file", path);
    const size_t compared = block->got < sizeof signature ? block->got : sizeof signature;
    if (memcmp(block->bytes, signature, compared) != 0)
        FAIL(STATUS_INPUT, "%s: expected a trace, got a file that is not HDF5", path);
    if (block->got < SUPERBLOCK_BYTES)
        FAIL(STATUS_INPUT, "%s: truncated: %zu bytes of a trace", path, block->got);
    if (block->bytes[AT_VERSION] != SUPERBLOCK_VERSION || block->bytes[AT_OFFSET_SIZE] != 8)
        FAIL(STATUS_INPUT,
             "%s: expected a trace, got an HDF5 file of superblock version %u (a trace has %d)",
             path, block->bytes[AT_VERSION], SUPERBLOCK_VERSION);
    return STATUS_OK;
}

/* Chooses HDF5's access flags for the file as its writer left it. */
static enum status choose_access(const char *path, const struct superblock *block,
                                 unsigned *out_flags) {
    TRY(check_signature(path, block));
    const unsigned flags = block->bytes[AT_FLAGS];
    *out_flags = H5F_ACC_RDONLY | H5F_ACC_SWMR_READ;
    if (flags & FLAG_SWMR) return STATUS_OK;
    if (flags & FLAG_WRITING)
        FAIL(STATUS_INPUT,
             "%s: is being created, or its run was killed before the first update: no update is "
             "in it",
             path);
    *out_flags = H5F_ACC_RDONLY;
    const uint64_t end = little_endian(block->bytes + AT_END);
    if (end > block->length)
        FAIL(STATUS_INPUT, "%s: truncated: %llu bytes of %llu", path,
             (unsigned long long)block->length, (unsigned long long)end);
    return STATUS_OK;
}

/* HDF5 reads live metadata again while its checksum fails, and sleeps 1, 2, 4, ... ns in between.
 * 26 attempts take 67 ms, longer than a writer is kept from its processor in the middle of a write;
 * the default of 100 attempts would never end on a damaged file. */
#define READ_ATTEMPTS 26

static enum status open_file(struct reader *reader, unsigned flags) {
    hid_t access;
    TRY(hdf5_access_list(reader->path, &access));
    /* no chunk cache: rows are read in blocks of whole chunks, each once */
    if (H5Pset_cache(access, 0, 1, 0, 1.0) < 0)
        return hdf5_fail(STATUS_IO, reader->path, "set up HDF5");
    if ((flags & H5F_ACC_SWMR_READ) != 0 &&
        H5Pset_metadata_read_attempts(access, READ_ATTEMPTS) < 0)
        return hdf5_fail(STATUS_IO, reader->path, "set up HDF5");
    reader->file.id = H5Fopen(reader->path, flags, access);
    if (reader->file.id < 0 && hdf5_has_no_locks() && hdf5_lock_none(access) >= 0)
        reader->file.id = H5Fopen(reader->path, flags, access);
    if (reader->file.id < 0) return hdf5_fail(STATUS_INPUT, reader->path, "read as HDF5");
    H5Pclose(access);
    return STATUS_OK;
}

enum status reader_refuse_loose(const char *path) {
    const char *name;
    long process;
    if (network_of(path, &name) != NETWORK_LOOSE || !trace_is_written(path, &process))
        return STATUS_OK;
    FAIL(
        STATUS_INPUT,
        "%s: is being written, and lies on %s: what a reader sees there of a file that grows is in "
        "no order, so HDF5 promises nothing; wait for its run, or let it write to a local disk",
        path, name);
}

static enum status open_as_left(struct reader *reader, const char *path,
                                struct superblock *out_block) {
    unsigned flags;
    TRY(peek(path, out_block));
    TRY(choose_access(path, out_block, &flags));
    if ((flags & H5F_ACC_SWMR_READ) != 0) TRY(reader_refuse_loose(path));
    reader->file.name = reader->path = path;
    reader->spent = 0;
    reader->live = (flags & H5F_ACC_SWMR_READ) != 0;
    return open_file(reader, flags);
}

/* When a writer closes its file, HDF5 writes a superblock whose end is that of the closed file, and
 * gives the file that length afterwards; it also takes the mark of a live file away while a reader
 * is between its look at the mark and its own opening. So a file of HDF5 that could not be read is
 * looked at again, until two looks in a row have seen the same. */
#define LOOKS 6
static const struct timespec between_looks = {0, 10000000}; /* 10 ms */

int reader_is_same(const struct reader_identity *identity, const struct stat *info) {
    if (info->st_dev != identity->device || info->st_ino != identity->inode) return 0;
    return !identity->finished ||
           (info->st_size == identity->length && info->st_mtim.tv_sec == identity->written.tv_sec &&
            info->st_mtim.tv_nsec == identity->written.tv_nsec);
}

enum status reader_fail_replaced(const char *path) {
    FAIL(STATUS_INPUT, "%s: was removed, replaced or changed while it was read", path);
}

/* Looks at the file that HDF5 has open, whatever its name leads to now. */
static enum status check_same(const struct reader *reader) {
    struct stat info;
    uint64_t length;
    int handle;
    TRY(reader_handle(reader, &handle, &length));
    if (fstat(handle, &info) != 0) return refuse(reader->path);
    return reader_is_same(reader->same, &info) ? STATUS_OK : reader_fail_replaced(reader->path);
}

static enum status open_settled(struct reader *reader, const char *path) {
    struct superblock last, block = {.got = 0};
    enum status status = open_as_left(reader, path, &block);
    for (int looks = 1; status == STATUS_INPUT && looks < LOOKS; looks++) {
        if (block.got < sizeof signature || memcmp(block.bytes, signature, sizeof signature) != 0)
            break;
        last = block;
        nanosleep(&between_looks, NULL);
        status = open_as_left(reader, path, &block);
        if (last.length == block.length && last.got == block.got &&
            memcmp(last.bytes, block.bytes, block.got) == 0)
            break;
    }
    return status;
}

enum status reader_open(struct reader *reader, const char *path) {
    TRY(open_settled(reader, path));
    const enum status status = reader->same == NULL ? STATUS_OK : check_same(reader);
    if (status != STATUS_OK) reader_close(reader);
    return status;
}

void reader_close(struct reader *reader) {
    if (reader->file.id >= 0) H5Fclose(reader->file.id);
    reader->file.id = H5I_INVALID_HID;
}

static enum status damaged(const struct reader *reader, const char *what, const char *expected) {
    return status_fail(STATUS_INPUT, "%s: damaged, or not a trace: %s: expected %s",
                       reader->file.name, what, expected);
}

enum status reader_handle(const struct reader *reader, int *out_handle, uint64_t *out_length) {
    struct stat info;
    int *handle;
    if (H5Fget_vfd_handle(reader->file.id, H5P_DEFAULT, (void **)&handle) < 0)
        return hdf5_fail(STATUS_IO, reader->file.name, "find the descriptor");
    if (fstat(*handle, &info) != 0) return refuse(reader->path);
    *out_handle = *handle;
    *out_length = (uint64_t)info.st_size;
    return STATUS_OK;
}

enum status reader_spend(struct reader *reader, uint64_t count, uint64_t bytes, const char *what) {
    uint64_t length;
    int handle;
    TRY(reader_handle(reader, &handle, &length));
    const uint64_t left = length - reader->spent;
    if (reader->spent > length || (bytes != 0 && count > left / bytes))
        FAIL(STATUS_INPUT, "%s: damaged: %s claims more bytes than the file has", reader->file.name,
             what);
    reader->spent += count * bytes;
    return STATUS_OK;
}

static int is_text(const struct reader *reader, hid_t type) {
    return H5Tget_class(type) == H5T_STRING &&
           (reader->file.foreign || H5Tis_variable_str(type) == 0);
}

static int type_fits(const struct reader *reader, hid_t type, hid_t wanted) {
    return wanted >= 0 ? H5Tequal(type, wanted) > 0 : is_text(reader, type);
}

static int space_fits(hid_t space, const struct reader_form *form,
                      hsize_t out_shape[HDF5_MAX_RANK]) {
    if (H5Sget_simple_extent_ndims(space) != form->rank) return 0;
    if (form->rank != 0 && H5Sget_simple_extent_dims(space, out_shape, NULL) < 0) return 0;
    for (int axis = 0; axis < form->rank; axis++)
        if (form->shape[axis] != 0 && form->shape[axis] != out_shape[axis]) return 0;
    return 1;
}

static int dataset_fits(const struct reader *reader, hid_t dataset, const struct reader_form *form,
                        hsize_t out_shape[HDF5_MAX_RANK]) {
    const hid_t type = H5Dget_type(dataset);
    const hid_t space = H5Dget_space(dataset);
    const int fits = type >= 0 && space >= 0 && type_fits(reader, type, form->type) &&
                     space_fits(space, form, out_shape);
    if (fits && form->type < 0) out_shape[HDF5_MAX_RANK - 1] = H5Tget_size(type);
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    return fits;
}

/* Refuses storage other than what the writer makes (external files, virtual datasets, filters). */
static int storage_fits(hid_t dataset) {
    const hid_t list = H5Dget_create_plist(dataset);
    if (list < 0) return 0;
    const H5D_layout_t layout = H5Pget_layout(list);
    const int fits = (layout == H5D_CONTIGUOUS || layout == H5D_CHUNKED) &&
                     H5Pget_external_count(list) == 0 && H5Pget_nfilters(list) == 0;
    H5Pclose(list);
    return fits;
}

static enum status fail_link(const struct reader *reader, const char *name, H5L_type_t type) {
    FAIL(STATUS_INPUT, "%s: \"%s\": expected an object of this file, got %s", reader->file.name,
         name, hdf5_link_word(type));
}

/* What HDF5 cannot tell it says when the object is opened. */
static enum status check_way(const struct reader *reader, hid_t where, const char *name) {
    const H5L_type_t type = hdf5_way(where, name);
    return type == H5L_TYPE_HARD || type == H5L_TYPE_ERROR ? STATUS_OK
                                                           : fail_link(reader, name, type);
}

enum status reader_dataset(const struct reader *reader, hid_t where, const char *name,
                           const struct reader_form *form, hsize_t out_shape[HDF5_MAX_RANK],
                           hid_t *out_dataset) {
    TRY(check_way(reader, where, name));
    const hid_t dataset = H5Dopen2(where, name, H5P_DEFAULT);
    if (dataset < 0) return hdf5_fail(STATUS_INPUT, reader->file.name, "read \"%s\"", name);
    if (!dataset_fits(reader, dataset, form, out_shape) || !storage_fits(dataset)) {
        H5Dclose(dataset);
        return damaged(reader, name, "the type and shape that docs/TRACE.md gives");
    }
    *out_dataset = dataset;
    return STATUS_OK;
}

herr_t reader_rows(hid_t dataset, hid_t memory, int rank, uint64_t first, const hsize_t *extent,
                   void *out_rows) {
    const hsize_t from[HDF5_MAX_RANK] = {first};
    const hid_t to = H5Screate_simple(rank, extent, NULL);
    const hid_t space = H5Dget_space(dataset);
    herr_t bad = to < 0 || space < 0 ? -1 : 0;
    if (bad >= 0) bad = H5Sselect_hyperslab(space, H5S_SELECT_SET, from, NULL, extent, NULL);
    if (bad >= 0) bad = H5Dread(dataset, memory, to, space, H5P_DEFAULT, out_rows);
    if (bad < 0) return bad; /* closing anything would clear what HDF5 says */
    H5Sclose(space);
    return H5Sclose(to);
}

enum status reader_group(const struct reader *reader, hid_t where, const char *name,
                         hid_t *out_group) {
    TRY(check_way(reader, where, name));
    *out_group = H5Gopen2(where, name, H5P_DEFAULT);
    if (*out_group < 0) return hdf5_fail(STATUS_INPUT, reader->file.name, "read \"%s\"", name);
    return STATUS_OK;
}

static enum status read_fixed_text(struct reader *reader, hid_t attribute, hid_t type,
                                   const char *name, const char **out_text) {
    char *text;
    const size_t length = H5Tget_size(type);
    TRY(reader_spend(reader, length, 1, name));
    TRY(arena_take(reader->arena, length + 1, 1, "attribute", &text));
    if (H5Aread(attribute, type, text) < 0)
        return hdf5_fail(STATUS_INPUT, reader->file.name, "read attribute \"%s\"", name);
    *out_text = text;
    return STATUS_OK;
}

enum status reader_text(struct reader *reader, hid_t object, const char *name,
                        const char **out_text) {
    const hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    if (attribute < 0)
        return hdf5_fail(STATUS_INPUT, reader->file.name, "read attribute \"%s\"", name);
    const hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    if (type < 0 || space < 0 || H5Sget_simple_extent_type(space) != H5S_SCALAR ||
        !is_text(reader, type))
        return damaged(reader, name, "a fixed text");
    TRY(H5Tis_variable_str(type) > 0 ? reader_variable_texts(reader, attribute, name, 1, out_text)
                                     : read_fixed_text(reader, attribute, type, name, out_text));
    H5Sclose(space);
    H5Tclose(type);
    H5Aclose(attribute);
    return STATUS_OK;
}

enum status reader_integer(const struct reader *reader, hid_t object, const char *name, hid_t type,
                           void *out_value) {
    const hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    if (attribute < 0)
        return hdf5_fail(STATUS_INPUT, reader->file.name, "read attribute \"%s\"", name);
    const hid_t stored = H5Aget_type(attribute);
    const hid_t space = H5Aget_space(attribute);
    const int fits = stored >= 0 && space >= 0 && H5Tequal(stored, type) > 0 &&
                     H5Sget_simple_extent_npoints(space) == 1;
    const int done = fits && H5Aread(attribute, type, out_value) >= 0;
    if (space >= 0) H5Sclose(space);
    if (stored >= 0) H5Tclose(stored);
    H5Aclose(attribute);
    return done ? STATUS_OK : damaged(reader, name, "one integer of 64 bits");
}

enum status reader_check_place(const struct reader *reader, hid_t dataset, const char *name) {
    uint64_t length;
    int handle;
    const haddr_t at = H5Dget_offset(dataset);
    const hsize_t bytes = H5Dget_storage_size(dataset);
    if (at == HADDR_UNDEF) return STATUS_OK;
    TRY(reader_handle(reader, &handle, &length));
    if (at > length || bytes > length - at)
        FAIL(STATUS_INPUT, "%s: truncated: \"%s\" lies behind the end", reader->file.name, name);
    return STATUS_OK;
}

enum status reader_check_plain(const struct reader *reader, hid_t dataset, const char *name) {
    if (!storage_fits(dataset)) return damaged(reader, name, "data without filters, in the file");
    return reader_check_place(reader, dataset, name);
}

static enum status read_fixed_names(struct reader *reader, hid_t dataset, hid_t type,
                                    const char *name, hsize_t count, const char **out_names) {
    const size_t cell = H5Tget_size(type);
    char *cells, *text;
    TRY(reader_spend(reader, count, cell, name));
    TRY(arena_take(reader->arena, count, cell, "names", &cells));
    if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, cells) < 0)
        return hdf5_fail(STATUS_INPUT, reader->file.name, "read \"%s\"", name);
    for (hsize_t i = 0; i < count; i++) {
        TRY(arena_text(reader->arena, cells + i * cell, strnlen(cells + i * cell, cell), &text));
        out_names[i] = text;
    }
    return STATUS_OK;
}

enum status reader_names(struct reader *reader, hid_t where, const char *name, uint32_t *out_count,
                         const char *const **out_names) {
    const struct reader_form form = {.type = H5I_INVALID_HID, .rank = 1, .shape = {0}};
    hsize_t shape[HDF5_MAX_RANK] = {0};
    hid_t dataset;
    TRY(reader_dataset(reader, where, name, &form, shape, &dataset));
    const hid_t type = H5Dget_type(dataset);
    const hsize_t count = shape[0];
    const char **names;
    TRY(reader_check_place(reader, dataset, name));
    if (count > UINT32_MAX) return damaged(reader, name, "fewer names");
    TRY(reader_spend(reader, count, 1, name));
    TRY(arena_take(reader->arena, count, sizeof *names, "names", &names));
    TRY(H5Tis_variable_str(type) > 0 ? reader_variable_texts(reader, dataset, name, count, names)
                                     : read_fixed_names(reader, dataset, type, name, count, names));
    H5Tclose(type);
    H5Dclose(dataset);
    for (hsize_t i = 0; i < count; i++)
        TRY(reader_check_name(reader, name, names[i]));
    *out_count = (uint32_t)count;
    *out_names = names;
    return STATUS_OK;
}

enum status reader_words(struct reader *reader, hid_t where, const char *name, uint32_t count,
                         uint64_t **out_words) {
    const struct reader_form form = {.type = H5T_STD_U64LE, .rank = 1, .shape = {count}};
    hsize_t shape[HDF5_MAX_RANK] = {0};
    hid_t dataset;
    TRY(reader_dataset(reader, where, name, &form, shape, &dataset));
    TRY(reader_check_place(reader, dataset, name));
    TRY(reader_spend(reader, count, sizeof **out_words, name));
    TRY(arena_take(reader->arena, count, sizeof **out_words, name, out_words));
    if (H5Dread(dataset, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, *out_words) < 0)
        return hdf5_fail(STATUS_INPUT, reader->file.name, "read \"%s\"", name);
    H5Dclose(dataset);
    return STATUS_OK;
}

enum status reader_grow(struct reader *reader, uint32_t count, size_t size, void *array_pointer) {
    void *old;
    memcpy(&old, array_pointer, sizeof old);
    if ((count & (count - 1)) != 0) return STATUS_OK;
    void *room;
    TRY(arena_take(reader->arena, count == 0 ? 1 : (size_t)count * 2, size, "list of a trace",
                   &room));
    if (count != 0) memcpy(room, old, count * size);
    memcpy(array_pointer, &room, sizeof room);
    return STATUS_OK;
}

#define LINK_BYTES 16 /* fewest bytes that one link takes in a file */

H5_index_t reader_order(const struct reader *reader, hid_t object, int of_attributes) {
    unsigned order = 0;
    if (!reader->file.foreign) return H5_INDEX_CRT_ORDER;
    const hid_t list = H5Gget_create_plist(object);
    const herr_t bad = list < 0        ? -1
                       : of_attributes ? H5Pget_attr_creation_order(list, &order)
                                       : H5Pget_link_creation_order(list, &order);
    if (list >= 0) H5Pclose(list);
    return bad >= 0 && (order & H5P_CRT_ORDER_TRACKED) != 0 ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME;
}

static enum status keep_link(struct reader *reader, hid_t group, H5_index_t order, hsize_t index,
                             struct reader_links *links) {
    char name[256];
    const ssize_t length =
        H5Lget_name_by_idx(group, ".", order, H5_ITER_INC, index, name, sizeof name, H5P_DEFAULT);
    if (length < 0) return hdf5_fail(STATUS_INPUT, reader->file.name, "list a group");
    /* no name that twinstep gives */
    if (length == 0 || (size_t)length >= sizeof name) return STATUS_OK;
    H5L_info_t info;
    if (H5Lget_info(group, name, &info, H5P_DEFAULT) < 0)
        return hdf5_fail(STATUS_INPUT, reader->file.name, "read link \"%s\"", name);
    if (info.type != H5L_TYPE_HARD)
        return reader->file.foreign ? STATUS_OK : fail_link(reader, name, info.type);
    TRY(reader_check_name(reader, "a link", name));
    TRY(reader_spend(reader, LINK_BYTES, 1, "a list of links"));
    TRY(reader_grow(reader, links->count, sizeof *links->names, &links->names));
    TRY(arena_text(reader->arena, name, (size_t)length, &links->names[links->count]));
    links->count++;
    return STATUS_OK;
}

enum status reader_list(struct reader *reader, hid_t group, struct reader_links *out_links) {
    H5G_info_t info;
    out_links->count = 0;
    out_links->names = NULL;
    if (H5Gget_info(group, &info) < 0)
        return hdf5_fail(STATUS_INPUT, reader->file.name, "list a group");
    const H5_index_t order = reader_order(reader, group, 0);
    for (hsize_t i = 0; i < info.nlinks; i++)
        TRY(keep_link(reader, group, order, i, out_links));
    return STATUS_OK;
}
