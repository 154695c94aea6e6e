/* SPDX-License-Identifier: Apache-2.0
 * Settings of the optimizer and of clipping that two recordings of other programs have behind a
 * restart and that are not those of before: whoever resumed changed them, and the state of the
 * optimizer may be whole. */
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/real.h"
#include "forensics/trajectory_parts.h"
#include "forensics/words.h"

/* What is appended to the text of settings; more than fits is left out with three dots. */
struct changes {
    char text[400];
    size_t used;
};

static void add(struct changes *changes, const char *what) {
    const size_t length = strlen(what), room = sizeof changes->text - 6;
    if (changes->used > room) return;
    const int written =
        changes->used + length + 2 > room
            ? snprintf(changes->text + changes->used, 6, ", ...")
            : snprintf(changes->text + changes->used, sizeof changes->text - changes->used, "%s%s",
                       changes->used > 0 ? ", " : "", what);
    changes->used = written > 0 && changes->used + length + 2 <= room
                        ? changes->used + (size_t)written
                        : sizeof changes->text;
}

/* A line "optimizer.0.1.betas: (0.9, 0.99)" of a configuration: of which optimizer and parameter
 * group it is, and where its name and value stand. */
struct setting {
    unsigned optimizer, group;
    const char *name, *value;
    size_t name_length, value_length;
};

static int is_one_of(const struct setting *setting, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (setting->name_length == strlen(names[i]) &&
            memcmp(setting->name, names[i], setting->name_length) == 0)
            return 1;
    return 0;
}

/* What a rule uses and no trainer is known to move from update to update, and the decay, of which
 * the rows say what was applied. */
static int is_kept(const struct setting *setting) {
    static const char *const names[] = {"weight_decay", "eps",         "dampening",
                                        "nesterov",     "amsgrad",     "maximize",
                                        "decay_rate",   "beta2_decay", "clip_threshold",
                                        "alpha",        "centered",    "decoupled_weight_decay"};
    return is_one_of(setting, names, COUNT_OF(names));
}

/* OneCycleLR and CyclicLR move these with the LR, and leave their range in the group. */
static int is_cycled(const struct setting *setting) {
    static const char *const names[] = {"betas", "momentum", "beta1"};
    return is_one_of(setting, names, COUNT_OF(names));
}

/* Reads the next line that is such a setting, and moves *at behind it. Returns 0 at the end. */
static int next_setting(const char **at, struct setting *out) {
    while (**at != '\0') {
        const char *const line = *at, *const end = line + strcspn(line, "\n");
        int used = 0;
        *at = *end == '\n' ? end + 1 : end;
        if (sscanf(line, "optimizer.%3u.%3u.%n", &out->optimizer, &out->group, &used) != 2 ||
            used == 0)
            continue;
        const char *const colon = line + strcspn(line, ":\n");
        if (*colon != ':' || colon + 2 > end) continue; /* what was read has no colon */
        out->name = line + used;
        out->name_length = (size_t)(colon - out->name);
        out->value = colon + 2;
        out->value_length = (size_t)(end - out->value);
        return 1;
    }
    return 0;
}

/* Finds the same setting in another configuration. */
static int find_setting(const char *configuration, const struct setting *of, struct setting *out) {
    while (next_setting(&configuration, out))
        if (out->optimizer == of->optimizer && out->group == of->group &&
            out->name_length == of->name_length &&
            memcmp(out->name, of->name, of->name_length) == 0)
            return 1;
    return 0;
}

static int has_cycle(const char *configuration, const struct setting *of) {
    static const char *const names[] = {"max_momentum", "base_momentum"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct setting wanted = *of, found;
        wanted.name = names[i];
        wanted.name_length = strlen(names[i]);
        if (find_setting(configuration, &wanted, &found)) return 1;
    }
    return 0;
}

/* Tells whether the setting may have moved by itself since the recording of before began. */
static int may_move(const char *after, const struct setting *setting, int same_decay) {
    static const char *const decay[] = {"weight_decay"};
    return (same_decay && is_one_of(setting, decay, 1)) ||
           (is_cycled(setting) && has_cycle(after, setting));
}

/* `same_decay`: both rows say that as much weight decay was applied as before. */
static void add_optimizers(struct changes *changes, const char *before, const char *after,
                           int same_decay) {
    struct setting was, is;
    while (next_setting(&before, &was)) {
        char what[384], which[48] = "";
        if ((!is_kept(&was) && !is_cycled(&was)) || !find_setting(after, &was, &is) ||
            may_move(after, &was, same_decay) ||
            (was.value_length == is.value_length &&
             memcmp(was.value, is.value, was.value_length) == 0))
            continue;
        if (was.optimizer > 0) snprintf(which, sizeof which, " of optimizer %u", was.optimizer);
        snprintf(what, sizeof what, "%.*s of group %u%s was %.*s and is %.*s", (int)was.name_length,
                 was.name, was.group, which, (int)(was.value_length < 48 ? was.value_length : 48),
                 was.value, (int)(is.value_length < 48 ? is.value_length : 48), is.value);
        add(changes, what);
    }
}

/* torch adds this to the norm before it divides max_norm by it. */
#define BESIDE_NORM 1e-6
/* Share by which two thresholds of clipping may differ: coefficients and norms are recorded as
 * numbers of binary32. */
#define SAME_THRESHOLD 1e-5

/* Returns the norm to which an update was clipped; NaN where it was not clipped. */
static double clipped_to(const struct record *row) {
    const double coefficient = row->reals[REAL_CLIP_COEF], norm = row->reals[REAL_GRAD_NORM];
    return coefficient > 0.0 && coefficient < 1.0 ? coefficient * (norm + BESIDE_NORM)
                                                  : real_nan_f64();
}

static void add_clipping(struct changes *changes, const struct record *x, const struct record *y) {
    char what[384];
    const double was = clipped_to(x), is = clipped_to(y);
    if (x->reals[REAL_GRAD_NORM] != y->reals[REAL_GRAD_NORM] || (was != was && is != is)) return;
    /* A coefficient of 1 is recorded where the threshold lies above the norm. */
    if (was == was && is == is) {
        if (real_abs_f64(was - is) <= SAME_THRESHOLD * was) return;
        snprintf(what, sizeof what,
                 "clipping was to a norm of %s and is to %s (clip_coef times grad_norm)",
                 word_about(was).text, word_about(is).text);
    } else {
        const double other = was == was ? y->reals[REAL_CLIP_COEF] : x->reals[REAL_CLIP_COEF];
        if (!(other >= 1.0)) return;
        snprintf(what, sizeof what, "clipping %s to a norm of %s and %s (clip_coef)",
                 was == was ? "was" : "is", word_about(was == was ? was : is).text,
                 was == was ? "is not" : "was not");
    }
    add(changes, what);
}

/* Tells whether every parameter group that both rows have applied as much weight decay. */
static int is_same_decay(const struct trace_run_plan *a, const struct trace_run_plan *b,
                         const struct record *x, const struct record *y) {
    for (uint32_t g = 0; g < a->shape.groups && g < b->shape.groups; g++) {
        const double was = x->groups[g][GROUP_WD_APPLIED], is = y->groups[g][GROUP_WD_APPLIED];
        if (was != is) return 0; /* also where one is not recorded */
    }
    return a->shape.groups > 0 && b->shape.groups > 0;
}

enum status trajectory_note_settings(struct trajectory_judging *judging, const struct record *x,
                                     const struct record *y) {
    const struct trace_run_plan *const a = &judging->before->run->plan, *const b = &judging->after
                                                                                        ->run->plan;
    struct changes changes = {"", 0};
    char *text;
    if (a->foreign == NULL || b->foreign == NULL || a->configuration == NULL ||
        b->configuration == NULL)
        return STATUS_OK;
    add_optimizers(&changes, a->configuration, b->configuration, is_same_decay(a, b, x, y));
    add_clipping(&changes, x, y);
    if (changes.text[0] == '\0') return STATUS_OK;
    TRY(arena_format(judging->arena, &text, "%s", changes.text));
    judging->out->settings = text;
    return STATUS_OK;
}
