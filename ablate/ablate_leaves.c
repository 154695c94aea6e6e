/* SPDX-License-Identifier: Apache-2.0
 * Walks two trees side by side. A value that is written comes out as it was read: a plain one as
 * its text, a quoted one in double quotes, so that whoever reads it sees the same type. */
#include "ablate/ablate_leaves.h"

#include <stdio.h>
#include <string.h>

#include "ablate/ablate_pen.h"
#include "ablate/ablate_toml.h"
#include "base/sort.h"
#include "scenarios/textfile.h"
#include "scenarios/yaml.h"

#define FILE_BYTES_MAX ((size_t)4 << 20)

/* How many bytes a character has that some reader takes for the end of a line, or refuses in a
 * text: DEL, C1 (with NEL), the separators of lines and paragraphs, the byte order mark. 0: another
 * one. */
static size_t odd_character(const char *text, unsigned *out) {
    const unsigned char *const at = (const unsigned char *)text;
    *out = at[0];
    if (at[0] == 0x7f) return 1;
    *out = at[1];
    if (at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0) return 2;
    *out = 0x2000u | (at[1] == 0 ? 0u : at[2] & 0x3fu);
    if (at[0] == 0xe2 && at[1] == 0x80 && (at[2] == 0xa8 || at[2] == 0xa9)) return 3;
    *out = 0xfeff;
    return at[0] == 0xef && at[1] == 0xbb && at[2] == 0xbf ? 3 : 0;
}

static enum status put_quoted(struct ablate_pen *pen, const char *text) {
    TRY(ablate_put(pen, "\"", 1));
    for (; *text != '\0'; text++) {
        char escaped[8];
        unsigned code;
        const size_t odd = odd_character(text, &code);
        if (odd > 0)
            snprintf(escaped, sizeof escaped, "\\u%04x", code & 0xffff);
        else if (*text == '"' || *text == '\\')
            snprintf(escaped, sizeof escaped, "\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned)(unsigned char)*text);
        else
            snprintf(escaped, sizeof escaped, "%c", *text);
        TRY(ablate_put_text(pen, escaped));
        if (odd > 0) text += odd - 1;
    }
    return ablate_put(pen, "\"", 1);
}

enum status leaves_quote(const char *text, struct arena *arena, char **out) {
    struct ablate_pen pen = {.arena = arena};
    TRY(put_quoted(&pen, text));
    *out = pen.text;
    return STATUS_OK;
}

/* ---- reading ---- */

/* Says whether a key is a word that no reader of YAML takes for a number, a truth value or nothing.
 * Its quotes, if it had any, are not known. */
static int is_word(const char *key) {
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    static const char *const words[] = {"true", "false", "yes", "no",  "on",
                                        "off",  "null",  "nan", "inf", ""};
    char low[8] = "";
    for (size_t i = 0; i + 1 < sizeof low && key[i] != '\0'; i++)
        low[i] = (char)(key[i] >= 'A' && key[i] <= 'Z' ? key[i] + 32 : key[i]);
    for (size_t i = 0; strlen(key) < sizeof low && i < COUNT_OF(words); i++)
        if (strcmp(low, words[i]) == 0) return 0;
    const char first = key[0];
    return key[strspn(key, letters)] == '\0' && !(first >= '0' && first <= '9') && first != '-';
}

static enum status check_keys(const struct yaml_node *node) {
    for (const struct yaml_node *child = node->first; child != NULL; child = child->next) {
        if (node->kind == YAML_MAP && !is_word(child->key))
            return yaml_fail_key(child, "a key that may be no word: \"%s\"", child->key);
        TRY(check_keys(child));
    }
    return STATUS_OK;
}

static int ends_with(const char *text, const char *end) {
    const size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* Of maps the order of keys does not count. */
static int same(const struct yaml_node *a, const struct yaml_node *b) {
    if (a->kind != b->kind || a->count != b->count) return 0;
    if (a->kind == YAML_PLAIN || a->kind == YAML_QUOTED) return strcmp(a->text, b->text) == 0;
    const struct yaml_node *other = b->first;
    for (const struct yaml_node *child = a->first; child != NULL; child = child->next) {
        const struct yaml_node *y = a->kind == YAML_MAP ? yaml_child(b, child->key) : other;
        if (y == NULL || !same(child, y)) return 0;
        other = other->next;
    }
    return 1;
}

static enum status path_of(const char *above, const char *key, struct arena *arena, char **out) {
    char *quoted = NULL;
    if (!is_word(key)) TRY(leaves_quote(key, arena, &quoted));
    return arena_format(arena, out, "%s%s%s", above, above[0] == '\0' ? "" : ".",
                        quoted == NULL ? key : quoted);
}

/* How many leaves the two arrays have room for. */
struct room {
    size_t differ, values;
};

static enum status add_leaf(struct leaves *out, const char *path, const struct yaml_node *a,
                            const struct yaml_node *b, struct room *room, struct arena *arena) {
    const size_t count = out->count + 1;
    TRY(arena_grow(arena, count, &room->differ, sizeof *out->differ, "leaves", &out->differ));
    TRY(arena_grow(arena, count, &room->values, sizeof *out->values, "leaves", &out->values));
    out->differ[out->count] = path;
    out->values[out->count++] = (struct leaf_values){{a, b}};
    return STATUS_OK;
}

static enum status find_leaves(const struct yaml_node *a, const struct yaml_node *b,
                               const char *above, struct leaves *out, struct room *room,
                               struct arena *arena) {
    char *path;
    for (const struct yaml_node *x = a->first; x != NULL; x = x->next) {
        const struct yaml_node *y = yaml_child(b, x->key);
        TRY(path_of(above, x->key, arena, &path));
        if (y != NULL && x->kind == YAML_MAP && y->kind == YAML_MAP)
            TRY(find_leaves(x, y, path, out, room, arena));
        else if (y == NULL || !same(x, y))
            TRY(add_leaf(out, path, x, y, room, arena));
    }
    for (const struct yaml_node *y = b->first; y != NULL; y = y->next) {
        if (yaml_child(a, y->key) != NULL) continue;
        TRY(path_of(above, y->key, arena, &path));
        TRY(add_leaf(out, path, NULL, y, room, arena));
    }
    return STATUS_OK;
}

static enum status kind_of(const char *path, enum leaves_kind *out) {
    static const struct {
        const char *end;
        enum leaves_kind kind;
    } ends[] = {{".yaml", LEAVES_YAML},
                {".yml", LEAVES_YAML},
                {".json", LEAVES_JSON},
                {".toml", LEAVES_TOML}};
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        if (!ends_with(path, ends[i].end)) continue;
        *out = ends[i].kind;
        return STATUS_OK;
    }
    FAIL(STATUS_INPUT, "%s is neither .yaml, .json nor .toml", path);
}

enum status leaves_parse(struct arena *arena, struct leaves *out) {
    for (int i = 0; i < 2; i++) {
        struct yaml_node *root;
        if (out->kind == LEAVES_TOML) {
            struct toml_node *document;
            TRY(toml_parse(arena, out->paths[i], out->bytes[i], out->lengths[i], &document));
            root = &document->node;
        } else {
            TRY(yaml_parse(arena, out->paths[i], 1, out->bytes[i], out->lengths[i], &root));
        }
        if (root->kind != YAML_MAP) return yaml_fail(root, "no map at the top");
        if (out->kind == LEAVES_YAML) TRY(check_keys(root));
        out->roots[i] = root;
    }
    struct room room = {0, 0};
    return find_leaves(out->roots[0], out->roots[1], "", out, &room, arena);
}

enum status leaves_read(const char *first, const char *second, struct arena *arena,
                        struct leaves *out) {
    static const char *const names[] = {"YAML", "JSON", "TOML"};
    enum leaves_kind kinds[2];
    *out = (struct leaves){.paths = {first, second}};
    for (int i = 0; i < 2; i++)
        TRY(kind_of(out->paths[i], &kinds[i]));
    if (kinds[0] != kinds[1])
        FAIL(STATUS_INPUT, "%s is %s and %s is %s", first, names[kinds[0]], second,
             names[kinds[1]]);
    out->kind = kinds[0];
    for (int i = 0; i < 2; i++) {
        char *text;
        TRY(textfile_read(arena, out->paths[i], FILE_BYTES_MAX, &text, &out->lengths[i]));
        out->bytes[i] = text;
    }
    return leaves_parse(arena, out);
}

/* ---- writing ---- */

struct writing {
    const struct leaves *leaves;
    const unsigned char *taken;
    struct ablate_pen pen;
};

static enum status indent(struct writing *w, int depth) {
    for (int i = 0; i < depth; i++)
        TRY(ablate_put(&w->pen, "  ", 2));
    return STATUS_OK;
}

static enum status write_scalar(struct writing *w, const struct yaml_node *node) {
    if (node->kind == YAML_NULL) return ablate_put_text(&w->pen, "null");
    /* a plain text of several lines is a text, and would not be plain on one */
    if (node->kind == YAML_QUOTED || strchr(node->text, '\n') != NULL)
        return put_quoted(&w->pen, node->text);
    return ablate_put_text(&w->pen, node->text);
}

static enum status write_key(struct writing *w, const char *key) {
    TRY(w->leaves->kind == LEAVES_JSON ? put_quoted(&w->pen, key) : ablate_put_text(&w->pen, key));
    return ablate_put(&w->pen, ":", 1);
}

static enum status write_node(struct writing *w, const struct yaml_node *node, int depth);

/* JSON's brackets, and YAML's for what is empty. */
static enum status write_flow(struct writing *w, const struct yaml_node *node, int depth) {
    const int is_map = node->kind == YAML_MAP;
    TRY(ablate_put_text(&w->pen, is_map ? "{" : "["));
    for (const struct yaml_node *child = node->first; child != NULL; child = child->next) {
        if (child != node->first) TRY(ablate_put(&w->pen, ", ", 2));
        if (is_map) {
            TRY(write_key(w, child->key));
            TRY(ablate_put(&w->pen, " ", 1));
        }
        TRY(write_node(w, child, depth + 1));
    }
    return ablate_put_text(&w->pen, is_map ? "}" : "]");
}

static enum status write_node(struct writing *w, const struct yaml_node *node, int depth) {
    if (node->kind != YAML_MAP && node->kind != YAML_LIST) return write_scalar(w, node);
    if (w->leaves->kind == LEAVES_JSON || node->count == 0) return write_flow(w, node, depth);
    for (const struct yaml_node *child = node->first; child != NULL; child = child->next) {
        TRY(ablate_put(&w->pen, "\n", 1));
        TRY(indent(w, depth));
        TRY(node->kind == YAML_MAP ? write_key(w, child->key) : ablate_put(&w->pen, "-", 1));
        TRY(ablate_put(&w->pen, " ", 1));
        TRY(write_node(w, child, depth + 1));
    }
    return STATUS_OK;
}

static int is_taken(const struct writing *w, const char *path) {
    for (size_t i = 0; i < w->leaves->count; i++)
        if (strcmp(w->leaves->differ[i], path) == 0) return w->taken[i];
    return 0;
}

static enum status write_mixed(struct writing *w, const struct yaml_node *a,
                               const struct yaml_node *b, const char *above, int depth);

static enum status write_entry(struct writing *w, const struct yaml_node *a,
                               const struct yaml_node *b, const char *key, const char *path,
                               int depth, int *written) {
    const int inside = a != NULL && b != NULL && a->kind == YAML_MAP && b->kind == YAML_MAP;
    const struct yaml_node *from = inside ? a : is_taken(w, path) ? b : a;
    if (from == NULL) return STATUS_OK;
    if (w->leaves->kind == LEAVES_JSON) {
        TRY(ablate_put_text(&w->pen, *written ? ", " : ""));
    } else {
        TRY(ablate_put(&w->pen, "\n", 1));
        TRY(indent(w, depth));
    }
    *written = 1;
    TRY(write_key(w, key));
    TRY(ablate_put(&w->pen, " ", 1));
    return inside ? write_mixed(w, a, b, path, depth + 1) : write_node(w, from, depth + 1);
}

static enum status write_mixed(struct writing *w, const struct yaml_node *a,
                               const struct yaml_node *b, const char *above, int depth) {
    int written = 0;
    char *path;
    if (w->leaves->kind == LEAVES_JSON) TRY(ablate_put_text(&w->pen, "{"));
    for (const struct yaml_node *x = a->first; x != NULL; x = x->next) {
        TRY(path_of(above, x->key, w->pen.arena, &path));
        TRY(write_entry(w, x, yaml_child(b, x->key), x->key, path, depth, &written));
    }
    for (const struct yaml_node *y = b->first; y != NULL; y = y->next) {
        if (yaml_child(a, y->key) != NULL) continue;
        TRY(path_of(above, y->key, w->pen.arena, &path));
        TRY(write_entry(w, NULL, y, y->key, path, depth, &written));
    }
    if (w->leaves->kind == LEAVES_JSON) return ablate_put_text(&w->pen, "}");
    return written ? STATUS_OK : ablate_put_text(&w->pen, "{}");
}

/* ---- TOML ---- */

/* The bytes of a value of the first file that those of one of the second take the place of. */
struct exchange {
    const struct toml_node *old, *other;
};

/* Collects the exchanges of all leaves that are taken; *out_whole is set where one of them is not a
 * value of both files, but a table, or stands in one file only. */
static enum status find_exchanges(const struct writing *w, const struct yaml_node *a,
                                  const struct yaml_node *b, const char *above,
                                  struct exchange *exchanges, size_t *count, int *out_whole) {
    char *path;
    for (const struct yaml_node *x = a->first; x != NULL; x = x->next) {
        const struct yaml_node *y = yaml_child(b, x->key);
        TRY(path_of(above, x->key, w->pen.arena, &path));
        if (y != NULL && x->kind == YAML_MAP && y->kind == YAML_MAP) {
            TRY(find_exchanges(w, x, y, path, exchanges, count, out_whole));
        } else if (is_taken(w, path)) {
            const struct exchange found = {(const struct toml_node *)x,
                                           (const struct toml_node *)y};
            if (y == NULL || found.old->from == found.old->to ||
                found.other->from == found.other->to)
                *out_whole = 1;
            else
                exchanges[(*count)++] = found;
        }
    }
    for (const struct yaml_node *y = b->first; y != NULL; y = y->next) {
        TRY(path_of(above, y->key, w->pen.arena, &path));
        if (yaml_child(a, y->key) == NULL) *out_whole |= is_taken(w, path);
    }
    return STATUS_OK;
}

static int is_before(const void *a, const void *b, const void *context) {
    (void)context;
    return ((const struct exchange *)a)->old->from < ((const struct exchange *)b)->old->from;
}

static enum status add_copy(struct yaml_node *map, const struct yaml_node *from,
                            struct arena *arena, struct yaml_node **out) {
    struct yaml_node *copy;
    TRY(arena_take(arena, 1, sizeof *copy, "a value", &copy));
    *copy = *from;
    copy->next = NULL;
    if (map->last == NULL)
        map->first = copy;
    else
        map->last->next = copy;
    map->last = copy;
    map->count++;
    *out = copy;
    return STATUS_OK;
}

/* Adds to `map` the children of two maps, mixed. */
static enum status mix(const struct writing *w, const struct yaml_node *a,
                       const struct yaml_node *b, const char *above, struct yaml_node *map) {
    struct yaml_node *copy;
    char *path;
    for (const struct yaml_node *x = a->first; x != NULL; x = x->next) {
        const struct yaml_node *y = yaml_child(b, x->key);
        TRY(path_of(above, x->key, w->pen.arena, &path));
        if (y != NULL && x->kind == YAML_MAP && y->kind == YAML_MAP) {
            TRY(add_copy(map, x, w->pen.arena, &copy));
            copy->first = copy->last = NULL;
            copy->count = 0;
            TRY(mix(w, x, y, path, copy));
        } else {
            const struct yaml_node *from = is_taken(w, path) ? y : x;
            if (from != NULL) TRY(add_copy(map, from, w->pen.arena, &copy));
        }
    }
    for (const struct yaml_node *y = b->first; y != NULL; y = y->next) {
        TRY(path_of(above, y->key, w->pen.arena, &path));
        if (yaml_child(a, y->key) == NULL && is_taken(w, path))
            TRY(add_copy(map, y, w->pen.arena, &copy));
    }
    return STATUS_OK;
}

static enum status write_toml(struct writing *w) {
    const struct leaves *leaves = w->leaves;
    struct exchange *exchanges, *spare;
    size_t count = 0, at = 0;
    int whole = 0;
    TRY(arena_take(w->pen.arena, leaves->count, sizeof *exchanges, "leaves", &exchanges));
    TRY(find_exchanges(w, leaves->roots[0], leaves->roots[1], "", exchanges, &count, &whole));
    if (whole) {
        struct yaml_node root = {.kind = YAML_MAP};
        TRY(mix(w, leaves->roots[0], leaves->roots[1], "", &root));
        return toml_write(&w->pen, &root);
    }
    TRY(arena_take(w->pen.arena, count, sizeof *spare, "leaves", &spare));
    exchanges =
        (struct exchange *)sort_stable(exchanges, spare, count, sizeof *exchanges, is_before, NULL);
    for (size_t i = 0; i < count; i++) {
        const struct toml_node *old = exchanges[i].old, *other = exchanges[i].other;
        TRY(ablate_put(&w->pen, leaves->bytes[0] + at, old->from - at));
        TRY(ablate_put(&w->pen, leaves->bytes[1] + other->from, other->to - other->from));
        at = old->to;
    }
    return ablate_put(&w->pen, leaves->bytes[0] + at, leaves->lengths[0] - at);
}

enum status leaves_compose(const struct leaves *leaves, const unsigned char *taken,
                           struct arena *arena, const char **out_text, size_t *out_length) {
    struct writing writing = {.leaves = leaves, .taken = taken, .pen = {.arena = arena}};
    int any = 0;
    for (size_t i = 0; i < leaves->count; i++)
        any |= taken[i];
    *out_text = leaves->bytes[0];
    *out_length = leaves->lengths[0];
    if (!any) return STATUS_OK;
    if (leaves->kind == LEAVES_TOML) {
        TRY(write_toml(&writing));
    } else {
        TRY(write_mixed(&writing, leaves->roots[0], leaves->roots[1], "", 0));
        TRY(ablate_put(&writing.pen, "\n", 1));
    }
    *out_text = writing.pen.text;
    *out_length = writing.pen.used;
    return STATUS_OK;
}
