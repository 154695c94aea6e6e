/* SPDX-License-Identifier: Apache-2.0
 * Manual pages: twinstep(1), and one page a verb as git has them, in the man macros of roff.
 *
 * A page holds what --help holds, in the order of the tables. It carries no date, so that two
 * builds of one source write the same bytes. */
#include "cli/pages.h"

#include <ctype.h>
#include <string.h>

/* Text that roff prints as it stands. Hyphens become minus signs, because most of them stand in
 * options and names that a reader copies from the terminal. */
static void put_text(const char *text, size_t length, FILE *out) {
    static const struct {
        char from;
        const char *to;
    } escapes[] = {{'\\', "\\e"},  {'-', "\\-"},   {'\'', "\\(aq"},
                   {'`', "\\(ga"}, {'~', "\\(ti"}, {'^', "\\(ha"}};
    int line_begins = 1;
    for (size_t i = 0; i < length; i++) {
        const char *to = NULL;
        for (size_t k = 0; k < COUNT_OF(escapes); k++)
            if (escapes[k].from == text[i]) to = escapes[k].to;
        if (line_begins && text[i] == '.') fputs("\\&", out);
        if (to != NULL)
            fputs(to, out);
        else
            fputc(text[i], out);
        line_begins = text[i] == '\n';
    }
}

static void put(const char *text, FILE *out) {
    put_text(text, strlen(text), out);
}

static void begin(const char *name, const char *brief, FILE *out) {
    fputs(".TH ", out);
    for (const char *c = name; *c != '\0'; c++)
        fputc(toupper((unsigned char)*c), out);
    fprintf(out, " 1 \"\" \"twinstep %s\" \"User Commands\"\n.nh\n.ad l\n.SH NAME\n",
            TWINSTEP_VERSION);
    put(name, out);
    fputs(" \\- ", out);
    put(brief, out);
    fputc('\n', out);
}

/* The text behind "Exit status: ", up to the example. */
static void put_exit(const char *text, FILE *out) {
    static const char word[] = "Exit status: ";
    const char *end = strstr(text, "Example: ");
    size_t length = end == NULL ? strlen(text) : (size_t)(end - text);
    while (length > 0 && text[length - 1] == '\n')
        length--;
    fputs(".SH EXIT STATUS\n", out);
    put_text(text + strlen(word), length - strlen(word), out);
    fputc('\n', out);
}

/* Lines behind "Example: "; later ones are indented to stand under the first. */
static void put_example(const char *text, FILE *out) {
    static const char word[] = "Example: ";
    const char *line = strstr(text, word);
    if (line == NULL) return;
    fputs(".SH EXAMPLE\n.EX\n", out);
    for (line += strlen(word); *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        put_text(line, length, out);
        fputc('\n', out);
        line += length;
        line += strspn(line, "\n ");
    }
    fputs(".EE\n", out);
}

/* The other pages, but `self` (NULL: twinstep(1) itself). */
static void put_others(const struct verb *self, FILE *out) {
    const struct verb *verb;
    const char *between = "";
    fputs(".SH SEE ALSO\n", out);
    if (self != NULL) {
        fputs(".BR twinstep (1)", out);
        between = ",\n";
    }
    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        char name[PAGE_NAME];
        if (verb == self || verb->brief == NULL) continue;
        page_name(verb, name);
        fprintf(out, "%s.BR twinstep\\-", between);
        put(name, out);
        fputs(" (1)", out);
        between = ",\n";
    }
    fputc('\n', out);
}

void page_manual(FILE *out) {
    const struct verb *verb;
    begin("twinstep", "find why two trainings that should agree do not", out);
    fputs(".SH SYNOPSIS\n.B twinstep\n.I VERB\n[\\fIOPTION\\fR]...\n.br\n.B twinstep\n.I VERB\n"
          ".B \\-\\-help\n.br\n.B twinstep \\-\\-version\n.SH DESCRIPTION\n",
          out);
    put(usage_about, out);
    fputs(".SH VERBS\nEach has a page of its own.\n", out);
    for (size_t i = 0; (verb = verb_at(i)) != NULL; i++) {
        if (verb->brief == NULL) continue;
        fputs(".TP\n.B ", out);
        put(verb->name, out);
        fputc('\n', out);
        put(verb->brief, out);
        fputc('\n', out);
    }
    put_exit(usage_exit, out);
    put_example("Example: twinstep demo", out);
    put_others(NULL, out);
}

static void put_option(const struct argp_option *option, FILE *out) {
    fputs(".TP\n", out);
    if (option->key < 256) fprintf(out, "\\fB\\-%c\\fR, ", option->key);
    fputs("\\fB\\-\\-", out);
    put(option->name, out);
    fputs("\\fR", out);
    if (option->arg != NULL) {
        fputs("=\\fI", out);
        put(option->arg, out);
        fputs("\\fR", out);
    }
    fputc('\n', out);
    put(option->doc, out);
    fputc('\n', out);
}

void page_manual_verb(const struct verb *verb, FILE *out) {
    const char *behind = strchr(verb->text, '\v');
    const size_t before = behind == NULL ? strlen(verb->text) : (size_t)(behind - verb->text);
    char name[PAGE_NAME], title[PAGE_NAME + 10];
    page_name(verb, name);
    snprintf(title, sizeof title, "twinstep-%s", name);
    begin(title, verb->brief, out);
    fprintf(out, ".SH SYNOPSIS\n.B twinstep %s\n[\\fIOPTION\\fR]...\n", verb->name);
    if (verb->arguments[0] != '\0') {
        fputs("\\fI", out);
        put(verb->arguments, out);
        fputs("\\fR\n", out);
    }
    fputs(".SH DESCRIPTION\n", out);
    put_text(verb->text, before, out);
    fputs("\n.SH OPTIONS\nOptions are written in full; they are not shortened.\n", out);
    for (const struct argp_option *option = verb->options; option->name != NULL; option++)
        put_option(option, out);
    if (behind != NULL && strncmp(behind + 1, "Exit status: ", 13) == 0)
        put_exit(behind + 1, out);
    else
        put_exit(usage_exit, out);
    if (behind != NULL) put_example(behind + 1, out);
    put_others(verb, out);
}
