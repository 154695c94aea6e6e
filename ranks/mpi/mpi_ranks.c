/* SPDX-License-Identifier: Apache-2.0
 * twinstep_mpi.so: ranks over MPI. It moves bytes, and only bytes: no type but MPI_BYTE, and no
 * collective that adds.
 *
 * Every call is one of MPI's that do not wait, followed by a loop that looks whether it is done and
 * sleeps in between, so that each wait has an end and ranks that share a processor leave it to who
 * computes. MPI is used by the thread that joined the group alone. */
#define TWINSTEP_MODULE
#include "ranks/ranks.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <mpi.h>

enum {
    TAG = 24,
    PIECE = 1 << 26,   /* bytes of one message; MPI counts in int */
    SPINS = 200,       /* looks before the first sleep */
    SLEEP_MAX = 500000 /* nanoseconds */
};

static enum status check(int code, const char *what) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (code == MPI_SUCCESS) return STATUS_OK;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) text[0] = '\0';
    FAIL(STATUS_IO, "mpi: %s: %s", what, text[0] == '\0' ? "no reason given" : text);
}

/* Sleeps the longer the more often it has looked: messages of an update come within microseconds or
 * after a forward. */
static void pause_before(unsigned long looks) {
    struct timespec rest = {0, 1000};
    if (looks < SPINS) return;
    for (unsigned long i = SPINS; i < looks && rest.tv_nsec < SLEEP_MAX; i += SPINS)
        rest.tv_nsec *= 2;
    if (rest.tv_nsec > SLEEP_MAX) rest.tv_nsec = SLEEP_MAX;
    (void)nanosleep(&rest, NULL); /* one that a signal cuts short only looks earlier */
}

/* Waits until the request is done. One that is given up is left to MPI_Abort. */
static enum status finish(struct ranks *ranks, MPI_Request *request, const char *what,
                          uint32_t other) {
    const double until = MPI_Wtime() + ranks->wait;
    int done = 0;
    for (unsigned long looks = 0;; looks++) {
        TRY(check(MPI_Test(request, &done, MPI_STATUS_IGNORE), what));
        if (done) return STATUS_OK;
        if (MPI_Wtime() > until) break;
        pause_before(looks);
    }
    if (other < ranks->size)
        FAIL(
            STATUS_IO,
            "rank %u waited %g seconds for rank %u (%s) and gives up; --ranks-wait SECONDS lets it "
            "wait longer",
            (unsigned)ranks->rank, ranks->wait, (unsigned)other, what);
    FAIL(STATUS_IO,
         "rank %u waited %g seconds for the other ranks (%s) and gives up; --ranks-wait SECONDS "
         "lets it wait longer",
         (unsigned)ranks->rank, ranks->wait, what);
}

static int piece_of(size_t size) {
    return size < PIECE ? (int)size : PIECE;
}

static enum status ranks_send(struct ranks *ranks, uint32_t to, const void *bytes, size_t size) {
    const unsigned char *from = (const unsigned char *)bytes;
    MPI_Request request;
    while (size > 0) {
        const int count = piece_of(size);
        TRY(check(MPI_Isend(from, count, MPI_BYTE, (int)to, TAG, MPI_COMM_WORLD, &request),
                  "send"));
        TRY(finish(ranks, &request, "send", to));
        from += count;
        size -= (size_t)count;
    }
    return STATUS_OK;
}

static enum status ranks_receive(struct ranks *ranks, uint32_t from, void *bytes, size_t size) {
    unsigned char *to = (unsigned char *)bytes;
    MPI_Request request;
    while (size > 0) {
        const int count = piece_of(size);
        TRY(check(MPI_Irecv(to, count, MPI_BYTE, (int)from, TAG, MPI_COMM_WORLD, &request),
                  "receive"));
        TRY(finish(ranks, &request, "receive", from));
        to += count;
        size -= (size_t)count;
    }
    return STATUS_OK;
}

static enum status ranks_broadcast(struct ranks *ranks, void *bytes, size_t size) {
    unsigned char *at = (unsigned char *)bytes;
    MPI_Request request;
    while (size > 0) {
        const int count = piece_of(size);
        TRY(check(MPI_Ibcast(at, count, MPI_BYTE, 0, MPI_COMM_WORLD, &request), "broadcast"));
        TRY(finish(ranks, &request, "broadcast", ranks->rank == 0 ? ranks->size : 0));
        at += count;
        size -= (size_t)count;
    }
    return STATUS_OK;
}

static enum status ranks_gather(struct ranks *ranks, const void *own, size_t size, void *all) {
    MPI_Request request;
    if (size > PIECE)
        FAIL(STATUS_INTERNAL, "mpi: gather: expected at most %d bytes of a rank, got %zu", PIECE,
             size);
    TRY(check(MPI_Igather(own, (int)size, MPI_BYTE, all, (int)size, MPI_BYTE, 0, MPI_COMM_WORLD,
                          &request),
              "gather"));
    return finish(ranks, &request, "gather", ranks->rank == 0 ? ranks->size : 0);
}

static enum status ranks_barrier(struct ranks *ranks) {
    MPI_Request request;
    TRY(check(MPI_Ibarrier(MPI_COMM_WORLD, &request), "barrier"));
    return finish(ranks, &request, "barrier", ranks->size);
}

/* MPI_Init and MPI_Finalize wait for the other processes for ever. */
static void end_process(union sigval value) {
    static const char text[] =
        "twinstep: error: a process waited for the others to join or to leave "
        "MPI, and gives up; --ranks-wait SECONDS lets it wait longer\n";
    const ssize_t told = write(STDERR_FILENO, text, sizeof text - 1);
    (void)value;
    (void)told; /* the status says it, too */
    _exit(2);
}

static enum status watch(const struct ranks *ranks, timer_t *out) {
    struct sigevent event;
    struct itimerspec once;
    memset(&event, 0, sizeof event);
    memset(&once, 0, sizeof once);
    event.sigev_notify = SIGEV_THREAD;
    event.sigev_notify_function = end_process;
    const double most = ranks->wait < 1e9 ? ranks->wait : 1e9;
    once.it_value.tv_sec = (time_t)most;
    once.it_value.tv_nsec = (long)((most - (double)once.it_value.tv_sec) * 1e9);
    if (once.it_value.tv_sec == 0 && once.it_value.tv_nsec == 0) once.it_value.tv_nsec = 1;
    if (timer_create(CLOCK_MONOTONIC, &event, out) != 0 || timer_settime(*out, 0, &once, NULL) != 0)
        FAIL(STATUS_IO, "mpi: the system gives no timer");
    return STATUS_OK;
}

static void ranks_give_up(struct ranks *ranks, int code) {
    (void)ranks;
    (void)MPI_Abort(MPI_COMM_WORLD, code);
}

static void ranks_close(struct ranks *ranks) {
    timer_t timer;
    const int watched = watch(ranks, &timer) == STATUS_OK;
    (void)MPI_Finalize();
    if (watched) (void)timer_delete(timer);
}

static enum status initialize(const struct ranks *ranks, int *provided) {
    timer_t timer;
    TRY(watch(ranks, &timer));
    const int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, provided);
    if (timer_delete(timer) != 0) FAIL(STATUS_IO, "mpi: the system does not take its timer back");
    return check(code, "MPI_Init_thread");
}

static enum status ranks_open(struct ranks *ranks) {
    int provided = 0, rank = 0, size = 0, begun = 0;
    TRY(check(MPI_Initialized(&begun), "MPI_Initialized"));
    if (begun) FAIL(STATUS_INTERNAL, "mpi: the group was joined already");
    TRY(initialize(ranks, &provided));
    TRY(check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
              "MPI_Comm_set_errhandler"));
    if (provided < MPI_THREAD_FUNNELED)
        FAIL(STATUS_UNSUPPORTED,
             "mpi: expected a library that bears threads beside the one that calls it "
             "(MPI_THREAD_FUNNELED), got one that does not");
    TRY(check(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank"));
    TRY(check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size"));
    ranks->rank = (uint32_t)rank;
    ranks->size = (uint32_t)size;
    return STATUS_OK;
}

extern MODULE_EXPORT const struct ranks_class twinstep_ranks_v1;
const struct ranks_class twinstep_ranks_v1 = {
    .stamp = RANKS_STAMP,
    .name = "mpi",
    .open = ranks_open,
    .send = ranks_send,
    .receive = ranks_receive,
    .broadcast = ranks_broadcast,
    .gather = ranks_gather,
    .barrier = ranks_barrier,
    .give_up = ranks_give_up,
    .close = ranks_close,
};
