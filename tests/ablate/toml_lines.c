/* SPDX-License-Identifier: Apache-2.0
 * What toml_truth.py asks: reads documents from stdin and prints one line of JSON for each. A
 * document is its length in decimal digits, a newline, and its bytes; two are one with a space
 * between the lengths.
 *
 * Of one document: {"tree": ..., "written": TEXT}, where a string is ["q", TEXT] and any other
 * value ["p", TEXT]. Of two: {"leaves": [...], "all": TEXT, "odd": TEXT}, the mixed files with all
 * leaves taken and with every second one. Of what cannot be read: {"error": TEXT}. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ablate/ablate_leaves.h"
#include "ablate/ablate_toml.h"

static void must(enum status status) {
    if (status == STATUS_OK) return;
    fprintf(stderr, "toml_lines: %s\n", status_text());
    exit(1);
}

static void put_text(struct ablate_pen *pen, const char *text) {
    char *quoted;
    must(leaves_quote(text, pen->arena, &quoted));
    must(ablate_put_text(pen, quoted));
}

static void put_tree(struct ablate_pen *pen, const struct yaml_node *node) {
    if (node->kind != YAML_MAP && node->kind != YAML_LIST) {
        must(ablate_put_text(pen, node->kind == YAML_QUOTED ? "[\"q\", " : "[\"p\", "));
        put_text(pen, node->text);
        must(ablate_put_text(pen, "]"));
        return;
    }
    must(ablate_put_text(pen, node->kind == YAML_MAP ? "{" : "["));
    if (node->kind == YAML_LIST) must(ablate_put_text(pen, "\"l\""));
    for (const struct yaml_node *child = node->first; child != NULL; child = child->next) {
        if (child != node->first || node->kind == YAML_LIST) must(ablate_put_text(pen, ", "));
        if (node->kind == YAML_MAP) {
            put_text(pen, child->key);
            must(ablate_put_text(pen, ": "));
        }
        put_tree(pen, child);
    }
    must(ablate_put_text(pen, node->kind == YAML_MAP ? "}" : "]"));
}

static void put_pair(struct ablate_pen *pen, const char *key, const char *text) {
    must(ablate_put_text(pen, key));
    put_text(pen, text);
}

static enum status look_at_one(struct ablate_pen *pen, const char *text, size_t length) {
    struct ablate_pen written = {.arena = pen->arena};
    struct toml_node *root;
    TRY(toml_parse(pen->arena, "one.toml", text, length, &root));
    must(ablate_put_text(pen, "{\"tree\": "));
    put_tree(pen, &root->node);
    must(toml_write(&written, &root->node));
    put_pair(pen, ", \"written\": ", written.text);
    return STATUS_OK;
}

static enum status look_at_two(struct ablate_pen *pen, struct leaves *leaves) {
    unsigned char *taken;
    const char *text;
    size_t length;
    TRY(leaves_parse(pen->arena, leaves));
    must(ablate_put_text(pen, "{\"leaves\": ["));
    for (size_t i = 0; i < leaves->count; i++)
        put_pair(pen, i == 0 ? "" : ", ", leaves->differ[i]);
    must(arena_take(pen->arena, leaves->count, 1, "leaves", &taken));
    for (int odd = 0; odd < 2; odd++) {
        for (size_t i = 0; i < leaves->count; i++)
            taken[i] = odd ? i % 2 : 1;
        must(leaves_compose(leaves, taken, pen->arena, &text, &length));
        put_pair(pen, odd ? ", \"odd\": " : "], \"all\": ", text);
    }
    return STATUS_OK;
}

/* A document of stdin, with a NUL behind it. */
static char *read_bytes(struct arena *arena, size_t length) {
    char *text;
    must(arena_take(arena, length + 1, 1, "a document", &text));
    if (fread(text, 1, length, stdin) != length) {
        fprintf(stderr, "toml_lines: a document is shorter than its length says\n");
        exit(1);
    }
    return text;
}

int main(void) {
    char line[64];
    while (fgets(line, sizeof line, stdin) != NULL) {
        struct arena arena = ARENA_EMPTY;
        struct ablate_pen pen = {.arena = &arena};
        struct leaves leaves = {.paths = {"one.toml", "two.toml"}, .kind = LEAVES_TOML};
        char *rest;
        leaves.lengths[0] = strtoul(line, &rest, 10);
        leaves.bytes[0] = read_bytes(&arena, leaves.lengths[0]);
        enum status status;
        if (*rest == ' ') {
            leaves.lengths[1] = strtoul(rest, NULL, 10);
            leaves.bytes[1] = read_bytes(&arena, leaves.lengths[1]);
            status = look_at_two(&pen, &leaves);
        } else {
            status = look_at_one(&pen, leaves.bytes[0], leaves.lengths[0]);
        }
        if (status != STATUS_OK) {
            char *why;
            must(arena_format(&arena, &why, "%s", status_text()));
            put_pair(&pen, "{\"error\": ", why);
        }
        if (printf("%s}\n", pen.text) < 0) return 1;
        arena_close(&arena);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
