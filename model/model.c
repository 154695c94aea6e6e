/* SPDX-License-Identifier: Apache-2.0
 * Opens a model: sizes, one piece of memory for all activations, rotary tables, what its mode
 * needs; and makes digests of activation sites. Forward and backward are in forward.c and
 * backward.c. Invariant: everything that forward writes lies in `buffers`, or is logp, which the
 * host reads, so that two fills reach all of it. */
#include "model/model.h"

#include <string.h>

#include "base/element.h"
#include "base/real.h"
#include "data/batch.h"
#include "kernels/backend_abi.h"
#include "model/backends.h"
#include "model/digests.h"
#include "model/model_dropout.h"
#include "model/rope_table.h"
#include "scenarios/scenario.h"

static void take_sizes(struct model *model) {
    const struct config *config = model->config;
    model->D = (uint32_t)config->model.head_dim;
    model->H = (uint32_t)config->model.heads;
    model->G = (uint32_t)config->model.kv_heads;
    model->C = (uint32_t)config->model.hidden;
    model->Q = model->H * model->D;
    model->K = model->G * model->D;
    model->M = (uint32_t)config->model.mlp;
    model->V = (uint32_t)config->model.vocab;
    model->layers = (uint32_t)config->model.layers;
    model->post_norm = config->model.family == FAMILY_OLMO2;
    model->head_norm = config->model.family == FAMILY_QWEN3;
    model->qk_norm = model->post_norm || model->head_norm;
    model->scale = 1.0 / real_sqrt_f64((double)model->D);
    model->compute = (enum dtype)config->numerics.compute;
    model->accumulate = (enum dtype)config->numerics.accumulate;
    model->loss = (enum dtype)config->numerics.loss;
    model->accumulator = dtype_carrier(model->accumulate);
    model->shuffled = config->numerics.mode == MODE_SHUFFLED;
}

/* Walks the layout twice: with base NULL it only measures. */
struct carver {
    unsigned char *base;
    size_t used;
};

/* Takes a piece behind the last one, rounded up to 64 bytes: every piece begins at a cache line and
 * at the widest vector's alignment, whatever the sizes before it. */
static void *carve(struct carver *carver, size_t rows, size_t width, size_t element) {
    void *piece = carver->base == NULL ? NULL : carver->base + carver->used;
    carver->used += (rows * width * element + 63) & ~(size_t)63;
    return piece;
}

static void carve_layer(struct model *model, struct carver *carver, size_t R,
                        struct layer_buffers *layer) {
    size_t element = model->form.width, acc = model->accumulator;
    layer->x = carve(carver, R, model->C, element);
    layer->q = carve(carver, R, model->Q, element);
    layer->k = carve(carver, R, model->K, element);
    layer->v = carve(carver, R, model->K, element);
    layer->att = carve(carver, R, model->Q, element);
    layer->o = carve(carver, R, model->C, element);
    layer->h = carve(carver, R, model->C, element);
    layer->gate = carve(carver, R, model->M, element);
    layer->up = carve(carver, R, model->M, element);
    layer->act = carve(carver, R, model->M, element);
    layer->down = carve(carver, R, model->C, element);
    layer->rstd_a = carve(carver, R, 1, acc);
    layer->rstd_b = carve(carver, R, 1, acc);
    layer->att_state = carve(carver, R, 2 * model->H, acc);
    layer->a = model->post_norm ? layer->x : carve(carver, R, model->C, element);
    layer->b = model->post_norm ? layer->h : carve(carver, R, model->C, element);
    if (!model->qk_norm) return;
    layer->q_line = carve(carver, R, model->Q, element);
    layer->k_line = carve(carver, R, model->K, element);
    layer->rstd_q = carve(carver, R, model->head_norm ? model->H : 1, acc);
    layer->rstd_k = carve(carver, R, model->head_norm ? model->G : 1, acc);
}

static void carve_gradients(struct model *model, struct carver *carver, size_t R) {
    struct layer_gradients *gradient = &model->gradient;
    size_t element = model->form.width;
    gradient->stream = carve(carver, R, model->C, element);
    gradient->h = carve(carver, R, model->C, element);
    if (model->config->dropout.residual > 0.0) {
        gradient->branch_a = carve(carver, R, model->C, element);
        gradient->branch_b = carve(carver, R, model->C, element);
    }
    gradient->b = carve(carver, R, model->C, element);
    gradient->down = carve(carver, R, model->C, element);
    gradient->gate = carve(carver, R, model->M, element);
    gradient->up = carve(carver, R, model->M, element);
    gradient->act = carve(carver, R, model->M, element);
    gradient->o = carve(carver, R, model->C, element);
    gradient->att = carve(carver, R, model->Q, element);
    gradient->q = carve(carver, R, model->Q, element);
    gradient->q_line = carve(carver, R, model->Q, element);
    gradient->k = carve(carver, R, model->K, element);
    gradient->k_line = carve(carver, R, model->K, element);
    gradient->v = carve(carver, R, model->K, element);
    gradient->a = carve(carver, R, model->C, element);
}

static void carve_all(struct model *model, struct carver *carver, size_t R, size_t L) {
    size_t element = model->form.width, acc = model->accumulator;
    for (uint32_t i = 0; i < model->layers; i++)
        carve_layer(model, carver, R, &model->layer[i]);
    carve_gradients(model, carver, R);
    model->last = carve(carver, R, model->C, element);
    model->label_x = carve(carver, L, model->C, element);
    model->label_h = carve(carver, L, model->C, element);
    model->label_dh = carve(carver, L, model->C, element);
    model->label_dx = carve(carver, L, model->C, element);
    model->label_rstd = carve(carver, L, 1, acc);
    model->logits = carve(carver, L, model->V, element);
    model->maximum = carve(carver, L, 1, acc);
    model->sum = carve(carver, L, 1, acc);
}

static enum dtype or_compute(const struct model *model, int32_t choice) {
    return choice == CONFIG_AS_COMPUTE ? model->compute : (enum dtype)choice;
}

static uint32_t kind_bits(const struct key_list *kinds) {
    uint32_t bits = 0;
    for (uint8_t i = 0; i < kinds->count; i++)
        bits |= 1u << kinds->item[i];
    return bits;
}

/* Sets up modes fast and deterministic of a device: its library for linear layers, and atomics for
 * dQ, where they save a pass over all keys. Other sums over tokens gain nothing by them (law 20,
 * docs/CUDA.md). */
static void open_device_mode(struct model *model) {
    const struct config *config = model->config;
    if (config->numerics.mode != MODE_FAST && config->numerics.mode != MODE_DETERMINISTIC) return;
    if (config->numerics.determinism.atomics) {
        model->racing.kinds = SUM_DQ;
        model->racing.chunk = (uint32_t)config->atomic.chunk;
        model->call.racing = &model->racing;
    }
    if (!config_uses_cublas(config)) return;
    model->library = (struct library_mode){.pinned = !config->numerics.determinism.workspace,
                                           .ordered = !config->numerics.determinism.order,
                                           .split_k = config->numerics.determinism.split_k,
                                           .atomics = config->numerics.determinism.atomics,
                                           .fill = config->numerics.determinism.fill == FILL_NAN,
                                           .count = &model->products};
    model->call.library = &model->library;
}

/* Sets up what modes shaped, atomic and fast need: a table, kinds of sum, a library. LIBRARY_AUTO
 * does without a library that is not there, but never without one that was configured wrongly. */
static enum status open_mode(struct model *model) {
    const struct config *config = model->config;
    if (config->numerics.mode == MODE_SHAPED) {
        model->call.splits = &model->splits;
        return splits_parse(config->shaped.table, &model->splits);
    }
    if (config->numerics.mode == MODE_ATOMIC) {
        model->racing.kinds = kind_bits(&config->atomic.kinds);
        model->racing.chunk = (uint32_t)config->atomic.chunk;
        model->call.racing = &model->racing;
        return STATUS_OK;
    }
    if (config->numerics.backend == BACKEND_CUDA) open_device_mode(model);
    if (!config_uses_openblas(config)) return STATUS_OK;
    const enum status status = blas_open(&model->blas);
    if (status == STATUS_UNSUPPORTED && config->numerics.library == LIBRARY_AUTO) return STATUS_OK;
    if (status != STATUS_OK) return status_prefix(status, "numerics.library: ");
    model->call.blas = &model->blas;
    return STATUS_OK;
}

/* Bytes of a number that a device's library multiplies for this model
 * (kernels/cuda/library_linear.cu). */
static uint32_t library_bytes(const struct model *model) {
    const enum dtype product = or_compute(model, model->config->numerics.product);
    if (model->accumulate == DTYPE_F64) return sizeof(double);
    return product == DTYPE_BF16 || product == DTYPE_F16 ? sizeof(uint16_t) : sizeof(float);
}

/* The bounds of a model's ops. With `library`, linear layers may go through one; each of their
 * weights has C rows or C columns, so that the largest has the widest other side times C
 * elements. */
static struct op_limits bounds_of(const struct model *model, const struct batch_limits *limits,
                                  int library) {
    const struct config *config = model->config;
    uint32_t widest = model->V;
    uint32_t others[] = {model->C, model->Q, model->M};
    for (size_t i = 0; i < COUNT_OF(others); i++)
        if (others[i] > widest) widest = others[i];
    return (struct op_limits){.rows = limits->rows,
                              .norms = model->head_norm ? limits->rows * model->H : 0,
                              .width = widest,
                              .length = limits->length,
                              .H = model->H,
                              .G = model->G,
                              .D = model->D,
                              .threads = (int)config->numerics.threads,
                              .library = library ? (size_t)widest * model->C : 0,
                              .order_free = config->numerics.mode == MODE_ORDER_FREE,
                              .cuts = (uint32_t)config->numerics.cuts,
                              .library_bytes = library ? library_bytes(model) : 0};
}

/* Sets the template of every call, but for its ops and their scratch. */
static enum status open_call(struct model *model) {
    const struct config *config = model->config;
    model->call.compute = model->compute;
    model->call.threads = (int)config->numerics.threads;
    model->rounding.product = or_compute(model, config->numerics.product);
    model->rounding.score = or_compute(model, config->numerics.softmax);
    model->call.rounding = &model->rounding;
    model->call.order_free = config->numerics.mode == MODE_ORDER_FREE;
    model->order.kinds = kind_bits(&config->shuffle.kinds);
    model->order.chunk = (uint32_t)config->shuffle.chunk;
    model->call.order = model->shuffled ? &model->order : NULL;
    return open_mode(model);
}

/* Numbers lie in two bytes where the backend has ops for them; but not where sums are cut (law 23),
 * which a call says that is not known yet. Rows of an odd hidden width would begin between the
 * words by which rows are cleared (clear_rows). */
static void take_narrow(struct model *model) {
    const struct backend *const backend = model->backend;
    if (model->C % 2 != 0 || model->config->numerics.cuts > 1) return;
    const struct op_table *const narrow =
        backend->narrow_ops == NULL ? NULL : backend->narrow_ops(&model->call, model->accumulate);
    if (narrow == NULL) return;
    model->ops = narrow;
    model->form = form_own(model->compute);
    model->call.narrow = 1;
}

/* Finds the ops and asks how much scratch they need. What a device's library takes of it the device
 * fills itself. */
static enum status open_ops(struct model *model, const struct batch_limits *limits) {
    const struct config *config = model->config;
    const struct backend *const backend = model->backend;
    const int library = backend == NULL ? config_uses_openblas(config) : config_uses_cublas(config);
    struct op_limits bounds = bounds_of(model, limits, library);
    if (backend == NULL) {
        TRY(backend_ops((enum isa)config->numerics.isa, model->compute, model->accumulate,
                        &model->ops));
        model->carried = model->ops;
        if (backend_bf16((enum isa)config->numerics.isa)) model->call.bf16 = &model->bf16;
    } else {
        const char *const lacks = backend->refuses(&model->call);
        if (lacks != NULL)
            FAIL(STATUS_UNSUPPORTED, "numerics.backend: %s does not have %s yet", backend->name,
                 lacks);
        TRY(backend->ops(model->compute, model->accumulate, &model->ops));
        model->carried = model->ops;
        take_narrow(model);
        bounds.dq_stays = model->call.racing == NULL;
    }
    TRY(backends_scratch(backend, &bounds, &model->scratch_bytes));
    if (backend != NULL) bounds.library = 0;
    return backends_scratch(backend, &bounds, &model->fill_bytes);
}

/* Takes `count` elements for ops alone, which the host writes once: through `window` and then
 * host_window_store. */
static enum status take_constant(const struct model *model, size_t count, size_t element,
                                 const char *what, struct arena *arena, struct host_window *window,
                                 void *out_tensor, void *out_room) {
    void *tensor;
    TRY(arena_take(arena_hidden(arena), count, element, what, &tensor));
    memcpy(out_tensor, &tensor, sizeof tensor);
    return host_window_room(window, model->backend, tensor, count * element, out_room);
}

static enum status open_head_rows(struct model *model, size_t tokens, struct arena *arena,
                                  size_t which) {
    struct head_rows *const rows = &model->head_rows[which];
    struct head_rows *const seen = &model->seen_head_rows[which];
    TRY(arena_take(arena, tokens * model->H, sizeof *rows->q, "head rows", &rows->q));
    TRY(arena_take(arena, tokens * model->G, sizeof *rows->k, "head rows", &rows->k));
    *seen = *rows;
    struct arena *const hidden = arena_hidden(arena);
    if (hidden == arena) return STATUS_OK;
    TRY(arena_take(hidden, tokens * model->H, sizeof *seen->q, "head rows", &seen->q));
    return arena_take(hidden, tokens * model->G, sizeof *seen->k, "head rows", &seen->k);
}

static enum status open_ones(struct model *model, size_t rows, struct arena *arena,
                             struct host_window *window) {
    void *ones;
    const size_t element = model->form.width;
    TRY(take_constant(model, rows, element, "ones", arena, window, &model->ones, &ones));
    for (size_t i = 0; i < rows; i++)
        form_set(ones, model->form, i, 1.0);
    return host_window_store(window, model->backend, model->ones, rows * element);
}

/* Both tables are made at a time and lie one behind the other. */
static enum status open_rope(struct model *model, uint32_t length, struct arena *arena,
                             struct host_window *window) {
    const size_t bytes = ((size_t)length * (model->D / 2) * model->form.width + 63) & ~(size_t)63;
    unsigned char *both;
    TRY(take_constant(model, 2 * bytes, 1, "rotary table", arena, window, &model->cosine, &both));
    model->sine = (unsigned char *)model->cosine + bytes;
    rope_table_fill(model->config, length, model->form, both, both + bytes);
    return host_window_store(window, model->backend, model->cosine, 2 * bytes);
}

/* Takes the rows that ops are given besides the batch's. Rows of heads are numbered with 32
 * bits. */
static enum status open_rows(struct model *model, const struct batch_limits *limits,
                             struct arena *arena, struct host_window *window) {
    const struct config *config = model->config;
    uint32_t *numbers;
    TRY(take_constant(model, limits->tokens, sizeof *numbers, "label rows", arena, window,
                      &model->numbers, &numbers));
    for (uint32_t i = 0; i < limits->tokens; i++)
        numbers[i] = i;
    TRY(host_window_store(window, model->backend, model->numbers,
                          limits->tokens * sizeof *numbers));
    if (config->model.qkv_bias || config->model.output_bias || config->model.mlp_bias)
        TRY(open_ones(model, limits->rows, arena, window));
    if (!model->head_norm) return STATUS_OK;
    if (limits->rows > UINT32_MAX / model->H)
        FAIL(STATUS_INPUT,
             "model.heads: expected fewer than 2^32 heads in a micro-batch, got %u positions of %u",
             limits->rows, model->H);
    for (size_t i = 0; i < COUNT_OF(model->head_rows); i++)
        TRY(open_head_rows(model, limits->tokens, arena, i));
    return STATUS_OK;
}

/* Takes the room for the loss's coefficients and for a batch's lists where ops are near it. In mode
 * shuffled the backend's own host side counts ids, so there ops see the lists that the host wrote.
 */
static enum status open_lists(struct model *model, const struct batch_limits *limits,
                              struct arena *arena) {
    struct arena *const hidden = arena_hidden(arena);
    if (hidden == arena) return STATUS_OK;
    TRY(arena_take(hidden, limits->tokens, sizeof *model->seen_coefficients, "loss",
                   &model->seen_coefficients));
    if (model->shuffled) return STATUS_OK;
    model->seen_bytes = batch_list_bytes(limits);
    return arena_take(hidden, model->seen_bytes, 1, "lists", &model->seen_lists);
}

enum status model_open(const struct config *config, const struct param_table *table,
                       const struct backend *backend, const struct batch_limits *limits,
                       struct arena *arena, struct model *out) {
    memset(out, 0, sizeof *out);
    out->config = config;
    out->table = table;
    out->backend = backend;
    take_sizes(out);
    TRY(open_call(out));
    out->form = form_carried(out->compute);
    TRY(open_ops(out, limits));
    struct arena *const hidden = arena_hidden(arena);
    TRY(arena_take(hidden, out->scratch_bytes, 1, "kernel scratch", &out->call.scratch));
    TRY(arena_take(arena, out->layers, sizeof *out->layer, "layer buffers", &out->layer));
    struct carver carver = {NULL, 0};
    carve_all(out, &carver, limits->rows, limits->tokens);
    out->buffer_bytes = carver.used;
    TRY(arena_take(hidden, carver.used, 1, "activations", &out->buffers));
    carver = (struct carver){out->buffers, 0};
    carve_all(out, &carver, limits->rows, limits->tokens);
    out->logp_bytes = limits->tokens * sizeof *out->logp;
    TRY(arena_take(arena, limits->tokens, sizeof *out->logp, "activations", &out->logp));
    struct host_window window = HOST_WINDOW_EMPTY;
    enum status status = open_rope(out, limits->length, arena, &window);
    if (status == STATUS_OK) status = open_rows(out, limits, arena, &window);
    if (status == STATUS_OK) status = open_lists(out, limits, arena);
    if (status == STATUS_OK) status = model_open_ranks(out, limits, arena);
    host_window_close(&window);
    return status == STATUS_OK ? model_dropout_open(out, limits, arena) : status;
}

void model_set_order(struct model *model, uint64_t seed, uint32_t update) {
    model->order.seed = seed;
    model->order.update = update;
}

enum status model_wait(const struct model *model) {
    TRY(backends_wait(model->backend));
    return model->lost;
}

/* Copies what the host wrote to where ops read it. */
static void bring(struct model *model, void *to, const void *from, size_t bytes) {
    if (to == from) return;
    const enum status status = backends_copy(model->backend, to, from, bytes);
    if (status != STATUS_OK) model->lost = status;
}

void model_see_batch(struct model *model, const struct batch *batch) {
    if (model->seen_lists != NULL) bring(model, model->seen_lists, batch->lists, model->seen_bytes);
}

void model_see_heads(struct model *model, size_t tokens, int canonical) {
    const struct head_rows *const from = &model->head_rows[canonical];
    const struct head_rows *const to = &model->seen_head_rows[canonical];
    bring(model, to->q, from->q, tokens * model->H * sizeof *to->q);
    bring(model, to->k, from->k, tokens * model->G * sizeof *to->k);
}

const double *model_see_coefficients(struct model *model, const double *coefficient, size_t count) {
    if (model->seen_coefficients == NULL) return coefficient;
    bring(model, model->seen_coefficients, coefficient, count * sizeof *coefficient);
    return model->seen_coefficients;
}

const uint32_t *model_seen(const struct model *model, const struct batch *batch,
                           const uint32_t *list) {
    return model->seen_lists == NULL ? list : model->seen_lists + (list - batch->lists);
}

void model_set(const struct model *model, void *memory, size_t bytes, uint32_t word) {
    model->ops->fill(&model->call, &(struct fill_args){bytes, word, memory});
}

#define WORD_OF_NAN 0xFFFFFFFFu /* a NaN as one f32, and as an f64 that is two of these words */

/* Before a forward, where a run's options ask for it: what then reads a number that nobody wrote
 * reads a NaN. */
void model_poison(struct model *model) {
    model_set(model, model->buffers, model->buffer_bytes, WORD_OF_NAN);
    model_set(model, model->logp, model->logp_bytes, WORD_OF_NAN);
}

/* Fills a piece of the activations, which ends where the next one begins. */
static void fill_piece(const struct model *model, void *piece, const void *next) {
    const size_t bytes = (size_t)((const unsigned char *)next - (unsigned char *)piece);
    model_set(model, piece, bytes, WORD_OF_NAN);
}

/* Fills what torch fills: what embedding and attention write. Outputs of its linear layers, norms
 * and elementwise ops are allocated past the fill (docs/decisions/cuda-library.md). */
static void fill_as_torch(const struct model *model) {
    const struct layer_gradients *const gradient = &model->gradient;
    fill_piece(model, model->layer[0].x, model->layer[0].q);
    for (uint32_t i = 0; i < model->layers; i++)
        fill_piece(model, model->layer[i].att, model->layer[i].o);
    fill_piece(model, gradient->q, gradient->q_line);
    fill_piece(model, gradient->k, gradient->k_line);
    fill_piece(model, gradient->v, gradient->a);
}

void model_fill(const struct model *model) {
    const int32_t fill = model->config->numerics.determinism.fill;
    if (fill == FILL_TORCH) fill_as_torch(model);
    if (fill != FILL_NAN) return;
    model_set(model, model->buffers, model->buffer_bytes, WORD_OF_NAN);
    model_set(model, model->logp, model->logp_bytes, WORD_OF_NAN);
    model_set(model, model->call.scratch, model->fill_bytes, WORD_OF_NAN);
}

uint32_t model_site_count(const struct config *config) {
    return (uint32_t)config->model.layers + 2;
}

enum status model_site_name(const struct config *config, uint32_t site, struct arena *arena,
                            char **out) {
    if (site == 0) return arena_format(arena, out, "model.embed_tokens");
    if (site <= config->model.layers) return arena_format(arena, out, "model.layers.%u", site - 1);
    return arena_format(arena, out, "logp");
}

struct digest_job model_site_job(const struct model *model, const struct batch *batch,
                                 uint32_t sequence, uint32_t site) {
    if (site > model->layers)
        return (struct digest_job){.name = "logp",
                                   .form = form_carried(DTYPE_F64),
                                   .rank = 1,
                                   .shape = {batch->label_length[sequence]},
                                   .data = model->logp + batch->label_first[sequence]};
    const struct sequence *tokens = &batch->sequences[sequence];
    const void *matrix = site < model->layers ? model->layer[site].x : model->last;
    const size_t first = (size_t)tokens->row * model->C;
    return (struct digest_job){.name = "stream",
                               .form = model->form,
                               .rank = 2,
                               .shape = {tokens->length, model->C},
                               .data = form_at(matrix, model->form, first)};
}
