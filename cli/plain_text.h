/* SPDX-License-Identifier: Apache-2.0
 * Standard output and standard error as plain text, whatever names and texts of strangers are in
 * it.
 *
 * A trace, a log or a scenario of somebody else may hold names with escape sequences, which a
 * terminal obeys: they recolour, overwrite or hide what a verdict says. So everything that a verb
 * prints goes through one stream, and no place that prints has to remember it. Control characters
 * but tab and line feed, DEL, C1 and the marks that turn the direction of text are written as
 * \u001b is, in words; a byte that is no UTF-8 as \x9b. JSON means the same by \u001b as by the
 * character itself, so it stays valid.
 *
 * A runner of GitHub Actions takes a line that begins with :: behind blanks, and ##[ anywhere, for
 * a command (ActionCommand of actions/runner), whoever wrote it. The character that would complete
 * one is written in words, too. */
#ifndef TWINSTEP_CLI_PLAIN_TEXT_H
#define TWINSTEP_CLI_PLAIN_TEXT_H

#include <stdio.h>

#include "base/status.h"

/* Opens a stream that writes plain text to `descriptor`: by lines where that is a terminal, at once
 * where `unbuffered`. A failed write is seen by ferror() and output_end(). STATUS_MEMORY. */
TWINSTEP_MUST_USE enum status plain_text_open(int descriptor, int unbuffered, FILE **out);

/* Opens a stream on standard output that writes all bytes as they are. What a plain `stdout` would
 * lose is kept: why an earlier write failed, for output_end(). STATUS_MEMORY. */
TWINSTEP_MUST_USE enum status plain_text_pass(FILE **out);

/* Lets through commands to a runner of GitHub Actions from here on, or no longer. Other streams are
 * as they were. */
void plain_text_commands(FILE *stream, int allowed);

/* Prints a name or a text of one line, its tabs and line ends in words, so that it begins no line
 * of its own; the stream sees to the rest. */
void plain_text_put(const char *text, FILE *out);

/* Ends standard output: writes what `stream` still holds and closes its descriptor. Returns 0, or
 * the errno of what failed, also of an earlier write. The stream itself stays: a library that was
 * loaded meanwhile may have kept it as standard output and flush it when the process ends, as
 * cublasLt of CUDA 13.1 does, and glibc aborts a process that flushes a stream that was freed. */
TWINSTEP_MUST_USE int output_end(FILE *stream);

#endif
