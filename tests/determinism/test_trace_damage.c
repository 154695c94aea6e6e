/* SPDX-License-Identifier: Apache-2.0
 * labels: unit whole
 * The trace against what is not one: foreign files, truncation at many lengths, flipped bytes,
 * wrong shapes; and against a full disk. Reading damage must give an error with a text, or the
 * right values: never wrong rows of a run or pair, never a hang.
 *
 * Files are read in a child process, where a crash can be counted. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <hdf5.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "determinism/digest.h"
#include "determinism/trace/hdf5_layout.h"
#include "tests/base/helper_size.h"
#include "tests/determinism/helper_trace.h"

#define UPDATES 9

/* HDF5 leaks a few hundred bytes of its own when a write fails; the leak sanitizer reads these
 * suppressions. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libhdf5";
}

static void require(enum status status) {
    if (status != STATUS_OK) fail_msg("%s", status_text());
}

static void require_failure(enum status status, enum status expected, const char *text) {
    if (status != expected || strstr(status_text(), text) == NULL)
        fail_msg("expected status %d and \"%s\", got %d: %s", expected, text, status,
                 status_text());
}

enum outcome { READ_RIGHT = 0, READ_REFUSED, READ_FEWER, READ_WRONG, READ_OTHER, READ_CRASHED };

static int rows_match(struct sample *sample, const struct trace_image *image) {
    if (image->run_count != SAMPLE_RUNS || image->pair_count != 1) return 0;
    struct trace_image rows = *image;
    struct trace_image *whole;
    if (trace_open(sample->path, &sample->arena, &whole) != STATUS_OK) return 0;
    rows.attributes = whole->attributes;
    rows.attribute_count = whole->attribute_count;
    rows.arrays = whole->arrays;
    rows.array_count = whole->array_count;
    rows.texts = whole->texts;
    rows.text_count = whole->text_count;
    for (uint32_t r = 0; r < SAMPLE_RUNS; r++)
        rows.runs[r].plan = whole->runs[r].plan;
    rows.pairs[0].plan = whole->pairs[0].plan;
    return sample_differences(sample, &rows, UPDATES, 1) == 0;
}

/* Reads a damaged copy in the child. A flip in a name or text cannot be noticed (READ_OTHER). */
static enum outcome read_here(struct sample *sample, const char *path, int late) {
    struct trace_image *image;
    const enum status status = trace_open(path, &sample->arena, &image);
    if (status != STATUS_OK)
        return status_text()[0] == '\0' || status == STATUS_INTERNAL ? READ_WRONG : READ_REFUSED;
    if (sample_differences(sample, image, UPDATES, late) == 0) return READ_RIGHT;
    uint64_t found = 0;
    for (uint32_t r = 0; r < image->run_count; r++)
        found += image->runs[r].updates;
    if (found == 0) return READ_FEWER;
    return rows_match(sample, image) ? READ_OTHER : READ_WRONG;
}

static enum outcome read_in_child(struct sample *sample, const char *path, int late) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20);
        if (freopen("/dev/null", "w", stderr) == NULL) _exit(READ_WRONG);
        _exit((int)read_here(sample, path, late));
    }
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    return WIFEXITED(result) && WEXITSTATUS(result) < READ_CRASHED
               ? (enum outcome)WEXITSTATUS(result)
               : READ_CRASHED;
}

static void verify_foreign_files_are_named(void **state) {
    (void)state;
    static const struct {
        char bytes[64]; /* zero behind what is given */
        size_t length;
        const char *text;
    } cases[] = {
        {"", 0, "empty file"},
        {"steps: 5\n", 9, "not HDF5"},
        {"\x89HDF\r\n\x1a\n", 8, "truncated"},
        {"\x89HD", 3, "truncated"},
        {"\x89HDF\r\n\x1a\n", 48, "superblock version 0"},
    };
    struct sample sample;
    struct trace_image *image;
    sample_open(&sample, 1);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        sample_store(sample.path, cases[i].bytes, cases[i].length);
        require_failure(trace_open(sample.path, &sample.arena, &image), STATUS_INPUT,
                        cases[i].text);
    }
    unlink(sample.path);
    assert_int_equal(mkfifo(sample.path, 0600), 0);
    require_failure(trace_open(sample.path, &sample.arena, &image), STATUS_INPUT,
                    "expected a trace, got a named pipe");
    require_failure(trace_open("/dev/zero", &sample.arena, &image), STATUS_INPUT,
                    "expected a trace, got a device");
    sample_close(&sample);
}

static hid_t latest(void) {
    const hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    assert_true(H5Pset_libver_bounds(list, H5F_LIBVER_V110, H5F_LIBVER_V110) >= 0);
    return list;
}

static void put_version(hid_t where, hid_t type, int64_t version) {
    const hid_t space = H5Screate(H5S_SCALAR);
    if (H5Aexists(where, "twinstep_trace") > 0) H5Adelete(where, "twinstep_trace");
    const hid_t attribute =
        H5Acreate2(where, "twinstep_trace", type, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(attribute, H5T_NATIVE_INT64, &version) >= 0);
    H5Aclose(attribute);
    H5Sclose(space);
}

static void verify_other_hdf5_is_named(void **state) {
    (void)state;
    struct sample sample;
    struct trace_image *image;
    sample_open(&sample, 1);
    const hid_t list = latest();
    hid_t file = H5Fcreate(sample.path, H5F_ACC_TRUNC, H5P_DEFAULT, list);
    H5Fclose(file);
    require_failure(trace_open(sample.path, &sample.arena, &image), STATUS_INPUT,
                    "without twinstep's attributes");
    file = H5Fcreate(sample.path, H5F_ACC_TRUNC, H5P_DEFAULT, list);
    put_version(file, H5T_STD_I64LE, TRACE_VERSION + 1);
    H5Fclose(file);
    require_failure(trace_open(sample.path, &sample.arena, &image), STATUS_INPUT,
                    "trace version 4");
    file = H5Fcreate(sample.path, H5F_ACC_TRUNC, H5P_DEFAULT, list);
    put_version(file, H5T_STD_I8LE, TRACE_VERSION);
    H5Fclose(file);
    require_failure(trace_open(sample.path, &sample.arena, &image), STATUS_INPUT, "one integer");
    H5Pclose(list);
    sample_close(&sample);
}

/* NeXus readers open the run that the root names. */
static void verify_the_first_run_is_the_default(void **state) {
    (void)state;
    struct sample sample;
    char text[64] = "";
    sample_open(&sample, 1);
    require(sample_write(&sample, sample.path, 1));
    const hid_t file = H5Fopen(sample.path, H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t attribute = H5Aopen(file, "default", H5P_DEFAULT);
    const hid_t type = H5Aget_type(attribute);
    assert_true(H5Tget_size(type) < sizeof text);
    assert_true(H5Aread(attribute, type, text) >= 0);
    assert_string_equal(text, "runs/baseline");
    H5Tclose(type);
    H5Aclose(attribute);
    H5Fclose(file);
    sample_close(&sample);
}

/* Makes a file what a twinstep without seals would have written. */
static void make_earlier(hid_t file) {
    put_version(file, H5T_STD_I64LE, 1);
    assert_true(H5Ldelete(file, "seal", H5P_DEFAULT) >= 0);
}

/* Replaces a dataset of a finished trace by one of another type or shape. */
struct swap {
    const char *path;
    int rank;
    hsize_t shape[2];
    int of_floats; /* f32, else f64 */
    const char *text;
};

static void replace(const char *file_name, const struct swap *swap) {
    const hid_t list = latest();
    const hid_t file = H5Fopen(file_name, H5F_ACC_RDWR, list);
    assert_true(file >= 0);
    const hid_t made = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[2] = {64, 64};
    const hsize_t limit[2] = {H5S_UNLIMITED, H5S_UNLIMITED};
    H5Pset_chunk(made, swap->rank, chunk);
    const hid_t space = H5Screate_simple(swap->rank, swap->shape, limit);
    assert_true(H5Ldelete(file, swap->path, H5P_DEFAULT) >= 0);
    const hid_t type = swap->of_floats ? H5T_IEEE_F32LE : H5T_IEEE_F64LE;
    const hid_t dataset = H5Dcreate2(file, swap->path, type, space, H5P_DEFAULT, made, H5P_DEFAULT);
    assert_true(dataset >= 0);
    make_earlier(file); /* else the seal would refuse all of them */
    H5Dclose(dataset);
    H5Sclose(space);
    H5Pclose(made);
    H5Fclose(file);
    H5Pclose(list);
}

static void verify_wrong_shapes_are_named(void **state) {
    (void)state;
    static const struct swap swaps[] = {
        {"runs/test/steps/loss", 1, {UPDATES, 0}, 1, "type and shape"},
        {"runs/test/steps/loss", 2, {UPDATES, 1}, 0, "type and shape"},
        {"runs/test/steps/loss", 1, {UPDATES - 1, 0}, 0, "8 updates of 9"},
        {"runs/test/steps/loss", 1, {UPDATES, 0}, 0, "do not match its check"},
        {"runs/test/steps/lr_applied", 2, {UPDATES, 3}, 0, "type and shape"},
        {"runs/test/steps/step", 1, {UPDATES, 0}, 0, "type and shape"},
        {"runs/test/steps/tensors/tensor", 1, {2, 0}, 0, "type and shape"},
        {"runs/test/steps/ledger/seed", 1, {3, 0}, 0, "type and shape"},
        {"runs/test/steps/ledger/words", 2, {UPDATES, 3}, 0, "type and shape"},
        {"pairs/baseline-test/steps/max_ulp", 1, {UPDATES, 0}, 0, "type and shape"},
        {"notes", 2, {1000000000, 1000000000}, 0, NULL}, /* not a text any more */
    };
    for (size_t i = 0; i < COUNT_OF(swaps); i++) {
        struct sample sample;
        struct trace_image *image;
        sample_open(&sample, 2);
        require(sample_write(&sample, sample.path, UPDATES));
        replace(sample.path, &swaps[i]);
        if (swaps[i].text != NULL)
            require_failure(trace_open(sample.path, &sample.arena, &image), STATUS_INPUT,
                            swaps[i].text);
        else
            require(trace_open(sample.path, &sample.arena, &image));
        sample_close(&sample);
    }
}

/* The columns that the earlier twinstep of the test below did not have. */
static const char *const later[] = {"digest_weights", "digest_lr", "travel", "wd_applied",
                                    "optimizer_t"};

static int is_later(const struct layout_column *column) {
    for (size_t i = 0; i < COUNT_OF(later); i++)
        if (strcmp(column->text->name, later[i]) == 0) return 1;
    return 0;
}

/* Writes `check` of one run as an earlier twinstep did: without digest_weights and the ledger. */
static void put_earlier_checks(hid_t file, struct sample *sample, uint32_t run) {
    struct record_shape shape = sample->plan.runs[run].shape;
    struct layout layout;
    uint8_t checks[UPDATES][DIGEST_BYTES], row[4096];
    char path[128];
    shape.consumers = shape.streams = shape.ranks = 0;
    layout_init_run(&layout, &shape, 0);
    assert_true(layout.row_bytes <= sizeof row);
    for (uint32_t c = layout.count; c-- > 0;)
        if (is_later(&layout.columns[c])) layout_drop(&layout, c);
    for (uint64_t i = 0; i < UPDATES; i++) {
        struct digest check;
        require(layout_pack(&layout, sample_record(sample, run, i + 1), row));
        digest_bytes("row", row, layout.row_bytes, &check);
        memcpy(checks[i], check.byte, sizeof check.byte);
    }
    snprintf(path, sizeof path, "runs/%s/steps/check", sample->plan.runs[run].id);
    const hid_t dataset = H5Dopen2(file, path, H5P_DEFAULT);
    assert_true(H5Dwrite(dataset, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, checks) >= 0);
    H5Dclose(dataset);
}

static hid_t follow(const char *name, hid_t where, const void *data, size_t size, hid_t access,
                    hid_t transfer) {
    (void)name, (void)data, (void)size, (void)access, (void)transfer;
    return H5Oopen(where, "/runs/baseline/steps/loss", H5P_DEFAULT); /* a reader would get there */
}

/* A link of a kind that a program has registered leads where that program's code says. */
static void verify_links_of_users_are_refused(void **state) {
    (void)state;
    const H5L_class_t kind = {.version = H5L_LINK_CLASS_T_VERS,
                              .id = (H5L_type_t)(H5L_TYPE_UD_MIN + 100),
                              .comment = "a link of this test",
                              .trav_func = follow};
    static const char *const places[] = {"runs/test/steps/loss", "runs/test", "extra"};
    assert_true(H5Lregister(&kind) >= 0);
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        struct sample sample;
        struct trace_image *image;
        sample_open(&sample, 2);
        require(sample_write(&sample, sample.path, UPDATES));
        const hid_t list = latest();
        const hid_t file = H5Fopen(sample.path, H5F_ACC_RDWR, list);
        if (i < 2) assert_true(H5Ldelete(file, places[i], H5P_DEFAULT) >= 0);
        assert_true(H5Lcreate_ud(file, places[i], kind.id, "x", 1, H5P_DEFAULT, H5P_DEFAULT) >= 0);
        make_earlier(file);
        H5Fclose(file);
        H5Pclose(list);
        require_failure(trace_open(sample.path, &sample.arena, &image), STATUS_INPUT,
                        "got a user's link");
        sample_close(&sample);
    }
    assert_true(H5Lunregister(kind.id) >= 0);
}

/* Gives an attribute of text another value. */
static void put_text(hid_t file, const char *path, const char *name, const char *text) {
    const hid_t group = H5Oopen(file, path, H5P_DEFAULT), space = H5Screate(H5S_SCALAR);
    const hid_t type = H5Tcopy(H5T_C_S1);
    assert_true(group >= 0 && H5Tset_size(type, strlen(text)) >= 0);
    H5Tset_cset(type, H5T_CSET_UTF8);
    H5Tset_strpad(type, H5T_STR_NULLPAD);
    if (H5Aexists(group, name) > 0) assert_true(H5Adelete(group, name) >= 0);
    const hid_t made = H5Acreate2(group, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(made >= 0 && H5Awrite(made, type, text) >= 0);
    H5Aclose(made);
    H5Tclose(type);
    H5Sclose(space);
    H5Oclose(group);
}

/* Renames the first tensor or the last one: a reader looks at every name of a list. */
static void put_tensor_name(hid_t file, const char *name, int last) {
    char cells[64][256] = {{0}};
    const hid_t names = H5Dopen2(file, "runs/test/steps/tensors/tensor", H5P_DEFAULT);
    const hid_t type = H5Dget_type(names), space = H5Dget_space(names);
    const size_t size = H5Tget_size(type);
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    assert_true(count > 1 && (size_t)count <= COUNT_OF(cells));
    assert_true(size >= strlen(name) && size <= sizeof cells[0]);
    char *const cell = &cells[0][0];
    assert_true(H5Dread(names, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, cell) >= 0);
    char *const place = cell + (last ? ((size_t)count - 1) * size : 0);
    memset(place, 0, size);
    memcpy(place, name, strlen(name));
    assert_true(H5Dwrite(names, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, cell) >= 0);
    H5Sclose(space);
    H5Tclose(type);
    H5Dclose(names);
}

/* Verbs print names of runs, arms, tensors, experiments and causes inside of lines, so that one
 * with a line end could say "chain sound" in a line of its own. */
static void verify_names_make_no_lines(void **state) {
    (void)state;
    static const char *const names[] = {"a\nb", "\033[1m", "\xc2\x9b", "\xff", "a\tb"};
    for (size_t i = 0; i < 6 * COUNT_OF(names); i++) {
        const char *const name = names[i / 6];
        char path[64];
        struct sample sample;
        struct trace_image *image;
        sample_open(&sample, 2);
        require(sample_write(&sample, sample.path, UPDATES));
        const hid_t list = latest();
        const hid_t file = H5Fopen(sample.path, H5F_ACC_RDWR, list);
        assert_true(file >= 0);
        snprintf(path, sizeof path, "runs/%s", name);
        if (i % 6 == 0) assert_true(H5Lmove(file, "runs/test", file, path, H5P_DEFAULT, 0) >= 0);
        if (i % 6 == 1) put_text(file, "runs/test", "arm", name);
        if (i % 6 == 2) put_tensor_name(file, name, 0);
        if (i % 6 == 5) put_tensor_name(file, name, 1);
        if (i % 6 == 3) put_text(file, "/", "name", name);
        if (i % 6 == 4) put_text(file, "attribution", "factor_0", name);
        make_earlier(file);
        H5Fclose(file);
        H5Pclose(list);
        require_failure(trace_open(sample.path, &sample.arena, &image), STATUS_INPUT,
                        "expected a name of printable characters");
        sample_close(&sample);
    }
}

/* What later versions added may be missing, since it was not recorded; a column that was lost is
 * damage. */
static void verify_earlier_trace_is_read(void **state) {
    (void)state;
    static const uint8_t none[RECORD_DIGEST_BYTES] = {0};
    struct sample sample;
    struct trace_image *image;
    sample_open(&sample, 2);
    sample.plan.run_count = 2;
    struct trace *trace;
    require(trace_create(sample.path, &sample.plan, &sample.arena, &trace));
    for (uint64_t step = 1; step <= UPDATES; step++)
        for (uint32_t run = 0; run < 2; run++)
            require(trace_put_record(trace, run, sample_record(&sample, run, step)));
    require(trace_finish(trace));
    const hid_t list = latest();
    const hid_t file = H5Fopen(sample.path, H5F_ACC_RDWR, list);
    make_earlier(file);
    for (uint32_t run = 0; run < 2; run++) {
        char path[128];
        snprintf(path, sizeof path, "runs/%s", sample.plan.runs[run].id);
        const hid_t group = H5Gopen2(file, path, H5P_DEFAULT);
        assert_true(H5Adelete(group, "groups") >= 0);
        for (size_t i = 0; i < COUNT_OF(later); i++) {
            snprintf(path, sizeof path, "steps/%s", later[i]);
            assert_true(H5Ldelete(group, path, H5P_DEFAULT) >= 0);
        }
        assert_true(H5Ldelete(group, "steps/ledger", H5P_DEFAULT) >= 0);
        assert_true(H5Ldelete(group, "steps/streams", H5P_DEFAULT) >= 0);
        assert_true(H5Ldelete(group, "steps/ranks", H5P_DEFAULT) >= 0);
        H5Gclose(group);
        put_earlier_checks(file, &sample, run);
    }
    H5Fclose(file);
    require(trace_open(sample.path, &sample.arena, &image));
    for (uint32_t run = 0; run < 2; run++) {
        const struct trace_run *read = &image->runs[run];
        assert_int_equal(read->plan.shape.consumers, 0);
        assert_string_equal(read->plan.groups, "");
        assert_int_equal(read->updates, UPDATES);
        for (uint64_t i = 0; i < UPDATES; i++) {
            const struct record *wanted = sample_record(&sample, run, i + 1);
            assert_memory_equal(read->records[i].digests[DIGEST_WEIGHTS], none, sizeof none);
            assert_true(isnan(read->records[i].reals[REAL_TRAVEL]));
            assert_true(isnan(read->records[i].groups[1][GROUP_WD_APPLIED]));
            assert_int_equal(read->records[i].integers[INTEGER_OPTIMIZER_T], -1);
            assert_memory_equal(read->records[i].digests[DIGEST_ROOT], wanted->digests[DIGEST_ROOT],
                                sizeof none);
        }
    }
    const hid_t again = H5Fopen(sample.path, H5F_ACC_RDWR, list);
    assert_true(H5Ldelete(again, "runs/test/steps/digest_state", H5P_DEFAULT) >= 0);
    H5Fclose(again);
    H5Pclose(list);
    require_failure(trace_open(sample.path, &sample.arena, &image), STATUS_INPUT,
                    "do not match its check");
    sample_close(&sample);
}

/* An extent far beyond the file's end must take no memory. */
static void verify_absurd_size_is_refused(void **state) {
    (void)state;
    struct sample sample;
    struct trace_image *image;
    sample_open(&sample, 2);
    require(sample_write(&sample, sample.path, UPDATES));
    const hid_t list = latest();
    const hid_t file = H5Fopen(sample.path, H5F_ACC_RDWR, list);
    const hid_t step = H5Dopen2(file, "runs/test/steps/step", H5P_DEFAULT);
    const hsize_t huge = (hsize_t)1 << 50;
    assert_true(H5Dset_extent(step, &huge) >= 0);
    H5Dclose(step);
    H5Fclose(file);
    H5Pclose(list);
    const size_t before = sample.arena.total;
    require_failure(trace_open(sample.path, &sample.arena, &image), STATUS_INPUT,
                    "more bytes than the file has");
    assert_true(sample.arena.total < before + ((size_t)64 << 20));
    sample_close(&sample);
}

static void count_outcomes(const char *what, const int counts[READ_CRASHED + 1]) {
    print_message("%s: %d right, %d refused, %d without updates, %d other name or text, %d wrong, "
                  "%d crashed in HDF5\n",
                  what, counts[READ_RIGHT], counts[READ_REFUSED], counts[READ_FEWER],
                  counts[READ_OTHER], counts[READ_WRONG], counts[READ_CRASHED]);
}

/* Makes the .part of a run that was killed, whose superblock records no end. */
static void kill_a_run(struct sample *sample) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct trace *trace;
        if (trace_create(sample->path, &sample->plan, &sample->arena, &trace) != STATUS_OK)
            _exit(1);
        if (sample_put(sample, trace, 1, UPDATES) != STATUS_OK) _exit(2);
        kill(getpid(), SIGKILL);
    }
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFSIGNALED(result));
}

static void truncate_everywhere(struct sample *sample, const char *path, int late) {
    size_t length;
    char copy[512];
    int counts[READ_CRASHED + 1] = {0};
    const char *bytes = sample_bytes(&sample->arena, path, &length);
    snprintf(copy, sizeof copy, "%s/copy", sample->folder);
    for (size_t i = 0; i < 90; i += helper_size(3, 3, 1)) {
        const size_t cut = i < 50 ? i * 8 : length * (i - 50) / 40;
        sample_store(copy, bytes, cut);
        const enum outcome outcome = read_in_child(sample, copy, late);
        counts[outcome]++;
        if (late) assert_int_equal(outcome, READ_REFUSED);
    }
    count_outcomes(late ? "finished file truncated" : "killed file truncated", counts);
    assert_int_equal(counts[READ_WRONG] + counts[READ_CRASHED] + counts[READ_OTHER], 0);
}

static void verify_truncation(void **state) {
    (void)state;
    struct sample sample;
    sample_open(&sample, 4);
    kill_a_run(&sample);
    truncate_everywhere(&sample, sample.part, 0);
    sample.plan.overwrite = 1;
    require(sample_write(&sample, sample.path, UPDATES));
    truncate_everywhere(&sample, sample.path, 1);
    sample_close(&sample);
}

static void verify_flipped_bytes(void **state) {
    (void)state;
    struct sample sample;
    size_t length;
    char copy[512];
    int counts[READ_CRASHED + 1] = {0};
    sample_open(&sample, 4);
    sample.plan.attribute_count = 0; /* or most flips would hit the long one */
    require(sample_write(&sample, sample.path, UPDATES));
    const char *read = sample_bytes(&sample.arena, sample.path, &length);
    char *bytes;
    require(arena_text(&sample.arena, read, length, &bytes));
    snprintf(copy, sizeof copy, "%s/copy", sample.folder);
    srand(5);
    const size_t flips = helper_size(45, 45, 300);
    for (size_t i = 0; i < flips; i++) {
        const size_t at = ((size_t)rand() << 16 ^ (size_t)rand()) % (i < flips / 3 ? 4096 : length);
        const char bit = (char)(1 << rand() % 8);
        bytes[at] = (char)(bytes[at] ^ bit);
        sample_store(copy, bytes, length);
        bytes[at] = (char)(bytes[at] ^ bit);
        counts[read_in_child(&sample, copy, 1)]++;
    }
    count_outcomes("one bit flipped", counts);
    assert_int_equal(counts[READ_WRONG], 0);
    assert_true(counts[READ_REFUSED] > 0 && counts[READ_RIGHT] > 0);
    sample_close(&sample);
}

/* Returns the length of the object header at `header`, which is the part of the object that each
 * update rewrites in place (HDF5 file format specification 3.0, IV.A.1.b). */
static size_t header_length(const uint8_t *header) {
    const unsigned flags = header[5];
    size_t at = 6;
    if ((flags & 0x20u) != 0) at += 16; /* times */
    if ((flags & 0x10u) != 0) at += 4;  /* limits of attributes */
    const size_t width = (size_t)1 << (flags & 3u);
    size_t length = 0;
    assert_memory_equal(header, "OHDR\2", 5);
    for (size_t i = 0; i < width; i++)
        length |= (size_t)header[at + i] << (8 * i);
    return at + width + length + 4; /* checksum */
}

struct headers {
    const uint8_t *bytes;
    int growing;
};

static herr_t check_header(hid_t file, const char *name, const H5O_info_t *info, void *data) {
    struct headers *headers = (struct headers *)data;
    if (info->type != H5O_TYPE_DATASET) return 0;
    const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
    const hid_t list = H5Dget_create_plist(dataset);
    const int growing = H5Pget_layout(list) == H5D_CHUNKED;
    H5Pclose(list);
    H5Dclose(dataset);
    const haddr_t last = info->addr + header_length(headers->bytes + info->addr) - 1;
    if (growing && info->addr / 4096 != last / 4096) fail_msg("%s crosses a page", name);
    headers->growing += growing;
    return 0;
}

/* The kernel may cut a write of a process that is killed, but only between pages; so no header that
 * is rewritten in place may cross one. */
static void verify_no_header_crosses_a_page(void **state) {
    (void)state;
    struct sample sample;
    struct headers headers = {.growing = 0};
    size_t length;
    sample_open(&sample, 4);
    require(sample_write(&sample, sample.path, UPDATES));
    headers.bytes = (const uint8_t *)sample_bytes(&sample.arena, sample.path, &length);
    const hid_t file = H5Fopen(sample.path, H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(file >= 0);
    assert_true(H5Ovisit(file, H5_INDEX_NAME, H5_ITER_INC, check_header, &headers) >= 0);
    H5Fclose(file);
    assert_true(headers.growing > 100);
    sample_close(&sample);
}

/* A limit on the file's size stands for a full disk: writes fail with "File too large". */
enum limited { LIMITED_WHOLE = 20, LIMITED_CREATING, LIMITED_BUG, LIMITED_PUT /* + updates put */ };

#define LIMITS 140

static int write_limited(struct sample *sample, size_t limit) {
    const struct rlimit size = {limit, limit};
    struct trace *trace;
    int put = 0;
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &size) != 0) return LIMITED_BUG;
    enum status status = trace_create(sample->path, &sample->plan, &sample->arena, &trace);
    const int created = status == STATUS_OK;
    for (uint64_t step = 1; step <= UPDATES && status == STATUS_OK; step++) {
        status = sample_put(sample, trace, step, step);
        put += status == STATUS_OK;
    }
    if (created && status == STATUS_OK) status = sample_put_late(sample, trace);
    if (created && status == STATUS_OK)
        status = trace_finish(trace);
    else if (created)
        trace_abandon(trace);
    if (status == STATUS_OK) return LIMITED_WHOLE;
    if (status != STATUS_IO || strstr(status_text(), "File too large") == NULL) return LIMITED_BUG;
    return created ? LIMITED_PUT + put : LIMITED_CREATING;
}

static int write_limited_in_child(struct sample *sample, size_t limit) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* cmocka's handler would run the other tests here */
        const int result = write_limited(sample, limit);
        if (result == LIMITED_BUG) fprintf(stderr, "limit %zu: %s\n", limit, status_text());
        arena_close(&sample->arena);
        exit(result); /* with whatever HDF5 does at exit: it must survive that too */
    }
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    if (!WIFEXITED(result)) fail_msg("limit %zu: killed by signal %d", limit, WTERMSIG(result));
    return WEXITSTATUS(result);
}

/* Every update whose put succeeded before the disk was full must be in the .part. */
static void check_part(struct sample *sample, size_t limit, int put) {
    struct trace_image *image;
    if (trace_open(sample->part, &sample->arena, &image) != STATUS_OK)
        fail_msg("limit %zu: %s", limit, status_text());
    const uint64_t updates = sample_cut(image);
    assert_in_range(updates, put, put + 1);
    assert_int_equal(image->complete, 0);
    if (updates == UPDATES) return; /* arrays and texts may be there, too */
    assert_int_equal(sample_differences(sample, image, updates, 0), 0);
}

static void verify_full_disk(void **state) {
    (void)state;
    struct sample sample;
    int creating = 0, tried = 0;
    sample_open(&sample, 4);
    require(sample_write(&sample, sample.path, UPDATES));
    size_t length;
    const char *whole = sample_bytes(&sample.arena, sample.path, &length);
    for (size_t i = 0; i < LIMITS; i += helper_size(9, 9, 1)) {
        unlink(sample.path);
        unlink(sample.part);
        /* over the whole length, then close below it: the failure may come with the close */
        const size_t limit = i < 100 ? length * i / 100 : length - 1 - (i - 100) * 101;
        const int result = write_limited_in_child(&sample, limit);
        assert_int_not_equal(access(sample.path, F_OK), 0); /* never half a target */
        tried++;
        creating += result == LIMITED_CREATING;
        if (result == LIMITED_CREATING)
            assert_int_not_equal(access(sample.part, F_OK), 0);
        else
            check_part(&sample, limit, result - LIMITED_PUT);
    }
    print_message("%d limits: %d while creating, %d later, each with a part that has its updates\n",
                  tried, creating, tried - creating);
    unlink(sample.path);
    unlink(sample.part);
    assert_int_equal(write_limited_in_child(&sample, length), LIMITED_WHOLE);
    size_t now;
    const char *bytes = sample_bytes(&sample.arena, sample.path, &now);
    assert_int_equal(now, length);
    assert_memory_equal(bytes, whole, length);
    sample_close(&sample);
}

int main(void) {
    H5dont_atexit(); /* as the trace does, but before the HDF5 calls of this file */
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_foreign_files_are_named),
        cmocka_unit_test(verify_other_hdf5_is_named),
        cmocka_unit_test(verify_the_first_run_is_the_default),
        cmocka_unit_test(verify_wrong_shapes_are_named),
        cmocka_unit_test(verify_links_of_users_are_refused),
        cmocka_unit_test(verify_names_make_no_lines),
        cmocka_unit_test(verify_earlier_trace_is_read),
        cmocka_unit_test(verify_absurd_size_is_refused),
        cmocka_unit_test(verify_truncation),
        cmocka_unit_test(verify_flipped_bytes),
        cmocka_unit_test(verify_no_header_crosses_a_page),
        cmocka_unit_test(verify_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
