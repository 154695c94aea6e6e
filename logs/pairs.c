/* SPDX-License-Identifier: Apache-2.0
 * One walk over a line: a field begins behind a mark (a comma, a bar, a bracket, " - ") or behind
 * the value before it, and ends at the next sign (':' or '=') or mark.
 *
 * Invariant: a name is never put together from two fields, and a number never from two tokens. */
#include "logs/pairs.h"

#include <string.h>

#include "logs/names.h"

#define LIST_MOST 1024
#define TOKEN_MOST 256
#define COUNT_MOST 48

struct walk {
    const char *at, *end;
    const char *field; /* where the field at hand begins */
    int blank;         /* 1: only blanks stand between it and `at` */
    int dirty;    /* 1: something unread stands in front of it, so only its last word is a name */
    int attached; /* round brackets that belong to a name, as in "lr(1e-4)" */
    int listed;   /* 1: the number in front of `at` is the first of a list, as in "loss 2,5051" */
    struct pairs *out;
    char prefix[256]; /* of dicts inside dicts: "train/" */
    size_t prefix_length[PAIRS_DEPTH + 1];
    int depth;
    size_t beyond; /* brackets that are open behind those of `depth` */
    size_t
        unread; /* the one of these from which on names would be those of another dict; 0: none */
};

static int is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int is_digit(char c) {
    return c >= '0' && c <= '9';
}

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static int is_quote(char c) {
    return c == '\'' || c == '"';
}

/* A comma inside "1,234,567" belongs to the number: three digits and no fourth stand behind it, and
 * in front of it no lone 0. */
static int groups_digits(const char *at, const char *start, const char *end) {
    if (at == start || !is_digit(at[-1]) || end - at < 4) return 0;
    if (at[-1] == '0' && (at - start == 1 || !(is_digit(at[-2]) || at[-2] == ','))) return 0;
    return is_digit(at[1]) && is_digit(at[2]) && is_digit(at[3]) &&
           (end - at == 4 || !is_digit(at[4]));
}

/* Tells whether the comma stands between two digits and groups none: in front of it is the first of
 * several numbers ("0.5,100"), or the whole part of one that a locale with decimal commas printed
 * ("2,5051"). Either way it is no number of its own. */
static int lists_digits(const char *at, const char *start, const char *end) {
    return at < end && *at == ',' && at > start && is_digit(at[-1]) && at + 1 < end &&
           is_digit(at[1]) && !groups_digits(at, start, end);
}

/* ---- names of steps ---- */

static char plain(char c) {
    return c == '_' || c == '-' ? ' ' : lower(c);
}

static int same_word(struct log_span a, const char *word) {
    if (a.length != strlen(word)) return 0;
    for (size_t i = 0; i < a.length; i++)
        if (plain(a.text[i]) != word[i]) return 0;
    return 1;
}

int pairs_same_step(struct log_span a, struct log_span b) {
    if (a.length != b.length) return 0;
    for (size_t i = 0; i < a.length; i++)
        if (plain(a.text[i]) != plain(b.text[i])) return 0;
    return 1;
}

static struct log_span last_word(struct log_span *before) {
    *before = log_span_trim(*before);
    struct log_span word = {before->text + before->length, 0};
    while (before->length > 0 && word.text[-1] != ' ' && word.text[-1] != '\t')
        word.text--, word.length++, before->length--;
    return word;
}

static int is_one_of(struct log_span word, const char *const *words) {
    for (; *words != NULL; words++)
        if (same_word(word, *words)) return 1;
    return 0;
}

/* Says whether a word in front of "step" leaves it the count of updates: "global step 5" and "INFO
 * step 5" do, "per step", "micro step" and "eval step" do not. */
static int may_stand_before(struct log_span word) {
    static const char *const kin[] = {"global",  "training", "train",    "optimizer", "completed",
                                      "current", "at",       "finished", NULL};
    int capital = 1;
    for (size_t i = 0; i < word.length; i++) {
        if (!is_letter(word.text[i])) return 1;
        capital &= word.text[i] == lower(word.text[i]) ? 0 : 1;
    }
    return word.length == 0 || capital || is_one_of(word, kin);
}

/* If the name ends in one that counts updates, sets *out to that part ("SUCCESS Step" -> "Step",
 * "train/global_step" -> itself) and returns 1. */
static int step_of(struct log_span name, struct log_span *out) {
    static const char *const whole[] = {
        "step",       "iter",        "iteration",   "global step",    "training step",
        "train step", "num updates", "update",      "train/step",     "train/global step",
        "it",         "update step", "global iter", "optimizer step", "trainer/global step",
        "train iter", NULL};
    static const char *const kin[] = {"global", "training", "train", "optimizer", NULL};
    struct log_span before = name, word = last_word(&before);
    if (!is_one_of(word, whole)) return 0;
    struct log_span ahead = before, previous = last_word(&ahead);
    *out = word;
    if (!may_stand_before(previous)) return 0;
    if (is_one_of(previous, kin))
        *out = (struct log_span){previous.text, (size_t)(word.text + word.length - previous.text)};
    return 1;
}

int pairs_is_step(struct log_span name) {
    struct log_span step;
    return step_of(name, &step) && step.length == name.length;
}

/* Says whether a name that is no step counts something all the same: "g_step", "critic-step",
 * "micro step"; but not "tokens per step", "ms/step", "max_step". */
static int is_other_count(struct log_span name) {
    static const char *const ends[] = {"step", "iter", "iteration", NULL};
    static const char *const others[] = {"per", "max", "total", "num", "last", NULL};
    struct log_span word = {name.text + name.length, 0}, before;
    while (word.length < name.length && is_letter(word.text[-1]))
        word.text--, word.length++;
    if (!is_one_of(word, ends) || word.length == name.length) return 0;
    if (word.text[-1] == '/') return 0;
    before = (struct log_span){name.text, name.length - word.length - 1};
    struct log_span last = {before.text + before.length, 0};
    while (last.length < before.length && is_letter(last.text[-1]))
        last.text--, last.length++;
    return !is_one_of(last, others);
}

/* ---- what was found ---- */

static struct log_span prefixed(struct walk *w, struct log_span name) {
    const size_t before = w->prefix_length[w->depth];
    struct pairs *out = w->out;
    if (before == 0) return name;
    if (before + name.length > PAIRS_NAMES - out->used) return (struct log_span){NULL, 0};
    char *kept = out->names + out->used;
    memcpy(kept, w->prefix, before);
    memcpy(kept + before, name.text, name.length);
    out->used += before + name.length;
    return (struct log_span){kept, before + name.length};
}

/* A name holds a letter, and is no place in a source ("model.py:500 - step 0"). */
static int is_name(struct log_span name) {
    int letters = 0;
    for (size_t i = 0; i < name.length; i++)
        letters |= is_letter(name.text[i]) || (unsigned char)name.text[i] >= 0x80;
    return letters && name.length <= 128 && !log_span_ends(name, ".py");
}

static void add_step(struct pairs *out, struct log_span name, int64_t step, uint64_t total,
                     int other) {
    if (out->step_count < PAIRS_STEPS)
        out->steps[out->step_count++] = (struct step_pair){name, step, total, other};
}

/* Reads "12" or "1,500". */
static int read_grouped(struct log_span *text, int64_t *out) {
    const char *const start = text->text;
    if (!log_span_integer(text, out)) return 0;
    while (*out > 0 && *out < (int64_t)1 << 44 && text->length > 0 && text->text[0] == ',' &&
           groups_digits(text->text, start, text->text + text->length)) {
        int64_t group;
        text->text++;
        text->length--;
        if (!log_span_integer(text, &group)) return 0;
        *out = 1000 * *out + group;
    }
    return 1;
}

/* Reads "12" or "12/340" or "00012/00340" or "1,500/10,000" or "12.000". */
static int read_count(struct log_span text, int64_t *step, uint64_t *total) {
    int64_t all = 0;
    if (!read_grouped(&text, step)) return 0;
    if (log_span_take(&text, ".")) {
        if (text.length == 0) return 0;
        while (text.length > 0 && text.text[0] == '0')
            text.text++, text.length--;
        *total = 0;
        return text.length == 0;
    }
    if (text.length > 0 && !log_span_take(&text, "/")) return 0;
    log_span_blanks(&text);
    if (text.length > 0 && !read_grouped(&text, &all)) return 0;
    *total = (uint64_t)all;
    return text.length == 0;
}

/* Takes words without a letter off the front: "100 / 3000 loss" is "loss". */
static struct log_span without_numbers(struct log_span name) {
    struct log_span rest = name;
    for (;;) {
        const struct log_span word = log_span_word(&rest);
        if (word.length == 0) return name;
        if (is_name(word))
            return (struct log_span){word.text, name.length - (size_t)(word.text - name.text)};
    }
}

/* Keeps the first value of the line that may have a decimal comma: "2,5051" at `at`, two runs of
 * digits and nothing else, under the name of a loss, a rate or the like. */
static void note_comma(struct walk *w, struct log_span name, const char *at) {
    const struct log_known *known = log_known_name(name.text, name.length);
    const char *end = at + (at < w->end && *at == '-');
    size_t commas = 0;
    if (known == NULL || log_name_counts(known->name) || w->out->comma.name.length > 0) return;
    while (end < w->end && (is_digit(*end) || *end == ','))
        commas += *end++ == ',';
    const int more = end < w->end && (is_letter(*end) || *end == '.' || *end == '/');
    if (commas == 1 && !more) w->out->comma = (struct pair){name, {at, (size_t)(end - at)}, 0};
}

static void add(struct walk *w, struct log_span name, struct log_span value, int in_dict) {
    struct pairs *out = w->out;
    struct log_span step_name;
    int64_t step;
    uint64_t total;
    if (w->unread > 0) return;
    const int counts = step_of(name, &step_name);
    if ((counts || is_other_count(name)) && read_count(value, &step, &total)) {
        add_step(out, counts ? step_name : name, step, total, !counts);
        return;
    }
    if (read_count(value, &step, &total) && total > 0 && out->count_count < PAIRS_STEPS)
        out->counts[out->count_count++] = (struct step_pair){without_numbers(name), step, total, 1};
    if (value.length > 1 && value.text[value.length - 1] == '%') value.length--;
    if (!in_dict) name = without_numbers(name);
    if (!is_name(name) || !log_span_is_number(value)) return;
    name = prefixed(w, name);
    out->cut |= out->count == PAIRS_MAX || name.length == 0;
    if (!out->cut) out->pair[out->count++] = (struct pair){name, value, in_dict};
}

/* ---- counts in brackets ---- */

/* Reads "[12/340]" or "[12]" behind the name of a count: "Step [1/16], Loss: 2.5", "Iter [50/900]".
 * Of two brackets in a row the first is an epoch or a rank, so neither counts updates. Returns what
 * stands behind the bracket; NULL: it holds no count. */
static const char *read_bracketed(struct walk *w, struct log_span name, const char *bracket) {
    struct pairs *out = w->out;
    struct log_span step_name, inside = {bracket + 1, (size_t)(w->end - bracket) - 1};
    int64_t step;
    uint64_t total = 0;
    if (inside.length > COUNT_MOST) inside.length = COUNT_MOST;
    const char *close = (const char *)memchr(inside.text, ']', inside.length);
    if (close == NULL || name.length == 0 || w->unread > 0) return NULL;
    inside.length = (size_t)(close - inside.text);
    const int counts = step_of(name, &step_name);
    if ((close + 1 < w->end && close[1] == '[') ||
        !read_count(log_span_trim(inside), &step, &total))
        return NULL;
    if (counts || is_other_count(name))
        add_step(out, counts ? step_name : name, step, total, !counts);
    else if (total > 0 && is_name(name) && out->count_count < PAIRS_STEPS)
        out->counts[out->count_count++] = (struct step_pair){without_numbers(name), step, total, 1};
    return close + 1;
}

/* ---- fields without a sign ---- */

/* Of "20/    3402" the second word belongs to the first. */
static struct log_span with_total(struct log_span word, struct log_span *rest) {
    struct log_span after = *rest;
    const struct log_span next = log_span_word(&after);
    if (!log_span_ends(word, "/") || next.length == 0 || !is_digit(next.text[0])) return word;
    *rest = after;
    return (struct log_span){word.text, (size_t)(next.text + next.length - word.text)};
}

/* Reads "iter 12" or "step 12 loss 2.5" in a field that has no sign. Prose that does not end in a
 * number gives nothing but its step. */
static void read_words(struct walk *w, struct log_span field) {
    const size_t before = w->out->count;
    struct log_span rest = field, name = {NULL, 0};
    int number = 0, dirty = w->dirty;
    for (;;) {
        struct log_span word = log_span_word(&rest);
        int64_t step;
        uint64_t total;
        if (word.length == 0) break;
        number = is_digit(word.text[0]) || word.text[0] == '-' || log_span_is_number(word);
        if (!number) {
            if (name.text == NULL) name.text = word.text;
            name.length = (size_t)(word.text + word.length - name.text);
            continue;
        }
        struct log_span step_name;
        struct step_pair *last =
            w->out->step_count == 0 ? NULL : &w->out->steps[w->out->step_count - 1];
        const int is_total = name.text != NULL && log_span_is(name, "of") && last != NULL &&
                             read_count(word, &step, &total);
        if (is_total) last->total = (uint64_t)step; /* "step 3 of 10" */
        const int counts = name.text != NULL && step_of(name, &step_name);
        word = with_total(word, &rest);
        const int listed = w->listed && rest.length == 0;
        if (name.text != NULL && listed) note_comma(w, without_numbers(name), word.text);
        if (name.text != NULL && !is_total && !listed &&
            (counts ? read_count(word, &step, &total) : !dirty))
            add(w, name, word, 0);
        dirty = 0;
        name = (struct log_span){NULL, 0};
    }
    if (!number) w->out->count = before;
}

static struct log_span field_of(const struct walk *w) {
    return log_span_trim((struct log_span){w->field, (size_t)(w->at - w->field)});
}

static void end_field(struct walk *w) {
    const struct log_span field = field_of(w);
    if (field.length > 0) read_words(w, field);
}

static void begin_field(struct walk *w, const char *at, int dirty) {
    w->at = w->field = at;
    w->dirty = dirty;
    w->attached = 0;
    w->blank = 1;
}

/* ---- fields with a sign ---- */

struct log_span pairs_argument(struct log_span value) {
    struct log_span rest = value;
    log_span_until(&rest, '(');
    if (rest.length == 0 || value.text[value.length - 1] != ')') return value;
    rest.length--;
    return log_span_trim(log_span_until(&rest, ','));
}

static struct log_span read_token(const char *at, const char *end) {
    struct log_span token = {at, 0};
    int inside = 0;
    if ((size_t)(end - at) > TOKEN_MOST) end = at + TOKEN_MOST; /* no number is so long */
    for (; at < end; at++) {
        const char c = *at;
        if (c == '(' && at > token.text) inside++;
        if (inside == 0 && (c == ' ' || c == '\t' || c == '|' || c == ';' || c == '}' || c == ')' ||
                            c == ']' || is_quote(c)))
            break;
        if (inside == 0 && c == ',' && !groups_digits(at, token.text, end)) break;
        if (c == ')') inside--;
    }
    token.length = (size_t)(at - token.text);
    if (log_span_ends(token, ":")) token.length--; /* "Loss: 2.5:  10%|#2  |" */
    return token;
}

/* Returns what stands behind a bracket's end. A bracket that is not closed soon is none: seeking
 * the end of each in a line of nothing else would take the square of its length. */
static const char *behind(const char *at, const char *end, char open, char close) {
    const char *start = at;
    int depth = 0;
    if ((size_t)(end - at) > LIST_MOST) end = at + LIST_MOST;
    for (; at < end; at++) {
        depth += *at == open;
        if (*at == close && --depth == 0) return at + 1;
    }
    return start + 1;
}

/* Enters a dict that is the value of a name. What lies deeper than PAIRS_DEPTH, or has a name that
 * no longer fits, is left out: under a shorter name it would pass for another number. */
static void enter(struct walk *w, struct log_span name, int in_dict) {
    const size_t before = w->prefix_length[w->depth];
    const int fits = !in_dict || before + name.length + 1 <= sizeof w->prefix;
    if (w->depth == PAIRS_DEPTH || w->beyond > 0 || !fits) {
        w->beyond++;
        if (w->unread == 0 && in_dict) w->unread = w->beyond;
        return;
    }
    if (in_dict) {
        memcpy(w->prefix + before, name.text, name.length);
        w->prefix[before + name.length] = '/';
    }
    w->prefix_length[++w->depth] = in_dict ? before + name.length + 1 : before;
}

/* Reads the value behind a sign and stands behind it. */
static void read_value(struct walk *w, struct log_span name, int in_dict, const char *sign) {
    const char *at = sign + 1;
    while (at < w->end && (*at == ' ' || *at == '\t'))
        at++;
    if (at == w->end) {
        begin_field(w, at, 0);
    } else if (*at == '{') {
        enter(w, name, in_dict);
        begin_field(w, at + 1, 0);
    } else if (*at == '[') {
        const char *const counted = in_dict ? NULL : read_bracketed(w, name, at);
        begin_field(w, counted != NULL ? counted : behind(at, w->end, '[', ']'), 0);
    } else if (is_quote(*at)) {
        const char *close = (const char *)memchr(at + 1, *at, (size_t)(w->end - at - 1));
        if (close != NULL) add(w, name, (struct log_span){at + 1, (size_t)(close - at - 1)}, 0);
        begin_field(w, close == NULL ? w->end : close + 1, 0);
    } else {
        const struct log_span token = read_token(at, w->end);
        const struct log_span value = pairs_argument(token);
        const int taken = token.length > 0 && (is_digit(value.text[0]) || value.text[0] == '-' ||
                                               log_span_is_number(value));
        const int listed = lists_digits(token.text + token.length, token.text, w->end);
        if (taken && listed && !in_dict) note_comma(w, without_numbers(name), token.text);
        if (taken && !listed) add(w, name, value, in_dict);
        begin_field(w, taken ? token.text + token.length : at, !taken);
    }
}

static void end_name(struct walk *w) {
    const char *sign = w->at;
    struct log_span name = log_span_trim((struct log_span){w->field, (size_t)(sign - w->field)});
    struct log_span step, before = name;
    const struct log_span word = last_word(&before);
    if (word.length > 0 &&
        is_digit(word.text[0])) { /* "iter 12: loss 2.5", but not "I0219 19:34" */
        const size_t count = w->out->count;
        read_words(w, name);
        w->out->count = count;
        begin_field(w, sign + 1, 0);
        return;
    }
    if (w->dirty && !step_of(name, &step)) name = word;
    read_value(w, name, 0, sign);
}

/* Reads a quoted name up to its sign, or moves behind the string. */
static void read_quoted(struct walk *w) {
    const char *start = w->at + 1;
    const char *close = (const char *)memchr(start, *w->at, (size_t)(w->end - start));
    if (close == NULL) {
        w->blank = 0;
        w->at++;
        return;
    }
    const char *sign = close + 1;
    while (sign < w->end && *sign == ' ')
        sign++;
    if (sign < w->end && *sign == ':')
        read_value(w, (struct log_span){start, (size_t)(close - start)}, 1, sign);
    else
        begin_field(w, close + 1, 1);
}

/* ---- the line ---- */

/* Says whether the comma stands in a number of three digits at a time that is a word of its own:
 * "tokens 28,590", but not "loss 0.5,100". */
static int is_in_number(const struct walk *w, const char *start) {
    const char *first = w->at;
    if (!groups_digits(w->at, start, w->end)) return 0;
    while (first > start && (is_digit(first[-1]) || first[-1] == ','))
        first--;
    return first == start || first[-1] == ' ' || first[-1] == '\t';
}

static int is_blank_before(const struct walk *w, const char *start) {
    return w->at == start || w->at[-1] == ' ' || w->at[-1] == '\t';
}

static int is_mark(const struct walk *w, const char *start) {
    const char c = *w->at;
    if (c == '-') return is_blank_before(w, start) && w->at + 1 < w->end && w->at[1] == ' ';
    if (c == '(') return is_blank_before(w, start);
    if (c == ')') return w->attached == 0;
    if (c == ',') return !is_in_number(w, start);
    return c == '|' || c == ';' || c == '{' || c == '}' || c == '[' || c == ']' || c == '\t';
}

static void read_mark(struct walk *w) {
    const char c = *w->at;
    w->listed = c == ',' && w->at > w->field && is_digit(w->at[-1]) && w->at + 1 < w->end &&
                is_digit(w->at[1]);
    const char *const counted = c == '[' ? read_bracketed(w, field_of(w), w->at) : NULL;
    end_field(w);
    w->listed = 0;
    if (counted != NULL) {
        begin_field(w, counted, 0);
        return;
    }
    if (c == '{' && (w->depth == PAIRS_DEPTH || w->beyond > 0)) {
        w->beyond++;
    } else if (c == '{') {
        w->prefix_length[w->depth + 1] = w->prefix_length[w->depth];
        w->depth++;
    } else if (c == '}' && w->beyond > 0) {
        if (w->unread == w->beyond) w->unread = 0;
        w->beyond--;
    } else if (c == '}' && w->depth > 0) {
        w->depth--;
    }
    begin_field(w, w->at + 1, 0);
}

/* Reads the count that tqdm_loggable prints, by tqdm's format_sizeof: three digits of any number,
 * so "1.00it", "47.0it" and "640it" are whole and "1.25kit" is rounded. Returns 0 when it is none.
 */
static int read_sized(struct log_span *rest, int64_t *count, int *rounded) {
    if (!log_span_integer(rest, count)) return 0;
    if (log_span_take(rest, "."))
        while (rest->length > 0 && is_digit(rest->text[0]))
            *rounded |= rest->text[0] != '0', rest->text++, rest->length--;
    if (rest->length > 0 && rest->text[0] != 'i') *rounded = 1; /* k, M, G */
    return 1;
}

/* Reads the count of a progress bar: tqdm's " 12%|#2   | 12/100 [", and the line that
 * tqdm_loggable prints instead, "Progress on:train 12.0it/100.0it rate:..". A count that is rounded
 * counts nothing: *rounded is 1 then. */
static void read_bar(struct log_span line, struct step_pair *out, int *rounded) {
    static const struct log_span name = {PAIRS_BAR, sizeof PAIRS_BAR - 1};
    struct log_span rest = log_span_after(line, "%|");
    int64_t step, total;
    *out = (struct step_pair){{NULL, 0}, 0, 0, 0};
    *rounded = 0;
    if (rest.text != NULL) {
        log_span_until(&rest, '|');
        log_span_blanks(&rest);
        if (log_span_integer(&rest, &step) && log_span_take(&rest, "/") &&
            log_span_integer(&rest, &total) && log_span_starts(rest, " ["))
            *out = (struct step_pair){name, step, (uint64_t)total, 0};
        return;
    }
    rest = log_span_after(line, "Progress on:");
    if (rest.text == NULL) return;
    int rounded_total = 0;
    log_span_word(&rest);
    log_span_blanks(&rest);
    if (!read_sized(&rest, &step, rounded) || *rounded || !log_span_take(&rest, "it/")) return;
    if (!read_sized(&rest, &total, &rounded_total) || rounded_total) total = 0;
    *out = (struct step_pair){name, step, (uint64_t)total, 0};
}

/* Finds "Epoch: 1 [640/60000 (1%)]" or "Epoch: [0][10/5005]". */
int pairs_part_of_epoch(struct log_span line, struct log_span *out) {
    struct log_span rest = line;
    for (;;) {
        const struct log_span small = log_span_after(rest, "poch");
        int64_t step, total;
        if (small.text == NULL) return 0;
        rest = small;
        const int is_word = small.text - line.text >= 5 && lower(small.text[-5]) == 'e';
        struct log_span at = small;
        while (is_word && at.length > 0 && !is_letter(at.text[0]) &&
               at.text - small.text < COUNT_MOST) {
            struct log_span count = {at.text + 1, at.length - 1};
            const int is_bracket = at.text[0] == '[';
            at = count;
            if (!is_bracket) continue;
            log_span_blanks(&count);
            if (!log_span_integer(&count, &step) || !log_span_take(&count, "/") ||
                !log_span_integer(&count, &total))
                continue;
            const int shares = log_span_starts(count, " (");
            while (count.length > 0 && count.text[0] != ']')
                count.text++, count.length--;
            if (count.length == 0) return 0;
            const struct log_span found = {small.text - 5,
                                           (size_t)(count.text + 1 - small.text) + 5};
            const struct log_span before =
                log_span_trim((struct log_span){small.text, (size_t)(at.text - 1 - small.text)});
            /* "Epoch [1/3]" is the count of the epochs themselves. */
            if (before.length == 0 || log_span_is(before, ":")) continue;
            *out = found;
            return shares ? PAIRS_SAMPLES : PAIRS_BATCHES;
        }
    }
}

int pairs_bar(struct log_span line, int64_t *out_step, uint64_t *out_total) {
    struct step_pair bar;
    int rounded;
    read_bar(line, &bar, &rounded);
    *out_step = bar.step;
    *out_total = bar.total;
    return bar.name.length > 0;
}

/* A line that begins with a whole number and a bar counts updates, where nothing else in it does:
 * "490 | loss 5.7543 | lr 4.9e-05" (llama2.c). */
static void read_first_count(struct log_span line, struct pairs *out) {
    static const struct log_span name = {"step", 4};
    int64_t step;
    log_span_blanks(&line);
    if (out->step_count > 0 || !log_span_integer(&line, &step)) return;
    log_span_blanks(&line);
    if (log_span_starts(line, "| ")) add_step(out, name, step, 0, 0);
}

void pairs_read(struct log_span line, struct pairs *out) {
    struct walk w = {.end = line.text + line.length, .out = out};
    out->count = out->step_count = out->count_count = out->used = 0;
    out->comma = (struct pair){{NULL, 0}, {NULL, 0}, 0};
    out->cut = 0;
    read_bar(line, &out->bar, &out->bar_rounded);
    begin_field(&w, line.text, 0);
    while (w.at < w.end) {
        if (is_quote(*w.at) && w.blank) {
            read_quoted(&w);
        } else if (is_mark(&w, line.text)) {
            read_mark(&w);
        } else if (*w.at == ':' || *w.at == '=') {
            end_name(&w);
        } else {
            w.attached += *w.at == '(';
            w.attached -= *w.at == ')';
            w.blank &= *w.at == ' ' || *w.at == '\t';
            w.at++;
        }
    }
    end_field(&w);
    read_first_count(line, out);
}
