/* SPDX-License-Identifier: Apache-2.0
 * Manual pages and shell completion, written from the tables that --help is printed from.
 *
 * What a verb takes comes from its struct verb, what a value can be from where the value takes
 * effect (catalogue, contracts, formats, schema). Nothing is typed twice, so nothing can drift;
 * tests/packaging/pages.py holds the results against --help. */
#ifndef TWINSTEP_CLI_PAGES_H
#define TWINSTEP_CLI_PAGES_H

#include <stdio.h>

#include "cli/verb.h"

/* Words that complete a value. The name is "scenarios", "contracts" and the like, or the path of a
 * key whose legal values the words are ("numerics.mode"). */
struct page_source {
    const char *name;
    const char **words; /* none has a blank or a quote in it */
    size_t count;
};

/* Every source there is; `sources` lives in the arena of `cli`. */
TWINSTEP_MUST_USE enum status page_sources(struct cli *cli, struct page_source **sources,
                                           size_t *count);

/* What `twinstep list` can list, in its order; NULL behind the last. It stands in cmd_list.c. */
const char *list_topic(size_t index);

/* What completes a value, or the operands of a verb. */
struct page_offer {
    const char *source; /* name of a page_source; NULL: none */
    int listed;         /* several words between commas */
    int files, folders; /* names of files, of folders alone */
};

/* `option`: a row of the verb; NULL: its operands. */
struct page_offer page_offer(const struct verb *verb, const struct argp_option *option);

/* STATUS_INTERNAL when the table of offers names a verb, an option or a source that is not there.
 */
TWINSTEP_MUST_USE enum status page_offers_check(const struct page_source *sources, size_t count);

/* "lr-table" of "lr table", in NAME of PAGE_NAME bytes. */
#define PAGE_NAME 64
void page_name(const struct verb *verb, char *name);

/* twinstep(1), and the page of one verb. Write errors stay in `out`, for output_close. */
void page_manual(FILE *out);
void page_manual_verb(const struct verb *verb, FILE *out);

/* The tables of completion; the build adds what the shells do with them. */
void page_bash(const struct page_source *sources, size_t count, FILE *out);
void page_zsh(const struct page_source *sources, size_t count, FILE *out);

#endif
