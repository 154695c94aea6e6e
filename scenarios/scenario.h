/* SPDX-License-Identifier: Apache-2.0
 * A scenario: what both arms share, how they differ, what is expected. It is parsed, resolved and
 * compared here.
 *
 * This folder knows YAML (libfyaml) and the schema; it knows nothing of models or kernels.
 * Optimizers and schedules hand in their key rows as data (struct schema_class), since this folder
 * may not include them. Invariant: after scenario_open() returned STATUS_OK both configurations are
 * complete and every value lies in its bounds; every error text had file, line, column and key. */
#ifndef TWINSTEP_SCENARIOS_SCENARIO_H
#define TWINSTEP_SCENARIOS_SCENARIO_H

#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "scenarios/config.h"

struct fault; /* scenarios/fault.h */

/* An optimizer or a schedule: its rows hold only while the selecting key (optimizer.name,
 * schedule.name) has its name. */
struct schema_class {
    const char *prefix; /* "optimizer" or "schedule" */
    const char *name;   /* for instance "adamw" */
    const char *help;
    const struct key_row *keys; /* their offsets count from config_class.values */
    size_t key_count;
    /* Checks what no single row can say; called at load. STATUS_INPUT "optimizer.nesterov: expected
     * ...". NULL: there is nothing to check. */
    enum status (*validate)(const struct config *config);
    const char *module; /* SHA-256 of the module that holds it; NULL: built in */
};

/* A key that follows from a contract, with its value in the text that a scenario would hold. */
struct schema_implied {
    const char *path, *text;
    const char *shown; /* shown instead of `text` where it depends on the arm: "processes" */
};

/* A parameter of the schedule as it was written. */
#define SCHEMA_VALUES_MAX 64
struct schema_value {
    const char *key, *text;
};

/* What schedule.contract may name. To this folder a contract is the keys that follow from it, and
 * two functions. */
#define SCHEMA_IMPLIED_MAX 20
struct schema_contract {
    const char *name;
    const char *alias;     /* another name, or NULL */
    const char *help;      /* one sentence without full stop */
    const char *refusal;   /* why no training obeys it; NULL where one does */
    const char *standard;  /* the schedule.name that holds where none is written */
    const char *schedules; /* the names of its schedules, joined by ", " */
    const char *family;    /* "hf" and so on: the prefix of its schedules' classes */
    struct schema_implied implied[SCHEMA_IMPLIED_MAX];
    size_t implied_count;
    /* The class that a bare name means under this contract; NULL when it means none. */
    const char *(*find)(const struct schema_contract *contract, const char *schedule);
    /* Called with warmup, warmup_ratio and total of `config` in updates. Afterwards warmup and
     * total are in counter units, and increment, shifts and the schedule's own values are set.
     * `values` are the parameters that were written. STATUS_INPUT "schedule.total: expected
     * ...". */
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
     * `classes` unless it is there already, and hands out the digest of the file
     * (CONFIG_SHA256_SIZE bytes). A file whose digest is not `expected` is not opened, so that
     * nothing of it runs; the caller compares, too. NULL expects nothing. STATUS_INPUT "PATH:
     * expected ..., got ...". NULL where no modules are loaded. */
    enum status (*load)(const struct schema *schema, const char *prefix, const char *path,
                        const char *expected, char *out_sha256);
    void *owner; /* owner of the table behind `classes`, for load */
    /* Fills section `model` of `config` with what the checkpoint in `folder` is, from_digest
     * included; norm_rounding, from and the keys that the checkpoint does not speak of stay as they
     * are. STATUS_INPUT, STATUS_IO. NULL where no checkpoints are read. */
    enum status (*describe)(const char *folder, struct config *config);
    /* Checks what only the model knows of a complete configuration: that the tensor of section
     * `fault` is there. An error that has no place in *fault has its text in status_text(). NULL
     * where no model is known. */
    enum status (*check)(const struct config *config, struct fault *fault);
};

/* The value of an implied key as `twinstep keys` and errors print it. */
const char *schema_implied_text(const struct schema_implied *implied);

/* The contract of this name or alias; NULL when the schema has none. */
const struct schema_contract *schema_contract_find(const struct schema *schema, const char *name);

/* Whether any rate of dropout is above 0. */
int config_has_dropout(const struct config *config);

/* Whether each rank has a gradient of its own, closed and rounded, which a collective joins:
 * several ranks in modes shaped and shuffled. Elsewhere ranks have open sums of shards (law 21). */
int config_ranks_close(const struct config *config);

/* The shards by which an update is dealt to ranks: numerics.shards; or one for each rank, where
 * ranks close gradients of their own or go on with each other's chains (one shard). */
uint64_t config_dealt_shards(const struct config *config);

/* Whether a key can make data-parallel ranks hold other weights than rank 0. */
int config_parts_ranks(const struct config *config);

/* How many tensor-parallel ranks have samples of their own: parallel.tensor with parallel.feeds
 * own-on-tensor, else 1. */
uint32_t config_fed_ranks(const struct config *config);

/* Returns 1 when tensor-parallel ranks may hold weights apart: norms whose gradients are not summed
 * (parallel.forgets), or all that every rank has whole, where ranks have other samples. */
int config_parts_tensor_ranks(const struct config *config);

/* How many ranks may hold copies of their own: ranks of either kind that part, else 1. */
uint32_t config_copies(const struct config *config);

/* Whether linear layers may go through OpenBLAS on the CPU, and whether they go through cuBLAS. */
int config_uses_openblas(const struct config *config);
int config_uses_cublas(const struct config *config);

/* Whether no seed can replay the training, because sums race or a device's library works on several
 * streams. */
int config_races(const struct config *config);

/* Whether this is a dpo task whose loss reads a reference. */
int config_has_reference(const struct config *config);

/* Whether schedule.contract names a contract. */
int config_has_contract(const struct config *config);

/* The rows of struct config (their offsets count from it), in the order of the documentation. */
const struct key_row *schema_rows(size_t *out_count);

/* The name of a phase: "fetch", "forward", ..., "zero". */
const char *phase_name(enum phase phase);

/* Where in an update something happens: before its first phase, in a phase, in the forward of the
 * reference, at its end; in the order of enum watch_stage (model/watch.h). */
const char *stage_name(uint32_t stage);

/* The value of model.family: "olmo2", "llama", "qwen2", "qwen3". */
const char *family_name(int32_t family);

/* What `twinstep keys` prints: every row, then the rows of every class; and the generated
 * docs/SCENARIOS.md. */
void schema_print(const struct schema *schema, FILE *out);
void schema_print_json(const struct schema *schema, FILE *out);
void schema_print_markdown(const struct schema *schema, FILE *out);
/* The same for the classes that one module holds. */
void schema_print_module(const struct schema *schema, const char *sha256, FILE *out);
void schema_print_module_json(const struct schema *schema, const char *sha256, FILE *out);

struct scenario_arm {
    char name[CONFIG_NAME_SIZE];
    struct config config;
};

/* A key that was written where nothing reads it. One that was written in `common` counts only when
 * neither arm reads it. */
struct scenario_inert {
    const char *key, *why; /* for instance "dpo.beta", "task is sft" */
    const char *arm;       /* NULL: both arms */
    const char *line;      /* for instance "test: dpo.beta has no effect here: task is sft" */
};

enum floor_design { FLOOR_AUTO = 0, FLOOR_BASELINE, FLOOR_BOTH };
/* The most repeats of the baseline alone; of each arm it is STATISTICS_MAX_RUNS / 2. */
#define FLOOR_REPEATS_MAX 62

/* What expect.verdict says. */
enum verdict {
    VERDICT_NONE = 0, /* nothing is expected */
    VERDICT_IDENTICAL,
    VERDICT_INSIDE_FLOOR,
    VERDICT_OUTSIDE_FLOOR,
    VERDICT_UNTESTABLE,
    VERDICT_SAME_TRAINING, /* weights, optimizer state and applied LR are equal at every update */
    VERDICT_SAME_WEIGHTS,  /* the weights are equal so far, the optimizer's state or input is not */
    VERDICT_COUNT
};
const char *verdict_name(enum verdict verdict);             /* "identical", "inside-floor", ... */
const char *readback_share_name(enum readback_share share); /* "false", "true" or "all" */

struct floor_file; /* determinism/floor_file.h */

/* What the head's sections record, floor, attribution and eval say. */
struct scenario_record {
    uint64_t probe_every; /* in updates; 0: never */
    uint64_t snapshots;   /* updates between two stored states; 0: none is stored */
    /* updates between two whose forward and backward run again to be compared; 0: none does */
    uint64_t replay_check;
    int32_t readback; /* enum readback_share */
    uint8_t tensors, phases;
};
struct scenario_floor {
    int32_t design;      /* enum floor_design */
    uint64_t replicates; /* KEY_WORD_UINT: auto, resolved by the experiment's plan */
    double alpha;
    /* Measured before, for this baseline; NULL: its runs are trained. */
    const struct floor_file *file;
};
struct scenario_attribution {
    uint64_t orders;     /* even; KEY_WORD_UINT: auto (determinism/orders.h) */
    uint64_t replicates; /* repeats of each hybrid; KEY_WORD_UINT: auto */
    uint8_t twin;        /* 1: train the baseline perturbed, too, where its floor is exact */
};

/* Rows on which the arms' last weights are measured, for both arms alike. */
#define EVAL_NOTHING "none" /* eval.from where nothing is measured */
#define EVAL_REST "rest"    /* rows of the arms' own data behind the first data.samples */
struct scenario_eval {
    char from[CONFIG_PATH_SIZE]; /* a source of rows that are held out, or one of the words above */
    uint64_t rows;               /* KEY_WORD_UINT: all */
    uint64_t training_rows;      /* at most so many rows that were trained on; 0: none */
};

struct scenario {
    const char *path; /* as given; "" for a scenario that is held in memory */
    const char *text; /* the file, verbatim */
    size_t text_length;
    char name[CONFIG_NAME_SIZE];
    const char *about;
    const char *source;
    uint64_t steps;
    struct scenario_record record;
    struct scenario_floor floor;
    struct scenario_attribution attribution;
    struct scenario_eval eval;
    struct {
        int32_t verdict;          /* enum verdict */
        int32_t cause;            /* enum cause, or -1 for any */
        const char *shares;       /* expect_shares.h; NULL: any */
        const char *order;        /* names of causes with ", " between them; NULL: any */
        const char *word;         /* of evidence/attribution.h; NULL: any */
        int64_t first_step;       /* 0: any */
        int64_t replicas_part;    /* 0: any */
        const char *first_phase;  /* stage_name; NULL: any */
        const char *first_tensor; /* NULL: any */
    } expect;
    struct scenario_arm arms[2]; /* [0] is the baseline, [1] the test arm */
    struct scenario_inert *inert;
    uint32_t inert_count;
    const char *overrides; /* what --set changed, one option per line; "": nothing */
    int loop_line[2][5];   /* line of loop.micro, update, epoch, eval, on_skip by arm; 0: default */
    int data_place[2][2];  /* line and column of what the arm's task reads; 0: default, or --set */
};

/* Whether overrides have the form KEY=VALUE, before any scenario that they are for is opened.
 * STATUS_INPUT. Which keys there are each scenario says. */
TWINSTEP_MUST_USE enum status scenario_check_overrides(const char *const *overrides, size_t count);

/* Reads a scenario, merges `common` into the arms, applies `overrides` ("common.optimizer.lr=1e-6",
 * "arms.test.batch.micro=4", "steps=3"), fills in defaults, derives values that are auto, and
 * checks bounds. `path` "-" reads standard input. All memory is the arena's. STATUS_INPUT with
 * "file:line:column: error: key: expected ..., got ...". */
TWINSTEP_MUST_USE enum status scenario_open(struct arena *arena, const struct schema *schema,
                                            const char *path, const char *const *overrides,
                                            size_t override_count, struct scenario **out);
/* The same from text in memory; `label` stands for the path in errors. */
TWINSTEP_MUST_USE enum status scenario_parse(struct arena *arena, const struct schema *schema,
                                             const char *label, const char *text, size_t length,
                                             const char *const *overrides, size_t override_count,
                                             struct scenario **out);

/* The canonical text of a resolved configuration: one line "key: value" for each row that holds, in
 * the order of the schema, reals in their shortest form that reads back. Two texts are equal
 * exactly when the configurations are. */
TWINSTEP_MUST_USE enum status config_text(const struct schema *schema, const struct config *config,
                                          struct arena *arena, char **out_text);

/* Whether `key` stands with `value` in a configuration's canonical text (config_text), of this
 * version or an earlier one: what may be asked of a trace without a schema, whose modules may be
 * gone. 0 for another value, for a key that the text does not hold, and for text NULL. */
int config_text_says(const char *text, const char *key, const char *value);

/* The value of `key` as the text prints it; NULL: the text does not hold the key. It ends before
 * the end of its line: *out_length characters. */
const char *config_text_value(const char *text, const char *key, size_t *out_length);

/* Reads the configuration that has this canonical text; `label` stands for its source in errors.
 * STATUS_INPUT when it is no text of this version: every key must be there, and no other. */
TWINSTEP_MUST_USE enum status config_read(const struct schema *schema, const char *label,
                                          const char *text, struct arena *arena,
                                          struct config *out);

/* The keys of one cause in which two arms differ: the unit of attribution. */
struct factor {
    enum cause cause;
    uint32_t key_count;
    const char **keys; /* full paths */
    /* their values as text, in arm 0 and in arm 1; "(none)": the arm has no such key, or does not
     * read it */
    const char **values[2];
};
/* The factors in which two arms differ, in the order of enum cause; their memory is the arena's. */
TWINSTEP_MUST_USE enum status factors_of(const struct schema *schema, const struct config *a,
                                         const struct config *b, struct arena *arena,
                                         struct factor **out, uint32_t *out_count);

/* Copies every row of `cause` from `from` into `into`. The rows of an optimizer or a schedule
 * follow the key that selects it. */
void config_swap_cause(const struct schema *schema, struct config *into, const struct config *from,
                       enum cause cause);

/* Sets another numerics.mode in a resolved configuration, together with that mode's own
 * numerics.determinism.*. */
void config_set_mode(struct config *config, int32_t mode);

/* Checks what spans several keys (heads divide hidden, micro divides size, pairs of dtypes, shards
 * == 1, ...), for arms at load and for hybrids. STATUS_INPUT with the path of the key. */
TWINSTEP_MUST_USE enum status config_validate(const struct config *config, uint64_t steps);

#endif
