/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The texts of figures, written by hand beside the figures, the order of shares, and which causes
 * do nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <math.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/macro.h"
#include "evidence/figure_text.h"

#define NONE ((double)NAN)

static void validate_texts(void **state) {
    (void)state;
    static const struct {
        struct attributed of;
        const char *figure, *share, *with_sign;
    } texts[] = {
        {{0.5, 0.5, 0.5}, "50 %", "50 %", "+50 %"},
        {{-0.25, -0.25, -0.25}, "-25 %", "-25 %", "-25 %"},
        {{0.123456, 0.123456, 0.123456}, "12.35 %", "12.35 %", "+12.35 %"},
        /* an interval of 0.1 % of the way shows no digit, one of 0.3 % does */
        {{0.5, 0.4995, 0.5005}, "50 %", "50 %", "+50 %"},
        {{0.5, 0.4985, 0.5015},
         "50 % (49.9 to 50.1)",
         "50 % (49.9 to 50.1)",
         "+50 % (49.9 to 50.1)"},
        {{0.0, 0.0, 0.0}, "0 %", "0 %", "+0 %"},
        {{1e-5, 1e-5, 1e-5}, "0.001 %", "within 0.001 % of 0", "within 0.001 % of 0"},
        {{-1e-5, -1e-5, -1e-5}, "-0.001 %", "within 0.001 % of 0", "within 0.001 % of 0"},
        {{1e-9, 1e-9, 1e-9}, "1e-07 %", "within 0.001 % of 0", "within 0.001 % of 0"},
        {{0.0, -1e-6, 1e-6}, "0 %", "within 0.001 % of 0", "within 0.001 % of 0"},
        /* the digits are told as soon as one end is farther */
        {{1.1e-5, 1.1e-5, 1.1e-5}, "0.0011 %", "0.0011 %", "+0.0011 %"},
        {{-1.1e-5, -1.1e-5, -1.1e-5}, "-0.0011 %", "-0.0011 %", "-0.0011 %"},
        {{0.0, 0.0, 1.5e-5}, "0 %", "0 %", "+0 %"},
        {{0.0, -1.5e-5, 0.0}, "0 %", "0 %", "+0 %"},
        /* nor is a sign told without the interval that leaves it open */
        {{-7e-5, -5.9e-4, 4.5e-4},
         "-0.007 % (-0.059 to 0.045)",
         "-0.007 % (-0.059 to 0.045)",
         "-0.007 % (-0.059 to 0.045)"},
        {{7e-5, 2e-5, 1.2e-4}, "0.007 %", "0.007 %", "+0.007 %"},
        {{NONE, NONE, NONE}, "unknown", "unknown", "unknown"},
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        char text[FIGURE_TEXT];
        assert_string_equal(figure_text(&texts[i].of, text), texts[i].figure);
        assert_string_equal(share_text(&texts[i].of, 0, text), texts[i].share);
        assert_string_equal(share_text(&texts[i].of, 1, text), texts[i].with_sign);
    }
}

/* Three causes with sizes by mask: the third is idle where it changes none of them, and not where
 * its effects cancel in the share, nor where a figure of it is noise or was not trained. */
static void verify_idle_causes(void **state) {
    (void)state;
    static const struct {
        double size[8];
        struct attributed share;
        int idle;
    } games[] = {
        {{0, 0.75, 0.25, 1, 0, 0.75, 0.25, 1}, {0, 0, 0}, 1},
        {{0, 0.75, 0.25, 1, 0, 0.75, 0.25, 1}, {0, 0, 1e-300}, 0},
        {{0, 0.75, 0.25, 1, 0, 0.75, 0.25, 1}, {0, -1e-300, 0}, 0},
        {{0, 0.75, 0.25, 1, 0, 0.75, 0.25, 1}, {NONE, NONE, NONE}, 0},
        {{0, 0.75, 0.25, 1, 0.25, 0.75, 0.25, 1}, {0, 0, 0}, 0},
        {{0, 0.75, 0.25, 0.5, 0, 0.75, 0.25, 1}, {0, 0, 0}, 0},
        {{0, 0, 1, 1, 0, 1, 0, 1}, {0, 0, 0}, 0}, /* with either other one it acts */
        {{0, NONE, NONE, 1, 0, NONE, NONE, 1}, {0, 0, 0}, 1},
    };
    for (size_t i = 0; i < COUNT_OF(games); i++) {
        struct attribution_set sets[8];
        struct attribution of = {.causes = 3, .distance = 1.0, .sets = sets, .set_count = 8};
        for (uint32_t mask = 0; mask < 8; mask++) {
            const double size = games[i].size[mask];
            sets[mask] = (struct attribution_set){mask, {size, size, size}};
        }
        of.share[2] = games[i].share;
        of.left[2] = sets[3].size;
        of.alone[2] = sets[4].size;
        assert_int_equal(attribution_is_idle(&of, 2), games[i].idle);
        sets[5].size.high += 0.125; /* noise */
        if (!isnan(games[i].size[5])) assert_false(attribution_is_idle(&of, 2));
    }
}

static void verify_orders(void **state) {
    (void)state;
    static const struct {
        struct attributed first, second;
        int before;
    } orders[] = {
        {{0.5, 0.5, 0.5}, {0.25, 0.25, 0.25}, 1},
        {{0.5, 0.5, 0.5}, {-0.25, -0.25, -0.25}, 1},
        {{-0.5, -0.5, -0.5}, {0.25, 0.25, 0.25}, 1}, /* by size: this one leads farther away */
        {{0.25, 0.25, 0.25}, {-0.5, -0.5, -0.5}, 0},
        {{0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}, 0},
        {{0.5 + 5e-6, 0.5 + 5e-6, 0.5 + 5e-6}, {0.5, 0.5, 0.5}, 0}, /* a tie */
        {{0.5 + 5e-5, 0.5 + 5e-5, 0.5 + 5e-5}, {0.5, 0.5, 0.5}, 1},
        {{0.5, 0.25, 0.75}, {0.125, 0, 0.125}, 1},
        {{0.5, 0.25, 0.75}, {0.25, 0, 0.5}, 0},
        {{0.5, -0.25, 0.75}, {0, 0, 0}, 0}, /* it may be 0, too */
        {{-0.5, -0.75, -0.25}, {0.1, 0, 0.2}, 1},
        {{NONE, NONE, NONE}, {0, 0, 0}, 0},
        {{0.5, 0.5, 0.5}, {NONE, NONE, NONE}, 0},
    };
    for (size_t i = 0; i < COUNT_OF(orders); i++)
        assert_int_equal(share_is_before(&orders[i].first, &orders[i].second), orders[i].before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_texts),
        cmocka_unit_test(verify_idle_causes),
        cmocka_unit_test(verify_orders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
