/* SPDX-License-Identifier: Apache-2.0
 * The passes of a search: plain use first, then strides, a first update apart, segments. Private to
 * forensics/fit*.c.
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
};

struct fit_search {
    const struct series *series;
    const struct fit_known *known;
    struct arena *arena;
    struct fit_model *models;
    size_t model_count;
    struct fit_found *found; /* FIT_FOUND */
    size_t count;
    double scale;
    size_t budget;  /* evaluations that are left; a search that runs out ends with what it has */
    uint64_t walk;  /* steps of recursive schedules that are left */
    uint64_t last;  /* largest update of the series */
    size_t longest; /* points of the longest prefix that anything fits */
    const struct fit_model *partial;
    struct fit_numbers partial_numbers;
};

TWINSTEP_MUST_USE enum status fit_search_run(struct fit_search *search);
/* Runs the pass for segments (forensics/fit_segments.c). */
TWINSTEP_MUST_USE enum status fit_search_segments(struct fit_search *search);
/* Runs all models on the points [first, end) and adds what fits. */
void fit_search_window(struct fit_search *search, const struct fit_window *like, size_t first,
                       size_t end, uint8_t first_differs);
void fit_search_template(struct fit_search *search, struct fit_window *out);
void fit_search_add(struct fit_search *search, const struct fit_found *found);
/* Tells whether the two log the same column for the same numbers wherever the first update is past.
 */
int fit_models_alike(const struct fit_model *a, const struct fit_model *b);
/* Returns how far an explanation departs from what is known or usual (forensics/fit_cost.c);
 * smaller is simpler. */
double fit_cost(const struct fit_search *search, const struct fit_found *found);
/* Tells whether it contradicts no number that is known. */
int fit_agrees(const struct fit_search *search, const struct fit_found *found);

#endif
