/* SPDX-License-Identifier: Apache-2.0
 * Walks over the tokens of one JSON object and keeps the numbers of the names it knows.
 *
 * Some tools wrap what they print: SGLang puts it into "meta_info", OpenAI's API into "choices" and
 * "logprobs", NeMo-RL makes lists of one list. Such wrappings are looked through; of everything
 * else that is not known the value is passed over. */
#include "rollout/json_lines.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/real.h"
#include "logs/build.h"

struct reading {
    const struct rollout_line *line;
    struct rollout_sequence *out;
    struct scan scan;
    int rank[ROLLOUT_FIELDS]; /* of the name that filled the field; 0: none */
    enum rollout_field field; /* at hand */
    char name[64];            /* its name */
    uint64_t hash;            /* of a list of experts */
    int texts;                /* the value at hand is of texts and the like, and is left out */
    size_t kept;              /* how many numbers of another name lie before those of the list */
};

static enum status fail_value(struct reading *r, size_t element, const char *expected) {
    char shown[32];
    log_show(r->scan.text, r->scan.length, shown, sizeof shown);
    FAIL(STATUS_INPUT, "%s:%u: %s[%zu]: expected %s, got \"%s\"", r->line->file, r->line->number,
         r->name, element, expected, shown);
}

/* Some give an object of several rewards, or a text of a judge, the name of the reward. Under a
 * name that --field gives that is an error, else the sequence has no reward. */
static enum status refuse_reward(struct reading *r, size_t element, double *out) {
    static const char expected[] = "a number, or a list with one for each token";
    const int is_object = r->scan.token == SCAN_OBJECT;
    if (r->line->naming->name[ROLLOUT_REWARD] != NULL) {
        if (!is_object && r->scan.token != SCAN_ARRAY) return fail_value(r, element, expected);
        FAIL(
            STATUS_INPUT,
            "%s:%u: %s[%zu]: expected %s, got %s; write the one that counts as a member of its own",
            r->line->file, r->line->number, r->name, element, expected,
            is_object ? "an object" : "a list");
    }
    *out = real_nan_f64();
    r->texts = r->out->odd_reward = 1;
    return STATUS_OK;
}

/* Stores the value of a scalar token; NaN for null and for what the tools write when there is no
 * number. */
static enum status scalar(struct reading *r, size_t element, double *out) {
    const struct scan *scan = &r->scan;
    struct log_number number;
    if (scan->token == SCAN_NULL) {
        *out = real_nan_f64();
        return STATUS_OK;
    }
    if (scan->token == SCAN_TRUE || scan->token == SCAN_FALSE) {
        *out = scan->token == SCAN_TRUE ? 1.0 : 0.0;
        return STATUS_OK;
    }
    if ((scan->token == SCAN_NUMBER || scan->token == SCAN_STRING) &&
        log_number_read(scan->text, scan->length, &number)) {
        *out = number.value;
        return STATUS_OK;
    }
    /* A version may be a word ("default"), and a batch a path; then there is no number. */
    const int may_be_word =
        r->field == ROLLOUT_VERSION || r->field == ROLLOUT_NOW || r->field == ROLLOUT_BATCH;
    if (r->field == ROLLOUT_REWARD) return refuse_reward(r, element, out);
    if (scan->token != SCAN_STRING || !may_be_word) return fail_value(r, element, "a number");
    *out = real_nan_f64();
    return STATUS_OK;
}

static enum status add(struct reading *r, enum rollout_field field, double value) {
    struct rollout_list *list = &r->out->list[field];
    list->given = 1;
    return rollout_list_add(list, r->line->arena, value);
}

/* ---- elements that are not one number ---- */

/* [log-prob, id, text]: the id goes to the token ids where the sequence has none of its own. */
static enum status read_pair(struct reading *r, enum rollout_field field, size_t element) {
    double value;
    TRY(scan_next(&r->scan));
    TRY(scalar(r, element, &value));
    TRY(add(r, field, value));
    TRY(scan_next(&r->scan));
    if (r->scan.token == SCAN_NUMBER && field == ROLLOUT_ENGINE &&
        (r->rank[ROLLOUT_TOKENS] == 0 || r->rank[ROLLOUT_TOKENS] == 2000)) {
        r->rank[ROLLOUT_TOKENS] = 2000;
        TRY(scalar(r, element, &value));
        TRY(add(r, ROLLOUT_TOKENS, value));
    }
    while (r->scan.token != SCAN_ARRAY_END) {
        TRY(scan_skip(&r->scan));
        TRY(scan_next(&r->scan));
    }
    return STATUS_OK;
}

/* An object of one token, as OpenAI's chat API writes it: its member "logprob" counts. */
static enum status read_token_object(struct reading *r, enum rollout_field field, size_t element) {
    int found = 0;
    for (;;) {
        TRY(scan_next(&r->scan));
        if (r->scan.token == SCAN_OBJECT_END) break;
        const int wanted = scan_is(&r->scan, "logprob");
        TRY(scan_next(&r->scan));
        if (!wanted) {
            TRY(scan_skip(&r->scan));
            continue;
        }
        double value;
        TRY(scalar(r, element, &value));
        TRY(add(r, field, value));
        found = 1;
    }
    if (found) return STATUS_OK;
    FAIL(STATUS_INPUT, "%s:%u: %s[%zu]: expected a number, got an object without \"logprob\"",
         r->line->file, r->line->number, r->name, element);
}

/* A list of experts, perhaps one list for each layer, becomes one number (FNV-1a, 53 bits), since
 * only whether two are equal is asked. */
static enum status read_experts(struct reading *r, enum rollout_field field, size_t element) {
    const int depth = r->scan.depth;
    uint64_t hash = 0xcbf29ce484222325u;
    for (;;) {
        TRY(scan_next(&r->scan));
        if (r->scan.token == SCAN_ARRAY_END && r->scan.depth < depth) break;
        if (r->scan.token == SCAN_ARRAY || r->scan.token == SCAN_ARRAY_END) continue;
        double value;
        TRY(scalar(r, element, &value));
        hash = (hash ^ real_bits_f64(value)) * 0x100000001b3u;
    }
    return add(r, field, (double)(hash >> 11));
}

/* An element of a list of rewards that is an object, or a list. */
static enum status read_odd_reward(struct reading *r, size_t element) {
    double value;
    TRY(refuse_reward(r, element, &value));
    TRY(scan_skip(&r->scan));
    return add(r, ROLLOUT_REWARD, value);
}

/* A list in a list: of experts it is the element; of pairs, too; else the tool wraps a batch of one
 * sequence, and the inner list takes the place of the outer one. */
static enum status read_inner(struct reading *r, enum rollout_field field, int pairs,
                              size_t element, int *wrapped) {
    if (field == ROLLOUT_EXPERTS || field == ROLLOUT_EXPERTS_HERE)
        return read_experts(r, field, element);
    if (pairs) return read_pair(r, field, element);
    if (field == ROLLOUT_REWARD && (element > 0 || *wrapped)) return read_odd_reward(r, element);
    if (element > 0 || *wrapped)
        FAIL(STATUS_INPUT,
             "%s:%u: %s: expected one list of numbers for one sequence, got a list of lists: write "
             "each sequence as a line of its own",
             r->line->file, r->line->number, r->name);
    *wrapped = 1;
    return STATUS_OK;
}

/* The tokens of OpenAI's API are texts, or "token_id:5" where vLLM is asked for ids: no list of ids
 * is there in the first case. */
static enum status read_token_text(struct reading *r, size_t element) {
    static const char mark[] = "token_id:";
    const size_t ahead = sizeof mark - 1;
    struct scan *scan = &r->scan;
    double value;
    if (scan->length <= ahead || memcmp(scan->text, mark, ahead) != 0) {
        r->texts = 1;
        return STATUS_OK;
    }
    scan->text += ahead;
    scan->length -= ahead;
    TRY(scalar(r, element, &value));
    return add(r, ROLLOUT_TOKENS, value);
}

static int is_token_text(const struct reading *r, enum rollout_field field) {
    return field == ROLLOUT_TOKENS && r->scan.token == SCAN_STRING &&
           strcmp(r->name, "tokens") == 0;
}

static enum status read_list(struct reading *r, enum rollout_field field, int pairs) {
    int wrapped = 0;
    r->out->list[field].given = 1;
    for (;;) {
        double value;
        const size_t element = r->out->list[field].count - r->kept;
        TRY(scan_next(&r->scan));
        switch (r->scan.token) {
        case SCAN_ARRAY_END:
            if (!wrapped) return STATUS_OK;
            wrapped = 0;
            continue;
        case SCAN_ARRAY:
            TRY(read_inner(r, field, pairs, element, &wrapped));
            continue;
        case SCAN_OBJECT:
            TRY(field == ROLLOUT_REWARD ? read_odd_reward(r, element)
                                        : read_token_object(r, field, element));
            continue;
        default:
            if (is_token_text(r, field)) {
                TRY(read_token_text(r, element));
                continue;
            }
            TRY(scalar(r, element, &value));
            TRY(add(r, field, value));
        }
    }
}

/* ---- the object ---- */

static void take_id(struct reading *r) {
    const size_t length =
        r->scan.length < ROLLOUT_ID_ROOM ? r->scan.length : (size_t)ROLLOUT_ID_ROOM - 1;
    memcpy(r->out->id, r->scan.text, length);
    r->out->id[length] = '\0';
}

static enum status read_field(struct reading *r, enum rollout_field field, int pairs) {
    struct rollout_list *list = &r->out->list[field];
    list->count = r->kept;
    list->given = 0;
    r->field = field;
    r->texts = 0;
    if (field == ROLLOUT_ID) {
        if (r->scan.token == SCAN_STRING || r->scan.token == SCAN_NUMBER) take_id(r);
        return scan_skip(&r->scan);
    }
    if (r->scan.token == SCAN_ARRAY) {
        TRY(read_list(r, field, pairs));
        return STATUS_OK;
    }
    if (r->scan.token == SCAN_OBJECT) return read_odd_reward(r, 0);
    double value;
    TRY(scalar(r, 0, &value));
    TRY(add(r, field, value));
    list->given = 2;
    if (field == ROLLOUT_ENGINE || field == ROLLOUT_TRAINER || field == ROLLOUT_TOKENS)
        return fail_value(r, 0, "a list with a number for each token");
    return STATUS_OK;
}

static int is_wrapping(const struct scan *scan) {
    return scan_is(scan, "meta_info") || scan_is(scan, "logprobs") || scan_is(scan, "output") ||
           scan_is(scan, "sample") || scan_is(scan, "choices") || scan_is(scan, "metadata");
}

static enum status remember_name(struct reading *r, enum rollout_field field) {
    char *copy;
    if (r->line->names[field] != NULL && strcmp(r->line->names[field], r->name) == 0)
        return STATUS_OK;
    TRY(arena_text(r->line->arena, r->name, strlen(r->name), &copy));
    r->line->names[field] = copy;
    return STATUS_OK;
}

/* Reads the value of a name that comes before the one, if any, which filled the field. Texts are no
 * ids and no rewards, so what that one gave stays, in whatever order the two are written. */
static enum status take_field(struct reading *r, enum rollout_field field, int rank, int pairs) {
    struct rollout_list *list = &r->out->list[field];
    const int given_before = list->given, rank_before = r->rank[field];
    const int may_be_texts = field == ROLLOUT_TOKENS || field == ROLLOUT_REWARD;
    r->kept = may_be_texts && given_before != 0 ? list->count : 0;
    r->rank[field] = rank;
    TRY(read_field(r, field, pairs));
    if (r->texts) {
        list->count = r->kept;
        list->given = given_before;
        r->rank[field] = rank_before;
        return STATUS_OK;
    }
    if (r->kept > 0) {
        list->count -= r->kept;
        memmove(list->value, list->value + r->kept, list->count * sizeof *list->value);
    }
    if (field != ROLLOUT_ID && list->given == 0) return STATUS_OK;
    return remember_name(r, field);
}

/* One name of the object and its value. */
static enum status read_member(struct reading *r, int *depth) {
    struct scan *scan = &r->scan;
    int rank, pairs;
    const enum rollout_field field =
        rollout_field_of(r->line->naming, scan->text, scan->length, r->line->lone, &rank, &pairs);
    const int wrapping = is_wrapping(scan);
    snprintf(r->name, sizeof r->name, "%.*s", (int)scan->length, scan->text);
    TRY(scan_next(scan));
    if (wrapping && scan->token == SCAN_ARRAY && strcmp(r->name, "choices") == 0) {
        ++*depth;
        return STATUS_OK;
    }
    if (wrapping && scan->token == SCAN_OBJECT) {
        ++*depth;
        return STATUS_OK;
    }
    const int known =
        field != ROLLOUT_FIELDS && (scan->token != SCAN_OBJECT || field == ROLLOUT_REWARD);
    /* A name that says nothing leaves its field to the next one. (One that --field names has none:
     * rollout_field_of.) */
    if (known && scan->token == SCAN_NULL) return STATUS_OK;
    if (!known || (r->rank[field] != 0 && r->rank[field] < rank)) return scan_skip(scan);
    const int taken = rank == 0 ? -1 : rank;
    if ((field == ROLLOUT_ENGINE || field == ROLLOUT_TRAINER) && r->rank[field] == taken &&
        r->out->list[field].given != 0)
        FAIL(STATUS_INPUT,
             "%s:%u: %s: expected one list for one sequence, got a second one, as of several "
             "choices: write each sequence as a line of its own",
             r->line->file, r->line->number, r->name);
    return take_field(r, field, taken, pairs);
}

static enum status read_object(struct reading *r) {
    int depth = 1;
    TRY(scan_next(&r->scan));
    if (r->scan.token != SCAN_OBJECT)
        FAIL(STATUS_INPUT,
             "%s:%u: expected one JSON object for each sequence, on a line of its own (jq -c "
             "'.[]' makes such lines of a list)",
             r->line->file, r->line->number);
    while (depth > 0) {
        TRY(scan_next(&r->scan));
        switch (r->scan.token) {
        case SCAN_KEY:
            TRY(read_member(r, &depth));
            continue;
        case SCAN_OBJECT: /* in the list of "choices" */
            depth++;
            continue;
        case SCAN_OBJECT_END:
        case SCAN_ARRAY_END:
            depth--;
            continue;
        default:
            TRY(scan_skip(&r->scan));
        }
    }
    return STATUS_OK;
}

enum status rollout_line_read(const struct rollout_line *line, struct rollout_sequence *out) {
    const struct log_source source = {
        .name = line->file, .bytes = line->bytes, .length = line->length};
    struct reading r = {.line = line, .out = out};
    rollout_sequence_clear(out);
    out->file = line->file;
    out->line = line->number;
    scan_open(&r.scan, &source);
    r.scan.line = line->number;
    TRY(read_object(&r));
    TRY(scan_next(&r.scan));
    return scan_expect(&r.scan, SCAN_END);
}
