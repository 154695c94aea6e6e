/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * How large a trace will be, where it stores states: they take their bytes as often as they are
 * stored, in pieces or in one, and little besides. tests/cli/room.py holds the estimate against
 * real files. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/macro.h"
#include "determinism/trace.h"

static uint64_t bytes_with(uint64_t bytes, uint64_t every, uint64_t updates) {
    struct trace_run_plan run;
    struct trace_plan plan;
    memset(&run, 0, sizeof run);
    memset(&plan, 0, sizeof plan);
    run.snapshots.bytes = bytes;
    run.snapshots.every = every;
    plan.runs = &run;
    plan.run_count = 1;
    return trace_plan_bytes(&plan, updates);
}

static void validate_states(void **state) {
    (void)state;
    static const uint64_t sizes[] = {100000, 1u << 20, (1u << 20) + 1, 40u << 20, 1000000007};
    static const uint64_t intervals[] = {1, 7, 100};
    for (size_t s = 0; s < COUNT_OF(sizes); s++)
        for (size_t e = 0; e < COUNT_OF(intervals); e++)
            for (uint64_t updates = 0; updates < 30; updates += 7) {
                const uint64_t none = bytes_with(0, intervals[e], updates);
                const double more = (double)(bytes_with(sizes[s], intervals[e], updates) - none);
                /* One at the start, and one behind every so many updates. */
                const double stored = (double)((updates / intervals[e] + 1) * sizes[s]);
                if (!(more >= stored && more <= 1.1 * stored + 10000.0))
                    fail_msg("%llu bytes every %llu of %llu updates: %.0f, of %.0f",
                             (unsigned long long)sizes[s], (unsigned long long)intervals[e],
                             (unsigned long long)updates, more, stored);
            }
    assert_int_equal(bytes_with(1000, 0, 9), bytes_with(0, 0, 9));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_states),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
