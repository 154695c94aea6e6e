/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short whole
 * The writer of traces, of whose calls of HDF5 one fails at a time, at each place of the source
 * from which one is made: the writer says so, and no file gets the trace's name. The same of the
 * recovery of a file that was left behind. The linker puts the failure in front of the library.
 * Calls that flush rows are those of tests/determinism/test_trace.c. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <hdf5.h>
#include <hdf5_hl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/base/helper_size.h"
#include "tests/determinism/helper_trace.h"

#define UPDATES 2
#define SITES 400

/* The places from which calls were made, each with the first and the last call; all calls are
 * counted together. */
static struct {
    const void *site;
    int first, last;
} sites[SITES];
static int site_count, calls, failing, is_met, is_watched, untold;
static pid_t writer;

static int fails(const void *site) {
    int i = 0;
    if (!is_watched || getpid() != writer) return 0; /* a child reads what others wrote */
    calls++;
    if (failing != 0) {
        if (calls != failing) return 0;
        is_met = 1;
        return 1;
    }
    while (i < site_count && sites[i].site != site)
        i++;
    if (i == site_count) {
        assert_true(site_count < SITES);
        sites[site_count].site = site;
        sites[site_count++].first = calls;
    }
    sites[i].last = calls;
    return 0;
}

/* Calls whose name hangs on the version of HDF5 (H5Literate, H5Lget_info) are left out. */
#define WRAP(type, name, parameters, arguments)                                                    \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters {                                                                \
        return fails(__builtin_return_address(0)) ? (type)-1 : __real_##name arguments;            \
    }
WRAP(hid_t, H5Screate, (H5S_class_t c), (c))
WRAP(hid_t, H5Screate_simple, (int r, const hsize_t *n, const hsize_t *m), (r, n, m))
WRAP(hid_t, H5Pcreate, (hid_t c), (c))
WRAP(herr_t, H5Pset_obj_track_times, (hid_t l, hbool_t t), (l, t))
WRAP(herr_t, H5Pset_link_creation_order, (hid_t l, unsigned o), (l, o))
WRAP(herr_t, H5Pset_attr_creation_order, (hid_t l, unsigned o), (l, o))
WRAP(herr_t, H5Pset_libver_bounds, (hid_t l, H5F_libver_t a, H5F_libver_t b), (l, a, b))
WRAP(herr_t, H5Pset_fill_value, (hid_t l, hid_t t, const void *v), (l, t, v))
WRAP(herr_t, H5Pset_fclose_degree, (hid_t l, H5F_close_degree_t d), (l, d))
WRAP(herr_t, H5Pset_chunk_cache, (hid_t l, size_t n, size_t b, double w), (l, n, b, w))
WRAP(herr_t, H5Pset_chunk, (hid_t l, int r, const hsize_t *n), (l, r, n))
WRAP(herr_t, H5Pset_alloc_time, (hid_t l, H5D_alloc_time_t t), (l, t))
WRAP(herr_t, H5Pset_alignment, (hid_t l, hsize_t t, hsize_t a), (l, t, a))
WRAP(herr_t, H5Pset_mdc_config, (hid_t l, H5AC_cache_config_t *c), (l, c))
WRAP(herr_t, H5Pget_mdc_config, (hid_t l, H5AC_cache_config_t *c), (l, c))
WRAP(herr_t, H5Tinsert, (hid_t t, const char *n, size_t o, hid_t m), (t, n, o, m))
WRAP(hid_t, H5Tvlen_create, (hid_t t), (t))
WRAP(hid_t, H5Tcreate, (H5T_class_t c, size_t n), (c, n))
WRAP(hid_t, H5Tcopy, (hid_t t), (t))
WRAP(herr_t, H5Tset_strpad, (hid_t t, H5T_str_t p), (t, p))
WRAP(herr_t, H5Tset_size, (hid_t t, size_t n), (t, n))
WRAP(herr_t, H5Tset_cset, (hid_t t, H5T_cset_t c), (t, c))
WRAP(herr_t, H5Rcreate, (void *r, hid_t l, const char *n, H5R_type_t t, hid_t s), (r, l, n, t, s))
WRAP(hid_t, H5Gopen2, (hid_t o, const char *n, hid_t l), (o, n, l))
WRAP(hid_t, H5Gcreate2, (hid_t o, const char *n, hid_t a, hid_t b, hid_t c), (o, n, a, b, c))
WRAP(hid_t, H5Dopen2, (hid_t o, const char *n, hid_t l), (o, n, l))
WRAP(hid_t, H5Dcreate2, (hid_t o, const char *n, hid_t t, hid_t s, hid_t a, hid_t b, hid_t c),
     (o, n, t, s, a, b, c))
WRAP(herr_t, H5Dset_extent, (hid_t d, const hsize_t *n), (d, n))
WRAP(hid_t, H5Dget_space, (hid_t d), (d))
WRAP(hid_t, H5Dget_type, (hid_t d), (d))
WRAP(herr_t, H5Dread, (hid_t d, hid_t t, hid_t m, hid_t f, hid_t l, void *out),
     (d, t, m, f, l, out))
WRAP(herr_t, H5Dwrite, (hid_t d, hid_t t, hid_t m, hid_t f, hid_t l, const void *v),
     (d, t, m, f, l, v))
WRAP(herr_t, H5Sselect_hyperslab,
     (hid_t s, H5S_seloper_t o, const hsize_t *start, const hsize_t *stride, const hsize_t *count,
      const hsize_t *block),
     (s, o, start, stride, count, block))
WRAP(hid_t, H5Acreate2, (hid_t o, const char *n, hid_t t, hid_t s, hid_t a, hid_t b),
     (o, n, t, s, a, b))
WRAP(herr_t, H5Awrite, (hid_t a, hid_t t, const void *v), (a, t, v))
WRAP(hid_t, H5Aopen, (hid_t o, const char *n, hid_t l), (o, n, l))
WRAP(herr_t, H5Aread, (hid_t a, hid_t t, void *v), (a, t, v))
WRAP(hid_t, H5Aget_type, (hid_t a), (a))
WRAP(hid_t, H5Aget_space, (hid_t a), (a))
WRAP(htri_t, H5Aexists, (hid_t o, const char *n), (o, n))
WRAP(htri_t, H5Lexists, (hid_t o, const char *n, hid_t l), (o, n, l))
WRAP(herr_t, H5Lcreate_soft, (const char *t, hid_t o, const char *n, hid_t a, hid_t b),
     (t, o, n, a, b))
WRAP(herr_t, H5Lget_val, (hid_t o, const char *n, void *v, size_t s, hid_t l), (o, n, v, s, l))
WRAP(hid_t, H5Oopen, (hid_t o, const char *n, hid_t l), (o, n, l))
WRAP(herr_t, H5Aiterate2,
     (hid_t g, H5_index_t t, H5_iter_order_t o, hsize_t *n, H5A_operator2_t f, void *c),
     (g, t, o, n, f, c))
WRAP(hid_t, H5Fopen, (const char *n, unsigned f, hid_t l), (n, f, l))
WRAP(hid_t, H5Fcreate, (const char *n, unsigned f, hid_t a, hid_t b), (n, f, a, b))
WRAP(herr_t, H5Fget_vfd_handle, (hid_t f, hid_t l, void **h), (f, l, h))
WRAP(herr_t, H5Fstart_swmr_write, (hid_t f), (f))
WRAP(herr_t, H5DSset_scale, (hid_t d, const char *n), (d, n))

/* ---- failures ---- */

/* Runs `write` with that call failing, or none (0), and holds what came of it against what a file
 * may be then. */
static void run(struct sample *sample, enum status (*write)(struct sample *), int number) {
    struct arena arena = ARENA_EMPTY;
    struct trace_image *image;
    calls = is_met = is_watched = 0;
    failing = number;
    const enum status status = write(sample);
    is_watched = 0;
    const int is_there = access(sample->path, F_OK) == 0;
    assert_int_equal(is_met, number > 0);
    if (status == STATUS_OK) {
        if (!is_there) fail_msg("call %d: no trace, and nobody told", number);
        if (trace_open(sample->path, &arena, &image) != STATUS_OK)
            fail_msg("call %d: %s", number, status_text());
        if (image->seal < TRACE_SEAL_UNFINISHED ||
            image->complete != (image->seal == TRACE_SEAL_WHOLE) ||
            sample_differences(sample, image, UPDATES, 1) != 0)
            fail_msg("call %d failed, nobody told, and the trace is another one", number);
        untold += number > 0;
        arena_close(&arena);
    } else if (number == 0 || is_there || status_text()[0] == '\0' || status == STATUS_INTERNAL) {
        fail_msg("call %d: %d, trace %d: %s", number, status, is_there, status_text());
    }
    (void)unlink(sample->path);
}

/* Lets each place fail at its first call, and nightly at its last one, too. */
static void verify_every_site(enum status (*write)(struct sample *), int least) {
    struct sample sample;
    const int is_whole = helper_size(0, 0, 1) != 0;
    sample_open(&sample, 1);
    site_count = untold = 0;
    run(&sample, write, 0);
    assert_true(site_count >= least);
    for (int i = 0; i < site_count; i++) {
        run(&sample, write, sites[i].first);
        if (is_whole && sites[i].last > sites[i].first) run(&sample, write, sites[i].last);
    }
    /* the lock by which a reader sees that the file is written is made where a file system can */
    assert_int_equal(untold, 1);
    sample_close(&sample);
}

/* As sample_write, but a trace that cannot be finished is left as a program leaves it. */
static enum status write_all(struct sample *sample) {
    struct trace *trace;
    (void)unlink(sample->part);
    is_watched = 1;
    TRY(trace_create(sample->path, &sample->plan, &sample->arena, &trace));
    enum status status = sample_put(sample, trace, 1, UPDATES);
    if (status == STATUS_OK) status = sample_put_late(sample, trace);
    if (status == STATUS_OK) return trace_finish(trace);
    trace_abandon(trace);
    return status;
}

/* Recovers what a program left that was ended in front of trace_finish. */
static enum status recover(struct sample *sample) {
    if (access(sample->part, F_OK) != 0) {
        struct trace *trace;
        TRY(trace_create(sample->path, &sample->plan, &sample->arena, &trace));
        enum status status = sample_put(sample, trace, 1, UPDATES);
        if (status == STATUS_OK) status = sample_put_late(sample, trace);
        trace_abandon(trace);
        if (status != STATUS_OK) return status;
    }
    is_watched = 1;
    return trace_recover(sample->part, sample->path, 0);
}

static void verify_writer(void **state) {
    (void)state;
    verify_every_site(write_all, 40);
}

static void verify_recovery(void **state) {
    (void)state;
    if (helper_size(1, 1, 0)) skip(); /* its calls are made where the writer's are */
    verify_every_site(recover, 40);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_writer),
        cmocka_unit_test(verify_recovery),
    };
    writer = getpid();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
