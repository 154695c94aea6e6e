/* SPDX-License-Identifier: Apache-2.0
 * Writes a run of any C or C++ trainer as a trace that twinstep compares, certifies and checks
 * (docs/FOREIGN.md). This header and libtwinstep_trace are all that a trainer needs:
 *
 *     open;  per update: phase, put, digest, ..., end;  close
 *
 * Every function that can fail returns 0, or something else after an error, whose text
 * twinstep_trace_error gives. After a failed open there is nothing to close. The file is PATH.part
 * until it is closed, and holds every update that was ended, whatever happens to the process. Use
 * one thread at a time. */
#ifndef TWINSTEP_DETERMINISM_TRACE_TWINSTEP_TRACE_H
#define TWINSTEP_DETERMINISM_TRACE_TWINSTEP_TRACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct twinstep_trace;

/* A tensor that the optimizer updates: the whole of it, also where this process holds a part. */
struct twinstep_trace_tensor {
    const char *name;
    const char *dtype; /* of the stored bits: "f32", "bf16", "f16", "f64", ... */
    uint32_t rank;
    const uint64_t *shape; /* (rank) */
    uint32_t group;        /* its parameter group, below `groups` */
};

struct twinstep_trace_options {
    const char *run;                     /* the name of the run; NULL: "main" */
    const char *writer, *writer_version; /* of the trainer; the version may be NULL */
    const char *configuration;           /* lines "key: value"; may be NULL */
    const char *causes;                  /* lines "key: cause", in your own words; may be NULL */
    uint32_t rank, world;                /* which process of how many; world 0 means 1 */
    uint32_t groups;                     /* number of parameter groups */
    const struct twinstep_trace_tensor *tensors; /* in the order of the forward pass */
    uint32_t tensor_count;
    const char *const *phases; /* names that twinstep_trace_phase is given; may be none */
    uint32_t phase_count;
    int overwrite; /* 0 refuses a PATH that exists */
};

/* Creates PATH.part. Everything in the options is copied. */
int twinstep_trace_open(const char *path, const struct twinstep_trace_options *options,
                        struct twinstep_trace **out);

/* Put a number of this update: "loss", "grad_norm", "tokens", "skipped", ...; of a parameter group
 * "lr_applied", "lr_logged", "wd_applied", ...; of a tensor "grad_norm", "update_norm". What is not
 * put counts as not measured. */
int twinstep_trace_put(struct twinstep_trace *trace, const char *column, double value);
int twinstep_trace_put_group(struct twinstep_trace *trace, const char *column, uint32_t group,
                             double value);
int twinstep_trace_put_tensor(struct twinstep_trace *trace, const char *column, uint32_t tensor,
                              double value);

/* A phase begins: "fetch", "forward", "backward", "clip", "optimize", "schedule", "zero" or
 * another one of the options. The first call of an update for each phase gives its place. */
int twinstep_trace_phase(struct twinstep_trace *trace, const char *phase);

/* Adds elements `first` to `first + count - 1` of a tensor to its digest "keyed 1" of this update;
 * `column` is "digest_gradient" or "digest_parameter". A tensor may come in any number of pieces
 * and in any order. twinstep_trace_sum adds the sum of elements that was made elsewhere, on a
 * device or by another process. */
int twinstep_trace_digest(struct twinstep_trace *trace, const char *column, uint32_t tensor,
                          const void *elements, uint64_t first, uint64_t count);
int twinstep_trace_sum(struct twinstep_trace *trace, const char *column, uint32_t tensor,
                       uint64_t sum);

/* Stores SHA-256 of bytes; `column` is "digest_batch" or "digest_rng". */
int twinstep_trace_bytes(struct twinstep_trace *trace, const char *column, const void *bytes,
                         size_t length);

/* Ends update `step`, which is larger than the one before, and writes it. */
int twinstep_trace_end(struct twinstep_trace *trace, uint64_t step);

/* Closes the trace. With `complete` PATH.part becomes PATH; without, it stays. The trace is gone in
 * every case. NULL is fine. */
int twinstep_trace_close(struct twinstep_trace *trace, int complete);

/* The text of this thread's last error, or "". */
const char *twinstep_trace_error(void);

#ifdef __cplusplus
}
#endif
#endif
