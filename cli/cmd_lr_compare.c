/* SPDX-License-Identifier: Apache-2.0
 * twinstep lr compare: says where two contracts train differently, in words and as a table.
 *
 * Rates are equal up to the rounding of the frameworks' formulas: 2^-40 of the peak, or 2^-21 if
 * one side computes in binary32. Invariant: applied and logged rates are judged apart. */
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/real.h"
#include "cli/json.h"
#include "cli/lr_options.h"
#include "cli/verb.h"

#define COUNT_LIMIT 10000000u
#define WORDS_MAX 16
#define SHIFT_MAX 2

enum { KEY_COUNT = KEY_OWN };

struct side {
    struct contract_plan plan;
    const char *name;
    double *applied, *logged; /* each has count + SHIFT_MAX values */
};

struct comparison {
    struct arena *arena;
    struct side a, b;
    uint64_t count;
    double tolerance;
    uint64_t applied_differ, logged_differ; /* the number of updates at which they differ */
    uint64_t first; /* the update of the first applied difference; 0 if there is none */
    double largest; /* the largest applied difference that still counts as equal */
    int shift; /* A applies at update k what B applies at k + shift; 0 if there is no such shift */
    const char *words[WORDS_MAX];
    size_t word_count;
};

static int same(const struct comparison *c, double a, double b) {
    if (a != a || b != b) return a != a && b != b;
    return real_abs_f64(a - b) <= c->tolerance;
}

static void count_differences(struct comparison *c) {
    for (uint64_t i = 0; i < c->count; i++) {
        const double difference = real_abs_f64(c->a.applied[i] - c->b.applied[i]);
        if (!same(c, c->a.logged[i], c->b.logged[i])) c->logged_differ++;
        if (same(c, c->a.applied[i], c->b.applied[i])) {
            if (difference > c->largest) c->largest = difference;
            continue;
        }
        c->applied_differ++;
        if (c->first == 0) c->first = i + 1;
    }
}

/* Returns whether `early` uses at every update what `late` uses `by` updates later. */
static int shifted(const struct comparison *c, const double *early, const double *late,
                   uint64_t by) {
    for (uint64_t i = 0; i < c->count; i++)
        if (!same(c, early[i], late[i + by])) return 0;
    return 1;
}

static int shift_of(const struct comparison *c) {
    if (c->applied_differ == 0) return 0;
    for (int by = 1; by <= SHIFT_MAX; by++) {
        if (shifted(c, c->a.applied, c->b.applied, (uint64_t)by)) return by;
        if (shifted(c, c->b.applied, c->a.applied, (uint64_t)by)) return -by;
    }
    return 0;
}

#define SAY(c, ...)                                                                                \
    do {                                                                                           \
        char *said_;                                                                               \
        TRY(arena_format((c)->arena, &said_, __VA_ARGS__));                                        \
        if ((c)->word_count < WORDS_MAX) (c)->words[(c)->word_count++] = said_;                    \
    } while (0)

static enum status say_equal(struct comparison *c) {
    if (c->largest > 0.0)
        SAY(c,
            "%s and %s apply the same LR at every update, up to rounding (largest difference "
            "%.2g of a peak of %s)",
            c->a.name, c->b.name, c->largest, number_text_f64(c->a.plan.call.base_lr).text);
    else
        SAY(c, "%s and %s apply the same LR at every update, to the last bit", c->a.name,
            c->b.name);
    if (c->logged_differ > 0)
        SAY(c,
            "their logs differ at %llu of %llu updates although the training is the same: one "
            "shows the LR that was used, the other the next one",
            (unsigned long long)c->logged_differ, (unsigned long long)c->count);
    return STATUS_OK;
}

static enum status say_ends(struct comparison *c, const struct side *side,
                            const struct side *other) {
    const uint64_t last = side->plan.steps;
    if (last > c->count) return STATUS_OK;
    if (side->applied[0] == 0.0 && other->applied[0] != 0.0)
        SAY(c, "the first update of %s has LR 0", side->name);
    if (side->plan.contract->start == CONTRACT_START_BASE && side->plan.call.warmup > 0.0)
        SAY(c, "the first update of %s runs at the full LR although there is a warm-up",
            side->name);
    if (last > 1 && side->applied[last - 1] == 0.0 && other->applied[last - 1] != 0.0)
        SAY(c, "the last update of %s has LR 0", side->name);
    if (last > 1 && side->applied[last - 1] < 0.0)
        SAY(c, "the last update of %s has a negative LR", side->name);
    return STATUS_OK;
}

static double sum_of(const double *values, uint64_t count) {
    double sum = 0.0;
    for (uint64_t i = 0; i < count; i++)
        if (values[i] == values[i]) sum += values[i];
    return sum;
}

static enum status say_rates(struct comparison *c) {
    const uint64_t i = c->first - 1;
    SAY(c, "the applied LR differs at %llu of %llu updates, first at update %llu: %s against %s",
        (unsigned long long)c->applied_differ, (unsigned long long)c->count,
        (unsigned long long)c->first, number_text_f64(c->a.applied[i]).text,
        number_text_f64(c->b.applied[i]).text);
    const double a = sum_of(c->a.applied, c->count);
    const double b = sum_of(c->b.applied, c->count);
    if (b > 0.0)
        SAY(c, "summed over %llu updates, the LR of %s is %.6g of that of %s",
            (unsigned long long)c->count, c->a.name, a / b, c->b.name);
    if (c->logged_differ == 0)
        SAY(c, "columns logged are equal although the applied ones differ: a log comparison cannot "
               "see this");
    else
        SAY(c, "the logged LR differs at %llu of %llu updates",
            (unsigned long long)c->logged_differ, (unsigned long long)c->count);
    return STATUS_OK;
}

/* Returns how many times the schedule is run through in T updates: 1 if T and the counter have the
 * same unit. */
static double speed_of(const struct contract_plan *plan) {
    return plan->increment * (double)plan->steps / plan->call.total;
}

static enum status say_setup(struct comparison *c) {
    const struct contract_plan *a = &c->a.plan;
    const struct contract_plan *b = &c->b.plan;
    const double ratio = speed_of(a) / speed_of(b);
    if (ratio > 1.0 + 0x1p-20)
        SAY(c, "the counter of %s runs %.4g times as fast through its schedule as that of %s",
            c->a.name, ratio, c->b.name);
    if (ratio < 1.0 - 0x1p-20)
        SAY(c, "the counter of %s runs %.4g times as fast through its schedule as that of %s",
            c->b.name, 1.0 / ratio, c->a.name);
    if (a->steps != b->steps)
        SAY(c, "%s makes %llu updates of these numbers, %s %llu", c->a.name,
            (unsigned long long)a->steps, c->b.name, (unsigned long long)b->steps);
    if (a->warmup_updates != b->warmup_updates)
        SAY(c, "%s warms up over %s updates, %s over %s", c->a.name,
            number_text_f64(a->warmup_updates).text, c->b.name,
            number_text_f64(b->warmup_updates).text);
    if (strcmp(sched_bare_name(a->schedule), sched_bare_name(b->schedule)) != 0)
        SAY(c, "the schedules differ: %s against %s", a->schedule->name, b->schedule->name);
    const double low_a = a->schedule->minimum(&a->call);
    const double low_b = b->schedule->minimum(&b->call);
    if (!same(c, low_a, low_b))
        SAY(c, "the floors differ: %s of %s against %s of %s", number_text_f64(low_a).text,
            c->a.name, number_text_f64(low_b).text, c->b.name);
    return STATUS_OK;
}

/* Says where a skipped first update of one side makes its log that of the other, as a loss scaler
 * that starts too high does: the columns alone cannot tell such a pair apart. */
static enum status say_early_skip(struct comparison *c, const struct side *side,
                                  const struct side *other) {
    static const uint64_t first[] = {1};
    struct contract_plan plan = side->plan;
    if (c->logged_differ == 0 || plan.skipped_count > 0 ||
        plan.contract->on_skip != CONTRACT_SKIP_HOLD)
        return STATUS_OK;
    plan.skipped = first;
    plan.skipped_count = 1;
    for (uint64_t k = 1; k <= c->count; k++)
        if (!same(c, contract_logged(&plan, k), other->logged[k - 1])) return STATUS_OK;
    SAY(c, "with update 1 skipped, as a loss scaler may, %s logs what %s logs", side->name,
        other->name);
    return STATUS_OK;
}

/* Differences of the applied rates come first, since they are what trains; where there are none,
 * only what the logs and the numbers of the two say is left. */
static enum status judge(struct comparison *c) {
    count_differences(c);
    c->shift = shift_of(c);
    if (c->applied_differ == 0) {
        TRY(say_equal(c));
    } else {
        if (c->shift != 0)
            SAY(c, "update k of %s uses what update k+%d of %s uses",
                c->shift > 0 ? c->a.name : c->b.name, c->shift > 0 ? c->shift : -c->shift,
                c->shift > 0 ? c->b.name : c->a.name);
        TRY(say_ends(c, &c->a, &c->b));
        TRY(say_ends(c, &c->b, &c->a));
        TRY(say_rates(c));
    }
    TRY(say_early_skip(c, &c->a, &c->b));
    TRY(say_early_skip(c, &c->b, &c->a));
    return say_setup(c);
}

static enum status fill(struct comparison *c, struct side *side) {
    const uint64_t count = c->count + SHIFT_MAX;
    TRY(arena_take(c->arena, count, sizeof(double), "LR table", &side->applied));
    TRY(arena_take(c->arena, count, sizeof(double), "LR table", &side->logged));
    contract_columns(&side->plan, count, side->applied, side->logged);
    return STATUS_OK;
}

/* Without --schedule both sides follow the default of the first one, if the second's family has a
 * schedule of that name. */
static enum status resolve(struct comparison *c, const struct options *options) {
    struct contract_request request;
    TRY(lr_options_read(options, c->arena, &request));
    if (request.lr != request.lr) request.lr = 1e-3;
    if (request.steps == 0 && request.dataset == 0) request.steps = 10;
    TRY(lr_contract("lr compare", options->arguments[0], &request.contract));
    TRY(contract_resolve(&request, c->arena, &c->a.plan));
    TRY(lr_contract("lr compare", options->arguments[1], &request.contract));
    if (request.schedule == NULL) {
        const char *bare = sched_bare_name(c->a.plan.schedule);
        if (sched_find_in(request.contract->family, bare) != NULL) request.schedule = bare;
    }
    return contract_resolve(&request, c->arena, &c->b.plan);
}

static enum status open_sides(struct comparison *c, const struct options *options) {
    TRY(resolve(c, options));
    const int binary32 = c->a.plan.contract->float32 || c->b.plan.contract->float32;
    c->tolerance = c->a.plan.call.base_lr * (binary32 ? 0x1p-21 : 0x1p-40);
    c->a.name = options->arguments[0];
    c->b.name = options->arguments[1];
    c->count = c->a.plan.steps > c->b.plan.steps ? c->a.plan.steps : c->b.plan.steps;
    TRY(lr_option_count(options, KEY_COUNT, "--count", &c->count));
    if (c->count == 0 || c->count > COUNT_LIMIT)
        FAIL(STATUS_INPUT, "--count: expected from 1 to %u updates, got %llu", COUNT_LIMIT,
             (unsigned long long)c->count);
    TRY(fill(c, &c->a));
    return fill(c, &c->b);
}

static void print_text(const struct comparison *c) {
    for (size_t i = 0; i < c->word_count; i++)
        printf("%s.\n", c->words[i]);
    printf("\nA: %s, %s\nB: %s, %s\n\n%8s  %-22s %-22s %-22s %s\n", c->a.name,
           c->a.plan.schedule->name, c->b.name, c->b.plan.schedule->name, "update", "A applied",
           "B applied", "A logged", "B logged");
    for (uint64_t i = 0; i < c->count; i++)
        printf("%8llu%c %-22s %-22s %-22s %s\n", (unsigned long long)(i + 1),
               same(c, c->a.applied[i], c->b.applied[i]) ? ' ' : '*',
               number_text_f64(c->a.applied[i]).text, number_text_f64(c->b.applied[i]).text,
               number_text_f64(c->a.logged[i]).text, number_text_f64(c->b.logged[i]).text);
}

static void print_side(const struct comparison *c, const char *key, const struct side *side) {
    printf("  \"%s\": {\"contract\": \"%s\", \"schedule\": \"%s\", \"steps\": %llu,\n    ", key,
           side->plan.contract->name, side->plan.schedule->name,
           (unsigned long long)side->plan.steps);
    json_print_reals("applied", side->applied, c->count);
    fputs(",\n    ", stdout);
    json_print_reals("logged", side->logged, c->count);
    puts("},");
}

/* The sentences are put into JSON as they are: they hold no character that would have to be
 * escaped. */
static void print_json(const struct comparison *c) {
    printf("{\n  \"equal\": %s,\n  \"logged_equal\": %s,\n",
           c->applied_differ == 0 ? "true" : "false", c->logged_differ == 0 ? "true" : "false");
    if (c->first == 0)
        puts("  \"first_difference\": null,");
    else
        printf("  \"first_difference\": %llu,\n", (unsigned long long)c->first);
    printf("  \"shift\": %d,\n", c->shift);
    print_side(c, "a", &c->a);
    print_side(c, "b", &c->b);
    puts("  \"words\": [");
    for (size_t i = 0; i < c->word_count; i++)
        printf("    \"%s\"%s\n", c->words[i], i + 1 == c->word_count ? "" : ",");
    puts("  ]\n}");
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    struct comparison comparison;
    memset(&comparison, 0, sizeof comparison);
    comparison.arena = &cli->arena;
    TRY(open_sides(&comparison, options));
    TRY(judge(&comparison));
    *out_exit = comparison.applied_differ == 0 ? EXIT_AS_EXPECTED : EXIT_DIFFERS;
    if (options->json)
        print_json(&comparison);
    else
        print_text(&comparison);
    return STATUS_OK;
}

static const struct argp_option option_rows[] = {
    LR_OPTION_ROWS,
    OPTION("count", KEY_COUNT, "N", "Updates to compare; default is the longer total"), OPTION_JSON,
    OPTIONS_END};

const struct verb verb_lr_compare = {
    .name = "lr compare",
    .brief = "where two frameworks train with different learning rates, in words",
    .arguments = "CONTRACT CONTRACT",
    .text = "Compares the learning rates that two frameworks apply to the same configuration, and "
            "what their logs show. Trains nothing. Without --lr and --steps: 1e-3 and 10.\v"
            "Example: twinstep lr compare olmo-core hf --lr 5e-7 --steps 5 --min-lr-ratio 0",
    .options = option_rows,
    .least = 2,
    .most = 2,
    .run = run,
};
