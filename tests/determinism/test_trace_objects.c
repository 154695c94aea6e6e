/* SPDX-License-Identifier: Apache-2.0
 * labels: unit
 * Every object and every attribute of a trace, spoilt in each way: gone, empty, of another kind or
 * type, a row or an axis more or less, filled with bytes of 0 or of 255 (NaN, -1, the largest
 * number). Three files: a trace of ours without seals (as the first twinstep wrote them), one with
 * seals, and one of another program. What is said of each is held, by its whole text and status, in
 * tests/golden/trace_objects.txt; where the file is read all the same, one number is made of its
 * rows (FNV-1a). A place meets some of the ways, by turns (turns_of).
 *
 * In front of that stands what a writer made: each object with its type, shape, chunks and bytes.
 *
 * With TWINSTEP_WRITE_GOLDEN=FILE the text is written there in place of compared. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <hdf5.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "determinism/foreign.h"
#include "determinism/trace/hdf5_reader.h"
#include "determinism/trace/twinstep_trace.h"
#include "tests/base/helper_draws.h"
#include "tests/determinism/helper_trace.h"

/* HDF5 leaks what it held when a file is damaged; the leak sanitizer reads these suppressions. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libhdf5";
}

#define GOLDEN TWINSTEP_SOURCE_DIR "/tests/golden/trace_objects.txt"

enum { UPDATES = 3, PLACES = 900 };

enum kind { FOREIGN, UNSEALED, SEALED, KINDS };

static void require(enum status status) {
    if (status != STATUS_OK) fail_msg("%s", status_text());
}

/* ---- what a file holds ---- */

struct place {
    char path[160], attribute[60]; /* "": the object itself */
    int is_group;
};

struct places {
    struct place at[PLACES];
    size_t count;
    int all; /* 0: without the runs that are as others */
};

struct visit {
    struct places *places;
    const char *path;
};

static herr_t see_attribute(hid_t object, const char *name, const H5A_info_t *info, void *context) {
    const struct visit *visit = (const struct visit *)context;
    struct places *const places = visit->places;
    (void)object;
    (void)info;
    assert_true(places->count < PLACES);
    struct place *const place = &places->at[places->count++];
    snprintf(place->path, sizeof place->path, "%s", visit->path);
    snprintf(place->attribute, sizeof place->attribute, "%s", name);
    return 0;
}

static herr_t see_object(hid_t file, const char *path, const H5O_info_t *info, void *context) {
    struct places *const places = (struct places *)context;
    struct visit visit = {.places = places, .path = path};
    if (!places->all && (strstr(path, "baseline") == path + 5 || strstr(path, "rerun") != NULL))
        return 0;
    if (strcmp(path, ".") != 0) {
        assert_true(places->count < PLACES);
        struct place *const place = &places->at[places->count++];
        snprintf(place->path, sizeof place->path, "%s", path);
        place->attribute[0] = '\0';
        place->is_group = info->type == H5O_TYPE_GROUP;
    }
    const hid_t object = H5Oopen(file, path, H5P_DEFAULT);
    assert_true(H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, NULL, see_attribute, &visit) >= 0);
    H5Oclose(object);
    return 0;
}

static hid_t edit(const char *path) {
    const hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    assert_true(H5Pset_libver_bounds(list, H5F_LIBVER_V110, H5F_LIBVER_V110) >= 0);
    const hid_t file = H5Fopen(path, H5F_ACC_RDWR, list);
    assert_true(file >= 0);
    H5Pclose(list);
    return file;
}

/* ---- what is done to it ---- */

enum way {
    GONE,
    GROUP,
    SCALAR,
    NO_ROWS,
    ROW_LESS,
    ROW_MORE,
    AXIS_MORE,
    LAST_LESS,
    INTEGER,
    UNSIGNED,
    SINGLE,
    TEXT,
    ZEROS,
    ONES,
    FIRST_ONES,
    LAST_ONES,
    WAYS
};
static const char *const ways[WAYS] = {"gone",     "a group",  "a scalar",  "no rows",
                                       "row less", "row more", "axis more", "last axis less",
                                       "int16",    "uint64",   "float32",   "text",
                                       "all 0",    "all 255",  "first 255", "last 255"};

static hid_t group_list(void) {
    const unsigned order = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
    const hid_t list = H5Pcreate(H5P_GROUP_CREATE);
    assert_true(H5Pset_link_creation_order(list, order) >= 0);
    assert_true(H5Pset_attr_creation_order(list, order) >= 0);
    return list;
}

static hid_t text_type(size_t size) {
    const hid_t type = H5Tcopy(H5T_C_S1);
    assert_true(H5Tset_size(type, size) >= 0);
    H5Tset_cset(type, H5T_CSET_UTF8);
    H5Tset_strpad(type, H5T_STR_NULLPAD);
    return type;
}

/* Makes the dataset anew with another shape or type; its values are 0. */
static void remake(hid_t file, const char *path, enum way way) {
    hsize_t shape[8], most[8], chunk[8];
    const hid_t old = H5Dopen2(file, path, H5P_DEFAULT), space = H5Dget_space(old);
    hid_t type = H5Dget_type(old), given = type;
    int rank = H5Sget_simple_extent_dims(space, shape, most);
    const int open = rank > 0 && most[0] == H5S_UNLIMITED;
    assert_true(rank >= 0 && rank < 8);
    H5Sclose(space);
    H5Dclose(old);
    switch (way) {
    case SCALAR:
        rank = 0;
        break;
    case NO_ROWS:
        if (rank > 0) shape[0] = 0;
        break;
    case ROW_LESS:
        if (rank > 0 && shape[0] > 0) shape[0]--;
        break;
    case ROW_MORE:
        if (rank > 0) shape[0]++;
        break;
    case AXIS_MORE:
        shape[rank++] = 2;
        break;
    case LAST_LESS:
        if (rank > 1 && shape[rank - 1] > 1) shape[rank - 1]--;
        break;
    case INTEGER:
        given = H5T_STD_I16LE;
        break;
    case UNSIGNED:
        given = H5T_STD_U64LE;
        break;
    case SINGLE:
        given = H5T_IEEE_F32LE;
        break;
    default:
        given = text_type(3);
    }
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    for (int i = 0; i < rank; i++) {
        most[i] = i == 0 && open ? H5S_UNLIMITED : shape[i];
        chunk[i] = shape[i] > 0 ? shape[i] : 1;
    }
    if (rank > 0 && open) assert_true(H5Pset_chunk(list, rank, chunk) >= 0);
    const hid_t made = rank > 0 ? H5Screate_simple(rank, shape, most) : H5Screate(H5S_SCALAR);
    assert_true(H5Ldelete(file, path, H5P_DEFAULT) >= 0);
    const hid_t anew = H5Dcreate2(file, path, given, made, H5P_DEFAULT, list, H5P_DEFAULT);
    assert_true(anew >= 0);
    H5Dclose(anew);
    H5Sclose(made);
    H5Pclose(list);
    if (way == TEXT) H5Tclose(given);
    H5Tclose(type);
}

/* Fills all values of a dataset or an attribute, or the first or the last one, with one byte.
 * Returns 0 where there are none, or where the file has them elsewhere, as texts of any length. */
static int fill(hid_t object, int is_attribute, enum way way) {
    const hid_t space = is_attribute ? H5Aget_space(object) : H5Dget_space(object);
    const hid_t type = is_attribute ? H5Aget_type(object) : H5Dget_type(object);
    const size_t size = H5Tget_size(type), count = (size_t)H5Sget_simple_extent_npoints(space);
    unsigned char *const bytes = (unsigned char *)calloc(count + 1, size + 1);
    assert_non_null(bytes);
    const int fills = H5Tis_variable_str(type) == 0 && count > 0;
    if (fills) {
        const size_t from = way == LAST_ONES ? (count - 1) * size : 0;
        const size_t length = way == ZEROS || way == ONES ? count * size : size;
        if (is_attribute)
            H5Aread(object, type, bytes);
        else
            H5Dread(object, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes);
        memset(bytes + from, way == ZEROS ? 0 : 255, length);
        if (is_attribute)
            H5Awrite(object, type, bytes);
        else
            H5Dwrite(object, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes);
    }
    free(bytes);
    H5Tclose(type);
    H5Sclose(space);
    return fills;
}

static int spoil_attribute(hid_t file, const struct place *place, enum way way) {
    static const int64_t one[2] = {1, 1};
    const hid_t object = H5Oopen(file, place->path, H5P_DEFAULT);
    if (way == ZEROS || way >= ONES) {
        const hid_t attribute = H5Aopen(object, place->attribute, H5P_DEFAULT);
        const int fills = fill(attribute, 1, way);
        H5Aclose(attribute);
        H5Oclose(object);
        return fills;
    }
    assert_true(H5Adelete(object, place->attribute) >= 0);
    if (way != GONE) {
        char text[301];
        memset(text, 'x', sizeof text);
        const hsize_t two = 2;
        const hid_t space = way == ROW_MORE || way == AXIS_MORE ? H5Screate_simple(1, &two, NULL)
                            : way == NO_ROWS                    ? H5Screate(H5S_NULL)
                                                                : H5Screate(H5S_SCALAR);
        const int texts = way == TEXT || way == GROUP || way == LAST_LESS || way == ROW_MORE;
        const size_t length = way == TEXT ? 300 : 1;
        if (way == LAST_LESS) text[0] = '\0';
        if (way == ROW_MORE) text[0] = '7';
        const hid_t type = texts             ? text_type(length)
                           : way == INTEGER  ? H5Tcopy(H5T_STD_I16LE)
                           : way == UNSIGNED ? H5Tcopy(H5T_STD_U64LE)
                           : way == SINGLE   ? H5Tcopy(H5T_IEEE_F32LE)
                                             : H5Tcopy(H5T_STD_I64LE);
        const hid_t made =
            H5Acreate2(object, place->attribute, type, space, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(made >= 0);
        if (way != NO_ROWS && texts) H5Awrite(made, type, text);
        if (way != NO_ROWS && !texts) H5Awrite(made, H5T_NATIVE_INT64, one);
        H5Aclose(made);
        H5Tclose(type);
        H5Sclose(space);
    }
    H5Oclose(object);
    return 1;
}

/* Returns 0 where the way is none for the place. */
static int spoil(hid_t file, const struct place *place, enum way way) {
    if (place->attribute[0] != '\0') return spoil_attribute(file, place, way);
    if (place->is_group && way > SCALAR) return 0;
    if (way == GONE || way == GROUP || (way == SCALAR && place->is_group))
        assert_true(H5Ldelete(file, place->path, H5P_DEFAULT) >= 0);
    if (way == GONE) return 1;
    if (way == GROUP) {
        const hid_t list = group_list();
        H5Gclose(H5Gcreate2(file, place->path, H5P_DEFAULT, list, H5P_DEFAULT));
        H5Pclose(list);
    } else if (place->is_group) {
        const hid_t space = H5Screate(H5S_SCALAR);
        H5Dclose(H5Dcreate2(file, place->path, H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT,
                            H5P_DEFAULT));
        H5Sclose(space);
    } else if (way < ZEROS) {
        remake(file, place->path, way);
    } else {
        const hid_t dataset = H5Dopen2(file, place->path, H5P_DEFAULT);
        const int fills = fill(dataset, 0, way);
        H5Dclose(dataset);
        return fills;
    }
    return 1;
}

/* ---- what is said ---- */

static char *text;
static size_t text_size;
static FILE *out;

/* The text without the folder of this test. */
static void say(const struct sample *sample, const char *words) {
    const size_t length = strlen(sample->folder);
    while (*words != '\0') {
        if (strncmp(words, sample->folder, length) == 0 && words[length] == '/')
            words += length + 1;
        fputc(*words++, out);
    }
}

static void say_rows(const struct trace_image *image) {
    uint64_t hash = DRAWS_HASH;
    fprintf(out, "complete %d, seal %d;", image->complete, image->seal);
    for (uint32_t r = 0; r < image->run_count; r++) {
        const struct trace_run *run = &image->runs[r];
        fprintf(out, " %" PRIu64, run->updates);
        for (uint64_t k = 0; k < run->updates && k < 9; k++) {
            const struct record *row = trace_row(run, k);
            hash = draws_hash(hash, &row->step, sizeof row->step);
            hash = draws_hash(hash, row->reals, sizeof row->reals);
            hash = draws_hash(hash, row->integers, sizeof row->integers);
            hash = draws_hash(hash, row->digests, sizeof row->digests);
        }
    }
    fprintf(out, " [%08" PRIx64 "]", hash >> 32);
}

static void say_of(struct sample *sample, int foreign) {
    struct arena arena = ARENA_EMPTY;
    struct trace_image *image;
    struct foreign_report report;
    enum status status = reader_image(sample->path, 0, NULL, &arena, &image);
    fprintf(out, "%d: ", status);
    if (status != STATUS_OK)
        say(sample, status_text());
    else
        say_rows(image);
    if (status == STATUS_OK) {
        status = trace_rows_status(image);
        if (status != STATUS_OK) fprintf(out, " but ");
        if (status != STATUS_OK) say(sample, status_text());
    }
    if (foreign) {
        status = reader_report(sample->path, &arena, &report);
        if (status != STATUS_OK) {
            fprintf(out, "; check: %d", status);
        } else {
            for (uint32_t i = 0; i < report.problem_count; i++) {
                fprintf(out, "\n    ");
                say(sample, report.problems[i]);
            }
            for (uint32_t i = 0; i < report.note_count; i++) {
                fprintf(out, "\n    passed over: ");
                say(sample, report.notes[i]);
            }
        }
    }
    fputc('\n', out);
    arena_close(&arena);
}

/* How many of the ways a place meets: of a trace of another program, which anybody may write, most;
 * of what only says units fewest; and a seal refuses all alike. */
static uint32_t turns_of(const struct place *place, size_t i, enum kind kind) {
    const int label =
        strcmp(place->attribute, "units") == 0 || strcmp(place->attribute, "long_name") == 0;
    if (kind == SEALED) return i % 16 == 0;
    if (label) return i % 8 == 0;
    return kind == FOREIGN ? 5 : 1;
}

static void spoil_all(struct sample *sample, const char *name, enum kind kind) {
    struct places *const places = (struct places *)calloc(1, sizeof *places);
    size_t length, met = 0;
    assert_non_null(places);
    const char *const bytes = sample_bytes(&sample->arena, sample->path, &length);
    places->all = kind == FOREIGN;
    hid_t file = edit(sample->path);
    assert_true(H5Ovisit(file, H5_INDEX_NAME, H5_ITER_INC, see_object, places) >= 0);
    H5Fclose(file);
    fprintf(out, "== %s, %zu places\nas written ", name, places->count);
    say_of(sample, kind == FOREIGN);
    for (size_t i = 0; i < places->count; i++)
        for (uint32_t n = 0; n < turns_of(&places->at[i], i, kind); n++, met++) {
            const enum way way = (enum way)((7 * met + met / WAYS) % WAYS);
            sample_store(sample->path, bytes, length);
            file = edit(sample->path);
            const int spoilt = spoil(file, &places->at[i], way);
            assert_true(H5Fclose(file) >= 0);
            if (!spoilt) continue;
            fprintf(out, "%s%s%s %s ", places->at[i].path,
                    places->at[i].attribute[0] != '\0' ? " @" : "", places->at[i].attribute,
                    ways[way]);
            say_of(sample, kind == FOREIGN);
        }
    free(places);
}

/* ---- what a file is made of ---- */

/* A type: what kind it is, its bytes, its byte order and whether it has a sign. */
static void dump_type(hid_t type) {
    const H5T_class_t kind = H5Tget_class(type);
    fprintf(out, " type %d of %zu", (int)kind, H5Tget_size(type));
    if (kind == H5T_INTEGER || kind == H5T_FLOAT)
        fprintf(out, " order %d", (int)H5Tget_order(type));
    if (kind == H5T_INTEGER) fprintf(out, " sign %d", (int)H5Tget_sign(type));
    if (kind == H5T_STRING)
        fprintf(out, " set %d pad %d any %d", (int)H5Tget_cset(type), (int)H5Tget_strpad(type),
                H5Tis_variable_str(type) > 0);
}

static void dump_extent(hid_t space) {
    hsize_t shape[8], most[8];
    const int rank = H5Sget_simple_extent_dims(space, shape, most);
    for (int i = 0; i < rank; i++)
        fprintf(out, "%s%" PRIu64 "%s", i == 0 ? " [" : ",", (uint64_t)shape[i],
                most[i] == H5S_UNLIMITED ? "+" : "");
    if (rank > 0) fputc(']', out);
}

/* Texts whole as far as they fit a line, other bytes as one number. References and lists of them
 * are places in the file. */
static void dump_bytes(const unsigned char *bytes, size_t size, hid_t type) {
    const H5T_class_t kind = H5Tget_class(type);
    if (kind == H5T_STRING && H5Tis_variable_str(type) == 0 && size <= 100) {
        fputs(" \"", out);
        for (size_t i = 0; i < size && bytes[i] != 0; i++)
            fputc(bytes[i] < ' ' ? '?' : bytes[i], out);
        fputc('"', out);
    } else if (kind == H5T_STRING && H5Tis_variable_str(type) > 0) {
        const char *words;
        for (size_t i = 0; i + sizeof words <= size; i += sizeof words) {
            memcpy(&words, bytes + i, sizeof words);
            fprintf(out, " \"%.*s\"", words != NULL ? (int)strcspn(words, "\n") : 0,
                    words != NULL ? words : "");
        }
    } else if (kind == H5T_INTEGER || kind == H5T_FLOAT || kind == H5T_STRING) {
        fprintf(out, " %08" PRIx64, draws_hash(DRAWS_HASH, bytes, size) >> 32);
    }
}

static void dump_place(hid_t file, const struct place *place) {
    const hid_t object = H5Oopen(file, place->path, H5P_DEFAULT);
    const int is_attribute = place->attribute[0] != '\0';
    const hid_t held = is_attribute ? H5Aopen(object, place->attribute, H5P_DEFAULT) : object;
    fprintf(out, "%s%s%s", place->path, is_attribute ? " @" : "", place->attribute);
    if (is_attribute || !place->is_group) {
        const hid_t space = is_attribute ? H5Aget_space(held) : H5Dget_space(held);
        const hid_t type = is_attribute ? H5Aget_type(held) : H5Dget_type(held);
        const size_t count = (size_t)H5Sget_simple_extent_npoints(space);
        const size_t size = count * H5Tget_size(type);
        unsigned char *const bytes = (unsigned char *)calloc(size + 1, 1);
        assert_non_null(bytes);
        dump_type(type);
        dump_extent(space);
        assert_true((is_attribute
                         ? H5Aread(held, type, bytes)
                         : H5Dread(held, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes)) >= 0);
        dump_bytes(bytes, size, type);
        if (!is_attribute) {
            const hid_t list = H5Dget_create_plist(held);
            hsize_t chunk[8];
            const int rank = H5Pget_layout(list) == H5D_CHUNKED ? H5Pget_chunk(list, 8, chunk) : 0;
            for (int i = 0; i < rank; i++)
                fprintf(out, "%s%" PRIu64, i == 0 ? " in " : ",", (uint64_t)chunk[i]);
            H5Pclose(list);
        }
        if (H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) > 0)
            H5Dvlen_reclaim(type, space, H5P_DEFAULT, bytes);
        free(bytes);
        H5Tclose(type);
        H5Sclose(space);
    }
    fputc('\n', out);
    if (is_attribute) H5Aclose(held);
    H5Oclose(object);
}

/* Everything that stands in a file, in words that this test makes of it with HDF5 alone. */
static void dump(const char *path, const char *name, int all) {
    struct places *const places = (struct places *)calloc(1, sizeof *places);
    assert_non_null(places);
    places->all = all;
    const hid_t file = edit(path);
    assert_true(H5Ovisit(file, H5_INDEX_NAME, H5_ITER_INC, see_object, places) >= 0);
    fprintf(out, "== made by %s\n", name);
    for (size_t i = 0; i < places->count; i++)
        dump_place(file, &places->at[i]);
    H5Fclose(file);
    free(places);
}

/* ---- the files ---- */

static void must_call(int failed) {
    if (failed) fail_msg("%s", twinstep_trace_error());
}

static void write_foreign(const char *path) {
    static const uint64_t shape[2] = {2, 3};
    static const struct twinstep_trace_tensor tensors[] = {{"weight", "f32", 2, shape, 0},
                                                           {"bias", "f32", 1, shape, 1}};
    static const char *const named[] = {"forward", "optimize"};
    static const float weights[6] = {1, 2, 3, 4, 5, 6};
    const struct twinstep_trace_options options = {.writer = "test",
                                                   .writer_version = "7",
                                                   .configuration = "lr: 0.5\n",
                                                   .causes = "lr: schedule\n",
                                                   .rank = 1,
                                                   .world = 2,
                                                   .groups = 2,
                                                   .tensors = tensors,
                                                   .tensor_count = 2,
                                                   .phases = named,
                                                   .phase_count = 2,
                                                   .overwrite = 1};
    struct twinstep_trace *trace;
    must_call(twinstep_trace_open(path, &options, &trace));
    for (uint64_t step = 1; step <= UPDATES; step++) {
        for (int phase = 0; phase < 2; phase++)
            must_call(twinstep_trace_phase(trace, named[phase]));
        must_call(twinstep_trace_put(trace, "loss", 0.5));
        must_call(twinstep_trace_put(trace, "grad_norm", 1.5));
        must_call(twinstep_trace_put(trace, "skipped", 0.0));
        for (uint32_t i = 0; i < 2; i++) {
            must_call(twinstep_trace_put_group(trace, "lr_applied", i, 0.5));
            must_call(twinstep_trace_digest(trace, "digest_parameter", i, weights, 0, i ? 2 : 6));
        }
        must_call(twinstep_trace_bytes(trace, "digest_batch", weights, sizeof weights));
        must_call(twinstep_trace_end(trace, step));
    }
    must_call(twinstep_trace_close(trace, 1));
}

static void write_ours(struct sample *sample, int sealed) {
    static const unsigned char bytes[40] = {7};
    const int64_t version = 1;
    struct trace_run_plan runs[SAMPLE_RUNS];
    struct trace *trace;
    memcpy(runs, sample->plan.runs, sizeof runs);
    runs[1].snapshots =
        (struct trace_snapshot_plan){.bytes = sizeof bytes, .every = 2, .format = 1};
    sample->plan.runs = runs;
    require(trace_create(sample->path, &sample->plan, &sample->arena, &trace));
    require(trace_put_snapshot(trace, 1, 0, bytes));
    require(sample_put(sample, trace, 1, UPDATES));
    require(sample_put_late(sample, trace));
    require(trace_finish(trace));
    if (sealed) return;
    const hid_t file = edit(sample->path), space = H5Screate(H5S_SCALAR);
    assert_true(H5Adelete(file, "twinstep_trace") >= 0);
    const hid_t made =
        H5Acreate2(file, "twinstep_trace", H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(made, H5T_NATIVE_INT64, &version) >= 0);
    H5Aclose(made);
    H5Sclose(space);
    assert_true(H5Ldelete(file, "seal", H5P_DEFAULT) >= 0);
    H5Fclose(file);
}

static void compare_text(void) {
    const char *const written = getenv("TWINSTEP_WRITE_GOLDEN");
    char line[4096];
    const char *got = text;
    FILE *const file = fopen(written != NULL ? written : GOLDEN, written != NULL ? "w" : "r");
    assert_non_null(file);
    if (written != NULL) {
        assert_int_equal(fwrite(text, 1, text_size, file), text_size);
        assert_int_equal(fclose(file), 0);
        return;
    }
    while (fgets(line, sizeof line, file) != NULL) {
        const size_t length = strlen(line);
        if (strncmp(got, line, length) != 0)
            fail_msg("expected: %sgot:      %.*s", line, (int)strcspn(got, "\n"), got);
        got += length;
    }
    assert_int_equal(*got, '\0');
    fclose(file);
}

static void verify_objects(void **state) {
    (void)state;
    out = open_memstream(&text, &text_size);
    assert_non_null(out);
    for (int which = 0; which < KINDS; which++) {
        static const char *const names[] = {"of another program", "without seals", "with seals"};
        struct sample sample;
        sample_open(&sample, 2);
        if (which == FOREIGN)
            write_foreign(sample.path);
        else
            write_ours(&sample, which == SEALED);
        if (which != UNSEALED) dump(sample.path, names[which], which == FOREIGN);
        spoil_all(&sample, names[which], (enum kind)which);
        sample_close(&sample);
    }
    assert_int_equal(fclose(out), 0);
    compare_text();
    free(text);
}

int main(void) {
    H5dont_atexit(); /* as the trace does, but before the HDF5 calls of this file */
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
