/* SPDX-License-Identifier: Apache-2.0
 * The folder of an ablation: its plan, one folder for each run, and the claims by which several
 * workers on one file system share the runs.
 *
 *   plan            the plan's text (ablate_plan.h); commands are never taken from it
 *   runs/ID/        command, stdout, stderr, out/ (the run's {dir}); then done or failed
 *   runs/ID.N/      earlier attempts, kept
 *   claims/         NAME: who works on it
 *
 * Invariant: `done` is written last, under its name at once, and with the digests of what the run
 * left; a run without it was not made. Nothing is deleted but claims, and what was made for a
 * command that then could not be started. */
#ifndef TWINSTEP_ABLATE_ABLATE_FOLDER_H
#define TWINSTEP_ABLATE_ABLATE_FOLDER_H

#include "ablate/ablate_plan.h"

struct ablate_folder {
    char *path;       /* absolute */
    int is_made;      /* the folder, by this process */
    int plan_is_made; /* the plan, by this process */
    const struct ablate_plan *plan;
    struct digest digest; /* of the plan that is kept, which knows the inputs of its beginning */
    char *worker;         /* who this process is: host, boot, name space, process, its start */
    const char **left;    /* claims that count as left, though their end cannot be seen */
    size_t left_count;
};

enum ablate_state { ABLATE_ABSENT = 0, ABLATE_DONE, ABLATE_FAILED };

/* Opens or makes the folder. STATUS_INPUT: others may write to it, it is no folder of an ablation,
 * or its plan is another one (the text has the first line that differs). STATUS_IO. */
TWINSTEP_MUST_USE enum status ablate_folder_open(const char *path, const struct ablate_plan *plan,
                                                 struct arena *arena, struct ablate_folder *out);

/* Says whether the run is done or failed. STATUS_INPUT: its `done` is of another plan or is
 * damaged. */
TWINSTEP_MUST_USE enum status ablate_folder_state(const struct ablate_folder *folder,
                                                  const struct ablate_run *run, struct arena *arena,
                                                  enum ablate_state *out);

/* The path of a thing in the run's folder: "stdout", "out", ... "" is the folder itself. */
TWINSTEP_MUST_USE enum status ablate_folder_path(const struct ablate_folder *folder,
                                                 const struct ablate_run *run, const char *name,
                                                 struct arena *arena, char **out);

/* Says whether a process of an earlier attempt still has the run's stdout or stderr open, which its
 * guard locked. 0 where the file system has no locks. */
TWINSTEP_MUST_USE enum status ablate_folder_is_used(const struct ablate_folder *folder,
                                                    const struct ablate_run *run,
                                                    struct arena *arena, int *out);

/* Makes the run's folder with an empty out/; what an earlier attempt left moves to runs/ID.N. */
TWINSTEP_MUST_USE enum status ablate_folder_begin(const struct ablate_folder *folder,
                                                  const struct ablate_run *run,
                                                  struct arena *arena);

/* Removes the folder of a run whose command could not be started: nothing is in it but what was
 * written for that command. What cannot be removed stays. */
void ablate_folder_unbegin(const struct ablate_folder *folder, const struct ablate_run *run,
                           struct arena *arena);
/* Removes the plan where this process made it, and neither a run nor a claim is there, since it
 * would refuse the mended command; and the folder where this process made that. Other workers may
 * open the folder meanwhile: one that has a claim keeps a plan. What cannot be removed stays. */
void ablate_folder_unmake(const struct ablate_folder *folder, struct arena *arena);
/* Its halves, between which a test lets another worker come. First the plan loses its name
 * (*out_aside; NULL: it is to stay), so that whoever opens the folder now writes one; then what is
 * empty is removed, or, where something is not, the name given back. */
void ablate_folder_hide(const struct ablate_folder *folder, struct arena *arena, char **out_aside);
void ablate_folder_end(const struct ablate_folder *folder, const char *aside, struct arena *arena);

/* Writes `done` with the digests (hexadecimal, or NULL) of what was left, and where it was run: the
 * machine, "" for this one, and the device or "". Or writes `failed`. */
TWINSTEP_MUST_USE enum status ablate_folder_done(const struct ablate_folder *folder,
                                                 const struct ablate_run *run,
                                                 const char *const digests[READ_KINDS],
                                                 const char *host, const char *device,
                                                 struct arena *arena);
TWINSTEP_MUST_USE enum status ablate_folder_fail(const struct ablate_folder *folder,
                                                 const struct ablate_run *run, const char *reason,
                                                 struct arena *arena);
/* Reads why it failed; "" if it did not. */
TWINSTEP_MUST_USE enum status ablate_folder_reason(const struct ablate_folder *folder,
                                                   const struct ablate_run *run,
                                                   struct arena *arena, char **out);
/* The digests that `done` holds, NULL where it has none; and where it was run, as one text. */
TWINSTEP_MUST_USE enum status ablate_folder_digests(const struct ablate_folder *folder,
                                                    const struct ablate_run *run,
                                                    struct arena *arena,
                                                    const char *out[READ_KINDS],
                                                    const char **out_place);

/* This process as claims name it; and a name in the folder for a file in the making, which no other
 * worker has, on this machine or another. */
TWINSTEP_MUST_USE enum status ablate_name_worker(struct arena *arena, char **out);
TWINSTEP_MUST_USE enum status ablate_live_name(const struct ablate_folder *folder, const char *name,
                                               struct arena *arena, char **out);

enum ablate_claim {
    CLAIM_TAKEN = 0, /* it is ours now */
    CLAIM_BUSY,      /* a process of this machine that lives has it */
    CLAIM_ELSEWHERE  /* another machine has it, and whether that works on it cannot be seen here */
};

/* Counts the claims of that machine that stand now as left: a person said that it is gone.
 * STATUS_INPUT: one of them is of a process that lives on this machine. */
TWINSTEP_MUST_USE enum status ablate_claims_take_over(struct ablate_folder *folder,
                                                      const char *host, struct arena *arena);

/* Takes the claim of that name, which no two processes have at one time; one whose process of this
 * machine has ended is taken from it. *out_who: who has it, if not we; NULL or "": not known. */
TWINSTEP_MUST_USE enum status ablate_claim_take(const struct ablate_folder *folder,
                                                const char *name, struct arena *arena,
                                                enum ablate_claim *out, char **out_who);
/* Gives a claim that is ours to a process of ours, which may outlive this one: the claim counts for
 * as long as that lives. */
#define ABLATE_HOLDER 512
TWINSTEP_MUST_USE enum status ablate_claim_pass(const struct ablate_folder *folder,
                                                const char *name, long process, struct arena *arena,
                                                char out_holder[ABLATE_HOLDER]);
/* Removes a claim that this holder has: what ablate_claim_pass said, or the worker. */
TWINSTEP_MUST_USE enum status ablate_claim_leave(const struct ablate_folder *folder,
                                                 const char *name, const char *holder,
                                                 struct arena *arena);

#endif
