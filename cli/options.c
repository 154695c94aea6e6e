/* SPDX-License-Identifier: Apache-2.0
 * Checks the words of a command line, then hands them to argp. Invariant: argp sees only whole,
 * known options, each with its value; so it never prints an error and never ends the process. */
#include "cli/options.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cli/verb.h"
#include "scenarios/suggest.h"

struct checking {
    const struct verb *verb;
    int argc;
    char **argv;
    int help;
};

static const struct argp_option *find_long(const struct argp_option *options, const char *name,
                                           size_t length) {
    for (; options->name != NULL; options++)
        if (strlen(options->name) == length && strncmp(options->name, name, length) == 0)
            return options;
    return NULL;
}

static const struct argp_option *find_short(const struct argp_option *options, int key) {
    for (; options->name != NULL; options++)
        if (options->key == key && key < 256) return options;
    return NULL;
}

static enum status fail_unknown(const struct verb *verb, const char *word, size_t length) {
    char name[64];
    struct suggestion nearest = {.word = name};
    snprintf(name, sizeof name, "%.*s", (int)(length < 60 ? length : 60), word);
    for (const struct argp_option *o = verb->options; o->name != NULL; o++) {
        suggest_offer(&nearest, o->name);
        if (length > 0 && strncmp(o->name, word, length) == 0) nearest.best = o->name;
    }
    if (nearest.best != NULL)
        FAIL(STATUS_INPUT,
             "%s: unknown option --%s; did you mean --%s? (options are not shortened)", verb->name,
             name, nearest.best);
    FAIL(STATUS_INPUT, "%s: unknown option --%s; see twinstep %s --help", verb->name, name,
         verb->name);
}

/* Returns through *out_taken how many words the option took: itself, and perhaps its value. */
static enum status check_long(struct checking *checking, int i, int *out_taken) {
    const char *word = checking->argv[i] + 2;
    const char *name = checking->verb->name;
    size_t length = strcspn(word, "=");
    const struct argp_option *option = find_long(checking->verb->options, word, length);
    *out_taken = 1;
    if (option == NULL) return fail_unknown(checking->verb, word, length);
    checking->help |= option->key == KEY_HELP;
    if (option->arg == NULL) {
        if (word[length] == '=')
            FAIL(STATUS_INPUT, "%s: option --%s takes no value, got \"%s\"", name, option->name,
                 word + length + 1);
        return STATUS_OK;
    }
    if (word[length] == '=') return STATUS_OK;
    if (i + 1 == checking->argc)
        FAIL(STATUS_INPUT, "%s: option --%s: expected a value (%s), got none", name, option->name,
             option->arg);
    *out_taken = 2;
    return STATUS_OK;
}

static enum status check_short(struct checking *checking, int i, int *out_taken) {
    const char *name = checking->verb->name;
    *out_taken = 1;
    for (const char *c = checking->argv[i] + 1; *c != '\0'; c++) {
        const struct argp_option *option =
            find_short(checking->verb->options, (int)(unsigned char)*c);
        if (option == NULL)
            FAIL(STATUS_INPUT, "%s: unknown option %s; see twinstep %s --help", name,
                 checking->argv[i], name);
        checking->help |= option->key == KEY_HELP;
        if (option->arg == NULL) continue;
        if (c[1] != '\0') return STATUS_OK;
        if (i + 1 == checking->argc)
            FAIL(STATUS_INPUT, "%s: option -%c: expected a value (%s), got none", name, *c,
                 option->arg);
        *out_taken = 2;
        return STATUS_OK;
    }
    return STATUS_OK;
}

static enum status check_words(struct checking *checking) {
    int taken = 1;
    for (int i = 1; i < checking->argc; i += taken) {
        const char *word = checking->argv[i];
        taken = 1;
        if (strcmp(word, "--") == 0) return STATUS_OK;
        if (word[0] != '-' || word[1] == '\0') continue;
        if (word[1] == '-')
            TRY(check_long(checking, i, &taken));
        else
            TRY(check_short(checking, i, &taken));
    }
    return STATUS_OK;
}

int options_span(const struct verb *verb, int argc, char *const *argv, int i, int *out_key) {
    const char *const word = argv[i];
    const struct argp_option *option = NULL;
    int is_joined = 0; /* the value stands in the same word */
    *out_key = 0;
    if (word[0] != '-' || word[1] == '\0') return 1;
    if (word[1] == '-') {
        option = find_long(verb->options, word + 2, strcspn(word + 2, "="));
        is_joined = strchr(word, '=') != NULL;
    } else {
        option = find_short(verb->options, (int)(unsigned char)word[1]);
        is_joined = word[2] != '\0';
    }
    if (option == NULL) return 1;
    *out_key = option->key;
    return option->arg != NULL && !is_joined && i + 1 < argc ? 2 : 1;
}

enum status options_for_ci(const struct verb *verb, int argc, char **argv, struct arena *arena,
                           struct options *out) {
    memset(out, 0, sizeof *out);
    TRY(arena_take(arena, 2 * (size_t)argc, sizeof *out->arguments, "options", &out->arguments));
    for (int i = 1, taken = 1; i < argc && strcmp(argv[i], "--") != 0; i += taken) {
        int key;
        taken = options_span(verb, argc, argv, i, &key);
        const char *const joined = strchr(argv[i], '=');
        const char *const value = taken > 1 ? argv[i + 1] : joined != NULL ? joined + 1 : NULL;
        if (key == KEY_JUNIT)
            out->junit = value;
        else if (key == KEY_GITHUB)
            out->github = 1;
        else if (key == KEY_JSON)
            out->json = 1;
        if (key == KEY_JUNIT) continue;
        out->arguments[out->argument_count++] = argv[i];
        if (value != NULL) out->arguments[out->argument_count++] = value;
    }
    return STATUS_OK;
}

static error_t take(int key, char *value, struct argp_state *state) {
    struct options *options = (struct options *)state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        options->arguments[options->argument_count++] = value;
        break;
    case KEY_SET:
        options->sets[options->set_count++] = value;
        break;
    case KEY_OUTPUT:
        options->output = value;
        break;
    case KEY_BACKEND:
        options->backend = value;
        break;
    case KEY_JUNIT:
        options->junit = value;
        break;
    case KEY_GITHUB:
        options->github = 1;
        break;
    case KEY_KEEP:
        options->keep = value;
        break;
    case KEY_ALLOW_MODULES:
        options->allow_modules = 1;
        break;
    case KEY_TRUSTED_MODULES:
        options->trusted = value;
        break;
    case KEY_REPRODUCIBLE:
        options->reproducible = 1;
        break;
    case KEY_OVERWRITE:
        options->overwrite = 1;
        break;
    case KEY_JSON:
        options->json = 1;
        break;
    case KEY_MARKDOWN:
        options->markdown = 1;
        break;
    case KEY_QUIET:
        options->quiet = 1;
        break;
    default:
        if (key < KEY_OWN || key >= KEY_OWN_END) return ARGP_ERR_UNKNOWN;
        options->given[options->given_count++] =
            (struct option_given){key, value, options->argument_count};
    }
    return 0;
}

static const struct option_given *find_given(const struct options *options, int key) {
    for (size_t i = options->given_count; i > 0; i--)
        if (options->given[i - 1].key == key) return &options->given[i - 1];
    return NULL;
}

const char *options_value(const struct options *options, int key) {
    const struct option_given *given = find_given(options, key);
    return given == NULL ? NULL : given->value;
}

enum status options_with(const struct options *options, struct arena *arena, const char *key,
                         const char *value, struct options *out) {
    const char *const *const sets = options->sets;
    char *set;
    *out = *options;
    if (value == NULL) return STATUS_OK;
    TRY(arena_take(arena, options->set_count + 1, sizeof *out->sets, "options", &out->sets));
    for (size_t i = 0; i < options->set_count; i++)
        out->sets[i] = sets[i];
    TRY(arena_format(arena, &set, "%s=%s", key, value));
    out->sets[out->set_count++] = set;
    return STATUS_OK;
}

int options_given(const struct options *options, int key) {
    return find_given(options, key) != NULL;
}

static enum status check_count(const struct verb *verb, const struct options *options) {
    size_t count = options->argument_count;
    if (count < verb->least && count == 0)
        FAIL(STATUS_INPUT, "%s: expected %s, got nothing; see twinstep %s --help", verb->name,
             verb->arguments, verb->name);
    if (count < verb->least)
        FAIL(STATUS_INPUT, "%s: expected %s, got no more than \"%s\"; see twinstep %s --help",
             verb->name, verb->arguments, options->arguments[count - 1], verb->name);
    if (count > verb->most)
        FAIL(STATUS_INPUT, "%s: expected %s, got one too many: \"%s\"", verb->name,
             verb->arguments[0] == '\0' ? "no argument" : verb->arguments,
             options->arguments[verb->most]);
    return STATUS_OK;
}

/* Refuses --output - where it is not standard output: a script that expects bytes there must not
 * find a file named "-" instead. */
static enum status check_output(const struct verb *verb, const struct options *options) {
    if (options->output == NULL || strcmp(options->output, "-") != 0 || verb->streams)
        return STATUS_OK;
    FAIL(STATUS_INPUT, "%s: --output: expected a file, got - (a file of that name is ./-)",
         verb->name);
}

/* Leaves out argp's note that what is mandatory for long options is so for short ones: -o is the
 * only short option with a value, and its row shows it. */
static char *filter_help(int key, const char *text, void *input) {
    (void)input;
    return key == ARGP_KEY_HELP_DUP_ARGS_NOTE ? NULL : (char *)(uintptr_t)text;
}

static struct argp argp_of(const struct verb *verb) {
    return (struct argp){verb->options, take, verb->arguments, verb->text, NULL, filter_help, NULL};
}

enum status options_read(const struct verb *verb, int argc, char **argv, struct arena *arena,
                         struct options *out) {
    struct checking checking = {verb, argc, argv, 0};
    struct argp argp = argp_of(verb);
    memset(out, 0, sizeof *out);
    TRY(check_words(&checking));
    out->help = checking.help;
    if (out->help) return STATUS_OK;
    TRY(arena_take(arena, (size_t)argc, sizeof *out->arguments, "arguments", &out->arguments));
    TRY(arena_take(arena, (size_t)argc, sizeof *out->sets, "options", &out->sets));
    TRY(arena_take(arena, (size_t)argc, sizeof *out->given, "options", &out->given));
    char **words; /* a copy, because argp moves options to the front and a trace records argv as it
                     was given */
    TRY(arena_take(arena, (size_t)argc + 1, sizeof *words, "arguments", &words));
    memcpy(words, argv, (size_t)argc * sizeof *words);
    /* In order: what stood before an option is part of what it says (option_given.before). */
    unsigned flags = ARGP_NO_EXIT | ARGP_NO_ERRS | ARGP_NO_HELP | ARGP_IN_ORDER;
    if (argp_parse(&argp, argc, words, flags, NULL, out) != 0)
        FAIL(STATUS_INPUT, "%s: cannot read the options; see twinstep %s --help", verb->name,
             verb->name);
    TRY(check_output(verb, out));
    return check_count(verb, out);
}

void options_help(const struct verb *verb, FILE *out) {
    struct argp argp = argp_of(verb);
    char name[64];
    snprintf(name, sizeof name, "twinstep %s", verb->name);
    argp_help(&argp, out, ARGP_HELP_USAGE | ARGP_HELP_PRE_DOC | ARGP_HELP_LONG | ARGP_HELP_POST_DOC,
              name);
}
