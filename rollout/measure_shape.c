/* SPDX-License-Identifier: Apache-2.0
 * What signatures rest on. First the structure of a sequence: other ids, other lengths, zeros on
 * one side, positions moved by one. What that explains is set aside, and the rest is grouped: signs
 * of d by probability, id, sequence and position, sizes by sequence, length, version and expert.
 *
 * Sizes are d / (1 - pi) of tokens with pi < 0.9: noise of logits reaches the log-prob of its token
 * by a factor of about 1 - pi, so what is left is alike for likely and unlikely tokens. */
#include <string.h>

#include "base/dtype.h"
#include "base/real.h"
#include "determinism/statistics.h"
#include "rollout/measure_private.h"

/* A run of zeros counts where the other side says that these tokens were far from certain. */
#define ZERO_RUN 2u
#define ZERO_OTHER 0.5 /* mean log-prob of the other side, below minus this */
/* Positions are called moved where moving them back leaves less than a quarter. */
#define SHIFT_TOKENS 16u
#define SHIFT_FACTOR 0.25
#define SHIFT_LEAST 0.05

enum status rollout_shape_open(struct rollout_traits *shape, struct arena *arena) {
    TRY(arena_take(arena, MEASURE_IDS, sizeof *shape->id_tokens, "ids", &shape->id_tokens));
    TRY(arena_take(arena, MEASURE_IDS, sizeof *shape->id_sign, "ids", &shape->id_sign));
    TRY(arena_take(arena, FAR_PLACES, sizeof *shape->place_tokens, "places", &shape->place_tokens));
    TRY(arena_take(arena, FAR_PLACES, sizeof *shape->place_sign, "places", &shape->place_sign));
    TRY(spread_open(&shape->size, 5, arena));
    TRY(spread_open(&shape->most, 8, arena));
    for (int i = 0; i < MEASURE_LEVELS; i++) {
        TRY(spread_open(&shape->level[i].mean, 8, arena));
        TRY(spread_open(&shape->level[i].middle, 8, arena));
        TRY(spread_open(&shape->level[i].largest, 8, arena));
    }
    for (int i = 0; i < 2; i++)
        TRY(spread_open(&shape->routed_size[i], 5, arena));
    for (int l = 0; l < GROUP_LEVELS; l++) {
        for (int i = 0; i < MEASURE_LENGTHS; i++)
            TRY(spread_open(&shape->length[i].spread[l], GROUP_BITS, arena));
        for (int i = 0; i < MEASURE_VERSIONS; i++)
            TRY(spread_open(&shape->version[i].spread[l], GROUP_BITS, arena));
    }
    return STATUS_OK;
}

/* ---- structure ---- */

static void note_line(struct rollout_work *work, enum rollout_kind kind) {
    uint32_t *line = &work->out->shape.first_line[kind];
    if (*line == 0) *line = work->sequence.line;
}

/* Puts tokens first ... end - 1 into `slice` and, where `aside`, out of the rest. */
static void set_aside(struct rollout_work *work, struct rollout_slice *slice, size_t first,
                      size_t end, int aside) {
    slice->sequences++;
    for (size_t i = first; i < end; i++) {
        rollout_slice_add(slice, &work->token[i], 0.0);
        if (aside) work->token[i].aside = 1;
    }
}

static void look_at_lists(struct rollout_work *work) {
    struct rollout_traits *shape = &work->out->shape;
    const unsigned shapes = work->sequence.shapes;
    shape->both_ids += (shapes & SHAPE_BOTH) != 0;
    if ((shapes & SHAPE_IDS) != 0) {
        note_line(work, LINE_IDS);
        set_aside(work, &shape->ids, 0, work->count, 0);
    }
    if ((shapes & SHAPE_SHORT) != 0) {
        note_line(work, LINE_SHORT);
        set_aside(work, &shape->shorter, 0, work->count, 0);
    }
    if ((shapes & SHAPE_FRONT) != 0) {
        note_line(work, LINE_FRONT);
        set_aside(work, &shape->front, 0, work->count, 0);
    }
}

static double value_of(const struct rollout_token *token, int side) {
    return side == 0 ? token->engine : token->trainer;
}

/* A run first ... end - 1 of zeros on `side`: is it more than tokens that are certain? */
static void look_at_run(struct rollout_work *work, int side, size_t first, size_t end) {
    struct rollout_traits *shape = &work->out->shape;
    double other = 0.0;
    for (size_t i = first; i < end; i++)
        other = other + value_of(&work->token[i], 1 - side);
    if (end - first < ZERO_RUN || other / (double)(end - first) > -ZERO_OTHER) return;
    struct rollout_slice *slice = first == 0 && end == work->count ? &shape->zero_all[side]
                                  : first == 0                     ? &shape->zero_front[side]
                                  : end == work->count             ? &shape->zero_end[side]
                                                                   : &shape->zero_inside[side];
    note_line(work, LINE_ZERO);
    set_aside(work, slice, first, end, 1);
}

static void look_at_zeros(struct rollout_work *work) {
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < work->count;) {
            const size_t first = i;
            while (i < work->count && value_of(&work->token[i], side) == 0.0)
                i++;
            if (i > first) look_at_run(work, side, first, i);
            i += i == first;
        }
}

/* The token whose trainer's log-prob is compared with the engine's of token i; NULL: there is none,
 * or a run set one of them aside. */
static const struct rollout_token *other_of(const struct rollout_work *work, size_t i, int lag) {
    if ((lag < 0 && i < (size_t)-lag) || (lag > 0 && i + (size_t)lag >= work->count)) return NULL;
    const struct rollout_token *other = &work->token[lag < 0 ? i - (size_t)-lag : i + (size_t)lag];
    return work->token[i].aside || other->aside ? NULL : other;
}

/* Sum of |trainer of token i + lag - engine of token i| over the tokens that no run set aside. */
static double sum_apart(const struct rollout_work *work, int lag, size_t *out_tokens) {
    double sum = 0.0;
    *out_tokens = 0;
    for (size_t i = 0; i < work->count; i++) {
        const struct rollout_token *other = other_of(work, i, lag);
        if (other == NULL) continue;
        sum = sum + real_abs_f64(other->trainer - work->token[i].engine);
        (*out_tokens)++;
    }
    return sum;
}

static double apart_by(const struct rollout_work *work, int lag, size_t *out_tokens) {
    const double sum = sum_apart(work, lag, out_tokens);
    return *out_tokens == 0 ? real_inf_f64() : sum / (double)*out_tokens;
}

/* How much of the variance of the trainer's log-probs is not on a rising line over the engine's,
 * and the slope of that line. 1 where there is none. */
static double off_line(const struct rollout_work *work, int lag, double *slope) {
    double n = 0.0, x = 0.0, y = 0.0, xx = 0.0, xy = 0.0, yy = 0.0;
    for (size_t i = 0; i < work->count; i++) {
        const struct rollout_token *other = other_of(work, i, lag);
        if (other == NULL) continue;
        const double a = work->token[i].engine, b = other->trainer;
        n = n + 1.0;
        x = x + a;
        y = y + b;
        xx = real_fma_f64(a, a, xx);
        xy = real_fma_f64(a, b, xy);
        yy = real_fma_f64(b, b, yy);
    }
    const double sxx = n * xx - x * x, sxy = n * xy - x * y, syy = n * yy - y * y;
    *slope = 0.0;
    if (!(sxx > 0.0) || !(syy > 0.0) || sxy <= 0.0) return 1.0;
    *slope = sxy / sxx;
    return 1.0 - sxy / sxx * (sxy / syy);
}

/* Another temperature moves every log-prob, so that positions that are moved back do not make both
 * sides alike. They are on a line then, though, and at the same place they are not. One sequence
 * says little of that, so it sets nothing aside. */
static void look_for_line(struct rollout_work *work) {
    struct rollout_traits *shape = &work->out->shape;
    double slope, slope_best = 0.0, least = 1.0;
    int best = 0;
    const double here = off_line(work, 0, &slope);
    shape->lined++;
    for (int lag = -2; lag <= 2; lag++) {
        const double left = off_line(work, lag, &slope);
        if (left >= least) continue;
        least = left;
        best = lag;
        slope_best = slope;
    }
    if (best == 0 || least >= SHIFT_FACTOR * here) return;
    shape->in_line[best + 2]++;
    shape->line_left[best + 2] = shape->line_left[best + 2] + least;
    shape->line_slope[best + 2] = shape->line_slope[best + 2] + slope_best;
}

static void look_at_positions(struct rollout_work *work) {
    struct rollout_traits *shape = &work->out->shape;
    size_t tokens;
    const double here = apart_by(work, 0, &tokens);
    int best = 0;
    double least = here;
    if (tokens < SHIFT_TOKENS || here < SHIFT_LEAST) return;
    for (int lag = -2; lag <= 2; lag++) {
        size_t moved;
        const double apart = apart_by(work, lag, &moved);
        if (moved + 2 < tokens || apart >= least) continue;
        least = apart;
        best = lag;
    }
    if (least >= SHIFT_FACTOR * here) {
        look_for_line(work);
        return;
    }
    note_line(work, LINE_SHIFT);
    shape->moved_back.sequences++;
    shape->moved_back.absolute = shape->moved_back.absolute + sum_apart(work, best, &tokens);
    shape->moved_back.tokens += tokens;
    set_aside(work, &shape->shifted[best + 2], 0, work->count, 1);
}

/* ---- groups ---- */

/* Numbers the half octaves of -log-prob from 2^-4 on. */
static size_t heat_of(double mean) {
    const double size = -mean * 16.0;
    if (!(size >= 1.0)) return 0;
    const uint64_t bits = real_bits_f64(size) >> 51; /* exponent and one bit: half octaves */
    const uint64_t group = bits - ((uint64_t)1023 << 1) + 1;
    return group < MEASURE_HEATS ? (size_t)group : MEASURE_HEATS - 1;
}

static size_t octave_of(uint64_t value) {
    size_t octave = 0;
    for (; value != 0; value >>= 1)
        octave++;
    return octave < SLICE_POSITIONS ? octave : SLICE_POSITIONS - 1;
}

static void add_sign(struct rollout_traits *shape, const struct rollout_token *token, double sign) {
    const size_t position = octave_of(token->position);
    if (token->id >= 0.0 && token->id < (double)MEASURE_IDS) {
        const size_t id = (size_t)token->id;
        shape->id_tokens[id]++;
        shape->id_sign[id] += (int32_t)sign;
    }
    if (token->position < FAR_PLACES) {
        shape->place_tokens[token->position]++;
        shape->place_sign[token->position] += (int32_t)sign;
    }
    shape->position_sign[position] = shape->position_sign[position] + sign;
    shape->position_tokens[position] = shape->position_tokens[position] + 1.0;
    shape->signs = shape->signs + sign;
    shape->tokens = shape->tokens + 1.0;
}

static void add_heat(struct rollout_traits *shape, const struct rollout_token *token, double sign) {
    const size_t heat = heat_of(token->mean);
    shape->heat_tokens[heat]++;
    shape->heat_sign[heat] = shape->heat_sign[heat] + sign;
    shape->heat_absolute[heat] = shape->heat_absolute[heat] + real_abs_f64(token->d);
    shape->heat_d[heat] = shape->heat_d[heat] + token->d;
    shape->heat_logp[heat] = shape->heat_logp[heat] + token->mean;
    shape->heat_squares[heat] = real_fma_f64(token->d, token->d, shape->heat_squares[heat]);
}

/* The step between neighbours of a format with so many bits of fraction, at x. */
static double step_at(double x, int fraction) {
    const uint64_t exponent = real_bits_f64(x) >> 52 & 0x7ff;
    return exponent <= (uint64_t)fraction
               ? 0.0
               : real_from_bits_f64((exponent - (uint64_t)fraction) << 52);
}

/* Counts a log-prob that a side may have rounded to decimals. As a number of binary32 it lies
 * within half of its last place of one. */
static void add_decimals(struct rollout_traits *shape, int side, double value, double d) {
    double unit = 100.0;
    for (int i = 0; i < MEASURE_DECIMALS; i++, unit *= 10.0) {
        const double scaled = value * unit, off = 0x1p-24 * real_abs_f64(scaled);
        if (!(real_abs_f64(scaled) < 1e15)) return;
        const double nearest = (double)(int64_t)(scaled < 0.0 ? scaled - 0.5 : scaled + 0.5);
        if (real_abs_f64(scaled - nearest) > off) continue;
        shape->decimals[side][i]++;
        shape->inside_decimal[side][i] += real_abs_f64(d) * unit <= 0.5 + 2.0 * off;
    }
}

static void add_least(struct rollout_traits *shape, int side, double value, double other) {
    if (value < shape->least[side]) {
        shape->least[side] = value;
        shape->least_tokens[side] = shape->least_apart[side] = 0;
    }
    shape->least_tokens[side] += value == shape->least[side];
    shape->least_apart[side] += value == shape->least[side] && other != value;
}

static void add_bits(struct rollout_traits *shape, const struct rollout_token *token) {
    static const int fraction[2] = {7, 10}; /* bf16, f16 */
    for (int side = 0; side < 2; side++) {
        const double value = value_of(token, side);
        if (value == 0.0) continue;
        shape->nonzero[side]++;
        add_decimals(shape, side, value, token->d);
        add_least(shape, side, value, value_of(token, 1 - side));
        for (int f = 0; f < 2; f++) {
            const uint64_t low = ((uint64_t)1 << (52 - fraction[f])) - 1;
            if ((real_bits_f64(value) & low) != 0) continue;
            shape->few_bits[side][f]++;
            shape->inside_step[side][f] +=
                real_abs_f64(token->d) <= 0.5 * step_at(value, fraction[f]);
        }
    }
}

/* The group of the sequences with this key; NULL where there are too many. */
static struct rollout_group *version_of(struct rollout_traits *shape, int64_t key) {
    for (int i = 0; i < MEASURE_VERSIONS; i++) {
        struct rollout_group *group = &shape->version[i];
        if (group->slice.tokens > 0 && group->slice.key != key) continue;
        group->slice.key = key;
        return group;
    }
    return NULL;
}

/* How far behind the trainer's weights those of a token were. Without the trainer's version the key
 * is minus the version, so that within a file a larger key is an older one as well. */
static int lag_of(const struct rollout_sequence *s, double version, int64_t *out) {
    const struct rollout_list *now = &s->list[ROLLOUT_NOW];
    const double newest = now->given != 0 && now->count > 0 ? now->value[0] : 0.0;
    const double lag = newest - version;
    if (!(lag > -0x1p53 && lag < 0x1p53)) return 0;
    *out = (int64_t)lag;
    return 1;
}

static size_t length_group(size_t tokens) {
    const uint64_t bits = real_bits_f64((double)tokens) >> 49; /* eighth octaves */
    const uint64_t group = bits - ((uint64_t)1023 << 3);
    return group < MEASURE_LENGTHS ? (size_t)group : MEASURE_LENGTHS - 1;
}

/* ---- sizes of one sequence ---- */

struct one {
    double largest, signs, absolute;
    uint64_t tokens, signed_tokens;
};

static void add_size(struct rollout_work *work, struct one *one,
                     const struct rollout_token *token) {
    struct rollout_traits *shape = &work->out->shape;
    const double size = real_abs_f64(token->d) / (1.0 - token->pi);
    if (token->pi >= 0.9) return;
    spread_add(&shape->size, size);
    if (token->routed >= 0) spread_add(&shape->routed_size[token->routed], size);
    shape->sizes++;
    work->size[one->tokens++] = size;
    if (size > one->largest) one->largest = size;
}

/* ---- equal numbers of tokens ---- */

/* Takes 4^level of `count` sizes, evenly spaced. Returns their number, 0 where there are fewer. */
static size_t take_level(struct rollout_work *work, size_t count, int level) {
    const size_t wanted = (size_t)1 << (2 * level);
    if (count < wanted) return 0;
    for (size_t i = 0; i < wanted; i++)
        work->taken[i] = work->size[i * count / wanted];
    return wanted;
}

static void add_group(struct rollout_work *work, size_t count, struct rollout_group *group) {
    for (int l = 0; l < GROUP_LEVELS; l++) {
        const size_t taken = take_level(work, count, l + 1);
        if (taken == 0) return;
        spread_add(&group->spread[l], sum_terms_f64_f64(work->taken, taken) / (double)taken);
    }
}

static void add_levels(struct rollout_work *work, size_t count) {
    struct rollout_traits *shape = &work->out->shape;
    for (int l = 0; l < MEASURE_LEVELS; l++) {
        struct rollout_level *level = &shape->level[l];
        const size_t taken = take_level(work, count, l);
        if (taken == 0) return;
        spread_add(&level->mean, sum_terms_f64_f64(work->taken, taken) / (double)taken);
        statistics_sort(work->taken, taken);
        spread_add(&level->middle, work->taken[(taken - 1) / 2]);
        spread_add(&level->largest, work->taken[taken - 1]);
    }
}

/* Sizes of the tokens from `first` on that have the version of that one; *out_end is behind them.
 * Most often these are all tokens of a sequence. */
static size_t take_version(struct rollout_work *work, size_t first, size_t *out_end) {
    const double version = work->token[first].version;
    size_t count = 0, i = first;
    for (; i < work->count && (work->token[i].version == version || version != version); i++) {
        const struct rollout_token *token = &work->token[i];
        if (!token->aside && token->pi < 0.9)
            work->size[count++] = real_abs_f64(token->d) / (1.0 - token->pi);
    }
    *out_end = i;
    return count;
}

static void add_versions(struct rollout_work *work) {
    struct rollout_traits *shape = &work->out->shape;
    for (size_t first = 0, end; first < work->count; first = end) {
        const double version = work->token[first].version;
        const size_t count = take_version(work, first, &end);
        int64_t key = 0;
        if (count == 0) continue;
        struct rollout_group *group = NULL;
        if (version == version && lag_of(&work->sequence, version, &key))
            group = version_of(shape, key);
        if (group == NULL) continue;
        add_group(work, count, group);
        group->slice.sequences++;
        for (size_t i = first; i < end; i++)
            if (!work->token[i].aside) rollout_slice_add(&group->slice, &work->token[i], 0.0);
    }
}

static void close_one(struct rollout_work *work, const struct one *one) {
    struct rollout_traits *shape = &work->out->shape;
    const double n = (double)one->signed_tokens;
    shape->sequences.pairs = shape->sequences.pairs + n * (n - 1.0);
    shape->sequences.agree = shape->sequences.agree + (one->signs * one->signs - n);
    if (one->tokens == 0) return;
    struct rollout_group *group = &shape->length[length_group(work->sequence.count)];
    spread_add(&shape->most, one->largest);
    add_levels(work, one->tokens);
    add_group(work, one->tokens, group);
    group->slice.sequences++;
}

static void add_rest(struct rollout_work *work) {
    struct rollout_traits *shape = &work->out->shape;
    struct one one = {0};
    uint64_t tokens = 0;
    double before = 0.0;
    for (size_t i = 0; i < work->count; i++) {
        const struct rollout_token *token = &work->token[i];
        if (token->aside) continue;
        const double sign = token->d > 0.0 ? 1.0 : token->d < 0.0 ? -1.0 : 0.0;
        tokens++;
        one.absolute = one.absolute + real_abs_f64(token->d);
        rollout_slice_add(&shape->rest, token, rollout_k3(token->d));
        shape->squares = real_fma_f64(token->d, token->d, shape->squares);
        struct rollout_group *length = &shape->length[length_group(work->sequence.count)];
        rollout_slice_add(&length->slice, token, 0.0);
        if (i < GROUP_EARLY) rollout_slice_add(&length->early, token, 0.0);
        if (token->routed >= 0) rollout_slice_add(&shape->routed[token->routed], token, 0.0);
        add_heat(shape, token, sign);
        add_bits(shape, token);
        add_size(work, &one, token);
        if (sign == 0.0) continue;
        if (before != 0.0) {
            shape->neighbours = shape->neighbours + 1.0;
            shape->neighbour_signs = shape->neighbour_signs + sign * before;
        }
        before = sign;
        add_sign(shape, token, sign);
        one.signs = one.signs + sign;
        one.signed_tokens++;
    }
    if (tokens == 0) return;
    shape->rest.sequences++;
    const double n = (double)tokens;
    shape->mean_squares[0] = real_fma_f64(one.absolute, one.absolute, shape->mean_squares[0]);
    shape->mean_squares[1] = real_fma_f64(one.absolute, n, shape->mean_squares[1]);
    shape->mean_squares[2] = real_fma_f64(n, n, shape->mean_squares[2]);
    close_one(work, &one);
    add_versions(work);
}

void rollout_shape_add(struct rollout_work *work) {
    look_at_lists(work);
    look_at_zeros(work);
    look_at_positions(work);
    add_rest(work);
}
