/* SPDX-License-Identifier: Apache-2.0
 * What the parts share that open a trainer's folder. */
#ifndef TWINSTEP_CHECKPOINTS_TRAINING_PRIVATE_H
#define TWINSTEP_CHECKPOINTS_TRAINING_PRIVATE_H

#include "checkpoints/training_folder.h"

struct training_opening {
    struct training_folder *folder;
    struct arena *arena;
    /* The weights in the order of a state dict; NULL where they are from safetensors, which are
     * sorted by name. */
    const struct safetensors_tensor **order;
    size_t order_count;
    const char **stored_names; /* [parameter_count], where the optimizer's file has names */
    int is_weights_alone;      /* the optimizer, and what lies beside it, is not looked at */
};

/* PATH/NAME, and whether it is a file that is there. */
TWINSTEP_MUST_USE enum status training_path(const struct training_opening *opening,
                                            const char *name, char **out);
int training_has(const struct training_opening *opening, const char *name);

/* Opens one file of torch.save more, which training_folder_close closes. */
TWINSTEP_MUST_USE enum status training_torch(struct training_opening *opening, const char *path,
                                             enum torch_names names, struct torch_file **out);

/* Takes the tensors of a state dict as the weights. */
TWINSTEP_MUST_USE enum status training_take_weights(struct training_opening *opening,
                                                    const struct torch_place *state);
/* The same without the order, sorted by name, into other places (masters). */
TWINSTEP_MUST_USE enum status training_state_dict(
    const struct training_opening *opening, const struct torch_place *state,
    const struct safetensors_tensor ***out_order, size_t *out_count,
    const struct safetensors_tensor *const **out_sorted);

/* Takes the tensors of all shards that an index of torch.save's files names. */
TWINSTEP_MUST_USE enum status training_shards(struct training_opening *opening, const char *path);

/* Fails with what to do with a checkpoint of DeepSpeed ZeRO. */
enum status training_refuse_zero(const char *path);

/* Finds the model's state dict in a file that holds more. */
int training_find_model(const struct torch_place *root, struct torch_place *out);
/* Reads a file that is a whole checkpoint, or weights alone. */
TWINSTEP_MUST_USE enum status training_file(struct training_opening *opening, const char *path);
/* Read what holds one optimizer's state dict, and a state dict of f32 masters. */
TWINSTEP_MUST_USE enum status training_optimizer_in(struct training_opening *opening,
                                                    const struct torch_place *at);
TWINSTEP_MUST_USE enum status training_masters_of(struct training_opening *opening,
                                                  const struct torch_place *at);

/* Reads an optimizer's state dict: groups, parameters, rule. */
TWINSTEP_MUST_USE enum status training_optimizer(struct training_opening *opening,
                                                 const struct torch_place *optimizer);

/* Gives the parameters their names, and so their weights. */
TWINSTEP_MUST_USE enum status training_name(struct training_opening *opening,
                                            const struct training_given_names *given);

/* Puts weights into the order in which their model's class makes its modules. If a name is of no
 * class that is known here, stores 0 and sorts them by name, numbers in it by size. */
TWINSTEP_MUST_USE enum status training_module_order(const struct safetensors_tensor **weights,
                                                    size_t count, struct arena *arena,
                                                    int *out_known);
/* Whether Hugging Face's Trainer leaves a parameter of that name out of weight decay. */
int training_is_undecayed(const char *name);

TWINSTEP_MUST_USE enum status training_scheduler_of(const struct training_opening *opening,
                                                    const struct torch_place *scheduler);
TWINSTEP_MUST_USE enum status training_scaler_of(const struct training_opening *opening,
                                                 const struct torch_place *scaler);
/* Adds a generator for each entry of a dict or a list of states, or for the one state that it is.
 * What is none of these, or cannot be read, adds none. */
TWINSTEP_MUST_USE enum status training_generators_of(const struct training_opening *opening,
                                                     const struct torch_place *states,
                                                     const char *prefix);
/* Stores every number of the dict, at any depth of dicts, by its way. */
TWINSTEP_MUST_USE enum status training_numbers_of(const struct training_opening *opening,
                                                  const struct torch_place *dict,
                                                  const struct training_number **out,
                                                  size_t *out_count);
/* Reads trainer_state.json. */
TWINSTEP_MUST_USE enum status training_state_file(const struct training_opening *opening,
                                                  const char *path);

#endif
