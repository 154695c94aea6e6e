/* SPDX-License-Identifier: Apache-2.0
 * The one definition of a root, used by the run that records it and by whoever checks it. */
#include "determinism/root.h"

#include <string.h>

#include "base/macro.h"
#include "determinism/digest.h"
#include "determinism/record.h"

static struct digest column(const struct record *record, enum record_digest which) {
    struct digest digest;
    memcpy(digest.byte, record->digests[which], DIGEST_BYTES);
    return digest;
}

void root_next(const struct digest *previous, const struct record *record,
               struct digest *out_root) {
    struct digest parts[6] = {*previous,
                              column(record, DIGEST_BATCH),
                              column(record, DIGEST_RNG),
                              column(record, DIGEST_WEIGHTS),
                              column(record, DIGEST_LR),
                              {{0}}};
    digest_bytes("loss", &record->reals[REAL_LOSS], sizeof(double), &parts[5]);
    digest_root("root", parts, COUNT_OF(parts), out_root);
}

static void add_lr(const struct record *record, uint32_t group, struct digest_stream *stream) {
    struct digest item;
    digest_bytes("lr", &record->groups[group][GROUP_LR_APPLIED], sizeof(double), &item);
    digest_stream_add(stream, &item);
}

void root_lr(const struct record *record, const char *groups, struct digest *out) {
    struct digest_stream stream;
    digest_stream_init(&stream, "lr_applied");
    for (; *groups != '\0'; groups++)
        add_lr(record, (uint32_t)(*groups - '0'), &stream);
    digest_stream_close(&stream, out);
}

void root_lr_groups(const struct record *record, const uint32_t *groups, uint32_t count,
                    struct digest *out) {
    struct digest_stream stream;
    digest_stream_init(&stream, "lr_applied");
    for (uint32_t i = 0; i < count; i++)
        add_lr(record, groups[i], &stream);
    digest_stream_close(&stream, out);
}

void root_optimize(const struct record *record, struct digest *out) {
    const struct digest parts[2] = {column(record, DIGEST_WEIGHTS), column(record, DIGEST_LR)};
    digest_root("optimize", parts, COUNT_OF(parts), out);
}
