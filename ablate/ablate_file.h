/* SPDX-License-Identifier: Apache-2.0
 * The file of an ablation: a user's own command, the factors in which its two arms differ, what
 * each run leaves, and how repeats and slots are planned (docs/ABLATE.md has the keys).
 *
 * Reads text only: nothing is run, and no file but this one is opened. Invariant: every placeholder
 * of a file that was read is known, and every factor acts on something. */
#ifndef TWINSTEP_ABLATE_ABLATE_FILE_H
#define TWINSTEP_ABLATE_ABLATE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "determinism/orders.h"

#define ABLATE_VERSION 1
#define ABLATE_FACTORS_MAX ORDERS_FACTORS
#define ABLATE_NAME_MAX 48 /* bytes of a factor's name, which tables print */
#define ABLATE_VERSIONS_MAX 9999
#define ABLATE_FILES_MAX 8
#define ABLATE_DEVICES_MAX 64
#define ABLATE_BYTES_MAX ((size_t)1 << 20)

/* The words of a command, or those that a level puts into it. */
struct ablate_words {
    size_t count;
    const char *const *words;
};

/* A variable of the environment; value NULL: it is taken out of it. Of a factor both values count,
 * of a command the first. */
struct ablate_variable {
    const char *name;
    const char *value[2];
    const char *shown[2]; /* of a factor: the same, with "{{" and "}}" as one brace */
};

struct ablate_command {
    struct ablate_words words;
    const struct ablate_variable *variables;
    size_t variable_count;
};

/* A configuration file of which each run gets its own: the first one with some leaves of the second
 * (ablate_leaves.h). {NAME} is its path. */
struct ablate_composed {
    const char *name;
    const char *paths[2];
};

struct ablate_leaf {
    uint32_t file; /* index of the composed file */
    const char *path;
};

/* A difference of the arms: level 0 is the baseline's, level 1 the test arm's. */
struct ablate_factor {
    const char *name;
    int has_words; /* {NAME} stands for the words of a level */
    struct ablate_words level[2];
    struct ablate_words shown[2]; /* the same, with "{{" and "}}" as one brace */
    const struct ablate_variable *variables;
    size_t variable_count;
    const struct ablate_leaf *leaves; /* which the test arm's level takes from the second file */
    size_t leaf_count;
};

/* What a run leaves; the paths hold placeholders. */
enum ablate_read {
    READ_WEIGHTS = 0, /* safetensors, a file or a folder; or a file of torch.save */
    READ_LOG,         /* any log that `twinstep doctor` reads */
    READ_TRACE,       /* a trace of another program (docs/FOREIGN.md) */
    READ_BYTES,       /* any file, of which only equality is asked */
    READ_KINDS
};
extern const char *const ablate_read_names[READ_KINDS]; /* "weights", "log", ... */

struct ablate_file {
    const char *path; /* as the caller gave it */
    /* Of bisect-command, which has no factors and no test arm: what {version} stands for, the good
     * one first; version_count 0: an ablation. */
    const char *const *versions;
    size_t version_count;
    const char *name;
    struct ablate_command command;
    int has_test; /* the test arm is the user's own second command */
    struct ablate_command test;
    struct ablate_composed files[ABLATE_FILES_MAX];
    uint32_t composed_count;
    struct ablate_factor factors[ABLATE_FACTORS_MAX];
    uint32_t factor_count;
    const char *read[READ_KINDS]; /* NULL: not left */
    uint64_t floor_runs;          /* runs of each arm, the arm itself included */
    uint64_t noisy_runs;          /* the same where these differ */
    uint64_t noisy_hybrids;       /* runs of each hybrid there */
    double alpha;                 /* of the test of noisy arms */
    int single; /* only each factor alone and all but each one are run, so there are no shares */
    int stops_if_equal; /* arms that are equal over an exact floor get no hybrid */
    uint64_t seed;
    uint64_t slots, port;
    double timeout; /* seconds; infinity: none */
    int shared;     /* commands hand their runs to one process, so repeats are not in others */
    const char *devices[ABLATE_DEVICES_MAX];
    size_t device_count;
};

/* What stands for the placeholders of one run. */
struct ablate_values {
    uint32_t mask; /* bit i: factor i has the test arm's level; or the index of the version */
    const char *dir, *run, *gpu, *port, *seed;
    const char *const *files; /* (composed files) their paths */
};

/* Reads the file. STATUS_INPUT with "PATH:LINE:COLUMN: error: KEY: expected ..., got ...". */
TWINSTEP_MUST_USE enum status ablate_file_read(const char *path, struct arena *arena,
                                               struct ablate_file *out);
/* Does the same with text in memory, which errors call `path`. */
TWINSTEP_MUST_USE enum status ablate_file_parse(const char *path, const char *text, size_t length,
                                                struct arena *arena, struct ablate_file *out);

/* Reads the file of bisect-command, and the file of versions that it may name. */
TWINSTEP_MUST_USE enum status bisect_file_read(const char *path, struct arena *arena,
                                               struct ablate_file *out);

/* Puts the values in place of the placeholders of a text ("{{" and "}}" are braces), or of a list
 * of words, in which a level of several words takes the place of one. */
TWINSTEP_MUST_USE enum status ablate_expand(const struct ablate_file *file, const char *text,
                                            const struct ablate_values *values, struct arena *arena,
                                            char **out);
TWINSTEP_MUST_USE enum status ablate_expand_words(const struct ablate_file *file,
                                                  const struct ablate_words *words,
                                                  const struct ablate_values *values,
                                                  struct arena *arena, struct ablate_words *out);

/* Writes the words as a POSIX shell reads them back: each that needs it in single quotes. */
TWINSTEP_MUST_USE enum status ablate_quote(const struct ablate_words *words, struct arena *arena,
                                           char **out);

#endif
