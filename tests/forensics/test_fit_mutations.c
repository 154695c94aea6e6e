/* SPDX-License-Identifier: Apache-2.0
 * labels: unit whole
 * Every bug of the mutation table must be named, from logs printed exactly, with three digits, and
 * in binary32 where the digits still show it; and docs/LR.md must show the same table. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/base/helper_size.h"
#include "tests/forensics/helper_golden.h"
#include "tests/forensics/helper_lr.h"
#include "tests/forensics/helper_mutations.h"

#define ROWS 400
#define RESUME 41

static const uint64_t skipped[] = {12, 13};

/* A loss that stops falling, which feedback schedules take for their metric. */
#define EVALUATIONS 80
static uint64_t evaluated_at[EVALUATIONS];
static double evaluated[EVALUATIONS];

static void set_metric(uint64_t every, uint64_t steps, struct contract_request *out) {
    for (size_t i = 0; i < EVALUATIONS && (i + 1) * every <= steps; i++) {
        evaluated_at[i] = (i + 1) * every;
        evaluated[i] = i < 5 ? 3.0 - 0.25 * (double)i : 2.0 + 0.001 * (double)(i % 3);
        out->metric_count = i + 1;
    }
    out->metric_update = evaluated_at;
    out->metric_value = evaluated;
}

static void request_of(const struct setup *setup, int twist, struct contract_request *out) {
    contract_request_init(out);
    out->contract = contract_find(setup->contract);
    assert_non_null(out->contract);
    out->schedule = setup->schedule;
    out->lr = setup->lr;
    if (setup->warmup < 0.0)
        out->warmup_ratio = setup->ratio;
    else
        out->warmup = setup->warmup;
    out->steps = setup->steps;
    out->processes = setup->processes;
    out->accumulate = setup->accumulate;
    out->global_batch = setup->batch;
    out->updates_per_epoch = setup->updates_per_epoch;
    out->rescaled = setup->rescaled;
    if (setup->floor >= 0.0) out->min_lr_ratio = setup->floor;
    if (strncmp(setup->contract, "deepspeed", 9) == 0) {
        out->values[0].key = "warmup_type";
        out->values[0].text = "linear";
        out->value_count = 1;
    }
    if (setup->every > 0) set_metric(setup->every, setup->steps, out);
    for (size_t i = 0; i < 2 && setup->values[i].key != NULL; i++) {
        out->values[out->value_count].key = setup->values[i].key;
        out->values[out->value_count++].text = setup->values[i].text;
    }
    if (twist == TWIST_SKIPS) {
        out->skipped = skipped;
        out->skipped_count = 2;
    }
}

static double twisted(const struct contract_plan *plan, int twist, uint64_t k) {
    const uint64_t since = k >= RESUME ? k - RESUME + 1 : 0;
    switch (twist) {
    case TWIST_FIRST_PEAK:
        return k == 1 ? plan->call.base_lr : contract_logged(plan, k);
    case TWIST_FIRST_ZERO:
        return k == 1 ? 0.0 : contract_logged(plan, k);
    case TWIST_FIRST_NAN:
        return k == 1 ? (double)NAN : contract_logged(plan, k);
    case TWIST_EVAL:
        return contract_logged(plan, k + (k - 1) / 20);
    case TWIST_RESET:
        return contract_logged(plan, since > 0 ? since : k);
    case TWIST_DOUBLED:
        return contract_logged(plan, since > 0 ? k + RESUME - 1 : k);
    case TWIST_OVERWRITTEN:
        return contract_logged(plan, k) *
               (since > 0 ? contract_logged(plan, RESUME - 1) / plan->call.base_lr : 1.0);
    default:
        return contract_logged(plan, k);
    }
}

static size_t make(const struct mutation *m, int print, struct arena *arena,
                   struct series_point *points) {
    struct contract_request request;
    struct contract_plan plan;
    const uint64_t rows = m->rows > 0 ? m->rows : m->believed.steps;
    request_of(&m->happened, m->twist, &request);
    assert_int_equal(contract_resolve(&request, arena, &plan), STATUS_OK);
    for (uint64_t k = 1; k <= rows; k++) {
        points[k - 1] = (struct series_point){.update = k, .row = k - 1};
        lr_print_point(&points[k - 1], twisted(&plan, m->twist, k), print);
    }
    return rows;
}

static int equal(const char *a, const char *b) {
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static int judge(const struct mutation *m, int print) {
    static struct series_point points[ROWS];
    struct arena arena = ARENA_EMPTY;
    struct fit_known known;
    struct fit_check check;
    fit_known_init(&known);
    request_of(&m->believed, m->twist, &known.request);
    const struct series series = {points, make(m, print, &arena, points)};
    assert_int_equal(fit_check(&series, &known, 1, &arena, &check), STATUS_OK);
    if (print == LR_EXACT) {
        golden_check(golden_begin("fit_mutations.txt", "%d %s", m->number, m->bug), &check, 3);
        golden_end();
    }
    const char *says = check.verdict == FIT_UNDECIDED ? check.rival : check.bug;
    const int right = check.verdict == m->verdict && (m->says == NULL || equal(says, m->says));
    if (!right)
        print_message("#%d %s (print %d): verdict %d, says %s, words %s\n", m->number, m->bug,
                      print, check.verdict, says == NULL ? "nothing" : says, check.words);
    arena_close(&arena);
    return right;
}

/* Judges one mutation in `every`, from `first` on. */
static size_t judge_some(int print, size_t first, size_t every) {
    size_t wrong = 0;
    for (size_t i = every == 1 ? 0 : first; i < mutation_count; i += every)
        wrong += !judge(&mutations[i], print);
    return wrong;
}

static void validate_names_in_exact_logs(void **state) {
    (void)state;
    assert_int_equal(judge_some(LR_EXACT, 0, 1), 0);
}

static void validate_names_in_binary32(void **state) {
    (void)state;
    assert_int_equal(judge_some(LR_F32, 0, helper_size(3, 6, 1)), 0);
}

static void validate_names_in_six_digits(void **state) {
    (void)state;
    assert_int_equal(judge_some(LR_E5, 1, helper_size(3, 6, 1)), 0);
}

static void line_of(const struct mutation *m, char *out, size_t size) {
    const char *const verdicts[] = {"pass", "fail", "undecided"};
    snprintf(out, size, "| %d | `%s` | %s | %s | %s%s%s%s |\n", m->number, m->bug, m->injected,
             m->shown, verdicts[m->verdict], m->says != NULL ? ": `" : "",
             m->says != NULL ? m->says : "", m->says != NULL ? "`" : "");
}

static void verify_the_document_shows_the_table(void **state) {
    (void)state;
    static char text[1 << 18];
    FILE *file = fopen(TWINSTEP_SOURCE_DIR "/docs/LR.md", "r");
    char line[1024];
    const int print = getenv("TWINSTEP_PRINT_TABLE") != NULL;
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    for (size_t i = 0; i < mutation_count; i++) {
        line_of(&mutations[i], line, sizeof line);
        if (print) fputs(line, stderr);
        if (!print && strstr(text, line) == NULL) fail_msg("docs/LR.md lacks: %s", line);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_names_in_exact_logs),
        cmocka_unit_test(validate_names_in_binary32),
        cmocka_unit_test(validate_names_in_six_digits),
        cmocka_unit_test(verify_the_document_shows_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
