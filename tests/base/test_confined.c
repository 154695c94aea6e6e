/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * A child that reads a stranger's file can read and take memory, and nothing else; whatever becomes
 * of it, the parent gets its answer or an error with a text, and follows no pointer that leads
 * elsewhere. */
#define _GNU_SOURCE /* syscall numbers */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/confined.h"

struct answer {
    const char *text;
    uint64_t *numbers;
    uint64_t count;
};

static char own[64];     /* a file that may be read */
static char other[64];   /* one that may not */
static unsigned seconds; /* of processor time; 0: what a file of this length has */
static size_t memory;    /* bytes; 0: likewise */

static int look_at_answer(const void *asked, const void *answer) {
    const struct answer *a = (const struct answer *)answer;
    (void)asked;
    return confined_text(a->text) && confined_holds(a->numbers, a->count, sizeof *a->numbers);
}

static enum status run(enum status (*work)(const void *, struct arena *, void *), const void *asked,
                       struct arena *arena, struct answer *out) {
    const struct confined confined = {.path = own,
                                      .asked = asked,
                                      .work = work,
                                      .look = look_at_answer,
                                      .seconds = seconds,
                                      .memory = memory};
    memset(out, 0, sizeof *out);
    return confined_run(&confined, out, sizeof *out, arena);
}

static void require_failure(enum status got, enum status expected, const char *text) {
    if (got != expected || strstr(status_text(), text) == NULL)
        fail_msg("expected status %d and \"%s\", got %d: %s", expected, text, got, status_text());
}

/* ---- answers ---- */

static enum status answer_well(const void *asked, struct arena *arena, void *answer) {
    struct answer *a = (struct answer *)answer;
    char *text;
    a->count = *(const uint64_t *)asked;
    TRY(arena_take(arena, a->count, sizeof *a->numbers, "numbers", &a->numbers));
    for (uint64_t i = 0; i < a->count; i++)
        a->numbers[i] = i * i;
    TRY(arena_format(arena, &text, "%s has been read", own));
    a->text = text;
    return STATUS_OK;
}

/* Answers of 8 bytes and of 32 MB come over as they are, and live as long as the arena. */
static void verify_answers_come_over(void **state) {
    (void)state;
    static const uint64_t counts[] = {1, 4000000, 3};
    struct arena arena = ARENA_EMPTY;
    struct answer answers[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(run(answer_well, &counts[i], &arena, &answers[i]), STATUS_OK);
    for (int i = 0; i < 3; i++) {
        assert_non_null(strstr(answers[i].text, "has been read"));
        assert_int_equal(answers[i].count, counts[i]);
        for (uint64_t k = 0; k < counts[i]; k += 997)
            assert_true(answers[i].numbers[k] == k * k);
    }
    arena_close(&arena);
}

static enum status fail_there(const void *asked, struct arena *arena, void *answer) {
    (void)asked, (void)arena, (void)answer;
    FAIL(STATUS_UNSUPPORTED, "%s: no such luck", own);
}

static enum status take_all(const void *asked, struct arena *arena, void *answer) {
    void *piece;
    (void)asked, (void)answer;
    return arena_take(arena, (size_t)1 << 40, 1, "a terabyte", &piece);
}

static void verify_failures_come_over(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct answer answer;
    require_failure(run(fail_there, NULL, &arena, &answer), STATUS_UNSUPPORTED, "no such luck");
    require_failure(run(take_all, NULL, &arena, &answer), STATUS_MEMORY,
                    "more than a file of its size");
    arena_close(&arena);
}

static enum status die_by(const void *asked, struct arena *arena, void *answer) {
    (void)arena, (void)answer;
    const int how = *(const int *)asked;
    volatile char *volatile nowhere =
        (volatile char *)(uintptr_t)16; /* the filter allows no raise */
    if (how == 0) *nowhere = 1;
    if (how == 1) __builtin_trap();
    if (how == 2) _exit(0);
    if (how == 3) _exit(1);
    _exit(130);
}

static void verify_deaths_are_told(void **state) {
    (void)state;
    static const char *const texts[] = {"Segmentation fault;", "; it is not a trace",
                                        "it ended the process", "it ended the process",
                                        "it ended the process"};
    signal(SIGSEGV, SIG_DFL); /* cmocka and sanitizers have handlers, which the child would run */
    signal(SIGILL, SIG_DFL);
    for (int how = 0; how < 5; how++) {
        struct arena arena = ARENA_EMPTY;
        struct answer answer;
        require_failure(run(die_by, &how, &arena, &answer), STATUS_INPUT,
                        "the file broke its reader: ");
        assert_non_null(strstr(status_text(), texts[how]));
        arena_close(&arena);
    }
}

static enum status never_end(const void *asked, struct arena *arena, void *answer) {
    const volatile int *const end = (const volatile int *)asked;
    (void)arena, (void)answer;
    while (!*end)
        continue;
    return STATUS_OK;
}

/* Work that goes on for ever ends when its processor time does. Without a limit the alarm ends the
 * test. */
static void verify_endless_work_ends(void **state) {
    static const int end = 0;
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct answer answer;
    signal(SIGALRM, SIG_DFL);
    seconds = 1;
    alarm(120); /* a busy machine gives a second of its processors within two minutes */
    require_failure(run(never_end, &end, &arena, &answer), STATUS_INPUT,
                    "the file broke its reader: 1 s of processor time were not enough to read it");
    alarm(0);
    seconds = 0;
    arena_close(&arena);
}

/* Takes memory as a library does, one MiB after the other. Where there is no more, it fails, or
 * dies of what it did not look at. */
static enum status take_for_ever(const void *asked, struct arena *arena, void *answer) {
    const int looks = *(const int *)asked;
    (void)arena, (void)answer;
    for (int i = 0; i < 1000; i++) {
        volatile char *const piece = (volatile char *)malloc(1 << 20);
        if (looks && piece == NULL) FAIL(STATUS_IO, "%s: cannot read it: no memory", own);
        piece[0] = 1;
    }
    return STATUS_OK;
}

static enum status take_some(const void *asked, struct arena *arena, void *answer) {
    const uint64_t count = 1 << 20; /* of its arena: more than the limit */
    char *const piece = (char *)malloc(5 << 20);
    (void)asked;
    if (piece == NULL) FAIL(STATUS_MEMORY, "5 MiB were not there");
    memset(piece, 1, 5 << 20);
    free(piece);
    return answer_well(&count, arena, answer);
}

/* Memory has a limit, which is told where it was the end; what the arena has does not count. */
static void verify_endless_memory_ends(void **state) {
    static const int looks[] = {1, 0};
    static const char *const texts[] = {
        "memory ran out while it was read, of which its reader may take 8 MiB: confined-",
        "of which its reader may take 8 MiB, and the reader died of it"};
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct answer answer;
    if (strstr(confined_by(), "seccomp") == NULL) skip(); /* sanitizers have memory of their own */
    signal(SIGSEGV, SIG_DFL);
    memory = (size_t)8 << 20;
    for (int i = 0; i < 2; i++)
        require_failure(run(take_for_ever, &looks[i], &arena, &answer),
                        looks[i] ? STATUS_IO : STATUS_INPUT, texts[i]);
    assert_int_equal(run(take_some, NULL, &arena, &answer), STATUS_OK);
    memory = 0;
    /* a file of four bytes has 256 MiB */
    require_failure(run(take_for_ever, &looks[0], &arena, &answer), STATUS_IO,
                    "memory ran out while it was read, of which its reader may take 256 MiB");
    arena_close(&arena);
}

/* ---- answers of a child that was taken over ---- */

static enum status answer_badly(const void *asked, struct arena *arena, void *answer) {
    const uint64_t few = 4;
    struct answer *a = (struct answer *)answer;
    TRY(answer_well(&few, arena, a));
    switch (*(const int *)asked) {
    case 0:
        a->text = (const char *)(uintptr_t)16;
        break;
    case 1:
        a->text = "a text of the program itself";
        break;
    case 2:
        a->count = UINT64_MAX / 8 + 2;
        break;
    case 3:
        a->count = (uint64_t)1 << 30;
        break;
    case 4:
        a->numbers = (uint64_t *)(void *)((char *)a->numbers + 1);
        break;
    case 5:
        a->numbers = (uint64_t *)(uintptr_t)UINTPTR_MAX;
        break;
    case 6:
        a->numbers = NULL;
        break;
    default: { /* no end up to the end of what there is */
        char *piece;
        TRY(arena_take(arena, 1 << 20, 1, "text", &piece));
        a->text = piece;
        for (; confined_holds(piece, 1, 1); piece++)
            *piece = 'x';
    }
    }
    return STATUS_OK;
}

static void verify_wild_answers_are_refused(void **state) {
    (void)state;
    const int cases = strstr(confined_by(), "seccomp") != NULL ? 8 : 7; /* the last one is wild */
    for (int i = 0; i < cases; i++) {
        struct arena arena = ARENA_EMPTY;
        struct answer answer;
        require_failure(run(answer_badly, &i, &arena, &answer), STATUS_INPUT,
                        "its answer is none that a reader gives");
        arena_close(&arena);
    }
}

/* ---- what a child may do ---- */

/* Whether a call failed for want of rights. */
static int denied(long result) {
    return result == -1 && (errno == EPERM || errno == EACCES);
}

static uint64_t try_all(void) {
    static char *const words[] = {(char *)(uintptr_t) "true", NULL};
    char byte;
    const int file = open(own, O_RDONLY);
    uint64_t allowed = 0;
    int bit = 0;
    const int parent = getppid() > 0 ? (int)getppid() : 1; /* 1: the filter hides it */
    if (file < 0 || read(file, &byte, 1) != 1) return UINT64_MAX;
    const long tries[] = {
        open(own, O_WRONLY),
        open(own, O_RDWR),
        open("made.up", O_CREAT | O_WRONLY, 0600),
        open(own, O_RDONLY | O_TRUNC),
        write(STDERR_FILENO, "x", 1),
        pwrite(file, "x", 1, 0),
        unlink(own),
        rename(own, other),
        mkdir("made.up", 0700),
        fork(),
        execv("/bin/true", words),
        kill(parent, 0),
        socket(AF_UNIX, SOCK_STREAM, 0),
        syscall(SYS_ptrace, 0, 0, 0, 0),
        syscall(SYS_process_vm_writev, parent, NULL, 0, NULL, 0, 0),
        syscall(SYS_io_uring_setup, 1, NULL),
        ftruncate(file, 0),
        fcntl(file, F_SETOWN, parent),
        syscall(SYS_mmap, NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0),
        syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)};
    for (size_t i = 0; i < COUNT_OF(tries); i++, bit++)
        if (!denied(tries[i])) allowed |= (uint64_t)1 << bit;
    if (strstr(confined_by(), "Landlock") != NULL && open(other, O_RDONLY) >= 0)
        allowed |= (uint64_t)1 << bit;
    return allowed;
}

static enum status do_what_may_not_be(const void *asked, struct arena *arena, void *answer) {
    struct answer *a = (struct answer *)answer;
    const uint64_t one = 1;
    (void)asked;
    TRY(answer_well(&one, arena, a));
    a->numbers[0] = try_all();
    return STATUS_OK;
}

static void make(char *name, const char *text) {
    const int file = mkstemp(strcpy(name, "confined-XXXXXX"));
    assert_true(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
    close(file);
}

static int enter(void **state) {
    (void)state;
    const char *folder = getenv("TMPDIR");
    if (chdir(folder == NULL ? "/tmp" : folder) != 0) return -1;
    make(own, "own");
    make(other, "other");
    return 0;
}

static int leave(void **state) {
    (void)state;
    return unlink(own) | unlink(other);
}

static void verify_a_child_may_only_read(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct answer answer;
    print_message("# %s\n", confined_by());
    if (strstr(confined_by(), "seccomp") == NULL) skip();
    assert_int_equal(run(do_what_may_not_be, NULL, &arena, &answer), STATUS_OK);
    if (answer.numbers[0] != 0)
        fail_msg("allowed (bits, in the order of the table): %#llx",
                 (unsigned long long)answer.numbers[0]);
    assert_int_equal(access(own, F_OK) | access(other, F_OK), 0);
    arena_close(&arena);
}

/* A limit on address space leaves less to reserve, and that is found. */
static void verify_little_memory_does(void **state) {
    (void)state;
    const uint64_t count = 1000;
    struct rlimit before, tight;
    struct arena arena = ARENA_EMPTY;
    struct answer answer;
    if (strstr(confined_by(), "seccomp") == NULL) skip(); /* sanitizers reserve terabytes */
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    tight = before;
    tight.rlim_cur = (rlim_t)256 << 20;
    assert_int_equal(setrlimit(RLIMIT_AS, &tight), 0);
    const enum status status = run(answer_well, &count, &arena, &answer);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(status, STATUS_OK);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_answers_come_over),
        cmocka_unit_test(verify_failures_come_over),
        cmocka_unit_test(verify_deaths_are_told),
        cmocka_unit_test(verify_endless_work_ends),
        cmocka_unit_test(verify_endless_memory_ends),
        cmocka_unit_test(verify_wild_answers_are_refused),
        cmocka_unit_test(verify_a_child_may_only_read),
        cmocka_unit_test(verify_little_memory_does),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
