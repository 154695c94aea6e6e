# SPDX-License-Identifier: Apache-2.0
"""The learning rate and the decay that an optimizer really applied, from a copy of the old weights.

A step is n = o - a u - c o with the direction u from the optimizer's state after it, so a (the
rate) and c = a w (decoupled decay) follow by least squares over a group's elements, each weighed by
the unit in the last place of its stored dtype. The bound is what half a unit of rounding per
element can do to the estimate, and, where the state has fewer digits than f32, what its roundings
can do to u. Known: AdamW, Adam, SGD with momentum. Of others nothing is said (NaN), nor of states
in f16, whose numbers may be too small to have a relative bound."""
from __future__ import annotations

from typing import Any

import torch

from .tensors import local

BITS = {torch.float32: 23, torch.bfloat16: 7, torch.float16: 10, torch.float64: 52}


# Half units of the state's dtype that bound the roundings between the state and the step: of the
# moments, and of each operation on the way to the update where these round to that dtype, too.
ROUNDINGS = 8


def _slack(state: Any) -> float | None:
    """The relative bound of u's error from the state's roundings; None: there is none."""
    kept = [state[k].dtype for k in ("exp_avg", "exp_avg_sq", "momentum_buffer")
            if state.get(k) is not None]
    if any(d not in BITS or d == torch.float16 for d in kept):
        return None
    return max((ROUNDINGS * 2.0 ** -(BITS[d] + 1) for d in kept if BITS[d] < 23), default=0.0)


def _count(step: Any) -> Any:
    """The optimizer's count of steps. That of a device stays there: reading it would wait for each
    tensor (fused and capturable optimizers keep one beside each)."""
    if isinstance(step, torch.Tensor) and local(step).device.type != "cpu":
        return local(step).double()
    return float(step)


def _direction(p: torch.Tensor, state: Any, group: Any) -> torch.Tensor | None:
    """u in f64, or None where the state does not tell it."""
    if "exp_avg" in state and "exp_avg_sq" in state and "betas" in group:
        t = _count(state["step"])
        b1, b2 = (float(b) for b in group["betas"])
        v = local(state.get("max_exp_avg_sq", state["exp_avg_sq"])).double()
        m = local(state["exp_avg"]).double() / (1 - b1 ** t)
        return m / ((v / (1 - b2 ** t)).sqrt() + float(group["eps"]))
    if state.get("momentum_buffer") is not None and not group.get("nesterov"):
        return local(state["momentum_buffer"]).double()
    return None


def _decoupled(optimizer: Any, group: Any) -> bool:
    if not float(group.get("weight_decay", 0)):
        return False
    return bool(group.get("decoupled_weight_decay", isinstance(optimizer, torch.optim.AdamW)))


def _ulp(o: torch.Tensor, n: torch.Tensor, bits: int) -> torch.Tensor:
    most = torch.maximum(o.abs(), n.abs())
    exponent = torch.frexp(most.clamp_min(1e-38)).exponent - 1
    return torch.ldexp(torch.ones_like(most), exponent - bits)


def _widened(bound: Any, a: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
    """The bound of an estimate whose direction is off by `share` of it; NaN where that says
    nothing. The true rate may be larger than the estimate by the bound."""
    return torch.where(share < 1, (bound + a.abs() * share) / (1 - share), torch.nan * a)


class Reader:
    """Keeps copies of the weights over one step, on their device, and reads the step from them."""

    def __init__(self) -> None:
        self.old: dict[int, torch.Tensor] = {}

    def keep(self, optimizer: Any) -> int:
        """Copies the weights of `optimizer`; returns how many bytes that are."""
        self.old.update({id(p): local(p.detach()).clone() for g in optimizer.param_groups
                         for p in g["params"] if p.grad is not None or id(p) in self.old
                         or p in optimizer.state})
        return sum(t.numel() * t.element_size() for t in self.old.values())

    def read(self, optimizer: Any) -> dict[tuple[str, int], torch.Tensor | float]:
        """{(column, group): value} of the groups whose step can be read; forgets the copies."""
        found: dict[tuple[str, int], torch.Tensor | float] = {}
        if self.old:
            for g, group in enumerate(optimizer.param_groups):
                found.update({(k, g): v for k, v in self._group(optimizer, group).items()})
        self.old.clear()
        return found

    def _elements(self, optimizer: Any, group: Any) -> Any:
        """Per tensor, in units of the last place: change, direction, old weight; and the share by
        which the direction may be off."""
        for p in group["params"]:
            state, o = optimizer.state.get(p, {}), self.old.get(id(p))
            if o is None or p.dtype not in BITS:
                continue
            u, slack = _direction(p, state, group), _slack(state)
            if u is None or slack is None:
                yield None
                return
            o, n = o.double(), local(p.detach()).double()
            w = 1 / _ulp(o, n, BITS[p.dtype])
            yield (n - o) * w, u * w, o * w, slack

    def _group(self, optimizer: Any, group: Any) -> dict[str, torch.Tensor | float]:
        two = _decoupled(optimizer, group)
        sums = None
        for part in self._elements(optimizer, group):
            if part is None:
                return {}
            d, u, o, slack = part
            s = torch.stack([(u * u).sum(), (u * o).sum(), (o * o).sum(), (u * d).sum(),
                             (o * d).sum(), (u * u).sum() * slack, (u * o).abs().sum() * slack])
            sums = s if sums is None else sums + s
        if sums is None:
            return {}
        uu, uo, oo, ud, od, ue, oe = sums
        if not two:
            a = -ud / uu
            bound = sum(0.5 * (u / uu).abs().sum()
                        for _, u, _, _ in self._elements(optimizer, group))
            return {"lr_readback": a,
                    "lr_readback_error": _widened(bound, a, ue / uu) + a.abs() * 2.0 ** -21}
        det = uu * oo - uo * uo
        a, c = -(ud * oo - od * uo) / det, -(od * uu - ud * uo) / det
        error_a = error_c = torch.zeros_like(a)
        for _, u, o, _ in self._elements(optimizer, group):  # two roundings: the decay, the step
            error_a = error_a + ((u * oo - o * uo) / det).abs().sum()
            error_c = error_c + ((o * uu - u * uo) / det).abs().sum()
        error_a = _widened(error_a, a, (ue * oo + oe * uo.abs()) / det)
        error_c = error_c + (a.abs() + error_a) * (oe * uu + ue * uo.abs()) / det
        error_a, error_c = error_a + a.abs() * 2.0 ** -21, error_c + c.abs() * 2.0 ** -21
        return {"lr_readback": a, "lr_readback_error": error_a, "wd_readback": c / a,
                "wd_readback_error": error_c / a.abs() + (c / (a * a)).abs() * error_a}
