/* SPDX-License-Identifier: Apache-2.0
 * A backward runs the ops of a forward from the last to the first, and of a linear layer it has the
 * gradient of the bias before that of the matrix. q, k and v are computed in this order, each norm
 * of q or k behind its projection. */
#include "model/module_order.h"

#include "base/macro.h"

static const enum param_role defined[] = {
    ROLE_Q,  ROLE_Q_BIAS,  ROLE_K,      ROLE_K_BIAS,    ROLE_V,      ROLE_V_BIAS,
    ROLE_O,  ROLE_O_BIAS,  ROLE_Q_NORM, ROLE_K_NORM,    ROLE_GATE,   ROLE_GATE_BIAS,
    ROLE_UP, ROLE_UP_BIAS, ROLE_DOWN,   ROLE_DOWN_BIAS, ROLE_NORM_A, ROLE_NORM_B};

/* Of layers whose norms stand before attention and MLP. */
static const enum param_role before[] = {
    ROLE_DOWN_BIAS, ROLE_DOWN,   ROLE_UP_BIAS, ROLE_UP,     ROLE_GATE_BIAS, ROLE_GATE,
    ROLE_NORM_B,    ROLE_O_BIAS, ROLE_O,       ROLE_V_BIAS, ROLE_V,         ROLE_K_NORM,
    ROLE_K_BIAS,    ROLE_K,      ROLE_Q_NORM,  ROLE_Q_BIAS, ROLE_Q,         ROLE_NORM_A};

/* Of layers whose norms stand behind them. */
static const enum param_role behind[] = {
    ROLE_NORM_B, ROLE_DOWN_BIAS, ROLE_DOWN,   ROLE_UP_BIAS, ROLE_UP,     ROLE_GATE_BIAS,
    ROLE_GATE,   ROLE_NORM_A,    ROLE_O_BIAS, ROLE_O,       ROLE_V_BIAS, ROLE_V,
    ROLE_K_NORM, ROLE_K_BIAS,    ROLE_K,      ROLE_Q_NORM,  ROLE_Q_BIAS, ROLE_Q};

struct listing {
    const struct param_table *table;
    uint32_t *rows;
    uint32_t count;
};

static void add(struct listing *listing, uint32_t layer, enum param_role role) {
    const uint32_t row = listing->table->index[(size_t)layer * ROLE_COUNT + role];
    if (row != PARAM_ABSENT && listing->table->rows[row].tied_to < 0)
        listing->rows[listing->count++] = row;
}

static void add_layer(struct listing *listing, uint32_t layer, const enum param_role *roles) {
    for (size_t i = 0; i < COUNT_OF(defined); i++)
        add(listing, layer, roles[i]);
}

void module_order(const struct param_table *table, const struct config *config, uint32_t *rows,
                  uint32_t *arrival) {
    const uint32_t layers = (uint32_t)config->model.layers;
    struct listing listing = {table, rows, 0};
    add(&listing, 0, ROLE_EMBEDDING);
    for (uint32_t layer = 0; layer < layers; layer++)
        add_layer(&listing, layer, defined);
    add(&listing, 0, ROLE_NORM_FINAL);
    add(&listing, 0, ROLE_HEAD);

    struct listing ready = {table, arrival, 0};
    add(&ready, 0, ROLE_HEAD);
    add(&ready, 0, ROLE_NORM_FINAL);
    for (uint32_t layer = layers; layer-- > 0;)
        add_layer(&ready, layer, config->model.family == FAMILY_OLMO2 ? behind : before);
    add(&ready, 0, ROLE_EMBEDDING);
    for (uint32_t i = 0; i < ready.count; i++) {
        uint32_t place = 0;
        while (rows[place] != arrival[i])
            place++;
        arrival[i] = place;
    }
}
