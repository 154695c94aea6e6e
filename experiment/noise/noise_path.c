/* SPDX-License-Identifier: Apache-2.0
 * Records paths and compares two of them, in the order in which an update computes: the forward's
 * sites, gradients from the last tensor to the first, then weights. Norms over all tensors are
 * summed by an f64 chain in table order. */
#include "experiment/noise/noise_path.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/real.h"
#include "kernels/distance.h"
#include "trainer/run_tensors.h"
#include "trainer/watch_run.h"

struct run_options noise_run_options(uint64_t steps, uint64_t order_seed) {
    return (struct run_options){
        .tensors = 1, .phases = 1, .steps = steps, .order_seed = order_seed};
}

static size_t whole_words(size_t bytes) {
    return (bytes + 7) / 8 * 8;
}

static enum status copy_names(const char *const *names, uint32_t count, struct arena *arena,
                              const char ***out) {
    TRY(arena_take(arena, count, sizeof **out, "names", out));
    for (uint32_t i = 0; i < count; i++) {
        char *name;
        TRY(arena_text(arena, names[i], strlen(names[i]), &name));
        (*out)[i] = name;
    }
    return STATUS_OK;
}

/* Packs the run's working weights, tensor behind tensor. */
static enum status keep_weights(const struct noise_layout *layout, const struct run *run,
                                unsigned char *out) {
    const size_t carrier = dtype_carrier(layout->weight);
    for (uint32_t i = 0; i < layout->tensors; i++) {
        const void *weights;
        TRY(run_read_weight(run, WINDOW_NOW, run_owners(run)[i], &weights));
        memcpy(out + layout->offset[i] * carrier, weights,
               (layout->offset[i + 1] - layout->offset[i]) * carrier);
    }
    return STATUS_OK;
}

enum status noise_layout_open(const struct run *run, uint64_t steps, struct arena *arena,
                              struct noise_layout *out) {
    memset(out, 0, sizeof *out);
    out->steps = steps;
    out->tensors = run_owner_count(run);
    out->sites = run_axes_of(run)->shape.sites;
    out->gradient = run_layout(run)->gradient_dtype;
    out->weight = run_layout(run)->has_master ? run_layout(run)->master_dtype
                                              : (enum dtype)run_config(run)->numerics.param;
    TRY(copy_names(run_axes_of(run)->tensors, out->tensors, arena, &out->tensor_names));
    TRY(copy_names(run_axes_of(run)->sites, out->sites, arena, &out->site_names));
    TRY(arena_take(arena, out->tensors + 1, sizeof *out->offset, "offsets", &out->offset));
    for (uint32_t i = 0; i < out->tensors; i++)
        out->offset[i + 1] = out->offset[i] + run_table(run)->rows[run_owners(run)[i]].count;
    size_t elements = out->offset[out->tensors];
    out->at_sites = sizeof(struct noise_head);
    out->at_norms = out->at_sites + (size_t)out->sites * DIGEST_BYTES;
    out->at_gradients = out->at_norms + out->tensors * sizeof(double);
    out->at_weights = out->at_gradients + whole_words(elements * dtype_carrier(out->gradient));
    out->update_bytes = out->at_weights + whole_words(elements * dtype_carrier(out->weight));
    if (steps > SIZE_MAX / 2 / out->update_bytes)
        FAIL(STATUS_MEMORY, "paths of %ju updates do not fit into memory", (uintmax_t)steps);
    out->bytes = (size_t)steps * out->update_bytes;
    unsigned char *start;
    TRY(arena_take(arena, out->update_bytes - out->at_weights, 1, "weights", &start));
    out->start = start;
    return keep_weights(out, run, start);
}

/* Gradients must be copied while the update runs, since the phases after clip scale and clear them.
 */
struct keeping {
    const struct noise_layout *layout;
    const struct run *run;
    unsigned char *update; /* the update at hand, in the path */
};

static int is_gradient(void *context, const struct watch_view *view) {
    (void)context;
    return view->parameter != WATCH_NO_PARAMETER && view->tensor.label == LABEL_GRADIENT;
}

static void see(void *context, const struct watch_view *view) {
    const struct keeping *keeping = (const struct keeping *)context;
    const struct noise_layout *layout = keeping->layout;
    const size_t carrier = dtype_carrier(layout->gradient);
    uint32_t tensor = 0;
    while (run_owners(keeping->run)[tensor] != view->parameter)
        tensor++;
    memcpy(keeping->update + layout->at_gradients + layout->offset[tensor] * carrier, view->data,
           view->count * carrier);
}

static enum status keep_update(const struct noise_layout *layout, const struct run *run,
                               unsigned char *out) {
    const struct record *record = run_record(run);
    double squares = 0.0;
    memcpy(out + layout->at_sites, record->sites, (size_t)layout->sites * DIGEST_BYTES);
    for (uint32_t i = 0; i < layout->tensors; i++) {
        double norm = record->tensors[i][TENSOR_GRAD_NORM];
        squares += norm * norm;
        memcpy(out + layout->at_norms + i * sizeof norm, &norm, sizeof norm);
    }
    struct noise_head head = {record->reals[REAL_LOSS], real_sqrt_f64(squares)};
    memcpy(out, &head, sizeof head);
    return keep_weights(layout, run, out + layout->at_weights);
}

enum status noise_path_take(const struct noise_layout *layout, struct run *run,
                            const volatile int *interrupted, unsigned char *out) {
    struct keeping keeping = {.layout = layout, .run = run};
    struct watch watch = {.see = see,
                          .wants = is_gradient,
                          .context = &keeping,
                          .only_reads = 1,
                          .arena = ARENA_EMPTY};
    enum status status = STATUS_OK;
    watch_hang(run, &watch);
    for (uint64_t step = 0; step < layout->steps && status == STATUS_OK; step++) {
        const struct record *record;
        keeping.update = out + step * layout->update_bytes;
        memset(keeping.update, 0, layout->update_bytes);
        status =
            interrupted == NULL || !*interrupted
                ? run_step(run, &record)
                : status_fail(STATUS_INTERRUPTED, "interrupted while the noise floor was measured");
        if (status == STATUS_OK) status = keep_update(layout, run, keeping.update);
    }
    if (status == STATUS_OK) status = watch.status;
    watch_hang(run, NULL);
    arena_close(&watch.arena);
    return status;
}

static enum status train(struct run *run, uint64_t steps, const volatile int *interrupted,
                         struct arena *arena, size_t *out_size, unsigned char **out) {
    struct noise_layout layout;
    TRY(noise_layout_open(run, steps, arena, &layout));
    TRY(arena_take(arena, layout.bytes, 1, "path of a training", out));
    *out_size = layout.bytes;
    return noise_path_take(&layout, run, interrupted, *out);
}

enum status noise_path_train(const struct config *config, uint64_t steps,
                             const volatile int *interrupted, struct arena *arena, size_t *out_size,
                             unsigned char **out) {
    struct dataset dataset;
    struct run *run;
    struct dataset_options source = run_dataset_options(config);
    struct run_options options = noise_run_options(steps, config->numerics.order_seed);
    TRY(dataset_open(&source, arena, &dataset));
    TRY(run_open(config, &dataset, &options, &run));
    enum status status = train(run, steps, interrupted, arena, out_size, out);
    run_close(run);
    return status;
}

struct noise_head noise_head_of(const struct noise_layout *layout, const unsigned char *path,
                                uint64_t update) {
    struct noise_head head;
    memcpy(&head, path + (update - 1) * layout->update_bytes, sizeof head);
    return head;
}

enum status noise_figures_open(const struct noise_layout *layout, struct arena *arena,
                               struct noise_figures *out) {
    memset(out, 0, sizeof *out);
    out->tensors = out->gradients_equal = out->updates_equal = layout->tensors;
    TRY(arena_take(arena, layout->steps, sizeof *out->growth, "growth", &out->growth));
    TRY(arena_take(arena, layout->tensors, sizeof *out->tensor, "tensors", &out->tensor));
    for (uint64_t i = 0; i < layout->steps; i++)
        out->growth[i].share = (double)NAN;
    return STATUS_OK;
}

double noise_gap(double a, double b) {
    if (a == b || (isnan(a) && isnan(b))) return 0.0;
    double distance = fabs(a - b);
    return isnan(distance) ? (double)INFINITY : distance;
}

double noise_relative(double a, double b) {
    double distance = noise_gap(a, b);
    if (distance == 0.0) return 0.0;
    double quotient = distance / fabs(a);
    return isnan(quotient) ? (double)INFINITY : quotient;
}

/* One update of both paths, which have one form. */
struct update_pair {
    const struct noise_layout *layout;
    const unsigned char *a, *b;
};

static struct span values_of(const struct update_pair *pair, const unsigned char *side, size_t at,
                             enum dtype dtype, uint32_t tensor) {
    return (struct span){side + at + pair->layout->offset[tensor] * dtype_carrier(dtype), dtype};
}

static size_t count_of(const struct update_pair *pair, uint32_t tensor) {
    return pair->layout->offset[tensor + 1] - pair->layout->offset[tensor];
}

static int values_equal(const struct update_pair *pair, size_t at, enum dtype dtype,
                        uint32_t tensor) {
    return distance_changed(values_of(pair, pair->a, at, dtype, tensor).values,
                            values_of(pair, pair->b, at, dtype, tensor).values, dtype,
                            count_of(pair, tensor)) == 0;
}

static int64_t values_ulp(const struct update_pair *pair, size_t at, enum dtype dtype,
                          uint32_t tensor) {
    return distance_ulp(values_of(pair, pair->a, at, dtype, tensor).values,
                        values_of(pair, pair->b, at, dtype, tensor).values, dtype,
                        count_of(pair, tensor));
}

static double weight_distance(struct span a, struct span b, size_t count) {
    double squares = distance_squares(a, b, count);
    return isnan(squares) ? (double)INFINITY : real_sqrt_f64(squares);
}

/* Names the place where two updates part first, as an update computes: forward sites, gradients
 * from the last tensor to the first (backward), then weights. "" when nothing differs. */
static void find_place(const struct update_pair *pair, char *out, size_t size) {
    const struct noise_layout *layout = pair->layout;
    out[0] = '\0';
    for (uint32_t i = 0; i < layout->sites; i++) {
        size_t at = layout->at_sites + (size_t)i * DIGEST_BYTES;
        if (memcmp(pair->a + at, pair->b + at, DIGEST_BYTES) == 0) continue;
        snprintf(out, size, "forward %s", layout->site_names[i]);
        return;
    }
    for (uint32_t i = layout->tensors; i-- > 0;) {
        if (values_equal(pair, layout->at_gradients, layout->gradient, i)) continue;
        snprintf(out, size, "gradient %s", layout->tensor_names[i]);
        return;
    }
    for (uint32_t i = 0; i < layout->tensors; i++) {
        if (values_equal(pair, layout->at_weights, layout->weight, i)) continue;
        snprintf(out, size, "update %s", layout->tensor_names[i]);
        return;
    }
    if (noise_gap(((const struct noise_head *)(const void *)pair->a)->loss,
                  ((const struct noise_head *)(const void *)pair->b)->loss) != 0.0)
        snprintf(out, size, "loss");
}

static double norm_of(const struct noise_layout *layout, const unsigned char *update,
                      uint32_t tensor) {
    double norm;
    memcpy(&norm, update + layout->at_norms + tensor * sizeof norm, sizeof norm);
    return norm;
}

static double norms_apart(const struct update_pair *pair, uint32_t tensor) {
    return noise_relative(norm_of(pair->layout, pair->a, tensor),
                          norm_of(pair->layout, pair->b, tensor));
}

static void raise_to(double *value, double other) {
    if (other > *value || isnan(*value)) *value = other;
}

/* Notes how far a tensor's norms are apart; the first of the worst gives its name. */
static void note_tensor(const struct noise_layout *layout, uint32_t tensor, double apart,
                        struct noise_figures *into) {
    raise_to(&into->tensor[tensor].relative, apart);
    if (apart <= into->tensor_relative) return;
    into->tensor_relative = apart;
    snprintf(into->tensor_worst, sizeof into->tensor_worst, "%s", layout->tensor_names[tensor]);
}

static void add_tensors(const struct update_pair *pair, struct noise_figures *into) {
    const struct noise_layout *layout = pair->layout;
    uint32_t gradients = 0, updates = 0;
    for (uint32_t i = 0; i < layout->tensors; i++) {
        int64_t ulp = values_ulp(pair, layout->at_gradients, layout->gradient, i);
        if (ulp > into->gradient_ulp) into->gradient_ulp = ulp;
        const int equal = values_equal(pair, layout->at_gradients, layout->gradient, i);
        struct noise_tensor *const own = &into->tensor[i];
        own->differs += !equal;
        if (ulp > own->ulp) own->ulp = ulp;
        ulp = values_ulp(pair, layout->at_weights, layout->weight, i);
        if (ulp > into->weight_ulp) into->weight_ulp = ulp;
        gradients += (uint32_t)equal;
        updates += (uint32_t)values_equal(pair, layout->at_weights, layout->weight, i);
        note_tensor(layout, i, norms_apart(pair, i), into);
    }
    if (gradients < into->gradients_equal) into->gradients_equal = gradients;
    if (updates < into->updates_equal) into->updates_equal = updates;
}

static double norm_at(struct noise_side side, uint64_t step, uint32_t tensor) {
    return norm_of(side.layout, side.path + (step - 1) * side.layout->update_bytes, tensor);
}

static struct span weights_at(struct noise_side side, uint64_t step) {
    return (struct span){side.path + (step - 1) * side.layout->update_bytes +
                             side.layout->at_weights,
                         side.layout->weight};
}

static void add_growth(struct noise_side a, struct noise_side b, uint64_t step,
                       struct noise_figures *figures) {
    const struct noise_layout *layout = a.layout;
    struct noise_growth *into = &figures->growth[step - 1];
    const struct noise_head x = noise_head_of(layout, a.path, step);
    const struct noise_head y = noise_head_of(b.layout, b.path, step);
    const struct span here = weights_at(a, step), start = {layout->start, layout->weight};
    const size_t count = layout->offset[layout->tensors];
    const double distance = weight_distance(here, weights_at(b, step), count);
    const double travel = layout->start == NULL ? 0.0 : weight_distance(start, here, count);
    raise_to(&into->loss, noise_gap(x.loss, y.loss));
    raise_to(&into->grad_norm, noise_relative(x.grad_norm, y.grad_norm));
    raise_to(&into->distance, distance);
    if (distance == 0.0) raise_to(&into->share, 0.0);
    if (travel > 0.0) raise_to(&into->share, distance / travel);
    for (uint32_t i = 0; i < layout->tensors; i++)
        raise_to(&into->tensor, noise_relative(norm_at(a, step, i), norm_at(b, step, i)));
}

void noise_figures_add(const struct noise_layout *layout, const unsigned char *a,
                       const unsigned char *b, struct noise_figures *into) {
    uint64_t first = 0;
    for (uint64_t step = 1; step <= layout->steps; step++) {
        const size_t at = (size_t)(step - 1) * layout->update_bytes;
        const struct update_pair pair = {layout, a + at, b + at};
        const struct noise_head x = noise_head_of(layout, a, step);
        const struct noise_head y = noise_head_of(layout, b, step);
        char place[sizeof into->first_place];
        add_growth((struct noise_side){layout, a}, (struct noise_side){layout, b}, step, into);
        if (first != 0) continue;
        find_place(&pair, place, sizeof place);
        if (place[0] == '\0') continue;
        first = step;
        add_tensors(&pair, into);
        raise_to(&into->total_relative, noise_relative(x.grad_norm, y.grad_norm));
        if (into->first != 0 && into->first <= step) continue;
        into->first = step;
        memcpy(into->first_place, place, sizeof place);
    }
}

enum status noise_figures_against(struct noise_side a, struct noise_side b,
                                  struct noise_figures *into) {
    const struct noise_layout *layout = a.layout;
    if (b.layout->tensors != layout->tensors || b.layout->steps != layout->steps ||
        b.layout->offset[layout->tensors] != layout->offset[layout->tensors])
        FAIL(STATUS_INTERNAL, "paths of other tensors or updates");
    for (uint64_t step = 1; step <= layout->steps; step++)
        add_growth(a, b, step, into);
    into->tensors = layout->tensors;
    into->gradients_equal = into->updates_equal = 0;
    into->total_relative = into->growth[0].grad_norm;
    for (uint32_t i = 0; i < layout->tensors; i++)
        note_tensor(layout, i, noise_relative(norm_at(a, 1, i), norm_at(b, 1, i)), into);
    return STATUS_OK;
}

enum status noise_perturbed_of(const struct noise_layout *layout, const unsigned char *a,
                               const unsigned char *b, struct arena *arena,
                               struct noise_perturbed *out) {
    const size_t count = (size_t)layout->steps * layout->tensors;
    TRY(arena_take(arena, count, sizeof *out->gradient, "twin", &out->gradient));
    TRY(arena_take(arena, count, sizeof *out->distance, "twin", &out->distance));
    for (uint64_t step = 0; step < layout->steps; step++) {
        const size_t at = (size_t)step * layout->update_bytes;
        const struct update_pair pair = {layout, a + at, b + at};
        for (uint32_t i = 0; i < layout->tensors; i++) {
            const size_t place = (size_t)step * layout->tensors + i;
            const struct span x = values_of(&pair, pair.a, layout->at_weights, layout->weight, i);
            const struct span y = values_of(&pair, pair.b, layout->at_weights, layout->weight, i);
            out->gradient[place] = norms_apart(&pair, i);
            out->distance[place] = weight_distance(x, y, count_of(&pair, i));
        }
    }
    return STATUS_OK;
}
