/* SPDX-License-Identifier: Apache-2.0
 * `twinstep noise --switches`: prints what each mechanism of determinism costs and buys, one line
 * per switch: two ratios of time with their intervals, then the floor. The clock is handed
 * down from here, because nothing below cli/ may read it; it reaches no result but the times. */
#include <stdio.h>
#include <string.h>

#include "cli/json.h"
#include "cli/noise/noise_asking.h"
#include "experiment/noise/noise_switches.h"

/* What the printers need beside the figures. */
struct pricing {
    const struct noise_report *report; /* without cases */
    const char *dtype;
    uint64_t threads;
};

static double seconds(void *clock) {
    (void)clock;
    return progress_clock();
}

static void print_ratio(const struct noise_ratio *ratio, int is_base) {
    char interval[32] = "";
    if (is_base)
        snprintf(interval, sizeof interval, "%.4g ms", 1e3 * ratio->seconds);
    else if (ratio->interval.confidence > 0.0)
        snprintf(interval, sizeof interval, "%.3f [%.3f, %.3f]", ratio->ratio, ratio->interval.low,
                 ratio->interval.high);
    else
        snprintf(interval, sizeof interval, "%.3f [-]", ratio->ratio);
    printf("  %-22s", interval);
}

static void print_floor(const struct noise_figures *figures) {
    if (figures->first == 0)
        printf("  %-29s", "=");
    else
        printf("  %5.1f %%  %9.2e  %9.2e", 100.0 * figures->gradients_equal / figures->tensors,
               figures->tensor_relative, figures->total_relative);
}

static void print_switch(const struct noise_switch *one, int width, int is_base) {
    printf("  %-*s", width, one->name);
    if (one->untestable[0] != '\0') {
        printf("  untestable: %s\n", one->untestable);
        return;
    }
    print_ratio(&one->update, is_base);
    print_ratio(&one->passes, is_base);
    print_floor(&one->floor);
    if (one->moved.first == 0)
        printf("  =\n");
    else
        printf("  %9.2e\n", one->moved.tensor_relative);
}

static void print_text(const struct pricing *pricing, const struct noise_switches *switches) {
    const struct noise_report *const report = pricing->report;
    printf("%s, arm %s, %s, %ju thread%s: %ju updates, %u rounds through all switches\n",
           report->scenario, report->arm, pricing->dtype, (uintmax_t)pricing->threads,
           pricing->threads == 1 ? "" : "s", (uintmax_t)report->steps, switches->rounds);
    if (strcmp(report->device_line, BACKENDS_OWN) != 0) printf("device %s\n", report->device_line);
    if (switches->reset[0] != '\0')
        printf("%s sets %s (every switch begins from that, not from what the scenario gives)\n",
               switches->list[0].name, switches->reset);
    int width = 0;
    for (uint32_t i = 0; i < switches->count; i++)
        if ((int)strlen(switches->list[i].name) > width)
            width = (int)strlen(switches->list[i].name);
    printf("\n  %-*s  %-22s  %-22s  %7s  %9s  %9s  %9s\n", width, "switch", "update",
           "forward and backward", "grads =", "tensor", "total", "moved");
    for (uint32_t i = 0; i < switches->count; i++) {
        const uint32_t over = switches->list[i].over;
        if (i > 0 && over != switches->list[i - 1].over)
            printf("\n  over %s\n", switches->list[over].name);
        print_switch(&switches->list[i], width, i == 0);
    }
    printf(
        "\nTimes: the first switch's own, the others' over it (or over the one that is named above "
        "them): median of the\nratios of %u rounds [95 %% interval of that median, by order "
        "statistics; -: fewer than 6 rounds]. Floor: gradients\nof %u instances at the first "
        "update that differs, = bit-equal. moved: largest relative difference of a "
        "tensor's\ngradient norm from that switch's.\n",
        switches->rounds, switches->instances);
}

static json_t *ratio_json(const struct noise_ratio *ratio) {
    return json_pack("{so so so}", "seconds", json_finite(ratio->seconds), "ratio",
                     json_finite(ratio->ratio), "interval",
                     ratio->interval.confidence > 0.0
                         ? json_pack("{so so so}", "low", json_finite(ratio->interval.low), "high",
                                     json_finite(ratio->interval.high), "confidence",
                                     json_finite(ratio->interval.confidence))
                         : json_null());
}

static json_t *figures_json(const struct noise_figures *figures) {
    return json_pack("{sb so si si sI so so}", "bit_equal", figures->first == 0, "first",
                     noise_first_json(figures), "tensors", (int)figures->tensors, "gradients_equal",
                     (int)figures->gradients_equal, "gradient_ulp",
                     (json_int_t)figures->gradient_ulp, "tensor_relative",
                     json_finite(figures->tensor_relative), "total_relative",
                     json_finite(figures->total_relative));
}

static json_t *switch_json(const struct noise_switches *all, const struct noise_switch *one) {
    if (one->untestable[0] != '\0')
        return json_pack("{ss ss}", "name", one->name, "untestable", one->untestable);
    return json_pack("{ss ss so so so so}", "name", one->name, "over", all->list[one->over].name,
                     "update", ratio_json(&one->update), "passes", ratio_json(&one->passes),
                     "floor", figures_json(&one->floor), "moved", figures_json(&one->moved));
}

static enum status print_json(const struct pricing *pricing,
                              const struct noise_switches *switches) {
    const struct noise_report *const report = pricing->report;
    json_t *const list = json_array();
    for (uint32_t i = 0; i < switches->count; i++)
        json_array_append_new(list, switch_json(switches, &switches->list[i]));
    return json_print(json_pack("{ss ss so ss sI sI si si ss so}", "scenario", report->scenario,
                                "arm", report->arm, "device", noise_device_json(&report->device),
                                "dtype", pricing->dtype, "threads", (json_int_t)pricing->threads,
                                "updates", (json_int_t)report->steps, "rounds",
                                (int)switches->rounds, "instances", (int)switches->instances,
                                "set_by_mode", switches->reset, "switches", list));
}

enum status noise_run_switches(struct noise_asking *asking, int *out_exit) {
    const struct options *options = asking->options;
    struct arena *const arena = &asking->cli->arena;
    struct noise_switches switches;
    struct config *config;
    if (options->output != NULL || options_given(options, KEY_MODES))
        FAIL(STATUS_INPUT, "noise: --switches goes through modes of its own: expected no --modes "
                           "and no output");
    TRY(noise_ask(asking));
    if (asking->dtype_count != 1)
        FAIL(STATUS_INPUT, "noise: --switches: expected one dtype, got %u", asking->dtype_count);
    struct noise_report report = {.scenario = asking->scenario->name,
                                  .arm = asking->arm->name,
                                  .steps = asking->steps,
                                  .repeats = asking->repeats};
    TRY(arena_take(arena, 1, sizeof *config, "configuration", &config));
    *config = asking->arm->config;
    TRY(noise_switches_set_up(asking->dtypes[0], asking->threads, config));
    const struct noise_request request = noise_request_of(asking, config);
    TRY(noise_switches_measure(&request, seconds, NULL, arena, &switches));
    TRY(noise_report_device(&asking->arm->config, arena, &report));
    const struct pricing pricing = {&report, asking->dtypes[0], config->numerics.threads};
    *out_exit = EXIT_AS_EXPECTED;
    if (options->json) return print_json(&pricing, &switches);
    print_text(&pricing, &switches);
    return STATUS_OK;
}
