/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * docs/LOOPS.md says how a loop of PyTorch, Trainer, Accelerate or Lightning is written here: each
 * row of its table is resolved and trained, and what it claims of the LR and of hazards must hold.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/trainer/helper_train.h"
#include "trainer/loop.h"

#define PAGE TWINSTEP_SOURCE_DIR "/docs/LOOPS.md"
#define UPDATES 5
#define PEAK 1e-3

enum { CELL_LOOP = 0, CELL_BODY, CELL_APPLIED, CELL_LOGGED, CELL_LRS, CELL_SAID, CELLS };

struct row {
    char text[2048];
    const char *cell[CELLS];
};

/* Splits "| a | b |" into its cells without the blanks around them; returns 0 where there are not
 * as many as in the table. */
static int split_row(struct row *row) {
    size_t count = 0;
    for (char *at = row->text; (at = strstr(at, "| ")) != NULL; count++) {
        char *const end = strstr(at + 2, " |");
        if (end == NULL) break;
        if (count == CELLS) return 0;
        row->cell[count] = at + 2;
        at = end;
        *at++ = '\0';
    }
    return count == CELLS;
}

/* The body of the second cell stands in backquotes. */
static const char *body_of(struct row *row) {
    const char *const body = row->cell[CELL_BODY];
    const size_t length = strlen(body);
    assert_true(length > 2 && body[0] == '`' && body[length - 1] == '`');
    row->text[body - row->text + (ptrdiff_t)length - 1] = '\0';
    return body + 1;
}

static void expect_words(const struct row *row, const struct config *config) {
    struct loop_words words;
    loop_words_of(config, &words);
    if (strcmp(words.applied, row->cell[CELL_APPLIED]) != 0 ||
        strcmp(words.logged, row->cell[CELL_LOGGED]) != 0)
        fail_msg("%s: applies %s and logs %s", row->cell[CELL_LOOP], words.applied, words.logged);
}

/* A dash says that nothing is risky; other words must stand in one of the sentences. */
static void expect_said(const struct row *row, const struct config *config) {
    struct loop_hazard found[LOOP_HAZARD_KINDS];
    const size_t count = loop_hazards(config, found);
    const int silent = strcmp(row->cell[CELL_SAID], "–") == 0;
    int said = silent;
    for (size_t i = 0; i < count; i++) {
        if (silent && (found[i].severity == LOOP_WARNING || found[i].kind == LOOP_SCHEDULE_ALONE))
            fail_msg("%s: \"%s\" is said", row->cell[CELL_LOOP], found[i].text);
        said |= strstr(found[i].text, row->cell[CELL_SAID]) != NULL;
    }
    if (!said) fail_msg("%s: nothing says \"%s\"", row->cell[CELL_LOOP], row->cell[CELL_SAID]);
}

/* Trains five updates; 16 samples are two updates an epoch. The page prints three digits. */
static void expect_rates(const struct row *row, const struct config *config) {
    const struct run_options options = {.steps = UPDATES, .order_seed = 1};
    const char *at = row->cell[CELL_LRS];
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    struct run run;
    helper_ids_open(config, 5, 16, 16, &arena, &dataset);
    helper_run_open(config, &dataset, &options, &run);
    for (int k = 1; k <= UPDATES; k++) {
        char *end;
        const double expected = strtod(at, &end);
        const double applied = helper_step(&run)->groups[0][GROUP_LR_APPLIED] / PEAK;
        assert_true(end != at && *end == (k == UPDATES ? '\0' : ','));
        at = end + (k != UPDATES);
        if (!(applied > expected - 5e-4 && applied < expected + 5e-4))
            fail_msg("%s: update %d applies %.4g of the peak", row->cell[CELL_LOOP], k, applied);
    }
    run_close(&run);
    arena_close(&arena);
}

static void verify_row(struct row *row) {
    struct config config;
    helper_config(UPDATES, &config,
                  "%s, task: sft, batch: {size: 8, micro: 2}, optimizer: {lr: 1e-3}, data: "
                  "{max_len: 16}, model: {layers: 1, hidden: 16, heads: 2, mlp: 20, vocab: 19}",
                  body_of(row));
    assert_int_equal(loop_check(&config, NULL), STATUS_OK);
    expect_words(row, &config);
    expect_said(row, &config);
    expect_rates(row, &config);
}

static void verify_table(void **state) {
    (void)state;
    struct row row;
    size_t rows = 0, frameworks = 0;
    static const char *const named[] = {"**PyTorch**", "**HF Trainer**", "**Accelerate**",
                                        "**Lightning**"};
    FILE *file = fopen(PAGE, "rb");
    assert_non_null(file);
    while (fgets(row.text, sizeof row.text, file) != NULL) {
        if (!split_row(&row) || row.cell[CELL_BODY][0] != '`') continue;
        for (size_t i = 0; i < COUNT_OF(named); i++)
            frameworks += strncmp(row.cell[CELL_LOOP], named[i], strlen(named[i])) == 0;
        verify_row(&row);
        rows++;
    }
    fclose(file);
    assert_true(rows >= 25);
    assert_int_equal(frameworks, COUNT_OF(named));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
