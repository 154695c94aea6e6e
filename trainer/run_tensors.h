/* SPDX-License-Identifier: Apache-2.0
 * The tensors of a run as the host reads and writes them. Where the run's ops have memory of their
 * own, the host must not touch a tensor: it reads a copy of it, and what it writes is copied back.
 * Elsewhere all of this gives the tensors themselves and copies nothing.
 *
 * Every access of the host to a tensor outside of ops goes through this file or through
 * model/backends.h; docs/CUDA.md lists who does. Invariant: a tensor has the same bits whichever
 * way the host looks at it. */
#ifndef TWINSTEP_TRAINER_RUN_TENSORS_H
#define TWINSTEP_TRAINER_RUN_TENSORS_H

#include "model/backends.h"
#include "trainer/run.h"

/* Windows through which the host looks at tensors. Each shows one stretch at a time, so whoever
 * needs two tensors at once reads them through two windows. */
enum run_window {
    WINDOW_NOW = 0, /* weights, or whatever is looked at alone */
    WINDOW_OLD,     /* weights before the step, the update, or the training */
    WINDOW_SLOT,    /* a slot of the optimizer */
    WINDOW_THEN,    /* the same slot before the step */
    WINDOW_STATE,   /* a whole state */
    RUN_WINDOWS
};

/* As host_window_read, host_window_room and host_window_store of model/backends.h, for a tensor of
 * the run. */
TWINSTEP_MUST_USE enum status run_read(const struct run *run, enum run_window window,
                                       const void *tensor, size_t bytes, void *out_pointer);
TWINSTEP_MUST_USE enum status run_room(const struct run *run, enum run_window window, void *tensor,
                                       size_t bytes, void *out_pointer);
TWINSTEP_MUST_USE enum status run_store(const struct run *run, enum run_window window, void *tensor,
                                        size_t bytes);

/* The parameter of a row, and the copy of it that the optimizer moves (the master where there is
 * one), for the host to read. */
TWINSTEP_MUST_USE enum status run_read_param(const struct run *run, enum run_window window,
                                             uint32_t row, void *out_pointer);
TWINSTEP_MUST_USE enum status run_read_weight(const struct run *run, enum run_window window,
                                              uint32_t row, void *out_pointer);

/* The whole state as bytes of run_layout()->bytes, until the next call for this run. */
TWINSTEP_MUST_USE enum status run_read_state(const struct run *run, const unsigned char **out);

/* Returns 1 in *out where both runs, which lay their states out alike, have equal bytes in them.
 * Where one backend has both, it compares the tensors. */
TWINSTEP_MUST_USE enum status run_equal(const struct run *a, const struct run *b, int *out);

/* A state that is kept between updates: bytes as a snapshot's, in the memory of the run's backend
 * where there is room for them, so that keeping and restoring copies nothing to the host. */
struct run_kept {
    struct arena arena;
    const struct backend *backend; /* has the bytes; NULL: the host has */
    size_t bytes, tensors;
    unsigned char *memory;
};

/* Takes the memory for states like this run's. It is given back before the run is closed. */
TWINSTEP_MUST_USE enum status run_kept_open(const struct run *run, struct run_kept *out);
TWINSTEP_MUST_USE enum status run_keep(const struct run *run, const struct run_kept *kept);
TWINSTEP_MUST_USE enum status run_take_back(struct run *run, const struct run_kept *kept);
/* Gives the host the kept bytes to read, through `window`. run_kept_write() replaces them. */
TWINSTEP_MUST_USE enum status run_kept_read(const struct run_kept *kept, struct host_window *window,
                                            const unsigned char **out);
TWINSTEP_MUST_USE enum status run_kept_write(const struct run_kept *kept,
                                             const unsigned char *bytes);
/* Puts the bytes into the run and nothing else, in the middle of an update. */
TWINSTEP_MUST_USE enum status run_load(struct run *run, const struct run_kept *kept);
/* As run_equal, between a run and a state of its own. */
TWINSTEP_MUST_USE enum status run_kept_equal(const struct run *run, const struct run_kept *kept,
                                             int *out);
void run_kept_close(struct run_kept *kept);

/* run_open and run_close: take a run's windows, empty as yet, and close those in use. */
TWINSTEP_MUST_USE enum status run_windows_open(struct run *run);
void run_windows_close(struct run *run);

#endif
