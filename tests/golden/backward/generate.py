# SPDX-License-Identifier: Apache-2.0
"""Prints vectors.txt: gradients that PyTorch makes on a CPU (README.md). No test runs it."""
import struct

import torch

torch.set_num_threads(1)


def numbers(tensor):
    """The elements, each as the f32 number that it is, in eight hexadecimal digits."""
    return "".join(struct.pack(">f", x).hex() for x in tensor.detach().flatten().float().tolist())


def line(kind, words, tensors):
    print(kind, words, *(f"{name}={numbers(tensor)}" for name, tensor in tensors.items()))


def whole(count, step, seed, most):
    """Multiples of `step`, at most `most` of them: products and their sums are exact in f32."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-most, most + 1, (count,), generator=generator) * step


def llama(hidden, w, rstd):
    """transformers' LlamaRMSNorm.forward behind its rsqrt."""
    return w * (hidden * rstd).to(w.dtype)


def olmo2(hidden, w, rstd):
    """transformers' Olmo2RMSNorm.forward behind its rsqrt."""
    return (w * (hidden * rstd)).to(w.dtype)


def norm(name, forward, dtype, seed):
    x = whole(24, 0.125, seed, 16).to(dtype).requires_grad_()
    w = (whole(24, 0.25, seed + 1, 6) + 0.125).to(dtype).requires_grad_()
    dy = whole(24, 0.25, seed + 2, 8).to(dtype)
    hidden = x.to(torch.float32)
    variance = hidden.pow(2).mean(-1, keepdim=True)
    rstd = torch.rsqrt(variance + 1e-6)
    forward(hidden, w, rstd).backward(dy)
    line("norm", f"{name} {str(dtype)[6:]}",
         {"x": x, "w": w, "dy": dy, "rstd": rstd, "dx": x.grad, "dw": w.grad})


def cross_entropy(seed):
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(48, generator=generator) * 25
    z[0] = z.max() - 0.25  # the log of the sum is not 0
    z.requires_grad_()
    coefficient = torch.rand(1, generator=generator)
    target = torch.tensor([5])
    logp = torch.log_softmax(z.view(1, -1), -1)
    (torch.nn.functional.nll_loss(logp, target, reduction="sum") * coefficient).sum().backward()
    line("cross-entropy", "two-step f32", {"z": z, "coefficient": coefficient, "dz": z.grad})


def flash(seed):
    generator = torch.Generator().manual_seed(seed)
    q, k, v, dout = (torch.randn(1, 1, 12, 16, generator=generator).bfloat16() for _ in range(4))
    aten = torch.ops.aten
    out, lse = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, True)
    dq, dk, dv = aten._scaled_dot_product_flash_attention_for_cpu_backward(
        dout, q, k, v, out, lse, 0.0, True)
    line("attention", "flash bfloat16", {"q": q, "k": k, "v": v, "out": out, "dout": dout,
                                         "dq": dq, "dk": dk, "dv": dv})


print("# kind, whose, dtype, tensors (README.md)")
print("# torch", torch.__version__.split("+")[0])
for seed in (100, 200, 300):
    for dtype in (torch.float32, torch.bfloat16):
        norm("before-weight", llama, dtype, seed)
        norm("after-weight", olmo2, dtype, seed + 10)
    cross_entropy(seed)
    flash(seed)
