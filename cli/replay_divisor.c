/* SPDX-License-Identifier: Apache-2.0
 * Prints what a divisor of the loss may have counted. Numbers of items are named if a kind explains
 * them. Invariant: a bound is never rounded down. */
#include "cli/replay_divisor.h"

#include <inttypes.h>
#include <math.h>

#include "cli/json.h"

static const char *items_of(const struct divisor_reading *reading) {
    return reading->task == TASK_SFT ? "label tokens" : "pairs";
}

static const struct divisor_kind *explanation(const struct divisor_reading *reading) {
    for (uint32_t k = 0; k < reading->kind_count; k++)
        if (reading->kinds[k].explains) return &reading->kinds[k];
    return NULL;
}

static void print_origin(const struct divisor_reading *reading, uint32_t micro, FILE *out) {
    const struct divisor_kind *kind = explanation(reading);
    const char *const items = items_of(reading);
    if (kind == NULL) {
        fprintf(out, " (it has %" PRIu64 " %s)\n", reading->items[micro], items);
        return;
    }
    switch (kind->kind) {
    case DIVISOR_MEAN_OF_MEANS:
        fprintf(out, " (its own %" PRIu64 " %s, times the number of micro-batches)\n",
                reading->items[micro], items);
        return;
    case DIVISOR_SUM_OF_MEANS:
        fprintf(out, " (its own %" PRIu64 " %s)\n", reading->items[micro], items);
        return;
    case DIVISOR_UPDATE_AND_MICROS:
        fprintf(out, " (all %s, times the number of micro-batches)\n", items);
        return;
    case DIVISOR_MEANS_OVER_SIZE:
        fprintf(out, " (its own %" PRIu64 " %s, times batch.micro)\n", reading->items[micro],
                items);
        return;
    case DIVISOR_MICROS_BY_TOKENS:
        fprintf(out, " (its own %" PRIu64 " %s, by its share of all tokens)\n",
                reading->items[micro], items);
        return;
    case DIVISOR_UPDATE_UNSHIFTED:
        fprintf(out, " (all %g %s, as counted before the shift)\n", kind->expected[micro], items);
        return;
    case DIVISOR_MEAN_OF_RANKS:
        fprintf(out, " (its rank's %g %s, times %" PRIu64 " ranks)\n",
                kind->expected[micro] / (double)kind->ranks, items, kind->ranks);
        return;
    case DIVISOR_UPDATE:
    default:
        fprintf(out, " (all %g %s)\n", kind->expected[micro], items);
    }
}

static void print_kind(const struct divisor_kind *kind, FILE *out) {
    fprintf(out, "%s", divisor_kind_name(kind->kind));
    if (kind->ranks > 0) fprintf(out, " of %" PRIu64, kind->ranks);
}

/* Prints the kinds that explain the divisors as they are (`as_is`), or up to a factor. */
static int print_kinds(const struct divisor_reading *reading, int as_is, FILE *out) {
    int printed = 0;
    for (uint32_t k = 0; k < reading->kind_count; k++) {
        const struct divisor_kind *kind = &reading->kinds[k];
        if (as_is ? !kind->explains : kind->explains || isnan(kind->factor)) continue;
        fprintf(out, printed++ == 0 ? "" : ", ");
        print_kind(kind, out);
        if (!as_is) fprintf(out, " times %.6g", kind->factor);
    }
    return printed;
}

static void print_verdict(const struct divisor_reading *reading, FILE *out) {
    const struct divisor_kind *const update = &reading->kinds[DIVISOR_UPDATE];
    if (!update->explains)
        fprintf(out, "  one divisor for the update would be %g\n",
                update->expected[reading->micros - 1]);
    fprintf(out, "  loss.divisor that explains it: ");
    if (print_kinds(reading, 1, out) > 0) {
        fprintf(out, "\n");
        return;
    }
    fprintf(out, "none; but for a factor: ");
    if (print_kinds(reading, 0, out) == 0) fprintf(out, "none");
    fprintf(out, "\n");
}

void divisor_print(const char *run, const struct divisor_reading *reading, uint64_t update,
                   FILE *out) {
    if (reading->untestable != NULL) {
        fprintf(out, "%s: update %" PRIu64 ": divisors untestable: %s\n", run, update,
                reading->untestable);
        return;
    }
    fprintf(out, "%s: update %" PRIu64 ": by what losses were divided, read back:\n", run, update);
    for (uint32_t m = 0; m < reading->micros; m++) {
        fprintf(out, "  micro-batch %" PRIu32 ": divided by %.6g +- %.1e", m + 1,
                reading->divisor[m], 1.05 * reading->error[m]);
        print_origin(reading, m, out);
    }
    if (reading->clip != 1.0)
        fprintf(out, "  clipping scaled the gradient by %.6g (logged), which is taken out\n",
                reading->clip);
    print_verdict(reading, out);
    fprintf(out, "  %.1e of the gradient that the optimizer took in is none of theirs\n",
            reading->rest);
}

static json_t *kind_json(const struct divisor_reading *reading, const struct divisor_kind *kind) {
    json_t *expected = json_array();
    for (uint32_t m = 0; m < reading->micros; m++)
        json_array_append_new(expected, json_finite(kind->expected[m]));
    return json_pack("{ss sI so sb so}", "kind", divisor_kind_name(kind->kind), "ranks",
                     (json_int_t)kind->ranks, "expected", expected, "explains", kind->explains,
                     "factor", json_finite(kind->factor));
}

json_t *divisor_json(const struct divisor_reading *reading, uint64_t update) {
    if (reading->untestable != NULL)
        return json_pack("{sI ss}", "update", (json_int_t)update, "untestable",
                         reading->untestable);
    json_t *micros = json_array(), *kinds = json_array();
    for (uint32_t m = 0; m < reading->micros; m++)
        json_array_append_new(micros,
                              json_pack("{sI so so}", "items", (json_int_t)reading->items[m],
                                        "divisor", json_finite(reading->divisor[m]), "error",
                                        json_finite(reading->error[m])));
    for (uint32_t k = 0; k < reading->kind_count; k++)
        json_array_append_new(kinds, kind_json(reading, &reading->kinds[k]));
    return json_pack("{sI sn so so so so}", "update", (json_int_t)update, "untestable",
                     "micro_batches", micros, "kinds", kinds, "clip", json_finite(reading->clip),
                     "rest", json_finite(reading->rest));
}
