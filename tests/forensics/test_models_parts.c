/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Which models a request makes, in order, against a walk over all contracts and schedules of the
 * test's own; what is said of each (units, floor, function, and what a model that was made before
 * lends it); what setting numbers does to a plan; copies; and what a request is refused for. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/fit_model.c" /* for the parts, which no other file asks for */
#include "tests/base/helper_draws.h"

enum { CASES = 160, MOST = 2048 };

#define UNKNOWN ((double)NAN)

static struct draws draws;
static struct arena arena, scratch;
static struct contract_request request;
static struct fit_known known;
static struct fit_decays decays;
static struct fit_samples samples;

static int seldom(uint32_t n) {
    return draws_pick(&draws, n) == 0;
}

static int same(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

/* ---- the list ---- */

static struct {
    const struct contract *contract;
    const struct sched_class *schedule;
    char name[64], parameters[96];
    double unit, scale, warmup_scale;
    int elder;
} wanted[MOST];
static size_t want_count;

static int has_key(const struct contract_request *r, const char *key) {
    int has = 0;
    for (size_t v = 0; v < r->value_count; v++)
        has |= strcmp(r->values[v].key, key) == 0;
    return has;
}

static void want(const struct contract_request *r, const struct sched_class *schedule,
                 const char *parameters, int elder) {
    struct contract_request probe = *r;
    struct contract_plan plan;
    probe.lr = 1.0;
    probe.warmup = 100.0;
    probe.warmup_ratio = UNKNOWN;
    probe.steps = 1000;
    probe.updates_per_epoch = 1;
    if (probe.tokens == 0) probe.tokens = 1;
    probe.skipped_count = 0;
    if (contract_resolve(&probe, &scratch, &plan) != STATUS_OK) return;
    assert_true(want_count < MOST);
    wanted[want_count].contract = r->contract;
    wanted[want_count].schedule = schedule;
    snprintf(wanted[want_count].name, sizeof wanted[0].name, "%s", r->schedule);
    snprintf(wanted[want_count].parameters, sizeof wanted[0].parameters, "%s", parameters);
    wanted[want_count].unit = plan.increment;
    wanted[want_count].scale = plan.call.total > 0.0 ? plan.call.total / 1000.0 : 1.0;
    wanted[want_count].warmup_scale = plan.call.warmup > 0.0 ? plan.call.warmup / 100.0 : 1.0;
    wanted[want_count++].elder = elder;
}

/* With one value or two more, where there is room. */
static void want_with(const struct contract_request *r, const struct sched_class *schedule,
                      const char *key, const char *text, const char *key2, const char *text2,
                      int elder) {
    struct contract_request more = *r;
    char parameters[96];
    snprintf(parameters, sizeof parameters, key2 == NULL ? "%s=%s" : "%s=%s, %s=%s", key, text,
             key2, text2);
    if (more.value_count + (key2 == NULL ? 1 : 2) > CONTRACT_VALUES) return;
    more.values[more.value_count].key = key;
    more.values[more.value_count++].text = text;
    if (key2 != NULL) {
        more.values[more.value_count].key = key2;
        more.values[more.value_count++].text = text2;
    }
    want(&more, schedule, parameters, elder);
}

static void want_variants(const struct contract_request *r, const struct sched_class *schedule) {
    static const struct {
        const char *key;
        const char *texts[4];
    } typed[] = {{"num_cycles", {"2", "3", "4", "1"}},
                 {"power", {"2", "0.5", "3"}},
                 {"decay_ratio", {"0.1", "0.2", "0.5"}}};
    for (size_t k = 0; k < schedule->key_count; k++) {
        const struct key_row *const row = &schedule->keys[k];
        if (has_key(r, row->path)) continue;
        for (size_t i = 0; row->type == KEY_ENUM && row->names[i] != NULL; i++)
            if (strcmp(row->names[i], row->standard) != 0)
                want_with(r, schedule, row->path, row->names[i], NULL, NULL, 0);
        for (size_t t = 0; t < COUNT_OF(typed); t++)
            for (size_t i = 0; i < 4 && typed[t].texts[i] != NULL; i++)
                if (strcmp(typed[t].key, row->path) == 0 &&
                    strcmp(typed[t].texts[i], row->standard) != 0)
                    want_with(r, schedule, row->path, typed[t].texts[i], NULL, NULL, 0);
    }
}

static void want_decays(const struct contract_request *r, const struct sched_class *schedule,
                        int elder) {
    const struct key_row *shape = NULL;
    int has = 0;
    for (size_t k = 0; k < schedule->key_count; k++) {
        const struct key_row *const row = &schedule->keys[k];
        has |= strcmp(row->path, "decay") == 0;
        if (strcmp(row->path, "decay_type") == 0 || strcmp(row->path, "decay_style") == 0)
            shape = row;
    }
    if (!has || has_key(r, "decay")) return;
    if (shape != NULL && (shape->type != KEY_ENUM || has_key(r, shape->path))) shape = NULL;
    for (size_t d = 0; d < decays.count; d++) {
        want_with(r, schedule, "decay", decays.text[d], NULL, NULL, elder);
        for (size_t i = 0; shape != NULL && shape->names[i] != NULL; i++)
            if (strcmp(shape->names[i], shape->standard) != 0)
                want_with(r, schedule, "decay", decays.text[d], shape->path, shape->names[i],
                          elder);
    }
}

static int in_family(const struct sched_class *schedule, const char *family) {
    return sched_in_family(schedule, family) ||
           (strcmp(family, "hf") == 0 && strncmp(schedule->name, "torch.", 6) == 0);
}

static void want_models(void) {
    const struct sched_class *const *const classes = sched_classes();
    size_t contracts;
    const struct contract *const all = contract_list(&contracts);
    want_count = 0;
    for (size_t c = 0; c < contracts; c++) {
        struct contract_request one = request;
        const struct contract *const is = &all[c];
        one.contract = is;
        one.metric_count = 0;
        if (request.contract != NULL && request.contract != is) continue;
        if (known.counted != NULL && !fit_samples_counts(is)) continue;
        if (known.counted == NULL && known.growing && is->unit == CONTRACT_UNIT_SAMPLE) continue;
        if (request.contract == NULL &&
            ((is->unit == CONTRACT_UNIT_TOKEN && request.tokens == 0) ||
             (is->unit == CONTRACT_UNIT_MICRO && request.accumulate < 2) ||
             (is->unit == CONTRACT_UNIT_PROCESS && !is->scaled && request.processes < 2)))
            continue;
        if (known.own_only && !fit_is_native(&known, is) && known.expected != is) continue;
        for (size_t s = 0; classes[s] != NULL; s++) {
            const int elder = request.schedule == NULL &&
                              strcmp(classes[s]->name, "warmup_stable_decay_old") == 0;
            if (request.schedule != NULL ? sched_find_in(is->family, request.schedule) != classes[s]
                                         : !in_family(classes[s], is->family))
                continue;
            one.schedule = sched_in_family(classes[s], is->family) ? sched_bare_name(classes[s])
                                                                   : classes[s]->name;
            if (!elder || has_key(&request, "decay")) {
                want(&one, classes[s], "", elder);
                const size_t before = want_count;
                want_variants(&one, classes[s]);
                for (size_t m = before; m < want_count; m++)
                    wanted[m].elder = elder;
            }
            want_decays(&one, classes[s], elder);
        }
    }
}

static const char *const floor_keys[] = {"min_lr_ratio", "min_lr", "lr_end", "warmup_min_lr"};

static void require_floor(const struct fit_model *model) {
    const struct sched_class *const schedule = model->plan.schedule;
    for (size_t i = 0; i < COUNT_OF(floor_keys); i++) {
        const struct key_row *const row = sched_row(schedule, floor_keys[i]);
        if (row == NULL || row->type != KEY_REAL) continue;
        assert_ptr_equal(model->floor, (const char *)model->plan.call.values + row->offset);
        assert_int_equal(model->floor_kind, i == 0 ? FIT_FLOOR_RATIO : FIT_FLOOR_ABSOLUTE);
        assert_int_equal(model->given_floor, has_key(&request, floor_keys[i]) ? 2
                                             : isnan(request.min_lr_ratio)    ? 0
                                                                              : 1);
        if (model->given_floor == 1) assert_true(model->floor_default == request.min_lr_ratio);
        return;
    }
    assert_true(model->floor == NULL && model->floor_kind == FIT_FLOOR_NONE);
    assert_int_equal(model->given_floor, 0);
}

/* What an earlier model lends, against a look at the model itself. */
static void require_needs(struct fit_model *model) {
    const struct fit_model is = *model;
    find_needs(model);
    /* A counter that is faster than the updates is behind its warm-up where the rise is looked at,
     * so it is held to depend on more: that costs time alone. */
    if (is.unit != is.warmup_scale) model->plain_rise = is.plain_rise;
    if (strstr(is.parameters, "5000") != NULL) return; /* longer than the run that is looked at */
    if (model->needs_total != is.needs_total || model->needs_warmup != is.needs_warmup ||
        model->plain_rise != is.plain_rise || model->linear != is.linear ||
        model->levels != is.levels)
        fail_msg("%s %s %s", is.contract->name, is.schedule_name, is.parameters);
}

static int one_column(const struct fit_model *a, const struct fit_model *b) {
    return a->plan.schedule == b->plan.schedule && strcmp(a->parameters, b->parameters) == 0 &&
           a->contract->float32 == b->contract->float32 && a->given_floor == b->given_floor &&
           (a->contract->unit == CONTRACT_UNIT_EPOCH ? b->contract->unit == CONTRACT_UNIT_EPOCH
                                                     : b->contract->unit != CONTRACT_UNIT_EPOCH) &&
           a->unit == b->unit && a->scale == b->scale && a->warmup_scale == b->warmup_scale;
}

static void draw_values(void) {
    static const char *const keys[][2] = {{"num_cycles", "2"},      {"decay", "100"},
                                          {"power", "3"},           {"min_lr_ratio", "0.2"},
                                          {"min_lr", "1e-5"},       {"decay_style", "cosine"},
                                          {"decay_type", "cosine"}, {"lr_end", "1e-6"}};
    const size_t which = draws_pick(&draws, COUNT_OF(keys));
    static const size_t counts[] = {1, 1, 2, 2, 14, 15, 16};
    request.value_count = counts[draws_pick(&draws, COUNT_OF(counts))];
    for (size_t v = 0; v < request.value_count; v++) {
        request.values[v].key = keys[which][0];
        request.values[v].text = keys[which][1];
    }
    if (request.value_count < 2 || seldom(2)) return;
    const size_t other = draws_pick(&draws, COUNT_OF(keys)); /* and another one behind it */
    request.values[request.value_count - 1].key = keys[other][0];
    request.values[request.value_count - 1].text = keys[other][1];
}

static void draw_request(uint32_t number) {
    static const char *const names[] = {
        "megatron",   "hf",        "accelerate",      "lightning-epoch",  "llmc",
        "torchtitan", "olmo-core", "per-micro-batch", "olmo-core-tokens", "deepspeed-warmup"};
    static const char *const schedules[] = {"wsd",  "warmup_stable_decay",     "cosine",
                                            "none", "warmup_stable_decay_old", "torch.one_cycle"};
    static const char *const own[] = {"megatron", "hf", NULL};
    static const uint64_t skipped[] = {3, 5000};
    draws = (struct draws){.key = UINT64_C(0x30d5), .number = number};
    fit_known_init(&known);
    contract_request_init(&request);
    if (!seldom(5)) request.contract = contract_find(names[draws_pick(&draws, COUNT_OF(names))]);
    if (seldom(3)) request.schedule = schedules[draws_pick(&draws, COUNT_OF(schedules))];
    request.tokens = draws_pick(&draws, 2) * 3;
    request.accumulate = draws_pick(&draws, 4);
    request.processes = draws_pick(&draws, 4);
    request.min_lr_ratio = seldom(4) ? 0.25 : UNKNOWN;
    request.skipped = skipped;
    request.skipped_count = seldom(2) ? 2 : 0;
    if (seldom(3)) draw_values();
    decays.count = draws_pick(&draws, 3);
    snprintf(decays.text[0], sizeof decays.text[0], "50");
    snprintf(decays.text[1], sizeof decays.text[1], seldom(3) ? "5000" : "70");
    if (number % 4 == 0) { /* decays with every shape, while there is room for two values */
        static const char *const kept[][2] = {
            {"min_lr_ratio", "0.2"}, {"decay_style", "cosine"}, {"decay_type", "cosine"}};
        const int is_hf = seldom(2);
        const size_t which = draws_pick(&draws, 2) == 0 ? 0 : is_hf ? 2 : 1;
        request.contract = contract_find(is_hf ? "hf" : "megatron");
        request.schedule = is_hf ? "warmup_stable_decay" : "wsd";
        request.value_count = 13 + draws_pick(&draws, 4);
        if (seldom(3)) request.value_count = 1;
        for (size_t v = 0; v < request.value_count; v++) {
            request.values[v].key = kept[which][0];
            request.values[v].text = kept[which][1];
        }
        decays.count = 2;
    }
    known.possible = seldom(3) ? NULL : own;
    known.own_only = seldom(4) || (request.contract == NULL && !seldom(3));
    if (seldom(3)) known.expected = contract_find("llmc");
    known.growing = seldom(3);
    known.counted = seldom(6) ? &samples : NULL;
}

static void corroborate_lists(void **state) {
    (void)state;
    size_t elders = 0, all = 0, full = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        struct fit_model *models;
        size_t count;
        draw_request(number);
        want_models();
        assert_int_equal(fit_models(&request, &known, &decays, &arena, &models, &count), STATUS_OK);
        if (count != want_count) fail_msg("case %u: %zu for %zu", number, count, want_count);
        for (size_t m = 0; m < count; m++) {
            struct fit_model *const model = &models[m];
            if (model->contract != wanted[m].contract ||
                model->plan.schedule != wanted[m].schedule ||
                strcmp(model->schedule_name, wanted[m].name) != 0 ||
                strcmp(model->parameters, wanted[m].parameters) != 0)
                fail_msg("case %u: model %zu is %s %s %s for %s %s %s", number, m,
                         model->contract->name, model->schedule_name, model->parameters,
                         wanted[m].contract->name, wanted[m].name, wanted[m].parameters);
            assert_int_equal(model->is_elder, wanted[m].elder);
            assert_true(model->unit == wanted[m].unit && model->scale == wanted[m].scale);
            assert_true(model->warmup_scale == wanted[m].warmup_scale);
            assert_ptr_equal(model->plan.skipped, request.skipped);
            assert_int_equal(model->plan.skipped_count, request.skipped_count);
            require_floor(model);
            size_t first = 0;
            while (!one_column(&models[first], model))
                first++;
            assert_int_equal(model->function, first);
            if (m % 7 == number % 7) require_needs(model);
            elders += wanted[m].elder != 0;
        }
        all += request.contract == NULL && count > 100;
        full += request.value_count > 13 && count > 0;
        arena_close(&arena);
        arena_close(&scratch);
    }
    assert_true(elders > 5 && all > 2 && full > 3);
}

/* ---- numbers and copies ---- */

static void require_plan(const struct fit_model *model, const struct fit_numbers *n) {
    const struct contract_plan *const plan = &model->plan;
    const double grain = n->epoch > 0 ? (double)n->epoch : 1.0;
    const double total = n->total * model->scale / grain;
    assert_true(plan->call.total == (n->epoch > 0 ? ceil(total) : total));
    assert_int_equal(plan->steps, (uint64_t)n->total);
    assert_true(plan->increment == model->unit * n->stride / grain);
    const double warmup = model->needs_warmup ? n->warmup : 0.0;
    assert_true(plan->call.warmup == warmup * model->warmup_scale / grain);
    assert_true(plan->warmup_updates == warmup && plan->call.base_lr == n->lr);
    if (n->epoch > 0) assert_int_equal(plan->updates_per_epoch, n->epoch);
    if (model->floor == NULL) return;
    const int plain = model->floor_kind == FIT_FLOOR_RATIO || n->absolute;
    assert_true(*model->floor == (plain ? n->floor : n->floor * n->lr));
}

static int same_numbers(const struct fit_numbers *a, const struct fit_numbers *b) {
    return a->lr == b->lr && a->warmup == b->warmup && a->total == b->total &&
           a->floor == b->floor && a->stride == b->stride && a->epoch == b->epoch &&
           a->absolute == b->absolute;
}

static void corroborate_settings(void **state) {
    (void)state;
    struct fit_model *models;
    size_t count, floors = 0, states = 0;
    draw_request(0);
    contract_request_init(&request);
    request.processes = request.accumulate = 4;
    request.tokens = 3;
    fit_known_init(&known);
    decays.count = 1;
    assert_int_equal(fit_models(&request, &known, &decays, &arena, &models, &count), STATUS_OK);
    for (size_t m = 0; m < count; m++) {
        struct fit_model *const model = &models[m], copy;
        draws = (struct draws){.key = UINT64_C(0x5e75), .number = (uint32_t)m};
        struct fit_numbers n = {.lr = 2e-4, .warmup = 7.0, .total = 100.0, .stride = 1.0};
        n.warmup = 1.0 + draws_pick(&draws, 40);
        n.total = 100.0 + draws_pick(&draws, 900);
        n.floor = 0.125 * draws_pick(&draws, 4);
        n.stride = seldom(2) ? 2.0 : 1.0;
        n.epoch = model->contract->unit == CONTRACT_UNIT_EPOCH || seldom(4) ? 3 : 0;
        n.absolute = seldom(2);
        fit_model_set(model, &n);
        assert_true(same_numbers(&model->now, &n));
        require_plan(model, &n);
        n.total += 11.0;
        fit_model_set_total(model, n.total);
        assert_true(same_numbers(&model->now, &n));
        require_plan(model, &n);
        n.epoch = n.epoch > 0 ? 1 : 0;
        n.total += 0.5;
        fit_model_set(model, &n);
        require_plan(model, &n);
        n.lr = 3e-4;
        fit_model_set_lr(model, n.lr);
        assert_true(same_numbers(&model->now, &n));
        require_plan(model, &n);
        for (int64_t shift = -3; shift <= 3; shift++)
            for (uint64_t k = 1; k < 4; k++) {
                const int64_t at = (int64_t)k + shift;
                const double as = contract_logged(&model->plan, at > 1 ? (uint64_t)at : 1);
                assert_true(same(fit_model_logged(model, k, shift), as));
            }
        assert_int_equal(fit_model_copy(model, &arena, &copy), STATUS_OK);
        const size_t size = model->plan.schedule->values_size;
        if (size > 0) {
            assert_true(copy.plan.call.values != model->plan.call.values);
            assert_memory_equal(copy.plan.call.values, model->plan.call.values, size);
        }
        if (model->floor != NULL) {
            floors++;
            assert_int_equal((const char *)copy.floor - (const char *)copy.plan.call.values,
                             (const char *)model->floor - (const char *)model->plan.call.values);
            n.floor = 0.5;
            fit_model_set(&copy, &n);
            assert_true(*model->floor == (model->floor_kind == FIT_FLOOR_RATIO || n.absolute
                                              ? model->now.floor
                                              : model->now.floor * 3e-4));
        }
        if (model->plan.schedule->state_size > 0) {
            states++;
            assert_true(copy.plan.call.state != NULL);
            assert_true(copy.plan.call.state != model->plan.call.state);
            assert_true(model->needs_total && model->plain_rise && model->linear);
        }
        struct fit_model elder = {.is_elder = 1};
        for (int bits = 0; bits < 4; bits++) {
            const struct fit_numbers few = {.floor = (bits & 1) * 0.1, .warmup = (bits >> 1) * 1.0};
            assert_int_equal(fit_model_is_listed(&elder, &few), bits == 3);
            elder.is_elder = 0;
            assert_true(fit_model_is_listed(&elder, &few));
            elder.is_elder = 1;
        }
    }
    assert_true(floors > 100 && states > 0);
    arena_close(&arena);
}

/* Whether what falls to the peak stands behind the warm-up, at all updates. */
static void corroborate_levels(void **state) {
    (void)state;
    struct fit_model *models;
    size_t count, level = 0, falls = 0;
    contract_request_init(&request);
    fit_known_init(&known);
    decays.count = 0;
    assert_int_equal(fit_models(&request, &known, &decays, &arena, &models, &count), STATUS_OK);
    for (size_t m = 0; m < count; m += 3) {
        struct fit_model *const model = &models[m];
        struct fit_numbers n = {.lr = 1.0, .warmup = 100.0, .total = 1000.0, .stride = 1.0};
        int stands = model->floor != NULL;
        if (model->plan.schedule->state_size > 0) continue;
        n.floor = 1.0;
        n.epoch = model->contract->unit == CONTRACT_UNIT_EPOCH ? 1 : 0;
        fit_model_set(model, &n);
        for (uint64_t k = 150; k <= 3000 && stands; k += 2)
            stands = fit_model_logged(model, k, 0) == fit_model_logged(model, 151, 0);
        if ((model->levels != 0) != stands)
            fail_msg("%s %s %s: %d", model->contract->name, model->schedule_name, model->parameters,
                     stands);
        level += stands != 0;
        falls += stands == 0;
    }
    assert_true(level > 20 && falls > 20);
    arena_close(&arena);
}

/* ---- what is refused ---- */

static enum status want_refusal(char *text, size_t size) {
    const struct sched_class *const *const classes = sched_classes();
    size_t contracts, most = 0;
    const struct contract *const all = contract_list(&contracts);
    struct contract_request trial = request, nearest;
    struct contract_plan plan;
    static const uint64_t one = 1;
    static const double metric = 1.0;
    if (isnan(trial.lr)) trial.lr = 1.0;
    if (trial.steps == 0 && trial.epochs == 0.0) trial.steps = 1073741824;
    if (trial.updates_per_epoch == 0) trial.updates_per_epoch = 1;
    if (trial.tokens == 0) trial.tokens = 1;
    trial.metric_update = &one;
    trial.metric_value = &metric;
    trial.metric_count = 1;
    nearest = trial;
    for (size_t c = 0; c < contracts; c++)
        for (size_t s = 0; classes[s] != NULL; s++) {
            if (request.contract != NULL && request.contract != &all[c]) continue;
            if (!in_family(classes[s], all[c].family)) continue;
            if (request.schedule != NULL &&
                sched_find_in(all[c].family, request.schedule) != classes[s])
                continue;
            trial.contract = &all[c];
            trial.schedule = classes[s]->name;
            if (contract_resolve(&trial, &scratch, &plan) == STATUS_OK) return STATUS_OK;
            size_t keys = 1;
            for (size_t v = 0; v < request.value_count; v++)
                if (sched_row(classes[s], request.values[v].key) != NULL) keys++;
            if (keys > most) most = keys, nearest = trial;
        }
    if (most == 0 && request.contract == NULL) {
        snprintf(text, size,
                 "--schedule: no contract has a schedule \"%s\"; see twinstep list schedules",
                 request.schedule);
        return STATUS_INPUT;
    }
    if (most == 1 && request.schedule == NULL && request.value_count > 0) {
        snprintf(text, size,
                 "--value: no schedule of the search has a key \"%s\"; see twinstep list schedules",
                 request.values[0].key);
        return STATUS_INPUT;
    }
    if (most == 0) nearest.contract = request.contract;
    const enum status status = contract_resolve(&nearest, &scratch, &plan);
    snprintf(text, size, "%s", status_text());
    return status;
}

static void corroborate_refusals(void **state) {
    (void)state;
    static const char *const contracts[] = {
        "hf", "megatron", "olmo-core-tokens", "lightning-epoch", "torchtitan", "llmc"};
    static const char *const schedules[] = {
        "linear", "wsd", "none", "reduce_lr_on_plateau", "olmo-core.wsd", "torch.one_cycle"};
    static const char *const values[][2] = {{"num_cycles", "2"}, {"num_cycles", "x"},
                                            {"power", "2"},      {"decay", "30"},
                                            {"nothing", "1"},    {"min_lr_ratio", "0.1"}};
    size_t refused = 0, accepted = 0;
    for (uint32_t number = 0; number < 2 * CASES; number++) {
        char text[600] = "";
        draws = (struct draws){.key = UINT64_C(0x4ef5), .number = number};
        contract_request_init(&request);
        if (seldom(2))
            request.contract = contract_find(contracts[draws_pick(&draws, COUNT_OF(contracts))]);
        if (seldom(2)) request.schedule = schedules[draws_pick(&draws, COUNT_OF(schedules))];
        request.value_count = draws_pick(&draws, 4);
        if (seldom(3)) request.value_count = 0;
        for (size_t v = 0; v < request.value_count; v++) {
            const size_t which = draws_pick(&draws, COUNT_OF(values));
            request.values[v].key = values[which][0];
            request.values[v].text = values[which][1];
        }
        if (seldom(4)) request.lr = 3e-4;
        if (seldom(8)) request.lr = -1.0;
        if (seldom(4)) request.steps = 40;
        if (seldom(4)) request.warmup = 2000.0;
        if (seldom(8)) request.epochs = 2.0;
        if (seldom(4)) request.tokens = 4;
        if (seldom(4)) request.updates_per_epoch = 4;
        const enum status as = want_refusal(text, sizeof text);
        const enum status is = fit_check_request(&request, &arena);
        if (is != as || (is != STATUS_OK && strcmp(status_text(), text) != 0))
            fail_msg("case %u: %d, %s for %d, %s", number, (int)is, status_text(), (int)as, text);
        refused += is != STATUS_OK;
        accepted += is == STATUS_OK;
        arena_close(&arena);
        arena_close(&scratch);
    }
    assert_true(refused > 50 && accepted > 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_lists),
        cmocka_unit_test(corroborate_settings),
        cmocka_unit_test(corroborate_levels),
        cmocka_unit_test(corroborate_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
