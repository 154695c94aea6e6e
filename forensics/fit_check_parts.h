/* SPDX-License-Identifier: Apache-2.0
 * The parts of fit_check, one file each. Private to forensics/fit_check*.c. */
#ifndef TWINSTEP_FORENSICS_FIT_CHECK_PARTS_H
#define TWINSTEP_FORENSICS_FIT_CHECK_PARTS_H

#include "forensics/fit_search.h"

/* Cost (forensics/fit_cost.c) by which another explanation may be dearer than the expectation with
 * skipped updates and still be its rival: what a contract that is a bug costs more than one that is
 * none, less what skips cost. So much dearer than a bug may a first update apart be. */
#define FIT_CHECK_SIMPLER 0.25

/* Returns a set without fits, with the largest update of the series. */
struct fit_set fit_check_bare(const struct series *series);
/* Returns the largest |LR| of the series, or 1 where there is none above 0. */
double fit_check_scale(const struct series *series);
/* Finds what explains the column under any contract. */
TWINSTEP_MUST_USE enum status fit_check_search_all(const struct series *series,
                                                   const struct fit_known *known,
                                                   struct arena *arena, struct fit_set *out);

/* ---- the expectation (forensics/fit_check_expect.c) ---- */

/* Settles total and warm-up of the request as far as options and log say them, and notes in `out`
 * which numbers nobody gave. */
TWINSTEP_MUST_USE enum status fit_check_settle(const struct series *series, struct fit_known *known,
                                               struct arena *arena, struct fit_check *out);
/* Tells whether the schedule follows a metric that is not there. */
int fit_check_lacks_metric(const struct fit_known *known);
/* Makes the expectation and compares it. With `skipping`, a fit of its contract, the updates are
 * skipped that the fit needs. */
TWINSTEP_MUST_USE enum status fit_check_expect(const struct series *series,
                                               const struct fit_known *known,
                                               const struct fit *skipping, struct arena *arena,
                                               struct fit_check *out);

/* ---- ways to agree (forensics/fit_check_match.c): each sets out->expected where it does ---- */

TWINSTEP_MUST_USE enum status fit_check_match(const struct series *series,
                                              const struct fit_known *known, struct arena *arena,
                                              struct fit_check *out);
TWINSTEP_MUST_USE enum status fit_check_match_unseen(const struct series *series,
                                                     const struct fit_known *known,
                                                     struct arena *arena, struct fit_check *out);
TWINSTEP_MUST_USE enum status fit_check_match_among(const struct series *series,
                                                    const struct fit_known *known,
                                                    const struct fit_set *all, struct arena *arena,
                                                    struct fit_check *out);
TWINSTEP_MUST_USE enum status fit_check_match_floors(const struct series *series,
                                                     const struct fit_known *known,
                                                     struct arena *arena, struct fit_check *out);
TWINSTEP_MUST_USE enum status fit_check_match_skips(const struct series *series,
                                                    const struct fit_known *known,
                                                    struct arena *arena, struct fit_check *out);
/* Tries the expectation with update 1 skipped at the floor of the best of `all`, where that is a
 * scheduler one update late and nobody gave a floor. */
TWINSTEP_MUST_USE enum status fit_check_match_late(const struct series *series,
                                                   const struct fit_known *known,
                                                   const struct fit_set *all, struct arena *arena,
                                                   struct fit_check *out);

/* ---- where nothing agrees (forensics/fit_check_mismatch.c) ---- */

/* `asked` is the request as it came, before the log and the contract completed it, and `all` what
 * explains the column. */
TWINSTEP_MUST_USE enum status fit_check_mismatch(const struct series *series,
                                                 const struct fit_known *known,
                                                 const struct contract_request *asked,
                                                 const struct fit_set *all, struct arena *arena,
                                                 struct fit_check *out);
/* Tells whether no warm-up makes the expected schedule, which falls, print the rows, with up to
 * *skipped updates skipped before any of them; where its total was fitted, no total up to 2^30
 * updates either. Returns 0 where one may, and where the bounds say nothing of the schedule
 * (forensics/fit_check_flat.c). */
int fit_check_refutes_flat(const struct series *series, const struct fit_known *known,
                           const struct fit_check *out, uint64_t *skipped);
/* Finds the reading of the column as a schedule that stands still: the expected contract's, or any.
 */
TWINSTEP_MUST_USE enum status fit_check_find_stop(const struct fit_known *known,
                                                  const struct fit_set *set, struct arena *arena,
                                                  struct fit_stop *out);

/* ---- what a failure leaves open (forensics/fit_check_open.c) ---- */

/* Takes over the numbers of what explains the column under another contract: schedule, peak, floor
 * and parameters, with the warm-up and the total as they are or one update more or less; the cosine
 * with restarts that a cosine stands for whose counter goes back; and from a peak that was given,
 * the line of which the rows show a stretch. Sets out->expected where the expected contract prints
 * every row with them. No number that was given is replaced. */
TWINSTEP_MUST_USE enum status fit_check_match_borrowed(const struct series *series,
                                                       const struct fit_known *known,
                                                       const struct fit_set *all,
                                                       struct arena *arena, struct fit_check *out);
/* Tells whether a failure stands beside what was borrowed (its `expected` is NULL where nothing
 * prints the column): a bug with numbers that somebody would type stands beside an expectation that
 * has none such, and any explanation stands beside nothing, where it proves enough by itself. */
int fit_check_stands(const struct fit_known *known, const struct fit_check *out,
                     const struct fit_check *borrowed);
/* Tells whether a floor, a share of the peak `lr`, was given, or somebody would type it as a share
 * or as an LR. */
int fit_check_floor_is_typed(const struct fit_known *known, double floor, double lr);
/* Withdraws a failure where the schedule was given and neither the warm-up nor the total, and the
 * rows rise as the expected contract does within a warm-up that none of them shows the end of. */
TWINSTEP_MUST_USE enum status fit_check_doubt_rising(const struct series *series,
                                                     const struct fit_known *known,
                                                     struct arena *arena, struct fit_check *out);
/* Withdraws a failure that does not stand. */
TWINSTEP_MUST_USE enum status fit_check_doubt_unproven(const struct fit_known *known,
                                                       struct arena *arena, struct fit_check *out);

/* ---- doubts (forensics/fit_check_doubt.c): each withdraws a pass, and says what would decide ----
 */

/* Judges an expectation that needs skipped updates, beside what explains the column without any. */
TWINSTEP_MUST_USE enum status fit_check_judge_skips(const struct series *series,
                                                    const struct fit_known *known,
                                                    struct arena *arena, struct fit_check *out);
/* Doubts skipped updates which nothing shows where a slip prints the same rows without any: a
 * scheduler that lost steps at a resume, other lengths, more of them in a row than a scaler skips,
 * or a last row alone. */
TWINSTEP_MUST_USE enum status fit_check_doubt_slips(const struct series *series,
                                                    const struct fit_known *known,
                                                    struct arena *arena, struct fit_check *out);
/* Withdraws a failure where the schedule was given and no total was, and with one that lies far
 * behind the last row the expectation prints every row. */
TWINSTEP_MUST_USE enum status fit_check_doubt_total(const struct series *series,
                                                    const struct fit_known *known,
                                                    struct arena *arena, struct fit_check *out);
/* Withdraws a failure where neither the schedule nor the warm-up was given, and the rows lie in a
 * warm-up of the expected contract that may lead to the peak that was given. */
TWINSTEP_MUST_USE enum status fit_check_doubt_peak(const struct fit_known *known,
                                                   struct arena *arena, struct fit_check *out);
/* Doubts skipped updates that something else prints, too, and that the log does not show. */
void fit_check_doubt_shown(const struct series *series, const struct fit_known *known,
                           struct fit_check *out);
/* Doubts skipped updates that the log does not show, where numbers beside those of the expectation
 * print every row without any. */
TWINSTEP_MUST_USE enum status fit_check_doubt_beside(const struct series *series,
                                                     const struct fit_known *known,
                                                     struct arena *arena, struct fit_check *out);
/* Doubts a floor that nobody gave. */
TWINSTEP_MUST_USE enum status fit_check_doubt_floor(const struct fit_known *known,
                                                    struct arena *arena, struct fit_check *out);
/* Doubts a schedule that nobody gave and whose falls nothing explains: one, or one a row, or any
 * where the log has a metric that they would have followed. */
void fit_check_doubt_drop(const struct fit_known *known, struct fit_check *out);
/* Doubts a total, a floor and a peak that nobody gave. */
TWINSTEP_MUST_USE enum status fit_check_doubt_numbers(const struct fit_known *known,
                                                      struct arena *arena, struct fit_check *out);
/* Doubts a warm-up and a total of samples, where `all` that explains the column over updates has
 * another contract with the log's own total, or where the total is another one than the log's and
 * no row lies behind it. `known` counts updates. */
TWINSTEP_MUST_USE enum status fit_check_doubt_samples(const struct fit_known *known,
                                                      const struct fit_set *all,
                                                      struct arena *arena, struct fit_check *out);
/* Doubts a line to a floor that nobody gave, where the line to 0 with a total of a few updates more
 * prints the rows. */
TWINSTEP_MUST_USE enum status fit_check_doubt_longer(const struct fit_known *known,
                                                     struct arena *arena, struct fit_check *out);
/* Doubts a floor, or another parameter, that the fit has in place of the default of a schedule that
 * was given. */
TWINSTEP_MUST_USE enum status fit_check_doubt_assumed(struct arena *arena, struct fit_check *out);
/* Doubts numbers that were taken over from another contract's fit. */
void fit_check_doubt_borrowed(struct fit_check *out);
/* Doubts numbers that were fitted to fewer than three rows. */
void fit_check_doubt_release(const struct fit_known *known, struct fit_check *out);
void fit_check_doubt_few(const struct series *series, struct fit_check *out);

/* ---- what a pass does not show (forensics/fit_check_pace.c) ---- */

/* Sets out->untested where a scheduler that moves twice per update prints every row with those of
 * the lengths doubled that nobody gave. */
TWINSTEP_MUST_USE enum status fit_check_untested(const struct series *series, struct arena *arena,
                                                 struct fit_check *out);

#endif
