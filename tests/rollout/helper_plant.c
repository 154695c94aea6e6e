/* SPDX-License-Identifier: Apache-2.0
 * Draws cases and writes their files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/rollout/helper_plant.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "tests/trainer/helper_train.h"

#define KINDS 14
#define DRAW 3 /* what the test draws unless TWINSTEP_DRAW says another number */

static const char *const kinds[ROLLOUT_CAUSES + 2][KINDS] = {
    [ROLLOUT_TOKENISATION] = {"two ids merged", "one id changed"},
    [ROLLOUT_TRUNCATED] = {"engine ends early", "trainer ends early", "padding counted",
                           "context cut"},
    [ROLLOUT_MASKED] = {"prompt zero for engine", "tool output zero for engine",
                        "prompt zero for trainer"},
    [ROLLOUT_SHIFTED] = {"all, by 1", "some, by 1", "all, by -1"},
    [ROLLOUT_TEMPERATURE] = {"on the engine", "on the trainer"},
    [ROLLOUT_STALE] = {"five ages", "two ages", "ages within sequences"},
    [ROLLOUT_ROUTING] = {"with expert ids", "without expert ids"},
    [ROLLOUT_PRECISION] = {"bf16 logits", "bf16 log-probs", "f16 log-probs", "bf16 engine"},
    [PLANT_CLEAN] = {"nothing", "with versions", "with experts", "with a mask",
                     "longer than the floor", "shorter than the floor", "older where longer"},
    [PLANT_FOREIGN] = {"other weights, no versions", "another model", "every context cut",
                       "filtered (d < 0)", "noise grows with position", "some at a temperature",
                       "temperature and ages", "experts and bf16 logits", "some of another model",
                       "bf16 logits, some shifted", "one position is another model's",
                       "unlikely tokens are another model's", "behind an id another model's",
                       "temperature, and all shifted"},
};

/* What lists and positions show is large against any floor; causes that show in groups are planted
 * from 3 floors on, single tokens without expert ids from 10. */
static const double weak[] = {3.0, 10.0, 30.0, 100.0, 300.0};
static const double strong[] = {30.0, 100.0, 300.0, 1000.0, 3000.0};

static double uniform(uint64_t seed, uint64_t index) {
    return 0.5 + 0.5 * helper_uniform(seed, index);
}

static uint32_t below(uint64_t seed, uint64_t index, uint32_t bound) {
    const uint32_t value = (uint32_t)(uniform(seed, index) * (double)bound);
    return value < bound ? value : bound - 1;
}

static uint64_t first_seed(void) {
    const char *const draw = getenv("TWINSTEP_DRAW");
    return 1000000u * (uint64_t)(draw != NULL ? strtoul(draw, NULL, 10) : DRAW);
}

struct plant plant_case(enum plant_what what, uint32_t number) {
    struct plant plant = {.cause = what == PLANTED_NOTHING   ? PLANT_CLEAN
                                   : what == PLANTED_FOREIGN ? PLANT_FOREIGN
                                                             : (int)(number % ROLLOUT_CAUSES),
                          .seed = (uint64_t)what * 1000000u + number + first_seed()};
    int count = 0;
    while (count < KINDS && kinds[plant.cause][count] != NULL)
        count++;
    plant.kind = (int)(what == PLANTED_CAUSE ? number / ROLLOUT_CAUSES : number) % count;
    const int is_structure =
        plant.cause <= ROLLOUT_SHIFTED && !(plant.cause == ROLLOUT_TRUNCATED && plant.kind == 3);
    plant.strength = (is_structure ? strong : weak)[below(plant.seed, 0, COUNT_OF(weak))];
    if (plant.cause == ROLLOUT_ROUTING && plant.kind == 1 && plant.strength < 10.0)
        plant.strength = 10.0;
    plant.sparse = uniform(plant.seed, 1) < 0.3;
    plant.sequences = 48 + 16 * below(plant.seed, 2, 6);
    return plant;
}

const char *plant_kind_name(const struct plant *plant) {
    return kinds[plant->cause][plant->kind];
}

unsigned plant_allowed(const struct plant *plant) {
    static const unsigned foreign[KINDS] = {[2] = 1u << ROLLOUT_TRUNCATED,
                                            [4] = 1u << ROLLOUT_PRECISION,
                                            [5] = 1u << ROLLOUT_TEMPERATURE,
                                            [6] = 1u << ROLLOUT_TEMPERATURE | 1u << ROLLOUT_STALE,
                                            [7] = 1u << ROLLOUT_ROUTING | 1u << ROLLOUT_PRECISION,
                                            [9] = 1u << ROLLOUT_SHIFTED | 1u << ROLLOUT_PRECISION,
                                            [13] =
                                                1u << ROLLOUT_TEMPERATURE | 1u << ROLLOUT_SHIFTED};
    if (plant->cause == PLANT_CLEAN) return 0;
    return plant->cause == PLANT_FOREIGN ? foreign[plant->kind] : 1u << plant->cause;
}

/* ---- one file ---- */

#define LONGEST 256

struct row {
    uint32_t count, ids_here; /* log-probs of the engine side; ids of the trainer side */
    double engine[LONGEST], trainer[LONGEST];
    uint32_t trainer_count, ids_count;
    uint32_t id[LONGEST], other[LONGEST];
    int mask[LONGEST], version[LONGEST], expert[LONGEST];
    int has_other, has_mask, has_version, has_expert;
};

struct writing {
    const struct pool *pool;
    const struct plant *plant;
    FILE *out;
    double scale;     /* of the floor's noise */
    uint32_t longest; /* median length: context is cut above it */
    int is_floor;
};

/* Noise of the engine: what another order of sums in bf16 does. */
static double noise_at(const struct writing *w, uint32_t at, int engine) {
    double *const *logp = w->pool->logp;
    const int other = (engine + 1) % POOL_ENGINES;
    return w->plant->sparse ? logp[POOL_ENGINE + engine][at] - logp[POOL_ENGINE + other][at]
                            : logp[POOL_ENGINE + engine][at] - logp[POOL_BASE][at];
}

/* Adds noise to a log-prob, with its other sign where it would end above 0. */
static double add_noise(double x, double noise) {
    if (x + noise < 0.0) return x + noise;
    return x - noise < 0.0 ? x - noise : x;
}

static void write_list(FILE *out, const char *name, const double *value, uint32_t count) {
    fprintf(out, ", \"%s\": [", name);
    for (uint32_t i = 0; i < count; i++)
        fprintf(out, "%s%.9g", i == 0 ? "" : ", ", value[i]);
    fprintf(out, "]");
}

static void write_ids(FILE *out, const char *name, const uint32_t *value, uint32_t count) {
    fprintf(out, ", \"%s\": [", name);
    for (uint32_t i = 0; i < count; i++)
        fprintf(out, "%s%u", i == 0 ? "" : ", ", value[i]);
    fprintf(out, "]");
}

static void write_ints(FILE *out, const char *name, const int *value, uint32_t count) {
    fprintf(out, ", \"%s\": [", name);
    for (uint32_t i = 0; i < count; i++)
        fprintf(out, "%s%d", i == 0 ? "" : ", ", value[i]);
    fprintf(out, "]");
}

static void write_row(FILE *out, uint32_t sequence, const struct row *row) {
    fprintf(out, "{\"id\": \"%u\"", sequence);
    write_list(out, "rollout_logprobs", row->engine, row->count);
    write_list(out, "trainer_logprobs", row->trainer, row->trainer_count);
    write_ids(out, "token_ids", row->id, row->ids_count);
    if (row->has_other) write_ids(out, "trainer_token_ids", row->other, row->ids_here);
    if (row->has_mask) write_ints(out, "mask", row->mask, row->ids_count);
    if (row->has_version) {
        write_ints(out, "weight_version", row->version, row->ids_count);
        fprintf(out, ", \"trainer_version\": %d", POOL_VERSIONS - 1);
    }
    if (row->has_expert) {
        static const int none[LONGEST] = {0};
        write_ints(out, "rollout_experts", row->expert, row->ids_count);
        write_ints(out, "trainer_experts", none, row->ids_count);
    }
    fprintf(out, "}\n");
}

/* ---- causes ---- */

/* Which column of the pool the engine has for a token, and the trainer's. */
struct columns {
    int engine, trainer;
};

static int is_touched(const struct plant *plant, uint32_t sequence) {
    return below(plant->seed, 7 + (uint64_t)sequence, 5) == 0;
}

static struct columns foreign_columns(const struct writing *w, uint32_t sequence, uint32_t t,
                                      struct row *row) {
    const struct plant *plant = w->plant;
    const int heat = POOL_HEAT + (int)below(plant->seed, 3, POOL_HEATS);
    const int touched = is_touched(plant, sequence);
    struct columns c = {POOL_BASE, POOL_BASE};
    const double share = 0.02;
    const uint32_t at = w->pool->first[sequence] + w->pool->prompt[sequence] + t;
    switch (plant->kind) {
    case 0:
        c.engine = POOL_VERSION + 1 + (int)below(plant->seed, 4, POOL_VERSIONS - 1);
        break;
    case 1:
        c.engine = POOL_ROUTED;
        break;
    case 2:
        c.engine = POOL_CUT;
        break;
    case 5:
        if (touched) c.engine = heat;
        break;
    case 13:
        c.engine = heat;
        break;
    case 6:
        c.trainer = heat;
        row->has_version = 1;
        row->version[t] = POOL_VERSIONS - 1 - (int)(sequence % POOL_VERSIONS);
        c.engine = POOL_VERSION + (int)(sequence % POOL_VERSIONS);
        break;
    case 7:
        row->has_expert = 1;
        row->expert[t] = uniform(plant->seed, 100 + (uint64_t)sequence * LONGEST + t) < share;
        c.engine = row->expert[t] ? POOL_ROUTED : POOL_BF16;
        break;
    case 8:
        if (touched) c.engine = POOL_ROUTED;
        break;
    case 9:
        c.engine = POOL_BF16;
        break;
    case 10:
        if (t == 4 + below(plant->seed, 4, 12)) c.engine = POOL_ROUTED;
        break;
    case 11:
        if (w->pool->logp[POOL_BASE][at] < -5.0) c.engine = POOL_ROUTED;
        break;
    case 12:
        if (t > 0 && w->pool->id[at - 1] % 16 == below(plant->seed, 4, 16)) c.engine = POOL_ROUTED;
        break;
    default:
        break;
    }
    return c;
}

static struct columns columns_of(const struct writing *w, uint32_t sequence, uint32_t t,
                                 struct row *row) {
    const struct plant *plant = w->plant;
    struct columns c = {POOL_BASE, POOL_BASE};
    const int heat = POOL_HEAT + (int)below(plant->seed, 3, POOL_HEATS);
    switch (w->is_floor ? PLANT_CLEAN : plant->cause) {
    case PLANT_FOREIGN:
        return foreign_columns(w, sequence, t, row);
    case ROLLOUT_TEMPERATURE:
        if (plant->kind == 0) c.engine = heat;
        if (plant->kind == 1) c.trainer = heat;
        break;
    case ROLLOUT_STALE: {
        const int newest = POOL_VERSIONS - 1;
        int version = plant->kind == 1
                          ? newest - (int)(sequence % 2) * (1 + (int)below(plant->seed, 4, 4))
                      : plant->kind == 0 ? (int)(sequence % POOL_VERSIONS)
                                         : newest - (int)(t / 24 % 3);
        row->has_version = 1;
        row->version[t] = version;
        c.engine = POOL_VERSION + version;
        c.trainer = POOL_VERSION + newest;
        break;
    }
    case ROLLOUT_ROUTING: {
        const double share = 0.005 * (1.0 + (double)below(plant->seed, 5, 10));
        row->expert[t] = uniform(plant->seed, 100 + (uint64_t)sequence * LONGEST + t) < share;
        row->has_expert = plant->kind == 0;
        if (row->expert[t]) c.engine = POOL_ROUTED;
        break;
    }
    case ROLLOUT_PRECISION:
        if (plant->kind == 0) c.engine = POOL_BF16;
        if (plant->kind == 3) c.engine = POOL_ENGINE + 5;
        break;
    case ROLLOUT_TRUNCATED:
        if (plant->kind == 3 && w->pool->length[sequence] > w->longest) c.engine = POOL_CUT;
        break;
    default:
        break;
    }
    return c;
}

/* Changes the lists of a row. */
static void change_lists(const struct writing *w, uint32_t sequence, struct row *row) {
    const struct plant *plant = w->plant;
    const uint32_t n = row->count, part = 4 + below(plant->seed, 6, 8);
    if (w->is_floor) return;
    if (plant->cause == ROLLOUT_TOKENISATION) {
        row->has_other = 1;
        memcpy(row->other, row->id, sizeof row->id);
        row->ids_here = n;
        if (!is_touched(plant, sequence)) return;
        const uint32_t from = 2 + below(plant->seed, sequence, n - 4);
        row->other[from] = 300;
        if (plant->kind == 0) { /* two ids become one, so everything behind it moves */
            memmove(row->other + from + 1, row->other + from + 2,
                    (n - from - 2) * sizeof *row->other);
            memmove(row->trainer + from + 1, row->trainer + from + 2,
                    (n - from - 2) * sizeof *row->trainer);
            row->ids_here = row->trainer_count = n - 1;
        }
        return;
    }
    const int foreign = plant->cause == PLANT_FOREIGN;
    for (uint32_t i = 0; foreign && i < n && (plant->kind == 3 || plant->kind == 4); i++) {
        const double u = uniform(plant->seed, 60 + (uint64_t)sequence * LONGEST + i);
        row->trainer[i] = plant->kind == 3 ? row->trainer[i] - 0.05 - 0.1 * u
                                           : add_noise(row->trainer[i], 1e-3 * i * (u - 0.5));
    }
    if ((foreign && plant->kind == 9 && is_touched(plant, sequence)) ||
        (foreign && plant->kind == 13) ||
        (plant->cause == ROLLOUT_SHIFTED && (plant->kind != 1 || is_touched(plant, sequence)))) {
        double *const list = row->engine;
        if (plant->kind == 2) {
            memmove(list + 1, list, (n - 1) * sizeof *list);
            list[0] = -1.5;
        } else {
            memmove(list, list + 1, (n - 1) * sizeof *list);
            list[n - 1] = -1.5;
        }
        return;
    }
    if (!is_touched(plant, sequence)) return;
    if (plant->cause == ROLLOUT_TRUNCATED && plant->kind == 0) row->count = n - part;
    if (plant->cause == ROLLOUT_TRUNCATED && plant->kind == 1) row->trainer_count = n - part;
    for (uint32_t i = 0; i < part; i++) {
        if (plant->cause == ROLLOUT_TRUNCATED && plant->kind == 2) row->engine[n - 1 - i] = 0.0;
        if (plant->cause != ROLLOUT_MASKED) continue;
        if (plant->kind == 0) row->engine[i] = 0.0;
        if (plant->kind == 1) row->engine[n / 2 - 2 + i % (n / 2)] = 0.0;
        if (plant->kind == 2) row->trainer[i] = 0.0;
    }
}

static double rounded(const struct writing *w, double x) {
    if (w->is_floor || w->plant->cause != ROLLOUT_PRECISION) return x;
    if (w->plant->kind == 1) return dtype_round(x, DTYPE_BF16);
    return w->plant->kind == 2 ? dtype_round(x, DTYPE_F16) : x;
}

static void make_row(const struct writing *w, uint32_t sequence, struct row *row) {
    const struct pool *pool = w->pool;
    const uint32_t start = pool->first[sequence] + pool->prompt[sequence];
    const int engine = (int)below(w->plant->seed, w->is_floor ? 8 : 9, 5);
    memset(row, 0, sizeof *row);
    row->count = row->trainer_count = row->ids_count = pool->length[sequence];
    for (uint32_t t = 0; t < row->count; t++) {
        const struct columns c = columns_of(w, sequence, t, row);
        row->id[t] = pool->id[start + t];
        row->engine[t] = rounded(w, add_noise(pool->logp[c.engine][start + t],
                                              w->scale * noise_at(w, start + t, engine)));
        row->trainer[t] = pool->logp[c.trainer][start + t];
        row->mask[t] = t % 9 != 0;
    }
    if (!w->is_floor && w->plant->cause == PLANT_CLEAN) {
        row->has_version = w->plant->kind == 1 || w->plant->kind == 6;
        row->has_expert = w->plant->kind == 2;
        row->has_mask = w->plant->kind == 3;
        for (uint32_t t = 0; t < row->count; t++) {
            row->version[t] = w->plant->kind == 6
                                  ? POOL_VERSIONS - 1 - (int)(row->count / (w->longest / 2 + 1))
                                  : (int)(sequence % POOL_VERSIONS);
            row->expert[t] = uniform(w->plant->seed, 50 + (uint64_t)sequence * LONGEST + t) < 0.02;
        }
    }
    change_lists(w, sequence, row);
}

/* ---- strength ---- */

/* Mean |d| that the cause makes on the tokens it touches, without noise; and mean |noise|. */
static void measure(const struct writing *w, const uint32_t *order, double *effect, double *noise) {
    struct row row;
    struct writing quiet = *w;
    double d = 0.0, n = 0.0, touched = 0.0, tokens = 0.0;
    quiet.scale = 0.0;
    for (uint32_t s = 0; s < w->plant->sequences; s++) {
        make_row(&quiet, order[s], &row);
        const uint32_t both = row.count < row.trainer_count ? row.count : row.trainer_count;
        const uint32_t start = w->pool->first[order[s]] + w->pool->prompt[order[s]];
        for (uint32_t t = 0; t < both; t++) {
            const double apart = fabs(row.engine[t] - row.trainer[t]);
            if (apart > 0.0) d += apart, touched += 1.0;
            n += fabs(noise_at(w, start + t, 0));
            tokens += 1.0;
        }
    }
    *effect = touched > 0.0 ? d / touched : 1.0;
    *noise = n / tokens;
}

static void shuffle(uint64_t seed, uint32_t *order, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    for (uint32_t i = count; i-- > 1;) {
        const uint32_t k = below(seed, 10 + i, i + 1), kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
}

/* The longest sequences first, or the shortest. */
static void sort_by_length(const struct pool *pool, uint32_t *order, int longest) {
    for (uint32_t i = 1; i < pool->sequences; i++)
        for (uint32_t k = i; k > 0; k--) {
            const uint32_t a = pool->length[order[k - 1]], b = pool->length[order[k]];
            if (longest ? a >= b : a <= b) break;
            const uint32_t kept = order[k];
            order[k] = order[k - 1];
            order[k - 1] = kept;
        }
}

static void write_file(struct writing *w, const uint32_t *order, const char *path) {
    struct row row;
    w->out = fopen(path, "w");
    assert_non_null(w->out);
    for (uint32_t s = 0; s < w->plant->sequences; s++) {
        make_row(w, order[s], &row);
        write_row(w->out, order[s], &row);
    }
    assert_int_equal(fclose(w->out), 0);
}

static uint32_t longest_of(const struct pool *pool) {
    uint32_t longest = 0;
    for (uint32_t s = 0; s < pool->sequences; s++)
        if (pool->length[s] > longest) longest = pool->length[s];
    return longest;
}

void plant_write(const struct pool *pool, const struct plant *plant, const char *path,
                 const char *floor) {
    uint32_t order[4096];
    double effect, noise;
    struct writing w = {
        .pool = pool, .plant = plant, .longest = longest_of(pool) / 2 + below(plant->seed, 12, 16)};
    assert_true(pool->sequences <= 4096 && 2 * plant->sequences <= pool->sequences);
    shuffle(plant->seed, order, pool->sequences);
    const int by_length = plant->cause == PLANT_CLEAN ? plant->kind - 3 : 0;
    if (by_length == 1 || by_length == 2) sort_by_length(pool, order, by_length == 1);
    measure(&w, order, &effect, &noise);
    w.scale =
        plant->cause == PLANT_CLEAN ? 1.0 / plant->strength : effect / (plant->strength * noise);
    write_file(&w, order, path);
    w.is_floor = 1;
    write_file(&w, order + pool->sequences - plant->sequences, floor);
}
