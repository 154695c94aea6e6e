/* SPDX-License-Identifier: Apache-2.0
 * The rule of births, both ways, and what is noise.
 *
 * Whatever is known of a value is a byte per word, so a walk takes one step per value. */
#include "dumps/births.h"

#include <string.h>

#include "base/sort.h"
#include "dumps/align.h"

enum {
    KNOWN = 1,   /* the other dump has it, or it was moved from such values */
    MADE = 2,    /* an op of this dump made it before */
    TOLD = 4,    /* an event names it already */
    CARRIED = 8, /* it was moved from values from outside, and nothing was computed of it yet */
    NAMED = 16   /* the event of it is there */
};

/* Where a value from outside came in. */
struct origin {
    uint32_t op, input;
};

struct walk {
    struct words *words;
    const struct dump *dump;
    unsigned char *marks;   /* of each word */
    struct origin *origins; /* of each word that is CARRIED */
    int side;
    struct dump_judgement *out;
};

static enum status add_event(struct walk *walk, enum dump_event_kind kind, uint32_t op,
                             uint32_t input) {
    struct dump_judgement *out = walk->out;
    TRY(arena_grow(walk->words->arena, out->event_count + 1, &out->event_room, sizeof *out->events,
                   "births", &out->events));
    out->events[out->event_count++] = (struct dump_event){
        .kind = kind, .side = walk->side, .op = op, .input = input, .counterpart = UINT32_MAX};
    return STATUS_OK;
}

/* Several things may be computed of what was moved from one value. */
static enum status tell_outside(struct walk *walk, struct origin from) {
    const struct dump_op *op = &walk->dump->ops[from.op];
    unsigned char *mark = &walk->marks[walk->dump->values[op->first + from.input]];
    if (*mark & NAMED) return STATUS_OK;
    *mark |= NAMED | TOLD;
    return add_event(walk, DUMP_OUTSIDE, from.op, from.input);
}

static enum status walk_op(struct walk *walk, uint32_t index) {
    const struct dump_op *op = &walk->dump->ops[index];
    const uint32_t *in = walk->dump->values + op->first, *made = in + op->inputs;
    struct origin from = {UINT32_MAX, 0};
    int clean = 1, born = 0;
    for (uint32_t i = op->ignored; i < op->inputs; i++) {
        unsigned char *mark = &walk->marks[in[i]];
        if (*mark & KNOWN) continue;
        clean = 0;
        if ((*mark & TOLD) || (*mark & (MADE | CARRIED)) == MADE) continue;
        from = *mark & CARRIED ? walk->origins[in[i]] : (struct origin){index, i};
        if (op->moves) continue;
        *mark |= TOLD;
        TRY(tell_outside(walk, from));
    }
    for (uint32_t i = 0; i < op->outputs; i++) {
        unsigned char *mark = &walk->marks[made[i]];
        if (clean && !(*mark & KNOWN)) {
            if (op->moves)
                *mark |= KNOWN;
            else
                born = 1;
        }
        if (op->moves && from.op != UINT32_MAX && !(*mark & (KNOWN | MADE))) {
            *mark |= CARRIED;
            walk->origins[made[i]] = from;
        }
        *mark |= MADE;
    }
    return born ? add_event(walk, DUMP_BIRTH, index, 0) : STATUS_OK;
}

static int op_before(const void *a, const void *b, const void *context) {
    (void)context;
    return ((const struct dump_event *)a)->op < ((const struct dump_event *)b)->op;
}

/* A value that came in early may be told late. */
static enum status order_events(struct dump_judgement *out, size_t begin, struct arena *scratch) {
    const size_t count = out->event_count - begin;
    struct dump_event *spare;
    if (count == 0) return STATUS_OK; /* there may be no list yet */
    TRY(arena_take(scratch, count, sizeof *spare, "births", &spare));
    const void *const sorted =
        sort_stable(out->events + begin, spare, count, sizeof *spare, op_before, NULL);
    if (sorted == spare) memcpy(out->events + begin, spare, count * sizeof *spare);
    return STATUS_OK;
}

/* Adds the events of `dump` against `other`. */
static enum status walk_dump(const struct dump *dump, const struct dump *other, int side,
                             struct words *words, struct dump_judgement *out) {
    struct walk walk = {.words = words, .dump = dump, .side = side, .out = out};
    struct arena scratch = ARENA_EMPTY;
    const size_t begin = out->event_count;
    TRY(arena_take(&scratch, words->count, 1, "values", &walk.marks));
    TRY(arena_take(&scratch, words->count, sizeof *walk.origins, "values", &walk.origins));
    for (size_t i = 0; i < other->value_count; i++)
        walk.marks[other->values[i]] = KNOWN;
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < dump->count; i++)
        status = walk_op(&walk, (uint32_t)i);
    if (status == STATUS_OK) status = order_events(out, begin, &scratch);
    arena_close(&scratch);
    return status;
}

/* ---- noise ---- */

/* Stores a number that two events share if they are one noise that two dumps show: an op of one
 * name and one shape in one module, of one kind and at one input. */
static enum status noise_number(struct words *words, int by_scope, const struct dump *dump,
                                const struct dump_event *event, uint32_t *out) {
    const struct dump_op *op = &dump->ops[event->op];
    const uint32_t key[5] = {by_scope ? op->scope : op->module, op->op, op->shapes,
                             (uint32_t)event->kind, event->input};
    return words_number(words, key, sizeof key, out);
}

/* Adds the keys of what differs between A and a further dump of it. */
static enum status floor_keys(const struct dump *a, const struct dump *floor, struct words *words,
                              struct dump_judgement *scratch, uint32_t **keys, size_t *count,
                              size_t *room) {
    scratch->event_count = 0;
    TRY(walk_dump(floor, a, 1, words, scratch));
    TRY(walk_dump(a, floor, 0, words, scratch));
    for (size_t i = 0; i < scratch->event_count; i++) {
        const struct dump_event *event = &scratch->events[i];
        TRY(arena_grow(words->arena, *count + 1, room, sizeof **keys, "noise", keys));
        TRY(noise_number(words, scratch->by_scope, event->side == 0 ? a : floor, event,
                         &(*keys)[(*count)++]));
    }
    return STATUS_OK;
}

static enum status mark_noise(const struct dump *a, const struct dump *const *floors,
                              size_t floor_count, struct words *words, struct dump_judgement *out) {
    struct dump_judgement scratch = {.words = words, .by_scope = out->by_scope};
    uint32_t *keys = NULL, *own;
    size_t count = 0, room = 0;
    unsigned char *is_noise;
    for (size_t i = 0; i < floor_count; i++)
        TRY(floor_keys(a, floors[i], words, &scratch, &keys, &count, &room));
    TRY(arena_take(words->arena, out->event_count, sizeof *own, "noise", &own));
    for (size_t i = 0; i < out->event_count; i++)
        TRY(noise_number(words, out->by_scope, out->dump[out->events[i].side], &out->events[i],
                         &own[i]));
    TRY(arena_take(words->arena, words->count, 1, "noise", &is_noise));
    for (size_t k = 0; k < count; k++)
        is_noise[keys[k]] = 1;
    for (size_t i = 0; i < out->event_count; i++)
        out->events[i].noise = is_noise[own[i]];
    return STATUS_OK;
}

/* ---- order, site, sums ---- */

/* Places an event of A behind the op of B that the ops before it are aligned with. */
static void place_events(struct dump_judgement *out) {
    const uint32_t *counterpart = out->counterpart[0];
    int64_t behind = -1;
    size_t op = 0;
    for (size_t i = 0; i < out->event_count; i++) { /* those of A come last, in A's order */
        struct dump_event *event = &out->events[i];
        event->counterpart = out->counterpart[event->side][event->op];
        if (event->side == 1) {
            event->place = 4 * (int64_t)event->op;
            continue;
        }
        for (; op <= event->op; op++)
            if (counterpart[op] != UINT32_MAX) behind = counterpart[op];
        event->place = out->is_aligned ? 4 * behind + (event->counterpart == UINT32_MAX ? 2 : 1)
                                       : 4 * (int64_t)event->op + 1;
    }
}

static int event_before(const void *a, const void *b, const void *context) {
    (void)context;
    return ((const struct dump_event *)a)->place < ((const struct dump_event *)b)->place;
}

static uint32_t module_of(const struct dump_judgement *out, const struct dump_event *event) {
    const struct dump_op *op = &out->dump[event->side]->ops[event->op];
    return out->by_scope ? op->scope : op->module;
}

static enum status mark_sites(struct dump_judgement *out, struct arena *arena) {
    unsigned char *sides; /* of each module: bit s says that it has a birth on side s */
    TRY(arena_take(arena, out->words->count, 1, "modules", &sides));
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < out->event_count; i++) {
            struct dump_event *event = &out->events[i];
            const uint32_t module = module_of(out, event);
            if (event->kind != DUMP_BIRTH || event->noise) continue;
            if (pass == 0)
                sides[module] |= (unsigned char)(1 << event->side);
            else
                event->site = sides[module] == 3;
        }
    return STATUS_OK;
}

static enum status sort_events(struct dump_judgement *out, struct arena *arena) {
    struct dump_event *spare;
    place_events(out);
    TRY(mark_sites(out, arena));
    TRY(arena_take(arena, out->event_count, sizeof *spare, "births", &spare));
    out->events = (struct dump_event *)sort_stable(out->events, spare, out->event_count,
                                                   sizeof *spare, event_before, NULL);
    return STATUS_OK;
}

static int pair_differs(const struct dump_judgement *out, uint32_t i) {
    const struct dump *a = out->dump[0], *b = out->dump[1];
    const struct dump_op *x = &a->ops[i], *y = &b->ops[out->counterpart[0][i]];
    if (x->inputs != y->inputs || x->outputs != y->outputs) return 1;
    const size_t from = x->ignored, count = x->inputs + x->outputs - from;
    return count > 0 && memcmp(a->values + x->first + from, b->values + y->first + from,
                               count * sizeof *a->values) != 0;
}

static enum status count_pairs(struct dump_judgement *out, struct arena *arena) {
    unsigned char *born;
    TRY(arena_take(arena, out->dump[0]->count, 1, "ops", &born));
    for (size_t i = 0; i < out->event_count; i++) {
        const struct dump_event *event = &out->events[i];
        const uint32_t op = event->side == 0 ? event->op : event->counterpart;
        if (event->kind == DUMP_BIRTH && op != UINT32_MAX) born[op] = 1;
    }
    out->first_differing = UINT32_MAX;
    for (uint32_t i = 0; i < out->dump[0]->count; i++) {
        if (out->counterpart[0][i] == UINT32_MAX) continue;
        out->aligned++;
        if (!pair_differs(out, i)) continue;
        if (out->differing++ == 0) out->first_differing = i;
        out->inherited += !born[i];
    }
    return STATUS_OK;
}

/* Returns the first birth of B in the module of that birth, where B has one. */
static const struct dump_event *seen_from_b(const struct dump_judgement *out,
                                            const struct dump_event *birth) {
    const uint32_t module = module_of(out, birth);
    for (size_t i = 0; i < out->event_count && birth->site; i++) {
        const struct dump_event *event = &out->events[i];
        if (event->site && event->side == 1 && module_of(out, event) == module) return event;
    }
    return birth;
}

/* The event that the first line names. A value from outside that is used before every birth comes
 * first: what was made of it cannot be told from what was made otherwise. Then the first birth that
 * has a counterpart in its module, then the first of all: an op that only one side has (a mask that
 * the other kernel makes inside) is no difference by itself. Of a module where both sides have
 * births it is B's: A is what one knows. */
static const struct dump_event *choose_first(const struct dump_judgement *out) {
    const struct dump_event *birth = NULL, *outside = NULL;
    for (size_t i = 0; i < out->event_count; i++) {
        const struct dump_event *event = &out->events[i];
        if (event->noise) continue;
        if (event->kind == DUMP_OUTSIDE && outside == NULL) outside = event;
        if (event->kind != DUMP_BIRTH) continue;
        if (birth == NULL || (event->site && !birth->site)) birth = event;
    }
    if (birth != NULL) birth = seen_from_b(out, birth);
    return outside != NULL && (birth == NULL || outside->place < birth->place) ? outside : birth;
}

/* Whether all hashes of a value, "f32[2]|nan|nan", are NaN. Texts of a user's own have quotes. */
static int is_blank(const char *value) {
    const char *hash = strchr(value, '|');
    if (hash == NULL) return 0;
    for (; hash != NULL; hash = strchr(hash + 1, '|'))
        if (strncmp(hash + 1, "nan", 3) != 0 || (hash[4] != '\0' && hash[4] != '|')) return 0;
    return 1;
}

/* Counts what no hash tells apart. What is overwritten unread does not matter. */
static void count_blank(struct dump_judgement *out) {
    for (int side = 1; side >= 0; side--) {
        const struct dump *dump = out->dump[side];
        for (size_t i = dump->count; i-- > 0;) {
            const struct dump_op *op = &dump->ops[i];
            uint64_t blank = 0;
            for (uint32_t v = op->ignored; v < op->inputs + op->outputs; v++)
                blank += (uint64_t)is_blank(out->words->list[dump->values[op->first + v]].text);
            if (blank == 0) continue;
            out->blank += blank;
            out->blank_side = side;
            out->first_blank = (uint32_t)i;
        }
    }
}

static enum dump_verdict verdict_of(const struct dump_judgement *out) {
    if (out->first != NULL) return DUMP_DIFFERS;
    if (out->noise > 0) return DUMP_ONLY_NOISE;
    return out->differing > 0 || out->blank > 0 ? DUMP_UNDECIDED : DUMP_EQUAL;
}

int64_t dump_other_input(const struct dump_judgement *j, const struct dump_event *event) {
    const struct dump *here = j->dump[event->side], *there = j->dump[!event->side];
    const struct dump_op *op = &here->ops[event->op], *like = &there->ops[event->counterpart];
    for (uint32_t i = 0; i < op->inputs || i < like->inputs; i++) {
        if (i >= op->inputs || i >= like->inputs) return i;
        if (i >= op->ignored && here->values[op->first + i] != there->values[like->first + i])
            return i;
    }
    return -1;
}

enum status dump_judge(const struct dump *a, const struct dump *b, const struct dump *const *floors,
                       size_t floor_count, struct words *words, struct dump_judgement *out) {
    struct arena *arena = words->arena;
    memset(out, 0, sizeof *out);
    out->words = words;
    out->dump[0] = a;
    out->dump[1] = b;
    out->floors = floor_count;
    TRY(dump_comparable(a, b));
    for (size_t i = 0; i < floor_count; i++)
        TRY(dump_comparable(a, floors[i]));
    out->by_scope = a->is_wrapped || b->is_wrapped;
    for (size_t i = 0; i < floor_count; i++)
        out->by_scope |= floors[i]->is_wrapped;
    TRY(dump_align(a, b, words, &out->counterpart[0], &out->counterpart[1], &out->is_aligned));
    TRY(walk_dump(b, a, 1, words, out));
    TRY(walk_dump(a, b, 0, words, out));
    TRY(mark_noise(a, floors, floor_count, words, out));
    TRY(sort_events(out, arena));
    TRY(count_pairs(out, arena));
    for (size_t i = 0; i < out->event_count; i++) {
        const struct dump_event *event = &out->events[i];
        if (event->noise)
            out->noise++;
        else if (event->kind == DUMP_BIRTH)
            out->births[event->side]++;
        else
            out->outside[event->side]++;
    }
    out->first = choose_first(out);
    count_blank(out);
    out->verdict = verdict_of(out);
    return STATUS_OK;
}

/* ---- literals ---- */

static int is_separator(char c) {
    return c == ',' || c == ' ' || c == '[' || c == ']' || c == '(' || c == ')' || c == '=';
}

void dump_changed(const char *a, const char *b, struct dump_change *out) {
    size_t n = strlen(a), m = strlen(b), from = 0;
    while (from < n && from < m && a[from] == b[from])
        from++;
    while (from > 0 && !is_separator(a[from - 1]))
        from--;
    while (n > from && m > from && a[n - 1] == b[m - 1])
        n--, m--;
    while (a[n] != '\0' && !is_separator(a[n]))
        n++;
    while (b[m] != '\0' && !is_separator(b[m]))
        m++;
    *out = (struct dump_change){{a + from, b + from}, {n - from, m - from}};
}
