/* SPDX-License-Identifier: Apache-2.0
 * Whether bytes are the text a scenario may consist of: UTF-8 without control characters. */
#ifndef TWINSTEP_SCENARIOS_PLAINTEXT_H
#define TWINSTEP_SCENARIOS_PLAINTEXT_H

#include <stddef.h>

#include "base/status.h"

/* STATUS_INPUT names line, column (both 1-based, in bytes) and the byte. */
TWINSTEP_MUST_USE enum status plaintext_check(const char *source, const char *text, size_t length);

#endif
