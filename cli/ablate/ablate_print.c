/* SPDX-License-Identifier: Apache-2.0
 * Puts an ablation into words. Computes nothing but percentages. */
#include "cli/ablate/ablate_print.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define IN_WORDS 4 /* so many factors fit a sentence; the table has all */

static const char *name_of(const struct ablate_plan *plan, const struct ablate_judged *of) {
    return plan->file->factors[of->factor].name;
}

const char *ablate_verdict_name(const struct ablate_verdict *verdict) {
    static const char *const names[] = {"inside-floor", "outside-floor", "untestable"};
    return names[verdict->kind];
}

/* ---- headline ---- */

static uint32_t in_words(const struct ablate_verdict *verdict) {
    return verdict->factor_count < IN_WORDS ? verdict->factor_count : IN_WORDS;
}

static void print_percent(const struct attributed *of) {
    printf("%.4g %%", 100.0 * of->value);
    if (of->high - of->low > 0.002) printf(" (%.3g to %.3g)", 100.0 * of->low, 100.0 * of->high);
}

enum figure { FIGURE_SHARE, FIGURE_LEFT, FIGURE_ALONE };

static void print_figures(const struct ablate_plan *plan, const struct ablate_verdict *verdict,
                          uint32_t from, enum figure figure) {
    for (uint32_t i = from; i < in_words(verdict); i++) {
        const struct ablate_judged *of = &verdict->factors[i];
        printf("%s%s ", i == from ? "" : ", ", name_of(plan, of));
        print_percent(figure == FIGURE_SHARE  ? &of->share
                      : figure == FIGURE_LEFT ? &of->left
                                              : &of->alone);
    }
    if (verdict->factor_count > IN_WORDS) printf(", %u more", verdict->factor_count - IN_WORDS);
}

static void print_one(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    const struct ablate_judged *first = &verdict->factors[0];
    printf(" Cause: %s", name_of(plan, first));
    if (verdict->factor_count == 1) {
        printf(", the only factor.");
        return;
    }
    printf(" makes ");
    print_percent(&first->share);
    printf(" of the way from baseline to test; with it alone repaired, ");
    print_percent(&first->left);
    printf(" of the gap is left. Besides: ");
    print_figures(plan, verdict, 1, FIGURE_SHARE);
    putchar('.');
}

static void print_several(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    printf(verdict->word == WORD_OPEN ? " Several causes, and which of them is the first is open: "
                                      : " Several causes, in this order: ");
    print_figures(plan, verdict, 0, FIGURE_SHARE);
    printf(" of the way from baseline to test. With one alone repaired, this much of the gap is "
           "left: ");
    print_figures(plan, verdict, 0, FIGURE_LEFT);
    putchar('.');
}

/* Without shares the word rests on what each factor does alone and what its repair leaves, or on
 * equality only. */
static void print_without_shares(const struct ablate_plan *plan,
                                 const struct ablate_verdict *verdict) {
    uint32_t repairs = 0;
    for (uint32_t i = 0; i < verdict->factor_count; i++) {
        if (verdict->factors[i].left_equal != 1 || verdict->floor != ABLATE_FLOOR_EXACT) continue;
        printf("%s%s",
               repairs == 0 ? " With one factor repaired, the test arm equals the baseline: "
                            : ", ",
               name_of(plan, &verdict->factors[i]));
        repairs++;
    }
    printf("%s", repairs > 0 ? "." : " Which factor makes how much of it is not known.");
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
        printf(" Causes oppose each other: of the way from baseline to test ");
        print_figures(plan, verdict, 0, FIGURE_SHARE);
        printf(". Repairing one alone leaves ");
        print_figures(plan, verdict, 0, FIGURE_LEFT);
        printf(" of the gap.");
        break;
    case WORD_TOGETHER:
    case WORD_EACH:
        printf(verdict->word == WORD_TOGETHER
                   ? " Only together do these causes open the gap; alone each opens: "
                   : " Each of several causes is enough by itself; alone they open: ");
        print_figures(plan, verdict, 0, FIGURE_ALONE);
        printf(" of it. Repairing one alone leaves ");
        print_figures(plan, verdict, 0, FIGURE_LEFT);
        printf(verdict->word == WORD_EACH ? ": repair all." : ".");
        break;
    case WORD_NEARLY:
        printf(" The causes nearly cancel: alone they go this many times the arms' distance: ");
        for (uint32_t i = 0; i < in_words(verdict); i++)
            printf("%s%s %.4g", i == 0 ? "" : ", ", name_of(plan, &verdict->factors[i]),
                   verdict->factors[i].alone.value);
        printf("; percentages of so small a rest would mean nothing.");
        break;
    case WORD_CANCEL:
        printf(" The causes cancel exactly: all together they lead to the baseline's end point, "
               "and alone some lead elsewhere.");
        break;
    case WORD_EQUAL:
        printf(" No factor moved anything: the difference of the arms is in none of them.");
        break;
    default:
        print_without_shares(plan, verdict);
    }
}

static void print_headline(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    printf("%s: ", plan->file->name);
    switch (verdict->kind) {
    case ABLATE_UNTESTABLE:
        printf("UNTESTABLE: %s.", verdict->reason);
        break;
    case ABLATE_INSIDE:
        if (verdict->floor == ABLATE_FLOOR_EXACT)
            printf("IDENTICAL: baseline and test left equal %s%s.",
                   ablate_read_names[verdict->measure],
                   verdict->measure == READ_LOG ? " (losses, as printed)" : "");
        else
            printf("INSIDE THE FLOOR: the arms are no further apart than repeats of one arm.");
        break;
    default:
        printf("OUTSIDE THE FLOOR.");
        print_word(plan, verdict);
        if (verdict->closure == ABLATE_CLOSURE_OPEN)
            printf(" The factors are not all: something else differs between the commands.");
    }
    putchar('\n');
}

/* ---- rows ---- */

static void print_floor(const struct ablate_verdict *verdict) {
    if (verdict->floor == ABLATE_FLOOR_OPEN) return;
    printf("  floor    ");
    if (verdict->floor == ABLATE_FLOOR_EXACT) {
        printf("exact: %u runs of each arm, each in a process of its own, left equal %s\n",
               verdict->floor_runs, ablate_read_names[verdict->measure]);
        return;
    }
    printf("noisy: runs of one arm differ");
    if (!isnan(verdict->repeats)) printf(", by %.4g at most", verdict->repeats);
    if (!isnan(verdict->p))
        printf("; p = %.4g over all relabelings of %u and %u runs (least %.3g, alpha %g)",
               verdict->p, verdict->floor_runs, verdict->floor_runs, verdict->least,
               verdict->alpha);
    putchar('\n');
}

static void print_measure(const struct ablate_verdict *verdict) {
    if (!verdict->has_distance || isnan(verdict->distance)) {
        if (verdict->kind == ABLATE_OUTSIDE && !verdict->has_distance &&
            verdict->no_shares[0] == '\0')
            printf("  measure  %s: equal or not; nothing that a distance could be of\n",
                   ablate_read_names[verdict->measure]);
        return;
    }
    printf("  measure  ");
    if (verdict->by_loss)
        printf("the loss of update %" PRId64 ", |a-b| = %.6g\n", verdict->step, verdict->distance);
    else if (verdict->shape.tensors > 0)
        printf("weights: %zu tensors, %" PRIu64 " elements%s, |a-b| = %.6g\n",
               verdict->shape.tensors, verdict->shape.elements,
               verdict->shape.others > 0 ? " (integers beside them: equality only)" : "",
               verdict->distance);
    else
        printf("weights, |a-b| = %.6g\n", verdict->distance);
}

static void print_closure(const struct ablate_verdict *verdict) {
    static const char *const words[] = {
        [ABLATE_CLOSURE_ABSENT] = "",
        [ABLATE_CLOSURE_EXACT] = "exact: baseline with every factor of test equals test, your own "
                                 "second command, bit for bit",
        [ABLATE_CLOSURE_WITHIN] = "within the noise: baseline with every factor of test is no "
                                  "further from test, your own second command, than repeats are",
        [ABLATE_CLOSURE_OPEN] = "OPEN: baseline with every factor of test is not test, your own "
                                "second command: something differs that is no factor",
        [ABLATE_CLOSURE_RERUN] = "none: both arms come from one command, so what no factor holds "
                                 "cannot show; the rerun of test agrees",
        [ABLATE_CLOSURE_RERUN_DIFFERS] = "none: both arms come from one command, and its rerun of "
                                         "test came out otherwise",
    };
    if (verdict->closure == ABLATE_CLOSURE_ABSENT) return;
    printf("  closure  %s", words[verdict->closure]);
    if (verdict->open > 0.0) {
        printf(" (%.4g apart", verdict->open);
        if (verdict->distance > 0.0) printf(", %.3g of |a-b|", verdict->open / verdict->distance);
        putchar(')');
    }
    putchar('\n');
}

static void print_column(double value) {
    if (isnan(value))
        printf(" %9s  ", "-");
    else
        printf(" %9.3f %%", 100.0 * value);
}

static void print_equality(int equal) {
    printf(" %11s", equal < 0 ? "-" : equal ? "equal" : "differs");
}

static void print_table(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    const int figures = verdict->has_distance && isfinite(verdict->full) && verdict->full > 0.0;
    const int losses = verdict->step > 0 && !verdict->by_loss && isfinite(verdict->loss_gap);
    if (verdict->factor_count == 0) return;
    if (figures)
        printf("  shares   of the way from baseline to all factors, %.6g%s\n", verdict->full,
               verdict->floor == ABLATE_FLOOR_NOISY ? " with the noise of runs taken out" : "");
    else
        printf("  factors  against the baseline\n");
    printf("           %-20s", "");
    if (figures) printf(" %11s", "share");
    printf(" %11s %11s", "left", "alone");
    if (losses) printf(" %12s %12s", "loss left", "loss alone");
    putchar('\n');
    for (uint32_t i = 0; i < verdict->factor_count; i++) {
        const struct ablate_judged *of = &verdict->factors[i];
        printf("           %-20s", name_of(plan, of));
        if (figures) {
            print_column(of->share.value);
            print_column(of->left.value);
            print_column(of->alone.value);
        } else {
            print_equality(of->left_equal);
            print_equality(of->alone_equal);
        }
        if (losses) printf(" %+12.4g %+12.4g", of->loss_left, of->loss_alone);
        if (figures && of->share.high > of->share.low)
            printf("   +- %.2g, +- %.2g, +- %.2g", 50.0 * (of->share.high - of->share.low),
                   50.0 * (of->left.high - of->left.low), 50.0 * (of->alone.high - of->alone.low));
        putchar('\n');
    }
    if (losses)
        printf("           loss at update %" PRId64 ": all factors %+.4g\n", verdict->step,
               verdict->loss_gap);
    if (verdict->orders > 0)
        printf("           estimated from %u sampled orders of entry; intervals %g %% together\n",
               verdict->orders, 100.0 * verdict->confidence);
    else if (!isnan(verdict->confidence))
        printf("           %llu runs of each mixture; intervals at %g %%: jackknife over runs\n",
               (unsigned long long)plan->file->noisy_mixtures, 100.0 * verdict->confidence);
}

static void print_inert(const struct ablate_plan *plan, const struct ablate_verdict *verdict) {
    for (uint32_t i = 0; i < verdict->factor_count; i++) {
        const struct ablate_judged *of = &verdict->factors[i];
        if (of->inert)
            printf("  inert    %s: no evidence that it acted: with and without it %u of %u "
                   "mixtures are equal, bit for bit\n",
                   name_of(plan, of), of->equal, of->pairs);
    }
}

static void print_first(const char *who, const struct ablate_first *first) {
    if (first->update == 0) return;
    printf("  first    %s%supdate %" PRId64 "%s%s%s%s\n", who,
           who[0] == '\0' ? "" : " alone: ", first->update, first->phase[0] == '\0' ? "" : ", ",
           first->phase, first->tensor[0] == '\0' ? "" : ", ", first->tensor);
}

static void print_failed(const struct ablate_folder *folder, const struct ablate_result *results) {
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

void ablate_print(const struct ablate_folder *folder, const struct ablate_result *results,
                  const struct ablate_verdict *verdict) {
    uint32_t done = 0;
    print_headline(folder->plan, verdict);
    for (uint32_t i = 0; i < folder->plan->file->factor_count; i++) {
        const struct ablate_factor *factor = &folder->plan->file->factors[i];
        printf("  %s %s:", i == 0 ? "differs " : "        ", factor->name);
        if (factor->has_words && factor->level[0].count == 1 && factor->level[1].count == 1)
            printf(" %s -> %s", factor->level[0].words[0], factor->level[1].words[0]);
        else if (factor->has_words)
            printf(" %zu words -> %zu words", factor->level[0].count, factor->level[1].count);
        for (size_t v = 0; v < factor->variable_count; v++) {
            const struct ablate_variable *variable = &factor->variables[v];
            printf(" %s=%s -> %s", variable->name,
                   variable->value[0] == NULL ? "(not set)" : variable->value[0],
                   variable->value[1] == NULL ? "(not set)" : variable->value[1]);
        }
        for (size_t l = 0; l < factor->leaf_count; l++)
            printf("%s %s of %s", l == 0 ? "" : ",", factor->leaves[l].path,
                   folder->plan->file->files[factor->leaves[l].file].paths[1]);
        putchar('\n');
    }
    print_first("", &verdict->first);
    for (uint32_t i = 0; i < verdict->factor_count; i++)
        print_first(name_of(folder->plan, &verdict->factors[i]), &verdict->factors[i].first);
    print_floor(verdict);
    print_measure(verdict);
    print_closure(verdict);
    print_table(folder->plan, verdict);
    if (verdict->no_shares[0] != '\0') printf("  shares   untestable: %s\n", verdict->no_shares);
    print_inert(folder->plan, verdict);
    print_failed(folder, results);
    if (verdict->kind == ABLATE_INSIDE)
        puts("  untested causes that cancel exactly: mixtures are run where the arms differ");
    else
        puts("  untested other seeds and data (seed), other machines");
    for (uint32_t i = 0; i < folder->plan->run_count; i++)
        done += results[i].state == ABLATE_DONE;
    printf("  runs     %u done, in %s\n", done, folder->path);
}

/* ---- the plan ---- */

enum status ablate_print_plan(const struct ablate_plan *plan, const char *folder,
                              struct arena *arena) {
    const struct ablate_file *file = plan->file;
    const char *const *files;
    TRY(ablate_file_names(file, arena, &files));
    const uint32_t certain = plan->stage_runs[ABLATE_ARMS] + plan->stage_runs[ABLATE_MIXTURES];
    printf("%s: %u runs, %llu at a time", file->name, certain, (unsigned long long)file->slots);
    if (isfinite(file->timeout))
        printf(", each %g s at most: %g s at most", file->timeout,
               file->timeout * ceil((double)certain / (double)file->slots));
    printf("\n  %u of the arms; if they are equal, no more\n", plan->stage_runs[ABLATE_ARMS]);
    printf("  %u mixtures of %u factors%s\n", plan->stage_runs[ABLATE_MIXTURES], file->factor_count,
           plan->orders.count > 0 ? ", for shares from sampled orders of entry" : "");
    if (plan->stage_runs[ABLATE_ARMS_NOISE] + plan->stage_runs[ABLATE_MIXTURES_NOISE] > 0)
        printf("  only if repeats of an arm differ: %u more of the arms, %u more of mixtures\n",
               plan->stage_runs[ABLATE_ARMS_NOISE], plan->stage_runs[ABLATE_MIXTURES_NOISE]);
    printf("  closure  %s\n",
           file->has_test ? "proves that the factors are all: test is your own second command"
                          : "none: both arms come from one command (give test.command for one)");
    printf("  folder   %s; nothing has been run\n", folder);
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
            printf(" %s=%s", command.variables[v].name,
                   command.variables[v].value[0] == NULL ? "(not set)"
                                                         : command.variables[v].value[0]);
        printf(" %s\n", quoted);
    }
    return STATUS_OK;
}
