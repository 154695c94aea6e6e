/* SPDX-License-Identifier: Apache-2.0
 * Runs the twinstep binary in a folder of its own and keeps what it printed. */
#ifndef TWINSTEP_TESTS_CLI_HELPER_CLI_H
#define TWINSTEP_TESTS_CLI_HELPER_CLI_H

#include <stddef.h>
#include <sys/types.h>

#define HELPER_WORDS 24

/* Lets the helpers run this program from now on; NULL: twinstep. */
void helper_binary(const char *path);

struct said {
    int code;  /* exit status; 256 + signal when one ended it */
    char *out; /* stdout, NUL behind it */
    char *err; /* stderr */
    size_t out_length;
};

/* Group setup and teardown: a new temporary folder becomes the working folder, and is removed at
 * the end. */
int helper_enter(void **state);
int helper_leave(void **state);

/* Runs the binary with these words, up to a NULL. stdin is empty, or `input`. Free with
 * helper_free. */
struct said helper_say(const char *const *words, const char *input);
void helper_free(struct said *said);

/* Runs the binary with the words of one line, separated by single blanks. Fails the test unless the
 * exit status is `code`. */
struct said helper_run(int code, const char *line);
/* Does the same and frees; also requires `needle` in stderr (NULL: stderr must be empty). */
void helper_refuse(int code, const char *line, const char *needle);
/* The same of an error that comes behind printed lines. helper_refuse() requires that nothing is
 * printed with exit status 2: mistakes in options are told before any work. */
void helper_fail(int code, const char *line, const char *needle);
/* Requires the exit status 0 or `code`, and an empty stderr; frees. */
void helper_accept(int code, const char *line);

/* Runs with a terminal as stderr; what was written to it is in `err`. */
struct said helper_on_terminal(const char *line);

/* Starts a process and does not wait for it; stdout and stderr go to /dev/null. */
pid_t helper_start(const char *line);
/* Waits for the process and returns its exit status as in struct said. */
int helper_wait(pid_t child);

void helper_write(const char *path, const char *text);
void helper_write_bytes(const char *path, const void *bytes, size_t length);
/* Returns the whole file; the caller frees it. */
char *helper_read(const char *path, size_t *out_length);
int helper_exists(const char *path);
int helper_same_bytes(const char *a, const char *b);

/* Writes a small scenario that trains in milliseconds: `head` has lines of the scenario, `common`
 * entries of common, `test` entries of the test arm; each may be "". */
void helper_scenario(const char *path, const char *head, const char *common, const char *test);

#endif
