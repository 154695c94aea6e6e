/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The shim must run kernels as the words of kernels/cuda/port.h say, and must report what is wrong
 * with planted ones: a race, a barrier left out, threads of which only some reach a barrier, a
 * write beyond shared memory. A launch must run when the host waits, not before. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "base/real.h"
#include "kernels/cuda/limits.h"
#include "tests/shim/shim_port.h"

#include "kernels/cuda/tensor.h"

#define SEEDS 20

static void assert_told(const char *text) {
    assert_int_equal(shim_error(), STATUS_INTERNAL);
    if (strstr(status_text(), text) == NULL)
        fail_msg("expected \"...%s...\", got \"%s\"", text, status_text());
    assert_int_equal(shim_error(), STATUS_OK); /* it is reported once */
}

/* ---- kernels without a fault ---- */

struct places {
    uint32_t *visits; /* (grid * block) */
    uint32_t *total;
};

KERNEL(visit, struct places) {
    args->visits[BLOCK * THREADS + THREAD] += 1 + THREAD + 1000 * BLOCK;
    gpu_atomic_add_u32(GPU_ARG args->total, 1);
}

static void verify_every_thread_once(void **state) {
    (void)state;
    static const unsigned blocks[] = {1, 2, 7, 64}, threads[] = {32, 96, 1024};
    static uint32_t visits[64 * 1024];
    for (size_t b = 0; b < COUNT_OF(blocks); b++)
        for (size_t t = 0; t < COUNT_OF(threads); t++) {
            uint32_t total = 0;
            const struct places args = {visits, &total};
            memset(visits, 0, sizeof visits);
            LAUNCH(visit, blocks[b], threads[t], 0, &args);
            assert_int_equal(shim_error(), STATUS_OK);
            assert_int_equal(total, blocks[b] * threads[t]);
            for (unsigned i = 0; i < blocks[b] * threads[t]; i++)
                assert_int_equal(visits[i], 1 + i % threads[t] + 1000 * (i / threads[t]));
        }
    const struct places nothing = {NULL, NULL};
    LAUNCH(visit, 0, 32, 0, &nothing);
    assert_int_equal(shim_error(), STATUS_OK);
}

struct sums {
    double *wide;
    float *narrow;
};

/* Adds up each warp's lanes, then all warps through shared memory. */
KERNEL(add_up, struct sums) {
    SHARED(double, part);
    double lane = (double)THREAD;
    float high = (float)THREAD;
    for (unsigned half = GPU_WARP / 2; half > 0; half /= 2) {
        lane = lane + gpu_shuffle_xor_f64(GPU_ARG lane, half);
        const float other = gpu_shuffle_xor_f32(GPU_ARG high, half);
        high = other > high ? other : high;
    }
    if (THREAD % GPU_WARP == 0) part[THREAD / GPU_WARP] = lane;
    BARRIER();
    double sum = 0.0;
    for (unsigned w = 0; w < THREADS / GPU_WARP; w++)
        sum = sum + part[w];
    args->wide[THREAD] = sum;
    args->narrow[THREAD] = high;
    WARP_BARRIER();
    if (args->narrow[THREAD ^ 1] != high) args->wide[THREAD] = -1.0;
}

static void validate_shuffles_and_barriers(void **state) {
    (void)state;
    double wide[256];
    float narrow[256];
    const struct sums args = {wide, narrow};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        shim_seed(seed);
        LAUNCH(add_up, 1, 256, 8 * sizeof(double), &args);
        assert_int_equal(shim_error(), STATUS_OK);
        for (unsigned i = 0; i < 256; i++) {
            assert_true(wide[i] == 255.0 * 128.0);
            assert_true(narrow[i] == (float)(i | 31u));
        }
    }
}

struct copies {
    const float *from; /* (2, 4 * threads) */
    float *out;        /* (4 * threads) */
    unsigned bytes;
    int waits, misplaced;
};

/* Copies two groups of quads and hands out the neighbour's part of the first, or, without a wait or
 * with one for less, what then stands there. Waits for the rest in the end, but for `waits` 3. */
KERNEL(bring, struct copies) {
    SHARED(float, at);
    float *const own = at + (size_t)4 * THREAD, *const next = own + (size_t)4 * THREADS;
    const float *const from = args->from + (size_t)4 * THREAD;
    const float *const neighbour = at + (size_t)4 * ((THREAD + 1) % THREADS);
    if (args->bytes == 16)
        GPU_COPY_ASYNC16(own + args->misplaced, from);
    else
        GPU_COPY_PART16(own, from, args->bytes);
    GPU_COPY_COMMIT();
    for (unsigned i = 0; i < 4; i++)
        GPU_COPY_PART4(next + i, from + i, i % 2 == 0 ? 4 : 0);
    GPU_COPY_COMMIT();
    if (args->waits == 1) GPU_COPY_WAIT(1);
    if (args->waits == 2) GPU_COPY_WAIT(2);
    BARRIER();
    for (unsigned i = 0; i < 4; i++)
        args->out[(size_t)4 * THREAD + i] = neighbour[i];
    if (args->waits == 3) return;
    GPU_COPY_WAIT(0);
    if (args->waits != 1) return;
    for (unsigned i = 0; i < 4; i++)
        if (next[i] != (i % 2 == 0 ? from[i] : 0.0f)) args->out[0] = -1.0f;
}

/* Returns how many of the numbers are right. */
static unsigned bring_all(unsigned bytes, int waits) {
    _Alignas(16) float from[2 * 4 * 64], out[4 * 64];
    unsigned right = 0;
    for (unsigned i = 0; i < COUNT_OF(from); i++)
        from[i] = (float)(i + 1);
    const struct copies args = {from, out, bytes, waits, 0};
    LAUNCH(bring, 2, 64, sizeof from, &args);
    assert_int_equal(shim_error(), STATUS_OK);
    for (unsigned i = 0; i < 64; i++)
        for (unsigned k = 0; k < 4; k++)
            right += out[4 * i + k] == (4 * k < bytes ? from[(i + 1) % 64 * 4 + k] : 0.0f);
    return right;
}

/* A copy is whole behind the wait for it and a barrier. Without the wait some of it may be missing:
 * here half of the threads' copies. */
static void validate_copies(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        shim_seed(seed);
        for (unsigned bytes = 0; bytes <= 16; bytes += 4)
            assert_int_equal(bring_all(bytes, 1), 256);
        assert_true(bring_all(16, 0) < 256);
        assert_true(bring_all(16, 2) < 256);
    }
    _Alignas(16) float from[2 * 4 * 64], out[4 * 64];
    struct copies args = {from, out, 16, 1, 1};
    memset(from, 0, sizeof from);
    LAUNCH(bring, 1, 64, sizeof from, &args);
    assert_told("a copy of 16 bytes (16 of them read) is not from a multiple");
    args.misplaced = 0;
    LAUNCH(bring, 1, 64, sizeof from - 4, &args);
    assert_told("to one in shared memory");
    args.bytes = 6;
    LAUNCH(bring, 1, 64, sizeof from, &args);
    assert_told("(6 of them read)");
    args.bytes = 16;
    args.waits = 3;
    LAUNCH(bring, 1, 64, sizeof from, &args);
    assert_told("ended without a wait for its copies");
}

struct atomics {
    float *narrow;
    double *wide;
};

KERNEL(add_atomically, struct atomics) {
    gpu_atomic_add_f32(GPU_ARG args->narrow, (float)(1 + THREAD) * 0x1p-20f);
    gpu_atomic_add_f64(GPU_ARG args->wide, 1.0 + (double)THREAD * 0x1p-50);
}

/* Each addition must happen once; the seed fixes their order, which rounding makes visible. */
static void verify_atomics(void **state) {
    (void)state;
    int moved = 0;
    double first = 0.0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        float narrow = 0.0f;
        double wide = 0.0;
        const struct atomics args = {&narrow, &wide};
        shim_seed(seed);
        LAUNCH(add_atomically, 3, 64, 0, &args);
        assert_int_equal(shim_error(), STATUS_OK);
        assert_true(narrow == 3.0f * 64.0f * 65.0f / 2.0f * 0x1p-20f);
        assert_true(wide > 191.9 && wide < 192.1);
        moved += seed > 0 && wide != first;
        first = seed == 0 ? wide : first;
    }
    assert_true(moved > 0);
}

struct tiny {
    float *sum; /* (2) */
    float term;
};

KERNEL(add_tiny_atomically, struct tiny) {
    SHARED(float, near);
    if (THREAD == 0) near[0] = args->sum[0];
    BARRIER();
    if (THREAD == 5) gpu_atomic_add_f32(GPU_ARG near, args->term);
    if (THREAD == 6) gpu_atomic_add_f32(GPU_ARG args->sum, args->term);
    BARRIER();
    if (THREAD == 0) args->sum[1] = near[0];
}

/* As on a device, atomic sums in global memory treat subnormal terms and results as zero. */
static void validate_tiny_atomics(void **state) {
    (void)state;
    static const struct {
        float sum, term, global, shared;
    } cases[] = {
        {0x1p-126f, 0x1p-149f, 0x1p-126f, 0x1.000002p-126f},
        {0x1p-130f, 0x1p-126f, 0x1p-126f, 0x1.1p-126f},
        {0x1.8p-126f, -0x1p-126f, 0.0f, 0x1p-127f},
        {-0x1.8p-126f, 0x1p-126f, -0.0f, -0x1p-127f},
        {-0x1p-140f, -0.0f, -0.0f, -0x1p-140f},
        {1.0f, 0x1p-126f, 1.0f, 1.0f},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        float sum[2] = {cases[i].sum, 0.0f};
        const struct tiny args = {sum, cases[i].term};
        LAUNCH(add_tiny_atomically, 1, 32, sizeof(float), &args);
        assert_int_equal(shim_error(), STATUS_OK);
        assert_memory_equal(&sum[0], &cases[i].global, sizeof sum[0]);
        assert_memory_equal(&sum[1], &cases[i].shared, sizeof sum[1]);
    }
}

/* ---- kernels with a fault ---- */

struct line {
    float *out; /* (block) */
    int with_barrier;
};

/* Reads what the neighbour wrote, with a barrier in between or without one. */
KERNEL(shift, struct line) {
    SHARED(float, at);
    at[THREAD] = (float)THREAD;
    if (args->with_barrier) BARRIER();
    args->out[THREAD] = at[(THREAD + 1) % THREADS];
}

static int shift_is_right(int with_barrier, uint64_t seed) {
    float out[64];
    const struct line args = {out, with_barrier};
    int right = 1;
    shim_seed(seed);
    LAUNCH(shift, 1, 64, sizeof out, &args);
    assert_int_equal(shim_error(), STATUS_OK);
    for (unsigned i = 0; i < 64; i++)
        right = right && out[i] == (float)((i + 1) % 64);
    return right;
}

static void verify_missing_barrier_shows(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        assert_true(shift_is_right(1, seed));
        assert_false(shift_is_right(0, seed));
    }
}

struct winner {
    uint32_t *thread, *block;
};

/* All threads write to one place, so nobody can promise which comes last. */
KERNEL(race, struct winner) {
    *args->thread = THREAD;
    *args->block = BLOCK;
}

static void verify_race_shows(void **state) {
    (void)state;
    uint32_t threads[SEEDS], blocks[SEEDS], thread_changes = 0, block_changes = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct winner args = {&threads[seed], &blocks[seed]};
        shim_seed(seed);
        LAUNCH(race, 16, 64, 0, &args);
        assert_int_equal(shim_error(), STATUS_OK);
        thread_changes += threads[seed] != threads[0];
        block_changes += blocks[seed] != blocks[0];
    }
    assert_true(thread_changes > SEEDS / 2 && block_changes > SEEDS / 2);
    for (uint64_t seed = 0; seed < SEEDS; seed++) { /* and the same seed shows the same again */
        uint32_t thread = 0, block = 0;
        const struct winner args = {&thread, &block};
        shim_seed(seed);
        LAUNCH(race, 16, 64, 0, &args);
        assert_int_equal(shim_error(), STATUS_OK);
        assert_true(thread == threads[seed] && block == blocks[seed]);
    }
}

struct broken {
    int how;
    float *out;
};

enum { LEAVES, PARTS, LANE_LEAVES, LANES_PART, BEHIND, BEFORE, READBACK_BLOCKS_POISON };

KERNEL(misbehave, struct broken) {
    SHARED(float, at);
    if (args->how == LEAVES && THREAD == 5) return;
    if (args->how == LEAVES) BARRIER();
    if (args->how == PARTS && THREAD % 2 == 0) BARRIER();
    if (args->how == PARTS) BARRIER();
    if (args->how == LANE_LEAVES && THREAD == 40) return;
    if (args->how == LANE_LEAVES) *args->out = gpu_shuffle_xor_f32(GPU_ARG 1.0f, 1);
    if (args->how == LANES_PART && THREAD % 2 == 0) WARP_BARRIER();
    if (args->how == LANES_PART && THREAD % 2 == 1)
        *args->out = gpu_shuffle_xor_f32(GPU_ARG 1.0f, 1);
    if (args->how == BEHIND && THREAD == 0) at[64] = 1.0f;
    if (args->how == BEFORE && THREAD == 0) at[-1] = 1.0f;
    if (args->how == READBACK_BLOCKS_POISON && THREAD == 0) *args->out = at[3];
}

static void tell(int how, const char *text) {
    float out = 0.0f;
    const struct broken args = {how, &out}, well = {-1, &out};
    LAUNCH(misbehave, 2, 64, 64 * sizeof(float), &args);
    assert_told(text);
    LAUNCH(misbehave, 2, 64, 64 * sizeof(float), &well);
    assert_int_equal(shim_error(), STATUS_OK); /* fibres that stuck are made anew */
}

static void validate_texts(void **state) {
    (void)state;
    tell(LEAVES, "63 threads wait at the barrier of line");
    tell(PARTS, "threads wait at different barriers, of lines");
    tell(LANE_LEAVES, "31 lanes of warp 1 wait for the others");
    tell(LANES_PART, "meet at different words");
    tell(BEHIND, "wrote outside its 256 bytes of shared memory");
    tell(BEFORE, "wrote outside its 256 bytes of shared memory");
}

/* Shared memory must end where the launch said it would. */
static void validate_end(void **state) {
    (void)state;
    float out = 0.0f;
    const struct broken args = {BEHIND, &out};
    LAUNCH(misbehave, 1, 64, 65 * sizeof(float), &args);
    assert_int_equal(shim_error(), STATUS_OK);
    LAUNCH(misbehave, 1, 64, 65 * sizeof(float) - 1, &args);
    assert_told("wrote outside its 259 bytes of shared memory");
}

static void verify_poison(void **state) {
    (void)state;
    float out = 0.0f;
    const struct broken args = {READBACK_BLOCKS_POISON, &out};
    LAUNCH(misbehave, 1, 64, 64 * sizeof(float), &args);
    assert_int_equal(shim_error(), STATUS_OK);
    assert_true(out != out);
}

/* A grid cut to 32 bits would be a few blocks, and the others would not run, without any error. */
static const struct launch_case {
    size_t grid;
    unsigned block;
    size_t shared;
    const char *text; /* NULL: a device takes it */
} launches[] = {
    {LIMITS_GRID, 1024, 101376, NULL},
    {1, 1, 0, NULL},
    {LIMITS_GRID + 1, 32, 0, "got 2147483648 blocks of 32 threads and 0 bytes"},
    {((size_t)1 << 32) + 1, 32, 0, "got 4294967297 blocks of"},
    {SIZE_MAX, 32, 0, "got 18446744073709551615 blocks of"},
    {0, 32, 0, "got 0 blocks of"},
    {1, 1025, 0, "blocks of 1025 threads"},
    {1, 0, 0, "blocks of 0 threads"},
    {1, 32, 101377, "and 101377 bytes"},
    {1, 32, (size_t)227 << 10, "and 232448 bytes"},
};

static void validate_limits(void **state) {
    (void)state;
    uint32_t total = 0, visits[64] = {0};
    const struct places args = {visits, &total};
    for (size_t i = 0; i < COUNT_OF(launches); i++) {
        const struct launch_case *const c = &launches[i];
        char text[LIMITS_TEXT] = "";
        assert_int_equal(limits_refuse(c->grid, c->block, c->shared, text), c->text != NULL);
        if (c->text == NULL) continue;
        assert_non_null(strstr(text, c->text));
        LAUNCH(visit, c->grid, c->block, c->shared, &args);
        if (c->grid == 0)
            assert_int_equal(shim_error(), STATUS_OK); /* no block, no start */
        else
            assert_told(c->text);
    }
    assert_int_equal(total, 0);
}

static void validate_launches(void **state) {
    (void)state;
    uint32_t total = 0, visits[64] = {0};
    const struct places args = {visits, &total};
    LAUNCH(visit, 1, 33, 0, &args);
    assert_told("expected blocks of whole warps");
    LAUNCH(visit, 1, 32, LIMITS_SHARED + 1, &args);
    LAUNCH(visit, 1, 32, 0, &args); /* after an error nothing runs */
    assert_told("bytes of shared");
    assert_int_equal(total, 0);
}

/* ---- tensor cores ---- */

#define PLACES (16 * 16)

struct product {
    const float *left, *right; /* (16, 16), (16, 8) */
    float *sums;               /* (16, 8) */
    uint32_t *loaded;          /* (2, 32, 4): straight, turned */
};

/* Loads the left side straight and the right one, which stands by its terms, turned; makes their
 * product as NVIDIA's layouts say where sums stand. */
KERNEL(multiply, struct product) {
    SHARED(uint16_t, memory);
    uint16_t *const left = memory, *const right = memory + PLACES;
    const unsigned lane = THREAD;
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    uint32_t a[4], b[4];
    for (unsigned i = lane; i < PLACES; i += GPU_WARP) {
        left[i] = short_bits(args->left[i], DTYPE_BF16);
        right[i] = short_bits(i % 16 < 8 ? args->right[i / 16 * 8 + i % 16] : 0.0f, DTYPE_BF16);
    }
    BARRIER();
    tensor_load(GPU_ARG a, left + (lane / 8 % 2 * 8 + lane % 8) * 16 + lane / 16 * 8);
    tensor_load_turned(GPU_ARG b, right + (lane / 8 % 2 * 8 + lane % 8) * 16 + lane / 16 * 8);
    tensor_step(GPU_ARG sum, a, b, DTYPE_BF16);
    for (unsigned i = 0; i < 4; i++) {
        args->sums[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = sum[i];
        args->loaded[lane * 4 + i] = a[i];
        args->loaded[(GPU_WARP + lane) * 4 + i] = b[i];
    }
}

/* Numbers that a few bits hold, so that every sum is exact. Layouts: PTX ISA 9.0, figures of
 * "ldmatrix" (thread t of the first matrix has row t / 4, columns t % 4 * 2 and the next; .trans:
 * of its transpose). */
static void validate_tensor_words(void **state) {
    (void)state;
    float left[PLACES], right[16 * 8], sums[16 * 8];
    uint32_t loaded[2 * GPU_WARP * 4];
    const struct product args = {left, right, sums, loaded};
    for (unsigned i = 0; i < PLACES; i++)
        left[i] = (float)(i * 7 % 23) - 11.0f;
    for (unsigned i = 0; i < 16 * 8; i++)
        right[i] = (float)(i * 5 % 19) - 9.0f;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        shim_seed(seed);
        LAUNCH(multiply, 1, 32, 2 * PLACES * sizeof(uint16_t), &args);
        assert_int_equal(shim_error(), STATUS_OK);
        for (unsigned row = 0; row < 16; row++)
            for (unsigned column = 0; column < 8; column++) {
                float due = 0.0f;
                for (unsigned t = 0; t < 16; t++)
                    due += left[row * 16 + t] * right[t * 8 + column];
                assert_true(sums[row * 8 + column] == due);
            }
        for (unsigned lane = 0; lane < GPU_WARP; lane++) {
            const unsigned g = lane / 4, t = lane % 4 * 2;
            const uint32_t straight = loaded[lane * 4], turned = loaded[(GPU_WARP + lane) * 4];
            assert_int_equal(straight & 0xffff, short_bits(left[g * 16 + t], DTYPE_BF16));
            assert_int_equal(straight >> 16, short_bits(left[g * 16 + t + 1], DTYPE_BF16));
            assert_int_equal(turned & 0xffff, short_bits(right[t * 8 + g], DTYPE_BF16));
            assert_int_equal(turned >> 16, short_bits(right[(t + 1) * 8 + g], DTYPE_BF16));
        }
    }
}

struct copying {
    const uint16_t *from;
    uint16_t *late; /* what stands there behind the wait */
    int copies, there;
};

KERNEL(copy_late, struct copying) {
    SHARED(uint16_t, memory);
    uint16_t *const to = memory + THREAD * 8;
    for (int i = 0; i < args->copies; i++)
        tensor_copy(GPU_ARG to, args->from + THREAD * 8, args->there);
    TENSOR_WAIT();
    for (unsigned i = 0; i < 8; i++)
        args->late[THREAD * 8 + i] = to[i];
}

/* Eight numbers for tensor cores, or zeros; a thread has room for so many copies on their way. */
static void verify_copies_of_numbers(void **state) {
    (void)state;
    _Alignas(16) uint16_t from[256];
    uint16_t late[256];
    for (unsigned i = 0; i < 256; i++)
        from[i] = (uint16_t)(i + 1);
    for (int there = 0; there < 2; there++) {
        const struct copying args = {from, late, 1, there};
        LAUNCH(copy_late, 1, 32, 256 * sizeof(uint16_t), &args);
        assert_int_equal(shim_error(), STATUS_OK);
        for (unsigned i = 0; i < 256; i++)
            assert_int_equal(late[i], there ? from[i] : 0);
    }
    const struct copying many = {from, late, 2 * SHIM_ASYNC + 2, 1};
    LAUNCH(copy_late, 1, 32, 256 * sizeof(uint16_t), &many);
    assert_told("has more than 128 copies on their way");
}

static void validate_rounded_pairs(void **state) {
    (void)state;
    static const struct {
        enum dtype type;
        float first, second;
        uint32_t pair;
    } cases[] = {
        {DTYPE_BF16, 1.0f, -2.0f, 0xc0003f80u},
        {DTYPE_BF16, 0x1.01p0f, 0x1.03p0f, 0x3f823f80u}, /* ties go to even */
        {DTYPE_BF16, 0x1.fffffep127f, 0.0f, 0x00007f80u},
        {DTYPE_F16, 1.0f, -2.0f, 0xc0003c00u},
        {DTYPE_F16, 65519.0f, 65520.0f, 0x7c007bffu},
        {DTYPE_F16, 0x1p-24f, 0x1p-25f, 0x00000001u},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const uint32_t pair = tensor_pack(cases[i].first, cases[i].second, cases[i].type);
        assert_int_equal(pair, cases[i].pair);
        assert_true(tensor_unpack(pair, 0, cases[i].type) ==
                    short_value((uint16_t)pair, cases[i].type));
    }
    assert_true(tensor_larger(NAN, 1.0f) == 1.0f && tensor_larger(1.0f, NAN) == 1.0f);
    assert_true(tensor_exp2(-INFINITY) == 0.0f && isnan(tensor_exp2(NAN)));
}

/* ---- when a launch runs ---- */

struct step {
    uint32_t factor;
    uint32_t *value;
};

KERNEL(multiply_and_count, struct step) {
    if (THREAD == 0) *args->value = *args->value * args->factor + 1;
}

static void count_on_host(const void *given) {
    const struct step *const args = (const struct step *)given;
    *args->value = *args->value * args->factor + 1;
}

/* A read before the wait sees the old value, a write before the wait is seen by the kernel, and
 * arguments are copied at the launch. */
static void verify_launches_wait(void **state) {
    (void)state;
    uint32_t value = 1;
    struct step args = {10, &value};
    LAUNCH(multiply_and_count, 1, 32, 0, &args);
    args.factor = 7;
    LAUNCH(multiply_and_count, 1, 32, 0, &args);
    assert_int_equal(value, 1);
    value = 2;
    args = (struct step){0, NULL};
    GPU_WAIT();
    assert_int_equal(value, (2 * 10 + 1) * 7 + 1);
    GPU_WAIT(); /* nothing runs twice */
    assert_int_equal(value, (2 * 10 + 1) * 7 + 1);
    assert_int_equal(shim_error(), STATUS_OK);
}

/* A library's work on a device comes in its turn in the queue; here a host function stands for
 * it. */
static void verify_host_functions_wait(void **state) {
    (void)state;
    uint32_t value = 1;
    const struct step ten = {10, &value}, seven = {7, &value};
    LAUNCH(multiply_and_count, 1, 32, 0, &ten);
    shim_host(count_on_host, &seven, sizeof seven);
    LAUNCH(multiply_and_count, 1, 32, 0, &ten);
    assert_int_equal(value, 1);
    assert_int_equal(shim_error(), STATUS_OK);
    assert_int_equal(value, ((1 * 10 + 1) * 7 + 1) * 10 + 1);
}

/* When one launch more is queued than can wait at a time, the oldest has run, and only that one. */
static void verify_full_queue(void **state) {
    (void)state;
    uint32_t value = 0;
    const struct step args = {1, &value};
    for (uint32_t i = 0; i < SHIM_QUEUE + 3; i++) {
        assert_int_equal(value, i > SHIM_QUEUE ? i - SHIM_QUEUE : 0);
        LAUNCH(multiply_and_count, 1, 32, 0, &args);
    }
    assert_int_equal(shim_error(), STATUS_OK);
    assert_int_equal(value, SHIM_QUEUE + 3);
}

/* A launch that failed stops what comes behind it, kernels and host functions alike, and the wait
 * reports it. */
static void verify_queued_failure(void **state) {
    (void)state;
    uint32_t value = 1;
    float out = 0.0f;
    const struct step args = {10, &value};
    const struct broken broken = {LEAVES, &out};
    LAUNCH(multiply_and_count, 1, 32, 0, &args);
    LAUNCH(misbehave, 2, 64, 64 * sizeof(float), &broken);
    LAUNCH(multiply_and_count, 1, 32, 0, &args);
    shim_host(count_on_host, &args, sizeof args);
    assert_told("63 threads wait");
    assert_int_equal(value, 11);
    LAUNCH(multiply_and_count, 1, 32, 0, &args);
    assert_int_equal(shim_error(), STATUS_OK);
    assert_int_equal(value, 111);
}

struct large {
    unsigned char byte[SHIM_ARGS + 1];
};

KERNEL(take_large, struct large) {
    (void)gpu;
    (void)args;
}

static void take_nothing(const void *given) {
    (void)given;
}

/* An impossible launch is reported in its turn and by its own name: what came before it runs, what
 * comes behind it does not. */
static void validate_arguments(void **state) {
    (void)state;
    static const struct large large = {{0}};
    uint32_t value = 1;
    const struct step args = {10, &value};
    LAUNCH(multiply_and_count, 1, 32, 0, &args);
    LAUNCH(take_large, 1, 32, 0, &large);
    LAUNCH(multiply_and_count, 1, 32, 0, &args);
    assert_told("kernel take_large: expected 4096 bytes of arguments at most, got 4097");
    assert_int_equal(value, 11);
    shim_host(count_on_host, &args, sizeof args);
    shim_host(take_nothing, &large, sizeof large);
    shim_host(count_on_host, &args, sizeof args);
    assert_told("a function of the host: expected 4096 bytes of arguments at most, got 4097");
    assert_int_equal(value, 111);
}

static int close_shim(void **state) {
    (void)state;
    shim_close();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_every_thread_once),
        cmocka_unit_test(validate_shuffles_and_barriers),
        cmocka_unit_test(validate_copies),
        cmocka_unit_test(verify_atomics),
        cmocka_unit_test(validate_tiny_atomics),
        cmocka_unit_test(verify_missing_barrier_shows),
        cmocka_unit_test(verify_race_shows),
        cmocka_unit_test(validate_texts),
        cmocka_unit_test(validate_end),
        cmocka_unit_test(verify_poison),
        cmocka_unit_test(validate_tensor_words),
        cmocka_unit_test(verify_copies_of_numbers),
        cmocka_unit_test(validate_rounded_pairs),
        cmocka_unit_test(validate_limits),
        cmocka_unit_test(validate_launches),
        cmocka_unit_test(verify_launches_wait),
        cmocka_unit_test(verify_host_functions_wait),
        cmocka_unit_test(verify_full_queue),
        cmocka_unit_test(verify_queued_failure),
        cmocka_unit_test(validate_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, close_shim);
}
