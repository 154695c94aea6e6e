/* SPDX-License-Identifier: Apache-2.0
 * twinstep ranks order: prints in which order a collective adds the terms of each element. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/ranks/ranks_asking.h"
#include "cli/verb.h"
#include "ranks/grouping.h"

#define COUNT_MAX ((uint64_t)1 << 48)

enum {
    KEY_ALGORITHM = KEY_OWN,
    KEY_RANKS,
    KEY_COUNT,
    KEY_DTYPE,
    KEY_ELEMENT,
    KEY_PARTS,
    KEY_CHUNK,
    KEY_CHANNELS,
    KEY_NODE,
    KEY_PATTERN,
    KEY_PLACES
};

struct asked {
    struct grouping_call call;
    enum dtype dtype;
    uint64_t first, end; /* elements whose runs are printed */
};

/* Only the algorithms of NCCL take these options; elsewhere they would change nothing. */
static enum status refuse_needless(const struct options *options,
                                   const struct grouping_call *call) {
    static const struct {
        int key;
        const char *name;
        unsigned of_ring, of_scatter, of_tree;
    } rows[] = {{KEY_PARTS, "--parts", 1, 0, 1},       {KEY_CHUNK, "--chunk", 1, 0, 0},
                {KEY_CHANNELS, "--channels", 0, 0, 1}, {KEY_NODE, "--node", 0, 0, 1},
                {KEY_PATTERN, "--pattern", 0, 0, 1},   {KEY_PLACES, "--places", 1, 1, 1}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const int is_used = (call->algorithm == GROUPING_NCCL_RING && rows[i].of_ring) ||
                            (call->algorithm == GROUPING_NCCL_RING_SCATTER && rows[i].of_scatter) ||
                            (call->algorithm == GROUPING_NCCL_TREE && rows[i].of_tree);
        if (options_given(options, rows[i].key) && !is_used)
            FAIL(STATUS_INPUT, "%s: %s does not depend on it", rows[i].name,
                 grouping_name(call->algorithm));
    }
    return STATUS_OK;
}

static enum status read_parts(const struct options *options, struct arena *arena,
                              struct grouping_call *call) {
    uint64_t *parts;
    size_t count;
    TRY(ranks_ask_list(options, KEY_PARTS, "--parts", arena, &parts, &count));
    if (count > 2)
        FAIL(STATUS_INPUT, "--parts: expected FIRST or FIRST,FURTHER, got %zu numbers", count);
    call->part_first = count > 0 ? parts[0] : call->count;
    call->part = count > 1 ? parts[1] : 0;
    return STATUS_OK;
}

static enum status read_places(const struct options *options, struct arena *arena,
                               struct grouping_call *call) {
    uint64_t *places;
    uint16_t *kept;
    size_t count;
    TRY(ranks_ask_list(options, KEY_PLACES, "--places", arena, &places, &count));
    if (count == 0) return STATUS_OK;
    if (count != call->ranks)
        FAIL(STATUS_INPUT, "--places: expected %" PRIu32 " ranks, got %zu", call->ranks, count);
    TRY(arena_take(arena, count, sizeof *kept, "--places", &kept));
    for (size_t i = 0; i < count; i++) {
        if (places[i] >= call->ranks)
            FAIL(STATUS_INPUT, "--places: expected ranks from 0 to %" PRIu32 ", got %" PRIu64,
                 call->ranks - 1, places[i]);
        kept[i] = (uint16_t)places[i];
    }
    call->places = kept;
    return STATUS_OK;
}

static enum status read_nccl(const struct options *options, struct arena *arena,
                             struct grouping_call *call) {
    static const char *const patterns[] = {[GROUPING_PATTERN_TREE] = "tree",
                                           [GROUPING_PATTERN_BALANCED] = "balanced",
                                           [GROUPING_PATTERN_SPLIT] = "split"};
    uint64_t channels = 2, node = 1;
    int pattern = GROUPING_PATTERN_TREE;
    TRY(refuse_needless(options, call));
    TRY(read_parts(options, arena, call));
    TRY(ranks_ask_number(options, KEY_CHUNK, "--chunk", 1, COUNT_MAX, &call->chunk));
    TRY(ranks_ask_number(options, KEY_CHANNELS, "--channels", 2, 1024, &channels));
    TRY(ranks_ask_number(options, KEY_NODE, "--node", 1, GROUPING_RANKS, &node));
    TRY(ranks_ask_word(options, KEY_PATTERN, "--pattern", patterns, COUNT_OF(patterns), &pattern));
    TRY(read_places(options, arena, call));
    call->channels = (uint32_t)channels;
    call->node = (uint32_t)node;
    call->pattern = (enum grouping_pattern)pattern;
    return STATUS_OK;
}

static enum status read(const struct options *options, struct arena *arena, struct asked *asked) {
    const char *algorithm = options_value(options, KEY_ALGORITHM);
    struct grouping_call *call = &asked->call;
    const char *words[GROUPING_COUNT];
    uint64_t ranks, element;
    int found = 0;
    for (int i = 0; i < GROUPING_COUNT; i++)
        words[i] = grouping_name((enum grouping_algorithm)i);
    if (algorithm == NULL)
        FAIL(STATUS_INPUT, "--algorithm: expected a name, got nothing; see docs/RANKS.md");
    TRY(ranks_ask_word(options, KEY_ALGORITHM, "--algorithm", words, GROUPING_COUNT, &found));
    TRY(ranks_need_number(options, KEY_RANKS, "--ranks", 1, GROUPING_RANKS, &ranks));
    TRY(ranks_need_number(options, KEY_COUNT, "--count", 1, COUNT_MAX, &call->count));
    TRY(ranks_ask_dtype(options, KEY_DTYPE, &asked->dtype));
    call->algorithm = (enum grouping_algorithm)found;
    call->ranks = (uint32_t)ranks;
    call->width = (uint32_t)dtype_width(asked->dtype);
    TRY(read_nccl(options, arena, call));
    TRY(grouping_check(call));
    asked->end = call->count;
    if (!options_given(options, KEY_ELEMENT)) return STATUS_OK;
    TRY(ranks_ask_number(options, KEY_ELEMENT, "--element", 0, call->count - 1, &element));
    asked->first = element;
    asked->end = element + 1;
    return STATUS_OK;
}

static int is_recorded(const struct asked *asked) {
    return grouping_is_recorded(asked->call.algorithm, asked->call.ranks, asked->dtype);
}

static void print_text(const struct asked *asked) {
    struct grouping_run run;
    char text[GROUPING_TEXT];
    const char *const recorded = grouping_recorded(asked->call.algorithm);
    printf("%s, %" PRIu32 " ranks, %" PRIu64 " elements of %s; %s%s\n\n",
           grouping_name(asked->call.algorithm), asked->call.ranks, asked->call.count,
           dtype_name(asked->dtype),
           is_recorded(asked) ? "held against recordings of the library"
           : recorded != NULL ? "not recorded itself, by a rule that is held against recordings of "
                              : "read in the library's source",
           is_recorded(asked) || recorded == NULL ? "" : recorded);
    printf("%12s  %12s  %s\n", "first", "last", "order, from left to right");
    for (uint64_t element = asked->first; element < asked->end; element = run.end) {
        grouping_of(&asked->call, element, &run);
        grouping_text(&run, text);
        printf("%12" PRIu64 "  %12" PRIu64 "  %s\n", run.start, run.end - 1, text);
    }
}

/* The runs are printed as they are found, because there may be millions of them. */
static void print_json(const struct asked *asked) {
    struct grouping_run run;
    char text[GROUPING_TEXT];
    printf("{\n  \"algorithm\": \"%s\",\n  \"recorded\": %s,\n  \"ranks\": %" PRIu32
           ",\n  \"count\": %" PRIu64 ",\n  \"dtype\": \"%s\",\n  \"runs\": [",
           grouping_name(asked->call.algorithm), is_recorded(asked) ? "true" : "false",
           asked->call.ranks, asked->call.count, dtype_name(asked->dtype));
    for (uint64_t element = asked->first; element < asked->end; element = run.end) {
        grouping_of(&asked->call, element, &run);
        grouping_text(&run, text);
        printf("%s\n    {\"first\": %" PRIu64 ", \"last\": %" PRIu64 ", \"order\": \"%s\"}",
               element == asked->first ? "" : ",", run.start, run.end - 1, text);
    }
    puts("\n  ]\n}");
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    struct asked asked = {.first = 0};
    TRY(read(options, &cli->arena, &asked));
    if (options->json)
        print_json(&asked);
    else
        print_text(&asked);
    *out_exit = EXIT_AS_EXPECTED;
    return STATUS_OK;
}

static const struct argp_option option_rows[] = {
    OPTION("algorithm", KEY_ALGORITHM, "A",
           "linear, recursive, ring, ring-scatter, halving, gloo, nccl-ring, nccl-ring-scatter or "
           "nccl-tree"),
    OPTION("ranks", KEY_RANKS, "P", "Ranks that take part"),
    OPTION("count", KEY_COUNT, "N", "Elements of the message: of a bucket, say (ranks buckets)"),
    OPTION("dtype", KEY_DTYPE, "D", "Format of an element on the wire (f32)"),
    OPTION("element", KEY_ELEMENT, "E", "Print the run that holds this element alone"),
    OPTION("parts", KEY_PARTS, "FIRST,FURTHER",
           "NCCL: elements of the first channel's part and of each further one (one part)"),
    OPTION("chunk", KEY_CHUNK, "BYTES", "nccl-ring: bytes of a chunk"),
    OPTION("channels", KEY_CHANNELS, "N", "nccl-tree: channels, half of which use each tree (2)"),
    OPTION("node", KEY_NODE, "N", "nccl-tree: ranks of a node (1)"),
    OPTION("pattern", KEY_PATTERN, "T",
           "nccl-tree: on which ranks of a node others hang: tree (the head; default), balanced or "
           "split"),
    OPTION("places", KEY_PLACES, "R,R",
           "NCCL: the rank at each place of the ring, or of the nodes' chains (0,1,..)"),
    OPTION_JSON,
    OPTIONS_END};

const struct verb verb_ranks_order = {
    .name = "ranks order",
    .brief = "in which order a collective adds the gradients of several ranks",
    .arguments = "",
    .text = "Prints, for each run of elements with one order, in which order an all-reduce or "
            "reduce-scatter adds the ranks' terms. Elements count from 0. docs/RANKS.md says which "
            "library uses which algorithm, and how that is known.\v"
            "Example: twinstep ranks order --algorithm gloo --ranks 3 --count 6000",
    .options = option_rows,
    .run = run,
};
