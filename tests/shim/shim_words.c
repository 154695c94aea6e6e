/* SPDX-License-Identifier: Apache-2.0
 * What threads of a block exchange: barriers, shuffles, atomic sums and copies to shared memory;
 * and what can be wrong with these. Threads of the shim never run at the same time.
 *
 * A shuffle passes values and orders no memory, as on a device: only barriers do. */
#include <string.h>

#include "tests/shim/shim_block.h"

void shim_barrier(struct gpu *gpu, int line) {
    struct shim *const s = gpu->shim;
    const unsigned t = gpu->thread;
    if (s->waits > 0 && s->line != line) {
        shim_tell_block(s, "threads wait at different barriers, of lines %u and %u",
                        (unsigned)s->line, (unsigned)line);
        shim_leave(s);
    }
    s->state[t] = SHIM_AT_BARRIER;
    s->line = line;
    if (++s->waits == s->threads) {
        memset(s->state, SHIM_READY, s->threads);
        s->waits = 0;
        s->redraw = 1;
        s->place.epoch++;
    }
    shim_leave(s);
}

enum word { WORD_BARRIER, WORD_SHUFFLE_F32, WORD_SHUFFLE_F64, WORD_GATHER };

/* Waits until all lanes of the warp are here; they have to wait for the same word. */
static void meet(struct gpu *gpu, enum word word) {
    struct shim *const s = gpu->shim;
    const unsigned t = gpu->thread;
    const unsigned warp = t / 32;
    if (s->warp_waits[warp] > 0 && s->warp_word[warp] != word) {
        shim_tell_block(s,
                        "lanes of warp %u meet at different words: a barrier, a step of tensor "
                        "cores, or a shuffle of another type",
                        warp, 0);
        shim_leave(s);
    }
    s->state[t] = SHIM_AT_WARP;
    s->warp_word[warp] = (unsigned char)word;
    if (++s->warp_waits[warp] == 32) {
        memset(s->state + (size_t)warp * 32, SHIM_READY, 32);
        s->warp_waits[warp] = 0;
        if (word == WORD_BARRIER) s->warp_epoch[warp]++;
    }
    shim_leave(s);
}

void shim_warp_barrier(struct gpu *gpu) {
    meet(gpu, WORD_BARRIER);
}

/* Gives a value to the warp and returns that of another lane. A value has to stand until the warp
 * has met once more, so two places by turns are enough. */
static uint64_t exchange(struct gpu *gpu, uint64_t bits, unsigned mask, enum word word) {
    struct shim *const s = gpu->shim;
    const unsigned t = gpu->thread;
    uint64_t *const given = s->given[s->turn[t]++ & 1];
    given[t] = bits;
    meet(gpu, word);
    return given[t ^ mask];
}

float shim_shuffle_f32(struct gpu *gpu, float value, unsigned mask) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (uint32_t)exchange(gpu, bits, mask % 32, WORD_SHUFFLE_F32);
    memcpy(&value, &bits, sizeof bits);
    return value;
}

double shim_shuffle_f64(struct gpu *gpu, double value, unsigned mask) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = exchange(gpu, bits, mask % 32, WORD_SHUFFLE_F64);
    memcpy(&value, &bits, sizeof bits);
    return value;
}

const uint64_t (*shim_gather(struct gpu *gpu, const uint64_t own[SHIM_GIVEN]))[SHIM_GIVEN] {
    struct shim *const s = gpu->shim;
    const unsigned t = gpu->thread;
    uint64_t(*const given)[SHIM_GIVEN] = s->gathered[s->turn[t]++ & 1];
    memcpy(given[t], own, SHIM_GIVEN * sizeof own[0]);
    meet(gpu, WORD_GATHER);
    return (const uint64_t(*)[SHIM_GIVEN])(given + t / 32 * 32);
}

/* Makes a subnormal number a zero of its sign. */
static float flush(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7f800000u) == 0) bits &= 0x80000000u;
    memcpy(&x, &bits, sizeof bits);
    return x;
}

/* Adds as the PTX ISA says of atom.add.f32, whatever the kernel is compiled with: on global memory
 * subnormal terms, sums and results are zero; on shared memory they are kept. f64 has no such
 * exception. */
float shim_atomic_f32(struct gpu *gpu, float *sum, float term) {
    const float before = *sum;
    const struct shim *const s = gpu == NULL ? NULL : gpu->shim; /* NULL: outside of a block */
    const int near = s != NULL && (uintptr_t)sum - (uintptr_t)gpu->shared < s->shared_bytes;
    watch_atomic(sum, sizeof *sum);
    *sum = near ? before + term : flush(flush(before) + flush(term));
    return before;
}

double shim_atomic_f64(struct gpu *gpu, double *sum, double term) {
    const double before = *sum;
    (void)gpu;
    watch_atomic(sum, sizeof *sum);
    *sum = before + term;
    return before;
}

uint32_t shim_atomic_u32(struct gpu *gpu, uint32_t *sum, uint32_t term) {
    const uint32_t before = *sum;
    (void)gpu;
    watch_atomic(sum, sizeof *sum);
    *sum = before + term;
    return before;
}

static void make_copy(const struct shim_async *copy) {
    watch_copy(copy->from, copy->bytes, copy->to, copy->size);
    memcpy(copy->to, copy->from, copy->bytes);
    memset((unsigned char *)copy->to + copy->bytes, 0, copy->size - copy->bytes);
}

void shim_async(struct gpu *gpu, void *to, const void *from, unsigned size, unsigned bytes) {
    struct shim *const s = gpu->shim;
    struct shim_asyncs *const own = &s->asyncs[gpu->thread];
    const struct shim_async copy = {to, from, (unsigned short)size, (unsigned short)bytes,
                                    own->group};
    const size_t place = (uintptr_t)to - (uintptr_t)gpu->shared;
    if (bytes > size || bytes % 4 != 0 || (uintptr_t)to % size != 0 ||
        (bytes > 0 && (uintptr_t)from % size != 0) || place > s->shared_bytes ||
        size > s->shared_bytes - place) {
        shim_tell_block(s,
                        "a copy of %u bytes (%u of them read) is not from a multiple of its size "
                        "to one in shared memory",
                        size, bytes);
    } else if ((own->started++ + gpu->thread) % 2 == 0) {
        make_copy(&copy);
    } else if (own->count == SHIM_ASYNC) {
        shim_tell_block(s, "thread %u has more than %u copies on their way", gpu->thread,
                        SHIM_ASYNC);
    } else {
        own->copy[own->count++] = copy;
    }
}

void shim_async_commit(struct gpu *gpu) {
    gpu->shim->asyncs[gpu->thread].group++;
}

void shim_async_wait(struct gpu *gpu, unsigned groups) {
    struct shim_asyncs *const own = &gpu->shim->asyncs[gpu->thread];
    unsigned made = 0;
    while (made < own->count && own->copy[made].group + groups < own->group)
        make_copy(&own->copy[made++]);
    own->count -= made;
    memmove(own->copy, own->copy + made, own->count * sizeof own->copy[0]);
}

void shim_misaligned(void) {
    shim_tell("four neighbours are read or written at an address that is no multiple of 16");
}
