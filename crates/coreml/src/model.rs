//! Loaded functions of one package, over one state.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::view::MAX_RANK;
use crate::{Configuration, CoreMlError, Failure, Framework, Port, Ports, Result, State, View, ViewMut};

/// What to load of a compiled package.
#[derive(Clone, Debug, Default)]
pub struct ModelOptions {
    /// How to load it; its `function` is not used.
    pub configuration: Configuration,
    /// Functions by name; none of them for a package of one function, which is loaded without a name.
    pub functions: Vec<String>,
    /// Digest of the package, which its states remember.
    pub owner: [u8; 32],
}

/// The functions of a package, loaded, all over the same states.
///
/// That one state serves several functions of a package which declare the same arrays is practice and not a promise of
/// Apple's; where it fails, `anemone doctor` tells.
#[derive(Debug)]
pub struct Model<F: Framework> {
    framework: Arc<F>,
    functions: Vec<Function<F>>,
    states: Arc<[Port]>,
    owner: [u8; 32],
}

/// One loaded function, with the arrays for its calls. `Send` and `Sync`: calls wait for each other.
#[derive(Debug)]
pub struct Function<F: Framework> {
    name: String,
    ports: Ports,
    owner: [u8; 32],
    framework: Arc<F>,
    loaded: Mutex<Loaded<F>>,
}

#[derive(Debug)]
struct Loaded<F: Framework> {
    model: F::Model,
    call: F::Call,
    inputs: Vec<Port>,
}

fn failed(operation: String) -> impl FnOnce(Failure) -> CoreMlError {
    move |failure| CoreMlError::Failed { operation, failure }
}

impl<F: Framework> Model<F> {
    /// Loads functions of a compiled package, and makes the arrays for their calls. Blocks, the first time on a system for
    /// as long as the Neural Engine's compiler takes.
    ///
    /// # Errors
    /// [`CoreMlError::System`], [`CoreMlError::Failed`], and [`CoreMlError::Port`] if functions have different states.
    pub fn load(framework: &Arc<F>, compiled: &Path, options: &ModelOptions) -> Result<Self> {
        framework.check()?;
        let named = options.functions.iter().map(Some);
        let wanted: Vec<Option<&String>> = if options.functions.is_empty() { vec![None] } else { named.collect() };
        let mut functions: Vec<Function<F>> = Vec::new();
        for name in wanted {
            let configuration = Configuration { function: name.cloned(), ..options.configuration.clone() };
            let function = Function::load(framework, compiled, configuration, options.owner)?;
            if let Some(first) = functions.first().filter(|first| first.ports.states != function.ports.states) {
                return Err(CoreMlError::Port {
                    function: function.name.clone(),
                    what: "states",
                    port: "all".to_owned(),
                    expected: format!("those of function `{}`: {:?}", first.name, first.ports.states),
                    found: format!("{:?}", function.ports.states),
                });
            }
            functions.push(function);
        }
        let states = functions.first().map_or_else(Vec::new, |f| f.ports.states.clone()).into();
        Ok(Self { framework: Arc::clone(framework), functions, states, owner: options.owner })
    }

    /// The functions, in the order in which they were named.
    #[must_use]
    pub fn functions(&self) -> &[Function<F>] {
        &self.functions
    }

    /// The arrays of a state, in order of names.
    #[must_use]
    pub fn states(&self) -> &[Port] {
        &self.states
    }

    /// A state that holds zeros.
    ///
    /// # Errors
    /// [`CoreMlError::Failed`], or if its memory cannot be seen.
    pub fn new_state(&self) -> Result<State<F>> {
        let first = &self.functions[0];
        let loaded = first.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = self.framework.new_state(&loaded.model).map_err(failed("making a state".to_owned()))?;
        drop(loaded);
        State::zeroed(Arc::clone(&self.framework), inner, self.owner, Arc::clone(&self.states))
    }
}

impl<F: Framework> Function<F> {
    fn load(framework: &Arc<F>, compiled: &Path, configuration: Configuration, owner: [u8; 32]) -> Result<Self> {
        let name = configuration.function.clone().unwrap_or_else(|| "main".to_owned());
        let what = format!("loading function `{name}` of {} for {}", compiled.display(), configuration.units);
        let model = framework.load(compiled, &configuration).map_err(failed(what))?;
        let mut ports = framework.ports(&model);
        ports.sort();
        for (what, port) in ports.inputs.iter().map(|p| ("input", p)).chain(ports.states.iter().map(|p| ("state", p))) {
            check(&name, what, port)?;
        }
        let call = prepare(&**framework, &model, &name, &ports.inputs, &backed(&ports.outputs))?;
        let inputs = ports.inputs.clone();
        let loaded = Mutex::new(Loaded { model, call, inputs });
        Ok(Self { name, ports, owner, framework: Arc::clone(framework), loaded })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its ports, each list in order of names.
    #[must_use]
    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    /// The index of an input.
    ///
    /// # Errors
    /// [`CoreMlError::Port`] if there is none of that name.
    pub fn input(&self, name: &str) -> Result<usize> {
        self.ports.inputs.iter().position(|p| p.name == name).ok_or_else(|| self.absent("input", name))
    }

    /// Calls the function once: `fill` writes each input (by index), Core ML predicts, `read` sees each of `outputs` (by its
    /// index there).
    ///
    /// `shapes` holds the shapes of inputs that take several, by index; whoever gives none calls with arrays that were made
    /// when the function was loaded, and nothing is allocated here. The state must be given exactly if the function has one.
    ///
    /// # Errors
    /// [`CoreMlError::Failed`], after which the state is spoiled; [`CoreMlError::Foreign`], [`CoreMlError::Spoiled`], or what
    /// `fill` and `read` return.
    pub fn call(
        &self,
        state: Option<&mut State<F>>,
        shapes: &[(usize, Vec<usize>)],
        fill: &mut dyn FnMut(usize, ViewMut<'_>) -> Result<()>,
        outputs: &[String],
        read: &mut dyn FnMut(usize, View<'_>) -> Result<()>,
    ) -> Result<()> {
        let stateful = !self.ports.states.is_empty();
        if stateful != state.is_some() {
            let (expected, found) = if stateful { ("a state", "none") } else { ("no state", "one") };
            return Err(self.port("state", "all", expected.to_owned(), found.to_owned()));
        }
        if let Some(state) = &state {
            state.check(&self.owner)?;
        }
        let framework = &*self.framework;
        let mut guard = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = &mut *guard;
        self.reshape(loaded, shapes)?;
        for index in 0..loaded.inputs.len() {
            framework.write_input(&mut loaded.call, index, &mut |view| fill(index, view))?;
        }
        match state {
            None => framework.predict(&mut loaded.model, &mut loaded.call, None),
            Some(state) => {
                let result = framework.predict(&mut loaded.model, &mut loaded.call, Some(&mut state.inner));
                result.inspect_err(|_| state.spoil())
            }
        }
        .map_err(failed(format!("predicting with function `{}`", self.name)))?;
        let mut each = outputs.iter().enumerate();
        each.try_for_each(|(i, output)| framework.read_output(&loaded.call, output, &mut |view| read(i, view)))
    }

    /// Makes other arrays, if the shapes are others than before.
    fn reshape(&self, loaded: &mut Loaded<F>, shapes: &[(usize, Vec<usize>)]) -> Result<()> {
        let same = |(index, shape): &(usize, Vec<usize>)| loaded.inputs.get(*index).is_some_and(|p| p.shape == *shape);
        if shapes.iter().all(same) {
            return Ok(());
        }
        let mut inputs = loaded.inputs.clone();
        for (index, shape) in shapes {
            let port = inputs.get_mut(*index).ok_or_else(|| self.absent("input", &index.to_string()))?;
            port.shape.clone_from(shape);
            check(&self.name, "input", port)?;
        }
        // Outputs may have other shapes too, so Core ML makes the rooms for them.
        loaded.call = prepare(&*self.framework, &loaded.model, &self.name, &inputs, &[])?;
        loaded.inputs = inputs;
        Ok(())
    }

    fn absent(&self, what: &'static str, name: &str) -> CoreMlError {
        let ports = if what == "input" { &self.ports.inputs } else { &self.ports.outputs };
        let names: Vec<&str> = ports.iter().map(|p| p.name.as_str()).collect();
        self.port(what, name, format!("one of {}", names.join(", ")), "none of that name".to_owned())
    }

    fn port(&self, what: &'static str, port: &str, expected: String, found: String) -> CoreMlError {
        CoreMlError::Port { function: self.name.clone(), what, port: port.to_owned(), expected, found }
    }
}

fn prepare<F: Framework>(
    framework: &F,
    model: &F::Model,
    name: &str,
    inputs: &[Port],
    outputs: &[Port],
) -> Result<F::Call> {
    framework.prepare(model, inputs, outputs).map_err(failed(format!("making arrays for function `{name}`")))
}

/// The outputs that we give rooms for: those of a known shape.
fn backed(outputs: &[Port]) -> Vec<Port> {
    outputs.iter().filter(|p| !p.shape.is_empty() && check("", "output", p).is_ok()).cloned().collect()
}

/// Elements of one array that are asked for at most: 16 GB of half floats.
const MAX_ELEMENTS: usize = 1 << 33;

/// Shapes are checked here: what Core ML does not like is an exception that ends the process.
fn check(function: &str, what: &'static str, port: &Port) -> Result<()> {
    let fits = port.elements().is_some_and(|n| (1..=MAX_ELEMENTS).contains(&n)) && port.shape.len() <= MAX_RANK;
    if fits {
        return Ok(());
    }
    Err(CoreMlError::Port {
        function: function.to_owned(),
        what,
        port: port.name.clone(),
        expected: format!("up to {MAX_RANK} axes and {MAX_ELEMENTS} elements, none of them zero"),
        found: format!("{:?}", port.shape),
    })
}

#[cfg(test)]
mod tests;
