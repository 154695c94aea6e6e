/* SPDX-License-Identifier: Apache-2.0
 * Reads a list of digests, one a line. What follows the digest in its line is the file's name, as
 * sha256sum prints it, and is not looked at: a module is trusted for what it holds. */
#include "cli/consent.h"

#include <string.h>

#include "base/module.h"
#include "scenarios/textfile.h"

#define TRUSTED_BYTES_MAX ((size_t)1 << 20)
#define HEX_DIGITS 64

static enum status read_line(const char *path, size_t number, char *line, const char **out) {
    const size_t digits = strspn(line, "0123456789abcdef");
    const char end = line[digits];
    if (digits != HEX_DIGITS || (end != '\0' && end != ' ' && end != '\t'))
        FAIL(STATUS_INPUT,
             "%s:%zu: error: expected a SHA-256 (64 lower-case hexadecimal digits) and a file's "
             "name, as sha256sum prints them, got \"%.80s\"",
             path, number, line);
    line[digits] = '\0';
    *out = line;
    return STATUS_OK;
}

static enum status read_trusted(struct cli *cli, const char *path, struct module_consent *consent) {
    char *text, *next;
    size_t length, lines = 1;
    TRY(textfile_read(&cli->arena, path, TRUSTED_BYTES_MAX, &text, &length));
    TRY(plaintext_check(path, text, length));
    for (size_t i = 0; i < length; i++)
        lines += text[i] == '\n';
    const char **digests;
    TRY(arena_take(&cli->arena, lines, sizeof *digests, "trusted modules", &digests));
    size_t number = 0;
    for (char *line = text; line != NULL; line = next) {
        next = strchr(line, '\n');
        if (next != NULL) *next++ = '\0';
        line[strcspn(line, "\r")] = '\0';
        number++;
        if (line[0] == '\0' || line[0] == '#') continue;
        TRY(read_line(path, number, line, &digests[consent->trusted_count++]));
    }
    consent->trusted = digests;
    return STATUS_OK;
}

enum status consent_ask(struct cli *cli, const struct options *options) {
    struct module_consent *consent;
    TRY(arena_take(&cli->arena, 1, sizeof *consent, "consent", &consent));
    consent->all = options->allow_modules;
    module_ask(consent); /* nothing is loaded from here on, whatever the file holds */
    return options->trusted == NULL ? STATUS_OK : read_trusted(cli, options->trusted, consent);
}

enum status consent_give(struct cli *cli) {
    struct module_consent *consent;
    TRY(arena_take(&cli->arena, 1, sizeof *consent, "consent", &consent));
    consent->all = 1;
    module_ask(consent);
    return STATUS_OK;
}
