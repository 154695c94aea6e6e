/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Lines of real logs that strangers pasted into public threads, or that a project keeps, and logs
 * put together from a tool's own tests and pages (tests/logs/real, whose README says where): which
 * reader takes each, its rows, steps, columns, and how exact they are. */
#include "tests/logs/helper_logs.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "logs/readers.h"
#include "tests/logs/helper_fixture.h"

struct rebuilt {
    const char *file, *format;
    size_t rows;
    int64_t first, last;     /* step of the first and of the last row; 0: none */
    uint64_t total;          /* 0: the log does not say */
    const char *loss, *rate; /* sources; NULL: none */
    double loss_value, loss_quantum, rate_value, rate_quantum; /* of the last row */
    const char *note;                                          /* NULL: no note is asked for */
};

static const struct rebuilt table[] = {
    {"alpaca-534.txt", "hf-console", 1, 380, 380, 2724, "loss", "learning_rate", 2.0491, 1e-4,
     0.0001961913563176343, 0.0, "1 of these lines stand behind the last row"},
    {"bionemo-740.txt", "nemo", 3, 121, 126, 150, "reduced_train_loss", "lr", 1.34, 1e-3, 3e-5,
     1e-8, NULL},
    {"caikit-208.jsonl", "jsonl", 2, 1, 2, 0, NULL, NULL, 0, 0, 0, 0, NULL},
    {"fms-hf-tuning-22.jsonl", "jsonl", 3, 5, 15, 0, NULL, NULL, 0, 0, 0, 0, NULL},
    {"composer-aws-mpt.txt", "composer", 1, 1, 1, 300000000, "loss/train/total", NULL, 12.0, 1e-4,
     0, 0, NULL},
    {"composer-rocm-mpt.txt", "composer", 2, 3, 5, 0, "loss/train/total",
     "lr-DecoupledAdamW/group0", 8.4213, 1e-4, 0.0, 1e-4, NULL},
    {"cpm-11.txt", "key-value", 4, 20, 60, 3402, "lm loss", "learning rate", 6.40855, 1e-5, 3e-6,
     1e-6, NULL},
    {"deepspeed-1825.txt", "deepspeed", 3, 40, 60, 0, NULL, "lr", 0, 0, 5e-05, 0.0, NULL},
    {"deepspeed-3742.txt", "megatron", 2, 34, 35, 10000, "lm_loss", "learning rate", 11.17802, 1e-5,
     2.173e-6, 1e-9, "rows of deepspeed were left out: 1"},
    {"deepspeed-931.txt", "deepspeed", 2, 10, 20, 0, NULL, "lr", 0, 0, 1.3509999999999998e-06, 0.0,
     "6 lines say that an update was skipped"},
    {"edullm-platform.txt", "olmo-core", 2, 100, 200, 2000, "train/CE loss", NULL, 5.8817, 1e-4, 0,
     0, NULL},
    {"liger-110.txt", "hf-console", 2, 1, 2, 0, "loss", "learning_rate", 74.5029, 1e-4,
     9.729086208503174e-06, 0.0, NULL},
    {"litgpt-1110.txt", "key-value", 3, 961, 965, 0, "loss train", NULL, 1.182, 1e-3, 0, 0, NULL},
    {"llmc-796.txt", "llmc-console", 3, 61, 63, 74, "loss", "lr", 3.402215, 1e-6, 3e-4, 1e-6, NULL},
    {"maxtext-2232.txt", "key-value", 2, 8, 9, 0, "loss", NULL, 10.374, 1e-3, 0, 0, NULL},
    {"maxtext-8.txt", "key-value", 3, 15107, 15109, 0, "loss", NULL, 2.191, 1e-3, 0, 0, NULL},
    {"megatron-lm-756.txt", "megatron", 2, 43, 44, 100, "lm loss", "learning rate", 1.875063, 1e-6,
     8.8e-6, 1e-12, NULL},
    {"megatron-llm-11.txt", "megatron", 3, 201, 203, 250000, "lm loss", "learning rate", 2.38362,
     1e-6, 1.522e-5, 1e-8, NULL},
    {"modula-1.txt", "key-value", 3, 10, 30, 0, "train loss", NULL, 2.64, 1e-2, 0, 0, NULL},
    {"ms-swift-4146.txt", "hf-console", 2, 12, 13, 94, "loss", "learning_rate", 0.42675275, 1e-8,
     9.9e-7, 1e-8, NULL},
    {"mlx-lm-6.txt", "key-value", 4, 1, 30, 0, "Train loss", "Learning Rate", 0.072, 1e-3, 1e-5,
     1e-8, NULL},
    {"nanochat-242.txt", "key-value", 2, 1, 2, 21400, "loss", NULL, 11.080355, 1e-6, 0, 0, NULL},
    {"nemo-10128.txt", "nemo", 3, 1, 3, 10, "reduced_train_loss", "lr", 9.21, 1e-3, 6e-4, 1e-7,
     NULL},
    {"nemo-rl-1052.txt", "nemo-rl-console", 2, 1, 2, 2, "Loss", NULL, 0.0981, 1e-4, 0, 0, NULL},
    {"nanogpt-110.txt", "key-value", 3, 1631, 1633, 0, "loss", NULL, 3.9848, 1e-4, 0, 0, NULL},
    {"nanogpt-705.txt", "key-value", 5, 1, 31, 0, "loss", NULL, 2.6216, 1e-4, 0, 0,
     "its least step is 0"},
    {"olmo-692.txt", "olmo-core", 2, 1, 2, 739328, "train/CrossEntropyLoss", NULL,
     1.7872662283480167e-06, 0.0, 0, 0, NULL},
    {"open-llama-63.json", "hf-trainer-state", 2, 10, 20, 750, "loss", "learning_rate", 1.0258,
     1e-4, 2e-4, 0.0, NULL},
    {"pink-6.txt", "hf-console", 4, 1, 4, 0, "loss", "learning_rate", 0.0, 1e-4,
     0.00014285714285714284, 0.0, NULL},
    {"prime-57.txt", "verl", 1, 3, 3, 0, "actor/pg_loss", "actor/lr(1e-4)", -0.65, 1e-3,
     0.005 * 1e-4, 1e-3 * 1e-4, NULL},
    {"prime-rl-1630.txt", "key-value", 2, 5, 6, 0, NULL, NULL, 0, 0, 0, 0, NULL},
    {"prime-rl-999.txt", "key-value", 3, 1, 5, 0, "Loss", "LR", 12.2812, 1e-4, 1e-6, 1e-8, NULL},
    {"prorl-40.txt", "key-value", 2, 1, 28, 0, "train/loss", "train/lr-pg_0", 0.1451725959777832,
     0.0, 1e-7, 1e-7, NULL},
    {"squad-1107.txt", "key-value", 3, 2872, 2972, 0, NULL, "learning_rate", 0, 0,
     1.523565948118378e-05, 0.0, NULL},
    {"tensorflow-2980.txt", "key-value", 3, 1, 5, 0, "loss", NULL, 62.5264, 1e-4, 0, 0,
     "values that a step shows twice, and equally: 2"},
    {"torchtitan-2389.txt", "torchtitan", 3, 4, 5, 0, "loss", NULL, 7.07623, 1e-5, 0, 0,
     "1 row has the step of the row before"},
    {"torchtitan-3393.txt", "torchtitan", 2, 14, 15, 0, "loss", NULL, 3.1068, 1e-5, 0, 0, NULL},
    {"torchtitan-950.txt", "torchtitan", 3, 22, 24, 0, "loss", NULL, 6.1861, 1e-4, 0, 0, NULL},
    {"torchtune-1358.txt", "torchtune", 3, 1, 3, 0, "loss", "lr", 1.1732845306396484, 0.0, 2e-5,
     0.0, NULL},
    {"torchtune-640.txt", "torchtune", 3, 1, 3, 0, "loss", "lr", 0.9040272831916809, 0.0, 2e-5, 0.0,
     "its least step is 0"},
    {"transformers-14531.txt", "hf-console", 5, 1, 5, 0, "loss", "learning_rate", 0.0, 1e-4, 0.001,
     1e-3, "rows of deepspeed were left out: 1"},
    {"trl-570.txt", "hf-console", 2, 1, 2, 0, "loss", "learning_rate", 0.8165, 1e-4, 3.8e-05, 0.0,
     NULL},
    {"trl-3452.txt", "hf-console", 2, 1, 2, 0, "loss", "learning_rate", 0.0, 1e-4,
     6.708333333333333e-06, 0.0, NULL},
    {"verl-2060.txt", "verl", 2, 0, 1, 0, "actor/pg_loss", "actor/lr", 0.001, 1e-3, 0.0, 1e-3,
     "1 rows stand before the first update"},
    {"nanotron-23.txt", "key-value", 2, 991, 992, 0, "lm_loss", "lr", 9.69, 1e-2, 1e-5, 1e-5, NULL},
    {"fairseq-940.txt", "key-value", 5, 445, 645, 0, "loss", "lr", 10.902, 1e-3, 0.000129084, 1e-9,
     NULL},
    {"megatron-bridge-4024.txt", "megatron", 2, 2, 3, 6069, "lm loss", "learning rate", 1.453781,
     1e-6, 6e-6, 1e-12, NULL},
    {"megatron-deepspeed-396.txt", "megatron", 2, 5426, 5427, 250000, NULL, "learning rate", 0, 0,
     2.999e-4, 1e-7, NULL},
    {"axolotl-3196.txt", "hf-console", 2, 1, 2, 0, "loss", "learning_rate", 2.0312, 1e-4,
     4.956766880907269e-06, 0.0, NULL},
    {"llama-factory-3529.txt", "hf-console", 2, 1, 2, 0, "loss", "learning_rate", 1.7129, 1e-4,
     2.533998872403775e-05, 0.0, NULL},
    {"llm-kittens.txt", "llmc-console", 3, 1, 3, 10, "loss", "lr", 10.811316, 1e-6, 2.57e-6, 1e-8,
     NULL},
    {"llmc-modded-nanogpt.txt", "llmc", 3, 1, 3, 0, "trl", "lr", 10.8556, 1e-4, 3e-6, 1e-6, NULL},
    {"llmc-gpt2-124m-cuda.txt", "llmc", 4, 249, 252, 0, "trl", "lr", 6.1885, 1e-4, 2.16e-4, 1e-6,
     NULL},
    {"whisperv2-flemish.json", "hf-trainer-state", 5, 800, 1100, 15000, "loss", "learning_rate",
     0.1774, 1e-4, 9.589655172413795e-06, 0.0, "by transformers before 4.50"},
    {"viettel-race.json", "hf-trainer-state", 3, 1, 3, 1028, "loss", "learning_rate",
     1.3843210935592651, 0.0, 4e-05, 0.0, NULL},
    {"gen-dino.csv", "csv", 4, 500, 2000, 0, "loss", "learn_rate", 0.1506562, 1e-7, 0.004, 1e-3,
     NULL},
    {"personaplex.csv", "csv", 7, 820, 840, 0, NULL, "lr", 0, 0, 3.606e-05, 1e-8, "resumed"},
    {"rfllm.csv", "csv", 4, 1, 4, 0, NULL, "lr", 0, 0, 0.001, 1e-6, "rows are numbered from 1"},
    {"lora-medical.jsonl", "jsonl", 4, 380, 778, 0, "loss", "learning_rate", NAN, NAN, NAN, NAN,
     NULL},
    {"tinker-cookbook.jsonl", "jsonl", 3, 1, 3, 0, NULL, "optim/lr", 0, 0, 4e-05, 1e-5,
     "its least step is 0"},
    {"llama-factory-774.jsonl", "llama-factory", 3, 3220, 3235, 3235, "loss", "learning_rate", NAN,
     NAN, NAN, NAN, NULL},
    {"llama-factory-4350.jsonl", "llama-factory", 3, 43, 45, 82, "loss", "learning_rate", 0.567,
     1e-4, 6.496815614866791e-06, 0.0, NULL},
    {"llama2c-461.txt", "key-value", 4, 490, 520, 0, "loss", "lr", 5.6863, 1e-4, 4.999756e-05,
     1e-11, NULL},
    {"modded-llama2-10.txt", "key-value", 3, 1, 21, 0, "loss", "lr", 7.5, 1e-4, 3e-4, 1e-10,
     "its least step is 0"},
    {"pith-train-7.txt", "key-value", 3, 1, 3, 15, "cross-entropy-loss", "learning-rate", 2.652,
     1e-4, 1e-6, 1e-12, NULL},
    {"transformer-xl-69.txt", "key-value", 4, 48000, 48600, 0, "loss", "lr", 4.17, 1e-2, 2.44e-4,
     1e-6, NULL},
    {"fastfold-138.txt", "key-value", 2, 1, 2, 0, NULL, NULL, 0, 0, 0, 0,
     "say no step and were left out: 2, the first is line 3"},
    {"paddleocr-kie.txt", "key-value", 2, 10, 19, 0, "loss", "lr", 1.461939, 1e-6, 1.8e-05, 1e-6,
     NULL},
    {"transformers-33336.txt", "hf-console", 3, 1, 3, 0, "loss", "learning_rate", 1.4152, 1e-4,
     4.047619047619048e-05, 0.0, NULL},
    {"nemo-platform-943.txt", "nemo-rl-console", 1, 2, 2, 2, "loss", NULL, 0.6931, 1e-4, 0, 0,
     NULL},
    {"megatron-345m-list.json", "megatron-golden", 10, 1, 46, 0, "lm loss", NULL, 9.81733, 1e-5, 0,
     0, "1 single numbers"},
    {"megatron-345m-dict.json", "megatron-golden", 6, 1, 50, 0, "lm loss", NULL, 9.8871, 1e-5, 0, 0,
     NULL},
    {"torchtitan-losses-rocm.txt", "torchtitan-golden", 5, 1, 5, 0, "loss", NULL, 5.5301, 1e-4, 0,
     0, NULL},
    {"torchtitan-losses-sft.txt", "torchtitan-golden", 4, 1, 4, 0, "loss", NULL, 4.5183095932006836,
     0.0, 0, 0, NULL},
    {"torchtitan-losses-grpo.txt", "torchtitan-golden", 4, 1, 10, 0, "loss", NULL,
     7.689421909162775e-05, 0.0, 0, 0, NULL},
    {"mlflow-image-class", "mlflow", 1, 1, 1, 0, NULL, NULL, 0, 0, 0, 0, "its least step is 0"},
    {"mlflow-deepcnn", "mlflow", 1, 1, 1, 0, NULL, NULL, 0, 0, 0, 0, "its least step is 0"},
    {"mlops-lab9.db", "mlflow-db", 1, 1, 1, 0, NULL, NULL, 0, 0, 0, 0, "it holds 3 runs"},
    {"table-financegpt.md", "table", 4, 50, 336, 0, "Training Loss", NULL, 0.204, 1e-3, 0, 0, NULL},
    {"table-hausa.md", "table", 3, 500, 1500, 0, "Training Loss", NULL, 0.3322, 1e-4, 0, 0, NULL},
    {"table-mamba.md", "table", 4, 625, 2500, 0, "Training Loss", NULL, 0.0167, 1e-4, 0, 0, NULL},
    {"ml-ops.db", "mlflow-db", 1, 1, 1, 0, NULL, NULL, 0, 0, 0, 0, NULL},
};

/* Put together from the tests, pages and format strings of the tool itself. */
static const struct rebuilt of_tools[] = {
    {"table-model-card.md", "table", 4, 250, 1000, 0, "Training Loss", NULL, 3.1, 1e-4, 0, 0, NULL},
    /* binary32 has 24 bits: its spacing is 2^-14 at 821, 2^-24 at 0.69, 2^-47 at 1e-7 */
    {"nemo-rl-testing.json", "nemo-rl", 3, 1, 9, 0, "train/loss", NULL, 821.1953735351562, 0x1p-14,
     0, 0, NULL},
    {"nemo-rl-dump.json", "nemo-rl", 2, 1, 2, 0, "train/loss", "train/lr", 0.6874094605445862,
     0x1p-24, 1.0000000116860974e-07, 0x1p-47, NULL},
    {"torchtune-jsonl-full.jsonl", "torchtune-jsonl", 3, 1, 3, 0, "loss", "lr", 1.4972190856933594,
     0.0, 2e-05, 1e-5, NULL},
    {"torchtune-jsonl-dpo.jsonl", "torchtune-jsonl", 2, 1, 2, 0, "loss", "lr", 0.6895127296447754,
     0.0, 1.0000000000000002e-05, 0.0, NULL},
    {"open-instruct-sft.txt", "open-instruct", 3, 1, 3, 0, "Loss", "LR", 1.2749108076095581, 0.0,
     5e-06, 0.0, NULL},
    {"open-instruct-dpo.txt", "open-instruct", 2, 4, 8, 0, "Loss", "LR", 0.6690027117729187, 0.0,
     3.6666666666666666e-07, 0.0, NULL},
    {"wandb-guide-frame.csv", "wandb-csv", 3, 1, 3, 0, "loss", NULL, 0.79, 1e-3, 0, 0,
     "W&B's own counter"},
    {"wandb-chart.csv", "wandb-csv", 3, 10, 30, 0, "train/loss", NULL, 1.498, 1e-4, 0, 0,
     "\"bright-lake-7\" was read"},
    {"wandb-guide-records.json", "wandb-jsonl", 3, 1, 3, 0, "loss", NULL, NAN, NAN, 0, 0,
     "W&B's own counter"},
    {"wandb-scan.jsonl", "wandb-jsonl", 4, 1, 3, 0, "train/loss", "train/learning_rate", 2.3405,
     1e-4, 8e-06, 1e-6, "1 row has the step of the row before"},
    {"wandb-old-resumed.wandb", "wandb-run", 3, 5, 7, 0, "train/loss", "train/learning_rate",
     1.9844, 1e-4, 3e-05, 1e-5, "W&B's own counter"},
    {"wandb-new-explicit.wandb", "wandb-run", 3, 1, 11, 0, "train/loss", "train/learning_rate",
     2.0625, 1e-4, 2e-05, 1e-5, "its least step is 0"},
    {"trackio-project-column.db", "trackio", 3, 1, 3, 0, "train/loss", "train/learning_rate",
     1.9844, 1e-4, 3e-05, 1e-5, "counts calls of log"},
    {"trackio-basic.db", "trackio", 2, 1, 3, 0, "loss", NULL, 0.2, 0.1, 0, 0, NULL},
};

static void check_column(const struct log *log, enum log_name name, const char *source,
                         double value, double quantum) {
    const struct log_column *column = log_column_of(log, name);
    if ((column == NULL) != (source == NULL))
        fail_msg("%s: %s", log->path, column == NULL ? "no such column" : column->source);
    if (column == NULL) return;
    assert_string_equal(column->source, source);
    logs_expect(log, source, log->rows - 1, value, quantum);
}

/* Run files and databases have bytes of 0, and are read from where they lie. */
static const struct log *read_rebuilt(struct arena *arena, const char *name) {
    const struct fixture f = fixture_read(arena, name);
    if (memchr(f.bytes, 0, f.length) == NULL) {
        f.bytes[f.length] = '\0';
        return logs_read(arena, f.bytes, NULL);
    }
    char path[512];
    struct log_options options;
    struct log *log;
    log_options_init(&options);
    snprintf(path, sizeof path, TWINSTEP_SOURCE_DIR "/tests/%s", name);
    if (log_import(path, &options, arena, &log) != STATUS_OK)
        fail_msg("%s: %s", path, status_text());
    return log;
}

static void check(const struct rebuilt *r) {
    struct arena arena = ARENA_EMPTY;
    char name[256];
    snprintf(name, sizeof name, "logs/real/%s", r->file);
    const struct log *log = read_rebuilt(&arena, name);
    if (strcmp(log->format, r->format) != 0 || log->rows != r->rows)
        fail_msg("%s: read as %s with %zu rows", r->file, log->format, log->rows);
    if (log->step[0] != r->first || log->step[log->rows - 1] != r->last ||
        log->max_steps != r->total)
        fail_msg("%s: steps %d to %d of %d", r->file, (int)log->step[0],
                 (int)log->step[log->rows - 1], (int)log->max_steps);
    check_column(log, LOG_LOSS, r->loss, r->loss_value, r->loss_quantum);
    check_column(log, LOG_LR_LOGGED, r->rate, r->rate_value, r->rate_quantum);
    if (r->note != NULL && !logs_has_note(log, r->note))
        fail_msg("%s: no \"%s\"", r->file, r->note);
    arena_close(&arena);
}

static void validate_rebuilt_logs(void **state) {
    size_t files = 0;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(table); i++)
        check(&table[i]);
    for (size_t i = 0; i < COUNT_OF(of_tools); i++)
        check(&of_tools[i]);
    DIR *folder = opendir(TWINSTEP_SOURCE_DIR "/tests/logs/real");
    assert_non_null(folder);
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
        files += entry->d_name[0] != '.' && strcmp(entry->d_name, "README.md") != 0;
    closedir(folder);
    assert_int_equal(files, COUNT_OF(table) +
                                COUNT_OF(of_tools)); /* a file without a row proves nothing */
}

/* ---- what docs/LOGS.md says of each reader ---- */

/* Counts the files below tests/golden/logs/<library>/<run>/ that each reader takes. The run folders
 * hold logs beside notes of ours. */
static void count_golden(size_t *counts, const char *path, int depth) {
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char below[1024];
        if (entry->d_name[0] == '.' || strstr(entry->d_name, "truth") != NULL) continue;
        snprintf(below, sizeof below, "%.700s/%.300s", path, entry->d_name);
        if (depth > 0) {
            DIR *is_folder = opendir(below);
            if (is_folder == NULL) continue;
            closedir(is_folder);
            count_golden(counts, below, depth - 1);
            continue;
        }
        struct arena arena = ARENA_EMPTY;
        struct log_options options;
        struct log *log;
        log_options_init(&options);
        if (log_import(below, &options, &arena, &log) != STATUS_OK)
            fail_msg("%s: %s", below, status_text());
        for (size_t i = 0; log_readers()[i].name != NULL; i++)
            counts[i] += strcmp(log->format, log_readers()[i].name) == 0;
        arena_close(&arena);
    }
    closedir(folder);
}

/* The row of each reader must say how many logs the table above has, strangers' and put together
 * from the tool's own texts, and how many the real libraries wrote; of run files and databases,
 * which stand among the fixtures, there is one each, and two of SwanLab; and two tables of Aim. */
static void validate_the_table_of_the_page(void **state) {
    static const char *const fixtures[] = {"wandb-run", "swanlab", "swanlab", "mlflow",
                                           "mlflow-db", "trackio", "csv",     "csv"};
    size_t golden[64] = {0};
    char *page = NULL;
    size_t room = 0;
    (void)state;
    FILE *file = fopen(TWINSTEP_SOURCE_DIR "/docs/LOGS.md", "r");
    assert_non_null(file);
    assert_true(getdelim(&page, &room, '\0', file) > 0);
    fclose(file);
    count_golden(golden, TWINSTEP_SOURCE_DIR "/tests/golden/logs", 2);
    for (size_t i = 0; log_readers()[i].name != NULL; i++) {
        const char *const name = log_readers()[i].name;
        size_t pasted = 0, of_tool = 0;
        char row[128];
        for (size_t r = 0; r < COUNT_OF(table); r++)
            pasted += strcmp(table[r].format, name) == 0;
        for (size_t r = 0; r < COUNT_OF(of_tools); r++)
            of_tool += strcmp(of_tools[r].format, name) == 0;
        for (size_t f = 0; f < COUNT_OF(fixtures); f++)
            golden[i] += strcmp(fixtures[f], name) == 0;
        snprintf(row, sizeof row, "\n| `%s` | %zu | %zu | %zu |\n", name, pasted, of_tool,
                 golden[i]);
        if (strstr(page, row) == NULL) fail_msg("docs/LOGS.md: expected the row%s", row);
    }
    free(page);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_rebuilt_logs),
                                       cmocka_unit_test(validate_the_table_of_the_page)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
