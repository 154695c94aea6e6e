/* SPDX-License-Identifier: Apache-2.0
 * Finds out who wrote a folder or a file, opens what it consists of, and refuses by name what
 * cannot be read.
 *
 * Invariant: training_folder_close ends every mapping, whatever training_folder_open returned. */
#include "checkpoints/training_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "checkpoints/mapped.h"
#include "checkpoints/order.h"
#include "checkpoints/strict_json.h"
#include "checkpoints/training_private.h"

enum status training_path(const struct training_opening *opening, const char *name, char **out) {
    return arena_format(opening->arena, out, "%s/%s", opening->folder->path, name);
}

int training_has(const struct training_opening *opening, const char *name) {
    struct stat info;
    char *path;
    return training_path(opening, name, &path) == STATUS_OK && stat(path, &info) == 0 &&
           !S_ISDIR(info.st_mode);
}

enum status training_torch(struct training_opening *opening, const char *path,
                           enum torch_names names, struct torch_file **out) {
    struct training_folder *folder = opening->folder;
    if (folder->file_count == TRAINING_FILES)
        FAIL(STATUS_INPUT, "%s: expected at most %d files of torch.save, got more", folder->path,
             TRAINING_FILES);
    *out = &folder->files[folder->file_count];
    TRY(torch_file_open(path, names, opening->arena, *out));
    folder->file_count++;
    return STATUS_OK;
}

/* Opens the first of the named files that is there; *out is NULL if none is. */
static enum status open_first(struct training_opening *opening, const char *const *names,
                              size_t count, enum torch_names which, struct torch_file **out) {
    *out = NULL;
    for (size_t i = 0; i < count; i++) {
        char *path;
        if (!training_has(opening, names[i])) continue;
        TRY(training_path(opening, names[i], &path));
        return training_torch(opening, path, which, out);
    }
    return STATUS_OK;
}

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

enum status training_take_weights(struct training_opening *opening,
                                  const struct torch_place *state) {
    struct training_folder *folder = opening->folder;
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
static const char *const generator_keys[] = {"rng", "rng_state", "rng_states", "random_states"};
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

static enum status read_optimizer(struct training_opening *opening, const struct torch_place *at) {
    struct torch_place inner, one;
    TRY(only_one(at, "optimizer", &one));
    if (!torch_find(&one, "param_groups", &inner) && FIND(&one, optimizer_keys, &inner))
        return training_optimizer(opening, &inner);
    return training_optimizer(opening, &one);
}

static enum status read_masters(struct training_opening *opening, const struct torch_place *at) {
    struct training_folder *folder = opening->folder;
    const struct safetensors_tensor **order;
    return training_state_dict(opening, at, &order, &folder->master_count, &folder->masters);
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
    if (FIND(root, master_keys, &at)) TRY(read_masters(opening, &at));
    if (FIND(root, generator_keys, &at)) TRY(training_generators_of(opening, &at, ""));
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
    struct torch_place model, optimizer;
    const int has_model = FIND(root, model_keys, &model) && model.value.kind == TORCH_DICT;
    const int has_optimizer = FIND(root, optimizer_keys, &optimizer);
    folder->kind = torch_find(root, "pytorch-lightning_version", &(struct torch_place){0})
                       ? TRAINING_LIGHTNING
                       : TRAINING_TORCH;
    if (is_optimizer(root))
        return torch_refuse(root, "expected weights and an optimizer, got the state dict of an "
                                  "optimizer alone: name the folder in which both lie");
    if (!has_model && has_optimizer)
        return torch_refuse(root, "expected the weights of a model beside the optimizer, under "
                                  "model, model_state_dict or state_dict; got none");
    if (!has_model) {
        folder->kind = TRAINING_WEIGHTS;
        folder->rule_reason = "the file holds weights alone, no optimizer";
        return training_take_weights(opening, root);
    }
    TRY(training_take_weights(opening, &model));
    if (has_optimizer)
        TRY(read_optimizer(opening, &optimizer));
    else
        folder->rule_reason = "the file holds no optimizer";
    return read_others(opening, root);
}

/* A file that wraps all in one dict, as torch.distributed.checkpoint's tutorials do. */
static enum status read_file(struct training_opening *opening, const char *path) {
    struct torch_file *file;
    struct torch_place root, inner;
    size_t count;
    TRY(training_torch(opening, path, TORCH_OPAQUE_NAMES, &file));
    root = torch_root(file);
    TRY(torch_count(&root, "a dict of state dicts", &count));
    if (root.value.kind != TORCH_DICT) return torch_unexpected(&root, "a dict of state dicts");
    if (count != 1 || FIND(&root, model_keys, &inner) || FIND(&root, optimizer_keys, &inner))
        return read_root(opening, &root);
    TRY(torch_entry(&root, 0, &inner));
    return read_root(opening, inner.value.kind == TORCH_DICT ? &inner : &root);
}

/* What the names in a folder say of who wrote it. */
struct marks {
    int is_dcp, is_deepspeed, is_fsdp;
    struct listing checkpoints;
};

static int ends_with(const char *name, const char *tail) {
    const size_t length = strlen(name), end = strlen(tail);
    return length >= end && strcmp(name + length - end, tail) == 0;
}

static int compare_texts(const void *a, const void *b) {
    const size_t left = strlen((const char *)a), right = strlen((const char *)b);
    if (left != right) return left < right ? -1 : 1; /* so that -9 stands before -10 */
    return strcmp((const char *)a, (const char *)b);
}

static enum status look_around(const struct training_opening *opening, struct marks *marks) {
    const char *path = opening->folder->path;
    const char **inner = NULL;
    size_t count = 0, room = 0;
    enum status status = STATUS_OK;
    DIR *directory = opendir(path);
    if (directory == NULL) FAIL(STATUS_IO, "%s: cannot open: %s", path, strerror(errno));
    for (const struct dirent *entry; status == STATUS_OK && (entry = readdir(directory)) != NULL;) {
        const char *name = entry->d_name;
        char *copy = NULL;
        marks->is_dcp |= ends_with(name, ".distcp") || strcmp(name, ".metadata") == 0;
        marks->is_deepspeed |= strcmp(name, "zero_to_fp32.py") == 0 ||
                               strncmp(name, "global_step", 11) == 0 ||
                               strstr(name, "zero_pp_rank_") != NULL;
        marks->is_fsdp |= strncmp(name, "pytorch_model_fsdp_", 19) == 0;
        if (strncmp(name, "checkpoint-", 11) != 0) continue;
        status = arena_text(opening->arena, name, strlen(name), &copy);
        if (status == STATUS_OK)
            status = arena_grow(opening->arena, count + 1, &room, sizeof *inner, "names", &inner);
        if (status == STATUS_OK) inner[count++] = copy;
    }
    closedir(directory);
    TRY(status);
    TRY(order_pointers((const void **)inner, count, compare_texts, opening->arena));
    for (size_t i = 0; i < count; i++)
        listing_add(&marks->checkpoints, inner[i]);
    return STATUS_OK;
}

#define CONVERT "python -m torch.distributed.checkpoint.format_utils dcp_to_torch"

static enum status refuse_marks(const struct training_opening *opening, const struct marks *marks) {
    const char *path = opening->folder->path;
    if (marks->is_deepspeed)
        FAIL(STATUS_INPUT,
             "%s: expected weights and optimizer by tensor, got a checkpoint of DeepSpeed ZeRO, "
             "whose states are flat partitions without tensors: zero_to_fp32.py in it gives the "
             "weights, and nothing gives the moments by tensor",
             path);
    if (marks->is_fsdp)
        FAIL(STATUS_INPUT,
             "%s: expected whole tensors, got a checkpoint of FSDP in shards: convert both folders "
             "in it with `" CONVERT " FOLDER/pytorch_model_fsdp_0 model.pt` and `" CONVERT
             " FOLDER/optimizer_0 optimizer.pt`, and name a folder that holds the two files",
             path);
    if (marks->is_dcp)
        FAIL(STATUS_INPUT,
             "%s: expected whole tensors, got shards of torch.distributed.checkpoint: convert them "
             "with `" CONVERT " %s FILE`, and name that file",
             path, path);
    return STATUS_OK;
}

static enum status take_checkpoint(struct training_opening *opening, const char *path) {
    struct training_folder *folder = opening->folder;
    TRY(checkpoint_open(path, opening->arena, &folder->checkpoint));
    folder->weights = folder->checkpoint.tensors;
    folder->weight_count = folder->checkpoint.count;
    folder->weights_path = folder->checkpoint.path;
    return STATUS_OK;
}

static enum status read_weights(struct training_opening *opening, struct marks *marks) {
    static const char *const torch_names[] = {"pytorch_model.bin", "model.pt", "model.pth",
                                              "model.bin", "weights.pt"};
    const char *path = opening->folder->path;
    struct torch_file *file;
    struct torch_place root, model;
    char *adapter;
    if (training_has(opening, CHECKPOINT_SINGLE) || training_has(opening, CHECKPOINT_INDEX))
        return take_checkpoint(opening, path);
    TRY(open_first(opening, torch_names, COUNT_OF(torch_names), TORCH_OPAQUE_NAMES, &file));
    if (file != NULL) {
        root = torch_root(file);
        if (FIND(&root, model_keys, &model) && model.value.kind == TORCH_DICT)
            return training_take_weights(opening, &model);
        return training_take_weights(opening, &root);
    }
    if (training_has(opening, "adapter_model.safetensors")) {
        TRY(training_path(opening, "adapter_model.safetensors", &adapter));
        return take_checkpoint(opening, adapter);
    }
    if (training_has(opening, "pytorch_model.bin.index.json"))
        FAIL(STATUS_INPUT,
             "%s: expected weights in one file or in safetensors, got shards of torch.save: load "
             "the model and save it with save_pretrained(safe_serialization=True)",
             path);
    if (marks->checkpoints.count > 0)
        FAIL(STATUS_INPUT,
             "%s: expected the folder of one checkpoint, got that of a run: name one "
             "of %s in it",
             path, listing_close(&marks->checkpoints));
    FAIL(STATUS_INPUT,
         "%s: expected the weights of a checkpoint (model.safetensors, its shards with an index, "
         "pytorch_model.bin or model.pt), got none of them",
         path);
}

static enum status read_part(struct training_opening *opening, const char *const *names,
                             size_t count,
                             enum status (*read)(const struct training_opening *,
                                                 const struct torch_place *)) {
    struct torch_file *file;
    TRY(open_first(opening, names, count, TORCH_STRICT, &file));
    if (file == NULL) return STATUS_OK;
    const struct torch_place root = torch_root(file);
    return read(opening, &root);
}

/* Ranks beyond the first keep their generators in files of their own. */
static enum status read_generators(struct training_opening *opening) {
    static const char *const single[] = {"rng_state.pth", "rng.pt"};
    static const char *const ranked[][2] = {{"rng_state_", ".pth"}, {"random_states_", ".pkl"}};
    struct torch_file *file;
    struct torch_place root;
    TRY(open_first(opening, single, COUNT_OF(single), TORCH_STRICT, &file));
    if (file != NULL) {
        root = torch_root(file);
        TRY(training_generators_of(opening, &root, ""));
    }
    for (size_t i = 0; i < COUNT_OF(ranked); i++)
        for (int rank = 0; rank < 8; rank++) {
            char name[64], prefix[32] = "";
            const char *const names[] = {name};
            snprintf(name, sizeof name, "%s%d%s", ranked[i][0], rank, ranked[i][1]);
            if (!training_has(opening, name)) break;
            TRY(open_first(opening, names, 1, TORCH_STRICT, &file));
            if (rank > 0) snprintf(prefix, sizeof prefix, "rank %d: ", rank);
            root = torch_root(file);
            TRY(training_generators_of(opening, &root, prefix));
        }
    return STATUS_OK;
}

/* Reads what a plain loop keeps beside: where the data stand, and f32 masters of narrow weights. */
static enum status read_loop_files(struct training_opening *opening) {
    static const char *const samplers[] = {"sampler.pt", "sampler.bin", "dataloader.pt"};
    static const char *const masters[] = {"masters.pt", "master_weights.pt"};
    struct training_folder *folder = opening->folder;
    struct torch_file *file;
    struct torch_place root;
    TRY(open_first(opening, samplers, COUNT_OF(samplers), TORCH_OPAQUE_NAMES, &file));
    if (file != NULL) {
        root = torch_root(file);
        TRY(training_numbers_of(opening, &root, &folder->sampler, &folder->sampler_count));
    }
    TRY(open_first(opening, masters, COUNT_OF(masters), TORCH_STRICT, &file));
    if (file == NULL) return STATUS_OK;
    root = torch_root(file);
    return read_masters(opening, &root);
}

static enum status read_optimizer_file(struct training_opening *opening) {
    static const char *const names[] = {"optimizer.pt", "optimizer.bin", "optimizer.pth",
                                        "optim.pt"};
    struct training_folder *folder = opening->folder;
    struct torch_file *file;
    if (training_has(opening, "optimizer_1.bin"))
        FAIL(STATUS_INPUT,
             "%s: expected one optimizer, got optimizer.bin and optimizer_1.bin: which weights "
             "each of several has is in no file",
             folder->path);
    TRY(open_first(opening, names, COUNT_OF(names), TORCH_STRICT, &file));
    if (file == NULL) {
        folder->rule_reason = "the folder holds no optimizer.pt or optimizer.bin";
        return STATUS_OK;
    }
    const struct torch_place root = torch_root(file);
    return read_optimizer(opening, &root);
}

static enum status read_folder(struct training_opening *opening) {
    static const char *const schedulers[] = {"scheduler.pt", "scheduler.bin", "lr_scheduler.pt"};
    static const char *const scalers[] = {"scaler.pt", "scaler.bin"};
    struct training_folder *folder = opening->folder;
    struct marks marks = {0};
    char *state;
    TRY(look_around(opening, &marks));
    TRY(refuse_marks(opening, &marks));
    TRY(read_weights(opening, &marks));
    TRY(read_optimizer_file(opening));
    TRY(read_part(opening, schedulers, COUNT_OF(schedulers), training_scheduler_of));
    TRY(read_part(opening, scalers, COUNT_OF(scalers), training_scaler_of));
    TRY(read_generators(opening));
    TRY(read_loop_files(opening));
    folder->kind = folder->optimizer_path == NULL           ? TRAINING_WEIGHTS
                   : training_has(opening, "optimizer.bin") ? TRAINING_ACCELERATE
                                                            : TRAINING_FOLDER;
    if (!training_has(opening, "trainer_state.json")) return STATUS_OK;
    folder->kind = TRAINING_HF;
    TRY(training_path(opening, "trainer_state.json", &state));
    return training_state_file(opening, state);
}

/* A file is a zip of torch.save, or safetensors. */
static enum status read_single(struct training_opening *opening, const char *path) {
    struct training_folder *folder = opening->folder;
    if (ends_with(path, ".safetensors")) {
        folder->kind = TRAINING_WEIGHTS;
        folder->rule_reason = "the file holds weights alone, no optimizer";
        return take_checkpoint(opening, path);
    }
    if (ends_with(path, ".distcp"))
        FAIL(STATUS_INPUT,
             "%s: expected whole tensors, got a shard of torch.distributed.checkpoint: convert its "
             "folder with `" CONVERT " FOLDER FILE`, and name that file",
             path);
    return read_file(opening, path);
}

static enum status read_all(struct training_opening *opening,
                            const struct training_given_names *given) {
    struct training_folder *folder = opening->folder;
    struct stat info;
    if (stat(folder->path, &info) != 0)
        FAIL(STATUS_IO, "%s: cannot open: %s", folder->path, strerror(errno));
    if (S_ISDIR(info.st_mode))
        TRY(read_folder(opening));
    else
        TRY(read_single(opening, folder->path));
    return training_name(opening, given);
}

enum status training_folder_open(const char *path, const struct training_given_names *given,
                                 struct arena *arena, struct training_folder *out) {
    struct training_opening opening = {.folder = out, .arena = arena};
    size_t length = strlen(path);
    char *copy;
    memset(out, 0, sizeof *out);
    out->epoch = -1.0;
    out->names_text = "";
    while (length > 1 && path[length - 1] == '/')
        length--;
    TRY(arena_text(arena, path, length, &copy));
    out->path = copy;
    const enum status status = read_all(&opening, given);
    if (status != STATUS_OK) training_folder_close(out);
    return status;
}

void training_folder_close(struct training_folder *folder) {
    for (size_t i = 0; i < folder->file_count; i++)
        torch_file_close(&folder->files[i]);
    checkpoint_close(&folder->checkpoint);
    folder->file_count = 0;
}

int training_group_number(const struct training_group *group, const char *key, double *out) {
    for (size_t i = 0; i < group->number_count; i++)
        if (strcmp(group->numbers[i].key, key) == 0) {
            *out = group->numbers[i].value;
            return 1;
        }
    return 0;
}

static enum status split_names(const char *path, const struct mapped *file, struct arena *arena,
                               struct training_given_names *out) {
    const char *at = (const char *)file->bytes;
    const char **names = NULL;
    size_t left = file->length, room = 0;
    while (left > 0) {
        const char *end = (const char *)memchr(at, '\n', left);
        const size_t line = end == NULL ? left : (size_t)(end - at);
        const size_t length = line > 0 && at[line - 1] == '\r' ? line - 1 : line;
        char *copy;
        if (memchr(at, '\0', line) != NULL)
            FAIL(STATUS_INPUT, "%s: expected a text with one name to a line, got a NUL", path);
        if (length > 0 && at[0] != '#') {
            TRY(arena_text(arena, at, length, &copy));
            TRY(arena_grow(arena, out->count + 1, &room, sizeof *names, "names", &names));
            names[out->count++] = copy;
        }
        at += end == NULL ? line : line + 1;
        left -= end == NULL ? line : line + 1;
    }
    out->names = names;
    return STATUS_OK;
}

enum status training_names_read(const char *path, struct arena *arena,
                                struct training_given_names *out) {
    struct mapped file;
    char *copy;
    memset(out, 0, sizeof *out);
    TRY(arena_text(arena, path, strlen(path), &copy));
    out->path = copy;
    TRY(mapped_open(path, &file));
    const enum status status = split_names(path, &file, arena, out);
    mapped_close(&file);
    return status;
}

const char *training_kind_name(enum training_kind kind) {
    static const char *const names[TRAINING_KINDS] = {"huggingface", "accelerate", "lightning",
                                                      "torch",       "folder",     "weights"};
    return names[kind];
}

const char *training_rule_name(enum training_rule rule) {
    static const char *const names[TRAINING_RULES] = {"adam", "amsgrad", "sgd", "lion",
                                                      "adafactor"};
    return names[rule];
}

const char *training_moment_name(enum training_moment moment) {
    static const char *const names[TRAINING_MOMENTS] = {"exp_avg",        "exp_avg_sq",
                                                        "max_exp_avg_sq", "momentum_buffer",
                                                        "exp_avg_sq_row", "exp_avg_sq_col"};
    return names[moment];
}

const char *training_names_name(enum training_names names) {
    static const char *const all[TRAINING_NAMES_KINDS] = {"none",    "given",      "stored",
                                                          "modules", "state dict", "shapes"};
    return all[names];
}
