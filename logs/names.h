/* SPDX-License-Identifier: Apache-2.0
 * What the training tools call our quantities. Private to logs/.
 *
 * Spellings are those of the tools' sources (docs/LOGS.md says which are known); compared without
 * regard to case, `train/` stripped. Everything under eval is LOG_OTHER but its loss. */
#ifndef TWINSTEP_LOGS_NAMES_H
#define TWINSTEP_LOGS_NAMES_H

#include "logs/log.h"

struct log_known {
    const char *source;
    int32_t name;       /* enum log_name */
    int32_t rank;       /* of several columns of one name the lowest rank has it */
    uint8_t cumulative; /* a running total */
};

/* NULL: not known. */
const struct log_known *log_known_name(const char *source, size_t length);

/* "lr_logged" -> LOG_LR_LOGGED; LOG_OTHER when it is no name of ours. */
enum log_name log_name_by_text(const char *text);

/* Whether it counts something, so that a whole number of it is exact. */
int log_name_counts(int32_t name);

#endif
