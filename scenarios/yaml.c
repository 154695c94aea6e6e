/* SPDX-License-Identifier: Apache-2.0
 * Turns libfyaml's events into a tree. Its events are used and not its documents, because they
 * carry the place of every node; aliases, merges and duplicate keys are then resolved here, under
 * our limits. An alias shares the children of its anchor, so that nested aliases cost no memory,
 * and an alias inside its own anchor is refused, so that nothing is cyclic. */
#include "scenarios/yaml.h"

#include <string.h>

#include <libfyaml.h>

#include "scenarios/textfile.h"

struct anchor {
    const char *name;
    const struct yaml_node *node; /* NULL while its node is being read */
    struct anchor *next;          /* an older anchor; a name may be given again */
};

struct reader {
    struct arena *arena;
    const char *source;
    const char *text;
    size_t length;
    int placed;
    struct fy_parser *parser;
    struct fy_diag *diag;
    struct fy_event *event; /* the event that is being looked at, or NULL */
    struct anchor *anchors;
    uint32_t nodes;
};

static int last_line(const struct reader *reader) {
    int lines = 1;
    for (size_t i = 0; i + 1 < reader->length; i++)
        lines += reader->text[i] == '\n';
    return lines;
}

/* Puts libfyaml's first complaint into our form. Its lines and columns count from 1, and they may
 * lie behind the text when that ends too early. */
static enum status syntax_error(const struct reader *reader) {
    void *iterator = NULL;
    struct fy_diag_error *error = fy_diag_errors_iterate(reader->diag, &iterator);
    if (error == NULL || error->msg == NULL)
        FAIL(STATUS_INPUT, "%s: error: expected YAML, got text that cannot be parsed",
             reader->source);
    if (!reader->placed || error->line < 1)
        FAIL(STATUS_INPUT, "%s: error: %s", reader->source, error->msg);
    if (error->line > last_line(reader))
        FAIL(STATUS_INPUT, "%s:%d: error: at the end: %s", reader->source, last_line(reader),
             error->msg);
    FAIL(STATUS_INPUT, "%s:%d:%d: error: %s", reader->source, error->line, error->column,
         error->msg);
}

static void drop(struct reader *reader) {
    if (reader->event != NULL) fy_parser_event_free(reader->parser, reader->event);
    reader->event = NULL;
}

static enum status advance(struct reader *reader) {
    drop(reader);
    reader->event = fy_parser_parse(reader->parser);
    if (reader->event == NULL || fy_parser_get_stream_error(reader->parser))
        return syntax_error(reader);
    return STATUS_OK;
}

static enum status node_take(struct reader *reader, struct yaml_node **out) {
    if (++reader->nodes > YAML_NODES_MAX)
        FAIL(STATUS_INPUT, "%s: error: more than %d values", reader->source, YAML_NODES_MAX);
    TRY(arena_take(reader->arena, 1, sizeof **out, "a YAML value", out));
    (*out)->source = reader->source;
    return STATUS_OK;
}

static enum status token_text(struct reader *reader, const struct yaml_node *node,
                              struct fy_token *token, const char **out) {
    size_t length = 0;
    const char *bytes = token == NULL ? "" : fy_token_get_text(token, &length);
    if (bytes == NULL) FAIL(STATUS_MEMORY, "%s: cannot read a value", reader->source);
    if (length != 0 && memchr(bytes, '\0', length) != NULL)
        return yaml_fail(node, "expected text, got a NUL character in it");
    char *copy = NULL;
    TRY(arena_text(reader->arena, bytes, length, &copy));
    *out = copy;
    return STATUS_OK;
}

static int is_null(const char *text) {
    static const char *const names[] = {"", "~", "null", "Null", "NULL"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (strcmp(text, names[i]) == 0) return 1;
    return 0;
}

static enum status read_scalar(struct reader *reader, struct yaml_node *node) {
    struct fy_token *token = reader->event->scalar.value;
    int plain = token == NULL || fy_token_scalar_style(token) == FYSS_PLAIN;
    TRY(token_text(reader, node, token, &node->text));
    node->kind = !plain ? YAML_QUOTED : is_null(node->text) ? YAML_NULL : YAML_PLAIN;
    return STATUS_OK;
}

static void append(struct yaml_node *parent, struct yaml_node *child) {
    if (parent->last == NULL)
        parent->first = child;
    else
        parent->last->next = child;
    parent->last = child;
    parent->count++;
}

/* Copies everything of `value` except what belongs to the place in the parent. */
static void share(struct yaml_node *node, const struct yaml_node *value) {
    struct yaml_node copy = *value;
    copy.key = node->key;
    copy.key_line = node->key_line;
    copy.key_column = node->key_column;
    copy.merged = node->merged;
    copy.next = NULL;
    *node = copy;
}

static enum status read_alias(struct reader *reader, struct yaml_node *node) {
    const char *name = NULL;
    TRY(token_text(reader, node, reader->event->alias.anchor, &name));
    const struct anchor *anchor = reader->anchors;
    while (anchor != NULL && strcmp(anchor->name, name) != 0)
        anchor = anchor->next;
    if (anchor == NULL) return yaml_fail(node, "*%s: no anchor &%s stands before it", name, name);
    if (anchor->node == NULL) return yaml_fail(node, "*%s: stands inside its own anchor", name);
    share(node, anchor->node);
    return STATUS_OK;
}

/* Reads the anchor of the present event, and refuses its tag. */
static enum status read_properties(struct reader *reader, const struct yaml_node *node,
                                   struct anchor **out_anchor) {
    struct fy_event *event = reader->event;
    if (event->type == FYET_ALIAS) return STATUS_OK;
    struct fy_token *tag = event->type == FYET_SCALAR           ? event->scalar.tag
                           : event->type == FYET_MAPPING_START  ? event->mapping_start.tag
                           : event->type == FYET_SEQUENCE_START ? event->sequence_start.tag
                                                                : NULL;
    if (tag != NULL) return yaml_fail(node, "tags (!...) are not part of a scenario");
    struct fy_token *name = event->type == FYET_SCALAR           ? event->scalar.anchor
                            : event->type == FYET_MAPPING_START  ? event->mapping_start.anchor
                            : event->type == FYET_SEQUENCE_START ? event->sequence_start.anchor
                                                                 : NULL;
    if (name == NULL) return STATUS_OK;
    struct anchor *anchor = NULL;
    TRY(arena_take(reader->arena, 1, sizeof *anchor, "a YAML anchor", &anchor));
    TRY(token_text(reader, node, name, &anchor->name));
    anchor->next = reader->anchors;
    reader->anchors = anchor;
    *out_anchor = anchor;
    return STATUS_OK;
}

/* How far libfyaml's mark stands behind the start of a value: a quoted text is marked behind its
 * quote, an alias behind its star. */
static int mark_offset(const struct fy_event *event) {
    if (event->type == FYET_ALIAS) return 1;
    if (event->type != FYET_SCALAR || event->scalar.value == NULL) return 0;
    enum fy_scalar_style style = fy_token_scalar_style(event->scalar.value);
    return style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED;
}

static void place(struct reader *reader, struct yaml_node *node) {
    const struct fy_mark *mark = fy_event_start_mark(reader->event);
    if (!reader->placed || mark == NULL) return;
    node->line = mark->line + 1;
    node->column = mark->column + 1 - mark_offset(reader->event);
}

/* Takes over the pairs of a merged map that `map` does not hold itself. */
static enum status merge_one(struct reader *reader, struct yaml_node *map,
                             const struct yaml_node *from) {
    if (from->kind != YAML_MAP) {
        char got[YAML_TEXT_SIZE];
        return yaml_fail(from, "<<: expected a map, or a list of maps, got %s",
                         yaml_describe(from, got));
    }
    for (const struct yaml_node *child = from->first; child != NULL; child = child->next) {
        if (yaml_child(map, child->key) != NULL) continue;
        struct yaml_node *copy = NULL;
        TRY(node_take(reader, &copy));
        *copy = *child;
        copy->next = NULL;
        copy->merged = 1;
        append(map, copy);
    }
    return STATUS_OK;
}

static enum status merge(struct reader *reader, struct yaml_node *map,
                         const struct yaml_node *value) {
    if (value->kind != YAML_LIST) return merge_one(reader, map, value);
    for (const struct yaml_node *item = value->first; item != NULL; item = item->next)
        TRY(merge_one(reader, map, item));
    return STATUS_OK;
}

static enum status read_node(struct reader *reader, struct yaml_node *node, int depth);

static enum status read_list(struct reader *reader, struct yaml_node *list, int depth) {
    list->kind = YAML_LIST;
    for (;;) {
        TRY(advance(reader));
        if (reader->event->type == FYET_SEQUENCE_END) return STATUS_OK;
        struct yaml_node *item = NULL;
        TRY(node_take(reader, &item));
        item->line = list->line;
        item->column = list->column;
        TRY(read_node(reader, item, depth + 1));
        append(list, item);
    }
}

/* Reads the present event as a key; its place goes into the key fields of `node`. */
static enum status read_key(struct reader *reader, const struct yaml_node *map,
                            struct yaml_node *node) {
    struct yaml_node key = {.source = reader->source, .line = map->line, .column = map->column};
    place(reader, &key);
    if (reader->event->type != FYET_SCALAR)
        return yaml_fail(&key, "expected a plain word as key, got a list, a map or an alias");
    struct anchor *anchor = NULL;
    TRY(read_properties(reader, &key, &anchor));
    if (anchor != NULL) return yaml_fail(&key, "a key cannot carry an anchor");
    TRY(token_text(reader, &key, reader->event->scalar.value, &node->key));
    node->key_line = node->line = key.line;
    node->key_column = node->column = key.column;
    const struct yaml_node *earlier = yaml_child(map, node->key);
    if (earlier == NULL) return STATUS_OK;
    char got[YAML_TEXT_SIZE];
    struct yaml_node word = {.kind = YAML_PLAIN, .text = node->key};
    if (earlier->key_line == 0)
        return yaml_fail(&key, "key %s is given twice", yaml_describe(&word, got));
    return yaml_fail(&key, "key %s is given twice, first in line %d", yaml_describe(&word, got),
                     earlier->key_line);
}

static enum status read_map(struct reader *reader, struct yaml_node *map, int depth) {
    map->kind = YAML_MAP;
    struct yaml_node *merged = NULL;
    for (;;) {
        TRY(advance(reader));
        if (reader->event->type == FYET_MAPPING_END) break;
        struct yaml_node *child = NULL;
        TRY(node_take(reader, &child));
        TRY(read_key(reader, map, child));
        TRY(advance(reader));
        TRY(read_node(reader, child, depth + 1));
        if (strcmp(child->key, "<<") != 0) {
            append(map, child);
            if (map->count > YAML_KEYS_MAX)
                return yaml_fail_key(child, "more than %d keys in one map", YAML_KEYS_MAX);
            continue;
        }
        if (merged != NULL) return yaml_fail_key(child, "<<: given twice; use a list of maps");
        merged = child;
    }
    return merged == NULL ? STATUS_OK : merge(reader, map, merged);
}

static enum status read_node(struct reader *reader, struct yaml_node *node, int depth) {
    place(reader, node);
    if (depth > YAML_DEPTH_MAX) return yaml_fail(node, "more than %d levels deep", YAML_DEPTH_MAX);
    struct anchor *anchor = NULL;
    TRY(read_properties(reader, node, &anchor));
    switch (reader->event->type) {
    case FYET_SCALAR:
        TRY(read_scalar(reader, node));
        break;
    case FYET_ALIAS:
        TRY(read_alias(reader, node));
        break;
    case FYET_SEQUENCE_START:
        TRY(read_list(reader, node, depth));
        break;
    case FYET_MAPPING_START:
        TRY(read_map(reader, node, depth));
        break;
    default:
        FAIL(STATUS_INTERNAL, "%s: libfyaml gave event %d inside a document", reader->source,
             (int)reader->event->type);
    }
    if (anchor != NULL) anchor->node = node;
    return STATUS_OK;
}

static enum status read_stream(struct reader *reader, struct yaml_node *root) {
    root->line = root->column = reader->placed;
    for (int documents = 0;;) {
        TRY(advance(reader));
        switch (reader->event->type) {
        case FYET_STREAM_END:
            return STATUS_OK;
        case FYET_DOCUMENT_START:
            place(reader, root);
            if (documents++ != 0) return yaml_fail(root, "expected one document, got a second one");
            TRY(advance(reader));
            TRY(read_node(reader, root, 0));
            break;
        default:
            break;
        }
    }
}

static int is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* Whether a colon stands in the text with blanks behind it of which one is a tab. */
static int has_tab_behind_colon(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (text[i] != ':') continue;
        while (i + 1 < length && text[i + 1] == ' ')
            i++;
        if (i + 1 < length && text[i + 1] == '\t') return 1;
    }
    return 0;
}

/* libfyaml 0.7 writes through a wild pointer, or reads one, where a key that a question mark begins
 * has a tab and a block behind its colon ("? a:<tab>- b"), or is followed by such a tab ("a: ? b"
 * and later "c:<tab>"). Both marks together are refused before it sees them; either of them alone
 * is read, and so is a question mark behind words. */
static enum status check_explicit_keys(const char *source, const char *text, size_t length) {
    if (!has_tab_behind_colon(text, length)) return STATUS_OK;
    size_t line = 1;
    int begins = 1; /* nothing but blanks since the line or an indicator began */
    for (size_t i = 0; i < length; i++) {
        const int ends =
            i + 1 == length || is_blank(text[i + 1]) || text[i + 1] == '\n' || text[i + 1] == '\r';
        if (begins && text[i] == '?' && ends)
            FAIL(
                STATUS_INPUT,
                "%s:%zu: error: expected no explicit key (\"? key\") in a text with a tab behind a "
                "colon, got one",
                source, line);
        if (text[i] == '\n' || text[i] == '\r') {
            line += text[i] == '\n';
            begins = 1;
        } else if (is_blank(text[i])) {
            begins |= i > 0 && strchr("-?:", text[i - 1]) != NULL;
        } else if (strchr("-?:", text[i]) == NULL) {
            begins = strchr("{[,", text[i]) != NULL;
        }
    }
    return STATUS_OK;
}

static enum status reader_open(struct reader *reader) {
    struct fy_diag_cfg quiet;
    fy_diag_cfg_default(&quiet);
    quiet.fp = NULL;
    reader->diag = fy_diag_create(&quiet);
    if (reader->diag == NULL) FAIL(STATUS_MEMORY, "%s: cannot start libfyaml", reader->source);
    fy_diag_set_collect_errors(reader->diag, true);
    int flags = FYPCF_QUIET | FYPCF_DEFAULT_VERSION_1_2 | FYPCF_JSON_NONE;
    struct fy_parse_cfg cfg = {.flags = (enum fy_parse_cfg_flags)flags, .diag = reader->diag};
    reader->parser = fy_parser_create(&cfg);
    if (reader->parser == NULL ||
        fy_parser_set_string(reader->parser, reader->text, reader->length) != 0)
        FAIL(STATUS_MEMORY, "%s: cannot start libfyaml", reader->source);
    return STATUS_OK;
}

static void reader_close(struct reader *reader) {
    if (reader->parser != NULL) {
        drop(reader);
        fy_parser_destroy(reader->parser);
    }
    if (reader->diag != NULL) fy_diag_destroy(reader->diag);
}

enum status yaml_parse(struct arena *arena, const char *source, int placed, const char *text,
                       size_t length, struct yaml_node **out_root) {
    if (length > YAML_BYTES_MAX)
        FAIL(STATUS_INPUT, "%s: error: expected at most %zu bytes, got %zu", source, YAML_BYTES_MAX,
             length);
    /* Programs on Windows put a byte order mark before UTF-8; YAML and JSON both allow that. */
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3;
        length -= 3;
    }
    TRY(plaintext_check(source, text, length));
    TRY(check_explicit_keys(source, text, length));
    struct reader reader = {
        .arena = arena, .source = source, .text = text, .length = length, .placed = placed != 0};
    struct yaml_node *root = NULL;
    enum status status = STATUS_OK;
    TRY_OR(status, node_take(&reader, &root), close);
    root->kind = YAML_NULL;
    root->text = "";
    if (length == 0) goto close; /* libfyaml takes length 0 for "measure it" */
    TRY_OR(status, reader_open(&reader), close);
    TRY_OR(status, read_stream(&reader, root), close);
close:
    reader_close(&reader);
    *out_root = root;
    return status;
}

const char *yaml_version(void) {
    return fy_library_version();
}
