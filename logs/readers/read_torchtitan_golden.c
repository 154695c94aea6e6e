/* SPDX-License-Identifier: Apache-2.0
 * The golden text of torchtitan's loss checks: "1 8.049097061157227" per line, also with a third
 * column, the gradient norm. The numbers are the shortest repr of a binary64.
 *
 * The format has no signature but its strictness: every line is a step and one or two numbers with
 * a point, and the steps rise. Scripts write bare numbers, too, and the third of theirs is as often
 * the learning rate. So three columns are claimed only below a comment that names them, as
 * torchtitan's have it, and of two without one a note says what the second was taken for. */
#include "logs/lines.h"

#include <inttypes.h>
#include <string.h>

/* Larger numbers are times, as MLflow writes them in front of a value. */
#define STEP_MOST ((int64_t)1000000000000)

static int is_comment(struct log_span line) {
    line = log_span_trim(line);
    return line.length == 0 || line.text[0] == '#';
}

/* Tells whether a comment names the columns: "# step loss" or "# step loss grad_norm". */
static int names_columns(struct log_span line) {
    struct log_span rest = log_span_trim(line);
    if (!log_span_take(&rest, "#")) return 0;
    if (!log_span_is(log_span_word(&rest), "step") || !log_span_is(log_span_word(&rest), "loss"))
        return 0;
    const struct log_span third = log_span_word(&rest);
    return third.length == 0 || log_span_is(third, "grad_norm");
}

/* Reads a line. Returns how many numbers stand behind the step, or 0 when it is no golden line. */
static int read_line(struct log_span rest, int64_t *step, struct log_span value[2]) {
    struct log_number number;
    int count = 0;
    log_span_blanks(&rest);
    if (!log_span_integer(&rest, step) || rest.length == 0 || *rest.text != ' ') return 0;
    for (; count < 2; count++) {
        value[count] = log_span_word(&rest);
        if (value[count].length == 0) break;
        if (!log_number_read(value[count].text, value[count].length, &number) ||
            memchr(value[count].text, ',', value[count].length) != NULL)
            return 0;
    }
    log_span_blanks(&rest);
    return rest.length == 0 ? count : 0;
}

static int claim(const struct log_source *source) {
    struct log_lines lines;
    struct log_line line;
    struct log_span value[2];
    int64_t step, last = INT64_MIN;
    int count = 0, points = 0, named = 0;
    log_lines_open_head(&lines, source);
    while (log_lines_next(&lines, &line)) {
        named |= names_columns(line.span);
        if (is_comment(line.span)) continue;
        const int values = read_line(line.span, &step, value);
        if (values == 0 || (values > 1 && !named)) return 0;
        if (step <= last || step >= STEP_MOST) return 0;
        points += memchr(value[0].text, '.', value[0].length) != NULL;
        last = step;
        count++;
    }
    return count == 0 || points == 0 ? 0 : count > 1 ? 3 : 2;
}

static enum status read(const struct log_source *source, struct log_build *build) {
    static const struct log_span names[] = {{"loss", 4}, {"grad_norm", 9}};
    struct log_lines lines;
    struct log_line line;
    struct log_span value[2];
    int64_t step;
    int named = 0, most = 0;
    log_lines_open(&lines, source, build);
    while (log_lines_next(&lines, &line)) {
        named |= names_columns(line.span);
        if (is_comment(line.span)) continue;
        const int count = read_line(line.span, &step, value);
        if (count == 0)
            FAIL(STATUS_INPUT, "%s:%" PRIu32 ": expected \"STEP LOSS\" or \"STEP LOSS GRAD_NORM\"",
                 source->name, line.number);
        most = count > most ? count : most;
        log_lines_take(&lines, &line);
        TRY(log_build_row(build, step, line.number, source->part));
        for (int i = 0; i < count; i++)
            TRY(log_put_text(build, log_rules_json, names[i], value[i]));
    }
    if (!named && most == 1)
        TRY(log_build_note(build,
                           "its columns have no names: the second is read as the loss, as in "
                           "torchtitan's golden text (--map lr_logged=loss makes it the "
                           "learning rate)"));
    return log_lines_close(&lines, build);
}

const struct log_reader log_reader_torchtitan_golden = {
    .step_base = 1, .claim = claim, .read = read};
