/* SPDX-License-Identifier: Apache-2.0
 * Generates from builtin:base, then runs every other engine forward over what was generated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/rollout/helper_pool.h"

#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/real.h"
#include "experiment/probe.h"
#include "model/generate.h"
#include "tests/trainer/helper_train.h"
#include "trainer/run_pass.h"

#define PROMPT 24u
#define MICRO 16u
#define MODEL                                                                                      \
    "task: sft, model: {from: 'builtin:base'}, data: {text: 'builtin:devil', max_len: 200}, "      \
    "batch: {size: 16, micro: 16}, optimizer: {lr: 1e-4}"

const double pool_heats[POOL_HEATS] = {0.5, 0.7, 0.9, 0.97, 1.03, 1.1, 1.3, 2.0};

struct making {
    struct pool *pool;
    struct arena *arena;
    struct dataset dataset, cut; /* what was generated; the same without its far context */
};

static void expect_ok(enum status status) {
    if (status != STATUS_OK) fail_msg("status %d: %s", (int)status, status_text());
}

#define TAKE(arena, count, pointer)                                                                \
    expect_ok(arena_take(arena, count, sizeof *(pointer), "pool", &(pointer)))

static struct run *open_run(const struct dataset *dataset, const char *words, uint64_t seed) {
    struct config config;
    struct run *run;
    const struct run_options options = {.steps = 1000, .order_seed = seed};
    helper_config(1000, &config, "%s%s", MODEL, words);
    expect_ok(run_open(&config, dataset, &options, &run));
    return run;
}

/* ---- generation ---- */

static uint32_t length_of(uint32_t sequence, uint32_t longest) {
    return 16 + (uint32_t)((double)(longest - 15) * (0.5 + 0.5 * helper_uniform(5, sequence)));
}

static void generate_all(struct making *m, const struct run *run, const struct dataset *text,
                         uint32_t longest) {
    const struct generate_limits limits = {MICRO, PROMPT, PROMPT + longest};
    const struct model_weights weights = {run_weights((struct run *)run)};
    struct generator *generator;
    TAKE(m->arena, 1, generator);
    struct generate_prompt prompts[MICRO];
    uint32_t *token;
    TAKE(m->arena, (size_t)MICRO * longest, token);
    double *logp;
    TAKE(m->arena, (size_t)MICRO * longest, logp);
    uint32_t *at = m->pool->id;
    expect_ok(generator_open(run_config(run), run_table(run), &limits, m->arena, generator));
    for (uint32_t s = 0; s < m->pool->sequences; s += MICRO) {
        const struct generate_options options = {
            .tokens = longest, .temperature = 1.0, .top_p = 1.0, .seed = 11, .first = s};
        for (uint32_t i = 0; i < MICRO; i++) {
            const struct dataset_sequence *from =
                dataset_side(text, (s + i) * 7919u % text->samples, 0);
            const uint32_t room = from->length > PROMPT ? from->length - PROMPT : 0;
            const uint32_t skip = room * (s % 7) / 7;
            prompts[i] = (struct generate_prompt){text->token + from->first + skip,
                                                  from->length - skip < PROMPT ? from->length - skip
                                                                               : PROMPT};
        }
        expect_ok(generate(generator, &weights, prompts, MICRO, &options, token, logp));
        for (uint32_t i = 0; i < MICRO; i++) {
            const uint32_t length = length_of(s + i, longest);
            m->pool->first[s + i] = (uint32_t)(at - m->pool->id);
            m->pool->prompt[s + i] = prompts[i].length;
            m->pool->length[s + i] = length;
            memcpy(at, prompts[i].token, prompts[i].length * sizeof *at);
            memcpy(at + prompts[i].length, token + (size_t)i * longest, length * sizeof *at);
            at += prompts[i].length + length;
        }
    }
    m->pool->tokens = (uint32_t)(at - m->pool->id);
}

static void make_dataset(struct making *m, struct dataset *out) {
    const struct pool *pool = m->pool;
    int32_t *target;
    TAKE(m->arena, pool->tokens, target);
    struct dataset_sequence *sequence;
    TAKE(m->arena, pool->sequences, sequence);
    uint32_t *line;
    TAKE(m->arena, pool->sequences, line);
    uint8_t *opens;
    TAKE(m->arena, pool->sequences, opens);
    memset(out, 0, sizeof *out);
    for (uint32_t s = 0; s < pool->sequences; s++) {
        const uint32_t first = pool->first[s], prompt = pool->prompt[s],
                       all = prompt + pool->length[s];
        for (uint32_t p = 0; p < all; p++)
            target[first + p] = p + 1 < prompt || p + 1 == all ? DATASET_NO_TARGET
                                                               : (int32_t)pool->id[first + p + 1];
        sequence[s] = (struct dataset_sequence){first, all, prompt, pool->length[s], 0};
        if (all > out->longest) out->longest = all;
        out->labels += pool->length[s];
        line[s] = s + 1;
    }
    out->source = "pool";
    out->task = TASK_SFT;
    out->sides = 1;
    out->samples = pool->sequences;
    out->tokens = pool->tokens;
    out->token = pool->id;
    out->target = target;
    out->sequence = sequence;
    out->line = line;
    out->opens = opens;
}

/* ---- forwards ---- */

/* Label log-probs of a run over the data set, each into its place behind the prompt. `heads`: the
 * run's logits give the columns of temperatures and of bf16 logits, too. */
static void forward_all(struct making *m, struct run *run, uint64_t seed, double *out, int heads);

static double log_prob(const struct probe_row *row, uint32_t token, double heat, int rounded) {
    double largest = -real_inf_f64(), sum = 0.0;
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t v = 0; v < row->model->V; v++) {
            double z = probe_logit(row, v);
            if (rounded) z = dtype_round(z, DTYPE_BF16);
            z /= heat;
            if (pass == 0 && z > largest) largest = z;
            if (pass == 1) sum += real_exp_f64(z - largest);
        }
    double z = probe_logit(row, token);
    if (rounded) z = dtype_round(z, DTYPE_BF16);
    return z / heat - largest - real_log_f64(sum);
}

static void take_heads(struct making *m, const struct probe_row *row, uint32_t at) {
    const uint32_t token = m->pool->id[at];
    m->pool->logp[POOL_BF16][at] = log_prob(row, token, 1.0, 1);
    for (int h = 0; h < POOL_HEATS; h++)
        m->pool->logp[POOL_HEAT + h][at] = log_prob(row, token, pool_heats[h], 0);
}

static void forward_all(struct making *m, struct run *run, uint64_t seed, double *out, int heads) {
    const struct pool *pool = m->pool;
    for (uint32_t s = 0; s < pool->sequences; s += MICRO) {
        uint32_t samples[MICRO], canonical = 0;
        for (uint32_t i = 0; i < MICRO; i++)
            samples[i] = s + i;
        run_fill_batch(run, samples, MICRO);
        assert_int_equal(run_forward(run, seed + s, 0, NULL), STATUS_OK);
        for (uint32_t i = 0; i < MICRO; i++)
            for (uint32_t t = 0; t < pool->length[s + i]; t++, canonical++) {
                struct probe_row row;
                assert_int_equal(probe_row_open(run, canonical, &row), STATUS_OK);
                const uint32_t at = pool->first[s + i] + pool->prompt[s + i] + t;
                out[at] = probe_log_prob(&row, pool->id[at]);
                if (heads) take_heads(m, &row, at);
            }
    }
}

/* The context is cut token by token: each is scored as the last of POOL_CUT_LENGTH tokens. A data
 * set of such windows would be long; only every window's last label counts. */
static void forward_cut(struct making *m, struct run *run) {
    struct pool *pool = m->pool;
    struct dataset windows = m->dataset;
    struct dataset_sequence *sequence;
    TAKE(m->arena, pool->sequences, sequence);
    int32_t *target;
    TAKE(m->arena, pool->tokens, target);
    memcpy(target, m->dataset.target, pool->tokens * sizeof *target);
    memcpy(pool->logp[POOL_CUT], pool->logp[POOL_BASE], pool->tokens * sizeof(double));
    /* What stands behind the first POOL_CUT_LENGTH tokens does not see them. */
    for (uint32_t s = 0; s < pool->sequences; s++) {
        const struct dataset_sequence from = m->dataset.sequence[s];
        sequence[s] = from;
        if (from.length < POOL_CUT_LENGTH + 16) continue;
        sequence[s].first = from.first + POOL_CUT_LENGTH;
        sequence[s].length = from.length - POOL_CUT_LENGTH;
        sequence[s].prompt = from.prompt > POOL_CUT_LENGTH ? from.prompt - POOL_CUT_LENGTH : 1;
        sequence[s].labels = 0;
        for (uint32_t p = 0; p < sequence[s].length; p++)
            sequence[s].labels += target[sequence[s].first + p] != DATASET_NO_TARGET;
    }
    windows.sequence = sequence;
    windows.target = target;
    (void)run;
    struct run *cut = open_run(&windows, "", 1);
    for (uint32_t s = 0; s < pool->sequences; s += MICRO) {
        uint32_t samples[MICRO], canonical = 0;
        for (uint32_t i = 0; i < MICRO; i++)
            samples[i] = s + i;
        run_fill_batch(cut, samples, MICRO);
        assert_int_equal(run_forward(cut, 1, 0, NULL), STATUS_OK);
        for (uint32_t i = 0; i < MICRO; i++)
            for (uint32_t p = 0; p < sequence[s + i].length; p++) {
                const uint64_t at = sequence[s + i].first + p;
                if (target[at] == DATASET_NO_TARGET) continue;
                struct probe_row row;
                assert_int_equal(probe_row_open(cut, canonical++, &row), STATUS_OK);
                pool->logp[POOL_CUT][at + 1] = probe_log_prob(&row, pool->id[at + 1]);
            }
    }
    run_close(cut);
}

/* Another expert: the down projection of the last layer is another draw of the same size. */
static void change_mlp(struct run *run) {
    for (uint32_t i = 0; i < run_owner_count(run); i++) {
        const uint32_t row = run_owners(run)[i];
        const struct param_row *param = &run_table(run)->rows[row];
        if (strstr(param->name, "layers.3.mlp.down_proj") == NULL &&
            strstr(param->name, "layers.1.mlp.down_proj") == NULL)
            continue;
        float *values = (float *)run_param(run, row);
        for (size_t e = 0; e + 1 < param->count; e += 2) {
            const float kept = values[e];
            values[e] = values[e + 1];
            values[e + 1] = kept;
        }
    }
}

static void fill(struct making *m, const struct dataset *text) {
    struct pool *pool = m->pool;
    struct run *base = open_run(&m->dataset, "", 1);
    forward_all(m, base, 1, pool->logp[POOL_BASE], 1);
    forward_cut(m, base);
    run_close(base);
    for (int e = 0; e < POOL_ENGINES; e++) {
        struct run *engine = open_run(
            &m->dataset,
            ", numerics: {compute: bf16, mode: shuffled}, shuffle: {chunk: 4, kinds: [forward]}",
            100 + (uint64_t)e);
        forward_all(m, engine, 1000 * (uint64_t)(e + 1), pool->logp[POOL_ENGINE + e], 0);
        run_close(engine);
    }
    struct run *other = open_run(&m->dataset, "", 1);
    change_mlp(other);
    forward_all(m, other, 1, pool->logp[POOL_ROUTED], 0);
    run_close(other);
    struct run *learning = open_run(text, "", 1), *scoring = open_run(&m->dataset, "", 1);
    for (int v = 0; v < POOL_VERSIONS; v++) {
        forward_all(m, scoring, 1, pool->logp[POOL_VERSION + v], 0);
        const struct record *record;
        for (int k = 0; k < 2; k++)
            expect_ok(run_step(learning, &record));
        assert_int_equal(run_take_weights(learning, scoring), STATUS_OK);
    }
    run_close(learning);
    run_close(scoring);
}

const struct pool *pool_open(uint32_t sequences, uint32_t longest) {
    static struct pool pool;
    static struct arena arena;
    struct making m = {.pool = &pool, .arena = &arena};
    struct dataset text;
    if (pool.sequences != 0) return &pool;
    pool.sequences = sequences;
    const size_t most = (size_t)sequences * (PROMPT + longest);
    TAKE(&arena, sequences, pool.first);
    TAKE(&arena, sequences, pool.length);
    TAKE(&arena, sequences, pool.prompt);
    TAKE(&arena, most, pool.id);
    for (int c = 0; c < POOL_COLUMNS; c++)
        TAKE(&arena, most, pool.logp[c]);
    struct config config;
    helper_config(1000, &config, "%s", MODEL);
    helper_data_open(&config, &arena, &text);
    struct run *run = open_run(&text, "", 1);
    generate_all(&m, run, &text, longest);
    run_close(run);
    make_dataset(&m, &m.dataset);
    fill(&m, &text);
    return &pool;
}
