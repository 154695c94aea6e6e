/* SPDX-License-Identifier: Apache-2.0
 * What a trainer left on disk at one update, read as one struct: weights by name, optimizer with
 * its parameter groups and moments, scheduler, scaler, generators, the trainer's own state.
 *
 * It reads a folder of Hugging Face's Trainer (TRL's, too), a folder of Accelerate's save_state, a
 * .ckpt of Lightning, a file of torch.save that holds a model's and an optimizer's state dict, and
 * a folder with safetensors and an optimizer.pt. Tensors stay where they lie in the mapped files.
 * What else is on disk (DCP, FSDP, DeepSpeed ZeRO, files before torch 1.6, 8-bit states, an
 * optimizer without state) is refused by its name and with what to do.
 *
 * A folder with weights alone, as it is before update 1, is read as well: it has no groups.
 *
 * It measures nothing: which LR was applied is the business of who reads two of these. */
#ifndef TWINSTEP_CHECKPOINTS_TRAINING_FOLDER_H
#define TWINSTEP_CHECKPOINTS_TRAINING_FOLDER_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/torch_file.h"

enum training_kind {
    TRAINING_HF = 0,     /* checkpoint-K of transformers' Trainer: trainer_state.json */
    TRAINING_ACCELERATE, /* Accelerator.save_state: optimizer.bin */
    TRAINING_LIGHTNING,  /* .ckpt */
    TRAINING_TORCH,      /* a file of torch.save with a model's and an optimizer's state dict */
    TRAINING_FOLDER,     /* weights and optimizer.pt in a folder, without trainer_state.json */
    TRAINING_WEIGHTS,    /* weights alone */
    TRAINING_KINDS
};

/* What an optimizer keeps for each parameter. */
enum training_moment {
    TRAINING_EXP_AVG = 0,
    TRAINING_EXP_AVG_SQ,
    TRAINING_MAX_EXP_AVG_SQ,
    TRAINING_MOMENTUM,  /* momentum_buffer */
    TRAINING_SQ_ROW,    /* Adafactor: exp_avg_sq_row, row_var */
    TRAINING_SQ_COLUMN, /* Adafactor: exp_avg_sq_col, col_var */
    TRAINING_MOMENTS
};

/* The optimizer's rule, as the keys of its state say it. */
enum training_rule {
    TRAINING_ADAM = 0, /* AdamW where `decoupled` is 1, Adam with decay in the gradient where 0 */
    TRAINING_AMSGRAD,  /* the same with max_exp_avg_sq */
    TRAINING_SGD,      /* with momentum; Nesterov's where the group's `nesterov` is 1 */
    TRAINING_LION,     /* exp_avg alone */
    TRAINING_ADAFACTOR,
    TRAINING_RULES
};

/* Where the names of the parameters are from. */
enum training_names {
    TRAINING_NAMES_NONE = 0, /* they could not be given: `weight` is NULL everywhere */
    TRAINING_NAMES_GIVEN,    /* the caller's list */
    TRAINING_NAMES_STORED,   /* param_names of the optimizer's own groups */
    TRAINING_NAMES_MODULES,  /* the order in which the model's class makes its modules */
    TRAINING_NAMES_STATE,    /* the order of the state dict in the file */
    TRAINING_NAMES_SHAPES,   /* shapes that occur once; other parameters have no name */
    TRAINING_NAMES_KINDS
};

struct training_number {
    const char *key; /* "lr", "betas[0]", "nesterov" (0 or 1) */
    double value;
};

/* A parameter group: every number and flag in it, in the order of the file. */
struct training_group {
    size_t number_count;
    const struct training_number *numbers;
    size_t first, count; /* its parameters, in training_folder.parameters */
    int decoupled;       /* decoupled_weight_decay: 0, 1, or -1 where the file does not say */
};

struct training_parameter {
    int64_t index; /* its key in the optimizer's state */
    size_t group;
    const struct safetensors_tensor *weight; /* NULL where no name could be given */
    const struct safetensors_tensor *master; /* of masters.pt, by the weight's name; or NULL */
    int has_state;                           /* 0: frozen, or never given a gradient */
    int has_step;
    double step; /* how many updates the optimizer has counted for it */
    const struct safetensors_tensor *moments[TRAINING_MOMENTS]; /* NULL where there is none */
    const uint64_t *shape; /* of its state or, without one, of its weight; NULL if unknown */
    size_t rank;
};

/* A learning rate scheduler's own file. */
struct training_scheduler {
    int is_there;
    int has_last_epoch, has_step_count;
    int64_t last_epoch, step_count;
    size_t base_count, last_count; /* one of each per group, where they are stored */
    const double *base_lrs, *last_lrs;
};

struct training_scaler {
    int is_there;
    double scale;
    int64_t growth_tracker;
    int64_t growth_interval; /* 0 where it is not stored */
};

/* A generator's state: where it stands and the digest of its bytes, so that two of them can be
 * compared. */
struct training_generator {
    const char *name; /* "python", "numpy", "cpu", "cuda[0]" */
    struct digest digest;
    struct torch_value value; /* the state as the file has it */
};

struct training_log_row {
    int64_t step;
    int has_lr, has_loss, has_norm;
    double lr, loss, norm; /* `learning_rate`, `loss`, `grad_norm` as trainer_state.json has them */
};

#define TRAINING_FILES 256

struct training_folder {
    const char *path; /* as the caller gave it */
    enum training_kind kind;
    int has_step;
    int64_t global_step; /* updates that the trainer counted */
    int64_t max_steps;   /* 0 where it is not stored */
    double epoch;        /* negative where it is not stored */

    /* The weights, sorted by name. A tied head stands here only if the file has it. */
    const char *weights_path;
    size_t weight_count;
    const struct safetensors_tensor *const *weights;

    size_t master_count; /* f32 weights of which those above are copies: masters.pt, by name */
    const struct safetensors_tensor *const *masters;

    const char *optimizer_path; /* NULL: there is no optimizer, and `rule_reason` says so */
    enum training_rule rule;
    const char *rule_reason; /* the keys that say so: "exp_avg, exp_avg_sq" */
    size_t group_count;
    const struct training_group *groups;
    size_t parameter_count;
    struct training_parameter *parameters; /* group after group */
    enum training_names names_from;
    int is_ambiguous;       /* other names fit the shapes as well: `names_text` says how many */
    const char *names_text; /* a sentence: whence the names are, or why there are none */

    struct training_scheduler scheduler;
    struct training_scaler scaler;
    size_t generator_count;
    const struct training_generator *generators;
    size_t sampler_count; /* numbers that say where the data stand: sampler.pt, Lightning's loops */
    const struct training_number *sampler;
    size_t log_count;
    const struct training_log_row *log;

    size_t file_count; /* what is open: private to the reader */
    struct torch_file files[TRAINING_FILES];
    struct checkpoint checkpoint;
};

/* Names that the caller gives: one for each parameter, in the order of the groups. */
struct training_given_names {
    const char *path; /* where they are from, for errors */
    size_t count;
    const char *const *names;
};

/* Reads a file of names, one to a line; blank lines and lines that begin with # are skipped. */
TWINSTEP_MUST_USE enum status training_names_read(const char *path, struct arena *arena,
                                                  struct training_given_names *out);

/* Opens a folder or a file. `given` may be NULL. STATUS_INPUT and STATUS_IO name the file, what was
 * expected, what came, and what to do; then nothing is open. */
TWINSTEP_MUST_USE enum status training_folder_open(const char *path,
                                                   const struct training_given_names *given,
                                                   struct arena *arena,
                                                   struct training_folder *out);
/* The same for the weights alone: an optimizer that cannot be read is not looked at. */
TWINSTEP_MUST_USE enum status training_weights_open(const char *path, struct arena *arena,
                                                    struct training_folder *out);
void training_folder_close(struct training_folder *folder);

/* Whether a regular file is a checkpoint and no log: by its first bytes one of torch.save, or by
 * its suffix one of safetensors or torch.distributed.checkpoint. Some of these are refused when
 * opened. */
int training_is_file(const char *path);

/* Stores a number of a group. Returns 0 if it has none of that key. */
int training_group_number(const struct training_group *group, const char *key, double *out);

/* The words of tables and JSON: "huggingface", "accelerate", ...; "adam", "sgd", ...; "modules",
 * "given", ... */
const char *training_kind_name(enum training_kind kind);
const char *training_rule_name(enum training_rule rule);
const char *training_names_name(enum training_names names);

#endif
