/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Our own trainer writes its run through the interface for other trainers, and what it wrote is
 * held against what it recorded itself: two trainings alike have equal roots, another LR shows at
 * its update, and losses come back to the bit. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "determinism/certify.h"
#include "determinism/comparable.h"
#include "determinism/first.h"
#include "determinism/trace.h"
#include "determinism/trace/twinstep_trace.h"
#include "tests/trainer/helper_train.h"

enum { UPDATES = 6, TENSORS = 32 };

static void done(int failed) {
    if (failed) fail_msg("%s", twinstep_trace_error());
}

static void open_writer(const char *path, const struct run *run, struct twinstep_trace **out) {
    struct twinstep_trace_tensor tensors[TENSORS];
    const struct param_table *table = run_table(run);
    const uint32_t count = run_owner_count(run);
    assert_true(count <= TENSORS);
    for (uint32_t i = 0; i < count; i++) {
        const struct param_row *row = &table->rows[run_owners(run)[i]];
        tensors[i] =
            (struct twinstep_trace_tensor){row->name, "f32", row->rank, row->shape, row->group};
    }
    const struct twinstep_trace_options options = {.writer = "our own trainer",
                                                   .groups = table->groups,
                                                   .tensors = tensors,
                                                   .tensor_count = count,
                                                   .overwrite = 1};
    done(twinstep_trace_open(path, &options, out));
}

static void write_update(struct twinstep_trace *trace, const struct run *run,
                         const struct record *record) {
    done(twinstep_trace_put(trace, "loss", record->reals[REAL_LOSS]));
    done(twinstep_trace_put(trace, "grad_norm", record->reals[REAL_GRAD_NORM]));
    for (uint32_t g = 0; g < run_table(run)->groups; g++)
        done(twinstep_trace_put_group(trace, "lr_applied", g, record->groups[g][GROUP_LR_APPLIED]));
    done(twinstep_trace_bytes(trace, "digest_batch", record->digests[DIGEST_BATCH], 32));
    for (uint32_t i = 0; i < run_owner_count(run); i++) {
        const uint32_t row = run_owners(run)[i];
        done(twinstep_trace_digest(trace, "digest_parameter", i, run_param(run, row), 0,
                                   run_table(run)->rows[row].count));
    }
    done(twinstep_trace_end(trace, record->step));
}

/* Trains and writes; *losses gets the bits of what the trainer recorded. */
static void train(const char *path, const char *words, double losses[UPDATES]) {
    struct helper_small bench;
    struct twinstep_trace *trace;
    helper_small_open(&bench, 12, "task: sft, batch: {size: 4, micro: 2}, %s", words);
    open_writer(path, &bench.run, &trace);
    for (int k = 0; k < UPDATES; k++) {
        const struct record *record = helper_step(&bench.run);
        losses[k] = record->reals[REAL_LOSS];
        write_update(trace, &bench.run, record);
    }
    done(twinstep_trace_close(trace, 1));
    helper_small_close(&bench);
}

static void verify_our_own_trainer(void **state) {
    (void)state;
    static const char *const words[3] = {
        "optimizer: {lr: 1e-2}", "optimizer: {lr: 1e-2}",
        "optimizer: {lr: 1e-2}, schedule: {name: linear, warmup: 2}"};
    char folder[] = "/tmp/twinstep-foreign-XXXXXX", path[3][64];
    struct arena arena = ARENA_EMPTY;
    struct trace_image *images[3];
    double losses[3][UPDATES];
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 3; i++) {
        struct certificate certificate;
        snprintf(path[i], sizeof path[i], "%s/%d.h5", folder, i);
        train(path[i], words[i], losses[i]);
        if (trace_open(path[i], &arena, &images[i]) != STATUS_OK) fail_msg("%s", status_text());
        certify_run(images[i], &images[i]->runs[0], &certificate);
        assert_int_equal(certificate.state, CERTIFY_SOUND);
        assert_int_equal(certificate.checked, UPDATES);
        for (int k = 0; k < UPDATES; k++)
            assert_memory_equal(&losses[i][k], &images[i]->runs[0].records[k].reals[REAL_LOSS], 8);
        unlink(path[i]);
    }
    rmdir(folder);
    const struct trace_run *run[3] = {images[0]->runs, images[1]->runs, images[2]->runs};
    struct first_difference first;
    uint64_t roots;
    assert_int_equal(runs_comparable(run[0], run[2], &roots), STATUS_OK);
    assert_int_equal(roots, UPDATES);
    for (int k = 0; k < UPDATES; k++)
        assert_true(record_equal_roots(&run[0]->records[k], &run[1]->records[k]));
    assert_false(record_equal_roots(&run[0]->records[0], &run[2]->records[0]));
    first_find(&run[0]->plan, &run[0]->records[0], &run[2]->plan, &run[2]->records[0], &first);
    assert_string_equal(first.phase, "optimize");
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_our_own_trainer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
