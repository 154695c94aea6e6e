/* SPDX-License-Identifier: Apache-2.0
 * labels: unit
 * TensorBoard event files: values and quanta, rows, resumes, checksums against a flip of every bit,
 * files that end at every byte, and records that are no events. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/real.h"
#include "logs/tfrecord.h"
#include "tests/logs/helper_events.h"
#include "tests/logs/helper_logs.h"

#define N real_nan_f64()

static struct events events; /* too large for a stack */

static struct events *start(void) {
    events.length = 0;
    events_version(&events);
    return &events;
}

static enum status import(struct arena *arena, const unsigned char *bytes, size_t length,
                          struct log **out) {
    struct log_options options;
    log_options_init(&options);
    return log_import_bytes("events", bytes, length, &options, arena, out);
}

static struct log *read_events(struct arena *arena, const struct events *e) {
    struct log *log = NULL;
    if (import(arena, e->bytes, e->length, &log) != STATUS_OK) fail_msg("%s", status_text());
    assert_string_equal(log->format, "tensorboard");
    return log;
}

/* The CRC-32C values are those of RFC 3720, B.4; the mask is worked out by hand. */
static void validate_checksum(void **state) {
    unsigned char bytes[32];
    (void)state;
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(tfrecord_crc32c(bytes, 32), 0x8a9136aau);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(tfrecord_crc32c(bytes, 32), 0x62a8ab43u);
    for (int i = 0; i < 32; i++)
        bytes[i] = (unsigned char)i;
    assert_int_equal(tfrecord_crc32c(bytes, 32), 0x46dd794eu);
    assert_int_equal(tfrecord_crc32c((const unsigned char *)"123456789", 9), 0xe3069283u);
    assert_int_equal(tfrecord_mask(0u), 0xa282ead8u);
    assert_int_equal(tfrecord_mask(0x00008001u), 0x00020001u + 0xa282ead8u);
}

/* Makes what transformers writes for two updates, an evaluation and the end. */
static struct events *hugging_face(void) {
    struct events *e = start();
    events_tensor(e, 0, "args/text_summary", 7, 4, 0.0);
    events_scalar(e, 0, "eval/loss", 3.5f);
    events_scalar(e, 1, "train/loss", 0.6931f);
    events_scalar(e, 1, "train/grad_norm", 18.4f);
    events_scalar(e, 1, "train/learning_rate", 0.0f);
    events_scalar(e, 1, "train/epoch", 0.5f);
    events_scalar(e, 2, "train/loss", real_nan_f32());
    events_scalar(e, 2, "train/grad_norm", real_inf_f32());
    events_scalar(e, 2, "train/learning_rate", 5e-7f);
    events_scalar(e, 2, "train/epoch", 1.0f);
    events_scalar(e, 2, "eval/loss", 3.25f);
    events_scalar(e, 2, "eval/epoch", 1.0f);
    events_scalar(e, 2, "train/train_loss", 0.5f);
    events_scalar(e, 2, "train/epoch", 1.0f);
    return e;
}

static void validate_hugging_face(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log = read_events(&arena, hugging_face());
    assert_int_equal(log->rows, 2);
    assert_int_equal(log->step[0], 1);
    assert_int_equal(log->step[1], 2);
    assert_int_equal(log->line[0], 0);
    assert_int_equal(log->step_base, 1);
    logs_expect(log, "train/loss", 0, (double)0.6931f, 0x1p-24);
    logs_expect(log, "train/loss", 1, N, 0.0);
    logs_expect(log, "train/grad_norm", 0, (double)18.4f, 0x1p-19);
    logs_expect(log, "train/grad_norm", 1, real_inf_f64(), 0.0);
    logs_expect(log, "train/learning_rate", 1, (double)5e-7f, 0x1p-44);
    logs_expect(log, "eval/loss", 0, 0.0, N); /* that of step 0 is no update */
    logs_expect(log, "eval/loss", 1, 3.25, 0x1p-22);
    logs_expect(log, "train/epoch", 1, 1.0, 0x1p-23);
    assert_string_equal(log_column_of(log, LOG_LOSS)->source, "train/loss");
    assert_int_equal(log_column_of(log, LOG_LOSS)->windowed, 1);
    assert_string_equal(log_column_of(log, LOG_LR_LOGGED)->source, "train/learning_rate");
    assert_string_equal(log_column_of(log, LOG_GRAD_NORM)->source, "train/grad_norm");
    assert_string_equal(log_column_of(log, LOG_EVAL_LOSS)->source, "eval/loss");
    assert_int_equal(log->note_count, 0);
    arena_close(&arena);
}

/* A double that went through binary32 must lie within half the quantum of what is read. */
static void verify_quantum_holds_the_double(void **state) {
    static const double rates[] = {5e-7, 1.0 / 3.0, 4.722222222222222e-05, 1e-30,
                                   0.1,  7e30,      0x1.fffffe8p127 /* rounds to the largest */};
    struct arena arena = ARENA_EMPTY;
    struct events *e = start();
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rates); i++)
        events_scalar(e, (int64_t)i + 1, "lr", (float)rates[i]);
    const struct log_column *c = log_column_of(read_events(&arena, e), LOG_LR_LOGGED);
    for (size_t i = 0; i < COUNT_OF(rates); i++)
        assert_int_equal(log_compare(c->value[i], (double)c->quantum[i], rates[i], 0.0),
                         LOG_WITHIN);
    arena_close(&arena);
}

static void validate_tensors(void **state) {
    struct arena arena = ARENA_EMPTY;
    struct events *e = start();
    (void)state;
    events_tensor(e, 1, "content32", 1, 4, 0.1);
    events_tensor(e, 1, "content64", 2, 4, 0.1);
    events_tensor(e, 1, "packed32", 1, 5, 0.1);
    events_tensor(e, 1, "packed64", 2, 6, 0.1);
    events_tensor(e, 1, "plain32", 1, 50, 0.1);
    events_tensor(e, 1, "plain64", 2, 60, 0.1);
    events_tensor(e, 1, "text", 7, 4, 0.1);
    events_tensor(e, 1, "half", 19, 4, 0.1);
    static const char two[] = "\x10\x01\x2a\x13\x0a\x11\x0a\x01t\x42\x0c\x08\x01"
                              "\x2d\x00\x00\x80\x3f\x2d\x00\x00\x00\x40";
    events_record(e, two, sizeof two - 1); /* a tensor of two values is no scalar */
    const struct log *log = read_events(&arena, e);
    static const char *const names[] = {"content32", "packed32", "plain32",
                                        "content64", "packed64", "plain64"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        logs_expect(log, names[i], 0, i < 3 ? (double)0.1f : 0.1, i < 3 ? 0x1p-27 : 0.0);
    assert_int_equal(log->column_count, 6);
    arena_close(&arena);
}

/* Megatron writes each tag over samples, too, and Lightning a hp_metric; both are left out. */
static void validate_left_out_tags(void **state) {
    struct arena arena = ARENA_EMPTY;
    struct events *e = start();
    (void)state;
    for (int64_t k = 1; k <= 2; k++) {
        events_scalar(e, k, "learning-rate", 1e-4f);
        events_scalar(e, 8 * k, "learning-rate vs samples", 1e-4f);
        events_scalar(e, k, "lm loss", 2.5f);
        events_scalar(e, 8 * k, "lm loss vs samples", 2.5f);
        events_scalar(e, k, "grad-norm", 1.5f);
        events_scalar(e, 0, "hp_metric", -1.0f);
    }
    const struct log *log = read_events(&arena, e);
    assert_int_equal(log->rows, 2);
    assert_int_equal(log->column_count, 3);
    assert_non_null(log_column_of(log, LOG_LOSS));
    assert_non_null(log_column_of(log, LOG_LR_LOGGED));
    assert_non_null(log_column_of(log, LOG_GRAD_NORM));
    arena_close(&arena);
}

/* Tags written series by series must give the same rows as tags written step by step. */
static void verify_order_of_tags(void **state) {
    struct arena arena = ARENA_EMPTY;
    struct events *e = start();
    (void)state;
    for (int64_t k = 1; k <= 5; k++)
        events_scalar(e, k, "loss", (float)k);
    for (int64_t k = 1; k <= 5; k++)
        events_scalar(e, k, "lr", (float)k + 10);
    for (int64_t k = 2; k <= 11; k++) /* each twice, as an epoch may be */
        events_scalar(e, k / 2, "epoch", (float)(k / 2) / 8);
    const struct log *log = read_events(&arena, e);
    assert_int_equal(log->rows, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(log->step[i], (int64_t)i + 1);
        assert_int_equal(log->part[i], 0);
        assert_true(log_column_of(log, LOG_LOSS)->value[i] == (double)(i + 1));
        assert_true(log_column_of(log, LOG_LR_LOGGED)->value[i] == (double)(i + 11));
    }
    arena_close(&arena);
}

static void validate_resume_in_a_file(void **state) {
    static const int64_t steps[] = {1, 2, 3, 2, 3, 3};
    static const uint32_t parts[] = {0, 0, 0, 1, 1, 1};
    struct arena arena = ARENA_EMPTY;
    struct events *e = start();
    (void)state;
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        events_scalar(e, steps[i], "loss", (float)i);
        events_scalar(e, steps[i], "lr", (float)i / 8);
    }
    const struct log *log = read_events(&arena, e);
    assert_int_equal(log->rows, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(log->step[i], steps[i]);
        assert_int_equal(log->part[i], parts[i]);
        assert_true(log_column_of(log, LOG_LOSS)->value[i] == (double)i);
    }
    arena_close(&arena);
}

static void write_file(const char *folder, const char *name, const struct events *e) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(e->bytes, 1, e->length, file), e->length);
    assert_int_equal(fclose(file), 0);
}

/* A run has three files: before the resume, one that stayed empty, and after it. */
static void validate_several_files(void **state) {
    static const char *const names[] = {"events.out.tfevents.1.host", "events.out.tfevents.2.host",
                                        "events.out.tfevents.3.host"};
    static const int64_t steps[] = {1, 2, 3, 2, 3, 4};
    char folder[] = "/tmp/twinstep-test-XXXXXX", path[256];
    struct arena arena = ARENA_EMPTY;
    struct log_options options;
    struct log *log = NULL;
    (void)state;
    assert_non_null(mkdtemp(folder));
    for (size_t f = 0; f < 3; f++) {
        struct events *e = start();
        for (size_t i = f == 0 ? 0 : 3; f != 1 && i < (f == 0 ? 3 : 6); i++)
            events_scalar(e, steps[i], "train/loss", (float)i);
        write_file(folder, names[f], e);
    }
    log_options_init(&options);
    const enum status status = log_import(folder, &options, &arena, &log);
    for (size_t f = 0; f < 3; f++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[f]);
        remove(path);
    }
    rmdir(folder);
    if (status != STATUS_OK) fail_msg("%s", status_text());
    assert_int_equal(log->rows, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(log->step[i], steps[i]);
        assert_int_equal(log->part[i], i >= 3);
        assert_true(log->columns[0].value[i] == (double)i);
    }
    arena_close(&arena);
}

/* Every bit of the file is covered by a checksum, so every flip must be found. */
static void verify_every_flip_is_caught(void **state) {
    const struct events *e = hugging_face();
    static unsigned char damaged[4096];
    (void)state;
    assert_true(e->length < sizeof damaged);
    for (size_t bit = 0; bit < 8 * e->length; bit++) {
        struct arena arena = ARENA_EMPTY;
        struct log *log;
        memcpy(damaged, e->bytes, e->length);
        damaged[bit / 8] ^= (unsigned char)(1u << (bit % 8));
        if (import(&arena, damaged, e->length, &log) == STATUS_OK) fail_msg("bit %zu passes", bit);
        if (strstr(status_text(), "expected checksum") == NULL ||
            strstr(status_text(), "record at byte") == NULL)
            fail_msg("bit %zu: %s", bit, status_text());
        arena_close(&arena);
    }
}

/* A file that ends anywhere must give the rows before that, with a note, or say that it holds
 * none. */
static void verify_every_end(void **state) {
    const struct events *e = hugging_face();
    size_t logs = 0, noted = 0, last_rows = 0;
    (void)state;
    for (size_t end = 0; end <= e->length; end++) {
        struct arena arena = ARENA_EMPTY;
        struct log *log;
        unsigned char *bytes;
        assert_int_equal(arena_take(&arena, end, 1, "cut", &bytes), STATUS_OK);
        memcpy(bytes, e->bytes, end);
        if (import(&arena, bytes, end, &log) == STATUS_OK) {
            logs++;
            assert_true(log->rows >= last_rows && log->rows <= 2);
            last_rows = log->rows;
            noted += (size_t)logs_has_note(log, "ends inside a record");
        } else {
            assert_int_equal(last_rows, 0);
            assert_true(strlen(status_text()) > 10);
        }
        arena_close(&arena);
    }
    assert_int_equal(last_rows, 2);
    assert_true(noted > logs - 13 && noted < logs); /* all but the ends of records */
}

static void validate_header_only(void **state) {
    struct arena arena = ARENA_EMPTY;
    struct log *log;
    (void)state;
    const struct events *e = start();
    assert_int_equal(import(&arena, e->bytes, e->length, &log), STATUS_INPUT);
    assert_non_null(strstr(status_text(), "expected a log with numbers, got none"));
    arena_close(&arena);
}

/* The checksums are right, but the bytes are no event. */
static void validate_malformed_events(void **state) {
    static const struct {
        const char *bytes;
        size_t length;
    } cases[] = {
        {"\x2a\x05\x0a\x01", 4},                                  /* length beyond the end */
        {"\x2a\x03\x0a\x05x", 5},                                 /* the same, inside */
        {"\x2a\x04\x0a\x02\x0a\x05", 6},                          /* the same, in a value */
        {"\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12}, /* a varint of 11 bytes */
        {"\x10", 1},                                              /* no varint behind its key */
        {"\x09\x01\x02", 3},                                      /* a double of two bytes */
        {"\x0b", 1},                                              /* a group */
        {"\x00\x01", 2},                                          /* field 0 */
        {"\x2a\x0a\x0a\x08\x0a\x01t\x42\x03\x08\x01\x25", 12},    /* a tensor's float, cut */
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        struct events *e = start();
        struct log *log;
        events_record(e, cases[i].bytes, cases[i].length);
        if (import(&arena, e->bytes, e->length, &log) != STATUS_INPUT ||
            strstr(status_text(), "expected a TensorBoard event, got other bytes") == NULL)
            fail_msg("case %zu: %s", i, status_text());
        arena_close(&arena);
    }
}

/* Random bytes in an event's place must give an error or a log, and no crash (sanitizers watch). */
static void verify_random_events(void **state) {
    uint64_t random = 0x9e3779b97f4a7c15u;
    unsigned char bytes[64];
    (void)state;
    for (int round = 0; round < 3000; round++) {
        struct arena arena = ARENA_EMPTY;
        struct events *e = start();
        struct log *log;
        for (size_t i = 0; i < sizeof bytes; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            bytes[i] = (unsigned char)(random >> 56);
            if ((random >> 40 & 3) == 0) bytes[i] &= 0x2f; /* nearer to real keys and lengths */
        }
        bytes[0] = round % 2 ? 0x2a : bytes[0];
        events_record(e, bytes, (size_t)(random >> 33) % sizeof bytes);
        events_scalar(e, 1, "loss", 1.0f);
        if (import(&arena, e->bytes, e->length, &log) != STATUS_OK)
            assert_int_equal(strncmp(status_text(), "events: record at byte", 22), 0);
        arena_close(&arena);
    }
}

/* Where there are more tags than columns, the first ones are read. */
static void verify_many_tags(void **state) {
    struct arena arena = ARENA_EMPTY;
    struct events *e = start();
    char tag[32];
    (void)state;
    events_scalar(e, 1, "loss", 1.0f);
    for (int i = 0; i < 5000; i++) {
        snprintf(tag, sizeof tag, "tag/%d", i);
        events_scalar(e, 1, tag, 1.0f);
    }
    const struct log *log = read_events(&arena, e);
    assert_int_equal(log->rows, 1);
    assert_non_null(log_column_of(log, LOG_LOSS));
    assert_true(logs_has_note(log, "only the first"));
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_checksum),
        cmocka_unit_test(validate_hugging_face),
        cmocka_unit_test(verify_quantum_holds_the_double),
        cmocka_unit_test(validate_tensors),
        cmocka_unit_test(validate_left_out_tags),
        cmocka_unit_test(verify_order_of_tags),
        cmocka_unit_test(validate_resume_in_a_file),
        cmocka_unit_test(validate_several_files),
        cmocka_unit_test(verify_every_flip_is_caught),
        cmocka_unit_test(verify_every_end),
        cmocka_unit_test(validate_header_only),
        cmocka_unit_test(validate_malformed_events),
        cmocka_unit_test(verify_random_events),
        cmocka_unit_test(verify_many_tags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
