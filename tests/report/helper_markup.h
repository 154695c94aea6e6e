/* SPDX-License-Identifier: Apache-2.0
 * A strict reader of what report/ writes: tags nest and close, attributes are quoted and unique in
 * their tag, there is no bare & or <, UTF-8 is valid and without controls, ids are unique, links go
 * to ids that exist, and nothing loads or runs anything. */
#ifndef TWINSTEP_TESTS_REPORT_HELPER_MARKUP_H
#define TWINSTEP_TESTS_REPORT_HELPER_MARKUP_H

#include <stddef.h>

/* Returns NULL, or what is wrong and where; the text is static. */
const char *markup_fault(const char *page, size_t length);

/* Returns the text of the first element <tag> after the first `after`, with its entities read;
 * free() it. Returns NULL where there is none. Tags inside are dropped. */
char *markup_text(const char *page, const char *after, const char *tag);

#endif
