/* SPDX-License-Identifier: Apache-2.0
 * Lists the consumers one row each, in the order of the ledger's numbers. */
#include "model/consumers.h"

#include "data/datarow.h"
#include "data/dataset.h"
#include "kernels/op_call.h"
#include "model/pretrained.h"

/* The roles of init and of rounding, the two consumers of stream data, and the places of dropout,
 * each with its recomputation. */
#define CONSUMERS_MAX (2 * ROLE_COUNT + 2 + 2 * 4)

static const char *const role_names[ROLE_COUNT] = {
#define ROLE_NAME(role, name, tensor, site, out, in, label) [ROLE_##role] = name,
    PARAM_ROLES(ROLE_NAME)};

static const char *const stream_names[STREAM_COUNT] = {"init", "data", "dropout", "order",
                                                       "rounding"};

static const struct {
    enum op_site site;
    const char *name;
} dropped[] = {{SITE_EMBEDDING, "embedding"},
               {SITE_O_PROJ, "branch-attention"},
               {SITE_DOWN_PROJ, "branch-mlp"},
               {SITE_ATTENTION, "attention"}};

struct list {
    struct arena *arena;
    struct record_consumer *rows;
    uint32_t count;
};

static enum status add(struct list *list, enum stream stream, uint32_t op, uint64_t seed,
                       const char *name, const char *suffix) {

    char *text;
    TRY(arena_format(list->arena, &text, "%s/%s%s", stream_names[stream], name, suffix));
    list->rows[list->count++] =
        (struct record_consumer){.name = text, .stream = stream, .op = op, .seed = seed};
    return STATUS_OK;
}

/* Counts the elements of all tensors of a role that own storage. With `drawn` those of rank 1 are
 * left out, because norms and biases start from constants. */
static uint64_t elements(const struct param_table *table, int role, int drawn) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < table->count; i++) {
        const struct param_row *row = &table->rows[i];
        if ((int)row->role == role && row->tied_to < 0 && (!drawn || row->rank != 1))
            count += row->count;
    }
    return count;
}

static enum status add_roles(struct list *list, const struct param_table *table, enum stream stream,
                             uint64_t seed) {
    const int init = stream == STREAM_INIT;
    for (int role = 0; role < ROLE_COUNT; role++) {
        const uint64_t count = elements(table, role, init);
        if (count == 0) continue;
        TRY(add(list, stream, (uint32_t)role, seed, role_names[role], ""));
        if (init) list->rows[list->count - 1].initial = count;
    }
    return STATUS_OK;
}

static double rate_of(const struct config *config, enum op_site site) {
    if (site == SITE_EMBEDDING) return config->dropout.embedding;
    return site == SITE_ATTENTION ? config->dropout.attention : config->dropout.residual;
}

static enum status add_dropout(struct list *list, const struct config *config) {
    const int redrawn = config->dropout.recompute == RECOMPUTE_REDRAW;
    const uint64_t seed = config->dropout.seed;
    for (size_t i = 0; i < COUNT_OF(dropped); i++) {
        const enum op_site site = dropped[i].site;
        const uint32_t op = (uint32_t)site * 4;
        if (!(rate_of(config, site) > 0.0)) continue;
        TRY(add(list, STREAM_DROPOUT, op + PASS_FORWARD, seed, dropped[i].name, ""));
        if (redrawn && site != SITE_EMBEDDING)
            TRY(add(list, STREAM_DROPOUT, op + PASS_INPUT, seed, dropped[i].name, "/recomputed"));
    }
    return STATUS_OK;
}

enum status consumers_open(const struct config *config, const struct param_table *table,
                           struct arena *arena, struct record_consumer **out, uint32_t *out_count) {
    struct list list = {arena, NULL, 0};
    TRY(arena_take(arena, CONSUMERS_MAX, sizeof *list.rows, "consumers", &list.rows));
    if (!pretrained_is_named(config)) TRY(add_roles(&list, table, STREAM_INIT, config->init.seed));
    if (config->data.shuffle)
        TRY(add(&list, STREAM_DATA, DATA_OP_PERMUTE, config->data.seed, "permute", ""));
    if (config->task == TASK_DPO && dataset_is_builtin(config->data.pairs))
        TRY(add(&list, STREAM_DATA, DATA_OP_REJECT, config->data.seed, "reject", ""));
    TRY(add_dropout(&list, config));
    if (config->numerics.rounding == ROUNDING_STOCHASTIC)
        TRY(add_roles(&list, table, STREAM_ROUNDING, config->seed));
    *out = list.rows;
    *out_count = list.count;
    return STATUS_OK;
}

uint32_t consumers_streams(const struct config *config, const char *out_names[STREAM_COUNT],
                           uint8_t out_streams[STREAM_COUNT]) {
    const int drawn[STREAM_COUNT] = {
        [STREAM_DATA] = config->data.shuffle != 0,
        [STREAM_DROPOUT] = config->dropout.embedding > 0.0 || config->dropout.attention > 0.0 ||
                           config->dropout.residual > 0.0,
        [STREAM_ORDER] = config->numerics.mode == MODE_SHUFFLED,
        [STREAM_ROUNDING] = config->numerics.rounding == ROUNDING_STOCHASTIC};
    uint32_t count = 0;
    for (uint8_t stream = 0; stream < STREAM_COUNT; stream++) {
        if (!drawn[stream]) continue;
        out_names[count] = stream_names[stream];
        out_streams[count++] = stream;
    }
    return count;
}

void consumers_count(const struct record_consumer *consumers, uint32_t count,
                     const struct stream_ledger *ledger, int64_t (*out_words)[RECORD_LEDGERS]) {
    for (uint32_t i = 0; i < count; i++)
        out_words[i][LEDGER_WORDS] =
            (int64_t)ledger->words[consumers[i].stream][consumers[i].op % STREAM_OPS];
}
