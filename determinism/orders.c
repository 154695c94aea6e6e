/* SPDX-License-Identifier: Apache-2.0
 * Draws orders, lists their hybrids and averages what factors add. Sums run over pairs in the order
 * in which they were drawn, in f64. */
#include "determinism/orders.h"

#include <string.h>

#include "base/arena.h"
#include "base/real.h"
#include "base/sum.h"
#include "determinism/shapley.h"
#include "determinism/statistics.h"
#include "determinism/stream.h"

/* op of the draws' addresses; no kernel draws at it (511 is that of order seeds) */
#define ORDERS_OP 510u
#define PAIRS_LEAST_AUTO 4u /* fewest pairs: they leave Student's t 3 degrees of freedom */

static uint32_t full_mask(uint32_t factors) {
    return (1u << factors) - 1u;
}

static double expected_hybrids(uint32_t factors, uint32_t pairs) {
    double expected = 0.0, sets = 1.0;
    for (uint32_t size = 1; size < factors; size++) {
        sets = sets * (double)(factors - size + 1) / (double)size;
        double missed = 1.0;
        for (uint32_t pair = 0; pair < pairs; pair++)
            missed *= 1.0 - 2.0 / sets;
        const double found = sets * (1.0 - missed);
        expected = sum_chain_terms_f64_f64(expected, &found, 1);
    }
    return expected;
}

uint32_t orders_auto(uint32_t factors) {
    uint32_t pairs = PAIRS_LEAST_AUTO;
    while (2 * (pairs + 1) <= ORDERS_MOST && expected_hybrids(factors, pairs + 1) <= ORDERS_HYBRIDS)
        pairs++;
    return 2 * pairs;
}

uint32_t orders_bound(uint32_t factors, uint32_t count) {
    const uint32_t steps = count * (factors - 1) + 2 * factors, sets = full_mask(factors) - 1;
    return steps < sets ? steps : sets;
}

static enum status check_orders(uint32_t factors, uint32_t count) {
    if (factors >= 2 && factors <= ORDERS_FACTORS && count >= ORDERS_LEAST &&
        count <= ORDERS_MOST && count % 2 == 0)
        return STATUS_OK;
    FAIL(STATUS_INTERNAL,
         "%u orders of %u factors, expected an even number from %d to %d, of 2 to %d factors",
         count, factors, ORDERS_LEAST, ORDERS_MOST, ORDERS_FACTORS);
}

enum status orders_draw(uint64_t seed, uint32_t factors, uint32_t count, struct arena *arena,
                        struct orders *out) {
    TRY(check_orders(factors, count));
    struct stream_card scratch[2 * ORDERS_FACTORS];
    uint32_t order[ORDERS_FACTORS];
    uint8_t *entering;
    struct stream_address address = {.stream = STREAM_ORDER,
                                     .op = ORDERS_OP,
                                     .update = factors,
                                     .last_element = (uint64_t)count * factors - 1};
    struct stream_site site;
    TRY(stream_pack(&address, &site));
    TRY(arena_take(arena, (size_t)count * factors, sizeof *entering, "orders of entry", &entering));
    for (uint32_t pair = 0; pair < count / 2; pair++) {
        uint8_t *forward = entering + (size_t)(2 * pair) * factors, *back = forward + factors;
        stream_permute(seed, site, (uint64_t)pair * 2 * factors, factors, scratch, order);
        for (uint32_t i = 0; i < factors; i++)
            forward[i] = back[factors - 1 - i] = (uint8_t)order[i];
    }
    *out = (struct orders){factors, count, entering};
    return STATUS_OK;
}

enum status orders_masks(const struct orders *orders, struct arena *arena, uint32_t **out_masks,
                         uint32_t *out_count) {
    const uint32_t full = full_mask(orders->factors);
    uint8_t *visited;
    uint32_t *masks, count = 0;
    TRY(arena_take(arena, (size_t)full + 1, sizeof *visited, "hybrids", &visited));
    memset(visited, 0, (size_t)full + 1);
    for (uint32_t i = 0; i < orders->count; i++) {
        uint32_t mask = 0;
        visited[mask] = 1;
        for (uint32_t place = 0; place < orders->factors; place++) {
            mask |= 1u << orders->entering[(size_t)i * orders->factors + place];
            visited[mask] = 1;
        }
    }
    for (uint32_t factor = 0; factor < orders->factors; factor++)
        visited[1u << factor] = visited[full & ~(1u << factor)] = 1;
    TRY(arena_take(arena, (size_t)orders_bound(orders->factors, orders->count) + 2, sizeof *masks,
                   "hybrids", &masks));
    for (uint32_t mask = 0; mask <= full; mask++)
        if (visited[mask]) masks[count++] = mask;
    *out_masks = masks;
    *out_count = count;
    return STATUS_OK;
}

/* ---- estimates ---- */

struct game {
    const uint32_t *masks;
    const double *v;
    size_t count;
};

static enum status value_of(const struct game *game, uint32_t mask, double *out) {
    size_t low = 0, high = game->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (game->masks[middle] < mask)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == game->count || game->masks[low] != mask)
        FAIL(STATUS_INPUT, "attribution: an order needs hybrid %u, which has no value", mask);
    *out = game->v[low];
    return STATUS_OK;
}

static enum status check_game(const struct game *game, uint32_t factors) {
    for (size_t i = 0; i < game->count; i++) {
        if (game->masks[i] > full_mask(factors) || (i > 0 && game->masks[i] <= game->masks[i - 1]))
            FAIL(STATUS_INPUT,
                 "attribution: hybrid %zu is %u, expected masks of %u factors in "
                 "ascending order",
                 i, game->masks[i], factors);
        if (!real_finite_f64(game->v[i]))
            FAIL(STATUS_UNTESTABLE, "attribution: the value of hybrid %u is %g, expected a number",
                 game->masks[i], game->v[i]);
    }
    return STATUS_OK;
}

/* Stores what each factor adds when it enters, by factor. */
static enum status walk_order(const struct game *game, uint32_t factors, const uint8_t *order,
                              double *added) {
    uint32_t mask = 0;
    double before, after;
    TRY(value_of(game, 0, &before));
    for (uint32_t place = 0; place < factors; place++) {
        if (order[place] >= factors || (mask >> order[place] & 1u))
            FAIL(STATUS_INPUT,
                 "attribution: an order of entry names factor %u at place %u, "
                 "expected each of %u factors once",
                 order[place], place, factors);
        mask |= 1u << order[place];
        TRY(value_of(game, mask, &after));
        added[order[place]] = after - before;
        before = after;
    }
    return STATUS_OK;
}

/* Fills pair_means, (factors, pairs). */
static enum status walk_pairs(const struct game *game, const struct orders *orders,
                              double *pair_means) {
    const uint32_t factors = orders->factors, pairs = orders->count / 2;
    for (uint32_t pair = 0; pair < pairs; pair++) {
        const uint8_t *order = orders->entering + (size_t)2 * pair * factors;
        double added[2][ORDERS_FACTORS];
        TRY(walk_order(game, factors, order, added[0]));
        TRY(walk_order(game, factors, order + factors, added[1]));
        for (uint32_t i = 0; i < factors; i++)
            pair_means[(size_t)i * pairs + pair] = 0.5 * (added[0][i] + added[1][i]);
    }
    return STATUS_OK;
}

/* The interval of |value| that follows from the interval of the value. */
static void size_interval(const struct orders_shares *shares, uint32_t factor, double size[2]) {
    const double low = real_abs_f64(shares->low[factor]), high = real_abs_f64(shares->high[factor]);
    const int spans = shares->low[factor] <= 0.0 && shares->high[factor] >= 0.0;
    size[0] = spans ? 0.0 : low < high ? low : high;
    size[1] = low < high ? high : low;
}

static void place_factors(struct orders_shares *out) {
    for (uint32_t r = 0; r < out->factors; r++) {
        double mine[2], other[2];
        uint32_t above = 0, below = 0;
        size_interval(out, out->rank[r], mine);
        for (uint32_t i = 0; i < out->factors; i++) {
            size_interval(out, i, other);
            above += other[0] > mine[1];
            below += other[1] < mine[0];
        }
        out->place[r][0] = above + 1;
        out->place[r][1] = out->factors - below;
    }
}

enum status orders_estimate(const struct orders *orders, const uint32_t *masks, const double *v,
                            size_t count, double alpha, struct orders_shares *out) {
    const struct game game = {masks, v, count};
    double pair_means[ORDERS_FACTORS * (ORDERS_MOST / 2)], all, none;
    TRY(check_orders(orders->factors, orders->count));
    TRY(check_game(&game, orders->factors));
    memset(out, 0, sizeof *out);
    out->factors = orders->factors;
    out->pairs = orders->count / 2;
    out->alpha = alpha;
    TRY(walk_pairs(&game, orders, pair_means));
    TRY(value_of(&game, full_mask(orders->factors), &all));
    TRY(value_of(&game, 0, &none));
    out->whole = all - none;
    for (uint32_t i = 0; i < out->factors; i++) {
        struct statistics_interval interval;
        TRY(statistics_mean_interval(pair_means + (size_t)i * out->pairs, out->pairs,
                                     1.0 - alpha / (double)out->factors, &out->value[i],
                                     &interval));
        out->low[i] = interval.low;
        out->high[i] = interval.high;
    }
    out->residual = sum_chain_terms_f64_f64(0.0, out->value, out->factors) - out->whole;
    shapley_rank(out->value, out->factors, out->rank);
    place_factors(out);
    return STATUS_OK;
}
