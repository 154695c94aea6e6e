/* SPDX-License-Identifier: Apache-2.0
 * Tells which rows of a norm are those of a rank that holds the norm's weight apart, and joins what
 * ranks have of matrices where each has samples of its own.
 *
 * Of a sequence of L tokens rank r of T has those from floor(r L / T) on, as sequence regions of
 * tensor parallelism deal them; of H heads those from r H / T on, and T divides H. With samples of
 * their own, ranks have a residual stream each: whole sequences, rank by rank. */
#include "model/model_ops.h"

#include <string.h>

#include "scenarios/scenario.h"

enum status model_open_ranks(struct model *model, const struct batch_limits *limits,
                             struct arena *arena) {
    const size_t heads = model->head_norm ? model->H : 1;
    if (!config_parts_tensor_ranks(model->config)) return STATUS_OK;
    TRY(arena_take(arena, limits->rows, sizeof *model->rank_of_row, "rows of ranks",
                   &model->rank_of_row));
    return arena_take(arena, limits->tokens * heads, sizeof *model->rows_of_rank, "rows of ranks",
                      &model->rows_of_rank);
}

/* With samples of their own, ranks have whole sequences. A batch that is not dealt to them is rank
 * 0's. */
static void deal_sequences(struct model *model, const struct batch *batch) {
    const uint32_t each = batch->sequence_count / batch->fed_ranks;
    for (uint32_t i = 0; i < batch->sequence_count; i++)
        for (uint32_t at = 0; at < batch->sequences[i].length; at++)
            model->rank_of_row[batch->sequences[i].row + at] = i / each;
}

void model_deal_rows(struct model *model, const struct batch *batch) {
    if (model->ranks == NULL) return;
    const uint64_t ranks = model->ranks->count;
    if (config_fed_ranks(model->config) > 1) {
        deal_sequences(model, batch);
        return;
    }
    for (uint32_t i = 0; i < batch->sequence_count; i++) {
        const struct sequence *const sequence = &batch->sequences[i];
        uint32_t at = 0;
        for (uint32_t rank = 0; rank < ranks; rank++)
            while (at < (rank + 1) * (uint64_t)sequence->length / ranks)
                model->rank_of_row[sequence->row + at++] = rank;
    }
}

int model_holds_apart(const struct config *config, enum param_role role) {
    const int32_t forgets = config->parallel.forgets;
    const int of_heads = role == ROLE_Q_NORM || role == ROLE_K_NORM;
    if (!config_parts_tensor_ranks(config)) return 0;
    if (config_fed_ranks(config) > 1)
        return role == ROLE_EMBEDDING || model_holds_whole(config, role);
    if (forgets == FORGETS_QK_NORMS) return of_heads;
    if (role == ROLE_NORM_FINAL) return 1;
    return forgets == FORGETS_NORMS && (role == ROLE_NORM_A || role == ROLE_NORM_B);
}

int model_holds_whole(const struct config *config, enum param_role role) {
    switch (role) {
    case ROLE_NORM_A:
    case ROLE_NORM_B:
    case ROLE_NORM_FINAL:
    case ROLE_O_BIAS:
    case ROLE_DOWN_BIAS:
        return 1;
    case ROLE_Q_NORM:
    case ROLE_K_NORM:
        return config->model.family == FAMILY_QWEN3;
    default:
        return 0;
    }
}

uint32_t pass_ranks(const struct model *model, enum param_role role) {
    const int apart = model->ranks != NULL && model_holds_apart(model->config, role);
    return apart ? model->ranks->count : 1;
}

static uint32_t rank_of(const struct pass *pass, enum param_role role, uint32_t row) {
    const struct model *const model = pass->model;
    if (role == ROLE_Q_NORM) return row % model->H * model->ranks->count / model->H;
    if (role == ROLE_K_NORM) return row % model->G * model->ranks->count / model->G;
    return model->rank_of_row[role == ROLE_NORM_FINAL ? pass->batch->label_row[row] : row];
}

struct row_list pass_rows_of_rank(const struct pass *pass, enum param_role role, uint32_t rank,
                                  struct row_list all) {
    uint32_t *const own = pass->model->rows_of_rank;
    struct row_list list = {own, 0};
    if (pass_ranks(pass->model, role) == 1) return all;
    for (uint32_t i = 0; i < all.count; i++) {
        /* rows of labels are numbered from the first label of the call on, or they are listed */
        const uint32_t row = all.index == NULL ? i : all.index[i];
        const uint32_t first = all.index == NULL ? pass->part->first_label : 0;
        if (rank_of(pass, role, first + row) == rank) own[list.count++] = row;
    }
    return list;
}

const void *pass_weight_of_rank(const struct pass *pass, enum param_role role, uint32_t layer,
                                uint32_t rank) {
    const struct param_table *const table = pass->model->table;
    const uint32_t row = table->index[layer_index(layer) * ROLE_COUNT + role];
    if (rank == 0) return pass_weight(pass, role, layer);
    return pass->model->ranks->weight[rank * table->count + row];
}

void *pass_sums_of_rank(const struct pass *pass, enum param_role role, uint32_t layer,
                        uint32_t rank) {
    const struct param_table *const table = pass->model->table;
    return pass->model->ranks
        ->sums[rank * table->count + table->index[layer_index(layer) * ROLE_COUNT + role]];
}

/* The rows of a matrix that tensor-parallel ranks have at the same place of their batches. */
struct places {
    const uint32_t *row; /* NULL: rows are numbered as they are listed */
    uint32_t ranks, count;
};

static struct places places_of(const struct pass *pass, enum fed_rows rows) {
    const struct batch *const batch = pass->batch;
    if (rows == FED_LABELS)
        return (struct places){NULL, batch->fed_ranks, batch->label_count / batch->fed_ranks};
    return (struct places){batch->token_row, batch->fed_ranks,
                           batch->token_count / batch->fed_ranks};
}

/* The row of a rank at a place, of `bytes` bytes. */
static unsigned char *row_at(const struct places *places, void *matrix, size_t bytes, uint32_t rank,
                             uint32_t place) {
    const size_t listed = (size_t)rank * places->count + place;
    return (unsigned char *)matrix + (places->row == NULL ? listed : places->row[listed]) * bytes;
}

size_t model_slice_at(uint64_t width, uint64_t ranks, uint64_t rank) {
    const uint64_t first = rank * ((width + ranks - 1) / ranks);
    return (size_t)(first < width ? first : width);
}

/* Where a rank's slice of a row begins, in bytes. */
static size_t slice_at(const struct pass *pass, uint32_t rank, uint32_t width) {
    return model_slice_at(width, pass->batch->fed_ranks, rank) * pass->model->form.width;
}

void pass_join_slices(const struct pass *pass, enum fed_rows rows, void *matrix, uint32_t width) {
    const struct places places = places_of(pass, rows);
    const size_t bytes = width * pass->model->form.width;
    if (places.ranks == 1) return;
    for (uint32_t place = 0; place < places.count; place++)
        for (uint32_t owner = 0; owner < places.ranks; owner++) {
            const size_t from = slice_at(pass, owner, width),
                         end = slice_at(pass, owner + 1, width);
            const unsigned char *const slice = row_at(&places, matrix, bytes, owner, place) + from;
            for (uint32_t rank = 0; rank < places.ranks; rank++)
                if (rank != owner)
                    memcpy(row_at(&places, matrix, bytes, rank, place) + from, slice, end - from);
        }
}

void pass_keep_slices(const struct pass *pass, enum fed_rows rows, void *matrix, uint32_t width) {
    const struct places places = places_of(pass, rows);
    const size_t bytes = width * pass->model->form.width;
    if (places.ranks == 1) return;
    for (uint32_t place = 0; place < places.count; place++)
        for (uint32_t rank = 0; rank < places.ranks; rank++) {
            const size_t from = slice_at(pass, rank, width), end = slice_at(pass, rank + 1, width);
            unsigned char *const row = row_at(&places, matrix, bytes, rank, place);
            memset(row, 0, from);
            memset(row + end, 0, bytes - end);
        }
}
