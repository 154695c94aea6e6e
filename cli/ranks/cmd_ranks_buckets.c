/* SPDX-License-Identifier: Apache-2.0
 * twinstep ranks buckets: prints where each gradient stands in what a collective reduces: in the
 * buckets of DistributedDataParallel, in update 1 and after it, or in the vector of fully_shard. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/ranks/ranks_asking.h"
#include "cli/verb.h"
#include "ranks/bucket.h"

enum { KEY_SHAPES = KEY_OWN, KEY_DTYPE, KEY_CAP, KEY_ARRIVAL, KEY_FIND_UNUSED, KEY_FSDP2 };

/* What one update's buckets are. */
struct layout {
    struct bucket_place *places;
    uint64_t *lengths;
    size_t buckets;
};

static enum status read_arrival(const struct options *options, struct arena *arena,
                                struct bucket_call *call) {
    uint64_t *arrival;
    uint32_t *kept;
    size_t arrived;
    TRY(ranks_ask_list(options, KEY_ARRIVAL, "--arrival", arena, &arrival, &arrived));
    if (arrival == NULL) return STATUS_OK;
    if (options_given(options, KEY_FIND_UNUSED))
        FAIL(STATUS_INPUT, "--arrival: the buckets of --find-unused do not depend on it");
    if (arrived != call->count)
        FAIL(STATUS_INPUT, "--arrival: expected the numbers of %zu parameters, got %zu",
             call->count, arrived);
    TRY(arena_take(arena, arrived, sizeof *kept, "--arrival", &kept));
    for (size_t i = 0; i < arrived; i++) {
        if (arrival[i] >= call->count)
            FAIL(STATUS_INPUT, "--arrival: expected parameters from 0 to %zu, got %" PRIu64,
                 call->count - 1, arrival[i]);
        kept[i] = (uint32_t)arrival[i];
    }
    call->arrival = kept;
    return STATUS_OK;
}

static enum status read(const struct options *options, struct arena *arena,
                        struct bucket_call *call, enum dtype *dtype) {
    uint64_t *sizes, *row_lengths, cap = 0;
    TRY(ranks_ask_shapes(options, KEY_SHAPES, "--shapes", arena, &sizes, &row_lengths,
                         &call->count));
    TRY(read_arrival(options, arena, call));
    TRY(ranks_ask_number(options, KEY_CAP, "--cap", 1, 1u << 20, &cap));
    TRY(ranks_ask_dtype(options, KEY_DTYPE, dtype));
    for (size_t i = 0; i < call->count; i++)
        sizes[i] *= row_lengths[i];
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

static enum status run_ddp(struct cli *cli, const struct options *options) {
    struct bucket_call call = {.count = 0};
    struct layout before, after;
    enum dtype dtype;
    TRY(read(options, &cli->arena, &call, &dtype));
    TRY(lay(&call, 1, &cli->arena, &before));
    TRY(lay(&call, 2, &cli->arena, &after));
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

/* Rank r has the rows r * rows_of_rank and on of each parameter, and its part of the vector begins
 * at r times the elements of a part. */
static void print_group(const struct bucket_group *group, int is_json) {
    const uint64_t length = bucket_group_length(group), part = length / group->ranks;
    if (is_json)
        printf("{\n  \"ranks\": %" PRIu32 ",\n  \"count\": %" PRIu64 ",\n  \"part\": %" PRIu64
               ",\n  \"parameters\": [",
               group->ranks, length, part);
    else
        printf("one vector of %" PRIu64 " elements, in each rank's part: %" PRIu64 "\n"
               "%10s  %12s  %16s  %16s\n",
               length, part, "parameter", "rows", "rows of a rank", "first in a part");
    for (size_t i = 0; i < group->count; i++) {
        const uint64_t rows = bucket_group_part(group, i) / group->row_lengths[i];
        const uint64_t first = bucket_group_place(group, i, 0);
        if (is_json)
            printf("%s\n    {\"parameter\": %zu, \"rows\": %" PRIu64 ", \"rows_of_rank\": %" PRIu64
                   ", \"first\": %" PRIu64 "}",
                   i == 0 ? "" : ",", i, group->rows[i], rows, first);
        else
            printf("%10zu  %12" PRIu64 "  %16" PRIu64 "  %16" PRIu64 "\n", i, group->rows[i], rows,
                   first);
    }
    if (is_json) puts("\n  ]\n}");
}

static enum status run_fsdp2(struct cli *cli, const struct options *options) {
    static const struct {
        int key;
        const char *name;
    } needless[] = {{KEY_DTYPE, "--dtype"},
                    {KEY_CAP, "--cap"},
                    {KEY_ARRIVAL, "--arrival"},
                    {KEY_FIND_UNUSED, "--find-unused"}};
    struct bucket_group group;
    uint64_t *rows, *row_lengths, ranks;
    for (size_t i = 0; i < COUNT_OF(needless); i++)
        if (options_given(options, needless[i].key))
            FAIL(STATUS_INPUT, "%s: the vector of --fsdp2 does not depend on it", needless[i].name);
    TRY(ranks_need_number(options, KEY_FSDP2, "--fsdp2", 1, 1024, &ranks));
    TRY(ranks_ask_shapes(options, KEY_SHAPES, "--shapes", &cli->arena, &rows, &row_lengths,
                         &group.count));
    group.rows = rows;
    group.row_lengths = row_lengths;
    group.ranks = (uint32_t)ranks;
    TRY(bucket_group_check(&group));
    print_group(&group, options->json);
    return STATUS_OK;
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    *out_exit = EXIT_AS_EXPECTED;
    return options_given(options, KEY_FSDP2) ? run_fsdp2(cli, options) : run_ddp(cli, options);
}

static const struct argp_option option_rows[] = {
    OPTION("shapes", KEY_SHAPES, "NxN,N",
           "Shape of each parameter, as Module.parameters() has them"),
    OPTION("dtype", KEY_DTYPE, "D", "Format of the gradients (f32)"),
    OPTION("cap", KEY_CAP, "MIB",
           "bucket_cap_mb, if one was given; the default is 25, with a first bucket of 1"),
    OPTION("arrival", KEY_ARRIVAL, "I,I",
           "Parameters, counted from 0, as their gradients are ready; default: last to first"),
    OPTION("find-unused", KEY_FIND_UNUSED, NULL, "find_unused_parameters=True"),
    OPTION("fsdp2", KEY_FSDP2, "P",
           "The vector of fully_shard on P ranks, for parameters that one call wraps"),
    OPTION_JSON,
    OPTIONS_END};

const struct verb verb_ranks_buckets = {
    .name = "ranks buckets",
    .brief = "where gradients stand in what DDP or FSDP2 reduces",
    .arguments = "",
    .text = "Prints the bucket of each gradient under torch's DistributedDataParallel, and its "
            "first element there. Its place decides in which order its terms are added (ranks "
            "order), and it is another one from update 2 on. Parameters of one dtype and device "
            "share buckets: ask once for each. With --fsdp2 it prints the layout of fully_shard.\v"
            "Example: twinstep ranks buckets --shapes 59x59,59,41x59,41",
    .options = option_rows,
    .run = run,
};
