/* SPDX-License-Identifier: Apache-2.0
 * Finds out who wrote a folder or a file, opens what it consists of, and refuses by name what
 * cannot be read.
 *
 * Invariant: training_folder_close ends every mapping, whatever training_folder_open returned. */
#include "checkpoints/training_folder.h"

#include "base/input.h"
#include "checkpoints/order.h"
#include "checkpoints/strict_json.h"
#include "checkpoints/training_private.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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

#define MEGATRON_RANK "mp_rank_00"
#define DEEPSPEED_MODEL "mp_rank_00_model_states.pt"

/* What the names in a folder say of who wrote it. */
struct marks {
    int is_dcp, is_deepspeed, is_fsdp, is_local, is_universal, has_zero, is_split;
    int has_rank, has_model; /* Megatron's mp_rank_00, DeepSpeed's mp_rank_00_model_states.pt */
    struct listing checkpoints;
};

static int begins_with(const char *name, const char *head) {
    return strncmp(name, head, strlen(head)) == 0;
}

static int ends_with(const char *name, const char *tail) {
    const size_t length = strlen(name), end = strlen(tail);
    return length >= end && strcmp(name + length - end, tail) == 0;
}

static int compare_texts(const void *a, const void *b) {
    const size_t left = strlen((const char *)a), right = strlen((const char *)b);
    if (left != right) return left < right ? -1 : 1; /* so that -9 stands before -10 */
    return strcmp((const char *)a, (const char *)b);
}

/* The folders that transformers, DeepSpeed and Megatron make for the checkpoints of a run. */
static int is_checkpoint(const char *name) {
    return begins_with(name, "checkpoint-") || begins_with(name, "global_step") ||
           begins_with(name, "iter_");
}

static void note_mark(struct marks *marks, const char *name) {
    marks->is_dcp |= ends_with(name, ".distcp") || strcmp(name, ".metadata") == 0;
    marks->is_deepspeed |=
        strcmp(name, "zero_to_fp32.py") == 0 || strstr(name, "zero_pp_rank_") != NULL;
    marks->is_universal |= strcmp(name, "latest_universal") == 0;
    marks->has_zero |= strcmp(name, "zero") == 0;
    marks->is_fsdp |= begins_with(name, "pytorch_model_fsdp_");
    marks->is_local |= begins_with(name, "pytorch_model_fsdp_") && strstr(name, "_rank") != NULL;
    marks->is_split |= ends_with(name, ".safetensors") && strstr(name, "-of-") != NULL;
    marks->has_rank |= strcmp(name, MEGATRON_RANK) == 0;
    marks->has_model |= strcmp(name, DEEPSPEED_MODEL) == 0;
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
        note_mark(marks, name);
        if (!is_checkpoint(name)) continue;
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
    if (marks->is_universal || (marks->has_zero && (marks->has_model || marks->is_deepspeed)))
        FAIL(STATUS_INPUT,
             "%s: expected weights and optimizer in one file each, got a universal checkpoint of "
             "DeepSpeed, with a file for each tensor and state: gather.py in docs/CHECKPOINTS.md "
             "puts them into one file, which is read",
             path);
    if (marks->is_deepspeed) return training_refuse_zero(path);
    if (marks->is_local)
        FAIL(STATUS_INPUT,
             "%s: expected whole tensors, got each process's own flat shards of FSDP "
             "(LOCAL_STATE_DICT), which nothing puts together: save with FULL_STATE_DICT, which is "
             "read as it is, or SHARDED_STATE_DICT, which can be converted",
             path);
    if (marks->is_fsdp)
        FAIL(STATUS_INPUT,
             "%s: expected whole tensors, got a checkpoint of FSDP in shards: convert both folders "
             "in it with `" CONVERT " FOLDER/pytorch_model_fsdp_0 model.pt` and `" CONVERT
             " FOLDER/optimizer_0 optimizer.pt`, and name a folder that holds the two files",
             path);
    if (marks->is_dcp && training_has(opening, "common.pt"))
        FAIL(STATUS_INPUT,
             "%s: expected whole tensors, got a distributed checkpoint of Megatron: convert it "
             "with `" CONVERT " %s FILE`, and name that file: its weights are read, and its "
             "optimizer's states, which have names of Megatron's own, are not",
             path, path);
    if (marks->is_dcp)
        FAIL(STATUS_INPUT,
             "%s: expected whole tensors, got shards of torch.distributed.checkpoint: convert them "
             "with `" CONVERT " %s FILE`, and name that file",
             path, path);
    return STATUS_OK;
}

enum status training_refuse_zero(const char *path) {
    FAIL(STATUS_INPUT,
         "%s: expected weights and optimizer by tensor, got a checkpoint of DeepSpeed ZeRO, whose "
         "states are flat partitions without tensors: `python -m "
         "deepspeed.checkpoint.ds_to_universal --inject_missing_state --input_folder "
         "FOLDER/global_stepK --output_folder OUT` writes both by tensor, and gather.py in "
         "docs/CHECKPOINTS.md puts them into one file, which is read",
         path);
}

static enum status take_checkpoint(struct training_opening *opening, const char *path) {
    struct training_folder *folder = opening->folder;
    TRY(checkpoint_open(path, opening->arena, &folder->checkpoint));
    folder->weights = folder->checkpoint.tensors;
    folder->weight_count = folder->checkpoint.count;
    folder->weights_path = folder->checkpoint.path;
    return STATUS_OK;
}

#define SHARDS "pytorch_model.bin.index.json"

static enum status read_weights(struct training_opening *opening, struct marks *marks) {
    static const char *const torch_names[] = {"pytorch_model.bin", "pytorch_model_fsdp.bin",
                                              "model.pt",          "model.pth",
                                              "model.bin",         "weights.pt"};
    const char *path = opening->folder->path;
    struct torch_file *file;
    struct torch_place root, model;
    char *adapter, *index;
    if (training_has(opening, CHECKPOINT_SINGLE) || training_has(opening, CHECKPOINT_INDEX))
        return take_checkpoint(opening, path);
    if (training_has(opening, SHARDS)) {
        if (training_has(opening, "pytorch_model.bin"))
            FAIL(STATUS_INPUT,
                 "%s: expected pytorch_model.bin or " SHARDS
                 ", got both: programs differ in which of them they read",
                 path);
        TRY(training_path(opening, SHARDS, &index));
        return training_shards(opening, index);
    }
    TRY(open_first(opening, torch_names, COUNT_OF(torch_names), TORCH_OPAQUE_NAMES, &file));
    if (file != NULL) {
        root = torch_root(file);
        if (training_find_model(&root, &model)) return training_take_weights(opening, &model);
        return training_take_weights(opening, &root);
    }
    if (training_has(opening, "adapter_model.safetensors")) {
        TRY(training_path(opening, "adapter_model.safetensors", &adapter));
        return take_checkpoint(opening, adapter);
    }
    if (marks->checkpoints.count > 0)
        FAIL(STATUS_INPUT,
             "%s: expected the folder of one checkpoint, got that of a run: name one "
             "of %s in it",
             path, listing_close(&marks->checkpoints));
    if (marks->has_rank)
        FAIL(STATUS_INPUT,
             "%s: expected one file, got a checkpoint of Megatron with a folder for each part of "
             "the model: name a file in one of them (" MEGATRON_RANK "/model_optim_rng.pt)",
             path);
    if (marks->is_split)
        FAIL(STATUS_INPUT,
             "%s: expected " CHECKPOINT_INDEX " beside shards of safetensors, got none. "
             "torch.distributed.checkpoint writes such shards; its "
             "_consolidate_hf_safetensors.consolidate_safetensors_files(input_dir=..., "
             "output_dir=...) puts them together",
             path);
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
    return training_masters_of(opening, &root);
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
    return training_optimizer_in(opening, &root);
}

static enum status read_folder(struct training_opening *opening) {
    static const char *const schedulers[] = {"scheduler.pt", "scheduler.bin", "lr_scheduler.pt"};
    static const char *const scalers[] = {"scaler.pt", "scaler.bin"};
    struct training_folder *folder = opening->folder;
    struct marks marks = {0};
    char *state, *whole;
    TRY(look_around(opening, &marks));
    TRY(refuse_marks(opening, &marks));
    if (marks.has_model) { /* DeepSpeed without ZeRO keeps all in one file */
        TRY(training_path(opening, DEEPSPEED_MODEL, &whole));
        return training_file(opening, whole);
    }
    TRY(read_weights(opening, &marks));
    if (opening->is_weights_alone) return STATUS_OK;
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
    return training_file(opening, path);
}

int training_is_file(const char *path) {
    unsigned char bytes[16];
    struct input input;
    FILE *file;
    if (input_open_stream(path, INPUT_FILE, path, "a log or a checkpoint", &file, &input) !=
        STATUS_OK)
        return 0; /* whoever opens it says why it cannot */
    const size_t length = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    return torch_file_is_zip(bytes, length) || torch_file_is_legacy(bytes, length) ||
           ends_with(path, ".safetensors") || ends_with(path, ".distcp");
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
    return opening->is_weights_alone ? STATUS_OK : training_name(opening, given);
}

static enum status open_as(const char *path, const struct training_given_names *given,
                           int is_weights_alone, struct arena *arena, struct training_folder *out) {
    struct training_opening opening = {
        .folder = out, .arena = arena, .is_weights_alone = is_weights_alone};
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

enum status training_folder_open(const char *path, const struct training_given_names *given,
                                 struct arena *arena, struct training_folder *out) {
    return open_as(path, given, 0, arena, out);
}

enum status training_weights_open(const char *path, struct arena *arena,
                                  struct training_folder *out) {
    return open_as(path, NULL, 1, arena, out);
}

void training_folder_close(struct training_folder *folder) {
    for (size_t i = 0; i < folder->file_count; i++)
        torch_file_close(&folder->files[i]);
    checkpoint_close(&folder->checkpoint);
    folder->file_count = 0;
}
