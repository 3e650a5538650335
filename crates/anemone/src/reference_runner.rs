//! A package, or several that are the parts of one model, as a runner that is slow, plain, and the measure of everything faster.

use std::fmt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anemone_mil::interpret::{Interpreter, Tensors};
use anemone_mil::model::Model;
use anemone_mil::types::elements;
use anemone_mil::{Buffer, DType, DataMut, Function, StaticType, Tensor, ValueId};

use crate::package_runner::{check_feed, fill};
use crate::signature::{Call, Feed, recognize};
use crate::{Error, Result, Runner, RunnerError};

/// Runs the functions of one token in the interpreter, operation by operation. For comparing other runners with.
pub struct ReferenceRunner<'m> {
    parts: Vec<Part<'m>>,
}

impl fmt::Debug for ReferenceRunner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.parts.iter().map(|part| &part.call)).finish()
    }
}

impl<'m> ReferenceRunner<'m> {
    /// A runner over programs whose weights are loaded: that of a package, or those of a model's parts in order; `path` is
    /// where they came from, for errors.
    ///
    /// # Errors
    /// [`Error::Signature`] if no conversation can be held with it.
    pub fn new(models: &'m [Model], path: &Path) -> Result<Self> {
        let recognized = recognize(&models.iter().collect::<Vec<_>>());
        let recognized = recognized.map_err(|tried| Error::Signature { path: path.to_owned(), tried })?;
        let step = recognized.steps.into_iter().next().expect("a signature has a call of one token");
        Ok(Self { parts: models.iter().zip(step.calls).map(|(model, call)| Part::new(model, call)).collect() })
    }

    /// The call of the part that gives the logits.
    fn last(&self) -> &Call {
        &self.parts.last().expect("a model has a package").call
    }
}

/// The function of one token of one part.
struct Part<'m> {
    interpreter: Mutex<Interpreter<'m>>,
    call: Call,
    inputs: Vec<(String, Feed, DType)>,
    /// Caches that are inputs.
    caches: Vec<(String, StaticType)>,
}

impl<'m> Part<'m> {
    fn new(model: &'m Model, call: Call) -> Self {
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
        Self { interpreter: Mutex::new(Interpreter::new(function)), call, inputs, caches }
    }

    fn fresh(&self) -> Tensors {
        let interpreter = self.interpreter.lock().unwrap_or_else(PoisonError::into_inner);
        let mut states = interpreter.fresh_states();
        for (name, ty) in &self.caches {
            states.insert(name.clone(), Tensor::zeros(ty.clone()));
        }
        states
    }

    /// Feeds one token, and what the part before gave. What this part gives, its outputs one after the other.
    fn step(
        &self,
        states: &mut Tensors,
        position: usize,
        token: u32,
        hidden: &[f32],
    ) -> std::result::Result<Vec<f32>, RunnerError> {
        let mut inputs = Tensors::new();
        for (name, feed, dtype) in &self.inputs {
            let (feed, dtype) = (*feed, *dtype);
            let shape = match feed {
                Feed::WholeMask | Feed::Hidden => self.call.shapes[name].clone(),
                _ => feed.shape(1, position + 1),
            };
            let tensor = match feed {
                Feed::Mask | Feed::WholeMask => {
                    let mut mask = vec![0.0; elements(&shape)];
                    fill(feed, DataMut::F32(&mut mask), 1, position, &[token]);
                    Tensor::floats(dtype, &shape, &mask)
                }
                Feed::Hidden if elements(&shape) == hidden.len() => Tensor::floats(dtype, &shape, hidden),
                Feed::Hidden => return Err(format!("`{name}` is not as large as what the part before gives").into()),
                _ => {
                    let mut number = [0];
                    fill(feed, DataMut::I32(&mut number), 1, position, &[token]);
                    Tensor::ints(dtype, &shape, &number)
                }
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
        let outputs = interpreter.run(&inputs, own)?;
        for cache in &self.call.caches {
            let (kept, new) = (states.get_mut(&cache.input), outputs.get(&cache.columns));
            let (kept, new) = kept.zip(new).ok_or("the new columns of the cache are missing")?;
            put(kept, new, position)?;
        }
        let mut given = Vec::new();
        for name in &self.call.outputs {
            let values = outputs.get(name).and_then(Tensor::as_f32).ok_or("an output is missing, or not of floats")?;
            given.extend_from_slice(values);
        }
        Ok(given)
    }
}

impl Runner for ReferenceRunner<'_> {
    /// The states of each part.
    type State = Vec<Tensors>;

    fn context(&self) -> usize {
        self.last().context
    }

    fn vocabulary(&self) -> usize {
        self.last().vocabulary
    }

    fn chunk(&self) -> usize {
        1
    }

    fn new_state(&self) -> Result<Vec<Tensors>, RunnerError> {
        Ok(self.parts.iter().map(Part::fresh).collect())
    }

    fn feed(
        &self,
        state: &mut Vec<Tensors>,
        position: usize,
        tokens: &[u32],
        logits: &mut [f32],
    ) -> Result<(), RunnerError> {
        check_feed((self.context(), self.vocabulary()), position, tokens, logits)?;
        if state.len() != self.parts.len() {
            return Err("the state belongs to a model of other parts; make a new one".into());
        }
        for (position, &token) in (position..).zip(tokens) {
            let mut given = Vec::new();
            for (part, states) in self.parts.iter().zip(&mut *state) {
                given = part.step(states, position, token, &given)?;
            }
            if given.len() != logits.len() {
                return Err("the logits are not one row of floats".into());
            }
            logits.copy_from_slice(&given);
        }
        Ok(())
    }

    fn copy_state(&self, state: &Vec<Tensors>, _: usize) -> Result<Option<Vec<Tensors>>, RunnerError> {
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
