/* SPDX-License-Identifier: Apache-2.0
 * Whether what differs between two arms can reach a weight, or is in what they report alone.
 *
 * It goes by the keys in which the configurations differ, and never by how far a run went: a
 * schedule whose LR is logged one update before it is applied, or whose updates were all skipped so
 * far, reaches weights in an update that this run did not see. The keys that never do are listed
 * here; any other one may, also one that a later version adds. Arms whose configurations are equal,
 * as those of other programs may be, are told apart by what they report: an LR and a loss scale are
 * read by a later update, other numbers by none. Invariant: nothing is trained or evaluated. */
#include "evidence/judge_parts.h"

#include <math.h>
#include <string.h>

static int starts_with(const char *text, const char *head) {
    return strncmp(text, head, strlen(head)) == 0;
}

/* The value of a key of either arm; "", of length 0, where its text has no such key. */
struct value {
    const char *text;
    size_t length;
};

static struct value value_of(const struct trace_run *run, const char *key) {
    struct value value = {NULL, 0};
    value.text = config_text_value(run->plan.configuration, key, &value.length);
    if (value.text == NULL) value.text = "";
    return value;
}

/* Whether this entry of a list of phases is one of the words. */
static int is_among(struct value phase, const char *const *words) {
    for (; *words != NULL; words++)
        if (strlen(*words) == phase.length && starts_with(phase.text, *words)) return 1;
    return 0;
}

/* The next entry of a list of phases, "[clip, log]", that is none of the words. *list moves behind
 * it; the entry has length 0 at the end. */
static struct value next_phase(struct value *list, const char *const *without) {
    static const char between[] = "[], ";
    struct value phase;
    do {
        while (list->length > 0 && strchr(between, *list->text) != NULL) {
            list->text++;
            list->length--;
        }
        phase = (struct value){list->text, 0};
        while (phase.length < list->length && strchr(between, phase.text[phase.length]) == NULL)
            phase.length++;
        list->text += phase.length;
        list->length -= phase.length;
    } while (phase.length > 0 && is_among(phase, without));
    return phase;
}

static int same_value(struct value a, struct value b) {
    return a.length == b.length && memcmp(a.text, b.text, a.length) == 0;
}

/* Whether two lists of phases have the same phases in the same order, but for these: they write
 * nothing that another phase reads. */
static int same_but_for(struct value a, struct value b, const char *const *words) {
    for (;;) {
        const struct value x = next_phase(&a, words), y = next_phase(&b, words);
        if (!same_value(x, y)) return 0;
        if (x.length == 0) return 1;
    }
}

static int both_say(const struct judging *judging, const char *key, const char *value) {
    for (int arm = 0; arm < 2; arm++)
        if (!config_text_says(judging->run[arm]->plan.configuration, key, value)) return 0;
    return 1;
}

/* Whether a rule looks at the loss and the gradient norm of an update to say whether it is skipped.
 * What it looks at then is no mere report. */
static int reports_are_read(const struct judging *judging) {
    for (int arm = 0; arm < 2; arm++)
        if (config_text_says(judging->run[arm]->plan.configuration, "loop.skip", "olmo-outlier"))
            return 1;
    return 0;
}

/* Whether the key is one of those that say what is logged. A contract and its numbers have become
 * the keys of the loop and of the schedule, which stand in the text themselves. */
static int is_of_the_log(const char *key) {
    static const char *const keys[] = {"loss.logged",       "parallel.logged",
                                       "schedule.logged",   "schedule.logged_shift",
                                       "schedule.contract", "schedule.processes",
                                       "schedule.rescaled", "schedule.updates_per_epoch"};
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (strcmp(keys[i], key) == 0) return 1;
    return 0;
}

/* Whether the key shapes the gradient norm, in two arms that multiply no gradient by what follows
 * from it. */
static int is_of_a_norm_without_use(const struct judging *judging, const char *key) {
    const int of_norm = starts_with(key, "clip.") || strcmp(key, "parallel.counts") == 0;
    return of_norm &&
           (both_say(judging, "clip.max_norm", "0") || (both_say(judging, "clip.apply", "copy")));
}

/* Whether both arms step by Adafactor's relative step, which makes a rate of its own and reads none
 * of the schedule's. */
static int reads_no_schedule(const struct judging *judging) {
    return both_say(judging, "optimizer.relative_step", "true");
}

/* Whether the key shapes the schedule's rate, in two arms that read none. */
static int is_of_a_rate_without_use(const struct judging *judging, const char *key) {
    return (strcmp(key, "optimizer.lr") == 0 || starts_with(key, "schedule.")) &&
           reads_no_schedule(judging);
}

/* Whether the key is a list of phases whose difference is in phases that make nothing but what is
 * reported: `log`, and those of a schedule that nobody reads. */
static int is_of_phases_without_use(const struct judging *judging, const char *key, struct value a,
                                    struct value b) {
    static const char *const logs[] = {"log", NULL};
    static const char *const rates[] = {"log", "count", "schedule", NULL};
    return starts_with(key, "loop.") && *a.text == '[' && *b.text == '[' &&
           same_but_for(a, b, reads_no_schedule(judging) ? rates : logs);
}

static int reaches_no_weight(const struct judging *judging, const char *key) {
    const struct value a = value_of(judging->run[0], key), b = value_of(judging->run[1], key);
    if (same_value(a, b)) return 1;
    if (reports_are_read(judging)) return 0;
    return is_of_the_log(key) || is_of_a_norm_without_use(judging, key) ||
           is_of_a_rate_without_use(judging, key) || is_of_phases_without_use(judging, key, a, b);
}

/* The same of every key of one arm. A key of more characters than any has is not known. */
static int keys_reach_no_weight(const struct judging *judging, int arm) {
    const char *line = judging->run[arm]->plan.configuration;
    while (line != NULL && *line != '\0') {
        char key[128];
        const size_t length = strcspn(line, ":\n"), whole = strcspn(line, "\n");
        if (length >= sizeof key) return 0;
        memcpy(key, line, length);
        key[length] = '\0';
        if (!reaches_no_weight(judging, key)) return 0;
        line += whole + (line[whole] == '\n');
    }
    return 1;
}

static int differ(double a, double b) {
    return !isnan(a) && !isnan(b) && a != b;
}

/* Whether arms with equal configurations report the same numbers of those that a later update
 * reads. */
static int same_settings(const struct judging *judging) {
    const uint32_t groups = judge_groups(judging->run[0], judging->run[1]);
    for (uint64_t i = 0; i < judging->out->updates; i++) {
        const struct record *a = trace_row(judging->run[0], i), *b = trace_row(judging->run[1], i);
        if (differ(a->reals[REAL_LOSS_SCALE], b->reals[REAL_LOSS_SCALE])) return 0;
        for (uint32_t g = 0; g < groups; g++)
            if (differ(a->groups[g][GROUP_LR_LOGGED], b->groups[g][GROUP_LR_LOGGED])) return 0;
    }
    return 1;
}

int judge_only_reported(const struct judging *judging) {
    const char *const a = judging->run[0]->plan.configuration, *const b = judging->run[1]
                                                                              ->plan.configuration;
    if (a == NULL || b == NULL || strcmp(a, b) == 0) return same_settings(judging);
    return keys_reach_no_weight(judging, 0) && keys_reach_no_weight(judging, 1);
}
