/* SPDX-License-Identifier: Apache-2.0
 * A checkpoint is mapped; "keyed 1" reads it once, and "leaf 1" one tensor at a time as carriers.
 *
 * Invariant: equal digests mean equal names, dtypes, shapes and bits, so nothing here rounds. */
#include "cli/certify_weights.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "checkpoints/layers.h"
#include "checkpoints/training_folder.h"
#include "cli/json.h"
#include "cli/verb.h"
#include "determinism/foreign.h"
#include "determinism/keyed_digest.h"
#include "determinism/trace.h"

struct weights {
    const struct certify_side *side;
    const struct record *record;
    const char *folder;
    int keyed;
    struct arena *arena;
    size_t count;
    const struct safetensors_tensor *const *tensors; /* sorted by name */
    uint32_t equal, missing, unrecorded;
    uint32_t differ;
    json_t *list; /* the names that differ or are missing; NULL for text */
};

/* The word of "keyed 1" for a dtype of safetensors, or NULL. */
static const char *keyed_name(enum safetensors_dtype dtype) {
    static const char *const names[SAFETENSORS_DTYPES] = {
        [SAFETENSORS_BOOL] = "bool",    [SAFETENSORS_U8] = "u8",        [SAFETENSORS_I8] = "i8",
        [SAFETENSORS_F8_E5M2] = "e5m2", [SAFETENSORS_F8_E4M3] = "e4m3", [SAFETENSORS_I16] = "i16",
        [SAFETENSORS_U16] = "u16",      [SAFETENSORS_F16] = "f16",      [SAFETENSORS_BF16] = "bf16",
        [SAFETENSORS_I32] = "i32",      [SAFETENSORS_U32] = "u32",      [SAFETENSORS_F32] = "f32",
        [SAFETENSORS_F64] = "f64",      [SAFETENSORS_I64] = "i64",      [SAFETENSORS_U64] = "u64"};
    return names[dtype];
}

static enum status fail_dtype(const struct weights *w, const struct safetensors_tensor *tensor) {
    FAIL(STATUS_UNSUPPORTED, "%s: tensor %s: digests of kind \"%s\" of %s are not known",
         tensor->path, tensor->name, w->keyed ? "keyed 1" : "leaf 1",
         safetensors_dtype_name(tensor->dtype));
}

static enum status leaf_of(const struct weights *w, const char *name,
                           const struct safetensors_tensor *tensor, struct arena *arena,
                           struct digest *out) {
    size_t shape[DIGEST_MAX_RANK];
    enum dtype dtype;
    void *carriers;
    if (!safetensors_dtype_number(tensor->dtype, &dtype) || tensor->rank > DIGEST_MAX_RANK)
        return fail_dtype(w, tensor);
    for (size_t i = 0; i < tensor->rank; i++)
        shape[i] = (size_t)tensor->shape[i];
    TRY(arena_take(arena, (size_t)tensor->count, dtype_carrier(dtype), "tensor", &carriers));
    TRY(safetensors_numbers(tensor, 0, (size_t)tensor->count, carriers));
    return digest_tensor(name, dtype, tensor->rank, shape, carriers, out);
}

/* A digest covers the name, which is the run's. */
static enum status digest_of(const struct weights *w, const char *name,
                             const struct safetensors_tensor *tensor, struct digest *out) {
    const char *const dtype = keyed_name(tensor->dtype);
    struct arena arena = ARENA_EMPTY;
    if (!w->keyed) {
        const enum status status = leaf_of(w, name, tensor, &arena, out);
        arena_close(&arena);
        return status;
    }
    if (dtype == NULL) return fail_dtype(w, tensor);
    const uint64_t sum = keyed_sum(tensor->data, keyed_width(dtype), 0, tensor->count);
    digest_keyed(name, dtype, tensor->rank, tensor->shape, sum, out);
    return STATUS_OK;
}

static void tell(const struct weights *w, const char *name, const char *what) {
    if (w->list != NULL)
        json_array_append_new(w->list,
                              json_pack("{so ss}", "tensor", json_text(name), "why", what));
    else
        printf("  %s: %s\n", name, what);
}

/* Whether the run recorded the tensor with this dtype and this shape. */
static int is_of_kind(const struct trace_foreign *foreign, uint32_t index,
                      const struct safetensors_tensor *tensor) {
    const char *const dtype = keyed_name(tensor->dtype);
    uint64_t shape[DIGEST_MAX_RANK];
    uint32_t rank;
    if (dtype == NULL || strcmp(dtype, foreign->dtypes[index]) != 0) return 0;
    if (!foreign_shape(foreign->shapes[index], shape, DIGEST_MAX_RANK, &rank)) return 0;
    return rank == tensor->rank && memcmp(shape, tensor->shape, rank * sizeof *shape) == 0;
}

/* What is said of a tensor with another digest: dtype and shape only where they are others. Own
 * traces hold none. */
static void say_why(const struct weights *w, uint32_t index,
                    const struct safetensors_tensor *tensor, char *out, size_t room) {
    const struct trace_foreign *const foreign = w->side->run->plan.foreign;
    char shape[SAFETENSORS_SHAPE_TEXT];
    snprintf(out, room, "differs");
    if (foreign == NULL || is_of_kind(foreign, index, tensor)) return;
    safetensors_shape_text(tensor, shape);
    snprintf(out, room, "differs; it is %s there and was %.40s [%.80s] in the run", shape,
             foreign->dtypes[index], foreign->shapes[index]);
}

/* The folder's tensor of that name, or of the same name without what wrappers put before either;
 * NULL: it has none. */
static const struct safetensors_tensor *find(const struct weights *w, const char *name) {
    const size_t place = safetensors_place(w->tensors, w->count, name);
    const char *const bare = name + layer_wrapper_length(name);
    if (place < w->count) return w->tensors[place];
    for (size_t i = 0; i < w->count; i++) {
        const char *const other = w->tensors[i]->name;
        if (strcmp(other + layer_wrapper_length(other), bare) == 0) return w->tensors[i];
    }
    return NULL;
}

/* Compares one tensor of the run with that of the folder. */
static enum status hold(struct weights *w, uint32_t index) {
    const struct trace_run_plan *plan = &w->side->run->plan;
    const char *name = plan->tensors[index];
    const uint8_t *recorded = w->record->tensor_digests[index][TENSOR_DIGEST_PARAMETER];
    const struct safetensors_tensor *const tensor = find(w, name);
    struct digest digest;
    char why[320];
    if (!record_has_digest(recorded)) {
        w->unrecorded++;
        return STATUS_OK;
    }
    if (tensor == NULL) {
        w->missing++;
        tell(w, name, "not there");
        return STATUS_OK;
    }
    TRY(digest_of(w, name, tensor, &digest));
    if (memcmp(digest.byte, recorded, DIGEST_BYTES) == 0) {
        w->equal++;
        return STATUS_OK;
    }
    w->differ++;
    say_why(w, index, tensor, why, sizeof why);
    tell(w, name, why);
    return STATUS_OK;
}

static enum status hold_all(struct weights *w, char **out_words, int *out_exit) {
    const struct trace_run *run = w->side->run;
    for (uint32_t i = 0; i < run->plan.shape.tensors; i++)
        TRY(hold(w, i));
    if (w->equal + w->differ + w->missing == 0)
        FAIL(STATUS_UNTESTABLE, "%s: run %s: no digest of a tensor was recorded in update %" PRIu64,
             w->side->path, run->plan.id, w->record->step);
    *out_exit = w->differ > 0 ? EXIT_DIFFERS : w->missing > 0 ? EXIT_UNTESTABLE : EXIT_AS_EXPECTED;
    TRY(arena_format(w->arena, out_words,
                     "update %" PRIu64 " against %s: %" PRIu32 " tensors equal, %" PRIu32
                     " differ, %" PRIu32 " not there",
                     w->record->step, w->folder, w->equal, w->differ, w->missing));
    if (w->list != NULL)
        return json_print(json_pack(
            "{ss ss sI ss sb ss so ss ss sI sI sI sO}", "trace", w->side->path, "run", run->plan.id,
            "update", (json_int_t)w->record->step, "weights", w->folder, "configuration_altered",
            w->side->altered, "chain", certify_chain_word(w->side), "broken",
            json_positive(w->side->certificate.broken), "column", w->side->certificate.column,
            "why", w->side->certificate.why, "equal", (json_int_t)w->equal, "differ",
            (json_int_t)w->differ, "missing", (json_int_t)w->missing, "tensors", w->list));
    printf("%s, run %s, %s\n", w->side->path, run->plan.id, *out_words);
    return STATUS_OK;
}

/* Safetensors as they are, and any other folder of a trainer through the reader of those. */
static enum status open_and_hold(struct weights *w, char **out_words, int *out_exit) {
    struct checkpoint checkpoint;
    struct training_folder *folder;
    if (checkpoint_open(w->folder, w->arena, &checkpoint) == STATUS_OK) {
        w->count = checkpoint.count;
        w->tensors = checkpoint.tensors;
        const enum status status = hold_all(w, out_words, out_exit);
        checkpoint_close(&checkpoint);
        return status;
    }
    TRY(arena_take(w->arena, 1, sizeof *folder, "folder", &folder));
    TRY(training_weights_open(w->folder, w->arena, folder));
    w->count = folder->weight_count;
    w->tensors = folder->weights;
    const enum status status = hold_all(w, out_words, out_exit);
    training_folder_close(folder);
    return status;
}

enum status certify_weights(const struct certify_side *side, const char *at, const char *folder,
                            int as_json, struct arena *arena, char **out_words, int *out_exit) {
    const struct trace_run *run = side->run;
    const struct trace_foreign *foreign = run->plan.foreign;
    struct weights w = {.side = side, .folder = folder, .arena = arena};
    uint64_t update;
    const enum status parsed = number_parse_uint(at, &update);
    if (parsed != STATUS_OK) return status_prefix(parsed, "certify: --at with --weights");
    for (uint64_t i = 0; i < run->updates && w.record == NULL; i++)
        if (trace_row(run, i)->step == update) w.record = trace_row(run, i);
    TRY(trace_rows_status(side->image));
    if (w.record == NULL)
        FAIL(STATUS_INPUT,
             "%s: run %s: --at: expected an update from %" PRIu64 " to %" PRIu64 ", got %" PRIu64,
             side->path, run->plan.id, side->certificate.first,
             run->updates > 0 ? trace_row(run, run->updates - 1)->step : 0, update);
    w.keyed = foreign != NULL && strcmp(foreign->digest, "keyed 1") == 0;
    w.list = as_json ? json_array() : NULL;
    const enum status status = open_and_hold(&w, out_words, out_exit);
    json_decref(w.list);
    return status;
}
