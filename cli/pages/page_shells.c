/* SPDX-License-Identifier: Apache-2.0
 * The tables of shell completion, as functions of bash and of zsh.
 *
 * What is done with them is written in the shells' own languages, in
 * cmake/packaging/completion.bash and completion.zsh; the build puts those files behind these
 * tables (cmake/packaging.cmake). */
#include "cli/pages.h"

#include <string.h>

/* Whether verb `index` is the first of the verbs that share its first word, as `lr table` is. */
static int is_first_of_word(size_t index) {
    const char *name = verb_at(index)->name;
    const size_t length = strcspn(name, " ");
    for (size_t i = 0; i < index; i++) {
        const char *other = verb_at(i)->name;
        if (strcspn(other, " ") == length && strncmp(other, name, length) == 0) return 0;
    }
    return 1;
}

/* A case of the shell for each source, with its words in quotes. */
static void put_sources(const struct page_source *sources, size_t count, const char *begin,
                        const char *quote, const char *end, FILE *out) {
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "    %s) %s", sources[i].name, begin);
        for (size_t k = 0; k < sources[i].count; k++)
            fprintf(out, "%s%s%s%s", k == 0 ? "" : " ", quote, sources[i].words[k], quote);
        fprintf(out, "%s ;;\n", end);
    }
}

/* First words under '*', and the second ones of a group under '* lr'. */
static void bash_verbs(FILE *out) {
    const struct verb *verb;
    fputs("    '*') echo '--help --version", out);
    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++)
        if (verb->brief != NULL && is_first_of_word(i))
            fprintf(out, " %.*s", (int)strcspn(verb->name, " "), verb->name);
    fputs("' ;;\n", out);
    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        const char *second = strchr(verb->name, ' ');
        if (second == NULL) continue;
        fprintf(out, "    '* %.*s') echo %s ;;&\n", (int)(second - verb->name), verb->name,
                second + 1);
    }
}

static void bash_offer(struct page_offer offer, FILE *out) {
    const char *between = offer.source == NULL ? "" : "|";
    if (offer.source != NULL) fprintf(out, "%s%s", offer.listed ? "," : "", offer.source);
    if (offer.files) fprintf(out, "%sfiles", between);
    if (offer.folders && !offer.files) fprintf(out, "%sfolders", between);
}

static void bash_verb(const struct verb *verb, FILE *out) {
    fprintf(out, "    '%s')\n        options='", verb->name);
    for (const struct argp_option *o = verb->options; o->name != NULL; o++) {
        if (o->key < 256) fprintf(out, "-%c ", o->key);
        fprintf(out, "--%s%s", o->name, o[1].name == NULL ? "" : " ");
    }
    fputs("'\n        operands='", out);
    bash_offer(page_offer(verb, NULL), out);
    fputs("'\n        takes='", out);
    for (const struct argp_option *o = verb->options; o->name != NULL; o++) {
        if (o->arg == NULL) continue;
        fprintf(out, " --%s:", o->name);
        bash_offer(page_offer(verb, o), out);
        if (o->key >= 256) continue;
        fprintf(out, " -%c:", o->key);
        bash_offer(page_offer(verb, o), out);
    }
    fputs("' ;;\n", out);
}

void page_bash(const struct page_source *sources, size_t count, FILE *out) {
    const struct verb *verb;
    fputs("# Completion for bash, written by twinstep " TWINSTEP_VERSION
          " from the tables of its --help.\n\n"
          "# What completes the words of one kind; the path of a key stands for its legal values.\n"
          "_twinstep_words() {\n    case $1 in\n",
          out);
    bash_verbs(out);
    put_sources(sources, count, "echo '", "", "'", out);
    fputs("    esac\n}\n\n"
          "# Sets options and operands of the verb; and takes, what completes an option's value.\n"
          "_twinstep_verb() {\n    options='' operands='' takes=''\n    case $1 in\n",
          out);
    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++)
        if (verb->brief != NULL) bash_verb(verb, out);
    fputs("    *) return 1 ;;\n    esac\n}\n\n", out);
}

/* Inside single quotes. In a description of _arguments brackets are escaped, in one of _describe
 * and in the message of an option colons are. */
static void zsh_quoted(const char *text, const char *escaped, FILE *out) {
    for (; *text != '\0'; text++) {
        if (strchr(escaped, *text) != NULL) fputc('\\', out);
        if (*text == '\'')
            fputs("'\\''", out);
        else
            fputc(*text, out);
    }
}

/* The verbs that a word begins; where no verb is that word alone, the group. */
static void zsh_verbs(FILE *out) {
    const struct verb *verb;
    fputs("_twinstep_verbs() {\n    case $1 in\n    '') verbs=(\n", out);
    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        const int length = (int)strcspn(verb->name, " ");
        if (verb->brief == NULL || !is_first_of_word(i)) continue;
        fprintf(out, "        '%.*s:", length, verb->name);
        if (verb->name[length] == ' ')
            fprintf(out, "see twinstep %.*s --help", length, verb->name);
        else
            zsh_quoted(verb->brief, ":", out);
        fputs("'\n", out);
    }
    fputs("        ) ;;\n", out);
    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        const char *second = strchr(verb->name, ' ');
        if (second == NULL) continue;
        fprintf(out, "    %.*s) verbs+=('%s:", (int)(second - verb->name), verb->name, second + 1);
        zsh_quoted(verb->brief, ":", out);
        fputs("') ;|\n", out);
    }
    fputs("    esac\n    (($#verbs))\n}\n\n", out);
}

/* What _arguments calls, behind the last colon: as it stands, because it begins with a blank. */
static void zsh_action(struct page_offer offer, FILE *out) {
    if (offer.source != NULL && offer.files)
        fprintf(out, " _twinstep_or_files %s", offer.source);
    else if (offer.source != NULL && strncmp(offer.source, "keys", 4) == 0)
        fprintf(out, " _twinstep_keys %s", offer.source);
    else if (offer.source != NULL)
        fprintf(out, " %s %s", offer.listed ? "_twinstep_list" : "_twinstep_one", offer.source);
    else if (offer.files)
        fputs("_files", out);
    else if (offer.folders)
        fputs("_files -/", out);
    else
        fputc(' ', out); /* nothing can be offered but the message */
}

static void zsh_option(const struct verb *verb, const struct argp_option *option, FILE *out) {
    const char *repeats = strstr(option->doc, "(repeatable)") != NULL ? "*" : "";
    const char *sign = option->arg == NULL ? "" : "=";
    fputs(" \\\n        ", out);
    if (option->key < 256)
        fprintf(out, "'(-%c --%s)'{-%c%s,--%s%s}'[", option->key, option->name, option->key,
                option->arg == NULL ? "" : "+", option->name, sign);
    else
        fprintf(out, "'%s--%s%s[", repeats, option->name, sign);
    zsh_quoted(option->doc, "[]\\", out);
    fputc(']', out);
    if (option->arg != NULL) {
        fputc(':', out);
        zsh_quoted(option->arg, ":\\", out);
        fputc(':', out);
        zsh_action(page_offer(verb, option), out);
    }
    fputc('\'', out);
}

static void zsh_verb(const struct verb *verb, FILE *out) {
    char name[PAGE_NAME];
    page_name(verb, name);
    fprintf(out, "_twinstep-%s() {\n    _arguments -s -S", name);
    for (const struct argp_option *option = verb->options; option->name != NULL; option++)
        zsh_option(verb, option, out);
    if (verb->arguments[0] != '\0') {
        fputs(" \\\n        '*:", out);
        zsh_quoted(verb->arguments, ":\\", out);
        fputc(':', out);
        zsh_action(page_offer(verb, NULL), out);
        fputc('\'', out);
    }
    fputs("\n}\n\n", out);
}

void page_zsh(const struct page_source *sources, size_t count, FILE *out) {
    const struct verb *verb;
    fputs("#compdef twinstep\n# Completion for zsh, written by twinstep " TWINSTEP_VERSION
          " from the tables of its --help.\n\n"
          "# Sets offered; the path of a key stands for its legal values.\n"
          "_twinstep_words() {\n    case $1 in\n",
          out);
    put_sources(sources, count, "offered=(", "'", ")", out);
    fputs("    *) return 1 ;;\n    esac\n}\n\n", out);
    zsh_verbs(out);
    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++)
        if (verb->brief != NULL) zsh_verb(verb, out);
}
