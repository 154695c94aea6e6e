/* SPDX-License-Identifier: Apache-2.0
 * labels: cli short
 * readback and resume-check at the door, on checkpoints of real trainings: text, names, logs, two
 * runs, and what a restart restored. The numbers themselves are held against what hooks saw by
 * tests/bench/readback_table.py. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"
#include "tests/cli/helper_cli.h"

/* What stands before every path: `runs` is a link to the committed folders. */
static int enter(void **state) {
    if (helper_enter(state) != 0) return -1;
    return symlink(TWINSTEP_SOURCE_DIR "/tests/golden/foreign/runs", "runs");
}

static void require_in(const char *text, const char *needle) {
    if (strstr(text, needle) == NULL) fail_msg("expected: %s\nin: %s", needle, text);
}

static void require_not_in(const char *text, const char *needle) {
    if (strstr(text, needle) != NULL) fail_msg("unexpected: %s\nin: %s", needle, text);
}

/* Runs, and requires the text in stdout. */
static void tell(int code, const char *line, const char *needle) {
    struct said said = helper_run(code, line);
    assert_string_equal(said.err, "");
    require_in(said.out, needle);
    helper_free(&said);
}

/* ---- readback ---- */

#define ADAMW "runs/plain-adamw/step-1 runs/plain-adamw/step-2"
#define AHEAD "runs/bug-lr-ahead/step-1 runs/bug-lr-ahead/step-2"

/* The LR of update 2 is the schedule's 4.75e-4 (truth.json), and the decay 0.1. */
static void validate_text(void **state) {
    (void)state;
    struct said said = helper_run(0, "readback " ADAMW);
    assert_string_equal(said.err, "");
    require_in(said.out, "update 2 (step-1 to step-2): as promised\n");
    require_in(said.out, "  folder, adam (exp_avg, exp_avg_sq); from the order of the state dict");
    require_in(said.out, "  group 0: 3 tensors, 416 weights in f32, 416 of them moved\n");
    require_in(said.out, "    LR      4.7499999e-04 +- ");
    require_in(said.out, "; promised 0.000475\n");
    require_in(said.out, "    count   2\n    betas   (0.9, 0.999), as the moments show over ");
    require_in(said.out, "  gradient norm 9.99999");
    require_not_in(said.out, "FINDING");
    helper_free(&said);
    said = helper_run(1, "readback " AHEAD);
    require_in(said.out, "update 2 (step-1 to step-2): NOT AS PROMISED: step-1 promised 0.000475, "
                         "and 4.5000000e-04 was applied");
    require_in(said.out, "\n  FINDING (group 1): step-1 promised 0.000475");
    helper_free(&said);
    said = helper_run(0, "readback " ADAMW " --json");
    json_t *const value = json_loads(said.out, 0, NULL);
    assert_non_null(value);
    const json_t *const update = json_array_get(json_object_get(value, "updates"), 0);
    const json_t *const group = json_array_get(json_object_get(update, "groups"), 0);
    const double rounded = json_number_value(json_object_get(group, "weight_decay_rounded"));
    const double low = json_number_value(json_object_get(json_object_get(group, "decay"), "low"));
    /* The bar is that of what acted, which f32 makes of 0.1, and not of 0.1. */
    assert_true(low > 0.1 && low < rounded);
    assert_true(rounded == (1.0 - (double)(float)(1.0 - 4.75e-4 * 0.1)) / 4.75e-4);
    require_in(json_string_value(json_object_get(group, "decay_text")), ", as f32 rounds 0.1");
    require_in(json_string_value(json_object_get(group, "lr_text")), "4.7499999e-04 +- ");
    json_decref(value);
    helper_free(&said);
    tell(3, "readback runs/plain-adafactor/step-1 runs/plain-adafactor/step-2",
         "  gradient norm cannot be read: no tensor has a first moment\n");
    helper_refuse(2, "readback runs/plain-adamw/step-2 runs/plain-adamw/step-1",
                  "earlier one first");
    helper_refuse(2, "readback runs/plain-adamw/step-1", "two checkpoints or more");
    helper_refuse(2, "readback runs/plain-sgd/step-1 runs/plain-sgd/step-2", "optimizer.pt");
}

/* Three checkpoints are two updates, each with its own answer. */
static void verify_several_updates(void **state) {
    (void)state;
    struct said said = helper_run(1, "readback runs/bug-lr-ahead/step-0 runs/bug-lr-ahead/step-1 "
                                     "runs/bug-lr-ahead/step-2 --json --junit out.xml");
    json_t *const value = json_loads(said.out, 0, NULL);
    assert_non_null(value);
    const json_t *const updates = json_object_get(value, "updates");
    assert_int_equal(json_array_size(updates), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *const update = json_array_get(updates, i);
        assert_int_equal((int)json_number_value(json_object_get(update, "update")), i + 1);
        assert_string_equal(json_string_value(json_object_get(update, "verdict")), "broken");
    }
    json_decref(value);
    helper_free(&said);
    char *const xml = helper_read("out.xml", NULL);
    require_in(xml, "tests=\"2\"");
    free(xml);
}

/* A file of names in the order of the groups (truth.json) gives what the reader's own order gives;
 * one that exchanges two biases of one shape explains nothing, and is believed all the same. */
static void verify_names(void **state) {
    (void)state;
    helper_write("right", "0.weight\n1.weight\n5.weight\n3.weight\n3.bias\n5.bias\n");
    helper_write("turned", "0.weight\n1.weight\n5.weight\n3.bias\n3.weight\n5.bias\n");
    helper_write("shapes", "5.weight\n1.weight\n0.weight\n3.weight\n3.bias\n5.bias\n");
    helper_write("short", "0.weight\n1.weight\n");
    helper_write("unknown", "0.weight\n1.weight\nx\n3.weight\n3.bias\n5.bias\n");
    tell(0, "readback " ADAMW " --names right", "from the file of names\n");
    tell(3, "readback " ADAMW " --names turned",
         "LR      cannot be read: no LR explains how the weights moved");
    helper_refuse(2, "readback " ADAMW " --names shapes",
                  "of the shape that the optimizer's state");
    helper_refuse(2, "readback " ADAMW " --names short", "a name for each of the optimizer's 6");
    helper_refuse(2, "readback " ADAMW " --names unknown", "got \"x\"");
    helper_refuse(2, "readback " ADAMW " --names nowhere", "nowhere");
    tell(0, "resume-check runs/restart-ok-plain/step-4 runs/restart-ok-plain/step-5 --names right",
         "restored: weights, moments, count");
    helper_refuse(2,
                  "resume-check runs/restart-ok-plain/step-4 runs/restart-ok-plain/step-5 "
                  "--names short",
                  "a name for each");
}

/* Two runs whose update 2 applied 4.75e-4 and 4.5e-4: the ratio is 0.947368. */
static void validate_against(void **state) {
    (void)state;
    struct said said = helper_run(1, "readback " ADAMW " --against " AHEAD);
    assert_string_equal(said.err, "");
    require_in(said.out, "A: update 2 (step-1 to step-2): as promised\n");
    require_in(said.out, "B: update 2 (step-1 to step-2): NOT AS PROMISED: ");
    require_in(said.out, "\nA against B, update 2: the steps differ, first in 0.weight\n");
    require_in(said.out, "  the weights differ before this update already, first in 0.weight: by ");
    require_in(said.out, "  group 0: B's applied LR is 9.47368");
    require_in(said.out, "B's LR is one update ahead of A's\n");
    require_in(said.out, "  contract: A fits hf");
    require_in(said.out, "; B fits olmo-core, open-instruct-dpo\n");
    helper_free(&said);
    tell(0, "readback " ADAMW " --against " ADAMW,
         "A against B, update 2: the steps of 6 tensors are equal, element by element\n");
    said = helper_run(1, "readback " ADAMW " --against " AHEAD " --json");
    json_t *const value = json_loads(said.out, 0, NULL);
    assert_non_null(value);
    const json_t *const pair = json_array_get(json_object_get(value, "pairs"), 0);
    const json_t *const ratio = json_array_get(json_object_get(pair, "lr_ratio"), 0);
    assert_true(json_number_value(json_object_get(ratio, "low")) <= 4.5 / 4.75);
    assert_true(json_number_value(json_object_get(ratio, "high")) >= 4.5 / 4.75);
    assert_int_equal(json_array_size(json_object_get(pair, "tensors")), 6);
    assert_true(json_is_null(json_object_get(pair, "same_logged")));
    json_decref(value);
    helper_free(&said);
    helper_refuse(2, "readback " ADAMW " --against runs/bug-lr-ahead/step-1",
                  "as many checkpoints before --against as behind it, got 2 and 1");
    helper_refuse(2,
                  "readback " ADAMW
                  " --against runs/hf-qwen2-fused/checkpoint-1 runs/hf-qwen2-fused/checkpoint-2",
                  "no tensor in common");
}

/* Each run has its own log; both print 4.5e-4 for update 2, so that no log shows the slip. */
static void verify_logs(void **state) {
    (void)state;
    tell(1,
         "readback " ADAMW " --log runs/plain-adamw/log.jsonl --against " AHEAD
         " --log runs/bug-lr-ahead/log.jsonl",
         "both log 0.00045 for this update, so logs cannot tell them apart");
    helper_write("b.jsonl", "{\"step\": 1, \"lr\": 0.0005}\n{\"step\": 2, \"lr\": 0.00047}\n");
    struct said said = helper_run(
        1, "readback " ADAMW " --log runs/plain-adamw/log.jsonl --against " AHEAD " --log b.jsonl");
    require_in(said.out, "; logged 0.00045");
    require_in(said.out, "; logged 0.00047");
    require_not_in(said.out, "logs cannot tell them apart");
    helper_free(&said);
    tell(0, "readback " ADAMW " --log runs/plain-adamw/log.jsonl",
         "which is the LR of the next one: it was read after the scheduler ran");
    helper_refuse(2, "readback " ADAMW " --log b.jsonl --log b.jsonl",
                  "one --log for each run (1 here)");
    helper_refuse(2,
                  "readback " ADAMW " --log b.jsonl --log b.jsonl --log b.jsonl --against " AHEAD,
                  "one --log for each run (2 here)");
    helper_refuse(2, "readback " ADAMW " --log nowhere.jsonl", "nowhere.jsonl");
}

static void verify_expectations(void **state) {
    (void)state;
    tell(0, "readback " ADAMW " --expect max_grad_norm=1.0 --expect weight_decay=0.1",
         "as promised");
    tell(1, "readback " ADAMW " --expect max_grad_norm=0.5", "clipping ran after the step");
    tell(0, "readback " ADAMW " --expect decoupled_weight_decay=1", "as promised\n");
    tell(1, "readback " ADAMW " --expect decoupled_weight_decay=0",
         "acts on the weights, as AdamW's does, and decoupled_weight_decay=0 was to be expected");
#define COUPLED "readback runs/bug-decay-coupled/step-1 runs/bug-decay-coupled/step-2"
    tell(0, COUPLED, "as promised, with 1 remark\n");
    tell(1, COUPLED " --expect decoupled_weight_decay=1",
         "NOT AS PROMISED: the decay of 0.1 goes through the gradient and Adam's moments");
    tell(1, "readback " ADAMW " --expect adam_beta2=0.95", "betas[1] 0.999, and 0.95");
    helper_refuse(2, "readback " ADAMW " --expect beta=1", "expected NAME=NUMBER");
    helper_refuse(2, "readback " ADAMW " --expect max_grad_norm=-1", "0 or above");
    helper_refuse(2, "readback " ADAMW " --expect max_grad_norm=one", "--expect");
}

/* Biases and a norm that the optimizer was never given: with the log, the first line says so.
 * Without one nothing tells them from frozen ones, and the first line points at the remark. */
static void validate_forgotten_group(void **state) {
    (void)state;
#define FORGOTTEN "readback runs/bug-group-forgotten/step-1 runs/bug-group-forgotten/step-2"
    tell(1, FORGOTTEN " --log runs/bug-group-forgotten/log.jsonl --expect max_grad_norm=1.0",
         "NOT AS PROMISED: 3 tensors have no state in the optimizer and did not move although they "
         "had gradients (3.bias, 3.weight, 5.bias): ");
    tell(1, FORGOTTEN " --log runs/bug-group-forgotten/log.jsonl --expect max_grad_norm=1.0",
         "; coefficient at least 7.97");
    tell(0, FORGOTTEN, "): as promised, with 1 remark\n");
}

/* The two files hold other betas; whose these were, and whether on purpose, nobody says. */
static void validate_moved_settings(void **state) {
    (void)state;
    struct said said =
        helper_run(1, "readback runs/plain-adamw/step-1 runs/bug-betas-configured/step-2");
    require_in(said.out,
               "  remark: settings of the optimizer were moved between step-1 and step-2: "
               "betas[1] of group 0 was 0.999 and is 0.95; betas[1] of group 1 was 0.999 "
               "and is 0.95\n");
    helper_free(&said);
    said = helper_run(0, "readback " ADAMW);
    require_not_in(said.out, "were moved");
    helper_free(&said);
}

/* Moments that were lost began from 0: the norm is the clipped one that the hook saw, 1.0. */
static void validate_norm_after_lost_moments(void **state) {
    (void)state;
    struct said said = helper_run(
        1, "readback runs/restart-moments-lost/step-4 runs/restart-moments-lost/step-5 --log "
           "runs/restart-moments-lost/log.jsonl --expect max_grad_norm=1.0");
    require_in(said.out, "  gradient norm 9.99999");
    require_in(said.out, "its state began anew in between, and the moments were lost");
    require_not_in(said.out, "clipping");
    require_not_in(said.out, "an average");
    helper_free(&said);
}

/* Without the optimizer's file nobody says what moved the weights, or that a schedule stood. */
static void verify_missing_optimizer(void **state) {
    (void)state;
    static const char *const kept[] = {"model.safetensors", "config.json", "scheduler.pt",
                                       "trainer_state.json"};
    assert_int_equal(mkdir("bare", 0777), 0);
    for (size_t i = 0; i < COUNT_OF(kept); i++) {
        char from[256], to[64];
        snprintf(from, sizeof from, "../runs/restart-ok-hf/checkpoint-5/%s", kept[i]);
        snprintf(to, sizeof to, "bare/%s", kept[i]);
        assert_int_equal(symlink(from, to), 0);
    }
    struct said said = helper_run(3, "readback runs/restart-ok-hf/checkpoint-4 bare");
    require_in(said.out, "  contract cannot be told: the optimizer's file, which the step is read "
                         "with, is missing\n");
    require_in(said.out, " tensors moved; the optimizer's file is missing, so what moved them "
                         "cannot be told (");
    require_not_in(said.out, "without the optimizer:");
    require_not_in(said.out, "one LR before and after");
    helper_free(&said);
}

/* ---- resume-check ---- */

#define RESUMED(name, folder) "runs/" name "/" folder "-4 runs/" name "/" folder "-5"

#define COUNTED(name) TWINSTEP_SOURCE_DIR "/tests/golden/restarted/" name

/* What the optimizer counts is not what updates are: where its state was lost, and where it steps
 * twice in each update (tests/bench/restart_counts.py). */
static void validate_counts_of_steps(void **state) {
    (void)state;
    tell(1, "resume-check " COUNTED("whole-4.pt ") COUNTED("lost-5.pt"),
         "\n  contract applies as hf, hf-4.50, ");
    struct said said = helper_run(1, "readback " COUNTED("twice-4.pt ") COUNTED("twice-5.pt"));
    require_in(said.out,
               "the optimizer's count went from 8 in twice-4.pt to 10 in twice-5.pt, and the "
               "scheduler's by one: the optimizer stepped 2 times in this update");
    require_not_in(said.out, "get_optimizer_state_dict");
    require_not_in(said.out, "began from another state");
    helper_free(&said);
}

static void validate_restart_text(void **state) {
    (void)state;
    struct said said = helper_run(1, "resume-check " RESUMED("restart-scheduler-lost", "step"));
    assert_string_equal(said.err, "");
    require_in(said.out, "NOT RESTORED: scheduler\n  weights     restored  the update began from ");
    require_in(said.out, "\n  moments     restored  first and second moments after the update ");
    require_in(said.out, "\n  count       restored  the optimizer's count went from 4 to 5\n");
    require_in(said.out, "\n  scheduler   LOST      its count (last_epoch) was 4 and is 1; ");
    require_in(said.out,
               "\n  settings    restored  the optimizer's groups hold the settings that they "
               "held\n");
    require_in(said.out, "\n  scaler      absent    none is stored\n");
    require_in(said.out, "\n  position    restored  position went from 4 to 5\n");
    require_in(said.out, "\nThe first update after the restart:\nupdate");
    helper_free(&said);
    tell(0, "resume-check " RESUMED("restart-ok-plain", "step"),
         "restored: weights, moments, count, scheduler, settings, generators, position\n");
    tell(1, "resume-check " RESUMED("restart-scaler-lost", "step"), "NOT RESTORED: scaler");
    tell(0, "resume-check " RESUMED("restart-ok-scaler", "step"),
         "\n  scaler      restored  scale 2048 and growth tracker 1 became 2048 and 2\n");
    said = helper_run(1, "resume-check " RESUMED("restart-scheduler-lost", "step") " --json");
    json_t *const value = json_loads(said.out, 0, NULL);
    assert_non_null(value);
    const json_t *const part = json_object_get(json_object_get(value, "parts"), "scheduler");
    assert_string_equal(json_string_value(json_object_get(part, "state")), "lost");
    assert_int_equal(json_integer_value(json_object_get(value, "exit")), 1);
    json_decref(value);
    helper_free(&said);
}

/* A checkpoint of one file is one wherever `readback` takes it, and no log. */
static void verify_single_files(void **state) {
    (void)state;
#define LIGHTNING                                                                                  \
    "runs/lightning-qwen2/epoch=0-step=1.ckpt "                                                    \
    "runs/lightning-qwen2/epoch=0-step=2.ckpt"
#define FUSED "runs/plain-fused-file/step-1.pt runs/plain-fused-file/step-2.pt"
    tell(0, "resume-check " LIGHTNING, "restored: weights, moments, count, scheduler, settings");
    tell(0, "resume-check " FUSED, "restored: weights, moments, count, scheduler, settings");
    tell(0, "resume-check " FUSED " --uninterrupted runs/plain-fused-file/step-2.pt",
         "\n  position    restored  the gradient is that of the run that was not interrupted, to ");
    helper_refuse(2, "resume-check " FUSED " --restart 1",
                  "--restart goes with two logs or traces, and runs/plain-fused-file/step-1.pt is "
                  "none of these");
    helper_refuse(2, "resume-check runs/plain-fused-file/log.jsonl runs/plain-fused-file/step-2.pt",
                  "log.jsonl: expected a file of torch.save (a zip, which begins with PK), got "
                  "other bytes");
    helper_write("old.pt", "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9");
    helper_refuse(2, "resume-check old.pt old.pt", "got its legacy format");
    helper_write("w.safetensors", "-");
    helper_refuse(2, "resume-check w.safetensors w.safetensors",
                  "w.safetensors: expected a safetensors file, got 1 bytes");
}

/* A log that holds update 5 once says nothing of the restart; twice, with one loss or two, it does.
 */
static void verify_restart_log(void **state) {
    (void)state;
#define HF "resume-check " RESUMED("restart-data-repeated-hf", "checkpoint")
    tell(0, HF, "\n  position    untold    no checkpoint says which samples an update saw");
    helper_write("log.jsonl", "{\"step\": 4, \"loss\": 2.5}\n{\"step\": 5, \"loss\": 1.25}\n");
    tell(0, HF " log.jsonl", "\n  position    untold    no checkpoint says");
    helper_write("log.jsonl", "{\"step\": 5, \"loss\": 1.25}\n{\"step\": 5, \"loss\": 1.25}\n");
    tell(0, HF " log.jsonl",
         "\n  position    restored  the log has the loss 1.25 for this update "
         "twice, before the restart and after it\n");
    helper_write("log.jsonl", "{\"step\": 5, \"loss\": 1.25}\n{\"step\": 5, \"loss\": 1.5}\n");
    tell(3, HF " log.jsonl",
         "\n  position    untold    the log has the loss 1.25 for this update "
         "before the restart and 1.5 after it: another batch, or other "
         "dropout\n");
    tell(3, HF " log.jsonl", "ANOTHER UPDATE than without the restart; cannot be told: ");
    helper_write("log.jsonl", "{\"step\": 5, \"loss\": 1.25}\n{\"step\": 5, \"loss\": 1.2501}\n");
    tell(0, HF " log.jsonl", "\n  position    untold    the log has the loss 1.25 ");
    helper_refuse(2, HF " nowhere.jsonl", "nowhere.jsonl");
}

/* Against the same update of a run that was not interrupted. The runs of one architecture share
 * their data, so a restart of another case that restored the position stands for one. */
static void verify_uninterrupted(void **state) {
    (void)state;
#define PLAIN(name) "resume-check " RESUMED(name, "step") " --uninterrupted "
    tell(1, PLAIN("restart-moments-lost") "runs/restart-count-lost/step-5",
         "\n  position    restored  the gradient is that of the run that was not interrupted, to ");
    tell(1, PLAIN("restart-sampler-lost") "runs/restart-count-lost/step-5",
         "\n  position    LOST      the gradient differs from that of the run that was not "
         "interrupted by 1.1e+00 of its norm: another batch\n");
    /* Both gradients were clipped to 1, so that their norms agree. */
    tell(1, PLAIN("restart-rng-lost") "runs/restart-ok-plain/step-5",
         "of its norm: another batch, or other dropout, because generators were not restored\n");
    tell(0, PLAIN("restart-ok-plain") "runs/restart-ok-plain/step-5",
         "\n  position    restored  the gradient is that of the run");
    helper_refuse(2, PLAIN("restart-ok-plain") "runs/hf-qwen2-fused/checkpoint-2",
                  "hf-qwen2-fused");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_text),
        cmocka_unit_test(verify_several_updates),
        cmocka_unit_test(verify_names),
        cmocka_unit_test(validate_against),
        cmocka_unit_test(verify_logs),
        cmocka_unit_test(verify_expectations),
        cmocka_unit_test(validate_forgotten_group),
        cmocka_unit_test(validate_moved_settings),
        cmocka_unit_test(validate_norm_after_lost_moments),
        cmocka_unit_test(verify_missing_optimizer),
        cmocka_unit_test(validate_restart_text),
        cmocka_unit_test(validate_counts_of_steps),
        cmocka_unit_test(verify_single_files),
        cmocka_unit_test(verify_restart_log),
        cmocka_unit_test(verify_uninterrupted),
    };
    return cmocka_run_group_tests(tests, enter, helper_leave);
}
