/* SPDX-License-Identifier: Apache-2.0
 * The goldens of transformers and TRL (tests/golden/hf): their numbers, and the same trainings
 * opened here from the scenario files beside them. No criterion is in here. Failures are cmocka
 * failures. */
#ifndef TWINSTEP_TESTS_MODEL_HELPER_HF_H
#define TWINSTEP_TESTS_MODEL_HELPER_HF_H

#include <jansson.h>

#include "checkpoints/safetensors.h"
#include "tests/trainer/helper_train.h"

#define HELPER_HF_STEPS 20
#define HELPER_HF_LINES 10

/* One model's golden.json and golden.safetensors. */
struct hf_golden {
    const char *model;
    struct arena arena;
    json_t *root;
    struct safetensors_file tensors;
};
void helper_hf_golden_open(const char *model, struct hf_golden *out);
void helper_hf_golden_close(struct hf_golden *golden);

/* Returns golden.json's [group][entry][key], or NULL. */
const json_t *helper_hf_find(const struct hf_golden *golden, const char *group, const char *entry,
                             const char *key);
/* Reads the same entry as a list of `count` numbers. */
void helper_hf_list(const struct hf_golden *golden, const char *group, const char *entry,
                    const char *key, size_t count, double *out);

/* An arm of MODEL/PART.yaml, with overrides, ready to run. */
struct hf_arm {
    struct arena arena;
    struct config config;
    struct dataset dataset;
};
/* `lines` are overrides: "batch.size=4" of common, "arms.f64.batch.size=4", ...; NULL ends them. */
void helper_hf_arm_open(const char *model, const char *part, unsigned arm,
                        const char *const lines[HELPER_HF_LINES], struct hf_arm *out);
void helper_hf_arm_close(struct hf_arm *arm);
void helper_hf_run_open(const struct hf_arm *arm, struct run *out);

/* Copies the values of a parameter, or of its stored gradient, as f64: as many as the row
 * counts. */
void helper_hf_param(struct run *run, uint32_t row, double *out);
void helper_hf_gradient(struct run *run, uint32_t row, double *out);
/* Copies the values of the golden's LABEL/NAME for the same row. */
void helper_hf_tensor(const struct hf_golden *golden, const char *label,
                      const struct param_row *row, double *out);

/* Returns sqrt(sum (a - b)^2), or the length of a where b is NULL. */
double helper_hf_distance(const double *a, const double *b, size_t count);

/* Tells whether the environment variable TWINSTEP_SHOW is set; then figures are printed (ctest
 * -V). */
int helper_hf_showing(void);
void helper_hf_show(const char *format, ...) TWINSTEP_PRINTF(1, 2);

#endif
