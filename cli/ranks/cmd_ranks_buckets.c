/* SPDX-License-Identifier: Apache-2.0
 * twinstep ranks buckets: prints where each gradient stands in the buckets of
 * DistributedDataParallel, in update 1 and after it. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/ranks/ranks_asking.h"
#include "cli/verb.h"
#include "ranks/bucket.h"

enum { KEY_SIZES = KEY_OWN, KEY_DTYPE, KEY_CAP, KEY_ARRIVAL, KEY_FIND_UNUSED };

/* What one update's buckets are. */
struct layout {
    struct bucket_place *places;
    uint64_t *lengths;
    size_t buckets;
};

static enum status read(const struct options *options, struct arena *arena,
                        struct bucket_call *call, enum dtype *dtype) {
    uint64_t *sizes, *arrival, cap = 0;
    uint32_t *kept;
    size_t arrived;
    TRY(ranks_ask_list(options, KEY_SIZES, "--sizes", arena, &sizes, &call->count));
    TRY(ranks_ask_list(options, KEY_ARRIVAL, "--arrival", arena, &arrival, &arrived));
    TRY(ranks_ask_number(options, KEY_CAP, "--cap", 1, 1u << 20, &cap));
    TRY(ranks_ask_dtype(options, KEY_DTYPE, dtype));
    if (call->count == 0)
        FAIL(STATUS_INPUT, "--sizes: expected the elements of each parameter between commas, got "
                           "nothing");
    if (arrival != NULL && arrived != call->count)
        FAIL(STATUS_INPUT, "--arrival: expected the numbers of %zu parameters, got %zu",
             call->count, arrived);
    if (arrival != NULL) {
        TRY(arena_take(arena, arrived, sizeof *kept, "--arrival", &kept));
        for (size_t i = 0; i < arrived; i++)
            kept[i] = arrival[i] < UINT32_MAX ? (uint32_t)arrival[i] : UINT32_MAX;
        call->arrival = kept;
    }
    call->sizes = sizes;
    call->width = (uint32_t)dtype_width(*dtype);
    call->first = cap > 0 ? cap << 20 : BUCKET_FIRST_BYTES;
    call->cap = cap > 0 ? cap << 20 : BUCKET_CAP_BYTES;
    call->finds_unused = options_given(options, KEY_FIND_UNUSED);
    return STATUS_OK;
}

static enum status lay(const struct bucket_call *call, uint64_t update, struct arena *arena,
                       struct layout *out) {
    uint32_t *scratch;
    TRY(arena_take(arena, call->count, sizeof *scratch, "buckets", &scratch));
    TRY(arena_take(arena, call->count, sizeof *out->places, "buckets", &out->places));
    TRY(arena_take(arena, call->count, sizeof *out->lengths, "buckets", &out->lengths));
    return bucket_ddp(call, update, scratch, out->places, out->lengths, &out->buckets);
}

static void print_layout(const struct bucket_call *call, const struct layout *layout) {
    printf("%10s  %10s  %12s  %12s  %12s\n", "parameter", "bucket", "first", "elements",
           "bucket has");
    for (size_t i = 0; i < call->count; i++)
        printf("%10zu  %10" PRIu32 "  %12" PRIu64 "  %12" PRIu64 "  %12" PRIu64 "\n", i,
               layout->places[i].bucket, layout->places[i].offset, call->sizes[i],
               layout->lengths[layout->places[i].bucket]);
}

static void print_json_layout(const struct bucket_call *call, const struct layout *layout) {
    for (size_t i = 0; i < call->count; i++)
        printf("%s\n    {\"parameter\": %zu, \"bucket\": %" PRIu32 ", \"first\": %" PRIu64
               ", \"elements\": %" PRIu64 ", \"count\": %" PRIu64 "}",
               i == 0 ? "" : ",", i, layout->places[i].bucket, layout->places[i].offset,
               call->sizes[i], layout->lengths[layout->places[i].bucket]);
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    struct bucket_call call = {.count = 0};
    struct layout before, after;
    enum dtype dtype;
    TRY(read(options, &cli->arena, &call, &dtype));
    TRY(lay(&call, 1, &cli->arena, &before));
    TRY(lay(&call, 2, &cli->arena, &after));
    *out_exit = EXIT_AS_EXPECTED;
    if (options->json) {
        printf("{\n  \"dtype\": \"%s\",\n  \"update_1\": [", dtype_name(dtype));
        print_json_layout(&call, &before);
        fputs("\n  ],\n  \"later\": [", stdout);
        print_json_layout(&call, &after);
        puts("\n  ]\n}");
        return STATUS_OK;
    }
    printf("update 1, buckets: %zu\n", before.buckets);
    print_layout(&call, &before);
    printf("\nupdate 2 and later, buckets: %zu\n", after.buckets);
    print_layout(&call, &after);
    return STATUS_OK;
}

static const struct argp_option option_rows[] = {
    OPTION("sizes", KEY_SIZES, "N,N",
           "Elements of each parameter, as Module.parameters() has them"),
    OPTION("dtype", KEY_DTYPE, "D", "Format of the gradients (f32)"),
    OPTION("cap", KEY_CAP, "MIB",
           "bucket_cap_mb, if one was given; the default is 25, with a first bucket of 1"),
    OPTION("arrival", KEY_ARRIVAL, "I,I",
           "Parameters, counted from 0, as their gradients are ready; default: last to first"),
    OPTION("find-unused", KEY_FIND_UNUSED, NULL, "find_unused_parameters=True"),
    OPTION_JSON,
    OPTIONS_END};

const struct verb verb_ranks_buckets = {
    .name = "ranks buckets",
    .brief = "where gradients stand in the buckets of DDP, in update 1 and after it",
    .arguments = "",
    .text = "Prints the bucket of each gradient under torch's DistributedDataParallel, and its "
            "first element there. Its place decides in which order its terms are added (ranks "
            "order), and it is another one from update 2 on. Parameters of one dtype and device "
            "share buckets: ask once for each.\v"
            "Example: twinstep ranks buckets --sizes 3481,59,2419,41",
    .options = option_rows,
    .run = run,
};
