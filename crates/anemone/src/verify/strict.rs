//! A package in the arithmetic of hardware that computes in half floats: every half float is rounded as soon as it is computed.

use anemone_mil::interpret::{InterpretError, Interpreter, Overflow, Tensors};
use anemone_mil::{DType, Function, Tensor, Type};

use crate::PackageState;
use crate::reference_runner::put;

/// A cache that is an input, and the output of its new columns.
const CACHE: (&str, &str) = ("kv_cache", "kv_columns");

/// What a run in half floats gave.
#[derive(Clone, Debug)]
pub struct Strict {
    /// Logits after each token.
    pub logits: Vec<Vec<f32>>,
    /// Operations that made infinities or NaN of finite operands.
    pub overflows: Vec<Overflow>,
}

/// Why a function could not be run in half floats.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum StrictError {
    #[error("function `{function}`: nothing is known to feed its input `{input}` with")]
    Input { function: String, input: String },
    #[error("function `{function}` gives no floats `logits`")]
    Logits { function: String },
    #[error("function `{function}`: {problem}")]
    Cache { function: String, problem: String },
    #[error("function `{function}`: {source}")]
    Run { function: String, source: InterpretError },
}

/// Feeds `tokens` one by one from `position` on, over what `state` holds. Slow: each call copies the cache several times.
///
/// # Errors
/// If the function has inputs that nothing is known of, or an operation fails.
pub fn strict(
    name: &str,
    function: &Function,
    state: &PackageState,
    position: usize,
    tokens: &[u32],
    vocabulary: usize,
) -> Result<Strict, StrictError> {
    let run = Interpreter::new(function).strict();
    let mut states = Tensors::new();
    for (_, name, ty) in function.states() {
        if let (Some(ty), Some(halves)) = (ty, state.get(name)) {
            let values: Vec<f32> = halves.iter().map(|h| h.to_f32()).collect();
            states.insert(name.to_owned(), Tensor::floats(ty.dtype, &ty.shape, &values));
        }
    }
    let kept = function.inputs.iter().map(|&id| function.value(id)).find(|v| v.name == CACHE.0);
    let kept = kept.and_then(|v| v.ty.tensor()?.to_static());
    let mut cache = kept.zip(state.get(CACHE.0)).map(|(ty, halves)| {
        let values: Vec<f32> = halves.iter().map(|h| h.to_f32()).collect();
        Tensor::floats(ty.dtype, &ty.shape, &values)
    });
    let mut logits = Vec::with_capacity(tokens.len());
    for (position, &token) in (position..).zip(tokens) {
        let mut inputs = inputs(name, function, position, token)?;
        inputs.extend(cache.clone().map(|cache| (CACHE.0.to_owned(), cache)));
        let mut outputs =
            run.run(&inputs, &mut states).map_err(|source| StrictError::Run { function: name.to_owned(), source })?;
        if let Some(cache) = &mut cache {
            let fault = |problem: &str| StrictError::Cache { function: name.to_owned(), problem: problem.to_owned() };
            let columns = outputs.get(CACHE.1).ok_or_else(|| fault("it gives no new columns of the cache"))?;
            put(cache, columns, position).map_err(|e| fault(&e.to_string()))?;
        }
        let found = outputs.remove("logits");
        let all = found.as_ref().and_then(Tensor::as_f32).filter(|all| all.len() >= vocabulary);
        let all = all.ok_or_else(|| StrictError::Logits { function: name.to_owned() })?;
        logits.push(all[all.len() - vocabulary..].to_vec());
    }
    Ok(Strict { logits, overflows: run.overflows() })
}

/// What the inputs of the known interfaces are for one token.
fn inputs(name: &str, function: &Function, position: usize, token: u32) -> Result<Tensors, StrictError> {
    let mut all = Tensors::new();
    for value in function.inputs.iter().map(|&id| function.value(id)).filter(|v| !matches!(v.ty, Type::State(_))) {
        let tensor = match value.name.as_str() {
            "input_ids" | "inputIds" | "token" => Tensor::ints(DType::I32, &[1, 1], &[token as i32]),
            "cache_position" | "pos" => Tensor::ints(DType::I32, &[1], &[position as i32]),
            "causalMask" => Tensor::zeros(anemone_mil::StaticType::new(DType::F16, &[1, 1, 1, position + 1])),
            input if input == CACHE.0 => continue,
            input => return Err(StrictError::Input { function: name.to_owned(), input: input.to_owned() }),
        };
        all.insert(value.name.clone(), tensor);
    }
    Ok(all)
}
