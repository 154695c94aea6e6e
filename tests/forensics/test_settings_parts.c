/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Settings that are other ones behind a restart, told a second time: every listed setting and what
 * is near it, in every way in which two configurations may have it; every pair of clipped norms of
 * a grid; decays of up to three groups; and texts of each length around the room that there is. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "forensics/trajectory_settings.c" /* for the room of its text, which no log fills alone */

enum { TEXT = 2048 };

static struct arena arena;
static struct trace_foreign foreign;
static struct trace_run runs[2];
static struct trajectory_side sides[2];
static struct trajectory out;
static struct trajectory_judging judging;
static struct record rows[2];
static double groups[2][4][RECORD_GROUPS];
static char texts[2][TEXT];

static void open_scene(void) {
    arena_close(&arena);
    arena = (struct arena)ARENA_EMPTY;
    memset(&out, 0, sizeof out);
    memset(runs, 0, sizeof runs);
    memset(rows, 0, sizeof rows);
    memset(groups, 0, sizeof groups);
    for (int s = 0; s < 2; s++) {
        texts[s][0] = '\0';
        runs[s].plan.foreign = &foreign;
        runs[s].plan.configuration = texts[s];
        sides[s].run = &runs[s];
        memset(rows[s].reals, 0, sizeof rows[s].reals);
        rows[s].groups = groups[s];
    }
    judging = (struct trajectory_judging){
        .before = &sides[0], .after = &sides[1], .arena = &arena, .out = &out};
}

static void line(int side, const char *key, const char *value) {
    const size_t at = strlen(texts[side]);
    if (value != NULL) snprintf(texts[side] + at, TEXT - at, "%s: %s\n", key, value);
}

static const char *noted(void) {
    out.settings = NULL;
    assert_int_equal(trajectory_note_settings(&judging, &rows[0], &rows[1]), STATUS_OK);
    return out.settings;
}

#define SAYS(expected)                                                                             \
    do {                                                                                           \
        const char *const found = noted(), *const wanted = (expected);                             \
        if ((found == NULL) != (wanted == NULL) || (wanted != NULL && strcmp(found, wanted) != 0)) \
            fail_msg("line %d: %s, not %s, of\n%sand\n%s", __LINE__, found, wanted, texts[0],      \
                     texts[1]);                                                                    \
    } while (0)

/* ---- which settings ---- */

static const char *const kept[] = {"weight_decay", "eps",         "dampening",
                                   "nesterov",     "amsgrad",     "maximize",
                                   "decay_rate",   "beta2_decay", "clip_threshold",
                                   "alpha",        "centered",    "decoupled_weight_decay"};
static const char *const cycled[] = {"betas", "momentum", "beta1"};
static const char *const free_ones[] = {"lr",     "initial_lr",   "step",         "foreach", "ep",
                                        "epsx",   "weight",       "beta",         "beta2",   "a",
                                        "alphas", "max_momentum", "base_momentum"};

/* One setting in both, of optimizer and group, beside a range of a cycle or none. */
static void require_setting(const char *name, int is_kept_one, int is_cycled_one) {
    static const char *const values[] = {NULL, "1", "2", "12", "(0.9, 0.99)"};
    for (unsigned optimizer = 0; optimizer < 3; optimizer += 2)
        for (unsigned group = 0; group < 2; group++)
            for (size_t a = 0; a < COUNT_OF(values); a++)
                for (size_t b = 0; b < COUNT_OF(values); b++)
                    for (int cycle = 0; cycle < 5; cycle++)
                        for (int decays = 0; decays < 3; decays++) {
                            static const char *const ranges[] = {NULL, "max_momentum",
                                                                 "base_momentum", "max_momentum",
                                                                 "max_momentum"};
                            char key[64], range[64], words[256], which[32] = "";
                            open_scene();
                            snprintf(key, sizeof key, "optimizer.%u.%u.%s", optimizer, group, name);
                            /* That of another group is none of this one, and one that stands in
                             * front of the restart alone is gone. */
                            if (cycle > 0 && strcmp(name, ranges[cycle]) == 0) continue;
                            if (cycle > 0) {
                                snprintf(range, sizeof range, "optimizer.%u.%u.%s", optimizer,
                                         group + (cycle == 3), ranges[cycle]);
                                line(cycle != 4, range, "0.95");
                            }
                            line(0, "lr", "7");
                            line(0, key, values[a]);
                            line(1, key, values[b]);
                            runs[0].plan.shape.groups = runs[1].plan.shape.groups =
                                decays > 0 ? 2 : 0;
                            groups[1][1][GROUP_WD_APPLIED] = decays == 2 ? 0.5 : 0.0;
                            int expected = (is_kept_one || is_cycled_one) && values[a] != NULL &&
                                           values[b] != NULL && strcmp(values[a], values[b]) != 0;
                            /* Rows with one decay say that the setting was moved on purpose. */
                            if (decays == 1 && strcmp(name, "weight_decay") == 0) expected = 0;
                            if (is_cycled_one && (cycle == 1 || cycle == 2)) expected = 0;
                            if (optimizer > 0)
                                snprintf(which, sizeof which, " of optimizer %u", optimizer);
                            if (expected)
                                snprintf(words, sizeof words, "%s of group %u%s was %s and is %s",
                                         name, group, which, values[a], values[b]);
                            SAYS(expected ? words : NULL);
                        }
}

static void corroborate_settings(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(kept); i++)
        require_setting(kept[i], 1, 0);
    for (size_t i = 0; i < COUNT_OF(cycled); i++)
        require_setting(cycled[i], 0, 1);
    for (size_t i = 0; i < COUNT_OF(free_ones); i++)
        require_setting(free_ones[i], 0, 0);
}

/* Several settings stand in the order of the first configuration, each beside its own. */
static void validate_several(void **state) {
    (void)state;
    open_scene();
    line(0, "optimizer.0.0.eps", "1");
    line(0, "optimizer.0.1.eps", "1");
    line(0, "optimizer.1.0.eps", "1");
    line(0, "optimizer.1.1.nesterov", "False");
    line(1, "optimizer.1.1.nesterov", "True");
    line(1, "optimizer.1.0.eps", "2");
    line(1, "optimizer.0.1.eps", "3");
    line(1, "optimizer.0.0.eps", "1");
    SAYS("eps of group 1 was 1 and is 3, eps of group 0 of optimizer 1 was 1 and is 2, nesterov of "
         "group 1 of optimizer 1 was False and is True");
    /* The last line of a text may have no end, and what is no setting of a group is passed over. */
    static const char *const lines[] = {"optimizer.0.eps: 1",    "optimizer.0.0eps: 1",
                                        "optimizer.0.0.eps",     "optimizer.x.0.eps: 1",
                                        "optimizers.0.0.eps: 1", "eps: 1",
                                        "optimizer.0.0.eps:",    "optimizer.0.0",
                                        "optimizer.0.0.",        ""};
    for (size_t i = 0; i < COUNT_OF(lines); i++)
        for (int behind = 0; behind < 2; behind++) {
            char more[64];
            open_scene();
            snprintf(more, sizeof more, "%s\n", lines[i]);
            for (int s = 0; s < 2; s++)
                snprintf(texts[s], TEXT, "%s%s%s", behind ? "" : more,
                         s == 0 ? "optimizer.0.0.eps: 4" : "optimizer.0.0.eps: 5",
                         behind ? "\n" : "");
            for (int s = 0; s < 2 && behind; s++)
                snprintf(texts[s] + strlen(texts[s]), TEXT - strlen(texts[s]), "%s", lines[i]);
            SAYS("eps of group 0 was 4 and is 5");
        }
    /* Values of which one is the beginning of the other, or empty, are two. */
    open_scene();
    line(0, "optimizer.0.0.eps", "");
    line(1, "optimizer.0.0.eps", "1e-8");
    SAYS("eps of group 0 was  and is 1e-8");
    for (int s = 0; s < 2; s++) { /* runs of ours, and configurations that were not recorded */
        runs[s].plan.foreign = NULL;
        SAYS(NULL);
        runs[s].plan.foreign = &foreign;
        runs[s].plan.configuration = NULL;
        SAYS(NULL);
        runs[s].plan.configuration = texts[s];
    }
}

/* A value is told up to its 48th letter. */
static void validate_long_values(void **state) {
    (void)state;
    for (size_t was = 46; was < 51; was++)
        for (size_t is = 46; is < 51; is++) {
            char values[2][64], words[256];
            const size_t lengths[2] = {was, is};
            open_scene();
            for (int s = 0; s < 2; s++) {
                for (size_t i = 0; i < lengths[s]; i++)
                    values[s][i] = (char)((s == 0 ? 'a' : 'A') + i % 26);
                values[s][lengths[s]] = '\0';
                line(s, "optimizer.0.0.eps", values[s]);
            }
            snprintf(words, sizeof words, "eps of group 0 was %.48s and is %.48s", values[0],
                     values[1]);
            SAYS(words);
        }
}

/* ---- decays ---- */

static void corroborate_decays(void **state) {
    (void)state;
    static const double values[] = {0.0, 0.1, (double)NAN};
    for (uint32_t here = 0; here < 4; here++)
        for (uint32_t there = 0; there < 4; there++)
            for (int number = 0; number < 729; number++) {
                int left = number, expected = here > 0 && there > 0;
                open_scene();
                runs[0].plan.shape.groups = here;
                runs[1].plan.shape.groups = there;
                for (uint32_t g = 0; g < 3; g++, left /= 9) {
                    groups[0][g][GROUP_WD_APPLIED] = values[left % 3];
                    groups[1][g][GROUP_WD_APPLIED] = values[left / 3 % 3];
                    if (g < here && g < there && (left % 3 != left / 3 % 3 || left % 3 == 2))
                        expected = 0;
                }
                assert_int_equal(
                    is_same_decay(&runs[0].plan, &runs[1].plan, &rows[0], &rows[1]) != 0, expected);
            }
}

/* ---- clipping ---- */

static double threshold_of(double coefficient, double norm) {
    if (!(coefficient > 0.0) || !(coefficient < 1.0)) return (double)NAN;
    return coefficient * (norm + 0.000001);
}

static void corroborate_clipping(void **state) {
    (void)state;
    static const double coefficients[] = {
        -0.5,       0.0,           0.25, 0.25 * (1.0 + 0.9e-5), 0.25 * (1.0 + 1.1e-5),
        0.5,        1.0 - 0x1p-53, 1.0,  1.0 + 0x1p-52,         2.0,
        (double)NAN};
    static const double norms[] = {0.5, 1.0, 1e-6, (double)NAN};
    size_t told = 0, quiet = 0;
    for (size_t a = 0; a < COUNT_OF(coefficients); a++)
        for (size_t b = 0; b < COUNT_OF(coefficients); b++)
            for (size_t m = 0; m < COUNT_OF(norms); m++)
                for (size_t n = 0; n < COUNT_OF(norms); n++) {
                    const double was = threshold_of(coefficients[a], norms[m]);
                    const double is = threshold_of(coefficients[b], norms[n]);
                    char words[256] = "";
                    open_scene();
                    rows[0].reals[REAL_CLIP_COEF] = coefficients[a];
                    rows[1].reals[REAL_CLIP_COEF] = coefficients[b];
                    rows[0].reals[REAL_GRAD_NORM] = norms[m];
                    rows[1].reals[REAL_GRAD_NORM] = norms[n];
                    if (norms[m] == norms[n]) {
                        if (!isnan(was) && !isnan(is) && fabs(was - is) > 0.00001 * was)
                            snprintf(words, sizeof words,
                                     "clipping was to a norm of %.4g and is to %.4g (clip_coef "
                                     "times grad_norm)",
                                     was, is);
                        if (!isnan(was) && isnan(is) && coefficients[b] >= 1.0)
                            snprintf(words, sizeof words,
                                     "clipping was to a norm of %.4g and is not (clip_coef)", was);
                        if (isnan(was) && !isnan(is) && coefficients[a] >= 1.0)
                            snprintf(words, sizeof words,
                                     "clipping is to a norm of %.4g and was not (clip_coef)", is);
                    }
                    SAYS(words[0] == '\0' ? NULL : words);
                    told += words[0] != '\0';
                    quiet += words[0] == '\0';
                }
    assert_true(told > 60 && quiet > 1000);
}

/* ---- the room of the text ---- */

/* What does not fit into 394 letters with two of a separator is three dots, and the last. */
static void corroborate_room(void **state) {
    (void)state;
    for (size_t first = 1; first < 400; first += first < 380 ? 13 : 1)
        for (size_t second = 1; second < 400; second += second < 4 || second > 380 ? 1 : 29) {
            static char pieces[3][512];
            const size_t lengths[3] = {first, second, 1};
            char expected[512] = "";
            struct changes changes = {"", 0};
            int full = 0;
            for (int p = 0; p < 3; p++) {
                memset(pieces[p], 'a' + p, lengths[p]);
                pieces[p][lengths[p]] = '\0';
                add(&changes, pieces[p]);
                const size_t used = strlen(expected);
                if (full) continue;
                full = used + lengths[p] + 2 > 394;
                snprintf(expected + used, sizeof expected - used, "%s%s",
                         used > 0 || full ? ", " : "", full ? "..." : pieces[p]);
            }
            if (strcmp(changes.text, expected) != 0)
                fail_msg("%zu and %zu: %s, not %s", first, second, changes.text, expected);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_settings), cmocka_unit_test(validate_several),
        cmocka_unit_test(validate_long_values), cmocka_unit_test(corroborate_decays),
        cmocka_unit_test(corroborate_clipping), cmocka_unit_test(corroborate_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
