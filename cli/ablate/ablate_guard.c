/* SPDX-License-Identifier: Apache-2.0
 * Both sides of a guard: starting one over two pipes, and being one. The request's pipe stays open
 * for as long as the command may run: its end, by whatever cause, is the order to stop. So a kill
 * -9 of this program leaves no training behind. */
#define _GNU_SOURCE /* pipe2, execvpe, close_range, POSIX_SPAWN_SETSID, addclosefrom_np */
#include "cli/ablate/ablate_guard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/input.h"
#include "base/number.h"
#include "cli/pipe_write.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/verb.h"

#define GUARD_TAG "twinstep ablate-guard " TWINSTEP_VERSION
#define REQUEST_MAX ((uint64_t)64 << 20)
#define GRACE_AFTER 2.0 /* the same for what an ended command left behind */
#define KILL_PATIENCE 10.0

struct guard_head {
    char tag[64];
    uint64_t bytes; /* of the texts, each with its NUL */
    uint64_t words, variables;
    double timeout;
};

/* ---- the asking side ---- */

static enum status fail_errno(const char *action, int reason) {
    return status_fail(STATUS_IO, "ablate: cannot %s: %s", action, strerror(reason));
}

static int spawn_guard(struct guard *guard, const int input[2], const int output[2]) {
    extern char **environ;
    static char name[] = "twinstep";
    static char verb[] = "ablate-guard";
    char *const argv[] = {name, verb, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed != 0) return failed;
    failed = posix_spawnattr_init(&attributes);
    if (failed != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return failed;
    }
    failed = posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
    if (failed == 0) failed = posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    if (failed == 0) failed = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    /* a session of its own, so that Ctrl-C of the terminal reaches this program alone */
    if (failed == 0) failed = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    if (failed == 0)
        failed = posix_spawn(&guard->pid, program_file(), &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

static void close_pipe(const int ends[2]) {
    close(ends[0]);
    close(ends[1]);
}

static size_t put_text(char *to, size_t at, const char *text) {
    const size_t length = strlen(text) + 1;
    if (to != NULL) memcpy(to + at, text, length);
    return at + length;
}

/* Writes the texts of a request, one behind the other; with `to` NULL only their size. */
static size_t put_texts(const struct guard_asked *asked, char *to) {
    size_t at = put_text(to, 0, asked->out);
    at = put_text(to, at, asked->err);
    for (size_t i = 0; i < asked->word_count; i++)
        at = put_text(to, at, asked->words[i]);
    for (size_t i = 0; i < asked->variable_count; i++)
        at = put_text(to, at, asked->variables[i]);
    return at;
}

enum status guard_start(struct guard *out) {
    int input[2], output[2];
    memset(out, 0, sizeof *out);
    if (pipe2(input, O_CLOEXEC) != 0) return fail_errno("open a pipe", errno);
    if (pipe2(output, O_CLOEXEC) != 0) {
        const int reason = errno;
        close_pipe(input);
        return fail_errno("open a pipe", reason);
    }
    const int failed = spawn_guard(out, input, output);
    close(input[0]);
    close(output[1]);
    out->to = input[1];
    out->from = output[0];
    if (failed == 0) return STATUS_OK;
    close(out->to);
    close(out->from);
    out->pid = 0;
    return fail_errno("start this program again (/proc/self/exe)", failed);
}

enum status guard_send(struct guard *guard, const struct guard_asked *asked, struct arena *arena) {
    struct guard_head head;
    char *texts;
    const size_t bytes = put_texts(asked, NULL);
    if (bytes > REQUEST_MAX) FAIL(STATUS_INPUT, "ablate: a command of %zu bytes", bytes);
    TRY(arena_take(arena, bytes, 1, "a command", &texts));
    (void)put_texts(asked, texts);
    memset(&head, 0, sizeof head);
    snprintf(head.tag, sizeof head.tag, "%s", GUARD_TAG);
    head.bytes = bytes;
    head.words = asked->word_count;
    head.variables = asked->variable_count;
    head.timeout = asked->timeout;
    int reason = pipe_write(guard->to, &head, sizeof head);
    if (reason == 0) reason = pipe_write(guard->to, texts, bytes);
    /* A guard that has ended shows at its answer; one that lives would wait for the rest for ever.
     */
    if (reason == 0 || reason == EPIPE) return STATUS_OK;
    guard_stop(guard);
    return fail_errno("send a command to its guard", reason);
}

void guard_stop(struct guard *guard) {
    if (guard->to >= 0) close(guard->to);
    guard->to = -1;
}

static void read_answer(const struct guard *guard, struct guard_answer *out) {
    int end = 0;
    *out = (struct guard_answer){.end = GUARD_LOST};
    if (guard->length > 0 && sscanf(guard->answer, "%d %d %d %d %lf", &end, &out->value,
                                    &out->left_behind, &out->survivors, &out->seconds) == 5)
        out->end = (enum guard_end)end;
}

int guard_take(struct guard *guard, struct guard_answer *out) {
    char *const at = guard->answer + guard->length;
    const ssize_t got = read(guard->from, at, sizeof guard->answer - 1 - guard->length);
    if (got < 0 && errno == EINTR) return 0;
    if (got > 0) {
        guard->length += (size_t)got;
        guard->answer[guard->length] = '\0';
        if (guard->length < sizeof guard->answer - 1) return 0;
    }
    guard_stop(guard);
    close(guard->from);
    while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    guard->pid = 0;
    read_answer(guard, out);
    return 1;
}

/* ---- being a guard ---- */

struct request {
    struct guard_head head;
    const char *out, *err;
    char **words, **variables;
};

static enum status read_exactly(void *to, size_t size) {
    char *at = (char *)to;
    while (size > 0) {
        const ssize_t got = read(STDIN_FILENO, at, size);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            FAIL(STATUS_INPUT, "ablate-guard: expected a request; twinstep ablate uses this verb");
        at += got;
        size -= (size_t)got;
    }
    return STATUS_OK;
}

static enum status next_text(char **at, const char *end, char **out) {
    const char *nul = *at < end ? (const char *)memchr(*at, '\0', (size_t)(end - *at)) : NULL;
    if (nul == NULL) FAIL(STATUS_INPUT, "ablate-guard: the request ends early");
    *out = *at;
    *at += (size_t)(nul - *at) + 1;
    return STATUS_OK;
}

static enum status read_request(struct arena *arena, struct request *out) {
    char *texts, *text = NULL;
    TRY(read_exactly(&out->head, sizeof out->head));
    if (strncmp(out->head.tag, GUARD_TAG, sizeof out->head.tag) != 0)
        FAIL(STATUS_INPUT, "ablate-guard: the request comes from another version of twinstep");
    if (out->head.bytes > REQUEST_MAX || out->head.words > out->head.bytes ||
        out->head.variables > out->head.bytes)
        FAIL(STATUS_INPUT, "ablate-guard: a request of a size that none has");
    TRY(arena_take(arena, out->head.bytes, 1, "a command", &texts));
    TRY(arena_take(arena, out->head.words + 1, sizeof *out->words, "a command", &out->words));
    TRY(arena_take(arena, out->head.variables + 1, sizeof *out->variables, "a command",
                   &out->variables));
    TRY(read_exactly(texts, out->head.bytes));
    const char *const end = texts + out->head.bytes;
    TRY(next_text(&texts, end, &text));
    out->out = text;
    TRY(next_text(&texts, end, &text));
    out->err = text;
    for (uint64_t i = 0; i < out->head.words; i++)
        TRY(next_text(&texts, end, &out->words[i]));
    for (uint64_t i = 0; i < out->head.variables; i++)
        TRY(next_text(&texts, end, &out->variables[i]));
    return STATUS_OK;
}

/* Makes the command's PATH this process's, by which posix_spawnp looks for the program: the guard's
 * own is that of the planner, where another program may have the name. Returns an errno. */
static int take_path(char *const *variables) {
    const char *path = NULL;
    for (; *variables != NULL; variables++)
        if (strncmp(*variables, "PATH=", 5) == 0) path = *variables + 5;
    const int failed = path == NULL ? unsetenv("PATH") : setenv("PATH", path, 1);
    return failed == 0 ? 0 : errno;
}

/* Opens a file of the run as this stream. It is locked for as long as a process has it open, which
 * tells a later planner that something of this run is left where no guard could end it
 * (ablate_folder_is_used). Where the file system has no locks, nothing is told. */
static int open_stream(int stream, const char *path) {
    const int handle = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (handle < 0 || dup2(handle, stream) < 0) return errno;
    (void)flock(stream, LOCK_EX | LOCK_NB);
    return 0;
}

/* Makes this process, a child of the guard, the command: in a session of its own, with signals as a
 * shell gives them, with nothing open but its three streams. Returns an errno if that fails. */
static int become_command(const struct request *request, pid_t guard) {
    struct sigaction plain;
    sigset_t none;
    sigemptyset(&none);
    memset(&plain, 0, sizeof plain);
    plain.sa_handler = SIG_DFL;
    for (int number = 1; number < NSIG; number++)
        (void)sigaction(number, &plain, NULL); /* KILL and STOP cannot be set, and need not */
    if (setsid() < 0 || sigprocmask(SIG_SETMASK, &none, NULL) != 0) return errno;
    /* If the guard itself is killed, nobody is left to end the command but the kernel. */
    if (prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0L, 0L, 0L) != 0) return errno;
    if (getppid() != guard) _exit(EXIT_FAILURE);
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0) return errno;
    int failed = open_stream(STDOUT_FILENO, request->out);
    if (failed == 0) failed = open_stream(STDERR_FILENO, request->err);
    if (failed == 0) failed = take_path(request->variables);
    if (failed != 0) return failed;
    /* all that the guard opens is closed by exec; this is for what a library left open */
    (void)close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
    (void)execvpe(request->words[0], request->words, request->variables);
    return errno;
}

/* Starts the command. Returns an errno: that of exec comes through a pipe that exec closes. */
static int spawn_command(const struct request *request, pid_t *out) {
    const pid_t guard = getpid();
    int report[2], failed = 0;
    if (pipe2(report, O_CLOEXEC) != 0) return errno;
    *out = fork();
    if (*out == 0) {
        failed = become_command(request, guard);
        (void)!write(report[1], &failed, sizeof failed);
        _exit(EXIT_FAILURE);
    }
    if (*out < 0) failed = errno;
    close(report[1]);
    while (*out > 0) {
        const ssize_t got = read(report[0], &failed, sizeof failed);
        if (got < 0 && errno == EINTR) continue;
        if (got != (ssize_t)sizeof failed) failed = 0; /* closed by exec */
        break;
    }
    close(report[0]);
    if (failed != 0 && *out > 0) (void)waitpid(*out, NULL, 0);
    return failed;
}

/* Says whether the command itself has ended; it stays a zombie, so that its group keeps its number.
 */
static int has_ended(pid_t command) {
    siginfo_t info;
    memset(&info, 0, sizeof info);
    return waitid(P_PID, (id_t)command, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == command;
}

static long parent_of(long process, char *state) {
    char path[64], line[512];
    long parent = -1;
    snprintf(path, sizeof path, "/proc/%ld/stat", process);
    struct input input;
    FILE *file;
    if (input_open_stream(path, INPUT_FILE, path, "a file of /proc", &file, &input) != STATUS_OK)
        return -1;
    if (fgets(line, sizeof line, file) != NULL) {
        const char *at = strrchr(line, ')');
        if (at == NULL || sscanf(at + 1, " %c %ld", state, &parent) != 2) parent = -1;
    }
    (void)fclose(file); /* nothing was written */
    return parent;
}

/* Sends a signal to each child of this process that lives, and returns their number. What the
 * command started and left is a child of this process, whatever group it is in. */
static int signal_children(int signal) {
    int count = 0;
    DIR *folder = opendir("/proc");
    if (folder == NULL) return 0;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        uint64_t process;
        char state = 'Z';
        if (number_parse_uint(entry->d_name, &process) != STATUS_OK || process > INT32_MAX ||
            parent_of((long)process, &state) != (long)getpid() || state == 'Z')
            continue;
        count++;
        if (signal != 0) kill((pid_t)process, signal);
    }
    closedir(folder);
    return count;
}

/* Takes away zombies but that of the command. */
static void reap_others(pid_t command) {
    siginfo_t info;
    for (;;) {
        memset(&info, 0, sizeof info);
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0 ||
            info.si_pid == command)
            return;
        (void)waitpid(info.si_pid, NULL, WNOHANG);
    }
}

static void rest_briefly(void) {
    (void)poll(NULL, 0, 5);
}

/* Ends everything: TERM to the command's group, and once that has ended TERM to what it left; KILL
 * where that does not help, until no child lives. */
static void end_all(pid_t command, double grace) {
    const double start = progress_clock();
    double deadline = start + grace;
    int asked = 0; /* what the command left was sent TERM */
    if (!has_ended(command)) kill(-command, SIGTERM);
    while (progress_clock() - start < grace + KILL_PATIENCE) {
        reap_others(command);
        const double now = progress_clock();
        if (has_ended(command) && signal_children(0) == 0) return;
        if (has_ended(command) && !asked) {
            asked = 1;
            (void)signal_children(SIGTERM);
            if (now + GRACE_AFTER < deadline) deadline = now + GRACE_AFTER;
        } else if (now >= deadline) {
            kill(-command, SIGKILL);
            (void)signal_children(SIGKILL);
        }
        rest_briefly();
    }
}

/* Waits for the end of the command, of its time, or of the asking side. */
static enum guard_end watch(const struct request *request, pid_t command, int signals) {
    const double start = progress_clock();
    for (;;) {
        struct pollfd waiting[2] = {{STDIN_FILENO, POLLIN, 0}, {signals, POLLIN, 0}};
        const double left = request->head.timeout - (progress_clock() - start);
        if (has_ended(command)) return GUARD_EXITED;
        if (left <= 0.0) return GUARD_TIMEOUT;
        const int ready = poll(waiting, 2, left < 1.0 ? (int)(1000.0 * left) + 1 : 1000);
        if (ready <= 0) continue;
        struct signalfd_siginfo info;
        char byte;
        if (waiting[0].revents != 0 && read(STDIN_FILENO, &byte, 1) <= 0) return GUARD_STOPPED;
        if ((waiting[1].revents & POLLIN) != 0 &&
            read(signals, &info, sizeof info) == (ssize_t)sizeof info && info.ssi_signo != SIGCHLD)
            return GUARD_STOPPED;
        reap_others(command);
    }
}

static int watch_signals(void) {
    static const int numbers[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        sigaddset(&set, numbers[i]);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0) return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static enum status guard_command(struct arena *arena, struct guard_answer *out) {
    struct request request;
    pid_t command = 0;
    int how = 0;
    TRY(read_request(arena, &request));
    const int signals = watch_signals();
    if (signals < 0) return fail_errno("watch signals", errno);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L) != 0)
        return fail_errno("become the parent of what a command leaves behind", errno);
    const double start = progress_clock();
    out->value = spawn_command(&request, &command);
    out->end = GUARD_NOT_STARTED;
    if (out->value != 0) return STATUS_OK;
    out->end = watch(&request, command, signals);
    out->seconds = progress_clock() - start;
    reap_others(command);
    if (out->end == GUARD_EXITED) {
        out->left_behind = signal_children(0);
        if (out->left_behind > 0) end_all(command, GUARD_GRACE);
    } else {
        end_all(command, GUARD_GRACE);
    }
    out->survivors = signal_children(0);
    if (!has_ended(command)) return STATUS_OK; /* it cannot be killed; `survivors` says so */
    if (waitpid(command, &how, 0) != command) return fail_errno("wait for a command", errno);
    reap_others(command);
    if (out->end != GUARD_EXITED) return STATUS_OK;
    if (WIFSIGNALED(how)) out->end = GUARD_SIGNALLED;
    out->value = WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how);
    return STATUS_OK;
}

/* ---- what lost guards leave ---- */

enum status guard_adopt(void) {
    return prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L) == 0
               ? STATUS_OK
               : fail_errno("become the parent of what a guard leaves behind", errno);
}

static int is_guard(const struct guard *const *guards, size_t count, pid_t process) {
    for (size_t i = 0; i < count; i++)
        if (guards[i]->pid == process) return 1;
    return 0;
}

/* Kills each child that is no guard, takes away those that ended, and returns how many live. */
static int kill_orphans(const struct guard *const *guards, size_t count) {
    int living = 0;
    DIR *folder = opendir("/proc");
    if (folder == NULL) return 0;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        uint64_t process;
        char state = 'Z';
        if (number_parse_uint(entry->d_name, &process) != STATUS_OK || process > INT32_MAX ||
            parent_of((long)process, &state) != (long)getpid() ||
            is_guard(guards, count, (pid_t)process) || waitpid((pid_t)process, NULL, WNOHANG) != 0)
            continue;
        living++;
        kill((pid_t)process, SIGKILL);
    }
    closedir(folder);
    return living;
}

int guard_end_orphans(const struct guard *const *guards, size_t count) {
    const double start = progress_clock();
    int living;
    while ((living = kill_orphans(guards, count)) > 0 && progress_clock() - start < KILL_PATIENCE)
        rest_briefly();
    return living;
}

/* ---- the verb ---- */

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    struct guard_answer answer = {.end = GUARD_LOST};
    struct pollfd asked = {STDIN_FILENO, POLLIN, 0};
    (void)options;
    *out_exit = EXIT_ERROR;
    /* whoever was to ask ended first, and nobody waits for a text */
    if (poll(&asked, 1, -1) == 1 && (asked.revents & POLLIN) == 0) return STATUS_OK;
    TRY(guard_command(&cli->arena, &answer));
    printf("%d %d %d %d %.6f\n", (int)answer.end, answer.value, answer.left_behind,
           answer.survivors, answer.seconds);
    *out_exit = EXIT_AS_EXPECTED;
    return STATUS_OK;
}

static const struct argp_option option_rows[] = {OPTIONS_END};

const struct verb verb_ablate_guard = {
    .name = "ablate-guard",
    .brief = NULL,
    .arguments = "",
    .text = "Runs one command from standard input under guard; used by ablate.",
    .options = option_rows,
    .binary = 1,
    .run = run,
};
