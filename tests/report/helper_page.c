/* SPDX-License-Identifier: Apache-2.0
 * Makes the traces that helper_page.h describes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/report/helper_page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/report/helper_markup.h"

#define ATTRIBUTES_MAX 4096

static void require(enum status status) {
    if (status != STATUS_OK) fail_msg("%s", status_text());
}

/* Sets a pointer to `count` zeroed elements. */
#define TAKE(fake, pointer, count)                                                                 \
    require(arena_take(&(fake)->arena, (count), sizeof *(pointer), "fake", &(pointer)))

static const char *format(struct fake *fake, const char *text, unsigned long long number) {
    char *out;
    require(arena_format(&fake->arena, &out, text, number));
    return out;
}

static void put(struct fake *fake, const char *path, const char *name, const char *text) {
    struct trace_image *image = &fake->image;
    if (image->attributes == NULL) TAKE(fake, image->attributes, ATTRIBUTES_MAX);
    assert_true(image->attribute_count < ATTRIBUTES_MAX);
    image->attributes[image->attribute_count++] = (struct trace_attribute){path, name, text};
}

/* Returns `text` with the hostile text, or further lines, appended where there are any. */
static const char *spoil(struct fake *fake, const char *hostile, const char *text) {
    char *out;
    if (hostile == NULL) return text;
    require(arena_format(&fake->arena, &out, "%s%s", text, hostile));
    return out;
}

/* ---- runs ---- */

static const char *const phases[] = {"fetch", "forward", "backward", "optimize"};

static double value_of(uint32_t run, uint64_t step, int column) {
    return 0.7 + 0.01 * (double)((step * 7 + (uint64_t)column * 3) % 11) + 1e-6 * (double)run;
}

static void set_digest(uint8_t *digest, uint64_t a, uint64_t b) {
    memset(digest, 1, RECORD_DIGEST_BYTES);
    digest[0] = (uint8_t)a;
    digest[1] = (uint8_t)b;
}

static void fill_record(struct fake *fake, const struct trace_run *run, uint32_t seed,
                        uint64_t step, struct record *out) {
    const struct record_shape *shape = &run->plan.shape;
    out->step = step;
    for (int i = 0; i < RECORD_REALS; i++)
        out->reals[i] = value_of(seed, step, i);
    for (int i = 0; i < RECORD_DIGESTS; i++)
        set_digest(out->digests[i], seed, step);
    TAKE(fake, out->groups, shape->groups);
    for (uint32_t g = 0; g < shape->groups; g++)
        for (int c = 0; c < RECORD_GROUPS; c++)
            out->groups[g][c] = 1e-6 / (double)(step + (c == GROUP_LR_APPLIED ? seed : 0) + g);
    TAKE(fake, out->tensor_digests, shape->tensors);
    for (uint32_t t = 0; t < shape->tensors; t++)
        for (int d = 0; d < RECORD_TENSOR_DIGESTS; d++)
            set_digest(out->tensor_digests[t][d], step + t >= 4 ? seed : 0, step);
    TAKE(fake, out->phases, shape->phases);
    for (uint32_t p = 1; p < shape->phases; p++) /* the first one wrote nothing */
        set_digest(out->phases[p], p == 1 && step < 2 ? 0 : seed, step);
    TAKE(fake, out->sites, shape->sites);
    for (uint32_t s = 0; s < shape->sites; s++)
        set_digest(out->sites[s], seed, step);
    TAKE(fake, out->ranks, shape->ranks);
    for (uint32_t r = 0; r < shape->ranks; r++)
        out->ranks[r][RANK_FIRST_TENSOR] = r == 1 && step >= 4 ? 2 : -1;
}

static void add_run(struct fake *fake, const struct fake_plan *plan, const char *id,
                    const char *arm, int64_t replicate, uint64_t updates) {
    struct trace_run *run = &fake->image.runs[fake->image.run_count++];
    const uint32_t seed = plan->equal ? 1 : fake->image.run_count;
    const char **names;
    TAKE(fake, names, plan->tensors);
    const char **sites;
    TAKE(fake, sites, plan->sites);
    for (uint32_t t = 0; t < plan->tensors; t++) {
        char *name;
        require(arena_format(&fake->arena, &name, "model.layers.%u.part_%u.weight%s", t / 7, t % 7,
                             plan->hostile == NULL ? "" : plan->hostile));
        names[t] = name;
    }
    for (uint32_t s = 0; s < plan->sites; s++)
        sites[s] = format(fake, "site.%llu", s);
    run->plan = (struct trace_run_plan){.id = id,
                                        .arm = arm,
                                        .replicate = replicate,
                                        .first_step = 1,
                                        .shape = {.groups = plan->groups,
                                                  .tensors = plan->tensors,
                                                  .phases = 4,
                                                  .sites = plan->sites},
                                        .phases = phases,
                                        .sites = sites,
                                        .tensors = names};
    const int baseline = strcmp(arm, "baseline") == 0;
    if (plan->ranks > 0 && !baseline) run->plan.shape.ranks = plan->ranks;
    if (plan->ranks > 0)
        run->plan.configuration =
            spoil(fake, baseline ? NULL : plan->rank_keys,
                  format(fake,
                         "batch.size: 8\nnumerics.mode: invariant\nnumerics.shards: 8\n"
                         "parallel.ranks: %llu\nparallel.deal: cyclic\n"
                         "parallel.zero: 2\n",
                         baseline ? 1 : plan->ranks));
    else
        run->plan.configuration = spoil(
            fake, plan->hostile,
            baseline || plan->factors == 0
                ? "seed: 1\nloop.update: [clip, optimize]\nnumerics.compute: f32\nonly.here: x"
                : "seed: 1\nloop.update: [optimize, clip]\nnumerics.compute: bf16\nonly.test: y\n");
    run->updates = updates;
    TAKE(fake, run->records, updates);
    for (uint64_t i = 0; i < updates; i++)
        fill_record(fake, run, seed, i + 1, &run->records[i]);
}

static void add_runs(struct fake *fake, const struct fake_plan *plan) {
    struct trace_image *image = &fake->image;
    TAKE(fake, image->runs, 2 + 2 * (size_t)plan->repeats);
    add_run(fake, plan, "baseline", "baseline", 0, plan->updates[0]);
    add_run(fake, plan, "test", "test", 0, plan->updates[1]);
    for (uint32_t i = 0; i < 2 * plan->repeats; i++)
        add_run(fake, plan, format(fake, "floor-%llu", i), i < plan->repeats ? "baseline" : "test",
                i % plan->repeats + 1, plan->incomplete ? 0 : plan->updates[0]);
}

static void fill_pair(struct fake *fake, const struct fake_plan *plan, const char *b,
                      struct trace_pair *pair) {
    const uint64_t *n = plan->updates;
    pair->plan = (struct trace_pair_plan){"baseline", b};
    pair->updates = n[0] < n[1] ? n[0] : n[1];
    TAKE(fake, pair->records, pair->updates);
    for (uint64_t i = 0; i < pair->updates; i++) {
        pair->records[i].step = i + 1;
        for (int c = 0; c < RECORD_PAIRS; c++)
            pair->records[i].reals[c] = plan->equal ? 0.0 : 1e-5 * (double)(i + 1);
    }
}

/* Distances grow linearly between the arms, and by a factor each to the perturbed run. */
static void add_pairs(struct fake *fake, const struct fake_plan *plan) {
    struct trace_pair *pairs;
    double distance = 1e-7;
    TAKE(fake, pairs, 2);
    fake->image.pairs = pairs;
    fake->image.pair_count = plan->twin > 0.0 ? 2 : 1;
    fill_pair(fake, plan, "test", &pairs[0]);
    if (!(plan->twin > 0.0)) return;
    fill_pair(fake, plan, "twin", &pairs[1]);
    for (uint64_t i = 0; i < pairs[1].updates; i++, distance *= plan->twin)
        pairs[1].records[i].reals[PAIR_DISTANCE] = distance;
}

/* ---- arrays ---- */

static double *add_array(struct fake *fake, const char *path, uint32_t rank, uint64_t rows,
                         uint64_t columns) {
    struct trace_image *image = &fake->image;
    double *values;
    TAKE(fake, values, rows * columns);
    if (image->arrays == NULL) TAKE(fake, image->arrays, 256);
    assert_true(image->array_count < 256);
    image->arrays[image->array_count++] =
        (struct trace_array){.plan = {path, rank, {rows, columns}, "1", path}, .values = values};
    return values;
}

static void add_floor(struct fake *fake, const struct fake_plan *plan) {
    if (plan->repeats == 0) {
        double *equal = add_array(fake, "floor/equal", 2, 2, 1);
        equal[0] = equal[1] = plan->incomplete ? (double)NAN : 1.0;
        return;
    }
    const uint64_t m = 2 * ((uint64_t)plan->repeats + 1);
    double *distance = add_array(fake, "floor/distance", 2, m, m);
    for (uint64_t i = 0; i < m; i++)
        for (uint64_t j = 0; j < m; j++)
            distance[i * m + j] = plan->incomplete             ? (double)NAN
                                  : i == j                     ? 0.0
                                  : (i < m / 2) == (j < m / 2) ? 1e-9 * (double)(i + j)
                                                               : 1e-5;
}

static void add_shares(struct fake *fake, const struct fake_plan *plan) {
    if (plan->factors == 0) return;
    double *value = add_array(fake, "attribution/value", 1, 1u << plan->factors, 1);
    double *closure = add_array(fake, "attribution/closure", 1, 3, 1);
    for (uint32_t mask = 0; mask < 1u << plan->factors; mask++)
        value[mask] = plan->incomplete ? (double)NAN : 3e-5 * (double)mask;
    closure[0] = plan->incomplete ? (double)NAN : 1.0;
    closure[1] = 1.0;
    closure[2] = (double)plan->updates[0];
}

static void copy_to(double *out, const double *values, size_t count) {
    memcpy(out, values, count * sizeof *out);
}

/* The games over {schedule, dtype}: after update 1 schedule brings the arms closer, at the end it
 * makes a third of the distance. */
static void add_marks(struct fake *fake, const struct fake_plan *plan) {
    static const double distance[] = {0.0, 0.5e-5, 4e-5, 3e-5, 0.0, 3e-5, 6e-5, 9e-5};
    static const double loss[] = {0.0, 0.0, 0.0, 0.0, 0.0, -2e-5, 3e-5, 1e-5};
    static const double kl[] = {0.0, 1e-6, 2e-6, 3e-6};
    const double first[] = {0.0, 4.0, 0.0, 4.0}, mark[] = {1.0, (double)plan->updates[0]};
    if (!plan->marks) return;
    copy_to(add_array(fake, "attribution/mark", 1, 2, 1), mark, 2);
    copy_to(add_array(fake, "attribution/distance_at", 2, 2, 4), distance, 8);
    copy_to(add_array(fake, "attribution/loss_at", 2, 2, 4), loss, 8);
    copy_to(add_array(fake, "attribution/way_at", 2, 2, 4), distance, 8); /* all in one line */
    copy_to(add_array(fake, "attribution/probe_kl", 1, 4, 1), kl, 4);
    copy_to(add_array(fake, "attribution/first_update", 1, 4, 1), first, 4);
}

#define PROJECTION_RUNS 4

/* The end points along B - A: schedule goes 0.3 of it, dtype 0.7; noise lies along it, too. */
static void add_projection(struct fake *fake, const struct fake_plan *plan) {
    static const double noise[PROJECTION_RUNS] = {1.0, -2.0, 2.0, -1.0};
    const uint64_t runs = 4 * PROJECTION_RUNS;
    double end[4 * PROJECTION_RUNS];
    if (!(plan->projection_noise > 0.0)) return;
    double *gram = add_array(fake, "attribution/gram", 2, runs, runs);
    for (uint64_t i = 0; i < runs; i++)
        end[i] = 0.3 * (double)(i / PROJECTION_RUNS & 1) +
                 0.7 * (double)(i / PROJECTION_RUNS >> 1) +
                 plan->projection_noise * noise[(i + i / PROJECTION_RUNS) % PROJECTION_RUNS];
    for (uint64_t i = 0; i < runs; i++)
        for (uint64_t j = 0; j < runs; j++)
            gram[i * runs + j] = end[i] * end[j];
    put(fake, "attribution", "replicates", "4");
}

static void add_attributes(struct fake *fake, const struct fake_plan *plan) {
    const char *h = plan->hostile;
    put(fake, "", "name", spoil(fake, h, "made-up"));
    put(fake, "", "about", spoil(fake, h, "What it is about."));
    put(fake, "", "source", spoil(fake, h, "a source"));
    put(fake, "", "scenario", spoil(fake, h, "twinstep: 1\nname: made-up\n"));
    put(fake, "", "overrides", spoil(fake, h, "steps=3\ncommon.data.pairs=it's here.jsonl"));
    put(fake, "", "baseline", "baseline");
    put(fake, "", "test", "test");
    put(fake, "", "configuration_digest", "00ff");
    put(fake, "", "steps", format(fake, "%llu", plan->steps != 0 ? plan->steps : plan->updates[0]));
    put(fake, "floor", "kind", plan->repeats == 0 ? "exact" : "permutation");
    put(fake, "floor", "alpha", "0.01");
    put(fake, "floor", "runs_baseline", format(fake, "%llu", 1 + plan->repeats));
    put(fake, "floor", "runs_test", format(fake, "%llu", 1 + plan->repeats));
    put(fake, "attribution", "factors", format(fake, "%llu", plan->factors));
    put(fake, "attribution", "notes", "");
    put(fake, "attribution", "factor_0", spoil(fake, h, "schedule"));
    put(fake, "attribution", "factor_0_keys",
        "loop.update: [clip, optimize] -> [optimize, clip]\n");
    put(fake, "attribution", "factor_1", "dtype");
    put(fake, "attribution", "factor_1_keys", "numerics.compute: f32 -> bf16\n");
    put(fake, "verdict", "expect_verdict", "");
    put(fake, "verdict", "expect_cause", "");
    put(fake, "verdict", "expect_first_phase", "");
    put(fake, "verdict", "expect_first_tensor", "");
    put(fake, "verdict", "expect_first_step", "0");
    put(fake, "env", "version", spoil(fake, h, "0.1.0"));
}

void fake_open(struct fake *fake, const struct fake_plan *plan) {
    memset(fake, 0, sizeof *fake);
    fake->image.complete = !plan->incomplete;
    add_attributes(fake, plan);
    add_runs(fake, plan);
    add_pairs(fake, plan);
    add_floor(fake, plan);
    add_shares(fake, plan);
    add_marks(fake, plan);
    add_projection(fake, plan);
}

/* ---- a log ---- */

static void add_column(struct fake *fake, uint64_t rows, const char *group, const char *name,
                       const char *source) {
    char *path;
    require(arena_format(&fake->arena, &path, "%s/value", group));
    double *value = add_array(fake, path, 1, rows, 1);
    require(arena_format(&fake->arena, &path, "%s/quantum", group));
    double *quantum = add_array(fake, path, 1, rows, 1);
    for (uint64_t i = 0; i < rows; i++) {
        value[i] = i % 5 == 4 ? (double)NAN : value_of(1, i, 0);
        quantum[i] = i % 5 == 4 ? (double)NAN : 1e-4;
    }
    put(fake, group, "source_name", source);
    put(fake, group, "name", name);
    put(fake, group, "units", "nat");
}

void fake_open_log(struct fake *fake, uint64_t rows, uint32_t others, const char *hostile) {
    memset(fake, 0, sizeof *fake);
    fake->image.complete = 1;
    put(fake, "", "kind", "log");
    put(fake, "log", "format", "jsonl");
    put(fake, "log", "step_base", "1");
    put(fake, "log", "step_guessed", "1");
    put(fake, "log", "max_steps", "0");
    double *step = add_array(fake, "log/step", 1, rows, 1);
    for (uint64_t i = 0; i < rows; i++)
        step[i] = (double)(i * 10 + 1);
    add_column(fake, rows, "log/loss", "loss", spoil(fake, hostile, "train/loss"));
    add_column(fake, rows, "log/lr", "lr_logged", "lr");
    for (uint32_t i = 0; i < others; i++)
        add_column(fake, rows, format(fake, "log/other_%llu", i), "",
                   spoil(fake, hostile, format(fake, "other %llu", i)));
    struct trace_text *texts;
    TAKE(fake, texts, 2);
    const char *path = spoil(fake, hostile, "folder/log.jsonl");
    const char *notes = spoil(fake, hostile, "a note\n");
    texts[0] = (struct trace_text){"log/source", path, strlen(path)};
    texts[1] = (struct trace_text){"log/notes", notes, strlen(notes)};
    fake->image.texts = texts;
    fake->image.text_count = 2;
}

void fake_close(struct fake *fake) {
    arena_close(&fake->arena);
}

char *fake_page(struct fake *fake, size_t *out_length) {
    const struct report_options options = {.version = "1.2.3"};
    char *page = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&page, &length);
    assert_non_null(out);
    require(report_write(&fake->image, &options, &fake->arena, out));
    assert_int_equal(fclose(out), 0);
    const char *wrong = markup_fault(page, length);
    if (wrong != NULL) fail_msg("%s", wrong);
    if (out_length != NULL) *out_length = length;
    return page;
}
