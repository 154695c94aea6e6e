/* SPDX-License-Identifier: Apache-2.0
 * The trace: one HDF5 file that holds every training of an experiment, update by update.
 * docs/TRACE.md has the layout and a recipe for reading it.
 *
 * The file is written as OUT.part and renamed when it is complete; a file that was there before is
 * replaced only if that was asked for. Every object exists before the first update, as SWMR
 * demands. The scale `step` is written and flushed last in each update and is the commit mark, and
 * readers cut every column to its length. The module knows records (record.h), texts and named
 * arrays; it knows nothing of configurations, models or verdicts. HDF5 is not thread safe: use one
 * thread at a time. A process cannot read a trace that it is writing.
 *
 * Invariant: a finished update survives the death of the process, and the file's bytes are a
 * function of what was put in. */
#ifndef TWINSTEP_DETERMINISM_TRACE_H
#define TWINSTEP_DETERMINISM_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "determinism/record.h"

struct arena;

#define TRACE_VERSION 3 /* of what trace_create writes; 1 had no seals */
#define TRACE_VERSION_FOREIGN                                                                      \
    2 /* of a trace of foreign runs (docs/FOREIGN.md), and of no other                             \
       */

/* What the stored states of a run are. Their bytes mean nothing to the trace. */
struct trace_snapshot_plan {
    uint64_t bytes;     /* bytes of one state; 0 if the run stores none */
    uint64_t every;     /* number of updates from one to the next */
    int64_t format;     /* version of what the bytes mean */
    uint8_t layout[32]; /* digest of how this build lays such a state out */
    int big_endian;     /* filled in by the reader: byte order of the machine that wrote */
};

/* What a run has beside its columns if another program trained it (docs/FOREIGN.md). */
struct trace_foreign {
    const char *digest;        /* kind of its digests: "keyed 1", "leaf 1", or "" without any */
    int64_t rank, world;       /* which process of how many wrote it */
    const char *causes;        /* lines "key: cause" that its writer gives; may be "" */
    const uint32_t *groups;    /* (tensors) the parameter group of each; NULL: not recorded */
    const char *const *dtypes; /* (tensors) "bf16" */
    const char *const *shapes; /* (tensors) "64,512" */
    /* (tensors) The digest of each before the first update of the run, 64 hexadecimal digits, or ""
     * where it was not taken; NULL: of none. */
    const char *const *initial;
};

struct trace_run_plan {
    const char *id;  /* "baseline", "test", "floor-rerun", "replicate-baseline-01", "hybrid-010" */
    const char *arm; /* the arm whose configuration it starts from */
    int64_t replicate; /* 0 is the arm itself */
    uint64_t mask;     /* the factors swapped in from the test arm, bit i for factor i */
    /* The first update of its training. A hybrid that goes on from the state of another run has
     * rows from a later update. */
    uint64_t first_step;
    struct record_shape shape;
    const char *const *phases; /* shape.phases names */
    const char *const *sites;
    const char *const *tensors;              /* shape.tensors names */
    const struct record_consumer *consumers; /* shape.consumers of them */
    const char *const *streams;              /* shape.streams names */
    /* The parameter group of every tensor that the optimizer updates, in table order, one digit
     * each: it says which lr_applied each tensor had. "" if not recorded. */
    const char *groups;
    const char *configuration; /* the resolved configuration as text */
    /* NULL for a run of ours. If not NULL, `groups` is "" and `configuration` holds any lines
     * "key: value". */
    const struct trace_foreign *foreign;
    struct trace_snapshot_plan snapshots;
};

struct trace_pair_plan {
    const char *a, *b; /* ids of two runs */
};

/* An f64 array of fixed shape that is written once, later: "floor/distance" (m, m),
 * "attribution/value" (2^k), ... */
struct trace_array_plan {
    const char *path;
    uint32_t rank; /* 1 or 2 */
    uint64_t shape[2];
    const char *units, *long_name;
};

/* A text attribute that is set at creation, of the group or root `path` ("" is the root). */
struct trace_attribute {
    const char *path;
    const char *name;
    const char *text;
};

struct trace_plan {
    const struct trace_run_plan *runs;
    uint32_t run_count;
    const struct trace_pair_plan *pairs;
    uint32_t pair_count;
    const struct trace_array_plan *arrays;
    uint32_t array_count;
    /* Paths of byte datasets that are written later: "verdict/json", "verdict/text". */
    const char *const *texts;
    uint32_t text_count;
    const struct trace_attribute *attributes;
    uint32_t attribute_count;
    /* Who wrote a trace of foreign runs, and which version of it; NULL for a trace of ours. All
     * runs are foreign or none is. */
    const char *writer, *writer_version;
    /* Rows that each run and pair will have at most; 0: not known. A longer training is written,
     * too, with more work for each row. */
    uint64_t updates;
    int overwrite; /* 0 refuses a target that exists */
};

struct trace;        /* an open file that is being written */
struct trace_window; /* rows that are read when they are asked for */
struct trace_values; /* numbers of an array, likewise */

/* About how many bytes the file will have once every run and pair has `updates` rows, and as many
 * states as it stores of them. Texts are not counted. */
uint64_t trace_plan_bytes(const struct trace_plan *plan, uint64_t updates);

/* Says before long work what trace_create() would say of the names PATH and PATH.part. Whether the
 * folder can be written to it does not ask. */
TWINSTEP_MUST_USE enum status trace_try(const char *path, int overwrite, struct arena *arena);

/* Creates PATH.part with every object and starts SWMR. STATUS_IO names the path and the reason (it
 * exists, no such folder, no space, not writable). */
TWINSTEP_MUST_USE enum status trace_create(const char *path, const struct trace_plan *plan,
                                           struct arena *arena, struct trace **out);
TWINSTEP_MUST_USE enum status trace_put_record(struct trace *trace, uint32_t run,
                                               const struct record *record);
TWINSTEP_MUST_USE enum status trace_put_pair(struct trace *trace, uint32_t pair,
                                             const struct pair_record *record);
TWINSTEP_MUST_USE enum status trace_put_array(struct trace *trace, const char *path,
                                              const double *values);
/* Puts `count` numbers of one row of an array, from number `first` of the whole array on; others
 * may follow. Such an array is not put as a whole. */
TWINSTEP_MUST_USE enum status trace_put_values(struct trace *trace, const char *path,
                                               uint64_t first, uint64_t count,
                                               const double *values);
TWINSTEP_MUST_USE enum status trace_put_text(struct trace *trace, const char *path,
                                             const char *text, size_t length);
/* Stores the state after update `step` (0: before the first one), snapshots.bytes of the run's
 * plan. Steps increase. */
TWINSTEP_MUST_USE enum status trace_put_snapshot(struct trace *trace, uint32_t run, uint64_t step,
                                                 const void *bytes);
/* Closes the trace and renames PATH.part to PATH. The trace is closed in every case. After a
 * failure PATH.part stays, with what was committed; that of a trace without runs stays only if it
 * is whole. */
TWINSTEP_MUST_USE enum status trace_finish(struct trace *trace);
/* Closes the trace after an error or an interruption. PATH.part stays and can be read, unless the
 * trace has no runs: then it is removed. This never fails. */
void trace_abandon(struct trace *trace);

/* What a reader gets: everything in memory, in the plan's terms. Columns are [update][...]. */
struct trace_run {
    struct trace_run_plan plan; /* with plan.configuration and all names filled in */
    uint64_t updates;           /* number of rows that are committed */
    struct record *records; /* (updates); NULL where `window` reads them: trace_row gives both */
    struct trace_window *window;
    const uint64_t *ends;     /* the last update of each block that `window` reads of a file */
    uint64_t snapshots;       /* number of stored states that are committed */
    uint64_t *snapshot_steps; /* (snapshots) the update after which each was taken, increasing */
    /* The first update that does not match its `check`; 0 if all do, as always from trace_open. */
    uint64_t damaged;
    /* What a foreign run may leave out: 1 if its rows have no `check`, if its roots were made on
     * reading, of its columns, and if it has no column of the loss. */
    int unchecked, derived, without_loss;
};
struct trace_pair {
    struct trace_pair_plan plan;
    uint64_t updates;
    struct pair_record *records; /* likewise */
    struct trace_window *window;
    const uint64_t *ends;
};
struct trace_array {
    struct trace_array_plan plan;
    const double *values; /* NaN where nothing was written; NULL where `later` reads them */
    struct trace_values *later;
};
struct trace_text {
    const char *path;
    const char *text; /* "" if nothing was written */
    size_t length;
};
/* What the seals of a file vouch for (docs/TRACE.md). A file that does not agree with its seals is
 * refused. */
enum trace_seal {
    TRACE_SEAL_NONE = 0,   /* version 1, or a foreign trace whose writer made none */
    TRACE_SEAL_BEGUN,      /* names, axes, configurations: live, or killed */
    TRACE_SEAL_UNFINISHED, /* and what there is of results: made by trace_recover */
    TRACE_SEAL_WHOLE       /* and the results */
};
/* "none", "opening", "unfinished" or "whole". */
const char *trace_seal_word(enum trace_seal seal);

/* Fails where the live name of a trace that is written stands for another file, or for none: then
 * what is written is lost, and files beside it are not its own. STATUS_IO. */
TWINSTEP_MUST_USE enum status trace_refuse_replaced(const struct trace *trace);

/* Whether a process writes the trace at this moment, and which (0: one that cannot be seen from
 * here, such as one of another container). Where the file system has no locks the answer is 0. Not
 * to be asked by the process that writes it. */
int trace_is_written(const char *path, long *out_process);

struct trace_source; /* the file of an image whose rows are read when they are asked for */

struct trace_image {
    struct trace_source *source; /* NULL: all rows are in memory */
    int complete;                /* 0 for a .part or a killed run */
    enum trace_seal seal;
    const char *writer, *writer_version; /* as in the plan; NULL for a trace of ours */
    struct trace_run *runs;
    uint32_t run_count;
    struct trace_pair *pairs;
    uint32_t pair_count;
    struct trace_array *arrays;
    uint32_t array_count;
    struct trace_text *texts;
    uint32_t text_count;
    struct trace_attribute *attributes; /* those of the root and of groups, as put in */
    uint32_t attribute_count;
};

/* Reads a finished file, a live one (SWMR), or the .part of a killed run. STATUS_INPUT for a file
 * that is not a twinstep trace, is newer, truncated or damaged; STATUS_IO if it cannot be read. */
TWINSTEP_MUST_USE enum status trace_open(const char *path, struct arena *arena,
                                         struct trace_image **out);
/* Reads as trace_open does, but keeps a row of a run that does not match its `check` and reports it
 * in `damaged`. This is for finding out what was changed. */
TWINSTEP_MUST_USE enum status trace_open_damaged(const char *path, struct arena *arena,
                                                 struct trace_image **out);
/* Reads as trace_open does, but for the rows: each is checked, and read again when trace_row asks
 * for it, so that memory does not grow with the number of updates. Rows can be had until
 * trace_close, as long as the file is the same: one that was replaced meanwhile, or changed though
 * it was complete, is STATUS_INPUT. Those of a foreign trace, whose roots may have to be made, are
 * all read. */
TWINSTEP_MUST_USE enum status trace_open_long(const char *path, struct arena *arena,
                                              struct trace_image **out);
/* The same, but a row of a run that does not match its `check` is kept, as by trace_open_damaged.
 */
TWINSTEP_MUST_USE enum status trace_open_long_damaged(const char *path, struct arena *arena,
                                                      struct trace_image **out);
void trace_close(struct trace_image *image); /* `image` may be NULL, or one of trace_open */

/* Row `index`, below `updates`, of a run or a pair of any image. It may be used until two other
 * rows of that run or pair were asked for. One that cannot be read comes without any measurement,
 * and trace_rows_status says so: whoever concludes something from rows asks it at the end. */
const struct record *trace_row(const struct trace_run *run, uint64_t index);
/* Returns the place of the first event of a phase in an update of a foreign run, in the order of
 * all events: -1 where there was none, INT64_MIN where the run names no such phase, so that nothing
 * is known. */
int64_t trace_phase_place(const struct trace_run *run, const struct record *record,
                          const char *phase);
const struct pair_record *trace_pair_row(const struct trace_pair *pair, uint64_t index);
/* Number `index` of an array of any image, counted through its rows. One that cannot be read is
 * NaN, and trace_rows_status says so. */
double trace_value(const struct trace_array *array, uint64_t index);
/* The first failure to read a row or a number of this image. */
TWINSTEP_MUST_USE enum status trace_rows_status(const struct trace_image *image);
/* Let trace_row and trace_pair_row read what was put of a run or a pair, until the trace is closed:
 * they set `window`. The caller counts `updates`, and gives the shape in plan.shape. */
TWINSTEP_MUST_USE enum status trace_follow_run(struct trace *trace, uint32_t index,
                                               struct arena *arena, struct trace_run *run);
TWINSTEP_MUST_USE enum status trace_follow_pair(struct trace *trace, uint32_t index,
                                                struct arena *arena, struct trace_pair *pair);
/* Lets trace_value read what was put of an array, likewise: it sets `later`. */
TWINSTEP_MUST_USE enum status trace_follow_array(struct trace *trace, const char *path,
                                                 struct arena *arena, struct trace_array *array);
/* Makes the roots of a foreign run that stores none, and digest_weights and digest_lr where they
 * are missing; sets `derived`. It does nothing where a part of some root was not recorded. */
void trace_derive_roots(struct trace_run *run);

/* The first attribute, text, array or run of that name, or NULL. */
const char *trace_attribute_of(const struct trace_image *image, const char *path, const char *name);
const struct trace_text *trace_text_of(const struct trace_image *image, const char *path);
const struct trace_array *trace_array_of(const struct trace_image *image, const char *path);
const struct trace_run *trace_run_of(const struct trace_image *image, const char *id);

/* Stores the index of the last stored state that was taken not after `step`. Returns 0 if there is
 * none. */
int trace_snapshot_find(const struct trace_run *run, uint64_t step, uint64_t *out_index);

/* Reads one stored state of a run of PATH, plan.snapshots.bytes long, and no other one. `run`
 * belongs to the image of the same file. STATUS_INPUT if it is damaged or cut short. */
TWINSTEP_MUST_USE enum status trace_snapshot_read(const char *path, const struct trace_run *run,
                                                  uint64_t index, struct arena *arena,
                                                  unsigned char **out_bytes);

/* The stored states of a run that do not match their digests. */
#define TRACE_STATES_NAMED 8
struct trace_states {
    uint64_t damaged;                   /* how many */
    uint64_t index[TRACE_STATES_NAMED]; /* the first of them, increasing */
};

/* Holds all stored states of a run of `image`, which trace_open_long or its like has opened,
 * against their digests, one in memory at a time. STATUS_INPUT if one cannot be read. */
TWINSTEP_MUST_USE enum status trace_check_states(const struct trace_image *image,
                                                 const struct trace_run *run,
                                                 struct trace_states *out);

/* Copies every committed update and stored state of PART into a normal file OUT, whose image has
 * complete = 0 (the dataset /complete). PART is never touched; OUT may be PART without its suffix.
 * While it is written, OUT is called OUT.rebuild. The caller sees to it that neither is PART. */
#define TRACE_REBUILD ".rebuild"
TWINSTEP_MUST_USE enum status trace_recover(const char *part, const char *out, int overwrite);
/* The same from the image of PART, which trace_open_long has opened. */
TWINSTEP_MUST_USE enum status trace_recover_image(const struct trace_image *image, const char *part,
                                                  const char *out, int overwrite);

#endif
