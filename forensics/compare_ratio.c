/* SPDX-License-Identifier: Apache-2.0
 * Whether two columns stand in a fixed ratio, and what such a ratio is known for. Columns that are
 * apart by a fixed number are told from those (compare_offset.c).
 *
 * A ratio is claimed when it holds in four fifths of at least four pairs, within the printed
 * precision or DRIFT, and in the first pair within its precision or FIRST_DRIFT. Coarse prints that
 * admit two candidates name none. Threads behind the names: huggingface/trl#2615,
 * huggingface/transformers#35207 and #34242, ByteDance-Seed/VeOmni#862,
 * meta-pytorch/torchtune#2275. Invariant: a ratio never rests on a pair whose sign or size is
 * unknown. */
#include "base/real.h"
#include "forensics/compare_parts.h"

/* How far a ratio may be off beyond the printed digits. In the first pair the weights of the two
 * runs are equal; after the first update they differ a little, so that an exact ratio drifts.
 * Chosen: 0.5 % leaves room for that drift and stays below 1 %, the smallest factor that is told
 * from 1. With 0 in place of either, tests/forensics/test_compare_lr.c no longer finds the ratios
 * of drifting runs. */
#define DRIFT 0.005
#define FIRST_DRIFT 0.001

struct interval {
    double low, high;
};

/* Returns the ratios a/b that the printed digits allow; empty (low > high) when b may be 0. */
static struct interval ratios_of(const struct series_point *a, const struct series_point *b) {
    const double bottom = real_abs_f64(b->value), top = real_abs_f64(a->value);
    const double qa = 0.5 * a->quantum, qb = 0.5 * b->quantum;
    if (!(bottom > 2.0 * qb) || !(top > 2.0 * qa) || !real_finite_f64(top) ||
        !real_finite_f64(bottom) || (a->value < 0.0) != (b->value < 0.0))
        return (struct interval){1.0, 0.0};
    return (struct interval){(top - qa) / (bottom + qb), (top + qa) / (bottom - qb)};
}

/* Tells whether one of two numbers is 0, as far as it is printed, and the other one is more than
 * `factor` makes of that: then no fixed factor lies between the columns, whatever other pairs say.
 */
static int speaks_against(const struct series_point *a, const struct series_point *b,
                          double factor) {
    const double top = real_abs_f64(a->value), bottom = real_abs_f64(b->value);
    const double qa = 0.5 * a->quantum, qb = 0.5 * b->quantum;
    if (!real_finite_f64(top) || !real_finite_f64(bottom)) return 0;
    return (a->value == 0.0 && factor * (bottom - qb) > qa) ||
           (b->value == 0.0 && top - qa > factor * qb);
}

static int holds(struct interval ratios, double factor, double drift) {
    return ratios.low <= ratios.high && ratios.low * (1.0 - drift) <= factor &&
           factor <= ratios.high * (1.0 + drift);
}

struct candidate {
    int32_t kind;
    uint64_t n;
    double factor;
};

/* Returns the candidates in the order of preference: whole numbers, then roots of numbers that are
 * no square. */
static struct candidate candidate_at(size_t index) {
    const uint64_t n = 2 + index / 4;
    const double root = real_sqrt_f64((double)n);
    const uint64_t whole = (uint64_t)(root + 0.5);
    const int square = whole * whole == n;
    switch (index % 4) {
    case 0:
        return (struct candidate){COMPARE_FACTOR_WHOLE, n, (double)n};
    case 1:
        return (struct candidate){COMPARE_FACTOR_INVERSE, n, 1.0 / (double)n};
    case 2:
        return (struct candidate){square ? COMPARE_FACTOR_NONE : COMPARE_FACTOR_ROOT, n, root};
    default:
        return (struct candidate){square ? COMPARE_FACTOR_NONE : COMPARE_FACTOR_ROOT_INVERSE, n,
                                  1.0 / root};
    }
}
/* Four candidates for each n from 2 to 1024, above the processes and micro-batches of any run that
 * we know of. */
#define CANDIDATES (4 * 1023)

/* Returns the one candidate in the interval; kind NONE when there is none or several. */
static struct candidate candidate_in(struct interval ratios) {
    struct candidate found = {COMPARE_FACTOR_NONE, 0, 0.0};
    for (size_t i = 0; i < CANDIDATES; i++) {
        const struct candidate candidate = candidate_at(i);
        if (candidate.kind == COMPARE_FACTOR_NONE || !holds(ratios, candidate.factor, FIRST_DRIFT))
            continue;
        if (found.kind != COMPARE_FACTOR_NONE) return (struct candidate){0, 0, 0.0};
        found = candidate;
    }
    return found;
}

/* The value of a side at an update; NaN where it has none. */
static double value_at(const struct compare_side *side, uint64_t update) {
    size_t low = 0, high = side != NULL ? side->count : 0;
    const size_t count = high;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (compare_point(side, middle).update < update)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == count || compare_point(side, low).update != update) return real_nan_f64();
    return compare_point(side, low).value;
}

/* Counts the pairs that have the ratio. With `tokens`, the factor is that column's value. */
static void count_held(const struct compare_column *column, const struct compare_side *tokens,
                       struct compare_ratio *ratio) {
    const struct compare_side *a = &column->side[0], *b = &column->side[1];
    ratio->pairs = ratio->held = 0;
    for (size_t i = 0, j = 0; compare_next(column, &i, &j); i++, j++) {
        const struct series_point x = compare_point(a, i), y = compare_point(b, j);
        const struct interval ratios = ratios_of(&x, &y);
        double factor = ratio->factor;
        if (tokens == NULL && speaks_against(&x, &y, factor)) {
            ratio->first_exact = ratio->pairs++ == 0 ? 0 : ratio->first_exact;
            continue;
        }
        if (ratios.low > ratios.high) continue;
        if (tokens != NULL) {
            const double count = value_at(tokens, x.update);
            if (!(count > 1.0)) continue;
            factor = ratio->kind == COMPARE_FACTOR_TOKENS ? count : 1.0 / count;
        }
        if (ratio->pairs++ == 0) {
            ratio->first_exact = holds(ratios, factor, FIRST_DRIFT);
            ratio->factor = factor;
        }
        ratio->held += holds(ratios, factor, DRIFT) ? 1u : 0u;
    }
}

static int convinces(const struct compare_ratio *ratio) {
    return ratio->first_exact && ratio->pairs >= 4 && 5 * ratio->held >= 4 * ratio->pairs;
}

static int first_ratios(const struct compare_column *column, struct interval *out) {
    const struct compare_side *a = &column->side[0], *b = &column->side[1];
    for (size_t i = 0, j = 0; compare_next(column, &i, &j); i++, j++) {
        const struct series_point x = compare_point(a, i), y = compare_point(b, j);
        *out = ratios_of(&x, &y);
        if (out->low <= out->high) return 1;
    }
    return 0;
}

/* ---- what a ratio is known for ---- */

struct meaning {
    int32_t name;
    unsigned kinds; /* bits of enum compare_factor */
    const char *meaning, *bug;
};

#define KIND(kind) (1u << COMPARE_FACTOR_##kind)
#define WHOLE (KIND(WHOLE) | KIND(INVERSE))
#define ROOT (KIND(ROOT) | KIND(ROOT_INVERSE))
#define TOKEN (KIND(TOKENS) | KIND(TOKENS_INVERSE))
#define ANY (~0u)

static const struct meaning meanings[] = {
    {LOG_LOSS, WHOLE,
     "one log sums the loss over processes or micro-batches where the other averages; whether the "
     "gradient has the factor, too, the gradient norm says",
     "loss_summed_over_ranks, num_items_double_scale"},
    {LOG_LOSS, TOKEN, "one loss is a sum over tokens, the other a mean", "ipo_sum_vs_mean"},
    {LOG_GRAD_NORM, WHOLE,
     "the loss is divided once too often or too rarely: by the accumulation count, the processes, "
     "or the tokens of one rank only",
     "num_items_double_scale, dpo_loss_not_divided, tokens_per_rank_only"},
    {LOG_GRAD_NORM, ROOT,
     "the norm counts replicated gradients several times, or adds squares over ranks",
     "hsdp_double_count"},
    {LOG_GRAD_NORM, TOKEN, "one gradient is of the sum over tokens, the other of the mean",
     "num_items_double_scale"},
    {LOG_TOKENS, WHOLE, "one counts the tokens of one rank or micro-batch, the other of all",
     "tokens_per_rank_only"},
    {LOG_SAMPLES, WHOLE, "the global batches differ by this factor", "unit_mismatch"},
    {LOG_GLOBAL_BATCH, WHOLE, "the global batches differ by this factor", "unit_mismatch"},
    {LOG_LR_LOGGED, ANY, "the peak LRs differ by this factor, or one was scaled by the batch",
     "default_lr_overrides"},
    {LOG_LR_APPLIED, ANY, "the peak LRs differ by this factor, or one was scaled by the batch",
     "default_lr_overrides"},
    {LOG_REWARD_CHOSEN, ANY, "beta differs by this factor", ""},
    {LOG_REWARD_REJECTED, ANY, "beta differs by this factor", ""},
    {LOG_REWARD_MARGIN, ANY, "beta differs by this factor", ""},
    {LOG_LOGP_CHOSEN, TOKEN, "one is a sum over tokens, the other a mean", "ipo_sum_vs_mean"},
    {LOG_LOGP_REJECTED, TOKEN, "one is a sum over tokens, the other a mean", "ipo_sum_vs_mean"},
    {LOG_LOSS_SCALE, ANY, "the loss scales differ", "clip_scaled_grads"}};

/* Loss scales are powers of two: torch's GradScaler begins at 2^16, doubles and halves. Smaller
 * powers than 2^8 are counts of micro-batches and processes as well, of which few runs have more.
 */
enum { SCALE_LEAST = 8, SCALE_MOST = 64 };

double compare_scale_of(const struct compare_ratio *ratio) {
    if (ratio == NULL || ratio->name != LOG_GRAD_NORM || (TOKEN >> ratio->kind & 1u) != 0 ||
        !(ratio->factor > 0.0))
        return 0.0;
    const double factor = ratio->factor < 1.0 ? 1.0 / ratio->factor : ratio->factor;
    double power = (double)(1 << SCALE_LEAST);
    for (int k = SCALE_LEAST; k <= SCALE_MOST; k++, power *= 2.0)
        if (real_abs_f64(factor / power - 1.0) < FIRST_DRIFT) return power;
    return 0.0;
}

static void name_meaning(struct compare_ratio *ratio) {
    ratio->meaning = "a fixed factor between the two columns";
    ratio->bug = "";
    if (compare_scale_of(ratio) > 0.0) {
        ratio->meaning = "a power of two, as a loss scale that one norm was not divided by; or the "
                         "loss is divided once too often or too rarely";
        ratio->bug = "clip_scaled_grads, num_items_double_scale";
        return;
    }
    for (size_t i = 0; i < COUNT_OF(meanings); i++) {
        if (meanings[i].name != ratio->name || (meanings[i].kinds >> ratio->kind & 1u) == 0)
            continue;
        ratio->meaning = meanings[i].meaning;
        ratio->bug = meanings[i].bug;
        return;
    }
}

static int find_tokens(const struct compare_column *column, const struct compare_side *tokens,
                       struct compare_ratio *ratio) {
    if (tokens == NULL || tokens->column == NULL || tokens->column->cumulative) return 0;
    for (int32_t kind = COMPARE_FACTOR_TOKENS; kind <= COMPARE_FACTOR_TOKENS_INVERSE; kind++) {
        ratio->kind = kind;
        count_held(column, tokens, ratio);
        if (convinces(ratio)) return 1;
    }
    return 0;
}

static int find_number(const struct compare_column *column, struct interval first,
                       struct compare_ratio *ratio) {
    const struct candidate candidate = candidate_in(first);
    ratio->kind = candidate.kind;
    ratio->n = candidate.n;
    ratio->factor = candidate.factor;
    if (candidate.kind == COMPARE_FACTOR_NONE) {
        /* A constant that is no candidate needs an interval as narrow as FIRST_DRIFT on either
         * side, and a distance of 1 % from 1, which is twice DRIFT. */
        if (first.high - first.low > 0.002 * first.low) return 0;
        ratio->kind = COMPARE_FACTOR_CONSTANT;
        ratio->factor = 0.5 * first.low + 0.5 * first.high;
        if (real_abs_f64(ratio->factor - 1.0) < 0.01) return 0;
    }
    count_held(column, NULL, ratio);
    return convinces(ratio);
}

/* ---- offsets ---- */

static const char *offset_meaning(int32_t name) {
    switch (name) {
    case LOG_LOSS:
        return "such as a term that is in one loss alone and hardly changes (an auxiliary loss, a "
               "penalty)";
    case LOG_LOGP_CHOSEN:
    case LOG_LOGP_REJECTED:
        return "such as tokens that one sum alone counts and that are alike in every row (of a "
               "template, the end of a text)";
    case LOG_REWARD_CHOSEN:
    case LOG_REWARD_REJECTED:
    case LOG_REWARD_MARGIN:
        return "such as another reference";
    default:
        return "something is added to one of the two";
    }
}

/* Takes the offset in place of the ratio where it explains more. A factor that is a whole number or
 * a root stays where the columns tell no difference: constants seldom are such numbers by chance.
 */
static void weigh_offset(const struct compare_ratio *apart, enum compare_reading reading,
                         struct compare_ratio *ratio) {
    if (reading == COMPARE_READ_FACTOR) return;
    if (reading == COMPARE_READ_EITHER && ratio->kind != COMPARE_FACTOR_NONE &&
        ratio->kind != COMPARE_FACTOR_CONSTANT)
        return;
    *ratio = *apart;
    ratio->bug = "";
    ratio->kind = COMPARE_FACTOR_EITHER;
    ratio->meaning = "the columns vary too little to tell which";
    if (reading == COMPARE_READ_EITHER) return;
    ratio->kind = COMPARE_FACTOR_OFFSET;
    ratio->factor = 0.0;
    ratio->meaning = offset_meaning(ratio->name);
}

enum status compare_find_ratio(const struct compare_column *column,
                               const struct compare_side *tokens, struct compare_ratio *out) {
    struct interval first;
    struct compare_ratio apart = {.name = column->name};
    *out = (struct compare_ratio){.name = column->name};
    if (column->class_of != COMPARE_DIFFERENT) return STATUS_OK;
    const enum compare_reading reading = compare_find_offset(column, &apart);
    if (first_ratios(column, &first) &&
        (find_number(column, first, out) || find_tokens(column, tokens, out)))
        name_meaning(out);
    else
        out->kind = COMPARE_FACTOR_NONE;
    weigh_offset(&apart, reading, out);
    return STATUS_OK;
}
