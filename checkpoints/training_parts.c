/* SPDX-License-Identifier: Apache-2.0
 * The smaller files beside weights and optimizer: scheduler, scaler, generators, the position of
 * the data, trainer_state.json. */
#include "checkpoints/training_private.h"

#include "checkpoints/mapped.h"
#include "checkpoints/strict_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static enum status read_numbers(const struct training_opening *opening,
                                const struct torch_place *in, const char *key, size_t *out_count,
                                const double **out) {
    struct torch_place list, item;
    double *numbers;
    *out_count = 0;
    if (!torch_find(in, key, &list)) return STATUS_OK;
    TRY(torch_count(&list, "a list of learning rates", out_count));
    TRY(arena_take(opening->arena, *out_count, sizeof *numbers, "learning rates", &numbers));
    for (size_t i = 0; i < *out_count; i++) {
        TRY(torch_item(&list, i, &item));
        TRY(torch_number(&item, &numbers[i]));
    }
    *out = numbers;
    return STATUS_OK;
}

enum status training_scheduler_of(const struct training_opening *opening,
                                  const struct torch_place *scheduler) {
    struct training_scheduler *out = &opening->folder->scheduler;
    struct torch_place at;
    if (scheduler->value.kind != TORCH_DICT)
        return torch_unexpected(scheduler, "a scheduler's state dict");
    out->is_there = 1;
    if (torch_find(scheduler, "last_epoch", &at)) {
        TRY(torch_integer(&at, &out->last_epoch));
        out->has_last_epoch = 1;
    }
    if (torch_find(scheduler, "_step_count", &at)) {
        TRY(torch_integer(&at, &out->step_count));
        out->has_step_count = 1;
    }
    TRY(read_numbers(opening, scheduler, "base_lrs", &out->base_count, &out->base_lrs));
    return read_numbers(opening, scheduler, "_last_lr", &out->last_count, &out->last_lrs);
}

enum status training_scaler_of(const struct training_opening *opening,
                               const struct torch_place *scaler) {
    struct training_scaler *out = &opening->folder->scaler;
    struct torch_place at;
    if (!torch_find(scaler, "scale", &at)) return STATUS_OK; /* a scaler that was switched off */
    TRY(torch_number(&at, &out->scale));
    TRY(torch_key(scaler, "_growth_tracker", &at));
    TRY(torch_integer(&at, &out->growth_tracker));
    if (torch_find(scaler, "growth_interval", &at)) TRY(torch_integer(&at, &out->growth_interval));
    out->is_there = 1;
    return STATUS_OK;
}

/* Collects the digests of what a value holds, in its order. Values may stand in many places, so a
 * file of some kilobytes can spell a tree without end: the limit cuts it. */
struct leaves {
    struct arena *arena;
    struct digest *digests;
    size_t count, room;
};

#define LEAVES ((size_t)1 << 20)

static enum status add_leaf(struct leaves *leaves, const char *kind, const void *bytes,
                            size_t length) {
    if (leaves->count >= LEAVES)
        FAIL(STATUS_INPUT, "expected at most %zu values in a generator's state, got more", LEAVES);
    TRY(arena_grow(leaves->arena, leaves->count + 1, &leaves->room, sizeof *leaves->digests,
                   "digests", &leaves->digests));
    digest_bytes(kind, bytes, length, &leaves->digests[leaves->count++]);
    return STATUS_OK;
}

static enum status add_value(struct leaves *leaves, const struct torch_file *file,
                             const struct torch_value *value);

static enum status add_members(struct leaves *leaves, const struct torch_file *file,
                               const struct torch_members *members) {
    const uint64_t count = members->count;
    TRY(add_leaf(leaves, "count", &count, sizeof count));
    for (size_t i = 0; i < members->count; i++) {
        if (members->keys != NULL) TRY(add_value(leaves, file, &members->keys[i]));
        TRY(add_value(leaves, file, &members->values[i]));
    }
    return STATUS_OK;
}

static enum status add_tensor(struct leaves *leaves, const struct torch_file *file,
                              const struct torch_tensor *tensor) {
    struct safetensors_tensor rows;
    TRY(torch_tensor_rows(file, tensor, "a generator's state", leaves->arena, &rows));
    return add_leaf(leaves, safetensors_dtype_name(rows.dtype), rows.data,
                    (size_t)(rows.end - rows.begin));
}

static enum status add_value(struct leaves *leaves, const struct torch_file *file,
                             const struct torch_value *value) {
    switch (value->kind) {
    case TORCH_LIST:
    case TORCH_TUPLE:
    case TORCH_DICT:
        return add_members(leaves, file, value->as.members);
    case TORCH_TENSOR:
        return add_tensor(leaves, file, value->as.tensor);
    case TORCH_TEXT:
    case TORCH_BYTES:
    case TORCH_BIG:
        return add_leaf(leaves, "bytes", value->as.text->bytes, value->as.text->length);
    case TORCH_OPAQUE:
        TRY(add_leaf(leaves, "name", value->as.opaque->name, strlen(value->as.opaque->name)));
        if (value->as.opaque->arguments != NULL)
            TRY(add_members(leaves, file, value->as.opaque->arguments));
        return add_value(leaves, file, &value->as.opaque->state);
    case TORCH_REAL:
        return add_leaf(leaves, "real", &value->as.real, sizeof value->as.real);
    case TORCH_STORAGE:
        return add_leaf(leaves, "storage", value->as.storage->bytes,
                        (size_t)value->as.storage->length);
    default:
        return add_leaf(leaves, "number", &value->as.integer, sizeof value->as.integer);
    }
}

/* Adds one generator. A state that cannot be read is none: what an update did is read without it.
 */
static enum status add_generator(const struct training_opening *opening,
                                 const struct torch_place *state, const char *prefix,
                                 const char *name) {
    struct training_folder *folder = opening->folder;
    struct training_generator *all;
    struct leaves leaves = {.arena = opening->arena};
    char *whole;
    const enum status status = add_value(&leaves, state->file, &state->value);
    if (status == STATUS_INPUT) return STATUS_OK;
    TRY(status);
    TRY(arena_format(opening->arena, &whole, "%s%s", prefix, name));
    TRY(arena_take(opening->arena, folder->generator_count + 1, sizeof *all, "generators", &all));
    if (folder->generator_count > 0)
        memcpy(all, folder->generators, folder->generator_count * sizeof *all);
    all[folder->generator_count] =
        (struct training_generator){.name = whole, .value = state->value};
    digest_root("generator", leaves.digests, leaves.count, &all[folder->generator_count++].digest);
    folder->generators = all;
    return STATUS_OK;
}

/* What a state that stands alone is of, or NULL: torch.get_rng_state() or that of a device, both
 * tensors of bytes, random.getstate() and numpy.random.get_state() (readback/generators.c). */
static const char *name_alone(const struct torch_value *state) {
    const struct torch_members *const parts =
        state->kind == TORCH_TUPLE || state->kind == TORCH_LIST ? state->as.members : NULL;
    if (state->kind == TORCH_TENSOR && state->as.tensor->dtype == SAFETENSORS_U8 &&
        state->as.tensor->rank == 1)
        return state->as.tensor->count == 5056 ? "torch cpu"
               : state->as.tensor->count == 16 ? "torch cuda"
                                               : NULL;
    if (parts == NULL || parts->count < 3) return NULL;
    if (parts->count == 3 && parts->values[0].kind == TORCH_INT &&
        parts->values[1].kind == TORCH_TUPLE)
        return "python";
    return parts->values[0].kind == TORCH_TEXT && parts->values[0].as.text->length == 7 &&
                   memcmp(parts->values[0].as.text->bytes, "MT19937", 7) == 0
               ? "numpy"
               : NULL;
}

/* Adds what a list holds: of torch.cuda.get_rng_state_all() a state for each device, of Megatron's
 * rng_state a dict. */
static enum status add_listed(const struct training_opening *opening,
                              const struct torch_place *entry, const char *prefix) {
    const char *const alone = name_alone(&entry->value);
    char name[64];
    if (entry->value.kind == TORCH_DICT) return training_generators_of(opening, entry, prefix);
    if (alone == NULL) return STATUS_OK;
    if (strcmp(alone, "torch cuda") == 0)
        snprintf(name, sizeof name, "%s[%" PRId64 "]", alone, entry->index);
    else
        snprintf(name, sizeof name, "%s", alone);
    return add_generator(opening, entry, prefix, name);
}

/* More are nobody's: a file of some kilobytes could name a million. */
#define GENERATORS 256

enum status training_generators_of(const struct training_opening *opening,
                                   const struct torch_place *states, const char *prefix) {
    const char *const alone = name_alone(&states->value);
    const int is_dict = states->value.kind == TORCH_DICT;
    size_t count;
    if (alone != NULL) return add_generator(opening, states, prefix, alone);
    if (!is_dict && states->value.kind != TORCH_LIST && states->value.kind != TORCH_TUPLE)
        return STATUS_OK;
    TRY(torch_count(states, "generators' states", &count));
    for (size_t i = 0; i < count && opening->folder->generator_count < GENERATORS; i++) {
        struct torch_place entry;
        const enum status status =
            is_dict ? torch_entry(states, i, &entry) : torch_item(states, i, &entry);
        if (status == STATUS_INPUT) continue; /* a key of another kind */
        TRY(status);
        if (!is_dict)
            TRY(add_listed(opening, &entry, prefix));
        else if (entry.key != NULL)
            TRY(add_generator(opening, &entry, prefix, entry.key));
    }
    return STATUS_OK;
}

struct numbers {
    struct arena *arena;
    struct training_number *numbers;
    size_t count, room;
};

static enum status add_numbers(struct numbers *numbers, const struct torch_place *dict, int depth) {
    size_t count;
    TRY(torch_count(dict, "a dict", &count));
    for (size_t i = 0; i < count && numbers->count < 256; i++) {
        struct torch_place entry;
        char way[TORCH_SHOWN_SIZE], *key;
        double value = 0.0;
        TRY(torch_entry(dict, i, &entry));
        if (entry.value.kind == TORCH_DICT && depth > 0)
            TRY(add_numbers(numbers, &entry, depth - 1));
        if (!torch_is_number(&entry.value)) continue;
        TRY(torch_number(&entry, &value));
        torch_way(&entry, way);
        TRY(arena_text(numbers->arena, way, strlen(way), &key));
        TRY(arena_grow(numbers->arena, numbers->count + 1, &numbers->room, sizeof *numbers->numbers,
                       "numbers", &numbers->numbers));
        numbers->numbers[numbers->count++] = (struct training_number){key, value};
    }
    return STATUS_OK;
}

enum status training_numbers_of(const struct training_opening *opening,
                                const struct torch_place *dict, const struct training_number **out,
                                size_t *out_count) {
    struct numbers numbers = {.arena = opening->arena};
    if (dict->value.kind == TORCH_DICT) TRY(add_numbers(&numbers, dict, 8));
    *out = numbers.numbers;
    *out_count = numbers.count;
    return STATUS_OK;
}

/* Python's json writes NaN and Infinity, which JSON has not, for a loss that is one. Each becomes
 * an empty object, which fits into its place and is no number, so the row is read without it. */
static void blank_specials(unsigned char *bytes, size_t length) {
    static const char *const words[] = {"-Infinity", "Infinity", "NaN"};
    int in_text = 0;
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == '"') in_text = !in_text;
        if (in_text && bytes[i] == '\\') i++;
        if (in_text) continue;
        for (size_t k = 0; k < COUNT_OF(words); k++) {
            const size_t word = strlen(words[k]);
            if (word > length - i || memcmp(bytes + i, words[k], word) != 0) continue;
            memset(bytes + i, ' ', word);
            memcpy(bytes + i, "{}", 2);
            break;
        }
    }
}

static int json_number(const json_t *row, const char *key, double *out) {
    const json_t *value = json_object_get(row, key);
    if (!json_is_number(value)) return 0;
    *out = json_number_value(value);
    return 1;
}

static enum status read_log(const struct training_opening *opening, const char *path,
                            const json_t *history) {
    struct training_folder *folder = opening->folder;
    struct training_log_row *rows;
    if (history == NULL) return STATUS_OK;
    if (!json_is_array(history))
        FAIL(STATUS_INPUT, "%s: log_history: expected an array of rows, got %s", path,
             strict_json_kind(history));
    TRY(arena_take(opening->arena, json_array_size(history), sizeof *rows, "rows", &rows));
    for (size_t i = 0; i < json_array_size(history); i++) {
        const json_t *row = json_array_get(history, i);
        struct training_log_row *out = &rows[folder->log_count];
        const json_t *step = json_object_get(row, "step");
        if (!json_is_integer(step)) continue;
        *out = (struct training_log_row){.step = json_integer_value(step)};
        out->has_lr = json_number(row, "learning_rate", &out->lr);
        out->has_loss = json_number(row, "loss", &out->loss);
        out->has_norm = json_number(row, "grad_norm", &out->norm);
        folder->log_count += (size_t)(out->has_lr || out->has_loss || out->has_norm);
    }
    folder->log = rows;
    return STATUS_OK;
}

static enum status read_fields(const struct training_opening *opening, const char *path,
                               const json_t *state) {
    struct training_folder *folder = opening->folder;
    uint64_t step, most;
    if (!strict_json_count(json_object_get(state, "global_step"), &step) || step > INT64_MAX)
        FAIL(STATUS_INPUT, "%s: global_step: expected a whole number from 0 on, got %s", path,
             strict_json_kind(json_object_get(state, "global_step")));
    folder->has_step = 1;
    folder->global_step = (int64_t)step;
    if (strict_json_count(json_object_get(state, "max_steps"), &most) && most <= INT64_MAX)
        folder->max_steps = (int64_t)most;
    double epoch;
    if (json_number(state, "epoch", &epoch)) folder->epoch = epoch;
    return read_log(opening, path, json_object_get(state, "log_history"));
}

enum status training_state_file(const struct training_opening *opening, const char *path) {
    struct mapped file;
    unsigned char *copy;
    json_t *state;
    TRY(mapped_open(path, &file));
    enum status status = arena_take(opening->arena, file.length, 1, "trainer_state.json", &copy);
    if (status == STATUS_OK && file.length > 0) memcpy(copy, file.bytes, file.length);
    const size_t length = file.length;
    mapped_close(&file);
    TRY(status);
    blank_specials(copy, length);
    TRY(strict_json_object(path, copy, length, &state));
    status = read_fields(opening, path, state);
    json_decref(state);
    return status;
}
