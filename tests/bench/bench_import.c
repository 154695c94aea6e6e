/* SPDX-License-Identifier: Apache-2.0
 * Measures how long a JSONL of N rows (default 1,000,000) takes to import, and its peak of memory
 * against what the kept columns need. The file is written first, under TMPDIR or /tmp, and removed.
 *
 *     bench_import [ROWS [KEPT]]
 *
 * Each row has KEPT columns (default 6) of numbers beside a text of 100 bytes that is not kept. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "logs/import.h"

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double peak_mib(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024.0;
}

static long write_rows(FILE *file, long rows, int kept) {
    char filler[101];
    memset(filler, 'x', 100);
    filler[100] = '\0';
    for (long i = 0; i < rows; i++) {
        fprintf(file, "{\"step\": %ld, \"text\": \"%s\"", i + 1, filler);
        for (int c = 0; c < kept; c++)
            fprintf(file, ", \"%s%d\": %.17g", c == 0 ? "loss" : "metric", c,
                    0.6931471805599453 / (double)(i + 2 + c));
        fputs("}\n", file);
    }
    fflush(file);
    return ftell(file);
}

static int fail(const char *what) {
    fprintf(stderr, "bench_import: %s: %s\n", what, status_text());
    return 1;
}

int main(int argc, char **argv) {
    const long rows = argc > 1 ? atol(argv[1]) : 1000000;
    const int kept = argc > 2 ? atoi(argv[2]) : 6;
    const char *folder = getenv("TMPDIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/twinstep-bench-XXXXXX", folder == NULL ? "/tmp" : folder);
    const int handle = mkstemp(path);
    FILE *file = handle < 0 ? NULL : fdopen(handle, "w");
    if (file == NULL) return fail("cannot write the file");
    const double mib = (double)write_rows(file, rows, kept) / 1048576.0;
    fclose(file);
    struct arena arena = ARENA_EMPTY;
    struct log_options options;
    struct log *log;
    log_options_init(&options);
    const double before = peak_mib(), start = now();
    const enum status status = log_import(path, &options, &arena, &log);
    const double seconds = now() - start;
    unlink(path);
    if (status != STATUS_OK) return fail("import");
    const double needed = (double)(log->rows * (16 + 12 * log->column_count)) / 1048576.0;
    printf("rows %zu, file %.0f MiB, columns %zu\n", log->rows, mib, log->column_count);
    printf("seconds %.2f (%.0f MiB/s)\n", seconds, mib / seconds);
    printf("kept arrays %.0f MiB, peak of the import %.0f MiB (%.2f times)\n", needed,
           peak_mib() - before, (peak_mib() - before) / needed);
    arena_close(&arena);
    return 0;
}
