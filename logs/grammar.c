/* SPDX-License-Identifier: Apache-2.0
 * The walk that the console formats of one row per line share.
 *
 * Invariant: a row is started only for a line whose head the grammar knows and that no other rank
 * prints. */
#include "logs/grammar.h"

int log_claim_lines(const struct log_source *source, int (*claim_line)(struct log_span line)) {
    struct log_lines lines;
    struct log_line line;
    log_lines_open_head(&lines, source);
    while (log_lines_next(&lines, &line)) {
        const int claim = claim_line(line.span);
        if (claim != 0) return claim;
    }
    return 0;
}

enum status log_read_rows(const struct log_source *source, struct log_build *build,
                          const struct log_grammar *grammar) {
    struct log_lines lines;
    struct log_line line;
    log_lines_open(&lines, source);
    while (log_lines_next(&lines, &line)) {
        struct log_row row = {.open = line.open};
        if (!grammar->head(line.span, &row) || !log_lines_take(&lines, &line)) continue;
        TRY(log_build_row(build, row.step, line.number, source->part));
        log_build_max_steps(build, row.max_steps);
        TRY(grammar->fields(build, &row));
    }
    if (grammar->marked) lines.open_row = 0;
    return log_lines_close(&lines, build);
}
