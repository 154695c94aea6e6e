/* SPDX-License-Identifier: Apache-2.0
 * Names are those of PyTorch's modules: parts between points, numbers for the members of a list. */
#include "checkpoints/layers.h"

#include "base/macro.h"

#include <ctype.h>
#include <string.h>

size_t layer_length(const char *name) {
    size_t last = strlen(name);
    for (size_t i = 0, begin = 0; name[i] != '\0'; i++) {
        if (name[i] != '.') continue;
        size_t digits = 0;
        while (digits < i - begin && isdigit((unsigned char)name[begin + digits]))
            digits++;
        if (i > begin && digits == i - begin) return i;
        begin = i + 1;
        last = i;
    }
    return last;
}

static size_t wrapper_at(const char *name) {
    static const char *const wrappers[] = {"module.", "_orig_mod."};
    for (size_t i = 0; i < COUNT_OF(wrappers); i++)
        if (strncmp(name, wrappers[i], strlen(wrappers[i])) == 0) return strlen(wrappers[i]);
    return 0;
}

size_t layer_wrapper_length(const char *name) {
    size_t length = 0;
    for (size_t more = wrapper_at(name); more > 0; more = wrapper_at(name + length))
        length += more;
    return length;
}
