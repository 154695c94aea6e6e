/* SPDX-License-Identifier: Apache-2.0
 * Writes TensorBoard event files into memory, for tests of their reader. */
#ifndef TWINSTEP_TESTS_LOGS_HELPER_EVENTS_H
#define TWINSTEP_TESTS_LOGS_HELPER_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#define EVENTS_MAX 1048576

struct events {
    unsigned char bytes[EVENTS_MAX];
    size_t length;
};

/* Any bytes as one record with right checksums. */
void events_record(struct events *events, const void *bytes, size_t length);
/* The record that starts every file. */
void events_version(struct events *events);
/* An Event with one Value: simple_value. */
void events_scalar(struct events *events, int64_t step, const char *tag, float value);
/* An Event with one Value: a tensor. `field`: 4 tensor_content, 5 float_val, 6 double_val (packed
 * as bytes), 50 and 60: the same, not packed; type: DataType. */
void events_tensor(struct events *events, int64_t step, const char *tag, int type, int field,
                   double value);

#endif
