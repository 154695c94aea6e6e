/* SPDX-License-Identifier: Apache-2.0
 * Reads a page once, keeping a stack of open tags. */
#include "tests/report/helper_markup.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 64
#define NAMES_MAX 512
#define NAME_SIZE 64

struct reader {
    const char *at, *end;
    char open[DEPTH_MAX][NAME_SIZE];
    int depth;
    char ids[NAMES_MAX][NAME_SIZE];
    int id_count;
    char links[NAMES_MAX][NAME_SIZE];
    int link_count;
};

static char fault[256];

static const char *say(const struct reader *reader, const char *what) {
    char near[48];
    size_t left = (size_t)(reader->end - reader->at);
    snprintf(near, sizeof near, "%.*s", (int)(left < 40 ? left : 40), reader->at);
    snprintf(fault, sizeof fault, "%s at: %s", what, near);
    return fault;
}

static const char *check_bytes(const char *page, size_t length) {
    for (size_t i = 0; i < length;) {
        const unsigned char c = (unsigned char)page[i];
        size_t more = c < 0x80 ? 0 : c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc2 ? 1 : 9;
        if (more == 9 || i + more >= length + (more == 0)) return "bad UTF-8";
        if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) return "control character";
        for (size_t k = 1; k <= more; k++)
            if (((unsigned char)page[i + k] & 0xc0) != 0x80) return "bad UTF-8";
        i += 1 + more;
    }
    return NULL;
}

static int is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

static size_t take_name(struct reader *reader, char out[NAME_SIZE]) {
    size_t length = 0;
    while (reader->at < reader->end && is_name(*reader->at) && length + 1 < NAME_SIZE)
        out[length++] = *reader->at++;
    out[length] = '\0';
    return length;
}

static const char *check_entity(struct reader *reader) {
    static const char *const known[] = {"&amp;", "&lt;",   "&gt;",  "&quot;",
                                        "&#39;", "&#215;", "&#177;"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(reader->at, known[i], strlen(known[i])) == 0) {
            reader->at += strlen(known[i]);
            return NULL;
        }
    return say(reader, "a bare & or an unknown entity");
}

static const char *note_attribute(struct reader *reader, const char *name, const char *value,
                                  size_t length) {
    char text[NAME_SIZE];
    snprintf(text, sizeof text, "%.*s", (int)length, value);
    if (strncmp(name, "on", 2) == 0) return say(reader, "an event handler");
    if (strcmp(name, "src") == 0 || strcmp(name, "srcset") == 0 || strcmp(name, "style") == 0)
        return say(reader, "an attribute that loads or styles");
    if (strcmp(name, "href") == 0) {
        if (text[0] != '#') return say(reader, "a link that leaves the page");
        if (reader->link_count < NAMES_MAX) strcpy(reader->links[reader->link_count++], text + 1);
    }
    if (strcmp(name, "id") == 0) {
        for (int i = 0; i < reader->id_count; i++)
            if (strcmp(reader->ids[i], text) == 0) return say(reader, "an id twice");
        if (reader->id_count < NAMES_MAX) strcpy(reader->ids[reader->id_count++], text);
    }
    return NULL;
}

static const char *take_attribute(struct reader *reader, char names[][NAME_SIZE], int *count) {
    char *name = names[*count];
    if (take_name(reader, name) == 0) return say(reader, "an attribute without a name");
    for (int i = 0; i < *count; i++)
        if (strcmp(names[i], name) == 0) return say(reader, "an attribute twice");
    if (++*count == 16) return say(reader, "many attributes");
    if (strncmp(reader->at, "=\"", 2) != 0) return say(reader, "an attribute without a value");
    reader->at += 2;
    const char *value = reader->at;
    while (reader->at < reader->end && *reader->at != '"') {
        if (*reader->at == '<') return say(reader, "< in an attribute");
        if (*reader->at == '&') {
            const char *wrong = check_entity(reader);
            if (wrong != NULL) return wrong;
        } else {
            reader->at++;
        }
    }
    const char *wrong = note_attribute(reader, name, value, (size_t)(reader->at - value));
    reader->at++;
    return wrong;
}

static const char *close_tag(struct reader *reader) {
    char name[NAME_SIZE];
    reader->at += 2;
    take_name(reader, name);
    if (*reader->at != '>') return say(reader, "a closing tag that does not end");
    if (reader->depth == 0 || strcmp(reader->open[reader->depth - 1], name) != 0)
        return say(reader, "a closing tag that opens nothing");
    reader->depth--;
    reader->at++;
    return NULL;
}

/* The text of <style> is read as bytes. */
static const char *skip_style(struct reader *reader) {
    const char *end = strstr(reader->at, "</style>");
    if (end == NULL) return say(reader, "style without an end");
    for (const char *c = reader->at; c < end; c++)
        if (*c == '<' || strncmp(c, "url(", 4) == 0 || strncmp(c, "@import", 7) == 0)
            return say(reader, "a style that loads");
    reader->at = end;
    return NULL;
}

static const char *open_tag(struct reader *reader) {
    static const char *const refused[] = {"script",        "link",  "iframe", "img",
                                          "object",        "embed", "base",   "form",
                                          "foreignObject", "use",   "image"};
    char name[NAME_SIZE], names[16][NAME_SIZE];
    int count = 0;
    reader->at++;
    if (take_name(reader, name) == 0) return say(reader, "a bare <");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (strcmp(name, refused[i]) == 0) return say(reader, "an element that loads or runs");
    while (*reader->at == ' ') {
        reader->at++;
        const char *wrong = take_attribute(reader, names, &count);
        if (wrong != NULL) return wrong;
    }
    const int empty = *reader->at == '/';
    reader->at += empty;
    if (*reader->at++ != '>') return say(reader, "a tag that does not end");
    if (empty) return NULL;
    if (reader->depth == DEPTH_MAX) return say(reader, "tags too deep");
    strcpy(reader->open[reader->depth++], name);
    return strcmp(name, "style") == 0 ? skip_style(reader) : NULL;
}

static const char *check_links(const struct reader *reader) {
    for (int l = 0; l < reader->link_count; l++) {
        int found = 0;
        for (int i = 0; i < reader->id_count; i++)
            found |= strcmp(reader->ids[i], reader->links[l]) == 0;
        if (!found) return "a link to an id that is not there";
    }
    return NULL;
}

const char *markup_fault(const char *page, size_t length) {
    static const char begin[] = "<!DOCTYPE html>\n";
    struct reader *reader = (struct reader *)calloc(1, sizeof *reader);
    const char *wrong = check_bytes(page, length);
    if (wrong == NULL && strncmp(page, begin, strlen(begin)) != 0) wrong = "no doctype";
    reader->at = page + strlen(begin);
    reader->end = page + length;
    while (wrong == NULL && reader->at < reader->end) {
        if (strncmp(reader->at, "</", 2) == 0)
            wrong = close_tag(reader);
        else if (*reader->at == '<')
            wrong = open_tag(reader);
        else if (*reader->at == '&')
            wrong = check_entity(reader);
        else if (*reader->at++ == '>')
            wrong = say(reader, "a bare >");
    }
    if (wrong == NULL && reader->depth != 0) wrong = "a tag stays open";
    if (wrong == NULL) wrong = check_links(reader);
    free(reader);
    return wrong;
}

/* ---- text ---- */

static size_t read_entity(const char *at, char *out) {
    static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    static const char values[] = "&<>\"'";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(at, names[i], strlen(names[i])) == 0) {
            *out = values[i];
            return strlen(names[i]);
        }
    *out = *at;
    return 1;
}

char *markup_text(const char *page, const char *after, const char *tag) {
    char open[NAME_SIZE], close[NAME_SIZE];
    snprintf(open, sizeof open, "<%s", tag);
    snprintf(close, sizeof close, "</%s>", tag);
    const char *from = strstr(page, after);
    if (from != NULL) from = strstr(from, open);
    if (from != NULL) from = strchr(from, '>');
    if (from == NULL) return NULL;
    const char *end = strstr(from, close);
    if (end == NULL) return NULL;
    char *out = (char *)calloc((size_t)(end - from) + 1, 1);
    size_t length = 0;
    for (const char *at = from + 1; at < end;) {
        if (*at == '<')
            at = strchr(at, '>') + 1;
        else
            at += read_entity(at, &out[length++]);
    }
    return out;
}
