/* SPDX-License-Identifier: Apache-2.0
 * labels: unit
 * The interface for other trainers: what is put comes back, pieces of a tensor give the digest of
 * the whole, what is wrong is refused by a sentence, and a killed writer leaves every update that
 * it ended. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/arena.h"
#include "determinism/certify.h"
#include "determinism/digest.h"
#include "determinism/foreign.h"
#include "determinism/keyed_digest.h"
#include "determinism/trace.h"
#include "determinism/trace/trace_look.h"
#include "determinism/trace/twinstep_trace.h"

static const uint64_t shapes[2][2] = {{2, 3}, {3, 0}};
static const struct twinstep_trace_tensor tensors[2] = {{"weight", "f32", 2, shapes[0], 0},
                                                        {"bias", "bf16", 1, shapes[1], 1}};
static const char *const phases[] = {"forward", "backward", "optimize"};
static const struct twinstep_trace_options plain = {.writer = "test",
                                                    .writer_version = "7",
                                                    .configuration = "lr: 0.5\n",
                                                    .groups = 2,
                                                    .tensors = tensors,
                                                    .tensor_count = 2,
                                                    .phases = phases,
                                                    .phase_count = 3};
static char folder[] = "/tmp/twinstep-writer-XXXXXX";
static char path[64], part[80];

static void done(int failed) {
    if (failed) fail_msg("%s", twinstep_trace_error());
}

static float weight(uint64_t step, size_t i) {
    return (float)step + 0.25f * (float)i;
}

/* Ends one update; the weight comes in two pieces, the later one first. */
static void put_update(struct twinstep_trace *trace, uint64_t step) {
    float values[6];
    const uint16_t bias[3] = {(uint16_t)step, 1, 2};
    for (size_t i = 0; i < 6; i++)
        values[i] = weight(step, i);
    done(twinstep_trace_phase(trace, "forward"));
    done(twinstep_trace_put(trace, "loss", 1.0 / (double)step));
    done(twinstep_trace_put(trace, "tokens", 100));
    done(twinstep_trace_bytes(trace, "digest_batch", &step, sizeof step));
    done(twinstep_trace_phase(trace, "optimize"));
    done(twinstep_trace_phase(trace, "forward"));
    done(twinstep_trace_put_group(trace, "lr_applied", 0, 0.5));
    done(twinstep_trace_put_group(trace, "lr_applied", 1, 0.25));
    done(twinstep_trace_put_tensor(trace, "grad_norm", 1, 3.0));
    done(twinstep_trace_digest(trace, "digest_parameter", 0, values + 4, 4, 2));
    done(twinstep_trace_digest(trace, "digest_parameter", 0, values, 0, 4));
    done(twinstep_trace_sum(trace, "digest_parameter", 1, keyed_sum(bias, 2, 0, 3)));
    done(twinstep_trace_end(trace, step));
}

static void write_run(uint64_t updates) {
    struct twinstep_trace_options options = plain;
    struct twinstep_trace *trace;
    options.overwrite = 1;
    done(twinstep_trace_open(path, &options, &trace));
    for (uint64_t k = 1; k <= updates; k++)
        put_update(trace, k);
    done(twinstep_trace_close(trace, 1));
}

static const struct trace_run *read_run(const char *from, struct arena *arena,
                                        struct trace_image **image) {
    if (trace_open(from, arena, image) != STATUS_OK) fail_msg("%s", status_text());
    return &(*image)->runs[0];
}

static void validate_what_is_put(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct trace_image *image;
    struct certificate certificate;
    struct digest digest;
    float values[6];
    write_run(5);
    const struct trace_run *run = read_run(path, &arena, &image);
    const struct record *third = &run->records[2];
    assert_string_equal(image->writer, "test");
    assert_string_equal(run->plan.configuration, "lr: 0.5\n");
    assert_string_equal(run->plan.foreign->digest, "keyed 1");
    assert_string_equal(run->plan.foreign->shapes[0], "2,3");
    assert_int_equal(run->plan.foreign->groups[1], 1);
    assert_int_equal(run->updates, 5);
    assert_true(third->reals[REAL_LOSS] == 1.0 / 3.0);
    assert_true(third->reals[REAL_GRAD_NORM] != third->reals[REAL_GRAD_NORM]);
    assert_int_equal(third->integers[INTEGER_TOKENS], 100);
    assert_int_equal(third->integers[INTEGER_SKIPPED], -1);
    assert_true(third->groups[1][GROUP_LR_APPLIED] == 0.25);
    assert_true(third->tensors[1][TENSOR_GRAD_NORM] == 3.0);
    assert_true(third->tensors[0][TENSOR_GRAD_NORM] != third->tensors[0][TENSOR_GRAD_NORM]);
    assert_int_equal(third->phase_places[0][PHASE_PLACE], 0);
    assert_int_equal(third->phase_places[1][PHASE_PLACE], -1);
    assert_int_equal(third->phase_places[2][PHASE_PLACE], 1);
    for (size_t i = 0; i < 6; i++)
        values[i] = weight(3, i);
    digest_keyed("weight", "f32", 2, shapes[0], keyed_sum(values, 4, 0, 6), &digest);
    assert_memory_equal(third->tensor_digests[0][TENSOR_DIGEST_PARAMETER], digest.byte,
                        DIGEST_BYTES);
    certify_run(image, run, &certificate);
    assert_int_equal(certificate.state, CERTIFY_SOUND);
    assert_int_equal(certificate.checked, 5);
    assert_int_equal(run->derived, 0);
    assert_int_equal(run->unchecked, 0);
    arena_close(&arena);
}

/* Ends an update of which `rates` bits say the groups that have an LR. */
static void put_rates(struct twinstep_trace *trace, uint64_t step, unsigned rates, int skipped) {
    for (uint32_t t = 0; t < 2; t++) {
        done(twinstep_trace_sum(trace, "digest_parameter", t, step));
        if ((rates >> t & 1u) != 0) done(twinstep_trace_put_group(trace, "lr_applied", t, 0.5));
    }
    done(twinstep_trace_put(trace, "skipped", skipped));
    done(twinstep_trace_end(trace, step));
}

/* A group that took no step has no LR: its row is chained where it says so, and nowhere else. */
static void validate_rows_without_a_step(void **state) {
    (void)state;
    static const struct {
        unsigned rates;
        int skipped, sound;
    } rows[] = {{0, 1, 1}, {1, 0, 1}, {2, 0, 1}, {3, 0, 1}, {0, 0, 0}, {0, -1, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct arena arena = ARENA_EMPTY;
        struct twinstep_trace_options options = plain;
        struct twinstep_trace *trace;
        struct trace_image *image;
        struct certificate certificate;
        options.overwrite = 1;
        done(twinstep_trace_open(path, &options, &trace));
        put_rates(trace, 1, 3, 0);
        put_rates(trace, 2, rows[i].rates, rows[i].skipped);
        put_rates(trace, 3, 3, 0);
        done(twinstep_trace_close(trace, 1));
        const struct trace_run *run = read_run(path, &arena, &image);
        certify_run(image, run, &certificate);
        assert_int_equal(certificate.state, rows[i].sound ? CERTIFY_SOUND : CERTIFY_UNTESTABLE);
        assert_int_equal(certificate.checked, rows[i].sound ? 3 : 0);
        if (!rows[i].sound)
            assert_non_null(strstr(certificate.why, "update 2 has no lr_applied[0]"));
        arena_close(&arena);
    }
}

/* What the writer makes is whole, and every name in it is one that a reader knows. */
static void verify_nothing_is_noted(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct foreign_report report;
    write_run(5);
    if (foreign_check(path, &arena, &report) != STATUS_OK) fail_msg("%s", status_text());
    assert_int_equal(report.foreign, 1);
    if (report.problem_count > 0) fail_msg("problem: %s", report.problems[0]);
    if (report.note_count > 0) fail_msg("note: %s", report.notes[0]);
    arena_close(&arena);
}

static void refused(int failed, const char *text) {
    if (!failed || strstr(twinstep_trace_error(), text) == NULL)
        fail_msg("expected \"%s\", got %d: %s", text, failed, twinstep_trace_error());
}

static void verify_refusals(void **state) {
    (void)state;
    struct twinstep_trace_options options = plain;
    struct twinstep_trace_tensor odd = {"odd", "f31", 1, shapes[1], 0};
    struct twinstep_trace *trace;
    write_run(1);
    refused(twinstep_trace_open(path, &plain, &trace), "exists");
    assert_null(trace);
    options.writer = "t"; /* a name of one letter is one: what is refused is the file */
    refused(twinstep_trace_open(path, &options, &trace), "exists");
    options.overwrite = 1;
    options.writer = NULL;
    refused(twinstep_trace_open(path, &options, &trace), "name of the writer");
    options.writer = "";
    refused(twinstep_trace_open(path, &options, &trace), "name of the writer");
    options.writer = "test";
    options.rank = 1;
    refused(twinstep_trace_open(path, &options, &trace), "rank below 1, got 1");
    options.rank = 0;
    options.tensors = &odd;
    options.tensor_count = 1;
    refused(twinstep_trace_open(path, &options, &trace), "got \"f31\"");
    odd.dtype = "f32";
    odd.group = 2;
    refused(twinstep_trace_open(path, &options, &trace), "group below 2, got 2");
    odd.group = 0;
    odd.rank = 9;
    refused(twinstep_trace_open(path, &options, &trace), "at most 8 axes, got 9");
    refused(twinstep_trace_open("/nowhere/at/all.h5", &plain, &trace), "/nowhere/at/all.h5");
    options = plain;
    options.overwrite = 1;
    done(twinstep_trace_open(path, &options, &trace));
    refused(twinstep_trace_put(trace, "los", 1.0), "\"los\" is no column of an update");
    refused(twinstep_trace_put(trace, "tokens", 1.5), "expected a whole number, got 1.5");
    refused(twinstep_trace_put_group(trace, "lr", 0, 1.0),
            "\"lr\" is no column of a parameter group");
    refused(twinstep_trace_put_group(trace, "lr_applied", 2, 1.0), "group below 2, got 2");
    refused(twinstep_trace_put_tensor(trace, "grad_norm", 2, 1.0), "tensor below 2, got 2");
    refused(twinstep_trace_phase(trace, "fetch"), "\"fetch\" is no phase of the options");
    refused(twinstep_trace_digest(trace, "digest_weights", 0, "", 0, 0), "no digest of a tensor");
    refused(twinstep_trace_digest(trace, "digest_parameter", 0, "", 5, 2), "elements below 6");
    refused(twinstep_trace_bytes(trace, "digest_root", "", 0), "digest_batch or digest_rng");
    put_update(trace, 4);
    refused(twinstep_trace_end(trace, 4), "update 4 comes after update 4");
    done(twinstep_trace_close(trace, 0));
    done(twinstep_trace_close(NULL, 1));
}

/* Runs of no tensor, of one, and of one with no axis or with as many as there may be; of one group,
 * of no phase and of one. A run without tensors has no kind of digest; every other one has. */
static void validate_the_least_and_the_most(void **state) {
    (void)state;
    static const uint64_t eight[8] = {2, 1, 1, 1, 1, 1, 1, 3};
    static const struct {
        uint32_t tensors, axes, groups, phases;
        const char *digest, *shape;
    } cases[] = {{0, 0, 1, 0, "", NULL},
                 {1, 0, 1, 1, "keyed 1", ""},
                 {1, 8, 2, 0, "keyed 1", "2,1,1,1,1,1,1,3"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct twinstep_trace_tensor one = {"one", "f32", cases[i].axes, eight,
                                                  cases[i].groups - 1};
        struct twinstep_trace_options options = plain;
        struct arena arena = ARENA_EMPTY;
        struct twinstep_trace *trace;
        struct trace_image *image;
        options.overwrite = 1;
        options.tensors = &one;
        options.tensor_count = cases[i].tensors;
        options.groups = cases[i].groups;
        options.phase_count = cases[i].phases;
        done(twinstep_trace_open(path, &options, &trace));
        done(twinstep_trace_put(trace, "loss", 0.5));
        done(twinstep_trace_end(trace, 1));
        done(twinstep_trace_close(trace, 1));
        const struct trace_run *const run = read_run(path, &arena, &image);
        assert_string_equal(run->plan.foreign->digest, cases[i].digest);
        assert_int_equal(run->plan.shape.tensors, cases[i].tensors);
        assert_int_equal(run->plan.shape.groups, cases[i].groups);
        assert_int_equal(run->plan.shape.phases, cases[i].phases);
        if (cases[i].tensors > 0) {
            assert_string_equal(run->plan.tensors[0], "one");
            assert_string_equal(run->plan.foreign->shapes[0], cases[i].shape);
            assert_int_equal(run->plan.foreign->groups[0], cases[i].groups - 1);
        }
        assert_int_equal(run->updates, 1);
        assert_true(run->records[0].reals[REAL_LOSS] == 0.5);
        arena_close(&arena);
    }
}

/* Every column of an update, of a group and of a tensor takes a number under its own name, gives it
 * back, and says nothing of the next update, which puts none. */
static void validate_every_column(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct twinstep_trace_options options = plain;
    struct twinstep_trace *trace;
    struct trace_image *image;
    options.overwrite = 1;
    done(twinstep_trace_open(path, &options, &trace));
    for (uint64_t step = 1; step <= 3; step++) {
        for (int i = 0; i < RECORD_REALS && step != 2; i++)
            done(twinstep_trace_put(trace, record_reals[i].name, 0.5 * (double)step + i));
        for (int i = 0; i < RECORD_INTEGERS && step != 2; i++)
            done(twinstep_trace_put(trace, record_integers[i].name, (double)step + 8.0 * i));
        for (uint32_t k = 0; k < 2 && step != 2; k++) {
            for (int i = 0; i < RECORD_GROUPS; i++)
                done(twinstep_trace_put_group(trace, record_groups[i].name, k,
                                              (double)step + 8.0 * i + 0.25 * k));
            for (int i = 0; i < RECORD_TENSORS; i++)
                done(twinstep_trace_put_tensor(trace, record_tensors[i].name, k,
                                               (double)step + 8.0 * i + 0.25 * k));
            for (int i = 0; i < RECORD_TENSOR_DIGESTS; i++)
                done(twinstep_trace_sum(trace, record_tensor_digests[i].name, k,
                                        step + 8 * (uint64_t)i + 100 * k));
        }
        done(twinstep_trace_end(trace, step));
    }
    done(twinstep_trace_close(trace, 1));
    const struct trace_run *const run = read_run(path, &arena, &image);
    assert_int_equal(run->updates, 3);
    for (uint64_t step = 1; step <= 3; step++) {
        static const uint8_t none[DIGEST_BYTES] = {0};
        const struct record *const row = &run->records[step - 1];
        const int put = step != 2;
        for (int i = 0; i < RECORD_REALS; i++)
            assert_true(put ? row->reals[i] == 0.5 * (double)step + i : isnan(row->reals[i]));
        for (int i = 0; i < RECORD_INTEGERS; i++)
            assert_int_equal(row->integers[i], put ? (int64_t)step + 8 * i : -1);
        for (uint32_t k = 0; k < 2; k++) {
            for (int i = 0; i < RECORD_GROUPS; i++)
                assert_true(put ? row->groups[k][i] == (double)step + 8.0 * i + 0.25 * k
                                : isnan(row->groups[k][i]));
            for (int i = 0; i < RECORD_TENSORS; i++)
                assert_true(put ? row->tensors[k][i] == (double)step + 8.0 * i + 0.25 * k
                                : isnan(row->tensors[k][i]));
            for (int i = 0; i < RECORD_TENSOR_DIGESTS; i++) {
                struct digest digest;
                digest_keyed(tensors[k].name, tensors[k].dtype, tensors[k].rank, shapes[k],
                             step + 8 * (uint64_t)i + 100 * k, &digest);
                assert_memory_equal(row->tensor_digests[k][i], put ? digest.byte : none,
                                    DIGEST_BYTES);
            }
        }
    }
    arena_close(&arena);
}

/* Whole numbers from -1 on up to the last that a double tells from the next; names of one kind of
 * column are none of another; and pieces of a tensor end where it ends. */
static void verify_ends_of_what_is_put(void **state) {
    (void)state;
    static const struct {
        double value;
        int taken;
    } wholes[] = {{-1.0, 1},   {-2.0, 0},       {-0.5, 0},        {0.0, 1},
                  {0.5, 0},    {0x1p53 - 1, 1}, {0x1p53, 0},      {-0x1p60, 0},
                  {0x1p64, 0}, {1.0, 1},        {(double)NAN, 0}, {(double)INFINITY, 0}};
    static const struct {
        uint64_t first, count;
        int taken;
    } pieces[] = {{0, 0, 1}, {0, 6, 1}, {0, 7, 0}, {6, 0, 1}, {6, 1, 0},
                  {5, 1, 1}, {5, 2, 0}, {7, 0, 0}, {1, 5, 1}, {1, UINT64_MAX, 0}};
    const float values[6] = {0};
    struct twinstep_trace_options options = plain;
    struct twinstep_trace *trace;
    options.overwrite = 1;
    done(twinstep_trace_open(path, &options, &trace));
    for (size_t i = 0; i < COUNT_OF(wholes); i++)
        assert_int_equal(twinstep_trace_put(trace, "tokens", wholes[i].value) == 0,
                         wholes[i].taken);
    for (size_t i = 0; i < COUNT_OF(pieces); i++)
        assert_int_equal(twinstep_trace_digest(trace, "digest_parameter", 0, values,
                                               pieces[i].first, pieces[i].count) == 0,
                         pieces[i].taken);
    refused(twinstep_trace_digest(trace, "digest_parameter", 0, values, 5, 2),
            "trace: tensor weight: expected elements below 6, got 2 of 5 on");
    refused(twinstep_trace_put(trace, "lr_applied", 1.0),
            "trace: \"lr_applied\" is no column of an update (docs/FOREIGN.md has their names)");
    refused(twinstep_trace_put_group(trace, "loss", 0, 1.0),
            "\"loss\" is no column of a parameter group");
    refused(twinstep_trace_put_tensor(trace, "loss", 0, 1.0), "\"loss\" is no column of a tensor");
    refused(twinstep_trace_sum(trace, "grad_norm", 0, 1), "\"grad_norm\" is no digest of a tensor");
    for (uint32_t k = 0; k < 4; k++) {
        assert_int_equal(twinstep_trace_put_group(trace, "lr_applied", k, 1.0) == 0, k < 2);
        assert_int_equal(twinstep_trace_put_tensor(trace, "grad_norm", k, 1.0) == 0, k < 2);
        assert_int_equal(twinstep_trace_sum(trace, "digest_gradient", k, 1) == 0, k < 2);
        assert_int_equal(twinstep_trace_digest(trace, "digest_gradient", k, values, 0, 0) == 0,
                         k < 2);
    }
    for (int i = 0; i < RECORD_DIGESTS; i++)
        assert_int_equal(twinstep_trace_bytes(trace, record_digests[i].name, "x", 1) == 0,
                         i == DIGEST_BATCH || i == DIGEST_RNG);
    done(twinstep_trace_close(trace, 0));
}

static void verify_killed_writer(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct trace_image *image;
    int ends[2];
    char byte;
    unlink(path);
    unlink(part);
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct twinstep_trace *trace;
        if (twinstep_trace_open(path, &plain, &trace) != 0) _exit(1);
        for (uint64_t k = 1; k <= 7; k++)
            put_update(trace, k);
        if (write(ends[1], "x", 1) != 1) _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ends[0]);
    close(ends[1]);
    const struct trace_run *run = read_run(part, &arena, &image);
    assert_int_equal(run->updates, 7);
    assert_int_equal(image->complete, 0);
    if (trace_recover(part, path, 0) != STATUS_OK) fail_msg("%s", status_text());
    run = read_run(path, &arena, &image);
    assert_int_equal(run->updates, 7);
    assert_string_equal(run->plan.foreign->dtypes[1], "bf16");
    assert_int_equal(run->records[6].phase_places[2][PHASE_PLACE], 1);
    arena_close(&arena);
}

/* Which names may go to a terminal: well-formed UTF-8 as The Unicode Standard, table 3-7, has it,
 * at the ends of each of its ranges, without the control characters of both halves of Latin-1. */
static void validate_characters(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t length;
    } rows[] = {
        {"\x1f", 0},
        {" ", 1},
        {"~", 1},
        {"\x7f", 0},
        {"\x80", 0},
        {"\xbf", 0},
        {"\xc1\xbf", 0},
        {"\xc2\x80", 0},
        {"\xc2\x9f", 0},
        {"\xc2\xa0", 2},
        {"\xdf\xbf", 2},
        {"\xc2 ", 0},
        {"\xe0\x9f\xbf", 0},
        {"\xe0\xa0\x80", 3},
        {"\xe4\xb8\xad", 3},
        {"\xed\x9f\xbf", 3},
        {"\xed\xa0\x80", 0},
        {"\xed\xbf\xbf", 0},
        {"\xee\x80\x80", 3},
        {"\xef\xbf\xbf", 3},
        {"\xe4\xb8 ", 0},
        {"\xf0\x8f\xbf\xbf", 0},
        {"\xf0\x90\x80\x80", 4},
        {"\xf4\x8f\xbf\xbf", 4},
        {"\xf4\x90\x80\x80", 0},
        {"\xf8\x90\x80\x80", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (look_character(rows[i].text) != rows[i].length)
            fail_msg("row %zu: expected a character of %zu bytes, got %zu", i, rows[i].length,
                     look_character(rows[i].text));
}

static int make_folder(void **state) {
    (void)state;
    if (mkdtemp(folder) == NULL) return -1;
    snprintf(path, sizeof path, "%s/run.h5", folder);
    snprintf(part, sizeof part, "%s.part", path);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(path);
    unlink(part);
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_what_is_put),
        cmocka_unit_test(validate_rows_without_a_step),
        cmocka_unit_test(verify_nothing_is_noted),
        cmocka_unit_test(verify_refusals),
        cmocka_unit_test(validate_the_least_and_the_most),
        cmocka_unit_test(validate_every_column),
        cmocka_unit_test(verify_ends_of_what_is_put),
        cmocka_unit_test(verify_killed_writer),
        cmocka_unit_test(validate_characters),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
