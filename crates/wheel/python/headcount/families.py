"""Where models keep their attention heads: a table of families of transformers, and of objects of other libraries."""
import dataclasses
import re
from typing import Any

from torch import nn


class AblationError(ValueError):
    """A model, a head or a hook that cannot be checked: one sentence says which, and what is allowed."""


@dataclasses.dataclass(frozen=True)
class Family:
    """Names of modules and of entries in `config.json`; `{}` is the layer, counted from 0."""
    model_types: str
    modules: dict  # attention type to the end of the attention module's name
    output: str = "o_proj"  # output projection, from the attention module
    query: str = "q_proj"  # map of queries, or of queries, keys and values
    fused: str = ""  # outputs of a map for all three: "by role" [queries, keys, values], "by head" [query, key, value of head 1, ...]
    input_axis: int = 1  # of the output projection's weight: 1 in nn.Linear, 0 in transformers' Conv1D
    width: str = "head_dim"  # absent: hidden size / heads
    decoder_heads: str = "num_attention_heads"
    encoder_heads: str = "num_attention_heads"


def encoder_decoder(encoder, decoder, cross):
    return {"enc-enc": encoder, "enc-dec": cross, "dec-dec": decoder}


SELF, BERT = {"self": "layers.{}.self_attn"}, {"self": "layer.{}.attention"}
FAMILIES = [
    Family("gpt2", {"self": "h.{}.attn"}, "c_proj", "c_attn", "by role", input_axis=0),
    Family("cohere gemma gemma2 gemma3_text glm4 granite llama mistral olmo2 qwen2 qwen3 qwen3_moe smollm3 starcoder2", SELF),
    Family("phi3", SELF, query="qkv_proj", fused="by role"),
    Family("opt", SELF, "out_proj"),
    Family("gpt_neox", {"self": "layers.{}.attention"}, "dense", "query_key_value", "by head"),
    Family("bloom", {"self": "h.{}.self_attention"}, "dense", "query_key_value", "by head"),
    Family("bert camembert electra roberta xlm-roberta", BERT, "output.dense", "self.query"),
    Family("distilbert", BERT, "out_lin", "q_lin"),
    Family("bart m2m_100 marian mbart pegasus", encoder_decoder(
        "encoder.layers.{}.self_attn", "decoder.layers.{}.self_attn", "decoder.layers.{}.encoder_attn"),
        "out_proj", decoder_heads="decoder_attention_heads", encoder_heads="encoder_attention_heads"),
    Family("mt5 t5", encoder_decoder(
        "encoder.block.{}.layer.0.SelfAttention", "decoder.block.{}.layer.0.SelfAttention",
        "decoder.block.{}.layer.1.EncDecAttention"), "o", "q", width="d_kv"),
]


@dataclasses.dataclass(frozen=True)
class Point:
    """A tensor in a model: what enters or leaves a module."""
    name: str
    module: nn.Module
    is_input: bool = False

    def watch(self, keep):
        """Hooks `keep`, which reads the tensor as it is after all other hooks; returns the hook's handle."""
        return self.module.register_forward_hook(lambda _, inputs, output: keep(inputs[0] if self.is_input else output))

    def edit(self, change):
        """Hooks `change`, from a tensor to a tensor of the same shape, to this point; returns the hook's handle."""
        if self.is_input:
            return self.module.register_forward_pre_hook(lambda _, inputs: (change(inputs[0]), *inputs[1:]))

        def hook(_, _inputs, outputs):
            if not isinstance(outputs, tuple):
                return change(outputs)
            return change(outputs[0]), *outputs[1:]
        return self.module.register_forward_hook(hook)


@dataclasses.dataclass(frozen=True)
class Attention:
    """An attention module: its heads, and the points where hooks can be."""
    name: str
    heads: int
    groups: int  # heads of keys and values
    width: int
    weight: Any  # of the output projection, [heads * width, d_model] or with the axes exchanged
    input_axis: int
    head_outputs: Point  # [batch, positions, heads * width] or [batch, positions, heads, width]
    results: tuple  # outputs of the projection and of the modules around it, up to the layer: [batch, positions, d_model]
    queries: Point  # [batch, positions, heads * width], or wider if fused
    fused: str

    def columns(self, head):
        """The weights [d_model, width] or [width, d_model] that read this head, counted from 0, as a view."""
        return self.weight.unflatten(self.input_axis, (self.heads, self.width)).select(self.input_axis, head)

    def place(self, head):
        """Where hooks find this head, counted from 0."""
        point, start = self.head_outputs, head * self.width
        if point.name.endswith("hook_z"):  # in TransformerLens [batch, positions, heads, width], even if the module has fewer axes
            return f"`{point.name}`[:, :, {head}]"
        return f"columns {start}:{start + self.width} of the input of `{point.name}`"

    def by_head(self, values):
        """`[batch, positions, heads * width]` to `[batch, positions, heads, width]`."""
        return values.reshape(*values.shape[:2], self.heads, self.width)


def attentions_of_transformers(module):
    """The attention modules of a model of transformers, by type and by layer, counted from 0.

    Raises AblationError for other families.
    """
    config = module.config
    family = next((family for family in FAMILIES if config.model_type in family.model_types.split()), None)
    if family is None:
        known = ", ".join(sorted(" ".join(family.model_types for family in FAMILIES).split()))
        raise AblationError(f"unknown family `{config.model_type}`: check_ablation knows {known}")
    modules, found = dict(module.named_modules()), {}
    for kind, ending in family.modules.items():
        pattern = re.compile(r"(?:.*\.)?" + re.escape(ending).replace(r"\{\}", r"(\d+)"))
        for name in modules:
            if match := pattern.fullmatch(name):
                found[kind, int(match[1])] = attention_of(family, config, kind, name, modules)
    if not found:
        raise AblationError(f"no module named `{'`, `'.join(family.modules.values())}` in this `{config.model_type}`")
    return found


def attention_of(family, config, kind, name, modules):
    path = f"{name}.{family.output}"
    output, query = modules[path], modules[f"{name}.{family.query}"]
    if not output.weight.is_floating_point() or output.weight.device.type == "meta":
        raise AblationError(f"`{path}` has no floating-point weights in memory: load the model unquantised")
    heads = getattr(config, family.encoder_heads if kind == "enc-enc" else family.decoder_heads)
    width = getattr(config, family.width, None) or config.hidden_size // heads
    groups = getattr(config, "num_key_value_heads", None) or heads
    layer = re.match(r".*?\.\d+(?=\.)", path)[0]
    around = [path]
    while around[-1] != layer:
        around.append(around[-1].rpartition(".")[0])
    results = tuple(Point(name, modules[name]) for name in around)
    return Attention(name, heads, groups, width, output.weight.data, family.input_axis, Point(path, output, True), results,
                     Point(f"{name}.{family.query}", query), family.fused)


def attentions_of_hooked(module):
    """The attention modules of a HookedTransformer of TransformerLens, by type and by layer, counted from 0."""
    found, config = {}, module.cfg
    for layer, block in enumerate(module.blocks):
        name, attention = f"blocks.{layer}", block.attn
        found["self", layer] = Attention(
            f"{name}.attn", config.n_heads, config.n_key_value_heads or config.n_heads, config.d_head, attention.W_O.data.flatten(0, 1), 0,
            Point(f"{name}.attn.hook_z", attention.hook_z),
            (Point(f"{name}.hook_attn_out", block.hook_attn_out), Point(name, block)),
            Point(f"{name}.attn.hook_q", attention.hook_q), "")
    return found


def attentions_of_bridge(bridge):
    """The attention modules of a TransformerBridge of TransformerLens 3 and later, by type and by layer, counted from 0."""
    found, config = {}, bridge.cfg
    for layer, block in enumerate(bridge.blocks):
        name, attention = f"blocks.{layer}", block.attn
        output, query = attention.o.original_component, attention.q
        points = Point(f"{name}.hook_attn_out", output), Point(f"{name}.hook_resid_post", block)
        found["self", layer] = Attention(
            f"{name}.attn", config.n_heads, config.n_key_value_heads or config.n_heads, config.d_head, output.weight.data,
            int(isinstance(output, nn.Linear)), Point(f"{name}.attn.hook_z", output, True), points, Point(f"{name}.attn.hook_q", query), "")
    return found
