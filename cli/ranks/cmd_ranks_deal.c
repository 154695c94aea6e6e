/* SPDX-License-Identifier: Apache-2.0
 * twinstep ranks deal: prints which samples of an epoch each rank is dealt. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/ranks/ranks_asking.h"
#include "cli/verb.h"
#include "ranks/deal.h"

#define SAMPLES_MAX 10000000u
#define RANKS_MAX 1024u
#define DEALT_MAX 20000000u /* what is printed: some 180 MB */

enum { KEY_DEAL = KEY_OWN, KEY_SAMPLES, KEY_RANKS, KEY_BATCH, KEY_TAIL };

/* What is dealt in all: each sample once where nothing is filled up or left out. */
static uint64_t dealt(const struct deal_call *call) {
    uint64_t total = 0;
    for (uint32_t rank = 0; rank < call->ranks; rank++)
        total += deal_length(call, rank);
    return total;
}

static enum status read(const struct options *options, struct deal_call *call) {
    const char *deals[DEAL_COUNT], *tails[DEAL_TAIL_COUNT];
    uint64_t ranks;
    int deal = DEAL_CYCLIC, tail = DEAL_PAD;
    for (int i = 0; i < DEAL_COUNT; i++)
        deals[i] = deal_name((enum deal_kind)i);
    for (int i = 0; i < DEAL_TAIL_COUNT; i++)
        tails[i] = deal_tail_name((enum deal_tail)i);
    TRY(ranks_ask_word(options, KEY_DEAL, "--deal", deals, DEAL_COUNT, &deal));
    TRY(ranks_ask_word(options, KEY_TAIL, "--tail", tails, DEAL_TAIL_COUNT, &tail));
    TRY(ranks_need_number(options, KEY_SAMPLES, "--samples", 1, SAMPLES_MAX, &call->count));
    TRY(ranks_need_number(options, KEY_RANKS, "--ranks", 1, RANKS_MAX, &ranks));
    TRY(ranks_need_number(options, KEY_BATCH, "--batch", 1, SAMPLES_MAX, &call->batch));
    call->kind = (enum deal_kind)deal;
    call->tail = (enum deal_tail)tail;
    call->ranks = (uint32_t)ranks;
    TRY(deal_check(call));
    if (dealt(call) > DEALT_MAX)
        FAIL(STATUS_INPUT,
             "--batch: expected at most %u samples dealt to all ranks together, got %" PRIu64,
             DEALT_MAX, dealt(call));
    return STATUS_OK;
}

static void print_samples(const struct deal_call *call, uint32_t rank,
                          const char *between_batches) {
    const uint64_t length = deal_length(call, rank), size = deal_batch_size(call);
    for (uint64_t i = 0; i < length; i++)
        printf("%s%" PRIu64,
               i == 0          ? ""
               : i % size == 0 ? between_batches
                               : ", ",
               deal_sample(call, rank, i));
}

static void print_text(const struct deal_call *call) {
    const uint64_t total = dealt(call);
    printf("%s, %" PRIu64 " samples, %" PRIu32 " ranks, batches of %" PRIu64 ", tail: %s\n",
           deal_name(call->kind), call->count, call->ranks, deal_batch_size(call),
           deal_tail_name(call->tail));
    if (total > call->count)
        printf("dealt: %" PRIu64 ", so %" PRIu64 " of them repeat a sample\n\n", total,
               total - call->count);
    else if (total < call->count)
        printf("dealt: %" PRIu64 ", so %" PRIu64 " samples are left out\n\n", total,
               call->count - total);
    else
        puts("dealt: each sample once\n");
    printf("%6s  %8s  %8s  %s\n", "rank", "samples", "batches", "samples of its batches");
    for (uint32_t rank = 0; rank < call->ranks; rank++) {
        const uint64_t length = deal_length(call, rank), size = deal_batch_size(call);
        printf("%6" PRIu32 "  %8" PRIu64 "  %8" PRIu64 "%s", rank, length,
               length / size + (length % size != 0), length > 0 ? "  " : "");
        print_samples(call, rank, " | ");
        putchar('\n');
    }
}

static void print_json(const struct deal_call *call) {
    printf("{\n  \"deal\": \"%s\",\n  \"tail\": \"%s\",\n  \"samples\": %" PRIu64
           ",\n  \"dealt\": %" PRIu64 ",\n  \"ranks\": [",
           deal_name(call->kind), deal_tail_name(call->tail), call->count, dealt(call));
    for (uint32_t rank = 0; rank < call->ranks; rank++) {
        const int is_empty = deal_length(call, rank) == 0;
        printf("%s\n    [%s", rank == 0 ? "" : ",", is_empty ? "" : "[");
        print_samples(call, rank, "], [");
        fputs(is_empty ? "]" : "]]", stdout);
    }
    puts("\n  ]\n}");
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    struct deal_call call = {.count = 0};
    (void)cli;
    TRY(read(options, &call));
    if (options->json)
        print_json(&call);
    else
        print_text(&call);
    *out_exit = EXIT_AS_EXPECTED;
    return STATUS_OK;
}

static const struct argp_option option_rows[] = {
    OPTION("deal", KEY_DEAL, "D",
           "cyclic: torch's DistributedSampler (default); micros: Accelerate; slices: Accelerate "
           "with split_batches=True"),
    OPTION("samples", KEY_SAMPLES, "N", "Samples of the epoch"),
    OPTION("ranks", KEY_RANKS, "P", "Ranks that share them"),
    OPTION("batch", KEY_BATCH, "B", "Samples of a loader's batch; slices: of all ranks together"),
    OPTION("tail", KEY_TAIL, "T",
           "What becomes of the last round: pad (default), drop (drop_last=True), short "
           "(even_batches=False)"),
    OPTION_JSON,
    OPTIONS_END};

const struct verb verb_ranks_deal = {
    .name = "ranks deal",
    .brief = "which samples of an epoch each rank gets, and which come twice or never",
    .arguments = "",
    .text = "Prints the samples that each rank is dealt, batch by batch. A sample is a position in "
            "the epoch's order, counted from 0: with shuffling, the order that all ranks have "
            "drawn.\v"
            "Example: twinstep ranks deal --samples 22 --ranks 4 --batch 2",
    .options = option_rows,
    .run = run,
};
