/* SPDX-License-Identifier: Apache-2.0
 * Lays the rows of a verdict out for a terminal. Words and numbers are made elsewhere.
 *
 * A label stands in columns 3 to 10, and the text of its row from column 12 on. Invariant: the
 * bytes depend on the rows alone. */
#include "evidence/judge.h"

#include <string.h>

#define INDENT "           " /* as wide as a label and the blanks around it */

void judgement_print_to(const struct judgement *judgement,
                        void (*put)(void *to, const char *bytes, size_t length), void *to) {
    for (uint32_t i = 0; i < judgement->row_count; i++) {
        const struct judged_row *row = &judgement->rows[i];
        /* The lines of the table begin with the update, in the columns of the label. */
        const char *const indent = row->kind == ROW_UPDATES ? "  " : INDENT;
        char label[sizeof INDENT];
        snprintf(label, sizeof label, "  %-8s ", row->label);
        put(to, label, row->kind == ROW_HEADLINE ? 0 : strlen(label));
        for (const char *line = row->text; line != NULL;) {
            const char *const end = strchr(line, '\n');
            put(to, line, end == NULL ? strlen(line) : (size_t)(end - line));
            put(to, "\n", 1);
            line = end == NULL ? NULL : end + 1;
            if (line != NULL) put(to, indent, strlen(indent));
        }
    }
}

static void put_to_file(void *to, const char *bytes, size_t length) {
    fwrite(bytes, 1, length, (FILE *)to);
}

void judgement_print(const struct judgement *judgement, FILE *out) {
    judgement_print_to(judgement, put_to_file, out);
}
