/* SPDX-License-Identifier: Apache-2.0
 * labels: unit nightly
 * A trace of many runs, as an experiment under noise writes it: one run after the other, after all
 * objects were made. With HDF5's default cache that fails at run 88, which is why the trace sets
 * another one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "tests/determinism/helper_trace.h"

enum { RUNS = 90, UPDATES = 1 };

static void require(enum status status) {
    if (status != STATUS_OK) fail_msg("%s", status_text());
}

static void open_runs(struct sample *sample) {
    static char ids[RUNS][16];
    struct trace_run_plan *runs;
    sample_open(sample, 3);
    require(arena_take(&sample->arena, RUNS, sizeof *runs, "runs", &runs));
    for (uint32_t i = 0; i < RUNS; i++) {
        snprintf(ids[i], sizeof ids[i], "run-%u", i);
        runs[i] = sample->plan.runs[0];
        runs[i].id = i == 0 ? "baseline" : i == 1 ? "test" : ids[i];
    }
    sample->plan.runs = runs;
    sample->plan.run_count = RUNS;
}

static void verify_many_runs(void **state) {
    (void)state;
    struct sample sample;
    struct trace *trace;
    struct trace_image *image;
    open_runs(&sample);
    require(trace_create(sample.path, &sample.plan, &sample.arena, &trace));
    for (uint32_t i = 0; i < RUNS; i++)
        for (uint64_t step = 1; step <= UPDATES; step++)
            require(trace_put_record(trace, i, sample_record(&sample, 0, step)));
    require(trace_finish(trace));
    require(trace_open(sample.path, &sample.arena, &image));
    for (uint32_t i = 0; i < RUNS; i++)
        assert_int_equal(image->runs[i].updates, UPDATES);
    sample_close(&sample);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_many_runs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
