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

const char *const layer_wrappers[LAYER_WRAPPERS] = {
    "module.", "_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module."};

/* Returns the wrapper whose part a name begins with, or LAYER_WRAPPERS. */
static size_t wrapper_at(const char *name) {
    size_t i = 0;
    while (i < LAYER_WRAPPERS && strncmp(name, layer_wrappers[i], strlen(layer_wrappers[i])) != 0)
        i++;
    return i;
}

size_t layer_wrapper_length(const char *name) {
    size_t length = 0;
    for (size_t i = wrapper_at(name); i < LAYER_WRAPPERS; i = wrapper_at(name + length))
        length += strlen(layer_wrappers[i]);
    return length;
}

unsigned layer_bare_name(const char *name, char *out) {
    unsigned found = 0;
    size_t used = 0;
    for (int begins = 1; *name != '\0';) {
        const size_t wrapper = begins ? wrapper_at(name) : LAYER_WRAPPERS;
        if (wrapper < LAYER_WRAPPERS) {
            found |= 1u << wrapper;
            name += strlen(layer_wrappers[wrapper]);
        } else {
            begins = *name == '.';
            out[used++] = *name++;
        }
    }
    out[used] = '\0';
    return found;
}
