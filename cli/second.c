/* SPDX-License-Identifier: Apache-2.0
 * Starts the second process with posix_spawn, talks to it through two pipes, and always waits for
 * it. Invariant: no child is left that a struct second does not hold. */
#include "cli/second.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/children.h"
#include "cli/consent.h"
#include "cli/pipe_write.h"
#include "cli/program.h"
#include "cli/verb.h"
#include "experiment/experiment.h"
#include "experiment/noise/noise_path.h"

#define SECOND_TAG "twinstep rerun-config " TWINSTEP_VERSION
#define SECOND_TURN 3   /* a descriptor of the child; see second.h */
#define ERROR_SIZE 2048 /* room for 'E' and a status text */

enum second_task { SECOND_ROOT = 0, SECOND_PATH };

struct second_request {
    char tag[64]; /* SECOND_TAG, padded with zeros */
    uint64_t request_size, config_size;
    uint64_t task;   /* enum second_task */
    uint64_t waits;  /* 1: SECOND_TURN is open */
    uint64_t parent; /* the process that asks */
    uint64_t steps;
    struct config config;
};

struct child {
    pid_t pid;
    int to, from; /* the parent's ends of the child's stdin and stdout */
};

struct answer {
    char *bytes;
    size_t room, length; /* `room` counts a NUL behind the longest answer */
};

static enum status fail_errno(const char *action, int reason) {
    return status_fail(STATUS_IO, "second process: cannot %s: %s", action, strerror(reason));
}

static void close_pipe(const int ends[2]) {
    close(ends[0]);
    close(ends[1]);
}

static int spawn(struct child *child, const int input[2], const int output[2], int turn) {
    extern char **environ;
    static char name[] = "twinstep";
    static char verb[] = "rerun-config";
    char *const argv[] = {name, verb, NULL};
    posix_spawn_file_actions_t actions;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed != 0) return failed;
    failed = posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
    if (failed == 0) failed = posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    for (int i = 0; i < 2 && failed == 0; i++) {
        failed = posix_spawn_file_actions_addclose(&actions, input[i]);
        if (failed == 0) failed = posix_spawn_file_actions_addclose(&actions, output[i]);
    }
    if (failed == 0 && turn >= 0) /* behind the pipes, which may have had its number */
        failed = posix_spawn_file_actions_adddup2(&actions, turn, SECOND_TURN);
    if (failed == 0)
        failed = posix_spawn(&child->pid, program_file(), &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

static enum status start(struct child *child, int turn) {
    int input[2], output[2];
    if (pipe(input) != 0) return fail_errno("open a pipe", errno);
    if (pipe(output) != 0) {
        int reason = errno;
        close_pipe(input);
        return fail_errno("open a pipe", reason);
    }
    int failed = spawn(child, input, output, turn);
    close(input[0]);
    close(output[1]);
    child->to = input[1];
    child->from = output[0];
    if (failed == 0) return STATUS_OK;
    close(child->to);
    close(child->from);
    return fail_errno("start this program again (/proc/self/exe)", failed);
}

/* Reads until the stream ends, the buffer is full, or a signal asks to stop. */
static enum status read_answer(const struct second *second, const volatile int *interrupted,
                               struct answer *answer) {
    for (;;) {
        struct pollfd waiting = {second->from, POLLIN, 0};
        /* A signal that comes just before poll() is seen when its 200 ms are over. */
        int ready = poll(&waiting, 1, 200);
        if (interrupted != NULL && *interrupted)
            FAIL(STATUS_INTERRUPTED, "interrupted during the rerun in a second process");
        if (second->waits != NULL) TRY(second->waits(second->context));
        if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
        if (ready < 0) return fail_errno("wait for its answer", errno);
        ssize_t got =
            read(second->from, answer->bytes + answer->length, answer->room - 1 - answer->length);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_errno("read its answer", errno);
        answer->length += (size_t)got;
        if (got == 0 || answer->length == answer->room - 1) break;
    }
    answer->bytes[answer->length] = '\0';
    return STATUS_OK;
}

static enum status judge_answer(const struct answer *answer, int how, size_t size) {
    if (answer->length > 1 && answer->bytes[0] == 'E')
        FAIL(STATUS_INTERNAL, "second process: %.*s", ERROR_SIZE, answer->bytes + 1);
    if (WIFSIGNALED(how)) FAIL(STATUS_IO, "second process: ended by signal %d", WTERMSIG(how));
    if (answer->length != 1 + size || answer->bytes[0] != 'R' || how != 0)
        FAIL(STATUS_INTERNAL,
             "second process: expected %zu bytes and exit status 0, got %zu and %d", 1 + size,
             answer->length, WEXITSTATUS(how));
    return STATUS_OK;
}

static enum status begin(const struct config *config, enum second_task task, uint64_t steps,
                         int turn, struct second *out) {
    struct second_request request;
    struct child child;
    memset(&request, 0, sizeof request);
    snprintf(request.tag, sizeof request.tag, "%s", SECOND_TAG);
    request.request_size = sizeof request;
    request.config_size = sizeof request.config;
    request.task = task;
    request.steps = steps;
    request.waits = turn >= 0;
    request.parent = (uint64_t)getpid();
    memcpy(&request.config, config, sizeof request.config);
    TRY(start(&child, turn));
    /* If the child refuses early, its answer says more than EPIPE would. */
    (void)pipe_write(child.to, &request, sizeof request);
    close(child.to);
    *out = (struct second){.pid = child.pid, .from = child.from};
    return STATUS_OK;
}

static int reap(struct second *second) {
    int how = 0;
    close(second->from);
    while (waitpid(second->pid, &how, 0) < 0 && errno == EINTR)
        continue;
    second->pid = 0;
    return how;
}

/* Waits for the result of a task; it stands in answer->bytes from [1] on, `size` bytes. */
static enum status finish(struct second *second, const volatile int *interrupted, size_t size,
                          struct answer *answer) {
    const enum status status = read_answer(second, interrupted, answer);
    if (status != STATUS_OK) kill(second->pid, SIGKILL);
    const int how = reap(second);
    return status == STATUS_OK ? judge_answer(answer, how, size) : status;
}

enum status second_begin(const struct config *config, uint64_t steps, int turn,
                         struct second *out) {
    return begin(config, SECOND_ROOT, steps, turn, out);
}

enum status second_root(struct second *second, const volatile int *interrupted,
                        struct digest *out_root) {
    char bytes[ERROR_SIZE];
    struct answer answer = {bytes, sizeof bytes, 0};
    TRY(finish(second, interrupted, DIGEST_BYTES, &answer));
    memcpy(out_root->byte, answer.bytes + 1, DIGEST_BYTES);
    return STATUS_OK;
}

void second_end(struct second *second) {
    if (second->pid == 0) return;
    kill(second->pid, SIGKILL);
    (void)reap(second);
}

enum status second_process_path(const struct config *config, uint64_t steps,
                                const volatile int *interrupted, unsigned char *out_path,
                                size_t size) {
    struct arena arena = ARENA_EMPTY;
    struct answer answer = {NULL, size + ERROR_SIZE, 0};
    enum status status = arena_take(&arena, answer.room, 1, "answer", &answer.bytes);
    struct second second;
    if (status == STATUS_OK) status = begin(config, SECOND_PATH, steps, -1, &second);
    if (status == STATUS_OK) status = finish(&second, interrupted, size, &answer);
    if (status == STATUS_OK) memcpy(out_path, answer.bytes + 1, size);
    arena_close(&arena);
    return status;
}

static enum status read_request(struct second_request *request) {
    size_t got = fread(request, 1, sizeof *request, stdin);
    if (got != sizeof *request || fgetc(stdin) != EOF)
        FAIL(STATUS_INPUT,
             "rerun-config: expected a request of %zu bytes on standard input; this "
             "verb is used by twinstep itself",
             sizeof *request);
    if (strncmp(request->tag, SECOND_TAG, sizeof request->tag) != 0 ||
        request->request_size != sizeof *request || request->config_size != sizeof request->config)
        FAIL(STATUS_INPUT, "rerun-config: the request comes from another version of twinstep");
    return STATUS_OK;
}

/* Runs the task in the child; its result lives in `arena`. */
static enum status rerun(struct arena *arena, unsigned char **out, size_t *out_size) {
    struct second_request request;
    TRY(read_request(&request));
    /* One that died before PR_SET_PDEATHSIG was set sends no signal. */
    if ((uint64_t)getppid() != request.parent)
        FAIL(STATUS_IO, "rerun-config: the process that asked has ended");
    if (request.waits != 0) children_await(SECOND_TURN);
    if (request.task == SECOND_PATH)
        return noise_path_train(&request.config, request.steps, NULL, arena, out_size, out);
    struct digest root;
    TRY(experiment_rerun(&request.config, request.steps, &root));
    *out_size = DIGEST_BYTES;
    TRY(arena_take(arena, DIGEST_BYTES, 1, "root", out));
    memcpy(*out, root.byte, DIGEST_BYTES);
    return STATUS_OK;
}

static enum status answer_request(struct cli *cli, const struct options *options, int *out_exit) {
    unsigned char *answer;
    size_t size;
    (void)options;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* if the parent dies, nobody waits for the answer */
    TRY(consent_give(cli));           /* the parent asked, and loaded the same modules */
    enum status status = rerun(&cli->arena, &answer, &size);
    *out_exit = exit_of_status(status);
    if (status == STATUS_OK) {
        putchar('R');
        fwrite(answer, 1, size, stdout);
    } else {
        printf("E%s", status_text());
    }
    return STATUS_OK;
}

static const struct argp_option option_rows[] = {OPTIONS_END};

const struct verb verb_rerun_config = {
    .name = "rerun-config",
    .brief = NULL,
    .arguments = "",
    .text = "Trains one configuration from standard input; used by run and noise.",
    .options = option_rows,
    .binary = 1,
    .run = answer_request,
};
