/* SPDX-License-Identifier: Apache-2.0
 * A tracker's SQLite database, read and never written. Private to logs/.
 *
 * A file is opened in place, so that rows in its write-ahead log are seen; bytes without a file are
 * opened from memory. The file is a stranger's: only tables are read, and a query that runs too
 * long is ended. */
#ifndef TWINSTEP_LOGS_DATABASE_H
#define TWINSTEP_LOGS_DATABASE_H

#include "logs/reader.h"

struct database;

/* Says whether the bytes begin as a database does. */
int database_is(const struct log_source *source);
/* The memory of bytes without a file is taken from `arena`. STATUS_INPUT when it is no database. */
TWINSTEP_MUST_USE enum status database_open(const struct log_source *source, struct arena *arena,
                                            struct database **out);
void database_close(struct database *database); /* NULL is allowed */
/* Says whether there is a table (no view) with these columns; `columns` ends with NULL. */
int database_has(struct database *database, const char *table, const char *const *columns);

/* Starts a query; `text` takes the place of its "?", and may be NULL where there is none. */
TWINSTEP_MUST_USE enum status database_ask(struct database *database, const char *query,
                                           const char *text);
/* Moves to the next row of the query; *more 0 at its end. */
TWINSTEP_MUST_USE enum status database_next(struct database *database, int *more);
/* The cell of the row at hand; valid until the next row. */
struct log_span database_text(struct database *database, int column);
double database_number(struct database *database, int column);
int64_t database_integer(struct database *database, int column);

#endif
