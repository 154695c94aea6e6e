/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Contracts as data: warm-up and totals by each framework's rounding, what is logged, skipped
 * updates, columns against single evaluations, and refusals with their texts. */
#include "sched/contract.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "base/real.h"

#define COLUMN 64

static struct contract_request request_of(const char *contract, uint64_t steps) {
    struct contract_request r;
    contract_request_init(&r);
    r.contract = contract_find(contract);
    assert_non_null(r.contract);
    r.lr = 1e-3;
    r.steps = steps;
    r.tokens = 1000;
    r.updates_per_epoch = 4;
    return r;
}

static struct contract_plan plan_of(const struct contract_request *request, struct arena *arena) {
    struct contract_plan plan;
    if (contract_resolve(request, arena, &plan) != STATUS_OK)
        fail_msg("%s: %s", request->contract->name, status_text());
    return plan;
}

static int same_bits(double a, double b) {
    return real_bits_f64(a) == real_bits_f64(b);
}

/* The length of the warm-up by each framework's rounding: math.ceil (transformers,
 * TrainingArguments.get_warmup_steps), int() (open-instruct olmo_core_utils.py, VeOmni
 * arguments_types.py), round() (OLMo-core optim/scheduler.py), and none (Megatron-LM,
 * get_optimizer_param_scheduler). */
static const struct {
    uint64_t steps;
    double ratio, ceil, floor, round, real;
} roundings[] = {
    {276, 0.03, 9, 8, 8, 276 * 0.03},
    {50, 0.03, 2, 1, 2, 1.5},
    {25, 0.1, 3, 2, 2, 2.5},
    {35, 0.1, 4, 3, 4, 3.5},
    {5, 0.1, 1, 0, 0, 0.5},
    {100, 0.07, 8, 7, 7, 7.000000000000001},
    {100, 0.29, 29, 28, 29, 28.999999999999996},
};

static const struct {
    const char *contract;
    int column; /* of the table above */
} rounders[] = {
    {"hf", 0},
    {"hf-4.50", 0},
    {"open-instruct-dpo", 1},
    {"veomni", 1},
    {"olmo-core", 2},
    {"torchtune", 1},
    {"torchtitan", 1},
    {"megatron", 3},
    {"llmc", 1},
    {"nemo-rl-megatron", 3},
    {"megatron-bridge", 3},
    {"deepspeed-torch", 0},
    {"accelerate", 1},
    {"open-instruct-tune-cache", 1},
};

static void validate_warmup_rounding(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(roundings); i++)
        for (size_t j = 0; j < COUNT_OF(rounders); j++) {
            const double columns[] = {roundings[i].ceil, roundings[i].floor, roundings[i].round,
                                      roundings[i].real};
            struct arena arena = ARENA_EMPTY;
            struct contract_request r = request_of(rounders[j].contract, roundings[i].steps);
            r.warmup_ratio = roundings[i].ratio;
            const double warmup = plan_of(&r, &arena).call.warmup;
            if (warmup != columns[rounders[j].column])
                fail_msg("%s, T %llu, ratio %g: expected %.17g, got %.17g", rounders[j].contract,
                         (unsigned long long)roundings[i].steps, roundings[i].ratio,
                         columns[rounders[j].column], warmup);
            arena_close(&arena);
        }
}

/* Where both lengths are rescaled the ratio is taken in counter units: int(2 * 25 * 0.03) = 1 of
 * two processes' steps. */
static void validate_warmup_units(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct contract_request r = request_of("open-instruct-tune-cache", 25);
    r.processes = 2;
    r.warmup_ratio = 0.03;
    struct contract_plan plan = plan_of(&r, &arena);
    assert_true(plan.call.total == 50.0 && plan.call.warmup == 1.0 && plan.warmup_updates == 0.5);
    r.rescaled = CONTRACT_RESCALED_TOTAL;
    plan = plan_of(&r, &arena);
    assert_true(plan.call.total == 50.0 && plan.call.warmup == 0.0);
    struct contract_request epochs = request_of("lightning-epoch", 10); /* of 4 updates */
    epochs.warmup = 2;
    plan = plan_of(&epochs, &arena);
    assert_true(plan.call.total == 3.0 && plan.call.warmup == 0.5);
    r.warmup_ratio = 0.2;
    r.rescaled = CONTRACT_RESCALED_WARMUP;
    plan = plan_of(&r, &arena);
    assert_true(plan.call.total == 25.0 && plan.call.warmup == 10.0);
    r = request_of("megatron", 100);
    r.warmup_ratio = 0.29;
    r.global_batch = 10;
    plan = plan_of(&r, &arena);
    assert_true(plan.call.total == 1000.0 && plan.call.warmup == 0.29 * 1000.0);
    assert_true(plan.increment == 10.0);
    arena_close(&arena);
}

static const struct total_case {
    const char *contract;
    uint64_t dataset, batch, accumulate, processes;
    double epochs;
    int drop_last;
    uint64_t steps;
    double units; /* total in the counter's unit */
} total_cases[] = {
    {"hf", 100, 4, 1, 1, 3, 0, 75, 75},
    {"hf", 101, 4, 1, 1, 3, 0, 78, 78}, /* 26 batches */
    {"hf", 101, 4, 1, 1, 3, 1, 75, 75},
    {"hf", 100, 4, 4, 1, 3, 0, 21, 21},      /* 25 batches: 7 windows, the last of one */
    {"hf-4.50", 100, 4, 4, 1, 3, 0, 18, 18}, /* whole windows */
    {"hf-4.51", 100, 4, 4, 1, 3, 0, 18, 18},
    {"hf", 100, 4, 4, 1, 2.5, 0, 18, 18}, /* ceil(17.5) */
    {"hf", 100, 4, 1, 8, 1, 0, 4, 4},     /* 25 batches over 8 processes */
    {"hf", 100, 4, 1, 8, 1, 1, 3, 3},
    {"hf", 3, 4, 8, 1, 2, 0, 2, 2},
    {"hf-4.50", 3, 4, 8, 1, 2, 0, 2, 2}, /* at least one */
    {"accelerate", 100, 4, 4, 2, 3, 0, 12, 24},
    {"accelerate-split-batches", 100, 4, 4, 2, 3, 0, 12, 12},
    {"lightning-step", 100, 4, 4, 2, 3, 0, 12, 12},
    {"lightning-epoch", 100, 4, 4, 1, 3, 0, 21, 3},
    {"torchtune", 100, 4, 4, 1, 3, 0, 18, 18},
    {"veomni", 15, 2, 8, 1, 2, 0, 2, 2}, /* floor(15 / 16), at least one */
    {"veomni", 31, 2, 8, 1, 2, 0, 2, 2}, /* floor(31 / 16), although 16 batches are begun */
    {"llmc", 1000, 4, 4, 8, 1, 0, 7, 7},
    {"open-instruct-dpo", 100, 4, 4, 1, 3, 0, 18, 18},
    {"open-instruct-tune-cache", 100, 4, 4, 2, 3, 0, 12, 21}, /* of all 25 batches, not 2 * 12 */
};

static void validate_totals(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(total_cases); i++) {
        const struct total_case *c = &total_cases[i];
        struct arena arena = ARENA_EMPTY;
        struct contract_request r = request_of(c->contract, 0);
        r.dataset = c->dataset;
        r.batch = c->batch;
        r.accumulate = c->accumulate;
        r.processes = c->processes;
        r.epochs = c->epochs;
        r.drop_last = c->drop_last;
        r.updates_per_epoch = 0;
        r.min_lr_ratio = 0.0;
        r.schedule = strcmp(c->contract, "torchtune") == 0 ? "cosine" : "linear";
        const struct contract_plan plan = plan_of(&r, &arena);
        if (plan.steps != c->steps || plan.call.total != c->units)
            fail_msg("case %zu, %s: expected %llu updates and %g, got %llu and %g", i, c->contract,
                     (unsigned long long)c->steps, c->units, (unsigned long long)plan.steps,
                     plan.call.total);
        arena_close(&arena);
    }
}

static void validate_caps(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct contract_request r = request_of("megatron-bridge", 10);
    r.global_batch = 8;
    r.warmup = 10;
    assert_true(plan_of(&r, &arena).call.warmup == 79.0); /* one sample less */
    r.warmup = 3;
    assert_true(plan_of(&r, &arena).call.warmup == 24.0);
    r = request_of("torchtitan", 10);
    r.warmup = 12;
    assert_true(plan_of(&r, &arena).call.warmup == 10.0);
    arena_close(&arena);
}

/* Takes every contract in its default schedule, with and without a warm-up and skipped updates. */
static const uint64_t skips[] = {1, 2, 7, 8, 20};

static void each_contract(void (*check)(const struct contract_plan *plan)) {
    size_t count;
    const struct contract *list = contract_list(&count);
    for (size_t i = 0; i < count; i++)
        for (int variant = 0; variant < 4; variant++) {
            struct arena arena = ARENA_EMPTY;
            struct contract_request r = request_of(list[i].name, 30);
            r.warmup = (variant & 1) != 0 ? 4.0 : 0.0;
            r.skipped = (variant & 2) != 0 ? skips : NULL;
            r.skipped_count = (variant & 2) != 0 ? COUNT_OF(skips) : 0;
            r.processes = 2;
            r.accumulate = 3;
            r.batch = 5;
            const struct contract_plan plan = plan_of(&r, &arena);
            check(&plan);
            arena_close(&arena);
        }
}

static void check_columns(const struct contract_plan *plan) {
    double applied[COLUMN], logged[COLUMN], alone[COLUMN];
    contract_columns(plan, COLUMN, applied, logged);
    for (uint64_t k = COLUMN; k >= 1; --k) {
        const double a = contract_applied(plan, k);
        const double l = contract_logged(plan, k);
        if (a != a) {
            assert_true(applied[k - 1] != applied[k - 1]);
            continue;
        }
        assert_true(same_bits(applied[k - 1], a));
        assert_true(same_bits(logged[k - 1], l) || (l != l && logged[k - 1] != logged[k - 1]));
    }
    contract_columns(plan, COLUMN, NULL, alone);
    assert_memory_equal(alone, logged, sizeof alone);
    contract_columns(plan, COLUMN, alone, NULL);
    assert_memory_equal(alone, applied, sizeof alone);
}

static void verify_columns(void **state) {
    (void)state;
    each_contract(check_columns);
}

static void check_logged(const struct contract_plan *plan) {
    const uint64_t ahead = plan->contract->logged == CONTRACT_LOGGED_NEXT ? 1 : 0;
    for (uint64_t k = 1; k <= plan->steps - 1; k++)
        assert_true(same_bits(contract_logged(plan, k), contract_applied(plan, k + ahead)));
}

static void verify_logged(void **state) {
    (void)state;
    each_contract(check_logged);
}

/* The k-th counted update applies what the k-th update applies where nothing is skipped. Where
 * skips advance, the skipped updates change nothing. */
static void check_skips(const struct contract_plan *plan) {
    struct contract_plan plain = *plan;
    uint64_t counted = 0;
    plain.skipped_count = 0;
    for (uint64_t k = 1; k <= plan->steps; k++) {
        size_t skipped = 0;
        for (size_t i = 0; i < plan->skipped_count; i++)
            skipped |= plan->skipped[i] == k;
        const uint64_t like = plan->contract->on_skip == CONTRACT_SKIP_HOLD ? counted + 1 : k;
        assert_true(same_bits(contract_applied(plan, k), contract_applied(&plain, like)));
        counted += skipped == 0;
    }
}

static void verify_skips(void **state) {
    (void)state;
    each_contract(check_skips);
}

/* Two contracts whose logs agree although their trainings do not, and two where it is the other way
 * round. */
static void validate_open_instruct(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct contract_request r = request_of("open-instruct-dpo", 5);
    r.lr = 5e-7;
    const struct contract_plan dpo = plan_of(&r, &arena);
    r.contract = contract_find("open-instruct-tune-cache");
    const struct contract_plan cache = plan_of(&r, &arena);
    r.contract = contract_find("hf");
    const struct contract_plan hf = plan_of(&r, &arena);
    for (uint64_t k = 1; k <= 5; k++) {
        const double a = contract_applied(&dpo, k);
        const double b = contract_applied(&cache, k);
        /* 1e-20 is about a hundred ulps of an LR of 5e-7 */
        assert_true(real_abs_f64(contract_logged(&dpo, k) - contract_logged(&cache, k)) < 1e-20);
        assert_true(real_abs_f64((b - a) - 1e-7) < 1e-20);
        assert_true(same_bits(b, contract_applied(&hf, k)));
        assert_true(real_abs_f64(contract_logged(&hf, k) - contract_logged(&cache, k)) > 9e-8);
    }
    assert_true(contract_applied(&dpo, 5) == 0.0);
    arena_close(&arena);
}

/* llm.c has no LR past the total, and all its LRs are binary32 numbers. */
static void validate_llmc(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct contract_request r = request_of("llmc", 10);
    r.warmup = 3;
    const struct contract_plan plan = plan_of(&r, &arena);
    for (uint64_t k = 1; k <= 10; k++) {
        const double lr = contract_applied(&plan, k);
        assert_true((double)(float)lr == lr);
    }
    assert_true(contract_applied(&plan, 3) == (double)1e-3f);
    assert_true(contract_applied(&plan, 11) != contract_applied(&plan, 11));
    arena_close(&arena);
}

static void validate_registry(void **state) {
    (void)state;
    size_t count;
    const struct contract *list = contract_list(&count);
    assert_true(count >= 30);
    for (size_t i = 0; i < count; i++) {
        const struct contract *c = &list[i];
        assert_ptr_equal(contract_find(c->name), c);
        if (c->alias != NULL) assert_ptr_equal(contract_find(c->alias), c);
        assert_non_null(sched_find_in(c->family, c->default_schedule));
        assert_true(c->preset[0] == NULL || sched_row(sched_find(c->preset[0]), c->preset[1]));
        assert_true(strlen(c->help) > 20 && strlen(c->source) > 10);
        assert_true(c->bug == 0 || strchr(c->source, '#') != NULL || strstr(c->source, ".py"));
        assert_true(strlen(contract_evidence_name(c->evidence)) >= 3);
    }
    assert_ptr_equal(contract_find("trl"), contract_find("hf"));
    assert_ptr_equal(contract_find("trl-4.50"), contract_find("hf-4.50"));
    assert_null(contract_find("hg"));
}

static void validate_versions_of_the_trainer(void **state) {
    (void)state;
    static const struct {
        const char *word, *name;
    } cases[] = {{"hf-4.57", "hf"},
                 {"hf-4.52.4", "hf"},
                 {"hf-5", "hf"},
                 {"transformers-5.2.0", "hf"},
                 {"hf-4.51.3", "hf-4.51"},
                 {"hf-4.9", "hf-4.50"},
                 {"hf-4.46.3", "hf-4.50"},
                 {"trl-4.46", "hf-4.50"},
                 {"trl-0.29", NULL},
                 {"hf-4.x", NULL},
                 {"hf-old", NULL},
                 {"olmo-core-4.57", NULL},
                 {"hf-4.50", "hf-4.50"},
                 {"hf-4.51", "hf-4.51"},
                 {"hf-4.52", "hf"},
                 {"hf-4", "hf-4.50"},
                 {"transformers-3.5.1", "hf-4.50"},
                 {"hf-3.51", "hf-4.50"},
                 {"trl-3.9", NULL},
                 {"trl-4.0", "hf-4.50"},
                 {"hf-9.0", "hf"},
                 {"hf-0.1", "hf-4.50"},
                 {"hf-/4", NULL},
                 {"hf-:4", NULL}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *const name = contract_name_of_version(cases[i].word);
        if (cases[i].name == NULL)
            assert_null(name);
        else
            assert_string_equal(name, cases[i].name);
        if (name != NULL) assert_non_null(contract_find(name));
    }
}

static void refuse(const struct contract_request *request, const char *needle) {
    struct arena arena = ARENA_EMPTY;
    struct contract_plan plan;
    assert_int_equal(contract_resolve(request, &arena, &plan), STATUS_INPUT);
    if (strstr(status_text(), needle) == NULL)
        fail_msg("expected \"%s\" in \"%s\"", needle, status_text());
    arena_close(&arena);
}

static void set_value(struct contract_request *r, const char *key, const char *text) {
    r->values[0].key = key;
    r->values[0].text = text;
    r->value_count = 1;
}

static void validate_refusals_of_numbers(void **state) {
    (void)state;
    static const uint64_t twice[] = {3, 3};
    struct contract_request r = request_of("hf", 10);
    r.lr = 0.0;
    refuse(&r, "--lr: expected a finite number above 0, got 0");
    contract_request_init(&r);
    refuse(&r, "--contract");
    r = request_of("hf", 0);
    refuse(&r, "--steps: expected the number of updates, or --dataset");
    r.dataset = 10;
    refuse(&r, "--epochs: expected a number above 0");
    r.epochs = 1;
    refuse(&r, "--batch");
    r = request_of("megatron", 0);
    r.dataset = 10;
    refuse(&r, "--steps: expected the number of updates; megatron has no rule");
    r = request_of("hf", 10);
    r.warmup = 2;
    r.warmup_ratio = 0.1;
    refuse(&r, "--warmup and --warmup-ratio");
    r.warmup_ratio = real_nan_f64();
    r.warmup = 2.5;
    refuse(&r, "--warmup: hf counts whole updates, got 2.5");
    r.warmup = -1;
    refuse(&r, "--warmup: expected from 0 to 2^53 updates, got -1");
    r = request_of("hf", 10);
    r.warmup_ratio = 1.5;
    refuse(&r, "--warmup-ratio: expected a number from 0 to 1, got 1.5");
    r = request_of("hf", 10);
    r.skipped = twice;
    r.skipped_count = 2;
    refuse(&r, "--skipped: expected updates from 1 on in ascending order, got 3");
    const uint64_t late[] = {13}; /* three epochs of four updates: up to 12 */
    r = request_of("lightning-epoch", 3);
    r.rescaled = CONTRACT_RESCALED_NONE;
    r.updates_per_epoch = 4;
    r.skipped = late;
    r.skipped_count = 1;
    refuse(&r, "--skipped: expected updates up to the total of 3 epochs, got 13");
    const uint64_t behind[] = {11};
    r = request_of("hf", 10);
    r.skipped = behind;
    r.skipped_count = 1;
    refuse(&r, "--skipped: expected updates up to the total of 10, got 11");
    r = request_of("olmo-core-tokens", 10);
    r.tokens = 0;
    refuse(&r, "--tokens");
    r = request_of("lightning-epoch", 10);
    r.updates_per_epoch = 0;
    refuse(&r, "--updates-per-epoch");
}

static void validate_refusals_of_schedules(void **state) {
    (void)state;
    struct contract_request r = request_of("olmo-core", 10);
    r.schedule = "polynomial";
    refuse(&r, "--schedule: olmo-core (family olmo-core) has no schedule \"polynomial\"; expected "
               "one of constant, constant_with_warmup, linear");
    r.schedule = "linear";
    set_value(&r, "alpha", "0.1");
    refuse(&r, "--value: schedule olmo-core.linear has no parameter \"alpha\"; it has "
               "min_lr_ratio, warmup_min_lr");
    set_value(&r, "min_lr_ratio", "2");
    refuse(&r, "--value: min_lr_ratio: expected a number from 0 to 1, got \"2\"");
    r.schedule = "constant";
    r.value_count = 0;
    r.min_lr_ratio = 0.1;
    refuse(&r, "--min-lr-ratio: schedule olmo-core.constant has no floor");
    r = request_of("megatron", 10);
    r.schedule = "wsd";
    set_value(&r, "decay_style", "cubic");
    refuse(&r, "decay_style: expected one of linear, cosine, exponential, minus_sqrt");
    r = request_of("megatron", 10);
    r.warmup = 10;
    refuse(&r, "megatron, schedule megatron.linear: schedule.warmup: Megatron expects less than "
               "the total of 10, got 10");
    r = request_of("olmo-core", 5);
    r.schedule = "wsd"; /* round(0.5) is 0 */
    refuse(&r, "schedule.decay: OLMo-core divides by zero");
    r = request_of("hf", 10);
    r.schedule = "polynomial";
    r.warmup = 10;
    refuse(&r, "polynomial divides by zero");
    r = request_of("hf", 10);
    r.schedule = "polynomial";
    r.lr = 1e-8;
    refuse(&r, "schedule.lr_end: expected less than the base rate");
}

/* A floor that is given as a share must become an LR where the schedule takes an LR; lengths are in
 * updates whatever the counter is. */
static void verify_parameters(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct contract_request r = request_of("megatron", 10);
    r.min_lr_ratio = 0.25;
    const struct contract_plan share = plan_of(&r, &arena);
    r.min_lr_ratio = real_nan_f64();
    set_value(&r, "min_lr", "0.00025");
    const struct contract_plan rate = plan_of(&r, &arena);
    for (uint64_t k = 1; k <= 12; k++)
        assert_true(same_bits(contract_applied(&share, k), contract_applied(&rate, k)));
    assert_true(contract_applied(&share, 12) == 0.00025);
    r = request_of("megatron", 10);
    r.schedule = "wsd";
    static const struct {
        const char *text;
        double counted;
    } lengths[] = {{"4", 2048.0}, {"1", 512.0}, {"0", 0.0}, {"auto", -1.0}}; /* auto stays auto */
    const size_t decay = sched_row(sched_find("megatron.wsd"), "decay")->offset;
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        double counted;
        r.global_batch = 1;
        set_value(&r, "decay", lengths[i].text);
        const struct contract_plan one = plan_of(&r, &arena);
        r.global_batch = 512;
        const struct contract_plan many = plan_of(&r, &arena);
        for (uint64_t k = 1; k <= 12; k++)
            assert_true(same_bits(contract_applied(&one, k), contract_applied(&many, k)));
        memcpy(&counted, (const char *)many.call.values + decay, sizeof counted);
        assert_true(counted == lengths[i].counted);
        assert_true(i > 0 ||
                    (contract_applied(&one, 7) == 1e-3 && contract_applied(&one, 8) < 1e-3));
    }
    arena_close(&arena);
}

/* transformers' "constant" has no warm-up, whatever is asked for. */
static void validate_constant(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct contract_request r = request_of("hf", 10);
    r.schedule = "constant";
    r.warmup = 4;
    const struct contract_plan plan = plan_of(&r, &arena);
    assert_true(contract_applied(&plan, 1) == 1e-3 && plan.warmup_updates == 0.0);
    arena_close(&arena);
}

/* The whole text, and the nearest request that is taken: "" says so. */
static void expect(const struct contract_request *request, const char *text) {
    struct arena arena = ARENA_EMPTY;
    struct contract_plan plan;
    const enum status status = contract_resolve(request, &arena, &plan);
    const char *got = status == STATUS_OK ? "" : status_text();
    if (strcmp(got, text) != 0) fail_msg("expected \"%s\"\ngot \"%s\"", text, got);
    assert_int_equal(status, text[0] == '\0' ? STATUS_OK : STATUS_INPUT);
    arena_close(&arena);
}

/* One number of a request at both sides of its bounds. */
static void validate_bounds_of_requests(void **state) {
    (void)state;
    static const struct {
        double lr, warmup, ratio, floor;
        const char *text;
    } numbers[] = {
        {5e-324, NAN, NAN, NAN, ""},
        {-1e-3, NAN, NAN, NAN, "--lr: expected a finite number above 0, got -0.001"},
        {NAN, NAN, NAN, NAN, "--lr: expected a finite number above 0, got none"},
        {INFINITY, NAN, NAN, NAN, "--lr: expected a finite number above 0, got inf"},
        {1e-3, 0, NAN, NAN, ""},
        {1e-3, 0x1p53, NAN, NAN, ""},
        {1e-3, 0x1p53 + 2, NAN, NAN,
         "--warmup: expected from 0 to 2^53 updates, got 9.007199254740994e+15"},
        {1e-3, -1, NAN, NAN, "--warmup: expected from 0 to 2^53 updates, got -1"},
        {1e-3, 2.5, NAN, NAN,
         "--warmup: hf counts whole updates, got 2.5; a share of the total is --warmup-ratio"},
        {1e-3, NAN, 0, NAN, ""},
        {1e-3, NAN, 1, NAN, ""},
        {1e-3, NAN, 1.0000000000000002, NAN,
         "--warmup-ratio: expected a number from 0 to 1, got 1.0000000000000002"},
        {1e-3, NAN, -5e-324, NAN, "--warmup-ratio: expected a number from 0 to 1, got -5e-324"},
        {1e-3, 1, 0.5, NAN, "--warmup and --warmup-ratio: expected one of them, got both"},
        {1e-3, NAN, NAN, 0, ""}, /* a floor of 0 is none, also where there is no key for it */
        {1e-3, NAN, NAN, 1.5, "--min-lr-ratio: expected a number from 0 to 1, got 1.5"},
        {1e-3, NAN, NAN, -1, "--min-lr-ratio: expected a number from 0 to 1, got -1"},
        {1e-3, NAN, NAN, 1, "--min-lr-ratio: schedule constant_with_warmup has no floor"},
    };
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        struct contract_request r = request_of("hf", 10);
        r.schedule = "constant_with_warmup";
        r.lr = numbers[i].lr;
        r.warmup = numbers[i].warmup;
        r.warmup_ratio = numbers[i].ratio;
        r.min_lr_ratio = numbers[i].floor;
        expect(&r, numbers[i].text);
    }
}

static void validate_bounds_of_totals(void **state) {
    (void)state;
    static const struct {
        const char *contract;
        uint64_t steps, dataset, batch;
        double epochs;
        const char *text;
    } totals[] = {
        {"hf", 1, 0, 0, 0, ""},
        {"hf", (uint64_t)1 << 53, 0, 0, 0, ""},
        {"hf", ((uint64_t)1 << 53) + 2, 0, 0, 0,
         "--steps: expected from 1 to 2^53 updates, got 9.007199254740994e+15"},
        {"hf", 10, 0, 0, 1, "--steps and --epochs: expected one of them, got both"},
        {"hf", 0, 0, 4, 1,
         "--steps: expected the number of updates, or --dataset, --epochs and --batch to derive "
         "it; got none"},
        {"hf", 0, 10, 4, 0, "--epochs: expected a number above 0 and at most 1e9, got none"},
        {"hf", 0, 10, 4, -1, "--epochs: expected a number above 0 and at most 1e9, got -1"},
        {"hf", 0, 10, 4, 1e9, ""},
        {"hf", 0, 10, 4, 1000000001,
         "--epochs: expected a number above 0 and at most 1e9, got 1000000001"},
        {"hf", 0, 10, 0, 1, "--batch: expected rows per process, got none"},
        {"hf", 0, (uint64_t)1 << 53, 4, 1, ""},
        {"hf", 0, ((uint64_t)1 << 53) + 2, 4, 1,
         "--dataset: expected at most 2^53 rows, got 9007199254740994"},
        {"megatron", 0, 10, 4, 1,
         "--steps: expected the number of updates; megatron has no rule that derives it from a "
         "dataset"},
    };
    for (size_t i = 0; i < COUNT_OF(totals); i++) {
        struct contract_request r = request_of(totals[i].contract, totals[i].steps);
        r.dataset = totals[i].dataset;
        r.batch = totals[i].batch;
        r.epochs = totals[i].epochs;
        expect(&r, totals[i].text);
    }
    struct contract_request r = request_of("megatron", (uint64_t)1 << 44); /* counts samples */
    r.global_batch = 512;
    expect(&r, "");
    r.global_batch = 513;
    expect(&r, "--steps: expected at most 2^53 counter units, got 9.024791440785408e+15");
}

/* Which updates may be skipped, and which may carry a metric. */
static void validate_lists_of_updates(void **state) {
    (void)state;
    static const uint64_t none[] = {0}, first[] = {1}, twice[] = {1, 3, 3}, last[] = {10},
                          back[] = {3, 2};
    static const double metric[] = {1, 1, 1};
    struct contract_request r = request_of("hf", 10);
    r.skipped = none;
    r.skipped_count = 1;
    expect(&r, "--skipped: expected updates from 1 on in ascending order, got 0");
    r.skipped = first;
    expect(&r, "");
    r.skipped = last;
    expect(&r, "");
    r.skipped = twice;
    r.skipped_count = 3;
    expect(&r, "--skipped: expected updates from 1 on in ascending order, got 3");
    r = request_of("hf", 10);
    r.schedule = "reduce_lr_on_plateau";
    r.metric_value = metric;
    r.metric_update = twice; /* two evaluations after one update are two */
    r.metric_count = 3;
    expect(&r, "");
    r.metric_update = back;
    r.metric_count = 2;
    expect(&r, "--metric: expected updates from 1 on in ascending order, got 2 after 3");
    r.metric_update = none;
    r.metric_count = 1;
    expect(&r, "--metric: expected updates from 1 on in ascending order, got 0 after 0");
    r.contract = contract_find("olmo-core"); /* sets its LR before the update, from n + 1 */
    r.schedule = "hf.reduce_lr_on_plateau";
    r.metric_update = first;
    expect(&r, "--schedule: reduce_lr_on_plateau follows an evaluation after the update; olmo-core "
               "sets the LR another way");
    r.schedule = "linear"; /* follows no evaluation, whoever made some */
    expect(&r, "");
}

/* The counter from which on an evaluation is seen: torch calls step(metric) after the update, an
 * epoch's evaluation belongs to its end, accelerate calls it once per process, and a skipped update
 * moves no counter where the contract holds. */
static void validate_metrics(void **state) {
    (void)state;
    static const uint64_t updates[] = {4, 8}, skipped[] = {2, 6};
    static const double metric[] = {2, 1};
    static const struct {
        const char *contract;
        uint64_t processes, skipped_count;
        double at[2], repeat;
    } cases[] = {
        {"hf", 1, 0, {4, 8}, 1},
        {"hf", 1, 2, {3, 6}, 1},
        {"accelerate", 3, 0, {12, 24}, 3},
        {"lightning-epoch", 1, 0, {1, 2}, 1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        if (contract_find(cases[i].contract) == NULL) fail_msg("%s", cases[i].contract);
        struct contract_request r = request_of(cases[i].contract, 100);
        r.schedule = "hf.reduce_lr_on_plateau";
        r.processes = cases[i].processes;
        r.metric_update = updates;
        r.metric_value = metric;
        r.metric_count = 2;
        r.skipped = skipped;
        r.skipped_count = cases[i].skipped_count;
        const struct contract_plan plan = plan_of(&r, &arena);
        assert_int_equal(plan.call.metric->count, 2);
        assert_true(plan.call.metric->repeat == cases[i].repeat);
        for (int k = 0; k < 2; k++) {
            if (plan.call.metric->at[k] != cases[i].at[k])
                fail_msg("%s: %g, expected %g", cases[i].contract, plan.call.metric->at[k],
                         cases[i].at[k]);
            assert_true(plan.call.metric->value[k] == metric[k]);
        }
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_versions_of_the_trainer),
        cmocka_unit_test(validate_warmup_rounding),
        cmocka_unit_test(validate_warmup_units),
        cmocka_unit_test(validate_totals),
        cmocka_unit_test(validate_caps),
        cmocka_unit_test(verify_columns),
        cmocka_unit_test(verify_logged),
        cmocka_unit_test(verify_skips),
        cmocka_unit_test(validate_open_instruct),
        cmocka_unit_test(validate_llmc),
        cmocka_unit_test(validate_registry),
        cmocka_unit_test(validate_refusals_of_numbers),
        cmocka_unit_test(validate_refusals_of_schedules),
        cmocka_unit_test(verify_parameters),
        cmocka_unit_test(validate_constant),
        cmocka_unit_test(validate_bounds_of_requests),
        cmocka_unit_test(validate_bounds_of_totals),
        cmocka_unit_test(validate_lists_of_updates),
        cmocka_unit_test(validate_metrics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
