/* SPDX-License-Identifier: Apache-2.0
 * An optimizer's state dict: {'state': {i: {...}}, 'param_groups': [{..., 'params': [i, ...]}]},
 * where i counts through the groups or, in what torch.distributed.checkpoint writes, is a name.
 *
 * Which rule it is, is said by the keys of the state, since no class stands in the file; what has
 * the same keys is told apart by the keys of its group. */
#include "checkpoints/training_private.h"

#include <string.h>

enum state_key {
    KEY_STEP = TRAINING_MOMENTS,
    KEY_SCALAR, /* read by nobody: a number of one element, or None */
    KEY_QUANTISED,
    KEY_OTHER /* of an optimizer that is not read */
};

struct key_row {
    const char *key;
    int role; /* enum training_moment or enum state_key */
    const char *optimizer;
};

static const struct key_row keys[] = {
    {"exp_avg", TRAINING_EXP_AVG, NULL},
    {"exp_avg_sq", TRAINING_EXP_AVG_SQ, NULL},
    {"variance", TRAINING_EXP_AVG_SQ, NULL},
    {"max_exp_avg_sq", TRAINING_MAX_EXP_AVG_SQ, NULL},
    {"momentum_buffer", TRAINING_MOMENTUM, NULL},
    {"exp_avg_sq_row", TRAINING_SQ_ROW, NULL},
    {"row_var", TRAINING_SQ_ROW, NULL},
    {"exp_avg_sq_col", TRAINING_SQ_COLUMN, NULL},
    {"col_var", TRAINING_SQ_COLUMN, NULL},
    {"step", KEY_STEP, NULL},
    {"RMS", KEY_SCALAR, NULL},
    {"state1", KEY_QUANTISED, NULL},
    {"qmap1", KEY_QUANTISED, NULL},
    {"absmax1", KEY_QUANTISED, NULL},
    {"state2", KEY_QUANTISED, NULL},
    {"__bnb_optimizer_quant_state__", KEY_QUANTISED, NULL}, /* bitsandbytes 0.50 */
    {"square_avg", KEY_OTHER, "RMSprop or Adadelta"},
    {"grad_avg", KEY_OTHER, "RMSprop"},
    {"acc_delta", KEY_OTHER, "Adadelta"},
    {"sum", KEY_OTHER, "Adagrad"},
    {"mu_product", KEY_OTHER, "NAdam"},
    {"exp_inf", KEY_OTHER, "Adamax"},
    {"ax", KEY_OTHER, "ASGD"},
    {"prev", KEY_OTHER, "Rprop"},
    {"old_dirs", KEY_OTHER, "LBFGS"},
};

struct reading {
    struct training_opening *opening;
    struct torch_place state, groups;
    struct training_group *group;
    size_t parameter; /* the next one's number */
    int seen[TRAINING_MOMENTS];
    int has_state;
};

static enum status refuse_key(const struct torch_place *at, const struct key_row *row) {
    if (row == NULL)
        return torch_refuse(at, "expected the state of Adam, AdamW, SGD with momentum, Lion or "
                                "Adafactor, got a key of another optimizer, which is not read");
    if (row->role == KEY_QUANTISED)
        return torch_refuse(at, "got the state of an optimizer of bitsandbytes, whose moments "
                                "are quantised (8-bit) or stand under its own names: nothing is "
                                "read back from it; train with one of torch's optimizers");
    return torch_refuse(at,
                        "expected the state of Adam, AdamW, SGD with momentum, Lion or "
                        "Adafactor, got that of %s, which is not read",
                        row->optimizer);
}

static enum status read_moment(const struct reading *reading, const struct torch_place *at,
                               struct training_parameter *parameter, int role) {
    const struct torch_tensor *tensor;
    struct safetensors_tensor *rows;
    enum dtype dtype;
    char way[TORCH_SHOWN_SIZE], *name;
    if (at->value.kind == TORCH_NONE) return STATUS_OK;
    TRY(torch_tensor_of(at, &tensor));
    if (!safetensors_dtype_number(tensor->dtype, &dtype))
        return torch_unexpected(at, "a tensor of real numbers");
    torch_way(at, way);
    TRY(arena_text(reading->opening->arena, way, strlen(way), &name));
    TRY(arena_take(reading->opening->arena, 1, sizeof *rows, "moments", &rows));
    TRY(torch_tensor_rows(at->file, tensor, name, reading->opening->arena, rows));
    parameter->moments[role] = rows;
    return STATUS_OK;
}

static enum status read_entry(struct reading *reading, const struct torch_place *at,
                              struct training_parameter *parameter) {
    const struct key_row *row = NULL;
    for (size_t i = 0; at->key != NULL && i < COUNT_OF(keys); i++)
        if (strcmp(keys[i].key, at->key) == 0) row = &keys[i];
    if (row == NULL || row->role == KEY_QUANTISED || row->role == KEY_OTHER)
        return refuse_key(at, row);
    if (row->role == KEY_SCALAR) return STATUS_OK;
    if (row->role != KEY_STEP) {
        TRY(read_moment(reading, at, parameter, row->role));
        if (parameter->moments[row->role] == NULL) return STATUS_OK;
        reading->seen[row->role] = 1;
        parameter->has_state = reading->has_state = 1;
        return STATUS_OK;
    }
    parameter->has_step = 1;
    return torch_number(at, &parameter->step);
}

/* The shape of the weight, as its moments have it: Adafactor's row and column give both. */
static enum status find_shape(const struct reading *reading, struct training_parameter *parameter) {
    const struct safetensors_tensor *row = parameter->moments[TRAINING_SQ_ROW];
    const struct safetensors_tensor *column = parameter->moments[TRAINING_SQ_COLUMN];
    for (int i = 0; i <= TRAINING_MOMENTUM; i++)
        if (parameter->moments[i] != NULL) {
            parameter->shape = parameter->moments[i]->shape;
            parameter->rank = parameter->moments[i]->rank;
            return STATUS_OK;
        }
    if (row == NULL || column == NULL || row->rank != column->rank || row->rank == 0 ||
        row->rank > 2)
        return STATUS_OK;
    uint64_t *shape;
    TRY(arena_take(reading->opening->arena, 2, sizeof *shape, "shape", &shape));
    shape[0] = row->shape[0];
    shape[1] = column->shape[column->rank - 1];
    parameter->shape = shape;
    parameter->rank = 2;
    return STATUS_OK;
}

static enum status read_state(struct reading *reading, const struct torch_place *at,
                              struct training_parameter *parameter) {
    size_t count;
    TRY(torch_count(at, "a dict of moments", &count));
    for (size_t i = 0; i < count; i++) {
        struct torch_place entry;
        TRY(torch_entry(at, i, &entry));
        TRY(read_entry(reading, &entry, parameter));
    }
    return find_shape(reading, parameter);
}

/* A member of `params`: a number, or a name. */
static enum status read_parameter(struct reading *reading, const struct torch_place *at,
                                  size_t group) {
    struct training_opening *opening = reading->opening;
    struct training_parameter *parameter = &opening->folder->parameters[reading->parameter];
    struct torch_place state;
    int is_there;
    parameter->group = group;
    if (at->value.kind == TORCH_TEXT) {
        TRY(torch_text_of(at, &opening->stored_names[reading->parameter]));
        parameter->index = (int64_t)reading->parameter;
        is_there = torch_find(&reading->state, opening->stored_names[reading->parameter], &state);
    } else {
        TRY(torch_integer(at, &parameter->index));
        is_there = torch_find_number(&reading->state, parameter->index, &state);
    }
    reading->parameter++;
    return is_there ? read_state(reading, &state, parameter) : STATUS_OK;
}

static enum status add_number(const struct reading *reading, struct training_group *group,
                              size_t *room, const char *key, double value) {
    struct training_number *numbers = (struct training_number *)(size_t)group->numbers;
    TRY(arena_grow(reading->opening->arena, group->number_count + 1, room, sizeof *numbers,
                   "numbers of a group", &numbers));
    numbers[group->number_count++] = (struct training_number){key, value};
    group->numbers = numbers;
    return STATUS_OK;
}

/* Numbers and flags stand by their key, those of a list by its key and their place. What is no
 * number (None, a text) is left out. */
static enum status read_value(const struct reading *reading, struct training_group *group,
                              size_t *room, const struct torch_place *at) {
    const enum torch_kind kind = at->value.kind;
    double number;
    if (at->key == NULL || strcmp(at->key, "params") == 0 || strcmp(at->key, "param_names") == 0)
        return STATUS_OK;
    if (strcmp(at->key, "decoupled_weight_decay") == 0) {
        TRY(torch_flag(at, &group->decoupled));
        return STATUS_OK;
    }
    if (kind == TORCH_BOOL)
        return add_number(reading, group, room, at->key, (double)at->value.as.integer);
    if (torch_is_number(&at->value)) {
        TRY(torch_number(at, &number));
        return add_number(reading, group, room, at->key, number);
    }
    if (kind != TORCH_LIST && kind != TORCH_TUPLE) return STATUS_OK;
    for (size_t i = 0; i < at->value.as.members->count && i < 16; i++) {
        struct torch_place item;
        char *key;
        TRY(torch_item(at, i, &item));
        if (!torch_is_number(&item.value)) continue;
        TRY(torch_number(&item, &number));
        TRY(arena_format(reading->opening->arena, &key, "%s[%zu]", at->key, i));
        TRY(add_number(reading, group, room, key, number));
    }
    return STATUS_OK;
}

static enum status read_names(struct reading *reading, const struct torch_place *at,
                              const struct training_group *group) {
    struct torch_place names, name;
    size_t count;
    if (!torch_find(at, "param_names", &names)) return STATUS_OK;
    TRY(torch_count(&names, "a list of names", &count));
    if (count != group->count)
        return torch_refuse(&names,
                            "expected a name for each of the group's %zu parameters, got "
                            "%zu",
                            group->count, count);
    for (size_t i = 0; i < count; i++) {
        TRY(torch_item(&names, i, &name));
        TRY(torch_text_of(&name, &reading->opening->stored_names[group->first + i]));
    }
    return STATUS_OK;
}

static enum status read_group(struct reading *reading, size_t number) {
    struct training_group *group = &reading->group[number];
    struct torch_place at, params, entry;
    size_t count, room = 0;
    TRY(torch_item(&reading->groups, number, &at));
    TRY(torch_count(&at, "a dict", &count));
    TRY(torch_key(&at, "params", &params));
    group->decoupled = -1;
    group->first = reading->parameter;
    for (size_t i = 0; i < count; i++) {
        TRY(torch_entry(&at, i, &entry));
        TRY(read_value(reading, group, &room, &entry));
    }
    TRY(torch_count(&params, "a list of parameters", &group->count));
    for (size_t i = 0; i < group->count; i++) {
        TRY(torch_item(&params, i, &entry));
        TRY(read_parameter(reading, &entry, number));
    }
    return read_names(reading, &at, group);
}

/* Counts the parameters of all groups. */
static enum status count_parameters(const struct reading *reading, size_t *out) {
    *out = 0;
    for (size_t i = 0; i < reading->opening->folder->group_count; i++) {
        struct torch_place group, params;
        size_t count;
        TRY(torch_item(&reading->groups, i, &group));
        TRY(torch_key(&group, "params", &params));
        TRY(torch_count(&params, "a list of parameters", &count));
        *out += count;
    }
    return STATUS_OK;
}

static int group_has(const struct reading *reading, const char *key) {
    double value;
    return reading->opening->folder->group_count > 0 &&
           training_group_number(&reading->group[0], key, &value);
}

static enum status conclude(struct reading *reading, enum training_rule rule, const char *reason) {
    reading->opening->folder->rule = rule;
    reading->opening->folder->rule_reason = reason;
    return STATUS_OK;
}

/* What an optimizer without any state is: one before its first update, or plain SGD. */
static enum status judge_groups(struct reading *reading) {
    double momentum = 0.0;
    int has_momentum = 0;
    for (size_t i = 0; i < reading->opening->folder->group_count; i++) {
        double value;
        if (!training_group_number(&reading->group[i], "momentum", &value)) continue;
        has_momentum = 1;
        if (value != 0.0) momentum = value;
    }
    if (has_momentum && momentum == 0.0)
        return torch_refuse(&reading->groups,
                            "got plain SGD (no momentum), which stores no state: the gradient that "
                            "an update used is in no checkpoint, so nothing can be read back; "
                            "record the training instead");
    if (has_momentum) return conclude(reading, TRAINING_SGD, "no state yet; momentum in the group");
    if (group_has(reading, "beta2_decay") || group_has(reading, "decay_rate"))
        return conclude(reading, TRAINING_ADAFACTOR, "no state yet; Adafactor's keys in the group");
    if (group_has(reading, "betas[0]") && group_has(reading, "eps"))
        return conclude(reading, TRAINING_ADAM, "no state yet; betas and eps in the group");
    if (group_has(reading, "betas[0]"))
        return conclude(reading, TRAINING_LION, "no state yet; betas without eps in the group");
    return torch_refuse(&reading->state, "expected the state of an optimizer, got none, and no "
                                         "group that says which it is");
}

static enum status judge(struct reading *reading) {
    const int *seen = reading->seen;
    if (!reading->has_state) return judge_groups(reading);
    if (group_has(reading, "ns_steps"))
        return torch_refuse(&reading->groups, "expected Adam, AdamW, SGD with momentum, Lion or "
                                              "Adafactor, got Muon (ns_steps), which is not read");
    if (seen[TRAINING_SQ_ROW] || seen[TRAINING_SQ_COLUMN] || group_has(reading, "beta2_decay") ||
        group_has(reading, "decay_rate"))
        return conclude(reading, TRAINING_ADAFACTOR, "factored second moments");
    if (seen[TRAINING_MOMENTUM] && !seen[TRAINING_EXP_AVG])
        return conclude(reading, TRAINING_SGD, "momentum_buffer");
    if (seen[TRAINING_EXP_AVG] && seen[TRAINING_MAX_EXP_AVG_SQ])
        return conclude(reading, TRAINING_AMSGRAD, "exp_avg, exp_avg_sq, max_exp_avg_sq");
    if (seen[TRAINING_EXP_AVG] && seen[TRAINING_EXP_AVG_SQ]) {
        if (reading->group[0].decoupled >= 0 && !group_has(reading, "amsgrad"))
            return torch_refuse(
                &reading->groups,
                "expected Adam, AdamW, SGD with momentum, Lion or Adafactor, got "
                "RAdam (decoupled_weight_decay without amsgrad), which is not read");
        return conclude(reading, TRAINING_ADAM, "exp_avg, exp_avg_sq");
    }
    if (seen[TRAINING_EXP_AVG]) return conclude(reading, TRAINING_LION, "exp_avg alone");
    return torch_refuse(&reading->state, "expected the moments of Adam, AdamW, SGD with momentum, "
                                         "Lion or Adafactor, got others");
}

enum status training_optimizer(struct training_opening *opening,
                               const struct torch_place *optimizer) {
    struct training_folder *folder = opening->folder;
    struct reading reading = {.opening = opening};
    TRY(torch_key(optimizer, "state", &reading.state));
    TRY(torch_key(optimizer, "param_groups", &reading.groups));
    if (reading.state.value.kind != TORCH_DICT) return torch_unexpected(&reading.state, "a dict");
    TRY(torch_count(&reading.groups, "a list of groups", &folder->group_count));
    TRY(count_parameters(&reading, &folder->parameter_count));
    TRY(arena_take(opening->arena, folder->group_count, sizeof *reading.group, "groups",
                   &reading.group));
    TRY(arena_take(opening->arena, folder->parameter_count, sizeof *folder->parameters,
                   "parameters", &folder->parameters));
    TRY(arena_take(opening->arena, folder->parameter_count, sizeof *opening->stored_names, "names",
                   &opening->stored_names));
    folder->groups = reading.group;
    for (size_t i = 0; i < folder->group_count; i++)
        TRY(read_group(&reading, i));
    folder->optimizer_path = optimizer->file->path;
    return judge(&reading);
}
