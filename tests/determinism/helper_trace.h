/* SPDX-License-Identifier: Apache-2.0
 * A small experiment for the trace tests: a plan, and records that are a function of (run, update),
 * so that any process can tell what a file must hold. Reals are random bit patterns, with
 * infinities, subnormals and NaNs with payload among them. */
#ifndef TWINSTEP_TESTS_DETERMINISM_HELPER_TRACE_H
#define TWINSTEP_TESTS_DETERMINISM_HELPER_TRACE_H

#include "base/arena.h"
#include "determinism/trace.h"

#define SAMPLE_RUNS 3 /* baseline and test with every column, floor-rerun with the fewest */
#define SAMPLE_TEXT 5000

struct sample {
    struct arena arena;
    struct trace_plan plan;
    struct record record; /* arrays wide enough for every run */
    const char *folder;   /* made for this test, removed by sample_close */
    const char *path;     /* folder/out.h5 */
    const char *part;     /* folder/out.h5.part */
    char text[SAMPLE_TEXT];
};

void sample_open(struct sample *sample, uint32_t tensors);
void sample_close(struct sample *sample);

/* Returns the record of that update, in sample->record; it is valid until the next call. */
const struct record *sample_record(struct sample *sample, uint32_t run, uint64_t step);
void sample_pair(uint64_t step, struct pair_record *out);
const double *sample_array(struct sample *sample, uint32_t index);

/* Writes updates first ... last of both arms and the pair; the rerun gets the odd ones. */
enum status sample_put(struct sample *sample, struct trace *trace, uint64_t first, uint64_t last);
/* Writes the arrays and texts. */
enum status sample_put_late(struct sample *sample, struct trace *trace);
/* Writes a whole file of `updates`. */
enum status sample_write(struct sample *sample, const char *path, uint64_t updates);

/* Writes `updates` updates of another program's run, as the recorder does: one tensor "weight" of
 * [2, 3], one parameter group, and phases "forward" and "optimize", which begin in this order. All
 * has the same value at every update: a loss and an applied LR of 0.5, and the digest of 1 to 6. */
void sample_write_foreign(const char *path, uint64_t updates);

/* Returns how many values of an image differ from `updates` updates of the sample; prints the
 * first. `late`: arrays and texts were written. */
int sample_differences(struct sample *sample, const struct trace_image *image, uint64_t updates,
                       int late);

/* Cuts an image to the updates that all of its series have, since the one in flight may be in some.
 * Returns their number. */
uint64_t sample_cut(struct trace_image *image);

/* Returns the bytes of a file, and its length in *out_length. Fails the process where the file
 * cannot be read. */
const char *sample_bytes(struct arena *arena, const char *path, size_t *out_length);
void sample_store(const char *path, const char *bytes, size_t length);

#endif
