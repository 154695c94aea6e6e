/* SPDX-License-Identifier: Apache-2.0
 * One line of JSONL as one sequence. Private to rollout/. */
#ifndef TWINSTEP_ROLLOUT_JSON_LINES_H
#define TWINSTEP_ROLLOUT_JSON_LINES_H

#include "logs/scan.h"
#include "rollout/fields.h"

struct rollout_line {
    const struct rollout_naming *naming;
    enum rollout_field lone; /* as of rollout_field_of() */
    const char *file;
    const unsigned char *bytes; /* of the line */
    size_t length;
    uint32_t number;
    const char **names;  /* [ROLLOUT_FIELDS] gets the names that were used */
    struct arena *arena; /* of lists and names */
};

/* Reads the line's object into *out. */
TWINSTEP_MUST_USE enum status rollout_line_read(const struct rollout_line *line,
                                                struct rollout_sequence *out);

#endif
