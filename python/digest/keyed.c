/* SPDX-License-Identifier: Apache-2.0
 * "keyed 1" (docs/FOREIGN.md) for the recorder, which calls it through ctypes in somebody else's
 * training. It is the sum of determinism/keyed_digest.c once more, in one file that a wheel is
 * built from with a compiler alone, and compiled for AVX-512, AVX2 and every machine: the digest of
 * all weights is taken in every update there. Sums of integers are the same in all of them, and
 * tests/python/test_record_digest.py holds them against each other and against the page's vectors.
 * Nothing here allocates, keeps state or needs another library than that of threads. A byte order
 * other than little-endian is not compiled. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "keyed 1 reads elements as little-endian words"
#endif

static inline uint64_t mix(uint64_t index, uint32_t word) {
    uint64_t x = (index << 32) + word + UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

/* One loop per width of a word; memcpy because elements need not be aligned. */
#define SUM(type)                                                                                  \
    for (uint64_t i = 0; i < count; i++) {                                                         \
        type word;                                                                                 \
        memcpy(&word, bytes + sizeof word * i, sizeof word);                                       \
        sum += mix(first + i, word);                                                               \
    }

static inline __attribute__((always_inline)) uint64_t sum_words(const uint8_t *bytes, size_t width,
                                                                uint64_t first, uint64_t count) {
    uint64_t sum = 0;
    if (width == 4) {
        SUM(uint32_t)
    } else if (width == 2) {
        SUM(uint16_t)
    } else {
        SUM(uint8_t)
    }
    return sum;
}

static uint64_t sum_anywhere(const uint8_t *bytes, size_t width, uint64_t first, uint64_t count) {
    return sum_words(bytes, width, first, count);
}

#if defined(__x86_64__) && defined(__GNUC__)
#define AVX2 __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw")))

/* AVX2 has no product of 64 bits, so its arithmetic decides how long a sum takes, and not memory:
 * elements that are in the cache are summed no faster. So SIXTEEN of TURN elements are summed in
 * vectors and the others one by one, by the multiplier for 64 bits, which is free meanwhile. On a
 * Zen 3 an element took 2.4 cycles by the compiler's vectors, 1.9 by these alone, and 1.5 so. */
enum { SIXTEEN = 16, TURN = 20, AHEAD_AVX2 = 2048 };

/* x times a constant, modulo 2^64, in each of four: the product of the low halves, and those of one
 * low and one high half, which count in the high half alone. `turned` is the constant with its
 * halves exchanged. */
AVX2 static inline __m256i times_four(__m256i x, uint64_t constant) {
    const __m256i whole = _mm256_set1_epi64x((long long)constant);
    const __m256i turned = _mm256_set1_epi64x((long long)(constant << 32 | constant >> 32));
    const __m256i across = _mm256_mullo_epi32(x, turned);
    const __m256i both = _mm256_add_epi32(across, _mm256_slli_epi64(across, 32));
    return _mm256_add_epi64(_mm256_mul_epu32(x, whole),
                            _mm256_blend_epi32(_mm256_setzero_si256(), both, 0xAA));
}

/* The terms of four elements: `words` in the low halves, whatever is in the high ones; `index` has
 * their indexes in the high halves, less what `place` adds beside the constant. */
AVX2 static inline __m256i mix_four(__m256i words, __m256i index, __m256i place) {
    __m256i x = _mm256_add_epi64(_mm256_blend_epi32(words, index, 0xAA), place);
    x = _mm256_xor_si256(x, _mm256_srli_epi64(x, 30));
    x = times_four(x, UINT64_C(0xBF58476D1CE4E5B9));
    x = _mm256_xor_si256(x, _mm256_srli_epi64(x, 27));
    x = times_four(x, UINT64_C(0x94D049BB133111EB));
    return _mm256_xor_si256(x, _mm256_srli_epi64(x, 31));
}

/* Eight elements of 4, 2 or 1 bytes, each in 32 bits. */
AVX2 static inline __m256i load_words(const uint8_t *at, size_t width) {
    if (width == 4) return _mm256_loadu_si256((const __m256i_u *)at);
    if (width == 2) return _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i_u *)at));
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i_u *)at));
}

/* What is added to the words of a vector whose first is element `place` of the turn. */
AVX2 static inline __m256i place_of(uint64_t place) {
    return _mm256_set1_epi64x((long long)((place << 32) + UINT64_C(0x9E3779B97F4A7C15)));
}

AVX2 static inline __attribute__((always_inline)) uint64_t sum_turns(const uint8_t *bytes,
                                                                     size_t width, uint64_t first,
                                                                     uint64_t count) {
    const __m256i turn = _mm256_set1_epi64x((long long)((uint64_t)TURN << 32));
    __m256i index = _mm256_slli_epi64(
        _mm256_add_epi64(_mm256_set1_epi64x((long long)first), _mm256_set_epi64x(6, 4, 2, 0)), 32);
    __m256i sum = _mm256_setzero_si256();
    uint64_t total = 0, fours[4];
    for (; count >= TURN; count -= TURN, first += TURN, bytes += width * TURN) {
        for (size_t line = 0; line < TURN * width; line += 64)
            _mm_prefetch((const char *)(bytes + AHEAD_AVX2 + line), _MM_HINT_T0);
        for (uint64_t eight = 0; eight < SIXTEEN; eight += 8) {
            const __m256i words = load_words(bytes + width * eight, width);
            const __m256i odd = _mm256_srli_epi64(words, 32);
            sum = _mm256_add_epi64(sum, mix_four(words, index, place_of(eight)));
            sum = _mm256_add_epi64(sum, mix_four(odd, index, place_of(eight + 1)));
        }
        index = _mm256_add_epi64(index, turn);
        for (uint64_t i = SIXTEEN; i < TURN; i++) {
            uint64_t term = sum_words(bytes + width * i, width, first + i, 1);
            __asm__("" : "+r"(term)); /* else a compiler makes vectors of them, too */
            total += term;
        }
    }
    _mm256_storeu_si256((__m256i_u *)fours, sum);
    for (int i = 0; i < 4; i++)
        total += fours[i];
    return total + sum_words(bytes, width, first, count);
}

AVX2 static uint64_t sum_avx2(const uint8_t *bytes, size_t width, uint64_t first, uint64_t count) {
    if (width == 4) return sum_turns(bytes, 4, first, count);
    if (width == 2) return sum_turns(bytes, 2, first, count);
    return sum_turns(bytes, 1, first, count);
}

/* With AVX-512 memory decides how long a sum takes, so it is read at STREAMS places at once, and
 * asked for AHEAD bytes before its turn. On the machine of docs/measurements/record.md a sum of 500
 * MB took 133 ms of processor time without either, 54 with one place and 4096 bytes ahead, and 45
 * so; eight places were no better. Asking beyond the end does nothing. */
enum { STREAMS = 4, AHEAD = 1024 };

/* The terms of eight elements. `place` is (index << 32) and the constant, added. */
AVX512 static inline __m512i mix_eight(__m512i words, __m512i place) {
    const __m512i first = _mm512_set1_epi64((long long)UINT64_C(0xBF58476D1CE4E5B9));
    const __m512i second = _mm512_set1_epi64((long long)UINT64_C(0x94D049BB133111EB));
    __m512i x = _mm512_add_epi64(place, words);
    x = _mm512_mullo_epi64(_mm512_xor_si512(x, _mm512_srli_epi64(x, 30)), first);
    x = _mm512_mullo_epi64(_mm512_xor_si512(x, _mm512_srli_epi64(x, 27)), second);
    return _mm512_xor_si512(x, _mm512_srli_epi64(x, 31));
}

/* Eight elements of 4 or of 2 bytes, each in 64 bits. */
AVX512 static inline __m512i load_eight(const uint8_t *at, size_t width) {
    return width == 4 ? _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i_u *)at))
                      : _mm512_cvtepu16_epi64(_mm_loadu_si128((const __m128i_u *)at));
}

/* Sixteen elements of each stream a turn, of 4 or of 2 bytes; a stream is a quarter of the
 * elements. Those that are left and other widths go one by one. */
AVX512 static inline __attribute__((always_inline)) uint64_t sum_streams(const uint8_t *bytes,
                                                                         size_t width,
                                                                         uint64_t first,
                                                                         uint64_t count) {
    const __m512i eight = _mm512_set1_epi64((long long)(UINT64_C(8) << 32));
    const __m512i order = _mm512_slli_epi64(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0), 32);
    const uint64_t length = count / (16 * STREAMS) * 16;
    __m512i sum = _mm512_setzero_si512(), places[STREAMS];
    for (uint64_t s = 0; s < STREAMS; s++)
        places[s] =
            _mm512_add_epi64(order, _mm512_set1_epi64((long long)(((first + s * length) << 32) +
                                                                  UINT64_C(0x9E3779B97F4A7C15))));
    for (uint64_t done = 0; done < length; done += 16)
        for (uint64_t s = 0; s < STREAMS; s++) {
            const uint8_t *at = bytes + width * (s * length + done);
            _mm_prefetch((const char *)(at + AHEAD), _MM_HINT_T0);
            for (int half = 0; half < 2; half++, at += 8 * width) {
                sum = _mm512_add_epi64(sum, mix_eight(load_eight(at, width), places[s]));
                places[s] = _mm512_add_epi64(places[s], eight);
            }
        }
    uint64_t eights[8], total = 0;
    _mm512_storeu_si512(eights, sum);
    for (int i = 0; i < 8; i++)
        total += eights[i];
    return total + sum_words(bytes + width * STREAMS * length, width, first + STREAMS * length,
                             count - STREAMS * length);
}

AVX512 static uint64_t sum_avx512(const uint8_t *bytes, size_t width, uint64_t first,
                                  uint64_t count) {
    if (width == 4) return sum_streams(bytes, 4, first, count);
    if (width == 2) return sum_streams(bytes, 2, first, count);
    return sum_words(bytes, width, first, count);
}
#endif

/* The sum over `count` elements of `width` bytes (1, 2, 4 or 8), which are elements `first` and on
 * of their tensor; 0 for another width. */
__attribute__((visibility("default"))) uint64_t twinstep_keyed_sum(const void *elements,
                                                                   size_t width, uint64_t first,
                                                                   uint64_t count);

uint64_t twinstep_keyed_sum(const void *elements, size_t width, uint64_t first, uint64_t count) {
    const uint8_t *bytes = (const uint8_t *)elements;
    if (width == 8) return twinstep_keyed_sum(elements, 4, 2 * first, 2 * count);
    if (width != 1 && width != 2 && width != 4) return 0;
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw"))
        return sum_avx512(bytes, width, first, count);
    if (__builtin_cpu_supports("avx2")) return sum_avx2(bytes, width, first, count);
#endif
    return sum_anywhere(bytes, width, first, count);
}

/* ---- many tensors, by threads that end with the call ---- */

struct twinstep_piece { /* the arguments of twinstep_keyed_sum */
    const void *elements;
    uint64_t width, first, count;
};

enum { CHUNK = 1 << 20, MOST_THREADS = 64 };

struct job {
    const struct twinstep_piece *pieces;
    uint64_t *sums;
    size_t pieces_left, at_piece;
    uint64_t at_element;
    pthread_mutex_t lock;
};

/* Takes the next elements that nobody has; 0 where none are left. The order does not matter. */
static int take_chunk(struct job *job, struct twinstep_piece *out, size_t *out_place) {
    while (job->pieces_left > 0) {
        const struct twinstep_piece *piece = &job->pieces[job->at_piece];
        const uint64_t left = piece->count - job->at_element;
        if (left > 0) {
            *out = *piece;
            out->elements = (const uint8_t *)piece->elements + piece->width * job->at_element;
            out->first += job->at_element;
            out->count = left < CHUNK ? left : CHUNK;
            *out_place = job->at_piece;
            job->at_element += out->count;
            return 1;
        }
        job->at_piece++;
        job->pieces_left--;
        job->at_element = 0;
    }
    return 0;
}

static void *work(void *data) {
    struct job *job = (struct job *)data;
    struct twinstep_piece chunk;
    size_t place;
    pthread_mutex_lock(&job->lock);
    while (take_chunk(job, &chunk, &place)) {
        pthread_mutex_unlock(&job->lock);
        const uint64_t sum =
            twinstep_keyed_sum(chunk.elements, chunk.width, chunk.first, chunk.count);
        pthread_mutex_lock(&job->lock);
        job->sums[place] += sum;
    }
    pthread_mutex_unlock(&job->lock);
    return NULL;
}

/* The sums of `count` pieces, by as many threads as can be had up to `threads`. They take no
 * signals of the program that they run in, and none is left when this returns. */
__attribute__((visibility("default"))) void twinstep_keyed_sums(const struct twinstep_piece *pieces,
                                                                size_t count, uint64_t *sums,
                                                                int threads);

void twinstep_keyed_sums(const struct twinstep_piece *pieces, size_t count, uint64_t *sums,
                         int threads) {
    struct job job = {.pieces = pieces, .sums = sums, .pieces_left = count};
    pthread_t others[MOST_THREADS];
    sigset_t all, before;
    int started = 0;
    memset(sums, 0, count * sizeof *sums);
    if (pthread_mutex_init(&job.lock, NULL) != 0) { /* there is no lock to take: no other thread */
        for (size_t i = 0; i < count; i++)
            sums[i] = twinstep_keyed_sum(pieces[i].elements, (size_t)pieces[i].width,
                                         pieces[i].first, pieces[i].count);
        return;
    }
    sigfillset(&all);
    if (threads > 1 && pthread_sigmask(SIG_SETMASK, &all, &before) == 0) {
        while (started < threads - 1 && started < MOST_THREADS &&
               pthread_create(&others[started], NULL, work, &job) == 0)
            started++;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    work(&job);
    for (int i = 0; i < started; i++)
        pthread_join(others[i], NULL);
    pthread_mutex_destroy(&job.lock);
}
