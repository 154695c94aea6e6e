/* SPDX-License-Identifier: Apache-2.0
 * The launches that have not run: a ring of them, each with its own copy of its arguments.
 *
 * Nothing runs before the host waits. So a host that reads a kernel's output too early finds what
 * was there before, and a host that writes too early changes what the kernel reads: of all orders
 * that a device may take, this is the one in which the device is as late as it can be. Tensors'
 * memory is open while launches run, and only then (shim_memory.h). The ring has
 * SHIM_QUEUE places. When one more launch comes, the oldest runs, and only that one.
 *
 * Invariant: launches run in the order in which they came, each with the draws of its number. */
#include "tests/shim/shim_queue.h"

#include <string.h>

#include "base/arena.h"
#include "tests/shim/shim_memory.h"

struct place {
    struct shim_work work;
    uint64_t args[SHIM_ARGS / sizeof(uint64_t)];
};

struct queue {
    struct arena arena;
    struct place *place; /* (SHIM_QUEUE) */
    unsigned first, count;
    uint64_t seed, launches;
    uint64_t work;       /* what was asked for */
    const char *counted; /* the kernel whose launches are counted */
    uint64_t counts;
};

static _Thread_local struct queue queue;

void shim_seed(uint64_t seed) {
    queue.seed = seed;
    queue.launches = 0;
}

static void run_oldest(void) {
    const struct place *const place = &queue.place[queue.first];
    shim_memory_open();
    shim_run(&place->work, place->args);
    shim_memory_close();
    queue.first = (queue.first + 1) % SHIM_QUEUE;
    queue.count--;
}

uint64_t shim_work(unsigned more) {
    return queue.work += more;
}

uint64_t shim_count_launches(const char *name) {
    const uint64_t counts = queue.counts;
    queue.counted = name;
    queue.counts = 0;
    return counts;
}

void shim_wait(void) {
    queue.work++;
    if (queue.count == 0) return;
    shim_memory_open();
    while (queue.count > 0)
        run_oldest();
    shim_memory_close();
    queue.first = 0;
}

void shim_move(void *to, const void *from, size_t bytes) {
    shim_wait();
    shim_memory_open();
    memcpy(to, from, bytes);
    shim_memory_close();
}

/* Puts a launch at the end of the ring. Arguments that are too large for a place are not kept:
 * shim_run() reports them when their turn comes. */
static void append(const struct shim_work *work, const void *args) {
    queue.work++;
    if (queue.place == NULL && arena_take(&queue.arena, SHIM_QUEUE, sizeof *queue.place,
                                          "launches that wait", &queue.place) != STATUS_OK) {
        queue.place = NULL;
        shim_tell_of(work, "no memory for launches that wait"); /* none waits yet */
        return;
    }
    if (queue.count == SHIM_QUEUE) run_oldest();
    struct place *const place = &queue.place[(queue.first + queue.count++) % SHIM_QUEUE];
    place->work = *work;
    if (work->args_bytes <= SHIM_ARGS) memcpy(place->args, args, work->args_bytes);
}

void shim_launch(const char *name, shim_kernel kernel, size_t grid, unsigned block,
                 size_t shared_bytes, const void *args, size_t args_bytes) {
    if (grid == 0) return;
    if (queue.counted != NULL && strcmp(queue.counted, name) == 0) queue.counts++;
    append(&(struct shim_work){.name = name,
                               .kernel = kernel,
                               .grid = grid,
                               .shared_bytes = shared_bytes,
                               .args_bytes = args_bytes,
                               .block = block,
                               .draw = queue.seed ^ queue.launches++ * 0xd1342543de82ef95u},
           args);
}

void shim_host(void (*run)(const void *args), const void *args, size_t args_bytes) {
    append(&(struct shim_work){.host = run, .args_bytes = args_bytes}, args);
}

enum status shim_error(void) {
    shim_wait();
    return shim_take_error();
}

void shim_close(void) {
    shim_wait();
    arena_close(&queue.arena);
    queue.place = NULL;
    shim_close_fibres();
}
