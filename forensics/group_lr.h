/* SPDX-License-Identifier: Apache-2.0
 * The LRs of further parameter groups. A trace that is read as a log, and what is exported from
 * it, name the column of the first group "lr_applied" (LOG_LR_APPLIED) or "lr_logged", and that of
 * group k "lr_applied[k]" or "lr_logged[k]", which is LOG_OTHER. Other tools call a printed one
 * "lr-AdamW/pg2", "lr/group_1" or the like. */
#ifndef TWINSTEP_FORENSICS_GROUP_LR_H
#define TWINSTEP_FORENSICS_GROUP_LR_H

#include "logs/log.h"

/* The group of an LR whose name has no number. */
#define GROUP_UNKNOWN UINT32_MAX

struct group_lr {
    int32_t name; /* LOG_LR_APPLIED or LOG_LR_LOGGED */
    uint32_t group;
    const char *source;
    const struct log_column *column[2]; /* of either log; NULL: that log does not have it */
};

/* Writes "group 1 (lr_applied[1])", or "the column lr/head" of one without a number. */
TWINSTEP_MUST_USE enum status group_name(uint32_t group, const char *source, struct arena *arena,
                                         char **out);
/* Sets *out to the columns of further groups that either log has, those of A in its order before
 * those that B alone has. */
TWINSTEP_MUST_USE enum status group_lrs(const struct log *a, const struct log *b,
                                        struct arena *arena, struct group_lr **out, size_t *count);

#endif
