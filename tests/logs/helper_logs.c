/* SPDX-License-Identifier: Apache-2.0
 * Reads, expects and refuses logs, as helper_logs.h says. */
#include "tests/logs/helper_logs.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static enum status import_text(struct arena *arena, const char *text, size_t length,
                               const char *format, struct log **out) {
    struct log_options options;
    log_options_init(&options);
    options.format = format;
    return log_import_bytes("test", text, length, &options, arena, out);
}

struct log *logs_read(struct arena *arena, const char *text, const char *format) {
    struct log *log = NULL;
    if (import_text(arena, text, strlen(text), format, &log) != STATUS_OK)
        fail_msg("%s", status_text());
    return log;
}

const char *logs_refuse(struct arena *arena, const char *text, size_t length, const char *format) {
    struct log *log;
    if (import_text(arena, text, length, format, &log) == STATUS_OK)
        fail_msg("read as %s with %zu rows", log->format, log->rows);
    return status_text();
}

void logs_expect(const struct log *log, const char *source, size_t row, double value,
                 double quantum) {
    const struct log_column *column = log_column_by_source(log, source);
    if (column == NULL) fail_msg("no column %s", source);
    assert_true(row < log->rows);
    const double got = column->value[row], step = (double)column->quantum[row];
    if (quantum != quantum) {
        if (step == step) fail_msg("%s[%zu]: expected no value, got %.17g", source, row, got);
        return;
    }
    if (!(got == value || (got != got && value != value)))
        fail_msg("%s[%zu]: expected %.17g, got %.17g", source, row, value, got);
    if (!(step >= quantum && step <= quantum * 1.0000003))
        fail_msg("%s[%zu]: expected quantum %.9g, got %.9g", source, row, quantum, step);
}

/* Each beginning is copied, so that the address sanitizer sees a read behind its end. */
size_t logs_cut(const char *text, size_t length, const char *format) {
    size_t logs = 0;
    for (size_t end = 0; end <= length; end++) {
        struct arena arena = ARENA_EMPTY;
        struct log *log;
        char *bytes;
        assert_int_equal(arena_take(&arena, end, 1, "cut", &bytes), STATUS_OK);
        memcpy(bytes, text, end);
        if (import_text(&arena, bytes, end, format, &log) == STATUS_OK)
            logs += log->rows > 0;
        else
            assert_true(strlen(status_text()) > 10);
        arena_close(&arena);
    }
    return logs;
}

int logs_has_note(const struct log *log, const char *words) {
    for (size_t i = 0; i < log->note_count; i++)
        if (strstr(log->notes[i], words) != NULL) return 1;
    return 0;
}
