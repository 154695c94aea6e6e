/* SPDX-License-Identifier: Apache-2.0
 * labels: cli
 * What a backend ran on, from a module to the trace, the floor file and what is printed of them;
 * noise measured on it. The module is the shim of kernels/cuda/, copied so that it can be changed:
 * a byte behind its end is another module to whoever asks for its hash, and the same to the loader.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "determinism/floor_file.h"
#include "tests/cli/helper_cli.h"
#include "trainer/backends.h"

#define DEVICE "shim: the host: CUDA kernels thread by thread, for tests"

static void expect(struct said *said, const char *const *needles) {
    for (size_t i = 0; needles[i] != NULL; i++)
        if (strstr(said->out, needles[i]) == NULL) fail_msg("no %s in\n%s", needles[i], said->out);
    helper_free(said);
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

static void write_scenario(const char *path, const char *test) {
    char text[1024];
    helper_write("tiny.jsonl", "{\"prompt\": \"a\", \"chosen\": \"b1\", \"rejected\": \"c\"}\n"
                               "{\"prompt\": \"a\", \"chosen\": \"b2\", \"rejected\": \"c\"}\n");
    snprintf(text, sizeof text,
             "twinstep: 1\nname: t\nabout: Tiny\nsteps: 1\n"
             "common:\n"
             "  model: {layers: 1, hidden: 8, heads: 1, mlp: 8}\n"
             "  data: {pairs: tiny.jsonl, max_len: 16}\n"
             "  batch: {size: 1}\n"
             "  numerics: {backend: cuda, backend_module: m.so}\n"
             "arms:\n  baseline: {}\n  test: {%s}\n",
             test);
    helper_write(path, text);
}

/* Every run names its group; the group holds the module's hash and the device. */
static void validate_trace(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct trace_image *image;
    copy_module(0);
    write_scenario("t.yaml", "numerics: {backend: cpu}");
    struct said said = helper_run(0, "run t.yaml --reproducible");
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

/* Two traces of other modules; a trace and its own arm on the CPU. */
static void validate_two_traces(void **state) {
    (void)state;
    copy_module(0);
    write_scenario("t.yaml", "optimizer: {lr: 1e-3}");
    helper_accept(1, "run t.yaml -o a.h5");
    copy_module(1);
    helper_accept(1, "run t.yaml -o b.h5");
    helper_accept(1, "run t.yaml -o c.h5 --backend cpu");
    struct said said = helper_run(0, "certify a.h5 b.h5");
    static const char *const other[] = {"devices differ: sha256: ", " in A, ", " in B\n",
                                        "equal through update 1", NULL};
    expect(&said, other);
    said = helper_run(0, "certify a.h5 c.h5");
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

/* The strata on a backend, the CPU as its other device; a floor of another module is told. */
static void validate_floor(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct floor_file file;
    copy_module(0);
    write_scenario("t.yaml", "optimizer: {lr: 1e-3}");
    struct said said = helper_run(0, "noise t.yaml -o f.h5 --pairs 1 --repeat 1");
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
    said = helper_run(3, "run t.yaml -o same.h5 --floor f.h5");
    assert_null(strstr(said.out, "measured elsewhere"));
    helper_free(&said);
    copy_module(1);
    static const char *const elsewhere[] = {
        "  note     the floor file was measured elsewhere: sha256: ", NULL};
    said = helper_run(3, "run t.yaml -o other.h5 --floor f.h5");
    expect(&said, elsewhere);
    helper_accept(1, "run t.yaml -o own.h5");
    said = helper_run(3, "attribute own.h5 --floor f.h5");
    expect(&said, elsewhere);
    said = helper_run(0, "noise t.yaml --backend cpu --repeat 1 --json");
    static const char *const host[] = {"\"device\": null", "\"untestable\": \"no second device\"",
                                       NULL};
    expect(&said, host);
    helper_refuse(2, "noise t.yaml --backend gpu", "--backend: expected cpu or cuda, got \"gpu\"");
    arena_close(&arena);
}

/* One mechanism at a time, on a backend and on the CPU. */
static void validate_switches(void **state) {
    (void)state;
    copy_module(0);
    write_scenario("t.yaml", "seed: 3");
    struct said said = helper_run(0, "noise t.yaml --switches --repeat 1");
    static const char *const device[] = {"device " DEVICE "\n",
                                         "\n  mode deterministic ",
                                         "\n  determinism.split_k: on ",
                                         "\n  mode order-free                 untestable: ",
                                         " [-] ",
                                         NULL};
    expect(&said, device);
    said = helper_run(0, "noise t.yaml --switches --backend cpu --dtypes bf16 --json");
    static const char *const host[] = {"\"dtype\": \"bf16\"",
                                       "\"threads\": 2",
                                       "\"name\": \"determinism.workspace: default\"",
                                       "\"untestable\": \"numerics.backend is cpu\"",
                                       "\"rounds\": 7",
                                       "\"confidence\": 0.98",
                                       NULL};
    expect(&said, host);
    helper_refuse(2, "noise t.yaml --switches --modes fast", "--switches goes through modes");
    helper_refuse(2, "noise t.yaml --switches --dtypes f32,bf16", "--switches: expected one dtype");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_trace),
        cmocka_unit_test(validate_two_traces),
        cmocka_unit_test(validate_floor),
        cmocka_unit_test(validate_switches),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
