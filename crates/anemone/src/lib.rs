//! A language model that keeps its conversation warm: model, tokenizer, chat template, sampler, session.
