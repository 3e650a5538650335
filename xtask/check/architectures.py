"""Makes goldens/archs: a tiny model of drawn weights for each architecture, and the logits that PyTorch gives.

    python3 -m venv target/transformers
    target/transformers/bin/pip install numpy torch "transformers>=4.56,<5" safetensors
    target/transformers/bin/python xtask/check/architectures.py [NAME...]

Each folder holds `config.json`, `model.safetensors` (half floats, which the model computes on as single ones) and
`golden.safetensors` with `tokens` (n) and `logits` (n, vocabulary), one row for each position. Where a model computes
differently in short contexts there are also `short.tokens` and `short.logits`. The tests that read them need no Python.
"""

import json
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file

ROOT = Path(__file__).resolve().parents[2] / "goldens" / "archs"
TOKENS = 44
COMMON = dict(
    vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2, max_position_embeddings=128,
    rms_norm_eps=1e-5, bos_token_id=1, eos_token_id=2, pad_token_id=0, attn_implementation="eager",
)


def factors(n, base):
    return [round(1.0 + base * i / n, 3) for i in range(n)]


LLAMA3 = dict(rope_type="llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)


def longrope(n):
    return dict(type="longrope", short_factor=factors(n, 0.5), long_factor=factors(n, 6.0))


# Name: configuration class, heads, key-value heads, head size (None: hidden size / heads), tied, the rest.
CASES = {
    "llama": ("LlamaConfig", 6, 2, 64, True, dict(rope_theta=50000.0, rope_scaling=LLAMA3)),
    "llama_biased": ("LlamaConfig", 8, 1, 80, False, dict(attention_bias=True, mlp_bias=True)),
    "mistral": ("MistralConfig", 4, 1, 128, False, dict(sliding_window=8)),
    "smollm3": ("SmolLM3Config", 4, 1, 64, True, dict(num_hidden_layers=4, head_dim=64, rope_theta=2e6)),
    "qwen2": ("Qwen2Config", 6, 2, 16, True, dict(hidden_size=96, rope_theta=1e6)),
    "qwen2_sliding": (
        "Qwen2Config", 1, 1, 80, False,
        dict(hidden_size=80, use_sliding_window=True, sliding_window=8, max_window_layers=1),
    ),
    "qwen3": ("Qwen3Config", 4, 1, 128, False, dict(rope_theta=1e6)),
    "qwen3_tied": ("Qwen3Config", 8, 1, 64, True, dict(attention_bias=True)),
    "gemma2": (
        "Gemma2Config", 2, 2, 256, True,
        dict(sliding_window=8, query_pre_attn_scalar=256, attn_logit_softcapping=8.0, final_logit_softcapping=6.0),
    ),
    "gemma2_scaled": (
        "Gemma2Config", 4, 1, 64, True,
        dict(sliding_window=8, query_pre_attn_scalar=24, attn_logit_softcapping=5.0, final_logit_softcapping=3.0),
    ),
    "gemma3": (
        "Gemma3TextConfig", 4, 1, 64, True,
        dict(num_hidden_layers=7, sliding_window=8, query_pre_attn_scalar=64, rope_scaling=dict(rope_type="linear", factor=8.0)),
    ),
    "phi3": ("Phi3Config", 2, 2, 96, False, dict(hidden_size=192, sliding_window=8, num_hidden_layers=1)),
    "phi3_long": (
        "Phi3Config", 2, 1, 16, True,
        dict(partial_rotary_factor=0.75, original_max_position_embeddings=32, rope_scaling=longrope(6)),
    ),
    "olmo2": ("Olmo2Config", 4, 4, 8, False, dict(rope_theta=500000.0)),
    "olmo2_grouped": ("Olmo2Config", 3, 1, 64, True, dict(hidden_size=192, num_hidden_layers=1)),
}

LEFT_OUT = {
    "gemma2": ["layer_types"],
    "gemma3": ["layer_types", "_sliding_window_pattern"],
    "smollm3": ["layer_types", "no_rope_layers"],
    "qwen2_sliding": ["layer_types"],
}


def draw(name, shape, generator, gemma):
    values = torch.randn(shape, generator=generator)
    if name.endswith("norm.weight"):
        return 0.25 * values + (0.0 if gemma else 1.0)
    if name.endswith(".bias"):
        return 0.2 * values
    if "embed_tokens" in name:
        return 0.3 * values
    gain = 1.5 if "q_proj" in name or "k_proj" in name or "qkv_proj" in name else 1.0
    return gain * values / shape[1] ** 0.5


def make(name):
    kind, heads, kv_heads, head_dim, tied, more = CASES[name]
    settings = COMMON | dict(num_attention_heads=heads, num_key_value_heads=kv_heads, tie_word_embeddings=tied) | more
    if settings["hidden_size"] != heads * head_dim:
        settings["head_dim"] = head_dim
    config = getattr(transformers, kind)(**settings)
    model = transformers.AutoModelForCausalLM.from_config(config).float().eval()
    generator = torch.Generator().manual_seed(sum(name.encode()))
    weights = {}
    with torch.no_grad():
        for key, value in sorted(model.state_dict().items()):
            if key == "lm_head.weight" and tied:
                continue
            stored = draw(key, value.shape, generator, "gemma" in name).half()
            value.copy_(stored.float())
            weights[key] = stored.contiguous()
        model.tie_weights()

        def answer(n):
            tokens = torch.randint(3, config.vocab_size, (n,), generator=generator, dtype=torch.int64)
            return tokens, model(tokens[None], use_cache=False).logits[0].float()

        tokens, logits = answer(TOKENS)
        golden = {"tokens": tokens.to(torch.int32), "logits": logits.contiguous()}
        if getattr(config, "original_max_position_embeddings", TOKENS) < TOKENS:
            tokens, logits = answer(config.original_max_position_embeddings)
            golden |= {"short.tokens": tokens.to(torch.int32), "short.logits": logits.contiguous()}

    folder = ROOT / name
    folder.mkdir(parents=True, exist_ok=True)
    # As `save_pretrained` writes it, and with what older checkpoints leave to the architecture left out.
    description = json.loads(config.to_json_string(use_diff=True)) | {"architectures": [type(model).__name__]}
    for key in ("transformers_version", "dtype", "torch_dtype", *LEFT_OUT.get(name, ())):
        description.pop(key, None)
    (folder / "config.json").write_text(json.dumps(dict(sorted(description.items())), indent=1) + "\n")
    save_file(weights, folder / "model.safetensors")
    save_file(golden, folder / "golden.safetensors")
    size = sum(f.stat().st_size for f in folder.iterdir())
    spread = golden["logits"].std().item()
    print(f"{name}: {size} bytes, logits from {golden['logits'].min():.2f} to {golden['logits'].max():.2f}, deviation {spread:.2f}")


for case in sys.argv[1:] or CASES:
    make(case)
