"""Tests of libtorch.py with wheels of a few bytes in a local folder; no network.

crates/test-support/tests/setup.rs runs them.
"""

import base64
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
CPU = {
    "torch": {"torch/include/torch/a.h": "// a", "torch/lib/libtorch_cpu.so": "cpu", "torch/lib/libc10.so": "c10",
              "torch.libs/libgomp.so.1": "gomp", "torch/lib/libtorch_cuda.so": "cuda"},
    "nvidia-cuda-runtime": {"nvidia/cu13/lib/libcudart.so.13": "cudart"},
    "nvidia-cuda-cupti": {"nvidia/cu13/lib/libcupti.so.13": "cupti"},
}


class SetUp(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "checkout"
        self.wheels = pathlib.Path(folder.name) / "wheels"
        (self.root / ".setup").mkdir(parents=True)
        self.wheels.mkdir()
        shutil.copy(HERE / "libtorch.py", self.root / ".setup")
        for name, files in CPU.items():
            self.make_wheel(name, files)
        self.pin()

    def make_wheel(self, name, files):
        module = name.replace("-", "_")
        info = f"{module}-2.11.0.dist-info"
        tag = "py3-none-any"
        files = {**files,
                 f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.11.0\n",
                 f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n"}
        digest = lambda text: base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
        record = "".join(f"{path},sha256={digest(text)},{len(text)}\n" for path, text in files.items())
        with zipfile.ZipFile(self.wheels / f"{module}-2.11.0-{tag}.whl", "w") as archive:
            for path, text in {**files, f"{info}/RECORD": record + f"{info}/RECORD,,\n"}.items():
                archive.writestr(path, text)

    def pin(self):
        """Makes the wheels that there are the right ones."""
        digests = {wheel: hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in self.wheels.iterdir()}
        entries = [f"{wheel.name.split('-')[0].replace('_', '-')}==2.11.0 \\\n    --hash=sha256:{digest}\n"
                   for wheel, digest in digests.items()]
        (self.root / ".setup/requirements.txt").write_text("# made up\n" + "".join(entries))

    def start(self, *arguments, interpreter=(), **environment):
        kept = {name: value for name, value in os.environ.items() if name != "LIBTORCH"}
        local = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels), "PIP_CONFIG_FILE": os.devnull}
        return subprocess.Popen([sys.executable, *interpreter, str(self.root / ".setup/libtorch.py"), *arguments],
                                env={**kept, **local, **environment}, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run_setup(self, *arguments, **options):
        process = self.start(*arguments, **options)
        output, errors = process.communicate(timeout=300)
        return process.returncode, output, errors

    def read(self, path):
        return (self.root / ".libtorch" / path).read_text()

    def assert_refused(self, message):
        code, _, errors = self.run_setup()
        self.assertEqual(code, 1, errors)
        self.assertIn(message, errors)
        self.assertFalse((self.root / ".libtorch").exists())
        return errors

    def test_headers_and_cpu_libraries_are_taken_and_a_second_run_does_nothing(self):
        code, _, errors = self.run_setup()
        self.assertEqual(code, 0, errors)
        self.assertEqual(self.read("include/torch/a.h"), "// a")
        self.assertEqual(self.read("lib/libcupti.so.13"), "cupti")
        self.assertEqual(self.read("complete"), "2.11.0 cpu\n")
        self.assertEqual(sorted(path.name for path in (self.root / ".libtorch").iterdir()),
                         ["complete", "include", "lib"])
        self.assertFalse((self.root / ".libtorch/lib/libtorch_cuda.so").exists())
        self.assertEqual(self.run_setup(), (0, "", ""))

    def test_cuda_takes_all_wheels_and_serves_a_cpu_build_too(self):
        code, _, errors = self.run_setup("--cuda")
        self.assertEqual(code, 0, errors)
        self.assertEqual(self.read("lib/libtorch_cuda.so"), "cuda")
        self.assertEqual(self.read("lib/../../nvidia/cu13/lib/libcudart.so.13"), "cudart")
        self.assertEqual(self.run_setup(), (0, "", ""))

    def test_a_wheel_other_than_the_pinned_one_is_refused(self):
        for kind in [(), ("--cuda",)]:
            self.make_wheel("torch", {**CPU["torch"], "torch/lib/libtorch_cpu.so": "another"})
            code, _, errors = self.run_setup(*kind)
            self.assertEqual(code, 1, errors)
            self.assertIn("DO NOT MATCH THE HASHES", errors)
            self.assertFalse((self.root / ".libtorch").exists())

    def test_a_name_that_leads_out_of_the_wheel_is_refused(self):
        for name in ["torch/include/../../../../escaped", "/escaped", "a/../libc10.so"]:
            self.make_wheel("torch", {**CPU["torch"], name: "x"})
            self.pin()
            errors = self.assert_refused("which leads out of its folder")
            self.assertIn(repr(name), errors)
            self.assertFalse((self.root.parent / "escaped").exists())

    def test_a_wheel_without_its_libraries_is_refused(self):
        self.make_wheel("nvidia-cuda-cupti", {"x": "x"})
        self.pin()
        self.assert_refused("lack libcupti.so.13")

    def test_a_missing_wheel_is_told_by_pip(self):
        (self.wheels / "nvidia_cuda_cupti-2.11.0-py3-none-any.whl").unlink()
        self.assert_refused("its last lines say why")

    def test_of_two_first_runs_at_once_one_fetches(self):
        runs = [self.start(), self.start()]
        errors = [process.communicate(timeout=300)[1] for process in runs]
        self.assertEqual([process.returncode for process in runs], [0, 0], errors)
        self.assertEqual("".join(errors).count("fetching libtorch"), 1, errors)
        self.assertEqual(self.read("complete"), "2.11.0 cpu\n")

    def test_a_python_without_pip_is_named_as_such(self):
        code, _, errors = self.run_setup(interpreter=["-I", "-S"])  # no site-packages
        self.assertEqual(code, 1)
        self.assertIn("has no pip", errors.splitlines()[-1])

    def test_unknown_arguments_are_refused_with_the_usage(self):
        for arguments in [("--cdua",), ("--cud",), ("cpu",)]:
            code, _, errors = self.run_setup(*arguments)
            self.assertEqual(code, 2)
            self.assertTrue(errors.startswith("usage:"), errors)
        self.assertFalse((self.root / ".libtorch").exists())
        code, output, _ = self.run_setup("--help")
        self.assertEqual((code, "--cuda" in output), (0, True))

    def test_another_platform_is_refused_at_once(self):
        uname = self.root / "sitecustomize.py"
        uname.write_text("import platform\nplatform.machine = lambda: 'arm64'\n")
        code, _, errors = self.run_setup(PYTHONPATH=str(self.root))
        self.assertEqual(code, 1)
        self.assertEqual(len(errors.splitlines()), 1)
        self.assertIn("not Linux on arm64; to try it all the same, let LIBTORCH name", errors)
        self.assertFalse((self.root / ".libtorch").exists())
        self.assertEqual(self.run_setup(PYTHONPATH=str(self.root), LIBTORCH="/somewhere")[0], 0)

    def test_a_libtorch_of_the_users_own_wins(self):
        code, _, errors = self.run_setup(LIBTORCH="/somewhere")
        self.assertEqual((code, errors), (0, "setup: using LIBTORCH=/somewhere\n"))
        self.assertFalse((self.root / ".libtorch").exists())


class Requirements(unittest.TestCase):
    def test_each_package_is_pinned_to_a_version_and_to_files(self):
        entries = (HERE / "requirements.txt").read_text().replace("\\\n", " ").splitlines()
        entries = [entry for entry in entries if entry and not entry.startswith("#")]
        self.assertEqual(entries[0].split()[0], "torch==2.11.0")
        for entry in entries:
            self.assertRegex(entry, r"^[a-z0-9-]+==[0-9.]+( +--hash=sha256:[0-9a-f]{64})+$")


if __name__ == "__main__":
    unittest.main()
