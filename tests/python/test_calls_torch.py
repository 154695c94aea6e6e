# SPDX-License-Identifier: Apache-2.0
"""labels: torch

twinstep.ablate on real steps of torch, against shares that torch computes; the example of the page
and what stands under it; tensors of every dtype, read back by the safetensors package."""
import contextlib
import io
import pathlib
import re
import tempfile
import unittest

import safetensors.torch
import torch

import twinstep
from twinstep import _safetensors


def train(lr=1e-2, beta=0.9, order=False, dtype=torch.float32):
    """Three steps of AdamW on a layer, from the same seed; returns the layer."""
    torch.manual_seed(5)
    layer = torch.nn.Linear(6, 4).to(dtype)
    data = torch.randn(3, 8, 6, dtype=torch.float32).to(dtype)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=lr, betas=(beta, 0.999))
    for i in (2, 1, 0) if order else (0, 1, 2):
        optimizer.zero_grad()
        layer(data[i]).square().mean().backward()
        optimizer.step()
    return layer


def end(**how):
    return torch.cat([tensor.detach().double().reshape(-1) for tensor in train(**how).state_dict().values()])


class Trained(unittest.TestCase):
    def test_shares_equal_those_of_torch(self):
        got = twinstep.ablate(train, {"lr": (1e-2, 2e-2), "order": (False, True), "beta": (0.9, 0.8)})
        start, both = end(), end(lr=2e-2, order=True, beta=0.8)
        way = both - start
        size = way.norm().item()
        self.assertAlmostEqual(got.distance, size, delta=1e-12 * size)

        def value(**how):
            return torch.dot(end(**how) - start, way).item() / size ** 2

        levels = {"lr": 2e-2, "order": True, "beta": 0.8}
        for factor in got.factors:
            others = [name for name in levels if name != factor.name]
            share = 0.0
            for subset, weight in (((), 1 / 3), ((others[0],), 1 / 6), ((others[1],), 1 / 6),
                                   (tuple(others), 1 / 3)):
                low = {name: levels[name] for name in subset}
                share += weight * (value(**low, **{factor.name: levels[factor.name]}) - value(**low))
            self.assertAlmostEqual(factor.share.value, share, delta=1e-10, msg=factor.name)

    def test_the_page_s_example_prints_what_stands_there(self):
        page = (pathlib.Path(__file__).resolve().parents[2] / "docs/ABLATE.md").read_text()
        section = page[page.index("## In one process, from Python"):]
        code, told = re.search(r"```python\n(.*?)```.*?```\n(.*?)\.\.\.\n```", section, re.S).groups()
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(code, "docs/ABLATE.md", "exec"), {})
        self.assertEqual(said.getvalue()[:len(told)], told)
        self.assertIn("repeats in other processes", told)

    def test_bf16_weights_and_a_factor_that_does_nothing(self):
        got = twinstep.ablate(lambda lr, name: train(lr), {"name": ("a", "b"), "lr": (1e-2, 3e-2)})
        self.assertEqual({f.name: f.inert for f in got.factors}, {"lr": False, "name": True})
        half = twinstep.ablate(lambda lr: train(lr, dtype=torch.bfloat16), {"lr": (1e-2, 3e-2)})
        self.assertEqual(half.word, "cause")


class Safetensors(unittest.TestCase):
    def test_every_dtype_is_what_the_safetensors_package_reads(self):
        tensors = {str(dtype): torch.arange(-3, 3).reshape(2, 3).to(dtype) for dtype in (
            torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
            torch.int16, torch.int8, torch.uint8, torch.bool)}
        tensors |= {"turned": torch.arange(6.0).reshape(2, 3).T, "one": torch.tensor(2.5),
                    "none": torch.zeros(0, 3), "grad": torch.ones(2, requires_grad=True)}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "x.safetensors")
            _safetensors.save(tensors, path)
            read = safetensors.torch.load_file(path)
        self.assertEqual(set(read), set(tensors))
        for name, tensor in tensors.items():
            self.assertEqual(read[name].dtype, tensor.dtype)
            self.assertTrue(torch.equal(read[name], tensor.detach()), name)
        with self.assertRaises(TypeError):
            _safetensors.save({"s": torch.eye(2).to_sparse()}, pathlib.Path(folder, "y"))


if __name__ == "__main__":
    unittest.main()
