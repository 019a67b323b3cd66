"""Checks of hooks in TransformerLens and nnsight: in stubs with their attributes, and in the libraries where they are installed."""
import contextlib
import functools
import importlib.util
import pathlib
import sys
import types
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from test_ablation import GROUPS, HEADS, LAYERS, SIZE, WIDTH, columns, model_of, zeroed  # noqa: E402

import torch  # noqa: E402
from torch import nn  # noqa: E402

import headcount  # noqa: E402


class HookPoint(nn.Identity):
    pass


class StubAttention(nn.Module):
    """Attention of a HookedTransformer of TransformerLens 2: weights by head, `[heads, d_model, d_head]`."""

    def __init__(self):
        super().__init__()
        for name, heads in ("W_Q", HEADS), ("W_K", GROUPS), ("W_V", GROUPS):
            setattr(self, name, nn.Parameter(torch.randn(heads, SIZE, WIDTH)))
        self.W_O = nn.Parameter(torch.randn(HEADS, WIDTH, SIZE))
        self.hook_q, self.hook_attn_scores, self.hook_z = HookPoint(), HookPoint(), HookPoint()

    def forward(self, residual, cache):
        split = lambda weight: torch.einsum("bpm,hmd->bphd", residual, weight)  # [batch, positions, heads, width]
        query, cached = self.hook_q(split(self.W_Q)), [split(self.W_K), split(self.W_V)]
        cache[:] = [torch.cat(parts, 1) for parts in zip(cache, cached)] if cache else cached
        key, value = (each.repeat_interleave(HEADS // GROUPS, 2) for each in cache)
        scores = torch.einsum("bqhd,bkhd->bhqk", query, key) / WIDTH ** 0.5
        scores = scores + torch.full(scores.shape[2:], -torch.inf).triu(scores.shape[3] - scores.shape[2] + 1)
        weights = self.hook_attn_scores(scores).softmax(-1)
        return torch.einsum("bphd,hdm->bpm", self.hook_z(torch.einsum("bhqk,bkhd->bqhd", weights, value)), self.W_O)


class StubBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn, self.hook_attn_out = StubAttention(), HookPoint()

    def forward(self, residual, cache):
        return residual + self.hook_attn_out(self.attn(nn.functional.layer_norm(residual, [SIZE]), cache))


class StubCache(list):
    @classmethod
    def init_cache(cls, config, _device, _rows):
        return cls([] for _ in range(config.n_layers))


class StubHookedTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.cfg = types.SimpleNamespace(n_layers=LAYERS, n_heads=HEADS, n_key_value_heads=GROUPS, d_head=WIDTH, d_vocab=31, device="cpu")
        self.embed, self.unembed = nn.Embedding(31, SIZE), nn.Linear(SIZE, 31)
        self.blocks = nn.ModuleList(StubBlock() for _ in range(LAYERS))

    def forward(self, tokens, past_kv_cache, attention_mask):
        residual = self.embed(tokens)
        for block, cache in zip(self.blocks, past_kv_cache):
            residual = block(residual, cache)
        return self.unembed(residual)

    @contextlib.contextmanager
    def hooks(self, fwd_hooks):
        handles = []
        for name, function in fwd_hooks:
            point = self.get_submodule(name)
            handles.append(point.register_forward_hook(lambda module, _, value, function=function: function(value, hook=module)))
        try:
            yield self
        finally:
            for handle in handles:
                handle.remove()


class StubLanguageModel:
    """A LanguageModel of nnsight, where an intervention sets a hook for one run."""

    def __init__(self, model):
        self._module, self.edits = model, []

    @contextlib.contextmanager
    def trace(self, **arguments):
        self.output = types.SimpleNamespace(save=lambda: self._module(**arguments))
        try:
            yield
        finally:
            for handle in self.edits:
                handle.remove()

    def edit_input(self, path, change):
        self.edits.append(self._module.get_submodule(path).register_forward_pre_hook(lambda _, inputs: (change(inputs[0]),)))


def hooked_transformers():
    """The stub, and a model of TransformerLens 2 where it is installed."""
    stub = types.SimpleNamespace(HookedTransformerKeyValueCache=StubCache)
    with unittest.mock.patch.dict(sys.modules, transformer_lens=stub):
        yield StubHookedTransformer()
    try:
        from transformer_lens import HookedTransformer, HookedTransformerConfig
    except ImportError:  # missing, or version 4
        return print("without TransformerLens 2: only a stub of it is checked")
    model = HookedTransformer(HookedTransformerConfig(
        n_layers=LAYERS, d_model=SIZE, n_ctx=32, d_head=WIDTH, n_heads=HEADS, n_key_value_heads=GROUPS, d_vocab=31, act_fn="gelu", seed=1,
        positional_embedding_type="rotary", rotary_dim=WIDTH))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.4 + (parameter == 1))
    yield model


class TransformerLens(unittest.TestCase):
    def test_hooks_of_a_hooked_transformer_are_checked(self):
        def without(head):
            return lambda value, hook: torch.cat([value[:, :, :head], value[:, :, head:head + 1] * 0, value[:, :, head + 1:]], 2)

        cases = {
            (): ("attn.hook_z", without(2)),
            ("counted-from-1",): ("attn.hook_z", without(3)),
            ("wrong-group-member",): ("attn.hook_z", without(4)),
            ("output-sliced",): ("hook_attn_out", lambda value, hook: zeroed(value, columns(2))),
            ("before-softmax",): ("attn.hook_attn_scores", lambda value, hook: value.index_fill(1, torch.tensor([2]), 0)),
            ("prompt-only",): ("attn.hook_z", lambda value, hook: without(2)(value, hook) if value.shape[1] > 1 else value),
            ("changes-nothing",): ("attn.hook_z", lambda value, hook: None),
        }
        for model in hooked_transformers():
            for faults, (name, function) in cases.items():
                found = headcount.check_ablation(model, model.hooks(fwd_hooks=[(f"blocks.0.{name}", function)]), "self:1:3")
                self.assertEqual(found.faults, faults, found)
            sliced = headcount.check_ablation(model, model.hooks(fwd_hooks=[("blocks.0.hook_attn_out", cases["output-sliced",][1])]), [(1, 3)])
            self.assertEqual(sliced.remedy, "replace `blocks.0.attn.hook_z`[:, :, 2]")
            layer = headcount.check_ablation(model, model.hooks(fwd_hooks=[("blocks.1.attn.hook_z", without(2))]), "self:1:3")
            self.assertEqual(layer.faults, ("neighbouring-layer",), layer)


class NNsight(unittest.TestCase):
    EDITS = {
        (): (0, lambda values: zeroed(values, columns(2))),
        ("counted-from-1",): (0, lambda values: zeroed(values, columns(3))),
        ("neighbouring-layer",): (1, lambda values: zeroed(values, columns(2))),
        ("first-row-only",): (0, lambda values: torch.cat([zeroed(values[:1], columns(2)), values[1:]])),
        ("never-fires",): (0, lambda values: values),
    }

    def check(self, model, ablations):
        for faults, ablation in ablations.items():
            found = headcount.check_ablation(model, ablation, "self:1:3")
            self.assertEqual(found.faults, faults, found)

    def test_functions_in_a_trace_are_checked(self):
        model = StubLanguageModel(model_of("llama"))
        self.check(model, {faults: functools.partial(model.edit_input, f"model.layers.{layer}.self_attn.o_proj", change)
                           for faults, (layer, change) in self.EDITS.items()})
        if importlib.util.find_spec("nnsight") is None:
            return print("without nnsight: only a stub of it is checked")
        import nnsight
        import tokenizers
        import transformers
        words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "b": 1}, unk_token="b"))
        tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="b", pad_token="b")
        model = nnsight.LanguageModel(model_of("llama"), tokenizer=tokenizer)

        def edited(layer, change):
            projection = model.model.layers[layer].self_attn.o_proj

            def ablation():
                projection.input = change(projection.input)
            return ablation
        self.check(model, {faults: edited(*edit) for faults, edit in self.EDITS.items()})


if __name__ == "__main__":
    unittest.main()
