/* SPDX-License-Identifier: Apache-2.0
 * labels: repro short whole
 * Ranks that are processes: children of this one, with sockets that move the bytes in the place of
 * MPI. Trained so, every update must leave the root that simulated ranks leave (which
 * test_shards.c holds against the law), and the digests of the same weights. Every message that is
 * dropped, doubled, changed or exchanged with another rank's must end as an error. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/base/helper_size.h"
#include "tests/trainer/helper_train.h"
#include "trainer/real_ranks.h"

enum { RANKS_MOST = 8, UPDATES = 3 };

/* ---- bytes through sockets ---- */

enum line_fault {
    FAULT_NONE,
    DROP,     /* the message is never sent */
    DOUBLE,   /* it is sent twice */
    FLIP,     /* one bit of it changes */
    EXCHANGE, /* from here on rank 0 hears rank 2 where it listens to rank 1, and the reverse */
    FAULTS
};

/* One process's sockets: to rank 0, or of rank 0 to all; and what goes wrong here. */
static struct {
    int to[RANKS_MOST];
    enum line_fault fault;
    uint32_t at;      /* which of the messages */
    uint32_t through; /* messages so far: those received for EXCHANGE, else those sent */
    int happened;
} line;

static int is_now(enum line_fault fault) {
    const int now = line.fault == fault && line.through == line.at;
    line.happened |= now;
    return now;
}

static enum status write_all(int socket, const void *bytes, size_t size) {
    const char *at = (const char *)bytes;
    while (size > 0) {
        const ssize_t sent = send(socket, at, size, MSG_NOSIGNAL);
        if (sent <= 0) FAIL(STATUS_IO, "nobody takes what is sent");
        at += sent;
        size -= (size_t)sent;
    }
    return STATUS_OK;
}

static enum status read_all(int socket, void *bytes, size_t size) {
    char *at = (char *)bytes;
    while (size > 0) {
        const ssize_t got = recv(socket, at, size, 0);
        if (got <= 0) FAIL(STATUS_IO, "nothing comes");
        at += got;
        size -= (size_t)got;
    }
    return STATUS_OK;
}

static enum status send_to(int socket, const void *bytes, size_t size) {
    unsigned char changed[256];
    enum status status = STATUS_OK;
    if (is_now(FLIP) && size <= sizeof changed) {
        memcpy(changed, bytes, size);
        changed[size / 2] ^= 4;
        status = write_all(socket, changed, size);
    } else if (is_now(FLIP)) {
        status = write_all(socket, bytes, size - 1);
        changed[0] = ((const unsigned char *)bytes)[size - 1] ^ 1;
        if (status == STATUS_OK) status = write_all(socket, changed, 1);
    } else if (!is_now(DROP)) {
        status = write_all(socket, bytes, size);
        if (status == STATUS_OK && is_now(DOUBLE)) status = write_all(socket, bytes, size);
    }
    line.through += line.fault != EXCHANGE;
    return status;
}

static enum status socket_send(struct ranks *ranks, uint32_t to, const void *bytes, size_t size) {
    (void)ranks;
    return send_to(line.to[to], bytes, size);
}

static enum status socket_receive(struct ranks *ranks, uint32_t from, void *bytes, size_t size) {
    (void)ranks;
    if (line.fault == EXCHANGE) {
        line.happened |= line.through >= line.at;
        if (line.through >= line.at) from = from == 1 ? 2 : 1;
        line.through++;
    }
    return read_all(line.to[from], bytes, size);
}

static enum status socket_broadcast(struct ranks *ranks, void *bytes, size_t size) {
    if (ranks->rank != 0) return read_all(line.to[0], bytes, size);
    for (uint32_t r = 1; r < ranks->size; r++)
        TRY(send_to(line.to[r], bytes, size));
    return STATUS_OK;
}

static enum status socket_gather(struct ranks *ranks, const void *own, size_t size, void *all) {
    if (ranks->rank != 0) return send_to(line.to[0], own, size);
    memcpy(all, own, size);
    for (uint32_t r = 1; r < ranks->size; r++)
        TRY(socket_receive(ranks, r, (char *)all + r * size, size));
    return STATUS_OK;
}

#define BARRIER_WORD ((char)0xB5) /* begins no message, so that it is seen that one was left over  \
                                   */

static enum status read_barrier(int socket) {
    char word = 0;
    TRY(read_all(socket, &word, 1));
    if (word != BARRIER_WORD) FAIL(STATUS_IO, "another message comes in the place of a barrier");
    return STATUS_OK;
}

/* It holds nothing that could be changed, so nothing goes wrong here. */
static enum status socket_barrier(struct ranks *ranks) {
    const char word = BARRIER_WORD;
    for (uint32_t r = 1; r < ranks->size && ranks->rank == 0; r++)
        TRY(read_barrier(line.to[r]));
    for (uint32_t r = 1; r < ranks->size && ranks->rank == 0; r++)
        TRY(write_all(line.to[r], &word, 1));
    if (ranks->rank == 0) return STATUS_OK;
    TRY(write_all(line.to[0], &word, 1));
    return read_barrier(line.to[0]);
}

static void socket_give_up(struct ranks *ranks, int code) {
    (void)ranks;
    (void)code;
}

static void socket_close(struct ranks *ranks) {
    (void)ranks;
}

static const struct ranks_class sockets = {.name = "sockets",
                                           .send = socket_send,
                                           .receive = socket_receive,
                                           .broadcast = socket_broadcast,
                                           .gather = socket_gather,
                                           .barrier = socket_barrier,
                                           .give_up = socket_give_up,
                                           .close = socket_close};

static void set_deadline(int socket, double seconds) {
    const long whole = (long)seconds;
    const struct timeval wait = {whole, (suseconds_t)((seconds - (double)whole) * 1e6)};
    assert_int_equal(setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait), 0);
}

/* ---- a group ---- */

/* What goes wrong, and in which process. */
struct breakage {
    enum line_fault fault;
    uint32_t rank, at;
};

struct group {
    struct ranks ranks;
    struct arena arena;
    struct real_ranks *real;
    pid_t child[RANKS_MOST];
    const char *build[RANKS_MOST]; /* NULL: that of all */
};

#define HAPPENED 64 /* in what a child ends with: the fault happened there, noticed or not */

/* Leaves by _exit(): what cmocka holds belongs to the parent. */
static void serve(struct group *group) {
    int code = 0;
    const char *const build = group->build[group->ranks.rank];
    enum status status =
        real_ranks_open(&group->ranks, build == NULL ? "test" : build, &group->arena, &group->real);
    if (status == STATUS_OK) status = real_ranks_serve(group->real, &code);
    _exit((line.happened ? HAPPENED : 0) | (status == STATUS_OK ? code : 9));
}

static enum status begin(struct group *group, uint32_t size, double wait, struct breakage broken) {
    memset(&line, 0, sizeof line);
    group->arena = (struct arena)ARENA_EMPTY;
    for (uint32_t r = 1; r < size; r++) {
        int ends[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        set_deadline(ends[0], wait);
        set_deadline(ends[1], wait);
        group->child[r] = fork();
        assert_true(group->child[r] >= 0);
        if (group->child[r] == 0) {
            for (uint32_t other = 1; other < r; other++)
                close(line.to[other]);
            close(ends[0]);
            line.to[0] = ends[1];
            if (broken.rank == r) line.fault = broken.fault, line.at = broken.at;
            group->ranks = (struct ranks){&sockets, r, size, wait, NULL};
            serve(group);
        }
        close(ends[1]);
        line.to[r] = ends[0];
    }
    if (broken.rank == 0) line.fault = broken.fault, line.at = broken.at;
    group->ranks = (struct ranks){&sockets, 0, size, wait, NULL};
    return real_ranks_open(&group->ranks, "test", &group->arena, &group->real);
}

/* Returns what all children ended with, in one word: 0 where all were told code 0; and whether the
 * fault happened. */
static int end(struct group *group, int *out_happened) {
    int all = 0;
    *out_happened = line.happened;
    for (uint32_t r = 1; r < group->ranks.size; r++)
        close(line.to[r]);
    for (uint32_t r = 1; r < group->ranks.size; r++) {
        int how = 0;
        assert_int_equal(waitpid(group->child[r], &how, 0), group->child[r]);
        assert_true(WIFEXITED(how));
        *out_happened |= (WEXITSTATUS(how) & HAPPENED) != 0;
        all |= WEXITSTATUS(how) & ~HAPPENED;
    }
    arena_close(&group->arena);
    return all;
}

/* ---- trainings ---- */

#define WITH_ZERO "loop: {update: [reduce, clip, optimize, log, count, schedule, zero]}, "
#define RELAYED 4 /* of the trainings, one of one shard */
#define SMALL "hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 19"

static const char *const trainings[] = {
    "task: sft, model: {family: qwen2, layers: 1, tied: true, " SMALL "}, " WITH_ZERO
    "batch: {size: 8, micro: 2}, numerics: {shards: 8}",
    "task: dpo, model: {family: olmo2, layers: 1, tied: false, " SMALL "}, " WITH_ZERO
    "batch: {size: 5, micro: 1}, dropout: {attention: 0.1, residual: 0.1}, "
    "dpo: {reference: live}, numerics: {shards: 8}",
    "task: dpo, model: {family: qwen3, layers: 2, tied: true, " SMALL "}, " WITH_ZERO
    "batch: {size: 12, micro: 3}, numerics: {shards: 16, compute: bf16, gradient: bf16}, "
    "scaler: {kind: dynamic}, loss: {divisor: mean-of-means}",
    /* a gradient that is not set to zero goes on in the first rank alone */
    "task: sft, model: {family: qwen2, layers: 1, tied: true, " SMALL "}, "
    "batch: {size: 8, micro: 2}, numerics: {shards: 8}, "
    "loop: {update: [reduce, clip, optimize, log, count, schedule]}",
    /* one shard, whose chain ranks hand on, with and without a stored gradient in front of it */
    "task: dpo, model: {family: olmo2, layers: 1, tied: false, " SMALL "}, " WITH_ZERO
    "batch: {size: 6, micro: 2}, dropout: {attention: 0.1, residual: 0.1}, dpo: {reference: live}",
    "task: sft, model: {family: qwen2, layers: 1, tied: true, " SMALL "}, "
    "batch: {size: 8, micro: 2}, loop: {update: [reduce, clip, optimize, log, count, schedule]}",
};

struct bench {
    struct config config;
    struct arena arena;
    struct dataset dataset;
    char path[HELPER_PATH_SIZE];
};

static void bench_open(const char *words, uint64_t ranks, struct bench *bench) {
    bench->arena = (struct arena)ARENA_EMPTY;
    helper_config(UPDATES, &bench->config, "%s, init: {std: 0.3}, parallel: {ranks: %llu}", words,
                  (unsigned long long)ranks);
    const int sft = bench->config.task == TASK_SFT;
    helper_ids_write((enum task)bench->config.task, 19, 5, 40, 16, bench->path);
    char *const key = sft ? bench->config.data.text : bench->config.data.pairs;
    assert_true(strlen(bench->path) < CONFIG_PATH_SIZE);
    memcpy(key, bench->path, strlen(bench->path) + 1);
    helper_data_open(&bench->config, &bench->arena, &bench->dataset);
}

static void bench_close(struct bench *bench) {
    unlink(bench->path);
    arena_close(&bench->arena);
}

/* The roots of the updates; with `back` the last update is trained twice, from a state that is put
 * back before. */
static enum status train(const struct bench *bench, struct real_ranks *group, int back,
                         struct digest roots[UPDATES]) {
    const struct run_options options = {.readback = 1,
                                        .tensors = 1,
                                        .phases = 1,
                                        .poison = 1,
                                        .steps = UPDATES,
                                        .order_seed = 1,
                                        .ranks = group};
    struct run *run;
    const struct record *record;
    unsigned char *state;
    struct arena arena = ARENA_EMPTY;
    TRY(run_open(&bench->config, &bench->dataset, &options, &run));
    enum status status = arena_take(&arena, run_layout(run)->bytes, 1, "state", &state);
    for (int k = 0; k < UPDATES && status == STATUS_OK; k++) {
        if (k == UPDATES - 1) status = run_snapshot(run, state);
        if (status == STATUS_OK) status = run_step(run, &record);
        if (status == STATUS_OK) memcpy(roots[k].byte, record->digests[DIGEST_ROOT], DIGEST_BYTES);
    }
    if (status == STATUS_OK && back) status = run_restore(run, state);
    if (status == STATUS_OK && back) status = run_step(run, &record);
    if (status == STATUS_OK && back)
        assert_memory_equal(record->digests[DIGEST_ROOT], roots[UPDATES - 1].byte, DIGEST_BYTES);
    run_close(run);
    arena_close(&arena);
    return status;
}

/* Trains with processes and returns how it went, for all of them. */
static enum status train_with(const struct bench *bench, double wait, struct breakage broken,
                              struct digest roots[UPDATES], int *out_happened) {
    struct group group = {.build = {NULL}};
    enum status status = begin(&group, (uint32_t)bench->config.parallel.ranks, wait, broken);
    if (status == STATUS_OK) status = real_ranks_check(group.real, &bench->config);
    if (status == STATUS_OK) status = train(bench, group.real, broken.fault == FAULT_NONE, roots);
    if (status == STATUS_OK) status = real_ranks_end(group.real, 0);
    const int told = end(&group, out_happened);
    return status == STATUS_OK && told != 0 ? STATUS_IO : status;
}

static void compare_real(size_t training, uint64_t ranks, uint64_t stage) {
    struct digest simulated[UPDATES], real[UPDATES];
    struct bench bench;
    int happened;
    bench_open(trainings[training], ranks, &bench);
    assert_int_equal(train(&bench, NULL, 0, simulated), STATUS_OK); /* of stage 0 */
    bench.config.parallel.zero = stage;
    const enum status status =
        train_with(&bench, 60.0, (struct breakage){FAULT_NONE, 0, 0}, real, &happened);
    if (status != STATUS_OK)
        fail_msg("training %zu, %llu ranks, stage %llu: %s", training, (unsigned long long)ranks,
                 (unsigned long long)stage, status_text());
    for (int k = 0; k < UPDATES; k++)
        if (memcmp(simulated[k].byte, real[k].byte, DIGEST_BYTES) != 0)
            fail_msg("training %zu, %llu ranks, stage %llu: other bits at update %d", training,
                     (unsigned long long)ranks, (unsigned long long)stage, k + 1);
    bench_close(&bench);
}

static void verify_real_are_simulated(void **state) {
    static const uint64_t ranks[] = {2, 3, 4, 5};
    (void)state;
    for (size_t t = 0; t < COUNT_OF(trainings); t++)
        for (size_t i = 0; i < COUNT_OF(ranks); i++)
            compare_real(t, ranks[i], ZERO_NONE);
}

/* Ranks that own parts: roots are of weights, masters, slots, norm and gradients. */
static void verify_real_parts(void **state) {
    (void)state;
    for (size_t t = 0; t < COUNT_OF(trainings); t++)
        for (uint64_t stage = ZERO_SLOTS; stage <= ZERO_WEIGHTS; stage++)
            compare_real(t, 2 + (t + stage) % 4, stage);
}

/* Breaks each message in turn, until there is none that is still to be broken, or every `step`th.
 */
static void break_messages(const struct bench *bench, uint32_t step) {
    static const char *const names[FAULTS] = {"none", "drop", "double", "flip", "exchange"};
    struct digest simulated[UPDATES], real[UPDATES];
    assert_int_equal(train(bench, NULL, 0, simulated), STATUS_OK);
    for (int fault = DROP; fault < FAULTS; fault++)
        for (uint32_t rank = 0; rank < (fault == EXCHANGE ? 1 : 3); rank++) {
            uint32_t broken = 0, at = 0;
            for (int happened = 1; happened; at += step) {
                const struct breakage breakage = {(enum line_fault)fault, rank, at};
                const enum status status = train_with(bench, 0.3, breakage, real, &happened);
                const int told =
                    status != STATUS_OK || memcmp(simulated, real, sizeof simulated) != 0;
                if (happened && !told)
                    fail_msg("%s of message %u of rank %u: nobody noticed", names[fault], at, rank);
                broken += (uint32_t)happened;
            }
            if (broken == 0) fail_msg("%s in rank %u never happened", names[fault], rank);
        }
}

static void verify_broken_messages_are_told(void **state) {
    static const struct {
        size_t training;
        uint64_t stage;
        size_t step;
    } broken[] = {{0, ZERO_NONE, 7}, {RELAYED, ZERO_NONE, 31}, {0, ZERO_GRADIENTS, 31}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(broken); i++) {
        struct bench bench;
        bench_open(trainings[broken[i].training], 3, &bench);
        bench.config.parallel.zero = broken[i].stage;
        break_messages(&bench, (uint32_t)helper_size(13, broken[i].step, 1));
        bench_close(&bench);
    }
}

static void verify_refusals(void **state) {
    static const struct {
        const char *words;
        uint64_t ranks;
        const char *text;
    } cases[] = {
        {"numerics: {shards: 8}, batch: {size: 8, micro: 2}, loop: {update: [reduce, clip, "
         "optimize, log, count, schedule, zero]}",
         3, "parallel.ranks: expected 2"},
        {"numerics: {shards: 8, mode: order-free}, batch: {size: 8, micro: 2}", 2,
         "numerics.mode: expected invariant"},
        {"numerics: {shards: 8}, batch: {size: 8, micro: 2}, fault: {update: 2, op: loss, tensor: "
         "coefficient}",
         2, "fault.update: expected none"},
        {"numerics: {shards: 8}, batch: {size: 8, micro: 2}, loop: {micro: [fetch, forward, "
         "backward, count], update: [reduce, clip, optimize, log, schedule, zero]}",
         2, "loop.micro: expected fetch, forward and backward"},
        {"numerics: {shards: 8}, batch: {size: 8, micro: 2}, loop: {update: [reduce, clip, "
         "optimize, log, count, schedule, zero]}, parallel: {ranks: 2, sync: first}",
         2, "parallel.sync: expected its default with --ranks"},
        {"numerics: {shards: 8}, batch: {size: 8, micro: 2}, loop: {update: [reduce, clip, "
         "optimize, log, count, schedule, zero]}, parallel: {ranks: 2, keeps: last}",
         2, "parallel.keeps: expected its default with --ranks"},
        {"numerics: {shards: 8}, batch: {size: 8, micro: 2}, loop: {update: [reduce, clip, "
         "optimize, log, count, schedule, zero]}, parallel: {ranks: 2, logged: rank0}",
         2, "parallel.logged: expected its default with --ranks"},
        {"numerics: {shards: 8}, batch: {size: 8, micro: 2}, loop: {update: [reduce, clip, "
         "optimize, log, count, schedule, zero]}, parallel: {ranks: 2, feeds: same}",
         2, "parallel.feeds: expected its default with --ranks"},
        {"numerics: {shards: 8}, batch: {size: 8, micro: 2}, loop: {update: [reduce, clip, "
         "optimize, log, count, schedule, zero]}, clip: {over: local}",
         2, "clip.over: expected its default with --ranks"},
    };
    struct group group = {.build = {NULL}};
    int happened;
    (void)state;
    assert_int_equal(begin(&group, 2, 60.0, (struct breakage){FAULT_NONE, 0, 0}), STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct config config;
        if (strstr(cases[i].words, "parallel: ") != NULL)
            helper_config(UPDATES, &config, "task: sft, %s", cases[i].words);
        else
            helper_config(UPDATES, &config, "task: sft, parallel: {ranks: %llu}, %s",
                          (unsigned long long)cases[i].ranks, cases[i].words);
        assert_int_equal(real_ranks_check(group.real, &config), STATUS_INPUT);
        if (strstr(status_text(), cases[i].text) == NULL)
            fail_msg("case %zu: expected \"%s\", got \"%s\"", i, cases[i].text, status_text());
    }
    assert_int_equal(real_ranks_beat(group.real), STATUS_OK);
    assert_int_equal(real_ranks_end(group.real, 0), STATUS_OK);
    assert_int_equal(end(&group, &happened), 0);
}

static void verify_other_builds_are_refused(void **state) {
    struct group group = {.build = {[2] = "another"}};
    int happened;
    (void)state;
    assert_int_equal(begin(&group, 3, 60.0, (struct breakage){FAULT_NONE, 0, 0}), STATUS_INPUT);
    assert_non_null(strstr(status_text(), "rank 2 is another"));
    assert_int_not_equal(end(&group, &happened), 0);
}

/* What a rank cannot do, it tells rank 0 in words: here, open the data, which are other data. */
static void verify_other_data_are_refused(void **state) {
    struct bench bench;
    struct digest roots[UPDATES];
    struct group group = {.build = {NULL}};
    int happened;
    (void)state;
    bench_open(trainings[0], 2, &bench);
    unlink(bench.path);
    assert_int_equal(begin(&group, 2, 60.0, (struct breakage){FAULT_NONE, 0, 0}), STATUS_OK);
    assert_int_not_equal(train(&bench, group.real, 0, roots), STATUS_OK);
    if (strstr(status_text(), "rank 1: ") == NULL || strstr(status_text(), bench.path) == NULL)
        fail_msg("got \"%s\"", status_text());
    assert_int_equal(real_ranks_end(group.real, 0), STATUS_OK);
    assert_int_equal(end(&group, &happened), 0);

    char path[HELPER_PATH_SIZE];
    helper_ids_write(TASK_SFT, 19, 6, 40, 16, path);
    assert_int_equal(rename(path, bench.path), 0);
    assert_int_equal(begin(&group, 2, 60.0, (struct breakage){FAULT_NONE, 0, 0}), STATUS_OK);
    assert_int_equal(train(&bench, group.real, 0, roots), STATUS_INPUT);
    assert_non_null(strstr(status_text(), "rank 1 reads other data"));
    assert_int_equal(real_ranks_end(group.real, 0), STATUS_OK);
    assert_int_equal(end(&group, &happened), 0);
    bench_close(&bench);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_real_are_simulated),
        cmocka_unit_test(verify_real_parts),
        cmocka_unit_test(verify_broken_messages_are_told),
        cmocka_unit_test(verify_refusals),
        cmocka_unit_test(verify_other_builds_are_refused),
        cmocka_unit_test(verify_other_data_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
