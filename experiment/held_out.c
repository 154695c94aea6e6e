/* SPDX-License-Identifier: Apache-2.0
 * Opens the data of eval.from with the baseline's options. Rows are told apart by a digest of their
 * tokens and targets, so the same row is found whatever file it stands in. */
#include "experiment/held_out.h"

#include <inttypes.h>
#include <string.h>

#include "base/sort.h"
#include "determinism/digest.h"
#include "trainer/run.h"

/* ---- which rows ---- */

/* The last line of the data that an arm trains on. */
static uint32_t last_line(const struct dataset *dataset) {
    return dataset->line[dataset->samples - 1];
}

static enum status count_rows(const struct scenario *scenario, const char *source, size_t there,
                              uint32_t *out) {
    const uint64_t wanted = scenario->eval.rows;
    *out = wanted == KEY_WORD_UINT || wanted > there ? (uint32_t)there : (uint32_t)wanted;
    if (there == 0)
        FAIL(STATUS_INPUT,
             "eval.from: expected rows of %s behind those that the arms train on, got none: set "
             "data.samples below their number",
             source);
    if (wanted != KEY_WORD_UINT && wanted > there)
        FAIL(STATUS_INPUT, "eval.rows: expected at most the %zu rows that %s has%s, got %ju", there,
             source, strcmp(scenario->eval.from, EVAL_REST) == 0 ? " behind data.samples" : "",
             (uintmax_t)wanted);
    return STATUS_OK;
}

static enum status choose(const struct scenario *scenario, const struct dataset *const datasets[2],
                          struct arena *arena, struct held_out *out) {
    const struct dataset *dataset = &out->dataset;
    size_t first = 0;
    if (strcmp(scenario->eval.from, EVAL_REST) == 0) {
        const uint32_t a = last_line(datasets[0]), b = last_line(datasets[1]);
        while (first < dataset->samples && dataset->line[first] <= (a > b ? a : b))
            first++;
    }
    TRY(count_rows(scenario, dataset->source, dataset->samples - first, &out->count));
    TRY(arena_take(arena, out->count, sizeof *out->index, "held-out rows", &out->index));
    for (uint32_t i = 0; i < out->count; i++)
        out->index[i] = (uint32_t)first + i;
    return STATUS_OK;
}

/* ---- rows that are trained on, too ---- */

static void row_digest(const struct dataset *dataset, size_t sample, struct digest *out) {
    struct digest sides[4];
    for (uint32_t side = 0; side < dataset->sides; side++) {
        const struct dataset_sequence *sequence = dataset_side(dataset, sample, side);
        digest_bytes("tokens", dataset->token + sequence->first,
                     sequence->length * sizeof *dataset->token, &sides[2 * side]);
        digest_bytes("targets", dataset->target + sequence->first,
                     sequence->length * sizeof *dataset->target, &sides[2 * side + 1]);
    }
    digest_root("row", sides, (size_t)2 * dataset->sides, out);
}

static int before(const void *a, const void *b, const void *context) {
    (void)context;
    return digest_compare((const struct digest *)a, (const struct digest *)b) < 0;
}

/* Whether a digest stands in a sorted list. */
static int contains(const struct digest *sorted, size_t count, const struct digest *one) {
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (digest_compare(&sorted[middle], one) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && digest_compare(&sorted[low], one) == 0;
}

/* Marks those of the rows that stand in `trained`. */
static enum status mark_seen(const struct held_out *held_out, const struct dataset *trained,
                             uint8_t *seen) {
    struct arena arena = ARENA_EMPTY;
    const size_t count = trained->samples;
    struct digest *rows;
    const enum status status =
        arena_take(&arena, 2 * count, sizeof *rows, "rows that are trained on", &rows);
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        row_digest(trained, i, &rows[i]);
    const struct digest *sorted = rows;
    if (status == STATUS_OK)
        sorted = (const struct digest *)sort_stable(rows, rows + count, count, sizeof *rows, before,
                                                    NULL);
    for (uint32_t i = 0; status == STATUS_OK && i < held_out->count; i++) {
        struct digest own;
        row_digest(&held_out->dataset, held_out->index[i], &own);
        if (contains(sorted, count, &own)) seen[i] = 1;
    }
    arena_close(&arena);
    return status;
}

static enum status find_seen(const struct dataset *const datasets[2], struct arena *arena,
                             struct held_out *out) {
    uint8_t *seen;
    TRY(arena_take(arena, out->count, 1, "held-out rows", &seen));
    for (int arm = 0; arm < 2; arm++) {
        const int same = arm == 1 && datasets[0] == datasets[1];
        if (!same && datasets[arm]->sides == out->dataset.sides)
            TRY(mark_seen(out, datasets[arm], seen));
    }
    for (uint32_t i = 0; i < out->count; i++) {
        if (seen[i] && out->seen++ == 0) out->seen_line = out->dataset.line[out->index[i]];
    }
    return STATUS_OK;
}

/* ---- all of it ---- */

enum status held_out_words(const struct held_out *held_out, struct arena *arena,
                           const char **out_rows, const char **out_seen) {
    const struct dataset *dataset = &held_out->dataset;
    char *text;
    TRY(arena_format(arena, &text, "%s, lines %" PRIu32 " to %" PRIu32, dataset->source,
                     dataset->line[held_out->index[0]],
                     dataset->line[held_out->index[held_out->count - 1]]));
    *out_rows = text;
    *out_seen = NULL;
    if (held_out->seen == 0) return STATUS_OK;
    TRY(arena_format(arena, &text,
                     "%" PRIu32 " of %" PRIu32 " held-out rows stand in the training data, too "
                     "(the first is line %zu): what is measured on them is not held out",
                     held_out->seen, held_out->count, held_out->seen_line));
    *out_seen = text;
    return STATUS_OK;
}

uint32_t held_out_trained(const struct scenario *scenario, const struct dataset *baseline) {
    const uint64_t most = scenario->eval.training_rows;
    return most < baseline->samples ? (uint32_t)most : (uint32_t)baseline->samples;
}

enum status held_out_open(const struct scenario *scenario, const struct dataset *const datasets[2],
                          struct arena *arena, struct held_out *out) {
    struct dataset_options options = run_dataset_options(&scenario->arms[0].config);
    memset(out, 0, sizeof *out);
    if (strcmp(scenario->eval.from, EVAL_NOTHING) == 0) return STATUS_OK;
    if (strcmp(scenario->eval.from, EVAL_REST) != 0) options.source = scenario->eval.from;
    options.samples = 0;
    const enum status status = dataset_open(&options, arena, &out->dataset);
    if (status != STATUS_OK) return status_prefix(status, "eval.from");
    if (out->dataset.bytes != datasets[0]->bytes)
        FAIL(STATUS_INPUT,
             "eval.from: %s holds %s, but the training data %s; expected one kind in both",
             out->dataset.source, out->dataset.bytes ? "text" : "token ids",
             datasets[0]->bytes ? "text" : "token ids");
    TRY(choose(scenario, datasets, arena, out));
    return find_seen(datasets, arena, out);
}
