/* SPDX-License-Identifier: Apache-2.0
 * Chooses the table of ops for this machine and measures scratch. Holds no arithmetic of tensors.
 *
 * Invariant: which instruction set is chosen moves no bit (tests/kernels proves it). */
#include "base/isa_objects.h"
#include "kernels/cpu/exact.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/kernels_cpu.h"

enum pair { PAIR_F32_F32 = 0, PAIR_F32_F64, PAIR_F64_F64, PAIR_COUNT };

#define TABLES(isa)                                                                                \
    extern const struct op_table op_table_f32_f32_##isa;                                           \
    extern const struct op_table op_table_f32_f64_##isa;                                           \
    extern const struct op_table op_table_f64_f64_##isa;
#define TABLES_OF(isa) TABLES(isa)
TABLES(base)
TABLES_OF(OBJECTS_V3)
TABLES_OF(OBJECTS_V4)

#define ROW(isa)                                                                                   \
    { &op_table_f32_f32_##isa, &op_table_f32_f64_##isa, &op_table_f64_f64_##isa }
#define ROW_OF(isa) ROW(isa)
static const struct op_table *const tables[ISA_COUNT][PAIR_COUNT] = {
    [ISA_BASE] = ROW(base),
    [ISA_V3] = ROW_OF(OBJECTS_V3),
    [ISA_V4] = ROW_OF(OBJECTS_V4),
};

#define AGREES_OF(isa) OBJECTS_OF(gemm_bf16_agrees_f32_f32, isa)
int AGREES_OF(OBJECTS_V4)(void); /* kernels/cpu/gemm_bf16.h */

static const char *const names[ISA_COUNT] = {"auto", "base", "v3", "v4", "v4-bf16"};

const char *isa_name(enum isa isa) {
    return names[isa];
}

/* Whether this machine has a set. The sets are levels 2 to 4 of the x86-64 psABI; asked for are
 * only those of their parts that processors lack in practice. */
static int machine_has(enum isa isa) {
    const int v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                   __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    const int v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512vl");
    if (isa == ISA_V4_BF16)
        return v3 && v4 && __builtin_cpu_supports("avx512bf16") && AGREES_OF(OBJECTS_V4)();
    return isa == ISA_BASE || (isa == ISA_V3 && v3) || (isa == ISA_V4 && v3 && v4);
}

static enum isa widest(void) {
    if (machine_has(ISA_V4)) return ISA_V4;
    return machine_has(ISA_V3) ? ISA_V3 : ISA_BASE;
}

enum isa backend_isa(enum isa isa) {
    if (isa == ISA_V4_BF16) return ISA_V4;
    return isa == ISA_AUTO ? widest() : isa;
}

/* On AMD's processors vdpbf16ps takes as long as an fma and adds twice the terms; on Intel's that
 * were measured it takes almost four times as long, and fma is the faster way
 * (docs/measurements/bf16.md). */
int backend_bf16(enum isa isa) {
    if (isa == ISA_AUTO && !__builtin_cpu_is("amd")) return 0;
    return (isa == ISA_AUTO || isa == ISA_V4_BF16) && machine_has(ISA_V4_BF16);
}

enum status backend_ops(enum isa isa, enum dtype compute, enum dtype accumulate,
                        const struct op_table **out) {
    const int wide = accumulate == DTYPE_F64;
    if (!wide && accumulate != DTYPE_F32)
        FAIL(STATUS_INPUT, "accumulation dtype: expected f32 or f64, got %s",
             dtype_name(accumulate));
    if (compute == DTYPE_F64 && !wide)
        FAIL(STATUS_INPUT, "accumulation dtype: f64 compute needs f64, got f32");
    const enum isa chosen = backend_isa(isa);
    if (!machine_has(isa == ISA_AUTO ? chosen : isa))
        FAIL(STATUS_UNSUPPORTED, "instruction set %s: this machine lacks it; it has %s",
             isa_name(isa == ISA_AUTO ? chosen : isa), isa_name(widest()));
    const enum pair narrow = wide ? PAIR_F32_F64 : PAIR_F32_F32;
    *out = tables[chosen][compute == DTYPE_F64 ? PAIR_F64_F64 : narrow];
    return STATUS_OK;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

enum status backend_scratch(const struct op_limits *limits, size_t *out_bytes) {
    if (limits->threads < 1)
        FAIL(STATUS_INPUT, "threads: expected an integer >= 1, got %d", limits->threads);
    if (limits->D > 1u << 16 || limits->length > 1u << 24)
        FAIL(STATUS_INPUT,
             "attention: expected heads of at most 65536 and sequences of at most "
             "16777216, got %u and %u",
             limits->D, limits->length);
    const size_t exact = limits->order_free ? exact_attention_bytes(limits->length, limits->D) : 0;
    const size_t ordered = larger(limits->rows, limits->norms);
    const size_t one_thread = larger(attention_bytes(limits->length, limits->D) + exact,
                                     larger(row_bytes(limits->width), order_bytes(ordered)));
    const size_t shared = larger(embedding_bytes(limits->width, limits->rows), square_bytes());
    const size_t width = limits->width;
    const size_t dense = (3 * (size_t)limits->rows * width + 2 * limits->library) * sizeof(double);
    const size_t ops = shared + (size_t)limits->threads * one_thread;
    *out_bytes = larger(ops, linear_scratch(limits)) + 64;
    const size_t terms = larger(limits->rows, limits->width);
    const size_t packed = (size_t)limits->threads * exact_linear_bytes(terms) + 128;
    if (limits->order_free) *out_bytes = larger(*out_bytes, packed);
    if (limits->library) *out_bytes = larger(*out_bytes, dense + 256);
    return STATUS_OK;
}
