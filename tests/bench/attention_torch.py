# SPDX-License-Identifier: Apache-2.0
"""Times PyTorch's scaled_dot_product_attention on the shapes of attention.cu, causal, bf16: with
its flash backend and with cuDNN's; forward, backward, and backward with deterministic algorithms.
Median of 11, CUDA events; TFLOP/s as attention.cu counts them. Its heads are not grouped."""
import statistics

import torch
import torch.nn.functional as functional
from torch.nn.attention import SDPBackend, sdpa_kernel

SHAPES = ((8, 12, 512, 64), (8, 12, 1024, 64), (8, 12, 2048, 64), (8, 12, 1024, 128),
          (4, 32, 1024, 128))


def median(run):
    times = []
    for turn in range(13):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        stop.record()
        stop.synchronize()
        if turn >= 2:
            times.append(start.elapsed_time(stop))
    return statistics.median(times)


def measure(name, backend, sizes):
    batch, heads, length, width = sizes
    q, k, v = (torch.randn(batch, heads, length, width, device="cuda", dtype=torch.bfloat16,
                           requires_grad=True) for _ in range(3))
    slope = torch.randn_like(q)
    work = 2e-9 * length * length * width * batch * heads
    with sdpa_kernel(backend):
        forward = median(lambda: functional.scaled_dot_product_attention(q, k, v, is_causal=True))
        out = functional.scaled_dot_product_attention(q, k, v, is_causal=True)

        def back():
            torch.autograd.grad(out, (q, k, v), slope, retain_graph=True)

        free = median(back)
        torch.use_deterministic_algorithms(True, warn_only=True)
        fixed = median(back)
        torch.use_deterministic_algorithms(False)
    print(f"{name}, B {batch}, H {heads}, T {length}, D {width}: forward {forward:.3f} ms, "
          f"{work / forward:.0f} TFLOP/s; backward {free:.3f} ms, {2.5 * work / free:.0f}; "
          f"deterministic {fixed:.3f} ms, {2.5 * work / fixed:.0f}", flush=True)


def main():
    print("torch", torch.__version__, torch.cuda.get_device_name())
    for sizes in SHAPES:
        measure("flash", SDPBackend.FLASH_ATTENTION, sizes)
        measure("cudnn", SDPBackend.CUDNN_ATTENTION, sizes)


if __name__ == "__main__":
    main()
