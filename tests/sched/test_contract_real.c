/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Contracts against the LRs that the real libraries put into their optimizers and logs, as recorded
 * in tests/golden/lr (its README.md has the line format): at most 2 ulps apart, for every line. */
#include "sched/contract.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "base/number.h"

#define MAX_ULP 2
#define MAX_LIST 64
#define LINE_SIZE 4096
#define FOLDER TWINSTEP_SOURCE_DIR "/tests/golden/lr/"

static const struct part {
    const char *file;
    size_t lines; /* so that a reader which loses lines is noticed */
} parts[] = {
    {"transformers.txt", 260},
    {"trainer.txt", 84},
    {"trainer-old.txt", 56},
    {"accelerate.txt", 64},
    {"lightning.txt", 60},
    {"olmo-core.txt", 138},
    {"megatron.txt", 80},
    {"deepspeed.txt", 66},
    {"torchtune.txt", 24},
    {"torchtitan.txt", 42},
    {"veomni.txt", 36},
    {"nemo-rl.txt", 16},
    {"torch.txt", 24},
    {"logs.txt", 47},
    {"deepspeed-engine.txt", 30},
    {"trainer-eras.txt", 190},
    {"deepspeed-engine-old.txt", 29},
    {"skips.txt", 66},
    {"composed.txt", 340},
    {"olmo-core-trainer.txt", 8},
    {"torchtune-recipe.txt", 16},
};

struct list {
    size_t count;
    uint64_t items[MAX_LIST];
};

/* One line: a request, and what the library did at some updates. Its texts lie in `text`. */
struct row {
    struct contract_request request;
    struct list skipped, k, applied, logged, metric;
    double values[MAX_LIST];
    char text[LINE_SIZE];
};

static struct list list_of(const char *text, int base) {
    struct list list = {0};
    char *end = NULL;
    for (const char *at = text;; at = end + 1) {
        assert_true(list.count < MAX_LIST);
        list.items[list.count++] = strtoull(at, &end, base);
        assert_true(end > at);
        if (*end == '\0') return list;
        assert_int_equal(*end, ',');
    }
}

static double real_of(const char *text) {
    double x = 0.0;
    assert_int_equal(number_parse_real(text, NUMBER_FINITE, &x), STATUS_OK);
    return x;
}

static uint64_t count_of(const char *text) {
    uint64_t x = 0;
    assert_int_equal(number_parse_uint(text, &x), STATUS_OK);
    return x;
}

static int32_t rescaled_of(const char *text) {
    static const char *const names[] = {"default", "none", "total", "warmup", "both"};
    for (int32_t i = 0; i < (int32_t)COUNT_OF(names); i++)
        if (strcmp(names[i], text) == 0) return i;
    fail_msg("rescaled=%s", text);
    return 0;
}

static int read_count(struct contract_request *r, const char *key, const char *text) {
    const struct {
        const char *key;
        uint64_t *field;
    } fields[] = {
        {"steps", &r->steps},         {"dataset", &r->dataset},
        {"batch", &r->batch},         {"accumulate", &r->accumulate},
        {"processes", &r->processes}, {"global_batch", &r->global_batch},
        {"tokens", &r->tokens},       {"updates_per_epoch", &r->updates_per_epoch},
    };
    for (size_t i = 0; i < COUNT_OF(fields); i++)
        if (strcmp(fields[i].key, key) == 0) {
            *fields[i].field = count_of(text);
            return 1;
        }
    return 0;
}

static int read_real(struct contract_request *r, const char *key, const char *text) {
    const struct {
        const char *key;
        double *field;
    } fields[] = {
        {"lr", &r->lr},
        {"warmup", &r->warmup},
        {"warmup_ratio", &r->warmup_ratio},
        {"epochs", &r->epochs},
    };
    for (size_t i = 0; i < COUNT_OF(fields); i++)
        if (strcmp(fields[i].key, key) == 0) {
            *fields[i].field = real_of(text);
            return 1;
        }
    return 0;
}

/* Reads update:value,update:value. */
static void read_metric(struct row *row, char *text) {
    struct contract_request *r = &row->request;
    for (char *word = text; word != NULL;) {
        char *next = strchr(word, ',');
        char *colon = strchr(word, ':');
        if (next != NULL) *next++ = '\0';
        assert_non_null(colon);
        assert_true(row->metric.count < MAX_LIST);
        *colon = '\0';
        row->metric.items[row->metric.count] = count_of(word);
        assert_int_equal(
            number_parse_real(colon + 1, NUMBER_SPECIAL, &row->values[row->metric.count++]),
            STATUS_OK);
        word = next;
    }
    r->metric_update = row->metric.items;
    r->metric_value = row->values;
    r->metric_count = row->metric.count;
}

static int read_list(struct row *row, const char *key, const char *text) {
    if (strcmp(key, "skipped") == 0)
        row->skipped = list_of(text, 10);
    else if (strcmp(key, "k") == 0)
        row->k = list_of(text, 10);
    else if (strcmp(key, "applied") == 0)
        row->applied = list_of(text, 16);
    else if (strcmp(key, "logged") == 0)
        row->logged = list_of(text, 16);
    else
        return 0;
    return 1;
}

static void read_word(struct row *row, char *key, char *text) {
    struct contract_request *r = &row->request;
    if (strcmp(key, "by") == 0) return;
    if (read_count(r, key, text) || read_real(r, key, text) || read_list(row, key, text)) return;
    if (strcmp(key, "drop_last") == 0) {
        r->drop_last = (int)count_of(text);
    } else if (strcmp(key, "rescaled") == 0) {
        r->rescaled = rescaled_of(text);
    } else if (strcmp(key, "metric") == 0) {
        read_metric(row, text);
    } else if (strncmp(key, "value.", 6) == 0) {
        assert_true(r->value_count < CONTRACT_VALUES);
        r->values[r->value_count].key = key + 6;
        r->values[r->value_count++].text = text;
    } else {
        fail_msg("unknown option %s", key);
    }
}

/* Lines leave out the library's defaults; LinearWithWarmup's alpha_f is 0.1, where the contract
 * olmo-core falls to 0 unless told otherwise. */
static void keep_class_floor(struct contract_request *r) {
    if (strncmp(r->contract->name, "olmo-core", 9) != 0 || strcmp(r->schedule, "linear") != 0)
        return;
    for (size_t i = 0; i < r->value_count; i++)
        if (strcmp(r->values[i].key, "min_lr_ratio") == 0) return;
    r->min_lr_ratio = 0.1;
}

static void read_row(struct row *row, const char *line) {
    memset(row, 0, sizeof *row);
    contract_request_init(&row->request);
    memcpy(row->text, line, strlen(line) + 1);
    char *word = strtok(row->text, " \n");
    row->request.contract = contract_find(word);
    if (row->request.contract == NULL) fail_msg("no contract %s", word);
    row->request.schedule = strtok(NULL, " \n");
    while ((word = strtok(NULL, " \n")) != NULL) {
        char *equals = strchr(word, '=');
        assert_non_null(equals);
        *equals = '\0';
        read_word(row, word, equals + 1);
    }
    keep_class_floor(&row->request);
    row->request.skipped = row->skipped.items;
    row->request.skipped_count = row->skipped.count;
    assert_true(row->k.count > 0);
    assert_int_equal(row->applied.count, row->k.count);
    assert_true(row->logged.count == 0 || row->logged.count == row->k.count);
}

/* Maps doubles to integers in their order; -0 and 0 become the same one. */
static int64_t rank_of(uint64_t bits) {
    const int64_t size = (int64_t)(bits & INT64_MAX);
    return bits >> 63 ? -size : size;
}

static uint64_t ulps(double ours, uint64_t theirs) {
    uint64_t bits;
    memcpy(&bits, &ours, sizeof bits);
    const int64_t a = rank_of(bits);
    const int64_t b = rank_of(theirs);
    return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

struct tally {
    size_t lines, values, wrong;
    uint64_t worst;
};

static void check_value(struct tally *tally, const char *line, const char *column, uint64_t k,
                        double ours, uint64_t theirs) {
    const uint64_t distance = ulps(ours, theirs);
    double expected;
    memcpy(&expected, &theirs, sizeof expected);
    ++tally->values;
    if (distance > tally->worst) tally->worst = distance;
    if (distance <= MAX_ULP) return;
    ++tally->wrong;
    print_message("%s at update %llu: expected %.17g, got %.17g, %llu ulp apart\n  %.160s\n",
                  column, (unsigned long long)k, expected, ours, (unsigned long long)distance,
                  line);
}

static void check_line(struct tally *tally, struct arena *arena, const char *line) {
    struct row row;
    struct contract_plan plan;
    read_row(&row, line);
    ++tally->lines;
    if (contract_resolve(&row.request, arena, &plan) != STATUS_OK) {
        ++tally->wrong;
        print_message("%s\n  %.160s\n", status_text(), line);
        return;
    }
    for (size_t i = 0; i < row.k.count; i++) {
        const uint64_t k = row.k.items[i];
        check_value(tally, line, "applied", k, contract_applied(&plan, k), row.applied.items[i]);
        if (row.logged.count > 0)
            check_value(tally, line, "logged", k, contract_logged(&plan, k), row.logged.items[i]);
    }
}

static struct tally check_part(const char *name) {
    char path[512], line[LINE_SIZE];
    struct tally tally = {0};
    struct arena arena = ARENA_EMPTY;
    snprintf(path, sizeof path, "%s%s", FOLDER, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        assert_non_null(strchr(line, '\n'));
        if (line[0] != '#') check_line(&tally, &arena, line);
    }
    assert_int_equal(fclose(file), 0);
    arena_close(&arena);
    return tally;
}

static void corroborate_part(void **state) {
    const struct part *part = (const struct part *)*state;
    const struct tally tally = check_part(part->file);
    print_message("%s: %zu lines, %zu LRs, at most %llu ulp apart\n", part->file, tally.lines,
                  tally.values, (unsigned long long)tally.worst);
    assert_int_equal(tally.lines, part->lines);
    assert_true(tally.values >= 4 * tally.lines);
    assert_int_equal(tally.wrong, 0);
}

int main(void) {
    struct CMUnitTest tests[COUNT_OF(parts)];
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        tests[i] = (struct CMUnitTest){.name = parts[i].file,
                                       .test_func = corroborate_part,
                                       .initial_state = (void *)(uintptr_t)&parts[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
