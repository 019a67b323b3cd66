"""Runs of a model on a few tokens, in one pass and in cached decoding steps, whichever library the model is from."""
import contextlib
import inspect

import torch

from .families import AblationError, attentions_of_bridge, attentions_of_hooked, attentions_of_transformers

PROMPT, STEPS = 6, 3  # tokens of a row: read at once, then one by one


class Transformers:
    """A model of transformers; hooks are set by a context manager."""

    def __init__(self, model):
        self.module, self.attentions = model, attentions_of_transformers(model)
        self.config = model.config

    @staticmethod
    def is_kind(model):
        return isinstance(model, torch.nn.Module) and hasattr(model, "config")

    def random_tokens(self):
        """Token identifiers, `[2, 9]`, that are no special tokens; another row of heads' outputs for each."""
        special = {getattr(self.config, name, None) for name in
                   ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id")}
        return draw(self.config.vocab_size, special)

    def ablated(self, ablation):
        """A context that yields how the model is called under the user's ablation."""
        return entered(ablation, self.module)

    def logits(self, call, tokens):
        """Outputs at the prompt and at each cached step, `[batch, positions, classes]`, one tensor if there is no cache.

        `call` takes the model's arguments.
        """
        if not (hasattr(self.module, "can_generate") and self.module.can_generate()):
            rows = [first_output(call(input_ids=row[None])) for row in tokens]  # no two rows: classifiers would need a padding token
            return [torch.cat(rows)]
        is_pair = self.config.is_encoder_decoder
        name = "decoder_input_ids" if is_pair else "input_ids"
        seen = torch.ones_like(tokens)  # said to the model, which might else look for padding
        of_cache = "cache" if "cache" in inspect.signature(self.module.forward).parameters else "past_key_values"
        source = {"input_ids": tokens} if is_pair else {}
        mask = lambda end: seen if is_pair else seen[:, :end]
        output = call(**source, **{name: tokens[:, :PROMPT]}, attention_mask=mask(PROMPT), use_cache=True)
        found, cache = [first_output(output)], getattr(output, of_cache, None)
        if is_pair:
            source = {"encoder_outputs": (output.encoder_last_hidden_state,)}
        for place in range(PROMPT, tokens.shape[1] if cache is not None else 0):
            output = call(**source, **{name: tokens[:, place:place + 1], of_cache: cache}, attention_mask=mask(place + 1), use_cache=True)
            cache = getattr(output, of_cache)
            found.append(first_output(output))
        return found


class HookedTransformer(Transformers):
    """A HookedTransformer of TransformerLens; hooks are set by a context manager such as `model.hooks(fwd_hooks=...)`."""

    def __init__(self, model):
        self.module, self.attentions = model, attentions_of_hooked(model)

    @staticmethod
    def is_kind(model):
        return isinstance(model, torch.nn.Module) and hasattr(model, "cfg") and hasattr(model, "blocks")

    def random_tokens(self):
        return draw(self.module.cfg.d_vocab, set())

    def logits(self, call, tokens):
        from transformer_lens import HookedTransformerKeyValueCache

        cache = HookedTransformerKeyValueCache.init_cache(self.module.cfg, self.module.cfg.device, len(tokens))
        parts = tokens.split([PROMPT] + [1] * (tokens.shape[1] - PROMPT), dim=1)
        return [call(part, past_kv_cache=cache, attention_mask=torch.ones_like(part)) for part in parts]


class TransformerBridge(Transformers):
    """A TransformerBridge of TransformerLens, which wraps the parts of a model of transformers."""

    def __init__(self, model):
        self.module, self.attentions = model.original_model, attentions_of_bridge(model)
        self.config = self.module.config

    @staticmethod
    def is_kind(model):
        return hasattr(model, "original_model") and hasattr(model, "blocks")


class NNsight(Transformers):
    """A LanguageModel of nnsight around a model of transformers; the ablation is a function that is called in `model.trace`."""

    def __init__(self, model):
        super().__init__(getattr(model, "_module", None) or model._model)
        self.envoy = model

    @staticmethod
    def is_kind(model):
        return hasattr(type(model), "trace") and (hasattr(model, "_module") or hasattr(model, "_model"))

    def ablated(self, ablation):
        if hasattr(ablation, "__enter__"):
            return entered(ablation, self.module)

        def call(**arguments):
            with self.envoy.trace(**arguments):
                ablation()
                output = self.envoy.output.save()
            return output
        return contextlib.nullcontext(call)


KINDS = [NNsight, TransformerBridge, HookedTransformer, Transformers]


def runner(model):
    """How to run this object and where its heads are; raises AblationError for objects of other libraries."""
    for kind in KINDS:
        if kind.is_kind(model):
            return kind(model)
    raise AblationError(f"a {type(model).__name__} is not a model of transformers, TransformerLens or nnsight")


@contextlib.contextmanager
def entered(ablation, call):
    """Enters a context manager, or what a function without arguments returns."""
    context = ablation if hasattr(ablation, "__enter__") else ablation() if callable(ablation) else None
    if not hasattr(context, "__enter__"):
        raise AblationError(f"{ablation!r} is neither a context manager nor a function that returns one")
    with context:
        yield call


@contextlib.contextmanager
def evaluating(module):
    """No dropout and no gradients; restores which modules were training."""
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for part in training:
            part.training = True


def draw(vocabulary, special):
    allowed = torch.tensor([token for token in range(min(vocabulary, 30_000)) if token not in special])
    return allowed[torch.randint(len(allowed), (2, PROMPT + STEPS), generator=torch.Generator().manual_seed(1))]


def first_output(output):
    """The logits of an output, else its hidden states."""
    found = next((output[name] for name in ("logits", "last_hidden_state") if getattr(output, name, None) is not None), None)
    return output.to_tuple()[0] if found is None else found
