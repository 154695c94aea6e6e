/* SPDX-License-Identifier: Apache-2.0
 * What each kernel of a program takes on a device, as they ran: nothing is run again, and clocks
 * are left alone. The driver loads this library into a program that is started with
 *
 *     CUDA_INJECTION64_PATH=kernel_times.so KERNEL_TIMES=FILE PROGRAM ...
 *
 * and at the end of the program FILE has a line for each kernel and grid, most time first: name and
 * blocks, launches, microseconds of all, the least, the median and the most of one, with tabs
 * between; and before them a line "span" with the microseconds from the first start to the last
 * end, and those in which something ran. Copies and fills are lines, too. With KERNEL_ORDER=FILE
 * every record is written to that file, too, in the order in which they began, which shows where
 * the device waits for the host. CUPTI, which tells it, is opened where it is found and not linked.
 * Part profile of tests/bench/gpu.sh uses it. */
#define _GNU_SOURCE /* dlinfo */
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/library_search.h"

#define BUFFER ((size_t)8 << 20)
#define ROWS 2048

struct row {
    char name[128];
    double *each; /* microseconds of every launch */
    size_t count, room;
};

struct interval {
    uint64_t start, end; /* nanoseconds */
    size_t row;
};

/* All that is known until the end. CUPTI calls from one thread of its own at a time. Records come
 * in no order of time. */
static struct {
    struct row row[ROWS];
    size_t count, left_out;
    struct interval *interval; /* of every record */
    size_t intervals, room;
} times;

/* The functions of CUPTI that are called. */
static struct {
    CUptiResult (*register_callbacks)(CUpti_BuffersCallbackRequestFunc,
                                      CUpti_BuffersCallbackCompleteFunc);
    CUptiResult (*enable)(CUpti_ActivityKind);
    CUptiResult (*flush)(uint32_t);
    CUptiResult (*next)(uint8_t *, size_t, CUpti_Activity **);
} cupti;

/* Copies the name of a C function out of a mangled one ("_Z4name..."); others as they are. */
static void plain_name(const char *name, unsigned blocks, char *out, size_t size) {
    const size_t head = strspn(name, "_Z");
    const unsigned long length = head == 2 ? strtoul(name + 2, NULL, 10) : 0;
    const size_t digits = strspn(name + 2 * (head == 2), "0123456789");
    const char *const start = length > 0 ? name + 2 + digits : name;
    const int most = length > 0 && length < 90 ? (int)length : 90;
    snprintf(out, size, "%.*s <%u>", most, start, blocks);
}

static struct row *row_of(const char *name) {
    size_t i = 0;
    while (i < times.count && strcmp(times.row[i].name, name) != 0)
        i++;
    if (i == ROWS) return NULL;
    if (i == times.count)
        snprintf(times.row[times.count++].name, sizeof times.row[0].name, "%s", name);
    return &times.row[i];
}

/* Makes room for one more in a list that has `count` of `*room`; NULL: there is no memory. */
static void *with_room(void *list, size_t count, size_t *room, size_t size) {
    if (count < *room) return list;
    void *const larger = realloc(list, (2 * *room + 64) * size);
    if (larger != NULL) *room = 2 * *room + 64;
    return larger;
}

static void note(const char *name, unsigned blocks, uint64_t start, uint64_t end) {
    char key[sizeof times.row[0].name];
    plain_name(name, blocks, key, sizeof key);
    struct row *const row = row_of(key);
    void *const all =
        with_room(times.interval, times.intervals, &times.room, sizeof *times.interval);
    void *const each =
        row == NULL ? NULL : with_room(row->each, row->count, &row->room, sizeof *row->each);
    if (all != NULL) times.interval = all;
    if (each != NULL) row->each = each;
    if (all == NULL || each == NULL) {
        times.left_out++;
        return;
    }
    times.interval[times.intervals++] = (struct interval){start, end, (size_t)(row - times.row)};
    row->each[row->count++] = 1e-3 * (double)(end - start);
}

static void CUPTIAPI buffer_wanted(uint8_t **buffer, size_t *size, size_t *records) {
    *buffer = aligned_alloc(8, BUFFER);
    *size = *buffer == NULL ? 0 : BUFFER;
    *records = 0; /* as many as there is room for */
}

static void CUPTIAPI buffer_full(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                 size_t valid) {
    CUpti_Activity *record = NULL;
    (void)context;
    (void)stream;
    (void)size;
    while (cupti.next(buffer, valid, &record) == CUPTI_SUCCESS) {
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
            const CUpti_ActivityKernel9 *const k = (const CUpti_ActivityKernel9 *)record;
            const unsigned blocks = (unsigned)k->gridX * (unsigned)k->gridY * (unsigned)k->gridZ;
            note(k->name == NULL ? "unnamed" : k->name, blocks, k->start, k->end);
        } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
            const CUpti_ActivityMemcpy5 *const m = (const CUpti_ActivityMemcpy5 *)record;
            note(m->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD   ? "copy to the device"
                 : m->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH ? "copy to the host"
                                                                  : "copy",
                 0, m->start, m->end);
        } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
            const CUpti_ActivityMemset4 *const m = (const CUpti_ActivityMemset4 *)record;
            note("fill", 0, m->start, m->end);
        }
    }
    free(buffer);
}

static int by_time(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double sum_of(const struct row *row) {
    double sum = 0.0;
    for (size_t i = 0; i < row->count; i++)
        sum += row->each[i];
    return sum;
}

static int by_sum(const void *a, const void *b) {
    const double x = sum_of(a), y = sum_of(b);
    return (x < y) - (x > y);
}

static int by_start(const void *a, const void *b) {
    const uint64_t x = ((const struct interval *)a)->start, y = ((const struct interval *)b)->start;
    return (x > y) - (x < y);
}

/* Returns the microseconds in which something ran; *out_span: from the first start to the last end.
 */
static double busy_of(double *out_span) {
    uint64_t busy = 0, until = 0;
    qsort(times.interval, times.intervals, sizeof *times.interval, by_start);
    for (size_t i = 0; i < times.intervals; i++) {
        const struct interval *const at = &times.interval[i];
        const uint64_t from = at->start > until ? at->start : until;
        if (at->end <= from) continue;
        busy += at->end - from;
        until = at->end;
    }
    *out_span = times.intervals == 0 ? 0.0 : 1e-3 * (double)(until - times.interval[0].start);
    return 1e-3 * (double)busy;
}

/* Writes every record in the order in which they began: its start and its end, in microseconds
 * since the first one began, and its name, with tabs between. Intervals are sorted. */
static void tell_order(const char *path) {
    FILE *const file = fopen(path, "w");
    if (file == NULL) {
        fprintf(stderr, "kernel_times: %s cannot be written\n", path);
        return;
    }
    for (size_t i = 0; i < times.intervals; i++) {
        const struct interval *const at = &times.interval[i];
        const uint64_t first = times.interval[0].start;
        fprintf(file, "%.2f\t%.2f\t%s\n", 1e-3 * (double)(at->start - first),
                1e-3 * (double)(at->end - first), times.row[at->row].name);
    }
    if (fclose(file) != 0) fprintf(stderr, "kernel_times: not all was written\n");
}

static void tell(void) {
    double span;
    cupti.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    FILE *const file = fopen(getenv("KERNEL_TIMES"), "w");
    if (file == NULL) {
        fprintf(stderr, "kernel_times: %s cannot be written\n", getenv("KERNEL_TIMES"));
        return;
    }
    const double busy = busy_of(&span);
    const char *const order = getenv("KERNEL_ORDER");
    if (order != NULL) tell_order(order); /* while rows are where their intervals say */
    qsort(times.row, times.count, sizeof times.row[0], by_sum);
    fprintf(file, "span\t%.1f\t%.1f\n", span, busy);
    for (size_t i = 0; i < times.count; i++) {
        struct row *const row = &times.row[i];
        if (row->count == 0) continue;
        qsort(row->each, row->count, sizeof *row->each, by_time);
        fprintf(file, "%s\t%zu\t%.1f\t%.2f\t%.2f\t%.2f\n", row->name, row->count, sum_of(row),
                row->each[0], row->each[row->count / 2], row->each[row->count - 1]);
    }
    if (times.left_out > 0) fprintf(stderr, "kernel_times: %zu left out\n", times.left_out);
    if (fclose(file) != 0) fprintf(stderr, "kernel_times: not all was written\n");
}

static int find(void *library, const char *name, void *out_function) {
    void *const symbol = dlsym(library, name);
    memcpy(out_function, &symbol, sizeof symbol); /* C has no conversion to a function */
    return symbol != NULL;
}

static int open_cupti(void) {
    static const char *const names[] = {"libcupti.so.13", "libcupti.so.12"};
    struct library_search found;
    void *const library = library_search(names, 2, NULL, &found);
    if (library == NULL) fprintf(stderr, "kernel_times: no CUPTI in %s\n", found.places);
    return library != NULL &&
           find(library, "cuptiActivityRegisterCallbacks", &cupti.register_callbacks) &&
           find(library, "cuptiActivityEnable", &cupti.enable) &&
           find(library, "cuptiActivityFlushAll", &cupti.flush) &&
           find(library, "cuptiActivityGetNextRecord", &cupti.next);
}

/* The driver calls this when it starts in the program. */
int InitializeInjection(void);
int InitializeInjection(void) {
    if (getenv("KERNEL_TIMES") == NULL || !open_cupti()) return 0;
    const int works = cupti.register_callbacks(buffer_wanted, buffer_full) == CUPTI_SUCCESS &&
                      cupti.enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS &&
                      cupti.enable(CUPTI_ACTIVITY_KIND_MEMCPY) == CUPTI_SUCCESS &&
                      cupti.enable(CUPTI_ACTIVITY_KIND_MEMSET) == CUPTI_SUCCESS;
    if (!works) fprintf(stderr, "kernel_times: CUPTI does not record here\n");
    return works && atexit(tell) == 0;
}
