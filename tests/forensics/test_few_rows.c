/* SPDX-License-Identifier: Apache-2.0
 * labels: unit
 * Logs of three to five rows in which updates were skipped or a run was resumed: what `lr fit` says
 * of each under the contract that made it. A search has so few rows to lean on that nearly every
 * condition of it shows. What is said is held in tests/golden/forensics/few_rows.txt: the first fit
 * as text, all of it as one number (FNV-1a). With TWINSTEP_SHOW=CASE all that is said of one log is
 * printed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>

#include "tests/forensics/helper_golden.h"
#include "tests/forensics/helper_small.h"

/* The next one keeps the search in fit_list_warmups for minutes. */
enum { CASES = 208 };

static void verify_few_rows(void **state) {
    (void)state;
    for (uint32_t number = 0; number < CASES; number++) {
        struct small s;
        small_draw(&s, number, SMALL_FEW);
        FILE *const out = golden_begin("few_rows.txt", "%u %s", number, small_shapes[s.shape]);
        fprintf(out, "%s %s, peak %g, warm-up %g %g, total %" PRIu64 ", updates",
                s.request.contract->name, s.request.schedule, s.request.lr, s.request.warmup,
                s.request.warmup_ratio, s.request.steps);
        for (size_t i = 0; i < s.log->rows; i++)
            fprintf(out, " %" PRId64, s.log->step[i]);
        for (size_t i = 0; i < s.plan.skipped_count; i++)
            fprintf(out, "%s %" PRIu64, i == 0 ? ", skipped" : "", s.plan.skipped[i]);
        fputc('\n', out);
        small_ask_fit(&s, out);
        golden_end();
        arena_close(&s.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_few_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
