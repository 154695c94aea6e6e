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

/* Appends any bytes as one record with right checksums. */
void events_record(struct events *events, const void *bytes, size_t length);
/* Appends the record that starts every file. */
void events_version(struct events *events);
/* Appends an Event with one Value: a simple_value. */
void events_scalar(struct events *events, int64_t step, const char *tag, float value);
/* Appends an Event with one Value: a tensor. `field` is 4 for tensor_content, 5 for float_val and 6
 * for double_val (packed as bytes), 50 and 60 for the same two without packing; `type` is the
 * DataType. */
void events_tensor(struct events *events, int64_t step, const char *tag, int type, int field,
                   double value);

#endif
