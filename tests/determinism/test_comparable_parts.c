/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What two foreign runs say of their digests, told a second time: every pair of runs of up to three
 * updates that may lack a root or a batch, with chains of roots that the test folds by itself;
 * every pair of short lists of tensors; and every pair of kinds, processes and counts. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "determinism/digest.h"
#include "determinism/root.h"
#include "determinism/trace.h"
#define root_next given_root
static void given_root(const struct digest *previous, const struct record *record,
                       struct digest *out_root);
#include "determinism/comparable.c" /* for roots that are made anew, which no other file asks for */

/* Folds step, batch and weights, each of which is one small number here. */
static uint64_t fold(uint64_t before, uint64_t step, uint64_t batch, uint64_t weights) {
    return (before * 31 + step * 7 + batch * 3 + weights + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static void given_root(const struct digest *previous, const struct record *record,
                       struct digest *out_root) {
    uint64_t before;
    memcpy(&before, previous->byte, sizeof before);
    const uint64_t root = fold(before, record->step, record->digests[DIGEST_BATCH][0],
                               record->digests[DIGEST_WEIGHTS][0]);
    memset(out_root, 0, sizeof *out_root);
    memcpy(out_root->byte, &root, sizeof root);
}

/* ---- roots ---- */

enum { UPDATES = 3, KINDS = 6, MANY = KINDS * KINDS * KINDS };

/* What an update may be. */
static const struct {
    int has_row, has_root;
    uint8_t batch, weights;
} kinds[KINDS] = {{0, 0, 0, 0}, {1, 1, 0, 1}, {1, 1, 5, 1},
                  {1, 1, 6, 1}, {1, 1, 5, 2}, {1, 0, 5, 1}};

struct side {
    struct trace_run run;
    struct record rows[UPDATES + 1];
    int kind[UPDATES];
};

static struct trace_foreign foreign = {.digest = "keyed 1", .world = 1};

static void make_side(struct side *of, int number) {
    uint64_t root = 0;
    memset(of, 0, sizeof *of);
    of->run.records = of->rows;
    of->run.plan.foreign = &foreign;
    for (int u = 0; u < UPDATES; u++, number /= KINDS) {
        of->kind[u] = number % KINDS;
        if (!kinds[of->kind[u]].has_row) continue;
        struct record *const row = &of->rows[of->run.updates++];
        row->step = (uint64_t)u + 4;
        row->digests[DIGEST_BATCH][0] = kinds[of->kind[u]].batch;
        row->digests[DIGEST_WEIGHTS][0] = kinds[of->kind[u]].weights;
        root = fold(root, row->step, kinds[of->kind[u]].batch, kinds[of->kind[u]].weights);
        if (kinds[of->kind[u]].has_root) memcpy(row->digests[DIGEST_ROOT], &root, sizeof root);
    }
}

static void corroborate_first_apart(void **state) {
    (void)state;
    static struct side a, b;
    size_t gaps = 0, apart = 0, alike = 0;
    for (int i = 0; i < MANY; i++)
        for (int j = 0; j < MANY; j++)
            for (int ours = 0; ours < 4; ours++) {
                if (ours > 0 && (i * 7 + j) % 5 > 0) continue; /* some of them are enough */
                struct batch_gap gap = {7, 7, 7}, expected = {0, 0, 0};
                uint64_t roots[2] = {0, 0}, made[2] = {0, 0}, first = 0, first_made = 0, both = 0;
                int rootless = 0;
                make_side(&a, i);
                make_side(&b, j);
                if ((ours & 1) != 0) a.run.plan.foreign = NULL;
                if ((ours & 2) != 0) b.run.plan.foreign = NULL;
                for (int u = 0; u < UPDATES; u++) {
                    const uint64_t step = (uint64_t)u + 4;
                    const int k[2] = {a.kind[u], b.kind[u]};
                    const int paired = kinds[k[0]].has_row && kinds[k[1]].has_row;
                    const int lacks[2] = {kinds[k[0]].batch == 0, kinds[k[1]].batch == 0};
                    const int blank = paired && lacks[0] != lacks[1];
                    if (blank && ours == 0 && expected.updates++ == 0) {
                        expected.first = step;
                        expected.side = lacks[1];
                    }
                    for (int s = 0; s < 2; s++) {
                        if (!kinds[k[s]].has_row) continue;
                        roots[s] = fold(roots[s], step, kinds[k[s]].batch, kinds[k[s]].weights);
                        made[s] =
                            fold(made[s], step, blank ? 0 : kinds[k[s]].batch, kinds[k[s]].weights);
                    }
                    if (!paired) continue;
                    const int has[2] = {kinds[k[0]].has_root, kinds[k[1]].has_root};
                    const uint64_t told[2] = {has[0] ? roots[0] : 0, has[1] ? roots[1] : 0};
                    both += has[0] && has[1];
                    if (first == 0 && told[0] != told[1]) first = step;
                    if (!has[0] || !has[1]) rootless = 1;
                    if (!rootless && first_made == 0 && made[0] != made[1]) first_made = step;
                }
                const uint64_t found = runs_first_apart(&a.run, &b.run, &gap);
                const uint64_t wanted = expected.updates > 0 ? first_made : first;
                if (gap.updates != expected.updates || gap.first != expected.first ||
                    gap.side != expected.side || found != wanted)
                    fail_msg("%d and %d: %d for %d, gap %d at %d in %d", i, j, (int)found,
                             (int)wanted, (int)gap.updates, (int)gap.first, gap.side);
                uint64_t roots_of_both = 99;
                assert_int_equal(runs_comparable(&a.run, &b.run, &roots_of_both), STATUS_OK);
                assert_int_equal(roots_of_both, ours == 1 || ours == 2 ? 0 : both);
                gaps += expected.updates > 0;
                apart += found > 0;
                alike += found == 0;
            }
    assert_true(gaps > 10000 && apart > 10000 && alike > 1000);
}

static void validate_words_of_gaps(void **state) {
    (void)state;
    static const struct {
        struct batch_gap gap;
        const char *words;
    } cases[] = {{{0, 9, 1}, ""},
                 {{1, 9, 0}, "update 9: A recorded none"},
                 {{1, 3, 1}, "update 3: B recorded none"},
                 {{2, 3, 1}, "2 updates, the first of them update 3, where B recorded none"},
                 {{8, 5, 0}, "8 updates, the first of them update 5, where A recorded none"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[COMPARABLE_WHY] = "before";
        batch_gap_words(&cases[i].gap, text);
        assert_string_equal(text, cases[i].words);
    }
}

/* ---- tensors ---- */

enum { TENSORS = 2, FORMS = 8, LISTS = 1 + FORMS + FORMS * FORMS };

struct list {
    struct trace_run run;
    struct trace_foreign foreign;
    const char *names[TENSORS], *dtypes[TENSORS], *shapes[TENSORS];
    int form[TENSORS];
    uint32_t count;
};

/* Lists of up to two tensors, each of two names, dtypes and shapes. */
static void make_list(struct list *of, int number) {
    static const char *const names[] = {"q", "k"}, *const dtypes[] = {"bf16", "f32"},
                             *const shapes[] = {"64,512", "8"};
    memset(of, 0, sizeof *of);
    of->count = number == 0 ? 0 : number <= FORMS ? 1 : 2;
    number -= of->count == 0 ? 0 : of->count == 1 ? 1 : 1 + FORMS;
    for (uint32_t t = 0; t < of->count; t++, number /= FORMS) {
        of->form[t] = number % FORMS;
        of->names[t] = names[of->form[t] & 1];
        of->dtypes[t] = dtypes[of->form[t] >> 1 & 1];
        of->shapes[t] = shapes[of->form[t] >> 2];
    }
    of->foreign = (struct trace_foreign){
        .digest = "keyed 1", .world = 1, .dtypes = of->dtypes, .shapes = of->shapes};
    of->run.plan.tensors = of->names;
    of->run.plan.shape.tensors = of->count;
    of->run.plan.foreign = &of->foreign;
}

static void corroborate_tensors(void **state) {
    (void)state;
    static struct list a, b;
    for (int i = 0; i < LISTS; i++)
        for (int j = 0; j < LISTS; j++) {
            char words[COMPARABLE_WHY] = "", text[COMPARABLE_WHY] = "before";
            make_list(&a, i);
            make_list(&b, j);
            for (uint32_t t = 0; t < TENSORS && words[0] == '\0'; t++) {
                if (t >= a.count || t >= b.count) {
                    if (a.count == b.count) continue;
                    snprintf(words, sizeof words,
                             "A has %u tensors and B %u: \"%s\" is in %c alone", a.count, b.count,
                             a.count > b.count ? a.names[t] : b.names[t],
                             a.count > b.count ? 'A' : 'B');
                } else if (a.names[t] != b.names[t])
                    snprintf(words, sizeof words, "tensor %u is \"%s\" in A and \"%s\" in B", t,
                             a.names[t], b.names[t]);
                else if (a.form[t] != b.form[t])
                    snprintf(words, sizeof words, "tensor \"%s\" is %s [%s] in A and %s [%s] in B",
                             a.names[t], a.dtypes[t], a.shapes[t], b.dtypes[t], b.shapes[t]);
            }
            assert_int_equal(runs_unlike(&a.run, &b.run, text) != 0, words[0] != '\0');
            assert_string_equal(text, words);
            uint64_t roots;
            const enum status status = runs_comparable(&a.run, &b.run, &roots);
            assert_int_equal(status, words[0] != '\0' ? STATUS_INPUT : STATUS_OK);
            if (status != STATUS_OK) {
                char whole[2 * COMPARABLE_WHY];
                snprintf(whole, sizeof whole, "%s: digests of unlike tensors cannot be compared",
                         words);
                assert_string_equal(status_text(), whole);
            }
            for (int none = 0; none < 4; none++) { /* without digests nothing is unlike */
                make_list(&a, i);
                make_list(&b, j);
                struct list *const of = none / 2 == 0 ? &a : &b;
                if (none % 2 == 0)
                    of->run.plan.foreign = NULL;
                else
                    of->foreign.digest = "";
                assert_int_equal(runs_unlike(&a.run, &b.run, text), 0);
                assert_string_equal(text, "");
                assert_int_equal(runs_comparable(&a.run, &b.run, &roots), STATUS_OK);
            }
        }
}

/* ---- processes ---- */

static void corroborate_processes(void **state) {
    (void)state;
    static const char *const kinds_of[] = {"keyed 1", "leaf 1", ""};
    static struct list a, b;
    for (size_t x = 0; x < COUNT_OF(kinds_of); x++)
        for (size_t y = 0; y < COUNT_OF(kinds_of); y++)
            for (int64_t number = 0; number < 81; number++) {
                const int64_t world[2] = {1 + number % 3, 1 + number / 3 % 3};
                const int64_t rank[2] = {number / 9 % 3, number / 27};
                char words[256] = "";
                uint64_t roots = 7;
                make_list(&a, 1);
                make_list(&b, 1);
                a.foreign.digest = kinds_of[x];
                b.foreign.digest = kinds_of[y];
                a.foreign.world = world[0];
                b.foreign.world = world[1];
                a.foreign.rank = rank[0];
                b.foreign.rank = rank[1];
                if (x < 2 && y < 2) {
                    if (x != y)
                        snprintf(words, sizeof words,
                                 "A has digests of kind \"%s\" and B of kind \"%s\": digests of "
                                 "unlike kinds cannot be compared",
                                 kinds_of[x], kinds_of[y]);
                    else if (world[0] != world[1] && x == 1)
                        snprintf(words, sizeof words,
                                 "A is of %d processes and B of %d: digests \"leaf 1\" of shards "
                                 "do not add up, \"keyed 1\" do",
                                 (int)world[0], (int)world[1]);
                    else if (world[0] == world[1] && rank[0] != rank[1])
                        snprintf(words, sizeof words,
                                 "A is of process %d and B of process %d: expected the same one",
                                 (int)rank[0], (int)rank[1]);
                }
                const enum status status = runs_comparable(&a.run, &b.run, &roots);
                assert_int_equal(status, words[0] != '\0' ? STATUS_INPUT : STATUS_OK);
                if (status != STATUS_OK) assert_string_equal(status_text(), words);
                assert_int_equal(roots, 0);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_first_apart),
        cmocka_unit_test(validate_words_of_gaps),
        cmocka_unit_test(corroborate_tensors),
        cmocka_unit_test(corroborate_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
