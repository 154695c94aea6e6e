/* SPDX-License-Identifier: Apache-2.0
 * Around SQLite, with what its documentation advises for files of unknown origin
 * (sqlite.org/security.html): no trust in the schema, checks of cells, limits, read-only.
 *
 * Invariant: no file beside the database is made. Where it has a write-ahead log, that is read with
 * the index that lies beside it; where it has none, it is opened as one that nobody changes. */
#include "logs/database.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define HEAD_BYTES 100
/* Calls of the watch, each after 10,000 instructions of SQLite, of which a row needs some thirty:
 * half a minute at most. */
#define PATIENCE 100000
#define LENGTH_MOST (64 << 20)

struct database {
    const char *name;
    sqlite3 *handle;
    sqlite3_stmt *query;
    uint64_t watched;
};

static const char magic[] = "SQLite format 3"; /* with its NUL */

int database_is(const struct log_source *source) {
    return source->length >= HEAD_BYTES && memcmp(source->bytes, magic, sizeof magic) == 0;
}

static enum status fail(const struct database *d) {
    FAIL(STATUS_INPUT, "%s: expected a readable SQLite database, got: %s", d->name,
         sqlite3_errmsg(d->handle));
}

static int is_impatient(void *self) {
    struct database *d = (struct database *)self;
    return ++d->watched > PATIENCE;
}

static int has_write_ahead_log(const char *path, struct arena *arena) {
    char *beside;
    struct stat info;
    if (arena_format(arena, &beside, "%s-wal", path) != STATUS_OK) return 0;
    return stat(beside, &info) == 0 && info.st_size > 0;
}

/* Writes "file:PATH?mode=ro.." with the bytes of the path that a URI does not have as %XX. */
static enum status uri_of(const char *path, struct arena *arena, char **out) {
    const size_t length = strlen(path);
    TRY(arena_take(arena, 3 * length + 64, 1, "path", out));
    size_t used = (size_t)snprintf(*out, 8, "file:");
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)path[i];
        const int plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || (c != 0 && strchr("/._-~", c) != NULL);
        used += (size_t)snprintf(*out + used, 4, plain ? "%c" : "%%%02X", c);
    }
    snprintf(*out + used, 64, "%s", has_write_ahead_log(path, arena) ? "?mode=ro" : "?immutable=1");
    return STATUS_OK;
}

/* Opens from memory. Bytes 18 and 19 say whether there is a write-ahead log, which there is not
 * here. */
static enum status open_bytes(struct database *d, const struct log_source *source,
                              struct arena *arena) {
    unsigned char *copy;
    TRY(arena_take(arena, source->length, 1, "database", &copy));
    memcpy(copy, source->bytes, source->length);
    copy[18] = copy[19] = 1;
    if (sqlite3_open_v2(":memory:", &d->handle, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
        sqlite3_deserialize(d->handle, "main", copy, (sqlite3_int64)source->length,
                            (sqlite3_int64)source->length,
                            SQLITE_DESERIALIZE_READONLY) != SQLITE_OK)
        return fail(d);
    return STATUS_OK;
}

static enum status open_file(struct database *d, const struct log_source *source,
                             struct arena *arena) {
    char *uri;
    TRY(uri_of(source->path, arena, &uri));
    if (sqlite3_open_v2(uri, &d->handle, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL) != SQLITE_OK)
        return fail(d);
    return STATUS_OK;
}

static enum status make_safe(struct database *d) {
    sqlite3_limit(d->handle, SQLITE_LIMIT_LENGTH, LENGTH_MOST);
    sqlite3_limit(d->handle, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_progress_handler(d->handle, 10000, is_impatient, d);
    if (sqlite3_db_config(d->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL) != SQLITE_OK ||
        sqlite3_db_config(d->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL) != SQLITE_OK ||
        sqlite3_db_config(d->handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL) != SQLITE_OK ||
        sqlite3_db_config(d->handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL) != SQLITE_OK ||
        sqlite3_exec(d->handle, "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0", NULL, NULL,
                     NULL) != SQLITE_OK)
        return fail(d);
    return STATUS_OK;
}

enum status database_open(const struct log_source *source, struct arena *arena,
                          struct database **out) {
    struct database *d;
    *out = NULL;
    TRY(arena_take(arena, 1, sizeof *d, "database", &d));
    d->name = source->name;
    *out = d;
    if (!database_is(source))
        FAIL(STATUS_INPUT, "%s: expected a SQLite database, got other bytes", source->name);
    TRY(source->path != NULL ? open_file(d, source, arena) : open_bytes(d, source, arena));
    return make_safe(d);
}

void database_close(struct database *database) {
    if (database == NULL) return;
    sqlite3_finalize(database->query);
    sqlite3_close(database->handle);
}

/* The names come from our own code, so they may stand in the query. */
int database_has(struct database *database, const char *table, const char *const *columns) {
    char query[256];
    int more = 0;
    snprintf(query, sizeof query, "SELECT 1 FROM sqlite_schema WHERE type='table' AND name='%s'",
             table);
    if (database_ask(database, query, NULL) != STATUS_OK) return 0;
    if (database_next(database, &more) != STATUS_OK || !more) return 0;
    for (; *columns != NULL; columns++) {
        snprintf(query, sizeof query, "SELECT %s FROM %s LIMIT 1", *columns, table);
        if (database_ask(database, query, NULL) != STATUS_OK) return 0;
    }
    return 1;
}

enum status database_ask(struct database *database, const char *query, const char *text) {
    sqlite3_finalize(database->query);
    database->query = NULL;
    if (sqlite3_prepare_v2(database->handle, query, -1, &database->query, NULL) != SQLITE_OK)
        return fail(database);
    if (text != NULL &&
        sqlite3_bind_text(database->query, 1, text, -1, SQLITE_TRANSIENT) != SQLITE_OK)
        return fail(database);
    return STATUS_OK;
}

enum status database_next(struct database *database, int *more) {
    const int got = sqlite3_step(database->query);
    *more = got == SQLITE_ROW;
    return got == SQLITE_ROW || got == SQLITE_DONE ? STATUS_OK : fail(database);
}

struct log_span database_text(struct database *database, int column) {
    const char *text = (const char *)sqlite3_column_text(database->query, column);
    if (text == NULL) return (struct log_span){"", 0};
    return (struct log_span){text, (size_t)sqlite3_column_bytes(database->query, column)};
}

double database_number(struct database *database, int column) {
    return sqlite3_column_double(database->query, column);
}

int64_t database_integer(struct database *database, int column) {
    return (int64_t)sqlite3_column_int64(database->query, column);
}
