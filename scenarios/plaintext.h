/* SPDX-License-Identifier: Apache-2.0
 * Checks that bytes are the text of which a scenario may consist: UTF-8 without control
 * characters. */
#ifndef TWINSTEP_SCENARIOS_PLAINTEXT_H
#define TWINSTEP_SCENARIOS_PLAINTEXT_H

#include <stddef.h>

#include "base/status.h"

/* STATUS_INPUT names the line, the column (both from 1, in bytes) and the byte or character. */
TWINSTEP_MUST_USE enum status plaintext_check(const char *source, const char *text, size_t length);

#endif
