/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Philox4x32-10 must give the known answers of Random123 (tests/kat_vectors), and must be a
 * bijection. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "determinism/philox.h"

static const struct {
    struct philox_block counter;
    uint64_t key;
    struct philox_block answer;
} known[] = {
    {{{0, 0, 0, 0}}, 0, {{0x6627E8D5u, 0xE169C58Du, 0xBC57AC4Cu, 0x9B00DBD8u}}},
    {{{0xFFFFFFFFu, 0xFFFFFFFFu, 0xFFFFFFFFu, 0xFFFFFFFFu}},
     UINT64_MAX,
     {{0x408F276Du, 0x41C83B0Eu, 0xA20BC7C6u, 0x6D5451FDu}}},
    {{{0x243F6A88u, 0x85A308D3u, 0x13198A2Eu, 0x03707344u}},
     UINT64_C(0x299F31D0A4093822),
     {{0xD16CFE09u, 0x94FDCCEBu, 0x5001E420u, 0x24126EA1u}}},
};

static void validate_known_answers(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        const struct philox_block out = philox_draw(known[i].counter, known[i].key);
        assert_memory_equal(&out, &known[i].answer, sizeof out);
    }
}

/* Undoes one round: the odd multipliers have inverses modulo 2^32. */
static struct philox_block undo_round(struct philox_block out, uint32_t key0, uint32_t key1) {
    struct philox_block in;
    uint32_t inverse0 = 0xD2511F53u;
    uint32_t inverse1 = 0xCD9E8D57u;
    for (int i = 0; i < 5; i++) { /* Newton: correct bits double from 3 */
        inverse0 *= 2u - 0xD2511F53u * inverse0;
        inverse1 *= 2u - 0xCD9E8D57u * inverse1;
    }
    in.word[0] = out.word[3] * inverse0;
    in.word[2] = out.word[1] * inverse1;
    in.word[1] = out.word[0] ^ key0 ^ (uint32_t)((uint64_t)0xCD9E8D57u * in.word[2] >> 32);
    in.word[3] = out.word[2] ^ key1 ^ (uint32_t)((uint64_t)0xD2511F53u * in.word[0] >> 32);
    return in;
}

static void verify_rounds_invert(void **state) {
    (void)state;
    struct philox_block counter = {{17, 4, 2025, 99}};
    for (int i = 0; i < 1000; i++) {
        const struct philox_block next = philox_round(counter, 0x9E3779B9u, (uint32_t)i);
        const struct philox_block back = undo_round(next, 0x9E3779B9u, (uint32_t)i);
        assert_memory_equal(&back, &counter, sizeof back);
        counter = next;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_known_answers),
        cmocka_unit_test(verify_rounds_invert),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
