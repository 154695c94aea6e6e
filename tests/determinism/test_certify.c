/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Chains of roots made by hand: sound ones, one with each column of a root changed, and roots of
 * two runs that part and come together again. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "determinism/certify.h"
#include "determinism/chain.h"
#include "determinism/ledger.h"
#include "determinism/root.h"
#include "determinism/trace.h"

enum { UPDATES = 9, GROUPS = 2, TENSORS = 3, SITES = 2, PHASES = 4, CONSUMERS = 2 };

static const char *const phases[PHASES] = {"fetch", "forward", "backward", "optimize"};
static const struct record_consumer consumers[CONSUMERS] = {
    {.name = "data/permute", .stream = 1, .op = 0},
    {.name = "dropout/attention", .stream = 2, .op = 60}};

struct fake {
    struct record records[UPDATES];
    double groups[UPDATES][GROUPS][RECORD_GROUPS];
    uint8_t gradients[UPDATES][TENSORS][RECORD_TENSOR_DIGESTS][RECORD_DIGEST_BYTES];
    uint8_t phases[UPDATES][PHASES][RECORD_DIGEST_BYTES];
    uint8_t sites[UPDATES][SITES][RECORD_DIGEST_BYTES];
    int64_t ledger[UPDATES][CONSUMERS][RECORD_LEDGERS];
    struct trace_run run;
    struct trace_image image;
};

static void mark(uint8_t *digest, uint64_t a, uint64_t b) {
    const uint64_t numbers[2] = {a, b};
    struct digest made;
    digest_bytes("fake", numbers, sizeof numbers, &made);
    memcpy(digest, made.byte, DIGEST_BYTES);
}

static void put(uint8_t *out, const struct digest *digest) {
    memcpy(out, digest->byte, DIGEST_BYTES);
}

static void put_list(const char *name, const uint8_t *digests, uint32_t count, size_t stride,
                     uint8_t *out) {
    static struct digest list[5000];
    struct digest digest;
    for (uint32_t i = 0; i < count; i++)
        memcpy(list[i].byte, digests + i * stride, DIGEST_BYTES);
    digest_root(name, list, count, &digest);
    put(out, &digest);
}

/* Fills everything of one update except its root; `seed` makes runs differ. */
static void fill(struct fake *fake, uint64_t i, uint64_t seed) {
    struct record *record = &fake->records[i];
    struct digest digest;
    struct stream_ledger ledger;
    record->step = i + 1;
    record->groups = fake->groups[i];
    record->tensor_digests = fake->gradients[i];
    record->phases = fake->phases[i];
    record->sites = fake->sites[i];
    record->ledger = fake->ledger[i];
    record->reals[REAL_LOSS] = 2.0 - 0.125 * (double)i + (double)seed;
    for (int g = 0; g < GROUPS; g++)
        record->groups[g][GROUP_LR_APPLIED] = 1e-3 / (double)(1 + i) * (1 + g);
    for (int c = 0; c < CONSUMERS; c++)
        record->ledger[c][LEDGER_WORDS] = (int64_t)(100 * i) + c;
    mark(record->digests[DIGEST_BATCH], 1, i);
    mark(record->digests[DIGEST_WEIGHTS], 2 + 16 * seed, i);
    for (uint64_t t = 0; t < TENSORS; t++)
        mark(record->tensor_digests[t][TENSOR_DIGEST_GRADIENT], 3 + t, i + 64 * seed);
    for (uint64_t s = 0; s < SITES; s++)
        mark(record->sites[s], 8 + s, i + 64 * seed);
    assert_int_equal(ledger_of(&fake->run.plan, record, &ledger), 1);
    digest_ledger(&ledger, &digest);
    put(record->digests[DIGEST_RNG], &digest);
    root_lr(record, fake->run.plan.groups, &digest);
    put(record->digests[DIGEST_LR], &digest);
    memcpy(record->phases[0], record->digests[DIGEST_BATCH], DIGEST_BYTES);
    put_list("forward", record->sites[0], SITES, DIGEST_BYTES, record->phases[1]);
    put_list("backward", record->tensor_digests[0][0], TENSORS, sizeof *record->tensor_digests,
             record->phases[2]);
    root_optimize(record, &digest);
    put(record->phases[3], &digest);
}

static void chain(struct fake *fake) {
    struct digest root = {{0}};
    for (uint64_t i = 0; i < UPDATES; i++) {
        root_next(&root, &fake->records[i], &root);
        put(fake->records[i].digests[DIGEST_ROOT], &root);
    }
}

/* Makes a chain in which update `apart` (0: none) is that of another run. */
static void fake_open(struct fake *fake, uint64_t apart) {
    memset(fake, 0, sizeof *fake);
    fake->run.plan = (struct trace_run_plan){.id = "baseline",
                                             .arm = "baseline",
                                             .groups = "010",
                                             .shape = {.groups = GROUPS,
                                                       .tensors = TENSORS,
                                                       .phases = PHASES,
                                                       .sites = SITES,
                                                       .consumers = CONSUMERS},
                                             .phases = phases,
                                             .consumers = consumers};
    fake->run.records = fake->records;
    fake->run.updates = UPDATES;
    fake->image.runs = &fake->run;
    fake->image.run_count = 1;
    for (uint64_t i = 0; i < UPDATES; i++)
        fill(fake, i, i + 1 == apart);
    chain(fake);
}

static struct certificate certified(const struct fake *fake) {
    struct certificate certificate;
    certify_run(&fake->image, &fake->run, &certificate);
    return certificate;
}

static void validate_sound(void **state) {
    (void)state;
    struct fake fake;
    fake_open(&fake, 0);
    const struct certificate certificate = certified(&fake);
    assert_int_equal(certificate.state, CERTIFY_SOUND);
    assert_int_equal(certificate.checked, UPDATES);
    assert_memory_equal(certificate.root.byte, fake.records[UPDATES - 1].digests[DIGEST_ROOT],
                        DIGEST_BYTES);
}

/* One byte is changed anywhere in the first, a middle or the last update. */
static void verify_changes_are_named(void **state) {
    (void)state;
    static const uint64_t places[] = {0, 4, UPDATES - 1};
    for (size_t p = 0; p < COUNT_OF(places); p++) {
        const uint64_t k = places[p];
        struct fake fake;
        struct record *record = &fake.records[k];
        const int last = k == UPDATES - 1;
        const struct {
            void *byte;
            const char *column;
        } changes[] = {
            {&record->digests[DIGEST_BATCH][31], "digest_batch"},
            {&record->digests[DIGEST_RNG][0], "digest_rng"},
            {&record->digests[DIGEST_WEIGHTS][7], "digest_weights"},
            {&record->digests[DIGEST_LR][3], "digest_lr"},
            {&record->digests[DIGEST_ROOT][9], last ? "loss or digest_root" : "digest_root"},
            {&record->reals[REAL_LOSS], last ? "loss or digest_root" : "loss"},
            {&fake.groups[k][1][GROUP_LR_APPLIED], "lr_applied"},
            {&fake.ledger[k][1][LEDGER_WORDS], "ledger/words"},
            {&fake.phases[k][0][5], "phases/digest"},
            {&fake.phases[k][3][5], "phases/digest"},
            {&fake.phases[k][1][5], "sites/digest or phases/digest"},
            {&fake.sites[k][1][5], "sites/digest or phases/digest"},
            {&fake.gradients[k][2][TENSOR_DIGEST_GRADIENT][5],
             "tensors/digest_gradient or phases/digest"},
        };
        for (size_t i = 0; i < COUNT_OF(changes); i++) {
            fake_open(&fake, 0);
            *(uint8_t *)changes[i].byte ^= 1;
            const struct certificate certificate = certified(&fake);
            assert_int_equal(certificate.state, CERTIFY_BROKEN);
            assert_int_equal(certificate.broken, k + 1);
            assert_string_equal(certificate.column, changes[i].column);
        }
    }
}

/* The check of a row does not fit, while all that is held twice agrees. */
static void validate_damaged_row(void **state) {
    (void)state;
    struct fake fake;
    fake_open(&fake, 0);
    fake.run.damaged = 5;
    struct certificate certificate = certified(&fake);
    assert_int_equal(certificate.state, CERTIFY_BROKEN);
    assert_int_equal(certificate.broken, 5);
    assert_string_equal(certificate.column, "");
    fake.records[4].reals[REAL_LOSS] += 1.0;
    certificate = certified(&fake);
    assert_string_equal(certificate.column, "loss");
}

/* A caller may rely on a record for every update, so a gap must be refused. */
static void validate_gap(void **state) {
    (void)state;
    struct fake fake;
    fake_open(&fake, 0);
    for (uint64_t i = 5; i < UPDATES; i++)
        fake.records[i].step++;
    const struct certificate certificate = certified(&fake);
    assert_int_equal(certificate.state, CERTIFY_BROKEN);
    assert_int_equal(certificate.broken, 6);
    assert_string_equal(certificate.column, "step");
}

static void validate_untestable(void **state) {
    (void)state;
    struct fake fake;
    fake_open(&fake, 0);
    for (int i = 0; i < UPDATES; i++) {
        memset(fake.records[i].digests[DIGEST_WEIGHTS], 0, DIGEST_BYTES);
        memset(fake.records[i].digests[DIGEST_LR], 0, DIGEST_BYTES);
    }
    assert_int_equal(certified(&fake).state, CERTIFY_UNTESTABLE);
    fake_open(&fake, 0);
    fake.run.updates = 0;
    assert_int_equal(certified(&fake).state, CERTIFY_UNTESTABLE);
}

/* Without phases, ledger and groups only the root itself can differ. */
static void validate_little_recorded(void **state) {
    (void)state;
    struct fake fake;
    fake_open(&fake, 0);
    fake.run.plan.shape.phases = fake.run.plan.shape.consumers = 0;
    fake.run.plan.groups = "";
    assert_int_equal(certified(&fake).state, CERTIFY_SOUND);
    fake.records[3].digests[DIGEST_ROOT][0] ^= 1;
    assert_string_equal(certified(&fake).column, "digest_root");
    fake.records[3].digests[DIGEST_ROOT][0] ^= 1;
    fake.records[3].digests[DIGEST_WEIGHTS][0] ^= 1;
    const struct certificate certificate = certified(&fake);
    assert_int_equal(certificate.broken, 4);
    assert_non_null(strstr(certificate.column, "digest_weights"));
    assert_non_null(strstr(certificate.column, " or "));
}

/* A model of more tensors than any table here holds: its gradients are checked all the same. */
static void validate_many_tensors(void **state) {
    (void)state;
    enum { MANY = 5000 };
    static uint8_t gradients[MANY][RECORD_TENSOR_DIGESTS][RECORD_DIGEST_BYTES];
    struct fake fake;
    fake_open(&fake, 0);
    for (uint64_t t = 0; t < MANY; t++)
        mark(gradients[t][TENSOR_DIGEST_GRADIENT], t, 1);
    fake.run.plan.shape.tensors = MANY;
    fake.run.updates = 1;
    fake.records[0].tensor_digests = gradients;
    put_list("backward", gradients[0][0], MANY, sizeof *gradients, fake.records[0].phases[2]);
    assert_int_equal(certified(&fake).state, CERTIFY_SOUND);
    gradients[4321][TENSOR_DIGEST_GRADIENT][7] ^= 1;
    assert_int_equal(certified(&fake).state, CERTIFY_BROKEN);
    assert_string_equal(certified(&fake).column, "tensors/digest_gradient or phases/digest");
}

/* The file's groups may name more than the record has; nothing may be read beyond it. */
static void validate_foreign_groups(void **state) {
    (void)state;
    static const char *const wrong[] = {"012", "0x0", "/0"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct fake fake;
        fake_open(&fake, 0);
        fake.run.plan.groups = wrong[i];
        assert_int_equal(certified(&fake).state, CERTIFY_SOUND);
    }
}

/* The first root of a fork continues from its arm's, or is not checked. */
static void validate_fork(void **state) {
    (void)state;
    struct fake arm, fork;
    fake_open(&arm, 0);
    fake_open(&fork, 0);
    struct trace_run runs[2] = {arm.run, fork.run};
    runs[1].plan.id = "hybrid-1";
    runs[1].records = fork.records + 4;
    runs[1].updates = UPDATES - 4;
    struct trace_image image = {.runs = runs, .run_count = 2};
    struct certificate certificate;
    certify_run(&image, &runs[1], &certificate);
    assert_int_equal(certificate.state, CERTIFY_SOUND);
    assert_int_equal(certificate.checked, UPDATES - 4);
    assert_int_equal(certificate.start_known, 1);
    runs[0].updates = 3; /* update 4, from which it forked, is in memory, but no row of the arm */
    certify_run(&image, &runs[1], &certificate);
    assert_int_equal(certificate.state, CERTIFY_SOUND);
    assert_int_equal(certificate.start_known, 0);
    runs[1].plan.arm = "nobody";
    certify_run(&image, &runs[1], &certificate);
    assert_int_equal(certificate.state, CERTIFY_SOUND);
    assert_int_equal(certificate.start_known, 0);
    assert_int_equal(certificate.checked, UPDATES - 5);
}

static enum status equal_at(void *context, uint64_t update, int *out_equal) {
    struct fake *const *fakes = (struct fake *const *)context;
    *out_equal = memcmp(fakes[0]->records[update - 1].digests[DIGEST_ROOT],
                        fakes[1]->records[update - 1].digests[DIGEST_ROOT], DIGEST_BYTES) == 0;
    return STATUS_OK;
}

/* Weights that are equal again after update k must not hide what happened in it. */
static void verify_reconvergence_is_seen(void **state) {
    (void)state;
    for (uint64_t apart = 1; apart <= UPDATES; apart++) {
        struct fake a, b;
        struct fake *fakes[2] = {&a, &b};
        uint64_t first;
        uint32_t comparisons;
        fake_open(&a, 0);
        fake_open(&b, apart);
        for (uint64_t i = apart; i < UPDATES; i++)
            assert_memory_equal(a.records[i].digests[DIGEST_WEIGHTS],
                                b.records[i].digests[DIGEST_WEIGHTS], DIGEST_BYTES);
        assert_int_equal(certified(&b).state, CERTIFY_SOUND);
        assert_int_equal(chain_first_difference(equal_at, fakes, UPDATES, &first, &comparisons),
                         STATUS_OK);
        assert_int_equal(first, apart);
        assert_true(comparisons <= 4 + 2); /* ceil(log2 9) + 2 */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_sound),        cmocka_unit_test(verify_changes_are_named),
        cmocka_unit_test(validate_damaged_row),  cmocka_unit_test(validate_gap),
        cmocka_unit_test(validate_untestable),   cmocka_unit_test(validate_little_recorded),
        cmocka_unit_test(validate_many_tensors), cmocka_unit_test(validate_foreign_groups),
        cmocka_unit_test(validate_fork),         cmocka_unit_test(verify_reconvergence_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
