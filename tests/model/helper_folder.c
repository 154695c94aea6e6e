/* SPDX-License-Identifier: Apache-2.0
 * Makes the folder in /tmp, and removes it with everything in it by its name. */
#include "tests/model/helper_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/twinstep-test-XXXXXX";

int helper_folder_enter(void **state) {
    (void)state;
    return mkdtemp(folder) == NULL || chdir(folder) != 0;
}

int helper_folder_leave(void **state) {
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", folder);
    return chdir("/") != 0 || system(command) != 0;
}
