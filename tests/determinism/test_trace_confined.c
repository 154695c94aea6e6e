/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * An image that the reading child has spoilt, as one that was taken over by its file could, is
 * refused by the parent: no pointer of it is followed and no count believed. The linker puts the
 * spoiling between the reader and its answer. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/confined.h"
#include "base/macro.h"
#include "determinism/trace/trace_confined.h"
#include "tests/base/helper_size.h"
#include "tests/determinism/helper_trace.h"

#define WILD ((void *)(uintptr_t)0x10)

enum status __real_confined_run(const struct confined *confined, void *answer, size_t size,
                                struct arena *arena);
enum status __wrap_confined_run(const struct confined *confined, void *answer, size_t size,
                                struct arena *arena);

static int which; /* 0: nothing is spoilt */

/* With a sanitizer every third: what refuses them is one walk over the image. */
#define NEXT ((int)helper_size(3, 1, 1))

#define SPOIL(what)                                                                                \
    case __COUNTER__ - FIRST:                                                                      \
        what;                                                                                      \
        break
enum { FIRST = __COUNTER__ };

/* The array of names that a reader made. */
static const char **names_of(const char *const *names) {
    const char **writable;
    memcpy(&writable, &names, sizeof writable);
    return writable;
}

static void spoil(struct trace_image *image) {
    struct trace_run *run = &image->runs[1];
    struct record_consumer *consumers;
    memcpy(&consumers, &run->plan.consumers, sizeof consumers);
    switch (which) {
        SPOIL(image->runs = (struct trace_run *)WILD);
        SPOIL(image->run_count = UINT32_MAX);
        SPOIL(image->pairs = (struct trace_pair *)WILD);
        SPOIL(image->pair_count = 1 << 20);
        SPOIL(image->arrays = (struct trace_array *)WILD);
        SPOIL(image->texts = (struct trace_text *)WILD);
        SPOIL(image->attributes = (struct trace_attribute *)WILD);
        SPOIL(image->attribute_count += 1000000);
        SPOIL(image->seal = (enum trace_seal)7);
        SPOIL(image->arrays[0].plan.rank = 7);
        SPOIL(image->arrays[0].plan.shape[0] = UINT64_MAX);
        SPOIL(image->arrays[1].values = (const double *)WILD);
        SPOIL(image->arrays[1].plan.shape[0] = 1 << 28);
        SPOIL(image->texts[0].length = SIZE_MAX);
        SPOIL(image->texts[0].length = (size_t)1 << 40);
        SPOIL(image->texts[0].length -= 1); /* no end where it should be */
        SPOIL(run->updates = (uint64_t)1 << 60);
        SPOIL(run->updates += 1);
        SPOIL(run->records = (struct record *)WILD);
        SPOIL(run->records[2].step = 1);
        SPOIL(run->records[1].groups = (double(*)[RECORD_GROUPS])WILD);
        SPOIL(run->records[1].tensors = (double(*)[RECORD_TENSORS])WILD);
        SPOIL(run->records[1].ledger = (int64_t(*)[RECORD_LEDGERS])WILD);
        SPOIL(run->records[1].places = NULL);
        SPOIL(run->records[1].ranks = (int64_t(*)[RECORD_RANKS])WILD);
        SPOIL(run->plan.shape.ranks = UINT32_MAX);
        SPOIL(run->plan.shape.tensors = UINT32_MAX);
        SPOIL(run->plan.shape.phases = UINT32_MAX);
        SPOIL(run->plan.shape.micros = UINT32_MAX);
        SPOIL(run->plan.shape.groups = UINT32_MAX);
        SPOIL(names_of(run->plan.tensors)[0] = (const char *)WILD);
        SPOIL(run->plan.shape.consumers = UINT32_MAX);
        SPOIL(run->plan.shape.sites = UINT32_MAX);
        SPOIL(run->plan.shape.streams = UINT32_MAX);
        SPOIL(run->plan.consumers = (const struct record_consumer *)WILD);
        SPOIL(run->plan.phases = (const char *const *)WILD);
        SPOIL(run->plan.tensors = (const char *const *)WILD);
        SPOIL(run->plan.streams = (const char *const *)WILD);
        SPOIL(run->plan.sites = (const char *const *)WILD);
        SPOIL(names_of(run->plan.phases)[0] = (const char *)WILD);
        SPOIL(names_of(run->plan.sites)[0] = (const char *)WILD);
        SPOIL(run->plan.id = (const char *)WILD);
        SPOIL(run->records[1].phases = (uint8_t(*)[RECORD_DIGEST_BYTES])WILD);
        SPOIL(run->records[1].sites = (uint8_t(*)[RECORD_DIGEST_BYTES])WILD);
        SPOIL(run->records[1].micros = (double(*)[RECORD_MICROS])WILD);
        SPOIL(run->records[1].tensor_digests =
                  (uint8_t(*)[RECORD_TENSOR_DIGESTS][RECORD_DIGEST_BYTES])WILD);
        SPOIL(run->records[1].phase_places = (int64_t(*)[RECORD_PHASES])WILD);
        SPOIL(run->snapshot_steps = (uint64_t *)WILD; run->snapshots = 1);
        SPOIL(image->pairs[0].records = (struct pair_record *)WILD);
        SPOIL(image->pairs[0].records[1].step = 1);
        SPOIL(image->pairs[0].plan.b = NULL);
        SPOIL(names_of(run->plan.streams)[1] = NULL);
        SPOIL(consumers[2].name = (const char *)WILD);
        SPOIL(run->plan.configuration = (const char *)WILD);
        SPOIL(run->plan.arm = NULL);
        SPOIL(run->plan.groups = (const char *)WILD);
        SPOIL(run->plan.foreign = (const struct trace_foreign *)WILD);
        SPOIL(run->snapshots = 1 << 28);
        SPOIL(image->writer = (const char *)WILD);
        SPOIL(image->pairs[0].plan.a = (const char *)WILD);
        SPOIL(image->pairs[0].updates = 1 << 28);
        SPOIL(image->source = (struct trace_source *)WILD);
        SPOIL(run->window = (struct trace_window *)WILD);
        SPOIL(image->pairs[0].window = (struct trace_window *)WILD);
    }
}
enum { CASES = __COUNTER__ - FIRST };

/* The same of an image whose rows are read later. */
#define SPOIL_LONG(what)                                                                           \
    case __COUNTER__ - FIRST_LONG:                                                                 \
        what;                                                                                      \
        break
enum { FIRST_LONG = __COUNTER__ };

static void spoil_long(struct trace_image *image) {
    struct trace_run *run = &image->runs[1];
    uint64_t *ends;
    memcpy(&ends, &run->ends, sizeof ends);
    switch (which) {
        SPOIL_LONG(run->ends = (const uint64_t *)WILD);
        SPOIL_LONG(image->pairs[0].ends = NULL);
        SPOIL_LONG(ends[0] = 0);
        SPOIL_LONG(ends[1] = ends[0]);
        SPOIL_LONG(ends[1] = UINT64_MAX);
        SPOIL_LONG(run->updates = (uint64_t)1 << 60);
        SPOIL_LONG(run->updates = UINT64_MAX);
        SPOIL_LONG(image->pairs[0].updates = 1 << 28);
        SPOIL_LONG(run->plan.shape.groups = UINT32_MAX);
        SPOIL_LONG(run->plan.shape.micros = UINT32_MAX);
        SPOIL_LONG(run->plan.shape.tensors = UINT32_MAX);
        SPOIL_LONG(run->records = (struct record *)WILD);
        SPOIL_LONG(run->window = (struct trace_window *)WILD);
        SPOIL_LONG(image->pairs[0].window = (struct trace_window *)WILD);
        SPOIL_LONG(image->source = (struct trace_source *)WILD);
    }
}
enum { CASES_LONG = __COUNTER__ - FIRST_LONG };

/* The same of a block of rows. */
#define SPOIL_ROWS(what)                                                                           \
    case __COUNTER__ - FIRST_ROWS:                                                                 \
        what;                                                                                      \
        break
enum { FIRST_ROWS = __COUNTER__ };

static void spoil_rows(struct record **records) {
    struct record *const block = *records;
    switch (which) {
        SPOIL_ROWS(*records = (struct record *)WILD);
        SPOIL_ROWS(*records = NULL);
        SPOIL_ROWS(*records += 1);
        SPOIL_ROWS(block[0].step = 1); /* of the block before */
        SPOIL_ROWS(block[3].step = block[2].step);
        SPOIL_ROWS(block[63].step += 1); /* of the block behind */
        SPOIL_ROWS(block[5].groups = (double(*)[RECORD_GROUPS])WILD);
        SPOIL_ROWS(block[5].tensor_digests = NULL);
        SPOIL_ROWS(block[63].sites = NULL);
        SPOIL_ROWS(block[63].places = (int64_t(*)[RECORD_PLACES])WILD);
    }
}
enum { CASES_ROWS = __COUNTER__ - FIRST_ROWS };

static void (*spoil_image)(struct trace_image *image); /* NULL: the answer is a block */
static int dying; /* the child ends as a memory error ends it */
static volatile char *volatile nowhere = (volatile char *)(uintptr_t)16;
static enum status (*reading)(const void *asked, struct arena *arena, void *answer);

static const struct trace_states *found; /* what the child says of stored states, if it does */

static enum status read_and_spoil(const void *asked, struct arena *arena, void *answer) {
    struct trace_image *image;
    struct record *records;
    if (found != NULL) {
        memcpy(answer, found, sizeof *found);
        return STATUS_OK;
    }
    TRY(reading(asked, arena, answer));
    if (dying) *nowhere = 1;
    if (spoil_image != NULL) {
        memcpy(&image, answer, sizeof image);
        spoil_image(image);
        return STATUS_OK;
    }
    memcpy(&records, answer, sizeof records);
    spoil_rows(&records);
    memcpy(answer, &records, sizeof records);
    return STATUS_OK;
}

static const char *replaced, *by; /* the one file becomes the other before the child begins */

enum status __wrap_confined_run(const struct confined *confined, void *answer, size_t size,
                                struct arena *arena) {
    struct confined spoiling = *confined;
    if (replaced != NULL) assert_int_equal(rename(by, replaced), 0);
    reading = confined->work;
    spoiling.work = read_and_spoil;
    return __real_confined_run(&spoiling, answer, size, arena);
}

static void verify_spoilt_images_are_refused(void **state) {
    (void)state;
    struct sample sample;
    sample_open(&sample, 2);
    assert_int_equal(sample_write(&sample, sample.path, 3), STATUS_OK);
    spoil_image = spoil;
    for (which = 0; which < CASES; which += NEXT) {
        struct arena arena = ARENA_EMPTY;
        struct trace_image *image;
        const enum status status = trace_open(sample.path, &arena, &image);
        const int expected = which == 0 ? STATUS_OK : STATUS_INPUT;
        if ((int)status != expected ||
            (which != 0 && strstr(status_text(), "its answer is none that a reader gives") == NULL))
            fail_msg("case %d of %d: status %d: %s", which, CASES, status, status_text());
        arena_close(&arena);
    }
    sample_close(&sample);
}

/* Rows of so many tensors are blocks of 64; this is two blocks and a rest. */
enum { TENSORS = 600, UPDATES = 130 };

static void verify_spoilt_images_without_rows_are_refused(void **state) {
    (void)state;
    struct sample sample;
    sample_open(&sample, TENSORS);
    assert_int_equal(sample_write(&sample, sample.path, UPDATES), STATUS_OK);
    spoil_image = spoil_long;
    for (which = 0; which < CASES_LONG; which += NEXT) {
        struct arena arena = ARENA_EMPTY;
        struct trace_image *image;
        const enum status status = trace_open_long(sample.path, &arena, &image);
        const int expected = which == 0 ? STATUS_OK : STATUS_INPUT;
        if ((int)status != expected ||
            (which != 0 && strstr(status_text(), "its answer is none that a reader gives") == NULL))
            fail_msg("case %d of %d: status %d: %s", which, CASES_LONG, status, status_text());
        if (status == STATUS_OK) trace_close(image);
        arena_close(&arena);
    }
    sample_close(&sample);
}

/* Opens the file, reads its first block well, and the second one, of rows 64 to 127, as `which` and
 * the rest say. That must end so: with the row (text NULL), or as bad input. */
static void read_blocks(const char *path, const char *text) {
    struct arena arena = ARENA_EMPTY;
    struct trace_image *image;
    const int later = which;
    const int dies = dying;
    const char *const becomes = replaced;
    which = dying = 0;
    replaced = NULL;
    spoil_image = spoil_long;
    assert_int_equal(trace_open_long(path, &arena, &image), STATUS_OK);
    spoil_image = NULL;
    assert_int_equal(trace_row(&image->runs[1], 0)->step, 1);
    which = later;
    dying = dies;
    replaced = becomes;
    const uint64_t step = trace_row(&image->runs[1], 100)->step;
    const enum status status = trace_rows_status(image);
    if (text == NULL ? step != 101 || status != STATUS_OK
                     : step != 0 || status != STATUS_INPUT || strstr(status_text(), text) == NULL)
        fail_msg("case %d: update %d: status %d: %s", which, (int)step, status, status_text());
    which = dying = 0;
    replaced = NULL;
    trace_close(image);
    arena_close(&arena);
}

static void verify_spoilt_blocks_are_refused(void **state) {
    (void)state;
    struct sample sample;
    sample_open(&sample, TENSORS);
    assert_int_equal(sample_write(&sample, sample.path, UPDATES), STATUS_OK);
    for (int i = 0; i < CASES_ROWS; i += NEXT) {
        which = i;
        read_blocks(sample.path, i == 0 ? NULL : "its answer is none that a reader gives");
    }
    sample_close(&sample);
}

static void verify_a_death_in_a_later_block_is_told(void **state) {
    (void)state;
    struct sample sample;
    sample_open(&sample, TENSORS);
    assert_int_equal(sample_write(&sample, sample.path, UPDATES), STATUS_OK);
    signal(SIGSEGV, SIG_DFL); /* cmocka has a handler, which the child would run */
    dying = 1;
    read_blocks(sample.path, "the file broke its reader: Segmentation fault; it is not a trace");
    sample_close(&sample);
}

/* The name leads to the right file when the parent looks, and to another when HDF5 opens it. */
static void verify_the_child_looks_at_the_file_it_opened(void **state) {
    (void)state;
    struct sample sample;
    char other[256];
    sample_open(&sample, TENSORS);
    snprintf(other, sizeof other, "%s/other.h5", sample.folder);
    assert_int_equal(sample_write(&sample, sample.path, UPDATES), STATUS_OK);
    assert_int_equal(sample_write(&sample, other, UPDATES), STATUS_OK);
    replaced = sample.path;
    by = other;
    read_blocks(sample.path, "was removed, replaced or changed while it was read");
    sample_close(&sample);
}

/* What a child says of four stored states: more of them are damaged than there are, one behind the
 * last is, or they do not ascend. Only so many are named. */
static void verify_spoilt_states_are_refused(void **state) {
    (void)state;
    static const struct {
        struct trace_states says;
        int well;
    } cases[] = {
        {{0, {9, 9}}, 1},          {{1, {0}}, 1},
        {{1, {3, 9}}, 1},          {{1, {4}}, 0},
        {{1, {UINT64_MAX}}, 0},    {{2, {0, 1}}, 1},
        {{2, {2, 3}}, 1},          {{2, {2, 2}}, 0},
        {{2, {2, 1}}, 0},          {{2, {3, 4}}, 0},
        {{4, {0, 1, 2, 3}}, 1},    {{5, {0, 1, 2, 3, 4}}, 0},
        {{UINT64_MAX, {0, 1}}, 0}, {{4, {0, 1, 2, 0}}, 0},
    };
    const struct trace_run run = {.snapshots = 4};
    struct sample sample;
    sample_open(&sample, 2);
    assert_int_equal(sample_write(&sample, sample.path, 3), STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct apart_states asked = {.path = sample.path, .run = &run};
        struct trace_states out;
        found = &cases[i].says;
        const enum status status = apart_check_states(&asked, &out);
        if ((int)status != (cases[i].well ? STATUS_OK : STATUS_INPUT))
            fail_msg("case %zu: status %d", i, (int)status);
        if (cases[i].well) assert_int_equal(out.damaged, cases[i].says.damaged);
    }
    found = NULL;
    sample_close(&sample);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_spoilt_images_are_refused),
        cmocka_unit_test(verify_spoilt_images_without_rows_are_refused),
        cmocka_unit_test(verify_spoilt_blocks_are_refused),
        cmocka_unit_test(verify_a_death_in_a_later_block_is_told),
        cmocka_unit_test(verify_the_child_looks_at_the_file_it_opened),
        cmocka_unit_test(verify_spoilt_states_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
