# SPDX-License-Identifier: Apache-2.0
"""labels: torch

Trainings whose engine steps by itself and is told by `before_step` and `after_step`, and containers
of optimizers: no norm, group or loss is counted twice, and what an engine keeps in places of its own
(rates, scale, gradients) is seen. Stand-ins do what DeepSpeed, Megatron and torchtitan do;
test_record_engines_torch.py runs these themselves, where they are there."""
import os
import tempfile
import types
import unittest

import h5py
import numpy as np
import torch

import twinstep

CLIP = 0.1


class Told(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "a.h5")
        torch.manual_seed(3)
        self.model = torch.nn.Sequential(torch.nn.Linear(8, 12), torch.nn.Linear(12, 4))

    def loss(self, k):
        torch.manual_seed(100 + k)
        return self.model(torch.randn(8, 8)).square().mean()

    def recorder(self, *args, **kw):
        return twinstep.Recorder(self.model, *args, path=self.path, every=1, quiet=True, **kw)

    def columns(self):
        with h5py.File(self.path) as f:
            steps = f["runs/main/steps"]
            self.places = steps["phases/place"][()]
            return {n: steps[n][()] for n in ("loss", "grad_norm", "grad_norm_taken", "lr_applied",
                                              "loss_scale", "tensors/digest_gradient")}

    def order(self, update):
        """Places of forward, backward, optimize and schedule."""
        return [int(self.places[update][i]) for i in (0, 1, 4, 5)]

    def norm(self):
        return float(sum(p.grad.double().square().sum() for p in self.model.parameters()) ** 0.5)

    def clip(self):
        """As an engine clips: no function of torch's is called for it."""
        norm = self.norm()
        for p in self.model.parameters():
            p.grad.mul_(min(1.0, CLIP / norm))
        return norm

    def test_an_engine_with_an_optimizer_of_torch_inside(self):
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        norms, digests = [], {}
        for clips in (False, True):
            with self.recorder(optimizer) as recorder:
                for k in range(3):
                    self.loss(0).backward()
                    recorder.before_step(optimizer.param_groups)
                    norms.append(self.clip() if clips else self.norm())
                    if k == 1:      # moves nothing, so that all updates have the same gradients
                        optimizer.param_groups[0]["lr"] = 0.0
                    optimizer.step()
                    recorder.after_step(grad_norm=norms[-1] if k else None)
                    optimizer.zero_grad()
                    recorder.update()
            found = self.columns()
            np.testing.assert_allclose(found["grad_norm"], norms[-3:], rtol=1e-6)
            np.testing.assert_allclose(found["grad_norm_taken"],
                                       [CLIP] * 3 if clips else norms[-3:], rtol=1e-5)
            digests[clips] = found["tensors/digest_gradient"]
            os.remove(self.path)
            torch.manual_seed(3)
            for layer in self.model:
                layer.reset_parameters()
            optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        self.assertTrue(digests[True].any())
        # digests are of gradients before the clip, and those of update 1 are the same ones
        self.assertEqual(digests[False][0].tobytes(), digests[True][0].tobytes())

    def test_an_engine_with_masters_of_its_own(self):
        """Its groups hold other tensors. The rate of its groups tells where the schedule stepped,
        and a scheduler with DeepSpeed's or Megatron's count where the rate stays."""
        groups = [{"lr": 0.1}]
        for count in (None, "last_batch_iteration", "num_steps"):
            scheduler = types.SimpleNamespace(**({count: 0} if count else {}))
            with self.recorder(None, scheduler if count else None) as recorder:
                for k in range(3):
                    (self.loss(k) * 64).backward()
                    norm = self.norm() / 64
                    recorder.before_step(groups, loss_scale=64.0)
                    with torch.no_grad():
                        for p in self.model.parameters():
                            p -= groups[0]["lr"] * p.grad / 64 * min(1.0, CLIP / norm)
                    recorder.after_step(grad_norm=norm)
                    if count:
                        setattr(scheduler, count, k + 1)
                    else:
                        groups[0]["lr"] /= 2
                    self.model.zero_grad()
                    recorder.update()
            found = self.columns()
            for k in range(3):
                self.assertEqual(self.order(k), [0, 1, 2, 3], (count, k))
            np.testing.assert_allclose(found["lr_applied"][:, 0],
                                       [0.05 / 4] * 3 if count else [0.1, 0.05, 0.025])
            self.assertLess(found["loss"].max(), 2)         # not the scaled ones
            self.assertEqual(found["loss_scale"].tolist(), [64.0] * 3)
            # scaled gradients have no digest, and what the engine's clip left is not known
            self.assertFalse(found["tensors/digest_gradient"].any())
            self.assertTrue(np.isnan(found["grad_norm_taken"]).all())
            os.remove(self.path)

    def test_gradients_in_a_buffer(self):
        """As Megatron's DDP has them: a hook adds them to `main_grad`, and `grad` goes."""
        def add(p):
            p.main_grad.add_(p.grad)
            p.grad = None
        for p in self.model.parameters():
            p.main_grad = torch.zeros_like(p)
            p.register_post_accumulate_grad_hook(add)
        losses = []
        with self.recorder() as recorder:
            for k in range(3):
                for micro in range(2):
                    loss = self.loss(2 * k + micro) / 2
                    loss.backward()
                    losses.append(float(loss.detach()))
                recorder.before_step([{"lr": 0.1}])
                with torch.no_grad():
                    for p in self.model.parameters():
                        p -= 0.1 * p.main_grad
                        p.main_grad.zero_()
                recorder.after_step()
                recorder.update()
        np.testing.assert_allclose(self.columns()["loss"], np.reshape(losses, (3, 2)).sum(1),
                                   rtol=1e-6)
        self.assertEqual(self.order(0), [0, 1, 2, -1])

    def test_a_container_that_is_an_optimizer_itself(self):
        """As torchtitan's: it has called Optimizer.__init__, so its step calls hooks, too."""
        class Container(torch.optim.Optimizer):
            def __init__(self, optimizers):
                self.optimizers = optimizers
                super().__init__([p for o in optimizers for g in o.param_groups
                                  for p in g["params"]], {})

            def step(self, closure=None):
                for optimizer in self.optimizers:
                    optimizer.step()

            def zero_grad(self, set_to_none=True):
                for optimizer in self.optimizers:
                    optimizer.zero_grad(set_to_none)
        for several in (False, True):
            inside = [torch.optim.SGD(layer.parameters(), lr=0.1) for layer in self.model] \
                if several else [torch.optim.SGD(self.model.parameters(), lr=0.1)]
            container = Container(inside)
            norms = []
            for given in (container, None):
                norms.clear()
                with self.recorder(given) as recorder:
                    for k in range(3):
                        container.zero_grad()
                        self.loss(k).backward()
                        norms.append(self.norm())
                        container.step()
                        recorder.update()
                found = self.columns()
                self.assertEqual(found["lr_applied"].tolist(), [[0.1] * len(inside)] * 3)
                for name in ("grad_norm", "grad_norm_taken"):
                    np.testing.assert_allclose(found[name], norms, rtol=1e-6)
                os.remove(self.path)

    def test_a_backward_pass_under_a_mode_of_functions(self):
        """torch.autograd.backward calls itself then: the loss is counted once all the same."""
        losses = []
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        torch.set_default_device("cpu")
        self.addCleanup(torch.set_default_device, None)
        with self.recorder(optimizer) as recorder:
            for k in range(3):
                loss = self.loss(k)
                torch.autograd.backward(loss)
                losses.append(float(loss.detach()))
                optimizer.step()
                optimizer.zero_grad()
                recorder.update()
        np.testing.assert_allclose(self.columns()["loss"], losses, rtol=1e-6)


if __name__ == "__main__":
    unittest.main()
