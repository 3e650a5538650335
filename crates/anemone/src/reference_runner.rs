//! A package as a runner that is slow, plain, and the measure of everything faster.

use std::fmt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anemone_mil::interpret::{Interpreter, Tensors};
use anemone_mil::model::Model;
use anemone_mil::{Buffer, DType, DataMut, Function, StaticType, Tensor, ValueId};

use crate::package_runner::{check_feed, fill};
use crate::signature::{Call, Feed, recognize};
use crate::{Error, Result, Runner, RunnerError};

/// Runs the function of one token in the interpreter, operation by operation. For comparing other runners with.
pub struct ReferenceRunner<'m> {
    interpreter: Mutex<Interpreter<'m>>,
    call: Call,
    inputs: Vec<(String, Feed, DType)>,
    /// Caches that are inputs.
    caches: Vec<(String, StaticType)>,
}

impl fmt::Debug for ReferenceRunner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReferenceRunner").field("call", &self.call).finish_non_exhaustive()
    }
}

impl<'m> ReferenceRunner<'m> {
    /// A runner over a program whose weights are loaded; `path` is where it came from, for errors.
    ///
    /// # Errors
    /// [`Error::Signature`] if no conversation can be held with it.
    pub fn new(model: &'m Model, path: &Path) -> Result<Self> {
        let recognized = recognize(&[model]).map_err(|tried| Error::Signature { path: path.to_owned(), tried })?;
        let call = recognized.steps.into_iter().flat_map(|step| step.calls).next();
        let call = call.expect("a signature has a call of one token");
        let function: &'m Function = &model.program.functions[&call.function];
        let value = |id: &ValueId| function.value(*id);
        let dtype = |name: &str| {
            let found = function.inputs.iter().map(value).find(|v| v.name == name);
            found.and_then(|v| v.ty.tensor()).map(|ty| ty.dtype).expect("a signature names inputs that are there")
        };
        let inputs = call.inputs.iter().filter(|(_, feed)| !matches!(feed, Feed::Cache(_)));
        let inputs = inputs.map(|(name, feed)| (name.clone(), *feed, dtype(name))).collect();
        let ty = |name: &str| {
            let found = function.inputs.iter().map(value).find(|v| v.name == name);
            found.and_then(|v| v.ty.tensor()?.to_static()).expect("a signature asks for caches of fixed shape")
        };
        let caches = call.caches.iter().map(|cache| (cache.input.clone(), ty(&cache.input))).collect();
        Ok(Self { interpreter: Mutex::new(Interpreter::new(function)), call, inputs, caches })
    }

    fn step(&self, states: &mut Tensors, position: usize, token: u32) -> std::result::Result<Tensor, RunnerError> {
        let mut inputs = Tensors::new();
        for (name, feed, dtype) in &self.inputs {
            let (feed, dtype) = (*feed, *dtype);
            let shape = feed.shape(1, position + 1);
            let tensor = if feed == Feed::Mask {
                let mut mask = vec![0.0; position + 1];
                fill(feed, DataMut::F32(&mut mask), 1, position, &[token]);
                Tensor::floats(dtype, &shape, &mask)
            } else {
                let mut number = [0];
                fill(feed, DataMut::I32(&mut number), 1, position, &[token]);
                Tensor::ints(dtype, &shape, &number)
            };
            inputs.insert(name.clone(), tensor);
        }
        for cache in &self.call.caches {
            let kept = states.get(&cache.input).ok_or("the state belongs to another package")?;
            inputs.insert(cache.input.clone(), kept.clone());
        }
        let interpreter = self.interpreter.lock().unwrap_or_else(PoisonError::into_inner);
        // What is an input is no state of the interpreter.
        let mut none = Tensors::new();
        let own = if self.call.caches.is_empty() { &mut *states } else { &mut none };
        let mut outputs = interpreter.run(&inputs, own)?;
        for cache in &self.call.caches {
            let (kept, new) = (states.get_mut(&cache.input), outputs.get(&cache.columns));
            let (kept, new) = kept.zip(new).ok_or("the new columns of the cache are missing")?;
            put(kept, new, position)?;
        }
        outputs.remove(&self.call.outputs[0]).ok_or_else(|| "the logits are missing".into())
    }
}

impl Runner for ReferenceRunner<'_> {
    type State = Tensors;

    fn context(&self) -> usize {
        self.call.context
    }

    fn vocabulary(&self) -> usize {
        self.call.vocabulary
    }

    fn chunk(&self) -> usize {
        1
    }

    fn new_state(&self) -> Result<Tensors, RunnerError> {
        let interpreter = self.interpreter.lock().unwrap_or_else(PoisonError::into_inner);
        let mut states = interpreter.fresh_states();
        for (name, ty) in &self.caches {
            states.insert(name.clone(), Tensor::zeros(ty.clone()));
        }
        Ok(states)
    }

    fn feed(
        &self,
        state: &mut Tensors,
        position: usize,
        tokens: &[u32],
        logits: &mut [f32],
    ) -> Result<(), RunnerError> {
        check_feed((self.context(), self.vocabulary()), position, tokens, logits)?;
        for (i, &token) in tokens.iter().enumerate() {
            let found = self.step(state, position + i, token)?;
            let row = found.as_f32().filter(|row| row.len() == logits.len());
            logits.copy_from_slice(row.ok_or("the logits are not one row of floats")?);
        }
        Ok(())
    }

    fn copy_state(&self, state: &Tensors, _: usize) -> Result<Option<Tensors>, RunnerError> {
        Ok(Some(state.clone()))
    }
}

/// Writes a column (…, 1, head dim) at its position of a cache (…, context, head dim).
pub(crate) fn put(cache: &mut Tensor, column: &Tensor, position: usize) -> Result<(), RunnerError> {
    let [.., context, size] = cache.ty.shape[..] else { return Err("the cache has too few axes".into()) };
    let (Buffer::F32(to), Some(from)) = (&mut cache.data, column.as_f32()) else {
        return Err("the cache is not of floats".into());
    };
    for (to, from) in to.chunks_exact_mut(context * size).zip(from.chunks_exact(size)) {
        to[position * size..(position + 1) * size].copy_from_slice(from);
    }
    Ok(())
}
