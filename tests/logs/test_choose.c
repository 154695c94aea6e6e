/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Which reader is chosen: for rows behind a long preamble, for a file that nobody knows, and for
 * one that holds rows of two formats. */
#include "tests/logs/helper_logs.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static char text[1 << 21];
static size_t used;

static void add(const char *format, ...) TWINSTEP_PRINTF(1, 2);
static void add(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    used += (size_t)vsnprintf(text + used, sizeof text - used, format, arguments);
    va_end(arguments);
    assert_true(used < sizeof text);
}

static void preamble(size_t bytes) {
    for (used = 0; used < bytes;)
        add("[default%zu]: > building a thing with a name and a path /data/part/%zu\n", used % 8,
            used);
}

/* A SLURM file whose first iteration line stands at byte 131,971 or later, as one that was seen. */
static void validate_rows_behind_a_long_preamble(void **state) {
    static const size_t lengths[] = {0, 65000, 131971, 1900000};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        struct arena arena = ARENA_EMPTY;
        preamble(lengths[i]);
        add("[default7]: iteration 1/ 9 | consumed samples: 8 | learning rate: 1.0E-07 |\n"
            "[default7]: iteration 2/ 9 | consumed samples: 16 | learning rate: 2.0E-07 |\n");
        const struct log *log = logs_read(&arena, text, NULL);
        assert_string_equal(log->format, "megatron");
        assert_int_equal(log->rows, 2);
        arena_close(&arena);
    }
}

/* How finely the Trainer printed its numbers is read from its rows, wherever the first of them
 * stands: with 15 digits in one of them a short learning rate is the whole number, and strings of
 * version 5 have four digits. */
static void validate_digits_behind_a_long_preamble(void **state) {
    static const char *const dicts[] = {
        "{'loss': 0.7, 'grad_norm': 18.41716194152832, 'learning_rate': 5e-07, 'epoch': 0.5}\n",
        "{'loss': 0.7, 'grad_norm': 18.4, 'learning_rate': 5e-07, 'epoch': 0.5}\n",
        "{'loss': '0.7', 'grad_norm': '18.42', 'learning_rate': '5e-07', 'epoch': '0.5'}\n"};
    static const float quanta[] = {0.0f, 1e-7f, 1e-10f};
    (void)state;
    for (size_t i = 0; i < 2 * COUNT_OF(dicts); i++) {
        struct arena arena = ARENA_EMPTY;
        preamble(i % 2 == 0 ? 0 : 131971);
        add("%s", dicts[i / 2]);
        const struct log *log = logs_read(&arena, text, NULL);
        assert_string_equal(log->format, "hf-console");
        const struct log_column *rate = log_column_of(log, LOG_LR_LOGGED);
        assert_non_null(rate);
        if (rate->quantum[0] != quanta[i / 2])
            fail_msg("case %zu: quantum %g", i, (double)rate->quantum[0]);
        arena_close(&arena);
    }
}

/* What is likely at the beginning gives way to what is certain a little later. */
static void validate_a_surer_claim_later(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    used = 0;
    add("[Rank 0] step=10, skipped=0, lr=[1e-05], mom=[(0.9, 0.99)]\n");
    while (used < 70000)
        add("a line of a library that has much to say\n");
    add("{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': 0.5}\n");
    const struct log *log = logs_read(&arena, text, NULL);
    assert_string_equal(log->format, "hf-console");
    assert_true(logs_has_note(log, "rows of deepspeed were left out: 1"));
    assert_true(logs_has_note(log, "(--format deepspeed reads them)"));
    arena_close(&arena);
}

/* Bars that end in carriage returns hold no line end for more than a claim looks at. */
static void validate_bars_without_line_ends(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    used = 0;
    while (used < 131000)
        add(" 12%%|#2        | %zu/999999 [13:58:09<86:18:35, 1.44s/it]\r", used);
    add("%*s\r", 131050 - (int)used, "7/9"); /* the dict lies across byte 131072 */
    add("{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': 0.5}\r");
    while (used < 400000)
        add(" 12%%|#2        | %zu/999999 [13:58:09<86:18:35, 1.44s/it]\r", used);
    const struct log *log = logs_read(&arena, text, NULL);
    assert_string_equal(log->format, "hf-console");
    assert_int_equal(log->rows, 1);
    arena_close(&arena);
}

static void validate_refusals_name_what_is_close(void **state) {
    static const struct {
        const char *text, *words[3];
    } cases[] = {
        {"a job\niteration five / 10, loss: 3\niteration six / 10, loss: 2\n",
         {"the closest are megatron: line 2, \"iteration five / 10, loss: 3\", is not",
          "iteration N/ TOTAL | NAME: VALUE |", "--format NAME"}},
        {"Step 3 is done\nstep: twelve  loss: 3\nstep: thirteen\n",
         {"torchtitan: line 2, \"step: twelve  loss: 3\"", "torchtune: line 1, \"Step 3 is done\"",
          "twinstep list formats"}},
        {"{\"step\" 1}\n", {"read as JSON: test:1:9: expected ':'", "--format NAME", "\"step\" 1"}},
        {"{\"runs\": [1, 2]}\n", {"no object with numbers", "--format NAME", "runs"}},
        {"a\n 12%|#2   | 3/9 [00:10<01:30, 1.0it/s, loss=2.5]\n",
         {"line 2 is a progress bar with values (--map step=bar", "takes its count as the update)",
          "--format NAME"}},
        {"a job\nEpoch 1/20, Train Loss: 5.6780\nEpoch 2/20, Train Loss: 5.5\n",
         {"line 2 has values and counts \"Epoch\" (--map \"step=Epoch\" takes that",
          "--format NAME", "as the update)"}},
        {"step 1 loss 5,6780\nstep 2 loss 5,5326\n",
         {"line 1 has a comma where a decimal point is expected, \"loss\" 5,6780: sed -E",
          "makes points", "--format NAME"}},
        {"| Step | What to do |\n|---|---|\n| 1 | install |\n",
         {"table: line 2, \"|---|---|\", is not",
          "| Step | NAME | .. (--format table --map step=NAME", "--format NAME"}},
        /* PyTorch's MNIST and ImageNet; what they count is no update */
        {"Train Epoch: 1 [0/60000 (0%)]\tLoss: 2.5\nTrain Epoch: 1 [640/60000 (1%)]\tLoss: 2.25\n",
         {"line 1 counts samples of an epoch (\"Epoch: 1 [0/60000 (0%)]\") and says no update",
          "have the program print one beside the loss", "known format"}},
        {"Epoch: [0][1/16]\tTime 0.1 (0.2)\tLoss 2.5 (2.5)\nEpoch: [0][2/16]\tTime 0.1 (0.2)\tLoss "
         "2.25 (2.5)\n",
         {"line 1 counts batches of an epoch (\"Epoch: [0][1/16]\") and says no update",
          "(\"step 12\")", "known format"}},
        /* three bare numbers: torchtitan's, or a script's step, loss and LR */
        {"   1 3.9746 1.000e-03\n   2 3.9492 9.375e-04\n",
         {"line 1 has 3 numbers and no names: a first line of names with commas",
          "--format torchtitan-golden reads step, loss and gradient norm",
          "(with --map lr_logged=grad_norm the third is the learning rate)"}},
        {"# step loss lr\n1 0.5 2.5\n2 0.5 2.5\n",
         {"line 2 has 3 numbers and no names", "--format NAME", "known format"}},
        {"# of a run\n1 0.5 2.5 3.5\n",
         {"line 2 has 4 numbers and no names", "make a CSV of it; --format NAME", "known format"}},
        {"step: 1.5 loss: 2.5\nstep: 2.5 loss: 2.25\n",
         {"line 1 has a step that is no whole number (\"step\" 1.5)", "--format NAME",
          "known format"}},
        {"loss: 2.5\nloss: 2.25\n",
         {"line 1 has values (\"loss\") and says no step", "--format NAME", "known format"}},
        {"[12:00:01] hello\n", {"got \"[12:00:01] hello?\"; --format", "expected", "known format"}},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        const char *got = logs_refuse(&arena, cases[i].text, strlen(cases[i].text), NULL);
        for (size_t w = 0; w < 3; w++)
            if (strstr(got, cases[i].words[w]) == NULL)
                fail_msg("case %zu: expected \"%s\", got %s", i, cases[i].words[w], got);
        arena_close(&arena);
    }
}

/* Rows that are missing inside of a log are said; rows that thin out, and the few that somebody
 * pasted of a log, are not. */
/* llm.c prints the norm, the time and the tokens per second in every line. A line of another
 * program that has its step and loss is no row of llm.c. */
static void verify_what_llmc_prints(void **state) {
    static const char *const ends[] = {
        "",
        " | norm 1.5000 | lr 1.00e-04",
        " | norm 1.5000 | lr 1.00e-04 | 20.00 ms",
        " | lr 1.00e-04 | 20.00 ms | 61.1% bf16 MFU | 1234 tok/s",
        " | norm 1.5000 | 20.00 ms | 61.1% bf16 MFU | 1234 tok/s",
        " | norm 1.5000 (+nanz)| lr 1.00e-04 | 20.00 ms | 61.1% bf16 MFU | 1234 tok/s",
        " | norm 1.5000 | lr 1.00e-04 | (20.00 ms | 1234 tok/s)",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        struct arena arena = ARENA_EMPTY;
        used = 0;
        for (int step = 1; step <= 3; step++)
            add("step %4d/12 | loss %d.500000%s\n", step, step, ends[i]);
        const struct log *log = logs_read(&arena, text, NULL);
        assert_string_equal(log->format, i < 5 ? "key-value" : "llmc-console");
        assert_int_equal(log->rows, 3);
        assert_int_equal(log->max_steps, 12);
        logs_expect(log, "loss", 2, 3.5, 1e-6);
        arena_close(&arena);
    }
}

static void validate_gaps_are_said(void **state) {
    static const struct {
        size_t rows, every, missing_from, missing_to; /* rows that are left out */
        const char *note;                             /* NULL: none */
    } cases[] = {
        {60, 1, 20, 22,
         "are 1 update apart, but none stands between updates 20 and 23 (line 21; such"},
        {60, 10, 30, 40,
         "are 10 updates apart, but none stands between updates 300 and 410 (line 31"},
        {60, 10, 30, 31, NULL}, /* twice as far */
        {20, 1, 8, 12, NULL},   /* 15 distances */
        {60, 1, 60, 60, NULL},
    };
    struct arena arena = ARENA_EMPTY;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        used = 0;
        for (size_t row = 1; row <= cases[i].rows; row++)
            if (row <= cases[i].missing_from || row > cases[i].missing_to)
                add("step %zu loss %zu.5\n", row * cases[i].every, row % 7);
        const struct log *log = logs_read(&arena, text, NULL);
        if (logs_has_note(log, "none stands between") != (cases[i].note != NULL) ||
            (cases[i].note != NULL && !logs_has_note(log, cases[i].note)))
            fail_msg("case %zu: %s", i, log->note_count > 0 ? log->notes[0] : "no note");
    }
    arena_close(&arena);
}

/* Two trainings in one file: the rows of the other one are counted, and none of them is read. */
static void validate_rows_of_another_format_are_said(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log =
        logs_read(&arena,
                  "step:  1  loss:  8.04910  grad_norm:  1.2345  memory:  1.11GiB(1.2%)\n"
                  "{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': 0.5}\n"
                  "step:  2  loss:  8.04810  grad_norm:  1.2345  memory:  1.11GiB(1.2%)\n"
                  "{'eval_loss': 2.5, 'epoch': 0.5}\n"
                  "{'loss': 2.4, 'learning_rate': 1e-05, 'epoch': 0.5}\n",
                  "torchtitan");
    assert_int_equal(log->rows, 2);
    assert_true(logs_has_note(log, "rows of hf-console were left out: 2 "));
    log = logs_read(&arena,
                    "{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': 0.5}\n"
                    "{'eval_loss': 2.5, 'epoch': 0.5}\n"
                    "{'train_runtime': 2.5, 'train_loss': 0.5}\n",
                    NULL);
    assert_int_equal(log->rows, 1);
    assert_true(logs_has_note(log, "left out as no rows: 2 of an evaluation or a summary"));
    /* The Trainer's dicts have the losses, DeepSpeed's lines the updates and the skips. */
    log = logs_read(&arena,
                    "[2025-01-01 00:00:00,000] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, "
                    "skipped=1, lr=[1.5e-05], mom=[[0.9, 0.999]]\n"
                    "{'loss': 2.5, 'learning_rate': 1.5e-05, 'epoch': 0.5}\n"
                    "[2025-01-01 00:00:00,000] [INFO] [logging.py:96:log_dist] [Rank 0] step=20, "
                    "skipped=1, lr=[1.4e-05], mom=[[0.9, 0.999]]\n"
                    "{'loss': 2.4, 'learning_rate': 1.4e-05, 'epoch': 1.0}\n",
                    "hf-console");
    assert_int_equal(log->rows, 2);
    assert_true(logs_has_note(log, "rows of deepspeed were left out: 2, which say their update as "
                                   "the rows read here do not (--format deepspeed reads them)"));
    /* Lines of a loop of somebody's own, which say the update that the dicts do not; of two that
     * say none, or no loss, nothing is said, nor where the rows say their update themselves. */
    log = logs_read(&arena,
                    "step: 1 loss: 2.2 lr: 1e-4\n"
                    "{'loss': 2.5, 'learning_rate': 1.5e-05, 'epoch': 0.5}\n"
                    "step: 2 loss: 2.1 lr: 9e-5\n"
                    "lr: 9e-5 loss: 2.1\n"
                    "step: 2 seconds: 0.3\n"
                    "{'loss': 2.4, 'learning_rate': 1.4e-05, 'epoch': 1.0}\n",
                    "hf-console");
    assert_true(logs_has_note(log, "rows of key-value were left out: 2, which say their update as "
                                   "the rows read here do not (--format key-value reads them)"));
    log = logs_read(&arena,
                    "step: 1 loss: 2.2 lr: 1e-4\n"
                    "{'loss': 2.5, 'learning_rate': 1.5e-05, 'epoch': 0.5, 'step': 10}\n"
                    "step: 2 loss: 2.1 lr: 9e-5\n"
                    "{'loss': 2.4, 'learning_rate': 1.4e-05, 'epoch': 1.0, 'step': 20}\n",
                    "hf-console");
    assert_false(logs_has_note(log, "key-value"));
    arena_close(&arena);
}

/* ms-swift's dicts say the step and the total. */
/* Dicts of somebody's own loop, which say their step and no epoch, are no rows of the Trainer:
 * their step counts, and their loss is no mean. The Trainer's own with a step (its log history
 * printed) say an epoch. */
static void validate_dicts_of_others(void **state) {
    static const struct {
        const char *text, *format;
        int windowed;
    } cases[] = {
        {"INFO:train:{'step': 10, 'loss': 2.99, 'lr': 0.0001}\n"
         "INFO:train:{'step': 20, 'loss': 2.98, 'lr': 9.9e-05}\n",
         "key-value", 0},
        {"{'step': 10, 'loss': 2.99, 'learning_rate': 0.0001}\n"
         "{'step': 20, 'eval_loss': 3.0}\n"
         "{'step': 20, 'loss': 2.98, 'learning_rate': 9.9e-05}\n",
         "key-value", 0},
        {"{'loss': 2.99, 'learning_rate': 0.0001, 'epoch': 0.1, 'step': 10}\n"
         "{'loss': 2.98, 'learning_rate': 9.9e-05, 'epoch': 0.2, 'step': 20}\n",
         "hf-console", 1},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        const struct log *log = logs_read(&arena, cases[i].text, NULL);
        assert_string_equal(log->format, cases[i].format);
        assert_int_equal(log->step[log->rows - 1], 20);
        assert_int_equal(log_column_of(log, LOG_LOSS)->windowed, cases[i].windowed);
        arena_close(&arena);
    }
}

static void validate_the_step_of_a_dict(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    const struct log *log = logs_read(
        &arena,
        "{'loss': 1.69, 'learning_rate': 1e-05, 'global_step/max_steps': '5/873', 'epoch': 0.0}\n"
        "{'loss': 1.52, 'learning_rate': 2e-05, 'global_step/max_steps': '10/873', 'epoch': 0.1}\n",
        NULL);
    assert_false(log->step_guessed);
    assert_int_equal(log->step[1], 10);
    assert_int_equal(log->max_steps, 873);
    arena_close(&arena);
}

/* A log in a wrapping is refused by the name of the wrapping, whatever stands inside. */
static void validate_wrappings(void **state) {
    static const char line[] = "step: 1, loss: 0.5\nstep: 2, loss: 0.4\n";
    static char tar[1024];
    struct arena arena = ARENA_EMPTY;
    (void)state;
    memcpy(tar, "run.log", 7); /* POSIX ustar: a name, at 257 the magic, the file at 512 */
    memcpy(tar + 257, "ustar", 6);
    memcpy(tar + 512, line, sizeof line - 1);
    const struct {
        const char *bytes;
        size_t length;
        const char *error;
    } cases[] = {
        {"\xff\xfes\0t\0e\0p\0", 10, "got UTF-16"},
        {"\xfe\xff\0s\0t\0e\0p", 10, "got UTF-16"},
        {tar, sizeof tar, "got a tar archive"},
        {"PK\003\004\024\0\0\0", 8, "got a zip archive"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *said = logs_refuse(&arena, cases[i].bytes, cases[i].length, NULL);
        if (strstr(said, cases[i].error) == NULL)
            fail_msg("case %zu: expected \"%s\", got \"%s\"", i, cases[i].error, said);
    }
    arena_close(&arena);
}

/* Two runs of a Trainer in one console, which prints no step: the epoch tells. */
static void validate_two_runs_without_steps(void **state) {
    struct arena arena = ARENA_EMPTY;
    (void)state;
    used = 0;
    for (int run = 0; run < 2; run++)
        for (int k = 1; k <= 3; k++)
            add("{'loss': %d.5, 'grad_norm': 1.0, 'learning_rate': 1e-05, 'epoch': 0.%d}\n", k, k);
    const struct log *log = logs_read(&arena, text, NULL);
    assert_int_equal(log->rows, 6);
    assert_true(logs_has_note(log, "the epoch falls back 1 time, first in line 4"));
    text[used / 2] = '\0'; /* the first run alone */
    assert_false(logs_has_note(logs_read(&arena, text, NULL), "falls back"));
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_rows_behind_a_long_preamble),
        cmocka_unit_test(validate_digits_behind_a_long_preamble),
        cmocka_unit_test(validate_a_surer_claim_later),
        cmocka_unit_test(validate_bars_without_line_ends),
        cmocka_unit_test(verify_what_llmc_prints),
        cmocka_unit_test(validate_gaps_are_said),
        cmocka_unit_test(validate_refusals_name_what_is_close),
        cmocka_unit_test(validate_rows_of_another_format_are_said),
        cmocka_unit_test(validate_wrappings),
        cmocka_unit_test(validate_two_runs_without_steps),
        cmocka_unit_test(validate_the_step_of_a_dict),
        cmocka_unit_test(validate_dicts_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
