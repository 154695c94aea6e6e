/* SPDX-License-Identifier: Apache-2.0
 * What one file of torch.save holds: weights, and in a checkpoint of one file an optimizer and
 * more, under the keys that loops give them. */
#include "checkpoints/training_private.h"

#include "checkpoints/order.h"

#include <string.h>

static int compare_weights(const void *a, const void *b) {
    return strcmp(((const struct safetensors_tensor *)a)->name,
                  ((const struct safetensors_tensor *)b)->name);
}

enum status training_state_dict(const struct training_opening *opening,
                                const struct torch_place *state,
                                const struct safetensors_tensor ***out_order, size_t *out_count,
                                const struct safetensors_tensor *const **out_sorted) {
    size_t count, found = 0;
    struct safetensors_tensor *rows;
    const struct safetensors_tensor **order, **sorted;
    TRY(torch_count(state, "a state dict", &count));
    TRY(arena_take(opening->arena, count, sizeof *rows, "weights", &rows));
    TRY(arena_take(opening->arena, count, sizeof *order, "weights", &order));
    TRY(arena_take(opening->arena, count, sizeof *sorted, "weights", &sorted));
    for (size_t i = 0; i < count; i++) {
        struct torch_place at;
        TRY(torch_entry(state, i, &at));
        if (torch_is_other_tensor(&at.value)) return torch_unexpected(&at, "a whole tensor");
        if (at.value.kind != TORCH_TENSOR) continue; /* what a module adds by get_extra_state */
        if (at.key == NULL) return torch_unexpected(&at, "a weight with a name");
        TRY(torch_tensor_rows(at.file, at.value.as.tensor, at.key, opening->arena, &rows[found]));
        order[found] = sorted[found] = &rows[found];
        found++;
    }
    TRY(order_pointers((const void **)sorted, found, compare_weights, opening->arena));
    *out_order = order;
    *out_count = found;
    *out_sorted = sorted;
    return STATUS_OK;
}

/* Whole modules and optimizers are pickled as objects, which only their own code can make again. */
static enum status refuse_object(const struct torch_place *at) {
    if (at->value.kind != TORCH_OPAQUE) return STATUS_OK;
    return torch_refuse(at,
                        "expected a state dict, got an object of the class %s: save what its "
                        "state_dict() returns, which torch.load reads with weights_only=True",
                        at->value.as.opaque->name);
}

enum status training_take_weights(struct training_opening *opening,
                                  const struct torch_place *state) {
    struct training_folder *folder = opening->folder;
    TRY(refuse_object(state));
    TRY(training_state_dict(opening, state, &opening->order, &opening->order_count,
                            &folder->weights));
    if (opening->order_count == 0)
        return torch_refuse(state, "expected the weights of a model, got no tensor");
    folder->weight_count = opening->order_count;
    folder->weights_path = state->file->path;
    return STATUS_OK;
}

/* Finds the first of the keys, one dict down if the file wraps all in one. */
static int find_any(const struct torch_place *in, const char *const *keys, size_t count,
                    struct torch_place *out) {
    for (size_t i = 0; i < count; i++)
        if (torch_find(in, keys[i], out) && out->value.kind != TORCH_NONE) return 1;
    return 0;
}

static const char *const model_keys[] = {"model", "model_state_dict", "state_dict", "module",
                                         "net",   "weights",          "params"};
static const char *const optimizer_keys[] = {"optimizer",        "optimizer_state_dict", "optim",
                                             "optimizer_states", "optim_state_dict",     "opt"};
static const char *const scheduler_keys[] = {"scheduler", "scheduler_state_dict", "lr_scheduler",
                                             "lr_scheduler_state_dict", "lr_schedulers"};
static const char *const scaler_keys[] = {"scaler", "scaler_state_dict", "grad_scaler",
                                          "MixedPrecision"};
static const char *const master_keys[] = {"masters", "master_weights", "master_params"};
static const char *const step_keys[] = {"global_step", "step",    "iteration", "iter_num",
                                        "iter",        "updates", "it"};
/* All of them are read: a loop may keep the state of each generator under a key of its own. */
static const char *const generator_keys[] = {"rng",
                                             "rng_state",
                                             "rng_states",
                                             "random_states",
                                             "torch_rng_state",
                                             "cuda_rng_state",
                                             "numpy_rng_state",
                                             "python_rng_state"};
#define FIND(in, keys, out) find_any((in), (keys), COUNT_OF(keys), (out))

/* Lightning keeps lists of optimizers and schedulers. */
static enum status only_one(const struct torch_place *at, const char *what,
                            struct torch_place *out) {
    size_t count;
    *out = *at;
    if (at->value.kind != TORCH_LIST) return STATUS_OK;
    TRY(torch_count(at, "a list", &count));
    if (count != 1)
        return torch_refuse(at,
                            "expected one %s, got %zu: which weights each of several has is "
                            "in no file",
                            what, count);
    return torch_item(at, 0, out);
}

/* torch.distributed.checkpoint spells an optimizer's states in one dict with those of the weights
 * if it is asked to flatten them; torchtitan asks. Megatron has names of its own in one dict. */
static enum status refuse_flat(const struct torch_place *dict) {
    size_t count = 0;
    if (dict->value.kind == TORCH_DICT) count = dict->value.as.members->count;
    for (size_t i = 0; i < count; i++) {
        struct torch_place at;
        TRY(torch_entry(dict, i, &at));
        if (at.key != NULL && strncmp(at.key, "optimizer.state.", 16) == 0)
            return torch_refuse(&at, "expected {\"state\": ..., \"param_groups\": [...]}, got a "
                                     "state of an optimizer under a name of Megatron's own; such "
                                     "states are not read. Without the entries of optimizer.state "
                                     "the file has weights alone");
        if (at.key != NULL && strncmp(at.key, "param_groups.", 13) == 0)
            return torch_refuse(&at, "expected {\"state\": ..., \"param_groups\": [...]}, got the "
                                     "states of an optimizer that were flattened (by "
                                     "flatten_optimizer_state_dict=True): gather.py in "
                                     "docs/CHECKPOINTS.md makes a file of them that is read");
    }
    return STATUS_OK;
}

enum status training_optimizer_in(struct training_opening *opening, const struct torch_place *at) {
    struct torch_place inner, one;
    TRY(only_one(at, "optimizer", &one));
    TRY(refuse_object(&one));
    if (!torch_find(&one, "param_groups", &inner) && FIND(&one, optimizer_keys, &inner))
        return training_optimizer(opening, &inner);
    TRY(refuse_flat(&one));
    return training_optimizer(opening, &one);
}

enum status training_masters_of(struct training_opening *opening, const struct torch_place *at) {
    struct training_folder *folder = opening->folder;
    const struct safetensors_tensor **order;
    return training_state_dict(opening, at, &order, &folder->master_count, &folder->masters);
}

int training_find_model(const struct torch_place *root, struct torch_place *out) {
    return FIND(root, model_keys, out) && out->value.kind == TORCH_DICT;
}

/* What stands beside weights and optimizer in one file. */
static enum status read_others(struct training_opening *opening, const struct torch_place *root) {
    struct training_folder *folder = opening->folder;
    struct torch_place at, one;
    if (FIND(root, scheduler_keys, &at)) {
        size_t count = 1;
        if (at.value.kind == TORCH_LIST) TRY(torch_count(&at, "a list", &count));
        if (count > 0) {
            TRY(only_one(&at, "scheduler", &one));
            TRY(training_scheduler_of(opening, &one));
        }
    }
    if (FIND(root, scaler_keys, &at)) TRY(training_scaler_of(opening, &at));
    if (FIND(root, master_keys, &at)) TRY(training_masters_of(opening, &at));
    for (size_t i = 0; i < COUNT_OF(generator_keys); i++)
        if (torch_find(root, generator_keys[i], &at)) TRY(training_generators_of(opening, &at, ""));
    if (FIND(root, step_keys, &at) && torch_is_number(&at.value)) {
        TRY(torch_integer(&at, &folder->global_step));
        folder->has_step = 1;
    }
    if (torch_find(root, "epoch", &at) && torch_is_number(&at.value))
        TRY(torch_number(&at, &folder->epoch));
    if (torch_find(root, "loops", &at))
        TRY(training_numbers_of(opening, &at, &folder->sampler, &folder->sampler_count));
    return STATUS_OK;
}

/* Whether all is one optimizer's state dict. */
static int is_optimizer(const struct torch_place *root) {
    struct torch_place at;
    return torch_find(root, "state", &at) && torch_find(root, "param_groups", &at);
}

static enum status read_root(struct training_opening *opening, const struct torch_place *root) {
    struct training_folder *folder = opening->folder;
    struct torch_place model, optimizer, object;
    const int has_model = training_find_model(root, &model);
    const int has_optimizer = FIND(root, optimizer_keys, &optimizer);
    folder->kind = torch_find(root, "pytorch-lightning_version", &(struct torch_place){0})
                       ? TRAINING_LIGHTNING
                       : TRAINING_TORCH;
    const int has_zero = torch_find(root, "ds_version", &(struct torch_place){0}) && !has_optimizer;
    if (has_zero ||
        (has_optimizer && torch_find(&optimizer, "zero_stage", &(struct torch_place){0})))
        return training_refuse_zero(root->file->path);
    if (is_optimizer(root))
        return torch_refuse(root, "expected weights and an optimizer, got the state dict of an "
                                  "optimizer alone: name the folder in which both lie");
    if (FIND(root, model_keys, &object)) TRY(refuse_object(&object));
    if (!has_model && has_optimizer)
        return torch_refuse(root, "expected the weights of a model beside the optimizer, under "
                                  "model, model_state_dict or state_dict; got none");
    if (!has_model) {
        TRY(refuse_flat(root));
        folder->kind = TRAINING_WEIGHTS;
        folder->rule_reason = "the file holds weights alone, no optimizer";
        return training_take_weights(opening, root);
    }
    TRY(training_take_weights(opening, &model));
    if (opening->is_weights_alone) return STATUS_OK;
    if (has_optimizer)
        TRY(training_optimizer_in(opening, &optimizer));
    else
        folder->rule_reason = "the file holds no optimizer";
    return read_others(opening, root);
}

/* A file that wraps all in one dict, as torch.distributed.checkpoint's tutorials do. */
enum status training_file(struct training_opening *opening, const char *path) {
    struct torch_file *file;
    struct torch_place root, inner;
    size_t count;
    TRY(training_torch(opening, path, TORCH_OPAQUE_NAMES, &file));
    root = torch_root(file);
    TRY(refuse_object(&root));
    TRY(torch_count(&root, "a dict of state dicts", &count));
    if (root.value.kind != TORCH_DICT) return torch_unexpected(&root, "a dict of state dicts");
    if (count != 1 || FIND(&root, model_keys, &inner) || FIND(&root, optimizer_keys, &inner))
        return read_root(opening, &root);
    TRY(torch_entry(&root, 0, &inner));
    return read_root(opening, inner.value.kind == TORCH_DICT ? &inner : &root);
}
