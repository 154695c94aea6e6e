/* SPDX-License-Identifier: Apache-2.0
 * twinstep bisect: finds the first difference of two trainings, down to the element. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/input.h"
#include "base/number.h"
#include "cli/certify_print.h"
#include "cli/consent.h"
#include "cli/foreign_print.h"
#include "cli/json.h"
#include "cli/load.h"
#include "cli/perform.h"
#include "cli/progress.h"
#include "determinism/chain.h"
#include "experiment/experiment_plan.h"
#include "experiment/locate/locate_words.h"
#include "experiment/replay.h"

enum { KEY_STEPS = KEY_OWN, KEY_RUNS };

struct bisecting {
    struct cli *cli;
    struct arena *arena;
    struct locate_request request;
    struct config configs[2];
    const char *label; /* what the progress line begins with */
    int shown, drawn;
    struct trace_image *images[2]; /* NULL: a scenario; the same twice of one trace */
};

/* A trace begins as every HDF5 file does; what does not is taken for a scenario. */
static int is_trace(const char *path) {
    static const char magic[8] = {'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};
    char head[sizeof magic];
    struct input input;
    if (input_open(path, INPUT_FILE, path, "a file", &input) != STATUS_OK) return 0;
    const ssize_t got = read(input.descriptor, head, sizeof head);
    close(input.descriptor);
    return got == sizeof head && memcmp(head, magic, sizeof head) == 0;
}

static enum status read_steps(const struct options *options, uint64_t most, uint64_t *out) {
    const char *text = options_value(options, KEY_STEPS);
    *out = most;
    if (text == NULL) return STATUS_OK;
    const enum status status = number_parse_uint(text, out);
    if (status != STATUS_OK) return status_prefix(status, "bisect: --steps");
    if (*out == 0 || *out > most)
        FAIL(STATUS_INPUT, "bisect: --steps: expected 1 to %ju, got %s", (uintmax_t)most, text);
    return STATUS_OK;
}

static enum status ask_scenario(struct bisecting *b, const struct options *options) {
    struct scenario *scenario;
    struct experiment_plan plan;
    if (options_value(options, KEY_RUNS) != NULL)
        FAIL(STATUS_INPUT, "bisect: --runs: expected a trace, got the scenario %s",
             options->arguments[0]);
    TRY(load_scenario(b->cli, b->arena, options->arguments[0], options, &scenario));
    TRY(experiment_plan_open(b->cli->schema, scenario, b->arena, &plan));
    for (int s = 0; s < 2; s++) {
        TRY(load_check_data(scenario, s));
        b->configs[s] = plan.runs[s].config;
        b->request.sides[s] =
            (struct locate_side){.name = scenario->arms[s].name, .config = &b->configs[s]};
    }
    b->label = scenario->name;
    return read_steps(options, scenario->steps, &b->request.steps);
}

/* Takes part `which` of "A,B". Without them these are the trace's own arms, whatever their names
 * are, or the baselines of two traces. */
static enum status run_name(const struct options *options, int which,
                            const struct trace_image *image, char out[64]) {
    const char *given = options_value(options, KEY_RUNS);
    const char *standard = which == 1 && options->argument_count == 1 ? "test" : "baseline";
    if (given == NULL) {
        const char *const arm = trace_attribute_of(image, "", standard);
        snprintf(out, 64, "%s", arm == NULL ? standard : arm);
        return STATUS_OK;
    }
    const char *comma = strchr(given, ',');
    if (comma == NULL || strchr(comma + 1, ',') != NULL || comma - given >= 64)
        FAIL(STATUS_INPUT, "bisect: --runs: expected two names as in baseline,test, got \"%s\"",
             given);
    if (which == 0)
        snprintf(out, 64, "%.*s", (int)(comma - given), given);
    else
        snprintf(out, 64, "%s", comma + 1);
    return STATUS_OK;
}

static enum status ask_run(struct bisecting *b, const struct options *options, int which,
                           const struct trace_image *image) {
    const char *path = options->arguments[options->argument_count == 1 ? 0 : which];
    char name[64], *label;
    TRY(run_name(options, which, image, name));
    const struct trace_run *run = trace_run_of(image, name);
    if (run == NULL) FAIL(STATUS_INPUT, "%s: holds no run \"%s\"", path, name);
    if (run->plan.configuration == NULL || run->plan.configuration[0] == '\0')
        FAIL(STATUS_INPUT, "%s: run %s has no configuration: it is an imported log", path, name);
    if (run->updates == 0) FAIL(STATUS_INPUT, "%s: run %s has no update", path, name);
    if (trace_row(run, 0)->step != 1)
        FAIL(STATUS_INPUT,
             "%s: run %s forked from an arm and has no record of its first %ju updates", path, name,
             (uintmax_t)trace_row(run, 0)->step - 1);
    TRY(certify_refuse(image, path, run));
    TRY(arena_format(b->arena, &label, "configuration of run %s of %s", name, path));
    TRY(config_read(b->cli->schema, label, run->plan.configuration, b->arena, &b->configs[which]));
    TRY(replay_check_data(image, path, run, &b->configs[which]));
    if (options->argument_count == 1)
        TRY(arena_format(b->arena, &label, "%s", name));
    else
        TRY(arena_format(b->arena, &label, "%s of %s", name, path));
    b->request.sides[which] = (struct locate_side){label, &b->configs[which], path, run};
    return STATUS_OK;
}

static enum status ask_traces(struct bisecting *b, const struct options *options) {
    struct trace_image **const images = b->images;
    if (options->set_count > 0)
        FAIL(STATUS_INPUT, "bisect: --set: expected a scenario, got the trace %s",
             options->arguments[0]);
    TRY(trace_open_long(options->arguments[0], b->arena, &images[0]));
    images[1] = images[0];
    if (options->argument_count == 2)
        TRY(trace_open_long(options->arguments[1], b->arena, &images[1]));
    for (size_t s = 0; s < options->argument_count; s++)
        TRY(foreign_refuse(images[s], options->arguments[s],
                           "no configuration of ours can train it again to look at elements; "
                           "twinstep certify A B names the first update, phase and tensor, and "
                           "twinstep ablate runs your two commands to find which of their "
                           "differences makes it"));
    for (int s = 0; s < 2; s++)
        TRY(ask_run(b, options, s, images[s]));
    const uint64_t counts[2] = {b->request.sides[0].recorded->updates,
                                b->request.sides[1].recorded->updates};
    b->label = options->arguments[0];
    return read_steps(options, counts[0] < counts[1] ? counts[0] : counts[1], &b->request.steps);
}

static void show(void *context, const struct locate_progress *now) {
    struct bisecting *b = (struct bisecting *)context;
    if (!b->shown) return;
    char line[96];
    snprintf(line, sizeof line, "%.40s: %ju updates trained", b->label, (uintmax_t)now->done);
    progress_put(line);
    b->drawn = 1;
}

static void print_way(const struct bisecting *b, const struct locate_result *result) {
    const char *plural = result->comparisons == 1 ? "" : "s";
    printf("  search   %u comparison%s of roots", result->comparisons, plural);
    if (result->recorded)
        printf(" of %ju recorded updates\n", (uintmax_t)result->steps);
    else
        printf(", both trained side by side up to the first that differs\n");
    for (int s = 0; s < 2 && result->recorded && result->update > 0; s++) {
        printf("  reached  %s: ", b->request.sides[s].name);
        if (result->stored[s])
            printf("from the stored state of update %ju, ", (uintmax_t)result->restored[s]);
        printf("%ju updates trained\n", (uintmax_t)result->trained[s]);
    }
}

static void print_element(const struct locate_result *result) {
    const struct locate_text address = locate_address(result);
    printf("update %ju, %s%s%s%s: %s\n", (uintmax_t)result->update,
           locate_place(result->first.key, result->micro).text,
           address.text[0] == '\0' ? "" : ", element [", address.text,
           address.text[0] == '\0' ? "" : "]", locate_values(result).text);
    if (!result->has_data) return;
    printf("  data     sample %u of the update is row %ju of the data set", result->element.sample,
           (uintmax_t)result->data_row[0]);
    if (result->data_row[0] != result->data_row[1])
        printf(", row %ju in the other", (uintmax_t)result->data_row[1]);
    printf("\n");
}

static void print_result(const struct bisecting *b, const struct locate_result *result) {
    const struct locate_text structure = locate_structure_words(&b->request, result);
    const int structural = locate_structure_first(&result->first);
    if (result->undecided != NULL) {
        printf("undecidable: %s\n", result->undecided);
    } else if (result->update == 0) {
        printf("equal: the roots of %ju updates, each of which covers all before it, but neither "
               "gradients nor logs\n",
               (uintmax_t)result->steps);
    } else {
        if (structural)
            printf("update %ju, structure: %s\n", (uintmax_t)result->update, structure.text);
        if (structural && result->value) printf("first value that differs: ");
        if (result->value) print_element(result);
        if (!structural && structure.text[0] != '\0') printf("  further  %s\n", structure.text);
        for (int list = LOOP_MICRO; list <= LOOP_UPDATE; list++)
            if (locate_loops_differ(&b->request, (enum loop_list)list))
                printf("  loop     %s\n",
                       locate_loop_words(&b->request, (enum loop_list)list).text);
        printf("  kind     %s\n", locate_signature_words(result).text);
        printf("  watched  %ju and %ju outputs of update %ju, twice\n",
               (uintmax_t)result->events[0], (uintmax_t)result->events[1],
               (uintmax_t)result->update);
    }
    print_way(b, result);
}

/* Prints a number with its bits in hex, so that two that print alike are told apart; ids and draws
 * are integers. */
static json_t *number_json(enum watch_kind kind, uint64_t bits) {
    if (kind != WATCH_REALS) return json_integer((json_int_t)bits);
    const double value = locate_value(kind, bits);
    return json_pack("{so ss}", "value", json_finite(value), "hex", number_hex_f64(value).text);
}

static json_t *element_json(const struct locate_result *result) {
    const struct locate_element *element = &result->element;
    const int tokens = result->view.axis < WATCH_SAMPLES;
    if (!result->value) return json_null();
    return json_pack(
        "{so so so so sI so so ss so sI sI so}", "address", json_text(locate_address(result).text),
        "sample", result->view.axis <= WATCH_SAMPLES ? json_integer(element->sample) : json_null(),
        "side", tokens ? json_integer(element->side) : json_null(), "position",
        element->positions > 0 ? json_integer(element->position) : json_null(), "column",
        (json_int_t)element->column, "a", number_json(result->view.kind, element->a), "b",
        number_json(result->view.kind, element->b), "dtype",
        result->view.kind == WATCH_REALS ? dtype_name(element->grid) : "integer", "ulp",
        element->ulp == INT64_MAX ? json_null() : json_integer((json_int_t)element->ulp),
        "differing", (json_int_t)element->differing, "elements", (json_int_t)element->elements,
        "ulp_most",
        element->ulp_most == INT64_MAX ? json_null() : json_integer((json_int_t)element->ulp_most));
}

static json_t *signature_json(const struct locate_result *result) {
    const struct signature *signature = &result->signature;
    if (signature->kind == SIGNATURE_NONE) return json_null();
    const int ratio =
        signature->kind == SIGNATURE_LR_RATIO || signature->kind == SIGNATURE_CONSTANT_RATIO;
    return json_pack(
        "{ss so so so so so ss?}", "name", signature_name(signature->kind), "ratio",
        ratio ? json_finite(signature->ratio) : json_null(), "lr_ratio",
        signature->kind == SIGNATURE_LR_RATIO ? json_finite(signature->lr_ratio) : json_null(),
        "by_lr",
        signature->kind == SIGNATURE_LR_RATIO ? json_boolean(signature->by_lr) : json_null(),
        "residual", json_finite(signature->residual), "threshold",
        json_finite(signature->threshold), "where", signature->where);
}

static json_t *place_json(const struct locate_result *result) {
    const struct locate_key *key = result->first.key;
    if (key == NULL) return json_null();
    return json_pack("{ss so so ss ss}", "phase", stage_name((uint32_t)key->stage), "micro_batch",
                     json_positive(result->micro), "layer",
                     key->layer == PASS_NO_LAYER ? json_null() : json_integer(key->layer), "op",
                     key->op.text, "tensor", key->tensor.text);
}

static enum status print_json(const struct bisecting *b, const struct locate_result *result) {
    const struct locate_text structure = locate_structure_words(&b->request, result);
    return json_print(json_pack(
        "{so so so so so so sb so sI sI so sI sI}", "equal",
        result->undecided != NULL ? json_null() : json_boolean(result->update == 0), "undecided",
        result->undecided == NULL ? json_null() : json_string(result->undecided), "update",
        json_positive(result->update), "place", place_json(result), "element", element_json(result),
        "structure", json_text(structure.text), "structure_first",
        locate_structure_first(&result->first), "signature", signature_json(result), "updates",
        (json_int_t)result->steps, "comparisons", (json_int_t)result->comparisons,
        "comparisons_bound",
        result->recorded ? json_integer(chain_comparisons(result->steps)) : json_null(),
        "trained_a", (json_int_t)result->trained[0], "trained_b", (json_int_t)result->trained[1]));
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    struct bisecting *b;
    struct locate_result result;
    TRY(arena_take(&cli->arena, 1, sizeof *b, "bisect", &b));
    *b = (struct bisecting){.cli = cli, .arena = &cli->arena};
    b->shown = progress_wanted(options) && isatty(STDERR_FILENO);
    b->request.interrupted = cli->interrupted;
    b->request.progress = show;
    b->request.context = b;
    enum status status = options->argument_count == 2 || is_trace(options->arguments[0])
                             ? ask_traces(b, options)
                             : ask_scenario(b, options);
    if (status == STATUS_OK) status = locate_first_difference(&b->request, &cli->arena, &result);
    if (b->drawn) progress_put("");
    for (int s = 0; s < 2 && status == STATUS_OK; s++)
        if (b->images[s] != NULL) status = trace_rows_status(b->images[s]);
    for (int s = 0; s < 2; s++)
        trace_close(b->images[s]);
    TRY(status);
    *out_exit = result.update == 0 ? EXIT_AS_EXPECTED : EXIT_DIFFERS;
    if (result.undecided != NULL) *out_exit = EXIT_UNTESTABLE;
    if (options->json) return print_json(b, &result);
    print_result(b, &result);
    return STATUS_OK;
}

static const struct argp_option option_rows[] = {
    {"steps", KEY_STEPS, "UPDATES", 0, "Look at so many updates; default all", 0},
    {"runs", KEY_RUNS, "A,B", 0,
     "Which runs of the traces; default the two arms of one trace, the baselines of two", 0},
    OPTION_SET,
    OPTIONS_MODULES,
    OPTION_JSON,
    OPTION_QUIET,
    OPTIONS_END};

const struct verb verb_bisect = {
    .name = "bisect",
    .brief = "find the first difference: update, op, tensor, element, ulp",
    .arguments = "SCENARIO|TRACE [TRACE]",
    .text = "Finds the first update in which two trainings differ, goes back to the state before "
            "it, and runs that one update again to find the first op, tensor and element that "
            "differ. The two are the arms of SCENARIO, the arms of a TRACE, or the baselines of "
            "two traces. Recorded roots are bisected, and stored states (run --checkpoint-every) "
            "save training up to there. Updates and micro-batches count from 1, everything else "
            "from 0. Exit status 0: all equal; 1: something differs; 3: there is no answer, "
            "because a run does not train alike twice or not as it was recorded. Data that are no "
            "longer those of a trace are an error (2) before anything is trained.\v"
            "Example: twinstep bisect lr-set-before-step",
    .options = option_rows,
    .least = 1,
    .most = 2,
    .trains = 1,
    .run = run,
};
