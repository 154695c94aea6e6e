/* SPDX-License-Identifier: Apache-2.0
 * The loop over slots. Every fact about a run is in the folder, so several of these loops, here and
 * on other machines, share the work by claims alone, and a loop that is killed is continued by
 * another one. ablate_start.c begins a run, ablate_settle.c keeps what it left. */
#include "cli/ablate/ablate_runner.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ablate/ablate_loop.h"

const struct ablate_run *ablate_run_at(const struct ablate_loop *loop, uint32_t index) {
    return &loop->of->plan->runs[index];
}

/* ---- what to run ---- */

static enum status state_of(struct ablate_loop *loop, uint32_t index, enum ablate_state *out) {
    struct arena arena = ARENA_EMPTY;
    const enum status status =
        ablate_folder_state(loop->of->folder, ablate_run_at(loop, index), &arena, out);
    arena_close(&arena);
    return status;
}

/* A run that had failed is tried once more by a process that continues; one that failed since then,
 * here or in another process, is not. */
static enum status is_open(struct ablate_loop *loop, uint32_t index, int *out) {
    enum ablate_state state;
    *out = 0;
    if (!loop->wanted[index] || loop->tried[index]) return STATUS_OK;
    TRY(state_of(loop, index, &state));
    *out = state == ABLATE_ABSENT || (state == ABLATE_FAILED && loop->again[index]);
    loop->shared |= state == ABLATE_DONE && !loop->before[index];
    return STATUS_OK;
}

/* Calls of a function fail again without the process that has it (python/src/twinstep/calls.py),
 * which asks once more for the words of a verdict, and whose user wants the reason of the call. */
static int can_run(const struct ablate_file *file) {
    return !file->shared || getenv("TWINSTEP_CALLS") != NULL;
}

static enum status note_states(struct ablate_loop *loop) {
    for (uint32_t i = 0; i < loop->of->plan->run_count; i++) {
        enum ablate_state state;
        TRY(state_of(loop, i, &state));
        loop->again[i] = state == ABLATE_FAILED && can_run(loop->of->file);
        loop->before[i] = state == ABLATE_DONE;
    }
    return STATUS_OK;
}

enum status ablate_want_stages(const struct ablate_running *running,
                               const struct ablate_result *results, struct arena *arena,
                               unsigned char *wanted) {
    struct ablate_verdict *verdict;
    TRY(arena_take(arena, 1, sizeof *verdict, "verdict", &verdict));
    TRY(ablate_judge(running->plan, results, arena, verdict));
    for (uint32_t i = 0; i < running->plan->run_count; i++)
        wanted[i] |= (unsigned char)ablate_wants(running->plan, verdict, &running->plan->runs[i]);
    return STATUS_OK;
}

/* Judges what is there, to learn which runs are needed; *out_more says whether some are that were
 * not before. */
static enum status look(struct ablate_loop *loop, int *out_more) {
    struct arena arena = ARENA_EMPTY;
    struct ablate_result *results = NULL;
    const uint32_t count = loop->of->plan->run_count;
    unsigned char *before = NULL;
    *out_more = 0;
    enum status status = arena_take(&arena, count, 1, "runs", &before);
    if (status == STATUS_OK) memcpy(before, loop->wanted, count);
    if (status == STATUS_OK) status = ablate_results_open(loop->of->folder, &arena, &results);
    if (status == STATUS_OK) status = loop->of->want(loop->of, results, &arena, loop->wanted);
    for (uint32_t i = 0; status == STATUS_OK && i < count; i++)
        *out_more |= loop->wanted[i] && !before[i];
    ablate_results_close(loop->of->plan, results);
    arena_close(&arena);
    return status;
}

static enum status arm_has_failed(struct ablate_loop *loop, int *out) {
    *out = 0;
    for (uint32_t i = 0; i < loop->of->plan->run_count; i++) {
        enum ablate_state state;
        if (ablate_run_at(loop, i)->arm == ABLATE_NO_ARM) continue;
        TRY(state_of(loop, i, &state));
        *out |= state == ABLATE_FAILED && (loop->tried[i] || !loop->again[i]);
    }
    return STATUS_OK;
}

/* ---- slots ---- */

/* The part of the machine that this worker was given, "" for all of it. Workers of one part share
 * its slots: those of one job of Slurm, or those that see the same devices. Where the file lists
 * devices, the slots are these. */
static void name_room(const struct ablate_file *file, char out[64]) {
    const char *job = getenv("SLURM_JOB_ID"), *visible = getenv(ABLATE_VISIBLE);
    out[0] = '\0';
    if (file->device_count > 0) return;
    if (job != NULL)
        snprintf(out, 64, "-job-%s", job);
    else if (visible != NULL)
        snprintf(out, 64, "-gpu-%s", visible);
    for (char *c = out; *c != '\0'; c++)
        if (strchr("/. \n", *c) != NULL) *c = '_';
}

void ablate_host_of(const struct ablate_loop *loop, char out[100]) {
    if (sscanf(loop->of->folder->worker, "%99s", out) != 1) snprintf(out, 100, "host");
}

static enum status claim_slot(struct ablate_loop *loop, uint32_t at, int *out) {
    struct arena arena = ARENA_EMPTY;
    struct ablate_slot *slot = &loop->slots[at];
    enum ablate_claim claim = CLAIM_BUSY;
    char host[100], room[64], *who;
    ablate_host_of(loop, host);
    name_room(loop->of->file, room);
    snprintf(slot->claim, sizeof slot->claim, "slot-%s%s-%u", host, room, at);
    const enum status status =
        ablate_claim_take(loop->of->folder, slot->claim, &arena, &claim, &who);
    arena_close(&arena);
    *out = claim == CLAIM_TAKEN;
    return status;
}

static enum status leave_claim(struct ablate_loop *loop, const char *name, const char *holder) {
    struct arena arena = ARENA_EMPTY;
    const enum status status = ablate_claim_leave(loop->of->folder, name, holder, &arena);
    arena_close(&arena);
    return status;
}

/* Keeps who has a run that is wanted: the first of several. */
static void note_holder(struct ablate_loop *loop, const char *who) {
    char host[200];
    long process;
    if (loop->waits_for[0] != '\0') return;
    if (who != NULL && sscanf(who, "%199s %*s %*s %ld", host, &process) == 2)
        snprintf(loop->waits_for, sizeof loop->waits_for, "process %ld of %s", process, host);
    else
        snprintf(loop->waits_for, sizeof loop->waits_for, "another worker");
}

static enum status try_claim(struct ablate_loop *loop, uint32_t run, enum ablate_claim *out) {
    struct arena arena = ARENA_EMPTY;
    char *who = NULL;
    const enum status status =
        ablate_claim_take(loop->of->folder, ablate_run_at(loop, run)->id, &arena, out, &who);
    if (status == STATUS_OK && *out != CLAIM_TAKEN) {
        note_holder(loop, who);
        loop->shared = 1;
    }
    arena_close(&arena);
    return status;
}

/* Says whether nothing of an earlier attempt is left: planner and guard may have been killed at
 * once. */
static enum status look_for_rest(struct ablate_loop *loop, uint32_t run, int *out_free) {
    struct arena arena = ARENA_EMPTY;
    int used = 0;
    const enum status status =
        ablate_folder_is_used(loop->of->folder, ablate_run_at(loop, run), &arena, &used);
    arena_close(&arena);
    *out_free = !used;
    if (used)
        snprintf(loop->waits_for, sizeof loop->waits_for,
                 "processes of an earlier attempt of %s, which still run",
                 ablate_run_at(loop, run)->id);
    return status;
}

/* Says whether this process has made more runs of the run's arm than of the other one. */
static int is_ahead(const struct ablate_loop *loop, uint32_t run) {
    const int arm = ablate_run_at(loop, run)->arm;
    return arm != ABLATE_NO_ARM && loop->begun[arm] > loop->begun[1 - arm];
}

/* Claims the first run that is open, of those that `ahead` allows; *out is run_count when there is
 * none. One slot goes by turns. Several make runs at the same time, so that of shuffled ones each
 * might get those of one arm: they go by the order in which arms change places. */
static enum status claim_first(struct ablate_loop *loop, int ahead, uint32_t *out) {
    const struct ablate_plan *plan = loop->of->plan;
    for (uint32_t turn = 0; turn < plan->run_count; turn++) {
        enum ablate_claim claim;
        int open;
        *out = loop->of->file->slots > 1 ? turn : plan->turns[turn];
        if (!ahead && is_ahead(loop, *out)) continue;
        TRY(is_open(loop, *out, &open));
        if (!open) continue;
        TRY(try_claim(loop, *out, &claim));
        if (claim != CLAIM_TAKEN) {
            loop->elsewhere |= claim == CLAIM_ELSEWHERE;
            continue;
        }
        TRY(is_open(loop, *out, &open)); /* another worker may have ended it meanwhile */
        if (open) TRY(look_for_rest(loop, *out, &open));
        if (open) return STATUS_OK;
        TRY(leave_claim(loop, ablate_run_at(loop, *out)->id, loop->of->folder->worker));
    }
    *out = plan->run_count;
    return STATUS_OK;
}

/* Claims a run. Where others work, too, it is one of an arm that was not run here more often, if
 * there is one: workers with a machine or device each would otherwise have an arm each, of which
 * nothing could be told. */
static enum status claim_run(struct ablate_loop *loop, uint32_t *out) {
    if (loop->of->file->slots > 1 || loop->shared) {
        TRY(claim_first(loop, 0, out));
        if (*out < loop->of->plan->run_count) return STATUS_OK;
    }
    return claim_first(loop, 1, out);
}

/* Another worker of this machine has the slot: waits for it where there is something to run. */
static enum status wait_for_slot(struct ablate_loop *loop) {
    for (uint32_t i = 0; i < loop->of->plan->run_count; i++) {
        int open;
        TRY(is_open(loop, i, &open));
        if (open)
            snprintf(loop->waits_for, sizeof loop->waits_for,
                     "a slot that another worker of this machine has");
    }
    return STATUS_OK;
}

/* Starts runs in free slots. */
static enum status fill(struct ablate_loop *loop) {
    loop->waits_for[0] = '\0';
    loop->elsewhere = 0;
    for (uint32_t at = 0; at < loop->of->file->slots; at++) {
        uint32_t run;
        int ours;
        if (loop->slots[at].guard.pid != 0) continue;
        TRY(claim_slot(loop, at, &ours));
        if (!ours) {
            TRY(wait_for_slot(loop));
            continue;
        }
        TRY(claim_run(loop, &run));
        if (run == loop->of->plan->run_count)
            return leave_claim(loop, loop->slots[at].claim, loop->of->folder->worker);
        struct arena arena = ARENA_EMPTY;
        loop->slots[at].run = run;
        loop->slots[at].port[0] = '\0';
        loop->tried[run] = 1;
        if (ablate_run_at(loop, run)->arm != ABLATE_NO_ARM)
            loop->begun[ablate_run_at(loop, run)->arm]++;
        const enum status status = ablate_run_begin(loop, run, at, &arena);
        arena_close(&arena);
        loop->active += loop->slots[at].guard.pid != 0;
        if (status != STATUS_OK) {
            if (loop->slots[at].guard.pid == 0) {
                const char *us = loop->of->folder->worker;
                (void)leave_claim(loop, ablate_run_at(loop, run)->id,
                                  us); /* the first failure is told */
                (void)leave_claim(loop, loop->slots[at].claim, us);
                if (loop->slots[at].port[0] != '\0')
                    (void)leave_claim(loop, loop->slots[at].port, us);
            }
            return status;
        }
    }
    return STATUS_OK;
}

/* Ends what a guard that was killed could not. */
static int end_orphans(const struct ablate_loop *loop) {
    const struct guard *guards[ABLATE_SLOTS_MOST];
    for (uint32_t at = 0; at < loop->of->file->slots; at++)
        guards[at] = &loop->slots[at].guard;
    return guard_end_orphans(guards, loop->of->file->slots);
}

static enum status take_end(struct ablate_loop *loop, uint32_t at) {
    struct ablate_slot *slot = &loop->slots[at];
    struct guard_answer answer;
    struct arena arena = ARENA_EMPTY;
    if (!guard_take(&slot->guard, &answer)) return STATUS_OK;
    loop->active--;
    if (answer.end == GUARD_LOST) answer.survivors = end_orphans(loop);
    loop->of->made += answer.end != GUARD_STOPPED;
    const enum status status = ablate_run_settle(loop, at, &answer, &arena);
    arena_close(&arena);
    const enum status left = leave_claim(loop, ablate_run_at(loop, slot->run)->id, slot->holder);
    const enum status freed = leave_claim(loop, slot->claim, slot->holder);
    const enum status closed =
        slot->port[0] == '\0' ? STATUS_OK : leave_claim(loop, slot->port, slot->holder);
    return status != STATUS_OK  ? status
           : left != STATUS_OK  ? left
           : freed != STATUS_OK ? freed
                                : closed;
}

static void show(struct ablate_loop *loop) {
    char names[120] = "";
    uint32_t done = 0, wanted = 0;
    if (!loop->progress.shown) return;
    for (uint32_t i = 0; i < loop->of->plan->run_count; i++) {
        enum ablate_state state = ABLATE_ABSENT;
        if (!loop->wanted[i]) continue;
        wanted++;
        if (state_of(loop, i, &state) == STATUS_OK) done += state == ABLATE_DONE;
    }
    for (uint32_t at = 0; at < loop->of->file->slots; at++)
        if (loop->slots[at].guard.pid != 0) {
            const size_t used = strlen(names);
            snprintf(names + used, sizeof names - used, " %s",
                     ablate_run_at(loop, loop->slots[at].run)->id);
        }
    progress_text(&loop->progress, "%u of %u runs done, now:%s", done, wanted, names);
}

/* Waits for an end, a signal, or 200 ms. */
static enum status wait_for_end(struct ablate_loop *loop) {
    struct pollfd waiting[ABLATE_SLOTS_MOST];
    uint32_t slot[ABLATE_SLOTS_MOST], count = 0;
    for (uint32_t at = 0; at < loop->of->file->slots; at++)
        if (loop->slots[at].guard.pid != 0) {
            waiting[count] = (struct pollfd){loop->slots[at].guard.from, POLLIN, 0};
            slot[count++] = at;
        }
    const int ready = poll(waiting, count, 200);
    for (uint32_t i = 0; ready > 0 && i < count; i++)
        if (waiting[i].revents != 0) TRY(take_end(loop, slot[i]));
    show(loop);
    return STATUS_OK;
}

/* Ends all commands, and waits until their guards say that nothing of them is left. */
static enum status stop_all(struct ablate_loop *loop) {
    enum status worst = STATUS_OK;
    for (uint32_t at = 0; at < loop->of->file->slots; at++)
        if (loop->slots[at].guard.pid != 0) guard_stop(&loop->slots[at].guard);
    while (loop->active > 0) {
        const enum status status = wait_for_end(loop);
        if (status != STATUS_OK) worst = status;
    }
    return worst;
}

/* ---- the loop ---- */

/* Says what it waits for: on a terminal all the time, into a file once. */
static void tell_wait(struct ablate_loop *loop) {
    const char *hint = loop->elsewhere ? " (--take-over, if it is gone)" : "";
    progress_text(&loop->progress, "waits for %.80s%s", loop->waits_for, hint);
    if (loop->of->quiet || loop->progress.shown || strcmp(loop->told, loop->waits_for) == 0) return;
    fprintf(stderr, "%s: waits for %s%s\n", loop->of->file->name, loop->waits_for, hint);
    memcpy(loop->told, loop->waits_for, sizeof loop->told);
}

static enum status work(struct ablate_loop *loop) {
    int failed = 0;
    TRY(look(loop, &failed));
    failed = 0;
    for (;;) {
        if (*loop->of->interrupted) return STATUS_INTERRUPTED;
        TRY(arm_has_failed(loop, &failed));
        if (!failed) TRY(fill(loop));
        if (loop->active > 0) {
            TRY(wait_for_end(loop));
            continue;
        }
        if (failed) return STATUS_OK;
        if (loop->waits_for[0] != '\0') {
            tell_wait(loop);
            (void)poll(NULL, 0, 500);
            continue;
        }
        int more;
        TRY(look(loop, &more));
        if (!more) return STATUS_OK;
    }
}

enum status ablate_run_all(struct ablate_running *running, struct arena *arena) {
    struct ablate_loop *loop;
    TRY(arena_take(arena, 1, sizeof *loop, "runs", &loop));
    loop->of = running;
    TRY(arena_take(arena, running->plan->run_count, 1, "runs", &loop->tried));
    TRY(arena_take(arena, running->plan->run_count, 1, "runs", &loop->again));
    TRY(arena_take(arena, running->plan->run_count, 1, "runs", &loop->before));
    TRY(arena_take(arena, running->plan->run_count, 1, "runs", &loop->wanted));
    TRY(note_states(loop));
    TRY(guard_adopt());
    progress_open(&loop->progress, running->file->name, !running->quiet);
    enum status status = work(loop);
    char text[2048];
    snprintf(text, sizeof text, "%s", status_text());
    const enum status stopped = stop_all(loop);
    progress_close(&loop->progress);
    if (status == STATUS_OK) return stopped;
    return status_fail(status, "%s", text);
}
