/* SPDX-License-Identifier: Apache-2.0
 * Checks of how a preference training starts. Before the first update policy and reference are the
 * same model, so every margin is 0 and the sigmoid loss is ln 2, whatever beta is.
 * docs/FORENSICS.md lists the checks.
 *
 * Invariant: an objective without a reference, which starts anywhere, is no finding. */
#include "base/real.h"
#include "forensics/doctor/doctor_check.h"

#define LN2 0x1.62e42fefa39efp-1
/* Rewards are beta times differences of log-probabilities. Near -500 their spacing in binary32 is
 * 3e-5 (2^-15), so the loss may be off by that much without any fault. With 0,
 * tests/forensics/test_doctor.c fails on a healthy start. */
#define NOISE 3e-5

static int is_ln2(double value, double quantum) {
    const double gap = real_abs_f64(value - LN2);
    if (gap <= 0.5 * quantum + NOISE) return 1;
    /* ln 2 as bf16 and f16 have it */
    return real_abs_f64(value - 0.69140625) <= 0.5 * quantum ||
           real_abs_f64(value - 0.693359375) <= 0.5 * quantum;
}

static int is_zero(const struct series_point *point) {
    return real_abs_f64(point->value) <= 0.5 * point->quantum + 2.0 * NOISE;
}

/* Returns N >= 2 with value = N ln 2 within its precision, or 0 when there is none. A loss above
 * 1024 or one that is printed to a tenth only names no N. */
static uint64_t multiple_of_ln2(double value, double quantum) {
    if (!(value > 1.2) || value > 1024.0) return 0;
    const uint64_t n = (uint64_t)(value / LN2 + 0.5);
    const double gap = real_abs_f64(value - (double)n * LN2);
    return gap <= 0.5 * quantum + (double)n * NOISE && quantum < 0.1 ? n : 0;
}

/* Tells whether chosen and rejected rewards are both one multiple of their log-probabilities: an
 * objective without reference (SimPO, CPO, ORPO), which starts anywhere. The multiple, beta, may
 * vary by 2 %, which is what rewards of three printed digits do. */
static int without_reference(const struct doctor *doctor) {
    static const enum log_name pairs[2][2] = {{LOG_REWARD_CHOSEN, LOG_LOGP_CHOSEN},
                                              {LOG_REWARD_REJECTED, LOG_LOGP_REJECTED}};
    double low = 0.0, high = 0.0;
    size_t count = 0;
    for (size_t side = 0; side < 2; side++)
        for (size_t i = 0; i < doctor->series[pairs[side][0]].count && i < 20; i++) {
            const struct series_point *reward = &doctor->series[pairs[side][0]].points[i];
            const struct series_point *logp =
                series_in_row(&doctor->series[pairs[side][1]], reward->row);
            if (logp == NULL || !(real_abs_f64(logp->value) > 0.0)) continue;
            const double ratio = reward->value / logp->value;
            low = count == 0 || ratio < low ? ratio : low;
            high = count == 0 || ratio > high ? ratio : high;
            count++;
        }
    return count >= 2 && low > 0.0 && high < 1.02 * low;
}

static const struct series_point *first_margin(const struct doctor *doctor, size_t row,
                                               enum log_name *name) {
    static const enum log_name names[] = {LOG_REWARD_MARGIN, LOG_REWARD_CHOSEN,
                                          LOG_REWARD_REJECTED};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const struct series_point *point = series_in_row(&doctor->series[names[i]], row);
        if (point != NULL) {
            *name = names[i];
            return point;
        }
    }
    return NULL;
}

static enum status report_multiple(struct doctor *doctor, const struct series_point *loss,
                                   uint64_t n) {
    const struct doctor_options *options = doctor->options;
    const int accumulated = options->accumulate == n && options->processes != n;
    const int known = options->accumulate == n || options->processes == n;
    /* TRL's bco_pair and nca_pair start at 2 ln 2 (run: trl 1.16.0). */
    const int innocent = n == 2;
    const enum doctor_confidence sure = known      ? innocent ? DOCTOR_LIKELY : DOCTOR_CERTAIN
                                        : innocent ? DOCTOR_POSSIBLE
                                                   : DOCTOR_LIKELY;
    TRY(doctor_found(
        doctor, accumulated ? "num_items_double_scale" : "loss_summed_over_ranks", sure, loss->row,
        "The first loss is %llu times ln 2. Before the first update that of sigmoid "
        "DPO is ln 2, whatever beta is: it was summed over %llu %s instead of averaged.",
        (unsigned long long)n, (unsigned long long)n,
        accumulated ? "micro-batches"
        : known     ? "processes"
                    : "processes or micro-batches"));
    TRY(doctor_evidence_column(doctor, LOG_LOSS, loss));
    TRY(doctor_evidence(doctor, "%llu ln 2 = %s", (unsigned long long)n,
                        word_about((double)n * LN2).text));
    return doctor_explain(
        doctor,
        innocent ? "the losses bco_pair and nca_pair of TRL start at 2 ln 2, too"
        : known  ? "the factor is the number that was given"
                 : "a whole multiple of ln 2 within the printed precision is no chance, but "
                   "whether only the print or the gradient too is multiplied the loss does "
                   "not say",
        "Compare the gradient norm with that of one process without accumulation: if it "
        "has the factor too, the LR in effect is wrong, else only the print. "
        "--processes and --accumulate tell the two apart.");
}

static enum status report_mismatch(struct doctor *doctor, const struct series_point *loss,
                                   enum log_name name, const struct series_point *margin) {
    const double gap = loss->value - LN2;
    TRY(doctor_found(doctor, "ref_batch_shape", margin != NULL ? DOCTOR_LIKELY : DOCTOR_POSSIBLE,
                     loss->row,
                     "The first loss is not ln 2 (0.693147): policy and reference already differ "
                     "before the first update, by %s in the loss.",
                     word_about(gap).text));
    TRY(doctor_evidence_column(doctor, LOG_LOSS, loss));
    if (margin != NULL) TRY(doctor_evidence_column(doctor, name, margin));
    return doctor_explain(
        doctor,
        margin != NULL
            ? "loss and rewards agree that the two forward passes differ; which of "
              "batch shape, dtype, dropout, tokenisation or a wrong reference makes it "
              "the log does not say"
            : "a loss other than sigmoid DPO, or added terms, would start elsewhere, too",
        "Compute the reference with the same batch shape, dtype and padding as the "
        "policy, without dropout, and look at the first margin again; in float32 a "
        "difference of batch shape vanishes.");
}

/* Rewards are beta times what policy and reference differ by. Kernels, dtypes and padding move a
 * log-probability by far less than a hundredth of itself (0.1 % in bf16 over 500 tokens), and beta
 * is at most 1, so rewards beyond that are those of another model. */
static int other_reference(const struct doctor *doctor, size_t row) {
    static const enum log_name pairs[2][2] = {{LOG_REWARD_CHOSEN, LOG_LOGP_CHOSEN},
                                              {LOG_REWARD_REJECTED, LOG_LOGP_REJECTED}};
    int other = 0;
    for (size_t side = 0; side < 2; side++) {
        const struct series_point *reward = series_in_row(&doctor->series[pairs[side][0]], row);
        const struct series_point *logp = series_in_row(&doctor->series[pairs[side][1]], row);
        if (reward == NULL || logp == NULL || !(real_abs_f64(logp->value) > 0.0)) return 0;
        other |= real_abs_f64(reward->value) - reward->quantum > 0.01 * real_abs_f64(logp->value);
    }
    return other;
}

static enum status report_reference(struct doctor *doctor, const struct series_point *loss,
                                    enum log_name name, const struct series_point *margin) {
    TRY(doctor_found(doctor, "other_reference", DOCTOR_LIKELY, loss->row,
                     "Before the first update the rewards are far from 0: the reference is "
                     "another model than the one that training started from."));
    TRY(doctor_evidence_column(doctor, LOG_LOSS, loss));
    TRY(doctor_evidence_column(doctor, name, margin));
    TRY(doctor_evidence_column(doctor, LOG_REWARD_CHOSEN,
                               series_in_row(&doctor->series[LOG_REWARD_CHOSEN], loss->row)));
    TRY(doctor_evidence_column(doctor, LOG_LOGP_CHOSEN,
                               series_in_row(&doctor->series[LOG_LOGP_CHOSEN], loss->row)));
    return doctor_explain(doctor,
                          "a reward of over a hundredth of its log-probability is no rounding",
                          "See which checkpoint ref_model was loaded from, and whether an adapter "
                          "was active, or merged, while the reference was computed.");
}

/* How many times its rewards the first loss may be away from ln 2 (chosen). A margin m moves the
 * sigmoid loss by |m| at most, and the mean of few pairs whose rewards cancel is smaller than they
 * are. */
#define LOSS_REACH 10.0

/* Tells whether the rewards of a row cannot have made its loss by the sigmoid: the mean of -ln
 * sigmoid is never below that of the mean margin, and rewards near 0 leave the loss near ln 2. */
static int is_other_loss(const struct doctor *doctor, const struct series_point *loss) {
    static const enum log_name names[] = {LOG_REWARD_CHOSEN, LOG_REWARD_REJECTED,
                                          LOG_REWARD_MARGIN};
    const struct series_point *const margin =
        series_in_row(&doctor->series[LOG_REWARD_MARGIN], loss->row);
    double reach = 0.0;
    size_t count = 0;
    if (margin != NULL &&
        loss->value + 0.5 * loss->quantum <
            DOCTOR_MARGIN_BOUND * doctor_sigmoid_loss(margin->value) - 0.5 * margin->quantum)
        return 1;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const struct series_point *const point =
            series_in_row(&doctor->series[names[i]], loss->row);
        if (point == NULL) continue;
        reach += real_abs_f64(point->value) + point->quantum;
        count++;
    }
    return count > 0 &&
           real_abs_f64(loss->value - LN2) > LOSS_REACH * reach + loss->quantum + NOISE;
}

static enum status start_at_ln2(struct doctor *doctor) {
    const struct series_point *loss = series_at(&doctor->series[LOG_LOSS], 1);
    enum log_name name = LOG_REWARD_MARGIN;
    if (!doctor_is_preference(doctor))
        return doctor_untestable(doctor, "no column of rewards or of log-probabilities of pairs");
    if (doctor->log->step_guessed)
        return doctor_untestable(doctor, "the log prints no update numbers");
    if (loss == NULL) return doctor_untestable(doctor, "no loss at update 1");
    if (!real_finite_f64(loss->value) || is_ln2(loss->value, loss->quantum)) return STATUS_OK;
    if (without_reference(doctor))
        return doctor_untestable(doctor, "rewards are multiples of the log-probabilities: an "
                                         "objective without reference");
    const uint64_t n = multiple_of_ln2(loss->value, loss->quantum);
    const struct series_point *margin = first_margin(doctor, loss->row, &name);
    const int zero = margin != NULL && is_zero(margin);
    if (n != 0 && (margin == NULL || zero)) return report_multiple(doctor, loss, n);
    if (other_reference(doctor, loss->row)) return report_reference(doctor, loss, name, margin);
    if (zero)
        return doctor_untestable(doctor, "the first reward is 0 but the loss is not ln 2: another "
                                         "loss than sigmoid DPO, or added terms");
    if (is_other_loss(doctor, loss))
        return doctor_untestable(doctor, "the first rewards do not make the first loss by the "
                                         "sigmoid: another loss than that of DPO, or added terms");
    return report_mismatch(doctor, loss, name, margin);
}

/* ---- stuck ---- */

/* Returns how finely the rewards of a row say that they are 0: the coarsest quantum among them.
 * NOT_ZERO when one is not 0, NO_REWARD when there is none. Untouched weights give exactly 0. */
#define NOT_ZERO (-1.0)
#define NO_REWARD 1.0

static double zero_to(const struct doctor *doctor, size_t row) {
    static const enum log_name names[] = {LOG_REWARD_MARGIN, LOG_REWARD_CHOSEN,
                                          LOG_REWARD_REJECTED};
    double coarsest = NO_REWARD;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const struct series_point *point = series_in_row(&doctor->series[names[i]], row);
        if (point == NULL) continue;
        if (!(real_abs_f64(point->value) <= 0.5 * point->quantum + 1e-9)) return NOT_ZERO;
        if (coarsest >= NO_REWARD || point->quantum > coarsest) coarsest = point->quantum;
    }
    return coarsest;
}

struct stuck {
    size_t rows, driven; /* rows that stand at ln 2 from the start, and those of them whose LR is at
                            least half the peak */
    int moves;           /* 1: a reward is not 0, or the losses differ, so something is trained */
    int rewards;         /* 1: there are rewards, fine enough to say 0 */
    const struct series_point *last;
};

/* Tells whether the update of a row was skipped, where the log counts those of each row: it cannot
 * move a loss away from ln 2, whatever the LR is. */
static int is_skipped(const struct doctor *doctor, size_t row) {
    const struct log_column *const column = log_column_of(doctor->log, LOG_SKIPPED);
    return column != NULL && !column->cumulative && log_has(column, row) &&
           column->value[row] > 0.0;
}

static struct stuck find_stuck(const struct doctor *doctor) {
    const struct series *loss = &doctor->series[LOG_LOSS];
    const double peak = series_largest(&doctor->lr);
    struct stuck stuck = {0, 0, 0, 1, NULL};
    for (size_t i = 0; i < loss->count; i++) {
        const struct series_point *point = &loss->points[i];
        const struct series_point *lr = series_in_row(&doctor->lr, point->row);
        if (!is_ln2(point->value, point->quantum)) break;
        const double zero = zero_to(doctor, point->row);
        stuck.moves |= zero < 0.0 || point_differs(point, &loss->points[0]);
        stuck.rewards &= zero < 1e-6;
        stuck.rows++;
        stuck.last = point;
        /* an update shows in the row after it */
        stuck.driven += i > 0 && lr != NULL && lr->value >= 0.5 * peak && peak > 0.0 &&
                        !is_skipped(doctor, loss->points[i - 1].row);
    }
    return stuck;
}

static enum status report_stuck(struct doctor *doctor, const struct stuck *stuck) {
    const struct series *loss = &doctor->series[LOG_LOSS];
    const struct series_point *lr = series_in_row(&doctor->lr, stuck->last->row);
    TRY(doctor_found(doctor, "loss_stuck_at_ln2", stuck->rewards ? DOCTOR_LIKELY : DOCTOR_POSSIBLE,
                     loss->points[0].row,
                     "The loss stays at ln 2 for the first %zu rows, %zu of them at half of the "
                     "peak LR or more: the updates change nothing that the loss sees.",
                     stuck->rows, stuck->driven));
    TRY(doctor_evidence_column(doctor, LOG_LOSS, &loss->points[0]));
    TRY(doctor_evidence_column(doctor, LOG_LOSS, stuck->last));
    if (lr != NULL) TRY(doctor_evidence_lr(doctor, lr));
    if (stuck->rewards) TRY(doctor_evidence(doctor, "rewards are 0 in all these rows"));
    return doctor_explain(
        doctor,
        stuck->rewards ? "loss and rewards both say that policy and reference stay equal"
                       : "very small steps can hide below the printed digits",
        "Three causes: weights in bf16 whose updates are rounded away (doctor --dtype "
        "bf16 --master none), frozen weights, or a reference that is the policy itself "
        "(then the gradient norm is not 0 and the weights do move).");
}

/* How finely a column of rewards can show a 0. */
struct grain {
    double typical; /* the mean size of those that are not 0; 0: there is none */
    double step;    /* the least of those, where all are multiples of it; else 0 */
};

/* Multiples of the least reward are told from other numbers where it has so many printed steps, and
 * within so much of it. Chosen: log-probs in bf16 are exact multiples. */
#define STEP_PRINTED 16
#define STEP_NEAR 0.02

/* Rewards of log-probs in bf16 are multiples of a step, beta times the spacing there (a quarter for
 * log-probs of 64 to 128), and so come back to 0 while the model learns. */
static struct grain find_grain(const struct series *reward) {
    struct grain grain = {0.0, 0.0};
    double sum = 0.0, least = real_inf_f64(), coarsest = 0.0;
    size_t count = 0;
    for (size_t i = 0; i < reward->count; i++) {
        const double size = real_abs_f64(reward->points[i].value);
        if (reward->points[i].quantum > coarsest) coarsest = reward->points[i].quantum;
        if (!(size > 0.5 * reward->points[i].quantum) || !real_finite_f64(size)) continue;
        if (size < least) least = size;
        sum += size;
        count++;
    }
    if (count == 0) return grain;
    grain.typical = sum / (double)count;
    if (least < STEP_PRINTED * coarsest) return grain;
    for (size_t i = 0; i < reward->count; i++) {
        const double times = real_abs_f64(reward->points[i].value) / least;
        if (!(times < 0x1p31) || real_abs_f64(times - (double)(uint64_t)(times + 0.5)) > STEP_NEAR)
            return grain;
    }
    grain.step = least;
    return grain;
}

/* A 0 says something where it is printed, and can be told from its neighbours, so much more finely
 * than the rewards that are not 0. Chosen. */
#define FINER 16.0

static const enum log_name reward_names[] = {LOG_REWARD_MARGIN, LOG_REWARD_CHOSEN,
                                             LOG_REWARD_REJECTED};

/* What the rewards of a row are: all 0, and finely enough to say so; not all 0; or neither can be
 * told. */
enum rewards { REWARDS_UNTOLD, REWARDS_ZERO, REWARDS_APART };

static enum rewards rewards_of(const struct doctor *doctor, const struct grain *grains,
                               size_t row) {
    enum rewards all = REWARDS_UNTOLD;
    int coarse = 0;
    for (size_t n = 0; n < COUNT_OF(reward_names); n++) {
        const struct series_point *point = series_in_row(&doctor->series[reward_names[n]], row);
        if (point == NULL) continue;
        if (!(real_abs_f64(point->value) <= 0.5 * point->quantum)) return REWARDS_APART;
        const double step =
            grains[n].step > point->quantum ? grains[n].step : (double)point->quantum;
        coarse |= !(FINER * step <= grains[n].typical);
        all = REWARDS_ZERO;
    }
    return coarse ? REWARDS_UNTOLD : all;
}

/* Rows at half of the peak LR or more, behind the first whose rewards are not 0, and those of them
 * whose rewards are all exactly 0. */
struct still {
    size_t rows, driven;
    const struct series_point *last; /* the loss of the last such row */
};

static struct still find_still(const struct doctor *doctor) {
    const struct series *loss = &doctor->series[LOG_LOSS];
    const double peak = series_largest(&doctor->lr);
    struct grain grains[COUNT_OF(reward_names)];
    struct still still = {0, 0, NULL};
    int moved = 0;
    for (size_t n = 0; n < COUNT_OF(reward_names); n++)
        grains[n] = find_grain(&doctor->series[reward_names[n]]);
    for (size_t i = 0; i < loss->count; i++) {
        const struct series_point *point = &loss->points[i];
        const struct series_point *lr = series_in_row(&doctor->lr, point->row);
        const enum rewards rewards = rewards_of(doctor, grains, point->row);
        const int behind = moved;
        moved |= rewards == REWARDS_APART;
        if (!behind || lr == NULL || !(lr->value >= 0.5 * peak) || !(peak > 0.0)) continue;
        still.driven++;
        if (rewards != REWARDS_ZERO) continue;
        still.rows++;
        still.last = point;
    }
    return still;
}

/* Weights of bf16 that are near 0 have a fine spacing, so a few of them move while the others
 * stand. Of trainings in float32, rewards are never exactly 0 again once a weight has moved, also
 * at LRs of 5e-7 (docs/measurements/foreign-logs.md): 8 rows and more than half were chosen. */
static enum status mostly_stuck(struct doctor *doctor) {
    const struct still still = find_still(doctor);
    if (still.rows < 8 || 2 * still.rows <= still.driven) return STATUS_OK;
    TRY(doctor_found(doctor, "loss_stuck_at_ln2", DOCTOR_POSSIBLE, still.last->row,
                     "In %zu of %zu rows at half of the peak LR or more the rewards are exactly 0 "
                     "again, after they were apart: most updates change nothing that they show.",
                     still.rows, still.driven));
    TRY(doctor_evidence_column(doctor, LOG_LOSS, still.last));
    return doctor_explain(doctor,
                          "where weights move, rewards do not come back to exactly 0, unless the "
                          "log-probs that they are made of are too coarse to show it",
                          "See how many weights an update moves (twinstep readback on two "
                          "checkpoints): weights in bf16 whose updates are rounded away do not, "
                          "but for those near 0.");
}

/* Printed digits hide small steps: without exact zeros many rows are needed. 4 rows with 3 at full
 * LR, or 20 with coarse digits, were chosen: at the usual rates (5e-7) a loss of four digits may
 * stand still for a dozen updates. */
static enum status stuck_at_ln2(struct doctor *doctor) {
    if (!doctor_is_preference(doctor))
        return doctor_untestable(doctor, "no column of rewards or of log-probabilities of pairs");
    const struct stuck stuck = find_stuck(doctor);
    /* The loss of an update that moved much is not at ln 2, and ends the rows that are there. */
    if (stuck.moves || stuck.rows < 4 || stuck.driven < 3) return mostly_stuck(doctor);
    const double quantum = stuck.last->quantum;
    if (!stuck.rewards && quantum > 1e-6 && stuck.driven < 20)
        return doctor_untestable(doctor,
                                 "the loss stays at ln 2 within its printed digits, but "
                                 "%zu rows at full LR are too few to say that it is stuck",
                                 stuck.driven);
    return report_stuck(doctor, &stuck);
}

/* ---- the first update changed nothing ---- */

/* Tells whether the losses of updates 1 and 2 say the same to at least six digits (2e-6 relative).
 * Two losses of 0 say nothing: a policy gradient's are 0 whatever the weights are.
 * For a preference loss the weights did not move then; for any other loss they did not move and the
 * batch is the same. */
static int unmoved(const struct doctor *doctor, const struct series_point *a,
                   const struct series_point *b) {
    const double spacing = series_spacing(&doctor->series[LOG_LOSS], a->value, a->quantum);
    if (spacing > 2e-6 * real_abs_f64(a->value) || !(real_abs_f64(a->value) > 0.0)) return 0;
    if (point_differs(a, b)) return 0;
    return !doctor_is_preference(doctor) || zero_to(doctor, b->row) >= 0.0;
}

/* Counts how many of the explanations apply LR 0 at update 1, and how many do not. */
static void count_first_zero(const struct doctor *doctor, size_t *zero, size_t *other) {
    for (size_t i = 0; i < doctor->fits->count; i++)
        if (fit_applied(&doctor->fits->fits[i], 0, 1) <= 0.0)
            ++*zero;
        else
            ++*other;
}

static enum status report_unmoved(struct doctor *doctor, const struct series_point *a,
                                  const struct series_point *b) {
    const struct series_point *lr = series_in_row(&doctor->lr, a->row);
    size_t zero = 0, other = 0;
    count_first_zero(doctor, &zero, &other);
    const int printed_zero = lr != NULL && lr->value <= 0.0;
    /* The printed LR may be that of the next update, and update 1 may have been skipped. So only a
     * recorded applied LR says that it should have moved the weights. */
    if (doctor->lr_applied && lr != NULL && !printed_zero)
        TRY(doctor_found(doctor, "zero_lr_first_step", DOCTOR_LIKELY, a->row,
                         "Updates 1 and 2 have the same loss although the LR of update 1 was above "
                         "0: it changed nothing."));
    else
        TRY(doctor_remark(
            doctor, "zero_lr_first_step", a->row,
            "Updates 1 and 2 have the same loss: update 1 changed nothing%s.",
            printed_zero            ? ", its LR is 0"
            : zero > 0 && other > 0 ? "; of the contracts that explain the LR column "
                                      "this leaves those that apply LR 0 there"
            : other > 0 ? ", although every explanation found of the LR column applies more than 0 "
                          "there"
                        : ", so the LR it applied was 0, or it was skipped"));
    TRY(doctor_evidence_column(doctor, LOG_LOSS, a));
    TRY(doctor_evidence_column(doctor, LOG_LOSS, b));
    if (lr != NULL) TRY(doctor_evidence_lr(doctor, lr));
    if (zero > 0 && other > 0)
        TRY(doctor_evidence(doctor, "of the fitted explanations %zu apply LR 0 there, %zu do not",
                            zero, other));
    return doctor_explain(
        doctor,
        doctor->lr_applied && !printed_zero ? "the log records the LR that update 1 applied"
                                            : "usual where a warm-up starts at f(0) = 0",
        "Compare the weights before and after update 1. A skipped update (loss scale) "
        "or an LR that is set after the step would show the same.");
}

static enum status first_update_lost(struct doctor *doctor) {
    const struct series *loss = &doctor->series[LOG_LOSS];
    const struct series_point *a = series_at(loss, 1), *b = series_at(loss, 2);
    if (doctor->log->step_guessed)
        return doctor_untestable(doctor, "the log prints no update numbers");
    if (a == NULL || b == NULL) return doctor_untestable(doctor, "no losses at updates 1 and 2");
    if (series_spacing(loss, a->value, a->quantum) > 2e-6 * real_abs_f64(a->value))
        return doctor_untestable(doctor, "losses are printed with fewer than six digits");
    if (!unmoved(doctor, a, b) || doctor_lr_skips(doctor, 1)) return STATUS_OK;
    /* Where policy and reference stay equal, as where the reference is the policy itself, weights
     * may move and no loss shows it. */
    if (doctor_has(doctor, "loss_stuck_at_ln2"))
        return doctor_untestable(doctor, "the loss stays at ln 2 in later rows, too, so that of "
                                         "update 2 does not show what update 1 did");
    return report_unmoved(doctor, a, b);
}

const struct doctor_check doctor_dpo_checks[] = {
    {"start_at_ln2", "DPO loss of update 1 is ln 2", {LOG_LOSS}, start_at_ln2},
    {"loss_stuck_at_ln2", "DPO loss leaves ln 2", {LOG_LOSS, LOG_LR_LOGGED}, stuck_at_ln2},
    {"zero_lr_first_step", "update 1 changes the loss of update 2", {LOG_LOSS}, first_update_lost},
    {NULL, NULL, {LOG_OTHER}, NULL}};
