/* SPDX-License-Identifier: Apache-2.0
 * A made-up CUPTI, which gpu_check.py puts where kernel_times.c looks for libcupti.so.13: when it
 * is flushed it hands over a few records of known times, in two buffers. */
#include <cupti.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static unsigned enabled; /* kinds, as bits */

/* A record of each kind has a place of one size. */
union record {
    CUpti_Activity any;
    CUpti_ActivityKernel9 kernel;
    CUpti_ActivityMemcpy5 copy;
    CUpti_ActivityMemset4 fill;
};

/* Names as nvcc makes them and as a library's are; nanoseconds. The first two overlap. */
static const struct {
    CUpti_ActivityKind kind;
    const char *name;
    int blocks;
    uint64_t start, end;
} rows[] = {
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "nvjet_tst_64x8", 6, 3000, 5000},
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "_Z11norm_kernel8norm_job", 24, 1000, 4000},
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "_Z11norm_kernel8norm_job", 24, 6000, 7000},
    {CUPTI_ACTIVITY_KIND_MEMSET, "", 0, 7000, 7500},
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "_Z11norm_kernel8norm_job", 24, 8000, 10000},
    {CUPTI_ACTIVITY_KIND_MEMCPY, "", 0, 10000, 10250},
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "_Z11norm_kernel8norm_job", 48, 11000, 11250},
};
#define ROWS (sizeof rows / sizeof rows[0])

static void write_row(size_t i, union record *out) {
    memset(out, 0, sizeof *out);
    out->any.kind = rows[i].kind;
    if (rows[i].kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
        out->kernel.name = rows[i].name;
        out->kernel.gridX = rows[i].blocks / 3;
        out->kernel.gridY = 3;
        out->kernel.gridZ = 1;
        out->kernel.start = rows[i].start;
        out->kernel.end = rows[i].end;
    } else if (rows[i].kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
        out->copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
        out->copy.start = rows[i].start;
        out->copy.end = rows[i].end;
    } else {
        out->fill.start = rows[i].start;
        out->fill.end = rows[i].end;
    }
}

EXPORT CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                                  CUpti_BuffersCallbackCompleteFunc completed) {
    request = requested;
    complete = completed;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
    enabled |= 1u << (unsigned)kind;
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityFlushAll(uint32_t flags) {
    size_t at = 0;
    (void)flags;
    while (at < ROWS) {
        uint8_t *buffer = NULL;
        size_t size = 0, most = 0, valid = 0;
        request(&buffer, &size, &most);
        for (; at < ROWS && valid < 4 * sizeof(union record); at++) {
            if ((enabled >> (unsigned)rows[at].kind & 1u) == 0) continue;
            write_row(at, (union record *)(void *)(buffer + valid));
            valid += sizeof(union record);
        }
        complete(NULL, 0, buffer, size, valid);
    }
    return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid,
                                              CUpti_Activity **record) {
    uint8_t *const next = *record == NULL ? buffer : (uint8_t *)*record + sizeof(union record);
    if (next + sizeof(union record) > buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)(void *)next;
    return CUPTI_SUCCESS;
}
