/* SPDX-License-Identifier: Apache-2.0
 * The command line: the table of verbs, signals, and the only exit of the program.
 *
 * setlocale() is never called, so that numbers read and print alike everywhere. Invariant: the exit
 * status is 2 if anything that was printed could not be written. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <jansson.h>

#include "base/fpenv.h"
#include "cli/ci.h"
#include "cli/consent.h"
#include "cli/cores.h"
#include "cli/output.h"
#include "cli/plain_text.h"
#include "cli/program.h"
#include "determinism/libraries.h"
#include "experiment/experiment.h"
#include "scenarios/suggest.h"
#include "trainer/schema_classes.h"

#define STACK_NEEDED (512ull * 1024) /* bytes */

static const struct verb *const verbs[] = {
    &verb_run,          &verb_check,          &verb_demo,
    &verb_suite,        &verb_attribute,      &verb_recover,
    &verb_keys,         &verb_list,           &verb_env,
    &verb_rerun_config, &verb_lr_table,       &verb_lr_compare,
    &verb_lr_fit,       &verb_lr_check,       &verb_doctor,
    &verb_compare,      &verb_import,         &verb_export,
    &verb_report,       &verb_replay,         &verb_bisect,
    &verb_noise,        &verb_floor,          &verb_certify,
    &verb_parity,       &verb_parity_weights, &verb_rollout,
    &verb_readback,     &verb_resume_check,   &verb_ops,
    &verb_data_show,    &verb_pages,          &verb_ablate,
    &verb_ablate_guard, &verb_bisect_command, &verb_init,
    &verb_ranks_order,  &verb_ranks_buckets,  &verb_ranks_deal};

const char usage_about[] =
    "Runs two trainings that should agree, records every step to the last bit, finds the first\n"
    "difference, and says which cause made it and how sure it is.\n";
const char usage_exit[] =
    "Exit status: 0 as expected (equal, inside the floor, expectation met); 1 differs, or\n"
    "expectation missed; 2 usage or input error; 3 cannot be decided from this evidence;\n"
    "130 interrupted.\n";

const struct verb *verb_at(size_t index) {
    return index < COUNT_OF(verbs) ? verbs[index] : NULL;
}

static volatile int interrupted; /* set by the handler below and read between updates */

/* Seconds that an update may go on after SIGTERM: fewer than what schedulers and containers wait
 * before they kill. */
#define TERM_SECONDS 8

/* An update that does not end, in a module say, never looks at `interrupted`. What is committed is
 * in the live file, as after a kill. */
static void end_in_the_middle(int signal) {
    static const char text[] = "twinstep: error: ended by SIGTERM in the middle of an update that "
                               "did not end within 8 seconds; updates before it are kept "
                               "(NAME.h5.part)\n";
    (void)signal;
    _exit(write(STDERR_FILENO, text, sizeof text - 1) < 0 ? EXIT_ERROR : EXIT_INTERRUPTED);
}

static void note_signal(int signal) {
    interrupted = 1;
    if (signal == SIGTERM) alarm(TERM_SECONDS);
}

/* nohup ignores SIGHUP for the programs that it starts, and means it. */
static int signal_is_watched(int signal) {
    struct sigaction before;
    return sigaction(signal, NULL, &before) == 0 && before.sa_handler != SIG_IGN;
}

/* The first signal asks for an orderly end and restores the default action, so that a second one
 * kills; SIGTERM waits for the end of an update only so long. Blocking calls are not resumed,
 * because one that waits for input would wait on. */
static void watch_signals(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_handler = end_in_the_middle;
    sigaction(SIGALRM, &action, NULL);
    action.sa_handler = note_signal;
    action.sa_flags = (int)SA_RESETHAND;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (signal_is_watched(SIGHUP)) sigaction(SIGHUP, &action, NULL);
}

/* Makes a file-size limit fail the write, as a full disk does, instead of ending the process. */
static void fail_at_size_limit(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_IGN;
    sigemptyset(&action.sa_mask);
    sigaction(SIGXFSZ, &action, NULL);
}

int exit_of_status(enum status status) {
    switch (status) {
    case STATUS_OK:
        return EXIT_AS_EXPECTED;
    case STATUS_UNTESTABLE:
        return EXIT_UNTESTABLE;
    case STATUS_INTERRUPTED:
        return EXIT_INTERRUPTED;
    default:
        return EXIT_ERROR;
    }
}

int exit_worst(int a, int b) {
    static const int order[] = {EXIT_INTERRUPTED, EXIT_ERROR, EXIT_UNTESTABLE, EXIT_DIFFERS};
    for (size_t i = 0; i < COUNT_OF(order); i++)
        if (a == order[i] || b == order[i]) return order[i];
    return EXIT_AS_EXPECTED;
}

/* Standard error has no buffer: a text is written by one call where it can be, so that those of
 * several processes do not mix. */
void print_error(const char *text) {
    const char *const before = strstr(text, ": error: ") == NULL ? "twinstep: error: " : "";
    if (text[strcspn(text, "\n\t")] == '\0') {
        fprintf(stderr, "%s%s\n", before, text);
        return;
    }
    fputs(before, stderr);
    plain_text_put(text, stderr);
    fputc('\n', stderr);
}

static void print_usage(FILE *out) {
    fprintf(out, "Usage: twinstep VERB [OPTIONS]\n%s\n", usage_about);
    for (size_t i = 0; i < COUNT_OF(verbs); i++)
        if (verbs[i]->brief != NULL) fprintf(out, "  %-14s %s\n", verbs[i]->name, verbs[i]->brief);
    fprintf(out,
            "\n"
            "  twinstep VERB --help   options of a verb, with an example\n"
            "  twinstep --version     version of this program\n"
            "\n%s\n"
            "docs/GLOSSARY.md explains arm, floor, hybrid, closure and other words.\n"
            "Example: twinstep demo\n",
            usage_exit);
}

/* Verbs of the Python package, which needs its libraries for them. Its command `twinstep` does them
 * itself and hands all others to this program. */
static const char *const package_verbs[] = {"merge", "tokenize"};

static enum status find_verb(const char *word, const struct verb **out) {
    struct suggestion nearest = {.word = word};
    for (size_t i = 0; i < COUNT_OF(package_verbs); i++)
        if (strcmp(package_verbs[i], word) == 0)
            FAIL(
                STATUS_INPUT,
                "%s is a verb of the Python package (pip install ./python), whose command twinstep "
                "has it; see docs/PYTHON.md",
                word);
    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        *out = verbs[i];
        if (strcmp(verbs[i]->name, word) == 0) return STATUS_OK;
        if (verbs[i]->brief != NULL) suggest_offer(&nearest, verbs[i]->name);
    }
    if (nearest.best != NULL)
        FAIL(STATUS_INPUT, "unknown verb \"%s\"; did you mean %s?", word, nearest.best);
    const int group = strchr(word, ' ') == NULL ? 0 : (int)strcspn(word, " ") + 1;
    FAIL(STATUS_INPUT, "unknown verb \"%s\"; see twinstep %.*s--help", word, group, word);
}

/* Returns whether verbs of two words begin with `word`, as some do with "lr". */
static int is_group(const char *word) {
    const size_t length = strlen(word);
    for (size_t i = 0; i < COUNT_OF(verbs); i++)
        if (strncmp(verbs[i]->name, word, length) == 0 && verbs[i]->name[length] == ' ') return 1;
    return 0;
}

static int is_verb(const char *word) {
    for (size_t i = 0; i < COUNT_OF(verbs); i++)
        if (strcmp(verbs[i]->name, word) == 0) return 1;
    return 0;
}

/* Prints the verbs of two words that begin with `word`. */
static void print_group(const char *word, FILE *out) {
    const size_t length = strlen(word);
    fprintf(out, "Usage: twinstep %s VERB [OPTIONS]\n\n", word);
    for (size_t i = 0; i < COUNT_OF(verbs); i++)
        if (strncmp(verbs[i]->name, word, length) == 0 && verbs[i]->name[length] == ' ')
            fprintf(out, "  %-14s %s\n", verbs[i]->name, verbs[i]->brief);
    fprintf(out, "\n  twinstep %s VERB --help   options of a verb, with an example\n", word);
}

/* Joins "lr" and "table" to the verb "lr table"; *argc and *argv then begin at the second word. A
 * word that is a verb itself ("parity") stays alone if the second word makes no verb of two words
 * with it. */
static enum status join_words(struct arena *arena, int *argc, char ***argv, char **out_word) {
    *out_word = (*argv)[0];
    if (!is_group((*argv)[0]) || *argc < 2) return STATUS_OK;
    char *both;
    TRY(arena_format(arena, &both, "%s %s", (*argv)[0], (*argv)[1]));
    if (is_verb((*argv)[0]) && !is_verb(both)) return STATUS_OK;
    *out_word = both;
    *argc -= 1;
    *argv += 1;
    return STATUS_OK;
}

static enum status perform_verb(struct cli *cli, const struct verb *verb,
                                const struct options *options, int *out_exit) {
    TRY(fpenv_check());
    TRY(schema_with_classes(&cli->arena, &cli->schema));
    TRY(consent_ask(cli, options));
    return verb->run(cli, options, out_exit);
}

/* Tells whether mpirun started this process as another rank than 0. All of them read the same
 * command line, and none has joined the others yet, so only the environment says it: Open MPI's
 * name, and the one of MPICH and what descends from it. */
static int is_later_rank(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const char *const rank = getenv(names[i]);
        if (rank != NULL && rank[0] != '\0' && strcmp(rank, "0") != 0) return 1;
    }
    return 0;
}

/* Tells a CI system, too, that the command line is wrong. Which words are files is not known then,
 * so the JUnit file is written where none of them is that file. Of ranks only the first tells. */
static enum status publish_usage(struct cli *cli, const struct verb *verb, int argc, char **argv,
                                 enum status failed) {
    struct options options = {.argument_count = 0};
    char *text;
    if (is_later_rank()) return failed;
    if (arena_format(&cli->arena, &text, "%s", status_text()) != STATUS_OK ||
        options_for_ci(verb, argc, argv, &cli->arena, &options) != STATUS_OK)
        return failed;
    if (options.github && plain_text_open(STDOUT_FILENO, 0, &stdout) != STATUS_OK) return failed;
    cli->ci.withheld = ci_check(&options) != STATUS_OK;
    options.argument_count = 0;
    return ci_publish_error(cli, &options, verb->name, status_fail(failed, "%s", text));
}

static enum status call_verb(struct cli *cli, int argc, char **argv, int *out_exit) {
    const struct verb *verb;
    struct options options;
    char *word;
    TRY(join_words(&cli->arena, &argc, &argv, &word));
    TRY(find_verb(word, &verb));
    const enum status usage = options_read(verb, argc, argv, &cli->arena, &options);
    if (usage != STATUS_OK) return publish_usage(cli, verb, argc, argv, usage);
    if (options.help) {
        options_help(verb, stdout);
        return STATUS_OK;
    }
    if (verb->trains) watch_signals();
    if (verb->streams && !isatty(STDOUT_FILENO))
        TRY(plain_text_pass(&stdout));
    else if (!verb->binary)
        TRY(plain_text_open(STDOUT_FILENO, 0, &stdout));
    TRY(ci_check(&options));
    if (verb != &verb_run) TRY(ci_try(&options)); /* of ranks only the first writes: cmd_run.c */
    const enum status status = perform_verb(cli, verb, &options, out_exit);
    return status == STATUS_OK ? ci_publish(cli, &options, verb->name, *out_exit)
                               : ci_publish_error(cli, &options, verb->name, status);
}

static enum status dispatch(struct cli *cli, int argc, char **argv, int *out_exit);

/* `twinstep help`, as git and pip have it: the verbs, or with a verb behind it what --help behind
 * that verb says. */
static enum status call_help(struct cli *cli, int argc, char **argv, int *out_exit) {
    char **words;
    if (argc == 2) {
        print_usage(stdout);
        return STATUS_OK;
    }
    TRY(arena_take(&cli->arena, (size_t)argc + 1, sizeof *words, "words", &words));
    words[0] = argv[0];
    memcpy(words + 1, argv + 2, (size_t)(argc - 2) * sizeof *words);
    TRY(arena_text(&cli->arena, "--help", strlen("--help"), &words[argc - 1]));
    return dispatch(cli, argc, words, out_exit);
}

static enum status dispatch(struct cli *cli, int argc, char **argv, int *out_exit) {
    if (argc >= 2 && strcmp(argv[1], "help") == 0) return call_help(cli, argc, argv, out_exit);
    if (argc < 2) FAIL(STATUS_INPUT, "expected a verb; see twinstep --help");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_usage(stdout);
        return STATUS_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("twinstep %s\n", TWINSTEP_VERSION);
        return STATUS_OK;
    }
    const int group = is_group(argv[1]) && !is_verb(argv[1]);
    if (group && argc == 3 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0)) {
        print_group(argv[1], stdout);
        return STATUS_OK;
    }
    if (group && argc == 2)
        FAIL(STATUS_INPUT, "%s: expected one more word; see twinstep %s --help", argv[1], argv[1]);
    if (argv[1][0] == '-')
        FAIL(STATUS_INPUT, "expected a verb, got option %s; see twinstep --help", argv[1]);
    return call_verb(cli, argc - 1, argv + 1, out_exit);
}

/* A full disk may show only when stdout is closed; the exit status becomes 2 then. */
static int close_output(int code) {
    const int reason = output_end(stdout);
    if (reason == 0) return code;
    fprintf(stderr, "twinstep: error: standard output: cannot write: %s\n", strerror(reason));
    return exit_worst(code, EXIT_ERROR);
}

/* A library that ends the process by itself (libgomp when no thread can be started, with status 1,
 * which would mean "differs"; a module that calls exit()) has no verdict to tell. */
static int has_ended; /* main returns by itself */

static void refuse_exit(void) {
    static const char text[] =
        "twinstep: error: a library or a module ended the program before it had a result\n";
    if (has_ended) return;
    const ssize_t told = write(STDERR_FILENO, text, sizeof text - 1);
    (void)told; /* the status says it, too */
    _exit(EXIT_ERROR);
}

/* How often a thread that waits for another looks before it sleeps, where processors are spare:
 * some ten to fifty microseconds. docs/measurements/train.md has what that gives, and what it costs
 * where others work. */
#define LOOKS_BEFORE_SLEEP "1000"

/* Sets `name` for this process; `mark` says so to those that start a user's commands. */
static int set_own(const char *name, const char *value, const char *mark) {
    return setenv(name, value, 1) == 0 && setenv(mark, "1", 1) == 0;
}

/* Threads that wait should sleep soon, or at once where others have work for the processors:
 * libgomp looks for milliseconds by default, and two such threads on a machine that had other work
 * to do made a run up to 60 times slower (docs/measurements/train.md). It reads its variables
 * before main, so the process starts itself once more. No bit depends on it; where the program
 * cannot find its own file everything works, only slower. A policy that the user set stays; a size
 * of stacks that was set for other programs does not, because a thread whose stack is too small
 * dies of it. Commands of a user get back what was theirs (cli/ablate/ablate_start.c). */
static void settle_threads(char **argv) {
    static const char *const sizes[] = {"OMP_STACKSIZE", "GOMP_STACKSIZE"};
    static const char *const kept[] = {"TWINSTEP_KEPT_OMP_STACKSIZE",
                                       "TWINSTEP_KEPT_GOMP_STACKSIZE"};
    int changed = getenv("OMP_WAIT_POLICY") == NULL;
    if (changed && !set_own("OMP_WAIT_POLICY", "passive", "TWINSTEP_WAIT_ASLEEP")) return;
    if (changed && getenv("GOMP_SPINCOUNT") == NULL && cores_are_spare() &&
        !set_own("GOMP_SPINCOUNT", LOOKS_BEFORE_SLEEP, "TWINSTEP_WAIT_LOOKS"))
        return;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        const char *size = getenv(sizes[i]);
        if (size == NULL || setenv(kept[i], size, 1) != 0) continue;
        if (unsetenv(sizes[i]) == 0) changed = 1;
    }
    if (changed) execv(program_file(), argv);
}

/* Refuses a limit on the stack that a training would run into: the system ends such a process by a
 * signal, and nobody reads why. The trainings of the tests need more than 192 KiB and less than
 * 224, and each thread has the same limit. */
static enum status check_stack(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur >= STACK_NEEDED)
        return STATUS_OK;
    FAIL(STATUS_INPUT, "the stack may grow to %llu KiB, and %llu are needed: say ulimit -s %llu",
         (unsigned long long)limit.rlim_cur / 1024, STACK_NEEDED / 1024, STACK_NEEDED / 1024);
}

int main(int argc, char **argv) {
    enum status status = output_hold_streams();
    program_remember();
    if (status == STATUS_OK) settle_threads(argv);
    struct cli cli = {ARENA_EMPTY, NULL, &interrupted, argc, argv, {NULL, 0, 0, 0}};
    int code = EXIT_AS_EXPECTED;
    if (atexit(refuse_exit) != 0) return EXIT_ERROR;
    fail_at_size_limit();
    libraries_prepare();
    json_set_alloc_funcs(arena_lend, arena_return);
    if (status == STATUS_OK) status = plain_text_open(STDERR_FILENO, 1, &stderr);
    if (status == STATUS_OK) status = check_stack();
    if (status == STATUS_OK) status = dispatch(&cli, argc, argv, &code);
    if (status == STATUS_OK) status = arena_lacked();
    if (status != STATUS_OK) {
        print_error(status_text());
        code = exit_of_status(status);
    }
    arena_close(&cli.arena);
    code = close_output(code);
    has_ended = 1;
    return code;
}
