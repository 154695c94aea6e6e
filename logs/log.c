/* SPDX-License-Identifier: Apache-2.0
 * The names of columns and the comparison of printed numbers. Reads no file.
 * Invariant: log_names has one row per enum log_name, in its order. */
#include "logs/log.h"

#include <string.h>

#include "base/real.h"

const struct log_name_row log_names[LOG_NAMES] = {
    [LOG_OTHER] = {"", "1", "not one of our quantities"},
    [LOG_LOSS] = {"loss", "nat", "training loss"},
    [LOG_LR_LOGGED] = {"lr_logged", "1", "learning rate as the log printed it"},
    [LOG_LR_APPLIED] = {"lr_applied", "1", "learning rate that the update used"},
    [LOG_GRAD_NORM] = {"grad_norm", "1", "gradient norm, as a rule before clipping"},
    [LOG_LOGP_CHOSEN] = {"logp_chosen", "nat", "mean log-probability of chosen completions"},
    [LOG_LOGP_REJECTED] = {"logp_rejected", "nat", "mean log-probability of rejected completions"},
    [LOG_REWARD_CHOSEN] = {"reward_chosen", "nat", "mean implicit reward of chosen completions"},
    [LOG_REWARD_REJECTED] = {"reward_rejected", "nat",
                             "mean implicit reward of rejected completions"},
    [LOG_REWARD_MARGIN] = {"reward_margin", "nat", "mean of chosen minus rejected reward"},
    [LOG_REWARD_ACCURACY] = {"reward_accuracy", "1", "share of pairs with a positive margin"},
    [LOG_LOGITS_CHOSEN] = {"logits_chosen", "1", "mean logit of chosen completions"},
    [LOG_LOGITS_REJECTED] = {"logits_rejected", "1", "mean logit of rejected completions"},
    [LOG_TOKENS] = {"tokens", "tokens", "tokens"},
    [LOG_SAMPLES] = {"samples", "samples", "samples consumed so far"},
    [LOG_EPOCH] = {"epoch", "1", "epoch, with its fraction"},
    [LOG_LOSS_SCALE] = {"loss_scale", "1", "loss scale"},
    [LOG_SKIPPED] = {"skipped", "1", "skipped updates"},
    [LOG_PARAM_NORM] = {"param_norm", "1", "norm of the parameters"},
    [LOG_GLOBAL_BATCH] = {"global_batch", "samples", "samples of the update"},
    [LOG_TOTAL_STEPS] = {"total_steps", "updates", "total of updates, as printed"},
    [LOG_EVAL_LOSS] = {"eval_loss", "nat", "loss of an evaluation"},
};

const struct log_column *log_column_of(const struct log *log, enum log_name name) {
    for (size_t i = 0; i < log->column_count; i++)
        if (log->columns[i].name == (int32_t)name) return &log->columns[i];
    return NULL;
}

const struct log_column *log_column_by_source(const struct log *log, const char *source) {
    for (size_t i = 0; i < log->column_count; i++)
        if (strcmp(log->columns[i].source, source) == 0) return &log->columns[i];
    return NULL;
}

enum log_order log_compare(double a, double qa, double b, double qb) {
    if (qa != qa || qb != qb) return LOG_MISSING;
    if (a != a || b != b) return a != a && b != b ? LOG_EQUAL : LOG_DIFFERENT;
    if (a == b) return qa == 0.0 && qb == 0.0 ? LOG_EQUAL : LOG_WITHIN;
    const double gap = a > b ? a - b : b - a;
    if (!(gap < real_inf_f64()))
        return LOG_DIFFERENT; /* one is infinite, and the other is not it */
    /* The texts were rounded to binary64 when they were read, and the subtraction rounds once more.
     * Each rounding is at most 2^-53 of the larger value, so 2^-50 of it covers them all and is
     * still far below any printed quantum. */
    const double size =
        (a < 0.0 ? -a : a) > (b < 0.0 ? -b : b) ? (a < 0.0 ? -a : a) : (b < 0.0 ? -b : b);
    /* Of whole numbers beyond binary64's the quantum is that rounding itself, and neighbours have
     * an exact difference. */
    const int whole = size >= 0x1p53 && qa <= 0x1p-51 * size && qb <= 0x1p-51 * size;
    const double slack = (qa == 0.0 && qb == 0.0) || whole ? 0.0 : 0x1p-50 * size;
    return gap <= 0.5 * qa + 0.5 * qb + slack ? LOG_WITHIN : LOG_DIFFERENT;
}

int log_is_every(const struct log *log, uint64_t every) {
    for (size_t i = 0; i < log->rows; i++)
        if (log->step[i] != 1 && (log->step[i] < 1 || (uint64_t)log->step[i] % every != 0))
            return 0;
    return 1;
}
