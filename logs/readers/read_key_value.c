/* SPDX-License-Identifier: Apache-2.0
 * Lines of names and numbers that say their update, whoever wrote them: "Step 3 | Loss: 12.25 | LR:
 * 1.00e-06", "iter 3: loss 10.99, time 12ms", "step 3: {'train/loss': 0.5}", "completed step: 3,
 * loss: 10.374", "[INFO] step=3 loss=2.5".
 *
 * It is the reader of last resort, so it guesses nothing: two counts in one line, two counts that
 * run against each other, or two values for one column of one update are errors that say how to
 * choose. Lines of one update that name different columns are one row. */
#include "logs/names.h"
#include "logs/pairs.h"
#include "logs/scan.h"

#include <inttypes.h>
#include <string.h>

/* So many falls of the step are resumes at most; more of them are writers whose lines alternate. */
#define FALLS_FREE 4
#define SHOWN 48

static const struct log_rule rules_text[] = {LOG_RULES_END(LOG_PRINT_TEXT)};

struct cell {
    size_t column;
    char text[SHOWN]; /* the number as printed, cut */
    size_t length;
};

struct state {
    struct log_build *build;
    const struct log_source *source;
    const char *wanted; /* what --map step= says, or NULL */
    struct pairs pairs;
    char key[PAIRS_NAMES]; /* name of the step of the row at hand */
    size_t key_length;
    int64_t step; /* INT64_MIN: no row yet */
    uint32_t line;
    struct cell cells[PAIRS_MAX]; /* of the row at hand */
    size_t cell_count;
    size_t rows, falls, bars, rounded, others, strangers, again, too_long, cut;
    /* Of lines that say an epoch and a step, both with a total ("Epoch [1/3], Step [7/16]"): */
    int64_t epoch, first_epoch; /* of the last such line and of the first; INT64_MIN: none */
    uint64_t epochs;            /* their total */
    uint64_t epoch_steps;       /* the total of the first one's step */
    int64_t epoch_step;         /* the step as printed by the last one */
    int counting;               /* enum counting */
    size_t stepless;            /* lines of values behind the first row that say no count at all */
    uint32_t first_stepless;
};

/* What the step of lines with an epoch counts, as a second epoch shows. */
enum counting { COUNTING_OPEN = 0, COUNTING_ON, COUNTING_ANEW };

/* ---- which count ---- */

static int is_global(struct log_span name) {
    /* fairseq's "update" is a part of an epoch, which 2.0 of two whole ones does not show */
    return log_span_is(name, "num_updates") || log_span_starts(name, "global") ||
           log_span_starts(name, "Global") || log_span_after(name, "/global").text != NULL;
}

static enum status ambiguous(const struct state *s, const struct step_pair *a,
                             const struct step_pair *b, uint32_t line) {
    char first[SHOWN], second[SHOWN];
    log_show(a->name.text, a->name.length, first, sizeof first);
    log_show(b->name.text, b->name.length, second, sizeof second);
    FAIL(STATUS_INPUT,
         "%s:%" PRIu32 ": expected one count of updates, got \"%s\" %" PRId64 " and \"%s\" %" PRId64
         "; say which it is: --map \"step=%s\" or --map \"step=%s\"",
         s->source->name, line, first, a->step, second, b->step, first, second);
}

/* Of two counts a global one is taken; otherwise they must agree. *out NULL: the line has none but
 * counts of who knows what. */
static enum status choose_step(struct state *s, uint32_t line, const struct step_pair **out) {
    const struct pairs *p = &s->pairs;
    *out = NULL;
    for (size_t i = 0; i < p->step_count; i++)
        if (!p->steps[i].other &&
            (*out == NULL || (is_global(p->steps[i].name) && !is_global((*out)->name))))
            *out = &p->steps[i];
    for (size_t i = 0; *out != NULL && i < p->step_count; i++) {
        const struct step_pair *other = &p->steps[i];
        const int yields = is_global((*out)->name) && (other->other || !is_global(other->name));
        if (other->step != (*out)->step && !yields) return ambiguous(s, *out, other, line);
    }
    return STATUS_OK;
}

/* Finds what --map step= names: a count, a progress bar, or any column of whole numbers. */
static int wanted_step(struct state *s, struct step_pair *out) {
    const struct log_span wanted = {s->wanted, strlen(s->wanted)};
    const struct pairs *p = &s->pairs;
    if (p->bar.name.length > 0 && log_span_is(wanted, PAIRS_BAR)) {
        *out = p->bar;
        return 1;
    }
    for (size_t i = 0; i < p->step_count; i++)
        if (pairs_same_step(p->steps[i].name, wanted)) {
            *out = p->steps[i];
            return 1;
        }
    for (size_t i = 0; i < p->count_count; i++)
        if (pairs_same_step(p->counts[i].name, wanted)) {
            *out = p->counts[i];
            return 1;
        }
    for (size_t i = 0; i < p->count; i++) {
        const struct log_span value = p->pair[i].value;
        if (!log_span_is(p->pair[i].name, s->wanted)) continue;
        out->name = p->pair[i].name;
        out->total = 0;
        if (scan_integer(value.text, value.length, &out->step)) return 1;
    }
    return 0;
}

/* Sets *out to the step of a line that is a row; name.length 0: it is none. */
static enum status step_of_line(struct state *s, uint32_t line, struct step_pair *out) {
    const struct pairs *p = &s->pairs;
    const struct step_pair *chosen;
    *out = (struct step_pair){{NULL, 0}, 0, 0, 0};
    if (p->count == 0) return STATUS_OK;
    if (s->wanted != NULL) {
        if (!wanted_step(s, out)) s->others += p->step_count > 0;
        s->rounded += out->name.length == 0 && p->bar_rounded != 0;
        return STATUS_OK;
    }
    TRY(choose_step(s, line, &chosen));
    if (chosen != NULL) *out = *chosen;
    if (chosen == NULL && p->step_count == 0 && p->bar.name.length == 0 && s->rows > 0 &&
        s->stepless++ == 0)
        s->first_stepless = line;
    s->strangers += chosen == NULL && p->step_count > 0;
    s->bars += chosen == NULL && p->bar.name.length > 0;
    return STATUS_OK;
}

/* ---- a step of an epoch ---- */

static const struct step_pair *epoch_of(const struct pairs *p, const struct step_pair *step) {
    static const struct log_span name = {"epoch", 5};
    for (size_t i = 0; i < p->count_count; i++)
        if (pairs_same_step(p->counts[i].name, name) && p->counts[i].name.text != step->name.text)
            return &p->counts[i];
    return NULL;
}

/* A step beside an epoch counts on over all epochs or begins anew in each, as in PyTorch's
 * tutorials. The first line of another epoch tells; up to there both readings are one, but for the
 * total, and so a log of one epoch says none. */
static enum status number_in_epochs(struct state *s, struct step_pair *step, uint32_t line) {
    const struct step_pair *const epoch = epoch_of(&s->pairs, step);
    if (epoch == NULL || step->total == 0 || is_global(step->name)) return STATUS_OK;
    const uint64_t steps = step->total;
    const int64_t printed = step->step;
    if (s->first_epoch == INT64_MIN) {
        s->first_epoch = epoch->step;
        s->epoch_steps = steps;
        s->epochs = epoch->total;
    } else if (s->counting == COUNTING_OPEN && epoch->step > s->epoch) {
        s->counting = printed > s->epoch_step ? COUNTING_ON : COUNTING_ANEW;
    }
    s->epoch = epoch->step;
    s->epoch_step = printed;
    if (s->counting == COUNTING_OPEN && epoch->total > 1) step->total = 0;
    if (s->counting != COUNTING_ANEW) return STATUS_OK;
    if (s->first_epoch > 1)
        FAIL(STATUS_INPUT,
             "%s:%" PRIu32 ": expected a log from its first epoch on, got one from epoch %" PRId64
             " whose steps begin anew in each: how many lie in front is not said",
             s->source->name, line, s->first_epoch);
    if (steps != s->epoch_steps || epoch->step < s->first_epoch ||
        epoch->step >= (int64_t)1 << 31 || steps >= (uint64_t)1 << 31 || printed > (int64_t)steps)
        FAIL(STATUS_INPUT,
             "%s:%" PRIu32 ": expected a step of %" PRIu64 " in every epoch, since the steps begin "
             "anew in each, got step %" PRId64 " of %" PRIu64 " in epoch %" PRId64,
             s->source->name, line, s->epoch_steps, printed, steps, epoch->step);
    step->step = (epoch->step - s->first_epoch) * (int64_t)steps + printed;
    step->total = epoch->total < (uint64_t)1 << 31 ? epoch->total * steps : 0;
    return STATUS_OK;
}

/* ---- rows ---- */

static enum status check_key(struct state *s, const struct step_pair *step, uint32_t line) {
    const struct log_span key = {s->key, s->key_length};
    struct step_pair before = {key, s->step, 0, 0};
    if (s->step != INT64_MIN && step->step < s->step && !pairs_same_step(key, step->name))
        return ambiguous(s, &before, step, line);
    return STATUS_OK;
}

static enum status begin_row(struct state *s, const struct step_pair *step, uint32_t line) {
    s->falls += s->step != INT64_MIN && step->step < s->step;
    s->rows++;
    s->step = step->step;
    s->line = line;
    s->cell_count = 0;
    s->key_length = step->name.length < sizeof s->key ? step->name.length : sizeof s->key;
    memcpy(s->key, step->name.text, s->key_length);
    log_build_max_steps(s->build, step->total);
    return log_build_row(s->build, step->step, line, s->source->part);
}

static const struct cell *cell_of(const struct state *s, size_t column) {
    for (size_t i = 0; i < s->cell_count; i++)
        if (s->cells[i].column == column) return &s->cells[i];
    return NULL;
}

static enum status put_pair(struct state *s, const struct pair *pair, uint32_t line) {
    size_t column;
    TRY(log_build_column(s->build, pair->name.text, pair->name.length,
                         pair->in_dict ? log_rules_json : rules_text, &column));
    if (column == LOG_COLUMN_IGNORED) return STATUS_OK;
    const struct cell *had = cell_of(s, column);
    const size_t length = pair->value.length < SHOWN ? pair->value.length : SHOWN - 1;
    if (had != NULL) {
        char name[SHOWN], value[SHOWN];
        s->again++;
        if (had->length == pair->value.length && memcmp(had->text, pair->value.text, length) == 0)
            return STATUS_OK;
        log_show(pair->name.text, pair->name.length, name, sizeof name);
        log_show(pair->value.text, length, value, sizeof value);
        FAIL(STATUS_INPUT,
             "%s:%" PRIu32 ": expected one \"%s\" for step %" PRId64 ", got %s, and %s in line "
             "%" PRIu32 "; where several ranks or processes write, keep the lines of one of them, "
             "and where the step counts something else, say --map step=NAME",
             s->source->name, line, name, s->step, value, had->text, s->line);
    }
    if (s->cell_count == PAIRS_MAX) return STATUS_OK;
    struct cell *cell = &s->cells[s->cell_count++];
    cell->column = column;
    cell->length = pair->value.length;
    memcpy(cell->text, pair->value.text, length);
    cell->text[length] = '\0';
    return log_build_text(s->build, column, pair->value.text, pair->value.length);
}

/* A locale with decimal commas prints 1.904 as "1,904", which reads as a thousand and more, so a
 * log in which a loss, a norm or an LR shows such a comma is not read at all. */
static enum status check_comma(const struct state *s, uint32_t line) {
    const struct pair *pair = &s->pairs.comma;
    char name[SHOWN], value[SHOWN];
    if (pair->name.length == 0) return STATUS_OK;
    log_show(pair->name.text, pair->name.length, name, sizeof name);
    log_show(pair->value.text, pair->value.length, value, sizeof value);
    FAIL(STATUS_INPUT,
         "%s:%" PRIu32 ": expected one number with a decimal point for \"%s\", got %s; commas that "
         "part decimals cannot be told from those that part thousands: "
         "sed -E 's/([0-9]),([0-9])/\\1.\\2/g' makes points of them",
         s->source->name, line, name, value);
}

static enum status read_line(struct state *s, struct log_lines *lines,
                             const struct log_line *line) {
    struct step_pair step;
    s->too_long += line->span.length > LOG_LINE_MAX;
    if (line->span.length > LOG_LINE_MAX) return STATUS_OK;
    pairs_read(line->span, &s->pairs);
    TRY(step_of_line(s, line->number, &step));
    if (step.name.length == 0 || !log_lines_take(lines, line)) return STATUS_OK;
    TRY(number_in_epochs(s, &step, line->number));
    TRY(check_key(s, &step, line->number));
    TRY(check_comma(s, line->number));
    s->cut += (size_t)s->pairs.cut;
    if (step.step != s->step) TRY(begin_row(s, &step, line->number));
    for (size_t i = 0; i < s->pairs.count; i++)
        if (!log_span_is(s->pairs.pair[i].name, s->wanted == NULL ? "" : s->wanted))
            TRY(put_pair(s, &s->pairs.pair[i], line->number));
    return STATUS_OK;
}

static enum status note_rest(const struct state *s) {
    if (s->falls > FALLS_FREE && 4 * s->falls > s->rows)
        FAIL(STATUS_INPUT,
             "%s: expected steps that rise, got %zu falls in %zu rows: lines of several writers "
             "alternate; keep those of one of them",
             s->source->name, s->falls, s->rows);
    if (s->counting == COUNTING_ANEW)
        TRY(log_build_note(s->build,
                           "its steps begin anew in each epoch: they are numbered on, %" PRIu64
                           " an epoch; where a step is a batch of several in one update, these are "
                           "no updates",
                           s->epoch_steps));
    if (s->counting == COUNTING_OPEN && s->epochs > 1)
        TRY(log_build_note(
            s->build,
            "it shows one epoch of %" PRIu64 ", and not whether its steps go on or "
            "begin anew in the next: the total that stands behind them is left out%s",
            s->epochs, s->first_epoch > 1 ? ", and its rows may be later updates than these" : ""));
    if (s->others > 0)
        TRY(log_build_note(s->build, "lines without \"%s\" that were left out: %zu", s->wanted,
                           s->others));
    if (s->strangers > 0)
        TRY(log_build_note(s->build,
                           "lines with another count than the updates' (such as \"val step\") that "
                           "were left out: %zu",
                           s->strangers));
    /* A few such lines are what a program says besides; as many as there are rows are a part of
     * each row, and nothing says of which. */
    if (s->stepless > 0 && 2 * s->stepless >= s->rows)
        TRY(log_build_note(s->build,
                           "lines of values that say no step and were left out: %zu, the first is "
                           "line %" PRIu32,
                           s->stepless, s->first_stepless));
    if (s->bars > 0)
        TRY(log_build_note(s->build,
                           "progress bars with values that were left out: %zu (--map step=bar "
                           "takes their count as the update)",
                           s->bars));
    if (s->rounded > 0)
        TRY(log_build_note(s->build,
                           "progress bars whose count is rounded (as 1.25kit) that were left out: "
                           "%zu",
                           s->rounded));
    if (s->cut > 0)
        TRY(log_build_note(s->build,
                           "lines with more than %d values, or longer names than %d bytes, whose "
                           "rest was left out: %zu",
                           PAIRS_MAX, PAIRS_NAMES, s->cut));
    if (s->too_long > 0)
        TRY(log_build_note(s->build, "lines longer than %d bytes that were left out: %zu",
                           LOG_LINE_MAX, s->too_long));
    if (s->again > 0)
        TRY(log_build_note(s->build, "values that a step shows twice, and equally: %zu", s->again));
    return STATUS_OK;
}

static enum status read(const struct log_source *source, struct log_build *build) {
    struct log_lines lines;
    struct log_line line;
    struct state *s;
    TRY(arena_take(log_build_scratch(build), 1, sizeof *s, "row", &s));
    s->build = build;
    s->source = source;
    s->wanted = log_build_step_source(build);
    s->step = s->first_epoch = s->epoch = INT64_MIN;
    log_lines_open(&lines, source, build);
    while (log_lines_next(&lines, &line))
        TRY(read_line(s, &lines, &line));
    TRY(note_rest(s));
    return log_lines_close(&lines, build);
}

/* ---- claim ---- */

#define NAMES_SEEN 512

struct seen { /* the names of the rows so far, each with the step of its first row */
    struct {
        uint32_t hash;
        uint64_t step; /* with the epoch, where it may begin anew in each */
    } names[NAMES_SEEN];
    size_t count;
    struct pairs pairs;
    struct log_lines lines;
};

static uint32_t hash_name(struct log_span name) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < name.length; i++)
        hash = (hash ^ (unsigned char)name.text[i]) * 16777619u;
    return hash;
}

/* Says whether the name stood in a row of another step; keeps it where it is seen first. */
static int seen_before(struct seen *seen, struct log_span name, uint64_t step) {
    const uint32_t hash = hash_name(name);
    for (size_t i = 0; i < seen->count; i++)
        if (seen->names[i].hash == hash) return seen->names[i].step != step;
    if (seen->count == NAMES_SEEN) return 0;
    seen->names[seen->count].hash = hash;
    seen->names[seen->count++].step = step;
    return 0;
}

/* Looks for two lines of different steps that share a column. */
static int looks_like_rows(struct seen *seen) {
    const struct pairs *p = &seen->pairs;
    struct log_line line;
    while (log_lines_next(&seen->lines, &line)) {
        if (line.span.length > LOG_LINE_MAX) continue;
        pairs_read(line.span, &seen->pairs);
        const struct step_pair *step = NULL;
        for (size_t i = 0; step == NULL && i < p->step_count; i++)
            if (!p->steps[i].other) step = &p->steps[i];
        if (step == NULL) continue;
        const struct step_pair *const epoch = epoch_of(p, step); /* in which it may begin anew */
        const uint64_t row =
            (uint64_t)step->step + (epoch == NULL ? 0 : (uint64_t)epoch->step << 32);
        for (size_t i = 0; i < p->count; i++)
            if (seen_before(seen, p->pair[i].name, row)) return 1;
    }
    return 0;
}

static int claim(const struct log_source *source) {
    struct arena arena = ARENA_EMPTY;
    struct seen *seen;
    int found = LOG_CLAIM_FAILED;
    if (arena_take(&arena, 1, sizeof *seen, "names", &seen) == STATUS_OK) {
        log_lines_open_head(&seen->lines, source);
        found = looks_like_rows(seen);
    }
    arena_close(&arena);
    return found;
}

/* Whether a line that another reader left says an update and a loss or an LR. */
static int claim_line(struct log_span line) {
    struct pairs pairs;
    int says_step = 0, says_value = 0;
    if (line.length > LOG_LINE_MAX) return 0;
    pairs_read(line, &pairs);
    for (size_t i = 0; i < pairs.step_count; i++)
        says_step |= !pairs.steps[i].other;
    for (size_t i = 0; says_step && i < pairs.count; i++) {
        const struct log_span name = pairs.pair[i].name;
        const struct log_known *known = log_known_name(name.text, name.length);
        says_value |= known != NULL && (known->name == LOG_LOSS || known->name == LOG_LR_LOGGED);
    }
    return says_value ? 2 : 0;
}

const struct log_reader log_reader_key_value = {.step_base = INT64_MIN,
                                                .claim_line = claim_line,
                                                .any_line = 1,
                                                .claim = claim,
                                                .read = read,
                                                .lines = 1};
