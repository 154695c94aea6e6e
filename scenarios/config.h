/* SPDX-License-Identifier: Apache-2.0
 * The resolved configuration of one arm: plain data without pointers, in which no value is left to
 * be derived.
 *
 * The schema table (scenarios/schema.c) maps every key to a field here, and nothing else gives a
 * field a meaning. Two configurations are equal when all their rows are equal; a hybrid is the
 * baseline with the rows of some causes copied from the test arm. Enum values index the schema's
 * lists of names. Invariant: the struct is zeroed before it is filled, so that it can be hashed and
 * compared as bytes. */
#ifndef TWINSTEP_SCENARIOS_CONFIG_H
#define TWINSTEP_SCENARIOS_CONFIG_H

#include <stdint.h>

#include "base/dtype.h"
#include "base/key.h"

#define CONFIG_PATH_SIZE 1024
#define CONFIG_NAME_SIZE 64
#define CONFIG_WORDS_SIZE 256
#define CONFIG_EVENTS_SIZE 512 /* the events of one stream (scenarios/stream_events.h) */
#define CONFIG_CLASS_BYTES 256 /* the parameters of an optimizer or a schedule */
#define CONFIG_SHA256_SIZE 72  /* 64 hexadecimal digits and a NUL, rounded up to whole words */

enum task { TASK_SFT = 0, TASK_DPO };
enum batch_layout { LAYOUT_SEPARATE = 0, LAYOUT_CONCATENATED };
enum batch_padding { PADDING_LONGEST = 0, PADDING_PACKED };
enum model_family { FAMILY_OLMO2 = 0, FAMILY_LLAMA, FAMILY_QWEN2, FAMILY_QWEN3 };
enum rope_scaling { ROPE_PLAIN = 0, ROPE_LLAMA3, ROPE_YARN };
enum dpo_loss {
    DPO_SIGMOID = 0,
    DPO_CDPO,
    DPO_ROBUST,
    DPO_HINGE,
    DPO_IPO,
    DPO_IPO_SUM,
    DPO_NORM,
    DPO_SIGMOID_NORM,
    DPO_SIMPO,
    DPO_APO_ZERO,
    DPO_APO_DOWN,
    DPO_EXO_PAIR,
    DPO_NCA_PAIR,
    DPO_BCO_PAIR,
    DPO_SPPO_HARD,
    DPO_DISCOPOP,
    DPO_LOSSES
};
enum dpo_divergence {
    DIVERGENCE_REVERSE_KL = 0,
    DIVERGENCE_FORWARD_KL,
    DIVERGENCE_JS,
    DIVERGENCE_ALPHA
};
enum no_label { NO_LABEL_ERROR = 0, NO_LABEL_DROP };
enum chat { CHAT_NONE = 0, CHAT_PLAIN, CHAT_CHATML, CHAT_LLAMA3, CHAT_OLMO, CHATS };
enum dpo_reference { REFERENCE_CACHED = 0, REFERENCE_LIVE, REFERENCE_GIVEN };
enum loss_divisor {
    DIVISOR_UPDATE = 0,
    DIVISOR_MEAN_OF_MEANS,
    DIVISOR_SUM_OF_MEANS,
    DIVISOR_UPDATE_AND_MICROS,
    DIVISOR_MEAN_OF_RANKS,
    DIVISOR_UPDATE_UNSHIFTED,
    DIVISOR_MEANS_OVER_SIZE,
    DIVISOR_MICROS_BY_TOKENS
};
enum logged_loss { LOGGED_DIVIDED = 0, LOGGED_MEAN };
enum batch_tail { TAIL_DROP = 0, TAIL_KEEP, TAIL_KEEP_UNDERSCALED, TAIL_LEAK };
enum decay_rule { DECAY_ALL = 0, DECAY_MATRICES, DECAY_HF, DECAY_OLMO_CORE, DECAY_NAMED };
enum schedule_start { START_F0 = 0, START_BASE, START_ZERO, START_MIN };
enum warmup_rounding { ROUND_CEIL = 0, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_NONE };
enum contract_rescaling { RESCALED_CONTRACT = 0, RESCALED_NONE, RESCALED_TOTAL, RESCALED_WARMUP };
enum logged_lr { LOGGED_CURRENT = 0, LOGGED_RECOMPUTED };
/* Of how much of the weights the learning rate is read back (record.readback). */
enum readback_share { READBACK_NONE = 0, READBACK_TURNS, READBACK_ALL };
enum skip_rule { SKIP_NONE = 0, SKIP_NONFINITE, SKIP_OLMO_OUTLIER };
enum kernel_mode {
    MODE_INVARIANT = 0,
    MODE_SHUFFLED,
    MODE_SHAPED,
    MODE_DETERMINISTIC,
    MODE_FAST,
    MODE_ATOMIC,
    MODE_ORDER_FREE
};
enum linear_library { LIBRARY_AUTO = 0, LIBRARY_NONE, LIBRARY_OPENBLAS, LIBRARY_CUBLAS };
enum ops_backend { BACKEND_CPU = 0, BACKEND_CUDA };
enum grad_accumulate { GRAD_ACCUMULATE_WIDE = 0, GRAD_ACCUMULATE_STORAGE };
enum fill { FILL_NONE = 0, FILL_NAN, FILL_TORCH };
enum dropout_masks { MASKS_OWN = 0, MASKS_SAME };
enum dropout_recompute { RECOMPUTE_PRESERVE = 0, RECOMPUTE_REDRAW };
enum clip_over { OVER_GLOBAL = 0, OVER_LOCAL, OVER_AVERAGED };
enum parallel_sync { SYNC_EVERY = 0, SYNC_FIRST };
enum parallel_logged { RANKS_LOG_MEAN = 0, RANKS_LOG_FIRST, RANKS_LOG_SUM };
enum parallel_feeds { FEEDS_OWN = 0, FEEDS_SAME, FEEDS_OWN_ON_TENSOR };
enum parallel_deal { DEALS_BLOCKS = 0, DEALS_CYCLIC, DEALS_MICROS };
enum parallel_uneven { UNEVEN_DROP = 0, UNEVEN_PAD };
enum epoch_seed { EPOCH_SEED_OWN = 0, EPOCH_SEED_FIRST };
enum parallel_keeps { KEEPS_ALL = 0, KEEPS_LAST };
enum parallel_race { RACE_NONE = 0, RACE_NEXT_BUCKET };
/* The stage of ZeRO: what each rank has a part of, besides what it has one of at the stage before.
 */
enum parallel_zero { ZERO_NONE = 0, ZERO_SLOTS, ZERO_GRADIENTS, ZERO_WEIGHTS };
enum parallel_scale { SCALE_NONE = 0, SCALE_WORLD };
enum parallel_forgets { FORGETS_NONE = 0, FORGETS_FINAL_NORM, FORGETS_NORMS, FORGETS_QK_NORMS };
enum parallel_draws { DRAWS_WHOLE = 0, DRAWS_OWN, DRAWS_SAME, DRAWS_SAME_ROWS };
enum parallel_counts { COUNTS_ONCE = 0, COUNTS_EACH };
enum rng_kind { RNG_ADDRESSED = 0, RNG_TORCH };
enum attention_backward { ATTENTION_SOFTMAX = 0, ATTENTION_FLASH };
enum cross_entropy_backward { CROSS_ENTROPY_FUSED = 0, CROSS_ENTROPY_TWO_STEP };
enum param_rounding { ROUNDING_NEAREST = 0, ROUNDING_STOCHASTIC };
enum scaler_kind { SCALER_NONE = 0, SCALER_STATIC, SCALER_DYNAMIC };
enum resume_item { RESUME_SCHEDULE = 0, RESUME_OPTIMIZER, RESUME_DATA, RESUME_RNG, RESUME_SCALER };
/* What a restart gets wrong of what it restores. */
enum resume_error {
    RESUME_PEAK_OVERWRITTEN = 0,
    RESUME_COUNTER_DOUBLED,
    RESUME_MASTERS_BF16,
    RESUME_BATCH_PEEKED,
    RESUME_EPOCH_SHIFTED,
    RESUME_SKIP_EVERY_EPOCH,
    RESUME_RNG_BEFORE_SKIP,
    RESUME_SHARDS_BY_INDEX,
    RESUME_DECAY_LATE,
    RESUME_PADDED_OFFSETS
};
enum reduce_order {
    REDUCE_TREE = 0,
    REDUCE_LINEAR, /* from here on those of enum grouping_algorithm (ranks/grouping.h), less 1 */
    REDUCE_RECURSIVE,
    REDUCE_RING,
    REDUCE_RING_SCATTER,
    REDUCE_HALVING,
    REDUCE_GLOO,
    REDUCE_NCCL_RING,
    REDUCE_NCCL_RING_SCATTER,
    REDUCE_NCCL_TREE,
    REDUCE_ARRIVAL /* an order that is drawn */
};
/* The dtype of what ranks send; CONFIG_AS_GRADIENT: numerics.gradient. */
enum wire_dtype { WIRE_F32 = 0, WIRE_BF16, WIRE_F16 };
/* Where the mean over ranks is made of their sum (ranks/join.h). */
enum rank_average {
    AVERAGE_BEFORE = 0,
    AVERAGE_DIVIDE_BEFORE,
    AVERAGE_AFTER,
    AVERAGE_MUL_THEN_DIV, /* BEFORE in update 1, DIVIDE_BEFORE from update 2 on */
    AVERAGE_RECIPROCAL,
    AVERAGE_SPLIT
};
/* Into which messages gradients are laid (ranks/bucket.h). */
enum rank_buckets { BUCKETS_REBUILT = 0, BUCKETS_ONCE, BUCKETS_FSDP2 };
enum fault_phase {
    FAULT_AT_START = 0, /* before the first phase */
    FAULT_AT_FORWARD,
    FAULT_AT_BACKWARD,
    FAULT_AT_UNSCALE,
    FAULT_AT_CLIP,
    FAULT_AT_OPTIMIZE
};

/* numerics.master where there are no masters; numerics.product and numerics.softmax where they
 * follow numerics.compute; parallel.reduce_dtype where it follows numerics.gradient. No other enum
 * of a resolved configuration is negative. */
#define CONFIG_MASTER_NONE KEY_WORD_ENUM
#define CONFIG_AS_COMPUTE KEY_WORD_ENUM
#define CONFIG_AS_GRADIENT KEY_WORD_ENUM
/* optimizer.module, schedule.module and their digests where the class is built in. */
#define CONFIG_NO_MODULE "none"
/* schedule.contract where a loop is written instead. */
#define CONFIG_NO_CONTRACT "none"
/* model.from and its digest where weights are drawn. */
#define CONFIG_NO_CHECKPOINT "none"
/* init.nudge where no weight is perturbed. */
#define CONFIG_NO_NUDGE "none"
/* fault.op where none was written. */
#define CONFIG_NO_OP "none"

/* The phases of the training loop (docs/decisions, "The loop is data"), in the order of their names
 * in the schema. */
enum phase {
    PHASE_FETCH = 0,
    PHASE_FORWARD,
    PHASE_BACKWARD,
    PHASE_REDUCE,
    PHASE_UNSCALE,
    PHASE_CLIP,
    PHASE_OPTIMIZE,
    PHASE_LOG,
    PHASE_COUNT_UPDATE, /* its name is "count" */
    PHASE_SCHEDULE,
    PHASE_ZERO,
    PHASE_TOTAL
};

struct config_class {
    char name[CONFIG_NAME_SIZE];
    char module[CONFIG_PATH_SIZE];          /* the file that holds it, or CONFIG_NO_MODULE */
    char module_sha256[CONFIG_SHA256_SIZE]; /* of that file's bytes, or CONFIG_NO_MODULE */
    _Alignas(8) unsigned char values[CONFIG_CLASS_BYTES]; /* laid out by the class's key rows */
};

struct config {
    int32_t task, zero; /* enum task */
    uint64_t seed;
    struct {
        char pairs[CONFIG_PATH_SIZE];
        char text[CONFIG_PATH_SIZE];
        uint64_t samples; /* KEY_WORD_UINT: all of them */
        uint64_t max_len, seed;
        int32_t chat;       /* enum chat */
        int32_t no_label;   /* enum no_label */
        int32_t epoch_seed; /* enum epoch_seed */
        uint8_t shuffle, zero[3];
    } data;
    struct {
        uint64_t size, micro, pad;
        int32_t layout, padding;
        int32_t tail, zero; /* enum batch_tail */
    } batch;
    struct {
        int32_t family, norm_rounding; /* enum norm_rounding: kernels/op.h */
        uint64_t layers, hidden, heads, kv_heads, head_dim, mlp, vocab;
        double norm_eps, rope_theta;
        uint8_t tied, rope_truncate, zero[6];
        int32_t qkv_bias, output_bias, mlp_bias; /* 0 or 1 */
        int32_t rope_scaling;                    /* enum rope_scaling */
        double rope_factor;
        double rope_low_freq_factor, rope_high_freq_factor; /* of ROPE_LLAMA3 */
        uint64_t rope_original_positions;
        double rope_attention_factor, rope_beta_fast, rope_beta_slow; /* of ROPE_YARN */
        double rope_mscale, rope_mscale_all_dim;                      /* KEY_WORD_REAL: none */
        char from[CONFIG_PATH_SIZE];          /* folder of a checkpoint, or CONFIG_NO_CHECKPOINT */
        char from_digest[CONFIG_SHA256_SIZE]; /* of its tensors, or CONFIG_NO_CHECKPOINT */
    } model;
    struct {
        double std;
        uint64_t seed;
        char nudge[CONFIG_WORDS_SIZE]; /* the perturbed tensor, or CONFIG_NO_NUDGE */
    } init;
    struct {
        int32_t loss, reference;
        double beta, label_smoothing, gamma_beta_ratio, discopop_tau, f_alpha;
        int32_t f_divergence, zero;
        uint64_t reference_batch;
        int32_t reference_compute, reference_layout;
    } dpo;
    struct {
        int32_t divisor, logged; /* enum loss_divisor, enum logged_loss */
        uint64_t ranks;
    } loss;
    struct {
        double lr, weight_decay;
        int32_t decay, zero;
        char no_decay[CONFIG_WORDS_SIZE]; /* words, for DECAY_NAMED */
        struct config_class which;
    } optimizer;
    struct {
        double max_norm, eps;
        uint64_t replicas;
        int32_t norm, dtype, form, apply; /* optim/clip.h */
        int32_t over, zero;               /* enum clip_over */
    } clip;
    struct {
        struct config_class which;
        char contract[CONFIG_NAME_SIZE];       /* whose loop this is, or CONFIG_NO_CONTRACT */
        uint64_t processes, updates_per_epoch; /* for a contract that counts them */
        double warmup;        /* in counter units, resolved from warmup_ratio and total */
        uint64_t total;       /* in counter units */
        double warmup_ratio;  /* KEY_WORD_REAL: none given */
        uint64_t origin;      /* c0 */
        uint64_t increment;   /* inc */
        int64_t shift;        /* d */
        int64_t logged_shift; /* d', for LOGGED_RECOMPUTED */
        int32_t start, warmup_rounding, logged, rescaled;
    } schedule;
    struct {
        struct key_list micro, update, epoch, eval, on_skip;
        uint64_t eval_every;
        int32_t skip, zero;
        uint64_t skip_window; /* for SKIP_OLMO_OUTLIER */
        double skip_sigma;
    } loop;
    struct {
        int32_t param, compute, accumulate, gradient, optimizer, master, rope, loss;
        int32_t product, softmax; /* dtype of products' operands, of attention's scores */
        int32_t grad_accumulate, mode, isa, library;
        int32_t rounding, backend; /* how updated parameters are rounded; who runs the ops */
        uint64_t order_seed, threads, shards, cuts;
        char backend_module[CONFIG_PATH_SIZE]; /* or "auto" */
        struct {
            int32_t workspace, order, atomics, split_k; /* 0: held, 1: left free */
            int32_t fill, zero;                         /* enum fill */
        } determinism;
        struct {
            int32_t norm, attention; /* enum norm_backward (kernels/op.h), attention_backward */
            int32_t cross_entropy, zero;
        } backward;
    } numerics;
    struct {
        char table[CONFIG_PATH_SIZE];
    } shaped;
    struct {
        double embedding, attention, residual;
        uint64_t seed, ranks;
        int32_t masks, recompute;
    } dropout;
    struct {
        int32_t kind, zero; /* enum rng_kind */
        uint64_t sms, threads_per_sm, vector;
        char data[CONFIG_EVENTS_SIZE], dropout[CONFIG_EVENTS_SIZE]; /* events of each stream */
        char rounding[CONFIG_EVENTS_SIZE], order[CONFIG_EVENTS_SIZE];
    } rng;
    struct {
        uint64_t after;           /* the update before the restart; 0: there is none */
        struct key_list restores; /* enum resume_item */
        struct key_list wrong;    /* enum resume_error */
        uint64_t ranks;           /* that wrote, for RESUME_SHARDS_BY_INDEX and _PADDED_OFFSETS */
        uint64_t bucket;          /* elements at which one is full, for RESUME_PADDED_OFFSETS */
        double weight_decay;      /* of the job that restarts, for RESUME_DECAY_LATE */
    } resume;
    struct {
        uint64_t update;       /* in which a bit flips; 0: none does */
        uint64_t micro, layer; /* layer KEY_WORD_UINT: outside layers */
        uint64_t element, bit; /* bit 0 is the lowest of the stored dtype */
        int32_t phase, zero;   /* enum fault_phase */
        char op[CONFIG_NAME_SIZE], tensor[CONFIG_NAME_SIZE]; /* of a watch (model/watch_label.h) */
    } fault;
    struct {
        int32_t kind, zero; /* enum scaler_kind */
        double init_scale, growth_factor, backoff_factor, min_scale;
        uint64_t growth_interval, hysteresis;
    } scaler;
    struct {
        struct key_list kinds;
        uint64_t chunk;
    } shuffle;
    struct {
        struct key_list kinds; /* as shuffle.kinds, but of sums that can race */
        uint64_t chunk;
    } atomic;
    struct {
        uint64_t ranks, tensor;
        int32_t reduce, reduce_dtype, average, buckets;
        uint64_t bucket;        /* bytes; KEY_WORD_UINT: 1 MiB, then 25 MiB */
        uint64_t chunk;         /* bytes, of REDUCE_NCCL_RING; 0 elsewhere */
        uint64_t node;          /* ranks of a node, of REDUCE_NCCL_TREE */
        int32_t sync, keeps;    /* enum parallel_sync, enum parallel_keeps */
        int32_t logged, feeds;  /* enum parallel_logged, enum parallel_feeds */
        int32_t scale, forgets; /* enum parallel_scale, enum parallel_forgets */
        int32_t draws, counts;  /* enum parallel_draws, enum parallel_counts */
        int32_t deal, uneven;   /* enum parallel_deal, enum parallel_uneven */
        int32_t race, padding;  /* enum parallel_race */
        uint64_t zero;          /* enum parallel_zero: a key, where other sections have padding */
    } parallel;
};

#endif
