# SPDX-License-Identifier: Apache-2.0
"""What is true of a training as a whole, as lines `key: value`, and the generators' states.

Host, time and paths are left out, so two runs that are meant to be the same have the same lines."""
from __future__ import annotations

import ctypes
import functools
import json
import os
import platform
import random
import sys
from hashlib import sha256
from typing import Any, Callable, Iterable, Mapping

import torch

VARIABLES = ("CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE", "OMP_NUM_THREADS",
             "MKL_NUM_THREADS", "MKL_CBWR", "PYTHONHASHSEED", "TORCH_BLAS_PREFER_CUBLASLT",
             "NCCL_ALGO", "NCCL_PROTO", "CUDA_LAUNCH_BLOCKING")

# Of TrainingArguments: where things are written and how much is printed changes no training.
LEFT_OUT = ("output_dir", "logging_dir", "run_name", "hub_", "push_to_hub", "report_to", "save_",
            "log_", "logging_", "local_rank", "disable_tqdm", "_n_gpu", "project", "trackio")

# A list or a map of arguments whose JSON text is longer is recorded cut, with a digest of it all:
# a thousand labels are no line to read, and a difference in the last of them is one all the same.
LONGEST = 1000

# What a program can set in torch that chooses kernels or their arithmetic: where it is read, and
# the function that sets it where that is none of the same name. The settings of older versions of
# torch come first, because those of newer ones follow them.
SWITCHES: Mapping[str, tuple[str, str | None]] = {
    "deterministic": ("are_deterministic_algorithms_enabled", "use_deterministic_algorithms"),
    "deterministic_warn": ("is_deterministic_algorithms_warn_only_enabled", ""),
    "deterministic_fill": ("utils.deterministic.fill_uninitialized_memory", None),
    "matmul_precision": ("get_float32_matmul_precision", "set_float32_matmul_precision"),
    "cudnn_benchmark": ("backends.cudnn.benchmark", None),
    "cudnn_deterministic": ("backends.cudnn.deterministic", None),
    "cudnn_tf32": ("backends.cudnn.allow_tf32", None),
    "tf32": ("backends.cuda.matmul.allow_tf32", None),
    "bf16_reduced": ("backends.cuda.matmul.allow_bf16_reduced_precision_reduction", None),
    "fp16_reduced": ("backends.cuda.matmul.allow_fp16_reduced_precision_reduction", None),
    "fp16_accumulation": ("backends.cuda.matmul.allow_fp16_accumulation", None),
    **{f"fp32_{name or 'all'}": (f"backends.{name + '.' if name else ''}fp32_precision", None)
       for name in ("", "cuda.matmul", "cudnn", "cudnn.conv", "cudnn.rnn", "mkldnn",
                    "mkldnn.matmul", "mkldnn.conv", "mkldnn.rnn")},
    **{f"sdp_{name}": (f"backends.cuda.{name}_sdp_enabled", f"backends.cuda.enable_{name}_sdp")
       for name in ("flash", "mem_efficient", "math", "cudnn")},
    "sdp_math_reduced": ("backends.cuda.fp16_bf16_reduction_math_sdp_allowed",
                         "backends.cuda.allow_fp16_bf16_reduction_math_sdp")}


def _plain(value: Any) -> Any:
    """A value as JSON can write it. Of another object only its class: its text may hold an address,
    which differs between two runs that are the same."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return type(value).__qualname__


def _leaves(key: str, value: Any) -> dict[str, Any]:
    """The leaves of an argument, named as `twinstep ablate` names those of two files: a map's keys
    follow behind dots, a list is one leaf, as JSON text. None is no leaf where a map may lack it,
    and neither is an object of a class of its own."""
    if isinstance(value, (str, int, float, bool)):
        return {key: value}
    if not isinstance(value, (list, tuple, Mapping)):
        return {}
    text = json.dumps(_plain(value), sort_keys=True, ensure_ascii=False)
    if len(text) > LONGEST:
        whole = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return {key: f"{text[:LONGEST]}... (cut after {LONGEST} of {len(text)} characters, "
                     f"sha256 of all {whole})"}
    if not isinstance(value, Mapping) or not value:
        return {key: text}
    return {name: leaf for k, item in value.items()
            for name, leaf in _leaves(f"{key}.{k}", item).items()}


def check_keys(name: str, given: Mapping[Any, Any]) -> None:
    """Raises ValueError for a key without a printable character, whose line no reader takes."""
    for key in given:
        if not _clean(key):
            raise ValueError(f"{name}: expected keys with a printable character, got {str(key)!r}")


def arguments(given: Any) -> dict[str, Any]:
    """A configuration that a user gives: a mapping as it is, and of TrainingArguments the leaves
    that can change a training, as `args.KEY` (of maps `args.KEY.KEY`, of a list its JSON text, both
    cut behind LONGEST characters). Raises TypeError for what is neither, ValueError for a key
    without a printable character."""
    if given is None or isinstance(given, Mapping):
        check_keys("config", given or {})
        return {str(key): value for key, value in (given or {}).items()}
    if isinstance(given, type) or not hasattr(given, "to_dict"):
        raise TypeError("config: expected a mapping or the arguments of a trainer, got "
                        f"{given.__name__ if isinstance(given, type) else type(given).__name__}")
    said = given.to_dict()
    if not isinstance(said, Mapping):
        raise TypeError("config: expected a mapping or the arguments of a trainer, got "
                        f"{type(given).__name__}, whose to_dict() gives {type(said).__name__}")
    return {name: leaf for key, value in said.items() if not str(key).startswith(LEFT_OUT)
            for name, leaf in _leaves(f"args.{key}", value).items()}


def _at(path: str) -> Any:
    return functools.reduce(getattr, path.split("."), torch)


def switches() -> dict[str, Any]:
    """Those of SWITCHES that can be read: a version of torch may not have one, and raises for the
    old name of a setting that was made by the new one."""
    found = {}
    for name, (path, _) in SWITCHES.items():
        try:
            value = _at(path)
            found[name] = value() if callable(value) else value
        except (AttributeError, RuntimeError):
            pass
    return found


def set_switches(to: Mapping[str, Any]) -> None:
    """Sets those of SWITCHES that differ from `to`, as `switches` returned it."""
    torch.use_deterministic_algorithms(to["deterministic"],
                                       warn_only=to.get("deterministic_warn", False))
    for name, value in to.items():
        path, setter = SWITCHES[name]
        if switches().get(name) == value or setter == "":
            continue
        if setter is not None:
            _at(setter)(value)
        else:
            setattr(_at(path.rpartition(".")[0]), path.rpartition(".")[2], value)


def environment(devices: Iterable[torch.device]) -> dict[str, str]:
    """Versions, flags of determinism and facts of the devices: `env.torch`, ..."""
    facts: dict[str, Any] = {
        "torch": torch.__version__, "python": platform.python_version(),
        "cuda": torch.version.cuda, "cudnn": None, "threads": torch.get_num_threads(),
        **switches(), "cpu": torch.backends.cpu.get_cpu_capability(),
        "machine": platform.machine()}
    for name in ("transformers", "trl", "accelerate", "lightning", "deepspeed"):
        if name in sys.modules:
            facts[name] = getattr(sys.modules[name], "__version__", None)
    for i, device in enumerate(sorted({d for d in devices if d.type == "cuda"}, key=str)):
        of = torch.cuda.get_device_properties(device)
        facts[f"device.{i}"] = f"{of.name}, {of.major}.{of.minor}, {of.multi_processor_count} SMs"
        facts["cudnn"] = torch.backends.cudnn.version()
    facts.update({name: os.environ[name] for name in VARIABLES if name in os.environ})
    return {f"env.{key}": str(value) for key, value in facts.items() if value is not None}


def optimizers(every: Iterable[torch.optim.Optimizer]) -> dict[str, str]:
    """Class and settings of each group but the learning rate, which is a column."""
    lines = {}
    for i, optimizer in enumerate(every):
        lines[f"optimizer.{i}"] = type(optimizer).__name__
        for g, group in enumerate(optimizer.param_groups):
            for key, value in group.items():
                if key in ("params", "lr") or isinstance(value, torch.Tensor):
                    continue
                lines[f"optimizer.{i}.{g}.{key}"] = str(value)
    return lines


def _clean(word: Any) -> str:
    """The printable characters of a word on one line."""
    return " ".join("".join(c if c.isprintable() else " " for c in str(word)).split())


def lines(facts: Mapping[str, Any]) -> str:
    """`key: value` lines. A line break or a colon at a key's end would make other lines of it."""
    return "".join(f"{_clean(k).replace(':', '.')}: {_clean(v)}\n" for k, v in facts.items())


_seen: dict[str, tuple[Any, bytes]] = {}     # the state of a generator, and 32 bytes of it


def _of(name: str, state: Any, text: Callable[[Any], bytes] = bytes) -> bytes:
    """32 bytes of a state. Most updates leave those of the host as they are, and to compare one is
    cheaper than to hash it."""
    kept = _seen.get(name)
    if kept is None or kept[0] != state:
        kept = _seen[name] = state, sha256(text(state)).digest()
    return kept[1]


_memcmp = ctypes.PyDLL(None).memcmp         # which keeps the interpreter's lock: it is short
_memcmp.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
WORDS = 4 * 625     # bytes of numpy's Mersenne twister: its words, and how many of them were taken


def _of_numpy(generator: Any) -> bytes:
    """The same of numpy's global generator, whose `get_state` copies 624 words one by one. It has
    the words in memory that its bit generator names, and beside them at most one normal number that
    was drawn and not used yet. Not seen is a `set_state` that brings such a number back after it
    was used, where no word was drawn in between."""
    taken = _seen.get("numpy words")
    bits: Any = getattr(generator, "get_bit_generator", lambda: None)()      # numpy 1.24 and later
    if taken is not None and taken[0][0] is bits and not _memcmp(*taken[0][1:], WORDS):
        return taken[1]
    kind, key, *rest = generator.get_state()
    whole = sha256(key.tobytes() + repr((kind, rest)).encode()).digest()
    if type(bits).__name__ == "MT19937" and not rest[1]:    # else a number that no word shows can
        at = bits.ctypes.state_address                      # be used
        _seen["numpy words"] = (bits, at, ctypes.string_at(at, WORDS)), whole
    else:
        _seen.pop("numpy words", None)
    return whole


def _bytes_of(state: torch.Tensor) -> bytes:
    """The bytes of a state of torch's, of the host."""
    return ctypes.string_at(state.data_ptr(), state.numel())


def generators(devices: Iterable[torch.device]) -> dict[str, bytes]:
    """32 bytes of the state of each generator: Python's, numpy's, torch's, the devices'."""
    found = {"python": _of("python", random.getstate(), lambda state: repr(state).encode()),
             "torch": _of("torch", _bytes_of(torch.default_generator.get_state()))}
    if "numpy" in sys.modules:
        found["numpy"] = _of_numpy(sys.modules["numpy"].random)
    cuda = {d for d in devices if d.type == "cuda"}
    for device in sorted(cuda, key=str) if cuda else ():
        found[str(device)] = _of(str(device), _bytes_of(torch.cuda.get_rng_state(device)))
    return found


_STILL = sha256().digest()      # of no generator


def moved(start: Mapping[str, bytes], now: Mapping[str, bytes]) -> bytes:
    """32 bytes of the states of those generators that drew since `start`. One that nobody uses is
    often not seeded, so it would differ between runs and mean nothing."""
    if now == start:
        return _STILL
    whole = sha256()
    for name in sorted(now):
        if now[name] != start.get(name):
            whole.update(name.encode() + now[name])
    return whole.digest()
