/* SPDX-License-Identifier: Apache-2.0
 * Takes lists in a text parameter apart into words and numbers (the grammar is in stages.h). What
 * the words mean is left to each schedule. */
#include "sched/stages.h"

#include <string.h>

#include "base/number.h"

int stages_given(const char *text) {
    return strcmp(text, STAGES_NONE) != 0;
}

int stages_next(const char **at, char separator, char *out, size_t size) {
    const char stop[2] = {separator, '\0'};
    const char *begin = *at;
    out[0] = '\0';
    if (begin == NULL) return 0;
    size_t length = strcspn(begin, stop);
    const char *rest = begin[length] == separator ? begin + length + 1 : NULL;
    while (length > 0 && *begin == ' ')
        ++begin, --length;
    while (length > 0 && begin[length - 1] == ' ')
        --length;
    if (length >= size) return 0;
    memcpy(out, begin, length);
    out[length] = '\0';
    *at = rest;
    return 1;
}

enum status stages_number(const char *key, const char *list, const char *word, double low,
                          double high, double *out) {
    if (number_parse_real(word, NUMBER_HEX, out) == STATUS_OK && *out >= low && *out <= high)
        return STATUS_OK;
    FAIL(STATUS_INPUT, "schedule.%s: expected a number from %.17g to %.17g, got \"%s\" in \"%s\"",
         key, low, high, word, list);
}

enum status stages_numbers(const char *key, const char *list, double low, double *out, size_t room,
                           size_t *out_count) {
    char word[STAGES_PART];
    *out_count = 0;
    for (const char *at = list; at != NULL;) {
        if (!stages_next(&at, ',', word, sizeof word))
            FAIL(STATUS_INPUT, "schedule.%s: expected numbers between commas, got \"%s\"", key,
                 list);
        if (*out_count == room)
            FAIL(STATUS_INPUT, "schedule.%s: expected at most %zu numbers, got \"%s\"", key, room,
                 list);
        TRY(stages_number(key, list, word, low, 0x1p53, &out[*out_count]));
        ++*out_count;
    }
    return STATUS_OK;
}
