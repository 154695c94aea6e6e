/* SPDX-License-Identifier: Apache-2.0
 * Which runs an ablation has, in which order, and the text that decides what they are: two
 * ablations with one text have the same runs, so a folder can be continued. Runs nothing. */
#ifndef TWINSTEP_ABLATE_ABLATE_PLAN_H
#define TWINSTEP_ABLATE_ABLATE_PLAN_H

#include "ablate/ablate_file.h"
#include "ablate/ablate_leaves.h"
#include "determinism/digest.h"
#include "determinism/orders.h"

#define ABLATE_ID 48

/* In this order. Of the hybrids, those between are run only where the arms differ. A stage of noise
 * is run only where repeats of an arm differ; where they are equal, the judge picks up to
 * ABLATE_AGAIN_MOST hybrids that its answer hangs on, and their second runs are made, of whatever
 * stage these are. */
enum ablate_stage {
    ABLATE_ARMS = 0,
    ABLATE_ARMS_NOISE,
    ABLATE_HYBRIDS, /* each factor alone, all but each, those between, and all of them last */
    ABLATE_HYBRIDS_NOISE,
    ABLATE_HYBRIDS_AGAIN, /* second runs of hybrids that noise needs none of */
    ABLATE_STAGES
};
#define ABLATE_AGAIN_MOST 4

#define ABLATE_NO_ARM (-1)

struct ablate_run {
    char id[ABLATE_ID]; /* "baseline-1", "test-2", "hybrid-010", "hybrid-010-2" */
    enum ablate_stage stage;
    int arm;            /* 0 baseline, 1 test, or ABLATE_NO_ARM for a hybrid */
    uint32_t mask;      /* the factors that have the test arm's level */
    uint32_t replicate; /* from 1 */
};

struct ablate_plan {
    const struct ablate_file *file;
    struct leaves *leaves; /* (composed files) */
    int **owner;           /* (composed files)(leaves that differ) the factor of each */
    const char *folder;    /* in which commands run: the working folder */
    uint32_t *masks;       /* of the hybrids, ascending: 0 is the baseline, the last one has all */
    uint32_t mask_count;
    struct orders orders;    /* sampled orders of entry where factors are many; count 0: none */
    struct ablate_run *runs; /* in an order in which arms change places, for several slots */
    uint32_t run_count;
    uint32_t *turns; /* the runs in the order in which one slot makes them: repeats are shuffled */
    uint32_t stage_runs[ABLATE_STAGES];
    char *text;          /* every line that decides what is run, input files by their digests */
    const char **inputs; /* the files that are there and that the commands name, as in the text */
    size_t input_count;
    struct digest digest;
};

/* Plans. STATUS_IO or STATUS_INPUT: the working folder has no name, or an input cannot be read. */
TWINSTEP_MUST_USE enum status ablate_plan_open(const struct ablate_file *file, struct arena *arena,
                                               struct ablate_plan *out);

/* Does the same for bisect-command: each version may be run, and `mask` is its index. */
TWINSTEP_MUST_USE enum status bisect_plan_open(const struct ablate_file *file, struct arena *arena,
                                               struct ablate_plan *out);

/* Counts the hybrids that may, at most, be run once more over an exact floor. */
uint32_t ablate_plan_again(const struct ablate_plan *plan);

/* Counts the further runs of arms that differ over an exact floor, where every command repeats:
 * those that chance asks for (ablate_chance.h). */
uint32_t ablate_plan_confirm(const struct ablate_plan *plan);

/* Counts the hybrids that are run where the arms are equal over an exact floor: each factor alone,
 * all but each, and all, which together show whether factors cancel; 0: none. And those of them
 * that may, at most, be run once more. */
uint32_t ablate_plan_if_equal(const struct ablate_plan *plan);
uint32_t ablate_plan_again_if_equal(const struct ablate_plan *plan);

/* Says whether a hybrid has neither one factor alone, nor all but one, nor all. */
int ablate_is_between(const struct ablate_plan *plan, uint32_t mask);

/* The plan's text without the inputs that `kept`, the text of the same plan at an earlier time, has
 * not: files that were not there when it was made are written by runs, whoever names them. */
TWINSTEP_MUST_USE enum status ablate_plan_without_outputs(const struct ablate_plan *plan,
                                                          const char *kept, struct arena *arena,
                                                          const char **out);

/* Writes the mask as digits, factor 0 first. */
void ablate_mask_text(const struct ablate_plan *plan, uint32_t mask,
                      char out[ABLATE_FACTORS_MAX + 1]);

/* Writes what a composed file holds for the factors of `mask`. */
TWINSTEP_MUST_USE enum status ablate_compose(const struct ablate_plan *plan, uint32_t file,
                                             uint32_t mask, struct arena *arena,
                                             const char **out_text, size_t *out_length);

/* The name of each composed file in braces, which stands for its path where nothing is run. */
TWINSTEP_MUST_USE enum status ablate_file_names(const struct ablate_file *file, struct arena *arena,
                                                const char *const **out);

/* Makes the command and the variables of one run with its placeholders filled. */
TWINSTEP_MUST_USE enum status ablate_command_of(const struct ablate_plan *plan,
                                                const struct ablate_run *run,
                                                const struct ablate_values *values,
                                                struct arena *arena, struct ablate_command *out);

/* Writes a note of the first run that is not told its folder; "" where every run is. */
TWINSTEP_MUST_USE enum status ablate_plan_note(const struct ablate_plan *plan, struct arena *arena,
                                               const char **out);

/* STATUS_INPUT with that note, before anything is run: what such runs leave is read where they did
 * not write, and both arms write to one place. */
TWINSTEP_MUST_USE enum status ablate_plan_check_folder(const struct ablate_plan *plan,
                                                       struct arena *arena);

#endif
