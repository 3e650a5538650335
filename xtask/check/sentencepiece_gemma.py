"""Makes crates/convert/tests/data/tokenizer/sentencepiece_gemma.json: a small SentencePiece vocabulary of Gemma's kind (byte
fallback, no space prefix, nothing normalized, single digits, runs of spaces and line ends as symbols of their own), with what
SentencePiece makes of tricky strings.

    pip install sentencepiece && python xtask/check/sentencepiece_gemma.py
"""

import io
import json
import random
from pathlib import Path

import sentencepiece

OUT = Path(__file__).resolve().parents[2] / "crates/convert/tests/data/tokenizer/sentencepiece_gemma.json"
SYMBOLS = ["<start_of_turn>", "<end_of_turn>", "\n", "\n\n", "\n\n\n", "▁▁", "▁▁▁", "▁▁▁▁", "\t", "\t\t", "<table>"]
# The names of Gemma's control tokens; the rest is as the model's users define it.
CONTROL = {"<pad>", "<eos>", "<bos>", "<start_of_turn>", "<end_of_turn>"}
CASES = [
    "", "a", " ", "  ", "     ", "   three", "trailing  ", " the cat sat on the mat", "the cat  sat\non the\tmat",
    "A STATE is Written", "naïve café straße", "привет мир", "日本語", "🌊 emoji 🏄\u200d♂️", "0123456789", "x=1;y = 2",
    "aaaaaaaaaaaaaaaa", "\n", "\n\n", "\n\n\n\n\n", "a\n\n  b", "\t\t\tc", "a\u0301", "ﬁ ½ ①", "▁already", "\u00a0nbsp",
    "<start_of_turn>user\nkalo mi<end_of_turn>\n", "a<table>b", "if x:\n    return  12345\n\n\n\nelse:\n\tpass",
]


def words(n):
    draw = random.Random(7)
    syllables = ["ka", "lo", "mi", "ner", "tu", "sha", "vel", "or", "ban", "the", "cat", "sat", "on", "mat", "is", "re"]
    for _ in range(n):
        line = [" ".join("".join(draw.choices(syllables, k=draw.randint(1, 3))) for _ in range(draw.randint(3, 12)))]
        yield line[0] + f" {draw.randint(0, 9999)}."


model = io.BytesIO()
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=words(2000), model_writer=model, model_type="bpe", vocab_size=420, byte_fallback=True,
    add_dummy_prefix=False, remove_extra_whitespaces=False, normalization_rule_name="identity", split_digits=True,
    user_defined_symbols=SYMBOLS, pad_id=0, eos_id=1, bos_id=2, unk_id=3, pad_piece="<pad>", eos_piece="<eos>",
    bos_piece="<bos>", unk_piece="<unk>", allow_whitespace_only_pieces=True, character_coverage=1.0,
    minloglevel=2,
)
processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
tokens, types, scores = [], [], []
for i in range(processor.get_piece_size()):
    piece = processor.id_to_piece(i)
    kind = 1
    if piece in CONTROL:
        kind = 3
    elif piece == "<unk>":
        kind = 2
    elif piece in SYMBOLS:
        # llama.cpp's converter writes the spaces of such tokens as they stand in a text.
        kind, piece = 4, piece.replace("▁", " ")
    elif processor.is_byte(i):
        kind = 6
    tokens.append(piece)
    types.append(kind)
    scores.append(processor.get_score(i))
cases = [{"text": t, "ids": processor.encode(t), "decoded": processor.decode(processor.encode(t))} for t in CASES]
data = dict(
    tokens=tokens, types=types, scores=scores, add_space_prefix=False, remove_extra_whitespaces=False, charsmap="",
    bos=2, eos=1, unk=3, cases=cases,
)
OUT.write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")))
print(OUT.stat().st_size, "bytes,", len(cases), "cases")
