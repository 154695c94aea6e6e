/* SPDX-License-Identifier: Apache-2.0
 * Derivation, the last step of resolving an arm: what `auto` stands for. A derived value belongs to
 * its own key and cause, so a hybrid copies it with its row and derives nothing anew. Invariant:
 * deriving a second time changes nothing. */
#include "scenarios/fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/real.h"
#include "scenarios/row_value.h"
#include "scenarios/scenario.h"
#include "scenarios/stream_course.h"

#define BYTE_TOKENIZER_VOCAB 259

enum status fault_set(struct fault *fault, enum status status, const char *path, const char *format,
                      ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fault->text, sizeof fault->text, format, arguments);
    va_end(arguments);
    fault->path = path;
    fault->status = status;
    return status;
}

static void fill_uint(uint64_t *value, uint64_t automatic) {
    if (*value == KEY_WORD_UINT) *value = automatic;
}

static void fill_real(double *value, double automatic) {
    if (*value == KEY_WORD_REAL) *value = automatic;
}

static void fill_enum(int32_t *value, int32_t automatic) {
    if (*value == KEY_WORD_ENUM) *value = automatic;
}

/* get_mscale of transformers' _compute_yarn_parameters (modeling_rope_utils.py). */
static double yarn_mscale(double factor, double mscale) {
    return factor <= 1.0 ? 1.0 : 0.1 * mscale * real_log_f64(factor) + 1.0;
}

static double yarn_attention_factor(const struct config *config) {
    const double factor = config->model.rope_factor, one = config->model.rope_mscale;
    const double all = config->model.rope_mscale_all_dim;
    if (config->model.rope_scaling != ROPE_YARN) return 1.0;
    if (one == KEY_WORD_REAL || all == KEY_WORD_REAL) return yarn_mscale(factor, 1.0);
    return yarn_mscale(factor, one) / yarn_mscale(factor, all);
}

static enum status derive_model(struct config *config, struct fault *fault) {
    static const double thetas[] = {[FAMILY_OLMO2] = 500000,
                                    [FAMILY_LLAMA] = 10000,
                                    [FAMILY_QWEN2] = 1000000,
                                    [FAMILY_QWEN3] = 1000000};
    const int32_t family = config->model.family;
    uint64_t hidden = config->model.hidden;
    uint64_t heads = config->model.heads;
    if (config->model.head_dim == KEY_WORD_UINT && hidden % heads != 0)
        return fault_set(fault, STATUS_INPUT, "model.head_dim",
                         "auto needs model.heads (%ju) to divide model.hidden (%ju)",
                         (uintmax_t)heads, (uintmax_t)hidden);
    fill_uint(&config->model.head_dim, hidden / heads);
    fill_uint(&config->model.kv_heads, heads);
    fill_uint(&config->model.vocab, BYTE_TOKENIZER_VOCAB);
    fill_real(&config->model.norm_eps, 1e-6);
    fill_real(&config->model.rope_theta, thetas[family]);
    fill_enum(&config->model.norm_rounding, family == FAMILY_OLMO2);
    fill_enum(&config->model.qkv_bias, family == FAMILY_QWEN2);
    fill_enum(&config->model.output_bias, 0);
    fill_enum(&config->model.mlp_bias, 0);
    fill_real(&config->model.rope_attention_factor, yarn_attention_factor(config));
    return STATUS_OK;
}

static void derive_numerics(struct config *config) {
    int32_t wide = config->numerics.compute == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
    const int32_t param = config->numerics.param;
    /* 8 bits are too coarse for gradients and slots that were not asked to be. */
    const int is_fp8 = dtype_width((enum dtype)param) == 1;
    const int32_t unmastered = is_fp8 ? DTYPE_F32 : param;
    int32_t updated =
        config->numerics.master == CONFIG_MASTER_NONE ? unmastered : config->numerics.master;
    fill_enum(&config->numerics.accumulate, wide);
    fill_enum(&config->numerics.loss, wide);
    fill_enum(&config->numerics.gradient, is_fp8 ? config->numerics.compute : param);
    fill_enum(&config->numerics.optimizer, updated);
}

/* Mode fast leaves everything free but the order: nobody has measured that it pays to spread the
 * rows of one product over several streams. Mode deterministic holds what moves bits from run to
 * run; a split of k does not (docs/decisions/cuda-library.md). */
static void derive_determinism(struct config *config) {
    const int32_t mode = config->numerics.mode;
    const int is_free = mode == MODE_FAST;
    const int is_fixed = mode == MODE_DETERMINISTIC;
    const int fills = is_fixed && config->numerics.backend == BACKEND_CUDA;
    fill_enum(&config->numerics.determinism.workspace, is_free);
    fill_enum(&config->numerics.determinism.order, 0);
    fill_enum(&config->numerics.determinism.atomics, is_free);
    fill_enum(&config->numerics.determinism.split_k, is_free || is_fixed);
    fill_enum(&config->numerics.determinism.fill, fills ? FILL_TORCH : FILL_NONE);
}

void config_set_mode(struct config *config, int32_t mode) {
    config->numerics.mode = mode;
    config->numerics.determinism.workspace = KEY_WORD_ENUM;
    config->numerics.determinism.order = KEY_WORD_ENUM;
    config->numerics.determinism.atomics = KEY_WORD_ENUM;
    config->numerics.determinism.split_k = KEY_WORD_ENUM;
    config->numerics.determinism.fill = KEY_WORD_ENUM;
    derive_determinism(config);
}

/* total * ratio as a double, the way the frameworks compute it (TrainingArguments.get_warmup_steps:
 * math.ceil(total * ratio)): 100 * 0.07 is 7.000000000000001, and rounds up to 8. */
static double rounded_warmup(const struct config *config) {
    double exact = (double)config->schedule.total * config->schedule.warmup_ratio;
    uint64_t whole = (uint64_t)exact; /* it fits: ratio <= 1 and total <= 2^53 */
    double rest = exact - (double)whole;
    switch ((enum warmup_rounding)config->schedule.warmup_rounding) {
    case ROUND_CEIL:
        return (double)(whole + (rest > 0));
    case ROUND_FLOOR:
        return (double)whole;
    case ROUND_HALF_EVEN:
        return (double)(whole + (rest > 0.5 || (rest == 0.5 && whole % 2 == 1)));
    case ROUND_NONE:
        break;
    }
    return exact;
}

static enum status derive_schedule(struct config *config, uint64_t steps, int warmup_given,
                                   struct fault *fault) {
    fill_uint(&config->schedule.total, steps);
    if (config->schedule.warmup_ratio == KEY_WORD_REAL || config_has_contract(config))
        return STATUS_OK; /* a contract rounds by its own rule, in updates */
    double warmup = rounded_warmup(config);
    if (warmup_given && config->schedule.warmup != warmup)
        return fault_set(fault, STATUS_INPUT, "schedule.warmup",
                         "%s contradicts schedule.warmup_ratio, which gives %s of %ju",
                         number_text_f64(config->schedule.warmup).text,
                         number_text_f64(warmup).text, (uintmax_t)config->schedule.total);
    config->schedule.warmup = warmup;
    return STATUS_OK;
}

/* Adds the phase unscale to the loop of a contract where there is a loss scale: every framework
 * that has one takes it out of the gradients before it clips. A loop that is written stays as it
 * is. */
static void derive_unscale(struct config *config) {
    struct key_list *update = &config->loop.update;
    uint8_t at = 0;
    if (!config_has_contract(config) || config->scaler.kind == SCALER_NONE) return;
    if (memchr(update->item, PHASE_UNSCALE, update->count) != NULL) return;
    while (at < update->count && update->item[at] != PHASE_CLIP &&
           update->item[at] != PHASE_OPTIMIZE)
        at++;
    memmove(update->item + at + 1, update->item + at, (size_t)(update->count - at));
    update->item[at] = PHASE_UNSCALE;
    update->count++;
}

void config_add_reduce(struct config *config) {
    struct key_list *const update = &config->loop.update;
    if (!config_has_contract(config) || memchr(update->item, PHASE_REDUCE, update->count) != NULL)
        return;
    memmove(update->item + 1, update->item, update->count);
    update->item[0] = PHASE_REDUCE;
    update->count++;
}

enum status config_derive(struct config *config, uint64_t steps, int warmup_given,
                          struct fault *fault) {
    fill_uint(&config->data.seed, config->seed);
    fill_uint(&config->init.seed, config->seed);
    fill_uint(&config->dropout.seed, config->seed);
    fill_uint(&config->batch.micro, config->batch.size);
    TRY(derive_model(config, fault));
    derive_numerics(config);
    derive_determinism(config);
    fill_uint(&config->dpo.reference_batch, config->batch.micro);
    fill_enum(&config->dpo.reference_compute, config->numerics.compute);
    fill_enum(&config->dpo.reference_layout, config->batch.layout);
    fill_uint(&config->loss.ranks, config->parallel.ranks);
    fill_uint(&config->schedule.processes, config->parallel.ranks);
    fill_uint(&config->resume.ranks, config->parallel.ranks);
    fill_real(&config->resume.weight_decay, config->optimizer.weight_decay);
    derive_unscale(config);
    if (config->parallel.ranks > 1) config_add_reduce(config);
    row_sort_list(&config->shuffle.kinds);
    row_sort_list(&config->atomic.kinds);
    row_sort_list(&config->resume.restores);
    row_sort_list(&config->resume.wrong);
    TRY(stream_derive(config, fault));
    return derive_schedule(config, steps, warmup_given, fault);
}
