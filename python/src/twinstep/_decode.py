# SPDX-License-Identifier: Apache-2.0
"""JSON of the program as frozen dataclasses: what is typed is checked, the rest is kept."""
import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class ResultError(ValueError):
    """The program printed something else than this version of the package knows."""


def _is_optional(kind: Any) -> bool:
    return typing.get_origin(kind) in (types.UnionType, typing.Union)


def _value(kind: Any, given: Any, place: str) -> Any:
    """Returns `given` as `kind`, which is a type that the dataclasses of results.py use."""
    if kind is Any:
        return given
    if _is_optional(kind):
        return None if given is None else _value(typing.get_args(kind)[0], given, place)
    origin, words = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple and isinstance(given, list):
        return tuple(_value(words[0], item, f"{place}[{i}]") for i, item in enumerate(given))
    if origin in (dict, Mapping) and isinstance(given, dict):
        return {key: _value(words[1], item, f"{place}.{key}") for key, item in given.items()}
    if dataclasses.is_dataclass(kind) and isinstance(given, dict):
        return decode(typing.cast(type, kind), given, place)
    if kind is float and isinstance(given, (int, float)) and not isinstance(given, bool):
        return float(given)
    if isinstance(kind, type) and type(given) is kind:
        return given
    raise ResultError(f"{place}: expected {kind}, the program printed {given!r}")


def decode(kind: type[T], given: Mapping[str, Any], place: str = "result") -> T:
    """Returns the object as a dataclass, whose field `raw`, where it has one, keeps all of it.

    A field's key is its name, or `key` of its metadata. Raises ResultError where a key without a
    default is absent, or a value has another type."""
    hints = typing.get_type_hints(kind)
    words: dict[str, Any] = {}
    for field in dataclasses.fields(typing.cast(Any, kind)):
        key = field.metadata.get("key", field.name)
        has_default = (field.default, field.default_factory) != (dataclasses.MISSING,) * 2
        if field.name == "raw":
            words["raw"] = given
        elif key in given:
            words[field.name] = _value(hints[field.name], given[key], f"{place}.{key}")
        elif not has_default:
            raise ResultError(f"{place}: the program printed no {key!r}: package and program are "
                              "of different versions")
    return kind(**words)
