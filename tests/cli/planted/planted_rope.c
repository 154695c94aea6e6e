/* SPDX-License-Identifier: Apache-2.0
 * A program that is twinstep except for one element of a rotary table: the product's own objects,
 * with the linker's --wrap around the two functions below. Nothing of it is in the product.
 *
 * batch.pad of a configuration, on which no table depends, says where the fault is:
 *     3  every table, at position 5    4  generation's decoding alone, at position 5
 *     5  generation's forward over the prompts alone, at position 1
 * Invariant: without such a pad the program is twinstep. */
#include "model/generate.h"
#include "model/rope_table.h"

#define FREQUENCY 1u
#define FACTOR 1.1f

void __real_rope_table_fill(const struct config *config, uint32_t positions, struct form form,
                            void *cosine, void *sine);
void __wrap_rope_table_fill(const struct config *config, uint32_t positions, struct form form,
                            void *cosine, void *sine);
enum status __real_generator_open(const struct config *config, const struct param_table *table,
                                  const struct generate_limits *limits, struct arena *arena,
                                  struct generator *out);
enum status __wrap_generator_open(const struct config *config, const struct param_table *table,
                                  const struct generate_limits *limits, struct arena *arena,
                                  struct generator *out);

static void plant(const struct config *config, uint32_t position, void *cosine) {
    ((float *)cosine)[position * (config->model.head_dim / 2) + FREQUENCY] *= FACTOR;
}

void __wrap_rope_table_fill(const struct config *config, uint32_t positions, struct form form,
                            void *cosine, void *sine) {
    __real_rope_table_fill(config, positions, form, cosine, sine);
    if (config->batch.pad == 3 && positions > 5) plant(config, 5, cosine);
}

enum status __wrap_generator_open(const struct config *config, const struct param_table *table,
                                  const struct generate_limits *limits, struct arena *arena,
                                  struct generator *out) {
    TRY(__real_generator_open(config, table, limits, arena, out));
    if (config->batch.pad == 4) plant(config, 5, out->decode.cosine);
    if (config->batch.pad == 5) plant(config, 1, out->prefill.cosine);
    return STATUS_OK;
}
