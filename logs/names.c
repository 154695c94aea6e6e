/* SPDX-License-Identifier: Apache-2.0
 * The table of spellings and the search in it. Reads no file.
 *
 * Invariant: the rows of one name stand by rank, and a spelling stands once, before a NULL. */
#include "logs/names.h"

#include <string.h>

/* Name, rank, whether it is a running total, spellings. */
#define SPELT(name, rank, cumulative, ...)                                                         \
    {                                                                                              \
        name, rank, cumulative, {                                                                  \
            __VA_ARGS__, NULL                                                                      \
        }                                                                                          \
    }

static const struct log_known known[] = {
    SPELT(LOG_LOSS, 0, 0, "loss", "lm loss" /* Megatron */,
          "CE loss" /* OLMo-core: train/CE loss */, "lm_loss" /* GPT-NeoX, nanotron */,
          "CrossEntropyLoss" /* OLMo */, "loss_metrics/global_avg_loss" /* torchtitan */),
    SPELT(LOG_LOSS, 1, 0, "train_loss" /* open-instruct; Lightning */, "train_loss_step",
          "training_loss", "training loss" /* the table of a notebook (HF) */, "loss/train",
          "loss train" /* LitGPT */, "Train loss" /* MLX-LM */),
    SPELT(LOG_LOSS, 2, 0, "sft_loss" /* NeMo-RL */, "preference_loss", "actor/pg_loss" /* verl */,
          "policy_loss" /* OpenRLHF */, "actor loss" /* DeepSpeed-Chat */, "pg_loss",
          "cross-entropy-loss" /* pith-train */, "total_loss" /* detectron2 */),
    SPELT(LOG_LOSS, 3, 0, "train_loss_epoch"),
    SPELT(LOG_LR_LOGGED, 0, 0, "lr_logged", "learning_rate", "learning-rate", "learning rate", "lr",
          "learn_rate" /* AUTOMATIC1111 */),
    SPELT(LOG_LR_LOGGED, 1, 0, "optim/LR (group 0)" /* OLMo-core, dpo.py */, "optim/LR",
          "actor/lr" /* verl */, "actor_lr" /* OpenRLHF */, "act_lr" /* its bar */),
    SPELT(LOG_LR_APPLIED, 0, 0, "lr_applied"),
    SPELT(LOG_GRAD_NORM, 0, 0, "grad_norm", "grad-norm", "grad norm", "gradient_norm",
          "gradient-norm", "gradient norm" /* fairseq2 */, "optim/total grad norm",
          "grad. norm" /* prime-rl */, "gnorm" /* fairseq */, "actor/grad_norm" /* verl */,
          "optim/total_grad_norm" /* OLMo */),
    SPELT(LOG_LOGP_CHOSEN, 0, 0, "logps/chosen", "logps_chosen", "log_probs/chosen" /* torchtune */,
          "logp_chosen"),
    SPELT(LOG_LOGP_REJECTED, 0, 0, "logps/rejected", "logps_rejected", "log_probs/rejected",
          "logp_rejected"),
    SPELT(LOG_REWARD_CHOSEN, 0, 0, "rewards/chosen", "rewards_chosen", "reward_chosen",
          "rewards_chosen_mean" /* NeMo-RL */),
    SPELT(LOG_REWARD_REJECTED, 0, 0, "rewards/rejected", "rewards_rejected", "reward_rejected",
          "rewards_rejected_mean"),
    SPELT(LOG_REWARD_MARGIN, 0, 0, "rewards/margins" /* TRL, torchtune */,
          "rewards/margin" /* open-instruct */, "rewards_margin", "reward_margin"),
    SPELT(LOG_REWARD_ACCURACY, 0, 0, "rewards/accuracies", "rewards/accuracy", "rewards_accuracy",
          "reward_accuracy"),
    SPELT(LOG_LOGITS_CHOSEN, 0, 0, "logits/chosen", "logits_chosen"),
    SPELT(LOG_LOGITS_REJECTED, 0, 0, "logits/rejected", "logits_rejected"),
    SPELT(LOG_TOKENS, 0, 0, "tokens", "token_count" /* dpo.py: train/token_count */,
          "global_valid_toks" /* NeMo-RL */),
    SPELT(LOG_TOKENS, 1, 1, "num_tokens" /* TRL */, "num_input_tokens_seen" /* HF */,
          "total_tokens" /* LLaMA-Factory */),
    SPELT(LOG_SAMPLES, 0, 1, "consumed samples" /* Megatron */, "consumed_samples"),
    SPELT(LOG_SAMPLES, 1, 1, "samples"),
    SPELT(LOG_EPOCH, 0, 0, "epoch"),
    SPELT(LOG_LOSS_SCALE, 0, 0, "loss scale", "loss-scale", "loss_scale"),
    SPELT(LOG_SKIPPED, 0, 0, "skipped", "optim/step skipped" /* OLMo-core */,
          "number of skipped iterations" /* Megatron: since the last line */),
    SPELT(LOG_PARAM_NORM, 0, 0, "param_norm", "params norm", "params-norm"),
    SPELT(LOG_GLOBAL_BATCH, 0, 0, "global batch size", "global_batch_size", "global_batch",
          "batch-size"),
    SPELT(LOG_TOTAL_STEPS, 0, 0, "total_steps"),
    SPELT(LOG_TOTAL_STEPS, 1, 0, "max_steps"),
    SPELT(LOG_EVAL_LOSS, 0, 0, "eval_loss", "eval/loss", "val_loss", "val loss", "val/loss",
          "valid_loss", "valid loss" /* Transformer-XL */, "validation/loss"),
    SPELT(LOG_EVAL_LOSS, 1, 0, "validation loss" /* also of a notebook */, "lm loss validation"),
};

/* The learning rate carries the optimizer's name in torchtitan (lr/AdamW) and in Lightning's
 * monitor (lr-AdamW). */
static const struct log_known lr_of_optimizer = {LOG_LR_LOGGED, 2, 0, {"lr/<optimizer>"}};

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
        for (const char *const *s = known[i].sources; *s != NULL; s++)
            if (strlen(*s) == length && starts(source, length, *s, length)) return &known[i];
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

static int is_among(const char *text, size_t length, const char *const *words) {
    for (; *words != NULL; words++)
        if (strlen(*words) == length && starts(text, length, *words, length)) return 1;
    return 0;
}

static const char *const of_data[] = {"split", "subset", "set", "phase", NULL};
static const char *const of_anything[] = {"mode", "stage", "type", "kind", "event", NULL};

int log_may_say_evaluation(const char *column, size_t length) {
    return is_among(column, length, of_data) || is_among(column, length, of_anything);
}

int log_says_evaluation(const char *column, size_t column_length, const char *text, size_t length) {
    static const char *const always[] = {"val",  "valid",      "validation", "validate",
                                         "eval", "evaluation", "evaluate",   NULL};
    static const char *const data[] = {"test", "testing", "dev", NULL};
    size_t word = 0;
    while (word < length && lower(text[word]) >= 'a' && lower(text[word]) <= 'z')
        word++;
    return (is_among(text, word, always) && log_may_say_evaluation(column, column_length)) ||
           (is_among(text, word, data) && is_among(column, column_length, of_data));
}

int log_name_counts(int32_t name) {
    return name == LOG_TOKENS || name == LOG_SAMPLES || name == LOG_SKIPPED ||
           name == LOG_GLOBAL_BATCH || name == LOG_TOTAL_STEPS;
}
