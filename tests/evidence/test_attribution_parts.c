/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The sentences about causes, told a second time from their thresholds (docs/decisions/words.md):
 * for figures that lie on each threshold, one unit in the last place beside it, and elsewhere, and
 * for mixtures of up to four causes of which some were not trained. Every function is asked of
 * every case, and each word comes up often. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "evidence/attribution.h"
#include "tests/base/helper_draws.h"

enum { CASES = 20000, MOST = 4, MASKS = 1 << MOST };

static struct draws draws;

static uint32_t pick(uint32_t most) {
    return draws_pick(&draws, most);
}

/* ---- figures on thresholds and beside them ---- */

static double beside(double x) {
    const uint32_t how = pick(3);
    return how == 2 ? x : nextafter(x, how == 1 ? (double)INFINITY : -(double)INFINITY);
}

static double figure(void) {
    static const double thresholds[] = {0.1, 0.35, 0.5, 0.9, 1.1, -0.1, 0.05, 1.0, 0.0, 0.95};
    static const double others[] = {0.02, 0.2, 0.45, 0.6, 0.93, 1.05, 1.3, -0.3};
    if (pick(2) == 0) return beside(thresholds[pick(COUNT_OF(thresholds))]);
    return others[pick(COUNT_OF(others))];
}

static struct attributed interval(double value) {
    struct attributed of = {value, value, value};
    if (pick(3) == 0) of.low = fmin(value, figure());
    if (pick(3) == 0) of.high = fmax(value, figure());
    return of;
}

static const struct attributed untrained = {(double)NAN, (double)NAN, (double)NAN};

static struct attribution of;
static struct attribution_set sets[MASKS];
static struct attributed size_at[MASKS]; /* of each mixture; NaN: it was not trained */
static uint32_t full;

/* Mixtures of one kind: causes that open the gap together, each by itself, with any one of others,
 * or beside others that cancel; then some get a size of their own, and some were not trained. */
static void make_case(void) {
    const uint32_t kind = pick(7), share_kind = kind == 6 ? 3 : pick(4);
    const int exact = kind == 6 && pick(2) == 0;
    memset(&of, 0, sizeof of);
    of.causes = 2 + pick(MOST - 1);
    full = (1u << of.causes) - 1;
    const uint32_t core = pick(full + 1), any = pick(full + 1);
    for (uint32_t mask = 0; mask <= full; mask++) {
        double size = 0.02;
        if (kind == 0) size = (mask & core) == core ? 0.95 : 0.02; /* together */
        if (kind == 1) size = (mask & core) != 0 ? 0.95 : 0.02;    /* each by itself */
        if (kind == 2) size = (mask & core) == core && (mask & any) != 0 ? 0.95 : 0.02;
        if (kind == 3) size = (mask & 1) != 0 ? 0.97 : 0.02; /* the first is the cause */
        if (kind == 4) size = mask == 1 || mask == (full & ~1u) ? (mask == 1 ? 1.0 : 0.02) : 1.05;
        if (kind == 5) size = figure();
        if (kind == 6) size = (mask & 2) != 0 ? 1.0 : 0.0; /* the others do nothing */
        size_at[mask] = interval(pick(5) == 0 ? fabs(figure()) : size);
        if (exact && pick(15) > 0) size_at[mask] = (struct attributed){size, size, size};
        if (pick(12) == 0) size_at[mask] = untrained;
    }
    size_at[0] = (struct attributed){0.0, 0.0, 0.0};
    size_at[full] = (struct attributed){1.0, 1.0, 1.0};
    of.sets = sets;
    const uint32_t first = pick(2), last = full - pick(2); /* neither arm is a mixture */
    for (uint32_t mask = first; mask <= last; mask++)
        if (!isnan(size_at[mask].value) || pick(2) == 0)
            sets[of.set_count++] = (struct attribution_set){mask, size_at[mask]};
    for (uint32_t i = 0; i < of.causes; i++) {
        of.alone[i] = size_at[1u << i];
        of.left[i] = size_at[full & ~(1u << i)];
        const double share = share_kind == 0   ? figure()
                             : share_kind == 1 ? (i == 0 ? 0.95 : 0.01)
                             : share_kind == 2 ? 0.6 - 0.2 * (double)i
                                               : 0.0;
        of.share[i] = share_kind == 3 ? (struct attributed){0.0, 0.0, 0.0} : interval(share);
        if (pick(20) == 0) of.share[i] = untrained;
        if (pick(12) == 0) of.left[i] = interval(figure());
        if (pick(12) == 0) of.alone[i] = interval(figure());
        if (pick(25) == 0) of.share[i].high = pick(2) ? -0.1 : beside(-0.1);
        if (i > 0 && pick(12) == 0)
            of.share[i] = (struct attributed){of.share[0].low - 1e-5, 0.0, of.share[0].low - 1e-5};
        if (i > 0 && pick(12) == 0) of.left[i].value = beside(of.left[0].value - 0.05);
        if (pick(12) == 0 && i == 0) {
            of.left[0].high = beside(0.35);
            of.left[0].low = fmin(of.left[0].low, 0.2);
        }
    }
    of.distance = 2.0;
    of.response = pick(4) == 0 ? beside(1.0) : pick(2) ? (double)NAN : 0.5;
    of.largest_low = pick(6) == 0 ? beside(20.0) : pick(6) == 0 ? (double)NAN : 3.0;
    of.moved = (int)pick(2);
    if (pick(40) == 0) of.distance = 0.0;
    if (pick(40) == 0) of.distance = -1.0;
    if (pick(40) == 0) of.distance = pick(2) ? (double)NAN : (double)INFINITY;
    if (pick(60) == 0) of.causes = 0;
}

/* ---- the word ---- */

static enum attribution_word word_of(void) {
    uint32_t alone_small = 0, closing = 0, enough = 0, widened = 0, back = 0, unknown = 0;
    for (uint32_t i = 0; i < of.causes; i++) {
        alone_small += of.alone[i].high < 0.1;
        closing += of.left[i].high < 0.9;
        enough += of.alone[i].low >= 0.5 && of.left[i].low >= 0.9;
        widened += of.left[i].low > 1.1;
        back += of.share[i].high < -0.1;
        unknown += isnan(of.share[i].value) != 0;
    }
    if (of.causes == 0 || isnan(of.distance) || of.distance < 0.0 || isinf(of.distance))
        return WORD_NONE;
    if (of.distance == 0.0) return of.moved ? WORD_CANCEL : WORD_EQUAL;
    if (2.0 * of.response >= of.distance) return WORD_ROUNDING;
    if (of.largest_low > 10.0 * of.distance) return WORD_NEARLY;
    if (widened + back > 0) return WORD_OPPOSE;
    if (alone_small == of.causes && closing > 0) return WORD_TOGETHER;
    if (enough > 1) return WORD_EACH;
    uint32_t small = 0;
    for (uint32_t i = 1; i < of.causes; i++)
        small += of.share[i].high < 0.1;
    if (of.share[0].low >= 0.9 && of.left[0].high <= 0.35 && small == of.causes - 1)
        return WORD_CAUSE;
    if (unknown > 0) return WORD_NONE;
    for (uint32_t i = 1; i < of.causes; i++) {
        if (!(of.share[i].high < of.share[0].low - 1e-5)) return WORD_OPEN;
        if (of.left[i].value < of.left[0].value - 0.05) return WORD_OPEN;
    }
    return WORD_SEVERAL;
}

static enum attribution_word word_within(void) {
    if (of.largest_low > 10.0 * of.distance) return WORD_NEARLY;
    for (uint32_t i = 0; i < of.causes; i++)
        if (of.left[i].low > 1.1 * of.distance) return WORD_OPPOSE;
    return WORD_NONE;
}

/* ---- mixtures ---- */

static int is_listed(uint32_t mask) {
    for (uint32_t i = 0; i < of.set_count; i++)
        if (sets[i].mask == mask) return 1;
    return 0;
}

static int is_known(uint32_t mask) {
    return mask == 0 || mask == full || (is_listed(mask) && !isnan(size_at[mask].value));
}

static uint32_t bits(uint32_t mask) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < MOST; i++)
        count += mask >> i & 1;
    return count;
}

static int takes_part(uint32_t cause) {
    if (of.alone[cause].value >= 0.1 || fabs(1.0 - of.left[cause].value) >= 0.1) return 1;
    for (uint32_t mask = 0; mask <= full; mask++) {
        const uint32_t with = mask | 1u << cause;
        /* A pair counts where one of the two is listed; of both arms alone nothing is. */
        if (with == mask || !is_known(mask) || !is_known(with)) continue;
        if (!is_listed(mask) && !is_listed(with)) continue;
        if (fabs(size_at[with].value - size_at[mask].value) >= 0.1) return 1;
    }
    return 0;
}

static int is_idle(uint32_t cause) {
    if (of.share[cause].low != 0.0 || of.share[cause].high != 0.0) return 0;
    for (uint32_t mask = 0; mask <= full; mask++) {
        const uint32_t with = mask | 1u << cause;
        if (with == mask || !is_known(mask) || !is_known(with)) continue;
        if (!is_listed(mask) && !is_listed(with)) continue;
        const struct attributed a = size_at[mask], b = size_at[with];
        if (a.value != b.value || a.low < a.high || b.low < b.high) return 0;
    }
    return of.left[cause].value == 1.0 && of.alone[cause].value == 0.0;
}

static void give(struct attribution_joint *out, uint32_t mask, enum joint_role role) {
    for (uint32_t i = 0; i < of.causes; i++)
        if ((mask >> i & 1) != 0) out->role[i] = role;
}

static struct attribution_joint joint_of(enum attribution_word word) {
    struct attribution_joint out;
    memset(&out, 0, sizeof out);
    out.rest = untrained;
    uint32_t first = 0, second = 0;
    if (word == WORD_EACH) {
        for (uint32_t i = 0; i < of.causes; i++) {
            const int enough = of.alone[i].low >= 0.5 && of.left[i].low >= 0.9;
            if (enough) first |= 1u << i;
            if (enough && of.alone[i].low >= 0.9) second |= 1u << i;
        }
        out.kind = bits(second) >= 2 ? JOINT_ALL : JOINT_HALF;
        const uint32_t named = bits(second) >= 2 ? second : first, rest = full & ~named;
        give(&out, named, JOINT_ROLE_NAMED);
        if (is_known(rest)) out.rest = size_at[rest];
        out.rest_is_little = is_known(rest) && size_at[rest].high < 0.1;
        for (uint32_t mask = 0; mask <= full; mask++)
            if (is_listed(mask) && (mask & named) != 0 && size_at[mask].high < 0.5) out.blocked = 1;
    }
    if (word != WORD_TOGETHER) return out;
    uint32_t trained = 0;
    for (uint32_t mask = 1; mask < full; mask++)
        trained += is_known(mask) != 0;
    out.partial = trained < full - 1;
    for (uint32_t i = 0; i < of.causes; i++)
        if (of.left[i].high < 0.5) first |= 1u << i;
    const int known = is_known(first), shut = known && size_at[first].high < 0.5;
    for (uint32_t i = 0; i < of.causes; i++) {
        const uint32_t joined = first | 1u << i;
        if (shut && is_known(joined) && size_at[joined].low >= 0.9) second |= 1u << i;
    }
    if (first != 0 && second != 0)
        out.kind = JOINT_ANY;
    else if (bits(first) >= 2 && known && size_at[first].low >= 0.5)
        out.kind = size_at[first].low >= 0.9 ? JOINT_ALL : JOINT_HALF;
    else {
        uint32_t named = 0;
        for (uint32_t i = 0; i < of.causes; i++)
            if (takes_part(i)) named |= 1u << i;
        out.kind = JOINT_OPEN;
        give(&out, out.partial || bits(named) < 2 ? full : named, JOINT_ROLE_NAMED);
        return out;
    }
    give(&out, first, JOINT_ROLE_NAMED);
    give(&out, second, JOINT_ROLE_ANY);
    int opens = 0, half = 0, unclear = 0;
    for (uint32_t mask = 0; mask < full; mask++) {
        if (!is_listed(mask) || !is_known(mask)) continue;
        const int meant = (mask & first) == first && (second == 0 || (mask & second) != 0);
        const struct attributed size = size_at[mask];
        if (meant && size.high < 0.5) out.blocked = 1;
        if (meant) continue;
        if (size.low >= 0.9) opens = 1;
        if (size.low >= 0.5) half = 1;
        if (size.high >= 0.5) unclear = 1;
    }
    out.others = OTHERS_SHUT;
    if (unclear) out.others = OTHERS_UNKNOWN;
    if (!is_known(full & ~second)) out.others = OTHERS_UNTRAINED;
    if (half) out.others = OTHERS_HALF;
    if (opens) out.others = OTHERS_ALL;
    return out;
}

static int same_figure(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

static void require_joint(uint32_t number, enum attribution_word word) {
    struct attribution_joint found;
    memset(&found, 5, sizeof found);
    attribution_choose_joint(&of, word, &found);
    const struct attribution_joint expected = joint_of(word);
    if (found.kind != expected.kind || found.others != expected.others ||
        !!found.partial != expected.partial || !!found.blocked != expected.blocked ||
        !!found.rest_is_little != expected.rest_is_little ||
        !same_figure(found.rest.value, expected.rest.value) ||
        !same_figure(found.rest.low, expected.rest.low) ||
        !same_figure(found.rest.high, expected.rest.high))
        fail_msg("case %u, word %d: kind %d for %d, others %d for %d", number, word, found.kind,
                 expected.kind, found.others, expected.others);
    for (uint32_t i = 0; i < CAUSE_COUNT; i++)
        if (found.role[i] != expected.role[i])
            fail_msg("case %u, word %d, cause %u: %d for %d", number, word, i, found.role[i],
                     expected.role[i]);
}

static struct attribution_beside beside_of(enum attribution_word word) {
    struct attribution_beside out;
    uint32_t repairs = 0, moving = 0;
    memset(&out, 0, sizeof out);
    for (uint32_t i = 0; i < of.causes; i++)
        if (of.left[i].high < 0.1) repairs |= 1u << i;
    if ((word != WORD_NEARLY && word != WORD_OPPOSE) || bits(repairs) != 1) return out;
    uint32_t only = 0;
    while (repairs >> only != 1)
        only++;
    if (!(of.alone[only].low >= 0.9) || !(of.alone[only].high <= 1.1)) return out;
    for (uint32_t i = 0; i < of.causes; i++)
        if (i != only && of.alone[i].low >= 0.1) moving |= 1u << i;
    if (bits(moving) < 2) return out;
    const int by_itself = is_known(moving) && size_at[moving].high < 0.1;
    const struct attributed together = by_itself ? size_at[moving] : of.left[only];
    out.is_known = 1;
    out.cause = only;
    out.cancels = by_itself ? moving : full & ~(1u << only);
    out.exactly = together.low == 0.0 && together.high == 0.0;
    return out;
}

/* One cause whose repair closes the gap, beside two or three that move and lead back. */
static void make_beside(void) {
    if (of.causes < 3) return;
    const uint32_t only = pick(of.causes);
    for (uint32_t i = 0; i < of.causes; i++) {
        of.alone[i] = interval(pick(4) == 0 ? figure() : i == only ? 1.0 : 1.3);
        of.left[i] = interval(pick(8) == 0 ? figure() : i == only ? 0.05 : 1.4);
    }
    if (pick(4) == 0) of.left[only] = (struct attributed){0.0, 0.0, 0.0};
    for (uint32_t i = 0; i < of.set_count; i++)
        if (sets[i].mask != 0 && sets[i].mask != full && pick(2) == 0)
            sets[i].size = size_at[sets[i].mask] =
                pick(3) == 0 ? (struct attributed){0.0, 0.0, 0.0} : interval(figure());
}

static void require_beside(uint32_t number, enum attribution_word word, uint32_t *known) {
    struct attribution_beside found;
    memset(&found, 5, sizeof found);
    attribution_choose_beside(&of, word, &found);
    const struct attribution_beside expected = beside_of(word);
    if (!!found.is_known != expected.is_known || found.cause != expected.cause ||
        found.cancels != expected.cancels || !!found.exactly != expected.exactly)
        fail_msg("case %u, word %d: %d of %u, %u", number, word, found.is_known, found.cause,
                 found.cancels);
    *known += expected.is_known != 0;
}

static void corroborate_words(void **state) {
    (void)state;
    uint32_t words[WORD_COUNT] = {0}, within[WORD_COUNT] = {0}, kinds[4] = {0}, others[5] = {0};
    uint32_t known = 0, idle = 0, busy = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0xa77b), .number = number};
        make_case();
        const enum attribution_word word = word_of();
        if (attribution_word(&of) != word)
            fail_msg("case %u: %s, not %s", number, attribution_words[attribution_word(&of)],
                     attribution_words[word]);
        words[word]++;
        if (attribution_word_within(&of) != word_within()) fail_msg("case %u, within", number);
        within[word_within()]++;
        if (of.causes == 0) continue; /* nothing is asked of no cause */
        for (int w = WORD_NONE; w < WORD_COUNT; w++)
            require_joint(number, (enum attribution_word)w);
        kinds[joint_of(WORD_TOGETHER).kind]++;
        others[joint_of(WORD_TOGETHER).others]++;
        for (uint32_t i = 0; i < of.causes; i++) {
            if (pick(3) == 0) {
                of.left[i].value = beside(1.0);
                of.alone[i].value = pick(3) == 0 ? 0x1p-1074 : 0.0;
            }
            if (!!attribution_is_idle(&of, i) != is_idle(i))
                fail_msg("case %u, idle %u", number, i);
            idle += is_idle(i) != 0;
            busy += is_idle(i) == 0;
        }
        make_beside();
        for (int w = WORD_NONE; w < WORD_COUNT; w++)
            require_beside(number, (enum attribution_word)w, &known);
    }
    for (size_t w = 0; w < WORD_COUNT; w++)
        if (words[w] < CASES / 500) fail_msg("%s: %u", attribution_words[w], words[w]);
    for (size_t k = 0; k < COUNT_OF(kinds); k++)
        assert_true(kinds[k] > CASES / 500);
    for (size_t k = 0; k < COUNT_OF(others); k++)
        assert_true(others[k] > CASES / 500);
    assert_true(within[WORD_NEARLY] > 100 && within[WORD_OPPOSE] > 100 && within[WORD_NONE] > 100);
    assert_true(known > CASES / 50 && idle > CASES / 500 && busy > CASES);
}

/* ---- single figures ---- */

static void corroborate_order_of_shares(void **state) {
    (void)state;
    static const double ends[] = {-1.0, -0.5,        -0.25,       -1e-5, 0.0, 1e-5,       2e-5,
                                  0.25, 0.25 + 1e-5, 0.25 + 2e-5, 0.5,   1.0, (double)NAN};
    size_t before = 0;
    for (size_t a = 0; a < COUNT_OF(ends); a++)
        for (size_t b = a; b < COUNT_OF(ends); b++)
            for (size_t c = 0; c < COUNT_OF(ends); c++)
                for (size_t d = c; d < COUNT_OF(ends); d++) {
                    const struct attributed one = {ends[a], ends[a], ends[b]};
                    const struct attributed two = {ends[c], ends[c], ends[d]};
                    /* The least of |x| in the one, the largest in the other. */
                    double least = fmin(fabs(ends[a]), fabs(ends[b]));
                    if (ends[a] <= 0.0 && ends[b] >= 0.0) least = 0.0;
                    const double most = fmax(fabs(ends[c]), fabs(ends[d]));
                    int expected = most < least - 1e-5;
                    if (isnan(ends[b]) || isnan(ends[d])) continue; /* in words_of above */
                    assert_int_equal(share_is_before(&one, &two) != 0, expected);
                    before += expected != 0;
                }
    assert_true(before > 200);
    assert_int_equal(share_is_before(&untrained, &untrained), 0);
    for (size_t a = 0; a < COUNT_OF(ends); a++)
        for (size_t b = a; b < COUNT_OF(ends); b++) {
            const struct attributed one = {7.0, ends[a], ends[b]};
            assert_int_equal(share_is_none(&one) != 0, ends[a] == 0.0 && ends[b] == 0.0);
            assert_int_equal(attribution_closes(&one) != 0, ends[b] < 0.1);
        }
    assert_int_equal(attribution_closes(&(struct attributed){0.0, 0.0, 0.1}), 0);
}

/* The perturbed run explains a gap of which it went half. */
static void corroborate_rounding(void **state) {
    (void)state;
    static const double sizes[] = {0.0, 0x1p-1074, 0x1p-1073, 0.5, 1.0, 2.0, 1e300, (double)NAN};
    for (size_t r = 0; r < COUNT_OF(sizes); r++)
        for (size_t g = 0; g < COUNT_OF(sizes); g++) {
            assert_int_equal(rounding_explains(sizes[r], sizes[g]) != 0,
                             2.0 * sizes[r] >= sizes[g]);
            assert_int_equal(
                rounding_explains(sizes[r], nextafter(2.0 * sizes[r], (double)INFINITY)), 0);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_words),
        cmocka_unit_test(corroborate_order_of_shares),
        cmocka_unit_test(corroborate_rounding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
