/* SPDX-License-Identifier: Apache-2.0
 * Asks every reader how sure it is of the beginning of a file. Where none is certain, the readers
 * of lines look further, since a job's preamble may be longer than what a claim looks at.
 *
 * Invariant: a file that a reader is certain of at its beginning is looked at no further. */
#include "logs/choose.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "logs/names.h"
#include "logs/pairs.h"
#include "logs/scan.h"

/* How far a better claim than an uncertain one is sought. Where there is none at all, it is sought
 * to the end of the file. */
#define LOOK_FURTHER ((size_t)1 << 20)
/* How much of a file that nobody knows is searched for lines that come close. */
#define LOOK_CLOSELY ((size_t)4 << 20)
#define CLOSEST 3
#define SHOWN 72

/* ---- by name ---- */

static void list_formats(char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (const struct log_format *f = log_formats(); f->name != NULL && used < size; f++) {
        const int wrote =
            snprintf(text + used, size - used, "%s%s", used == 0 ? "" : ", ", f->name);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}

static enum status reader_named(const char *format, const struct log_reader_row **out) {
    char formats[1024];
    for (*out = log_readers(); (*out)->name != NULL; ++*out)
        if (strcmp((*out)->name, format) == 0) return STATUS_OK;
    list_formats(formats, sizeof formats);
    FAIL(STATUS_INPUT, "expected a format of logs (%s), got \"%s\"", formats, format);
}

/* ---- claims ---- */

static int reads_lines(const struct log_reader *reader) {
    return reader->grammar != NULL || reader->lines;
}

struct choice {
    const struct log_reader_row *row;
    int claim;
};

static enum status ask(const struct log_source *source, int lines_only, struct choice *best) {
    for (const struct log_reader_row *row = log_readers(); row->name != NULL; row++) {
        if (lines_only && !reads_lines(row->reader)) continue;
        const int claim = log_reader_claim(row->reader, source);
        if (claim == LOG_CLAIM_FAILED) return STATUS_MEMORY;
        if (claim > best->claim) *best = (struct choice){row, claim};
    }
    return STATUS_OK;
}

/* Cuts the next piece of at most LOG_CLAIM_BYTES out of the source, behind its last line end; *at
 * moves behind it. */
static struct log_source next_piece(const struct log_source *source, size_t *at) {
    struct log_source piece = *source;
    const size_t left = source->length - *at;
    piece.bytes += *at;
    piece.length = left < LOG_CLAIM_BYTES ? left : LOG_CLAIM_BYTES;
    if (left > LOG_CLAIM_BYTES) piece.length = log_lines_whole(piece.bytes, piece.length);
    piece.mapping = NULL;
    *at += piece.length;
    return piece;
}

static enum status look_further(const struct log_source *source, struct choice *best) {
    size_t at = 0;
    next_piece(source, &at);
    while (at < source->length && best->claim < 3 && (best->claim == 0 || at < LOOK_FURTHER)) {
        const struct log_source piece = next_piece(source, &at);
        TRY(ask(&piece, 1, best));
        log_source_release(source, at);
    }
    return STATUS_OK;
}

/* ---- nobody claims it ---- */

static int begins(const struct log_source *source, const char *bytes, size_t length) {
    return source->length >= length && memcmp(source->bytes, bytes, length) == 0;
}

struct near { /* the lines that hold the sign of one reader */
    const struct log_reader_row *row;
    size_t lines;
    uint32_t first;
    char text[SHOWN + 1];
};

/* Keeps the readers with the most lines, the first of them where two have as many. */
static void keep_near(struct near nearest[CLOSEST], const struct near *found) {
    size_t at = CLOSEST;
    while (at > 0 && nearest[at - 1].lines < found->lines)
        at--;
    if (at == CLOSEST) return;
    memmove(nearest + at + 1, nearest + at, (CLOSEST - 1 - at) * sizeof *nearest);
    nearest[at] = *found;
}

static struct near look_for(const struct log_reader_row *row, const struct log_source *source) {
    struct log_source part = *source;
    struct near found = {.row = row};
    struct log_lines lines;
    struct log_line line;
    if (row->reader->sign == NULL) return found;
    part.length = part.length < LOOK_CLOSELY ? part.length : LOOK_CLOSELY;
    part.mapping = NULL;
    log_lines_open(&lines, &part, NULL);
    while (log_lines_next(&lines, &line)) {
        if (log_span_after(line.span, row->reader->sign).text == NULL) continue;
        if (found.lines++ > 0) continue;
        const struct log_span shown = log_span_trim(line.span);
        found.first = line.number;
        log_show(shown.text, shown.length, found.text, sizeof found.text);
    }
    return found;
}

/* Appends "; NEAR: line N, "..", is not SHAPE" for the readers that come closest. */
static void list_near(const struct log_source *source, char *text, size_t size) {
    struct near nearest[CLOSEST];
    size_t used = 0;
    memset(nearest, 0, sizeof nearest);
    text[0] = '\0';
    for (const struct log_reader_row *row = log_readers(); row->name != NULL; row++) {
        const struct near found = look_for(row, source);
        if (found.lines > 0) keep_near(nearest, &found);
    }
    for (size_t i = 0; i < CLOSEST && nearest[i].lines > 0 && used < size; i++) {
        const int wrote =
            snprintf(text + used, size - used, "%s %s: line %" PRIu32 ", \"%s\", is not \"%s\"",
                     i == 0 ? "; the closest are" : ";", nearest[i].row->name, nearest[i].first,
                     nearest[i].text, nearest[i].row->reader->shape);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}

/* Where the file begins as JSON does, says what the scanner met. */
static void show_json(const struct log_source *source, char *text, size_t size) {
    struct log_source part = *source;
    struct scan scan;
    text[0] = '\0';
    if (!begins(source, "{\"", 2) && !begins(source, "{\n", 2) && !begins(source, "[{", 2)) return;
    part.mapping = NULL;
    scan_open(&scan, &part);
    do
        if (scan_next(&scan) != STATUS_OK) {
            snprintf(text, size, "; read as JSON: %s", status_text());
            return;
        }
    while (scan.token != SCAN_END);
    snprintf(text, size, "; it is JSON, but no object with numbers stands in its first 64 KiB");
}

/* Appends what keeps a line of values from being a row: its bar or its count may count something
 * else than updates, which is for the user to say; its commas may part decimals. */
static void show_line(const struct pairs *pairs, struct log_span whole, uint32_t line, char *text,
                      size_t size) {
    char name[SHOWN + 1], value[SHOWN + 1];
    const struct pair *const comma = &pairs->comma;
    const struct step_pair *const count = &pairs->counts[0];
    struct log_span part;
    const struct pair *odd = NULL;
    int known = 0;
    for (size_t i = 0; i < pairs->count; i++)
        if (odd == NULL && pairs_is_step(pairs->pair[i].name)) odd = &pairs->pair[i];
    for (size_t i = 0; i < pairs->count; i++)
        known |= log_known_name(pairs->pair[i].name.text, pairs->pair[i].name.length) != NULL;
    if (pairs->bar.name.length > 0 && pairs->count > 0) {
        snprintf(text, size,
                 "; line %" PRIu32 " is a progress bar with values (--map step=bar takes its count "
                 "as the update)",
                 line);
    } else if (comma->name.length > 0) {
        log_show(comma->name.text, comma->name.length, name, sizeof name);
        log_show(comma->value.text, comma->value.length, value, sizeof value);
        snprintf(text, size,
                 "; line %" PRIu32 " has a comma where a decimal point is expected, \"%s\" %s: sed "
                 "-E 's/([0-9]),([0-9])/\\1.\\2/g' makes points of them",
                 line, name, value);
    } else if (known && pairs->step_count == 0 && odd != NULL) {
        log_show(odd->name.text, odd->name.length, name, sizeof name);
        log_show(odd->value.text, odd->value.length, value, sizeof value);
        snprintf(text, size, "; line %" PRIu32 " has a step that is no whole number (\"%s\" %s)",
                 line, name, value);
    } else if (known && pairs->step_count == 0 && pairs_part_of_epoch(whole, &part) != 0) {
        const int samples = pairs_part_of_epoch(whole, &part) == PAIRS_SAMPLES;
        log_show(part.text, part.length, name, sizeof name);
        snprintf(text, size,
                 "; line %" PRIu32 " counts %s of an epoch (\"%s\") and says no update: have the "
                 "program print one beside the loss (\"step 12\")",
                 line, samples ? "samples" : "batches", name);
    } else if (known && pairs->step_count == 0 && pairs->count_count > 0) {
        log_show(count->name.text, count->name.length, name, sizeof name);
        snprintf(text, size,
                 "; line %" PRIu32 " has values and counts \"%s\" (--map \"step=%s\" takes that as "
                 "the update)",
                 line, name, name);
    } else if (known && pairs->step_count == 0) {
        log_show(pairs->pair[0].name.text, pairs->pair[0].name.length, name, sizeof name);
        snprintf(text, size, "; line %" PRIu32 " has values (\"%s\") and says no step", line, name);
    }
}

/* Where the first line that is no comment holds bare numbers, says what to do: no header says what
 * they are. */
static void show_columns(const struct log_source *source, char *text, size_t size) {
    struct log_lines lines;
    struct log_line line;
    text[0] = '\0';
    log_lines_open_head(&lines, source);
    while (log_lines_next(&lines, &line)) {
        struct log_span rest = log_span_trim(line.span);
        size_t numbers = 0;
        if (rest.length == 0 || rest.text[0] == '#') continue;
        for (;;) {
            const struct log_span word = log_span_word(&rest);
            if (word.length == 0) break;
            if (!log_span_is_number(word)) return;
            numbers++;
        }
        if (numbers < 3) return;
        snprintf(text, size,
                 "; line %" PRIu32 " has %zu numbers and no names: a first line of names with "
                 "commas, and commas between the numbers, make a CSV of it%s",
                 line.number, numbers,
                 numbers > 3
                     ? ""
                     : ", and --format torchtitan-golden reads step, loss and gradient norm "
                       "(with --map lr_logged=grad_norm the third is the learning rate)");
        return;
    }
}

static int counts(const struct pairs *pairs, const char *wanted) {
    const struct log_span name = {wanted, strlen(wanted)};
    if (log_span_is(name, PAIRS_BAR)) return pairs->bar.name.length > 0;
    for (size_t i = 0; i < pairs->count_count; i++)
        if (pairs_same_step(pairs->counts[i].name, name)) return 1;
    return 0;
}

/* Says what the first line of values lacks. With `wanted` it looks for a line of values that counts
 * something of that name instead, and the text says something where there is one. */
static enum status show_values(const struct log_source *source, const char *wanted, char *text,
                               size_t size) {
    struct arena arena = ARENA_EMPTY;
    struct log_source part = *source;
    struct log_lines lines;
    struct log_line line;
    struct pairs *pairs;
    const enum status status = arena_take(&arena, 1, sizeof *pairs, "pairs", &pairs);
    part.length = part.length < LOOK_CLOSELY ? part.length : LOOK_CLOSELY;
    part.mapping = NULL;
    text[0] = '\0';
    log_lines_open(&lines, &part, NULL);
    while (status == STATUS_OK && text[0] == '\0' && log_lines_next(&lines, &line)) {
        if (line.span.length > LOG_LINE_MAX) continue;
        pairs_read(line.span, pairs);
        if (wanted == NULL || counts(pairs, wanted))
            show_line(pairs, line.span, line.number, text, size);
    }
    arena_close(&arena);
    return status;
}

static enum status refuse(const struct log_source *source) {
    char start[49], near[1024], json[512], values[512];
    log_show((const char *)source->bytes, source->length, start, sizeof start);
    if (source->length == 0)
        FAIL(STATUS_INPUT, "%s: expected a log, got an empty file", source->name);
    if (begins(source, "PAR1", 4))
        FAIL(STATUS_INPUT,
             "%s: expected a log, got Parquet; write it as JSONL first "
             "(pandas: to_json(orient=\"records\", lines=True))",
             source->name);
    if (begins(source, "SQLite format 3", 16))
        FAIL(STATUS_INPUT,
             "%s: expected a database of MLflow or Trackio, got one without their tables, or a "
             "damaged one; --format NAME says which it should be",
             source->name);
    show_json(source, json, sizeof json);
    TRY(show_values(source, NULL, values, sizeof values));
    if (values[0] == '\0') show_columns(source, values, sizeof values);
    list_near(source, near, sizeof near);
    FAIL(STATUS_INPUT,
         "%s: expected a log of a known format, got \"%s%s\"%s%s%s; --format NAME says what it is "
         "(twinstep list formats)",
         source->name, start, source->length >= sizeof start ? "..." : "", json, near, values);
}

/* Refuses what is a log in a wrapping that is not undone here: read as text it would be garbage, or
 * the files of an archive one behind the other. */
static enum status refuse_wrapping(const struct log_source *source) {
    const unsigned char *const b = source->bytes;
    const size_t length = source->length;
    if (length >= 2 && ((b[0] == 0xff && b[1] == 0xfe) || (b[0] == 0xfe && b[1] == 0xff)))
        FAIL(STATUS_INPUT,
             "%s: expected a log in UTF-8, got UTF-16, as PowerShell writes it; iconv -f UTF-16 -t "
             "UTF-8 makes one",
             source->name);
    if (length >= 262 && memcmp(b + 257, "ustar", 5) == 0)
        FAIL(STATUS_INPUT, "%s: expected a log, got a tar archive; unpack it and name a file of it",
             source->name);
    if (begins(source, "PK\003\004", 4))
        FAIL(STATUS_INPUT, "%s: expected a log, got a zip archive; unpack it and name a file of it",
             source->name);
    return STATUS_OK;
}

/* Returns what the user says is the update, or NULL. */
static const char *step_of(const struct log_options *options) {
    for (size_t i = 0; i < options->map_count; i++)
        if (strcmp(options->map[i].ours, "step") == 0) return options->map[i].theirs;
    return NULL;
}

enum status log_choose_reader(const struct log_source *source, const struct log_options *options,
                              const struct log_reader_row **out) {
    struct choice best = {NULL, 0};
    if (options->format != NULL) return reader_named(options->format, out);
    TRY(refuse_wrapping(source));
    if (source->length > 0) TRY(ask(source, 0, &best));
    if (best.claim < 3 && (best.row == NULL || reads_lines(best.row->reader)))
        TRY(look_further(source, &best));
    if (best.row == NULL && source->length > 0 && step_of(options) != NULL) {
        char counted[512]; /* what is no step by its name is one where the user says so */
        TRY(show_values(source, step_of(options), counted, sizeof counted));
        if (counted[0] != '\0') return reader_named("key-value", out);
    }
    *out = best.row;
    return best.row == NULL ? refuse(source) : STATUS_OK;
}
