/* SPDX-License-Identifier: Apache-2.0
 * The headline of a verdict, which names the causes, and the row that says which applied LR
 * differs first. Puts what was judged into words, and computes nothing new. */
#include "evidence/judge_rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "evidence/figure_text.h"

static const struct trace_run *arm_run(const struct judgement *judgement, int arm) {
    return trace_run_of(judgement->image, judgement->arms[arm]);
}

/* What the trace says of the verdict under this name; "" when it says nothing. */
static const char *note(const struct judgement *judgement, const char *name) {
    const char *text = trace_attribute_of(judgement->image, "verdict", name);
    return text == NULL ? "" : text;
}

/* What a PyTorch user calls the thing whose keys differ. */
static const char *const plain_words[CAUSE_COUNT] = {
    [CAUSE_SCHEDULE] = "the learning-rate schedule",
    [CAUSE_OPTIMIZER] = "the optimizer and clipping",
    [CAUSE_DTYPE] = "the dtypes",
    [CAUSE_NONDETERMINISM] = "the order in which kernels sum",
    [CAUSE_BATCH_SHAPE] = "how batches are cut and padded",
    [CAUSE_DATA_ORDER] = "the order of the data",
    [CAUSE_RNG] = "the random draws",
    [CAUSE_NORMALISATION] = "what the loss is divided by",
    [CAUSE_REFERENCE] = "the reference model",
    [CAUSE_MODEL] = "how the model computes",
    [CAUSE_PARALLELISM] = "ranks and shards",
    [CAUSE_RESUME] = "what a restart restores",
    [CAUSE_INIT] = "the initial weights",
    [CAUSE_OBJECTIVE] = "the loss that is minimised",
    [CAUSE_BACKWARD] = "the formula of the backward pass",
    [CAUSE_CORRUPTION] = "a bit flip, as of a defective core or memory",
};

static int same_real(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

/* An LR of one parameter group at one update. */
struct lr_place {
    uint64_t update; /* its index; the number of updates: there is no such place */
    uint32_t group;
};

/* The first place where this LR (enum record_group) differs. An arm whose optimizer did not run
 * applied none: its LR is NaN. */
static struct lr_place first_apart(const struct judgement *judgement, int which) {
    const uint32_t groups = judge_groups(arm_run(judgement, 0), arm_run(judgement, 1));
    struct lr_place at;
    for (at.update = 0; at.update < judgement->updates; at.update++)
        for (at.group = 0; at.group < groups; at.group++)
            if (!same_real(trace_row(arm_run(judgement, 0), at.update)->groups[at.group][which],
                           trace_row(arm_run(judgement, 1), at.update)->groups[at.group][which]))
                return at;
    at.group = 0;
    return at;
}

uint32_t judgement_lr_group(const struct judgement *judgement) {
    return first_apart(judgement, GROUP_LR_APPLIED).group;
}

/* The arm that applied no LR there where the other one did; -1: both did, or neither. */
static int arm_that_skips(const struct judgement *judgement, struct lr_place at) {
    int skips[2];
    for (int arm = 0; arm < 2; arm++)
        skips[arm] = isnan(trace_row(arm_run(judgement, arm), at.update)
                               ->groups[at.group][GROUP_LR_APPLIED]) != 0;
    return skips[0] == skips[1] ? -1 : skips[1];
}

static uint64_t step_at(const struct judgement *judgement, uint64_t update) {
    return trace_row(arm_run(judgement, 0), update)->step;
}

/* Whether a line of the cause's keys begins with one of these words, or else with none of them. */
static int has_line(const struct judged_cause *cause, const char *const *words, int with) {
    const char *line = cause->keys == NULL ? "" : cause->keys;
    while (*line != '\0') {
        int begins = 0;
        for (size_t i = 0; words[i] != NULL; i++)
            begins |= strncmp(line, words[i], strlen(words[i])) == 0;
        if (begins == with) return 1;
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return 0;
}

/* Whether a line of the cause's keys is one of the loop's, or else one of no loop's. */
static int has_key(const struct judged_cause *cause, int of_loop) {
    static const char *const loop[] = {"loop.", NULL};
    return has_line(cause, loop, of_loop);
}

/* What a PyTorch user calls a cause whose keys are of several kinds. */
static const char *plain_word_of(enum cause number, const struct judged_cause *cause) {
    static const char *const order[] = {
        "data.seed:", "data.epoch_seed:", "data.shuffle:", "rng.data:", "parallel.deal:", NULL};
    static const char *const tail[] = {"batch.tail:", NULL};
    if (number == CAUSE_DATA_ORDER && has_line(cause, order, 0)) return "the data";
    if (number == CAUSE_NORMALISATION && has_line(cause, tail, 1) && !has_line(cause, tail, 0))
        return "the last, smaller batch";
    return plain_words[number];
}

/* The lists of phases belong to the cause `schedule`, since they say when it moves, but a phase
 * that moves elsewhere (gradients zeroed before they are used) is no matter of an LR. A loop alone
 * is called by the schedule's words only where both arms applied an LR and these differ at or
 * before the first update that differs. */
static void put_schedule(const struct judgement *judgement, const struct judged_cause *cause,
                         struct row_pen *pen) {
    const struct lr_place apart = first_apart(judgement, GROUP_LR_APPLIED);
    const int differs = apart.update < judgement->updates;
    const int skips = differs ? arm_that_skips(judgement, apart) : -1;
    const int by_lr = differs && skips < 0 &&
                      (judgement->first_step < 0 ||
                       step_at(judgement, apart.update) <= (uint64_t)judgement->first_step);
    const int loop = has_key(cause, 1), others = has_key(cause, 0);
    row_put(pen, " (%s",
            loop && others   ? "the schedule's keys and the loop's"
            : loop && !by_lr ? "the loop"
                             : plain_words[CAUSE_SCHEDULE]);
    if (!differs)
        row_put(pen, "; every applied LR is equal");
    else if (skips >= 0)
        row_put(pen, "; %s skipped update %llu", judgement->arms[skips],
                (unsigned long long)step_at(judgement, apart.update));
    row_put(pen, ")");
}

/* "schedule (the learning-rate schedule)"; several factors that validate only together keep their
 * joined name alone. */
static void put_cause(const struct judgement *judgement, const struct judged_cause *cause,
                      struct row_pen *pen) {
    row_put(pen, "%s", cause->name);
    for (int i = 0; i < CAUSE_COUNT; i++) {
        if (strcmp(cause->name, cause_name((enum cause)i)) != 0) continue;
        if (i == CAUSE_SCHEDULE)
            put_schedule(judgement, cause, pen);
        else
            row_put(pen, " (%s)", plain_word_of((enum cause)i, cause));
    }
}

/* So many causes fit a sentence; the row of the shares has them all. */
#define CAUSES_IN_WORDS 4

static uint32_t causes_in_words(const struct judgement *judgement) {
    return judgement->cause_count < CAUSES_IN_WORDS ? judgement->cause_count : CAUSES_IN_WORDS;
}

static void put_more(const struct judgement *judgement, struct row_pen *pen) {
    if (judgement->cause_count > CAUSES_IN_WORDS)
        row_put(pen, " (and %u more)", judgement->cause_count - CAUSES_IN_WORDS);
}

static void put_percent(const struct attributed *of, struct row_pen *pen) {
    char text[FIGURE_TEXT];
    row_put(pen, "%s", figure_text(of, text));
}

static void put_share(const struct attributed *share, int is_signed, struct row_pen *pen) {
    char text[FIGURE_TEXT];
    row_put(pen, "%s", share_text(share, is_signed, text));
}

/* The causes that a list of figures tells: those that do something, in their order. */
struct told {
    uint32_t cause[CAUSE_COUNT];
    uint32_t count;    /* of those that fit the sentence */
    uint32_t left_out; /* those that would not fit */
};

static struct told told_of(const struct judgement *judgement) {
    struct told told = {{0}, 0, 0};
    for (uint32_t i = 0; i < judgement->cause_count; i++) {
        if (judgement->causes[i].is_idle) continue;
        if (told.count < CAUSES_IN_WORDS)
            told.cause[told.count++] = i;
        else
            told.left_out++;
    }
    return told;
}

static void put_left_out(const struct told *told, struct row_pen *pen) {
    if (told->left_out > 0) row_put(pen, " (and %u more)", told->left_out);
}

/* What a list that leaves out causes says of them. */
static void put_nothing(const struct judgement *judgement, struct row_pen *pen) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        if (judgement->causes[i].is_idle)
            row_put(pen, "%s%s", count++ == 0 ? " " : ", ", judgement->causes[i].name);
    if (count > 0) row_put(pen, count == 1 ? " makes none of it." : " make none of it.");
}

/* Tells whether the cause at this place of the list stands in front of the next for certain. */
static int is_ordered(const struct judgement *judgement, const struct told *told, uint32_t at) {
    return judgement->causes[told->cause[at]].place[1] <
           judgement->causes[told->cause[at + 1]].place[0];
}

static int all_ordered(const struct judgement *judgement) {
    const struct told told = told_of(judgement);
    for (uint32_t i = 0; i + 1 < told.count; i++)
        if (!is_ordered(judgement, &told, i)) return 0;
    return 1;
}

/* The shares; where they are in an order, "and" joins those that have none. */
static void put_shares(const struct judgement *judgement, int in_order, int is_signed,
                       struct row_pen *pen) {
    const struct told told = told_of(judgement);
    for (uint32_t i = 0; i < told.count; i++) {
        const struct judged_cause *const cause = &judgement->causes[told.cause[i]];
        const int joins = in_order && i > 0 && !is_ordered(judgement, &told, i - 1);
        row_put(pen, "%s%s ", i == 0 ? "" : joins ? " and " : ", ", cause->name);
        put_share(&cause->share, is_signed, pen);
    }
    put_left_out(&told, pen);
}

/* What is left of the gap with one cause alone repaired. */
static void put_lefts(const struct judgement *judgement, struct row_pen *pen) {
    const struct told told = told_of(judgement);
    for (uint32_t i = 0; i < told.count; i++) {
        const struct judged_cause *const cause = &judgement->causes[told.cause[i]];
        row_put(pen, "%s%s ", i == 0 ? "" : ", ", cause->name);
        put_percent(&cause->left, pen);
    }
    put_left_out(&told, pen);
}

static const char *whole_of(const struct judgement *judgement) {
    return judgement->by_distance ? "the distance" : "the way";
}

/* The shares of all but the first. Of those that are known to be exactly 0 there is nothing to say.
 */
static void put_besides(const struct judgement *judgement, struct row_pen *pen) {
    uint32_t said = 0;
    for (uint32_t i = 1; i < judgement->cause_count; i++) {
        const struct judged_cause *const cause = &judgement->causes[i];
        if (share_is_none(&cause->share)) continue;
        if (said++ >= CAUSES_IN_WORDS - 1) continue;
        row_put(pen, "%s%s ", said == 1 ? " Besides: " : ", ", cause->name);
        put_share(&cause->share, 0, pen);
    }
    if (said > CAUSES_IN_WORDS - 1) row_put(pen, " (and %u more)", said - (CAUSES_IN_WORDS - 1));
    row_put(pen, said > 0                      ? "."
                 : judgement->cause_count == 2 ? " The other makes none of the way."
                                               : " The others make none of the way.");
}

static void put_one(const struct judgement *judgement, struct row_pen *pen) {
    const struct judged_cause *first = &judgement->causes[0];
    row_put(pen, " Cause: ");
    put_cause(judgement, first, pen);
    if (judgement->cause_count == 1) {
        row_put(pen, "; nothing else differs.");
        return;
    }
    row_put(pen, " makes ");
    put_percent(&first->share, pen);
    row_put(pen, " of %s from %s to %s; with it alone repaired, ", whole_of(judgement),
            judgement->arms[0], judgement->arms[1]);
    put_percent(&first->left, pen);
    row_put(pen, " of the gap is left.");
    put_besides(judgement, pen);
}

/* Tells whether a figure of the cause says for certain that it does something. */
static int acts_for_certain(const struct judged_cause *cause) {
    return cause->share.low > 0.0 || cause->share.high < 0.0 || cause->alone.low > 0.0 ||
           cause->left.high < 1.0 || cause->left.low > 1.0;
}

/* Tells whether noise leaves open that all causes but one do nothing. */
static int may_be_one(const struct judgement *judgement) {
    uint32_t certain = 0;
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        certain += (uint32_t)acts_for_certain(&judgement->causes[i]);
    return certain < 2;
}

static void put_several(const struct judgement *judgement, struct row_pen *pen) {
    row_put(pen, may_be_one(judgement) ? " One cause or several, " : " Several causes, ");
    row_put(pen, judgement->word == WORD_OPEN ? "and which of them is the first is open: "
                 : all_ordered(judgement)     ? "in this order: "
                                              : "in this order but for those joined by \"and\": ");
    put_shares(judgement, judgement->word != WORD_OPEN, 0, pen);
    row_put(pen, " of %s from %s to %s. With one alone repaired, this much of the gap is left: ",
            whole_of(judgement), judgement->arms[0], judgement->arms[1]);
    put_lefts(judgement, pen);
    row_put(pen, ".");
    put_nothing(judgement, pen);
}

static void put_oppose(const struct judgement *judgement, struct row_pen *pen) {
    const char *const arms[2] = {judgement->arms[0], judgement->arms[1]};
    int against = 0;
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        against |= judgement->causes[i].share.value < 0.0;
    row_put(pen,
            against ? " Causes oppose each other. Of %s from %s to %s: "
                    : " Causes oppose each other: repairing one alone can widen the gap. Of %s "
                      "from %s to %s: ",
            whole_of(judgement), arms[0], arms[1]);
    put_shares(judgement, 0, 1, pen);
    row_put(pen, ". Repairing one alone leaves ");
    put_lefts(judgement, pen);
    row_put(pen, " of the gap.");
    put_nothing(judgement, pen);
}

/* One figure of each cause that the sentence is about, or of each other one. */
static void put_meant(const struct judgement *judgement, int meant, int left, struct row_pen *pen) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < judgement->cause_count; i++) {
        const struct judged_cause *const cause = &judgement->causes[i];
        const int is_meant = judgement->joint.role[i] != JOINT_ROLE_NONE;
        if (is_meant != meant || count++ >= CAUSES_IN_WORDS) continue;
        row_put(pen, "%s%s ", count == 1 ? "" : ", ", cause->name);
        put_percent(left ? &cause->left : &cause->alone, pen);
    }
    if (count > CAUSES_IN_WORDS) row_put(pen, " (and %u more)", count - CAUSES_IN_WORDS);
}

/* The names of the causes in a role. */
static void put_names(const struct judgement *judgement, enum joint_role role,
                      struct row_pen *pen) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        if (judgement->joint.role[i] == role)
            row_put(pen, "%s%s", count++ == 0 ? "" : ", ", judgement->causes[i].name);
}

static uint32_t count_roles(const struct judgement *judgement, enum joint_role role) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        count += judgement->joint.role[i] == role;
    return count;
}

/* The same of both joint sentences: those who are named open the gap in the mixtures that the
 * sentence says, and need not in larger ones. */
static void put_blocked(const struct judgement *judgement, struct row_pen *pen) {
    if (judgement->joint.blocked) row_put(pen, ", though not in every mixture with others");
}

/* What keeps the sentence from "only". */
static void put_other_mixtures(const struct judgement *judgement, struct row_pen *pen) {
    switch (judgement->joint.others) {
    case OTHERS_ALL:
        row_put(pen, "; other mixtures open it as well");
        break;
    case OTHERS_HALF:
        row_put(pen, "; other mixtures open half of it or more");
        break;
    case OTHERS_UNTRAINED:
        row_put(pen, "; the mixture without ");
        put_names(judgement, JOINT_ROLE_ANY, pen);
        row_put(pen, " was not trained");
        break;
    case OTHERS_UNKNOWN:
        row_put(pen, "; noise hides what other mixtures open");
        break;
    default:
        break;
    }
}

/* Nothing but these mixtures was seen to open the gap. */
static void put_only_together(const struct judgement *judgement, struct row_pen *pen) {
    const enum joint_kind kind = judgement->joint.kind;
    row_put(pen, judgement->joint.partial && kind != JOINT_OPEN
                     ? " In the mixtures that were trained, only together "
                     : " Only together ");
    if (kind == JOINT_ANY) {
        row_put(pen, "with any of ");
        put_names(judgement, JOINT_ROLE_ANY, pen);
        row_put(pen, count_roles(judgement, JOINT_ROLE_NAMED) == 1 ? " does " : " do ");
        put_names(judgement, JOINT_ROLE_NAMED, pen);
        row_put(pen, " open the gap");
    } else {
        row_put(pen, "do %scauses open %sthe gap", kind == JOINT_OPEN ? "" : "these ",
                kind == JOINT_HALF ? "most of " : "");
    }
}

static void put_together(const struct judgement *judgement, struct row_pen *pen) {
    if (judgement->joint.others == OTHERS_SHUT) {
        put_only_together(judgement, pen);
    } else if (judgement->joint.kind == JOINT_ANY) {
        row_put(pen, " ");
        put_names(judgement, JOINT_ROLE_NAMED, pen);
        row_put(pen, count_roles(judgement, JOINT_ROLE_NAMED) == 1 ? " opens" : " open");
        row_put(pen, " the gap together with %s",
                count_roles(judgement, JOINT_ROLE_ANY) == 1 ? "" : "any of ");
        put_names(judgement, JOINT_ROLE_ANY, pen);
    } else {
        row_put(pen, " Together these causes open %sthe gap",
                judgement->joint.kind == JOINT_HALF ? "most of " : "");
    }
    put_blocked(judgement, pen);
    put_other_mixtures(judgement, pen);
    row_put(pen, "; alone each opens: ");
}

static void put_each(const struct judgement *judgement, struct row_pen *pen) {
    row_put(pen, " Each of several causes %s by itself",
            judgement->joint.kind == JOINT_ALL ? "is enough" : "opens at least half of the gap");
    put_blocked(judgement, pen);
    row_put(pen, "; alone they open: ");
}

/* Whether it is enough to repair all that are each enough. */
static void put_rest(const struct judgement *judgement, struct row_pen *pen) {
    if (judgement->word != WORD_EACH) {
        row_put(pen, ".");
    } else if (judgement->joint.rest_is_little) {
        row_put(pen, ": repair all.");
    } else if (isnan(judgement->joint.rest.value)) {
        row_put(pen, ". What repairing all of these leaves was not trained.");
    } else {
        row_put(pen, ". Repairing all of these leaves ");
        put_percent(&judgement->joint.rest, pen);
        row_put(pen, ".");
    }
}

/* Both sentences say what each of their causes does alone, and then the same of the others. */
static void put_jointly(const struct judgement *judgement, struct row_pen *pen) {
    if (judgement->word == WORD_EACH)
        put_each(judgement, pen);
    else
        put_together(judgement, pen);
    put_meant(judgement, 1, 0, pen);
    row_put(pen, " of it. Repairing one alone leaves ");
    put_meant(judgement, 1, 1, pen);
    put_rest(judgement, pen);
    if (count_roles(judgement, JOINT_ROLE_NONE) == 0) return;
    row_put(pen, " Others differ, too; alone they open: ");
    put_meant(judgement, 0, 0, pen);
    row_put(pen, "; repairing one alone leaves ");
    put_meant(judgement, 0, 1, pen);
    row_put(pen, ".");
}

/* The cause that alone ends farthest from the baseline, of those that are not in `done`. */
static uint32_t farthest_of(const struct judgement *judgement, uint32_t done) {
    uint32_t best = judgement->cause_count;
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        if ((done >> i & 1u) == 0 && (best == judgement->cause_count ||
                                      judgement->causes[i].moves > judgement->causes[best].moves))
            best = i;
    return best;
}

/* How far causes go alone that cancel exactly, in units of the way trained, which is not known of
 * masters; the farthest first: there are no shares to put them
 * in order. One that goes nowhere takes no part, unless none is seen to at the end. */
static void put_exact_moves(const struct judgement *judgement, struct row_pen *pen) {
    uint32_t done = 0, said = 0, moving = 0;
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        moving += judgement->causes[i].moves != 0.0;
    const uint32_t all = moving > 0 ? moving : judgement->cause_count;
    for (; said < all && said < CAUSES_IN_WORDS; said++) {
        const uint32_t i = farthest_of(judgement, done);
        done |= 1u << i;
        row_put(pen, "%s%s %.4g", said == 0 ? "" : ", ", judgement->causes[i].name,
                judgement->causes[i].moves / (judgement->masters ? 1.0 : judgement->travel));
    }
    if (all > said) row_put(pen, " (and %u more)", all - said);
    for (uint32_t i = 0; i < judgement->cause_count && moving > 0; i++)
        if (judgement->causes[i].moves == 0.0)
            row_put(pen, "; %s alone does not move them", judgement->causes[i].name);
    row_put(pen, ".");
}

/* The one cause that goes far beyond the gap alone, where no other goes half as far: the others
 * then do not cancel it by steps of their own, as a smaller LR does not cancel another optimizer.
 * The number of causes: there is none. */
static uint32_t held_back(const struct judgement *judgement) {
    const uint32_t first = farthest_of(judgement, 0);
    if (!(judgement->causes[first].alone.low > NEARLY_FACTOR)) return judgement->cause_count;
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        if (i != first &&
            !(judgement->causes[i].alone.high < 0.5 * judgement->causes[first].alone.low))
            return judgement->cause_count;
    return first;
}

/* Where the arms lie close together although causes went far, sizes are in units of D, or of the
 * way that was trained where D is 0. */
static void put_cancel(const struct judgement *judgement, struct row_pen *pen) {
    if (judgement->word == WORD_CANCEL) {
        row_put(pen,
                " The causes cancel exactly: the arms have the same weights at the end, but alone "
                "causes move %s: ",
                judgement->masters ? "the masters by this distance"
                                   : "them by this much of the way trained");
        put_exact_moves(judgement, pen);
        return;
    }
    const uint32_t held = held_back(judgement);
    if (held < judgement->cause_count)
        row_put(pen,
                " Alone %s goes far beyond the gap, and the rest takes most of that back: alone "
                "causes move the weights by this many times the arms' distance: ",
                judgement->causes[held].name);
    else
        row_put(pen, " The causes nearly cancel: alone they move the weights by this many times "
                     "the arms' distance: ");
    for (uint32_t i = 0; i < causes_in_words(judgement); i++) {
        const struct judged_cause *cause = &judgement->causes[i];
        row_put(pen, "%s%s %.4g", i == 0 ? "" : ", ", cause->name, cause->moves / judgement->total);
    }
    put_more(judgement, pen);
    row_put(pen, held < judgement->cause_count
                     ? "."
                     : "; percentages of so small a rest would mean nothing.");
    for (uint32_t i = 0; i < judgement->cause_count; i++) {
        if (!attribution_closes(&judgement->causes[i].left)) continue;
        row_put(pen, " With %s alone repaired, ", judgement->causes[i].name);
        put_percent(&judgement->causes[i].left, pen);
        row_put(pen, " of the gap is left.");
    }
}

/* A figure of each cause that cancels beside the one that is named, in units of the arms' distance:
 * how far it goes alone, or what is left with it alone repaired. */
static void put_cancelling(const struct judgement *judgement, int left, struct row_pen *pen) {
    uint32_t said = 0;
    for (uint32_t i = 0; i < judgement->cause_count; i++) {
        const struct judged_cause *const cause = &judgement->causes[i];
        if ((judgement->beside.cancels >> i & 1u) == 0 || said++ >= CAUSES_IN_WORDS) continue;
        row_put(pen, "%s%s ", said == 1 ? "" : ", ", cause->name);
        row_put(pen, "%.4g", left ? cause->left.value : cause->alone.value);
    }
    if (said > CAUSES_IN_WORDS) row_put(pen, " (and %u more)", said - CAUSES_IN_WORDS);
}

/* The one repair that closes the gap, and what cancels beside it. */
static void put_beside(const struct judgement *judgement, struct row_pen *pen) {
    const struct attribution_beside *const beside = &judgement->beside;
    const struct judged_cause *const one = &judgement->causes[beside->cause];
    row_put(pen, " Cause: ");
    put_cause(judgement, one, pen);
    row_put(pen, " opens ");
    put_percent(&one->alone, pen);
    row_put(pen, " of the gap alone; with it alone repaired, ");
    put_percent(&one->left, pen);
    row_put(pen,
            " of the gap is left. Beside it causes %s: alone they move the weights by this "
            "many times the arms' distance: ",
            beside->exactly ? "cancel exactly" : "nearly cancel");
    put_cancelling(judgement, 0, pen);
    row_put(pen, "; repairing one of these alone leaves this many times it: ");
    put_cancelling(judgement, 1, pen);
    row_put(pen, ".");
}

static void put_rounding(const struct judgement *judgement, struct row_pen *pen) {
    row_put(pen,
            " It differs exactly; a change of one unit in the last place of one weight does as "
            "much (%.3g of |a-b|%s).",
            judgement->response / judgement->total, judgement_points(judgement));
    const struct told told = told_of(judgement);
    if (judgement_only_acting(judgement) == 0) {
        put_one(judgement, pen);
        return;
    }
    if (judgement->ranked < 0) {
        row_put(pen,
                " No update was recorded at which rounding did less than %g of it, so the "
                "causes are not ranked: ",
                ROUNDING_SPARES);
        for (uint32_t i = 0; i < told.count; i++)
            row_put(pen, "%s%s", i == 0 ? "" : ", ", judgement->causes[told.cause[i]].name);
        put_left_out(&told, pen);
        row_put(pen, ".");
        put_nothing(judgement, pen);
        return;
    }
    const struct judged_mark *mark = &judgement->marks[judgement->ranked];
    row_put(pen, " At update %llu rounding did less than %g of it, and the causes made: ",
            (unsigned long long)mark->update, ROUNDING_SPARES);
    uint32_t said = 0;
    for (uint32_t i = 0; i < judgement->cause_count; i++) {
        const struct attributed share = {mark->share[i], mark->share[i], mark->share[i]};
        if (share_is_none(&share)) continue;
        row_put(pen, "%s%s ", said++ == 0 ? "" : ", ", judgement->causes[i].name);
        put_share(&share, 0, pen);
    }
    row_put(pen, " of the way.");
}

static void put_what_differs(const struct judgement *judgement, struct row_pen *pen) {
    row_put(pen, judgement->cause_count == 1 ? " Cause: " : " What differs: ");
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        row_put(pen, "%s%s", i == 0 ? "" : ", ", judgement->causes[i].name);
    row_put(pen, judgement->cause_count == 0 ? "nothing in the configurations." : ".");
}

/* What the configurations differ in, where the weights do not. */
static void put_without_shares(const struct judgement *judgement, struct row_pen *pen) {
    if (judgement->word == WORD_CANCEL)
        put_cancel(judgement, pen);
    else
        put_what_differs(judgement, pen);
}

/* Whether the arms have a finite distance after the last update that both recorded. */
static int has_distance(const struct judgement *judgement) {
    const struct trace_pair *const pair =
        judge_pair(judgement->image, judgement->arms[0], judgement->arms[1]);
    return pair != NULL && pair->updates > 0 &&
           isfinite(trace_pair_row(pair, pair->updates - 1)->reals[PAIR_DISTANCE]);
}

/* Why the arms have no distance: weights that are not finite, or of other shapes. */
static void put_without_distance(const struct judgement *judgement, struct row_pen *pen) {
    int lost[2];
    for (int arm = 0; arm < 2; arm++)
        lost[arm] =
            judgement->updates > 0 &&
            !isfinite(
                trace_row(arm_run(judgement, arm), judgement->updates - 1)->reals[REAL_PARAM_NORM]);
    if (lost[0] || lost[1])
        row_put(pen,
                " The weights of %s are not finite after the last update, so there is no distance "
                "and there are no shares.",
                lost[0] && lost[1] ? "both arms" : judgement->arms[lost[1]]);
    else
        row_put(pen, " No distance between the arms could be measured, so there are no shares.");
}

/* Why nothing was shared out. A hybrid may diverge where both arms do not. */
static void put_without_distances(const struct judgement *judgement, struct row_pen *pen) {
    if (judgement->attributed)
        row_put(pen, " The weights are equal at the end, so there is no distance to share out.");
    else if (!has_distance(judgement))
        put_without_distance(judgement, pen);
    else if (trace_array_of(judgement->image, "attribution/value") == NULL)
        row_put(pen, " No hybrid of the arms was trained, so there are no shares.");
    else
        row_put(pen, " A hybrid of the arms diverged or was not finished, so there are no shares.");
}

static void put_causes(const struct judgement *judgement, struct row_pen *pen) {
    if (judgement->beside.is_known) {
        put_beside(judgement, pen);
        return;
    }
    switch (judgement->word) {
    case WORD_CANCEL:
    case WORD_NEARLY:
        put_cancel(judgement, pen);
        return;
    case WORD_ROUNDING:
        put_rounding(judgement, pen);
        return;
    case WORD_OPPOSE:
        put_oppose(judgement, pen);
        return;
    case WORD_TOGETHER:
    case WORD_EACH:
        put_jointly(judgement, pen);
        return;
    case WORD_CAUSE:
        put_one(judgement, pen);
        return;
    case WORD_SEVERAL:
    case WORD_OPEN:
        put_several(judgement, pen);
        return;
    default:
        break;
    }
    if (judgement->cause_count == 0) {
        row_put(pen, " The configurations are equal: no cause can be named.");
        return;
    }
    put_what_differs(judgement, pen);
    put_without_distances(judgement, pen);
}

/* Shares of sampled orders that agree have no interval in the sentence, and are estimates all the
 * same. */
static void put_agreement(const struct judgement *judgement, struct row_pen *pen) {
    const enum attribution_word word = judgement->word;
    int told = 0;
    if (judgement->beside.is_known ||
        (word != WORD_CAUSE && word != WORD_SEVERAL && word != WORD_OPEN && word != WORD_OPPOSE))
        return;
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        if (i < CAUSES_IN_WORDS || judgement->causes[i].is_idle)
            told |= judgement_lacks_spread(judgement, i);
    if (told)
        row_put(pen,
                " A share without an interval is an estimate from %u sampled orders that agree; "
                "others need not.",
                judgement->sample.orders);
}

static void put_each_update(const struct judgement *judgement, struct row_pen *pen) {
    if (judgement->updates == 1)
        row_put(pen, "the one update");
    else
        row_put(pen, "each of %llu updates", (unsigned long long)judgement->updates);
}

/* Two numbers that differ, in at least 9 digits and in as many more as it takes to tell them apart;
 * 17 always do. */
static void put_apart(const struct judgement *judgement, double x, double y, struct row_pen *pen) {
    char one[32], other[32];
    int digits = 8;
    do {
        digits++;
        snprintf(one, sizeof one, "%.*g", digits, x);
        snprintf(other, sizeof other, "%.*g", digits, y);
    } while (digits < 17 && strcmp(one, other) == 0);
    row_put(pen, "%s in %s, %s in %s", one, judgement->arms[0], other, judgement->arms[1]);
}

static void put_reported(const struct judgement *judgement, struct row_pen *pen) {
    const struct judged_report *const of = &judgement->reported;
    row_put(pen, "%s of update %llu, ", of->column, (unsigned long long)of->update);
    put_apart(judgement, of->values[0], of->values[1], pen);
}

static void put_first_reported(const struct judgement *judgement, struct row_pen *pen) {
    if (judgement->reported.update == 0) return;
    row_put(pen, " First reported otherwise: ");
    put_reported(judgement, pen);
    row_put(pen, ".");
}

static void put_same_training(const struct judgement *judgement, struct row_pen *pen) {
    row_put(pen, judgement->reported.update == 0
                     ? " It trains identically and reports the same numbers from other data, draws "
                       "or intermediate values: weights, optimizer state and applied LR are equal "
                       "after "
                     : " It trains identically and reports differently: weights, optimizer state "
                       "and applied LR are equal after ");
    put_each_update(judgement, pen);
    row_put(pen, ".");
    put_first_reported(judgement, pen);
}

/* What differs already, or, where nothing does but what is reported, that it may. */
static void put_same_weights(const struct judgement *judgement, struct row_pen *pen) {
    row_put(pen, judgement->state_step == 0 || judgement->state_skipped
                     ? " Weights, optimizer state and applied LR are equal after "
                     : " The weights are equal after ");
    put_each_update(judgement, pen);
    if (judgement->state_step == 0) {
        row_put(pen, ", but what differs may reach a weight later.");
        put_first_reported(judgement, pen);
        return;
    }
    row_put(
        pen,
        judgement->state_skipped
            ? ", but from update %llu on, gradients that both arms skipped are not known to be, "
              "and what differs may reach a weight later."
            : ", but from update %llu on what the optimizer holds, takes in or applies is not, "
              "and may reach a weight later.",
        (unsigned long long)judgement->state_step);
}

/* Tells whether no update of either arm moved a weight, as far as was recorded. Copies that stand
 * still while their masters move are none of these; of masters it is known where every update was
 * skipped or had an LR of 0. */
static int nothing_moved(const struct judgement *judgement) {
    if (judgement->updates == 0) return 0;
    for (int arm = 0; arm < 2 && judgement->masters; arm++)
        if (judgement->stood[arm][STOOD_SKIPPED] + judgement->stood[arm][STOOD_LR] <
            judgement->updates)
            return 0;
    for (int arm = 0; arm < 2; arm++)
        for (uint64_t i = 0; i < judgement->updates; i++)
            if (!(trace_row(arm_run(judgement, arm), i)->reals[REAL_UPDATE_NORM] == 0.0)) return 0;
    return 1;
}

/* Arms whose weights stand still agree whatever differs between them, and so do most that are no
 * numbers any more: a verdict of equal weights must not read as a comparison of trainings. */
static void put_stillness(const struct judgement *judgement, struct row_pen *pen) {
    const uint64_t *const diverged = judgement->diverged, *const lost = judgement->unbounded;
    if (diverged[0] != 0 && diverged[1] != 0)
        row_put(pen, " The losses of both arms are not finite from update %llu on.",
                (unsigned long long)(diverged[0] > diverged[1] ? diverged[0] : diverged[1]));
    else if (lost[0] != 0 && lost[1] != 0)
        row_put(pen, " Weights of both arms are not finite from update %llu on.",
                (unsigned long long)(lost[0] > lost[1] ? lost[0] : lost[1]));
    if (!nothing_moved(judgement)) return;
    row_put(pen, judgement->updates == 1
                     ? " The update moved no weight in either arm, so no training was compared."
                     : " No update moved a weight in either arm, so no training was compared.");
}

/* Arms are identical although one of them reports a number that the other one's loop does not make,
 * or though their repeats, being noisy, are no floor for what is reported. */
void judge_row_reported(const struct judgement *judgement, struct row_pen *pen) {
    if (judgement->verdict != VERDICT_IDENTICAL || judgement->reported.update == 0) return;
    if (strcmp(judgement->reported.column, record_groups[GROUP_LR_LOGGED].name) == 0)
        return; /* logged LRs have a note of their own */
    row_add(pen, ROW_NOTE, "what the arms report differs all the same, first ");
    put_reported(judgement, pen);
    row_put(pen, ": a comparison of logs would show a difference that no weight has");
}

void judge_row_headline(const struct judgement *judgement, struct row_pen *pen) {
    static const char *const titles[VERDICT_COUNT] = {
        "",           "IDENTICAL",     "INSIDE THE FLOOR",   "OUTSIDE THE FLOOR",
        "UNTESTABLE", "SAME TRAINING", "SAME WEIGHTS SO FAR"};
    row_add(pen, ROW_HEADLINE, "%s: %s.", judgement->name, titles[judgement->verdict]);
    switch (judgement->verdict) {
    case VERDICT_IDENTICAL:
        row_put(pen, " Parameters, slots, losses and applied LR of ");
        if (judgement->updates == 1)
            row_put(pen, "the one update are equal.");
        else
            row_put(pen, "all %llu updates are equal.", (unsigned long long)judgement->updates);
        put_stillness(judgement, pen);
        if (judgement->word == WORD_CANCEL) put_cancel(judgement, pen);
        break;
    case VERDICT_INSIDE_FLOOR:
        row_put(
            pen,
            " No difference beyond that of repeats was detected at alpha = %g; one that shifts the "
            "distance by 3 sigma of its noise would be with probability %.2f, in a model of "
            "one number",
            judgement->alpha, judgement->power);
        judge_put_mixtures(judgement, pen);
        put_stillness(judgement, pen);
        break;
    case VERDICT_OUTSIDE_FLOOR:
        put_causes(judgement, pen);
        put_agreement(judgement, pen);
        break;
    case VERDICT_SAME_TRAINING:
        put_same_training(judgement, pen);
        put_stillness(judgement, pen);
        put_without_shares(judgement, pen);
        break;
    case VERDICT_SAME_WEIGHTS:
        put_same_weights(judgement, pen);
        put_stillness(judgement, pen);
        put_without_shares(judgement, pen);
        break;
    default:
        row_put(pen, " %s.", judgement->reason);
    }
}

/* The digits that tell two numbers apart, six at least and 17 at most, which tell all apart. */
static int digits_apart(double a, double b) {
    int digits = 6;
    for (char x[32], y[32]; digits < 17; digits++) {
        snprintf(x, sizeof x, "%.*g", digits, a);
        snprintf(y, sizeof y, "%.*g", digits, b);
        if (strcmp(x, y) != 0) break;
    }
    return digits;
}

static void put_readback(const double *a, const double *b, struct row_pen *pen) {
    double error = a[GROUP_LR_ERROR] > b[GROUP_LR_ERROR] ? a[GROUP_LR_ERROR] : b[GROUP_LR_ERROR];
    double gap = fabs(a[GROUP_LR_APPLIED] - b[GROUP_LR_APPLIED]);
    if (isnan(a[GROUP_LR_READBACK]) || isnan(b[GROUP_LR_READBACK])) return;
    const int digits = digits_apart(a[GROUP_LR_READBACK], b[GROUP_LR_READBACK]);
    if (!(error <= gap / 2))
        row_put(pen,
                "\nReading the LR back from the weights is untestable here: its error, "
                "%.1e, exceeds half the gap.",
                error);
    else
        row_put(pen, "\nRead back from the weights: %.*g and %.*g (+- %.1e).", digits,
                a[GROUP_LR_READBACK], digits, b[GROUP_LR_READBACK], error);
}

/* An LR that differs later than the arms do is not why they differ first, where a loop does too. */
static void put_earlier(const struct judgement *judgement, uint64_t step, struct row_pen *pen) {
    if (judgement->first_step < 0 || (uint64_t)judgement->first_step >= step) return;
    for (uint32_t i = 0; i < judgement->cause_count; i++)
        if (strcmp(judgement->causes[i].name, cause_name(CAUSE_SCHEDULE)) == 0 &&
            has_key(&judgement->causes[i], 1))
            row_put(pen, " (the arms differ from update %lld on, with equal LRs there)",
                    (long long)judgement->first_step);
}

void judge_row_why(const struct judgement *judgement, struct row_pen *pen) {
    const struct trace_run *a = arm_run(judgement, 0), *b = arm_run(judgement, 1);
    const char *const *arms = judgement->arms;
    const struct lr_place at = first_apart(judgement, GROUP_LR_APPLIED);
    const uint64_t i = at.update;
    if (i == judgement->updates) return;
    double x[RECORD_GROUPS], y[RECORD_GROUPS]; /* copies, since other rows are read below */
    memcpy(x, trace_row(a, i)->groups[at.group], sizeof x);
    memcpy(y, trace_row(b, i)->groups[at.group], sizeof y);
    const char *rule[2] = {note(judgement, "baseline_applied"), note(judgement, "test_applied")};
    const int skips = arm_that_skips(judgement, at);
    const int digits = digits_apart(x[GROUP_LR_APPLIED], y[GROUP_LR_APPLIED]);
    row_add(pen, ROW_WHY, "update %llu applied LR ", (unsigned long long)step_at(judgement, i));
    if (skips >= 0)
        row_put(pen, "%.6g in %s, none in %s, which skipped it",
                (skips == 0 ? y : x)[GROUP_LR_APPLIED], arms[!skips], arms[skips]);
    else
        row_put(pen, "%.*g in %s, %.*g in %s", digits, x[GROUP_LR_APPLIED], arms[0], digits,
                y[GROUP_LR_APPLIED], arms[1]);
    if (at.group > 0)
        row_put(pen, ", to parameter group %u (groups before it had equal LRs there)", at.group);
    put_earlier(judgement, step_at(judgement, i), pen);
    if (strcmp(rule[0], rule[1]) != 0)
        row_put(pen, ":\nupdate k uses %s in %s, %s in %s.", rule[0], arms[0], rule[1], arms[1]);
    else
        row_put(pen, ".");
    put_readback(x, y, pen);
    if (skips < 0 && first_apart(judgement, GROUP_LR_LOGGED).update == judgement->updates)
        row_put(pen,
                "\nBoth log the same LR at every update (%.6g at this one): a comparison of logs "
                "cannot see this.",
                x[GROUP_LR_LOGGED]);
}
