/* SPDX-License-Identifier: Apache-2.0
 * From a planned run to a process: its files, its port and device, its environment, and the line
 * that an executor gets. What is run is kept beside what it prints. */
#define _DEFAULT_SOURCE /* environ */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/publish.h"
#include "cli/ablate/ablate_loop.h"

#define KEPT "TWINSTEP_KEPT_" /* what main took away for its own threads begins so */

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

/* Claims a port of this machine: the slot's own, and if somebody has that, those a whole number of
 * slots on. Workers with slots of their own, as jobs of Slurm on one machine are, have ports of one
 * list. A slot's claim is "" where none was free; then the command gets its first one. */
static enum status claim_port(struct ablate_loop *loop, uint32_t at, struct arena *arena,
                              unsigned *out) {
    const struct ablate_folder *const folder = loop->of->folder;
    struct ablate_slot *const slot = &loop->slots[at];
    char host[100], *who;
    *out = (unsigned)loop->of->file->port + at;
    ablate_host_of(loop, host);
    for (unsigned port = *out; port < 65536 && port < *out + 64 * ABLATE_SLOTS_MOST;
         port += ABLATE_SLOTS_MOST) {
        enum ablate_claim claim;
        snprintf(slot->port, sizeof slot->port, "port-%s-%u", host, port);
        TRY(ablate_claim_take(folder, slot->port, arena, &claim, &who));
        if (claim == CLAIM_TAKEN && is_free_port(port)) {
            *out = port;
            return STATUS_OK;
        }
        if (claim == CLAIM_TAKEN)
            TRY(ablate_claim_leave(folder, slot->port, folder->worker, arena));
    }
    slot->port[0] = '\0';
    return STATUS_OK;
}

static int sets_devices(const struct ablate_variable *variables, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(variables[i].name, ABLATE_VISIBLE) == 0) return 1;
    return 0;
}

const char *ablate_device_of(const struct ablate_loop *loop, uint32_t at) {
    const struct ablate_file *file = loop->of->file;
    const char *visible = getenv(ABLATE_VISIBLE);
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
    static const char *const ours[][2] = {{"OMP_WAIT_POLICY", "TWINSTEP_WAIT_ASLEEP"},
                                          {"GOMP_SPINCOUNT", "TWINSTEP_WAIT_LOOKS"}};
    for (size_t i = 0; i < COUNT_OF(ours); i++)
        if (is_variable(entry, ours[i][1]) ||
            (is_variable(entry, ours[i][0]) && getenv(ours[i][1]) != NULL))
            return 1;
    return 0;
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
    list[command->variable_count++] =
        (struct ablate_variable){.name = ABLATE_VISIBLE, .value = {device, NULL}};
    command->variables = list;
    return STATUS_OK;
}

/* Writes the command as a line for a shell, which is kept beside what it printed. */
static enum status command_line(const struct ablate_loop *loop, const struct ablate_run *run,
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
static enum status execute_elsewhere(const struct ablate_loop *loop, const char *line,
                                     struct arena *arena, struct ablate_command *out) {
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
static enum status write_files(const struct ablate_loop *loop, const struct ablate_run *run,
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

enum status ablate_run_begin(struct ablate_loop *loop, uint32_t index, uint32_t at,
                             struct arena *arena) {
    const struct ablate_running *of = loop->of;
    const struct ablate_run *run = ablate_run_at(loop, index);
    char *dir, *out, *err, *path, *line, *text, port[16], seed[24];
    unsigned port_number;
    struct ablate_command command;
    const char *device = of->file->device_count > 0 ? of->file->devices[at] : "";
    TRY(ablate_folder_begin(of->folder, run, arena));
    TRY(ablate_folder_path(of->folder, run, "out", arena, &dir));
    TRY(ablate_folder_path(of->folder, run, "stdout", arena, &out));
    TRY(ablate_folder_path(of->folder, run, "stderr", arena, &err));
    TRY(ablate_folder_path(of->folder, run, "command", arena, &path));
    TRY(claim_port(loop, at, arena, &port_number));
    snprintf(port, sizeof port, "%u", port_number);
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
    struct ablate_slot *const slot = &loop->slots[at];
    TRY(guard_start(&slot->guard));
    char holder[ABLATE_HOLDER];
    TRY(ablate_claim_pass(of->folder, run->id, (long)slot->guard.pid, arena, holder));
    TRY(ablate_claim_pass(of->folder, slot->claim, (long)slot->guard.pid, arena, holder));
    if (slot->port[0] != '\0')
        TRY(ablate_claim_pass(of->folder, slot->port, (long)slot->guard.pid, arena, holder));
    memcpy(slot->holder, holder, sizeof holder);
    return guard_send(&slot->guard, &asked, arena);
}
