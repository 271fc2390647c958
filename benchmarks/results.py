"""What a run has measured: enough to make tables, plots and pages from it, now or later from its
JSON file.

results = Results.from_json(Path("out.json").read_text())
results.rounds["tf", "scalar_add"]            # [{"run": [...]}, ...]
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from benchmarks.scale import Samples

__all__ = ["Results"]


@dataclass
class Results:
    """``rounds``: samples of every round by library and case; ``failures``: the reason, likewise;
    ``load``: how many processors other programs wanted.
    """

    versions: dict[str, str] = field(default_factory=dict)
    rounds: dict[tuple[str, str], list[Samples]] = field(default_factory=dict)
    failures: dict[tuple[str, str], str] = field(default_factory=dict)
    about: dict[str, str] = field(default_factory=dict)
    quick: bool = False
    load: float = 0.0

    def add(self, library: str, case: str, samples: Samples) -> None:
        self.rounds.setdefault((library, case), []).append(samples)

    @classmethod
    def joined(cls, parts: list[Results]) -> Results:
        """Runs of different cases on one machine as one; of a case that two have, the later."""
        whole = cls(quick=any(p.quick for p in parts), load=max(p.load for p in parts))
        for part in parts:
            whole.versions.update(part.versions)
            whole.rounds.update(part.rounds)
            for key in part.rounds:
                whole.failures.pop(key, None)
            for key in part.failures:
                whole.rounds.pop(key, None)
            whole.failures.update(part.failures)
            whole.about.update(part.about)
        machines = {part.about.get("machine") for part in parts}
        if len(machines) > 1:
            raise ValueError(f"These runs are of different machines: {machines}")
        return whole

    def libraries(self, case: str) -> list[str]:
        return [library for library, measured in self.rounds if measured == case]

    def to_json(self) -> str:
        return json.dumps(
            {
                "about": self.about,
                "versions": self.versions,
                "quick": self.quick,
                "load_of_others": self.load,
                "failures": [[*key, reason] for key, reason in self.failures.items()],
                "rounds": [[*key, rounds] for key, rounds in self.rounds.items()],
            },
            indent=1,
        )

    @classmethod
    def from_json(cls, text: str) -> Results:
        data = json.loads(text)
        return cls(
            data["versions"],
            {(library, case): rounds for library, case, rounds in data["rounds"]},
            {(library, case): reason for library, case, reason in data["failures"]},
            data["about"],
            data["quick"],
            data["load_of_others"],
        )
