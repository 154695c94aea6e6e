/* SPDX-License-Identifier: Apache-2.0
 * Puts the verdict of an ablation into sentences. Each word of the judge (enum attribution_word,
 * and what it rests on) has a function that says it, in two tones: of the way to the test arm where
 * the factors are known to be all that differs, of the way to all factors where they are not. */
#include "cli/ablate/ablate_headline.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "evidence/figure_text.h"

#define IN_WORDS 4 /* so many factors fit a sentence; the table has all */

const char *ablate_factor_name(const struct ablate_plan *plan, const struct ablate_judged *of) {
    return of->name != NULL ? of->name : plan->file->factors[of->factor].name;
}

int ablate_is_group(const struct ablate_judged *of) {
    return (of->mask & (of->mask - 1)) != 0;
}

static uint32_t in_words(const struct ablate_verdict *verdict) {
    return verdict->factor_count < IN_WORDS ? verdict->factor_count : IN_WORDS;
}

static void print_percent(const struct attributed *of) {
    char text[FIGURE_TEXT];
    fputs(figure_text(of, text), stdout);
}

static void print_share(const struct attributed *of, int is_signed) {
    char text[FIGURE_TEXT];
    fputs(share_text(of, is_signed, text), stdout);
}

enum figure { FIGURE_LEFT, FIGURE_ALONE };

static void print_figure(const struct ablate_plan *plan, const struct ablate_judged *of,
                         enum figure figure, int goes_on) {
    printf("%s%s ", goes_on ? ", " : "", ablate_factor_name(plan, of));
    print_percent(figure == FIGURE_LEFT ? &of->left : &of->alone);
}

static void print_figures(const struct ablate_plan *plan, const struct ablate_verdict *verdict,
                          enum figure figure) {
    for (uint32_t i = 0; i < in_words(verdict); i++)
        print_figure(plan, &verdict->factors[i], figure, i > 0);
    if (verdict->factor_count > IN_WORDS) printf(", %u more", verdict->factor_count - IN_WORDS);
}

/* What to print between factors of a list of shares that is in an order. */
static const char *between(const struct ablate_judged *before, const struct ablate_judged *of,
                           int in_order) {
    return in_order && !share_is_before(&before->share, &of->share) ? " and " : ", ";
}

/* The shares, or what is left without a factor, of those that do something. Where shares are in an
 * order, "and" joins those that have none. */
static void print_acting(const struct ablate_plan *plan, const struct ablate_verdict *verdict,
                         int shares, int in_order, int is_signed) {
    const struct ablate_judged *before = NULL;
    uint32_t said = 0;
    for (uint32_t i = 0; i < verdict->factor_count; i++) {
        const struct ablate_judged *const factor = &verdict->factors[i];
        if (factor->is_idle || said++ >= IN_WORDS) continue;
        printf("%s%s ", before == NULL ? "" : between(before, factor, in_order),
               ablate_factor_name(plan, factor));
        if (shares)
            print_share(&factor->share, is_signed);
        else
            print_percent(&factor->left);
        before = factor;
    }
    if (said > IN_WORDS) printf(", %u more", said - IN_WORDS);
}

/* What such a list says of those that it leaves out. Of a group, a sentence of its own does. */
static void print_nothing(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < verdict->factor_count; i++)
        if (verdict->factors[i].is_idle && !ablate_is_group(&verdict->factors[i]))
            printf("%s%s", count++ == 0 ? " " : ", ",
                   ablate_factor_name(plan, &verdict->factors[i]));
    if (count > 0) printf(count == 1 ? " makes none of it." : " make none of it.");
}

int ablate_has_shares(const struct ablate_verdict *verdict) {
    return verdict->factor_count > 0 && !isnan(verdict->factors[0].share.value);
}

/* Sentences speak of the way to the test arm only where all factors together are known to be it. */
static int is_closed(const struct ablate_verdict *verdict) {
    return verdict->closure == ABLATE_CLOSURE_EXACT || verdict->closure == ABLATE_CLOSURE_WITHIN ||
           verdict->closure == ABLATE_CLOSURE_RERUN;
}

/* Of one factor nothing is left to be shared out: it is all of the difference, or a part. */
static void print_only(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    const struct ablate_judged *only = &verdict->factors[0];
    printf(is_closed(verdict) ? " Cause: %s, the only factor."
           : only->inert      ? " The only factor, %s, moved nothing."
           : only->alone_equal != -1
               ? " The only factor, %s, is a part of it."
               : " Whether %s, the only factor, is a part of it is not known.",
           ablate_factor_name(plan, only));
}

/* The shares of all but the first. Of those that are known to be exactly 0 there is nothing to say.
 */
static void print_besides(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    uint32_t said = 0, others = 0;
    for (uint32_t i = 1; i < verdict->factor_count; i++) {
        const struct ablate_judged *const factor = &verdict->factors[i];
        const int is_told = ablate_is_group(factor) && factor->is_idle;
        others += !is_told;
        if (is_told || share_is_none(&factor->share)) continue;
        if (said++ >= IN_WORDS - 1) continue;
        printf("%s%s ", said == 1 ? " Besides: " : ", ", ablate_factor_name(plan, factor));
        print_share(&factor->share, 0);
    }
    if (said > IN_WORDS - 1) printf(", %u more", said - (IN_WORDS - 1));
    printf("%s", said > 0      ? "."
                 : others == 0 ? ""
                 : others == 1 ? " The other makes none of the way."
                               : " The others make none of the way.");
}

static void print_one(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    const struct ablate_judged *first = &verdict->factors[0];
    const int closed = is_closed(verdict);
    if (verdict->factor_count == 1) {
        print_only(plan, verdict);
        return;
    }
    printf(closed ? " Cause: %s makes " : " Of the factors, %s makes ",
           ablate_factor_name(plan, first));
    print_percent(&first->share);
    printf(closed ? " of the way from baseline to test; with it alone repaired, "
                  : " of the way to all factors; with it alone left out, ");
    print_percent(&first->left);
    printf(" of %s is left.", closed ? "the gap" : "that way");
    print_besides(plan, verdict);
}

/* Whether each share of the list of those that do something stands before the next one. */
static int all_ordered(const struct ablate_verdict *verdict) {
    const struct ablate_judged *before = NULL;
    uint32_t said = 0;
    for (uint32_t i = 0; i < verdict->factor_count; i++) {
        const struct ablate_judged *const factor = &verdict->factors[i];
        if (factor->is_idle || said++ >= IN_WORDS) continue;
        if (before != NULL && !share_is_before(&before->share, &factor->share)) return 0;
        before = factor;
    }
    return 1;
}

static void print_several(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    const int closed = is_closed(verdict);
    printf(closed ? " Several causes, " : " Several of the factors act, ");
    printf(verdict->word == WORD_OPEN ? "and which of them is the first is open: "
           : all_ordered(verdict)     ? "in this order: "
                                      : "in this order but for those joined by \"and\": ");
    print_acting(plan, verdict, 1, verdict->word != WORD_OPEN, 0);
    printf(closed
               ? " of the way from baseline to test. With one alone repaired, this much of the "
                 "gap is left: "
               : " of the way to all factors. With one left out, this much of that way is left: ");
    print_acting(plan, verdict, 0, 0, 0);
    putchar('.');
    print_nothing(plan, verdict);
}

static void print_oppose(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    const int closed = is_closed(verdict);
    printf(closed ? " Causes oppose each other" : " The factors oppose each other");
    if (ablate_has_shares(verdict)) {
        printf(closed ? ": of the way from baseline to test " : ": of the way to all factors ");
        print_acting(plan, verdict, 1, 0, 1);
    }
    printf(closed ? ". Repairing one alone leaves " : ". Leaving one out leaves ");
    print_acting(plan, verdict, 0, 0, 0);
    printf(closed ? " of the gap." : " of it.");
    print_nothing(plan, verdict);
}

/* The same of each factor that a joint sentence names, or of each other one. */
static void print_meant(const struct ablate_plan *plan, const struct ablate_verdict *verdict,
                        int meant, enum figure figure) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < verdict->factor_count; i++) {
        const int is_meant = verdict->joint.role[i] != JOINT_ROLE_NONE;
        if (is_meant != meant || count++ >= IN_WORDS) continue;
        print_figure(plan, &verdict->factors[i], figure, count > 1);
    }
    if (count > IN_WORDS) printf(", %u more", count - IN_WORDS);
}

static void print_names(const struct ablate_plan *plan, const struct ablate_verdict *verdict,
                        enum joint_role role) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < verdict->factor_count; i++)
        if (verdict->joint.role[i] == role)
            printf("%s%s", count++ == 0 ? "" : ", ",
                   ablate_factor_name(plan, &verdict->factors[i]));
}

static uint32_t count_roles(const struct ablate_verdict *verdict, enum joint_role role) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < verdict->factor_count; i++)
        count += verdict->joint.role[i] == role;
    return count;
}

static void print_blocked(const struct ablate_verdict *verdict) {
    if (verdict->joint.blocked) printf(", though not in every mixture with others");
}

/* What keeps the sentence from "only". */
static void print_other_mixtures(const struct ablate_plan *plan,
                                 const struct ablate_verdict *verdict) {
    const int closed = is_closed(verdict);
    switch (verdict->joint.others) {
    case OTHERS_ALL:
        printf(closed ? "; other mixtures open it as well" : "; other mixtures act as well");
        break;
    case OTHERS_HALF:
        printf(closed ? "; other mixtures open half of it or more"
                      : "; other mixtures go half of the way or more");
        break;
    case OTHERS_UNTRAINED:
        printf("; the mixture without ");
        print_names(plan, verdict, JOINT_ROLE_ANY);
        printf(" was not run");
        break;
    case OTHERS_UNKNOWN:
        printf("; noise hides what other mixtures do");
        break;
    default:
        break;
    }
}

/* What those who are named do: open the gap, or act where the gap is not known to be theirs. */
static const char *deed_of(const struct ablate_verdict *verdict) {
    const int half = verdict->joint.kind == JOINT_HALF;
    if (is_closed(verdict)) return half ? "open most of the gap" : "open the gap";
    return half ? "go most of the way" : "act";
}

static void print_only_together(const struct ablate_plan *plan,
                                const struct ablate_verdict *verdict) {
    const enum joint_kind kind = verdict->joint.kind;
    printf(verdict->joint.partial && kind != JOINT_OPEN
               ? " In the mixtures that were run, only together "
               : " Only together ");
    if (kind == JOINT_ANY) {
        printf("with any of ");
        print_names(plan, verdict, JOINT_ROLE_ANY);
        printf(count_roles(verdict, JOINT_ROLE_NAMED) == 1 ? " does " : " do ");
        print_names(plan, verdict, JOINT_ROLE_NAMED);
    } else {
        printf("do %s%s", kind == JOINT_OPEN ? "" : "these ",
               is_closed(verdict) ? "causes" : "factors");
    }
    printf(" %s", deed_of(verdict));
}

static void print_together(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    const int closed = is_closed(verdict), one = count_roles(verdict, JOINT_ROLE_NAMED) == 1;
    if (verdict->joint.others == OTHERS_SHUT) {
        print_only_together(plan, verdict);
    } else if (verdict->joint.kind == JOINT_ANY) {
        putchar(' ');
        print_names(plan, verdict, JOINT_ROLE_NAMED);
        printf(closed ? " open%s the gap" : " act%s", one ? "s" : "");
        printf(" together with %s", count_roles(verdict, JOINT_ROLE_ANY) == 1 ? "" : "any of ");
        print_names(plan, verdict, JOINT_ROLE_ANY);
    } else {
        printf(" Together these %s %s", closed ? "causes" : "factors", deed_of(verdict));
    }
    print_blocked(verdict);
    print_other_mixtures(plan, verdict);
    printf(closed ? "; alone each opens: " : "; alone each goes: ");
}

static void print_each(const struct ablate_verdict *verdict) {
    const int all = verdict->joint.kind == JOINT_ALL, closed = is_closed(verdict);
    if (closed)
        printf(" Each of several causes %s by itself",
               all ? "is enough" : "opens at least half of the gap");
    else
        printf(" Each of several factors goes %s by itself",
               all ? "the way to all of them" : "at least half of the way to all of them");
    print_blocked(verdict);
    printf(closed ? "; alone they open: " : "; alone they go: ");
}

/* Whether it is enough to repair all that are each enough. */
static void print_rest(const struct ablate_verdict *verdict) {
    const int closed = is_closed(verdict);
    if (verdict->word != WORD_EACH) {
        putchar('.');
    } else if (verdict->joint.rest_is_little) {
        printf(closed ? ": repair all." : ".");
    } else if (isnan(verdict->joint.rest.value)) {
        printf(closed ? ". What repairing all of these leaves was not run."
                      : ". What leaving all of these out leaves was not run.");
    } else {
        printf(closed ? ". Repairing all of these leaves " : ". Leaving all of these out leaves ");
        print_percent(&verdict->joint.rest);
        putchar('.');
    }
}

/* Both sentences say what each of their factors does alone, and then the same of the others. */
static void print_joint(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    const int closed = is_closed(verdict);
    if (verdict->word == WORD_EACH)
        print_each(verdict);
    else
        print_together(plan, verdict);
    print_meant(plan, verdict, 1, FIGURE_ALONE);
    printf(" of it. %s one alone leaves ", closed ? "Repairing" : "Leaving out");
    print_meant(plan, verdict, 1, FIGURE_LEFT);
    print_rest(verdict);
    if (count_roles(verdict, JOINT_ROLE_NONE) == 0) return;
    printf(closed ? " Others differ, too; alone they open: " : " Of the others, alone each goes: ");
    print_meant(plan, verdict, 0, FIGURE_ALONE);
    printf("; %s one alone leaves ", closed ? "repairing" : "leaving out");
    print_meant(plan, verdict, 0, FIGURE_LEFT);
    putchar('.');
}

static void print_nearly(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    printf(" The causes nearly cancel: alone they go this many times %s: ",
           is_closed(verdict) ? "the arms' distance" : "the way to all factors");
    for (uint32_t i = 0; i < in_words(verdict); i++) {
        printf("%s%s ", i == 0 ? "" : ", ", ablate_factor_name(plan, &verdict->factors[i]));
        if (isnan(verdict->factors[i].alone.value))
            printf("unknown");
        else
            printf("%.4g", verdict->factors[i].alone.value);
    }
    printf("; percentages of so small a rest would mean nothing.");
}

static void print_unknown(const struct ablate_verdict *verdict) {
    printf(" Which factor makes how much of it is not known%s%s.",
           verdict->no_shares[0] == '\0' ? "" : ": ", verdict->no_shares);
}

/* Where end points have no parts, equality is all that can be told. */
static void print_equalities(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    uint32_t repairs = 0, known = 0;
    if (verdict->floor != ABLATE_FLOOR_EXACT) {
        print_unknown(verdict);
        return;
    }
    for (uint32_t i = 0; i < verdict->factor_count; i++) {
        known += verdict->factors[i].left_equal >= 0;
        if (verdict->factors[i].left_equal != 1) continue;
        if (repairs++ == 0)
            printf(is_closed(verdict)
                       ? " With one factor repaired, the test arm equals the baseline: "
                       : " With one factor left out of all, the baseline stays what it is: ");
        else
            printf(", ");
        printf("%s", ablate_factor_name(plan, &verdict->factors[i]));
    }
    if (repairs > 0)
        putchar('.');
    else if (known == verdict->factor_count && verdict->factor_count > 0)
        printf(" No repair of one factor alone makes the arms equal.");
    else
        print_unknown(verdict);
}

/* Without shares and without a word that needs none, what each factor does alone and what its
 * repair leaves is still known. */
static void print_without_shares(const struct ablate_plan *plan,
                                 const struct ablate_verdict *verdict) {
    const int closed = is_closed(verdict);
    if (verdict->factor_count == 1) {
        print_only(plan, verdict);
        return;
    }
    if (!(verdict->has_distance && verdict->full > 0.0)) {
        print_equalities(plan, verdict);
        return;
    }
    printf(closed ? " With one factor repaired, this much of the gap is left: "
                  : " With one factor left out, this much of the way to all factors is left: ");
    print_figures(plan, verdict, FIGURE_LEFT);
    printf(closed ? ". Alone, each opens this much of it: "
                  : ". Alone, each goes this much of it: ");
    print_figures(plan, verdict, FIGURE_ALONE);
    putchar('.');
}

static void print_word(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    switch (verdict->word) {
    case WORD_CAUSE:
        print_one(plan, verdict);
        break;
    case WORD_SEVERAL:
    case WORD_OPEN:
        print_several(plan, verdict);
        break;
    case WORD_OPPOSE:
        print_oppose(plan, verdict);
        break;
    case WORD_TOGETHER:
    case WORD_EACH:
        print_joint(plan, verdict);
        break;
    case WORD_NEARLY:
        print_nearly(plan, verdict);
        break;
    case WORD_CANCEL: /* what remains is in no factor: the arms differ, and all factors end at A */
        printf(" The factors cancel exactly: all together they lead to the baseline's end point, "
               "and some of them lead elsewhere.");
        break;
    case WORD_EQUAL:
        printf(" No factor moved anything.");
        break;
    default:
        print_without_shares(plan, verdict);
    }
}

/* Comes before the word where the factors are not all that differs. */
static void print_open(const struct ablate_verdict *verdict) {
    if (verdict->closure == ABLATE_CLOSURE_UNTESTABLE)
        printf(" Whether the factors are all that differs is untestable: %s.",
               verdict->closure_reason);
    if (verdict->closure != ABLATE_CLOSURE_OPEN) return;
    printf(" Something that is in no factor differs, too: baseline with every factor of test is "
           "not test");
    if (verdict->has_distance && verdict->distance > 0.0 && isfinite(verdict->full) &&
        isfinite(verdict->open))
        printf(", but %.4g %% of |a-b| away from it, and %.4g %% away from baseline",
               100.0 * verdict->open / verdict->distance,
               100.0 * verdict->full / verdict->distance);
    putchar('.');
}

/* What logs hold is what the training printed, which may be rounded. */
static const char *as_printed(unsigned kinds) {
    return (kinds >> READ_LOG & 1u) != 0 ? " (losses, as printed)" : "";
}

/* Arms that are equal in some of what is read differ in the rest. */
static void print_differ(const struct ablate_verdict *verdict) {
    const unsigned equal = verdict->reads & ~verdict->differ & ~verdict->noise;
    const unsigned steady = verdict->noise == 0 ? 0 : verdict->differ & ~verdict->noise;
    char kinds[ABLATE_KINDS_TEXT];
    if (steady != 0)
        printf(" The arms differ in %s, and repeats never do.", ablate_kinds_text(steady, kinds));
    if (equal == 0 || verdict->differ == 0) return;
    printf(" The arms left equal %s and differ in ", ablate_kinds_text(equal, kinds));
    printf("%s%s.", ablate_kinds_text(verdict->differ, kinds), as_printed(verdict->differ));
}

int ablate_differ_in_names(const struct ablate_verdict *verdict) {
    return verdict->common.only_count[0] + verdict->common.only_count[1] > 0;
}

void ablate_print_only_left(const struct ablate_verdict *verdict) {
    static const char *const arms[] = {"baseline", "test"};
    const char *between = "";
    for (int side = 0; side < 2; side++) {
        const size_t count = verdict->common.only_count[side];
        if (count == 0) continue;
        printf("%sonly %s left %s", between, arms[side], verdict->common.only[side]);
        if (count > 1) printf(" and %zu more", count - 1);
        between = ", ";
    }
}

void ablate_print_renaming(const struct ablate_plan *plan, const struct ablate_verdict *verdict,
                           const char *before, const char *behind) {
    uint32_t said = 0;
    for (uint32_t i = 0; i < verdict->factor_count; i++)
        if (verdict->factors[i].alone_names)
            printf("%s%s", said++ == 0 ? before : ", ",
                   ablate_factor_name(plan, &verdict->factors[i]));
    if (said > 0) printf("%s", behind);
}

/* Arms that left other tensors are compared in those that both left. */
static void print_unlike(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    const size_t count = verdict->common.count;
    if (!ablate_differ_in_names(verdict)) return;
    if (count == 0)
        printf(" The arms have no tensor in common: ");
    else if (verdict->floor == ABLATE_FLOOR_EXACT && verdict->common_equal)
        printf(count == 1 ? " The one tensor that both arms left is equal, bit for bit; but "
                          : " All %zu tensors that both arms left are equal, bit for bit; but ",
               count);
    else if (verdict->p > verdict->alpha)
        printf(count == 1 ? " In the one tensor that both arms left they are not told apart from "
                            "repeats; but "
                          : " In the %zu tensors that both arms left they are not told apart from "
                            "repeats; but ",
               count);
    else
        printf(count == 1 ? " Distances are of the one tensor that both arms left: "
                          : " Distances are of the %zu tensors that both arms left: ",
               count);
    ablate_print_only_left(verdict);
    if (verdict->factor_count > 1) ablate_print_renaming(plan, verdict, " (by ", ")");
    putchar('.');
}

/* Names the factors that alone repeat, or do not. */
static void print_repeating(const struct ablate_plan *plan, const struct ablate_verdict *verdict,
                            int repeats) {
    uint32_t said = 0;
    for (uint32_t i = 0; i < verdict->factor_count; i++)
        if (verdict->factors[i].repeats_alone == repeats && said++ < IN_WORDS)
            printf("%s%s", said == 1 ? "" : ", ", ablate_factor_name(plan, &verdict->factors[i]));
    if (said > IN_WORDS) printf(", %u more", said - IN_WORDS);
}

/* One arm repeats and the other does not: then the relabelings tell them apart by that alone. */
static void print_unsteady(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    static const char *const arms[] = {"baseline", "test"};
    const int arm = verdict->noise_of[0] == 0; /* that which does not repeat */
    const int one = plan->file->factor_count == 1;
    uint32_t noisy = 0, steady = 0;
    if (verdict->floor != ABLATE_FLOOR_NOISY || verdict->noise_of[!arm] != 0) return;
    printf(" All runs of %s are bit-equal; only %s does not repeat itself", arms[!arm], arms[arm]);
    if (verdict->repeats > 0.0) printf(" (by %.4g at most)", verdict->repeats);
    printf(": the factor%s %s nondeterminism", one ? "" : "s",
           arm == 0 ? (one ? "takes away" : "take away") : (one ? "brings" : "bring"));
    if (verdict->nearest <= verdict->repeats)
        printf(", and no shift beyond it is shown");
    else if (verdict->nearest > 0.0)
        printf(", and the arms are %.4g apart at least", verdict->nearest);
    putchar('.');
    for (uint32_t i = 0; i < verdict->factor_count; i++) {
        noisy += verdict->factors[i].repeats_alone == 0;
        steady += verdict->factors[i].repeats_alone == 1;
    }
    if (arm == 0 || one || noisy == 0) return;
    printf(" Alone, ");
    print_repeating(plan, verdict, 0);
    printf(noisy == 1 ? " does not repeat" : " do not repeat");
    if (steady > 0) {
        printf("; ");
        print_repeating(plan, verdict, 1);
        printf(steady == 1 ? " does" : " do");
    }
    putchar('.');
}

static void print_elsewhere(const struct ablate_verdict *verdict) {
    if (verdict->elsewhere == 0) return;
    printf(" Of the hybrids, %u were run where no arm was (%s%s): a difference of machines or "
           "devices would look like a factor.",
           verdict->elsewhere, verdict->elsewhere_first, verdict->elsewhere > 1 ? ", ..." : "");
}

/* How far each factor goes whose hybrid alone, or whose repair, is not the baseline; where equality
 * is all that is known, its name. */
static void print_moves(const struct ablate_plan *plan, const struct ablate_verdict *verdict,
                        enum figure figure) {
    uint32_t said = 0;
    for (uint32_t i = 0; i < verdict->factor_count; i++) {
        const struct ablate_judged *const of = &verdict->factors[i];
        const double moves = figure == FIGURE_ALONE ? of->moves_alone : of->moves_left;
        if ((figure == FIGURE_ALONE ? of->alone_equal : of->left_equal) != 0) continue;
        if (said++ >= IN_WORDS) continue;
        printf("%s%s", said == 1 ? "" : ", ", ablate_factor_name(plan, of));
        if (moves > 0.0) printf(" %.4g", moves);
    }
    if (said > IN_WORDS) printf(", %u more", said - IN_WORDS);
}

/* Equal arms whose factors act all the same. */
static void print_cancel(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    uint32_t moving = 0, still = 0;
    for (uint32_t i = 0; i < verdict->factor_count; i++)
        moving += verdict->factors[i].alone_equal == 0;
    printf(" The factors cancel exactly: all together they end where baseline does, but ");
    printf(moving > 0 ? "alone these do not" : "with one of these left out they do not");
    if (verdict->by_loss)
        printf(" (by this much of the loss of update %" PRId64 ")", verdict->step);
    else if (verdict->has_distance)
        printf(" (by this much in the weights)");
    printf(": ");
    print_moves(plan, verdict, moving > 0 ? FIGURE_ALONE : FIGURE_LEFT);
    for (uint32_t i = 0; i < verdict->factor_count && moving > 0; i++)
        if (verdict->factors[i].alone_equal == 1)
            printf("%s%s", still++ == 0 ? "; alone nothing is moved by " : ", ",
                   ablate_factor_name(plan, &verdict->factors[i]));
    putchar('.');
}

/* What hybrids say of arms that are equal. */
static void print_equal_arms(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    if (verdict->closure == ABLATE_CLOSURE_OPEN) { /* factors, and what is in none, cancel */
        print_open(verdict);
        print_word(plan, verdict);
    } else if (verdict->word == WORD_CANCEL) {
        print_cancel(plan, verdict);
    } else if (verdict->word == WORD_EQUAL) {
        printf(verdict->factor_count == 2
                   ? " No factor moves anything alone, either."
                   : " No factor moves anything alone, and no set of all but one does, either.");
    } else {
        printf(" Whether factors cancel exactly is not known: %s.",
               verdict->closure_reason[0] != '\0' ? verdict->closure_reason : verdict->no_shares);
    }
    print_elsewhere(verdict);
}

/* How far each of these factors goes alone, in the order of the file, and all of them together. */
static void print_nearly_cancel(const struct ablate_plan *plan,
                                const struct ablate_verdict *verdict,
                                const struct ablate_linked *linked) {
    const double moves =
        linked->how == ABLATE_CANCEL_IN_TEST ? linked->moves_test : linked->moves_base;
    const struct attributed together = {moves, moves, moves};
    const char *const of = is_closed(verdict) ? "the gap" : "the way to all factors";
    const int in_test = linked->how == ABLATE_CANCEL_IN_TEST;
    uint32_t said = 0;
    printf(linked->is_joined ? " belong together and count as one factor in these shares: "
                             : " nearly cancel: ");
    printf(in_test ? "leaving one alone out of all leaves " : "alone each moves ");
    for (uint32_t i = 0; i < plan->file->factor_count; i++)
        for (uint32_t f = 0; f < verdict->factor_count; f++) {
            const struct ablate_judged *const factor = &verdict->factors[f];
            if (factor->factor != i || (linked->mask & factor->mask) == 0) continue;
            printf("%s%s ", said++ == 0 ? "" : ", ", ablate_factor_name(plan, factor));
            print_percent(in_test ? &factor->left : &factor->alone);
        }
    printf(in_test ? " of %s, and without all of these test moves " : " of %s, and together ", of);
    print_percent(&together);
    putchar('.');
}

/* Factors that shares deal out one by one, and that cancel, or act only together. */
static void print_linked(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    for (uint32_t l = 0; l < verdict->linked_count; l++) {
        const struct ablate_linked *const linked = &verdict->linked[l];
        uint32_t left = 0;
        if (linked->how == ABLATE_TOGETHER && verdict->word == WORD_TOGETHER) continue;
        for (uint32_t i = 0; i < plan->file->factor_count; i++)
            left += linked->mask >> i & 1u;
        putchar(' ');
        for (uint32_t i = 0; i < plan->file->factor_count; i++)
            if ((linked->mask >> i & 1u) != 0)
                printf("%s%s", plan->file->factors[i].name,
                       --left == 0 ? ""
                       : left == 1 ? " and "
                                   : ", ");
        if (linked->nearly) {
            print_nearly_cancel(plan, verdict, linked);
            continue;
        }
        switch (linked->how) {
        case ABLATE_TOGETHER:
            printf(" act only together: without the other one, neither changed any of %u hybrids.",
                   linked->pairs);
            break;
        case ABLATE_CANCEL_IN_BASELINE:
            printf(" cancel exactly in the baseline: it is the same with them, bit for bit.");
            break;
        case ABLATE_CANCEL_IN_TEST:
            printf(" cancel exactly in all factors: these are the same without them, bit for bit.");
            break;
        default:
            printf(" cancel exactly: the baseline is the same with them, and all factors are the "
                   "same without, bit for bit.%s",
                   linked->is_joined ? " They count as one factor in these shares." : "");
        }
    }
}

void ablate_print_headline(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    char kinds[ABLATE_KINDS_TEXT];
    printf("%s: ", plan->file->name);
    switch (verdict->kind) {
    case ABLATE_UNTESTABLE:
        printf("UNTESTABLE: %s.", verdict->reason);
        break;
    case ABLATE_INSIDE:
        if (verdict->floor == ABLATE_FLOOR_EXACT)
            printf("IDENTICAL: baseline and test left equal %s%s.",
                   ablate_kinds_text(verdict->reads, kinds), as_printed(verdict->reads));
        else
            printf(
                "INSIDE THE FLOOR: the arms are not told apart from repeats (p = %.4g, alpha %g; a "
                "shift of more than %.4g in any direction would be).",
                verdict->p, verdict->alpha, verdict->shift);
        if (verdict->asks_cancel) print_equal_arms(plan, verdict);
        break;
    default:
        printf("OUTSIDE THE FLOOR.");
        print_differ(verdict);
        print_unlike(plan, verdict);
        print_unsteady(plan, verdict);
        print_open(verdict);
        if (verdict->factor_count > 0)
            print_word(plan, verdict->joined != NULL ? verdict->joined : verdict);
        print_linked(plan, verdict);
        print_elsewhere(verdict);
    }
    putchar('\n');
}
