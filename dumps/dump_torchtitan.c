/* SPDX-License-Identifier: Apache-2.0
 * torchtitan's rank_N_activations.log: a head with the count of activations, then a block for each,
 * "[layers.0.attention.wq/op_0_mm]" and indented lines "Name: value".
 *
 * It holds one hash of a tensor, the L1 norm, and no shape of an input, so a value is its hash
 * alone. Views, copies and small tensors are not captured: a value that one of them made looks as
 * if it came from outside. Source: torchtitan/tools/activation_tracer.py and compare_numerics.py.
 */
#include <inttypes.h>
#include <string.h>

#include "dumps/dump_private.h"
#include "logs/lines.h"

#define HEAD "Total captured activations:"

struct lines {
    struct dump_reader *reader;
    const char *at, *end;
    uint32_t number;
    struct log_span line;
    struct log_span key, shape, phase, location; /* of the block at hand; key NULL: none */
};

int dump_is_torchtitan(const struct log_source *source) {
    return source->length > strlen(HEAD) && memcmp(source->bytes, HEAD, strlen(HEAD)) == 0;
}

static int next_line(struct lines *lines) {
    if (lines->at == lines->end) return 0;
    const void *found = memchr(lines->at, '\n', (size_t)(lines->end - lines->at));
    const char *stop = found == NULL ? lines->end : (const char *)found;
    lines->line = (struct log_span){lines->at, (size_t)(stop - lines->at)};
    if (lines->line.length > 0 && stop[-1] == '\r') lines->line.length--;
    lines->at = found == NULL ? lines->end : stop + 1;
    lines->number++;
    return 1;
}

/* Returns what stands behind `name` in the line, without blanks in front; text NULL when the line
 * does not begin with it. */
static struct log_span behind(struct log_span line, const char *name) {
    const size_t length = strlen(name);
    size_t at = 0;
    while (at < line.length && line.text[at] == ' ')
        at++;
    if (line.length - at < length || memcmp(line.text + at, name, length) != 0)
        return (struct log_span){NULL, 0};
    for (at += length; at < line.length && line.text[at] == ' ';)
        at++;
    return (struct log_span){line.text + at, line.length - at};
}

static enum status fail_at(const struct lines *lines, const char *expected) {
    char shown[48];
    log_show(lines->line.text, lines->line.length, shown, sizeof shown);
    FAIL(STATUS_INPUT, "%s:%" PRIu32 ": expected %s, got \"%s\"", lines->reader->dump->path,
         lines->number, expected, shown);
}

static enum status read_hashes(struct lines *lines, struct log_span text, struct dump_hashes *out) {
    out->count = 0;
    for (size_t at = 0; at < text.length;) {
        const void *comma = memchr(text.text + at, ',', text.length - at);
        const size_t stop = comma == NULL ? text.length : (size_t)((const char *)comma - text.text);
        struct log_span hash = {text.text + at, stop - at};
        while (hash.length > 0 && hash.text[hash.length - 1] == ' ')
            hash.length--;
        while (hash.length > 0 && *hash.text == ' ')
            hash.text++, hash.length--;
        struct log_number number;
        if (hash.length > DUMP_HASH_MOST || !log_number_read(hash.text, hash.length, &number))
            return fail_at(lines, "hashes, numbers with commas between them");
        TRY(dump_hashes_add(lines->reader->words->arena, out, hash));
        at = stop + 1;
    }
    return STATUS_OK;
}

/* Splits "layers.0.wq/op_0_mm" into module and op. */
static enum status name_op(struct lines *lines, struct dump_op *op) {
    struct words *words = lines->reader->words;
    const struct log_span key = lines->key;
    size_t at = key.length;
    while (at > 0 && key.text[at - 1] != '/')
        at--;
    TRY(words_number(words, key.text, at == 0 ? 0 : at - 1, &op->module));
    struct log_span name = {key.text + at, key.length - at};
    if (name.length > 3 && memcmp(name.text, "op_", 3) == 0) {
        size_t digits = 3;
        while (digits < name.length && name.text[digits] >= '0' && name.text[digits] <= '9')
            digits++;
        if (digits < name.length && name.text[digits] == '_')
            name = (struct log_span){name.text + digits + 1, name.length - digits - 1};
    }
    return words_number(words, name.text, name.length, &op->op);
}

static enum status end_block(struct lines *lines) {
    static const struct log_span none = {"", 0};
    struct dump_reader *reader = lines->reader;
    struct dump_entry *entry = &reader->entry;
    struct dump_op *op;
    if (lines->key.text == NULL) return STATUS_OK;
    TRY(dump_add_op(reader, 0, &op));
    TRY(name_op(lines, op));
    TRY(words_number(reader->words, lines->shape.text, lines->shape.length, &op->shapes));
    TRY(words_number(reader->words, lines->location.text, lines->location.length, &op->location));
    TRY(words_number(reader->words, lines->phase.text, lines->phase.length, &op->literals));
    for (int i = 0; i < 2; i++) {
        const struct dump_hashes *hashes = i == 0 ? &entry->in : &entry->out;
        if (hashes->count > 0) TRY(dump_note_hashes(reader, hashes->list, 1));
        for (size_t k = 0; k < hashes->count; k++)
            TRY(dump_add_value(reader, none, &hashes->list[k], 1));
    }
    op->inputs = (uint32_t)entry->in.count;
    op->outputs = (uint32_t)entry->out.count;
    return STATUS_OK;
}

static void begin_block(struct lines *lines, struct log_span key) {
    lines->key = key;
    lines->shape = lines->phase = lines->location = (struct log_span){NULL, 0};
    lines->reader->entry.place = lines->number;
    lines->reader->entry.in.count = lines->reader->entry.out.count = 0;
}

static enum status read_block_line(struct lines *lines) {
    const struct log_span line = lines->line;
    struct dump_entry *entry = &lines->reader->entry;
    const struct log_span out = behind(line, "Output hash:"), in = behind(line, "Input hashes:");
    if (lines->key.text == NULL) return STATUS_OK;
    if (out.text != NULL) return read_hashes(lines, out, &entry->out);
    if (in.text != NULL) return read_hashes(lines, in, &entry->in);
    const struct log_span shape = behind(line, "Shape:"), phase = behind(line, "Phase:"),
                          location = behind(line, "Location:");
    if (shape.text != NULL) lines->shape = shape;
    if (phase.text != NULL) lines->phase = phase;
    if (location.text != NULL) lines->location = location;
    return STATUS_OK;
}

enum status dump_read_torchtitan(struct dump_reader *reader) {
    struct lines lines = {.reader = reader,
                          .at = (const char *)reader->source->bytes,
                          .end = (const char *)reader->source->bytes + reader->source->length};
    int64_t total = 0;
    reader->dump->format = "torchtitan";
    reader->dump->shapeless = 1;
    if (!next_line(&lines)) return STATUS_OK;
    struct log_span said = behind(lines.line, HEAD);
    if (!log_span_integer(&said, &total)) return fail_at(&lines, HEAD " and a number");
    while (next_line(&lines)) {
        const struct log_span line = lines.line;
        if (line.length > 0 && line.text[0] == '[') {
            const void *close = memchr(line.text, ']', line.length);
            if (close == NULL) return fail_at(&lines, "\"[module/op_N_name]\"");
            TRY(end_block(&lines));
            begin_block(&lines, (struct log_span){line.text + 1,
                                                  (size_t)((const char *)close - line.text - 1)});
        } else {
            TRY(read_block_line(&lines));
        }
    }
    TRY(end_block(&lines));
    if ((uint64_t)total != reader->dump->count)
        FAIL(STATUS_INPUT,
             "%s:%" PRIu32 ": expected %" PRId64
             " activations, as the first line says, got %zu before the end of the file",
             reader->dump->path, lines.number, total, reader->dump->count);
    return STATUS_OK;
}
