/* SPDX-License-Identifier: Apache-2.0
 * twinstep bisect-command: the first of several versions of a user's training, revisions of its
 * repository or versions of a package, whose result is outside the floor of the first one. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "ablate/ablate_bisect.h"
#include "cli/ablate/ablate_asked.h"
#include "cli/ablate/ablate_print.h"
#include "cli/ablate/ablate_runner.h"
#include "cli/json.h"

static enum status want(const struct ablate_running *running, const struct ablate_result *results,
                        struct arena *arena, unsigned char *wanted) {
    struct bisect_verdict verdict;
    return bisect_judge(running->plan, results, arena, wanted, &verdict);
}

static const char *word_of(enum ablate_verdict_kind kind) {
    static const char *const words[] = {"inside", "outside", "untestable"};
    return words[kind];
}

/* One of the two repeats and the other does not: then they are told apart by that alone. */
static void print_unsteady(const struct ablate_verdict *verdict) {
    const int steady = verdict->noise_of[0] == 0 ? 0 : 1; /* 0: the first version */
    if (verdict->noise_of[steady] != 0) return;
    printf(steady == 0 ? "; all runs of the first version are bit-equal, only this one does not "
                         "repeat itself"
                       : "; all runs of this one are bit-equal, only the first version does not "
                         "repeat itself");
    if (verdict->nearest <= verdict->repeats)
        printf(", and no shift beyond that is shown");
    else if (verdict->nearest > 0.0)
        printf(", and the two are %.4g apart at least", verdict->nearest);
}

static void print_probe(const struct ablate_file *file, const struct bisect_probe *probe) {
    const struct ablate_verdict *verdict = &probe->verdict;
    char kinds[ABLATE_KINDS_TEXT];
    printf("  %4zu     %-10s %s", probe->version + 1, word_of(verdict->kind),
           file->versions[probe->version]);
    if (verdict->kind == ABLATE_UNTESTABLE)
        printf(": %s", verdict->reason);
    else if (verdict->floor == ABLATE_FLOOR_NOISY)
        printf(": p = %.4g, repeats up to %.4g apart", verdict->p, verdict->repeats);
    if (verdict->kind == ABLATE_OUTSIDE && verdict->floor == ABLATE_FLOOR_NOISY)
        print_unsteady(verdict);
    if (verdict->kind == ABLATE_INSIDE && verdict->floor == ABLATE_FLOOR_NOISY)
        printf(", a shift of more than %.4g would be told", verdict->shift);
    if (verdict->kind == ABLATE_INSIDE && verdict->floor == ABLATE_FLOOR_EXACT)
        printf(": equal %s", ablate_kinds_text(verdict->reads, kinds));
    if (verdict->kind == ABLATE_OUTSIDE && !isnan(verdict->distance))
        printf(": |a-b| = %.6g%s", verdict->distance, verdict->by_loss ? " (loss)" : "");
    putchar('\n');
}

/* What so few equal runs leave open. */
static void print_chance(const struct ablate_file *file, const struct bisect_verdict *out) {
    if (isnan(out->chance)) return;
    printf(
        "  floor    exact: all repeats agreed; the chance that this is luck, of a command with two "
        "outcomes, is at most %.2g %% (alpha %g %%)\n",
        100.0 * out->chance, 100.0 * file->alpha);
}

static void print_verdict(const struct ablate_folder *folder, const struct ablate_result *results,
                          const struct bisect_verdict *out) {
    const struct ablate_file *file = folder->plan->file;
    const size_t last = file->version_count - 1;
    printf("%s: ", file->name);
    if (out->kind == ABLATE_UNTESTABLE)
        printf("UNTESTABLE: %s.\n", out->reason);
    else if (out->kind == ABLATE_INSIDE)
        printf("INSIDE THE FLOOR: %s, the last of %zu versions, %s %s.\n", file->versions[last],
               file->version_count,
               out->probes[0].verdict.floor == ABLATE_FLOOR_EXACT
                   ? "left what was left by"
                   : "is not told apart, over the noise of repeats, from",
               file->versions[0]);
    else if (out->open == 0)
        printf("FIRST OUTSIDE THE FLOOR: %s, number %zu of %zu; %s before it is inside.\n",
               file->versions[out->outside], out->outside + 1, file->version_count,
               file->versions[out->inside]);
    else
        printf("OUTSIDE THE FLOOR from %s on or from one of the %zu before it, which cannot be "
               "judged; %s is inside.\n",
               file->versions[out->outside], out->open, file->versions[out->inside]);
    for (size_t i = 0; i < out->probe_count; i++)
        print_probe(file, &out->probes[i]);
    ablate_print_failed(folder, results);
    print_chance(file, out);
    puts("  untested whether versions between those that were run went out and came back");
    printf("  runs in  %s\n", folder->path);
}

static json_t *probe_json(const struct ablate_file *file, const struct bisect_probe *probe) {
    const struct ablate_verdict *verdict = &probe->verdict;
    return json_pack("{sI ss ss so so so so so}", "number", (json_int_t)probe->version + 1,
                     "version", file->versions[probe->version], "verdict", word_of(verdict->kind),
                     "reason", json_text(verdict->reason), "distance",
                     json_finite(verdict->distance), "p", json_finite(verdict->p), "repeats",
                     json_finite(verdict->repeats), "floor", ablate_json_floor(verdict));
}

static enum status print_json(const struct ablate_folder *folder,
                              const struct bisect_verdict *out) {
    const struct ablate_file *file = folder->plan->file;
    const int found = out->kind == ABLATE_OUTSIDE;
    json_t *probes = json_array();
    for (size_t i = 0; i < out->probe_count; i++)
        json_array_append_new(probes, probe_json(file, &out->probes[i]));
    return json_print(
        json_pack("{ss ss so so so sI so so ss}", "name", file->name, "verdict", word_of(out->kind),
                  "reason", json_text(out->reason), "first_outside",
                  found ? json_string(file->versions[out->outside]) : json_null(), "last_inside",
                  found ? json_string(file->versions[out->inside]) : json_null(), "open",
                  (json_int_t)out->open, "chance", json_finite(out->chance), "probes", probes,
                  "folder", folder->path));
}

/* Says how much would be run: a search by halving, in which every version has its repeats. */
static enum status print_price(const struct ablate_plan *plan, const char *folder, int json,
                               struct arena *arena) {
    const struct ablate_file *file = plan->file;
    const char *note;
    TRY(ablate_plan_note(plan, arena, &note));
    char hex[DIGEST_HEX];
    size_t steps = 1;
    for (size_t left = file->version_count - 1; left > 1; left = (left + 1) / 2)
        steps++;
    if (json) {
        json_t *versions = json_array();
        for (size_t i = 0; i < file->version_count; i++)
            json_array_append_new(versions, json_string(file->versions[i]));
        digest_hex(&plan->digest, hex);
        return json_print(json_pack("{ss so sI sI sI ss ss so}", "name", file->name, "versions",
                                    versions, "versions_run_at_most", (json_int_t)(steps + 1),
                                    "runs_of_each", (json_int_t)file->floor_runs,
                                    "runs_of_each_if_noisy", (json_int_t)file->noisy_runs, "plan",
                                    hex, "folder", folder, "note", json_text(note)));
    }
    printf(
        "%s: %zu versions; at most %zu of them are run besides the first, each %llu times, up to "
        "%llu if repeats differ or fewer could be chance; nothing has been run\n",
        file->name, file->version_count, steps, (unsigned long long)file->floor_runs,
        (unsigned long long)file->noisy_runs);
    if (note[0] != '\0') printf("  note     %s\n", note);
    return STATUS_OK;
}

static enum status finish(const struct ablate_running *running, const struct options *options,
                          struct arena *arena, int *out_exit) {
    static const int exits[] = {EXIT_AS_EXPECTED, EXIT_DIFFERS, EXIT_UNTESTABLE};
    struct ablate_result *results = NULL;
    struct bisect_verdict verdict;
    unsigned char *wanted;
    TRY(arena_take(arena, running->plan->run_count, 1, "runs", &wanted));
    enum status status = ablate_results_open(running->folder, arena, &results);
    if (status == STATUS_OK) status = bisect_judge(running->plan, results, arena, wanted, &verdict);
    if (status == STATUS_OK && options->json)
        status = print_json(running->folder, &verdict);
    else if (status == STATUS_OK)
        print_verdict(running->folder, results, &verdict);
    ablate_results_close(running->plan, results);
    if (status == STATUS_OK) *out_exit = exits[verdict.kind];
    return status;
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    const char *path = options->arguments[0];
    struct ablate_file *file;
    struct ablate_plan plan;
    struct ablate_folder folder;
    struct ablate_words executor;
    char *output;
    TRY(arena_take(&cli->arena, 1, sizeof *file, "bisection", &file));
    TRY(ablate_asked_executor(options, &cli->arena, &executor));
    TRY(ablate_check_rights(path));
    TRY(bisect_file_read(path, &cli->arena, file));
    TRY(ablate_asked_slots(options, file));
    TRY(bisect_plan_open(file, &cli->arena, &plan));
    *out_exit = EXIT_AS_EXPECTED;
    TRY(options->output != NULL ? arena_format(&cli->arena, &output, "%s", options->output)
                                : arena_format(&cli->arena, &output, "%s.bisect", file->name));
    TRY(ablate_asked_json(options, &plan, output));
    if (options_given(options, ABLATE_KEY_DRY_RUN))
        return print_price(&plan, output, options->json, &cli->arena);
    struct ablate_running running = {
        .want = want, .file = file, .plan = &plan, .executor = executor};
    TRY(ablate_plan_check_folder(&plan, &cli->arena));
    TRY(ablate_check_executor(&executor, &cli->arena));
    TRY(ablate_folder_open(output, &plan, &cli->arena, &folder));
    TRY(ablate_asked_run(cli, options, &folder, &running));
    return finish(&running, options, &cli->arena, out_exit);
}

static const struct argp_option option_rows[] = {
    OPTION("output", KEY_OUTPUT, "DIR",
           "Folder of the runs; default NAME.bisect. One that is there is continued"),
    OPTION("dry-run", ABLATE_KEY_DRY_RUN, NULL, "Say how much would be run, and run nothing"),
    ABLATE_OPTIONS,
    OPTION_JSON,
    OPTION_QUIET,
    OPTIONS_END};

const struct verb verb_bisect_command = {
    .name = "bisect-command",
    .brief = "the first revision or version whose training is outside the floor",
    .arguments = "FILE",
    .text =
        "Runs a command of yours with versions in their order, halving, and says which is the "
        "first whose result is outside the floor of the first version: revisions of a repository, "
        "versions of a package. Repeats in other processes are the floor, where git bisect has "
        "only exit statuses. FILE is like that of ablate, with versions instead of factors "
        "(docs/ABLATE.md).\v"
        "Exit status: 0 the last version is inside the floor; 1 found; 2 error; 3 untestable; 130 "
        "interrupted, to be continued.\n"
        "Example: twinstep bisect-command bisect.yaml (versions: a file that git rev-list "
        "--reverse wrote)",
    .options = option_rows,
    .least = 1,
    .most = 1,
    .trains = 1,
    .run = run,
};
