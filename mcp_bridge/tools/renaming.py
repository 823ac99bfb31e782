"""Give a file a name that nothing has: one step, which never replaces what came there meanwhile."""

from __future__ import annotations

import ctypes
import errno
import os

_NOREPLACE = 1  # linux/fs.h: RENAME_NOREPLACE
_UNKNOWN = (errno.ENOSYS, errno.EINVAL)  # the kernel, or this file system, does not know the flag

_libc = ctypes.CDLL(None, use_errno=True)
_renameat2 = getattr(_libc, "renameat2", None)  # not there before glibc 2.28
if _renameat2 is not None:
    _renameat2.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]


def rename(source: str, destination: str, *, src: int, dst: int) -> None:
    """Rename from the folder of the handle `src` to that of `dst`.

    Raises:
        FileExistsError: Something has the name.
        OSError: It cannot be done, for example across file systems. Nothing was done.
    """
    failed = _in_one_step(os.fsencode(source), os.fsencode(destination), src, dst)
    if failed in _UNKNOWN:
        # A link refuses a name that exists, too. It does not work for folders, nor on every file system.
        os.link(source, destination, src_dir_fd=src, dst_dir_fd=dst, follow_symlinks=False)
        try:
            os.unlink(source, dir_fd=src)
        except OSError:
            os.unlink(destination, dir_fd=dst)
            raise
    elif failed:
        raise OSError(failed, os.strerror(failed), destination)


def _in_one_step(source: bytes, destination: bytes, src: int, dst: int) -> int:
    """Zero, or the number of the error."""
    if _renameat2 is None:
        return errno.ENOSYS
    return ctypes.get_errno() if _renameat2(src, source, dst, destination, _NOREPLACE) else 0
