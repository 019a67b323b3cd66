"""Planted faults of hooks in 16 families, in TransformerLens and in nnsight, and no false alarm on the right hook."""
import contextlib
import importlib.util
import pathlib
import sys
import unittest
import unittest.mock

PACKAGES = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PACKAGES))
MISSING = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
if MISSING:
    print(f"skipped: checks of hooks: there is no {MISSING[0]}")
    raise unittest.SkipTest(f"there is no {MISSING[0]}")

import torch  # noqa: E402
import transformers  # noqa: E402

import headcount  # noqa: E402

torch.set_num_threads(1)  # the models are so small that threads only wait for each other
LAYERS, HEADS, GROUPS, WIDTH = 2, 6, 2, 4
SIZE = HEADS * WIDTH
SHARED = dict(vocab_size=31, hidden_size=SIZE, num_hidden_layers=LAYERS, num_attention_heads=HEADS, max_position_embeddings=32,
              pad_token_id=0, bos_token_id=1, eos_token_id=2)
PLAIN = dict(SHARED, intermediate_size=20)
GROUPED = dict(PLAIN, num_key_value_heads=GROUPS)
DECODER, BERT = "model.layers.{}.self_attn", "bert.encoder.layer.{}.attention"
PAIR = dict(vocab_size=31, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)

# class of transformers, configuration, attention module, output projection in it, map of queries in it
FAMILIES = {
    "gpt2": ("GPT2LMHead", dict(vocab_size=31, n_embd=SIZE, n_layer=LAYERS, n_head=HEADS, n_positions=32, bos_token_id=1, eos_token_id=2),
             "transformer.h.{}.attn", "c_proj", "c_attn"),
    "llama": ("LlamaForCausalLM", GROUPED, DECODER, "o_proj", "q_proj"),
    "mistral": ("MistralForCausalLM", GROUPED, DECODER, "o_proj", "q_proj"),
    "qwen2": ("Qwen2ForCausalLM", GROUPED, DECODER, "o_proj", "q_proj"),
    "qwen3": ("Qwen3ForCausalLM", dict(GROUPED, head_dim=WIDTH), DECODER, "o_proj", "q_proj"),
    "gemma2": ("Gemma2ForCausalLM", dict(GROUPED, head_dim=WIDTH), DECODER, "o_proj", "q_proj"),
    "gemma3_text": ("Gemma3ForCausalLM", dict(GROUPED, head_dim=WIDTH), DECODER, "o_proj", "q_proj"),
    "phi3": ("Phi3ForCausalLM", GROUPED, DECODER, "o_proj", "qkv_proj"),
    "gpt_neox": ("GPTNeoXForCausalLM", PLAIN, "gpt_neox.layers.{}.attention", "dense", "query_key_value"),
    "bloom": ("BloomForCausalLM", dict(vocab_size=31, hidden_size=SIZE, n_layer=LAYERS, n_head=HEADS, pad_token_id=0, bos_token_id=1,
                                       eos_token_id=2), "transformer.h.{}.self_attention", "dense", "query_key_value"),
    "opt": ("OPTForCausalLM", dict(SHARED, ffn_dim=20, word_embed_proj_dim=SIZE), "model.decoder.layers.{}.self_attn", "out_proj", "q_proj"),
    "bert": ("BertForMaskedLM", PLAIN, BERT, "output.dense", "self.query"),
    "roberta": ("RobertaForSequenceClassification", PLAIN, BERT.replace("bert", "roberta", 1), "output.dense", "self.query"),
    "distilbert": ("DistilBertForSequenceClassification", dict(vocab_size=31, dim=SIZE, n_layers=LAYERS, n_heads=HEADS, hidden_dim=20,
                                                               pad_token_id=0), "distilbert.transformer.layer.{}.attention", "out_lin", "q_lin"),
    "t5": ("T5ForConditionalGeneration", dict(PAIR, d_model=SIZE, d_kv=WIDTH, d_ff=20, num_layers=LAYERS, num_heads=HEADS),
           "decoder.block.{}.layer.1.EncDecAttention", "o", "q"),
    "bart": ("BartForConditionalGeneration", dict(
        PAIR, d_model=SIZE, encoder_layers=LAYERS, decoder_layers=LAYERS, encoder_attention_heads=HEADS, decoder_attention_heads=HEADS,
        encoder_ffn_dim=20, decoder_ffn_dim=20, max_position_embeddings=32), "model.decoder.layers.{}.encoder_attn", "out_proj", "q_proj"),
}
PAIRS, ENCODERS = {"t5", "bart"}, {"bert", "roberta", "distilbert"}
WITH_GROUPS = {"llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3_text", "phi3"}
BY_ROLE, BY_HEAD = {"gpt2", "phi3"}, {"gpt_neox", "bloom"}  # layouts of maps of queries, keys and values
LAYER, HEAD = 0, 2  # counted from 0
HEAD_OF = {"gpt2": 3}  # for head 2, the other layout of its fused map has the keys of head 2 in the place of its values


def model_of(name, **settings):
    base, sizes, *_ = FAMILIES[name]
    cls = getattr(transformers, base if "For" in base else f"{base}Model")
    torch.manual_seed(1)
    model = cls(cls.config_class(**sizes, **settings)).eval()
    with torch.no_grad():  # untrained norms and biases are 1 and 0, which hides faults; embeddings of 0.02 hide the heads
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.4 + (parameter == 1))
    return model


def columns(head, offset=0):
    return slice(offset + head * WIDTH, offset + (head + 1) * WIDTH)


def zeroed(values, *places):
    values = values.clone()
    for place in places:
        values[..., place] = 0
    return values


@contextlib.contextmanager
def hooks(model, *wanted):
    """Sets hooks on `(module, "input" or "output", function)`."""
    def on_input(change):
        return lambda _, inputs: (change(inputs[0]),)

    def on_output(change):
        return lambda _, _inputs, output: change(output)
    handles = [
        model.get_submodule(path).register_forward_pre_hook(on_input(change)) if where == "input"
        else model.get_submodule(path).register_forward_hook(on_output(change)) for path, where, change in wanted]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def faults_of(name, model):
    """Context managers by the fault's name; layer `LAYER`, head `HEAD_OF` or `HEAD`."""
    _, _, attention, output, query = FAMILIES[name]
    at = lambda layer, part: f"{attention.format(layer)}.{part}"
    right, head = at(LAYER, output), HEAD_OF.get(name, HEAD)
    zero = lambda *places: lambda values: zeroed(values, *places)
    start = 3 * head * WIDTH if name in BY_HEAD else head * WIDTH
    found = {
        "output-sliced": hooks(model, (right, "output", zero(columns(head)))),
        "counted-from-1": hooks(model, (right, "input", zero(columns(head + 1)))),
        "neighbouring-layer": hooks(model, (at(LAYER + 1, output), "input", zero(columns(head)))),
        "before-softmax": hooks(model, (at(LAYER, query), "output", zero(slice(start, start + WIDTH)))),
        "changes-nothing": hooks(model, (right, "input", lambda values: values)),
        "never-fires": hooks(model_of(name), (right, "input", zero(columns(head)))),
    }
    if name not in WITH_GROUPS:  # there, the head before is also a wrong member of the group
        found["previous-head"] = hooks(model, (right, "input", zero(columns(head - 1))))
    if name not in ENCODERS:
        once = lambda values: zeroed(values, columns(head)) if values.shape[1] > 1 else values
        found["prompt-only"] = hooks(model, (right, "input", once))
    if name in WITH_GROUPS:  # as repeat(1, n, 1, 1) would order heads, head 2 of groups of 3 is head 4
        found["wrong-group-member"] = hooks(model, (right, "input", zero(columns(head // 3 + HEAD % 3 * GROUPS))))
    if name in BY_HEAD:
        found["fused-layout"] = hooks(model, (at(LAYER, query), "output", zero(columns(head, offset=2 * SIZE))))
    if name in BY_ROLE:
        found["fused-layout"] = hooks(model, (at(LAYER, query), "output", zero(slice(3 * head * WIDTH, 3 * (head + 1) * WIDTH))))
    return found


class Families(unittest.TestCase):
    def check(self, name, model, context):
        kind = "enc-dec" if name in PAIRS else "self"
        return headcount.check_ablation(model, context, [f"{kind}:{LAYER + 1}:{HEAD_OF.get(name, HEAD) + 1}"])

    def test_planted_faults_are_named_and_the_right_hook_is_equal(self):
        for name in FAMILIES:
            model = model_of(name)
            path = FAMILIES[name][2].format(LAYER) + "." + FAMILIES[name][3]
            head = HEAD_OF.get(name, HEAD)
            right = self.check(name, model, hooks(model, (path, "input", lambda values: zeroed(values, columns(head)))))
            self.assertTrue(right.ok, f"{name}: {right}")
            self.assertEqual(right.faults, ())
            faults = faults_of(name, model)
            self.assertGreaterEqual(len(faults), 7)
            for fault, context in faults.items():
                with self.subTest(family=name, fault=fault):
                    found = self.check(name, model, context)
                    self.assertEqual(found.faults, (fault,), found)
                    self.assertFalse(found.ok)

    def test_each_attention_type_of_a_translator_is_found(self):
        kinds = {"t5": {"enc-enc": "encoder.block.0.layer.0.SelfAttention.o", "dec-dec": "decoder.block.0.layer.0.SelfAttention.o",
                        "enc-dec": "decoder.block.0.layer.1.EncDecAttention.o"},
                 "bart": {"enc-enc": "model.encoder.layers.0.self_attn.out_proj", "dec-dec": "model.decoder.layers.0.self_attn.out_proj",
                          "enc-dec": "model.decoder.layers.0.encoder_attn.out_proj"}}
        for name, paths in kinds.items():
            model = model_of(name)
            for kind, path in paths.items():
                for given, fault in ("output-sliced", "output"), ((), "input"):
                    context = hooks(model, (path, fault, lambda values: zeroed(values, columns(HEAD))))
                    found = headcount.check_ablation(model, context, f"{kind}:1:{HEAD + 1}")
                    self.assertEqual(found.faults, tuple(filter(None, [given])), (name, kind, found))


def eager_attention(is_first, fill, layers=(LAYER,)):
    """Attention as in transformers, with the scores of a head set to a value before later tokens are hidden, or after it."""
    def attention(module, query, key, value, attention_mask, scaling=None, **_):
        if key.shape[1] < query.shape[1]:
            key, value = (each.repeat_interleave(query.shape[1] // key.shape[1], dim=1) for each in (key, value))
        scores = query @ key.transpose(2, 3) * (query.shape[-1] ** -0.5 if scaling is None else scaling)
        causal = torch.full(scores.shape[2:], -torch.inf).triu(scores.shape[3] - scores.shape[2] + 1)
        if is_first and module.layer_idx in layers:
            scores[:, HEAD] = fill
        scores = scores + causal
        if not is_first and module.layer_idx in layers:
            scores[:, HEAD] = fill
        weights = scores.softmax(-1)
        return (weights @ value).transpose(1, 2).contiguous(), weights
    return attention


class Llama(unittest.TestCase):
    """Other faults, on one family with groups."""
    PATH = "model.layers.{}.self_attn.o_proj"

    def setUp(self):
        self.model = model_of("llama")

    def check(self, *wanted, heads=f"self:1:{HEAD + 1}"):
        return headcount.check_ablation(self.model, hooks(self.model, *wanted), heads)

    def path(self, layer=LAYER):
        return self.PATH.format(layer)

    def test_masks_before_the_softmax_are_named_wherever_they_are(self):
        self.model.set_attn_implementation("eager")
        module = sys.modules[type(self.model).__module__]
        for is_first, fill, part in (True, 0.0, "all visible keys"), (False, 0.0, "later ones too"), (False, -torch.inf, "not finite"):
            patch = unittest.mock.patch.object(module, "eager_attention_forward", eager_attention(is_first, fill))
            found = headcount.check_ablation(self.model, patch, f"self:1:{HEAD + 1}")
            self.assertEqual(found.faults, ("before-softmax",), found)
            self.assertIn(part, found.text)
        patch = unittest.mock.patch.object(module, "eager_attention_forward", eager_attention(True, 0.0, range(LAYERS)))
        self.assertEqual(headcount.check_ablation(self.model, patch, f"self:1:{HEAD + 1}").faults, ("every-layer and before-softmax",))

    def test_masks_that_the_attention_ignores_are_named(self):
        module = sys.modules[type(self.model).__module__]
        patch = unittest.mock.patch.object(module, "eager_attention_forward", eager_attention(True, 0.0))
        found = headcount.check_ablation(self.model, lambda: patch, [("self", 1, 3)])
        self.assertEqual((found.faults, found.text), (("mask-ignored",), "`sdpa` attention never calls `eager_attention_forward`"))
        self.assertEqual(found.remedy, "load the model with attn_implementation=\"eager\", or replace columns 8:12 of the input of "
                                       "`model.layers.0.self_attn.o_proj`")

        gpt2 = model_of("gpt2")
        dropout = hooks(gpt2, ("transformer.h.0.attn.attn_dropout", "output", lambda values: values * 0))
        found = headcount.check_ablation(gpt2, dropout, [(1, 3)])
        self.assertEqual((found.faults, found.text),
                         (("mask-ignored",), "`sdpa` attention never calls `transformer.h.0.attn.attn_dropout`"))

        @contextlib.contextmanager
        def head_mask():
            mask = torch.ones(LAYERS, HEADS)
            mask[LAYER, HEAD] = 0
            handle = gpt2.register_forward_pre_hook(lambda _, inputs, named: (inputs, {**named, "head_mask": mask}), with_kwargs=True)
            try:
                yield
            finally:
                handle.remove()
        found = headcount.check_ablation(gpt2, head_mask, [(1, 3)])
        self.assertEqual(found.faults, ("mask-ignored",), found)
        self.assertIn("`head_mask` reaches ", found.text)

    def test_closures_that_share_a_variable_are_named(self):
        late = lambda head: lambda values: zeroed(values, columns(head))
        found = self.check((self.path(0), "input", late(4)), (self.path(1), "input", late(4)), heads=["self:1:2", "self:2:5"])
        self.assertEqual(found.faults, ("last-head-only",))
        self.assertIn("the hook takes the last head's number in every layer", found.text)
        found = self.check((self.path(1), "input", late(4)), heads="self:1:2+self:2:5")
        self.assertEqual(found.faults, ("last-head-only",))
        self.assertIn("the hook takes only the last of the heads", found.text)

    def test_a_constant_in_the_place_of_a_head_is_an_ablation_of_that_head_only(self):
        def constant(head):
            def change(values):
                values = values.clone()
                values[..., columns(head)] = torch.arange(WIDTH) / 7
                return values
            return change
        self.assertTrue(self.check((self.path(), "input", constant(HEAD))).ok)
        self.assertEqual(self.check((self.path(), "input", constant(HEAD + 1))).faults, ("counted-from-1",))
        other = self.check((self.path(), "input", constant(5)))
        self.assertEqual((other.faults, other.text), (("other-heads",), "instead of removing self:1:3, the hook takes self:1:6"))

    def test_other_faults_are_named(self):
        head, path = columns(HEAD), self.path()
        values_of = path.replace("o_proj", "v_proj")
        cases = {
            "steps-only": (path, lambda values: zeroed(values, head) if values.shape[1] == 1 else values),
            "last-position-only": (path, lambda values: torch.cat([values[:, :-1], zeroed(values[:, -1:], head)], 1)),
            "first-row-only": (path, lambda values: torch.cat([zeroed(values[:1], head), values[1:]])),
            "whole-group": (path, lambda values: zeroed(values, columns(0), columns(1), columns(2))),
            "every-layer": None,
        }
        for fault, wanted in cases.items():
            both = [(self.path(layer), "input", lambda values: zeroed(values, head)) for layer in range(LAYERS)]
            found = self.check(*([(wanted[0], "input", wanted[1])] if wanted else both))
            self.assertEqual(found.faults, (fault,), found)
        for group, heads in (0, "self:1:3"), (1, "self:1:2"):  # values of the head's group; of the group with the head's number
            found = self.check((values_of, "output", lambda values: zeroed(values, columns(group))), heads=heads)
            self.assertEqual(found.faults, ("whole-group",), found)
        found = self.check((path, "input", lambda values: zeroed(values, columns(1))), heads="self:1:2+self:2:5")
        self.assertEqual(found.faults, ("first-head-only",), found)

    def test_two_faults_at_once_are_both_named(self):
        found = self.check((self.path(), "input", lambda values: zeroed(values, columns(HEAD + 1)) if values.shape[1] > 1 else values))
        self.assertEqual(found.faults, ("counted-from-1 and prompt-only",))

    def test_what_is_unknown_comes_with_its_size(self):
        half = lambda values: torch.cat([values[..., :8], values[..., 8:12] / 2, values[..., 12:]], -1)
        found = self.check((self.path(), "input", half))
        self.assertEqual(found.faults, ("unknown",))
        # about linear: half a head is half as far from the full model as from the removal
        self.assertGreater(found.gap, found.effect / 5)
        self.assertIn(f"differ by {found.gap:.2g} (RMS) from those without self:1:3; the removal itself changes them by "
                      f"{found.effect:.2g}\nRemedy: replace columns 8:12", str(found))

    def test_hooks_that_stay_are_named(self):
        module = self.model.get_submodule(self.path())
        stays = lambda: contextlib.nullcontext(module.register_forward_pre_hook(lambda _, inputs: (zeroed(inputs[0], columns(HEAD)),)))
        self.assertEqual(headcount.check_ablation(self.model, stays, "self:1:3").faults, ("never-undone",))

    def test_the_model_is_left_as_it_was(self):
        before = {name: values.clone() for name, values in self.model.state_dict().items()}
        self.model.train()
        self.model.model.layers[1].eval()
        self.check((self.path(), "output", lambda values: zeroed(values, columns(HEAD))))
        with self.assertRaisesRegex(ZeroDivisionError, "mine"):
            self.check((self.path(), "input", unittest.mock.Mock(side_effect=ZeroDivisionError("mine"))))
        self.assertTrue(all(values.equal(before[name]) for name, values in self.model.state_dict().items()))
        self.assertTrue(self.model.training and not self.model.model.layers[1].training)
        self.assertEqual([name for name, module in self.model.named_modules() if module._forward_hooks or module._forward_pre_hooks], [])

    def test_half_precision_is_enough_for_heads_that_matter(self):
        for dtype in torch.bfloat16, torch.float16, torch.float64:
            self.model = model_of("llama").to(dtype)
            found = self.check((self.path(), "input", lambda values: zeroed(values, columns(HEAD))))
            self.assertTrue(found.ok, found)
            sliced = self.check((self.path(), "output", lambda values: zeroed(values, columns(HEAD))))
            self.assertEqual(sliced.faults, ("output-sliced",), dtype)

    def test_a_head_without_effect_decides_nothing(self):
        with torch.no_grad():
            self.model.get_submodule(self.path()).weight[:, columns(HEAD)] = 0
        self.assertEqual(self.check().faults, ("undecidable",))

    def test_bad_input_is_refused_in_a_sentence(self):
        none = contextlib.nullcontext()
        tokens = torch.ones(2, 9, dtype=int)
        cases = [
            (self.model, none, ["self:3:1"], None, "no layer 3 in `self`: layers are numbered 1 to 2"),
            (self.model, none, [(1, 7)], None, "no head 7 in layer 1 of `self`: heads are numbered 1 to 6"),
            (self.model, none, [(0, 3)], None, "no layer 0 in `self`: layers are numbered 1 to 2"),
            (self.model, none, [("enc-dec", 1, 1)], None, "no head .*write `self:2:4` for head 4 of layer 2, counted from 1; types: self"),
            (self.model, none, ["L1H2"], None, "no head 'L1H2'"),
            (self.model, none, [3], None, "no head 3: write"),
            (self.model, none, [], None, "no heads to check"),
            (self.model, none, "self:1:1", tokens[:, :6], "at least 2 rows of at least 7"),
            (self.model, "no hook", "self:1:1", None, "'no hook' is neither a context manager"),
            (self.model, int, "self:1:1", None, "is neither a context manager nor a function that returns one"),
            (torch.nn.Linear(2, 2), none, "self:1:1", None, "a Linear is not a model of transformers, TransformerLens or nnsight"),
            (transformers.ViTModel(transformers.ViTConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)),
             none, "self:1:1", None, "unknown family `vit`: check_ablation knows bart, "),
        ]
        for model, context, heads, tokens, message in cases:
            with self.assertRaisesRegex(headcount.AblationError, message) as raised:
                headcount.check_ablation(model, context, heads, tokens)
            self.assertNotIn("\n", str(raised.exception))


if __name__ == "__main__":
    unittest.main()
