/* SPDX-License-Identifier: Apache-2.0
 * Measures the strata of every mode and dtype that was asked for, one case after the other. A
 * configuration that does not validate, or that this machine cannot run, makes its case untestable;
 * every other error ends the report. */
#include "experiment/noise/noise_report.h"

#include <stdio.h>
#include <string.h>

#include "scenarios/inert.h"
#include "scenarios/scenario.h"
#include "scenarios/selection.h"

struct noise_counts noise_count(const struct noise_report *report) {
    struct noise_counts counts = {0, 0, 0};
    for (uint32_t c = 0; c < report->count; c++) {
        const struct noise_case *one = &report->cases[c];
        counts.untestable += one->untestable[0] != '\0';
        for (uint32_t i = 0; i < one->table.count; i++) {
            const struct noise_row *row = &one->table.rows[i];
            if (row->stratum == NOISE_ONE_ULP || row->stratum == NOISE_F64) continue;
            if (row->untestable[0] != '\0')
                counts.untestable++;
            else if (row->figures.first == 0)
                counts.equal++;
            else
                counts.apart++;
        }
    }
    return counts;
}

static enum status with_option(enum status status, const char *option) {
    return status == STATUS_OK ? status : status_prefix(status, "noise: %s", option);
}

/* A key is told that `own` reads and its mode does not imply, so that somebody gave it, and that
 * another mode sets otherwise. */
static void note_reset(const struct config *own, const char *name, int32_t given, int32_t implied,
                       int32_t now, char out[NOISE_REASON_SIZE]) {
    char path[64];
    snprintf(path, sizeof path, "numerics.determinism.%s", name);
    const struct key_row *const row = schema_find(path, NULL);
    const size_t used = strlen(out);
    if (row == NULL || given == implied || given == now || inert_reason(own, path) != NULL) return;
    snprintf(out + used, NOISE_REASON_SIZE - used, "%s%s: %s -> %s", used == 0 ? "" : ", ", path,
             row->names[given], row->names[now]);
}

void noise_note_resets(const struct config *own, const struct config *config,
                       char out[NOISE_REASON_SIZE]) {
    struct config implied = *own;
    out[0] = '\0';
    config_set_mode(&implied, own->numerics.mode);
#define NOTE(key)                                                                                  \
    note_reset(own, #key, own->numerics.determinism.key, implied.numerics.determinism.key,         \
               config->numerics.determinism.key, out)
    NOTE(workspace);
    NOTE(order);
    NOTE(atomics);
    NOTE(split_k);
    NOTE(fill);
#undef NOTE
}

enum status noise_case_set_up(struct noise_case *one, uint64_t threads, struct config *config) {
    const int races = strcmp(one->mode, "atomic") == 0;
    const struct config own = *config;
    if (strcmp(one->mode, "own") != 0)
        TRY(with_option(noise_set_mode(config, one->mode), "--modes"));
    noise_note_resets(&own, config, one->reset);
    if (strcmp(one->dtype, "own") != 0)
        TRY(with_option(noise_set_dtype(config, one->dtype), "--dtypes"));
    if (threads != 0)
        config->numerics.threads = threads;
    else if (races && config->numerics.threads == 1)
        config->numerics.threads = 2;
    return STATUS_OK;
}

enum status noise_words_check(const struct noise_words *words) {
    struct config tried = {.task = 0};
    for (uint32_t m = 0; m < words->mode_count; m++)
        if (strcmp(words->modes[m], "own") != 0)
            TRY(with_option(noise_set_mode(&tried, words->modes[m]), "--modes"));
    for (uint32_t d = 0; d < words->dtype_count; d++)
        if (strcmp(words->dtypes[d], "own") != 0)
            TRY(with_option(noise_set_dtype(&tried, words->dtypes[d]), "--dtypes"));
    return STATUS_OK;
}

enum status noise_case_measure(const struct noise_request *request, struct arena *arena,
                               struct noise_case *one) {
    one->threads = one->config->numerics.threads;
    enum status status = STATUS_UNTESTABLE;
    if (config_validate(one->config, request->resolved) == STATUS_OK)
        status = noise_measure(request, arena, &one->table);
    if (status != STATUS_UNSUPPORTED && status != STATUS_UNTESTABLE) return status;
    snprintf(one->untestable, sizeof one->untestable, "%s", status_text());
    return STATUS_OK;
}

/* Gathers the first of these strata that differs. A second run is what is compared most often, so
 * `instance` comes first; a run that is restored shares most with its baseline and comes last. */
static enum status find_parts(struct noise_case *one, struct arena *arena) {
    static const enum noise_stratum order[] = {NOISE_INSTANCE, NOISE_PROCESS, NOISE_REPEAT};
    one->parts_of = "";
    for (size_t i = 0; i < COUNT_OF(order) && one->parts == NULL; i++)
        for (uint32_t r = 0; r < one->table.count; r++) {
            const struct noise_row *row = &one->table.rows[r];
            if (row->stratum != order[i] || row->figures.first == 0) continue;
            one->parts_of = noise_stratum_name(row->stratum);
            TRY(arena_take(arena, 1, sizeof *one->parts, "parts", &one->parts));
            TRY(noise_parts_of(&one->table.layout, &row->figures, arena, one->parts));
            break;
        }
    return STATUS_OK;
}

static enum status measure_case(const struct noise_request *of, uint64_t threads, uint64_t left,
                                struct arena *arena, struct noise_case *one) {
    struct noise_request request = *of;
    TRY(arena_take(arena, 1, sizeof *one->config, "configuration", &one->config));
    *one->config = *of->config;
    TRY(noise_case_set_up(one, threads, one->config));
    request.config = one->config;
    request.cases = left;
    const enum status status = noise_case_measure(&request, arena, one);
    return status == STATUS_OK ? find_parts(one, arena) : status;
}

enum status noise_report_device(const struct config *config, struct arena *arena,
                                struct noise_report *out) {
    char *line;
    TRY(backends_of_config(config, arena, &out->device));
    TRY(backends_line(&out->device, arena, &line));
    out->device_line = line;
    return STATUS_OK;
}

static int is_measured(const struct noise_case *one, int32_t mode) {
    return one->untestable[0] == '\0' && one->config->numerics.mode == mode &&
           one->table.path != NULL && one->table.instance != NULL;
}

/* Holds two orders of mode shuffled against their neutral reference, mode order-free, in each dtype
 * that has both cases. */
static enum status relate_orders(struct noise_report *report, struct arena *arena) {
    for (uint32_t a = 0; a < report->count; a++)
        for (uint32_t b = 0; b < report->count; b++) {
            struct noise_case *one = &report->cases[a];
            const struct noise_case *other = &report->cases[b];
            if (!is_measured(one, MODE_SHUFFLED) || !is_measured(other, MODE_ORDER_FREE)) continue;
            if (strcmp(one->dtype, other->dtype) != 0) continue;
            TRY(arena_take(arena, 1, sizeof *one->orders, "orders", &one->orders));
            TRY(noise_orders_measure(&one->table, &other->table, arena, one->orders));
        }
    return STATUS_OK;
}

enum status noise_report_measure(const struct noise_request *of, const struct noise_words *words,
                                 uint64_t threads, struct arena *arena, struct noise_report *out) {
    const size_t count = (size_t)words->mode_count * words->dtype_count;
    TRY(arena_take(arena, count, sizeof *out->cases, "cases", &out->cases));
    for (uint32_t m = 0; m < words->mode_count; m++)
        for (uint32_t d = 0; d < words->dtype_count; d++) {
            struct noise_case *one = &out->cases[out->count];
            one->mode = words->modes[m];
            one->dtype = words->dtypes[d];
            const enum status status = measure_case(of, threads, count - out->count, arena, one);
            const int partly = status == STATUS_INTERRUPTED && one->table.count > 0;
            out->count += status == STATUS_OK || partly;
            if (out->ready != NULL && (status == STATUS_OK || partly))
                TRY(out->ready(out->ready_context, out, one));
            TRY(status);
        }
    TRY(noise_report_device(of->config, arena, out));
    return relate_orders(out, arena);
}
