/* SPDX-License-Identifier: Apache-2.0
 * What `twinstep readback` says of one update, and of the same update in two runs, as text and as
 * JSON. Names of tensors and files are escaped on the way to a terminal, because they come from
 * files of others. */
#ifndef TWINSTEP_CLI_READBACK_READBACK_PRINT_H
#define TWINSTEP_CLI_READBACK_READBACK_PRINT_H

#include <jansson.h>
#include <stdio.h>

#include "checkpoints/training_folder.h"
#include "cli/progress.h"
#include "readback/against.h"
#include "readback/update.h"

/* One update of one run. */
struct readback_update {
    const struct training_folder *before, *after;
    struct step step;
    struct update_said said;
    struct update_reading reading;
};

/* `label` stands before the first line: "A: ", or nothing. */
void readback_print(const char *label, const struct readback_update *update, FILE *out);
json_t *readback_json(const struct readback_update *update);

/* The same update of two runs. */
struct readback_pair {
    const struct readback_update *a, *b;
    struct against against;
};

void readback_print_pair(const struct readback_pair *pair, FILE *out);
json_t *readback_pair_json(const struct readback_pair *pair);

/* ---- contracts (readback_contract.c) ---- */

#define READBACK_CONTRACTS 64 /* more than are shipped */

/* Stores the names of the shipped contracts that the update fits; those that are bugs are stored
 * only where no other fits. Returns how many, 0 where the files leave it open or none fits. */
size_t readback_contracts(const struct update_reading *reading, const char *names[], size_t room);
void readback_print_contract(const struct update_reading *reading, FILE *out);
void readback_print_contracts(const struct readback_pair *pair, FILE *out);
json_t *readback_contract_json(const struct update_reading *reading);
/* Returns true where both logs have one LR for the update, and null where a log has none. */
json_t *readback_logged_json(const struct readback_pair *pair);

/* Draws on a terminal how many weights were read so far; a weight counts as often as it is looked
 * at. */
void readback_watch(struct rate_room *room, struct progress *progress);

/* Prints a text without its control characters. */
void readback_print_text(const char *text, FILE *out);

/* The finding that a reader should see first, or NULL. */
const struct update_finding *readback_first(const struct readback_update *update);

#endif
