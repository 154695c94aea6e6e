/* SPDX-License-Identifier: Apache-2.0
 * The table of defaults of TRL's trainers. Says nothing of what a name means here. */
#include "cli/init_defaults.h"

#include <string.h>

#include "base/macro.h"

#define VALUE(words)                                                                               \
    { .kind = YAML_PLAIN, .source = "the defaults of " INIT_DEFAULTS_OF, .text = (words) }
#define NONE                                                                                       \
    { .kind = YAML_NULL }

static const struct {
    const char *name;
    struct yaml_node of[2]; /* of SFTConfig, of DPOConfig */
} table[] = {
    {"learning_rate", {VALUE("2e-05"), VALUE("1e-06")}},
    {"lr_scheduler_type", {VALUE("linear"), VALUE("linear")}},
    {"num_train_epochs", {VALUE("3.0"), VALUE("3.0")}},
    {"optim", {VALUE("adamw_torch_fused"), VALUE("adamw_torch_fused")}}, /* from torch 2.8 on */
    {"weight_decay", {VALUE("0.0"), VALUE("0.0")}},
    {"adam_beta1", {VALUE("0.9"), VALUE("0.9")}},
    {"adam_beta2", {VALUE("0.999"), VALUE("0.999")}},
    {"adam_epsilon", {VALUE("1e-08"), VALUE("1e-08")}},
    {"max_grad_norm", {VALUE("1.0"), VALUE("1.0")}},
    {"per_device_train_batch_size", {VALUE("8"), VALUE("8")}},
    {"gradient_accumulation_steps", {VALUE("1"), VALUE("1")}},
    {"average_tokens_across_devices", {VALUE("true"), VALUE("true")}},
    {"bf16", {VALUE("true"), VALUE("true")}}, /* where fp16 is off: __post_init__ of both */
    {"seed", {VALUE("42"), VALUE("42")}},
    {"max_length", {VALUE("1024"), VALUE("1024")}},
    {"beta", {NONE, VALUE("0.1")}},
    {"label_smoothing", {NONE, VALUE("0.0")}},
    {"discopop_tau", {NONE, VALUE("0.05")}},
    {"f_alpha_divergence_coef", {NONE, VALUE("0.5")}},
    {"loss_type", {VALUE("nll"), VALUE("sigmoid")}},
    {"f_divergence_type", {NONE, VALUE("reverse_kl")}},
    {"precompute_ref_log_probs", {NONE, VALUE("false")}},
};

const struct yaml_node *init_default(const char *name, int dpo) {
    for (size_t i = 0; i < COUNT_OF(table); i++)
        if (strcmp(table[i].name, name) == 0)
            return table[i].of[dpo].kind == YAML_NULL ? NULL : &table[i].of[dpo];
    return NULL;
}
