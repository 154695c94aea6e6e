/* SPDX-License-Identifier: Apache-2.0
 * Gathers what two passes over both updates say about the signature: which tensors are equal, how
 * long the longest sum is, how coarse the dtypes are. signature.c decides; nothing is trained here.
 */
#include "experiment/locate/locate_private.h"

#include <string.h>

/* Whether a key is a result of the forward pass, or of what comes before it. */
static int is_forward(const struct locate_key *key) {
    const int stage = (int)key->stage - WATCH_PHASE;
    return key->stage == WATCH_START || key->stage == WATCH_REFERENCE || stage == PHASE_FETCH ||
           (stage == PHASE_FORWARD && key->op.label != LABEL_LOSS);
}

static int key_equal(const struct locate_key *a, const struct locate_key *b) {
    uint32_t level = 0;
    if (b == NULL) return 0;
    for (const struct locate_level *at = a->levels; at != NULL; at = at->next, level++)
        for (uint32_t i = 0; i < at->capacity; i++) {
            const struct locate_cell *other = locate_cells_at(b, level, i);
            if (at->cells[i].event != 0 && other != NULL &&
                memcmp(at->cells[i].digest, other->digest, sizeof other->digest) != 0)
                return 0;
        }
    return 1;
}

/* Notes which tensors' slots and weights optimize left different. */
static void note_optimized(struct locating *l, const struct locate_key *key, int equal) {
    if (key->parameter == WATCH_NO_PARAMETER || key->stage != WATCH_PHASE + (int)PHASE_OPTIMIZE ||
        equal)
        return;
    struct signature_tensor *tensor = &l->gather.tensors[key->parameter];
    if (key->tensor.label == LABEL_PARAMETER || key->tensor.label == LABEL_MASTER)
        tensor->weights_equal = 0;
    else
        tensor->slots_equal = 0;
}

static void read_cells(struct locating *l, struct signature_input *input) {
    const struct locate_cells *a = l->sides[0].cells[1], *b = l->sides[1].cells[1];
    for (uint32_t i = 0; i < l->gather.count; i++)
        l->gather.tensors[i].slots_equal = l->gather.tensors[i].weights_equal = 1;
    input->forward_equal = 1;
    for (uint32_t i = 0; i < a->count; i++) {
        const struct locate_key *key = &a->keys[i];
        const int equal = key_equal(key, locate_cells_key(b, key));
        if (is_forward(key) && !equal) input->forward_equal = 0;
        input->roundings += key->stage == WATCH_PHASE + (int)PHASE_BACKWARD;
        note_optimized(l, key, equal);
    }
}

static double half_ulp(enum dtype dtype) {
    return dtype_epsilon(dtype) / 2;
}

/* Half an ulp of 1 in the coarsest dtype that the backward writes in either run. */
static double coarsest(const struct locating *l) {
    double unit = 0.0;
    for (int s = 0; s < 2; s++) {
        const struct run *run = l->sides[s].run;
        const enum dtype dtypes[] = {run_model(run)->compute, run_model(run)->accumulate,
                                     run_model(run)->loss, run_layout(run)->gradient_dtype};
        for (size_t i = 0; i < COUNT_OF(dtypes); i++)
            if (half_ulp(dtypes[i]) > unit) unit = half_ulp(dtypes[i]);
    }
    return unit;
}

/* The longest sum of a backward: over the update's tokens, the vocabulary or the widest layer. */
static uint64_t longest_sum(const struct run *run) {
    const struct model *model = run_model(run);
    uint64_t terms = (uint64_t)run_limits(run)->tokens * run_sampler_plan(run)->micros;
    const uint64_t widths[] = {model->V, model->M, model->C, model->Q};
    for (size_t i = 0; i < COUNT_OF(widths); i++)
        if (widths[i] > terms) terms = widths[i];
    return terms;
}

static int is_rotary(const struct locate_key *key) {
    const int forward = key->stage == WATCH_PHASE + (int)PHASE_FORWARD;
    return key->op.label == LABEL_ROTARY_TABLE || (forward && key->op.label == LABEL_ROTARY);
}

static enum dtype working_dtype(const struct run *run) {
    return run_layout(run)->has_master ? run_layout(run)->master_dtype
                                       : (enum dtype)run_config(run)->numerics.param;
}

static struct signature_tensor group_of(struct signature_tensor tensor, const struct run *run,
                                        uint32_t row) {
    if (row < run_table(run)->count) tensor.group = run_table(run)->rows[row].group;
    return tensor;
}

enum status locate_recognise(struct locating *l) {
    const struct run *a = l->sides[0].run;
    const struct locate_key *key = l->out->first.key;
    struct signature_tensor *tensors;
    struct signature_input input = {.layers = run_model(a)->layers,
                                    .terms = longest_sum(a),
                                    .unit = coarsest(l),
                                    .gradient_unit = half_ulp(run_layout(a)->gradient_dtype),
                                    .weight_unit = half_ulp(working_dtype(a)),
                                    .lr = {l->out->lr[0], l->out->lr[1]}};
    if (key == NULL || locate_structure_first(&l->out->first)) return STATUS_OK;
    input.backward_first = key->stage == WATCH_PHASE + (int)PHASE_BACKWARD;
    input.rotary_first = is_rotary(key);
    read_cells(l, &input);
    input.positions = l->out->element.by_position;
    input.position_count = l->out->element.positions;
    const struct run *grouped = a; /* the side that tells two groups apart, if one does */
    if (run_table(l->sides[1].run)->groups > run_table(a)->groups) grouped = l->sides[1].run;
    input.groups = run_table(grouped)->groups;
    TRY(arena_take(l->arena, run_owner_count(a), sizeof *tensors, "signature", &tensors));
    for (uint32_t i = 0; i < run_owner_count(a); i++)
        tensors[i] = group_of(l->gather.tensors[run_owners(a)[i]], grouped, run_owners(a)[i]);
    input.tensors = tensors;
    input.count = run_owner_count(a);
    signature_recognise(&input, &l->out->signature);
    const char *where = l->out->signature.where;
    char *kept; /* copied, because names of parameters go with their run */
    if (where == NULL) return STATUS_OK;
    TRY(arena_text(l->arena, where, strlen(where), &kept));
    l->out->signature.where = kept;
    return STATUS_OK;
}
