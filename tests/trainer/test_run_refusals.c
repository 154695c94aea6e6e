/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * run_open must refuse what it cannot train, with a complete text; it must free what it took and
 * never crash. The configurations are such as a hybrid or a plug-in might hand in, past the
 * parser's checks. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/trainer/helper_train.h"

static void size_beyond_data(struct config *c) {
    c->batch.size = 1000;
}
static void micro_zero(struct config *c) {
    c->batch.micro = 0;
}
static void micro_beyond_size(struct config *c) {
    c->batch.micro = 5;
}
static void size_zero(struct config *c) {
    c->batch.size = 0;
}
static void two_ranks(struct config *c) {
    c->parallel.ranks = 2;
}
static void unknown_optimizer(struct config *c) {
    snprintf(c->optimizer.which.name, sizeof c->optimizer.which.name, "adamq");
}
static void unknown_schedule(struct config *c) {
    snprintf(c->schedule.which.name, sizeof c->schedule.which.name, "quadratic");
}
static void wide_compute(struct config *c) {
    c->numerics.compute = DTYPE_F64;
}
static void wide_reference(struct config *c) {
    c->dpo.reference_compute = DTYPE_F64;
}
static void no_forward(struct config *c) {
    c->loop.micro = (struct key_list){2, {PHASE_FETCH, PHASE_BACKWARD}, 0};
}
static void no_optimize(struct config *c) {
    c->loop.update = (struct key_list){1, {PHASE_LOG}, 0};
}
static void backward_first(struct config *c) {
    c->loop.micro = (struct key_list){3, {PHASE_FETCH, PHASE_BACKWARD, PHASE_FORWARD}, 0};
}
static void phase_beyond_table(struct config *c) {
    c->loop.update.item[0] = 200;
}
static void bad_beta(struct config *c) {
    double beta = 1.0; /* beta1 is the first value of the class */
    memcpy(c->optimizer.which.values, &beta, sizeof beta);
}
static void huge_pad(struct config *c) {
    c->batch.pad = UINT64_C(1) << 31;
}
static void huge_model(struct config *c) {
    c->model.mlp = c->model.hidden = UINT64_C(1) << 30;
}

static const struct refusal {
    const char *name;
    void (*break_it)(struct config *config);
    enum status status;
    const char *text; /* part of the message */
} refusals[] = {
    {"more samples than the data has", size_beyond_data, STATUS_INPUT, "1000"},
    {"no sample per micro-batch", micro_zero, STATUS_INPUT, "batch.micro"},
    {"micro-batch larger than the batch", micro_beyond_size, STATUS_INPUT, "batch.micro"},
    {"no sample per update", size_zero, STATUS_INPUT, "batch.size"},
    {"two ranks", two_ranks, STATUS_INPUT, "reduce as its first phase"},
    {"unknown optimizer", unknown_optimizer, STATUS_INTERNAL, "optimizer"},
    {"unknown schedule", unknown_schedule, STATUS_INTERNAL, "schedule"},
    {"f64 compute, f32 accumulation", wide_compute, STATUS_INPUT, "f64"},
    {"f64 reference, f32 accumulation is widened for it", wide_reference, STATUS_OK, ""},
    {"no forward", no_forward, STATUS_INPUT, "loop.micro"},
    {"no optimize", no_optimize, STATUS_INPUT, "optimize"},
    {"backward before forward", backward_first, STATUS_INPUT, "loop.micro[1] (backward)"},
    {"phase number beyond the table", phase_beyond_table, STATUS_INPUT, "200"},
    {"beta1 of 1", bad_beta, STATUS_INPUT, "optimizer.beta1"},
    {"rows beyond 2^31", huge_pad, STATUS_MEMORY, "rows"},
    {"more memory than addresses", huge_model, STATUS_MEMORY, "overflows"},
};

static void verify_refusals(void **state) {
    (void)state;
    struct config good;
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    helper_config(2, &good,
                  "task: dpo, data: {max_len: 16}, batch: {size: 4, micro: 2}, "
                  "model: {layers: 1, hidden: 16, heads: 2, mlp: 20, vocab: 19}");
    helper_ids_open(&good, 12, 10, 16, &arena, &dataset);
    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        struct config config = good;
        struct run run;
        refusals[i].break_it(&config);
        enum status status =
            run_open_at(&config, &dataset, &(struct run_options){.steps = 2}, &run);
        print_message("%-50s %s\n", refusals[i].name, status == STATUS_OK ? "" : status_text());
        if (status == STATUS_OK) run_close(&run);
        assert_int_equal(status, refusals[i].status);
        if (status == STATUS_OK) continue;
        assert_non_null(strstr(status_text(), refusals[i].text));
        assert_null(run.arena.head);
    }
    struct run run;
    helper_run_open(&good, &dataset, &(struct run_options){.steps = 2}, &run);
    (void)helper_step(&run);
    run_close(&run);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
