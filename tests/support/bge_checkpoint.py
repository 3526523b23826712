"""Tiny checkpoints of random weights in the layout of BGE-M3 and bge-reranker-v2-m3, and the same
weights as GGUF.

Needs torch, transformers and gguf; the caller skips without them.
"""

import importlib
from pathlib import Path
from typing import Any, Final

import numpy as np
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

WIDTH: Final = 64
LAYERS: Final = 2
VOCABULARY: Final = 400
POSITIONS: Final = 1_102
SPECIAL: Final = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "unk_token": "<unk>",
    "pad_token": "<pad>",
    "mask_token": "<mask>",
    "cls_token": "<s>",
    "sep_token": "</s>",
}
LAYER_NAMES: Final = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}
"""A layer's parts in transformers and in GGUF."""
OTHER_NAMES: Final = {
    "embeddings.word_embeddings": "token_embd",
    "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types",
    "embeddings.LayerNorm": "token_embd_norm",
    "classifier.dense": "cls",
    "classifier.out_proj": "cls.output",
}


def pieces() -> list[tuple[str, float]]:
    """Return the vocabulary: letters of a few scripts, as SentencePiece's unigram model scores
    them."""
    letters = [chr(code) for code in (*range(32, 127), *range(192, 256), 0x6771, 0x4EAC)]
    found = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0)]
    return found + [(letter, -5.0) for letter in letters if letter != " "] + [("<mask>", 0.0)]


def make_checkpoint(folder: Path, *, reranker: bool, seed: int) -> None:
    """Write an encoder of two layers with BGE-M3's two further heads, or a cross-encoder with one
    output."""
    torch, transformers = importlib.import_module("torch"), importlib.import_module("transformers")
    torch.manual_seed(seed)
    config = _config(transformers, labels=1 if reranker else 2)
    kind = "XLMRobertaForSequenceClassification" if reranker else "XLMRobertaModel"
    getattr(transformers, kind)(config).save_pretrained(folder)
    _tokenizer(transformers).save_pretrained(folder)
    if not reranker:
        torch.save(torch.nn.Linear(WIDTH, 1).state_dict(), folder / "sparse_linear.pt")
        torch.save(torch.nn.Linear(WIDTH, WIDTH).state_dict(), folder / "colbert_linear.pt")


def convert_checkpoint(folder: Path, path: Path, *, reranker: bool) -> None:
    """Write the checkpoint of `folder` as a GGUF file of llama.cpp's architecture `bert` with a
    unigram tokeniser."""
    gguf = importlib.import_module("gguf")
    weights = importlib.import_module("safetensors.numpy").load_file(folder / "model.safetensors")
    writer = gguf.GGUFWriter(path, "bert")
    _write_facts(gguf, writer, reranker=reranker)
    for name, values in weights.items():
        place, _, last = name.removeprefix("roberta.").rpartition(".")
        if place.startswith("pooler"):
            continue
        if place.startswith("encoder.layer."):
            number, _, part = place.removeprefix("encoder.layer.").partition(".")
            target = f"blk.{number}.{LAYER_NAMES[part]}"
        else:
            target = OTHER_NAMES[place]
        # RoBERTa's positions begin after the padding's two rows; llama.cpp's begin at nought.
        kept = values[2:] if target == "position_embd" else values
        writer.add_tensor(f"{target}.{last}", np.ascontiguousarray(kept, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _write_facts(gguf: Any, writer: Any, *, reranker: bool) -> None:
    writer.add_name("tiny-bge")
    writer.add_context_length(POSITIONS - 2)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(2 * WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_head_count(4)
    writer.add_layer_norm_eps(1e-5)
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.RANK if reranker else gguf.PoolingType.CLS)
    writer.add_tokenizer_model("t5")
    filled = pieces() + [(f"[PAD{number}]", 0.0) for number in range(len(pieces()), VOCABULARY)]
    kinds = {"<unk>": 2, "<s>": 3, "</s>": 3, "<pad>": 3, "<mask>": 3}
    writer.add_token_list([piece for piece, _ in filled])
    writer.add_token_scores([score for _, score in filled])
    writer.add_token_types(
        [5 if piece.startswith("[PAD") else kinds.get(piece, 1) for piece, _ in filled]
    )
    writer.add_token_type_count(1)
    writer.add_add_space_prefix(True)
    writer.add_remove_extra_whitespaces(True)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(True)
    writer.add_bos_token_id(0)
    writer.add_pad_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_sep_token_id(2)
    writer.add_unk_token_id(3)


def _tokenizer(transformers: Any) -> Any:
    tokenizer = Tokenizer(models.Unigram(pieces(), unk_id=3))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=1_100, **SPECIAL
    )


def _config(transformers: Any, *, labels: int) -> Any:
    return transformers.XLMRobertaConfig(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        intermediate_size=2 * WIDTH,
        max_position_embeddings=POSITIONS,
        type_vocab_size=1,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        num_labels=labels,
        layer_norm_eps=1e-5,
    )
