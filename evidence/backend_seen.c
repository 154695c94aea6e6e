/* SPDX-License-Identifier: Apache-2.0
 * Compares what two runs ran on, attribute by attribute, by name and text. An attribute that one
 * side lacks is unknown there, so it never counts as a difference. */
#include "evidence/backend_seen.h"

#include <string.h>

#include "scenarios/scenario.h"

const char *const backends_here[2] = {"there", "here"};

int backends_is_volatile(const struct trace_attribute *attribute) {
    const size_t length = strlen(attribute->path), end = strlen(BACKENDS_MOMENTARY);
    return strncmp(attribute->path, BACKENDS_FOLDER, strlen(BACKENDS_FOLDER)) == 0 &&
           length > end && strcmp(attribute->path + length - end, BACKENDS_MOMENTARY) == 0;
}

struct backend_seen backends_of_run(const struct trace_image *image, const char *run) {
    const struct trace_run *const found = trace_run_of(image, run);
    const char *group = trace_attribute_of(image, "backend", run);
    const char *const text = found == NULL ? NULL : found->plan.configuration;
    if (group == NULL && text != NULL && !config_text_says(text, "numerics.backend", "cuda"))
        group = BACKENDS_OWN;
    return (struct backend_seen){image->attributes, image->attribute_count, group};
}

struct backend_seen backends_of_floor(const struct floor_file *file) {
    const struct trace_image image = {
        .attributes = (struct trace_attribute *)(void *)(uintptr_t)file->environment,
        .attribute_count = file->environment_count};
    const char *const group = trace_attribute_of(&image, "backend", "noise");
    const int cpu =
        group == NULL && !config_text_says(file->configuration, "numerics.backend", "cuda");
    return (struct backend_seen){file->environment, file->environment_count,
                                 cpu ? BACKENDS_OWN : group};
}

static int is_recorded(const struct backend_seen *seen) {
    return seen->group != NULL && strcmp(seen->group, BACKENDS_OWN) != 0;
}

/* The next fact of a group that is not momentary, from attribute *at on; NULL: there are no more.
 */
static const struct trace_attribute *next_fact(const struct backend_seen *seen, uint32_t *at) {
    for (; *at < seen->attribute_count && is_recorded(seen); (*at)++) {
        const struct trace_attribute *fact = &seen->attributes[*at];
        if (strncmp(fact->path, BACKENDS_FOLDER, strlen(BACKENDS_FOLDER)) != 0) continue;
        if (strcmp(fact->path + strlen(BACKENDS_FOLDER), seen->group) != 0) continue;
        (*at)++;
        return fact;
    }
    return NULL;
}

static const char *fact_of(const struct backend_seen *seen, const char *name) {
    const struct trace_attribute *fact;
    uint32_t at = 0;
    while ((fact = next_fact(seen, &at)) != NULL)
        if (strcmp(fact->name, name) == 0) return fact->text;
    return NULL;
}

enum status backends_line(const struct backend_seen *seen, struct arena *arena, char **out) {
    const struct trace_attribute *fact;
    const char *const device = fact_of(seen, "device");
    uint32_t at = 0;
    TRY(arena_format(arena, out, "%s%s%s", seen->group == NULL ? "not recorded" : seen->group,
                     device == NULL ? "" : ": ", device == NULL ? "" : device));
    while ((fact = next_fact(seen, &at)) != NULL)
        if (strcmp(fact->name, "device") != 0 && strcmp(fact->name, "sha256") != 0)
            TRY(arena_format(arena, out, "%s, %s %s", *out, fact->name, fact->text));
    return STATUS_OK;
}

struct difference {
    const char *const *names;
    struct arena *arena;
    char *text;
};

static enum status add_difference(struct difference *to, const char *name, const char *a,
                                  const char *b) {
    if (a == NULL || b == NULL || strcmp(a, b) == 0) return STATUS_OK;
    return arena_format(to->arena, &to->text, "%s%s%s: %s %s, %s %s", to->text,
                        to->text[0] == '\0' ? "" : "; ", name, a, to->names[0], b, to->names[1]);
}

enum status backends_difference(const struct backend_seen seen[2], const char *const names[2],
                                struct arena *arena, char **out) {
    struct difference to = {.names = names, .arena = arena};
    const struct trace_attribute *fact;
    uint32_t at = 0;
    TRY(arena_format(arena, &to.text, "%s", ""));
    if (is_recorded(&seen[0]) != is_recorded(&seen[1]))
        TRY(add_difference(&to, "backend", seen[0].group, seen[1].group));
    while (is_recorded(&seen[1]) && (fact = next_fact(&seen[0], &at)) != NULL)
        TRY(add_difference(&to, fact->name, fact->text, fact_of(&seen[1], fact->name)));
    *out = to.text;
    return STATUS_OK;
}
