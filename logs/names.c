/* SPDX-License-Identifier: Apache-2.0
 * The table of spellings and the search in it. Reads no file.
 *
 * Invariant: the rows of one name stand by rank, and a spelling stands once. */
#include "logs/names.h"

#include <string.h>

static const struct log_known known[] = {
    {"loss", LOG_LOSS, 0, 0},
    {"lm loss", LOG_LOSS, 0, 0},                      /* Megatron */
    {"CE loss", LOG_LOSS, 0, 0},                      /* OLMo-core: train/CE loss */
    {"loss_metrics/global_avg_loss", LOG_LOSS, 0, 0}, /* torchtitan */
    {"train_loss", LOG_LOSS, 1, 0},                   /* open-instruct; Lightning */
    {"train_loss_step", LOG_LOSS, 1, 0},
    {"training_loss", LOG_LOSS, 1, 0},
    {"loss/train", LOG_LOSS, 1, 0},
    {"sft_loss", LOG_LOSS, 2, 0}, /* NeMo-RL */
    {"preference_loss", LOG_LOSS, 2, 0},
    {"train_loss_epoch", LOG_LOSS, 3, 0},
    {"lr_logged", LOG_LR_LOGGED, 0, 0},
    {"learning_rate", LOG_LR_LOGGED, 0, 0},
    {"learning-rate", LOG_LR_LOGGED, 0, 0},
    {"learning rate", LOG_LR_LOGGED, 0, 0},
    {"lr", LOG_LR_LOGGED, 0, 0},
    {"optim/LR (group 0)", LOG_LR_LOGGED, 1, 0}, /* OLMo-core, dpo.py */
    {"optim/LR", LOG_LR_LOGGED, 1, 0},
    {"lr_applied", LOG_LR_APPLIED, 0, 0},
    {"grad_norm", LOG_GRAD_NORM, 0, 0},
    {"grad-norm", LOG_GRAD_NORM, 0, 0},
    {"grad norm", LOG_GRAD_NORM, 0, 0},
    {"gradient_norm", LOG_GRAD_NORM, 0, 0},
    {"optim/total grad norm", LOG_GRAD_NORM, 0, 0},
    {"logps/chosen", LOG_LOGP_CHOSEN, 0, 0},
    {"logps_chosen", LOG_LOGP_CHOSEN, 0, 0},
    {"log_probs/chosen", LOG_LOGP_CHOSEN, 0, 0}, /* torchtune */
    {"logp_chosen", LOG_LOGP_CHOSEN, 0, 0},
    {"logps/rejected", LOG_LOGP_REJECTED, 0, 0},
    {"logps_rejected", LOG_LOGP_REJECTED, 0, 0},
    {"log_probs/rejected", LOG_LOGP_REJECTED, 0, 0},
    {"logp_rejected", LOG_LOGP_REJECTED, 0, 0},
    {"rewards/chosen", LOG_REWARD_CHOSEN, 0, 0},
    {"rewards_chosen", LOG_REWARD_CHOSEN, 0, 0},
    {"reward_chosen", LOG_REWARD_CHOSEN, 0, 0},
    {"rewards_chosen_mean", LOG_REWARD_CHOSEN, 0, 0}, /* NeMo-RL */
    {"rewards/rejected", LOG_REWARD_REJECTED, 0, 0},
    {"rewards_rejected", LOG_REWARD_REJECTED, 0, 0},
    {"reward_rejected", LOG_REWARD_REJECTED, 0, 0},
    {"rewards_rejected_mean", LOG_REWARD_REJECTED, 0, 0},
    {"rewards/margins", LOG_REWARD_MARGIN, 0, 0}, /* TRL, torchtune */
    {"rewards/margin", LOG_REWARD_MARGIN, 0, 0},  /* open-instruct */
    {"rewards_margin", LOG_REWARD_MARGIN, 0, 0},
    {"reward_margin", LOG_REWARD_MARGIN, 0, 0},
    {"rewards/accuracies", LOG_REWARD_ACCURACY, 0, 0},
    {"rewards/accuracy", LOG_REWARD_ACCURACY, 0, 0},
    {"rewards_accuracy", LOG_REWARD_ACCURACY, 0, 0},
    {"reward_accuracy", LOG_REWARD_ACCURACY, 0, 0},
    {"logits/chosen", LOG_LOGITS_CHOSEN, 0, 0},
    {"logits_chosen", LOG_LOGITS_CHOSEN, 0, 0},
    {"logits/rejected", LOG_LOGITS_REJECTED, 0, 0},
    {"logits_rejected", LOG_LOGITS_REJECTED, 0, 0},
    {"tokens", LOG_TOKENS, 0, 0},
    {"token_count", LOG_TOKENS, 0, 0},           /* dpo.py: train/token_count */
    {"global_valid_toks", LOG_TOKENS, 0, 0},     /* NeMo-RL */
    {"num_tokens", LOG_TOKENS, 1, 1},            /* TRL */
    {"num_input_tokens_seen", LOG_TOKENS, 1, 1}, /* HF */
    {"total_tokens", LOG_TOKENS, 1, 1},          /* LLaMA-Factory */
    {"consumed samples", LOG_SAMPLES, 0, 1},     /* Megatron */
    {"consumed_samples", LOG_SAMPLES, 0, 1},
    {"samples", LOG_SAMPLES, 1, 1},
    {"epoch", LOG_EPOCH, 0, 0},
    {"loss scale", LOG_LOSS_SCALE, 0, 0},
    {"loss-scale", LOG_LOSS_SCALE, 0, 0},
    {"loss_scale", LOG_LOSS_SCALE, 0, 0},
    {"skipped", LOG_SKIPPED, 0, 0},
    {"optim/step skipped", LOG_SKIPPED, 0, 0},           /* OLMo-core */
    {"number of skipped iterations", LOG_SKIPPED, 0, 0}, /* Megatron: since the last line */
    {"param_norm", LOG_PARAM_NORM, 0, 0},
    {"params norm", LOG_PARAM_NORM, 0, 0},
    {"params-norm", LOG_PARAM_NORM, 0, 0},
    {"global batch size", LOG_GLOBAL_BATCH, 0, 0},
    {"global_batch_size", LOG_GLOBAL_BATCH, 0, 0},
    {"global_batch", LOG_GLOBAL_BATCH, 0, 0},
    {"batch-size", LOG_GLOBAL_BATCH, 0, 0},
    {"total_steps", LOG_TOTAL_STEPS, 0, 0},
    {"max_steps", LOG_TOTAL_STEPS, 1, 0},
    {"eval_loss", LOG_EVAL_LOSS, 0, 0},
    {"eval/loss", LOG_EVAL_LOSS, 0, 0},
    {"val_loss", LOG_EVAL_LOSS, 0, 0},
    {"val/loss", LOG_EVAL_LOSS, 0, 0},
    {"valid_loss", LOG_EVAL_LOSS, 0, 0},
    {"validation/loss", LOG_EVAL_LOSS, 0, 0},
    {"validation loss", LOG_EVAL_LOSS, 1, 0},
    {"lm loss validation", LOG_EVAL_LOSS, 1, 0},
};

/* The learning rate carries the optimizer's name in torchtitan (lr/AdamW) and in Lightning's
 * monitor (lr-AdamW). */
static const struct log_known lr_of_optimizer = {"lr/<optimizer>", LOG_LR_LOGGED, 2, 0};

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static int starts(const char *text, size_t length, const char *word, size_t word_length) {
    if (length < word_length) return 0;
    for (size_t i = 0; i < word_length; i++)
        if (lower(text[i]) != lower(word[i])) return 0;
    return 1;
}

static const struct log_known *find(const char *source, size_t length) {
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (strlen(known[i].source) == length && starts(source, length, known[i].source, length))
            return &known[i];
    if (length > 3 && (starts(source, length, "lr/", 3) || starts(source, length, "lr-", 3)))
        return &lr_of_optimizer;
    return NULL;
}

const struct log_known *log_known_name(const char *source, size_t length) {
    static const char prefix[] = "train/";
    const size_t skip = sizeof prefix - 1;
    if (starts(source, length, prefix, skip)) return find(source + skip, length - skip);
    return find(source, length);
}

enum log_name log_name_by_text(const char *text) {
    for (size_t i = 1; i < LOG_NAMES; i++)
        if (strcmp(log_names[i].name, text) == 0) return (enum log_name)i;
    return LOG_OTHER;
}

int log_name_counts(int32_t name) {
    return name == LOG_TOKENS || name == LOG_SAMPLES || name == LOG_SKIPPED ||
           name == LOG_GLOBAL_BATCH || name == LOG_TOTAL_STEPS;
}
