/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Bit equality with cuRAND's Philox, whose host generator runs without a GPU: the words of
 * determinism/philox_order.h, in one call and in several that go on where the one before ended. The
 * library is opened where it is installed and never linked; without it the test is skipped (77). */
#define _GNU_SOURCE /* dlinfo */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "determinism/philox_order.h"
#include "kernels/cuda/library_search.h"

#define GENERATOR_PHILOX 161 /* CURAND_RNG_PSEUDO_PHILOX4_32_10 */
#define WORDS 100003
#define SPLIT 33333 /* words of the first call */

typedef int (*create_function)(void **, int);
typedef int (*set_function)(void *, unsigned long long);
typedef int (*generate_function)(void *, uint32_t *, size_t);
typedef int (*destroy_function)(void *);

static struct {
    create_function create;
    set_function set_seed;
    set_function set_offset;
    generate_function generate;
    destroy_function destroy;
} curand;

/* POSIX gives functions as void *; a copy of the bits is the portable conversion. */
static int find(void *library, const char *name, void *out_function) {
    void *const symbol = dlsym(library, name);
    memcpy(out_function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static int open_curand(void) {
    static const char *const names[] = {"libcurand.so.10", "libcurand.so"};
    struct library_search found;
    void *const library = library_search(names, COUNT_OF(names), NULL, &found);
    return library != NULL && find(library, "curandCreateGeneratorHost", &curand.create) &&
           find(library, "curandSetPseudoRandomGeneratorSeed", &curand.set_seed) &&
           find(library, "curandSetGeneratorOffset", &curand.set_offset) &&
           find(library, "curandGenerate", &curand.generate) &&
           find(library, "curandDestroyGenerator", &curand.destroy);
}

static const struct {
    uint64_t seed;
    uint64_t offset; /* in words */
} cases[] = {
    {0, 0},
    {UINT64_C(0x0123456789ABCDEF), 0},
    {UINT64_MAX, 0},
    {67280421310721, 6}, /* torch's default seed */
    {2385, 4 * 65536 - 50001},
    {2385, (UINT64_C(1) << 34) + 1},
    {UINT64_C(0xFEDCBA9876543210), (UINT64_C(1) << 51) + 3}, /* reaches word 1 */
};

static void corroborate_host_generator(void **state) {
    (void)state;
    static uint32_t words[WORDS];
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        void *generator = NULL;
        assert_int_equal(curand.create(&generator, GENERATOR_PHILOX), 0);
        assert_int_equal(curand.set_seed(generator, cases[c].seed), 0);
        assert_int_equal(curand.set_offset(generator, cases[c].offset), 0);
        assert_int_equal(curand.generate(generator, words, SPLIT), 0);
        assert_int_equal(curand.generate(generator, words + SPLIT, WORDS - SPLIT), 0);
        assert_int_equal(curand.destroy(generator), 0);
        for (uint64_t i = 0; i < WORDS; i++)
            assert_int_equal(words[i], philox_dealt_word(cases[c].seed, cases[c].offset, i));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(corroborate_host_generator)};
    if (!open_curand()) {
        puts("skipped: no libcurand on this machine");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
