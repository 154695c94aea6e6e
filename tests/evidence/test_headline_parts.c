/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The headline of a verdict, the row of the first applied LR that differs, and the note of what
 * identical arms report, word by word, once more for random judgements: which causes a sentence
 * lists, how many more there are, how they are joined, and how many digits tell two numbers apart.
 * What mixtures say is replaced, and figures are written by evidence/figure_text.c in both. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#define judge_put_mixtures given_mixtures
#include "evidence/judge_rows_head.c" /* with mixtures of this test */
#include "tests/base/helper_draws.h"

enum { UPDATES = 4, GROUPS = 2, MOST = 7, LISTED = 4, CASES = 16000 };

static struct draws draws;
static struct record records[2][UPDATES];
static double groups[2][UPDATES][GROUPS][RECORD_GROUPS];
static struct trace_run runs[2];
static struct trace_pair pairs[2];
static struct pair_record pair_records[UPDATES];
static struct trace_array array;
static struct trace_attribute attributes[2];
static struct trace_image image;
static struct judgement j;

void given_mixtures(const struct judgement *judgement, struct row_pen *pen) {
    assert_ptr_equal(judgement, &j);
    row_put(pen, "; MIXTURES.");
}

static int seldom(uint32_t n) {
    return draws_pick(&draws, n) == 0;
}

/* ---- random judgements ---- */

static struct attributed draw_figure(void) {
    static const double values[] = {0.0, 0.25, -0.25, 0.5, 1.0, 0.999, 5e-6, -2e-6};
    const double value = seldom(12) ? (double)NAN : values[draws_pick(&draws, COUNT_OF(values))];
    const double wide = seldom(3) ? 0.125 : 0.0;
    return (struct attributed){value, value - wide, value + wide};
}

static void draw_causes(void) {
    static const char *const keys[] = {
        NULL,
        "",
        "loop.update: a -> b",
        "schedule.warmup: 1 -> 2\nloop.micro: c -> d",
        "schedule.warmup: 1 -> 2",
        "data.seed: 1 -> 2",
        "parallel.deal: blocks -> micros\ndata.shuffle: true -> false",
        "data.seed: 1 -> 2\ndata.max_len: 60 -> 96",
        "batch.tail: keep -> drop",
        "loss.divisor: a -> b\nbatch.tail: keep -> drop"};
    const uint32_t first = draws_pick(&draws, CAUSE_COUNT);
    j.cause_count = draws_pick(&draws, MOST + 1);
    const int still = seldom(4), alone = seldom(5);
    for (uint32_t i = 0; i < j.cause_count; i++) {
        struct judged_cause *const cause = &j.causes[i];
        const uint32_t which = seldom(3) && i == 0 ? CAUSE_SCHEDULE : first + i;
        snprintf(cause->name, sizeof cause->name, "%s%s",
                 cause_name((enum cause)(which % CAUSE_COUNT)), seldom(10) ? "+other" : "");
        cause->keys = keys[draws_pick(&draws, COUNT_OF(keys))];
        cause->share = alone && i > 0 ? (struct attributed){0.0, 0.0, 0.0} : draw_figure();
        cause->left = draw_figure();
        cause->alone = draw_figure();
        if (seldom(6)) cause->alone = (struct attributed){30.0, 28.0, 32.0};
        if (seldom(12)) cause->alone = (struct attributed){13.0, 12.0, 14.0};
        cause->moves = still ? 0.0 : 0.5 * (double)draws_pick(&draws, 4);
        cause->place[0] = draws_pick(&draws, 4);
        cause->place[1] = cause->place[0] + draws_pick(&draws, 2);
        cause->is_idle = seldom(4);
        j.joint.role[i] = (enum joint_role)draws_pick(&draws, 3);
        j.marks[1].share[i < JUDGE_FACTORS_MAX ? i : 0] = draw_figure().value;
    }
}

static void draw_rows(void) {
    static const char *const names[] = {"left", "right"};
    static const double lrs[] = {0.25, 0.5, 0.25 + 1e-9, 0.25 + 1e-17, 1e-3};
    const uint32_t odd = 4 + draws_pick(&draws, 3) * 30;
    const int stands = seldom(3);
    for (size_t i = 0; i < UPDATES; i++)
        for (size_t g = 0; g < GROUPS; g++)
            for (size_t arm = 0; arm < 2; arm++) {
                double *const of = groups[arm][i][g];
                of[GROUP_LR_APPLIED] = !seldom(odd) ? 0.25
                                       : seldom(3)  ? (double)NAN
                                                    : lrs[draws_pick(&draws, COUNT_OF(lrs))];
                of[GROUP_LR_LOGGED] = seldom(4 * odd) ? 0.125 : 0.0625;
                of[GROUP_LR_READBACK] = seldom(5)   ? (double)NAN
                                        : seldom(2) ? 0.25
                                                    : 0.25 + 1e-8 * (double)draws_pick(&draws, 3);
                of[GROUP_LR_ERROR] = seldom(3) ? 0.125 : 1e-10 * (double)draws_pick(&draws, 3);
                records[arm][i] = (struct record){.step = 5 + i, .groups = groups[arm][i]};
            }
    for (size_t arm = 0; arm < 2; arm++) {
        for (size_t i = 0; i < UPDATES; i++) {
            records[arm][i].reals[REAL_UPDATE_NORM] = stands && !seldom(40) ? 0.0
                                                      : seldom(9)           ? (double)NAN
                                                                            : 1e-30;
            records[arm][i].reals[REAL_PARAM_NORM] = seldom(3) ? (double)NAN : 2.0;
        }
        runs[arm] = (struct trace_run){.records = records[arm], .updates = UPDATES};
        runs[arm].plan.id = runs[arm].plan.arm = names[arm];
        runs[arm].plan.shape.groups = seldom(6) ? 1 : GROUPS;
        j.arms[arm] = names[arm];
    }
    j.updates = 1 + draws_pick(&draws, UPDATES);
    image = (struct trace_image){.runs = runs, .run_count = 2};
    for (size_t i = 0; i < UPDATES; i++)
        pair_records[i].reals[PAIR_DISTANCE] = seldom(3) ? (double)INFINITY : 1.0;
    pairs[0] = (struct trace_pair){{"right", "left"}, UPDATES, pair_records, NULL, NULL};
    pairs[1] = pairs[0];
    if (seldom(2)) pairs[1].plan = (struct trace_pair_plan){"left", "right"};
    pairs[1].updates = draws_pick(&draws, UPDATES + 1);
    image.pairs = pairs;
    image.pair_count = 2;
    array = (struct trace_array){.plan.path = seldom(2) ? "attribution/value" : "other"};
    image.arrays = &array;
    image.array_count = 1;
    attributes[0] = (struct trace_attribute){"verdict", "baseline_applied", "f(k-1)"};
    attributes[1] = (struct trace_attribute){"verdict", "test_applied", "f(k)"};
    if (seldom(2)) attributes[1].text = "f(k-1)";
    image.attributes = attributes;
    image.attribute_count = draws_pick(&draws, 3);
}

static void draw_judgement(uint32_t number) {
    static const char *const columns[] = {"loss", "lr_logged"};
    draws = (struct draws){.key = UINT64_C(0x4ead), .number = number};
    memset(&j, 0, sizeof j);
    draw_rows();
    draw_causes();
    j.image = &image;
    j.name = "scene";
    j.reason = "no repeat was made";
    j.verdict = (enum verdict)(1 + draws_pick(&draws, VERDICT_COUNT - 1));
    if (seldom(2)) j.verdict = VERDICT_OUTSIDE_FLOOR;
    j.word = (enum attribution_word)draws_pick(&draws, WORD_COUNT);
    if (j.cause_count == 0 && j.word != WORD_CANCEL) j.word = WORD_NONE;
    if (j.cause_count > JUDGE_FACTORS_MAX && j.word == WORD_ROUNDING) j.word = WORD_OPEN;
    j.first_step = (int64_t)draws_pick(&draws, 10) - 1;
    j.attributed = seldom(4);
    j.by_distance = seldom(2);
    j.total = 2.0;
    j.travel = 8.0;
    j.masters = seldom(3);
    j.response = 1.5;
    j.ranked = seldom(2) ? -1 : 1;
    j.marks[1].update = 7;
    j.sample.orders = seldom(2) ? 64 : 0;
    j.joint.kind = (enum joint_kind)draws_pick(&draws, 4);
    j.joint.others = seldom(2) ? OTHERS_SHUT : (enum joint_others)draws_pick(&draws, 5);
    j.joint.partial = seldom(2);
    j.joint.blocked = seldom(3);
    j.joint.rest = draw_figure();
    j.joint.rest_is_little = seldom(3);
    if (j.cause_count > 2 && (j.word == WORD_NEARLY || j.word == WORD_OPPOSE) && seldom(3))
        j.beside = (struct attribution_beside){.is_known = 1,
                                               .cause = draws_pick(&draws, j.cause_count),
                                               .cancels = draws_pick(&draws, 1u << j.cause_count),
                                               .exactly = seldom(2)};
    for (size_t arm = 0; arm < 2; arm++)
        if (seldom(3)) j.diverged[arm] = 1 + draws_pick(&draws, UPDATES);
    for (size_t arm = 0; arm < 2; arm++)
        if (seldom(2)) j.unbounded[arm] = 1 + draws_pick(&draws, UPDATES);
    j.alpha = 0.05;
    j.power = 0.875;
    j.state_step = seldom(3) ? 0 : 3;
    j.state_skipped = j.state_step > 0 && seldom(3);
    for (size_t arm = 0; arm < 2; arm++) { /* of masters alone it is asked why an arm stood */
        j.stood[arm][STOOD_SKIPPED] = draws_pick(&draws, (uint32_t)j.updates + 1);
        j.stood[arm][STOOD_LR] = j.updates - j.stood[arm][STOOD_SKIPPED];
        if (seldom(4) && j.stood[arm][STOOD_LR] > 0) j.stood[arm][STOOD_LR]--;
    }
    j.reported = (struct judged_report){.update = seldom(2) ? 0 : 2};
    j.reported.column = columns[draws_pick(&draws, 2)];
    j.reported.values[0] = 1.0;
    j.reported.values[1] = 1.0 + ldexp(1.0, -(int)draws_pick(&draws, 54));
    if (seldom(9)) j.reported.values[1] = 1.0;
}

/* ---- the same in words ---- */

static char want[8192];
static size_t want_length;

static void add(const char *format, ...) TWINSTEP_PRINTF(1, 2);
static void add(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(want + want_length, sizeof want - want_length, format, arguments);
    va_end(arguments);
    assert_true(length >= 0);
    want_length += (size_t)length;
    assert_true(want_length < sizeof want);
}

/* Some of the causes, in an order. */
struct list {
    uint32_t count, of[MOST];
};

static struct list all_causes(void) {
    struct list list = {j.cause_count, {0}};
    for (uint32_t i = 0; i < list.count; i++)
        list.of[i] = i;
    return list;
}

static struct list where(int (*holds)(uint32_t cause)) {
    struct list list = {0};
    for (uint32_t i = 0; i < j.cause_count; i++)
        if (holds(i)) list.of[list.count++] = i;
    return list;
}

static int works(uint32_t i) {
    return j.causes[i].is_idle == 0;
}
static int idles(uint32_t i) {
    return j.causes[i].is_idle != 0;
}
static int is_named(uint32_t i) {
    return j.joint.role[i] == JOINT_ROLE_NAMED;
}
static int is_any(uint32_t i) {
    return j.joint.role[i] == JOINT_ROLE_ANY;
}
static int is_meant(uint32_t i) {
    return is_named(i) || is_any(i);
}
static int cancels_beside(uint32_t i) {
    return j.beside.cancels >> i & 1u;
}

static int is_other(uint32_t i) {
    return !is_meant(i);
}
static int moves(uint32_t i) {
    return j.causes[i].moves > 0.0;
}
static int is_some(uint32_t i) {
    const struct attributed *const of = &j.causes[i].share;
    return !(of->value == 0.0 && of->low == 0.0 && of->high == 0.0);
}

/* Some figure has an interval without the value that it has of a cause that does nothing. */
static int certainly_acts(uint32_t i) {
    const struct judged_cause *const cause = &j.causes[i];
    const struct attributed *const of[] = {&cause->share, &cause->left, &cause->alone};
    static const double idle[] = {0.0, 1.0, 0.0};
    int acts = 0;
    for (size_t k = 0; k < COUNT_OF(idle); k++)
        if (!isnan(of[k]->value) && (of[k]->low > idle[k] || (k < 2 && of[k]->high < idle[k])))
            acts = 1;
    return acts;
}

enum figure { NAME, SHARE, SIGNED, LEFT, ALONE, OF_TOTAL, OF_TRAVEL, TIMES_ALONE, TIMES_LEFT };

static void add_figure(uint32_t i, enum figure figure) {
    const struct judged_cause *const cause = &j.causes[i];
    char text[FIGURE_TEXT];
    add("%s", cause->name);
    switch (figure) {
    case SHARE:
    case SIGNED:
        add(" %s", share_text(&cause->share, figure == SIGNED, text));
        break;
    case LEFT:
        add(" %s", figure_text(&cause->left, text));
        break;
    case ALONE:
        add(" %s", figure_text(&cause->alone, text));
        break;
    case OF_TOTAL:
        add(" %.4g", cause->moves / 2.0);
        break;
    case TIMES_ALONE:
        add(" %.4g", cause->alone.value);
        break;
    case TIMES_LEFT:
        add(" %.4g", cause->left.value);
        break;
    case OF_TRAVEL:
        add(" %.4g", cause->moves / (j.masters ? 1.0 : 8.0));
        break;
    default:
        break;
    }
}

/* So many at most, with commas, and how many more there are. */
static void add_list(const struct list *list, uint32_t most, enum figure figure) {
    const uint32_t more = list->count > most ? list->count - most : 0;
    for (uint32_t i = 0; i + more < list->count; i++) {
        if (i > 0) add(", ");
        add_figure(list->of[i], figure);
    }
    if (more > 0) add(" (and %u more)", more);
}

static const char *plain(const char *name) {
    static const struct {
        enum cause cause;
        const char *words;
    } words[] = {{CAUSE_SCHEDULE, "the learning-rate schedule"},
                 {CAUSE_OPTIMIZER, "the optimizer and clipping"},
                 {CAUSE_DTYPE, "the dtypes"},
                 {CAUSE_NONDETERMINISM, "the order in which kernels sum"},
                 {CAUSE_BATCH_SHAPE, "how batches are cut and padded"},
                 {CAUSE_DATA_ORDER, "the order of the data"},
                 {CAUSE_RNG, "the random draws"},
                 {CAUSE_NORMALISATION, "what the loss is divided by"},
                 {CAUSE_REFERENCE, "the reference model"},
                 {CAUSE_MODEL, "how the model computes"},
                 {CAUSE_PARALLELISM, "ranks and shards"},
                 {CAUSE_RESUME, "what a restart restores"},
                 {CAUSE_INIT, "the initial weights"},
                 {CAUSE_OBJECTIVE, "the loss that is minimised"},
                 {CAUSE_BACKWARD, "the formula of the backward pass"},
                 {CAUSE_CORRUPTION, "a bit flip, as of a defective core or memory"}};
    assert_int_equal(COUNT_OF(words), CAUSE_COUNT);
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strcmp(name, cause_name(words[i].cause)) == 0) return words[i].words;
    return NULL;
}

/* The first update, from 0 on, and group of which the arms have other LRs; 0: they have none. */
static int find_other(int which, uint64_t *update, uint32_t *group) {
    const uint32_t shared =
        runs[0].plan.shape.groups == GROUPS && runs[1].plan.shape.groups == GROUPS ? GROUPS : 1;
    for (uint64_t i = 0; i < j.updates * shared; i++) {
        const double a = groups[0][i / shared][i % shared][which],
                     b = groups[1][i / shared][i % shared][which];
        if (a == b || (isnan(a) && isnan(b))) continue;
        *update = i / shared;
        *group = (uint32_t)(i % shared);
        return 1;
    }
    *group = 0;
    return 0;
}

static int has_loop(const struct judged_cause *cause) {
    return cause->keys != NULL && strstr(cause->keys, "loop.") != NULL;
}

/* Data are called so where more than their order differs, and a divisor where more than the last
 * batch does. */
static const char *plain_of(const struct judged_cause *cause) {
    const char *const keys = cause->keys == NULL ? "" : cause->keys;
    if (strcmp(cause->name, cause_name(CAUSE_DATA_ORDER)) == 0 && keys[0] != '\0' &&
        strcmp(keys, "data.seed: 1 -> 2") != 0 && strncmp(keys, "parallel.deal", 13) != 0)
        return "the data";
    if (strcmp(cause->name, cause_name(CAUSE_NORMALISATION)) == 0 &&
        strncmp(keys, "batch.tail", 10) == 0)
        return "the last, smaller batch";
    return plain(cause->name);
}

static void add_cause(const struct judged_cause *cause) {
    uint64_t update;
    uint32_t group;
    const char *const words = plain_of(cause);
    add("%s", cause->name);
    if (words == NULL) return;
    if (strcmp(cause->name, cause_name(CAUSE_SCHEDULE)) != 0) {
        add(" (%s)", words);
        return;
    }
    const int differs = find_other(GROUP_LR_APPLIED, &update, &group);
    const int skipped = !differs                                            ? -1
                        : isnan(groups[0][update][group][GROUP_LR_APPLIED]) ? 0
                        : isnan(groups[1][update][group][GROUP_LR_APPLIED]) ? 1
                                                                            : -1;
    const int early = differs && (j.first_step < 0 || 5 + (int64_t)update <= j.first_step);
    const int others = cause->keys != NULL && strstr(cause->keys, "schedule.") != NULL;
    if (has_loop(cause) && others)
        add(" (the schedule's keys and the loop's");
    else if (has_loop(cause) && (skipped >= 0 || !early))
        add(" (the loop");
    else
        add(" (%s", words);
    if (!differs) add("; every applied LR is equal");
    if (skipped >= 0) add("; %s skipped update %d", j.arms[skipped], (int)update + 5);
    add(")");
}

#define WAY (j.by_distance ? "the distance" : "the way")

static void add_one(void) {
    char text[FIGURE_TEXT];
    struct list besides = {0};
    add(" Cause: ");
    add_cause(&j.causes[0]);
    if (j.cause_count == 1) {
        add("; nothing else differs.");
        return;
    }
    add(" makes %s of %s from left to right; with it alone repaired, ",
        figure_text(&j.causes[0].share, text), WAY);
    add("%s of the gap is left.", figure_text(&j.causes[0].left, text));
    for (uint32_t i = 1; i < j.cause_count; i++)
        if (is_some(i)) besides.of[besides.count++] = i;
    if (besides.count == 0) {
        add(j.cause_count == 2 ? " The other makes none of the way."
                               : " The others make none of the way.");
        return;
    }
    add(" Besides: ");
    add_list(&besides, LISTED - 1, SHARE);
    add(".");
}

static void add_idle(void) {
    const struct list idle = where(idles);
    if (idle.count == 0) return;
    add(" ");
    add_list(&idle, MOST, NAME);
    add(idle.count == 1 ? " makes none of it." : " make none of it.");
}

static int stands_before(uint32_t i, uint32_t k) {
    return j.causes[i].place[1] < j.causes[k].place[0];
}

static void add_several(void) {
    const struct list told = where(works);
    const uint32_t shown = told.count < LISTED ? told.count : LISTED;
    int ordered = 1;
    for (uint32_t i = 1; i < shown; i++)
        ordered = ordered && stands_before(told.of[i - 1], told.of[i]);
    add(where(certainly_acts).count > 1 ? " Several causes, " : " One cause or several, ");
    if (j.word == WORD_OPEN)
        add("and which of them is the first is open: ");
    else if (ordered)
        add("in this order: ");
    else
        add("in this order but for those joined by \"and\": ");
    for (uint32_t i = 0; i < shown; i++) {
        if (i > 0)
            add(j.word == WORD_OPEN || stands_before(told.of[i - 1], told.of[i]) ? ", " : " and ");
        add_figure(told.of[i], SHARE);
    }
    if (told.count > shown) add(" (and %u more)", told.count - shown);
    add(" of %s from left to right. With one alone repaired, this much of the gap is left: ", WAY);
    add_list(&told, LISTED, LEFT);
    add(".");
    add_idle();
}

static void add_oppose(void) {
    const struct list told = where(works);
    int against = 0;
    for (uint32_t i = 0; i < j.cause_count; i++)
        against = against || j.causes[i].share.value < 0.0;
    add(" Causes oppose each other%s Of %s from left to right: ",
        against ? "." : ": repairing one alone can widen the gap.", WAY);
    add_list(&told, LISTED, SIGNED);
    add(". Repairing one alone leaves ");
    add_list(&told, LISTED, LEFT);
    add(" of the gap.");
    add_idle();
}

static void add_jointly(void) {
    const struct list named = where(is_named), any = where(is_any), meant = where(is_meant),
                      other = where(is_other);
    char text[FIGURE_TEXT];
    const int each = j.word == WORD_EACH, shut = j.joint.others == OTHERS_SHUT;
    if (each) {
        add(" Each of several causes %s by itself",
            j.joint.kind == JOINT_ALL ? "is enough" : "opens at least half of the gap");
    } else if (shut) {
        add(j.joint.partial && j.joint.kind != JOINT_OPEN
                ? " In the mixtures that were trained, only together "
                : " Only together ");
        if (j.joint.kind == JOINT_ANY) {
            add("with any of ");
            add_list(&any, MOST, NAME);
            add(named.count == 1 ? " does " : " do ");
            add_list(&named, MOST, NAME);
            add(" open the gap");
        } else {
            add(j.joint.kind == JOINT_OPEN   ? "do causes open the gap"
                : j.joint.kind == JOINT_HALF ? "do these causes open most of the gap"
                                             : "do these causes open the gap");
        }
    } else if (j.joint.kind == JOINT_ANY) {
        add(" ");
        add_list(&named, MOST, NAME);
        add(" %s the gap together with %s", named.count == 1 ? "opens" : "open",
            any.count == 1 ? "" : "any of ");
        add_list(&any, MOST, NAME);
    } else {
        add(" Together these causes open %sthe gap", j.joint.kind == JOINT_HALF ? "most of " : "");
    }
    if (j.joint.blocked) add(", though not in every mixture with others");
    if (!each) {
        if (j.joint.others == OTHERS_ALL) add("; other mixtures open it as well");
        if (j.joint.others == OTHERS_HALF) add("; other mixtures open half of it or more");
        if (j.joint.others == OTHERS_UNKNOWN) add("; noise hides what other mixtures open");
        if (j.joint.others == OTHERS_UNTRAINED) {
            add("; the mixture without ");
            add_list(&any, MOST, NAME);
            add(" was not trained");
        }
    }
    add(each ? "; alone they open: " : "; alone each opens: ");
    add_list(&meant, LISTED, ALONE);
    add(" of it. Repairing one alone leaves ");
    add_list(&meant, LISTED, LEFT);
    if (!each)
        add(".");
    else if (j.joint.rest_is_little)
        add(": repair all.");
    else if (isnan(j.joint.rest.value))
        add(". What repairing all of these leaves was not trained.");
    else
        add(". Repairing all of these leaves %s.", figure_text(&j.joint.rest, text));
    if (other.count == 0) return;
    add(" Others differ, too; alone they open: ");
    add_list(&other, LISTED, ALONE);
    add("; repairing one alone leaves ");
    add_list(&other, LISTED, LEFT);
    add(".");
}

/* Those that go farther first; of equal ones, as they stand. */
static struct list by_moves(struct list list) {
    for (uint32_t i = 1; i < list.count; i++)
        for (uint32_t k = i; k > 0 && j.causes[list.of[k]].moves > j.causes[list.of[k - 1]].moves;
             k--) {
            const uint32_t other = list.of[k];
            list.of[k] = list.of[k - 1];
            list.of[k - 1] = other;
        }
    return list;
}

static void add_cancel(void) {
    struct list moving = where(moves), all = all_causes();
    if (j.word != WORD_CANCEL) {
        /* one of them goes far, and the others not half as far together with their intervals */
        const struct list far = by_moves(all);
        const uint32_t first = far.of[0];
        uint32_t near = 0;
        for (uint32_t i = 1; i < far.count; i++)
            near += 2.0 * j.causes[far.of[i]].alone.high < j.causes[first].alone.low;
        if (j.causes[first].alone.low > 10.0 && near == far.count - 1)
            add(" Alone %s goes far beyond the gap, and the rest takes most of that back: alone "
                "causes move the weights by this many times the arms' distance: ",
                j.causes[first].name);
        else
            add(" The causes nearly cancel: alone they move the weights by this many times the "
                "arms' distance: ");
        add_list(&all, LISTED, OF_TOTAL);
        add(j.causes[first].alone.low > 10.0 && near == far.count - 1
                ? "."
                : "; percentages of so small a rest would mean nothing.");
        for (uint32_t i = 0; i < j.cause_count; i++) {
            char text[FIGURE_TEXT];
            if (!(j.causes[i].left.high < 0.1)) continue;
            add(" With %s alone repaired, %s of the gap is left.", j.causes[i].name,
                figure_text(&j.causes[i].left, text));
        }
        return;
    }
    const int none_moves = moving.count == 0;
    moving = by_moves(none_moves ? all : moving);
    add(" The causes cancel exactly: the arms have the same weights at the end, but alone causes "
        "move %s: ",
        j.masters ? "the masters by this distance" : "them by this much of the way trained");
    add_list(&moving, LISTED, OF_TRAVEL);
    for (uint32_t i = 0; i < j.cause_count && !none_moves; i++)
        if (!moves(i)) add("; %s alone does not move them", j.causes[i].name);
    add(".");
}

static void add_beside(void) {
    const struct judged_cause *const one = &j.causes[j.beside.cause];
    const struct list others = where(cancels_beside);
    char alone[FIGURE_TEXT], left[FIGURE_TEXT];
    add(" Cause: ");
    add_cause(one);
    add(" opens %s of the gap alone; with it alone repaired, %s of the gap is left. Beside it "
        "causes %s: alone they move the weights by this many times the arms' distance: ",
        figure_text(&one->alone, alone), figure_text(&one->left, left),
        j.beside.exactly ? "cancel exactly" : "nearly cancel");
    add_list(&others, LISTED, TIMES_ALONE);
    add("; repairing one of these alone leaves this many times it: ");
    add_list(&others, LISTED, TIMES_LEFT);
    add(".");
}

static void add_rounding(void) {
    const struct list working = where(works);
    uint32_t said = 0;
    add(" It differs exactly; a change of one unit in the last place of one weight does as much "
        "(0.75 of |a-b|%s).",
        j.masters ? " of the masters" : "");
    if (working.count == 1 && working.of[0] == 0) {
        add_one();
        return;
    }
    if (j.ranked < 0) {
        add(" No update was recorded at which rounding did less than 0.1 of it, so the causes are "
            "not ranked: ");
        add_list(&working, LISTED, NAME);
        add(".");
        add_idle();
        return;
    }
    add(" At update 7 rounding did less than 0.1 of it, and the causes made: ");
    for (uint32_t i = 0; i < j.cause_count; i++) {
        const double value = j.marks[1].share[i];
        const struct attributed share = {value, value, value};
        char text[FIGURE_TEXT];
        if (value == 0.0) continue;
        add("%s%s %s", said++ > 0 ? ", " : "", j.causes[i].name, share_text(&share, 0, text));
    }
    add(" of the way.");
}

static void add_what_differs(void) {
    const struct list all = all_causes();
    add(j.cause_count == 1 ? " Cause: " : " What differs: ");
    add_list(&all, MOST, NAME);
    add(j.cause_count == 0 ? "nothing in the configurations." : ".");
}

static void add_no_distance(void) {
    const int left = isnan(records[0][j.updates - 1].reals[REAL_PARAM_NORM]),
              right = isnan(records[1][j.updates - 1].reals[REAL_PARAM_NORM]);
    if (!left && !right)
        add(" No distance between the arms could be measured, so there are no shares.");
    else
        add(" The weights of %s are not finite after the last update, so there is no distance and "
            "there are no shares.",
            !right  ? "left"
            : !left ? "right"
                    : "both arms");
}

static void add_causes(void) {
    if (j.beside.is_known) {
        add_beside();
    } else if (j.word == WORD_CANCEL || j.word == WORD_NEARLY) {
        add_cancel();
    } else if (j.word == WORD_ROUNDING) {
        add_rounding();
    } else if (j.word == WORD_OPPOSE) {
        add_oppose();
    } else if (j.word == WORD_TOGETHER || j.word == WORD_EACH) {
        add_jointly();
    } else if (j.word == WORD_CAUSE) {
        add_one();
    } else if (j.word == WORD_SEVERAL || j.word == WORD_OPEN) {
        add_several();
    } else if (j.cause_count == 0) {
        add(" The configurations are equal: no cause can be named.");
    } else {
        const int is_pair = strcmp(pairs[1].plan.a, "left") == 0 && pairs[1].updates > 0;
        add_what_differs();
        if (j.attributed)
            add(" The weights are equal at the end, so there is no distance to share out.");
        else if (!is_pair || !isfinite(pair_records[pairs[1].updates - 1].reals[PAIR_DISTANCE]))
            add_no_distance();
        else if (strcmp(array.plan.path, "attribution/value") != 0)
            add(" No hybrid of the arms was trained, so there are no shares.");
        else
            add(" A hybrid of the arms diverged or was not finished, so there are no shares.");
    }
    if (j.beside.is_known) return; /* it tells no shares */
    if (j.word < WORD_OPPOSE || j.word == WORD_TOGETHER || j.word == WORD_EACH) return;
    for (uint32_t i = 0; i < j.cause_count; i++) {
        const struct attributed *const share = &j.causes[i].share;
        if (j.sample.orders == 0 || share->high - share->low > 1e-9 || isnan(share->high)) continue;
        if (i >= LISTED && works(i)) continue; /* it is not listed */
        add(" A share without an interval is an estimate from 64 sampled orders that agree; others "
            "need not.");
        break;
    }
}

/* Two numbers that are not one number, in so many digits or more, and 17 at most. */
static int digits_for(double a, double b, int least) {
    char one[40], other[40];
    for (int digits = least; digits < 17; digits++) {
        snprintf(one, sizeof one, "%.*g", digits, a);
        snprintf(other, sizeof other, "%.*g", digits, b);
        if (strcmp(one, other) != 0) return digits;
    }
    return 17;
}

static void add_reported(void) {
    const double *const values = j.reported.values;
    const int digits = digits_for(values[0], values[1], 9);
    add("%s of update 2, %.*g in left, %.*g in right", j.reported.column, digits, values[0], digits,
        values[1]);
}

static void add_updates(const char *one, const char *several) {
    if (j.updates == 1)
        add("%s", one);
    else
        add("%s %d updates", several, (int)j.updates);
}

/* Where every update of both arms has an update norm of 0, and no masters may have moved: they have
 * not where each update of both arms was skipped or had no LR. */
static void add_stillness(void) {
    if (j.diverged[0] > 0 && j.diverged[1] > 0)
        add(" The losses of both arms are not finite from update %d on.",
            (int)fmax((double)j.diverged[0], (double)j.diverged[1]));
    else if (j.unbounded[0] > 0 && j.unbounded[1] > 0)
        add(" Weights of both arms are not finite from update %d on.",
            (int)fmax((double)j.unbounded[0], (double)j.unbounded[1]));
    for (size_t arm = 0; arm < 2; arm++)
        for (size_t i = 0; i < j.updates; i++)
            if ((j.masters && j.stood[arm][STOOD_SKIPPED] + j.stood[arm][STOOD_LR] != j.updates) ||
                records[arm][i].reals[REAL_UPDATE_NORM] != 0.0)
                return;
    add(j.updates == 1 ? " The update moved no weight in either arm, so no training was compared."
                       : " No update moved a weight in either arm, so no training was compared.");
}

static void add_headline(void) {
    static const char *const titles[] = {
        "",           "IDENTICAL",     "INSIDE THE FLOOR",   "OUTSIDE THE FLOOR",
        "UNTESTABLE", "SAME TRAINING", "SAME WEIGHTS SO FAR"};
    add("scene: %s.", titles[j.verdict]);
    switch (j.verdict) {
    case VERDICT_IDENTICAL:
        add(" Parameters, slots, losses and applied LR of ");
        add_updates("the one update", "all");
        add(" are equal.");
        add_stillness();
        if (j.word == WORD_CANCEL) add_cancel();
        return;
    case VERDICT_INSIDE_FLOOR:
        add(" No difference beyond that of repeats was detected at alpha = 0.05; one that shifts "
            "the distance by 3 sigma of its noise would be with probability 0.88, in a model of "
            "one number; MIXTURES.");
        add_stillness();
        return;
    case VERDICT_OUTSIDE_FLOOR:
        add_causes();
        return;
    case VERDICT_SAME_TRAINING:
        add(" It trains identically and reports %s: weights, optimizer state and applied LR are "
            "equal after ",
            j.reported.update > 0
                ? "differently"
                : "the same numbers from other data, draws or intermediate values");
        add_updates("the one update", "each of");
        add(".");
        if (j.reported.update > 0) {
            add(" First reported otherwise: ");
            add_reported();
            add(".");
        }
        break;
    case VERDICT_SAME_WEIGHTS:
        if (j.state_step == 0) {
            add(" Weights, optimizer state and applied LR are equal after ");
            add_updates("the one update", "each of");
            add(", but what differs may reach a weight later.");
            if (j.reported.update > 0) {
                add(" First reported otherwise: ");
                add_reported();
                add(".");
            }
            break;
        }
        add(j.state_skipped ? " Weights, optimizer state and applied LR are equal after "
                            : " The weights are equal after ");
        add_updates("the one update", "each of");
        if (j.state_skipped) {
            add(", but from update 3 on, gradients that both arms skipped are not known to be, and "
                "what differs may reach a weight later.");
            break;
        }
        add(", but from update 3 on what the optimizer holds, takes in or applies is not, and may "
            "reach a weight later.");
        break;
    default:
        add(" no repeat was made.");
        return;
    }
    add_stillness();
    if (j.word == WORD_CANCEL)
        add_cancel();
    else
        add_what_differs();
}

static void add_why(void) {
    uint64_t update = 0, logged;
    uint32_t group = 0, other;
    if (!find_other(GROUP_LR_APPLIED, &update, &group)) return;
    const double *const a = groups[0][update][group], *const b = groups[1][update][group];
    const int step = (int)update + 5,
              skips = isnan(a[GROUP_LR_APPLIED]) || isnan(b[GROUP_LR_APPLIED]);
    add("update %d applied LR ", step);
    if (isnan(a[GROUP_LR_APPLIED])) {
        add("%.6g in right, none in left, which skipped it", b[GROUP_LR_APPLIED]);
    } else if (isnan(b[GROUP_LR_APPLIED])) {
        add("%.6g in left, none in right, which skipped it", a[GROUP_LR_APPLIED]);
    } else {
        const int digits = digits_for(a[GROUP_LR_APPLIED], b[GROUP_LR_APPLIED], 6);
        add("%.*g in left, %.*g in right", digits, a[GROUP_LR_APPLIED], digits,
            b[GROUP_LR_APPLIED]);
    }
    if (group > 0) add(", to parameter group 1 (groups before it had equal LRs there)");
    for (uint32_t i = 0; i < j.cause_count; i++)
        if (j.first_step >= 0 && j.first_step < step && has_loop(&j.causes[i]) &&
            strcmp(j.causes[i].name, cause_name(CAUSE_SCHEDULE)) == 0)
            add(" (the arms differ from update %d on, with equal LRs there)", (int)j.first_step);
    const char *const rule[2] = {image.attribute_count > 0 ? attributes[0].text : "",
                                 image.attribute_count > 1 ? attributes[1].text : ""};
    if (strcmp(rule[0], rule[1]) == 0)
        add(".");
    else
        add(":\nupdate k uses %s in left, %s in right.", rule[0], rule[1]);
    if (!isnan(a[GROUP_LR_READBACK]) && !isnan(b[GROUP_LR_READBACK])) {
        const double error = fmax(a[GROUP_LR_ERROR], b[GROUP_LR_ERROR]);
        const double gap = fabs(a[GROUP_LR_APPLIED] - b[GROUP_LR_APPLIED]);
        const int digits = digits_for(a[GROUP_LR_READBACK], b[GROUP_LR_READBACK], 6);
        if (skips || 2.0 * error > gap)
            add("\nReading the LR back from the weights is untestable here: its error, %.1e, "
                "exceeds half the gap.",
                error);
        else
            add("\nRead back from the weights: %.*g and %.*g (+- %.1e).", digits,
                a[GROUP_LR_READBACK], digits, b[GROUP_LR_READBACK], error);
    }
    if (!skips && !find_other(GROUP_LR_LOGGED, &logged, &other))
        add("\nBoth log the same LR at every update (%.6g at this one): a comparison of logs "
            "cannot see this.",
            a[GROUP_LR_LOGGED]);
}

static void add_note(void) {
    if (j.verdict != VERDICT_IDENTICAL || j.reported.update == 0 ||
        strcmp(j.reported.column, "lr_logged") == 0)
        return;
    add("what the arms report differs all the same, first ");
    add_reported();
    add(": a comparison of logs would show a difference that no weight has");
}

static void corroborate_rows(void **state) {
    (void)state;
    static const struct {
        void (*of)(const struct judgement *judgement, struct row_pen *pen);
        void (*in_words)(void);
        enum judged_row_kind kind;
    } rows[] = {{judge_row_headline, add_headline, ROW_HEADLINE},
                {judge_row_why, add_why, ROW_WHY},
                {judge_row_reported, add_note, ROW_NOTE}};
    static const char *const parts[] = {"more)",
                                        " and ",
                                        "makes none of it",
                                        "make none of it",
                                        "Besides",
                                        "The other ",
                                        "The others",
                                        "only together",
                                        "Only together",
                                        "with any of",
                                        "opens the",
                                        "open the",
                                        "repair all",
                                        "not trained",
                                        "though not",
                                        "skipped",
                                        "(the loop",
                                        "the schedule's",
                                        "not ranked",
                                        "At update 7",
                                        "move them",
                                        "none in",
                                        "parameter group",
                                        "Read back",
                                        "untestable here",
                                        "Both log",
                                        "arms differ from",
                                        "sampled orders",
                                        "to share out",
                                        "could be measured",
                                        "No hybrid",
                                        "A hybrid",
                                        "no cause can",
                                        "report differs",
                                        "Others differ, too"};
    size_t seen[COUNT_OF(parts)] = {0};
    for (uint32_t number = 0; number < CASES; number++) {
        draw_judgement(number);
        for (size_t r = 0; r < COUNT_OF(rows); r++) {
            struct judged_row told[2];
            struct arena arena = ARENA_EMPTY;
            struct row_pen pen = {.arena = &arena, .rows = told};
            want_length = 0;
            want[0] = '\0';
            rows[r].in_words();
            rows[r].of(&j, &pen);
            assert_int_equal(pen.status, STATUS_OK);
            assert_int_equal(pen.count, want_length > 0);
            if (pen.count > 0) {
                assert_int_equal(told[0].kind, rows[r].kind);
                if (strcmp(told[0].text, want) != 0)
                    fail_msg("case %u: \"%s\", expected \"%s\"", number, told[0].text, want);
            }
            for (size_t i = 0; i < COUNT_OF(parts); i++)
                seen[i] += strstr(want, parts[i]) != NULL;
            arena_close(&arena);
        }
        uint64_t update;
        uint32_t group;
        (void)find_other(GROUP_LR_APPLIED, &update, &group);
        assert_int_equal(judgement_lr_group(&j), group);
    }
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (seen[i] < 20) fail_msg("%s: %zu", parts[i], seen[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
