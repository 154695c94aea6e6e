# SPDX-License-Identifier: Apache-2.0
"""Records two small trainings: one clips the gradients of all its weights, the other those of its
first layer alone. They have equal gradients in update 1, whose norm torch adds up in the one, and
the recorder, by f64, in the other.

    TWINSTEP_TORCH_VENV/bin/python tests/bench/record_clip.py FOLDER

makes clip_whole.h5 and clip_part.h5, which tests/golden/record has with gzip -9n."""
import sys

import torch

import twinstep


def train(path, part):
    """Four updates."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    with twinstep.Recorder(model, optimizer, path=path, quiet=True) as recorder:
        for _ in range(4):
            x = torch.randn(4, 8)
            (model(x) - x.sum(1, keepdim=True)).square().mean().backward()
            torch.nn.utils.clip_grad_norm_((model[0] if part else model).parameters(), 0.1)
            optimizer.step()
            optimizer.zero_grad()
            recorder.update()


def main():
    """Both of them."""
    torch.set_num_threads(1)
    for name, part in (("whole", False), ("part", True)):
        train(f"{sys.argv[1]}/clip_{name}.h5", part)


if __name__ == "__main__":
    main()
