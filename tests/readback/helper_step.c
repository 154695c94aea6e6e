/* SPDX-License-Identifier: Apache-2.0
 * Numbers are held as double and rounded to their dtype after each operation. */
#include "tests/readback/helper_step.h"

#include <math.h>
#include <string.h>

#include "base/dtype.h"

struct scene_asked scene_usual(void) {
    return (struct scene_asked){.rule = STEP_RULE_ADAM,
                                .weights = DTYPE_F32,
                                .state = DTYPE_F32,
                                .lr = 5e-4,
                                .decay = 0.1,
                                .beta1 = 0.9,
                                .beta2 = 0.999,
                                .eps = 1e-8,
                                .momentum = 0.9,
                                .updates = 3,
                                .scale = 0.05};
}

/* A number in (-1, 1) that depends on its address alone. */
static double drawn(uint64_t stream, uint64_t tensor, uint64_t element) {
    uint64_t x =
        stream * UINT64_C(0x9E3779B97F4A7C15) + tensor * UINT64_C(0xD1B54A32D192ED03) + element;
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    x ^= x >> 31;
    return (double)(x >> 11) * 0x1p-52 - 1.0;
}

/* A number that f16 has, as sign, exponent and fraction; below 2^-14 it is a multiple of 2^-24. */
static void store_f16(unsigned char *bytes, double value) {
    int exponent = 0;
    const double size = fabs(value), fraction = frexp(size, &exponent);
    const unsigned sign = signbit(value) ? 0x8000u : 0u;
    const unsigned normal =
        ((unsigned)(exponent + 14) << 10) + (unsigned)((2.0 * fraction - 1.0) * 1024.0);
    const unsigned bits = sign | (size < 0x1p-14 ? (unsigned)(size * 0x1p24) : normal);
    bytes[0] = (unsigned char)(bits & 0xffu);
    bytes[1] = (unsigned char)(bits >> 8);
}

static void store(enum dtype dtype, unsigned char *bytes, size_t at, double value) {
    const float narrow = (float)value;
    uint32_t bits;
    uint16_t half;
    memcpy(&bits, &narrow, sizeof bits);
    half = (uint16_t)(bits >> 16);
    if (dtype == DTYPE_F64)
        memcpy(bytes + at * 8, &value, 8);
    else if (dtype == DTYPE_F32)
        memcpy(bytes + at * 4, &narrow, 4);
    else if (dtype == DTYPE_F16)
        store_f16(bytes + at * 2, value);
    else
        memcpy(bytes + at * 2, &half, 2); /* bf16 */
}

/* Rounds what the optimizer keeps in its state, or makes of it on the way. */
static double r(const struct scene_asked *a, double value) {
    return dtype_round(value, a->has_masters || a->is_one_kernel ? DTYPE_F32 : a->state);
}

/* Rounds a weight, which may have more digits than the state. */
static double w(const struct scene_asked *a, double value) {
    return a->weights == DTYPE_F32 ? dtype_round(value, DTYPE_F32) : r(a, value);
}

/* A scalar of a kernel: in f32, unless it works in f64. */
static double scalar(const struct scene_asked *a, double value) {
    return a->state == DTYPE_F64 ? value : (double)(float)value;
}

/* What one element goes through. */
struct element {
    double old, now, g, m, v, most, m_before, v_before;
};

static void adam(const struct scene_asked *a, struct element *e) {
    const double t = a->updates + a->count_ahead;
    const double root = sqrt(1.0 - pow(a->beta2, t)), correction = 1.0 - pow(a->beta1, t);
    const double beta2 = a->true_beta2 > 0.0 ? a->true_beta2 : a->beta2;
    const double m = a->is_lost ? 0.0 : e->m_before, v = a->is_lost ? 0.0 : e->v_before;
    double p = e->old, g = e->g;
    if (a->coupled)
        g = w(a, g + a->decay * p);
    else if (a->decay > 0.0)
        p = w(a, p * scalar(a, 1.0 - a->lr * a->decay));
    e->m = r(a, m + (1.0 - a->beta1) * (g - m));
    e->v = r(a, r(a, beta2 * v) + (1.0 - beta2) * g * g);
    e->most = fmax(e->most, e->v);
    const double bottom =
        r(a, r(a, r(a, sqrt(a->amsgrad ? e->most : e->v)) / scalar(a, root)) + scalar(a, a->eps));
    e->now = w(a, p + scalar(a, -a->lr / correction) * e->m / bottom);
    if (e->m == 0.0) e->now = p;
}

static void sgd(const struct scene_asked *a, struct element *e) {
    const double g = w(a, e->g + a->decay * e->old);
    e->m = a->updates == 1.0 ? g : r(a, r(a, a->momentum * e->m_before) + g);
    const double u = a->nesterov ? w(a, g + a->momentum * e->m) : e->m;
    e->now = w(a, e->old - a->lr * u);
}

static void lion(const struct scene_asked *a, struct element *e) {
    const double p = w(a, e->old * scalar(a, 1.0 - a->lr * a->decay));
    const double u = r(a, a->beta1 * e->m_before + (1.0 - a->beta1) * e->g);
    e->now = w(a, p - a->lr * (double)((u > 0.0) - (u < 0.0)));
    e->m = r(a, a->beta2 * e->m_before + (1.0 - a->beta2) * e->g);
}

static int has_earlier(const struct scene_asked *a) {
    return a->updates > 1.0 || a->is_lost;
}

/* Rounds what the update before has stored. */
static double stored(const struct scene_asked *a, double value) {
    return dtype_round(value, a->has_masters ? DTYPE_F32 : a->state);
}

static void fill_element(const struct scene_asked *a, uint64_t tensor, uint64_t i,
                         struct element *e) {
    const int is_idle = i >= SCENE_COUNT - SCENE_IDLE;
    const double held = is_idle ? 0.0 : 1.0, late = has_earlier(a) ? held : 0.0;
    const double width = 0.02 * (1.0 + (double)tensor) * (a->gradient > 0.0 ? a->gradient : 1.0);
    memset(e, 0, sizeof *e);
    const uint64_t at = tensor + a->drawn;
    e->old = w(a, a->scale * drawn(1, at, i));
    e->g = held * w(a, (a->fresh > 0.0 ? a->fresh : 1.0) * width * drawn(2, at, i));
    e->m_before = late * stored(a, width * 0.3 * drawn(3, at, i));
    e->v_before = late * stored(a, width * width * 2e-3 * (1.0 + drawn(4, at, i)));
    e->most = late * stored(a, width * width * 2e-3 * (1.0 + drawn(5, at, i)));
}

static void keep(struct scene *out, int t, size_t i, const struct scene_asked *a,
                 const struct element *e, double start) {
    unsigned char(*const b)[SCENE_COUNT * sizeof(double)] = out->bytes[t];
    store(a->weights, b[0], i, dtype_round(start, a->weights));
    store(a->weights, b[1], i, dtype_round(e->now, a->weights));
    const double state[] = {e->m, e->v, e->most, e->m_before, e->v_before};
    for (size_t s = 0; s < sizeof state / sizeof state[0]; s++)
        store(a->state, b[2 + s], i, dtype_round(state[s], a->state));
}

static void make_tensor(const struct scene_asked *a, int t, struct scene *out) {
    static const char *const names[SCENE_TENSORS] = {"layers.0.up.weight", "layers.1.up.weight",
                                                     "norm.weight"};
    for (size_t i = 0; i < SCENE_COUNT; i++) {
        struct element e;
        fill_element(a, (uint64_t)t, i, &e);
        const double start = e.old;
        out->norm += e.g * e.g;
        if (a->rounds_start) e.old = dtype_round(e.old, DTYPE_BF16);
        if (a->rule == STEP_RULE_ADAM)
            adam(a, &e);
        else if (a->rule == STEP_RULE_SGD)
            sgd(a, &e);
        else
            lion(a, &e);
        keep(out, t, i, a, &e, start);
    }
    const int has_before = has_earlier(a), has_v = a->rule == STEP_RULE_ADAM;
    unsigned char(*const b)[SCENE_COUNT * sizeof(double)] = out->bytes[t];
    out->tensor[t] =
        (struct step_tensor){.name = names[t],
                             .group = 0,
                             .count = SCENE_COUNT,
                             .old = {a->weights, b[0]},
                             .now = {a->weights, b[1]},
                             .first = {a->state, b[2]},
                             .second = {a->state, has_v ? b[3] : NULL},
                             .largest = {a->state, a->amsgrad ? b[4] : NULL},
                             .first_before = {a->state, has_before ? b[5] : NULL},
                             .second_before = {a->state, has_before && has_v ? b[6] : NULL},
                             .has_before = 1,
                             .updates = a->updates,
                             .updates_before = a->updates - 1.0};
}

void scene_make(const struct scene_asked *asked, struct scene *out) {
    memset(out, 0, sizeof *out);
    for (int t = 0; t < SCENE_TENSORS; t++)
        make_tensor(asked, t, out);
    out->norm = sqrt(out->norm);
    out->group = (struct step_group){.rule = asked->rule,
                                     .promised = asked->lr,
                                     .next = asked->lr * 0.95,
                                     .decay = asked->decay,
                                     .beta1 = asked->beta1,
                                     .beta2 = asked->beta2,
                                     .eps = asked->eps,
                                     .momentum = asked->momentum,
                                     .dampening = 0.0,
                                     .nesterov = asked->nesterov,
                                     .amsgrad = asked->amsgrad,
                                     .decoupled = !asked->coupled && asked->rule != STEP_RULE_SGD};
    out->step = (struct step){.groups = &out->group,
                              .group_count = 1,
                              .tensors = out->tensor,
                              .tensor_count = SCENE_TENSORS,
                              .update = asked->updates,
                              .numbered_by = STEP_BY_TRAINER};
}
