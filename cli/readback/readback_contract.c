/* SPDX-License-Identifier: Apache-2.0
 * Which of the shipped contracts an update fits, in the names and words of `twinstep lr check`. Two
 * checkpoints show where the schedule stood when the optimizer stepped; the log shows which value
 * it printed. What else contracts differ in (roundings of lengths, skipped updates) they do not
 * show, so several fit, as a rule. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/json.h"
#include "cli/readback/readback_print.h"
#include "sched/contract.h"

/* Updates that count for a contract: those that a loss scaler skipped count only where the contract
 * advances there. An optimizer that counts more than the trainer is wrong, and one whose count fell
 * lost its state and tells nothing of skipped updates. */
static double updates_before(const struct contract *contract,
                             const struct update_reading *reading) {
    double counted = (double)NAN;
    for (uint32_t g = 0; contract->on_skip == CONTRACT_SKIP_HOLD && g < reading->group_count; g++)
        counted = reading->groups[g].fell ? counted : fmax(counted, reading->groups[g].most);
    return (counted >= 1.0 && counted < reading->update ? counted : reading->update) - 1.0;
}

/* The unit in which torch's schedulers count. */
static int has_unit(const struct contract *contract, const struct update_schedule *schedule) {
    if (contract->unit == CONTRACT_UNIT_PROCESS) return 1;
    return contract->unit == CONTRACT_UNIT_UPDATE && schedule->stride == 1.0;
}

static int fits(const struct contract *contract, const struct update_reading *reading) {
    const struct update_schedule *const schedule = &reading->schedule;
    const double before = updates_before(contract, reading) * schedule->stride;
    const double logged =
        schedule->applied + (contract->logged == CONTRACT_LOGGED_NEXT ? schedule->stride : 0.0);
    if (!has_unit(contract, schedule) ||
        schedule->applied != before + schedule->stride * contract->offset)
        return 0;
    /* The first update of a torch scheduler applies f(0), which its constructor installed. */
    if (reading->update == 1.0 && contract->start != CONTRACT_START_F0 &&
        contract->start != CONTRACT_START_NONE)
        return 0;
    return !(schedule->logged >= 0.0) || schedule->logged == logged;
}

size_t readback_contracts(const struct update_reading *reading, const char *names[], size_t room) {
    size_t rows, count = 0;
    const struct contract *const all = contract_list(&rows);
    if (reading->schedule.why != NULL) return 0;
    for (int is_bug = 0; is_bug <= 1 && count == 0; is_bug++)
        for (size_t i = 0; i < rows && count < room; i++)
            if (all[i].bug == is_bug && fits(&all[i], reading)) names[count++] = all[i].name;
    return count;
}

/* How many updates the applied LR is ahead of what hf applies. */
static double ahead(const struct update_reading *reading) {
    const double stride = reading->schedule.stride;
    const double before = updates_before(contract_find("hf"), reading) * stride;
    return (reading->schedule.applied - before) / stride;
}

/* Returns the name that the catalogue gives to such a slip (docs/LR.md), as lr check prints it. */
static const char *bug_of(const struct update_reading *reading) {
    const double by = ahead(reading);
    return by == 1.0 ? "lr_ahead_by_one" : by == -1.0 ? "lag1" : NULL;
}

/* The text names so many contracts; --json lists them all. */
#define PRINTED 5

static void print_names(const struct update_reading *reading, FILE *out) {
    const char *names[READBACK_CONTRACTS];
    const size_t count = readback_contracts(reading, names, READBACK_CONTRACTS);
    if (count == 0) fputs("no shipped contract", out);
    for (size_t i = 0; i < count && i < PRINTED; i++)
        fprintf(out, "%s%s", i > 0 ? ", " : "", names[i]);
    if (count > PRINTED) fprintf(out, " and %zu more", count - PRINTED);
}

void readback_print_contract(const struct update_reading *reading, FILE *out) {
    const struct update_schedule *const schedule = &reading->schedule;
    const double by = ahead(reading);
    if (schedule->why != NULL) {
        fprintf(out, "  contract cannot be told: %s\n", schedule->why);
        return;
    }
    fprintf(out, "  contract %s ", schedule->logged >= 0.0 ? "fits" : "applies as");
    print_names(reading, out);
    if (fabs(by) == 1.0) fprintf(out, ", one update %s hf", by > 0.0 ? "ahead of" : "behind");
    if (fabs(by) > 1.0)
        fprintf(out, ", %.0f updates %s hf", fabs(by), by > 0.0 ? "ahead of" : "behind");
    if (bug_of(reading) != NULL) fprintf(out, " (%s)", bug_of(reading));
    fprintf(out, ": update %.0f applies f(%.0f)", reading->update, schedule->applied);
    if (schedule->logged >= 0.0)
        fprintf(out, " and logs f(%.0f)\n", schedule->logged);
    else if (fabs(reading->groups[0].logged) >= 0.0)
        fprintf(out, "; the log's %s does not say which value it prints\n",
                update_number(reading->groups[0].logged, 0.0).text);
    else
        fputs("; no log says what it prints\n", out);
}

/* Returns 1 where both logs have one LR for the update, 0 where they have two, and -1 where one
 * has none. */
static int is_logged_alike(const struct readback_pair *pair) {
    const double a = pair->a->reading.groups[0].logged, b = pair->b->reading.groups[0].logged;
    if (pair->a->reading.update != pair->b->reading.update || !(fabs(a) >= 0.0) ||
        !(fabs(b) >= 0.0))
        return -1;
    return fabs(a - b) <= 1e-6 * fabs(a);
}

void readback_print_contracts(const struct readback_pair *pair, FILE *out) {
    const struct update_reading *const a = &pair->a->reading, *const b = &pair->b->reading;
    if (a->schedule.why != NULL || b->schedule.why != NULL) return;
    const int differ = a->schedule.applied != b->schedule.applied;
    fputs("  contract: A fits ", out);
    print_names(a, out);
    fputs("; B fits ", out);
    print_names(b, out);
    if (differ && is_logged_alike(pair) == 1)
        fprintf(out, "; both log %s for this update, so logs cannot tell them apart",
                update_number(a->groups[0].logged, 0.0).text);
    fputc('\n', out);
}

json_t *readback_contract_json(const struct update_reading *reading) {
    const struct update_schedule *const schedule = &reading->schedule;
    const char *names[READBACK_CONTRACTS];
    const size_t count = readback_contracts(reading, names, READBACK_CONTRACTS);
    const int is_known = schedule->why == NULL;
    json_t *const list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_string(names[i]));
    return json_pack("{s:o,s:o,s:o,s:o,s:s?,s:s?}", "fits", list, "applied",
                     json_finite(schedule->applied), "logged", json_finite(schedule->logged),
                     "ahead", is_known ? json_finite(ahead(reading)) : json_null(), "bug",
                     is_known ? bug_of(reading) : NULL, "why", schedule->why);
}

json_t *readback_logged_json(const struct readback_pair *pair) {
    const int alike = is_logged_alike(pair);
    return alike < 0 ? json_null() : json_boolean(alike);
}
