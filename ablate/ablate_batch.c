/* SPDX-License-Identifier: Apache-2.0
 * Knows settings of a batch by the last part of their names, whatever table they stand in. */
#include "ablate/ablate_batch.h"

#include <string.h>

#include "base/number.h"

enum role { ROLE_NONE = 0, ROLE_ROWS, ROLE_MICRO_BATCHES, ROLE_PROCESSES };

#define VALUE_MOST ((uint64_t)1 << 20) /* of a factor: a product of three fits */

/* Of transformers and TRL, DeepSpeed, Lightning and NeMo, Megatron, verl, OLMo, torchtitan,
 * torchtune, litgpt, nanoGPT, torchrun and accelerate. */
static const struct {
    const char *name;
    enum role role;
} known[] = {
    {"per_device_train_batch_size", ROLE_ROWS},
    {"per_device_batch_size", ROLE_ROWS},
    {"per_gpu_train_batch_size", ROLE_ROWS},
    {"train_micro_batch_size_per_gpu", ROLE_ROWS},
    {"micro_batch_size_per_gpu", ROLE_ROWS},
    {"device_train_microbatch_size", ROLE_ROWS},
    {"micro_batch_size", ROLE_ROWS},
    {"device_batch_size", ROLE_ROWS},
    {"local_batch_size", ROLE_ROWS},
    {"batch_size", ROLE_ROWS},
    {"gradient_accumulation_steps", ROLE_MICRO_BATCHES},
    {"gradient_accumulation_iters", ROLE_MICRO_BATCHES},
    {"gradient_accumulation", ROLE_MICRO_BATCHES},
    {"grad_accumulation_steps", ROLE_MICRO_BATCHES},
    {"grad_accum_steps", ROLE_MICRO_BATCHES},
    {"accumulate_grad_batches", ROLE_MICRO_BATCHES},
    {"accumulation_steps", ROLE_MICRO_BATCHES},
    {"accum_steps", ROLE_MICRO_BATCHES},
    {"nproc_per_node", ROLE_PROCESSES},
    {"num_processes", ROLE_PROCESSES},
    {"world_size", ROLE_PROCESSES},
};

/* Compares with "-" for "_", as options are spelled. */
static int is_called(const char *name, const char *as) {
    for (; *as != '\0' && (*name == *as || (*name == '-' && *as == '_')); as++)
        name++;
    return *name == '\0' && *as == '\0';
}

static enum role role_of(const char *name) {
    const char *const dot = strrchr(name, '.');
    if (dot != NULL) name = dot + 1;
    while (*name == '-' || *name == '+')
        name++;
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (is_called(name, known[i].name)) return known[i].role;
    return ROLE_NONE;
}

static int read_value(const char *text, uint64_t *out) {
    return text != NULL && number_parse_uint(text, out) == STATUS_OK && *out > 0 &&
           *out <= VALUE_MOST;
}

/* Finds the one setting of a role that differs, with its numbers. Returns how many there are; 2 for
 * one whose values are no numbers that could be counted, too. */
static int find_role(const struct batch_setting *settings, size_t count, enum role role,
                     const char **name, uint64_t numbers[2]) {
    int found = 0;
    for (size_t i = 0; i < count; i++) {
        if (role_of(settings[i].name) != role) continue;
        if (found > 0 || !read_value(settings[i].values[0], &numbers[0]) ||
            !read_value(settings[i].values[1], &numbers[1]))
            return 2;
        *name = settings[i].name;
        found = 1;
    }
    return found;
}

int ablate_is_of_batch(const char *name) {
    return role_of(name) != ROLE_NONE;
}

int ablate_is_processes(const char *name) {
    return role_of(name) == ROLE_PROCESSES;
}

/* All roles that differ must make one product: with two of them alone the third would make another
 * batch of it. */
enum status ablate_find_batch(struct batch_setting *settings, size_t count, struct arena *arena,
                              struct batch *out) {
    uint64_t product[2] = {1, 1};
    int roles = 0;
    char *names = NULL;
    *out = (struct batch){.names = NULL};
    for (int role = ROLE_ROWS; role <= ROLE_PROCESSES; role++) {
        uint64_t numbers[2] = {0, 0};
        const char *name = "";
        const int found = find_role(settings, count, (enum role)role, &name, numbers);
        if (found > 1) return STATUS_OK;
        if (found == 0) continue;
        product[0] *= numbers[0];
        product[1] *= numbers[1];
        TRY(arena_format(arena, &names, "%s%s%s", names == NULL ? "" : names,
                         names == NULL ? "" : " x ", name));
        roles++;
    }
    if (roles < 2 || product[0] != product[1]) return STATUS_OK;
    for (size_t i = 0; i < count; i++)
        settings[i].joins = role_of(settings[i].name) != ROLE_NONE;
    *out = (struct batch){.names = names, .product = product[0]};
    return STATUS_OK;
}

enum status ablate_note_batch(const struct batch *batch, const char *between, struct arena *arena,
                              char **out_note) {
    const unsigned long long product = (unsigned long long)batch->product;
    if (between == NULL)
        return arena_format(arena, out_note,
                            "# %s is %llu in both, one effective batch, so they are one factor: "
                            "one alone would train with a batch that neither command has\n",
                            batch->names, product);
    return arena_format(arena, out_note,
                        "# %s is %llu in both, one effective batch, but %s stands between them, so "
                        "they are factors of their own: one alone trains with a batch that neither "
                        "command has, and the answer counts them as one where the runs show that "
                        "they cancel\n",
                        batch->names, product, between);
}
