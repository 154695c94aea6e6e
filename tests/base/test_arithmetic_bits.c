/* SPDX-License-Identifier: Apache-2.0
 * labels: unit golden
 * The same bits everywhere: base/real.h, base/sum.h and base/rule.h compiled for three instruction
 * sets, or for the widest where a build has one alone (base/isa_objects.h), must agree with each
 * other and with the goldens, in every build (gcc, clang, -O0 to -O3).
 * TWINSTEP_PRINT_GOLDENS=1 prints the table; a changed golden is a changed law (CHANGELOG). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/isa_objects.h"
#include "base/macro.h"
#include "tests/base/variant/hash_rows.h"

#define DECLARE(pair)                                                                              \
    void hash_arithmetic_##pair##_base(struct hash_rows *rows);                                    \
    void hash_arithmetic_##pair##_v3(struct hash_rows *rows);                                      \
    void hash_arithmetic_##pair##_v4(struct hash_rows *rows);
DECLARE(f32_f32)
DECLARE(f32_f64)
DECLARE(f64_f64)

struct golden {
    const char *pair;
    const char *name;
    uint64_t hash;
};

static const struct golden goldens[] = {
#include "tests/base/variant/hash_goldens.inc"
};

static const struct {
    const char *pair;
    hash_arithmetic base, v3, v4;
} pairs[] = {
#define PAIR_ROW(pair)                                                                             \
    {                                                                                              \
#pair, hash_arithmetic_##pair##_base, OBJECTS_OF(hash_arithmetic_##pair, OBJECTS_V3),      \
            OBJECTS_OF(hash_arithmetic_##pair, OBJECTS_V4)                                         \
    }
    PAIR_ROW(f32_f32),
    PAIR_ROW(f32_f64),
    PAIR_ROW(f64_f64),
};

static int machine_has(const char *isa) {
#if defined(__x86_64__)
    if (strcmp(isa, "v4") == 0)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512cd");
    if (strcmp(isa, "v3") == 0)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
               __builtin_cpu_supports("bmi2");
#endif
    return strcmp(isa, "base") == 0;
}

static int differences(const char *pair, const char *isa, const struct hash_rows *rows) {
    int count = 0;
    size_t g = 0;
    while (g < COUNT_OF(goldens) && strcmp(goldens[g].pair, pair) != 0)
        g++;
    for (size_t i = 0; i < rows->count; i++, g++) {
        if (getenv("TWINSTEP_PRINT_GOLDENS") != NULL)
            printf("{\"%s\", \"%s\", 0x%016" PRIx64 "u},\n", pair, rows->row[i].name,
                   rows->row[i].hash);
        if (g < COUNT_OF(goldens) && strcmp(goldens[g].pair, pair) == 0 &&
            strcmp(goldens[g].name, rows->row[i].name) == 0 && goldens[g].hash == rows->row[i].hash)
            continue;
        fprintf(stderr, "%s %s %s: %016" PRIx64 " is not the golden\n", pair, isa,
                rows->row[i].name, rows->row[i].hash);
        count++;
    }
    return count;
}

static int check(const char *pair, const char *isa, hash_arithmetic run) {
    static struct hash_rows rows;
    if (!machine_has(isa)) {
        printf("%s %s: not on this machine\n", pair, isa);
        return 0;
    }
    rows.count = 0;
    run(&rows);
    assert_in_range(rows.count, 1, HASH_ROWS_MAX - 1);
    return differences(pair, isa, &rows);
}

static void verify_instruction_sets_agree(void **state) {
    (void)state;
    int count = 0;
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        count += check(pairs[i].pair, "base", pairs[i].base);
        if (pairs[i].v3 == pairs[i].base) continue; /* the same objects */
        count += check(pairs[i].pair, "v3", pairs[i].v3);
        count += check(pairs[i].pair, "v4", pairs[i].v4);
    }
    assert_int_equal(count, 0);
}

/* The optimizers, and + - *, round the same numbers once in either accumulator, so the two f32
 * pairs must give the same bits. (Functions, and quotients of functions, differ by what f64
 * keeps.) */
static void verify_f32_pairs_agree(void **state) {
    (void)state;
    static const char *const names[] = {"rule_add_", "rule_mul_", "rule_rotary_", "rule_adamw_",
                                        "rule_sgd_"};
    int compared = 0;
    for (size_t i = 0; i < COUNT_OF(goldens); i++) {
        for (size_t j = 0; j < COUNT_OF(goldens); j++) {
            if (strcmp(goldens[i].pair, "f32_f32") != 0) continue;
            if (strcmp(goldens[j].pair, "f32_f64") != 0) continue;
            if (strcmp(goldens[i].name, goldens[j].name) != 0) continue;
            for (size_t k = 0; k < COUNT_OF(names); k++) {
                if (strncmp(goldens[i].name, names[k], strlen(names[k])) != 0) continue;
                assert_int_equal(goldens[i].hash, goldens[j].hash);
                compared++;
            }
        }
    }
    assert_int_equal(compared, 2 * COUNT_OF(names));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_instruction_sets_agree),
                                       cmocka_unit_test(verify_f32_pairs_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
