/* SPDX-License-Identifier: Apache-2.0
 * Layouts. torch, CPU: 5056 bytes, aten/src/ATen/CPUGeneratorImpl.cpp,
 * CPUGeneratorImplStateLegacy: seed u64, left i32, seeded i32, next u64, 624 words of u64 each, and
 * what normal numbers keep. torch, CUDA: 16 bytes, CUDAGeneratorImpl.cpp: seed u64, offset i64.
 * Python: random.getstate(), (3, (624 words and the position), gauss). numpy:
 * RandomState.get_state,
 * ("MT19937", 624 words of u32, position, has_gauss, cached), or the same by name in a dict. */
#include "readback/generators.h"

#include <string.h>

#include "readback/twister.h"

enum { CPU_BYTES = 5056, CUDA_BYTES = 16 };

/* What a state was read as. */
enum parsed_kind { PARSED_NONE = 0, PARSED_TWISTER, PARSED_PHILOX };
struct parsed {
    enum parsed_kind kind;
    struct twister twister;
    int has_seed;
    uint64_t seed, offset;
};

static uint64_t get64(const unsigned char *bytes) {
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

/* A fresh generator has left 1 and next 0: its key is the seeding's, and the next draw makes one.
 */
static void parse_cpu(const unsigned char *bytes, struct parsed *out) {
    int32_t left;
    const uint64_t next = get64(bytes + 16);
    memcpy(&left, bytes + 8, sizeof left);
    if (next > TWISTER_WORDS) return;
    for (size_t i = 0; i < TWISTER_WORDS; i++)
        out->twister.key[i] = (uint32_t)get64(bytes + 24 + 8 * i);
    out->twister.position = left == 1 && next == 0 ? TWISTER_WORDS : (uint32_t)next;
    out->seed = get64(bytes);
    out->has_seed = 1;
    out->kind = PARSED_TWISTER;
}

static void parse_bytes(const unsigned char *bytes, uint64_t length, struct parsed *out) {
    if (length == CPU_BYTES) parse_cpu(bytes, out);
    if (length != CUDA_BYTES) return;
    out->kind = PARSED_PHILOX;
    out->seed = get64(bytes);
    out->offset = get64(bytes + 8);
}

static void parse_tensor(const struct torch_tensor *tensor, struct parsed *out) {
    const struct torch_storage *const storage = &tensor->storage;
    if (tensor->dtype != SAFETENSORS_U8 || !tensor->is_contiguous || tensor->rank != 1 ||
        tensor->offset > storage->length || tensor->count > storage->length - tensor->offset)
        return;
    parse_bytes(storage->bytes + tensor->offset, tensor->count, out);
}

static int is_text(const struct torch_value *value, const char *text) {
    return value->kind == TORCH_TEXT && value->as.text->length == strlen(text) &&
           memcmp(value->as.text->bytes, text, strlen(text)) == 0;
}

/* Python's 624 words and the position behind them. */
static void parse_words(const struct torch_members *words, struct parsed *out) {
    if (words->count != TWISTER_WORDS + 1) return;
    for (size_t i = 0; i <= TWISTER_WORDS; i++) {
        const struct torch_value *const word = &words->values[i];
        const int64_t most = i < TWISTER_WORDS ? (int64_t)UINT32_MAX : TWISTER_WORDS;
        if (word->kind != TORCH_INT || word->as.integer < 0 || word->as.integer > most) return;
        if (i < TWISTER_WORDS)
            out->twister.key[i] = (uint32_t)word->as.integer;
        else
            out->twister.position = (uint32_t)word->as.integer;
    }
    out->kind = PARSED_TWISTER;
}

/* The bytes of numpy's array: the last member of the state that its pickle restores. */
static const struct torch_text *array_bytes(const struct torch_value *value) {
    if (value->kind != TORCH_OPAQUE) return NULL;
    const struct torch_value *const state = &value->as.opaque->state;
    if (state->kind != TORCH_TUPLE || state->as.members->count == 0) return NULL;
    const struct torch_value *const last = &state->as.members->values[state->as.members->count - 1];
    return last->kind == TORCH_BYTES || last->kind == TORCH_TEXT ? last->as.text : NULL;
}

static void parse_numpy(const struct torch_value *key, const struct torch_value *position,
                        struct parsed *out) {
    const struct torch_text *const bytes = array_bytes(key);
    if (bytes == NULL || bytes->length != sizeof out->twister.key || position->kind != TORCH_INT ||
        position->as.integer < 0 || position->as.integer > TWISTER_WORDS)
        return;
    memcpy(out->twister.key, bytes->bytes, sizeof out->twister.key);
    out->twister.position = (uint32_t)position->as.integer;
    out->kind = PARSED_TWISTER;
}

static const struct torch_value *member(const struct torch_members *dict, const char *key) {
    for (size_t i = 0; i < dict->count; i++)
        if (is_text(&dict->keys[i], key)) return &dict->values[i];
    return NULL;
}

static void parse_dict(const struct torch_members *dict, struct parsed *out) {
    const struct torch_value *const state = member(dict, "state");
    if (state == NULL || state->kind != TORCH_DICT) return;
    const struct torch_value *const key = member(state->as.members, "key");
    const struct torch_value *const position = member(state->as.members, "pos");
    if (key != NULL && position != NULL) parse_numpy(key, position, out);
}

static void parse(const struct training_generator *generator, struct parsed *out) {
    const struct torch_value *const value = &generator->value;
    memset(out, 0, sizeof *out);
    if (value->kind == TORCH_TENSOR) parse_tensor(value->as.tensor, out);
    if (value->kind == TORCH_DICT) parse_dict(value->as.members, out);
    if (value->kind != TORCH_TUPLE && value->kind != TORCH_LIST) return;
    const struct torch_members *const parts = value->as.members;
    if (parts->count == 1 && parts->values[0].kind == TORCH_TENSOR) /* one device of several */
        parse_tensor(parts->values[0].as.tensor, out);
    if (parts->count == 3 && parts->values[1].kind == TORCH_TUPLE)
        parse_words(parts->values[1].as.members, out);
    if (parts->count >= 3 && is_text(&parts->values[0], "MT19937"))
        parse_numpy(&parts->values[1], &parts->values[2], out);
}

static struct generator_step compare_philox(const struct parsed *a, const struct parsed *b) {
    struct generator_step out = {GENERATOR_OTHER, 0, b->seed};
    if (a->seed != b->seed || b->offset < a->offset) return out;
    out.state = GENERATOR_CONTINUED;
    out.drawn = b->offset - a->offset;
    return out;
}

static struct generator_step compare_twisters(const struct parsed *a, const struct parsed *b) {
    struct generator_step out = {GENERATOR_OTHER, 0, b->seed};
    struct twister seeded;
    if (twister_between(&a->twister, &b->twister, GENERATOR_KEYS, &out.drawn)) {
        out.state = GENERATOR_CONTINUED;
    } else if (b->has_seed) {
        twister_seed(&seeded, (uint32_t)b->seed);
        if (twister_between(&seeded, &b->twister, GENERATOR_KEYS, &out.drawn))
            out.state = GENERATOR_ANEW;
    }
    return out;
}

struct generator_step generator_compare(const struct training_generator *earlier,
                                        const struct training_generator *later) {
    struct parsed a, b;
    struct generator_step out = {GENERATOR_UNKNOWN, 0, 0};
    if (memcmp(&earlier->digest, &later->digest, sizeof later->digest) == 0)
        return (struct generator_step){GENERATOR_EQUAL, 0, 0};
    parse(earlier, &a);
    parse(later, &b);
    if (a.kind != b.kind || a.kind == PARSED_NONE) return out;
    out = a.kind == PARSED_PHILOX ? compare_philox(&a, &b) : compare_twisters(&a, &b);
    if (out.state == GENERATOR_CONTINUED && out.drawn == 0) out.state = GENERATOR_EQUAL;
    return out;
}
