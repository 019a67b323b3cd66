"""The other side of `just bench`: transformers and eager PyTorch do what the first line of the input asks for, once for
each line that follows, and print the seconds that it took.

The first line is JSON. `generate`: translate token ids by beam search; `mask`: the nats of made-up texts with one head of
each layer masked in turn; `train`: optimiser steps on made-up batches.
"""
import json
import sys
import time

try:
    import torch
    import transformers
except ImportError as error:
    sys.exit(print(f"{error}: install torch and transformers, or name a Python that has them by --python"))

transformers.logging.set_verbosity_error()


def generate(folder, batches, limits, beam, length_penalty, stopping, pad, **_):
    model = transformers.MarianMTModel.from_pretrained(folder).eval()

    def once():
        for rows, limit in zip(batches, limits):
            longest = max(map(len, rows))
            ids = torch.tensor([row + [pad] * (longest - len(row)) for row in rows])
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


def mask(config, texts, length, **_):
    config = transformers.GPT2Config(**config, attn_implementation="sdpa")
    model = transformers.GPT2LMHeadModel(config).eval()
    tokens = torch.randint(0, config.vocab_size, (texts, length + 1))
    read, labels = tokens[:, :-1], tokens[:, 1:]
    width = config.n_embd // config.n_head

    def without_first(_module, arguments):
        context, *others = arguments
        context[..., :width] = 0
        return context, *others

    def nats():
        logits = model(input_ids=read, use_cache=False).logits
        nats = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
        return nats.view(texts, length).sum(-1).tolist()

    def once():
        for block in model.transformer.h:
            hook = block.attn.c_proj.register_forward_pre_hook(without_first)
            with torch.inference_mode():
                nats()
            hook.remove()

    return once


def train(family, config, steps, rows, lengths, labels, **_):
    if family == "bert":
        model = transformers.BertForSequenceClassification(transformers.BertConfig(**config, num_labels=labels))
    else:
        model = transformers.MarianMTModel(transformers.MarianConfig(**config))
    model.train()
    adam = torch.optim.AdamW(model.parameters(), lr=1e-5)
    made_up = [torch.randint(5, config["vocab_size"], (rows, length)) for length in lengths]

    def loss():
        if family == "bert":
            return model(input_ids=made_up[0], labels=torch.randint(0, labels, (rows,))).loss
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
    once = {"generate": generate, "mask": mask, "train": train}[task["do"]](**task)
    print("ready", flush=True)
    for _ in sys.stdin:
        started = time.perf_counter()
        once()
        print(time.perf_counter() - started, flush=True)


main()
