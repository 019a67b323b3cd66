"""Prepares `.libtorch/` (include, lib) for the tch crate, from Python wheels alone.

The wheels are those of requirements.txt and no others: pip refuses a file with another SHA-256. A broken download
leaves nothing behind that looks complete: everything is put together in `.libtorch.partial` and renamed at the end.
"""

import argparse
import contextlib
import fcntl
import importlib.util
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import zipfile

LIBRARIES = ["libtorch_cpu.so", "libc10.so", "libgomp.so.1", "libcudart.so.13", "libcupti.so.13"]
# libtorch_cpu.so of the CUDA wheel is linked against the last two, whether or not there is a GPU.
LEAN = ["torch", "nvidia-cuda-runtime", "nvidia-cuda-cupti"]

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
TARGET = ROOT / ".libtorch"
PARTIAL = ROOT / ".libtorch.partial"
WHEELS = ROOT / ".libtorch.wheels"
MARKER = "complete"


def requirements():
    """The entries of requirements.txt by the name of their package."""
    entries = (HERE / "requirements.txt").read_text().replace("\\\n", " ").splitlines()
    return {entry.split("==")[0]: entry for entry in entries if entry and not entry.startswith("#")}


def version():
    return requirements()["torch"].split("==")[1].split()[0]


def pip(command, names, *arguments):
    """Runs `pip download` or `pip install` for these packages of requirements.txt."""
    if importlib.util.find_spec("pip") is None:
        sys.exit(f"setup: {sys.executable} has no pip; on Debian and Ubuntu: apt install python3-pip")
    chosen = PARTIAL / "requirements.txt"
    chosen.write_text("\n".join(requirements()[name] for name in names) + "\n")
    # A fixed interpreter, so that any Python 3 serves: nothing of these wheels is ever imported.
    subprocess.run([sys.executable, "-m", "pip", command, "--disable-pip-version-check", "--no-deps",
                    "--only-binary=:all:", "--python-version", "3.12", "--implementation", "cp",
                    "--require-hashes", "--requirement", str(chosen), *arguments],
                   check=True, stdout=sys.stderr)


def lean():
    """The wheel's headers and its CPU libraries; no CUDA libraries."""
    wheels = PARTIAL / "wheels"
    pip("download", LEAN, "--dest", str(wheels))
    (PARTIAL / "lib").mkdir()
    for wheel in sorted(wheels.glob("*.whl")):
        unpack(wheel)
    # torch-sys links `-ltorch`, which would need the CUDA libraries: a linker script stands in for it.
    (PARTIAL / "lib" / "libtorch.so").write_text("INPUT(-ltorch_cpu)\n")
    missing = [name for name in LIBRARIES if not (PARTIAL / "lib" / name).exists()]
    if missing:
        sys.exit(f"setup: the wheels of torch {version()} lack {', '.join(missing)}")
    shutil.rmtree(wheels)


def unpack(wheel):
    """Copies headers and the libraries that are needed out of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        members = [(member, pathlib.PurePosixPath(member)) for member in archive.namelist()]
        for member, path in members:
            if path.is_absolute() or ".." in path.parts:
                sys.exit(f"setup: {wheel.name} holds {member!a}, which leads out of its folder")
        for member, path in members:
            if member.startswith("torch/include/") and not member.endswith("/"):
                write(archive, member, PARTIAL / "include" / path.relative_to("torch/include"))
            elif path.name in LIBRARIES:
                write(archive, member, PARTIAL / "lib" / path.name)


def write(archive, member, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(member) as source, open(path, "wb") as sink:
        shutil.copyfileobj(source, sink)


def full():
    """All wheels side by side, where torch's libraries look for those of CUDA; `.libtorch` points to them."""
    shutil.rmtree(WHEELS, ignore_errors=True)
    pip("install", list(requirements()), "--target", str(WHEELS))
    for folder in ("include", "lib"):
        (PARTIAL / folder).symlink_to(WHEELS / "torch" / folder)


@contextlib.contextmanager
def alone():
    """Waits for another run to end: two first runs at once would write the same files."""
    with open(ROOT / ".libtorch.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_complete(kind):
    marker = TARGET / MARKER
    found = marker.read_text().split() if marker.exists() else []
    # A CUDA installation serves a CPU build too, so `just setup` never undoes `just setup-cuda`.
    return found[:1] == [version()] and (kind == "cpu" or found[1:] == [kind])


def prepare(kind):
    print(f"setup: fetching libtorch {version()} ({kind}) once into .libtorch/", file=sys.stderr)
    shutil.rmtree(PARTIAL, ignore_errors=True)
    PARTIAL.mkdir()
    lean() if kind == "cpu" else full()
    (PARTIAL / "requirements.txt").unlink()
    (PARTIAL / MARKER).write_text(f"{version()} {kind}\n")
    shutil.rmtree(TARGET, ignore_errors=True)
    PARTIAL.rename(TARGET)


def main():
    parser = argparse.ArgumentParser(
        description="Prepares .libtorch/ from the wheels of requirements.txt; does nothing when LIBTORCH is set or the "
                    "folder is complete.", allow_abbrev=False)
    parser.add_argument("--cuda", action="store_true", help="with the CUDA libraries, for a machine with a GPU (3 GB); "
                        "otherwise the CPU libraries alone, 550 MB")
    kind = "cuda" if parser.parse_args().cuda else "cpu"
    if os.environ.get("LIBTORCH"):
        print(f"setup: using LIBTORCH={os.environ['LIBTORCH']}", file=sys.stderr)
    elif (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        sys.exit(f"setup: only Linux on x86-64 is supported, not {platform.system()} on {platform.machine()}; to try it all the "
                 f"same, let LIBTORCH name the folder of a libtorch {version()}, such as torch/ of the Python package")
    elif not is_complete(kind):
        with alone():
            if not is_complete(kind):
                prepare(kind)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"setup: pip ended with exit code {error.returncode}; its last lines say why")
    except (OSError, zipfile.BadZipFile) as error:
        sys.exit(f"setup: {error}")
