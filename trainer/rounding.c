/* SPDX-License-Identifier: Apache-2.0
 * Draws the numbers and finds the neighbours. One thread does it, because a draw costs little
 * beside a backward. */
#include "trainer/rounding.h"

#include <string.h>

#include "base/real.h"
#include "determinism/stream.h"
#include "model/backends.h"
#include "trainer/run_private.h"
#include "trainer/streams.h"

/* Words are drawn 256 at a time. The number was chosen so that they fit the stack and the first
 * cache; no bit depends on it, as each word has its own address. */
enum { WORDS = 256 };

double rounding_draw(double value, enum dtype dtype, double u) {
    if (!real_finite_f64(value)) return value;
    const double magnitude = real_abs_f64(value);
    const double step = dtype_spacing(magnitude, dtype);
    const double steps = magnitude / step; /* exact, because step is a power of two */
    const double below = (double)(uint64_t)steps;
    const double chosen = u < steps - below ? below + 1.0 : below;
    return dtype_round(real_copysign_f64(chosen * step, value), dtype);
}

static enum status site_of(const struct run *run, uint32_t row, struct stream_site *out) {
    const struct param_row *param = &run->table.rows[row];
    const int in_layer =
        param->role != ROLE_EMBEDDING && param->role != ROLE_HEAD && param->role != ROLE_NORM_FINAL;
    const struct stream_address address = {.stream = STREAM_ROUNDING,
                                           .layer = in_layer ? (uint64_t)param->layer + 1 : 0,
                                           .op = (uint64_t)param->role,
                                           .update = streams_update(run, STREAM_ROUNDING),
                                           .last_element =
                                               param->count == 0 ? 0 : param->count - 1};
    return stream_pack(&address, out);
}

static int is_drawn(const struct run *run) {
    return run->config.numerics.rounding == ROUNDING_STOCHASTIC;
}

/* No framework computes in fp8. A loop without masters widens the parameters, steps, and narrows
 * them again. */
static int is_unmastered_fp8(const struct run *run) {
    return dtype_width((enum dtype)run->config.numerics.param) == 1 && !run->layout.has_master;
}

enum status rounding_open(struct run *run) {
    if (!is_drawn(run) && !is_unmastered_fp8(run)) return STATUS_OK;
    for (uint32_t i = 0; is_drawn(run) && i < run->owner_count; i++) {
        struct stream_site unused;
        TRY(site_of(run, run->owner[i], &unused));
    }
    struct arena *const arena = run->staged == NULL ? arena_hidden(&run->arena) : &run->arena;
    return arena_take(arena, run->table.elements, sizeof *run->wide, "f32 copies", &run->wide);
}

/* Who has the tensors of the step: the run's backend, or this program where it steps. */
static const struct backend *stepper(const struct run *run) {
    return run->staged == NULL ? run->backend : NULL;
}

/* Dtypes narrower than f32 are carried in f32, so the copy converts nothing. */
enum status rounding_begin(struct run *run) {
    if (run->wide == NULL) return STATUS_OK;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        struct optim_tensor *tensor = &run->tensors[i];
        float *const copy = run->wide + run->packed[run->owner[i]];
        TRY(backends_copy(stepper(run), copy, tensor->param, tensor->count * sizeof *copy));
        tensor->master = copy;
        tensor->master_dtype = DTYPE_F32;
    }
    return STATUS_OK;
}

static enum status round_tensor(struct run *run, uint32_t index, const float *wide, float *param) {
    const struct optim_tensor *tensor = &run->tensors[index];
    struct stream_site site;
    uint32_t words[WORDS];
    const uint64_t seed = streams_at(run, STREAM_ROUNDING).seed;
    TRY(site_of(run, run->owner[index], &site));
    for (size_t first = 0; first < tensor->count; first += WORDS) {
        const size_t left = tensor->count - first;
        const size_t count = left < WORDS ? left : WORDS;
        stream_words(seed, site, first, count, words);
        for (size_t i = 0; i < count; i++)
            param[first + i] = (float)rounding_draw((double)wide[first + i], tensor->param_dtype,
                                                    stream_uniform(words[i]));
    }
    const enum param_role role = run->table.rows[run->owner[index]].role;
    stream_ledger_add(&run->ledger, STREAM_ROUNDING, (uint32_t)role, tensor->count);
    return STATUS_OK;
}

/* Only drawn roundings are left to do: to nearest the optimizer has rounded already, as it rounds
 * every parameter that has a master. */
static enum status round_all(struct run *run, struct host_window *from, struct host_window *to) {
    const struct backend *const has = stepper(run);
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct optim_tensor *const tensor = &run->tensors[i];
        const size_t bytes = tensor->count * sizeof(float);
        const float *wide;
        float *param;
        TRY(host_window_read(from, has, tensor->master, bytes, &wide));
        TRY(host_window_room(to, has, tensor->param, bytes, &param));
        TRY(round_tensor(run, i, wide, param));
        TRY(host_window_store(to, has, tensor->param, bytes));
    }
    return STATUS_OK;
}

enum status rounding_end(struct run *run) {
    struct host_window from = HOST_WINDOW_EMPTY, to = HOST_WINDOW_EMPTY;
    if (!is_drawn(run)) return STATUS_OK;
    const enum status status = round_all(run, &from, &to);
    host_window_close(&from);
    host_window_close(&to);
    return status;
}
