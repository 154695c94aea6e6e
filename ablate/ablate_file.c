/* SPDX-License-Identifier: Apache-2.0
 * Reads an ablation's YAML by tables of keys: what is one value here, factors in ablate_factors.c;
 * ablate_places.c checks the whole. */
#include "ablate/ablate_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ablate/ablate_factors.h"
#include "ablate/ablate_nodes.h"
#include "ablate/ablate_places.h"
#include "ablate/ablate_rights.h"
#include "base/number.h"
#include "scenarios/textfile.h"
#include "scenarios/yaml.h"

const char *const ablate_read_names[READ_KINDS] = {"weights", "log", "trace", "bytes"};

#define RUNS_MOST 10 /* of an arm: determinism/statistics.h enumerates 10 + 10 */
#define SLOTS_MOST 64

/* ---- commands ---- */

static enum status read_environment(const struct yaml_node *map, const char *key,
                                    struct arena *arena, struct ablate_command *out) {
    struct ablate_variable *variables;
    if (map->kind != YAML_MAP) return node_expect(map, key, "a map of variables");
    TRY(arena_take(arena, map->count, sizeof *variables, "environment", &variables));
    for (const struct yaml_node *child = map->first; child != NULL; child = child->next) {
        if (!node_is_variable(child->key))
            return yaml_fail_key(child, "%s: no variable has the name \"%s\"", key, child->key);
        if (child->kind != YAML_NULL)
            TRY(node_expect_text(child, child->key, "a text, or nothing to take it away"));
        variables[out->variable_count++] = (struct ablate_variable){
            .name = child->key, .value = {child->kind == YAML_NULL ? NULL : child->text, NULL}};
    }
    out->variables = variables;
    return STATUS_OK;
}

static enum status read_command(const struct yaml_node *list, const char *key, struct arena *arena,
                                struct ablate_command *out) {
    TRY(node_read_words(list, key, arena, &out->words));
    if (out->words.count == 0 || out->words.words[0][0] == '\0')
        return yaml_fail(list, "%s: expected the name of a program, got nothing", key);
    return STATUS_OK;
}

/* ---- numbers ---- */

static enum status read_floor(const struct yaml_node *map, struct ablate_file *out) {
    static const char *const keys[] = {"runs", "noisy", "hybrids", "alpha", NULL};
    if (map == NULL) return STATUS_OK;
    TRY(node_check_keys(map, "floor", keys));
    TRY(node_read_uint(map, "runs", 2, RUNS_MOST, &out->floor_runs));
    TRY(node_read_uint(map, "noisy", 2, RUNS_MOST, &out->noisy_runs));
    TRY(node_read_uint(map, "hybrids", 1, RUNS_MOST, &out->noisy_hybrids));
    TRY(node_read_real(map, "alpha", 0.0, 1.0, "a number between 0 and 1", &out->alpha));
    if (out->noisy_runs < out->floor_runs) {
        const struct yaml_node *noisy = yaml_child(map, "noisy");
        if (noisy != NULL)
            return yaml_fail(noisy, "noisy: expected no fewer than floor.runs (%llu), got %llu",
                             (unsigned long long)out->floor_runs,
                             (unsigned long long)out->noisy_runs);
        out->noisy_runs = out->floor_runs;
    }
    return STATUS_OK;
}

static enum status read_shared(const struct yaml_node *node, struct ablate_file *out) {
    if (node == NULL) return STATUS_OK;
    out->shared = node->kind == YAML_PLAIN && strcmp(node->text, "true") == 0;
    if (!out->shared && (node->kind != YAML_PLAIN || strcmp(node->text, "false") != 0))
        return node_expect(node, "shared", "true or false");
    if (out->shared && out->slots > 1)
        return yaml_fail(node, "shared: one process does one run at a time, and slots is %llu",
                         (unsigned long long)out->slots);
    return STATUS_OK;
}

static enum status read_run(const struct yaml_node *map, struct ablate_file *out) {
    static const char *const keys[] = {"slots", "devices", "timeout", "port", "shared", NULL};
    if (map == NULL) return STATUS_OK;
    TRY(node_check_keys(map, "run", keys));
    const struct yaml_node *devices = yaml_child(map, "devices");
    if (devices != NULL) {
        if (devices->kind != YAML_LIST || devices->count == 0 ||
            devices->count > ABLATE_DEVICES_MAX)
            return node_expect(devices, "devices", "a list of 1 to 64 devices, one for each slot");
        for (const struct yaml_node *item = devices->first; item != NULL; item = item->next) {
            TRY(node_expect_text(item, "devices", "a device as CUDA_VISIBLE_DEVICES has it"));
            out->devices[out->device_count++] = item->text;
        }
        out->slots = out->device_count;
    }
    TRY(node_read_uint(map, "slots", 1, SLOTS_MOST, &out->slots));
    if (out->device_count > 0 && out->slots > out->device_count)
        return yaml_fail(yaml_child(map, "slots"),
                         "slots: expected no more than the %zu devices, got %llu: a device serves "
                         "one slot",
                         out->device_count, (unsigned long long)out->slots);
    TRY(node_read_uint(map, "port", 1024, 65535 - SLOTS_MOST, &out->port));
    TRY(read_shared(yaml_child(map, "shared"), out));
    return node_read_real(map, "timeout", 0.0, 1e9, "a number of seconds above 0", &out->timeout);
}

static enum status read_reads(const struct yaml_node *map, struct ablate_file *out) {
    static const char *const keys[] = {"weights", "log", "trace", "bytes", NULL};
    TRY(node_check_keys(map, "read", keys));
    for (int i = 0; i < READ_KINDS; i++) {
        const struct yaml_node *node = yaml_child(map, ablate_read_names[i]);
        if (node == NULL) continue;
        TRY(node_expect_text(node, ablate_read_names[i], "a path"));
        out->read[i] = node->text;
    }
    if (map->count == 0)
        return yaml_fail(map, "read: expected at least one of weights, log, trace, bytes");
    return STATUS_OK;
}

/* ---- the file ---- */

static enum status read_head(const struct yaml_node *root, const char *word, struct arena *arena,
                             struct ablate_file *out) {
    const struct yaml_node *version = yaml_child(root, word), *name = yaml_child(root, "name");
    uint64_t number = 0;
    if (version == NULL)
        return yaml_fail(root, "%s: expected %s: %d, the version of the format, got nothing", word,
                         word, ABLATE_VERSION);
    if (version->kind != YAML_PLAIN || number_parse_uint(version->text, &number) != STATUS_OK ||
        number != ABLATE_VERSION)
        return node_expect(version, word, "1, the version of the format");
    if (name != NULL) {
        TRY(node_expect_text(name, "name", "a name"));
        if (name->text[0] == '\0' || strchr(name->text, '/') != NULL)
            return node_expect(name, "name", "a name without /, of which the folder's is made");
        out->name = name->text;
        return STATUS_OK;
    }
    const char *slash = strrchr(out->path, '/');
    const char *stem = slash == NULL ? out->path : slash + 1;
    const char *dot = strrchr(stem, '.');
    char *text;
    TRY(arena_text(arena, stem, dot == NULL || dot == stem ? strlen(stem) : (size_t)(dot - stem),
                   &text));
    out->name = text;
    return STATUS_OK;
}

static enum status read_test(const struct yaml_node *map, struct arena *arena,
                             struct ablate_file *out) {
    static const char *const keys[] = {"command", "environment", NULL};
    if (map == NULL) return STATUS_OK;
    TRY(node_check_keys(map, "test", keys));
    const struct yaml_node *command = yaml_child(map, "command");
    const struct yaml_node *environment = yaml_child(map, "environment");
    if (command == NULL)
        return yaml_fail(map, "test: expected command, the test arm's own, got none");
    TRY(read_command(command, "test.command", arena, &out->test));
    if (environment != NULL)
        TRY(read_environment(environment, "test.environment", arena, &out->test));
    out->has_test = 1;
    return STATUS_OK;
}

/* Reads which of two words a key has; *out stays 0 where it is the first one, or not there. */
static enum status read_choice(const struct yaml_node *root, const char *key, const char *first,
                               const char *second, int *out) {
    const struct yaml_node *const node = yaml_child(root, key);
    char what[64];
    if (node == NULL) return STATUS_OK;
    const int is_text = node->kind == YAML_PLAIN || node->kind == YAML_QUOTED;
    *out = is_text && strcmp(node->text, second) == 0;
    if (*out || (is_text && strcmp(node->text, first) == 0)) return STATUS_OK;
    snprintf(what, sizeof what, "%s or %s", first, second);
    return node_expect(node, key, what);
}

/* Reads what stands first in both kinds of files; `third` is the key that one kind alone needs. */
static enum status begin_root(const struct yaml_node *root, const char *version,
                              const char *const *keys, const char *third, struct arena *arena,
                              struct ablate_file *out) {
    const char *const needed[] = {"command", third, "read"};
    TRY(node_check_keys(root, "", keys));
    TRY(read_head(root, version, arena, out));
    for (size_t i = 0; i < COUNT_OF(needed); i++)
        if (yaml_child(root, needed[i]) == NULL)
            return yaml_fail(root, "%s: expected, but not there", needed[i]);
    const struct yaml_node *environment = yaml_child(root, "environment");
    TRY(read_command(yaml_child(root, "command"), "command", arena, &out->command));
    return environment == NULL ? STATUS_OK
                               : read_environment(environment, "environment", arena, &out->command);
}

static enum status end_root(const struct yaml_node *root, struct ablate_file *out) {
    TRY(read_reads(yaml_child(root, "read"), out));
    TRY(read_floor(yaml_child(root, "floor"), out));
    TRY(read_run(yaml_child(root, "run"), out));
    TRY(node_read_uint(root, "seed", 0, INT64_MAX, &out->seed));
    return ablate_places_check(root, out);
}

static enum status read_root(const struct yaml_node *root, struct arena *arena,
                             struct ablate_file *out) {
    static const char *const keys[] = {"ablate",  "name",  "command",  "environment", "test",
                                       "factors", "read",  "floor",    "run",         "seed",
                                       "hybrids", "files", "if_equal", NULL};
    TRY(begin_root(root, "ablate", keys, "factors", arena, out));
    TRY(ablate_composed_read(yaml_child(root, "files"), out));
    TRY(ablate_factors_read(yaml_child(root, "factors"), arena, out));
    TRY(read_test(yaml_child(root, "test"), arena, out));
    TRY(read_choice(root, "hybrids", "all", "single", &out->single));
    TRY(read_choice(root, "if_equal", "hybrids", "stop", &out->stops_if_equal));
    return end_root(root, out);
}

/* Cuts the blanks off both ends of a line, and the CR of an editor of Windows. */
static char *trimmed(char *line, char *end) {
    while (end > line && strchr(" \t\r", end[-1]) != NULL)
        end--;
    *end = '\0';
    return line + strspn(line, " \t");
}

/* Reads one version a line; empty lines and those that begin with # do not count. */
static enum status read_version_lines(const struct yaml_node *node, struct arena *arena,
                                      const char **versions, size_t *count) {
    char *text;
    size_t length;
    /* a version stands in the command, so who writes it writes that */
    TRY(ablate_rights_check(node->text, "so others could run commands as you"));
    TRY(textfile_read(arena, node->text, ABLATE_BYTES_MAX, &text, &length));
    TRY(plaintext_check(node->text, text, length));
    for (char *line = text; *line != '\0';) {
        char *const end = line + strcspn(line, "\n");
        const int last = *end == '\0';
        const char *const version = trimmed(line, end);
        if (version[0] != '\0' && version[0] != '#') {
            if (*count == ABLATE_VERSIONS_MAX)
                return yaml_fail(node, "versions: more than %d in %s", ABLATE_VERSIONS_MAX,
                                 node->text);
            versions[(*count)++] = version;
        }
        line = last ? end : end + 1;
    }
    return STATUS_OK;
}

static enum status read_versions(const struct yaml_node *node, struct arena *arena,
                                 struct ablate_file *out) {
    const char **versions;
    TRY(arena_take(arena, ABLATE_VERSIONS_MAX, sizeof *versions, "versions", &versions));
    if (node->kind == YAML_LIST) {
        for (const struct yaml_node *item = node->first; item != NULL; item = item->next) {
            TRY(node_expect_text(item, "versions", "a version"));
            if (out->version_count == ABLATE_VERSIONS_MAX)
                return yaml_fail(node, "versions: more than %d", ABLATE_VERSIONS_MAX);
            versions[out->version_count++] = item->text;
        }
    } else {
        TRY(node_expect_text(node, "versions", "a list, or a file with one a line"));
        TRY(read_version_lines(node, arena, versions, &out->version_count));
    }
    if (out->version_count < 2)
        return yaml_fail(node, "versions: expected two at least, the good one first, got %zu",
                         out->version_count);
    out->versions = versions;
    return STATUS_OK;
}

static enum status read_bisect(const struct yaml_node *root, struct arena *arena,
                               struct ablate_file *out) {
    static const char *const keys[] = {"bisect", "name",  "command", "environment", "versions",
                                       "read",   "floor", "run",     "seed",        NULL};
    TRY(begin_root(root, "bisect", keys, "versions", arena, out));
    TRY(read_versions(yaml_child(root, "versions"), arena, out));
    return end_root(root, out);
}

static void set_defaults(const char *path, struct ablate_file *out) {
    memset(out, 0, sizeof *out);
    out->path = path;
    out->floor_runs = 2;
    out->noisy_runs = 5; /* the least of which the labels reach 0.01: 2 / C(10, 5) */
    out->noisy_hybrids = 3;
    out->alpha = 0.01;
    out->slots = 1;
    out->port = 29500; /* that of torchrun */
    out->timeout = INFINITY;
}

enum status bisect_file_read(const char *path, struct arena *arena, struct ablate_file *out) {
    struct yaml_node *root;
    char *text;
    size_t length;
    set_defaults(path, out);
    TRY(textfile_read(arena, path, ABLATE_BYTES_MAX, &text, &length));
    TRY(yaml_parse(arena, path, 1, text, length, &root));
    return read_bisect(root, arena, out);
}

enum status ablate_file_parse(const char *path, const char *text, size_t length,
                              struct arena *arena, struct ablate_file *out) {
    struct yaml_node *root;
    set_defaults(path, out);
    TRY(yaml_parse(arena, path, 1, text, length, &root));
    return read_root(root, arena, out);
}

enum status ablate_file_read(const char *path, struct arena *arena, struct ablate_file *out) {
    char *text;
    size_t length;
    TRY(textfile_read(arena, path, ABLATE_BYTES_MAX, &text, &length));
    return ablate_file_parse(path, text, length, arena, out);
}
