/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * docs/LR.md must say of every contract and schedule what the tables in the code say: each row is
 * rendered here and must stand there, and no row may have a name that does not exist. */
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

#define PAGE TWINSTEP_SOURCE_DIR "/docs/LR.md"
#define PAGE_SIZE (1 << 18)

static char page[PAGE_SIZE];

/* The prose of the page is wrapped: a line that begins with two spaces continues the one before. */
static void join_wrapped_lines(void) {
    char *out = page;
    for (const char *at = page; *at != '\0'; at++) {
        const int wrapped = at[0] == '\n' && at[1] == ' ' && at[2] == ' ' && at[3] != ' ';
        *out++ = wrapped ? ' ' : *at;
        at += wrapped ? 2 : 0;
    }
    *out = '\0';
}

static int read_page(void **state) {
    (void)state;
    FILE *file = fopen(PAGE, "rb");
    if (file == NULL) return -1;
    const size_t length = fread(page, 1, sizeof page - 1, file);
    page[length] = '\0';
    fclose(file);
    join_wrapped_lines();
    return length > 1000 && length < sizeof page - 1 ? 0 : -1;
}

static const char *const units[] = {"updates", "P per update", "samples",
                                    "tokens",  "a per update", "epochs"};
static const char *const starts[] = {"f(0)", "L", "0", "schedule's minimum", "–"};
static const char *const roundings[] = {"float", "int", "ceil", "half even"};
static const char *const epochs[] = {"ceil(b/a)", "floor(b/a)", "ceil(all b/a)", "–"};

static const char *applied_of(const struct contract *c) {
    if (c->offset > 0) return "f(k)";
    return c->offset < 0 ? "f(k−2)" : "f(k−1)";
}

static void row_of(const struct contract *c, char *out, size_t size) {
    snprintf(out, size, "\n| `%s`%s%s%s%s | %s | %s | %s | %s | %s | %s%s | %s | %s |\n", c->name,
             c->alias == NULL ? "" : ", `", c->alias == NULL ? "" : c->alias,
             c->alias == NULL ? "" : "`", c->bug ? " (bug)" : "", applied_of(c), starts[c->start],
             units[c->unit], c->on_skip == CONTRACT_SKIP_HOLD ? "holds" : "advances",
             roundings[c->warmup_rule], epochs[c->epoch_rule], c->drop_last ? ", drop last" : "",
             c->logged == CONTRACT_LOGGED_USED ? "used" : "next",
             contract_evidence_name(c->evidence));
}

static void require_row(const char *row) {
    if (strstr(page, row) == NULL) fail_msg("docs/LR.md has no line%s", row);
}

static void verify_contracts(void **state) {
    (void)state;
    size_t count;
    const struct contract *list = contract_list(&count);
    for (size_t i = 0; i < count; i++) {
        char row[512];
        row_of(&list[i], row, sizeof row);
        require_row(row);
        snprintf(row, sizeof row, "\n* `%s`: %s. Source: %s.\n", list[i].name, list[i].help,
                 list[i].source);
        require_row(row);
    }
}

static void verify_schedules(void **state) {
    (void)state;
    for (size_t i = 0; sched_classes()[i] != NULL; i++) {
        const struct sched_class *schedule = sched_classes()[i];
        char row[1024];
        int at = snprintf(row, sizeof row, "\n| `%s` | ", schedule->name);
        for (size_t k = 0; k < schedule->key_count; k++)
            at += snprintf(row + at, sizeof row - (size_t)at, "%s`%s` %s", k == 0 ? "" : ", ",
                           schedule->keys[k].path, schedule->keys[k].standard);
        snprintf(row + at, sizeof row - (size_t)at, "%s| %s |\n",
                 schedule->key_count == 0 ? "" : " ", schedule->help);
        require_row(row);
    }
}

static int is_schedule(const char *name) {
    for (size_t i = 0; sched_classes()[i] != NULL; i++)
        if (strcmp(sched_classes()[i]->name, name) == 0) return 1;
    return 0;
}

/* The rows of the two tables begin with a name in backquotes. */
static void verify_nothing_else(void **state) {
    (void)state;
    size_t rows = 0;
    const char *end = strstr(page, "\n## Words of a contract");
    assert_non_null(end);
    for (const char *at = page; (at = strstr(at, "\n| `")) != NULL && at < end; at++) {
        char name[64];
        const size_t length = strcspn(at + 4, "`");
        assert_true(length < sizeof name);
        memcpy(name, at + 4, length);
        name[length] = '\0';
        if (contract_find(name) == NULL && !is_schedule(name))
            fail_msg("docs/LR.md has a row of \"%s\", which does not exist", name);
        ++rows;
    }
    assert_true(rows >= 60);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_contracts),
        cmocka_unit_test(verify_schedules),
        cmocka_unit_test(verify_nothing_else),
    };
    return cmocka_run_group_tests(tests, read_page, NULL);
}
