/* SPDX-License-Identifier: Apache-2.0
 * Reads what `noise` was asked for: its scenario, its arm, lists of modes and dtypes, and numbers
 * with their bounds. It measures nothing. */
#include "cli/noise/noise_asking.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cli/load.h"
#include "cli/room.h"
#include "cli/second.h"

/* A median of fewer than 6 rounds has no interval of 95 % by order statistics; 7 is odd, so that
 * the median is a measured ratio. The smallest p of n pairs is 1 / (n + 1): 0.01 with 99. */
#define STANDARD_ROUNDS 7
#define STANDARD_PAIRS 99

/* This is measured if no scenario is named. It is small enough to wait for, and every stratum has a
 * variant of it. */
static const char own_scenario[] = "twinstep: 1\n"
                                   "name: noise\n"
                                   "about: Small DPO training for noise floors\n"
                                   "steps: 5\n"
                                   "common:\n"
                                   "  optimizer: {lr: 5e-7}\n"
                                   "  batch: {size: 8, micro: 4}\n"
                                   "arms:\n"
                                   "  baseline: {}\n"
                                   "  test: {}\n";

static enum status read_words(const struct options *options, int key, const char *name,
                              const char *standard, char words[NOISE_WORDS][CONFIG_NAME_SIZE],
                              uint32_t *out_count) {
    const char *text = options_value(options, key);
    if (text == NULL) text = standard;
    *out_count = 0;
    for (;;) {
        const size_t length = strcspn(text, ",");
        if (length == 0 || length >= CONFIG_NAME_SIZE || *out_count == NOISE_WORDS)
            FAIL(STATUS_INPUT, "noise: --%s: expected up to %d names parted by commas, got \"%s\"",
                 name, NOISE_WORDS, text);
        snprintf(words[(*out_count)++], CONFIG_NAME_SIZE, "%.*s", (int)length, text);
        if (text[length] == '\0') return STATUS_OK;
        text += length + 1;
    }
}

enum status noise_read_lists(struct noise_asking *asking, const char *modes, const char *dtypes) {
    TRY(read_words(asking->options, KEY_MODES, "modes", modes, asking->modes, &asking->mode_count));
    return read_words(asking->options, KEY_DTYPES, "dtypes", dtypes, asking->dtypes,
                      &asking->dtype_count);
}

enum status noise_read_number(const struct options *options, int key, const char *name,
                              uint64_t most, uint64_t standard, uint64_t *out) {
    const char *text = options_value(options, key);
    *out = standard;
    if (text == NULL) return STATUS_OK;
    if (number_parse_uint(text, out) != STATUS_OK || *out < 1 || *out > most)
        FAIL(STATUS_INPUT, "noise: --%s: expected a number from 1 to %ju, got \"%s\"", name,
             (uintmax_t)most, text);
    return STATUS_OK;
}

static enum status find_arm(struct noise_asking *asking) {
    const struct scenario *scenario = asking->scenario;
    const char *name = options_value(asking->options, KEY_ARM);
    for (int i = 0; i < 2; i++) {
        asking->arm = &scenario->arms[i];
        if (name == NULL || strcmp(name, asking->arm->name) == 0) return STATUS_OK;
    }
    FAIL(STATUS_INPUT, "noise: --arm: expected %s or %s, got \"%s\"", scenario->arms[0].name,
         scenario->arms[1].name, name);
}

enum status noise_load(struct noise_asking *asking) {
    const struct options *options = asking->options;
    struct arena *arena = &asking->cli->arena;
    if (options->argument_count == 1)
        return load_scenario(asking->cli, arena, options->arguments[0], options, &asking->scenario);
    return scenario_parse(arena, asking->cli->schema, "builtin:noise", own_scenario,
                          sizeof own_scenario - 1, options->sets, options->set_count,
                          &asking->scenario);
}

enum status noise_ask(struct noise_asking *asking) {
    const struct options *options = asking->options;
    /* Without a scenario the question is what this machine's noise is. The modes in which it shows
     * come first; a floor file is of the first one. */
    const int machine = options->argument_count == 0 && !options_given(options, KEY_PLAN) &&
                        !options_given(options, KEY_SWITCHES);
    const int file = options->output != NULL;
    uint64_t repeats;
    TRY(noise_load(asking));
    TRY(find_arm(asking));
    TRY(noise_read_lists(asking,
                         !machine ? "own"
                         : file   ? "fast,atomic"
                                  : "fast,atomic,shuffled,deterministic,invariant",
                         !machine ? "own"
                         : file   ? "f32"
                                  : "f32,bf16"));
    TRY(noise_read_number(options, KEY_STEPS, "steps", 1000000, asking->scenario->steps,
                          &asking->steps));
    TRY(noise_read_number(options, KEY_REPEAT, "repeat", 1000000,
                          options_given(options, KEY_SWITCHES) ? STANDARD_ROUNDS : 3, &repeats));
    TRY(noise_read_number(options, KEY_THREADS, "threads", 1024, 0, &asking->threads));
    TRY(noise_read_number(options, KEY_PAIRS, "pairs", 1000000,
                          options->output == NULL ? 0 : STANDARD_PAIRS, &asking->pairs));
    asking->repeats = (uint32_t)repeats;
    return STATUS_OK;
}

static enum status in_second_process(void *context, const struct config *config, uint64_t steps,
                                     unsigned char *out_path, size_t size) {
    const struct cli *cli = (const struct cli *)context;
    return second_process_path(config, steps, cli->interrupted, out_path, size);
}

/* The floor file holds each figure of each pair and update once, behind texts of some kB. */
static enum status ask_room(void *context, const struct experiment_needs *asked) {
    const struct noise_asking *const asking = (const struct noise_asking *)context;
    struct experiment_needs needs = *asked;
    if (asking->options->output != NULL && asking->pairs > 0) {
        needs.what = "the floor file";
        needs.path = asking->options->output;
        needs.disk =
            ((uint64_t)1 << 18) + FLOOR_COLUMNS * sizeof(double) * asking->pairs * asking->steps;
        needs.less_disk = "measure fewer pairs (--pairs) or updates (--steps)";
    }
    return room_check(&needs);
}

static void show(void *context, const char *what, uint64_t done, uint64_t total) {
    struct progress *progress = (struct progress *)context;
    progress_count(progress, what, done, total);
}

struct noise_request noise_request_of(struct noise_asking *asking, const struct config *config) {
    const int unasked = options_given(asking->options, KEY_ROOM);
    return (struct noise_request){.config = config,
                                  .steps = asking->steps,
                                  .resolved = asking->scenario == NULL ? asking->steps
                                                                       : asking->scenario->steps,
                                  .repeats = asking->repeats,
                                  .processors = asking->processors,
                                  .process = in_second_process,
                                  .context = asking->cli,
                                  .room = unasked ? NULL : ask_room,
                                  .room_context = asking,
                                  .interrupted = asking->cli->interrupted,
                                  .progress = show,
                                  .progress_context = asking->progress};
}

struct noise_words noise_words_of(const struct noise_asking *asking) {
    return (struct noise_words){(const char(*)[CONFIG_NAME_SIZE])asking->modes, asking->mode_count,
                                (const char(*)[CONFIG_NAME_SIZE])asking->dtypes,
                                asking->dtype_count};
}
