/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target: any bytes as a scenario must give two configurations that validate, print and
 * read back as they were, or an error with a place, never a crash.
 *
 * The schema is that of tests/scenarios/helper_scenario.h. TWINSTEP_FUZZ_FORMAT is scenario-yaml,
 * or scenario-text, the canonical text of a configuration that traces hold; without it both are
 * tried. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scenarios/scenario.h"
#include "tests/scenarios/helper_scenario.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* libfyaml 0.7 keeps a queue of its own after some errors; the leak sanitizer reads this. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libfyaml";
}

static void require(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "fuzz_scenario: broken: %s\n%s\n", what, status_text());
    abort();
}

static void look_at_failure(enum status status) {
    require(status_text()[0] != '\0', "an error has a text");
    require(status != STATUS_INTERNAL, "no input breaks a promise of ours");
}

static void look_at_arm(const struct scenario *scenario, int arm, struct arena *arena) {
    const struct config *config = &scenario->arms[arm].config;
    char *text, *again;
    struct config back;
    require(config_validate(config, scenario->steps) == STATUS_OK, "what is accepted validates");
    require(config_text(&helper_schema, config, arena, &text) == STATUS_OK, "and prints");
    require(config_read(&helper_schema, "text", text, arena, &back) == STATUS_OK, "and reads back");
    require(config_text(&helper_schema, &back, arena, &again) == STATUS_OK &&
                strcmp(text, again) == 0,
            "as it was");
}

static void read_yaml(const char *text, size_t size) {
    struct arena arena = ARENA_EMPTY;
    struct scenario *scenario;
    const enum status status =
        scenario_parse(&arena, &helper_schema, "fuzz", text, size, NULL, 0, &scenario);
    if (status != STATUS_OK) {
        look_at_failure(status);
        require(strncmp(status_text(), "fuzz:", 5) == 0, "an error names the source");
    } else {
        for (int arm = 0; arm < 2; arm++)
            look_at_arm(scenario, arm, &arena);
    }
    arena_close(&arena);
}

static void read_text(const char *text) {
    struct arena arena = ARENA_EMPTY;
    struct config config;
    char *again;
    const enum status status = config_read(&helper_schema, "fuzz", text, &arena, &config);
    if (status != STATUS_OK)
        look_at_failure(status);
    else
        require(config_text(&helper_schema, &config, &arena, &again) == STATUS_OK,
                "what was read prints");
    arena_close(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *format = getenv("TWINSTEP_FUZZ_FORMAT");
    char *text = (char *)malloc(size + 1);
    if (text == NULL) return 0;
    if (size > 0) memcpy(text, data, size);
    text[size] = '\0';
    if (format == NULL || strcmp(format, "scenario-yaml") == 0) read_yaml(text, size);
    if (format == NULL || strcmp(format, "scenario-text") == 0) read_text(text);
    free(text);
    return 0;
}
