/* SPDX-License-Identifier: Apache-2.0
 * Logs from texts in a test: read, expect, refuse, cut at every byte. */
#ifndef TWINSTEP_TESTS_LOGS_HELPER_LOGS_H
#define TWINSTEP_TESTS_LOGS_HELPER_LOGS_H

#include "logs/import.h"

/* Fails the test with the error's text when `text` is no log. Read as `format`; NULL: by content.
 */
struct log *logs_read(struct arena *arena, const char *text, const char *format);
/* The error that reading `text` gives; fails the test when it gives a log. */
const char *logs_refuse(struct arena *arena, const char *text, size_t length, const char *format);
/* Column `source` must hold `value` with `quantum` in `row`; NaN means absent as quantum. */
void logs_expect(const struct log *log, const char *source, size_t row, double value,
                 double quantum);
/* Every beginning of the text gives a log or an error that has a text. Returns how many are logs.
 */
size_t logs_cut(const char *text, size_t length, const char *format);
/* Whether a note holds the words. */
int logs_has_note(const struct log *log, const char *words);

#endif
