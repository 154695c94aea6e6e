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

/* The one setting of a role, with its numbers; `count`: there is none, or more than one. */
static size_t only_one(const struct batch_setting *settings, size_t count, enum role role,
                       uint64_t numbers[2]) {
    size_t found = count;
    for (size_t i = 0; i < count; i++) {
        if (role_of(settings[i].name) != role) continue;
        if (found != count || !read_value(settings[i].values[0], &numbers[0]) ||
            !read_value(settings[i].values[1], &numbers[1]))
            return count;
        found = i;
    }
    return found;
}

enum status ablate_find_batch(struct batch_setting *settings, size_t count, struct arena *arena,
                              char **out_note) {
    static const enum role sets[][3] = {{ROLE_ROWS, ROLE_MICRO_BATCHES, ROLE_PROCESSES},
                                        {ROLE_ROWS, ROLE_MICRO_BATCHES, ROLE_NONE},
                                        {ROLE_ROWS, ROLE_PROCESSES, ROLE_NONE},
                                        {ROLE_MICRO_BATCHES, ROLE_PROCESSES, ROLE_NONE}};
    *out_note = NULL;
    for (size_t s = 0; s < COUNT_OF(sets); s++) {
        uint64_t product[2] = {1, 1}, numbers[2];
        char *names = NULL;
        int holds = 1;
        for (int r = 0; r < 3 && sets[s][r] != ROLE_NONE; r++) {
            const size_t found = only_one(settings, count, sets[s][r], numbers);
            if (found == count) {
                holds = 0;
                break;
            }
            product[0] *= numbers[0];
            product[1] *= numbers[1];
            TRY(arena_format(arena, &names, "%s%s%s", names == NULL ? "" : names,
                             names == NULL ? "" : " x ", settings[found].name));
        }
        if (!holds || product[0] != product[1]) continue;
        for (size_t i = 0; i < count; i++)
            for (int r = 0; r < 3; r++)
                settings[i].joins |=
                    sets[s][r] != ROLE_NONE && role_of(settings[i].name) == sets[s][r];
        return arena_format(arena, out_note,
                            "# %s is %llu in both, one effective batch, so they are one factor: "
                            "one alone would train with a batch that neither command has\n",
                            names, (unsigned long long)product[0]);
    }
    return STATUS_OK;
}
