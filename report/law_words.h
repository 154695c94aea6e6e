/* SPDX-License-Identifier: Apache-2.0
 * The law by which a distance grew, as one sentence. The words are those of judgement_print. */
#ifndef TWINSTEP_REPORT_LAW_WORDS_H
#define TWINSTEP_REPORT_LAW_WORDS_H

#include "base/arena.h"
#include "evidence/judge.h"

/* " |A-B| grows like k^0.5 [0.4, 0.6] over updates 1 to 9.", with the space before it; `growth` is
 * known. Lives in `arena`. */
TWINSTEP_MUST_USE enum status law_words(const char *what, const struct judged_growth *growth,
                                        struct arena *arena, char **out);

#endif
