/* SPDX-License-Identifier: Apache-2.0
 * labels: cli
 * The backend on which a run was made, from the module to the trace, the floor file and what is
 * printed of them; and noise measured on it. The module is the shim of kernels/cuda/. It is copied
 * so that it can be changed: a byte appended to the file makes another hash, but the loader loads
 * the same module. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <unistd.h>

#include "determinism/floor_file.h"
#include "evidence/backend_seen.h"
#include "experiment/backend_record.h"
#include "tests/cli/helper_cli.h"
#include "tests/kernels/helper_variables.h"

#define DEVICE "shim: the host: CUDA kernels thread by thread, for tests"

static void expect(struct said *said, const char *const *needles) {
    for (size_t i = 0; needles[i] != NULL; i++)
        if (strstr(said->out, needles[i]) == NULL) fail_msg("no %s in\n%s", needles[i], said->out);
    helper_free(said);
}

/* The run must end with status 0. stderr may hold what AddressSanitizer says of the shim's
 * fibres. */
static void run_well(const char *line) {
    struct said said = helper_run(0, line);
    helper_free(&said);
}

static void copy_module(int changed) {
    size_t length;
    char *const bytes = helper_read(TWINSTEP_BACKENDS "/twinstep_backend_shim.so", &length);
    FILE *const file = fopen("m.so", "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    if (changed) fputc('\n', file);
    assert_int_equal(fclose(file), 0);
    free(bytes);
}

static void write_pair(const char *chosen, const char *rejected) {
    char text[256];
    snprintf(text, sizeof text, "{\"prompt\": \"a\", \"chosen\": \"%s\", \"rejected\": \"%s\"}\n",
             chosen, rejected);
    helper_write("pairs.jsonl", text);
}

static void write_scenario(const char *path) {
    write_pair("b", "c");
    helper_write(path, "twinstep: 1\nname: t\nabout: Tiny\nsteps: 1\n"
                       "common:\n"
                       "  model: {layers: 1, hidden: 8, heads: 1, mlp: 8}\n"
                       "  data: {pairs: pairs.jsonl, max_len: 32}\n"
                       "  batch: {size: 1}\n"
                       "  numerics: {backend: cuda, backend_module: m.so}\n"
                       "arms:\n  baseline: {}\n  test: {numerics: {backend: cpu}}\n");
}

/* Every run must name its group, which holds the module's hash and the device. */
static void validate_trace(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct trace_image *image;
    copy_module(0);
    write_scenario("t.yaml");
    struct said said = helper_run(0, "run t.yaml --allow-modules --reproducible");
    static const char *const shown[] = {"t: IDENTICAL", "  devices  baseline: " DEVICE,
                                        "           test: cpu", NULL};
    expect(&said, shown);
    assert_int_equal(trace_open("t.h5", &arena, &image), STATUS_OK);
    assert_string_equal(trace_attribute_of(image, "backend", "baseline"), "shim");
    assert_string_equal(trace_attribute_of(image, "backend", "test"), "cpu");
    assert_int_equal(strlen(trace_attribute_of(image, "backend/shim", "sha256")), 64);
    assert_string_equal(trace_attribute_of(image, "backend/shim", "device"),
                        "the host: CUDA kernels thread by thread, for tests");
    arena_close(&arena);
}

/* Compares traces of two different modules, and a run with the one on the CPU beside it. */
static void validate_two_traces(void **state) {
    (void)state;
    copy_module(0);
    write_scenario("t.yaml");
    run_well("run t.yaml --allow-modules -o a.h5");
    copy_module(1);
    run_well("run t.yaml --allow-modules -o b.h5");
    helper_refuse(2, "run t.yaml --allow-modules --quiet -o c.h5 --resume a.h5",
                  "a.h5: its runs ran on another backend: sha256 of backend/shim was");
    struct said said = helper_run(
        0, "replay a.h5 --allow-modules --run baseline"); /* by the module as it is now */
    static const char *const again[] = {"  devices differ: sha256: ", " recorded, ", " now\n",
                                        NULL};
    expect(&said, again);
    said = helper_run(0, "certify a.h5 b.h5");
    static const char *const other[] = {"devices differ: sha256: ", " in A, ", " in B\n",
                                        "equal through update 1", NULL};
    expect(&said, other);
    said = helper_run(0, "compare a.h5 b.h5");
    static const char *const compared[] = {"\nDevices differ: sha256: ", NULL};
    expect(&said, compared);
    said = helper_run(0, "certify a.h5 b.h5 --run-b test");
    static const char *const cpu[] = {"devices differ: backend: shim in A, cpu in B\n", NULL};
    expect(&said, cpu);
    said = helper_run(0, "certify a.h5 a.h5 --json");
    static const char *const same[] = {"\"ran_on\": \"" DEVICE "\"", "\"devices_differ\": \"\"",
                                       NULL};
    expect(&said, same);
    said = helper_run(0, "certify a.h5");
    static const char *const one[] = {"  ran on         " DEVICE "\n", NULL};
    expect(&said, one);
}

/* The strata on a backend, with the CPU as its other device. A floor that was measured on another
 * module must be reported as such. */
static void validate_floor(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct floor_file file;
    copy_module(0);
    write_scenario("t.yaml");
    struct said said = helper_run(0, "noise t.yaml --allow-modules -o f.h5 --pairs 1 --repeat 1");
    static const char *const shown[] = {"device " DEVICE "\n",
                                        "  instance     bit-equal:", "  process      bit-equal:",
                                        "14 tensors; cpu instead of the backend", NULL};
    expect(&said, shown);
    assert_int_equal(floor_file_open("f.h5", &arena, &file), STATUS_OK);
    const struct backend_seen seen = backends_of_floor(&file);
    assert_string_equal(seen.group, "shim");
    char *line;
    assert_int_equal(backends_line(&seen, &arena, &line), STATUS_OK);
    assert_string_equal(line, DEVICE);
    said = helper_run(0, "run t.yaml --allow-modules -o same.h5 --floor f.h5 "
                         "--set arms.test.numerics.determinism.atomics=on");
    static const char *const idle[] = {
        "  note     test: numerics.determinism.atomics has no effect "
        "here: numerics.backend is cpu\n",
        NULL};
    assert_null(strstr(said.out, "measured elsewhere"));
    expect(&said, idle);
    said = helper_run(0, "attribute same.h5 --json");
    static const char *const inert[] = {
        "\"inert\": [\n    \"test: numerics.determinism.atomics has", NULL};
    expect(&said, inert);
    copy_module(1);
    static const char *const elsewhere[] = {
        "  note     the floor file was measured elsewhere: sha256: ", NULL};
    said = helper_run(0, "run t.yaml --allow-modules -o other.h5 --floor f.h5");
    expect(&said, elsewhere);
    said = helper_run(0, "attribute other.h5 --floor f.h5");
    expect(&said, elsewhere);
    said = helper_say(
        (const char *const[]){"compare", "other.h5", "same.h5", "--floor", "f.h5", NULL}, NULL);
    static const char *const held[] = {"\nThe floor was measured elsewhere: sha256: ", NULL};
    expect(&said, held);
    said = helper_run(0, "noise t.yaml --allow-modules --backend cpu --repeat 1 --json");
    static const char *const host[] = {"\"device\": null", "\"untestable\": \"no second device\"",
                                       NULL};
    expect(&said, host);
    helper_refuse(2, "noise t.yaml --allow-modules --backend gpu",
                  "--backend: expected cpu or cuda, got \"gpu\"");
    arena_close(&arena);
}

/* Atomics add in the order in which the shim's threads come, which is another one for each run. The
 * floor must lie above zero, tell where it arose, and the file must say so. A second process begins
 * with the same order as the first. */
static void validate_atomic(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct floor_file file;
    copy_module(0);
    write_scenario("t.yaml");
    write_pair("some words to learn", "others not to learn");
    struct said said =
        helper_run(0, "check t.yaml --allow-modules --set common.numerics.mode=atomic "
                      "--set common.atomic.chunk=2");
    static const char *const one_thread[] = {"test: numerics.mode atomic races with nobody", NULL};
    assert_null(strstr(said.out, "baseline: numerics.mode atomic races"));
    expect(&said, one_thread);
    said = helper_run(1, "noise t.yaml --allow-modules --modes atomic --set common.atomic.chunk=2 "
                         "--repeat 1 --pairs 1 -o atomic.h5");
    static const char *const shown[] = {
        "  process      bit-equal: 1 updates",
        "\n  instance by layer: ", "\n  instance by op: ", " model.embed_tokens =", NULL};
    if (strstr(said.out, "  instance     bit-equal") != NULL) fail_msg("%s", said.out);
    if (strstr(said.out, "  repeat       bit-equal") != NULL) fail_msg("%s", said.out);
    expect(&said, shown);
    assert_int_equal(floor_file_open("atomic.h5", &arena, &file), STATUS_OK);
    assert_non_null(strstr(file.parts, "atomic\town\tinstance\tlayer\tlayer 0\t11\t"));
    assert_non_null(strstr(file.parts, "\tinstance\top\tself_attn.q_proj\t1\t"));
    assert_true(file.columns[FLOOR_GRAD_NORM][0] > 0.0);
    run_well("run t.yaml --allow-modules --set common.numerics.mode=deterministic --set "
             "common.numerics.determinism.atomics=on --set arms.test.numerics.backend=cuda "
             "-o raced.h5");
    static const char *const raced[] = {
        "not replayed: run baseline: numerics.determinism on a device: its threads raced", NULL};
    struct said passed_over = helper_run(3, "replay raced.h5 --allow-modules");
    expect(&passed_over, raced);
    arena_close(&arena);
}

/* The library's twin has no algorithm without a split of k for products of 1021 terms: down_proj
 * forward, of the reference too, and dX of gate_proj and up_proj. The arm that has such products
 * must report them, in the trace as well; with a split there are none. */
static void validate_products(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct trace_image *image;
    copy_module(0);
    write_scenario("t.yaml");
    struct said said = helper_run(
        1, "run t.yaml --allow-modules -o p.h5 --json --set common.model.mlp=1021 "
           "--set common.numerics.mode=deterministic --set arms.test.numerics.backend=cuda "
           "--set arms.baseline.numerics.determinism.split_k=off");
    static const char *const json[] = {"8 of 56 products of mode deterministic were computed by",
                                       NULL};
    expect(&said, json);
    said = helper_run(1, "attribute p.h5");
    static const char *const shown[] = {
        "\n  library  baseline: 8 of 56 products of mode deterministic were computed by the kernel "
        "of invariant: cublasLt has no algorithm without a split of k for ",
        " x 8 with 1021 terms (the first of them)\n", NULL};
    assert_null(strstr(said.out, "  library  test"));
    expect(&said, shown);
    assert_int_equal(trace_open("p.h5", &arena, &image), STATUS_OK);
    const struct trace_array *const array = trace_array_of(image, PRODUCTS_PATH);
    assert_non_null(array);
    assert_int_equal(array->plan.shape[0], image->run_count);
    assert_true(array->values[PRODUCTS_ALL] == 56 && array->values[PRODUCTS_OURS] == 8);
    assert_true(array->values[PRODUCTS_N] == 8 && array->values[PRODUCTS_K] == 1021);
    const double *const test = array->values + PRODUCTS_COLUMNS;
    assert_true(test[PRODUCTS_ALL] == 56 && test[PRODUCTS_OURS] == 0 && test[PRODUCTS_K] == 0);
    struct floor_file file;
    said = helper_run(1, "noise t.yaml --allow-modules -o p.floor --pairs 1 --repeat 1 "
                         "--set common.model.mlp=1021 --set common.numerics.mode=deterministic "
                         "--set common.numerics.determinism.split_k=off");
    static const char *const noisy[] = {"\n  library      8 of 56 products of mode deterministic",
                                        NULL};
    expect(&said, noisy);
    assert_int_equal(floor_file_open("p.floor", &arena, &file), STATUS_OK);
    const struct trace_image facts = {
        .attributes = (struct trace_attribute *)(void *)(uintptr_t)file.environment,
        .attribute_count = file.environment_count};
    assert_memory_equal(trace_attribute_of(&facts, "backend", "noise_products"), "8 of 56 ", 8);
    arena_close(&arena);
}

/* Tries one numerics switch at a time, on a backend and on the CPU. */
static void validate_switches(void **state) {
    (void)state;
    copy_module(0);
    write_scenario("t.yaml");
    struct said said = helper_run(0, "noise t.yaml --allow-modules --switches --repeat 1");
    static const char *const device[] = {"device " DEVICE "\n",
                                         "\n  mode deterministic ",
                                         "\n  determinism.split_k: off ",
                                         "\n  mode order-free                 untestable: ",
                                         " [-] ",
                                         NULL};
    expect(&said, device);
    said = helper_run(
        0, "noise t.yaml --allow-modules --switches --backend cpu --dtypes bf16 --repeat 2 --json");
    static const char *const host[] = {"\"dtype\": \"bf16\"",
                                       "\"threads\": 2",
                                       "\"name\": \"determinism.workspace: default\"",
                                       "\"untestable\": \"numerics.backend is cpu\"",
                                       "\"rounds\": 2",
                                       "\"interval\": null",
                                       NULL};
    expect(&said, host);
    helper_refuse(2, "noise t.yaml --allow-modules --switches --modes fast",
                  "--switches goes through modes");
    helper_refuse(2, "noise t.yaml --allow-modules --switches --dtypes f32,bf16",
                  "--switches: expected one dtype");
}

/* What a run says of a call of CUDA that failed, by the number of its error; it leaves no
 * trace under its name. */
static void validate_failed_calls(void **state) {
    (void)state;
    static const struct {
        const char *fails, *text;
    } cases[] = {
        {"open 1 100",
         "; CUDA_VISIBLE_DEVICES is \"7\": expected a number, a UUID or, where MIG is on, a "
         "MIG-UUID that nvidia-smi -L lists"},
        {"open 1 35", ": install a driver of this CUDA or later"},
        {"open 1 46", "(nvidia-smi -q -d COMPUTE), or its MIG mode was switched"},
        {"open 1 803", ": driver and services of this machine are not of one version"},
        {"take 1 2",
         "the device has 1.50 of its 8.00 GiB left, 1 of them for itself (4.00 are this run's, "
         "2.50 the driver's or other processes': nvidia-smi): make batch.micro or data.max_len "
         "smaller"},
        {"take 2 214",
         "cuda: memory of the device: an error made up by the shim: the device's memory"},
        {"wait 1 700", "Xid 31 is a kernel that touched memory that is not there"},
        {"wait 2 700", "CUDA_LAUNCH_BLOCKING=1 names the kernel"},
        {"wait 3 719", "Xid 79 is a device that fell off the bus"},
        {"wait 2 715", "Xid 13 is an exception inside a kernel"},
        {"wait 2 214", "nvidia-smi -q -d ECC,ROW_REMAPPER"},
        {"wait 2 226", "what was computed is worth nothing"},
        {"wait 2 220", "(Xid 74 in the kernel log"},
        {"wait 2 702", "make batch.micro smaller"},
        {"wait 2 222", "no newer than the driver"},
        {"wait 2 1", "cuda: a kernel: an error made up by the shim\n"},
    };
    copy_module(0);
    write_scenario("t.yaml");
    assert_int_equal(setenv("CUDA_VISIBLE_DEVICES", "7", 1), 0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(setenv("TWINSTEP_SHIM_FAILS", cases[i].fails, 1), 0);
        helper_refuse(2, "run t.yaml --allow-modules --quiet --overwrite -o failed.h5",
                      cases[i].text);
        assert_int_equal(access("failed.h5", F_OK), -1);
    }
    assert_int_equal(unsetenv("CUDA_VISIBLE_DEVICES"), 0);
    assert_int_equal(setenv("TWINSTEP_SHIM_FAILS", "open 1 100", 1), 0);
    helper_refuse(2, "run t.yaml --allow-modules --quiet --overwrite -o failed.h5",
                  "; nvidia-smi -L lists what the driver sees");
    assert_int_equal(unsetenv("TWINSTEP_SHIM_FAILS"), 0);
}

int main(void) {
    helper_unset_variables();
    (void)unsetenv("TWINSTEP_SHIM_FAILS");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_trace),        cmocka_unit_test(validate_two_traces),
        cmocka_unit_test(validate_floor),        cmocka_unit_test(validate_atomic),
        cmocka_unit_test(validate_switches),     cmocka_unit_test(validate_products),
        cmocka_unit_test(validate_failed_calls),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
