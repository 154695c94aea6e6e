# SPDX-License-Identifier: Apache-2.0
"""labels: torch

The recorder in real loops: not one bit of a training changes, the order of its calls is the one that
was written down by hand, and the traps of other libraries' loops do not mislead it."""
import contextlib
import copy
import ctypes
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest
import unittest.mock
import warnings

import h5py
import numpy as np
import torch

import twinstep
from twinstep.record.readback import Reader

sys.path.insert(0, str(pathlib.Path(__file__).parent))
PROGRAM = os.environ["TWINSTEP_PROGRAM"]
KINDS = {"single": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}


def parts(seed=3, **options):
    """A model with dropout, AdamW and a schedule that falls at every update."""
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.1),
                                torch.nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1, **options)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: 1 - k / 20)
    return model, optimizer, schedule


def norm_of(model):
    """The norm of all gradients, by f64 and no function of ours."""
    return sum(float(p.grad.double().square().sum()) for p in model.parameters() if p.grad is not None) ** 0.5


def loss_of(call):
    x = torch.randn(8, 8)
    return (call(x) - x.sum(1, keepdim=True)).square().mean()


def state(model, optimizer):
    """All that a training leaves behind."""
    left = [p.detach() for p in model.parameters()] + [torch.get_rng_state()]
    for s in optimizer.state.values():
        left += [s[k] for k in sorted(s)]
    return left


def read(path, *names):
    with h5py.File(path) as f:
        steps = f["runs/main/steps"]
        found = [steps[n][()].tolist() for n in names]
    return found if len(found) > 1 else found[0]


def order(path, update=0):
    """The phases of an update in the order in which they came."""
    phases, places = read(path, "phases/phase", "phases/place")
    seen = sorted((p, n.decode()) for p, n in zip(places[update], phases) if p >= 0)
    return " ".join(n for _, n in seen)


class NarrowStates(unittest.TestCase):
    """AdamW by hand, in f32, whose moments are kept in fewer digits than it computes with: rounded
    before the step, as eager loops do, or behind it, as one kernel does."""

    @staticmethod
    def update(p, optimizer, moments, kept, late, k):
        (lr, decay), g = (optimizer.param_groups[0][n] for n in ("lr", "weight_decay")), p.grad.float()
        m, v = (x.to(kept).float() for x in moments)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        if not late:
            m, v = m.to(kept).float(), v.to(kept).float()
        step = (m / (1 - 0.9 ** k)) / ((v / (1 - 0.999 ** k)).sqrt() + 1e-8)
        with torch.no_grad():
            p.copy_(p.float() * (1 - lr * decay) - lr * step)
        optimizer.state[p] = {"step": torch.tensor(float(k)), "exp_avg": m.to(kept),
                              "exp_avg_sq": v.to(kept)}
        return m, v

    def hold(self, weights, kept, decay, late):
        torch.manual_seed(7)
        p = torch.nn.Parameter((torch.randn(4000) * 0.05).to(weights))
        optimizer = torch.optim.AdamW([p], lr=1e-3, weight_decay=decay)
        moments, reader, read = (torch.zeros(4000), torch.zeros(4000)), Reader(), 0
        for k in range(1, 4):
            p.grad = (torch.randn(4000) * 1e-2).to(weights)
            reader.keep(optimizer)
            moments = self.update(p, optimizer, moments, kept, late, k)
            found = reader.read(optimizer)
            for name, truth in (("lr", 1e-3), ("wd", decay)):
                if (f"{name}_readback", 0) in found:
                    value, error = (float(found[f"{name}_readback{e}", 0]) for e in ("", "_error"))
                    self.assertLessEqual(abs(value - truth), error, (weights, kept, late, name))
                    read += 1
        return read

    def test_verify_bounds(self):
        for weights in (torch.float32, torch.bfloat16):
            for kept in (torch.float32, torch.bfloat16, torch.float16):
                for decay in (0.0, 0.1):
                    for late in (False, True):
                        told = 0 if kept == torch.float16 else 3 if decay == 0 else 6
                        self.assertEqual(self.hold(weights, kept, decay, late), told)


class Loops(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "a.h5")

    def program(self, *words):
        return subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False)

    def plain(self, path, compiled="", **options):
        model, optimizer, schedule = parts(**options)
        call = torch.compile(model, backend=compiled) if compiled else model
        recorder = path and twinstep.Recorder(call, optimizer, schedule, path=path, every=2,
                                              readback=3, quiet=True).start()
        losses = []
        for _ in range(8):
            for _ in range(2):
                loss = loss_of(call) / 2
                loss.backward()
                losses.append(loss.detach())
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            if recorder:
                recorder.update()
        if recorder:
            recorder.close()
        return state(model, optimizer) + losses

    def test_validate_neutral(self):
        inductor = shutil.which(os.environ.get("CXX", "c++").split()[0]) is not None
        for compiled in ("", "aot_eager", *(("inductor",) if inductor else ())):
            for name, options in KINDS.items() if compiled != "inductor" else [("fused", KINDS["fused"])]:
                path = os.path.join(self.folder.name, f"{name}{compiled}.h5")
                bare, held = self.plain(None, compiled, **options), \
                    self.plain(path, compiled, **options)
                self.assertTrue(all(map(torch.equal, bare, held)), (name, compiled))
                self.assertEqual(self.program("import", "--check", path).returncode, 0)
                self.assertEqual(len(read(path, "step")), 8)

    def test_verify_plain_row(self):
        self.plain(self.path)
        self.assertEqual(order(self.path), "forward backward clip optimize schedule zero")
        rates, back, error, norm, clip, taken = read(
            self.path, "lr_applied", "lr_readback", "lr_readback_error", "grad_norm", "clip_coef",
            "grad_norm_taken")
        for k in range(8):
            self.assertEqual(rates[k][0], 1e-2 * (1 - k / 20))
        for k in (0, 3, 6):
            self.assertLessEqual(abs(back[k][0] - rates[k][0]), error[k][0])
        for k in (0, 2, 4, 6):
            self.assertAlmostEqual(norm[k] * clip[k], taken[k], delta=1e-5)

    def test_verify_schedule_before_the_step(self):
        model, optimizer, schedule = parts()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")     # torch says itself that this order is wrong
            with twinstep.Recorder(model, optimizer, schedule, path=self.path, quiet=True) as r:
                for _ in range(3):
                    loss_of(model).backward()
                    schedule.step()
                    optimizer.step()
                    optimizer.zero_grad()
                    r.update()
        self.assertEqual(order(self.path), "forward backward schedule optimize zero")
        self.assertEqual(read(self.path, "lr_applied")[0], [1e-2 * 0.95])

    def scaled(self, path, fused):
        model, optimizer, schedule = parts(**({"fused": True} if fused else {}))
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        recorder = path and twinstep.Recorder(model, optimizer, schedule, path=path, every=1,
                                              quiet=True).start()
        truth = []
        for k in range(6):
            loss = loss_of(model)
            scaler.scale(loss).backward()
            truth.append(torch.stack([p.grad.norm() for p in model.parameters()]).norm() /
                         scaler.get_scale())
            if k == 3:
                next(model.parameters()).grad[0, 0] = float("inf")
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            if recorder:
                recorder.update()
        if recorder:
            recorder.close()
        return state(model, optimizer), truth

    def test_verify_skipped_steps_of_a_scaler(self):
        for fused in (False, True):
            path = os.path.join(self.folder.name, f"{fused}.h5")
            (bare, _), (held, truth) = self.scaled(None, fused), self.scaled(path, fused)
            self.assertTrue(all(map(torch.equal, bare, held)))
            skipped, norm, scale = read(path, "skipped", "grad_norm", "loss_scale")
            self.assertEqual(skipped, [0, 0, 0, 1, 0, 0], fused)
            for k in (0, 1, 2, 4, 5):
                self.assertAlmostEqual(norm[k], float(truth[k]), delta=1e-4 * float(truth[k]))
            self.assertEqual(scale[0], 1024.0)

    def test_verify_clip_after_the_step(self):
        model, optimizer, _ = parts()
        with twinstep.Recorder(model, optimizer, path=self.path, every=1, quiet=True) as r:
            loss_of(model).backward()
            optimizer.step()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
            r.update()
        self.assertEqual(order(self.path), "forward backward optimize clip")
        self.assertGreater(read(self.path, "grad_norm_taken")[0], 1e-2)

    def test_verify_hooks_change_no_argument(self):
        model, optimizer, _ = parts()
        with twinstep.Recorder(model, optimizer, path=self.path, quiet=True) as r:
            def closure():
                optimizer.zero_grad()
                loss = loss_of(model)
                loss.backward()
                return loss
            self.assertIsInstance(optimizer.step(closure), torch.Tensor)
            r.update()
        self.assertEqual(order(self.path), "zero forward backward optimize")

    def test_verify_a_model_in_eval_mode_is_told_of(self):
        """Training goes on in eval mode behind an evaluation: told once, with the update. One that is
        evaluated with gradients on, or without, and trained in training mode is not."""
        for mode, update in (("stays", 4), ("back", None), ("no_grad", None)):
            model, optimizer, _ = parts()
            path = os.path.join(self.folder.name, f"{mode}.h5")
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                with twinstep.Recorder(model, optimizer, path=path, quiet=True) as recorder:
                    for k in range(6):
                        loss_of(model).backward()
                        optimizer.step()
                        optimizer.zero_grad()
                        recorder.update()
                        if k == 2:
                            model.eval()
                            with torch.set_grad_enabled(mode == "back"):
                                loss_of(model)
                            model.train(mode != "stays")
            said = [str(w.message) for w in seen if "eval mode" in str(w.message)]
            self.assertEqual(len(said), update is not None, mode)
            if update is not None:
                self.assertIn(f"update {update}: the model is in eval mode", said[0])
            batches = [any(row) for row in read(path, "digest_batch")]
            self.assertEqual(batches, [True] * 3 + [update is None] * 3)

    def test_verify_a_closure_that_is_called_again_is_no_second_micro_batch(self):
        """LBFGS calls its closure several times a step: batch, loss, norm and gradient are those of the
        first call, in which micro-batches add up. Two trainings of which one calls it once differ in
        the step alone, also where the forward pass comes before zero_grad."""
        for forward_first in (False, True):
            with self.subTest(forward_first=forward_first):
                self.call_closures_again(forward_first)

    def call_closures_again(self, forward_first):
        first = {}
        for history in (2, 10):
            torch.manual_seed(4)
            model = torch.nn.Linear(8, 1)
            optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=5 if history == 2 else 1,
                                          history_size=history)
            seen = []
            path = os.path.join(self.folder.name, f"{history}-{forward_first}.h5")
            with twinstep.Recorder(model, optimizer, path=path, quiet=True) as r:
                for k in range(3):
                    draw = torch.Generator().manual_seed(k)
                    rows = torch.randn(2, 4, 8, generator=draw)
                    calls = []

                    def closure():
                        if not forward_first:
                            optimizer.zero_grad()
                        total = 0.0
                        for i, x in enumerate(rows):
                            loss = (model(x) - x.sum(1, keepdim=True)).square().mean() / 2
                            if forward_first and i == 0:
                                optimizer.zero_grad()
                            loss.backward()
                            total += loss.item()
                        norm = sum(p.grad.double().square().sum().item() for p in model.parameters())
                        calls.append((total, norm ** 0.5))
                        return total
                    optimizer.step(closure)
                    self.assertEqual(len(calls) > 1, history == 2)
                    seen.append(calls[0])
                    r.update()
            losses, norms = read(path, "loss", "grad_norm")
            np.testing.assert_allclose(losses, [loss for loss, _ in seen], rtol=1e-12)
            np.testing.assert_allclose(norms, [norm for _, norm in seen], rtol=1e-6)    # norms of f32
            self.assertEqual(order(path), "forward zero backward optimize" if forward_first
                             else "zero forward backward optimize")
            first[history] = path
        said = self.program("compare", *first.values()).stdout
        self.assertIn("Roots differ from update 1 on: phase optimize, weight", said)
        self.assertNotIn("Points to: dtype", said)

    def test_verify_a_closure_adds_to_gradients_that_are_there(self):
        """As Lightning accumulates: the last micro-batch of an update runs inside of the step. A
        closure without a backward pass leaves the gradient that was there."""
        for inside in (True, False):
            model = torch.nn.Linear(8, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
            path = os.path.join(self.folder.name, f"inside-{inside}.h5")
            norms = []
            with twinstep.Recorder(model, optimizer, path=path, every=1, quiet=True) as r:
                for k in range(3):
                    rows = torch.randn(2, 4, 8, generator=torch.Generator().manual_seed(k))

                    def backward(x):
                        loss = (model(x) - x.sum(1, keepdim=True)).square().mean() / 2
                        loss.backward()
                        return loss

                    def closure():
                        loss = backward(rows[1]) if inside else torch.zeros(())
                        norms.append(sum(p.grad.double().square().sum().item()
                                         for p in model.parameters()) ** 0.5)
                        return loss
                    backward(rows[0])
                    optimizer.step(closure)
                    optimizer.zero_grad()
                    r.update()
            for column in ("grad_norm", "grad_norm_taken"):
                np.testing.assert_allclose(read(path, column), norms, rtol=1e-6)

    def test_verify_a_pass_of_moved_weights_is_no_second_micro_batch(self):
        """SAM moves weights by the gradient of a first pass, drops it, and steps with that of a second
        one: the loss is the first one's. Where weights stay, and gradients go (a zero_grad inside of
        the accumulation), both passes are micro-batches, as the loop adds them up; so they are where
        weights are moved and no gradient is dropped."""
        for moves, drops in ((True, True), (False, True), (True, False)):
            model = torch.nn.Linear(8, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
            path = os.path.join(self.folder.name, f"{moves}-{drops}.h5")
            wanted = []
            with warnings.catch_warnings(record=True) as caught, \
                    twinstep.Recorder(model, optimizer, path=path, quiet=True) as r:
                warnings.simplefilter("always")
                for k in range(3):
                    x = torch.randn(4, 8, generator=torch.Generator().manual_seed(k))
                    losses = []
                    for again in range(2):
                        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
                        loss.backward()
                        losses.append(loss.item())
                        if again:
                            break
                        with torch.no_grad():
                            for p in model.parameters() if moves else ():
                                p.add_(0.1 * p.grad)
                        if drops:
                            optimizer.zero_grad()
                    optimizer.step()
                    optimizer.zero_grad()
                    wanted.append(losses[0] if moves and drops else sum(losses))
                    r.update()
            np.testing.assert_allclose(read(path, "loss"), wanted, rtol=1e-12)
            told = [str(w.message) for w in caught]
            self.assertEqual(len(told), drops and not moves, told)      # once, in three updates
            if told:
                self.assertIn("update 1: gradients of a backward pass were dropped before a step", told[0])

    def test_verify_a_batch_that_is_left_out_is_told(self):
        """A loop that drops the gradients of a bad batch: with a row of its own for that batch the
        losses are those of the batches, and nothing is told."""
        def train(path, ends):
            model = torch.nn.Linear(8, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
            losses.clear()
            with twinstep.Recorder(model, optimizer, path=path, quiet=True) as recorder:
                for k in range(4):
                    loss = loss_of(model)
                    loss.backward()
                    losses.append(loss.item())
                    if k != 1:
                        optimizer.step()
                    optimizer.zero_grad()
                    if k != 1 or ends:
                        recorder.update(skipped=True if k == 1 else None)
        losses = []
        told = self.said(lambda: train(self.path, True))
        self.assertEqual(told, [])
        np.testing.assert_allclose(read(self.path, "loss"), losses, rtol=1e-12)
        self.assertEqual(list(read(self.path, "skipped")), [0, 1, 0, 0])
        told = self.said(lambda: train(self.path + "2", False))
        self.assertEqual(len(told), 1)
        self.assertIn("update 2: gradients of a backward pass were dropped", told[0])
        np.testing.assert_allclose(read(self.path + "2", "loss"),
                                   [losses[0], losses[1] + losses[2], losses[3]], rtol=1e-12)

    def test_verify_updates_in_which_nothing_is_seen_are_told(self):
        """A model that is replaced by its copy is not trained any more. A scaler's skip is seen, and
        an update of which the loop says itself that it was skipped needs no words."""
        def train(path, changes, skipped=None):
            model, optimizer, _ = parts()
            with twinstep.Recorder(model, optimizer, path=path, quiet=True) as recorder:
                for k in range(4):
                    if k == 2 and changes:
                        model = copy.deepcopy(model)
                        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
                    if k < 2 or changes:
                        loss_of(model).backward()
                        optimizer.step()
                        optimizer.zero_grad()
                    recorder.update(skipped=skipped if k > 1 else None)
        for number, (changes, skipped, words) in enumerate((
                (True, None, "update 3: neither a forward or backward pass of the model nor a step"),
                (False, None, "update 3: neither a forward or backward pass of the model nor a step"),
                (False, True, ""))):
            path = f"{self.path}{number}"
            told = self.said(lambda: train(path, changes, skipped))
            self.assertEqual(len(told), words != "", told)
            self.assertIn(words, "".join(told))
            self.assertEqual(list(read(path, "skipped")), [0, 0, 1, 1])

    def test_verify_a_step_that_failed_ends_the_recording(self):
        for kind, options in ((torch.optim.LBFGS, {"max_iter": 3}), (torch.optim.SGD, {})):
            for zero in (True, False):
                model = torch.nn.Linear(8, 1)
                optimizer = kind(model.parameters(), lr=0.01, **options)
                path = os.path.join(self.folder.name, f"{kind.__name__}-{zero}.h5")
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    with twinstep.Recorder(model, optimizer, path=path, quiet=True) as r:
                        for k in range(4):
                            def closure():
                                optimizer.zero_grad()
                                loss = model(torch.ones(4, 8)).square().mean()
                                loss.backward()
                                if k == 1:
                                    raise FloatingPointError("a bad batch")
                                return loss
                            try:
                                optimizer.step(closure)
                            except FloatingPointError:
                                if zero:
                                    optimizer.zero_grad()
                                continue
                            r.update()
                said = [str(w.message) for w in caught]
                self.assertEqual(len(said), 1, said)
                self.assertIn("recording stopped after 1 update", said[0])
                self.assertIn(f"a step of the optimizer ({kind.__name__}) ended by an exception",
                              said[0])

    def test_verify_accelerate(self):
        from accelerate import Accelerator

        def train(path):
            model, optimizer, schedule = parts()
            accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
            model, optimizer, schedule = accelerator.prepare(model, optimizer, schedule)
            recorder = path and twinstep.Recorder(model, optimizer, schedule, path=path,
                                                  quiet=True).start()
            for k in range(6):
                with accelerator.accumulate(model):
                    accelerator.backward(loss_of(model))
                    if accelerator.sync_gradients:
                        accelerator.clip_grad_norm_(model.parameters(), 1.0)
                    optimizer.step()
                    schedule.step()
                    optimizer.zero_grad()
                if recorder and accelerator.sync_gradients:
                    recorder.update()
            if recorder:
                recorder.close()
            return [p.detach() for p in model.parameters()] + [torch.get_rng_state()]
        self.assertTrue(all(map(torch.equal, train(None), train(self.path))))
        self.assertEqual(len(read(self.path, "step")), 3)
        self.assertEqual(order(self.path, 1), "forward backward clip optimize schedule zero")

    def test_verify_lightning(self):
        import lightning.pytorch as lightning

        class Module(lightning.LightningModule):
            """Notes the norm of the gradient that this update has before clipping."""

            def __init__(self):
                super().__init__()
                self.inner, self.made, self.schedule = parts()
                self.truth, self.seen = [], []

            def training_step(self, batch, _):
                self.seen.append(batch)
                return (self.inner(batch) - batch.sum(1, keepdim=True)).square().mean()

            def on_before_optimizer_step(self, optimizer):
                self.truth.append(float(torch.stack(
                    [p.grad.norm() for p in self.inner.parameters()]).norm()))

            def configure_optimizers(self):
                return {"optimizer": self.made,
                        "lr_scheduler": {"scheduler": self.schedule, "interval": "step"}}

        def train(path):
            module = Module()
            data = torch.utils.data.DataLoader(torch.randn(40, 8), batch_size=8)
            trainer = lightning.Trainer(
                max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
                enable_progress_bar=False, enable_model_summary=False, gradient_clip_val=1.0,
                callbacks=[twinstep.TwinstepCallback(path, every=1, quiet=True)] if path else [])
            trainer.fit(module, data)
            return module
        bare, held = train(None), train(self.path)
        self.assertTrue(all(map(torch.equal, bare.parameters(), held.parameters())))
        from twinstep.record import digest
        norm, rates, batch = read(self.path, "grad_norm", "lr_applied", "digest_batch")
        for k, rows in enumerate(held.seen):    # what training_step was given
            total = digest._sum_by_numpy(rows.data_ptr(), 4, 0, rows.numel())
            self.assertEqual(bytes(batch[k]), digest.listed("batch", [
                digest.close(".0", "f32", tuple(rows.shape), total)]), k)
        self.assertEqual(order(self.path), "forward zero backward clip optimize schedule")
        for k in range(5):      # the gradient of this update, not of the last one
            self.assertAlmostEqual(norm[k], held.truth[k], delta=1e-5)
            self.assertEqual(rates[k][0], 1e-2 * (1 - k / 20))

    def test_validate_digests_of_moments_gradients_and_generators(self):
        from twinstep.record import digest
        model, optimizer, _ = parts()

        def keyed(name, t):
            t = t.detach().contiguous()
            total = digest._sum_by_numpy(t.data_ptr(), 4, 0, t.numel())
            return digest.close(name, "f32", tuple(t.shape), total)
        wanted = []
        with twinstep.Recorder(model, optimizer, path=self.path, every=2, quiet=True) as r:
            for k in range(4):
                if k != 1:              # a generator that does not draw is not in the digest
                    torch.rand(1)
                model.eval() if k == 1 else model.train()
                model(torch.ones(8, 8)).square().mean().backward()
                gradients = [keyed(n, p.grad) for n, p in model.named_parameters()]
                optimizer.step()
                weights = [keyed(n, p) for n, p in model.named_parameters()]
                moments = [keyed(f"{n}/{key}", optimizer.state[p][key])
                           for n, p in model.named_parameters()
                           for key in ("exp_avg", "exp_avg_sq", "step")]
                wanted.append((gradients, weights, digest.listed("state", weights + moments)))
                optimizer.zero_grad()
                r.update()
        gradient, parameter, whole, rng = read(self.path, "tensors/digest_gradient",
                                               "tensors/digest_parameter", "digest_state",
                                               "digest_rng")
        for k, (gradients, weights, moments) in enumerate(wanted):
            taken = k % 2 == 0
            self.assertEqual(list(map(bytes, parameter[k])), weights)
            self.assertEqual(list(map(bytes, gradient[k])), gradients if taken else [bytes(32)] * 4)
            self.assertEqual(bytes(whole[k]), moments if taken else bytes(32))
        states = [bytes(d) for d in rng]        # of the generators that drew since the start
        self.assertEqual(states[0], states[1])
        self.assertEqual(len(set(states)), 3)

    def test_validate_weights_before_the_first_update(self):
        """By the same digest as another implementation's, of numpy, without a part of the training's
        own numbers, and compared by the program."""
        from twinstep.record import digest

        def keyed(name, t):
            total = digest._sum_by_numpy(t.data_ptr(), 4, 0, t.numel())
            return digest.close(name, "f32", tuple(t.shape), total).hex().encode()

        def train(name, seed=3, nudge=0.0, late=0.0):
            model, optimizer, _ = parts(seed)
            with torch.no_grad():
                model[2].bias += nudge
            wanted = [keyed(n, p.detach()) for n, p in model.named_parameters()]
            path = os.path.join(self.folder.name, f"{name}.h5")
            torch.manual_seed(5)
            with twinstep.Recorder(model, optimizer, path=path, quiet=True) as r:
                for k in range(3):
                    loss_of(model).backward()
                    optimizer.step()
                    optimizer.zero_grad()
                    with torch.no_grad():
                        model[2].bias += late if k == 0 else 0.0
                    r.update()
            self.assertEqual(read(path, "tensors/initial"), wanted)
            return path
        a, same, other = train("a"), train("same"), train("other", nudge=1e-7)
        late = train("late", late=1e-3)
        self.assertIn("of weights before the first update, too\n",
                      self.program("import", "--check", a).stdout)
        self.assertIn("Weights before update 1 are equal.\nRoots are equal in all 3",
                      self.program("compare", a, same).stdout)
        said = self.program("compare", a, other).stdout
        self.assertIn("Weights before update 1 differ in 1 tensor, 2.bias.\n", said)
        self.assertIn("\nPoints to: init\n", said)
        said = self.program("compare", a, late).stdout      # which is no other beginning
        self.assertIn("Weights before update 1 are equal.\nRoots differ from update 1 on: phase opt",
                      said)
        self.assertNotIn("Points to: init", said)

    def test_verify_weights_that_are_cast_behind_the_start_have_no_beginning(self):
        torch.manual_seed(3)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
        with twinstep.Recorder(model, optimizer, path=self.path, quiet=True) as r:
            model.double()
            model(torch.ones(2, 4, dtype=torch.float64)).sum().backward()
            optimizer.step()
            r.update()
        with h5py.File(self.path) as f:
            self.assertNotIn("initial", f["runs/main/steps/tensors"])

    def waits(self, layers, path=None, is_far=True, kind="adamw", copies=None):
        """How often each update waits for a device that is simulated (far.py): `layers` linear layers,
        the first one frozen."""
        from far import Far, Waits, far
        torch.manual_seed(3)
        model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(layers)))
        model[0].requires_grad_(False)
        x, found = torch.randn(4, 8), []
        with Waits() as waits:
            if is_far:
                x, model = Far(x), far(model)
            optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9) if kind == "sgd" \
                else torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=False)
            recorder = path and twinstep.Recorder(model, optimizer, path=path, every=2, readback=1,
                                                  quiet=True).start()
            for k in range(5):
                before = len(waits.of)
                if copies:
                    copies.now = k
                model(x).square().mean().backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                if is_far and k == 1:       # as fused and capturable optimizers have their counts
                    for state in optimizer.state.values():
                        state.update({k: Far(t) for k, t in state.items() if k == "step"})
                optimizer.zero_grad()
                if recorder:
                    recorder.update()
                found.append(len(waits.of) - before)
            if recorder:
                if copies:
                    copies.now = "close"
                recorder.close()
        return found

    def test_verify_waits_for_a_device_do_not_grow_with_tensors(self):
        """One wait in each update, beside those of the training itself, and one for all frozen weights
        in the first; and the digests that a device computes are those of the host."""
        for kind in ("adamw", "sgd"):
            for layers in (2, 7):
                path = os.path.join(self.folder.name, f"{kind}{layers}.h5")
                bare, held = self.waits(layers, kind=kind), self.waits(layers, path, kind=kind)
                with self.subTest(kind=kind, layers=layers, bare=bare, held=held):
                    self.assertEqual([h - b for h, b in zip(held, bare)], [2, 1, 1, 1, 1])
            here = os.path.join(self.folder.name, f"{kind}.h5")
            self.assertEqual(self.waits(7, here, is_far=False, kind=kind), [0] * 5)
            self.assertIn("equal through update 5", self.program("certify", path, here).stdout)
            rates = [read(p, "lr_readback") for p in (path, here)]
            np.testing.assert_allclose(*rates, rtol=1e-12)      # sums in f64 on both
            self.assertTrue(np.isfinite(rates[0]).all())

    def test_verify_rows_come_home_while_the_next_update_runs(self):
        """With copies that go on meanwhile, as CUDA has them: no wait inside of an update but one for
        frozen weights in the first; the row of update k is read when update k + 1 has ended, the last
        one at the end, and all rows are those of the host."""
        from far import Copies
        for kind in ("adamw", "sgd"):
            for layers in (2, 7):
                path = os.path.join(self.folder.name, f"{kind}{layers}.h5")
                here = os.path.join(self.folder.name, f"{kind}{layers}here.h5")
                bare = self.waits(layers, kind=kind)
                with Copies() as copies:
                    self.assertEqual(self.waits(layers, path, kind=kind, copies=copies), bare)
                self.assertEqual(copies.waited, [(0, 0), (0, 1), (1, 2), (2, 3), (3, 4), (4, "close")])
                with Copies() as copies:
                    self.assertEqual(self.waits(layers, here, is_far=False, kind=kind, copies=copies),
                                     [0] * 5)
                self.assertEqual(copies.waited, [])
                said = self.program("certify", path, here).stdout
                self.assertIn("equal through update 5", said)
                rates = [read(p, "lr_readback") for p in (path, here)]
                np.testing.assert_allclose(*rates, rtol=1e-12)      # sums in f64 on both
                for name in ("loss", "grad_norm", "param_norm", "lr_applied", "clip_coef"):
                    np.testing.assert_array_equal(*[read(p, name) for p in (path, here)], name)
                self.assertEqual(*[read(p, "phases/place") for p in (path, here)])

    def test_verify_a_copy_begins_without_a_wait(self):
        """What `depart` asks of torch for a CUDA tensor, on a stand-in for one: pinned memory, a copy
        that does not block, then an event, all on the tensor's own device."""
        from twinstep.record import tensors
        calls, there = unittest.mock.Mock(), unittest.mock.Mock()
        whole = unittest.mock.Mock(spec=torch.Tensor, shape=(3,), dtype=torch.int64,
                                   device=torch.device("cuda:1"))
        calls.empty.return_value = there
        calls.attach_mock(there.copy_, "copy_")
        with unittest.mock.patch.object(torch, "empty", calls.empty), \
                unittest.mock.patch.object(torch.cuda, "device", calls.device), \
                unittest.mock.patch.object(torch.cuda, "Event", calls.Event), \
                unittest.mock.patch.object(tensors, "is_plain", lambda t: True):
            calls.device.return_value.__enter__ = calls.enter
            calls.device.return_value.__exit__ = calls.leave
            calls.leave.return_value = None
            self.assertEqual(tensors.depart(whole), (there, calls.Event.return_value))
        self.assertEqual([name for name, _, _ in calls.mock_calls],
                         ["empty", "device", "enter", "copy_", "Event", "Event().record", "leave"])
        self.assertEqual(calls.empty.call_args, unittest.mock.call(
            (3,), dtype=torch.int64, device="cpu", pin_memory=True))
        self.assertEqual(calls.device.call_args, unittest.mock.call(torch.device("cuda:1")))
        self.assertEqual(there.copy_.call_args, unittest.mock.call(whole, non_blocking=True))
        self.assertEqual(whole.mock_calls, [])

    def late(self, path, updates, at, do, recorder_ends=True):
        """A training on the simulated device, whose rows come home late; `do(recorder, copies)` is
        called at the begin of update `at`. Its warnings."""
        from far import Copies, Far, Waits, far
        torch.manual_seed(3)
        model = torch.nn.Linear(8, 1)
        with warnings.catch_warnings(record=True) as said, Copies() as copies, Waits():
            warnings.simplefilter("always")
            x, model = Far(torch.randn(4, 8)), far(model)
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=False)
            recorder = twinstep.Recorder(model, optimizer, path=path, quiet=True).start()
            for k in range(updates):
                if k == at:
                    do(recorder, copies)
                model(x).square().mean().backward()
                optimizer.step()
                optimizer.zero_grad()
                is_interrupted = copies.interrupted > 0
                try:
                    recorder.update(lr_logged=optimizer.param_groups[0]["lr"])
                    self.assertFalse(is_interrupted)
                except KeyboardInterrupt:
                    self.assertTrue(is_interrupted)
            self.said_before = recorder.cost()
            if recorder_ends:
                recorder.close()
            self.said_after = recorder.cost()
        return [str(w.message) for w in said if "twinstep" in str(w.message)]

    def test_verify_the_end_of_a_recording_whose_last_row_is_late(self):
        """An error of the recorder's own leaves the update before; a device that fails leaves what was
        home; the weights of a copy of the process are not sent; and an exception in `with` leaves all."""
        paths = [os.path.join(self.folder.name, f"{i}.h5") for i in range(4)]

        def fails(recorder, _):
            recorder._read_groups = None
        said = self.late(paths[0], 6, 3, fails)
        self.assertEqual((len(said), "stopped after 3 updates" in said[0]), (1, True), said)
        self.assertEqual(read(paths[0], "step"), [1, 2, 3])

        def breaks(_, copies):
            copies.is_broken = True
        said = self.late(paths[1], 6, 3, breaks)
        self.assertEqual((len(said), "stopped after 2 updates" in said[0]), (1, True), said)
        self.assertIn("CUDA error", said[0])
        self.assertEqual(read(paths[1], "step"), [1, 2])

        def forks(recorder, _):
            if (child := os.fork()) == 0:
                recorder.close()
                os._exit(0)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(self.late(paths[2], 6, 3, forks), [])
        self.assertEqual(read(paths[2], "step"), [1, 2, 3, 4, 5, 6])

        def raises(recorder, _):
            recorder.__exit__(KeyboardInterrupt, None, None)
        self.assertEqual(self.late(paths[3], 6, 3, raises), [])
        self.assertEqual(read(paths[3], "step"), [1, 2, 3])

    def test_verify_a_wait_that_is_interrupted_loses_no_row(self):
        """A Ctrl-C comes while the recorder waits, in one update or in the next one too, or at the end,
        and the training goes on: all rows are there, in their order."""
        for times, updates, at in ((1, 6, 3), (2, 6, 3), (1, 4, 3)):
            def interrupts(_, copies, times=times):
                copies.interrupted = times
            path = os.path.join(self.folder.name, f"{times}{updates}.h5")
            self.assertEqual(self.late(path, updates, at, interrupts), [])
            self.assertEqual(read(path, "step"), list(range(1, updates + 1)))
            self.assertIn(f": {updates} updates recorded", self.said_after)
            with h5py.File(path) as f:
                self.assertEqual(f["complete"][()], 1)

    def test_verify_a_write_that_is_interrupted_ends_the_recording(self):
        """A Ctrl-C comes while a part of a row is in the pipe: no other one follows, and the rows
        before it are a recording that is not complete."""
        model, optimizer, _ = parts()
        recorder = twinstep.Recorder(model, optimizer, path=self.path, quiet=True).start()
        real = recorder._channel._write

        def interrupted(frame, patience):
            recorder._channel.between = False
            os.write(recorder._channel.pipe, struct.pack("<Q", len(frame)) + frame[:9])
            raise KeyboardInterrupt
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            for k in range(5):
                loss_of(model).backward()
                optimizer.step()
                recorder._channel._write = interrupted if k == 2 else real
                try:
                    recorder.update()
                    self.assertNotEqual(k, 2)
                except KeyboardInterrupt:
                    self.assertEqual(k, 2)
            recorder.close()
        said = [str(w.message) for w in seen if "twinstep" in str(w.message)]
        self.assertEqual(len(said), 1, said)
        self.assertIn("stopped after 2 updates, and the training goes on: interrupted", said[0])
        self.assertEqual(read(self.path, "step"), [1, 2])
        with h5py.File(self.path) as f:
            self.assertEqual(f["complete"][()], 0)

    def interrupted(self, path, where, at):
        """A training of four updates with a Ctrl-C as line `at` of the recorder's code is run: in the
        third `update`, after which the training goes on, or in `close`, which nobody calls again.
        How many lines there were."""
        model, optimizer, schedule = parts()
        recorders = os.path.dirname(sys.modules[twinstep.Recorder.__module__].__file__) + os.sep
        lines = 0

        def line(_, event, __):
            nonlocal lines
            lines += event == "line"
            if event == "line" and lines == at:
                raise KeyboardInterrupt
            return line

        def watched(call, **given):
            sys.settrace(lambda frame, *_: line if frame.f_code.co_filename.startswith(recorders)
                         else None)
            try:
                call(**given)
            except KeyboardInterrupt:
                self.assertEqual(lines, at)
            finally:
                sys.settrace(None)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            recorder = twinstep.Recorder(model, optimizer, schedule, path=path, every=2, quiet=True)
            recorder.start()
            for k in range(4):
                loss_of(model).backward()
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
                call = watched if (where, k) == ("update", 2) else lambda call, **given: call(**given)
                call(recorder.update, lr_logged=k)
            (watched if where == "close" else lambda call: call())(recorder.close)
            self.assertFalse(hasattr(torch.autograd.backward, "__wrapped__"), (where, at))
            recorder._channel.process.wait(60)
        return lines

    def test_verify_a_ctrl_c_anywhere_leaves_whole_rows(self):
        """Of the recorder's lines in `update` and in `close` some are interrupted: what is left is a
        file under its name that holds the rows of the training that nobody interrupted, from the first
        one on, and says that it is complete only where it holds all of them. Torch's functions are put
        back."""
        def table(path):
            with h5py.File(path) as f:
                steps, found = f["runs/main/steps"], {}
                steps.visititems(lambda name, d: found.update({name: d[()]}) if isinstance(
                    d, h5py.Dataset) and d.maxshape[:1] == (None,) else None)
                return int(f["complete"][()]), found
        whole = os.path.join(self.folder.name, "whole.h5")
        counts = {where: self.interrupted(whole + where, where, 0) for where in ("update", "close")}
        done, wanted = table(whole + "update")
        self.assertEqual((done, wanted["step"].tolist()), (1, [1, 2, 3, 4]))
        ends = set()
        for where, lines in counts.items():
            # before the third line of `update` it is a Ctrl-C in the training's own code
            for at in range(3, lines + 1, max(1, lines // 12)):
                path = os.path.join(self.folder.name, f"{where}{at}.h5")
                self.interrupted(path, where, at)
                self.assertTrue(os.path.exists(path), (where, at))
                done, found = table(path)
                count = len(found["step"])
                ends.add((where, done, count))
                self.assertTrue(count == 4 if done else 2 <= count, (where, at, done, count))
                for name, column in wanted.items():
                    np.testing.assert_array_equal(found[name], column[:count],
                                                  f"{where}, line {at}, {name}")
        self.assertLessEqual({("update", 0, 2), ("close", 0, 4), ("close", 1, 4)}, ends)

    def test_verify_a_ctrl_c_in_a_hook_leaves_torch_as_it_was(self):
        """The third update of a training whose loop goes on behind a Ctrl-C, as in a notebook, with a
        Ctrl-C as each line of `patches` and of what guards a listener is run, and as some of all others
        are: autograd is on as it was, the rows before are those of a training that nobody interrupted,
        torch's functions are put back, and the next recorder hears all."""
        folder = os.path.dirname(sys.modules[twinstep.Recorder.__module__].__file__) + os.sep
        guards = {folder + "patches.py": None, folder + "recorder.py": "_call"}
        lines, at, of = 0, 0, None

        def line(frame, event, __):
            nonlocal lines
            if event == "line":
                lines += 1
                if lines == at:
                    raise KeyboardInterrupt
            return line

        def wanted(code):
            if of == "all":
                return code.co_filename.startswith(folder)
            name = guards.get(code.co_filename, "")
            return name is None or name == code.co_name

        def train(path):
            nonlocal lines
            lines = 0
            model, optimizer, schedule = parts()
            recorder = twinstep.Recorder(model, optimizer, schedule, path=path, every=2, quiet=True)
            recorder.start()
            for k in range(4):
                if k == 2:
                    sys.settrace(lambda frame, *_: line if wanted(frame.f_code) else None)
                try:
                    loss_of(model).backward()
                    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                    optimizer.step()
                    schedule.step()
                    optimizer.zero_grad()
                except KeyboardInterrupt:
                    self.assertEqual(lines, at)
                    self.assertTrue(torch.is_grad_enabled(), (of, at))
                    optimizer.zero_grad()
                finally:
                    sys.settrace(None)
                recorder.update()
            recorder.close()
            recorder._channel.process.wait(60)
            self.assertFalse(hasattr(torch.autograd.backward, "__wrapped__"), (of, at))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            whole, path = (os.path.join(self.folder.name, name) for name in ("w.h5", "i.h5"))
            for of, step in (("guards", 2), ("all", 20)):
                at = 0
                train(whole)
                losses, right, count = read(whole, "loss")[:2], order(whole, 2), lines
                self.assertEqual(right, "forward backward clip optimize schedule zero")
                self.assertGreater(count, 20)
                os.unlink(whole)
                for at in range(1, count + 1, max(1, count // step) if of == "all" else step):
                    train(path)
                    self.assertEqual(read(path, "loss")[:2], losses, (of, at))
                    os.unlink(path)
                    if at % 14 == 1 or of == "all":
                        at = 0
                        train(path)
                        self.assertEqual([order(path, k) for k in (0, 2)], [right] * 2, (of, at))
                        os.unlink(path)

    def test_verify_the_cost_tells_how_many_updates_were_sent(self):
        """Not those that ended: one is on its way while the training runs, and where the device
        fails none comes any more."""
        paths = [os.path.join(self.folder.name, f"{i}.h5") for i in range(2)]
        self.assertEqual(self.late(paths[0], 4, None, None), [])
        self.assertIn(": 3 updates recorded", self.said_before)
        self.assertIn(": 4 updates recorded", self.said_after)

        def breaks(_, copies):
            copies.is_broken = True
        self.assertEqual(len(self.late(paths[1], 6, 3, breaks)), 1)
        self.assertIn(": 2 updates recorded", self.said_after)
        model, optimizer, _ = parts()
        self.assertIn(": 0 updates recorded",
                      twinstep.Recorder(model, optimizer, path=paths[1] + "2").cost())

    def test_verify_a_kill_loses_the_row_that_is_late(self):
        """After `at` updates: kill -9 leaves all but the last one, and the exit of the program all; so
        does that of a child of multiprocessing, by a return as by an error."""
        script = pathlib.Path(self.folder.name) / "train.py"
        script.write_text(textwrap.dedent("""
            import multiprocessing, os, signal, sys, test_record_torch
            class Returns(Exception):
                pass
            def end(recorder, copies):
                if what == "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
                if what.endswith("returns"):
                    raise Returns
                sys.exit(0)
            def train():
                try:
                    test_record_torch.Loops().late(path, 30, at, end)
                except Returns:
                    pass
            what, at, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
            if __name__ == "__main__":
                if what in ("kill", "exit"):
                    train()
                else:
                    child = multiprocessing.get_context(what.split()[0]).Process(target=train)
                    child.start()
                    child.join()
                    sys.exit(child.exitcode)
            """), encoding="utf-8")
        environment = dict(os.environ)
        environment["PYTHONPATH"] = os.pathsep.join(
            [str(pathlib.Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        for what, at, status, left in (("kill", 17, -signal.SIGKILL, 16), ("exit", 17, 0, 17),
                                      ("fork exits", 17, 0, 17), ("fork returns", 17, 0, 17)):
            path = os.path.join(self.folder.name, f"{what.replace(' ', '_')}{at}.h5")
            done = subprocess.run([sys.executable, str(script), what, str(at), path], check=False,
                                  capture_output=True, text=True, env=environment)
            self.assertEqual(done.returncode, status, done.stderr)
            for _ in range(100):    # the writer, which lives on for a moment, names what it has
                if os.path.exists(path):
                    break
                signal.sigtimedwait([], 0.1)
            self.assertEqual(read(path, "step"), list(range(1, left + 1)), what)
            self.assertEqual(self.program("import", "--check", path).returncode, 0)

    def kernel_on_the_host(self):
        """The kernel's source as C++, as a driver with cuLaunchKernel: every thread of every block is
        run, one after the other, the lanes of a warp from the last one, so that what a lane is shuffled
        from another one is there. None without a compiler."""
        from twinstep.record import keyed_cuda
        compiler = shutil.which(os.environ.get("CXX", "c++").split()[0])
        if compiler is None:
            return None
        source, library = (pathlib.Path(self.folder.name) / f"kernel.{end}" for end in ("cc", "so"))
        source.write_text(textwrap.dedent("""
            #define __global__
            #define __device__ static
            struct extent { unsigned x; };
            struct uint4 { unsigned x, y, z, w; };
            static extent blockIdx, threadIdx;
            static unsigned long long said[64][32];     // by how far it is shuffled, and by lane
            static unsigned long long __shfl_down_sync(unsigned mask, unsigned long long x, int by) {
                const unsigned lane = threadIdx.x % 32;
                if (mask != 0xFFFFFFFFu) __builtin_abort();
                said[by][lane] = x;
                return lane + by < 32 ? said[by][lane + by] : x;
            }
            static void atomicAdd(unsigned long long *at, unsigned long long x) { *at += x; }
            """) + keyed_cuda.SOURCE + textwrap.dedent("""
            extern "C" int cuLaunchKernel(void *, unsigned x, unsigned y, unsigned z, unsigned threads,
                                          unsigned more, unsigned still_more, unsigned shared, void *,
                                          void **words, void **extra) {
                if (y != 1 || z != 1 || more != 1 || still_more != 1 || shared || extra || !x)
                    return 1;
                if (threads != THREADS || threads % 32)
                    return 2;
                for (blockIdx.x = 0; blockIdx.x < x; blockIdx.x++)
                    for (threadIdx.x = threads; threadIdx.x-- > 0;)
                        keyed(*(const long long **)words[0], *(unsigned long long **)words[1],
                              *(int *)words[2]);
                return 0;
            }
            """))
        subprocess.run([compiler, "-O1", "-Wno-unknown-pragmas", f"-DSPAN={keyed_cuda.SPAN}ull",
                        f"-DTHREADS={keyed_cuda.THREADS}", "-shared", "-fPIC", "-o", library,
                        source], check=True)
        return ctypes.CDLL(str(library))

    @contextlib.contextmanager
    def a_kernel(self):
        """The kernel, with the host as its device: what sums weights in recordings meanwhile."""
        from twinstep.record import keyed_cuda
        driver = self.kernel_on_the_host()
        if driver is None:
            self.skipTest("no C++ compiler")
        self.keyed_cuda = keyed_cuda
        kernel = keyed_cuda.Kernel.__new__(keyed_cuda.Kernel)
        kernel.device, kernel.driver, kernel.function = torch.device("cpu"), driver, ctypes.c_void_p()
        table_of, stream = keyed_cuda.table_of, unittest.mock.Mock(cuda_stream=0)
        with unittest.mock.patch.object(torch.cuda, "device", lambda _: contextlib.nullcontext()), \
                unittest.mock.patch.object(torch.cuda, "current_stream", lambda _: stream), \
                unittest.mock.patch.object(keyed_cuda, "kernel_of", lambda *_: kernel), \
                unittest.mock.patch.object(keyed_cuda, "table_of",
                                           lambda rows, is_pinned: table_of(rows, is_pinned=False)):
            yield kernel

    def test_validate_the_kernel_of_cuda_devices_on_the_host(self):
        """Its source, its table and its launch, with memory of the host and a driver that runs all of
        its threads, against the library of digests; and NVRTC's own verdict on it. What needs a device
        (NVRTC's machine code, the driver) is held against plain operations there, by a probe, before it
        is used."""
        from twinstep.record import keyed_cuda, keyed_torch
        torch.manual_seed(1)
        words = torch.randint(0, 256, (4096,), dtype=torch.uint8)
        large = torch.randint(0, 256, (4 * 40963,), dtype=torch.uint8)
        some = [words.view(d) for d in keyed_torch.DTYPES if d != torch.bool] \
            + [words[:0], words[:1], words[:31], large.view(torch.float32),
               large[1:], large[2:-2].view(torch.int16), large[4:].view(torch.float32),
               large[16:-4].view(torch.float32), large[16:], words[:0]]    # not all aligned
        items = [(t, first) for t in some for first in (0, 5, (1 << 32) - 9)]
        expected = [int(keyed_torch.device_sum(t, first)) for t, first in items]
        self.assertEqual([n % 2**64 for n in expected[::3]],
                         [n % 2**64 for n in keyed_torch.keyed_sums(some)])
        with self.a_kernel() as kernel:
            self.assertEqual(kernel.sums(items).tolist(), expected)
            self.assertEqual(kernel.sums([(words[:0], 3)]).tolist(), [0])
        if torch.version.cuda:
            self.assertEqual(keyed_cuda.compiled("80")[:4], b"\x7fELF")
        if not torch.cuda.is_available():       # and where it cannot be had, plain operations stay
            self.assertIsNone(keyed_cuda.kernel_of(torch.device("cuda:0"), keyed_torch.device_sum))

    def test_verify_each_draw_of_a_generator_is_seen(self):
        """What is said of the states of generators moves when, and only when, a state does: held
        against the states as Python, numpy and torch give them."""
        from twinstep.record import facts

        def states():
            kind, words, *rest = np.random.get_state()
            return {"python": repr(random.getstate()), "torch": bytes(torch.get_rng_state().numpy()),
                    "numpy": repr((kind, words.tobytes(), rest))}
        draws = [random.random, np.random.rand, lambda: np.random.randn(1), lambda: np.random.randn(1),
                 lambda: torch.rand(3), lambda: None, lambda: np.random.randn(1), lambda: None,
                 lambda: np.random.randn(1), lambda: np.random.seed(3), lambda: np.random.seed(3),
                 lambda: np.random.set_state(kept), lambda: np.random.seed(3), lambda: random.seed(1),
                 lambda: np.random.permutation(700), lambda: torch.manual_seed(2),
                 lambda: random.gauss(0, 1), lambda: random.gauss(0, 1), lambda: None,
                 lambda: random.gauss(0, 1), lambda: random.setstate(of_python),
                 lambda: [random.random() for _ in range(700)]]
        seen, said = {}, {}
        kept, of_python = np.random.get_state(), random.getstate()
        for k, draw in enumerate([lambda: None, *draws, *draws]):
            draw()
            found = facts.generators([torch.device("cpu")])
            self.assertEqual(sorted(found), ["numpy", "python", "torch"])
            for name, state in states().items():
                # One digest for each state, and one state for each digest.
                self.assertEqual(seen.setdefault((name, state), found[name]), found[name], (k, name))
                self.assertEqual(said.setdefault((name, found[name]), state), state, (k, name))

    def test_verify_rows_of_weights_that_stay_where_they_are(self):
        """Weights by the kernel, whose table is made once: the rows are those of the host, also where a
        weight moves, is read in another order, has its memory freed between two updates or steps with
        another optimizer. Gradients and moments go by the kernel, too."""
        class Counted:
            """How often tables of the four weights were made and used, and those of others used."""
            launches = tables = others = 0

        def training(path, kernel):
            torch.manual_seed(4)
            model = torch.nn.Sequential(torch.nn.Linear(40, 30), torch.nn.Linear(30, 30))
            first, second = model
            optimizers = [torch.optim.AdamW(m.parameters(), lr=1e-2) for m in (first, second)]
            prepare, take, said = kernel.prepare, kernel.take, Counted()

            def _prepare(items):
                said.tables += len(items) == 4
                return prepare(items)

            def _take(table):
                said.launches += table.rows == 4
                said.others += table.rows != 4
                return take(table)
            kernel.prepare, kernel.take = _prepare, _take
            by_update = []
            with twinstep.Recorder(model, optimizers, path=path, every=2, quiet=True) as recorder:
                for k in range(8):
                    model(torch.randn(4, 40)).square().mean().backward()
                    for optimizer in optimizers[:2 if k != 1 else 1]:   # then one does not step
                        optimizer.step()
                        optimizer.zero_grad()
                    if k == 2:
                        first.weight.data = first.weight.data.clone()
                    if k == 3:      # the same memory, in another order
                        second.weight.data = second.weight.data.t()
                    if k == 5:
                        second.weight.data = second.weight.data.contiguous()
                        storage = first.bias.untyped_storage()
                        kept, size = first.bias.data.clone(), storage.nbytes()
                        storage.resize_(0)          # as FSDP does between two uses
                        storage.resize_(size)
                        first.bias.data.copy_(kept)
                    recorder.update()
                    by_update.append((said.tables, said.launches))
            kernel.prepare, kernel.take = prepare, take
            # In every second update, of each optimizer: gradients, and its tensors; once gradients
            # that lie in memory as their transposed weight does, in no table's order.
            self.assertEqual(said.others, 16 - 1 if said.launches else 0)
            return by_update

        here = os.path.join(self.folder.name, "host.h5")
        with self.a_kernel() as kernel:
            counts = training(self.path, kernel)
            with unittest.mock.patch.object(self.keyed_cuda, "kernel_of", lambda *_: None):
                self.assertEqual(training(here, kernel)[-1], (0, 0))
        for name in ("tensors/digest_parameter", "tensors/digest_gradient", "digest_state", "loss",
                     "grad_norm", "param_norm"):
            np.testing.assert_array_equal(read(self.path, name), read(here, name), name)
        # A table and a launch for the weights at the start, a table in the first update, and another
        # where a weight moved.
        self.assertEqual(counts[:3], [(2, 2), (2, 3), (3, 4)])
        self.assertEqual(counts[3:5], [(3, 4)] * 2)     # one cannot be read in the table's order
        self.assertGreater(counts[5][0], 3)
        self.assertEqual(counts[7][1], counts[6][1] + 1)

    def test_verify_environment(self):
        with unittest.mock.patch.dict(os.environ, {"CUBLAS_WORKSPACE_CONFIG": ":4096:8",
                                                   "TWINSTEP_NOT_TOLD": "secret"}):
            self.plain(self.path)
        with h5py.File(self.path) as f:
            text = f["runs/main"].attrs["configuration"]
            causes = f["runs/main"].attrs["causes"]
        lines = dict(line.split(": ", 1) for line in text.splitlines())
        self.assertEqual(lines["env.torch"], torch.__version__)
        self.assertEqual(lines["env.threads"], str(torch.get_num_threads()))
        self.assertEqual(lines["env.CUBLAS_WORKSPACE_CONFIG"], ":4096:8")
        self.assertEqual(lines["env.deterministic"], "False")
        self.assertEqual((lines["optimizer.0"], lines["optimizer.0.0.weight_decay"]), ("AdamW", "0.1"))
        self.assertNotIn("secret", text)
        self.assertIn("env.deterministic: environment", causes)
        other = self.path + "2"
        torch.use_deterministic_algorithms(True)
        try:
            self.plain(other)
        finally:
            torch.use_deterministic_algorithms(False)
        said = self.program("compare", self.path, other).stdout
        self.assertIn("env.deterministic: False | True", said)

    def test_verify_a_rate_in_a_tensor(self):
        for kind in ("single", "foreach", "fused"):
            path = os.path.join(self.folder.name, f"{kind}.h5")

            def train(path, kind=kind):
                model, optimizer, _ = parts(**KINDS[kind])
                rate = torch.tensor(1e-2)
                for group in optimizer.param_groups:
                    group["lr"] = rate
                    if kind == "foreach":       # torch refuses a tensor without it
                        group["capturable"] = False
                recorder = path and twinstep.Recorder(model, optimizer, path=path, quiet=True).start()
                for _ in range(3):
                    loss_of(model).backward()
                    optimizer.step()
                    rate.mul_(0.5)              # in place: the same object, another rate
                    optimizer.zero_grad()
                    if recorder:
                        recorder.update()
                if recorder:
                    recorder.close()
                return state(model, optimizer)
            try:
                bare = train(None)
            except (RuntimeError, ValueError):  # this kind takes no tensor
                continue
            self.assertTrue(all(map(torch.equal, bare, train(path))), kind)
            base = float(torch.tensor(1e-2))
            self.assertEqual(read(path, "lr_applied"), [[base], [base / 2], [base / 4]], kind)
            self.assertEqual(order(path), "forward backward optimize schedule zero", kind)

    def test_verify_train_makes_a_new_scheduler(self):
        from transformers import Trainer, TrainingArguments

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = torch.nn.Linear(8, 1)

            def forward(self, x):
                return {"loss": self.inner(x).square().mean()}
        torch.manual_seed(3)
        args = TrainingArguments(
            output_dir=self.folder.name, max_steps=4, learning_rate=1e-2, logging_steps=1,
            lr_scheduler_type="constant", report_to=[], save_strategy="no", use_cpu=True,
            per_device_train_batch_size=4, disable_tqdm=True)
        callback = twinstep.TwinstepCallback(self.path, quiet=True)
        trainer = Trainer(model=Net(), args=args, callbacks=[callback],
                          train_dataset=[{"x": torch.randn(8)} for _ in range(32)])
        stale = trainer.create_scheduler(4, trainer.create_optimizer())
        used = []
        opened = callback._open

        def _open(model, optimizer, scheduler, config, done):
            used.append(scheduler)
            return opened(model, optimizer, scheduler, config, done)
        callback._open = _open
        trainer.lr_scheduler = None
        trainer.train()
        self.assertIsNot(used[0], stale)
        last = used[0]
        while not hasattr(last, "last_epoch"):
            last = last.scheduler
        self.assertEqual((last.last_epoch, stale.last_epoch), (4, 0))
        # the rate is constant: only the scheduler that train() made shows where it stepped
        self.assertIn("optimize schedule", order(self.path, 1))

    def test_verify_a_training_that_goes_on_keeps_its_numbers(self):
        from transformers import Trainer, TrainingArguments

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = torch.nn.Linear(8, 1)

            def forward(self, x):
                return {"loss": self.inner(x).square().mean()}

        def train(name, **options):
            torch.manual_seed(3)
            args = TrainingArguments(
                output_dir=self.folder.name, max_steps=6, learning_rate=1e-2, logging_steps=1,
                report_to=[], save_strategy="steps", save_steps=2, use_cpu=True,
                per_device_train_batch_size=4, disable_tqdm=True)
            path = os.path.join(self.folder.name, name)
            Trainer(model=Net(), args=args,
                    callbacks=[twinstep.TwinstepCallback(path, quiet=True)],
                    train_dataset=[{"x": torch.randn(8)} for _ in range(32)]).train(**options)
            return path
        whole = train("whole.h5")
        after = train("after.h5", resume_from_checkpoint=os.path.join(self.folder.name,
                                                                      "checkpoint-2"))
        self.assertEqual(read(after, "step"), [3, 4, 5, 6])
        self.assertEqual(read(after, "lr_applied"), read(whole, "lr_applied")[2:])
        done = self.program("resume-check", whole, after)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("restarted after update 2; 4 updates", done.stdout)
        # digests of gradients are of updates 1, 17, ... of the training, and not of the file
        self.assertFalse(any(map(any, sum(read(after, "tensors/digest_gradient"), []))))

    def test_verify_the_number_of_the_first_update(self):
        model, optimizer, _ = parts()
        for first in (0, -1):
            with self.assertRaisesRegex(ValueError, "first: expected the number of an update"):
                twinstep.Recorder(model, optimizer, path=self.path, first=first)
        with twinstep.Recorder(model, optimizer, path=self.path, first=17, quiet=True) as recorder:
            for _ in range(2):
                loss_of(model).backward()
                optimizer.step()
                recorder.update()
        self.assertEqual(read(self.path, "step"), [17, 18])
        self.assertTrue(any(read(self.path, "tensors/digest_gradient")[0][0]))

    def test_verify_a_training_that_begins_again_has_another_file(self):
        from types import SimpleNamespace
        folder = pathlib.Path(self.folder.name)
        (folder / "a.h5.part").write_bytes(b"of a job that was killed")
        callback = twinstep.TwinstepCallback(self.path, quiet=True)
        model, optimizer, _ = parts()
        state = SimpleNamespace(epoch=0, global_step=0)

        def train(updates, name):
            """What transformers calls; the end is left out, as where an update raises an error."""
            with self.assertWarnsRegex(RuntimeWarning, f"a.h5 exists, .* recorded in .*{name}"):
                callback.on_train_begin(None, state, None, model=model, optimizer=optimizer)
            for _ in range(updates):
                callback.on_step_begin(None, state, None)
                loss_of(model).backward()
                optimizer.step()
                callback.on_step_end(None, state, None)
        train(2, "a-2.h5")
        train(0, "a-3.h5")              # ends before its first update, so its name stays free
        (folder / "a-3.rank0001.h5.part").write_bytes(b"of another rank")
        train(3, "a-4.h5")
        callback.on_train_end(None, state, None)
        for name, updates, complete in (("a-2.h5", 2, 0), ("a-4.h5", 3, 1)):
            with h5py.File(folder / name) as f:
                self.assertEqual((len(f["runs/main/steps/step"]), f["complete"][()]),
                                 (updates, complete), name)
        self.assertFalse(os.path.exists(self.path))

    def test_verify_what_trl_logs_of_pairs_is_recorded(self):
        """Where each update is logged; a mean over several is that of no update."""
        from types import SimpleNamespace
        logs = [{"learning_rate": 0.5, "rewards/margins": 0.25 * k, "rewards/accuracies": 1, "logps/chosen": "-4"}
                for k in (1, 2)]
        for steps in (1, 2):
            path = os.path.join(self.folder.name, f"{steps}.h5")
            callback = twinstep.TwinstepCallback(path, quiet=True)
            model, optimizer, _ = parts()
            state, args = SimpleNamespace(epoch=0, global_step=0), SimpleNamespace(logging_steps=steps)
            callback.on_train_begin(args, state, None, model=model, optimizer=optimizer)
            for log in logs:
                callback.on_step_begin(args, state, None)
                loss_of(model).backward()
                optimizer.step()
                callback.on_step_end(args, state, None)
                callback.on_log(args, state, None, logs=log)
            callback.on_train_end(args, state, None)
            with h5py.File(path) as f:
                columns = f["runs/main/steps"]
                self.assertEqual(list(columns["lr_logged"][:, 0]), [0.5, 0.5])
                self.assertEqual({name: list(columns[name]) for name in columns if name.startswith(("reward", "logp"))},
                                 {"reward_margin": [0.25, 0.5], "reward_accuracy": [1.0, 1.0]} if steps == 1 else {})

    def test_verify_arguments_of_a_trainer_are_lines_of_the_configuration(self):
        """A loop around a trainer's arguments says what the trainer's own callback says."""
        from transformers import TrainerState, TrainingArguments
        given = TrainingArguments(self.folder.name, learning_rate=5e-4, use_cpu=True, seed=6)
        model, optimizer, _ = parts()
        callback = twinstep.TwinstepCallback(os.path.join(self.folder.name, "b.h5"), quiet=True,
                                             config=given)
        callback.on_train_begin(given, TrainerState(), None, model=model, optimizer=optimizer)
        recorders = [callback.recorder,
                     twinstep.Recorder(model, optimizer, path=self.path, config=given, quiet=True)]
        told = [r.config for r in recorders]
        self.assertEqual(told[0], told[1])
        self.assertEqual((told[1]["args.learning_rate"], told[1]["args.seed"]), (5e-4, 6))
        self.assertNotIn("args.output_dir", told[1])
        for wrong, name in ((5, "int"), ([("lr", 1)], "list"), (TrainingArguments, "TrainingArguments")):
            for record in (lambda c: twinstep.TwinstepCallback(self.path, config=c),
                           lambda c: twinstep.Recorder(model, path=self.path, config=c)):
                with self.assertRaisesRegex(TypeError, f"config: expected a mapping .*, got {name}"):
                    record(wrong)
        callback.on_train_end(given, None, None)
        numbers = twinstep.Recorder(model, path=self.path, config={3: None, "a": 1}, quiet=True)
        self.assertEqual(numbers.config, {"3": None, "a": 1})   # a key of 3 ended the recording

    def test_verify_lists_and_maps_of_a_trainer_s_arguments_are_lines(self):
        """Two trainers that differ in a list and in a map of their arguments alone: compare names
        each leaf as ablate does, and one behind the bound of what is written by its digest."""
        from transformers import TrainingArguments
        model, optimizer, _ = parts()
        labels, told, paths = ["a" * 400, "b" * 700], [], []
        for which, (metric, rate) in enumerate((("loss", 1e-5), ("inputs", 1e-4))):
            given = TrainingArguments(
                self.folder.name, use_cpu=True, lr_scheduler_type="cosine_with_min_lr",
                lr_scheduler_kwargs={"min_lr": rate, "of": {"a b": 1, "own": object()}},
                include_for_metrics=[metric], label_names=[*labels, f"c{which}"])
            paths.append(os.path.join(self.folder.name, f"{which}.h5"))
            with twinstep.Recorder(model, optimizer, path=paths[-1], config=given,
                                   quiet=True) as recorder:
                loss_of(model).backward()
                optimizer.step()
                optimizer.zero_grad()
                recorder.update()
            told.append(recorder.config)
        self.assertEqual({k: v for k, v in told[0].items() if v != told[1][k]
                          if k != "args.label_names"},
                         {"args.lr_scheduler_kwargs.min_lr": 1e-5,
                          "args.include_for_metrics": '["loss"]'})
        self.assertEqual(told[0]["args.lr_scheduler_kwargs.of.a b"], 1)
        self.assertFalse([k for k in told[0] if "own" in k])    # its text would hold an address
        self.assertEqual(told[0]["args.debug"], "[]")
        whole = json.dumps([*labels, "c0"])
        self.assertEqual(told[0]["args.label_names"],
                         f"{whole[:1000]}... (cut after 1000 of {len(whole)} characters, sha256 of "
                         f"all {hashlib.sha256(whole.encode()).hexdigest()})")
        said = self.program("compare", *paths).stdout
        self.assertIn('args.lr_scheduler_kwargs.min_lr: 1e-05 | 0.0001', said)
        self.assertIn('args.include_for_metrics: ["loss"] | ["inputs"]', said)
        self.assertIn("args.label_names: ", said)

    def test_verify_a_configuration_that_no_reader_takes_is_refused_when_given(self):
        class Odd:
            """What a trainer's arguments are not: their to_dict gives a map."""

            def to_dict(self):
                return [1]
        model, _, _ = parts()
        for kind, words, given in (
                (TypeError, r"got Odd, whose to_dict\(\) gives list", {"config": Odd()}),
                (ValueError, "config: expected keys with a printable character, got ''",
                 {"config": {"": 1}}),
                (ValueError, r"config: expected keys .* got ' \\n'", {"config": {" \n": 1}}),
                (ValueError, "causes: expected keys .* got ''", {"causes": {"": "data"}})):
            with self.assertRaisesRegex(kind, words):
                twinstep.Recorder(model, path=self.path, quiet=True, **given)
            if "config" in given:
                with self.assertRaisesRegex(kind, words):
                    twinstep.TwinstepCallback(self.path, **given)
        self.assertFalse(os.path.exists(self.path))

    def leave(self, path, change):
        """Two updates, `change(model, optimizer)`, which returns the optimizer that goes on, and
        two more; what is warned of, the weights, and the updates in the file."""
        model, optimizer, _ = parts()
        model[2].bias.requires_grad_(False)
        model[0].again = torch.nn.Linear(8, 16, bias=False)     # trained, and never called
        optimizer.param_groups[0]["params"].append(model[0].again.weight)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            recorder = path and twinstep.Recorder(model, optimizer, path=path, quiet=True).start()
            for k in range(4):
                if k == 2:
                    optimizer = change(model, optimizer)
                x = torch.randn(8, 8, dtype=model[0].weight.dtype)
                model(x).square().mean().backward()
                optimizer.step()
                optimizer.zero_grad()
                if recorder:
                    recorder.update()
            if recorder:
                recorder.close()
        return [str(w.message) for w in seen], [p.detach() for p in model.parameters()]

    def test_verify_a_training_that_leaves_its_recording_ends_it(self):
        def thaw(model, optimizer):
            model[2].bias.requires_grad_(True)
            return optimizer

        def add(model, optimizer):
            optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(2))], "lr": 0.5})
            return optimizer

        def anew(model, optimizer):
            return torch.optim.AdamW(model.parameters(), lr=1e-3)

        def widen(model, optimizer):
            model.double()
            for moments in optimizer.state.values():
                moments.update({k: v.double() for k, v in moments.items()})
            return optimizer

        def replace(model, optimizer):
            model[0] = torch.nn.Linear(8, 16)       # the optimizer goes on with the old weights
            return optimizer

        def bare_weight(model, optimizer):
            model[0].weight = torch.nn.Parameter(model[0].weight.detach().clone())
            return optimizer

        def swap(model, optimizer):
            layer = model[0]
            layer.again.weight, layer.weight = layer.weight, layer.again.weight
            return optimizer

        def tie(model, optimizer):
            model[0].again.weight = model[0].weight
            return optimizer

        def grow(model, optimizer):
            model.append(torch.nn.Linear(1, 1))
            return optimizer

        def shrink(model, optimizer):
            del model[0].again
            return optimizer

        def fill(model, optimizer):         # a module that held nothing
            model[1].register_parameter("scale", torch.nn.Parameter(torch.ones(1)))
            return optimizer

        def other_dict(model, optimizer):   # the dict of a module, and not what is in the old one
            inside = model[0]._parameters
            model[0]._parameters = {**inside, "weight": torch.nn.Parameter(
                inside["weight"].detach().clone())}
            return optimizer

        for change, words in ((replace, "0.weight was replaced in the model by another tensor"),
                              (fill, "1.scale was added to the model after the recording began"),
                              (other_dict, "0.weight was replaced in the model"),
                              (bare_weight, "0.weight was replaced in the model"),
                              (swap, "0.weight was replaced in the model"),
                              (tie, "0.again.weight is not in the model any more"),
                              (grow, "3.weight was added to the model after the recording began"),
                              (shrink, "0.again.weight is not in the model any more"),
                              (thaw, "2.bias was frozen when the recording began, and is trained"),
                              (add, "the optimizer holds other weights or groups than"),
                              (anew, "another optimizer (AdamW) steps weights of the model"),
                              (widen, "0.weight was torch.float32 [16, 8] in the first update")):
            path = os.path.join(self.folder.name, f"{change.__name__}.h5")
            bare, held = self.leave(None, change), self.leave(path, change)
            self.assertTrue(all(map(torch.equal, bare[1], held[1])), change.__name__)
            said = [w for w in held[0] if "recording stopped after 2 updates" in w]
            self.assertEqual(len(said), 1, (change.__name__, held[0]))
            self.assertIn(words, said[0])
            with h5py.File(path) as f:
                self.assertEqual((len(f["runs/main/steps/step"]), f["complete"][()]), (2, 0))

    def test_verify_a_model_that_is_wrapped_is_still_recorded(self):
        """Wrappers, names and frozen weights that change while it runs; the weights are the same."""
        from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
        from torch.nn.utils import prune

        def compiled(model, optimizer):
            model[2] = torch.compile(model[2], backend="eager")
            return optimizer

        def checkpointed(model, optimizer):
            model[0] = checkpoint_wrapper(model[0])
            return optimizer

        def boxed(model, optimizer):
            model[2] = torch.nn.Sequential(model[2])
            return optimizer

        def pruned(model, optimizer):       # the weight goes on as 2.weight_orig
            prune.l1_unstructured(model[2], "weight", 0.25)
            return optimizer

        def offloaded(model, optimizer):    # the frozen bias, as offloading replaces it
            model[2].bias = torch.nn.Parameter(model[2].bias.detach().clone(), False)
            return optimizer

        def frozen(model, optimizer):
            model[0].again.weight.requires_grad_(False)
            return optimizer

        for change in (compiled, checkpointed, boxed, pruned, offloaded, frozen):
            path = os.path.join(self.folder.name, f"{change.__name__}.h5")
            said = [w for w in self.leave(path, change)[0] if "twinstep" in w]
            self.assertEqual(said, [], change.__name__)
            with h5py.File(path) as f:
                self.assertEqual((len(f["runs/main/steps/step"]), f["complete"][()]), (4, 1))

    def several(self, optimizers, steps, given=True, scaled=False):
        """Six updates of two layers, in which those optimizers step that `steps(update)` names; the
        first loss overflows where it is `scaled`. Returns what the recorder warned of."""
        torch.manual_seed(3)
        nets = [torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)]
        some = optimizers(nets)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, enabled=scaled)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            with twinstep.Recorder(nets, some if given else None, path=self.path, every=1,
                                   quiet=True) as recorder:
                for k in range(6):
                    loss = nets[1](nets[0](torch.ones(2, 4))).square().mean()
                    scaler.scale(loss * (float("inf") if scaled and k == 0 else 1)).backward()
                    for i in steps(k):
                        scaler.step(some[i])
                    scaler.update()
                    for o in some:
                        o.zero_grad()
                    recorder.update()
        return [str(w.message) for w in seen if "twinstep" in str(w.message)]

    @staticmethod
    def one_with_groups(nets):
        return [torch.optim.SGD([{"params": net.parameters(), "lr": 0.25 * (i + 1)}
                                 for i, net in enumerate(nets)])]

    @staticmethod
    def one_each(nets):
        return [torch.optim.SGD(net.parameters(), lr=0.25 * (i + 1)) for i, net in enumerate(nets)]

    def check_rates(self, *wanted):
        rates, step = read(self.path, "lr_applied", "step")
        self.assertEqual(step, list(range(1, 7)))
        np.testing.assert_array_equal(rates, [[np.nan if r is None else r for r in row]
                                              for row in wanted])
        with h5py.File(self.path) as f:
            self.assertEqual(f["complete"][()], 1)

    def test_verify_a_scaler_that_skips_the_first_update(self):
        for given in (True, False):     # not given: seen where its gradients are unscaled
            self.assertEqual(self.several(self.one_with_groups, lambda k: [0], given, True), [])
            self.check_rates([None, None], *[[0.25, 0.5]] * 5)
            skipped, groups = read(self.path, "skipped", "tensors/group")
            self.assertEqual((skipped, groups), ([1, 0, 0, 0, 0, 0], [0, 0, 1, 1]))
            with h5py.File(self.path) as f:
                self.assertIn("optimizer", f["runs/main"].attrs["configuration"])
            os.remove(self.path)

    def test_verify_optimizers_that_alternate(self):
        self.assertEqual(self.several(self.one_each, lambda k: [k % 2]), [])
        self.check_rates(*[[0.25, None], [None, 0.5]] * 3)
        weights, state_of, norms = read(self.path, "tensors/digest_parameter", "digest_state",
                                        "param_norm")
        self.assertTrue(all(bytes(d) != bytes(32) for row in weights for d in row))
        self.assertTrue(np.isfinite(norms).all())
        for k in range(1, 6):           # what did not step is what it was
            still = [0, 1] if k % 2 else [2, 3]
            for i in range(4):
                (self.assertEqual if i in still else self.assertNotEqual)(
                    weights[k][i], weights[k - 1][i], (k, i))
        os.remove(self.path)

        def with_moments(nets):
            return [torch.optim.SGD(net.parameters(), lr=0.25, momentum=0.5) for net in nets]
        self.assertEqual(self.several(with_moments, lambda k: [k % 2] if k < 4 else []), [])
        state_of, weights = read(self.path, "digest_state", "tensors/digest_parameter")
        self.assertNotEqual(state_of[3], state_of[2])
        self.assertEqual(weights[5], weights[3])
        self.assertEqual(state_of[5], state_of[4])      # nothing steps: the same moments, digested
        self.assertNotEqual(bytes(state_of[5]), bytes(32))

    def test_verify_the_state_does_not_tell_in_which_order_optimizers_step(self):
        from twinstep.record import digest

        def with_moments(nets):
            return [torch.optim.AdamW(net.parameters(), lr=0.25) for net in nets]
        found = []
        for steps in (lambda k: [0, 1], lambda k: [1, 0]):
            self.assertEqual(self.several(with_moments, steps), [])
            found.append(read(self.path, "digest_state"))
            os.remove(self.path)
        self.assertEqual(found[0], found[1])
        self.assertEqual(len(set(map(bytes, found[0]))), 6)
        # and it is the list that docs/FOREIGN.md says, here of the first update
        torch.manual_seed(3)
        nets = [torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)]
        some = with_moments(nets)
        nets[1](nets[0](torch.ones(2, 4))).square().mean().backward()
        for optimizer in reversed(some):
            optimizer.step()

        def keyed(name, t):
            total = digest.load()[0](t.data_ptr(), 4, 0, t.numel())
            return digest.close(name, "f32", t.shape, total)
        named = [(f"{i}.{name}", p, some[i].state[p]) for i in range(2)
                 for name, p in nets[i].named_parameters()]
        made = digest.listed("state", [keyed(name, p) for name, p, _ in named] +
                             [keyed(f"{name}/{key}", held[key]) for name, _, held in named
                              for key in ("exp_avg", "exp_avg_sq", "step")])
        self.assertEqual(bytes(found[0][0]), made)

    def test_verify_a_norm_that_is_told_stands(self):
        """Nobody clips, so the recorder measures a norm of its own; what the caller says counts."""
        model, optimizer, _ = parts()
        with twinstep.Recorder(model, optimizer, path=self.path, quiet=True) as recorder:
            for k in range(2):
                loss_of(model).backward()
                optimizer.step()
                optimizer.zero_grad()
                recorder.update(grad_norm=7.0 + k)
        self.assertEqual(read(self.path, "grad_norm"), [7.0, 8.0])
        os.remove(self.path)
        with twinstep.Recorder(model, optimizer, path=self.path, quiet=True) as recorder:
            for k in range(2):
                loss_of(model).backward()
                recorder.before_step(optimizer.param_groups)
                recorder.after_step(grad_norm=3.0 + k)
                optimizer.zero_grad()
                recorder.update()
        self.assertEqual(read(self.path, "grad_norm"), [3.0, 4.0])

    def test_verify_an_optimizer_that_starts_later(self):
        self.assertEqual(self.several(self.one_each, lambda k: [1] if k < 3 else [1, 0]), [])
        self.check_rates(*[[None, 0.5]] * 3, *[[0.25, 0.5]] * 3)
        os.remove(self.path)

        def with_more(nets):            # a group of weights that are none of the model's
            first, last = self.one_each(nets)
            last.add_param_group({"params": [torch.nn.Parameter(torch.ones(1))], "lr": 0.75})
            return [first, last]
        self.assertEqual(self.several(with_more, lambda k: [0] if k < 3 else [0, 1]), [])
        self.check_rates(*[[0.25, None, None]] * 3, *[[0.25, 0.5, 0.75]] * 3)

    def test_verify_a_first_step_after_the_first_row(self):
        """None is given: the first one is the recording's own where there are columns for it."""
        def one(nets):
            return [torch.optim.SGD([p for net in nets for p in net.parameters()], lr=0.25)]

        def later(k):
            return [0] if k else []
        self.assertEqual(self.several(one, later, given=False), [])
        self.check_rates([None], *[[0.25]] * 5)
        os.remove(self.path)
        said = self.several(self.one_with_groups, later, given=False)
        self.assertEqual(len(said), 1, said)
        self.assertIn("recording stopped after 1 update, and the training goes on: the optimizer "
                      "(SGD) first steps after the first update and has 2 groups, where the "
                      "recording has columns for 1; give it to Recorder", said[0])
        os.remove(self.path)
        said = self.several(self.one_each, lambda k: [[], [0], [0, 1]][min(k, 2)], given=False)
        self.assertEqual(len(said), 1, said)
        self.assertIn("after 2 updates, and the training goes on: another optimizer", said[0])
        os.remove(self.path)

        class Cast(torch.optim.SGD):    # the columns have the dtypes of the first row
            def step(self, closure=None):
                for group in self.param_groups:
                    for p in group["params"]:
                        p.data = p.data.double()
        said = self.several(lambda nets: [Cast(nets[0].parameters(), lr=0.25)],
                            lambda k: [0] if k == 5 else [])
        self.assertEqual(len(said), 1, said)
        self.assertIn("0.weight was torch.float32 [4, 4] in the first update", said[0])

    def test_verify_a_model_that_is_cast_before_its_first_update(self):
        model = torch.nn.Linear(4, 1)
        recorder = twinstep.Recorder(model, path=self.path, quiet=True).start()
        optimizer = torch.optim.SGD(model.double().parameters(), lr=0.1)
        for _ in range(2):
            model(torch.ones(3, 4, dtype=torch.float64)).mean().backward()
            optimizer.step()
            recorder.update()
        recorder.close()
        self.assertEqual(read(self.path, "step", "tensors/dtype"), [[1, 2], [b"f64", b"f64"]])

    def test_verify_what_has_no_digest_is_told(self):
        model = torch.nn.Linear(4, 1)
        model.turn = torch.nn.Parameter(torch.ones(2, dtype=torch.complex64))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with self.assertWarnsRegex(RuntimeWarning, "twinstep: turn: of a dtype that has no digest"):
            recorder = twinstep.Recorder(model, optimizer, path=self.path, quiet=True).start()
        for _ in range(2):
            (model(torch.ones(3, 4)).mean() + model.turn.abs().sum()).backward()
            optimizer.step()
            recorder.update()
        recorder.close()
        with h5py.File(self.path) as f:
            self.assertIn("not_recorded: turn (complex64)\n", f["runs/main"].attrs["configuration"])
            self.assertEqual(f["complete"][()], 1)

    def test_verify_gradients_of_several_optimizers(self):
        """Each optimizer's are taken when it steps: the other's are of the last update then."""
        from twinstep.record import digest

        def keyed(name, t):
            return digest.close(name, "f32", tuple(t.shape),
                                digest._sum_by_numpy(t.contiguous().data_ptr(), 4, 0, t.numel()))
        torch.manual_seed(1)
        nets = [torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)]
        names = ["0.weight", "0.bias", "1.weight", "1.bias"]
        steps = [torch.optim.Adam(net.parameters(), lr=1e-3 * (i + 1)) for i, net in enumerate(nets)]
        wanted, norms = [], []
        with twinstep.Recorder(nets, steps, path=self.path, every=1, quiet=True) as recorder:
            for _ in range(3):          # as adversaries are trained
                noise, taken = torch.randn(8, 4), [None, None]
                for i in (1, 0):
                    steps[i].zero_grad()
                    made = nets[0](noise)
                    (nets[1](made.detach()).mean() if i else -nets[1](made).mean()).backward()
                    taken[i] = [p.grad.clone() for p in nets[i].parameters()]
                    steps[i].step()
                whole = [g for some in taken for g in some]
                wanted.append([keyed(n, g) for n, g in zip(names, whole)])
                norms.append(float(torch.cat([g.flatten() for g in whole]).norm()))
                recorder.update()
        found, norm, given = read(self.path, "tensors/digest_gradient", "grad_norm",
                                  "grad_norm_taken")
        self.assertEqual([[bytes(d) for d in row] for row in found], wanted)
        for k in range(3):
            self.assertAlmostEqual(norm[k], norms[k], delta=1e-6)
            self.assertAlmostEqual(given[k], norms[k], delta=1e-6)
        both = self.path + "2"          # one backward pass and one clip for two optimizers
        with twinstep.Recorder(nets, steps, path=both, every=1, quiet=True) as recorder:
            for _ in range(2):
                for step in steps:
                    step.zero_grad()
                nets[1](nets[0](torch.randn(8, 4))).square().mean().backward()
                every = [p for net in nets for p in net.parameters()]
                norms = [float(torch.nn.utils.clip_grad_norm_(every, 1e-3))]
                for step in steps:
                    step.step()
                recorder.update()
        norm, coefficient, given, found = read(both, "grad_norm", "clip_coef", "grad_norm_taken",
                                               "tensors/digest_gradient")
        self.assertEqual(norm[1:], norms)
        self.assertAlmostEqual(given[1], norm[1] * coefficient[1], delta=1e-8)
        self.assertTrue(all(any(d) for d in found[1]))

    def test_verify_steps_inside_of_the_backward_pass(self):
        """An optimizer for each weight steps as soon as its gradient is there, and drops it."""
        def train(path):
            model, _, _ = parts()
            own = {p: torch.optim.AdamW([p], lr=1e-2, foreach=False) for p in model.parameters()}

            def step(p):
                norms.append(float(p.grad.norm()))
                own[p].step()
                own[p].zero_grad()
            for p in model.parameters():
                p.register_post_accumulate_grad_hook(step)
            recorder = path and twinstep.Recorder(model, list(own.values()), path=path, every=1,
                                                  quiet=True).start()
            for _ in range(3):
                loss = loss_of(model)
                losses.append(float(loss.detach()))
                loss.backward()
                if recorder:
                    recorder.update()
            if recorder:
                recorder.close()
            return [p.detach() for p in model.parameters()]
        norms, losses = [], []
        bare = train(None)
        norms, losses = [], []
        self.assertTrue(all(map(torch.equal, bare, train(self.path))))
        loss, norm, rates, gradients = read(self.path, "loss", "grad_norm", "lr_applied",
                                            "tensors/digest_gradient")
        self.assertEqual(loss, losses)
        for k in range(3):
            self.assertAlmostEqual(norm[k], sum(n * n for n in norms[4 * k:4 * k + 4]) ** 0.5, delta=1e-5)
            self.assertEqual(rates[k], [1e-2] * 4)
            self.assertTrue(all(map(any, gradients[k])))
        self.assertEqual(order(self.path), "forward backward optimize zero")

    def test_verify_clips_by_another_norm_and_several_clips(self):
        """Of a clip by the largest element the gradient's norm is recorded, and no factor, since
        that times the norm is no limit. Of two clips the factor is that of both; of a norm that is
        NaN it is NaN, as torch has it."""
        clip = torch.nn.utils.clip_grad_norm_
        for kind, max_norms, is_told in ((float("inf"), (0.1,), False), (1, (0.1,), False),
                                         (2.0, (0.5, 0.1), True), (2, (1e9,), True), (2, (0.1, None), False)):
            path = f"{self.path}{kind}{max_norms}"
            model, optimizer, _ = parts()
            truth = []
            with twinstep.Recorder(model, optimizer, path=path, every=1, quiet=True) as recorder:
                for k in range(3):
                    (loss_of(model) * (float("nan") if k == 2 and kind == 2.0 else 1)).backward()
                    before, factor = norm_of(model), 1.0
                    for max_norm in max_norms:
                        if max_norm is None:
                            torch.nn.utils.clip_grad_value_(model.parameters(), 0.01)
                        else:
                            now = clip(model.parameters(), max_norm, norm_type=kind)
                            factor *= float((max_norm / (now + 1e-6)).clamp(max=1.0))
                    truth.append((before, factor, norm_of(model)))
                    optimizer.step()
                    optimizer.zero_grad()
                    recorder.update()
                    if k == 1 and kind != 2.0:
                        break
            for (before, factor, after), *found in zip(truth, *read(path, "grad_norm", "clip_coef", "grad_norm_taken")):
                np.testing.assert_allclose(found, [before, factor if is_told else np.nan, after], rtol=1e-5)

    def test_verify_what_an_optimizer_takes_is_the_gradient_of_its_own_weights(self):
        model, _, _ = parts()
        head = torch.optim.SGD(model[2].parameters(), lr=0.1)
        truth = []
        with twinstep.Recorder(model, head, path=self.path, every=1, quiet=True) as recorder:
            for _ in range(3):
                loss_of(model).backward()
                truth.append((norm_of(model), norm_of(model[2])))
                head.step()
                model.zero_grad()
                recorder.update()
        np.testing.assert_allclose(list(zip(*read(self.path, "grad_norm", "grad_norm_taken"))), truth, rtol=1e-5)
        self.assertGreater(truth[0][0], 1.01 * truth[0][1])

    def test_verify_two_steps_in_a_row_are_told(self):
        """A closure that LBFGS calls several times is one step, and so are two optimizers."""
        def train(path, steps, kind=torch.optim.SGD):
            model, _, _ = parts()
            optimizer = kind(model.parameters(), lr=0.01)
            closure = (lambda: (optimizer.zero_grad(), loss_of(model).backward(), torch.zeros(()))[2]) \
                if kind is torch.optim.LBFGS else None
            with twinstep.Recorder(model, optimizer, path=path, quiet=True) as recorder:
                for _ in range(2):
                    for _ in range(steps):
                        if closure is None:
                            loss_of(model).backward()
                        optimizer.step(*[closure] * (closure is not None))
                        optimizer.zero_grad()
                    recorder.update()
        told = self.said(lambda: train(self.path, 2))
        self.assertEqual(len(told), 1)
        self.assertIn("update 1: SGD stepped more than once between two calls of update()", told[0])
        for kind in (torch.optim.SGD, torch.optim.LBFGS):
            self.assertEqual(self.said(lambda: train(self.path + kind.__name__, 1, kind)), [])

    def test_verify_a_step_without_a_backward_pass_is_told(self):
        """Of gradients that torch.func made within a transform, and of what the model is given
        there, nothing can be read, and the recording goes on."""
        def train(path, **said):
            model, optimizer, _ = parts()
            x = torch.randn(8, 8)
            with twinstep.Recorder(model, optimizer, path=path, quiet=True) as recorder:
                for _ in range(2):
                    weights = {n: p.detach() for n, p in model.named_parameters()}
                    made = torch.func.grad(lambda w: torch.func.functional_call(model, w, (x,)).square()
                                           .mean())(weights)
                    for n, p in model.named_parameters():
                        p.grad = made[n]
                    optimizer.step()
                    recorder.update(**said)
        told = self.said(lambda: train(self.path)), self.said(lambda: train(self.path + "2", loss=1.0))
        self.assertEqual(list(map(len, told)), [2, 1])
        for some in told:
            self.assertIn(".0: without memory of its own", some[0])
        self.assertIn("update 1: an optimizer stepped, and no backward pass of the model was seen", told[0][1])
        for path in (self.path, self.path + "2"):
            self.assertEqual(read(path, "step"), [1, 2])

    def test_verify_a_closure_that_drops_what_was_before_it(self):
        """The class SAM that is around: it moves the weights by the gradient that is there, drops it,
        and calls its closure. The loss is that of the weights that the update began with."""
        class Sharp(torch.optim.SGD):
            def step(self, closure=None):
                with torch.no_grad():
                    weights = [p for g in self.param_groups for p in g["params"]]
                    moves = [0.05 * p.grad for p in weights]
                    for p, move in zip(weights, moves):
                        p.add_(move)
                    self.zero_grad()
                    with torch.enable_grad():
                        closure()
                    for p, move in zip(weights, moves):
                        p.sub_(move)
                super().step()
        model, _, _ = parts()
        # torch calls hooks of a class of which there was an optimizer: both steps tell of themselves
        torch.optim.SGD(model.parameters(), lr=0.1)
        optimizer = Sharp(model.parameters(), lr=0.1)
        truth = []
        with twinstep.Recorder(model, optimizer, path=self.path, quiet=True) as recorder:
            for _ in range(3):
                loss = loss_of(model)
                truth.append(loss.item())
                loss.backward()
                optimizer.step(lambda: loss_of(model).backward())
                optimizer.zero_grad()
                recorder.update()
        np.testing.assert_allclose(read(self.path, "loss"), truth, rtol=1e-6)
        self.assertEqual(read(self.path, "skipped"), [0, 0, 0])
        with h5py.File(self.path) as f:
            self.assertEqual(f["complete"][()], 1)

    def test_verify_a_model_that_is_checkpointed_as_a_whole_is_given_the_same_batches(self):
        roots = []
        for kind in (None, False, True):
            path = f"{self.path}{kind}"
            model, optimizer, _ = parts()
            with twinstep.Recorder(model, optimizer, path=path, quiet=True) as recorder:
                for _ in range(3):
                    call = model if kind is None else lambda x, kind=kind, model=model: \
                        torch.utils.checkpoint.checkpoint(model, x.requires_grad_(), use_reentrant=kind)
                    loss_of(call).backward()
                    optimizer.step()
                    optimizer.zero_grad()
                    recorder.update()
            self.assertEqual(order(path), "forward backward optimize zero")
            roots.append(read(path, "digest_batch", "tensors/digest_parameter", "loss"))
        self.assertEqual(roots[1], roots[0])
        self.assertEqual(roots[2], roots[0])

    def test_verify_a_pass_of_another_thread_is_not_looked_at(self):
        """While another training goes backward in a thread of its own, gradients of this one come and
        go. They are neither counted as its, nor read there, which would end the process now and
        then: torch takes no care of a gradient that one thread reads and another one drops."""
        model, optimizer, _ = parts()
        other = torch.nn.Linear(8, 1)
        truth, marks = [], []

        def passes():
            loss = other(torch.randn(4, 8)).mean()
            loss.register_hook(lambda _: [p.grad.add_(0) for p in model.parameters()] and None)
            loss.backward()
        with twinstep.Recorder(model, optimizer, path=self.path, quiet=True) as recorder:
            mark = recorder._mark
            recorder._mark = lambda: marks.append(threading.get_ident()) or mark()
            for _ in range(3):
                loss = loss_of(model)
                truth.append(loss.item())
                loss.backward()
                thread = threading.Thread(target=passes)
                thread.start()
                thread.join()
                optimizer.step()
                optimizer.zero_grad()
                recorder.update()
        self.assertEqual(set(marks), {threading.get_ident()})
        np.testing.assert_allclose(read(self.path, "loss"), truth, rtol=1e-6)

    def test_verify_a_forked_process_records_nothing(self):
        model, optimizer, _ = parts()
        threads = torch.get_num_threads()
        torch.set_num_threads(1)        # OpenMP's threads do not survive a fork
        self.addCleanup(torch.set_num_threads, threads)
        with twinstep.Recorder(model, optimizer, path=self.path, quiet=True) as recorder:
            for k in range(3):
                if k == 1 and (child := os.fork()) == 0:
                    try:
                        for _ in range(2):
                            loss_of(model).backward()
                            optimizer.step()
                            recorder.update()
                        recorder.close()
                    finally:
                        os._exit(0)
                loss_of(model).backward()
                optimizer.step()
                recorder.update()
            self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(read(self.path, "step"), [1, 2, 3])
        with h5py.File(self.path) as f:
            self.assertEqual(f["complete"][()], 1)

    def test_verify_a_callback_that_is_copied_is_one(self):
        import copy
        import pickle
        made = twinstep.TwinstepCallback(self.path, every=3)
        for again in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
            self.assertEqual((again.path, again.options, again.recorder), (self.path, {"every": 3}, None))

    def test_verify_a_model_that_is_copied_or_saved_is_as_without(self):
        import copy
        saved = os.path.join(self.folder.name, "model.pt")

        def train(path, copies):
            model, optimizer, _ = parts()
            with twinstep.Recorder(model, optimizer, path=path, quiet=True) as recorder:
                for _ in range(3):
                    loss = loss_of(model)
                    if copies:
                        state = torch.get_rng_state()
                        target = copy.deepcopy(model)
                        target(torch.ones(1, 8))        # in training, as the model is
                        torch.compile(target, backend="eager", fullgraph=True)(torch.ones(1, 8))
                        torch.save(model, saved)
                        torch.set_rng_state(state)
                    loss.backward()
                    optimizer.step()
                    optimizer.zero_grad()
                    recorder.update()
        other = os.path.join(self.folder.name, "b.h5")
        train(self.path, False)
        train(other, True)
        names = ("digest_batch", "loss", "phases/place", "tensors/digest_parameter", "step")
        self.assertEqual(len(read(other, "step")), 3)
        self.assertEqual(read(other, *names), read(self.path, *names))
        clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        text = ("import sys; sys.modules['twinstep'] = None; import torch\n"
                f"model = torch.load({saved!r}, weights_only=False); model(torch.ones(1, 8))")
        done = subprocess.run([sys.executable, "-c", text], env=clean, capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_verify_weights_that_move_behind_the_step(self):
        """Clamped through `.data`, as a critic's are: the row has what the update leaves."""
        from twinstep.record import digest
        model, optimizer, _ = parts()
        weights = []
        with twinstep.Recorder(model, optimizer, path=self.path, every=1, quiet=True) as recorder:
            for _ in range(3):
                loss_of(model).backward()
                optimizer.step()
                optimizer.zero_grad()
                for p in model.parameters():
                    p.data.clamp_(-0.05, 0.05)
                for s in optimizer.state.values():
                    s["exp_avg"].zero_()
                recorder.update()
                weights.append([(name, p.detach().clone()) for name, p in model.named_parameters()])
        found, states, norms = read(self.path, "tensors/digest_parameter", "digest_state",
                                    "param_norm")

        def keyed(name, t):
            return digest.close(name, "f32", t.shape, digest.load()[0](t.data_ptr(), 4, 0, t.numel()))
        for k, row in enumerate(weights):
            self.assertEqual(list(map(bytes, found[k])), [keyed(name, p) for name, p in row])
            self.assertAlmostEqual(norms[k], sum(p.double().square().sum() for _, p in row) ** 0.5,
                                   delta=1e-6)
        left = [(name, key, optimizer.state[p][key]) for name, p in model.named_parameters()
                for key in ("exp_avg", "exp_avg_sq", "step")]
        self.assertEqual(bytes(states[-1]), digest.listed("state", [
            *(keyed(name, p) for name, p in weights[-1]),
            *(keyed(f"{name}/{key}", t) for name, key, t in left)]))

    def test_verify_steps_that_nobody_sees_are_no_skips(self):
        def train(moves, tells):
            model, _, _ = parts()
            with warnings.catch_warnings(record=True) as seen, \
                    twinstep.Recorder(model, path=self.path, quiet=True) as recorder:
                warnings.simplefilter("always")
                for k in range(4):
                    model.zero_grad()
                    loss_of(model).backward()
                    if tells:
                        recorder.before_step([{"lr": 0.1}])
                    with torch.no_grad():
                        for p in model.parameters() if moves[k] else ():
                            p -= 0.1 * p.grad
                    if tells:
                        recorder.after_step()
                    recorder.update()
            said = [str(w.message) for w in seen if "no step of an optimizer" in str(w.message)]
            found = read(self.path, "skipped", "lr_applied")
            os.remove(self.path)
            return found[0], [r for r, in found[1]], len(said)
        skipped, rates, said = train([1, 1, 0, 1], False)
        self.assertEqual((skipped, said), ([-1, -1, 1, -1], 1))
        self.assertTrue(np.isnan(rates).all())
        self.assertEqual(train([0, 0, 1, 0], False)[0], [1, 1, -1, 1])      # from the first one on
        self.assertEqual(train([1, 1, 1, 1], True), ([0] * 4, [0.1] * 4, 0))
        # one that torch would tell of, and that does not step, is a skip until weights move
        model, optimizer, _ = parts()
        with warnings.catch_warnings(), \
                twinstep.Recorder(model, optimizer, path=self.path, quiet=True) as recorder:
            warnings.simplefilter("ignore")
            for k in range(4):
                loss_of(model).backward()
                if k == 2:
                    model[0].weight.data += 1.0
                if k == 3:
                    optimizer.step()
                recorder.update()
        self.assertEqual(read(self.path, "skipped"), [1, 1, -1, 0])

    def test_verify_a_step_that_is_compiled_is_seen(self):
        model, optimizer, _ = parts()
        step = torch.compile(lambda: optimizer.step(), backend="eager")
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            with twinstep.Recorder(model, optimizer, path=self.path, quiet=True) as recorder:
                for _ in range(3):
                    loss_of(model).backward()
                    step()
                    optimizer.zero_grad()
                    recorder.update()
        self.assertEqual([str(w.message) for w in seen if "twinstep" in str(w.message)], [])
        rates, skipped = read(self.path, "lr_applied", "skipped")
        self.assertEqual((rates, skipped), ([[1e-2]] * 3, [0] * 3))
        self.assertEqual(order(self.path), "forward backward optimize zero")

    def test_verify_a_backward_pass_of_several_losses(self):
        model, optimizer, _ = parts()
        sums = []
        with twinstep.Recorder(model, optimizer, path=self.path, quiet=True) as recorder:
            for _ in range(2):
                some = [loss_of(model), loss_of(model)]
                torch.autograd.backward(some)
                optimizer.step()
                optimizer.zero_grad()
                recorder.update()
                sums.append(sum(loss.item() for loss in some))
        self.assertEqual(read(self.path, "loss"), sums)

    def test_verify_a_loss_that_nobody_saw_is_no_nan(self):
        def train(back, told=False, times=1.0):
            model, optimizer, _ = parts()
            with warnings.catch_warnings(record=True) as seen, \
                    twinstep.Recorder(model, optimizer, path=self.path, quiet=True) as recorder:
                warnings.simplefilter("always")
                for _ in range(3):
                    x = torch.randn(8, 8)
                    losses = (model(x) - x.sum(1, keepdim=True)).square() * times
                    back(model, losses)
                    optimizer.step()
                    optimizer.zero_grad()
                    recorder.update(loss=losses.mean() if told else None)
            said = self.program("doctor", self.path).stdout
            with h5py.File(self.path) as f:
                has = "loss" in f["runs/main/steps"]
            os.remove(self.path)
            return has, len([w for w in seen if "no scalar" in str(w.message)]), \
                "loss_not_finite: certain" in said

        def vector(model, losses):
            losses.backward(torch.full_like(losses, 1 / len(losses)))

        def assigned(model, losses):
            some = list(model.parameters())
            for p, grad in zip(some, torch.autograd.grad(losses.mean(), some)):
                p.grad = grad
        self.assertEqual(train(vector), (False, 1, False))
        self.assertEqual(train(vector, told=True), (True, 0, False))
        self.assertEqual(train(assigned), (True, 0, False))
        self.assertEqual(train(assigned, told=True), (True, 0, False))
        self.assertEqual(train(lambda _, losses: losses.mean().backward(), times=float("nan")),
                         (True, 0, True))

    def test_verify_errors_of_its_own_end_the_recording_alone(self):
        model, optimizer, _ = parts()
        recorder = twinstep.Recorder(model, optimizer, path=self.path, quiet=True).start()
        recorder._read_groups = None
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            for _ in range(3):
                loss_of(model).backward()
                optimizer.step()
                recorder.update()
            recorder.close()
        self.assertEqual(len([w for w in seen if "recording stopped" in str(w.message)]), 1)
        again = twinstep.Recorder(model, optimizer, path=self.path + "2", quiet=True).start()
        again._read_groups = None
        with warnings.catch_warnings():
            warnings.simplefilter("error")      # python -W error
            loss_of(model).backward()
            optimizer.step()
        again.close()
        self.assertFalse(hasattr(torch.autograd.backward, "__wrapped__"))     # all is put back

    def said(self, call):
        """What `call` warns of."""
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            call()
        return [str(w.message) for w in seen if str(w.message).startswith("twinstep")]

    def test_verify_calls_that_record_nothing_are_told(self):
        def updates(recorder, model, optimizer, ends=True):
            for _ in range(2):
                loss_of(model).backward()
                optimizer.step()
                if ends:
                    recorder.update()

        def without_update():
            model, optimizer, _ = parts()
            with twinstep.Recorder(model, optimizer, path=self.path) as recorder:
                updates(recorder, model, optimizer, ends=False)

        def without_steps():
            model, optimizer, _ = parts()
            with twinstep.Recorder(model, optimizer, path=self.path), torch.no_grad():
                model(torch.randn(8, 8))

        def by_an_error():
            model, optimizer, _ = parts()
            with contextlib.suppress(ZeroDivisionError), \
                    twinstep.Recorder(model, optimizer, path=self.path):
                1 / 0

        def before_start():
            model, optimizer, _ = parts()
            recorder = twinstep.Recorder(model, optimizer, path=self.path)
            updates(recorder, model, optimizer)
            recorder.start()

        def twice():
            model, optimizer, _ = parts()
            recorder = twinstep.Recorder(model, optimizer, path=self.path, quiet=True)
            for _ in range(2):
                with recorder:
                    updates(recorder, model, optimizer)

        for call, words in ((without_update, "the optimizer stepped, but no update was ended"),
                            (without_steps, "no update was ended, and no step of an optimizer"),
                            (before_start, "after 0 updates, and the training goes on: update() was "
                             "called before start()")):
            told = self.said(call)
            self.assertIn(words, told[0], call.__name__)
            self.assertEqual(len(told), 1 + (call is before_start), told)
            self.assertEqual(os.listdir(self.folder.name), [], call.__name__)
        self.assertEqual(self.said(by_an_error), [])
        told = self.said(twice)
        self.assertEqual(len(told), 1)
        self.assertIn(f"the recorder of {self.path} has ended, so nothing more is recorded", told[0])
        self.assertEqual(list(read(self.path, "step")), [1, 2])

    def test_verify_a_step_behind_the_last_update_is_told(self):
        """update() at the head of a loop: the last step belongs to no row. A loop that an error ends,
        and one whose last update is ended, lack nothing."""
        def train(path, at_head, fails=False):
            model, optimizer, _ = parts()
            with contextlib.suppress(ZeroDivisionError), \
                    twinstep.Recorder(model, optimizer, path=path, quiet=True) as recorder:
                for k in range(3):
                    if at_head and k > 0:
                        recorder.update()
                    loss_of(model).backward()
                    optimizer.step()
                    optimizer.zero_grad()
                    if not at_head:
                        recorder.update()
                if fails:
                    1 / 0
        told = self.said(lambda: train(self.path, True))
        self.assertEqual(len(told), 1)
        self.assertIn("the optimizer stepped behind update 2, the last one that was ended", told[0])
        self.assertEqual(list(read(self.path, "step")), [1, 2])
        self.assertEqual(self.said(lambda: train(self.path + "2", True, fails=True)), [])
        self.assertEqual(self.said(lambda: train(self.path + "3", False)), [])

    def test_verify_what_is_no_model_and_no_optimizer_is_refused(self):
        model, optimizer, _ = parts()
        for args, words in (((optimizer, model), "model: expected a torch.nn.Module or a list of "
                             "them, got AdamW; the model is the first argument"),
                            (([model, "bert"], optimizer), "of them, got str"),
                            ((model, model), "optimizer: expected an optimizer, got Sequential")):
            with self.assertRaises(TypeError) as caught:
                twinstep.Recorder(*args, path=self.path)
            self.assertIn(words, str(caught.exception))
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_verify_a_path_below_a_file_is_refused(self):
        model, optimizer, _ = parts()
        pathlib.Path(self.path).touch()
        with self.assertRaisesRegex(OSError, "a.h5: no folder that can be written to"):
            twinstep.Recorder(model, optimizer, path=f"{self.path}/a.h5")

    def test_verify_an_optimizer_of_other_weights_is_told(self):
        """The model is made anew behind its optimizer. One that holds a part of it is none, and
        neither is one whose first group alone is another model's."""
        model, _, _ = parts()
        other, optimizer, _ = parts()
        head = torch.optim.SGD(list(model[2].parameters()), lr=0.1)
        mixed = torch.optim.SGD([{"params": list(other.parameters())},
                                 {"params": list(model.parameters())}], lr=0.1)

        def train(used, path):
            with twinstep.Recorder(model, used, path=path, quiet=True) as recorder:
                for _ in range(3):
                    loss_of(model).backward()
                    used.step()
                    recorder.update()
        told = self.said(lambda: train(optimizer, self.path))
        self.assertEqual(len(told), 1)
        self.assertIn("the optimizer holds none of the weights of the model", told[0])
        self.assertEqual(list(read(self.path, "step")), [1, 2, 3])
        self.assertEqual(self.said(lambda: train(head, self.path + "2")), [])
        self.assertEqual(self.said(lambda: train(mixed, self.path + "3")), [])

    def test_verify_kills(self):
        script = pathlib.Path(self.folder.name) / "train.py"
        script.write_text(textwrap.dedent("""
            import os, signal, sys, time, torch, twinstep
            what, at, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
            torch.manual_seed(3)
            model = torch.nn.Linear(8, 1)
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
            r = twinstep.Recorder(model, optimizer, path=path, quiet=True).start()
            for k in range(30):
                if k == at:
                    if what == "child" and at > 1:      # its rows are in the file
                        for _ in range(600):
                            try:
                                if len(twinstep.load(path + ".part").runs["main"].step) == at:
                                    break
                            except (OSError, ValueError, KeyError):
                                pass
                            time.sleep(0.1)
                    os.kill(os.getpid() if what == "parent" else r._channel.process.pid,
                            signal.SIGKILL)
                model(torch.randn(4, 8)).square().mean().backward()
                optimizer.step(); optimizer.zero_grad(); r.update()
            r.close()
            print("trained", k + 1)
            """), encoding="utf-8")
        for what, at in (("parent", 1), ("parent", 17), ("child", 1), ("child", 17)):
            path = os.path.join(self.folder.name, f"{what}{at}.h5")
            done = subprocess.run([sys.executable, str(script), what, str(at), path],
                                  capture_output=True, text=True, check=False)
            if what == "child":
                self.assertEqual(done.stdout, "trained 30\n", done.stderr)
                self.assertEqual(done.stderr.count("recording stopped"), 1, done.stderr)
                self.assertFalse(os.path.exists(path))
                if at == 1:             # killed before or after it began the file
                    continue
                trace = twinstep.load(path + ".part")       # as the killed writer left it
                self.assertEqual(trace.runs["main"].step.tolist(), list(range(1, at + 1)))
                self.assertTrue(np.isfinite(trace.runs["main"]["loss"].values).all())
                self.assertFalse(trace.complete)
                whole = self.program("recover", path + ".part")
                self.assertEqual(whole.returncode, 0, whole.stderr)
                self.assertEqual(read(path, "step"), list(range(1, at + 1)))
                continue
            self.assertEqual(done.returncode, -signal.SIGKILL)
            for _ in range(100):    # the writer, which lives on for a moment, names what it has
                if os.path.exists(path):
                    break
                signal.sigtimedwait([], 0.1)
            self.assertEqual(read(path, "step"), list(range(1, at + 1)))
            self.assertEqual(self.program("import", "--check", path).returncode, 0)

    def test_validate_trl(self):
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
        import record_trl
        bare, held = record_trl.train(None, False), record_trl.train(self.path, False)
        for name, value in bare.model.state_dict().items():
            self.assertTrue(torch.equal(value, held.model.state_dict()[name]), name)
        for a, b in zip(bare.state.log_history[:10], held.state.log_history[:10]):
            self.assertEqual(a["loss"], b["loss"])
        logged, applied = read(self.path, "lr_logged", "lr_applied")
        self.assertEqual(logged, applied)

    def test_validate_fsdp2(self):
        script = pathlib.Path(self.folder.name) / "shard.py"
        script.write_text(textwrap.dedent("""
            import os, sys, torch, torch.distributed as dist, twinstep
            from torch.distributed.fsdp import fully_shard
            def work(rank, world, folder):
                torch.set_num_threads(1)
                dist.init_process_group("gloo", init_method=f"file://{folder}/meet{world}",
                                        rank=rank, world_size=world)
                mesh = dist.device_mesh.init_device_mesh("cpu", (world,))
                torch.manual_seed(3)
                model = torch.nn.Sequential(torch.nn.Linear(8, 15), torch.nn.Linear(15, 1))
                for layer in model:
                    fully_shard(layer, mesh=mesh)
                fully_shard(model, mesh=mesh)
                optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
                with twinstep.Recorder(model, optimizer, path=f"{folder}/w{world}.h5", every=1,
                                       quiet=True) as r:
                    for k in range(3):
                        torch.manual_seed(100 + k)      # every rank has the same rows
                        model(torch.randn(8, 8)).square().mean().backward()
                        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
                        optimizer.step(); optimizer.zero_grad(); r.update()
                dist.destroy_process_group()
            if __name__ == "__main__":
                for world in (1, 2):
                    torch.multiprocessing.spawn(work, (world, sys.argv[1]), nprocs=world)
            """), encoding="utf-8")
        done = subprocess.run([sys.executable, str(script), self.folder.name], check=False,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        names = ("tensors/digest_parameter", "grad_norm", "grad_norm_taken", "phases/place")
        whole = read(os.path.join(self.folder.name, "w1.h5"), *names)
        for rank in (0, 1):     # shards add up to the digests and norms of the whole tensors
            shard = read(os.path.join(self.folder.name, f"w2.rank000{rank}.h5"), *names)
            self.assertEqual(whole[0][0], shard[0][0])
            self.assertEqual(whole[3], shard[3])
            for a, b in zip(whole[1] + whole[2], shard[1] + shard[2]):
                self.assertAlmostEqual(a, b, delta=1e-5 * a)
        merged = twinstep.merge(*(os.path.join(self.folder.name, f"w2.rank000{rank}.h5")
                                  for rank in (0, 1)), output=self.path)
        self.assertEqual((merged.updates, merged.complete, merged.notes), (3, True, ()))
        self.assertEqual(read(self.path, names[0]), whole[0])
        self.assertEqual(self.program("import", "--check", self.path).returncode, 0)


if __name__ == "__main__":
    unittest.main()
