/* SPDX-License-Identifier: Apache-2.0
 * A table of open addresses, at most half full, that is made anew at twice the size. */
#include "dumps/dump_words.h"

#include <string.h>

enum status words_open(struct arena *arena, struct words *out) {
    memset(out, 0, sizeof *out);
    out->arena = arena;
    out->slot_count = 4096;
    TRY(arena_take(arena, out->slot_count, sizeof *out->slots, "a table of texts", &out->slots));
    TRY(arena_grow(arena, 1, &out->room, sizeof *out->list, "a table of texts", &out->list));
    out->list[0].text = "";
    out->count = 1;
    return STATUS_OK;
}

static uint64_t hash_of(const unsigned char *text, size_t length) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ text[i]) * 0x100000001b3u;
    return hash ^ (hash >> 32);
}

static enum status enlarge(struct words *words) {
    const size_t count = 2 * words->slot_count;
    TRY(arena_take(words->arena, count, sizeof *words->slots, "a table of texts", &words->slots));
    words->slot_count = count;
    for (size_t i = 1; i < words->count; i++) {
        size_t at = words->list[i].hash & (count - 1);
        while (words->slots[at] != 0)
            at = (at + 1) & (count - 1);
        words->slots[at] = (uint32_t)i;
    }
    return STATUS_OK;
}

enum status words_number(struct words *words, const void *text, size_t length, uint32_t *out) {
    const uint64_t hash = hash_of((const unsigned char *)text, length);
    *out = 0;
    if (length == 0) return STATUS_OK;
    if (2 * words->count >= words->slot_count) TRY(enlarge(words));
    size_t at = hash & (words->slot_count - 1);
    for (; words->slots[at] != 0; at = (at + 1) & (words->slot_count - 1)) {
        const struct word *word = &words->list[words->slots[at]];
        if (word->hash != hash || word->length != length) continue;
        if (memcmp(word->text, text, length) == 0) {
            *out = words->slots[at];
            return STATUS_OK;
        }
    }
    if (words->count >= UINT32_MAX / 2) FAIL(STATUS_MEMORY, "more than 2^31 different texts");
    char *copy;
    TRY(arena_text(words->arena, (const char *)text, length, &copy));
    TRY(arena_grow(words->arena, words->count + 1, &words->room, sizeof *words->list,
                   "a table of texts", &words->list));
    words->list[words->count] = (struct word){copy, length, hash};
    words->slots[at] = (uint32_t)words->count;
    *out = (uint32_t)words->count++;
    return STATUS_OK;
}
