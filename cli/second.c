/* SPDX-License-Identifier: Apache-2.0
 * Starts the child with posix_spawn, talks to it through two pipes, always waits for it.
 * Invariant: when a function here returns no child is left. */
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

#include "cli/verb.h"
#include "trainer/experiment.h"

#define SECOND_TAG "twinstep rerun-config " TWINSTEP_VERSION
#define ANSWER_SIZE 2048 /* 'R' and a root, or 'E' and a status text */

struct second_request {
    char tag[64]; /* SECOND_TAG, padded with zeros */
    uint64_t request_size, config_size;
    uint64_t steps;
    struct config config;
};

struct child {
    pid_t pid;
    int to, from; /* our ends of its stdin and stdout */
};

static enum status fail_errno(const char *action, int reason) {
    return status_fail(STATUS_IO, "second process: cannot %s: %s", action, strerror(reason));
}

static void close_pipe(const int ends[2]) {
    close(ends[0]);
    close(ends[1]);
}

static int spawn(struct child *child, const int input[2], const int output[2]) {
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
    if (failed == 0)
        failed = posix_spawn(&child->pid, "/proc/self/exe", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

static enum status start(struct child *child) {
    int input[2], output[2];
    if (pipe(input) != 0) return fail_errno("open a pipe", errno);
    if (pipe(output) != 0) {
        int reason = errno;
        close_pipe(input);
        return fail_errno("open a pipe", reason);
    }
    int failed = spawn(child, input, output);
    close(input[0]);
    close(output[1]);
    child->to = input[1];
    child->from = output[0];
    if (failed == 0) return STATUS_OK;
    close(child->to);
    close(child->from);
    return fail_errno("start this program again (/proc/self/exe)", failed);
}

/* A child that died early makes an error here, not a SIGPIPE. */
static int write_all(int to, const void *bytes, size_t length) {
    struct sigaction ignore, before;
    const char *from = (const char *)bytes;
    int reason = 0;
    memset(&ignore, 0, sizeof ignore);
    ignore.sa_handler = SIG_IGN;
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGPIPE, &ignore, &before);
    while (length > 0 && reason == 0) {
        ssize_t wrote = write(to, from, length);
        if (wrote < 0) {
            if (errno != EINTR) reason = errno;
            continue;
        }
        from += wrote;
        length -= (size_t)wrote;
    }
    sigaction(SIGPIPE, &before, NULL);
    return reason;
}

/* Until the end of the stream, a full buffer, or a signal that asks to stop. */
static enum status read_answer(const struct child *child, const volatile int *interrupted,
                               char answer[ANSWER_SIZE], size_t *out_length) {
    size_t length = 0;
    for (;;) {
        struct pollfd waiting = {child->from, POLLIN, 0};
        int ready = poll(&waiting, 1, 200); /* a signal just before poll is seen 200 ms later */
        if (interrupted != NULL && *interrupted)
            FAIL(STATUS_INTERRUPTED, "interrupted during the rerun in a second process");
        if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
        if (ready < 0) return fail_errno("wait for its answer", errno);
        ssize_t got = read(child->from, answer + length, ANSWER_SIZE - 1 - length);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_errno("read its answer", errno);
        length += (size_t)got;
        if (got == 0 || length == ANSWER_SIZE - 1) break;
    }
    answer[length] = '\0';
    *out_length = length;
    return STATUS_OK;
}

static enum status judge_answer(const char *answer, size_t length, int how,
                                struct digest *out_root) {
    if (length > 1 && answer[0] == 'E') FAIL(STATUS_INTERNAL, "second process: %s", answer + 1);
    if (WIFSIGNALED(how)) FAIL(STATUS_IO, "second process: ended by signal %d", WTERMSIG(how));
    if (length != 1 + DIGEST_BYTES || answer[0] != 'R' || how != 0)
        FAIL(STATUS_INTERNAL, "second process: expected %d bytes and exit status 0, got %zu and %d",
             1 + DIGEST_BYTES, length, WEXITSTATUS(how));
    memcpy(out_root->byte, answer + 1, DIGEST_BYTES);
    return STATUS_OK;
}

enum status second_process_root(const struct config *config, uint64_t steps,
                                const volatile int *interrupted, struct digest *out_root) {
    struct second_request request;
    struct child child;
    char answer[ANSWER_SIZE];
    size_t length = 0;
    int how = 0;
    memset(&request, 0, sizeof request);
    snprintf(request.tag, sizeof request.tag, "%s", SECOND_TAG);
    request.request_size = sizeof request;
    request.config_size = sizeof request.config;
    request.steps = steps;
    memcpy(&request.config, config, sizeof request.config);
    TRY(start(&child));
    (void)write_all(child.to, &request, sizeof request); /* its answer says more than EPIPE */
    close(child.to);
    enum status status = read_answer(&child, interrupted, answer, &length);
    close(child.from);
    if (status != STATUS_OK) kill(child.pid, SIGKILL);
    while (waitpid(child.pid, &how, 0) < 0 && errno == EINTR)
        continue;
    return status == STATUS_OK ? judge_answer(answer, length, how, out_root) : status;
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

static enum status rerun(struct digest *out_root) {
    struct second_request request;
    TRY(read_request(&request));
    return experiment_rerun(&request.config, request.steps, out_root);
}

static enum status answer_request(struct cli *cli, const struct options *options, int *out_exit) {
    struct digest root;
    (void)cli;
    (void)options;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody waits for the answer any more */
    enum status status = rerun(&root);
    *out_exit = exit_of_status(status);
    if (status == STATUS_OK) {
        putchar('R');
        fwrite(root.byte, 1, DIGEST_BYTES, stdout);
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
    .text = "Trains one configuration from standard input; used by run.",
    .options = option_rows,
    .run = answer_request,
};
