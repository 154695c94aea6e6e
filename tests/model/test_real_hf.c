/* SPDX-License-Identifier: Apache-2.0
 * labels: real
 * The goldens of transformers and TRL must be what these libraries compute now. The test is skipped
 * where python3 does not have the versions of tests/golden/hf/requirements.txt. TWINSTEP_PYTHON
 * names another interpreter. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

int main(void) {
    char command[4096];
    const char *python = getenv("TWINSTEP_PYTHON");
    const int length =
        snprintf(command, sizeof command, "%s " TWINSTEP_SOURCE_DIR "/tests/golden/hf/hf_check.py",
                 python == NULL ? "python3" : python);
    if (length < 0 || (size_t)length >= sizeof command) return 1;
    const int code = system(command);
    return WIFEXITED(code) ? WEXITSTATUS(code) : 1;
}
