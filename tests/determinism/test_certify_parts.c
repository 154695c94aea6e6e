/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Parts of certifying a chain: what is blamed for each answer that the columns give, a second time
 * from a list; at which root the chain of a forked run begins; and which groups are taken. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "determinism/certify.c" /* for the parts, which no other file asks for */

enum { ANSWERS = 729 }; /* of six questions: -1, 0, 1 */

static struct evidence answer(unsigned number) {
    int of[6];
    for (size_t i = 0; i < COUNT_OF(of); i++, number /= 3)
        of[i] = (int)(number % 3) - 1;
    return (struct evidence){of[0], of[1], of[2], of[3], of[4], of[5]};
}

static void validate_what_repeats_a_column(void **state) {
    (void)state;
    for (unsigned number = 0; number < ANSWERS; number++) {
        const struct evidence seen = answer(number);
        const struct {
            int answer;
            const char *column, *why;
        } order[] = {
            {seen.rng, "ledger/words", "digest_rng does not follow from it, and the root fits"},
            {seen.lr, "lr_applied", "digest_lr does not follow from it, and the root fits"},
            {seen.batch, "phases/digest", "that of fetch is not digest_batch, and the root fits"},
            {seen.optimize, "phases/digest", "that of optimize does not follow, and the root fits"},
            {seen.forward, "sites/digest or phases/digest",
             "phase forward does not follow from the sites"},
            {seen.backward, "tensors/digest_gradient or phases/digest",
             "phase backward does not follow from the gradients"},
        };
        size_t first = 0;
        while (first < COUNT_OF(order) && order[first].answer != 0)
            first++;
        assert_int_equal(evidence_holds(&seen), first == COUNT_OF(order));
        if (first == COUNT_OF(order)) continue;
        struct certificate out;
        blame_others(&seen, &out);
        assert_string_equal(out.column, order[first].column);
        assert_string_equal(out.why, order[first].why);
    }
}

/* ---- an update whose root does not fit ---- */

enum { PHASES = 2 };
static const char *const phases[PHASES] = {"fetch", "optimize"};
static const struct record_consumer consumer = {.name = "data/permute", .stream = 1, .op = 0};

static double groups[1][RECORD_GROUPS];
static uint8_t phase_digests[PHASES][RECORD_DIGEST_BYTES];
static int64_t words[1][RECORD_LEDGERS];
static struct record record, next;
static struct trace_run run;

/* An update of which all is held twice and its root fits, and the next one. */
static struct check open_check(void) {
    struct digest digest;
    struct stream_ledger ledger;
    struct check check = {.run = &run, .record = &record};
    memset(&run, 0, sizeof run);
    memset(&record, 0, sizeof record);
    memset(&next, 0, sizeof next);
    run.plan = (struct trace_run_plan){
        .groups = "0",
        .shape = {.groups = 1, .tensors = 1, .phases = PHASES, .consumers = 1},
        .phases = phases,
        .consumers = &consumer};
    record.step = 6;
    record.groups = groups;
    record.phases = phase_digests;
    record.ledger = words;
    groups[0][GROUP_LR_APPLIED] = 1e-3;
    words[0][LEDGER_WORDS] = 12;
    record.reals[REAL_LOSS] = 1.5;
    memset(record.digests[DIGEST_BATCH], 3, DIGEST_BYTES);
    memset(record.digests[DIGEST_WEIGHTS], 4, DIGEST_BYTES);
    memset(check.previous.byte, 5, DIGEST_BYTES);
    assert_int_equal(ledger_of(&run.plan, &record, &ledger), 1);
    digest_ledger(&ledger, &digest);
    memcpy(record.digests[DIGEST_RNG], digest.byte, DIGEST_BYTES);
    root_lr(&record, "0", &digest);
    memcpy(record.digests[DIGEST_LR], digest.byte, DIGEST_BYTES);
    memcpy(phase_digests[0], record.digests[DIGEST_BATCH], DIGEST_BYTES);
    root_optimize(&record, &digest);
    memcpy(phase_digests[1], digest.byte, DIGEST_BYTES);
    root_next(&check.previous, &record, &check.root);
    memcpy(record.digests[DIGEST_ROOT], check.root.byte, DIGEST_BYTES);
    next = record;
    next.step = 7;
    next.reals[REAL_LOSS] = 1.25;
    root_next(&check.root, &next, &digest);
    memcpy(next.digests[DIGEST_ROOT], digest.byte, DIGEST_BYTES);
    return check;
}

/* Each answer is known where both of its sources are, and is 0 where one of them was changed. */
static void validate_answers(void **state) {
    (void)state;
    static const char *const names[] = {"fetch", "optimize", "forward", "backward", "reduce"};
    static uint8_t digests[COUNT_OF(names)][RECORD_DIGEST_BYTES], sites[2][RECORD_DIGEST_BYTES];
    static uint8_t tensors[1][RECORD_TENSOR_DIGESTS][RECORD_DIGEST_BYTES];
    /* Bit i: the i-th of these is missing; 6: of the reduced gradient, which is no loss. */
    for (unsigned missing = 0; missing < 128; missing++)
        for (int changed = -1; changed < 6; changed++) {
            struct check check = open_check();
            struct digest digest;
            struct evidence seen;
            const uint8_t *const gradient = tensors[0][TENSOR_DIGEST_GRADIENT];
            int of[6];
            run.plan.phases = names;
            run.plan.shape.phases = COUNT_OF(names);
            run.plan.shape.sites = 2;
            memset(sites, 7, sizeof sites);
            memset(tensors, 8, sizeof tensors);
            memcpy(digests[0], phase_digests[0], RECORD_DIGEST_BYTES);
            memcpy(digests[1], phase_digests[1], RECORD_DIGEST_BYTES);
            digest_root_apart("forward", sites[0], RECORD_DIGEST_BYTES, 2, &digest);
            memcpy(digests[2], digest.byte, RECORD_DIGEST_BYTES);
            digest_root_apart("reduce", gradient, sizeof tensors[0], 1, &digest);
            memcpy(digests[4], digest.byte, RECORD_DIGEST_BYTES);
            digest_root_apart("backward", gradient, sizeof tensors[0], 1, &digest);
            memcpy(digests[3], digest.byte, RECORD_DIGEST_BYTES);
            record.phases = digests;
            record.sites = sites;
            record.tensor_digests = tensors;
            const int no[7] = {missing >> 0 & 1, missing >> 1 & 1, missing >> 2 & 1,
                               missing >> 3 & 1, missing >> 4 & 1, missing >> 5 & 1,
                               missing >> 6 & 1};
            if (no[0]) memset(digests[0], 0, sizeof digests[0]);
            if (no[1]) run.plan.shape.consumers = 0;
            if (no[2]) run.plan.groups = "";
            if (no[3]) memset(digests[1], 0, sizeof digests[1]);
            if (no[4]) run.plan.shape.sites = 0;
            if (no[5]) run.plan.shape.tensors = 0;
            if (no[6]) memset(digests[4], 0, sizeof digests[4]);
            uint8_t *const places[6] = {record.digests[DIGEST_BATCH],
                                        record.digests[DIGEST_RNG],
                                        record.digests[DIGEST_LR],
                                        digests[1],
                                        digests[2],
                                        digests[no[6] ? 3 : 4]};
            if (changed >= 0 && !no[changed]) places[changed][3] ^= 1;
            gather(&check, &seen);
            const int got[6] = {seen.batch,    seen.rng,     seen.lr,
                                seen.optimize, seen.forward, seen.backward};
            for (int i = 0; i < 6; i++) {
                of[i] = no[i] ? -1 : i != changed;
                /* The digest of optimize is of the other columns of the record, too. */
                if (i == 3 && !no[3] && changed >= 0 && changed < 3) continue;
                if (got[i] != of[i])
                    fail_msg("%u, %d: answer %d is %d", missing, changed, i, got[i]);
            }
        }
}

static void blamed(const struct check *check, struct evidence seen, const struct record *behind,
                   const char *column, const char *why) {
    struct certificate out;
    blame_chain(check, &seen, behind, &out);
    assert_string_equal(out.column, column);
    assert_string_equal(out.why, why);
}

static void validate_what_breaks_a_chain(void **state) {
    (void)state;
    static const struct evidence held = {1, 1, 1, 1, -1, -1};
    static const char any[] =
        "digest_batch, digest_rng, digest_weights, digest_lr, loss or digest_root";
    static const char open[] = "nothing else in the trace tells these apart";
    static const char agree[] = "all other columns of the root agree with each other";
    struct check check = open_check();
    blamed(&check, held, &next, "digest_root",
           "the root of the next update follows from the recomputed one");
    blamed(&check, held, NULL, "loss or digest_root", agree);
    next.step = 8; /* not the next one */
    blamed(&check, held, &next, "loss", agree);
    next.step = 6;
    blamed(&check, held, &next, "loss", agree);
    next.step = 7;
    next.digests[DIGEST_ROOT][0] ^= 1;
    blamed(&check, held, &next, "loss", agree);
    for (unsigned number = 0; number < ANSWERS; number++) {
        const struct evidence seen = answer(number);
        const int agrees = seen.batch == 1 && seen.rng == 1 && seen.lr == 1 && seen.optimize == 1;
        const int is_weights = seen.lr == 1 && seen.optimize == 0;
        check = open_check();
        next.digests[DIGEST_ROOT][0] ^= 1;
        check.root.byte[3] ^= 1; /* so nothing that is put in place of a column repairs it */
        blamed(&check, seen, &next,
               is_weights ? "digest_weights"
               : agrees   ? "loss"
                          : any,
               is_weights ? "phase optimize does not follow from it, and digest_lr is right"
               : agrees   ? agree
                          : open);
        blamed(&check, seen, NULL,
               is_weights ? "digest_weights"
               : agrees   ? "loss or digest_root"
                          : any,
               is_weights ? "phase optimize does not follow from it, and digest_lr is right"
               : agrees   ? agree
                          : open);
    }
    static const struct {
        enum record_digest which;
        const char *column, *why;
    } repaired[] = {
        {DIGEST_BATCH, "digest_batch", "with the digest of phase fetch in its place the root fits"},
        {DIGEST_RNG, "digest_rng", "with the digest of ledger/words in its place the root fits"},
        {DIGEST_LR, "digest_lr", "with the digest of lr_applied in its place the root fits"},
    };
    for (size_t i = 0; i < COUNT_OF(repaired); i++)
        for (int how = 0; how < 3; how++) {
            check = open_check();
            next.digests[DIGEST_ROOT][0] ^= 1;
            record.digests[repaired[i].which][9] ^= 1;
            struct evidence seen = held;
            int *const answers[] = {&seen.batch, &seen.rng, &seen.lr};
            *answers[i] = how - 1; /* asked only of a column that disagrees */
            blamed(&check, seen, NULL,
                   how == 1   ? repaired[i].column
                   : how == 2 ? "loss or digest_root"
                              : any,
                   how == 1   ? repaired[i].why
                   : how == 2 ? agree
                              : open);
        }
}

/* ---- where a chain begins ---- */

enum { RUNS = 4, UPDATES = 6 };

/* Runs whose updates have roots of their own: an arm, and others that may have forked. */
static struct record rows[RUNS][UPDATES];
static struct trace_run runs[RUNS];
static const struct trace_image image = {.runs = runs, .run_count = RUNS};

static void open_runs(void) {
    static const char *const ids[RUNS] = {"baseline", "hybrid-01", "hybrid-10", "hybrid-11"};
    memset(rows, 0, sizeof rows);
    for (size_t r = 0; r < RUNS; r++) {
        struct digest root = {{0}};
        runs[r] = (struct trace_run){.records = rows[r], .updates = UPDATES};
        runs[r].plan.id = ids[r];
        runs[r].plan.arm = "baseline";
        runs[r].plan.mask = r;
        for (uint64_t i = 0; i < UPDATES; i++) {
            rows[r][i].step = i + 1;
            rows[r][i].reals[REAL_LOSS] = (double)(1 + r) / (double)(1 + i);
            root_next(&root, &rows[r][i], &root);
            memcpy(rows[r][i].digests[DIGEST_ROOT], root.byte, DIGEST_BYTES);
        }
    }
}

/* Lets run `r` have rows from update `first` on, which go on from the root of run `from`. */
static void fork_from(size_t r, size_t from, uint64_t first) {
    struct digest root;
    memcpy(root.byte, rows[from][first - 2].digests[DIGEST_ROOT], DIGEST_BYTES);
    for (uint64_t i = first - 1; i < UPDATES; i++) {
        root_next(&root, &rows[r][i], &root);
        memcpy(rows[r][i].digests[DIGEST_ROOT], root.byte, DIGEST_BYTES);
    }
    runs[r].records = &rows[r][first - 1];
    runs[r].updates = UPDATES + 1 - first;
}

static int starts_at(size_t r, const uint8_t *root) {
    static const uint8_t zero[DIGEST_BYTES] = {0};
    struct digest out;
    const int known = start_root(&image, &runs[r], &out);
    assert_memory_equal(out.byte, root == NULL ? zero : root, DIGEST_BYTES);
    return known;
}

static void validate_starts(void **state) {
    (void)state;
    for (size_t r = 0; r < RUNS; r++) { /* each from update 1 */
        open_runs();
        assert_int_equal(starts_at(r, NULL), 1);
    }
    for (uint64_t first = 2; first <= UPDATES; first++)
        for (size_t r = 1; r < RUNS; r++)
            for (size_t from = 0; from < RUNS; from++) {
                if (from == r) continue;
                open_runs();
                fork_from(r, from, first);
                const uint8_t *const root = rows[from][first - 2].digests[DIGEST_ROOT];
                assert_int_equal(starts_at(r, root), 1);
                runs[from].updates = first - 1; /* it holds the last one that is needed */
                assert_int_equal(starts_at(r, root), 1);
                runs[from].updates = first - 2;
                const uint8_t *const arm = rows[0][first - 2].digests[DIGEST_ROOT];
                assert_int_equal(starts_at(r, from == 0 ? NULL : arm), from != 0);
                runs[from].updates = UPDATES;
                if (from == 0) continue;
                runs[from].plan.mask = 0; /* no hybrid, but a repeat */
                assert_int_equal(starts_at(r, arm), 1);
                runs[r].plan.arm = "nobody";
                assert_int_equal(starts_at(r, NULL), 0);
                runs[from].plan.mask = from;
                assert_int_equal(starts_at(r, root), 1);
            }
    struct trace_foreign foreign = {0};
    open_runs();
    fork_from(1, 0, 4); /* another program's may begin anywhere */
    runs[1].plan.foreign = &foreign;
    assert_int_equal(starts_at(1, NULL), 1);
}

static void validate_roots_after(void **state) {
    (void)state;
    struct digest out;
    open_runs();
    fork_from(1, 0, 3);
    for (uint64_t update = 0; update < UPDATES + 3; update++) {
        const int known = update >= 3 && update <= UPDATES;
        assert_int_equal(root_after(&runs[1], update, &out), known);
        if (known)
            assert_memory_equal(out.byte, rows[1][update - 1].digests[DIGEST_ROOT], DIGEST_BYTES);
    }
    rows[1][3].step = 5; /* a row that is another update's */
    assert_int_equal(root_after(&runs[1], 4, &out), 0);
    assert_int_equal(root_after(&runs[1], 5, &out), 1);
    runs[1].updates = 0;
    assert_int_equal(root_after(&runs[1], 3, &out), 0);
    assert_int_equal(root_after(NULL, 3, &out), 0);
}

/* Which groups a trace may name: one digit each, below the record's number of groups. */
static void validate_groups(void **state) {
    (void)state;
    static const struct {
        const char *groups;
        uint32_t count;
        int known;
    } cases[] = {{NULL, 1, 0}, {"", 1, 0},   {"0", 1, 1},    {"1", 1, 0},
                 {"1", 2, 1},  {"01", 2, 1}, {"02", 2, 0},   {"20", 2, 0},
                 {"9", 10, 1}, {":", 10, 0}, {"0/0", 10, 0}, {"0 ", 10, 0}};
    static double lrs[10][RECORD_GROUPS];
    struct digest out;
    struct check check = open_check();
    record.groups = lrs;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        run.plan.groups = cases[i].groups;
        run.plan.shape.groups = cases[i].count;
        assert_int_equal(expected_lr(&check, &out), cases[i].known);
    }
    const uint32_t of_tensors[] = {0};
    struct trace_foreign foreign = {0};
    run.plan.foreign = &foreign;
    for (int how = 0; how < 4; how++) {
        foreign.groups = how & 1 ? of_tensors : NULL;
        run.plan.shape.tensors = how & 2 ? 1 : 0;
        assert_int_equal(expected_lr(&check, &out), how == 3);
    }
}

/* ---- why updates of another program have no roots ---- */

enum { LACKING = 3, TENSORS = 2 };

static struct record lacking[LACKING];
static double applied[LACKING][2][RECORD_GROUPS];
static uint8_t of_tensors[LACKING][TENSORS][RECORD_TENSOR_DIGESTS][RECORD_DIGEST_BYTES];
static const uint32_t group_of[TENSORS] = {0, 1};
static struct trace_foreign foreign;
static struct trace_run strange;

/* Updates 4 to 6 without roots, of which all parts are there. */
static void open_lacking(void) {
    static const char *const tensors[] = {"first", "second"};
    memset(lacking, 0, sizeof lacking);
    memset(of_tensors, 9, sizeof of_tensors);
    foreign = (struct trace_foreign){.digest = "keyed 1", .groups = group_of};
    strange = (struct trace_run){.records = lacking, .updates = LACKING};
    strange.plan.foreign = &foreign;
    strange.plan.tensors = tensors;
    strange.plan.shape.tensors = TENSORS;
    strange.plan.shape.groups = 2;
    for (size_t i = 0; i < LACKING; i++) {
        lacking[i].step = 4 + i;
        lacking[i].groups = applied[i];
        lacking[i].tensor_digests = of_tensors[i];
        applied[i][0][GROUP_LR_APPLIED] = applied[i][1][GROUP_LR_APPLIED] = 1e-3;
    }
}

static void lacks(const char *text) {
    char out[CERTIFY_WHY];
    certify_lack(&strange, out);
    assert_string_equal(out, text);
}

static void validate_what_lacks(void **state) {
    (void)state;
    char text[CERTIFY_WHY];
    for (size_t i = 0; i < LACKING; i++) {
        for (size_t t = 0; t < TENSORS; t++) {
            open_lacking();
            memset(of_tensors[i][t], 0, sizeof of_tensors[i][t]);
            snprintf(text, sizeof text,
                     "update %zu has no tensors/digest_parameter of \"%s\": there is no root of it",
                     4 + i, t == 0 ? "first" : "second");
            lacks(text);
            memset(lacking[i].digests[DIGEST_WEIGHTS], 1, DIGEST_BYTES); /* the writer's own */
            lacks("update 4 has no root, and another one has one that its writer stored");
        }
        open_lacking();
        applied[i][0][GROUP_LR_APPLIED] = (double)NAN;
        lacks("update 4 has no root, and another one has one that its writer stored");
        applied[i][1][GROUP_LR_APPLIED] = (double)NAN;
        snprintf(text, sizeof text,
                 "update %zu has no lr_applied[0], and its row does not say that it was skipped: "
                 "there is no root of it",
                 4 + i);
        lacks(text);
        lacking[i].integers[INTEGER_SKIPPED] = 1;
        lacks("update 4 has no root, and another one has one that its writer stored");
        /* Of rows with roots nothing is said; of several without the first is. */
        open_lacking();
        for (size_t k = 0; k < LACKING; k++)
            if (k != i) memset(lacking[k].digests[DIGEST_ROOT], 1, DIGEST_BYTES);
        snprintf(text, sizeof text,
                 "update %zu has no root, and another one has one that its writer stored", 4 + i);
        lacks(text);
        memset(lacking[i].digests[DIGEST_ROOT], 1, DIGEST_BYTES);
        lacks("");
    }
    open_lacking();
    for (size_t i = 0; i < LACKING; i++)
        memset(of_tensors[i], 0, sizeof of_tensors[i]);
    lacks("update 4 has no tensors/digest_parameter of \"first\": there is no root of it");
    foreign.groups = NULL;
    lacks("update 4 has no tensors/digest_parameter of \"first\": there is no root of it");
    memset(of_tensors, 9, sizeof of_tensors);
    lacks("the run has no tensors/group, so its updates have no roots");
    open_lacking();
    strange.plan.shape.tensors = 0;
    lacks("the run has no tensors/digest_parameter, so its updates have no roots");
    strange.updates = 0;
    lacks("");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_what_repeats_a_column),
        cmocka_unit_test(validate_answers),
        cmocka_unit_test(validate_what_breaks_a_chain),
        cmocka_unit_test(validate_starts),
        cmocka_unit_test(validate_roots_after),
        cmocka_unit_test(validate_groups),
        cmocka_unit_test(validate_what_lacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
