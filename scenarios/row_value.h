/* SPDX-License-Identifier: Apache-2.0
 * The value of one schema row: read from YAML or from the text of the default, written as text,
 * compared, copied. This is the only code that knows how a key_type looks in memory and on paper.
 *
 * `base` is the struct that the row's offset counts from. Invariant: a value that was read is
 * within its bounds or is the row's word; unused bytes of texts and lists are zero, so that equal
 * values are equal bytes. */
#ifndef TWINSTEP_SCENARIOS_ROW_VALUE_H
#define TWINSTEP_SCENARIOS_ROW_VALUE_H

#include "base/key.h"
#include "scenarios/yaml.h"

/* Reads the value of a node into `base`. STATUS_INPUT "...: error: PATH: expected an integer >= 0,
 * got \"ten\"". */
TWINSTEP_MUST_USE enum status row_read(const struct key_row *row, const char *path,
                                       const struct yaml_node *node, void *base);

/* Reads the row's default into `base`. STATUS_INPUT when the row itself is wrong, which a module's
 * can be. */
TWINSTEP_MUST_USE enum status row_read_standard(const struct key_row *row, const char *path,
                                                void *base);

/* The value as a scenario would hold it: "8", "1e-6", "auto", "[log, zero]". Texts are quoted where
 * plain YAML would read them as something else. Reading it again gives the same bytes. */
TWINSTEP_MUST_USE enum status row_text(const struct key_row *row, const void *base,
                                       struct arena *arena, char **out_text);

/* Whether a number or an enum is within its bounds. The special word is; other types always are. */
int row_in_bounds(const struct key_row *row, const void *base);

/* What the row takes, in words: "an integer >= 0", "a number from 0 to 1, or none", "one of sft,
 * dpo". With `all` also those bounds that few will ever meet. Returns `out` or a constant text. */
#define ROW_EXPECTED_SIZE 320
const char *row_expect(const struct key_row *row, int all, char out[ROW_EXPECTED_SIZE]);
/* The same for documentation, with the highest value even where few will meet it. Only the end of
 * uint64_t is left out. */
const char *row_limits(const struct key_row *row, char out[ROW_EXPECTED_SIZE]);

/* The row of this path; NULL when there is none. */
const struct key_row *row_find(const struct key_row *rows, size_t count, const char *path);
/* Whether any row stands below `path`, as batch.size does below "batch". */
int row_is_section(const struct key_row *rows, size_t count, const char *path);

int row_equal(const struct key_row *row, const void *a, const void *b);
void row_copy(const struct key_row *row, void *into, const void *from);

/* Sorts a list that is a set (shuffle.kinds, atomic.kinds, resume.restores), so that equal sets are
 * equal bytes. */
void row_sort_list(struct key_list *list);

/* Whether the value is the row's special word. */
int row_is_word(const struct key_row *row, const void *base);

#endif
