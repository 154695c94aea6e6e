/* SPDX-License-Identifier: Apache-2.0
 * Prints a comparison of two logs as text and as Markdown. It judges nothing. */
#include "cli/compare_print.h"

#include <string.h>

#include "forensics/compare_floor.h"
#include "forensics/words.h"

/* The table has so many rows; the rest is counted, because a block in an issue should be short. */
#define MARKDOWN_COLUMNS 10

static const char no_floor[] =
    "No noise floor was measured: \"differs\" is not \"wrong\" unless the LR or a fixed ratio says "
    "so.";

static struct word class_text(const struct compare_column *column) {
    struct word word;
    if (column->class_of == COMPARE_ABSENT)
        snprintf(word.text, sizeof word.text, "not compared: %s", column->why);
    else
        snprintf(word.text, sizeof word.text, "%s",
                 compare_class_name((enum compare_class)column->class_of));
    return word;
}

static struct word pair_text(const struct compare_column *column) {
    struct word word;
    const struct word a = word_value(column->first[0].value, column->first[0].quantum);
    const struct word b = word_value(column->first[1].value, column->first[1].quantum);
    snprintf(word.text, sizeof word.text, "%.60s | %.60s", a.text, b.text);
    return word;
}

static struct word factor_text(const struct compare_ratio *ratio) {
    static const char *const formats[] = {
        [COMPARE_FACTOR_WHOLE] = "%llu",       [COMPARE_FACTOR_INVERSE] = "1/%llu",
        [COMPARE_FACTOR_ROOT] = "sqrt(%llu)",  [COMPARE_FACTOR_ROOT_INVERSE] = "1/sqrt(%llu)",
        [COMPARE_FACTOR_TOKENS] = "tokens",    [COMPARE_FACTOR_TOKENS_INVERSE] = "1/tokens",
        [COMPARE_FACTOR_CONSTANT] = "constant"};
    struct word word;
    if (ratio->kind == COMPARE_FACTOR_CONSTANT) return word_about(ratio->factor);
    if (ratio->kind >= COMPARE_FACTOR_TOKENS) {
        snprintf(word.text, sizeof word.text, "%s", formats[ratio->kind]);
        return word;
    }
    const char *const text = formats[ratio->kind];
    const char *const number = strchr(text, '%');
    snprintf(word.text, sizeof word.text, "%.*s%llu%s", (int)(number - text), text,
             (unsigned long long)ratio->n, number + 4);
    return word;
}

static void print_heads(const struct compare_input *input, const struct compare_report *report,
                        FILE *out) {
    for (size_t s = 0; s < 2; s++) {
        fprintf(out, "%c: %s (%s, %zu rows)", "AB"[s], input[s].log->path, input[s].log->title,
                input[s].log->rows);
        if (report->repeated[s] > 0)
            fprintf(out, "; %zu rows repeated, the later ones count", report->repeated[s]);
        fputc('\n', out);
    }
}

static void print_note(const char *what, const char *text, const char *mark, FILE *out) {
    if (text != NULL && text[0] != '\0') fprintf(out, "%s%s: %s\n", mark, what, text);
}

static void print_floor(const struct compare_floor *held, FILE *out) {
    fprintf(out, "\nFloor: %s: %s.\n",
            compare_floor_name((enum compare_floor_verdict)held->verdict), held->words);
    fprintf(
        out,
        "    n = %ju A/A pairs, alpha = %g, least possible p %.4g, power of one pair at 3 sigma "
        "%.2f; bound: largest of the\n    pairs, above %.2f %% of all such pairs with %.0f %% "
        "confidence at each update\n",
        (uintmax_t)held->pairs, held->alpha, held->smallest_p, held->power, 100.0 * held->content,
        100.0 * COMPARE_FLOOR_CONFIDENCE);
    for (size_t i = 0; i < held->column_count; i++) {
        const struct compare_floor_column *column = &held->columns[i];
        fprintf(out, "    %-10s %zu of %zu updates above the bound", log_names[column->name].name,
                column->above, column->updates);
        if (column->above > 0)
            fprintf(out, ", first at update %ju", (uintmax_t)column->first_above);
        fprintf(out, "; worst at %ju: gap %.3g, bound %.3g\n", (uintmax_t)column->worst,
                column->gap, column->bound);
    }
    fputs("    other columns are in no floor and were not judged by it\n", out);
}

static void print_columns(const struct compare_report *report, FILE *out) {
    fprintf(out, "\n%-16s %-24s %8s %8s  %s\n", "column", "class", "pairs", "differ",
            "first difference");
    for (size_t i = 0; i < report->column_count; i++) {
        const struct compare_column *column = &report->columns[i];
        fprintf(out, "%-16s %-24s", log_names[column->name].name, class_text(column).text);
        if (column->class_of == COMPARE_ABSENT) {
            fputc('\n', out);
            continue;
        }
        fprintf(out, " %8zu %8zu", column->pairs, column->different);
        if (column->different > 0)
            fprintf(out, "  update %llu: %s", (unsigned long long)column->first_update,
                    pair_text(column).text);
        fputc('\n', out);
    }
}

static void print_ratios(const struct compare_report *report, const char *bullet, FILE *out) {
    for (size_t i = 0; i < report->ratio_count; i++) {
        const struct compare_ratio *ratio = &report->ratios[i];
        fprintf(out, "%sA/B of %s is %s in %zu of %zu pairs: %s%s%s%s\n", bullet,
                log_names[ratio->name].name, factor_text(ratio).text, ratio->held, ratio->pairs,
                ratio->meaning, ratio->bug[0] != 0 ? " (" : "", ratio->bug,
                ratio->bug[0] != 0 ? ")" : "");
    }
}

static void print_order(const struct compare_report *report, FILE *out) {
    for (size_t i = 0; i < report->order_count; i++) {
        const struct compare_column *column = &report->columns[report->order[i]];
        fprintf(out, "%s%s at %llu", i > 0 ? ", " : "", log_names[column->name].name,
                (unsigned long long)column->first_update);
    }
    fputc('\n', out);
}

void compare_print_text(const struct compare_input *input, const struct compare_report *report,
                        FILE *out) {
    print_heads(input, report, out);
    print_note("Devices differ", report->devices, "", out);
    fprintf(out, "%s: %s.\n", compare_verdict_name((enum compare_verdict)report->verdict),
            report->why);
    print_columns(report, out);
    if (report->order_count > 0) {
        fputs("\nOrder of first differences: ", out);
        print_order(report, out);
    }
    if (report->meaning[0] != 0)
        fprintf(out, "%s%s\n", report->order_count > 0 ? "" : "\n", report->meaning);
    if (report->cause >= 0) fprintf(out, "Points to: %s\n", cause_name((enum cause)report->cause));
    if (report->rng_words[0] != 0) fprintf(out, "\nRNG: %s\n", report->rng_words);
    if (report->root_update > 0)
        fprintf(out, "%sRoots differ from update %llu on.\n", report->rng_words[0] != 0 ? "" : "\n",
                (unsigned long long)report->root_update);
    if (report->ratio_count > 0) fputc('\n', out);
    print_ratios(report, "", out);
    fprintf(out, "\nLR: %s\n", report->lr.words);
    if (report->lr.fit[0] != NULL)
        fprintf(out, "    A: %s\n    B: %s\n", report->lr.fit[0]->text, report->lr.fit[1]->text);
    if (report->next[0] != 0) fprintf(out, "\nNext: %s\n", report->next);
    print_note("\nThe floor was measured elsewhere", report->elsewhere, "", out);
    if (report->floor != NULL)
        print_floor(report->floor, out);
    else if (report->verdict == COMPARE_VERDICT_DIFFERS)
        fprintf(out, "%s\n", no_floor);
}

/* ---- Markdown ---- */

/* Escapes bars, because a bar would end the cell. */
static void put_cell(const char *text, FILE *out) {
    for (; *text != 0; text++)
        if (*text == '|')
            fputs("\\|", out);
        else
            fputc(*text, out);
}

static void put_row(const struct compare_column *column, FILE *out) {
    fprintf(out, "| %s | %s | %zu | ", log_names[column->name].name,
            compare_class_name((enum compare_class)column->class_of), column->pairs);
    if (column->different > 0) {
        fprintf(out, "%llu | ", (unsigned long long)column->first_update);
        put_cell(word_value(column->first[0].value, column->first[0].quantum).text, out);
        fputs(" | ", out);
        put_cell(word_value(column->first[1].value, column->first[1].quantum).text, out);
        fputs(" |\n", out);
    } else {
        fputs(" | | |\n", out);
    }
}

/* Puts the columns that differ first, in their order, then the others that were compared. */
static void put_table(const struct compare_report *report, FILE *out) {
    size_t rows = 0, left = 0;
    fputs("\n| column | class | pairs | first | A | B |\n|---|---|---|---|---|---|\n", out);
    for (size_t i = 0; i < report->order_count; i++)
        if (rows++ < MARKDOWN_COLUMNS)
            put_row(&report->columns[report->order[i]], out);
        else
            left++;
    for (size_t i = 0; i < report->column_count; i++) {
        const struct compare_column *column = &report->columns[i];
        if (column->pairs == 0 || column->class_of == COMPARE_DIFFERENT) continue;
        if (rows++ < MARKDOWN_COLUMNS)
            put_row(column, out);
        else
            left++;
    }
    if (left > 0) fprintf(out, "\n(%zu more columns)\n", left);
}

void compare_print_markdown(const struct compare_input *input, const struct compare_report *report,
                            FILE *out) {
    fprintf(out, "**%s**: %s.\n\n", compare_verdict_name((enum compare_verdict)report->verdict),
            report->why);
    for (size_t s = 0; s < 2; s++)
        fprintf(out, "- %c: %s, %zu rows%s\n", "AB"[s], input[s].log->title, input[s].log->rows,
                report->repeated[s] > 0 ? " (repeated updates: the later rows count)" : "");
    print_note("Devices differ", report->devices, "- ", out);
    put_table(report, out);
    fprintf(out, "\n- LR: %s\n", report->lr.words);
    if (report->rng_words[0] != 0) fprintf(out, "- RNG: %s\n", report->rng_words);
    if (report->ratio_count > 0) {
        struct compare_report few = *report;
        few.ratio_count = report->ratio_count > 2 ? 2 : report->ratio_count;
        print_ratios(&few, "- ", out);
    }
    if (report->meaning[0] != 0) fprintf(out, "- %s\n", report->meaning);
    print_note("The floor was measured elsewhere", report->elsewhere, "- ", out);
    if (report->floor != NULL)
        fprintf(out, "- Floor: **%s**: %s (%ju A/A pairs)\n",
                compare_floor_name((enum compare_floor_verdict)report->floor->verdict),
                report->floor->words, (uintmax_t)report->floor->pairs);
    else if (report->verdict == COMPARE_VERDICT_DIFFERS)
        fprintf(out, "- %s\n", no_floor);
}
