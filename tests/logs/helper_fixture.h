/* SPDX-License-Identifier: Apache-2.0
 * The logs that the repository holds: constructed ones and those of real runs. */
#ifndef TWINSTEP_TESTS_LOGS_HELPER_FIXTURE_H
#define TWINSTEP_TESTS_LOGS_HELPER_FIXTURE_H

#include "base/arena.h"

struct fixture {
    char *path;
    char *bytes; /* with a NUL behind them */
    size_t length;
};

/* Reads a file below tests/, such as "logs/fixtures/llmc/main.log". Fails the test when it cannot
 * be read. */
struct fixture fixture_read(struct arena *arena, const char *name);

#endif
