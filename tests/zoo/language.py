"""Language models of every kind that `transformers` has, tiny and with random weights, with a dynamic batch, sequence and mask.

    python -m tests.zoo.language [--models a,b] [--opsets 18,28] [--captures trace,export] [--out table.md]
"""

from __future__ import annotations

import argparse
import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch

from tests.zoo.check import TOLERANCE, run
from tests.zoo.models import Call, Model, shaken, tokens
from tests.zoo.tables import table, tried

VOCABULARY = 99
# Sizes under all the names that configurations have for them; what a family does not know is left out.
SIZES: dict[str, Any] = {
    **dict.fromkeys(("hidden_size", "n_embd", "d_model", "embedding_size", "emb_dim"), 32),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers", "num_decoder_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads", "decoder_attention_heads"), 4),
    **dict.fromkeys(("intermediate_size", "n_inner", "d_ff", "d_inner", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "ffn_hidden_size"), 64),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"), 64),
    "vocab_size": VOCABULARY, "num_key_value_heads": 2, "head_dim": 8, "d_kv": 8, "rotary_dim": 8, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "decoder_start_token_id": 1, "moe_intermediate_size": 16, "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4,
    "num_experts_per_tok": 2, "sliding_window": 8, "use_cache": False}

LM_HEADS = ("GPT2", "OpenAIGPT")


def net(kind: str, name: str, options: Mapping[str, Any]) -> Any:
    """A model of the class `kind` of transformers. options: of its configuration, beside `SIZES`."""
    library = importlib.import_module("transformers")
    config_class = getattr(library, f"{name}Config")
    known = {*vars(config_class()), *config_class.attribute_map}
    config = config_class(**{**{key: value for key, value in SIZES.items() if key in known}, **options})
    torch.manual_seed(0)
    return shaken(getattr(library, kind)(config))


def causal(name: str, kind: str = "", **options: Any) -> Model:
    """A decoder: logits of each token."""
    made = net(kind or f"{name}{'LMHeadModel' if name in LM_HEADS else 'ForCausalLM'}", name, options)
    return tokens(Call(made, lambda m, i, a: m(input_ids=i, attention_mask=a, use_cache=False).logits), VOCABULARY)


def plain(name: str, kind: str = "", **options: Any) -> Model:
    """A decoder whose forward takes no `use_cache`."""
    made = net(kind or f"{name}{'LMHeadModel' if name in LM_HEADS else 'ForCausalLM'}", name, options)
    return tokens(Call(made, lambda m, i, a: m(input_ids=i, attention_mask=a).logits), VOCABULARY)


def unmasked(name: str, kind: str = "", **options: Any) -> Model:
    """A decoder without a mask."""
    made = net(kind or f"{name}{'LMHeadModel' if name in LM_HEADS else 'ForCausalLM'}", name, options)
    return tokens(Call(made, lambda m, i: m(input_ids=i, use_cache=False).logits), VOCABULARY, mask=False)


def encoder(name: str, kind: str = "", **options: Any) -> Model:
    """An encoder: a vector for each token."""
    made = net(kind or f"{name}Model", name, options)
    return tokens(Call(made, lambda m, i, a: m(input_ids=i, attention_mask=a)[0]), VOCABULARY)


def both(name: str, kind: str = "", **options: Any) -> Model:
    """An encoder and a decoder over it."""
    made = Call(net(kind or f"{name}ForConditionalGeneration", name, options),
                lambda m, i, a, d: m(input_ids=i, attention_mask=a, decoder_input_ids=d, use_cache=False).logits)
    return _pair(made, "decoder_input_ids")


def _pair(made: Any, name: str) -> Model:
    """`tokens`, and further ids of a length of their own."""
    first = tokens(made, VOCABULARY)
    more = lambda args, length: (*args, torch.randint(3, VOCABULARY, (args[0].shape[0], length)))
    batch, free = {**first.batch, name: {0: "batch"}}, {**(first.free or {}), name: {0: "batch", 1: "target"}}
    return Model(first.module, [*first.names, name], [more(args, 5) for args in first.inputs], batch, free,
                 [more(args, length) for args, length in zip(first.sized, (5, 3, 11), strict=True)])


FAMILIES: dict[str, tuple[Callable[..., Model], str, dict[str, Any]]] = {
    "gpt2": (causal, "GPT2", {}), "gpt_neo": (causal, "GPTNeo", {"attention_types": [[["global", "local"], 1]], "window_size": 8}),
    "gptj": (causal, "GPTJ", {}), "gpt_neox": (causal, "GPTNeoX", {}), "gpt_bigcode": (causal, "GPTBigCode", {}), "codegen": (causal, "CodeGen", {}),
    "openai_gpt": (plain, "OpenAIGPT", {}),
    "llama": (causal, "Llama", {}), "mistral": (causal, "Mistral", {}), "qwen2": (causal, "Qwen2", {}), "qwen3": (causal, "Qwen3", {}),
    "gemma": (causal, "Gemma", {}), "gemma2": (causal, "Gemma2", {}), "gemma3": (causal, "Gemma3", {"kind": "Gemma3ForCausalLM", "config": "Gemma3Text"}),
    "phi": (causal, "Phi", {}), "phi3": (causal, "Phi3", {}), "falcon": (causal, "Falcon", {}),
    "mpt": (causal, "Mpt", {}), "bloom": (causal, "Bloom", {}),
    "opt": (causal, "OPT", {"word_embed_proj_dim": 32}), "olmo": (causal, "Olmo", {}), "olmo2": (causal, "Olmo2", {}), "stablelm": (causal, "StableLm", {}),
    "starcoder2": (causal, "Starcoder2", {}), "cohere": (causal, "Cohere", {}), "cohere2": (causal, "Cohere2", {}), "granite": (causal, "Granite", {}),
    "glm": (causal, "Glm", {}), "glm4": (causal, "Glm4", {}), "smollm3": (causal, "SmolLM3", {}), "nemotron": (causal, "Nemotron", {}),
    "persimmon": (causal, "Persimmon", {}), "exaone4": (causal, "Exaone4", {}), "diffllama": (causal, "DiffLlama", {}), "helium": (causal, "Helium", {}),
    "ernie4_5": (causal, "Ernie4_5", {}), "seed_oss": (causal, "SeedOss", {}), "xglm": (causal, "XGLM", {"attention_heads": 4}),
    "biogpt": (causal, "BioGpt", {}), "modernbert_decoder": (causal, "ModernBertDecoder", {}),
    "mixtral": (causal, "Mixtral", {}), "qwen2_moe": (causal, "Qwen2Moe", {"shared_expert_intermediate_size": 16}), "qwen3_moe": (causal, "Qwen3Moe", {}),
    "olmoe": (causal, "Olmoe", {}), "granitemoe": (causal, "GraniteMoe", {}), "phimoe": (causal, "Phimoe", {}),
    "gpt_oss": (causal, "GptOss", {"attn_implementation": "eager"}),
    "deepseek_v2": (causal, "DeepseekV2", {"qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8, "kv_lora_rank": 16, "q_lora_rank": 16,
                                           "n_group": 2, "topk_group": 1, "num_key_value_heads": 4, "first_k_dense_replace": 1}),
    "deepseek_v3": (causal, "DeepseekV3", {"qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8, "kv_lora_rank": 16, "q_lora_rank": 16,
                                           "n_group": 2, "topk_group": 1, "num_key_value_heads": 4, "first_k_dense_replace": 1}),
    "mamba": (plain, "Mamba", {"state_size": 4}), "mamba2": (plain, "Mamba2", {"num_heads": 8, "head_dim": 8, "state_size": 4, "n_groups": 2, "chunk_size": 4}),
    "falcon_mamba": (plain, "FalconMamba", {"state_size": 4}), "rwkv": (plain, "Rwkv", {"attention_hidden_size": 32}),
    "recurrent_gemma": (causal, "RecurrentGemma", {"lru_width": 32, "attention_window_size": 8}),
    "jamba": (causal, "Jamba", {"use_mamba_kernels": False, "attn_layer_period": 2, "attn_layer_offset": 1, "mamba_d_state": 4, "mamba_dt_rank": 4}),
    "bamba": (causal, "Bamba", {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 4, "mamba_n_groups": 1, "mamba_chunk_size": 4,
                                "attn_layer_indices": [1]}),
    "lfm2": (causal, "Lfm2", {"full_attn_idxs": [1]}), "qwen3_next": (causal, "Qwen3Next", {
        "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 8,
        "shared_expert_intermediate_size": 16}),
    "reformer": (unmasked, "Reformer", {"kind": "ReformerModelWithLMHead", "is_decoder": True, "axial_pos_embds_dim": [16, 16], "axial_pos_shape": [8, 8],
                                        "attn_layers": ["local", "lsh"], "attention_head_size": 8, "local_attn_chunk_length": 64, "lsh_attn_chunk_length": 64,
                                        "num_buckets": 2}),
    "t5": (both, "T5", {}), "mt5": (both, "MT5", {}), "umt5": (both, "UMT5", {}), "longt5": (both, "LongT5", {"local_radius": 4, "encoder_attention_type": "local"}),
    "switch_transformers": (both, "SwitchTransformers", {"num_experts": 4, "num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1}),
    "bart": (both, "Bart", {}), "mbart": (both, "MBart", {}), "marian": (both, "Marian", {"kind": "MarianMTModel"}), "pegasus": (both, "Pegasus", {}),
    "pegasus_x": (both, "PegasusX", {"block_size": 4, "num_global_tokens": 4}), "m2m100": (both, "M2M100", {}), "nllb_moe": (both, "NllbMoe", {"num_experts": 4}),
    "blenderbot": (both, "Blenderbot", {}), "blenderbot_small": (both, "BlenderbotSmall", {}), "plbart": (both, "PLBart", {}), "led": (both, "LED", {
        "attention_window": 4, "max_encoder_position_embeddings": 64, "max_decoder_position_embeddings": 64}),
    "bigbird_pegasus": (both, "BigBirdPegasus", {"attention_type": "original_full"}), "prophetnet": (both, "ProphetNet", {
        "num_encoder_layers": 2, "num_decoder_layers": 2, "num_encoder_attention_heads": 4, "num_decoder_attention_heads": 4}),
    "fsmt": (both, "FSMT", {"src_vocab_size": 99, "tgt_vocab_size": 99, "langs": ["en", "de"]}),
    "bert": (encoder, "Bert", {}), "roberta": (encoder, "Roberta", {}), "xlm_roberta": (encoder, "XLMRoberta", {}), "camembert": (encoder, "Camembert", {}),
    "deberta": (encoder, "Deberta", {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}),
    "deberta_v2": (encoder, "DebertaV2", {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 8, "norm_rel_ebd": "layer_norm",
                                          "share_att_key": True}),
    "electra": (encoder, "Electra", {}), "distilbert": (encoder, "DistilBert", {"dim": 32, "hidden_dim": 64}), "albert": (encoder, "Albert", {}),
    "mobilebert": (encoder, "MobileBert", {"true_hidden_size": 32, "intra_bottleneck_size": 32}), "squeezebert": (encoder, "SqueezeBert", {}),
    "longformer": (encoder, "Longformer", {"attention_window": 4}), "bigbird": (encoder, "BigBird", {"attention_type": "original_full"}),
    "bigbird_sparse": (encoder, "BigBird", {"block_size": 2, "num_random_blocks": 1}), "xlnet": (encoder, "XLNet", {}), "xlm": (encoder, "XLM", {}),
    "flaubert": (encoder, "Flaubert", {}), "funnel": (encoder, "Funnel", {"block_sizes": [1, 1], "d_head": 8}), "mpnet": (encoder, "MPNet", {}),
    "fnet": (encoder, "FNet", {}),
    "convbert": (encoder, "ConvBert", {}), "roformer": (encoder, "RoFormer", {}), "rembert": (encoder, "RemBert", {"input_embedding_size": 16}),
    "modernbert": (encoder, "ModernBert", {}), "megatron_bert": (encoder, "MegatronBert", {}), "luke": (encoder, "Luke", {"entity_vocab_size": 9, "entity_emb_size": 8}),
    "ibert": (encoder, "IBert", {}), "yoso": (encoder, "Yoso", {"use_expectation": True}), "canine": (encoder, "Canine", {
        "downsampling_rate": 2, "local_transformer_stride": 4}), "esm": (encoder, "Esm", {"mask_token_id": 3}), "data2vec_text": (encoder, "Data2VecText", {}),
    "ernie": (encoder, "Ernie", {}), "splinter": (encoder, "Splinter", {}), "xmod": (encoder, "Xmod", {"languages": ["en"], "default_language": "en"}),
    "layoutlm": (encoder, "LayoutLM", {}), "mra": (encoder, "Mra", {}), "nomic_bert": (encoder, "NomicBert", {}), "eurobert": (encoder, "EuroBert", {}),
    "gte": (encoder, "Gte", {})}


# What a trace refuses, and why it has to: the file would hold for the example's length or values alone.
_LOOP, _DATA = "a Python loop runs over it", "depends on the input"
REFUSED = {
    **dict.fromkeys(("mamba", "falcon_mamba", "rwkv", "recurrent_gemma", "jamba", "funnel", "canine"), _LOOP),  # a step of Python for each token
    **dict.fromkeys(("longformer", "led", "fsmt"), _DATA),  # they ask whether a token is masked
    "switch_transformers": "a Python loop or unpacking of it", "prophetnet": "a Python loop or unpacking of it",
    "reformer": "an autograd.Function", "qwen3_next": "only the run knows whether they broadcast"}
# These cut the sequence into pieces of 4, and an example that needs no padding is no example of padding: a guard says so.
IN_FOURS = ("mamba2", "bamba", "pegasus_x")


def built(name: str) -> Model:
    """One model of `FAMILIES`."""
    factory, family, options = FAMILIES[name]
    model = factory(options.get("config", family), **{key: value for key, value in options.items() if key != "config"})
    if name in IN_FOURS:
        model.sized = [tuple(arg[:, :4] if index < 2 and arg.shape[1] == 7 else arg[:, :28] if index < 2 and arg.shape[1] == 29 else arg
                             for index, arg in enumerate(args)) for args in model.sized]
    return model


def main() -> None:
    """Prints one line for each model, capture and opset."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=",".join(FAMILIES))
    parser.add_argument("--opsets", default="18")
    parser.add_argument("--captures", default="trace,export")
    parser.add_argument("--out", default="")
    parser.add_argument("--traceback", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    rows = []
    for name in options.models.split(","):
        try:
            model = built(name)
            with torch.no_grad():
                for inputs in model.sized:
                    model.module(*inputs)
        except Exception as error:
            print(f"{name:24s} PyTorch {type(error).__name__}: {str(error)[:300]}", flush=True)
            continue
        for capture in options.captures.split(","):
            for opset in map(int, options.opsets.split(",")):

                def attempt(capture: str = capture, opset: int = opset, model: Model = model) -> tuple[bool, str]:
                    worst, nodes = run(model, opset, model.free, model.sized, capture)
                    return worst <= TOLERANCE, f"{worst:.1e} / {nodes}"

                rows.append(((name, capture), opset, tried(f"{name:24s} {capture:7s}", opset, attempt, options.traceback)))
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            file.write(table(("model", "capture"), rows))


if __name__ == "__main__":
    main()
