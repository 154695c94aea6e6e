/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What the page says of causes besides their shares at the end: other measures, earlier updates,
 * intervals of noisy runs, the perturbed run, and the law of growth. And a trace without these must
 * have a page, too. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evidence/judge.h"
#include "report/bars.h"
#include "tests/report/helper_page.h"

static const struct fake_plan marked = {
    .updates = {12, 12}, .tensors = 2, .groups = 1, .factors = 2, .marks = 1, .twin = 1.5};
static const struct fake_plan bare = {.updates = {12, 12}, .tensors = 2, .groups = 1, .factors = 2};

static char *page_of(const struct fake_plan *plan) {
    struct fake fake;
    fake_open(&fake, plan);
    char *page = fake_page(&fake, NULL);
    fake_close(&fake);
    return page;
}

struct saying {
    const char *text;
    int said;
};

static void check_sayings(const char *page, const struct saying *sayings, size_t count) {
    for (size_t i = 0; i < count; i++)
        if ((strstr(page, sayings[i].text) != NULL) != sayings[i].said)
            fail_msg("the page %s: %s", sayings[i].said ? "does not say" : "says", sayings[i].text);
}

static void validate_measures(void **state) {
    static const struct saying sayings[] = {
        {"gap of the last loss</th><td class=\"r\">1e-05</td><td class=\"r\">3e-05 / "
         "-2e-05</td><td class=\"r\">-2e-05 / 3e-05</td>",
         1},
        {"KL divergence on the probe batch, which has no sign,</th><td class=\"r\">3e-06</td><td "
         "class=\"r\">2e-06 / 1e-06</td>",
         1},
        {"left when repaired</th>", 1},
        {"share: Shapley value of the way from one arm to the other", 1},
        {"no projections", 0},
        {"older program", 0},
        {"<th scope=\"row\" class=\"r\">1</th><td class=\"r\">3e-05</td>", 1},
        {"<td class=\"r\">108.3 %</td><td class=\"r\">-8.333 %</td>", 1},
        {"<th scope=\"row\" class=\"r\">12</th><td class=\"r\">9e-05</td>", 1},
        {"<td class=\"r\">66.67 %</td><td class=\"r\">33.33 %</td>", 1},
        {"<td class=\"n\">from update 4</td>", 1},
        {"<td class=\"n\">in no update</td>", 1},
        {"whisker\"", 0}, /* exact shares have none */
        {"<dt>shares</dt>", 0},
        {"<dt>when</dt>", 0}, /* tables, not lines */
    };
    (void)state;
    char *page = page_of(&marked);
    check_sayings(page, sayings, COUNT_OF(sayings));
    free(page);
}

/* Shares of the projection on B - A are 0.7 and 0.3, with noise of a size that does or does not
 * order them. */
static void validate_way(void **state) {
    static const struct saying small[] = {
        {"Every hybrid was trained 4 times", 1},
        {"interval: noise of runs", 1},
        {"<td class=\"n\">&#177; ", 1},
        {"<li>dtype: place 1</li>", 1},
        {"<li>schedule: place 2</li>", 1},
        {"<path class=\"whisker\"", 1},
        {"Harsanyi", 0}, /* causes just add up along B - A */
        {"are of single runs", 0},
        {"recorded of single runs", 1},
        {"Shares over time", 0},
        {"acts, alone", 0},
    };
    static const struct saying large[] = {
        {"place 1 to 2, not ordered</li>", 1},
        {"<path class=\"whisker\"", 1},
    };
    static const struct saying drowned[] = {
        {"No interval of the noise of runs: ", 1},
        {"<td class=\"n\">66.6", 1}, /* as wide as repeats are apart, which no whisker could show */
        {"<path class=\"whisker\"", 0},
    };
    static const struct {
        double noise;
        const struct saying *sayings;
        size_t count;
    } cases[] = {{0.003, small, COUNT_OF(small)},
                 {0.15, large, COUNT_OF(large)},
                 {5.0, drowned, COUNT_OF(drowned)}};
    (void)state;
    struct fake_plan plan = marked;
    plan.repeats = 4; /* least p 2 / 252 */
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        plan.projection_noise = cases[i].noise;
        char *page = page_of(&plan);
        check_sayings(page, cases[i].sayings, cases[i].count);
        free(page);
    }
}

/* The number beside +- must be half the interval that was judged, in percent. */
static void validate_half_interval(void **state) {
    (void)state;
    struct fake fake;
    struct judgement judgement;
    struct fake_plan plan = marked;
    plan.repeats = 4;
    plan.projection_noise = 0.003;
    fake_open(&fake, &plan);
    assert_int_equal(judge(&fake.image, &fake.arena, &judgement), STATUS_OK);
    char *page = fake_page(&fake, NULL);
    for (uint32_t i = 0; i < 2; i++) {
        char text[64];
        const struct judged_cause *cause = &judgement.causes[i];
        const struct attributed *share = &cause->share;
        assert_true(share->low < share->value && share->value < share->high);
        snprintf(text, sizeof text, "<td class=\"n\">&#177; %.2g %%</td>",
                 100.0 * (share->high - share->value));
        check_sayings(page, &(struct saying){text, 1}, 1);
    }
    free(page);
    fake_close(&fake);
}

static void validate_twin(void **state) {
    static const struct saying growing[] = {
        {"<path class=\"line t\"", 1},
        {"|A-twin|: one weight of A one unit in the last place off", 1},
        {" |A-B| grows like k^1 [1, 1] over updates 1 to 12.", 1},
        {" |A-twin| is multiplied by 1.5 [1.5, 1.5] in each update over updates 1 to 12.", 1},
        {"Saturated", 0},
    };
    static const struct saying saturated[] = {
        {"Saturated: rounding alone takes the arms this far apart by the end.", 1}};
    static const struct saying none[] = {{"<path class=\"line t\"", 0},
                                         {"|A-twin|", 0},
                                         {" |A-B| grows like k^1 [1, 1] over updates 1 to 12.", 1},
                                         {"Shares over time", 0},
                                         {"By other measures", 0},
                                         {"acts, alone", 0},
                                         {"66.67 %", 1},
                                         /* an older trace's shares are those of its game */
                                         {"The trace holds no projections. share: Shapley value of "
                                          "the distance, which has no sign",
                                          1}};
    (void)state;
    struct fake_plan plan = marked;
    char *page = page_of(&plan);
    check_sayings(page, growing, COUNT_OF(growing));
    free(page);
    plan.twin = 2.0;
    page = page_of(&plan);
    check_sayings(page, saturated, COUNT_OF(saturated));
    free(page);
    page = page_of(&bare);
    check_sayings(page, none, COUNT_OF(none));
    free(page);
}

#define MIXED 8 /* runs of each mixture: at 0.01 over two mixtures a p of 2 / 12870 is beyond */

/* Puts arms inside their floor, with end points of the mixtures on one line, at `ends` by mask;
 * each run has noise of its own. `gram` must outlive the image. */
static void mix(struct fake *fake, const double ends[4], double *gram) {
    const size_t all = 4 * (size_t)MIXED;
    struct trace_image *const image = &fake->image;
    for (size_t a = 0; a < image->array_count; a++) { /* all runs of both arms are equally far */
        struct trace_array *const floor = &image->arrays[a];
        if (strcmp(floor->plan.path, "floor/distance") != 0) continue;
        static double apart[10 * 10];
        for (size_t i = 0; i < COUNT_OF(apart); i++)
            apart[i] = i / 10 == i % 10 ? 0.0 : 1.0;
        floor->values = apart;
    }
    for (size_t i = 0; i < all; i++)
        for (size_t j = 0; j < all; j++)
            gram[i * all + j] = ends[i / MIXED] * ends[j / MIXED] + (i == j ? 0.04 : 0.0);
    image->arrays[image->array_count++] = (struct trace_array){
        .plan = {"attribution/gram", 2, {all, all}, "1", "attribution/gram"}, .values = gram};
    image->attributes[image->attribute_count++] =
        (struct trace_attribute){"attribution", "replicates", "8"};
}

/* Of arms inside the floor nothing is shared out; where mixtures act, the page does not say that no
 * cause is named, and what they do stands above that sentence. */
static void validate_mixtures_inside_the_floor(void **state) {
    (void)state;
    static const char none[] = "<p>None: the difference is not larger than that of repeats, so no "
                               "cause is named.</p>";
    static const char act[] =
        "<p>None: the difference is not larger than that of repeats, so there is nothing to share "
        "out. Causes act all the same: what their mixtures do stands above.</p>";
    static const struct {
        double ends[4];
        const char *row, *shares, *not_said;
    } cases[] = {
        {{0, 3, -3.5, 0}, "2 of 2 go farther from baseline than repeats do", act, none},
        {{0, 3, 0, 0}, "1 of 2 go farther from baseline than repeats do", act, none},
        {{0, 0, 0, 0}, "0 of 2 go farther from baseline than repeats do", none, act},
    };
    static double gram[16 * MIXED * MIXED];
    struct fake_plan plan = bare;
    plan.repeats = 4; /* least p 2 / 252 */
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fake fake;
        fake_open(&fake, &plan);
        mix(&fake, cases[i].ends, gram);
        char *page = fake_page(&fake, NULL);
        const char *const row = strstr(page, cases[i].row);
        const char *const shares = strstr(page, cases[i].shares);
        if (row == NULL || shares == NULL || !(row < shares) ||
            strstr(page, cases[i].not_said) != NULL)
            fail_msg("case %zu: %s the row, %s the sentence", i, row == NULL ? "without" : "with",
                     shares == NULL ? "without" : "with");
        free(page);
        fake_close(&fake);
    }
}

/* Arms whose second parameter group alone parts: the table of updates shows that one. */
static void validate_the_group_that_parts(void **state) {
    (void)state;
    static const struct saying first[] = {{"LR of parameter group 0, counted from 0.", 1},
                                          {"Learning rate applied, parameter group 1", 0}},
                               second[] = {
                                   {"LR of parameter group 1, counted from 0: the first whose "
                                    "applied LR differs.",
                                    1},
                                   {"<td class=\"r\">0.25</td><td class=\"r\">0.125</td>", 1},
                                   {"Learning rate applied, parameter group 1", 1}};
    for (int apart = 0; apart < 2; apart++) {
        struct fake fake;
        struct fake_plan plan = marked;
        plan.groups = 2;
        fake_open(&fake, &plan);
        for (uint32_t arm = 0; arm < 2; arm++)
            for (uint64_t i = 0; i < 12; i++)
                for (int g = 0; g < 2; g++)
                    for (int c = 0; c < RECORD_GROUPS; c++)
                        fake.image.runs[arm].records[i].groups[g][c] = 0.25;
        if (apart) fake.image.runs[1].records[4].groups[1][GROUP_LR_APPLIED] = 0.125;
        char *page = fake_page(&fake, NULL);
        check_sayings(page, apart ? second : first, apart ? COUNT_OF(second) : COUNT_OF(first));
        free(page);
        fake_close(&fake);
    }
}

/* Of more groups than are drawn, those that part are drawn; of these that which the table of
 * updates shows, although others stand before it. */
static void validate_the_groups_drawn(void **state) {
    (void)state;
    static const struct {
        uint32_t first, last; /* groups that part later than group 6 */
        int drawn[8];
    } cases[] = {{1, 0, {1, 1, 1, 0, 0, 0, 1, 0}},
                 {4, 5, {1, 0, 0, 0, 1, 1, 1, 0}},
                 {1, 5, {0, 1, 1, 1, 0, 0, 1, 0}}};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        struct fake fake;
        struct fake_plan plan = marked;
        plan.groups = 8;
        fake_open(&fake, &plan);
        for (uint32_t arm = 0; arm < 2; arm++)
            for (uint64_t i = 0; i < 12; i++)
                for (uint32_t g = 0; g < 8; g++)
                    for (int r = 0; r < RECORD_GROUPS; r++)
                        fake.image.runs[arm].records[i].groups[g][r] = 0.25 * (g + 1);
        fake.image.runs[1].records[3].groups[6][GROUP_LR_APPLIED] = 0.125;
        for (uint32_t g = cases[c].first; g <= cases[c].last; g++)
            fake.image.runs[1].records[5].groups[g][GROUP_LR_LOGGED] = 0.125;
        char *page = fake_page(&fake, NULL);
        for (int g = 0; g < 8; g++) {
            char title[64];
            snprintf(title, sizeof title, "Learning rate logged%s%.0d<",
                     g > 0 ? ", parameter group " : "", g);
            if ((strstr(page, title) != NULL) != cases[c].drawn[g])
                fail_msg("case %zu: %s", c, title);
        }
        free(page);
        fake_close(&fake);
    }
}

static void validate_bars(void **state) {
    static const struct {
        double parts[3];
        const char *text;
    } cases[] = {
        /* scale -0.5 to 1.5: zero at 250 */
        {{0.5, -0.5, 1.0},
         "x=\"250\" width=\"250\"/><rect class=\"k k1\" y=\"1\" height=\"8\" "
         "x=\"0\" width=\"250\"/><rect class=\"k k2\" y=\"1\" height=\"8\" "
         "x=\"500\" width=\"500\"/>"},
        {{(double)NAN, 1.5, -0.5},
         "aria-hidden=\"true\"><rect class=\"k k1\" y=\"1\" "
         "height=\"8\" x=\"250\" width=\"750\"/>"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bars bars = {0.0, 1.0};
        char *text = NULL;
        size_t length;
        struct html html = {open_memstream(&text, &length)};
        bars_stretch_parts(&bars, cases[i].parts, 3);
        bars_write_parts(&html, &bars, cases[i].parts, 3);
        fclose(html.file);
        if (strstr(text, cases[i].text) == NULL) fail_msg("%s", text);
        free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_measures),
        cmocka_unit_test(validate_way),
        cmocka_unit_test(validate_half_interval),
        cmocka_unit_test(validate_twin),
        cmocka_unit_test(validate_mixtures_inside_the_floor),
        cmocka_unit_test(validate_the_group_that_parts),
        cmocka_unit_test(validate_the_groups_drawn),
        cmocka_unit_test(validate_bars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
