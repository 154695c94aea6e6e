/* SPDX-License-Identifier: Apache-2.0
 * Single tokens that are further apart than a floor's. Another expert is another function for one
 * token, so the bulk of the tokens is as the floor is, a few are far out, and these are scattered:
 * over the sequences, and without regard to anything else that is known of a token. A temperature,
 * other weights, another context or rounding move the bulk; what goes by place, id or probability
 * is not scattered. */
#include <stdio.h>
#include <string.h>

#include "base/real.h"
#include "rollout/claims_private.h"

static double median(const struct rollout_spread *spread) {
    return spread_quantile(spread, 0.5);
}

/* ---- how many, and over which sequences ---- */

#define SINGLE_LEAST 16u
#define SINGLE_TIMES 8.0 /* as many as the floor has */
#define SINGLE_MOST 0.25
/* Minus the logarithm of the bound for so many sequences: one in a million. */
#define FAR_SURE 14.0

/* The share of a floor's tokens that is as far, and one more, since none is not never. */
static double share_of(const struct rollout_spread *size, double line) {
    return ((double)spread_at_least(size, line) + 1.0) / (double)size->count;
}

/* How many sequences would have no such token if these were dealt out at random. */
static double expected_without(const struct rollout_traits *t, double share) {
    double expected = 0.0;
    const double used = (double)t->sizes / (double)t->rest.tokens;
    for (int i = 0; i < MEASURE_LENGTHS; i++) {
        const struct rollout_group *group = &t->length[i];
        if (group->slice.sequences == 0) continue;
        const double tokens = used * (double)group->slice.tokens / (double)group->slice.sequences;
        expected = real_fma_f64((double)group->slice.sequences,
                                real_exp_f64(tokens * real_log1p_f64(-share)), expected);
    }
    return expected;
}

double rollout_far_line(const struct rollout_measure *const *floors, size_t floor_count) {
    double line = 0.0;
    for (size_t i = 0; i < floor_count; i++) {
        const struct rollout_spread *size = &floors[i]->shape.size;
        const double own = 2.0 * spread_quantile(size, 0.999);
        if (size->count < 500) return 0.0;
        if (own > line) line = own;
    }
    return line;
}

/* The bulk is as a floor's where the median of all tokens is, and where no more sequences than
 * chance allows have a median of their own above those of 95 % of the floor's: else a few sequences
 * differ as a whole. */
static int bulk_is_within(const struct rollout_judgement *j) {
    const struct rollout_traits *t = &j->measure->shape;
    const struct rollout_spread *middle = &t->level[j->level].middle;
    const double here = median(&t->size), n = (double)middle->count;
    for (size_t i = 0; i < j->floor_count; i++) {
        const struct rollout_traits *floor = &j->floors[i]->shape;
        const double line = 1.01 * spread_quantile(&floor->level[j->level].middle, 0.95);
        const double above =
            line > 0.0 ? (double)spread_at_least(middle, line) : n - (double)middle->zeros;
        const double expected = 0.05 * n;
        if (here > 1.5 * median(&floor->size)) continue;
        if (above <= expected + 3.0 * real_sqrt_f64(expected + 1.0)) return 1;
    }
    return 0;
}

/* ---- what foretells them ----
 * A far token is foretold by a way of grouping where the other tokens of its group are far so often
 * that chance does that to less than one far token in e^5. With n tokens in a group, f of them far,
 * and a share p of all, the others are f - 1 of n - 1, and by the bound of Chernoff (Ann. Math.
 * Stat. 23, 1952) so many have a probability of at most exp(-(n - 1) KL((f - 1) / (n - 1) || p)).
 * What is ordered is cut in two as well, since a threshold may leave few tokens to each group. */

#define FORETOLD_SURE 5.0
#define FORETOLD_LEAST 3u  /* far tokens of a group that counts */
#define FORETOLD_CUT 10.0  /* a cut is chosen among hundreds, so it has to be surer */
#define FORETOLD_SHARE 0.5 /* of the far tokens, less what the other groups show */
#define FORETOLD_TIMES 8.0 /* as often as in the other groups */
#define FORETOLD_ALL 0.9   /* the share where the log-prob of one side is enough */

enum shape { GROUPS = 0, FROM, UP_TO };

struct foretold {
    enum rollout_way way;
    enum shape shape;
    size_t at;            /* the cut: group `at` and those above it, or below it */
    uint64_t tokens, far; /* of the groups that stand out */
    double elsewhere;     /* share of far tokens in the other groups */
    double share;         /* of all far tokens, less as many as the other groups have */
    double sure;          /* how sure it is that these groups have more than their share */
};

/* The names of the ways, and whether they are ordered. */
static const struct {
    const char *text;
    int is_ordered;
} ways[FAR_WAYS] = {
    [FAR_POSITION] = {"the position", 1},
    [FAR_FIRST] = {"the distance from the first token that counts", 1},
    [FAR_LAST] = {"the distance from the last token that counts", 1},
    [FAR_ORDER] = {"the place among the tokens that are not certain", 1},
    [FAR_LEFT] = {"the place from the end among the tokens that are not certain", 1},
    [FAR_SINCE] = {"the distance from the last gap of the mask", 1},
    [FAR_UNTIL] = {"the distance to the next gap of the mask", 1},
    [FAR_VERSION] = {"the distance from a change of the weights' version", 1},
    [FAR_PART] = {"the part of the sequence in 64ths", 1},
    [FAR_ID] = {"the token id", 0},
    [FAR_ID_BEFORE] = {"the id of the token before", 0},
    [FAR_AGAIN] = {"the distance from the same id before", 1},
    [FAR_ENGINE] = {"the log-prob of the engine", 1},
    [FAR_TRAINER] = {"the log-prob of the trainer", 1},
    [FAR_BEHIND] = {"the token before that is not certain, which is as far", 0},
};

/* sum a log(a / p) over both outcomes. */
static double relative_entropy(double a, double p) {
    double sum = 0.0;
    if (a > 0.0) sum = a * real_log_f64(a / p);
    if (a < 1.0) sum = sum + (1.0 - a) * real_log_f64((1.0 - a) / (1.0 - p));
    return sum;
}

/* How sure it is that f of n are more than a share p, as minus the logarithm of the bound. */
static double surer(double f, double n, double p) {
    return n > 0.0 && f > p * n ? n * relative_entropy(f / n, p) : 0.0;
}

static void weigh(const struct rollout_far *all, struct foretold *out) {
    const double n = (double)(all->tokens - out->tokens), f = (double)(all->far - out->far);
    out->elsewhere = n > 0.0 ? f / n : 0.0;
    out->share = ((double)out->far - out->elsewhere * (double)out->tokens) / (double)all->far;
    out->sure =
        surer((double)out->far, (double)out->tokens, (double)all->far / (double)all->tokens);
}

static int stands_out(const struct rollout_far *all, enum rollout_way way, size_t group) {
    const double p = (double)all->far / (double)all->tokens;
    const uint32_t n = all->all[way][group], f = all->apart[way][group];
    return f >= FORETOLD_LEAST && surer((double)f - 1.0, (double)n - 1.0, p) > FORETOLD_SURE;
}

static struct foretold by_groups(const struct rollout_far *all, enum rollout_way way) {
    struct foretold out = {.way = way, .shape = GROUPS};
    for (size_t i = 0; i < all->groups[way]; i++) {
        if (!stands_out(all, way, i)) continue;
        out.tokens += all->all[way][i];
        out.far += all->apart[way][i];
    }
    weigh(all, &out);
    return out;
}

/* The cut that is surest. `shape` says which side of it has the far tokens. */
static struct foretold by_cut(const struct rollout_far *all, enum rollout_way way,
                              enum shape shape) {
    const double p = (double)all->far / (double)all->tokens;
    const size_t groups = all->groups[way];
    struct foretold out = {.way = way, .shape = shape};
    uint64_t tokens = 0, far = 0;
    double most = FORETOLD_CUT;
    for (size_t i = 0; i < groups; i++) {
        const size_t at = shape == UP_TO ? i : groups - 1 - i;
        if (all->all[way][at] == 0) continue;
        tokens += all->all[way][at];
        far += all->apart[way][at];
        const double sure = surer((double)far, (double)tokens, p);
        if (sure <= most) continue;
        most = sure;
        out.at = at;
        out.tokens = tokens;
        out.far = far;
    }
    weigh(all, &out);
    return out;
}

/* Whether most far tokens are foretold, and these groups are another kind of token and no slope. */
static int is_clear(const struct foretold *f) {
    return f->tokens > 0 && f->share > FORETOLD_SHARE &&
           (double)f->far >= FORETOLD_TIMES * f->elsewhere * (double)f->tokens;
}

static int is_logp(enum rollout_way way) {
    return way == FAR_ENGINE || way == FAR_TRAINER;
}

/* The grouping that foretells best in one way. Of log-probs a threshold says more than the parts of
 * a nat behind it. */
static struct foretold by_way(const struct rollout_far *all, enum rollout_way way) {
    struct foretold best = by_groups(all, way);
    for (int shape = FROM; ways[way].is_ordered && shape <= UP_TO; shape++) {
        const struct foretold cut = by_cut(all, way, (enum shape)shape);
        if (is_clear(&cut) &&
            (!is_clear(&best) || cut.sure > best.sure || (is_logp(way) && cut.sure == best.sure)))
            best = cut;
    }
    return best;
}

/* ---- its words ---- */

static void add_number(const struct foretold *f, size_t group, char *text, size_t room) {
    const size_t used = strlen(text);
    if (is_logp(f->way))
        snprintf(text + used, room - used, "%.4g", -(double)group / FAR_LOGP_CELLS);
    else
        snprintf(text + used, room - used, "%zu", group);
}

/* Which groups: three of them, or the side of a cut. */
static void say_groups(const struct rollout_far *all, const struct foretold *f, char *text,
                       size_t room) {
    size_t shown = 0;
    text[0] = '\0';
    if (f->way == FAR_BEHIND) return;
    if (f->way == FAR_AGAIN && f->shape == FROM && f->at + 1 == all->groups[FAR_AGAIN]) {
        snprintf(text, room, ", which was not there yet");
        return;
    }
    if (f->shape != GROUPS) {
        const int is_below = (f->shape == UP_TO) != is_logp(f->way);
        snprintf(text, room, ", %s ", is_below ? "at most" : "at least");
        add_number(f, f->at + (size_t)(is_logp(f->way) && f->shape == UP_TO), text, room);
        return;
    }
    for (size_t i = 0; i < all->groups[f->way] && shown < 4; i++) {
        if (!stands_out(all, f->way, i)) continue;
        const size_t used = strlen(text);
        shown++;
        snprintf(text + used, room - used, "%s",
                 shown == 4        ? ", ..."
                 : shown > 1       ? " or "
                 : is_logp(f->way) ? ", about "
                                   : ", ");
        if (shown < 4) add_number(f, i, text, room);
    }
}

/* Whether log-probs foretell far tokens. These are unlikely for the side that has other experts for
 * them, whatever the other side says, so that has to foretell them, too; unless all of them are
 * among the few that one side calls so unlikely, which other experts rarely make. */
static int is_by_logp(const struct rollout_far *all) {
    int clear = 0;
    for (int way = FAR_ENGINE; way <= FAR_TRAINER; way++) {
        const struct foretold one = by_way(all, (enum rollout_way)way);
        if (!is_clear(&one)) continue;
        clear++;
        if (one.share > FORETOLD_ALL && FORETOLD_TIMES * (double)one.tokens < (double)all->tokens)
            return 1;
    }
    return clear == 2;
}

/* Whether something that is known of the tokens foretells which of them are far. An end token that
 * is scored otherwise, a context that is lost at one place, a filter that cuts unlikely tokens:
 * none is a choice that falls out for single tokens. Says so, and returns 1. Far tokens are
 * unlikely for the side that has other experts for them, so log-probs have to foretell them on both
 * sides. */
static int is_foretold(const struct rollout_far *all, struct rollout_claim *claim) {
    struct foretold best = {.sure = 0.0};
    char groups[120];
    if (all->far == 0 || all->far == all->tokens) return 0;
    const int by_logp = is_by_logp(all);
    for (int way = 0; way < FAR_WAYS; way++) {
        const struct foretold one = by_way(all, (enum rollout_way)way);
        if (is_logp((enum rollout_way)way) && !by_logp) continue;
        if (is_clear(&one) && one.sure > best.sure) best = one;
    }
    if (best.sure == 0.0) return 0;
    say_groups(all, &best, groups, sizeof groups);
    rollout_claim_say(claim, ROLLOUT_OPEN,
                      "%ju of the %ju tokens that are further apart than twice the floor's 99.9 %% "
                      "are foretold by %s%s: %.3g %% of such tokens are that far, and %.2g %% of "
                      "the others; a choice of experts would be scattered",
                      (uintmax_t)best.far, (uintmax_t)all->far, ways[best.way].text, groups,
                      100.0 * (double)best.far / (double)best.tokens, 100.0 * best.elsewhere);
    return 1;
}

/* Whether the far tokens lie in fewer sequences than a choice that falls out for single tokens
 * leaves without any: what differs is a matter of these sequences then, of a batch or of a prompt.
 * Says so, and returns 1. The count has the bound of Chernoff, as that of a group has. */
static int is_in_few_sequences(const struct rollout_traits *t, uint64_t far, double share,
                               struct rollout_claim *claim) {
    const double all = (double)t->most.count;
    const double with = (double)spread_at_least(&t->most, t->far.line);
    const double expected = expected_without(t, share);
    if (surer(all - with, all, expected / all) < FAR_SURE &&
        all - with <= 1.5 * expected + 4.0 * real_sqrt_f64(expected + 1.0))
        return 0;
    rollout_claim_say(claim, ROLLOUT_OPEN,
                      "the %ju tokens that are further apart than twice the floor's 99.9 %% lie in "
                      "%.0f of %.0f sequences, where as many that are scattered lie in about %.0f: "
                      "what these sequences have in common (a batch, a prompt, a worker) says more "
                      "than single tokens do",
                      (uintmax_t)far, with, all, all - expected);
    return 1;
}

/* ---- the claim ---- */

/* Whether a floor has far tokens as often, to within SINGLE_TIMES. */
static int is_usual(const struct rollout_judgement *j) {
    const struct rollout_far *far = &j->measure->shape.far;
    for (size_t i = 0; i < j->floor_count; i++) {
        const struct rollout_spread *size = &j->floors[i]->shape.size;
        if ((double)far->far < SINGLE_TIMES * share_of(size, far->line) * (double)far->tokens)
            return 1;
    }
    return 0;
}

/* Whether so many sequences have a far token that those of no floor could. Sequences are the unit,
 * since far tokens of one may have one reason. */
static int is_in_sequences(const struct rollout_judgement *j) {
    const struct rollout_traits *t = &j->measure->shape;
    const double all = (double)t->most.count;
    const double with = (double)spread_at_least(&t->most, t->far.line);
    if (with < (double)ROLLOUT_LEAST_SEQUENCES) return 0;
    for (size_t i = 0; i < j->floor_count; i++) {
        const double own = share_of(&j->floors[i]->shape.size, t->far.line);
        const double expected = 1.0 - expected_without(t, own) / all;
        if (surer(with, all, expected) < FAR_SURE) return 0;
    }
    return 1;
}

void rollout_look_at_far(struct rollout_judgement *j) {
    const struct rollout_far *far = &j->measure->shape.far;
    j->far_apart = far->line > 0.0 && far->far >= SINGLE_LEAST && !is_usual(j);
    j->far_outside = j->far_apart && is_in_sequences(j);
}

void rollout_claim_single_tokens(struct rollout_judgement *j) {
    const struct rollout_traits *t = &j->measure->shape;
    struct rollout_claim *claim = &j->claim[ROLLOUT_ROUTING];
    const double line = t->far.line;
    if (t->routed[0].tokens + t->routed[1].tokens > 0 || t->sizes == 0 || line == 0.0) return;
    const uint64_t far = t->far.far;
    const double share = (double)far / (double)t->sizes;
    if (!j->far_apart || share > SINGLE_MOST || !bulk_is_within(j)) return;
    if (is_foretold(&t->far, claim) || is_in_few_sequences(t, far, share, claim)) return;
    claim->share = share;
    claim->strength = rollout_strength(j, &t->rest);
    rollout_claim_say(claim, ROLLOUT_NAMED,
                      "most tokens are as near as the floor's, but %ju of %ju (%.2g %%), scattered "
                      "over the sequences, are further apart than twice its 99.9 %%: a choice that "
                      "falls out differently for single tokens, as another expert is. Expert ids "
                      "would prove it",
                      (uintmax_t)far, (uintmax_t)t->sizes, 100.0 * share);
}
