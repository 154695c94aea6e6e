/* SPDX-License-Identifier: Apache-2.0
 * The shipped contracts as data. Each row repeats what docs/LR.md says of it, with how well it is
 * known. A new framework is one row here; a new schedule is a file of its own. Invariant: names and
 * aliases are unique, and every default schedule is found in its family. */
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "sched/contract.h"

/* Files and commits that the rows were read from. */
#define HF "transformers trainer.py@000945a9"
#define ACCELERATE "accelerate scheduler.py, optimizer.py@16cb6eb8"
#define OLMO "OLMo-core optim/scheduler.py, train/trainer.py@fa6c5014c"
#define OPEN_INSTRUCT "open-instruct@e6c3044aa"
#define MEGATRON "Megatron-LM core/optimizer_param_scheduler.py@d98e8a64d"
#define BRIDGE "Megatron-Bridge training/train.py, config.py@067f987d"
#define LIGHTNING "Lightning loops/training_epoch_loop.py@7f0c3436"
#define TORCHTUNE "torchtune training/lr_schedulers.py and recipes@bd2a0fc7"
#define TORCHTITAN "torchtitan components/optimizer/lr_scheduler.py@b5bcd76c"
#define NEMO_RL "NeMo-RL models/policy/workers@7ea279ab"
#define DEEPSPEED "DeepSpeed runtime/engine.py, lr_schedules.py@614e3f17"
#define LLMC "llm.c llmc/schedulers.h, train_gpt2.cu@f1e2ace6"
#define VEOMNI "VeOmni optim/lr_scheduler.py, arguments_types.py@d9774494"
#define OLMO_FLOOR                                                                                 \
    { "olmo-core.linear", "min_lr_ratio", "0" }

/* What rows have in common. Hugging Face's schedules, the linear one by default; OLMo-core's own
 * trainer; open-instruct's repairs, which step first and then set the rate; DeepSpeed's own
 * schedules; and Megatron's counter of samples, whose warm-up is never rounded. */
#define HF_LINEAR .family = "hf", .default_schedule = "linear"
#define OLMO_CORE                                                                                  \
    .family = "olmo-core", .default_schedule = "linear", .preset = OLMO_FLOOR, .offset = 1,        \
    .start = CONTRACT_START_NONE, .on_skip = CONTRACT_SKIP_ADVANCE,                                \
    .warmup_rule = CONTRACT_ROUND_HALF_EVEN, .epoch_rule = CONTRACT_EPOCH_NONE,                    \
    .evidence = CONTRACT_RUN
#define WHOLE_BATCHES                                                                              \
    .on_skip = CONTRACT_SKIP_ADVANCE, .warmup_rule = CONTRACT_ROUND_FLOOR,                         \
    .epoch_rule = CONTRACT_EPOCH_FLOOR, .drop_last = 1
#define STEP_THEN_SET                                                                              \
    .family = "olmo-core", .default_schedule = "linear", .preset = OLMO_FLOOR, WHOLE_BATCHES,      \
    .logged = CONTRACT_LOGGED_NEXT, .evidence = CONTRACT_DERIVED
#define DEEPSPEED_OWN                                                                              \
    .family = "deepspeed", .offset = -1, .warmup_rule = CONTRACT_ROUND_CEIL,                       \
    .epoch_rule = CONTRACT_EPOCH_NONE, .logged = CONTRACT_LOGGED_NEXT, .evidence = CONTRACT_RUN
#define MEGATRON_SAMPLES                                                                           \
    .family = "megatron", .default_schedule = "linear", .unit = CONTRACT_UNIT_SAMPLE,              \
    .epoch_rule = CONTRACT_EPOCH_NONE

/* A row names what differs from this: f(0) before the first call, one counter unit per update, held
 * when an update is skipped, a warm-up that is not rounded, ceil(b / a) updates per epoch, a log of
 * the rate that was used, and a row that was read but not run. */
static const struct contract contracts[] = {
    {.name = "hf",
     .alias = "trl",
     HF_LINEAR,
     .warmup_rule = CONTRACT_ROUND_CEIL,
     .evidence = CONTRACT_RUN,
     .help = "Hugging Face Trainer and TRL since 4.52: step, log, then schedule; one counter step "
             "per update",
     .source = HF "; 4.52.4 to 4.57.1 and 5.23.0 ran"},
    {.name = "hf-4.50",
     .alias = "trl-4.50",
     HF_LINEAR,
     .warmup_rule = CONTRACT_ROUND_CEIL,
     .epoch_rule = CONTRACT_EPOCH_FLOOR,
     .logged = CONTRACT_LOGGED_NEXT,
     .evidence = CONTRACT_RUN,
     .help = "Trainers up to 4.50: the log shows the LR of the next update, and only whole "
             "accumulation windows count into the total",
     .source = "transformers Trainer of 4.36.2 to 4.50.3 ran; #33455, #36297, #31677"},
    {.name = "hf-4.51",
     .alias = "hf-old-floor",
     HF_LINEAR,
     .warmup_rule = CONTRACT_ROUND_CEIL,
     .epoch_rule = CONTRACT_EPOCH_FLOOR,
     .evidence = CONTRACT_RUN,
     .bug = 1,
     .help = "Trainer 4.51: the log shows the LR that was used, but still only whole accumulation "
             "windows count: the total is short by up to one update per epoch",
     .source = "transformers Trainer of 4.51.3 ran; #33455, #36297, #31677"},
    {.name = "hf-x-processes",
     HF_LINEAR,
     .unit = CONTRACT_UNIT_PROCESS,
     .warmup_rule = CONTRACT_ROUND_CEIL,
     .logged = CONTRACT_LOGGED_NEXT,
     .evidence = CONTRACT_DERIVED,
     .bug = 1,
     .help = "Trainers that passed the scheduler through accelerator.prepare: P counter steps per "
             "update, nothing rescaled",
     .source = "transformers#23986, fixed by #24088; neither 4.29.2 nor 4.30.0 has it"},
    {.name = "accelerate",
     HF_LINEAR,
     .unit = CONTRACT_UNIT_PROCESS,
     .warmup_rule = CONTRACT_ROUND_FLOOR,
     .logged = CONTRACT_LOGGED_NEXT,
     .evidence = CONTRACT_RUN,
     .scaled = 1,
     .help = "Accelerate, split_batches=False: P counter steps per update; total and warm-up must "
             "be multiplied by P (--rescaled none, total and warmup are the slips)",
     .source = ACCELERATE "; 1.15.0 ran"},
    {.name = "accelerate-split-batches",
     HF_LINEAR,
     .warmup_rule = CONTRACT_ROUND_FLOOR,
     .logged = CONTRACT_LOGGED_NEXT,
     .evidence = CONTRACT_RUN,
     .help = "Accelerate, split_batches=True: one counter step per update",
     .source = ACCELERATE "; 1.15.0 ran"},
    {.name = "olmo-core",
     OLMO_CORE,
     .help = "OLMo-core: the step is counted first, then the LR is set, then the optimizer steps; "
             "linear falls to 0 (--min-lr-ratio 0.1 is the class's own alpha_f)",
     .source = OLMO "; 3.0.0 ran"},
    {.name = "olmo-core-tokens",
     OLMO_CORE,
     .unit = CONTRACT_UNIT_TOKEN,
     .help = "OLMo-core with units=tokens: the counter is tokens seen, this batch included",
     .source = OLMO "; 3.0.0 ran"},
    {.name = "open-instruct-dpo",
     .family = "olmo-core",
     .offset = 1,
     .start = CONTRACT_START_NONE,
     WHOLE_BATCHES,
     .default_schedule = "linear",
     .preset = OLMO_FLOOR,
     .help = "open-instruct dpo.py on OLMo-core: as olmo-core, warm-up by int(), linear to 0, but "
             "cosine to 0.1 L",
     .source = OPEN_INSTRUCT " dpo.py, olmo_core_utils.py"},
    {.name = "open-instruct-tune-cache",
     HF_LINEAR,
     .unit = CONTRACT_UNIT_PROCESS,
     .warmup_rule = CONTRACT_ROUND_FLOOR,
     .epoch_rule = CONTRACT_EPOCH_UNSHARDED,
     .logged = CONTRACT_LOGGED_NEXT,
     .scaled = 1,
     .help = "open-instruct dpo_tune_cache.py on Accelerate: the log shows the LR of the next "
             "update, which is what dpo.py uses now",
     .source = OPEN_INSTRUCT " dpo_tune_cache.py"},
    {.name = "open-instruct-h17",
     STEP_THEN_SET,
     .start = CONTRACT_START_BASE,
     .bug = 1,
     .help = "Repair H17 alone, step then set: the first update runs at the full LR even with a "
             "warm-up",
     .source = "open-instruct#1451, commit 26e8dfc4a"},
    {.name = "open-instruct-h17-h25",
     STEP_THEN_SET,
     .start = CONTRACT_START_ZERO,
     .bug = 1,
     .help = "Repairs H17 and H25, step then set from 0: without a warm-up the first update does "
             "nothing; reverted",
     .source = "open-instruct#1451, commits 26e8dfc4a and (revert) 22fd8e2d4"},
    {.name = "step-then-set-f0",
     STEP_THEN_SET,
     .help = "Step then set from f(0): the repair of open-instruct dpo.py that equals hf; never "
             "released",
     .source = "derived from open-instruct#1451"},
    {.name = "megatron",
     MEGATRON_SAMPLES,
     .logged = CONTRACT_LOGGED_NEXT,
     .help = "Megatron-LM: a counter of samples, warm-up never rounded, log read after the "
             "scheduler",
     .source = MEGATRON},
    {.name = "megatron-bridge",
     MEGATRON_SAMPLES,
     .cap = CONTRACT_CAP_BELOW,
     .logged = CONTRACT_LOGGED_NEXT,
     .help = "Megatron-Bridge: as megatron, but a warm-up as long as the run is cut to one sample "
             "less",
     .source = BRIDGE},
    {.name = "lightning-step",
     HF_LINEAR,
     .on_skip = CONTRACT_SKIP_ADVANCE,
     .warmup_rule = CONTRACT_ROUND_FLOOR,
     .evidence = CONTRACT_RUN,
     .help = "Lightning, interval=\"step\": advances also where GradScaler skipped the update",
     .source = LIGHTNING "; 2.6.6 ran; lightning#5558, #16228, #18828, #21339"},
    {.name = "lightning-epoch",
     HF_LINEAR,
     .unit = CONTRACT_UNIT_EPOCH,
     .on_skip = CONTRACT_SKIP_ADVANCE,
     .warmup_rule = CONTRACT_ROUND_FLOOR,
     .evidence = CONTRACT_RUN,
     .help = "Lightning's default interval: one counter step per epoch, a staircase; --rescaled "
             "none keeps a total meant for updates",
     .source = LIGHTNING "; 2.6.6 ran"},
    {.name = "torchtune",
     .family = "hf",
     WHOLE_BATCHES,
     .logged = CONTRACT_LOGGED_NEXT,
     .evidence = CONTRACT_RUN,
     .default_schedule = "cosine",
     .help = "torchtune recipes: cosine only, whole batches and whole accumulation windows only",
     .source = TORCHTUNE "; 0.6.1 ran"},
    {.name = "torchtitan",
     .family = "torchtitan",
     .on_skip = CONTRACT_SKIP_ADVANCE,
     .warmup_rule = CONTRACT_ROUND_FLOOR,
     .epoch_rule = CONTRACT_EPOCH_NONE,
     .cap = CONTRACT_CAP_TOTAL,
     .default_schedule = "linear",
     .help = "torchtitan: a schedule one step in with a virtual last step, so the last update "
             "still learns",
     .source = TORCHTITAN},
    {.name = "nemo-rl-dtensor",
     .family = "hf",
     .on_skip = CONTRACT_SKIP_ADVANCE,
     .warmup_rule = CONTRACT_ROUND_FLOOR,
     .epoch_rule = CONTRACT_EPOCH_NONE,
     .evidence = CONTRACT_DERIVED,
     .default_schedule = "torch.linear_constant",
     .help = "NeMo-RL, DTensor workers: one counter step per train() call (here: per update), LR "
             "captured before",
     .source = NEMO_RL " dtensor_policy_worker.py"},
    {.name = "nemo-rl-megatron",
     MEGATRON_SAMPLES,
     .help = "NeMo-RL, Megatron workers: as megatron, but the log shows the LR that was used",
     .source = NEMO_RL " megatron_policy_worker.py"},
    {.name = "deepspeed-warmup",
     DEEPSPEED_OWN,
     .start = CONTRACT_START_MIN,
     .default_schedule = "warmup_decay",
     .help = "DeepSpeed WarmupLR and WarmupDecayLR, fixed versions: the first two updates run at "
             "warmup_min_lr",
     .source = DEEPSPEED "; 0.19.8 ran"},
    {.name = "deepspeed-warmup-old",
     DEEPSPEED_OWN,
     .start = CONTRACT_START_BASE,
     .bug = 1,
     .default_schedule = "warmup_decay",
     .help = "DeepSpeed WarmupLR and WarmupDecayLR before the fix: update 1 runs at the "
             "optimizer's full LR",
     .source = "DeepSpeed 0.14.0 ran; DeepSpeed#5731, #6569, #5287; "
               "accelerate#2124, #2125"},
    {.name = "deepspeed-cosine",
     DEEPSPEED_OWN,
     .start = CONTRACT_START_ZERO,
     .default_schedule = "warmup_cosine",
     .help = "DeepSpeed WarmupCosineLR, fixed versions: two dead updates, and the peak is never "
             "used",
     .source = DEEPSPEED "; 0.19.8 ran"},
    {.name = "deepspeed-cosine-old",
     DEEPSPEED_OWN,
     .start = CONTRACT_START_BASE,
     .bug = 1,
     .default_schedule = "warmup_cosine_old",
     .help = "DeepSpeed WarmupCosineLR of 0.14: nothing is installed at first, so update 1 runs at "
             "the full LR; past the total it rises again",
     .source = "DeepSpeed 0.14.0 ran, runtime/lr_schedules.py"},
    {.name = "deepspeed-torch",
     HF_LINEAR,
     .warmup_rule = CONTRACT_ROUND_CEIL,
     .epoch_rule = CONTRACT_EPOCH_NONE,
     .logged = CONTRACT_LOGGED_NEXT,
     .evidence = CONTRACT_RUN,
     .help = "A plain torch scheduler handed to DeepSpeed",
     .source = DEEPSPEED "; 0.19.8 ran"},
    {.name = "llmc",
     .family = "llmc",
     .start = CONTRACT_START_NONE,
     .past_end = CONTRACT_PAST_ABORT,
     WHOLE_BATCHES,
     .float32 = 1,
     .default_schedule = "cosine",
     .help = "llm.c: binary32, a schedule one step in; aborts past the total",
     .source = LLMC},
    {.name = "veomni",
     .family = "veomni",
     WHOLE_BATCHES,
     .logged = CONTRACT_LOGGED_NEXT,
     .default_schedule = "cosine",
     .help = "VeOmni: HF-like, warm-up by int(), a floor of 1e-7",
     .source = VEOMNI},
    {.name = "per-micro-batch",
     HF_LINEAR,
     .unit = CONTRACT_UNIT_MICRO,
     .warmup_rule = CONTRACT_ROUND_FLOOR,
     .evidence = CONTRACT_DERIVED,
     .bug = 1,
     .help = "The scheduler steps once per micro-batch: a counter steps per update",
     .source = "lightning#1476, #831; accelerate#999, #1187; burn#5695"},
    {.name = "lag1",
     HF_LINEAR,
     .offset = -1,
     .warmup_rule = CONTRACT_ROUND_FLOOR,
     .evidence = CONTRACT_DERIVED,
     .bug = 1,
     .help = "The scheduler is one behind: update 2 still uses f(0)",
     .source = "torch optim/lr_scheduler.py, the first call of step() lost"},
};

const struct contract *contract_list(size_t *count) {
    *count = COUNT_OF(contracts);
    return contracts;
}

const struct contract *contract_find(const char *name) {
    for (size_t i = 0; i < COUNT_OF(contracts); i++) {
        const struct contract *c = &contracts[i];
        if (strcmp(c->name, name) == 0) return c;
        if (c->alias != NULL && strcmp(c->alias, name) == 0) return c;
    }
    return NULL;
}

const char *contract_name_of_version(const char *word) {
    static const char *const prefixes[] = {"hf-", "transformers-", "trl-"};
    for (size_t i = 0; i < COUNT_OF(prefixes); i++) {
        const size_t length = strlen(prefixes[i]);
        char *rest;
        if (strncmp(word, prefixes[i], length) != 0 || word[length] < '0' || word[length] > '9')
            continue;
        const unsigned long major = strtoul(word + length, &rest, 10);
        const unsigned long minor = *rest == '.' ? strtoul(rest + 1, &rest, 10) : 0;
        if (rest[strspn(rest, "0123456789.")] != '\0') return NULL;
        /* TRL's own versions are below 4 and say nothing of the Trainer below it. */
        if (major < 4 && strcmp(prefixes[i], "trl-") == 0) return NULL;
        if (major == 4 && minor == 51) return "hf-4.51";
        return major < 4 || (major == 4 && minor < 51) ? "hf-4.50" : "hf";
    }
    return NULL;
}

const char *contract_evidence_name(int32_t evidence) {
    static const char *const names[] = {"read", "derived", "recalled", "run"};
    return names[evidence];
}
