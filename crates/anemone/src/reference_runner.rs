//! A package as a runner that is slow, plain, and the measure of everything faster.

use std::fmt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anemone_mil::interpret::{Interpreter, Tensors};
use anemone_mil::model::Model;
use anemone_mil::{DType, DataMut, Function, Tensor, ValueId};

use crate::package_runner::{check_feed, fill};
use crate::signature::{Call, Feed, recognize};
use crate::{Error, Result, Runner, RunnerError};

/// Runs the function of one token in the interpreter, operation by operation. For comparing other runners with.
pub struct ReferenceRunner<'m> {
    interpreter: Mutex<Interpreter<'m>>,
    call: Call,
    inputs: Vec<(&'static str, Feed, DType)>,
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
        let (_, calls) = recognize(model).map_err(|tried| Error::Signature { path: path.to_owned(), tried })?;
        let call = calls.into_iter().next().expect("a signature has a call of one token");
        let function: &'m Function = &model.program.functions[&call.function];
        let value = |id: &ValueId| function.value(*id);
        let dtype = |name: &str| {
            let found = function.inputs.iter().map(value).find(|v| v.name == name);
            found.and_then(|v| v.ty.tensor()).map(|ty| ty.dtype).expect("a signature names inputs that are there")
        };
        let inputs = call.inputs.iter().map(|&(name, feed)| (name, feed, dtype(name))).collect();
        Ok(Self { interpreter: Mutex::new(Interpreter::new(function)), call, inputs })
    }

    fn step(&self, states: &mut Tensors, position: usize, token: u32) -> std::result::Result<Tensor, RunnerError> {
        let mut inputs = Tensors::new();
        for &(name, feed, dtype) in &self.inputs {
            let shape = match feed {
                Feed::Tokens => vec![1, 1],
                Feed::Positions => vec![1],
                Feed::Mask => vec![1, 1, 1, position + 1],
            };
            let tensor = if feed == Feed::Mask {
                let mut mask = vec![0.0; position + 1];
                fill(feed, DataMut::F32(&mut mask), 1, position, &[token]);
                Tensor::floats(dtype, &shape, &mask)
            } else {
                let mut number = [0];
                fill(feed, DataMut::I32(&mut number), 1, position, &[token]);
                Tensor::ints(dtype, &shape, &number)
            };
            inputs.insert(name.to_owned(), tensor);
        }
        let interpreter = self.interpreter.lock().unwrap_or_else(PoisonError::into_inner);
        let mut outputs = interpreter.run(&inputs, states)?;
        outputs.remove(self.call.logits).ok_or_else(|| "the logits are missing".into())
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
        Ok(self.interpreter.lock().unwrap_or_else(PoisonError::into_inner).fresh_states())
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
