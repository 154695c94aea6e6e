/* SPDX-License-Identifier: Apache-2.0
 * Starts the binary and collects what it prints. Output goes through unlinked temporary files, so
 * that no pipe can fill up. */
#define _XOPEN_SOURCE 700 /* posix_openpt */
#include "tests/cli/helper_cli.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char folder[] = "/tmp/twinstep-cli-XXXXXX";

int helper_enter(void **state) {
    (void)state;
    strcpy(folder + sizeof folder - 7, "XXXXXX");
    return mkdtemp(folder) == NULL || chdir(folder) != 0;
}

int helper_leave(void **state) {
    char *const argv[] = {(char *)(uintptr_t) "rm", (char *)(uintptr_t) "-rf", folder, NULL};
    pid_t child;
    (void)state;
    if (chdir("/") != 0 || posix_spawn(&child, "/bin/rm", NULL, NULL, argv, environ) != 0) return 1;
    return helper_wait(child);
}

static const char *binary = TWINSTEP_BINARY;

void helper_binary(const char *path) {
    binary = path == NULL ? TWINSTEP_BINARY : path;
}

static int scratch(const char *text) {
    char name[] = "/tmp/twinstep-said-XXXXXX";
    int file = mkstemp(name);
    assert_true(file >= 0);
    unlink(name);
    fcntl(file, F_SETFD, FD_CLOEXEC);
    if (text != NULL) {
        assert_int_equal(write(file, text, strlen(text)), strlen(text));
        lseek(file, 0, SEEK_SET);
    }
    return file;
}

static char *drain(int file, size_t *out_length) {
    off_t length = lseek(file, 0, SEEK_END);
    assert_true(length >= 0);
    char *text = (char *)calloc(1, (size_t)length + 1);
    assert_non_null(text);
    assert_int_equal(pread(file, text, (size_t)length, 0), length);
    close(file);
    if (out_length != NULL) *out_length = (size_t)length;
    return text;
}

static pid_t spawn(const char *const *words, const int files[3]) {
    char *argv[HELPER_WORDS + 2] = {(char *)(uintptr_t) "twinstep"};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int count = 1;
    while (words[count - 1] != NULL) {
        assert_true(count <= HELPER_WORDS);
        argv[count] = (char *)(uintptr_t)words[count - 1];
        count++;
    }
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(posix_spawn_file_actions_adddup2(&actions, files[i], i), 0);
    assert_int_equal(posix_spawn(&child, binary, &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    return child;
}

int helper_wait(pid_t child) {
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    return WIFSIGNALED(how) ? 256 + WTERMSIG(how) : WEXITSTATUS(how);
}

struct said helper_say(const char *const *words, const char *input) {
    int files[3] = {scratch(input), scratch(NULL), scratch(NULL)};
    struct said said;
    said.code = helper_wait(spawn(words, files));
    said.out = drain(files[1], &said.out_length);
    said.err = drain(files[2], NULL);
    close(files[0]);
    return said;
}

void helper_free(struct said *said) {
    free(said->out);
    free(said->err);
}

/* Cuts the line at single blanks; `copy` holds the words. */
static void cut(const char *line, char copy[2048], const char *words[HELPER_WORDS + 1]) {
    int count = 0;
    assert_true(strlen(line) < 2048);
    strcpy(copy, line);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " ")) {
        assert_true(count < HELPER_WORDS);
        words[count++] = word;
    }
    words[count] = NULL;
}

struct said helper_run(int code, const char *line) {
    char copy[2048];
    const char *words[HELPER_WORDS + 1];
    cut(line, copy, words);
    struct said said = helper_say(words, NULL);
    if (said.code != code)
        fail_msg("twinstep %s: expected exit status %d, got %d\n%s%s", line, code, said.code,
                 said.out, said.err);
    return said;
}

static void refuse(int code, const char *line, const char *needle, int late) {
    struct said said = helper_run(code, line);
    if (needle == NULL && said.err[0] != '\0') fail_msg("twinstep %s: stderr: %s", line, said.err);
    if (needle != NULL && strstr(said.err, needle) == NULL)
        fail_msg("twinstep %s: expected in stderr: %s\ngot: %s", line, needle, said.err);
    if (code == 2 && !late && said.out[0] != '\0')
        fail_msg("twinstep %s: printed before its error: %s", line, said.out);
    helper_free(&said);
}

void helper_refuse(int code, const char *line, const char *needle) {
    refuse(code, line, needle, 0);
}

void helper_fail(int code, const char *line, const char *needle) {
    refuse(code, line, needle, 1);
}

void helper_accept(int code, const char *line) {
    helper_refuse(code, line, NULL);
}

/* Reads until the last writer has closed the terminal, which shows as EIO. */
static char *drain_terminal(int master) {
    size_t length = 0, room = 4096;
    char *text = (char *)calloc(1, room + 1);
    ssize_t got;
    assert_non_null(text);
    while ((got = read(master, text + length, room - length)) > 0) {
        length += (size_t)got;
        if (length < room) continue;
        room *= 2;
        text = (char *)realloc(text, room + 1);
        assert_non_null(text);
    }
    text[length] = '\0';
    close(master);
    return text;
}

struct said helper_on_terminal(const char *line) {
    char copy[2048];
    const char *words[HELPER_WORDS + 1];
    struct said said;
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    fcntl(master, F_SETFD, FD_CLOEXEC);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(slave >= 0);
    int files[3] = {scratch(NULL), scratch(NULL), slave};
    cut(line, copy, words);
    pid_t child = spawn(words, files);
    close(slave);
    said.err = drain_terminal(master);
    said.code = helper_wait(child);
    said.out = drain(files[1], &said.out_length);
    close(files[0]);
    return said;
}

pid_t helper_start(const char *line) {
    char copy[2048];
    const char *words[HELPER_WORDS + 1];
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int files[3] = {null, null, null};
    assert_true(null >= 0);
    cut(line, copy, words);
    pid_t child = spawn(words, files);
    close(null);
    return child;
}

void helper_write_bytes(const char *path, const void *bytes, size_t length) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

void helper_write(const char *path, const char *text) {
    helper_write_bytes(path, text, strlen(text));
}

char *helper_read(const char *path, size_t *out_length) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) fail_msg("%s: cannot open", path);
    return drain(file, out_length);
}

int helper_exists(const char *path) {
    return access(path, F_OK) == 0;
}

int helper_same_bytes(const char *a, const char *b) {
    size_t lengths[2];
    char *x = helper_read(a, &lengths[0]), *y = helper_read(b, &lengths[1]);
    int same = lengths[0] == lengths[1] && memcmp(x, y, lengths[0]) == 0;
    free(x);
    free(y);
    return same;
}

void helper_scenario(const char *path, const char *head, const char *common, const char *test) {
    char text[4096];
    int length = snprintf(text, sizeof text,
                          "twinstep: 1\n"
                          "%s\n"
                          "common:\n"
                          "  model: {layers: 1, hidden: 16, heads: 2, mlp: 24}\n"
                          "  data: {max_len: 96}\n"
                          "  batch: {size: 4}\n"
                          "  %s\n"
                          "arms:\n"
                          "  baseline: {}\n"
                          "  test: {%s}\n",
                          head, common, test);
    assert_in_range(length, 1, sizeof text - 1);
    helper_write(path, text);
}
