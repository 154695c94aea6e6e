/* SPDX-License-Identifier: Apache-2.0
 * Turns rows into sequences: special tokens, label masks, truncation, the shift by one, the digest.
 *
 * The source's rows live in an arena of their own that dataset_open closes before it returns. The
 * flat arrays are measured first, so that each is taken once. Invariant: tokens and targets of a
 * sequence depend on its row and max_len alone. */
#include "data/dataset.h"

#include <inttypes.h>
#include <string.h>

#include "data/builtin.h"
#include "data/chat.h"
#include "data/datarow.h"
#include "data/jsonl.h"
#include "data/tokenizer.h"

#define BUILTIN_PREFIX "builtin:"

/* One sequence of a row: the part before the answer, the answer, and whether special tokens stand
 * around them. */
struct recipe {
    const struct datarow_part *prompt; /* NULL: there is none */
    const struct datarow_part *answer;
    const struct datarow_part *labels; /* labels of the answer; NULL: all of it is labelled */
    int specials;                      /* <bos> stands in front, and a labelled <eos> behind */
};

struct builder {
    const struct dataset_options *options;
    const struct datarow_table *table;
    struct dataset *dataset;
    size_t *row; /* [samples]: the row of the table that the sample is */
    uint32_t *token;
    int32_t *target;
    uint32_t *line;
    struct dataset_sequence *sequence;
    uint8_t *opens;
};

static int form_is_text(enum datarow_form form) {
    return form == DATAROW_PAIR_TEXT || form == DATAROW_COMPLETION_TEXT ||
           form == DATAROW_PLAIN_TEXT;
}

static struct recipe recipe_of(const struct datarow_table *table, size_t row, uint32_t side) {
    const struct datarow_part *part = table->row[row].part;
    struct recipe recipe = {NULL, NULL, NULL, form_is_text(table->form)};
    if (table->form == DATAROW_PLAIN_TEXT) {
        recipe.answer = &part[0];
    } else if (table->form == DATAROW_LABELLED_IDS) {
        recipe.answer = &part[0];
        recipe.labels = &part[1];
    } else if (table->form == DATAROW_PAIR_LABELLED) {
        recipe.answer = &part[2 * side];
        recipe.labels = &part[2 * side + 1];
    } else {
        recipe.prompt = &part[0];
        recipe.answer = &part[1 + side];
    }
    return recipe;
}

static uint64_t recipe_length(const struct recipe *recipe) {
    uint64_t prompt = recipe->prompt == NULL ? 0 : recipe->prompt->length;
    return prompt + recipe->answer->length + (recipe->specials ? 2 : 0);
}

/* Appends as much of the part as fits below `limit`, and returns the new length. */
static uint64_t part_append(const struct datarow_part *part, uint64_t length, uint64_t limit,
                            uint32_t *token) {
    if (part == NULL) return length;
    uint64_t room = limit - length;
    uint64_t count = part->length < room ? part->length : room;
    if (part->text != NULL) tokenizer_encode(part->text, (size_t)count, token + length);
    for (uint64_t i = 0; part->text == NULL && i < count; i++)
        token[length + i] = (uint32_t)part->ids[i];
    return length + count;
}

/* Writes the tokens of one sequence, and returns where its answer starts. */
static uint64_t tokens_write(const struct recipe *recipe, uint64_t limit, uint32_t *token) {
    uint64_t length = 0;
    if (recipe->specials) token[length++] = TOKENIZER_BOS;
    length = part_append(recipe->prompt, length, limit, token);
    uint64_t answer = length;
    length = part_append(recipe->answer, length, limit, token);
    if (recipe->specials && length < limit) token[length] = TOKENIZER_EOS;
    return answer;
}

static int token_labelled(const struct recipe *recipe, uint64_t answer, uint64_t index) {
    if (index < answer) return 0;
    return recipe->labels == NULL || recipe->labels->ids[index - answer] != DATAROW_MASKED;
}

/* Whether a collator for language models (transformers' DataCollatorForLanguageModeling) would
 * label the first token: it copies input_ids of plain text to labels, <bos> included. */
static int opens_labelled(const struct recipe *recipe) {
    if (recipe->labels != NULL) return recipe->labels->ids[0] != DATAROW_MASKED;
    return recipe->prompt == NULL;
}

static void targets_write(const struct recipe *recipe, uint64_t answer, const uint32_t *token,
                          int32_t *target, struct dataset_sequence *sequence) {
    for (uint32_t i = sequence->length; i-- > 0;) {
        target[i] = DATASET_NO_TARGET;
        if (i + 1 == sequence->length || !token_labelled(recipe, answer, i + 1)) continue;
        target[i] = (int32_t)token[i + 1];
        sequence->prompt = i + 1;
        sequence->labels++;
    }
}

static enum status sequence_fail(const struct builder *builder, size_t row, uint32_t side,
                                 const struct dataset_sequence *sequence) {
    static const char *const sides[] = {"chosen", "rejected"};
    const struct dataset *dataset = builder->dataset;
    size_t line = builder->table->row[row].line;
    const char *name = dataset->sides == 2 ? sides[side] : "row";
    if (sequence->cut > 0)
        FAIL(STATUS_INPUT,
             "%s:%zu: %s: no label is left of %" PRIu32
             " tokens after truncation to max_len %" PRIu64
             "; raise data.max_len, or leave such rows out with data.no_label: drop",
             dataset->source, line, name, sequence->length + sequence->cut,
             builder->options->max_len);
    FAIL(STATUS_INPUT,
         "%s:%zu: %s: no position has a label: %" PRIu32
         " token(s), and a label needs a token before it",
         dataset->source, line, name, sequence->length);
}

static enum status sequence_write(struct builder *builder, size_t sample, uint32_t side,
                                  uint64_t *first) {
    struct dataset *dataset = builder->dataset;
    const size_t row = builder->row[sample];
    struct recipe recipe = recipe_of(builder->table, row, side);
    struct dataset_sequence *sequence = &builder->sequence[sample * dataset->sides + side];
    uint64_t full = recipe_length(&recipe);
    uint64_t kept = full < builder->options->max_len ? full : builder->options->max_len;
    *sequence = (struct dataset_sequence){*first, (uint32_t)kept, 0, 0, (uint32_t)(full - kept)};
    uint32_t *token = builder->token + *first;
    uint64_t answer = tokens_write(&recipe, kept, token);
    targets_write(&recipe, answer, token, builder->target + *first, sequence);
    builder->opens[sample * dataset->sides + side] = opens_labelled(&recipe) ? 1 : 0;
    if (sequence->labels == 0) return sequence_fail(builder, row, side, sequence);
    dataset->labels += sequence->labels;
    dataset->cut_sequences += sequence->cut > 0;
    dataset->cut_tokens += sequence->cut;
    if (sequence->length > dataset->longest) dataset->longest = sequence->length;
    *first += kept;
    return STATUS_OK;
}

/* Whether the sequence is cut so that no label is left, which a longer max_len would mend. */
static int loses_labels(const struct builder *builder, const struct recipe *recipe) {
    const uint64_t limit = builder->options->max_len;
    uint64_t answer = (recipe->specials ? 1u : 0u) +
                      (recipe->prompt == NULL ? (uint64_t)0 : recipe->prompt->length);
    if (recipe_length(recipe) <= limit) return 0;
    if (answer > limit) answer = limit;
    for (uint64_t i = 1; i < limit; i++)
        if (token_labelled(recipe, answer, i)) return 0;
    return 1;
}

/* Fills the rows of the samples: the first of the table, without those that are dropped. */
static void rows_choose(struct builder *builder) {
    struct dataset *dataset = builder->dataset;
    const size_t most =
        builder->options->samples == 0 ? builder->table->rows : (size_t)builder->options->samples;
    for (size_t row = 0; row < builder->table->rows && dataset->samples < most; row++) {
        int drop = 0;
        for (uint32_t side = 0; side < dataset->sides; side++) {
            const struct recipe recipe = recipe_of(builder->table, row, side);
            drop |= builder->options->no_label == NO_LABEL_DROP && loses_labels(builder, &recipe);
        }
        if (!drop) builder->row[dataset->samples++] = row;
        if (drop && dataset->dropped++ == 0) dataset->dropped_first = builder->table->row[row].line;
    }
}

/* Adds up all lengths after truncation. */
static size_t tokens_count(const struct builder *builder) {
    size_t tokens = 0;
    for (size_t sample = 0; sample < builder->dataset->samples; sample++)
        for (uint32_t side = 0; side < builder->dataset->sides; side++) {
            struct recipe recipe = recipe_of(builder->table, builder->row[sample], side);
            uint64_t full = recipe_length(&recipe);
            tokens += (size_t)(full < builder->options->max_len ? full : builder->options->max_len);
        }
    return tokens;
}

static enum status arrays_take(struct builder *builder, struct arena *arena) {
    struct dataset *dataset = builder->dataset;
    TRY(arena_take(arena, dataset->tokens, sizeof *builder->token, "tokens", &builder->token));
    TRY(arena_take(arena, dataset->tokens, sizeof *builder->target, "targets", &builder->target));
    TRY(arena_take(arena, dataset->samples, sizeof *builder->line, "data lines", &builder->line));
    TRY(arena_take(arena, dataset->samples * dataset->sides, sizeof *builder->sequence, "sequences",
                   &builder->sequence));
    TRY(arena_take(arena, dataset->samples * dataset->sides, sizeof *builder->opens, "sequences",
                   &builder->opens));
    dataset->opens = builder->opens;
    dataset->token = builder->token;
    dataset->target = builder->target;
    dataset->line = builder->line;
    dataset->sequence = builder->sequence;
    return STATUS_OK;
}

static void dataset_digest(struct dataset *dataset) {
    const uint64_t shape[] = {(uint64_t)dataset->task, dataset->sides, dataset->samples,
                              dataset->tokens};
    struct digest part[5];
    digest_bytes("shape", shape, sizeof shape, &part[0]);
    digest_bytes("sequence", dataset->sequence,
                 dataset->samples * dataset->sides * sizeof *dataset->sequence, &part[1]);
    digest_bytes("token", dataset->token, dataset->tokens * sizeof *dataset->token, &part[2]);
    digest_bytes("target", dataset->target, dataset->tokens * sizeof *dataset->target, &part[3]);
    /* The reference joins last and only where there is one: data without it keep their digest. */
    size_t parts = 4;
    if (dataset->reference != NULL)
        digest_bytes("reference", dataset->reference, dataset->samples * sizeof *dataset->reference,
                     &part[parts++]);
    digest_root("dataset", part, parts, &dataset->digest);
}

static enum status reference_copy(const struct builder *builder, struct arena *arena,
                                  struct dataset *dataset) {
    double(*reference)[2];
    TRY(arena_take(arena, dataset->samples, sizeof *reference, "reference", &reference));
    for (size_t sample = 0; sample < dataset->samples; sample++)
        memcpy(reference[sample], builder->table->row[builder->row[sample]].reference,
               sizeof reference[sample]);
    dataset->reference = (const double(*)[2])reference;
    return STATUS_OK;
}

static enum status samples_check(const struct builder *builder) {
    const struct dataset *dataset = builder->dataset;
    const char *source = builder->table->source;
    if (dataset->samples == 0 && dataset->dropped > 0)
        FAIL(STATUS_INPUT,
             "%s: data.no_label drops all %zu rows: data.max_len %" PRIu64
             " leaves none of them a label",
             source, dataset->dropped, builder->options->max_len);
    if (dataset->samples >= builder->options->samples) return STATUS_OK;
    if (dataset->dropped == 0)
        FAIL(STATUS_INPUT, "data.samples: %s holds %zu samples, got %" PRIu64, source,
             dataset->samples, builder->options->samples);
    FAIL(STATUS_INPUT,
         "data.samples: %s holds %zu samples and %zu rows that data.no_label drops, got %" PRIu64,
         source, dataset->samples, dataset->dropped, builder->options->samples);
}

static enum status dataset_build(const struct dataset_options *options,
                                 const struct datarow_table *table, struct arena *scratch,
                                 struct arena *arena, struct dataset *dataset) {
    struct builder builder = {.options = options, .table = table, .dataset = dataset};
    if (table->rows >= UINT32_MAX)
        FAIL(STATUS_INPUT, "%s: %zu rows; at most %" PRIu32, table->source, table->rows,
             UINT32_MAX - 1);
    dataset->task = options->task;
    dataset->sides = options->task == TASK_DPO ? 2 : 1;
    TRY(arena_take(scratch, table->rows, sizeof *builder.row, "data rows", &builder.row));
    rows_choose(&builder);
    TRY(samples_check(&builder));
    dataset->extra_keys = table->extra_keys;
    char *text;
    TRY(arena_text(arena, table->source, strlen(table->source), &text));
    dataset->source = text;
    if (table->extra_first != NULL) {
        TRY(arena_text(arena, table->extra_first, strlen(table->extra_first), &text));
        dataset->extra_first = text;
    }
    dataset->tokens = tokens_count(&builder);
    TRY(arrays_take(&builder, arena));
    uint64_t first = 0;
    for (size_t sample = 0; sample < dataset->samples; sample++) {
        builder.line[sample] = (uint32_t)table->row[builder.row[sample]].line;
        for (uint32_t side = 0; side < dataset->sides; side++)
            TRY(sequence_write(&builder, sample, side, &first));
    }
    if (options->reference) TRY(reference_copy(&builder, arena, dataset));
    dataset_digest(dataset);
    return STATUS_OK;
}

int dataset_options_equal(const struct dataset_options *a, const struct dataset_options *b) {
    return a->task == b->task && a->max_len == b->max_len && a->vocab == b->vocab &&
           a->seed == b->seed && a->samples == b->samples && a->reference == b->reference &&
           a->chat == b->chat && a->no_label == b->no_label && strcmp(a->source, b->source) == 0;
}

int dataset_is_builtin(const char *source) {
    return strncmp(source, BUILTIN_PREFIX, strlen(BUILTIN_PREFIX)) == 0;
}

static enum status source_read(const struct dataset_options *options, struct arena *arena,
                               struct datarow_table *out_table) {
    if (dataset_is_builtin(options->source)) {
        TRY(builtin_rows(options->source + strlen(BUILTIN_PREFIX), options->task, options->seed,
                         arena, out_table));
        return chat_rows(options->chat, arena, out_table);
    }
    const struct jsonl_options reading = {options->task, options->vocab, options->reference,
                                          options->chat};
    return jsonl_read(options->source, &reading, arena, out_table);
}

static enum status options_check(const struct dataset_options *options) {
    if (options->reference && dataset_is_builtin(options->source))
        FAIL(STATUS_INPUT, "dpo.reference: %s holds no log-probabilities; expected cached or live",
             options->source);
    if (options->max_len < 2 || options->max_len > DATASET_MAX_LEN)
        FAIL(STATUS_INPUT, "max_len: expected 2 to %" PRIu64 " tokens, got %" PRIu64,
             DATASET_MAX_LEN, options->max_len);
    if (options->vocab < 1 || options->vocab > DATASET_MAX_VOCAB)
        FAIL(STATUS_INPUT, "vocabulary: expected 1 to %" PRIu64 ", got %" PRIu64, DATASET_MAX_VOCAB,
             options->vocab);
    return STATUS_OK;
}

static enum status dataset_fill(const struct dataset_options *options, struct arena *scratch,
                                struct arena *arena, struct dataset *out_dataset) {
    struct datarow_table table;
    TRY(source_read(options, scratch, &table));
    out_dataset->bytes = table.bytes || form_is_text(table.form);
    if (out_dataset->bytes && options->check_text != NULL)
        TRY(options->check_text(options->context));
    if (out_dataset->bytes && options->vocab < TOKENIZER_VOCAB)
        FAIL(STATUS_INPUT,
             "%s: text needs a vocabulary of %u (256 bytes and 3 specials), got %" PRIu64,
             table.source, TOKENIZER_VOCAB, options->vocab);
    out_dataset->words = table.words;
    return dataset_build(options, &table, scratch, arena, out_dataset);
}

enum status dataset_open(const struct dataset_options *options, struct arena *arena,
                         struct dataset *out_dataset) {
    memset(out_dataset, 0, sizeof *out_dataset);
    TRY(options_check(options));
    struct arena scratch = ARENA_EMPTY;
    enum status status = dataset_fill(options, &scratch, arena, out_dataset);
    arena_close(&scratch);
    return status;
}

static int mask_at(const struct dataset *dataset, const struct dataset_sequence *sequence,
                   uint32_t index) {
    return index > 0 && dataset->target[sequence->first + index - 1] != DATASET_NO_TARGET;
}

static void sequence_print(const struct dataset *dataset, const struct dataset_sequence *sequence,
                           const char *name, FILE *out) {
    const uint32_t *token = dataset->token + sequence->first;
    fprintf(out, "  %-8s %" PRIu32 " tokens, %" PRIu32 " labelled", name, sequence->length,
            sequence->labels);
    if (sequence->cut > 0) fprintf(out, ", %" PRIu32 " cut off", sequence->cut);
    fprintf(out, "\n    tokens");
    for (uint32_t i = 0; i < sequence->length; i++)
        fprintf(out, " %" PRIu32, token[i]);
    fprintf(out, "\n    mask  ");
    for (uint32_t i = 0; i < sequence->length; i++)
        fprintf(out, " %d", mask_at(dataset, sequence, i));
    if (!dataset->bytes) {
        fputc('\n', out);
        return;
    }
    fprintf(out, "\n    text   ");
    for (uint32_t i = 0; i < sequence->length; i++) {
        char shown[TOKENIZER_SHOW];
        tokenizer_show(token[i], shown);
        int before = i > 0 && mask_at(dataset, sequence, i - 1);
        int labelled = mask_at(dataset, sequence, i);
        fprintf(out, "%s%s", labelled != before ? (labelled ? "[" : "]") : "", shown);
    }
    fprintf(out, "%s\n", mask_at(dataset, sequence, sequence->length - 1) ? "]" : "");
}

void dataset_describe_lost(const struct dataset *dataset, FILE *out) {
    if (dataset->cut_sequences > 0)
        fprintf(out, "truncated: %zu sequences, %zu tokens cut off\n", dataset->cut_sequences,
                dataset->cut_tokens);
    if (dataset->dropped > 0)
        fprintf(
            out,
            "dropped: %zu rows of which truncation leaves nothing with a loss, first line %zu\n",
            dataset->dropped, dataset->dropped_first);
    if (dataset->extra_keys > 0)
        fprintf(out, "ignored: %zu values of other keys, the first is \"%s\"\n",
                dataset->extra_keys, dataset->extra_first);
}

void dataset_describe(const struct dataset *dataset, size_t samples, FILE *out) {
    static const char *const names[] = {"chosen", "rejected"};
    char hex[DIGEST_HEX];
    digest_hex(&dataset->digest, hex);
    fprintf(out, "%s: %zu samples, %zu tokens, %zu labelled, longest sequence %" PRIu32 "\n",
            dataset->source, dataset->samples, dataset->tokens, dataset->labels, dataset->longest);
    fprintf(out, "digest %s\n", hex);
    dataset_describe_lost(dataset, out);
    for (size_t i = 0; i < samples && i < dataset->samples; i++) {
        fprintf(out, "sample %zu (%s:%" PRIu32 ")\n", i, dataset->source, dataset->line[i]);
        for (uint32_t side = 0; side < dataset->sides; side++)
            sequence_print(dataset, dataset_side(dataset, i, side),
                           dataset->sides == 2 ? names[side] : "row", out);
    }
}
