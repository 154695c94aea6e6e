/* SPDX-License-Identifier: Apache-2.0
 * Prints certificates of runs and comparisons of two of them, as text and as JSON. It checks
 * nothing: all findings come from cmd_certify.c. */
#include "cli/certify_print.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/json.h"
#include "cli/plain_text.h"
#include "cli/verb.h"
#include "determinism/chain.h"
#include "evidence/backend_seen.h"
#include "evidence/rng_json.h"

const uint8_t *certify_root(const struct certify_side *side, uint64_t update) {
    const struct trace_run *run = side->run;
    if (run->updates == 0 || update < trace_row(run, 0)->step) return NULL;
    const uint64_t index = update - trace_row(run, 0)->step;
    if (index >= run->updates || trace_row(run, index)->step != update) return NULL;
    return trace_row(run, index)->digests[DIGEST_ROOT];
}

void certify_hex(const uint8_t *root, char out_text[DIGEST_HEX]) {
    struct digest digest;
    memcpy(digest.byte, root, DIGEST_BYTES);
    digest_hex(&digest, out_text);
}

enum status certify_refuse(const struct trace_image *image, const char *path,
                           const struct trace_run *run) {
    struct certificate certificate;
    certify_run(image, run, &certificate);
    TRY(trace_rows_status(image));
    if (certificate.state != CERTIFY_BROKEN) return STATUS_OK;
    FAIL(
        STATUS_INPUT,
        "%s: run %s: the chain is broken at update %" PRIu64
        ": %s was changed after it was recorded, and nothing is trained after it (twinstep certify "
        "says more)",
        path, run->plan.id, certificate.broken,
        certificate.column[0] == '\0' ? "a column" : certificate.column);
}

static uint64_t states_named(const struct certify_side *side) {
    const uint64_t damaged = side->states.damaged;
    return damaged < TRACE_STATES_NAMED ? damaged : TRACE_STATES_NAMED;
}

static uint64_t damaged_step(const struct certify_side *side, uint64_t i) {
    return side->run->snapshot_steps[side->states.index[i]];
}

static TWINSTEP_PRINTF(2, 3) void add_words(char text[CERTIFY_STATES_ROOM], const char *format,
                                            ...) {
    const size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + length, CERTIFY_STATES_ROOM - length, format, arguments);
    va_end(arguments);
}

void certify_states_words(const struct certify_side *side, char out_text[CERTIFY_STATES_ROOM]) {
    const uint64_t damaged = side->states.damaged, named = states_named(side);
    out_text[0] = '\0';
    if (damaged == 0) return;
    if (damaged == 1)
        add_words(out_text, "the stored state of update ");
    else
        add_words(out_text,
                  "%" PRIu64 " of %" PRIu64 " stored states do not match their digests: "
                  "those of updates ",
                  damaged, side->run->snapshots);
    for (uint64_t i = 0; i < named; i++)
        add_words(out_text, "%s%" PRIu64, i == 0 ? "" : ", ", damaged_step(side, i));
    if (damaged == 1) add_words(out_text, " does not match its digest");
    if (damaged > named) add_words(out_text, " and %" PRIu64 " later ones", damaged - named);
}

int certify_exit(const struct certify_side *side) {
    if (side->certificate.state == CERTIFY_BROKEN || side->altered || side->states.damaged > 0)
        return EXIT_DIFFERS;
    return side->certificate.state == CERTIFY_UNTESTABLE ? EXIT_UNTESTABLE : EXIT_AS_EXPECTED;
}

static void print_chain(const struct certificate *certificate, int derived) {
    if (certificate->state == CERTIFY_UNTESTABLE)
        printf("untestable: %s\n", certificate->why);
    else if (derived)
        printf("made on reading, of %" PRIu64 " rows: a root kept elsewhere shows a change, the "
               "file alone does not\n",
               certificate->checked);
    else if (certificate->state == CERTIFY_SOUND)
        printf("sound: %" PRIu64 " root%s recomputed from the columns%s\n", certificate->checked,
               certificate->checked == 1 ? "" : "s",
               certificate->start_known ? "" : "; that of the first update needs another run");
    else
        printf("BROKEN at update %" PRIu64 ": %s%s: %s\n", certificate->broken,
               certificate->column[0] == '\0' ? "a column" : certificate->column, " was changed",
               certificate->why);
}

/* A file that does not agree with its seals was refused before. */
static void print_seal(enum trace_seal seal) {
    static const char *const words[] = {
        [TRACE_SEAL_NONE] = "none: names, texts and results carry no digest",
        [TRACE_SEAL_BEGUN] = "names and configuration are as the writer began; results carry no "
                             "digest",
        [TRACE_SEAL_UNFINISHED] = "names, configuration and results are as the writer left them, "
                                  "before the end",
        [TRACE_SEAL_WHOLE] = "names, configuration and results are as the writer left them",
    };
    printf("  seal           %s\n", words[seal]);
}

/* A run that stores no states has no line. */
static void print_states(const struct certify_side *side) {
    const uint64_t states = side->run->snapshots;
    const char *const ending = states == 1 ? "" : "s";
    char damage[CERTIFY_STATES_ROOM];
    if (states == 0) return;
    certify_states_words(side, damage);
    printf("  states         ");
    if (!side->states_read)
        printf("not read: %" PRIu64 " stored state%s\n", states, ending);
    else if (damage[0] != '\0')
        printf("DAMAGED: %s\n", damage);
    else
        printf("as written: %" PRIu64 " stored state%s match%s %s\n", states, ending,
               states == 1 ? "es" : "", states == 1 ? "its digest" : "their digests");
}

void certify_print(const struct certify_side *side) {
    const struct certificate *certificate = &side->certificate;
    char hex[DIGEST_HEX];
    digest_hex(&certificate->root, hex);
    plain_text_put(side->path, stdout);
    printf(": run %s, %" PRIu64 " update%s%s\n", side->run->plan.id, certificate->updates,
           certificate->updates == 1 ? "" : "s",
           side->image->complete ? "" : " (the experiment did not run to its end)");
    if (side->image->writer != NULL)
        printf("  recorded by    %s%s%s\n", side->image->writer,
               side->image->writer_version[0] == '\0' ? "" : " ", side->image->writer_version);
    if (certificate->updates > 0) printf("  root           %s\n", hex);
    printf("  configuration  %s\n", side->configuration);
    print_seal(side->image->seal);
    if (strcmp(side->device, BACKENDS_OWN) != 0) printf("  ran on         %s\n", side->device);
    if (side->altered)
        printf("                 ALTERED: the arms' texts do not give configuration_digest\n");
    if (side->scenario[0] != '\0')
        printf("  scenario       %s%s\n", side->scenario,
               side->overrides[0] == '\0' ? "" : ", with --set");
    printf("  chain          ");
    print_chain(certificate, side->run->derived);
    print_states(side);
    if (certify_exit(side) == EXIT_AS_EXPECTED) {
        fputs("  pin            twinstep certify ", stdout);
        plain_text_put(side->path, stdout);
        printf(" --run %s --expect %s\n", side->run->plan.id, hex);
    }
}

static void print_counted(const struct certify_pair *pair) {
    printf("(%" PRIu32 " comparison%s of %" PRIu64 " root%s)\n", pair->comparisons,
           pair->comparisons == 1 ? "" : "s", pair->updates, pair->updates == 1 ? "" : "s");
}

/* Says which batches were not compared: then roots are held against each other without these. */
static void print_gap(const struct batch_gap *gap) {
    char words[COMPARABLE_WHY];
    batch_gap_words(gap, words);
    if (words[0] != '\0') printf("  batch    not compared in %s\n", words);
}

void certify_print_pair(const struct certify_side sides[2], const struct certify_pair *pair) {
    for (int s = 0; s < 2; s++) {
        printf("%c: ", "AB"[s]);
        plain_text_put(sides[s].path, stdout);
        printf(", run %s, %" PRIu64 " update%s\n", sides[s].run->plan.id, sides[s].run->updates,
               sides[s].run->updates == 1 ? "" : "s");
    }
    if (pair->devices[0] != '\0') printf("devices differ: %s\n", pair->devices);
    char hex[DIGEST_HEX];
    if (pair->first == 0) {
        printf("equal through update %" PRIu64 " ", pair->updates);
        print_counted(pair);
        print_gap(&pair->gap);
        for (int s = 0; s < (pair->gap.updates > 0 ? 2 : 1); s++) {
            certify_hex(certify_root(&sides[s], pair->updates), hex);
            printf("  root %c   %s\n", pair->gap.updates > 0 ? "AB"[s] : ' ', hex);
        }
        if (pair->ended[0] != '\0')
            printf("  %s: %s\n", pair->ended,
                   pair->common ? "of the updates behind it nothing is said (--common)"
                                : "no more is known (--common asks for "
                                  "the updates of both alone)");
        return;
    }
    printf("differs from update %" PRIu64 " on ", pair->first);
    print_counted(pair);
    printf("  phase    %s\n", pair->where.phase[0] != '\0'
                                  ? pair->where.phase
                                  : "one that only one of them ran, or that was not recorded");
    if (pair->where.tensor[0] != '\0') printf("  tensor   %s\n", pair->where.tensor);
    print_gap(&pair->gap);
    if (pair->rng_words[0] != '\0') printf("  rng      %s\n", pair->rng_words);
    for (int s = 0; s < 2; s++) {
        certify_hex(certify_root(&sides[s], pair->first), hex);
        printf("  root %c   %s\n", "AB"[s], hex);
    }
}

const char *certify_chain_word(const struct certify_side *side) {
    static const char *const states[] = {"sound", "broken", "untestable"};
    return states[side->certificate.state];
}

static json_t *damaged_json(const struct certify_side *side) {
    json_t *list = json_array();
    for (uint64_t i = 0; i < states_named(side); i++)
        json_array_append_new(list, json_integer((json_int_t)damaged_step(side, i)));
    return list;
}

json_t *certify_json(const struct certify_side *side) {
    const struct certificate *certificate = &side->certificate;
    char hex[DIGEST_HEX];
    digest_hex(&certificate->root, hex);
    return json_pack(
        "{ss ss sI ss ss ss sb so ss ss sb sI sb so ss ss ss sI sb so so}", "trace", side->path,
        "run", side->run->plan.id, "updates", (json_int_t)certificate->updates, "root",
        certificate->updates == 0 ? "" : hex, "configuration", side->configuration, "ran_on",
        side->device, "configuration_altered", side->altered, "scenario", json_text(side->scenario),
        "set", side->overrides, "chain", certify_chain_word(side), "derived", side->run->derived,
        "checked", (json_int_t)certificate->checked, "start_known", certificate->start_known,
        "broken", json_positive(certificate->broken), "column", certificate->column, "why",
        certificate->why, "seal", trace_seal_word(side->image->seal), "states",
        (json_int_t)side->run->snapshots, "states_read", side->states_read, "states_damaged",
        side->states_read ? json_integer((json_int_t)side->states.damaged) : json_null(),
        "states_damaged_at", damaged_json(side));
}

static json_t *where_json(const struct certify_side sides[2], const struct certify_pair *pair) {
    char hex[2][DIGEST_HEX];
    if (pair->first == 0) return json_null();
    for (int s = 0; s < 2; s++)
        certify_hex(certify_root(&sides[s], pair->first), hex[s]);
    return json_pack("{sI ss ss s[ss]}", "update", (json_int_t)pair->first, "phase",
                     pair->where.phase, "tensor", pair->where.tensor, "roots", hex[0], hex[1]);
}

json_t *certify_pair_json(const struct certify_side sides[2], const struct certify_pair *pair) {
    char lack[COMPARABLE_WHY];
    batch_gap_words(&pair->gap, lack);
    return json_pack("{so so sb sI sI sI so so ss ss ss}", "a", certify_json(&sides[0]), "b",
                     certify_json(&sides[1]), "equal",
                     pair->first == 0 && (pair->ended[0] == '\0' || pair->common), "updates",
                     (json_int_t)pair->updates, "comparisons", (json_int_t)pair->comparisons,
                     "most_comparisons", (json_int_t)chain_comparisons(pair->updates), "first",
                     where_json(sides, pair), "rng", rng_json(&pair->rng, pair->rng_words),
                     "devices_differ", pair->devices, "ended", pair->ended, "batches_lack", lack);
}
