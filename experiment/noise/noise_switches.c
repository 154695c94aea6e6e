/* SPDX-License-Identifier: Apache-2.0
 * Trains each switch of a list: first rounds of timed updates, then the floors, of which no time is
 * taken. Which switches there are is decided in noise_switches_list.c. A switch that fails is left
 * out of later rounds and says why; a failing base ends the measurement. */
#include "experiment/noise/noise_switches.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "experiment/noise/noise_report.h"
#include "scenarios/scenario.h"

#define INSTANCES_MOST 3u

struct timing {
    double (*seconds)(void *clock);
    void *clock;
    double passes, since; /* seconds in forward and backward so far; when the pass at hand began */
};

struct pricing {
    const struct noise_request *of;
    struct arena *arena;
    struct noise_switches *out;
    struct dataset dataset;
    struct timing timing;
    double *update, *passes; /* (switches, rounds) seconds of an update */
    struct noise_layout layout;
    /* paths of the switch compared with, and of two instances */
    unsigned char *base, *first, *other;
    uint64_t done;
};

static void at_phase(void *context, enum phase phase, int ended) {
    struct timing *const timing = (struct timing *)context;
    if (phase != PHASE_FORWARD && phase != PHASE_BACKWARD) return;
    const double now = timing->seconds(timing->clock);
    if (ended) timing->passes += now - timing->since;
    timing->since = now;
}

static enum status open_one(struct pricing *p, const struct noise_switch *one, uint64_t number,
                            struct run_options *options, struct run **out) {
    struct config config = one->config;
    config.numerics.order_seed = noise_order_seed(&one->config, number);
    options->order_seed = config.numerics.order_seed;
    if (p->of->interrupted != NULL && *p->of->interrupted)
        FAIL(STATUS_INTERRUPTED, "interrupted while switches were priced");
    return run_open(&config, &p->dataset, options, out);
}

/* Trains one update to warm up and takes it back, then times those that count. */
static enum status step_timed(struct pricing *p, struct run *run, unsigned char *start,
                              double *out_update, double *out_passes) {
    const struct record *record;
    struct timing *const timing = &p->timing;
    TRY(run_snapshot(run, start));
    TRY(run_step(run, &record));
    TRY(run_restore(run, start));
    timing->passes = 0.0;
    const double begin = timing->seconds(timing->clock);
    for (uint64_t step = 0; step < p->of->steps; step++)
        TRY(run_step(run, &record));
    *out_update = (timing->seconds(timing->clock) - begin) / (double)p->of->steps;
    *out_passes = timing->passes / (double)p->of->steps;
    return STATUS_OK;
}

static enum status time_one(struct pricing *p, const struct noise_switch *one, uint32_t round,
                            double *out_update, double *out_passes) {
    struct run_options options = {
        .steps = p->of->steps, .at_phase = at_phase, .at_phase_context = &p->timing};
    struct arena scratch = ARENA_EMPTY;
    struct run *run;
    unsigned char *start = NULL;
    TRY(open_one(p, one, round, &options, &run));
    enum status status = arena_take(&scratch, run_layout(run)->bytes, 1, "start", &start);
    if (status == STATUS_OK) status = step_timed(p, run, start, out_update, out_passes);
    arena_close(&scratch);
    run_close(run);
    return status;
}

static void tell(struct pricing *p) {
    noise_tell(p->of, "switches", p->done++,
               (uint64_t)p->out->count * (p->out->rounds + p->out->instances));
}

/* Notes why a switch cannot be had, so that the others go on; any other failure ends everything. */
static enum status give_up(struct noise_switch *one, enum status status) {
    if (status != STATUS_UNSUPPORTED && status != STATUS_UNTESTABLE) return status;
    snprintf(one->untestable, sizeof one->untestable, "%s", status_text());
    return STATUS_OK;
}

/* Times every switch once; each round begins with another one, so that none always follows the same
 * load. */
static enum status time_round(struct pricing *p, uint32_t round) {
    const uint32_t count = p->out->count, rounds = p->out->rounds;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = (i + round) % count;
        struct noise_switch *const one = &p->out->list[at];
        const size_t place = (size_t)at * rounds + round;
        tell(p);
        if (one->untestable[0] != '\0') continue;
        const enum status status = time_one(p, one, round, &p->update[place], &p->passes[place]);
        TRY(at == 0 ? status : give_up(one, status));
    }
    return STATUS_OK;
}

static enum status one_path(struct pricing *p, const struct noise_switch *one, uint64_t number,
                            unsigned char *out) {
    struct run_options options = noise_run_options(p->of->steps, 0);
    struct run *run;
    TRY(open_one(p, one, number, &options, &run));
    enum status status = STATUS_OK;
    if (p->layout.bytes == 0) {
        status = noise_layout_open(run, p->of->steps, p->arena, &p->layout);
        if (status == STATUS_OK) status = noise_ask_room(p->of, run, 3 * (uint64_t)p->layout.bytes);
        unsigned char **const paths[] = {&p->base, &p->first, &p->other};
        for (size_t i = 0; i < COUNT_OF(paths) && status == STATUS_OK; i++)
            status = arena_take(p->arena, p->layout.bytes, 1, "path of a training", paths[i]);
        out = p->first;
    }
    if (status == STATUS_OK) status = noise_path_take(&p->layout, run, p->of->interrupted, out);
    run_close(run);
    return status;
}

/* Whether the next switch stands over this one. Switches that stand over the same one follow each
 * other in the list, and the first of them follows it. */
static int is_base_of_next(const struct noise_switches *all, const struct noise_switch *one) {
    const uint32_t at = (uint32_t)(one - all->list);
    return at + 1 < all->count && all->list[at + 1].over == at;
}

static enum status floor_of(struct pricing *p, struct noise_switch *one) {
    tell(p);
    TRY(one_path(p, one, 0, p->first));
    TRY(noise_figures_open(&p->layout, p->arena, &one->floor));
    TRY(noise_figures_open(&p->layout, p->arena, &one->moved));
    if (one == p->out->list) memcpy(p->base, p->first, p->layout.bytes);
    noise_figures_add(&p->layout, p->base, p->first, &one->moved);
    if (is_base_of_next(p->out, one)) memcpy(p->base, p->first, p->layout.bytes);
    for (uint32_t i = 1; i < p->out->instances; i++) {
        tell(p);
        TRY(one_path(p, one, i, p->other));
        noise_figures_add(&p->layout, p->first, p->other, &one->floor);
    }
    return STATUS_OK;
}

static double insert(double *sorted, uint32_t count, double x) {
    for (; count > 0 && sorted[count - 1] > x; count--)
        sorted[count] = sorted[count - 1];
    return sorted[count] = x;
}

static double median(const double *sorted, uint32_t count) {
    return count % 2 == 1 ? sorted[count / 2] : 0.5 * (sorted[count / 2 - 1] + sorted[count / 2]);
}

static enum status ratio_of(const double *own, const double *base, uint32_t rounds,
                            struct arena *arena, struct noise_ratio *out) {
    double *times, *ratios;
    TRY(arena_take(arena, rounds, sizeof *times, "times", &times));
    TRY(arena_take(arena, rounds, sizeof *ratios, "times", &ratios));
    for (uint32_t r = 0; r < rounds; r++) {
        insert(times, r, own[r]);
        insert(ratios, r, base[r] > 0.0 ? own[r] / base[r] : (double)NAN);
    }
    out->seconds = median(times, rounds);
    out->ratio = median(ratios, rounds);
    const enum status status = statistics_quantile_interval(
        ratios, rounds, 0.5, NOISE_SWITCHES_CONFIDENCE, &out->interval);
    if (status != STATUS_UNTESTABLE) return status;
    out->interval = (struct statistics_interval){.confidence = 0.0};
    return STATUS_OK;
}

static enum status measure_all(struct pricing *p) {
    struct noise_switches *const out = p->out;
    for (uint32_t round = 0; round < out->rounds; round++)
        TRY(time_round(p, round));
    for (uint32_t i = 0; i < out->count; i++) {
        struct noise_switch *const one = &out->list[i];
        const struct noise_switch *const over = &out->list[one->over];
        const size_t at = (size_t)i * out->rounds, base = (size_t)one->over * out->rounds;
        if (one->untestable[0] == '\0' && over->untestable[0] != '\0')
            memcpy(one->untestable, over->untestable, sizeof one->untestable);
        if (one->untestable[0] != '\0') continue;
        TRY(ratio_of(p->update + at, p->update + base, out->rounds, p->arena, &one->update));
        TRY(ratio_of(p->passes + at, p->passes + base, out->rounds, p->arena, &one->passes));
        TRY(floor_of(p, one));
    }
    return STATUS_OK;
}

enum status noise_switches_set_up(const char *dtype, uint64_t threads, struct config *config) {
    struct noise_case own = {.mode = "own", .dtype = dtype};
    const int alone =
        config->numerics.backend == BACKEND_CPU && config->numerics.threads < 2 && threads == 0;
    return noise_case_set_up(&own, alone ? 2 : threads, config);
}

enum status noise_switches_measure(const struct noise_request *of, double (*seconds)(void *clock),
                                   void *clock, struct arena *arena, struct noise_switches *out) {
    struct pricing *p;
    const uint64_t steps = of->resolved > of->steps ? of->resolved : of->steps;
    const struct dataset_options source = run_dataset_options(of->config);
    memset(out, 0, sizeof *out);
    TRY(arena_take(arena, 1, sizeof *p, "switches", &p));
    TRY(arena_take(arena, NOISE_SWITCHES_MAX, sizeof *out->list, "switches", &out->list));
    TRY(noise_switches_list(of->config, steps, out->list, &out->count));
    if (out->list[0].untestable[0] != '\0') FAIL(STATUS_UNTESTABLE, "%s", out->list[0].untestable);
    noise_note_resets(of->config, &out->list[0].config, out->reset);
    out->rounds = of->repeats;
    out->instances = of->repeats < 2                ? 2
                     : of->repeats < INSTANCES_MOST ? of->repeats
                                                    : INSTANCES_MOST;
    *p = (struct pricing){
        .of = of, .arena = arena, .out = out, .timing = {.seconds = seconds, .clock = clock}};
    const size_t times = (size_t)out->count * out->rounds;
    TRY(arena_take(arena, times, sizeof *p->update, "times", &p->update));
    TRY(arena_take(arena, times, sizeof *p->passes, "times", &p->passes));

    TRY(dataset_open(&source, arena, &p->dataset));
    return measure_all(p);
}
