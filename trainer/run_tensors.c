/* SPDX-License-Identifier: Apache-2.0
 * Lets the host look at a run's tensors, compares and keeps states. Where both states of a
 * comparison lie in one backend's memory it is made there, by the kernel that counts the numbers of
 * a tensor whose bits an update moved (kernels/update_sizes.h): a state's tensors are to it one
 * tensor of f32 numbers, and the other state what they were before. */
#include "trainer/run_tensors.h"

#include <string.h>

#include "kernels/backend_abi.h"
#include "model/backends.h"
#include "trainer/corruption.h"
#include "trainer/measure_step.h"
#include "trainer/owed_zeros.h"
#include "trainer/run_private.h"
#include "trainer/state_file.h"

struct run_windows {
    struct host_window window[RUN_WINDOWS];
};

/* Zeroed windows are empty ones; the first look through a window takes its memory. */
enum status run_windows_open(struct run *run) {
    return arena_take(&run->arena, 1, sizeof *run->windows, "run", &run->windows);
}

void run_windows_close(struct run *run) {
    for (int i = 0; i < RUN_WINDOWS && run->windows != NULL; i++)
        host_window_close(&run->windows->window[i]);
}

enum status run_read(const struct run *run, enum run_window window, const void *tensor,
                     size_t bytes, void *out_pointer) {
    return host_window_read(&run->windows->window[window], run->backend, tensor, bytes,
                            out_pointer);
}

enum status run_room(const struct run *run, enum run_window window, void *tensor, size_t bytes,
                     void *out_pointer) {
    return host_window_room(&run->windows->window[window], run->backend, tensor, bytes,
                            out_pointer);
}

enum status run_store(const struct run *run, enum run_window window, void *tensor, size_t bytes) {
    return host_window_store(&run->windows->window[window], run->backend, tensor, bytes);
}

enum status run_read_param(const struct run *run, enum run_window window, uint32_t row,
                           void *out_pointer) {
    const struct param_row *const param = &run->table.rows[row];
    return run_read(run, window, run_param(run, row), param->count * dtype_carrier(param->dtype),
                    out_pointer);
}

enum status run_read_weight(const struct run *run, enum run_window window, uint32_t row,
                            void *out_pointer) {
    const struct state_layout *const layout = &run->layout;
    if (!layout->has_master) return run_read_param(run, window, row, out_pointer);
    return run_read(run, window, run_at(run, layout->tensor[row].master),
                    run->table.rows[row].count * dtype_carrier(layout->master_dtype), out_pointer);
}

/* ---- whole states ---- */

static size_t tensor_bytes(const struct run *run) {
    return run->layout.bytes - run->layout.tensors;
}

enum status run_snapshot(const struct run *run, unsigned char *snapshot) {
    owed_zeros_pay(run);
    memcpy(snapshot, run->state.host, run->layout.tensors);
    return backends_pull(run->backend, snapshot + run->layout.tensors, run->state.tensors,
                         tensor_bytes(run));
}

static void restored(struct run *run) {
    owed_zeros_forget(run);
    run->weights_fresh = 0;
    run->known = 0;
    measure_step_forget(run);
    corruption_forget(run);
}

enum status run_restore(struct run *run, const unsigned char *snapshot) {
    memcpy(run->state.host, snapshot, run->layout.tensors);
    restored(run);
    return backends_push(run->backend, run->state.tensors, snapshot + run->layout.tensors,
                         tensor_bytes(run));
}

enum status run_read_state(const struct run *run, const unsigned char **out) {
    unsigned char *bytes;
    if (run->backend == NULL) {
        owed_zeros_pay(run);
        *out = run->state.host;
        return STATUS_OK;
    }
    TRY(run_room(run, WINDOW_STATE, NULL, run->layout.bytes, &bytes));
    *out = bytes;
    return run_snapshot(run, bytes);
}

/* ---- comparing ---- */

/* Compares tensors of one backend, as many at a time as the blocks of the run's own measures hold,
 * which nobody needs between updates. */
static enum status equal_tensors(const struct run *run, const void *a, const void *b, size_t bytes,
                                 int *out) {
    size_t room = 0;
    for (uint32_t i = 0; i < run->owner_count; i++)
        room += update_sizes_blocks(run->table.rows[run->owner[i]].count);
    const size_t numbers = bytes / sizeof(float), most = room * UPDATE_SIZES_BLOCK;
    *out = 1;
    for (size_t first = 0; first < numbers && *out; first += most) {
        const size_t count = numbers - first < most ? numbers - first : most;
        const struct update_sizes_args args = {.dtype = DTYPE_F32,
                                               .count = count,
                                               .now = (const float *)a + first,
                                               .before = (const float *)b + first,
                                               .start = (const float *)b + first,
                                               .blocks = run->moves};
        backends_update_sizes(run->backend, run->model.call.threads, &args, 1);
        TRY(backends_wait(run->backend));
        for (size_t i = 0; i < update_sizes_blocks(count); i++)
            *out = *out && run->moves[i].changed == 0;
    }
    return STATUS_OK;
}

/* Bytes that the host looks at at a time; chosen, not measured. */
#define PIECE ((size_t)16 << 20)

/* Compares tensors of two backends, of which one may be this program: through windows. */
static enum status equal_apart(const struct run *a, const struct run *b, int *out) {
    const size_t bytes = tensor_bytes(a);
    *out = 1;
    for (size_t first = 0; first < bytes && *out; first += PIECE) {
        const size_t count = bytes - first < PIECE ? bytes - first : PIECE;
        const void *x, *y;
        TRY(run_read(a, WINDOW_NOW, a->state.tensors + first, count, &x));
        TRY(run_read(b, WINDOW_NOW, b->state.tensors + first, count, &y));
        *out = memcmp(x, y, count) == 0;
    }
    return STATUS_OK;
}

/* ---- states of two widths ---- */

/* The form of files is one for both widths. `arena` has it until it is closed. */
static enum status form_of(const struct run *run, struct arena *arena, unsigned char **out) {
    const unsigned char *state;
    TRY(run_read_state(run, &state));
    TRY(arena_take(arena, state_file_bytes(&run->table, &run->layout), 1, "a state", out));
    return state_file_make(&run->table, &run->layout, state, *out);
}

static enum status equal_forms(const struct run *a, const struct run *b, int *out) {
    struct arena arena = ARENA_EMPTY;
    unsigned char *x = NULL, *y = NULL;
    enum status status = form_of(a, &arena, &x);
    if (status == STATUS_OK) status = form_of(b, &arena, &y);
    if (status == STATUS_OK) *out = memcmp(x, y, state_file_bytes(&a->table, &a->layout)) == 0;
    arena_close(&arena);
    return status;
}

/* Puts a state into the run that is kept as its twin has it. */
static enum status load_twin(struct run *run, const struct run_kept *kept, struct arena *arena) {
    const struct state_layout *const twin = run->layout.twin;
    unsigned char *bytes, *form, *state;
    if (twin == NULL || twin->bytes != kept->bytes)
        FAIL(STATUS_INTERNAL, "a kept state of %zu bytes: expected %zu", kept->bytes,
             run->layout.bytes);
    TRY(arena_take(arena, kept->bytes, 1, "a kept state", &bytes));
    TRY(arena_take(arena, state_file_bytes(&run->table, twin), 1, "a kept state", &form));
    TRY(arena_take(arena, run->layout.bytes, 1, "a kept state", &state));
    TRY(backends_pull(kept->backend, bytes, kept->memory, kept->bytes));
    TRY(state_file_make(&run->table, twin, bytes, form));
    state_file_read(&run->table, &run->layout, form, state);
    memcpy(run->state.host, state, run->layout.tensors);
    return backends_push(run->backend, run->state.tensors, state + run->layout.tensors,
                         tensor_bytes(run));
}

enum status run_equal(const struct run *a, const struct run *b, int *out) {
    if (a->layout.bytes != b->layout.bytes) return equal_forms(a, b, out);
    owed_zeros_pay(a);
    owed_zeros_pay(b);
    *out = memcmp(a->state.host, b->state.host, a->layout.tensors) == 0;
    if (!*out) return STATUS_OK;
    if (a->backend != b->backend || a->backend == NULL) return equal_apart(a, b, out);
    return equal_tensors(a, a->state.tensors, b->state.tensors, tensor_bytes(a), out);
}

/* ---- keeping ---- */

enum status run_kept_open(const struct run *run, struct run_kept *out) {
    *out = (struct run_kept){
        .backend = run->backend, .bytes = run->layout.bytes, .tensors = run->layout.tensors};
    if (run->backend != NULL) out->arena.source = &run->backend->hidden;
    const enum status status =
        arena_take(&out->arena, out->bytes, 1, "state that is kept", &out->memory);
    if (status != STATUS_MEMORY || run->backend == NULL) return status;
    /* the device has no room for one more state, and the host may */
    out->backend = NULL;
    out->arena.source = NULL;
    return arena_take(&out->arena, out->bytes, 1, "state that is kept", &out->memory);
}

void run_kept_close(struct run_kept *kept) {
    arena_close(&kept->arena);
    kept->memory = NULL;
}

enum status run_keep(const struct run *run, const struct run_kept *kept) {
    if (kept->backend == NULL) return run_snapshot(run, kept->memory);
    TRY(backends_push(kept->backend, kept->memory, run->state.host, kept->tensors));
    return backends_copy(kept->backend, kept->memory + kept->tensors, run->state.tensors,
                         tensor_bytes(run));
}

enum status run_load(struct run *run, const struct run_kept *kept) {
    const unsigned char *const tensors = kept->memory + kept->tensors;
    measure_step_forget(run);
    owed_zeros_forget(run);
    if (kept->bytes != run->layout.bytes) {
        struct arena arena = ARENA_EMPTY;
        const enum status status = load_twin(run, kept, &arena);
        arena_close(&arena);
        return status;
    }
    /* whichever of the two has a device moves the bytes; where none has, it is the same program */
    const struct backend *const moves = kept->backend != NULL ? kept->backend : run->backend;
    TRY(backends_pull(moves, run->state.host, kept->memory, kept->tensors));
    if (run->backend == NULL)
        return backends_pull(moves, run->state.tensors, tensors, tensor_bytes(run));
    if (kept->backend == NULL)
        return backends_push(moves, run->state.tensors, tensors, tensor_bytes(run));
    return backends_copy(moves, run->state.tensors, tensors, tensor_bytes(run));
}

enum status run_take_back(struct run *run, const struct run_kept *kept) {
    TRY(run_load(run, kept));
    restored(run);
    return STATUS_OK;
}

enum status run_kept_equal(const struct run *run, const struct run_kept *kept, int *out) {
    struct host_window window = HOST_WINDOW_EMPTY;
    const unsigned char *head, *tensors;
    owed_zeros_pay(run);
    enum status status =
        host_window_read(&window, kept->backend, kept->memory, kept->tensors, &head);
    if (status == STATUS_OK) *out = memcmp(head, run->state.host, kept->tensors) == 0;
    if (status == STATUS_OK && *out && kept->backend == run->backend && run->backend != NULL) {
        status = equal_tensors(run, run->state.tensors, kept->memory + kept->tensors,
                               tensor_bytes(run), out);
    } else if (status == STATUS_OK && *out) {
        /* the host has the kept state; it is small, or the device had no room for it */
        status = run_read(run, WINDOW_STATE, run->state.tensors, tensor_bytes(run), &tensors);
        if (status == STATUS_OK)
            *out = memcmp(tensors, kept->memory + kept->tensors, tensor_bytes(run)) == 0;
    }
    host_window_close(&window);
    return status;
}

enum status run_kept_read(const struct run_kept *kept, struct host_window *window,
                          const unsigned char **out) {
    return host_window_read(window, kept->backend, kept->memory, kept->bytes, out);
}

enum status run_kept_write(const struct run_kept *kept, const unsigned char *bytes) {
    return backends_push(kept->backend, kept->memory, bytes, kept->bytes);
}
