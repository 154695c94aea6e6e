/* SPDX-License-Identifier: Apache-2.0
 * The order in which Hugging Face's classes make their modules, which is that of
 * named_parameters() and so of an optimizer's parameters, while safetensors are sorted by name.
 * Compared with named_parameters() of transformers 5.23.0 for 16 classes of model
 * (tests/checkpoints/test_training_names.c). */
#include "checkpoints/training_private.h"

#include "checkpoints/order.h"

#include <stdlib.h>
#include <string.h>

enum section { BEFORE = 0, INSIDE, BEHIND, SECTIONS };

#define MODULES 22

/* The modules before, inside and behind the layers. */
struct family {
    const char *modules[SECTIONS][MODULES];
};

static const struct family families[] = {
    /* Llama, Mistral, Qwen2, Qwen3, OLMo, Gemma, Cohere, Granite, SmolLM, StableLM; Phi, Phi-3,
     * StarCoder2 and GLM-4 have other modules, in places that do not disagree */
    {{{"embed_tokens"},
      {"self_attn.q_proj",
       "self_attn.k_proj",
       "self_attn.v_proj",
       "self_attn.o_proj",
       "self_attn.qkv_proj",
       "self_attn.dense",
       "self_attn.q_norm",
       "self_attn.k_norm",
       "mlp.gate_proj",
       "mlp.up_proj",
       "mlp.gate_up_proj",
       "mlp.down_proj",
       "mlp.fc1",
       "mlp.fc2",
       "mlp.c_fc",
       "mlp.c_proj",
       "input_layernorm",
       "post_attention_layernorm",
       "pre_feedforward_layernorm",
       "post_feedforward_layernorm",
       "post_self_attn_layernorm",
       "post_mlp_layernorm"},
      {"norm", "final_layernorm", "lm_head", "score"}}},
    /* GPT-2 */
    {{{"wte", "wpe"},
      {"ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj"},
      {"ln_f", "lm_head", "score"}}},
    /* GPT-NeoX, Pythia */
    {{{"embed_in"},
      {"input_layernorm", "post_attention_layernorm", "attention.query_key_value",
       "attention.dense", "mlp.dense_h_to_4h", "mlp.dense_4h_to_h"},
      {"final_layer_norm", "embed_out", "lm_head", "score"}}},
};

/* What may follow a module's name, longest first, and where it stands among what the module has.
 * peft puts the base layer first, then the factors of LoRA. */
struct ending {
    const char *text;
    size_t rank;
};

static const struct ending endings[] = {
    {".lora_A.default.weight", 2},
    {".lora_B.default.weight", 3},
    {".lora_A.weight", 2},
    {".lora_B.weight", 3},
    {".base_layer.weight", 0},
    {".base_layer.bias", 1},
    {".weight", 0},
    {".bias", 1},
};

struct ranked {
    const struct safetensors_tensor *weight;
    uint64_t rank[4]; /* section, layer, module, what the module has */
};

/* Finds ".layers.7." or ".h.7." in a name; stores the number, and returns what follows. */
static const char *find_layer(const char *name, uint64_t *out) {
    static const char *const words[] = {"layers.", "h."};
    for (const char *at = name; at != NULL && *at != '\0'; at = strchr(at, '.')) {
        if (*at == '.') at++;
        for (size_t i = 0; i < COUNT_OF(words); i++) {
            const size_t length = strlen(words[i]);
            if (strncmp(at, words[i], length) != 0) continue;
            const size_t digits = strspn(at + length, "0123456789");
            if (digits == 0 || digits > 9 || at[length + digits] != '.') continue;
            *out = strtoull(at + length, NULL, 10);
            return at + length + digits + 1;
        }
    }
    return NULL;
}

/* Whether the first `length` bytes of a name are that module or, outside layers, end with it. */
static int is_module(const char *name, size_t length, const char *module, int may_follow) {
    const size_t size = strlen(module);
    if (length < size || strncmp(name + length - size, module, size) != 0) return 0;
    return length == size || (may_follow && name[length - size - 1] == '.');
}

static int rank_module(const struct family *family, enum section section, const char *name,
                       size_t length, struct ranked *out) {
    for (size_t i = 0; i < MODULES && family->modules[section][i] != NULL; i++)
        if (is_module(name, length, family->modules[section][i], section != INSIDE)) {
            out->rank[0] = section;
            out->rank[2] = i;
            return 1;
        }
    return 0;
}

static int rank_weight(const struct family *family, const struct safetensors_tensor *weight,
                       struct ranked *out) {
    const size_t whole = strlen(weight->name);
    size_t i = 0, ending;
    *out = (struct ranked){.weight = weight};
    for (; i < COUNT_OF(endings); i++) {
        ending = strlen(endings[i].text);
        if (whole > ending && strcmp(weight->name + whole - ending, endings[i].text) == 0) break;
    }
    if (i == COUNT_OF(endings)) return 0;
    out->rank[3] = endings[i].rank;
    const char *tail = find_layer(weight->name, &out->rank[1]);
    if (tail != NULL)
        return strlen(tail) > ending &&
               rank_module(family, INSIDE, tail, strlen(tail) - ending, out);
    return rank_module(family, BEFORE, weight->name, whole - ending, out) ||
           rank_module(family, BEHIND, weight->name, whole - ending, out);
}

static int compare_ranks(const void *a, const void *b) {
    const struct ranked *left = (const struct ranked *)a, *right = (const struct ranked *)b;
    for (size_t i = 0; i < 4; i++)
        if (left->rank[i] != right->rank[i]) return left->rank[i] < right->rank[i] ? -1 : 1;
    return 0;
}

static int rank_all(const struct family *family, const struct safetensors_tensor **weights,
                    size_t count, struct ranked *out) {
    for (size_t i = 0; i < count; i++)
        if (!rank_weight(family, weights[i], &out[i])) return 0;
    return count > 0;
}

static enum status sort_ranked(const struct safetensors_tensor **weights, struct ranked *ranked,
                               size_t count, struct arena *arena) {
    const void **sorted;
    TRY(arena_take(arena, count, sizeof *sorted, "weights", &sorted));
    for (size_t i = 0; i < count; i++)
        sorted[i] = &ranked[i];
    TRY(order_pointers(sorted, count, compare_ranks, arena));
    for (size_t i = 0; i < count; i++)
        weights[i] = ((const struct ranked *)sorted[i])->weight;
    return STATUS_OK;
}

/* Orders names part by part: numbers by size, `weight` before `bias`, others as bytes. */
static int compare_parts(const void *a, const void *b) {
    const char *left = ((const struct safetensors_tensor *)a)->name;
    const char *right = ((const struct safetensors_tensor *)b)->name;
    for (;;) {
        const size_t x = strcspn(left, "."), y = strcspn(right, ".");
        const size_t digits = strspn(left, "0123456789"), others = strspn(right, "0123456789");
        const int is_number = x > 0 && digits == x && y > 0 && others == y;
        int side = 0;
        if (is_number && x != y)
            side = x < y ? -1 : 1;
        else if (x != y || strncmp(left, right, x) != 0)
            side = strcmp(right, "bias") == 0  ? -1
                   : strcmp(left, "bias") == 0 ? 1
                                               : strcmp(left, right);
        if (side != 0) return side;
        if (left[x] == '\0' || right[y] == '\0') return (left[x] != '\0') - (right[y] != '\0');
        left += x + 1;
        right += y + 1;
    }
}

enum status training_module_order(const struct safetensors_tensor **weights, size_t count,
                                  struct arena *arena, int *out_known) {
    struct ranked *ranked;
    size_t i = 0;
    TRY(arena_take(arena, count, sizeof *ranked, "weights", &ranked));
    while (i < COUNT_OF(families) && !rank_all(&families[i], weights, count, ranked))
        i++;
    *out_known = i < COUNT_OF(families);
    if (*out_known) return sort_ranked(weights, ranked, count, arena);
    return order_pointers((const void **)weights, count, compare_parts, arena);
}

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* Whether `name` begins with a word of lower-case letters, whatever case its own have. */
static int begins(const char *name, const char *word) {
    while (*word != '\0' && lower(*name) == *word) {
        name++;
        word++;
    }
    return *word == '\0';
}

static int contains(const char *name, const char *word) {
    for (; *name != '\0'; name++)
        if (begins(name, word)) return 1;
    return 0;
}

/* Trainer.get_decay_parameter_names leaves out names with bias, layernorm or rmsnorm, modules whose
 * name is norm or ends with _norm, and what is in an nn.LayerNorm: GPT-2's are named ln_. */
int training_is_undecayed(const char *name) {
    if (contains(name, "bias") || contains(name, "layernorm") || contains(name, "rmsnorm"))
        return 1;
    for (const char *part = name; part != NULL;) {
        const char *end = strchr(part, '.');
        const size_t length = end == NULL ? strlen(part) : (size_t)(end - part);
        if (begins(part, "ln_") || (length == 4 && begins(part, "norm")) ||
            (length > 4 && begins(part + length - 5, "_norm")))
            return 1;
        part = end == NULL ? NULL : end + 1;
    }
    return 0;
}
