/* SPDX-License-Identifier: Apache-2.0
 * label: gpu
 * The cuBLAS of one host thread: found by name, opened with its streams and workspace, closed when
 * that fails; its errors, kept until they are told. No product. Included once, by library.cu.
 *
 * Invariant: what fails half-way leaves nothing open, and a second try starts afresh. */
#include "kernels/cuda/library.h"

#include "base/module_kit.h"
#include "kernels/cuda/library_search.h"
#include "kernels/cuda/trouble.h"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY_WORKSPACE                                                                          \
    ((size_t)32 << 20) /* bytes for all streams: what PyTorch takes on Hopper */

#if CUDART_VERSION >= 13000
#define LIBRARY_NAMES "libcublas.so.13", "libcublas.so.12"
#define LIBRARY_NAMES_LT "libcublasLt.so.13", "libcublasLt.so.12"
#else
#define LIBRARY_NAMES "libcublas.so.12", "libcublas.so.13"
#define LIBRARY_NAMES_LT "libcublasLt.so.12", "libcublasLt.so.13"
#endif

/* Every function that is called, by its name in the library. */
#define LIBRARY_FUNCTIONS(f)                                                                       \
    f(create, cublasCreate_v2) f(destroy, cublasDestroy_v2) f(set_stream, cublasSetStream_v2)      \
        f(set_workspace, cublasSetWorkspace_v2) f(set_atomics, cublasSetAtomicsMode)               \
            f(set_math, cublasSetMathMode) f(text, cublasGetStatusString)                          \
                f(property, cublasGetProperty)
#define LIBRARY_FUNCTIONS_LT(f)                                                                    \
    f(lt_create, cublasLtCreate) f(lt_destroy, cublasLtDestroy)                                    \
        f(lt_desc_create, cublasLtMatmulDescCreate) f(lt_desc_set, cublasLtMatmulDescSetAttribute) \
            f(lt_desc_destroy, cublasLtMatmulDescDestroy)                                          \
                f(lt_layout_create, cublasLtMatrixLayoutCreate)                                    \
                    f(lt_layout_destroy, cublasLtMatrixLayoutDestroy)                              \
                        f(lt_pref_create, cublasLtMatmulPreferenceCreate)                          \
                            f(lt_pref_set, cublasLtMatmulPreferenceSetAttribute)                   \
                                f(lt_pref_destroy, cublasLtMatmulPreferenceDestroy)                \
                                    f(lt_find, cublasLtMatmulAlgoGetHeuristic)                     \
                                        f(lt_multiply, cublasLtMatmul)                             \
                                            f(lt_property, cublasLtGetProperty)                    \
                                                f(lt_config, cublasLtMatmulAlgoConfigGetAttribute)

/* The type of cublasGemmEx, whose name C++ gives to several functions. */
typedef cublasStatus_t (*library_gemm_ex)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int,
                                          int, int, const void *, const void *, cudaDataType_t, int,
                                          const void *, cudaDataType_t, int, const void *, void *,
                                          cudaDataType_t, int, cublasComputeType_t,
                                          cublasGemmAlgo_t);

/* What one host thread has open: like the runtime's current device, it is the thread's own. */
struct library_here {
    int opened, failed; /* failed: `error` waits to be told */
    char error[1900];   /* the first failure since it was told, or why the last open failed */
    void *library, *library_lt;
#define LIBRARY_MEMBER(member, function) decltype(&function) member;
    LIBRARY_FUNCTIONS(LIBRARY_MEMBER)
    LIBRARY_FUNCTIONS_LT(LIBRARY_MEMBER)
    library_gemm_ex gemm;
    cublasHandle_t handle;
    cublasLtHandle_t lt;
    cudaStream_t stream[LIBRARY_STREAMS];
    cudaEvent_t event[LIBRARY_STREAMS]; /* each stream's place when they were joined */
    void *workspace;
    size_t usual; /* bytes of the workspace that cuBLAS takes by itself on this device */
};

static thread_local struct library_here here;

/* ---- opening ---- */

/* Fails with a text, and keeps the text unless an earlier one waits to be told: where a product was
 * what opened cuBLAS, nobody looks at this status. */
static enum status library_refuse(enum status code, const char *format, ...) {
    char text[sizeof here.error];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (!here.failed) memcpy(here.error, text, sizeof text);
    FAIL(code, "cuda: %s", text);
}

template <typename function>
static int library_symbol(void *library, const char *name, function *out) {
    *out = (function)dlsym(library, name);
    return *out != nullptr;
}

/* cublasLt comes first: cuBLAS needs the one of its own release, and a file outside of the loader's
 * places does not find it by itself. */
static enum status library_find(void) {
    static const char *const names[] = {LIBRARY_NAMES};
    static const char *const names_lt[] = {LIBRARY_NAMES_LT};
    const char *missing = nullptr;
    struct library_search lt, found;
    here.library_lt = library_search(names_lt, sizeof names_lt / sizeof names_lt[0], nullptr, &lt);
    if (here.library_lt == nullptr)
        return library_refuse(STATUS_UNSUPPORTED,
                              "expected cuBLAS (%s and %s, or %s and %s), found none in %s; "
                              "LD_LIBRARY_PATH or CUDA_PATH may name its folder, and "
                              "numerics.library: none goes without it",
                              names[0], names_lt[0], names[1], names_lt[1], lt.places);
    here.library = library_search(&names[lt.name], 1, lt.file, &found);
    if (here.library == nullptr)
        return library_refuse(STATUS_UNSUPPORTED, "%s is there, but %s is not in %s", lt.file,
                              names[lt.name], found.places);
#define LIBRARY_FIND(member, function)                                                             \
    if (!library_symbol(here.library, #function, &here.member)) missing = #function;
#define LIBRARY_FIND_LT(member, function)                                                          \
    if (!library_symbol(here.library_lt, #function, &here.member)) missing = #function;
    LIBRARY_FUNCTIONS(LIBRARY_FIND)
    if (!library_symbol(here.library, "cublasGemmEx", &here.gemm)) missing = "cublasGemmEx";
    LIBRARY_FUNCTIONS_LT(LIBRARY_FIND_LT)
    if (missing != nullptr)
        return library_refuse(STATUS_UNSUPPORTED, "this cuBLAS has no %s", missing);
    return STATUS_OK;
}

/* What to do behind a failure of cuBLAS: it has one word for memory of the device and of the host.
 */
static const char *library_advice(cublasStatus_t status) {
    return status == CUBLAS_STATUS_ALLOC_FAILED ? trouble_advice(TROUBLE_MEMORY) : "";
}

static enum status library_start(void) {
    int major = 0;
    TRY(library_find());
    cublasStatus_t status = here.create(&here.handle);
    if (status == CUBLAS_STATUS_SUCCESS) status = here.lt_create(&here.lt);
    if (status != CUBLAS_STATUS_SUCCESS)
        return library_refuse(
            status == CUBLAS_STATUS_ALLOC_FAILED ? STATUS_MEMORY : STATUS_INTERNAL,
            "cuBLAS does not start: %s%s", here.text(status), library_advice(status));
    cudaError_t error = cudaMalloc(&here.workspace, LIBRARY_WORKSPACE);
    for (unsigned i = 0; i < LIBRARY_STREAMS && error == cudaSuccess; i++)
        error = cudaStreamCreate(&here.stream[i]);
    for (unsigned i = 0; i < LIBRARY_STREAMS && error == cudaSuccess; i++)
        error = cudaEventCreateWithFlags(&here.event[i], cudaEventDisableTiming);
    if (error != cudaSuccess)
        return library_refuse(error == cudaErrorMemoryAllocation ? STATUS_MEMORY : STATUS_INTERNAL,
                              "workspace and streams of cuBLAS: %s%s", cudaGetErrorString(error),
                              trouble_advice(error));
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
    here.usual = (size_t)(major >= 9 ? 32 : 4) << 20;
    here.opened = 1;
    return STATUS_OK;
}

/* Closes what was opened before something failed, in reverse order; only the error is kept. */
static void library_drop(void) {
    for (unsigned i = LIBRARY_STREAMS; i-- > 0;)
        if (here.event[i] != nullptr) cudaEventDestroy(here.event[i]);
    for (unsigned i = LIBRARY_STREAMS; i-- > 0;)
        if (here.stream[i] != nullptr) cudaStreamDestroy(here.stream[i]);
    if (here.workspace != nullptr) cudaFree(here.workspace);
    if (here.lt != nullptr) here.lt_destroy(here.lt);
    if (here.handle != nullptr) here.destroy(here.handle);
    if (here.library_lt != nullptr) dlclose(here.library_lt);
    if (here.library != nullptr) dlclose(here.library);
    (void)cudaGetLastError();
    struct library_here empty = library_here();
    empty.failed = here.failed;
    memcpy(empty.error, here.error, sizeof empty.error);
    here = empty;
}

enum status library_open(void) {
    if (here.opened) return STATUS_OK;
    const enum status status = library_start();
    if (status != STATUS_OK) library_drop();
    return status;
}

typedef cublasStatus_t (*library_property)(libraryPropertyType, int *);

static void library_number(library_property property, char *text, size_t size) {
    static const libraryPropertyType parts[3] = {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL};
    int number[3];
    for (int i = 0; i < 3; i++)
        if (property(parts[i], &number[i]) != CUBLAS_STATUS_SUCCESS) return;
    snprintf(text, size, "%d.%d.%d", number[0], number[1], number[2]);
}

void library_version(struct library_versions *out) {
    memset(out, 0, sizeof *out);
    if (!here.opened) return;
    library_number(here.property, out->cublas, sizeof out->cublas);
    library_number(here.lt_property, out->cublaslt, sizeof out->cublaslt);
}

/* ---- errors ---- */

static int library_note(cublasStatus_t status, const char *what) {
    if (status == CUBLAS_STATUS_SUCCESS) return 0;
    if (!here.failed)
        snprintf(here.error, sizeof here.error, "cuBLAS: %s: %s%s", what, here.text(status),
                 library_advice(status));
    here.failed = 1;
    return 1;
}

/* Stream 0 waits for the others, and they for it. */
void library_join(void) {
    cudaError_t error = cudaSuccess;
    if (!here.opened) return; /* then no stream has a product */
    for (unsigned i = 1; i < LIBRARY_STREAMS && error == cudaSuccess; i++) {
        error = cudaEventRecord(here.event[i], here.stream[i]);
        if (error == cudaSuccess) error = cudaStreamWaitEvent(here.stream[0], here.event[i], 0);
    }
    if (error == cudaSuccess) error = cudaEventRecord(here.event[0], here.stream[0]);
    for (unsigned i = 1; i < LIBRARY_STREAMS && error == cudaSuccess; i++)
        error = cudaStreamWaitEvent(here.stream[i], here.event[0], 0);
    if (error == cudaSuccess) return;
    (void)cudaGetLastError(); /* else the next launch would have failed by it */
    if (!here.failed)
        snprintf(here.error, sizeof here.error, "streams of cuBLAS: %s%s",
                 cudaGetErrorString(error), trouble_advice(error));
    here.failed = 1;
}

enum status library_error(void) {
    if (!here.failed) return STATUS_OK;
    here.failed = 0;
    FAIL(STATUS_INTERNAL, "cuda: %s", here.error);
}
