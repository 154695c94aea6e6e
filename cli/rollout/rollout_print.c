/* SPDX-License-Identifier: Apache-2.0
 * Lays out the judgement as text. Computes nothing but means. */
#include "cli/rollout/rollout_print.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/real.h"
#include "cli/plain_text.h"
#include "rollout/metrics.h"
#include "rollout/rewards.h"

static const char *const words[] = {"EQUAL", "WITHIN THE FLOOR", "OUTSIDE", "UNDECIDED"};

static void print_head(const struct rollout_judgement *j, FILE *out) {
    const struct rollout_measure *m = j->measure;
    const char *const *names = m->facts.names;
    int first = 1;
    plain_text_put(m->path, out);
    fprintf(out, ": %s: %s.\n", words[j->verdict], j->why);
    for (int i = 0; i < ROLLOUT_CAUSES; i++) {
        if (j->claim[i].state != ROLLOUT_NAMED) continue;
        fprintf(out, "  %-8s %s: %s", first ? "cause" : "", rollout_cause_names[i],
                j->claim[i].text);
        if (isfinite(j->claim[i].strength)) fprintf(out, " [%.3g floors]", j->claim[i].strength);
        fprintf(out, "\n");
        first = 0;
    }
    fprintf(out,
            "  read     %s, %" PRIu64 " sequences, %" PRIu64 " tokens; engine %s, trainer %s\n",
            m->facts.format, m->count[COUNT_SEQUENCES], m->count[COUNT_TOKENS],
            names[ROLLOUT_ENGINE], names[ROLLOUT_TRAINER]);
}

static void print_left_out(const struct rollout_measure *m, FILE *out) {
    static const struct {
        enum rollout_count count;
        const char *text;
    } rows[] = {{COUNT_MASKED, "tokens masked out"},
                {COUNT_OPEN, "tokens without a number on a side"},
                {COUNT_INFINITE, "tokens with an infinite log-prob"},
                {COUNT_PADDING, "tokens of exactly 0 on both sides at an end of their row, as "
                                "padding is (\"length\" would keep them)"},
                {COUNT_EMPTY, "sequences without a token that counts"}};
    int any = 0;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (m->count[rows[i].count] == 0) continue;
        fprintf(out, "%s%" PRIu64 " %s", any ? ", " : "  left out ", m->count[rows[i].count],
                rows[i].text);
        any = 1;
    }
    for (int i = 0; i < 2; i++) {
        if (m->facts.alone[i] == 0) continue;
        fprintf(out, "%s%" PRIu64 " sequences that only the %s file has",
                any ? ", " : "  left out ", m->facts.alone[i], i == 0 ? "first" : "second");
        any = 1;
    }
    if (any) fprintf(out, "\n");
    if (m->count[COUNT_ZEROS] > 0)
        fprintf(out,
                "  note     %" PRIu64 " tokens at an end of their sequence are exactly 0 on both "
                "sides: they are in the figures, and nothing is judged by them; a mask leaves "
                "padding out\n",
                m->count[COUNT_ZEROS]);
}

static void print_figures(const struct rollout_measure *m, FILE *out) {
    const double n = (double)m->count[COUNT_TOKENS], s = (double)m->count[COUNT_SEQUENCES];
    const double median = spread_quantile(&m->size, 0.5), high = spread_quantile(&m->size, 0.999);
    fprintf(out,
            "  exp|d|   mean %.6g, median %.6g, 99.9 %% %.6g, maximum %.6g; %.1f %% of the tokens "
            "equal\n",
            m->sum[TOTAL_FACTOR] / n, real_exp_f64(median), real_exp_f64(high),
            real_exp_f64(m->size.largest), 100.0 * (double)m->count[COUNT_EQUAL] / n);
    fprintf(out, "  d        mean %+.3g (trainer - engine), mean |d| %.3g, above 0 in %.1f %%\n",
            m->sum[TOTAL_D] / n, m->sum[TOTAL_ABSOLUTE] / n,
            100.0 * (double)m->count[COUNT_ABOVE] / n);
    fprintf(out,
            "  KL       of tokens k1 %+.3g, k3 %.3g; of sequences k1 %+.3g, k3 %.3g (engine || "
            "trainer)\n",
            -m->sum[TOTAL_D] / n, m->sum[TOTAL_K3_ENGINE] / n, -m->sum[TOTAL_D] / s,
            m->sum[TOTAL_SEQ_K3] / s);
    fprintf(out,
            "  weights  effective sample size %.4g of tokens, %.4g of sequences; mean %.6g, %.4g\n",
            rollout_ess_tokens(m), rollout_ess_sequences(m), m->sum[TOTAL_WEIGHT] / n,
            m->sum[TOTAL_SEQ_WEIGHT] / s);
    fprintf(out,
            "  clipped  TIS at 2: %.3g %% of tokens, %.3g %% of sequences; MIS outside [0.5, 2]: "
            "%.3g %%, %.3g %%\n",
            100.0 * (double)m->count[COUNT_W_OVER_2] / n,
            100.0 * (double)m->count[COUNT_SEQ_OVER_2] / s,
            100.0 * (double)(m->count[COUNT_W_OVER_2] + m->count[COUNT_W_UNDER_HALF]) / n,
            100.0 * (double)(m->count[COUNT_SEQ_OVER_2] + m->count[COUNT_SEQ_UNDER_HALF]) / s);
}

/* What stands in the place of a reward, and is none. */
static void print_odd_rewards(const struct rollout_measure *m, const char *before, FILE *out) {
    const uint64_t odd = m->count[COUNT_ODD_REWARDS];
    if (odd > 0)
        fprintf(out, "%s%" PRIu64 " have an object, a text or a list of lists in its place", before,
                odd);
}

static void print_rewards(const struct rollout_measure *m, FILE *out) {
    struct rollout_rewards r;
    if (!rollout_rewards_of(m, &r)) {
        if (m->count[COUNT_ODD_REWARDS] == 0) return;
        print_odd_rewards(m, "  reward   is no number: ", out);
        fprintf(out, "; --field reward=NAME names another\n");
        return;
    }
    fprintf(out, "  reward   mean %.4g as sampled, %.4g as the trainer would sample (%+.3g", r.mean,
            r.trainer_mean, r.difference);
    if (isfinite(r.error)) fprintf(out, ", standard error %.2g", r.error);
    fprintf(out, ")\n           %s of %" PRIu64 " sequences, effective sample size %.4g",
            m->facts.names[ROLLOUT_REWARD], m->count[COUNT_REWARDS], r.ess);
    if (isfinite(r.correlation)) fprintf(out, "; correlation with mean d %+.2f", r.correlation);
    if (m->count[COUNT_NO_REWARD] > 0)
        fprintf(out, "; %" PRIu64 " sequences have none", m->count[COUNT_NO_REWARD]);
    print_odd_rewards(m, ", of which ", out);
    fputc('\n', out);
}

static void print_floor(const struct rollout_judgement *j, FILE *out) {
    if (j->floor_count == 0) return;
    fprintf(out, "  floor    mean |d| %.3g for tokens as likely as these", j->floor);
    for (size_t i = 0; i < j->floor_count; i++) {
        fputs(i == 0 ? "; " : ", ", out);
        plain_text_put(j->floors[i]->path, out);
        fprintf(out, " (%" PRIu64 " tokens)", j->floors[i]->count[COUNT_TOKENS]);
    }
    fprintf(out, "\n           rank of sequences by %d tokens of each %+.1f standard deviations",
            1 << (2 * j->level), j->rank);
    if (isfinite(j->median_ratio) && isfinite(j->largest_ratio)) /* a floor of 0 has no ratios */
        fprintf(out, ", median %.3g of the floor's, largest %.3g", j->median_ratio,
                j->largest_ratio);
    fputc('\n', out);
}

static void print_signs(const struct rollout_judgement *j, FILE *out) {
    fprintf(
        out,
        "  signs    agree by probability %.2f, by id %.3f, by sequence %.3f, by position %.3f\n",
        j->purity, j->by_id, j->by_sequence, j->by_position);
}

static void print_open(const struct rollout_judgement *j, FILE *out) {
    for (int i = 0; i < ROLLOUT_CAUSES; i++)
        if (j->claim[i].state == ROLLOUT_OPEN)
            fprintf(out, "  open     %s: %s\n", rollout_cause_names[i], j->claim[i].text);
}

/* ---- slices ---- */

static void print_slice(const struct rollout_slice *slice, const char *name, FILE *out) {
    const double n = (double)slice->tokens;
    if (slice->tokens == 0) return;
    fprintf(out, "    %-22s %10" PRIu64 "  %+10.3g %10.3g %10.3g %10.6g %10.3g  %5.1f\n", name,
            slice->tokens, slice->d / n, slice->absolute / n, slice->k3 / n, slice->factor / n,
            slice->largest, 100.0 * (double)slice->above / n);
}

static void print_slice_head(const char *by, FILE *out) {
    fprintf(out, "  %-24s %10s  %10s %10s %10s %10s %10s  %5s\n", by, "tokens", "mean d",
            "mean |d|", "k3", "exp|d|", "largest", "d > 0");
}

static void octave_name(size_t i, char *text, size_t room) {
    if (i < 2)
        snprintf(text, room, "%zu", i);
    else
        snprintf(text, room, "%" PRIu64 " to %" PRIu64, (uint64_t)1 << (i - 1),
                 ((uint64_t)1 << i) - 1);
}

static void print_octaves(const struct rollout_slice *slices, const char *by, FILE *out) {
    char name[48];
    print_slice_head(by, out);
    for (size_t i = 0; i < SLICE_POSITIONS; i++) {
        octave_name(i, name, sizeof name);
        print_slice(&slices[i], name, out);
    }
}

static void print_slices(const struct rollout_measure *m, FILE *out) {
    static const char *const probability[SLICE_PROBABILITIES] = {
        "below 0.001", "0.001 to 0.01", "0.01 to 0.1", "0.1 to 0.5",
        "0.5 to 0.9",  "0.9 to 0.99",   "from 0.99"};
    char name[32];
    print_slice_head("by probability", out);
    for (size_t i = 0; i < SLICE_PROBABILITIES; i++)
        print_slice(&m->probability[i], probability[i], out);
    print_octaves(m->position, "by position", out);
    print_octaves(m->length, "by tokens of a sequence", out);
    if (m->batch.count > 0) print_slice_head("by batch", out);
    for (uint32_t i = 0; i < m->batch.count; i++) {
        snprintf(name, sizeof name, "%" PRId64, m->batch.slice[i].key);
        print_slice(&m->batch.slice[i], name, out);
    }
    if (m->batch.more > 0)
        fprintf(out, "    (%" PRIu64 " tokens of further batches)\n", m->batch.more);
    if (m->count[COUNT_REWARDS] > 0) print_slice_head("by reward", out);
    for (size_t i = 0; i < SLICE_REWARDS; i++)
        print_slice(&m->reward[i], rollout_reward_slices[i], out);
}

/* ---- other projects ---- */

/* A project gives one name to other formulas in time, so the heading says which commit is meant;
 * all rows of a project are of one. */
static void print_metrics(const struct rollout_measure *m, FILE *out) {
    const char *project = "";
    for (const struct rollout_metric *row = rollout_metrics; row->name != NULL; row++) {
        const char *const commit = strrchr(row->place, '@');
        if (strcmp(row->project, project) != 0)
            fprintf(out, "  %s, as of its commit %s\n", row->project,
                    commit != NULL ? commit + 1 : "(unknown)");
        project = row->project;
        fprintf(out, "    %-66s %-12.6g %s\n", row->name, row->value(m), row->formula);
    }
}

void rollout_print(const struct rollout_judgement *j, const struct rollout_shown *shown,
                   FILE *out) {
    print_head(j, out);
    print_left_out(j->measure, out);
    print_figures(j->measure, out);
    print_rewards(j->measure, out);
    print_floor(j, out);
    print_signs(j, out);
    print_open(j, out);
    if (shown->slices) print_slices(j->measure, out);
    if (shown->metrics) print_metrics(j->measure, out);
}
