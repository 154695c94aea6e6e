/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Arms that differ exactly and may train alike, told a second time: gradients under every pair of
 * loss scales, optimizers that keep a gradient, factors of clipping by every order of phases, and
 * verdicts of random runs in which few things differ; then which keys reach no weight, over all
 * pairs of short lists of phases and each key beside every setting that counts. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "evidence/judge_reports.c" /* for lists of phases, which no other file asks for */
#define judge_only_reported given_only
static int given_only(const struct judging *judging);
#include "evidence/judge_same.c" /* for what is forgotten, which no other file asks for */
#undef judge_only_reported
#include "tests/base/helper_draws.h"

enum { UPDATES = 3, TENSORS = 2, GROUPS = 2, CASES = 30000, TEXT = 512 };

static struct draws draws;
static struct trace_run runs[2];
static struct judgement judgement;
static struct judging judging;
static struct record records[2][UPDATES];
static double tensors[2][UPDATES][TENSORS][RECORD_TENSORS];
static double groups[2][UPDATES][GROUPS][RECORD_GROUPS];
static uint8_t digests[2][UPDATES][TENSORS][RECORD_TENSOR_DIGESTS][RECORD_DIGEST_BYTES];
static char texts[2][TEXT];
static int only;

static uint32_t pick(uint32_t most) {
    return draws_pick(&draws, most);
}

static int given_only(const struct judging *of) {
    assert_ptr_equal(of, &judging);
    return only;
}

/* Arms that are the same in everything. */
static void open_scene(void) {
    memset(runs, 0, sizeof runs);
    memset(&judgement, 0, sizeof judgement);
    memset(records, 0, sizeof records);
    memset(tensors, 0, sizeof tensors);
    memset(groups, 0, sizeof groups);
    memset(digests, 3, sizeof digests);
    memset(texts, 0, sizeof texts);
    for (int arm = 0; arm < 2; arm++) {
        runs[arm].records = records[arm];
        runs[arm].updates = UPDATES;
        runs[arm].plan.shape.tensors = TENSORS;
        runs[arm].plan.shape.groups = GROUPS;
        runs[arm].plan.configuration = texts[arm];
        for (int u = 0; u < UPDATES; u++) {
            struct record *const record = &records[arm][u];
            record->step = (uint64_t)u + 1;
            record->tensors = tensors[arm][u];
            record->groups = groups[arm][u];
            record->tensor_digests = digests[arm][u];
            record->reals[REAL_LOSS_SCALE] = record->reals[REAL_CLIP_COEF] = (double)NAN;
            for (int g = 0; g < GROUPS; g++)
                groups[arm][u][g][GROUP_LR_APPLIED] = 0.5;
        }
    }
    judgement.updates = UPDATES;
    judging = (struct judging){.run = {&runs[0], &runs[1]}, .out = &judgement};
    only = 0;
}

/* ---- gradients ---- */

static void corroborate_gradients(void **state) {
    (void)state;
    static const double scales[] = {(double)NAN, 1.0, 2.0, 4.0, (double)INFINITY};
    static const double norms[] = {1.0, 2.0, 4.0, (double)NAN, (double)INFINITY};
    for (size_t a = 0; a < COUNT_OF(scales); a++)
        for (size_t b = 0; b < COUNT_OF(scales); b++)
            for (size_t m = 0; m < COUNT_OF(norms); m++)
                for (size_t n = 0; n < COUNT_OF(norms); n++)
                    for (int differ = 0; differ < 3; differ++) {
                        const double one = isnan(scales[a]) ? 1.0 : scales[a];
                        const double two = isnan(scales[b]) ? 1.0 : scales[b];
                        open_scene();
                        records[0][0].reals[REAL_LOSS_SCALE] = scales[a];
                        records[1][0].reals[REAL_LOSS_SCALE] = scales[b];
                        tensors[0][0][1][TENSOR_GRAD_NORM] = norms[m];
                        tensors[1][0][1][TENSOR_GRAD_NORM] = norms[n];
                        digests[1][0][1][TENSOR_DIGEST_GRADIENT][differ == 2 ? 31 : 0] ^=
                            differ != 0;
                        const int expected = one == two ? differ == 0
                                                        : isfinite(norms[m] / one) &&
                                                              norms[m] / one == norms[n] / two;
                        assert_int_equal(equal_gradient(&records[0][0], &records[1][0], 1) != 0,
                                         expected);
                        tensors[0][0][0][TENSOR_GRAD_NORM] = one;
                        tensors[1][0][0][TENSOR_GRAD_NORM] = two;
                        if (isfinite(one) && isfinite(two))
                            assert_int_equal(
                                equal_gradients(&judging, &records[0][0], &records[1][0]) != 0,
                                expected);
                    }
    open_scene();
    runs[0].plan.shape.tensors = 0;
    assert_int_equal(equal_gradients(&judging, &records[0][0], &records[1][0]), 0);
}

static void corroborate_memory(void **state) {
    (void)state;
    static const char *const names[] = {NULL, "adamw", "sgd", "sgdx", "adafactor", "adafactorx"};
    static const char *const momenta[] = {NULL, "0", "0.9", "00"};
    static const char *const betas[] = {NULL, "none", "0.9", "nones"};
    static const char *const modules[] = {NULL, "none", "5ac0", "nonesuch"};
    for (size_t n = 0; n < COUNT_OF(names); n++)
        for (size_t m = 0; m < COUNT_OF(momenta); m++)
            for (size_t b = 0; b < COUNT_OF(betas); b++)
                for (size_t x = 0; x < COUNT_OF(modules); x++) {
                    int at = 0, keeps = 1;
                    open_scene();
                    if (names[n] != NULL)
                        at += sprintf(texts[0] + at, "optimizer.name: %s\n", names[n]);
                    if (momenta[m] != NULL)
                        at += sprintf(texts[0] + at, "optimizer.momentum: %s\n", momenta[m]);
                    if (betas[b] != NULL)
                        at += sprintf(texts[0] + at, "optimizer.beta1: %s\n", betas[b]);
                    if (modules[x] != NULL)
                        at += sprintf(texts[0] + at, "optimizer.module_sha256: %s\n", modules[x]);
                    if (n == 2 && m == 1) keeps = 0; /* plain SGD */
                    if (n == 4 && b == 1) keeps = 0; /* Adafactor without a mean */
                    if (x >= 2) keeps = 0;           /* a module is not known */
                    assert_int_equal(remembers_gradients(&judging) != 0, keeps);
                    for (int how = 0; how < 5; how++) {
                        records[0][0].integers[INTEGER_SKIPPED] = how == 1;
                        groups[0][0][1][GROUP_LR_APPLIED] = how == 2 ? 0.0 : 0.5;
                        groups[0][0][0][GROUP_LR_APPLIED] = how == 3 ? -0.0 : (double)NAN;
                        runs[0].plan.shape.groups = how == 4 ? 0 : 2;
                        const int forgets = !keeps || (how >= 1 && how <= 3);
                        assert_int_equal(may_forget(&judging, &records[0][0]) != 0, forgets);
                    }
                }
}

/* ---- lists of phases ---- */

/* Writes list `number` of up to three of these words; returns whether there is one more. */
static int list_of(int number, const char *const *words, int count, char *out) {
    int length = 0, first = 0, many = 1;
    while (length < 3 && number >= first + many) {
        first += many;
        many *= count;
        length++;
    }
    if (number >= first + many) return 0;
    number -= first;
    char *to = out + sprintf(out, "[");
    for (int i = 0; i < length; i++, number /= count)
        to += sprintf(to, "%s%s", i == 0 ? "" : ", ", words[number % count]);
    sprintf(to, "]");
    return 1;
}

static void corroborate_factors(void **state) {
    (void)state;
    static const char *const words[] = {"clip", "optimize", "zero"};
    char list[64];
    for (int number = -1; number < 0 || list_of(number, words, 3, list); number++)
        for (int factor = 0; factor < 2; factor++)
            for (int skipped = 0; skipped < 2; skipped++)
                for (int copies = 0; copies < 3; copies++) {
                    open_scene();
                    records[1][0].reals[REAL_CLIP_COEF] = factor ? 0.25 : (double)NAN;
                    records[1][0].integers[INTEGER_SKIPPED] = skipped;
                    if (copies > 0)
                        strcat(texts[1],
                               copies == 1 ? "clip.apply: copy\n" : "clip.apply: scale\n");
                    if (number >= 0)
                        sprintf(texts[1] + strlen(texts[1]), "loop.update: %s\n", list);
                    strcat(texts[1], "loop.micro: [clip, optimize]\n");
                    /* A phase that is not in the list is none that comes before another one. */
                    const char *const clip = number < 0 ? NULL : strstr(list, "clip");
                    const char *const step = number < 0 ? NULL : strstr(list, "optimize");
                    const int clips = number < 0 || (clip != NULL && (step == NULL || clip < step));
                    const int expected = factor && !skipped && copies != 1 && clips;
                    assert_true(taken_factor(&runs[1], &records[1][0]) == (expected ? 0.25 : 1.0));
                }
}

static void corroborate_lists(void **state) {
    (void)state;
    static const char *const words[] = {"clip", "log", "logs", "lo"};
    char lists[2][64], left[2][64];
    size_t same = 0;
    for (int a = 0; list_of(a, words, 4, lists[0]); a++)
        for (int b = 0; list_of(b, words, 4, lists[1]); b++) {
            open_scene();
            for (int arm = 0; arm < 2; arm++) { /* the list without `log`, word by word */
                char copy[64];
                left[arm][0] = '\0';
                strcpy(copy, lists[arm]);
                for (char *word = strtok(copy, "[], "); word != NULL; word = strtok(NULL, "[], "))
                    if (strcmp(word, "log") != 0) strcat(strcat(left[arm], word), "|");
                sprintf(texts[arm], "loop.update: %s\n", lists[arm]);
            }
            const int expected = strcmp(left[0], left[1]) == 0;
            if (judge_only_reported(&judging) != expected) fail_msg("%s, %s", lists[0], lists[1]);
            same += expected != 0;
        }
    assert_true(same > 200);
}

/* ---- keys that reach no weight ---- */

static const char *const keys[] = {"loss.logged",
                                   "parallel.logged",
                                   "schedule.logged",
                                   "schedule.logged_shift",
                                   "schedule.contract",
                                   "schedule.processes",
                                   "schedule.rescaled",
                                   "schedule.updates_per_epoch",
                                   "loss.loggedx",
                                   "schedule.name",
                                   "schedule.",
                                   "schedule",
                                   "clip.norm",
                                   "clip.",
                                   "clip",
                                   "parallel.counts",
                                   "parallel.count",
                                   "parallel.countsx",
                                   "optimizer.lr",
                                   "optimizer.lrs",
                                   "optimizer.l",
                                   "loop.update",
                                   "loop.",
                                   "loops.update",
                                   "train.seed"};

static int begins(const char *key, const char *with) {
    return strncmp(key, with, strlen(with)) == 0;
}

/* Whether a key in which the arms differ reaches no weight, beside what both or one of them say. */
static int is_idle(const char *key, int copies, int unclipped, int relative, int outlier) {
    if (outlier) return 0;
    for (size_t i = 0; i < 8; i++)
        if (strcmp(key, keys[i]) == 0) return 1;
    if (begins(key, "clip.") || strcmp(key, "parallel.counts") == 0) return copies || unclipped;
    return relative && (strcmp(key, "optimizer.lr") == 0 || begins(key, "schedule."));
}

static void corroborate_keys(void **state) {
    (void)state;
    static const char *const settings[] = {"clip.apply: copy\n", "clip.max_norm: 0\n",
                                           "optimizer.relative_step: true\n",
                                           "loop.skip: olmo-outlier\n"};
    for (size_t k = 0; k < COUNT_OF(keys); k++)
        for (unsigned in = 0; in < 256; in++) /* which of the settings stand in which arm */
            for (int how = 0; how < 4; how++) {
                open_scene();
                int both[4], any[4], own = 0;
                for (unsigned s = 0; s < 4; s++) {
                    both[s] = (in >> s & 1) != 0 && (in >> (s + 4) & 1) != 0;
                    any[s] = (in >> s & 1) != 0 || (in >> (s + 4) & 1) != 0;
                    for (unsigned arm = 0; arm < 2; arm++)
                        if ((in >> (s + 4 * arm) & 1) != 0) strcat(texts[arm], settings[s]);
                    /* A setting of one arm alone differs, too. */
                    if (any[s] && !both[s]) own = 1;
                }
                if (own && how > 0) continue;
                const char *const values[] = {"1", "2"};
                for (int arm = 0; arm < 2; arm++)
                    if (how != 1 + arm)
                        sprintf(texts[arm] + strlen(texts[arm]), "%s: %s\n", keys[k],
                                values[how == 3 ? 0 : arm]);
                int expected = how == 3 || is_idle(keys[k], both[0], both[1], both[2], any[3]);
                /* Of settings in one arm alone only the threshold of a clip that is a copy in both
                 * reaches no weight. */
                for (unsigned s = 0; s < 4; s++)
                    if (any[s] && !both[s] && !(s < 2 && both[1 - s] && !any[3])) expected = 0;
                if (how == 3 && strcmp(texts[0], texts[1]) == 0) expected = 1;
                if (!!judge_only_reported(&judging) != expected)
                    fail_msg("of\n%sand\n%s", texts[0], texts[1]);
            }
}

/* A key may have 127 letters. */
static void validate_long_keys(void **state) {
    (void)state;
    for (size_t length = 125; length < 131; length++)
        for (int arm = 0; arm < 2; arm++) {
            open_scene();
            for (int a = 0; a < 2; a++) {
                strcpy(texts[a], "loss.logged: a\n");
                if (a == 1) texts[a][13] = 'b';
                char *const to = texts[a] + strlen(texts[a]);
                if (a == arm || length < 128) {
                    memset(to, 'k', length);
                    strcpy(to + length, ": same");
                }
            }
            assert_int_equal(judge_only_reported(&judging), length < 128);
        }
}

/* Arms with equal configurations, or without one, are told apart by LRs and scales. */
static void corroborate_settings(void **state) {
    (void)state;
    static const double values[] = {1.0, 2.0, (double)NAN};
    for (int none = 0; none < 4; none++)
        for (int number = 0; number < 729; number++)
            for (uint32_t common = 0; common < 3; common++) {
                int left = number, expected = 1;
                open_scene();
                for (int arm = 0; arm < 2; arm++) {
                    if ((none >> arm & 1) != 0) runs[arm].plan.configuration = NULL;
                    for (int u = 0; u < UPDATES; u++)
                        for (int g = 0; g < GROUPS; g++)
                            groups[arm][u][g][GROUP_LR_LOGGED] = 1.0;
                }
                runs[number % 2].plan.shape.groups = common;
                judgement.updates = UPDATES - 1; /* the last is not in both */
                groups[0][UPDATES - 1][0][GROUP_LR_LOGGED] = 9.0;
                for (int what = 0; what < 3; what++, left /= 9) {
                    const double a = values[left % 3], b = values[left / 3 % 3];
                    if (what == 0) {
                        records[0][1].reals[REAL_LOSS_SCALE] = a;
                        records[1][1].reals[REAL_LOSS_SCALE] = b;
                    } else {
                        groups[0][what - 1][what - 1][GROUP_LR_LOGGED] = a;
                        groups[1][what - 1][what - 1][GROUP_LR_LOGGED] = b;
                    }
                    if (what > (int)common) continue; /* such a group is not in both */
                    if (left % 3 < 2 && left / 3 % 3 < 2 && left % 3 != left / 3 % 3) expected = 0;
                }
                assert_int_equal(judge_only_reported(&judging) != 0, expected);
            }
}

/* ---- the verdict ---- */

static void spoil(uint8_t *digest) {
    digest[pick(RECORD_DIGEST_BYTES)] ^= 1;
}

static void make_arms(void) {
    static const enum verdict verdicts[] = {VERDICT_IDENTICAL, VERDICT_OUTSIDE_FLOOR,
                                            VERDICT_INSIDE_FLOOR, VERDICT_UNTESTABLE};
    const uint32_t odd = 3 + pick(20);
    open_scene();
    only = (int)pick(2);
    judgement.verdict = verdicts[pick(3) == 0 ? pick(4) : pick(2)];
    judgement.floor = pick(3) == 0 ? FLOOR_FILE : pick(6) == 0 ? FLOOR_RANK : FLOOR_EXACT;
    judgement.floor_pairs = pick(4);
    judgement.floor_largest = pick(4) == 0 ? 0.5 : 0.0;
    judgement.p = pick(2) ? (double)NAN : 0.25;
    judgement.updates = pick(8) == 0 ? 0 : UPDATES;
    judgement.reason = "for a reason";
    judgement.reported.update = pick(2);
    for (int arm = 0; arm < 2; arm++)
        judgement.reported.values[arm] = pick(4) == 0 ? (double)NAN : 1.0;
    if (pick(3) == 0)
        for (int arm = 0; arm < 2; arm++)
            strcpy(texts[arm], "optimizer.name: sgd\noptimizer.momentum: 0\n");
    if (pick(12) == 0) runs[1].plan.shape.tensors = 1;
    if (pick(12) == 0) runs[0].plan.shape.tensors = runs[1].plan.shape.tensors = 0;
    for (int u = 0; u < UPDATES; u++) {
        if (pick(odd) == 0) spoil(records[1][u].digests[DIGEST_WEIGHTS]);
        if (pick(odd) == 0) spoil(records[1][u].digests[DIGEST_LR]);
        if (pick(odd) == 0) records[0][u].reals[REAL_CLIP_COEF] = 0.5;
        for (int t = 0; t < TENSORS; t++) {
            if (pick(4 * odd) == 0) spoil(digests[1][u][t][TENSOR_DIGEST_PARAMETER]);
            if (pick(odd) == 0) spoil(digests[1][u][t][TENSOR_DIGEST_GRADIENT]);
        }
        if (pick(odd) == 0)
            for (int arm = 0; arm < 2; arm++)
                records[arm][u].integers[INTEGER_SKIPPED] = 1;
        if (pick(odd) == 0) groups[0][u][pick(GROUPS)][GROUP_LR_APPLIED] = 0.0;
    }
}

/* Whether update `u` lost a gradient that the arms do not share. */
static int lost(int u) {
    int forgets = strstr(texts[0], "sgd") != NULL, alike = runs[0].plan.shape.tensors > 0;
    const int skips = records[0][u].integers[INTEGER_SKIPPED] != 0;
    for (int g = 0; g < GROUPS; g++)
        forgets |= groups[0][u][g][GROUP_LR_APPLIED] == 0.0;
    for (uint32_t t = 0; t < runs[0].plan.shape.tensors; t++)
        alike &= memcmp(digests[0][u][t][TENSOR_DIGEST_GRADIENT],
                        digests[1][u][t][TENSOR_DIGEST_GRADIENT], RECORD_DIGEST_BYTES) == 0;
    /* An update that is skipped takes no factor. */
    const int factors = !skips && !isnan(records[0][u].reals[REAL_CLIP_COEF]);
    return (forgets || skips) && (!alike || factors);
}

static void corroborate_verdicts(void **state) {
    (void)state;
    size_t met[2][VERDICT_COUNT] = {{0}};
    for (uint32_t number = 0; number < CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0x5a3e), .number = number};
        make_arms();
        const enum verdict before = judgement.verdict;
        const int exact = judgement.floor == FLOOR_EXACT ||
                          (judgement.floor == FLOOR_FILE && judgement.floor_pairs > 0 &&
                           judgement.floor_largest == 0.0);
        const int same_tensors = runs[0].plan.shape.tensors == runs[1].plan.shape.tensors &&
                                 runs[0].plan.shape.tensors > 0;
        const int updates = (int)judgement.updates;
        enum verdict verdict = before;
        uint64_t step = 0;
        int parts = 0;
        if (before == VERDICT_IDENTICAL && exact) {
            for (int u = updates; u-- > 0;)
                if (same_tensors && lost(u)) step = (uint64_t)u + 1;
            const int reports = judgement.reported.update > 0 &&
                                !isnan(judgement.reported.values[0] + judgement.reported.values[1]);
            if (step > 0)
                verdict = VERDICT_SAME_WEIGHTS;
            else if (reports)
                verdict = only ? VERDICT_SAME_TRAINING : VERDICT_SAME_WEIGHTS;
        } else if (exact && updates > 0 &&
                   (before == VERDICT_OUTSIDE_FLOOR ||
                    (judgement.floor == FLOOR_FILE && judgement.p == 0.25))) {
            for (int u = 0; u < updates && !parts; u++) {
                const int state_differs =
                    memcmp(records[0][u].digests[DIGEST_WEIGHTS],
                           records[1][u].digests[DIGEST_WEIGHTS], RECORD_DIGEST_BYTES) != 0;
                int parameters = same_tensors;
                for (uint32_t t = 0; t < runs[0].plan.shape.tensors && parameters; t++)
                    parameters =
                        memcmp(digests[0][u][t][TENSOR_DIGEST_PARAMETER],
                               digests[1][u][t][TENSOR_DIGEST_PARAMETER], RECORD_DIGEST_BYTES) == 0;
                parts = state_differs && !parameters;
                const int lr = memcmp(records[0][u].digests[DIGEST_LR],
                                      records[1][u].digests[DIGEST_LR], RECORD_DIGEST_BYTES) != 0;
                if (!parts && step == 0 && (state_differs || lr || lost(u))) step = (uint64_t)u + 1;
            }
            if (!parts) verdict = step == 0 && only ? VERDICT_SAME_TRAINING : VERDICT_SAME_WEIGHTS;
        }
        const int was_told = verdict != before && before != VERDICT_IDENTICAL;
        judge_same(&judging);
        if (judgement.verdict != verdict)
            fail_msg("case %u: %d, not %d", number, (int)judgement.verdict, (int)verdict);
        if (!parts && judgement.state_step != step) fail_msg("case %u: step", number);
        assert_int_equal(judgement.only_reported, only);
        assert_string_equal(judgement.reason, was_told ? "" : "for a reason");
        met[before == VERDICT_IDENTICAL][verdict]++;
    }
    for (int identical = 0; identical < 2; identical++)
        assert_true(met[identical][VERDICT_SAME_TRAINING] > 500 &&
                    met[identical][VERDICT_SAME_WEIGHTS] > 500);
    assert_true(met[1][VERDICT_IDENTICAL] > 500 && met[0][VERDICT_OUTSIDE_FLOOR] > 500);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_gradients), cmocka_unit_test(corroborate_memory),
        cmocka_unit_test(corroborate_factors),   cmocka_unit_test(corroborate_lists),
        cmocka_unit_test(corroborate_keys),      cmocka_unit_test(validate_long_keys),
        cmocka_unit_test(corroborate_settings),  cmocka_unit_test(corroborate_verdicts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
