# SPDX-License-Identifier: Apache-2.0
"""The sums of "keyed 1" of many CUDA tensors by one kernel and one launch.

NVRTC, which comes with torch, compiles the kernel when it is first used (some 0.4 s), and the
driver starts it: no compiler of the machine, no process of another one, no setting of torch is
touched. A kernel whose sums of a probe are not those of plain operations is never used."""
from __future__ import annotations

import ctypes
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

Item = tuple[torch.Tensor, int]     # contiguous, and the number of its first element
Sums = Callable[[Sequence[Item]], list[torch.Tensor]]

# The arithmetic is that of digest/keyed.c. A row of the table: where the words are, the index of
# the first one, how many there are, the bytes of each.
SOURCE = r"""
extern "C" __global__ void keyed(const long long *table, unsigned long long *totals) {
    const long long *row = table + 4 * blockIdx.y;
    const unsigned long long first = row[1], count = row[2];
    const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    unsigned long long sum = 0;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
         i < count; i += stride) {
        const unsigned word = row[3] == 4   ? ((const unsigned *)row[0])[i]
                              : row[3] == 2 ? ((const unsigned short *)row[0])[i]
                                            : ((const unsigned char *)row[0])[i];
        unsigned long long x = ((first + i) << 32) + word + 0x9E3779B97F4A7C15ull;
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
        x = (x ^ x >> 27) * 0x94D049BB133111EBull;
        sum += x ^ x >> 31;
    }
    for (int lane = 16; lane > 0; lane /= 2)
        sum += __shfl_down_sync(0xFFFFFFFFu, sum, lane);
    if (threadIdx.x % 32 == 0) atomicAdd(totals + blockIdx.y, sum);
}
"""
BLOCKS, THREADS = 64, 256       # blocks of one tensor: several tensors fill a device
MOST = 65535                    # tensors in a launch: the second extent of a grid


def _check(status: int, what: str) -> None:
    if status != 0:
        raise RuntimeError(f"{what}: status {status}")


def row_of(t: torch.Tensor, first: int) -> tuple[int, int, int, int]:
    """The table's row of a contiguous tensor whose first element has that number. Elements of eight
    bytes are two words each."""
    if t.element_size() == 8:
        return t.data_ptr(), 2 * first, 2 * t.numel(), 4
    return t.data_ptr(), first, t.numel(), t.element_size()


def table_of(rows: Sequence[tuple[int, int, int, int]], is_pinned: bool) -> torch.Tensor:
    """The table in the host's memory, whatever torch.set_default_device says."""
    return torch.tensor(rows, dtype=torch.int64, device="cpu", pin_memory=is_pinned)


def _nvrtc() -> ctypes.CDLL:
    """The NVRTC of torch's own CUDA."""
    near = pathlib.Path(torch.__file__).parent
    major = str(torch.version.cuda).split(".", maxsplit=1)[0]
    found = [f for folder in (near / "lib", *near.parent.glob("nvidia/*/lib"))
             for f in sorted(folder.glob("libnvrtc[.-]*so*")) if "builtins" not in f.name
             and "alt" not in f.name and f".so.{major}" in f.name]
    return ctypes.CDLL(str(found[0]) if found else f"libnvrtc.so.{major}")


def compiled(architecture: str) -> bytes:
    """The kernel's machine code for sm_<architecture>. Raises OSError, AttributeError and
    RuntimeError where there is no NVRTC, or one that does not know it."""
    nvrtc = _nvrtc()
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    _check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), SOURCE.encode(), b"keyed.cu", 0, None,
                                    None), "nvrtcCreateProgram")
    try:
        options = (ctypes.c_char_p * 1)(f"--gpu-architecture=sm_{architecture}".encode())
        _check(nvrtc.nvrtcCompileProgram(program, 1, options), "nvrtcCompileProgram")
        _check(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)), "nvrtcGetCUBINSize")
        code = ctypes.create_string_buffer(size.value)
        _check(nvrtc.nvrtcGetCUBIN(program, code), "nvrtcGetCUBIN")
        return code.raw
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


class _Kernel:
    """The kernel on one device."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.driver = device, ctypes.CDLL("libcuda.so.1")
        self.module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        code = compiled("{0}{1}".format(*torch.cuda.get_device_capability(device)))
        with torch.cuda.device(device):
            torch.cuda.current_stream(device)
            _check(self.driver.cuModuleLoadData(ctypes.byref(self.module), code),
                   "cuModuleLoadData")
            _check(self.driver.cuModuleGetFunction(ctypes.byref(self.function), self.module,
                                                   b"keyed"), "cuModuleGetFunction")

    def sums(self, items: Sequence[Item]) -> list[torch.Tensor]:
        """The sums of tensors of this device, as i64 tensors of no dimension. Waits for nothing:
        the table comes from pinned memory."""
        rows = [row_of(t, first) for t, first in items]
        totals: list[torch.Tensor] = []
        with torch.cuda.device(self.device):
            for at in range(0, len(rows), MOST):
                totals += self._launch(rows[at:at + MOST]).unbind()
        return totals

    def _launch(self, rows: list[tuple[int, int, int, int]]) -> torch.Tensor:
        table = table_of(rows, is_pinned=True).to(self.device, non_blocking=True)
        made = torch.zeros(len(rows), dtype=torch.int64, device=self.device)
        pointers = [ctypes.c_void_p(table.data_ptr()), ctypes.c_void_p(made.data_ptr())]
        words = (ctypes.c_void_p * 2)(*(ctypes.addressof(p) for p in pointers))
        stream = ctypes.c_void_p(torch.cuda.current_stream(self.device).cuda_stream)
        _check(self.driver.cuLaunchKernel(self.function, BLOCKS, len(rows), 1, THREADS, 1, 1, 0,
                                          stream, words, None), "cuLaunchKernel")
        return made


_kernels: dict[torch.device, Any] = {}


def sums_of(device: torch.device,
            plain: Callable[[torch.Tensor, int], torch.Tensor]) -> Sums | None:
    """What sums tensors of a CUDA device in one launch; None where that cannot be had, or is not
    what `plain` says of a probe."""
    if device.type != "cuda" or not torch.version.cuda:
        return None
    if device not in _kernels:
        try:
            kernel = _Kernel(device)
            raw = (torch.arange(4 * 40960, device=device) * 151 % 256).to(torch.uint8)
            probe = [(raw.view(dtype), first) for dtype, first in (
                (torch.uint8, 0), (torch.int16, 3), (torch.float32, (1 << 32) - 7),
                (torch.float64, 5))] + [(raw[:0], 0), (raw[:1], 9)]
            expected = [plain(t, first) for t, first in probe]
            if not torch.equal(torch.stack(kernel.sums(probe)), torch.stack(expected)):
                raise RuntimeError("the sums of the probe are others")
            _kernels[device] = kernel.sums
        except Exception:       # noqa: B902 slower without it, and the same sums
            _kernels[device] = None
    found: Sums | None = _kernels[device]
    return found
