/* SPDX-License-Identifier: Apache-2.0
 * What `data show` prints of a data set: totals, notes, and the first samples token by token. */
#ifndef TWINSTEP_CLI_DATA_SHOW_PRINT_H
#define TWINSTEP_CLI_DATA_SHOW_PRINT_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "data/dataset.h"
#include "data/vocabulary.h"

struct data_print {
    uint64_t samples; /* the number of samples to show */
    int all; /* shows every token; else stretches without a change of the mask are left out */
    const struct vocabulary *vocabulary; /* spells the ids; NULL: their text is not known */
    const char *why; /* why the text is not known; NULL: nothing names a vocabulary */
};

void data_print_text(const struct dataset *dataset, const struct data_print *print, FILE *out);

json_t *data_print_json(const struct dataset *dataset,
                        const struct data_print *print); /* NULL if there is no memory */

/* The findings of data_check() alone: one line "warning: ..." each, or a list of texts. */
void data_print_warnings(const struct dataset *dataset, FILE *out);
json_t *data_warnings_json(const struct dataset *dataset);

#endif
