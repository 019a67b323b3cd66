"""What the command `headcount` says where nothing can run, and by which variables its programs find libtorch."""
import importlib.metadata
import os
import pathlib
import platform
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from headcount import command  # noqa: E402

WANTED = ["torch==2.11.0"]


class Libtorch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(suffix=" ü")
        self.addCleanup(folder.cleanup)
        self.torch = pathlib.Path(folder.name) / "torch"
        (self.torch / "lib").mkdir(parents=True)
        (self.torch / "__init__.py").write_text("raise SystemExit('torch was imported')\n")
        without_torch = {name: module for name, module in sys.modules.items() if name != "torch"}
        for patch in [mock.patch.object(sys, "path", [folder.name, *sys.path]), mock.patch.object(sys, "modules", without_torch),
                      mock.patch.dict(os.environ, {"LD_LIBRARY_PATH": "/mine"})]:
            patch.start()
            self.addCleanup(patch.stop)

    def found(self, version="2.11.0"):
        with mock.patch.object(importlib.metadata, "version", side_effect=[version]):
            return command.libtorch(WANTED)

    def test_its_folder_comes_before_the_users(self):
        nvidia = self.torch.parent / "nvidia" / "cu13" / "lib"
        nvidia.mkdir(parents=True)
        for version in ["2.11.0", "2.11.0+cpu", "2.11.0+cu130"]:
            self.assertEqual(self.found(version), {"LD_LIBRARY_PATH": f"{self.torch / 'lib'}:{nvidia}:/mine"})

    def test_its_cuda_part_is_named_where_there_is_a_gpu(self):
        for drivers, named in [(["/dev/null"], "libtorch_cuda.so"), (["/dev/none"], None)]:
            with mock.patch.object(command, "DRIVERS", drivers):
                (self.torch / "lib" / "libtorch_cuda.so").unlink(missing_ok=True)
                self.assertNotIn("HEADCOUNT_PRELOAD", self.found())
                (self.torch / "lib" / "libtorch_cuda.so").touch()
                self.assertEqual(self.found().get("HEADCOUNT_PRELOAD"), named)

    def test_another_version_is_refused_with_the_right_one(self):
        for version in ["2.10.0", "2.11.1", "2.12.0+cpu"]:
            with self.assertRaisesRegex(command.Unusable, f"needs torch 2.11.0, not {version[:6]}.*`pip install torch==2.11.0`"):
                self.found(version)

    def test_without_torch_nothing_runs(self):
        with mock.patch.object(importlib.metadata, "version", side_effect=importlib.metadata.PackageNotFoundError):
            with self.assertRaisesRegex(command.Unusable, "torch is not installed: `pip install torch==2.11.0`"):
                command.libtorch(WANTED)

    def test_another_platform_is_refused(self):
        with mock.patch.object(platform, "system", return_value="Darwin"):
            with self.assertRaisesRegex(command.Unusable, "Linux on x86-64, not on Darwin"):
                self.found()


if __name__ == "__main__":
    unittest.main()
