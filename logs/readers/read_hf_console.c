/* SPDX-License-Identifier: Apache-2.0
 * The dicts that the Hugging Face Trainer (and TRL's on it) prints among progress bars: {'loss':
 * 10.5949, 'grad_norm': 188.29, 'learning_rate': 4.58e-05, 'epoch': 0.25}.
 *
 * Source of the shape: transformers/trainer_callback.py::ProgressCallback.on_log. Version 4 prints
 * Python's repr of a loss rounded to 4 decimals and an epoch rounded to 2. Version 5 prints strings
 * with four significant digits and drops zeros at the end ('2e-05' is 2.000e-05). No step is
 * printed in a dict, but by ms-swift ('global_step/max_steps': '12/340'). Dicts of an evaluation,
 * and the summary at the end (train_runtime), are no rows. */
#include "base/macro.h"
#include "logs/pairs.h"

#include <inttypes.h>
#include <string.h>

#define DIGITS_V5 4

static const struct log_rule rules_v5[] = {
    /* EXACT, because log_build_digits gives the quanta. */
    {"loss", LOG_LOSS, LOG_PRINT_EXACT, 0, 0, 1},
    LOG_RULES_END(LOG_PRINT_EXACT),
};
static const struct log_rule rules_v4[] = {
    {.source = "loss", .name = LOG_LOSS, .print = LOG_PRINT_DECIMALS, .decimals = 4, .windowed = 1},
    {.source = "epoch", .name = LOG_EPOCH, .print = LOG_PRINT_DECIMALS, .decimals = 2},
    LOG_RULES_END(LOG_PRINT_JSON),
};
/* Where some number has 15 digits, nothing but loss and epoch was rounded, so a short learning rate
 * is the whole number. */
static const struct log_rule rules_v4_raw[] = {
    {.source = "loss", .name = LOG_LOSS, .print = LOG_PRINT_DECIMALS, .decimals = 4, .windowed = 1},
    {.source = "epoch", .name = LOG_EPOCH, .print = LOG_PRINT_DECIMALS, .decimals = 2},
    {.source = "learning_rate", .name = LOG_LR_LOGGED, .print = LOG_PRINT_EXACT},
    LOG_RULES_END(LOG_PRINT_JSON),
};

/* ---- Python literals ---- */

struct item {
    /* value: what stands inside the quotes or brackets, or the bare word. */
    struct log_span key, value;
    int quoted;
};

/* Some forums and chats make curly quotes of straight ones: the first two bytes of those. */
#define CURLY "\xe2\x80"

static int is_quote(char c) {
    return c == '\'' || c == '"';
}

/* Returns the bytes of the quote at the start; 0: none stands there. */
static size_t quote_width(struct log_span text) {
    if (text.length > 0 && is_quote(text.text[0])) return 1;
    if (!log_span_starts(text, CURLY) || text.length < 3) return 0;
    const unsigned char last = (unsigned char)text.text[2];
    return last == 0x98 || last == 0x99 || last == 0x9c || last == 0x9d ? 3 : 0;
}

/* Reads a string whose quote stands at the start and moves behind it; *out is its inside. Returns 0
 * when it does not end. Any curly quote ends a string that one begins. */
static int read_string(struct log_span *rest, struct log_span *out) {
    const size_t width = quote_width(*rest);
    const char quote = rest->text[0];
    for (size_t i = width; i < rest->length; i++) {
        const struct log_span here = {rest->text + i, rest->length - i};
        if (here.text[0] == '\\') {
            i++;
        } else if (here.text[0] == quote && quote_width(here) == width) {
            *out = (struct log_span){rest->text + width, i - width};
            rest->text += i + width;
            rest->length -= i + width;
            return 1;
        }
    }
    return 0;
}

/* Reads a bare word, a call or a bracket, up to a comma or brace that is outside of all brackets.
 */
static int read_bare(struct log_span *rest, struct log_span *out) {
    struct log_span inside;
    const char *start = rest->text;
    size_t depth = 0;
    while (rest->length > 0) {
        const char c = rest->text[0];
        if (depth == 0 && (c == ',' || c == '}')) break;
        if (is_quote(c)) {
            if (!read_string(rest, &inside)) return 0;
            continue;
        }
        depth += c == '(' || c == '[' || c == '{';
        if (c == ')' || c == ']' || c == '}') {
            if (depth == 0) return 0;
            depth--;
        }
        rest->text++, rest->length--;
    }
    *out = log_span_trim((struct log_span){start, (size_t)(rest->text - start)});
    return rest->length > 0;
}

/* Reads the next pair of a dict. Returns 1 for a pair, 0 at the end of the dict, -1 when it is no
 * dict or a cut one. *rest stands behind "{" at first. */
static int next_pair(struct log_span *rest, struct item *out) {
    log_span_blanks(rest);
    log_span_take(rest, ",");
    log_span_blanks(rest);
    if (rest->length == 0) return -1;
    if (log_span_take(rest, "}")) return 0;
    if (quote_width(*rest) == 0 || !read_string(rest, &out->key)) return -1;
    if (!log_span_take(rest, ":")) return -1;
    log_span_blanks(rest);
    out->quoted = quote_width(*rest) > 0;
    if (out->quoted) return read_string(rest, &out->value) ? 1 : -1;
    if (!read_bare(rest, &out->value)) return -1;
    out->value = pairs_argument(out->value);
    return 1;
}

/* ---- dicts ---- */

/* Numbers by which a dict is known: loss, LR, epoch. */
#define SAID 3

struct dict {
    struct log_span pairs; /* what stands behind the opening brace */
    int has_loss, has_rate, has_epoch, is_other, quoted_loss, raw;
    int own_step;     /* 1: it says its step, as the Trainer's dicts do only beside an epoch */
    int behind_count; /* 1: "3: " stands in front of it, as behind the step that others print */
    int64_t step;
    uint64_t max_steps; /* 0: the dict does not say */
    int by_callback;    /* 1: a logger's line in the name of LLaMA-Factory's callbacks holds it */
    struct log_number said[SAID]; /* digits 0: it does not say this number */
};

/* Keeps the numbers by which two dicts are known to be of one update. */
static void keep_said(const struct item *pair, struct dict *dict) {
    static const char *const names[SAID] = {"loss", "learning_rate", "epoch"};
    for (size_t i = 0; i < SAID; i++)
        if (log_span_is(pair->key, names[i]) &&
            !log_number_read(pair->value.text, pair->value.length, &dict->said[i]))
            dict->said[i].digits = 0;
}

/* Tells whether the same update was printed twice: LLaMA-Factory's callback logs the loss, the LR
 * and the epoch of a dict that the Trainer prints as well, with fewer digits. */
static int is_again(const struct dict *a, const struct dict *b) {
    if (a->by_callback == b->by_callback || a->step != b->step) return 0;
    for (size_t i = 0; i < SAID; i++) {
        const struct log_number *x = &a->said[i], *y = &b->said[i];
        const double apart = x->value > y->value ? x->value - y->value : y->value - x->value;
        const double room = 0.5 * (x->quantum > y->quantum ? x->quantum : y->quantum);
        const int same = x->value != x->value && y->value != y->value;
        if (x->digits == 0 || y->digits == 0) return 0;
        if (!same && !(apart <= 1.001 * room)) return 0;
    }
    return 1;
}

static int is_raw(const struct item *pair) {
    struct log_number number;
    return !pair->quoted && log_number_read(pair->value.text, pair->value.length, &number) &&
           number.digits >= 15 && memchr(pair->value.text, '.', pair->value.length) != NULL;
}

/* Reads "12/340", as ms-swift writes it. */
static void look_at_progress(struct log_span value, struct dict *dict) {
    int64_t step, total;
    if (!log_span_integer(&value, &step) || !log_span_take(&value, "/")) return;
    if (!log_span_integer(&value, &total) || value.length > 0) return;
    dict->step = step;
    dict->max_steps = (uint64_t)total;
}

static void look_at(const struct item *pair, struct dict *dict) {
    struct log_span value = pair->value;
    struct log_number number;
    const int is_loss = log_span_is(pair->key, "loss");
    keep_said(pair, dict);
    /* as a word ('sum', 'auto') either is an option of a configuration */
    if ((is_loss || log_span_is(pair->key, "learning_rate")) && pair->quoted &&
        !log_number_read(value.text, value.length, &number))
        return;
    if (is_loss) {
        dict->has_loss = 1;
        dict->quoted_loss = pair->quoted;
    } else if (log_span_is(pair->key, "learning_rate")) {
        dict->has_rate = 1;
        dict->quoted_loss |= !dict->has_loss && pair->quoted;
    } else if (log_span_starts(pair->key, "eval_") || log_span_is(pair->key, "train_runtime")) {
        dict->is_other = 1;
    } else if (log_span_is(pair->key, "step") || log_span_is(pair->key, "global_step")) {
        dict->own_step = 1;
        if (!log_span_integer(&value, &dict->step) || value.length > 0) dict->step = INT64_MIN;
    } else if (log_span_is(pair->key, "global_step/max_steps")) {
        look_at_progress(value, dict);
    }
    dict->has_epoch |= log_span_is(pair->key, "epoch");
    if (!log_span_is(pair->key, "epoch")) dict->raw |= is_raw(pair);
}

/* Says whether the brace at `at` stands behind a digit and a colon. */
static int follows_count(const char *start, const char *at) {
    while (at > start && at[-1] == ' ')
        at--;
    return at > start + 1 && at[-1] == ':' && at[-2] >= '0' && at[-2] <= '9';
}

/* Moves behind the next brace that a quote follows, straight ones first. */
static int next_brace(struct log_span *rest) {
    static const char *const openings[] = {"{'", "{" CURLY};
    for (size_t i = 0; i < COUNT_OF(openings); i++) {
        const struct log_span behind = log_span_after(*rest, openings[i]);
        if (behind.text == NULL) continue;
        const size_t back = strlen(openings[i]) - 1;
        *rest = (struct log_span){behind.text - back, behind.length + back};
        return 1;
    }
    return 0;
}

/* Finds the next dict with quoted keys and moves *rest behind it. Returns 0 when there is none, -1
 * when one does not end. */
static int next_dict(struct log_span *rest, struct dict *out) {
    const char *start = rest->text;
    for (;;) {
        struct item pair;
        int more;
        if (!next_brace(rest)) return 0;
        *out = (struct dict){.pairs = *rest, .step = INT64_MIN};
        out->behind_count = follows_count(start, rest->text - 1);
        out->by_callback =
            log_span_after((struct log_span){start, (size_t)(rest->text - start)}, "callbacks")
                .text != NULL;
        while ((more = next_pair(rest, &pair)) > 0)
            look_at(&pair, out);
        if (more == 0) return 1;
        if (out->has_loss || out->has_rate) return -1;
    }
}

static int is_row(const struct dict *dict) {
    return !dict->is_other && (dict->has_loss || dict->has_rate);
}

/* Tells whether another program printed the dict: behind "step 3: ", or with a step and no epoch.
 * Its loss is no mean of the Trainer's. */
static int is_of_others(const struct dict *dict) {
    return dict->behind_count || (dict->own_step && !dict->has_epoch);
}

/* The Trainer's rows say an epoch. */
static int claim_dict(const struct dict *dict) {
    if (!is_row(dict) || is_of_others(dict)) return 0;
    return dict->has_epoch || dict->has_rate ? 3 : 2;
}

static int claim_line(struct log_span line) {
    struct dict dict;
    while (next_dict(&line, &dict) > 0)
        if (claim_dict(&dict) > 0) return claim_dict(&dict);
    return 0;
}

static int claim(const struct log_source *source) {
    struct log_lines lines;
    struct log_line line;
    struct dict dict;
    int others = 0;
    log_lines_open_head(&lines, source);
    while (log_lines_next(&lines, &line))
        while (next_dict(&line.span, &dict) > 0) {
            if (claim_dict(&dict) == 3) return 3;
            others |= (dict.is_other && !is_of_others(&dict)) || claim_dict(&dict) > 0;
        }
    return others ? 2 : 0;
}

/* Looks for the first row that tells how the numbers were printed, to the end of the file: the rows
 * may stand behind a preamble of any length. */
static const struct log_rule *choose_rules(struct log_lines *lines,
                                           const struct log_source *source) {
    struct log_line line;
    struct dict dict;
    log_lines_open(lines, source, NULL);
    while (log_lines_next(lines, &line))
        while (next_dict(&line.span, &dict) > 0) {
            if (is_row(&dict) && dict.quoted_loss) return rules_v5;
            if (is_row(&dict) && dict.raw) return rules_v4_raw;
        }
    return rules_v4;
}

/* Puts the values of a dict into the row at hand. Of one that says an update again in a callback's
 * few digits only what the first one lacks is put. */
static enum status put_dict(struct log_build *build, const struct log_rule *rules,
                            const struct dict *dict, int again) {
    struct log_span rest = dict->pairs;
    struct item pair;
    while (next_pair(&rest, &pair) > 0) {
        struct log_number number;
        size_t column;
        struct dict known = {.step = 0};
        keep_said(&pair, &known);
        if (again && dict->by_callback &&
            (known.said[0].digits > 0 || known.said[1].digits > 0 || known.said[2].digits > 0))
            continue;
        if (!log_number_read(pair.value.text, pair.value.length, &number)) continue;
        TRY(log_build_column(build, pair.key.text, pair.key.length, rules, &column));
        if (pair.quoted)
            TRY(log_build_digits(build, column, pair.value.text, pair.value.length, DIGITS_V5));
        else
            TRY(log_build_text(build, column, pair.value.text, pair.value.length));
    }
    return STATUS_OK;
}

struct rows {
    size_t others, again;
    struct dict last; /* its texts may be gone; has_loss and has_rate 0: there is none, or the one
                         in front of it was said again */
};

/* Finds the next dict of a line that is a row, or says one again, and moves behind it. Returns 0
 * when there is none, -1 when a dict does not end. */
static int next_row(struct log_lines *lines, struct log_line *line, struct rows *rows,
                    struct dict *out, int *out_again) {
    int found;
    while ((found = next_dict(&line->span, out)) > 0) {
        rows->others += (size_t)out->is_other;
        if (!is_row(out) || !log_lines_take(lines, line)) continue;
        *out_again = is_row(&rows->last) && is_again(&rows->last, out);
        rows->again += (size_t)*out_again;
        rows->last = *out_again ? (struct dict){.step = INT64_MIN} : *out;
        return 1;
    }
    return found;
}

/* ---- progress bars ---- */

/* What the Trainer's progress bar says of each row. tqdm takes the bar away, prints the dict and
 * draws the bar again, and its count is that of updates (tqdm 4.70, std.py::tqdm.write and
 * external_write_mode; transformers/trainer_callback.py::ProgressCallback, whose bar counts
 * state.global_step to state.max_steps). The bar in front of a dict may be older. */
struct bars {
    int64_t *step;       /* (count) of each row; NULL: they are counted only */
    size_t count, taken; /* rows, and those of them that were read */
    size_t room;         /* steps that the list holds: the file may change while it is read */
    uint64_t total;
    int64_t last, apart; /* step of the row before, and updates from one to the next; 0: none yet,
                            -1: they differ */
    int wanted;          /* 1: no bar has come behind the row at hand */
    int bad;             /* 1: bars do not number the rows */
};

static void put_step(struct bars *bars, int64_t step) {
    const int64_t apart = step - bars->last;
    if (step <= bars->last) bars->bad = 1;
    if (bars->count > 1) bars->apart = bars->apart == 0 || bars->apart == apart ? apart : -1;
    if (bars->count <= bars->room) bars->step[bars->count - 1] = step;
    bars->last = step;
    bars->wanted = 0;
}

static void look_for_bar(struct bars *bars, struct log_span text) {
    int64_t step;
    uint64_t total;
    if (!bars->wanted || !pairs_bar(text, &step, &total)) return;
    bars->bad |= (bars->total != 0 && bars->total != total) || step < 1 || (uint64_t)step > total;
    bars->total = total;
    put_step(bars, step);
}

/* Reads the bars of all rows. A row at the end whose bar was cut off is as far from the one before
 * it as all others are. */
static void read_bars(const struct log_source *source, struct bars *bars) {
    struct log_lines lines;
    struct log_line line;
    struct rows rows = {.others = 0};
    struct dict dict;
    int again;
    bars->count = 0;
    bars->last = bars->apart = 0;
    bars->wanted = 0;
    log_lines_open(&lines, source, NULL);
    while (!bars->bad && log_lines_next(&lines, &line)) {
        const char *const brace = (const char *)memchr(line.span.text, '{', line.span.length);
        if (brace != NULL)
            look_for_bar(bars, (struct log_span){line.span.text, (size_t)(brace - line.span.text)});
        while (next_row(&lines, &line, &rows, &dict, &again) > 0) {
            bars->bad |= (bars->wanted && !again) || dict.step != INT64_MIN;
            if (again) continue;
            bars->wanted = 1;
            bars->count++;
        }
        look_for_bar(bars, line.span);
    }
    if (bars->wanted && bars->apart < 1) bars->bad = 1;
    if (bars->wanted && !bars->bad) put_step(bars, bars->last + bars->apart);
    if (bars->total == 0 || (uint64_t)bars->last > bars->total) bars->bad = 1;
}

/* Makes the list of the rows' steps, where bars say them. */
static enum status number_rows(const struct log_source *source, struct log_build *build,
                               struct bars *bars) {
    *bars = (struct bars){.count = 0};
    read_bars(source, bars);
    if (bars->bad) return STATUS_OK;
    TRY(arena_take(log_build_scratch(build), bars->count, sizeof *bars->step, "steps of a log",
                   &bars->step));
    bars->room = bars->count;
    read_bars(source, bars);
    log_build_max_steps(build, bars->total);
    return log_build_note(build, "update numbers and their total are those of the progress bar "
                                 "behind each row");
}

/* ---- rows ---- */

static enum status read_line(struct log_lines *lines, struct log_line line,
                             const struct log_rule *rules, const struct log_source *source,
                             struct log_build *build, struct rows *rows, struct bars *bars) {
    struct dict dict;
    int found, again;
    while ((found = next_row(lines, &line, rows, &dict, &again)) > 0) {
        const int numbered = bars->step != NULL && !again && bars->taken < bars->room;
        const int64_t step = numbered ? bars->step[bars->taken++] : dict.step;
        if (!again) TRY(log_build_row(build, step, line.number, source->part));
        log_build_max_steps(build, dict.max_steps);
        TRY(put_dict(build, rules, &dict, again));
    }
    if (found == 0) return STATUS_OK;
    return log_build_note(build, "line %" PRIu32 ": a dict does not end: left out", line.number);
}

static enum status read(const struct log_source *source, struct log_build *build) {
    struct log_lines lines;
    struct log_line line;
    struct rows rows = {.others = 0};
    struct bars bars;
    const struct log_rule *rules = choose_rules(&lines, source);
    TRY(number_rows(source, build, &bars));
    log_lines_open(&lines, source, build);
    while (log_lines_next(&lines, &line))
        TRY(read_line(&lines, line, rules, source, build, &rows, &bars));
    if (rows.others > 0)
        TRY(log_build_note(build, "left out as no rows: %zu of an evaluation or a summary",
                           rows.others));
    if (rows.again > 0)
        TRY(log_build_note(build,
                           "updates that LLaMA-Factory's callback prints beside the Trainer, which "
                           "count once: %zu",
                           rows.again));
    lines.open_row = 0; /* a dict counts only together with its closing brace, so none is cut */
    return log_lines_close(&lines, build);
}

const struct log_reader log_reader_hf_console = {.step_base = 1,
                                                 .claim = claim,
                                                 .read = read,
                                                 .lines = 1,
                                                 .claim_line = claim_line,
                                                 .sign = "{'",
                                                 .shape =
                                                     "{'loss': VALUE, 'learning_rate': VALUE, ..}"};
