/* SPDX-License-Identifier: Apache-2.0
 * Texts come from strangers' files; determinism/trace/trace_check.c has seen to it that their lines
 * are "key: value" and that they hold no control characters. */
#include "forensics/compare_foreign.h"

#include <string.h>

/* A line "key: value"; the pieces point into the text. */
struct line {
    const char *key, *value;
    size_t key_length, value_length;
};

/* Takes the next line that has a colon off *text; returns 0 at the end. */
static int next_line(const char **text, struct line *out) {
    while (**text != '\0') {
        const char *line = *text;
        const size_t length = strcspn(line, "\n");
        const char *colon = (const char *)memchr(line, ':', length);
        *text = line + length + (line[length] == '\n');
        if (colon == NULL) continue;
        const char *value = colon + 1 + strspn(colon + 1, " \t");
        const char *end = line + length;
        *out = (struct line){line, value < end ? value : end, (size_t)(colon - line),
                             value < end ? (size_t)(end - value) : 0};
        return 1;
    }
    return 0;
}

static int find_key(const char *text, const struct line *key, struct line *out) {
    while (next_line(&text, out))
        if (out->key_length == key->key_length && memcmp(out->key, key->key, key->key_length) == 0)
            return 1;
    return 0;
}

#define PIECE(line) (int)(line).value_length, (line).value

/* The keys named up to here. */
struct named {
    struct arena *arena;
    char *text;
    size_t count, most; /* how many differ, and how many of them are named; most 0: all */
};

static int is_named(struct named *named) {
    return named->count++ < named->most || named->most == 0;
}

/* Adds one key; a value of NULL says that the run does not have it. */
static enum status add_key(const struct trace_run_plan *a, const struct trace_run_plan *b,
                           const struct line *in_a, const struct line *in_b, struct named *named) {
    static const char absent[] = "not there";
    const struct line *key = in_a != NULL ? in_a : in_b;
    const struct line missing = {NULL, absent, 0, sizeof absent - 1};
    struct line cause = missing;
    if (!is_named(named)) return STATUS_OK;
    const int caused =
        find_key(a->foreign->causes, key, &cause) || find_key(b->foreign->causes, key, &cause);
    return arena_format(named->arena, &named->text, "%s%s%.*s: %.*s | %.*s%s%.*s%s", named->text,
                        named->text[0] == '\0' ? "" : "; ", (int)key->key_length, key->key,
                        PIECE(in_a != NULL ? *in_a : missing),
                        PIECE(in_b != NULL ? *in_b : missing), caused ? " (" : "",
                        caused ? (int)cause.value_length : 0, cause.value, caused ? ")" : "");
}

/* Length of "args" in a key "args.seed"; 0 for a key of no group. */
static size_t group_length(const struct line *key) {
    const char *dot = (const char *)memchr(key->key, '.', key->key_length);
    return dot == NULL ? 0 : (size_t)(dot - key->key);
}

static unsigned count_group(const char *text, const char *group, size_t length) {
    struct line line;
    unsigned count = 0;
    while (next_line(&text, &line))
        count +=
            length > 0 && group_length(&line) == length && memcmp(line.key, group, length) == 0;
    return count;
}

/* From so many keys on a group that one run has and the other one has nothing of is told as one, so
 * that it does not hide what differs: a loop of one's own has no arguments of a trainer. */
enum { GROUP_LEAST = 4 };

static int stands_alone(const char *own, const char *other, const struct line *key) {
    const size_t length = group_length(key);
    return count_group(other, key->key, length) == 0 &&
           count_group(own, key->key, length) >= GROUP_LEAST;
}

/* Adds the groups that stand in `own` alone, each at its first key. */
static enum status add_groups(const char *own, const char *other, int in_a, struct named *named) {
    const char *at = own, *line = own;
    struct line key, before;
    for (; next_line(&at, &key); line = at) {
        const size_t length = group_length(&key);
        int first = stands_alone(own, other, &key);
        for (const char *past = own; first && past < line && next_line(&past, &before);)
            first = group_length(&before) != length || memcmp(before.key, key.key, length) != 0;
        if (!first || !is_named(named)) continue;
        const unsigned count = count_group(own, key.key, length);
        TRY(arena_format(
            named->arena, &named->text,
            in_a ? "%s%s%.*s.*: %u keys | not there" : "%s%s%.*s.*: not there | %u keys",
            named->text, named->text[0] == '\0' ? "" : "; ", (int)length, key.key, count));
    }
    return STATUS_OK;
}

/* Length of "optimizer.0.1." in a key of a parameter group, of which the last number is the
 * group's; 0 for another key. */
static size_t parameter_group(const struct line *key) {
    static const char optimizer[] = "optimizer.";
    size_t at = sizeof optimizer - 1;
    if (key->key_length <= at || memcmp(key->key, optimizer, at) != 0) return 0;
    for (int number = 0; number < 2; number++) {
        const size_t begin = at;
        while (at < key->key_length && key->key[at] >= '0' && key->key[at] <= '9')
            at++;
        if (at == begin || at >= key->key_length || key->key[at] != '.') return 0;
        at++;
    }
    return at;
}

static int has_prefix(const char *text, const char *prefix, size_t length) {
    struct line line;
    while (next_line(&text, &line))
        if (line.key_length >= length && memcmp(line.key, prefix, length) == 0) return 1;
    return 0;
}

/* A key of a parameter group that one run alone has is told by that group, once, at the first of
 * its keys. Sets *out to 0 for any other key. */
static enum status add_parameter_group(const char *own, const char *other, const struct line *key,
                                       int in_a, struct named *named, int *out) {
    static const char decay[] = "weight_decay";
    const size_t length = parameter_group(key);
    const char *at = own;
    struct line before, found = {NULL, "", 0, 0};
    *out = length > 0 && !has_prefix(other, key->key, length);
    if (!*out) return STATUS_OK;
    while (next_line(&at, &before) && before.key != key->key)
        if (before.key_length >= length && memcmp(before.key, key->key, length) == 0)
            return STATUS_OK;
    if (!is_named(named)) return STATUS_OK;
    for (at = own; next_line(&at, &before);)
        if (before.key_length == length + sizeof decay - 1 &&
            memcmp(before.key, key->key, length) == 0 &&
            memcmp(before.key + length, decay, sizeof decay - 1) == 0)
            found = before;
    return arena_format(named->arena, &named->text,
                        "%s%s%.*s: this parameter group is in %c alone%s%.*s%s", named->text,
                        named->text[0] == '\0' ? "" : "; ", (int)length - 1, key->key,
                        in_a ? 'A' : 'B', found.key != NULL ? " (weight decay " : "", PIECE(found),
                        found.key != NULL ? ")" : "");
}

enum status compare_configurations(const struct trace_run_plan *a, const struct trace_run_plan *b,
                                   size_t most, struct arena *arena, const char **out) {
    const char *at = a->configuration;
    struct line here, there;
    struct named named = {.arena = arena, .most = most};
    TRY(arena_format(arena, &named.text, "%s", ""));
    while (next_line(&at, &here)) {
        const int both = find_key(b->configuration, &here, &there);
        if (both && here.value_length == there.value_length &&
            memcmp(here.value, there.value, here.value_length) == 0)
            continue;
        if (!both && stands_alone(a->configuration, b->configuration, &here)) continue;
        int grouped = 0;
        if (!both)
            TRY(add_parameter_group(a->configuration, b->configuration, &here, 1, &named,
                                    &grouped));
        if (!grouped) TRY(add_key(a, b, &here, both ? &there : NULL, &named));
    }
    at = b->configuration;
    while (next_line(&at, &here))
        if (!find_key(a->configuration, &here, &there) &&
            !stands_alone(b->configuration, a->configuration, &here)) {
            int grouped;
            TRY(add_parameter_group(b->configuration, a->configuration, &here, 0, &named,
                                    &grouped));
            if (!grouped) TRY(add_key(a, b, NULL, &here, &named));
        }
    TRY(add_groups(a->configuration, b->configuration, 1, &named));
    TRY(add_groups(b->configuration, a->configuration, 0, &named));
    if (most > 0 && named.count > most)
        TRY(arena_format(arena, &named.text, "%s; and %zu more", named.text, named.count - most));
    *out = named.text;
    return STATUS_OK;
}

static int ends_with(const struct line *key, const char *end) {
    const size_t length = strlen(end);
    return key->key_length > length &&
           memcmp(key->key + key->key_length - length, end, length) == 0;
}

/* Tells whether a key is a setting of an optimizer's step. The LR is judged by its column, and
 * which kernel steps moves a weight by rounding alone. */
static int is_of_step(const struct line *key) {
    static const char optimizer[] = "optimizer.", clip[] = "args.max_grad_norm";
    static const char *const others[] = {".lr",    ".initial_lr", ".foreach",
                                         ".fused", ".capturable", ".differentiable"};
    if (key->key_length == sizeof clip - 1 && memcmp(key->key, clip, sizeof clip - 1) == 0)
        return 1;
    if (key->key_length < sizeof optimizer ||
        memcmp(key->key, optimizer, sizeof optimizer - 1) != 0)
        return 0;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (ends_with(key, others[i])) return 0;
    return 1;
}

/* Tells whether a setting of `a` is another one in `b`. Of one that `b` does not have nothing
 * follows, since versions of torch list other ones; but a decay of a further group is one. */
static int step_apart(const char *a, const char *b) {
    struct line here, there;
    while (next_line(&a, &here)) {
        if (!is_of_step(&here)) continue;
        if (!find_key(b, &here, &there)) {
            if (ends_with(&here, ".weight_decay")) return 1;
            continue;
        }
        if (here.value_length != there.value_length ||
            memcmp(here.value, there.value, here.value_length) != 0)
            return 1;
    }
    return 0;
}

/* Whether a configuration tells of optimizers at all. */
static int tells_step(const char *text) {
    struct line line;
    while (next_line(&text, &line))
        if (is_of_step(&line)) return 1;
    return 0;
}

int compare_optimizers_apart(const struct trace_run_plan *a, const struct trace_run_plan *b) {
    return tells_step(a->configuration) && tells_step(b->configuration) &&
           (step_apart(a->configuration, b->configuration) ||
            step_apart(b->configuration, a->configuration));
}

enum status compare_order_of(const struct trace_run_plan *plan, const struct record *record,
                             struct arena *arena, const char **out) {
    int64_t last = -1;
    char *text;
    TRY(arena_format(arena, &text, "%s", ""));
    for (uint32_t shown = 0; shown < plan->shape.phases; shown++) {
        uint32_t next = plan->shape.phases;
        for (uint32_t i = 0; i < plan->shape.phases; i++) {
            const int64_t place = record->phase_places[i][PHASE_PLACE];
            if (place > last &&
                (next == plan->shape.phases || place < record->phase_places[next][PHASE_PLACE]))
                next = i;
        }
        if (next == plan->shape.phases) break;
        last = record->phase_places[next][PHASE_PLACE];
        TRY(arena_format(arena, &text, "%s%s%s", text, text[0] == '\0' ? "" : ", ",
                         plan->phases[next]));
    }
    *out = text;
    return STATUS_OK;
}

enum status compare_orders(const struct trace_run *a, const struct trace_run *b,
                           struct arena *arena, const char **out) {
    *out = "";
    if (a->plan.shape.phases == 0 || b->plan.shape.phases == 0) return STATUS_OK;
    for (uint64_t i = 0, j = 0; i < a->updates && j < b->updates;) {
        const struct record *x = trace_row(a, i), *y = trace_row(b, j);
        i += x->step <= y->step;
        j += y->step <= x->step;
        if (x->step != y->step) continue;
        struct arena scratch = ARENA_EMPTY;
        const char *orders[2] = {"", ""};
        char *text = NULL;
        enum status status = compare_order_of(&a->plan, x, &scratch, &orders[0]);
        if (status == STATUS_OK) status = compare_order_of(&b->plan, y, &scratch, &orders[1]);
        const int differ = status == STATUS_OK && orders[0][0] != '\0' && orders[1][0] != '\0' &&
                           strcmp(orders[0], orders[1]) != 0;
        if (differ)
            status = arena_format(arena, &text, "update %ju: A %s; B %s", (uintmax_t)x->step,
                                  orders[0], orders[1]);
        arena_close(&scratch);
        TRY(status);
        if (!differ) continue;
        *out = text;
        return STATUS_OK;
    }
    return STATUS_OK;
}

/* The place of a phase in an update, -1: it did not run, INT64_MIN: that is not known. A run of
 * ours lists its phases in the order in which they run, and one that did not has no digest. */
static int64_t place_of(const struct trace_run *run, const struct record *record,
                        const char *phase) {
    if (run->plan.foreign != NULL) return trace_phase_place(run, record, phase);
    for (uint32_t i = 0; i < run->plan.shape.phases; i++)
        if (strcmp(run->plan.phases[i], phase) == 0)
            return record_has_digest(record->phases[i]) ? (int64_t)i : -1;
    return run->plan.shape.phases > 0 ? -1 : INT64_MIN;
}

/* Tells whether gradients of an update stay for the next one: no zero_grad comes between its
 * backward pass and the next one. */
static int keeps(const struct trace_run *run, const struct record *record,
                 const struct record *next) {
    const int64_t after = place_of(run, record, "zero"), here = place_of(run, record, "backward");
    const int64_t before = place_of(run, next, "zero"), back = place_of(run, next, "backward");
    if (after == INT64_MIN || back < 0) return -1;
    return !(after > here) && !(before >= 0 && before < back);
}

/* Tells whether a loop does `kind` in an update: 1 or 0, or -1 where its phases do not say. `next`
 * is the update behind it, or NULL. */
static int does(const struct trace_run *run, const struct record *record, const struct record *next,
                int32_t kind) {
    const int64_t backward = place_of(run, record, "backward");
    const int64_t step = place_of(run, record, "optimize"), zero = place_of(run, record, "zero");
    const int64_t clip = place_of(run, record, "clip"), unscale = place_of(run, record, "unscale");
    if (backward < 0 || step < 0) return -1;
    if (kind == COMPARE_LOOP_SCALED) return clip < 0 || unscale < 0 ? -1 : clip < unscale;
    if (kind == COMPARE_LOOP_KEEPS) return next == NULL ? -1 : keeps(run, record, next);
    return zero == INT64_MIN ? -1 : zero > backward && zero < step;
}

struct compare_loop compare_loops(const struct trace_run *a, const struct trace_run *b) {
    for (uint64_t i = 0, j = 0; i < a->updates && j < b->updates;) {
        const struct record *x = trace_row(a, i), *y = trace_row(b, j);
        i += x->step <= y->step;
        j += y->step <= x->step;
        if (x->step != y->step) continue;
        const struct record *const p = i < a->updates ? trace_row(a, i) : NULL;
        const struct record *const q = j < b->updates ? trace_row(b, j) : NULL;
        for (int32_t kind = COMPARE_LOOP_KEEPS; kind <= COMPARE_LOOP_SCALED; kind++) {
            const int here = does(a, x, p, kind), there = does(b, y, q, kind);
            if (here < 0 || there < 0 || here == there) continue;
            return (struct compare_loop){kind, there, x->step};
        }
    }
    return (struct compare_loop){COMPARE_LOOP_ALIKE, 0, 0};
}

/* Tells whether a row has a forward call in training: 1, 0, or -1 where its phases do not say. */
static int goes_forward(const struct trace_run *run, const struct record *record) {
    const int64_t place = trace_phase_place(run, record, "forward");
    return trace_phase_place(run, record, "backward") < 0 || place == INT64_MIN ? -1 : place >= 0;
}

struct compare_unseen compare_unseen_of(const struct trace_run *a, const struct trace_run *b) {
    struct compare_unseen out = {0, 0, 0, 0};
    int seen[2] = {0, 0};
    for (uint64_t i = 0, j = 0; i < a->updates && j < b->updates;) {
        const struct record *x = trace_row(a, i), *y = trace_row(b, j);
        i += x->step <= y->step;
        j += y->step <= x->step;
        const int here = x->step <= y->step ? goes_forward(a, x) : -1;
        const int there = y->step <= x->step ? goes_forward(b, y) : -1;
        if (here >= 0 && there >= 0 && here != there) {
            if (out.update == 0) out = (struct compare_unseen){x->step, 0, here, !seen[here]};
            out.updates += out.side == here;
        }
        seen[0] |= here > 0;
        seen[1] |= there > 0;
    }
    return out;
}

int compare_has_key(const struct trace_run_plan *plan, const char *key) {
    const struct line wanted = {key, NULL, strlen(key), 0};
    struct line found;
    return find_key(plan->configuration, &wanted, &found);
}

enum compare_known compare_key(const struct trace_run_plan *a, const struct trace_run_plan *b,
                               const char *key) {
    const struct line wanted = {key, NULL, strlen(key), 0};
    struct line here, there;
    const int in_a = find_key(a->configuration, &wanted, &here),
              in_b = find_key(b->configuration, &wanted, &there);
    if (in_a != in_b) return COMPARE_UNKNOWN;
    if (!in_a) return COMPARE_ALIKE;
    return here.value_length == there.value_length &&
                   memcmp(here.value, there.value, here.value_length) == 0
               ? COMPARE_ALIKE
               : COMPARE_APART;
}

/* Tells whether a key says which kernel of an optimizer steps. */
static int is_of_kernel(const struct line *key) {
    static const char optimizer[] = "optimizer.";
    return key->key_length > sizeof optimizer - 1 &&
           memcmp(key->key, optimizer, sizeof optimizer - 1) == 0 &&
           (ends_with(key, ".foreach") || ends_with(key, ".fused") ||
            ends_with(key, ".capturable"));
}

int compare_kernels_apart(const struct trace_run_plan *a, const struct trace_run_plan *b) {
    const char *at = a->configuration;
    struct line here, there;
    while (next_line(&at, &here))
        if (is_of_kernel(&here) && find_key(b->configuration, &here, &there) &&
            (here.value_length != there.value_length ||
             memcmp(here.value, there.value, here.value_length) != 0))
            return 1;
    return 0;
}

const char *compare_labels_key(const struct trace_run_plan *a, const struct trace_run_plan *b) {
    static const char *const keys[] = {"args.completion_only_loss", "args.assistant_only_loss",
                                       "args.label_smoothing_factor"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (compare_key(a, b, keys[i]) == COMPARE_APART) return keys[i];
    return NULL;
}

int compare_reference_moves(const struct trace_run_plan *a, const struct trace_run_plan *b) {
    return compare_key(a, b, "args.sync_ref_model") == COMPARE_APART;
}

/* Tells whether a key is none of what whoever trains has set, or a seed. */
static int is_no_setting(const struct line *key) {
    static const char env[] = "env.";
    static const char *const names[] = {"frozen", "not_recorded"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (key->key_length == strlen(names[i]) && memcmp(key->key, names[i], key->key_length) == 0)
            return 1;
    return (key->key_length >= sizeof env - 1 && memcmp(key->key, env, sizeof env - 1) == 0) ||
           ends_with(key, "seed") || (key->key_length == 4 && memcmp(key->key, "seed", 4) == 0);
}

/* Tells whether a key acts in the optimizer's step or behind it, and so moves no gradient of the
 * first update. */
static int is_behind_gradient(const struct line *key) {
    static const char optimizer[] = "optimizer.";
    static const char *const names[] = {
        "args.learning_rate", "args.weight_decay",        "args.adam_beta1",
        "args.adam_beta2",    "args.adam_epsilon",        "args.max_grad_norm",
        "args.optim",         "args.optim_args",          "args.lr_scheduler_type",
        "args.warmup_steps",  "args.lr_scheduler_kwargs", "args.warmup_ratio"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (key->key_length == strlen(names[i]) && memcmp(key->key, names[i], key->key_length) == 0)
            return 1;
    return key->key_length > sizeof optimizer - 1 &&
           memcmp(key->key, optimizer, sizeof optimizer - 1) == 0;
}

static int settings_apart(const char *a, const char *b, int before_step) {
    struct line here, there;
    while (next_line(&a, &here)) {
        if (is_no_setting(&here) || (before_step && is_behind_gradient(&here))) continue;
        if (!find_key(b, &here, &there) || here.value_length != there.value_length ||
            memcmp(here.value, there.value, here.value_length) != 0)
            return 1;
    }
    return 0;
}

int compare_settings_apart(const struct trace_run_plan *a, const struct trace_run_plan *b) {
    return settings_apart(a->configuration, b->configuration, 0) ||
           settings_apart(b->configuration, a->configuration, 0);
}

int compare_others_apart(const struct trace_run_plan *a, const struct trace_run_plan *b) {
    return settings_apart(a->configuration, b->configuration, 1) ||
           settings_apart(b->configuration, a->configuration, 1);
}
