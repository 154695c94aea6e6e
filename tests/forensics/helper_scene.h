/* SPDX-License-Identifier: Apache-2.0
 * Scenes for the doctor: logs with one thing wrong, and their innocent neighbours. */
#ifndef TWINSTEP_TESTS_FORENSICS_HELPER_SCENE_H
#define TWINSTEP_TESTS_FORENSICS_HELPER_SCENE_H

#include "forensics/doctor/doctor.h"
#include "tests/forensics/helper_log.h"

struct patient {
    struct arena arena;
    struct log *log; /* helper_dpo, until a scene changes it */
    struct doctor_options options;
    int fits; /* 1: fit the LR column */
};

/* What the doctor must say of a scene. `finding` is the one finding that must be there, alone
 * except for `second` (NULL: none). `remark` must be among the remarks (NULL: any will do). `check`
 * and `result` say what one line must be. */
struct scene {
    const char *name;
    void (*make)(struct patient *patient);
    const char *finding;
    int confidence;
    const char *second;
    const char *remark;
    const char *check;
    int result;
};

#define FOUND(make, finding, confidence)                                                           \
    { #make, make, finding, DOCTOR_##confidence, NULL, NULL, NULL, 0 }
#define BOTH(make, first, confidence, second)                                                      \
    { #make, make, first, DOCTOR_##confidence, second, NULL, NULL, 0 }
#define QUIET(make)                                                                                \
    { #make, make, NULL, 0, NULL, NULL, NULL, 0 }
#define REMARK(make, remark)                                                                       \
    { #make, make, NULL, 0, NULL, remark, NULL, 0 }
#define LINE(make, check, result)                                                                  \
    { #make, make, NULL, 0, NULL, NULL, check, DOCTOR_##result }
#define SCENES_END                                                                                 \
    { NULL, NULL, NULL, 0, NULL, NULL, NULL, 0 }

/* Each table ends with a scene without a name. */
extern const struct scene scenes_of_values[]; /* losses, gradients, rewards */
extern const struct scene scenes_of_lr[];     /* learning rates, resumes, counts, formats */
extern const struct scene scenes_of_runs[];   /* the log as a whole */

/* Puts a value that is printed exactly. */
void scene_put(struct patient *p, enum log_name name, size_t row, double value);

#endif
