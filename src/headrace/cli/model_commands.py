"""Models in files, from the command line: ``headrace inspect``, ``explain`` and so on.

headrace inspect FILE
headrace explain FILE [--outputs NAMES]
headrace predict FILE --input x=data.npy [--output NAME] [-o results.npz]
headrace freeze FILE -o frozen.pb [--outputs NAMES] [--progress]
headrace convert A B [--progress]

FILE is a GraphDef (binary or text), a SavedModel's folder, a .meta file or a checkpoint's prefix.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.core.tensor import Tensor
    from headrace.formats.model_files import Model

__all__ = ["add_commands"]


def add_commands(commands: Any) -> None:
    """Add the commands to the parser."""
    _add_convert(commands)
    for name, text, function in (
        (
            "inspect",
            "show what is in a model file or checkpoint, and what is missing here",
            _inspect,
        ),
        ("explain", "show how a model in a file would run", _explain),
        ("predict", "run a model in a file on arrays in files", _predict),
        ("freeze", "write a model with its variables as constants", _freeze),
    ):
        parser = commands.add_parser(name, help=text, allow_abbrev=False)
        parser.add_argument(
            "file", help="a GraphDef, a SavedModel's folder, a .meta file or a checkpoint's prefix"
        )
        parser.set_defaults(function=_guarded(function))
        if name != "inspect":
            parser.add_argument(
                "--tags", help="tags of the MetaGraph in a SavedModel (serve, or the only one's)"
            )
            parser.add_argument("--signature", help="signature of a SavedModel (serving_default)")
        if name in ("explain", "freeze", "predict"):
            parser.add_argument("--outputs", default="", help="names of outputs, with commas")
        if name == "predict":
            parser.add_argument(
                "--input",
                action="append",
                default=[],
                metavar="NAME=FILE",
                help="a .npy file, or a number or list in JSON",
            )
        if name == "freeze":
            parser.add_argument("--progress", action="store_true", help="show how far it is")
        if name in ("predict", "freeze"):
            parser.add_argument(
                "-o",
                "--output-file",
                required=name == "freeze",
                help="where to write the result" + (" (.npz)" if name == "predict" else ""),
            )


def _add_convert(commands: Any) -> None:
    parser = commands.add_parser(
        "convert",
        help="copy weights between a checkpoint, .npz and .safetensors",
        allow_abbrev=False,
    )
    parser.add_argument(
        "source", help="a .npz or .safetensors file, a checkpoint's prefix or folder"
    )
    parser.add_argument("target", help="a .npz or .safetensors file, or a checkpoint's prefix")
    parser.add_argument("--progress", action="store_true", help="show how far it is")
    parser.set_defaults(function=_guarded(_convert))


def _convert(options: argparse.Namespace) -> int:
    from headrace.formats.weight_files import convert

    if not options.progress:
        convert(options.source, options.target)
        return 0
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Bar(*columns, TransferSpeedColumn()) as bar:
        task = bar.add_task("")
        convert(
            options.source,
            options.target,
            lambda name, done, total: bar.update(
                task, description=name, completed=done, total=total
            ),
        )
    return 0


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Errors about files and models in one line."""

    def run(options: argparse.Namespace) -> int:
        from headrace import errors

        try:
            return int(function(options))
        except (
            OSError,
            ValueError,
            KeyError,
            TypeError,
            RuntimeError,
            AssertionError,
            errors.OpError,
        ) as error:
            text = error.message if isinstance(error, errors.OpError) else str(error)
            if isinstance(error, KeyError):
                text = str(error.args[0])  # (its text would be in quotes)
            print(f"headrace {options.command}: {text}", file=sys.stderr)
            return 1

    return run


def _names(text: str) -> list[str]:
    return [n.strip() for n in text.split(",") if n.strip()]


def _inspect(options: argparse.Namespace) -> int:
    from headrace.formats.model_files import summarize

    found = summarize(options.file)
    for line in found.lines:
        print(line)
    if found.missing:
        print(f"not defined here: {', '.join(f'{op} ({n})' for op, n in found.missing.items())}")
    elif found.kind != "checkpoint":
        print("every op is defined here")
    return 0


def _open(options: argparse.Namespace) -> Model:
    from headrace.formats.model_files import open_model

    return open_model(options.file, _tags(options), options.signature)


def _tags(options: argparse.Namespace) -> list[str] | None:
    return None if options.tags is None else _names(options.tags)


def _chosen(model: Model, text: str) -> dict[str, Any]:
    """Outputs by the names that the user gave: of the signature, or of operations and tensors."""
    names = _names(text)
    if not names:
        if not model.outputs:
            raise ValueError("the model has no outputs of its own: name them with --outputs")
        return dict(model.outputs)
    return {n: model.outputs[n] if n in model.outputs else _tensor(model, n) for n in names}


def _tensor(model: Model, name: str) -> Tensor:
    try:
        return model.graph.get_tensor_by_name(name if ":" in name else f"{name}:0")
    except KeyError:
        known = [f"{what} {', '.join(names)}" for what, names in _ends(model) if names]
        raise ValueError(
            f"the model has no tensor '{name}'" + (f"; {'; '.join(known)}" if known else "")
        ) from None


def _ends(model: Model) -> tuple[tuple[str, dict[str, Tensor]], ...]:
    return ("its inputs are", model.inputs), ("its outputs are", model.outputs)


def _explain(options: argparse.Namespace) -> int:
    model = _open(options)
    outputs = _chosen(model, options.outputs)
    print(model.session.explain(list(outputs.values()), list(model.inputs.values())))
    return 0


def _predict(options: argparse.Namespace) -> int:
    import numpy as np

    from headrace import errors

    model = _open(options)
    feeds = {}
    for item in options.input:
        name, equals, source = item.partition("=")
        if not equals:
            raise ValueError(f"--input takes NAME=FILE, not {item!r}")
        feeds[model.inputs[name] if name in model.inputs else _tensor(model, name)] = _array(source)
    outputs = _chosen(model, options.outputs)
    if options.output_file and not options.output_file.endswith(".npz"):
        raise ValueError(f"results are written to a .npz file, not {options.output_file!r}")
    try:
        found = model.session.run(outputs, feeds)
    except errors.InvalidArgumentError as error:
        missing = [n for n, t in model.inputs.items() if t.op is error.op and t not in feeds]
        if not missing:
            raise
        tensor = model.inputs[missing[0]]
        raise ValueError(
            f"the model needs --input {missing[0]}=FILE, {tensor.dtype.name} {tensor.shape}"
        ) from None
    if options.output_file:
        np.savez(options.output_file, **found)
    for name, value in found.items():
        array = np.asarray(value)
        print(f"{name}: {array.dtype} {list(array.shape)}")
        if not options.output_file:
            print(np.array2string(array, threshold=60))
    return 0


def _array(source: str) -> Any:
    """An array from a .npy file, or from a number or list in JSON."""
    import json

    import numpy as np

    if source.endswith(".npy"):
        return np.load(source, allow_pickle=False)
    try:
        return json.loads(source)
    except json.JSONDecodeError:
        raise ValueError(
            f"{source!r} is neither a .npy file nor a number or list in JSON"
        ) from None


def _freeze(options: argparse.Namespace) -> int:
    from headrace.formats.model_files import freeze_model
    from headrace.wire.graph_files import write_bytes
    from headrace.wire.transfer_progress import file_progress

    with file_progress() if options.progress else nullcontext():
        frozen = freeze_model(
            options.file, _names(options.outputs), _tags(options), options.signature
        )
    data = frozen.SerializeToString(deterministic=True)
    write_bytes(options.output_file, data)
    print(f"{options.output_file}: {len(frozen.node)} nodes, {len(data):,} bytes")
    return 0
