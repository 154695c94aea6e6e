/* SPDX-License-Identifier: Apache-2.0
 * Reads stored training states out of a trace: which there are, together with the trace; a single
 * one, on demand; and all of a run, one after the other, to hold them against their digests.
 *
 * `step` says how many are committed. A state is compared with its digest, so damage and data lost
 * behind the end of a file are found. */
#include <string.h>

#include "determinism/digest.h"
#include "determinism/trace/hdf5_reader.h"

static enum status refuse(const struct reader *reader, const char *what) {
    return status_fail(STATUS_INPUT, "%s: damaged, or not a trace: %s", reader->file.name, what);
}

/* Reads exactly 64 lower-case hexadecimal digits. */
static int digest_from_hex(const char *text, uint8_t out[DIGEST_BYTES]) {
    static const char digits[] = "0123456789abcdef";
    if (strlen(text) != DIGEST_HEX - 1 || strspn(text, digits) != DIGEST_HEX - 1) return 0;
    for (size_t i = 0; i < DIGEST_BYTES; i++) {
        const long high = strchr(digits, text[2 * i]) - digits;
        const long low = strchr(digits, text[2 * i + 1]) - digits;
        out[i] = (uint8_t)(high * 16 + low);
    }
    return 1;
}

static enum status read_form(struct reader *reader, hid_t group, struct trace_snapshot_plan *plan) {
    const char *text;
    TRY(reader_integer(reader, group, "format", H5T_NATIVE_INT64, &plan->format));
    TRY(reader_integer(reader, group, "every", H5T_NATIVE_UINT64, &plan->every));
    TRY(reader_text(reader, group, "layout", &text));
    if (!digest_from_hex(text, plan->layout))
        return refuse(reader, "layout: expected 64 hexadecimal digits");
    TRY(reader_text(reader, group, "byte_order", &text));
    plan->big_endian = strcmp(text, "big") == 0;
    if (!plan->big_endian && strcmp(text, "little") != 0)
        return refuse(reader, "byte_order: expected little or big");
    return STATUS_OK;
}

/* Opens dataset `name`, [rows, columns] bytes, which must have at least `least` rows. */
static enum status open_bytes(const struct reader *reader, hid_t group, const char *name,
                              uint64_t columns, uint64_t least, uint64_t *out_columns,
                              hid_t *out_dataset) {
    const struct reader_form form = {.type = H5T_STD_U8LE, .rank = 2, .shape = {0, columns}};
    hsize_t shape[HDF5_MAX_RANK] = {0};
    TRY(reader_dataset(reader, group, name, &form, shape, out_dataset));
    if (out_columns != NULL) *out_columns = shape[1];
    if (shape[0] >= least && shape[1] != 0) return STATUS_OK;
    H5Dclose(*out_dataset);
    FAIL(STATUS_INPUT, "%s: damaged: \"%s\" has %llu states of %llu", reader->file.name, name,
         (unsigned long long)shape[0], (unsigned long long)least);
}

static enum status read_steps(struct reader *reader, hid_t dataset, uint64_t count,
                              uint64_t *steps) {
    /* HDF5 turns a negative number into 0 where it is asked for one without a sign. */
    if (H5Dread(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, steps) < 0)
        return hdf5_fail(STATUS_INPUT, reader->file.name, "read \"step\"");
    for (uint64_t i = 0; i < count; i++)
        if (steps[i] > INT64_MAX || (i > 0 && steps[i] <= steps[i - 1]))
            FAIL(STATUS_INPUT, "%s: damaged: stored state %llu is of update %lld",
                 reader->file.name, (unsigned long long)i, (long long)steps[i]);
    return STATUS_OK;
}

static enum status list_steps(struct reader *reader, hid_t group, struct trace_run *run) {
    const struct reader_form form = {.type = H5T_STD_I64LE, .rank = 1, .shape = {0}};
    hsize_t shape[HDF5_MAX_RANK] = {0};
    hid_t dataset;
    TRY(reader_dataset(reader, group, "step", &form, shape, &dataset));
    run->snapshots = shape[0];
    TRY(reader_spend(reader, shape[0], sizeof(uint64_t), "step"));
    TRY(arena_take(reader->arena, shape[0], sizeof *run->snapshot_steps, "stored states",
                   &run->snapshot_steps));
    if (shape[0] != 0) TRY(read_steps(reader, dataset, shape[0], run->snapshot_steps));
    H5Dclose(dataset);
    return STATUS_OK;
}

static enum status read_stored(struct reader *reader, hid_t group, struct trace_run *run) {
    hid_t dataset;
    TRY(read_form(reader, group, &run->plan.snapshots));
    TRY(list_steps(reader, group, run));
    TRY(open_bytes(reader, group, "state", 0, run->snapshots, &run->plan.snapshots.bytes,
                   &dataset));
    H5Dclose(dataset);
    TRY(open_bytes(reader, group, "digest", DIGEST_BYTES, run->snapshots, NULL, &dataset));
    H5Dclose(dataset);
    return STATUS_OK;
}

/* Opens /snapshots/<id>; *out_group stays negative if there is none. `label` is its name in errors
 * and must live as long as they do. */
static enum status open_stored(struct reader *reader, const struct trace_run *run, char **label,
                               hid_t *out_group) {
    hid_t all;
    *out_group = H5I_INVALID_HID;
    if (!hdf5_may_have(reader->file.id, "snapshots")) return STATUS_OK;
    TRY(reader_group(reader, reader->file.id, "snapshots", &all));
    enum status status = STATUS_OK;
    if (hdf5_may_have(all, run->plan.id))
        status = reader_group(reader, all, run->plan.id, out_group);
    H5Gclose(all);
    TRY(status);
    return arena_format(reader->arena, label, "%s: snapshots/%s", reader->path, run->plan.id);
}

enum status reader_run_snapshots(struct reader *reader, struct trace_run *run) {
    const char *file_name = reader->file.name;
    char *label;
    hid_t group;
    TRY(open_stored(reader, run, &label, &group));
    if (group < 0) return STATUS_OK;
    reader->file.name = label;
    const enum status status = read_stored(reader, group, run);
    reader->file.name = file_name;
    H5Gclose(group);
    return status;
}

int trace_snapshot_find(const struct trace_run *run, uint64_t step, uint64_t *out_index) {
    int found = 0;
    for (uint64_t i = 0; i < run->snapshots && run->snapshot_steps[i] <= step; i++) {
        *out_index = i;
        found = 1;
    }
    return found;
}

static enum status read_bytes(const struct reader *reader, hid_t group, const char *name,
                              uint64_t index, uint64_t length, void *out_bytes) {
    hid_t dataset;
    TRY(open_bytes(reader, group, name, length, index + 1, NULL, &dataset));
    const hsize_t extent[2] = {1, length};
    if (reader_rows(dataset, H5T_NATIVE_UINT8, 2, index, extent, out_bytes) < 0)
        return hdf5_fail(STATUS_INPUT, reader->file.name, "read \"%s\"", name);
    H5Dclose(dataset);
    return STATUS_OK;
}

/* Reads a state into `bytes`, and says whether it matches its digest. */
static enum status read_state(const struct reader *reader, hid_t group, const struct trace_run *run,
                              uint64_t index, unsigned char *bytes, int *out_matches) {
    const uint64_t length = run->plan.snapshots.bytes;
    struct digest stored, computed;
    TRY(read_bytes(reader, group, "state", index, length, bytes));
    TRY(read_bytes(reader, group, "digest", index, DIGEST_BYTES, stored.byte));
    layout_state_digest(run->snapshot_steps[index], bytes, length, &computed);
    *out_matches = digest_compare(&stored, &computed) == 0;
    return STATUS_OK;
}

/* Takes the memory of one state. */
static enum status take_state(struct reader *reader, const struct trace_run *run,
                              unsigned char **out_bytes) {
    TRY(reader_spend(reader, 1, run->plan.snapshots.bytes, "a stored state"));
    return arena_take(reader->arena, run->plan.snapshots.bytes, 1, "stored state", out_bytes);
}

/* Opens the file and the group of a run that stores states. */
static enum status open_states(struct reader *reader, const char *path, const struct trace_run *run,
                               hid_t *out_group) {
    char *label;
    TRY(reader_open(reader, path));
    TRY(open_stored(reader, run, &label, out_group));
    if (*out_group < 0)
        FAIL(STATUS_INPUT, "%s: run %s: its stored states are gone", path, run->plan.id);
    reader->file.name = label;
    return STATUS_OK;
}

enum status reader_state(const char *path, const struct trace_run *run, uint64_t index,
                         struct arena *arena, unsigned char **out_bytes) {
    struct reader reader = {.file = {.id = H5I_INVALID_HID, .name = path}, .arena = arena};
    hid_t group = H5I_INVALID_HID;
    int matches = 1;
    if (index >= run->snapshots)
        FAIL(STATUS_INTERNAL, "%s: run %s: stored state %llu of %llu", path, run->plan.id,
             (unsigned long long)index, (unsigned long long)run->snapshots);
    enum status status = open_states(&reader, path, run, &group);
    if (status == STATUS_OK) status = take_state(&reader, run, out_bytes);
    if (status == STATUS_OK) status = read_state(&reader, group, run, index, *out_bytes, &matches);
    if (status == STATUS_OK && !matches)
        status = status_fail(
            STATUS_INPUT, "%s: damaged: the stored state of update %llu does not match its digest",
            reader.file.name, (unsigned long long)run->snapshot_steps[index]);
    reader_close(&reader);
    return status;
}

enum status reader_check_states(const char *path, const struct reader_identity *same,
                                const struct trace_run *run, struct arena *arena,
                                struct trace_states *out) {
    struct reader reader = {
        .file = {.id = H5I_INVALID_HID, .name = path}, .arena = arena, .same = same};
    hid_t group = H5I_INVALID_HID;
    unsigned char *bytes = NULL;
    int matches = 1;
    memset(out, 0, sizeof *out);
    enum status status = open_states(&reader, path, run, &group);
    if (status == STATUS_OK) status = take_state(&reader, run, &bytes);
    for (uint64_t i = 0; status == STATUS_OK && i < run->snapshots; i++) {
        status = read_state(&reader, group, run, i, bytes, &matches);
        if (status != STATUS_OK || matches) continue;
        if (out->damaged < TRACE_STATES_NAMED) out->index[out->damaged] = i;
        out->damaged++;
    }
    reader_close(&reader);
    return status;
}
