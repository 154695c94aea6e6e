/* SPDX-License-Identifier: Apache-2.0
 * labels: repro short omp
 * Law 21, the sums of an update by shards, against the law written out: for every tensor of a
 * model, its terms are taken from a run of one shard as its ops are called, summed by plain loops
 * over the samples of each shard and joined by a recursion. A trained gradient must have those bits
 * for every number of shards, whole micro-batches or cut ones, and no gradient the bits of a law
 * that is broken on purpose. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/real.h"
#include "ranks/tree.h"
#include "tests/trainer/helper_train.h"
#include "trainer/run_private.h"

enum { OWNERS_MAX = 64, SHARDS_MAX = 256 };

/* ---- the terms of every sum ---- */

/* What the ops of one use of a tensor read, a row of the list behind the other: dy (N) and x (K)
 * for a matrix; dy and xhat (N = C, K = 0) for a norm; dx (N = C) and ids for an embedding. */
struct terms {
    uint32_t rows, N, K;
    float *dy, *x;
    uint32_t *ids;
};

static struct {
    struct run *run;
    struct op_table ops;
    const struct op_table *real;
    struct arena *arena;
    struct terms use[OWNERS_MAX][2];
    uint32_t tokens[64], labels[64]; /* behind each sample's last one, in canonical order */
} taken;

static struct terms *terms_of(const void *acc) {
    for (uint32_t i = 0; i < taken.run->owner_count; i++)
        for (uint32_t use = 0; use < taken.run->table.rows[taken.run->owner[i]].uses; use++)
            if (taken.run->accumulators[taken.run->owner[i]][use] == acc) return &taken.use[i][use];
    fail_msg("an op writes to no accumulator");
    return NULL;
}

static float *gather(const struct row_list *rows, uint32_t width, const void *from) {
    float *out;
    assert_int_equal(
        arena_take(taken.arena, (size_t)rows->count * width + 1, sizeof *out, "terms", &out),
        STATUS_OK);
    for (uint32_t i = 0; i < rows->count; i++) {
        const size_t row = rows->index == NULL ? i : rows->index[i];
        memcpy(out + (size_t)i * width, (const float *)from + row * width, width * sizeof *out);
    }
    return out;
}

static void take_linear(const struct op_call *call, const struct linear_weight_args *args) {
    struct terms *const terms = terms_of(args->acc);
    *terms = (struct terms){.rows = args->rows.count,
                            .N = args->N,
                            .K = args->K,
                            .dy = gather(&args->rows, args->N, args->dy),
                            .x = gather(&args->rows, args->K, args->x)};
    taken.real->linear_weight(call, args);
}

static void take_norm(const struct op_call *call, const struct norm_weight_args *args) {
    struct terms *const terms = terms_of(args->acc);
    *terms = (struct terms){.rows = args->rows.count,
                            .N = args->C,
                            .dy = gather(&args->rows, args->C, args->dy),
                            .x = gather(&args->rows, args->C, args->x)};
    const float *const rstd = gather(&args->rows, 1, args->rstd);
    for (uint32_t i = 0; i < terms->rows; i++)
        for (uint32_t c = 0; c < terms->N; c++) {
            float *const x = &terms->x[(size_t)i * terms->N + c];
            *x = (float)dtype_round((double)(*x * rstd[i]), taken.run->model.compute);
        }
    taken.real->norm_weight(call, args);
}

static void take_embedding(const struct op_call *call, const struct embedding_weight_args *args) {
    struct terms *const terms = terms_of(args->acc);
    *terms = (struct terms){
        .rows = args->rows.count, .N = args->C, .dy = gather(&args->rows, args->C, args->dx)};
    assert_int_equal(arena_take(taken.arena, terms->rows, sizeof *terms->ids, "terms", &terms->ids),
                     STATUS_OK);
    memcpy(terms->ids, args->ids, terms->rows * sizeof *terms->ids);
    taken.real->embedding_weight(call, args);
}

static void open_ends(const struct run *run) {
    const struct batch *const batch = &run->batch;
    uint32_t tokens = 0, labels = 0;
    for (uint32_t s = 0; s < batch->sample_count; s++) {
        for (uint32_t side = 0; side < batch->sides; side++) {
            const uint32_t sequence = side * batch->sample_count + s;
            tokens += batch->sequences[sequence].length;
            labels += batch->label_length[sequence];
        }
        taken.tokens[s] = tokens;
        taken.labels[s] = labels;
    }
}

/* Opens a run of one shard and takes the terms of its first update, which is one micro-batch. */
static void take_terms(const struct config *config, const struct dataset *dataset, struct run *run,
                       struct arena *arena) {
    const struct run_options options = {.tensors = 1, .steps = 2};
    struct config whole = *config;
    whole.numerics.shards = whole.parallel.ranks = 1;
    whole.batch.micro = whole.batch.size;
    helper_run_open(&whole, dataset, &options, run);
    memset(&taken, 0, sizeof taken);
    taken.run = run;
    taken.arena = arena;
    taken.real = run->model.ops;
    taken.ops = *taken.real;
    taken.ops.linear_weight = take_linear;
    taken.ops.norm_weight = take_norm;
    taken.ops.embedding_weight = take_embedding;
    run->model.ops = &taken.ops;
    helper_step(run);
    run->model.ops = taken.real;
    open_ends(run);
}

/* ---- the law, and ways to break it ---- */

enum law_break {
    NO_BREAK,
    SHARDS_OF_RANKS,  /* V = P, as frameworks have it */
    LEFT_TO_RIGHT,    /* what ranks send is joined from the first to the last */
    BORDER_BY_TOKENS, /* shards have equally many tokens, not samples */
    PARTIALS_STORED,  /* what ranks send is rounded to the gradient's dtype */
    USES_FIRST,       /* uses of a tied tensor are joined in each shard */
    RANKS_REVERSED,   /* the last rank's shards come first in the tree */
    CLOSED_THEN_MEAN, /* losses are P times as large, and the closed sum is divided by P */
    EMPTY_CLOSED_UP,  /* shards without samples have no place in the tree */
    EMPTY_COUNTED,    /* the sum is a mean over shards, those without samples among them */
    BREAKS
};

static const char *const break_names[BREAKS] = {
    "not joined",           "as many shards as ranks", "joined from left to right",
    "border by tokens",     "partials as stored",      "uses joined first",
    "ranks reversed",       "mean behind closing",     "empty shards closed up",
    "empty shards counted",
};

struct law {
    uint32_t shards, ranks, samples;
    enum law_break broken;
    enum dtype gradient;
    /* of the sum that is made: which shard a row of its list belongs to, and its chains */
    const struct terms *use[2];
    uint32_t uses;
};

static uint32_t shards_of(const struct law *law) {
    return law->broken == SHARDS_OF_RANKS ? law->ranks : law->shards;
}

/* The shard of row `row` of a list; `heads` rows belong to one token. */
static uint32_t shard_of_row(const struct law *law, const uint32_t *ends, uint32_t rows,
                             uint32_t row) {
    const uint32_t heads = rows / ends[law->samples - 1], at = row / (heads == 0 ? 1 : heads);
    if (law->broken == BORDER_BY_TOKENS)
        return (uint32_t)((uint64_t)at * law->shards / ends[law->samples - 1]);
    uint32_t sample = 0;
    while (at >= ends[sample])
        sample++;
    return (uint32_t)((uint64_t)sample * shards_of(law) / law->samples);
}

/* One element's partial sums, by shard, of one use. */
struct partials {
    float value[SHARDS_MAX];
    uint8_t present[SHARDS_MAX];
};

static void add_chains(const struct law *law, const struct terms *terms, const uint32_t *ends,
                       size_t element, struct partials *out) {
    const uint32_t width = terms->K == 0 ? terms->N : terms->K;
    const size_t n = terms->K == 0 ? element % width : element / width, k = element % width;
    for (uint32_t r = 0; r < terms->rows; r++) {
        const uint32_t shard = shard_of_row(law, ends, terms->rows, r);
        float *const acc = &out->value[shard];
        const float scale = law->broken == CLOSED_THEN_MEAN ? (float)law->ranks : 1.0f;
        const float dy = terms->dy[(size_t)r * terms->N + n] * scale;
        if (terms->ids == NULL)
            *acc = real_fma_f32(dy, terms->x[(size_t)r * width + k], *acc);
        else if (terms->ids[r] == element / width)
            *acc = *acc + dy;
    }
    /* a shard is there if it has a sample, whether or not that has a label or this id */
    for (uint32_t s = 0; s < law->samples; s++)
        out->present[(uint64_t)s * shards_of(law) / law->samples] = 1;
}

/* Joins shards first to first + count - 1; returns whether any is there. */
static int join_half(const struct partials *of, uint32_t first, uint32_t count, float *out) {
    float left, right;
    if (count == 1) {
        *out = of->value[first];
        return of->present[first];
    }
    const uint32_t half = (count + 1) / 2; /* of ranks that are no power of two */
    const int has_left = join_half(of, first, half, &left);
    const int has_right = join_half(of, first + half, count - half, &right);
    *out = has_left && has_right ? left + right : has_left ? left : right;
    return has_left || has_right;
}

/* The largest subtrees of a rank's shards, in order, as partials of their own. */
static void cover_rank(const struct partials *of, uint32_t first, uint32_t end, uint32_t at,
                       uint32_t count, struct partials *out, uint32_t *pieces) {
    if (at >= end || at + count <= first) return;
    if (at >= first && at + count <= end) {
        float value;
        if (!join_half(of, at, count, &value)) return;
        out->value[*pieces] = value;
        out->present[(*pieces)++] = 1;
        return;
    }
    cover_rank(of, first, end, at, count / 2, out, pieces);
    cover_rank(of, first, end, at + count / 2, count / 2, out, pieces);
}

static float left_to_right(const struct law *law, const struct partials *of) {
    struct partials sent = {{0}, {0}};
    uint32_t pieces = 0;
    for (uint32_t r = 0; r < law->ranks; r++)
        cover_rank(of, r * law->shards / law->ranks, (r + 1) * law->shards / law->ranks, 0,
                   law->shards, &sent, &pieces);
    float sum = sent.value[0];
    for (uint32_t i = 1; i < pieces; i++)
        sum = sum + sent.value[i];
    return sum;
}

/* Rounds in place what each rank sends; what is sent is the sum of the subtree, so it takes the
 * place of its first shard, and the others are gone. */
static void store_pieces(const struct law *law, struct partials *of, uint32_t first, uint32_t end,
                         uint32_t at, uint32_t count) {
    float value;
    if (at >= end || at + count <= first) return;
    if (at < first || at + count > end) {
        store_pieces(law, of, first, end, at, count / 2);
        store_pieces(law, of, first, end, at + count / 2, count / 2);
        return;
    }
    if (!join_half(of, at, count, &value)) return;
    memset(of->present + at, 0, count);
    of->present[at] = 1;
    of->value[at] = (float)dtype_round((double)value, law->gradient);
}

static void reverse_ranks(const struct law *law, struct partials *of) {
    const struct partials from = *of;
    uint32_t at = 0;
    for (uint32_t r = law->ranks; r-- > 0;)
        for (uint32_t s = r * law->shards / law->ranks; s < (r + 1) * law->shards / law->ranks;
             s++) {
            of->value[at] = from.value[s];
            of->present[at++] = from.present[s];
        }
}

/* Returns how many shards have samples. */
static uint32_t close_up(const struct law *law, struct partials *of) {
    uint32_t count = 0;
    for (uint32_t s = 0; s < law->shards; s++) {
        if (!of->present[s]) continue;
        of->present[s] = 0;
        of->present[count] = 1;
        of->value[count++] = of->value[s];
    }
    return count;
}

static float sum_of(const struct law *law, struct partials *of) {
    float sum = 0.0f;
    if (law->broken == EMPTY_CLOSED_UP) close_up(law, of);
    if (law->broken == LEFT_TO_RIGHT) return left_to_right(law, of);
    if (law->broken == RANKS_REVERSED) reverse_ranks(law, of);
    if (law->broken == PARTIALS_STORED)
        for (uint32_t r = 0; r < law->ranks; r++)
            store_pieces(law, of, r * law->shards / law->ranks, (r + 1) * law->shards / law->ranks,
                         0, law->shards);
    join_half(of, 0, shards_of(law), &sum);
    return sum;
}

/* The gradient of one element of owner `i`, closed (law 4). */
static float gradient_by_law(const struct law *law, const struct run *run, uint32_t i,
                             size_t element) {
    const struct param_row *const row = &run->table.rows[run->owner[i]];
    struct partials of[2] = {{{0}, {0}}, {{0}, {0}}};
    for (uint32_t use = 0; use < row->uses; use++) {
        const struct terms *const terms = &taken.use[i][use];
        const uint32_t last = law->samples - 1;
        const int by_label = terms->rows == taken.labels[last] &&
                             (use == 1 || taken.labels[last] != taken.tokens[last]);
        add_chains(law, terms, by_label ? taken.labels : taken.tokens, element, &of[use]);
    }
    if (law->broken == USES_FIRST && row->uses == 2)
        for (uint32_t s = 0; s < law->shards; s++)
            of[0].value[s] = of[0].value[s] + of[1].value[s];
    float sum = sum_of(law, &of[0]);
    if (row->uses == 2 && law->broken != USES_FIRST) sum = sum + sum_of(law, &of[1]);
    if (law->broken == EMPTY_COUNTED) {
        struct partials empty = of[0];
        sum = sum * (float)close_up(law, &empty) / (float)law->shards;
    }
    const float closed = (float)dtype_round((double)sum, law->gradient);
    if (law->broken != CLOSED_THEN_MEAN) return closed;
    return (float)dtype_round((double)(closed * (1.0f / (float)law->ranks)), law->gradient);
}

/* How many elements of a run's closed gradient are not those of the law. */
static uint32_t count_differing(const struct law *law, const struct run *trained) {
    uint32_t differing = 0;
    for (uint32_t i = 0; i < trained->owner_count; i++) {
        const uint32_t row = trained->owner[i];
        const float *const got =
            (const float *)run_at(trained, trained->layout.tensor[row].gradient);
        for (size_t e = 0; e < trained->table.rows[row].count; e++) {
            const float expected = gradient_by_law(law, trained, i, e);
            differing += memcmp(&expected, got + e, sizeof expected) != 0;
        }
    }
    return differing;
}

/* ---- trainings ---- */

struct training {
    const char *words;
    uint32_t samples; /* of an update */
};

static const struct training trainings[] = {
    /* biases, one tensor used twice */
    {"task: sft, model: {family: qwen2, layers: 1, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, "
     "vocab: 19, tied: true}",
     8},
    /* norms over all heads and behind the branches; two sequences a sample; shards that are absent
     * or uneven */
    {"task: dpo, model: {family: olmo2, layers: 1, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, "
     "vocab: 19, tied: false}",
     5},
    /* norms over each head; narrow activations and gradients */
    {"task: dpo, model: {family: qwen3, layers: 1, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, "
     "vocab: 19, tied: true}, numerics: {compute: bf16, gradient: bf16}",
     11},
};

struct bench {
    struct config config;
    struct arena arena;
    struct dataset dataset;
    struct run one; /* whose terms are taken */
};

static void bench_open(const struct training *training, struct bench *bench) {
    bench->arena = (struct arena)ARENA_EMPTY;
    helper_config(2, &bench->config, "%s, init: {std: 0.3}, batch: {size: %u}", training->words,
                  training->samples);
    helper_ids_open(&bench->config, 5, 2 * training->samples, 16, &bench->arena, &bench->dataset);
    take_terms(&bench->config, &bench->dataset, &bench->one, &bench->arena);
}

static void bench_close(struct bench *bench) {
    run_close(&bench->one);
    arena_close(&bench->arena);
}

struct deal {
    uint64_t shards, ranks, micro, threads;
};

static const struct key_list with_reduce = {7,
                                            {PHASE_REDUCE, PHASE_CLIP, PHASE_OPTIMIZE, PHASE_LOG,
                                             PHASE_COUNT_UPDATE, PHASE_SCHEDULE, PHASE_ZERO},
                                            0};

/* What makes the gradients of matrices in the place of the op; NULL: the op does. */
static void (*ops_instead)(const struct op_call *call, const struct linear_weight_args *args);

/* Opens a run and takes it to the closed gradient of its first update; `reduced` 0: as if the loop
 * had no phase reduce. */
static void train(const struct bench *bench, struct deal deal, int reduced, struct run *run) {
    const struct run_options options = {.tensors = 1, .poison = 1, .steps = 2};
    static const enum phase phases[] = {PHASE_FETCH, PHASE_FORWARD, PHASE_BACKWARD};
    struct config config = bench->config;
    config.numerics.shards = deal.shards;
    config.parallel.ranks = deal.ranks;
    config.numerics.threads = deal.threads;
    config.batch.micro = deal.micro;
    config.loop.update = with_reduce;
    helper_run_open(&config, &bench->dataset, &options, run);
    if (ops_instead != NULL) {
        taken.ops = *taken.real;
        taken.ops.linear_weight = ops_instead;
        run->model.ops = &taken.ops;
    }
    assert_int_equal(sampler_plan_update(&run->sampler, run_head(run)->sampler, &run->plan),
                     STATUS_OK);
    measure_begin(run);
    for (run->micro = 0; run->micro < run->plan.micros;)
        for (size_t i = 0; i < COUNT_OF(phases); i++)
            assert_int_equal(phase_run(run, phases[i]), STATUS_OK);
    if (reduced) assert_int_equal(phase_run(run, PHASE_REDUCE), STATUS_OK);
    assert_int_equal(phase_close_gradient(run), STATUS_OK);
}

static struct law law_of(const struct bench *bench, uint32_t shards, uint32_t ranks,
                         enum law_break broken) {
    return (struct law){.shards = shards,
                        .ranks = ranks,
                        .samples = (uint32_t)bench->config.batch.size,
                        .broken = broken,
                        .gradient = (enum dtype)bench->config.numerics.gradient};
}

/* One shard is a chain, as ever; more shards than samples leave shards out. */
static void verify_law(void **state) {
    static const struct deal deals[] = {
        {1, 1, 1, 1}, {2, 1, 3, 2},  {4, 1, 5, 1},   {8, 1, 1, 2},   {8, 1, 5, 1}, {32, 1, 2, 2},
        {2, 2, 1, 2}, {4, 3, 2, 1},  {8, 2, 5, 2},   {8, 3, 1, 1},   {8, 3, 2, 2}, {8, 4, 2, 1},
        {8, 5, 1, 2}, {16, 5, 2, 1}, {256, 1, 5, 1}, {256, 3, 2, 2},
    };
    (void)state;
    for (size_t t = 0; t < COUNT_OF(trainings); t++) {
        struct bench bench;
        bench_open(&trainings[t], &bench);
        for (size_t i = 0; i < COUNT_OF(deals); i++) {
            const struct law law =
                law_of(&bench, (uint32_t)deals[i].shards, (uint32_t)deals[i].ranks, NO_BREAK);
            struct run run;
            train(&bench, deals[i], 1, &run);
            const uint32_t differing = count_differing(&law, &run);
            if (differing > 0)
                fail_msg("training %zu, %u shards, %u ranks, micro-batches of %llu: %u numbers "
                         "differ",
                         t, law.shards, law.ranks, (unsigned long long)deals[i].micro, differing);
            run_close(&run);
        }
        bench_close(&bench);
    }
}

/* The oracle could tell: each break of the law gives a gradient that no training has. Without the
 * phase that joins, a gradient is that of the first rank alone. */
static void verify_breaks(void **state) {
    (void)state;
    for (uint32_t ranks = 3; ranks <= 5; ranks += 2) {
        const struct deal deal = {8, ranks, 2, 1};
        uint32_t differing[BREAKS] = {0};
        for (size_t t = 0; t < COUNT_OF(trainings); t++) {
            struct bench bench;
            struct run run;
            bench_open(&trainings[t], &bench);
            train(&bench, deal, 1, &run);
            for (int broken = NO_BREAK + 1; broken < BREAKS; broken++) {
                const struct law law = law_of(&bench, 8, ranks, (enum law_break)broken);
                differing[broken] += count_differing(&law, &run);
            }
            run_close(&run);
            train(&bench, deal, 0, &run);
            const struct law law = law_of(&bench, 8, ranks, NO_BREAK);
            differing[NO_BREAK] += count_differing(&law, &run);
            run_close(&run);
            bench_close(&bench);
        }
        for (int broken = NO_BREAK; broken < BREAKS; broken++) {
            print_message("%s, %u ranks: %u numbers\n", break_names[broken], ranks,
                          differing[broken]);
            assert_true(differing[broken] > 0);
        }
    }
}

/* Ops whose every chain leaves -0 in its first element. */
static void leave_negative_zero(const struct op_call *call, const struct linear_weight_args *args) {
    taken.real->linear_weight(call, args);
    ((float *)args->acc)[0] = -0.0f;
}

/* A shard without samples is left out: joined as +0 it would turn a sum of -0 into +0, which is the
 * only thing that tells the two apart. A plain chain from +0 is hardly ever -0, so ops make it so.
 * Five samples leave three of eight shards, and 11 of 16, without any. */
static void verify_absent(void **state) {
    (void)state;
    for (uint32_t ranks = 3; ranks <= 5; ranks += 2)
        for (uint64_t shards = 8; shards <= 16; shards *= 2) {
            struct bench bench;
            struct run run;
            uint32_t seen = 0;
            bench_open(&trainings[1], &bench);
            ops_instead = leave_negative_zero;
            train(&bench, (struct deal){shards, ranks, 2, 1}, 1, &run);
            ops_instead = NULL;
            for (uint32_t i = 0; i < run.owner_count; i++) {
                const uint32_t row = run.owner[i];
                if (taken.use[i][0].K == 0 || run.table.rows[row].uses != 1) continue;
                const float *const got =
                    (const float *)run_at(&run, run.layout.tensor[row].gradient);
                const float sound = -0.0f, with_zero = -0.0f + 0.0f;
                assert_memory_equal(got, &sound, sizeof sound);
                assert_memory_not_equal(got, &with_zero, sizeof with_zero);
                seen++;
            }
            assert_true(seen > 0);
            run_close(&run);
            bench_close(&bench);
        }
}

/* Law 2 written out, for squares in f64. */
static double squares_by_law(const float *values, size_t count) {
    static double blocks[64];
    size_t width = 0;
    for (size_t first = 0; first < count; first += 4096) {
        double lane[32] = {0.0};
        for (size_t i = first; i < count && i < first + 4096; i++)
            lane[i % 32] = real_fma_f64((double)values[i], (double)values[i], lane[i % 32]);
        for (size_t half = 16; half > 0; half /= 2)
            for (size_t l = 0; l < half; l++)
                lane[l] = lane[l] + lane[l + half];
        assert_true(width < COUNT_OF(blocks));
        blocks[width++] = lane[0];
    }
    for (; width > 1; width = (width + 1) / 2)
        for (size_t i = 0; i < (width + 1) / 2; i++)
            blocks[i] = 2 * i + 1 < width ? blocks[2 * i] + blocks[2 * i + 1] : blocks[2 * i];
    return count == 0 ? 0.0 : blocks[0];
}

/* The norm of a run's gradient: of whole tensors, as law 7 has it, or of `parts` equal pieces of
 * all tensors one behind the other, as ranks own them where an optimizer is sharded flat. */
static double norm_of(const struct run *run, uint32_t parts) {
    static float flat[80000];
    double sum = 0.0;
    size_t count = 0;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const uint32_t row = run->owner[i];
        const size_t own = run->table.rows[row].count;
        const float *const at = (const float *)run_at(run, run->layout.tensor[row].gradient);
        if (parts == 0) sum = sum + squares_by_law(at, own);
        assert_true(count + own <= COUNT_OF(flat));
        memcpy(flat + count, at, own * sizeof *at);
        count += own;
    }
    for (uint32_t p = 0; p < parts; p++) {
        const size_t first = count * p / parts, end = count * (p + 1) / parts;
        sum = sum + squares_by_law(flat + first, end - first);
    }
    return real_sqrt_f64(sum);
}

/* The norm is that of the joined gradient, whatever the number of ranks, and not of flat shards,
 * whose borders move its last bits: squares of f32 numbers hardly round in f64, so not in each. */
static void verify_norm(void **state) {
    static const char words[] =
        "task: sft, model: {family: llama, layers: 2, hidden: 64, heads: 4, mlp: 96, vocab: %d}";
    uint32_t moved[2] = {0, 0};
    (void)state;
    for (int vocab = 19; vocab < 21; vocab++) {
        char text[128];
        struct bench bench;
        snprintf(text, sizeof text, words, vocab);
        bench_open(&(struct training){text, 8}, &bench);
        for (uint32_t ranks = 3; ranks <= 5; ranks += 2) {
            struct run run;
            double norm;
            train(&bench, (struct deal){8, ranks, 2, 1}, 1, &run);
            assert_int_equal(phase_measure_norm(&run, &norm), STATUS_OK);
            assert_true(norm == norm_of(&run, 0));
            moved[ranks == 5] += norm != norm_of(&run, ranks);
            run_close(&run);
        }
        bench_close(&bench);
    }
    print_message("norm by flat shards, 3 ranks: %u of 2, 5 ranks: %u of 2\n", moved[0], moved[1]);
    assert_true(moved[0] > 0 && moved[1] > 0);
}

/* Whole updates: what must not move a bit, and the number of shards, which must. */
struct shape {
    uint64_t shards, ranks, micro, threads;
    enum batch_layout layout;
    int32_t mode; /* of numerics.mode */
    int equal;    /* to the first shape */
};

static const struct shape shapes[] = {
    {8, 1, 8, 1, LAYOUT_SEPARATE, MODE_INVARIANT, 1},
    {8, 2, 4, 2, LAYOUT_SEPARATE, MODE_INVARIANT, 1},
    {8, 3, 2, 1, LAYOUT_CONCATENATED, MODE_INVARIANT, 1},
    {8, 5, 1, 2, LAYOUT_CONCATENATED, MODE_INVARIANT, 1},
    {8, 4, 1, 1, LAYOUT_SEPARATE, MODE_INVARIANT, 1},
    {8, 6, 2, 2, LAYOUT_SEPARATE, MODE_INVARIANT, 1},
    {8, 7, 2, 1, LAYOUT_SEPARATE, MODE_INVARIANT, 1},
    {8, 8, 1, 2, LAYOUT_SEPARATE, MODE_INVARIANT, 1},
    {8, 1, 1, 1, LAYOUT_CONCATENATED, MODE_INVARIANT, 1},
    {8, 3, 2, 2, LAYOUT_SEPARATE, MODE_DETERMINISTIC, 1},
    {1, 1, 2, 1, LAYOUT_SEPARATE, MODE_INVARIANT, 0},
    {4, 4, 2, 1, LAYOUT_SEPARATE, MODE_INVARIANT, 0}, /* as many shards as ranks */
};

static const struct shape exact_shapes[] = {
    {1, 1, 8, 1, LAYOUT_SEPARATE, MODE_ORDER_FREE, 1},
    {2, 2, 4, 1, LAYOUT_SEPARATE, MODE_ORDER_FREE, 1},
    {8, 3, 2, 2, LAYOUT_SEPARATE, MODE_ORDER_FREE, 1},
    {8, 5, 2, 1, LAYOUT_SEPARATE, MODE_ORDER_FREE, 1},
    {256, 8, 8, 1, LAYOUT_SEPARATE, MODE_ORDER_FREE, 1},
};

static void outcome_of(const struct config *base, const struct dataset *dataset,
                       const struct shape *shape, struct helper_outcome *out) {
    const struct run_options options = {.tensors = 1, .phases = 1, .poison = 1, .steps = 2};
    struct config config = *base;
    struct run run;
    config.numerics.shards = shape->shards;
    config.parallel.ranks = shape->ranks;
    config.numerics.threads = shape->threads;
    config.numerics.mode = shape->mode;
    config.batch.micro = config.dpo.reference_batch = shape->micro;
    config.batch.layout = config.dpo.reference_layout = (int32_t)shape->layout;
    helper_run_open(&config, dataset, &options, &run);
    helper_outcome_of(&run, 2, out);
    run_close(&run);
}

/* `loop` is what stands behind phase schedule. */
static void compare_shapes(const char *words, const char *loop, const struct shape *of,
                           size_t count) {
    struct config config;
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    struct helper_outcome like, outcome;
    helper_config(2, &config,
                  "%s, init: {std: 0.3}, batch: {size: 8}, clip: {max_norm: 0.5}, loop: {update: "
                  "[reduce, clip, optimize, log, count, schedule%s}",
                  words, loop);
    helper_ids_open(&config, 5, 16, 16, &arena, &dataset);
    outcome_of(&config, &dataset, &of[0], &like);
    for (size_t i = 1; i < count; i++) {
        outcome_of(&config, &dataset, &of[i], &outcome);
        const char *const gap = helper_outcome_gap(&like, &outcome);
        if ((gap == NULL) != of[i].equal)
            fail_msg("%s: shape %zu: %s", words, i, gap == NULL ? "equal" : gap);
    }
    arena_close(&arena);
}

static void verify_shapes(void **state) {
    (void)state;
    for (size_t t = 0; t < COUNT_OF(trainings); t++) {
        /* bf16 gradients hide what four shards differ by from eight */
        const int hidden = trainings[t].samples == 11;
        compare_shapes(trainings[t].words, ", zero]", shapes, COUNT_OF(shapes) - (size_t)hidden);
    }
}

/* With one shard every rank goes on with the chains of the rank before it, so any number of ranks,
 * a divisor of nothing, too, has the bits of one, which are those of one process ever since. */
static const struct shape relayed[] = {
    {1, 1, 8, 1, LAYOUT_SEPARATE, MODE_INVARIANT, 1},
    {1, 2, 4, 2, LAYOUT_SEPARATE, MODE_INVARIANT, 1},
    {1, 3, 2, 1, LAYOUT_CONCATENATED, MODE_INVARIANT, 1},
    {1, 4, 1, 2, LAYOUT_SEPARATE, MODE_INVARIANT, 1},
    {1, 5, 8, 1, LAYOUT_CONCATENATED, MODE_DETERMINISTIC, 1},
    {1, 8, 2, 1, LAYOUT_SEPARATE, MODE_INVARIANT, 1},
    {2, 2, 4, 1, LAYOUT_SEPARATE, MODE_INVARIANT, 0}, /* sums of their own, joined */
};

static void verify_relay(void **state) {
    (void)state;
    for (size_t t = 0; t < COUNT_OF(trainings); t++) {
        const int hidden = trainings[t].samples == 11; /* see verify_shapes() */
        compare_shapes(trainings[t].words, ", zero]", relayed, COUNT_OF(relayed) - (size_t)hidden);
    }
    compare_shapes(trainings[0].words, "]", relayed, COUNT_OF(relayed));
}

/* Micro-batches of a relay are those of its ranks: of 8 samples three ranks have 3, 3 and 2. */
static void verify_relayed_micros(void **state) {
    static const uint32_t first[] = {0, 2, 3, 5, 6};
    struct bench bench;
    struct run run;
    (void)state;
    bench_open(&trainings[0], &bench);
    train(&bench, (struct deal){1, 3, 2, 1}, 1, &run);
    assert_int_equal(run.plan.micros, COUNT_OF(first));
    for (uint32_t m = 0; m < COUNT_OF(first); m++)
        assert_int_equal(run.plan.micro[m].first, first[m]);
    run_close(&run);
    bench_close(&bench);
}

/* An exact sum has every term once, whatever its tree. */
static void verify_order_free(void **state) {
    (void)state;
    for (size_t t = 0; t < 2; t++)
        compare_shapes(trainings[t].words, ", zero]", exact_shapes, COUNT_OF(exact_shapes));
}

/* Accumulators of f64. */
static void verify_wide(void **state) {
    static const char words[] = "task: sft, numerics: {accumulate: f64}, model: {family: llama, "
                                "layers: 1, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 19}";
    (void)state;
    compare_shapes(words, ", zero]", shapes, 4);
}

/* Without zero, the first chain of update 2 goes on from update 1's gradient, clipped, whatever the
 * number of shards: in mode order-free that leaves one set of bits. */
static void verify_carried(void **state) {
    (void)state;
    compare_shapes(trainings[0].words, "]", exact_shapes, COUNT_OF(exact_shapes));
    compare_shapes(trainings[0].words, "]", shapes, 6);
}

/* What a run says that it takes holds the slots beside the state's own accumulators: three for
 * eight shards, and three more for five ranks, which hand over 1, 2, 1, 1 and 1 pieces. */
static void verify_memory(void **state) {
    static const struct deal deals[] = {{1, 1, 2, 1}, {8, 1, 2, 1}, {8, 5, 2, 1}};
    size_t memory[COUNT_OF(deals)], bytes = 0;
    static const struct training wide = {
        "task: sft, model: {family: llama, layers: 1, hidden: 256, heads: 4, mlp: 256, vocab: 259}",
        8};
    struct bench bench;
    (void)state;
    bench_open(&wide, &bench);
    for (size_t i = 0; i < COUNT_OF(deals); i++) {
        struct run run;
        train(&bench, deals[i], 1, &run);
        memory[i] = run_memory(&run);
        bytes = run.table.elements * run.layout.accumulator;
        run_close(&run);
    }
    assert_true(memory[1] >= memory[0] + 3 * bytes);
    assert_true(memory[2] >= memory[1] + 3 * bytes);
    bench_close(&bench);
}

/* A skip rule and a loss scale look at the joined gradient. The scale is too large for the first
 * update, which is skipped. */
static void verify_skipped(void **state) {
    static const char words[] =
        "task: sft, scaler: {kind: dynamic, init_scale: 1e10, backoff_factor: 1e-6}, numerics: "
        "{compute: f16}, model: "
        "{family: llama, layers: 1, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 19}";
    (void)state;
    compare_shapes(words, ", zero], skip: nonfinite, on_skip: [log, zero]", shapes, 8);
    compare_shapes(trainings[0].words, ", zero], skip: olmo-outlier", shapes, 4);
}

/* Ranks that train divide by their own labels as ranks that are imitated in the loss do. */
static void corroborate_mean_of_ranks(void **state) {
    static const char words[] =
        "task: sft, loss: {divisor: mean-of-ranks, ranks: 4}, model: {family: llama, layers: 1, "
        "hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 19}";
    static const struct shape deals[] = {{8, 1, 8, 1, LAYOUT_SEPARATE, MODE_INVARIANT, 1},
                                         {8, 4, 1, 2, LAYOUT_SEPARATE, MODE_INVARIANT, 1},
                                         {8, 4, 2, 1, LAYOUT_SEPARATE, MODE_INVARIANT, 1}};
    (void)state;
    compare_shapes(words, ", zero]", deals, COUNT_OF(deals));
}

/* The load refuses a rank without samples by a formula of its own. */
static void corroborate_empty_ranks(void **state) {
    struct config config;
    uint32_t empty = 0;
    (void)state;
    helper_config(2, &config, "numerics: {shards: 8}, parallel: {ranks: 2}, batch: {micro: 1}");
    for (uint32_t shards = 2; shards <= 16; shards *= 2)
        for (uint32_t ranks = 2; ranks <= shards; ranks++)
            for (uint64_t size = ranks; size <= 40; size++) {
                char says[64] = "";
                for (uint32_t r = ranks; r-- > 0;)
                    if (tree_rank_samples(r, size, shards, ranks) == 0)
                        snprintf(says, sizeof says, "belongs to the shards of rank %u", r);
                config.numerics.shards = shards;
                config.parallel.ranks = ranks;
                config.batch.size = size;
                config.loss.ranks = ranks;
                const enum status status = config_validate(&config, 2);
                assert_int_equal(status, says[0] == '\0' ? STATUS_OK : STATUS_INPUT);
                if (status != STATUS_OK) assert_non_null(strstr(status_text(), says));
                empty += status != STATUS_OK;
            }
    assert_true(empty > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_law),
        cmocka_unit_test(verify_breaks),
        cmocka_unit_test(verify_absent),
        cmocka_unit_test(verify_norm),
        cmocka_unit_test(verify_shapes),
        cmocka_unit_test(verify_relay),
        cmocka_unit_test(verify_relayed_micros),
        cmocka_unit_test(verify_order_free),
        cmocka_unit_test(verify_wide),
        cmocka_unit_test(verify_carried),
        cmocka_unit_test(verify_memory),
        cmocka_unit_test(verify_skipped),
        cmocka_unit_test(corroborate_mean_of_ranks),
        cmocka_unit_test(corroborate_empty_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
