"""A Marian folder of opus-mt's size with random weights, for measuring where no real weights can be had.

A random model would translate up to the greatest length. Here the end symbol's row of the tied table points the way the
decoder's last state moves with the position, so that translations end after about 25 tokens.
"""
import json
import pathlib
import shutil

import torch
import transformers

VOCABULARY, WIDTH, LENGTH = 59_514, 512, 25
PAD, END = VOCABULARY - 1, 0


def make(folder, pieces):
    """Writes the folder, unless it is there; `pieces` has source.spm, target.spm and vocab.json of a smaller model."""
    folder, pieces = pathlib.Path(folder), pathlib.Path(pieces)
    if (folder / "vocab.json").exists():
        return
    config = transformers.MarianConfig(
        vocab_size=VOCABULARY,
        decoder_vocab_size=VOCABULARY,
        d_model=WIDTH,
        encoder_layers=6,
        decoder_layers=6,
        encoder_attention_heads=8,
        decoder_attention_heads=8,
        encoder_ffn_dim=2048,
        decoder_ffn_dim=2048,
        max_position_embeddings=512,
        activation_function="swish",
        pad_token_id=PAD,
        eos_token_id=END,
        decoder_start_token_id=PAD,
        forced_eos_token_id=END,
        scale_embedding=True,
        tie_word_embeddings=True,
    )
    torch.manual_seed(1)
    model = transformers.MarianMTModel(config).eval()
    with torch.no_grad():
        end_after(model, LENGTH)
    model.generation_config.update(
        num_beams=4,
        max_length=512,
        bad_words_ids=[[PAD]],
        decoder_start_token_id=PAD,
        eos_token_id=END,
        forced_eos_token_id=END,
        pad_token_id=PAD,
    )
    model.save_pretrained(folder, safe_serialization=True)
    for name in ["source.spm", "target.spm", "tokenizer_config.json"]:
        shutil.copy(pieces / name, folder / name)
    known = json.loads((pieces / "vocab.json").read_text())
    names = [name for name in sorted(known, key=known.get) if name != "<pad>"]
    names += [f"<unused{place}>" for place in range(len(names), PAD)] + ["<pad>"]
    # Last, since a folder with it is complete.
    (folder / "vocab.json").write_text(json.dumps({name: place for place, name in enumerate(names)}))


def end_after(model, length):
    """Makes the end symbol probable from that position on, by a linear regression of "late" on the decoder's states."""
    steps = 2 * length + 20
    source, target = torch.randint(1, PAD, (16, 20)), torch.randint(1, PAD, (16, steps))
    target[:, 0] = PAD
    states = model.model(input_ids=source, decoder_input_ids=target).last_hidden_state  # [16, steps, d_model]
    late = (torch.arange(steps) >= length).float().repeat(16)
    flat = states.reshape(-1, WIDTH)
    centred = flat - flat.mean(0)
    ridge = centred.T @ centred + 10 * torch.eye(WIDTH)
    way = torch.linalg.solve(ridge, centred.T @ (late - late.mean()))
    rise = (states @ way).mean(0)  # [steps]
    before, after = rise[: length * 4 // 5].max(), rise[length + 2]
    scale = 16.0 / (after - before)
    model.model.shared.weight[END] = way * scale
    model.final_logits_bias[0, END] = 14.0 - after * scale
