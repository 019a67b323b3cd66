"""The command `headcount`: its programs, on the libtorch inside the package torch, which is never imported."""
import importlib.metadata
import importlib.util
import os
import pathlib
import platform
import sys

BIN = pathlib.Path(__file__).parent / "bin"
CUDA = "libtorch_cuda.so"
DRIVERS = ["/dev/nvidiactl", "/dev/dxg"]  # of Linux, and of Linux in Windows


def main():
    try:
        is_asked_for_help = sys.argv[1:] in ([], ["-h"], ["--help"], ["-V"], ["--version"])
        environment = {"PYTHON": sys.executable} | os.environ | ({} if is_asked_for_help else libtorch(importlib.metadata.requires("headcount")))
        os.execve(BIN / "headcount", ["headcount", *sys.argv[1:]], environment)
    except (OSError, Unusable, importlib.metadata.PackageNotFoundError) as error:
        sys.exit(f"error: {error}")


class Unusable(Exception):
    """Nothing can run here, and why."""


def libtorch(requirements):
    """The variables by which a program finds libtorch."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise Unusable(f"headcount runs on Linux on x86-64, not on {platform.system()} on {platform.machine()}")
    wanted = next(line.split("==")[1] for line in requirements if line.startswith("torch=="))
    try:
        found = importlib.metadata.version("torch")
        folder = pathlib.Path(importlib.util.find_spec("torch").submodule_search_locations[0])
    except (importlib.metadata.PackageNotFoundError, AttributeError, TypeError):
        raise Unusable(f"torch is not installed: `pip install torch=={wanted}`") from None
    if found.partition("+")[0] != wanted:
        raise Unusable(f"headcount needs torch {wanted}, not {found}: `pip install torch=={wanted}`")
    # torch's own libraries know where those of CUDA lie beside them, but for two that libtorch_cpu.so is linked against
    nvidia = sorted(str(path) for path in folder.parent.glob("nvidia/*/lib"))
    places = [str(folder / "lib"), *nvidia, os.environ.get("LD_LIBRARY_PATH", "")]
    variables = {"LD_LIBRARY_PATH": ":".join(filter(None, places))}
    if (folder / "lib" / CUDA).exists() and any(pathlib.Path(driver).exists() for driver in DRIVERS):
        # Programs are linked against those parts of libtorch that every package has, and would not see a GPU. It has no folder, since
        # a space in it would end the name.
        variables["HEADCOUNT_PRELOAD"] = CUDA
    return variables
