/* SPDX-License-Identifier: Apache-2.0
 * Forward search of the shortest edit; the furthest points of each round are kept, and the way is
 * walked back through them. Equal ends are cut off first, and so are ops of which the other side
 * has none. */
#include "dumps/align.h"

#include <string.h>

struct side {
    const struct dump *dump;
    uint32_t *keys;  /* of each op */
    uint32_t *kept;  /* indices of the ops that take part */
    uint32_t *match; /* of each op */
    size_t count;    /* how many take part */
};

static enum status make_keys(struct words *words, struct side *side, int by_scope) {
    const struct dump *dump = side->dump;
    TRY(arena_take(words->arena, dump->count, sizeof *side->keys, "keys", &side->keys));
    TRY(arena_take(words->arena, dump->count, sizeof *side->kept, "keys", &side->kept));
    TRY(arena_take(words->arena, dump->count, sizeof *side->match, "keys", &side->match));
    for (size_t i = 0; i < dump->count; i++) {
        const struct dump_op *op = &dump->ops[i];
        const uint32_t key[3] = {by_scope ? op->scope : op->module, op->op, op->shapes};
        TRY(words_number(words, key, sizeof key, &side->keys[i]));
        side->match[i] = UINT32_MAX;
    }
    return STATUS_OK;
}

static void pair(struct side *a, struct side *b, size_t i, size_t j) {
    a->match[a->kept[i]] = b->kept[j];
    b->match[b->kept[j]] = a->kept[i];
}

static int same(const struct side *a, const struct side *b, size_t i, size_t j) {
    return a->keys[a->kept[i]] == b->keys[b->kept[j]];
}

/* Keeps the ops whose key the other side has. */
static enum status keep_common(struct words *words, struct side *side, const struct side *other) {
    unsigned char *there;
    TRY(arena_take(words->arena, words->count, 1, "keys", &there));
    for (size_t i = 0; i < other->dump->count; i++)
        there[other->keys[i]] = 1;
    for (size_t i = 0; i < side->dump->count; i++)
        if (there[side->keys[i]]) side->kept[side->count++] = (uint32_t)i;
    return STATUS_OK;
}

struct search {
    struct side *a, *b;
    size_t from, n, m; /* the part between the equal ends: n ops of a, m of b, both from `from` */
    int32_t **rounds;  /* rounds[d][k + d]: how far in a on diagonal k after d edits */
};

static int32_t start_of(int32_t *const *rounds, int32_t d, int32_t k) {
    if (d == 0) return 0;
    const int32_t *last = rounds[d - 1] + (d - 1);
    if (k == -d) return last[k + 1];
    if (k == d) return last[k - 1] + 1;
    return last[k - 1] < last[k + 1] ? last[k + 1] : last[k - 1] + 1;
}

/* Points beyond the edges are never followed: there a diagonal has no equal ops. */
static int32_t slide(const struct search *s, int32_t x, int32_t k) {
    while (x >= 0 && x - k >= 0 && (size_t)x < s->n && (size_t)(x - k) < s->m &&
           same(s->a, s->b, s->from + (size_t)x, s->from + (size_t)(x - k)))
        x++;
    return x;
}

static void walk_back(const struct search *s, int32_t d) {
    int32_t x = (int32_t)s->n, k = (int32_t)s->n - (int32_t)s->m;
    for (; d >= 0; d--) {
        const int32_t start = start_of(s->rounds, d, k);
        for (; x > start; x--)
            pair(s->a, s->b, s->from + (size_t)(x - 1), s->from + (size_t)(x - 1 - k));
        if (d == 0) return;
        const int32_t *last = s->rounds[d - 1] + (d - 1);
        const int down = k == -d || (k != d && last[k - 1] < last[k + 1]);
        k += down ? 1 : -1;
        x = start - !down;
    }
}

/* *out_aligned stays 0 where the search was given up. */
static enum status search(struct search *s, struct arena *arena, int *out_aligned) {
    const int32_t goal = (int32_t)s->n - (int32_t)s->m;
    TRY(arena_take(arena, DUMP_APART_MOST + 1, sizeof *s->rounds, "an alignment", &s->rounds));
    for (int32_t d = 0; d <= DUMP_APART_MOST; d++) {
        TRY(arena_take(arena, 2 * (size_t)d + 1, sizeof **s->rounds, "an alignment",
                       &s->rounds[d]));
        for (int32_t k = -d; k <= d; k += 2) {
            const int32_t x = slide(s, start_of(s->rounds, d, k), k);
            s->rounds[d][k + d] = x;
            if (k != goal || x < (int32_t)s->n) continue;
            walk_back(s, d);
            *out_aligned = 1;
            return STATUS_OK;
        }
    }
    return STATUS_OK;
}

/* The module of an op begins with the class of the whole model, which inside a wrapper (DDP, FSDP,
 * torch.compile) is another one. Where one of the dumps has a wrapper, ops are therefore told by
 * their scope, the module without that class. Where the search is given up, the ops at the equal
 * ends lose their counterparts, too: half an alignment would look like a whole one. */
enum status dump_align(const struct dump *a, const struct dump *b, struct words *words,
                       uint32_t **of_a, uint32_t **of_b, int *aligned) {
    struct side sides[2] = {{.dump = a}, {.dump = b}};
    const int by_scope = a->is_wrapped || b->is_wrapped;
    struct arena scratch = ARENA_EMPTY;
    TRY(make_keys(words, &sides[0], by_scope));
    TRY(make_keys(words, &sides[1], by_scope));
    TRY(keep_common(words, &sides[0], &sides[1]));
    TRY(keep_common(words, &sides[1], &sides[0]));
    struct search s = {.a = &sides[0], .b = &sides[1]};
    size_t i = sides[0].count, j = sides[1].count;
    while (s.from < i && s.from < j && same(s.a, s.b, s.from, s.from)) {
        pair(s.a, s.b, s.from, s.from);
        s.from++;
    }
    while (i > s.from && j > s.from && same(s.a, s.b, i - 1, j - 1))
        pair(s.a, s.b, --i, --j);
    s.n = i - s.from;
    s.m = j - s.from;
    *aligned = 0;
    const enum status status = search(&s, &scratch, aligned);
    arena_close(&scratch);
    if (status != STATUS_OK) return status;
    if (!*aligned)
        for (int k = 0; k < 2; k++)
            for (size_t r = 0; r < sides[k].dump->count; r++)
                sides[k].match[r] = UINT32_MAX;
    *of_a = sides[0].match;
    *of_b = sides[1].match;
    return STATUS_OK;
}
