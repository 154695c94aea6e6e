/* SPDX-License-Identifier: Apache-2.0
 * Puts an ablation into words. Computes nothing but percentages. */
#include "cli/ablate/ablate_print.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ablate/ablate_chance.h"
#include "base/number.h"
#include "checkpoints/layers.h"
#include "cli/ablate/ablate_guard.h"
#include "evidence/figure_text.h"
#include "scenarios/yaml.h"

#define VALUE_SIZE 100 /* of a leaf's value that is printed */
#define IN_WORDS 4     /* so many factors fit a sentence; the table has all */

static const char *name_of(const struct ablate_plan *plan, const struct ablate_judged *of) {
    return plan->file->factors[of->factor].name;
}

const char *ablate_verdict_name(const struct ablate_verdict *verdict) {
    static const char *const names[] = {"inside-floor", "outside-floor", "untestable"};
    if (verdict->kind == ABLATE_INSIDE && verdict->floor == ABLATE_FLOOR_EXACT) return "identical";
    return names[verdict->kind];
}

/* ---- headline ---- */

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
    printf("%s%s ", goes_on ? ", " : "", name_of(plan, of));
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
               name_of(plan, factor));
        if (shares)
            print_share(&factor->share, is_signed);
        else
            print_percent(&factor->left);
        before = factor;
    }
    if (said > IN_WORDS) printf(", %u more", said - IN_WORDS);
}

/* What such a list says of those that it leaves out. */
static void print_nothing(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < verdict->factor_count; i++)
        if (verdict->factors[i].is_idle)
            printf("%s%s", count++ == 0 ? " " : ", ", name_of(plan, &verdict->factors[i]));
    if (count > 0) printf(count == 1 ? " makes none of it." : " make none of it.");
}

static int has_shares(const struct ablate_verdict *verdict) {
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
           name_of(plan, only));
}

/* The shares of all but the first. Of those that are known to be exactly 0 there is nothing to say.
 */
static void print_besides(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    uint32_t said = 0;
    for (uint32_t i = 1; i < verdict->factor_count; i++) {
        const struct ablate_judged *const factor = &verdict->factors[i];
        if (share_is_none(&factor->share)) continue;
        if (said++ >= IN_WORDS - 1) continue;
        printf("%s%s ", said == 1 ? " Besides: " : ", ", name_of(plan, factor));
        print_share(&factor->share, 0);
    }
    if (said > IN_WORDS - 1) printf(", %u more", said - (IN_WORDS - 1));
    printf("%s", said > 0                     ? "."
                 : verdict->factor_count == 2 ? " The other makes none of the way."
                                              : " The others make none of the way.");
}

static void print_one(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    const struct ablate_judged *first = &verdict->factors[0];
    const int closed = is_closed(verdict);
    if (verdict->factor_count == 1) {
        print_only(plan, verdict);
        return;
    }
    printf(closed ? " Cause: %s makes " : " Of the factors, %s makes ", name_of(plan, first));
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
    if (has_shares(verdict)) {
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
            printf("%s%s", count++ == 0 ? "" : ", ", name_of(plan, &verdict->factors[i]));
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
        printf("%s%s ", i == 0 ? "" : ", ", name_of(plan, &verdict->factors[i]));
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
        printf("%s", name_of(plan, &verdict->factors[i]));
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

static int differ_in_names(const struct ablate_verdict *verdict) {
    return verdict->common.only_count[0] + verdict->common.only_count[1] > 0;
}

/* Prints which tensors one arm alone left: "only baseline left head and 2 more". */
static void print_only_left(const struct ablate_verdict *verdict) {
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

/* Prints the factors that, alone, change which tensors there are. */
static void print_renaming(const struct ablate_plan *plan, const struct ablate_verdict *verdict,
                           const char *before, const char *behind) {
    uint32_t said = 0;
    for (uint32_t i = 0; i < verdict->factor_count; i++)
        if (verdict->factors[i].alone_names)
            printf("%s%s", said++ == 0 ? before : ", ", name_of(plan, &verdict->factors[i]));
    if (said > 0) printf("%s", behind);
}

/* Arms that left other tensors are compared in those that both left. */
static void print_unlike(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    const size_t count = verdict->common.count;
    if (!differ_in_names(verdict)) return;
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
    print_only_left(verdict);
    if (verdict->factor_count > 1) print_renaming(plan, verdict, " (by ", ")");
    putchar('.');
}

/* Names the factors that alone repeat, or do not. */
static void print_repeating(const struct ablate_plan *plan, const struct ablate_verdict *verdict,
                            int repeats) {
    uint32_t said = 0;
    for (uint32_t i = 0; i < verdict->factor_count; i++)
        if (verdict->factors[i].repeats_alone == repeats && said++ < IN_WORDS)
            printf("%s%s", said == 1 ? "" : ", ", name_of(plan, &verdict->factors[i]));
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
        printf("%s%s", said == 1 ? "" : ", ", name_of(plan, of));
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
                   name_of(plan, &verdict->factors[i]));
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
                   "same without, bit for bit.");
        }
    }
}

static void print_headline(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
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
        if (verdict->factor_count > 0) print_word(plan, verdict);
        print_linked(plan, verdict);
        print_elsewhere(verdict);
    }
    putchar('\n');
}

/* ---- rows ---- */

/* What equal repeats do not exclude. */
static void print_chance(const struct ablate_verdict *verdict) {
    const uint32_t runs = 2 * verdict->floor_runs;
    printf("           ");
    if (verdict->doubt[0] != '\0') printf("%s, so more of the arms were run", verdict->doubt);
    if (verdict->doubt[0] != '\0' && verdict->kind == ABLATE_OUTSIDE)
        printf(": p = %.4g over all relabelings of %u and %u (alpha %g)", verdict->chance,
               verdict->floor_runs, verdict->floor_runs, verdict->alpha);
    else if (!isnan(verdict->chance))
        printf("if each run drew one of two results, at most %.2g %% of ablations would come out "
               "like this (alpha %g %%)",
               100.0 * verdict->chance, 100.0 * verdict->alpha);
    if (verdict->doubt[0] != '\0' || !isnan(verdict->chance)) printf("; ");
    printf("%u equal runs miss a result that comes in %.0f %% of runs once in 20 times\n", runs,
           100.0 * ablate_missed_rate(runs));
}

static void print_floor(const struct ablate_file *file, const struct ablate_verdict *verdict) {
    char kinds[ABLATE_KINDS_TEXT];
    if (verdict->floor == ABLATE_FLOOR_OPEN) return;
    printf("  floor    ");
    if (verdict->floor == ABLATE_FLOOR_EXACT) {
        printf("exact: %u runs of each arm, %s, left equal %s\n", verdict->floor_runs,
               file->shared ? "all in one process" : "each in a process of its own",
               ablate_kinds_text(verdict->reads, kinds));
        print_chance(verdict);
        return;
    }
    printf("noisy: runs of %s differ in %s",
           verdict->noise_of[1] == 0   ? "baseline"
           : verdict->noise_of[0] == 0 ? "test"
                                       : "both arms",
           ablate_kinds_text(verdict->noise, kinds));
    if (!isnan(verdict->repeats)) printf(", by %.4g at most", verdict->repeats);
    if (verdict->noise_of[1] == 0 || verdict->noise_of[0] == 0)
        printf("; those of %s are equal", verdict->noise_of[1] == 0 ? "test" : "baseline");
    if (!isnan(verdict->p))
        printf("; p = %.4g over all relabelings of %u and %u runs (least %.3g, alpha %g)",
               verdict->p, verdict->floor_runs, verdict->floor_runs, verdict->least,
               verdict->alpha);
    putchar('\n');
}

static void print_measure(const struct ablate_verdict *verdict) {
    if (isnan(verdict->distance)) {
        if (verdict->kind == ABLATE_OUTSIDE && verdict->no_shares[0] == '\0')
            printf("  measure  %s: equal or not; nothing that a distance could be of\n",
                   ablate_read_names[verdict->measure]);
        return;
    }
    printf("  measure  ");
    if (verdict->by_loss)
        printf("the loss of update %" PRId64 ", |a-b| = %.6g\n", verdict->step, verdict->distance);
    else if (verdict->shape.tensors > 0)
        printf("weights: %zu tensor%s%s, %" PRIu64 " elements%s, |a-b| = %.6g\n",
               verdict->shape.tensors, verdict->shape.tensors == 1 ? "" : "s",
               differ_in_names(verdict) ? " of both arms" : "", verdict->shape.elements,
               verdict->shape.others > 0 ? " (integers beside them: equality only)" : "",
               verdict->distance);
    else
        printf("weights, |a-b| = %.6g\n", verdict->distance);
}

/* Whose names are compared without what a wrapper of the model put into them, where the arms' are
 * not alike in that. */
static void print_wrappers(const struct ablate_verdict *verdict) {
    static const char *const arms[] = {"baseline", "test"};
    int said = 0;
    if (verdict->wrappers[0] == verdict->wrappers[1]) return;
    for (int side = 0; side < 2; side++) {
        const char *between = "";
        if (verdict->wrappers[side] == 0) continue;
        printf("%s those of %s without ", said++ == 0 ? "  names   " : ",", arms[side]);
        for (size_t i = 0; i < LAYER_WRAPPERS; i++) {
            if ((verdict->wrappers[side] >> i & 1u) == 0) continue;
            printf("%s\"%s\"", between, layer_wrappers[i]);
            between = " and ";
        }
    }
    printf(", which wrappers put into them\n");
}

/* Which tensors one arm alone left, and which factors do that. */
static void print_tensors(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    if (!differ_in_names(verdict)) return;
    printf("  tensors  ");
    print_only_left(verdict);
    print_renaming(plan, verdict, "; alone, these change which there are: ", "");
    putchar('\n');
}

static void print_closure(const struct ablate_verdict *verdict) {
    static const char *const words[] = {
        [ABLATE_CLOSURE_ABSENT] = "",
        [ABLATE_CLOSURE_EXACT] = "exact: baseline with every factor of test equals test, your own "
                                 "second command, bit for bit",
        [ABLATE_CLOSURE_WITHIN] =
            "within the noise: baseline with every factor of test is not told "
            "apart from test, your own second command",
        [ABLATE_CLOSURE_OPEN] = "OPEN: baseline with every factor of test is not test, your own "
                                "second command: something differs that is no factor",
        [ABLATE_CLOSURE_RERUN] = "none: both arms come from one command, so what no factor holds "
                                 "cannot show; the rerun of test agrees",
        [ABLATE_CLOSURE_RERUN_DIFFERS] = "none: baseline with every factor of test has the command "
                                         "of test, and came out otherwise",
        [ABLATE_CLOSURE_UNTESTABLE] = "untestable: ",
    };
    if (verdict->closure == ABLATE_CLOSURE_ABSENT) return;
    printf("  closure  %s%s", words[verdict->closure], verdict->closure_reason);
    if (!isnan(verdict->closure_p)) {
        printf(" (p = %.4g over all relabelings of %u and %u runs, least %.3g, alpha %g; the "
               "nearest are %.4g apart",
               verdict->closure_p, verdict->closure_runs, verdict->floor_runs,
               verdict->closure_least, verdict->alpha, verdict->open);
        if (!isnan(verdict->closure_shift) && verdict->closure_p > verdict->alpha)
            printf("; a shift of more than %.4g in any direction would be told",
                   verdict->closure_shift);
        putchar(')');
    } else if (verdict->open > 0.0) {
        printf(" (%.4g apart", verdict->open);
        if (verdict->distance > 0.0) printf(", %.3g of |a-b|", verdict->open / verdict->distance);
        putchar(')');
    }
    putchar('\n');
}

/* A percentage, or how many times the whole, where causes nearly cancel and percentages would mean
 * nothing. */
static void print_column(double value, int times) {
    if (isnan(value))
        printf(" %9s  ", "-");
    else if (times)
        printf(" %9.3g x", value);
    else
        printf(" %9.3f %%", 100.0 * value);
}

/* A loss less the baseline's at the same update; "-" where one of the two is not known. */
static void print_loss(double value) {
    if (isnan(value))
        printf(" %12s", "-");
    else
        printf(" %+12.4g", value);
}

static void print_equality(int equal) {
    printf(" %11s", equal < 0 ? "-" : equal ? "equal" : "differs");
}

static void print_table(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    const int figures = verdict->has_distance && isfinite(verdict->full) && verdict->full > 0.0;
    const int losses = verdict->step > 0 && isfinite(verdict->loss_gap);
    const int shares = figures && has_shares(verdict);
    const int times = verdict->word == WORD_NEARLY;
    const double unit = times ? 0.5 : 50.0; /* half an interval, in what the column is in */
    if (verdict->factor_count == 0) return;
    if (figures)
        printf("  %s  %s the way from baseline to all factors, %.6g%s\n",
               times    ? "times  "
               : shares ? "shares "
                        : "figures",
               times ? "so many times" : "of", verdict->full,
               verdict->floor == ABLATE_FLOOR_NOISY ? " with the noise of runs taken out" : "");
    else
        printf("  factors  against the baseline\n");
    printf("           %-20s", "");
    if (shares) printf(" %11s", "share");
    printf(" %11s %11s", "left", "alone");
    if (losses) printf(" %12s %12s", "loss left", "loss alone");
    putchar('\n');
    for (uint32_t i = 0; i < verdict->factor_count; i++) {
        const struct ablate_judged *of = &verdict->factors[i];
        printf("           %-20s", name_of(plan, of));
        if (shares) print_column(of->share.value, times);
        if (figures) {
            print_column(of->left.value, times);
            print_column(of->alone.value, times);
        } else {
            print_equality(of->left_equal);
            print_equality(of->alone_equal);
        }
        if (losses) {
            print_loss(of->loss_left);
            print_loss(of->loss_alone);
        }
        if (figures && of->share.high > of->share.low)
            printf("   +- %.2g, +- %.2g, +- %.2g", unit * (of->share.high - of->share.low),
                   unit * (of->left.high - of->left.low), unit * (of->alone.high - of->alone.low));
        putchar('\n');
    }
    if (losses)
        printf("           loss at update %" PRId64 ": all factors %+.4g%s\n", verdict->step,
               verdict->loss_gap,
               verdict->floor == ABLATE_FLOOR_NOISY ? "; of single runs, with their noise" : "");
    if (verdict->orders > 0)
        printf("           estimated from %u sampled orders of entry; intervals %g %% together\n",
               verdict->orders, 100.0 * verdict->confidence);
    else if (!isnan(verdict->confidence))
        printf("           %llu runs of each hybrid; intervals at %g %%: jackknife over runs\n",
               (unsigned long long)plan->file->noisy_hybrids, 100.0 * verdict->confidence);
}

static unsigned never_moved(const struct ablate_verdict *verdict, const struct ablate_judged *of) {
    unsigned kinds = 0;
    for (int kind = 0; kind < READ_KINDS; kind++)
        if ((verdict->reads >> kind & 1u) != 0 && of->same[kind] == of->pairs) kinds |= 1u << kind;
    return kinds;
}

static void print_inert(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    char still[ABLATE_KINDS_TEXT], moved[ABLATE_KINDS_TEXT];
    if (verdict->floor != ABLATE_FLOOR_EXACT) return;
    for (uint32_t i = 0; i < verdict->factor_count; i++) {
        const struct ablate_judged *of = &verdict->factors[i];
        const unsigned kinds = never_moved(verdict, of);
        if (of->inert)
            printf("  inert    %s: no evidence that it acted: with and without it %u of %u "
                   "hybrids are equal, bit for bit\n",
                   name_of(plan, of), of->equal, of->planned);
        else if (kinds != 0 && of->pairs > 0 && of->equal < of->pairs)
            printf("  partly   %s: with and without it, %u of %u hybrids are equal in %s; it "
                   "changes %s\n",
                   name_of(plan, of), of->pairs, of->planned, ablate_kinds_text(kinds, still),
                   ablate_kinds_text(verdict->reads & ~kinds, moved));
    }
}

static void print_first(const char *who, const struct ablate_first *first) {
    if (first->update == 0) return;
    printf("  first    %s%supdate %" PRId64 "%s%s%s%s\n", who,
           who[0] == '\0' ? "" : " alone: ", first->update, first->phase[0] == '\0' ? "" : ", ",
           first->phase, first->tensor[0] == '\0' ? "" : ", ", first->tensor);
}

void ablate_print_failed(const struct ablate_folder *folder, const struct ablate_result *results) {
    for (uint32_t i = 0; i < folder->plan->run_count; i++) {
        const char *at = results[i].reason;
        if (results[i].state != ABLATE_FAILED) continue;
        printf("  failed   %s: ", folder->plan->runs[i].id);
        while (*at != '\0') {
            const size_t length = strcspn(at, "\n");
            printf("%.*s\n", (int)length, at);
            at += length + (at[length] == '\n');
            if (*at != '\0') printf("             ");
        }
    }
}

static int is_scalar(const struct yaml_node *node) {
    return node->kind != YAML_LIST && node->kind != YAML_MAP;
}

/* Whether a value is no string, so that it stands without quotes: a number, a truth value, and
 * whatever is no string where the other file has a string of the same letters, since the quotes are
 * then all that differs. */
static int is_bare(const struct yaml_node *node, const struct yaml_node *other) {
    double number;
    if (node->kind != YAML_PLAIN) return 0;
    if (other != NULL && other->kind == YAML_QUOTED && strcmp(node->text, other->text) == 0)
        return 1;
    return strcmp(node->text, "true") == 0 || strcmp(node->text, "false") == 0 ||
           number_parse_real(node->text, NUMBER_SPECIAL | NUMBER_HEX, &number) == STATUS_OK;
}

/* A value that grows until it is too long for a line. */
struct shown {
    char text[VALUE_SIZE];
    size_t used;
    int cut;
};

static void show_text(struct shown *out, const char *text, size_t length) {
    if (out->cut || out->used + length >= sizeof out->text) {
        out->cut = 1;
        return;
    }
    memcpy(out->text + out->used, text, length);
    out->used += length;
    out->text[out->used] = '\0';
}

static void show_scalar(struct shown *out, const struct yaml_node *node,
                        const struct yaml_node *other) {
    char described[YAML_TEXT_SIZE];
    struct yaml_node word = {.kind = node->kind, .text = node->text};
    if (word.kind == YAML_QUOTED) word.kind = YAML_PLAIN;
    const char *const words = yaml_describe(&word, described); /* a scalar stands in quotes there */
    if (is_bare(node, other))
        show_text(out, words + 1, strlen(words) - 2);
    else
        show_text(out, words, strlen(words));
}

/* Shows a list or a map on one line, as JSON does. Of a list the first `alike` items, which the
 * other file has, too, are counted only. */
static void show_value(struct shown *out, const struct yaml_node *node, size_t alike) {
    const int is_map = node->kind == YAML_MAP;
    size_t number = 0;
    if (is_scalar(node)) {
        show_scalar(out, node, NULL);
        return;
    }
    show_text(out, is_map ? "{" : "[", 1);
    if (alike > 0) {
        char count[32];
        snprintf(count, sizeof count, "(%zu alike)", alike);
        show_text(out, count, strlen(count));
    }
    for (const struct yaml_node *child = node->first; child != NULL && !out->cut;
         child = child->next) {
        if (number++ < alike) continue;
        if (number > 1) show_text(out, ", ", 2);
        if (is_map) {
            show_text(out, child->key, strlen(child->key));
            show_text(out, ": ", 2);
        }
        show_value(out, child, 0);
    }
    show_text(out, is_map ? "}" : "]", 1);
}

static int same_value(const struct yaml_node *a, const struct yaml_node *b) {
    if (a->kind != b->kind || a->count != b->count) return 0;
    if (a->kind != YAML_LIST && a->kind != YAML_MAP)
        return a->kind == YAML_NULL || strcmp(a->text, b->text) == 0;
    const struct yaml_node *y = b->first;
    for (const struct yaml_node *x = a->first; x != NULL; x = x->next, y = y->next)
        if ((a->kind == YAML_MAP && strcmp(x->key, y->key) != 0) || !same_value(x, y)) return 0;
    return 1;
}

/* Counts with how many items two lists begin alike, where one of them is too long to be shown. */
static size_t count_alike(const struct yaml_node *a, const struct yaml_node *b) {
    size_t alike = 0;
    if (a == NULL || b == NULL || a->kind != YAML_LIST || b->kind != YAML_LIST) return 0;
    struct shown both[2] = {{.used = 0}, {.used = 0}};
    show_value(&both[0], a, 0);
    show_value(&both[1], b, 0);
    if (!both[0].cut && !both[1].cut) return 0;
    const struct yaml_node *y = b->first;
    for (const struct yaml_node *x = a->first; x != NULL && y != NULL && same_value(x, y);
         x = x->next, y = y->next)
        alike++;
    return alike;
}

static void print_value(const struct yaml_node *node, const struct yaml_node *other) {
    struct shown shown = {.used = 0};
    if (node == NULL) {
        printf("(not there)");
        return;
    }
    if (node->kind == YAML_NULL || is_scalar(node)) {
        if (node->kind == YAML_NULL)
            printf("nothing");
        else
            show_scalar(&shown, node, other);
    } else {
        show_value(&shown, node, count_alike(node, other));
    }
    printf("%s%s", shown.text, shown.cut ? "..." : "");
}

/* A leaf of two files, with its value in each. */
static void print_leaf(const struct ablate_plan *plan, const struct ablate_leaf *leaf) {
    const struct leaves *leaves = &plan->leaves[leaf->file];
    printf(" %s of %s", leaf->path, plan->file->files[leaf->file].paths[1]);
    for (size_t i = 0; i < leaves->count; i++) {
        const struct yaml_node *const *of = leaves->values[i].of;
        if (strcmp(leaves->differ[i], leaf->path) != 0) continue;
        printf(", ");
        print_value(of[0], of[1]);
        printf(" -> ");
        print_value(of[1], of[0]);
    }
}

static void print_untested(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    const struct ablate_file *const file = plan->file;
    const uint32_t hybrids =
        verdict->asks_cancel ? ablate_plan_if_equal(plan) : plan->mask_count - 1;
    printf("  untested ");
    if (verdict->kind == ABLATE_INSIDE && verdict->floor == ABLATE_FLOOR_NOISY &&
        file->factor_count > 1)
        printf("causes that cancel (over a noisy floor hybrids are run where the arms differ), ");
    else if (verdict->kind == ABLATE_INSIDE && file->stops_if_equal && file->factor_count > 1)
        printf("causes that cancel exactly (if_equal: stop), ");
    printf("other seeds and data (seed), %sother machines",
           file->shared ? "repeats in other processes, " : "");
    if (verdict->once > 0)
        printf("; whether %u of %u hybrids, which were run once, repeat", verdict->once, hybrids);
    if (verdict->asks_cancel && file->factor_count == 4)
        printf("; mixtures of 2 factors");
    else if (verdict->asks_cancel && file->factor_count > 4)
        printf("; mixtures of 2 to %u factors", file->factor_count - 2);
    putchar('\n');
}

/* Words of a level that are printed; a command may have hundreds. */
#define WORDS_PRINTED ((size_t)6)

/* Prints the words that a level puts into the command. */
static void print_level(const struct ablate_words *level) {
    const size_t some = level->count < WORDS_PRINTED ? level->count : WORDS_PRINTED;
    if (level->count == 0) printf(" (nothing)");
    for (size_t i = 0; i < some; i++)
        printf(" %s", level->words[i]);
    if (some < level->count) printf(" ... (%zu words)", level->count);
}

void ablate_print(const struct ablate_folder *folder, const struct ablate_result *results,
                  const struct ablate_verdict *verdict) {
    uint32_t done = 0;
    print_headline(folder->plan, verdict);
    for (uint32_t i = 0; i < folder->plan->file->factor_count; i++) {
        const struct ablate_factor *factor = &folder->plan->file->factors[i];
        printf("  %s %s:", i == 0 ? "differs " : "        ", factor->name);
        if (factor->has_words) {
            print_level(&factor->shown[0]);
            printf(" ->");
            print_level(&factor->shown[1]);
        }
        for (size_t v = 0; v < factor->variable_count; v++) {
            const struct ablate_variable *variable = &factor->variables[v];
            printf(" %s=%s -> %s", variable->name,
                   variable->shown[0] == NULL ? "(not set)" : variable->shown[0],
                   variable->shown[1] == NULL ? "(not set)" : variable->shown[1]);
        }
        for (size_t l = 0; l < factor->leaf_count; l++) {
            if (l > 0) putchar(';');
            print_leaf(folder->plan, &factor->leaves[l]);
        }
        putchar('\n');
    }
    print_first("", &verdict->first);
    for (uint32_t i = 0; i < verdict->factor_count; i++)
        print_first(name_of(folder->plan, &verdict->factors[i]), &verdict->factors[i].first);
    print_floor(folder->plan->file, verdict);
    print_measure(verdict);
    print_tensors(folder->plan, verdict);
    print_wrappers(verdict);
    print_closure(verdict);
    print_table(folder->plan, verdict);
    if (verdict->no_shares[0] != '\0' && !(verdict->asks_cancel && verdict->word == WORD_NONE))
        printf("  shares   %s: %s\n", folder->plan->file->single ? "none" : "untestable",
               verdict->no_shares);
    print_inert(folder->plan, verdict);
    ablate_print_failed(folder, results);
    print_untested(folder->plan, verdict);
    for (uint32_t i = 0; i < folder->plan->run_count; i++)
        done += results[i].state == ABLATE_DONE;
    printf("  runs     %u done, in %s\n", done, folder->path);
}

/* ---- what to ask next ---- */

/* Writes the path of what the first run of an arm left, as a word for a shell. */
static enum status path_of_arm(const struct ablate_folder *folder, int arm, enum ablate_read kind,
                               struct arena *arena, char **out) {
    const struct ablate_plan *plan = folder->plan;
    uint32_t i = 0;
    while (i < plan->run_count && (plan->runs[i].arm != arm || plan->runs[i].replicate != 1))
        i++;
    char *dir, *path;
    TRY(ablate_folder_path(folder, &plan->runs[i], "out", arena, &dir));
    TRY(ablate_left_path(plan->file, &plan->runs[i], kind, dir, arena, &path));
    const struct ablate_words one = {1, (const char *const *)&path};
    return ablate_quote(&one, arena, out);
}

enum status ablate_print_next(const struct ablate_folder *folder,
                              const struct ablate_verdict *verdict, struct arena *arena) {
    const char *const *read = folder->plan->file->read;
    const enum ablate_read kind = read[READ_TRACE] != NULL ? READ_TRACE : READ_LOG;
    char *paths[2];
    /* What calls of a function leave is often gone when their text is read. */
    if (verdict->kind != ABLATE_OUTSIDE || read[kind] == NULL || folder->plan->file->shared)
        return STATUS_OK;
    for (int arm = 0; arm < 2; arm++)
        TRY(path_of_arm(folder, arm, kind, arena, &paths[arm]));
    printf("  next     where the two part, and what is broken in test by itself:\n"
           "           twinstep compare %s %s\n"
           "           twinstep doctor %s\n",
           paths[0], paths[1], paths[1]);
    return STATUS_OK;
}

/* ---- the plan ---- */

/* Returns how long so many runs can take: each its whole time, and then the grace of its guard. */
static double time_of(const struct ablate_file *file, uint32_t runs) {
    return (file->timeout + GUARD_GRACE) * ceil((double)runs / (double)file->slots);
}

/* Prints a variable as a shell reads it before a command. */
static enum status print_variable(const struct ablate_variable *variable, struct arena *arena) {
    const struct ablate_words value = {1, variable->value};
    char *quoted;
    if (variable->value[0] == NULL) {
        printf(" %s=(not set)", variable->name);
        return STATUS_OK;
    }
    TRY(ablate_quote(&value, arena, &quoted));
    printf(" %s=%s", variable->name, quoted);
    return STATUS_OK;
}

enum status ablate_print_plan(const struct ablate_plan *plan, const char *folder,
                              struct arena *arena) {
    const struct ablate_file *file = plan->file;
    const char *const *files, *note;
    TRY(ablate_file_names(file, arena, &files));
    TRY(ablate_plan_note(plan, arena, &note));
    const uint32_t again = ablate_plan_again(plan);
    const uint32_t confirm = ablate_plan_confirm(plan);
    const uint32_t certain =
        plan->stage_runs[ABLATE_ARMS] + plan->stage_runs[ABLATE_HYBRIDS] + again + confirm;
    const uint32_t noise =
        plan->stage_runs[ABLATE_ARMS_NOISE] + plan->stage_runs[ABLATE_HYBRIDS_NOISE] - confirm;
    printf("%s: up to %u runs, %llu at a time", file->name, certain,
           (unsigned long long)file->slots);
    if (isfinite(file->timeout)) {
        const double sure = time_of(file, certain), noisy = time_of(file, noise);
        printf(", each %g s and %g s to end: %g s at most", file->timeout, GUARD_GRACE, sure);
        if (noise > 0) printf(", %g s if repeats differ", sure + noisy);
    }
    printf("\n  %u of the arms; if they are equal, ", plan->stage_runs[ABLATE_ARMS]);
    if (ablate_plan_if_equal(plan) == 0)
        printf("no more\n");
    else
        printf("%u and up to %u more (each factor alone, all but each, all), to see whether causes "
               "cancel; if_equal: stop leaves these out\n",
               ablate_plan_if_equal(plan), ablate_plan_again_if_equal(plan));
    printf("  %u hybrids of %u factors%s\n", plan->stage_runs[ABLATE_HYBRIDS], file->factor_count,
           plan->orders.count > 0 ? ", for shares from sampled orders of entry" : "");
    printf("  up to %u of them once more, those that the answer hangs on\n", again);
    if (confirm > 0)
        printf("  %u more of the arms, where they differ and all repeats are equal: fewer could be "
               "chance\n",
               confirm);
    if (noise > 0)
        printf("  only if repeats of an arm or of a hybrid differ: %u more of the arms, %u more of "
               "hybrids\n",
               plan->stage_runs[ABLATE_ARMS_NOISE] - confirm,
               plan->stage_runs[ABLATE_HYBRIDS_NOISE]);
    printf("  closure  %s\n",
           file->has_test ? "proves that the factors are all: test is your own second command"
                          : "none: both arms come from one command (give test.command for one)");
    printf("  folder   %s; nothing has been run\n", folder);
    if (note[0] != '\0') printf("  note     %s\n", note);
    for (uint32_t i = 0; i < plan->run_count; i++) {
        const struct ablate_run *run = &plan->runs[i];
        const struct ablate_values values = {run->mask, "{dir}",  run->id, "{gpu}",
                                             "{port}",  "{seed}", files};
        struct ablate_command command;
        char *quoted;
        if (run->replicate > 1) continue;
        TRY(ablate_command_of(plan, run, &values, arena, &command));
        TRY(ablate_quote(&command.words, arena, &quoted));
        printf("  %-16s", run->id);
        for (size_t v = 0; v < command.variable_count; v++)
            TRY(print_variable(&command.variables[v], arena));
        printf(" %s\n", quoted);
    }
    return STATUS_OK;
}
