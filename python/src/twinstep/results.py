# SPDX-License-Identifier: Apache-2.0
"""What the program answers, as frozen dataclasses. None: not measured, or not known.

`status` is the exit status: 0 as expected, 1 differs or expectation missed, 3 undecidable from this
evidence. `raw` is the whole JSON, as the program's --json prints it."""
import pathlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class First:
    """The first difference of two arms: update (from 1), phase of it, tensor."""
    step: int
    phase: str
    tensor: str
    micro_batch: int | None
    layer: int | None
    structure: str | None
    by: str
    undecided: str


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause. `share` is of the way between the arms (1 is all of it), in [low, high]."""
    cause: str
    share: float | None
    low: float | None
    high: float | None
    left: float | None
    left_low: float | None
    left_high: float | None
    alone: float | None
    alone_low: float | None
    alone_high: float | None
    moves: float | None
    acted_from: int | None
    places: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Floor:
    """How far apart runs of one configuration are. `kind`: exact, permutation, rank or none."""
    kind: str
    rerun_in_process: bool | None
    rerun_second_process: bool | None
    runs_baseline: int
    runs_test: int
    pairs_of_file: int
    distance: float | None
    largest_inside_an_arm: float | None
    p: float | None
    smallest_p: float | None
    alpha: float | None
    power_at_3_sigma: float | None
    loss_p: float | None


@dataclass(frozen=True, slots=True)
class Mark:
    """The way between the arms after an update, shared out: {cause: share}."""
    update: int
    distance: float | None
    response: float | None
    shares: dict[str, float | None]


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of the outputs, shared out: `whole` is the arms' gap, `values` {cause: part}."""
    measure: str
    whole: float | None
    values: dict[str, float | None]
    alone: dict[str, float | None]
    without: dict[str, float | None]
    ranks_otherwise: bool


@dataclass(frozen=True, slots=True)
class Reported:
    """The first number that the arms report differently: `values` of the baseline and the test."""
    update: int
    column: str
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Mixture:
    """How far a mixture of causes goes from the baseline, without the noise of runs, in [low,
    high]. `beyond`: farther than repeats do, by `p`."""
    size: float | None
    low: float | None
    high: float | None
    p: float | None
    beyond: bool


@dataclass(frozen=True, slots=True)
class MixtureCause:
    """The baseline with one cause only, and the test arm with it repaired."""
    cause: str
    alone: Mixture
    without: Mixture


@dataclass(frozen=True, slots=True)
class Mixtures:
    """Whether causes act of arms that lie inside the floor (docs/ATTRIBUTION.md). `unasked` says
    why that was not asked; "": it was, of `count` mixtures with `runs` of each."""
    unasked: str
    runs: int
    count: int
    beyond: int
    level: float | None
    arms_at_most: float | None
    causes: tuple[MixtureCause, ...]


@dataclass(frozen=True, slots=True)
class Beside:
    """The one cause that makes the gap, beside others that cancel, exactly or nearly."""
    cause: str
    cancel: tuple[str, ...]
    exactly: bool


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a pair of trainings shows (docs/ATTRIBUTION.md)."""
    name: str
    verdict: str
    reason: str
    updates: int
    first: First | None
    differs: tuple[str, ...]
    word: str
    game: str | None
    ranked_at: int | None
    causes: tuple[Cause, ...]
    coupled: bool
    diverged: tuple[int | None, ...]
    distance: float | None
    travel: float | None
    closure: str | None
    floor: Floor
    expectation: str
    missed: str
    measures: tuple[Measure, ...]
    marks: tuple[Mark, ...]
    why: tuple[str, ...]
    inert: tuple[str, ...]
    dropped: tuple[str, ...]
    hazards: tuple[str, ...]
    reported: Reported | None = None
    unbounded: tuple[int | None, ...] = (None, None)
    weights: str = "parameters"
    mixtures: Mixtures | None = None
    beside: Beside | None = None
    seal: str = "none"
    alike_updates: int = 0
    shared_updates: int = 0
    status: int = 0
    trace: pathlib.Path | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def cause(self) -> str | None:
        """The one that makes the gap beside others that cancel, else that with the largest share;
        None where nothing differs or was shared out."""
        if self.beside is not None:
            return self.beside.cause
        shared = [cause for cause in self.causes if cause.share is not None]
        return max(shared, key=lambda cause: abs(cause.share or 0.0)).cause if shared else None


@dataclass(frozen=True, slots=True)
class Fit:
    """A contract and schedule that give the LRs of a log (docs/LR.md). `text` says it in words."""
    contract: str
    schedule: str
    lr: float
    warmup: float
    steps: float | None
    min_lr_ratio: float | None
    stride: float
    bug: str | None
    max_error: float | None
    rms_error: float | None
    simplicity: float | None
    same_logged: int
    same_applied: int
    same_throughout: int
    text: str
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The first LR of a log that is not the expected one. `quantum`: the last printed place."""
    update: int
    line: int | None
    logged: float | None
    quantum: float
    expected: float | None


@dataclass(frozen=True, slots=True)
class LogCheck:
    """Whether a log holds the LRs that were meant. `passed` is None where it cannot be decided."""
    format: str
    values: int
    passed: bool | None = field(metadata={"key": "pass"})
    decidable: bool
    expected: Fit | None
    fitted: tuple[str, ...]
    from_log: tuple[str, ...]
    first_mismatch: Mismatch | None
    mismatches: int
    fits: tuple[Fit, ...]
    words: str | None = None
    bug: str | None = None
    rival: str | None = None
    needs: str | None = None
    untested: str | None = None
    log: str = ""
    status: int = 0
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class LogFit:
    """Every contract and schedule that explains the LRs of a log, simplest first."""
    log: str
    format: str
    values: int
    run_steps: float | None
    step_guessed: bool
    fits: tuple[Fit, ...]
    why: tuple[str, ...]
    status: int = 0
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Rate:
    """A number read from weights. `state`: read, at_most, at_least, unexplained or unknown."""
    state: str
    method: str | None
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class GroupReading:
    """What one parameter group's update applied, beside what the checkpoint promised."""
    verdict: str
    tensors: int
    lr: Rate
    lr_text: str
    promised: float | None
    next: float | None
    logged: float | None
    decay: Rate
    decay_text: str
    weight_decay: float | None
    weight_decay_rounded: float | None
    shrink: Rate
    residual: float | None
    agreeing: float | None
    weights: int
    moved: int
    inert: int
    inert_moved: int
    count: float | None
    betas: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What is odd about an update. `remark`: worth knowing, and no fault."""
    kind: str
    remark: bool
    group: int | None
    text: str


@dataclass(frozen=True, slots=True)
class UpdateReading:
    """What one update between two checkpoints did (docs/READBACK.md)."""
    before: str
    after: str
    update: float | None
    verdict: str
    kind: str
    optimizer: str
    names: str
    gradient_norm: float | None
    gradient_norm_error: float | None
    gradient_norm_why: str | None
    groups: tuple[GroupReading, ...]
    findings: tuple[Finding, ...]
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Readback:
    """The updates between consecutive checkpoints, in their order."""
    updates: tuple[UpdateReading, ...]
    status: int = 0
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Claim:
    """Whether one cause has its signature in log-probs: `state` named, no, or open (untestable)."""
    cause: str
    state: str
    floors: float | None
    share_of_tokens: float | None
    text: str | None


@dataclass(frozen=True, slots=True)
class Rewards:
    """Rewards of the sequences: `mean` as the engine sampled, `trainer_mean` by importance weights
    exp(sum d), which is what the trainer would have sampled."""
    sequences: int
    without: int
    mean: float | None
    trainer_mean: float | None
    difference: float | None
    difference_error: float | None
    ess_sequences: float | None
    correlation: float | None


@dataclass(frozen=True, slots=True)
class Rollout:
    """An engine's log-probs against a trainer's, d = trainer - engine in nat (docs/ROLLOUT.md).

    `figures` holds means and quantiles by name, `counts` tokens and sequences; `reward` is None
    where no sequence has a reward."""
    file: str
    format: str
    verdict: str
    why: str
    fields: dict[str, str]
    counts: dict[str, int]
    figures: dict[str, float | None]
    causes: tuple[Claim, ...]
    reward: Rewards | None
    status: int = 0
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """One column of two logs. `first_update` is the first update at which they differ."""
    column: str
    kind: str = field(metadata={"key": "class"})
    pairs: int
    different: int
    first_update: int | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs from their logs or traces. `verdict` is that of the columns, `why` says it in words;
    raw["floor"] has that of the floor, where one was given, and `status` follows it."""
    verdict: str
    why: str
    columns: tuple[ComparedColumn, ...]
    status: int = 0
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number in [low, high]; without an interval both are the number, or None."""
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class AblatedFactor:
    """What one factor does (docs/ABLATE.md). `share` is of the way from the baseline to all
    factors, `left` the gap that is left when it alone is repaired, `alone` the gap that it opens
    by itself. `inert`: no hybrid shows that it acted. `loss_left`, `loss_alone`: less the
    baseline's loss."""
    name: str
    share: Estimate
    left: Estimate
    alone: Estimate
    inert: bool
    left_equal: bool | None
    alone_equal: bool | None
    loss_left: float | None
    loss_alone: float | None


@dataclass(frozen=True, slots=True)
class Ablation:
    """Which factor makes how much of the gap between two trainings, by falling |share|. `text` is
    what `twinstep ablate` prints."""
    name: str
    verdict: str
    reason: str | None
    word: str
    measure: str
    distance: float | None
    full: float | None
    closure: str
    factors: tuple[AblatedFactor, ...]
    text: str = ""
    status: int = 0
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)
