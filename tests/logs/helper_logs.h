/* SPDX-License-Identifier: Apache-2.0
 * Logs that a test gives as text: read them, expect values, expect refusals, cut them at every
 * byte. */
#ifndef TWINSTEP_TESTS_LOGS_HELPER_LOGS_H
#define TWINSTEP_TESTS_LOGS_HELPER_LOGS_H

#include "logs/import.h"

/* Reads `text` as `format` (NULL: told by content). Fails the test with the error's text when it is
 * no log. */
struct log *logs_read(struct arena *arena, const char *text, const char *format);
/* Returns the error that reading `text` gives. Fails the test when it gives a log. */
const char *logs_refuse(struct arena *arena, const char *text, size_t length, const char *format);
/* Checks that column `source` holds `value` with `quantum` in `row`; a quantum of NaN means that it
 * is absent. */
void logs_expect(const struct log *log, const char *source, size_t row, double value,
                 double quantum);
/* Reads every beginning of the text: each must give a log or an error that has a text. Returns how
 * many are logs. */
size_t logs_cut(const char *text, size_t length, const char *format);
/* Tells whether a note holds the words. */
int logs_has_note(const struct log *log, const char *words);

#endif
