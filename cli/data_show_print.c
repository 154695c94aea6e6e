/* SPDX-License-Identifier: Apache-2.0
 * Prints data sets for people and for scripts. Text is shown if the tokens are bytes, or if a
 * vocabulary spells the ids. Invariant: no byte of the data reaches the terminal unescaped. */
#include "cli/data_show_print.h"

#include <inttypes.h>

#include "cli/json.h"
#include "data/data_check.h"
#include "data/tokenizer.h"

#define WIDTH 90 /* columns of wrapped text */
#define AROUND 3 /* tokens shown on each side of a change of the mask, and at both ends */
#define EDGES 8  /* tokens shown at the beginning of a sample */
#define SHOWN 48 /* bytes of a token's text that are shown */

static const char *side_name(const struct dataset *dataset, uint32_t side) {
    if (dataset->sides == 1) return "row";
    return side == DATASET_CHOSEN ? "chosen" : "rejected";
}

static int has_text(const struct dataset *dataset, const struct data_print *print) {
    return dataset->bytes || print->vocabulary != NULL;
}

/* Writes the text of a token, or "" if it is not known. */
static void token_show(const struct dataset *dataset, const struct data_print *print,
                       uint32_t token, char out[SHOWN]) {
    out[0] = '\0';
    if (dataset->bytes)
        tokenizer_show(token, out);
    else if (print->vocabulary != NULL)
        vocabulary_show(print->vocabulary, token, out, SHOWN);
}

static int labelled(const struct dataset *dataset, const struct dataset_sequence *sequence,
                    uint32_t index) {
    return index > 0 && dataset->target[sequence->first + index - 1] != DATASET_NO_TARGET;
}

static void print_flow(const struct dataset *dataset, const struct data_print *print,
                       const struct dataset_sequence *sequence, FILE *out) {
    int column = 0;
    for (uint32_t i = 0; i <= sequence->length; i++) {
        char shown[SHOWN] = "";
        const int before = i > 0 && labelled(dataset, sequence, i - 1);
        const int now = i < sequence->length && labelled(dataset, sequence, i);
        if (i < sequence->length)
            token_show(dataset, print, dataset->token[sequence->first + i], shown);
        if (column == 0 || column > WIDTH) {
            fputs(column == 0 ? "    " : "\n    ", out);
            column = 0;
        }
        column += fprintf(out, "%s%s", now == before ? "" : now ? "[" : "]", shown);
        if (column == 0) column = 1;
    }
    fputc('\n', out);
}

/* Returns whether the row of token `index` is printed. */
static int row_shown(const struct dataset *dataset, const struct dataset_sequence *sequence,
                     uint32_t index) {
    if (index < EDGES || index + AROUND >= sequence->length) return 1;
    const uint32_t first = index - AROUND;
    for (uint32_t i = first + 1; i < sequence->length && i <= index + AROUND; i++)
        if (labelled(dataset, sequence, i) != labelled(dataset, sequence, i - 1)) return 1;
    return 0;
}

static void print_row(const struct dataset *dataset, const struct data_print *print,
                      const struct dataset_sequence *sequence, uint32_t index, FILE *out) {
    char shown[SHOWN];
    const uint32_t token = dataset->token[sequence->first + index];
    const int now = labelled(dataset, sequence, index);
    token_show(dataset, print, token, shown);
    if (shown[0] == ' ' && shown[1] == '\0') snprintf(shown, sizeof shown, "(space)");
    fprintf(out, "    %7" PRIu32 " %7" PRIu32 "  %s", index, token, now ? "yes" : "-");
    if (shown[0] != '\0') fprintf(out, "%s   %s", now ? "" : "  ", shown);
    fputc('\n', out);
}

static void print_table(const struct dataset *dataset, const struct data_print *print,
                        const struct dataset_sequence *sequence, FILE *out) {
    uint32_t left_out = 0;
    fprintf(out, "      place      id  loss%s\n", has_text(dataset, print) ? "  text" : "");
    for (uint32_t i = 0; i < sequence->length; i++) {
        if (!print->all && !row_shown(dataset, sequence, i)) {
            left_out++;
            continue;
        }
        if (left_out > 0) fprintf(out, "        ... %" PRIu32 " more alike\n", left_out);
        left_out = 0;
        print_row(dataset, print, sequence, i, out);
    }
}

static void print_sequence(const struct dataset *dataset, const struct data_print *print,
                           size_t sample, uint32_t side, FILE *out) {
    const struct dataset_sequence *sequence = dataset_side(dataset, sample, side);
    fprintf(out, "  %s: %" PRIu32 " tokens, %" PRIu32 " with a loss", side_name(dataset, side),
            sequence->length, sequence->labels);
    if (sequence->cut > 0) fprintf(out, ", %" PRIu32 " cut off", sequence->cut);
    if (dataset->reference != NULL)
        fprintf(out, ", reference log-prob %g", dataset->reference[sample][side]);
    fputc('\n', out);
    if (has_text(dataset, print)) print_flow(dataset, print, sequence, out);
    print_table(dataset, print, sequence, out);
}

/* Says what the numbers of a token are: bytes, ids with or without a known text. */
static void print_tokens(const struct dataset *dataset, const struct data_print *print, FILE *out) {
    if (dataset->bytes)
        fprintf(out, "tokens are bytes, <bos> %u and <eos> %u\n", TOKENIZER_BOS, TOKENIZER_EOS);
    else if (print->vocabulary != NULL)
        fprintf(out, "tokens are ids of the file, spelled by a tokenizer of %zu\n",
                print->vocabulary->ids);
    else
        fprintf(out, "tokens are ids of the file: their text is not known (%s)\n",
                print->why != NULL ? print->why : "--tokenizer names a tokenizer.json");
}

static void print_head(const struct dataset *dataset, const struct data_print *print, FILE *out) {
    char hex[DIGEST_HEX];
    digest_hex(&dataset->digest, hex);
    fprintf(out, "%s: %zu %s, %zu tokens, %zu with a loss, longest sequence %" PRIu32 "\n",
            dataset->source, dataset->samples, dataset->sides == 2 ? "pairs" : "samples",
            dataset->tokens, dataset->labels, dataset->longest);
    fprintf(out, "digest %s\n", hex);
    print_tokens(dataset, print, out);
    dataset_describe_lost(dataset, out);
}

void data_print_warnings(const struct dataset *dataset, FILE *out) {
    struct data_check check;
    char note[DATA_CHECK_NOTE];
    data_check(dataset, &check);
    for (size_t i = 0; i < DATA_CHECK_NOTES; i++)
        if (data_check_note(dataset, &check, i, note, sizeof note))
            fprintf(out, "warning: %s\n", note);
}

json_t *data_warnings_json(const struct dataset *dataset) {
    struct data_check check;
    char note[DATA_CHECK_NOTE];
    json_t *list = json_array();
    data_check(dataset, &check);
    for (size_t i = 0; i < DATA_CHECK_NOTES; i++)
        if (data_check_note(dataset, &check, i, note, sizeof note))
            json_array_append_new(list, json_string(note));
    return list;
}

void data_print_text(const struct dataset *dataset, const struct data_print *print, FILE *out) {
    print_head(dataset, print, out);
    data_print_warnings(dataset, out);
    for (size_t i = 0; i < print->samples && i < dataset->samples; i++) {
        fprintf(out, "\n%s %zu, line %" PRIu32 "\n", dataset->sides == 2 ? "pair" : "sample", i,
                dataset->line[i]);
        for (uint32_t side = 0; side < dataset->sides; side++)
            print_sequence(dataset, print, i, side, out);
    }
}

static json_t *json_sequence(const struct dataset *dataset, const struct data_print *print,
                             size_t sample, uint32_t side) {
    const struct dataset_sequence *sequence = dataset_side(dataset, sample, side);
    json_t *tokens = json_array();
    json_t *mask = json_array();
    json_t *text = has_text(dataset, print) ? json_array() : json_null();
    for (uint32_t i = 0; i < sequence->length; i++) {
        char shown[SHOWN];
        const uint32_t token = dataset->token[sequence->first + i];
        token_show(dataset, print, token, shown);
        json_array_append_new(tokens, json_integer(token));
        json_array_append_new(mask, json_integer(labelled(dataset, sequence, i)));
        if (has_text(dataset, print)) json_array_append_new(text, json_string(shown));
    }
    return json_pack("{s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "side", side_name(dataset, side),
                     "length", (json_int_t)sequence->length, "labelled",
                     (json_int_t)sequence->labels, "cut", (json_int_t)sequence->cut, "reference",
                     dataset->reference != NULL ? json_finite(dataset->reference[sample][side])
                                                : json_null(),
                     "tokens", tokens, "mask", mask, "text", text);
}

static json_t *json_samples(const struct dataset *dataset, const struct data_print *print) {
    json_t *list = json_array();
    for (size_t i = 0; i < print->samples && i < dataset->samples; i++) {
        json_t *sequences = json_array();
        for (uint32_t side = 0; side < dataset->sides; side++)
            json_array_append_new(sequences, json_sequence(dataset, print, i, side));
        json_array_append_new(list, json_pack("{s:I, s:o}", "line", (json_int_t)dataset->line[i],
                                              "sequences", sequences));
    }
    return list;
}

json_t *data_print_json(const struct dataset *dataset, const struct data_print *print) {
    char hex[DIGEST_HEX];
    digest_hex(&dataset->digest, hex);
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:b, s:{s:I, s:I}, s:I, s:I, s:o, s:o}",
                     "source", dataset->source, "task", dataset->task == TASK_DPO ? "dpo" : "sft",
                     "digest", hex, "samples", (json_int_t)dataset->samples, "tokens",
                     (json_int_t)dataset->tokens, "labelled", (json_int_t)dataset->labels,
                     "longest", (json_int_t)dataset->longest, "bytes", dataset->bytes, "truncated",
                     "sequences", (json_int_t)dataset->cut_sequences, "tokens",
                     (json_int_t)dataset->cut_tokens, "dropped_rows", (json_int_t)dataset->dropped,
                     "ignored_values", (json_int_t)dataset->extra_keys, "warnings",
                     data_warnings_json(dataset), "shown", json_samples(dataset, print));
}
