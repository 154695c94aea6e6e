/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 *
 * What is left of a folder when a worker whose command cannot be started takes its plan back while
 * another one opens it: nothing, or a plan beside the claim of the other. Nothing is run.
 */
#include "ablate/ablate_folder.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/ablate/helper_made_up.h"

static char root[] = "/tmp/twinstep_folder_XXXXXX";
static char at[64];

/* The other worker, who comes when this one makes the folder of that name. */
static struct {
    const char *name; /* NULL: nobody comes */
    const struct ablate_folder *folder;
    int ends;    /* it takes all of its plan back, or only its name */
    char *aside; /* then */
} other;

int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode) {
    const char *name = strrchr(path, '/');
    if (other.name != NULL && name != NULL && strcmp(name + 1, other.name) == 0) {
        other.name = NULL;
        ablate_folder_hide(other.folder, &bench.arena, &other.aside);
        if (other.ends) ablate_folder_end(other.folder, other.aside, &bench.arena);
    }
    return __real_mkdir(path, mode);
}

/* How many reads find that another machine replaced the file in between, and what it does then. */
static struct {
    int count;
    const char *goes; /* a file that is gone at the last of them, or NULL */
} stale;

ssize_t __real_read(int descriptor, void *out, size_t size);
ssize_t __wrap_read(int descriptor, void *out, size_t size);
ssize_t __wrap_read(int descriptor, void *out, size_t size) {
    if (stale.count == 0) return __real_read(descriptor, out, size);
    if (--stale.count == 0 && stale.goes != NULL) (void)unlink(stale.goes);
    errno = ESTALE;
    return -1;
}

static int has(const char *name) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", at, name);
    return access(path, F_OK) == 0;
}

static void open_folder(struct ablate_folder *out) {
    assert_int_equal(ablate_folder_open(at, &bench.plan, &bench.arena, out), STATUS_OK);
}

static void take(const struct ablate_folder *folder) {
    enum ablate_claim claim;
    char *who;
    assert_int_equal(ablate_claim_take(folder, "test-1", &bench.arena, &claim, &who), STATUS_OK);
    assert_int_equal(claim, CLAIM_TAKEN);
}

static void leave(const struct ablate_folder *folder) {
    assert_int_equal(ablate_claim_leave(folder, "test-1", folder->worker, &bench.arena), STATUS_OK);
}

static void verify_what_one_worker_made_is_removed(void **state) {
    struct ablate_folder folder;
    (void)state;
    open_folder(&folder);
    assert_true(has("plan") && has("runs") && has("claims"));
    ablate_folder_unmake(&folder, &bench.arena);
    assert_false(has(""));
    assert_int_equal(mkdir(at, 0755), 0); /* whoever made the folder keeps it */
    open_folder(&folder);
    ablate_folder_unmake(&folder, &bench.arena);
    assert_true(has(""));
    assert_int_equal(rmdir(at), 0); /* it was empty */
}

static void verify_what_another_worker_uses_stays(void **state) {
    struct ablate_folder a, b;
    (void)state;
    open_folder(&a);
    open_folder(&b);
    ablate_folder_unmake(&b, &bench.arena); /* the plan is that of a */
    assert_true(has("plan") && has("runs") && has("claims"));
    take(&b);
    ablate_folder_unmake(&a, &bench.arena);
    assert_true(has("plan") && has("runs") && has("claims"));
    leave(&b);
    ablate_folder_unmake(&a, &bench.arena);
    assert_false(has(""));
}

/* The other worker has opened the folder, and takes its claim when the plan has lost its name. */
static void verify_a_claim_in_the_middle_gives_the_plan_back(void **state) {
    struct ablate_folder a, b;
    char *aside;
    (void)state;
    open_folder(&a);
    open_folder(&b);
    ablate_folder_hide(&a, &bench.arena, &aside);
    assert_non_null(aside);
    assert_false(has("plan"));
    take(&b);
    ablate_folder_end(&a, aside, &bench.arena);
    assert_true(has("plan") && has("runs") && has("claims"));
    assert_int_not_equal(access(aside, F_OK), 0);
    leave(&b);
    ablate_folder_unmake(&a, &bench.arena);
    assert_false(has(""));
}

/* The other worker opens the folder when the plan has lost its name: it writes one, which is not
 * removed together with that of the first. */
static void verify_who_opens_in_the_middle_writes_a_plan(void **state) {
    struct ablate_folder a, b;
    char *aside;
    (void)state;
    open_folder(&a);
    ablate_folder_hide(&a, &bench.arena, &aside);
    assert_non_null(aside);
    open_folder(&b);
    assert_true(b.plan_is_made);
    ablate_folder_end(&a, aside, &bench.arena);
    assert_true(has("plan"));
    assert_int_not_equal(access(aside, F_OK), 0);
    open_folder(&b); /* makes again what is not there */
    assert_true(has("plan") && has("runs") && has("claims"));
    take(&b);
    leave(&b);
    a.plan_is_made = 1;
    ablate_folder_unmake(&a, &bench.arena);
    assert_false(has(""));
}

/* The other worker's plan was there when this one looked for it, and goes while it makes the rest.
 */
static void verify_a_plan_that_goes_while_the_folder_is_opened_is_written_again(void **state) {
    static const char *const names[] = {"folder", "runs", "claims"};
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct ablate_folder a, b;
        open_folder(&a);
        other.name = names[i % 3];
        other.folder = &a;
        other.ends = i >= 3;
        open_folder(&b);
        assert_null(other.name);
        assert_true(b.plan_is_made && has("plan") && has("runs") && has("claims"));
        if (!other.ends) ablate_folder_end(&a, other.aside, &bench.arena);
        assert_true(has("plan"));
        open_folder(&a); /* makes again what is not there */
        b.is_made = 1;
        ablate_folder_unmake(&b, &bench.arena);
        assert_false(has(""));
    }
}

/* One process opens the folder and takes its plan back, over and over, while this one opens it and
 * takes a claim: where that succeeds, a plan stands beside the claim when the other has ended. */
static void verify_a_claim_stands_beside_a_plan_in_every_order(void **state) {
    int held = 0;
    (void)state;
    for (int round = 0; round < 20; round++) {
        struct ablate_folder folder;
        enum ablate_claim claim = CLAIM_BUSY;
        char *who;
        int ended;
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            for (int i = 0; i < 20; i++)
                if (ablate_folder_open(at, &bench.plan, &bench.arena, &folder) == STATUS_OK)
                    ablate_folder_unmake(&folder, &bench.arena);
            _exit(0);
        }
        const enum status opened = ablate_folder_open(at, &bench.plan, &bench.arena, &folder);
        const enum status taken = opened == STATUS_OK
                                      ? ablate_claim_take(&folder, "x", &bench.arena, &claim, &who)
                                      : opened;
        assert_int_equal(waitpid(child, &ended, 0), child);
        if (taken == STATUS_OK && claim == CLAIM_TAKEN) {
            held++;
            assert_true(has("plan"));
            assert_int_equal(ablate_claim_leave(&folder, "x", folder.worker, &bench.arena),
                             STATUS_OK);
        }
        struct ablate_folder last;
        open_folder(&last);
        last.is_made = last.plan_is_made = 1;
        ablate_folder_unmake(&last, &bench.arena);
        assert_false(has(""));
    }
    assert_true(held > 0);
}

/* As on NFS or GlusterFS: a claim that another machine replaced is read again, one that it removed
 * is free, and one that stays stale is an error. */
static void verify_a_stale_claim_is_looked_at_again(void **state) {
    struct ablate_folder first, second;
    enum ablate_claim claim;
    char *who, path[128];
    (void)state;
    open_folder(&first);
    open_folder(&second);
    take(&first);
    stale.count = 2;
    assert_int_equal(ablate_claim_take(&second, "test-1", &bench.arena, &claim, &who), STATUS_OK);
    assert_int_equal(stale.count, 0);
    assert_int_not_equal(claim, CLAIM_TAKEN); /* it lives: this process has it */
    snprintf(path, sizeof path, "%s/claims/test-1", at);
    stale.count = 1;
    stale.goes = path;
    assert_int_equal(ablate_claim_leave(&first, "test-1", first.worker, &bench.arena), STATUS_OK);
    stale.goes = NULL;
    assert_false(has("claims/test-1"));
    take(&second);
    stale.count = 1000;
    assert_int_equal(ablate_claim_leave(&second, "test-1", second.worker, &bench.arena), STATUS_IO);
    assert_true(stale.count > 900 && stale.count < 1000 - 1); /* it gives up */
    stale.count = 0;
    leave(&second);
    first.is_made = first.plan_is_made = 1;
    ablate_folder_unmake(&first, &bench.arena);
    assert_false(has(""));
}

static int begin(void **state) {
    (void)state;
    if (mkdtemp(root) == NULL) return -1;
    snprintf(at, sizeof at, "%s/folder", root);
    bench_plan(1, 0, WEIGHTS);
    return 0;
}

static int end(void **state) {
    (void)state;
    bench_close();
    return rmdir(root);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_what_one_worker_made_is_removed),
        cmocka_unit_test(verify_what_another_worker_uses_stays),
        cmocka_unit_test(verify_a_claim_in_the_middle_gives_the_plan_back),
        cmocka_unit_test(verify_who_opens_in_the_middle_writes_a_plan),
        cmocka_unit_test(verify_a_plan_that_goes_while_the_folder_is_opened_is_written_again),
        cmocka_unit_test(verify_a_claim_stands_beside_a_plan_in_every_order),
        cmocka_unit_test(verify_a_stale_claim_is_looked_at_again),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
