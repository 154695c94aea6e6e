# SPDX-License-Identifier: Apache-2.0
"""The sums of "keyed 1" of many CUDA tensors by one kernel and one launch.

NVRTC, which comes with torch, compiles the kernel when it is first used (some 0.4 s), and the
driver starts it: no compiler of the machine, no process of another one, no setting of torch is
touched. A kernel whose sums of a probe are not those of plain operations is never used."""
from __future__ import annotations

import ctypes
import pathlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

Item = tuple[torch.Tensor, int]     # contiguous, and the number of its first element
Row = tuple[int, int, int, int]     # where the words are, the index of the first, how many, bytes
Sums = Callable[[Sequence[Item]], torch.Tensor]

SPAN = 16384        # words of a block, so that large tensors and small ones fill a device alike
THREADS = 256
SOURCE = r"""
// The arithmetic is that of digest/keyed.c.
__device__ unsigned long long term(unsigned long long index, unsigned word) {
    unsigned long long x = (index << 32) + word + 0x9E3779B97F4A7C15ull;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return x ^ x >> 31;
}

// Words of 4 / PARTS bytes. Sixteen bytes are read at a time where they are aligned, as memory that
// torch allocates is; SPAN words are a multiple of that.
template <int PARTS, class Word>
__device__ unsigned long long part(const Word *words, unsigned long long first,
                                   unsigned long long begin, unsigned long long end) {
    const unsigned long long many = 4 * PARTS;
    unsigned long long sum = 0, i = begin;
    if ((unsigned long long)words % 16 == 0) {
#pragma unroll (4 / PARTS)
        for (i += many * threadIdx.x; i + many <= end; i += many * THREADS) {
            const uint4 four = *(const uint4 *)(words + i);
            const unsigned parts[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
            for (int k = 0; k < 4; k++)
#pragma unroll
                for (int p = 0; p < PARTS; p++)
                    sum += term(first + i + k * PARTS + p, (Word)(parts[k] >> 32 / PARTS * p));
        }
        i = end - (end - begin) % many;
    }
    for (i += threadIdx.x; i < end; i += THREADS) sum += term(first + i, words[i]);
    return sum;
}

// A row of the table: where the words are, the index of the first one, how many there are, the
// bytes of each, and the first block that takes some of them.
extern "C" __global__ void keyed(const long long *table, unsigned long long *totals, int rows) {
    int low = 0, high = rows - 1;
    while (low < high) {        // the last row that begins at this block or before
        const int middle = (low + high + 1) / 2;
        if (table[5 * middle + 4] <= blockIdx.x) low = middle;
        else high = middle - 1;
    }
    const long long *row = table + 5 * low;
    const unsigned long long first = row[1], begin = (blockIdx.x - row[4]) * SPAN;
    const unsigned long long end = row[2] - begin < SPAN ? row[2] : begin + SPAN;
    unsigned long long sum =
        row[3] == 4   ? part<1>((const unsigned *)row[0], first, begin, end)
        : row[3] == 2 ? part<2>((const unsigned short *)row[0], first, begin, end)
                      : part<4>((const unsigned char *)row[0], first, begin, end);
    for (int lane = 16; lane > 0; lane /= 2)
        sum += __shfl_down_sync(0xFFFFFFFFu, sum, lane);
    if (threadIdx.x % 32 == 0) atomicAdd(totals + low, sum);
}
"""


def _check(status: int, what: str) -> None:
    if status != 0:
        raise RuntimeError(f"{what}: status {status}")


def row_of(t: torch.Tensor, first: int) -> Row:
    """The words of a contiguous tensor whose first element has that number. Elements of eight bytes
    are two words each."""
    if t.element_size() == 8:
        return t.data_ptr(), 2 * first, 2 * t.numel(), 4
    return t.data_ptr(), first, t.numel(), t.element_size()


def table_of(rows: Sequence[Row], is_pinned: bool) -> tuple[torch.Tensor, int]:
    """The table in the host's memory, whatever torch.set_default_device says, and how many blocks
    it needs."""
    blocks, table = 0, []
    for row in rows:
        table.append((*row, blocks))
        blocks += -(-row[2] // SPAN)
    return torch.tensor(table, dtype=torch.int64, device="cpu", pin_memory=is_pinned), blocks


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
        words = (f"--gpu-architecture=sm_{architecture}", f"-DSPAN={SPAN}ull",
                 f"-DTHREADS={THREADS}")
        options = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
        _check(nvrtc.nvrtcCompileProgram(program, len(words), options), "nvrtcCompileProgram")
        _check(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)), "nvrtcGetCUBINSize")
        code = ctypes.create_string_buffer(size.value)
        _check(nvrtc.nvrtcGetCUBIN(program, code), "nvrtcGetCUBIN")
        return code.raw
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


@dataclass(frozen=True)
class Table:
    """A table on the device, its rows, and the blocks that they need."""
    there: torch.Tensor
    rows: int
    blocks: int


class Kernel:
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

    def prepare(self, items: Sequence[Item]) -> Table:
        """What `take` needs to sum these tensors of this device, as often as they are asked for
        while they stay where they are, on the stream that is the current one. Waits for nothing:
        the table comes from pinned memory."""
        table, blocks = table_of([row_of(t, first) for t, first in items], is_pinned=True)
        with torch.cuda.device(self.device):
            there = table.to(self.device, non_blocking=True)
        return Table(there, len(items), blocks)

    def take(self, table: Table) -> torch.Tensor:
        """The sums as they are now: an i64 vector of the device."""
        with torch.cuda.device(self.device):
            made = torch.zeros(table.rows, dtype=torch.int64, device=self.device)
            if table.blocks:
                given = (ctypes.c_void_p(table.there.data_ptr()), ctypes.c_void_p(made.data_ptr()),
                         ctypes.c_int(table.rows))
                words = (ctypes.c_void_p * 3)(*map(ctypes.addressof, given))
                _check(self.driver.cuLaunchKernel(
                    self.function, table.blocks, 1, 1, THREADS, 1, 1, 0,
                    ctypes.c_void_p(self.stream()), words, None), "cuLaunchKernel")
        return made

    def sums(self, items: Sequence[Item]) -> torch.Tensor:
        """The sums of tensors of this device: an i64 vector of it. Waits for nothing."""
        return self.take(self.prepare(items))

    def stream(self) -> int:
        """The stream that kernels go to now."""
        return torch.cuda.current_stream(self.device).cuda_stream


_kernels: dict[torch.device, Kernel | None] = {}


def kernel_of(device: torch.device,
              plain: Callable[[torch.Tensor, int], torch.Tensor]) -> Kernel | None:
    """What sums tensors of a CUDA device in one launch; None where that cannot be had, or is not
    what `plain` says of a probe."""
    if device.type != "cuda" or not torch.version.cuda:
        return None
    if device not in _kernels:
        try:
            kernel = Kernel(device)
            raw = (torch.arange(4 * 40960, device=device) * 151 % 256).to(torch.uint8)
            probe = [(raw.view(dtype), first) for dtype, first in (
                (torch.uint8, 0), (torch.int16, 3), (torch.float32, (1 << 32) - 7),
                (torch.float64, 5))] + [(raw[:0], 0), (raw[:1], 9), (raw[3:90000], 2),
                                        (raw[2:70000].view(torch.int16), 1),
                                        (raw[16:70008].view(torch.float32), 6)]
            expected = [plain(t, first) for t, first in probe]
            if not torch.equal(kernel.sums(probe), torch.stack(expected)):
                raise RuntimeError("the sums of the probe are others")
            _kernels[device] = kernel
        except Exception:       # noqa: B902 slower without it, and the same sums
            _kernels[device] = None
    return _kernels[device]
