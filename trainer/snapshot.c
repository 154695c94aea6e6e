/* SPDX-License-Identifier: Apache-2.0
 * The layout of a state as a digest, and how a stored state gets back into a run. */
#include "trainer/snapshot.h"

#include <string.h>

#include "determinism/digest.h"
#include "trainer/plugins/plugin.h"
#include "trainer/run_private.h"
#include "trainer/run_tensors.h"
#include "trainer/state_file.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define BIG_ENDIAN_HERE 1
#else
#define BIG_ENDIAN_HERE 0
#endif

static void add_bytes(struct digest_stream *to, const char *name, const void *bytes,
                      size_t length) {
    struct digest digest;
    digest_bytes(name, bytes, length, &digest);
    digest_stream_add(to, &digest);
}

static void add_text(struct digest_stream *to, const char *name, const char *text) {
    add_bytes(to, name, text, strlen(text));
}

static void add_words(struct digest_stream *to, const char *name, const uint64_t *words,
                      size_t count) {
    add_bytes(to, name, words, count * sizeof *words);
}

/* Every member of the structs that the state's head is made of, in their order: the digest of a
 * layout names each of them. A member that is missing here fails an assertion below. */
#define HEAD(EACH)                                                                                 \
    EACH(state_head, done)                                                                         \
    EACH(state_head, n)                                                                            \
    EACH(state_head, t)                                                                            \
    EACH(state_head, sampler)                                                                      \
    EACH(state_head, lr)                                                                           \
    EACH(state_head, norm)                                                                         \
    EACH(state_head, coefficient)                                                                  \
    EACH(state_head, scaler)                                                                       \
    EACH(state_head, rng_offset)                                                                   \
    EACH(state_head, stream)                                                                       \
    EACH(state_head, pending)                                                                      \
    EACH(state_head, stored)                                                                       \
    EACH(state_head, window)                                                                       \
    EACH(state_head, root)
#define SAMPLER(EACH) EACH(sampler_state, epoch) EACH(sampler_state, position)
#define SCALER(EACH)                                                                               \
    EACH(state_scaler, scale)                                                                      \
    EACH(state_scaler, growth_tracker)                                                             \
    EACH(state_scaler, hysteresis_left)                                                            \
    EACH(state_scaler, unscaled)
#define STREAM(EACH)                                                                               \
    EACH(state_stream, reseeded)                                                                   \
    EACH(state_stream, seed) EACH(state_stream, skew) EACH(state_stream, slot)
#define PLACE(EACH) EACH(state_place, seed) EACH(state_place, clock)
#define WINDOW(EACH)                                                                               \
    EACH(loss_window, loss)                                                                        \
    EACH(loss_window, logp)                                                                        \
    EACH(loss_window, reward)                                                                      \
    EACH(loss_window, correct) EACH(loss_window, sequences) EACH(loss_window, tokens)

#define MEMBER(type, member)                                                                       \
    {#type "." #member, offsetof(struct type, member), sizeof(((struct type *)0)->member)},
static const struct member {
    const char *name;
    size_t offset, size;
} members[] = {HEAD(MEMBER) SAMPLER(MEMBER) SCALER(MEMBER) STREAM(MEMBER) PLACE(MEMBER)
                   WINDOW(MEMBER)};

/* Nothing may lie between the members: padding would hold whatever the compiler leaves there, and
 * two equal states would differ. */
#define SIZE(type, member) +sizeof(((struct type *)0)->member)
_Static_assert(0 HEAD(SIZE) == sizeof(struct state_head), "padding, or a member that HEAD lacks");
_Static_assert(0 SAMPLER(SIZE) == sizeof(struct sampler_state), "as above");
_Static_assert(0 SCALER(SIZE) == sizeof(struct state_scaler), "as above");
_Static_assert(0 STREAM(SIZE) == sizeof(struct state_stream), "as above");
_Static_assert(0 PLACE(SIZE) == sizeof(struct state_place), "as above");
_Static_assert(0 WINDOW(SIZE) == sizeof(struct loss_window), "as above");

static void add_head(struct digest_stream *to) {
    const uint64_t sizes[] = {sizeof(struct state_head), STREAM_COUNT, STREAM_OPS, STREAM_SLOTS};
    add_words(to, "head", sizes, COUNT_OF(sizes));
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        const uint64_t place[] = {members[i].offset, members[i].size};
        add_words(to, members[i].name, place, COUNT_OF(place));
    }
}

static void add_dtype(struct digest_stream *to, const char *piece, enum dtype dtype) {
    const int narrow = dtype_width(dtype) == sizeof(uint16_t);
    const uint64_t width = narrow ? dtype_width(dtype) : dtype_carrier(dtype);
    add_text(to, piece, dtype_name(dtype));
    add_words(to, "carrier", &width, 1);
}

static void add_class(struct digest_stream *to, const char *kind,
                      const struct config_class *class_) {
    add_text(to, kind, class_->name);
    add_text(to, "module", class_->module_sha256);
}

static void add_tensor(struct digest_stream *to, const struct param_row *row,
                       const struct state_tensor *tensor) {
    const uint64_t shape[] = {row->rank,     row->shape[0],
                              row->shape[1], row->count,
                              row->group,    (uint64_t)(row->trainable != 0),
                              row->uses,     (uint64_t)(int64_t)row->tied_to};
    const uint64_t places[] = {tensor->param, tensor->master, tensor->gradient,
                               tensor->accumulator[0], tensor->accumulator[1]};
    add_text(to, "tensor", row->name);
    add_dtype(to, "param", row->dtype);
    add_words(to, "shape", shape, COUNT_OF(shape));
    add_words(to, "places", places, COUNT_OF(places));
    for (int s = 0; s < OPTIM_SLOTS_MAX; s++) {
        const uint64_t slot[] = {tensor->slot[s], tensor->slot_count[s]};
        add_words(to, "slot", slot, COUNT_OF(slot));
    }
}

struct plan {
    const struct config *config;
    const struct param_table *table;
    const struct state_layout *layout;
    const struct optim_class *optimizer;
    const struct sched_class *schedule;
};

static void layout_digest(const struct plan *plan, struct digest *out) {
    const struct state_layout *layout = state_carried(plan->layout);
    const uint64_t sizes[] = {layout->bytes, layout->reference, layout->schedule,
                              plan->schedule->state_size, (uint64_t)(layout->has_master != 0)};
    struct digest_stream stream;
    digest_stream_init(&stream, "state layout");
    add_head(&stream);
    add_words(&stream, "sizes", sizes, COUNT_OF(sizes));
    if (layout->outlier_numbers > 0)
        add_words(&stream, "outliers",
                  (const uint64_t[]){layout->outliers, layout->outlier_numbers}, 2);
    if (layout->replicas.copies > 0)
        add_words(&stream, "replicas",
                  (const uint64_t[]){layout->replicas.copies, layout->replicas.first,
                                     layout->replicas.bytes},
                  3);
    if (layout->peak > 0) add_words(&stream, "peak", (const uint64_t[]){layout->peak}, 1);
    add_dtype(&stream, "master", layout->master_dtype);
    add_dtype(&stream, "gradient", layout->gradient_dtype);
    add_dtype(&stream, "slots", layout->slots.dtype);
    add_dtype(&stream, "accumulator", layout->accumulator_dtype);
    add_class(&stream, "optimizer", &plan->config->optimizer.which);
    for (uint32_t s = 0; s < plan->optimizer->slot_count; s++)
        add_text(&stream, "slot name", plan->optimizer->slot_names[s]);
    add_class(&stream, "schedule", &plan->config->schedule.which);
    for (uint32_t i = 0; i < plan->table->count; i++)
        add_tensor(&stream, &plan->table->rows[i], &layout->tensor[i]);
    digest_stream_close(&stream, out);
}

static void describe(const struct plan *plan, uint64_t every, struct trace_snapshot_plan *out) {
    struct digest layout;
    layout_digest(plan, &layout);
    const size_t bytes = state_file_bytes(plan->table, plan->layout);
    const int narrow = bytes < state_carried(plan->layout)->bytes;
    *out = (struct trace_snapshot_plan){.bytes = bytes,
                                        .every = every,
                                        .format = narrow ? SNAPSHOT_FORMAT_NARROW : SNAPSHOT_FORMAT,
                                        .big_endian = BIG_ENDIAN_HERE};
    memcpy(out->layout, layout.byte, sizeof out->layout);
}

static enum status plan_in(struct arena *arena, const struct config *config,
                           const struct dataset *dataset, uint64_t every,
                           struct trace_snapshot_plan *out) {
    struct param_table table;
    struct state_layout layout;
    struct plan plan = {.config = config, .table = &table, .layout = &layout};
    TRY(plugin_optimizer(&config->optimizer.which, &plan.optimizer));
    TRY(plugin_schedule(&config->schedule.which, &plan.schedule));
    TRY(params_open(config, arena, &table));
    TRY(state_layout_open(config, &table, plan.optimizer, plan.schedule, dataset->samples, 0, arena,
                          &layout));
    describe(&plan, every, out);
    return STATUS_OK;
}

enum status snapshot_plan(const struct config *config, const struct dataset *dataset,
                          uint64_t every, struct trace_snapshot_plan *out) {
    struct arena arena = ARENA_EMPTY;
    const enum status status = plan_in(&arena, config, dataset, every, out);
    arena_close(&arena);
    return status;
}

static enum status check_layout(const char *path, const struct trace_run *recorded,
                                const struct run *run) {
    const struct plan plan = {&run->config, &run->table, &run->layout, run->optimizer,
                              run->schedule};
    const struct trace_snapshot_plan *stored = &recorded->plan.snapshots;
    struct trace_snapshot_plan here;
    describe(&plan, stored->every, &here);
    if (stored->format != here.format)
        FAIL(STATUS_INPUT,
             "%s: run %s: stored states of version %jd; this twinstep takes version %jd of this "
             "training",
             path, recorded->plan.id, (intmax_t)stored->format, (intmax_t)here.format);
    if (stored->big_endian != here.big_endian)
        FAIL(STATUS_INPUT, "%s: run %s: its states were stored on a machine of another byte order",
             path, recorded->plan.id);
    if (stored->bytes == here.bytes && memcmp(stored->layout, here.layout, sizeof here.layout) == 0)
        return STATUS_OK;
    FAIL(STATUS_INPUT,
         "%s: run %s: its states (%ju bytes) were stored by a build that lays them out differently "
         "(%ju bytes here); replay without --from trains from the start",
         path, recorded->plan.id, (uintmax_t)stored->bytes, (uintmax_t)here.bytes);
}

size_t snapshot_room(const struct run *run) {
    const size_t bytes = state_file_bytes(&run->table, &run->layout);
    return bytes < state_carried(&run->layout)->bytes ? bytes : 0;
}

static enum status put_in(struct arena *arena, struct trace *trace, uint32_t index,
                          const struct run *run, uint64_t step) {
    const size_t bytes = snapshot_room(run);
    const unsigned char *state;
    unsigned char *form;
    TRY(run_read_state(run, &state));
    if (bytes == 0) return trace_put_snapshot(trace, index, step, state);
    TRY(arena_take(arena, bytes, 1, "a stored state", &form));
    TRY(state_file_make(&run->table, &run->layout, state, form));
    return trace_put_snapshot(trace, index, step, form);
}

enum status snapshot_put(struct trace *trace, uint32_t index, const struct run *run,
                         uint64_t step) {
    struct arena arena = ARENA_EMPTY;
    const enum status status = put_in(&arena, trace, index, run, step);
    arena_close(&arena);
    return status;
}

/* Compares the chain of digests over all updates so far, which is both in the state and in the
 * record of its update. */
static enum status check_record(const char *path, const struct trace_run *recorded, uint64_t step,
                                const unsigned char *bytes) {
    struct state_head head;
    memcpy(&head, bytes, sizeof head);
    int agrees = head.done == step;
    const uint64_t first = recorded->updates > 0 ? trace_row(recorded, 0)->step : UINT64_MAX;
    if (agrees && step >= first && step - first < recorded->updates) {
        const struct record *const row = trace_row(recorded, step - first);
        agrees = row->step == step &&
                 memcmp(row->digests[DIGEST_ROOT], head.root.byte, sizeof head.root.byte) == 0;
    }
    if (agrees) return STATUS_OK;
    FAIL(STATUS_INPUT,
         "%s: damaged: run %s: the stored state of update %ju is not the one that its record names",
         path, recorded->plan.id, (uintmax_t)step);
}

static enum status take_in(struct arena *arena, const char *path, const struct trace_run *recorded,
                           uint64_t index, struct run *run) {
    unsigned char *bytes, *state;
    TRY(check_layout(path, recorded, run));
    TRY(trace_snapshot_read(path, recorded, index, arena, &bytes));
    TRY(check_record(path, recorded, recorded->snapshot_steps[index], bytes));
    if (snapshot_room(run) == 0) return run_restore(run, bytes);
    TRY(arena_take(arena, run->layout.bytes, 1, "a stored state", &state));
    state_file_read(&run->table, &run->layout, bytes, state);
    return run_restore(run, state);
}

enum status snapshot_take(const char *path, const struct trace_run *recorded, uint64_t index,
                          struct run *run) {
    struct arena arena = ARENA_EMPTY;
    const enum status status = take_in(&arena, path, recorded, index, run);
    arena_close(&arena);
    return status;
}
