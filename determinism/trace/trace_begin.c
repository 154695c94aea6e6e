/* SPDX-License-Identifier: Apache-2.0
 * Makes a trace ready for writing from a plan: checks names, claims the live file and creates every
 * object in it, starts writing for live readers, and keeps a handle of each dataset. */
#include "base/arena.h"
#include "determinism/trace/hdf5_writer.h"
#include "determinism/trace/trace_seal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static enum status check_name(const char *what, const char *name) {
    if (name == NULL || name[0] == '\0' || strchr(name, '/') != NULL || strlen(name) > 200 ||
        strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        FAIL(STATUS_INTERNAL, "trace: \"%s\" is no name for a %s", name == NULL ? "" : name, what);
    return STATUS_OK;
}

static enum status check_axis(const struct trace_run_plan *run, const char *what, uint32_t count,
                              const char *const *names) {
    if (count != 0 && names == NULL)
        FAIL(STATUS_INTERNAL, "trace: run \"%s\" has %u %s and no names", run->id, count, what);
    return STATUS_OK;
}

static enum status check_plan(const struct trace_plan *plan) {
    for (uint32_t i = 0; i < plan->run_count; i++) {
        const struct trace_run_plan *run = &plan->runs[i];
        TRY(check_name("run", run->id));
        TRY(check_name("arm", run->arm));
        TRY(check_axis(run, "phases", run->shape.phases, run->phases));
        TRY(check_axis(run, "sites", run->shape.sites, run->sites));
        TRY(check_axis(run, "tensors", run->shape.tensors, run->tensors));
        TRY(check_axis(run, "streams", run->shape.streams, run->streams));
        if ((run->foreign != NULL) != (plan->writer != NULL))
            FAIL(STATUS_INTERNAL, "trace: run \"%s\" is %s", run->id,
                 run->foreign != NULL ? "foreign, and the trace names no writer"
                                      : "ours, and the trace names a foreign writer");
        if (run->shape.consumers != 0 && run->consumers == NULL)
            FAIL(STATUS_INTERNAL, "trace: run \"%s\" has %u consumers and no list of them", run->id,
                 run->shape.consumers);
    }
    for (uint32_t i = 0; i < plan->pair_count; i++) {
        TRY(check_name("run", plan->pairs[i].a));
        TRY(check_name("run", plan->pairs[i].b));
    }
    return STATUS_OK;
}

static enum status take_series(struct trace *trace, const struct trace_plan *plan,
                               struct arena *arena) {
    char *group;
    size_t widest = 0;
    TRY(arena_take(arena, plan->run_count, sizeof *trace->runs, "runs of a trace", &trace->runs));
    TRY(arena_take(arena, plan->pair_count, sizeof *trace->pairs, "pairs of a trace",
                   &trace->pairs));
    trace->run_count = plan->run_count;
    trace->pair_count = plan->pair_count;
    for (uint32_t i = 0; i < plan->run_count; i++) {
        struct series *run = &trace->runs[i];
        layout_init_run(&run->layout, &plan->runs[i].shape, plan->runs[i].foreign != NULL);
        TRY(arena_format(arena, &group, "runs/%s", plan->runs[i].id));
        run->group = group;
        run->stored.bytes = plan->runs[i].snapshots.bytes;
        TRY(arena_format(arena, &group, "snapshots/%s", plan->runs[i].id));
        run->stored.group = group;
        if (run->layout.row_bytes > widest) widest = run->layout.row_bytes;
    }
    for (uint32_t i = 0; i < plan->pair_count; i++) {
        struct series *pair = &trace->pairs[i];
        layout_init_pair(&pair->layout);
        TRY(arena_format(arena, &group, "pairs/%s-%s", plan->pairs[i].a, plan->pairs[i].b));
        pair->group = group;
        if (pair->layout.row_bytes > widest) widest = pair->layout.row_bytes;
    }
    return arena_take(arena, widest, 1, "row of a trace", &trace->row);
}

static enum status take_late(struct trace *trace, const struct trace_plan *plan,
                             struct arena *arena) {
    char *path;
    TRY(arena_take(arena, plan->text_count, sizeof *trace->texts, "texts", &trace->texts));
    TRY(arena_take(arena, plan->array_count, sizeof *trace->arrays, "arrays", &trace->arrays));
    trace->text_count = plan->text_count;
    trace->array_count = plan->array_count;
    for (uint32_t i = 0; i < plan->text_count; i++) {
        TRY(arena_text(arena, plan->texts[i], strlen(plan->texts[i]), &path));
        trace->texts[i].path = path;
    }
    for (uint32_t i = 0; i < plan->array_count; i++) {
        const struct trace_array_plan *array = &plan->arrays[i];
        TRY(arena_text(arena, array->path, strlen(array->path), &path));
        trace->arrays[i].path = path;
        trace->arrays[i].count = array->shape[0] * (array->rank == 2 ? array->shape[1] : 1);
        trace->arrays[i].columns = array->shape[array->rank == 2 ? 1 : 0];
        trace->arrays[i].rank = array->rank;
    }
    return STATUS_OK;
}

/* Keeps all metadata in memory, a few KiB for each column. If HDF5 1.10 evicts entries while there
 * are live readers, it forgets which parent an array's index must be flushed before, and a file of
 * a few thousand columns cannot be written. */
static herr_t keep_metadata(hid_t access) {
    H5AC_cache_config_t cache = {.version = H5AC__CURR_CACHE_CONFIG_VERSION};
    if (H5Pget_mdc_config(access, &cache) < 0) return -1;
    cache.evictions_enabled = 0;
    cache.incr_mode = H5C_incr__off;
    cache.flash_incr_mode = H5C_flash_incr__off;
    cache.decr_mode = H5C_decr__off;
    return H5Pset_mdc_config(access, &cache);
}

/* How long a file that another program has locked is waited for, in milliseconds. */
#define LOCK_WAIT 10000

/* Opens the trace's file, or makes it anew where `create` is a list. Who looks at the file before
 * HDF5 has locked it (a plot, a notebook, a loop of `watch`) holds a lock itself, finds no trace
 * and lets go. HDF5 does not wait for that, so this does. `lock` is a descriptor by which this
 * process has the lock itself, or -1: it is closed, and -1 then, where HDF5 locks all the same,
 * because the user's HDF5_USE_FILE_LOCKING stands above what a program asks for. Errors: STATUS_IO.
 */
static enum status take_file(struct trace *trace, hid_t create, hid_t access, int *lock) {
    const char *const name = trace->file.name;
    int tried_without = 0;
    for (int waited = 0;; waited++) {
        const struct timespec pause = {.tv_nsec = 1000000};
        trace->file.id = create >= 0 ? H5Fcreate(name, H5F_ACC_TRUNC, create, access)
                                     : H5Fopen(name, H5F_ACC_RDWR, access);
        if (trace->file.id >= 0) return STATUS_OK;
        if (!tried_without && hdf5_has_no_locks()) {
            tried_without = 1;
            if (hdf5_lock_none(access) >= 0) continue;
        }
        if (!hdf5_is_locked()) return hdf5_fail(STATUS_IO, name, create >= 0 ? "create" : "open");
        if (*lock >= 0) {
            close(*lock); /* nothing was written through it */
            *lock = -1;
        }
        if (waited == LOCK_WAIT)
            FAIL(STATUS_IO,
                 "%s: cannot write: another program has opened this file, which is new, and keeps "
                 "it locked (HDF5 locks what it reads): close it there, and run again",
                 name);
        nanosleep(&pause, NULL);
    }
}

static enum status create_file(struct trace *trace) {
    const char *name = trace->file.name;
    int none = -1;
    hid_t access;
    TRY(hdf5_access_list(name, &access));
    if (keep_metadata(access) < 0) return hdf5_fail(STATUS_IO, name, "set up HDF5");
    const hid_t create = H5Pcreate(H5P_FILE_CREATE);
    const unsigned order = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
    if (create < 0 || H5Pset_obj_track_times(create, 0) < 0 ||
        H5Pset_link_creation_order(create, order) < 0 ||
        H5Pset_attr_creation_order(create, order) < 0)
        return hdf5_fail(STATUS_IO, name, "set up HDF5");
    TRY(take_file(trace, create, access, &none));
    H5Pclose(create);
    H5Pclose(access);
    return STATUS_OK;
}

/* The chunk cache has size 0, so every row is written through. */
enum status trace_open_dataset(const struct trace *trace, const char *group, const char *name,
                               hid_t *out_dataset) {
    char path[512];
    snprintf(path, sizeof path, "%s%s%s", group, group[0] == '\0' ? "" : "/", name);
    const hid_t access = H5Pcreate(H5P_DATASET_ACCESS);
    if (access < 0 || H5Pset_chunk_cache(access, 1, 0, 1.0) < 0 ||
        (*out_dataset = H5Dopen2(trace->file.id, path, access)) < 0)
        return hdf5_fail(STATUS_IO, trace->file.name, "open \"%s\"", path);
    H5Pclose(access);
    return STATUS_OK;
}

int trace_row_shape(const struct layout_column *column, hsize_t out_shape[HDF5_MAX_RANK]) {
    int rank = 0;
    out_shape[rank++] = 1;
    if (column->axis != AXIS_NONE) out_shape[rank++] = column->length;
    if (column->kind == KIND_DIGEST) out_shape[rank++] = column->cell;
    return rank;
}

static enum status open_series(const struct trace *trace, struct series *series) {
    char name[LAYOUT_NAME + 8];
    series->piece = TRACE_CHUNK_ROWS;
    for (uint32_t c = 0; c < series->layout.count; c++) {
        const struct layout_column *column = &series->layout.columns[c];
        char leaf[LAYOUT_NAME];
        layout_name(column, leaf);
        snprintf(name, sizeof name, "steps/%s", leaf);
        TRY(trace_open_dataset(trace, series->group, name, &series->columns[c]));
        hsize_t shape[HDF5_MAX_RANK];
        series->memory[c] = H5Screate_simple(trace_row_shape(column, shape), shape, NULL);
        if (series->memory[c] < 0) return hdf5_fail(STATUS_IO, trace->file.name, "make a space");
        const hsize_t piece = trace_chunk_rows(column->length * column->cell, trace->updates);
        if (piece < series->piece) series->piece = piece;
    }
    TRY(trace_open_dataset(trace, series->group, "steps/check", &series->check));
    TRY(trace_open_dataset(trace, series->group, "steps/step", &series->step));
    return series->stored.bytes == 0 ? STATUS_OK : trace_open_snapshots(trace, &series->stored);
}

static enum status open_all(struct trace *trace) {
    for (uint32_t i = 0; i < trace->run_count; i++)
        TRY(open_series(trace, &trace->runs[i]));
    for (uint32_t i = 0; i < trace->pair_count; i++)
        TRY(open_series(trace, &trace->pairs[i]));
    for (uint32_t i = 0; i < trace->text_count; i++)
        TRY(trace_open_dataset(trace, "", trace->texts[i].path, &trace->texts[i].dataset));
    for (uint32_t i = 0; i < trace->array_count; i++)
        TRY(trace_open_dataset(trace, "", trace->arrays[i].path, &trace->arrays[i].dataset));
    hsize_t shape[HDF5_MAX_RANK];
    trace->step_space = H5Screate_simple(trace_row_shape(&layout_step, shape), shape, NULL);
    trace->digest_space = H5Screate_simple(trace_row_shape(&layout_check, shape), shape, NULL);
    if (trace->step_space < 0 || trace->digest_space < 0)
        return hdf5_fail(STATUS_IO, trace->file.name, "make a space");
    return trace_open_dataset(trace, "", "complete", &trace->complete);
}

#if H5_VERSION_GE(1, 10, 7)
/* Opens a file whose lock this process has already, by that descriptor. */
static enum status open_locked(struct trace *trace, int *lock) {
    const char *const name = trace->file.name;
    hid_t access;
    TRY(hdf5_access_list(name, &access));
    if (keep_metadata(access) < 0 || H5Pset_file_locking(access, 0, 1) < 0)
        return hdf5_fail(STATUS_IO, name, "set up HDF5");
    TRY(take_file(trace, H5I_INVALID_HID, access, lock));
    H5Pclose(access);
    return STATUS_OK;
}

/* Closes the file and opens it again. HDF5 keeps a list of the rests that the alignment leaves in
 * front of every object, and walks it whenever an object is made; the rests are too short to be
 * used, and a file that was opened has none in its list. In between, the superblock looks like that
 * of a finished file: a reader that came then would lock it and keep its own writer out. So the
 * lock, which belongs to the open file, stays in a second descriptor until live readers come; but
 * not where HDF5 locks this file, too, and would find it locked. */
static enum status open_again(struct trace *trace, int *out_lock) {
    const char *const name = trace->file.name;
    int *handle;
    if (H5Fget_vfd_handle(trace->file.id, H5P_DEFAULT, (void **)&handle) < 0)
        return hdf5_fail(STATUS_IO, name, "find the descriptor");
    *out_lock = fcntl(*handle, F_DUPFD_CLOEXEC, 0);
    if (*out_lock < 0) FAIL(STATUS_IO, "%s: cannot keep its lock: %s", name, strerror(errno));
    if (H5Fclose(trace->file.id) < 0) return hdf5_fail(STATUS_IO, name, "close");
    return open_locked(trace, out_lock);
}
#else /* whether to lock cannot be chosen */
static enum status open_again(struct trace *trace, int *out_lock) {
    (void)trace;
    *out_lock = -1;
    return STATUS_OK;
}
#endif

static enum status start_live(struct trace *trace) {
    int lock = -1;
    enum status status = open_again(trace, &lock);
    if (status == STATUS_OK && H5Fstart_swmr_write(trace->file.id) < 0)
        status = hdf5_fail(STATUS_IO, trace->file.name, "start writing for live readers");
    if (lock >= 0) close(lock); /* nothing was written through it */
    return status;
}

static enum status start(struct trace *trace, const struct trace_plan *plan) {
    TRY(create_file(trace));
    trace_mark_written(trace); /* until it is closed in open_again, and then anew */
    TRY(trace_create_objects(trace, plan));
    TRY(trace_flush(trace));
    TRY(trace_seal(trace, SEAL_OPENING));
    TRY(trace_flush(trace));
    TRY(start_live(trace));
    trace_mark_written(trace);
    return open_all(trace);
}

/* Dataspaces belong to no file, so closing the file does not close them. */
static void close_spaces(const struct series *all, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t c = 0; c < all[i].layout.count; c++)
            if (all[i].memory[c] > 0) H5Sclose(all[i].memory[c]);
        if (all[i].stored.memory > 0) H5Sclose(all[i].stored.memory);
    }
}

void trace_drop_handles(struct trace *trace) {
    close_spaces(trace->runs, trace->run_count);
    close_spaces(trace->pairs, trace->pair_count);
    if (trace->step_space > 0) H5Sclose(trace->step_space);
    if (trace->digest_space > 0) H5Sclose(trace->digest_space);
    trace->file.id = H5I_INVALID_HID;
}

enum status trace_create_as(const char *path, const char *suffix, const struct trace_plan *plan,
                            struct arena *arena, struct trace **out) {
    struct trace *trace;
    char *name;
    TRY(check_plan(plan));
    TRY(arena_take(arena, 1, sizeof *trace, "trace", &trace));
    trace->file.id = H5I_INVALID_HID;
    TRY(arena_text(arena, path, strlen(path), &name));
    trace->target = name;
    TRY(arena_format(arena, &name, "%s%s", path, suffix));
    trace->file.name = name;
    trace->file.foreign = plan->writer != NULL;
    trace->overwrite = plan->overwrite;
    trace->updates = plan->updates;
    TRY(take_series(trace, plan, arena));
    TRY(take_late(trace, plan, arena));
    TRY(trace_claim(trace));
    const enum status status = start(trace, plan);
    if (status != STATUS_OK) {
        trace_drop_handles(trace);
        trace_unclaim(trace);
        return status;
    }
    *out = trace;
    return STATUS_OK;
}

enum status trace_create(const char *path, const struct trace_plan *plan, struct arena *arena,
                         struct trace **out) {
    return trace_create_as(path, TRACE_PART, plan, arena, out);
}
