/* SPDX-License-Identifier: Apache-2.0
 * Measures linear layers alone, by the ops that a training with these keys would call: the seven of
 * one layer and the head, each forward, input gradient and weight gradient, over the rows of one
 * micro-batch, with nothing of the host in between. This is not a test: it prints a figure.
 *
 *     bench_linear NAME ROUNDS SECONDS KEY=VALUE...
 *
 * One round does not count; ROUNDS follow, or fewer, but at least one, when SECONDS have passed. It
 * prints one line of fields with tabs between: NAME, 10^12 floating-point operations of a round (2
 * for each product and sum), its median and best seconds, and the rounds that were timed. Where it
 * cannot run the exit status is 1 and the line is NAME, "-" and the reason. */
#include <stdio.h>
#include <stdlib.h>

#include "data/batch.h"
#include "determinism/stream.h"
#include "kernels/backend_abi.h"
#include "model/backends.h"
#include "model/model.h"
#include "tests/bench/helper_bench.h"

#define MOST_ROUNDS 1000

struct layer {
    enum op_site site;
    uint32_t N, K;
};

struct bench {
    struct model model;
    struct layer layer[8];
    struct row_list rows;
    void *x, *w, *dy, *y, *dx, *acc; /* large enough for each layer */
    double operations;
};

/* Drawn numbers that operands repeat: to draw each of them would take most of the program's time.
 */
#define DRAWN ((size_t)1 << 20)

static enum status take_random(struct bench *bench, struct arena *arena, const float *source,
                               size_t count, void **out) {
    const struct model *model = &bench->model;
    TRY(arena_take(arena_hidden(arena), count, model->form.width, "operand", out));
    for (size_t i = 0; i < count; i += DRAWN) {
        const size_t some = count - i < DRAWN ? count - i : DRAWN;
        const struct convert_args args = {
            some, DTYPE_F32, model->compute, source, (char *)*out + i * model->form.width, 0};
        model->ops->convert(&model->call, &args);
    }
    return model_wait(model);
}

static enum status take_operands(struct bench *bench, struct arena *arena) {
    const struct stream_site site = {{{0}}};
    size_t wide = 0, weight = 0;
    float *source;
    for (size_t i = 0; i < COUNT_OF(bench->layer); i++) {
        const struct layer *layer = &bench->layer[i];
        const size_t widest = layer->N > layer->K ? layer->N : layer->K;
        const size_t size = (size_t)layer->N * layer->K;
        wide = widest > wide ? widest : wide;
        weight = size > weight ? size : weight;
        bench->operations += 3 * 2e-12 * (double)size * (double)bench->rows.count;
    }
    const size_t rows = (size_t)bench->rows.count * wide;
    TRY(arena_take(arena, DRAWN, sizeof *source, "random numbers", &source));
    for (size_t i = 0; i < DRAWN; i++)
        source[i] = (float)(stream_uniform(stream_word(7, site, i)) - 0.5);
    TRY(take_random(bench, arena, source, rows, &bench->x));
    TRY(take_random(bench, arena, source, rows, &bench->dy));
    TRY(take_random(bench, arena, source, weight, &bench->w));
    struct arena *const hidden = arena_hidden(arena);
    TRY(arena_take(hidden, rows, bench->model.form.width, "outputs", &bench->y));
    TRY(arena_take(hidden, rows, bench->model.form.width, "outputs", &bench->dx));
    return arena_take(hidden, weight, bench->model.accumulator, "outputs", &bench->acc);
}

/* The rows are listed, as those of a training are. */
static enum status take_rows(struct bench *bench, const struct batch_limits *limits,
                             struct arena *arena) {
    uint32_t *index;
    TRY(arena_take(arena, limits->tokens, sizeof *index, "rows", &index));
    for (uint32_t i = 0; i < limits->tokens; i++)
        index[i] = i;
    bench->rows = (struct row_list){index, limits->tokens};
    return STATUS_OK;
}

static enum status open_model(const struct config *config, const struct dataset *dataset,
                              struct arena *arena, struct bench *out) {
    static const enum op_site sites[] = {SITE_Q_PROJ,    SITE_K_PROJ,  SITE_V_PROJ,    SITE_O_PROJ,
                                         SITE_GATE_PROJ, SITE_UP_PROJ, SITE_DOWN_PROJ, SITE_HEAD};
    struct param_table *table;
    struct batch_limits limits;
    const struct backend *backend;
    struct model *const model = &out->model;
    TRY(backends_open(config, &backend));
    backends_memory(backend, arena, arena->hidden);
    TRY(arena_take(arena, 1, sizeof *table, "parameters", &table));
    TRY(params_open(config, arena, table));
    TRY(batch_limits_open(config, dataset, config->batch.micro,
                          (enum batch_layout)config->batch.layout, &limits));
    TRY(model_open(config, table, backend, &limits, arena, model));
    model_set_order(model, 1, 0);
    const uint32_t N[] = {model->Q, model->K, model->K, model->C,
                          model->M, model->M, model->C, model->V};
    const uint32_t K[] = {model->C, model->C, model->C, model->Q,
                          model->C, model->C, model->M, model->C};
    for (size_t i = 0; i < COUNT_OF(sites); i++)
        out->layer[i] = (struct layer){sites[i], N[i], K[i]};
    model->call.queued = backend != NULL;
    model->call.rows = limits.rows;
    model->call.length = limits.length;
    model->call.layer = 1;
    TRY(take_rows(out, &limits, arena));
    return take_operands(out, arena);
}

static enum status run_round(struct bench *bench, double *out_seconds) {
    const struct model *model = &bench->model;
    struct op_call call = model->call;
    const double start = bench_seconds();
    for (size_t i = 0; i < COUNT_OF(bench->layer); i++) {
        const uint32_t N = bench->layer[i].N, K = bench->layer[i].K;
        call.site = bench->layer[i].site;
        model->ops->linear_forward(&call, &(struct linear_forward_args){bench->rows, N, K, bench->x,
                                                                        bench->w, bench->y, NULL});
        model->ops->linear_input(&call, &(struct linear_input_args){bench->rows, N, K, bench->dy,
                                                                    bench->w, bench->dx, 0});
        model->ops->linear_weight(&call, &(struct linear_weight_args){bench->rows, N, K, bench->dy,
                                                                      bench->x, bench->acc, 0});
    }
    TRY(model_wait(model));
    *out_seconds = bench_seconds() - start;
    return STATUS_OK;
}

static enum status measure(char **argv, size_t overrides, struct arena *arena,
                           struct arena *memory) {
    const struct config *config;
    struct dataset dataset;
    struct bench *bench;
    struct bench_memory needed;
    double times[MOST_ROUNDS];
    size_t count = 0;
    const uint64_t rounds = strtoull(argv[1], NULL, 10);
    const double most = strtod(argv[2], NULL);
    if (rounds < 1 || rounds > MOST_ROUNDS)
        FAIL(STATUS_INPUT, "rounds: expected 1 to %d", MOST_ROUNDS);
    TRY(bench_open((const char *const *)(void *)(argv + 3), overrides, arena, &config, &dataset));
    TRY(bench_memory_check(config, &dataset, 0.0, &needed));
    TRY(arena_take(arena, 1, sizeof *bench, "bench", &bench));
    TRY(open_model(config, &dataset, memory, bench));
    const double begin = bench_seconds();
    for (uint64_t i = 0; i <= rounds; i++) {
        double time;
        if (i > 1 && most > 0.0 && bench_seconds() - begin > most) break;
        TRY(run_round(bench, &time));
        if (i > 0) bench_insert(times, count++, time);
    }
    printf("%s\t%.6g\t%.6g\t%.6g\t%zu\n", argv[0], bench->operations, times[count / 2], times[0],
           count);
    return STATUS_OK;
}

int main(int argc, char **argv) {
    struct arena arena = ARENA_EMPTY, memory = ARENA_EMPTY, hidden = ARENA_EMPTY;
    memory.hidden = &hidden;
    if (argc < 4) {
        fprintf(stderr, "Usage: bench_linear NAME ROUNDS SECONDS KEY=VALUE...\n");
        return 2;
    }
    const enum status status = measure(argv + 1, (size_t)argc - 4, &arena, &memory);
    if (status != STATUS_OK) printf("%s\t-\t%s\n", argv[1], status_text());
    arena_close(&hidden);
    arena_close(&memory);
    arena_close(&arena);
    return status == STATUS_OK ? 0 : 1;
}
