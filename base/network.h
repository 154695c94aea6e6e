/* SPDX-License-Identifier: Apache-2.0
 * Which file systems are another machine's, because a file that is read while it is written needs
 * what POSIX says of write(): a reader sees writes in their order. */
#ifndef TWINSTEP_BASE_NETWORK_H
#define TWINSTEP_BASE_NETWORK_H

/* How far a reader elsewhere sees the writes of a live file in their order. */
enum network_kind {
    NETWORK_NONE = 0, /* a file system of this machine, or one that is not known */
    NETWORK_COHERENT, /* it promises so, where it was mounted in that way: Lustre, GPFS, Ceph */
    NETWORK_LOOSE     /* it does not: NFS, SMB, AFS, 9P, what FUSE mounts */
};

/* The kind of the file system on which PATH lies, or the folder that PATH would be made in, and its
 * name ("NFS"). */
enum network_kind network_of(const char *path, const char **out_name);

#endif
