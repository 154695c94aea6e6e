/* SPDX-License-Identifier: Apache-2.0
 * Starts jobs with fork(), hears of them through a pipe each, and always waits for them.
 *
 * A child says words (struct word): how far it is, that it wants memory, its answer. It has one
 * pipe to say them and one to be allowed memory. It ignores what a terminal or a batch system sends
 * to all processes of a group: the parent gets it, too, and passes it on as JOB_END, so that a job
 * is asked to end exactly once, whoever was asked. Should the parent die, the system ends the
 * child.
 *
 * Children are started where this process has one thread only, before anything is trained here
 * (cli/child.h). */
#define _GNU_SOURCE /* pipe2 */
#include "cli/jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/child.h"
#include "cli/pipe_write.h"
#include "cli/progress.h"

#define JOB_END CHILD_TOLD
#define ANSWER_MOST ((size_t)1 << 16) /* bytes */
#define WAIT_MS 100
#define TELL_SECONDS 0.1
#define NOW_SIZE 256

enum word_kind { WORD_FAR = 1, WORD_MEMORY, WORD_ANSWER };

struct word {
    uint32_t kind;        /* enum word_kind */
    uint32_t length;      /* bytes of an answer, which follow */
    uint64_t done, total; /* of WORD_MEMORY: bytes, and 0 */
};

/* What a job is told that wants memory. */
#define GRANTED 'g'
#define GRANTED_LAST 'l'

struct jobs_link {
    int to, from; /* the child's ends */
    double told;  /* when, by progress_clock() */
};

enum job_state { JOB_WAITS = 0, JOB_RUNS, JOB_ENDED };

/* What the parent knows of a job. */
struct job_known {
    enum job_state state;
    const char *answer; /* NULL: none */
    size_t length;
    const char *why; /* why there is no answer; NULL where there is one */
};

/* A child that runs. */
struct slot {
    int used;
    size_t index; /* of its job */
    pid_t pid;
    int from, to; /* the parent's ends */
    int broken;   /* it said what no job says */
    uint64_t done, total;
    uint64_t asked, granted; /* bytes of memory; `asked` is 0 unless it waits for them */
    int refused;             /* it asked again, and waits until another job has ended */
    size_t length;           /* bytes that are read and not looked at */
    char *bytes;             /* (ANSWER_MOST and a word) */
};

struct running {
    const struct jobs *jobs;
    struct arena *arena;
    struct job_known *known;
    struct slot *slots;
    size_t slot_count, used;
    size_t ended, handed; /* jobs that have ended, and whose result was handed over */
    uint64_t granted;     /* bytes, together */
    int asked_to_end;
    size_t before; /* jobs that had ended when the others were asked to end */
};

static volatile int end_is_asked; /* in a child: set by the handler of JOB_END */

static void note_end(int signal) {
    (void)signal;
    end_is_asked = 1;
}

static enum status fail_errno(const char *action, int reason) {
    return status_fail(STATUS_IO, "jobs: cannot %s: %s", action, strerror(reason));
}

/* The child's side. */

const volatile int *jobs_interrupted(const struct jobs_link *link) {
    (void)link;
    return &end_is_asked;
}

/* A word that cannot be written finds its parent gone, and so will whoever waits for an answer. */
static void say(const struct jobs_link *link, const struct word *word) {
    (void)pipe_write(link->to, word, sizeof *word);
}

void jobs_tell(struct jobs_link *link, uint64_t done, uint64_t total) {
    const double now = progress_clock();
    if (now - link->told < TELL_SECONDS) return;
    link->told = now;
    say(link, &(struct word){.kind = WORD_FAR, .done = done, .total = total});
}

enum status jobs_ask_memory(struct jobs_link *link, uint64_t bytes, int *out_last) {
    char granted;
    ssize_t got = -1;
    say(link, &(struct word){.kind = WORD_MEMORY, .done = bytes});
    while (got < 0) {
        struct pollfd waiting = {link->from, POLLIN, 0};
        const int ready = poll(&waiting, 1, WAIT_MS);
        if (end_is_asked) FAIL(STATUS_INTERRUPTED, "interrupted before the first update");
        if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
        got = ready < 0 ? 0 : read(link->from, &granted, 1);
        if (got < 0 && errno != EINTR) got = 0;
    }
    if (got == 0) FAIL(STATUS_IO, "jobs: the process that started this one is gone");
    *out_last = granted == GRANTED_LAST;
    return STATUS_OK;
}

void jobs_answer(struct jobs_link *link, const void *bytes, size_t length) {
    if (length > ANSWER_MOST) return; /* the parent tells that there is no answer */
    say(link, &(struct word){.kind = WORD_ANSWER, .length = (uint32_t)length});
    (void)pipe_write(link->to, bytes, length);
}

/* What the child needs to know. */
struct beginning {
    const struct running *run;
    size_t index;
    int up[2], down[2]; /* pipes: the child writes into `up` */
};

/* Does the job in the child. What the parent has not yet written of its own stays the parent's:
 * nothing is flushed here. */
static void do_job(void *context) {
    const struct beginning *const beginning = (const struct beginning *)context;
    const struct running *const run = beginning->run;
    struct jobs_link link = {
        .to = beginning->up[1], .from = beginning->down[0], .told = progress_clock()};
    close(beginning->up[0]);
    close(beginning->down[1]);
    for (size_t i = 0; i < run->slot_count; i++) {
        if (!run->slots[i].used) continue;
        close(run->slots[i].from);
        close(run->slots[i].to);
    }
    run->jobs->work(run->jobs->context, beginning->index, &link);
}

/* The parent's side. */

/* Which job starts now; count: none does. Those that run alone come first, so that the others fill
 * all cores until the end; and of what fits beside those that run, what has most threads, so that
 * it need not wait with an idle core for a long one of one thread. */
static size_t next_job(const struct running *run) {
    const struct jobs *const jobs = run->jobs;
    const int parallel = jobs->cores > 1;
    size_t alone = jobs->count, beside = jobs->count;
    uint64_t busy = 0, most = 0;
    for (size_t i = 0; i < run->slot_count; i++) {
        if (!run->slots[i].used) continue;
        if (jobs->list[run->slots[i].index].alone) return jobs->count;
        busy += jobs->list[run->slots[i].index].threads;
    }
    for (size_t i = jobs->count; i-- > 0;) {
        const uint64_t threads = jobs->list[i].threads;
        if (run->known[i].state != JOB_WAITS) continue;
        if (parallel && jobs->list[i].alone) {
            alone = i;
        } else if (run->used == 0 || busy + threads <= jobs->cores) {
            if (parallel && threads < most) continue;
            most = threads;
            beside = i;
        }
    }
    if (alone < jobs->count) return run->used == 0 ? alone : jobs->count;
    return beside;
}

static struct slot *free_slot(const struct running *run) {
    for (size_t i = 0; i < run->slot_count; i++)
        if (!run->slots[i].used) return &run->slots[i];
    return NULL;
}

/* *out_failed is 0, or errno where no process can be started; then the slot stays free. */
static void start(struct running *run, size_t index, struct slot *slot, int *out_failed) {
    struct beginning child = {.run = run, .index = index};
    pid_t pid;
    *out_failed = 0;
    if (pipe2(child.up, O_CLOEXEC) != 0) {
        *out_failed = errno;
        return;
    }
    if (pipe2(child.down, O_CLOEXEC) != 0) {
        *out_failed = errno;
        close(child.up[0]);
        close(child.up[1]);
        return;
    }
    *out_failed = child_start(do_job, &child, note_end, &pid);
    close(child.up[1]);
    close(child.down[0]);
    if (*out_failed != 0) {
        close(child.up[0]);
        close(child.down[1]);
        return;
    }
    char *const bytes = slot->bytes;
    *slot = (struct slot){.used = 1,
                          .index = index,
                          .pid = pid,
                          .from = child.up[0],
                          .to = child.down[1],
                          .bytes = bytes};
    run->known[index].state = JOB_RUNS;
    run->used++;
}

/* Starts what may run. Where the system starts no further process, it may when one has ended. */
static enum status start_jobs(struct running *run) {
    for (;;) {
        const size_t index = next_job(run);
        struct slot *const slot = free_slot(run);
        int failed;
        if (index == run->jobs->count || slot == NULL) return STATUS_OK;
        start(run, index, slot, &failed);
        if (failed != 0) return run->used > 0 ? STATUS_OK : fail_errno("start a process", failed);
    }
}

/* A child that has died reads nothing; its end is seen by its other pipe. */
static void grant(struct running *run, struct slot *slot, char word) {
    (void)pipe_write(slot->to, &word, 1);
    slot->granted = slot->asked;
    run->granted += slot->granted;
    slot->asked = 0;
    slot->refused = 0;
}

/* Grants memory in the order of the jobs. Where all that run wait for it, the first gets what it
 * asks for, and looks for itself whether the machine has it. */
static void grant_memory(struct running *run) {
    for (;;) {
        struct slot *first = NULL;
        size_t asleep = 0;
        for (size_t i = 0; i < run->slot_count; i++)
            asleep += run->slots[i].used && run->slots[i].asked > 0;
        const int last = asleep == run->used;
        for (size_t i = 0; i < run->slot_count; i++) {
            struct slot *const slot = &run->slots[i];
            if (!slot->used || slot->asked == 0 || (slot->refused && !last)) continue;
            if (first == NULL || slot->index < first->index) first = slot;
        }
        if (first == NULL) return;
        const uint64_t left =
            run->jobs->memory > run->granted ? run->jobs->memory - run->granted : 0;
        if (first->asked > left && !last) return;
        grant(run, first, last ? GRANTED_LAST : GRANTED);
    }
}

static void keep_answer(struct running *run, struct slot *slot, const char *bytes, size_t length) {
    struct job_known *const known = &run->known[slot->index];
    char *kept;
    if (known->answer != NULL ||
        arena_take(run->arena, length + 1, 1, "answer", &kept) != STATUS_OK)
        return;
    memcpy(kept, bytes, length);
    known->answer = kept;
    known->length = length;
}

/* Hears one word; returns how many bytes it took, 0 where it has not come as a whole. */
static size_t hear(struct running *run, struct slot *slot, const char *bytes, size_t length) {
    struct word word;
    if (length < sizeof word) return 0;
    memcpy(&word, bytes, sizeof word);
    if (word.kind < WORD_FAR || word.kind > WORD_ANSWER || word.length > ANSWER_MOST ||
        (word.kind != WORD_ANSWER && word.length != 0)) {
        slot->broken = 1;
        return 0;
    }
    if (length < sizeof word + word.length) return 0;
    if (word.kind == WORD_FAR) {
        slot->done = word.done;
        slot->total = word.total;
    } else if (word.kind == WORD_MEMORY) {
        slot->refused = slot->granted > 0;
        run->granted -= slot->granted;
        slot->granted = 0;
        slot->asked = word.done > 0 ? word.done : 1;
    } else {
        keep_answer(run, slot, bytes + sizeof word, word.length);
    }
    return sizeof word + word.length;
}

static void hear_all(struct running *run, struct slot *slot) {
    size_t at = 0, took;
    while (!slot->broken && (took = hear(run, slot, slot->bytes + at, slot->length - at)) > 0)
        at += took;
    slot->length -= at;
    memmove(slot->bytes, slot->bytes + at, slot->length);
}

static enum status say_why(struct running *run, size_t index, int how) {
    struct job_known *const known = &run->known[index];
    const char *const name = run->jobs->list[index].name;
    char *why;
    if (WIFSIGNALED(how))
        TRY(arena_format(run->arena, &why, "%s: error: its process was ended by signal %d (%s)",
                         name, WTERMSIG(how), strsignal(WTERMSIG(how))));
    else
        TRY(arena_format(run->arena, &why,
                         "%s: error: its process ended with status %d and without a result", name,
                         WEXITSTATUS(how)));
    known->why = why;
    return STATUS_OK;
}

static void wait_for(pid_t pid, int *how) {
    while (waitpid(pid, how, 0) < 0 && errno == EINTR)
        continue;
}

/* The child has closed its pipe, which it does by ending. */
static enum status end_job(struct running *run, struct slot *slot) {
    struct job_known *const known = &run->known[slot->index];
    int how = 0;
    if (slot->broken) kill(slot->pid, SIGKILL);
    wait_for(slot->pid, &how);
    close(slot->from);
    close(slot->to);
    slot->used = 0;
    run->used--;
    run->ended++;
    run->granted -= slot->granted;
    known->state = JOB_ENDED;
    for (size_t i = 0; i < run->slot_count; i++)
        run->slots[i].refused = 0;
    return known->answer == NULL ? say_why(run, slot->index, how) : STATUS_OK;
}

static enum status read_slot(struct running *run, struct slot *slot) {
    const size_t room = ANSWER_MOST + sizeof(struct word);
    const ssize_t got = read(slot->from, slot->bytes + slot->length, room - slot->length);
    if (got < 0 && errno == EINTR) return STATUS_OK;
    if (got > 0) {
        slot->length += (size_t)got;
        hear_all(run, slot);
    }
    return got <= 0 || slot->broken ? end_job(run, slot) : STATUS_OK;
}

static enum status hand_over(struct running *run) {
    while (run->handed < run->jobs->count && run->known[run->handed].state == JOB_ENDED) {
        const struct job_known *const known = &run->known[run->handed];
        TRY(run->jobs->done(run->jobs->context, run->handed, known->answer, known->length,
                            known->why));
        run->handed++;
    }
    return STATUS_OK;
}

static void tell_far(const struct running *run) {
    char now[NOW_SIZE] = "";
    size_t used = 0;
    for (size_t i = 0; i < run->slot_count && used < sizeof now; i++) {
        const struct slot *const slot = &run->slots[i];
        if (!slot->used) continue;
        const double share = slot->total == 0 ? 0.0 : (double)slot->done / (double)slot->total;
        used +=
            (size_t)snprintf(now + used, sizeof now - used, "%s%s %.0f %%", used == 0 ? "" : ", ",
                             run->jobs->list[slot->index].name, 100.0 * share);
    }
    run->jobs->far(run->jobs->context, run->ended, now);
}

/* Passes an interruption on, once; no job starts from then on. */
static void pass_on(struct running *run) {
    const volatile int *const interrupted = run->jobs->interrupted;
    if (run->asked_to_end || interrupted == NULL || !*interrupted) return;
    run->asked_to_end = 1;
    run->before = run->ended;
    for (size_t i = 0; i < run->slot_count; i++)
        if (run->slots[i].used) kill(run->slots[i].pid, JOB_END);
}

/* Waits until a child says something, and no longer than WAIT_MS, because a signal that comes just
 * before poll() does not end it. */
static enum status listen_to(struct running *run, struct pollfd *waiting) {
    for (size_t i = 0; i < run->slot_count; i++)
        waiting[i] = (struct pollfd){run->slots[i].used ? run->slots[i].from : -1, POLLIN, 0};
    const int ready = poll(waiting, (nfds_t)run->slot_count, WAIT_MS);
    if (ready < 0 && errno != EINTR) return fail_errno("wait for a process", errno);
    for (size_t i = 0; i < run->slot_count && ready > 0; i++)
        if (waiting[i].fd >= 0 && waiting[i].revents != 0) TRY(read_slot(run, &run->slots[i]));
    return STATUS_OK;
}

static enum status run_all(struct running *run, struct pollfd *waiting) {
    for (;;) {
        pass_on(run);
        if (!run->asked_to_end) TRY(start_jobs(run));
        if (run->used == 0) break;
        TRY(listen_to(run, waiting));
        grant_memory(run);
        tell_far(run);
        TRY(hand_over(run));
    }
    if (run->asked_to_end)
        FAIL(STATUS_INTERRUPTED, "interrupted after %zu of %zu %s", run->before, run->jobs->count,
             run->jobs->what);
    return STATUS_OK;
}

static enum status open_slots(struct running *run, struct pollfd **out_waiting) {
    const struct jobs *const jobs = run->jobs;
    run->slot_count = jobs->count < jobs->cores ? jobs->count : (size_t)jobs->cores;
    TRY(arena_take(run->arena, jobs->count, sizeof *run->known, "jobs", &run->known));
    TRY(arena_take(run->arena, run->slot_count, sizeof *run->slots, "jobs", &run->slots));
    TRY(arena_take(run->arena, run->slot_count, sizeof **out_waiting, "jobs", out_waiting));
    for (size_t i = 0; i < run->slot_count; i++)
        TRY(arena_take(run->arena, ANSWER_MOST + sizeof(struct word), 1, "jobs",
                       &run->slots[i].bytes));
    return STATUS_OK;
}

enum status jobs_run(const struct jobs *jobs, struct arena *arena) {
    struct running run = {.jobs = jobs, .arena = arena};
    struct pollfd *waiting;
    TRY(open_slots(&run, &waiting));
    const enum status status = run_all(&run, waiting);
    for (size_t i = 0; i < run.slot_count; i++) {
        int how;
        if (!run.slots[i].used) continue;
        kill(run.slots[i].pid, SIGKILL);
        wait_for(run.slots[i].pid, &how);
        close(run.slots[i].from);
        close(run.slots[i].to);
    }
    return status;
}
