/* SPDX-License-Identifier: Apache-2.0
 * The numbers are those of Linux (statfs(2), linux/magic.h) and of Lustre, GPFS and Ceph
 * themselves. */
#include "base/network.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/vfs.h>

#include "base/macro.h"
#include "base/parent.h"

static const struct {
    uint32_t type;
    enum network_kind kind;
    const char *name;
} known[] = {
    {0x6969, NETWORK_LOOSE, "NFS"},         {0x517B, NETWORK_LOOSE, "SMB"},
    {0xFF534D42, NETWORK_LOOSE, "CIFS"},    {0xFE534D42, NETWORK_LOOSE, "SMB"},
    {0x5346414F, NETWORK_LOOSE, "AFS"},     {0x01021997, NETWORK_LOOSE, "9P"},
    {0x65735546, NETWORK_LOOSE, "FUSE"},    {0x0BD00BD0, NETWORK_COHERENT, "Lustre"},
    {0x47504653, NETWORK_COHERENT, "GPFS"}, {0x00C36400, NETWORK_COHERENT, "Ceph"},
};

enum network_kind network_of(const char *path, const char **out_name) {
    struct statfs where;
    *out_name = "";
    if (statfs(path, &where) != 0 && statfs(parent_of(path).text, &where) != 0) return NETWORK_NONE;
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        if (known[i].type != (uint32_t)where.f_type) continue;
        *out_name = known[i].name;
        return known[i].kind;
    }
    return NETWORK_NONE;
}
