/* SPDX-License-Identifier: Apache-2.0
 * Prints what `parity` found as tables for a terminal: one line per component and per case of the
 * grid, then what is outside. */
#include "cli/parity/parity_asking.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/plain_text.h"
#include "model/model_ops.h"

#define ROWS_SHOWN 12

const char *parity_finding_name(enum parity_finding finding) {
    static const char *const names[] = {"within", "outside", "untestable"};
    return names[finding];
}

enum parity_finding parity_training_finding(const struct judgement *judgement) {
    if (judgement_differs(judgement)) return PARITY_OUTSIDE;
    return judgement->verdict == VERDICT_UNTESTABLE ? PARITY_UNTESTABLE : PARITY_WITHIN;
}

enum parity_finding parity_overall(const struct parity_report *report) {
    enum parity_finding found[4];
    int count = 0, untestable = 0;
    if (report->components != NULL) found[count++] = report->components->finding;
    if (report->logits != NULL) found[count++] = report->logits->finding;
    if (report->logprob != NULL) found[count++] = report->logprob->finding;
    if (report->training != NULL) found[count++] = parity_training_finding(report->training);
    for (int i = 0; i < count; i++) {
        if (found[i] == PARITY_OUTSIDE) return PARITY_OUTSIDE;
        untestable |= found[i] == PARITY_UNTESTABLE;
    }
    return untestable ? PARITY_UNTESTABLE : PARITY_WITHIN;
}

/* Takes the sign from NaN, because printf would write it and it means nothing. */
static double unsigned_nan(double value) {
    return isnan(value) ? (double)NAN : value;
}

/* Returns percent. A share below 1 is at most `most`, because one element that differs must not be
 * rounded to 100 %. */
static double percent(double share, double most) {
    return share < 1.0 && 100.0 * share > most ? most : 100.0 * share;
}

static void print_config(char side, const char *name, const struct config *config, FILE *out) {
    static const char *const modes[] = {"invariant", "shuffled", "shaped",    "deterministic",
                                        "fast",      "atomic",   "order-free"};
    fprintf(out,
            "%c  %s: %s, %" PRIu64 " layers, hidden %" PRIu64 ", compute %s, mode %s, "
            "micro-batch %" PRIu64 "\n",
            side, name, family_name(config->model.family), config->model.layers,
            config->model.hidden, dtype_name((enum dtype)config->numerics.compute),
            modes[config->numerics.mode], config->batch.micro);
}

/* Names the first keys in which the configurations differ, and counts the others. */
static void print_keys(const struct parity_report *report, FILE *out) {
    uint32_t count = 0;
    for (uint32_t f = 0; f < report->factor_count; f++) {
        const struct factor *const factor = &report->factors[f];
        for (uint32_t k = 0; k < factor->key_count; k++) {
            if (count++ >= PARITY_KEYS_SHOWN) continue;
            fprintf(out, "%s%s: ", count == 1 ? "differs  " : "         ", factor->keys[k]);
            plain_text_put(factor->values[0][k], out);
            fputs(" | ", out);
            plain_text_put(factor->values[1][k], out);
            fputc('\n', out);
        }
    }
    if (count > PARITY_KEYS_SHOWN)
        fprintf(out, "         and %" PRIu32 " more (--json)\n", count - PARITY_KEYS_SHOWN);
}

static void print_head(const struct parity_report *report, FILE *out) {
    const struct parity *parity = report->parity;
    print_config('A', report->words->side[0].name, &parity->config[PARITY_A], out);
    print_config('B', report->words->side[1].name, &parity->config[PARITY_B], out);
    print_keys(report, out);
    if (report->weights.apart == 0)
        fprintf(out, "weights  B has A's, every bit of %u tensors\n", report->weights.tensors);
    else
        fprintf(out, "weights  %u of %u tensors of B are not A's in B's dtype; the first is %s\n",
                report->weights.apart, report->weights.tensors, report->weights.first);
    for (int side = 0; side < 2; side++)
        if (report->weights.broken[side] > 0)
            fprintf(out, "weights  %c: %u tensors hold NaN or infinity, first %s\n", "AB"[side],
                    report -> weights.broken[side], report->weights.first_broken[side]);
    for (int side = 0; side < 2; side++)
        if (report->dtype_note[side] != NULL)
            fprintf(out, "weights  %c: %s\n", "AB"[side], report -> dtype_note[side]);
}

/* ---- components ---- */

static const char *place(const struct parity_component_row *row, char text[32]) {
    if (row->layer == PASS_NO_LAYER)
        snprintf(text, 32, "%s", "");
    else
        snprintf(text, 32, "layer %u ", row->layer);
    return text;
}

static void print_sum(enum parity_component component, enum parity_side side,
                      const struct parity_component_sum *sum, FILE *out) {
    const struct parity_component_row *worst = sum->worst, *sparse = sum->worst_sparse;
    char where[32];
    if (sum->rows == 0) return;
    fprintf(out, "  %-14s %-15s %4u %8.3g %8.3g %8.3g", parity_component_names[component],
            parity_side_names[side], sum->rows, unsigned_nan(worst->median),
            unsigned_nan(worst->high), unsigned_nan(worst->most));
    if (worst->replica.count > 0)
        fprintf(out, " %9.3g", unsigned_nan(worst->replica_high));
    else
        fprintf(out, " %9s", "-");
    fprintf(out, " %8.3g %8.3g %7.1f %% %4u  %s%s\n", unsigned_nan(sparse->sparse),
            unsigned_nan(sparse->replica_sparse), percent(sum->equal, 99.9), sum->outside,
            place(worst, where), worst->op);
}

static void print_element(const struct parity_component_row *row, FILE *out) {
    if (isnan(row->sparse))
        fprintf(out, "; the first such element: batch %u, ", row->worst_batch);
    else
        fprintf(out,
                "; one element is off by %.3g rounding units (low and replicas: %.3g): batch %u, ",
                row->sparse, unsigned_nan(row->replica_sparse), row->worst_batch);
    if (row->worst_sequence == UINT32_MAX)
        fprintf(out, "row %u", row->worst_within);
    else
        fprintf(out, "sample %u%s, position %u", row->worst_sequence / 2,
                row->worst_sequence % 2 == 0 ? "" : " rejected", row->worst_within);
    fprintf(out, ", column %zu", row->worst_column);
}

static void print_row(const struct parity_component_row *row, FILE *out) {
    static const char *const levels[PARITY_LEVELS] = {"alone", "from the stream", "from the stream",
                                                      "end to end"};
    char where[32];
    fprintf(out, "  %s%s, %s (%s): R %.3g, relative error %.2g: %s", place(row, where), row->op,
            row->tensor, levels[row->level], unsigned_nan(row->median), unsigned_nan(row->relative),
            parity_row_words(row));
    if (!row->not_finite && row->band >= PARITY_BAND_POSSIBLE && row->explained > 0.5)
        fprintf(out, " (%.6g)", row->factor);
    if (row->sparse_stands_out) print_element(row, out);
    if (row->not_exact)
        fprintf(out, "; an exact op, but %" PRIu64 " of %" PRIu64 " elements have other bits",
                row->apart, row->elements);
    fputc('\n', out);
}

static void print_outside(const struct parity_components *components, FILE *out) {
    uint32_t outside = 0;
    for (uint32_t i = 0; i < components->count; i++) {
        if (components->rows[i].finding != PARITY_OUTSIDE) continue;
        if (outside++ == 0) fputs("outside, in the order in which they run:\n", out);
        if (outside <= ROWS_SHOWN) print_row(&components->rows[i], out);
    }
    if (outside > ROWS_SHOWN) fprintf(out, "  and %u more (--json)\n", outside - ROWS_SHOWN);
}

static void print_rope(const struct parity_rope *rope, FILE *out) {
    if (rope->apart == 0) return;
    fprintf(out,
            "rotary table: %" PRIu64 " of %" PRIu64 " entries have other bits, by up to %.3g; the "
            "first at position %u, frequency %u\n",
            rope->apart, rope->entries, unsigned_nan(rope->largest), rope->position, rope->pair);
}

static void print_shape(const struct parity_components *components, FILE *out) {
    if (components->shape == PARITY_NO_RISE) return;
    fprintf(out, "depth: R of the residual stream is above the line from layer %u on: a %s\n",
            components->shape_layer,
            components->shape == PARITY_STEP ? "step, which later layers keep"
                                             : "spike, which later layers lose");
}

static void print_components(const struct parity_report *report, FILE *out) {
    const struct parity_components *components = report->components;
    const struct config *config = report->parity->config;
    fprintf(out, "\nComponents: %s\n", parity_finding_name(components->finding));
    if (components->untestable != NULL) {
        fprintf(out, "  %s\n", components->untestable);
        return;
    }
    fprintf(out,
            "  R = |B - high| / (|low - high| + eps); low: A in %s, high: A in %s; %u batches, %u "
            "replicas of low each; line %.1f\n",
            dtype_name((enum dtype)config[PARITY_LOW].numerics.compute),
            dtype_name((enum dtype)config[PARITY_HIGH].numerics.compute), components->batches,
            components->replicas, PARITY_R_LINE);
    fputs("                                        R of the worst layer    replicas  one element   "
          " bits of\n"
          "  component      of              rows   median     95 %      max     95 %        B  "
          "replicas    low   out  worst\n",
          out);
    for (int c = 0; c < PARITY_COMPONENTS; c++)
        for (int s = 0; s < PARITY_SIDES; s++)
            print_sum((enum parity_component)c, (enum parity_side)s, &components->sums[c][s], out);
    print_rope(&components->rope, out);
    print_shape(components, out);
    print_outside(components, out);
}

/* ---- logits ---- */

static void print_logits(const struct parity_report *report, FILE *out) {
    const struct parity_logits *logits = report->logits;
    const int has_high = report->parity->run[PARITY_HIGH] != NULL;
    fprintf(out, "\nLogits under teacher forcing: %s%s%s\n", parity_finding_name(logits->finding),
            logits->why[0] == '\0' ? "" : ": ", logits->why);
    fprintf(out, "  labels       %" PRIu64 "; %.2f %% of the logits have A's bits\n",
            logits->labels, percent(logits->equal, 99.99));
    fprintf(out, "  cosine       least %.9g, mean %.9g (line %.2f)\n",
            unsigned_nan(logits->cosine_least), unsigned_nan(logits->cosine_mean),
            PARITY_COSINE_LINE);
    fprintf(out, "  KL           (%s || B) %.4g nat, 99 %% of labels below %.4g; (A || B) %.4g\n",
            has_high ? "high" : "A", unsigned_nan(logits->kl), unsigned_nan(logits->kl_99),
            unsigned_nan(logits->kl_direct));
    fprintf(out,
            "  threshold    %.4g = 1.44 times the largest of low and %u replicas (%.4g to %.4g; "
            "alpha %.3g)\n",
            unsigned_nan(logits->threshold), logits->replicas, unsigned_nan(logits->replica_least),
            unsigned_nan(logits->replica_largest), logits->alpha);
    fprintf(out, "  likeliest    the same token at %.2f %% of labels (line %.0f %%)\n",
            100.0 * logits->top, 100.0 * PARITY_TOP_LINE);
    fputs("  positions    labels   mean KL   max |A - B|\n", out);
    for (uint32_t i = 0; i < logits->bin_count; i++) {
        const struct parity_bin *bin = &logits->bins[i];
        char range[32];
        if (bin->labels == 0) continue;
        snprintf(range, sizeof range, "%u-%u", bin->from, bin->to - 1);
        fprintf(out, "  %-12s %6" PRIu64 " %9.3g %13.3g\n", range, bin->labels,
                unsigned_nan(bin->kl), unsigned_nan(bin->largest));
    }
}

/* ---- log-probs ---- */

static void print_logprob_row(const struct parity_row *row, uint32_t repeats, FILE *out) {
    fprintf(out,
            "  %9.2f %9u %6u   %-9s %-9s %5u   %-8s %12.6f %10.6f %10.6f %10.2e %6.1f %% %3u/%u "
            "%9.2e %9.2e  %s\n",
            row->prompt, row->generated, row->length, parity_data_names[row->data],
            row->sampled ? "sampled" : "greedy", row->batch, row->refit ? "refit" : "no_refit",
            unsigned_nan(row->error), unsigned_nan(row->median), unsigned_nan(row->high),
            unsigned_nan(row->bias), percent(row->equal, 99.9), row->alike, repeats,
            unsigned_nan(row->apart), unsigned_nan(row->own), parity_finding_name(row->finding));
}

static void print_logprob(const struct parity_report *report, FILE *out) {
    const struct parity_logprob *logprob = report->logprob;
    fprintf(out, "\nLog-prob consistency: %s (B generates from a cache, A's forward scores)\n",
            parity_finding_name(logprob->finding));
    fprintf(
        out,
        "  error: mean exp|d|, d = log-prob of B - A; line %.2f, and %g times A's own mean |d|; "
        "sampled: temperature %g, top-p %g\n",
        PARITY_ERROR_LINE, PARITY_OWN_LINE, report->grid->temperature, report->grid->top_p);
    fputs("  ISL (avg)       OSL length   data      method    batch   refit     A vs B (gen)     "
          "median     99.9 %     mean d    equal alike  mean |d|   A's own\n",
          out);
    for (uint32_t i = 0; i < logprob->count; i++)
        print_logprob_row(&logprob->rows[i], report->grid->repeats, out);
    if (logprob->updates == 0) return;
    fprintf(out, "  refit after %" PRIu64 " updates of A: ", logprob->updates);
    if (logprob->weights.apart == 0)
        fprintf(out, "B has A's weights, every bit of %u tensors\n", logprob->weights.tensors);
    else
        fprintf(out, "%u of %u tensors of B are NOT A's; the first is %s\n", logprob->weights.apart,
                logprob->weights.tensors, logprob->weights.first);
}

void parity_print_text(const struct parity_report *report, FILE *out) {
    print_head(report, out);
    if (report->components != NULL) print_components(report, out);
    if (report->logits != NULL) print_logits(report, out);
    if (report->logprob != NULL) print_logprob(report, out);
    if (report->training != NULL) {
        fprintf(out, "\nTraining: %s\n",
                parity_finding_name(parity_training_finding(report->training)));
        judgement_print(report->training, out);
    }
    fprintf(out, "\n%s\n", parity_finding_name(parity_overall(report)));
}
