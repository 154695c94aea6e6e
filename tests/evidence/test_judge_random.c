/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Verdicts of random traces: arms that part at some update or never, floors of every kind, one to
 * four causes in games of few values, whole and with mixtures that were not trained, and records in
 * which LRs, losses, norms, steps, clipping or skips differ; with a perturbed run, evaluations,
 * replicas that part, flipped bits and orders of entry that were drawn. What no floor was measured
 * for is never outside it, arms that nothing sets apart are never different, and the exit status
 * follows from the verdict.
 *
 * tests/golden/evidence/judge_random.txt holds how many of the traces have which verdict, and for
 * each one number made of all words and of all JSON (FNV-1a). With TWINSTEP_SHOW=TRACE one of them
 * is printed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "evidence/judge_json.h"
#include "tests/base/helper_draws.h"
#include "tests/evidence/helper_image.h"

#define GOLDEN TWINSTEP_SOURCE_DIR "/tests/golden/evidence/judge_random.txt"
#define NONE ((double)NAN)

enum { TRACES = 5000, UPDATES = 6, RUNS = 16, CAUSES = 4, ANSWERS = 96 };

struct drawn {
    struct helper_image of;
    struct draws draws;
    uint64_t updates, parts; /* 0: the arms never part */
    double far;
    int measured; /* a floor of some kind */
    int edited;   /* some record differs */
    double equal[2], distance[RUNS * RUNS], pairs[200], loss[RUNS], way[1 << CAUSES];
    double value[1 << CAUSES], first[1 << CAUSES], closure[3], closure_distance[RUNS], mark[1];
    double way_at[1 << CAUSES], loss_at[1 << CAUSES], probe[1 << CAUSES];
    double eval_start[2 * EVAL_COLUMNS], eval_end[8 * EVAL_COLUMNS], eval_line[4];
    double order[24], sampled[64], masks[64];
    uint8_t rank_digests[UPDATES][4][RECORD_RANK_DIGESTS][RECORD_DIGEST_BYTES];
    int64_t ranks[UPDATES][4][RECORD_RANKS];
    char configurations[2][400];
    double meant[2 * UPDATES], lost[2 * UPDATES], response[UPDATES];
    char counts[2][8], step[8];
};

static uint32_t pick(struct drawn *of, uint32_t most) {
    return draws_pick(&of->draws, most);
}

static void draw_floor(struct drawn *d) {
    static const double levels[] = {0.0, 0.5, 1.0, 1.0, 1.25, 3.0};
    struct helper_image *const of = &d->of;
    /* Most of the time goes into the power of noisy floors, so these are few and small. */
    const uint32_t drawn = pick(d, 200);
    const uint32_t kind = drawn < 30 ? 0 : drawn < 190 ? 1 : drawn < 195 ? 2 : drawn < 198 ? 3 : 4;
    d->measured = kind > 0;
    if (pick(d, 4) == 0) helper_image_set(of, "floor", "alpha", "0.05");
    if (kind == 0) {
        helper_image_set(of, "floor", "kind", "none");
    } else if (kind == 1) {
        static const double repeats[] = {1.0, 1.0, 1.0, 1.0, 0.0, NONE};
        d->equal[0] = repeats[pick(d, COUNT_OF(repeats))];
        d->equal[1] = repeats[pick(d, COUNT_OF(repeats))];
        helper_image_put(of, "floor/equal", 2, 1, d->equal);
    } else if (kind == 2) {
        const uint32_t count = pick(d, 2) == 0 ? 99 + pick(d, 100) : 20 + pick(d, 90);
        for (uint32_t i = 0; i < count; i++)
            d->pairs[i] = levels[pick(d, COUNT_OF(levels))];
        d->distance[1] = d->distance[2] = d->far;
        helper_image_set(of, "floor", "kind", "file");
        helper_image_put(of, "floor/distance", 2, 2, d->distance);
        helper_image_put(of, "floor/pairs", count, 1, d->pairs);
        if (pick(d, 4) == 0) helper_image_set(of, "floor", "elsewhere", "driver 1 there, 2 here");
    } else {
        const uint32_t first = 3 + pick(d, kind == 3 ? 3 : 8),
                       second = kind == 3 ? 3 + pick(d, 2) : 1;
        const uint32_t m = first + second;
        for (uint32_t i = 0; i < m; i++)
            for (uint32_t j = 0; j < i; j++)
                d->distance[i * m + j] = d->distance[j * m + i] =
                    (i < first) == (j < first) ? levels[2 + pick(d, 3)] : d->far + 0.5;
        for (uint32_t i = 0; i < m; i++)
            d->loss[i] = 2.0 + 0.125 * (double)pick(d, 4) + (i >= first ? 0.25 * d->far : 0.0);
        snprintf(d->counts[0], sizeof d->counts[0], "%u", first);
        snprintf(d->counts[1], sizeof d->counts[1], "%u", second);
        helper_image_set(of, "floor", "kind", kind == 3 ? "permutation" : "rank");
        helper_image_set(of, "floor", "runs_baseline", d->counts[0]);
        helper_image_set(of, "floor", "runs_test", d->counts[1]);
        helper_image_put(of, "floor/distance", m, m, d->distance);
        if (pick(d, 2) == 0) helper_image_put(of, "floor/loss", m, 1, d->loss);
        for (uint32_t i = 0; i < second; i++)
            d->closure_distance[i] = levels[1 + pick(d, 5)];
        if (pick(d, 2) == 0)
            helper_image_put(of, "attribution/closure_distance", second, 1, d->closure_distance);
    }
}

static void draw_causes(struct drawn *d) {
    static const char *const names[] = {"schedule", "optimizer", "dtype", "model"};
    static const double shares[] = {0.0, 0.0, 0.25, 0.5, 1.0, 1.0, 0.0625, -0.5, 1.5};
    struct helper_image *const of = &d->of;
    const uint32_t causes = pick(d, CAUSES + 1), last = (1u << causes) - 1;
    const uint32_t additive = pick(d, 3), unknown = pick(d, 6);
    double alone[CAUSES] = {0};
    helper_image_causes(of, names, causes);
    if (causes == 0 || d->parts == 0) return;
    for (uint32_t c = 0; c < causes; c++)
        alone[c] = shares[pick(d, COUNT_OF(shares))];
    for (uint32_t s = 1; s < last; s++) {
        for (uint32_t c = 0; c < causes; c++)
            d->way[s] += (s >> c & 1u) != 0 ? alone[c] : 0.0;
        if (additive == 0) d->way[s] = shares[pick(d, COUNT_OF(shares))];
        d->way[s] *= d->far;
        d->value[s] = fabs(d->way[s]) + 0.0625 * (double)pick(d, 3);
        d->first[s] = d->way[s] > 0.0 || d->way[s] < 0.0 ? (double)(d->parts + pick(d, 2)) : 0.0;
        if (unknown == 0 && pick(d, 4) == 0) d->way[s] = d->value[s] = NONE;
    }
    d->way[last] = d->value[last] = d->far;
    d->first[last] = (double)d->parts;
    for (uint32_t s = 0; s <= last; s++) {
        d->way_at[s] = 0.5 * d->way[s];
        d->loss_at[s] = 0.25 * (s % 3 == 0 ? -d->way[s] : d->way[s]);
        d->probe[s] = fabs(d->way[s]) * (s % 2 == 0 ? 0.5 : 1.0);
    }
    helper_image_put(of, "attribution/value", last + 1, 1, d->value);
    if (pick(d, 6) > 0) helper_image_put(of, "attribution/way", last + 1, 1, d->way);
    if (pick(d, 3) == 0) helper_image_put(of, "attribution/first_update", last + 1, 1, d->first);
    if (pick(d, 4) == 0) helper_image_put(of, "attribution/probe_kl", last + 1, 1, d->probe);
    d->closure[0] = pick(d, 4) > 0;
    d->closure[1] = (double)(1 + pick(d, (uint32_t)d->updates));
    d->closure[2] = (double)pick(d, 3);
    if (pick(d, 4) > 0) helper_image_put(of, "attribution/closure", 3, 1, d->closure);
    if (pick(d, 3) == 0) {
        d->mark[0] = (double)(1 + pick(d, (uint32_t)d->updates));
        helper_image_put(of, "attribution/mark", 1, 1, d->mark);
        helper_image_put(of, "attribution/way_at", 1, last + 1, d->way_at);
        helper_image_put(of, "attribution/loss_at", 1, last + 1, d->loss_at);
    }
}

/* Lets one thing that is recorded of the second arm be another one, at one update or from it on. */
static void edit(struct drawn *d) {
    const uint64_t from = pick(d, (uint32_t)d->updates), whole = pick(d, 2), kind = pick(d, 18);
    for (uint64_t i = from; i < (whole != 0 ? d->updates : from + 1); i++) {
        struct record *const record = &d->of.runs[1].records[i];
        switch (kind) {
        case 0:
            record->groups[0][GROUP_LR_APPLIED] = 0.002;
            record->digests[DIGEST_LR][0] = 1;
            break;
        case 1:
            record->groups[0][GROUP_LR_LOGGED] = 0.002;
            break;
        case 2:
            record->groups[0][GROUP_LR_APPLIED] = 0.0;
            break;
        case 3:
            record->reals[REAL_LOSS] = 2.25;
            break;
        case 4:
            record->reals[REAL_GRAD_NORM] = 0.75;
            break;
        case 5:
            record->reals[REAL_CLIP_COEF] = 0.5;
            break;
        case 6:
            record->integers[INTEGER_SKIPPED] = 1;
            break;
        case 7:
            record->reals[REAL_LOSS] = NONE;
            break;
        case 8:
            record->groups[0][GROUP_WD_APPLIED] = 0.1;
            break;
        case 9:
            record->tensor_digests[0][TENSOR_DIGEST_GRADIENT][0] = 1;
            break;
        case 10:
            record->digests[DIGEST_ROOT][0] = 1;
            break;
        case 11:
            record->reals[REAL_UPDATE_SURVIVAL] = 0.25 * (double)(1 + i % 4);
            break;
        case 12:
            record->reals[REAL_GRAD_TAKEN] = i % 2 == 0 ? 0.25 : 0.5 + 0x1p-9;
            break;
        case 13:
            record->integers[INTEGER_OPTIMIZER_T] += 1 - (int64_t)(i % 2);
            break;
        case 14:
            record->groups[0][GROUP_LR_READBACK] = 0.001;
            record->groups[0][GROUP_LR_ERROR] = 1e-6;
            break;
        case 15:
            record->reals[REAL_GRAD_NORM] = 0.0;
            break;
        case 16:
            record->integers[INTEGER_TOKENS] = 7;
            break;
        default:
            record->reals[REAL_UPDATE_NORM] = 0.25;
        }
    }
    d->edited = 1;
}

static void expect(struct drawn *d) {
    static const char *const verdicts[] = {"identical", "outside-floor", "untestable",
                                           "inside-floor"};
    static const char *const words[] = {"cause", "several", "together"};
    struct helper_image *const of = &d->of;
    const uint32_t kind = pick(d, 6);
    snprintf(d->step, sizeof d->step, "%u", 1 + pick(d, UPDATES));
    if (kind == 0) helper_image_set(of, "verdict", "expect_first_step", d->step);
    if (kind == 1) helper_image_set(of, "verdict", "expect_verdict", verdicts[pick(d, 4)]);
    if (kind == 2) helper_image_set(of, "verdict", "expect_word", words[pick(d, 3)]);
    if (kind == 3) helper_image_set(of, "verdict", "expect_cause", "schedule");
    if (kind == 4) helper_image_set(of, "verdict", "expect_order", "schedule, optimizer");
    if (kind == 5) helper_image_set(of, "verdict", "expect_first_tensor", "w");
}

/* A run one unit in the last place off, whose distance stays, grows by a power or by a rate. */
static void draw_perturbed(struct drawn *d) {
    struct helper_image *const of = &d->of;
    const uint32_t kind = pick(d, 3);
    double distance = 0.125 * (double)(1 + pick(d, 4));
    helper_image_run(of, "twin", "left", 0);
    of->image.pair_count = 2;
    for (uint64_t i = 0; i < d->updates; i++) {
        double *const reals = of->pairs[1].records[i].reals;
        reals[PAIR_DISTANCE] = kind == 1 ? distance * (double)(i + 1) : distance;
        reals[PAIR_DISTANCE_SHARE] = reals[PAIR_DISTANCE] / (double)(i + 1);
        if (kind == 2) distance *= 2.0;
    }
}

/* Measures of the arms, of up to two repeats and of the perturbed run on fixed rows. */
static void draw_eval(struct drawn *d) {
    static const double steps[] = {0.0, 0.0, 0.25, -0.25, 0.5, 1.0};
    struct helper_image *const of = &d->of;
    const char *const set = pick(d, 3) == 0 ? "eval/training" : "eval/held_out";
    static const char *const ids[] = {"floor-1", "floor-2"};
    static char paths[2][32];
    for (uint32_t i = pick(d, 3); i > 0; i--)
        helper_image_run(of, ids[i - 1], pick(d, 2) == 0 ? "left" : "right", 0);
    for (size_t i = 0; i < 2 * EVAL_COLUMNS; i++)
        d->eval_start[i] = 2.0;
    for (size_t i = 0; i < of->image.run_count * EVAL_COLUMNS; i++)
        d->eval_end[i] = pick(d, 40) == 0 ? NONE : 2.0 + steps[pick(d, COUNT_OF(steps))];
    for (size_t i = 0; i < COUNT_OF(d->eval_line); i++)
        d->eval_line[i] = pick(d, 3) == 0 ? NONE : (double)(i + 1);
    helper_image_set(of, "eval", "rows", "rows.jsonl");
    if (pick(d, 4) == 0) helper_image_set(of, "eval", "seen", "1 row is trained on, too");
    if (pick(d, 4) == 0) helper_image_set(of, "eval", "as_baseline", "data.max_len");
    snprintf(paths[0], sizeof paths[0], "%s_start", set);
    snprintf(paths[1], sizeof paths[1], "%s_line", set);
    helper_image_put(of, paths[0], 2, EVAL_COLUMNS, d->eval_start);
    helper_image_put(of, set, of->image.run_count, EVAL_COLUMNS, d->eval_end);
    helper_image_put(of, paths[1], COUNT_OF(d->eval_line), 1, d->eval_line);
}

static void draw_replicas(struct drawn *d) {
    struct trace_run *const run = &d->of.runs[pick(d, 2)];
    const uint64_t from = pick(d, (uint32_t)d->updates);
    for (uint64_t i = 0; i < d->updates; i++) {
        for (size_t rank = 0; rank < 4; rank++)
            d->ranks[i][rank][RANK_FIRST_TENSOR] =
                i >= from && rank > 0 && pick(d, 3) == 0 ? (int64_t)pick(d, 3) : -1;
        run->records[i].ranks = d->ranks[i];
        run->records[i].rank_digests = d->rank_digests[i];
    }
    run->plan.shape.ranks = 2 + pick(d, 3);
}

static void draw_flip(struct drawn *d) {
    static const char *const layers[] = {"none", "0", "3"};
    for (int arm = (int)pick(d, 2); arm < 2; arm++) {
        const char *const optimizer = pick(d, 2) == 0 ? "sgd" : "adamw";
        const char *const task = pick(d, 2) == 0 ? "dpo" : "sft";
        const char *const layer = layers[pick(d, COUNT_OF(layers))];
        const uint32_t update = pick(d, (uint32_t)d->updates + 2);
        snprintf(d->configurations[arm], sizeof d->configurations[arm],
                 "optimizer.name: %s\ntask: %s\nfault.update: %u\nfault.phase: forward\n"
                 "fault.micro: 1\nfault.layer: %s\nfault.op: linear\nfault.tensor: \"w\"\n"
                 "fault.element: '7'\nfault.bit: 30\n",
                 optimizer, task, update, layer);
        d->of.runs[arm].plan.configuration = d->configurations[arm];
    }
}

/* Six causes, of which four orders of entry were drawn, each beside its reverse. */
static void draw_orders(struct drawn *d) {
    static const char *const names[] = {"schedule", "optimizer", "dtype", "model", "init", "rng"};
    static const double shares[] = {0.0, 0.0, 0.5, 0.25, 1.0, -0.25};
    struct helper_image *const of = &d->of;
    double alone[6];
    for (uint32_t c = 0; c < 6; c++)
        alone[c] = shares[pick(d, COUNT_OF(shares))];
    for (uint32_t mask = 0; mask < 64; mask++) {
        d->masks[mask] = (double)mask;
        for (uint32_t c = 0; c < 6; c++)
            d->sampled[mask] += (mask >> c & 1u) != 0 ? d->far * alone[c] : 0.0;
        if ((mask & 3u) == 3u) d->sampled[mask] += 0.25 * (double)pick(d, 2);
    }
    d->sampled[63] = d->far;
    for (size_t o = 0; o < 4; o += 2) {
        for (size_t i = 0; i < 6; i++)
            d->order[o * 6 + i] = (double)i;
        for (size_t i = 5; i > 0; i--) {
            const size_t k = pick(d, (uint32_t)i + 1);
            const double kept = d->order[o * 6 + i];
            d->order[o * 6 + i] = d->order[o * 6 + k];
            d->order[o * 6 + k] = kept;
        }
        for (size_t i = 0; i < 6; i++)
            d->order[(o + 1) * 6 + i] = d->order[o * 6 + 5 - i];
    }
    helper_image_causes(of, names, 6);
    helper_image_put(of, "attribution/value", 64, 1, d->sampled);
    helper_image_put(of, "attribution/way", 64, 1, d->sampled);
    helper_image_put(of, "attribution/mask", 64, 1, d->masks);
    helper_image_put(of, "attribution/order", 4, 6, d->order);
}

static void draw_more(struct drawn *d) {
    static const char replayed[] = "left: as before\nright: update 2 differs";
    if (pick(d, 3) == 0) draw_perturbed(d);
    if (pick(d, 4) == 0) draw_eval(d);
    if (pick(d, 8) == 0) draw_replicas(d);
    if (pick(d, 8) == 0) draw_flip(d);
    if (pick(d, 16) == 0 && d->parts > 0) draw_orders(d);
    if (pick(d, 16) == 0)
        d->of.texts[d->of.image.text_count++] =
            (struct trace_text){REPLAY_CHECK_PATH, replayed, sizeof replayed - 1};
}

static void draw_trace(uint32_t number, struct drawn *d) {
    static const double distances[] = {0.25, 1.0, 2.0, 4.0};
    memset(d, 0, sizeof *d);
    d->draws = (struct draws){.key = UINT64_C(0x7ace), .number = number};
    d->updates = 1 + pick(d, UPDATES);
    helper_image_open(&d->of, d->updates);
    const double each = distances[pick(d, COUNT_OF(distances))];
    if (pick(d, 4) > 0) d->parts = 1 + pick(d, (uint32_t)d->updates);
    if (d->parts > 0) helper_image_part(&d->of, d->parts, each);
    d->far = d->parts > 0 ? each * (double)(d->updates + 1 - d->parts) : 0.0;
    draw_floor(d);
    draw_causes(d);
    for (uint32_t i = pick(d, 3); i > 0; i--)
        edit(d);
    if (pick(d, 3) == 0) expect(d);
    if (pick(d, 8) == 0) helper_image_set(&d->of, "verdict", "hazards", "right: a\nright: b");
    if (pick(d, 6) == 0) {
        for (uint64_t i = 0; i < 2 * d->updates; i++) {
            d->meant[i] = 100.0;
            d->lost[i] = (double)(pick(d, 3) * 40);
        }
        helper_image_put(&d->of, STEPS_MEANT_PATH, 2, d->updates, d->meant);
        helper_image_put(&d->of, STEPS_LOST_PATH, 2, d->updates, d->lost);
    }
    if (pick(d, 4) == 0) {
        for (uint64_t i = 0; i < d->updates; i++)
            d->response[i] = 1e-7 * (double)(i + 1 + pick(d, 2));
        helper_image_put(&d->of, RESPONSE_PATH, d->updates, 1, d->response);
    }
    if (pick(d, 12) == 0) d->of.image.complete = 0;
    draw_more(d);
}

static void hold_rules(const struct drawn *d) {
    const struct judgement *const out = &d->of.judgement;
    const int exit = judgement_exit(out);
    if (!d->measured && out->verdict != VERDICT_IDENTICAL && out->verdict != VERDICT_UNTESTABLE)
        fail_msg("trace %u has no floor: %s", d->draws.number, d->of.words);
    if (d->parts == 0 && !d->edited && exit == 1 && out->expectation != EXPECT_MISSED)
        fail_msg("trace %u has equal arms: %s", d->draws.number, d->of.words);
    if (out->verdict == VERDICT_IDENTICAL && d->parts > 0)
        fail_msg("trace %u parts: %s", d->draws.number, d->of.words);
}

struct answer {
    char text[64];
    size_t count;
    uint64_t hash; /* of all that is said of the traces with this answer */
};

static void count_answer(struct answer *answers, const char *text, const char *words,
                         const char *json) {
    for (size_t i = 0; i < ANSWERS; i++) {
        struct answer *const answer = &answers[i];
        if (answer->count > 0 && strcmp(answer->text, text) != 0) continue;
        if (answer->count++ == 0) answer->hash = DRAWS_HASH;
        snprintf(answer->text, sizeof answer->text, "%s", text);
        answer->hash = draws_hash(answer->hash, words, strlen(words));
        answer->hash = draws_hash(answer->hash, json, strlen(json));
        return;
    }
    fail_msg("more than %d answers", ANSWERS);
}

static void judge_one(struct drawn *d, struct answer *answers) {
    const char *const shown = getenv("TWINSTEP_SHOW");
    const enum status status = judge(&d->of.image, &d->of.arena, &d->of.judgement);
    if (status != STATUS_OK) {
        count_answer(answers, "refused", status_text(), "");
        return;
    }
    char text[64], *dumped = NULL;
    size_t size = 0;
    FILE *const stream = open_memstream(&d->of.words, &size);
    assert_non_null(stream);
    judgement_print(&d->of.judgement, stream);
    assert_int_equal(fclose(stream), 0);
    hold_rules(d);
    snprintf(text, sizeof text, "%s, exit %d, %s", verdict_name(d->of.judgement.verdict),
             judgement_exit(&d->of.judgement), expectation_name(d->of.judgement.expectation));
    FILE *const json = open_memstream(&dumped, &size);
    assert_non_null(json);
    assert_int_equal(judgement_print_json(&d->of.judgement, json), STATUS_OK);
    assert_int_equal(fclose(json), 0);
    count_answer(answers, text, d->of.words, dumped);
    if (shown != NULL && d->draws.number == (uint32_t)strtoul(shown, NULL, 10))
        print_message("%s%s\n", d->of.words, dumped);
    free(dumped);
}

/* Compares a text with the committed one, or writes it where TWINSTEP_WRITE_GOLDEN says. */
static void hold_text(const char *text) {
    const char *const write = getenv("TWINSTEP_WRITE_GOLDEN");
    static char committed[8192];
    FILE *const file = fopen(write != NULL ? write : GOLDEN, write != NULL ? "w" : "r");
    if (file == NULL) fail_msg("cannot open %s", write != NULL ? write : GOLDEN);
    if (write != NULL) {
        fputs(text, file);
    } else {
        committed[fread(committed, 1, sizeof committed - 1, file)] = '\0';
        assert_string_equal(text, committed);
    }
    assert_int_equal(fclose(file), 0);
}

static void validate_random_traces(void **state) {
    (void)state;
    static struct drawn drawn;
    static struct answer answers[ANSWERS];
    char *text = NULL;
    size_t size = 0;
    memset(answers, 0, sizeof answers);
    for (uint32_t number = 0; number < TRACES; number++) {
        draw_trace(number, &drawn);
        judge_one(&drawn, answers);
        helper_image_close(&drawn.of);
    }
    FILE *const out = open_memstream(&text, &size);
    assert_non_null(out);
    for (size_t i = 0; i < ANSWERS && answers[i].count > 0; i++)
        fprintf(out, "%5zu %s: %016" PRIx64 "\n", answers[i].count, answers[i].text,
                answers[i].hash);
    assert_int_equal(fclose(out), 0);
    hold_text(text);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_random_traces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
