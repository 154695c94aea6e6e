/* SPDX-License-Identifier: Apache-2.0
 * Reads the base of RoPE and its scaling, from rope_theta and rope_scaling (transformers v4) or
 * rope_parameters (v5). If both spellings are there, they must say the same. */
#include <stdio.h>
#include <string.h>

#include "checkpoints/hf_json.h"
#include "checkpoints/strict_json.h"

struct place {
    const char *name; /* name of the file */
    const char *key;  /* "rope_scaling" or "rope_parameters" */
    const json_t *values;
};

/* The keys of each type, by enum hf_rope_type. All types have rope_type, type, rope_theta and
 * partial_rotary_factor besides. */
static const struct {
    const char *name;
    const char *keys[8];
} types[HF_ROPE_TYPES] = {
    {"default", {NULL}},
    {"llama3",
     {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}},
    {"yarn",
     {"factor", "original_max_position_embeddings", "attention_factor", "beta_fast", "beta_slow",
      "mscale", "mscale_all_dim", "truncate"}},
};

const char *hf_rope_name(enum hf_rope_type type) {
    return types[type].name;
}

static enum status place_fail(const struct place *place, const char *key, const char *what,
                              const json_t *value) {
    char full[96];
    snprintf(full, sizeof full, "%s.%s", place->key, key);
    return hf_fail(place->name, full, what, value);
}

static const struct hf_range theta_range = {1.0, 1e12}, factor_range = {1.0, 1e6};

static enum status read_real(const struct place *place, const char *key, struct hf_range range,
                             double *out) {
    char full[96];
    snprintf(full, sizeof full, "%s.%s", place->key, key);
    return hf_read_real(place->name, place->values, key, full, range, out);
}

static enum status read_optional(const struct place *place, const char *key, double *out) {
    if (hf_get(place->values, key) == NULL) return STATUS_OK;
    return read_real(place, key, HF_ABOVE_0(1e6), out);
}

static enum status read_original(const struct place *place, struct hf_config *out) {
    static const char key[] = "original_max_position_embeddings";
    const json_t *value = hf_get(place->values, key);
    out->rope.original_positions = out->positions;
    if (value == NULL) return STATUS_OK;
    if (!strict_json_count(value, &out->rope.original_positions) ||
        out->rope.original_positions == 0 || out->rope.original_positions > (uint64_t)1 << 40)
        return place_fail(place, key, "a whole number above 0, at most 1099511627776", value);
    return STATUS_OK;
}

static enum status read_llama3(const struct place *place, struct hf_config *out) {
    struct hf_rope *rope = &out->rope;
    TRY(read_real(place, "factor", factor_range, &rope->factor));
    TRY(read_real(place, "low_freq_factor", HF_ABOVE_0(1e6), &rope->low_freq_factor));
    TRY(read_real(place, "high_freq_factor", HF_ABOVE_0(1e6), &rope->high_freq_factor));
    if (!(rope->high_freq_factor > rope->low_freq_factor))
        return place_fail(place, "high_freq_factor", "more than low_freq_factor",
                          hf_get(place->values, "high_freq_factor"));
    if (hf_get(place->values, "original_max_position_embeddings") == NULL)
        return place_fail(place, "original_max_position_embeddings", "a whole number above 0",
                          NULL);
    return read_original(place, out);
}

static enum status read_yarn(const struct place *place, struct hf_config *out) {
    struct hf_rope *rope = &out->rope;
    const json_t *truncate = hf_get(place->values, "truncate");
    rope->beta_fast = 32.0;
    rope->beta_slow = 1.0;
    rope->truncate = truncate == NULL || json_is_true(truncate);
    TRY(read_real(place, "factor", factor_range, &rope->factor));
    TRY(read_original(place, out));
    TRY(read_optional(place, "attention_factor", &rope->attention_factor));
    TRY(read_optional(place, "beta_fast", &rope->beta_fast));
    TRY(read_optional(place, "beta_slow", &rope->beta_slow));
    TRY(read_optional(place, "mscale", &rope->mscale));
    TRY(read_optional(place, "mscale_all_dim", &rope->mscale_all_dim));
    if (truncate != NULL && !json_is_boolean(truncate))
        return place_fail(place, "truncate", "true or false", truncate);
    if (!(rope->beta_fast > rope->beta_slow))
        return place_fail(place, "beta_fast", "more than beta_slow",
                          hf_get(place->values, "beta_fast"));
    return STATUS_OK;
}

/* Reads rope_type, or type as older files have it; if both are there, they must agree. */
static enum status read_type(const struct place *place, enum hf_rope_type *out) {
    const json_t *type = hf_get(place->values, "rope_type"), *older = hf_get(place->values, "type");
    if (type != NULL && older != NULL && !json_equal(type, older))
        return place_fail(place, "type", "the same as rope_type", older);
    if (type == NULL) type = older;
    *out = HF_ROPE_DEFAULT;
    if (type == NULL && strcmp(place->key, "rope_parameters") == 0) return STATUS_OK;
    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (json_is_string(type) && strcmp(json_string_value(type), types[i].name) == 0) {
            *out = (enum hf_rope_type)i;
            return STATUS_OK;
        }
    return place_fail(place, "rope_type", "default, llama3 or yarn", type);
}

static int is_of_type(const char *key, enum hf_rope_type type) {
    static const char *const all[] = {"rope_type", "type", "rope_theta", "partial_rotary_factor"};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        if (strcmp(all[i], key) == 0) return 1;
    for (size_t i = 0; i < COUNT_OF(types[type].keys) && types[type].keys[i] != NULL; i++)
        if (strcmp(types[type].keys[i], key) == 0) return 1;
    return 0;
}

static enum status check_place(const struct place *place, enum hf_rope_type type) {
    struct listing unknown = {0};
    const json_t *part = hf_get(place->values, "partial_rotary_factor");
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(size_t)place->values, key, value) {
        if (json_is_object(value))
            return place_fail(place, key, "one set of parameters for all layers", value);
        if (!is_of_type(key, type)) listing_add(&unknown, key);
    }
    if (unknown.count > 0)
        FAIL(STATUS_INPUT, "%s: %s: expected parameters of rope_type %s, got %s", place->name,
             place->key, types[type].name, listing_close(&unknown));
    if (part != NULL && !(json_is_number(part) && json_number_value(part) == 1.0))
        return place_fail(place, "partial_rotary_factor", "1: whole heads are rotated", part);
    return STATUS_OK;
}

/* Finds the one of both keys that is there; values is NULL if neither is. */
static enum status find_place(const char *name, const json_t *root, struct place *out) {
    const json_t *older = hf_get(root, "rope_scaling"), *newer = hf_get(root, "rope_parameters");
    *out = (struct place){name, newer != NULL ? "rope_parameters" : "rope_scaling",
                          newer != NULL ? newer : older};
    if (older != NULL && newer != NULL && !json_equal(older, newer))
        return hf_fail(name, "rope_scaling", "the same as rope_parameters", older);
    if (out->values != NULL && !json_is_object(out->values))
        return hf_fail(name, out->key, "an object", out->values);
    return STATUS_OK;
}

static enum status read_theta(const char *name, const json_t *root, const struct place *place,
                              double *out) {
    const json_t *older = hf_get(root, "rope_theta");
    const json_t *newer = place->values == NULL ? NULL : hf_get(place->values, "rope_theta");
    if (older == NULL && newer == NULL)
        FAIL(STATUS_INPUT,
             "%s: expected rope_theta (transformers v4) or rope_parameters.rope_theta (v5), got "
             "neither: a guess would give another model",
             name);
    if (older != NULL) TRY(hf_read_real(name, root, "rope_theta", "rope_theta", theta_range, out));
    if (newer == NULL) return STATUS_OK;
    TRY(read_real(place, "rope_theta", theta_range, out));
    if (older != NULL && json_number_value(older) != *out)
        return hf_fail(name, "rope_theta", "the same as in the other spelling", older);
    return STATUS_OK;
}

enum status hf_read_rope(const char *name, const json_t *root, struct hf_config *out) {
    struct place place;
    TRY(find_place(name, root, &place));
    TRY(read_theta(name, root, &place, &out->rope.theta));
    if (place.values == NULL) return STATUS_OK;
    TRY(read_type(&place, &out->rope.type));
    TRY(check_place(&place, out->rope.type));
    if (out->rope.type == HF_ROPE_LLAMA3) return read_llama3(&place, out);
    if (out->rope.type != HF_ROPE_YARN) return STATUS_OK;
    if (!(out->rope.theta > 1.0))
        FAIL(STATUS_INPUT, "%s: rope_theta: expected more than 1 with yarn, got 1", name);
    return read_yarn(&place, out);
}
