"""All benches, one after the other: ``python -m bench.everything`` (``make bench``).

Each runs as a process of its own, adds its line of JSON to ``bench/results``, and prints its tables; all that
they print is in ``bench/results/RESULTS.md`` at the end, with the goals that were missed. Nothing else should
run on the machine meanwhile. It takes up to ten minutes.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Final

from bench.report import RESULTS

ORDER: Final = (
    "delta_bytes",
    "fan_out",
    "many_sessions",
    "latency",
    "storm",
    "commit",
    "page",
    "catch_up",
    "memory",
)


def main() -> None:
    """Run them; the process ends with 1 where a goal is missed or a bench failed."""
    begun, missed, texts = time.monotonic(), list[str](), list[str]()
    for name in ORDER:
        start = time.monotonic()
        process = subprocess.Popen([sys.executable, "-m", f"bench.{name}"], stdout=subprocess.PIPE, text=True)
        said: list[str] = []
        for line in process.stdout or ():
            print(line, end="", flush=True)
            said.append(line)
        if process.wait():
            missed.append(name)
        texts.append("".join(said).strip())
        print(f"\n({name} took {time.monotonic() - start:.0f} s)", flush=True)
    end = f"goals were missed, or it failed: {', '.join(missed)}" if missed else "all goals were met"
    summary = f"{len(ORDER)} benches in {time.monotonic() - begun:.0f} s; {end}"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "RESULTS.md").write_text("\n\n".join([*texts, summary]) + "\n", encoding="utf-8")
    print(f"\n{summary}")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
