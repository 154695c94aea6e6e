/* SPDX-License-Identifier: Apache-2.0
 * Names and lengths of a run's axes: groups, tensors, phases, activation sites, micro-batches,
 * consumers of random words. */
#include <string.h>

#include "data/batch.h"
#include "model/consumers.h"
#include "model/model.h"
#include "scenarios/scenario.h"
#include "trainer/run.h"

/* Names the phases that leave a digest, in the order in which they first stand in micro, update,
 * epoch and eval. Phases that change nothing in this configuration are left out. */
static void name_phases(const struct config *config, struct run_axes *out) {
    static const enum loop_list lists[] = {LOOP_MICRO, LOOP_UPDATE, LOOP_EPOCH, LOOP_EVAL};
    for (size_t l = 0; l < COUNT_OF(lists); l++) {
        const struct key_list *list = loop_list_of(config, lists[l]);
        for (uint8_t i = 0; i < list->count; i++) {
            enum phase phase = (enum phase)list->item[i];
            if (phase == PHASE_REDUCE && !config_ranks_close(config)) continue;
            if (phase == PHASE_UNSCALE && config->scaler.kind == SCALER_NONE) continue;
            if (out->phase_slot[phase] != RUN_NO_SLOT) continue;
            out->phases[out->shape.phases] = loop_phases()[phase].name;
            out->phase_slot[phase] = (uint8_t)out->shape.phases++;
        }
    }
}

static enum status name_tensors(const struct config *config, struct arena *arena,
                                struct run_axes *out) {
    struct param_table table;
    TRY(params_open(config, arena, &table));
    TRY(arena_take(arena, table.count, sizeof *out->tensors, "names", &out->tensors));
    TRY(arena_take(arena, table.count + 1, 1, "groups", &out->groups));
    for (uint32_t i = 0; i < table.count; i++) {
        if (table.rows[i].tied_to >= 0) continue;
        out->groups[out->shape.tensors] = (char)('0' + table.rows[i].group);
        out->tensors[out->shape.tensors++] = table.rows[i].name;
    }
    out->shape.groups = table.groups;
    TRY(arena_take(arena, STREAM_COUNT, sizeof *out->streams, "names", &out->streams));
    out->shape.streams = consumers_streams(config, out->streams, out->stream);
    return consumers_open(config, &table, arena, &out->consumers, &out->shape.consumers);
}

static enum status name_sites(const struct config *config, struct arena *arena,
                              struct run_axes *out) {
    out->shape.sites = model_site_count(config);
    TRY(arena_take(arena, out->shape.sites, sizeof *out->sites, "names", &out->sites));
    for (uint32_t site = 0; site < out->shape.sites; site++) {
        char *name;
        TRY(model_site_name(config, site, arena, &name));
        out->sites[site] = name;
    }
    return STATUS_OK;
}

enum status run_axes_open(const struct config *config, const struct run_options *options,
                          struct arena *arena, struct run_axes *out) {
    memset(out, 0, sizeof *out);
    memset(out->phase_slot, RUN_NO_SLOT, sizeof out->phase_slot);
    TRY(arena_take(arena, PHASE_TOTAL, sizeof *out->phases, "names", &out->phases));
    TRY(name_tensors(config, arena, out));
    if (!options->tensors) out->shape.tensors = 0;
    if (options->phases) {
        name_phases(config, out);
        TRY(name_sites(config, arena, out));
    }
    if (config->parallel.ranks > 1) out->shape.ranks = (uint32_t)config->parallel.ranks;
    if (config_parts_tensor_ranks(config)) out->shape.ranks = config_copies(config);
    out->shape.micros = (uint32_t)batch_micro_batches(config);
    /* A rest that leaks has at most one micro-batch less than an update. */
    if (config->batch.tail == TAIL_LEAK) out->shape.micros += out->shape.micros - 1;
    return STATUS_OK;
}
