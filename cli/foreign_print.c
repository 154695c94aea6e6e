/* SPDX-License-Identifier: Apache-2.0
 * The form is judged by determinism/trace/trace_check.c; the rows are read here as every verb reads
 * them. */
#include "cli/foreign_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/json.h"
#include "cli/plain_text.h"
#include "determinism/certify.h"
#include "determinism/foreign.h"
#include "determinism/trace.h"
#include "forensics/compare_foreign.h"

static const char *const seals[] = {
    [TRACE_SEAL_NONE] = "none: names, texts and attributes are not protected by a digest",
    [TRACE_SEAL_BEGUN] = "names, axes and configurations are as it says; what came later is not in "
                         "it",
    [TRACE_SEAL_UNFINISHED] = "names, texts, attributes and columns are as it says",
    [TRACE_SEAL_WHOLE] = "names, texts, attributes and columns are as it says",
};

#define ROOTS_ROOM (CERTIFY_WHY + 8)

/* How the roots came to be, in words. */
static void roots_of(const struct trace_run *run, char out_text[ROOTS_ROOM]) {
    char lack[CERTIFY_WHY];
    certify_lack(run, lack);
    if (run->derived)
        snprintf(out_text, ROOTS_ROOM, "made on reading, of the columns");
    else if (lack[0] != '\0')
        snprintf(out_text, ROOTS_ROOM, "none: %s", lack);
    else
        snprintf(out_text, ROOTS_ROOM, run->updates > 0 ? "stored" : "none: no update");
}

static json_t *run_json(const struct trace_run *run) {
    const struct trace_foreign *foreign = run->plan.foreign;
    char roots[ROOTS_ROOM];
    roots_of(run, roots);
    return json_pack(
        "{ss sI sI sI ss sI sI sI ss sb}", "run", run->plan.id, "updates", (json_int_t)run->updates,
        "rank", (json_int_t)foreign->rank, "world", (json_int_t)foreign->world, "digest",
        foreign->digest, "tensors", (json_int_t)run->plan.shape.tensors, "groups",
        (json_int_t)run->plan.shape.groups, "phases", (json_int_t)run->plan.shape.phases, "roots",
        roots, "rows_checked", !run->unchecked);
}

static json_t *texts_json(const char *const *texts, uint32_t count) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(list, json_text(texts[i]));
    return list;
}

static json_t *check_json(const char *path, const struct foreign_report *report,
                          const struct trace_image *image) {
    json_t *runs = json_array();
    for (uint32_t i = 0; image != NULL && i < image->run_count; i++)
        json_array_append_new(runs, run_json(&image->runs[i]));
    json_t *object = json_pack("{ss so sI so so}", "trace", path, "problems",
                               texts_json(report->problems, report->problem_count), "left_out",
                               (json_int_t)report->left_out, "passed_over",
                               texts_json(report->notes, report->note_count), "runs", runs);
    if (image == NULL) return object;
    return json_join(
        object, json_pack("{so so sb sb ss}", "writer", json_text(image->writer), "writer_version",
                          json_text(image->writer_version), "complete", image->complete, "sealed",
                          image->seal > TRACE_SEAL_BEGUN, "seal", trace_seal_word(image->seal)));
}

static const char *plural(uint32_t count) {
    return count == 1 ? "" : "s";
}

static enum status print_run(const struct trace_run *run, struct arena *arena) {
    char roots[ROOTS_ROOM];
    const struct trace_foreign *foreign = run->plan.foreign;
    const struct record_shape *shape = &run->plan.shape;
    printf("  run %s: %" PRIu64 " updates, %u tensor%s in %u group%s, %u phase%s; rank %" PRId64
           " of %" PRId64 "\n",
           run->plan.id, run->updates, shape->tensors, plural(shape->tensors), shape->groups,
           plural(shape->groups), shape->phases, plural(shape->phases), foreign->rank,
           foreign->world);
    printf("    digests  %s%s\n", foreign->digest[0] == '\0' ? "none" : foreign->digest,
           foreign->initial != NULL ? ", of weights before the first update, too" : "");
    roots_of(run, roots);
    printf("    roots    %s\n", roots);
    const char *order = "";
    if (run->updates > 0 && shape->phases > 0)
        TRY(compare_order_of(&run->plan, &run->records[0], arena, &order));
    if (order[0] != '\0')
        printf("    phases   %s (update %" PRIu64 ")\n", order, run->records[0].step);
    printf("    rows     %s\n", run->unchecked ? "without `check`: a changed value is not seen"
                                               : "every one as its `check` says");
    return STATUS_OK;
}

static enum status print_image(const char *path, const struct foreign_report *report,
                               const struct trace_image *image, struct arena *arena) {
    plain_text_put(path, stdout);
    printf(": a trace of %s%s%s, as docs/FOREIGN.md says%s\n", image->writer,
           image->writer_version[0] == '\0' ? "" : " ", image->writer_version,
           image->complete ? "" : "; it did not run to its end");
    for (uint32_t i = 0; i < image->run_count; i++)
        TRY(print_run(&image->runs[i], arena));
    printf("  seal: %s\n", seals[image->seal]);
    for (uint32_t i = 0; i < report->note_count; i++)
        printf("  passed over, no name of the page: %s\n", report->notes[i]);
    return STATUS_OK;
}

static enum status refuse(const char *path, const struct foreign_report *report, int as_json) {
    if (as_json)
        TRY(json_print(check_json(path, report, NULL)));
    else
        for (uint32_t i = 0; i < report->problem_count; i++)
            printf("%s\n", report->problems[i]);
    if (fflush(stdout) != 0) FAIL(STATUS_IO, "standard output: cannot write");
    const uint32_t count = report->problem_count + report->left_out;
    if (report->left_out > 0)
        FAIL(STATUS_INPUT, "%s: %u problems, of which %u are listed (docs/FOREIGN.md)", path, count,
             report->problem_count);
    FAIL(STATUS_INPUT, "%s: %u problem%s (docs/FOREIGN.md)", path, count, count == 1 ? "" : "s");
}

enum status foreign_print_check(struct cli *cli, const struct options *options, int *out_exit) {
    const char *path = options->arguments[0];
    struct foreign_report report;
    struct trace_image *image;
    if (options->output != NULL)
        FAIL(STATUS_INPUT, "import: --check: expected no --output: it writes nothing");
    TRY(foreign_check(path, &cli->arena, &report));
    if (!report.foreign)
        FAIL(STATUS_INPUT,
             "%s: expected a trace of another program (twinstep_trace = 2, kind = \"foreign\"), "
             "got one of twinstep's own",
             path);
    if (report.problem_count > 0) return refuse(path, &report, options->json);
    TRY(trace_open(path, &cli->arena, &image));
    *out_exit = EXIT_AS_EXPECTED;
    if (options->json) return json_print(check_json(path, &report, image));
    return print_image(path, &report, image, &cli->arena);
}

enum status foreign_refuse(const struct trace_image *image, const char *path, const char *instead) {
    if (image->writer == NULL) return STATUS_OK;
    FAIL(STATUS_INPUT, "%s: recorded by %s%s%s: %s", path, image->writer,
         image->writer_version[0] == '\0' ? "" : " ", image->writer_version, instead);
}
