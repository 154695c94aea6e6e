/* SPDX-License-Identifier: Apache-2.0
 * What the parts of a report share. Private to report/.
 *
 * Each part is a section of the page and writes its heading and all below it.
 * Invariant: a part reads the trace and the judgement, and changes neither. */
#ifndef TWINSTEP_REPORT_PAGE_H
#define TWINSTEP_REPORT_PAGE_H

#include "evidence/judge.h"
#include "report/chart.h"
#include "report/html.h"
#include "report/report.h"

#define PAGE_ROWS_MAX                                                                              \
    20000 /* rows of a table of updates; more are thinned, and the page says so                    \
           */

struct page {
    struct html html;
    struct arena *arena;
    const struct trace_image *image;
    const struct report_options *options;
    struct judgement judgement;     /* of an experiment; a log has none */
    const struct trace_run *run[2]; /* the arms */
    uint32_t drawings;              /* that were written so far, for their ids */
};

/* The text of an attribute; "" when the trace has no such attribute. */
const char *page_attribute(const struct page *page, const char *path, const char *name);

void page_section(struct page *page, const char *id, const char *title);
void page_section_end(struct page *page);
void page_chart(struct page *page, const struct chart *chart);
/* A small paragraph of our words, as markup. */
void page_note(struct page *page, const char *markup);
/* Writes a share as "85.4 %"; NaN as "not determined". */
void page_percent(struct page *page, double share);

/* Which rows of a long table are shown: all up to PAGE_ROWS_MAX; else every n-th, where n is the
 * stride, and the last. */
uint64_t page_row_stride(uint64_t rows);
int page_row_shown(uint64_t row, uint64_t rows);

/* A line "key: value" of a configuration. The pieces point into its text. */
struct page_line {
    const char *key, *value;
    size_t key_length, value_length;
};
/* Takes the next line off *text; returns 0 at the end. A line without ": " has an empty key. */
int page_next_line(const char **text, struct page_line *out);

/* Write everything up to <main>, the style sheet included, and what ends the page. */
void page_open(struct page *page, const char *title);
void page_close(struct page *page);

/* Sections of an experiment, in the order of the page. */

TWINSTEP_MUST_USE enum status page_curves(struct page *page);
TWINSTEP_MUST_USE enum status page_first_differences(struct page *page);
void page_eval(struct page *page); /* nothing where nothing was measured */
void page_shares(struct page *page);
void page_measures(struct page *page); /* within it */
void page_floor(struct page *page);
void page_configuration(struct page *page);
int page_has_ranks(const struct page *page); /* 0: both arms are of one rank */
void page_ranks(struct page *page);          /* nothing then */
void page_updates(struct page *page);
void page_runs(struct page *page);
void page_machine(struct page *page);
TWINSTEP_MUST_USE enum status page_reproduce(struct page *page);

/* The whole page of the first run of a trace that another program wrote. */
TWINSTEP_MUST_USE enum status page_foreign(struct page *page);
/* The whole page of an imported log. */
TWINSTEP_MUST_USE enum status page_log(struct page *page);
/* That of what `twinstep rollout` measured. */
TWINSTEP_MUST_USE enum status page_rollout(struct page *page);

#endif
