/* SPDX-License-Identifier: Apache-2.0
 * labels: cli memory
 * twinstep rollout at the door: what it reads, what each status means, and what it says of files
 * that are wrong: file, line, field, what was expected and what came. The figures have an oracle of
 * their own (tests/rollout/metrics_oracle.py), the causes tests/rollout/test_planted.c. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli/helper_cli.h"

/* ---- inputs that are wrong ---- */

static const struct {
    const char *text, *options, *needle;
} wrong[] = {
    {"", "", "rows.jsonl: expected sequences, got an empty file"},
    {"\n\n", "", "rows.jsonl: expected tokens with two log-probs, got none"},
    {"[1, 2]\n", "", "rows.jsonl:1: expected one JSON object for each sequence"},
    {"{\"rollout_logprobs\": [-1]}\n", "",
     "rows.jsonl:1: expected log-probs of the trainer (trainer_logprobs, old_log_probs"},
    {"{\"trainer_logprobs\": [-1]}\n", "",
     "rows.jsonl:1: expected log-probs of the engine that generated (rollout_logprobs"},
    {"{\"rollout_logprobs\": [-1], \"trainer_logprobs\": [-1]}\n"
     "{\"rollout_logprobs\": [-1, \"x\"], \"trainer_logprobs\": [-1, -2]}\n",
     "", "rows.jsonl:2: rollout_logprobs[1]: expected a number, got \"x\""},
    {"{\"rollout_logprobs\": [-1, 0.5], \"trainer_logprobs\": [-1, -2]}\n", "",
     "rows.jsonl:1: rollout log-probs[1]: expected a log-prob, which is at most 0, got 0.5; is it "
     "a probability?"},
    {"{\"rollout_logprobs\": [-1, 7], \"trainer_logprobs\": [-1, -2]}\n", "",
     "expected a log-prob, which is at most 0, got 7\n"},
    {"{\"rollout_logprobs\": -1, \"trainer_logprobs\": [-1]}\n", "",
     "rows.jsonl:1: rollout_logprobs[0]: expected a list with a number for each token"},
    {"{\"rollout_logprobs\": [[-1], [-2]], \"trainer_logprobs\": [-1]}\n", "",
     "rows.jsonl:1: rollout_logprobs: expected one list of numbers for one sequence"},
    {"{\"choices\": [{\"logprobs\": {\"token_logprobs\": [-1]}}, {\"logprobs\": "
     "{\"token_logprobs\": [-2]}}], \"trainer_logprobs\": [-2]}\n",
     "", "rows.jsonl:1: token_logprobs: expected one list for one sequence, got a second one"},
    {"{\"rollout_logprobs\": [{\"token\": 1}], \"trainer_logprobs\": [-1]}\n", "",
     "expected a number, got an object without \"logprob\""},
    {"{\"rollout_logprobs\": [-1, -2], \"trainer_logprobs\": [-1, -2], \"mask\": [1]}\n", "",
     "rows.jsonl:1: expected mask for each of 2 log-probs, got 1"},
    {"{\"rollout_logprobs\": [-1, -2], \"trainer_logprobs\": [-1, -2], \"token_ids\": [1]}\n", "",
     "rows.jsonl:1: expected token ids for each of 2 log-probs, got 1"},
    {"{\"rollout_logprobs\": [-1], \"trainer_logprobs\": [-1], \"mask\": [0]}\n", "",
     "expected tokens with two log-probs, got none (1 masked out"},
    {"{\"rollout_logprobs\": [-1, -2], \"trainer_logprobs\": [-1, -2], \"loss_mask\": [0, 1]}\n"
     "{\"rollout_logprobs\": [-1, -2], \"trainer_logprobs\": [-1, -2], \"loss_mask\": null}\n",
     "",
     "rows.jsonl:2: loss_mask: expected a list as in line 1, got null or no such name; write a "
     "mask of ones"},
    {"{\"rollout_logprobs\": [-1, -2], \"trainer_logprobs\": [-1, -2]}\n"
     "{\"rollout_logprobs\": [-1, -2], \"trainer_logprobs\": [-1, -2], \"mask\": [0, 1]}\n",
     "", "rows.jsonl:2: mask: expected no mask as in line 1, got a list"},
    {"{\"rollout_logprobs\": [-1], \"trainer_logprobs\": [-1], \"sample_mask\": [1, 0]}\n", "",
     "rows.jsonl:1: kept: expected one number for the whole sequence, got a list of 2"},
    {"{\"rollout_logprobs\": [-1], \"trainer_logprobs\": [-1]} 5\n", "",
     "rows.jsonl:1:54: expected the end, got \"5\""},
    {"{\"rollout_logprobs\": [-1,], \"trainer_logprobs\": [-1]}\n", "",
     "rows.jsonl:1:26: expected a value"},
    {"{\"rollout_logprobs\": [-1], \"trainer_logprobs\": [-1", "",
     "rows.jsonl:1:51: expected ',' or ']', got the end of the file"},
    {"{\"a\": [-1], \"b\": [-1]}\n", " --field rollout=a", "expected log-probs of the trainer"},
    {"{\"a\": [-1], \"b\": [-1]}\n", " --field rollouts=a",
     "--field: expected one of rollout, trainer, tokens"},
    {"{\"a\": [-1], \"b\": [-1]}\n", " --field rewards=a",
     "batch, kept, removed, reward, id, got \"rewards\""},
    {"{\"a\": [-1], \"b\": [-1]}\n", " --field a",
     "--field: expected ROLE=NAME, for instance trainer=my_logps, got \"a\""},
    {"{\"rollout_logprobs\": [-1], \"trainer_logprobs\": [-1]}\n", " --floor none.jsonl",
     "--floor: none.jsonl: cannot open: No such file"},
    {"PK\3\4", "", "expected a .npz archive, got one that is damaged: it is too short"},
    {"\x89HDF\r\n\x1a\n", "", "rows.jsonl: cannot open as HDF5"},
};

static void verify_wrong_files_are_told(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char line[256];
        helper_write("rows.jsonl", wrong[i].text);
        snprintf(line, sizeof line, "rollout rows.jsonl%s", wrong[i].options);
        helper_refuse(2, line, wrong[i].needle);
    }
}

/* ---- statuses ---- */

#define ROWS 40
#define TOKENS 24

/* A number in [0, 1) that depends on its place alone. */
static double draw(unsigned sequence, unsigned token, unsigned salt) {
    uint64_t x = ((uint64_t)sequence * 131 + token) * 977 + salt;
    x ^= x >> 31;
    x *= 0x9e3779b97f4a7c15u;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 32;
    return (double)(x >> 11) * 0x1p-53;
}

/* Writes sequences whose sides are apart by up to `size`, and by `more` above `from`. */
static void write_rows(const char *path, unsigned salt, double size, int masked) {
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    for (unsigned s = 0; s < ROWS; s++) {
        for (int side = 0; side < 2; side++) {
            fprintf(out, side == 0 ? "{\"rollout_logprobs\": [" : "], \"trainer_logprobs\": [");
            for (unsigned t = 0; t < TOKENS; t++) {
                const double p = -0.2 - 3.0 * draw(s, t, 1);
                const double d = side == 0 ? size * (2.0 * draw(s, t, salt) - 1.0) : 0.0;
                fprintf(out, "%s%.9g", t == 0 ? "" : ", ",
                        masked && side == 0 && t < 5 ? 0.0 : p + d);
            }
        }
        fprintf(out, "]}\n");
    }
    assert_int_equal(fclose(out), 0);
}

static void require_said(int code, const char *line, const char *needle) {
    struct said said = helper_run(code, line);
    if (strstr(said.out, needle) == NULL)
        fail_msg("%s: expected %s in\n%s", line, needle, said.out);
    assert_string_equal(said.err, "");
    helper_free(&said);
}

enum single {
    SINGLE_ANY = 0, /* a few that are drawn */
    SINGLE_FIRST,   /* the first of each sequence */
    SINGLE_LAST,
    SINGLE_MIDDLE, /* the one at position 12 */
    SINGLE_SOME,   /* half of those at position 12 */
    SINGLE_ID,     /* two ids of 40 */
    SINGLE_BEHIND, /* those behind these ids */
    SINGLE_AGAIN,  /* those whose id is one of the two before */
    SINGLE_TAIL,   /* the least likely */
    SINGLE_RUN,    /* three in a row, at a place that is drawn */
    SINGLE_SWITCH  /* the first of newer weights, which begin within the sequence */
};

/* Writes rows that are as far apart as those of a floor, but for single tokens. */
static void write_single(const char *path, enum single where) {
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    for (unsigned s = 0; s < ROWS; s++) {
        for (int side = 0; side < 3; side++) {
            static const char *const names[] = {"{\"token_ids\": [", "], \"rollout_logprobs\": [",
                                                "], \"trainer_logprobs\": ["};
            fputs(names[side], out);
            for (unsigned t = 0; t < TOKENS; t++) {
                const unsigned id = (unsigned)(40.0 * draw(s, t, 11));
                const unsigned before = t > 0 ? (unsigned)(40.0 * draw(s, t - 1, 11)) : 0;
                const unsigned two = t > 1 ? (unsigned)(40.0 * draw(s, t - 2, 11)) : 40;
                const unsigned run = t - (unsigned)(20.0 * draw(s, 0, 13));
                const double p = -0.2 - 3.0 * draw(s, t, 1);
                const int is_far[] = {[SINGLE_ANY] = draw(s, t, 12) < 0.05,
                                      [SINGLE_FIRST] = t == 0,
                                      [SINGLE_LAST] = t == TOKENS - 1,
                                      [SINGLE_MIDDLE] = t == 12,
                                      [SINGLE_SOME] = t == 12 && s % 2 == 0,
                                      [SINGLE_ID] = id == 7 || id == 30,
                                      [SINGLE_BEHIND] = before == 7 || before == 30,
                                      [SINGLE_AGAIN] = t > 0 && (id == before || id == two),
                                      [SINGLE_TAIL] = p < -3.08,
                                      [SINGLE_RUN] = run < 3,
                                      [SINGLE_SWITCH] = t == 5 + s % 10};
                const double d = 0.01 * (2.0 * draw(s, t, 4) - 1.0) - 1.5 * is_far[where];
                fprintf(out, "%s%.9g", t == 0 ? "" : ", ",
                        side == 0   ? (double)id
                        : side == 1 ? p
                                    : p + d);
            }
        }
        fprintf(out, "], \"weight_version\": [");
        for (unsigned t = 0; t < TOKENS; t++)
            fprintf(out, "%s%d", t == 0 ? "" : ", ", where != SINGLE_SWITCH || t >= 5 + s % 10);
        fprintf(out, "], \"trainer_version\": 1}\n");
    }
    assert_int_equal(fclose(out), 0);
}

/* Single tokens far out are a choice of experts where they are scattered, and no such thing where
 * something else that is known of them says which they are. */
static void verify_single_tokens_that_are_foretold(void **state) {
    static const struct {
        enum single where;
        int code;
        const char *needle;
    } cases[] = {
        {SINGLE_ANY, 1, "cause    routing: most tokens are"},
        {SINGLE_FIRST, 1,
         "open     routing: 40 of the 40 tokens that are further apart than twice the floor's 99.9 "
         "% are foretold by the position, 0: 100 % of such tokens are that far, and 0 % of the "
         "others; a choice of experts would be scattered"},
        {SINGLE_LAST, 1,
         " foretold by the position, 23: 100 % of such tokens are that far, and 0 "},
        {SINGLE_MIDDLE, 1, " foretold by the position, 12: 100 % of such tokens are that far"},
        {SINGLE_SOME, 1,
         "20 of the 20 tokens that are further apart than twice the floor's 99.9 % "
         "are foretold by the position, 12: 50 % of such"},
        {SINGLE_ID, 1, " are foretold by the token id, 7 or 30: 100 % of such tokens"},
        {SINGLE_BEHIND, 1, " are foretold by the id of the token before, 7 or 30: 100 % of such"},
        {SINGLE_AGAIN, 1,
         " are foretold by the distance from the same id before, 1 or 2: 100 % of"},
        {SINGLE_TAIL, 1,
         " are foretold by the log-prob of the trainer, at most -4.5: 100 % of such tokens"},
        {SINGLE_RUN, 1, " are foretold by the token before that is not certain, which is as far: "},
        {SINGLE_SWITCH, 1,
         " are foretold by the distance from a change of the weights' version, 0: 100 % of"},
    };
    (void)state;
    write_rows("floor.jsonl", 3, 0.01, 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_single("single.jsonl", cases[i].where);
        require_said(cases[i].code, "rollout single.jsonl --floor floor.jsonl", cases[i].needle);
    }
}

/* Writes 300 sequences of 80 tokens, of which some 50 are far out: 6 % of those of the sequences 70
 * to 79, or 0.2 % of all. far 0: none. */
static void write_few(const char *path, unsigned salt, int far, int in_few) {
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    for (unsigned s = 0; s < 300; s++) {
        static const char *const names[] = {"{\"token_ids\": [", "], \"rollout_logprobs\": [",
                                            "], \"trainer_logprobs\": ["};
        const double share = !far ? 0.0 : !in_few ? 0.002 : s / 10 == 7 ? 0.06 : 0.0;
        for (int side = 0; side < 3; side++) {
            fputs(names[side], out);
            for (unsigned t = 0; t < 80; t++) {
                const double p = -0.5 - 3.0 * draw(s, t, salt);
                const double away = draw(s, t, salt + 2) < 0.5 ? 0.4 : -0.4;
                const double d = 0.01 * (2.0 * draw(s, t, salt + 1) - 1.0) +
                                 (draw(s, t, salt + 3) < share ? away : 0.0);
                fprintf(out, "%s%.9g", t == 0 ? "" : ", ",
                        side == 0   ? (double)(unsigned)(900.0 * draw(s, t, salt + 4))
                        : side == 1 ? p
                                    : p + d);
            }
        }
        fprintf(out, "]}\n");
    }
    assert_int_equal(fclose(out), 0);
}

/* As many single tokens are a choice of experts where they are scattered over the sequences, and
 * none where a few sequences have them all. */
static void verify_far_tokens_of_few_sequences(void **state) {
    (void)state;
    write_few("floor.jsonl", 30, 0, 0);
    write_few("few.jsonl", 40, 1, 1);
    write_few("all.jsonl", 40, 1, 0);
    require_said(3, "rollout few.jsonl --floor floor.jsonl",
                 " of 300 sequences, where as many that are scattered lie in about ");
    require_said(1, "rollout all.jsonl --floor floor.jsonl", "cause    routing: most tokens are");
}

/* Writes rows that are 0.05 apart: to a side that is drawn, to one and the other in turn, or to one
 * side at two positions of four, so that neighbours and octaves of positions have both. */
static void write_signs(const char *path, int how) {
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    for (unsigned s = 0; s < ROWS; s++) {
        for (int side = 0; side < 3; side++) {
            static const char *const names[] = {"{\"token_ids\": [", "], \"rollout_logprobs\": [",
                                                "], \"trainer_logprobs\": ["};
            fputs(names[side], out);
            for (unsigned t = 0; t < TOKENS; t++) {
                const int drawn = draw(s, t, 21) < 0.5;
                const int up[] = {drawn, (s + t) % 2 == 0,
                                  t < 2 ? drawn : t % 4 == 1 || t % 4 == 2};
                const double p = -0.2 - 3.0 * draw(s, t, 1), d = up[how] ? 0.05 : -0.05;
                const double value[] = {floor(40.0 * draw(s, t, 11)), p, p + d};
                fprintf(out, "%s%.9g", t == 0 ? "" : ", ", value[side]);
            }
        }
        fprintf(out, "]}\n");
    }
    assert_int_equal(fclose(out), 0);
}

/* Rounding agrees with nothing, so signs that alternate, or go by position, are none. */
static void verify_signs_in_turn_are_no_rounding(void **state) {
    static const char *const needles[] = {"cause    precision: signs of d agree with nothing",
                                          "no cause has its signature here",
                                          "no cause has its signature here"};
    (void)state;
    write_rows("floor.jsonl", 3, 0.01, 0);
    for (int how = 0; how < 3; how++) {
        write_signs("signs.jsonl", how);
        require_said(1, "rollout signs.jsonl --floor floor.jsonl", needles[how]);
    }
}

/* The names of verl changed their meaning on 2026-03-24, so the text says whose they are. */
static void verify_commits_of_others(void **state) {
    (void)state;
    write_rows("equal.jsonl", 2, 0.0, 0);
    require_said(0, "rollout equal.jsonl --metrics",
                 "\n  verl, as of its commit b178a3cd\n    rollout_corr/kl ");
    require_said(0, "rollout equal.jsonl --metrics", "\n  slime, as of its commit 624b824a\n");
}

static void verify_statuses(void **state) {
    (void)state;
    write_rows("equal.jsonl", 2, 0.0, 0);
    write_rows("floor.jsonl", 3, 0.01, 0);
    write_rows("within.jsonl", 4, 0.01, 0);
    write_rows("outside.jsonl", 5, 0.1, 0);
    write_rows("masked.jsonl", 6, 0.01, 1);
    require_said(0, "rollout equal.jsonl", "EQUAL: every counted log-prob is equal, bit for bit");
    require_said(0, "rollout within.jsonl --floor floor.jsonl", "WITHIN THE FLOOR");
    require_said(1, "rollout outside.jsonl --floor floor.jsonl", "OUTSIDE: mean |d| is ");
    require_said(1, "rollout masked.jsonl", "masked-prompt: 200 tokens at the beginning");
    require_said(1, "rollout within.jsonl --floor equal.jsonl", "OUTSIDE");
    require_said(3, "rollout within.jsonl", "UNDECIDED: no floor");
    /* the larger of two floors counts */
    require_said(0, "rollout outside.jsonl --floor floor.jsonl --floor outside.jsonl",
                 "WITHIN THE FLOOR");
    /* what the floor shows as well is no finding */
    require_said(0, "rollout masked.jsonl --floor masked.jsonl", "WITHIN THE FLOOR");
}

/* Writes sequences that are equal but for one token in fifty. Those of the first `few` are further
 * apart at four more, and `every` sequence but three in five at one more. */
static void write_sparse_more(const char *path, unsigned salt, unsigned sequences, unsigned tokens,
                              unsigned few, int every) {
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    for (unsigned s = 0; s < sequences; s++) {
        for (int side = 0; side < 2; side++) {
            fprintf(out, side == 0 ? "{\"rollout_logprobs\": [" : "], \"trainer_logprobs\": [");
            for (unsigned t = 0; t < tokens; t++) {
                const double p = -0.3 - 3.0 * draw(s, t, salt);
                const int differs = side == 0 && draw(s, t, salt + 1) < 0.02;
                const int is_far = (s < few && t % 100 == 50) || (every && s % 5 < 2 && t == 150);
                const double far = side == 0 && is_far ? -0.14 : 0.0;
                fprintf(out, "%s%.9g", t == 0 ? "" : ", ",
                        differs ? p + far + 0.1 * (draw(s, t, salt + 2) - 0.5) : p + far);
            }
        }
        fprintf(out, "], \"weight_version\": %u, \"trainer_version\": 9}\n", tokens > 100 ? 1 : 9);
    }
    assert_int_equal(fclose(out), 0);
}

static void write_sparse(const char *path, unsigned salt, unsigned sequences, unsigned tokens) {
    write_sparse_more(path, salt, sequences, tokens, 0, 0);
}

/* A few tokens far beyond a floor move neither its mean nor its ranks. In many sequences they are
 * outside, and in few of them the file is not within. */
static void verify_far_tokens_are_not_within(void **state) {
    (void)state;
    write_sparse("floor.jsonl", 11, 48, 400);
    write_sparse("again.jsonl", 15, 48, 400);
    write_sparse_more("few.jsonl", 15, 48, 400, 6, 0);
    write_sparse_more("far.jsonl", 15, 48, 400, 0, 1);
    require_said(0, "rollout again.jsonl --floor floor.jsonl", "WITHIN THE FLOOR");
    require_said(3, "rollout few.jsonl --floor floor.jsonl",
                 "but 24 tokens are further apart than twice the floor's 99.9 %.");
    require_said(1, "rollout far.jsonl --floor floor.jsonl",
                 "and 18 tokens are further apart than twice its 99.9 %; no cause");
    require_said(1, "rollout far.jsonl --floor floor.jsonl", "foretold by the position, 150: ");
}

/* The longer a sequence, the larger its maximum, and the surer it has a token that differs: neither
 * a verdict nor an age of weights may come of that. */
static void verify_lengths_alone_are_no_difference(void **state) {
    (void)state;
    write_sparse("short.jsonl", 11, 200, 24);
    write_sparse("long.jsonl", 15, 40, 400);
    require_said(0, "rollout long.jsonl --floor short.jsonl", "WITHIN THE FLOOR");
    require_said(0, "rollout short.jsonl --floor long.jsonl", "WITHIN THE FLOOR");
    /* in one file the long ones have old weights, and nothing else */
    size_t length;
    char *a = helper_read("short.jsonl", &length), *b = helper_read("long.jsonl", &length);
    FILE *both = fopen("both.jsonl", "w");
    assert_non_null(both);
    assert_true(fputs(a, both) >= 0 && fputs(b, both) >= 0);
    assert_int_equal(fclose(both), 0);
    free(a);
    free(b);
    require_said(0, "rollout both.jsonl --floor short.jsonl", "WITHIN THE FLOOR");
}

/* Writes 40 sequences of 24 tokens; the log-probs of both sides are `first` and then `logp`. */
static void write_alike(const char *path, const char *first, const char *logp) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int sequence = 0; sequence < 40; sequence++)
        for (int column = 0; column < 2; column++) {
            fprintf(file, column == 0 ? "{\"rollout_logprobs\": [%s" : "\"trainer_logprobs\": [%s",
                    first);
            for (int token = 1; token < 24; token++)
                fprintf(file, ", %s", logp);
            fprintf(file, column == 0 ? "], " : "]}\n");
        }
    assert_int_equal(fclose(file), 0);
}

/* An infinite log-prob may stand on both sides; and where tokens are certain, or the floor is 0,
 * the ratios to the floor are no numbers and are not printed. */
static void verify_words_of_infinite_and_of_no_ratio(void **state) {
    (void)state;
    write_alike("infinite.jsonl", "-1", "-Infinity");
    write_alike("certain.jsonl", "0.0", "0.0");
    write_rows("noise.jsonl", 1, 1e-3, 0);
    struct said said = helper_run(1, "rollout infinite.jsonl --floor noise.jsonl");
    assert_non_null(strstr(said.out, "have an infinite log-prob on one side or on both"));
    helper_free(&said);
    said = helper_run(0, "rollout certain.jsonl --floor noise.jsonl");
    assert_non_null(strstr(said.out, "rank of sequences"));
    assert_null(strstr(said.out, "nan"));
    helper_free(&said);
}

static void verify_few_sequences_decide_nothing(void **state) {
    (void)state;
    helper_write("few.jsonl",
                 "{\"rollout_logprobs\": [-1, -2], \"trainer_logprobs\": [-1, -2.5]}\n");
    write_rows("floor.jsonl", 3, 0.01, 0);
    require_said(3, "rollout few.jsonl --floor floor.jsonl", "UNDECIDED: 1 sequences of tokens");
}

static json_t *load(const char *line, int code) {
    struct said said = helper_run(code, line);
    json_t *value = json_loads(said.out, 0, NULL);
    assert_non_null(value);
    helper_free(&said);
    return value;
}

/* Old weights that are surer than the trainer's: d leans as at another temperature, but the
 * youngest weights do not. */
static void verify_surer_weights_are_no_temperature(void **state) {
    (void)state;
    for (int all = 0; all < 2; all++) {
        FILE *out = fopen("surer.jsonl", "w");
        assert_non_null(out);
        for (unsigned s = 0; s < 60; s++) {
            for (int side = 0; side < 2; side++) {
                fprintf(out, side == 0 ? "{\"rollout_logprobs\": [" : "], \"trainer_logprobs\": [");
                for (unsigned t = 0; t < 40; t++) {
                    const double p = -0.05 - 4.0 * draw(s, t, 1);
                    const double lean = 0.1 * (p + 1.2); /* surprise less entropy */
                    const double noise = 0.002 * (draw(s, t, 2) - 0.5);
                    const double x = p + (all || s % 4 != 0 ? lean : 0.0) + noise;
                    fprintf(out, "%s%.9g", t == 0 ? "" : ", ", side == 1 ? p : x < 0.0 ? x : -1e-6);
                }
            }
            fprintf(out, "], \"weight_version\": %u, \"trainer_version\": 2}\n",
                    s % 4 != 0 ? 1u : 2u);
        }
        assert_int_equal(fclose(out), 0);
        json_t *judged = load("rollout surer.jsonl --json", 1);
        const json_t *causes = json_object_get(judged, "causes");
        static const char *const expected[2][2] = {{"no", "named"}, {"named", "open"}};
        for (size_t i = 0; i < 2; i++) /* temperature, stale */
            assert_string_equal(
                json_string_value(json_object_get(json_array_get(causes, 4 + i), "state")),
                expected[all][i]);
        json_decref(judged);
    }
}

static const char *state_of(const json_t *judged, size_t cause, const char **out_words) {
    const json_t *const found = json_array_get(json_object_get(judged, "causes"), cause);
    *out_words = json_string_value(json_object_get(found, "text"));
    return json_string_value(json_object_get(found, "state"));
}

/* Writes rows in which the engine's log-prob is `print` of the trainer's. */
static void write_printed(const char *path, const char *print, int nudge) {
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    for (unsigned s = 0; s < 40; s++) {
        for (int side = 0; side < 2; side++) {
            fputs(side == 0 ? "{\"rollout_logprobs\": [" : "], \"trainer_logprobs\": [", out);
            for (unsigned t = 0; t < 40; t++) {
                const double p = -0.05 - 4.0 * draw(s, t, 1);
                char text[32];
                snprintf(text, sizeof text, side == 0 ? print : "%.9g",
                         side == 0 && nudge && t == 7 ? p + 0.01 : p);
                fprintf(out, "%s%s", t == 0 ? "" : ", ", text);
            }
        }
        fputs("]}\n", out);
    }
    assert_int_equal(fclose(out), 0);
}

/* A side that is printed to three decimals rounds its log-probs, and computes as the other does. */
static void verify_decimals_are_named(void **state) {
    (void)state;
    static const struct {
        const char *print;
        int nudge, decimals; /* 0: not named so */
    } cases[] = {{"%.2f", 0, 2}, {"%.3f", 0, 3}, {"%.5f", 0, 5}, {"%.6f", 0, 0}, {"%.3f", 1, 0}};
    write_printed("equal.jsonl", "%.9g", 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char wanted[80];
        const char *words;
        write_printed("printed.jsonl", cases[i].print, cases[i].nudge);
        struct said said = helper_run(1, "rollout printed.jsonl --floor equal.jsonl");
        words = said.out;
        snprintf(wanted, sizeof wanted, "every log-prob of the engine has %d decimals",
                 cases[i].decimals);
        assert_int_equal(strstr(words, cases[i].decimals != 0 ? wanted : "decimals,") != NULL,
                         cases[i].decimals != 0);
        helper_free(&said);
    }
}

/* A filter (top-p) leaves out unlikely tokens, which the file has at one number, and makes the
 * others likelier: that leans as a temperature does, and is none. */
static void verify_a_filter_is_no_temperature(void **state) {
    (void)state;
    for (int filters = 0; filters < 2; filters++) {
        FILE *out = fopen("filtered.jsonl", "w");
        assert_non_null(out);
        for (unsigned s = 0; s < 60; s++) {
            for (int side = 0; side < 2; side++) {
                fputs(side == 0 ? "{\"rollout_logprobs\": [" : "], \"trainer_logprobs\": [", out);
                for (unsigned t = 0; t < 40; t++) {
                    const double p = -0.2 - 4.0 * draw(s, t, 1);
                    const double x = p < -3.8 ? (filters ? -30.0 : p - 1.0) : p + 0.1;
                    fprintf(out, "%s%.9g", t == 0 ? "" : ", ", side == 1 ? p : x);
                }
            }
            fputs("]}\n", out);
        }
        assert_int_equal(fclose(out), 0);
        json_t *judged = load("rollout filtered.jsonl --json", filters ? 3 : 1);
        const char *words;
        assert_string_equal(state_of(judged, 4, &words), filters ? "open" : "named");
        if (filters)
            assert_non_null(strstr(words, "of the engine have one log-prob, -30: a filter"));
        json_decref(judged);
    }
}

/* A penalty on repeats makes what a sequence has already had less likely, and what it has not had
 * likelier. The likeliest tokens are mostly of the first kind and the least likely ones of the
 * second, but between them both stand at every log-prob, which no temperature does. */
static void verify_a_penalty_is_no_temperature(void **state) {
    (void)state;
    for (int penalty = 0; penalty < 2; penalty++) {
        FILE *out = fopen("penalty.jsonl", "w");
        assert_non_null(out);
        for (unsigned s = 0; s < 60; s++) {
            for (int side = 0; side < 2; side++) {
                fputs(side == 0 ? "{\"rollout_logprobs\": [" : "], \"trainer_logprobs\": [", out);
                for (unsigned t = 0; t < 40; t++) {
                    const double u = draw(s, t, 1), p = -0.2 - 4.0 * u;
                    const int between = penalty && u > 0.34 && u < 0.66;
                    const int had = between ? draw(s, t, 2) < 0.5 : u < 0.5;
                    fprintf(out, "%s%.9g", t == 0 ? "" : ", ",
                            side == 1 ? p : p - (had ? 0.1 : -0.1));
                }
            }
            fputs("]}\n", out);
        }
        assert_int_equal(fclose(out), 0);
        json_t *judged = load("rollout penalty.jsonl --json", penalty ? 3 : 1);
        const char *words;
        assert_string_equal(state_of(judged, 4, &words), penalty ? "open" : "named");
        if (penalty) assert_non_null(strstr(words, "a penalty on repeats in the log-probs"));
        json_decref(judged);
    }
}

/* Where middle-aged weights are further apart than the oldest, that is not called growth; and a
 * rank that is sure but little is not called unclear. */
static void verify_words_fit_their_numbers(void **state) {
    (void)state;
    static const double moved[2][3] = {{0.0, 0.2, 0.4}, {0.0, 0.4, 0.2}};
    static const char *const words[] = {"mean |d| grows with the age of the weights: 0, 0.2, 0.4,",
                                        "mean |d| is larger for older weights, though not in the "
                                        "order of their age: 0, 0.4, 0.2,"};
    for (int i = 0; i < 2; i++) {
        FILE *out = fopen("ages.jsonl", "w");
        assert_non_null(out);
        for (unsigned s = 0; s < 90; s++) {
            fputs("{\"rollout_logprobs\": [", out);
            for (unsigned t = 0; t < 40; t++)
                fprintf(out, "%s%.9g", t == 0 ? "" : ", ", -1.0 - draw(s, t, 1));
            fputs("], \"trainer_logprobs\": [", out);
            for (unsigned t = 0; t < 40; t++) /* of either sign, token by token */
                fprintf(out, "%s%.9g", t == 0 ? "" : ", ",
                        -1.0 - draw(s, t, 1) +
                            (draw(s, t, 2) < 0.5 ? -1.0 : 1.0) * moved[i][s % 3]);
            fprintf(out, "], \"weight_version\": %u, \"trainer_version\": 9}\n", 9 - s % 3);
        }
        assert_int_equal(fclose(out), 0);
        require_said(1, "rollout ages.jsonl", words[i]);
    }
    for (int side = 0; side < 2; side++) { /* noise of one size, and of 1.14 times it */
        FILE *out = fopen(side == 0 ? "floor.jsonl" : "more.jsonl", "w");
        assert_non_null(out);
        for (unsigned s = 0; s < 200; s++) {
            fputs("{\"rollout_logprobs\": [", out);
            for (unsigned t = 0; t < 64; t++)
                fprintf(out, "%s%.9g", t == 0 ? "" : ", ", -1.0 - draw(s, t, 1));
            fputs("], \"trainer_logprobs\": [", out);
            for (unsigned t = 0; t < 64; t++)
                fprintf(out, "%s%.9g", t == 0 ? "" : ", ",
                        -1.0 - draw(s, t, 1) +
                            (side == 0 ? 0.01 : 0.0114) * (draw(s, t, 2 + (unsigned)side) - 0.5));
            fputs("]}\n", out);
        }
        assert_int_equal(fclose(out), 0);
    }
    require_said(3, "rollout more.jsonl --floor floor.jsonl",
                 "standard deviations), but by so little that another text may do as much");
}

/* ---- two causes at once ---- */

#define WORDS 24

/* Writes rows of a softmax over drawn logits: the trainer at temperature 1, the engine at `heat`,
 * with noise in its logits, and moved by one position where `moved`. */
static void write_heated(const char *path, unsigned salt, double heat, int moved) {
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    for (unsigned s = 0; s < ROWS; s++) {
        double logp[2][TOKENS];
        for (unsigned t = 0; t < TOKENS; t++) {
            double logit[2][WORDS], sum[2] = {0.0, 0.0}, below = 0.0;
            const double sharp = 1.0 + 6.0 * draw(s, t, salt + 2);
            for (unsigned w = 0; w < WORDS; w++) {
                logit[1][w] = sharp * draw(s, t * WORDS + w, salt);
                logit[0][w] = (logit[1][w] + 2e-3 * draw(s, t * WORDS + w, salt + 1)) / heat;
                for (int side = 0; side < 2; side++)
                    sum[side] += exp(logit[side][w]);
            }
            unsigned word = 0;
            for (double u = draw(s, t, salt + 3); word + 1 < WORDS; word++) {
                below += exp(logit[1][word]) / sum[1];
                if (u < below) break;
            }
            for (int side = 0; side < 2; side++)
                logp[side][t] = logit[side][word] - log(sum[side]);
        }
        for (int side = 0; side < 2; side++) {
            fprintf(out, side == 0 ? "{\"rollout_logprobs\": [" : "], \"trainer_logprobs\": [");
            for (unsigned t = 0; t < TOKENS; t++)
                fprintf(out, "%s%.9g", t == 0 ? "" : ", ",
                        logp[side][side == 0 && moved ? (t + 1) % TOKENS : t]);
        }
        fprintf(out, "], \"weight_version\": %u, \"trainer_version\": 9}\n", 8 + s % 2);
    }
    assert_int_equal(fclose(out), 0);
}

/* A temperature moves every log-prob, so what else differs is smaller than what it leaves: that is
 * said, and what is not looked for beside it is open and not absent. Positions that are moved as
 * well show on a line, or in what is left when they are moved back. */
static void verify_what_a_named_cause_leaves(void **state) {
    (void)state;
    write_heated("floor.jsonl", 20, 1.0, 0);
    write_heated("heat.jsonl", 30, 0.8, 0);
    write_heated("moved.jsonl", 30, 1.0, 1);
    write_heated("both.jsonl", 30, 0.8, 1);
    write_heated("hot.jsonl", 30, 0.3, 1);
    static const char *const heat[] = {
        "cause    temperature: d leans one way", "d less its mean at each log-prob is still ",
        "open     stale: mean |d| does not grow with the age of the weights, but a temperature ",
        "open     precision: is what is left where nothing larger is named"};
    for (size_t i = 0; i < sizeof heat / sizeof heat[0]; i++)
        require_said(1, "rollout heat.jsonl --floor floor.jsonl", heat[i]);
    require_said(1, "rollout moved.jsonl --floor floor.jsonl", "positions are moved by 1 [");
    require_said(1, "rollout moved.jsonl --floor floor.jsonl",
                 "open     stale: needs tokens that what is named leaves to compare");
    require_said(1, "rollout both.jsonl --floor floor.jsonl",
                 "floors apart, so something else differs, too [");
    require_said(1, "rollout hot.jsonl --floor floor.jsonl",
                 "cause    shifted: in 40 of 40 sequences the trainer's log-prob of the token 1 "
                 "behind is on a line over the engine's");
    require_said(1, "rollout hot.jsonl --floor floor.jsonl",
                 "open     temperature: needs positions that are moved back");
}

/* ---- forms ---- */

static const struct {
    const char *text, *needle;
} forms[] = {
    /* verl */
    {"{\"rollout_log_probs\": [-1, -2], \"old_log_probs\": [-1, -2], \"responses\": [5, 6], "
     "\"response_mask\": [1, 1], \"step\": 3}\n",
     "2 tokens; engine rollout_log_probs, trainer old_log_probs"},
    /* TRL, padded on the right */
    {"{\"sampling_per_token_logps\": [-1, -2, 0.0], \"old_per_token_logps\": [-1, -2, -9], "
     "\"completion_ids\": [5, 6, 0], \"completion_mask\": [1, 1, 0]}\n",
     "2 tokens; engine sampling_per_token_logps, trainer old_per_token_logps"},
    /* NeMo-RL writes one sequence as a batch of one */
    {"{\"generation_logprobs\": [[0.0, -1, -2]], \"prev_logprobs\": [[0.0, -1, -2]], "
     "\"token_ids\": "
     "[[4, 5, 6]], \"token_loss_mask\": [[0, 1, 1]], \"rewards\": [1.0], \"idx\": 0}\n",
     "2 tokens; engine generation_logprobs, trainer prev_logprobs"},
    /* slime: ids with the prompt in front */
    {"{\"tokens\": [1, 2, 3, 5, 6], \"rollout_log_probs\": [-1, -2], \"log_probs\": [-1, -2], "
     "\"loss_mask\": [1, 1], \"weight_versions\": [\"7\"], \"index\": 4}\n",
     "2 tokens; engine rollout_log_probs, trainer log_probs"},
    /* SGLang's meta_info; the first prompt token has no log-prob */
    {"{\"meta_info\": {\"id\": \"x\", \"output_token_logprobs\": [[null, 4, null], [-1, 5, \"a\"], "
     "[-2, 6, null]], \"weight_version\": \"default\"}, \"trainer_logprobs\": [-3, -1, -2]}\n",
     "2 tokens; engine output_token_logprobs, trainer trainer_logprobs"},
    /* OpenAI's completions, as vLLM serves them: the tokens are texts */
    {"{\"choices\": [{\"index\": 0, \"logprobs\": {\"token_logprobs\": [-1, -2], \"tokens\": "
     "[\" a\", \"5\"], \"text_offset\": [0, 2]}}], \"trainer_logprobs\": [-1, -2]}\n",
     "2 tokens; engine token_logprobs, trainer trainer_logprobs\n"},
    /* NeMo-RL counts no token of a sample whose mask is 0, and slime none of a removed one */
    {"{\"generation_logprobs\": [[-1, -2]], \"prev_logprobs\": [[-1, -2]], \"token_loss_mask\": "
     "[[1, 1]], \"sample_loss_mask\": [1.0]}\n"
     "{\"generation_logprobs\": [[-1, -2, -3]], \"prev_logprobs\": [[-4, -5, -6]], "
     "\"token_loss_mask\": [[1, 1, 1]], \"sample_loss_mask\": [0.0]}\n",
     "1 sequences, 2 tokens; "},
    {"{\"rollout_log_probs\": [-1, -2], \"log_probs\": [-1, -2], \"loss_mask\": null, "
     "\"remove_sample\": false}\n"
     "{\"rollout_log_probs\": [-1, -2, -3], \"log_probs\": [-4], \"remove_sample\": true}\n",
     "1 sequences, 2 tokens; "},
    /* NaN and Infinity as Python writes them */
    {"{\"rollout_logprobs\": [-1, NaN, -2], \"trainer_logprobs\": [-1, -2, -2]}\n",
     "1 tokens without a number on a side"},
    /* a byte order mark and CRLF */
    {"\xef\xbb\xbf{\"rollout_logprobs\": [-1, -2], \"trainer_logprobs\": [-1, -2]}\r\n\r\n",
     "1 sequences, 2 tokens"},
    /* a name that says nothing, in front of another one's list and behind it */
    {"{\"rollout_logprobs\": null, \"rollout_log_probs\": [-1, -2], \"trainer_logprobs\": [-1, "
     "-2]}\n"
     "{\"rollout_log_probs\": [-1, -2, -3], \"rollout_logprobs\": null, \"log_probs\": [-1, -2, "
     "-3], "
     "\"trainer_logprobs\": null}\n",
     "2 sequences, 5 tokens; "},
    /* a byte more than needed: unknown members are passed over */
    {"{\"x\": {\"rollout_logprobs\": 5}, \"rollout_logprobs\": [-1], \"trainer_logprobs\": [-1], "
     "\"text\": \"\\u00e9\"}\n",
     "1 tokens; engine rollout_logprobs"},
};

/* ---- rewards ---- */

static double number(const json_t *object, const char *name) {
    return json_number_value(json_object_get(object, name));
}

#define FAIR 5 /* pairs of a sequence with reward 1 and one with 0 */

/* Writes pairs of sequences whose rewards are `one` and `zero`, JSON of their own; those of `one`
 * are half as likely for the trainer, the others as likely as for the engine. */
static void write_rewarded(const char *path, const char *one, const char *zero) {
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    for (int i = 0; i < FAIR; i++)
        fprintf(out,
                "{\"rollout_logprobs\": [-1, -2], \"trainer_logprobs\": [%.17g, -2], %s}\n"
                "{\"rollout_logprobs\": [-1, -2], \"trainer_logprobs\": [-1, -2], %s}\n",
                -1.0 - log(2.0), one, zero);
    assert_int_equal(fclose(out), 0);
}

/* Of weights 1/2 and 1 on rewards 1 and 0 the means are 1/2 and 1/3, each sequence moves their
 * difference by 1/18 of its share, and (0.75 n)^2 / (0.625 n n) is 0.9. */
static void require_fair(const char *options, const char *name) {
    static const struct {
        const char *name;
        double value;
    } wanted[] = {
        {"sequences", 10.0},         {"without", 0.0},           {"mean", 0.5},
        {"trainer_mean", 1.0 / 3.0}, {"difference", -1.0 / 6.0}, {"difference_error", 1.0 / 54.0},
        {"ess_sequences", 0.9},      {"correlation", -1.0}};
    char line[160];
    snprintf(line, sizeof line, "rollout rows.jsonl --json%s", options);
    json_t *judged = load(line, 3);
    const json_t *reward = json_object_get(judged, "reward");
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        if (!(fabs(number(reward, wanted[i].name) - wanted[i].value) < 1e-14))
            fail_msg("%s, %s: expected %g, got %.17g", name, wanted[i].name, wanted[i].value,
                     number(reward, wanted[i].name));
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(judged, "fields"), "reward")), name);
    json_decref(judged);
}

/* A reward is a number, a truth value, a number in a text, or a list that counts as its sum; and of
 * several names the first that has one. */
static void verify_rewards_as_the_trainer_would_sample(void **state) {
    static const struct {
        const char *one, *zero, *options, *name;
    } cases[] = {
        {"\"reward\": 1", "\"reward\": 0", "", "reward"},
        {"\"reward\": true", "\"reward\": false", "", "reward"},
        {"\"reward\": \"1\"", "\"reward\": \"0.0\"", "", "reward"},
        {"\"rewards\": [1.0]", "\"rewards\": [[0.0]]", "", "rewards"},
        {"\"token_level_scores\": [0, 0, 0.75, 0.25]", "\"token_level_scores\": [1, -1]", "",
         "token_level_scores"},
        {"\"rm_scores\": [7], \"score\": 1", "\"score\": 0, \"rm_scores\": [7]", "", "score"},
        /* NeMo-RL's rewards before its filter, slime's less the mean of their group */
        {"\"rewards\": 0, \"filtered_rewards\": 1", "\"filtered_rewards\": 0, \"rewards\": 1", "",
         "filtered_rewards"},
        {"\"rewards\": 0, \"raw_reward\": 1", "\"raw_reward\": 0, \"rewards\": 1", "",
         "raw_reward"},
        /* what is no number leaves its place to the next name */
        {"\"reward\": {\"a\": 7}, \"score\": 1", "\"score\": 0, \"reward\": \"bad\"", "", "score"},
        {"\"score\": 1, \"reward\": [7, {\"logprob\": 7}]",
         "\"score\": 0, \"reward\": [[7], [7, [7]]]", "", "score"},
        {"\"mine\": [0, 1], \"reward\": 7", "\"reward\": 7, \"mine\": 0", " --field reward=mine",
         "mine"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_rewarded("rows.jsonl", cases[i].one, cases[i].zero);
        require_fair(cases[i].options, cases[i].name);
    }
    write_rewarded("rows.jsonl", "\"reward\": 1", "\"reward\": 0");
    require_said(3, "rollout rows.jsonl",
                 "\n  reward   mean 0.5 as sampled, 0.3333 as the trainer would sample (-0.167, "
                 "standard error 0.019)\n           reward of 10 sequences, effective sample size "
                 "0.9; correlation with mean d -1.00\n");
    require_said(3, "rollout rows.jsonl --slices", "\n    1 and above                    10 ");
}

/* Equal rewards have one mean whatever the weights are, and no correlation. */
static void verify_equal_rewards(void **state) {
    (void)state;
    write_rewarded("rows.jsonl", "\"reward\": 0.1", "\"reward\": 0.1");
    json_t *judged = load("rollout rows.jsonl --json", 3);
    const json_t *reward = json_object_get(judged, "reward");
    assert_true(number(reward, "mean") == 0.1 && number(reward, "trainer_mean") == 0.1);
    assert_true(number(reward, "difference") == 0.0 && number(reward, "difference_error") == 0.0);
    assert_true(json_is_null(json_object_get(reward, "correlation")));
    json_decref(judged);
}

/* Seven sequences are too few for a correlation, and one for an error. */
static void verify_few_rewards(void **state) {
    (void)state;
    for (int count = 1; count <= 8; count++) {
        FILE *out = fopen("rows.jsonl", "w");
        assert_non_null(out);
        for (int i = 0; i < 9; i++) {
            fprintf(out, "{\"rollout_logprobs\": [-1], \"trainer_logprobs\": [-1.%d]", i);
            fprintf(out, i < count ? ", \"reward\": %d}\n" : "}\n", i % 2);
        }
        assert_int_equal(fclose(out), 0);
        json_t *judged = load("rollout rows.jsonl --json", 3);
        const json_t *reward = json_object_get(judged, "reward");
        assert_int_equal(number(reward, "sequences"), count);
        assert_int_equal(number(reward, "without"), 9 - count);
        assert_int_equal(json_is_null(json_object_get(reward, "difference_error")), count < 2);
        assert_int_equal(json_is_null(json_object_get(reward, "correlation")), count < 8);
        json_decref(judged);
    }
}

static const char sides[] = "\"rollout_logprobs\": [-1, -2], \"trainer_logprobs\": [-1, -2]";

/* What is missing, null, not finite or no number is no reward, and is counted. */
static void verify_what_is_no_reward(void **state) {
    static const struct {
        const char *value; /* NULL: the name is not there */
        int odd;
    } cases[] = {{NULL, 0},         {"null", 0},        {"NaN", 0},
                 {"Infinity", 0},   {"[]", 0},          {"[1, null]", 0},
                 {"{\"a\": 1}", 1}, {"\"good\"", 1},    {"[1, \"good\"]", 1},
                 {"[[1], [0]]", 1}, {"[{\"a\": 1}]", 1}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[600], line[200] = "";
        if (cases[i].value != NULL) snprintf(line, sizeof line, ", \"reward\": %s", cases[i].value);
        /* the last one counts with none of its tokens, and its reward neither */
        snprintf(text, sizeof text,
                 "{%s, \"reward\": -2.5}\n{%s%s}\n{%s}\n{%s, \"reward\": 9, "
                 "\"remove_sample\": true}\n",
                 sides, sides, line, sides, sides);
        helper_write("rows.jsonl", text);
        json_t *judged = load("rollout rows.jsonl --json", 0);
        const json_t *reward = json_object_get(judged, "reward");
        const json_t *slices = json_object_get(judged, "by_reward");
        assert_int_equal(number(reward, "sequences"), 1);
        assert_int_equal(number(reward, "without"), 2);
        assert_true(number(reward, "mean") == -2.5);
        assert_int_equal(number(json_object_get(judged, "counts"), "odd_rewards"), cases[i].odd);
        assert_int_equal(json_array_size(slices), 1);
        assert_string_equal(json_string_value(json_object_get(json_array_get(slices, 0), "reward")),
                            "below 0");
        json_decref(judged);
        require_said(0, "rollout rows.jsonl",
                     cases[i].odd ? "; 2 sequences have none, of which 1 have an object, a text"
                                  : "; 2 sequences have none\n");
        snprintf(text, sizeof text, "{%s%s}\n", sides, line);
        helper_write("rows.jsonl", text);
        judged = load("rollout rows.jsonl --json", 0);
        assert_true(json_is_null(json_object_get(judged, "reward")));
        json_decref(judged);
        struct said said = helper_run(0, "rollout rows.jsonl");
        assert_int_equal(strstr(said.out, "\n  reward   is no number: 1 have an object") != NULL,
                         cases[i].odd);
        assert_int_equal(strstr(said.out, "\n  reward ") != NULL, cases[i].odd);
        helper_free(&said);
    }
}

/* Under a name that --field gives they are errors. */
static void verify_wrong_rewards_are_told(void **state) {
    static const struct {
        const char *value, *needle;
    } cases[] = {
        {"{\"a\": 1}",
         "rows.jsonl:2: mine[0]: expected a number, or a list with one for each token, "
         "got an object; write the one that counts as a member of its own"},
        {"\"good\"", "rows.jsonl:2: mine[0]: expected a number, or a list with one for each token, "
                     "got \"good\""},
        {"[1, \"good\"]", "rows.jsonl:2: mine[1]: expected a number, or a list with one for each "
                          "token, got \"good\""},
        {"[[1], [0]]",
         "rows.jsonl:2: mine[1]: expected a number, or a list with one for each token, "
         "got a list"},
        {"[1, {\"logprob\": 1}]",
         "rows.jsonl:2: mine[1]: expected a number, or a list with one for "
         "each token, got an object"},
    };
    char text[400];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(text, sizeof text, "{%s, \"mine\": 1}\n{%s, \"mine\": %s}\n", sides, sides,
                 cases[i].value);
        helper_write("rows.jsonl", text);
        helper_refuse(2, "rollout rows.jsonl --field reward=mine", cases[i].needle);
    }
    snprintf(text, sizeof text, "{%s, \"reward\": 1}\n", sides);
    helper_write("rows.jsonl", text);
    helper_refuse(2, "rollout rows.jsonl --field reward=mine",
                  "rows.jsonl: expected rewards named \"mine\", as --field says, got none");
    /* a floor needs none */
    helper_write("floor.jsonl", "{\"rollout_logprobs\": [-1], \"trainer_logprobs\": [-1]}\n");
    require_said(0, "rollout rows.jsonl --floor floor.jsonl --field reward=reward",
                 "\n  reward   mean 1 as sampled");
}

/* Rewards of two files may stand in either, and change nothing else. */
static void verify_rewards_of_two_files(void **state) {
    static const char *const rows[] = {
        "{\"id\": 1, \"logprobs\": [-1, -2]}\n{\"id\": 2, \"logprobs\": [-1, -2]}\n",
        "{\"id\": 2, \"logprobs\": [-1, -2], \"reward\": 4}\n"
        "{\"id\": 1, \"logprobs\": [-1, -2], \"reward\": {\"a\": 1}}\n"};
    (void)state;
    for (int swapped = 0; swapped < 2; swapped++) {
        helper_write("engine.jsonl", rows[swapped]);
        helper_write("trainer.jsonl", rows[1 - swapped]);
        require_said(0, "rollout engine.jsonl trainer.jsonl",
                     "\n  reward   mean 4 as sampled, 4 as the trainer would sample (+0)\n");
        require_said(0, "rollout engine.jsonl trainer.jsonl",
                     "; 1 sequences have none, of which 1 have an object, a text");
    }
}

/* Where --field names it, nothing takes the place of the one that says nothing. */
static void verify_named_field_of_null(void **state) {
    (void)state;
    helper_write("rows.jsonl", "{\"mine\": null, \"rollout_logprobs\": [-1, -2], "
                               "\"trainer_logprobs\": [-1, -2]}\n");
    struct said said = helper_run(2, "rollout rows.jsonl --field rollout=mine");
    assert_non_null(strstr(said.err, "rows.jsonl:1: expected log-probs of the engine"));
    helper_free(&said);
}

static void verify_forms_of_others(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        helper_write("rows.jsonl", forms[i].text);
        require_said(0, "rollout rows.jsonl", forms[i].needle);
    }
}

/* vLLM writes the ids of OpenAI's tokens where it is asked to (return_tokens_as_token_ids); as
 * texts they are no ids. */
static void verify_tokens_of_openai(void **state) {
    (void)state;
    static const char *const tokens[] = {"\" a\", \"5\"", "\"token_id:6\", \"token_id:5\""};
    for (size_t i = 0; i < 2; i++) {
        char text[256];
        snprintf(
            text, sizeof text,
            "{\"choices\": [{\"logprobs\": {\"token_logprobs\": [-1, -2], \"tokens\": [%s]}}], "
            "\"trainer_logprobs\": [-1, -2], \"trainer_token_ids\": [6, 7]}\n",
            tokens[i]);
        helper_write("rows.jsonl", text);
        json_t *judged = load("rollout rows.jsonl --json", i == 0 ? 0 : 1);
        const json_t *fields = json_object_get(judged, "fields");
        assert_int_equal(json_object_get(fields, "tokens") != NULL, i == 1);
        const json_t *cause = json_array_get(json_object_get(judged, "causes"), 0);
        assert_string_equal(json_string_value(json_object_get(cause, "cause")), "tokenisation");
        assert_string_equal(json_string_value(json_object_get(cause, "state")),
                            i == 0 ? "open" : "named");
        json_decref(judged);
    }
}

/* Texts take nothing from the ids of a name that comes after theirs, in whatever order the two
 * stand; and a list of ids that comes first is that of the sequence, as before. */
static void verify_texts_leave_the_ids_of_another_name(void **state) {
    static const struct {
        const char *ids, *name, *state;
    } cases[] = {
        {"\"input_ids\": [6, 5], \"tokens\": [\"w6\", \"w5\"]", "input_ids", "named"},
        {"\"tokens\": [\"w6\", \"w5\"], \"input_ids\": [6, 5]", "input_ids", "named"},
        {"\"input_ids\": [6, 7], \"tokens\": [\"w6\", \"w7\"]", "input_ids", "no"},
        {"\"input_ids\": [6, 7], \"tokens\": [\"token_id:6\", \"w5\"]", "input_ids", "no"},
        {"\"input_ids\": [6, 7], \"tokens\": [\"token_id:6\", \"token_id:5\"]", "tokens", "named"},
        {"\"input_ids\": [1, 6, 7], \"tokens\": [6, 5]", "tokens", "named"},
        {"\"tokens\": [\"w6\", \"w5\"]", NULL, "open"},
        {"\"x\": 1", NULL, "open"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "{\"rollout_logprobs\": [-1, -2], \"trainer_logprobs\": [-1, -2], "
                 "\"trainer_token_ids\": [6, 7], %s}\n",
                 cases[i].ids);
        helper_write("rows.jsonl", text);
        json_t *judged =
            load("rollout rows.jsonl --json", strcmp(cases[i].state, "named") == 0 ? 1 : 0);
        const json_t *name = json_object_get(json_object_get(judged, "fields"), "tokens");
        const json_t *cause = json_array_get(json_object_get(judged, "causes"), 0);
        if (cases[i].name == NULL)
            assert_null(name);
        else
            assert_string_equal(json_string_value(name), cases[i].name);
        assert_string_equal(json_string_value(json_object_get(cause, "cause")), "tokenisation");
        assert_string_equal(json_string_value(json_object_get(cause, "state")), cases[i].state);
        json_decref(judged);
    }
}

static void verify_two_files_are_joined(void **state) {
    (void)state;
    helper_write("engine.jsonl", "{\"id\": \"a\", \"logprobs\": [-1, -2]}\n"
                                 "{\"id\": \"b\", \"logprobs\": [-3, -4]}\n"
                                 "{\"id\": \"c\", \"logprobs\": [-5]}\n");
    helper_write("trainer.jsonl", "{\"id\": \"d\", \"logprobs\": [-9]}\n"
                                  "{\"id\": \"b\", \"logprobs\": [-3, -4]}\n"
                                  "{\"id\": \"a\", \"logprobs\": [-1, -2]}\n");
    require_said(0, "rollout engine.jsonl trainer.jsonl", "2 sequences, 4 tokens");
    require_said(0, "rollout engine.jsonl trainer.jsonl",
                 "left out 1 sequences that only the first file has, 1 sequences that only the "
                 "second file has");
    helper_write("twice.jsonl", "{\"id\": \"a\", \"logprobs\": [-1, -2]}\n"
                                "{\"id\": \"a\", \"logprobs\": [-1, -2]}\n");
    helper_refuse(2, "rollout engine.jsonl twice.jsonl",
                  "twice.jsonl:2: id \"a\" is there more than once, so it joins nothing");
    helper_refuse(2, "rollout twice.jsonl trainer.jsonl",
                  "twice.jsonl:2: id \"a\" is there more than once");
    helper_write("nameless.jsonl", "{\"logprobs\": [-1, -2]}\n");
    helper_refuse(2, "rollout engine.jsonl nameless.jsonl", "nameless.jsonl:1: expected an id");
}

/* ---- the trace and its page ---- */

static void verify_trace_and_page(void **state) {
    (void)state;
    write_rows("a<i>.jsonl", 4, 0.01, 0);
    write_rows("floor.jsonl", 3, 0.01, 0);
    require_said(0, "rollout a<i>.jsonl --floor floor.jsonl -o page.h5", "WITHIN THE FLOOR");
    struct said page = helper_run(0, "report page.h5 -o -");
    static const char *const needles[] = {"a&lt;i&gt;.jsonl: WITHIN THE FLOOR",
                                          ">Sizes of d<",
                                          ">log2 |d|<",
                                          "By probability of the token",
                                          "By position",
                                          "By tokens of the sequence",
                                          "token_mult_prob_error"};
    static const char *const rewarded[] = {
        "By reward of the sequence",
        "<tr><th scope=\"row\" class=\"r\">0</th><td class=\"r\">10</td>",
        "<tr><th scope=\"row\" class=\"r\">1 and above</th><td class=\"r\">10</td>"};
    for (size_t i = 0; i < sizeof needles / sizeof needles[0]; i++)
        if (strstr(page.out, needles[i]) == NULL) fail_msg("the page lacks %s", needles[i]);
    assert_null(strstr(page.out, "<i>"));
    assert_null(strstr(page.out, rewarded[0]));
    helper_free(&page);
    write_rewarded("rewarded.jsonl", "\"reward\": 1", "\"reward\": 0");
    require_said(3, "rollout rewarded.jsonl -o rewarded.h5", "\n  reward   mean 0.5 ");
    page = helper_run(0, "report rewarded.h5 -o -");
    for (size_t i = 0; i < sizeof rewarded / sizeof rewarded[0]; i++)
        if (strstr(page.out, rewarded[i]) == NULL) fail_msg("the page lacks %s", rewarded[i]);
    helper_free(&page);
    helper_refuse(2, "rollout a<i>.jsonl -o page.h5", "page.h5: exists");
    helper_refuse(2, "rollout a<i>.jsonl -o a<i>.jsonl --overwrite", "a<i>.jsonl");
    helper_refuse(2, "rollout a<i>.jsonl --floor floor.jsonl -o floor.jsonl --overwrite",
                  "floor.jsonl");
    helper_refuse(2, "rollout a<i>.jsonl -o no/such.h5", "no/such.h5");
    helper_refuse(2, "attribute page.h5", "not written by run");
}

/* ---- what parity writes ---- */

/* parity measures exp|d| of its own generation by code of its own; of each row that it sampled the
 * file must give the same mean, and the refit that was left out must show as old weights. */
static void corroborate_parity(void **state) {
    (void)state;
    helper_scenario("pair.yaml", "", "optimizer: {lr: 1e-2}", "numerics: {compute: bf16}");
    json_t *parity = load("parity pair.yaml --logprobs --stale --lengths 16,24 --sizes 8 --repeats "
                          "2 --rollouts own.jsonl --quiet --json",
                          1);
    json_t *rollout = load("rollout own.jsonl --json", 1);
    const json_t *rows = json_object_get(json_object_get(parity, "logprobs"), "rows");
    const json_t *batches = json_object_get(rollout, "by_batch");
    size_t sampled = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (strcmp(json_string_value(json_object_get(row, "method")), "sampled") != 0) continue;
        const json_t *batch = json_array_get(batches, sampled++);
        assert_int_equal(number(batch, "batch"), i);
        assert_int_equal(number(batch, "tokens"), number(row, "tokens"));
        assert_true(fabs(number(batch, "mean_exp_abs_d") - number(row, "error")) < 1e-12);
        assert_true(fabs(number(batch, "mean_d") + number(row, "mean_d")) < 1e-12);
    }
    assert_int_equal(sampled, json_array_size(batches));
    assert_true(sampled == 8);
    const json_t *stale = json_array_get(json_object_get(rollout, "causes"), 5);
    assert_string_equal(json_string_value(json_object_get(stale, "cause")), "stale");
    assert_string_equal(json_string_value(json_object_get(stale, "state")), "named");
    json_decref(parity);
    json_decref(rollout);
    helper_refuse(2, "parity pair.yaml --logits --rollouts rows2.jsonl",
                  "parity: --rollouts: acts on --logprobs alone, which is not measured");
    helper_refuse(2, "parity pair.yaml --logprobs --rollouts own.jsonl", "own.jsonl: exists");
    helper_refuse(2, "parity pair.yaml --logprobs --rollouts pair.yaml --overwrite", "pair.yaml");
    helper_refuse(2, "parity pair.yaml --logprobs --rollouts x.json -o x.json", "x.json");
    assert_int_equal(helper_exists("x.json"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_wrong_files_are_told),
        cmocka_unit_test(verify_statuses),
        cmocka_unit_test(verify_commits_of_others),
        cmocka_unit_test(verify_single_tokens_that_are_foretold),
        cmocka_unit_test(verify_far_tokens_of_few_sequences),
        cmocka_unit_test(verify_signs_in_turn_are_no_rounding),
        cmocka_unit_test(verify_far_tokens_are_not_within),
        cmocka_unit_test(verify_lengths_alone_are_no_difference),
        cmocka_unit_test(verify_words_of_infinite_and_of_no_ratio),
        cmocka_unit_test(verify_few_sequences_decide_nothing),
        cmocka_unit_test(verify_surer_weights_are_no_temperature),
        cmocka_unit_test(verify_decimals_are_named),
        cmocka_unit_test(verify_a_filter_is_no_temperature),
        cmocka_unit_test(verify_a_penalty_is_no_temperature),
        cmocka_unit_test(verify_words_fit_their_numbers),
        cmocka_unit_test(verify_what_a_named_cause_leaves),
        cmocka_unit_test(verify_rewards_as_the_trainer_would_sample),
        cmocka_unit_test(verify_equal_rewards),
        cmocka_unit_test(verify_few_rewards),
        cmocka_unit_test(verify_what_is_no_reward),
        cmocka_unit_test(verify_wrong_rewards_are_told),
        cmocka_unit_test(verify_rewards_of_two_files),
        cmocka_unit_test(verify_named_field_of_null),
        cmocka_unit_test(verify_forms_of_others),
        cmocka_unit_test(verify_tokens_of_openai),
        cmocka_unit_test(verify_texts_leave_the_ids_of_another_name),
        cmocka_unit_test(verify_two_files_are_joined),
        cmocka_unit_test(verify_trace_and_page),
        cmocka_unit_test(corroborate_parity),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}
