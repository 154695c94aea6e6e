/* SPDX-License-Identifier: Apache-2.0
 * labels: repro unit memory
 * The loop is data (docs/decisions/the-loop-is-data.md): random legal orders are trained for real,
 * and orders whose dataflow is equal (loop_signature_of) must leave equal bits: the roots of every
 * update (parameters, slots, counters, LR, loss) and the log row. Orders of different dataflow
 * usually differ. Those that do not differ in what a log row reads without keeping it (the norm and
 * the counter at `log`, which the record has wherever clip and count stood), or they clip gradients
 * that zero has cleared or that are below the threshold. Prints the counts. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/base/helper_size.h"
#include "tests/trainer/helper_loop.h"
#include "tests/trainer/helper_train.h"

enum { ORDERS = 60, EQUALS = 2, UPDATES = 4, TRAINED = ORDERS * (1 + EQUALS) };

/* How many of them are trained. */
static uint32_t trained(void) {
    return (uint32_t)helper_size(ORDERS / 4, ORDERS, ORDERS) * (1 + EQUALS);
}

struct trained {
    struct loop_signature signature;
    struct digest bits;
    struct config config;
};

static void add(struct digest_stream *stream, const void *bytes, size_t length) {
    struct digest item;
    digest_bytes("item", bytes, length, &item);
    digest_stream_add(stream, &item);
}

/* Keeps root and log row of each update. The norm is in the row only when clip ran before log; the
 * record has it wherever clip ran, so it is left to the root. */
static void train(const struct config *config, const struct dataset *dataset, struct digest *out) {
    static const enum record_real row[] = {REAL_LOSS, REAL_LOGP_CHOSEN, REAL_LOGP_REJECTED,
                                           REAL_REWARD_MARGIN, REAL_REWARD_ACCURACY};
    struct run run;
    struct run_options options = {.steps = UPDATES};
    struct digest_stream stream;
    helper_run_open(config, dataset, &options, &run);
    digest_stream_init(&stream, "bits");
    for (int k = 0; k < UPDATES; k++) {
        const struct record *record = helper_step(&run);
        add(&stream, record->digests[DIGEST_ROOT], DIGEST_BYTES);
        for (size_t i = 0; i < COUNT_OF(row); i++)
            add(&stream, &record->reals[row[i]], sizeof(double));
        for (uint32_t g = 0; g < run.shape.groups; g++)
            add(&stream, &record->groups[g][GROUP_LR_LOGGED], sizeof(double));
    }
    digest_stream_close(&stream, out);
    run_close(&run);
}

static void loop_text(const struct config *config, char *out, size_t size) {
    size_t used = 0;
    const struct key_list *lists[] = {&config->loop.micro, &config->loop.update};
    for (int l = 0; l < 2; l++)
        for (uint8_t i = 0; i < lists[l]->count && used < size; i++)
            used +=
                (size_t)snprintf(out + used, size - used, "%s%s", i == 0 ? (l ? " | " : "") : " ",
                                 phase_name((enum phase)lists[l]->item[i]));
}

static int equal_signatures(const struct loop_signature *a, const struct loop_signature *b) {
    return a->word[0] == b->word[0] && a->word[1] == b->word[1];
}

static struct trained all[TRAINED];

static void train_all(const struct config *base, const struct dataset *dataset) {
    for (uint32_t i = 0; i < trained(); i++) {
        struct trained *now = &all[i];
        uint32_t order = i / (1 + EQUALS);
        now->config = *base;
        helper_loop_random(900 + order, &now->config);
        if (i % (1 + EQUALS) != 0) (void)helper_loop_random_equal(77 + i, &now->config);
        assert_int_equal(loop_check(&now->config, NULL), STATUS_OK);
        loop_signature_of(&now->config, &now->signature);
        train(&now->config, dataset, &now->bits);
    }
}

static void compare_all(uint32_t *out_flows, uint32_t *out_results, uint32_t *out_orders) {
    *out_flows = *out_results = *out_orders = 0;
    for (uint32_t i = 0; i < trained(); i++) {
        int new_flow = 1, new_result = 1, new_order = 1;
        for (uint32_t j = 0; j < i; j++) {
            int flow = equal_signatures(&all[i].signature, &all[j].signature);
            int result = digest_compare(&all[i].bits, &all[j].bits) == 0;
            if (flow && !result) {
                char a[400], b[400];
                loop_text(&all[i].config, a, sizeof a);
                loop_text(&all[j].config, b, sizeof b);
                fail_msg("equal dataflow, other bits:\n  %s\n  %s", a, b);
            }
            new_flow &= !flow;
            new_result &= !result;
            new_order &=
                memcmp(&all[i].config.loop, &all[j].config.loop, sizeof all[i].config.loop) != 0;
        }
        *out_flows += (uint32_t)new_flow;
        *out_results += (uint32_t)new_result;
        *out_orders += (uint32_t)new_order;
    }
}

static void check_orders(const char *words) {
    struct config base;
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    uint32_t flows, results, orders;
    helper_config(UPDATES, &base,
                  "%s, data: {max_len: 12}, init: {std: 0.3}, batch: {size: 6, micro: 2}, "
                  "model: {layers: 1, hidden: 16, heads: 2, mlp: 12, vocab: 17, tied: true}",
                  words);
    helper_ids_open(&base, 3, 24, 12, &arena, &dataset);
    train_all(&base, &dataset);
    compare_all(&flows, &results, &orders);
    print_message("%-60s %u orders, %u dataflows, %u results\n", words, orders, flows, results);
    assert_true(orders * 9 >= trained() * 5 && flows * 9 >= trained() * 2);
    assert_true(results <= flows);
    assert_true(results * 2 >= flows);
    arena_close(&arena);
}

static void verify_equal_dataflow_equal_bits(void **state) {
    (void)state;
    check_orders("task: dpo, optimizer: {lr: 1e-2, weight_decay: 0.1}, clip: {max_norm: 0.05}, "
                 "schedule: {name: linear, warmup: 1, total: 7}");
    check_orders(
        "task: sft, optimizer: {name: sgd, lr: 1e-1, momentum: 0.5}, clip: {max_norm: 0.05}, "
        "schedule: {name: cosine, total: 9, start: base}");
    check_orders("task: sft, optimizer: {lr: 1e-2}, clip: {max_norm: 0.05}, "
                 "numerics: {param: bf16, compute: bf16}");
    /* clip only closes here: it rounds the gradient where it stands (law 4) */
    check_orders("task: sft, optimizer: {lr: 1e-2}, clip: {max_norm: 0}, "
                 "numerics: {gradient: bf16}");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_equal_dataflow_equal_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
