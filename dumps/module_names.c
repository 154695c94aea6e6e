/* SPDX-License-Identifier: Apache-2.0
 * Names of modules without those of wrappers, so that a wrapped model and a bare one can be
 * aligned. A wrapper around the whole model hides the name of the model's class, so two dumps of
 * which one is wrapped are aligned by what stands behind the class. */
#include <string.h>

#include "dumps/dump_private.h"

/* What FSDP, torch.compile and checkpoint_wrapper call the module inside. */
static const char *const inner[] = {"_fsdp_wrapped_module", "_orig_mod",
                                    "_checkpoint_wrapped_module"};
/* These call it "module", as models call parts of their own. */
static const char *const module[] = {"module"};
static const char *const outer[] = {"DistributedDataParallel", "DataParallel", "DeepSpeedEngine"};

static int is_among(const char *text, size_t length, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) == length && memcmp(text, names[i], length) == 0) return 1;
    return 0;
}

/* FSDP2 makes a class "FSDPQwen2ForCausalLM" of every class that it shards. */
static int is_fully_sharded(const char *text, size_t length) {
    return length > 4 && memcmp(text, "FSDP", 4) == 0 && text[4] >= 'A' && text[4] <= 'Z';
}

enum status dump_unwrap(struct arena *arena, struct log_span tag, struct dump_text *out,
                        size_t *out_root, int *out_wrapped) {
    int is_outer = 0;
    out->length = *out_root = 0;
    for (size_t at = 0, number = 0; at <= tag.length; number++) {
        const char *const part = tag.text + at;
        const void *const dot = memchr(part, '.', tag.length - at);
        const size_t length = dot == NULL ? tag.length - at : (size_t)((const char *)dot - part);
        const size_t skip = number == 0 && is_fully_sharded(part, length) ? 4 : 0;
        at += length + 1;
        if (number == 0) is_outer = is_among(part, length, outer, COUNT_OF(outer));
        *out_wrapped |= skip > 0;
        if (number > 0 && (is_among(part, length, inner, COUNT_OF(inner)) ||
                           (number == 1 && is_outer && is_among(part, length, module, 1)))) {
            *out_wrapped = 1;
            continue;
        }
        if (number > 0) TRY(dump_text_add(arena, out, ".", 1));
        TRY(dump_text_add(arena, out, part + skip, length - skip));
        if (number == 0) *out_root = out->length;
    }
    return STATUS_OK;
}
