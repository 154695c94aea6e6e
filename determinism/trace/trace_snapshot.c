/* SPDX-License-Identifier: Apache-2.0
 * Writes stored training states: the group /snapshots/<run>, created before the first update and
 * written a row at a time.
 *
 * A row is written like an update's: `state` and `digest`, a flush, then `step`, the commit mark,
 * and a flush of `step` alone. The module knows sizes and digests of the bytes, not their
 * meaning. */
#include <stdio.h>
#include <string.h>

#include "determinism/digest.h"
#include "determinism/trace/hdf5_writer.h"

#define PIECE ((uint64_t)1 << 20) /* most bytes of a chunk */
#define DIGEST_CHUNK 64           /* digests in a chunk */

static const uint8_t zero = 0;

/* Cuts a state into pieces of equal length, so that the last one wastes less than a byte per
 * piece. */
hsize_t trace_state_piece(uint64_t bytes) {
    const uint64_t pieces = (bytes + PIECE - 1) / PIECE;
    return (bytes + pieces - 1) / pieces;
}

/* Creates a dimension without coordinates, as netCDF writes it: stored coordinates would take eight
 * times the state's bytes. */
static enum status create_extent(const struct hdf5_file *file, hid_t group, uint64_t bytes,
                                 hid_t *out_scale) {
    char name[80];
    snprintf(name, sizeof name, "This is a netCDF dimension but not a netCDF variable.%10llu",
             (unsigned long long)bytes);
    const struct hdf5_form form = {.name = "offset",
                                   .type = H5T_STD_U8LE,
                                   .rank = 1,
                                   .shape = {bytes, 1, 1},
                                   .chunk_rows = trace_state_piece(bytes),
                                   .fill = &zero,
                                   .units = "1",
                                   .long_name = "byte of a state",
                                   .scale = name};
    return hdf5_create(file, group, &form, out_scale);
}

static enum status create_datasets(const struct hdf5_file *file, hid_t group, uint64_t bytes) {
    hid_t step, byte, offset, dataset;
    TRY(trace_create_step(file, group, "update after which the state was taken, 0 before the first",
                          &step));
    TRY(hdf5_create_index(file, group, "byte", "byte of a digest", DIGEST_BYTES, &byte));
    TRY(create_extent(file, group, bytes, &offset));
    const hid_t state_axes[2] = {step, offset}, digest_axes[2] = {step, byte};
    const struct hdf5_form forms[2] = {{.name = "state",
                                        .type = H5T_STD_U8LE,
                                        .rank = 2,
                                        .shape = {0, bytes, 1},
                                        .chunk_rows = 1,
                                        .chunk_columns = trace_state_piece(bytes),
                                        .fill = &zero,
                                        .units = "1",
                                        .long_name = "training state",
                                        .axes = state_axes},
                                       {.name = "digest",
                                        .type = H5T_STD_U8LE,
                                        .rank = 2,
                                        .shape = {0, DIGEST_BYTES, 1},
                                        .chunk_rows = DIGEST_CHUNK,
                                        .fill = &zero,
                                        .units = "1",
                                        .long_name = "SHA-256 of step and SHA-256 of state",
                                        .axes = digest_axes}};
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        TRY(hdf5_create(file, group, &forms[i], &dataset));
        TRY(hdf5_close(file, dataset));
    }
    TRY(hdf5_write_references(file));
    TRY(hdf5_close(file, offset));
    TRY(hdf5_close(file, byte));
    return hdf5_close(file, step);
}

static enum status put_attributes(const struct hdf5_file *file, hid_t group,
                                  const struct trace_snapshot_plan *plan) {
    struct digest layout;
    char hex[DIGEST_HEX];
    memcpy(layout.byte, plan->layout, sizeof layout.byte);
    digest_hex(&layout, hex);
    TRY(hdf5_put_value(file, group, "format", H5T_STD_I64LE, &plan->format));
    TRY(hdf5_put_text(file, group, "layout", hex));
    TRY(hdf5_put_text(file, group, "byte_order", plan->big_endian ? "big" : "little"));
    TRY(hdf5_put_value(file, group, "every", H5T_STD_U64LE, &plan->every));
    return hdf5_put_text(file, group, "NX_class", "NXcollection");
}

enum status trace_create_snapshots(const struct hdf5_file *file, const struct stored *stored,
                                   const struct trace_run_plan *plan) {
    hid_t group;
    if (stored->bytes == 0) return STATUS_OK;
    TRY(hdf5_open_group(file, stored->group, &group));
    TRY(put_attributes(file, group, &plan->snapshots));
    TRY(create_datasets(file, group, stored->bytes));
    return hdf5_close(file, group);
}

enum status trace_open_snapshots(const struct trace *trace, struct stored *stored) {
    const hsize_t shape[2] = {1, stored->bytes};
    TRY(trace_open_dataset(trace, stored->group, "state", &stored->state));
    TRY(trace_open_dataset(trace, stored->group, "digest", &stored->digest));
    TRY(trace_open_dataset(trace, stored->group, "step", &stored->step));
    stored->memory = H5Screate_simple(2, shape, NULL);
    if (stored->memory < 0) return hdf5_fail(STATUS_IO, trace->file.name, "make a space");
    return STATUS_OK;
}

static enum status write_state(const struct trace *trace, const struct stored *stored,
                               uint64_t step, const void *bytes) {
    const int64_t mark = (int64_t)step;
    struct digest digest;
    layout_state_digest(step, bytes, stored->bytes, &digest);
    const hsize_t state_row[2] = {1, stored->bytes}, digest_row[2] = {1, DIGEST_BYTES};
    if (trace_append(stored->state, H5T_NATIVE_UINT8, stored->memory, 2, state_row, stored->rows,
                     bytes) < 0 ||
        trace_append(stored->digest, H5T_NATIVE_UINT8, trace->digest_space, 2, digest_row,
                     stored->rows, digest.byte) < 0)
        return hdf5_fail(STATUS_IO, trace->file.name, "write a state to %s", stored->group);
    TRY(trace_flush(trace));
    if (trace_append(stored->step, H5T_NATIVE_INT64, trace->step_space, 1, digest_row, stored->rows,
                     &mark) < 0 ||
        H5Dflush(stored->step) < 0)
        return hdf5_fail(STATUS_IO, trace->file.name, "write a state to %s", stored->group);
    return STATUS_OK;
}

enum status trace_put_snapshot(struct trace *trace, uint32_t run, uint64_t step,
                               const void *bytes) {
    TRY(trace_refuse_broken(trace));
    if (run >= trace->run_count || trace->runs[run].stored.bytes == 0)
        FAIL(STATUS_INTERNAL, "%s: run %u of %u has no stored states", trace->file.name, run,
             trace->run_count);
    struct stored *stored = &trace->runs[run].stored;
    if ((stored->rows > 0 && step <= stored->last_step) || step > INT64_MAX)
        FAIL(STATUS_INTERNAL, "%s: state of update %llu comes after that of update %llu in %s",
             trace->file.name, (unsigned long long)step, (unsigned long long)stored->last_step,
             stored->group);
    const enum status status = write_state(trace, stored, step, bytes);
    trace->broken = status != STATUS_OK;
    stored->rows++;
    stored->last_step = step;
    return status;
}
