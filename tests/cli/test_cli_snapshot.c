/* SPDX-License-Identifier: Apache-2.0
 * labels: cli whole
 * run --checkpoint-every and replay --from: every stored state of every kind of run must continue
 * to the recorded digests; one that was changed, or that a build with another layout stored, must
 * be refused; and repeated files must be equal byte by byte. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <hdf5.h>

#include "base/arena.h"
#include "determinism/trace.h"
#include "tests/base/helper_size.h"
#include "tests/cli/helper_cli.h"

#define STEPS 6
#define SMALL                                                                                      \
    "  data: {max_len: 96}\n"                                                                      \
    "  model: {layers: 1, hidden: 16, heads: 2, mlp: 24}\n"

/* Records a trace, whatever the verdict. */
static void record(const char *scenario, const char *trace, const char *every) {
    const char *const words[] = {"run", scenario, "-o", trace, "--overwrite", "--checkpoint-every",
                                 every, NULL};
    struct said said = helper_say(words, NULL);
    if (said.code == 2 || said.code > 3) fail_msg("%s", said.err);
    helper_free(&said);
}

static void write_scenario(const char *name, const char *common, const char *test) {
    char text[2048];
    const int noisy = strstr(common, "mode: shuffled") != NULL;
    snprintf(text, sizeof text,
             "twinstep: 1\nname: %s\nsteps: %d\ncommon:\n" SMALL
             "%sarms: {baseline: {}, test: {%s}}\n%s",
             name, STEPS, common, test, noisy ? "floor: {replicates: 1, design: both}\n" : "");
    helper_write("s.yaml", text);
}

/* Opens a trace of the working folder. */
static struct trace_image *open_trace(const char *path, struct arena *arena) {
    struct trace_image *image;
    if (trace_open(path, arena, &image) != STATUS_OK) fail_msg("%s", status_text());
    return image;
}

static void count_skips(const char *trace, int least, int most) {
    struct arena arena = ARENA_EMPTY;
    const struct trace_run *run = trace_run_of(open_trace(trace, &arena), "test");
    int skips = 0;
    for (uint64_t i = 0; i < run->updates; i++)
        skips += run->records[i].integers[INTEGER_SKIPPED] == 1;
    assert_in_range(skips, least, most);
    arena_close(&arena);
}

/* From every update on, each run of the trace must be bit-equal, and must come from that update's
 * state. */
static void continues(const char *name, const char *common, const char *test) {
    write_scenario(name, common, test);
    record("s.yaml", "s.h5", "1");
    for (int from = 0; from < STEPS; from += (int)helper_size(3, 3, 1)) {
        char line[64], start[64], end[64];
        snprintf(line, sizeof line, "replay s.h5 --from %d", from);
        snprintf(start, sizeof start, "test: from the stored state of update %d\n", from);
        snprintf(end, sizeof end, "test: %d update%s replayed, bit-equal to the record\n",
                 STEPS - from, STEPS - from == 1 ? "" : "s");
        struct said said = helper_run(0, line);
        if (strstr(said.out, start) == NULL || strstr(said.out, end) == NULL)
            fail_msg("%s --from %d: %s", name, from, said.out);
        /* the hybrid of all causes may have forked later than this update */
        if (strstr(said.out, "differs") != NULL ||
            strstr(said.out, "baseline: no stored") != NULL ||
            strstr(said.out, "test: no stored") != NULL)
            fail_msg("%s --from %d: %s", name, from, said.out);
        helper_free(&said);
    }
}

static void verify_dropout(void **state) {
    (void)state;
    continues("dropout",
              "  batch: {size: 6, micro: 2}\n  dropout: {attention: 0.1, residual: 0.2}\n"
              "  rng: {kind: torch, sms: 1, threads_per_sm: 256}\n  clip: {max_norm: 0.1}\n",
              "rng: {kind: torch, sms: 2, threads_per_sm: 256}");
    continues("dropout-by-address",
              "  batch: {size: 6, micro: 2}\n  dropout: {attention: 0.1, residual: 0.2, "
              "embedding: 0.1}\n  clip: {max_norm: 0.1}\n",
              "batch: {micro: 3}");
}

static void verify_scaling(void **state) {
    (void)state;
    continues("scaled",
              "  batch: {size: 4, micro: 2}\n  numerics: {compute: f16}\n"
              "  loop: {skip: nonfinite, update: [unscale, clip, optimize, log, count, schedule, "
              "zero]}\n  scaler: {kind: dynamic, init_scale: 4096, growth_interval: 2}\n",
              "optimizer: {lr: 1e-3}");
    count_skips("s.h5", 1, STEPS - 1);
}

static void verify_optimizers(void **state) {
    (void)state;
    continues("masters",
              "  batch: {size: 4, micro: 2}\n  numerics: {param: bf16, master: f32, compute: "
              "bf16}\n  optimizer: {name: sgd, momentum: 0.9}\n",
              "optimizer: {nesterov: true}");
    continues("narrow",
              "  batch: {size: 4, micro: 2}\n  numerics: {param: bf16, compute: bf16}\n"
              "  clip: {max_norm: 0.1}\n",
              "optimizer: {lr: 1e-3}");
    continues("lion", "  batch: {size: 4, micro: 2}\n  optimizer: {name: lion}\n",
              "optimizer: {lr: 1e-5}");
    continues("sft", "  task: sft\n  batch: {size: 4, micro: 4}\n", "optimizer: {lr: 1e-5}");
}

static void verify_shuffled(void **state) {
    (void)state;
    continues("shuffled",
              "  batch: {size: 4, micro: 2}\n  numerics: {mode: shuffled}\n  shuffle: {chunk: "
              "4}\n",
              "seed: 3");
}

static void copy_file(const char *from, const char *to) {
    size_t length;
    char *bytes = helper_read(from, &length);
    helper_write_bytes(to, bytes, length);
    free(bytes);
}

/* Flips bit 0 of byte `at` of the stored state of the baseline after `step`. */
static void damage_state(const char *from, const char *to, uint64_t step, size_t at) {
    struct arena arena = ARENA_EMPTY;
    const struct trace_run *run = trace_run_of(open_trace(from, &arena), "baseline");
    const size_t bytes = (size_t)run->plan.snapshots.bytes;
    unsigned char *state;
    size_t length, found = 0;
    uint64_t index = 0;
    char *file = helper_read(from, &length);
    assert_int_equal(trace_snapshot_find(run, step, &index), 1);
    assert_int_equal(trace_snapshot_read(from, run, index, &arena, &state), STATUS_OK);
    for (size_t i = 0; i + bytes <= length && found == 0; i += 512) /* as the writer aligns */
        if (memcmp(file + i, state, bytes) == 0) {
            file[i + at] = (char)(file[i + at] ^ 1);
            found++;
        }
    assert_int_equal(found, 1);
    helper_write_bytes(to, file, length);
    free(file);
    arena_close(&arena);
}

static void record_plain(void) {
    write_scenario("plain", "  batch: {size: 2}\n", "optimizer: {lr: 1e-3}");
    record("s.yaml", "p.h5", "2");
}

/* certify of the trace whose baseline has a damaged state, and of its sound run. */
static void check_certificate(const char *damaged) {
    static const char wrong[] = "  states         DAMAGED: the stored state of update 2 does not "
                                "match its digest\n";
    char line[160], root[65];
    int number;
    struct said said = helper_run(0, "certify p.h5 --at 6");
    assert_int_equal(sscanf(said.out, "%d %64s", &number, root), 2);
    helper_free(&said);
    snprintf(line, sizeof line, "certify %s", damaged);
    said = helper_run(1, line);
    assert_non_null(strstr(said.out, wrong));
    assert_non_null(strstr(said.out, "  chain          sound"));
    assert_null(strstr(said.out, "  pin"));
    helper_free(&said);
    snprintf(line, sizeof line, "certify %s --json", damaged);
    said = helper_run(1, line);
    assert_non_null(strstr(said.out, "\"states\": 4"));
    assert_non_null(strstr(said.out, "\"states_read\": true"));
    assert_non_null(strstr(said.out, "\"states_damaged\": 1"));
    assert_non_null(strstr(said.out, "\"states_damaged_at\": [\n    2\n  ]"));
    helper_free(&said);
    snprintf(line, sizeof line, "certify %s --expect %s", damaged, root);
    helper_refuse(1, line, "the stored state of update 2 does not match its digest\n");
    snprintf(line, sizeof line, "certify %s --expect %s --skip-states", damaged, root);
    helper_accept(0, line);
    snprintf(line, sizeof line, "certify %s --skip-states", damaged);
    said = helper_run(0, line);
    assert_non_null(strstr(said.out, "  states         not read: 4 stored states\n"));
    helper_free(&said);
    snprintf(line, sizeof line, "certify %s --run test", damaged);
    said = helper_run(0, line);
    assert_non_null(
        strstr(said.out, "  states         as written: 4 stored states match their digests\n"));
    helper_free(&said);
}

static void validate_damage(void **state) {
    (void)state;
    static const size_t places[] = {0, 8, 300, 1000, 5000};
    record_plain();
    damage_state("p.h5", "d.h5", 2, 700);
    check_certificate("d.h5");
    for (size_t i = 0; i < COUNT_OF(places); i += helper_size(2, 2, 1)) {
        damage_state("p.h5", "d.h5", 2, places[i]);
        helper_refuse(2, "replay d.h5 --run baseline --from 2",
                      "d.h5: snapshots/baseline: damaged: the stored state of update 2 does not "
                      "match its digest");
        helper_refuse(2, "recover d.h5 -o r.h5", "does not match its digest");
        helper_accept(0, "replay d.h5 --run baseline --from 1"); /* each stands alone */
        helper_accept(0, "replay d.h5 --run baseline --from 4");
        helper_accept(0, "replay d.h5 --run test --from 2");
    }
}

#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"

/* One state is damaged after another, the last ones first: all are counted, the first eight named.
 */
static void verify_all_are_counted(void **state) {
    (void)state;
    static const char *const wanted[] = {
        "DAMAGED: the stored state of update 9 does not match its digest\n",
        "DAMAGED: 2 of 10 stored states do not match their digests: those of updates 5, 9\n",
        "DAMAGED: 10 of 10 stored states do not match their digests: those of updates 0, 1, 2, 3, "
        "4, 5, 6, 7 and 2 later ones\n"};
    static const uint64_t steps[] = {9, 5, 8, 7, 6, 4, 3, 2, 1, 0};
    struct said said;
    write_scenario("plain", "  batch: {size: 2}\n", "optimizer: {lr: 1e-3}");
    said = helper_run(1, "run s.yaml -o d.h5 --overwrite --checkpoint-every 1 --set steps=9");
    helper_free(&said);
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        damage_state("d.h5", "e.h5", steps[i], 700);
        copy_file("e.h5", "d.h5");
        if (i > 1 && i + 1 < COUNT_OF(steps)) continue;
        said = helper_run(1, "certify d.h5");
        assert_non_null(strstr(said.out, wanted[i > 1 ? 2 : i]));
        helper_free(&said);
    }
    helper_refuse(1, "certify d.h5 --expect " ZEROS, "6, 7 and 2 later ones\n");
    said = helper_run(1, "certify d.h5 --json");
    assert_non_null(strstr(said.out, "\"states_damaged\": 10"));
    assert_non_null(strstr(said.out, "6,\n    7\n  ]"));
    helper_free(&said);
}

/* Makes the trace one of version 1, which has no seals: what is refused below is the state. */
static void unseal(hid_t file) {
    const int64_t version = 1;
    const hid_t attribute = H5Aopen(file, "twinstep_trace", H5P_DEFAULT);
    assert_true(H5Awrite(attribute, H5T_NATIVE_INT64, &version) >= 0);
    H5Aclose(attribute);
    if (H5Lexists(file, "seal", H5P_DEFAULT) > 0)
        assert_true(H5Ldelete(file, "seal", H5P_DEFAULT) >= 0);
}

/* Writes an attribute as a build with another layout, version or byte order would have it. */
static void put_attribute(const char *path, const char *name, const char *text, int64_t value) {
    const hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(list, H5F_LIBVER_V110, H5F_LIBVER_V110);
    const hid_t file = H5Fopen(path, H5F_ACC_RDWR, list);
    const hid_t group = H5Gopen2(file, "snapshots/baseline", H5P_DEFAULT);
    const hid_t attribute = H5Aopen(group, name, H5P_DEFAULT);
    assert_true(attribute >= 0);
    const hid_t type = H5Aget_type(attribute);
    assert_true(H5Awrite(attribute, type, text == NULL ? (const void *)&value : text) >= 0);
    H5Tclose(type);
    H5Aclose(attribute);
    H5Gclose(group);
    unseal(file);
    assert_true(H5Fclose(file) >= 0);
    H5Pclose(list);
}

static void validate_foreign(void **state) {
    (void)state;
    static const char other[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    record_plain();
    copy_file("p.h5", "f.h5");
    put_attribute("f.h5", "layout", other, 0);
    helper_refuse(2, "replay f.h5 --from 2", "by a build that lays them out differently");
    helper_accept(0, "replay f.h5"); /* from the start it does not matter */
    copy_file("p.h5", "f.h5");
    put_attribute("f.h5", "format", NULL, 1); /* of builds before 2026-11-22 */
    helper_refuse(2, "replay f.h5 --from 2", "stored states of version 1; this twinstep takes");
    copy_file("p.h5", "f.h5");
    put_attribute("f.h5", "byte_order", "big\0\0\0", 0);
    helper_refuse(2, "replay f.h5 --from 2", "a machine of another byte order");
    copy_file("p.h5", "f.h5");
    put_attribute("f.h5", "byte_order", "middle", 0);
    helper_refuse(2, "replay f.h5 --from 2", "expected little or big");
    copy_file("p.h5", "f.h5");
    put_attribute("f.h5", "layout", other, 0);
    helper_accept(0, "replay f.h5 --run test --from 2"); /* another run's is not touched */
}

static void validate_range(void **state) {
    (void)state;
    struct said said;
    record_plain(); /* stored: 0, 2, 4, 6 */
    said = helper_run(0, "replay p.h5 --run test --from 3 --to 5");
    assert_non_null(strstr(said.out, "test: from the stored state of update 2\n"
                                     "test: 3 updates replayed, bit-equal to the record\n"));
    helper_free(&said);
    said = helper_run(0, "replay p.h5 --run test --from 5 --json");
    assert_non_null(strstr(said.out, "\"after\": 4"));
    assert_non_null(strstr(said.out, "\"restored\": true"));
    assert_non_null(strstr(said.out, "\"compared\": 2"));
    helper_free(&said);
    helper_refuse(2, "replay p.h5 --from 6", "--from: expected an update before 6, got 6");
    helper_refuse(2, "replay p.h5 --from 3 --to 3", "--from: expected an update before 3, got 3");
    helper_refuse(2, "replay p.h5 --from x", "--from: expected an update, got \"x\"");
    helper_refuse(2, "run s.yaml --checkpoint-every x", "--checkpoint-every: expected a number");
    record("s.yaml", "n.h5", "0");
    said = helper_run(0, "replay n.h5 --run test --from 3");
    assert_non_null(strstr(said.out, "test: no stored state of update 3 or earlier"));
    assert_non_null(strstr(said.out, "test: 6 updates replayed, bit-equal to the record\n"));
    helper_free(&said);
}

/* A hybrid that forked must store the state from which it forked. */
static void verify_fork(void **state) {
    (void)state;
    write_scenario("fork", "  batch: {size: 2}\n  schedule: {name: linear, warmup: 3}\n",
                   "schedule: {total: 9}");
    record("s.yaml", "s.h5", "3");
    struct arena arena = ARENA_EMPTY;
    const struct trace_image *image = open_trace("s.h5", &arena);
    uint64_t forks = 0;
    for (uint32_t i = 0; i < image->run_count; i++) {
        const struct trace_run *run = &image->runs[i];
        if (run->updates == 0) continue;
        const uint64_t before = run->records[0].step - 1;
        assert_int_equal(run->snapshot_steps[0], before);
        forks += before > 0;
    }
    arena_close(&arena);
    assert_int_equal(forks, 1);
    helper_accept(0, "replay s.h5 --from 0");
    helper_accept(0, "replay s.h5 --from 4");
}

static void verify_equal_bytes(void **state) {
    (void)state;
    write_scenario("equal", "  batch: {size: 2}\n", "optimizer: {lr: 1e-3}");
    struct said said =
        helper_run(1, "run s.yaml -o x.h5 --overwrite --reproducible --checkpoint-every 2 --quiet");
    helper_free(&said);
    said =
        helper_run(1, "run s.yaml -o y.h5 --overwrite --reproducible --checkpoint-every 2 --quiet");
    helper_free(&said);
    assert_true(helper_same_bytes("x.h5", "y.h5"));
    helper_accept(0, "recover x.h5 -o z.h5 --overwrite");
    said = helper_run(0, "replay z.h5 --from 4");
    assert_non_null(strstr(said.out, "baseline: from the stored state of update 4\n"));
    helper_free(&said);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_dropout),     cmocka_unit_test(verify_scaling),
        cmocka_unit_test(verify_optimizers),  cmocka_unit_test(verify_shuffled),
        cmocka_unit_test(validate_damage),    cmocka_unit_test(validate_foreign),
        cmocka_unit_test(validate_range),     cmocka_unit_test(verify_fork),
        cmocka_unit_test(verify_equal_bytes), cmocka_unit_test(verify_all_are_counted),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
