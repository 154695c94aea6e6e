/* SPDX-License-Identifier: Apache-2.0
 * A strict reader of what report/ writes: tags nest and close, attributes are quoted and unique in
 * their tag, no bare & or <, valid UTF-8 without controls, ids unique, links to ids that exist,
 * nothing that loads or runs anything. */
#ifndef TWINSTEP_TESTS_REPORT_HELPER_MARKUP_H
#define TWINSTEP_TESTS_REPORT_HELPER_MARKUP_H

#include <stddef.h>

/* NULL, or what is wrong and where; the text is static. */
const char *markup_fault(const char *page, size_t length);

/* Text of the first element <tag> behind the first `after`, its entities read; free() it. NULL when
 * there is none. Tags inside are dropped. */
char *markup_text(const char *page, const char *after, const char *tag);

#endif
