/* SPDX-License-Identifier: Apache-2.0
 * dW = dY^T X whose rows are added by threads in whatever order they come, as atomics of a GPU do;
 * with `ordered` one thread adds them from the first to the last. For tests/python/racing.py. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

enum { THREADS = 8 };

struct product {
    const float *dy, *x;
    size_t rows, out, in;
    _Atomic uint32_t *sums;
    pthread_barrier_t barrier;
    atomic_size_t next;
};

static void add(_Atomic uint32_t *to, float value) {
    uint32_t before = atomic_load(to), after;
    do {
        float sum;
        memcpy(&sum, &before, sizeof sum);
        sum += value;
        memcpy(&after, &sum, sizeof after);
    } while (!atomic_compare_exchange_weak(to, &before, after));
}

static void add_row(struct product *p, size_t row) {
    for (size_t o = 0; o < p->out; o++)
        for (size_t i = 0; i < p->in; i++)
            add(&p->sums[o * p->in + i], p->dy[row * p->out + o] * p->x[row * p->in + i]);
}

static void *work(void *data) {
    struct product *p = data;
    pthread_barrier_wait(&p->barrier);
    for (size_t row; (row = atomic_fetch_add(&p->next, 1)) < p->rows;) {
        struct timespec now; /* who took a row may be overtaken, by how many the clock decides */
        clock_gettime(CLOCK_MONOTONIC, &now);
        for (long n = now.tv_nsec >> 3 & 3; n > 0; n--)
            sched_yield();
        add_row(p, row);
    }
    return NULL;
}

/* dy (rows, out), x (rows, in), dw (out, in), which it overwrites. Returns 0, or 1 where there are
 * no threads. */
int weight_gradient(const float *dy, const float *x, float *dw, size_t rows, size_t out, size_t in,
                    int ordered) {
    struct product p = {dy, x, rows, out, in, (_Atomic uint32_t *)(void *)dw, {{0}}, 0};
    pthread_t threads[THREADS];
    memset(dw, 0, out * in * sizeof *dw);
    if (ordered) {
        for (size_t row = 0; row < rows; row++)
            add_row(&p, row);
        return 0;
    }
    if (pthread_barrier_init(&p.barrier, NULL, THREADS) != 0) return 1;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, &p) != 0) return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&p.barrier);
    return 0;
}
