/* SPDX-License-Identifier: Apache-2.0
 * Reads and writes rows of the table of functions in docs/DETERMINISM.md. */
#include "tests/base/proof/claim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void claim_format(char row[CLAIM_ROW], const char *name, const struct proof_tally *tally, int two) {
    char at[80];
    if (two)
        snprintf(at, sizeof at, "%a, %a", tally->at, tally->at_y);
    else
        snprintf(at, sizeof at, "%a", tally->at);
    snprintf(row, CLAIM_ROW, "| %s | %" PRIu64 " | %" PRIu64 " | %.9f | %s | `%016" PRIx64 "` |",
             name, tally->inputs, tally->misrounded, tally->worst, at, tally->hash);
}

int claim_find(char row[CLAIM_ROW], const char *name) {
    FILE *file = fopen(TWINSTEP_SOURCE_DIR "/docs/DETERMINISM.md", "r");
    char start[64], line[1024];
    int found = 0;
    if (file == NULL) return 0;
    snprintf(start, sizeof start, "| %s |", name);
    while (!found && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, start, strlen(start)) != 0) continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(row, CLAIM_ROW, "%.*s", CLAIM_ROW - 1, line);
        found = 1;
    }
    fclose(file);
    return found;
}

double claim_error(const char *name) {
    char row[CLAIM_ROW];
    if (!claim_find(row, name)) return -1.0;
    const char *cell = row;
    for (int bar = 0; bar < 4; bar++) {
        cell = strchr(cell, '|');
        if (cell == NULL) return -1.0;
        cell++;
    }
    return strtod(cell, NULL);
}
