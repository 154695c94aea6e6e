/* SPDX-License-Identifier: Apache-2.0
 * The table of labels' texts. It knows no view. Invariant: names with one label have one text. */
#include "model/watch_label.h"

#include <string.h>

struct watch_name watch_named(enum watch_label label) {
#define WATCH_LABEL_TEXT(name, text) [LABEL_##name] = text,
    static const char *const texts[] = {[LABEL_OWN] = "", WATCH_LABEL_TABLE(WATCH_LABEL_TEXT)};
#undef WATCH_LABEL_TEXT
    return (struct watch_name){label, texts[label]};
}

struct watch_name watch_own(const char *text) {
    return (struct watch_name){LABEL_OWN, text};
}

int watch_name_equal(struct watch_name a, struct watch_name b) {
    return a.label == b.label && (a.label != LABEL_OWN || strcmp(a.text, b.text) == 0);
}
