/* SPDX-License-Identifier: Apache-2.0
 * labels: unit
 * Every shipped LR contract in training: what the loop applies and logs must be the contract's two
 * columns, bit for bit, and the LR read back from weights and moments must be the one applied. The
 * table is made here from the contract, the run from a scenario that names it. The cases cover
 * skipped updates, f32 and bf16, several processes, and the words that describe the loop. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "sched/contract.h"
#include "tests/trainer/helper_train.h"
#include "trainer/run_private.h"
#include "trainer/schema_classes.h"

enum { TOTAL = 10, WARMUP = 3, PAST = 2, PER_EPOCH = 5, STEPS_MAX = TOTAL + PAST };
#define LR 1e-3
#define F64 "numerics: {param: f64, compute: f64}"
#define ADAMW "optimizer: {lr: 1e-3, weight_decay: 0.1}"

/* One training under a contract. */
struct deal {
    const struct contract *contract;
    const char *schedule;  /* bare name */
    const char *optimizer; /* section of the scenario */
    const char *words;     /* more of them */
    uint64_t processes;
    int32_t rescaled; /* enum contract_rescaled */
    const uint64_t *skipped;
    size_t skipped_count;
    const char *key, *text; /* a parameter of the schedule that is a list */
};

struct bench {
    struct config config;
    struct arena arena;
    struct dataset dataset;
    struct run run;
    struct contract_plan plan;
    uint64_t steps;
};

static void plan_open(const struct deal *deal, struct bench *bench) {
    struct contract_request request;
    contract_request_init(&request);
    request.contract = deal->contract;
    request.schedule = deal->schedule;
    request.lr = LR;
    request.warmup = WARMUP;
    request.steps = TOTAL;
    request.batch = 2;
    request.accumulate = 2;
    request.processes = deal->processes;
    request.rescaled = deal->rescaled;
    request.global_batch = 4;
    request.updates_per_epoch = PER_EPOCH;
    request.skipped = deal->skipped;
    request.skipped_count = deal->skipped_count;
    request.values[0].key = deal->key;
    request.values[0].text = deal->text;
    request.value_count = deal->key != NULL;
    enum status status = contract_resolve(&request, &bench->arena, &bench->plan);
    if (status != STATUS_OK) fail_msg("%s: %s", deal->contract->name, status_text());
}

static void bench_open(const struct deal *deal, struct bench *bench) {
    static const char *const rescaled[] = {"contract", "none", "total", "warmup", "contract"};
    char numbers[128] = "", list[192] = "";
    bench->arena = (struct arena)ARENA_EMPTY;
    bench->steps = deal->contract->past_end == CONTRACT_PAST_ABORT ? TOTAL : STEPS_MAX;
    if (deal->contract->unit == CONTRACT_UNIT_EPOCH)
        snprintf(numbers, sizeof numbers, ", updates_per_epoch: %d", PER_EPOCH);
    if (deal->contract->unit == CONTRACT_UNIT_PROCESS && deal->contract->scaled)
        snprintf(numbers, sizeof numbers, ", processes: %llu, rescaled: %s",
                 (unsigned long long)deal->processes, rescaled[deal->rescaled]);
    else if (deal->contract->unit == CONTRACT_UNIT_PROCESS)
        snprintf(numbers, sizeof numbers, ", processes: %llu", (unsigned long long)deal->processes);
    if (deal->key != NULL) snprintf(list, sizeof list, ", %s: \"%s\"", deal->key, deal->text);
    helper_config(bench->steps, &bench->config,
                  "%s, %s, schedule: {contract: %s, name: %s, warmup: %d, total: %d%s%s}, "
                  "data: {max_len: 16}, batch: {size: 4, micro: 2}, init: {std: 0.1}, "
                  "model: {layers: 1, hidden: 16, heads: 2, mlp: 20, vocab: 19}",
                  deal->optimizer, deal->words, deal->contract->name, deal->schedule, WARMUP, TOTAL,
                  numbers, list);
    plan_open(deal, bench);
    helper_ids_open(&bench->config, 8, 4 * PER_EPOCH, 16, &bench->arena, &bench->dataset);
    helper_run_open(&bench->config, &bench->dataset,
                    &(struct run_options){.readback = 1, .steps = bench->steps}, &bench->run);
}

static void bench_close(struct bench *bench) {
    run_close(&bench->run);
    arena_close(&bench->arena);
}

static int is_skipped(const struct deal *deal, uint64_t k) {
    for (size_t i = 0; i < deal->skipped_count; i++)
        if (deal->skipped[i] == k) return 1;
    return 0;
}

static int same_bits(double a, double b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

static void check_columns(const struct deal *deal, const struct bench *bench, uint64_t k,
                          const double *group) {
    double applied = contract_applied(&bench->plan, k), logged = contract_logged(&bench->plan, k);
    if (is_skipped(deal, k))
        assert_true(isnan(group[GROUP_LR_APPLIED]));
    else if (!same_bits(group[GROUP_LR_APPLIED], applied))
        fail_msg("%s %s: update %ju applies %.17g, the contract %.17g", deal->contract->name,
                 deal->schedule, (uintmax_t)k, group[GROUP_LR_APPLIED], applied);
    if (!same_bits(group[GROUP_LR_LOGGED], logged))
        fail_msg("%s %s: update %ju logs %.17g, the contract %.17g", deal->contract->name,
                 deal->schedule, (uintmax_t)k, group[GROUP_LR_LOGGED], logged);
}

/* Allows a gap of `most` times the LR applied, or times the peak where the LR is 0. */
static void check_readback(const struct deal *deal, const struct bench *bench, uint64_t k,
                           const double *group, double most) {
    double applied = contract_applied(&bench->plan, k);
    double gap = fabs(group[GROUP_LR_READBACK] - applied);
    if (!(gap <= most * (applied > 0.0 ? applied : LR)))
        fail_msg("%s %s: update %ju applies %.17g, weights and moments say %.17g",
                 deal->contract->name, deal->schedule, (uintmax_t)k, applied,
                 group[GROUP_LR_READBACK]);
}

static void train_f64(const struct deal *deal) {
    struct bench bench;
    bench_open(deal, &bench);
    for (uint64_t k = 1; k <= bench.steps; k++) {
        const struct record *record = helper_step(&bench.run);
        check_columns(deal, &bench, k, record->groups[0]);
        check_readback(deal, &bench, k, record->groups[0], 1e-8);
    }
    bench_close(&bench);
}

static int is_refused(const struct contract *contract) {
    struct arena arena = ARENA_EMPTY;
    const struct schema *schema;
    assert_int_equal(schema_with_classes(&arena, &schema), STATUS_OK);
    int refused = schema_contract_find(schema, contract->name)->refusal != NULL;
    arena_close(&arena);
    return refused;
}

static uint64_t processes_of(const struct contract *contract) {
    return contract->unit == CONTRACT_UNIT_PROCESS ? 2 : 1;
}

/* A schedule of another family must be named by its full name. */
static void verify_foreign_schedule(void **state) {
    (void)state;
    train_f64(&(struct deal){.contract = contract_find("olmo-core"),
                             .schedule = "hf.cosine_with_restarts",
                             .optimizer = ADAMW,
                             .words = F64});
    train_f64(&(struct deal){.contract = contract_find("hf"),
                             .schedule = "megatron.cosine",
                             .optimizer = ADAMW,
                             .words = F64});
}

/* Trains each contract with each schedule of its family. */
static void verify_every_schedule(void **state) {
    (void)state;
    size_t count = 0, trained = 0;
    const struct contract *contracts = contract_list(&count);
    for (size_t i = 0; i < count; i++) {
        if (is_refused(&contracts[i])) continue;
        for (const struct sched_class *const *c = sched_classes(); *c != NULL; c++) {
            if (!sched_in_family(*c, contracts[i].family)) continue;
            if ((*c)->feedback || strcmp((*c)->name, "olmo-core.composable") == 0)
                continue; /* one follows a metric, the other has no stages by itself */
            train_f64(&(struct deal){.contract = &contracts[i],
                                     .schedule = sched_bare_name(*c),
                                     .optimizer = ADAMW,
                                     .words = F64,
                                     .processes = processes_of(&contracts[i])});
            trained++;
        }
    }
    print_message("%zu trainings of %zu contracts\n", trained, count);
    assert_true(trained > 60);
}

/* Schedules whose parameters are lists, and those of torch that are in no contract's family. */
static void verify_lists(void **state) {
    (void)state;
    static const struct {
        const char *contract, *schedule, *key, *text;
    } cases[] = {
        {"olmo-core", "composable", "stages", "linear:3:0:1, cosine:4:=1e-4"},
        {"olmo-core", "wsds", "periods", "8,6"},
        {"olmo-core", "sequential", "stages", "linear:4:min_lr_ratio=0.5,cosine:4,constant"},
        {"hf", "torch.sequential", "stages",
         "linear:3:start_factor=0.1:total_iters=3,step:step_size=2"},
        {"hf", "torch.one_cycle", NULL, NULL},
        {"accelerate", "torch.one_cycle", NULL, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct contract *contract = contract_find(cases[i].contract);
        train_f64(&(struct deal){.contract = contract,
                                 .schedule = cases[i].schedule,
                                 .optimizer = ADAMW,
                                 .words = F64,
                                 .processes = processes_of(contract),
                                 .key = cases[i].key,
                                 .text = cases[i].text});
    }
}

static void verify_sgd(void **state) {
    (void)state;
    size_t count = 0;
    const struct contract *contracts = contract_list(&count);
    for (size_t i = 0; i < count; i++)
        if (!is_refused(&contracts[i]))
            train_f64(&(struct deal){
                .contract = &contracts[i],
                .schedule = contracts[i].default_schedule,
                .optimizer = "optimizer: {name: sgd, lr: 1e-3, momentum: 0.9, weight_decay: 0.1}",
                .words = F64,
                .processes = processes_of(&contracts[i])});
}

/* In short dtypes the estimate must lie within the error that it prints; or that error is as large
 * as the LR, and nothing can be said. */
static void verify_short_dtypes(void **state) {
    (void)state;
    static const struct {
        const char *words;
        int all_readable;
    } dtypes[] = {
        {"numerics: {param: f32, compute: f32}", 1},
        {"numerics: {param: bf16, compute: bf16, master: f32}", 1},
        {"numerics: {param: bf16, compute: bf16}", 0},
    };
    size_t count = 0;
    const struct contract *contracts = contract_list(&count);
    for (size_t d = 0; d < COUNT_OF(dtypes); d++) {
        size_t readable = 0, untestable = 0;
        for (size_t i = 0; i < count; i++) {
            struct bench bench;
            struct deal deal = {.contract = &contracts[i],
                                .schedule = contracts[i].default_schedule,
                                .optimizer = ADAMW,
                                .words = dtypes[d].words,
                                .processes = processes_of(&contracts[i])};
            if (is_refused(&contracts[i])) continue;
            bench_open(&deal, &bench);
            for (uint64_t k = 1; k <= bench.steps; k++) {
                const double *group = helper_step(&bench.run)->groups[0];
                double error = group[GROUP_LR_ERROR];
                double gap = fabs(group[GROUP_LR_READBACK] - group[GROUP_LR_APPLIED]);
                check_columns(&deal, &bench, k, group);
                if (!isnan(error) && !(gap <= error))
                    fail_msg("%s, %s: update %ju: %.9g applied, %.9g +- %.2g read back",
                             contracts[i].name, dtypes[d].words, (uintmax_t)k,
                             group[GROUP_LR_APPLIED], group[GROUP_LR_READBACK], error);
                if (!(group[GROUP_LR_APPLIED] > 1e-6 * LR)) continue; /* the foot of a cosine */
                if (isnan(error) || error >= group[GROUP_LR_APPLIED]) {
                    untestable++;
                    continue;
                }
                readable++;
            }
            bench_close(&bench);
        }
        print_message("%s: %zu updates readable, %zu untestable\n", dtypes[d].words, readable,
                      untestable);
        if (dtypes[d].all_readable) {
            assert_true(readable > 100);
            assert_int_equal(untestable, 0);
        }
    }
}

/* ---- skipped updates ---- */

static double *final_norm(struct run *run) { /* f64 */
    uint32_t row = params_owner(&run->table, ROLE_NORM_FINAL, 0);
    return (double *)run_at(run, run->layout.tensor[row].param);
}

static void train_with_skips(const struct deal *deal) {
    struct bench bench;
    bench_open(deal, &bench);
    for (uint64_t k = 1; k <= bench.steps; k++) {
        double kept = final_norm(&bench.run)[3];
        if (is_skipped(deal, k)) final_norm(&bench.run)[3] = (double)INFINITY;
        const struct record *record = helper_step(&bench.run);
        assert_int_equal(record->integers[INTEGER_SKIPPED], is_skipped(deal, k));
        check_columns(deal, &bench, k, record->groups[0]);
        if (is_skipped(deal, k))
            final_norm(&bench.run)[3] = kept;
        else
            check_readback(deal, &bench, k, record->groups[0], 1e-8);
    }
    bench_close(&bench);
}

static void verify_skips(void **state) {
    (void)state;
    static const uint64_t late[] = {4, 5, 9}, first[] = {1, 6};
    size_t count = 0, rules[2] = {0, 0};
    const struct contract *contracts = contract_list(&count);
    for (size_t i = 0; i < count; i++) {
        struct deal deal = {.contract = &contracts[i],
                            .schedule = contracts[i].default_schedule,
                            .optimizer = ADAMW,
                            .words = F64 ", loop: {skip: nonfinite}",
                            .processes = processes_of(&contracts[i]),
                            .skipped = late,
                            .skipped_count = COUNT_OF(late)};
        if (is_refused(&contracts[i])) continue;
        train_with_skips(&deal);
        deal.skipped = first;
        deal.skipped_count = COUNT_OF(first);
        train_with_skips(&deal);
        rules[contracts[i].on_skip == CONTRACT_SKIP_ADVANCE]++;
    }
    print_message("%zu contracts hold the schedule, %zu advance it\n", rules[0], rules[1]);
    assert_true(rules[0] > 5 && rules[1] > 3);
}

/* ---- known values (the frameworks' own tables, docs/LR.md) ---- */

static const struct {
    const char *contract, *schedule;
    int32_t rescaled;
    double applied[TOTAL]; /* in units of the peak */
} golden[] = {
    {"hf",
     "linear",
     0,
     {0, .333333, .666667, 1, .857143, .714286, .571429, .428571, .285714, .142857}},
    {"accelerate",
     "linear",
     CONTRACT_RESCALED_DEFAULT,
     {0, .333333, .666667, 1, .857143, .714286, .571429, .428571, .285714, .142857}},
    {"accelerate",
     "linear",
     CONTRACT_RESCALED_NONE,
     {0, .666667, .857143, .571429, .285714, 0, 0, 0, 0, 0}},
    {"accelerate",
     "linear",
     CONTRACT_RESCALED_TOTAL,
     {0, .666667, .941176, .823529, .705882, .588235, .470588, .352941, .235294, .117647}},
    {"torchtitan",
     "linear",
     0,
     {.333333, .666667, 1, 1, .857143, .714286, .571429, .428571, .285714, .142857}},
    {"llmc",
     "linear",
     0,
     {.333333, .666667, 1, 1, .857143, .714286, .571429, .428571, .285714, .142857}},
    {"megatron",
     "linear",
     0,
     {0, .333333, .666667, 1, .857143, .714286, .571429, .428571, .285714, .142857}},
};

static void validate_golden(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(golden); i++) {
        struct bench bench;
        const struct contract *contract = contract_find(golden[i].contract);
        assert_non_null(contract);
        struct deal deal = {.contract = contract,
                            .schedule = golden[i].schedule,
                            .optimizer = ADAMW,
                            .words = F64,
                            .processes = processes_of(contract),
                            .rescaled = golden[i].rescaled};
        bench_open(&deal, &bench);
        for (uint64_t k = 1; k <= TOTAL; k++) {
            const double *group = helper_step(&bench.run)->groups[0];
            check_columns(&deal, &bench, k, group);
            /* the tables have six decimals: half a unit, and the error of the read-back */
            if (fabs(group[GROUP_LR_READBACK] / LR - golden[i].applied[k - 1]) > 6e-7)
                fail_msg("%s: update %ju: %.9g read back, %.6f expected", golden[i].contract,
                         (uintmax_t)k, group[GROUP_LR_READBACK], golden[i].applied[k - 1]);
        }
        bench_close(&bench);
    }
}

/* ---- words ---- */

/* The words made by walking over the loop must equal those made from the contract's fields, and for
 * these contracts they are known. */
static const struct {
    const char *contract, *applied, *logged;
} words[] = {
    {"hf", "f(k-1)", "f(k-1)"},
    {"hf-4.50", "f(k-1)", "f(k)"},
    {"accelerate", "f(2(k-1))", "f(2k)"},
    {"olmo-core", "f(k)", "f(k)"},
    {"open-instruct-dpo", "f(k)", "f(k)"},
    {"open-instruct-tune-cache", "f(2(k-1))", "f(2k)"},
    {"open-instruct-h17", "base at k=1, then f(k-1)", "f(k)"},
    {"open-instruct-h17-h25", "zero at k=1, then f(k-1)", "f(k)"},
    {"megatron", "f(4(k-1))", "f(4k)"},
    {"lightning-step", "f(k-1)", "f(k-1)"},
    {"lightning-epoch", "f(0) at every update, until list epoch or eval moves it",
     "f(0) at every update, until list epoch or eval moves it"},
    {"torchtitan", "f(k-1)", "f(k-1)"},
    {"nemo-rl-megatron", "f(4(k-1))", "f(4(k-1))"},
    {"deepspeed-warmup", "min at k=1, then f(k-2)", "f(k-1)"},
    {"deepspeed-warmup-old", "base at k=1, then f(k-2)", "f(k-1)"},
    {"deepspeed-cosine", "zero at k=1, then f(k-2)", "f(k-1)"},
    {"llmc", "f(k-1)", "f(k-1)"},
    {"veomni", "f(k-1)", "f(k)"},
    {"per-micro-batch", "f(2(k-1))", "f(2(k-1))"},
    {"lag1", "f(0) at k=1, then f(k-2)", "f(0) at k=1, then f(k-2)"},
};

/* Writes f(inc * (k - 1 + d)), the LR that update k applies in the steady state. */
static void write_steady(char *out, size_t size, double increment, int ahead) {
    int offset = ahead - 1;
    if (increment == 1.0 && offset == 0)
        snprintf(out, size, "f(k)");
    else if (increment == 1.0)
        snprintf(out, size, "f(k%+d)", offset);
    else if (offset == 0)
        snprintf(out, size, "f(%.0fk)", increment);
    else
        snprintf(out, size, "f(%.0f(k%+d))", increment, offset);
}

static void write_expected(const struct contract_plan *plan, int logged, char *out, size_t size) {
    static const char *const starts[] = {"f(0)", "base", "zero", "min", ""};
    const struct contract *contract = plan->contract;
    int next = logged && contract->logged == CONTRACT_LOGGED_NEXT;
    char steady[64];
    write_steady(steady, sizeof steady, plan->increment, contract->offset + next);
    int starts_alike = contract->start == CONTRACT_START_F0 && contract->offset == 0;
    if (contract->start == CONTRACT_START_NONE || starts_alike || next)
        snprintf(out, size, "%s", steady);
    else
        snprintf(out, size, "%s at k=1, then %s", starts[contract->start], steady);
    if (contract->unit == CONTRACT_UNIT_EPOCH)
        snprintf(out, size, "f(0) at every update, until list epoch or eval moves it");
}

static void check_words(const struct contract *contract, const struct loop_words *said,
                        const struct contract_plan *plan) {
    char applied[LOOP_PHRASE], logged[LOOP_PHRASE];
    write_expected(plan, 0, applied, sizeof applied);
    write_expected(plan, 1, logged, sizeof logged);
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strcmp(words[i].contract, contract->name) == 0) {
            assert_string_equal(applied, words[i].applied);
            assert_string_equal(logged, words[i].logged);
        }
    if (strcmp(said->applied, applied) != 0 || strcmp(said->logged, logged) != 0)
        fail_msg("%s: applies %s and logs %s, the contract %s and %s", contract->name,
                 said->applied, said->logged, applied, logged);
}

static void verify_words(void **state) {
    (void)state;
    size_t count = 0;
    const struct contract *contracts = contract_list(&count);
    for (size_t i = 0; i < count; i++) {
        struct deal deal = {.contract = &contracts[i],
                            .schedule = contracts[i].default_schedule,
                            .optimizer = ADAMW,
                            .words = F64,
                            .processes = processes_of(&contracts[i])};
        struct bench bench;
        struct loop_words said;
        if (is_refused(&contracts[i])) continue;
        bench_open(&deal, &bench);
        loop_words_of(&bench.config, &said);
        check_words(&contracts[i], &said, &bench.plan);
        bench_close(&bench);
    }
    for (size_t i = 0; i < COUNT_OF(words); i++)
        assert_non_null(contract_find(words[i].contract));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_every_schedule),   cmocka_unit_test(verify_lists),
        cmocka_unit_test(verify_foreign_schedule), cmocka_unit_test(verify_sgd),
        cmocka_unit_test(verify_short_dtypes),     cmocka_unit_test(verify_skips),
        cmocka_unit_test(validate_golden),         cmocka_unit_test(verify_words),

    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
