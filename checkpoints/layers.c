/* SPDX-License-Identifier: Apache-2.0
 * Names are those of PyTorch's modules: parts between points, numbers for the members of a list. */
#include "checkpoints/layers.h"

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
