/* SPDX-License-Identifier: Apache-2.0
 * The JSON of PyTorch's DebugMode.save_logs(), version 1, read by the scanner of logs/: its hashes
 * are whole numbers of 64 bits, which jansson refuses.
 *
 * An entry of "logs" is an op, a kernel of Triton, or an annotation: the entrance of a module,
 * whose ops follow at a larger call_depth. Hashes stand as a tree of tuples, lists and dicts; the
 * arguments say how many tensors there are, so the leaves in their order are enough. Source:
 * torch/utils/_debug_mode/_calls.py of torch 2.15.0. */
#include <inttypes.h>
#include <string.h>

#include "dumps/dump_private.h"
#include "logs/lines.h"
#include "logs/scan.h"

#define FORMAT "torch.utils._debug_mode.DebugMode.logs"
/* Modules inside each other; more than any model has. */
#define MODULES_MOST 256

enum kind { KIND_NONE, KIND_OP, KIND_KERNEL, KIND_ANNOTATE, KIND_OTHER };

struct module {
    int64_t depth;
    uint32_t name, scope; /* words, as those of an op */
};

struct walk {
    struct dump_reader *reader;
    struct scan scan;
    struct module modules[MODULES_MOST]; /* those that are open; the last one is the innermost */
    size_t open;
    /* the entry at hand */
    enum kind kind;
    int64_t depth; /* -1: not given */
    struct log_span tag, header;
    struct log_span stack,
        forward_stack; /* of the call; of the forward op that a backward one is of */
    int saw_in, saw_out;
};

/* The bytes of the string at hand as they stand in the file, with its escapes: two dumps are
 * compared, and equal strings have equal bytes there, as one writer wrote both. */
static struct log_span raw_string(const struct scan *scan) {
    return (struct log_span){(const char *)scan->source->bytes + scan->start + 1,
                             scan->at - scan->start - 2};
}

static int span_is(struct log_span span, const char *text) {
    return span.length == strlen(text) && memcmp(span.text, text, span.length) == 0;
}

/* ---- hashes ---- */

static enum status keep_leaf(struct walk *walk, struct dump_hashes *out) {
    struct scan *scan = &walk->scan;
    struct log_span hash = {scan->text, scan->length};
    if (scan->token == SCAN_NULL) return STATUS_OK; /* an argument that is no tensor */
    if (scan->token == SCAN_STRING) {
        hash = (struct log_span){(const char *)scan->source->bytes + scan->start,
                                 scan->at - scan->start};
        if (span_is(raw_string(scan), "nan")) hash = raw_string(scan);
    } else if (scan->token != SCAN_NUMBER) {
        return scan_fail(scan, "a hash (a number or a text)");
    }
    if (hash.length > DUMP_HASH_MOST) return scan_fail(scan, "a hash of at most 128 characters");
    return dump_hashes_add(walk->reader->words->arena, out, hash);
}

/* Reads the tree of hashes that begins with the token at hand; `out` NULL: what it holds is passed
 * over. */
static enum status read_tree(struct walk *walk, struct dump_hashes *out) {
    struct scan *scan = &walk->scan;
    if (scan->token == SCAN_NULL) return STATUS_OK;
    if (out == NULL) return scan_skip(scan);
    TRY(scan_expect(scan, SCAN_OBJECT));
    for (const int depth = scan->depth; scan->depth >= depth;) {
        TRY(scan_next(scan));
        if (scan->token != SCAN_KEY) continue;
        const int is_value = scan_is(scan, "value");
        if (!is_value && !scan_is(scan, "type") && !scan_is(scan, "items"))
            return scan_fail(scan, "\"type\", \"value\" or \"items\"");
        TRY(scan_next(scan));
        if (is_value) TRY(keep_leaf(walk, out));
    }
    return STATUS_OK;
}

/* Reads what hooks logged of an op: a dict with "input_hash" and "hash", as log_tensor_hashes()
 * writes it; what other hooks put there is passed over. */
static enum status read_log(struct walk *walk) {
    struct scan *scan = &walk->scan;
    struct dump_entry *entry = &walk->reader->entry;
    if (scan->token == SCAN_NULL) return STATUS_OK;
    TRY(scan_expect(scan, SCAN_OBJECT));
    for (;;) {
        TRY(scan_next(scan));
        if (scan->token == SCAN_OBJECT_END) return STATUS_OK;
        const int is_items = scan_is(scan, "items");
        TRY(scan_next(scan));
        if (!is_items) {
            TRY(scan_skip(scan));
            continue;
        }
        TRY(scan_expect(scan, SCAN_ARRAY));
        for (;;) {
            TRY(scan_next(scan));
            if (scan->token == SCAN_ARRAY_END) break;
            TRY(scan_expect(scan, SCAN_ARRAY));
            TRY(scan_next(scan));
            TRY(scan_expect(scan, SCAN_STRING));
            const int in = scan_is(scan, "input_hash"), of = scan_is(scan, "hash");
            TRY(scan_next(scan));
            if (in) walk->saw_in = 1;
            if (of) walk->saw_out = 1;
            TRY(read_tree(walk, in ? &entry->in : of ? &entry->out : NULL));
            TRY(scan_next(scan));
            TRY(scan_expect(scan, SCAN_ARRAY_END));
        }
    }
}

/* ---- ops ---- */

/* Adds the values of the tensors at hand, with their hashes. */
static enum status add_values(struct walk *walk, const struct dump_hashes *hashes, const char *what,
                              uint32_t *out_count) {
    struct dump_reader *reader = walk->reader;
    struct dump *dump = reader->dump;
    struct dump_hashes *tensors = &reader->tensors;
    *out_count = 0;
    if (hashes->count == 0) return STATUS_OK;
    const size_t n = tensors->count;
    if (n > 0 && hashes->count % n == 0)
        TRY(dump_note_hashes(reader, hashes->list, hashes->count / n));
    if (n == 0 || hashes->count != n * dump->hashes)
        FAIL(STATUS_INPUT,
             "%s:%" PRIu32 ": entry %" PRIu32
             " of logs: expected %zu hashes for each of its %zu %s tensors, got %zu in all%s",
             dump->path, walk->scan.line, reader->entry.place, dump->hashes == 0 ? 1 : dump->hashes,
             n, what, hashes->count, n == 0 ? "; record with record_output=True" : "");
    for (size_t i = 0; i < n; i++)
        TRY(dump_add_value(reader, tensors->list[i], hashes->list + i * dump->hashes,
                           dump->hashes));
    *out_count = (uint32_t)n;
    return STATUS_OK;
}

/* Joins the dtypes and shapes of the tensors at hand into one word. */
static enum status name_shapes(struct dump_reader *reader, uint32_t *out) {
    struct arena *arena = reader->words->arena;
    reader->shapes.length = 0;
    for (size_t i = 0; i < reader->tensors.count; i++) {
        const struct log_span tensor = reader->tensors.list[i];
        if (i > 0) TRY(dump_text_add(arena, &reader->shapes, ", ", 2));
        TRY(dump_text_add(arena, &reader->shapes, tensor.text, tensor.length));
    }
    return words_number(reader->words, reader->shapes.bytes, reader->shapes.length, out);
}

static enum status name_arguments(struct walk *walk, struct dump_op *op) {
    struct dump_reader *reader = walk->reader;
    struct arena *arena = reader->words->arena;
    struct dump_text *text = &reader->literals;
    const struct log_span parts[2] = {reader->entry.args, reader->entry.kwargs};
    text->length = reader->tensors.count = 0;
    for (int i = 0; i < 2; i++)
        TRY(dump_text_add(arena, text, parts[i].text, parts[i].length));
    TRY(words_number(reader->words, text->bytes, text->length, &op->args));
    text->length = 0;
    for (int i = 0; i < 2; i++)
        TRY(dump_find_tensors(arena, parts[i], &reader->tensors, text));
    TRY(words_number(reader->words, text->bytes, text->length, &op->literals));
    return name_shapes(reader, &op->shapes);
}

/* A kernel of Triton gets the tensors that it writes as arguments, too, and nothing says which they
 * are. Of those that it changed the old content is taken as not read: it is mostly that of fresh
 * memory, which differs from run to run. */
static void drop_written(struct dump_reader *reader, struct dump_op *op) {
    uint32_t kept = 0;
    if (op->inputs == 0 || op->inputs != op->outputs) return;
    uint32_t *values = reader->dump->values + op->first;
    for (uint32_t i = 0; i < op->inputs; i++)
        if (values[i] == values[op->inputs + i]) values[kept++] = values[i];
    memmove(values + kept, values + op->inputs, op->outputs * sizeof *values);
    reader->dump->value_count -= op->inputs - kept;
    op->inputs = kept;
}

/* A tensor behind "out=" is written over unread. It is the last one of the inputs. */
static enum status drop_out(struct dump_reader *reader, struct dump_op *op) {
    const struct log_span out = log_span_after(reader->entry.kwargs, "out=");
    if (out.text == NULL) return STATUS_OK;
    const char *const start = out.text - strlen("out=");
    if (start != reader->entry.kwargs.text && start[-1] != ' ') return STATUS_OK;
    reader->tensors.count = 0;
    TRY(dump_find_tensors(reader->words->arena, out, &reader->tensors, NULL));
    const uint32_t dropped = (uint32_t)reader->tensors.count;
    if (dropped > op->inputs) return STATUS_OK;
    op->inputs -= dropped;
    reader->dump->value_count -= dropped;
    return STATUS_OK;
}

/* Finds the last frame of a stack that is not torch's own, `File \"PATH\", line 5, in NAME\n` with
 * JSON's escapes, and keeps it as "PATH:5 in NAME". */
static enum status name_location(struct walk *walk, struct dump_op *op) {
    static const char file[] = "File \\\"", line[] = "\\\", line ", in[] = ", in ", end[] = "\\n";
    struct dump_reader *reader = walk->reader;
    struct arena *arena = reader->words->arena;
    struct log_span rest = walk->forward_stack.length > 0 ? walk->forward_stack : walk->stack;
    struct log_span parts[3] = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
    for (;;) {
        struct log_span found[3];
        rest = log_span_after(rest, file);
        const struct log_span number = log_span_after(rest, line),
                              name = log_span_after(number, in), behind = log_span_after(name, end);
        if (behind.text == NULL) break;
        found[0] = (struct log_span){rest.text, (size_t)(number.text - rest.text) - strlen(line)};
        found[1] = (struct log_span){number.text, (size_t)(name.text - number.text) - strlen(in)};
        found[2] = (struct log_span){name.text, (size_t)(behind.text - name.text) - strlen(end)};
        rest = behind;
        if (log_span_after(found[0], "/torch/").text == NULL) memcpy(parts, found, sizeof parts);
    }
    if (parts[0].text == NULL) return STATUS_OK;
    reader->value.length = 0;
    TRY(dump_text_add(arena, &reader->value, parts[0].text, parts[0].length));
    TRY(dump_text_add(arena, &reader->value, ":", 1));
    TRY(dump_text_add(arena, &reader->value, parts[1].text, parts[1].length));
    TRY(dump_text_add(arena, &reader->value, " in ", 4));
    TRY(dump_text_add(arena, &reader->value, parts[2].text, parts[2].length));
    return words_number(reader->words, reader->value.bytes, reader->value.length, &op->location);
}

static enum status end_op(struct walk *walk) {
    struct dump_reader *reader = walk->reader;
    struct dump_entry *entry = &reader->entry;
    struct dump_op *op;
    /* Nothing was hashed of aten::empty and the like, and nothing that holds of a collective. */
    if ((!walk->saw_in && !walk->saw_out) || dump_is_collective(entry->op)) {
        reader->dump->without++;
        return STATUS_OK;
    }
    const struct module outside = {.name = 0};
    const struct module *module = walk->open == 0 ? &outside : &walk->modules[walk->open - 1];
    TRY(dump_add_op(reader, module->name, &op));
    op->scope = module->scope;
    TRY(words_number(reader->words, entry->op.text, entry->op.length, &op->op));
    TRY(name_arguments(walk, op));
    TRY(name_location(walk, op));
    const size_t from = dump_overwrites(entry->op) && reader->tensors.count > 1 ? 1 : 0;
    const struct log_span none = {"", 0},
                          input = reader->tensors.count > 0 ? reader->tensors.list[from] : none;
    TRY(add_values(walk, &entry->in, "input", &op->inputs));
    TRY(drop_out(reader, op));
    if (walk->kind == KIND_OP) {
        reader->tensors.count = 0;
        TRY(dump_find_tensors(reader->words->arena, entry->output, &reader->tensors, NULL));
    }
    TRY(add_values(walk, &entry->out, "output", &op->outputs));
    if (dump_overwrites(entry->op))
        op->ignored = op->inputs < op->outputs ? op->inputs : op->outputs;
    if (op->outputs > 0) op->moves = (uint8_t)dump_moves(entry->op, input, reader->tensors.list[0]);
    if (walk->kind == KIND_KERNEL) drop_written(reader, op);
    return STATUS_OK;
}

/* ---- entries ---- */

static enum status end_annotate(struct walk *walk) {
    if (walk->open == MODULES_MOST)
        FAIL(STATUS_INPUT,
             "%s:%" PRIu32 ": entry %" PRIu32
             " of logs: expected at most %d modules inside each other",
             walk->reader->dump->path, walk->scan.line, walk->reader->entry.place, MODULES_MOST);
    struct module *module = &walk->modules[walk->open++];
    module->depth = walk->depth;
    struct words *words = walk->reader->words;
    struct dump_text *text = &walk->reader->value;
    size_t root;
    TRY(dump_unwrap(words->arena, walk->tag, text, &root, &walk->reader->dump->is_wrapped));
    TRY(words_number(words, text->bytes, text->length, &module->name));
    const size_t behind = text->length > root ? root + 1 : root;
    return words_number(words, text->bytes + behind, text->length - behind, &module->scope);
}

static enum status read_text_member(struct walk *walk, struct log_span *out) {
    struct scan *scan = &walk->scan;
    if (scan->token == SCAN_NULL) return STATUS_OK;
    TRY(scan_expect(scan, SCAN_STRING));
    *out = raw_string(scan);
    return STATUS_OK;
}

static enum status read_type(struct walk *walk) {
    static const char *const names[] = {
        [KIND_OP] = "op", [KIND_KERNEL] = "triton_kernel", [KIND_ANNOTATE] = "annotate"};
    struct scan *scan = &walk->scan;
    TRY(scan_expect(scan, SCAN_STRING));
    for (int i = KIND_OP; i <= KIND_ANNOTATE; i++)
        if (scan_is(scan, names[i])) walk->kind = (enum kind)i;
    if (scan_is(scan, "redistribute") || scan_is(scan, "output_placement")) walk->kind = KIND_OTHER;
    if (walk->kind == KIND_NONE)
        return scan_fail(scan, "op, annotate, triton_kernel, redistribute or output_placement");
    return STATUS_OK;
}

static enum status read_member(struct walk *walk) {
    struct scan *scan = &walk->scan;
    struct dump_entry *entry = &walk->reader->entry;
    const struct {
        const char *name;
        struct log_span *out;
    } texts[] = {{"op_name", &entry->op},        {"kernel_name", &entry->op},
                 {"args_str", &entry->args},     {"kwargs_str", &entry->kwargs},
                 {"output_str", &entry->output}, {"tag", &walk->tag},
                 {"stack_trace", &walk->stack},  {"fwd_stack_trace", &walk->forward_stack},
                 {"header", &walk->header}};
    const struct log_span name = {scan->text, scan->length};
    TRY(scan_next(scan));
    if (span_is(name, "log")) return read_log(walk);
    if (span_is(name, "type")) return read_type(walk);
    if (span_is(name, "pre_hashes") || span_is(name, "post_hashes")) {
        const int pre = name.length == strlen("pre_hashes");
        if (pre) walk->saw_in |= scan->token != SCAN_NULL;
        if (!pre) walk->saw_out |= scan->token != SCAN_NULL;
        return read_tree(walk, pre ? &entry->in : &entry->out);
    }
    if (span_is(name, "call_depth")) {
        if (scan->token != SCAN_NUMBER || !scan_integer(scan->text, scan->length, &walk->depth) ||
            walk->depth < 0 || walk->depth > INT32_MAX)
            return scan_fail(scan, "a whole number from 0 on");
        return STATUS_OK;
    }
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        if (span_is(name, texts[i].name)) return read_text_member(walk, texts[i].out);
    return scan_skip(scan);
}

/* Closes the modules that the entry stands behind, and keeps it. */
static enum status end_entry(struct walk *walk) {
    const struct dump_entry *entry = &walk->reader->entry;
    const char *lacks = NULL;
    if (walk->kind == KIND_NONE) lacks = "type";
    if (walk->depth < 0) lacks = "call_depth";
    if (walk->kind == KIND_ANNOTATE && walk->tag.text == NULL) lacks = "tag";
    if (walk->kind == KIND_OP && entry->op.text == NULL) lacks = "op_name";
    if (walk->kind == KIND_OP && entry->args.text == NULL) lacks = "args_str";
    if (lacks != NULL) {
        FAIL(STATUS_INPUT, "%s:%" PRIu32 ":%zu: entry %" PRIu32 " of logs has no \"%s\"",
             walk->reader->dump->path, walk->scan.line,
             walk->scan.start - walk->scan.line_start + 1, entry->place, lacks);
    }
    /* A range of the profiler is written one less deep than a module at the same place. */
    if (walk->kind == KIND_ANNOTATE && span_is(walk->header, "record function")) walk->depth++;
    while (walk->open > 0 && walk->depth <= walk->modules[walk->open - 1].depth)
        walk->open--;
    if (walk->kind == KIND_ANNOTATE) return end_annotate(walk);
    return walk->kind == KIND_OTHER ? STATUS_OK : end_op(walk);
}

static enum status read_entry(struct walk *walk) {
    struct scan *scan = &walk->scan;
    struct dump_entry *entry = &walk->reader->entry;
    const struct dump_entry empty = {.in = entry->in, .out = entry->out, .place = entry->place + 1};
    *entry = empty;
    entry->in.count = entry->out.count = 0;
    walk->kind = KIND_NONE;
    walk->depth = -1;
    walk->tag = walk->header = walk->stack = walk->forward_stack = (struct log_span){NULL, 0};
    walk->saw_in = walk->saw_out = 0;
    TRY(scan_expect(scan, SCAN_OBJECT));
    for (;;) {
        TRY(scan_next(scan));
        if (scan->token == SCAN_OBJECT_END) return end_entry(walk);
        TRY(read_member(walk));
    }
}

static enum status read_entries(struct walk *walk) {
    TRY(scan_expect(&walk->scan, SCAN_ARRAY));
    for (;;) {
        TRY(scan_next(&walk->scan));
        if (walk->scan.token == SCAN_ARRAY_END) return STATUS_OK;
        TRY(read_entry(walk));
    }
}

/* ---- the file ---- */

static enum status read_top(struct walk *walk) {
    struct scan *scan = &walk->scan;
    int format = 0, version = 0, logs = 0;
    TRY(scan_next(scan));
    for (;;) {
        TRY(scan_next(scan));
        if (scan->token == SCAN_OBJECT_END) break;
        const struct log_span name = {scan->text, scan->length};
        TRY(scan_next(scan));
        if (span_is(name, "format")) {
            if (scan->token != SCAN_STRING || !scan_is(scan, FORMAT))
                return scan_fail(scan, "the format \"" FORMAT "\"");
            format = 1;
        } else if (span_is(name, "version")) {
            if (scan->token != SCAN_NUMBER || !scan_is(scan, "1"))
                return scan_fail(scan, "version 1, which is the one that is known");
            version = 1;
        } else if (span_is(name, "logs") && format && version) {
            TRY(read_entries(walk));
            logs = 1;
        } else {
            TRY(scan_skip(scan));
        }
    }
    if (!format || !version || !logs)
        return scan_fail(scan,
                         "\"format\", \"version\" and \"logs\", in this order, before the end of "
                         "what DebugMode.save_logs() wrote");
    TRY(scan_next(scan));
    return scan_expect(scan, SCAN_END);
}

enum status dump_read_debug_mode(struct dump_reader *reader) {
    struct walk *walk;
    TRY(arena_take(reader->words->arena, 1, sizeof *walk, "a dump", &walk));
    walk->reader = reader;
    reader->dump->format = "DebugMode";
    scan_open(&walk->scan, reader->source);
    return read_top(walk);
}
