/* SPDX-License-Identifier: Apache-2.0
 * One loop over write(), with SIGPIPE held back. */
#include "cli/pipe_write.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

int pipe_write(int to, const void *bytes, size_t length) {
    struct sigaction ignore, before;
    const char *from = (const char *)bytes;
    int reason = 0;
    memset(&ignore, 0, sizeof ignore);
    ignore.sa_handler = SIG_IGN;
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGPIPE, &ignore, &before);
    while (length > 0 && reason == 0) {
        const ssize_t wrote = write(to, from, length);
        if (wrote < 0) {
            if (errno != EINTR) reason = errno;
            continue;
        }
        from += wrote;
        length -= (size_t)wrote;
    }
    sigaction(SIGPIPE, &before, NULL);
    return reason;
}
