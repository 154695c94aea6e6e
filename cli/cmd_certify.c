/* SPDX-License-Identifier: Apache-2.0
 * twinstep certify: checks the chain of roots of a recorded run, holds it against a pinned root, or
 * finds the first update at which two runs part. It trains nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/ci.h"
#include "cli/certify_print.h"
#include "cli/certify_weights.h"
#include "cli/json.h"
#include "cli/plain_text.h"
#include "cli/verb.h"
#include "determinism/chain.h"
#include "determinism/comparable.h"
#include "evidence/backend_seen.h"

enum {
    KEY_RUN = KEY_OWN,
    KEY_RUN_A,
    KEY_RUN_B,
    KEY_EXPECT,
    KEY_AT,
    KEY_EQUAL,
    KEY_DIFFERS,
    KEY_WEIGHTS,
    KEY_SKIP_STATES,
    KEY_COMMON
};

/* ---- one side ---- */

static enum status choose_run(const struct trace_image *image, const char *path, const char *id,
                              struct arena *arena, const struct trace_run **out) {
    char *names;
    TRY(arena_format(arena, &names, "%s", ""));
    for (uint32_t i = 0; i < image->run_count; i++) {
        const struct trace_run_plan *plan = &image->runs[i].plan;
        *out = &image->runs[i];
        if (id != NULL ? strcmp(plan->id, id) == 0 : plan->replicate == 0 && plan->mask == 0)
            return STATUS_OK;
        TRY(arena_format(arena, &names, "%s%s%s", names, i == 0 ? "" : ", ", plan->id));
    }
    if (image->run_count == 0)
        FAIL(STATUS_INPUT,
             "%s: expected a trace of twinstep run, got one without runs, which has no "
             "roots",
             path);
    FAIL(STATUS_INPUT, "%s: --run: expected one of %s, got \"%s\"", path, names,
         id == NULL ? "" : id);
}

static void text_digest(const char *text, char out_hex[DIGEST_HEX]) {
    struct digest digest;
    digest_sha256(text, strlen(text), &digest);
    digest_hex(&digest, out_hex);
}

/* Returns whether the texts of both arms no longer give the digest that `run` wrote beside them:
 * then one of the three was changed afterwards. */
static int is_altered(const struct trace_image *image) {
    static const char *const arms[2] = {"baseline", "test"};
    const char *recorded = trace_attribute_of(image, "", "configuration_digest");
    struct digest parts[2], both;
    char hex[DIGEST_HEX];
    if (recorded == NULL) return 0;
    for (int arm = 0; arm < 2; arm++) {
        const char *id = trace_attribute_of(image, "", arms[arm]);
        const struct trace_run *run = id == NULL ? NULL : trace_run_of(image, id);
        if (run == NULL) return 0;
        digest_sha256(run->plan.configuration, strlen(run->plan.configuration), &parts[arm]);
    }
    digest_root("configuration", parts, COUNT_OF(parts), &both);
    digest_hex(&both, hex);
    return strcmp(hex, recorded) != 0;
}

static enum status open_side(struct cli *cli, const char *path, const char *id,
                             struct certify_side *out) {
    struct trace_image *image;
    char *device;
    memset(out, 0, sizeof *out);
    TRY(trace_open_long_damaged(path, &cli->arena, &image));
    out->image = image;
    TRY(choose_run(image, path, id, &cli->arena, &out->run));
    out->path = path;
    certify_run(image, out->run, &out->certificate);
    TRY(trace_rows_status(image)); /* a row that cannot be read breaks no chain */
    text_digest(out->run->plan.configuration, out->configuration);
    const char *scenario = trace_attribute_of(image, "", "scenario");
    const char *overrides = trace_attribute_of(image, "", "overrides");
    if (scenario != NULL) text_digest(scenario, out->scenario);
    out->overrides = overrides == NULL ? "" : overrides;
    out->altered = is_altered(image);
    const struct backend_seen seen = backends_of_run(image, out->run->plan.id);
    TRY(backends_line(&seen, &cli->arena, &device));
    out->device = device;
    return STATUS_OK;
}

/* Stored states are the larger part of a trace that has any, so where roots alone are asked for
 * they are not read. */
static enum status check_states(struct certify_side *side) {
    side->states_read = 1;
    return trace_check_states(side->image, side->run, &side->states);
}

/* Says what does not hold; nothing where all does. */
static enum status state_words(const struct certify_side *side, struct arena *arena, char **out) {
    const struct certificate *certificate = &side->certificate;
    if (certificate->state == CERTIFY_BROKEN)
        return arena_format(
            arena, out, "the chain is broken at update %" PRIu64 ": %s was changed: %s",
            certificate->broken, certificate->column[0] == '\0' ? "a column" : certificate->column,
            certificate->why);
    if (side->altered)
        return arena_format(arena, out, "the arms' texts do not give configuration_digest");
    char damage[CERTIFY_STATES_ROOM];
    certify_states_words(side, damage);
    if (damage[0] != '\0') return arena_format(arena, out, "%s", damage);
    return arena_format(arena, out, "%s",
                        certificate->state == CERTIFY_UNTESTABLE ? certificate->why : "");
}

static enum status complain(struct cli *cli, const struct certify_side *side) {
    char *words;
    TRY(state_words(side, &cli->arena, &words));
    fprintf(stderr, "twinstep: %s: run %s: %s\n", side->path, side->run->plan.id, words);
    return STATUS_OK;
}

/* ---- CI ---- */

static enum status add_case(struct cli *cli, const struct certify_side *side, int outcome,
                            const char *title, const char *message) {
    char *name;
    TRY(arena_format(&cli->arena, &name, "%s, run %s", side->path, side->run->plan.id));
    return ci_add(cli, &(struct ci_case){.name = name,
                                         .outcome = outcome,
                                         .title = title,
                                         .message = message,
                                         .file = side->path,
                                         .seconds = -1.0});
}

static enum status add_side(struct cli *cli, const struct certify_side *side) {
    char *words;
    TRY(state_words(side, &cli->arena, &words));
    return add_case(cli, side, certify_exit(side), "the record does not hold", words);
}

/* ---- numbers of options ---- */

static enum status read_update(const char **text, const char *name, uint64_t *out) {
    const size_t digits = strspn(*text, "0123456789");
    if (digits == 0 || digits > 18)
        FAIL(STATUS_INPUT, "certify: --%s: expected an update, got \"%s\"", name, *text);
    *out = 0;
    for (size_t i = 0; i < digits; i++)
        *out = *out * 10 + (uint64_t)((*text)[i] - '0');
    *text += digits;
    return STATUS_OK;
}

static enum status option_update(const struct options *options, int key, const char *name,
                                 uint64_t otherwise, uint64_t *out) {
    const char *text = options_value(options, key);
    *out = otherwise;
    if (text == NULL) return STATUS_OK;
    const char *end = text;
    TRY(read_update(&end, name, out));
    if (*end != '\0')
        FAIL(STATUS_INPUT, "certify: --%s: expected an update, got \"%s\"", name, text);
    return STATUS_OK;
}

static enum status root_of(const struct certify_side *side, const char *name, uint64_t update,
                           char out_hex[DIGEST_HEX]) {
    const uint8_t *root = certify_root(side, update);
    if (root == NULL)
        FAIL(STATUS_INPUT,
             "%s: run %s: --%s: expected an update from %" PRIu64 " to %" PRIu64 ", got %" PRIu64,
             side->path, side->run->plan.id, name, side->certificate.first,
             side->certificate.first + side->certificate.updates - 1, update);
    certify_hex(root, out_hex);
    return STATUS_OK;
}

/* ---- roots at updates ---- */

/* Nothing is printed before all updates have been read: a mistake in the last one is told first. */
static enum status print_at(const struct certify_side *side, const char *text, int as_json) {
    json_t *const list = json_array(), *one;
    enum status status = STATUS_OK;
    size_t i;
    for (const char *at = text; status == STATUS_OK;) {
        char hex[DIGEST_HEX];
        uint64_t update;
        status = read_update(&at, "at", &update);
        if (status == STATUS_OK) status = root_of(side, "at", update, hex);
        if (status != STATUS_OK) break;
        json_array_append_new(list,
                              json_pack("{sI ss}", "update", (json_int_t)update, "root", hex));
        if (*at == '\0') break;
        if (*at++ != ',')
            status = status_fail(STATUS_INPUT,
                                 "certify: --at: expected updates with commas, got \"%s\"", text);
    }
    if (as_json && status == STATUS_OK) return json_print(list);
    json_array_foreach(list, i, one) {
        if (status != STATUS_OK) break;
        printf("%" JSON_INTEGER_FORMAT " %s\n", json_integer_value(json_object_get(one, "update")),
               json_string_value(json_object_get(one, "root")));
    }
    json_decref(list);
    return status;
}

/* Two parties who cannot show each other their traces bisect by hand: they know that the roots of
 * update `equal` are equal and those of `differs` are not. Prints which root they compare next. */
static enum status print_next(const struct certify_side *side, const struct options *options) {
    const uint64_t last = side->certificate.first + side->certificate.updates - 1;
    const int known = options_given(options, KEY_DIFFERS);
    uint64_t equal, differs;
    char hex[DIGEST_HEX];
    TRY(option_update(options, KEY_EQUAL, "equal", 0, &equal));
    TRY(option_update(options, KEY_DIFFERS, "differs", last + 1, &differs));
    if (equal >= differs)
        FAIL(STATUS_INPUT,
             "certify: expected --equal before --differs, got %" PRIu64 " and %" PRIu64, equal,
             differs);
    if (equal > last || (known && differs > last))
        FAIL(STATUS_INPUT, "certify: --%s: expected an update up to %" PRIu64 ", got %" PRIu64,
             equal > last ? "equal" : "differs", last, equal > last ? equal : differs);
    /* As long as nobody has said that the runs differ, the last roots are compared first: if they
     * are equal, nothing is to be bisected. */
    uint64_t next = !known ? (equal < last ? last : 0) : chain_next(equal, differs);

    if (next != 0) TRY(root_of(side, "equal", next, hex));
    if (options->json)
        return json_print(
            json_pack("{so so so}", "next", json_positive(next), "root",
                      next == 0 ? json_null() : json_string(hex), "first",
                      next == 0 && known ? json_integer((json_int_t)differs) : json_null()));
    if (next != 0)
        printf("compare update %" PRIu64 ": %s\n", next, hex);
    else if (known)
        printf("update %" PRIu64 " is the first that differs\n", differs);
    else
        printf("equal through update %" PRIu64 ", the last one\n", last);
    return STATUS_OK;
}

/* ---- pin ---- */

static enum status check_pin(const char *expected) {
    if (strlen(expected) != DIGEST_HEX - 1 ||
        strspn(expected, "0123456789abcdefABCDEF") != DIGEST_HEX - 1)
        FAIL(STATUS_INPUT, "certify: --expect: expected 64 hexadecimal digits, got \"%s\"",
             expected);
    return STATUS_OK;
}

static int same_hex(const char *a, const char *b) {
    for (; *a != '\0' && *b != '\0'; a++, b++) {
        const int x = *a >= 'A' && *a <= 'F' ? *a - 'A' + 'a' : *a;
        const int y = *b >= 'A' && *b <= 'F' ? *b - 'A' + 'a' : *b;
        if (x != y) return 0;
    }
    return *a == *b;
}

/* A root that equals the pinned one proves nothing if the chain below it is broken, so the chain is
 * judged first. */
static enum status print_pin(struct cli *cli, const struct certify_side *side, const char *expected,
                             int as_json, int *out_exit) {
    char hex[DIGEST_HEX], *words;
    digest_hex(&side->certificate.root, hex);
    const int met = side->certificate.updates > 0 && same_hex(hex, expected);
    const uint64_t last =
        side->certificate.updates > 0 ? side->certificate.first + side->certificate.updates - 1 : 0;
    *out_exit = exit_worst(certify_exit(side), met ? EXIT_AS_EXPECTED : EXIT_DIFFERS);
    TRY(arena_format(&cli->arena, &words, "expected root %s, got %s after update %" PRIu64,
                     expected, side->certificate.updates > 0 ? hex : "none", last));
    if (certify_exit(side) == EXIT_AS_EXPECTED)
        TRY(add_case(cli, side, *out_exit, "another root", words));
    else
        TRY(add_side(cli, side));
    if (as_json) {
        json_t *object = certify_json(side);
        json_object_set_new(object, "expected", json_string(expected));
        json_object_set_new(object, "met", json_boolean(met));
        return json_print(object);
    }
    if (certify_exit(side) != EXIT_AS_EXPECTED) TRY(complain(cli, side));
    plain_text_put(side->path, stdout);
    if (met)
        printf(": run %s: root as expected after update %" PRIu64 "\n", side->run->plan.id, last);
    else
        printf(": run %s: %s\n", side->run->plan.id, words);
    return STATUS_OK;
}

/* ---- two traces ---- */

static enum status equal_at(void *context, uint64_t update, int *out_equal) {
    const struct certify_side *sides = (const struct certify_side *)context;
    *out_equal =
        memcmp(certify_root(&sides[0], update), certify_root(&sides[1], update), DIGEST_BYTES) == 0;
    return STATUS_OK;
}

static enum status compare(struct certify_side sides[2], struct arena *arena,
                           struct certify_pair *out) {
    static const char *const names[2] = {"A", "B"}, *const in_sides[2] = {"in A", "in B"};
    char *words, *devices;
    const struct backend_seen seen[2] = {backends_of_run(sides[0].image, sides[0].run->plan.id),
                                         backends_of_run(sides[1].image, sides[1].run->plan.id)};
    memset(out, 0, sizeof *out);
    TRY(backends_difference(seen, in_sides, arena, &devices));
    out->devices = devices;
    uint64_t roots;
    TRY(runs_comparable(sides[0].run, sides[1].run, &roots));
    if (roots == 0 && sides[0].run->updates > 0 && sides[1].run->updates > 0)
        FAIL(STATUS_INPUT, "certify: one is a run of twinstep and the other of another program: "
                           "their roots are made of other parts (twinstep compare holds the "
                           "columns against each other)");
    const uint64_t a = sides[0].run->updates, b = sides[1].run->updates;
    out->updates = a < b ? a : b;
    out->rng_words = "";
    out->ended = "";
    const uint64_t apart = runs_first_apart(sides[0].run, sides[1].run, &out->gap);
    if (out->gap.updates > 0) { /* their roots do not say: each row is looked at */
        out->first = apart;
        out->comparisons = (uint32_t)(apart > 0 ? apart : out->updates);
    } else {
        TRY(chain_first_difference(equal_at, sides, out->updates, &out->first, &out->comparisons));
    }
    if (out->first == 0 && a != b) {
        TRY(arena_format(arena, &words, "%c ends at update %" PRIu64 " and %c goes on to %" PRIu64,
                         a < b ? 'A' : 'B', out->updates, a < b ? 'B' : 'A', a < b ? b : a));
        out->ended = words;
    }
    if (out->first == 0) return STATUS_OK;
    first_find(&sides[0].run->plan, trace_row(sides[0].run, out->first - 1), &sides[1].run->plan,
               trace_row(sides[1].run, out->first - 1), &out->where);
    ledger_compare(sides[0].run, sides[1].run, &out->rng);
    TRY(ledger_words(&out->rng, names, arena, &words));
    out->rng_words = words;
    return STATUS_OK;
}

/* Of two runs of which one ended early no more is known than that they are equal so far, unless the
 * caller asks for the updates that both have. */
static int pair_exit(const struct certify_pair *pair) {
    if (pair->first > 0) return EXIT_DIFFERS;
    return pair->ended[0] != '\0' && !pair->common ? EXIT_UNTESTABLE : EXIT_AS_EXPECTED;
}

static enum status add_pair(struct cli *cli, const struct certify_side sides[2],
                            const struct certify_pair *pair) {
    char *name, *words = NULL;
    TRY(arena_format(&cli->arena, &name, "%s, run %s, against %s, run %s", sides[0].path,
                     sides[0].run->plan.id, sides[1].path, sides[1].run->plan.id));
    if (pair_exit(pair) == EXIT_UNTESTABLE)
        TRY(arena_format(&cli->arena, &words, "equal through update %" PRIu64 ", but %s",
                         pair->updates, pair->ended));
    else if (pair->first > 0)
        TRY(arena_format(&cli->arena, &words, "differs from update %" PRIu64 " on%s%s%s%s",
                         pair->first, pair->where.phase[0] == '\0' ? "" : ", first in ",
                         pair->where.phase, pair->where.tensor[0] == '\0' ? "" : ", ",
                         pair->where.tensor));
    return ci_add(cli, &(struct ci_case){.name = name,
                                         .outcome = pair_exit(pair),
                                         .title = "the runs part",
                                         .message = words,
                                         .file = sides[1].path,
                                         .seconds = -1.0});
}

static enum status run_pair(struct cli *cli, const struct options *options,
                            struct certify_side sides[2], int *out_exit) {
    struct certify_pair pair;
    for (int s = 0; s < 2; s++) {
        const char *id = options_value(options, s == 0 ? KEY_RUN_A : KEY_RUN_B);
        if (id == NULL) id = options_value(options, KEY_RUN);
        TRY(open_side(cli, options->arguments[s], id, &sides[s]));
        if (sides[s].certificate.first > 1)
            FAIL(STATUS_INPUT, "%s: run %s begins at update %" PRIu64 ": expected a run from 1 on",
                 sides[s].path, sides[s].run->plan.id, sides[s].certificate.first);
    }
    *out_exit = exit_worst(certify_exit(&sides[0]), certify_exit(&sides[1]));
    if (*out_exit != EXIT_AS_EXPECTED) {
        for (int s = 0; s < 2; s++) {
            TRY(add_side(cli, &sides[s]));
            if (certify_exit(&sides[s]) != EXIT_AS_EXPECTED) TRY(complain(cli, &sides[s]));
        }
        if (options->json)
            return json_print(
                json_pack("{so so}", "a", certify_json(&sides[0]), "b", certify_json(&sides[1])));
        printf("not compared: a chain that does not hold says nothing of its run\n");
        return STATUS_OK;
    }
    TRY(compare(sides, &cli->arena, &pair));
    pair.common = options_given(options, KEY_COMMON);
    *out_exit = pair_exit(&pair);
    TRY(add_pair(cli, sides, &pair));
    if (options->json) return json_print(certify_pair_json(sides, &pair));
    certify_print_pair(sides, &pair);
    return STATUS_OK;
}

/* ---- weights of a folder ---- */

/* Digests of tensors that equal those of a record which was changed say nothing of the run, so
 * equal weights do not make up for a chain that does not hold. */
static enum status run_weights(struct cli *cli, const struct certify_side *side,
                               const struct options *options, int *out_exit) {
    const int chain = certify_exit(side);
    int held;
    char *words;
    TRY(certify_weights(side, options_value(options, KEY_AT), options_value(options, KEY_WEIGHTS),
                        options->json, &cli->arena, &words, &held));
    *out_exit = exit_worst(chain, held);
    if (chain != EXIT_AS_EXPECTED) TRY(add_side(cli, side));
    return add_case(cli, side, held, "other weights", words);
}

/* ---- the verb ---- */

static enum status certify(struct cli *cli, const struct options *options,
                           struct certify_side sides[2], int *out_exit) {
    const char *at = options_value(options, KEY_AT);
    const char *expected = options_value(options, KEY_EXPECT);
    const int asks = options_given(options, KEY_EQUAL) || options_given(options, KEY_DIFFERS);
    struct certify_side *const side = &sides[0];
    if (options_given(options, KEY_COMMON) && options->argument_count != 2)
        FAIL(STATUS_INPUT, "certify: --common: expected two traces");
    if (asks + (at != NULL) + (expected != NULL) + (options->argument_count == 2) > 1)
        FAIL(STATUS_INPUT, "certify: expected one of: two traces, --expect, --at, --equal with "
                           "--differs");
    const char *weights = options_value(options, KEY_WEIGHTS);
    if (weights != NULL && at == NULL)
        FAIL(STATUS_INPUT,
             "certify: --weights: expected --at K with it: the update after which the "
             "run had these weights");
    if (options->argument_count == 2) return run_pair(cli, options, sides, out_exit);
    if (expected != NULL) TRY(check_pin(expected));
    TRY(open_side(cli, options->arguments[0], options_value(options, KEY_RUN), side));
    if (at == NULL && !asks && !options_given(options, KEY_SKIP_STATES)) TRY(check_states(side));
    *out_exit = certify_exit(side);
    if (expected != NULL) return print_pin(cli, side, expected, options->json, out_exit);
    if (at != NULL || asks) {
        if (*out_exit != EXIT_AS_EXPECTED) TRY(complain(cli, side));
        if (weights != NULL) return run_weights(cli, side, options, out_exit);
        TRY(add_side(cli, side));
        return at != NULL ? print_at(side, at, options->json) : print_next(side, options);
    }
    TRY(add_side(cli, side));
    if (options->json) return json_print(certify_json(side));
    certify_print(side);
    return STATUS_OK;
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    struct certify_side sides[2];
    memset(sides, 0, sizeof sides);
    enum status status = certify(cli, options, sides, out_exit);
    for (int s = 0; s < 2; s++) {
        if (sides[s].image == NULL) continue;
        if (status == STATUS_OK) status = trace_rows_status(sides[s].image);
        trace_close(sides[s].image);
    }
    return status;
}

static const struct argp_option option_rows[] = {
    OPTION("run", KEY_RUN, "RUN", "Which run; default the first arm"),
    OPTION("run-a", KEY_RUN_A, "RUN", "Which run of trace A (before --run)"),
    OPTION("run-b", KEY_RUN_B, "RUN", "Which run of trace B (before --run)"),
    OPTION("expect", KEY_EXPECT, "HEX", "Exit status 1 unless this is the last root"),
    OPTION("at", KEY_AT, "K[,K...]", "Print the roots after these updates only"),
    OPTION("weights", KEY_WEIGHTS, "FOLDER",
           "With --at K: hold the weights in this folder or file against those that the run had "
           "after update K, by digests that are computed anew"),
    OPTION("equal", KEY_EQUAL, "K",
           "Say which update to compare next when the roots after update K are equal (0: the "
           "common start)"),
    OPTION("differs", KEY_DIFFERS, "K", "... and those after update K are not"),
    OPTION("common", KEY_COMMON, NULL,
           "Of two traces judge the updates that both have; without it a run that ends while the "
           "other one goes on is not equal to it (exit status 3)"),
    OPTION("skip-states", KEY_SKIP_STATES, NULL,
           "Do not read the run's stored states, most of a large trace, which are else held "
           "against their digests"),
    OPTIONS_CI,
    OPTION_JSON,
    OPTIONS_END};

const struct verb verb_certify = {
    .name = "certify",
    .brief = "check a run's chain of roots, pin it, find where two part",
    .arguments = "TRACE [TRACE-B]",
    .text =
        "Every update of a recorded run has a root: 32 bytes over the root before it, the batch, "
        "the random draws, weights with optimizer state, the learning rate and the loss. "
        "Recomputes the chain from the recorded columns and prints the last root; of a chain that "
        "does not hold, the update and the column that was changed. Stored states of the run are "
        "held against their digests, of one trace, without --at and --equal. A test can keep this "
        "root instead of a curve (--expect). Two traces, or two people with one trace each "
        "(--equal, --differs), find their first differing update in log2 of the updates "
        "comparisons.\v"
        "Exit status: 0 sound, equal or as expected; 1 changed, different or another root; 2 "
        "error; 3 nothing to check, or a run ended early.\n"
        "Example: twinstep certify out.h5 --expect $(cat root.txt)",
    .options = option_rows,
    .least = 1,
    .most = 2,
    .run = run,
};
