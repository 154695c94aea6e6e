/* SPDX-License-Identifier: Apache-2.0
 * Writes a suite as JUnit XML: a missed expectation is a failure, a scenario that could not run is
 * an error, and one without an expect block is skipped. Invariant: the file is well-formed UTF-8
 * whatever bytes names and error texts hold. */
#include <stdio.h>

#include "cli/output.h"
#include "cli/suite.h"
#include "cli/xml.h"

static void put_case(FILE *out, const struct suite_result *result) {
    fputs("    <testcase classname=\"twinstep.suite\"", out);
    xml_attribute(out, "name", result->name);
    fprintf(out, " time=\"%.3f\">", result->seconds);
    if (result->status != STATUS_OK) {
        fputs("<error", out);
        xml_attribute(out, "message", result->error);
        fputs("/>", out);
    } else if (result->expectation == EXPECT_MISSED) {
        fputs("<failure", out);
        xml_attribute(out, "message", result->missed);
        fputs("/>", out);
    } else if (result->expectation == EXPECT_NONE) {
        fputs("<skipped message=\"no expect block\"/>", out);
    }
    fputs("</testcase>\n", out);
}

static void put_suite(FILE *out, const struct suite *suite) {
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n", out);
    fprintf(out,
            "  <testsuite name=\"twinstep suite\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" "
            "skipped=\"%zu\" time=\"%.3f\">\n",
            suite->result_count, suite_count(suite, EXPECT_MISSED), suite_errors(suite),
            suite_count(suite, EXPECT_NONE), suite->seconds);
    for (size_t i = 0; i < suite->result_count; i++)
        put_case(out, &suite->results[i]);
    fputs("  </testsuite>\n</testsuites>\n", out);
}

enum status junit_write(const struct suite *suite, const char *path) {
    struct output output;
    TRY(output_open(path, 1, &output));
    put_suite(output.file, suite);
    return output_close(&output, STATUS_OK);
}
