/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The samples that each rank is dealt, against recordings of torch's DistributedSampler and of
 * Accelerate's BatchSamplerShard. */
#include "ranks/deal.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "tests/ranks/helper_recorded.h"

#define SHARES 4096

/* Writes what all ranks are dealt as the recording has it: "0 1,4|2 3". */
static void write_shares(const struct deal_call *call, int with_batches, char *out) {
    const uint64_t size = deal_batch_size(call);
    size_t at = 0;
    out[0] = '\0';
    for (uint32_t rank = 0; rank < call->ranks; rank++) {
        const uint64_t length = deal_length(call, rank);
        if (rank > 0) at += (size_t)snprintf(out + at, SHARES - at, "|");
        for (uint64_t i = 0; i < length; i++)
            at += (size_t)snprintf(out + at, SHARES - at, "%s%llu",
                                   i == 0                          ? ""
                                   : with_batches && i % size == 0 ? ","
                                                                   : " ",
                                   (unsigned long long)deal_sample(call, rank, i));
    }
}

static void corroborate_deals(void **state) {
    (void)state;
    static char line[SHARES], shares[SHARES];
    FILE *file = recorded_open("deals.txt");
    int compared[3] = {0};
    while (fgets(line, sizeof line, file) != NULL) {
        struct deal_call call = {.kind = DEAL_CYCLIC};
        char kind[16];
        unsigned long long count, batch;
        int drop, even, behind = 0;
        assert_int_equal(sscanf(line, "%15s %llu %u %llu %d %d%n", kind, &count, &call.ranks,
                                &batch, &drop, &even, &behind),
                         6);
        while (strcmp(deal_name(call.kind), kind) != 0)
            call.kind = (enum deal_kind)(call.kind + 1);
        call.count = count;
        call.batch = batch;
        call.tail = drop ? DEAL_DROP : even ? DEAL_PAD : DEAL_SHORT;
        assert_int_equal(deal_check(&call), STATUS_OK);
        write_shares(&call, call.kind != DEAL_CYCLIC, shares);
        line[strcspn(line, "\n")] = '\0';
        if (strcmp(line + behind + 1, shares) != 0) fail_msg("%s\n        got %s", line, shares);
        compared[call.kind]++;
    }
    fclose(file);
    assert_true(compared[DEAL_CYCLIC] >= 60);
    assert_true(compared[DEAL_MICROS] >= 200);
    assert_true(compared[DEAL_SLICES] >= 150);
}

/* 22 samples for 4 ranks: the last round of DistributedSampler has 20, 21 and then 0 and 1. */
static void validate_filling(void **state) {
    (void)state;
    const struct deal_call call = {
        .kind = DEAL_CYCLIC, .tail = DEAL_PAD, .count = 22, .ranks = 4, .batch = 1};
    static const uint64_t last[] = {20, 21, 0, 1};
    for (uint32_t rank = 0; rank < 4; rank++) {
        assert_int_equal(deal_length(&call, rank), 6);
        assert_int_equal(deal_sample(&call, rank, 5), last[rank]);
    }
}

static void verify_refusals(void **state) {
    (void)state;
    static const struct {
        struct deal_call call;
        const char *text;
    } cases[] = {
        {{DEAL_CYCLIC, DEAL_PAD, 0, 2, 1}, "samples: expected 1 to 2^48, got 0"},
        {{DEAL_CYCLIC, DEAL_PAD, 8, 0, 1}, "ranks: expected 1 to 1024, got 0"},
        {{DEAL_CYCLIC, DEAL_PAD, 8, 1025, 1}, "ranks: expected 1 to 1024, got 1025"},
        {{DEAL_MICROS, DEAL_PAD, 8, 2, 0}, "batch: expected 1 to 2^38 samples, got 0"},
        {{DEAL_SLICES, DEAL_PAD, 8, 2, 3},
         "batch: expected a multiple of 2, because split_batches cuts a batch into as many slices "
         "as there are ranks, got 3"},
        {{DEAL_CYCLIC, DEAL_SHORT, 8, 2, 1},
         "tail: DistributedSampler pads or drops; expected pad or drop, got short"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(deal_check(&cases[i].call), STATUS_INPUT);
        assert_string_equal(status_text(), cases[i].text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_deals),
        cmocka_unit_test(validate_filling),
        cmocka_unit_test(verify_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
