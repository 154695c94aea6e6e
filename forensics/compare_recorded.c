/* SPDX-License-Identifier: Apache-2.0
 * What two recordings say of weights before the first update, and of batch and step in the update
 * in which they part. What one of them did not record is unknown, and never alike. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/real.h"
#include "determinism/trace.h"
#include "forensics/compare_foreign.h"
#include "forensics/words.h"

/* How far two clipping limits, each a coefficient times a norm, may be apart as those of one
 * setting: torch adds 1e-6 to the norm, and columns of f32 have 6e-8. */
#define LIMIT_NOISE 1e-3
/* Coefficients nearer to 1 than this clip nothing, for the same reason. */
#define CLIPS_LEAST 1e-5

const char *const compare_part_names[COMPARE_PARTS] = {"batch", "rng", "weights", "lr", "loss"};

static int32_t compare_batches(const struct record *x, const struct record *y) {
    if (!record_has_digest(x->digests[DIGEST_BATCH]) ||
        !record_has_digest(y->digests[DIGEST_BATCH]))
        return COMPARE_UNKNOWN;
    return memcmp(x->digests[DIGEST_BATCH], y->digests[DIGEST_BATCH], RECORD_DIGEST_BYTES) == 0
               ? COMPARE_ALIKE
               : COMPARE_APART;
}

unsigned compare_root_parts(const struct record *a, const struct record *b) {
    static const enum record_digest digests[] = {DIGEST_RNG, DIGEST_WEIGHTS, DIGEST_LR};
    unsigned parts = compare_batches(a, b) == COMPARE_APART ? 1u << COMPARE_PART_BATCH : 0;
    for (unsigned i = 0; i < sizeof digests / sizeof *digests; i++)
        if (memcmp(a->digests[digests[i]], b->digests[digests[i]], RECORD_DIGEST_BYTES) != 0)
            parts |= 1u << (COMPARE_PART_RNG + i);
    if (memcmp(&a->reals[REAL_LOSS], &b->reals[REAL_LOSS], sizeof(double)) != 0)
        parts |= 1u << COMPARE_PART_LOSS;
    return parts;
}

/* ---- weights before the first update ---- */

static void judge_weights(const struct trace_run *a, const struct trace_run *b,
                          struct compare_recorded *out) {
    const char *const *x = a->plan.foreign->initial, *const *y = b->plan.foreign->initial;
    int all = 1;
    if (!compare_has_key(&a->plan, "not_recorded") && !compare_has_key(&b->plan, "not_recorded"))
        out->frozen = (int32_t)compare_key(&a->plan, &b->plan, "frozen");
    if (x == NULL || y == NULL || out->begins == 0) return;
    for (uint32_t t = 0; t < a->plan.shape.tensors; t++) {
        if (x[t][0] == '\0' || y[t][0] == '\0') {
            all = 0;
        } else if (strcmp(x[t], y[t]) != 0) {
            if (out->tensors++ == 0) out->tensor = a->plan.tensors[t];
        }
    }
    out->weights = out->tensors > 0 ? COMPARE_APART : all ? COMPARE_ALIKE : COMPARE_UNKNOWN;
}

/* ---- the step ---- */

/* How an update clips before its step: what the norm is cut to, at most. */
struct clipping {
    int known;
    int none;     /* it does not clip */
    double limit; /* NaN: it clips, and this norm was below the limit */
    double norm;  /* NaN: not recorded */
    double coefficient;
};

/* A clip that is seen behind the step, or not at all, leaves the gradient of the step alone. */
static struct clipping clipping_of(const struct trace_run *run, const struct record *record) {
    const int64_t clip = trace_phase_place(run, record, "clip"),
                  step = trace_phase_place(run, record, "optimize");
    const double coefficient = record->reals[REAL_CLIP_COEF], norm = record->reals[REAL_GRAD_NORM];
    struct clipping out = {.limit = real_nan_f64(), .norm = norm, .coefficient = coefficient};
    if (coefficient == coefficient) {
        out.known = 1;
        if (coefficient < 1.0 - CLIPS_LEAST) out.limit = coefficient * norm;
    } else {
        out.known = out.none = clip == -1 || (clip >= 0 && step >= 0 && clip > step);
    }
    return out;
}

static int clips(const struct clipping *of) {
    return !of->none && of->coefficient < 1.0 - CLIPS_LEAST;
}

/* Tells whether two updates are clipped to other norms, for certain. One that is not clipped has a
 * limit that its norm did not reach. */
static int clippings_apart(const struct clipping *a, const struct clipping *b) {
    if (!a->known || !b->known || (!clips(a) && !clips(b))) return 0;
    if (clips(a) && clips(b)) {
        if (a->limit != a->limit || b->limit != b->limit)
            return real_abs_f64(a->coefficient - b->coefficient) > LIMIT_NOISE;
        const double most = a->limit > b->limit ? a->limit : b->limit;
        return real_abs_f64(a->limit - b->limit) > LIMIT_NOISE * most;
    }
    const struct clipping *one = clips(a) ? a : b, *other = clips(a) ? b : a;
    if (other->none) return 1;
    return one->limit == one->limit && other->norm > (1.0 + LIMIT_NOISE) * one->limit;
}

static struct word clipping_word(const struct clipping *of) {
    struct word word;
    if (of->none)
        snprintf(word.text, sizeof word.text, "none");
    else if (of->limit == of->limit)
        snprintf(word.text, sizeof word.text, "to %.60s", word_about(of->limit).text);
    else if (clips(of))
        snprintf(word.text, sizeof word.text, "by %.60s", word_about(of->coefficient).text);
    else
        snprintf(word.text, sizeof word.text, "not at this norm");
    return word;
}

static enum status name_clipping(const struct clipping *a, const struct clipping *b,
                                 struct arena *arena, char **out) {
    return arena_format(arena, out, "clipping (%s in A, %s in B)", clipping_word(a).text,
                        clipping_word(b).text);
}

/* Adds what two numbers of the step are, where both were recorded and they are not one. */
static enum status add_number(const char *what, double a, double b, struct arena *arena,
                              char **text) {
    if (a != a || b != b || a == b) return STATUS_OK;
    return arena_format(arena, text, "%s%s%s (%s in A, %s in B)", *text,
                        (*text)[0] == '\0' ? "" : ", ", what, word_apart(a, b).text,
                        word_apart(b, a).text);
}

static enum status name_step(const struct trace_run *a, const struct record *x,
                             const struct trace_run *b, const struct record *y, struct arena *arena,
                             struct compare_recorded *out) {
    const struct clipping of_a = clipping_of(a, x), of_b = clipping_of(b, y);
    const int64_t m = x->integers[INTEGER_OPTIMIZER_T], n = y->integers[INTEGER_OPTIMIZER_T];
    char *text;
    if (clippings_apart(&of_a, &of_b))
        TRY(name_clipping(&of_a, &of_b, arena, &text));
    else
        TRY(arena_format(arena, &text, "%s", ""));
    for (uint32_t g = 0; g < a->plan.shape.groups && g < b->plan.shape.groups; g++) {
        const char *const before = text;
        TRY(add_number("weight decay", x->groups[g][GROUP_WD_APPLIED],
                       y->groups[g][GROUP_WD_APPLIED], arena, &text));
        if (text != before) break; /* one group is enough to name it */
    }
    if (m >= 0 && n >= 0 && m != n)
        TRY(add_number("the optimizer's count of updates", (double)m, (double)n, arena, &text));
    out->step = text;
    return STATUS_OK;
}

/* What clips in one alone behind the first difference: there norms are apart, and limits are not
 * held against each other. */
static enum status name_later(const struct trace_run *a, const struct record *x,
                              const struct trace_run *b, const struct record *y,
                              struct arena *arena, struct compare_recorded *out) {
    const struct clipping of_a = clipping_of(a, x), of_b = clipping_of(b, y);
    char *text, *words;
    if (out->later[0] != '\0' || !clippings_apart(&of_a, &of_b)) return STATUS_OK;
    TRY(name_clipping(&of_a, &of_b, arena, &words));
    TRY(arena_format(arena, &text, "%s from update %" PRIu64 " on", words, x->step));
    out->later = text;
    out->later_update = x->step;
    return STATUS_OK;
}

static int same_states(const struct record *x, const struct record *y) {
    return memcmp(x->digests[DIGEST_RNG], y->digests[DIGEST_RNG], RECORD_DIGEST_BYTES) == 0;
}

/* Finds which of the two stops drawing in rows i and j, the first with other states: states that
 * stand still are those of a run that draws nothing. */
static int32_t who_stops(const struct trace_run *a, uint64_t i, const struct trace_run *b,
                         uint64_t j) {
    if (i < 2 || j < 2) return 0;
    const struct record *const x[] = {trace_row(a, i), trace_row(a, i - 1), trace_row(a, i - 2)};
    const struct record *const y[] = {trace_row(b, j), trace_row(b, j - 1), trace_row(b, j - 2)};
    const int still_a = same_states(x[0], x[1]), still_b = same_states(y[0], y[1]);
    if (x[1]->step != y[1]->step || !same_states(x[1], y[1]) || same_states(x[1], x[2])) return 0;
    return still_a == still_b ? 0 : still_a ? 1 : 2;
}

/* Finds the first update with other states of generators, and the first with other counts. */
static void find_first(const struct record *x, const struct record *y,
                       struct compare_recorded *out) {
    const int64_t m = x->integers[INTEGER_OPTIMIZER_T], n = y->integers[INTEGER_OPTIMIZER_T];
    const uint8_t *a = x->digests[DIGEST_RNG], *b = y->digests[DIGEST_RNG];
    if (out->rng_update == 0 && record_has_digest(a) && record_has_digest(b) &&
        memcmp(a, b, RECORD_DIGEST_BYTES) != 0)
        out->rng_update = x->step;
    if (out->count_update > 0 || m < 0 || n < 0 || m == n) return;
    out->count_update = x->step;
    out->count[0] = m;
    out->count[1] = n;
}

/* Returns what the optimizer's count grows by from each update to the next, if by the same number
 * in all of them and in two at the least; else 0. */
static int64_t count_stride(const struct trace_run *run) {
    int64_t stride = 0;
    for (uint64_t i = 1; i < run->updates; i++) {
        const struct record *before = trace_row(run, i - 1), *after = trace_row(run, i);
        const int64_t m = before->integers[INTEGER_OPTIMIZER_T],
                      n = after->integers[INTEGER_OPTIMIZER_T];
        if (m < 0 || n <= m || after->step != before->step + 1 || (i > 1 && n - m != stride))
            return 0;
        stride = n - m;
    }
    return run->updates > 2 ? stride : 0;
}

/* ---- both ---- */

enum status compare_recordings(const struct trace_run *a, const struct trace_run *b, uint64_t first,
                               struct arena *arena, struct compare_recorded *out) {
    *out = (struct compare_recorded){.tensor = "", .step = "", .later = ""};
    if (a->updates == 0 || b->updates == 0) return STATUS_OK;
    if (trace_row(a, 0)->step == trace_row(b, 0)->step) out->begins = trace_row(a, 0)->step;
    judge_weights(a, b, out);
    out->strides[0] = count_stride(a);
    out->strides[1] = count_stride(b);
    for (uint64_t i = 0, j = 0; i < a->updates && j < b->updates;) {
        const struct record *x = trace_row(a, i), *y = trace_row(b, j);
        i += x->step <= y->step;
        j += y->step <= x->step;
        if (x->step != y->step) continue;
        const int32_t batch = compare_batches(x, y);
        if (batch == COMPARE_APART && out->batch_update == 0) out->batch_update = x->step;
        const uint64_t before = out->rng_update;
        find_first(x, y, out);
        if (before == 0 && out->rng_update > 0)
            out->stops = who_stops(a, i - 1, b, j - 1); /* both went on to the next row */
        if (first == 0 || x->step < first) continue;
        if (x->step == first) {
            out->batch = batch;
            TRY(name_step(a, x, b, y, arena, out));
        } else {
            TRY(name_later(a, x, b, y, arena, out));
        }
    }
    return STATUS_OK;
}
