/* SPDX-License-Identifier: Apache-2.0
 * twinstep init: writes a scenario from the arguments of a trainer of transformers or TRL.
 *
 * Which key a name is comes from the one table of other programs' names (scenarios/synonyms.h), and
 * what a value can be from cli/init_values.h; here stands what must be computed of several values.
 * Each key is tried on the scenario so far and left out, with the reason, where it is refused.
 * Invariant: what is written is a scenario that loads, and nothing that was set is passed over in
 * silence. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cli/init_defaults.h"
#include "cli/init_values.h"
#include "cli/output.h"
#include "cli/verb.h"
#include "scenarios/synonyms.h"
#include "scenarios/textfile.h"
#include "scenarios/yaml.h"

enum { KEY_FROM_TRL = KEY_OWN, KEY_TASK, ITEMS_MAX = 64, NOTES_MAX = 1000, FEW = 20, LINE = 100 };

/* A config with so many names is the whole of a dataclass (of some 130), as its to_json_string()
 * writes it: what is not in it the trainer's version does not have. A file of settings holds what
 * somebody set, and the trainer's defaults stand for the rest. */
#define WHOLE 80

struct item {
    const char *key, *text, *from; /* "optimizer.lr", "1e-6", "learning_rate" */
};

struct making {
    struct cli *cli;
    const char *path, *task; /* task: "dpo" or "sft", NULL: as the names say */
    int dpo;                 /* 1: the task is dpo */
    int defaults;            /* 1: some value is the trainer's default */
    const struct yaml_node *config;
    struct item items[ITEMS_MAX];
    const char *overrides[ITEMS_MAX]; /* "common.optimizer.lr=1e-6", as --set takes them */
    size_t item_count;
    const char *notes[NOTES_MAX];
    size_t note_count;
    const char *used[NOTES_MAX]; /* names that were looked at */
    size_t used_count;
    const char *steps, *steps_why;
    const char *data_key; /* which names the data of the task */
};

/* Keeps a comment. Its control characters become blanks: a line end would end the comment. */
static enum status note(struct making *making, const char *text) {
    char *clean;
    TRY(arena_text(&making->cli->arena, text, strlen(text), &clean));
    for (char *c = clean; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 127) *c = ' ';
    if (making->note_count == NOTES_MAX)
        FAIL(STATUS_INPUT, "%s: error: expected at most %d names", making->path, NOTES_MAX);
    making->notes[making->note_count++] = clean;
    return STATUS_OK;
}

/* The trainer's default of a name that is not set; NULL: the name is set, or off by default. */
static const struct yaml_node *default_of(const struct making *making, const char *name) {
    const struct yaml_node *node = yaml_child(making->config, name);
    if (making->config->count >= WHOLE) return NULL;
    if (strcmp(name, "bf16") == 0) { /* null is its default: on where fp16 is off */
        if (init_turned(yaml_child(making->config, "fp16")) != TURNED_OFF) return NULL;
        if (node != NULL && node->kind == YAML_NULL) node = NULL;
    }
    return node != NULL ? NULL : init_default(name, making->dpo);
}

/* What stands behind a name in a comment where its value is a default. */
static const char *if_not_set(const struct making *making, const char *name) {
    return default_of(making, name) != NULL ? ", not set" : "";
}

/* The value of a name, or its default; NULL where it is null, empty, or off by default. A name that
 * is there counts as looked at. */
static const struct yaml_node *look(struct making *making, const char *name) {
    const struct yaml_node *node = yaml_child(making->config, name);
    const struct yaml_node *const otherwise = default_of(making, name);
    if (node != NULL && making->used_count < NOTES_MAX) making->used[making->used_count++] = name;
    making->defaults |= otherwise != NULL;
    if (node == NULL || otherwise != NULL) return otherwise;
    if (node->kind == YAML_LIST && node->count == 1) node = node->first;
    if (node->kind == YAML_NULL || (node->text != NULL && node->text[0] == '\0')) return NULL;
    return node;
}

static const char *text_of(struct making *making, const char *name) {
    const struct yaml_node *node = look(making, name);
    return node == NULL ? NULL : node->text;
}

static int is_true(struct making *making, const char *name) {
    return init_turned(look(making, name)) == TURNED_ON;
}

/* Whether a number is there and above 0; then *out is it. What is not above 0 trainers take for
 * "not set" where they take it at all (init_check_values). */
static int take_number(struct making *making, const char *name, double *out) {
    const struct yaml_node *node = look(making, name);
    *out = 0.0;
    return node != NULL && node->text != NULL &&
           number_parse_real(node->text, NUMBER_FINITE, out) == STATUS_OK && *out > 0.0;
}

/* Sets a key of `common` if the scenario still loads then; else notes why not. */
static enum status set_key(struct making *making, const char *key, const char *text,
                           const char *from) {
    static const char base[] = "twinstep: 1\n";
    struct arena trial = ARENA_EMPTY;
    struct scenario *scenario;
    char *override, *words;
    for (const char *c = text; *c != '\0'; c++)
        if ((unsigned char)*c < ' ') {
            TRY(arena_format(&making->cli->arena, &words, "%s: it holds control characters", from));
            return note(making, words);
        }
    if (making->item_count == ITEMS_MAX)
        FAIL(STATUS_INTERNAL, "init: more than %d keys", ITEMS_MAX);
    TRY(arena_format(&making->cli->arena, &override, "common.%s=%s", key, text));
    making->overrides[making->item_count] = override;
    const enum status status =
        scenario_parse(&trial, making->cli->schema, "init", base, sizeof base - 1,
                       making->overrides, making->item_count + 1, &scenario);
    arena_close(&trial);
    if (status == STATUS_OK) {
        TRY(arena_format(&making->cli->arena, &words, "%s%s", from, if_not_set(making, from)));
        making->items[making->item_count++] = (struct item){key, text, words};
        return STATUS_OK;
    }
    if (status != STATUS_INPUT) return status;
    if (default_of(making, from) != NULL) return STATUS_OK; /* nobody set it, and it does not fit */
    static const char *const before[] = {"error: ", "arm baseline: "};
    const char *why = status_text();
    for (size_t i = 0; i < COUNT_OF(before); i++) {
        const char *at = strstr(why, before[i]);
        if (at != NULL) why = at + strlen(before[i]);
    }
    TRY(arena_format(&making->cli->arena, &words, "%s: %s", from, why));
    return note(making, words);
}

/* Sets the key that the table has for a name to the name's own value. */
static enum status copy_key(struct making *making, const char *name) {
    const struct synonym *synonym = synonym_of_key(name);
    const char *text = text_of(making, name), *key = synonym == NULL ? name : synonym->key;
    return text == NULL ? STATUS_OK : set_key(making, key, text, name);
}

/* Copies a word and spells it as our values are: with - where TRL writes _. */
static enum status dashed(struct making *making, const char *text, char **out) {
    TRY(arena_text(&making->cli->arena, text, strlen(text), out));
    for (char *c = *out; *c != '\0'; c++)
        if (*c == '_') *c = '-';
    return STATUS_OK;
}

static enum status make_steps(struct making *making) {
    double steps, epochs;
    char *why;
    making->steps = "5";
    making->steps_why = "the config does not say how many";
    if (take_number(making, "max_steps", &steps)) {
        char *text;
        TRY(arena_format(&making->cli->arena, &text, "%.0f", steps));
        (void)look(making, "num_train_epochs"); /* max_steps overrides it */
        making->steps = steps <= FEW ? text : "20";
        making->steps_why =
            steps <= FEW ? "max_steps" : "the first of max_steps; see schedule.total";
        return steps <= FEW ? STATUS_OK : set_key(making, "schedule.total", text, "max_steps");
    }
    if (!take_number(making, "num_train_epochs", &epochs)) return STATUS_OK;
    TRY(arena_format(&making->cli->arena, &why,
                     "num_train_epochs: %s%s: write schedule.total = epochs x rows / batch.size, "
                     "rounded as the trainer does; without it the schedule ends after `steps`",
                     text_of(making, "num_train_epochs"), if_not_set(making, "num_train_epochs")));
    return note(making, why);
}

/* Sets the schedule's own parameters. What is min_lr_rate in lr_scheduler_kwargs is min_lr_ratio
 * here. */
static enum status make_schedule_own(struct making *making) {
    const struct yaml_node *own = look(making, "lr_scheduler_kwargs");
    char *key, *from, *words;
    if (own == NULL) return STATUS_OK;
    TRY(init_schedule_own(&making->cli->arena, own, &own));
    for (const struct yaml_node *node = own->first; node != NULL; node = node->next) {
        const char *name = strcmp(node->key, "min_lr_rate") == 0 ? "min_lr_ratio" : node->key;
        TRY(arena_format(&making->cli->arena, &key, "schedule.%s", name));
        TRY(arena_format(&making->cli->arena, &from, "lr_scheduler_kwargs.%s", node->key));
        if (node->text != NULL) {
            TRY(set_key(making, key, node->text, from));
        } else if (node->kind != YAML_NULL) {
            TRY(arena_format(&making->cli->arena, &words, "%s: it is neither a number nor a word",
                             from));
            TRY(note(making, words));
        }
    }
    return STATUS_OK;
}

static enum status make_schedule(struct making *making) {
    const char *name = text_of(making, "lr_scheduler_type");
    char *text;
    double warmup;
    TRY(copy_key(making, "learning_rate"));
    TRY(set_key(making, "schedule.contract", "hf", "the trainer; hf-4.50 and hf-4.51 are older"));
    TRY(make_steps(making));
    if (name != NULL) TRY(set_key(making, "schedule.name", name, "lr_scheduler_type"));
    TRY(make_schedule_own(making));
    if (take_number(making, "warmup_steps", &warmup) && warmup >= 1.0) {
        TRY(arena_format(&making->cli->arena, &text, "%.0f", trunc(warmup))); /* int() of Python */
        return set_key(making, "schedule.warmup", text, "warmup_steps");
    }
    if (warmup > 0.0) /* transformers 5: below 1 it is a share */
        return set_key(making, "schedule.warmup_ratio", text_of(making, "warmup_steps"),
                       "warmup_steps");
    return take_number(making, "warmup_ratio", &warmup) ? copy_key(making, "warmup_ratio")
                                                        : STATUS_OK;
}

/* Copies weight_decay, unless the optimizer is one whose decay is another law than ours. */
static enum status make_decay(struct making *making, const char *optim) {
    const struct yaml_node *node = look(making, "weight_decay");
    double decay = 0.0;
    const int known = node != NULL && node->text != NULL &&
                      number_parse_real(node->text, NUMBER_FINITE, &decay) == STATUS_OK;
    if (optim != NULL && strstr(optim, "lion_32bit") != NULL && known && decay != 0.0)
        return note(making, "weight_decay: bitsandbytes adds its product with the weight to the "
                            "gradient, and lion here takes it off the weight");
    return copy_key(making, "weight_decay");
}

/* Copies the factors of the moments and eps. A trainer gives them to Adafactor in no case: that one
 * has a first moment only where its beta1 is set, and nobody sets it. */
static enum status make_moments(struct making *making, const char *optimizer) {
    static const char *const names[] = {"adam_beta1", "adam_beta2", "adam_epsilon"};
    char *words;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (optimizer == NULL || strcmp(optimizer, "adafactor") != 0) {
            TRY(copy_key(making, names[i]));
        } else if (default_of(making, names[i]) == NULL && look(making, names[i]) != NULL) {
            TRY(arena_format(&making->cli->arena, &words,
                             "%s: a trainer does not give it to Adafactor", names[i]));
            TRY(note(making, words));
        }
    }
    return STATUS_OK;
}

/* A trainer clips where max_grad_norm is above 0; an infinite one clips nothing. */
static enum status make_clip(struct making *making) {
    const struct yaml_node *node = yaml_child(making->config, "max_grad_norm");
    if (node != NULL && node->kind == YAML_LIST && node->count == 1) node = node->first;
    if (node == NULL || !init_is_unclipped(node)) return copy_key(making, "max_grad_norm");
    (void)look(making, "max_grad_norm");
    return set_key(making, "clip.max_norm", "0", "max_grad_norm");
}

static enum status make_optimizer(struct making *making) {
    static const char variant[] = "with optimizer.variant: ";
    const char *name = text_of(making, "optim");
    if (name != NULL) {
        const struct synonym *synonym = synonym_of_value("optimizer.name", name);
        const size_t before = making->item_count;
        TRY(set_key(making, "optimizer.name", synonym == NULL ? name : synonym->value, "optim"));
        if (making->item_count == before)
            TRY(note(making, "optim: so adamw, the default here, stands in its place"));
        if (synonym != NULL && strncmp(synonym->how, variant, sizeof variant - 1) == 0)
            TRY(set_key(making, "optimizer.variant", synonym->how + sizeof variant - 1, "optim"));
    }
    TRY(make_decay(making, name));
    TRY(make_moments(making, name));
    TRY(make_clip(making));
    return set_key(making, "optimizer.decay", "hf", "Trainer.get_decay_parameter_names");
}

static enum status make_batch(struct making *making) {
    double micro, times;
    char *size, *text, *from;
    const int micro_set = default_of(making, "per_device_train_batch_size") == NULL;
    const int times_set = default_of(making, "gradient_accumulation_steps") == NULL;
    if (!take_number(making, "per_device_train_batch_size", &micro)) return STATUS_OK;
    if (!take_number(making, "gradient_accumulation_steps", &times)) times = 1.0;
    TRY(arena_format(&making->cli->arena, &size, "%.0f", micro * times));
    TRY(arena_format(&making->cli->arena, &text, "%.0f", micro));
    TRY(arena_format(
        &making->cli->arena, &from,
        "per_device_train_batch_size%s x gradient_accumulation_steps%s, of one process",
        micro_set ? "" : " (not set)", times_set ? "" : " (not set)"));
    TRY(set_key(making, "batch.size", size, from));
    return set_key(making, "batch.micro", text, "per_device_train_batch_size");
}

static enum status make_numerics(struct making *making) {
    if (is_true(making, "bf16"))
        TRY(set_key(making, "numerics.compute", "bf16",
                    default_of(making, "bf16") != NULL ? "bf16, not set; autocast"
                                                       : "bf16, autocast"));
    if (is_true(making, "fp16") && is_true(making, "bf16")) {
        TRY(note(making, "fp16: true: bf16 is true, too, and a trainer takes one of them"));
    } else if (is_true(making, "fp16")) {
        TRY(set_key(making, "numerics.compute", "f16", "fp16, autocast"));
        TRY(set_key(making, "scaler.kind", "dynamic", "fp16"));
    }
    if (is_true(making, "tf32")) TRY(set_key(making, "numerics.product", "tf32", "tf32"));
    return is_true(making, "full_determinism")
               ? set_key(making, "numerics.mode", "deterministic", "full_determinism")
               : STATUS_OK;
}

static enum status make_dpo(struct making *making) {
    static const char *const same[] = {"beta", "label_smoothing", "discopop_tau",
                                       "f_alpha_divergence_coef"};
    static const char *const words[] = {"loss_type", "f_divergence_type"};
    char *text;
    /* These come before the loss, because exo-pair is refused as long as its smoothing is 0. */
    for (size_t i = 0; i < COUNT_OF(same); i++)
        TRY(copy_key(making, same[i]));
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        const struct yaml_node *node = look(making, words[i]);
        if (node == NULL) continue;
        if (node->text == NULL) {
            TRY(arena_format(&making->cli->arena, &text,
                             "%s: a sum of several losses has no counterpart", words[i]));
            TRY(note(making, text));
            continue;
        }
        TRY(dashed(making, node->text, &text));
        TRY(set_key(making, synonym_of_key(words[i])->key, text, words[i]));
    }
    const struct yaml_node *const cached = look(making, "precompute_ref_log_probs");
    if (cached != NULL)
        TRY(set_key(making, "dpo.reference",
                    is_true(making, "precompute_ref_log_probs") ? "cached" : "live",
                    "precompute_ref_log_probs"));
    (void)look(making, "average_tokens_across_devices"); /* it moves losses over tokens only */
    return set_key(making, "loss.divisor", "mean-of-means", "TRL's DPO");
}

/* Names that only trainers of other kinds have. */
static enum status refuse_others(const struct making *making) {
    static const char *const names[] = {"num_generations", "desirable_weight", "cpo_alpha",
                                        "kl_coef", "center_rewards_coefficient"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (yaml_child(making->config, names[i]) != NULL)
            FAIL(STATUS_INPUT,
                 "%s: error: expected the arguments of Trainer, SFTTrainer or DPOTrainer, got %s, "
                 "which others have",
                 making->path, names[i]);
    return STATUS_OK;
}

static const char *first_of(const struct making *making, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (yaml_child(making->config, names[i]) != NULL) return names[i];
    return NULL;
}

/* A name that of these trainers DPOTrainer alone has; NULL where there is none. A file of settings
 * names only what somebody set, so that of a DPO training, too, may have none. */
static const char *name_of_dpo(const struct making *making) {
    static const char *const names[] = {"beta", "precompute_ref_log_probs", "f_divergence_type",
                                        "discopop_tau", "sync_ref_model"};
    return first_of(making, names, COUNT_OF(names));
}

/* The same for SFTTrainer. These are the fields of SFTConfig of TRL 1.16 that its DPOConfig and
 * TrainingArguments have not. */
static const char *name_of_sft(const struct making *making) {
    static const char *const names[] = {"packing",
                                        "packing_strategy",
                                        "eval_packing",
                                        "completion_only_loss",
                                        "assistant_only_loss",
                                        "dataset_text_field",
                                        "dataset_kwargs",
                                        "shuffle_dataset",
                                        "chat_template_path",
                                        "eos_token"};
    return first_of(making, names, COUNT_OF(names));
}

static enum status make_task(struct making *making) {
    const char *name = name_of_dpo(making), *const other = name_of_sft(making);
    if (making->task == NULL) {
        if (name != NULL && other != NULL)
            FAIL(STATUS_INPUT,
                 "%s: error: expected the arguments of one trainer, got %s, which DPOConfig alone "
                 "has, and %s, which SFTConfig alone has",
                 making->path, name, other);
        making->dpo = name != NULL;
        return set_key(making, "task", making->dpo ? "dpo" : "sft",
                       making->dpo ? "there are names of DPOConfig"
                                   : "no name is of DPOConfig alone; --task dpo, if it was DPO");
    }
    making->dpo = strcmp(making->task, "dpo") == 0;
    if (!making->dpo && strcmp(making->task, "sft") != 0)
        FAIL(STATUS_INPUT, "init: --task: expected dpo or sft, got %s", making->task);
    if (!making->dpo && name != NULL)
        FAIL(STATUS_INPUT, "%s: error: --task sft, but %s is of DPOConfig alone", making->path,
             name);
    if (making->dpo && other != NULL)
        FAIL(STATUS_INPUT, "%s: error: --task dpo, but %s is of SFTConfig alone", making->path,
             other);
    return set_key(making, "task", making->task, "--task");
}

static enum status make_sft(struct making *making) {
    const char *loss = text_of(making, "loss_type");
    char *text;
    if (is_true(making, "average_tokens_across_devices"))
        TRY(set_key(making, "loss.divisor", "update", "average_tokens_across_devices"));
    if (loss == NULL || strcmp(loss, "nll") == 0 || strcmp(loss, "chunked_nll") == 0)
        return STATUS_OK;
    TRY(arena_format(&making->cli->arena, &text, "loss_type: %s: sft has cross-entropy alone",
                     loss));
    return note(making, text);
}

/* Names whose usual value moves no bit of what is trained here. */
static void pass_over(struct making *making) {
    static const char *const names[] = {"gradient_checkpointing", "activation_checkpointing",
                                        "per_device_eval_batch_size"};
    const struct yaml_node *cut = yaml_child(making->config, "truncation_mode");
    for (size_t i = 0; i < COUNT_OF(names); i++)
        (void)look(making, names[i]);
    if (cut != NULL && cut->text != NULL && strcmp(cut->text, "keep_start") == 0)
        (void)look(making, "truncation_mode");
}

/* Without max_length the trainer cuts no row, and data.max_len has a default that does. */
static enum status make_length(struct making *making) {
    if (look(making, "max_length") != NULL) return copy_key(making, "max_length");
    return note(making,
                "max_length: none, so the trainer cuts no row; here data.max_len cuts: set it "
                "to the longest one");
}

static enum status make_all(struct making *making) {
    TRY(refuse_others(making));
    TRY(make_task(making));
    TRY(init_check_values(making->config, making->dpo));
    making->data_key = making->dpo ? "data.pairs" : "data.text";
    TRY(copy_key(making, "seed"));
    TRY(copy_key(making, "data_seed"));
    TRY(make_length(making));
    TRY(make_schedule(making));
    TRY(make_optimizer(making));
    TRY(make_batch(making));
    TRY(make_numerics(making));
    TRY(making->dpo ? make_dpo(making) : make_sft(making));
    if (is_true(making, "padding_free") || is_true(making, "packing"))
        TRY(set_key(making, "batch.padding", "packed", "padding_free or packing"));
    pass_over(making);
    return STATUS_OK;
}

/* ---- what is left ---- */

static int was_used(const struct making *making, const char *name) {
    for (size_t i = 0; i < making->used_count; i++)
        if (strcmp(making->used[i], name) == 0) return 1;
    return 0;
}

/* Whether a value says that something is off: null, false, empty, "no". */
static int is_off(const struct yaml_node *node) {
    static const char *const words[] = {"", "none", "0.0", "-1"};
    if (init_turned(node) == TURNED_OFF) return 1;
    if (node->text == NULL) return node->count == 0;
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strcmp(node->text, words[i]) == 0) return 1;
    return 0;
}

/* Whether a name says where things are written or how much is printed, which changes no training:
 * those of the table, and those that other versions of the trainers have. */
static int is_elsewhere(const char *name) {
    static const char *const starts[] = {"log_",    "logging_", "report_to", "run_name",
                                         "trackio", "hub_",     "push_to",   "save_"};
    const struct synonym *synonym = synonym_of_key(name);
    if (synonym != NULL && synonym_is_elsewhere(synonym)) return 1;
    for (size_t i = 0; i < COUNT_OF(starts); i++)
        if (strncmp(name, starts[i], strlen(starts[i])) == 0) return 1;
    return 0;
}

static int is_left(const struct making *making, const struct yaml_node *node) {
    return !was_used(making, node->key) && !is_off(node) && !is_elsewhere(node->key);
}

/* Why a name has no key: the table's words, "" where the name is in no table, NULL where it has. */
static const char *why_none(const struct yaml_node *node) {
    const struct synonym *synonym = synonym_of_key(node->key);
    return synonym == NULL ? "" : synonym->key == NULL ? synonym->how : NULL;
}

/* Notes all names from `node` on that have no key for the same reason as `node`, in one comment. */
static enum status note_none(struct making *making, const struct yaml_node *node) {
    const char *const why = why_none(node);
    char *text;
    TRY(arena_format(&making->cli->arena, &text, "no counterpart here: %s", node->key));
    for (const struct yaml_node *next = node->next; next != NULL; next = next->next) {
        const char *const other = is_left(making, next) ? why_none(next) : NULL;
        if (other != NULL && strcmp(other, why) == 0)
            TRY(arena_format(&making->cli->arena, &text, "%s, %s", text, next->key));
    }
    if (why[0] != '\0') TRY(arena_format(&making->cli->arena, &text, "%s (%s)", text, why));
    return note(making, text);
}

static enum status note_rest(struct making *making) {
    const char *noted[NOTES_MAX]; /* the reasons that have had their comment */
    size_t count = 0;
    for (const struct yaml_node *node = making->config->first; node != NULL; node = node->next) {
        char shown[YAML_TEXT_SIZE], hint[SYNONYM_HINT_SIZE], *text;
        if (!is_left(making, node)) continue;
        const char *const why = why_none(node);
        if (why != NULL) {
            size_t i = 0;
            while (i < count && strcmp(noted[i], why) != 0)
                i++;
            if (i < count) continue;
            TRY(note_none(making, node)); /* which fails where there are NOTES_MAX comments */
            noted[count++] = why;
            continue;
        }
        TRY(arena_format(&making->cli->arena, &text, "%s: %s%s", node->key,
                         node->text != NULL ? node->text : yaml_describe(node, shown),
                         synonym_hint(synonym_of_key(node->key), hint)));
        TRY(note(making, text));
    }
    return STATUS_OK;
}

/* ---- the file ---- */

/* Prints a comment wrapped at words. */
static void print_comment(FILE *out, const char *text) {
    size_t column = 0;
    for (const char *word = text; *word != '\0';) {
        const size_t length = strcspn(word, " ");
        if (column > 0 && column + 1 + length > LINE) {
            fputc('\n', out);
            column = 0;
        }
        column += (size_t)fprintf(out, "%s%.*s",
                                  column > 0     ? " "
                                  : word == text ? "# - "
                                                 : "#   ",
                                  (int)length, word);
        word += length;
        word += strspn(word, " ");
    }
    fputc('\n', out);
}

static size_t section_of(const char *key) {
    const char *dot = strchr(key, '.');
    return dot == NULL ? 0 : (size_t)(dot - key);
}

static void print_line(FILE *out, int indent, const char *key, const char *text, const char *from) {
    const int width = fprintf(out, "%*s%s: %s", indent, "", key, text);
    fprintf(out, "%*s# %s\n", width < 38 ? 38 - width : 2, "", from);
}

static void print_items(FILE *out, const struct making *making) {
    unsigned char done[ITEMS_MAX] = {0};
    for (size_t i = 0; i < making->item_count; i++) {
        const size_t section = section_of(making->items[i].key);
        if (done[i]) continue;
        if (section == 0) {
            print_line(out, 2, making->items[i].key, making->items[i].text, making->items[i].from);
            continue;
        }
        fprintf(out, "  %.*s:\n", (int)section, making->items[i].key);
        for (size_t j = i; j < making->item_count; j++) {
            const struct item *item = &making->items[j];
            if (section_of(item->key) != section ||
                strncmp(item->key, making->items[i].key, section) != 0)
                continue;
            print_line(out, 4, item->key + section + 1, item->text, item->from);
            done[j] = 1;
        }
    }
}

static void print_scenario(FILE *out, const struct making *making) {
    fprintf(out,
            "# From the arguments of a trainer of transformers or TRL, by twinstep init. Data and "
            "model\n"
            "# are the built-in ones. Set %s first: rows that nobody chose may not fit\n"
            "# data.max_len. Then set model.from.\n",
            making->data_key);
    if (making->defaults)
        fprintf(out,
                "# \"not set\" marks defaults of %s in " INIT_DEFAULTS_OF
                ", which another version, or\n"
                "# a trainer that is not TRL's, may have otherwise.\n",
                making->dpo ? "DPOConfig" : "SFTConfig");
    fputs("twinstep: 1\n", out);
    print_line(out, 0, "steps", making->steps, making->steps_why);
    fputs("common:\n", out);
    print_items(out, making);
    fputs("arms:\n"
          "  baseline: {}\n"
          "  test: {}                            # write here what differs\n",
          out);
    if (making->note_count > 0) fputs("# Not translated:\n", out);
    for (size_t i = 0; i < making->note_count; i++)
        print_comment(out, making->notes[i]);
}

static enum status read_config(struct making *making) {
    char *text;
    size_t length;
    struct yaml_node *root;
    struct arena *arena = &making->cli->arena;
    TRY(textfile_read(arena, making->path, YAML_BYTES_MAX, &text, &length));
    TRY(yaml_parse(arena, making->path, 1, text, length, &root));
    if (root->kind != YAML_MAP)
        FAIL(STATUS_INPUT,
             "%s: error: expected the arguments of a trainer, a map in YAML or JSON "
             "(TrainingArguments.to_json_string()), got another value",
             making->path);
    making->config = root;
    return STATUS_OK;
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    struct making *making;
    struct output output;
    TRY(arena_take(&cli->arena, 1, sizeof *making, "init", &making));
    making->cli = cli;
    making->path = options_value(options, KEY_FROM_TRL);
    making->task = options_value(options, KEY_TASK);
    if (making->path == NULL)
        FAIL(STATUS_INPUT, "init: expected --from-trl CONFIG: a scenario is made of something");
    TRY(read_config(making));
    if (options->output != NULL) TRY(output_apart(options->output, making->path));
    TRY(make_all(making));
    if (making->used_count == 0)
        FAIL(STATUS_INPUT,
             "%s: error: expected the arguments of a trainer, and found no name of "
             "transformers or TRL",
             making->path);
    TRY(note_rest(making));
    *out_exit = EXIT_AS_EXPECTED;
    if (options->output == NULL) {
        print_scenario(stdout, making);
        return STATUS_OK;
    }
    TRY(output_open(options->output, options->overwrite, &output));
    print_scenario(output.file, making);
    TRY(output_close(&output, STATUS_OK));
    printf("written to %s: set %s in it first, for its rows are built-in ones; then twinstep check "
           "%s\n",
           options->output, making->data_key, options->output);
    return STATUS_OK;
}

static const struct argp_option option_rows[] = {
    OPTION("from-trl", KEY_FROM_TRL, "CONFIG",
           "The trainer's arguments: YAML of TRL's command line, or the JSON of "
           "TrainingArguments.to_json_string(); - is standard input"),
    OPTION(
        "task", KEY_TASK, "TASK",
        "What was trained, dpo or sft; default: dpo where a name is DPOConfig's alone, else sft"),
    OPTION_OUTPUT("Scenario to write; default standard output"),
    OPTION_OVERWRITE("Replace a file that exists"), OPTIONS_END};

const struct verb verb_init = {
    .name = "init",
    .brief = "a scenario from the arguments of a trainer of transformers or TRL",
    .arguments = "",
    .text = "Writes a scenario with both arms alike from the arguments of Trainer, SFTTrainer or "
            "DPOTrainer: beside each key the name it comes from, and as comments what does not "
            "translate. Write what differs into the test arm.\v"
            "Example: twinstep init --from-trl config.yaml -o my-pair.yaml",
    .options = option_rows,
    .most = 0,
    .run = run,
};
