/* SPDX-License-Identifier: Apache-2.0
 * labels: unit whole short
 * Every sentence about causes as a proposition over the gap v(S) that a set S of them opens. Games
 * are made by hand: every game of 3 and of 4 causes whose sets open all of the gap or nothing,
 * whatever opens more than its parts or less, and drawn games of graded sizes, of 5 causes, and of
 * 6 of which only some sets were trained. The headline is read as a reader would read it, and what
 * it says is held against the game. Nothing of the code that chose the words is asked. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/base/helper_size.h"
#include "determinism/philox.h"
#include "tests/evidence/helper_image.h"
#include "scenarios/head.h"

#define CAUSES_MOST 6
#define SETS_MOST (1u << CAUSES_MOST)
#define ORDERS 4

static const char *const names[CAUSES_MOST] = {"schedule", "optimizer", "dtype",
                                               "model",    "init",      "rng"};

/* The gap that each set opens, of one direction; NaN: it was not trained. */
struct game {
    uint32_t causes;
    double size[SETS_MOST];
};

/* ---- what is true of a game ---- */

static uint32_t all_of(const struct game *game) {
    return (1u << game->causes) - 1;
}

static int is_trained(const struct game *game, uint32_t set) {
    return !isnan(game->size[set]);
}

/* Whether every set was trained. */
static int is_whole(const struct game *game) {
    for (uint32_t set = 0; set <= all_of(game); set++)
        if (!is_trained(game, set)) return 0;
    return 1;
}

static int opens(const struct game *game, uint32_t set) {
    return game->size[set] >= 0.9;
}

static int opens_half(const struct game *game, uint32_t set) {
    return game->size[set] >= 0.5;
}

static int is_shut(const struct game *game, uint32_t set) {
    return game->size[set] < 0.5;
}

static int has(uint32_t set, uint32_t all, uint32_t any) {
    return (set & all) == all && (any == 0 || (set & any) != 0);
}

/* Whether some trained set that has all of `all` and one of `any`, or that has not, is so. */
static int some(const struct game *game, uint32_t all, uint32_t any, int having,
                int (*is)(const struct game *game, uint32_t set)) {
    for (uint32_t set = 1; set <= all_of(game); set++)
        if (has(set, all, any) == having && is(game, set)) return 1;
    return 0;
}

/* The share of a cause by the formula of subsets. */
static double share_of(const struct game *game, uint32_t cause) {
    static const double factorial[] = {1, 1, 2, 6, 24, 120, 720};
    double sum = 0.0;
    for (uint32_t set = 0; set <= all_of(game); set++) {
        uint32_t count = 0;
        if ((set >> cause & 1u) != 0) continue;
        for (uint32_t c = 0; c < game->causes; c++)
            count += set >> c & 1u;
        sum += factorial[count] * factorial[game->causes - count - 1] / factorial[game->causes] *
               (game->size[set | 1u << cause] - game->size[set]);
    }
    return sum;
}

/* ---- the sentence, as it is read ---- */

enum said {
    SAID_ONLY,     /* only together do these causes open the gap */
    SAID_ANY,      /* only together with any of these do those */
    SAID_WITH,     /* those open it together with these, and more is said of others */
    SAID_TOGETHER, /* together these open it, and more is said of others */
    SAID_OPEN,     /* only together do causes open the gap */
    SAID_EACH,     /* each is enough, or opens half */
    SAID_CAUSE,
    SAID_BESIDE, /* the same beside others that cancel */
    SAID_SEVERAL,
    SAID_ELSE,
    SAID_COUNT
};

struct reading {
    const struct game *game;
    const char *text; /* what is not read yet */
    const char *whole;
};

static void refuse(const struct reading *of, const char *why) {
    char sizes[SETS_MOST * 12] = "";
    for (uint32_t set = 0; set <= all_of(of->game); set++)
        snprintf(sizes + strlen(sizes), sizeof sizes - strlen(sizes), " %.3g", of->game->size[set]);
    fail_msg("%s is not so:\n%s\nbefore \"%s\"\nsizes%s", why, of->whole, of->text, sizes);
}

static int next_is(struct reading *of, const char *words) {
    const size_t length = strlen(words);
    if (strncmp(of->text, words, length) != 0) return 0;
    of->text += length;
    return 1;
}

static void expect(struct reading *of, const char *words) {
    if (!next_is(of, words)) refuse(of, words);
}

/* The next name; the number of causes: none comes. */
static uint32_t read_name(struct reading *of) {
    uint32_t cause = 0;
    while (cause < of->game->causes && !next_is(of, names[cause]))
        cause++;
    return cause;
}

/* "schedule, dtype", after which another comma may come. */
static uint32_t read_names(struct reading *of) {
    uint32_t set = 0, cause = read_name(of);
    const char *end = of->text;
    while (cause < of->game->causes) {
        set |= 1u << cause;
        end = of->text;
        cause = next_is(of, ", ") ? read_name(of) : of->game->causes;
    }
    if (set == 0) refuse(of, "a name");
    of->text = end;
    return set;
}

/* "12.5 %" is the value, in the digits that are printed. */
static void read_percent(struct reading *of, double value) {
    char *end;
    const double printed = strtod(of->text, &end);
    if (end == of->text || fabs(printed - 100.0 * value) > 1e-3 * fabs(printed) + 1e-9)
        refuse(of, "a figure");
    of->text = end;
    expect(of, " %");
}

/* "schedule 0 %, dtype 100 %": what each opens alone, or what its repair leaves. `more` counts
 * those that are not named. */
static uint32_t read_figures(struct reading *of, int left, uint32_t *more) {
    const struct game *const game = of->game;
    uint32_t set = 0;
    *more = 0;
    do {
        const uint32_t cause = read_name(of);
        if (cause == game->causes) refuse(of, "a name");
        expect(of, " ");
        read_percent(of, game->size[left ? all_of(game) & ~(1u << cause) : 1u << cause]);
        set |= 1u << cause;
    } while (next_is(of, ", "));
    if (next_is(of, " (and ")) {
        char *end;
        *more = (uint32_t)strtoul(of->text, &end, 10);
        of->text = end;
        expect(of, " more)");
    }
    return set;
}

static void claim(const struct reading *of, int is_true, const char *what) {
    if (!is_true) refuse(of, what);
}

/* The words that say of a mixture of those that are named that it leaves the gap shut. */
static void read_blocked(struct reading *of, uint32_t all, uint32_t any) {
    const int said = next_is(of, ", though not in every mixture with others");
    claim(of, said == some(of->game, all, any, 1, is_shut), "a larger mixture that is shut");
}

/* What is said of mixtures that are not of the sentence, which therefore is none of "only". */
static void read_others(struct reading *of, uint32_t all, uint32_t any) {
    const struct game *const game = of->game;
    if (next_is(of, "; other mixtures open it as well")) {
        claim(of, some(game, all, any, 0, opens), "another mixture that opens it");
    } else if (next_is(of, "; other mixtures open half of it or more")) {
        claim(of, some(game, all, any, 0, opens_half), "another mixture that opens half");
        claim(of, !some(game, all, any, 0, opens), "no other mixture that opens it");
    } else {
        expect(of, "; the mixture without ");
        const uint32_t without = read_names(of);
        claim(of, without == any && !is_trained(game, all_of(game) & ~without), "a set untrained");
        expect(of, " was not trained");
    }
}

/* The causes that open the gap with `all`, of which every one is to be named: a list from which one
 * is missing says that it does not. */
static uint32_t joining(const struct game *game, uint32_t all) {
    uint32_t set = 0;
    for (uint32_t cause = 0; cause < game->causes; cause++)
        if ((all >> cause & 1u) == 0 && opens(game, all | 1u << cause)) set |= 1u << cause;
    return set;
}

/* "; alone each opens: ... of it. Repairing one alone leaves ..." of these causes, or, where `set`
 * is 0, of some. Returns which; 0: more than are named. */
static uint32_t read_both(struct reading *of, uint32_t set) {
    uint32_t more, more_left;
    const uint32_t alone = read_figures(of, 0, &more);
    expect(of, " of it. Repairing one alone leaves ");
    claim(of, read_figures(of, 1, &more_left) == alone && more == more_left, "the same causes");
    if (set != 0) claim(of, (alone & ~set) == 0 && (more > 0 || alone == set), "those causes");
    return more > 0 ? 0 : alone;
}

static void read_rest(struct reading *of, uint32_t named) {
    uint32_t more;
    if (*of->text == '\0') {
        claim(of, named == 0 || named == all_of(of->game), "no other cause");
        return;
    }
    expect(of, " Others differ, too; alone they open: ");
    claim(of, (read_figures(of, 0, &more) & named) == 0, "other causes");
    expect(of, "; repairing one alone leaves ");
    read_figures(of, 1, &more);
    expect(of, ".");
    claim(of, *of->text == '\0', "the end");
}

/* The causes that a set's figures are of. More than fit the words are known from the judgement. */
static uint32_t named_of(const struct judgement *judgement, enum joint_role role) {
    uint32_t set = 0;
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        for (uint32_t cause = 0; cause < CAUSES_MOST; cause++)
            if (judgement->joint.role[i] == role &&
                strcmp(judgement->causes[i].name, names[cause]) == 0)
                set |= 1u << cause;
    return set;
}

/* "these causes": those whose figures follow. */
static enum said read_these(struct reading *of, int only, const struct judgement *judgement) {
    const struct game *const game = of->game;
    const int most = !next_is(of, "open the gap");
    const uint32_t set = named_of(judgement, JOINT_ROLE_NAMED);
    if (most) expect(of, "open most of the gap");
    claim(of, (set & (set - 1)) != 0, "two or more");
    claim(of, most ? opens_half(game, set) && !opens(game, set) : opens(game, set),
          "these open it");
    read_blocked(of, set, 0);
    if (only)
        claim(of, !some(game, set, 0, 0, opens_half), "nothing opens it that lacks one");
    else
        read_others(of, set, 0);
    expect(of, "; alone each opens: ");
    read_both(of, set);
    expect(of, ".");
    read_rest(of, set);
    return only ? SAID_ONLY : SAID_TOGETHER;
}

/* Each of `any` opens it with `all`, and they are all that do; `all` by itself does not. */
static void claim_pairs(struct reading *of, uint32_t all, uint32_t any) {
    claim(of, any == joining(of->game, all), "those that open it with these");
    claim(of, is_shut(of->game, all), "these leave it shut");
}

static enum said read_any(struct reading *of) {
    const uint32_t any = read_names(of);
    expect(of, " do");
    next_is(of, "es");
    expect(of, " ");
    const uint32_t all = read_names(of);
    expect(of, " open the gap");
    claim_pairs(of, all, any);
    claim(of, (any & (any - 1)) != 0, "two or more");
    read_blocked(of, all, any);
    claim(of, is_trained(of->game, all_of(of->game) & ~any), "trained without any of them");
    claim(of, !some(of->game, all, any, 0, opens_half), "nothing else opens it");
    expect(of, "; alone each opens: ");
    read_both(of, all | any);
    expect(of, ".");
    read_rest(of, all | any);
    return SAID_ANY;
}

static enum said read_with(struct reading *of) {
    const uint32_t all = read_names(of);
    expect(of, (all & (all - 1)) == 0 ? " opens" : " open");
    expect(of, " the gap together with ");
    const int several = next_is(of, "any of ");
    const uint32_t any = read_names(of);
    claim(of, several == ((any & (any - 1)) != 0), "any of several");
    claim_pairs(of, all, any);
    read_blocked(of, all, any);
    read_others(of, all, any);
    expect(of, "; alone each opens: ");
    read_both(of, all | any);
    expect(of, ".");
    read_rest(of, all | any);
    return SAID_WITH;
}

/* No cause alone opens the gap; those that change nothing in any mixture are not listed. */
static enum said read_open(struct reading *of) {
    const struct game *const game = of->game;
    expect(of, "; alone each opens: ");
    const uint32_t listed = read_both(of, 0);
    for (uint32_t cause = 0; cause < game->causes; cause++) {
        int acts = !is_whole(game);
        for (uint32_t set = 0; set <= all_of(game); set++)
            acts |= fabs(game->size[set | 1u << cause] - game->size[set]) >= 0.1;
        claim(of, is_shut(game, 1u << cause), "none opens it alone");
        if (listed != 0) claim(of, (int)(listed >> cause & 1u) == acts, "each that acts is listed");
    }
    expect(of, ".");
    read_rest(of, listed);
    return SAID_OPEN;
}

static enum said read_each(struct reading *of, const struct judgement *judgement) {
    const struct game *const game = of->game;
    const uint32_t set = named_of(judgement, JOINT_ROLE_NAMED), rest = all_of(game) & ~set;
    const int enough = next_is(of, "is enough by itself");
    if (!enough) expect(of, "opens at least half of the gap by itself");
    for (uint32_t cause = 0; cause < game->causes; cause++)
        if ((set >> cause & 1u) != 0)
            claim(of, enough ? opens(game, 1u << cause) : opens_half(game, 1u << cause), "each");
    read_blocked(of, 0, set);
    expect(of, "; alone they open: ");
    claim(of, (set & (set - 1)) != 0, "two or more");
    read_both(of, set);
    if (next_is(of, ": repair all.")) {
        claim(of, game->size[rest] < 0.1, "their repair closes it");
    } else if (next_is(of, ". What repairing all of these leaves was not trained.")) {
        claim(of, !is_trained(game, rest), "it was not trained");
    } else {
        expect(of, ". Repairing all of these leaves ");
        read_percent(of, game->size[rest]);
        expect(of, ".");
    }
    read_rest(of, set);
    return SAID_EACH;
}

/* "schedule 1, dtype 0.5", in units of the gap: how far each goes alone, or what its repair leaves.
 */
static uint32_t read_times(struct reading *of, int left) {
    const struct game *const game = of->game;
    uint32_t set = 0;
    do {
        const uint32_t cause = read_name(of);
        char *end;
        if (cause == game->causes) refuse(of, "a name");
        expect(of, " ");
        const double value = game->size[left ? all_of(game) & ~(1u << cause) : 1u << cause];
        if (fabs(strtod(of->text, &end) - value) > 1e-3 * value) refuse(of, "a figure");
        of->text = end[-1] == '.' ? end - 1 : end; /* the end of the sentence */
        set |= 1u << cause;
    } while (next_is(of, ", "));
    return set;
}

/* No other repair closes the gap, and those that are said to cancel lead back together, though two
 * of them or more go farther alone. */
static enum said read_beside(struct reading *of, uint32_t one) {
    const struct game *const game = of->game;
    const uint32_t self = 1u << one, others = all_of(game) & ~self;
    uint32_t closing = 0, farther = 0;
    read_percent(of, game->size[self]);
    expect(of, " of the gap alone; with it alone repaired, ");
    read_percent(of, game->size[others]);
    expect(of, " of the gap is left. Beside it causes ");
    const int exactly = next_is(of, "cancel exactly");
    if (!exactly) expect(of, "nearly cancel");
    expect(of, ": alone they move the weights by this many times the arms' distance: ");
    const uint32_t set = read_times(of, 0);
    expect(of, "; repairing one of these alone leaves this many times it: ");
    claim(of, read_times(of, 1) == set, "the same causes");
    expect(of, ".");
    for (uint32_t cause = 0; cause < game->causes; cause++) {
        closing += game->size[all_of(game) & ~(1u << cause)] < 0.1;
        farther += (set >> cause & 1u) != 0 && game->size[1u << cause] > game->size[others];
    }
    claim(of, opens(game, self) && game->size[others] < 0.1 && closing == 1, "the one repair");
    claim(of, (set & self) == 0 && farther >= 2, "others that go somewhere");
    claim(of, (set == others || is_trained(game, set)) && game->size[set] < 0.1, "they cancel");
    claim(of, exactly == (game->size[set] == 0.0), "exactly");
    claim(of, *of->text == '\0', "the end");
    return SAID_BESIDE;
}

/* "makes 95 % of the way from left to right; with it alone repaired, 5 % of the gap is left." Those
 * that are not mentioned make none of it. */
static enum said read_cause(struct reading *of) {
    const struct game *const game = of->game;
    const uint32_t first = read_name(of);
    uint32_t silent = all_of(game) & ~(1u << first);
    claim(of, first < game->causes, "a name");
    of->text = strchr(of->text, ')');
    assert_non_null(of->text);
    if (next_is(of, ") opens ")) return read_beside(of, first);
    expect(of, ") makes ");
    read_percent(of, share_of(game, first));
    expect(of, " of the way from left to right; with it alone repaired, ");
    read_percent(of, game->size[all_of(game) & ~(1u << first)]);
    expect(of, " of the gap is left.");
    if (next_is(of, " Besides: ")) {
        do {
            const uint32_t cause = read_name(of);
            claim(of, (silent >> cause & 1u) != 0, "another name");
            silent &= ~(1u << cause);
            expect(of, " ");
            if (next_is(of, "within 0.001 % of 0"))
                claim(of, fabs(share_of(game, cause)) <= 1e-5, "so little");
            else
                read_percent(of, share_of(game, cause));
        } while (next_is(of, ", "));
    }
    uint32_t acting = 0; /* of those without a figure; rounding leaves 1e-17 of a share of 0 */
    for (uint32_t cause = 0; cause < game->causes; cause++)
        acting += (silent >> cause & 1u) != 0 && fabs(share_of(game, cause)) > 1e-15;
    claim(of, acting == 0 || (acting == 1 && next_is(of, " (and 1 more)")), "nothing of the rest");
    return SAID_CAUSE;
}

/* Of several causes, the shares by falling size. */
static enum said read_several(struct reading *of) {
    double before = (double)INFINITY;
    of->text = strchr(of->text, ':');
    assert_non_null(of->text);
    of->text += 2;
    uint32_t silent = all_of(of->game), more = 0, count = 0;
    do {
        const uint32_t cause = read_name(of);
        claim(of, cause < of->game->causes && (silent >> cause & 1u) != 0, "another name");
        silent &= ~(1u << cause);
        expect(of, " ");
        const double share = share_of(of->game, cause);
        if (next_is(of, "within 0.001 % of 0"))
            claim(of, fabs(share) <= 1e-5, "so little");
        else
            read_percent(of, share);
        claim(of, fabs(share) <= before + 1e-5, "their order");
        before = fabs(share);
    } while (next_is(of, ", ") || next_is(of, " and "));
    next_is(of, " (and 1 more)");
    expect(of, " of the way from left to right. With one alone repaired, this much of the gap is "
               "left: ");
    claim(of, read_figures(of, 1, &more) == (all_of(of->game) & ~silent), "the same causes");
    expect(of, ".");
    for (; *of->text != '\0' && next_is(of, count == 0 ? " " : ", "); count++) {
        const uint32_t cause = read_name(of);
        claim(of, (silent >> cause & 1u) != 0, "a cause without a figure");
        for (uint32_t set = 0; set < 1u << of->game->causes; set++)
            claim(of, of->game->size[set] == of->game->size[set | 1u << cause], "no effect");
        silent &= ~(1u << cause);
    }
    if (count > 0) expect(of, count == 1 ? " makes none of it." : " make none of it.");
    claim(of, (silent & (silent - 1)) == 0, "at most one more");
    return SAID_SEVERAL;
}

static enum said read_headline(const struct game *game, const struct judgement *judgement,
                               const char *text) {
    struct reading of = {game, text, text};
    expect(&of, "made: OUTSIDE THE FLOOR. ");
    const int partial = next_is(&of, "In the mixtures that were trained, only together ");
    if (partial || next_is(&of, "Only together ")) {
        if (next_is(&of, "do causes open the gap")) return read_open(&of);
        claim(&of, partial != is_whole(game), "that every mixture was trained");
        if (next_is(&of, "with any of ")) return read_any(&of);
        expect(&of, "do these causes ");
        return read_these(&of, 1, judgement);
    }
    if (next_is(&of, "Together these causes ")) return read_these(&of, 0, judgement);
    if (next_is(&of, "Each of several causes ")) return read_each(&of, judgement);
    if (next_is(&of, "Cause: "))
        return is_whole(game) || strstr(text, ") opens ") != NULL ? read_cause(&of) : SAID_CAUSE;
    if (next_is(&of, "Several causes") || next_is(&of, "One cause or several"))
        return is_whole(game) ? read_several(&of) : SAID_SEVERAL;
    for (uint32_t cause = 0; cause < game->causes; cause++)
        if (strncmp(of.text, names[cause], strlen(names[cause])) == 0) return read_with(&of);
    if (next_is(&of, "Causes oppose each other") || next_is(&of, "The causes nearly cancel"))
        return SAID_ELSE;
    refuse(&of, "a sentence that the test knows");
    return SAID_ELSE;
}

/* ---- games ---- */

/* Judges the game, and adds what was said to the counts. */
static void read_game(struct helper_image *of, const struct game *game, uint32_t said[SAID_COUNT]) {
    static double sizes[SETS_MOST], masks[SETS_MOST];
    uint32_t count = 0;
    for (uint32_t set = 0; set <= all_of(game); set++) {
        if (!is_trained(game, set)) continue;
        sizes[count] = game->size[set];
        masks[count++] = set;
    }
    helper_image_put(of, "attribution/value", count, 1, sizes);
    helper_image_put(of, "attribution/way", count, 1, sizes);
    helper_image_put(of, "attribution/mask", count, 1, masks);
    assert_int_equal(judge(&of->image, &of->arena, &of->judgement), STATUS_OK);
    said[read_headline(game, &of->judgement, helper_image_row(of, ROW_HEADLINE, 0))]++;
}

static void open_games(struct helper_image *of, uint32_t causes) {
    helper_image_open(of, 1);
    helper_image_part(of, 1, 1.0);
    of->runs[1].records[0].groups[0][GROUP_LR_APPLIED] = 0.0005;
    helper_image_causes(of, names, causes);
}

/* What an image takes in memory grows with each verdict, so it is made anew after some. */
#define GAMES_OF_AN_IMAGE 256

/* Every game of which bit S of a number says whether set S opens the gap. */
static void read_boolean(uint32_t causes, uint64_t step, uint32_t said[SAID_COUNT]) {
    struct game game = {.causes = causes};
    const uint32_t all = all_of(&game);
    struct helper_image of;
    uint64_t read = 0;
    for (uint64_t number = 0; number < UINT64_C(1) << (all - 1); number += step) {
        for (uint32_t set = 1; set < all; set++)
            game.size[set] = (double)(number >> (set - 1) & 1u);
        game.size[all] = 1.0;
        if (read % GAMES_OF_AN_IMAGE == 0) {
            if (read > 0) helper_image_close(&of);
            open_games(&of, causes);
        }
        read_game(&of, &game, said);
        read++;
    }
    helper_image_close(&of);
}

static void verify_each_game_of_three_and_four_causes(void **state) {
    (void)state;
    uint32_t said[SAID_COUNT] = {0};
    read_boolean(3, 1, said);
    read_boolean(4, helper_size(9, 3, 1), said); /* odd: every bit takes both values */
    for (int i = 0; i < SAID_COUNT; i++)
        if (said[i] == 0) fail_msg("no game has sentence %d", i);
}

static uint32_t draw(uint64_t game, uint32_t *place, uint32_t below) {
    const struct philox_block at = {{(uint32_t)game, (uint32_t)(game >> 32), (*place)++, 0}};
    return (uint32_t)(((uint64_t)philox_draw(at, UINT64_C(0x90147)).word[0] * below) >> 32);
}

/* A game that some minimal sets open, each of two causes or more, in which a few sets then got
 * another size: 0, next to a threshold, or more. */
static void draw_game(uint64_t number, uint32_t *place, struct game *out) {
    static const double sizes[] = {0.0, 0.05, 0.3, 0.5, 0.7, 0.9, 1.0};
    const uint32_t all = all_of(out), terms = 1 + draw(number, place, 4);
    for (uint32_t set = 0; set <= all; set++)
        out->size[set] = 0.0;
    for (uint32_t term = 0; term < terms; term++) {
        uint32_t least = draw(number, place, all) + 1;
        if ((least & (least - 1)) == 0 && draw(number, place, 4) > 0) continue;
        for (uint32_t set = 0; set <= all; set++)
            if ((set & least) == least) out->size[set] = 1.0;
    }
    for (uint32_t changed = draw(number, place, 4); changed > 0; changed--)
        out->size[draw(number, place, all + 1)] = sizes[draw(number, place, COUNT_OF(sizes))];
    out->size[0] = 0.0;
    out->size[all] = 1.0;
}

/* Sampled orders: two, and their reverses; what they pass through was trained, and each cause alone
 * and all but each. */
static void keep_trained(uint64_t number, uint32_t *place, struct game *game, double *orders) {
    const uint32_t all = all_of(game), causes = game->causes;
    int keep[SETS_MOST] = {0};
    keep[0] = keep[all] = 1;
    for (uint32_t cause = 0; cause < causes; cause++)
        keep[1u << cause] = keep[all & ~(1u << cause)] = 1;
    for (uint32_t order = 0; order < ORDERS; order += 2) {
        double *const row = orders + order * causes;
        uint32_t set = 0;
        for (uint32_t i = 0; i < causes; i++)
            row[i] = i;
        for (uint32_t i = causes; i > 1; i--) {
            const uint32_t with = draw(number, place, i);
            const double moved = row[i - 1];
            row[i - 1] = row[with];
            row[with] = moved;
        }
        for (uint32_t i = 0; i < causes; i++) {
            row[causes + causes - 1 - i] = row[i];
            set |= 1u << (uint32_t)row[i];
            keep[set] = keep[all & ~set] = 1;
        }
    }
    for (uint32_t set = 0; set <= all; set++)
        if (!keep[set]) game->size[set] = (double)NAN;
}

static void read_drawn(uint32_t causes, int sampled, uint64_t count, uint32_t said[SAID_COUNT]) {
    double orders[ORDERS * CAUSES_MOST];
    struct helper_image of;
    for (uint64_t i = 0; i < count; i++) {
        struct game game = {.causes = causes};
        uint32_t place = 0;
        if (i % GAMES_OF_AN_IMAGE == 0) {
            if (i > 0) helper_image_close(&of);
            open_games(&of, causes);
            helper_image_put(&of, "attribution/order", ORDERS, causes, orders);
        }
        draw_game(i * 8 + causes, &place, &game);
        if (sampled) keep_trained(i * 8 + causes, &place, &game, orders);
        read_game(&of, &game, said);
    }
    helper_image_close(&of);
}

static void verify_drawn_games(void **state) {
    (void)state;
    const uint64_t count = helper_size(100, 500, 100000);
    uint32_t said[SAID_COUNT] = {0};
    read_drawn(3, 0, count, said);
    read_drawn(4, 0, count, said);
    read_drawn(5, 0, count, said);
    for (int i = 0; i < SAID_COUNT; i++) /* few games are drawn in which two cancel */
        if (said[i] == 0 && i != SAID_BESIDE) fail_msg("no game has sentence %d", i);
}

static void verify_sampled_games(void **state) {
    (void)state;
    uint32_t said[SAID_COUNT] = {0};
    read_drawn(6, 1, helper_size(600, 1000, 100000), said);
    for (int i = 0; i < SAID_COUNT; i++)
        if (said[i] == 0 && i != SAID_ANY && i != SAID_TOGETHER && i != SAID_BESIDE)
            fail_msg("no game has sentence %d", i);
}

/* Where neither a cause's repair nor the cause alone is among the sets, their figures say whether
 * it does nothing. */
static void verify_idle_without_sets(void **state) {
    (void)state;
    static const struct {
        double left, alone;
        int is_idle;
    } cases[] = {{1, 0, 1}, {0.5, 0, 0}, {1, 0.5, 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const double left = cases[i].left, alone = cases[i].alone;
        const struct attribution of = {
            .causes = 2,
            .distance = 1.0,
            .share = {{1, 1, 1}, {0, 0, 0}},
            .left = {{0, 0, 0}, {left, left, left}},
            .alone = {{1, 1, 1}, {alone, alone, alone}},
        };
        assert_int_equal(attribution_is_idle(&of, 1), cases[i].is_idle);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_idle_without_sets),
        cmocka_unit_test(verify_each_game_of_three_and_four_causes),
        cmocka_unit_test(verify_drawn_games),
        cmocka_unit_test(verify_sampled_games),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
