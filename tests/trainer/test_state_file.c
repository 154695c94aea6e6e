/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The form in which files have a state: how many bytes it has, every pattern of bf16 and f16 there
 * and back, whole states of several trainings, and numbers that nobody rounded. Values of patterns
 * come from the definition of the formats, by ldexp. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tests/trainer/helper_train.h"
#include "trainer/plugins/plugin.h"
#include "trainer/state_file.h"

struct bench {
    struct arena arena;
    struct config config;
    struct param_table table;
    struct state_layout layout;
    unsigned char *state, *bytes, *back;
};

/* `ranks` that part hold a copy each. */
static void open_bench(const char *words, uint32_t ranks, struct bench *out) {
    const struct optim_class *optimizer;
    const struct sched_class *schedule;
    const struct arena empty = ARENA_EMPTY;
    out->arena = empty;
    helper_config(3, &out->config, "task: sft, batch: {size: 8, micro: 1}, data: {max_len: 16}, %s",
                  words);
    if (ranks > 1) {
        out->config.parallel.sync = SYNC_FIRST;
        out->config.parallel.ranks = out->config.loss.ranks = ranks;
    }
    assert_int_equal(plugin_optimizer(&out->config.optimizer.which, &optimizer), STATUS_OK);
    assert_int_equal(plugin_schedule(&out->config.schedule.which, &schedule), STATUS_OK);
    assert_int_equal(params_open(&out->config, &out->arena, &out->table), STATUS_OK);
    assert_int_equal(state_layout_open(&out->config, &out->table, optimizer, schedule, 5, 0,
                                       &out->arena, &out->layout),
                     STATUS_OK);
    unsigned char **const memory[] = {&out->state, &out->bytes, &out->back};
    for (size_t i = 0; i < COUNT_OF(memory); i++)
        assert_int_equal(arena_take(&out->arena, out->layout.bytes, 1, "state", memory[i]),
                         STATUS_OK);
}

/* The f32 that holds the number of a pattern: `fraction` bits of a fraction behind an exponent with
 * this bias, whose highest value means infinity or NaN. */
static uint32_t carrier_of(uint32_t pattern, int fraction, int bias) {
    const uint32_t digits = pattern & ((1u << fraction) - 1);
    const int field = (int)(pattern >> fraction & ((1u << (15 - fraction)) - 1));
    const int top = field == (1 << (15 - fraction)) - 1;
    const int exponent = (field == 0 ? 1 : field) - bias - fraction;
    const double whole = (double)(field == 0 ? digits : digits | 1u << fraction);
    float value = top ? (float)INFINITY : (float)ldexp(whole, exponent);
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (top && digits != 0) bits = 0x7f800000u | digits << (23 - fraction); /* NaN of any payload */
    return bits | (pattern & 0x8000u) << 16;
}

static int is_nan(uint32_t bits) {
    return (bits & 0x7fffffffu) > 0x7f800000u;
}

static const struct {
    const char *name;
    int fraction, bias;
    uint32_t nan;
} formats[] = {{"bf16", 7, 127, 0x7fc0u}, {"f16", 10, 15, 0x7e00u}};

/* The first tensor of the state holds the patterns in ascending order. */
static void verify_patterns(void **state) {
    (void)state;
    for (size_t f = 0; f < COUNT_OF(formats); f++) {
        struct bench b;
        char words[256];
        snprintf(words, sizeof words,
                 "model: {layers: 1, hidden: 16, heads: 4, mlp: 20, vocab: 4096}, numerics: "
                 "{param: %s, compute: f32, master: f32}",
                 formats[f].name);
        open_bench(words, 1, &b);
        const size_t first = b.layout.tensor[0].param;
        assert_true(b.table.rows[0].count == 65536);
        for (uint32_t i = 0; i < 65536; i++) {
            const uint32_t bits = carrier_of(i, formats[f].fraction, formats[f].bias);
            memcpy(b.state + first + 4 * i, &bits, sizeof bits);
        }
        assert_int_equal(state_file_make(&b.table, &b.layout, b.state, b.bytes), STATUS_OK);
        state_file_read(&b.table, &b.layout, b.bytes, b.back);
        for (uint32_t i = 0; i < 65536; i++) {
            uint32_t was, is;
            memcpy(&was, b.state + first + 4 * i, sizeof was);
            memcpy(&is, b.back + first + 4 * i, sizeof is);
            const uint32_t found = b.bytes[first + 2 * i] | (uint32_t)b.bytes[first + 2 * i + 1]
                                                                << 8;
            if (found != i || is != was)
                fail_msg("%s %04x: %08x became %04x and %08x", formats[f].name, i, was, found, is);
        }
        /* The dtype has no such fraction. */
        const uint32_t finer = 0xffc00001u;
        memcpy(b.state + first, &finer, sizeof finer);
        assert_int_equal(state_file_make(&b.table, &b.layout, b.state, b.bytes), STATUS_OK);
        state_file_read(&b.table, &b.layout, b.bytes, b.back);
        uint32_t folded;
        memcpy(&folded, b.back + first, sizeof folded);
        assert_int_equal(b.bytes[first] | b.bytes[first + 1] << 8, formats[f].nan);
        assert_int_equal(folded, 0x7fc00000u);
        arena_close(&b.arena);
    }
}

/* Bytes that the numbers of a state save: counted tensor by tensor, as its layout has them. */
static size_t saved_bytes(const struct bench *b, int param, int gradient, int slots) {
    size_t numbers = 0;
    for (uint32_t i = 0; i < b->table.count; i++) {
        const struct param_row *const row = &b->table.rows[i];
        if (row->tied_to >= 0) continue;
        numbers += row->count * (size_t)(param + gradient);
        for (int s = 0; s < OPTIM_SLOTS_MAX; s++)
            numbers += slots ? b->layout.tensor[i].slot_count[s] : 0;
    }
    return 2 * numbers * (1 + b->layout.replicas.copies);
}

#define MODEL(tied)                                                                                \
    "model: {layers: 2, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 19, tied: " #tied "}, "

static const struct {
    const char *words;
    uint32_t ranks;
    int f16, param, gradient, slots;
} trainings[] = {
    {MODEL(false) "seed: 1", 1, 0, 0, 0, 0},
    {MODEL(false) "numerics: {param: bf16, compute: bf16}", 1, 0, 1, 1, 1},
    {MODEL(true) "numerics: {param: f16, compute: f16}", 1, 1, 1, 1, 1},
    {MODEL(true) "numerics: {param: bf16, compute: bf16, master: f32}", 1, 0, 1, 1, 0},
    {MODEL(false) "numerics: {optimizer: bf16}, optimizer: {amsgrad: true}", 1, 0, 0, 0, 1},
    {MODEL(false) "numerics: {gradient: f16}", 1, 1, 0, 1, 0},
    {MODEL(true) "numerics: {param: bf16, compute: bf16}, optimizer: {name: adafactor}", 1, 0, 1, 1,
     1},
    {MODEL(true) "numerics: {param: bf16, compute: bf16, shards: 4}, "
                 "loop: {update: [reduce, clip, optimize, log, count, schedule, zero]}",
     4, 0, 1, 1, 1},
};

/* Fills the state with words that are f32 carriers of the format and, elsewhere, just bytes. No two
 * neighbours are equal, so a piece that came back from another place shows. */
static void fill(unsigned char *state, size_t bytes, int f16) {
    const int f = f16 ? 1 : 0;
    for (size_t i = 0; i < bytes / 4; i++) {
        uint32_t bits =
            carrier_of((uint32_t)(i * 40503u >> 3) & 0xffffu, formats[f].fraction, formats[f].bias);
        if (is_nan(bits)) bits = 0x3f800000u;
        memcpy(state + 4 * i, &bits, sizeof bits);
    }
}

static void verify_states(void **state) {
    (void)state;
    for (size_t t = 0; t < COUNT_OF(trainings); t++) {
        struct bench b;
        open_bench(trainings[t].words, trainings[t].ranks, &b);
        assert_int_equal(b.layout.replicas.copies, trainings[t].ranks - 1);
        fill(b.state, b.layout.bytes, trainings[t].f16);
        const size_t length = state_file_bytes(&b.table, &b.layout);
        assert_int_equal(
            b.layout.bytes - length,
            saved_bytes(&b, trainings[t].param, trainings[t].gradient, trainings[t].slots));
        memset(b.bytes, 0xa5, b.layout.bytes);
        assert_int_equal(state_file_make(&b.table, &b.layout, b.state, b.bytes), STATUS_OK);
        for (size_t i = length; i < b.layout.bytes; i++)
            assert_int_equal(b.bytes[i], 0xa5);
        state_file_read(&b.table, &b.layout, b.bytes, b.back);
        if (memcmp(b.state, b.back, b.layout.bytes) != 0) fail_msg("%s", trainings[t].words);
        arena_close(&b.arena);
    }
}

/* The last number of the last slot is none of bf16. */
static void verify_misfit(void **state) {
    (void)state;
    const uint32_t bits = 0x3f800001u;
    struct bench b;
    open_bench(trainings[1].words, 1, &b);
    const struct param_row *const row = &b.table.rows[b.table.count - 1];
    const struct state_tensor *const tensor = &b.layout.tensor[b.table.count - 1];
    memcpy(b.state + tensor->slot[1] + 4 * (tensor->slot_count[1] - 1), &bits, sizeof bits);
    assert_int_equal(state_file_make(&b.table, &b.layout, b.state, b.bytes), STATUS_INTERNAL);
    assert_non_null(strstr(status_text(), row->name));
    assert_non_null(strstr(status_text(), "is none of bf16"));
    arena_close(&b.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_patterns),
        cmocka_unit_test(verify_states),
        cmocka_unit_test(verify_misfit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
