/* SPDX-License-Identifier: Apache-2.0
 * twinstep floor: what differs between repeated runs of another program, and whether the runs of
 * two arms differ by more. It trains nothing. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/number.h"
#include "cli/json.h"
#include "cli/plain_text.h"
#include "cli/verb.h"
#include "determinism/comparable.h"
#include "determinism/statistics.h"
#include "forensics/repeats.h"
#include "logs/import.h"

enum { KEY_AGAINST = KEY_OWN, KEY_ALPHA };

struct asked {
    struct repeats arms[2];
    struct repeats_found found[2];
    struct floor_file file[2];
    double alpha, p, least;
    int labels; /* 1: p is that of the relabelings */
};

/* The same file twice would be a floor of 0 that nothing measured. */
static enum status refuse_twice(const struct options *options) {
    struct stat a, b;
    for (size_t i = 0; i < options->argument_count; i++)
        for (size_t j = 0; j < i; j++)
            if (stat(options->arguments[i], &a) == 0 && stat(options->arguments[j], &b) == 0 &&
                a.st_dev == b.st_dev && a.st_ino == b.st_ino)
                FAIL(STATUS_INPUT, "floor: %s and %s are one file: a run is no repeat of itself",
                     options->arguments[j], options->arguments[i]);
    return STATUS_OK;
}

static enum status open_arm(struct cli *cli, const struct options *options, size_t from, size_t to,
                            struct repeats *out) {
    const struct trace_run **runs;
    struct trace_image *image;
    TRY(arena_take(&cli->arena, to - from, sizeof *runs, "runs", &runs));
    out->writer = "";
    for (size_t i = from; i < to; i++) {
        TRY(trace_open(options->arguments[i], &cli->arena, &image));
        if (image->writer == NULL)
            FAIL(STATUS_INPUT,
                 "%s: expected a trace of another program (docs/FOREIGN.md), got one of twinstep, "
                 "whose floor twinstep noise measures",
                 options->arguments[i]);
        if (image->run_count != 1)
            FAIL(STATUS_INPUT, "%s: expected a trace of one run, got %u", options->arguments[i],
                 image->run_count);
        runs[i - from] = &image->runs[0];
        if (i == from) out->writer = image->writer;
    }
    out->count = (uint32_t)(to - from);
    out->runs = runs;
    out->paths = options->arguments + from;
    return STATUS_OK;
}

/* ---- words ---- */

static void print_arm(const struct repeats *arm, const struct repeats_found *found) {
    printf("%" PRIu32 " runs of ", arm->count);
    plain_text_put(arm->writer, stdout);
    printf(", %" PRIu64 " updates\n", found->updates);
    if (found->exact) {
        fputs("exact: their roots are equal in all updates", stdout);
        if (found->gap > 0)
            printf(", without the batches of %" PRIu64 " that one of them did not record",
                   found->gap);
        puts("; any difference of another run is one");
        return;
    }
    if (found->equal && found->other == 0) {
        puts(
            "equal in loss and gradient norm; they record no digests, so this is no proof of equal "
            "weights");
        return;
    }
    fputs("noisy: ", stdout);
    plain_text_put(arm->paths[found->other], stdout);
    fputs(" parts from ", stdout);
    plain_text_put(arm->paths[0], stdout);
    printf(" at update %" PRIu64 "%s%s%s", found->update,
           found->where.phase[0] != '\0' ? ", phase " : "", found->where.phase,
           found->where.tensor[0] != '\0' ? ", " : "");
    plain_text_put(found->where.tensor, stdout);
    putchar('\n');
    for (int c = 0; c < FLOOR_COLUMNS; c++)
        if (!isnan(found->largest[c]))
            printf("  %-10s largest gap of the %" PRIu32 " pair%s %.3g, at update %" PRIu64 "\n",
                   floor_columns[c].name, arm->count / 2, arm->count / 2 == 1 ? "" : "s",
                   found->largest[c], found->largest_at[c]);
}

static enum status print_need(const struct asked *asked) {
    size_t pairs, runs;
    const uint64_t have = asked->file[0].pairs;
    TRY(statistics_distance_needed(asked->alpha, &pairs));
    TRY(statistics_labels_needed(asked->alpha, &runs));
    if (have < pairs)
        printf("%" PRIu64 " pair%s: compare --floor at alpha %g needs %zu; --against with %zu runs "
               "of each arm needs no pairs\n",
               have, have == 1 ? "" : "s", asked->alpha, pairs, runs);
    return STATUS_OK;
}

static json_t *arm_json(const struct repeats *arm, const struct repeats_found *found) {
    json_t *columns = json_object();
    for (int c = 0; c < FLOOR_COLUMNS; c++)
        if (!isnan(found->largest[c]))
            json_object_set_new(columns, floor_columns[c].name, json_finite(found->largest[c]));
    return json_pack("{sI so sI sb sb so ss ss so}", "runs", (json_int_t)arm->count, "writer",
                     json_text(arm->writer), "updates", (json_int_t)found->updates, "exact",
                     found->exact, "equal", found->equal, "first_update",
                     json_positive(found->update), "first_phase", found->where.phase,
                     "first_tensor", found->where.tensor, "largest", columns);
}

/* ---- the verb ---- */

static enum status read_alpha(const struct options *options, double *out) {
    const char *text = options_value(options, KEY_ALPHA);
    *out = 0.01;
    if (text == NULL) return STATUS_OK;
    if (number_parse_real(text, NUMBER_FINITE, out) == STATUS_OK && *out > 0.0 && *out < 1.0)
        return STATUS_OK;
    FAIL(STATUS_INPUT, "floor: --alpha: expected a number between 0 and 1, got \"%s\"", text);
}

/* Whether the arms differ: to the bit where both are exact, else by the relabelings. */
static enum status judge_arms(struct asked *asked, struct arena *arena, int *out_exit) {
    const struct repeats pair = {
        2, (const struct trace_run *const[]){asked->arms[0].runs[0], asked->arms[1].runs[0]},
        (const char *const[]){asked->arms[0].paths[0], asked->arms[1].paths[0]},
        asked->arms[0].writer};
    if (asked->found[0].exact && asked->found[1].exact) {
        struct batch_gap gap;
        const uint64_t apart = runs_first_apart(pair.runs[0], pair.runs[1], &gap);
        *out_exit = apart == 0 ? EXIT_AS_EXPECTED : EXIT_DIFFERS;
        return STATUS_OK;
    }
    asked->labels = 1;
    TRY(repeats_against(&asked->arms[0], &asked->arms[1], arena, &asked->p, &asked->least));
    *out_exit = asked->least > asked->alpha ? EXIT_UNTESTABLE
                : asked->p <= asked->alpha  ? EXIT_DIFFERS
                                            : EXIT_AS_EXPECTED;
    return STATUS_OK;
}

static void print_verdict(const struct asked *asked, int code) {
    static const char *const words[] = {"inside-floor", "outside-floor", "", "untestable"};
    printf("%s: ", words[code]);
    if (!asked->labels)
        printf("the runs of each arm are equal to the last bit, and those of the two arms %s\n",
               code == EXIT_DIFFERS ? "are not" : "are, too");
    else if (code == EXIT_UNTESTABLE)
        printf("%" PRIu32 " and %" PRIu32 " runs cannot give p <= %g (least %.3g)\n",
               asked->arms[0].count, asked->arms[1].count, asked->alpha, asked->least);
    else
        printf("p = %.4g over all relabelings of the runs, alpha = %g\n", asked->p, asked->alpha);
}

static enum status show(const struct options *options, const struct asked *asked, int against,
                        int code) {
    if (options->json) {
        json_t *object =
            json_pack("{so so sf}", "a", arm_json(&asked->arms[0], &asked->found[0]), "b",
                      against ? arm_json(&asked->arms[1], &asked->found[1]) : json_null(), "alpha",
                      asked->alpha);
        json_object_set_new(object, "p", asked->labels ? json_finite(asked->p) : json_null());
        json_object_set_new(object, "least_p",
                            asked->labels ? json_finite(asked->least) : json_null());
        return json_print(object);
    }
    for (int arm = 0; arm <= against; arm++)
        print_arm(&asked->arms[arm], &asked->found[arm]);
    if (against) print_verdict(asked, code);
    if (!against && !asked->found[0].exact) TRY(print_need(asked));
    if (options->output != NULL) {
        fputs("written to ", stdout);
        plain_text_put(options->output, stdout);
        printf(": %" PRIu64 " pair%s\n", asked->file[0].pairs,
               asked->file[0].pairs == 1 ? "" : "s");
    }
    return STATUS_OK;
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    size_t split = options->argument_count;
    struct asked *asked;
    TRY(arena_take(&cli->arena, 1, sizeof *asked, "floor", &asked));
    for (size_t i = 0; i < options->given_count; i++)
        if (options->given[i].key == KEY_AGAINST) split = options->given[i].before;
    const int against = options_given(options, KEY_AGAINST);
    TRY(read_alpha(options, &asked->alpha));
    TRY(refuse_twice(options));
    TRY(open_arm(cli, options, 0, split, &asked->arms[0]));
    TRY(repeats_measure(&asked->arms[0], &cli->arena, &asked->found[0], &asked->file[0]));
    *out_exit = asked->found[0].equal ? EXIT_AS_EXPECTED : EXIT_DIFFERS;
    if (against) {
        TRY(open_arm(cli, options, split, options->argument_count, &asked->arms[1]));
        TRY(repeats_measure(&asked->arms[1], &cli->arena, &asked->found[1], &asked->file[1]));
        TRY(judge_arms(asked, &cli->arena, out_exit));
    }
    if (options->output != NULL)
        TRY(floor_file_write(options->output, &asked->file[0], options->overwrite, &cli->arena));
    return show(options, asked, against, *out_exit);
}

static const struct argp_option option_rows[] = {
    OPTION("against", KEY_AGAINST, NULL,
           "The runs behind it are those of another arm: do they differ by more than runs of one "
           "arm do?"),
    OPTION("alpha", KEY_ALPHA, "X", "Of that test; default 0.01"),
    OPTION_OUTPUT("Floor file to write, for compare --floor"),
    OPTION_OVERWRITE("Replace a floor file that exists"),
    OPTION_JSON,
    OPTIONS_END};

const struct verb verb_floor = {
    .name = "floor",
    .brief = "how far repeated runs of another program are apart",
    .arguments = "TRACE TRACE...",
    .text =
        "Reads traces that another program wrote of runs that are meant to be the same "
        "(docs/FOREIGN.md), one run each, and says whether they are: to the last bit where they "
        "record digests, else by loss and gradient norm; and where the first one parts. With "
        "--output the gaps become a floor file. With --against the runs of two arms are compared, "
        "by all relabelings of the runs.\v"
        "Exit status: 0 equal, or the arms differ by no more than runs do; 1 not; 2 error; 3 too "
        "few runs to say.\n"
        "Example: twinstep floor a1.h5 a2.h5 -o a.floor.h5\n"
        "         twinstep floor a1.h5 a2.h5 a3.h5 a4.h5 a5.h5 --against b1.h5 b2.h5 b3.h5 b4.h5 "
        "b5.h5",
    .options = option_rows,
    .least = 2,
    .most = 1000,
    .run = run,
};
