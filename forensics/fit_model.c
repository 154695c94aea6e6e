/* SPDX-License-Identifier: Apache-2.0
 * Builds the models: every contract with every schedule of its family, and of each schedule the
 * variants that people use (shapes, cycles). Sets their numbers.
 *
 * What a model depends on (total, warm-up, floor) is found by evaluating it, so this file knows no
 * schedule by name. */
#include "forensics/fit_model.h"

#include <string.h>

#include "base/real.h"
#include "forensics/fit_samples.h"
#include "forensics/fit_solve.h"

/* The run at which a model is probed for what it depends on: long enough that warm-up, plateau and
 * decay of every shipped schedule have points of their own among those of sum_of. */
#define PROBE_TOTAL 1000
#define PROBE_WARMUP 100

struct variant {
    const char *key;
    const char *const *texts; /* ends with NULL; the default among them is left out */
};

/* Values of parameters that people type beside the default; any other is found only when it is
 * given. */
static const char *const cycles[] = {"2", "3", "4", "1", NULL};
static const char *const powers[] = {"2", "0.5", "3", NULL};
static const char *const shares[] = {"0.1", "0.2", "0.5", NULL};
static const struct variant variants[] = {
    {"num_cycles", cycles}, {"power", powers}, {"decay_ratio", shares}};

static double *value_of(const struct fit_model *model, const struct key_row *row) {
    return (double *)(void *)((char *)(uintptr_t)model->plan.call.values + row->offset);
}

static void find_floor(struct fit_model *model, const struct contract_request *request) {
    static const char *const names[] = {"min_lr_ratio", "min_lr", "lr_end", "warmup_min_lr"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const struct key_row *row = sched_row(model->plan.schedule, names[i]);
        if (row == NULL || row->type != KEY_REAL) continue;
        model->floor = value_of(model, row);
        model->floor_default = *model->floor;
        model->floor_kind = i == 0 ? FIT_FLOOR_RATIO : FIT_FLOOR_ABSOLUTE;
        if (request->min_lr_ratio == request->min_lr_ratio) model->given_floor = 1;
        for (size_t v = 0; v < request->value_count; v++)
            if (strcmp(request->values[v].key, names[i]) == 0) model->given_floor = 2;
        return;
    }
}

static void set_floor(struct fit_model *model) {
    if (model->floor == NULL) return;
    *model->floor = model->floor_kind == FIT_FLOOR_RATIO || model->now.absolute
                        ? model->now.floor
                        : model->now.floor * model->now.lr;
}

void fit_model_set_lr(struct fit_model *model, double lr) {
    model->now.lr = model->plan.call.base_lr = lr;
    set_floor(model);
}

void fit_model_set_total(struct fit_model *model, double total) {
    model->now.total = total;
    model->plan.steps = (uint64_t)total;
    model->plan.call.total = total * model->scale;
    if (model->now.epoch > 0) /* the counter is in epochs */
        model->plan.call.total = fit_ceil(model->plan.call.total / (double)model->now.epoch);
}

void fit_model_set(struct fit_model *model, const struct fit_numbers *numbers) {
    model->now = *numbers;
    fit_model_set_total(model, numbers->total);
    model->plan.call.warmup = numbers->warmup * model->warmup_scale;
    model->plan.increment = model->unit * numbers->stride;
    model->plan.warmup_updates = numbers->warmup;
    if (numbers->epoch > 0) {
        const double grain = (double)numbers->epoch;
        model->plan.call.warmup /= grain;
        model->plan.increment /= grain;
        model->plan.updates_per_epoch = numbers->epoch;
    }
    if (!model->needs_warmup) model->plan.call.warmup = model->plan.warmup_updates = 0.0;
    fit_model_set_lr(model, numbers->lr);
}

double fit_model_logged(const struct fit_model *model, uint64_t k, int64_t shift) {
    const int64_t at = (int64_t)k + shift;
    return contract_logged(&model->plan, at < 1 ? 1 : (uint64_t)at);
}

int fit_model_is_listed(const struct fit_model *model, const struct fit_numbers *numbers) {
    return !model->is_elder || (numbers->floor > 0.0 && numbers->warmup > 0.0);
}

static double sum_of(struct fit_model *model, double lr, double warmup, double total) {
    static const uint64_t at[] = {1, 2, 30, 90, 101, 150, 400, 700, 900, 980, 990, 997, 999, 1000};
    struct fit_numbers numbers = {.lr = lr, .warmup = warmup, .total = total, .stride = 1.0};
    double sum = 0.0;
    numbers.epoch = model->contract->unit == CONTRACT_UNIT_EPOCH ? 1 : 0;
    numbers.floor = model->floor_kind == FIT_FLOOR_RATIO ? model->floor_default : 0.0;
    fit_model_set(model, &numbers);
    for (size_t i = 0; i < COUNT_OF(at); i++)
        sum += fit_model_logged(model, at[i], 0);
    return sum;
}

static double rise_of(struct fit_model *model, double total, double floor) {
    struct fit_numbers numbers = {.lr = 1.0, .warmup = PROBE_WARMUP, .total = total, .stride = 1.0};
    numbers.floor = floor;
    numbers.epoch = model->contract->unit == CONTRACT_UNIT_EPOCH ? 1 : 0;
    fit_model_set(model, &numbers);
    return fit_model_logged(model, 3, 0) + fit_model_logged(model, 70, 0);
}

/* Tells whether the LR stands behind the warm-up where the floor is the peak. Most schedules have
 * the form floor + (peak - floor) * share, which does in floating point as well; one that goes on
 * to fall from its floor does not. */
static int stands_at_its_floor(struct fit_model *model) {
    static const uint64_t at[] = {150, 400, 700, 800, 900, 950, 980, 999, 1001, 1010, 1500, 3000};
    struct fit_numbers numbers = {.lr = 1.0, .warmup = PROBE_WARMUP, .total = PROBE_TOTAL};
    numbers.stride = numbers.floor = 1.0;
    numbers.epoch = model->contract->unit == CONTRACT_UNIT_EPOCH ? 1 : 0;
    if (model->floor == NULL) return 0;
    fit_model_set(model, &numbers);
    for (size_t i = 1; i < COUNT_OF(at); i++)
        if (fit_model_logged(model, at[i], 0) != fit_model_logged(model, at[0], 0)) return 0;
    return 1;
}

static void find_needs(struct fit_model *model) {
    /* Recursive schedules are costly far out, so nothing is probed. */
    if (model->plan.schedule->state_size > 0) {
        model->needs_total = model->plain_rise = model->linear = 1;
        return;
    }
    model->needs_warmup = model->plan.call.warmup > 0.0;
    const double plain = sum_of(model, 1.0, PROBE_WARMUP, PROBE_TOTAL);
    model->needs_total = sum_of(model, 1.0, PROBE_WARMUP, 2.0 * PROBE_TOTAL) != plain;
    if (sum_of(model, 1.0, 2.0 * PROBE_WARMUP, PROBE_TOTAL) == plain) model->needs_warmup = 0;
    const double rise = rise_of(model, PROBE_TOTAL, 0.0);
    model->plain_rise =
        rise_of(model, 2.0 * PROBE_TOTAL, 0.0) == rise && rise_of(model, PROBE_TOTAL, 0.3) == rise;
    model->linear = sum_of(model, 4.0, PROBE_WARMUP, PROBE_TOTAL) == 4.0 * plain;
    model->levels = stands_at_its_floor(model) != 0;
}

static enum status copy_values(struct fit_model *model, struct arena *arena) {
    const size_t size = model->plan.schedule->values_size;
    void *values;
    if (size == 0 || model->plan.call.values == NULL) return STATUS_OK;
    TRY(arena_take(arena, size, 1, "fit", &values));
    memcpy(values, model->plan.call.values, size);
    model->plan.call.values = values;
    return STATUS_OK;
}

enum status fit_model_copy(const struct fit_model *model, struct arena *arena,
                           struct fit_model *out) {
    const char *before = (const char *)model->plan.call.values;
    *out = *model;
    if (out->plan.schedule->state_size > 0)
        TRY(arena_take(arena, out->plan.schedule->state_size, 1, "fit", &out->plan.call.state));
    TRY(copy_values(out, arena));
    if (model->floor != NULL) {
        const size_t offset = (size_t)((const char *)model->floor - before);
        out->floor = (double *)(void *)((char *)(uintptr_t)out->plan.call.values + offset);
    }
    return STATUS_OK;
}

static enum status open_model(const struct contract_request *request, struct arena *arena,
                              struct fit_model *out) {
    struct contract_request probe = *request;
    probe.lr = 1.0;
    probe.warmup = PROBE_WARMUP;
    probe.warmup_ratio = real_nan_f64();
    probe.steps = PROBE_TOTAL;
    probe.updates_per_epoch = 1;
    if (probe.contract->unit == CONTRACT_UNIT_TOKEN && probe.tokens == 0) probe.tokens = 1;
    probe.skipped_count = 0; /* they may lie past the total of the probe */
    memset(out, 0, sizeof *out);
    TRY(contract_resolve(&probe, arena, &out->plan));
    out->plan.skipped = request->skipped;
    out->plan.skipped_count = request->skipped_count;
    TRY(copy_values(out, arena));
    if (out->plan.schedule->state_size > 0)
        TRY(arena_take(arena, out->plan.schedule->state_size, 1, "fit", &out->plan.call.state));
    out->contract = request->contract;
    out->schedule_name = request->schedule;
    out->unit = out->plan.increment;
    out->scale = out->plan.call.total > 0.0 ? out->plan.call.total / PROBE_TOTAL : 1.0;
    out->warmup_scale = out->plan.call.warmup > 0.0 ? out->plan.call.warmup / PROBE_WARMUP : 1.0;
    find_floor(out, request);
    return STATUS_OK;
}

/* Room for models; further ones are left out. A search of all contracts made 699 of them in
 * tests/forensics/test_compare_lr.c, so this leaves more than twice the room. */
#define MODELS 2048

struct list {
    struct fit_model *at;
    size_t count;
};

/* Takes the properties over from an earlier model with the same function, if there is one. */
static int copy_needs(const struct list *list, struct fit_model *model, const char *parameters) {
    for (size_t i = 0; i < list->count; i++) {
        const struct fit_model *other = &list->at[i];
        if (other->plan.schedule != model->plan.schedule ||
            strcmp(other->parameters, parameters) != 0 ||
            (other->plan.call.warmup > 0.0) != (model->plan.call.warmup > 0.0) ||
            (other->contract->unit == CONTRACT_UNIT_EPOCH) !=
                (model->contract->unit == CONTRACT_UNIT_EPOCH))
            continue;
        model->needs_total = other->needs_total;
        model->needs_warmup = other->needs_warmup;
        model->plain_rise = other->plain_rise;
        model->linear = other->linear;
        model->levels = other->levels;
        return 1;
    }
    return 0;
}

static enum status add(struct list *list, const struct contract_request *request,
                       const char *parameters, struct arena *arena) {
    if (list->count == MODELS) return STATUS_OK;
    struct fit_model *model = &list->at[list->count];
    /* The contract refuses the schedule; that is no error. */
    if (open_model(request, arena, model) != STATUS_OK) return STATUS_OK;
    if (!copy_needs(list, model, parameters)) find_needs(model);
    model->parameters = parameters;
    list->count++;
    return STATUS_OK;
}

static int given(const struct contract_request *request, const char *key) {
    for (size_t i = 0; i < request->value_count; i++)
        if (strcmp(request->values[i].key, key) == 0) return 1;
    return 0;
}

static enum status add_value(struct list *list, const struct contract_request *request,
                             const char *key, const char *text, struct arena *arena) {
    struct contract_request changed = *request;
    char *parameters;
    if (changed.value_count == CONTRACT_VALUES) return STATUS_OK;
    changed.values[changed.value_count].key = key;
    changed.values[changed.value_count++].text = text;
    TRY(arena_format(arena, &parameters, "%s=%s", key, text));
    return add(list, &changed, parameters, arena);
}

/* Returns the row of the shapes that a decay may have; the names of a warm-up's shape are other
 * keys. */
static const struct key_row *shape_row(const struct sched_class *schedule) {
    const struct key_row *row = sched_row(schedule, "decay_type");
    if (row == NULL) row = sched_row(schedule, "decay_style");
    return row != NULL && row->type == KEY_ENUM ? row : NULL;
}

/* Adds a decay of each length, alone and with each shape. */
static enum status add_decays(struct list *list, const struct contract_request *request,
                              const struct sched_class *schedule, const struct fit_decays *decays,
                              struct arena *arena) {
    const struct key_row *shape = shape_row(schedule);
    if (sched_row(schedule, "decay") == NULL || given(request, "decay")) return STATUS_OK;
    for (size_t d = 0; d < decays->count; d++) {
        TRY(add_value(list, request, "decay", decays->text[d], arena));
        for (size_t i = 0; shape != NULL && shape->names[i] != NULL; i++) {
            struct contract_request shaped = *request;
            if (given(request, shape->path) || shaped.value_count + 2 > CONTRACT_VALUES) break;
            if (strcmp(shape->names[i], shape->standard) == 0) continue;
            shaped.values[shaped.value_count].key = "decay";
            shaped.values[shaped.value_count++].text = decays->text[d];
            const size_t before = list->count;
            TRY(add_value(list, &shaped, shape->path, shape->names[i], arena));
            /* The contract refused it; the last model is another one. */
            if (list->count == before) continue;
            struct fit_model *last = &list->at[list->count - 1];
            char *parameters;
            TRY(arena_format(arena, &parameters, "decay=%s, %s=%s", decays->text[d], shape->path,
                             shape->names[i]));
            last->parameters = parameters;
        }
    }
    return STATUS_OK;
}

static enum status add_variants(struct list *list, const struct contract_request *request,
                                const struct sched_class *schedule, struct arena *arena) {
    for (size_t r = 0; r < schedule->key_count; r++) {
        const struct key_row *row = &schedule->keys[r];
        if (given(request, row->path)) continue;
        if (row->type == KEY_ENUM)
            for (size_t i = 0; row->names[i] != NULL; i++)
                if (strcmp(row->names[i], row->standard) != 0)
                    TRY(add_value(list, request, row->path, row->names[i], arena));
        for (size_t v = 0; v < COUNT_OF(variants); v++)
            for (size_t i = 0;
                 strcmp(row->path, variants[v].key) == 0 && variants[v].texts[i] != NULL; i++)
                if (strcmp(variants[v].texts[i], row->standard) != 0)
                    TRY(add_value(list, request, row->path, variants[v].texts[i], arena));
    }
    return STATUS_OK;
}

/* Tells whether a contract differs from another only through a number that is not known. */
static int idle(const struct contract_request *request) {
    const struct contract *contract = request->contract;
    if (contract->unit == CONTRACT_UNIT_TOKEN) return request->tokens == 0;
    if (contract->unit == CONTRACT_UNIT_MICRO) return request->accumulate < 2;
    if (contract->unit == CONTRACT_UNIT_PROCESS && !contract->scaled) return request->processes < 2;
    return 0;
}

/* Tells whether the family offers a schedule. Any training on Hugging Face's trainer may use
 * torch's schedulers. */
static int offered(const struct sched_class *schedule, const char *family) {
    return sched_in_family(schedule, family) ||
           (strcmp(family, "hf") == 0 && sched_in_family(schedule, "torch"));
}

static enum status add_contract(struct list *list, const struct contract_request *request,
                                const struct fit_decays *decays, struct arena *arena) {
    struct contract_request one = *request;
    const struct sched_class *const *classes = sched_classes();
    const struct sched_class *only = NULL;
    if (request->schedule != NULL) {
        only = sched_find_in(request->contract->family, request->schedule);
        if (only == NULL) return STATUS_OK;
    }
    for (size_t i = 0; classes[i] != NULL; i++) {
        if (only != NULL ? classes[i] != only : !offered(classes[i], request->contract->family))
            continue;
        one.schedule = sched_in_family(classes[i], request->contract->family)
                           ? sched_bare_name(classes[i])
                           : classes[i]->name;
        const size_t before = list->count;
        const int elder = only == NULL && strcmp(classes[i]->name, "warmup_stable_decay_old") == 0;
        /* Nobody left out the decay of the elder form, which has no default there. */
        if (!elder || given(request, "decay")) {
            TRY(add(list, &one, "", arena));
            TRY(add_variants(list, &one, classes[i], arena));
        }
        TRY(add_decays(list, &one, classes[i], decays, arena));
        for (size_t m = before; m < list->count; m++)
            list->at[m].is_elder = elder != 0;
    }
    return STATUS_OK;
}

static int one_function(const struct fit_model *a, const struct fit_model *b) {
    return a->plan.schedule == b->plan.schedule && strcmp(a->parameters, b->parameters) == 0 &&
           (a->contract->unit == CONTRACT_UNIT_EPOCH) ==
               (b->contract->unit == CONTRACT_UNIT_EPOCH) &&
           a->contract->float32 == b->contract->float32 && a->given_floor == b->given_floor &&
           a->unit == b->unit && a->scale == b->scale && a->warmup_scale == b->warmup_scale;
}

void fit_models_number(struct fit_model *models, size_t count) {
    for (size_t i = 0; i < count; i++) {
        size_t first = 0;
        while (first < i && !one_function(&models[first], &models[i]))
            first++;
        models[i].function = (uint32_t)first;
    }
}

enum status fit_models(const struct contract_request *request, const struct fit_known *known,
                       const struct fit_decays *decays, struct arena *arena, struct fit_model **out,
                       size_t *count) {
    struct list list = {NULL, 0};
    size_t contracts;
    const struct contract *all = contract_list(&contracts);
    TRY(arena_take(arena, MODELS, sizeof *list.at, "fit", &list.at));
    for (size_t i = 0; i < contracts; i++) {
        struct contract_request one = *request;
        if (request->contract != NULL && request->contract != &all[i]) continue;
        one.contract = &all[i];
        if (known->counted != NULL ? !fit_samples_counts(&all[i])
                                   : known->growing && all[i].unit == CONTRACT_UNIT_SAMPLE)
            continue;
        one.metric_count = 0; /* feedback schedules are fitted by forensics/fit_plateau.c */
        if (request->contract == NULL && idle(&one)) continue;
        if (known->own_only && !fit_is_native(known, &all[i]) && known->expected != &all[i])
            continue;
        TRY(add_contract(&list, &one, decays, arena));
    }
    fit_models_number(list.at, list.count);
    *out = list.at;
    *count = list.count;
    return STATUS_OK;
}

/* ---- what a request asks for ---- */

/* Returns how many of the request's values the schedule has keys for. */
static size_t keys_of(const struct contract_request *request, const struct sched_class *schedule) {
    size_t count = 0;
    for (size_t v = 0; v < request->value_count; v++)
        count += sched_row(schedule, request->values[v].key) != NULL;
    return count;
}

/* Gives what is not known a value that no schedule refuses; the log holds the metric that a
 * schedule follows. */
static struct contract_request completed(const struct contract_request *request) {
    static const uint64_t first = 1;
    static const double metric = 1.0;
    struct contract_request r = *request;
    if (r.lr != r.lr) r.lr = 1.0;
    if (r.steps == 0 && r.epochs == 0.0) r.steps = 1u << 30;
    if (r.updates_per_epoch == 0) r.updates_per_epoch = 1;
    if (r.tokens == 0) r.tokens = 1;
    r.metric_update = &first;
    r.metric_value = &metric;
    r.metric_count = 1;
    return r;
}

/* Tries every schedule with every contract that the request leaves open. Where none is accepted,
 * the one that has most of the keys says why. */
enum status fit_check_request(const struct contract_request *request, struct arena *arena) {
    const struct sched_class *const *classes = sched_classes();
    struct contract_request trial = completed(request), nearest = trial;
    size_t contracts, most = 0;
    const struct contract *all = contract_list(&contracts);
    struct contract_plan plan;
    for (size_t c = 0; c < contracts; c++) {
        if (request->contract != NULL && request->contract != &all[c]) continue;
        trial.contract = &all[c];
        for (size_t i = 0; classes[i] != NULL; i++) {
            if (!offered(classes[i], all[c].family)) continue;
            if (request->schedule != NULL &&
                sched_find_in(all[c].family, request->schedule) != classes[i])
                continue;
            trial.schedule = classes[i]->name;
            if (contract_resolve(&trial, arena, &plan) == STATUS_OK) return STATUS_OK;
            const size_t keys = 1 + keys_of(request, classes[i]);
            if (keys <= most) continue;
            most = keys;
            nearest = trial;
        }
    }
    if (most == 0 && request->contract == NULL)
        FAIL(STATUS_INPUT,
             "--schedule: no contract has a schedule \"%s\"; see twinstep list schedules",
             request->schedule);
    if (most == 0) nearest.contract = request->contract;
    for (size_t v = 0; most == 1 && request->schedule == NULL && v < request->value_count; v++)
        FAIL(STATUS_INPUT,
             "--value: no schedule of the search has a key \"%s\"; see twinstep list "
             "schedules",
             request->values[v].key);
    return contract_resolve(&nearest, arena, &plan);
}
