"""The other side of `just bench`: transformers, CTranslate2 and eager PyTorch do what the first line of the input asks
for, once for each line that follows, on the device that it names, and print the seconds that it took.

The first line is JSON. `generate` and `ctranslate2`: translate token ids by beam search; `opus_size`: translate texts with a
model of that size, which is made if it is not there; `mask`: the nats of made-up texts, or
their classes, with one head of each layer masked in turn; `train`: optimiser steps on made-up batches.
"""
import json
import sys
import tempfile
import time

try:
    import torch
    import transformers
except ImportError as error:
    sys.exit(print(f"{error}: install torch and transformers, or name a Python that has them by --python"))

from opus_size import make as make_opus_size

transformers.logging.set_verbosity_error()


def generate(folder, batches, limits, beam, length_penalty, stopping, pad, device, **_):
    model = transformers.MarianMTModel.from_pretrained(folder).eval().to(device)

    def once():
        for rows, limit in zip(batches, limits):
            longest = max(map(len, rows))
            ids = torch.tensor([row + [pad] * (longest - len(row)) for row in rows], device=device)
            with torch.inference_mode():
                model.generate(
                    input_ids=ids,
                    attention_mask=(ids != pad).long(),
                    num_beams=beam,
                    length_penalty=length_penalty,
                    early_stopping=stopping,
                    max_new_tokens=limit,
                )

    return once


def opus_size(folder, pieces, texts, rows, device, **_):
    make_opus_size(folder, pieces)
    model = transformers.MarianMTModel.from_pretrained(folder).eval().to(device)
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    parts = [texts[first : first + rows] for first in range(0, len(texts), rows)]

    def once():
        for part in parts:
            with torch.inference_mode():
                model.generate(**tokenizer(part, return_tensors="pt", padding=True).to(device))

    return once


def ctranslate2(folder, batches, limits, beam, length_penalty, pad, threads, device, **_):
    if device != "cpu":
        sys.exit(print("compared on a CPU alone: --device cpu"))
    try:
        import ctranslate2
        from ctranslate2.converters.transformers import BartLoader, MarianMTLoader
    except ImportError as error:
        sys.exit(print(f"{error}: install ctranslate2, or name a Python that has it by --python"))

    class Loader(MarianMTLoader):
        """Keeps the padding symbol, which need not be the last one, and its embedding, with which decoding starts."""

        def _remove_pad_weights(self, spec):
            pass

        def set_decoder(self, spec, decoder):
            BartLoader.set_decoder(self, spec, decoder)

    model = transformers.MarianMTModel.from_pretrained(folder)
    spec = Loader().get_model_spec(model)
    names = [str(token) for token in range(model.config.vocab_size)]
    spec.register_source_vocabulary(names)
    spec.register_target_vocabulary(names)
    spec.config.eos_token = spec.config.unk_token = spec.config.bos_token = names[model.config.eos_token_id]
    spec.config.decoder_start_token = names[model.config.decoder_start_token_id]
    spec.validate()
    spec.optimize()
    with tempfile.TemporaryDirectory() as converted:
        spec.save(converted)
        translator = ctranslate2.Translator(converted, inter_threads=threads, intra_threads=1, compute_type="float32")
    sources = [[names[token] for token in row] for rows in batches for row in rows]

    def once():
        translator.translate_batch(
            sources,
            max_batch_size=max(map(len, batches)),
            beam_size=beam,
            length_penalty=length_penalty,
            max_decoding_length=max(limits),
            suppress_sequences=[[names[pad]]],
        )

    return once


# The output projection of each layer's attention: GPT-2, BERT, Llama
OUTPUTS = "attn.c_proj", "attention.output.dense", "self_attn.o_proj"


def mask(config, texts, length, device, **_):
    config = transformers.AutoConfig.for_model(**config, attn_implementation="sdpa")
    is_bert = config.model_type == "bert"
    kind = transformers.AutoModelForSequenceClassification if is_bert else transformers.AutoModelForCausalLM
    model = kind.from_config(config).eval().to(device)
    projections = [module for name, module in model.named_modules() if name.endswith(OUTPUTS)]
    tokens = torch.randint(0, config.vocab_size, (texts, length + 1), device=device)
    read, labels = tokens[:, :-1], tokens[:, 1:]
    width = config.hidden_size // config.num_attention_heads

    def without_first(_module, arguments):
        context, *others = arguments
        context[..., :width] = 0
        return context, *others

    def outputs():
        if is_bert:
            return model(input_ids=read).logits.tolist()
        logits = model(input_ids=read, use_cache=False).logits
        nats = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
        return nats.view(texts, length).sum(-1).tolist()

    def once():
        for projection in projections:
            hook = projection.register_forward_pre_hook(without_first)
            with torch.inference_mode():
                outputs()
            hook.remove()

    return once


def train(family, config, steps, rows, lengths, labels, device, **_):
    if family == "bert":
        model = transformers.BertForSequenceClassification(transformers.BertConfig(**config, num_labels=labels))
    else:
        model = transformers.MarianMTModel(transformers.MarianConfig(**config))
    model.train().to(device)
    adam = torch.optim.AdamW(model.parameters(), lr=1e-5)
    made_up = [torch.randint(5, config["vocab_size"], (rows, length), device=device) for length in lengths]

    def loss():
        if family == "bert":
            return model(input_ids=made_up[0], labels=torch.randint(0, labels, (rows,), device=device)).loss
        logits = model(input_ids=made_up[0], decoder_input_ids=made_up[1]).logits
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), made_up[1].flatten(), label_smoothing=0.1)

    def once():
        for _ in range(steps):
            adam.zero_grad(set_to_none=True)
            loss().backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            adam.step()

    return once


def main():
    task = json.loads(sys.stdin.readline())
    torch.set_num_threads(task["threads"])
    tasks = {"generate": generate, "ctranslate2": ctranslate2, "opus_size": opus_size, "mask": mask, "train": train}
    once = tasks[task["do"]](**task)
    print("ready", flush=True)
    for _ in sys.stdin:
        started = time.perf_counter()
        once()
        if task["device"] != "cpu":  # a GPU may still be at work
            torch.cuda.synchronize(task["device"])
        print(time.perf_counter() - started, flush=True)


main()
