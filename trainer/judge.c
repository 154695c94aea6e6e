/* SPDX-License-Identifier: Apache-2.0
 * Judges a trace image: first difference, floor, attribution, expectation, in this order. */
#include "trainer/judge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "determinism/power.h"
#include "determinism/shapley.h"
#include "determinism/statistics.h"
#include "trainer/judge_sampled.h"

const char *floor_kind_name(enum floor_kind kind) {
    static const char *const names[] = {"none", "exact", "permutation", "rank"};
    return names[kind];
}

const char *closure_name(enum closure closure) {
    static const char *const names[] = {"open", "exact", "within-floor"};
    return names[closure];
}

const char *expectation_name(enum expectation expectation) {
    static const char *const names[] = {"none", "met", "missed"};
    return names[expectation];
}

#define FLOOR_RUNS_MAX 1000u

struct court {
    const struct trace_image *image;
    struct arena *arena;
    const struct trace_run *run[2];
    struct judgement *out;
};

static const char *attribute(const struct court *court, const char *path, const char *name) {
    const char *text = trace_attribute_of(court->image, path, name);
    return text == NULL ? "" : text;
}

static enum status number_attribute(const struct court *court, const char *path, const char *name,
                                    double *out) {
    const char *text = trace_attribute_of(court->image, path, name);
    if (text == NULL)
        FAIL(STATUS_INPUT, "trace: attribute %s of \"/%s\" is missing: not written by run", name,
             path);
    return number_parse_real(text, NUMBER_SPECIAL, out);
}

/* The array `path` with exactly `rows` x `columns` values; NULL when the trace has none. */
static enum status array_of(const struct court *court, const char *path, uint64_t rows,
                            uint64_t columns, const struct trace_array **out) {
    const struct trace_array *array = trace_array_of(court->image, path);
    *out = array;
    if (array == NULL) return STATUS_OK;
    uint64_t width = array->plan.rank == 1 ? 1 : array->plan.shape[1];
    if (array->plan.shape[0] != rows || width != columns)
        FAIL(STATUS_INPUT, "trace: /%s: expected %llu x %llu values, got %llu x %llu", path,
             (unsigned long long)rows, (unsigned long long)columns,
             (unsigned long long)array->plan.shape[0], (unsigned long long)width);
    return STATUS_OK;
}

/* A whole number from 0 to `most`. */
static enum status count_attribute(const struct court *court, const char *path, const char *name,
                                   uint32_t most, uint32_t *out) {
    double value;
    TRY(number_attribute(court, path, name, &value));
    if (!(value >= 0.0 && value <= (double)most) || value != (double)(uint32_t)value)
        FAIL(STATUS_INPUT, "trace: attribute %s of \"/%s\": expected an integer from 0 to %u", name,
             path, most);
    *out = (uint32_t)value;
    return STATUS_OK;
}

static enum status open_court(struct court *court) {
    struct judgement *out = court->out;
    out->name = attribute(court, "", "name");
    out->arms[0] = attribute(court, "", "baseline");
    out->arms[1] = attribute(court, "", "test");
    for (int arm = 0; arm < 2; arm++) {
        court->run[arm] = trace_run_of(court->image, out->arms[arm]);
        if (court->run[arm] == NULL)
            FAIL(STATUS_INPUT, "trace: it holds no run \"%s\": not written by run", out->arms[arm]);
        if (court->run[arm]->plan.shape.groups == 0)
            FAIL(STATUS_INPUT, "trace: run \"%s\" has no parameter group: not written by run",
                 out->arms[arm]);
    }
    uint64_t a = court->run[0]->updates, b = court->run[1]->updates;
    out->updates = a < b ? a : b;
    out->first_step = -1;
    out->first_phase = "";
    out->first_tensor = "";
    out->reason = "";
    out->missed = "";
    out->image = court->image;
    out->floor_equal[0] = out->floor_equal[1] = -1;
    out->p = out->power = out->smallest_p = out->floor_distance = out->floor_largest = out->total =
        out->residual = (double)NAN;
    return STATUS_OK;
}

static int digest_differs(const uint8_t *a, const uint8_t *b) {
    return memcmp(a, b, RECORD_DIGEST_BYTES) != 0;
}

static int digest_absent(const uint8_t *digest) {
    for (int i = 0; i < RECORD_DIGEST_BYTES; i++)
        if (digest[i] != 0) return 0;
    return 1;
}

static int find_name(const char *const *names, uint32_t count, const char *name) {
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return (int)i;
    return -1;
}

/* First phase, in the baseline's order, that both arms ran and whose digests differ. */
static void find_phase(struct court *court, const struct record *a, const struct record *b) {
    const struct trace_run_plan *x = &court->run[0]->plan, *y = &court->run[1]->plan;
    for (uint32_t i = 0; i < x->shape.phases; i++) {
        int other = find_name(y->phases, y->shape.phases, x->phases[i]);
        if (other < 0 || digest_absent(a->phases[i]) || digest_absent(b->phases[other])) continue;
        if (!digest_differs(a->phases[i], b->phases[other])) continue;
        court->out->first_phase = x->phases[i];
        return;
    }
}

static void find_site(struct court *court, const struct record *a, const struct record *b) {
    const struct trace_run_plan *x = &court->run[0]->plan, *y = &court->run[1]->plan;
    for (uint32_t i = 0; i < x->shape.sites && i < y->shape.sites; i++)
        if (digest_differs(a->sites[i], b->sites[i])) {
            court->out->first_tensor = x->sites[i];
            return;
        }
}

/* Backward runs from the head to the embedding: the last tensor of the table comes first. */
static void find_tensor(struct court *court, const struct record *a, const struct record *b,
                        enum record_tensor_digest which) {
    const struct trace_run_plan *x = &court->run[0]->plan, *y = &court->run[1]->plan;
    uint32_t count = x->shape.tensors < y->shape.tensors ? x->shape.tensors : y->shape.tensors;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t t = which == TENSOR_DIGEST_GRADIENT ? count - 1 - i : i;
        if (!digest_differs(a->tensor_digests[t][which], b->tensor_digests[t][which])) continue;
        court->out->first_tensor = x->tensors[t];
        return;
    }
}

static void find_first(struct court *court) {
    for (uint64_t i = 0; i < court->out->updates; i++) {
        const struct record *a = &court->run[0]->records[i], *b = &court->run[1]->records[i];
        if (!digest_differs(a->digests[DIGEST_ROOT], b->digests[DIGEST_ROOT])) continue;
        court->out->first_step = (int64_t)a->step;
        find_phase(court, a, b);
        if (strcmp(court->out->first_phase, "forward") == 0) find_site(court, a, b);
        if (strcmp(court->out->first_phase, "backward") == 0)
            find_tensor(court, a, b, TENSOR_DIGEST_GRADIENT);
        if (strcmp(court->out->first_phase, "optimize") == 0)
            find_tensor(court, a, b, TENSOR_DIGEST_PARAMETER);
        return;
    }
}

static enum status undecided(struct court *court, const char *reason) {
    court->out->verdict = VERDICT_UNTESTABLE;
    court->out->reason = reason;
    return STATUS_OK;
}

/* Whether the baseline's optimizer or schedule came from a user's module (docs/PLUGINS.md). */
static int runs_module(const struct court *court) {
    static const char *const keys[] = {"\noptimizer.module_sha256: ", "\nschedule.module_sha256: "};
    const char *text = court->run[0]->plan.configuration;
    for (size_t i = 0; text != NULL && i < COUNT_OF(keys); i++) {
        const char *found = strstr(text, keys[i]);
        if (found != NULL && strncmp(found + strlen(keys[i]), "none\n", 5) != 0) return 1;
    }
    return 0;
}

static enum status judge_exact(struct court *court) {
    struct judgement *out = court->out;
    const struct trace_array *array;
    TRY(array_of(court, "floor/equal", 2, 1, &array));
    for (int i = 0; array != NULL && i < 2; i++)
        if (!isnan(array->values[i])) out->floor_equal[i] = array->values[i] != 0.0;
    if (out->floor_equal[0] < 0)
        return undecided(court, "the baseline was not repeated: no floor; run the scenario to its "
                                "end");
    if (out->floor_equal[0] == 0 || out->floor_equal[1] == 0)
        return undecided(court, runs_module(court)
                                    ? "the baseline differs from its own repeat, though its mode "
                                      "promises equal bits: its module keeps a state of its own, "
                                      "or else a defect of this build or machine"
                                    : "the baseline differs from its own repeat, though its mode "
                                      "promises equal bits: a defect of this build or machine; "
                                      "see env");
    out->floor_largest = 0.0;
    out->verdict = VERDICT_OUTSIDE_FLOOR;
    return STATUS_OK;
}

/* Why the matrix of distances cannot be tested; NULL when it can. */
static const char *unusable(const struct court *court, const struct trace_array *matrix, size_t m) {
    const struct trace_run_plan *a = &court->run[0]->plan, *b = &court->run[1]->plan;
    if (a->shape.tensors != b->shape.tensors && a->shape.tensors != 0 && b->shape.tensors != 0)
        return "the arms have different parameter tables: no distance between them exists";
    if (m < 3) return "one run of each arm tells nothing of noise: raise floor.replicates";
    if (matrix == NULL || isnan(matrix->values[0]))
        return "the floor's runs are missing: run the scenario to its end; arms with different "
               "parameter tables have no distance";
    for (size_t i = 0; i < m * m; i++)
        if (!isfinite(matrix->values[i]))
            return "a run of the floor diverged: its distance to the others is not finite";
    return NULL;
}

/* Packs the matrix's upper triangle and notes distances inside each arm. */
static enum status pack_distances(struct court *court, const struct trace_array *matrix,
                                  double **out_packed) {
    struct judgement *out = court->out;
    size_t m = (size_t)matrix->plan.shape[0], baseline = out->floor_runs[0];
    TRY(arena_take(court->arena, statistics_pair_count(m), sizeof **out_packed, "floor",
                   out_packed));
    out->floor_distance = matrix->values[baseline];
    out->floor_largest = 0.0;
    for (size_t i = 0; i < m; i++)
        for (size_t j = i + 1; j < m; j++) {
            double d = matrix->values[i * m + j];
            (*out_packed)[statistics_pair(m, i, j)] = d;
            if ((i < baseline) == (j < baseline) && d > out->floor_largest) out->floor_largest = d;
        }
    return STATUS_OK;
}

static enum status needed_runs(struct court *court) {
    struct judgement *out = court->out;
    size_t needed;
    char *text;
    if (out->floor == FLOOR_RANK)
        TRY(statistics_pair_needed(out->alpha, &needed));
    else
        TRY(statistics_labels_needed(out->alpha, &needed));
    TRY(arena_format(court->arena, &text,
                     "%u + %u runs cannot give p <= %g (least %.3g): floor.replicates of at least "
                     "%zu would",
                     out->floor_runs[0], out->floor_runs[1], out->alpha, out->smallest_p, needed));
    return undecided(court, text);
}

/* Below it p > alpha says too little to call two arms alike; 5 + 5 runs have 0.78. */
#define LEAST_POWER 0.75

static enum status weak_design(struct court *court) {
    struct judgement *out = court->out;
    char *text;
    TRY(arena_format(
        court->arena, &text,
        "p = %.4g is above alpha = %g, but this design would see a 3 sigma effect only "
        "with probability %.2f: floor.design both with 8 runs of each arm has 0.99",
        out->p, out->alpha, out->power));
    return undecided(court, text);
}

static enum status test_distances(struct court *court, const double *packed, size_t m) {
    struct judgement *out = court->out;
    struct statistics_p p;
    struct power power;
    uint32_t baseline = out->floor_runs[0], test = out->floor_runs[1];
    if (out->floor == FLOOR_RANK) {
        TRY(statistics_test_pair(packed, m, 0, baseline, &p));
        TRY(power_pair(baseline - 1, out->alpha, POWER_SHIFT, &power));
        out->smallest_p = statistics_pair_least(baseline - 1);
    } else {
        TRY(statistics_test_labels(packed, m, baseline, &p));
        TRY(power_labels(baseline, test, out->alpha, POWER_SHIFT, &power));
        out->smallest_p = statistics_labels_least(baseline, test);
    }
    out->p = p.p;
    out->power = power.power;
    return STATUS_OK;
}

static enum status judge_noise(struct court *court) {
    struct judgement *out = court->out;
    const struct trace_array *matrix;
    size_t m = (size_t)out->floor_runs[0] + out->floor_runs[1];
    TRY(array_of(court, "floor/distance", m, m, &matrix));
    const char *reason = unusable(court, matrix, m);
    if (reason != NULL) return undecided(court, reason);
    double *packed;
    TRY(pack_distances(court, matrix, &packed));
    TRY(test_distances(court, packed, m));
    if (out->smallest_p > out->alpha) return needed_runs(court);
    if (out->p > out->alpha && out->power < LEAST_POWER) return weak_design(court);
    out->verdict = out->p <= out->alpha ? VERDICT_OUTSIDE_FLOOR : VERDICT_INSIDE_FLOOR;
    return STATUS_OK;
}

static enum status judge_floor(struct court *court) {
    struct judgement *out = court->out;
    double steps;
    const char *kind = attribute(court, "floor", "kind");
    TRY(number_attribute(court, "", "steps", &steps));
    TRY(number_attribute(court, "floor", "alpha", &out->alpha));
    TRY(count_attribute(court, "floor", "runs_baseline", FLOOR_RUNS_MAX, &out->floor_runs[0]));
    TRY(count_attribute(court, "floor", "runs_test", FLOOR_RUNS_MAX, &out->floor_runs[1]));
    for (enum floor_kind k = FLOOR_EXACT; k <= FLOOR_RANK; k = (enum floor_kind)(k + 1))
        if (strcmp(kind, floor_kind_name(k)) == 0) out->floor = k;
    if ((double)out->updates < steps) {
        char *text;
        TRY(arena_format(court->arena, &text,
                         "only %llu of %.0f updates were finished by both arms",
                         (unsigned long long)out->updates, steps));
        return undecided(court, text);
    }
    enum status status = out->floor == FLOOR_EXACT ? judge_exact(court) : judge_noise(court);
    if (status == STATUS_UNTESTABLE) {
        char *text;
        TRY(arena_format(court->arena, &text, "%s", status_text()));
        return undecided(court, text);
    }
    int noisy = out->floor != FLOOR_EXACT; /* equality needs no test; a broken exact floor does */
    if (status == STATUS_OK && out->first_step < 0 &&
        (noisy || out->verdict != VERDICT_UNTESTABLE)) {
        out->verdict = VERDICT_IDENTICAL;
        out->reason = "";
    }
    return status;
}

static enum status read_factors(struct court *court, struct judged_cause *factors,
                                uint32_t *out_count) {
    TRY(count_attribute(court, "attribution", "factors", CAUSE_COUNT, out_count));
    for (uint32_t i = 0; i < *out_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "factor_%u", i);
        snprintf(factors[i].name, sizeof factors[i].name, "%s",
                 attribute(court, "attribution", name));
        snprintf(name, sizeof name, "factor_%u_keys", i);
        factors[i].keys = attribute(court, "attribution", name);
        factors[i].value = factors[i].share = factors[i].low = factors[i].high = factors[i].alone =
            (double)NAN;
    }
    return STATUS_OK;
}

/* Mask of sorted causes -> mask of factors. */
static uint32_t unsorted_mask(const struct shapley *shapley, uint32_t mask) {
    uint32_t out = 0;
    for (uint32_t i = 0; i < shapley->factors; i++)
        if (mask >> i & 1u) out |= 1u << shapley->rank[i];
    return out;
}

/* Shares beyond 0..1 cancel each other; two largest that are equal have no first. */
static int is_coupled(const struct judgement *judgement) {
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        if (fabs(judgement->causes[i].share) > 1.0 + 1e-9) return 1;
    return judgement->cause_count > 1 &&
           fabs(judgement->causes[0].share - judgement->causes[1].share) < 1e-9;
}

static void take_shares(struct court *court, const struct judged_cause *factors,
                        const struct shapley *shapley, const double *values) {
    struct judgement *out = court->out;
    out->attributed = 1;
    out->total = shapley->whole;
    out->residual = shapley->residual;
    for (uint32_t i = 0; i < shapley->factors; i++) {
        uint32_t from = shapley->rank[i];
        struct judged_cause *cause = &out->causes[i];
        *cause = factors[from];
        cause->value = shapley->value[from];
        cause->share = shapley->has_share ? shapley->share[from] : (double)NAN;
        cause->alone = values[1u << from];
        int exact = out->floor == FLOOR_EXACT;
        cause->low = cause->high = exact ? cause->share : (double)NAN;
    }
    for (uint32_t mask = 0; mask < 1u << shapley->factors; mask++)
        out->dividends[mask] = shapley->dividend[unsorted_mask(shapley, mask)];
    out->coupled = is_coupled(out);
}

static void take_sampled_cause(const struct judged_orders *orders, uint32_t place,
                               const struct judged_cause *factors, struct judged_cause *out) {
    const struct orders_shares *shares = &orders->shares;
    const uint32_t from = shares->rank[place];
    *out = factors[from];
    out->value = shares->value[from];
    out->alone = orders->alone[from];
    memcpy(out->place, shares->place[place], sizeof out->place);
    if (shares->whole == 0.0) return;
    const double low = shares->low[from] / shares->whole, high = shares->high[from] / shares->whole;
    out->share = out->value / shares->whole;
    out->low = low < high ? low : high;
    out->high = low < high ? high : low;
}

static void take_sample(struct court *court, const struct judged_cause *factors,
                        const struct judged_orders *orders) {
    struct judgement *out = court->out;
    out->attributed = 1;
    out->total = orders->shares.whole;
    out->residual = orders->shares.residual;
    out->sample = (struct judged_sample){2 * orders->shares.pairs, orders->mixtures, orders->shared,
                                         orders->shares.alpha};
    for (uint32_t i = 0; i < out->cause_count; i++) {
        struct judged_cause *cause = &out->causes[i];
        take_sampled_cause(orders, i, factors, cause);
        if (cause->low > 1.0 || cause->high < -1.0) out->coupled = 1;
    }
}

static enum status judge_many(struct court *court, const struct judged_cause *factors) {
    struct judged_orders orders;
    TRY(judge_orders(court->image, court->out->cause_count, JUDGE_SHARE_ALPHA, court->arena,
                     &orders));
    if (orders.known) take_sample(court, factors, &orders);
    return STATUS_OK;
}

static enum status judge_few(struct court *court, const struct judged_cause *factors) {
    struct judgement *out = court->out;
    const struct trace_array *values;
    TRY(array_of(court, "attribution/value", (uint64_t)1 << out->cause_count, 1, &values));
    if (values == NULL || isnan(values->values[0])) return STATUS_OK;
    struct shapley shapley;
    enum status status = shapley_attribute(out->cause_count, values->values, &shapley);
    if (status == STATUS_UNTESTABLE) return STATUS_OK;
    if (status == STATUS_OK) take_shares(court, factors, &shapley, values->values);
    return status;
}

static enum status judge_causes(struct court *court) {
    struct judgement *out = court->out;
    struct judged_cause factors[CAUSE_COUNT];
    TRY(read_factors(court, factors, &out->cause_count));
    memcpy(out->causes, factors, sizeof factors[0] * out->cause_count);
    const struct trace_array *closure;
    if (out->cause_count == 0) return STATUS_OK;
    TRY(array_of(court, "attribution/closure", 3, 1, &closure));
    TRY(out->cause_count <= JUDGE_FACTORS_MAX ? judge_few(court, factors)
                                              : judge_many(court, factors));
    if (!out->attributed) return STATUS_OK;
    if (closure != NULL && closure->values[0] == 1.0) {
        out->closure = CLOSURE_EXACT;
        double from = closure->values[1];
        out->closure_from = from >= 1.0 && from <= (double)out->updates ? (uint64_t)from : 0;
    }
    return STATUS_OK;
}

static enum status expect_text(struct court *court, const char *what, const char *wanted,
                               const char *came) {
    struct judgement *out = court->out;
    if (wanted[0] == '\0') return STATUS_OK;
    if (out->expectation == EXPECT_NONE) out->expectation = EXPECT_MET;
    if (strcmp(wanted, came) == 0) return STATUS_OK;
    char *text;
    out->expectation = EXPECT_MISSED;
    TRY(arena_format(court->arena, &text, "%s%sexpected %s %s, got %s", out->missed,
                     out->missed[0] == '\0' ? "" : "; ", what, wanted,
                     came[0] == '\0' ? "none" : came));
    out->missed = text;
    return STATUS_OK;
}

const char *judgement_cause(const struct judgement *judgement) {
    if (judgement->verdict != VERDICT_OUTSIDE_FLOOR || judgement->cause_count == 0) return "";
    const struct judged_cause *first = &judgement->causes[0];
    return judgement->sample.orders > 0 && first->place[1] > 1 ? "not ordered" : first->name;
}

static enum status judge_expectation(struct court *court) {
    struct judgement *out = court->out;
    double step;
    TRY(number_attribute(court, "verdict", "expect_first_step", &step));
    char wanted[32] = "", came[32] = "";
    if (step >= 1) snprintf(wanted, sizeof wanted, "%.0f", step);
    if (out->first_step >= 0) snprintf(came, sizeof came, "%lld", (long long)out->first_step);
    TRY(expect_text(court, "verdict", attribute(court, "verdict", "expect_verdict"),
                    verdict_name(out->verdict)));
    TRY(expect_text(court, "cause", attribute(court, "verdict", "expect_cause"),
                    judgement_cause(out)));
    TRY(expect_text(court, "first step", wanted, came));
    TRY(expect_text(court, "first phase", attribute(court, "verdict", "expect_first_phase"),
                    out->first_phase));
    return expect_text(court, "first tensor", attribute(court, "verdict", "expect_first_tensor"),
                       out->first_tensor);
}

/* Updates from which a loss is not finite, and from which the logged LRs differ. */
static void note_curves(struct court *court) {
    struct judgement *out = court->out;
    for (uint64_t i = 0; i < out->updates; i++) {
        const struct record *a = &court->run[0]->records[i], *b = &court->run[1]->records[i];
        const struct record *records[2] = {a, b};
        for (int arm = 0; arm < 2; arm++)
            if (out->diverged[arm] == 0 && !isfinite(records[arm]->reals[REAL_LOSS]))
                out->diverged[arm] = records[arm]->step;
        double x = a->groups[0][GROUP_LR_LOGGED], y = b->groups[0][GROUP_LR_LOGGED];
        if (out->logged_step == 0 && x != y && !(isnan(x) && isnan(y))) out->logged_step = a->step;
    }
}

enum status judge(const struct trace_image *image, struct arena *arena, struct judgement *out) {
    struct court court = {.image = image, .arena = arena, .out = out};
    memset(out, 0, sizeof *out);
    TRY(open_court(&court));
    find_first(&court);
    note_curves(&court);
    TRY(judge_floor(&court));
    TRY(judge_causes(&court));
    return judge_expectation(&court);
}

int judgement_exit(const struct judgement *judgement) {
    if (judgement->verdict == VERDICT_UNTESTABLE && judgement->expectation != EXPECT_MET) return 3;
    if (judgement->expectation == EXPECT_MISSED) return 1;
    if (judgement->expectation == EXPECT_MET) return 0;
    return judgement->verdict == VERDICT_OUTSIDE_FLOOR ? 1 : 0;
}
