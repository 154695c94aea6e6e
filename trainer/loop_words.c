/* SPDX-License-Identifier: Apache-2.0
 * Says in words which LR an order applies and logs at update k, such as "f(k-1)". An order whose LR
 * lists epoch or eval move is said to be moved by them; the words never guess when. */
#include "trainer/loop_walk.h"

#include <stdio.h>

/* Writes f of slope * k + offset: f(k-1), f(8(k-1)), f(8k+3) or f(0). Both numbers are whole. */
static void write_counter(char *out, size_t size, double slope, double offset) {
    const double whole = slope != 0.0 ? offset / slope : 0.0;
    const int divides = slope > 1.0 && offset != 0.0 && (double)(int64_t)whole == whole;
    if (slope == 0.0)
        snprintf(out, size, "f(%.0f)", offset);
    else if (divides)
        snprintf(out, size, "f(%.0f(k%+.0f))", slope, whole);
    else if (slope == 1.0 && offset == 0.0)
        snprintf(out, size, "f(k)");
    else if (slope == 1.0)
        snprintf(out, size, "f(k%+.0f)", offset);
    else if (offset == 0.0)
        snprintf(out, size, "f(%.0fk)", slope);
    else
        snprintf(out, size, "f(%.0fk%+.0f)", slope, offset);
}

const char *loop_start_word(const struct config *config) {
    static const char *const words[] = {
        [START_F0] = "f0", [START_BASE] = "base", [START_ZERO] = "zero", [START_MIN] = "min"};
    return words[config->schedule.start];
}

static void write_start(char *out, size_t size, const struct config *config) {
    if (config->schedule.start == START_F0)
        write_counter(out, size, 0.0, loop_start_counter(config));
    else
        snprintf(out, size, "%s", loop_start_word(config));
}

int loop_runs_outside(const struct config *config, enum phase phase) {
    return loop_count(config, LOOP_EPOCH, phase) > 0 ||
           (config->loop.eval_every > 0 && loop_count(config, LOOP_EVAL, phase) > 0);
}

static void write_law(char out[LOOP_PHRASE], const struct config *config,
                      const struct loop_law *law) {
    char start[48];
    char steady[80];
    write_start(start, sizeof start, config);
    write_counter(steady, sizeof steady, law->slope, law->offset);
    const char *rest = "";
    if (loop_runs_outside(config, PHASE_SCHEDULE) || loop_runs_outside(config, PHASE_COUNT_UPDATE))
        rest = ", until list epoch or eval moves it";
    if (law->from > LOOP_WALKED)
        snprintf(out, LOOP_PHRASE, "%s at every update%s", start, rest);
    else if (law->from > 1)
        snprintf(out, LOOP_PHRASE, "%s at k=1, then %s%s", start, steady, rest);
    else
        snprintf(out, LOOP_PHRASE, "%s%s", steady, rest);
}

void loop_words_of(const struct config *config, struct loop_words *out_words) {
    struct loop_walk walk;
    loop_walk_all(&walk, config);
    write_law(out_words->applied, config, &walk.applied);
    write_law(out_words->logged, config, &walk.logged);
}
