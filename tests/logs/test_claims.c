/* SPDX-License-Identifier: Apache-2.0
 * labels: unit whole
 * All logs of the repository: each must be claimed by its own reader alone, must be read by content
 * as it is by name, and every beginning of a short one must give the same rows or an error. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logs/readers.h"
#include "tests/base/helper_size.h"
#include "tests/logs/helper_events.h"
#include "tests/logs/helper_fixture.h"
#include "tests/logs/helper_logs.h"

#define FIXTURES "logs/fixtures"

static struct events events;

typedef void visit_fixture(const char *format, const struct fixture *fixture);

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Visits every file of tests/logs/fixtures/<format>/, in the order of names. */
static size_t each_fixture(visit_fixture *visit) {
    char name[512];
    struct dirent **formats, **files;
    size_t count = 0;
    const int format_count =
        scandir(TWINSTEP_SOURCE_DIR "/tests/" FIXTURES, &formats, NULL, by_name);
    assert_true(format_count > 0);
    for (int i = 0; i < format_count; i++) {
        const char *format = formats[i]->d_name;
        snprintf(name, sizeof name, "%s/tests/" FIXTURES "/%.100s", TWINSTEP_SOURCE_DIR, format);
        const int files_count = format[0] == '.' ? 0 : scandir(name, &files, NULL, by_name);
        for (int j = 0; j < files_count; j++) {
            struct arena arena = ARENA_EMPTY;
            snprintf(name, sizeof name, FIXTURES "/%.100s/%.100s", format, files[j]->d_name);
            if (files[j]->d_name[0] != '.') {
                const struct fixture f = fixture_read(&arena, name);
                visit(format, &f);
                count++;
            }
            arena_close(&arena);
            free(files[j]);
        }
        if (files_count > 0) free(files);
        free(formats[i]);
    }
    free(formats);
    return count;
}

/* Returns how sure a claim may be: csv and deepspeed have no signature of their own, since other
 * tools print such lines, too, and key-value and table take what nobody else claims. */
static int surest(const char *format) {
    if (strcmp(format, "key-value") == 0 || strcmp(format, "table") == 0) return 1;
    return strcmp(format, "csv") == 0 || strcmp(format, "deepspeed") == 0 ? 2 : 3;
}

static void check_claims(const char *format, const struct fixture *f) {
    const size_t mark = strncmp(f->bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    const struct log_source source = {.name = f->path,
                                      .bytes = (const unsigned char *)f->bytes + mark,
                                      .length = f->length - mark};
    int found = 0;
    for (const struct log_reader_row *r = log_readers(); r->name != NULL; r++) {
        const int claim = log_reader_claim(r->reader, &source), own = strcmp(r->name, format) == 0;
        found |= own;
        if (own && claim != surest(format))
            fail_msg("%s: its own reader claims %d", f->path, claim);
        if (!own && claim >= surest(format))
            fail_msg("%s: %s claims %d, too", f->path, r->name, claim);
        if (!own && claim > (strcmp(r->name, "key-value") == 0))
            fail_msg("%s: %s claims %d without a reason", f->path, r->name, claim);
    }
    if (!found) fail_msg("no reader is called %s", format);
}

static void verify_claims_do_not_collide(void **state) {
    (void)state;
    assert_true(each_fixture(check_claims) >= 18);
}

/* Each reader that reads neither JSON nor a trace must have a fixture of its own. */
static void verify_every_reader_has_a_fixture(void **state) {
    static const char *const elsewhere[] = {
        "trace",         "hf-trainer-state", "megatron-golden", "nemo-rl",
        "llama-factory", "wandb-jsonl",      "torchtune-jsonl", "olmo-core-metrics",
        "jsonl",         "tensorboard",      "trackio",         "mlflow-db"};
    (void)state;
    for (const struct log_reader_row *r = log_readers(); r->name != NULL; r++) {
        char path[512];
        int is_elsewhere = 0;
        for (size_t i = 0; i < COUNT_OF(elsewhere); i++)
            is_elsewhere |= strcmp(r->name, elsewhere[i]) == 0;
        snprintf(path, sizeof path, "%s/tests/" FIXTURES "/%s", TWINSTEP_SOURCE_DIR, r->name);
        DIR *folder = opendir(path);
        if (folder == NULL && !is_elsewhere) fail_msg("no fixture of %s", r->name);
        if (folder != NULL) closedir(folder);
    }
}

static void verify_events_are_claimed_alone(void **state) {
    struct log_source source = {.name = "events", .bytes = events.bytes};
    (void)state;
    events.length = 0;
    events_version(&events);
    events_scalar(&events, 1, "loss", 0.5f);
    source.length = events.length;
    for (const struct log_reader_row *r = log_readers(); r->name != NULL; r++)
        assert_int_equal(log_reader_claim(r->reader, &source),
                         strcmp(r->name, "tensorboard") == 0 ? 3 : 0);
}

static enum status import(struct arena *arena, const char *bytes, size_t length, struct log **out) {
    struct log_options options;
    log_options_init(&options);
    return log_import_bytes("cut", bytes, length, &options, arena, out);
}

/* All rows but the last, which may be cut, must be what the whole log has there. */
static void check_beginning(const struct log *cut, const struct log *whole, size_t end) {
    if (cut->rows > whole->rows) fail_msg("%s cut at %zu: more rows", whole->path, end);
    if (strcmp(cut->format, whole->format) != 0)
        fail_msg("%s cut at %zu: read as %s", whole->format, end, cut->format);
    for (size_t c = 0; c < cut->column_count; c++) {
        const struct log_column *x = &cut->columns[c];
        const struct log_column *y = log_column_by_source(whole, x->source);
        for (size_t r = 0; r + 1 < cut->rows; r++) {
            if (cut->step[r] != whole->step[r] || cut->line[r] != whole->line[r])
                fail_msg("%s cut at %zu: other rows", whole->format, end);
            if (log_has(x, r) == 0) continue;
            if (y == NULL || memcmp(&x->value[r], &y->value[r], sizeof(double)) != 0)
                fail_msg("%s cut at %zu: another %s", whole->format, end, x->source);
        }
    }
}

static void check_cuts(const char *format, const struct fixture *f) {
    struct arena kept = ARENA_EMPTY;
    struct log *whole;
    size_t logs = 0;
    if (import(&kept, f->bytes, f->length, &whole) != STATUS_OK) fail_msg("%s", status_text());
    assert_string_equal(whole->format, format);
    for (size_t end = 0; end < f->length; end++) {
        struct arena arena = ARENA_EMPTY;
        struct log *cut;
        char *bytes; /* a copy, so that the sanitizer sees a read behind the end */
        assert_int_equal(arena_take(&arena, end, 1, "cut", &bytes), STATUS_OK);
        memcpy(bytes, f->bytes, end);
        if (import(&arena, bytes, end, &cut) == STATUS_OK) {
            check_beginning(cut, whole, end);
            logs++;
        } else {
            assert_non_null(strstr(status_text(), "cut")); /* the place */
            assert_non_null(strstr(status_text(), "expected"));
        }
        arena_close(&arena);
    }
    assert_true(logs > 0);
    arena_close(&kept);
}

static void verify_every_beginning(void **state) {
    (void)state;
    each_fixture(check_cuts);
}

/* Each byte (by default every third) is replaced by others, which must give an error or a log, and
 * no complaint of a sanitizer. */
static void check_damage(const char *format, const struct fixture *f) {
    static const char others[] = {'\0', '\n', '\r', '"', '\'', '{', ',', '\x1b', '9', '\xff'};
    (void)format;
    for (size_t i = 0; i < f->length; i += helper_size(3, 3, 1)) {
        struct arena arena = ARENA_EMPTY;
        struct log *log;
        const char kept = f->bytes[i];
        f->bytes[i] = others[i % sizeof others];
        if (import(&arena, f->bytes, f->length, &log) != STATUS_OK)
            assert_true(strlen(status_text()) > 10);
        f->bytes[i] = kept;
        arena_close(&arena);
    }
}

static void verify_damaged_bytes(void **state) {
    (void)state;
    each_fixture(check_damage);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_claims_do_not_collide),
        cmocka_unit_test(verify_every_reader_has_a_fixture),
        cmocka_unit_test(verify_events_are_claimed_alone),
        cmocka_unit_test(verify_every_beginning),
        cmocka_unit_test(verify_damaged_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
