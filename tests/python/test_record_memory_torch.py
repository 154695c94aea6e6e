# SPDX-License-Identifier: Apache-2.0
"""labels: torch

The recorder beside tensors whose elements are not where an address says: wrappers of other tensors,
memory that was freed, views with a sign, copies. Their digests are those of plain tensors with the
same elements, or are left out with one warning; no training ends because of them."""
import collections
import os
import pathlib
import subprocess
import tempfile
import types
import unittest
import unittest.mock
import warnings
import weakref

import h5py
import torch
from torch.utils._python_dispatch import return_and_correct_aliasing
from torch.utils._pytree import tree_map

import twinstep
from twinstep.record import keyed_cuda, keyed_torch
from twinstep.record.tensors import home, squares, state_lists


class Wrapper(torch.Tensor):
    """A tensor that keeps its elements in another one, as quantized weights do."""
    lacks = ()          # names of ops that it does not have

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, inner.stride(),
                                                   dtype=inner.dtype, device=inner.device)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, op, types, args=(), kwargs=None):
        if op.name() in cls.lacks:
            raise NotImplementedError(op.name())
        inner = tree_map(lambda v: v.inner if isinstance(v, Wrapper) else v, (args, kwargs or {}))
        made = tree_map(lambda v: cls(v) if isinstance(v, torch.Tensor) else v,
                        op(*inner[0], **inner[1]))
        return return_and_correct_aliasing(op, args, kwargs or {}, made)


class Quantized(Wrapper):
    """One without the view as words."""
    lacks = ("aten::view.dtype",)


class Waiting(Wrapper):
    """One whose operations give plain tensors, as AsyncCollectiveTensor."""

    @classmethod
    def __torch_dispatch__(cls, op, types, args=(), kwargs=None):
        inner = tree_map(lambda v: v.inner if isinstance(v, Wrapper) else v, (args, kwargs or {}))
        return op(*inner[0], **inner[1])


def freed(*shape):
    """A view of memory that was given back, which begins behind the memory's first byte."""
    whole = torch.ones(4096)
    t = whole[8:8 + torch.Size(shape).numel()].view(shape)
    whole.untyped_storage().resize_(0)
    return t


class Model(torch.nn.Module):
    def __init__(self, frozen):
        super().__init__()
        torch.manual_seed(2)
        self.layer = torch.nn.Linear(8, 1)
        self.base = torch.nn.Parameter(frozen, requires_grad=False)

    def forward(self, x):
        return self.layer(x)


class Memory(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def numbers(self, *tensors):
        return [None if n is None else int(n) % 2**64 for n in home(keyed_torch.keyed_sums(tensors))]

    def test_verify_wrappers_have_the_sums_of_their_elements_or_none(self):
        torch.manual_seed(1)
        for inner in (torch.randn(40, 3), torch.randn(5, 7).t(), torch.randn(9).bfloat16(),
                      torch.arange(6)):
            plain, wrapped, waited, lacking = self.numbers(inner, Wrapper(inner), Waiting(inner),
                                                           Quantized(inner))
            self.assertIsNotNone(plain)
            self.assertEqual((wrapped, waited, lacking), (plain, plain, None))
        self.assertRaisesRegex(ValueError, "Quantized: its elements cannot be read",
                               keyed_torch.keyed_sum, Quantized(inner))

    def test_verify_freed_memory_is_not_read(self):
        self.assertEqual(self.numbers(freed(8, 8), freed(2), torch.ones(3, device="meta")),
                         [None] * 3)
        self.assertIsNone(squares([torch.ones(3), freed(2)]))
        short = torch.ones(64)
        short.untyped_storage().resize_(128)
        self.assertEqual(self.numbers(short), [None])
        self.assertEqual(self.numbers(freed(2)[:0]), self.numbers(torch.ones(0)))

    def train(self, name, frozen, free_at=None):
        """The weights after six updates, the warnings, and the file."""
        model, path = Model(frozen), self.folder / name
        optimizer = torch.optim.AdamW(model.layer.parameters(), lr=1e-2)
        kept = torch.ones(8) * 3
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            recorder = twinstep.Recorder(model, optimizer, path=str(path), every=1, quiet=True)
            with recorder:
                for k in range(6):
                    model(torch.ones(2, 8)).sum().backward()
                    optimizer.step()
                    if free_at is not None and k >= free_at:
                        optimizer.state[model.layer.weight]["more"] = freed(8)
                    elif free_at is not None:
                        optimizer.state[model.layer.weight]["more"] = kept
                    optimizer.zero_grad()
                    recorder.update()
        return model.layer.weight.detach(), [str(w.message) for w in said], path

    def test_verify_a_training_with_such_weights_goes_on(self):
        expected, said, path = self.train("plain.h5", torch.full((64, 64), 0.5))
        self.assertEqual(said, [])
        with h5py.File(path) as f:
            frozen = [line for line in f["runs/main"].attrs["configuration"].splitlines()
                      if line.startswith("frozen: ")]
        for frozen_weight in (Wrapper(torch.full((64, 64), 0.5)), Quantized(torch.ones(64, 64)),
                              freed(8, 8)):
            is_read = type(frozen_weight) is Wrapper
            kind = f"{type(frozen_weight).__name__}.h5"
            with self.subTest(kind):
                weight, said, path = self.train(kind, frozen_weight)
                self.assertTrue(torch.equal(weight, expected))
                with h5py.File(path) as f:
                    lines = f["runs/main"].attrs["configuration"].splitlines()
                    self.assertEqual(f["runs/main/steps/step"].shape, (6,))
                self.assertEqual(set(frozen) <= set(lines), is_read)
                self.assertEqual("not_recorded: base (cannot be read)" in lines, not is_read)
                self.assertEqual(len(said), 0 if is_read else 1, said)
                if not is_read:
                    self.assertIn("base: without memory of its own", said[0])

    def test_verify_a_digest_of_some_is_none_of_all(self):
        """The optimizer's memory is freed behind the fourth step. What an update leaves is read at its
        end, so the fourth row is the first without a digest of the whole."""
        _, said, path = self.train("state.h5", torch.ones(3), free_at=3)
        with h5py.File(path) as f:
            steps = f["runs/main/steps"]
            whole = steps["digest_state"][()].any(axis=1).tolist()
            each = steps["tensors/digest_parameter"][()].any(axis=2)
        self.assertEqual(whole, [True] * 3 + [False] * 3)
        self.assertTrue(each.all())
        self.assertEqual(len(said), 1, said)
        self.assertIn("layer.weight/more: without memory", said[0])

    def test_verify_a_recording_that_lacks_a_weight_is_not_called_equal(self):
        """Two trainings that differ in a weight that cannot be read: one warning each, and certify
        does not compare them; of a wrapper that can be read it sees the difference."""
        for kind, status, count in ((Quantized, 3, 1), (Wrapper, 1, 0)):
            paths = [str(self.folder / f"{kind.__name__}{value}.h5") for value in (1, 2)]
            for value, path in enumerate(paths, 1):
                model = Model(kind(torch.full((4, 4), float(value))))
                model.base.requires_grad_(True)
                optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
                with warnings.catch_warnings(record=True) as said:
                    warnings.simplefilter("always")
                    with twinstep.Recorder(model, optimizer, path=path, every=1, quiet=True) as recorder:
                        for _ in range(3):
                            optimizer.zero_grad()
                            model(torch.ones(2, 8)).sum().backward()
                            model.base.grad = kind(torch.ones(4, 4))
                            optimizer.step()
                            recorder.update()
                self.assertEqual([str(w.message).split(": without")[0] for w in said],
                                 ["twinstep: base"] * count)
            done = subprocess.run([os.environ["TWINSTEP_PROGRAM"], "certify", *paths], check=False,
                                  capture_output=True)
            self.assertEqual(done.returncode, status, done.stdout)

    def test_verify_signs_of_views(self):
        z = torch.complex(torch.randn(33), torch.randn(33)).conj()
        for view in (z.imag, torch._neg_view(torch.randn(33)), torch._neg_view(torch.randn(4, 3).t())):
            self.assertTrue(view.is_neg())
            same = view.resolve_neg().clone()
            self.assertEqual(self.numbers(view), self.numbers(same))
            self.assertEqual(int(keyed_torch.device_sum(view)) % 2**64, self.numbers(same)[0])

    def test_verify_few_copies_are_held(self):
        """The bytes of copies that are alive when sums are taken, and the sums with all held."""
        some = [t for _ in range(6) for t in (torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
                                              torch.randn(50))]
        expected, sizes, size = self.numbers(*some), [], 4 * some[0].numel()
        real = keyed_torch._sums_there

        def _counted(device, items):
            own = {t.data_ptr() for t in some}
            sizes.append(sum(t.numel() * t.element_size() for t, _ in items
                             if t.data_ptr() not in own))
            return real(device, items)

        for bound, held in ((2 * size, [2 * size] * 3), (2 * size + 1, [2 * size] * 3),
                            (1, [size] * 6), (1 << 20, [6 * size])):
            sizes.clear()
            with unittest.mock.patch.object(keyed_torch, "COPIES", bound), \
                    unittest.mock.patch.object(keyed_torch, "_sums_there", _counted):
                self.assertEqual(self.numbers(*some), expected)
            self.assertEqual(sizes, held)
        self.assertLessEqual(keyed_torch.COPIES, 64 << 20)

    def test_verify_copies_die_before_the_next_are_made(self):
        some = [torch.randn(20, 30).t() for _ in range(9)]
        real, made, most = keyed_torch._run_of, [], []

        def _copied(t):
            alive = sum(ref() is not None for ref in made)
            copy = real(t)
            made.append(weakref.ref(copy))
            most.append(alive + 1)
            return copy

        with unittest.mock.patch.object(keyed_torch, "COPIES", 3 * 4 * some[0].numel()), \
                unittest.mock.patch.object(keyed_torch, "_run_of", _copied):
            self.numbers(*some)
        self.assertEqual(most, [1, 2, 3] * 3)

    def test_verify_a_look_at_tensors_sees_each_change(self):
        """Of the address, the class, the dtype, the shape, the strides, the sign and the memory, in
        a tensor of Parameters, of which torch is asked all at once, and without that."""
        def changed(change):
            some = [torch.nn.Parameter(torch.arange(12.).reshape(3, 4)) for _ in range(3)]
            looks = keyed_torch.Looks()
            first, old = looks.now(some), some[1].data
            for _ in range(3):
                self.assertIs(looks.now(some), first)
            change(some[1])
            second = looks.now(some)
            for _ in range(2):
                self.assertIs(looks.now(some), second)
            return second is not first and second != first and (second, old)

        def free(p):
            p.untyped_storage().resize_(0)

        def jagged(p):      # has no strides, and the guard would end the process
            made = torch.nn.Parameter(torch.nested.nested_tensor([torch.ones(3, 4)]))
            torch.utils.swap_tensors(p, made)
        changes = {
            "moved": lambda p: setattr(p, "data", p.data.clone()),
            "shape": lambda p: setattr(p, "data", p.data.view(4, 3)),
            "strides": lambda p: setattr(p, "data", p.data.as_strided((3, 4), (1, 3))),
            "dtype": lambda p: (p.requires_grad_(False),
                                setattr(p, "data", p.data.view(torch.int32))),
            "sign": lambda p: setattr(p, "data", torch._neg_view(p.data)),
            "class": lambda p: setattr(p, "__class__", type("Own", (torch.nn.Parameter,), {})),
            "memory": free}
        for guarded in (True, False):
            with unittest.mock.patch.object(keyed_torch, "_has_guards", lambda: guarded):
                for name, change in changes.items():
                    with self.subTest(name, guarded=guarded):
                        found = changed(change)
                        self.assertTrue(found)
                        self.assertEqual(found[0].are_whole, name not in ("class", "memory"))
                with warnings.catch_warnings(), self.assertRaises(RuntimeError):
                    warnings.simplefilter("ignore")
                    changed(jagged)
                # What is no change: gradients are switched off, or no graph is to be made at all.
                some = [torch.nn.Parameter(torch.ones(3)), torch.ones(2)]
                looks = keyed_torch.Looks()
                first = looks.now(some)
                some[0].requires_grad_(False)
                self.assertIs(looks.now(some), first)
                with torch.inference_mode():
                    self.assertIs(looks.now(some), first)
                self.assertIs(looks.now(some), first)
        self.assertTrue(keyed_torch._has_guards())      # else recording costs more, and no test says

    def test_verify_each_tensor_of_an_optimizer_is_found(self):
        """Tensors of the state as it is now, where a tensor, a key, a dict or the state has become
        another one, too."""
        weights = [torch.nn.Parameter(torch.ones(2)) for _ in range(3)]
        named = [(f"w{i}", p) for i, p in enumerate(weights)]
        optimizer = torch.optim.AdamW(weights, lr=0.1)
        state = optimizer.state

        def step(some):
            for p in some:
                p.grad = torch.ones(2)
            optimizer.step()
            optimizer.zero_grad()

        class Odd(dict):
            """What a library can keep its state in."""
        for change in (
                lambda: None, lambda: step(weights[:2]), lambda: step(weights),
                lambda: state[weights[1]].update(exp_avg=torch.zeros(2)),
                lambda: state[weights[1]].update(more=torch.zeros(2)),
                lambda: state[weights[1]].update(more=3), lambda: state[weights[1]].pop("more"),
                lambda: state.update({weights[0]: state.pop(weights[0])}),
                lambda: state[weights[2]].update(last=state[weights[2]].pop("exp_avg_sq")),
                lambda: state[weights[2]].update(there=torch.zeros(2, device="meta")),
                lambda: state[weights[2]].clear(), lambda: state.pop(weights[2]),
                lambda: state.update({torch.ones(1): {"of": torch.ones(1)}}),
                lambda: state.update({weights[0]: Odd(state[weights[0]])}), state.clear):
            change()
            self.look_at_state(named, state)
        step(weights)
        self.look_at_state(named, state)
        held = weakref.ref(state[weights[0]]["exp_avg"])
        state.clear()
        self.assertIsNone(held())
        self.look_at_state(named, collections.ChainMap({weights[0]: {"a": torch.ones(1)}}))

    def look_at_state(self, named, state):
        before = set(state)
        lists = list(state_lists(named, state))
        self.assertEqual(set(state), before)    # asking makes no new dicts
        self.assertEqual(
            {at: id(t) for places, tensors in lists for at, t in zip(places, tensors, strict=True)},
            {(i, key): id(t) for i, (_, p) in enumerate(named)
             for key, t in state.get(p, {}).items() if isinstance(t, torch.Tensor)})
        for _, tensors in lists:
            self.assertEqual(len({t.device for t in tensors}), 1)

    def test_verify_devices_without_addresses_are_not_asked_for_them(self):
        """Tensors of XLA, say, have no storage that can be read, and torch's operations do."""
        of_xla = types.SimpleNamespace(device=torch.device("xla"), layout=torch.strided,
                                       numel=lambda: 5)
        self.assertTrue(keyed_torch.is_there(of_xla))

    def test_verify_the_table_is_in_memory_of_the_host(self):
        with torch.device("meta"):
            table, blocks = keyed_cuda.table_of([(1, 2, 3, 4), (5, 6, keyed_cuda.SPAN + 1, 2)],
                                                is_pinned=torch.cuda.is_available())
        self.assertEqual((table.device.type, table.tolist(), blocks), (
            "cpu", [[1, 2, 3, 4, 0], [5, 6, keyed_cuda.SPAN + 1, 2, 1]], 3))
        self.assertEqual(table.is_pinned(), torch.cuda.is_available())


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    unittest.main()
