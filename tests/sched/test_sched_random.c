/* SPDX-License-Identifier: Apache-2.0
 * labels: unit
 * Every schedule and every contract with random parameters at random counters. A schedule is a
 * function of its call: the state that it keeps changes no bit of it. Hugging Face's and torch's
 * are those of a second implementation, which was written down here from their sources and takes
 * sines and powers from the C library; so is the rate that a contract applies at an update, counted
 * one update after the other. Of all answers of a class, refusals and their words too, one number
 * stands in tests/golden/sched/random.txt, so that whatever moves is seen, and of which class.
 *
 * With TWINSTEP_WRITE_GOLDEN=FILE the lines are appended to FILE in place of being compared. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "sched/contract.h"
#include "sched/values.h"
#include "tests/base/helper_draws.h"

#define GOLDEN TWINSTEP_SOURCE_DIR "/tests/golden/sched/random.txt"
#define KEY UINT64_C(0x73636865)
#define STAGES 4
/* A word that is longer than any that a list may have. */
#define WORD64 "a2345678901234567890123456789012345678901234567890123456789012345"
enum { CASES = 600, COUNTERS = 30, REQUESTS = 200, BYTES = 640 };

/* ---- one line of the golden file ---- */

struct answer {
    size_t cases, refused;
    uint64_t hash;
};

static void add_number(struct answer *answer, double x) {
    if (x != x) x = -12345.0; /* a NaN has many patterns of bits */
    answer->hash = draws_hash(answer->hash, &x, sizeof x);
}

static void add_text(struct answer *answer, const char *text) {
    answer->hash = draws_hash(answer->hash, text, strlen(text));
}

static void hold(const char *name, const struct answer *answer) {
    const char *const written = getenv("TWINSTEP_WRITE_GOLDEN");
    char line[160], read[160];
    snprintf(line, sizeof line, "%s %zu %zu %016" PRIx64 "\n", name, answer->cases, answer->refused,
             answer->hash);
    FILE *const file = fopen(written != NULL ? written : GOLDEN, written != NULL ? "a" : "r");
    assert_non_null(file);
    if (written != NULL) {
        fputs(line, file);
    } else {
        do {
            if (fgets(read, sizeof read, file) == NULL) fail_msg("%s: not in %s", name, GOLDEN);
        } while (strncmp(read, line, strlen(name) + 1) != 0);
        if (strcmp(read, line) != 0) fail_msg("expected %s got %s", read, line);
    }
    fclose(file);
}

/* ---- a random call ---- */

/* A stage of a list, as it was drawn. */
struct stage {
    char shape[24];
    double length; /* 0: to the end */
    double part[3];
};

struct drawn {
    const struct sched_class *schedule;
    struct sched_call call;
    _Alignas(8) char values[BYTES];
    struct sched_metric metric;
    double at[12], value[12];
    struct stage stages[STAGES];
    size_t stage_count;
    char text[200]; /* of the list */
};

static double pick_of(struct draws *draws, const double *numbers, uint32_t count) {
    return numbers[draws_pick(draws, count)];
}
#define PICK(draws, ...)                                                                           \
    pick_of(draws, (const double[]){__VA_ARGS__},                                                  \
            (uint32_t)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)))

static double whole(struct draws *draws, uint32_t least, uint32_t most) {
    return (double)(least + draws_pick(draws, most - least + 1));
}

/* torch's SequentialLR: the parameters that each shape has, in the order of `part`. */
static const struct shape {
    const char *name, *parts[3];
} torch_shapes[] = {
    {"constant", {"factor", "total_iters", NULL}},
    {"linear", {"start_factor", "end_factor", "total_iters"}},
    {"exponential", {"gamma", NULL, NULL}},
    {"step", {"gamma", "step_size", NULL}},
    {"polynomial", {"power", "total_iters", NULL}},
    {"cosine", {"t_max", "min_lr", NULL}},
};

static double torch_part(struct draws *draws, const char *part, double lr) {
    if (strcmp(part, "total_iters") == 0) return whole(draws, 1, 12);
    if (strcmp(part, "step_size") == 0) return whole(draws, 1, 5);
    if (strcmp(part, "t_max") == 0) return whole(draws, 1, 12);
    if (strcmp(part, "power") == 0) return PICK(draws, 1, 0.5, 2, 0);
    if (strcmp(part, "min_lr") == 0) return lr * PICK(draws, 0, 0.125, 0.5);
    return PICK(draws, 0.5, 0.25, 0.75, 1);
}

static void put(struct drawn *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct drawn *d, const char *format, ...) {
    const size_t length = strlen(d->text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(d->text + length, sizeof d->text - length, format, arguments);
    va_end(arguments);
}

static void draw_torch_stages(struct draws *draws, struct drawn *d) {
    d->stage_count = 1 + draws_pick(draws, STAGES);
    for (size_t i = 0; i < d->stage_count; i++) {
        const struct shape *const shape = &torch_shapes[draws_pick(draws, COUNT_OF(torch_shapes))];
        struct stage *const stage = &d->stages[i];
        snprintf(stage->shape, sizeof stage->shape, "%s", shape->name);
        stage->length = i + 1 == d->stage_count ? 0.0 : whole(draws, 1, 9);
        put(d, "%s%s", i == 0 ? "" : ",", shape->name);
        if (stage->length > 0.0) put(d, ":%g", stage->length);
        for (size_t p = 0; p < 3 && shape->parts[p] != NULL; p++) {
            stage->part[p] = torch_part(draws, shape->parts[p], d->call.base_lr);
            put(d, ":%s=%.17g", shape->parts[p], stage->part[p]);
        }
    }
}

/* OLMo-core's ComposableScheduler: shares of L at the start and at the end. */
static void draw_composable_stages(struct draws *draws, struct drawn *d) {
    static const char *const shapes[] = {"linear", "cosine", "constant"};
    d->stage_count = 1 + draws_pick(draws, STAGES);
    for (size_t i = 0; i < d->stage_count; i++) {
        struct stage *const stage = &d->stages[i];
        snprintf(stage->shape, sizeof stage->shape, "%s", shapes[draws_pick(draws, 3)]);
        stage->length = whole(draws, 1, 9);
        put(d, "%s%s:%g", i == 0 ? "" : ", ", stage->shape, stage->length);
        stage->part[0] = draws_pick(draws, 2) ? -1.0 : PICK(draws, 0, 0.25, 0.5, 1);
        stage->part[1] = PICK(draws, 0, 0.125, 0.5, 1);
        if (strcmp(stage->shape, "constant") == 0) continue;
        if (stage->part[0] >= 0.0) put(d, ":%g", stage->part[0]);
        put(d, ":%g", stage->part[1]);
    }
}

static void draw_olmo_stages(struct draws *draws, struct drawn *d) {
    static const char *const shapes[] = {"linear", "cosine", "constant", "constant_with_warmup",
                                         "wsd"};
    d->stage_count = 1 + draws_pick(draws, STAGES);
    for (size_t i = 0; i < d->stage_count; i++) {
        struct stage *const stage = &d->stages[i];
        snprintf(stage->shape, sizeof stage->shape, "%s", shapes[draws_pick(draws, 5)]);
        stage->length = i + 1 == d->stage_count ? 0.0 : whole(draws, 1, 9);
        put(d, "%s%s", i == 0 ? "" : ",", stage->shape);
        if (stage->length > 0.0) put(d, ":%g", stage->length);
        if (draws_pick(draws, 3) == 0) put(d, ":warmup=%g", whole(draws, 0, 3));
        if (strcmp(stage->shape, "wsd") == 0) put(d, ":decay=%g", whole(draws, 0, 3));
    }
}

static void draw_numbers(struct draws *draws, struct drawn *d, const char *key) {
    const uint32_t count = 1 + draws_pick(draws, 3);
    for (uint32_t i = 0; i < count; i++)
        put(d, "%s%g", i == 0 ? "" : ", ",
            strcmp(key, "peaks") == 0 ? PICK(draws, 0.5, 1, 0.75) : whole(draws, 4, 15));
}

/* What stands in a list, in the text of the key. One of twelve is spoilt. */
static const char *draw_list(struct draws *draws, struct drawn *d, const char *key) {
    static const char *const spoilt[] = {"linear",
                                         "linear:x",
                                         "cosine:3:1:1:1",
                                         "nothing:4",
                                         ":",
                                         "linear:4,",
                                         "linear:-1:0",
                                         "step:3,step",
                                         "linear:4",
                                         "5,0",
                                         "linear:4,cosine:5",
                                         "linear:4:3,constant",
                                         "linear,constant",
                                         "olmo-core.linear:4,constant",
                                         "sequential:4,constant",
                                         "composable:4,constant",
                                         "constant:2:min_lr=0,cosine:t_max=3",
                                         "cosine:2:t_max=0,constant",
                                         "step:3:step_size=2:gamma=x,constant",
                                         "linear:3:factor=0.5,constant",
                                         "wsd:4:periods=1,constant",
                                         "linear:9:warmup=-1,constant",
                                         "cosine:9:min_lr_ratio=2,constant",
                                         "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,"
                                         "23,24,25,26,27,28,29,30,31,32,33,34,35",
                                         "linear:4:" WORD64 ",constant",
                                         WORD64 ":4,constant",
                                         "1," WORD64};
    d->text[0] = '\0';
    const uint32_t how = draws_pick(draws, 12);
    if (how == 0) return spoilt[draws_pick(draws, COUNT_OF(spoilt))];
    if (strcmp(key, "periods") == 0 || strcmp(key, "peaks") == 0) {
        if (how < 7) return "none";
        draw_numbers(draws, d, key);
    } else if (strcmp(key, "override_decay") == 0) {
        if (how < 7) return "none";
        const char *const shape = draws_pick(draws, 2) ? "linear" : "cosine";
        const double start = whole(draws, 0, 20), length = whole(draws, 1, 9);
        put(d, "%s:%g:%g:%g", shape, start, length, PICK(draws, 0, 0.25, 1));
    } else if (d->schedule == &sched_torch_sequential) {
        draw_torch_stages(draws, d);
    } else if (d->schedule == &sched_olmo_composable) {
        draw_composable_stages(draws, d);
    } else if (how < 5) {
        return "none";
    } else {
        draw_olmo_stages(draws, d);
    }
    return d->text;
}

static double draw_real(struct draws *draws, const struct drawn *d, const struct key_row *row) {
    if (strcmp(row->unit, "counter") == 0)
        return strcmp(row->path, "length_unit") == 0 ? PICK(draws, 1, 1, 2) : whole(draws, 0, 14);
    if (strcmp(row->unit, "evaluations") == 0) return whole(draws, 0, 3);
    if (strstr(row->path, "div_factor") != NULL) return PICK(draws, 25, 2, 10, 0.5);
    if (strcmp(row->path, "threshold") == 0) return PICK(draws, 0, 0.1, 1e-4);
    if (strcmp(row->path, "eps") == 0) return d->call.base_lr * PICK(draws, 0, 0, 1e-3, 0.2);
    if (strcmp(row->path, "power") == 0)
        return row->low < 0.0 ? PICK(draws, -0.51, -1, -2) : PICK(draws, 1, 2, 0.5, 0);
    if (strstr(row->path, "rate") != NULL) return PICK(draws, 0, 0.5, 3);
    if (row->high <= 1.0) return PICK(draws, 0, 0.1, 0.25, 0.5, 0.9, 1);
    if (row->high == 1000.0) return PICK(draws, 0.5, 1, 0.25, 2, 3, 1.5);
    return d->call.base_lr * PICK(draws, 0, 0, 0, 0.01, 0.01, 0.1, 0.1, 0.1, 0.5, 0.5, 1, 1.5);
}

/* Sets a parameter to a random text; returns the status of the reader. */
static enum status draw_value(struct draws *draws, struct drawn *d, const struct key_row *row) {
    char number[32];
    const char *text = number;
    uint32_t names = 0;
    if (row->type == KEY_ENUM) {
        while (row->names[names] != NULL)
            names++;
        text = row->names[draws_pick(draws, names)];
    } else if (row->type == KEY_BOOL) {
        text = draws_pick(draws, 2) ? "true" : "false";
    } else if (row->type == KEY_TEXT) {
        text = draw_list(draws, d, row->path);
    } else if (row->word != NULL && draws_pick(draws, 3) == 0) {
        text = row->word;
    } else {
        const double x = draw_real(draws, d, row);
        snprintf(number, sizeof number, "%.17g",
                 x > row->high  ? row->high
                 : x < row->low ? row->low
                                : x);
    }
    return sched_values_set(d->schedule, d->values, row->path, text);
}

static void draw_metric(struct draws *draws, struct drawn *d) {
    d->metric = (struct sched_metric){draws_pick(draws, 13), d->at, d->value, whole(draws, 1, 2)};
    double at = 0.0;
    for (size_t i = 0; i < d->metric.count; i++) {
        at += whole(draws, 0, 3);
        d->at[i] = at;
        d->value[i] = draws_pick(draws, 9) == 0 ? (double)NAN : PICK(draws, 2, 1, 1, 1.05, 0.9, 3);
    }
}

/* Periods are equal or listed, with as many peaks, and hold their decay. */
static enum status make_wsds(struct draws *draws, struct drawn *d) {
    static const char *const lists[][2] = {
        {"8,15,6", "0.5, 1,0.75"}, {"12", "2"}, {"9, 30", "none"}};
    const uint32_t which = draws_pick(draws, 6);
    if (which < 3) {
        TRY(sched_values_set(d->schedule, d->values, "period", "auto"));
        TRY(sched_values_set(d->schedule, d->values, "decay", draws_pick(draws, 2) ? "auto" : "3"));
        TRY(sched_values_set(d->schedule, d->values, "peaks", lists[which][1]));
        return sched_values_set(d->schedule, d->values, "periods", lists[which][0]);
    }
    TRY(sched_values_set(d->schedule, d->values, "period", which == 3 ? "auto" : "11"));
    TRY(sched_values_set(d->schedule, d->values, "peaks", "none"));
    return sched_values_set(d->schedule, d->values, "periods", "none");
}

static enum status draw_call(struct draws *draws, const struct sched_class *schedule,
                             struct drawn *d) {
    memset(d, 0, sizeof *d);
    assert_true(schedule->values_size <= sizeof d->values);
    d->schedule = schedule;
    d->call.size = sizeof d->call;
    d->call.base_lr = PICK(draws, 1e-3, 5e-7, 1, 0.3, 2e-5, 1e-3, 5e-7, 1, 0.3, 2e-5, 0);
    d->call.total = PICK(draws, 1, 7, 20, 33, 33, 40, 40, 100, 0);
    d->call.warmup = PICK(draws, 0, 0, 1, 1, 2, 3, 3, 5, 10, 2.5, 50);
    d->call.values = d->values;
    draw_metric(draws, d);
    if (schedule->feedback && draws_pick(draws, 8) != 0) d->call.metric = &d->metric;
    TRY(sched_values_standard(schedule, d->values));
    for (size_t i = 0; i < schedule->key_count; i++)
        if (schedule->keys[i].type == KEY_TEXT || draws_pick(draws, 3) != 0)
            TRY(draw_value(draws, d, &schedule->keys[i]));
    if (schedule == &sched_olmo_wsds && draws_pick(draws, 8) != 0) TRY(make_wsds(draws, d));
    return schedule->validate(&d->call);
}

static double draw_counter(struct draws *draws, const struct drawn *d, double last) {
    const double t = d->call.total, w = d->call.warmup;
    switch (draws_pick(draws, 8)) {
    case 0:
        return PICK(draws, 0, -1, 1, 2);
    case 1:
        return w + PICK(draws, -1, 0, 1, -0.5);
    case 2:
        return t + PICK(draws, -1, 0, 1, 0.5, 2);
    case 3:
        return PICK(draws, 2, 3, 1.5) * t - PICK(draws, 0, 1) * w;
    case 4:
        return last + whole(draws, 0, 3);
    default:
        return whole(draws, 0, 60);
    }
}

/* ---- the second implementation ---- */

static double number_of(const struct drawn *d, const char *key) {
    const struct key_row *const row = sched_row(d->schedule, key);
    double x;
    assert_non_null(row);
    memcpy(&x, d->values + row->offset, sizeof x);
    return x;
}

static const char *name_of(const struct drawn *d, const char *key) {
    const struct key_row *const row = sched_row(d->schedule, key);
    int32_t x;
    memcpy(&x, d->values + row->offset, sizeof x);
    return row->names[x];
}

/* torch's schedulers one after the other (SequentialLR): every stage steps an optimizer that begins
 * at L, by the recursive form of its get_lr. */
static double torch_sequential(const struct drawn *d, double c) {
    const double pi = acos(-1.0), base = d->call.base_lr, unit = number_of(d, "length_unit");
    size_t i = 0;
    double begin = 0.0;
    for (; i + 1 < d->stage_count && c >= begin + d->stages[i].length * unit; i++)
        begin += d->stages[i].length * unit;
    const struct stage *const s = &d->stages[i];
    const double p0 = s->part[0], p1 = s->part[1], *const p = s->part;
    const int constant = strcmp(s->shape, "constant") == 0,
              linear = strcmp(s->shape, "linear") == 0;
    const int cosine = strcmp(s->shape, "cosine") == 0, poly = strcmp(s->shape, "polynomial") == 0;
    double lr = constant || linear ? base * p0 : base;
    for (double t = 1.0; t <= floor(c - begin); t += 1.0) {
        if (constant) {
            if (t == p1 * unit) lr /= p0;
        } else if (linear) {
            const double n = p[2] * unit;
            if (t <= n) lr *= 1.0 + (p1 - p0) / (n * p0 + (t - 1.0) * (p1 - p0));
        } else if (poly) {
            const double n = p1 * unit;
            if (t <= n) lr *= pow((1.0 - t / n) / (1.0 - (t - 1.0) / n), p0);
        } else if (cosine) { /* closed, since the recursion amplifies what the C library rounds */
            const double n = p0 * unit;
            lr = p1 + (base - p1) * (1.0 + cos(pi * t / n)) / 2.0;
        } else if (strcmp(s->shape, "step") == 0) {
            if (fmod(t, p1 * unit) == 0.0) lr *= p0;
        } else {
            lr *= p0;
        }
    }
    return lr;
}

/* OLMo-core's stages of absolute rates; what comes instead of them is left to the golden number. */
static double composable(const struct drawn *d, double c) {
    const double pi = acos(-1.0), base = d->call.base_lr, unit = number_of(d, "length_unit");
    double begin = 0.0, lr = base;
    for (size_t i = 0; i < d->stage_count; i++) {
        const struct stage *const s = &d->stages[i];
        const double length = s->length * unit;
        const int constant = strcmp(s->shape, "constant") == 0;
        const double from = constant || s->part[0] < 0.0 ? lr : base * s->part[0];
        const double to = constant ? lr : base * s->part[1];
        if (c < begin + length) {
            const double x = (c - begin) / length;
            return strcmp(s->shape, "cosine") == 0 ? to + (from - to) * (1.0 + cos(pi * x)) / 2.0
                                                   : from + (to - from) * x;
        }
        lr = to;
        begin += length;
    }
    return lr;
}

/* torch's ReduceLROnPlateau.step for every value that has been seen. */
static double plateau(const struct drawn *d, double c) {
    const int least = strcmp(name_of(d, "mode"), "min") == 0;
    const int share = strcmp(name_of(d, "threshold_mode"), "rel") == 0;
    const double threshold = number_of(d, "threshold"), low = number_of(d, "min_lr");
    double lr = d->call.base_lr, best = least ? (double)INFINITY : -(double)INFINITY, bad = 0.0,
           rest = 0.0;
    for (size_t i = 0; i < d->metric.count * (size_t)d->metric.repeat; i++) {
        const size_t seen = i / (size_t)d->metric.repeat;
        const double a = d->value[seen];
        if (d->at[seen] > c) break;
        const double bound = share ? best * (least ? 1.0 - threshold : 1.0 + threshold)
                                   : best + (least ? -threshold : threshold);
        const int better = least ? a < bound : a > bound;
        bad = better ? 0.0 : bad + 1.0;
        if (better) best = a;
        if (rest > 0.0) rest -= 1.0, bad = 0.0;
        if (bad <= number_of(d, "patience")) continue;
        const double next = fmax(lr * number_of(d, "factor"), low);
        if (lr - next > number_of(d, "eps")) lr = next;
        rest = number_of(d, "cooldown");
        bad = 0.0;
    }
    return lr;
}

static double wave(double cycles, double p) {
    return 0.5 * (1.0 + cos(acos(-1.0) * cycles * 2.0 * p));
}

/* transformers' optimization.py. Returns below -1 where there is no second implementation. */
static double expected(const struct drawn *d, double counter) {
    const char *const name = d->schedule->name;
    const double lr = d->call.base_lr, w = d->call.warmup, t = d->call.total;
    const double s = fmax(counter, 0.0), after = (s - w) / fmax(1.0, t - w);
    if (d->schedule == &sched_torch_sequential)
        return d->stage_count == 0 ? -2.0 : torch_sequential(d, s); /* none: a spoilt list */
    if (d->schedule == &sched_reduce_lr_on_plateau) return plateau(d, s);
    if (d->schedule == &sched_olmo_composable) {
        const size_t at = sched_row(d->schedule, "override_decay")->offset;
        return strcmp(d->values + at, "none") == 0 && d->stage_count > 0 ? composable(d, s) : -2.0;
    }
    if (strchr(name, '.') != NULL || strcmp(name, "warmup_stable_decay") == 0) return -2.0;
    if (strcmp(name, "cosine_warmup_with_min_lr") == 0) {
        const double m = number_of(d, "min_lr_ratio"), first = number_of(d, "warmup_lr_ratio");
        if (s < w)
            return lr * (first < 0.0 ? (s + 1.0) / fmax(1.0, w)
                                     : first + (1.0 - first) * s / fmax(1.0, w - 1.0));
        return lr * fmax(0.0, wave(number_of(d, "num_cycles"), (s - w + 1.0) / fmax(1.0, t - w)) *
                                      (1.0 - m) +
                                  m);
    }
    if (s < w) return lr * s / fmax(1.0, w);
    if (strncmp(name, "constant", 8) == 0) return lr;
    if (strcmp(name, "linear") == 0) {
        const double m = number_of(d, "min_lr_ratio");
        return lr * (fmax(0.0, (t - s) / fmax(1.0, t - w)) * (1.0 - m) + m);
    }
    if (strcmp(name, "cosine_with_restarts") == 0)
        return after >= 1.0
                   ? 0.0
                   : lr * 0.5 *
                         (1.0 + cos(acos(-1.0) * fmod(number_of(d, "num_cycles") * after, 1.0)));
    if (strcmp(name, "polynomial") == 0) {
        const double end = number_of(d, "lr_end");
        if (s > t) return end;
        return (lr - end) * pow(1.0 - (s - w) / (t - w), number_of(d, "power")) + end;
    }
    if (strcmp(name, "warmup_stable_decay_old") == 0) {
        const double m = number_of(d, "min_lr_ratio"), after_warmup = fmax(0.0, t - w);
        double stable = number_of(d, "stable"), decay = number_of(d, "decay");
        if (stable < 0.0) stable = decay < 0.0 ? 0.0 : fmax(0.0, after_warmup - decay);
        if (decay < 0.0) decay = fmax(0.0, t - w - stable);
        if (s < w + stable) return lr;
        if (s >= w + stable + decay) return lr * m;
        return lr * ((1.0 - m) * fmax(0.0, wave(number_of(d, "num_cycles"),
                                                (s - w - stable) / fmax(1.0, decay))) +
                     m);
    }
    if (strcmp(name, "inverse_sqrt") == 0) {
        double scale = number_of(d, "timescale");
        if (!(scale > 0.0)) scale = w > 0.0 ? w : 10000.0;
        return lr / sqrt((s + scale - w) / scale);
    }
    const double m = number_of(d, "min_lr_ratio"); /* cosine, cosine_with_min_lr */
    return lr * fmax(0.0, wave(number_of(d, "num_cycles"), after) * (1.0 - m) + m);
}

static uint64_t bits(double x) {
    uint64_t u;
    if (x != x) return 1;
    memcpy(&u, &x, sizeof u);
    return u;
}

/* A recursion of a hundred steps loses some hundred units in the last place. */
static void compare(const struct drawn *d, double counter, double lr) {
    const double second = expected(d, counter);
    if (second < -1.0 || (second != second && lr != lr)) return;
    if (!(fabs(lr - second) <= 1e-11 * fabs(d->call.base_lr)))
        fail_msg("%s %s, L %g W %g T %g, counter %g: %.17g, expected %.17g", d->schedule->name,
                 d->text, d->call.base_lr, d->call.warmup, d->call.total, counter, lr, second);
}

static void validate_schedules(void **state) {
    (void)state;
    static struct drawn d;
    static _Alignas(8) char kept[BYTES];
    uint32_t number = 0;
    for (size_t c = 0; sched_classes()[c] != NULL; c++) {
        const struct sched_class *const schedule = sched_classes()[c];
        struct answer answer = {0, 0, DRAWS_HASH};
        memset(kept, 0, sizeof kept); /* goes on from one call to the next, whatever its numbers */
        assert_true(schedule->state_size <= sizeof kept);
        for (size_t i = 0; i < CASES; i++) {
            struct draws draws = {.key = KEY, .number = number++};
            double counter = 0.0;
            if (schedule->feedback)
                memset(kept, 0, sizeof kept); /* it knows values by their place */
            answer.cases++;
            if (draw_call(&draws, schedule, &d) != STATUS_OK) {
                answer.refused++;
                add_text(&answer, status_text());
                continue;
            }
            add_number(&answer, schedule->minimum(&d.call));
            for (size_t k = 0; k < COUNTERS; k++) {
                counter = draw_counter(&draws, &d, counter);
                d.call.state = NULL;
                const double lr = schedule->value(&d.call, counter);
                d.call.state = kept;
                const double again = schedule->value(&d.call, counter);
                if (schedule->state_size > 0 && bits(again) != bits(lr))
                    fail_msg("%s %s, counter %g: %.17g with a state, %.17g without", schedule->name,
                             d.text, counter, again, lr);
                compare(&d, counter, lr);
                add_number(&answer, lr);
            }
        }
        if (answer.cases - answer.refused < CASES / 6)
            fail_msg("%s: %zu refused", schedule->name, answer.refused);
        hold(schedule->name, &answer);
    }
}

/* A schedule that computes each rate from the one before goes on from where it stood: a rate that
 * was put into its state in place of the last one is seen in the next. */
static void verify_the_state_is_used(void **state) {
    (void)state;
    for (size_t c = 0; sched_classes()[c] != NULL; c++) {
        const struct sched_class *const schedule = sched_classes()[c];
        size_t used = 0;
        if (schedule->state_size == 0) continue;
        for (uint32_t i = 0; i < 40; i++) {
            static struct drawn d;
            static _Alignas(8) char kept[BYTES], spoilt[BYTES];
            struct draws draws = {.key = KEY + 1, .number = i};
            if (draw_call(&draws, schedule, &d) != STATUS_OK) continue;
            memset(kept, 0, sizeof kept);
            d.call.state = kept;
            const double last = schedule->value(&d.call, 3.0);
            const double next = schedule->value(&d.call, 4.0);
            (void)schedule->value(&d.call, 3.0); /* it begins anew, and stands at 3 */
            if (bits(last) != bits(next) || last == 0.0) continue;
            memcpy(spoilt, kept, sizeof spoilt);
            for (size_t at = 0; at < schedule->state_size; at += sizeof last) {
                double x;
                memcpy(&x, spoilt + at, sizeof x);
                if (bits(x) != bits(last)) continue;
                memcpy(kept, spoilt, sizeof kept);
                x = last * 3.0;
                memcpy(kept + at, &x, sizeof x);
                used += schedule->value(&d.call, 4.0) == x;
            }
        }
        if (used == 0 && schedule != &sched_torch_cosine_annealing)
            fail_msg("%s begins anew each time", schedule->name);
    }
}

/* Beyond 2^20 steps torch's recursions are not followed any further: LinearLR is a line there, the
 * cosine its closed form, and a stage stands. */
static void validate_far_counters(void **state) {
    (void)state;
    static const double counters[] = {0x1p20 - 1, 0x1p20, 0x1p20 + 1, 0x1p20 + 2, 0x1p22};
    static struct drawn d;
    static _Alignas(8) char kept[BYTES];
    const double pi = acos(-1.0), lr = 0.5, total = 0x1p22;
    for (size_t i = 0; i < COUNT_OF(counters); i++) {
        const double c = counters[i], share = fmin(c / total, 1.0);
        const struct {
            const struct sched_class *schedule;
            const char *stages;
            double expected;
        } cases[] = {
            {&sched_torch_linear_constant, NULL, lr * (0.1 + 0.9 * share)},
            {&sched_torch_cosine_annealing, NULL, lr * (1.0 + cos(pi * share)) / 2.0},
            {&sched_torch_sequential,
             "constant:1,linear:start_factor=0.5:end_factor=1:total_iters=4194304",
             lr * (0.5 + 0.5 * fmin(fmin(c - 1.0, 0x1p20) / total, 1.0))},
        };
        for (size_t k = 0; k < COUNT_OF(cases); k++) {
            memset(&d, 0, sizeof d);
            memset(kept, 0, sizeof kept);
            assert_int_equal(sched_values_standard(cases[k].schedule, d.values), STATUS_OK);
            if (cases[k].stages != NULL)
                assert_int_equal(
                    sched_values_set(cases[k].schedule, d.values, "stages", cases[k].stages),
                    STATUS_OK);
            d.call = (struct sched_call){.size = sizeof d.call,
                                         .base_lr = lr,
                                         .warmup = total,
                                         .total = total,
                                         .values = d.values,
                                         .state = kept};
            const double got = cases[k].schedule->value(&d.call, c);
            /* a million products, each rounded by half a unit at most */
            if (!(fabs(got - cases[k].expected) <= 1e-9 * lr))
                fail_msg("%s at %.17g: %.17g, expected %.17g", cases[k].schedule->name, c, got,
                         cases[k].expected);
        }
    }
    memset(&d, 0, sizeof d);
    d.call = (struct sched_call){.size = sizeof d.call, .base_lr = lr, .values = d.values};
    assert_true(sched_torch_cosine_annealing.value(&d.call, 7.0) == lr); /* a total of 0 */
    assert_true(sched_torch_linear_constant.value(&d.call, 7.0) == lr);
}

/* ---- contracts ---- */

struct asked {
    struct contract_request request;
    uint64_t skipped[6], metric_update[6];
    double metric_value[6];
    char texts[3][480];
};

static void draw_lists(struct draws *draws, struct asked *asked) {
    struct contract_request *const r = &asked->request;
    uint64_t at = 0;
    if (draws_pick(draws, 2)) r->skipped_count = draws_pick(draws, 5);
    for (size_t i = 0; i < r->skipped_count; i++)
        asked->skipped[i] = at += draws_pick(draws, 20) == 0 ? 0 : 1 + draws_pick(draws, 3);
    r->skipped = asked->skipped;
    at = 0;
    r->metric_count = draws_pick(draws, 6);
    for (size_t i = 0; i < r->metric_count; i++) {
        asked->metric_update[i] = at += 1 + draws_pick(draws, 3);
        asked->metric_value[i] = PICK(draws, 1, 1, 2, 0.5);
    }
    r->metric_update = asked->metric_update;
    r->metric_value = asked->metric_value;
}

/* A schedule of the family, and some of its parameters. */
static void draw_schedule(struct draws *draws, struct asked *asked) {
    struct contract_request *const r = &asked->request;
    const struct sched_class *family[32];
    static struct drawn d;
    uint32_t count = 0;
    for (size_t i = 0; sched_classes()[i] != NULL; i++)
        if (sched_in_family(sched_classes()[i], r->contract->family))
            family[count++] = sched_classes()[i];
    assert_in_range(count, 1, COUNT_OF(family));
    d.schedule = family[draws_pick(draws, count)];
    d.call.base_lr = r->lr;
    r->schedule = draws_pick(draws, 3) == 0 ? NULL : sched_bare_name(d.schedule);
    if (draws_pick(draws, 15) == 0) r->schedule = "nothing";
    if (r->schedule == NULL)
        d.schedule = sched_find_in(r->contract->family, r->contract->default_schedule);
    for (size_t i = 0; i < d.schedule->key_count && r->value_count < 3; i++) {
        const struct key_row *const row = &d.schedule->keys[i];
        char *const text = asked->texts[r->value_count];
        const int list = row->type == KEY_TEXT;
        if (row->type == KEY_ENUM || row->type == KEY_BOOL) continue;
        if (!list && draws_pick(draws, 2)) continue;
        if (list)
            snprintf(text, sizeof asked->texts[0], "%s", draw_list(draws, &d, row->path));
        else
            snprintf(text, sizeof asked->texts[0], "%.17g", draw_real(draws, &d, row));
        r->values[r->value_count].key = row->path;
        r->values[r->value_count++].text = text;
    }
}

static void draw_request(struct draws *draws, const struct contract *contract,
                         struct asked *asked) {
    memset(asked, 0, sizeof *asked);
    struct contract_request *const r = &asked->request;
    contract_request_init(r);
    r->contract = contract;
    r->lr = PICK(draws, 1e-3, 5e-7, 0.25);
    const uint32_t how = draws_pick(draws, 4);
    if (how == 1) r->warmup = PICK(draws, 0, 1, 3, 4, 12, 2.5);
    if (how == 2) r->warmup_ratio = PICK(draws, 0, 0.07, 0.1, 0.25, 1);
    if (draws_pick(draws, 5) == 0) r->min_lr_ratio = PICK(draws, 0, 0.1, 0.5);
    r->batch = 1 + draws_pick(draws, 4);
    r->accumulate = draws_pick(draws, 4);
    r->processes = draws_pick(draws, 4);
    r->drop_last = (int)draws_pick(draws, 2);
    r->dataset = 40 + draws_pick(draws, 60);
    if (draws_pick(draws, 3) == 0)
        r->epochs = PICK(draws, 1, 2, 0.5, 1.3);
    else
        r->steps = 1 + draws_pick(draws, 30);
    if (draws_pick(draws, 3) == 0) r->global_batch = 1 + draws_pick(draws, 16);
    r->tokens = 100 * draws_pick(draws, 5);
    r->updates_per_epoch = draws_pick(draws, 6);
    if (draws_pick(draws, 4) == 0) r->rescaled = (int32_t)draws_pick(draws, 5);
    draw_lists(draws, asked);
    draw_schedule(draws, asked);
}

/* The rate in force at update k, counted from the first: docs/LR.md. */
static double applied_at(const struct contract_plan *plan, uint64_t k) {
    const struct contract *const c = plan->contract;
    uint64_t n = 0;
    for (uint64_t before = 1; before < k; before++) {
        int held = 0;
        for (size_t i = 0; i < plan->skipped_count; i++)
            held |= c->on_skip == CONTRACT_SKIP_HOLD && plan->skipped[i] == before;
        n += !held;
    }
    if (c->past_end == CONTRACT_PAST_ABORT && k > plan->steps) return (double)NAN;
    if (n == 0 && c->start == CONTRACT_START_BASE) return plan->call.base_lr;
    if (n == 0 && c->start == CONTRACT_START_ZERO) return 0.0;
    if (n == 0 && c->start == CONTRACT_START_MIN) return plan->schedule->minimum(&plan->call);
    if (n == 0 && c->start == CONTRACT_START_F0) return plan->schedule->value(&plan->call, 0.0);
    double counter = ((double)n + c->offset) * plan->increment;
    if (c->unit == CONTRACT_UNIT_EPOCH) counter = (double)(n / plan->updates_per_epoch) + c->offset;
    return plan->schedule->value(&plan->call, counter);
}

static void check_plan(const struct contract_plan *plan, struct answer *answer) {
    enum { MOST = 64 };
    double applied[MOST], logged[MOST];
    const uint64_t count = plan->steps + 3 < MOST ? plan->steps + 3 : MOST;
    const double numbers[] = {plan->call.total,     plan->call.warmup,
                              plan->increment,      (double)plan->steps,
                              plan->warmup_updates, (double)plan->updates_per_epoch};
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        add_number(answer, numbers[i]);
    contract_columns(plan, count, applied, logged);
    for (uint64_t k = 1; k <= count; k++) {
        const int next =
            plan->contract->logged == CONTRACT_LOGGED_NEXT && !plan->schedule->feedback;
        const double one = applied_at(plan, k), seen = applied_at(plan, k + (uint64_t)next);
        if (bits(applied[k - 1]) != bits(one) || bits(contract_applied(plan, k)) != bits(one))
            fail_msg("%s, update %d: applied %.17g, expected %.17g", plan->contract->name, (int)k,
                     applied[k - 1], one);
        if (bits(logged[k - 1]) != bits(seen) || bits(contract_logged(plan, k)) != bits(seen))
            fail_msg("%s, update %d: logged %.17g, expected %.17g", plan->contract->name, (int)k,
                     logged[k - 1], seen);
        add_number(answer, one);
    }
}

static void validate_contracts(void **state) {
    (void)state;
    static struct asked asked;
    uint32_t number = 0;
    size_t count;
    const struct contract *const contracts = contract_list(&count);
    for (size_t c = 0; c < count; c++) {
        struct answer answer = {0, 0, DRAWS_HASH};
        char name[80];
        for (size_t i = 0; i < REQUESTS; i++) {
            struct arena arena = ARENA_EMPTY;
            struct draws draws = {.key = KEY + 2, .number = number++};
            struct contract_plan plan;
            answer.cases++;
            draw_request(&draws, &contracts[c], &asked);
            if (contract_resolve(&asked.request, &arena, &plan) == STATUS_OK) {
                check_plan(&plan, &answer);
            } else {
                answer.refused++;
                add_text(&answer, status_text());
            }
            arena_close(&arena);
        }
        assert_true(answer.refused < answer.cases * 9 / 10);
        snprintf(name, sizeof name, "contract:%s", contracts[c].name);
        hold(name, &answer);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_schedules), cmocka_unit_test(verify_the_state_is_used),
        cmocka_unit_test(validate_far_counters), cmocka_unit_test(validate_contracts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
