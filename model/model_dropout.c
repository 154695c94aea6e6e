/* SPDX-License-Identifier: Apache-2.0
 * Fills struct dropout for each place. It makes no draw itself: kernels/dropout.c says which random
 * word an element gets. Invariant: a backward sees the masks of its forward. */
#include "model/model_dropout.h"

#include "determinism/stream.h"
#include "determinism/torch_rng.h"
#include "kernels/op.h"
#include "model/watch.h"
#include "scenarios/scenario.h"

static double rate_of(const struct config *config, enum dropout_place place) {
    if (place == DROP_EMBEDDING) return config->dropout.embedding;
    return place == DROP_ATTENTION ? config->dropout.attention : config->dropout.residual;
}

static enum op_site site_of(enum dropout_place place) {
    static const enum op_site sites[DROP_PLACES] = {SITE_EMBEDDING, SITE_ATTENTION, SITE_O_PROJ,
                                                    SITE_DOWN_PROJ};
    return sites[place];
}

enum status model_dropout_open(struct model *model, const struct batch_limits *limits,
                               struct arena *arena) {
    const struct config *config = model->config;
    if (!config_has_dropout(config)) return STATUS_OK;
    const struct dropout_extent extent = {.layers = model->layers,
                                          .samples = config->batch.size,
                                          .ranks = config->dropout.ranks,
                                          .positions = limits->length,
                                          .channels = model->C,
                                          .heads = model->H};
    TRY(dropout_check(&extent));
    return arena_take(arena, (size_t)(model->layers + 1) * DROP_PLACES * BATCH_CALLS_MAX,
                      sizeof *model->drop_offset, "dropout", &model->drop_offset);
}

static uint64_t *offset_of(const struct pass *pass, enum dropout_place place, uint32_t layer) {
    const size_t call = (size_t)(pass->part - pass->batch->calls);
    const size_t row = layer == PASS_NO_LAYER ? 0 : (size_t)layer + 1;
    return &pass->model->drop_offset[(row * DROP_PLACES + (size_t)place) * BATCH_CALLS_MAX + call];
}

static const struct sequence *sequences_of(const struct pass *pass) {
    return pass->batch->sequences + pass->part->first_sequence;
}

/* Counts the elements of the tensor as it lies in memory, padding included: PyTorch draws for
 * these. */
static uint64_t elements_of(const struct pass *pass, enum dropout_place place) {
    const struct model *model = pass->model;
    const uint64_t rows = pass->part->row_count;
    if (place != DROP_ATTENTION) return rows * model->C;
    return rows * pass->part->row_length * model->H;
}

/* The vector size that PyTorch's Dropout.cu (get_vector_size) takes: the
 * largest that divides the tensor, at most four elements. */
static uint32_t vector_of(const struct config *config, uint64_t elements) {
    if (config->rng.vector != KEY_WORD_UINT) return (uint32_t)config->rng.vector;
    return elements % 4 == 0 ? 4 : elements % 2 == 0 ? 2 : 1;
}

static void place_torch(const struct pass *pass, enum dropout_place place, uint32_t layer, int anew,
                        struct dropout *out) {
    struct model *model = pass->model;
    const struct config *config = model->config;
    const struct torch_device device = {config->rng.sms, config->rng.threads_per_sm};
    const uint64_t elements = elements_of(pass, place);
    uint64_t *const offset = offset_of(pass, place, layer);
    out->map = DROPOUT_TORCH;
    out->threads = torch_threads(&device, elements);
    out->vector = vector_of(config, elements);
    out->first_row = sequences_of(pass)->row;
    out->length = pass->part->row_length;
    if (anew) {
        *offset = model->rng_offset;
        model->rng_offset += torch_advance(elements, out->threads);
    }
    out->offset = *offset;
}

static uint64_t drawn_words(const struct pass *pass, enum dropout_place place) {
    const struct sequence *const sequences = sequences_of(pass);
    uint64_t words = 0;
    for (uint32_t i = 0; i < pass->part->sequence_count; i++) {
        const uint64_t length = sequences[i].length;
        words += place == DROP_ATTENTION ? length * (length + 1) / 2 * pass->model->H
                                         : length * pass->model->C;
    }
    return words;
}

const struct dropout *pass_dropout(const struct pass *pass, enum dropout_place place,
                                   uint32_t layer, int anew, struct dropout *out) {
    const struct model *model = pass->model;
    const struct config *config = model->config;
    const double rate = rate_of(config, place);
    if (!model->dropping || !(rate > 0.0)) return NULL;
    const enum op_pass redrawn = model->redrawn ? PASS_INPUT : PASS_FORWARD;
    const uint64_t ranks = config->dropout.ranks;
    *out = (struct dropout){.map = DROPOUT_ADDRESSED,
                            .keep = 1.0 - rate,
                            .seed = model->drop_seed,
                            .op = (uint32_t)site_of(place) * 4 + (uint32_t)redrawn,
                            .layer = layer == PASS_NO_LAYER ? 0 : layer + 1,
                            .update = model->drop_update,
                            .rank_samples = ranks > 1 ? (uint32_t)(config->batch.size / ranks) : 0,
                            .same_masks = config->dropout.masks == MASKS_SAME};
    if (config->rng.kind == RNG_TORCH) place_torch(pass, place, layer, anew, out);
    if (anew && model->ledger != NULL)
        stream_ledger_add(model->ledger, STREAM_DROPOUT, out->op, drawn_words(pass, place));
    if (anew) watch_mask(pass, place, layer, out);
    return out;
}

void pass_drop(const struct pass *pass, enum dropout_place place, uint32_t layer, int anew,
               void *x) {
    struct dropout dropout;
    const struct model *model = pass->model;
    const struct dropout *drawn = pass_dropout(pass, place, layer, anew, &dropout);
    if (drawn == NULL) return;
    struct op_call call = pass_call(pass, site_of(place), layer);
    model->ops->dropout(&call,
                        &(struct dropout_args){sequences_of(pass), pass->part->sequence_count,
                                               model->C, drawn, x, x});
    watch_tokens(pass, layer, watch_places[place], anew ? LABEL_OUTPUT : LABEL_INPUT_GRADIENT, x,
                 model->C);
}
