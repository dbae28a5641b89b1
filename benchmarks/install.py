"""How much does `pip install .` download, how much does it take on disk, and how long does `make demo` take in a clone?

    python -m benchmarks.install [--record FILE]

Without extras. The package's own wheel, which `pip install .` builds, is counted apart from what is downloaded; what
builds it and pip are not counted. The demo's time is from a fresh clone of the last commit on, and so depends on the
package index, too.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from benchmarks.machine import make_parser, record

ROOT = Path(__file__).parents[1]
PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check")


def measure(place: Path) -> tuple[dict[str, int], dict[str, int]]:
    """Bytes of each wheel, the package's own included, and of each package on disk."""
    wheels, installed = place / "wheels", place / "installed"
    subprocess.run([sys.executable, *PIP, "wheel", "--wheel-dir", wheels, ROOT], check=True)
    files = {path.name.split("-")[0]: path.stat().st_size for path in wheels.glob("*.whl")}
    subprocess.run(
        [sys.executable, *PIP, "install", "--no-index", "--find-links", wheels, "--target", installed, "msdnet"],
        check=True,
    )
    return files, {path.name: _size(path) for path in installed.iterdir()}


def _size(path: Path) -> int:
    return (
        sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) if path.is_dir() else path.stat().st_size
    )


def demo_seconds(place: Path) -> float:
    """Of `make demo` in a fresh clone, the install included."""
    clone = place / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    start = time.perf_counter()
    subprocess.run(["make", "demo"], cwd=clone, check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    parser = make_parser(__doc__)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        wheels, disk = measure(Path(place))
        took = demo_seconds(Path(place))
    own = wheels.pop("msdnet")
    for name, sizes in (("downloaded", wheels), ("on disk", disk)):
        print(f"{name}: {sum(sizes.values()) / 1e6:.0f} MB")
        for package, size in sorted(sizes.items(), key=lambda item: -item[1])[:8]:
            print(f"  {size / 1e6:6.1f} MB  {package}")
    print(f"own wheel: {own / 1e6:.0f} MB; make demo in a fresh clone: {took:.0f} s")
    record(
        options.record,
        torch.device("cpu"),
        benchmark="install",
        downloaded_bytes=sum(wheels.values()),
        own_wheel_bytes=own,
        disk_bytes=sum(disk.values()),
        demo_seconds=took,
        downloaded=wheels,
        disk=disk,
    )


if __name__ == "__main__":
    main()
