/* SPDX-License-Identifier: Apache-2.0
 * kernels/cuda/library.cu on the host, with a CUDA runtime that counts and a made-up cuBLAS
 * (cublas_fake.c) that refuses what cuBLAS would and adds in the simplest order. Products must be
 * the row-major ones that were asked for. Whatever call fails, all that was opened must be closed,
 * and a second try must work. A product without an algorithm must be known before it is started,
 * and each shape must be looked up once. cuBLAS's own sums are not tested here. */
#include "kernels/cuda/library.cu"
#include "kernels/cuda/short.h"

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

enum { HANDLE, HANDLE_LT, DESCRIPTOR, LAYOUT, WISH, STREAM, EVENT, MEMORY, KINDS };
enum { OPEN = 3 + 2 * LIBRARY_STREAMS };

extern "C" {
int fake_live[KINDS], fake_lacks, fake_asked, fake_multiplied, fake_multiplied_ex;
void *fake_stream, *fake_workspace; /* of the last product */
size_t fake_workspace_bytes;
int fake_compute, fake_full;
static int calls, fails_at;
/* The handles of streams and events point into these arrays. For each stream they hold, as bits,
 * the streams whose work it waits for; for each event, what that was when the event was
 * recorded. */
static unsigned behind[LIBRARY_STREAMS], recorded[LIBRARY_STREAMS], streams_made, events_made;

int fake_step(void) {
    return ++calls == fails_at;
}

cudaError_t cudaMalloc(void **out, size_t) {
    if (fake_step()) return cudaErrorMemoryAllocation;
    static unsigned char memory[256]; /* nothing is written there */
    *out = memory + (256 - (uintptr_t)memory % 256) % 256;
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

static char told[2048];

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

/* Runs in a thread of its own, where the state `here` is new. */
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
    alignas(256) static float a[2048], b[2048], c[64];
    struct library_product p;
    memset(&p, 0, sizeof p);
    p.M = p.N = 2;
    p.K = p.a_stride = terms;
    p.b_stride = p.c_stride = 2;
    p.a = a;
    p.b = b;
    p.c = c + 1; /* a multiple of 4 bytes, no more */
    p.type = p.sum = DTYPE_F32;
    return p;
}

/* Whether what was told begins so and says what to do where memory is short. */
static int is_memory(const char *beginning) {
    return strncmp(told, beginning, strlen(beginning)) == 0 &&
           strstr(told, "batch.micro or data.max_len smaller") != nullptr;
}

/* In another thread a product may be the first to open cuBLAS: a failure then must be reported by
 * that product, once and before all else, and a later product must work. */
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
    EXPECT(is_memory("cuda: workspace and streams of cuBLAS: no memory: "));
    EXPECT(library_error() == STATUS_OK && open_things() == 0);
    fake_full = 1;
    start(1);
    EXPECT(library_open() == STATUS_MEMORY);
    EXPECT(is_memory("cuda: cuBLAS does not start: no room: "));
    start(0);
    library_multiply(&mode, &p, 0);
    EXPECT(library_error() == STATUS_OK && open_things() == OPEN);
    const struct library_product other = product_of(51);
    start(1);
    library_multiply(&mode, &other, 0);
    told[0] = '\0';
    EXPECT(library_error() == STATUS_INTERNAL);
    EXPECT(is_memory("cuda: cuBLAS: ") && strstr(told, ": no room: ") != nullptr);
    fake_full = 0;
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

/* Whatever fails inside a product must be reported once, and nothing of it may stay open. */
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
    /* cublas_fake.c offers for each: good algorithms, none that is valid, or none that does not
     * split. */
    for (int lacks = 0; lacks < 7; lacks++) {
        const struct library_product p = product_of(300 + (size_t)lacks);
        const int has = lacks == 0 || lacks == 4 || lacks == 6;
        fake_lacks = lacks;
        fake_asked = fake_multiplied = fake_multiplied_ex = 0;
        for (int again = 0; again < 2; again++)
            EXPECT(library_has(&mode, &p, 0) == has);
        library_multiply(&mode, &p, 0);
        EXPECT((library_error() == STATUS_OK) == has);
        EXPECT(fake_asked == 1 && fake_multiplied == has);
        if (has) { /* of four, the one that is valid and does not split */
            const cublasLtMatmulAlgo_t *const algo =
                &planned.plan[(planned.count - 1) % LIBRARY_PLANS].algo;
            uint32_t scheme = 0;
            size_t written = 0;
            here.lt_config(algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme, sizeof scheme,
                           &written);
            EXPECT(scheme == 0 && !library_splits(algo));
        }
        mode.split_k = 1;
        EXPECT(library_has(&mode, &p, 0));
        library_multiply(&mode, &p, 0);
        EXPECT(library_error() == STATUS_OK && fake_multiplied_ex == 1 && fake_asked == 1);
        mode.split_k = 0;
    }
    fake_lacks = 0;
    EXPECT(open_things() == OPEN);
}

/* ---- what is multiplied ---- */

enum { LINES = 12, LINE = 16 }; /* of a matrix in memory, any of whose sides is shorter */

static void put(void *matrix, size_t at, double value, enum dtype type) {
    if (type == DTYPE_F64)
        ((double *)matrix)[at] = value;
    else if (type == DTYPE_BF16 || type == DTYPE_F16)
        ((uint16_t *)matrix)[at] = short_bits((float)value, type);
    else
        ((float *)matrix)[at] = (float)value;
}

static double at(const void *matrix, size_t i, enum dtype type) {
    if (type == DTYPE_F64) return ((const double *)matrix)[i];
    if (type == DTYPE_BF16 || type == DTYPE_F16)
        return (double)short_value(((const uint16_t *)matrix)[i], type);
    return (double)((const float *)matrix)[i];
}

/* Checks row-major products of whole numbers, whose sums are exact in any order: C = A . B or C + A
 * . B, each operand as it lies or transposed, with gaps between lines; and nothing beside C may be
 * written. */
static void check_product(const struct library_mode *mode, enum dtype type, enum dtype out,
                          unsigned way, unsigned wider) {
    alignas(256) static double a[LINES * LINE], b[LINES * LINE], c[LINES * LINE];
    static double left[LINES * LINE], right[LINES * LINE];
    struct library_product p;
    memset(&p, 0, sizeof p);
    p.M = 3, p.N = 5, p.K = 7;
    p.a_transposed = way & 1, p.b_transposed = way >> 1 & 1, p.held = way >> 2 & 1;
    p.a_stride = 9 + (wider == 1), p.b_stride = 11 + (wider == 2), p.c_stride = 12 + (wider == 3);
    p.a = a, p.b = b, p.c = c;
    p.type = type;
    p.sum = type == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
    p.out = out;
    for (size_t i = 0; i < LINES * LINE; i++) {
        left[i] = (double)(int)(i * 7 % 11) - 5;
        right[i] = (double)(int)(i * 5 % 13) - 6;
        put(a, i, left[i], type);
        put(b, i, right[i], type);
        put(c, i, (double)i, p.out);
    }
    start(0);
    library_multiply(mode, &p, 0);
    EXPECT(library_error() == STATUS_OK);
    EXPECT(fake_compute == (type == DTYPE_F64    ? CUBLAS_COMPUTE_64F
                            : type == DTYPE_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                 : CUBLAS_COMPUTE_32F));
    for (size_t i = 0; i < LINES * LINE; i++) {
        const size_t row = i / p.c_stride, column = i % p.c_stride;
        const int within = row < p.M && column < p.N;
        double due = within && !p.held ? 0.0 : (double)i;
        for (size_t k = 0; k < p.K && within; k++)
            due += left[p.a_transposed ? k * p.a_stride + row : row * p.a_stride + k] *
                   right[p.b_transposed ? column * p.b_stride + k : k * p.b_stride + column];
        EXPECT(due == at(c, i, p.out));
    }
}

static void verify_row_major(void) {
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F64, DTYPE_TF32, DTYPE_BF16, DTYPE_F16};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        for (unsigned bits = 0; bits < 8; bits++)
            for (unsigned way = 0; way < 32; way++) {
                struct library_mode mode;
                memset(&mode, 0, sizeof mode);
                mode.pinned = bits & 1, mode.ordered = bits >> 1 & 1, mode.split_k = bits >> 2;
                const enum dtype sum = types[i] == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
                check_product(&mode, types[i], sum, way % 8, way / 8);
                if (i >= 3 && way % 8 < 4) /* C of the operands' dtype, which is not continued */
                    check_product(&mode, types[i], types[i], way % 8, way / 8);
            }
}

/* Ordered products must be on the default stream, others on their own, each with its own workspace,
 * which must be given anew after each stream that is set. */
static void verify_places(void) {
    const struct library_product p = product_of(40);
    for (unsigned bits = 0; bits < 8; bits++)
        for (unsigned part = 0; part < LIBRARY_STREAMS; part++) {
            struct library_mode mode;
            memset(&mode, 0, sizeof mode);
            mode.pinned = bits & 1, mode.ordered = bits >> 1 & 1, mode.split_k = bits >> 2;
            if (mode.ordered && part > 0) continue;
            const size_t bytes = mode.ordered ? LIBRARY_WORKSPACE : LIBRARY_WORKSPACE / 4;
            start(0);
            library_multiply(&mode, &p, part);
            EXPECT(library_error() == STATUS_OK);
            EXPECT(fake_stream == (mode.ordered ? nullptr : (void *)here.stream[part]));
            if (mode.split_k && !mode.pinned)
                EXPECT(fake_workspace == nullptr);
            else
                EXPECT(fake_workspace == (char *)here.workspace + part * bytes &&
                       fake_workspace_bytes == bytes);
        }
}

/* Before Hopper cuBLAS takes a smaller workspace by itself; so does a product that is not
 * pinned. */
static void verify_usual_workspace(void) {
    const struct library_product p = product_of(40);
    const size_t usual = here.usual;
    for (int pinned = 0; pinned < 2; pinned++) {
        struct library_mode mode;
        memset(&mode, 0, sizeof mode);
        mode.ordered = 1;
        mode.pinned = pinned;
        here.usual = (size_t)4 << 20;
        library_multiply(&mode, &p, 0);
        EXPECT(library_error() == STATUS_OK);
        EXPECT(fake_workspace_bytes == (pinned ? LIBRARY_WORKSPACE : (size_t)4 << 20));
    }
    here.usual = usual;
}

/* Joining must make each stream wait for the work of all, twice in a row; whatever call fails must
 * be reported once. */
static void verify_joining(void) {
    int went_well = 0;
    for (int at = 1; !went_well; at++) {
        start(at);
        library_join();
        went_well = library_error() == STATUS_OK;
        EXPECT(went_well == (calls < at));
        EXPECT(went_well || is_memory("cuda: streams of cuBLAS: no memory: "));
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

/* The versions of both libraries must be read once they are open; one that does not tell its own is
 * left out. */
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
    verify_row_major();
    verify_places();
    verify_usual_workspace();
    verify_joining();
    verify_versions();
    puts("cuBLAS's calls: ok");
    return 0;
}

#endif
