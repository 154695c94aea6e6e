/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What the digests of two traces say of a restart, by the whole text: of traces made by hand, in
 * which everything goes on as before, one thing is changed at a time, in the first update and in
 * later ones. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/macro.h"
#define runs_unlike given_unlike
#define trajectory_pair_at given_pair_at
#define trajectory_same_lrs given_same_lrs
#define trace_row given_row
#include "forensics/trajectory_digest.c" /* for the parts, which no other file asks for */

enum { FIRST = 3, UPDATES = 6, TENSORS = 3, STREAMS = 3, GROUPS = 2, RESTART = 5 };

static const char *const stream_names[STREAMS] = {"dropout", "data", "init"};
static const char *const tensor_names[TENSORS] = {"a", "b", "c"};

struct side {
    struct trace_run run;
    struct trace_foreign foreign;
    struct record records[UPDATES];
    int64_t places[UPDATES][STREAMS][RECORD_PLACES];
    double groups[UPDATES][GROUPS][RECORD_GROUPS];
    double tensors[UPDATES][TENSORS][RECORD_TENSORS];
    uint8_t digests[UPDATES][TENSORS][RECORD_TENSOR_DIGESTS][RECORD_DIGEST_BYTES];
    const char *initial[TENSORS];
    char hex[TENSORS][2 * RECORD_DIGEST_BYTES + 1];
};

static struct side sides[2];

/* A row may be used until two others of its run were asked for: what is kept longer is another row
 * by then. Those of strangers are all in memory. */
static struct {
    struct record rows[2];
    uint64_t index[2];
    int used; /* the one that was asked for last */
} kept[2];

const struct record *given_row(const struct trace_run *run, uint64_t index) {
    const size_t s = run == &sides[0].run ? 0 : 1;
    assert_true(run == &sides[s].run && index < run->updates);
    if (run->plan.foreign != NULL) return &run->records[index];
    if (kept[s].index[kept[s].used] != index) kept[s].used = !kept[s].used;
    kept[s].rows[kept[s].used] = run->records[index];
    kept[s].index[kept[s].used] = index;
    return &kept[s].rows[kept[s].used];
}
static struct trajectory_side logs[2];
static struct trajectory_judging judging;
static struct trajectory out;
static struct arena arena;
static struct trajectory_pairing pair;
static int unlike, same_lrs, same_later, has_lr;

int given_unlike(const struct trace_run *a, const struct trace_run *b,
                 char out_text[COMPARABLE_WHY]) {
    assert_true(a == &sides[0].run && b == &sides[1].run);
    out_text[0] = '\0';
    return unlike;
}

const struct trajectory_pairing *given_pair_at(const struct trajectory_column *column,
                                               uint64_t update) {
    assert_ptr_equal(column, &judging.lr);
    assert_int_equal(update, out.restart + 1);
    return has_lr ? &pair : NULL;
}

int given_same_lrs(const struct trajectory_judging *of, uint64_t update) {
    assert_ptr_equal(of, &judging);
    return update == out.restart + 1 ? same_lrs : same_later;
}

/* BEFORE has updates 3 to 8, and AFTER 6 to 8, which are the same: the restart was behind 5. */
static void open_sides(void) {
    arena_close(&arena);
    memset(sides, 0, sizeof sides);
    memset(&judging, 0, sizeof judging);
    memset(&out, 0, sizeof out);
    for (size_t s = 0; s < 2; s++) {
        struct side *const side = &sides[s];
        side->run.records = side->records;
        side->run.updates = s == 0 ? UPDATES : UPDATES - 3;
        side->run.plan.configuration = "";
        side->run.plan.groups = "000";
        side->run.plan.streams = stream_names;
        side->run.plan.tensors = tensor_names;
        side->run.plan.shape =
            (struct record_shape){.streams = STREAMS, .tensors = TENSORS, .groups = GROUPS};
        side->foreign.digest = "leaf 1";
        for (size_t i = 0; i < UPDATES; i++) {
            struct record *const record = &side->records[i];
            record->step = FIRST + i + (s == 0 ? 0 : 3);
            record->places = side->places[i];
            record->groups = side->groups[i];
            record->tensors = side->tensors[i];
            record->tensor_digests = side->digests[i];
            record->reals[REAL_LOSS] = 1.0 / (double)record->step;
            for (size_t d = 0; d < RECORD_DIGESTS; d++) /* one byte alone, be it the last */
                record->digests[d][RECORD_DIGEST_BYTES - 1] = (uint8_t)(16 * d + record->step);
            for (size_t p = 0; p < STREAMS; p++)
                side->places[i][p][0] = (int64_t)(100 * p + record->step);
            for (size_t t = 0; t < TENSORS; t++) {
                side->tensors[i][t][TENSOR_UPDATE_NORM] = 1.0;
                for (size_t b = 0; b < RECORD_DIGEST_BYTES; b++)
                    side->digests[i][t][TENSOR_DIGEST_PARAMETER][b] =
                        (uint8_t)(37 * b + 11 * t + record->step);
            }
        }
        logs[s].run = &side->run;
    }
    for (size_t t = 0; t < TENSORS; t++) { /* what AFTER began with is what BEFORE had behind 5 */
        sides[1].initial[t] = sides[1].hex[t];
        for (size_t b = 0; b < RECORD_DIGEST_BYTES; b++)
            snprintf(&sides[1].hex[t][2 * b], 3, "%02x",
                     (unsigned)sides[0].digests[2][t][TENSOR_DIGEST_PARAMETER][b]);
    }
    for (int part = 0; part < TRAJECTORY_PARTS; part++)
        out.items[part] =
            (struct trajectory_item){.state = TRAJECTORY_UNTOLD, .text = "", .bug = NULL};
    out.restart = RESTART;
    judging.before = &logs[0];
    judging.after = &logs[1];
    judging.arena = &arena;
    judging.out = &out;
    unlike = 0;
    same_lrs = same_later = has_lr = 1;
}

static void judge(void) {
    assert_int_equal(trajectory_judge_digests(&judging), STATUS_OK);
}

static void require(enum trajectory_part part, enum trajectory_state state, const char *text) {
    const struct trajectory_item *const item = &out.items[part];
    if (item->state != state || strcmp(item->text, text) != 0)
        fail_msg("%s: %d, \"%s\"", trajectory_part_names[part], (int)item->state, item->text);
}

#define BATCHES "the batches of 3 updates after the restart are those of before"
#define STREAMS_STAND "its streams stand before update 6 where they stood"
#define LOSS_IS "the loss of update 6 is that of before, to the last bit"
#define STEP_IS "weights, moments and count after update 6 are those of before"

static void validate_what_goes_on(void **state) {
    (void)state;
    open_sides();
    judge();
    require(TRAJECTORY_SCHEDULER, TRAJECTORY_UNTOLD, "");
    require(TRAJECTORY_DATA, TRAJECTORY_RESTORED, BATCHES);
    require(TRAJECTORY_GENERATORS, TRAJECTORY_RESTORED, STREAMS_STAND);
    require(TRAJECTORY_WEIGHTS, TRAJECTORY_RESTORED, LOSS_IS);
    require(TRAJECTORY_OPTIMIZER, TRAJECTORY_RESTORED, STEP_IS);
    assert_int_equal(out.differs, 0);
    /* Nothing is judged without both runs, without the restart, or where a first update lacks. */
    for (int how = 0; how < 5; how++) {
        open_sides();
        if (how < 2) logs[how].run = NULL;
        if (how == 2) out.restart = TRAJECTORY_UNKNOWN;
        if (how == 3) sides[0].run.updates = 3;
        if (how == 4) sides[1].run.updates = 0;
        judge();
        for (int part = 0; part < TRAJECTORY_PARTS; part++)
            require((enum trajectory_part)part, TRAJECTORY_UNTOLD, "");
    }
}

static void validate_rows(void **state) {
    (void)state;
    static const uint64_t steps[UPDATES] = {2, 3, 5, 9, 14, 15};
    open_sides();
    for (size_t i = 0; i < UPDATES; i++)
        sides[0].records[i].step = steps[i];
    for (uint64_t count = 0; count <= UPDATES; count++)
        for (uint64_t update = 0; update < 18; update++) {
            uint64_t expected = 0;
            sides[0].run.updates = count;
            for (uint64_t i = 0; i < count; i++)
                if (steps[i] == update) expected = update;
            const struct record *const found = row_of(&sides[0].run, update);
            assert_int_equal(found == NULL ? 0 : found->step, expected);
        }
    /* A digest is recorded where one of its bytes is not 0. */
    struct record record = {0}, other = {0};
    assert_int_equal(trajectory_equal_digest(&record, &other, DIGEST_BATCH), -1);
    for (size_t i = 0; i < RECORD_DIGEST_BYTES; i++) {
        memset(&record, 0, sizeof record);
        record.digests[DIGEST_WEIGHTS][i] = 1;
        assert_int_equal(trajectory_equal_digest(&record, &record, DIGEST_BATCH), -1);
        memset(&record, 0, sizeof record);
        memset(&other, 0, sizeof other);
        record.digests[DIGEST_BATCH][i] = 1;
        assert_int_equal(trajectory_equal_digest(&record, &record, DIGEST_BATCH), 1);
        assert_int_equal(trajectory_equal_digest(&record, &other, DIGEST_BATCH), -1);
        assert_int_equal(trajectory_equal_digest(&other, &record, DIGEST_BATCH), -1);
        other.digests[DIGEST_BATCH][i] = 2;
        assert_int_equal(trajectory_equal_digest(&record, &other, DIGEST_BATCH), 0);
        other.digests[DIGEST_BATCH][i] = 1;
        assert_int_equal(trajectory_equal_digest(&record, &other, DIGEST_BATCH), 1);
    }
}

static uint8_t *digest_of(size_t side, uint64_t step, int which) {
    return sides[side].records[step - FIRST - (side == 0 ? 0 : 3)].digests[which];
}

static void validate_batches(void **state) {
    (void)state;
    open_sides();
    digest_of(1, 6, DIGEST_BATCH)[0] = 1;
    judge();
    require(TRAJECTORY_DATA, TRAJECTORY_LOST, "the batch of update 6 is another one");
    for (uint64_t step = 7; step < 9; step++) {
        open_sides();
        digest_of(1, step, DIGEST_BATCH)[0] = 1;
        judge();
        require(TRAJECTORY_DATA, TRAJECTORY_LOST,
                step == 7 ? "the batch of update 7 is another one, those between the restart and "
                            "it are not"
                          : "the batch of update 8 is another one, those between the restart and "
                            "it are not");
    }
    open_sides();
    sides[1].run.updates = 1;
    judge();
    require(TRAJECTORY_DATA, TRAJECTORY_RESTORED,
            "the batch of one update after the restart is that of before");
    open_sides();
    sides[1].run.updates = 2;
    judge();
    require(TRAJECTORY_DATA, TRAJECTORY_RESTORED,
            "the batches of 2 updates after the restart are those of before");
    open_sides(); /* what BEFORE has no row of is passed over */
    sides[0].run.updates = 5;
    judge();
    require(TRAJECTORY_DATA, TRAJECTORY_RESTORED,
            "the batches of 2 updates after the restart are those of before");
    open_sides();
    memset(digest_of(1, 7, DIGEST_BATCH), 0, RECORD_DIGEST_BYTES);
    judge();
    require(TRAJECTORY_DATA, TRAJECTORY_UNTOLD, "");
    open_sides(); /* AFTER has rows of before the restart, too, which say nothing of it */
    sides[1].run = sides[0].run;
    sides[1].run.records = sides[1].records;
    for (size_t i = 0; i < UPDATES; i++)
        sides[1].records[i] = sides[0].records[i];
    sides[1].records[1].digests[DIGEST_BATCH][0] = 1;
    judge();
    require(TRAJECTORY_DATA, TRAJECTORY_RESTORED, BATCHES);
    sides[1].records[3].digests[DIGEST_BATCH][0] = 1;
    judge();
    require(TRAJECTORY_DATA, TRAJECTORY_LOST, "the batch of update 6 is another one");
}

static void validate_streams(void **state) {
    (void)state;
    for (size_t p = 0; p < STREAMS; p++) {
        open_sides();
        sides[1].places[0][p][RECORD_PLACES - 1] = 7;
        judge();
        if (p == 0)
            require(TRAJECTORY_GENERATORS, TRAJECTORY_LOST,
                    "stream dropout stands elsewhere before update 6");
        if (p == 1) /* the loader's own stream is part of the data */
            require(TRAJECTORY_GENERATORS, TRAJECTORY_RESTORED, STREAMS_STAND);
        if (p == 2)
            require(TRAJECTORY_GENERATORS, TRAJECTORY_LOST,
                    "stream init stands elsewhere before update 6");
    }
    for (uint32_t streams = 0; streams < 2; streams++) {
        static const char *const data[] = {"data"};
        open_sides();
        for (size_t s = 0; s < 2; s++) {
            sides[s].run.plan.shape.streams = streams;
            sides[s].run.plan.streams = data;
        }
        sides[1].places[0][0][0] = 7;
        judge();
        require(TRAJECTORY_GENERATORS, TRAJECTORY_RESTORED, "nothing was drawn for update 6");
    }
    open_sides();
    sides[1].run.plan.shape.streams = 2;
    judge();
    require(TRAJECTORY_GENERATORS, TRAJECTORY_UNTOLD, "");
}

static double *decay_of(size_t side, uint64_t step, size_t group) {
    return &sides[side].groups[step - FIRST - (side == 0 ? 0 : 3)][group][GROUP_WD_APPLIED];
}

static void validate_decays(void **state) {
    (void)state;
    const double none = real_nan_f64();
    for (size_t g = 0; g < GROUPS; g++) {
        open_sides();
        *decay_of(0, 6, g) = 0.25;
        *decay_of(1, 6, g) = 0.5;
        judge();
        require(TRAJECTORY_SCHEDULER, TRAJECTORY_LOST,
                "update 6 decayed weights by 0.5, and by 0.25 before; update 7 as before");
        assert_string_equal(out.items[TRAJECTORY_SCHEDULER].bug, "stale_wd_on_resume");
        *decay_of(1, 7, g) = 0.5;
        out.items[TRAJECTORY_SCHEDULER].state = TRAJECTORY_UNTOLD;
        judge();
        require(TRAJECTORY_SCHEDULER, TRAJECTORY_LOST,
                "update 6 decayed weights by 0.5, and by 0.25 before");
        assert_null(out.items[TRAJECTORY_SCHEDULER].bug);
        for (size_t s = 0; s < 2; s++) { /* what one of them did not record says nothing */
            open_sides();
            *decay_of(0, 6, g) = s == 0 ? none : 0.25;
            *decay_of(1, 6, g) = s == 1 ? none : 0.25;
            judge();
            require(TRAJECTORY_SCHEDULER, TRAJECTORY_UNTOLD, "");
            open_sides();
            *decay_of(1, 6, g) = 0.5;
            sides[s].run.plan.shape.groups = 1; /* a group of one alone neither */
            judge();
            assert_int_equal(out.items[TRAJECTORY_SCHEDULER].state,
                             g == 0 ? TRAJECTORY_LOST : TRAJECTORY_UNTOLD);
        }
    }
    for (size_t s = 0; s < 2; s++) { /* the update behind it is not in both */
        open_sides();
        *decay_of(1, 6, 0) = 0.5;
        sides[s].run.updates = s == 0 ? 4 : 1;
        judge();
        require(TRAJECTORY_SCHEDULER, TRAJECTORY_LOST,
                "update 6 decayed weights by 0.5, and by 0 before");
    }
    open_sides(); /* what the LRs told stays */
    *decay_of(1, 6, 0) = 0.5;
    out.items[TRAJECTORY_SCHEDULER] = (struct trajectory_item){TRAJECTORY_LOST, "LRs", NULL};
    judge();
    require(TRAJECTORY_SCHEDULER, TRAJECTORY_LOST, "LRs");
}

static void validate_losses(void **state) {
    (void)state;
    open_sides();
    sides[1].records[0].reals[REAL_LOSS] = 0.5;
    sides[1].foreign.initial = NULL;
    judge();
    require(TRAJECTORY_WEIGHTS, TRAJECTORY_LOST,
            "update 6 has another loss of the same batch and draws");
    require(TRAJECTORY_OPTIMIZER, TRAJECTORY_UNTOLD, "");
    for (int how = 0; how < 3; how++) { /* another batch or other draws hide it */
        open_sides();
        sides[1].records[0].reals[REAL_LOSS] = 0.5;
        if (how != 1) digest_of(1, 6, DIGEST_BATCH)[0] = 1;
        if (how != 0) sides[1].places[0][0][0] = 7;
        judge();
        for (int part = TRAJECTORY_WEIGHTS; part <= TRAJECTORY_OPTIMIZER; part++)
            require((enum trajectory_part)part, TRAJECTORY_UNTOLD,
                    "update 6 has another batch or other draws, which hide it");
    }
    for (int how = 0; how < 2; how++) { /* one of them not told: no word of weights */
        open_sides();
        sides[1].records[0].reals[REAL_LOSS] = 0.5;
        if (how == 0) memset(digest_of(1, 6, DIGEST_BATCH), 0, RECORD_DIGEST_BYTES);
        if (how == 1) sides[1].run.plan.shape.streams = 2;
        judge();
        require(TRAJECTORY_WEIGHTS, TRAJECTORY_UNTOLD, "");
        require(TRAJECTORY_OPTIMIZER, TRAJECTORY_UNTOLD, "");
    }
    open_sides();
    memset(digest_of(0, 6, DIGEST_WEIGHTS), 0, RECORD_DIGEST_BYTES);
    judge();
    require(TRAJECTORY_WEIGHTS, TRAJECTORY_RESTORED, LOSS_IS);
    require(TRAJECTORY_OPTIMIZER, TRAJECTORY_UNTOLD, "");
}

#define ANOTHER "another step of update 6 from the same loss at the same LR"

static void validate_other_steps(void **state) {
    (void)state;
    /* Another step that the LR, or the decay, may explain. */
    for (int how = 0; how < 3; how++) {
        open_sides();
        digest_of(1, 6, DIGEST_WEIGHTS)[0] = 1;
        if (how == 0) same_lrs = 0;
        if (how == 1) has_lr = 0;
        if (how == 2) *decay_of(1, 6, 1) = 0.5;
        judge();
        require(TRAJECTORY_OPTIMIZER, TRAJECTORY_UNTOLD,
                how < 2 ? "the step of update 6 differs, which the LR may explain"
                        : "the step of update 6 differs, which the weight decay may explain");
    }
    for (uint32_t tensors = 0; tensors < 2; tensors++) {
        open_sides();
        digest_of(1, 6, DIGEST_WEIGHTS)[0] = 1;
        for (size_t s = 0; s < 2; s++)
            sides[s].run.plan.shape.tensors = TENSORS * tensors;
        judge();
        if (tensors == 0)
            require(TRAJECTORY_OPTIMIZER, TRAJECTORY_LOST,
                    ANOTHER ": moments, their count or masters, which traces with record.tensors "
                            "would tell apart further");
        else
            require(TRAJECTORY_OPTIMIZER, TRAJECTORY_LOST,
                    ANOTHER ": moments, their count or masters");
    }
    for (size_t others = 1; others <= TENSORS; others++) {
        char text[512];
        open_sides();
        digest_of(1, 6, DIGEST_WEIGHTS)[0] = 1;
        for (size_t t = 0; t < others; t++)
            sides[1].digests[0][t][TENSOR_DIGEST_PARAMETER][5] ^= 1;
        judge();
        if (others == TENSORS)
            snprintf(text, sizeof text,
                     ANOTHER ", of every tensor that it moved (3): moments, their count or "
                             "masters");
        else
            snprintf(text, sizeof text,
                     ANOTHER ": it moved %zu tensors otherwise, and %zu that it moved have the "
                             "digest of before; rounding to the weights' dtype can hide another "
                             "step, so this does not tell moments, their count and masters apart",
                     others, TENSORS - others);
        require(TRAJECTORY_OPTIMIZER, TRAJECTORY_LOST, text);
    }
    /* Where the weights are what the optimizer moves, tensors that are alike show the count. Those
     * in front of the others are the first rank's, provided that they are several. */
    for (size_t other = 0; other < TENSORS; other++)
        for (size_t more = 0; more < 2; more++) {
            char text[512];
            open_sides();
            digest_of(1, 6, DIGEST_WEIGHTS)[0] = 1;
            sides[1].digests[0][other][TENSOR_DIGEST_PARAMETER][5] ^= 1;
            if (more) sides[1].digests[0][2][TENSOR_DIGEST_PARAMETER][5] = 0;
            for (size_t s = 0; s < 2; s++)
                sides[s].run.plan.configuration =
                    "numerics.master: none\noptimizer.name: adamw\noptimizer.bias_correction: "
                    "true\noptimizer.t: counted\nnumerics.param: f32\n";
            judge();
            const size_t alike = more && other < 2 ? 1 : 2;
            snprintf(text, sizeof text,
                     ANOTHER ": it moved %zu tensors otherwise and %zu as before, so the count is "
                             "right, and moments are not%s",
                     TENSORS - alike, alike,
                     other == 2 ? ", behind the latter in each parameter group, as where each rank "
                                  "reads the shard of its own index although another number of "
                                  "ranks wrote them"
                                : "");
            require(TRAJECTORY_OPTIMIZER, TRAJECTORY_LOST, text);
        }
}

/* Two recordings of strangers, with the weights that AFTER began with. */
static void open_strangers(void) {
    open_sides();
    for (size_t s = 0; s < 2; s++) {
        sides[s].run.plan.foreign = &sides[s].foreign;
        sides[s].foreign.initial = sides[1].initial;
    }
    sides[0].foreign.initial = NULL; /* what BEFORE began with is not asked for */
}

static void validate_weights_at_the_beginning(void **state) {
    (void)state;
    open_strangers();
    judge();
    require(TRAJECTORY_WEIGHTS, TRAJECTORY_RESTORED,
            "those before update 6 are those after update 5 of before, by their digests");
    for (size_t t = 0; t < TENSORS; t++)
        for (size_t sign = 0; sign < 2 * RECORD_DIGEST_BYTES; sign++) { /* every digit counts */
            char text[256];
            open_strangers();
            sides[1].hex[t][sign] = sides[1].hex[t][sign] == '0' ? '1' : '0';
            judge();
            snprintf(text, sizeof text,
                     "those before update 6 are not those after update 5 of before, by their "
                     "digests, first %s",
                     tensor_names[t]);
            require(TRAJECTORY_WEIGHTS, TRAJECTORY_LOST, text);
        }
    for (int how = 0; how < 9; how++) { /* what cannot be held against each other says nothing */
        open_strangers();
        if (how == 0) sides[1].run.plan.foreign = NULL;
        if (how == 1) sides[1].foreign.initial = NULL;
        if (how == 2) sides[0].run.plan.foreign = NULL;
        if (how == 3) unlike = 1;
        if (how == 4) sides[0].foreign.digest = "keyed 1";
        if (how == 5) sides[1].hex[1][0] = '\0';
        if (how == 6)
            memset(sides[0].digests[2][1][TENSOR_DIGEST_PARAMETER], 0, RECORD_DIGEST_BYTES);
        if (how == 7) sides[0].records[2].step = 4; /* no row of the update before */
        if (how == 8) {                             /* AFTER has a row in front of the restart */
            sides[1].records[1] = sides[1].records[0];
            sides[1].records[0].step = 5;
        }
        sides[1].hex[2][0] = 'x';
        judge();
        require(TRAJECTORY_WEIGHTS, TRAJECTORY_RESTORED, LOSS_IS);
    }
    /* A restart in front of the first update is none. */
    open_strangers();
    out.restart = 0;
    assert_int_equal(judge_beginning(&judging, 1), STATUS_OK);
    require(TRAJECTORY_WEIGHTS, TRAJECTORY_UNTOLD, "");
    sides[0].records[0].step = 1;
    sides[1].records[0].step = 2;
    memcpy(sides[0].digests[0], sides[0].digests[2], sizeof sides[0].digests[0]);
    assert_int_equal(judge_beginning(&judging, 2), STATUS_OK);
    require(TRAJECTORY_WEIGHTS, TRAJECTORY_RESTORED,
            "those before update 2 are those after update 1 of before, by their digests");
}

/* States of generators that strangers recorded, of BEFORE's updates 3 to 8 and AFTER's 6 to 8. */
#define NONE_DREW "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
static void put_states(size_t side, const char *states) {
    for (size_t i = 0; states[i] != '\0'; i++) {
        uint8_t *const digest = sides[side].records[i].digests[DIGEST_RNG];
        memset(digest, states[i] == '0' ? 0 : states[i], RECORD_DIGEST_BYTES);
        for (size_t b = 0; b < RECORD_DIGEST_BYTES && states[i] == '-'; b++) {
            unsigned byte;
            assert_int_equal(sscanf(&NONE_DREW[2 * b], "%2x", &byte), 1);
            digest[b] = (uint8_t)byte;
        }
    }
}

#define DIFFER "after update 6 the states differ from those of before (digest_rng): "

static void validate_recorded_states(void **state) {
    (void)state;
    enum { SAME = 0, LOSS, BATCH, WEIGHTS, CLOSE, UNTOLD_BEFORE };
    static const struct {
        const char *before, *after;
        int what; /* is another one, too */
        enum trajectory_state state;
        const char *text;
    } rows[] = {
        {"abcdef", "def", SAME, TRAJECTORY_RESTORED,
         "those that drew stand after update 6 where they stood (digest_rng)"},
        {"------", "---", SAME, TRAJECTORY_RESTORED,
         "none drew in either recording up to update 6"},
        {"abcdef", "abc", LOSS, TRAJECTORY_LOST,
         "they began anew: after update 6 they stand where they stood after update 3 (digest_rng), "
         "and so on in the updates behind it"},
        {"abcdef", "abc", SAME, TRAJECTORY_LOST,
         "they began anew: after update 6 they stand where they stood after update 3 (digest_rng), "
         "and so on in the updates behind it"},
        {"abcdef", "bcd", SAME, TRAJECTORY_LOST,
         "they do not go on: after update 6 they stand where they stood after update 4 "
         "(digest_rng), and so on in the updates behind it"},
        {"abcdef", "axy", LOSS, TRAJECTORY_LOST,
         "they began anew: after update 6 they stand where they stood after update 3 "
         "(digest_rng)"},
        /* one that draws rarely, and another that drew in BEFORE alone */
        {"aaabbb", "aaa", SAME, TRAJECTORY_UNTOLD,
         DIFFER "the loss is that of before to the last bit, so this update used none that stands "
                "elsewhere; one that drew in one recording alone would look like it"},
        {"abcdef", "xyz", LOSS, TRAJECTORY_LOST,
         "after update 6 they stand elsewhere than they stood (digest_rng), and the loss is 0.5, "
         "and was 0.16666666666666666, of the same batch and weights"},
        {"abcdef", "xyz", CLOSE, TRAJECTORY_UNTOLD,
         DIFFER "they were not restored, or one drew in one recording alone"},
        {"abcdef", "xyz", WEIGHTS, TRAJECTORY_UNTOLD,
         DIFFER "they were not restored, or one drew in one recording alone"},
        {"abcdef", "xyz", BATCH, TRAJECTORY_UNTOLD,
         DIFFER "the batch is another one already, which may have drawn otherwise"},
        {"abcdef", "---", LOSS, TRAJECTORY_UNTOLD,
         DIFFER "none drew from the beginning of AFTER's recording to the end of that update, so "
                "where they stand was not recorded"},
        {"---def", "---", LOSS, TRAJECTORY_UNTOLD,
         DIFFER "none drew from the beginning of AFTER's recording to the end of that update, so "
                "where they stand was not recorded"},
        {"------", "xyz", LOSS, TRAJECTORY_UNTOLD,
         DIFFER "none drew in BEFORE up to there, and in AFTER one did, or was set behind the "
                "beginning of the recording"},
        {"000000", "def", SAME, TRAJECTORY_UNTOLD,
         "their states were not recorded in both (digest_rng); the loss of update 6 is that of "
         "before"},
        {"abcdef", "000", UNTOLD_BEFORE, TRAJECTORY_UNTOLD, ""},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        open_strangers();
        put_states(0, rows[i].before);
        put_states(1, rows[i].after);
        if (rows[i].what != UNTOLD_BEFORE) /* as losses say */
            out.items[TRAJECTORY_GENERATORS].state = TRAJECTORY_RESTORED;
        if (rows[i].what != SAME && rows[i].what != UNTOLD_BEFORE)
            sides[1].records[0].reals[REAL_LOSS] = rows[i].what == CLOSE ? 0.1667 : 0.5;
        if (rows[i].what == BATCH) digest_of(1, 6, DIGEST_BATCH)[0] = 1;
        if (rows[i].what == WEIGHTS) sides[1].hex[1][0] = 'x';
        judge();
        require(TRAJECTORY_GENERATORS, rows[i].state, rows[i].text);
    }
    for (size_t s = 0; s < 2; s++) { /* a trace of ours beside a stranger's: other digests */
        open_strangers();
        sides[s].run.plan.foreign = NULL;
        judge();
        require(TRAJECTORY_GENERATORS, TRAJECTORY_UNTOLD, "");
    }
}

static int64_t *integer_of(size_t side, int which) {
    return &sides[side].records[side == 0 ? 3 : 0].integers[which];
}

static void validate_counts(void **state) {
    (void)state;
    static const struct {
        int64_t was, is, skipped_then, skipped_now;
        const char *text; /* NULL: nothing is said of it */
    } rows[] = {
        {6, 6, 0, 0, NULL},
        {6, 1, 0, 0, "its count (optimizer_t) is 1 after update 6, and was 6: it began anew"},
        {6, 1, -1, -1, "its count (optimizer_t) is 1 after update 6, and was 6: it began anew"},
        {6, 0, 0, 1, "its count (optimizer_t) is 0 after update 6, and was 6: it began anew"},
        {6, 7, 0, 0, "its count (optimizer_t) is 7 after update 6, and was 6"},
        {6, 5, 0, 0, "its count (optimizer_t) is 5 after update 6, and was 6"},
        {6, 5, 0, 1, NULL}, /* the update was skipped, as after an overflow */
        {5, 6, 1, 0, NULL},
        {6, 5, -1, 0, NULL}, /* it may have been */
        {6, 5, 0, -1, NULL},
        {6, 7, -1, 0, NULL},
        {-1, 1, 0, 0, NULL},
        {6, -1, 0, 0, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        open_sides();
        *integer_of(0, INTEGER_OPTIMIZER_T) = rows[i].was;
        *integer_of(1, INTEGER_OPTIMIZER_T) = rows[i].is;
        *integer_of(0, INTEGER_SKIPPED) = rows[i].skipped_then;
        *integer_of(1, INTEGER_SKIPPED) = rows[i].skipped_now;
        judge();
        if (rows[i].text == NULL)
            require(TRAJECTORY_OPTIMIZER, TRAJECTORY_RESTORED, STEP_IS);
        else
            require(TRAJECTORY_OPTIMIZER, TRAJECTORY_LOST, rows[i].text);
    }
    /* An optimizer that began anew has its own LR until the scheduler sets one. */
    static struct trajectory_pairing lrs[2] = {{.update = 6}, {.update = 7}};
    for (int how = 0; how < 7; how++) {
        open_sides();
        judging.lr = (struct trajectory_column){.pairs = lrs, .count = how == 1 ? 1 : 2};
        *integer_of(0, INTEGER_OPTIMIZER_T) = 6;
        *integer_of(1, INTEGER_OPTIMIZER_T) = how == 2 ? 4 : how == 3 ? 6 : 1;
        same_lrs = how == 4; /* then nothing is to be explained */
        same_later = how != 5;
        out.items[TRAJECTORY_SCHEDULER] =
            (struct trajectory_item){how == 6 ? TRAJECTORY_UNTOLD : TRAJECTORY_LOST, "LRs", NULL};
        judge();
        if (how == 0 || how == 6)
            require(TRAJECTORY_SCHEDULER, TRAJECTORY_RESTORED,
                    "the LRs behind update 6 are those of before; that of update 6 is not, as of "
                    "an optimizer that was not restored and has its own until the scheduler sets "
                    "the next");
        else
            require(TRAJECTORY_SCHEDULER, TRAJECTORY_LOST, "LRs");
    }
}

/* A recording's digest is of weights, which an LR of 0 leaves in place. */
static void validate_steps_of_strangers(void **state) {
    (void)state;
    for (int how = 0; how < 6; how++) {
        open_strangers();
        for (size_t i = 0; i < UPDATES; i++)
            for (size_t g = 0; g < GROUPS; g++)
                sides[1].groups[i][g][GROUP_LR_APPLIED] = 0.0;
        if (how == 1) sides[1].groups[0][1][GROUP_LR_APPLIED] = 1e-3;
        if (how == 2 || how == 3) sides[1].groups[1][0][GROUP_LR_APPLIED] = 1e-3;
        if (how == 3) digest_of(1, 7, DIGEST_WEIGHTS)[0] = 1;
        if (how == 4) sides[1].groups[0][0][GROUP_LR_APPLIED] = real_nan_f64();
        if (how == 5) sides[1].run.plan.shape.groups = 0;
        judge();
        if (how == 0 || how == 3)
            require(TRAJECTORY_OPTIMIZER, TRAJECTORY_UNTOLD,
                    "the LR of update 6 was 0, so its weights tell nothing, and no later update is "
                    "in both with the weights of before");
        else
            require(TRAJECTORY_OPTIMIZER, TRAJECTORY_RESTORED,
                    how == 2 ? "the weights after update 7 are those of before: so was the step"
                             : "the weights after update 6 are those of before: so was the step");
    }
}

static void validate_first_differences(void **state) {
    (void)state;
    for (uint64_t step = 6; step < 9; step++)
        for (uint64_t known = 0; known < 10; known++) {
            open_sides();
            digest_of(1, step, DIGEST_WEIGHTS)[3] = 1;
            digest_of(1, 8, DIGEST_WEIGHTS)[3] = 1;
            out.differs = known;
            out.column = "loss";
            judge();
            const int is_first = known == 0 || step < known;
            assert_int_equal(out.differs, is_first ? step : known);
            assert_string_equal(out.column, is_first ? "digest_weights" : "loss");
        }
    open_sides(); /* the first of all, where the restart is not known */
    for (uint64_t step = 6; step < 9; step++)
        digest_of(1, step, DIGEST_WEIGHTS)[3] = 1;
    out.restart = 6;
    judge();
    assert_int_equal(out.differs, 7);
    out.differs = 0;
    out.restart = TRAJECTORY_UNKNOWN;
    judge();
    assert_int_equal(out.differs, 6);
    out.differs = 0; /* what BEFORE has no row of, and what is not recorded, is passed over */
    sides[0].records[3].step = 5;
    memset(digest_of(1, 7, DIGEST_WEIGHTS), 0, RECORD_DIGEST_BYTES);
    judge();
    assert_int_equal(out.differs, 8);
}

/* Two recordings of strangers whose AFTER has other settings: the optimizer is not lost for that.
 */
static void open_settings(const char *before, const char *after) {
    open_sides();
    for (size_t s = 0; s < 2; s++) {
        sides[s].run.plan.foreign = &sides[s].foreign;
        sides[s].run.plan.configuration = s == 0 ? before : after;
        for (size_t i = 0; i < UPDATES; i++) {
            sides[s].records[i].reals[REAL_GRAD_NORM] = 2.0;
            sides[s].records[i].reals[REAL_CLIP_COEF] = real_nan_f64();
        }
    }
}

static void require_settings(const char *text) {
    out.settings = NULL;
    judge();
    if (text == NULL && out.settings != NULL) fail_msg("settings: %s", out.settings);
    if (text != NULL) assert_non_null(out.settings);
    if (text != NULL) assert_string_equal(out.settings, text);
}

static void validate_settings(void **state) {
    (void)state;
#define GROUPED(decay, betas)                                                                      \
    "optimizer.0: AdamW\noptimizer.0.0.lr: 0.1\noptimizer.0.0.weight_decay: " decay                \
    "\noptimizer.0.1.betas: " betas
    static const char old[] = GROUPED("0.1", "(0.9, 0.99)");
    open_settings(old, old);
    require_settings(NULL);
    open_settings(old, GROUPED("0.2", "(0.9, 0.99)"));
    *decay_of(0, 6, 0) = *decay_of(0, 7, 0) = 0.1;
    *decay_of(1, 6, 0) = *decay_of(1, 7, 0) = 0.2;
    sides[1].records[0].digests[DIGEST_WEIGHTS][0] ^= 1;
    require_settings("weight_decay of group 0 was 0.1 and is 0.2");
    require(TRAJECTORY_SCHEDULER, TRAJECTORY_UNTOLD, "");
    require(TRAJECTORY_OPTIMIZER, TRAJECTORY_UNTOLD,
            "the step of update 6 differs, which the settings that were changed may explain");
    *decay_of(1, 7, 0) =
        0.1; /* the next update decays as before: that of the checkpoint was kept */
    judge();
    assert_string_equal(out.items[TRAJECTORY_SCHEDULER].bug, "stale_wd_on_resume");
    *decay_of(1, 6, 0) = 0.1; /* a decay with a schedule was moved by then in BEFORE, too */
    require_settings(NULL);

    static const char other[] = GROUPED("0.1", "(0.9, 0.95)");
    open_settings(old, other);
    sides[1].records[0].digests[DIGEST_WEIGHTS][0] ^= 1;
    require_settings("betas of group 1 was (0.9, 0.99) and is (0.9, 0.95)");
    assert_int_equal(out.items[TRAJECTORY_OPTIMIZER].state, TRAJECTORY_UNTOLD);
    open_settings(old, GROUPED("0.1", "(0.9, 0.95)\noptimizer.0.1.max_momentum: 0.95"));
    require_settings(NULL); /* OneCycleLR moves them */
    open_settings(old, GROUPED("0.1", "(0.9, 0.95)\noptimizer.0.0.max_momentum: 0.95"));
    require_settings("betas of group 1 was (0.9, 0.99) and is (0.9, 0.95)");
    open_settings(
        "optimizer.0.0.lr: 1\noptimizer.0.0.fused: None\nargs.seed: 1\noptimizer.1.2.eps: 1",
        "optimizer.0.0.lr: 2\noptimizer.0.0.fused: True\nargs.seed: 2\noptimizer.1.2.eps: 2");
    require_settings("eps of group 2 of optimizer 1 was 1 and is 2");
    for (size_t s = 0; s < 2; s++) { /* of a run of ours its scenario speaks */
        open_settings(old, other);
        sides[s].run.plan.foreign = NULL;
        require_settings(NULL);
    }

    static const struct {
        double was, is;
        const char *text;
    } clips[] = {
        {0.5, 0.5, NULL},
        {0.5, 0.15, "clipping was to a norm of 1 and is to 0.3 (clip_coef times grad_norm)"},
        {0.5, 0.5 * (1.0 + 9e-6), NULL},
        {0.5, 1.0, "clipping was to a norm of 1 and is not (clip_coef)"},
        {1.0, 0.25, "clipping is to a norm of 0.5 and was not (clip_coef)"},
        {1.0, 1.0, NULL},
        {0.5, -1.0, NULL},
    };
    for (size_t c = 0; c < COUNT_OF(clips); c++) {
        open_settings(old, old);
        sides[0].records[3].reals[REAL_CLIP_COEF] = clips[c].was;
        sides[1].records[0].reals[REAL_CLIP_COEF] =
            clips[c].is < 0.0 ? real_nan_f64() : clips[c].is;
        require_settings(clips[c].text);
        if (clips[c].text == NULL) continue;
        sides[1].records[0].reals[REAL_GRAD_NORM] = 3.0; /* another gradient */
        require_settings(NULL);
    }
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_what_goes_on),
        cmocka_unit_test(validate_rows),
        cmocka_unit_test(validate_batches),
        cmocka_unit_test(validate_streams),
        cmocka_unit_test(validate_decays),
        cmocka_unit_test(validate_losses),
        cmocka_unit_test(validate_other_steps),
        cmocka_unit_test(validate_weights_at_the_beginning),
        cmocka_unit_test(validate_recorded_states),
        cmocka_unit_test(validate_counts),
        cmocka_unit_test(validate_steps_of_strangers),
        cmocka_unit_test(validate_first_differences),
        cmocka_unit_test(validate_settings),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}
