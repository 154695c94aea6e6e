/* SPDX-License-Identifier: Apache-2.0
 * The passes of a search (plain use first, then strides, a first update apart, segments) and what
 * is made of their findings: words, and rivals. Private to forensics/fit*.c.
 *
 * Invariant: a later pass runs only where the earlier ones explain nothing or contradict a number
 * that is known. */
#ifndef TWINSTEP_FORENSICS_FIT_SEARCH_H
#define TWINSTEP_FORENSICS_FIT_SEARCH_H

#include "forensics/fit_solve.h"

#define FIT_SEGMENTS 64
#define FIT_FOUND 4096

struct fit_found {
    struct fit_solution solution;
    int foreign; /* 1: the log's format does not speak for its contract */
    double cost;
    uint8_t first_differs;
    const struct fit_segment *segments; /* NULL: one plain segment */
    size_t segment_count;
    int opened;              /* 1: a warm-up stood for the rows before the first break */
    const uint64_t *skipped; /* NULL: what the request says */
    size_t skipped_count;
    const struct fit_skip *skips;
    size_t skip_count;
    const struct fit_part *parts; /* NULL: there is one */
    size_t part_count;
};

struct fit_search {
    const struct series *series;
    const struct fit_known *known;
    struct arena *arena;
    struct fit_model *models;
    size_t model_count;
    const struct fit_decays *decays;
    struct fit_found *found; /* FIT_FOUND */
    size_t count;
    double scale;
    size_t budget; /* evaluations that are left; a search that runs out ends with what it has */
    size_t totals; /* of these, for another total behind a resume (forensics/fit_totals.c) */
    /* 1: schedules that are used much come first, as a scan for totals may take all evaluations
     * before the later models come to their turn. */
    int usual_first;
    uint64_t walk;  /* steps of recursive schedules that are left */
    size_t suspect; /* the point at which the last verification failed */
    uint64_t last;  /* largest update of the series */
    size_t longest; /* points of the longest prefix that anything fits */
    const struct fit_model *partial;
    struct fit_numbers partial_numbers;
};

TWINSTEP_MUST_USE enum status fit_search_run(struct fit_search *search);
/* Runs the pass for skipped updates (forensics/fit_skips.c). */
TWINSTEP_MUST_USE enum status fit_search_skips(struct fit_search *search);
/* Where nobody said a total and all that was found holds at some rows, or nothing was found: tries
 * skipped updates with the totals that a stretch of rows between two of them gives, and puts them
 * in place of the holds where they are simpler (forensics/fit_skips.c). The log of a run that was
 * copied before its end shows its total nowhere else. It has a budget of its own. */
TWINSTEP_MUST_USE enum status fit_search_stretch(struct fit_search *search);
/* Takes out what was found and what the skipped updates that the log counts contradict, as no lag
 * of its rows has so many, and stores it in `aside`, which has room for all that was found; *count
 * is how many they are. */
TWINSTEP_MUST_USE enum status fit_search_set_aside(struct fit_search *search,
                                                   struct fit_found *aside, size_t *count);
/* Leaves out what was found of a constant column and what the skipped updates that the log shows
 * exclude. */
void fit_search_hold(struct fit_search *search);
/* Runs the pass for segments (forensics/fit_segments.c). */
TWINSTEP_MUST_USE enum status fit_search_segments(struct fit_search *search);
/* Runs all models on the points [first, end) and adds what fits. */
void fit_search_window(struct fit_search *search, const struct fit_window *like, size_t first,
                       size_t end, uint8_t first_differs);
/* Tells whether the log ends behind the last LR, and before the next one would have stood. */
int fit_search_ends_behind(const struct fit_search *search);
void fit_search_template(struct fit_search *search, struct fit_window *out);
void fit_search_add(struct fit_search *search, const struct fit_found *found);
/* Tells whether the contract is one update behind by itself, as with one skipped update. */
int fit_contract_is_late(const struct contract *contract);
/* Tells whether two models are one function of the counter and the numbers. */
int fit_models_one_function(const struct fit_model *a, const struct fit_model *b);
/* Tells whether what solves one is to be tried on the other, where it is verified: they are one
 * function of the numbers at most updates, and equal_columns (fit_search.c) says where not. */
int fit_models_alike(const struct fit_model *a, const struct fit_model *b);
/* Returns how far an explanation departs from what is known or usual (forensics/fit_cost.c);
 * smaller is simpler. */
double fit_cost(const struct fit_search *search, const struct fit_found *found);
/* Returns that cost without the warm-up and the skipped updates, which can stand for each other: a
 * longer warm-up prints the same as one more update that was skipped in it. */
double fit_cost_beside_skips(const struct fit_search *search, const struct fit_found *found);
/* Tells whether the model is a schedule that is used much, with its own parameters. */
int fit_is_usual(const struct fit_model *model);
/* Tells whether it contradicts no number that is known. */
int fit_agrees(const struct fit_search *search, const struct fit_found *found);

/* Lists the lengths that a decay behind a plateau may have: from the end of the plateau to the end
 * of the run, give or take two updates, as the conventions of the contracts differ by that much at
 * either end. Where rows lie far apart, or where updates may have been skipped, the plateau may
 * have ended elsewhere: then the shares of the run that people type are tried as well, of those
 * that end there. Where nobody said the end, the rows of the decay give it, with its floor. */
void fit_find_decays(const struct series *series, const struct fit_known *known, double scale,
                     uint64_t last, struct fit_decays *out);

/* ---- feedback schedules (forensics/fit_plateau.c), which no counter explains ---- */

/* Adds what reduce_lr_on_plateau explains to the list, in its rank. With the request's metric the
 * fit follows that metric, and patience and the rest are found. Without one, or where it explains
 * nothing, the drops are taken as they are, and the text says what the log does not tell. */
TWINSTEP_MUST_USE enum status fit_plateau(const struct fit_search *search, struct fit_set *set);

/* Adds what PyTorch's own schedulers explain (SequentialLR, ExponentialLR, PolynomialLR), where
 * nothing else explains the column (forensics/fit_torch.c). */
TWINSTEP_MUST_USE enum status fit_torch(const struct fit_search *search, struct fit_set *set);

/* Sets fit.unseen_warmup and the peaks that go with it (forensics/fit_hidden.c). */
void fit_find_unseen(const struct fit_search *search, struct fit_model *model, struct fit *out);

/* Tells whether the last LR stands for so many rows that it moves no longer, by how long those
 * before it stood (forensics/fit_stop.c). */
int fit_end_stands(const struct series *series);

/* ---- floors that the rows do not reach (forensics/fit_stop.c) ---- */

/* Begins with `at` 0. `peak` makes shares of LRs; `schedule` of NULL means any that has a floor. */
struct fit_floors {
    size_t at;
    double peak;
    const char *schedule;
};
/* Puts the next floor below an LR that configurations have (shares of the peak, and LRs) into a
 * request, and a schedule that falls to one. Returns 0 at the end. A search reads a floor off rows
 * that reach it; elsewhere each pair of total and floor has its line, so the total must be known.
 */
int fit_next_floor(struct fit_floors *floors, double below, struct contract_request *request);
/* Evaluations of a search whose schedule, total and floor are set, so that only a warm-up and a
 * peak are open. One column may need 112 of these searches, two for each of 56 such pairs of
 * schedule and floor. */
#define FIT_OF_ONE_FLOOR 40000

/* ---- what the log counts (forensics/fit_counts.c) ---- */

struct fit_refuted {
    size_t point;     /* the first row that the counts leave no lag for */
    uint64_t skipped; /* updates that the log counts up to it */
    double expected;  /* the LR that it would print with them */
};
/* Tells whether the skipped updates that the log counts refute a fit without any, of a contract
 * whose schedule holds at them: some row up to the first resume prints the LR of no counter that
 * lags so far behind. `scale` is the largest |LR| of the series. */
int fit_counts_refute(const struct fit *fit, const struct fit_known *known,
                      const struct series *series, double scale, struct fit_refuted *out);

/* ---- in words (forensics/fit_words.c) ---- */

TWINSTEP_MUST_USE enum status fit_describe(const struct fit *fit, struct arena *arena,
                                           const char **out);
/* Sets the fit's text and bug. */
TWINSTEP_MUST_USE enum status fit_words(const struct fit_search *search, struct fit *fit);
TWINSTEP_MUST_USE enum status fit_words_partial(const struct fit_search *search, const char **out);
/* Returns the first update that the two apply differently within the run, or 0. */
uint64_t fit_applied_apart(const struct fit *a, const struct fit *b, const struct fit_set *set);
/* Tells whether every point of `a` is what `b` logs `by` updates later, up to rounding. Points
 * whose counterpart would lie before update 1 are left out; there must be others. */
int fit_logs_shifted(const struct fit *a, const struct fit *b, int by, const struct series *series);

/* ---- rivals of an expectation (forensics/fit_rivals.c) ---- */

/* Finds the fits with the expectation's numbers under every other contract that can log them. */
TWINSTEP_MUST_USE enum status fit_find_rivals(const struct series *series,
                                              const struct fit_known *known,
                                              const struct fit *expected, struct arena *arena,
                                              struct fit_set *out);
/* Sets verdict, rival and needs: a match passes only where no rival applies other LRs. */
TWINSTEP_MUST_USE enum status fit_judge_rivals(const struct fit_known *known, int applied,
                                               struct arena *arena, struct fit_check *out);

/* Tells whether another fit is a plain one of the expected framework, as it is or one update off:
 * of the log's own format, a scheduler that is one update late, or a contract with the same family
 * of schedules. */
int fit_is_beside(const struct fit_known *known, const struct fit *fit);
/* Looks for a much simpler explanation, where nobody gave the schedule: a match may then lean on
 * numbers that nobody would type, also where the peak was given. It stays a pass only while no
 * other contract of fit_is_beside explains the column much more simply and is another training. */
TWINSTEP_MUST_USE enum status fit_judge_plainer(const struct series *series,
                                                const struct fit_known *known, struct arena *arena,
                                                struct fit_check *out);

#endif
