/* SPDX-License-Identifier: Apache-2.0
 * Draws the progress line. The clock is read only for the time left and for how often to draw; it
 * reaches no result. */
#include "cli/progress.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_WIDTH 79 /* for terminals of 80 columns: a line that wraps could not be rewritten */

double progress_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void progress_put(const char *line) {
    static const char clear[] = "\r\033[K";
    /* past stderr, which lets no control character through (cli/plain_text.h) */
    const ssize_t cleared = write(STDERR_FILENO, clear, sizeof clear - 1);
    if (cleared > 0) fprintf(stderr, "%.*s", LINE_WIDTH, line);
}

void progress_open(struct progress *progress, const char *label, int wanted) {
    memset(progress, 0, sizeof *progress);
    progress->label = label;
    progress->shown = wanted && isatty(STDERR_FILENO);
    progress->start = progress_clock();
}

static void time_left(char out[48], double seconds) {
    unsigned long long whole = (unsigned long long)(seconds + 0.5);
    if (whole >= 3600)
        snprintf(out, 48, "%lluh%02llum left", whole / 3600, whole / 60 % 60);
    else
        snprintf(out, 48, "%llum%02llus left", whole / 60, whole % 60);
}

static void describe_step(char *out, size_t size, const struct experiment_progress *now) {
    static const char *const stages[] = {"arms", "floor", "hybrids", "done"};
    const int used = snprintf(out, size, "%s %llu/%llu", stages[now->stage],
                              (unsigned long long)now->step, (unsigned long long)now->steps);
    if (now->stage != STAGE_PAIR)
        snprintf(out, size, "%s %s %llu/%llu", stages[now->stage], now->run,
                 (unsigned long long)now->step, (unsigned long long)now->steps);
    else if (!isnan(now->loss[0]))
        snprintf(out + used, size - (size_t)used, "  loss %.6f %.6f  |a-b| %.1e", now->loss[0],
                 now->loss[1], fabs(now->loss[0] - now->loss[1]));
}

static void draw(struct progress *progress, const char *step, uint64_t done, uint64_t total) {
    char left[48], line[256];
    const double here = progress_clock(), spent = here - progress->start;
    if (progress->drawn && done < total && here - progress->last < 0.1) return;
    time_left(left, done == 0 ? 0.0 : spent * (double)(total - done) / (double)done);
    snprintf(line, sizeof line, "%s: %s  %.0f %%  %s", progress->label, step,
             100.0 * (double)done / (double)total, done == 0 ? "" : left);
    progress_put(line);
    progress->last = here;
    progress->drawn = 1;
}

void progress_show(struct progress *progress, const struct experiment_progress *now) {
    char step[128];
    if (!progress->shown || now->total == 0) return;
    describe_step(step, sizeof step, now);
    draw(progress, step, now->done, now->total);
}

void progress_count(struct progress *progress, const char *what, uint64_t done, uint64_t total) {
    char step[128];
    if (!progress->shown || total == 0) return;
    if (done == 0) progress->start = progress_clock();
    snprintf(step, sizeof step, "%s %llu/%llu", what, (unsigned long long)done,
             (unsigned long long)total);
    draw(progress, step, done, total);
}

void progress_text(struct progress *progress, const char *format, ...) {
    const double here = progress_clock();
    char text[LINE_WIDTH], line[LINE_WIDTH + 64];
    va_list arguments;
    if (!progress->shown || here - fmax(progress->start, progress->last) < 0.2) return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(line, sizeof line, "%s: %s", progress->label, text);
    progress_put(line);
    progress->last = here;
    progress->drawn = 1;
}

void progress_close(struct progress *progress) {
    if (progress->drawn) progress_put("");
    progress->drawn = 0;
}
