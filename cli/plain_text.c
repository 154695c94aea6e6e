/* SPDX-License-Identifier: Apache-2.0
 * A custom stream of glibc. Invariant: of a sequence that two writes share nothing is written
 * before its last byte is there. */
#define _GNU_SOURCE /* fopencookie */
#include "cli/plain_text.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "report/html.h"

#define PIECE 4096
#define WORD 8 /* for \u202e and a NUL */

/* Where in a line a stream stands: behind blanks at most, behind one colon, or further. */
enum place { LINE_BEGINS, LINE_COLON, LINE_GOES_ON };

struct plain_text {
    FILE *stream;
    int descriptor;
    unsigned char held[4]; /* the beginning of a sequence */
    size_t held_count;
    char piece[PIECE];
    size_t used;
    int reason; /* the errno of the first write that failed */
    enum place line;
    int marks;    /* how many # came last, at most 2 */
    int commands; /* 1: commands to a runner are let pass */
    int passes;   /* 1: all bytes are let pass, as they are */
};

/* Standard output and standard error; a process has no third. */
static struct plain_text streams[2];

/* Returns how many of the bytes were written; where that is not all of them, `reason` says why. */
static size_t write_bytes(struct plain_text *text, const char *bytes, size_t count) {
    size_t done = 0;
    while (done < count) {
        const ssize_t wrote = write(text->descriptor, bytes + done, count - done);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) {
            if (text->reason == 0) text->reason = wrote < 0 ? errno : EIO;
            break;
        }
        done += (size_t)wrote;
    }
    return done;
}

static int write_piece(struct plain_text *text) {
    if (write_bytes(text, text->piece, text->used) != text->used) return -1;
    text->used = 0;
    return 0;
}

static int put(struct plain_text *text, const char *bytes, size_t count) {
    if (text->used + count > PIECE && write_piece(text) != 0) return -1;
    memcpy(text->piece + text->used, bytes, count);
    text->used += count;
    return 0;
}

/* Line and paragraph separators are no plain text either: some terminals break lines there. */
static int is_plain(uint32_t point) {
    if (point < 0x20) return point == '\t' || point == '\n';
    return (point < 0x7f || point >= 0xa0) && point != 0x2028 && point != 0x2029 &&
           !html_turns_direction(point);
}

/* Whether a character completes a command to a runner: :: where a line begins, ##[ anywhere. Only
 * ASCII counts, because a runner passes over blanks, and its comparison of texts may pass over
 * other characters. */
static int completes_command(struct plain_text *text, uint32_t point) {
    int completes = 0;
    if (point > 0x7e) return 0;
    if (point == '\n') {
        text->line = LINE_BEGINS;
    } else if (point == ':' && text->line != LINE_GOES_ON) {
        completes = text->line == LINE_COLON;
        text->line = completes ? LINE_GOES_ON : LINE_COLON;
    } else if (text->line == LINE_COLON || (point != ' ' && point != '\t')) {
        text->line = LINE_GOES_ON;
    }
    completes |= point == '[' && text->marks == 2;
    text->marks = point == '#' ? (text->marks == 0 ? 1 : 2) : 0;
    return completes && !text->commands;
}

static int put_sequence(struct plain_text *text, const unsigned char *bytes, size_t length,
                        uint32_t point) {
    char words[WORD];
    if (length == 0)
        snprintf(words, sizeof words, "\\x%02x", bytes[0]);
    else if (!is_plain(point) || completes_command(text, point))
        snprintf(words, sizeof words, "\\u%04x", (unsigned)point);
    else
        return put(text, (const char *)bytes, length);
    text->line = LINE_GOES_ON;
    text->marks = 0;
    return put(text, words, strlen(words));
}

/* The number of bytes that the sequence beginning with `lead` should have; 1 for what begins none.
 */
static size_t promised(unsigned char lead) {
    return lead < 0xc2 || lead > 0xf4 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* Writes what is held, whole or, with `all`, as the bytes that it is. */
static int put_held(struct plain_text *text, int all) {
    while (text->held_count > 0 && (all || text->held_count >= promised(text->held[0]))) {
        uint32_t point = 0;
        const size_t length = html_sequence(text->held, text->held_count, &point);
        const size_t taken = length == 0 ? 1 : length;
        if (put_sequence(text, text->held, length, point) != 0) return -1;
        text->held_count -= taken;
        memmove(text->held, text->held + taken, text->held_count);
    }
    return 0;
}

static ssize_t take(void *cookie, const char *bytes, size_t count) {
    struct plain_text *text = (struct plain_text *)cookie;
    if (text->passes) return (ssize_t)write_bytes(text, bytes, count);
    for (size_t i = 0; i < count; i++) {
        const unsigned char byte = (unsigned char)bytes[i];
        if (text->held_count == 0 && byte >= 0x20 && byte < 0x7f) {
            if (put_sequence(text, &byte, 1, byte) != 0) return 0;
            continue;
        }
        text->held[text->held_count++] = byte;
        if (put_held(text, 0) != 0) return 0;
    }
    return write_piece(text) == 0 ? (ssize_t)count : 0;
}

void plain_text_commands(FILE *stream, int allowed) {
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++) {
        if (streams[i].stream == NULL || streams[i].stream != stream) continue;
        fflush(stream); /* what fails is kept in `reason` and told by output_end() */
        streams[i].commands = allowed;
    }
}

void plain_text_put(const char *text, FILE *out) {
    size_t plain = strcspn(text, "\n\t");
    for (; text[plain] != '\0'; text += plain + 1, plain = strcspn(text, "\n\t"))
        fprintf(out, "%.*s\\u%04x", (int)plain, text, (unsigned)text[plain]);
    fputs(text, out);
}

int output_end(FILE *stream) {
    int reason = 0;
    errno = 0;
    if (fflush(stream) != 0 || ferror(stream)) reason = errno == 0 ? EIO : errno;
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++) {
        struct plain_text *const text = &streams[i];
        if (text->stream != stream) continue;
        if ((put_held(text, 1) != 0 || write_piece(text) != 0) && reason == 0) reason = errno;
        if (text->reason != 0) reason = text->reason;
    }
    if (close(STDOUT_FILENO) != 0 && reason == 0) reason = errno;
    return reason;
}

static enum status open_stream(int descriptor, int unbuffered, int passes, FILE **out) {
    struct plain_text *text = &streams[descriptor == STDERR_FILENO];
    const cookie_io_functions_t calls = {.write = take};
    *text = (struct plain_text){.descriptor = descriptor, .passes = passes};
    FILE *const stream = fopencookie(text, "w", calls);
    if (stream == NULL) FAIL(STATUS_MEMORY, "output: cannot open a stream: %s", strerror(errno));
    const int mode = unbuffered ? _IONBF : isatty(descriptor) ? _IOLBF : _IOFBF;
    if (setvbuf(stream, NULL, mode, unbuffered ? 0 : BUFSIZ) != 0) {
        fclose(stream);
        FAIL(STATUS_MEMORY, "output: cannot set the buffer of a stream");
    }
    *out = text->stream = stream;
    return STATUS_OK;
}

enum status plain_text_open(int descriptor, int unbuffered, FILE **out) {
    return open_stream(descriptor, unbuffered, 0, out);
}

enum status plain_text_pass(FILE **out) {
    return open_stream(STDOUT_FILENO, 0, 1, out);
}
