/* SPDX-License-Identifier: Apache-2.0
 * Prints a comparison of two logs as text, as Markdown and as JSON. It judges nothing. */
#include "cli/compare_print.h"

#include <inttypes.h>
#include <string.h>

#include "cli/json.h"
#include "cli/lr_report.h"
#include "cli/plain_text.h"
#include "evidence/rng_json.h"
#include "forensics/compare_floor.h"
#include "forensics/group_lr.h"
#include "forensics/words.h"

/* The table has so many rows, and one fewer for each line of digests and of configurations above
 * it; the rest is counted, because a block in an issue should be short. */
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

/* A column that both logs have and that has no pair is in both, and was not compared. */
static const char *class_name(const struct compare_column *column) {
    if (column->class_of == COMPARE_ABSENT && column->side[0].column != NULL &&
        column->side[1].column != NULL)
        return "not compared";
    return compare_class_name((enum compare_class)column->class_of);
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

/* A count as a word, so that one thing has a singular. */
static struct word count_text(uint64_t count, const char *one, const char *before,
                              const char *more) {
    struct word word;
    if (count == 1)
        snprintf(word.text, sizeof word.text, "%s", one);
    else
        snprintf(word.text, sizeof word.text, "%s%llu %s", before, (unsigned long long)count, more);
    return word;
}

static void print_heads(const struct compare_input *input, const struct compare_report *report,
                        FILE *out) {
    for (size_t s = 0; s < 2; s++) {
        fprintf(out, "%c: ", "AB"[s]);
        plain_text_put(input[s].log->path, out);
        fprintf(out, " (%s, %zu rows)", input[s].log->title, input[s].log->rows);
        if (report->repeated[s] > 0)
            fprintf(out, "; %s",
                    count_text(report->repeated[s], "1 row repeated, the later one counts", "",
                               "rows repeated, the later ones count")
                        .text);
        if (report->joined[s] > 0)
            fprintf(
                out, "; %s joined to the row of the same update",
                count_text(report->joined[s], "1 evaluation row was", "", "evaluation rows were")
                    .text);
        fputc('\n', out);
        for (size_t i = 0; i < input[s].log->note_count; i++)
            fprintf(out, "   note: %s\n", input[s].log->notes[i]);
    }
}

static void print_note(const char *what, const char *text, const char *mark, FILE *out) {
    if (text != NULL && text[0] != '\0') fprintf(out, "%s%s: %s\n", mark, what, text);
}

/* ---- columns without a name of ours ---- */

#define NAMES_LISTED 5
#define LEFT_OUT "Not compared, since twinstep knows no such column: "
#define RECORDED "Recorded, but not held against each other here: "

/* Whether a column has none of our names, so that nothing compares it, and is the first with its
 * own name in A and B. */
static int is_left_out(const struct compare_input *input, size_t side, size_t index) {
    const struct log_column *column = &input[side].log->columns[index];
    if (column->name != LOG_OTHER) return 0;
    for (size_t s = 0; s <= side; s++)
        for (size_t i = 0; i < (s < side ? input[s].log->column_count : index); i++)
            if (input[s].log->columns[i].name == LOG_OTHER &&
                strcmp(input[s].log->columns[i].source, column->source) == 0)
                return 0;
    return 1;
}

/* Whether the column is the LR of a further group, which the line LR speaks of. */
static int is_group(const struct compare_lr *lr, const char *source) {
    for (size_t i = 0; i < lr->group_count; i++)
        if (strcmp(lr->groups[i].source, source) == 0) return 1;
    return 0;
}

/* Names the columns without a name of ours of recordings, or of other logs: what a recording has is
 * known, and is not compared as a column. */
static void print_names(const struct compare_input *input, const struct compare_report *report,
                        int recorded, const char *bullet, FILE *out) {
    size_t count = 0;
    for (size_t s = 0; s < 2; s++)
        for (size_t i = 0; i < input[s].log->column_count; i++) {
            const char *const name = input[s].log->columns[i].source;
            if ((strcmp(input[s].log->format, "trace") == 0) != recorded ||
                !is_left_out(input, s, i) || is_group(&report->lr, name) || count++ >= NAMES_LISTED)
                continue;
            if (count == 1) fprintf(out, "%s%s", bullet, recorded ? RECORDED : LEFT_OUT);
            fprintf(out, "%s%s", count > 1 ? ", " : "", name);
        }
    if (count > NAMES_LISTED) fprintf(out, " and %zu more", count - NAMES_LISTED);
    if (count > 0) fputc('\n', out);
}

static int is_recording(const struct compare_input *input) {
    return strcmp(input->log->format, "trace") == 0;
}

/* Says why a column of two recordings has fewer pairs than they have updates. */
static void print_every(const struct compare_input *input, const struct compare_report *report,
                        const char *bullet, FILE *out) {
    const size_t rows =
        input[0].log->rows < input[1].log->rows ? input[0].log->rows : input[1].log->rows;
    if (!is_recording(&input[0]) || !is_recording(&input[1])) return;
    for (size_t i = 0; i < report->column_count; i++) {
        const struct compare_column *const column = &report->columns[i];
        if (column->name != LOG_PARAM_NORM || column->class_of == COMPARE_ABSENT ||
            column->pairs >= rows)
            continue;
        fprintf(
            out,
            "%s%s has %s of %zu: the recorder takes it at updates 1, 1 + every, ... alone (every "
            "is 16 where the Recorder is given none)\n",
            bullet, log_names[column->name].name,
            count_text(column->pairs, "1 pair", "", "pairs").text, rows);
    }
}

static void print_left_out(const struct compare_input *input, const struct compare_report *report,
                           const char *bullet, FILE *out) {
    print_every(input, report, bullet, out);
    print_names(input, report, 1, bullet, out);
    print_names(input, report, 0, bullet, out);
}

static json_t *left_out_json(const struct compare_input *input) {
    json_t *names = json_array();
    for (size_t s = 0; s < 2; s++)
        for (size_t i = 0; i < input[s].log->column_count; i++)
            if (is_left_out(input, s, i))
                json_array_append_new(names, json_string(input[s].log->columns[i].source));
    return names;
}

static void print_floor(const struct compare_floor *held, FILE *out) {
    fprintf(out, "\nFloor: %s: %s.\n",
            compare_floor_name((enum compare_floor_verdict)held->verdict), held->words);
    if (held->exact) return;
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
        if (column->not_finite > 0)
            fprintf(out, "  %s NaN or infinite in both",
                    count_text(column->not_finite, "1 pair is", "", "pairs are").text);
        if (column->different > 0)
            fprintf(out, "  update %llu: %s", (unsigned long long)column->first_update,
                    pair_text(column).text);
        fputc('\n', out);
    }
}

static void print_offset(const struct compare_ratio *ratio, const char *bullet, FILE *out) {
    const int either = ratio->kind == COMPARE_FACTOR_EITHER;
    fprintf(out, "%sA - B of %s is %s in %zu of %zu pairs (scatter %s): a fixed offset, ", bullet,
            log_names[ratio->name].name, word_about(ratio->offset).text, ratio->held, ratio->pairs,
            word_about(ratio->scatter).text);
    if (either)
        fprintf(out, "or a fixed factor of %s; %s\n", word_about(ratio->factor).text,
                ratio->meaning);
    else
        fprintf(out, "not a factor; %s\n", ratio->meaning);
}

static void print_ratios(const struct compare_report *report, const char *bullet, FILE *out) {
    for (size_t i = 0; i < report->ratio_count; i++) {
        const struct compare_ratio *ratio = &report->ratios[i];
        if (ratio->kind >= COMPARE_FACTOR_OFFSET) {
            print_offset(ratio, bullet, out);
            continue;
        }
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

/* Says which parts of the roots differ, where no phase was found or where the generators do, too:
 * these are part of no phase. */
static void print_parts(const struct compare_report *report, FILE *out) {
    static const char *const words[COMPARE_PARTS] = {"the batch", "the states of random generators",
                                                     "the weights", "the LR", "the loss"};
    const unsigned shown = report->where.phase[0] == '\0'
                               ? report->root_parts
                               : report->root_parts & 1u << COMPARE_PART_RNG;
    const char *between = report->where.phase[0] == '\0' ? ": " : "; so do ";
    for (unsigned part = 0; part < COMPARE_PARTS && report->recorded; part++) {
        if ((shown >> part & 1u) == 0) continue;
        fprintf(out, "%s%s", between, words[part]);
        between = ", ";
    }
}

/* Says what the digests of the trainings say, which need no floor; returns how many lines that
 * took. `bullet` begins each. */
static size_t print_roots(const struct compare_report *report, const char *bullet, FILE *out) {
    const struct compare_recorded *known = &report->known;
    size_t lines = known->weights != COMPARE_UNKNOWN;
    if (known->weights == COMPARE_APART)
        fprintf(out, "%sWeights before update %llu differ in %u tensor%s, %s%s.\n", bullet,
                (unsigned long long)known->begins, known->tensors, known->tensors > 1 ? "s" : "",
                known->tensors > 1 ? "first " : "", known->tensor);
    else if (known->weights == COMPARE_ALIKE)
        fprintf(out, "%sWeights before update %llu are equal.\n", bullet,
                (unsigned long long)known->begins);
    if (report->root_update > 0) {
        lines++;
        fprintf(out, "%sRoots differ from update %llu on%s%s%s%s", bullet,
                (unsigned long long)report->root_update,
                report->where.phase[0] != '\0' ? ": phase " : "", report->where.phase,
                report->where.tensor[0] != '\0' ? ", " : "", report->where.tensor);
        print_parts(report, out);
        fputs(".\n", out);
    }
    if (report->root_update == 0 && report->roots > 0) {
        lines++;
        fprintf(out, "%sRoots are equal in %s that both have%s.\n", bullet,
                count_text(report->roots, "the one update", "all ", "updates").text,
                report->gap.updates > 0 ? ", but for batches" : "");
    }
    if (report->gap.updates > 0) {
        lines++;
        fprintf(out, "%sBatches were not compared in %s%s.\n", bullet, report->batches_lack,
                report->unseen.update == report->gap.first
                    ? ": it has no forward call of its model in training there"
                    : "");
    }
    return lines;
}

/* What a cause is called behind the first one, in words that say what of it is meant. */
static const char *other_cause(enum cause cause) {
    return cause == CAUSE_NONDETERMINISM ? "kernels"
           : cause == CAUSE_BATCH_SHAPE  ? "batch shape"
           : cause == CAUSE_RNG          ? "dropout"
           : cause == CAUSE_OBJECTIVE    ? "a loss of nearly the same value"
                                         : cause_name(cause);
}

/* Names the causes that it points to. More than one are not told apart, and each is named. */
static void print_causes(const struct compare_report *report, FILE *out) {
    enum cause causes[COMPARE_CAUSES];
    const size_t count = compare_causes(report, causes);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s%s",
                i == 0   ? "Points to: "
                : i == 1 ? ", or "
                         : " or ",
                i == 0 ? cause_name(causes[i]) : other_cause(causes[i]));
    if (count > 0) fputc('\n', out);
}

/* The explanation of each side's LRs, and where it is one of what was printed alone. */
static void print_explanations(const struct compare_lr *lr, FILE *out) {
    for (size_t s = 0; s < 2 && lr->fit[0] != NULL; s++) {
        fprintf(out, "    %c: %s", "AB"[s], lr -> fit[s] -> text);
        if (lr->applied_update[s] > 0)
            fprintf(out, ", as printed; update %ju applied %s", (uintmax_t)lr->applied_update[s],
                    word_apart(lr->applied_there[s], lr->expected_there[s]).text);
        fputc('\n', out);
    }
}

void compare_print_text(const struct compare_input *input, const struct compare_report *report,
                        FILE *out) {
    print_heads(input, report, out);
    print_note("Devices differ", report->devices, "", out);
    fprintf(out, "%s: %s.\n", compare_verdict_name((enum compare_verdict)report->verdict),
            report->why);
    (void)print_roots(report, "", out);
    print_note("Columns alone were compared, no digests", report->rootless, "", out);
    print_note("Configurations differ", report->configurations, "", out);
    print_note("Phases came in another order", report->orders, "", out);
    print_columns(report, out);
    print_left_out(input, report, "", out);
    if (report->order_count > 0) {
        fputs("\nOrder of first differences: ", out);
        print_order(report, out);
    }
    if (report->meaning[0] != 0)
        fprintf(out, "%s%s\n", report->order_count > 0 ? "" : "\n", report->meaning);
    print_causes(report, out);
    if (report->rng_words[0] != 0) fprintf(out, "\nRNG: %s\n", report->rng_words);
    if (report->ratio_count > 0) fputc('\n', out);
    print_ratios(report, "", out);
    fprintf(out, "\nLR: %s\n", report->lr.words);
    print_explanations(&report->lr, out);
    if (report->next[0] != 0) fprintf(out, "\nNext: %s\n", report->next);
    print_note("\nThe floor was measured elsewhere", report->elsewhere, "", out);
    if (report->floor != NULL && report->undecided)
        print_note("\nUndecided, also inside a floor (--common)", report->ended, "", out);
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

/* Names the columns that either log has and that were not compared, in one line. */
static void put_uncompared(const struct compare_report *report, const char *before, FILE *out) {
    size_t count = 0;
    for (size_t i = 0; i < report->column_count; i++) {
        const struct compare_column *column = &report->columns[i];
        if (column->class_of != COMPARE_ABSENT) continue;
        fprintf(out, "%s%s (%s)", count++ == 0 ? before : ", ", log_names[column->name].name,
                column->why);
    }
    if (count > 0) fputs(".\n", out);
}

/* Says which keys of the configurations differ; returns how many lines that took. Values are a
 * stranger's text, of which a page would hide "<...>" and take "*" for emphasis. */
static size_t put_configurations(const struct compare_report *report, FILE *out) {
    const char *text = report->configurations_short;
    if (text == NULL || text[0] == '\0') return 0;
    fputs("- Configurations differ: ", out);
    for (; *text != '\0'; text++) {
        if (strchr("\\`*<[&~", *text) != NULL) fputc('\\', out);
        fputc(*text, out);
    }
    fputc('\n', out);
    return 1;
}

/* Puts the columns that differ first, in their order, then the others that were compared: `most`
 * rows. */
static void put_table(const struct compare_report *report, size_t most, FILE *out) {
    size_t rows = 0, left = 0;
    fputs("\n| column | class | pairs | first | A | B |\n|---|---|---|---|---|---|\n", out);
    for (size_t i = 0; i < report->order_count; i++)
        if (rows++ < most)
            put_row(&report->columns[report->order[i]], out);
        else
            left++;
    for (size_t i = 0; i < report->column_count; i++) {
        const struct compare_column *column = &report->columns[i];
        if (column->pairs == 0 || column->class_of == COMPARE_DIFFERENT) continue;
        if (rows++ < most)
            put_row(column, out);
        else
            left++;
    }
    if (left > 0) fprintf(out, "\n(%zu more columns)\n", left);
    put_uncompared(report, left > 0 ? "Not compared: " : "\nNot compared: ", out);
}

void compare_print_markdown(const struct compare_input *input, const struct compare_report *report,
                            FILE *out) {
    fprintf(out, "**%s**: %s.\n\n", compare_verdict_name((enum compare_verdict)report->verdict),
            report->why);
    for (size_t s = 0; s < 2; s++) {
        fprintf(out, "- %c: %s, %zu rows%s\n", "AB"[s], input[s].log->title, input[s].log->rows,
                report->repeated[s] > 0 ? " (repeated updates: the later rows count)" : "");
        for (size_t i = 0; i < input[s].log->note_count; i++)
            fprintf(out, "  - note: %s\n", input[s].log->notes[i]);
    }
    print_note("Devices differ", report->devices, "- ", out);
    print_note("Columns alone were compared, no digests", report->rootless, "- ", out);
    size_t lines = print_roots(report, "- ", out);
    lines += put_configurations(report, out);
    if (report->orders != NULL && report->orders[0] != '\0') lines++;
    print_note("Phases came in another order", report->orders, "- ", out);
    put_table(report, MARKDOWN_COLUMNS - lines, out);
    fputc('\n', out);
    print_left_out(input, report, "- ", out);
    fprintf(out, "- LR: %s\n", report->lr.words);
    if (report->rng_words[0] != 0) fprintf(out, "- RNG: %s\n", report->rng_words);
    if (report->ratio_count > 0) {
        struct compare_report few = *report;
        few.ratio_count = report->ratio_count > 2 ? 2 : report->ratio_count;
        print_ratios(&few, "- ", out);
    }
    if (report->meaning[0] != 0) fprintf(out, "- %s\n", report->meaning);
    print_note("The floor was measured elsewhere", report->elsewhere, "- ", out);
    if (report->floor != NULL && report->undecided)
        print_note("Undecided, also inside a floor (--common)", report->ended, "- ", out);
    if (report->floor != NULL)
        fprintf(out, "- Floor: **%s**: %s (%ju A/A pairs)\n",
                compare_floor_name((enum compare_floor_verdict)report->floor->verdict),
                report->floor->words, (uintmax_t)report->floor->pairs);
    else if (report->verdict == COMPARE_VERDICT_DIFFERS)
        fprintf(out, "- %s\n", no_floor);
}

/* Texts that may hold bytes of a log go through json_string() and "so*": one that is not UTF-8 is
 * left out, where "ss" would give up the whole object. */
static json_t *log_json(const struct compare_input *input, size_t repeated) {
    json_t *notes = json_array();
    for (size_t i = 0; i < input->log->note_count; i++)
        json_array_append_new(notes, json_string(input->log->notes[i]));
    return json_pack("{so* ss sI sI so}", "log", json_string(input->log->path), "format",
                     input->log->format, "rows", (json_int_t)input->log->rows, "repeated",
                     (json_int_t)repeated, "notes", notes);
}

static json_t *point_json(const struct series_point *point) {
    return json_pack("{so so sI}", "value", json_finite(point->value), "quantum",
                     json_finite(point->quantum), "row", (json_int_t)point->row + 1);
}

static json_t *column_json(const struct compare_column *column) {
    json_t *object = json_pack(
        "{ss ss so* sI sI sI sI sI}", "column", log_names[column->name].name, "class",
        class_name(column), "why", json_string(column->why), "pairs", (json_int_t)column->pairs,
        "equal", (json_int_t)column->equal, "not_finite", (json_int_t)column->not_finite, "within",
        (json_int_t)column->within, "different", (json_int_t)column->different);
    if (column->different == 0) return object;
    return json_join(
        object, json_pack("{sI so so so sI}", "first_update", (json_int_t)column->first_update, "a",
                          point_json(&column->first[0]), "b", point_json(&column->first[1]),
                          "largest_relative", json_finite(column->largest), "largest_update",
                          (json_int_t)column->largest_update));
}

static json_t *ratio_json(const struct compare_ratio *ratio) {
    static const char *const kinds[] = {
        "none",   "n",        "1/n",      "sqrt(n)", "1/sqrt(n)",
        "tokens", "1/tokens", "constant", "offset",  "offset or factor"};
    const int apart = ratio->kind >= COMPARE_FACTOR_OFFSET;
    json_t *n = ratio->n == 0 ? NULL : json_integer((json_int_t)ratio->n);
    json_t *offset = apart ? json_finite(ratio->offset) : NULL;
    json_t *scatter = apart ? json_finite(ratio->scatter) : NULL;
    json_t *factor = ratio->kind == COMPARE_FACTOR_OFFSET ? NULL : json_finite(ratio->factor);
    return json_pack("{ss ss so* so* so* so* sI sI so* so*}", "column", log_names[ratio->name].name,
                     "kind", kinds[ratio->kind], "n", n, "factor", factor, "offset", offset,
                     "scatter", scatter, "pairs", (json_int_t)ratio->pairs, "held",
                     (json_int_t)ratio->held, "meaning", json_string(ratio->meaning), "bugs",
                     json_string(ratio->bug));
}

static json_t *groups_json(const struct compare_lr *lr) {
    json_t *const groups = json_array();
    for (size_t i = 0; i < lr->group_count; i++) {
        const struct compare_column *const column = &lr->groups[i].column;
        json_t *object = json_pack(
            "{so* so ss sI sI}", "column", json_string(lr->groups[i].source), "group",
            lr->groups[i].group == GROUP_UNKNOWN ? json_null()
                                                 : json_integer((json_int_t)lr->groups[i].group),
            "class", compare_class_name((enum compare_class)column->class_of), "pairs",
            (json_int_t)column->pairs, "different", (json_int_t)column->different);
        if (column->why != NULL && column->class_of == COMPARE_ABSENT)
            json_object_set_new(object, "why", json_string(column->why));
        if (column->different > 0)
            json_join(object,
                      json_pack("{sI so so}", "first_update", (json_int_t)column->first_update, "a",
                                json_finite(column->first[0].value), "b",
                                json_finite(column->first[1].value)));
        json_array_append_new(groups, object);
    }
    return groups;
}

static json_t *lr_json(const struct compare_lr *lr) {
    static const char *const states[] = {"none", "unfitted", "same", "different", "untestable"};
    json_t *object = json_pack("{ss ss so*}", "state", states[lr->state], "logged",
                               compare_class_name((enum compare_class)lr->logged), "words",
                               json_string(lr->words));
    if (lr->fit[0] != NULL)
        json_join(object,
                  json_pack("{ss ss so* so* so so}", "contract_a", lr->fit[0]->contract->name,
                            "contract_b", lr->fit[1]->contract->name, "fit_a",
                            json_string(lr->fit[0]->text), "fit_b", json_string(lr->fit[1]->text),
                            "skipped_a", lr_report_skips_json(lr->fit[0]), "skipped_b",
                            lr_report_skips_json(lr->fit[1])));
    for (size_t s = 0; s < 2; s++)
        if (lr->applied_update[s] > 0)
            json_join(object, json_pack("{s{sI so}}", s == 0 ? "otherwise_a" : "otherwise_b",
                                        "update", (json_int_t)lr->applied_update[s], "applied",
                                        json_finite(lr->applied_there[s])));
    json_join(object,
              json_pack("{sb sb sI sI sI}", "only_skips_differ", lr->skips_part > 0, "stated",
                        lr->stated, "pairs_agree", (json_int_t)lr->agree, "pairs_differ",
                        (json_int_t)lr->differ, "shift", (json_int_t)lr->shift));
    if (lr->group_count > 0) json_join(object, json_pack("{so*}", "groups", groups_json(lr)));
    if (lr->first_update == 0) return object;
    return json_join(object,
                     json_pack("{sI sI so so}", "group", (json_int_t)lr->group, "first_update",
                               (json_int_t)lr->first_update, "applied_a", json_finite(lr->first[0]),
                               "applied_b", json_finite(lr->first[1])));
}

static json_t *floor_json(const struct compare_floor *held) {
    if (held == NULL) return json_null();
    json_t *columns = json_array();
    for (size_t i = 0; i < held->column_count; i++) {
        const struct compare_floor_column *column = &held->columns[i];
        json_array_append_new(
            columns,
            json_pack("{ss sI sI so sI so so}", "name", log_names[column->name].name, "updates",
                      (json_int_t)column->updates, "above", (json_int_t)column->above,
                      "first_above", json_positive(column->first_above), "worst",
                      (json_int_t)column->worst, "gap", json_finite(column->gap), "bound",
                      json_finite(column->bound)));
    }
    return json_pack("{ss ss sI so so so so so so so so}", "verdict",
                     compare_floor_name((enum compare_floor_verdict)held->verdict), "words",
                     held->words, "pairs", (json_int_t)held->pairs, "alpha",
                     json_finite(held->alpha), "smallest_p", json_finite(held->smallest_p), "p",
                     json_finite(held->p[0]), "p_least", json_finite(held->p[1]), "content",
                     json_finite(held->content), "power_at_3_sigma", json_finite(held->power),
                     "broken_update", json_positive(held->broken), "columns", columns);
}

static json_t *note_json(const char *text) {
    return json_string(text == NULL ? "" : text);
}

static json_t *causes_json(const struct compare_report *report) {
    enum cause causes[COMPARE_CAUSES];
    const size_t count = compare_causes(report, causes);
    json_t *names = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(names, json_string(cause_name(causes[i])));
    return names;
}

static json_t *parts_json(const struct compare_report *report) {
    json_t *names = json_array();
    for (unsigned part = 0; part < COMPARE_PARTS; part++)
        if ((report->root_parts >> part & 1u) != 0)
            json_array_append_new(names, json_string(compare_part_names[part]));
    return names;
}

static json_t *weights_json(const struct compare_recorded *known) {
    return known->weights == COMPARE_UNKNOWN
               ? json_null()
               : json_string(known->weights == COMPARE_ALIKE ? "equal" : "differ");
}

enum status compare_print_json(const struct compare_input *input,
                               const struct compare_report *report) {
    json_t *columns = json_array(), *ratios = json_array(), *order = json_array();
    for (size_t i = 0; i < report->column_count; i++)
        json_array_append_new(columns, column_json(&report->columns[i]));
    for (size_t i = 0; i < report->order_count; i++)
        json_array_append_new(order,
                              json_string(log_names[report->columns[report->order[i]].name].name));
    for (size_t i = 0; i < report->ratio_count; i++)
        json_array_append_new(ratios, ratio_json(&report->ratios[i]));
    return json_print(json_pack(
        "{ss so* so so so so so so* ss? so so* so so so so so so so so so so so so so so so so "
        "so so* so*}",
        "verdict", compare_verdict_name((enum compare_verdict)report->verdict), "why",
        json_string(report->why), "a", log_json(&input[0], report->repeated[0]), "b",
        log_json(&input[1], report->repeated[1]), "columns", columns, "not_compared",
        left_out_json(input), "order", order, "meaning", json_string(report->meaning), "cause",
        report->cause >= 0 ? cause_name((enum cause)report->cause) : NULL, "causes",
        causes_json(report), "next", json_string(report->next), "ratios", ratios, "lr",
        lr_json(&report->lr), "rng", rng_json(&report->rng, report->rng_words), "root_update",
        json_positive(report->root_update), "root_phase",
        note_json(report->root_update > 0 ? report->where.phase : ""), "root_tensor",
        note_json(report->root_update > 0 ? report->where.tensor : ""), "root_parts",
        parts_json(report), "initial_weights", weights_json(&report->known), "initial_tensor",
        note_json(report->known.tensor), "roots", json_integer((json_int_t)report->roots),
        "roots_lack", note_json(report->rootless), "batches_lack", note_json(report->batches_lack),
        "forward_unseen", json_positive(report->unseen.update), "ended", note_json(report->ended),
        "configurations_differ", note_json(report->configurations), "orders_differ",
        note_json(report->orders), "floor", floor_json(report->floor), "devices_differ",
        note_json(report->devices), "floor_elsewhere", note_json(report->elsewhere)));
}
