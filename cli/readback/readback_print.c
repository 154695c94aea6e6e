/* SPDX-License-Identifier: Apache-2.0
 * The first line is the answer; what it rests on follows group by group. */
#include "cli/readback/readback_print.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/number.h"

const struct update_finding *readback_first(const struct readback_update *update) {
    for (size_t i = 0; i < update->reading.finding_count; i++)
        if (!update->reading.findings[i].is_remark) return &update->reading.findings[i];
    return NULL;
}

/* A control character could do things to a terminal. */
void readback_print_text(const char *text, FILE *out) {
    for (; *text != '\0'; text++) {
        const unsigned char byte = (unsigned char)*text;
        if (byte < 0x20 || byte == 0x7F)
            fprintf(out, "\\x%02x", (unsigned)byte);
        else
            fputc(*text, out);
    }
}

static void tell(void *context, uint64_t weights) {
    progress_text((struct progress *)context, "%.0f million weights read", 1e-6 * (double)weights);
}

void readback_watch(struct rate_room *room, struct progress *progress) {
    room->block.tell = tell;
    room->block.context = progress;
}

/* A promise that was kept may not have been the one that the user meant, so the first line says
 * that there is more to read. */
static void print_remarks(const struct update_reading *reading, FILE *out) {
    size_t remarks = 0;
    for (size_t i = 0; i < reading->finding_count; i++)
        remarks += reading->findings[i].is_remark != 0;
    if (remarks > 0) fprintf(out, ", with %zu remark%s", remarks, remarks == 1 ? "" : "s");
}

static void print_head(const char *label, const struct readback_update *update, FILE *out) {
    static const char *const verdicts[UPDATE_VERDICTS] = {
        [UPDATE_KEPT] = "as promised",
        [UPDATE_BROKEN] = "NOT AS PROMISED",
        [UPDATE_UNDECIDED] = "undecided",
    };
    const struct update_finding *const first = readback_first(update);
    fprintf(out, "%supdate", label);
    if (update->reading.update >= 0.0) fprintf(out, " %.0f", update->reading.update);
    fputs(" (", out);
    readback_print_text(update->said.before, out);
    fputs(" to ", out);
    readback_print_text(update->said.after, out);
    fprintf(out, "): %s", verdicts[update->reading.verdict]);
    if (first != NULL) {
        fputs(": ", out);
        readback_print_text(first->text, out);
    } else {
        print_remarks(&update->reading, out);
    }
    fputc('\n', out);
}

static void print_source(const struct readback_update *update, FILE *out) {
    const struct training_folder *const after = update->after;
    if (after->optimizer_path == NULL) {
        fprintf(out, "  %s, so that no direction of a step is known\n", after->rule_reason);
        return;
    }
    fprintf(out, "  %s, %s (%s); ", training_kind_name(after->kind),
            training_rule_name(after->rule), after->rule_reason);
    readback_print_text(after->names_text, out);
    if (update->said.matched > 0)
        fprintf(out, "; %" PRIu32 " by what their state explains", update->said.matched);
    fputc('\n', out);
}

static void print_number(const char *label, double value, FILE *out) {
    if (fabs(value) >= 0.0) fprintf(out, "%s %s", label, update_number(value, 0.0).text);
}

static void print_group(const struct readback_update *update, uint32_t g, FILE *out) {
    const struct update_group *const group = &update->reading.groups[g];
    const struct rate_reading *const reading = &group->reading;
    fprintf(out, "  group %" PRIu32 ": %" PRIu32 " tensors", g, group->tensors);
    if (reading->elements > 0)
        fprintf(out, ", %" PRIu64 " weights in %s, %" PRIu64 " of them moved", reading->elements,
                dtype_name(reading->weights), reading->moved);
    fprintf(out, "\n    LR      %s", group->lr_text);
    print_number("; promised", update->reading.settings[g].promised, out);
    print_number("; logged", group->logged, out);
    fprintf(out, "\n    decay   %s\n", group->decay_text);
    if (group->most >= 0.0) fprintf(out, "    count   %.0f\n", group->most);
    if (group->betas.state == INPUT_BETAS_AGREE)
        fprintf(out, "    betas   (%s, %s), as the moments show over %" PRIu64 " weights\n",
                number_text_f64(group->betas.beta1).text, number_text_f64(group->betas.beta2).text,
                group->betas.elements);
}

static void print_norm(const struct readback_update *update, FILE *out) {
    const struct input_norm *const norm = &update->reading.norm;
    if (!norm->is_known) {
        fprintf(out, "  gradient norm cannot be read: %s\n", norm->why);
        return;
    }
    fprintf(out, "  gradient norm %s +- %s taken in", update_number(norm->norm, norm->error).text,
            update_bar(norm->error).text);
    print_number("; logged", update->reading.logged_norm, out);
    const uint32_t stateless = update->reading.stateless;
    if (update->reading.logged_norm > 0.0 && norm->norm + norm->error < update->reading.logged_norm)
        fprintf(out, "; coefficient %s%s", stateless > 0 ? "at least " : "",
                update_number(norm->norm / update->reading.logged_norm,
                              norm->error / update->reading.logged_norm)
                    .text);
    fputc('\n', out);
}

static void print_findings(const struct readback_update *update, FILE *out) {
    for (size_t i = 0; i < update->reading.finding_count; i++) {
        const struct update_finding *const finding = &update->reading.findings[i];
        fputs(finding->is_remark ? "  remark" : "  FINDING", out);
        if (finding->group != STEP_NO_GROUP) fprintf(out, " (group %" PRIu32 ")", finding->group);
        fputs(": ", out);
        readback_print_text(finding->text, out);
        fputc('\n', out);
    }
}

void readback_print(const char *label, const struct readback_update *update, FILE *out) {
    print_head(label, update, out);
    print_source(update, out);
    for (uint32_t g = 0; g < update->step.group_count; g++)
        print_group(update, g, out);
    print_norm(update, out);
    readback_print_contract(&update->reading, out);
    print_findings(update, out);
}

/* ---- two runs ---- */

#define LAYER_ROWS 40

/* Where B's LR is one that A's files name: in the words of a schedule. */
static const char *which_of(const struct readback_pair *pair, uint32_t g) {
    const struct rate *const b = &pair->b->reading.groups[g].reading.lr;
    const struct rate *const a = &pair->a->reading.groups[g].reading.lr;
    const struct step_group *const of_a = &pair->a->reading.settings[g];
    const struct step_group *const of_b = &pair->b->reading.settings[g];
    if (b->low <= a->high && a->low <= b->high) return "; the bars meet";
    if (of_a->next >= b->low && of_a->next <= b->high)
        return "; B applied what A's files hold for the next update: B's LR is one update ahead of "
               "A's";
    if (of_b->next >= a->low && of_b->next <= a->high)
        return "; A applied what B's files hold for the next update: B's LR is one update behind "
               "A's";
    return "";
}

static void print_rates(const struct readback_pair *pair, FILE *out) {
    const uint32_t groups = pair->a->step.group_count < pair->b->step.group_count
                                ? pair->a->step.group_count
                                : pair->b->step.group_count;
    for (uint32_t g = 0; g < groups; g++) {
        const struct rate ratio = against_ratio(&pair->a->reading.groups[g].reading.lr,
                                                &pair->b->reading.groups[g].reading.lr);
        if (ratio.state != RATE_READ) continue;
        const double bar = (ratio.high - ratio.low) / 2;
        fprintf(out, "  group %" PRIu32 ": B's applied LR is %s +- %s of A's%s\n", g,
                update_number(ratio.value, bar).text, update_bar(bar).text, which_of(pair, g));
    }
}

static void print_row(const struct against_row *row, FILE *out) {
    fputs("  ", out);
    readback_print_text(row->name, out);
    const size_t length = strlen(row->name);
    fprintf(out, "%*s %12s %12s", length < 40 ? (int)(40 - length) : 0, "",
            update_number(row->length_b / row->length_a, 1e-6 * row->length_b / row->length_a).text,
            update_number(row->difference / row->length_a, 1e-3 * row->difference / row->length_a)
                .text);
    fprintf(out, "  %.9f\n", row->cosine);
}

void readback_print_pair(const struct readback_pair *pair, FILE *out) {
    const struct against *const against = &pair->against;
    fputs("\nA against B", out);
    if (pair->a->reading.update >= 0.0) fprintf(out, ", update %.0f", pair->a->reading.update);
    if (against->first_step == NULL) {
        fprintf(out, ": the steps of %" PRIu32 " tensors are equal, element by element\n",
                against->tensor_count);
        return;
    }
    fputs(": the steps differ, first in ", out);
    readback_print_text(against->first_step, out);
    fputc('\n', out);
    if (against->first_start != NULL) {
        fputs("  the weights differ before this update already, first in ", out);
        readback_print_text(against->first_start, out);
        fprintf(out, ": by %s of their norm over all\n",
                update_number(against->all.start_difference / against->all.start,
                              1e-3 * against->all.start_difference / against->all.start)
                    .text);
    } else {
        fputs("  the weights before this update are equal\n", out);
    }
    print_rates(pair, out);
    readback_print_contracts(pair, out);
    fprintf(out, "  %-40s %12s %12s  %s\n", "step of", "|B| / |A|", "|A-B| / |A|", "cosine");
    print_row(&against->all, out);
    for (uint32_t i = 0; i < against->layer_count && i < LAYER_ROWS; i++)
        print_row(&against->layers[i], out);
    if (against->layer_count > LAYER_ROWS)
        fprintf(out, "  and %" PRIu32 " more; --json prints them all\n",
                against->layer_count - LAYER_ROWS);
    if (against->only_a + against->only_b > 0)
        fprintf(out, "  %" PRIu32 " tensors are in A only and %" PRIu32 " in B only\n",
                against->only_a, against->only_b);
}
