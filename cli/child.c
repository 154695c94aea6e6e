/* SPDX-License-Identifier: Apache-2.0
 * fork() with what belongs to it: signals are held until the child has its own handlers, and it is
 * ended by the system where its parent dies. */
#include "cli/child.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folder of a process's threads has a link for each, and two of its own. */
int child_is_possible(void) {
    struct stat info;
    return stat("/proc/self/task", &info) == 0 && info.st_nlink == 3;
}

static void set_handler(int signal, void (*handler)(int)) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, NULL);
}

int child_start(void (*work)(void *context), void *context, void (*told)(int signal),
                pid_t *out_pid) {
    const pid_t parent = getpid();
    sigset_t held, mask;
    sigfillset(&held);
    sigprocmask(SIG_BLOCK, &held, &mask);
    const pid_t pid = fork();
    const int reason = pid < 0 ? errno : 0;
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
        set_handler(SIGINT, SIG_IGN);
        set_handler(SIGTERM, SIG_IGN);
        set_handler(SIGHUP, SIG_IGN);
        if (told != NULL) set_handler(CHILD_TOLD, told);
        sigprocmask(SIG_SETMASK, &mask, NULL);
        work(context);
        _exit(0);
    }
    sigprocmask(SIG_SETMASK, &mask, NULL);
    *out_pid = pid;
    return reason;
}
