/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Run files of W&B and SwanLab: files that the libraries wrote, and records that no library would
 * write, framed by hand: across blocks, damaged, out of order. */
#include "tests/logs/helper_logs.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/real.h"
#include "logs/framed.h"
#include "logs/import.h"
#include "tests/logs/helper_fixture.h"

#define N real_nan_f64()
#define INF real_inf_f64()
#define ROOM ((size_t)1 << 20)

struct bytes {
    unsigned char at[ROOM];
    size_t length;
};

static void put(struct bytes *b, const void *bytes, size_t length) {
    assert_true(b->length + length <= ROOM);
    if (length > 0) memcpy(b->at + b->length, bytes, length);
    b->length += length;
}

static void put_varint(struct bytes *b, uint64_t value) {
    do {
        const unsigned char byte = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        put(b, &byte, 1);
        value >>= 7;
    } while (value > 0);
}

static void put_field(struct bytes *b, unsigned number, const void *bytes, size_t length) {
    put_varint(b, number << 3 | 2);
    put_varint(b, length);
    put(b, bytes, length);
}

/* Frames a record as LevelDB's log does, in blocks of 32 KiB. */
static void put_record(struct bytes *file, const void *record, size_t length) {
    const unsigned char *at = (const unsigned char *)record;
    int first = 1;
    do {
        static const unsigned char zeros[8] = {0};
        size_t room = FRAMED_BLOCK - file->length % FRAMED_BLOCK;
        if (room < 7) {
            put(file, zeros, room);
            room = FRAMED_BLOCK;
        }
        const size_t part = length < room - 7 ? length : room - 7;
        const unsigned char type =
            (unsigned char)(first ? (part == length ? 1 : 2) : (part == length ? 4 : 3));
        const uint32_t sum = framed_sum(type, at, part);
        const unsigned char head[7] = {(unsigned char)sum,
                                       (unsigned char)(sum >> 8),
                                       (unsigned char)(sum >> 16),
                                       (unsigned char)(sum >> 24),
                                       (unsigned char)part,
                                       (unsigned char)(part >> 8),
                                       type};
        put(file, head, 7);
        put(file, at, part);
        at += part;
        length -= part;
        first = 0;
    } while (length > 0);
}

static struct bytes file, record, history, item;

static void begin(const char *magic, unsigned char version) {
    file.length = history.length = 0;
    put(&file, magic, 4);
    put(&file, "\xe1\xbe", 2);
    put(&file, &version, 1);
}

static void add_item(const char *key, int nested, const char *json) {
    item.length = 0;
    put_field(&item, nested ? 2 : 1, key, strlen(key));
    put_field(&item, 16, json, strlen(json));
    put_field(&history, 1, item.at, item.length);
}

static void end_row(int step) {
    if (step >= 0) {
        item.length = 0;
        put_varint(&item, 1 << 3);
        put_varint(&item, (uint64_t)step);
        put_field(&history, 2, item.at, step == 0 ? 0 : item.length);
    }
    record.length = 0;
    put_field(&record, 2, history.at, history.length);
    put_record(&file, record.at, record.length);
    history.length = 0;
}

static enum status read_file(struct arena *arena, size_t length, struct log **out) {
    struct log_options options;
    char *copy;
    log_options_init(&options);
    assert_int_equal(arena_take(arena, length, 1, "file", &copy), STATUS_OK);
    memcpy(copy, file.at, length);
    return log_import_bytes("test", copy, length, &options, arena, out);
}

static const struct log *read_good(struct arena *arena) {
    struct log *log = NULL;
    if (read_file(arena, file.length, &log) != STATUS_OK) fail_msg("%s", status_text());
    return log;
}

static void expect_refusal(const char *words) {
    struct arena arena = ARENA_EMPTY;
    struct log *log;
    assert_int_equal(read_file(&arena, file.length, &log), STATUS_INPUT);
    if (strstr(status_text(), words) == NULL)
        fail_msg("expected \"%s\", got %s", words, status_text());
    arena_close(&arena);
}

static const struct log *read_real(struct arena *arena, const char *name) {
    const struct fixture f = fixture_read(arena, name);
    struct log_options options;
    struct log *log = NULL;
    log_options_init(&options);
    if (log_import_bytes("real", f.bytes, f.length, &options, arena, &log) != STATUS_OK)
        fail_msg("%s", status_text());
    return log;
}

/* What the script logged: train/loss 2.5/s, learning_rate 1e-6 s, global_step 5 s; s is 1 to 6. */
static void validate_files_of_the_libraries(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log = read_real(&arena, "logs/fixtures/wandb-run/run-abc123.wandb");
    assert_string_equal(log->format, "wandb-run");
    assert_int_equal(log->rows, 6);
    for (int s = 1; s <= 6; s++) {
        const size_t row = (size_t)s - 1;
        assert_int_equal(log->step[row], 5 * s);
        logs_expect(log, "train/loss", row, 2.5 / s, 0.0);
        logs_expect(log, "train/learning_rate", row, 1e-6 * s, 0.0);
        logs_expect(log, "_step", row, s - 1, 0.0);
    }
    logs_expect(log, "train/grad_norm", 2, N, 0.0);
    logs_expect(log, "big", 3, INF, 0.0);
    logs_expect(log, "nested/b/c", 3, 2.5, 0.1);
    logs_expect(log, "done", 3, 1.0, 0.0);
    logs_expect(log, "eval/loss", 4, 0.6, 0.1); /* one short text proves no repr */
    assert_null(log_column_by_source(log, "text"));
    assert_string_equal(log_column_of(log, LOG_LR_LOGGED)->source, "train/learning_rate");

    log = read_real(&arena, "logs/fixtures/swanlab/run-ff5pe33l.swanlab");
    assert_string_equal(log->format, "swanlab");
    assert_int_equal(log->rows, 6);
    for (int s = 1; s <= 6; s++) {
        assert_int_equal(log->step[s - 1], 5 * s);
        logs_expect(log, "train/loss", (size_t)s - 1, 2.5 / s, 0.0);
        logs_expect(log, "train/learning_rate", (size_t)s - 1, 1e-6 * s, 0.0);
    }
    logs_expect(log, "train/grad_norm", 2, N, 0.0);
    logs_expect(log, "eval/loss", 5, 0.0, 0.0); /* a 0 that proto3 leaves out */

    log = read_real(&arena, "logs/fixtures/swanlab/run-3tx3is70.swanlab"); /* of swanlab 0.9.8 */
    assert_string_equal(log->format, "swanlab");
    assert_int_equal(log->rows, 8);
    for (int s = 1; s <= 8; s++) {
        const size_t row = (size_t)s - 1;
        assert_int_equal(log->step[row], 10 * s);
        logs_expect(log, "train/loss", row, s == 4 ? N : 3.0 / s, 0.0);
        logs_expect(log, "train/learning_rate", row, 5e-5 * (1.0 - (s - 1) / 8.0), 0.0);
        logs_expect(log, "train/grad_norm", row, s == 2 ? 0.0 : 1.0 + 1.0 / s, 0.0);
    }
    logs_expect(log, "eval/loss", 3, 0.5, 0.0);
    logs_expect(log, "eval/loss", 7, 0.25, 0.0);
    arena_close(&arena);
}

/* A record of 200 kB lies in seven blocks, and small ones end in every place of a block. */
static void verify_records_across_blocks(void **state) {
    static char long_text[200000];
    struct arena arena = ARENA_EMPTY;
    (void)state;
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[0] = long_text[sizeof long_text - 2] = '"';
    begin(":W&B", 0);
    for (int i = 0; i < 4000; i++) {
        char number[32];
        snprintf(number, sizeof number, "%d.5", i);
        add_item("loss", i % 2, number);
        add_item("note", 0, i == 1000 ? long_text : "\"y\"");
        end_row(i);
    }
    const struct log *log = read_good(&arena);
    assert_int_equal(log->rows, 4000);
    for (size_t i = 0; i < log->rows; i++) {
        assert_int_equal(log->step[i], i + 1);
        logs_expect(log, "loss", i, (double)i + 0.5, 0.1);
    }
    assert_true(logs_has_note(log, "_step is W&B's own counter"));
    assert_false(logs_has_note(log, "ends inside"));
    arena_close(&arena);
}

static void validate_steps_and_texts(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    begin(":W&B", 0);
    add_item("loss", 0, "0.6930"); /* a text that no repr writes keeps its last digit */
    add_item("acc", 0, "1");
    add_item("list", 0, "[1,2]");
    end_row(7);
    add_item("loss", 0, "0.5");
    add_item("train/global_step", 0, "40");
    end_row(8);
    const struct log *log = read_good(&arena);
    assert_int_equal(log->step[0], 0); /* the row without train/global_step */
    assert_int_equal(log->step[1], 40);
    logs_expect(log, "loss", 0, 0.693, 1e-4);
    logs_expect(log, "acc", 0, 1.0, 0.0);
    assert_null(log_column_by_source(log, "list"));
    arena_close(&arena);
}

static void verify_refusals(void **state) {
    (void)state;
    begin(":W&B", 0);
    add_item("loss", 0, "0.5");
    end_row(0);
    const size_t good = file.length;
    file.at[20] ^= 1;
    expect_refusal("record at byte 7: expected checksum");
    file.at[20] ^= 1;
    put_record(&file, "\x12\xff\xff\x03", 4); /* a length beyond the record */
    expect_refusal("expected a record of W&B");
    file.length = good;
    const uint32_t sum = framed_sum(3, (const unsigned char *)"x", 1);
    const unsigned char middle[8] = {(unsigned char)sum,
                                     (unsigned char)(sum >> 8),
                                     (unsigned char)(sum >> 16),
                                     (unsigned char)(sum >> 24),
                                     1,
                                     0,
                                     3,
                                     'x'};
    put(&file, middle, sizeof middle);
    expect_refusal("expected the first part of a record, got type 3");
    begin(":SWL", 1);
    put_record(&file, "", 0);
    expect_refusal("expected version 2 of SwanLab's files (0.9.8 and later), got 1");
    begin(":SWL", 2);
    put_record(&file, "\x6a\x05\x0a\x09x", 5);
    expect_refusal("expected a record of SwanLab");
}

/* Every beginning gives the rows before it, or an error with a text. */
static void verify_every_beginning(void **state) {
    size_t cuts = 0;
    (void)state;
    begin(":W&B", 0);
    for (int i = 0; i < 20; i++) {
        add_item("loss", 0, "0.5");
        end_row(i);
    }
    for (size_t end = 1; end < file.length; end++) {
        struct arena arena = ARENA_EMPTY;
        struct log *log;
        if (read_file(&arena, end, &log) == STATUS_OK) {
            assert_true(log->rows < 20);
            assert_int_equal(log->step[log->rows - 1], log->rows);
            cuts += (size_t)logs_has_note(log, "ends inside a record");
        } else {
            assert_non_null(strstr(status_text(), "expected"));
        }
        arena_close(&arena);
    }
    assert_true(cuts > file.length / 2);
}

/* The file ends behind the first part of a record, at the end of a block. */
static void validate_an_end_between_parts(void **state) {
    static char long_text[40000];
    struct arena arena = ARENA_EMPTY;
    struct log *log;
    (void)state;
    memset(long_text, '"', sizeof long_text - 1);
    begin(":W&B", 0);
    add_item("loss", 0, "0.5");
    end_row(0);
    add_item("loss", 0, "0.25");
    add_item("note", 0, long_text);
    end_row(1);
    assert_int_equal(read_file(&arena, FRAMED_BLOCK, &log), STATUS_OK);
    assert_int_equal(log->rows, 1);
    assert_true(logs_has_note(log, "ends inside a record"));
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_files_of_the_libraries),
        cmocka_unit_test(verify_records_across_blocks),
        cmocka_unit_test(validate_steps_and_texts),
        cmocka_unit_test(verify_refusals),
        cmocka_unit_test(verify_every_beginning),
        cmocka_unit_test(validate_an_end_between_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
