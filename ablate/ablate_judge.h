/* SPDX-License-Identifier: Apache-2.0
 * Judges an ablation from what its runs left: the floor, whether the arms differ by more, which
 * factor makes how much of it, and whether the factors are all of the difference.
 *
 * The game and the words are those of evidence/attribution.h: shares are Shapley values of
 * <d_S, d_N> / D^2, where d_S is the way from the baseline's end point to that of the hybrid S and
 * N has all factors. An end point is the weights, or, where a run leaves none, its last loss as a
 * vector of one number. Where only digests are known there is equality and nothing else.
 *
 * Invariant: a run that is missing makes NaN of what needs it, and a reason, never a number. */
#ifndef TWINSTEP_ABLATE_ABLATE_JUDGE_H
#define TWINSTEP_ABLATE_ABLATE_JUDGE_H

#include "ablate/ablate_points.h"
#include "evidence/attribution.h"

enum ablate_verdict_kind {
    ABLATE_INSIDE = 0, /* equal, or not told apart from repeats */
    ABLATE_OUTSIDE,
    ABLATE_UNTESTABLE
};

enum ablate_floor {
    ABLATE_FLOOR_OPEN = 0, /* arms are missing */
    ABLATE_FLOOR_EXACT,    /* repeats in other processes are equal */
    ABLATE_FLOOR_NOISY     /* they are not: arms are compared by all relabelings of the runs */
};

enum ablate_closure {
    ABLATE_CLOSURE_ABSENT = 0,
    ABLATE_CLOSURE_EXACT,         /* the full hybrid equals the user's own second command */
    ABLATE_CLOSURE_WITHIN,        /* noisy: its runs are not told apart from those of test */
    ABLATE_CLOSURE_OPEN,          /* it does not: something differs that is no factor */
    ABLATE_CLOSURE_RERUN,         /* both have one command, so it is a rerun; equal, or within */
    ABLATE_CLOSURE_RERUN_DIFFERS, /* a rerun that came out otherwise */
    ABLATE_CLOSURE_UNTESTABLE     /* closure_reason says why */
};
extern const char *const ablate_closure_names[];

/* What a run is in the verdict. */
struct ablate_result {
    enum ablate_state state;
    struct ablate_left left; /* where state is ABLATE_DONE */
    const char *reason;      /* why it failed, or "" */
    const char *place;       /* where it was run: machine and device */
};

struct ablate_judged {
    uint32_t factor;  /* index in the file, or of a group of a joined game */
    const char *name; /* of a group; NULL: that of the factor */
    uint32_t mask;    /* the factors that it stands for, by their index in the file */
    struct attributed share, left, alone;
    /* The pairs of hybrids that differ in this factor alone and were both run, and those of them
     * that are equal in everything that is read. Where all of the plan's are, and the floor is
     * exact, there is no evidence that it acted. A hybrid that failed is evidence. */
    uint32_t pairs, equal;
    uint32_t planned;          /* pairs that the plan has; fewer are there where a run failed */
    uint32_t same[READ_KINDS]; /* pairs that are equal in what this kind shows */
    int inert;
    /* How far the factor alone, and all but it, went from the baseline, in units of the weights, or
     * of the loss; NaN: unknown, or noisy */
    double moves_alone, moves_left;
    int is_idle; /* by the figures: it does nothing in any mixture (attribution_is_idle) */
    int alone_equal, left_equal;  /* to the baseline; -1: not run, or noisy */
    int alone_names;              /* alone, it changes which tensors there are */
    int repeats_alone;            /* noisy: all runs of it alone are equal; -1: not run, or exact */
    double loss_alone, loss_left; /* less the baseline's loss; NaN: unknown */
    struct ablate_first first;    /* where the factor alone parts from the baseline */
};

/* Two or three factors, beside others: the baseline with all of them is what it is without (`in the
 * baseline`), test without them what it is with them, or both; or two, of which neither changes a
 * hybrid without the other one, in so many pairs of hybrids. */
enum ablate_link {
    ABLATE_CANCEL = 0,
    ABLATE_CANCEL_IN_BASELINE,
    ABLATE_CANCEL_IN_TEST,
    ABLATE_TOGETHER
};
struct ablate_linked {
    uint32_t mask;
    enum ablate_link how;
    uint32_t pairs; /* of ABLATE_TOGETHER */
    /* They do not cancel bit for bit, but to within ABLATE_CANCELS of what the least of them and of
     * their mixtures moves. */
    int nearly;
    int is_joined; /* they are one group of the joined game */
    /* Parts of the way to all factors: what all of them move in the baseline, and in test; NaN: it
     * is not known. */
    double moves_base, moves_test;
};
/* So small a part of what each moves alone is next to nothing (docs/decisions/ablate.md). */
#define ABLATE_CANCELS 0.01
#define ABLATE_LINKED_MOST 4

struct ablate_verdict {
    enum ablate_verdict_kind kind;
    const char *reason; /* of ABLATE_UNTESTABLE, else "" */
    enum ablate_floor floor;
    uint32_t floor_runs;    /* of each arm */
    double p, least, alpha; /* of the relabelings; NaN where the floor is exact */
    double repeats;         /* the largest distance of two repeats of an arm; NaN: unknown */
    double nearest;         /* noisy: the smallest distance of two runs of different arms; NaN */
    /* Had the runs of one arm been shifted by more than this, in any direction, p would be `least`:
     * what "not told apart" leaves room for. NaN where the floor is exact. */
    double shift;
    /* Over an exact floor, of arms that differ: commands that take one of two results by chance
     * would show so many equal runs, and this difference, in no more than such a share of
     * ablations. NaN: not so, or a hybrid is still to be run. */
    double chance;
    uint32_t confirm;  /* so many runs of each arm make `chance` less than alpha; 0: no more */
    const char *doubt; /* which hybrid did not repeat over an exact floor; "": none */
    enum ablate_read measure; /* what is read first: weights, a trace, bytes or a log */
    /* Sets of kinds (enum ablate_read), bit by bit: what is read, in what the arms differ, and in
     * what repeats of an arm differ, and of which one. Runs are equal that are equal in everything
     * that is read. */
    unsigned reads, differ, noise, noise_of[2];
    int has_distance;    /* end points are known, and `distance` is that of the arms */
    int by_loss;         /* they are losses */
    int64_t step;        /* of the losses */
    const char *lengths; /* which runs left how many losses, where not all left as many; else "" */
    double distance, full; /* |B - A|, and |d_N| of which the shares are */
    /* Of weights: the tensors of both arms' first runs, which distances are of, whether these are
     * equal to the byte in these runs, and which wrappers the names of each arm had
     * (checkpoints/layers.h). */
    struct ablate_common common;
    int common_equal;
    unsigned wrappers[2];
    struct ablate_shape shape;
    const char *no_shares; /* why there are none; "": there are, or none are to be */
    enum ablate_closure closure;
    const char *closure_reason; /* of ABLATE_CLOSURE_UNTESTABLE, else "" */
    double open; /* |N - B|; under noise that of the two runs that are nearest; NaN: unknown */
    /* Noisy: the same test as of the arms, of so many runs of the full hybrid and those of test;
     * NaN and 0 elsewhere. The shift is known where the two have equally many runs. */
    double closure_p, closure_least, closure_shift;
    uint32_t closure_runs;
    enum attribution_word word;
    struct attribution_joint joint; /* which factors it names, in the order of `factors` */
    /* The arms are equal over an exact floor, so only each factor alone, all but each and all are
     * run, to see whether factors cancel. */
    int asks_cancel;
    uint32_t factor_count;                            /* 0: hybrids were not judged */
    struct ablate_judged factors[ABLATE_FACTORS_MAX]; /* by falling |share| */
    struct ablate_linked linked[ABLATE_LINKED_MOST];  /* over an exact floor, of three and more */
    uint32_t linked_count;
    /* The same verdict with every set of factors that cancels counted as one factor; NULL: there is
     * none, or not all of its mixtures were run. */
    const struct ablate_verdict *joined;
    double loss_gap; /* of the full hybrid, less the baseline's loss */
    double residual;
    uint32_t orders;           /* sampled orders; 0: all hybrids */
    double confidence;         /* of intervals; NaN: there are none */
    struct ablate_first first; /* where the arms part */
    int wants[ABLATE_STAGES];  /* stages whose runs the verdict needs */
    /* Over an exact floor: the hybrids that the answer hangs on, which are run once more, and how
     * many hybrids have no second run that is equal to the first. */
    uint32_t again[ABLATE_AGAIN_MOST], again_count;
    uint32_t once;
    /* Hybrids that were run where no arm was, and the first of them with its place; "": none. */
    uint32_t elsewhere;
    const char *elsewhere_first;
};

/* Writes the names of a set of kinds as words of a sentence: "weights, trace and log". */
#define ABLATE_KINDS_TEXT 40
const char *ablate_kinds_text(unsigned kinds, char out[ABLATE_KINDS_TEXT]);

/* Reads what every finished run left, and holds its digests against `done`. STATUS_INPUT: what a
 * run left was changed afterwards. */
TWINSTEP_MUST_USE enum status ablate_results_open(const struct ablate_folder *folder,
                                                  struct arena *arena, struct ablate_result **out);
void ablate_results_close(const struct ablate_plan *plan, struct ablate_result *results);

/* Judges what is there, and so says what to run next: the runs that ablate_wants names. */
TWINSTEP_MUST_USE enum status ablate_judge(const struct ablate_plan *plan,
                                           const struct ablate_result *results, struct arena *arena,
                                           struct ablate_verdict *out);
int ablate_wants(const struct ablate_plan *plan, const struct ablate_verdict *verdict,
                 const struct ablate_run *run);

#endif
