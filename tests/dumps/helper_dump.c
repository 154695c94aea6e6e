/* SPDX-License-Identifier: Apache-2.0
 * The JSON is printed, not made by the reader's code. */
#include "tests/dumps/helper_dump.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_hashes(FILE *out, const char *hashes) {
    char copy[512];
    int count = 0;
    snprintf(copy, sizeof copy, "%s", hashes);
    for (char *at = strtok(copy, " "); at != NULL; at = strtok(NULL, " "))
        fprintf(out,
                "%s{\"type\": \"tuple\", \"items\": [{\"type\": \"scalar\", \"value\": %s}, "
                "{\"type\": \"scalar\", \"value\": 18%018.0f}]}",
                count++ > 0 ? ", " : "", at, 1000 * strtod(at, NULL));
}

static void print_op(FILE *out, const struct helper_op *op, int depth) {
    fprintf(out,
            ", {\"call_depth\": %d, \"log\": {\"type\": \"dict\", \"items\": [[\"input_hash\", "
            "{\"type\": \"tuple\", \"items\": [{\"type\": \"tuple\", \"items\": [",
            depth);
    print_hashes(out, op->in);
    fprintf(out, "]}, {\"type\": \"dict\", \"items\": []}]}], [\"hash\", {\"type\": \"list\", "
                 "\"items\": [");
    print_hashes(out, op->out);
    const char *const written = strstr(op->args, "out=");
    const size_t args = written == NULL ? strlen(op->args) : (size_t)(written - op->args) - 2;
    fprintf(out,
            "]}]]}, \"output_str\": \"  ->  %s\", \"type\": \"op\", \"op_name\": \"%s\", "
            "\"args_str\": \"%.*s\", \"kwargs_str\": \"%s\"}",
            op->output, op->op, (int)args, op->args, op->args + args);
}

char *helper_json(const struct helper_op *ops, size_t count) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    fprintf(out, "{\"format\": \"torch.utils._debug_mode.DebugMode.logs\", \"version\": 1, "
                 "\"logs\": [{\"call_depth\": 1, \"log\": null, \"type\": \"redistribute\"}");
    for (size_t i = 0; i < count; i++) {
        const int inside = ops[i].module[0] != '\0';
        if (inside)
            fprintf(out,
                    ", {\"call_depth\": 1, \"log\": null, \"type\": \"annotate\", \"tag\": \"%s\", "
                    "\"header\": \"nn.Mod\"}",
                    ops[i].module);
        print_op(out, &ops[i], inside ? 2 : 1);
    }
    fprintf(out, "]}\n");
    assert_int_equal(fclose(out), 0);
    return text;
}

static struct dump *read_rows(struct words *words, const struct helper_op *ops, size_t count) {
    struct dump *dump;
    char *json = helper_json(ops, count);
    if (dump_read_bytes("rows", json, strlen(json), words, &dump) != STATUS_OK)
        fail_msg("%s", status_text());
    free(json);
    return dump;
}

void helper_judge_floor(struct arena *arena, const struct helper_op *a, size_t a_count,
                        const struct helper_op *b, size_t b_count, const struct helper_op *floor,
                        size_t floor_count, struct dump_judgement *out) {
    struct words *words;
    assert_int_equal(arena_take(arena, 1, sizeof *words, "words", &words), STATUS_OK);
    assert_int_equal(words_open(arena, words), STATUS_OK);
    const struct dump *x = read_rows(words, a, a_count), *y = read_rows(words, b, b_count),
                      *z = floor == NULL ? NULL : read_rows(words, floor, floor_count);
    if (dump_judge(x, y, &z, floor != NULL, words, out) != STATUS_OK) fail_msg("%s", status_text());
}

void helper_judge(struct arena *arena, const struct helper_op *a, size_t a_count,
                  const struct helper_op *b, size_t b_count, struct dump_judgement *out) {
    helper_judge_floor(arena, a, a_count, b, b_count, NULL, 0, out);
}
