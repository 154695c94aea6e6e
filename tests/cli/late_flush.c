/* SPDX-License-Identifier: Apache-2.0
 * A library that keeps the stream that the program makes its standard output, and flushes it when
 * the process ends, as cublasLt of CUDA 13.1 does with what it logs to. Under LD_PRELOAD the
 * program must end with its own status. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef FILE *(*opener)(void *, const char *, cookie_io_functions_t);

static FILE *kept[4];
static size_t count;

FILE *fopencookie(void *cookie, const char *mode, cookie_io_functions_t calls) {
    void *const found = dlsym(RTLD_NEXT, "fopencookie");
    opener open;
    if (found == NULL || count == sizeof kept / sizeof kept[0]) abort();
    memcpy(&open, &found, sizeof open);
    return kept[count++] = open(cookie, mode, calls);
}

static void flush_all(void) {
    for (size_t i = 0; i < count; i++)
        (void)fflush(kept[i]);
    static const char text[] = "late_flush: flushed\n";
    if (count == 0 || fwrite(text, 1, sizeof text - 1, stderr) != sizeof text - 1) _Exit(3);
}

/* The program's own functions for the end are registered later, and so run before this one. */
__attribute__((constructor)) static void at_load(void) {
    if (atexit(flush_all) != 0) abort();
}
