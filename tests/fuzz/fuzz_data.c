/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target: any bytes must give rows that keep every promise of datarow.h, or an error with
 * a text, never a crash.
 *
 * TWINSTEP_FUZZ_FORMAT is rows-text, rows-ids, rows-messages or tokenizer; without it all are
 * tried. The forms of rows differ in the templates that are tried: messages need one, ids refuse
 * one. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/chat.h"
#include "data/jsonl.h"
#include "data/vocabulary.h"

#define VOCAB 300

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "fuzz_data: broken: %s\n", what);
    abort();
}

static void look_at_ids(const struct datarow_part *part, int labels) {
    require(part->text == NULL && part->ids != NULL, "a part of ids is no text");
    for (size_t i = 0; i < part->length; i++)
        require((part->ids[i] >= 0 && part->ids[i] < VOCAB) ||
                    (labels && part->ids[i] == DATAROW_MASKED),
                "ids are below the vocabulary");
}

static void look_at_labels(const struct datarow_part *ids, const struct datarow_part *labels) {
    look_at_ids(ids, 0);
    look_at_ids(labels, 1);
    require(ids->length == labels->length && ids->length > 0, "each id has a label");
    for (size_t i = 0; i < ids->length; i++)
        require(labels->ids[i] == DATAROW_MASKED || labels->ids[i] == ids->ids[i],
                "a label is its token");
}

static void look_at_text(const struct datarow_part *part, uint64_t *sum) {
    require(part->text != NULL && part->ids == NULL, "a part of text is no ids");
    for (size_t i = 0; i < part->length; i++)
        *sum += (unsigned char)part->text[i];
}

static void look_at_row(enum datarow_form form, const struct datarow *row, uint64_t *sum) {
    static const size_t parts[] = {3, 3, 2, 1, 2, 2, 4};
    for (size_t i = 0; i < parts[form]; i++)
        switch (form) {
        case DATAROW_LABELLED_IDS:
        case DATAROW_PAIR_LABELLED:
            if (i % 2 == 1) look_at_labels(&row->part[i - 1], &row->part[i]);
            break;
        case DATAROW_PAIR_IDS:
        case DATAROW_COMPLETION_IDS:
            look_at_ids(&row->part[i], 0);
            break;
        default:
            look_at_text(&row->part[i], sum);
        }
}

static void read_rows(const uint8_t *data, size_t size, const struct jsonl_options *options) {
    struct arena arena = ARENA_EMPTY;
    struct datarow_table table;
    uint64_t sum = 0;
    size_t line = 0;
    if (jsonl_parse("fuzz", (const char *)data, size, options, &arena, &table) != STATUS_OK) {
        require(strncmp(status_text(), "fuzz:", 5) == 0, "an error names the source");
    } else {
        require(table.rows > 0, "there is a row");
        for (size_t i = 0; i < table.rows; i++) {
            require(table.row[i].line > line, "lines rise");
            line = table.row[i].line;
            look_at_row(table.form, &table.row[i], &sum);
            require(!options->reference || table.row[i].reference[1] <= 0.0,
                    "log-probs are not positive");
        }
        require(sum < UINT64_MAX, "text is readable");
    }
    arena_close(&arena);
}

static void read_vocabulary(const uint8_t *data, size_t size) {
    struct arena arena = ARENA_EMPTY;
    struct vocabulary vocabulary;
    if (vocabulary_parse("fuzz", (const char *)data, size, &arena, &vocabulary) != STATUS_OK) {
        require(strncmp(status_text(), "fuzz:", 5) == 0, "an error names the source");
    } else {
        size_t total = 0;
        for (uint32_t i = 0; i <= vocabulary.ids; i++) {
            char shown[24];
            vocabulary_show(&vocabulary, i, shown, sizeof shown);
            if (i < vocabulary.ids && vocabulary.token[i].text != NULL)
                total += vocabulary.token[i].length;
            for (const char *c = shown; *c != '\0'; c++)
                require(*c >= ' ' && *c <= '~', "what is shown is printable");
        }
        require(total <= size, "texts are no longer than the file");
    }
    arena_close(&arena);
}

/* Every template would render the same structure five times, so one is chosen, by the input's
 * size. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *format = getenv("TWINSTEP_FUZZ_FORMAT");
    const int tokenizer = format != NULL && strcmp(format, "tokenizer") == 0;
    if (format == NULL || tokenizer) read_vocabulary(data, size);
    if (tokenizer) return 0;
    const enum chat chat = (enum chat)(1 + size % (CHATS - 1));
    for (int task = TASK_SFT; task <= TASK_DPO; task++) {
        if (format == NULL || strcmp(format, "rows-messages") != 0)
            read_rows(data, size,
                      &(struct jsonl_options){(enum task)task, VOCAB, size % 3 == 0, CHAT_NONE});
        if (format == NULL || strcmp(format, "rows-ids") != 0)
            read_rows(data, size, &(struct jsonl_options){(enum task)task, VOCAB, 0, chat});
    }
    return 0;
}
