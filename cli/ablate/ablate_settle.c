/* SPDX-License-Identifier: Apache-2.0
 * From the end of a process to `done` or `failed`: reads what the run left, and says how it ended
 * with the end of its stderr. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/input.h"
#include "cli/ablate/ablate_loop.h"
#include "report/html.h"
#include "scenarios/textfile.h"

#define TAIL_BYTES 16384 /* a progress bar is rewritten in one line, which so many bytes may be */
#define TAIL_LINES 8
#define TAIL_LINE 200 /* bytes of a line that are told */

/* What a terminal shows of a line in the end: what stands behind its last CR that is not at its
 * end.
 */
static const char *shown_part(const char *line, size_t *length) {
    while (*length > 0 && line[*length - 1] == '\r')
        --*length;
    size_t from = *length;
    while (from > 0 && line[from - 1] != '\r')
        from--;
    *length -= from;
    return line + from;
}

/* Puts together the last lines of a text that are not empty, each cut where it is long. */
static enum status last_lines(const char *text, size_t length, struct arena *arena, char **out) {
    for (int lines = 0; length > 0 && lines < TAIL_LINES;) {
        size_t from = length;
        while (from > 0 && text[from - 1] != '\n')
            from--;
        size_t shown = length - from;
        const char *const line = shown_part(text + from, &shown);
        if (shown > 0) {
            const int is_cut = shown > TAIL_LINE;
            TRY(arena_format(arena, out, "%.*s%s%s%s", (int)(is_cut ? TAIL_LINE : shown), line,
                             is_cut ? "..." : "", lines++ > 0 ? "\n" : "", *out));
        }
        length = from > 0 ? from - 1 : 0;
    }
    return STATUS_OK;
}

/* Reads the last lines of a run's stderr; "" where it wrote none. */
static enum status read_tail(struct ablate_loop *loop, const struct ablate_run *run,
                             struct arena *arena, char **out) {
    char bytes[TAIL_BYTES + 1], *path;
    struct input input;
    TRY(ablate_folder_path(loop->of->folder, run, "stderr", arena, &path));
    TRY(arena_format(arena, out, "%s", ""));
    if (input_open(path, INPUT_FILE, path, "what a run printed", &input) != STATUS_OK)
        return STATUS_OK;
    const uint64_t from = input.length > TAIL_BYTES ? input.length - TAIL_BYTES : 0;
    ssize_t length = pread(input.descriptor, bytes, TAIL_BYTES, (off_t)from);
    close(input.descriptor);
    if (length <= 0) return STATUS_OK;
    for (ssize_t i = 0; i < length; i++)
        if (bytes[i] == '\0') bytes[i] = '?'; /* the text goes on behind it */
    bytes[length] = '\0';
    return last_lines(bytes, (size_t)length, arena, out);
}

/* Reads the machine that a run's line named; "" where it ran here. */
static enum status read_host(struct ablate_loop *loop, const struct ablate_run *run,
                             struct arena *arena, char **out) {
    char *path;
    size_t length;
    TRY(arena_format(arena, out, "%s", ""));
    if (loop->of->executor.count == 0) return STATUS_OK;
    TRY(ablate_folder_path(loop->of->folder, run, "host", arena, &path));
    TRY(textfile_read(arena, path, 4096, out, &length));
    (*out)[strcspn(*out, "\n")] = '\0';
    if ((*out)[0] == '\0')
        FAIL(STATUS_INPUT,
             "%s is empty: the executor did not run {command}, or where it was run this folder is "
             "not seen",
             path);
    return STATUS_OK;
}

/* Puts a question mark in place of every byte that is no UTF-8, because JSON has no word for it. */
static void keep_text(char *text) {
    for (size_t left = strlen(text); left > 0;) {
        uint32_t point;
        size_t length = html_sequence((const unsigned char *)text, left, &point);
        if (length == 0) {
            *text = '?';
            length = 1;
        }
        text += length;
        left -= length;
    }
}

/* Describes how a command ended, where that is no success; "" where it is. */
static enum status describe_end(const struct ablate_loop *loop, const struct guard_answer *answer,
                                struct arena *arena, char **out) {
    switch (answer->end) {
    case GUARD_EXITED:
        if (answer->value == 0) return arena_format(arena, out, "%s", "");
        return arena_format(arena, out, "exit status %d", answer->value);
    case GUARD_SIGNALLED:
        return arena_format(arena, out, "ended by signal %d (%s)", answer->value,
                            strsignal(answer->value));
    case GUARD_TIMEOUT:
        return arena_format(arena, out, "not done after %g s (run.timeout), so ended%s",
                            loop->of->file->timeout,
                            answer->survivors > 0 ? "; a process of it cannot be killed" : "");
    case GUARD_STOPPED:
        return arena_format(arena, out, "stopped");
    case GUARD_NOT_STARTED:
        return arena_format(arena, out, "cannot be started: %s", strerror(answer->value));
    default:
        return arena_format(arena, out, "the process that guarded it is lost, so it was ended%s",
                            answer->survivors > 0 ? "; a process of it cannot be killed" : "");
    }
}

static void tell(struct ablate_loop *loop, const struct ablate_run *run, const char *how,
                 double seconds) {
    if (loop->of->quiet) return;
    progress_close(&loop->progress);
    fprintf(stderr, "%s: %s: %s (%.1f s)\n", loop->of->file->name, run->id, how, seconds);
}

/* Refuses a command whose program cannot be started, by its name: the arms may have two. */
static enum status refuse_command(const struct ablate_running *of, const struct ablate_run *run,
                                  const char *how, struct arena *arena) {
    const char *const *files;
    struct ablate_command command;
    TRY(ablate_file_names(of->file, arena, &files));
    const struct ablate_values values = {run->mask, "{dir}",  run->id, "{gpu}",
                                         "{port}",  "{seed}", files};
    TRY(ablate_command_of(of->plan, run, &values, arena, &command));
    FAIL(STATUS_INPUT, "%s: command of %s: %s: %s", of->file->path, run->id, command.words.words[0],
         how);
}

/* Keeps what a run left, or why it failed. */
enum status ablate_run_settle(struct ablate_loop *loop, uint32_t at,
                              const struct guard_answer *answer, struct arena *arena) {
    const struct ablate_running *of = loop->of;
    const struct ablate_run *run = ablate_run_at(loop, loop->slots[at].run);
    const char *device = ablate_device_of(loop, at);
    struct ablate_left left;
    char *how, *dir, *tail, *text;
    TRY(describe_end(loop, answer, arena, &how));
    TRY(ablate_folder_path(of->folder, run, "out", arena, &dir));
    if (how[0] == '\0') {
        char *host;
        enum status status = read_host(loop, run, arena, &host);
        if (status == STATUS_OK) status = ablate_left_open(of->file, run, dir, arena, &left);
        if (status == STATUS_MEMORY || status == STATUS_INTERNAL) return status;
        if (status == STATUS_OK) {
            const enum status written =
                ablate_folder_done(of->folder, run, left.digest, host, device, arena);
            ablate_left_close(&left);
            if (written != STATUS_OK) return written;
            if (answer->left_behind > 0) {
                TRY(arena_format(arena, &text, "done; %d processes that it left were ended",
                                 answer->left_behind));
                tell(loop, run, text, answer->seconds);
            } else {
                tell(loop, run, "done", answer->seconds);
            }
            return STATUS_OK;
        }
        TRY(arena_format(arena, &how, "exit status 0, but: %s", status_text()));
    }
    if (answer->end == GUARD_STOPPED) return STATUS_OK; /* it is neither done nor failed */
    if (answer->end == GUARD_NOT_STARTED) ablate_folder_unbegin(of->folder, run, arena);
    if (answer->end == GUARD_NOT_STARTED && of->executor.count > 0)
        FAIL(STATUS_INPUT, "--executor: %s: %s", of->executor.words[0], how);
    if (answer->end == GUARD_NOT_STARTED) return refuse_command(of, run, how, arena);
    TRY(read_tail(loop, run, arena, &tail));
    TRY(arena_format(arena, &text, "%s%s%s", how, tail[0] == '\0' ? "" : "; its stderr ends:\n",
                     tail));
    keep_text(text);
    TRY(ablate_folder_fail(of->folder, run, text, arena));
    tell(loop, run, how, answer->seconds);
    return STATUS_OK;
}
