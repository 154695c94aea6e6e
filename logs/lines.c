/* SPDX-License-Identifier: Apache-2.0
 * The walk over the lines of a console log, and the reading of formats that have one row per line.
 *
 * Invariant: a line that had to be changed stands whole in `clean`, or is counted as too long and
 * passed over. We never cut a number in two. */
#include "logs/lines.h"

#include <inttypes.h>
#include <string.h>

#include "logs/readers.h"

#define ESCAPE '\x1b'
/* Bytes of a line in which a rank tag is sought. Chosen so that a scheduler's job name and a time
 * fit in front of it, and so that the words "[rank" inside a message are not taken for a tag. */
#define TAG_REACH 80
/* The same behind a progress bar, which ends without a line end and is as wide as its terminal. */
#define BAR_REACH 1024

static int is_digit(char c) {
    return c >= '0' && c <= '9';
}

static int is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* ---- walking ---- */

void log_lines_open(struct log_lines *lines, const struct log_source *source,
                    struct log_build *build) {
    lines->source = source;
    lines->build = build;
    lines->at = (const char *)source->bytes;
    lines->end = lines->at + source->length;
    lines->number = 1;
    lines->rank = lines->kept_rank = LOG_RANK_NONE;
    lines->at_start = 1;
    lines->too_long = lines->other_ranks = 0;
    lines->given = (struct log_span){NULL, 0};
    memset(lines->foreign, 0, sizeof lines->foreign);
    lines->open_row = 0;
}

size_t log_lines_whole(const unsigned char *bytes, size_t length) {
    size_t whole = length;
    while (whole > 0 && bytes[whole - 1] != '\n' && bytes[whole - 1] != '\r')
        whole--;
    return whole > 0 ? whole : length;
}

void log_lines_open_head(struct log_lines *lines, const struct log_source *source) {
    log_lines_open(lines, source, NULL);
    if (source->length <= LOG_CLAIM_BYTES) return;
    lines->end = lines->at + log_lines_whole(source->bytes, LOG_CLAIM_BYTES);
}

/* Returns what stands behind the escape sequence that starts at `at`: a CSI "ESC [ .. letter", an
 * OSC "ESC ] .. BEL", or two bytes. */
static const char *skip_escape(const char *at, const char *end) {
    if (++at == end) return end;
    if (*at == '[') {
        for (at++; at < end && (*at < '@' || *at > '~'); at++)
            ;
        return at == end ? end : at + 1;
    }
    if (*at != ']') return at + 1;
    while (at < end && *at != '\a' && *at != ESCAPE)
        at++;
    if (at < end && *at == ESCAPE) at++;
    return at == end ? end : at + 1;
}

/* Takes the escapes out of a line. Returns 0 when the rest is too long for the buffer. */
static int clean_escapes(struct log_lines *lines, struct log_span *span) {
    const char *at = span->text, *end = at + span->length;
    size_t kept = 0;
    if (span->length == 0 || memchr(at, ESCAPE, span->length) == NULL) return 1;
    while (at < end) {
        if (*at == ESCAPE) {
            at = skip_escape(at, end);
            continue;
        }
        if (kept == LOG_LINE_MAX) return 0;
        lines->clean[kept++] = *at++;
    }
    *span = (struct log_span){lines->clean, kept};
    return 1;
}

/* Takes off the tag "0: " that srun -l writes, at the very start of the line. */
static int read_srun_tag(struct log_span *span, int32_t *rank) {
    struct log_span rest = *span;
    int64_t number;
    if (span->length == 0 || !is_digit(span->text[0])) return 0;
    if (!log_span_integer(&rest, &number) || number > 999999) return 0;
    if (rest.length < 2 || rest.text[0] != ':' || rest.text[1] != ' ') return 0;
    *span = (struct log_span){rest.text + 2, rest.length - 2};
    *rank = (int32_t)number;
    return 1;
}

/* Takes off what Ray writes in front of an actor's line, "(TaskRunner pid=123, ip=10.0.0.1) ". It
 * is no rank: actors of other kinds print other rows. */
static void take_ray_tag(struct log_span *span) {
    if (span->length == 0 || span->text[0] != '(') return;
    const struct log_span head = {span->text, span->length < TAG_REACH ? span->length : TAG_REACH};
    struct log_span rest = log_span_after(head, "pid=");
    int64_t pid;
    if (rest.text == NULL || !log_span_integer(&rest, &pid)) return;
    rest = log_span_after(rest, ") ");
    if (rest.text == NULL) return;
    span->length -= (size_t)(rest.text - span->text);
    span->text = rest.text;
}

/* Tells whether a text is, or ends in, a progress bar of tqdm. */
static int has_bar(struct log_span span) {
    return log_span_after(span, "%|").text != NULL || log_span_after(span, "it/s").text != NULL ||
           log_span_after(span, "s/it").text != NULL;
}

/* Takes off the tag of torchrun, "[rank0]:" or "[default3]:", which stands within `reach` bytes, or
 * behind a progress bar. */
static void read_torchrun_tag(struct log_span *span, size_t reach, int32_t *rank) {
    static const char *const words[] = {"[rank", "[default"};
    const struct log_span head = {span->text, span->length < BAR_REACH ? span->length : BAR_REACH};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        struct log_span rest = log_span_after(head, words[i]);
        int64_t number;
        if (rest.text == NULL) continue;
        const size_t before = (size_t)(rest.text - span->text) - strlen(words[i]);
        if (before >= reach && !has_bar((struct log_span){span->text, before})) continue;
        if (!log_span_integer(&rest, &number) || number > 999999) continue;
        if (!log_span_starts(rest, "]:")) continue;
        rest.length = span->length - (size_t)(rest.text - span->text);
        *span = (struct log_span){rest.text + 2, rest.length - 2};
        if (span->length > 0 && span->text[0] == ' ') span->text++, span->length--;
        *rank = (int32_t)number;
        return;
    }
}

/* Takes off the tag of the rank, with a job's name or a progress bar before it at most. */
static void read_rank_tag(struct log_span *span, int32_t *rank) {
    if (!read_srun_tag(span, rank)) read_torchrun_tag(span, TAG_REACH, rank);
}

/* Finds one piece, up to '\n' or '\r'. Returns 0 at the end. */
static int next_piece(struct log_lines *lines, struct log_line *out) {
    if (lines->at == lines->end) return 0;
    const char *start = lines->at;
    while (lines->at < lines->end && *lines->at != '\n' && *lines->at != '\r')
        lines->at++;
    out->span = (struct log_span){start, (size_t)(lines->at - start)};
    out->number = lines->number;
    out->open = lines->at == lines->end;
    return 1;
}

/* Moves over the mark behind a piece. A rank tag holds for all pieces of a physical line, up to one
 * with a tag of its own. */
static void end_piece(struct log_lines *lines) {
    if (lines->at == lines->end) return;
    if (*lines->at++ == '\r') return;
    lines->number += lines->number < UINT32_MAX;
    log_source_release(lines->source, (size_t)(lines->at - (const char *)lines->source->bytes));
    lines->rank = LOG_RANK_NONE;
    lines->at_start = 1;
}

/* Counts what DeepSpeed ("[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: ..")
 * and Apex ("Gradient overflow.  Skipping step, loss scaler 0 ..") print when a scaler skips an
 * update. Other ranks say the same, so only rank 0 and lines without a rank count. */
static void look_for_skip(struct log_lines *lines, const struct log_line *line) {
    const struct log_span behind = log_span_after(line->span, "Skipping step");
    if (lines->build == NULL || behind.text == NULL) return;
    const struct log_span before = {line->span.text, (size_t)(behind.text - line->span.text)};
    struct log_span rank = log_span_after(before, "OVERFLOW! Rank ");
    int64_t number = 0;
    if (rank.text == NULL && log_span_after(before, "verflow").text == NULL) return;
    if (rank.text != NULL && (!log_span_integer(&rank, &number) || number != 0)) return;
    const int32_t kept = lines->kept_rank;
    if (kept != LOG_RANK_NONE && line->rank != LOG_RANK_NONE && line->rank != kept) return;
    log_build_skip(lines->build);
}

/* Finds the settings that say bf16: of Megatron's list of arguments ("  bf16 ........ True"), of
 * DeepSpeed's configuration ("[..] [INFO] [config.py:..]   bfloat16_enabled ........ True"), and of
 * transformers' TrainingArguments ("bf16=True,"). Frameworks scale the loss in fp16 alone, so such
 * a log is of a training without a scaler: in it no update is skipped but one whose gradient norm
 * is not finite, and a fit of its LRs needs to look for no other (forensics/fit_format.c). */
static void look_for_precision(struct log_lines *lines, const struct log_line *line) {
    const struct log_span span = log_span_trim(line->span);
    const struct log_span deepspeed = log_span_after(span, "bfloat16_enabled ");
    struct log_span rest = deepspeed;
    if (lines->build == NULL) return;
    if (log_span_is(span, "bf16=True,")) log_build_bf16(lines->build);
    if (span.length > 5 && memcmp(span.text, "bf16 ", 5) == 0)
        rest = (struct log_span){span.text + 5, span.length - 5};
    if (rest.text == NULL || rest.length == 0 || rest.text[0] != '.') return;
    while (rest.length > 0 && rest.text[0] == '.')
        rest.text++, rest.length--;
    if (log_span_is(log_span_trim(rest), "True")) log_build_bf16(lines->build);
}

static int claim_line(const struct log_grammar *grammar, struct log_span line) {
    struct log_row row = {.step = 0};
    if (grammar->claim_line != NULL) return grammar->claim_line(line);
    return grammar->head(line, &row) ? grammar->sure : 0;
}

/* Counts the line at hand for the first other reader to which it is a row. */
static void look_for_foreign(struct log_lines *lines) {
    const struct log_span line = lines->given;
    if (lines->build == NULL || line.text == NULL) return;
    for (size_t i = 0; log_readers()[i].name != NULL && i < LOG_READERS_MAX; i++) {
        const struct log_reader *reader = log_readers()[i].reader;
        if (strcmp(log_readers()[i].name, log_build_format(lines->build)) == 0) continue;
        if (reader->any_line && log_build_has_steps(lines->build)) continue;
        if ((reader->claim_line != NULL && reader->claim_line(line) >= 2) ||
            (reader->grammar != NULL && claim_line(reader->grammar, line) >= 2)) {
            lines->foreign[i]++;
            return;
        }
    }
}

int log_lines_next(struct log_lines *lines, struct log_line *out) {
    look_for_foreign(lines);
    lines->given = (struct log_span){NULL, 0};
    while (next_piece(lines, out)) {
        const int fits = clean_escapes(lines, &out->span);
        if (!fits) lines->too_long++;
        if (fits && lines->at_start && out->span.length > 0) {
            take_ray_tag(&out->span);
            read_rank_tag(&out->span, &lines->rank);
            lines->at_start = 0;
        } else if (fits && out->span.length > 0) {
            read_torchrun_tag(&out->span, 1, &lines->rank);
        }
        out->rank = lines->rank;
        end_piece(lines);
        if (!fits || out->span.length == 0) continue;
        look_for_skip(lines, out);
        look_for_precision(lines, out);
        lines->given = out->span;
        return 1;
    }
    return 0;
}

int log_lines_take(struct log_lines *lines, const struct log_line *line) {
    lines->given = (struct log_span){NULL, 0};
    if (lines->kept_rank == LOG_RANK_NONE) lines->kept_rank = line->rank;
    if (line->rank != LOG_RANK_NONE && line->rank != lines->kept_rank) {
        lines->other_ranks++;
        return 0;
    }
    lines->open_row = line->open ? line->number : 0;
    return 1;
}

/* Says what was left out of a file of two formats. Rows of a grammar say their update; where the
 * rows that were read do not, the others may serve better. */
static enum status note_foreign(const struct log_lines *lines, struct log_build *build, size_t i) {
    const struct log_reader_row *const row = &log_readers()[i];
    const int says_step = row->reader->grammar != NULL || row->reader->any_line;
    const int better = says_step && !log_build_has_steps(build);
    if (row->reader->any_line && !better) return STATUS_OK;
    return log_build_note(build, "rows of %s were left out: %" PRIu32 "%s (--format %s reads them)",
                          row->name, lines->foreign[i],
                          better ? ", which say their update as the rows read here do not" : "",
                          row->name);
}

enum status log_lines_close(const struct log_lines *lines, struct log_build *build) {
    if (lines->too_long > 0)
        TRY(log_build_note(build, "%zu lines with colours are longer than %d bytes: left out",
                           lines->too_long, LOG_LINE_MAX));
    if (lines->other_ranks > 0)
        TRY(log_build_note(build, "%zu rows of other ranks than %" PRId32 " were left out",
                           lines->other_ranks, lines->kept_rank));
    for (size_t i = 0; i < LOG_READERS_MAX; i++)
        if (lines->foreign[i] > 0) TRY(note_foreign(lines, build, i));
    if (lines->open_row > 0)
        TRY(log_build_note(build,
                           "line %" PRIu32 ", the last, has no line end: its last value may be cut",
                           lines->open_row));
    return STATUS_OK;
}

/* ---- spans ---- */

struct log_span log_span_trim(struct log_span span) {
    while (span.length > 0 && is_blank(span.text[0]))
        span.text++, span.length--;
    while (span.length > 0 && is_blank(span.text[span.length - 1]))
        span.length--;
    return span;
}

struct log_span log_span_after(struct log_span span, const char *word) {
    const size_t length = strlen(word);
    while (span.length >= length) {
        const char *first = (const char *)memchr(span.text, word[0], span.length - length + 1);
        if (first == NULL) break;
        span.length -= (size_t)(first - span.text);
        span.text = first;
        if (memcmp(first, word, length) == 0)
            return (struct log_span){first + length, span.length - length};
        span.text++, span.length--;
    }
    return (struct log_span){NULL, 0};
}

int log_span_starts(struct log_span span, const char *word) {
    const size_t length = strlen(word);
    return span.length >= length && memcmp(span.text, word, length) == 0;
}

int log_span_take(struct log_span *rest, const char *word) {
    if (!log_span_starts(*rest, word)) return 0;
    const size_t length = strlen(word);
    rest->text += length;
    rest->length -= length;
    return 1;
}

int log_span_is(struct log_span span, const char *word) {
    return span.length == strlen(word) && memcmp(span.text, word, span.length) == 0;
}

int log_span_ends(struct log_span span, const char *word) {
    const size_t length = strlen(word);
    return span.length >= length && memcmp(span.text + span.length - length, word, length) == 0;
}

int log_span_is_number(struct log_span span) {
    struct log_number number;
    return log_number_read(span.text, span.length, &number);
}

struct log_span log_span_until(struct log_span *rest, char mark) {
    const char *found =
        rest->length == 0 ? NULL : (const char *)memchr(rest->text, mark, rest->length);
    const size_t length = found == NULL ? rest->length : (size_t)(found - rest->text);
    const size_t skip = length + (found != NULL);
    const struct log_span head = {rest->text, length};
    rest->text += skip;
    rest->length -= skip;
    return head;
}

void log_span_blanks(struct log_span *rest) {
    while (rest->length > 0 && is_blank(rest->text[0]))
        rest->text++, rest->length--;
}

struct log_span log_span_word(struct log_span *rest) {
    log_span_blanks(rest);
    struct log_span word = {rest->text, 0};
    while (word.length < rest->length && !is_blank(rest->text[word.length]))
        word.length++;
    rest->text += word.length;
    rest->length -= word.length;
    return word;
}

int log_span_integer(struct log_span *rest, int64_t *out) {
    int64_t value = 0;
    size_t digits = 0;
    for (; digits < rest->length && is_digit(rest->text[digits]); digits++) {
        if (value > ((int64_t)1 << 58)) return 0;
        value = 10 * value + (rest->text[digits] - '0');
    }
    rest->text += digits;
    rest->length -= digits;
    *out = value;
    return digits > 0;
}

/* ---- values ---- */

enum status log_put_text(struct log_build *build, const struct log_rule *rules,
                         struct log_span name, struct log_span value) {
    struct log_number number;
    size_t column;
    if (name.length == 0 || !log_number_read(value.text, value.length, &number)) return STATUS_OK;
    TRY(log_build_column(build, name.text, name.length, rules, &column));
    return log_build_text(build, column, value.text, value.length);
}

/* ---- formats of one row per line ---- */

int log_lines_claim(const struct log_source *source, const struct log_grammar *grammar) {
    struct log_lines lines;
    struct log_line line;
    int claim = 0;
    log_lines_open_head(&lines, source);
    while (claim == 0 && log_lines_next(&lines, &line))
        claim = claim_line(grammar, line.span);
    return claim;
}

struct torn { /* lines that are no whole rows */
    size_t lines;
    uint32_t first;
};

static void look_for_tear(struct torn *torn, const struct log_line *line,
                          const struct log_grammar *grammar) {
    if (grammar->torn == NULL || !grammar->torn(line->span)) return;
    if (torn->lines++ == 0) torn->first = line->number;
}

static enum status note_torn(const struct torn *torn, struct log_build *build) {
    if (torn->lines == 0) return STATUS_OK;
    return log_build_note(build,
                          "torn lines, of which only the values in front of the tear were read: "
                          "%zu, the first is line %" PRIu32
                          " (the log was cut there, or several processes wrote into one line)",
                          torn->lines, torn->first);
}

enum status log_lines_read(const struct log_source *source, struct log_build *build,
                           const struct log_grammar *grammar) {
    struct log_lines lines;
    struct log_line line;
    struct torn torn = {0, 0};
    log_lines_open(&lines, source, build);
    while (log_lines_next(&lines, &line)) {
        struct log_row row = {.open = line.open};
        look_for_tear(&torn, &line, grammar);
        if (!grammar->head(line.span, &row) || !log_lines_take(&lines, &line)) continue;
        TRY(log_build_row(build, row.step, line.number, source->part));
        log_build_max_steps(build, row.max_steps);
        TRY(grammar->fields(build, &row));
    }
    if (grammar->marked) lines.open_row = 0;
    TRY(note_torn(&torn, build));
    return log_lines_close(&lines, build);
}
