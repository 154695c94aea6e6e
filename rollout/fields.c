/* SPDX-License-Identifier: Apache-2.0
 * The table of names. It was filled from the sources that docs/ROLLOUT.md lists with their
 * commits; names of rewards from slime 624b824a, verl 1dda039b, NeMo-RL 7ea279ab, AReaL cbff54d6
 * and prime-rl 559b4477. */
#include "rollout/fields.h"

#include <string.h>

#define NAMES(field, name, from)                                                                   \
    { name, field, 0, from }

const struct rollout_name rollout_names[] = {
    NAMES(ROLLOUT_ENGINE, "rollout_logprobs", "twinstep"),
    NAMES(ROLLOUT_ENGINE, "rollout_log_probs", "verl, slime"),
    NAMES(ROLLOUT_ENGINE, "sampling_per_token_logps", "TRL"),
    NAMES(ROLLOUT_ENGINE, "generation_logprobs", "NeMo-RL"),
    NAMES(ROLLOUT_ENGINE, "inference_logprobs", "prime-rl"),
    {"output_token_logprobs", ROLLOUT_ENGINE, 1, "SGLang"},
    NAMES(ROLLOUT_ENGINE, "output_logprobs", "AReaL"),
    NAMES(ROLLOUT_ENGINE, "token_logprobs", "vLLM, OpenAI completions"),
    NAMES(ROLLOUT_TRAINER, "trainer_logprobs", "twinstep, prime-rl"),
    NAMES(ROLLOUT_TRAINER, "old_log_probs", "verl"),
    NAMES(ROLLOUT_TRAINER, "old_per_token_logps", "TRL"),
    NAMES(ROLLOUT_TRAINER, "prev_logprobs", "NeMo-RL"),
    NAMES(ROLLOUT_TRAINER, "prox_logp", "AReaL"),
    NAMES(ROLLOUT_TRAINER, "train_log_probs", "slime"),
    NAMES(ROLLOUT_TRAINER, "log_probs", "slime"),
    NAMES(ROLLOUT_TOKENS, "token_ids", "twinstep, NeMo-RL"),
    NAMES(ROLLOUT_TOKENS, "rollout_token_ids", "twinstep"),
    NAMES(ROLLOUT_TOKENS, "responses", "verl"),
    NAMES(ROLLOUT_TOKENS, "completion_ids", "TRL"),
    NAMES(ROLLOUT_TOKENS, "output_ids", "SGLang"),
    NAMES(ROLLOUT_TOKENS, "output_tokens", "AReaL"),
    NAMES(ROLLOUT_TOKENS, "tokens", "slime"),
    NAMES(ROLLOUT_TOKENS, "input_ids", "AReaL, NeMo-RL"),
    NAMES(ROLLOUT_TRAINER_IDS, "trainer_token_ids", "twinstep"),
    NAMES(ROLLOUT_MASK, "mask", "twinstep"),
    NAMES(ROLLOUT_MASK, "response_mask", "verl"),
    NAMES(ROLLOUT_MASK, "completion_mask", "TRL"),
    NAMES(ROLLOUT_MASK, "loss_mask", "slime, AReaL"),
    NAMES(ROLLOUT_MASK, "token_loss_mask", "NeMo-RL"),
    NAMES(ROLLOUT_MASK, "token_mask", "NeMo-RL"),
    NAMES(ROLLOUT_POSITION, "position", "twinstep"),
    NAMES(ROLLOUT_POSITION, "position_ids", "verl"),
    NAMES(ROLLOUT_VERSION, "weight_version", "twinstep, SGLang"),
    NAMES(ROLLOUT_VERSION, "weight_versions", "slime"),
    NAMES(ROLLOUT_VERSION, "output_versions", "AReaL"),
    NAMES(ROLLOUT_VERSION, "versions", "AReaL"),
    NAMES(ROLLOUT_NOW, "trainer_version", "twinstep"),
    NAMES(ROLLOUT_NOW, "current_version", "AReaL"),
    NAMES(ROLLOUT_EXPERTS, "rollout_experts", "twinstep"),
    NAMES(ROLLOUT_EXPERTS, "rollout_routed_experts", "slime"),
    NAMES(ROLLOUT_EXPERTS, "routed_experts", "vLLM, SGLang"),
    NAMES(ROLLOUT_EXPERTS_HERE, "trainer_experts", "twinstep"),
    NAMES(ROLLOUT_BATCH, "batch", "twinstep"),
    NAMES(ROLLOUT_BATCH, "step", "verl, TRL"),
    NAMES(ROLLOUT_BATCH, "rollout_id", "slime"),
    NAMES(ROLLOUT_KEPT, "sample_loss_mask", "NeMo-RL"),
    NAMES(ROLLOUT_KEPT, "sample_mask", "NeMo-RL"),
    NAMES(ROLLOUT_REMOVED, "remove_sample", "slime"),
    NAMES(ROLLOUT_REWARD, "reward", "twinstep, slime, AReaL, prime-rl"),
    /* slime's "rewards" are these less the mean of their group. */
    NAMES(ROLLOUT_REWARD, "raw_reward", "slime"),
    /* With dynamic sampling NeMo-RL's "rewards" are those of other sequences. */
    NAMES(ROLLOUT_REWARD, "filtered_rewards", "NeMo-RL"),
    NAMES(ROLLOUT_REWARD, "rewards", "NeMo-RL, AReaL"),
    NAMES(ROLLOUT_REWARD, "score", "verl"),
    NAMES(ROLLOUT_REWARD, "token_level_scores", "verl"),
    NAMES(ROLLOUT_REWARD, "token_level_rewards", "verl"),
    NAMES(ROLLOUT_REWARD, "rm_scores", "verl"),
    NAMES(ROLLOUT_ID, "id", "twinstep, OpenAI"),
    NAMES(ROLLOUT_ID, "sequence_id", "twinstep"),
    NAMES(ROLLOUT_ID, "uid", "verl"),
    NAMES(ROLLOUT_ID, "request_id", "vLLM, verl"),
    NAMES(ROLLOUT_ID, "index", "slime"),
    NAMES(ROLLOUT_ID, "idx", "NeMo-RL"),
    {NULL, ROLLOUT_FIELDS, 0, NULL}};

const char *const rollout_field_words[ROLLOUT_FIELDS] = {
    [ROLLOUT_ENGINE] = "rollout",  [ROLLOUT_TRAINER] = "trainer",
    [ROLLOUT_TOKENS] = "tokens",   [ROLLOUT_TRAINER_IDS] = "trainer-tokens",
    [ROLLOUT_MASK] = "mask",       [ROLLOUT_POSITION] = "position",
    [ROLLOUT_VERSION] = "version", [ROLLOUT_NOW] = "trainer-version",
    [ROLLOUT_EXPERTS] = "experts", [ROLLOUT_EXPERTS_HERE] = "trainer-experts",
    [ROLLOUT_BATCH] = "batch",     [ROLLOUT_KEPT] = "kept",
    [ROLLOUT_REMOVED] = "removed", [ROLLOUT_REWARD] = "reward",
    [ROLLOUT_ID] = "id",
};

enum status rollout_naming_add(struct rollout_naming *naming, const char *text) {
    const size_t length = strcspn(text, "=");
    if (text[length] == '\0' || text[length + 1] == '\0')
        FAIL(STATUS_INPUT, "--field: expected ROLE=NAME, for instance trainer=my_logps, got \"%s\"",
             text);
    for (int i = 0; i < ROLLOUT_FIELDS; i++)
        if (strlen(rollout_field_words[i]) == length &&
            strncmp(rollout_field_words[i], text, length) == 0) {
            naming->name[i] = text + length + 1;
            return STATUS_OK;
        }
    FAIL(STATUS_INPUT,
         "--field: expected one of rollout, trainer, tokens, trainer-tokens, mask, position, "
         "version, trainer-version, experts, trainer-experts, batch, kept, removed, reward, id, "
         "got \"%.*s\"",
         (int)length, text);
}

static int is(const char *name, size_t length, const char *word) {
    return strlen(word) == length && memcmp(name, word, length) == 0;
}

enum rollout_field rollout_field_of(const struct rollout_naming *naming, const char *name,
                                    size_t length, enum rollout_field lone, int *out_rank,
                                    int *out_pairs) {
    *out_pairs = *out_rank = 0;
    for (int i = 0; i < ROLLOUT_FIELDS; i++)
        if (naming->name[i] != NULL && is(name, length, naming->name[i])) {
            for (int k = 0; rollout_names[k].name != NULL; k++)
                if (is(name, length, rollout_names[k].name)) *out_pairs = rollout_names[k].pairs;
            return (enum rollout_field)i;
        }
    *out_rank = 1000;
    if (lone != ROLLOUT_FIELDS && is(name, length, "logprobs")) return lone;
    for (int k = 0; rollout_names[k].name != NULL; k++) {
        if (!is(name, length, rollout_names[k].name)) continue;
        if (naming->name[rollout_names[k].field] != NULL) return ROLLOUT_FIELDS;
        *out_rank = k + 1;
        *out_pairs = rollout_names[k].pairs;
        return rollout_names[k].field;
    }
    return ROLLOUT_FIELDS;
}
