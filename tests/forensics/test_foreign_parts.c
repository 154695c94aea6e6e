/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Which settings of two recordings are of an optimizer's step, of its kernels, behind the gradient,
 * or none: every key that is put together of a few beginnings, middles and ends, and every listed
 * key with a letter more or less, in each way in which two runs may have it; and every pair of
 * short recordings of which updates may lack a forward or a backward call. All is told a second
 * time, by the words of forensics/compare_foreign.h. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/compare_foreign.h"

enum { KEY = 64, TEXT = 256 };

/* ---- which keys are of what ---- */

static int begins(const char *key, const char *with) {
    return strncmp(key, with, strlen(with)) == 0;
}

/* Whether something stands in front of an end of a key. */
static int ends(const char *key, const char *with) {
    const char *const at = strlen(key) > strlen(with) ? key + strlen(key) - strlen(with) : "";
    return strcmp(at, with) == 0;
}

static int is_one_of(const char *key, const char *const *of, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(key, of[i]) == 0) return 1;
    return 0;
}

static int of_optimizer(const char *key) {
    return begins(key, "optimizer.") && strcmp(key, "optimizer.") != 0;
}

static int of_step(const char *key) {
    if (strcmp(key, "args.max_grad_norm") == 0) return 1;
    return of_optimizer(key) && !ends(key, ".lr") && !ends(key, ".initial_lr") &&
           !ends(key, ".foreach") && !ends(key, ".fused") && !ends(key, ".capturable") &&
           !ends(key, ".differentiable");
}

static int of_kernel(const char *key) {
    return of_optimizer(key) &&
           (ends(key, ".foreach") || ends(key, ".fused") || ends(key, ".capturable"));
}

static int no_setting(const char *key) {
    return begins(key, "env.") || strcmp(key, "frozen") == 0 || strcmp(key, "not_recorded") == 0 ||
           strcmp(key, "seed") == 0 || ends(key, "seed");
}

static const char *const behind[] = {
    "args.learning_rate", "args.weight_decay",        "args.adam_beta1",
    "args.adam_beta2",    "args.adam_epsilon",        "args.max_grad_norm",
    "args.optim",         "args.optim_args",          "args.lr_scheduler_type",
    "args.warmup_steps",  "args.lr_scheduler_kwargs", "args.warmup_ratio"};
static const char *const labels[] = {"args.completion_only_loss", "args.assistant_only_loss",
                                     "args.label_smoothing_factor"};
static const char *const others[] = {"args.sync_ref_model", "frozen", "not_recorded", "seed",
                                     "data_seed",           "env.a",  "env.",         "lr"};

static int behind_gradient(const char *key) {
    return of_optimizer(key) || is_one_of(key, behind, COUNT_OF(behind));
}

/* What two runs have of the key, and of one that both have or one of them alone. */
static const char *const had[] = {NULL, "1", "2", "12", ""};

static size_t pairs, differing;

static void add_line(char *text, const char *key, const char *value) {
    const size_t at = strlen(text);
    if (value != NULL) snprintf(text + at, TEXT - at, "%s: %s\n", key, value);
}

static void require_pair(const char *key, const char *const value[2], const char *const more[2],
                         int first) {
    static const char eps[] = "optimizer.0.0.eps";
    char text[2][TEXT] = {"", ""};
    struct trace_run_plan plans[2] = {{0}, {0}};
    if (strcmp(key, eps) == 0) return;
    for (int s = 0; s < 2; s++) {
        if (!first) add_line(text[s], eps, more[s]);
        add_line(text[s], key, value[s]);
        if (first) add_line(text[s], eps, more[s]);
        plans[s].configuration = text[s];
    }
    const int in_a = value[0] != NULL, in_b = value[1] != NULL;
    const int apart = in_a && in_b && strcmp(value[0], value[1]) != 0, alone = in_a != in_b;
    const int eps_alone = (more[0] != NULL) != (more[1] != NULL);
    const int eps_apart = more[0] != NULL && more[1] != NULL && strcmp(more[0], more[1]) != 0;
    const int tells_a = (in_a && of_step(key)) || more[0] != NULL;
    const int tells_b = (in_b && of_step(key)) || more[1] != NULL;
    const int step =
        tells_a && tells_b &&
        (eps_apart || (of_step(key) && (apart || (alone && ends(key, ".weight_decay")))));
    const int settings = !no_setting(key) && (apart || alone);
    const char *const label = apart && is_one_of(key, labels, COUNT_OF(labels)) ? key : NULL;
    const struct trace_run_plan *const a = &plans[0], *const b = &plans[1];
    const char *const found = compare_labels_key(a, b);
    const enum compare_known known = alone   ? COMPARE_UNKNOWN
                                     : apart ? COMPARE_APART
                                             : COMPARE_ALIKE;
    if (!!compare_optimizers_apart(a, b) != step ||
        !!compare_kernels_apart(a, b) != (apart && of_kernel(key)) ||
        !!compare_settings_apart(a, b) != (settings || eps_alone || eps_apart) ||
        !!compare_others_apart(a, b) != (settings && !behind_gradient(key)) ||
        !!compare_has_key(a, key) != in_a || !!compare_has_key(b, key) != in_b ||
        compare_key(a, b, key) != known || (found == NULL) != (label == NULL) ||
        (label != NULL && strcmp(found, label) != 0) ||
        !!compare_reference_moves(a, b) != (apart && strcmp(key, "args.sync_ref_model") == 0))
        fail_msg("of\n%sand\n%s", text[0], text[1]);
    pairs++;
    differing += apart || alone;
}

static void require_key(const char *key) {
    static const char *const more[][2] = {
        {NULL, NULL}, {"1", "1"}, {"1", NULL}, {NULL, "1"}, {"1", "2"}};
    for (size_t i = 0; i < COUNT_OF(had); i++)
        for (size_t j = 0; j < COUNT_OF(had); j++)
            for (size_t m = 0; m < COUNT_OF(more); m++)
                for (int first = 0; first < 2; first++)
                    require_pair(key, (const char *const[]){had[i], had[j]}, more[m], first);
}

/* A key, and the same with a letter more or less at either end. */
static void require_key_and_its_like(const char *key) {
    char like[KEY];
    require_key(key);
    for (size_t i = 0; i < 3; i++) {
        snprintf(like, sizeof like, "%s%s%s",
                 i == 0   ? "x"
                 : i == 2 ? "args."
                          : "",
                 key, i == 1 ? "x" : "");
        require_key(like);
    }
    require_key(key + 1);
    snprintf(like, sizeof like, "%.*s", (int)strlen(key) - 1, key);
    require_key(like);
}

static void corroborate_keys(void **state) {
    (void)state;
    static const char *const beginnings[] = {"",      "optimizer.",  "optimizer", "optimizers.",
                                             "args.", "a.optimizer."};
    static const char *const middles[] = {"", "0.0", "0"};
    static const char *const endings[] = {
        "",       ".",           ".lr",      ".initial_lr",   ".foreach",        ".fused",
        ".betas", ".capturable", ".nofused", ".weight_decay", ".differentiable", "lr",
        "fused",  "weight_decay"};
    for (size_t i = 0; i < COUNT_OF(beginnings); i++)
        for (size_t j = 0; j < COUNT_OF(middles); j++)
            for (size_t k = 0; k < COUNT_OF(endings); k++) {
                char key[KEY];
                snprintf(key, sizeof key, "%s%s%s", beginnings[i], middles[j], endings[k]);
                if (key[0] != '\0') require_key(key);
            }
    for (size_t i = 0; i < COUNT_OF(behind); i++)
        require_key_and_its_like(behind[i]);
    for (size_t i = 0; i < COUNT_OF(labels); i++)
        require_key_and_its_like(labels[i]);
    for (size_t i = 0; i < COUNT_OF(others); i++)
        require_key_and_its_like(others[i]);
    assert_true(pairs > 60000 && differing > 40000 && differing < pairs);
}

/* ---- forward calls ---- */

enum { ROWS = 3, KINDS = 4, MANY = KINDS * KINDS * KINDS };

/* What an update may be: left out, without a backward pass, with one alone, and with both calls. */
enum { ABSENT, NOTHING, BACK, BOTH };

struct recording {
    struct trace_run run;
    struct record rows[ROWS + 1];
    int64_t places[ROWS + 1][2][RECORD_PHASES];
    int kinds[ROWS];
};

static void make_recording(struct recording *of, int number, int names_forward) {
    static const char *names[] = {"backward", "forward"};
    memset(of, 0, sizeof *of);
    of->run.plan.phases = names;
    of->run.plan.shape.phases = names_forward ? 2 : 1;
    of->run.records = of->rows;
    for (int u = 0; u < ROWS; u++, number /= KINDS) {
        of->kinds[u] = number % KINDS;
        if (of->kinds[u] == ABSENT) continue;
        const size_t row = (size_t)of->run.updates++;
        of->rows[row].step = (uint64_t)u + 1;
        of->rows[row].phase_places = of->places[row];
        /* The place of a phase is 0 where it comes first. */
        of->places[row][0][PHASE_PLACE] = of->kinds[u] == NOTHING ? -1 : of->kinds[u] == BOTH;
        of->places[row][1][PHASE_PLACE] = of->kinds[u] == BOTH ? 0 : -1;
    }
    const size_t last = (size_t)of->run.updates; /* behind the last, which nobody may read */
    of->rows[last].step = of->run.updates > 0 ? of->rows[last - 1].step + 1 : 1;
    of->rows[last].phase_places = of->places[last];
    of->places[last][1][PHASE_PLACE] = number % 2 == 0 ? 0 : -1;
}

static void corroborate_unseen(void **state) {
    (void)state;
    static struct recording a, b;
    size_t told = 0, never = 0;
    for (int names = 0; names < 4; names++)
        for (int i = 0; i < MANY; i++)
            for (int j = 0; j < MANY; j++) {
                struct compare_unseen expected = {0, 0, 0, 0};
                int seen[2] = {0, 0};
                make_recording(&a, i, names % 2 == 0);
                make_recording(&b, j, names / 2 == 0);
                for (int u = 0; u < ROWS && names == 0; u++) {
                    const int here = a.kinds[u], there = b.kinds[u];
                    if (here >= BACK && there >= BACK && here != there) {
                        const int side = here == BOTH; /* B is the one that lacks it */
                        if (expected.update == 0)
                            expected =
                                (struct compare_unseen){(uint64_t)u + 1, 0, side, !seen[side]};
                        expected.updates += side == expected.side;
                    }
                    seen[0] |= here == BOTH;
                    seen[1] |= there == BOTH;
                }
                const struct compare_unseen found = compare_unseen_of(&a.run, &b.run);
                if (found.update != expected.update || found.updates != expected.updates ||
                    found.side != expected.side || found.never != expected.never)
                    fail_msg("%d and %d: %d %d %d %d", i, j, (int)found.update, (int)found.updates,
                             found.side, found.never);
                told += found.update > 0;
                never += found.never != 0;
            }
    assert_true(told > 500 && never > 200 && never < told);
}

/* ---- loops of ours, whose phases stand in their order ---- */

/* A run of ours does what its list of phases says, and a phase without a digest did not run. */
static void corroborate_own_loops(void **state) {
    (void)state;
    static uint8_t digests[2][3][RECORD_DIGEST_BYTES];
    struct trace_run runs[2];
    struct record rows[2];
    size_t alike = 0, told = 0;
    memset(runs, 0, sizeof runs);
    memset(rows, 0, sizeof rows);
    /* Three loops: zero behind optimize, between, and in front of backward. */
    static const char *const orders[3][3] = {{"backward", "optimize", "zero"},
                                             {"backward", "zero", "optimize"},
                                             {"zero", "backward", "optimize"}};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            for (unsigned ran = 0; ran < 64; ran++) {
                const int of[2] = {i, j};
                for (int s = 0; s < 2; s++) {
                    runs[s].plan.phases = (const char **)(uintptr_t)orders[of[s]];
                    runs[s].plan.shape.phases = 3;
                    runs[s].records = &rows[s];
                    runs[s].updates = 1;
                    rows[s].step = 7;
                    rows[s].phases = digests[s];
                    for (unsigned p = 0; p < 3; p++)
                        memset(digests[s][p], (ran >> (3 * s + (int)p) & 1) != 0 ? 5 : 0,
                               RECORD_DIGEST_BYTES);
                }
                int does[2];
                for (int s = 0; s < 2; s++) {
                    int place[3] = {-1, -1, -1}; /* backward, optimize, zero */
                    for (int p = 0; p < 3; p++) {
                        const char *const name = orders[of[s]][p];
                        const int kind = name[0] == 'b' ? 0 : name[0] == 'o' ? 1 : 2;
                        if ((ran >> (3 * s + p) & 1) != 0) place[kind] = p;
                    }
                    does[s] = place[0] < 0 || place[1] < 0
                                  ? -1
                                  : place[2] > place[0] && place[2] < place[1];
                }
                const struct compare_loop found = compare_loops(&runs[0], &runs[1]);
                const int differ = does[0] >= 0 && does[1] >= 0 && does[0] != does[1];
                assert_int_equal(found.kind, differ ? COMPARE_LOOP_CLEARS : COMPARE_LOOP_ALIKE);
                assert_int_equal(found.update, differ ? 7 : 0);
                assert_int_equal(found.side, differ ? does[1] : 0);
                told += differ != 0;
                alike += differ == 0;
            }
    assert_true(told == 10 && alike > 500);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_keys),
        cmocka_unit_test(corroborate_unseen),
        cmocka_unit_test(corroborate_own_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
