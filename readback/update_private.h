/* SPDX-License-Identifier: Apache-2.0
 * Parts of the judgement of an update that its files share. */
#ifndef TWINSTEP_READBACK_UPDATE_PRIVATE_H
#define TWINSTEP_READBACK_UPDATE_PRIVATE_H

#include "readback/update.h"

/* Logs print norms of f32 in f32, or in a few digits: a hundred thousandth is above the last one.
 */
#define UPDATE_NORM_DIGITS 1e-5

/* What a judgement reads and writes. */
struct judging {
    const struct step *step;
    struct step_group *settings; /* the groups of `step`, with the numbers that the update used */
    const struct update_said *said;
    struct rate_room *room;
    struct arena *arena;
    struct update_reading *out;
};

/* Half a unit of the last digit that the log's column of LRs, or of norms, shows; 0 where it has
 * all digits of a number. Many loops print two or three. */
double update_log_slack(const struct update_said *said, int is_norm);

/* Adds a finding, or a remark. */
TWINSTEP_MUST_USE enum status update_find(struct judging *in, enum update_finding_kind kind,
                                          int is_remark, uint32_t group, const char *format, ...)
    TWINSTEP_PRINTF(5, 6);

/* Takes for each group the numbers with which the update was made, where they are not those of the
 * file after it. */
void update_settle(struct judging *in);

/* Judge the LR, and everything else, of one group. */
TWINSTEP_MUST_USE enum status update_judge_rate(struct judging *in, uint32_t group);
TWINSTEP_MUST_USE enum status update_judge_count(struct judging *in, uint32_t group);
TWINSTEP_MUST_USE enum status update_judge_decay(struct judging *in, uint32_t group);
TWINSTEP_MUST_USE enum status update_judge_betas(struct judging *in, uint32_t group);
TWINSTEP_MUST_USE enum status update_judge_settings(struct judging *in, uint32_t group);
/* Judge what belongs to no group. */
TWINSTEP_MUST_USE enum status update_judge_moved(struct judging *in);
TWINSTEP_MUST_USE enum status update_judge_norm(struct judging *in);
TWINSTEP_MUST_USE enum status update_judge_scheduler(struct judging *in);
TWINSTEP_MUST_USE enum status update_judge_tensors(struct judging *in);

/* Says which value of the schedule the update applied, once its groups are judged. */
void update_read_schedule(const struct judging *in, struct update_schedule *out);

#endif
