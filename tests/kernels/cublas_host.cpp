/* SPDX-License-Identifier: Apache-2.0
 * kernels/cuda/library.cu on the host, with a runtime and a cuBLAS (cublas_fake.c) that count and
 * multiply nothing: whatever call fails, all that was opened is closed and a second try works; a
 * product without an algorithm is said before it is started, and each shape is looked up once.
 * What cuBLAS computes is not looked at. */
#include "kernels/cuda/library.cu"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <thread>

#if !defined(LIBRARY_WORKSPACE)

int main(void) {
    puts("the toolkit lacks cuBLAS's headers: skipped");
    return 77;
}

#else

/* As cublas_fake.c writes it. */
static_assert(offsetof(cublasLtMatmulHeuristicResult_t, state) == 8 * 8 + sizeof(size_t),
              "the state of a heuristic result");

enum { HANDLE, HANDLE_LT, DESCRIPTOR, LAYOUT, WISH, STREAM, EVENT, MEMORY, KINDS };
enum { OPEN = 3 + 2 * LIBRARY_STREAMS };

extern "C" {
int fake_live[KINDS], fake_lacks, fake_asked, fake_multiplied, fake_multiplied_ex;
static int calls, fails_at;
/* Handles point into these: the streams whose work before a join each stream is behind, as bits,
 * and where it was when an event was recorded. */
static unsigned behind[LIBRARY_STREAMS], recorded[LIBRARY_STREAMS], streams_made, events_made;

int fake_step(void) {
    return ++calls == fails_at;
}

cudaError_t cudaMalloc(void **out, size_t) {
    if (fake_step()) return cudaErrorMemoryAllocation;
    *out = fake_live;
    fake_live[MEMORY]++;
    return cudaSuccess;
}

cudaError_t cudaFree(void *) {
    fake_live[MEMORY]--;
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *out) {
    if (fake_step()) return cudaErrorMemoryAllocation;
    *out = (cudaStream_t)&behind[streams_made++ % LIBRARY_STREAMS];
    fake_live[STREAM]++;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t) {
    fake_live[STREAM]--;
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned) {
    if (fake_step()) return cudaErrorMemoryAllocation;
    *out = (cudaEvent_t)&recorded[events_made++ % LIBRARY_STREAMS];
    fake_live[EVENT]++;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t) {
    fake_live[EVENT]--;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    *(unsigned *)event = *(const unsigned *)stream;
    return fake_step() ? cudaErrorMemoryAllocation : cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    *(unsigned *)stream |= *(const unsigned *)event;
    return fake_step() ? cudaErrorMemoryAllocation : cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *out, cudaDeviceAttr, int) {
    *out = 9;
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void) {
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t) {
    return "no memory";
}
}

static char told[512];

static enum status tell(enum status code, const char *format, ...) {
    va_list values;
    va_start(values, format);
    vsnprintf(told, sizeof told, format, values);
    va_end(values);
    return code;
}

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("line %d, call %d fails: %s; told \"%s\"\n", __LINE__, fails_at, #condition,    \
                   told);                                                                          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static int open_things(void) {
    int sum = 0;
    for (int kind = 0; kind < KINDS; kind++)
        sum += fake_live[kind];
    return sum;
}

static void start(int at) {
    calls = 0;
    fails_at = at;
    told[0] = '\0';
}

static int opened;

/* Of a thread of its own: `here` is new. */
static void open_twice(void) {
    opened = library_open() == STATUS_OK;
    if (opened) return;
    EXPECT(open_things() == 0);
    EXPECT(strstr(told, "cuda: ") == told);
    start(1);
    EXPECT(library_open() != STATUS_OK && open_things() == 0); /* nothing is closed twice */
    start(0);
    EXPECT(library_open() == STATUS_OK);
    EXPECT(fake_live[HANDLE] == 1 && fake_live[HANDLE_LT] == 1);
    EXPECT(fake_live[STREAM] == LIBRARY_STREAMS && fake_live[MEMORY] == 1 && open_things() == OPEN);
}

static void verify_half_way(void) {
    int failures = 0;
    opened = 0;
    while (!opened) {
        memset(fake_live, 0, sizeof fake_live);
        start(failures + 1);
        std::thread(open_twice).join();
        failures += !opened;
    }
    EXPECT(failures == OPEN);
}

static struct library_product product_of(size_t terms) {
    static float a[64], b[64], c[64];
    struct library_product p;
    memset(&p, 0, sizeof p);
    p.M = p.N = 2;
    p.K = p.a_stride = terms;
    p.b_stride = p.c_stride = 2;
    p.a = a;
    p.b = b;
    p.c = c;
    p.type = p.sum = DTYPE_F32;
    return p;
}

/* In another thread a product is the first to open cuBLAS: what failed then is told of it, once,
 * the first of all, and a later one works. */
static void start_closed(void) {
    struct library_mode mode;
    memset(&mode, 0, sizeof mode);
    mode.pinned = mode.ordered = 1;
    const struct library_product p = product_of(50);
    start(1);
    EXPECT(library_has(&mode, &p, 0)); /* so that the product tells */
    start(3);
    EXPECT(library_open() != STATUS_OK);
    start(3);
    library_multiply(&mode, &p, 0);
    told[0] = '\0';
    EXPECT(library_error() == STATUS_INTERNAL);
    EXPECT(strcmp(told, "cuda: cuBLAS does not start: a wrong value") == 0);
    EXPECT(library_error() == STATUS_OK);
    start(3);
    library_multiply(&mode, &p, 0);
    told[0] = '\0';
    EXPECT(library_error() == STATUS_INTERNAL);
    EXPECT(strcmp(told, "cuda: workspace and streams of cuBLAS: no memory") == 0);
    EXPECT(library_error() == STATUS_OK && open_things() == 0);
    start(0);
    library_multiply(&mode, &p, 0);
    EXPECT(library_error() == STATUS_OK && open_things() == OPEN);
    struct library_product large = p;
    large.a_stride = (size_t)1 << 31;
    library_multiply(&mode, &large, 0);
    EXPECT(library_error() == STATUS_INTERNAL);
    EXPECT(strcmp(told, "cuda: cuBLAS: a matrix with 2^31 lines or more") == 0);
}

static void verify_other_thread(void) {
    memset(fake_live, 0, sizeof fake_live);
    std::thread(start_closed).join();
}

/* Whatever fails inside a product: told once, nothing of it stays open. */
static void verify_failing_products(void) {
    for (int splits = 0; splits < 2; splits++) {
        struct library_mode mode;
        memset(&mode, 0, sizeof mode);
        mode.pinned = mode.ordered = 1;
        mode.split_k = splits;
        int went_well = 0;
        for (int at = 1; !went_well; at++) {
            const struct library_product p = product_of(100 + (size_t)at);
            start(at);
            library_multiply(&mode, &p, 0);
            went_well = library_error() == STATUS_OK;
            EXPECT(went_well == (calls < at));
            EXPECT(library_error() == STATUS_OK);
            EXPECT(open_things() == OPEN);
        }
    }
}

static void verify_lacking(void) {
    struct library_mode mode;
    memset(&mode, 0, sizeof mode);
    mode.pinned = mode.ordered = 1;
    start(0);
    /* An algorithm; none; "not supported"; one whose state is "not supported". */
    for (int lacks = 0; lacks < 4; lacks++) {
        const struct library_product p = product_of(300 + (size_t)lacks);
        fake_lacks = lacks;
        fake_asked = fake_multiplied = fake_multiplied_ex = 0;
        for (int again = 0; again < 2; again++)
            EXPECT(library_has(&mode, &p, 0) == (lacks == 0));
        library_multiply(&mode, &p, 0);
        EXPECT((library_error() == STATUS_OK) == (lacks == 0));
        EXPECT(fake_asked == 1 && fake_multiplied == (lacks == 0));
        mode.split_k = 1;
        EXPECT(library_has(&mode, &p, 0));
        library_multiply(&mode, &p, 0);
        EXPECT(library_error() == STATUS_OK && fake_multiplied_ex == 1 && fake_asked == 1);
        mode.split_k = 0;
    }
    EXPECT(open_things() == OPEN);
}

/* Each stream is behind the work of all, twice in a row; whatever call fails is told once. */
static void verify_joining(void) {
    int went_well = 0;
    for (int at = 1; !went_well; at++) {
        start(at);
        library_join();
        went_well = library_error() == STATUS_OK;
        EXPECT(went_well == (calls < at));
        EXPECT(went_well || strcmp(told, "cuda: streams of cuBLAS: no memory") == 0);
        EXPECT(library_error() == STATUS_OK && open_things() == OPEN);
    }
    for (int again = 0; again < 2; again++) {
        for (unsigned i = 0; i < LIBRARY_STREAMS; i++)
            behind[i] = 1u << i;
        start(0);
        library_join();
        for (unsigned i = 0; i < LIBRARY_STREAMS; i++)
            EXPECT(behind[i] == (1u << LIBRARY_STREAMS) - 1);
    }
}

/* Of both files, once they are open; a library that does not say is left out. */
static void verify_versions(void) {
    struct library_versions versions;
    std::thread([&] { library_version(&versions); }).join();
    EXPECT(versions.cublas[0] == '\0' && versions.cublaslt[0] == '\0');
    library_version(&versions);
    EXPECT(strcmp(versions.cublas, "13.12.11") == 0 && strcmp(versions.cublaslt, "23.24.25") == 0);
    fake_lacks = 9;
    library_version(&versions);
    EXPECT(versions.cublas[0] == '\0' && strcmp(versions.cublaslt, "23.24.25") == 0);
    fake_lacks = 0;
}

int main(void) {
    struct module_host host;
    memset(&host, 0, sizeof host);
    host.fail = tell;
    twinstep_host = &host;
    verify_half_way();
    verify_other_thread();
    memset(fake_live, 0, sizeof fake_live);
    start(0);
    EXPECT(library_open() == STATUS_OK);
    verify_failing_products();
    verify_lacking();
    verify_joining();
    verify_versions();
    puts("cuBLAS's calls: ok");
    return 0;
}

#endif
