/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Which core types of OpenBLAS a processor runs, on processors that this machine is not. What each
 * has is from GCC's manual (x86 Options, -march=): cascadelake and icelake-server have AVX512VNNI
 * and not AVX512BF16, cooperlake and sapphirerapids have both. */
#define _GNU_SOURCE /* as kernels/blas.c, which is included */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static int pretended_has(const char *feature);
#define __builtin_cpu_supports(feature) pretended_has(feature)
#include "kernels/blas.c" /* for what this processor does not lack, or lacks */

#define AVX2 " avx fma avx2 "
#define AVX512 AVX2 "avx512f avx512bw avx512cd avx512dq avx512vl "

static const char *pretended;

static int pretended_has(const char *feature) {
    char word[32];
    snprintf(word, sizeof word, " %s ", feature);
    return strstr(pretended, word) != NULL;
}

static void validate_processors(void **state) {
    static const char *const asked[] = {"Nehalem", "Sandybridge", "Bulldozer",  "Piledriver",
                                        "Haswell", "SkylakeX",    "Cooperlake", "SapphireRapids"};
    static const struct {
        const char *has;
        int runs[COUNT_OF(asked)];
    } processors[] = {
        {" ", {1, 0, 0, 0, 0, 0, 0, 0}},                                        /* nehalem */
        {" avx ", {1, 1, 0, 0, 0, 0, 0, 0}},                                    /* sandybridge */
        {" avx fma4 ", {1, 1, 1, 0, 0, 0, 0, 0}},                               /* bdver1 */
        {" avx fma4 fma ", {1, 1, 1, 1, 0, 0, 0, 0}},                           /* bdver2 */
        {AVX2, {1, 1, 0, 1, 1, 0, 0, 0}},                                       /* haswell */
        {AVX512, {1, 1, 0, 1, 1, 1, 0, 0}},                                     /* skylake-avx512 */
        {AVX512 "avx512vnni ", {1, 1, 0, 1, 1, 1, 0, 0}},                       /* cascadelake */
        {AVX512 "avx512vnni avx512bf16 ", {1, 1, 0, 1, 1, 1, 1, 1}},            /* cooperlake */
        {AVX2 "avx512f avx512cd avx512er avx512pf ", {1, 1, 0, 1, 1, 0, 0, 0}}, /* knl */
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(processors); i++)
        for (size_t k = 0; k < COUNT_OF(asked); k++) {
            pretended = processors[i].has;
            const enum status status = blas_check_core(asked[k]);
            if ((status == STATUS_OK) != processors[i].runs[k])
                fail_msg("%s, on a processor with%s", asked[k], pretended);
            if (status == STATUS_OK) continue;
            assert_int_equal(status, STATUS_INPUT);
            assert_non_null(strstr(status_text(), "whose instructions it lacks"));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_processors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
