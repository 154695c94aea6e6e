/* SPDX-License-Identifier: Apache-2.0
 * The template with a constructor that leaves a file behind: a test sees by it whether anything of
 * a module ran. */
#include <fcntl.h>
#include <unistd.h>

#include "tests/plugins/template_optim.c"

__attribute__((constructor)) static void leave_mark(void) {
    const int file = open("constructor-ran", O_WRONLY | O_CREAT, 0644);
    if (file >= 0) close(file);
}
