/* SPDX-License-Identifier: Apache-2.0
 * What ranks that are processes tell each other, and when.
 *
 * Rank 0 casts commands; between two of them the others wait. Everything that is sent has a head,
 * which says what it is, of whom, under which command, how long and with which checksum; a receiver
 * knows all of that beforehand and compares. So bytes of another message are never taken for those
 * that were meant, whatever moves them does. */
#include "trainer/real_ranks.h"

#include <stdio.h>
#include <string.h>

#include "determinism/stream.h"
#include "scenarios/scenario.h"
#include "trainer/run_private.h"
#include "trainer/shards.h"
#include "trainer/zero.h"

#define HEAD_TAG UINT64_C(0x736b6e61526c6552)
#define TEXT_SIZE 1024
#define RUNS_MAX 8 /* that an experiment has open at once, and more */

enum what {
    WHAT_HELLO,
    WHAT_COMMAND,
    WHAT_OPENING,
    WHAT_ANSWER,
    WHAT_STATE,
    WHAT_CHAIN, /* sums that the next rank goes on with */
    WHAT_FOUND, /* what the forwards of a rank found */
    WHAT_ALL_FOUND,
    WHAT_PIECE,
    WHAT_PART, /* what a rank owns of a piece */
    WHAT_SUM,
    WHAT_MADE, /* what a rank made of its part */
    WHAT_ALL_MADE,
    WHAT_ENDING,
    WHAT_FAILURE /* in the place of WHAT_FOUND: a text */
};

struct head {
    uint64_t tag;     /* HEAD_TAG */
    uint64_t command; /* how many commands rank 0 has cast */
    uint32_t what, from;
    struct tree_node node; /* of a piece */
    uint64_t size, sum;
};

enum command_kind { COMMAND_BEAT, COMMAND_OPEN, COMMAND_STEP, COMMAND_CLOSE, COMMAND_END };

struct command {
    uint32_t kind;
    uint32_t run;   /* its place among the open ones */
    uint32_t state; /* of COMMAND_STEP, 1: the state comes first */
    int32_t code;   /* of COMMAND_END */
};

struct opening {
    struct config config;
    uint64_t steps, order_seed;
    int32_t readback, tensors, phases, poison;
};

/* How a rank opened a run, or ended an update. */
struct answer {
    struct head head;
    uint32_t status, zero;
    struct digest digest; /* of the data, or the root */
    char text[TEXT_SIZE];
};

/* How far an update has come, for who has to tell that it went wrong. */
enum stage { STAGE_ALONE, STAGE_BEFORE_FOUND, STAGE_AMID, STAGE_AFTER_SUM };

/* A run that rank 0 opened here. */
struct served {
    struct arena arena;
    struct dataset dataset;
    struct run *run; /* NULL: it could not be opened */
};

struct real_ranks {
    struct ranks *ranks;
    uint64_t command;
    enum stage stage;
    int broken;                     /* rank 0: an update broke off */
    struct run *open[RUNS_MAX];     /* rank 0: those that the others have open */
    struct served served[RUNS_MAX]; /* the others */
    struct answer *answers;         /* (ranks) rank 0 */
};

struct real_run {
    struct real_ranks *group;
    uint32_t place;
    unsigned char *found; /* what the forwards of all ranks found, rank by rank */
    size_t room;
};

/* ---- messages ---- */

/* A checksum over words of 8 bytes, and what is left: FNV-1a's step. It tells accidents, not
 * intentions. */
static uint64_t sum_of(const void *bytes, size_t size) {
    const unsigned char *at = (const unsigned char *)bytes;
    uint64_t sum = UINT64_C(0xcbf29ce484222325), word;
    for (; size > 0; at += sizeof word) {
        const size_t count = size < sizeof word ? size : sizeof word;
        word = 0;
        memcpy(&word, at, count);
        sum = (sum ^ word) * UINT64_C(0x00000100000001b3);
        sum ^= sum >> 29;
        size -= count;
    }
    return sum;
}

static struct head head_of(const struct real_ranks *group, enum what what, struct tree_node node,
                           const void *bytes, size_t size) {
    return (struct head){.tag = HEAD_TAG,
                         .command = group->command,
                         .what = what,
                         .from = group->ranks->rank,
                         .node = node,
                         .size = size,
                         .sum = sum_of(bytes, size)};
}

/* Whether a head is the one that is awaited; the checksum is compared once the bytes are there. */
static int is_awaited(const struct head *head, const struct head *awaited) {
    return head->tag == awaited->tag && head->command == awaited->command &&
           head->what == awaited->what && head->from == awaited->from &&
           head->node.level == awaited->node.level && head->node.index == awaited->node.index &&
           head->size == awaited->size;
}

static enum status fail_strange(const struct real_ranks *group, const struct head *got,
                                const struct head *awaited) {
    if (got->tag != HEAD_TAG)
        FAIL(STATUS_IO, "rank %u: expected a message of rank %u, got bytes that are none",
             (unsigned)group->ranks->rank, (unsigned)awaited->from);
    FAIL(STATUS_IO,
         "rank %u: expected message %u of rank %u under command %llu, %llu bytes, node %u/%u; got "
         "message %u of rank %u under command %llu, %llu bytes, node %u/%u: a message was lost or "
         "exchanged on its way",
         (unsigned)group->ranks->rank, (unsigned)awaited->what, (unsigned)awaited->from,
         (unsigned long long)awaited->command, (unsigned long long)awaited->size,
         (unsigned)awaited->node.level, (unsigned)awaited->node.index, (unsigned)got->what,
         (unsigned)got->from, (unsigned long long)got->command, (unsigned long long)got->size,
         (unsigned)got->node.level, (unsigned)got->node.index);
}

static enum status check_sum(const struct real_ranks *group, const struct head *head,
                             const void *bytes) {
    if (sum_of(bytes, (size_t)head->size) == head->sum) return STATUS_OK;
    FAIL(STATUS_IO, "rank %u: message %u of rank %u was changed on its way",
         (unsigned)group->ranks->rank, (unsigned)head->what, (unsigned)head->from);
}

static const struct tree_node no_node = {0, 0};

static enum status put_to(struct real_ranks *group, uint32_t to, enum what what,
                          struct tree_node node, const void *bytes, size_t size) {
    struct ranks *const ranks = group->ranks;
    const struct head head = head_of(group, what, node, bytes, size);
    TRY(ranks->which->send(ranks, to, &head, sizeof head));
    return ranks->which->send(ranks, to, bytes, size);
}

static enum status put(struct real_ranks *group, enum what what, struct tree_node node,
                       const void *bytes, size_t size) {
    return put_to(group, 0, what, node, bytes, size);
}

/* In the place of what it found a rank may tell why it found nothing. */
static enum status fail_as_told(struct real_ranks *group, const struct head *head) {
    char text[TEXT_SIZE + 1] = "";
    if (head->size > TEXT_SIZE)
        FAIL(STATUS_IO, "rank %u failed and sent a text of %llu bytes", (unsigned)head->from,
             (unsigned long long)head->size);
    TRY(group->ranks->which->receive(group->ranks, head->from, text, (size_t)head->size));
    FAIL(STATUS_IO, "rank %u: %s", (unsigned)head->from, text);
}

static enum status take(struct real_ranks *group, uint32_t from, enum what what,
                        struct tree_node node, void *bytes, size_t size) {
    struct ranks *const ranks = group->ranks;
    struct head head, awaited = head_of(group, what, node, NULL, 0);
    awaited.from = from;
    awaited.size = size;
    TRY(ranks->which->receive(ranks, from, &head, sizeof head));
    if (head.tag == HEAD_TAG && head.from == from && head.what == WHAT_FAILURE)
        return fail_as_told(group, &head);
    if (!is_awaited(&head, &awaited)) return fail_strange(group, &head, &awaited);
    TRY(ranks->which->receive(ranks, from, bytes, size));
    return check_sum(group, &head, bytes);
}

/* From rank 0 to all; everyone knows the size. */
static enum status cast(struct real_ranks *group, enum what what, void *bytes, size_t size) {
    struct ranks *const ranks = group->ranks;
    struct head head = head_of(group, what, no_node, NULL, 0), awaited = head;
    awaited.from = 0;
    awaited.size = size;
    if (ranks->rank == 0) head = head_of(group, what, no_node, bytes, size);
    TRY(ranks->which->broadcast(ranks, &head, sizeof head));
    if (!is_awaited(&head, &awaited)) return fail_strange(group, &head, &awaited);
    TRY(ranks->which->broadcast(ranks, bytes, size));
    return check_sum(group, &head, bytes);
}

/* Every rank's answer to rank 0. */
static enum status gather(struct real_ranks *group, enum what what, struct answer *own) {
    struct ranks *const ranks = group->ranks;
    own->head = head_of(group, what, no_node, &own->status, sizeof *own - sizeof own->head);
    TRY(ranks->which->gather(ranks, own, sizeof *own, group->answers));
    for (uint32_t r = 0; r < ranks->size && ranks->rank == 0; r++) {
        struct head awaited = own->head;
        awaited.from = r;
        if (!is_awaited(&group->answers[r].head, &awaited))
            return fail_strange(group, &group->answers[r].head, &awaited);
        TRY(check_sum(group, &group->answers[r].head, &group->answers[r].status));
    }
    return STATUS_OK;
}

/* Rank 0's command. One that breaks off leaves nobody who knows what comes next. */
static enum status command(struct real_ranks *group, struct command *what) {
    group->command++;
    const enum status status = cast(group, WHAT_COMMAND, what, sizeof *what);
    if (status != STATUS_OK) group->broken = 1;
    return status;
}

/* ---- the group ---- */

enum status real_ranks_open(struct ranks *ranks, const char *build, struct arena *arena,
                            struct real_ranks **out) {
    struct real_ranks *group;
    struct answer own = {.status = STATUS_OK};
    TRY(arena_take(arena, 1, sizeof *group, "ranks", &group));
    group->ranks = ranks;
    if (ranks->rank == 0)
        TRY(arena_take(arena, ranks->size, sizeof *group->answers, "ranks", &group->answers));
    snprintf(own.text, sizeof own.text, "%s, %zu bytes of configuration", build,
             sizeof(struct config));
    group->broken = 1;
    TRY(gather(group, WHAT_HELLO, &own));
    group->broken = 0;
    *out = group;
    for (uint32_t r = 1; r < ranks->size && ranks->rank == 0; r++)
        if (strcmp(group->answers[r].text, own.text) != 0)
            FAIL(STATUS_INPUT,
                 "--ranks: expected the same program on all ranks; rank 0 is %s, rank %u is %s",
                 own.text, (unsigned)r, group->answers[r].text);
    return STATUS_OK;
}

static int is_plain(const struct config *config) {
    const struct key_list *const micro = loop_list_of(config, LOOP_MICRO);
    for (uint8_t i = 0; i < micro->count; i++)
        if (micro->item[i] != PHASE_FETCH && micro->item[i] != PHASE_FORWARD &&
            micro->item[i] != PHASE_BACKWARD)
            return 0;
    return 1;
}

/* A bug of ranks that is simulated on ranks of one process. */
static const char *bug_of_ranks(const struct config *config) {
    if (config->parallel.sync != SYNC_EVERY) return "parallel.sync";
    if (config->parallel.keeps != KEEPS_ALL) return "parallel.keeps";
    if (config->parallel.logged != RANKS_LOG_MEAN) return "parallel.logged";
    if (config->parallel.feeds != FEEDS_OWN) return "parallel.feeds";
    return config->clip.over != OVER_GLOBAL ? "clip.over" : NULL;
}

static int is_from_module(const struct config_class *which) {
    return strcmp(which->module, CONFIG_NO_MODULE) != 0;
}

#define REFUSE_IF(condition, ...)                                                                  \
    do {                                                                                           \
        if (condition) FAIL(STATUS_INPUT, __VA_ARGS__);                                            \
    } while (0)

enum status real_ranks_check(const struct real_ranks *group, const struct config *config) {
    const uint64_t ranks = config->parallel.ranks, size = group->ranks->size;
    REFUSE_IF(
        ranks != 1 && ranks != size,
        "parallel.ranks: expected %ju with --ranks, the number of processes that were started "
        "(or 1, which rank 0 trains alone), got %ju",
        (uintmax_t)size, (uintmax_t)ranks);
    if (ranks == 1) return STATUS_OK;
    REFUSE_IF(
        config->numerics.mode != MODE_INVARIANT,
        "numerics.mode: expected invariant with --ranks: in no other mode the processes' sums "
        "are those of simulated ranks");
    REFUSE_IF(config->numerics.backend != BACKEND_CPU,
              "numerics.backend: expected cpu with --ranks, which moves what the host has");
    REFUSE_IF(config->fault.update != 0,
              "fault.update: expected none with --ranks: which process the bit flips in is not "
              "said");
    REFUSE_IF(bug_of_ranks(config) != NULL,
              "%s: expected its default with --ranks: bugs of ranks are simulated, in one process",
              bug_of_ranks(config));
    REFUSE_IF(is_from_module(&config->optimizer.which) || is_from_module(&config->schedule.which),
              "%s.module: expected none with --ranks: what a module keeps between updates is not "
              "sent to other processes",
              is_from_module(&config->optimizer.which) ? "optimizer" : "schedule");
    REFUSE_IF(!is_plain(config),
              "loop.micro: expected fetch, forward and backward alone with --ranks: another phase "
              "would see the micro-batches of its own process");
    return STATUS_OK;
}

enum status real_ranks_beat(struct real_ranks *group) {
    struct command beat = {.kind = COMMAND_BEAT};
    if (group == NULL || group->ranks->rank != 0 || group->broken) return STATUS_OK;
    return command(group, &beat);
}

enum status real_ranks_end(struct real_ranks *group, int code) {
    struct ranks *const ranks = group->ranks;
    struct command end = {.kind = COMMAND_END, .code = code};
    if (group->broken) return STATUS_OK;
    TRY(command(group, &end));
    TRY(ranks->which->barrier(ranks));
    ranks->which->close(ranks);
    return STATUS_OK;
}

/* ---- an update ---- */

/* The bytes that the forward of a planned micro-batch leaves for the others. */
static size_t found_bytes(const struct run *run, const struct sampler_micro *micro) {
    const size_t sequences = (size_t)micro->samples * run->batch.sides;
    size_t bytes = (size_t)micro->labels * sizeof(double);
    if (config_has_reference(&run->config)) bytes += micro->samples * 2 * sizeof(double);
    return bytes + run->shape.sites * sequences * sizeof(struct digest);
}

/* The micro-batches of a rank: from *out_first on; returns the one behind its last. */
static uint32_t micros_of(const struct run *run, uint32_t rank, uint32_t *out_first) {
    const struct config *const config = &run->config;
    uint64_t first = 0, own = 0;
    for (uint32_t r = 0; r <= rank; r++) {
        first += own;
        own = tree_rank_micros(r, run->plan.samples, config->batch.micro,
                               (uint32_t)config_dealt_shards(config),
                               (uint32_t)config->parallel.ranks);
    }
    *out_first = (uint32_t)first;
    return (uint32_t)(first + own);
}

/* The bytes of what a rank found: its words of random numbers, then its micro-batches. */
static size_t part_bytes(const struct run *run, uint32_t rank) {
    size_t bytes = sizeof(struct stream_ledger);
    uint32_t first;
    const uint32_t end = micros_of(run, rank, &first);
    for (uint32_t m = first; m < end; m++)
        bytes += found_bytes(run, &run->plan.micro[m]);
    return bytes;
}

static enum status open_found(struct run *run) {
    struct real_run *const real = run->real;
    const struct batch_limits *const limits = &run->limits;
    const size_t sequences = (size_t)limits->samples * limits->sides;
    const size_t micro = limits->tokens * sizeof(double) + limits->samples * 2 * sizeof(double) +
                         run->shape.sites * sequences * sizeof(struct digest);
    real->room = (size_t)batch_micro_batches(&run->config) * micro +
                 real->group->ranks->size * sizeof(struct stream_ledger);
    return arena_take(&run->arena, real->room, 1, "what ranks found", &real->found);
}

/* Copies bytes and moves on. */
static void add(unsigned char **at, const void *bytes, size_t size) {
    memcpy(*at, bytes, size);
    *at += size;
}

/* Copies what the forward of the micro-batch that was trained last has left. */
static void keep_found(const struct run *run, unsigned char **at) {
    const struct batch *const batch = &run->batch;
    add(at, run->model.logp, batch->label_count * sizeof(double));
    if (config_has_reference(&run->config))
        add(at, run->reference_logp, batch->sample_count * sizeof *run->reference_logp);
    add(at, run->site_item,
        (size_t)run->shape.sites * batch->sequence_count * sizeof(struct digest));
}

/* Trains the own micro-batches. What they add to the loss and to the ledger is put back: it is
 * added in the order of all ranks' micro-batches (take_all). */
static enum status train_own(struct run *run, enum status (*train_micro)(struct run *),
                             unsigned char *at) {
    struct state_head *const head = run_head(run);
    const struct loss_window window = head->window;
    const struct stream_ledger before = run->ledger;
    struct stream_ledger drawn;
    unsigned char *const own = at;
    at += sizeof drawn;
    for (run->micro = run->micro_first; run->micro < run->micro_end;) {
        TRY(train_micro(run));
        keep_found(run, &at);
    }
    for (int s = 0; s < STREAM_COUNT; s++)
        for (int op = 0; op < STREAM_OPS; op++)
            drawn.words[s][op] = run->ledger.words[s][op] - before.words[s][op];
    memcpy(own, &drawn, sizeof drawn);
    run->ledger = before;
    head->window = window;
    return STATUS_OK;
}

/* Waits longer where ranks work one after the other: whoever is `times` ranks away has as many
 * turns to wait for. */
static enum status in_turn(struct real_ranks *group, uint32_t times,
                           enum status (*wait)(struct run *run), struct run *run) {
    const double once = group->ranks->wait;
    group->ranks->wait = once * times;
    const enum status status = wait(run);
    group->ranks->wait = once;
    return status;
}

static enum status take_chain(struct run *run) {
    const struct shards_piece sum = shards_sum(run);
    return take(run->real->group, 0, WHAT_CHAIN, no_node, sum.bytes, sum.size);
}

/* Where an update is one shard, a rank goes on with the chains of the rank before it. The first
 * rank begins as one process does; the sums of another one are no longer those of the state that
 * it began with, so nothing is put into them from a stored gradient. */
static enum status begin_relay(struct run *run) {
    struct real_ranks *const group = run->real->group;
    if (run->shards != NULL || group->ranks->rank == 0) return STATUS_OK;
    TRY(in_turn(group, group->ranks->rank, take_chain, run));
    run_head(run)->pending = 1;
    return STATUS_OK;
}

/* All chains go through rank 0, which has the last rank's in the end. */
static enum status end_relay(struct run *run) {
    struct real_ranks *const group = run->real->group;
    const struct shards_piece sum = shards_sum(run);
    if (run->shards != NULL) return STATUS_OK;
    if (group->ranks->rank != 0) return put(group, WHAT_CHAIN, no_node, sum.bytes, sum.size);
    for (uint32_t r = 1; r < group->ranks->size; r++) {
        TRY(put_to(group, r, WHAT_CHAIN, no_node, sum.bytes, sum.size));
        TRY(take(group, r, WHAT_CHAIN, no_node, sum.bytes, sum.size));
    }
    return STATUS_OK;
}

static enum status cast_found(struct run *run) {
    struct real_run *const real = run->real;
    size_t bytes = 0;
    for (uint32_t r = 0; r < real->group->ranks->size; r++)
        bytes += part_bytes(run, r);
    return cast(real->group, WHAT_ALL_FOUND, real->found, bytes);
}

/* Brings together what the ranks found: rank 0 gets the parts of all, and all get the whole. */
static enum status exchange(struct run *run, unsigned char *own) {
    struct real_run *const real = run->real;
    struct real_ranks *const group = real->group;
    unsigned char *at = real->found;
    if (group->ranks->rank != 0)
        TRY(put(group, WHAT_FOUND, no_node, own, part_bytes(run, group->ranks->rank)));
    group->stage = STAGE_AMID;
    for (uint32_t r = 0; r < group->ranks->size; r++) {
        const size_t bytes = part_bytes(run, r);
        if (r > 0 && group->ranks->rank == 0) TRY(take(group, r, WHAT_FOUND, no_node, at, bytes));
        at += bytes;
    }
    const uint32_t behind = group->ranks->size - group->ranks->rank;
    return in_turn(group, run->shards == NULL ? behind : 1, cast_found, run);
}

/* Goes over all micro-batches of the update in their order, as if they had been trained here. */
static enum status take_all(struct run *run) {
    const unsigned char *at = run->real->found;
    const int referred = config_has_reference(&run->config);
    measure_restart_streams(run);
    run->micro = 0;
    for (uint32_t r = 0; r < run->real->group->ranks->size; r++) {
        struct stream_ledger drawn;
        uint32_t first;
        const uint32_t end = micros_of(run, r, &first);
        memcpy(&drawn, at, sizeof drawn);
        at += sizeof drawn;
        for (int s = 0; s < STREAM_COUNT; s++)
            for (uint32_t op = 0; op < STREAM_OPS; op++)
                stream_ledger_add(&run->ledger, (enum stream)s, op, drawn.words[s][op]);
        for (uint32_t m = first; m < end; m++) {
            const struct sampler_micro *const micro = &run->plan.micro[m];
            const unsigned char *const reference = at + micro->labels * sizeof(double);
            const size_t scores = referred ? micro->samples * 2 * sizeof(double) : 0;
            const struct micro_found found = {
                .logp = (const double *)(const void *)at,
                .reference = (const double(*)[2])(const void *)reference,
                .sites = (const struct digest *)(const void *)(reference + scores)};
            TRY(phase_take_micro(run, &found));
            at += found_bytes(run, micro);
        }
    }
    return STATUS_OK;
}

enum status real_ranks_micros(struct run *run, enum status (*train_micro)(struct run *)) {
    struct real_run *const real = run->real;
    const uint32_t rank = real->group->ranks->rank;
    unsigned char *own = real->found;
    run->micro_end = micros_of(run, rank, &run->micro_first);
    for (uint32_t r = 0; r < rank; r++)
        own += part_bytes(run, r);
    TRY(begin_relay(run));
    TRY(train_own(run, train_micro, own));
    TRY(end_relay(run));
    TRY(exchange(run, own));
    return take_all(run);
}

/* Rank 0 hears all others, so the pieces are with it, in the order of the tree, or on their way to
 * it. */
static enum status collect_pieces(struct run *run) {
    struct real_ranks *const group = run->real->group;
    struct shards_piece pieces[TREE_NODES_MAX];
    if (group->ranks->rank != 0) {
        const uint32_t count = shards_pieces(run, 0, pieces);
        for (uint32_t i = 0; i < count; i++)
            TRY(put(group, WHAT_PIECE, pieces[i].node, pieces[i].bytes, pieces[i].size));
    }
    for (uint32_t r = 1; r < group->ranks->size && group->ranks->rank == 0; r++) {
        const uint32_t count = shards_expect(run, r, pieces);
        for (uint32_t i = 0; i < count; i++)
            TRY(take(group, r, WHAT_PIECE, pieces[i].node, pieces[i].bytes, pieces[i].size));
    }
    return STATUS_OK;
}

/* Where a rank owns a part of the gradient, it gets that part of every piece, its own ones
 * included, and joins it; then all get what all have joined, since the record is of the whole
 * gradient. */
static enum status scatter_pieces(struct run *run) {
    struct real_ranks *const group = run->real->group;
    const uint32_t own = group->ranks->rank;
    unsigned char *const packed = zero_packed(run);
    struct shards_piece pieces[TREE_NODES_MAX];
    const uint32_t count =
        own == 0 ? shards_pieces(run, 0, pieces) : shards_expect_all(run, pieces);
    for (uint32_t r = 1; r < group->ranks->size && own == 0; r++)
        for (uint32_t i = 0; i < count; i++) {
            const size_t size = zero_move_sums(run, r, pieces[i].bytes, packed, ZERO_PACK);
            TRY(put_to(group, r, WHAT_PART, pieces[i].node, packed, size));
        }
    for (uint32_t i = 0; i < count && own != 0; i++) {
        const size_t size = zero_move_sums(run, own, pieces[i].bytes, NULL, ZERO_COUNT);
        TRY(take(group, 0, WHAT_PART, pieces[i].node, packed, size));
        (void)zero_move_sums(run, own, pieces[i].bytes, packed, ZERO_UNPACK);
    }
    shards_reduce(run);
    return zero_share_sums(run);
}

/* One shard is in one piece, which rank 0 has already. */
enum status real_ranks_reduce(struct run *run) {
    struct real_ranks *const group = run->real->group;
    if (run->shards != NULL) TRY(collect_pieces(run));
    if (run->shards != NULL && zero_is(run, ZERO_GRADIENTS)) return scatter_pieces(run);
    if (group->ranks->rank == 0) shards_reduce(run);
    const struct shards_piece sum = shards_sum(run);
    TRY(cast(group, WHAT_SUM, sum.bytes, sum.size));
    if (run->zero == NULL) group->stage = STAGE_AFTER_SUM;
    return STATUS_OK;
}

uint32_t real_ranks_rank(const struct run *run) {
    return run->real->group->ranks->rank;
}

enum status real_ranks_share(struct run *run, unsigned char *bytes, const size_t *sizes) {
    struct real_ranks *const group = run->real->group;
    const uint32_t own = group->ranks->rank;
    size_t at = 0;
    for (uint32_t r = 0; r < group->ranks->size; at += sizes[r++]) {
        if (r > 0 && r == own) TRY(put(group, WHAT_MADE, no_node, bytes + at, sizes[r]));
        if (r > 0 && own == 0) TRY(take(group, r, WHAT_MADE, no_node, bytes + at, sizes[r]));
    }
    return cast(group, WHAT_ALL_MADE, bytes, at);
}

/* ---- rank 0: the others know the run ---- */

static enum status find_place(struct real_ranks *group, uint32_t *out) {
    for (*out = 0; *out < RUNS_MAX; ++*out)
        if (group->open[*out] == NULL) return STATUS_OK;
    FAIL(STATUS_INTERNAL, "--ranks: expected at most %d open runs", RUNS_MAX);
}

static enum status check_opened(const struct real_ranks *group, const struct run *run) {
    for (uint32_t r = 1; r < group->ranks->size; r++) {
        const struct answer *const answer = &group->answers[r];
        if (answer->status != STATUS_OK)
            FAIL((enum status)answer->status, "rank %u: %s", (unsigned)r, answer->text);
        if (memcmp(&answer->digest, &run->dataset->digest, sizeof answer->digest) != 0)
            FAIL(STATUS_INPUT,
                 "rank %u reads other data than rank 0: expected the same files on all machines",
                 (unsigned)r);
    }
    return STATUS_OK;
}

static enum status open_elsewhere(struct run *run, struct real_ranks *group) {
    struct command open = {.kind = COMMAND_OPEN};
    struct answer own = {.status = STATUS_OK, .digest = run->dataset->digest};
    struct opening *opening;
    TRY(find_place(group, &open.run));
    TRY(arena_take(&run->arena, 1, sizeof *run->real, "ranks", &run->real));
    *run->real = (struct real_run){.group = group, .place = open.run};
    TRY(open_found(run));
    TRY(arena_take(&run->arena, 1, sizeof *opening, "ranks", &opening));
    opening->config = run->config;
    opening->steps = run->options.steps;
    opening->order_seed = run->options.order_seed;
    opening->readback = run->options.readback;
    opening->tensors = run->options.tensors;
    opening->phases = run->options.phases;
    opening->poison = run->options.poison;
    group->open[open.run] = run;
    TRY(command(group, &open));
    group->broken = 1; /* until all have answered */
    TRY(cast(group, WHAT_OPENING, opening, sizeof *opening));
    TRY(gather(group, WHAT_ANSWER, &own));
    group->broken = 0;
    return check_opened(group, run);
}

void real_ranks_forget(struct run *run) {
    struct real_run *const real = run->real;
    struct command forget = {.kind = COMMAND_CLOSE};
    if (real == NULL || real->group->ranks->rank != 0) return;
    forget.run = real->place;
    real->group->open[real->place] = NULL;
    if (!real->group->broken && command(real->group, &forget) != STATUS_OK) real->group->broken = 1;
}

/* Whether all ranks can train the coming update. Who looks at ops, or is told of phases, sees all
 * micro-batches where one process trains them; the bits are the same. */
static int can_be_shared(const struct run *run) {
    return run->config.parallel.ranks > 1 && run->model.watch == NULL &&
           run->options.at_phase == NULL && run->options.start == NULL && !run->options.undivided;
}

static enum status begin_elsewhere(struct run *run, struct real_ranks *group) {
    struct command step = {.kind = COMMAND_STEP, .state = !run->known};
    if (run->real == NULL) TRY(open_elsewhere(run, group));
    step.run = run->real->place;
    TRY(command(group, &step));
    group->broken = 1; /* until the update has ended */
    if (step.state) TRY(cast(group, WHAT_STATE, run->state.host, run->layout.bytes));
    run->known = 1;
    return STATUS_OK;
}

enum status real_ranks_begin(struct run *run) {
    struct real_ranks *const group = run->options.ranks;
    run->shared = 0;
    run->micro_first = 0;
    if (group == NULL) return STATUS_OK;
    if (group->ranks->rank == 0 && !can_be_shared(run)) {
        run->known = 0;
        return real_ranks_beat(group);
    }
    if (group->ranks->rank == 0) TRY(begin_elsewhere(run, group));
    run->shared = 1;
    group->stage = STAGE_BEFORE_FOUND;
    return STATUS_OK;
}

/* Compares the roots of all ranks, which stand for their states and for all that they recorded. */
static enum status compare_roots(const struct real_ranks *group, const struct run *run) {
    const struct digest *const root = &group->answers[0].digest;
    for (uint32_t r = 1; r < group->ranks->size; r++) {
        const struct answer *const answer = &group->answers[r];
        if (answer->status != STATUS_OK)
            FAIL((enum status)answer->status, "rank %u: %s", (unsigned)r, answer->text);
        if (memcmp(&answer->digest, root, sizeof *root) != 0)
            FAIL(STATUS_INTERNAL,
                 "replicas part at update %llu: rank %u has another root than rank 0, though both "
                 "took the same sum",
                 (unsigned long long)run->record.step, (unsigned)r);
    }
    return STATUS_OK;
}

enum status real_ranks_finish(struct run *run, enum status status) {
    struct answer own = {.status = (uint32_t)status};
    if (!run->shared) return status;
    struct real_ranks *const group = run->real->group;
    const int root = group->ranks->rank == 0;
    if (status != STATUS_OK && root) return status; /* it stays broken */
    if (status != STATUS_OK) snprintf(own.text, sizeof own.text, "%s", status_text());
    if (status != STATUS_OK && group->stage == STAGE_BEFORE_FOUND)
        return put(group, WHAT_FAILURE, no_node, own.text, strlen(own.text));
    if (status != STATUS_OK && group->stage == STAGE_AMID) return status;
    own.digest = run_head(run)->root;
    TRY(gather(group, WHAT_ENDING, &own));
    group->stage = STAGE_ALONE;
    if (root) TRY(compare_roots(group, run));
    group->broken = 0;
    return STATUS_OK;
}

/* ---- the others ---- */

static enum status open_here(struct real_ranks *group, const struct opening *opening,
                             struct served *served) {
    const struct dataset_options source = run_dataset_options(&opening->config);
    const struct run_options options = {.readback = opening->readback,
                                        .tensors = opening->tensors,
                                        .phases = opening->phases,
                                        .poison = opening->poison,
                                        .steps = opening->steps,
                                        .order_seed = opening->order_seed,
                                        .ranks = group};
    TRY(dataset_open(&source, &served->arena, &served->dataset));
    TRY(run_open(&opening->config, &served->dataset, &options, &served->run));
    struct run *const run = served->run;
    TRY(arena_take(&run->arena, 1, sizeof *run->real, "ranks", &run->real));
    run->real->group = group;
    return open_found(run);
}

static void close_here(struct served *served) {
    run_close(served->run);
    arena_close(&served->arena);
    *served = (struct served){.arena = ARENA_EMPTY};
}

static enum status serve_opening(struct real_ranks *group, struct served *served) {
    struct answer own = {.status = STATUS_OK};
    struct opening *opening;
    served->arena = (struct arena)ARENA_EMPTY;
    TRY(arena_take(&served->arena, 1, sizeof *opening, "ranks", &opening));
    TRY(cast(group, WHAT_OPENING, opening, sizeof *opening));
    const enum status status = open_here(group, opening, served);
    own.status = (uint32_t)status;
    if (status == STATUS_OK)
        own.digest = served->dataset.digest;
    else
        snprintf(own.text, sizeof own.text, "%s", status_text());
    return gather(group, WHAT_ANSWER, &own);
}

static enum status serve_step(struct real_ranks *group, const struct command *step,
                              struct served *served) {
    struct run *const run = served->run;
    const struct record *record;
    if (run == NULL) FAIL(STATUS_INTERNAL, "told to train run %u, which is not open", step->run);
    if (step->state) {
        TRY(cast(group, WHAT_STATE, run->state.host, run->layout.bytes));
        run->weights_fresh = 0;
    }
    return run_step(run, &record);
}

static enum status obey(struct real_ranks *group, const struct command *what) {
    struct served *const served = &group->served[what->run % RUNS_MAX];
    switch ((enum command_kind)what->kind) {
    case COMMAND_OPEN:
        return serve_opening(group, served);
    case COMMAND_STEP:
        return serve_step(group, what, served);
    case COMMAND_CLOSE:
        close_here(served);
        return STATUS_OK;
    case COMMAND_END:
    case COMMAND_BEAT:
    default:
        return STATUS_OK;
    }
}

enum status real_ranks_serve(struct real_ranks *group, int *out_code) {
    struct command what;
    do {
        group->command++;
        TRY(cast(group, WHAT_COMMAND, &what, sizeof what));
        TRY(obey(group, &what));
    } while (what.kind != COMMAND_END);
    for (int i = 0; i < RUNS_MAX; i++)
        if (group->served[i].run != NULL) close_here(&group->served[i]);
    *out_code = what.code;
    TRY(group->ranks->which->barrier(group->ranks));
    group->ranks->which->close(group->ranks);
    return STATUS_OK;
}
