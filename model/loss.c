/* SPDX-License-Identifier: Apache-2.0
 * SFT: minus the sum of log-probs over all label tokens of the update. DPO: the pair losses of
 * model/preference.h, as a mean over the update's pairs.
 *
 * Divisors other than the update's (`loss.divisor`) are known before the first backward, too;
 * docs/DETERMINISM.md, law 5, has them in a table with the frameworks that divide so. Invariant:
 * backward and log are given the same terms. */
#include "model/loss.h"

#include "base/sum.h"
#include "kernels/racing_sum.h"
#include "kernels/shuffle.h"
#include "model/preference.h"
#include "scenarios/scenario.h"

double loss_sequence(const struct op_call *call, const struct batch *batch, uint32_t sequence,
                     const double *logp) {
    const double *const first = logp + batch->label_first[sequence];
    const uint32_t count = batch->label_length[sequence];
    return call->order_free ? exact_terms_f64(first, count)
                            : sum_chain_terms_f64_f64(0.0, first, count);
}

/* Continues a sum of the window. Where it has an exact sum, `total` is that sum rounded. */
static void go_on(struct exact_wide *exact, double *total, double term) {
    if (exact == NULL) {
        *total += term;
        return;
    }
    exact_wide_add(exact, term);
    *total = exact_wide_f64(exact);
}

/* Sums terms over samples, continuing `total`; in mode order-free it is 0 and the sum is exact. */
static double join_samples(const struct loss_call *call, double total, uint32_t count) {
    if (call->call->order_free) return exact_terms_f64(call->terms, count);
    if (race_loss(call->call)) return race_sum(call->call, total, call->terms, count);
    if (!shuffle_active(call->call, SUM_LOSS))
        return sum_chain_terms_f64_f64(total, call->terms, count);
    struct op_call op = *call->call;
    op.site = SITE_LOSS;
    struct shuffle shuffle = shuffle_open(&op, PASS_FORWARD);
    return total + shuffle_sum(&shuffle, call->terms, count, call->orders);
}

static uint32_t sequence_of(const struct batch *batch, uint32_t sample, uint32_t side) {
    return batch->canonical_sequence[sample * batch->sides + side];
}

static void set_coefficients(const struct batch *batch, uint32_t sequence, double value,
                             double *coefficient) {
    for (uint32_t i = 0; i < batch->label_length[sequence]; i++)
        coefficient[batch->label_first[sequence] + i] = value;
}

/* What is counted: label tokens for SFT, pairs for DPO. Tensor-parallel ranks with samples of their
 * own have equally many each, and divide by those. */
static double items(const struct config *config, uint64_t labels, uint64_t samples) {
    return (double)((config->task == TASK_SFT ? labels : samples) / config_fed_ranks(config));
}

/* The counts of samples that one number divides: those of the update, or those that leaked into it
 * from the epoch before. */
static struct sampler_window window_of(const struct sampler_plan *plan, int leaked) {
    if (leaked) return plan->leaked;
    return (struct sampler_window){plan->samples, plan->micros, plan->tokens, plan->labels,
                                   plan->opens};
}

static double window_items(const struct config *config, const struct sampler_plan *plan,
                           int leaked) {
    const struct sampler_window window = window_of(plan, leaked);
    const int unshifted = config->loss.divisor == DIVISOR_UPDATE_UNSHIFTED;
    return items(config, window.labels + (unshifted ? window.opens : 0), window.samples);
}

/* How many micro-batches a window is taken to have. A loop that leaks or underscales does not know
 * that its window is short, and counts those of a full one. */
static double window_micros(const struct config *config, const struct sampler_plan *plan) {
    if (config->batch.tail == TAIL_DROP || config->batch.tail == TAIL_KEEP)
        return (double)plan->micros;
    return (double)batch_micro_batches(config);
}

static double rank_items(const struct config *config, const struct sampler_plan *plan,
                         uint32_t sample) {
    uint64_t share = config->batch.size / config->loss.ranks;
    return items(config, plan->rank_labels[sample / share], share);
}

double loss_divisor_of(const struct config *config, const struct sampler_plan *plan, uint32_t index,
                       uint32_t sample) {
    const struct sampler_micro *micro = &plan->micro[index];
    const int leaked = index < plan->leaked.micros;
    double all = window_items(config, plan, leaked);
    double own = items(config, micro->labels, micro->samples);
    switch ((enum loss_divisor)config->loss.divisor) {
    case DIVISOR_MEAN_OF_MEANS:
        return own * window_micros(config, plan);
    case DIVISOR_SUM_OF_MEANS:
        return own;
    case DIVISOR_UPDATE_AND_MICROS:
        return all * window_micros(config, plan);
    case DIVISOR_MEAN_OF_RANKS:
        return rank_items(config, plan, micro->first + sample) * (double)config->loss.ranks;
    case DIVISOR_MEANS_OVER_SIZE:
        return own * (double)config->batch.micro;
    case DIVISOR_MICROS_BY_TOKENS:
        return own * (double)window_of(plan, leaked).tokens / (double)micro->tokens;
    case DIVISOR_UPDATE_UNSHIFTED:
    case DIVISOR_UPDATE:
    default:
        return all;
    }
}

static double divisor_of(const struct loss_call *call, uint32_t sample) {
    return call->undivided ? 1.0 : loss_divisor_of(call->config, call->plan, call->micro, sample);
}

/* What a window's loss is a sum of. Where one number divides everything, terms are summed raw and
 * divided when they are logged; otherwise quotients are summed, of micro-batches or of samples. */
enum sum_of { SUM_OF_RAW, SUM_OF_MICROS, SUM_OF_SAMPLES };

static enum sum_of handed_over(const struct config *config, const struct sampler_plan *plan) {
    int32_t divisor = config->loss.divisor;
    if (divisor == DIVISOR_MEAN_OF_MEANS || divisor == DIVISOR_SUM_OF_MEANS ||
        divisor == DIVISOR_MEANS_OVER_SIZE || divisor == DIVISOR_MICROS_BY_TOKENS)
        return SUM_OF_MICROS;
    if (divisor == DIVISOR_MEAN_OF_RANKS || plan->leaked.micros > 0) return SUM_OF_SAMPLES;
    return SUM_OF_RAW;
}

/* The exact sum behind a member of the window; NULL: it has none. */
#define EXACT(call, member) ((call)->sums == NULL ? NULL : &(call)->sums->member)

/* The samples whose loss is logged: of tensor-parallel ranks with samples of their own those of
 * rank 0, which come first. */
static uint32_t logged_samples(const struct batch *batch) {
    return batch->sample_count / batch->fed_ranks;
}

static void sft_terms(const struct loss_call *call, struct loss_window *window,
                      double *coefficient) {
    const struct batch *batch = call->batch;
    enum dtype loss = (enum dtype)call->config->numerics.loss;
    for (uint32_t s = 0; s < batch->sample_count; s++) {
        uint32_t sequence = sequence_of(batch, s, 0);
        double value = dtype_round(call->scale / divisor_of(call, s), loss);
        set_coefficients(batch, sequence, value, coefficient);
        if (s >= logged_samples(batch)) continue;
        call->terms[s] = -call->sequence_logp[sequence];
        go_on(EXACT(call, logp[0]), &window->logp[0], call->sequence_logp[sequence]);
    }
}

/* The weight of a pair in the logged means, 1 on average. Where the loss is a mean of
 * micro-batches, as in TRL and open-instruct, so are the metrics beside it. */
static double weight_of(const struct loss_call *call) {
    const int leaked = call->micro < call->plan->leaked.micros;
    const struct sampler_window window = window_of(call->plan, leaked);
    const struct sampler_micro *micro = &call->plan->micro[call->micro];
    const double share = (double)window.samples / (double)micro->samples;
    if (call->config->loss.divisor == DIVISOR_MEAN_OF_MEANS) return share / (double)window.micros;
    if (call->config->loss.divisor == DIVISOR_MICROS_BY_TOKENS)
        return share * (double)micro->tokens / (double)window.tokens;
    return 1.0;
}

static void note_pair(const struct loss_call *call, struct loss_window *window, double weight,
                      const struct preference_value *value) {
    for (int side = 0; side < 2; side++) {
        go_on(EXACT(call, logp[side]), &window->logp[side], value->logged[side] * weight);
        go_on(EXACT(call, reward[side]), &window->reward[side], value->reward[side] * weight);
    }
    window->correct += value->reward[0] > value->reward[1] ? weight : 0.0;
}

static void dpo_terms(const struct loss_call *call, struct loss_window *window,
                      double *coefficient) {
    const struct batch *batch = call->batch;
    const int referred = config_has_reference(call->config);
    enum dtype loss = (enum dtype)call->config->numerics.loss;
    for (uint32_t s = 0; s < batch->sample_count; s++) {
        struct preference_pair pair = {.reference = {0.0, 0.0}};
        struct preference_value value;
        for (uint32_t side = 0; side < 2; side++) {
            uint32_t sequence = sequence_of(batch, s, side);
            pair.logp[side] = call->sequence_logp[sequence];
            pair.count[side] = batch->label_length[sequence];
            if (referred) pair.reference[side] = call->reference[s][side];
        }
        preference_loss(call->config, &pair, &value);
        call->terms[s] = value.loss;
        for (uint32_t side = 0; side < 2; side++) {
            double slope = -value.slope[side] / divisor_of(call, s) * call->scale;
            set_coefficients(batch, sequence_of(batch, s, side), dtype_round(slope, loss),
                             coefficient);
        }
        note_pair(call, window, weight_of(call), &value);
    }
}

static void add_terms(const struct loss_call *call, struct loss_window *window) {
    const uint32_t count = logged_samples(call->batch);
    if (call->sums == NULL) {
        window->loss = join_samples(call, window->loss, count);
        return;
    }
    for (uint32_t s = 0; s < count; s++)
        go_on(&call->sums->loss, &window->loss, call->terms[s]);
}

void loss_micro(const struct loss_call *call, struct loss_window *window, double *coefficient,
                double *out_loss) {
    const struct batch *batch = call->batch;
    for (uint32_t i = 0; i < batch->sequence_count; i++)
        call->sequence_logp[i] = loss_sequence(call->call, batch, i, call->logp);
    if (call->config->task == TASK_SFT)
        sft_terms(call, window, coefficient);
    else
        dpo_terms(call, window, coefficient);
    const int logs_mean = call->config->loss.logged == LOGGED_MEAN;
    enum sum_of sum = handed_over(call->config, call->plan);
    if (logs_mean) add_terms(call, window);
    for (uint32_t s = 0; s < logged_samples(batch) && sum == SUM_OF_SAMPLES; s++)
        call->terms[s] /= divisor_of(call, s);
    double own = join_samples(call, 0.0, logged_samples(batch));
    *out_loss = sum == SUM_OF_SAMPLES ? own : own / divisor_of(call, 0);
    if (sum == SUM_OF_MICROS && !logs_mean)
        go_on(EXACT(call, loss), &window->loss, *out_loss);
    else if (!logs_mean)
        add_terms(call, window);
    window->sequences += logged_samples(batch);
    window->tokens += batch->label_count / batch->fed_ranks;
}

double loss_close(const struct config *config, const struct loss_window *window,
                  const struct sampler_plan *plan) {
    if (config->loss.logged == LOGGED_MEAN)
        return window->loss / (items(config, plan->labels, plan->samples) +
                               items(config, plan->leaked.labels, plan->leaked.samples));
    if (handed_over(config, plan) != SUM_OF_RAW) return window->loss;
    double all = window_items(config, plan, 0);
    if (config->loss.divisor == DIVISOR_UPDATE_AND_MICROS) all *= window_micros(config, plan);
    return window->loss / all;
}
