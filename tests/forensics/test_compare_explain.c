/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Whether another order of a loop's phases, or other updates that were skipped, explain where two
 * runs part: each row of a table is a report with what differs first in it, at the update at which
 * that acts, and just before and behind it. Gradients that are kept act in the next update,
 * gradients that are cleared leave the step without any, so that the next loss shows it, and a norm
 * of gradients that are still scaled is the loss scale times the other one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/macro.h"
#include "forensics/compare_foreign.h"
#include "forensics/compare_parts.h"

#define UPDATE 3 /* the first in which the loops are unlike */
#define NEVER 0  /* it does not differ */

struct loops {
    int32_t kind;
    uint64_t gradient, loss, root, data, lr, group; /* where each differs first */
    double norm; /* of the run that scales; the other one's is 2 */
    int said;
};

#define KEEPS COMPARE_LOOP_KEEPS
#define CLEARS COMPARE_LOOP_CLEARS
#define SCALED COMPARE_LOOP_SCALED

static const struct loops cases[] = {
    {KEEPS, 4, NEVER, NEVER, NEVER, NEVER, NEVER, 3, 1},
    {KEEPS, 3, NEVER, NEVER, NEVER, NEVER, NEVER, 3, 0},
    {KEEPS, 5, NEVER, NEVER, NEVER, NEVER, NEVER, 3, 0},
    {KEEPS, 4, 5, NEVER, NEVER, NEVER, NEVER, 3, 1},
    {KEEPS, 4, 4, NEVER, NEVER, NEVER, NEVER, 3, 0},
    {KEEPS, NEVER, 5, NEVER, NEVER, NEVER, NEVER, 3, 0},
    {CLEARS, 3, NEVER, NEVER, NEVER, NEVER, NEVER, 3, 1},
    {CLEARS, 2, NEVER, NEVER, NEVER, NEVER, NEVER, 3, 0},
    {CLEARS, 4, NEVER, NEVER, NEVER, NEVER, NEVER, 3, 0},
    {CLEARS, NEVER, 4, NEVER, NEVER, NEVER, NEVER, 3, 1},
    {CLEARS, NEVER, 3, NEVER, NEVER, NEVER, NEVER, 3, 0},
    {CLEARS, NEVER, 5, NEVER, NEVER, NEVER, NEVER, 3, 0},
    {CLEARS, 3, 4, NEVER, NEVER, NEVER, NEVER, 3, 1},
    {CLEARS, 3, 3, NEVER, NEVER, NEVER, NEVER, 3, 0},
    {SCALED, 3, NEVER, NEVER, NEVER, NEVER, NEVER, 16, 1},
    {SCALED, 3, NEVER, NEVER, NEVER, NEVER, NEVER, 16.07, 1}, /* 0.44 % */
    {SCALED, 3, NEVER, NEVER, NEVER, NEVER, NEVER, 16.09, 0}, /* 0.56 % */
    {SCALED, 3, NEVER, NEVER, NEVER, NEVER, NEVER, 15.93, 1},
    {SCALED, 3, NEVER, NEVER, NEVER, NEVER, NEVER, 15.91, 0},
    {SCALED, 3, NEVER, NEVER, NEVER, NEVER, NEVER, 0.25, 0}, /* the other run's norm is scaled */
    {SCALED, 4, NEVER, NEVER, NEVER, NEVER, NEVER, 16, 0},
    /* what the weights were: nothing may differ before, and something must where the order acts */
    {KEEPS, 4, NEVER, 4, NEVER, NEVER, NEVER, 3, 1},
    {KEEPS, 4, NEVER, 3, NEVER, NEVER, NEVER, 3, 0},
    {KEEPS, 4, NEVER, 5, NEVER, NEVER, NEVER, 3, 0},
    {KEEPS, 4, NEVER, 1, NEVER, NEVER, NEVER, 3, 0},
    {CLEARS, 3, NEVER, 3, NEVER, NEVER, NEVER, 3, 1},
    {CLEARS, 3, NEVER, 1, NEVER, NEVER, NEVER, 3, 0},
    /* what the runs read */
    {KEEPS, 4, NEVER, NEVER, 5, NEVER, NEVER, 3, 1},
    {KEEPS, 4, NEVER, NEVER, 4, NEVER, NEVER, 3, 0},
    {KEEPS, 4, NEVER, NEVER, NEVER, 4, NEVER, 3, 1},
    {KEEPS, 4, NEVER, NEVER, NEVER, 3, NEVER, 3, 0},
    {KEEPS, 4, NEVER, NEVER, NEVER, NEVER, 4, 3, 1},
    {KEEPS, 4, NEVER, NEVER, NEVER, NEVER, 3, 3, 0},
    {COMPARE_LOOP_ALIKE, 4, NEVER, NEVER, NEVER, NEVER, NEVER, 3, 0},
};

/* A column of five updates that differs from one on, or in none. What it holds is not looked at. */
static struct compare_column column_of(enum log_name name, uint64_t first) {
    static const struct series_point points[] = {
        {.update = 1}, {.update = 2}, {.update = 3}, {.update = 4}, {.update = 5}};
    const struct compare_side side = {.points = points, .count = COUNT_OF(points)};
    return (struct compare_column){.name = (int32_t)name,
                                   .class_of = first == NEVER ? COMPARE_EQUAL : COMPARE_DIFFERENT,
                                   .pairs = COUNT_OF(points),
                                   .side = {side, side},
                                   .first_update = first,
                                   .from = 1,
                                   .to = COUNT_OF(points)};
}

static int is_said(const struct loops *of, int32_t side) {
    static const struct series_point scale[] = {
        {.update = 2, .value = 99.0}, {.update = 3, .value = 8.0}, {.update = 4, .value = 99.0}};
    static const uint32_t order[] = {0};
    struct arena arena = ARENA_EMPTY;
    struct compare_column columns[] = {
        column_of(LOG_GRAD_NORM, of->gradient), column_of(LOG_LOSS, of->loss),
        column_of(LOG_TOKENS, of->data), column_of(LOG_LR_APPLIED, of->lr),
        column_of(LOG_LOSS_SCALE, NEVER)};
    const struct compare_group group = {.group = 1, .column = column_of(LOG_OTHER, of->group)};
    columns[0].first[side].value = of->norm;
    columns[0].first[1 - side].value = 2.0;
    columns[4].side[side] = (struct compare_side){.points = scale, .count = COUNT_OF(scale)};
    struct compare_report report = {
        .columns = columns,
        .column_count = COUNT_OF(columns),
        .order = order,
        .order_count = 1,
        .lr = {.group_first = of->group == NEVER ? NULL : &group},
        .root_update = of->root,
        .loop = {.kind = of->kind, .side = side, .update = UPDATE},
        .start = 1,
    };
    assert_int_equal(compare_explain(&report, &arena), STATUS_OK);
    const int said = strstr(report.meaning, "the order of the loop") != NULL;
    if (said) assert_int_equal(report.cause, CAUSE_SCHEDULE);
    arena_close(&arena);
    return said;
}

static void validate_when_the_order_of_a_loop_explains(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (int32_t side = 0; side < 2; side++)
            if (is_said(&cases[i], side) != cases[i].said)
                fail_msg("case %zu, side %d: %s", i, (int)side,
                         cases[i].said ? "is not said" : "is said");
}

/* ---- skipped updates ---- */

/* Which update the logs count first as skipped, which one the LR columns say, whether by their
 * simplest explanation, and where the rest differs first; `apart`: update 3 has no row, so that the
 * loss of update 4 may show what a skip left. */
static const struct skips {
    uint64_t counted, fitted;
    int simplest;
    uint64_t lr, gradient, loss;
    int apart, said;
} skips[] = {
    {4, NEVER, 0, NEVER, 4, NEVER, 0, 1},
    {4, NEVER, 0, NEVER, 3, NEVER, 0, 0},
    {4, NEVER, 0, NEVER, 5, NEVER, 0, 1},
    {4, NEVER, 0, NEVER, NEVER, 5, 0, 1},
    {4, NEVER, 0, NEVER, NEVER, 4, 0, 0},
    {4, NEVER, 0, NEVER, NEVER, 4, 1, 1},
    {4, NEVER, 0, NEVER, NEVER, 3, 0, 0},
    {4, NEVER, 0, NEVER, 4, 4, 1, 1},
    {4, NEVER, 0, NEVER, 4, 4, 0, 0},
    {4, NEVER, 0, NEVER, NEVER, NEVER, 0, 0},
    {4, NEVER, 0, 4, NEVER, NEVER, 0, 1},
    {4, NEVER, 0, 5, NEVER, NEVER, 0, 1},
    {4, NEVER, 0, 3, NEVER, NEVER, 0, 0},
    {NEVER, 4, 1, 4, NEVER, NEVER, 0, 1},
    {NEVER, 4, 0, 4, NEVER, NEVER, 0, 0},
    {NEVER, 4, 1, 3, NEVER, NEVER, 0, 0},
    {NEVER, 4, 1, NEVER, 5, NEVER, 0, 0},
    {NEVER, 4, 1, 4, 3, NEVER, 0, 0},
    {NEVER, NEVER, 0, NEVER, 4, NEVER, 0, 0},
    {4, 3, 1, 4, 4, NEVER, 0, 1},
    {4, 3, 1, 3, 4, NEVER, 0, 0}, /* what the logs count comes before what the LRs say */
};

static int says_skips(const struct skips *of) {
    static const struct series_point apart[] = {{.update = 1}, {.update = 2}, {.update = 4}};
    static const uint32_t order[] = {0};
    struct arena arena = ARENA_EMPTY;
    struct compare_column columns[] = {
        column_of(LOG_LOSS, of->loss), column_of(LOG_GRAD_NORM, of->gradient),
        column_of(LOG_LR_APPLIED, of->lr), column_of(LOG_SKIPPED, of->counted)};
    for (size_t s = 0; s < 2 && of->apart; s++)
        columns[0].side[s] = (struct compare_side){.points = apart, .count = COUNT_OF(apart)};
    struct compare_report report = {
        .columns = columns,
        .column_count = COUNT_OF(columns),
        .order = order,
        .order_count = 1,
        .lr = {.skips_part = of->fitted, .skips_simplest = of->simplest},
        .start = 1,
    };
    assert_int_equal(compare_explain(&report, &arena), STATUS_OK);
    const int said = strstr(report.meaning, "skipped") != NULL;
    arena_close(&arena);
    return said;
}

static void validate_when_skips_explain(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(skips); i++)
        if (says_skips(&skips[i]) != skips[i].said)
            fail_msg("case %zu: %s", i, skips[i].said ? "is not said" : "is said");
}

/* ---- what the digests of two recordings tell ---- */

/* In which phase and update the roots part, where columns do first, whether settings of optimizers
 * differ, and what may be named. What the batch is has an update of its own; what differs in the
 * gradient's digest alone forbids to say that the first update agrees. */
static const struct recorded {
    const char *phase;
    uint64_t root, gradient, loss, lr;
    int settings, unlike;
    int32_t cause;
    const char *said;
} recorded[] = {
    {"optimize", 1, NEVER, 2, NEVER, 0, 0, CAUSE_OPTIMIZER, "at equal applied LRs"},
    {"backward", 1, NEVER, 2, NEVER, 0, 0, -1, "its gradients do not, by their digests"},
    {"backward", 1, NEVER, 2, 1, 0, 0, -1, "which is the larger cause"},
    {"backward", 2, NEVER, 2, NEVER, 0, 0, CAUSE_OPTIMIZER, "at equal applied LRs"},
    {"fetch", 1, NEVER, 2, NEVER, 0, 0, -1, "tensors that the model is given differ before"},
    {"fetch", 1, 1, 1, NEVER, 0, 0, -1, "tensors that the model is given differ before"},
    {"fetch", 1, NEVER, 2, 1, 0, 0, -1, "tensors that the model is given differ before"},
    {"fetch", 2, NEVER, 2, NEVER, 0, 0, CAUSE_DATA_ORDER, "equal bit for bit"},
    {"fetch", 3, NEVER, 2, NEVER, 0, 0, CAUSE_OPTIMIZER, "at equal applied LRs"},
    {"optimize", 1, NEVER, 2, 1, 0, 0, CAUSE_SCHEDULE, "another LR: the schedule"},
    {"optimize", 1, NEVER, 2, 1, 1, 0, -1, "the schedule, the optimizer, or both"},
    {"optimize", 1, NEVER, 2, NEVER, 1, 0, CAUSE_OPTIMIZER, "at equal applied LRs"},
    {"", 0, 1, 2, NEVER, 0, 1, -1, "do not train the same tensors"},
    {"", 0, NEVER, 2, 1, 0, 1, -1, "do not train the same tensors"},
    {"", 0, NEVER, 2, 1, 0, 0, CAUSE_SCHEDULE, "another LR: the schedule"},
};

static void validate_what_recordings_tell(void **state) {
    (void)state;
    static const uint32_t order[] = {0};
    for (size_t i = 0; i < COUNT_OF(recorded); i++) {
        const struct recorded *const of = &recorded[i];
        struct arena arena = ARENA_EMPTY;
        struct compare_column columns[] = {column_of(LOG_GRAD_NORM, of->gradient),
                                           column_of(LOG_LOSS, of->loss),
                                           column_of(LOG_LR_APPLIED, of->lr)};
        struct compare_report report = {
            .columns = columns,
            .column_count = COUNT_OF(columns),
            .order = order,
            .order_count = 1,
            .lr = {.state = of->lr == NEVER ? COMPARE_LR_SAME : COMPARE_LR_DIFFERENT},
            .recorded = 1,
            .known = {.tensor = "", .step = "", .later = ""},
            .roots = 5,
            .root_update = of->root,
            .where = {of->phase, ""},
            .optimizers_apart = of->settings,
            .unlike = of->unlike,
            .configurations = "",
            .start = 1,
        };
        assert_int_equal(compare_explain(&report, &arena), STATUS_OK);
        if (report.cause != of->cause || strstr(report.meaning, of->said) == NULL)
            fail_msg("case %zu: cause %d, %s", i, (int)report.cause, report.meaning);
        arena_close(&arena);
    }
}

/* Means of logits over micro-batches of other sizes are other numbers, and say nothing of weights
 * and data where loss and gradient norm agree. */
static void validate_means_of_logits(void **state) {
    (void)state;
    static const uint32_t order[] = {0};
    static const struct {
        uint64_t norm, logp; /* where they differ first */
        int32_t cause;
        const char *said;
    } means[] = {
        {3, NEVER, -1, "means of logits do not"},
        {1, NEVER, -1, "Log-probs of update 1 agree, so weights"},
        {3, 1, CAUSE_DTYPE, "kernels or batch shape"},
        {1, 1, CAUSE_DTYPE, "Means of logits are apart by more"},
    };
    for (size_t i = 0; i < COUNT_OF(means); i++) {
        struct arena arena = ARENA_EMPTY;
        struct compare_column columns[] = {
            column_of(LOG_LOSS, 2), column_of(LOG_GRAD_NORM, means[i].norm),
            column_of(LOG_LOGITS_CHOSEN, 1), column_of(LOG_LOGP_REJECTED, means[i].logp)};
        columns[2].first[0].value = 1.0;
        columns[2].first[1].value = 2.0;
        struct compare_report report = {.columns = columns,
                                        .column_count = COUNT_OF(columns),
                                        .order = order,
                                        .order_count = 1,
                                        .configurations = "",
                                        .start = 1};
        assert_int_equal(compare_explain(&report, &arena), STATUS_OK);
        if (report.cause != means[i].cause || strstr(report.meaning, means[i].said) == NULL)
            fail_msg("case %zu: cause %d, %s", i, (int)report.cause, report.meaning);
        arena_close(&arena);
    }
}

/* A loss that hardly moves is in a fixed ratio to any other such loss: only a whole number, or the
 * same ratio of the gradient norms, says that the one is divided otherwise. */
static void validate_ratios_of_losses(void **state) {
    (void)state;
    static const uint32_t order[] = {0};
    static const struct {
        int32_t kind;
        double loss, norm; /* norm 0: it has no ratio */
        int32_t cause;
    } losses[] = {
        {COMPARE_FACTOR_WHOLE, 2.0, 0.0, CAUSE_NORMALISATION},
        {COMPARE_FACTOR_CONSTANT, 0.02773, 0.0, -1},
        {COMPARE_FACTOR_CONSTANT, 0.02773, 0.5, -1},
        {COMPARE_FACTOR_CONSTANT, 0.9167, 0.9167, CAUSE_NORMALISATION},
    };
    for (size_t i = 0; i < COUNT_OF(losses); i++) {
        struct arena arena = ARENA_EMPTY;
        const struct compare_column columns[] = {column_of(LOG_LOSS, 1),
                                                 column_of(LOG_GRAD_NORM, 1)};
        const struct compare_ratio ratios[] = {
            {.name = LOG_LOSS, .kind = losses[i].kind, .factor = losses[i].loss},
            {.name = LOG_GRAD_NORM, .kind = COMPARE_FACTOR_CONSTANT, .factor = losses[i].norm}};
        struct compare_report report = {.columns = columns,
                                        .column_count = COUNT_OF(columns),
                                        .order = order,
                                        .order_count = 1,
                                        .ratios = ratios,
                                        .ratio_count = losses[i].norm > 0.0 ? 2 : 1,
                                        .configurations = "",
                                        .start = 1};
        assert_int_equal(compare_explain(&report, &arena), STATUS_OK);
        if (report.cause != losses[i].cause) fail_msg("case %zu: %s", i, report.meaning);
        arena_close(&arena);
    }
}

/* A DPO training that starts at its reference has a loss of ln 2 whatever it is divided by, and
 * beta multiplies its gradient: only a column that tells of the forward pass leaves the divisor
 * alone. */
static void validate_ratios_of_norms(void **state) {
    (void)state;
    static const uint32_t order[] = {0};
    static const struct series_point started[] = {{.update = 1, .value = 0x1.62e42fefa39efp-1},
                                                  {.update = 2, .value = 0.69}};
    static const struct {
        double loss; /* of update 1 */
        enum log_name beside;
        double factor;
        int32_t cause;
        const char *said;
        double next[2]; /* what stands beside the loss in update 2 */
    } norms[] = {
        {0x1.62e42fefa39efp-1, LOG_OTHER, 2.0, -1, "another beta", {0.0, 0.0}},
        {0x1.62e42fefa39efp-1,
         LOG_REWARD_CHOSEN,
         2.0,
         CAUSE_NORMALISATION,
         "is divided, summed",
         {0.01, 0.01}},
        {0x1.62e42fefa39efp-1,
         LOG_REWARD_MARGIN,
         2.0,
         CAUSE_NORMALISATION,
         "is divided, summed",
         {0.01, 0.01}},
        /* A reward that follows the factor, by half of it or by more than a tenth, or that says
         * nothing as it stays at 0. */
        {0x1.62e42fefa39efp-1, LOG_REWARD_MARGIN, 2.0, -1, "another beta", {0.02, 0.01}},
        {0x1.62e42fefa39efp-1, LOG_REWARD_MARGIN, 2.0, -1, "another beta", {0.01, 0.0094}},
        {0x1.62e42fefa39efp-1,
         LOG_REWARD_MARGIN,
         2.0,
         CAUSE_NORMALISATION,
         "is divided, summed",
         {0.01, 0.0096}},
        {0x1.62e42fefa39efp-1, LOG_REWARD_MARGIN, 2.0, -1, "another beta", {0.0, 0.0}},
        {2.0, LOG_OTHER, 2.0, CAUSE_NORMALISATION, "is divided, summed", {0.0, 0.0}},
        {2.0, LOG_OTHER, 128.0, CAUSE_NORMALISATION, "the gradient is divided, summed", {0.0, 0.0}},
        {2.0,
         LOG_OTHER,
         1000.0,
         CAUSE_NORMALISATION,
         "the gradient is divided, summed",
         {0.0, 0.0}},
        {2.0,
         LOG_OTHER,
         256.0,
         -1,
         "a loss scale that was not divided out of one of them",
         {0.0, 0.0}},
        {2.0,
         LOG_OTHER,
         0x1p-10,
         -1,
         "a loss scale that was not divided out of one of them",
         {0.0, 0.0}},
        {2.0,
         LOG_OTHER,
         65536.0,
         -1,
         "a loss scale that was not divided out of one of them",
         {0.0, 0.0}},
        {0x1.62e42fefa39efp-1,
         LOG_OTHER,
         65536.0,
         -1,
         "a loss scale that was not divided out",
         {0.0, 0.0}},
        {2.0, LOG_LOSS_SCALE, 256.0, CAUSE_NORMALISATION, "is divided, summed", {0.0, 0.0}},
    };
    for (size_t i = 0; i < COUNT_OF(norms); i++) {
        struct arena arena = ARENA_EMPTY;
        struct series_point loss[] = {started[0], started[1]};
        struct compare_column columns[] = {column_of(LOG_GRAD_NORM, 1), column_of(LOG_LOSS, NEVER),
                                           column_of(norms[i].beside, NEVER)};
        const struct compare_ratio ratio = {
            .name = LOG_GRAD_NORM, .kind = COMPARE_FACTOR_WHOLE, .factor = norms[i].factor};
        struct compare_report report = {.columns = columns,
                                        .column_count = COUNT_OF(columns),
                                        .order = order,
                                        .order_count = 1,
                                        .ratios = &ratio,
                                        .ratio_count = 1,
                                        .configurations = "",
                                        .start = 1};
        struct series_point beside[2][2];
        memset(beside, 0, sizeof beside);
        loss[0].value = norms[i].loss;
        for (size_t s = 0; s < 2; s++)
            columns[1].side[s] = (struct compare_side){.points = loss, .count = COUNT_OF(loss)};
        for (size_t s = 0; s < 2 && norms[i].beside != LOG_LOSS_SCALE; s++) {
            beside[s][0].update = 1;
            beside[s][1] = (struct series_point){.update = 2, .value = norms[i].next[s]};
            columns[2].side[s] = (struct compare_side){.points = beside[s], .count = 2};
        }
        columns[0].first[0].value = 4.0;
        columns[0].first[1].value = 2.0;
        assert_int_equal(compare_explain(&report, &arena), STATUS_OK);
        if (report.cause != norms[i].cause || strstr(report.meaning, norms[i].said) == NULL)
            fail_msg("case %zu: cause %d, %s", i, (int)report.cause, report.meaning);
        arena_close(&arena);
    }
}

/* Where the first gradient is the same bit for bit, what stands between it and the weights differs,
 * and another LR is a part of that. */
static void validate_norms_of_equal_gradients(void **state) {
    (void)state;
    static const uint32_t order[] = {0};
    for (int i = 0; i < 4; i++) {
        const int lr = i & 1, roots = i >> 1;
        struct arena arena = ARENA_EMPTY;
        struct compare_column columns[] = {column_of(LOG_GRAD_NORM, 1), column_of(LOG_LOSS, 2),
                                           column_of(LOG_LR_APPLIED, lr ? 1 : NEVER)};
        struct compare_report report = {.columns = columns,
                                        .column_count = COUNT_OF(columns),
                                        .order = order,
                                        .order_count = 1,
                                        .gradient_update = 1,
                                        .root_update = roots ? 1 : 2,
                                        .configurations = "",
                                        .start = 1};
        columns[0].first[0].value = 1.0;
        columns[0].first[1].value = 1.0 + 0x1p-20;
        const struct series_point rates[2] = {{.update = 1, .value = 1e-3},
                                              {.update = 1, .value = lr ? 5e-4 : 1e-3}};
        for (size_t s = 0; s < 2; s++)
            columns[2].side[s] = (struct compare_side){.points = &rates[s], .count = 1};
        assert_int_equal(compare_explain(&report, &arena), STATUS_OK);
        if (report.cause != -1 ||
            (strstr(report.meaning, "between the two does") != NULL) != roots ||
            (strstr(report.meaning, "the LR, which differs") != NULL) != (roots && lr))
            fail_msg("LR %d, roots %d: %s", lr, roots, report.meaning);
        arena_close(&arena);
    }
}

/* Two configurations, and whether settings of an optimizer's step differ in them. */
static void validate_settings_of_a_step(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        int apart;
    } settings[] = {
        {"optimizer.0: AdamW\noptimizer.0.0.betas: (0.9, 0.999)\n",
         "optimizer.0: AdamW\noptimizer.0.0.betas: (0.9, 0.95)\n", 1},
        {"optimizer.0: AdamW\n", "optimizer.0: SGD\n", 1},
        {"optimizer.0: AdamW\noptimizer.0.0.initial_lr: 0.1\noptimizer.0.0.fused: None\n",
         "optimizer.0: AdamW\noptimizer.0.0.initial_lr: 0.2\noptimizer.0.0.fused: True\n", 0},
        {"optimizer.0: AdamW\noptimizer.0.0.decoupled_weight_decay: True\n", "optimizer.0: AdamW\n",
         0}, /* an older torch does not list it */
        {"optimizer.0: AdamW\noptimizer.0.0.weight_decay: 0.1\n",
         "optimizer.0: AdamW\noptimizer.0.0.weight_decay: 0.1\noptimizer.0.1.weight_decay: 0.0\n",
         1},
        {"optimizer.0: AdamW\nargs.max_grad_norm: 1.0\n",
         "optimizer.0: AdamW\nargs.max_grad_norm: 0.5\n", 1},
        {"optimizer.0: AdamW\nargs.max_grad_norm: 1.0\n", "optimizer.0: AdamW\n", 0},
        {"optimizer.0.0.weight_decay: 0.1\n", "seed: 1\n", 0}, /* of another writer */
    };
    for (size_t i = 0; i < COUNT_OF(settings); i++)
        for (int swap = 0; swap < 2; swap++) {
            const struct trace_run_plan a = {.configuration = swap ? settings[i].b : settings[i].a},
                                        b = {.configuration = swap ? settings[i].a : settings[i].b};
            if (compare_optimizers_apart(&a, &b) != settings[i].apart) fail_msg("case %zu", i);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_when_skips_explain),
        cmocka_unit_test(validate_what_recordings_tell),
        cmocka_unit_test(validate_means_of_logits),
        cmocka_unit_test(validate_ratios_of_norms),
        cmocka_unit_test(validate_norms_of_equal_gradients),
        cmocka_unit_test(validate_ratios_of_losses),
        cmocka_unit_test(validate_settings_of_a_step),
        cmocka_unit_test(validate_when_the_order_of_a_loop_explains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
