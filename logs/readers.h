/* SPDX-License-Identifier: Apache-2.0
 * The table of readers. A format is one row of LOG_READERS and one file
 * logs/readers/read_<format>.c that defines log_reader_<symbol>; import and the list of formats
 * follow from it. Private to logs/.
 *
 * Order decides between equal claims: the narrower format stands first. */
#ifndef TWINSTEP_LOGS_READERS_H
#define TWINSTEP_LOGS_READERS_H

#include "logs/reader.h"

/* ROW(symbol, "name", "title") */
#define LOG_READERS(ROW)                                                                           \
    ROW(trace, "trace", "twinstep trace")                                                          \
    ROW(trainer_state, "hf-trainer-state", "Hugging Face trainer_state.json")                      \
    ROW(megatron_golden, "megatron-golden", "Megatron golden values, JSON")                        \
    ROW(nemo_rl, "nemo-rl", "NeMo-RL metrics, JSON of tags and steps")                             \
    ROW(llama_factory, "llama-factory", "LLaMA-Factory trainer_log.jsonl")                         \
    ROW(wandb_jsonl, "wandb-jsonl", "Weights & Biases history as JSON")                            \
    ROW(torchtune_jsonl, "torchtune-jsonl", "torchtune metric log, JSONL")                         \
    ROW(olmo_metrics, "olmo-core-metrics", "OLMo-core metrics.json")                               \
    ROW(jsonl, "jsonl", "JSON objects, one per row")                                               \
    ROW(tensorboard, "tensorboard", "TensorBoard event files")                                     \
    ROW(wandb_run, "wandb-run", "W&B run file (.wandb)")                                           \
    ROW(swanlab, "swanlab", "SwanLab run file (.swanlab)")                                         \
    ROW(mlflow, "mlflow", "MLflow metric files")                                                   \
    ROW(mlflow_db, "mlflow-db", "MLflow database")                                                 \
    ROW(trackio, "trackio", "Trackio database")                                                    \
    ROW(hf_console, "hf-console", "Hugging Face Trainer console")                                  \
    ROW(megatron, "megatron", "Megatron-LM console")                                               \
    ROW(nemo, "nemo", "NeMo 2 console")                                                            \
    ROW(torchtitan, "torchtitan", "torchtitan console")                                            \
    ROW(torchtitan_golden, "torchtitan-golden", "torchtitan golden loss text")                     \
    ROW(torchtune, "torchtune", "torchtune text log")                                              \
    ROW(olmo_core, "olmo-core", "OLMo-core console")                                               \
    ROW(open_instruct, "open-instruct", "open-instruct console")                                   \
    ROW(verl, "verl", "verl console")                                                              \
    ROW(nemo_rl_console, "nemo-rl-console", "NeMo-RL console")                                     \
    ROW(composer, "composer", "Composer console")                                                  \
    ROW(llmc, "llmc", "llm.c main.log")                                                            \
    ROW(llmc_console, "llmc-console", "llm.c console")                                             \
    ROW(deepspeed, "deepspeed", "DeepSpeed progress lines")                                        \
    ROW(lightning, "lightning", "Lightning metrics.csv")                                           \
    ROW(wandb_csv, "wandb-csv", "W&B history as CSV")                                              \
    ROW(csv, "csv", "CSV or TSV with a header (--map)")                                            \
    ROW(key_value, "key-value", "lines of names and numbers (--map)")                              \
    ROW(table, "table", "tables of bars, as Markdown has them (--map)")

#define LOG_READER_EXTERN(symbol, name, title) extern const struct log_reader log_reader_##symbol;
LOG_READERS(LOG_READER_EXTERN)
#undef LOG_READER_EXTERN

struct log_reader_row {
    const char *name;
    const struct log_reader *reader;
};
/* Ends with a row whose name is NULL. */
const struct log_reader_row *log_readers(void);

#endif
