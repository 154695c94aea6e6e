/* SPDX-License-Identifier: Apache-2.0
 * One sweep over the sorted ends. A lower end opens before an upper end of the same value closes,
 * so intervals that touch in one point share it. */
#include "readback/votes.h"

#include <math.h>

#include "base/sort.h"

enum status votes_open(struct votes *votes, size_t room, struct arena *arena) {
    *votes = (struct votes){.room = room};
    TRY(arena_take(arena, room, sizeof *votes->intervals, "votes", &votes->intervals));
    return arena_take(arena, room, sizeof *votes->spare, "votes", &votes->spare);
}

void votes_clear(struct votes *votes) {
    votes->count = 0;
    votes->asked = 0;
}

static int is_narrower(const void *a, const void *b, const void *context) {
    const struct votes_interval *const x = (const struct votes_interval *)a;
    const struct votes_interval *const y = (const struct votes_interval *)b;
    (void)context;
    const double width_x = x->high - x->low, width_y = y->high - y->low;
    return width_x < width_y || (width_x == width_y && x->low < y->low);
}

/* Drops the wider half. Which ones stay does not depend on the order in which they came, but for
 * those dropped before; so that even this cannot move an answer, the caller gives room for all
 * elements of a small model. */
static void drop_wider(struct votes *votes) {
    struct votes_interval *const sorted = (struct votes_interval *)sort_stable(
        votes->intervals, votes->spare, votes->count, sizeof *sorted, is_narrower, NULL);
    if (sorted == votes->spare) votes->spare = votes->intervals;
    votes->intervals = sorted;
    votes->count /= 2;
}

void votes_add(struct votes *votes, double low, double high) {
    if (!(low <= high)) return;
    votes->asked++;
    if (votes->count == votes->room) drop_wider(votes);
    votes->intervals[votes->count++] = (struct votes_interval){low, high};
}

static int is_less(const void *a, const void *b, const void *context) {
    (void)context;
    return *(const double *)a < *(const double *)b;
}

/* The ends of all intervals in ascending order. */
struct ends {
    const double *lows, *highs;
    size_t count;
};

/* Walks over the ends and keeps the largest number of open intervals in `for_it`. With a `least`
 * number it also keeps from where to where so many are open. */
static void sweep(const struct ends *ends, size_t least, struct votes_answer *out) {
    size_t low = 0, open = 0, found = 0;
    for (size_t high = 0; high < ends->count; high++) {
        for (; low < ends->count && ends->lows[low] <= ends->highs[high]; low++) {
            open++;
            if (open > out->for_it) out->for_it = open;
            if (least == 0 || open < least || found++ > 0) continue;
            out->low = ends->lows[low];
        }
        if (least > 0 && open == least) out->high = ends->highs[high];
        open--;
    }
}

/* Both arrays are memory of an arena with room for two numbers for each interval: the ends
 * are sorted in the one with the other as room. Afterwards no interval is left. */
struct votes_answer votes_count(struct votes *votes, size_t lenient) {
    struct votes_answer out = {-(double)INFINITY, (double)INFINITY, 0, votes->count};
    const size_t n = votes->count;
    votes->count = 0;
    if (n == 0) return out;
    double *const ends = (double *)(void *)votes->spare;
    double *const room = (double *)(void *)votes->intervals;
    for (size_t i = 0; i < n; i++) {
        ends[i] = votes->intervals[i].low;
        ends[n + i] = votes->intervals[i].high;
    }
    const struct ends sorted = {
        (const double *)sort_stable(ends, room, n, sizeof *ends, is_less, NULL),
        (const double *)sort_stable(ends + n, room + n, n, sizeof *ends, is_less, NULL), n};
    sweep(&sorted, 0, &out);
    sweep(&sorted, out.for_it > lenient ? out.for_it - lenient : 1, &out);
    return out;
}
