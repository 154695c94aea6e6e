/* SPDX-License-Identifier: Apache-2.0
 * A scenario: what both arms share, how they differ, what is expected. Parsed, resolved, compared.
 *
 * Knows YAML (libfyaml) and the schema; knows nothing of models or kernels. Optimizers and
 * schedules hand in their key rows as data (struct schema_class), since this folder may not include
 * them. Invariant: after scenario_open() returns STATUS_OK both configurations are complete, every
 * value lies in its bounds, and every error text had file, line, column and key. */
#ifndef TWINSTEP_SCENARIOS_SCENARIO_H
#define TWINSTEP_SCENARIOS_SCENARIO_H

#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "scenarios/config.h"

/* Rows that hold only while the selecting key (optimizer.name, schedule.name) has this value. */
struct schema_class {
    const char *prefix; /* "optimizer" or "schedule" */
    const char *name;   /* "adamw" */
    const char *help;
    const struct key_row *keys; /* offsets into config_class.values */
    size_t key_count;
    /* What no single row can say; called at load. STATUS_INPUT "optimizer.nesterov: expected ...".
     * NULL: nothing. */
    enum status (*validate)(const struct config *config);
    const char *module; /* SHA-256 of the module that holds it, as text; NULL: built in */
};

/* A key that follows from a contract, in the text that a scenario would hold. */
struct schema_implied {
    const char *path, *text;
    const char *shown; /* where numbers of the arm decide: "processes"; NULL: text */
};

/* A parameter of the schedule as it was written. */
#define SCHEMA_VALUES_MAX 64
struct schema_value {
    const char *key, *text;
};

/* What schedule.contract may name. A contract is its implied keys, and the two functions. */
#define SCHEMA_IMPLIED_MAX 20
struct schema_contract {
    const char *name;
    const char *alias;     /* another name; NULL */
    const char *help;      /* one sentence without full stop */
    const char *refusal;   /* why no training obeys it; NULL */
    const char *standard;  /* schedule.name where none is written */
    const char *schedules; /* names of its schedules, joined by ", " */
    const char *family;    /* "hf", ...: prefix of its schedules' classes */
    struct schema_implied implied[SCHEMA_IMPLIED_MAX];
    size_t implied_count;
    /* The class that a bare name means here; NULL: none. */
    const char *(*find)(const struct schema_contract *contract, const char *schedule);
    /* warmup, warmup_ratio and total of `config` are in updates; afterwards warmup and total are in
     * counter units, and increment, shifts and the schedule's own values are set. `values`: those
     * that were written. STATUS_INPUT "schedule.total: expected ...". */
    enum status (*resolve)(const struct schema_contract *contract,
                           const struct schema_value *values, size_t value_count, uint64_t steps,
                           struct config *config);
};

struct schema {
    const struct schema_class *classes;
    size_t class_count;
    const struct schema_contract *contracts;
    size_t contract_count;
    /* Opens the module at `path`, checks what it holds for `prefix` (NULL: for any), adds that to
     * `classes` unless it is there, and hands out the digest of the file (CONFIG_SHA256_SIZE).
     * STATUS_INPUT "PATH: expected ..., got ...". NULL: no modules here. */
    enum status (*load)(const struct schema *schema, const char *prefix, const char *path,
                        char *out_sha256);
    void *owner; /* of the table behind `classes`; for load */
    /* Fills section `model` of `config` but norm_rounding, from and what is silent there, and
     * from_digest, with what the checkpoint in `folder` is. STATUS_INPUT, STATUS_IO. NULL: no
     * checkpoints here. */
    enum status (*describe)(const char *folder, struct config *config);
};

/* What `twinstep keys` and errors print of it. */
const char *schema_implied_text(const struct schema_implied *implied);

/* NULL when the schema has none of this name. */
const struct schema_contract *schema_contract_find(const struct schema *schema, const char *name);

/* Whether any rate of dropout is above 0. */
int config_has_dropout(const struct config *config);

/* Whether linear layers may go through OpenBLAS on the CPU; whether they go through cuBLAS. */
int config_uses_openblas(const struct config *config);
int config_uses_cublas(const struct config *config);

/* Whether no seed replays it: sums race, or a device's library works on several streams. */
int config_races(const struct config *config);

/* Whether it is a dpo task whose loss reads a reference. */
int config_has_reference(const struct config *config);

/* Whether schedule.contract names one. */
int config_has_contract(const struct config *config);

/* The rows of struct config (offsets into it), in the order of the documentation. */
const struct key_row *schema_rows(size_t *out_count);

/* "fetch", "forward", ..., "zero". */
const char *phase_name(enum phase phase);

/* "olmo2", "llama", "qwen2", "qwen3": model.family. */
const char *family_name(int32_t family);

/* `twinstep keys`: every row, then every class's rows; and the generated docs/SCENARIOS.md. */
void schema_print(const struct schema *schema, FILE *out);
void schema_print_json(const struct schema *schema, FILE *out);
void schema_print_markdown(const struct schema *schema, FILE *out);
/* Only the rows of the classes that one module holds. */
void schema_print_module(const struct schema *schema, const char *sha256, FILE *out);
void schema_print_module_json(const struct schema *schema, const char *sha256, FILE *out);

struct scenario_arm {
    char name[CONFIG_NAME_SIZE];
    struct config config;
};

/* A key that was written where nothing reads it. One of `common` counts only when neither arm reads
 * it. */
struct scenario_inert {
    const char *key, *why; /* "dpo.beta", "task is sft" */
    const char *arm;       /* NULL: both */
    const char *line;      /* "test: dpo.beta has no effect here: task is sft" */
};

enum floor_design { FLOOR_AUTO = 0, FLOOR_BASELINE, FLOOR_BOTH };
#define FLOOR_REPEATS_MAX 62 /* of the baseline alone; of each arm: STATISTICS_MAX_RUNS / 2 */

/* expect.verdict */
enum verdict {
    VERDICT_NONE = 0, /* no expectation */
    VERDICT_IDENTICAL,
    VERDICT_INSIDE_FLOOR,
    VERDICT_OUTSIDE_FLOOR,
    VERDICT_UNTESTABLE
};
const char *verdict_name(enum verdict verdict); /* "identical", "inside-floor", ... */

struct floor_file; /* determinism/floor_file.h */

struct scenario {
    const char *path; /* as given; "" for a scenario held in memory */
    const char *text; /* verbatim */
    size_t text_length;
    char name[CONFIG_NAME_SIZE];
    const char *about;
    const char *source;
    uint64_t steps;
    struct {
        uint64_t probe_every; /* 0: never */
        uint64_t snapshots;   /* updates between two stored states; 0: none */
        uint8_t readback, tensors, phases;
    } record;
    struct {
        int32_t design;      /* enum floor_design */
        uint64_t replicates; /* KEY_WORD_UINT: auto (experiment/experiment_plan.h) */
        double alpha;
        const struct floor_file
            *file; /* measured before, for this baseline; NULL: runs are trained */
    } floor;
    struct {
        uint64_t orders;     /* even; KEY_WORD_UINT: auto (determinism/orders.h) */
        uint64_t replicates; /* of each mixture; KEY_WORD_UINT: auto */
        uint8_t twin;        /* train a twin of the baseline where its floor is exact */
    } attribution;
    struct {
        int32_t verdict;          /* enum verdict */
        int32_t cause;            /* enum cause, or -1 */
        int64_t first_step;       /* 0: any */
        int32_t first_phase;      /* enum phase, or -1 */
        const char *first_tensor; /* NULL: any */
    } expect;
    struct scenario_arm arms[2]; /* 0: baseline, 1: test */
    struct scenario_inert *inert;
    uint32_t inert_count;
    const char *overrides; /* what --set changed, one per line; "": nothing */
    int loop_line[2][5]; /* line of loop.micro, update, epoch, eval, on_skip per arm; 0: default */
};

/* Reads, merges `common`, applies `overrides` ("common.optimizer.lr=1e-6",
 * "arms.test.batch.micro=4", "steps=3"), fills defaults, derives (auto values), checks bounds.
 * `path` "-" reads standard input. STATUS_INPUT with "file:line:column: error: key: expected ...,
 * got ..." */
TWINSTEP_MUST_USE enum status scenario_open(struct arena *arena, const struct schema *schema,
                                            const char *path, const char *const *overrides,
                                            size_t override_count, struct scenario **out);
/* The same from text in memory; `label` stands for the path in errors. */
TWINSTEP_MUST_USE enum status scenario_parse(struct arena *arena, const struct schema *schema,
                                             const char *label, const char *text, size_t length,
                                             const char *const *overrides, size_t override_count,
                                             struct scenario **out);

/* Canonical text of a resolved configuration: one "key: value" line per row that holds, in schema
 * order, reals in shortest round-trip form. Equal texts <=> equal configurations. */
TWINSTEP_MUST_USE enum status config_text(const struct schema *schema, const struct config *config,
                                          struct arena *arena, char **out_text);

/* Whether `key` stands with `value` in a configuration's canonical text (config_text), of this
 * version or an earlier one: what may be asked of a trace without a schema, whose modules may be
 * gone. 0 for another value, for a key that the text does not hold, and for text NULL. */
int config_text_says(const char *text, const char *key, const char *value);

/* The value of `key` as the text prints it; NULL: the text does not hold the key. It ends before
 * the end of its line: *out_length characters. */
const char *config_text_value(const char *text, const char *key, size_t *out_length);

/* The configuration that has this canonical text; `label` stands for its source in errors.
 * STATUS_INPUT: not a text of this version (every key must be there, and no other). */
TWINSTEP_MUST_USE enum status config_read(const struct schema *schema, const char *label,
                                          const char *text, struct arena *arena,
                                          struct config *out);

/* The keys of one cause in which two arms differ. */
struct factor {
    enum cause cause;
    uint32_t key_count;
    const char **keys;      /* full paths */
    const char **values[2]; /* text in arm 0 and arm 1 */
};
TWINSTEP_MUST_USE enum status factors_of(const struct schema *schema, const struct config *a,
                                         const struct config *b, struct arena *arena,
                                         struct factor **out, uint32_t *out_count);

/* into = into with every row of `cause` copied from `from` (class rows of optimizer and schedule
 * follow their selecting key). */
void config_swap_cause(const struct schema *schema, struct config *into, const struct config *from,
                       enum cause cause);

/* Another numerics.mode in a resolved configuration, and that mode's own numerics.determinism.*. */
void config_set_mode(struct config *config, int32_t mode);

/* Checks that span several keys (heads divide hidden, micro divides size, dtype pairs, shards == 1,
 * ...), for arms at load and for hybrids. STATUS_INPUT with the key's path. */
TWINSTEP_MUST_USE enum status config_validate(const struct config *config, uint64_t steps);

#endif
