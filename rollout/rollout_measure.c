/* SPDX-License-Identifier: Apache-2.0
 * One pass over a file: sums, counts and slices. What signatures rest on is in measure_shape.c. */
#include "rollout/measure_private.h"

#include <string.h>

#include "base/real.h"

double rollout_k3(double d) {
    if (real_abs_f64(d) > 0x1p-6) return (real_exp_f64(d) - 1.0) - d;
    /* The terms up to d^6 / 720; the next one is at most 2^-41 of the result here. */
    const double tail = 1.0 / 24.0 + d * (1.0 / 120.0 + d * (1.0 / 720.0));
    return d * d * (0.5 + d * (1.0 / 6.0 + d * tail));
}

void rollout_slice_add(struct rollout_slice *slice, const struct rollout_token *token, double k3) {
    const double size = real_abs_f64(token->d);
    slice->tokens++;
    slice->above += token->d > 0.0;
    slice->d = slice->d + token->d;
    slice->absolute = slice->absolute + size;
    slice->k3 = slice->k3 + k3;
    slice->factor = slice->factor + real_exp_f64(size);
    if (size > slice->largest) slice->largest = size;
}

static void add(struct rollout_work *work, enum rollout_sum sum, double value) {
    sum_lanes_term_f64(&work->sum[sum], value);
}

static double held(double value, double low, double high) {
    return value < low ? low : value > high ? high : value;
}

/* ---- tokens ---- */

static size_t octave_of(uint64_t value) {
    size_t octave = 0;
    for (; value != 0; value >>= 1)
        octave++;
    return octave < SLICE_POSITIONS ? octave : SLICE_POSITIONS - 1;
}

static size_t probability_slice(double pi) {
    static const double edges[SLICE_PROBABILITIES - 1] = {1e-3, 1e-2, 0.1, 0.5, 0.9, 0.99};
    size_t i = 0;
    while (i < SLICE_PROBABILITIES - 1 && pi >= edges[i])
        i++;
    return i;
}

static void add_probabilities(struct rollout_work *work, const struct rollout_token *token) {
    const double p = real_exp_f64(token->trainer), q = real_exp_f64(token->engine);
    const double apart = real_abs_f64(p - q);
    add(work, TOTAL_TRAINER_P, p);
    add(work, TOTAL_ENGINE_P, q);
    add(work, TOTAL_TRAINER_P_SQUARE, p * p);
    add(work, TOTAL_ENGINE_P_SQUARE, q * q);
    add(work, TOTAL_PRODUCT_P, p * q);
    add(work, TOTAL_APART_P, apart);
    add(work, TOTAL_APART_P_SQUARE, apart * apart);
    if (apart > work->out->apart_p_most) work->out->apart_p_most = apart;
    /* JS by k3 of both against the mixture m: log(p / m) = -log((1 + exp(-d)) / 2). */
    const double d = held(token->d, -700.0, 700.0);
    const double to_p = real_log1p_f64((rollout_k3(-d) - d) * 0.5);
    const double to_q = real_log1p_f64((rollout_k3(d) + d) * 0.5);
    /* NeMo-RL's k3 takes log(p / m) as its d, so the ratio is p / m. */
    add(work, TOTAL_JS, 0.5 * rollout_k3(-to_p) + 0.5 * rollout_k3(-to_q));
}

static void add_weight(struct rollout_work *work, double d) {
    struct rollout_measure *out = work->out;
    const double w = real_exp_f64(held(d, -ROLLOUT_BOUND, ROLLOUT_BOUND));
    const double tight = held(rollout_k3(d) + d, -0.5, 1.0); /* w - 1 without its cancellation */
    add(work, TOTAL_WEIGHT, w);
    add(work, TOTAL_WEIGHT_SQUARE, w * w);
    add(work, TOTAL_WEIGHT_APART, real_abs_f64(w - 1.0));
    add(work, TOTAL_WEIGHT_HELD, tight);
    add(work, TOTAL_WEIGHT_HELD_SQUARE, tight * tight);
    out->count[COUNT_HELD] += real_abs_f64(d) > ROLLOUT_BOUND;
    out->count[COUNT_W_OVER_2] += w > 2.0;
    out->count[COUNT_W_UNDER_HALF] += w < 0.5;
    out->count[COUNT_W_OVER_5] += w > 5.0;
    out->count[COUNT_VETO] += w < 1e-4;
    if (out->count[COUNT_TOKENS] == 1 || w > out->weight_most) out->weight_most = w;
    if (out->count[COUNT_TOKENS] == 1 || w < out->weight_least) out->weight_least = w;
}

static void add_token(struct rollout_work *work, const struct rollout_token *token) {
    struct rollout_measure *out = work->out;
    const double size = real_abs_f64(token->d), k3 = rollout_k3(token->d);
    out->count[COUNT_TOKENS]++;
    out->count[COUNT_EQUAL] += token->d == 0.0;
    out->count[COUNT_ABOVE] += token->d > 0.0;
    out->count[COUNT_BELOW] += token->d < 0.0;
    add(work, TOTAL_D, token->d);
    add(work, TOTAL_ABSOLUTE, size);
    add(work, TOTAL_SQUARE, token->d * token->d);
    add(work, TOTAL_FACTOR, real_exp_f64(size));
    add(work, TOTAL_K3_ENGINE, k3);
    add(work, TOTAL_K3_TRAINER, rollout_k3(-token->d));
    add_weight(work, token->d);
    add_probabilities(work, token);
    spread_add(&out->size, size);
    rollout_slice_add(&out->position[octave_of(token->position)], token, k3);
    rollout_slice_add(&out->probability[probability_slice(token->pi)], token, k3);
    rollout_slice_add(&out->length[octave_of(work->count)], token, k3);
}

/* ---- sequences ---- */

static struct rollout_slice *slice_of(struct rollout_keys *keys, int64_t key) {
    for (uint32_t i = keys->count; i-- > 0;) /* the last one first: batches come in order */
        if (keys->slice[i].key == key) return &keys->slice[i];
    if (keys->count == SLICE_KEYS) return NULL;
    keys->slice[keys->count].key = key;
    return &keys->slice[keys->count++];
}

static void add_batch(struct rollout_work *work) {
    struct rollout_keys *keys = &work->out->batch;
    const struct rollout_list *batch = &work->sequence.list[ROLLOUT_BATCH];
    if (batch->given == 0 || batch->count == 0 || !real_finite_f64(batch->value[0])) return;
    struct rollout_slice *slice = slice_of(keys, (int64_t)held(batch->value[0], -0x1p53, 0x1p53));
    if (slice == NULL) {
        keys->more += work->count;
        return;
    }
    slice->sequences++;
    for (size_t i = 0; i < work->count; i++)
        rollout_slice_add(slice, &work->token[i], rollout_k3(work->token[i].d));
}

/* Sums over the tokens of one sequence. */
struct one {
    double d, absolute, factor, trainer, engine;
    uint64_t over, veto;
};

static struct one sum_one(const struct rollout_work *work) {
    struct one one = {0};
    for (size_t i = 0; i < work->count; i++) {
        const struct rollout_token *token = &work->token[i];
        one.d = one.d + token->d;
        one.absolute = one.absolute + real_abs_f64(token->d);
        one.factor = one.factor + real_exp_f64(real_abs_f64(token->d));
        one.trainer = one.trainer + token->trainer;
        one.engine = one.engine + token->engine;
        one.over += token->d > 0x1.62e42fefa39efp-1;  /* ln 2 */
        one.veto += token->d < -0x1.26bb1bbb55516p+3; /* ln 1e-4 */
    }
    return one;
}

static void add_sequence_weight(struct rollout_work *work, const struct one *one, double mean) {
    struct rollout_measure *out = work->out;
    const double w = real_exp_f64(held(one->d, -ROLLOUT_BOUND, ROLLOUT_BOUND));
    const double geometric = real_exp_f64(mean);
    const int first = out->count[COUNT_SEQUENCES] == 1;
    add(work, TOTAL_SEQ_WEIGHT, w);
    add(work, TOTAL_SEQ_WEIGHT_SQUARE, w * w);
    out->count[COUNT_SEQ_HELD] += real_abs_f64(one->d) > ROLLOUT_BOUND;
    out->count[COUNT_SEQ_OVER_2] += w > 2.0;
    out->count[COUNT_SEQ_UNDER_HALF] += w < 0.5;
    out->count[COUNT_SEQ_OVER_3] += w > 3.0;
    out->count[COUNT_SEQ_GEOMETRIC] += geometric < 0.999 || geometric > 1.002;
    out->count[COUNT_SEQ_VETO] += one->veto > 0;
    if (first || w > out->seq_weight_most) out->seq_weight_most = w;
    if (first || w < out->seq_weight_least) out->seq_weight_least = w;
    if (first || -mean > out->seq_d_most) out->seq_d_most = -mean;
    if (first || -mean < out->seq_d_least) out->seq_d_least = -mean;
}

static void add_sequence(struct rollout_work *work) {
    struct rollout_measure *out = work->out;
    const struct one one = sum_one(work);
    const double n = (double)work->count, mean = one.d / n;
    out->count[COUNT_SEQUENCES]++;
    out->length[octave_of(work->count)].sequences++;
    add(work, TOTAL_SEQ_MEAN_ABSOLUTE, one.absolute / n);
    add(work, TOTAL_SEQ_MEAN_D, mean);
    add(work, TOTAL_SEQ_MEAN_D_ABSOLUTE, real_abs_f64(mean));
    add(work, TOTAL_SEQ_MEAN_FACTOR, one.factor / n);
    add(work, TOTAL_SEQ_K3, rollout_k3(held(one.d, -ROLLOUT_BOUND, ROLLOUT_BOUND)));
    add(work, TOTAL_SEQ_TRAINER_PPL, real_exp_f64(-one.trainer / n));
    add(work, TOTAL_SEQ_ENGINE_PPL, real_exp_f64(-one.engine / n));
    add(work, TOTAL_SEQ_TRAINER_LOG_PPL, -one.trainer / n);
    add(work, TOTAL_SEQ_ENGINE_LOG_PPL, -one.engine / n);
    add(work, TOTAL_SEQ_PPL_RATIO, real_exp_f64(-mean));
    add(work, TOTAL_SEQ_CLIP, (double)one.over / n);
    const double factor = one.factor / n;
    const int first = out->count[COUNT_SEQUENCES] == 1;
    if (first || factor > out->seq_factor_most) out->seq_factor_most = factor;
    if (first || factor < out->seq_factor_least) out->seq_factor_least = factor;
    add_sequence_weight(work, &one, mean);
    add_batch(work);
    rollout_reward_add(work, one.d, mean);
}

/* ---- the tokens that count ---- */

static double of_token(const struct rollout_list *list, size_t i) {
    if (list->given == 2 && list->count > 0) return list->value[0];
    return list->given == 1 && i < list->count ? list->value[i] : real_nan_f64();
}

static uint64_t position_of(const struct rollout_sequence *s, size_t i) {
    const struct rollout_list *list = &s->list[ROLLOUT_POSITION];
    const double first = list->given == 2 ? (double)i : 0.0;
    const double value = of_token(list, i) + first;
    return value >= 0.0 && value < 0x1p53 ? (uint64_t)value : (uint64_t)i;
}

/* Sorts out a token; returns 1 where it counts. */
static int counts(struct rollout_work *work, size_t i) {
    uint64_t *count = work->out->count;
    const struct rollout_sequence *s = &work->sequence;
    const double engine = s->list[ROLLOUT_ENGINE].value[i];
    const double trainer = s->list[ROLLOUT_TRAINER].value[i];
    if (s->list[ROLLOUT_MASK].given != 0 && !(of_token(&s->list[ROLLOUT_MASK], i) > 0.0)) {
        count[COUNT_MASKED]++;
        return 0;
    }
    if (engine != engine || trainer != trainer) {
        count[COUNT_OPEN]++;
        return 0;
    }
    if (real_finite_f64(engine) && real_finite_f64(trainer)) return 1;
    count[COUNT_INFINITE]++;
    return 0;
}

static struct rollout_token token_of(const struct rollout_sequence *s, size_t i) {
    struct rollout_token token = {.engine = s->list[ROLLOUT_ENGINE].value[i],
                                  .trainer = s->list[ROLLOUT_TRAINER].value[i],
                                  .position = position_of(s, i),
                                  .at = i,
                                  .id = of_token(&s->list[ROLLOUT_TOKENS], i),
                                  .version = of_token(&s->list[ROLLOUT_VERSION], i),
                                  .routed = -1};
    const double a = of_token(&s->list[ROLLOUT_EXPERTS], i),
                 b = of_token(&s->list[ROLLOUT_EXPERTS_HERE], i);
    if (a == a && b == b) token.routed = a != b;
    token.d = token.trainer - token.engine;
    token.mean = 0.5 * (token.engine + token.trainer);
    token.pi = real_exp_f64(token.mean);
    return token;
}

/* A sequence that the trainer leaves out whole: overlong, filtered, or without a label. */
static int is_left_out(const struct rollout_sequence *s) {
    const struct rollout_list *kept = &s->list[ROLLOUT_KEPT], *removed = &s->list[ROLLOUT_REMOVED];
    return (kept->count > 0 && !(kept->value[0] > 0.0)) ||
           (removed->count > 0 && removed->value[0] > 0.0);
}

/* ---- zeros on both sides ----
 * Arrays are padded with 0, and a prompt that neither side scored is 0 as well. Without a mask that
 * leaves them out such tokens would agree exactly, and any mean over them would be too small. They
 * may also be tokens that are certain for both sides, which are not alike then. */

#define ZEROS_LEAST 2u

/* How many tokens from `from` on in steps of `way` are exactly 0 on both sides; 0 where they are
 * few, or have ids that differ. */
static size_t count_zeros(const struct rollout_work *work, size_t from, int way) {
    size_t zeros = 0;
    for (size_t i = from; i < work->count; i += (size_t)way, zeros++) {
        const struct rollout_token *token = &work->token[i];
        if (token->engine != 0.0 || token->trainer != 0.0) break;
        if (token->id == token->id && token->id != work->token[from].id) return 0;
    }
    return zeros < ZEROS_LEAST ? 0 : zeros;
}

/* Leaves out what pads a row. In a list, which needs no padding, these tokens stay in the figures
 * and are set aside for the judgement. Where the mask leaves out what is beyond them, it knows the
 * padding, and they are none. */
static void look_at_ends(struct rollout_work *work) {
    const size_t n = work->count;
    if (n == 0) return;
    const size_t back =
        work->token[n - 1].at + 1 == work->sequence.count ? count_zeros(work, n - 1, -1) : 0;
    const size_t front = back < n && work->token[0].at == 0 ? count_zeros(work, 0, 1) : 0;
    work->out->count[work->sequence.padded ? COUNT_PADDING : COUNT_ZEROS] += front + back;
    for (size_t i = 0; i < n; i++)
        if (i < front || i >= n - back) work->token[i].aside = 1;
    if (!work->sequence.padded) return;
    work->count = n - front - back;
    memmove(work->token, work->token + front, work->count * sizeof *work->token);
}

static enum status take_sequence(struct rollout_work *work) {
    work->count = 0;
    if (is_left_out(&work->sequence)) {
        work->out->count[COUNT_MASKED] += work->sequence.count;
        work->out->count[COUNT_EMPTY]++;
        return STATUS_OK;
    }
    TRY(arena_grow(work->arena, work->sequence.count, &work->room, sizeof *work->token, "tokens",
                   &work->token));
    TRY(arena_grow(work->arena, work->sequence.count, &work->size_room, sizeof *work->size, "sizes",
                   &work->size));
    for (size_t i = 0; i < work->sequence.count; i++)
        if (counts(work, i)) work->token[work->count++] = token_of(&work->sequence, i);
    look_at_ends(work);
    if (work->count == 0) {
        work->out->count[COUNT_EMPTY]++;
        rollout_shape_add(work);
        return STATUS_OK;
    }
    for (size_t i = 0; i < work->count; i++)
        add_token(work, &work->token[i]);
    add_sequence(work);
    rollout_shape_add(work);
    rollout_far_add(work);
    return STATUS_OK;
}

static enum status measure(struct rollout_work *work, struct rollout_source *source) {
    for (;;) {
        int more;
        TRY(rollout_next(source, &work->sequence, &more));
        if (!more) break;
        TRY(take_sequence(work));
    }
    rollout_source_facts(source, &work->out->facts);
    for (int i = 0; i < ROLLOUT_SUMS; i++)
        work->out->sum[i] = sum_lanes_close_f64(&work->sum[i]);
    if (work->out->count[COUNT_TOKENS] > 0) return STATUS_OK;
    const uint64_t *count = work->out->count;
    FAIL(STATUS_INPUT,
         "%s: expected tokens with two log-probs, got none (%ju masked out, %ju without a number, "
         "%ju infinite, %ju exactly 0 on both sides at an end of their row)",
         work->out->path, (uintmax_t)count[COUNT_MASKED], (uintmax_t)count[COUNT_OPEN],
         (uintmax_t)count[COUNT_INFINITE], (uintmax_t)count[COUNT_PADDING]);
}

enum status rollout_measure_files(const struct rollout_files *files, double line,
                                  struct arena *arena, struct rollout_measure **out) {
    struct rollout_source *source;
    struct rollout_work *work;
    TRY(arena_take(arena, 1, sizeof *work, "sums", &work));
    TRY(arena_take(arena, 1, sizeof **out, "figures", out));
    work->out = *out;
    work->arena = arena;
    work->out->path = files->path[0];
    for (int i = 0; i < ROLLOUT_SUMS; i++)
        sum_lanes_open_f64(&work->sum[i]);
    TRY(spread_open(&(*out)->size, 11, arena));
    TRY(rollout_shape_open(&(*out)->shape, arena));
    TRY(rollout_far_open(&(*out)->shape.far, line, arena));
    TRY(rollout_open(files, arena, &source));
    const enum status status = measure(work, source);
    rollout_close(source);
    return status;
}
