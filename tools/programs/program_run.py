"""One public program, run by one engine in its own copy of the repository."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tools.programs.program_data import make_data

__all__ = [
    "HOOKS",
    "Engine",
    "Outcome",
    "Program",
    "Repository",
    "copy_repository",
    "environment",
    "prepare",
    "run_program",
]

HOOKS = Path(__file__).parent / "hooks"
_LARGEST_FILE = 20_000_000


@dataclass(frozen=True)
class Program:
    """One entry of the list.

    `edits` are regular expressions and replacements, made in files of both engines' copies to
    shorten a program that would run for hours. `data` are pairs of kind and path; a relative path
    starts at the folder in which the program runs.
    """

    path: str
    args: tuple[str, ...] = ()
    folder: str | None = None
    edits: tuple[tuple[str, str, str], ...] = ()
    data: tuple[tuple[str, str], ...] = ()
    python_path: tuple[str, ...] = ()
    stdin: str = ""
    note: str = ""

    def run_folder(self) -> str:
        return str(Path(self.path).parent) if self.folder is None else self.folder

    def script(self) -> str:
        """The file that is run: a notebook's code beside the notebook."""
        path = Path(self.path)
        if path.suffix != ".ipynb":
            return self.path
        return str(path.with_name(path.stem.replace(" ", "_") + "_nb.py"))


@dataclass(frozen=True)
class Repository:
    """A public repository at one commit, and the programs of it that are run."""

    name: str
    commit: str
    programs: tuple[Program, ...]
    data: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Engine:
    """What runs a program: the command before the script's path, and extra import folders."""

    name: str
    command: tuple[str, ...]
    python_path: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """How one run ended."""

    exit_code: int | None  # None: the time limit
    seconds: float
    run_seconds: float
    runs: int
    cpu_seconds: float
    stdout: str = field(repr=False)
    stderr: str = field(repr=False)
    cut: bool = False  # ended because its processor time was used up

    def result(self) -> str:
        if self.exit_code is None:
            return "time limit"
        return "ok" if self.exit_code == 0 else "fails"

    def reason(self) -> str:
        """The last line of the traceback, if there is one."""
        lines = [
            x for x in self.stderr.strip().splitlines() if re.match(r"[\w.]+(Error|Exit|Exc)", x)
        ]
        return lines[-1][:160] if lines else (self.stderr.strip().splitlines() or [""])[-1][:160]


def copy_repository(clone: Path, target: Path) -> None:
    """A work tree's files without `.git` and large files."""

    def unwanted(folder: str, names: list[str]) -> list[str]:
        large = [
            n
            for n in names
            if os.path.isfile(p := os.path.join(folder, n)) and os.path.getsize(p) > _LARGEST_FILE
        ]
        return [*large, *(n for n in names if n in (".git", "__pycache__"))]

    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(clone, target, ignore=unwanted, ignore_dangling_symlinks=True)


def prepare(program: Program, repository: Repository, copy: Path) -> None:
    """Make the data and edit the copy."""
    folder = copy / program.run_folder()
    for kind, path in (*repository.data, *program.data):
        where = folder / path  # an absolute path stays as it is
        if where.is_dir():
            _add_data(kind, where)
        elif not where.exists():
            make_data(kind, where)
    if program.script() != program.path:
        (copy / program.script()).write_text(_notebook_code(copy / program.path))
    for file, pattern, replacement in program.edits:
        _edit(copy / file, pattern, replacement)


def _notebook_code(file: Path) -> str:
    """The code cells of a notebook; lines for IPython (`%` and `!`) are left out."""
    notebook = json.loads(file.read_text())
    cells = notebook.get("cells") or notebook["worksheets"][0]["cells"]
    parts = []
    for cell in cells:
        source = cell.get("source", cell.get("input", ""))
        text = source if isinstance(source, str) else "".join(source)
        if cell["cell_type"] == "code" and not text.lstrip().startswith("%%"):
            parts.append(re.sub(r"(?m)^(\s*)([%!])", r"\1pass # \2", text))
    return "\n\n".join(parts)


def _add_data(kind: str, folder: Path) -> None:
    """Put the files of a folder of data beside what the repository has in that folder."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:  # a copy may be of this folder
        make_data(kind, Path(made, "data"))
        for file in Path(made, "data").iterdir():
            if not (folder / file.name).exists():
                file.rename(folder / file.name)


def environment(paths: list[str], times: Path) -> dict[str, str]:
    """The environment of a program: import folders, fixed hashes, no windows."""
    return dict(
        os.environ,
        PYTHONPATH=os.pathsep.join(paths),
        PROGRAM_TIMES=str(times),
        MPLBACKEND="template",
        TF_CPP_MIN_LOG_LEVEL="2",
        PYTHONHASHSEED="0",
        PYTHONWARNINGS="ignore",
    )


def run_program(
    program: Program, repository: Repository, copy: Path, engine: Engine, limit: float
) -> Outcome:
    """Make the data, edit, run, and measure."""
    prepare(program, repository, copy)
    times = copy / ".program_times.json"
    times.unlink(missing_ok=True)
    paths = [str(HOOKS), *(str(copy / p) for p in program.python_path), *engine.python_path]
    began, cpu = time.perf_counter(), _children_cpu()
    process = subprocess.Popen(
        [*engine.command, str(copy / program.script()), *program.args],
        cwd=copy / program.run_folder(),
        env=environment(paths, times),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        out, err = process.communicate(program.stdin, timeout=limit)
        code: int | None = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        code = None
    seconds = time.perf_counter() - began
    in_run = json.loads(times.read_text()) if times.exists() else {"seconds": 0.0, "runs": 0}
    cpu = _children_cpu() - cpu
    return Outcome(code, seconds, in_run["seconds"], in_run["runs"], cpu, out, err)


def _children_cpu() -> float:
    """Processor time of the finished child processes: what a busy machine does not change much."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _edit(file: Path, pattern: str, replacement: str) -> None:
    text = file.read_text(errors="surrogateescape")
    changed, count = re.subn(pattern, replacement, text, flags=re.MULTILINE)
    if not count and replacement not in text:
        print(f"{file}: nothing matches the edit {pattern!r}", file=sys.stderr)
    file.write_text(changed, errors="surrogateescape")
