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

#include <stdio.h>
#include <string.h>

#include "base/confined.h"
#include "tests/determinism/helper_trace.h"

#define WILD ((void *)(uintptr_t)0x10)

enum status __real_confined_run(const struct confined *confined, void *answer, size_t size,
                                struct arena *arena);
enum status __wrap_confined_run(const struct confined *confined, void *answer, size_t size,
                                struct arena *arena);

static int which; /* 0: nothing is spoilt */

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
        SPOIL(run->plan.shape.tensors = UINT32_MAX);
        SPOIL(run->plan.shape.phases = UINT32_MAX);
        SPOIL(run->plan.shape.micros = UINT32_MAX);
        SPOIL(run->plan.shape.groups = UINT32_MAX);
        SPOIL(names_of(run->plan.tensors)[0] = (const char *)WILD);
        SPOIL(run->plan.sites = (const char *const *)WILD);
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
    }
}
enum { CASES = __COUNTER__ - FIRST };

static enum status (*reading)(const void *asked, struct arena *arena, void *answer);

static enum status read_and_spoil(const void *asked, struct arena *arena, void *answer) {
    struct trace_image *image;
    TRY(reading(asked, arena, answer));
    memcpy(&image, answer, sizeof image);
    spoil(image);
    return STATUS_OK;
}

enum status __wrap_confined_run(const struct confined *confined, void *answer, size_t size,
                                struct arena *arena) {
    struct confined spoiling = *confined;
    reading = confined->work;
    spoiling.work = read_and_spoil;
    return __real_confined_run(&spoiling, answer, size, arena);
}

static void verify_spoilt_images_are_refused(void **state) {
    (void)state;
    struct sample sample;
    sample_open(&sample, 2);
    assert_int_equal(sample_write(&sample, sample.path, 3), STATUS_OK);
    for (which = 0; which < CASES; which++) {
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_spoilt_images_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
