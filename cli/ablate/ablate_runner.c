/* SPDX-License-Identifier: Apache-2.0
 * The loop over slots. Every fact about a run is in the folder, so several of these loops, here and
 * on other machines, share the work by claims alone, and a loop that is killed is continued by
 * another one. */
#define _DEFAULT_SOURCE /* environ */
#include "cli/ablate/ablate_runner.h"

#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"
#include "base/publish.h"
#include "cli/ablate/ablate_guard.h"
#include "report/html.h"
#include "scenarios/textfile.h"

#define TAIL_BYTES 2000
#define TAIL_LINES 8
#define SLOTS_MOST 64
#define VISIBLE "CUDA_VISIBLE_DEVICES"
#define KEPT "TWINSTEP_KEPT_" /* what main took away for its own threads begins so */

struct slot {
    struct guard guard;
    uint32_t run;
    char claim[300];            /* of the slot itself */
    char holder[ABLATE_HOLDER]; /* who has both claims: this process, then the guard */
};

struct loop {
    struct ablate_running *of;
    struct slot slots[SLOTS_MOST];
    uint32_t active;
    uint32_t begun[2];     /* runs of each arm that this process began */
    unsigned char *wanted; /* (runs) */
    unsigned char *tried;  /* (runs) this process began it */
    unsigned char *again;  /* (runs) it had failed before this process began */
    struct progress progress;
    char waits_for[256]; /* who has a run that this process waits for; "": nobody */
    char told[256];      /* the last one that was printed */
    int elsewhere;
};

static const struct ablate_run *run_at(const struct loop *loop, uint32_t index) {
    return &loop->of->plan->runs[index];
}

/* ---- what to run ---- */

static enum status state_of(struct loop *loop, uint32_t index, enum ablate_state *out) {
    struct arena arena = ARENA_EMPTY;
    const enum status status =
        ablate_folder_state(loop->of->folder, run_at(loop, index), &arena, out);
    arena_close(&arena);
    return status;
}

/* A run that had failed is tried once more by a process that continues; one that failed since then,
 * here or in another process, is not. */
static enum status is_open(struct loop *loop, uint32_t index, int *out) {
    enum ablate_state state;
    *out = 0;
    if (!loop->wanted[index] || loop->tried[index]) return STATUS_OK;
    TRY(state_of(loop, index, &state));
    *out = state == ABLATE_ABSENT || (state == ABLATE_FAILED && loop->again[index]);
    return STATUS_OK;
}

static enum status note_failed(struct loop *loop) {
    for (uint32_t i = 0; i < loop->of->plan->run_count; i++) {
        enum ablate_state state;
        TRY(state_of(loop, i, &state));
        loop->again[i] = state == ABLATE_FAILED;
    }
    return STATUS_OK;
}

enum status ablate_want_stages(const struct ablate_running *running,
                               const struct ablate_result *results, struct arena *arena,
                               unsigned char *wanted) {
    struct ablate_verdict *verdict;
    TRY(arena_take(arena, 1, sizeof *verdict, "verdict", &verdict));
    TRY(ablate_judge(running->plan, results, arena, verdict));
    for (uint32_t i = 0; i < running->plan->run_count; i++)
        wanted[i] |= (unsigned char)ablate_wants(verdict, &running->plan->runs[i]);
    return STATUS_OK;
}

/* Judges what is there, to learn which runs are needed; *out_more says whether some are that were
 * not before. */
static enum status look(struct loop *loop, int *out_more) {
    struct arena arena = ARENA_EMPTY;
    struct ablate_result *results = NULL;
    const uint32_t count = loop->of->plan->run_count;
    unsigned char *before = NULL;
    *out_more = 0;
    enum status status = arena_take(&arena, count, 1, "runs", &before);
    if (status == STATUS_OK) memcpy(before, loop->wanted, count);
    if (status == STATUS_OK) status = ablate_results_open(loop->of->folder, &arena, &results);
    if (status == STATUS_OK) status = loop->of->want(loop->of, results, &arena, loop->wanted);
    for (uint32_t i = 0; status == STATUS_OK && i < count; i++)
        *out_more |= loop->wanted[i] && !before[i];
    ablate_results_close(loop->of->plan, results);
    arena_close(&arena);
    return status;
}

static enum status arm_has_failed(struct loop *loop, int *out) {
    *out = 0;
    for (uint32_t i = 0; i < loop->of->plan->run_count; i++) {
        enum ablate_state state;
        if (run_at(loop, i)->arm == ABLATE_NO_ARM) continue;
        TRY(state_of(loop, i, &state));
        *out |= state == ABLATE_FAILED && (loop->tried[i] || !loop->again[i]);
    }
    return STATUS_OK;
}

/* ---- one run ---- */

/* Says whether nobody listens at the port now. Another program may take it before the command does.
 */
static int is_free_port(unsigned port) {
    struct sockaddr_in address;
    const int handle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (handle < 0) return 1;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = htons((uint16_t)port);
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    const int is_free = bind(handle, (const struct sockaddr *)&address, sizeof address) == 0;
    close(handle);
    return is_free;
}

/* Takes one of the slot's own ports: the first, and if somebody has that, those a whole number of
 * slots on. */
static unsigned port_of(const struct loop *loop, uint32_t slot) {
    unsigned port = (unsigned)loop->of->file->port + slot;
    for (int i = 0; i < 64 && port + SLOTS_MOST < 65536 && !is_free_port(port); i++)
        port += SLOTS_MOST;
    return port;
}

static int sets_devices(const struct ablate_variable *variables, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(variables[i].name, VISIBLE) == 0) return 1;
    return 0;
}

/* The devices that runs of a slot see, where that is no matter of the arms: those of the file, or
 * those that this process sees, as one of several workers does. "" is not known. */
static const char *device_of(const struct loop *loop, uint32_t at) {
    const struct ablate_file *file = loop->of->file;
    const char *visible = getenv(VISIBLE);
    if (file->device_count > 0) return file->devices[at];
    if (visible == NULL || strchr(visible, '\n') != NULL || loop->of->executor.count > 0) return "";
    int set = sets_devices(file->command.variables, file->command.variable_count) ||
              sets_devices(file->test.variables, file->test.variable_count);
    for (uint32_t i = 0; i < file->factor_count; i++)
        set |= sets_devices(file->factors[i].variables, file->factors[i].variable_count);
    return set ? "" : visible;
}

static int is_variable(const char *entry, const char *name) {
    const size_t length = strlen(name);
    return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

/* What main sets for its own threads is no setting of the user's (cli/main.c). */
static int is_ours(const char *entry) {
    const char *ours = getenv("TWINSTEP_WAIT_ASLEEP");
    return is_variable(entry, "TWINSTEP_WAIT_ASLEEP") ||
           (ours != NULL && is_variable(entry, "OMP_WAIT_POLICY"));
}

/* Says whether a later variable of the command has the same name, and so its place. */
static int is_replaced(const struct ablate_command *command, size_t index) {
    for (size_t v = index + 1; v < command->variable_count; v++)
        if (strcmp(command->variables[v].name, command->variables[index].name) == 0) return 1;
    return 0;
}

/* Makes this process's environment with the command's variables put in or taken away; the last of
 * two of one name counts. */
static enum status make_environment(const struct ablate_command *command, struct arena *arena,
                                    const char ***out, size_t *out_count) {
    extern char **environ;
    const char **list;
    size_t count = 0;
    while (environ[count] != NULL)
        count++;
    TRY(arena_take(arena, count + command->variable_count + 1, sizeof *list, "environment", &list));
    count = 0;
    for (size_t i = 0; environ[i] != NULL; i++) {
        const char *entry = environ[i];
        int replaced = is_ours(entry);
        if (strncmp(entry, KEPT, strlen(KEPT)) == 0) entry += strlen(KEPT);
        for (size_t v = 0; v < command->variable_count; v++)
            replaced |= is_variable(entry, command->variables[v].name);
        if (!replaced) list[count++] = entry;
    }
    for (size_t v = 0; v < command->variable_count; v++) {
        char *entry;
        if (is_replaced(command, v) || command->variables[v].value[0] == NULL) continue;
        TRY(arena_format(arena, &entry, "%s=%s", command->variables[v].name,
                         command->variables[v].value[0]));
        list[count++] = entry;
    }
    *out = list;
    *out_count = count;
    return STATUS_OK;
}

/* Adds the slot's device behind all other variables. */
static enum status add_device(struct ablate_command *command, const char *device,
                              struct arena *arena) {
    struct ablate_variable *list;
    TRY(arena_take(arena, command->variable_count + 1, sizeof *list, "environment", &list));
    for (size_t i = 0; i < command->variable_count; i++)
        list[i] = command->variables[i];
    list[command->variable_count++] = (struct ablate_variable){VISIBLE, {device, NULL}};
    command->variables = list;
    return STATUS_OK;
}

/* Writes the command as a line for a shell, which is kept beside what it printed. */
static enum status command_line(const struct loop *loop, const struct ablate_run *run,
                                const struct ablate_command *command, struct arena *arena,
                                char **out) {
    const char **words;
    size_t count = 0;
    char *quoted, *folder;
    TRY(arena_take(arena, 2 * command->variable_count + command->words.count + 1, sizeof *words,
                   "a command", &words));
    if (command->variable_count > 0) words[count++] = "env";
    for (size_t v = 0; v < command->variable_count; v++) {
        if (is_replaced(command, v) || command->variables[v].value[0] != NULL) continue;
        words[count++] = "-u";
        words[count++] = command->variables[v].name;
    }
    for (size_t v = 0; v < command->variable_count; v++) {
        char *entry;
        if (is_replaced(command, v) || command->variables[v].value[0] == NULL) continue;
        TRY(arena_format(arena, &entry, "%s=%s", command->variables[v].name,
                         command->variables[v].value[0]));
        words[count++] = entry;
    }
    for (size_t w = 0; w < command->words.count; w++)
        words[count++] = command->words.words[w];
    const struct ablate_words all = {count, words}, one = {1, &loop->of->plan->folder};
    TRY(ablate_quote(&all, arena, &quoted));
    TRY(ablate_quote(&one, arena, &folder));
    if (loop->of->executor.count == 0)
        return arena_format(arena, out, "cd %s && exec %s", folder, quoted);
    /* says where it is run, for the comparison of places */
    char *host, *host_quoted;
    TRY(ablate_folder_path(loop->of->folder, run, "host", arena, &host));
    const struct ablate_words second = {1, (const char *const *)&host};
    TRY(ablate_quote(&second, arena, &host_quoted));
    return arena_format(arena, out, "cd %s && uname -n > %s && exec %s", folder, host_quoted,
                        quoted);
}

/* Puts the line into the executor's words, of which that shell or scheduler is started here. Its
 * environment is this program's: the command's variables stand in the line. */
static enum status execute_elsewhere(const struct loop *loop, const char *line, struct arena *arena,
                                     struct ablate_command *out) {
    const struct ablate_words *executor = &loop->of->executor;
    const char **words;
    TRY(arena_take(arena, executor->count, sizeof *words, "a command", &words));
    for (size_t i = 0; i < executor->count; i++) {
        const char *word = executor->words[i], *at;
        char *text;
        TRY(arena_format(arena, &text, "%s", ""));
        for (; (at = strstr(word, ABLATE_COMMAND)) != NULL; word = at + strlen(ABLATE_COMMAND))
            TRY(arena_format(arena, &text, "%s%.*s%s", text, (int)(at - word), word, line));
        TRY(arena_format(arena, &text, "%s%s", text, word));
        words[i] = text;
    }
    *out = (struct ablate_command){.words = {executor->count, words}};
    return STATUS_OK;
}

static enum status write_text(const char *path, const char *text, struct arena *arena) {
    char *live;
    TRY(arena_format(arena, &live, "%s.part", path));
    return publish_own_bytes(live, path, 0, text, strlen(text));
}

/* Writes the run's own configuration files beside its output: file-NAME/ and the first
 * file's name. */
static enum status write_files(const struct loop *loop, const struct ablate_run *run,
                               struct arena *arena, const char *out[ABLATE_FILES_MAX]) {
    const struct ablate_file *file = loop->of->file;
    for (uint32_t i = 0; i < file->composed_count; i++) {
        const char *from = file->files[i].paths[0], *slash = strrchr(from, '/'), *text;
        char *name, *folder, *path, *live;
        size_t length;
        TRY(arena_format(arena, &name, "file-%s", file->files[i].name));
        TRY(ablate_folder_path(loop->of->folder, run, name, arena, &folder));
        if (mkdir(folder, 0755) != 0)
            FAIL(STATUS_IO, "%s: cannot create: %s", folder, strerror(errno));
        TRY(arena_format(arena, &path, "%s/%s", folder, slash == NULL ? from : slash + 1));
        TRY(arena_format(arena, &live, "%s.part", path));
        TRY(ablate_compose(loop->of->plan, i, run->mask, arena, &text, &length));
        TRY(publish_own_bytes(live, path, 0, text, length));
        out[i] = path;
    }
    return STATUS_OK;
}

static enum status begin(struct loop *loop, uint32_t index, uint32_t at, struct arena *arena) {
    const struct ablate_running *of = loop->of;
    const struct ablate_run *run = run_at(loop, index);
    char *dir, *out, *err, *path, *line, *text, port[16], seed[24];
    struct ablate_command command;
    const char *device = of->file->device_count > 0 ? of->file->devices[at] : "";
    TRY(ablate_folder_begin(of->folder, run, arena));
    TRY(ablate_folder_path(of->folder, run, "out", arena, &dir));
    TRY(ablate_folder_path(of->folder, run, "stdout", arena, &out));
    TRY(ablate_folder_path(of->folder, run, "stderr", arena, &err));
    TRY(ablate_folder_path(of->folder, run, "command", arena, &path));
    snprintf(port, sizeof port, "%u", port_of(loop, at));
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)of->file->seed);
    const char *files[ABLATE_FILES_MAX];
    TRY(write_files(loop, run, arena, files));
    const struct ablate_values values = {run->mask, dir, run->id, device, port, seed, files};
    TRY(ablate_command_of(of->plan, run, &values, arena, &command));
    if (device[0] != '\0') TRY(add_device(&command, device, arena));
    TRY(command_line(loop, run, &command, arena, &line));
    TRY(arena_format(arena, &text, "%s\n", line));
    TRY(write_text(path, text, arena));
    if (of->executor.count > 0) {
        char *host; /* made here, so that the umask of the other side does not count */
        TRY(ablate_folder_path(of->folder, run, "host", arena, &host));
        TRY(write_text(host, "", arena));
        TRY(execute_elsewhere(loop, line, arena, &command));
    }
    struct guard_asked asked = {.word_count = command.words.count,
                                .words = command.words.words,
                                .out = out,
                                .err = err,
                                .timeout = of->file->timeout};
    const char **variables;
    TRY(make_environment(&command, arena, &variables, &asked.variable_count));
    asked.variables = variables;
    /* The guard has the claims before it has the command: if this process is killed, they count
     * until nothing of the command is left, which could write into the folder of the next attempt.
     */
    struct slot *const slot = &loop->slots[at];
    TRY(guard_start(&slot->guard));
    char holder[ABLATE_HOLDER];
    TRY(ablate_claim_pass(of->folder, run->id, (long)slot->guard.pid, arena, holder));
    TRY(ablate_claim_pass(of->folder, slot->claim, (long)slot->guard.pid, arena, holder));
    memcpy(slot->holder, holder, sizeof holder);
    return guard_send(&slot->guard, &asked, arena);
}

/* Reads the last lines of a run's stderr; "" where it wrote none. */
static enum status read_tail(struct loop *loop, const struct ablate_run *run, struct arena *arena,
                             char **out) {
    char bytes[TAIL_BYTES + 1], *path;
    struct input input;
    TRY(ablate_folder_path(loop->of->folder, run, "stderr", arena, &path));
    TRY(arena_format(arena, out, "%s", ""));
    if (input_open(path, INPUT_FILE, path, "what a run printed", &input) != STATUS_OK)
        return STATUS_OK;
    const uint64_t from = input.length > TAIL_BYTES ? input.length - TAIL_BYTES : 0;
    ssize_t length = pread(input.descriptor, bytes, TAIL_BYTES, (off_t)from);
    close(input.descriptor);
    if (length <= 0) return STATUS_OK;
    while (length > 0 && bytes[length - 1] == '\n')
        length--;
    for (ssize_t i = 0; i < length; i++)
        if (bytes[i] == '\0') bytes[i] = '?'; /* the text goes on behind it */
    bytes[length] = '\0';
    int lines = 1;
    char *at = bytes + length;
    while (at > bytes && (at[-1] != '\n' || lines++ < TAIL_LINES))
        at--;
    return arena_format(arena, out, "%s", at);
}

/* Reads the machine that a run's line named; "" where it ran here. */
static enum status read_host(struct loop *loop, const struct ablate_run *run, struct arena *arena,
                             char **out) {
    char *path;
    size_t length;
    TRY(arena_format(arena, out, "%s", ""));
    if (loop->of->executor.count == 0) return STATUS_OK;
    TRY(ablate_folder_path(loop->of->folder, run, "host", arena, &path));
    TRY(textfile_read(arena, path, 4096, out, &length));
    (*out)[strcspn(*out, "\n")] = '\0';
    if ((*out)[0] == '\0')
        FAIL(STATUS_INPUT,
             "%s is empty: the executor did not run {command}, or where it was run this folder is "
             "not seen",
             path);
    return STATUS_OK;
}

/* Puts a question mark in place of every byte that is no UTF-8, because JSON has no word for it. */
static void keep_text(char *text) {
    for (size_t left = strlen(text); left > 0;) {
        uint32_t point;
        size_t length = html_sequence((const unsigned char *)text, left, &point);
        if (length == 0) {
            *text = '?';
            length = 1;
        }
        text += length;
        left -= length;
    }
}

/* Describes how a command ended, where that is no success; "" where it is. */
static enum status describe_end(const struct loop *loop, const struct guard_answer *answer,
                                struct arena *arena, char **out) {
    switch (answer->end) {
    case GUARD_EXITED:
        if (answer->value == 0) return arena_format(arena, out, "%s", "");
        return arena_format(arena, out, "exit status %d", answer->value);
    case GUARD_SIGNALLED:
        return arena_format(arena, out, "ended by signal %d (%s)", answer->value,
                            strsignal(answer->value));
    case GUARD_TIMEOUT:
        return arena_format(arena, out, "not done after %g s (run.timeout), so ended%s",
                            loop->of->file->timeout,
                            answer->survivors > 0 ? "; a process of it cannot be killed" : "");
    case GUARD_STOPPED:
        return arena_format(arena, out, "stopped");
    case GUARD_NOT_STARTED:
        return arena_format(arena, out, "cannot be started: %s", strerror(answer->value));
    default:
        return arena_format(arena, out, "the process that guarded it is lost, so it was ended%s",
                            answer->survivors > 0 ? "; a process of it cannot be killed" : "");
    }
}

static void tell(struct loop *loop, const struct ablate_run *run, const char *how, double seconds) {
    if (loop->of->quiet) return;
    progress_close(&loop->progress);
    fprintf(stderr, "%s: %s: %s (%.1f s)\n", loop->of->file->name, run->id, how, seconds);
}

/* Keeps what a run left, or why it failed. */
static enum status settle(struct loop *loop, uint32_t at, const struct guard_answer *answer,
                          struct arena *arena) {
    const struct ablate_running *of = loop->of;
    const struct ablate_run *run = run_at(loop, loop->slots[at].run);
    const char *device = device_of(loop, at);
    struct ablate_left left;
    char *how, *dir, *tail, *text;
    TRY(describe_end(loop, answer, arena, &how));
    TRY(ablate_folder_path(of->folder, run, "out", arena, &dir));
    if (how[0] == '\0') {
        char *host;
        enum status status = read_host(loop, run, arena, &host);
        if (status == STATUS_OK) status = ablate_left_open(of->file, run, dir, arena, &left);
        if (status == STATUS_MEMORY || status == STATUS_INTERNAL) return status;
        if (status == STATUS_OK) {
            const enum status written =
                ablate_folder_done(of->folder, run, left.digest, host, device, arena);
            ablate_left_close(&left);
            if (written != STATUS_OK) return written;
            if (answer->left_behind > 0) {
                TRY(arena_format(arena, &text, "done; %d processes that it left were ended",
                                 answer->left_behind));
                tell(loop, run, text, answer->seconds);
            } else {
                tell(loop, run, "done", answer->seconds);
            }
            return STATUS_OK;
        }
        TRY(arena_format(arena, &how, "exit status 0, but: %s", status_text()));
    }
    if (answer->end == GUARD_STOPPED) return STATUS_OK; /* it is neither done nor failed */
    if (answer->end == GUARD_NOT_STARTED)
        FAIL(STATUS_INPUT, "%s: command: %s", of->file->path, how);
    TRY(read_tail(loop, run, arena, &tail));
    TRY(arena_format(arena, &text, "%s%s%s", how, tail[0] == '\0' ? "" : "; its stderr ends:\n",
                     tail));
    keep_text(text);
    TRY(ablate_folder_fail(of->folder, run, text, arena));
    tell(loop, run, how, answer->seconds);
    return STATUS_OK;
}

/* ---- slots ---- */

/* The part of the machine that this worker was given, "" for all of it. Workers of one part share
 * its slots: those of one job of Slurm, or those that see the same devices. Where the file lists
 * devices, the slots are these. */
static void name_room(const struct ablate_file *file, char out[64]) {
    const char *job = getenv("SLURM_JOB_ID"), *visible = getenv(VISIBLE);
    out[0] = '\0';
    if (file->device_count > 0) return;
    if (job != NULL)
        snprintf(out, 64, "-job-%s", job);
    else if (visible != NULL)
        snprintf(out, 64, "-gpu-%s", visible);
    for (char *c = out; *c != '\0'; c++)
        if (strchr("/. \n", *c) != NULL) *c = '_';
}

static enum status claim_slot(struct loop *loop, uint32_t at, int *out) {
    struct arena arena = ARENA_EMPTY;
    struct slot *slot = &loop->slots[at];
    enum ablate_claim claim = CLAIM_BUSY;
    char host[100], room[64], *who;
    if (sscanf(loop->of->folder->worker, "%99s", host) != 1) snprintf(host, sizeof host, "host");
    name_room(loop->of->file, room);
    snprintf(slot->claim, sizeof slot->claim, "slot-%s%s-%u", host, room, at);
    const enum status status =
        ablate_claim_take(loop->of->folder, slot->claim, &arena, &claim, &who);
    arena_close(&arena);
    *out = claim == CLAIM_TAKEN;
    return status;
}

static enum status leave_claim(struct loop *loop, const char *name, const char *holder) {
    struct arena arena = ARENA_EMPTY;
    const enum status status = ablate_claim_leave(loop->of->folder, name, holder, &arena);
    arena_close(&arena);
    return status;
}

/* Keeps who has a run that is wanted: the first of several. */
static void note_holder(struct loop *loop, const char *who) {
    char host[200];
    long process;
    if (loop->waits_for[0] != '\0') return;
    if (who != NULL && sscanf(who, "%199s %*s %*s %ld", host, &process) == 2)
        snprintf(loop->waits_for, sizeof loop->waits_for, "process %ld of %s", process, host);
    else
        snprintf(loop->waits_for, sizeof loop->waits_for, "another worker");
}

static enum status try_claim(struct loop *loop, uint32_t run, enum ablate_claim *out) {
    struct arena arena = ARENA_EMPTY;
    char *who = NULL;
    const enum status status =
        ablate_claim_take(loop->of->folder, run_at(loop, run)->id, &arena, out, &who);
    if (status == STATUS_OK && *out != CLAIM_TAKEN) note_holder(loop, who);
    arena_close(&arena);
    return status;
}

/* Says whether nothing of an earlier attempt is left: planner and guard may have been killed at
 * once. */
static enum status look_for_rest(struct loop *loop, uint32_t run, int *out_free) {
    struct arena arena = ARENA_EMPTY;
    int used = 0;
    const enum status status =
        ablate_folder_is_used(loop->of->folder, run_at(loop, run), &arena, &used);
    arena_close(&arena);
    *out_free = !used;
    if (used)
        snprintf(loop->waits_for, sizeof loop->waits_for,
                 "processes of an earlier attempt of %s, which still run", run_at(loop, run)->id);
    return status;
}

/* Says whether this process has made more runs of the run's arm than of the other one. */
static int is_ahead(const struct loop *loop, uint32_t run) {
    const int arm = run_at(loop, run)->arm;
    return arm != ABLATE_NO_ARM && loop->begun[arm] > loop->begun[1 - arm];
}

/* Claims the first run that is open, of those that `ahead` allows; *out is run_count when there is
 * none. */
static enum status claim_first(struct loop *loop, int ahead, uint32_t *out) {
    const uint32_t count = loop->of->plan->run_count;
    for (*out = 0; *out < count; (*out)++) {
        enum ablate_claim claim;
        int open;
        if (!ahead && is_ahead(loop, *out)) continue;
        TRY(is_open(loop, *out, &open));
        if (!open) continue;
        TRY(try_claim(loop, *out, &claim));
        if (claim != CLAIM_TAKEN) {
            loop->elsewhere |= claim == CLAIM_ELSEWHERE;
            continue;
        }
        TRY(is_open(loop, *out, &open)); /* another worker may have ended it meanwhile */
        if (open) TRY(look_for_rest(loop, *out, &open));
        if (open) return STATUS_OK;
        TRY(leave_claim(loop, run_at(loop, *out)->id, loop->of->folder->worker));
    }
    return STATUS_OK;
}

/* Claims a run, of an arm that was not run here more often where there is one: then workers with a
 * machine or device each do not have an arm each, of which nothing could be told. */
static enum status claim_run(struct loop *loop, uint32_t *out) {
    TRY(claim_first(loop, 0, out));
    if (*out < loop->of->plan->run_count) return STATUS_OK;
    return claim_first(loop, 1, out);
}

/* Another worker of this machine has the slot: waits for it where there is something to run. */
static enum status wait_for_slot(struct loop *loop) {
    for (uint32_t i = 0; i < loop->of->plan->run_count; i++) {
        int open;
        TRY(is_open(loop, i, &open));
        if (open)
            snprintf(loop->waits_for, sizeof loop->waits_for,
                     "a slot that another worker of this machine has");
    }
    return STATUS_OK;
}

/* Starts runs in free slots. */
static enum status fill(struct loop *loop) {
    loop->waits_for[0] = '\0';
    loop->elsewhere = 0;
    for (uint32_t at = 0; at < loop->of->file->slots; at++) {
        uint32_t run;
        int ours;
        if (loop->slots[at].guard.pid != 0) continue;
        TRY(claim_slot(loop, at, &ours));
        if (!ours) {
            TRY(wait_for_slot(loop));
            continue;
        }
        TRY(claim_run(loop, &run));
        if (run == loop->of->plan->run_count)
            return leave_claim(loop, loop->slots[at].claim, loop->of->folder->worker);
        struct arena arena = ARENA_EMPTY;
        loop->slots[at].run = run;
        loop->tried[run] = 1;
        if (run_at(loop, run)->arm != ABLATE_NO_ARM) loop->begun[run_at(loop, run)->arm]++;
        const enum status status = begin(loop, run, at, &arena);
        arena_close(&arena);
        loop->active += loop->slots[at].guard.pid != 0;
        if (status != STATUS_OK) {
            if (loop->slots[at].guard.pid == 0) {
                const char *us = loop->of->folder->worker;
                (void)leave_claim(loop, run_at(loop, run)->id, us); /* the first failure is told */
                (void)leave_claim(loop, loop->slots[at].claim, us);
            }
            return status;
        }
    }
    return STATUS_OK;
}

/* Ends what a guard that was killed could not. */
static int end_orphans(const struct loop *loop) {
    const struct guard *guards[SLOTS_MOST];
    for (uint32_t at = 0; at < loop->of->file->slots; at++)
        guards[at] = &loop->slots[at].guard;
    return guard_end_orphans(guards, loop->of->file->slots);
}

static enum status take_end(struct loop *loop, uint32_t at) {
    struct slot *slot = &loop->slots[at];
    struct guard_answer answer;
    struct arena arena = ARENA_EMPTY;
    if (!guard_take(&slot->guard, &answer)) return STATUS_OK;
    loop->active--;
    if (answer.end == GUARD_LOST) answer.survivors = end_orphans(loop);
    loop->of->made += answer.end != GUARD_STOPPED;
    const enum status status = settle(loop, at, &answer, &arena);
    arena_close(&arena);
    const enum status left = leave_claim(loop, run_at(loop, slot->run)->id, slot->holder);
    const enum status freed = leave_claim(loop, slot->claim, slot->holder);
    return status != STATUS_OK ? status : left != STATUS_OK ? left : freed;
}

static void show(struct loop *loop) {
    char names[120] = "";
    uint32_t done = 0, wanted = 0;
    if (!loop->progress.shown) return;
    for (uint32_t i = 0; i < loop->of->plan->run_count; i++) {
        enum ablate_state state = ABLATE_ABSENT;
        if (!loop->wanted[i]) continue;
        wanted++;
        if (state_of(loop, i, &state) == STATUS_OK) done += state == ABLATE_DONE;
    }
    for (uint32_t at = 0; at < loop->of->file->slots; at++)
        if (loop->slots[at].guard.pid != 0) {
            const size_t used = strlen(names);
            snprintf(names + used, sizeof names - used, " %s",
                     run_at(loop, loop->slots[at].run)->id);
        }
    progress_text(&loop->progress, "%u of %u runs done, now:%s", done, wanted, names);
}

/* Waits for an end, a signal, or 200 ms. */
static enum status wait_for_end(struct loop *loop) {
    struct pollfd waiting[SLOTS_MOST];
    uint32_t slot[SLOTS_MOST], count = 0;
    for (uint32_t at = 0; at < loop->of->file->slots; at++)
        if (loop->slots[at].guard.pid != 0) {
            waiting[count] = (struct pollfd){loop->slots[at].guard.from, POLLIN, 0};
            slot[count++] = at;
        }
    const int ready = poll(waiting, count, 200);
    for (uint32_t i = 0; ready > 0 && i < count; i++)
        if (waiting[i].revents != 0) TRY(take_end(loop, slot[i]));
    show(loop);
    return STATUS_OK;
}

/* Ends all commands, and waits until their guards say that nothing of them is left. */
static enum status stop_all(struct loop *loop) {
    enum status worst = STATUS_OK;
    for (uint32_t at = 0; at < loop->of->file->slots; at++)
        if (loop->slots[at].guard.pid != 0) guard_stop(&loop->slots[at].guard);
    while (loop->active > 0) {
        const enum status status = wait_for_end(loop);
        if (status != STATUS_OK) worst = status;
    }
    return worst;
}

/* ---- the loop ---- */

/* Says what it waits for: on a terminal all the time, into a file once. */
static void tell_wait(struct loop *loop) {
    const char *hint = loop->elsewhere ? " (--take-over, if it is gone)" : "";
    progress_text(&loop->progress, "waits for %.80s%s", loop->waits_for, hint);
    if (loop->of->quiet || loop->progress.shown || strcmp(loop->told, loop->waits_for) == 0) return;
    fprintf(stderr, "%s: waits for %s%s\n", loop->of->file->name, loop->waits_for, hint);
    memcpy(loop->told, loop->waits_for, sizeof loop->told);
}

static enum status work(struct loop *loop) {
    int failed = 0;
    TRY(look(loop, &failed));
    failed = 0;
    for (;;) {
        if (*loop->of->interrupted) return STATUS_INTERRUPTED;
        TRY(arm_has_failed(loop, &failed));
        if (!failed) TRY(fill(loop));
        if (loop->active > 0) {
            TRY(wait_for_end(loop));
            continue;
        }
        if (failed) return STATUS_OK;
        if (loop->waits_for[0] != '\0') {
            tell_wait(loop);
            (void)poll(NULL, 0, 500);
            continue;
        }
        int more;
        TRY(look(loop, &more));
        if (!more) return STATUS_OK;
    }
}

enum status ablate_run_all(struct ablate_running *running, struct arena *arena) {
    struct loop *loop;
    TRY(arena_take(arena, 1, sizeof *loop, "runs", &loop));
    loop->of = running;
    TRY(arena_take(arena, running->plan->run_count, 1, "runs", &loop->tried));
    TRY(arena_take(arena, running->plan->run_count, 1, "runs", &loop->again));
    TRY(arena_take(arena, running->plan->run_count, 1, "runs", &loop->wanted));
    TRY(note_failed(loop));
    TRY(guard_adopt());
    progress_open(&loop->progress, running->file->name, !running->quiet);
    enum status status = work(loop);
    char text[2048];
    snprintf(text, sizeof text, "%s", status_text());
    const enum status stopped = stop_all(loop);
    progress_close(&loop->progress);
    if (status == STATUS_OK) return stopped;
    return status_fail(status, "%s", text);
}
