/* SPDX-License-Identifier: Apache-2.0
 * cuRAND's device functions, which we did not write, against this program's: curand_init and
 * curand4 at the mapping of law 10, and PyTorch's loop over them against determinism/torch_rng.h.
 * The functions come out of the toolkit's headers and are compiled for the host and for the device.
 *
 *       curand host | curand device
 *
 * Prints what was compared. The exit status is 0 where all are equal, 1 where not, 77 without a
 * device. */
#define QUALIFIERS static __forceinline__ __host__ __device__
#include <curand_kernel.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "determinism/stream.h"
extern "C" {
#include "determinism/torch_rng.h"
}

#define SITES 4096            /* addresses */
#define DRAWS 3               /* blocks of each */
#define WORDS (4 * DRAWS + 1) /* and the last word of the first block again */
#define LONG (1 << 20)        /* numbers of a launch */

/* One address: a seed, a packed site, a block of it. */
struct place {
    uint64_t seed, block;
    struct stream_site site;
};

/* ---- addresses (law 10) ---- */

static __host__ __device__ void draw_place(const struct place *at, uint32_t *out) {
    const uint32_t *const word = at->site.counter.word;
    const uint64_t low =
        (uint64_t)(word[1] | (uint32_t)(at->block >> 32)) << 32 | (uint32_t)at->block;
    const uint64_t high = (uint64_t)word[3] << 32 | word[2];
    curandStatePhilox4_32_10_t state;
    curand_init(at->seed, high, 4 * low, &state);
    for (int i = 0; i < DRAWS; i++) {
        const uint4 four = curand4(&state);
        out[4 * i] = four.x;
        out[4 * i + 1] = four.y;
        out[4 * i + 2] = four.z;
        out[4 * i + 3] = four.w;
    }
    curand_init(at->seed, high, 4 * low + 3, &state);
    out[4 * DRAWS] = curand(&state);
}

/* Every field takes its largest value at some index, and blocks end where a carry would show. */
static struct place place_at(uint32_t index) {
    const struct philox_block counter = {{index, 1, 2, 3}};
    const struct philox_block a = philox_draw(counter, 77), b = philox_draw(counter, 78);
    struct place at;
    at.seed = index % 5 == 0 ? ~(uint64_t)0 : (uint64_t)a.word[0] << 32 | a.word[1];
    at.block = ((uint64_t)a.word[2] << 32 | a.word[3]) & 0xFFFFFFFFFFu;
    if (index % 3 == 0) at.block = (at.block | 0xFFFFFFFFu) - index % 7; /* low half nearly full */
    if (index % 11 == 0) at.block = 0;
    if (at.block > 0xFFFFFFFFFFu - DRAWS) at.block -= DRAWS;
    at.site.counter.word[0] = 0;
    at.site.counter.word[1] = b.word[1] & 0x3FFFFF00u;
    at.site.counter.word[2] = index % 13 == 0 ? 0xFFFFFFFFu : b.word[2];
    at.site.counter.word[3] = index % 17 == 0 ? 0xFFFFFFFFu : b.word[3];
    return at;
}

static int compare_places(const uint32_t *drawn) {
    int bad = 0;
    for (uint32_t i = 0; i < SITES; i++) {
        const struct place at = place_at(i);
        for (uint32_t w = 0; w < WORDS; w++) {
            const uint64_t element = 4 * at.block + (w == 4 * DRAWS ? 3 : w);
            const uint32_t ours = stream_word(at.seed, at.site, element);
            if (drawn[i * WORDS + w] == ours) continue;
            if (bad++ < 5)
                printf("place %u, word %u: cuRAND %08x, ours %08x\n", i, w, drawn[i * WORDS + w],
                       ours);
        }
    }
    return bad;
}

/* ---- PyTorch's loop (DistributionTemplates.h, distribution_elementwise_grid_stride_kernel) ----
 */

struct launch {
    const char *gpu;
    struct torch_device device;
    uint64_t seed, offset;
};

static const struct launch launches[] = {{"T4", {40, 1024}, 0, 0},
                                         {"A100", {108, 2048}, 67280421310721, 8},
                                         {"H100 SXM", {132, 2048}, 2385, 4 * 5000000000}};

/* Writes what thread `thread` of `threads` writes. */
static __host__ __device__ void torch_thread(uint64_t seed, uint64_t offset, uint64_t thread,
                                             uint64_t threads, uint64_t count, float *out) {
    curandStatePhilox4_32_10_t state;
    curand_init(seed, thread, offset, &state);
    for (uint64_t at = thread; at < count; at += 4 * threads) {
        const float4 four = curand_uniform4(&state);
        const float each[4] = {four.x, four.y, four.z, four.w};
        for (uint64_t i = 0; i < 4; i++)
            if (at + i * threads < count) out[at + i * threads] = each[i];
    }
}

static int compare_launch(const struct launch *launch, const float *drawn) {
    const uint64_t threads = torch_threads(&launch->device, LONG);
    int bad = 0;
    for (uint64_t i = 0; i < LONG; i++) {
        const float ours = torch_uniform(torch_word(launch->seed, launch->offset, threads, 1, i));
        if (drawn[i] == ours) continue;
        if (bad++ < 5)
            printf("%s, element %llu: cuRAND %.9g, ours %.9g\n", launch->gpu, (unsigned long long)i,
                   (double)drawn[i], (double)ours);
    }
    return bad;
}

/* ---- on the host, on the device ---- */

static uint32_t words[SITES * WORDS];
static float uniforms[LONG];

static int on_host(void) {
    for (uint32_t i = 0; i < SITES; i++) {
        const struct place at = place_at(i);
        draw_place(&at, words + (size_t)i * WORDS);
    }
    int bad = compare_places(words);
    for (size_t l = 0; l < COUNT_OF(launches); l++) {
        const uint64_t threads = torch_threads(&launches[l].device, LONG);
        for (uint64_t t = 0; t < threads; t++)
            torch_thread(launches[l].seed, launches[l].offset, t, threads, LONG, uniforms);
        bad += compare_launch(&launches[l], uniforms);
    }
    return bad;
}

static __global__ void places_kernel(const struct place *places, uint32_t *out) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < SITES) draw_place(places + i, out + (size_t)i * WORDS);
}

static __global__ void torch_kernel(uint64_t seed, uint64_t offset, float *out) {
    torch_thread(seed, offset, (uint64_t)blockIdx.x * blockDim.x + threadIdx.x,
                 (uint64_t)gridDim.x * blockDim.x, LONG, out);
}

/* Returns 1, and prints why, where a call failed. */
static int failed(cudaError_t status) {
    if (status == cudaSuccess) return 0;
    printf("CUDA: %s\n", cudaGetErrorString(status));
    return 1;
}

static int places_on_device(const struct place *host, void *device) {
    struct place *const places = (struct place *)device;
    uint32_t *const out = (uint32_t *)(places + SITES);
    if (failed(cudaMemcpy(places, host, SITES * sizeof *host, cudaMemcpyHostToDevice))) return 1;
    places_kernel<<<(SITES + 127) / 128, 128>>>(places, out);
    if (failed(cudaMemcpy(words, out, sizeof words, cudaMemcpyDeviceToHost))) return 1;
    return compare_places(words);
}

static int launch_on_device(const struct launch *launch, void *device) {
    const uint64_t threads = torch_threads(&launch->device, LONG);
    torch_kernel<<<(unsigned)(threads / TORCH_BLOCK), TORCH_BLOCK>>>(launch->seed, launch->offset,
                                                                     (float *)device);
    if (failed(cudaMemcpy(uniforms, device, sizeof uniforms, cudaMemcpyDeviceToHost))) return 1;
    return compare_launch(launch, uniforms);
}

static int on_device(void) {
    static struct place places[SITES];
    void *device = NULL;
    for (uint32_t i = 0; i < SITES; i++)
        places[i] = place_at(i);
    if (failed(cudaMalloc(&device, sizeof places + sizeof words + sizeof uniforms))) return 1;
    int bad = places_on_device(places, device);
    for (size_t l = 0; l < COUNT_OF(launches); l++)
        bad += launch_on_device(&launches[l], device);
    return bad + failed(cudaFree(device));
}

int main(int count, char **arguments) {
    const int device = count > 1 && strcmp(arguments[1], "device") == 0;
    int devices = 0;
    if (device && (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)) {
        puts("skipped: no device");
        return 77;
    }
    const int bad = device ? on_device() : on_host();
    printf("%s: %d addresses of %d words, %zu launches of %d numbers: %d differ\n",
           device ? "device" : "host", SITES, WORDS, COUNT_OF(launches), LONG, bad);
    return bad != 0;
}
