/* SPDX-License-Identifier: Apache-2.0
 * The table of what trainers take. Says nothing of what a name means here. */
#include "cli/init_values.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/macro.h"
#include "base/number.h"
#include "scenarios/suggest.h"
#include "scenarios/synonyms.h"

#define TRANSFORMERS "of transformers 5.24 or older"
#define TRL "of TRL 1.16 or older"

enum kind {
    KIND_BOOL,
    KIND_REAL,  /* a finite number, which can be below 0 */
    KIND_LEAST, /* a finite number >= 0 */
    KIND_SHARE, /* 0 <= x < 1 */
    KIND_LIMIT, /* a number, which can be infinite */
    KIND_WHOLE, /* a whole number */
    KIND_COUNT, /* a whole number >= 1 */
    KIND_SEED,  /* what numpy takes */
    KIND_SCHEDULE,
    KIND_OPTIMIZER,
    KIND_LOSS, /* one, or a list of several */
    KIND_LOSS_SFT,
    KIND_DIVERGENCE,
    KIND_MAP /* a map, or a text with its JSON */
};

static const char *const expected[] = {
    [KIND_BOOL] = "true or false",
    [KIND_REAL] = "a number",
    [KIND_LEAST] = "a number >= 0",
    [KIND_SHARE] = "a number >= 0 and < 1",
    [KIND_LIMIT] = "a number",
    [KIND_WHOLE] = "a whole number from -2^53 to 2^53",
    [KIND_COUNT] = "a whole number from 1 to 2^53",
    [KIND_SEED] = "a whole number from 0 to 2^32 - 1",
    [KIND_SCHEDULE] = "a schedule " TRANSFORMERS,
    [KIND_OPTIMIZER] = "an optimizer " TRANSFORMERS,
    [KIND_LOSS] = "a DPO loss " TRL,
    [KIND_LOSS_SFT] = "a loss of SFTConfig (nll, dft; with --task dpo one of DPOConfig)",
    [KIND_DIVERGENCE] = "an f-divergence " TRL,
    [KIND_MAP] = "a map, or a text with one in JSON",
};

static const char *const schedules[] = {"linear",
                                        "cosine",
                                        "cosine_with_restarts",
                                        "polynomial",
                                        "constant",
                                        "constant_with_warmup",
                                        "inverse_sqrt",
                                        "reduce_lr_on_plateau",
                                        "cosine_with_min_lr",
                                        "cosine_warmup_with_min_lr",
                                        "warmup_stable_decay",
                                        "greedy"};

static const char *const optimizers[] = {"adamw_torch",
                                         "adamw_torch_fused",
                                         "adamw_torch_xla",
                                         "adamw_torch_npu_fused",
                                         "adafactor",
                                         "adamw_anyprecision",
                                         "adamw_torch_4bit",
                                         "adamw_torch_8bit",
                                         "ademamix",
                                         "sgd",
                                         "adagrad",
                                         "adamw_bnb_8bit",
                                         "adamw_8bit",
                                         "ademamix_8bit",
                                         "lion_8bit",
                                         "lion_32bit",
                                         "paged_adamw_32bit",
                                         "paged_adamw_8bit",
                                         "paged_ademamix_32bit",
                                         "paged_ademamix_8bit",
                                         "paged_lion_32bit",
                                         "paged_lion_8bit",
                                         "rmsprop",
                                         "rmsprop_bnb",
                                         "rmsprop_bnb_8bit",
                                         "rmsprop_bnb_32bit",
                                         "galore_adamw",
                                         "galore_adamw_8bit",
                                         "galore_adafactor",
                                         "galore_adamw_layerwise",
                                         "galore_adamw_8bit_layerwise",
                                         "galore_adafactor_layerwise",
                                         "lomo",
                                         "adalomo",
                                         "grokadamw",
                                         "schedule_free_radam",
                                         "schedule_free_adamw",
                                         "schedule_free_sgd",
                                         "apollo_adamw",
                                         "apollo_adamw_layerwise",
                                         "stable_adamw",
                                         /* older */ "adamw_hf",
                                         "adamw_apex_fused"};

static const char *const losses[] = {
    "sigmoid",      "hinge",    "ipo",          "exo_pair",
    "nca_pair",     "robust",   "bco_pair",     "sppo_hard",
    "aot",          "apo_zero", "apo_down",     "discopop",
    "aot_unpaired", "sft",      "sigmoid_norm", /* older */ "kto_pair",
    "aot_pair"};

static const char *const losses_sft[] = {"nll", "dft", "chunked_nll"};

static const char *const divergences[] = {"reverse_kl", "forward_kl", "js_divergence",
                                          "alpha_divergence"};

static const struct {
    const char *const *names;
    size_t count;
    const char *key; /* ours, of which other programs' values are taken, too; NULL: none */
} lists[] = {
    [KIND_SCHEDULE] = {schedules, COUNT_OF(schedules), "schedule.name"},
    [KIND_OPTIMIZER] = {optimizers, COUNT_OF(optimizers), "optimizer.name"},
    [KIND_LOSS] = {losses, COUNT_OF(losses), NULL},
    [KIND_LOSS_SFT] = {losses_sft, COUNT_OF(losses_sft), NULL},
    [KIND_DIVERGENCE] = {divergences, COUNT_OF(divergences), NULL},
};

struct row {
    const char *name;
    enum kind kind;
    int optional; /* 1: null is a value of its own, which says "not set" */
    int dpo;      /* 1: a name of DPOConfig alone */
};

static const struct row table[] = {
    {"learning_rate", KIND_LEAST, 0, 0},
    {"lr_scheduler_type", KIND_SCHEDULE, 0, 0},
    {"lr_scheduler_kwargs", KIND_MAP, 1, 0},
    {"max_steps", KIND_WHOLE, 0, 0},
    {"num_train_epochs", KIND_LEAST, 0, 0},
    {"warmup_steps", KIND_LEAST, 0, 0},
    {"warmup_ratio", KIND_LEAST, 1, 0},
    {"optim", KIND_OPTIMIZER, 0, 0},
    {"weight_decay", KIND_LEAST, 0, 0},
    {"adam_beta1", KIND_SHARE, 0, 0},
    {"adam_beta2", KIND_SHARE, 0, 0},
    {"adam_epsilon", KIND_LEAST, 0, 0},
    {"max_grad_norm", KIND_LIMIT, 1, 0}, /* Trainer asked "is not None" before it asked "> 0" */
    {"per_device_train_batch_size", KIND_COUNT, 0, 0},
    {"gradient_accumulation_steps", KIND_COUNT, 0, 0},
    {"seed", KIND_SEED, 0, 0},
    {"data_seed", KIND_WHOLE, 1, 0},
    {"max_length", KIND_COUNT, 1, 0},
    {"bf16", KIND_BOOL, 1, 0},
    {"fp16", KIND_BOOL, 1, 0},
    {"tf32", KIND_BOOL, 1, 0},
    {"full_determinism", KIND_BOOL, 1, 0},
    {"average_tokens_across_devices", KIND_BOOL, 1, 0},
    {"padding_free", KIND_BOOL, 1, 0},
    {"packing", KIND_BOOL, 1, 0},
    {"beta", KIND_REAL, 0, 1},
    {"label_smoothing", KIND_REAL, 0, 1},
    {"discopop_tau", KIND_REAL, 0, 1},
    {"f_alpha_divergence_coef", KIND_REAL, 0, 1},
    {"f_divergence_type", KIND_DIVERGENCE, 0, 1},
    {"precompute_ref_log_probs", KIND_BOOL, 1, 1},
};

/* What a schedule of transformers takes as a number in lr_scheduler_kwargs. */
static const char *const schedule_numbers[] = {
    "num_cycles",  "power",          "lr_end",       "timescale",       "min_lr",
    "min_lr_rate", "warmup_lr_rate", "min_lr_ratio", "num_decay_steps", "num_stable_steps"};

enum turned init_turned(const struct yaml_node *node) {
    static const char *const plain[][3] = {{"off", "Off", "OFF"}, {"on", "On", "ON"}};
    static const char *const words[][5] = {{"no", "false", "f", "n", "0"},
                                           {"yes", "true", "t", "y", "1"}};
    if (node == NULL || node->kind == YAML_NULL) return TURNED_OFF;
    if (node->text == NULL) return TURNED_UNKNOWN;
    for (int on = 0; on < 2; on++) {
        for (size_t i = 0; node->kind == YAML_PLAIN && i < COUNT_OF(plain[on]); i++)
            if (strcmp(node->text, plain[on][i]) == 0) return (enum turned)on;
        for (size_t i = 0; i < COUNT_OF(words[on]); i++)
            if (strcasecmp(node->text, words[on][i]) == 0) return (enum turned)on;
    }
    return TURNED_UNKNOWN;
}

/* Reads a number, also an infinite one as YAML (.inf), JSON (Infinity) and Python (inf) spell it.
 * Returns 0 where the text is none. */
static int read_number(const char *text, double *out) {
    static const char *const infinite[] = {".inf", "inf", "infinity"};
    if (number_parse_real(text, NUMBER_FINITE, out) == STATUS_OK) return 1;
    const int minus = text[0] == '-', sign = minus || text[0] == '+';
    for (size_t i = 0; i < COUNT_OF(infinite); i++)
        if (strcasecmp(text + sign, infinite[i]) == 0) {
            *out = minus ? -INFINITY : INFINITY;
            return 1;
        }
    return 0;
}

int init_is_unclipped(const struct yaml_node *node) {
    double x;
    if (node == NULL || node->kind == YAML_NULL) return 1;
    return node->text != NULL && read_number(node->text, &x) && (x <= 0.0 || isinf(x));
}

static int is_number(const struct yaml_node *node, enum kind kind) {
    const double most = 0x1p53;
    double x;
    if (node->text == NULL || !read_number(node->text, &x)) return 0;
    if (isinf(x)) return kind == KIND_LIMIT;
    const int whole = fabs(x) <= most && x == (double)(int64_t)x;
    switch (kind) {
    case KIND_LEAST:
        return x >= 0.0;
    case KIND_SHARE:
        return x >= 0.0 && x < 1.0;
    case KIND_WHOLE:
        return whole;
    case KIND_COUNT:
        return whole && x >= 1.0;
    case KIND_SEED:
        return whole && x >= 0.0 && x < 0x1p32;
    default:
        return 1;
    }
}

static int is_kind(const struct yaml_node *node, enum kind kind) {
    switch (kind) {
    case KIND_BOOL:
        return init_turned(node) != TURNED_UNKNOWN;
    case KIND_MAP:
        return node->kind == YAML_MAP || (node->text != NULL && node->text[0] == '{');
    case KIND_SCHEDULE:
    case KIND_OPTIMIZER:
    case KIND_LOSS:
    case KIND_LOSS_SFT:
    case KIND_DIVERGENCE:
        if (node->text == NULL) return 0;
        for (size_t i = 0; i < lists[kind].count; i++)
            if (strcmp(node->text, lists[kind].names[i]) == 0) return 1;
        return lists[kind].key != NULL && synonym_of_value(lists[kind].key, node->text) != NULL;
    default:
        return is_number(node, kind);
    }
}

/* Fails where a value is not of a kind; `name` is what the message calls it. */
static enum status check(const struct yaml_node *node, const char *name, enum kind kind) {
    char shown[YAML_TEXT_SIZE], hint[SUGGEST_HINT_SIZE];
    struct suggestion nearest = {.word = node->text};
    if (is_kind(node, kind)) return STATUS_OK;
    if ((size_t)kind < COUNT_OF(lists) && lists[kind].names != NULL && node->text != NULL)
        for (size_t i = 0; i < lists[kind].count; i++)
            suggest_offer(&nearest, lists[kind].names[i]);
    return yaml_fail(node, "%s: expected %s, got %s%s", name, expected[kind],
                     yaml_describe(node, shown), suggest_hint(&nearest, hint));
}

/* Several losses are summed, and each is one that the trainer knows. */
static enum status check_losses(const struct yaml_node *node, enum kind kind) {
    if (node->kind != YAML_LIST || node->count == 0) return check(node, "loss_type", kind);
    for (const struct yaml_node *one = node->first; one != NULL; one = one->next)
        TRY(check(one, "loss_type", kind));
    return STATUS_OK;
}

static enum status check_row(const struct yaml_node *config, const struct yaml_node *node,
                             const struct row *row) {
    enum kind kind = row->kind;
    const struct yaml_node *steps = yaml_child(config, "max_steps");
    if (node->kind == YAML_LIST && node->count == 1) node = node->first;
    if (row->optional && node->kind == YAML_NULL) return STATUS_OK;
    /* With max_steps above 0 a trainer does not look at the epochs, which some set to -1 then. */
    if (strcmp(row->name, "num_train_epochs") == 0 && steps != NULL && is_kind(steps, KIND_COUNT))
        kind = KIND_REAL;
    return check(node, row->name, kind);
}

enum status init_schedule_own(struct arena *arena, const struct yaml_node *node,
                              const struct yaml_node **out) {
    char *label, name[SUGGEST_WORD_SIZE];
    struct yaml_node *root;
    if (node->kind == YAML_LIST && node->count == 1) node = node->first;
    *out = node;
    if (node->kind != YAML_MAP) {
        TRY(arena_format(arena, &label, "%s:%d:%d: lr_scheduler_kwargs", node->source, node->line,
                         node->column));
        TRY(yaml_parse(arena, label, 0, node->text, strlen(node->text), &root));
        if (root->kind != YAML_MAP) return check(node, "lr_scheduler_kwargs", KIND_MAP);
        *out = root;
    }
    for (const struct yaml_node *own = (*out)->first; own != NULL; own = own->next)
        for (size_t i = 0; i < COUNT_OF(schedule_numbers); i++)
            if (strcmp(own->key, schedule_numbers[i]) == 0 && own->kind != YAML_NULL) {
                snprintf(name, sizeof name, "lr_scheduler_kwargs.%s", own->key);
                TRY(check(own, name, KIND_REAL));
            }
    return STATUS_OK;
}

enum status init_check_values(const struct yaml_node *config, int dpo) {
    for (const struct yaml_node *node = config->first; node != NULL; node = node->next) {
        if (strcmp(node->key, "loss_type") == 0)
            TRY(check_losses(node, dpo ? KIND_LOSS : KIND_LOSS_SFT));
        for (size_t i = 0; i < COUNT_OF(table); i++)
            if (strcmp(table[i].name, node->key) == 0 && (dpo || !table[i].dpo))
                TRY(check_row(config, node, &table[i]));
    }
    return STATUS_OK;
}
