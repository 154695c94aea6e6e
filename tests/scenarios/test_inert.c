/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * Keys that nothing reads: what they hold, that they are in no factor, and which of the written
 * ones are reported. The laws are tested on random pairs of arms. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "scenarios/inert.h"
#include "tests/scenarios/helper_scenario.h"

#define SEED 20260411
#define PAIRS 40
#define ATTEMPTS 400

static const char *arms_text(struct arena *arena, const char *common, const char *arms) {
    char *text = NULL;
    assert_int_equal(
        arena_format(arena, &text, "twinstep: 1\ncommon: {%s}\narms: %s\n", common, arms),
        STATUS_OK);
    return text;
}

/* A key about a restart that one arm alone reads is told, but both arms hold the same value. */
static int is_told_only(const struct factor *factor, uint32_t k) {
    return factor->cause == CAUSE_RESUME && (strcmp(factor->values[0][k], "(none)") == 0 ||
                                             strcmp(factor->values[1][k], "(none)") == 0);
}

/* Lists the keys that differ as "key key ", in the order of the factors. */
static char *keys_that_differ(struct arena *arena, const struct scenario *scenario) {
    struct factor *factors = NULL;
    uint32_t count = 0;
    char *text = NULL;
    assert_int_equal(factors_of(&helper_schema, &scenario->arms[0].config,
                                &scenario->arms[1].config, arena, &factors, &count),
                     STATUS_OK);
    assert_int_equal(arena_format(arena, &text, "%s", ""), STATUS_OK);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < factors[i].key_count; k++)
            if (!is_told_only(&factors[i], k))
                assert_int_equal(arena_format(arena, &text, "%s%s ", text, factors[i].keys[k]),
                                 STATUS_OK);
    return text;
}

/* A key that is inert under `silent` and is read under `loud`, with a value other than its
 * default. */
static const struct {
    const char *silent, *loud, *value, *key;
} silenced[] = {
    {"task: sft", "task: dpo", "data: {pairs: x.jsonl}", "data.pairs "},
    {"task: dpo", "task: sft", "data: {text: x.jsonl}", "data.text "},
    {"task: sft", "task: dpo", "dpo: {beta: 0.5}", "dpo.beta "},
    {"task: sft", "task: dpo", "dpo: {reference: live}", "dpo.reference "},
    {"task: sft", "task: dpo", "dpo: {reference_batch: 3}", "dpo.reference_batch "},
    {"task: sft", "task: dpo", "dpo: {reference_compute: bf16}", "dpo.reference_compute "},
    {"task: sft", "task: dpo", "dpo: {reference_layout: concatenated}", "dpo.reference_layout "},
    {"dpo: {reference: live}", "seed: 17", "dpo: {reference_batch: 3}", "dpo.reference_batch "},
    {"task: sft", "dpo: {reference_layout: separate}", "batch: {layout: concatenated}",
     "batch.layout "},
    {"task: sft, data: {shuffle: false}", "task: sft", "data: {seed: 4}", "data.seed "},
    {"data: {shuffle: false, pairs: x.jsonl}", "data: {shuffle: false}", "data: {seed: 4}",
     "data.seed "},
    {"loop: {update: [optimize, log]}", "seed: 17", "clip: {max_norm: 3}", "clip.max_norm "},
    {"loop: {update: [optimize, log], eval: [clip]}",
     "loop: {update: [optimize, log], eval: [clip], eval_every: 2}", "clip: {max_norm: 3}",
     "clip.max_norm "},
    {"schedule: {total: 10}", "schedule: {total: 10, warmup_ratio: 0.5}",
     "schedule: {warmup_rounding: floor}", "schedule.warmup_rounding "},
    {"seed: 17", "schedule: {logged: recomputed}", "schedule: {logged_shift: 1}",
     "schedule.logged_shift "},
    {"seed: 17", "loop: {eval_every: 2}", "loop: {eval: [schedule]}", "loop.eval "},
    {"seed: 17", "loop: {skip: nonfinite}", "loop: {on_skip: [log]}", "loop.on_skip "},
    {"seed: 17", "numerics: {mode: shuffled}", "numerics: {order_seed: 3}", "numerics.order_seed "},
    {"seed: 17", "numerics: {mode: shuffled}", "shuffle: {kinds: [loss]}", "shuffle.kinds "},
    {"seed: 17", "numerics: {mode: shuffled}", "shuffle: {chunk: 3}", "shuffle.chunk "},
    {"seed: 17", "numerics: {mode: atomic}", "atomic: {kinds: [dq]}", "atomic.kinds "},
    {"numerics: {mode: fast}", "numerics: {mode: atomic}", "atomic: {chunk: 3}", "atomic.chunk "},
    {"numerics: {mode: fast}", "numerics: {mode: fast, backend: cuda}",
     "numerics: {determinism: {workspace: pinned}}", "numerics.determinism.workspace "},
    {"numerics: {backend: cuda}", "numerics: {mode: deterministic, backend: cuda}",
     "numerics: {determinism: {order: free}}", "numerics.determinism.order "},
    {"numerics: {mode: atomic, backend: cuda}", "numerics: {mode: deterministic, backend: cuda}",
     "numerics: {determinism: {atomics: on}}", "numerics.determinism.atomics "},
    {"numerics: {mode: fast, backend: cuda, library: none}",
     "numerics: {mode: fast, backend: cuda}", "numerics: {determinism: {split_k: off}}",
     "numerics.determinism.split_k "},
    {"numerics: {mode: deterministic}", "numerics: {mode: deterministic, backend: cuda}",
     "numerics: {library: none}", "numerics.library "},
};

/* Tells whether the key is reported; `key` has a space behind it. */
static int is_reported(const struct scenario *scenario, const char *key) {
    size_t length = strlen(key) - 1;
    for (uint32_t i = 0; i < scenario->inert_count; i++)
        if (strlen(scenario->inert[i].key) == length && scenario->inert[i].arm != NULL &&
            strncmp(scenario->inert[i].key, key, length) == 0)
            return strcmp(scenario->inert[i].arm, "b") == 0;
    return 0;
}

static void validate_inert_keys(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(silenced); i++) {
        struct arena arena = ARENA_EMPTY;
        char *arms = NULL;
        assert_int_equal(arena_format(&arena, &arms, "{a: {}, b: {%s}}", silenced[i].value),
                         STATUS_OK);
        const struct scenario *s =
            helper_parse(&arena, arms_text(&arena, silenced[i].silent, arms), NULL);
        assert_string_equal(keys_that_differ(&arena, s), "");
        assert_memory_equal(&s->arms[0].config, &s->arms[1].config, sizeof(struct config));
        assert_true(is_reported(s, silenced[i].key));
        s = helper_parse(&arena, arms_text(&arena, silenced[i].loud, arms), NULL);
        assert_string_equal(keys_that_differ(&arena, s), silenced[i].key);
        assert_false(is_reported(s, silenced[i].key));
        arena_close(&arena);
    }
}

/* Where one arm reads a key that was written for both, both hold it: it is no factor, and hybrids
 * that read it train with what was written. A derived default is that of the arm that reads it. */
static void validate_one_reader(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    const struct scenario *s = helper_parse(
        &arena,
        arms_text(&arena,
                  "clip: {max_norm: 3}, data: {text: t.jsonl, pairs: p.jsonl}, dpo: {beta: 0.5}",
                  "{a: {task: sft}, b: {loop: {update: [optimize, log]}, batch: {micro: 2}}}"),
        NULL);
    assert_string_equal(keys_that_differ(&arena, s), "loop.update batch.micro task ");
    for (int i = 0; i < 2; i++) {
        const struct config *config = &s->arms[i].config;
        assert_true(config->clip.max_norm == 3 && config->dpo.beta == 0.5);
        assert_string_equal(config->data.text, "t.jsonl");
        assert_string_equal(config->data.pairs, "p.jsonl");
        assert_int_equal(config->dpo.reference_batch, 2);
    }
    assert_int_equal(s->inert_count, 0); /* each key of common is read by one arm */
    arena_close(&arena);
}

/* Writes the value of the silenced key's text, "{reference: live}" of "dpo: {reference: live}", as
 * `--set WHERE.KEY=VALUE` has it. */
static const char *set_of(struct arena *arena, const char *where, size_t i) {
    const char *value = silenced[i].value, *at;
    char *text = NULL;
    while ((at = strstr(value, ": ")) != NULL)
        value = at + 2 + (at[2] == '{');
    size_t length = strlen(value);
    while (length > 0 && value[length - 1] == '}')
        length--;
    assert_int_equal(arena_format(arena, &text, "%s.%.*s=%.*s", where,
                                  (int)strlen(silenced[i].key) - 1, silenced[i].key, (int)length,
                                  value),
                     STATUS_OK);
    return text;
}

/* A key that one arm alone reads is a difference where it was written for that arm, and none where
 * it was written for both, or for neither. Of a source of data the arm that reads none of its kind
 * has no other. */
static void validate_one_reader_of_each(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(silenced); i++)
        for (int reader = 0; reader < 2; reader++)
            for (int how = 0; how < 4; how++) { /* neither, the one that reads, both, in common */
                struct arena arena = ARENA_EMPTY;
                const char *overrides[3] = {NULL};
                size_t count = 0;
                char *arms = NULL, *padded = NULL;
                assert_int_equal(arena_format(&arena, &arms, "{a: {%s}, b: {%s}}",
                                              reader == 0 ? silenced[i].loud : silenced[i].silent,
                                              reader == 0 ? silenced[i].silent : silenced[i].loud),
                                 STATUS_OK);
                if (how == 1 || how == 2)
                    overrides[count++] = set_of(&arena, reader == 0 ? "arms.a" : "arms.b", i);
                if (how == 2)
                    overrides[count++] = set_of(&arena, reader == 0 ? "arms.b" : "arms.a", i);
                if (how == 3) overrides[count++] = set_of(&arena, "common", i);
                const struct scenario *const s =
                    helper_parse(&arena, arms_text(&arena, "seed: 17", arms), overrides);
                const char *const path = silenced[i].key;
                char bare[64];
                snprintf(bare, sizeof bare, "%.*s", (int)strlen(path) - 1, path);
                assert_non_null(inert_reason(&s->arms[1 - reader].config, bare));
                assert_null(inert_reason(&s->arms[reader].config, bare));
                assert_int_equal(arena_format(&arena, &padded, " %s", keys_that_differ(&arena, s)),
                                 STATUS_OK);
                char *word = NULL;
                assert_int_equal(arena_format(&arena, &word, " %s", path), STATUS_OK);
                const int is_source =
                    strncmp(path, "data.pairs", 10) == 0 || strncmp(path, "data.text", 9) == 0;
                if ((strstr(padded, word) != NULL) != (how == 1 && !is_source))
                    fail_msg("%s, reader %d, written %d: %s", bare, reader, how, padded);
                arena_close(&arena);
            }
}

/* parallel.draws has words of tensor-parallel ranks and one of data-parallel ranks: a word is inert
 * where there are no ranks of its kind, and no arm gets the other's word that it would read. */
static void validate_words_of_ranks(void **state) {
#define OF_FOUR "numerics: {shards: 4, cuts: 2}, parallel: {ranks: 4}"
    (void)state;
    static const struct {
        const char *arms, *differ;
        int inert; /* arms that are told so */
        int32_t draws[2];
    } cases[] = {
        {"{a: {}, b: {parallel: {draws: same}}}", "", 1, {DRAWS_WHOLE, DRAWS_WHOLE}},
        {"{a: {parallel: {draws: own}}, b: {}}", "", 1, {DRAWS_WHOLE, DRAWS_WHOLE}},
        {"{a: {}, b: {parallel: {draws: same-rows}}}",
         "parallel.draws ",
         0,
         {DRAWS_WHOLE, DRAWS_SAME_ROWS}},
        {"{a: {parallel: {draws: own}}, b: {parallel: {draws: same-rows}}}",
         "parallel.draws ",
         1,
         {DRAWS_WHOLE, DRAWS_SAME_ROWS}},
        {"{a: {parallel: {draws: same-rows}}, b: {parallel: {draws: same}}}",
         "parallel.draws ",
         1,
         {DRAWS_SAME_ROWS, DRAWS_WHOLE}},
        {"{a: {parallel: {draws: own}}, b: {parallel: {draws: own, tensor: 2}}}",
         "parallel.tensor ",
         1,
         {DRAWS_OWN, DRAWS_OWN}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        const struct scenario *const s =
            helper_parse(&arena, arms_text(&arena, OF_FOUR, cases[i].arms), NULL);
        assert_string_equal(keys_that_differ(&arena, s), cases[i].differ);
        assert_int_equal(s->inert_count, cases[i].inert);
        if (s->inert_count > 0) assert_string_equal(s->inert[0].key, "parallel.draws");
        for (int arm = 0; arm < 2; arm++)
            assert_int_equal(s->arms[arm].config.parallel.draws, cases[i].draws[arm]);
        arena_close(&arena);
    }
}

/* Words that act as f32 where what they round is made of f32 numbers: no difference, and told. */
static void validate_words_of_wide_numbers(void **state) {
#define WIDE_SUMS "numerics: {accumulate: f64}"
#define WIDE_REFERENCE "dpo: {reference_compute: f64}, " WIDE_SUMS
    (void)state;
    static const struct {
        const char *common, *arms, *differ, *key; /* that is told; "": none is */
    } cases[] = {
        {"seed: 17", "{a: {}, b: {numerics: {loss: f64}}}", "", "numerics.loss"},
        {"seed: 17", "{a: {numerics: {loss: f64}}, b: {numerics: {loss: bf16}}}", "numerics.loss ",
         "numerics.loss"},
        {WIDE_SUMS, "{a: {}, b: {numerics: {loss: f64}}}", "numerics.loss ", ""},
        {"seed: 17", "{a: {}, b: {numerics: {rope: f64}}}", "", "numerics.rope"},
        {"task: sft", "{a: {}, b: {numerics: {rope: f64}}}", "", "numerics.rope"},
        {WIDE_REFERENCE, "{a: {}, b: {numerics: {rope: f64}}}", "numerics.rope ", ""},
        {"dpo: {loss: simpo}, " WIDE_SUMS, "{a: {}, b: {numerics: {rope: f64}}}", "",
         "numerics.rope"},
        {"numerics: {compute: f64}", "{a: {}, b: {numerics: {rope: f64}}}", "numerics.rope ", ""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        const struct scenario *const s =
            helper_parse(&arena, arms_text(&arena, cases[i].common, cases[i].arms), NULL);
        int told = 0;
        assert_string_equal(keys_that_differ(&arena, s), cases[i].differ);
        for (uint32_t k = 0; k < s->inert_count; k++)
            told += strncmp(s->inert[k].key, "numerics.", 9) == 0;
        if (told != (cases[i].key[0] != '\0')) fail_msg("case %zu: %d told", i, told);
        for (uint32_t k = 0; told > 0 && k < s->inert_count; k++)
            if (strncmp(s->inert[k].key, "numerics.", 9) == 0)
                assert_string_equal(s->inert[k].key, cases[i].key);
        arena_close(&arena);
    }
}

/* A bit that flips in one arm: all of its keys differ, and the other arm is as if it had none. */
static void validate_reset_alone(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    const struct scenario *s =
        helper_parse(&arena,
                     arms_text(&arena, "fault: {op: attention, layer: 1, bit: 3}",
                               "{a: {}, b: {fault: {update: 2}}}"),
                     NULL);
    const struct scenario *empty = helper_parse(&arena, "twinstep: 1", NULL);
    assert_string_equal(keys_that_differ(&arena, s),
                        "fault.update fault.layer fault.op fault.bit ");
    assert_memory_equal(&s->arms[0].config, &empty->arms[0].config, sizeof(struct config));
    assert_int_equal(s->arms[1].config.fault.bit, 3);
    arena_close(&arena);
}

static void validate_canonical_values(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    const struct scenario *empty = helper_parse(&arena, "twinstep: 1", NULL);
    const struct config *standard = &empty->arms[0].config;
    const struct config *config =
        &helper_common(&arena,
                       "task: sft, seed: 4, data: {shuffle: false}, batch: {size: 6}, numerics: "
                       "{compute: bf16}, dpo: {beta: 7}")
             ->arms[0]
             .config;
    assert_memory_equal(&config->dpo, &standard->dpo, sizeof config->dpo);
    assert_int_equal(config->data.seed, 17);
    assert_int_equal(config->init.seed, 4);
    arena_close(&arena);
}

static void validate_report(void **state) {
    (void)state;
    static const struct {
        const char *common, *arms;
        uint32_t count;
        const char *key, *why, *arm; /* of the first */
    } cases[] = {
        {"task: sft, dpo: {beta: 1}", "{a: {}, b: {}}", 1, "dpo.beta", "task is sft", NULL},
        {"task: sft, dpo: {beta: 1}", "{a: {}, b: {dpo: {beta: 2}}}", 2, "dpo.beta", "task is sft",
         "b"},
        {"dpo: {beta: 1}", "{a: {task: sft}, b: {}}", 0, NULL, NULL, NULL},
        {"seed: 1", "{a: {task: sft, dpo: {beta: 1}}, b: {}}", 1, "dpo.beta", "task is sft", "a"},
        {"loop: {on_skip: [log], eval: [zero]}", "{a: {}, b: {}}", 2, "loop.eval",
         "loop.eval_every is 0", NULL},
        {"fault: {op: attention, bit: 3}", "{a: {}, b: {fault: {update: 2}}}", 0, NULL, NULL, NULL},
        {"seed: 1", "{a: {fault: {bit: 3}}, b: {fault: {update: 2}}}", 1, "fault.bit",
         "fault.update is 0", "a"},
        {"dpo: {reference: live, reference_batch: 2}", "{a: {}, b: {}}", 1, "dpo.reference_batch",
         "dpo.reference is live", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        const struct scenario *s =
            helper_parse(&arena, arms_text(&arena, cases[i].common, cases[i].arms), NULL);
        assert_int_equal(s->inert_count, cases[i].count);
        if (cases[i].count != 0) {
            assert_string_equal(s->inert[0].key, cases[i].key);
            assert_string_equal(s->inert[0].why, cases[i].why);
            assert_int_equal(s->inert[0].arm == NULL, cases[i].arm == NULL);
            if (cases[i].arm != NULL) assert_string_equal(s->inert[0].arm, cases[i].arm);
        }
        arena_close(&arena);
    }
}

/* A key that neither arm reads must be equal in both, and settling once more must change nothing.
 */
static void verify_random_pairs(void **state) {
    (void)state;
    static struct config again[2];
    struct helper_random random = {SEED};
    int pairs = 0;
    size_t count = 0, inert = 0;
    const struct key_row *rows = schema_rows(&count);
    for (int attempt = 0; attempt < ATTEMPTS && pairs < PAIRS; attempt++) {
        struct arena arena = ARENA_EMPTY;
        const struct scenario *s = helper_random_scenario(&random, &arena);
        if (s != NULL) {
            pairs++;
            for (int i = 0; i < 2; i++)
                again[i] = s->arms[i].config;
            assert_int_equal(inert_settle(&again[0], &again[1], NULL), STATUS_OK);
            for (int i = 0; i < 2; i++)
                assert_memory_equal(&again[i], &s->arms[i].config, sizeof again[i]);
            const char *differing = keys_that_differ(&arena, s);
            for (size_t r = 0; r < count; r++) {
                char *word = NULL;
                if (inert_reason(&again[0], rows[r].path) == NULL ||
                    inert_reason(&again[1], rows[r].path) == NULL)
                    continue;
                /* those of `fault` are reset each in its own arm, together with what reads them */
                if (rows[r].cause == CAUSE_CORRUPTION &&
                    (again[0].fault.update != 0 || again[1].fault.update != 0))
                    continue;
                inert++;
                assert_int_equal(arena_format(&arena, &word, "%s ", rows[r].path), STATUS_OK);
                if (strstr(differing, word) != NULL) fail_msg("%s in %s", word, differing);
            }
        }
        arena_close(&arena);
    }
    print_message("# seed %d, %d pairs, %zu inert keys\n", SEED, pairs, inert);
    assert_int_equal(pairs, PAIRS);
    assert_true(inert > PAIRS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_inert_keys),
        cmocka_unit_test(validate_one_reader),
        cmocka_unit_test(validate_one_reader_of_each),
        cmocka_unit_test(validate_words_of_ranks),
        cmocka_unit_test(validate_words_of_wide_numbers),
        cmocka_unit_test(validate_reset_alone),
        cmocka_unit_test(validate_canonical_values),
        cmocka_unit_test(validate_report),
        cmocka_unit_test(verify_random_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
