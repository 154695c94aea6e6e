/* SPDX-License-Identifier: Apache-2.0
 * Opens OpenBLAS and says what it is; says which cuBLAS and which NVML the module for devices would
 * open. It multiplies nothing itself.
 *
 * OpenBLAS chooses its kernels by a core type, which OPENBLAS_CORETYPE overrides without a look at
 * the processor; so that variable is checked here first. */
#define _GNU_SOURCE /* dlinfo */
#include "kernels/blas.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/macro.h"
#include "base/soname.h"
#include "kernels/cuda/library_search.h"

#define SONAME "libopenblas.so.0"

enum need { NEED_NOTHING = 0, NEED_AVX, NEED_FMA4, NEED_FMA, NEED_AVX2, NEED_AVX512, NEED_BF16 };

/* The core types of OpenBLAS 0.3.21 (driver/others/dynamic.c, corename[]), each with the
 * instruction set that the compiler was allowed for its kernels (-march=cooperlake and so on). What
 * SapphireRapids has beside that of Cooperlake is for products of bf16 and f16, which nothing here
 * calls. */
static const struct {
    const char *name;
    enum need need;
} cores[] = {
    {"Katmai", NEED_NOTHING},     {"Coppermine", NEED_NOTHING},
    {"Northwood", NEED_NOTHING},  {"Prescott", NEED_NOTHING},
    {"Banias", NEED_NOTHING},     {"Atom", NEED_NOTHING},
    {"Core2", NEED_NOTHING},      {"Penryn", NEED_NOTHING},
    {"Dunnington", NEED_NOTHING}, {"Nehalem", NEED_NOTHING},
    {"Athlon", NEED_NOTHING},     {"Opteron", NEED_NOTHING},
    {"Barcelona", NEED_NOTHING},  {"Opteron_SSE3", NEED_NOTHING},
    {"Nano", NEED_NOTHING},       {"Bobcat", NEED_NOTHING},
    {"Sandybridge", NEED_AVX},    {"Bulldozer", NEED_FMA4},
    {"Piledriver", NEED_FMA},     {"Steamroller", NEED_FMA},
    {"Excavator", NEED_FMA},      {"Haswell", NEED_AVX2},
    {"Zen", NEED_AVX2},           {"SkylakeX", NEED_AVX512},
    {"Cooperlake", NEED_BF16},    {"SapphireRapids", NEED_BF16},
};

static int machine_has(enum need need) {
    const int wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                     __builtin_cpu_supports("avx512vl");
    switch (need) {
    case NEED_AVX:
        return __builtin_cpu_supports("avx") != 0;
    case NEED_FMA4:
        return __builtin_cpu_supports("fma4") != 0;
    case NEED_FMA:
        return __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx");
    case NEED_AVX2:
        return __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2");
    case NEED_AVX512:
        return wide;
    case NEED_BF16:
        return wide && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bf16");
    default:
        return 1;
    }
}

enum status blas_check_core(const char *core) {
    if (core == NULL || core[0] == '\0') return STATUS_OK;
    for (size_t i = 0; i < COUNT_OF(cores); i++) {
        if (strcasecmp(core, cores[i].name) != 0) continue;
        if (machine_has(cores[i].need)) return STATUS_OK;
        FAIL(STATUS_INPUT,
             "OPENBLAS_CORETYPE: expected a core type that this processor runs, got %s, whose "
             "instructions it lacks",
             core);
    }
    FAIL(STATUS_INPUT,
         "OPENBLAS_CORETYPE: expected a core type of OpenBLAS (Haswell, Zen, SkylakeX, ...), got "
         "\"%.60s\"",
         core);
}

enum status blas_cublas_version(char *text, size_t size) {
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12"};
    static const char *const names_lt[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
    int (*property)(int which, int *out); /* 0 major, 1 minor, 2 patch */
    int part[3] = {0, 0, 0};
    struct library_search lt, found;
    void *library;
    if (library_search(names_lt, COUNT_OF(names_lt), NULL, &lt) == NULL)
        FAIL(STATUS_UNSUPPORTED, "neither %s nor %s is in %s", names_lt[0], names_lt[1], lt.places);
    library = library_search(&names[lt.name], 1, lt.file, &found);
    if (library == NULL)
        FAIL(STATUS_UNSUPPORTED, "%s is there, but %s is not in %s", lt.file, names[lt.name],
             found.places);
    TRY(soname_function(library, "cublasGetProperty", sizeof property, &property));
    for (int k = 0; k < 3; k++)
        if (property(k, &part[k]) != 0)
            FAIL(STATUS_UNSUPPORTED, "%s does not tell its version", found.file);
    snprintf(text, size, "%d.%d.%d (%s)", part[0], part[1], part[2], found.file);
    return STATUS_OK;
}

enum status blas_nvml_file(char *text, size_t size) {
    static const char *const name = "libnvidia-ml.so.1";
    struct library_search found;
    if (library_search(&name, 1, NULL, &found) == NULL)
        FAIL(STATUS_UNSUPPORTED, "%s is not in %s", name, found.places);
    snprintf(text, size, "%s", found.file);
    return STATUS_OK;
}

enum status blas_open(struct blas *out) {
    void *library;
    char *(*text)(void);
    TRY(blas_check_core(getenv("OPENBLAS_CORETYPE")));
    TRY(soname_open(SONAME, &library));
    TRY(soname_function(library, "cblas_sgemm", sizeof out->sgemm, &out->sgemm));
    TRY(soname_function(library, "cblas_dgemm", sizeof out->dgemm, &out->dgemm));
    TRY(soname_function(library, "openblas_set_num_threads", sizeof out->set_threads,
                        &out->set_threads));
    TRY(soname_function(library, "openblas_get_config", sizeof text, &text));
    snprintf(out->config, sizeof out->config, "%s", text());
    TRY(soname_function(library, "openblas_get_corename", sizeof text, &text));
    snprintf(out->core, sizeof out->core, "%s", text());
    return STATUS_OK;
}
