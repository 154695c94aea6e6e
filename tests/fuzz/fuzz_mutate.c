/* SPDX-License-Identifier: Apache-2.0
 * After each mutation of an event file its lengths and checksums are made right again, else the
 * fuzzer would never get past them. Other formats mutate as libFuzzer does. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "logs/tfrecord.h"

#define HEAD 12 /* length, checksum of it */
#define TAIL 4  /* checksum of the bytes */

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

static void write_le(uint8_t *at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

static size_t read_length(const uint8_t *at) {
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value > SIZE_MAX / 2 ? SIZE_MAX / 2 : (size_t)value;
}

static void repair(uint8_t *data, size_t size) {
    for (size_t at = 0; size - at >= HEAD + TAIL;) {
        const size_t room = size - at - HEAD - TAIL;
        size_t length = read_length(data + at);
        if (length > room) length = room;
        write_le(data + at, length, 8);
        write_le(data + at + 8, tfrecord_mask(tfrecord_crc32c(data + at, 8)), 4);
        write_le(data + at + HEAD + length,
                 tfrecord_mask(tfrecord_crc32c(data + at + HEAD, length)), 4);
        at += HEAD + length + TAIL;
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    const char *format = getenv("TWINSTEP_FUZZ_FORMAT");
    const size_t mutated = LLVMFuzzerMutate(data, size, most);
    const int keep_broken = seed % 16 == 0; /* wrong checksums are an input, too */
    if (format != NULL && strcmp(format, "tensorboard") == 0 && !keep_broken) repair(data, mutated);
    return mutated;
}
