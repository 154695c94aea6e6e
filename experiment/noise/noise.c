/* SPDX-License-Identifier: Apache-2.0
 * Measures the strata: one path of the baseline, and one path per repeat of each variant.
 *
 * Where a stratum opens another run as a user would start it (instance, process), a free order seed
 * is drawn anew. Elsewhere the baseline's is kept, so that only what the stratum names is changed.
 * Races cannot be kept out: in mode atomic every stratum contains them. */
#include "experiment/noise/noise.h"

#include <stdio.h>
#include <string.h>

#include "experiment/experiment_plan.h"
#include "experiment/backend_record.h"
#include "trainer/perturbation.h"

#define NOISE_ULP_TRIES 64

struct measuring {
    const struct noise_request *request;
    struct arena *arena;
    struct noise_table *table;
    struct dataset dataset;
    struct config config; /* the baseline, with its order seed drawn */
    struct run *base;
    unsigned char *start; /* the baseline's state before the first update */
    unsigned char *path, *other;
};

int noise_is_exact(const struct config *config) {
    if (config_races(config)) return 0;
    return config->numerics.mode != MODE_SHUFFLED || config->numerics.order_seed != KEY_WORD_UINT;
}

uint64_t noise_order_seed(const struct config *config, uint64_t run) {
    if (config->numerics.order_seed != KEY_WORD_UINT) return config->numerics.order_seed;
    return config->numerics.mode == MODE_SHUFFLED ? experiment_order_seed(config->seed, run) : 0;
}

/* Keys of the configuration name updates up to this one, even where fewer are trained. */
static uint64_t resolved_steps(const struct noise_request *request) {
    return request->resolved > request->steps ? request->resolved : request->steps;
}

static enum status open_path(struct measuring *m, const struct config *config) {
    struct run *run;
    struct run_options options = noise_run_options(m->request->steps, config->numerics.order_seed);
    TRY(run_open(config, &m->dataset, &options, &run));
    const enum status status =
        noise_path_take(&m->table->layout, run, m->request->interrupted, m->other);
    run_close(run);
    return status;
}

static size_t elements_of(const struct noise_layout *layout, const char *tensor) {
    for (uint32_t i = 0; i < layout->tensors; i++)
        if (strcmp(layout->tensor_names[i], tensor) == 0)
            return layout->offset[i + 1] - layout->offset[i];
    return 0;
}

/* Perturbs one weight by one ulp, and takes the next weight instead while the forward of update 1
 * stays the same to the bit: such a perturbation was rounded away and shows nothing. */
static enum status one_ulp_path(struct measuring *m, struct noise_variant *variant) {
    const struct noise_layout *layout = &m->table->layout;
    const char *tensor = perturbation_tensor(run_axes_of(m->base));
    const size_t count = elements_of(layout, tensor);
    if (strcmp(m->config.init.nudge, CONFIG_NO_NUDGE) != 0)
        FAIL(STATUS_UNTESTABLE, "init.nudge is set: the baseline is a twin itself");
    for (size_t i = 0; i < NOISE_ULP_TRIES && i < count; i++) {
        char *nudge = variant->config.init.nudge;
        memset(nudge, 0, sizeof variant->config.init.nudge);
        snprintf(nudge, sizeof variant->config.init.nudge, "%s[%zu]", tensor, i);
        TRY(open_path(m, &variant->config));
        memcpy(variant->name, nudge, strnlen(nudge, sizeof variant->name - 1));
        if (memcmp(m->path + layout->at_sites, m->other + layout->at_sites,
                   (size_t)layout->sites * DIGEST_BYTES) != 0)
            return STATUS_OK;
    }
    FAIL(STATUS_UNTESTABLE, "one ulp of none of the first %d weights of %s changes the forward",
         NOISE_ULP_TRIES, tensor);
}

/* Holds the baseline against the reference in f64. The reference starts from the measured run's own
 * weights, so that the first difference is due to arithmetic only. */
static enum status compare_f64(struct measuring *m, const struct config *config,
                               struct arena *scratch, struct noise_figures *out) {
    struct run_options options = noise_run_options(m->request->steps, config->numerics.order_seed);
    struct noise_layout layout;
    unsigned char *path = NULL;
    struct run *run;
    options.start = m->base;
    TRY(run_open(config, &m->dataset, &options, &run));
    enum status status = noise_layout_open(run, m->request->steps, scratch, &layout);
    if (status == STATUS_OK) status = arena_take(scratch, layout.bytes, 1, "path in f64", &path);
    if (status == STATUS_OK) status = noise_path_take(&layout, run, m->request->interrupted, path);
    run_close(run);
    TRY(status);
    const struct noise_side measured = {&m->table->layout, m->path}, exact = {&layout, path};
    return noise_figures_against(measured, exact, out);
}

static enum status measure_f64(struct measuring *m, const struct config *config,
                               struct noise_row *row) {
    struct arena scratch = ARENA_EMPTY;
    const enum status status = compare_f64(m, config, &scratch, &row->figures);
    arena_close(&scratch);
    row->repeats = status == STATUS_OK;
    return status;
}

static enum status variant_path(struct measuring *m, struct noise_variant *variant,
                                uint32_t repeat) {
    if (variant->stratum == NOISE_INSTANCE)
        variant->config.numerics.order_seed = noise_order_seed(m->request->config, 1 + repeat);
    if (variant->stratum == NOISE_PROCESS)
        variant->config.numerics.order_seed =
            noise_order_seed(m->request->config, 1 + m->request->repeats + repeat);
    if (variant->stratum == NOISE_REPEAT) {
        TRY(run_restore(m->base, m->start));
        return noise_path_take(&m->table->layout, m->base, m->request->interrupted, m->other);
    }
    if (variant->stratum == NOISE_PROCESS)
        return m->request->process(m->request->context, &variant->config, m->request->steps,
                                   m->other, m->table->layout.bytes);
    if (variant->stratum == NOISE_ONE_ULP) return one_ulp_path(m, variant);
    return open_path(m, &variant->config);
}

static enum status measure_row(struct measuring *m, struct noise_variant *variant) {
    struct noise_row *row = &m->table->rows[m->table->count];
    const int one_ulp = variant->stratum == NOISE_ONE_ULP;
    row->stratum = variant->stratum;
    if (variant->stratum == NOISE_PROCESS && m->request->process == NULL)
        snprintf(variant->untestable, sizeof variant->untestable, "no second process");
    TRY(noise_figures_open(&m->table->layout, m->arena, &row->figures));
    const uint32_t repeats = one_ulp && noise_is_exact(&m->config) ? 1 : m->request->repeats;
    while (variant->untestable[0] == '\0' && row->repeats < repeats) {
        const int f64 = variant->stratum == NOISE_F64;
        const enum status status =
            f64 ? measure_f64(m, &variant->config, row) : variant_path(m, variant, row->repeats);
        if (status == STATUS_UNTESTABLE || status == STATUS_UNSUPPORTED) {
            snprintf(variant->untestable, sizeof variant->untestable, "%s", status_text());
            break;
        }
        TRY(status);
        if (f64) break;
        noise_figures_add(&m->table->layout, m->path, m->other, &row->figures);
        if (variant->stratum == NOISE_INSTANCE && row->repeats == 0) {
            unsigned char *copy;
            TRY(arena_take(m->arena, m->table->layout.bytes, 1, "path of an instance", &copy));
            memcpy(copy, m->other, m->table->layout.bytes);
            m->table->instance = copy;
        }
        if (one_ulp && row->repeats == 0)
            TRY(noise_perturbed_of(&m->table->layout, m->path, m->other, m->arena,
                                   &m->table->perturbed));
        row->repeats++;
    }
    memcpy(row->variant, variant->name, sizeof row->variant);
    memcpy(row->untestable, variant->untestable, sizeof row->untestable);
    m->table->count++; /* a row that was interrupted does not count */
    return STATUS_OK;
}

void noise_tell(const struct noise_request *request, const char *what, uint64_t done,
                uint64_t total) {
    if (request->progress != NULL) request->progress(request->progress_context, what, done, total);
}

/* What lies in this machine's memory of a run: nothing where a device has it. */
static uint64_t run_bytes(const struct run *run) {
    return run_backend(run) == NULL ? run_memory(run) : 0;
}

enum status noise_ask_room(const struct noise_request *request, const struct run *run,
                           uint64_t beside) {
    const struct experiment_needs needs = {
        .memory = run_bytes(run) + beside,
        .held = run_bytes(run),
        .less_memory = "make the model, batch.micro or data.max_len smaller, measure fewer updates "
                       "(--steps), modes or dtypes"};
    return request->room == NULL ? STATUS_OK : request->room(request->room_context, &needs);
}

/* Of each case its baseline's start and three paths stay until the end. The largest thing beside
 * them is the training in f64, or a run in a second process, with a path each. */
static uint64_t bytes_beside(const struct measuring *m) {
    const uint64_t path = m->table->layout.bytes, cases = m->request->cases;
    const uint64_t wider = sizeof(double) / dtype_carrier(m->table->layout.weight);
    return (cases == 0 ? 1 : cases) * (3 * path + run_layout(m->base)->bytes) +
           wider * (run_bytes(m->base) + path);
}

static enum status measure_all(struct measuring *m) {
    struct noise_table *table = m->table;
    struct noise_variant *variants;
    double products[PRODUCTS_COLUMNS];
    TRY(noise_layout_open(m->base, m->request->steps, m->arena, &table->layout));
    TRY(noise_ask_room(m->request, m->base, bytes_beside(m)));
    TRY(arena_take(m->arena, run_layout(m->base)->bytes, 1, "snapshot", &m->start));
    TRY(arena_take(m->arena, table->layout.bytes, 1, "path of the baseline", &m->path));
    TRY(arena_take(m->arena, table->layout.bytes, 1, "path of a variant", &m->other));
    TRY(arena_take(m->arena, NOISE_ROWS_MAX, sizeof *variants, "strata", &variants));
    TRY(run_snapshot(m->base, m->start));
    TRY(noise_path_take(&table->layout, m->base, m->request->interrupted, m->path));
    table->path = m->path;
    const char *const mode = m->config.numerics.mode == MODE_FAST ? "fast" : "deterministic";
    products_of_run(m->base, products);
    TRY(products_text(products, mode, m->arena, &table->products));
    const uint32_t count =
        noise_variants(&m->config, resolved_steps(m->request), m->request->processors, variants);
    noise_tell(m->request, "strata", 0, count);
    for (uint32_t i = 0; i < count; i++) {
        TRY(measure_row(m, &variants[i]));
        noise_tell(m->request, "strata", i + 1, count);
    }
    return STATUS_OK;
}

enum status noise_orders_measure(const struct noise_table *measured,
                                 const struct noise_table *reference, struct arena *arena,
                                 struct noise_orders *out) {
    const struct noise_side sides[2] = {{&measured->layout, measured->path},
                                        {&measured->layout, measured->instance}};
    const struct noise_side neutral = {&reference->layout, reference->path};
    TRY(noise_figures_open(sides[0].layout, arena, &out->apart));
    TRY(noise_figures_against(sides[0], sides[1], &out->apart));
    for (int i = 0; i < 2; i++) {
        TRY(noise_figures_open(sides[i].layout, arena, &out->neutral[i]));
        TRY(noise_figures_against(sides[i], neutral, &out->neutral[i]));
    }
    return STATUS_OK;
}

enum status noise_measure(const struct noise_request *request, struct arena *arena,
                          struct noise_table *out) {
    struct measuring *m;
    TRY(arena_take(arena, 1, sizeof *m, "noise floor", &m));
    memset(out, 0, sizeof *out);
    out->products = "";
    *m = (struct measuring){
        .request = request, .arena = arena, .table = out, .config = *request->config};
    m->config.numerics.order_seed = noise_order_seed(request->config, 0);
    TRY(config_validate(&m->config, resolved_steps(request)));
    if (m->config.fault.update != 0)
        FAIL(STATUS_INPUT,
             "fault.update: expected 0, got %ju: a floor is what runs without a bit "
             "flip are apart",
             (uintmax_t)m->config.fault.update);
    struct dataset_options source = run_dataset_options(&m->config);
    struct run_options options = noise_run_options(request->steps, m->config.numerics.order_seed);
    TRY(dataset_open(&source, arena, &m->dataset));
    TRY(run_open(&m->config, &m->dataset, &options, &m->base));
    enum status status = measure_all(m);
    run_close(m->base);
    return status;
}
