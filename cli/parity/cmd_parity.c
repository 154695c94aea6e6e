/* SPDX-License-Identifier: Apache-2.0
 * twinstep parity: compares two models, or one model under two settings, in up to four parts:
 * components, logits, log-probabilities and training. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "cli/ci.h"
#include "cli/consent.h"
#include "cli/json.h"
#include "cli/output.h"
#include "cli/parity/parity_asking.h"
#include "cli/perform.h"
#include "model/pretrained.h"

/* ---- parts ---- */

/* Makes a pair out of A's scenario: its arms are A and B, and both read A's data. */
static enum status take_pair(const struct parity_asking *asking, struct scenario *pair) {
    const struct parity_words *words = &asking->words;
    const struct config *a = &asking->request.config[0];
    *pair = *words->side[0].scenario;
    for (int i = 0; i < 2; i++) {
        pair->arms[i] = *words->side[i].arm;
        pair->arms[i].config.data = a->data;
        pair->arms[i].config.task = a->task;
        TRY(config_validate(&pair->arms[i].config, pair->steps));
    }
    if (strcmp(pair->arms[0].name, pair->arms[1].name) == 0) {
        snprintf(pair->arms[0].name, sizeof pair->arms[0].name, "A");
        snprintf(pair->arms[1].name, sizeof pair->arms[1].name, "B");
    }
    memset(&pair->expect, 0, sizeof pair->expect);
    pair->expect.cause = -1;
    return STATUS_OK;
}

/* Trains both arms in lockstep against a floor, as `twinstep run` does. The trace is temporary. */
static enum status measure_training(struct parity_asking *asking) {
    struct arena *arena = &asking->cli->arena;
    struct scenario *pair;

    const char *parent = getenv("TMPDIR");
    char *folder, *trace, *live;
    TRY(arena_take(arena, 1, sizeof *pair, "scenario", &pair));

    TRY(take_pair(asking, pair));
    if (parent == NULL || parent[0] == '\0') parent = "/tmp";
    TRY(arena_format(arena, &folder, "%s/twinstep-parity-XXXXXX", parent));
    if (mkdtemp(folder) == NULL)
        FAIL(STATUS_IO, "%s: cannot make a folder: %s (TMPDIR names its parent)", folder,
             strerror(errno));
    TRY(arena_format(arena, &trace, "%s/pair.h5", folder));
    TRY(arena_format(arena, &live, "%s.part", trace));
    const struct performance how = {
        .path = trace, .reproducible = 1, .progress = progress_wanted(asking->options)};
    enum status status = perform(asking->cli, pair, &how, arena, &asking->training);
    /* the judgement's own rows are closed with the file */
    if (status == STATUS_OK) status = trace_open(trace, arena, &asking->recorded);
    asking->report.recorded = asking->recorded;
    unlink(trace);
    unlink(live); /* what an interrupted training left */
    rmdir(folder);
    asking->report.training = &asking->training;
    return status;
}

/* ---- rollouts ---- */

static void write_reals(FILE *out, const char *name, const double *values, uint32_t count) {
    fprintf(out, ", \"%s\": [", name);
    for (uint32_t i = 0; i < count; i++)
        fprintf(out, "%s%s", i == 0 ? "" : ", ", number_text_f64(values[i]).text);
    fputc(']', out);
}

/* One line of JSONL, in the names of docs/ROLLOUT.md. */
static enum status write_rollout(void *context, const struct parity_rollout *one) {
    const struct parity_asking *asking = (const struct parity_asking *)context;
    FILE *out = asking->rollouts.file;
    fprintf(out, "{\"id\": \"%u-%u-%u\", \"batch\": %u, \"position\": %u", one->row_number,
            one->repeat, one->sequence, one->row_number, one->prompt);
    fprintf(out, ", \"weight_version\": %ju, \"trainer_version\": %ju, \"token_ids\": [",
            (uintmax_t)one->updates[1], (uintmax_t)one->updates[0]);
    for (uint32_t i = 0; i < one->count; i++)
        fprintf(out, "%s%u", i == 0 ? "" : ", ", one->token[i]);
    fputc(']', out);
    write_reals(out, "rollout_logprobs", one->generated, one->count);
    write_reals(out, "trainer_logprobs", one->trained, one->count);
    if (fputs("}\n", out) >= 0 && !ferror(out)) return STATUS_OK;
    FAIL(STATUS_IO, "%s: cannot write: %s", asking->rollouts.path, strerror(errno));
}

static enum status measure_logprobs(struct parity_asking *asking) {
    const char *path = options_value(asking->options, KEY_ROLLOUTS);
    if (path == NULL)
        return parity_measure_logprob(&asking->parity, &asking->grid, &asking->logprob);
    TRY(output_open(path, asking->options->overwrite, &asking->rollouts));
    asking->grid.each = write_rollout;
    asking->grid.each_context = asking;
    return output_close(&asking->rollouts,
                        parity_measure_logprob(&asking->parity, &asking->grid, &asking->logprob));
}

static enum status measure(struct parity_asking *asking) {
    TRY(factors_of(asking->cli->schema, &asking->parity.config[PARITY_A],
                   &asking->parity.config[PARITY_B], &asking->cli->arena, &asking->report.factors,
                   &asking->report.factor_count));
    TRY(parity_compare_weights(asking->parity.run[PARITY_A], asking->parity.run[PARITY_B],
                               &asking->report.weights));
    for (int i = 0; i < 2; i++)
        TRY(pretrained_dtype_note(&asking->request.config[i], &asking->cli->arena,
                                  &asking->report.dtype_note[i]));
    if (parity_wants(asking, KEY_COMPONENTS)) {
        TRY(parity_measure_components(&asking->parity, &asking->components));
        asking->report.components = &asking->components;
    }
    if (parity_wants(asking, KEY_LOGITS)) {
        TRY(parity_measure_logits(&asking->parity, &asking->logits));
        asking->report.logits = &asking->logits;
    }
    if (!parity_wants(asking, KEY_LOGPROBS)) return STATUS_OK;
    /* This part is measured last, because it trains A and changes the weights of B. */
    if (asking->parity.shapes_differ) asking->grid.refit = 0;
    TRY(measure_logprobs(asking));
    asking->report.logprob = &asking->logprob;
    asking->report.grid = &asking->grid;
    return STATUS_OK;
}

static enum status measure_all(struct parity_asking *asking) {
    progress_open(&asking->progress, "parity", progress_wanted(asking->options));
    enum status status = parity_open(&asking->request, &asking->cli->arena, &asking->parity);
    if (status == STATUS_OK) status = measure(asking);
    progress_close(&asking->progress);
    TRY(status);
    return parity_wants(asking, KEY_TRAINING) ? measure_training(asking) : STATUS_OK;
}

/* ---- output ---- */

static enum status write_json(const struct parity_asking *asking, const char *path) {
    struct output output;
    TRY(output_open(path, asking->options->overwrite, &output));
    json_t *value = parity_json(&asking->report);
    enum status status = STATUS_OK;
    if (value == NULL || json_dumpf(value, output.file, JSON_INDENT(2) | JSON_PRESERVE_ORDER) != 0)
        status = status_fail(STATUS_IO, "cannot write JSON");
    fputc('\n', output.file);
    json_decref(value);
    return output_close(&output, status);
}

/* Prints before FILE is written, so that what was measured is not lost if FILE cannot be written.
 */
static enum status print_all(const struct parity_asking *asking) {
    if (asking->options->json)
        TRY(json_print(parity_json(&asking->report)));
    else
        parity_print_text(&asking->report, stdout);
    if (asking->options->output == NULL) return STATUS_OK;
    fflush(stdout);
    return write_json(asking, asking->options->output);
}

/* ---- a CI system ---- */

static enum status add_part(const struct parity_asking *asking, const char *part,
                            enum parity_finding finding, const char *why) {
    static const int exits[] = {EXIT_AS_EXPECTED, EXIT_DIFFERS, EXIT_UNTESTABLE};
    struct cli *const cli = asking->cli;
    char *title, *message;
    TRY(arena_format(&cli->arena, &title, "parity of %s", part));
    TRY(arena_format(&cli->arena, &message, "%s of %s against %s: %s%s%s", part,
                     asking->words.side[1].name, asking->words.side[0].name,
                     parity_finding_name(finding), why[0] != '\0' ? ": " : "", why));
    return ci_add(cli, &(struct ci_case){.name = part,
                                         .outcome = exits[finding],
                                         .title = title,
                                         .message = message,
                                         .seconds = -1.0});
}

/* Names the component whose R is largest among those outside, with its layer. */
static enum status words_of_components(const struct parity_components *components,
                                       struct arena *arena, char **out) {
    const struct parity_component_row *worst = NULL;
    if (components->untestable != NULL)
        return arena_format(arena, out, "%s", components->untestable);
    for (uint32_t i = 0; i < components->count; i++) {
        const struct parity_component_row *row = &components->rows[i];
        if (row->finding != PARITY_OUTSIDE) continue;
        if (worst == NULL || row->median > worst->median) worst = row;
    }
    if (worst == NULL) return arena_format(arena, out, "%s", "");
    return arena_format(arena, out, "%s of %s (%s) has R %.3g: %s", parity_side_names[worst->side],
                        parity_component_names[worst->component],
                        worst->tensor != NULL ? worst->tensor : worst->op, worst->median,
                        parity_row_words(worst));
}

/* Names the row of the grid that is furthest apart among those outside. */
static enum status words_of_logprobs(const struct parity_logprob *logprob, struct arena *arena,
                                     char **out) {
    const struct parity_row *worst = NULL;
    for (uint32_t i = 0; i < logprob->count; i++) {
        const struct parity_row *row = &logprob->rows[i];
        if (row->finding != PARITY_OUTSIDE) continue;
        if (worst == NULL || row->apart > worst->apart) worst = row;
    }
    if (worst == NULL) return arena_format(arena, out, "%s", "");
    return arena_format(arena, out,
                        "mean |d| %.3g where A's own is at most %.3g (%s, length %u, batch %u%s)",
                        worst->apart, worst->own, worst->sampled ? "sampled" : "forced",
                        worst->length, worst->batch, worst->refit ? ", after the refit" : "");
}

static enum status add_cases(const struct parity_asking *asking) {
    const struct parity_report *report = &asking->report;
    struct arena *const arena = &asking->cli->arena;
    char *why;
    if (report->components != NULL) {
        TRY(words_of_components(report->components, arena, &why));
        TRY(add_part(asking, "components", report->components->finding, why));
    }
    if (report->logits != NULL)
        TRY(add_part(asking, "logits", report->logits->finding, report->logits->why));
    if (report->logprob != NULL) {
        TRY(words_of_logprobs(report->logprob, arena, &why));
        TRY(add_part(asking, "log-probs", report->logprob->finding, why));
    }
    if (report->training == NULL) return STATUS_OK;
    return add_part(asking, "training", parity_training_finding(report->training),
                    report->training->row_count > 0 ? report->training->rows[0].text : "");
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    static const int exits[] = {EXIT_AS_EXPECTED, EXIT_DIFFERS, EXIT_UNTESTABLE};
    struct parity_asking *asking;
    uint64_t steps = 0;
    TRY(arena_take(&cli->arena, 1, sizeof *asking, "parity", &asking));
    asking->cli = cli;
    asking->options = options;
    TRY(parity_check_parts(asking));
    TRY(parity_read_count(options, KEY_STEPS, "steps", 1000000, &steps));
    TRY(parity_load(cli, options,
                    parity_wants(asking, KEY_TRAINING) ? options_value(options, KEY_STEPS) : NULL,
                    &cli->arena, &asking->words));
    TRY(parity_read_request(asking));
    TRY(parity_check_output(asking));
    asking->report.words = &asking->words;
    asking->report.parity = &asking->parity;
    enum status status = measure_all(asking);
    if (status == STATUS_OK) status = print_all(asking);
    if (status == STATUS_OK) status = add_cases(asking);
    if (status == STATUS_OK) *out_exit = exits[parity_overall(&asking->report)];
    parity_close(&asking->parity);
    return status;
}

static const struct argp_option option_rows[] = {
    OPTION("components", KEY_COMPONENTS, NULL,
           "R-ratio of each component, gradient and first update"),
    OPTION("logits", KEY_LOGITS, NULL, "Logits under teacher forcing"),
    OPTION("logprobs", KEY_LOGPROBS, NULL, "B's generation against A's forward"),
    OPTION("training", KEY_TRAINING, NULL,
           "Train both on A's data against a floor; without one of these four: the first three"),
    OPTION("set", KEY_SET, "KEY=VALUE",
           "Change one key of B, e.g. numerics.compute=bf16 (repeatable)"),
    OPTION("batches", KEY_BATCHES, "N", "Micro-batches for components and logits; default 4"),
    OPTION("replicas", KEY_REPLICAS, "N",
           "Replicas of A with other orders of sums, which calibrate; default 19 (components: 4 "
           "at most)"),
    OPTION("full", KEY_FULL, NULL,
           "The whole grid of log-probs: lengths 100,1000,10000; sizes 1,8,32; ten repeats; real, "
           "numbers and random"),
    OPTION("lengths", KEY_LENGTHS, "LIST", "Tokens of a sequence, prompt included; default 32,100"),
    OPTION("sizes", KEY_SIZES, "LIST", "Sequences generated together; default 1,4"),
    OPTION("repeats", KEY_REPEATS, "N", "Of each case; default 2"),
    OPTION("temperature", KEY_TEMPERATURE, "X", "Of sampled generation; default 0.7"),
    OPTION("top-p", KEY_TOP_P, "X", "Of sampled generation; default 0.9"),
    OPTION("no-refit", KEY_NO_REFIT, NULL, "Only rows without refit"),
    OPTION("stale", KEY_STALE, NULL,
           "Drill: leave out the refit itself, to see what that looks like"),
    OPTION("rollouts", KEY_ROLLOUTS, "FILE",
           "Write every sampled sequence with both log-probs of each token as JSONL, for `twinstep "
           "rollout`"),
    OPTION("data", KEY_DATA, "FILE",
           "JSONL of one text, completion or id list per row, for both; default: A's data"),
    OPTION("steps", KEY_STEPS, "N",
           "Updates of A before the refit; default 5. Of --training; default the scenario's, 8 "
           "of folders"),
    OPTION_OUTPUT("Write the figures as JSON to FILE, too"),
    OPTION_OVERWRITE("Replace a FILE that is there"),
    OPTIONS_MODULES,
    OPTIONS_CI,
    OPTION_JSON,
    OPTION_QUIET,
    OPTIONS_END};

const struct verb verb_parity = {
    .name = "parity",
    .brief = "two models, or one under two settings: components, logits, log-probs",
    .arguments = "A [B]",
    .text =
        "A and B are checkpoint folders, scenarios (their first arms) or SCENARIO:ARM. A alone: a "
        "scenario's two arms, or one model as it is and with --set. A is the reference, B the "
        "port. Held against A's own rounding: each component's output, gradients and first update "
        "(R-ratio), logits under teacher forcing, and the log-probs that B gives while it "
        "generates from a cache against A's training forward. docs/PARITY.md explains every "
        "figure.\v"
        "Exit status: 0 within, 1 outside, 2 error, 3 untestable.\n"
        "Example: twinstep parity dtype-bf16 --components --logits",
    .options = option_rows,
    .least = 1,
    .most = 2,
    .trains = 1,
    .run = run,
};
