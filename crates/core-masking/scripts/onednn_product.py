"""Makes assets/onednn.pt: oneDNN's product of activations with weights as a TorchScript module, the only form in which
libtorch offers it to other languages. Needs torch 2.11.0; `python3 crates/core-masking/scripts/onednn_product.py`.
"""
import pathlib
import zipfile

import torch

TARGET = pathlib.Path(__file__).resolve().parent.parent / "assets/onednn.pt"


class Product(torch.nn.Module):
    def forward(self, x: torch.Tensor, weight: torch.Tensor):
        return torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")

    @torch.jit.export
    def with_bias(self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor):
        return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


torch.jit.script(Product()).save(str(TARGET))
# Only what a reader needs: debug information holds paths of this machine.
with zipfile.ZipFile(TARGET) as archive:
    kept = {name: archive.read(name) for name in archive.namelist() if not name.endswith((".debug_pkl", "_id"))}
with zipfile.ZipFile(TARGET, "w") as archive:
    for name, content in kept.items():
        archive.writestr(zipfile.ZipInfo(name), content)
