# SPDX-License-Identifier: Apache-2.0
"""Opens HDF5 files, also where the file system has no locks to give.

HDF5 locks every file that it opens and gives up where that fails. Some file systems know no locks
(Lustre mounted without `flock`), and some name a lock service that does not answer (NFS); the
program writes and reads there, and so does this package. A file that another process holds locked
is another matter, and stays an error.

`record/writer.py` runs this file by its name, so it imports nothing of twinstep."""
import errno
import os
from typing import Any

import h5py

# What a file system without locks says; 524 is Linux's ENOTSUPP, which has no name in Python.
NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, 524)


def open_file(path: str | os.PathLike[str], mode: str, **words: Any) -> h5py.File:
    """The file, as h5py.File opens it, whose errors it has."""
    try:
        return h5py.File(path, mode, **words)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
    return h5py.File(path, mode, locking=False, **words)
