/* SPDX-License-Identifier: Apache-2.0
 * labels: nightly
 * A random checkpoint of the OLMo-2 1B layout cut to two layers (hidden 2048, 16 heads, MLP 8192,
 * vocabulary 100352; 545 million parameters in bf16) must be loaded and stepped within twice the
 * memory of its training state, with parameters in f32 and in bf16. The peak of resident memory is
 * the kernel's own figure for a process that does nothing else; mapped pages of the file count. The
 * test is skipped where the machine has less memory or disk. The figures are in
 * docs/measurements/checkpoints.md. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "model/params.h"
#include "model/save_model.h"
#include "tests/model/helper_folder.h"
#include "tests/trainer/helper_train.h"

#define LAYOUT                                                                                     \
    "family: olmo2, layers: 2, hidden: 2048, heads: 16, mlp: 8192, vocab: 100352, tied: false"
#define MEMORY_NEEDED ((uint64_t)19 << 30)
#define DISK_NEEDED ((uint64_t)3 << 29)

static uint64_t memory_available(void) {
    char line[256];
    unsigned long long kilobytes = 0;
    FILE *file = fopen("/proc/meminfo", "r");
    if (file == NULL) return 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "MemAvailable: %llu kB", &kilobytes) == 1) break;
    return fclose(file) == 0 ? (uint64_t)kilobytes << 10 : 0;
}

static int has_room(void) {
    struct statvfs disk;
    return memory_available() >= MEMORY_NEEDED && statvfs("/tmp", &disk) == 0 &&
           (uint64_t)disk.f_bavail * disk.f_frsize >= DISK_NEEDED;
}

/* The figures that a child process reports of itself. */
struct told {
    uint64_t state, peak, parameters;
    double opened, stepped; /* seconds */
    double loss;
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Writes the weights of a run at step 0; SGD keeps its state small. */
static int make(struct told *told) {
    const struct run_options options = {.steps = 1};
    struct config config;
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    struct run run;
    helper_config(1, &config,
                  "task: sft, model: {" LAYOUT "}, data: {max_len: 8}, batch: {size: 1}, "
                  "optimizer: {name: sgd}, numerics: {param: bf16}");
    helper_ids_open(&config, 3, 2, 8, &arena, &dataset);
    helper_run_open(&config, &dataset, &options, &run);
    told->parameters = run.table.elements;
    return run_save(&run, "checkpoint", 0) == STATUS_OK ? 0 : 1;
}

static int load_and_step(const char *words, struct told *told) {
    const struct run_options options = {.tensors = 1, .steps = 2};
    const double start = now();
    struct config config;
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    struct run run;
    helper_config(2, &config,
                  "task: sft, model: {from: checkpoint}, data: {max_len: 64}, "
                  "batch: {size: 4, micro: 2}, optimizer: {lr: 1e-5}, numerics: {%s}",
                  words);
    helper_ids_open(&config, 3, 8, 64, &arena, &dataset);
    helper_run_open(&config, &dataset, &options, &run);
    told->state = run.layout.bytes;
    told->parameters = run.table.elements;
    told->opened = now() - start;
    for (int i = 0; i < 2; i++)
        told->loss = helper_step(&run)->reals[REAL_LOSS];
    told->stepped = now() - start - told->opened;
    return 0;
}

/* Runs one of the two in a process of its own, and returns that process's peak memory in bytes. */
static uint64_t apart(const char *words, struct told *out) {
    int pipes[2], code = 0;
    assert_int_equal(pipe(pipes), 0);
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct told told = {0};
        struct rusage usage;
        code = words == NULL ? make(&told) : load_and_step(words, &told);
        if (getrusage(RUSAGE_SELF, &usage) != 0) code = 1;
        told.peak = (uint64_t)usage.ru_maxrss << 10;
        if (write(pipes[1], &told, sizeof told) != (ssize_t)sizeof told) code = 1;
        _exit(code);
    }
    close(pipes[1]);
    assert_int_equal(read(pipes[0], out, sizeof *out), (ssize_t)sizeof *out);
    close(pipes[0]);
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFEXITED(code) && WEXITSTATUS(code) == 0);
    return out->peak;
}

static void verify_memory(void **state) {
    static const char *const words[] = {"param: f32", "param: bf16, compute: bf16"};
    struct told told;
    (void)state;
    if (!has_room()) skip();
    const uint64_t making = apart(NULL, &told);
    print_message("made: %ju parameters, peak %.2f GiB\n", (uintmax_t)told.parameters,
                  (double)making / 0x1p30);
    assert_int_equal(told.parameters, 545277952);
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        const uint64_t peak = apart(words[i], &told);
        print_message("%-28s state %.2f GiB, peak %.2f GiB (%.2f of it), opened in %.0f s, two "
                      "updates in %.0f s, loss %.4f\n",
                      words[i], (double)told.state / 0x1p30, (double)peak / 0x1p30,
                      (double)peak / (double)told.state, told.opened, told.stepped, told.loss);
        assert_true(told.loss > 10.0 && told.loss < 14.0);
        assert_true(peak <= 2 * told.state);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_memory)};
    return cmocka_run_group_tests(tests, helper_folder_enter, helper_folder_leave);
}
