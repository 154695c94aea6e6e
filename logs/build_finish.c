/* SPDX-License-Identifier: Apache-2.0
 * From what was collected to the finished log: which rows and columns stay, their order, steps,
 * parts and quanta.
 *
 * Invariant: the arrays hold at most CELLS_PER_VALUE cells for each value that was read, and
 * CELLS_FREE besides, so a file that names a new column in each row cannot ask for all memory. */
#include "logs/build_state.h"

#include <inttypes.h>
#include <string.h>

#include "base/real.h"
#include "base/sort.h"
#include "logs/readers.h"

#define CELLS_PER_VALUE 16
#define CELLS_FREE ((size_t)1 << 22)
#define FALLS_SHOWN 4
/* So many rows tell at what distance rows stand: chosen so that the few lines of a log that
 * somebody pasted, and shortened, say nothing. */
#define GAP_ROWS 20

struct finish {
    struct log_build *build;
    struct log *log;
    uint32_t *order; /* (rows) the rows that stay, in their final order */
    size_t *chosen;  /* (columns) the columns that stay */
};

/* ---- --map ---- */

static enum status list_columns(struct log_build *build, char **out) {
    TRY(arena_format(&build->scratch, out, "%s", ""));
    for (size_t i = 0; i < build->column_count && i < 16; i++)
        TRY(arena_format(&build->scratch, out, "%s%s\"%s\"", *out, i == 0 ? "" : ", ",
                         build->columns[i].source));
    if (build->column_count > 16)
        TRY(arena_format(&build->scratch, out, "%s and %zu more", *out, build->column_count - 16));
    return STATUS_OK;
}

static int any_step(const struct log_build *build) {
    for (size_t i = 0; i < build->row_count; i++)
        if (log_build_row_at(build, i)->step != INT64_MIN) return 1;
    return 0;
}

static enum status check_maps_used(struct log_build *build) {
    const struct log_options *options = build->options;
    for (size_t i = 0; i < options->map_count; i++) {
        char *columns;
        const int is_step = strcmp(options->map[i].ours, "step") == 0;
        if (is_step ? any_step(build) : build->map_used[i]) continue;
        if (build->column_count == 0)
            FAIL(STATUS_INPUT,
                 "%s: --map %s=%s: expected a column of the log behind the sign, got \"%s\", of "
                 "which no line has a value (read as %s)",
                 build->path, options->map[i].ours, options->map[i].theirs, options->map[i].theirs,
                 build->format);
        TRY(list_columns(build, &columns));
        FAIL(STATUS_INPUT,
             "%s: --map %s=%s: expected a column of the log behind the sign (%s), "
             "got \"%s\"",
             build->path, options->map[i].ours, options->map[i].theirs, columns,
             options->map[i].theirs);
    }
    return STATUS_OK;
}

/* ---- rows ---- */

/* Orders rows by part, then by step. Rows of equal place keep the order of the file. */
static int row_before(const void *left, const void *right, const void *context) {
    const struct log_build *build = (const struct log_build *)context;
    const struct build_row *a = log_build_row_at(build, *(const uint32_t *)left);
    const struct build_row *b = log_build_row_at(build, *(const uint32_t *)right);
    return a->part != b->part ? a->part < b->part : a->step < b->step;
}

static enum status choose_rows(struct finish *f) {
    struct log_build *build = f->build;
    uint32_t *other;
    TRY(arena_take(&build->scratch, build->row_count, sizeof *f->order, "order of rows",
                   &f->order));
    for (size_t i = 0; i < build->row_count; i++)
        if (log_build_row_at(build, i)->values > 0) f->order[f->log->rows++] = (uint32_t)i;
    if (f->log->rows == 0)
        FAIL(STATUS_INPUT, "%s: expected a log with numbers, got none (read as %s)", build->path,
             build->format);
    if (!build->by_step) return STATUS_OK;
    TRY(arena_take(&build->scratch, f->log->rows, sizeof *other, "order of rows", &other));
    f->order =
        (uint32_t *)sort_stable(f->order, other, f->log->rows, sizeof *other, row_before, build);
    return STATUS_OK;
}

/* ---- skipped updates ---- */

/* Makes the column of the lines that said that an update was skipped. It comes last, so that a
 * count of the log's own keeps the name LOG_SKIPPED. */
static enum status put_skips(struct log_build *build) {
    static const struct log_rule rules[] = {{LOG_SKIP_LINES, LOG_SKIPPED, LOG_PRINT_EXACT, 0, 0, 0},
                                            {.source = NULL}};
    size_t column;
    if (build->skip_count == 0) return STATUS_OK;
    TRY(log_build_column(build, LOG_SKIP_LINES, strlen(LOG_SKIP_LINES), rules, &column));
    for (size_t i = 0; i < build->row_count; i++) {
        const struct build_row *row = log_build_row_at(build, i);
        build->row = i;
        if (row->values > 0) TRY(log_build_value(build, column, (double)row->skips, 0.0));
    }
    TRY(log_build_note(build, "%zu lines say that an update was skipped (column %s)",
                       build->skip_count, LOG_SKIP_LINES));
    if (build->skips > 0)
        TRY(log_build_note(build, "%" PRIu32 " of these lines stand behind the last row",
                           build->skips));
    return STATUS_OK;
}

/* ---- columns ---- */

/* Returns the unnamed column with the fewest values, and of equal ones the last. */
static size_t least_needed(const struct finish *f) {
    size_t at = LOG_COLUMN_IGNORED;
    for (size_t i = 0; i < f->log->column_count; i++) {
        const struct build_column *c = &f->build->columns[f->chosen[i]];
        if (c->name != LOG_OTHER) continue;
        if (at == LOG_COLUMN_IGNORED || c->count <= f->build->columns[f->chosen[at]].count) at = i;
    }
    return at;
}

static enum status choose_columns(struct finish *f) {
    struct log_build *build = f->build;
    const size_t budget = CELLS_PER_VALUE * build->value_count + CELLS_FREE;
    size_t left = 0;
    TRY(arena_take(&build->scratch, build->column_count, sizeof *f->chosen, "columns", &f->chosen));
    for (size_t i = 0; i < build->column_count; i++)
        if (build->columns[i].count > 0) f->chosen[f->log->column_count++] = i;
    while (f->log->column_count > budget / f->log->rows) {
        const size_t at = least_needed(f);
        if (at == LOG_COLUMN_IGNORED) break;
        memmove(f->chosen + at, f->chosen + at + 1,
                (--f->log->column_count - at) * sizeof *f->chosen);
        left++;
    }
    if (left > 0)
        TRY(log_build_note(build,
                           "%zu rare columns were left out: nearly all their cells are "
                           "empty",
                           left));
    if (build->columns_left)
        TRY(log_build_note(build, "only the first %d columns were read", LOG_COLUMNS_MAX));
    return STATUS_OK;
}

/* A loss that is NaN throughout is written as null or as an empty cell by pandas and by JavaScript,
 * and would else look like a log without a loss. */
static enum status note_blank_loss(struct finish *f) {
    struct log_build *build = f->build;
    int blank = build->blank_loss;
    for (size_t i = 0; i < build->column_count; i++) {
        const struct build_column *c = &build->columns[i];
        if (c->name == LOG_LOSS && c->count > 0) return STATUS_OK;
        blank |= c->name == LOG_LOSS;
    }
    if (!blank) return STATUS_OK;
    f->log->blank_loss = 1;
    return log_build_note(build,
                          "it names the loss, and no row has a number there: null, or an empty "
                          "cell, is also how NaN is written");
}

/* Differences below the quantum of such a number are not seen, so whoever compares is told. */
static enum status note_rounded(struct log_build *build) {
    for (size_t i = 0; i < build->column_count; i++)
        if (build->columns[i].rounded > 0)
            TRY(log_build_note(build,
                               "%s has %zu whole numbers above 2^53 that binary64 does not hold: "
                               "they are read as their neighbours, and smaller differences are not "
                               "seen",
                               build->columns[i].source, build->columns[i].rounded));
    return STATUS_OK;
}

/* ---- quanta ---- */

struct print {
    int keeps;        /* 1: each value keeps the quantum of its own text */
    int floats;       /* otherwise the spacing of binary32 holds */
    int exact_floats; /* the column would be exact, and its numbers are those of binary32 */
    int rounded;  /* 1: the numbers are those of binary32, rounded to the digits of their texts */
    double whole; /* otherwise this quantum holds for the whole column; 0: the column is exact */
    int most;   /* otherwise, where this is not 0, no value has more significant digits than this */
    double low; /* the decade of the value looked at last: low = 10^power <= value < high =
                   10^(power + 1) */
    double high;
    int power;
};

/* Decides how a column was printed, from all of its texts together. Whole numbers keep their
 * quantum 0 in every case. */
static struct print print_of(const struct build_column *c) {
    struct print print = {.low = 1.0, .high = 10.0};
    const int power = c->has_power && !c->is_printed;
    /* An engine that keeps its LR in binary32 (JAX, a tensor of torch) and prints all of it has
     * rounded the schedule's number; a loss in binary32 is the number that it is. */
    const int narrow = c->is_repr && !c->is_double && c->name == LOG_LR_LOGGED;
    print.keeps = c->print == LOG_PRINT_EXACT;
    print.exact_floats = print.keeps && narrow;
    /* The shortest text of a binary32 has 9 digits at most, and with 6 the last digit is coarser
     * than its cell. Texts of 7 with zeros at their end are those of "%.6E", which prints doubles:
     * binary32 is no likelier there, and it is not where texts are exact. */
    print.rounded = c->name == LOG_LR_LOGGED && !c->is_repr && !c->no_float && c->most <= 9 &&
                    c->most >= (c->is_printed || print.keeps ? 8 : 7);
    if (print.keeps) return print;
    if (c->print == LOG_PRINT_DECIMALS) {
        print.whole = log_power_of_ten(-c->decimals);
        /* A finer text says that the column was not rounded to that many decimals. */
        if (!(c->finest < 0.5 * print.whole)) return print;
        print.whole = 0.0;
    }
    print.floats = narrow || (c->is_repr && !c->is_double && c->print == LOG_PRINT_FLOAT);
    if (c->is_repr) return print;
    print.whole = c->finest;
    print.keeps = c->print == LOG_PRINT_TEXT || c->is_printed || !real_finite_f64(c->finest) ||
                  (power && c->print == LOG_PRINT_TABLE);
    /* "%.4g" needs no exponent from 1e-4 up: 0.9123 and 1.252 are of one column. Where numbers were
     * rounded to decimals, those of the largest decade show it by one digit more. */
    print.most = power || !c->has_power ? c->most : 0;
    return print;
}

/* Moves low and high around the value. The first guess multiplies the binary exponent by log10(2),
 * about 1233/4096, and is off by at most one but for subnormals; the loops correct it. */
static void find_power(struct print *print, double value) {
    uint64_t bits;
    if (value >= print->low && value < print->high) return;
    memcpy(&bits, &value, sizeof bits);
    const int binary = (int)(bits >> 52 & 0x7ff);
    print->power = binary * 1233 / 4096 - 308;
    while (print->power > -323 && log_power_of_ten(print->power) > value)
        print->power--;
    while (print->power < 308 && log_power_of_ten(print->power + 1) <= value)
        print->power++;
    print->low = log_power_of_ten(print->power);
    print->high = log_power_of_ten(print->power + 1);
}

static float finished_quantum(float own, double value, struct print *print) {
    const double size = value < 0.0 ? -value : value;
    if (own == 0.0f && print->exact_floats)
        return value == 0.0 ? own : log_build_round_up(log_float_spacing(value));
    if (own != own || own == 0.0f) return own;
    if (print->most > 0 && value == 0.0)
        return log_build_round_up(print->whole); /* "0.0" shows no significant digit, so it takes
                                                    the column's finest quantum */
    if (print->keeps) return own;
    if (print->floats) return log_build_round_up(log_float_spacing(value));
    if (print->most == 0) return log_build_round_up(print->whole);
    find_power(print, size);
    const double last = log_power_of_ten(print->power - print->most + 1);
    return log_build_round_up(last > print->whole ? last : print->whole);
}

/* Puts an LR that may have been rounded twice, to binary32 and to the digits of its text, at the
 * binary32. The schedule's number lies within half a cell of it if the column is one of binary32,
 * and within half the last digit of the text if it is one of binary64 whose texts are binary32 by
 * chance: the quantum covers both. Where the last digit alone does, the text
 * stays. Returns 1 where the number became another one. */
static int put_float(double *value, float *quantum) {
    const double at = (double)(float)*value, cell = log_float_spacing(*value);
    const double digit = (double)*quantum, away = real_abs_f64(at - *value);
    if (*value == 0.0 || !(digit >= 0.0) || digit >= cell + 2.0 * away) return 0;
    *quantum = log_build_round_up(digit + 2.0 * away > cell ? digit + 2.0 * away : cell);
    *value = at;
    return away > 0.0;
}

/* Reads a cell: its value and the quantum of its text, both NaN where there is none. */
static void read_cell(const struct finish *f, const struct build_column *c, size_t row,
                      double *value, float *quantum) {
    const size_t block = f->order[row] / BUILD_BLOCK, at = f->order[row] % BUILD_BLOCK;
    const int has = block < c->block_room && c->blocks[block] != NULL;
    *value = has ? c->blocks[block]->value[at] : real_nan_f64();
    *quantum = has ? c->blocks[block]->quantum[at] : real_nan_f32();
    if (*quantum != *quantum) *value = real_nan_f64();
}

/* Numbers in the decades above that of the finest text, none of which may have more significant
 * digits than the others, before a column without an exponent is one of "%.4g"; and numbers without
 * the last decimal that their tool prints, before none has it. Chosen: of rounded decimals so many
 * end in 0 once in 10,000 columns. They must be different ones: an LR of a few
 * levels has each of them in many rows, and nobody rounded those. */
#define COARSER 4

static int is_among(const double *values, size_t count, double value) {
    for (size_t i = 0; i < count; i++)
        if (values[i] == value) return 1;
    return 0;
}

/* Tells whether a column without an exponent was printed to significant digits, by the numbers that
 * would be finer if it was rounded to decimals. */
static int is_significant(const struct finish *f, const struct build_column *c,
                          struct print print) {
    const float finest = log_build_round_up(print.whole);
    double coarser[COARSER];
    size_t count = 0;
    for (size_t i = 0; i < f->log->rows && count < COARSER; i++) {
        double value;
        float quantum;
        read_cell(f, c, i, &value, &quantum);
        if (finished_quantum(quantum, value, &print) > finest && !is_among(coarser, count, value))
            coarser[count++] = value;
    }
    return count == COARSER;
}

/* Tells whether a column that a tool rounds to so many decimals has fewer, by as many different
 * numbers: somebody rounded it again, as authors of a table do. */
static int is_coarser(const struct finish *f, const struct build_column *c, struct print print) {
    double seen[COARSER];
    size_t count = 0;
    if (c->print != LOG_PRINT_DECIMALS || !(print.whole > 0.0) || !real_finite_f64(c->finest) ||
        !(c->finest > 2.0 * print.whole))
        return 0;
    for (size_t i = 0; i < f->log->rows && count < COARSER; i++) {
        double value;
        float quantum;
        read_cell(f, c, i, &value, &quantum);
        if (value == value && value != 0.0 && !is_among(seen, count, value)) seen[count++] = value;
    }
    return count == COARSER;
}

/* Copies one column into its final arrays, and gives every cell its final quantum. */
static enum status fill_column(struct finish *f, size_t index) {
    const struct build_column *c = &f->build->columns[f->chosen[index]];
    struct log_column *column = &f->log->columns[index];
    struct print print = print_of(c);
    double first = 0.0;
    size_t moved = 0;
    if (is_coarser(f, c, print)) print.whole = c->finest;
    if (!c->has_power && print.most > 0 && !print.keeps && !is_significant(f, c, print))
        print.most = 0;
    TRY(arena_take(f->build->arena, f->log->rows, sizeof(double), "column", &column->value));
    TRY(arena_take(f->build->arena, f->log->rows, sizeof(float), "column", &column->quantum));
    column->name = c->name;
    column->cumulative = c->cumulative;
    column->windowed = c->windowed;
    column->source = c->source;
    for (size_t i = 0; i < f->log->rows; i++) {
        read_cell(f, c, i, &column->value[i], &column->quantum[i]);
        column->quantum[i] = finished_quantum(column->quantum[i], column->value[i], &print);
        const double text = column->value[i];
        if (print.rounded && put_float(&column->value[i], &column->quantum[i]) && moved++ == 0)
            first = text;
    }
    if (moved == 0) return STATUS_OK;
    return log_build_note(
        f->build,
        "%s prints numbers of float32 in %d digits, and is read as these: %.*g as "
        "%.17g",
        c->source, c->most, c->most, first, (double)(float)first);
}

/* ---- steps and parts ---- */

/* Tells whether the row has a number that an update of the training makes. */
static int is_of_update(const struct log *log, size_t row) {
    for (size_t i = 0; i < log->column_count; i++) {
        const struct log_column *const column = &log->columns[i];
        if (column->name >= LOG_LOSS && column->name <= LOG_LOGITS_REJECTED && log_has(column, row))
            return 1;
    }
    return 0;
}

/* Where nothing but rows of an evaluation has step 0, they stand before the first update: an
 * evaluation before the training (eval_on_start). Then the steps of the updates alone tell what the
 * first of them is called, 0 where they come as 9, 19, 29. Returns the base, or `none` where no row
 * is an update, or INT64_MIN where step 0 is one. */
static int64_t base_behind_evaluation(const struct finish *f, int64_t none) {
    int64_t first = INT64_MAX, second = INT64_MAX;
    for (size_t i = 0; i < f->log->rows; i++) {
        const int64_t step = log_build_row_at(f->build, f->order[i])->step;
        if (step == INT64_MIN || step == first || !is_of_update(f->log, i)) continue;
        if (step < first) {
            second = first;
            first = step;
        } else if (step < second) {
            second = step;
        }
    }
    if (first == INT64_MAX) return none;
    if (first == 0) return INT64_MIN;
    const int64_t apart = second == INT64_MAX ? 0 : second - first;
    return apart > 1 && (first + 1) % apart == 0 ? 0 : 1;
}

static enum status choose_base(struct finish *f, int64_t base, size_t *out_known) {
    int64_t least = INT64_MAX, most = INT64_MIN;
    const int64_t none = base == LOG_BASE_OF_UPDATES ? 1 : INT64_MIN;
    if (base == LOG_BASE_OF_UPDATES) base = INT64_MIN;
    *out_known = 0;
    for (size_t i = 0; i < f->log->rows; i++) {
        const int64_t step = log_build_row_at(f->build, f->order[i])->step;
        if (step == INT64_MIN) continue;
        ++*out_known;
        if (step < least) least = step;
        if (step > most) most = step;
    }
    f->log->step_guessed = *out_known == 0;
    f->log->step_base = base == INT64_MIN ? 1 : base;
    f->log->base_open = base == INT64_MIN && f->build->options->step_base == INT64_MIN &&
                        *out_known > 0 && least > 0;
    if (f->build->options->step_base != INT64_MIN) {
        f->log->step_base = f->build->options->step_base;
        if (f->log->step_base > 1000000000 || f->log->step_base < -1000000000)
            FAIL(STATUS_INPUT, "--step-base: expected an integer within 1e9, got %" PRId64,
                 f->log->step_base);
    } else if (base == INT64_MIN && *out_known > 0 && least == 0 && most > 0 &&
               (uint64_t)most == f->build->max_steps) {
        /* As modded-nanogpt does, which evaluates before it trains. */
        TRY(log_build_note(f->build,
                           "its steps run from 0 to its own total: 0 is taken as before the first "
                           "update; --step-base 0 takes it as update 1"));
    } else if (base == INT64_MIN && *out_known > 0 && least == 0 &&
               base_behind_evaluation(f, none) == 1) {
        TRY(log_build_note(f->build, "nothing of an update has step 0: taken as an evaluation "
                                     "before the first update; --step-base 0 takes it as update "
                                     "1"));
    } else if (base == INT64_MIN && *out_known > 0 && least == 0) {
        f->log->step_base = 0;
        TRY(log_build_note(f->build, "its least step is 0: taken as update 1; --step-base 1 takes "
                                     "it as before the first update"));
    }
    return STATUS_OK;
}

static enum status number_rows(struct finish *f, int64_t base) {
    size_t known, early = 0;
    TRY(choose_base(f, base, &known));
    for (size_t i = 0; i < f->log->rows; i++) {
        const struct build_row *row = log_build_row_at(f->build, f->order[i]);
        f->log->line[i] = row->line;
        if (known == 0) {
            f->log->step[i] = (int64_t)i + 1;
        } else if (row->step != INT64_MIN && row->step >= f->log->step_base) {
            f->log->step[i] = row->step - f->log->step_base + 1;
        } else {
            f->log->step[i] = 0;
            early += row->step != INT64_MIN;
        }
    }
    if (known == 0 && f->build->odd_step != NULL)
        TRY(log_build_note(f->build, "%s, which is no whole number: rows are numbered from 1",
                           f->build->odd_step));
    else if (known == 0)
        TRY(log_build_note(f->build, "it prints no step: rows are numbered from 1"));
    else if (known < f->log->rows)
        TRY(log_build_note(f->build, "%zu of %zu rows have no step", f->log->rows - known,
                           f->log->rows));
    if (early > 0)
        TRY(log_build_note(f->build, "%zu rows stand before the first update (step %" PRId64 ")",
                           early, f->log->step_base));
    return STATUS_OK;
}

/* Tells whether the rows are of several files. */
static int is_of_files(const struct finish *f) {
    for (size_t i = 1; i < f->log->rows; i++)
        if (log_build_row_at(f->build, f->order[i])->part !=
            log_build_row_at(f->build, f->order[0])->part)
            return 1;
    return 0;
}

/* Numbers the parts. A step that falls back means a resume. Where it falls to where the log began,
 * nothing was resumed: another run stands in the same file, or this one was begun anew. */
static enum status mark_parts(struct finish *f) {
    uint32_t part = 0;
    int64_t last = 0, begin = 0;
    size_t falls = 0, twice = 0;
    for (size_t i = 0; i < f->log->rows; i++) {
        const int64_t step = f->log->step[i];
        const int other = i > 0 && log_build_row_at(f->build, f->order[i])->part !=
                                       log_build_row_at(f->build, f->order[i - 1])->part;
        const int falls_back = step > 0 && step < last;
        if (falls_back && ++falls <= FALLS_SHOWN)
            TRY(log_build_note(f->build,
                               "the step falls back from %" PRId64 " to %" PRId64
                               " in line %" PRIu32 ": %s, its rows from here are part %" PRIu32,
                               last, step, f->log->line[i],
                               step == begin
                                   ? "where the log began, so another run or one begun anew"
                                   : "a resumed run",
                               part + 2)); /* the first is part 1 */
        twice += step > 0 && step == last && !other;
        part += other || falls_back;
        if (step > 0) last = step;
        if (step > 0 && begin == 0) begin = step;
        f->log->part[i] = part;
    }
    if (falls > FALLS_SHOWN)
        TRY(log_build_note(f->build, "the step falls back %zu times in all", falls));
    if (twice > 0)
        TRY(log_build_note(f->build, "%zu row%s the step of the row before", twice,
                           twice == 1 ? " has" : "s have"));
    return STATUS_OK;
}

/* The distance of row i from the row before, in updates; 0: it has none, or it falls back. */
static int64_t distance_at(const struct log *log, size_t i) {
    if (log->part[i] != log->part[i - 1] || log->step[i - 1] <= 0) return 0;
    return log->step[i] > log->step[i - 1] ? log->step[i] - log->step[i - 1] : 0;
}

/* Says where rows are missing: they stand at one distance but for a few, and once or a few times
 * thrice as far apart or more. Lines that were lost or torn leave such a gap, and a run that was
 * resumed behind the rows of another file does. */
static enum status note_gaps(struct finish *f) {
    const struct log *log = f->log;
    int64_t usual = 0;
    size_t lead = 0, count = 0, same = 0, gaps = 0, first = 0;
    for (size_t i = 1; i < log->rows; i++) { /* the one that most distances are, if there is one */
        const int64_t distance = distance_at(log, i);
        if (distance == 0) continue;
        if (lead == 0) usual = distance;
        lead += distance == usual ? 1 : (size_t)-1;
    }
    for (size_t i = 1; i < log->rows; i++) {
        const int64_t distance = distance_at(log, i);
        count += distance > 0;
        same += distance > 0 && distance == usual;
        if (distance / 3 >= usual && distance > 0 && gaps++ == 0) first = i;
    }
    if (log->step_guessed || gaps == 0 || count < GAP_ROWS || 10 * same < 9 * count)
        return STATUS_OK;
    return log_build_note(f->build,
                          "its rows are %" PRId64
                          " update%s apart, but none stands between updates "
                          "%" PRId64 " and %" PRId64 " (line %" PRIu32 "; such gaps: %zu)",
                          usual, usual == 1 ? "" : "s", log->step[first - 1], log->step[first],
                          log->line[first], gaps);
}

/* Where rows were numbered, an epoch that falls back is all that tells of another run in the file.
 * Whether that is a resumed one, and from where, nothing says, so the numbers go on. */
static enum status note_other_runs(struct finish *f) {
    const struct log_column *epoch = NULL;
    double last = real_nan_f64();
    size_t falls = 0;
    uint32_t line = 0;
    for (size_t c = 0; c < f->log->column_count && f->log->step_guessed; c++)
        if (f->log->columns[c].name == LOG_EPOCH) epoch = &f->log->columns[c];
    for (size_t i = 0; epoch != NULL && i < f->log->rows; i++) {
        if (!real_finite_f64(epoch->value[i])) continue;
        if (epoch->value[i] < last && falls++ == 0) line = f->log->line[i];
        last = epoch->value[i];
    }
    if (falls == 0) return STATUS_OK;
    return log_build_note(f->build,
                          "the epoch falls back %zu time%s, first in line %" PRIu32
                          ": it holds several runs, or a resumed one, whose rows were numbered on",
                          falls, falls == 1 ? "" : "s", line);
}

static const struct log_column *column_with(const struct log *log, enum log_name name) {
    const struct log_column *column = log_column_of(log, name);
    for (size_t i = 0; column != NULL && i < log->rows; i++)
        if (log_has(column, i)) return column;
    return NULL;
}

/* A run that diverges in its middle ends with rows that train and have no loss. Evaluations and
 * summaries have no LR and no gradient norm, and a loss that is logged at some rows only has such
 * gaps before, too. */
static enum status note_blank_end(struct finish *f) {
    const struct log *log = f->log;
    const struct log_column *loss = column_with(log, LOG_LOSS);
    const struct log_column *lr = column_with(log, LOG_LR_LOGGED);
    const struct log_column *norm = column_with(log, LOG_GRAD_NORM);
    size_t gap = 0, longest = 0;
    int64_t last = 0, first = 0;
    if (loss == NULL || (!f->build->blank_loss && strstr(f->build->format, "csv") == NULL))
        return STATUS_OK;
    for (size_t i = 0; i < log->rows; i++) {
        if (log_has(loss, i)) {
            longest = gap > longest ? gap : longest;
            gap = 0;
            last = log->step[i];
            continue;
        }
        const int trains = (lr == NULL && norm == NULL) || (lr != NULL && log_has(lr, i)) ||
                           (norm != NULL && log_has(norm, i));
        if (!trains || log->step[i] <= last) continue;
        if (gap++ == 0) first = log->step[i];
    }
    if (gap <= longest) return STATUS_OK;
    return log_build_note(f->build,
                          "loss has no number from update %" PRId64
                          " on: null, or an empty cell, is also how NaN is written",
                          first);
}

/* ---- a count of skipped updates that does not say what it counts ---- */

/* Rows behind the first skipped update that must show a count which never falls, and rows in a row
 * whose loss scale falls while the count stands still, so that it is no total. Chosen: a scaler
 * that searches its scale may skip an update in each of the first few rows. */
#define NEVER_FALLS 4

/* Tells whether the loss scale is lower in a row than in the one before. A scaler lowers it when an
 * update was skipped. */
static int scale_falls(const struct log *log, size_t before, size_t row) {
    const struct log_column *column = log_column_of(log, LOG_LOSS_SCALE);
    return column != NULL && log_has(column, before) && log_has(column, row) &&
           column->value[row] < column->value[before];
}

/* Tells whether the file holds columns that a trace of ours has and nothing else is known to: there
 * `skipped` is of each update. */
static int is_of_trace(const struct log_build *build) {
    int found = 0;
    for (size_t c = 0; c < build->column_count; c++)
        found += strcmp(build->columns[c].source, "update_survival") == 0 ||
                 strcmp(build->columns[c].source, "travel") == 0;
    return found == 2 || strcmp(build->format, "trace") == 0;
}

/* Tells whether a row has a finite loss or gradient norm. */
static int trains_on(const struct log *log, size_t row) {
    static const enum log_name names[] = {LOG_LOSS, LOG_GRAD_NORM};
    for (size_t n = 0; n < COUNT_OF(names); n++) {
        const struct log_column *column = log_column_of(log, names[n]);
        if (column != NULL && log_has(column, row) && real_finite_f64(column->value[row])) return 1;
    }
    return 0;
}

/* Tells whether a count of skipped updates is a running total. That never falls within a part. What
 * was skipped since the row before does, as soon as nothing was, and is no more than the updates
 * since then; where it does not fall, updates are skipped in every row to the end, and where those
 * are all of them, the training has stopped. Nor does a total stand still where the loss scale
 * falls from row to row. */
static int is_running_total(const struct log *log, const struct log_column *column) {
    size_t before = SIZE_MAX, behind = 0, all = 0, trained = 0, unmoved = 0;
    for (size_t row = 0; row < log->rows; row++) {
        if (!log_has(column, row)) continue;
        const double value = column->value[row];
        const int same = before != SIZE_MAX && log->part[row] == log->part[before] &&
                         log->step[row] > log->step[before];
        const double was = same ? column->value[before] : 0.0;
        const double updates = same ? (double)(log->step[row] - log->step[before]) : 0.0;
        unmoved = same && value == was && scale_falls(log, before, row) ? unmoved + 1 : 0;
        if (unmoved >= NEVER_FALLS) return 0;
        before = row;
        if (!(value >= was)) return 0; /* a NaN, too */
        if (!same || !(was > 0.0)) continue;
        if (value > updates) return 1;
        behind++;
        all += value >= updates;
        trained += trains_on(log, row) != 0;
    }
    return behind >= NEVER_FALLS && (all < behind || trained == behind);
}

/* Tells whether a count is 1 in every row, which a flag of each update is, too. */
static int stands_at_one(const struct log *log, const struct log_column *column) {
    for (size_t row = 0; row < log->rows; row++)
        if (log_has(column, row) && column->value[row] != 1.0) return 0;
    return 1;
}

/* A column that is called "skipped" by a script, or by --map, is either; the formats of frameworks
 * say which. */
static enum status settle_skips(struct finish *f) {
    if (is_of_trace(f->build)) return STATUS_OK;
    for (size_t i = 0; i < f->log->column_count; i++) {
        struct log_column *const column = &f->log->columns[i];
        const struct build_column *const c = &f->build->columns[f->chosen[i]];
        if (column->name != (int32_t)LOG_SKIPPED || column->cumulative ||
            (c->rank >= 0 && strcmp(c->source, "skipped") != 0) ||
            !is_running_total(f->log, column))
            continue;
        column->cumulative = 1;
        TRY(log_build_note(f->build, "%s is read as a running total, since it never falls%s",
                           c->source,
                           stands_at_one(f->log, column)
                               ? " (if it tells of each update, all of them were skipped)"
                               : ""));
    }
    return STATUS_OK;
}

/* ---- all of it ---- */

static void keep_notes(struct log_build *build, struct log *log, char *more) {
    if (build->notes_left > 0) build->notes[build->note_count++] = more;
    log->notes = build->notes;
    log->note_count = build->note_count;
}

static const char *title_of(const char *format) {
    for (const struct log_format *row = log_formats(); row->name != NULL; row++)
        if (strcmp(row->name, format) == 0) return row->title;
    return format;
}

enum status log_build_finish(struct log_build *build, int64_t step_base, struct log **out) {
    struct finish f = {build, NULL, NULL, NULL};
    struct arena *arena = build->arena;
    char *more;
    if (build->adopted != NULL) {
        *out = build->adopted;
        (*out)->path = build->path;
        (*out)->title = title_of((*out)->format);
        return STATUS_OK;
    }
    TRY(check_maps_used(build));
    TRY(arena_take(arena, 1, sizeof *f.log, "log", &f.log));
    f.log->path = build->path;
    f.log->format = build->format;
    f.log->title = title_of(build->format);
    f.log->max_steps = build->max_steps;
    f.log->bf16 = build->bf16;
    f.log->logs_next = build->logs_next;
    f.log->logs_used = build->logs_used && !build->logs_next;
    TRY(put_skips(build));
    TRY(choose_rows(&f));
    TRY(choose_columns(&f));
    TRY(note_blank_loss(&f));
    TRY(note_rounded(build));
    TRY(arena_take(arena, f.log->rows, sizeof *f.log->step, "steps", &f.log->step));
    TRY(arena_take(arena, f.log->rows, sizeof *f.log->line, "lines", &f.log->line));
    TRY(arena_take(arena, f.log->rows, sizeof *f.log->part, "parts", &f.log->part));
    TRY(arena_take(arena, f.log->column_count, sizeof *f.log->columns, "columns", &f.log->columns));
    for (size_t i = 0; i < f.log->column_count; i++)
        TRY(fill_column(&f, i));
    TRY(number_rows(&f, step_base));
    if (!is_of_files(&f)) TRY(log_build_number_epochs(build, f.log));
    TRY(mark_parts(&f));
    TRY(settle_skips(&f));
    TRY(note_gaps(&f));
    TRY(note_other_runs(&f));
    TRY(note_blank_end(&f));
    TRY(arena_format(arena, &more, "and %zu more notes", build->notes_left));
    keep_notes(build, f.log, more);
    *out = f.log;
    return STATUS_OK;
}
