/* SPDX-License-Identifier: Apache-2.0
 * labels: cli
 * Healthy logs of which `lr check` is told few numbers or none: none of them fails by a search that
 * misses theirs. They are middles of runs, cosines with restarts, and lines of few digits, and
 * another contract, with a warm-up and a total of one update less, a counter that goes back or one
 * that moves by three, prints each. The same verb still fails logs with a bug, told nothing, and
 * the same healthy ones told a wrong number. The schedules are written out here after
 * transformers 4.52 optimization.py (the lambdas of get_*_schedule*), Megatron-LM core 0.12
 * optimizer_param_scheduler.py (OptimizerParamScheduler.get_lr) and DeepSpeed 0.14
 * runtime/lr_schedules.py (WarmupDecayLR). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"
#include "tests/cli/helper_cli.h"

#define PI 3.14159265358979323846

enum kind { LINE, COSINE, RESTARTS, WSD, LOGARITHMIC, ROOT, PLATEAU };

struct column {
    enum kind kind;
    double peak, floor; /* the floor as a share of the peak */
    int warmup, total;
    int more;  /* cycles, or the length of the decay */
    int shift; /* the counter at update k is k + shift: -1 is Trainer's, 0 is what Megatron prints
                */
    int first, last, every;
    int anew; /* the counter is back at 0 behind this update; 0: never */
    int each; /* the counter moves once per so many updates; 0 stands for 1 */
};

static double lr_at(const struct column *c, int update) {
    const int each = c->each > 0 ? c->each : 1;
    int n = (update + c->shift) / each;
    if (c->anew > 0 && update > c->anew) n -= c->anew;
    double share = (double)(n - c->warmup) / (c->total - c->warmup);
    if (n < c->warmup)
        return c->peak * (c->kind == LOGARITHMIC ? log(n + 1.0) / log((double)c->warmup)
                                                 : (double)n / c->warmup);
    if (c->kind == ROOT) return c->peak * sqrt((double)c->warmup / n);
    if (share > 1.0) share = 1.0;
    double left = 1.0 - share;
    if (c->kind == COSINE) left = 0.5 * (1.0 + cos(PI * share));
    if (c->kind == RESTARTS) left = 0.5 * (1.0 + cos(PI * fmod(c->more * share, 1.0)));
    const int start = c->total - c->more;
    if (c->kind == PLATEAU)
        left = n <= start ? 1.0 : 0.5 * (1.0 + cos(PI * (double)(n - start) / c->more));
    if (c->kind == WSD) {
        left = n <= start ? 1.0 : 2.0 * pow(0.5, (double)(n - start) / c->more) - 1.0;
    }
    return c->peak * (c->floor + (1.0 - c->floor) * left);
}

static void write_log(const struct column *c, const char *print) {
    static char text[1 << 17];
    size_t at = (size_t)snprintf(text, sizeof text, "step,loss,lr\n");
    for (int k = c->first; k <= c->last; k += c->every) {
        char lr[40];
        snprintf(lr, sizeof lr, print, lr_at(c, k));
        at += (size_t)snprintf(text + at, sizeof text - at, "%d,%.4f,%s\n", k, 2.0 + 1.0 / k, lr);
    }
    assert_true(at < sizeof text);
    helper_write("log.csv", text);
}

#define TAKEN "were taken from another explanation of the column"
#define CYCLES "prints the same cycles with both one update more or less"
#define MISSED "finds none does not say that none print the rows"

static const struct {
    struct column column;
    const char *print, *ask, *expected, *needs;
} healthy[] = {
    /* hf with a warm-up of 15 and a total of 1528 prints this, too, and olmo-core, which doubts. */
    {{COSINE, 3e-6, 0.05, 16, 1529, 0, 0, 500, 1500, 50, 0, 0},
     "%.5e",
     "lr check log.csv --expect megatron --lr 3e-6",
     "megatron cosine, peak 3e-06, warm-up 16 (not shown), total 1529, floor 0.05 of the peak",
     "both log the same at every update"},
    {{COSINE, 1.2e-3, 0.0, 47, 1563, 0, 0, 480, 1055, 5, 0, 0},
     "%.5e",
     "lr check log.csv --expect accelerate --processes 4",
     "accelerate cosine, peak 0.0012, warm-up 47 (not shown), total 1563",
     ""},
    {{WSD, 3e-6, 0.01, 0, 2300, 230, 0, 1, 2299, 2, 0, 0},
     "%.5e",
     "lr check log.csv --expect megatron --lr 3e-6",
     "megatron wsd (decay=230), peak 3e-06, no warm-up, total 2300, floor 0.01 of the peak",
     "explains the log more simply and applies other LRs"},
    /* A counter that moves by 2 per update, with a warm-up of 40 and a total of 2200. */
    {{COSINE, 4e-4, 0.1, 20, 1100, 0, -1, 540, 790, 10, 0, 0},
     "%.5e",
     "lr check log.csv --expect hf",
     "hf cosine_with_min_lr, peak 0.0004, warm-up 20 (not shown), total 1100, floor 0.1 of the "
     "peak",
     ""},
    /* Lines from a peak that was given, which a line from an odd peak stands for. */
    {{LINE, 2.5e-3, 0.05, 114, 1888, 0, 0, 550, 1525, 25, 0, 0},
     "%.5e",
     "lr check log.csv --expect megatron --lr 0.0025",
     "megatron linear, peak 0.0025, warm-up 114, total 1888, floor 0.05 of the peak",
     TAKEN},
    {{LINE, 3e-5, 0.05, 0, 598, 0, 0, 20, 580, 20, 0, 0},
     "%.2e",
     "lr check log.csv --expect megatron --lr 3e-5",
     "megatron linear, peak 3e-05, no warm-up, total 598, floor 0.05 of the peak",
     TAKEN},
    {{LOGARITHMIC, 6e-6, 0.0, 27, 2620, 0, -1, 1090, 1460, 5, 0, 0},
     "%.2e",
     "lr check log.csv --expect deepspeed-warmup --lr 6e-6",
     "deepspeed-warmup warmup_decay, peak 6e-06",
     ""},
    /* A peak ten times as high, with a warm-up that is a hundred times as short. */
    {{ROOT, 6e-5, 0.0, 100, 1500, 0, -1, 410, 1430, 10, 0, 0},
     "%.3e",
     "lr check log.csv --expect hf --lr 6e-05",
     "hf inverse_sqrt, peak 6e-05, warm-up 100",
     TAKEN},
    /* One row of a decay of 101 updates, of three digits, and the total given. */
    {{WSD, 6e-3, 0.05, 31, 1012, 101, 0, 1, 1001, 100, 0, 0},
     "%.2e",
     "lr check log.csv --expect megatron --steps 1012 --lr 0.006",
     "",
     MISSED},
    /* Another cosine, which is one step ahead of this one. */
    {{COSINE, 8e-4, 0.05, 200, 5350, 0, 0, 1408, 5350, 2, 0, 0},
     "%.2e",
     "lr check log.csv --expect megatron --steps 5350 --lr 0.0008",
     "megatron cosine, peak 0.0008, warm-up 200 (not shown), total 5350, floor 0.05 of the peak",
     ""},
    /* Restarts, which a counter that goes back stands for. */
    {{RESTARTS, 1e-4, 0.0, 18, 1800, 2, 0, 562, 1133, 1, 0, 0},
     "%.17g",
     "lr check log.csv --expect accelerate --processes 8",
     "accelerate cosine_with_restarts (num_cycles=2), peak 0.0001, warm-up 18, total 1800",
     CYCLES},
    /* Which the other contract prints with numbers that are one less. */
    {{RESTARTS, 1e-4, 0.0, 18, 1800, 2, 0, 562, 1133, 1, 0, 0},
     "%.17g",
     "lr check log.csv --expect hf",
     "hf cosine_with_restarts (num_cycles=2), peak 0.0001, warm-up 17, total 1799",
     CYCLES},
    {{RESTARTS, 8e-6, 0.0, 100, 1100, 4, -1, 280, 900, 10, 0, 0},
     "%.17g",
     "lr check log.csv --expect hf",
     "hf cosine_with_restarts (num_cycles=4), peak 8e-06, warm-up 100, total 1100",
     CYCLES},
    /* A warm-up of 1,023 stands for one of 200 and a cycle. */
    {{RESTARTS, 1.2e-4, 0.0, 200, 3500, 4, 0, 1245, 3099, 5, 0, 0},
     "%.5e",
     "lr check log.csv --expect accelerate --processes 2 --lr 0.00012",
     "accelerate cosine_with_restarts (num_cycles=4), peak 0.00012, warm-up 200, total 3500",
     CYCLES},
    /* torchtitan says the decay as a share of the total, 0.2. */
    {{PLATEAU, 1.2e-4, 0.0, 50, 5900, 1180, -1, 1920, 5900, 5, 0, 0},
     "%.2e",
     "lr check log.csv --expect hf --steps 5900",
     "hf warmup_stable_decay (decay=1180, decay_type=cosine), peak 0.00012, no warm-up, total 5900",
     TAKEN},
    /* A warm-up that ends between the first row and the second, for which a line without one stands
     * whose first LR is apart. The given peak is not that line's. */
    {{LINE, 6e-5, 0.1, 69, 1142, 0, 0, 1, 648, 100, 0, 0},
     "%.5e",
     "lr check log.csv --expect megatron",
     "megatron linear, peak 6e-05, warm-up 69, total 1142, floor 0.1 of the peak",
     ""},
    {{LINE, 6e-5, 0.1, 69, 1142, 0, 0, 1, 648, 100, 0, 0},
     "%.5e",
     "lr check log.csv --expect megatron --lr 6e-5",
     "megatron linear, peak 6e-05, warm-up 69, total 1142, floor 0.1 of the peak",
     ""},
    /* A line whose total no row shows. What explains it ends at the last row, from a peak that is
     * the given one but for less than a printed step. */
    {{LINE, 2e-6, 0.05, 200, 3471, 0, 0, 100, 3471, 100, 0, 0},
     "%.5e",
     "lr check log.csv --expect hf-4.50 --lr 2e-6",
     "hf-4.50 linear, peak 2e-06, warm-up 200, total 3471, floor 0.05 of the peak",
     TAKEN},
    /* A root whose first row is at 0, beside one of a counter that moves by 2 and twice the
       warm-up. */
    {{ROOT, 2.5e-3, 0.0, 50, 4700, 0, -1, 1, 4299, 100, 0, 0},
     "%.2e",
     "lr check log.csv --expect hf --lr 0.0025",
     "hf inverse_sqrt, peak 0.0025, warm-up 50, total 4201",
     TAKEN},
    /* A counter that moves by 3 per update, with a total of 8029. */
    {{COSINE, 2e-4, 0.0, 161, 2678, 0, 0, 1250, 1700, 50, 0, 0},
     "%.3e",
     "lr check log.csv --expect accelerate",
     "accelerate cosine, peak 0.0002, warm-up 161 (not shown), total 2678",
     ""},
};

static void verify_no_search_fails_a_healthy_log(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(healthy); i++) {
        write_log(&healthy[i].column, healthy[i].print);
        struct said said = helper_run(3, healthy[i].ask);
        const char *const decide = strstr(said.out, "what would decide: ");
        if (strstr(said.out, healthy[i].expected) == NULL || decide == NULL ||
            strstr(decide, healthy[i].needs) == NULL)
            fail_msg("%zu: %s", i, said.out);
        helper_free(&said);
    }
}

/* A warm-up of 152 between rows 100 updates apart. Where only every second one was tried there,
 * what explained the rows had one of 9,730 and was another contract's. */
static void verify_a_root_passes_with_its_own_warmup(void **state) {
    (void)state;
    static const struct column column = {ROOT, 5e-6, 0.0, 152, 2532, 0, 0, 1, 1297, 100, 0, 0};
    write_log(&column, "%.2e");
    struct said said = helper_run(0, "lr check log.csv --expect megatron");
    assert_non_null(
        strstr(said.out, "expected: megatron inverse-square-root, peak 5e-06, warm-up 152\n"));
    helper_free(&said);
}

static const struct {
    struct column column;
    const char *print, *ask, *says;
} failing[] = {
    {{LINE, 1e-5, 0.0, 20, 600, 0, -1, 1, 600, 1, 260, 0},
     "%.17g",
     "lr check log.csv --expect hf",
     "known as: scheduler_not_restored"},
    /* A peak that nobody would type: the break is seen in fine digits all the same. */
    {{LINE, 1.23456e-5, 0.0, 20, 600, 0, -1, 1, 600, 1, 260, 0},
     "%.17g",
     "lr check log.csv --expect hf",
     "known as: scheduler_not_restored"},
    {{LINE, 5e-5, 0.0, 10, 100, 0, 0, 1, 100, 1, 0, 0},
     "%.17g",
     "lr check log.csv --expect hf",
     "known as: lr_ahead_by_one or log_next_lr"},
    {{LINE, 5e-5, 0.0, 10, 100, 0, -1, 1, 400, 1, 0, 4},
     "%.17g",
     "lr check log.csv --expect hf",
     "known as: stepped_every_n_updates"},
    {{LINE, 5e-5, 0.1, 50, 1000, 0, 0, 1, 1000, 1, 0, 0},
     "%.17g",
     "lr check log.csv --expect hf",
     "FAIL: fits olmo-core linear, peak 5e-05, warm-up 50, total 1000, floor 0.1 of the peak"},
    /* Healthy ones of above, told a number that is not theirs. */
    {{COSINE, 3e-6, 0.05, 16, 1529, 0, 0, 500, 1500, 50, 0, 0},
     "%.5e",
     "lr check log.csv --expect megatron --lr 3e-6 --warmup 17 --steps 1529 --schedule cosine "
     "--min-lr-ratio 0.05",
     "FAIL: "},
    {{LINE, 6e-5, 0.1, 69, 1142, 0, 0, 1, 648, 100, 0, 0},
     "%.5e",
     "lr check log.csv --expect megatron --lr 7e-5",
     "FAIL: "},
    {{LINE, 2.5e-3, 0.05, 114, 1888, 0, 0, 550, 1525, 25, 0, 0},
     "%.5e",
     "lr check log.csv --expect megatron --lr 0.0025 --warmup 114 --steps 1889 --schedule linear "
     "--min-lr-ratio 0.05",
     "FAIL: "},
};

static void verify_bugs_still_fail(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(failing); i++) {
        write_log(&failing[i].column, failing[i].print);
        struct said said = helper_run(1, failing[i].ask);
        if (strstr(said.out, failing[i].says) == NULL) fail_msg("%zu: %s", i, said.out);
        helper_free(&said);
    }
}

/* One row of the decay of Megatron's WSD, in three digits: it is as far down with a floor of 0.01
 * as with one skipped update and none, and lr fit says neither alone. */
static void verify_a_floor_is_no_skip(void **state) {
    (void)state;
    static const struct column column = {WSD, 5e-6, 0.01, 359, 1794, 179, 0, 100, 1700, 100, 0, 0};
    write_log(&column, "%.2e");
    struct said said = helper_run(3, "lr fit log.csv --steps 1794");
    if (strstr(said.out, "where a floor that configurations have, and none of them") == NULL)
        fail_msg("%s", said.out);
    helper_free(&said);
    /* Where somebody says the floor, another length of the decay is what is left open. */
    said = helper_run(3, "lr fit log.csv --steps 1794 --min-lr-ratio 0");
    if (strstr(said.out, "has a decay of another length") == NULL) fail_msg("%s", said.out);
    helper_free(&said);
}

/* Where a resume goes back to an earlier update, the distance of two changes was once taken for
 * 2^64 - 1 updates of an epoch, and a warm-up searched that far. */
static void verify_a_step_back_ends(void **state) {
    (void)state;
    helper_write("resumed.jsonl", "{\"step\": 3, \"learning_rate\": 0.00045, \"epoch\": 1.5}\n"
                                  "{\"step\": 4, \"learning_rate\": 0.00045, \"epoch\": 2.0}\n"
                                  "{\"step\": 5, \"learning_rate\": 0.00015000000000000004, "
                                  "\"epoch\": 2.5}\n"
                                  "{\"step\": 4, \"learning_rate\": 0.0, \"epoch\": 2.0}\n");
    alarm(60);
    struct said said = helper_run(1, "lr fit resumed.jsonl --contract lightning-epoch");
    alarm(0);
    assert_non_null(strstr(said.out, "Nothing fits."));
    helper_free(&said);
}

/* A console without update numbers, whose rows are a cosine with restarts that ends in its third
 * cycle: each of the distances that are tried is asked for cosines, too. */
static void verify_restarts_without_updates(void **state) {
    (void)state;
    static const struct column column = {RESTARTS, 5e-5, 0.0, 373, 2262, 3, 0, 25, 1825, 25, 0, 0};
    static char text[1 << 14];
    size_t at = 0;
    for (int k = column.first; k <= column.last; k += column.every)
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "{'loss': 0.69, 'learning_rate': %.3e, 'epoch': 0.0}\n",
                               lr_at(&column, k));
    assert_true(at < sizeof text);
    helper_write("console.txt", text);
    struct said said = helper_run(3, "lr fit console.txt");
    if (strstr(said.out, "hf-4.50 cosine_with_restarts (num_cycles=3), peak 5e-05, warm-up 373, "
                         "total 2262") == NULL)
        fail_msg("%s", said.out);
    helper_free(&said);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_no_search_fails_a_healthy_log),
        cmocka_unit_test(verify_a_root_passes_with_its_own_warmup),
        cmocka_unit_test(verify_bugs_still_fail),
        cmocka_unit_test(verify_a_floor_is_no_skip),
        cmocka_unit_test(verify_a_step_back_ends),
        cmocka_unit_test(verify_restarts_without_updates),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
