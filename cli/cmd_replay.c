/* SPDX-License-Identifier: Apache-2.0
 * twinstep replay: trains recorded runs once more, on this machine and with this build, and
 * compares them update by update. Numbers of items that a divisor of the loss may have counted are
 * named if a kind explains them. Invariant: a bound is never rounded down. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/certify_print.h"
#include "cli/ci.h"
#include "cli/consent.h"
#include "cli/foreign_print.h"
#include "cli/json.h"
#include "cli/verb.h"
#include "experiment/backend_record.h"
#include "experiment/replay.h"
#include "trainer/divisor.h"

enum { KEY_RUN = KEY_OWN, KEY_FROM, KEY_TO, KEY_DIVISOR, KEY_WITHOUT };

struct range {
    int stored;       /* --from was given */
    uint64_t from;    /* 0: from the start */
    uint64_t to;      /* 0: as far as it was recorded */
    uint64_t divisor; /* the update whose loss divisors are read back; 0: none are */
};

static enum status read_update(const struct options *options, int key, const char *name,
                               uint64_t least, uint64_t *out) {
    const char *text = options_value(options, key);
    *out = 0;
    if (text == NULL) return STATUS_OK;
    const size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 18 || text[digits] != '\0')
        FAIL(STATUS_INPUT, "replay: --%s: expected an update, got \"%s\"", name, text);
    for (size_t i = 0; i < digits; i++)
        *out = *out * 10 + (uint64_t)(text[i] - '0');
    if (*out < least)
        FAIL(STATUS_INPUT, "replay: --%s: expected an update >= %ju, got 0", name,
             (uintmax_t)least);
    return STATUS_OK;
}

static enum status read_range(const struct options *options, struct range *out) {
    out->stored = options_value(options, KEY_FROM) != NULL;
    TRY(read_update(options, KEY_FROM, "from", 0, &out->from));
    TRY(read_update(options, KEY_TO, "to", 1, &out->to));
    TRY(read_update(options, KEY_DIVISOR, "divisor", 1, &out->divisor));
    if (out->divisor != 0 && options_value(options, KEY_RUN) == NULL)
        FAIL(STATUS_INPUT, "replay: --divisor: expected --run RUN with it: it reads one run");
    return STATUS_OK;
}

static const char *items_of(const struct divisor_reading *reading) {
    return reading->task == TASK_SFT ? "label tokens" : "pairs";
}

static const struct divisor_kind *explanation(const struct divisor_reading *reading) {
    for (uint32_t k = 0; k < reading->kind_count; k++)
        if (reading->kinds[k].explains) return &reading->kinds[k];
    return NULL;
}

static void print_origin(const struct divisor_reading *reading, uint32_t micro, FILE *out) {
    const struct divisor_kind *kind = explanation(reading);
    const char *const items = items_of(reading);
    if (kind == NULL) {
        fprintf(out, " (it has %" PRIu64 " %s)\n", reading->items[micro], items);
        return;
    }
    switch (kind->kind) {
    case DIVISOR_MEAN_OF_MEANS:
        fprintf(out, " (its own %" PRIu64 " %s, times the number of micro-batches)\n",
                reading->items[micro], items);
        return;
    case DIVISOR_SUM_OF_MEANS:
        fprintf(out, " (its own %" PRIu64 " %s)\n", reading->items[micro], items);
        return;
    case DIVISOR_UPDATE_AND_MICROS:
        fprintf(out, " (all %s, times the number of micro-batches)\n", items);
        return;
    case DIVISOR_MEANS_OVER_SIZE:
        fprintf(out, " (its own %" PRIu64 " %s, times batch.micro)\n", reading->items[micro],
                items);
        return;
    case DIVISOR_MICROS_BY_TOKENS:
        fprintf(out, " (its own %" PRIu64 " %s, by its share of all tokens)\n",
                reading->items[micro], items);
        return;
    case DIVISOR_UPDATE_UNSHIFTED:
        fprintf(out, " (all %g %s, as counted before the shift)\n", kind->expected[micro], items);
        return;
    case DIVISOR_MEAN_OF_RANKS:
        fprintf(out, " (its rank's %g %s, times %" PRIu64 " ranks)\n",
                kind->expected[micro] / (double)kind->ranks, items, kind->ranks);
        return;
    case DIVISOR_UPDATE:
    default:
        fprintf(out, " (all %g %s)\n", kind->expected[micro], items);
    }
}

static void print_kind(const struct divisor_kind *kind, FILE *out) {
    fprintf(out, "%s", divisor_kind_name(kind->kind));
    if (kind->ranks > 0) fprintf(out, " of %" PRIu64, kind->ranks);
}

/* Prints the kinds that explain the divisors as they are (`as_is`), or up to a factor. */
static int print_kinds(const struct divisor_reading *reading, int as_is, FILE *out) {
    int printed = 0;
    for (uint32_t k = 0; k < reading->kind_count; k++) {
        const struct divisor_kind *kind = &reading->kinds[k];
        if (as_is ? !kind->explains : kind->explains || isnan(kind->factor)) continue;
        fprintf(out, printed++ == 0 ? "" : ", ");
        print_kind(kind, out);
        if (!as_is) fprintf(out, " times %.6g", kind->factor);
    }
    return printed;
}

static void print_verdict(const struct divisor_reading *reading, FILE *out) {
    const struct divisor_kind *const update = &reading->kinds[DIVISOR_UPDATE];
    if (!update->explains)
        fprintf(out, "  one divisor for the update would be %g\n",
                update->expected[reading->micros - 1]);
    fprintf(out, "  loss.divisor that explains it: ");
    if (print_kinds(reading, 1, out) > 0) {
        fprintf(out, "\n");
        return;
    }
    fprintf(out, "none; but for a factor: ");
    if (print_kinds(reading, 0, out) == 0) fprintf(out, "none");
    fprintf(out, "\n");
}

static void print_divisor(const char *run, const struct divisor_reading *reading, uint64_t update,
                          FILE *out) {
    if (reading->untestable != NULL) {
        fprintf(out, "%s: update %" PRIu64 ": divisors untestable: %s\n", run, update,
                reading->untestable);
        return;
    }
    fprintf(out, "%s: update %" PRIu64 ": by what losses were divided, read back:\n", run, update);
    for (uint32_t m = 0; m < reading->micros; m++) {
        fprintf(out, "  micro-batch %" PRIu32 ": divided by %.6g +- %.1e", m + 1,
                reading->divisor[m], 1.05 * reading->error[m]);
        print_origin(reading, m, out);
    }
    if (reading->clip != 1.0)
        fprintf(out, "  clipping scaled the gradient by %.6g (logged), which is taken out\n",
                reading->clip);
    print_verdict(reading, out);
    fprintf(out, "  %.1e of the gradient that the optimizer took in is none of theirs\n",
            reading->rest);
}

static json_t *kind_json(const struct divisor_reading *reading, const struct divisor_kind *kind) {
    json_t *expected = json_array();
    for (uint32_t m = 0; m < reading->micros; m++)
        json_array_append_new(expected, json_finite(kind->expected[m]));
    return json_pack("{ss sI so sb so}", "kind", divisor_kind_name(kind->kind), "ranks",
                     (json_int_t)kind->ranks, "expected", expected, "explains", kind->explains,
                     "factor", json_finite(kind->factor));
}

static json_t *divisor_json(const struct divisor_reading *reading, uint64_t update) {
    if (reading->untestable != NULL)
        return json_pack("{sI ss}", "update", (json_int_t)update, "untestable",
                         reading->untestable);
    json_t *micros = json_array(), *kinds = json_array();
    for (uint32_t m = 0; m < reading->micros; m++)
        json_array_append_new(micros,
                              json_pack("{sI so so}", "items", (json_int_t)reading->items[m],
                                        "divisor", json_finite(reading->divisor[m]), "error",
                                        json_finite(reading->error[m])));
    for (uint32_t k = 0; k < reading->kind_count; k++)
        json_array_append_new(kinds, kind_json(reading, &reading->kinds[k]));
    return json_pack("{sI sn so so so so}", "update", (json_int_t)update, "untestable",
                     "micro_batches", micros, "kinds", kinds, "clip", json_finite(reading->clip),
                     "rest", json_finite(reading->rest));
}

static enum status chosen_run(const struct trace_image *image, const char *path, const char *id,
                              const struct trace_run **out) {
    *out = trace_run_of(image, id);
    if (*out != NULL) return STATUS_OK;
    char names[512] = "";
    for (uint32_t i = 0; i < image->run_count; i++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i == 0 ? "" : ", ",
                 image->runs[i].plan.id);
    }
    FAIL(STATUS_INPUT, "%s: --run: expected one of %s, got \"%s\"", path, names, id);
}

static json_t *result_json(const char *run, const struct replay_result *result) {
    const int differs = result->first != 0;
    return json_pack("{ss sI sb sb sI so so so so}", "run", run, "after", (json_int_t)result->after,
                     "restored", result->restored, "equal", !differs, "compared",
                     (json_int_t)result->compared, "first",
                     differs ? json_integer((json_int_t)result->first) : json_null(), "column",
                     differs ? json_string(result->column) : json_null(), "recorded",
                     differs ? json_finite(result->recorded) : json_null(), "computed",
                     differs ? json_finite(result->computed) : json_null());
}

/* Prints what the replay started from, if --from asked for it. */
static void print_start(const char *run, const struct range *range,
                        const struct replay_result *result) {
    if (!range->stored) return;
    if (result->restored)
        printf("%s: from the stored state of update %ju\n", run, (uintmax_t)result->after);
    else
        printf(
            "%s: no stored state of update %ju or earlier (run --checkpoint-every): trained from "
            "the start\n",
            run, (uintmax_t)range->from);
}

static void print_result(const char *run, const struct replay_result *result) {
    if (result->first == 0) {
        printf("%s: %ju update%s replayed, bit-equal to the record\n", run,
               (uintmax_t)result->compared, result->compared == 1 ? "" : "s");
        return;
    }
    printf("%s: differs from the record at update %ju: %s", run, (uintmax_t)result->first,
           result->column);
    if (!isnan(result->recorded) || !isnan(result->computed))
        printf(", recorded %.17g, now %.17g", result->recorded, result->computed);
    printf("\n");
    if (result->scalars_only)
        printf("  the digests of the training agree: only what was measured of it differs\n");
}

static void show_one(const struct trace_run *run, const struct range *range,
                     const struct replay_result *result, const char *devices, json_t *list) {
    const char *const id = run->plan.id;
    if (list != NULL) {
        json_t *one = result_json(id, result);
        json_object_set_new(one, "devices_differ", json_string(devices));
        if (result->divisor != NULL)
            json_object_set_new(one, "divisor", divisor_json(result->divisor, range->divisor));
        json_array_append_new(list, one);
        return;
    }
    print_start(id, range, result);
    print_result(id, result);
    if (devices[0] != '\0') printf("  devices differ: %s\n", devices);
    if (result->divisor != NULL) print_divisor(id, result->divisor, range->divisor, stdout);
}

/* Adds a run's case. A result of NULL: it cannot be replayed, as status_text() says. */
static enum status add_case(struct cli *cli, const char *path, const struct trace_run *run,
                            const struct replay_result *result) {
    char *message;
    if (result == NULL)
        TRY(arena_format(&cli->arena, &message, "%s", status_text()));
    else
        TRY(arena_format(&cli->arena, &message, "%s of update %ju differs from the record",
                         result->first != 0 ? result->column : "nothing",
                         (uintmax_t)result->first));
    return ci_add(cli, &(struct ci_case){.name = run->plan.id,
                                         .outcome = result == NULL       ? EXIT_UNTESTABLE
                                                    : result->first != 0 ? EXIT_DIFFERS
                                                                         : EXIT_AS_EXPECTED,
                                         .title = "replay",
                                         .message = message,
                                         .file = path,
                                         .seconds = -1.0});
}

/* Shows a run that cannot be replayed; the reason is what status_text() says. */
static void show_untestable(const struct trace_run *run, json_t *list) {
    if (list == NULL)
        printf("not replayed: %s\n", status_text());
    else
        json_array_append_new(
            list, json_pack("{ss sn ss}", "run", run->plan.id, "equal", "reason", status_text()));
}

/* Says how the device of today differs from the one that the trace names; "" if it does not. */
static enum status compare_devices(struct cli *cli, const struct trace_image *image,
                                   const struct trace_run *run, struct arena *arena, char **out) {
    static const char *const names[2] = {"recorded", "now"};
    struct backend_seen seen[2] = {backends_of_run(image, run->plan.id), {NULL, 0, BACKENDS_OWN}};
    struct config config;
    TRY(config_read(cli->schema, "configuration", run->plan.configuration, arena, &config));
    if (seen[0].group != NULL && strcmp(seen[0].group, BACKENDS_OWN) != 0)
        TRY(backends_of_config(&config, arena, &seen[1]));
    return backends_difference(seen, names, arena, out);
}

/* The runs of an imported log have no configuration and cannot be trained again. */
static int is_replayable(const struct trace_run *run) {
    return run->updates > 0 && run->plan.configuration != NULL &&
           run->plan.configuration[0] != '\0';
}

/* Data sets that are known to be those of the record; of more, each is read for its run. */
#define DATA_KNOWN 16

/* Holds the data of all runs that will be replayed against the record, before any of them is
 * trained: what differs from it then is no matter of the training. Hybrids read what their arms do,
 * so it is read once. */
static enum status check_data(const struct replay_request *request, const struct trace_run *only,
                              struct arena *arena) {
    const struct trace_image *const image = request->image;
    struct dataset_options known[DATA_KNOWN];
    const char *digests[DATA_KNOWN];
    uint32_t count = 0;
    for (uint32_t i = 0; i < image->run_count; i++) {
        const struct trace_run *const run = &image->runs[i];
        const char *const digest = trace_attribute_of(image, "data", run->plan.id);
        struct config *config;
        uint32_t k = 0;
        if ((only != NULL && run != only) || !is_replayable(run) || digest == NULL) continue;
        TRY(arena_take(arena, 1, sizeof *config, "configuration", &config));
        TRY(config_read(request->schema, "configuration", run->plan.configuration, arena, config));
        const struct dataset_options options = run_dataset_options(config);
        while (k < count &&
               !(dataset_options_equal(&known[k], &options) && strcmp(digests[k], digest) == 0))
            k++;
        if (k < count) continue;
        TRY(replay_check_data(image, request->path, run, config));
        if (count == DATA_KNOWN) continue;
        known[count] = options;
        digests[count++] = digest;
    }
    return STATUS_OK;
}

static enum status replay_all(struct cli *cli, const struct options *options,
                              const struct trace_image *image, int *out_exit) {
    const char *path = options->arguments[0];
    const char *id = options_value(options, KEY_RUN);
    const struct trace_run *only = NULL;
    struct range range;
    uint32_t replayed = 0;
    TRY(read_range(options, &range));
    TRY(foreign_refuse(image, path,
                       "no configuration of ours can train it again; twinstep certify A B holds it "
                       "against another recording, and twinstep ablate starts the command that "
                       "trained it again"));
    struct replay_request request = {.image = image,
                                     .schema = cli->schema,
                                     .path = path,
                                     .to = range.to,
                                     .stored = range.stored,
                                     .from = range.from,
                                     .divisor = range.divisor,
                                     .without_fault = options_given(options, KEY_WITHOUT),
                                     .interrupted = cli->interrupted};
    if (id != NULL) TRY(chosen_run(image, path, id, &only));
    for (uint32_t i = 0; i < image->run_count; i++)
        if ((only == NULL || only == &image->runs[i]) && is_replayable(&image->runs[i]))
            TRY(certify_refuse(image, path, &image->runs[i]));
    TRY(check_data(&request, only, &cli->arena));
    json_t *list = options->json ? json_array() : NULL;
    *out_exit = EXIT_AS_EXPECTED;
    for (uint32_t i = 0; i < image->run_count; i++) {
        const struct trace_run *here = &image->runs[i];
        struct replay_result result;
        struct arena arena = ARENA_EMPTY;
        if ((only != NULL && here != only) || !is_replayable(here)) continue;
        char *devices;
        request.run = here;
        enum status status = replay_run(&request, &arena, &result);
        if (status == STATUS_OK) status = compare_devices(cli, image, here, &arena, &devices);
        if (status == STATUS_OK) show_one(here, &range, &result, devices, list);
        arena_close(&arena);
        const int untestable = status == STATUS_UNTESTABLE && only == NULL;
        if (status != STATUS_OK && !untestable) {
            json_decref(list);
            /* an error of the file itself names it already */
            const int named = strncmp(status_text(), path, strlen(path)) == 0;
            return named ? status : status_prefix(status, "%s", path);
        }
        replayed++;
        TRY(add_case(cli, path, here, untestable ? NULL : &result));
        if (untestable) show_untestable(here, list);
        if (untestable || result.first != 0)
            *out_exit = exit_worst(*out_exit, untestable ? EXIT_UNTESTABLE : EXIT_DIFFERS);
    }
    if (list != NULL && replayed > 0) return json_print(list);
    json_decref(list);
    if (replayed == 0)
        FAIL(STATUS_INPUT,
             "%s: holds no run with a configuration: only traces of twinstep run can "
             "be replayed",
             path);
    return STATUS_OK;
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    struct trace_image *image;
    struct range range;
    TRY(read_range(options, &range)); /* before anything is read */
    TRY(trace_open_long(options->arguments[0], &cli->arena, &image));
    const enum status status = replay_all(cli, options, image, out_exit);
    trace_close(image);
    return status;
}

static const struct argp_option option_rows[] = {
    {"run", KEY_RUN, "RUN", 0, "Only this run (baseline, test, ...); default all", 0},
    {"from", KEY_FROM, "UPDATE", 0,
     "Go on from the last stored state not after this update (0: the one before the first)", 0},
    {"to", KEY_TO, "UPDATE", 0, "Stop after this update; default as far as it was recorded", 0},
    {"divisor", KEY_DIVISOR, "UPDATE", 0,
     "With --run: read back by what this update divided the loss of each micro-batch, and stop", 0},
    {"without-fault", KEY_WITHOUT, 0, 0,
     "Train without the bit flip of section fault: says from which update on the record shows it",
     0},
    OPTIONS_MODULES,
    OPTIONS_CI,
    OPTION_JSON,
    OPTIONS_END};

const struct verb verb_replay = {
    .name = "replay",
    .brief = "train recorded runs once more and compare with the record",
    .arguments = "TRACE",
    .text =
        "Trains the runs of TRACE again from the configurations that it holds, with this build on "
        "this machine, and compares digests, losses, norms and learning rates of every update, bit "
        "by bit. Exit status 0: all equal; 1: something differs; 3: a run raced, which no replay "
        "can repeat. Data files and modules are looked for where they were, and data that are no "
        "longer those of the record are an error (status 2) before anything is trained. With "
        "--from a run goes on from a state that run --checkpoint-every stored; without one that "
        "early it is trained from the start. With --without-fault the bit flip that the record was "
        "made with (section fault) is left out, as on a healthy machine. With --divisor it says by "
        "what one update divided its micro-batches: what the optimizer took in, against the "
        "gradient of each micro-batch's plain sum.\v"
        "Example: twinstep replay lr-set-before-step.h5 --run baseline --from 3\n"
        "         twinstep replay grad-accum-mean-of-means.h5 --run test --divisor 2",
    .options = option_rows,
    .least = 1,
    .most = 1,
    .trains = 1,
    .run = run,
};
