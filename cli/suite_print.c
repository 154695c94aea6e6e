/* SPDX-License-Identifier: Apache-2.0
 * Prints the results of a suite as a table, as JSON and as JUnit XML. There a missed expectation is
 * a failure, a scenario that could not run is an error, and one without an expect block is skipped.
 * Invariant: the XML is well-formed UTF-8 whatever bytes names and error texts hold. */
#include <stdio.h>
#include <string.h>

#include "cli/output.h"
#include "cli/suite.h"
#include "cli/xml.h"

size_t suite_count(const struct suite *suite, enum expectation expectation) {
    size_t count = 0;
    for (size_t i = 0; i < suite->result_count; i++)
        count +=
            suite->results[i].status == STATUS_OK && suite->results[i].expectation == expectation;
    return count;
}

size_t suite_errors(const struct suite *suite) {
    size_t count = 0;
    for (size_t i = 0; i < suite->result_count; i++)
        count += suite->results[i].status != STATUS_OK;
    return count;
}

#define ROW "%-26s %-13s %-20s %-26s %-11s %7s\n"

void suite_print_head(FILE *out) {
    fprintf(out, ROW, "scenario", "verdict", "cause", "first", "expectation", "seconds");
}

static const char *or_dash(const char *text) {
    return text[0] == '\0' ? "-" : text;
}

void suite_print_result(const struct suite_result *result, FILE *out) {
    char first[64] = "-", seconds[32];
    snprintf(seconds, sizeof seconds, "%.2f", result->seconds);
    if (result->status != STATUS_OK) {
        fprintf(out, ROW "  %s\n", result->name, "error", "-", "-", "-", seconds, result->error);
        return;
    }
    if (result->first_step >= 0)
        snprintf(first, sizeof first, "update %lld %s", (long long)result->first_step,
                 result->first_phase);
    fprintf(out, ROW, result->name, verdict_name(result->verdict), or_dash(result->cause), first,
            result->expectation == EXPECT_NONE ? "none given"
                                               : expectation_name(result->expectation),
            seconds);
    if (result->expectation == EXPECT_MISSED) fprintf(out, "  missed: %s\n", result->missed);
}

void suite_print_sum(const struct suite *suite, FILE *out) {
    size_t none = suite_count(suite, EXPECT_NONE);
    fprintf(out, "%zu scenarios in %.1f s: %zu met, %zu missed, %zu errors", suite->result_count,
            suite->seconds, suite_count(suite, EXPECT_MET), suite_count(suite, EXPECT_MISSED),
            suite_errors(suite));
    if (none > 0) fprintf(out, ", %zu without an expect block", none);
    fprintf(out, "\n");
    if (suite->taken > 0) fprintf(out, "%zu of them were there already\n", suite->taken);
    if (!suite->temporary && suite->folder != NULL && suite->taken < suite->result_count)
        fprintf(out, "traces in %s\n", suite->folder);
}

json_t *suite_result_json(const struct suite_result *result) {
    if (result->status != STATUS_OK)
        return json_pack("{ss ss sf}", "name", result->name, "error", result->error, "seconds",
                         result->seconds);
    json_t *first = result->first_step < 0
                        ? json_null()
                        : json_pack("{sI ss}", "step", (json_int_t)result->first_step, "phase",
                                    result->first_phase);
    return json_pack("{ss ss ss so ss ss sf}", "name", result->name, "verdict",
                     verdict_name(result->verdict), "cause", result->cause, "first", first,
                     "expectation", expectation_name(result->expectation), "missed", result->missed,
                     "seconds", result->seconds);
}

json_t *suite_json(const struct suite *suite) {
    json_t *list = json_array();
    for (size_t i = 0; i < suite->result_count; i++) {
        if (json_array_append_new(list, suite_result_json(&suite->results[i])) == 0) continue;
        json_decref(list);
        return NULL;
    }
    return json_pack("{so sI sI sI sI sI sf}", "scenarios", list, "met",
                     (json_int_t)suite_count(suite, EXPECT_MET), "missed",
                     (json_int_t)suite_count(suite, EXPECT_MISSED), "none",
                     (json_int_t)suite_count(suite, EXPECT_NONE), "errors",
                     (json_int_t)suite_errors(suite), "taken", (json_int_t)suite->taken, "seconds",
                     suite->seconds);
}
