/* SPDX-License-Identifier: Apache-2.0
 * Whole trainings for tests: configurations from a few words, data sets, opened runs, random
 * numbers, and what a training left behind, as digests. The only expectation in here is that
 * opening and stepping succeed; failures are cmocka failures. */
#ifndef TWINSTEP_TESTS_TRAINER_HELPER_TRAIN_H
#define TWINSTEP_TESTS_TRAINER_HELPER_TRAIN_H

#include "experiment/experiment.h"
#include "kernels/op.h"
#include "tests/data/helper_data.h"
#include "trainer/run_private.h"

/* Resolves a scenario with this body of `common` ("task: sft, seed: 3"). */
void helper_config(uint64_t steps, struct config *out, const char *format, ...)
    TWINSTEP_PRINTF(3, 4);

/* Opens the data set that the configuration names. */
void helper_data_open(const struct config *config, struct arena *arena, struct dataset *out);

/* Writes a JSONL file of `samples` pre-tokenised samples of unequal lengths, drawn below `vocab`;
 * every sequence has 4 to `longest` tokens, at least 2 of them labelled. The caller removes the
 * file. */
void helper_ids_write(enum task task, uint64_t vocab, uint64_t seed, uint32_t samples,
                      uint32_t longest, char out_path[HELPER_PATH_SIZE]);

/* Opens the data set of such a file, and removes the file. */
void helper_ids_open(const struct config *config, uint64_t seed, uint32_t samples, uint32_t longest,
                     struct arena *arena, struct dataset *out);

/* Let a program run on another backend. The first puts the module that TWINSTEP_BACKEND names (a
 * file, or auto) into a configuration, and does nothing where the variable is not set. The second
 * says whether that module lacks its device, and says so on standard error; main then returns 77.
 */
void helper_backend(struct config *config);
int helper_backend_lacks(void);

void helper_run_open(const struct config *config, const struct dataset *dataset,
                     const struct run_options *options, struct run *out);
const struct record *helper_step(struct run *run);

/* Opens a small training on drawn ids: one layer, vocabulary 19, `samples` of 4 to 16 tokens. It
 * records tensors and poisons its buffers, and can be stepped 16 times. */
struct helper_small {
    struct config config;
    struct arena arena;
    struct dataset dataset;
    struct run run;
};
/* Does the same with this body of `common`, the model aside. */
void helper_small_open(struct helper_small *bench, uint32_t samples, const char *format, ...)
    TWINSTEP_PRINTF(3, 4);
void helper_small_close(struct helper_small *bench);

/* Returns a number that is uniform in [-1, 1), of 53 bits. It is drawn by counter, so every caller
 * can print seed and index. */
double helper_uniform(uint64_t seed, uint64_t index);

/* What `updates` updates leave behind, as digests. Nothing in it depends on how an update was split
 * into micro-batches. */
struct helper_outcome {
    struct digest gradients; /* stored gradients of each update, before clipping, and their norms */
    struct digest forward;   /* activations of each update, when the run records phases */
    struct digest scalars;   /* all reals and integers of each record, LR per group */
    struct digest params;    /* bytes of the parameters at the end */
    struct digest root;      /* the run's own root */
};

/* Steps a run, which must record tensors, and collects its outcome. */
void helper_outcome_of(struct run *run, uint64_t updates, struct helper_outcome *out);

/* Returns the name of the first part that differs, or NULL when both are equal. */
const char *helper_outcome_gap(const struct helper_outcome *a, const struct helper_outcome *b);

/* Returns 1 when this machine has the instruction set, an enum isa of kernels/op.h. */
int helper_has_isa(enum isa isa);

#endif
