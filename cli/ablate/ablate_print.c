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
#include "cli/ablate/ablate_headline.h"
#include "scenarios/yaml.h"

#define VALUE_SIZE 100 /* of a leaf's value that is printed */
#define ABLATE_UNTOLD ((double)NAN)

const char *ablate_verdict_name(const struct ablate_verdict *verdict) {
    static const char *const names[] = {"inside-floor", "outside-floor", "untestable"};
    if (verdict->kind == ABLATE_INSIDE && verdict->floor == ABLATE_FLOOR_EXACT) return "identical";
    return names[verdict->kind];
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
        printf(
            "the repeats agreed; the chance that this is luck, of a command with two outcomes, is "
            "at most %.2g %% (alpha %g %%)",
            100.0 * verdict->chance, 100.0 * verdict->alpha);
    if (verdict->doubt[0] != '\0' || !isnan(verdict->chance)) printf("; ");
    printf(
        "a second outcome would have shown in these %u runs 19 times of 20 if it comes in %.0f %% "
        "of runs, and a rarer one less often\n",
        runs, 100.0 * ablate_missed_rate(runs));
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
        printf("weights: %zu tensor%s%s, %" PRIu64 " element%s%s, |a-b| = %.6g\n",
               verdict->shape.tensors, verdict->shape.tensors == 1 ? "" : "s",
               ablate_differ_in_names(verdict) ? " of both arms" : "", verdict->shape.elements,
               verdict->shape.elements == 1 ? "" : "s",
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

/* Runs that left other numbers of losses are compared in what both have; that they ended elsewhere
 * is no part of the distance. */
static void print_lengths(const struct ablate_verdict *verdict) {
    if (verdict->lengths[0] == '\0') return;
    printf("  losses   %s; expected as many of every run", verdict->lengths);
    if (verdict->step == 0)
        printf("; no update is in all runs of both arms, so none is compared");
    else if (verdict->by_loss)
        printf("; compared is that of update %" PRId64 ", the last of both arms", verdict->step);
    putchar('\n');
}

/* Which tensors one arm alone left, and which factors do that. */
static void print_tensors(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    if (!ablate_differ_in_names(verdict)) return;
    printf("  tensors  ");
    ablate_print_only_left(verdict);
    ablate_print_renaming(plan, verdict, "; alone, these change which there are: ", "");
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
    else /* a share that rounds to 0 has no sign to show */
        printf(" %9.3f %%", fabs(value) < 5e-6 ? 0.0 : 100.0 * value);
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

/* The width of the column of names. */
static int name_width(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    const int indent = verdict->joined == NULL ? 0 : 2; /* members of groups stand in */
    int width = 20;
    for (uint32_t i = 0; i < verdict->factor_count; i++) {
        const int length = (int)strlen(ablate_factor_name(plan, &verdict->factors[i])) + indent;
        if (length > width) width = length;
    }
    return width;
}

/* The members of a group that stands in the table as one factor, which have no share there. */
static void print_members(const struct ablate_plan *plan, const struct ablate_verdict *each,
                          const struct ablate_judged *group, int losses, int width) {
    for (uint32_t i = 0; i < each->factor_count; i++) {
        const struct ablate_judged *of = &each->factors[i];
        if ((of->mask & group->mask) == 0 || of->mask == group->mask) continue;
        printf("             %-*s", width - 2, ablate_factor_name(plan, of));
        print_column(ABLATE_UNTOLD, 0);
        print_column(of->left.value, 0);
        print_column(of->alone.value, 0);
        if (losses) {
            print_loss(of->loss_left);
            print_loss(of->loss_alone);
        }
        putchar('\n');
    }
}

/* `each` is the verdict with factors one by one, where `verdict` counts some of them as one. */
static void print_table(const struct ablate_plan *plan, const struct ablate_verdict *verdict,
                        const struct ablate_verdict *each) {
    const int figures = verdict->has_distance && isfinite(verdict->full) && verdict->full > 0.0;
    const int losses = verdict->step > 0 && isfinite(verdict->loss_gap);
    const int shares = figures && ablate_has_shares(verdict);
    const int times = verdict->word == WORD_NEARLY;
    const double unit = times ? 0.5 : 50.0; /* half an interval, in what the column is in */
    const int width = name_width(plan, each);
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
    printf("           %-*s", width, "");
    if (shares) printf(" %11s", "share");
    printf(" %11s %11s", "left", "alone");
    if (losses) printf(" %12s %12s", "loss left", "loss alone");
    putchar('\n');
    for (uint32_t i = 0; i < verdict->factor_count; i++) {
        const struct ablate_judged *of = &verdict->factors[i];
        if (ablate_is_group(of))
            printf("           %-*s", width, "these as one factor");
        else
            printf("           %-*s", width, ablate_factor_name(plan, of));
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
        print_members(plan, each, of, losses, width);
    }
    if (shares && !times && verdict->factor_count > 1)
        printf(
            "           share is measured along the way alone; left and alone are whole distances, "
            "with what lies across it, so the columns do not add up to 100 %%\n");
    if (losses)
        printf(
            "           loss at update %" PRId64
            ": all factors %+.4g%s; where a factor changes the rows or their order, it is the loss "
            "of other rows\n",
            verdict->step, verdict->loss_gap,
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
                   ablate_factor_name(plan, of), of->equal, of->planned);
        else if (kinds != 0 && of->pairs > 0 && of->equal < of->pairs)
            printf("  partly   %s: with and without it, %u of %u hybrids are equal in %s; it "
                   "changes %s\n",
                   ablate_factor_name(plan, of), of->pairs, of->planned,
                   ablate_kinds_text(kinds, still),
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

/* A leaf of two files, with its value in each; its path where the factor is not called so. */
static void print_leaf(const struct ablate_plan *plan, const struct ablate_factor *factor,
                       const struct ablate_leaf *leaf) {
    const struct leaves *leaves = &plan->leaves[leaf->file];
    if (strcmp(leaf->path, factor->name) != 0) printf(" %s", leaf->path);
    for (size_t i = 0; i < leaves->count; i++) {
        const struct yaml_node *const *of = leaves->values[i].of;
        if (strcmp(leaves->differ[i], leaf->path) != 0) continue;
        putchar(' ');
        print_value(of[0], of[1]);
        printf(" -> ");
        print_value(of[1], of[0]);
    }
    printf(" (%s)", plan->file->files[leaf->file].paths[1]);
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
    ablate_print_headline(folder->plan, verdict);
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
            print_leaf(folder->plan, factor, &factor->leaves[l]);
        }
        putchar('\n');
    }
    print_first("", &verdict->first);
    for (uint32_t i = 0; i < verdict->factor_count; i++)
        print_first(ablate_factor_name(folder->plan, &verdict->factors[i]),
                    &verdict->factors[i].first);
    print_floor(folder->plan->file, verdict);
    print_measure(verdict);
    print_lengths(verdict);
    print_tensors(folder->plan, verdict);
    print_wrappers(verdict);
    print_closure(verdict);
    print_table(folder->plan, verdict->joined != NULL ? verdict->joined : verdict, verdict);
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
    for (uint32_t i = 0; i < file->composed_count; i++)
        printf(
            "  files    {%s} is a copy of %s that each run has for itself, with the leaves of %s "
            "that its factors take\n",
            file->files[i].name, file->files[i].paths[0], file->files[i].paths[1]);
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
