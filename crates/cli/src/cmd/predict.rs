//! `anemone predict`: one call of any package.

mod execute;
mod inputs;
mod show;
mod states;

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Instant;

use anemone_cli::given::{Input, ShapeOf};
use anemone_cli::{numbers, tensor_file};
use anemone_mil::Function;
use anemone_mil::interpret::Tensors;
use anemone_mil::model::Model;
use anemone_package::Package;
use anyhow::{Context, Result};
use clap::Args;

use crate::exit::Usage;
use crate::packages;
use inputs::Known;
use states::StateFile;

/// Run one function of any package once, with tensors from files
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  anemone predict m.mlpackage --inputs in.safetensors --outputs out.safetensors
  anemone predict m.mlpackage --input x=x.npy
  anemone predict m.mlpackage --input x=random:1 --shape x=1,64
  anemone predict model/ --function decode --state s.safetensors \\
      --input input_ids=42 --input cache_position=0
  anemone predict in-parts/ --part embeddings --input input_ids=42 --outputs hidden.safetensors

Without --outputs, the outputs are described on standard output.

Values of --input: FILE.npy; numbers (0.5,1,2; one alone fills the tensor); zeros; ones; range (0, 1, 2, …); \
random:SEED (-1 to 1) or random:SEED:LOW:HIGH. Elements are converted to the port's type; what it cannot hold is an \
error, never wrapped around. Image ports take the tensor that the program sees. Of a converted model, token ids and \
positions are checked; in other packages an index below 0 counts from the end, as in Core ML's language.

The state file, if it exists, is the state before the call; it is replaced by the state after it, at once and only if \
the call went well. Without --state, states are zero and are not kept. A state of another package is refused.

Exit codes: 0 run, 1 something failed (a file, the call), 2 wrong arguments or inputs that do not fit the function, \
130 interrupted.")]
pub(crate) struct Arguments {
    /// A .mlpackage, a .mlmodel, a converted folder, or the name of a cached model
    package: PathBuf,
    /// Of a model in parts, the one to call: the name of its package
    #[arg(long, value_name = "NAME")]
    part: Option<String>,
    /// The function to call [default: the package's own default]
    #[arg(short, long, value_name = "NAME")]
    function: Option<String>,
    /// A safetensors file with inputs by name
    #[arg(short, long, value_name = "FILE")]
    inputs: Option<PathBuf>,
    /// An input by itself; wins over --inputs
    #[arg(long = "input", value_name = "NAME=VALUE")]
    given: Vec<Input>,
    /// The shape of an input, where its port allows several, or for the elements of a file
    #[arg(long = "shape", value_name = "NAME=N,N,…")]
    shapes: Vec<ShapeOf>,
    /// Where to write the outputs, as safetensors in the types of their ports
    #[arg(short, long, value_name = "FILE")]
    outputs: Option<PathBuf>,
    /// A safetensors file that keeps the states between calls
    #[arg(short, long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Run the interpreter, slow and plain, instead of the plan
    #[arg(long)]
    reference: bool,
    /// Round every half float as soon as it is computed, as a Neural Engine would; operations that overflow are named
    #[arg(long)]
    strict_fp16: bool,
    /// Threads to use [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = numbers::threads, allow_negative_numbers = true)]
    threads: Option<u16>,
    /// Describe the outputs as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if let (Some(outputs), Some(state)) = (&arguments.outputs, &arguments.state)
        && (outputs == state
            || outputs.canonicalize().ok().is_some_and(|real| state.canonicalize().is_ok_and(|s| s == real)))
    {
        let both = outputs.display();
        return Err(Usage(format!("--outputs and --state are both {both}; one would replace the other")).into());
    }
    // What could not be written in the end is said before anything is computed.
    for path in [&arguments.outputs, &arguments.state].into_iter().flatten() {
        tensor_file::check_place(path)?;
    }
    let path = packages::one(&arguments.package, arguments.part.as_deref())?;
    let package = Package::open(&path)?;
    let model = anemone_mil::load_package(&package).with_context(|| path.display().to_string())?;
    let (name, function) = function(&model, arguments.function.as_deref())?;
    let known = Known::of(&path, function);
    let inputs = inputs::gather(function, &known, arguments.inputs.as_deref(), &arguments.given, &arguments.shapes)?;
    let file = arguments.state.as_ref().map(|path| StateFile::open(path, &package, &model)).transpose()?;
    let mut states = match &file {
        Some(file) => file.of(function)?,
        None => states::fresh(function),
    };
    let begin = Instant::now();
    let call = if arguments.reference {
        execute::by_interpreter(function, &inputs, &mut states, arguments.strict_fp16)
    } else {
        let threads = arguments.threads.map_or_else(processors, usize::from);
        execute::by_plan(function, &inputs, &mut states, threads, arguments.strict_fp16)
    };
    let mut outputs: Tensors = call.with_context(|| format!("function `{name}`"))?;
    // A scalar passes the border as an array of one element.
    outputs.values_mut().filter(|t| t.ty.shape.is_empty()).for_each(|t| t.ty.shape.push(1));
    tracing::info!(function = name, seconds = begin.elapsed().as_secs_f64(), "planned and run");
    // Outputs first: if they cannot be written, the state is as before, and the call can be made again.
    if let Some(path) = &arguments.outputs {
        tensor_file::write(path, &outputs, HashMap::new())?;
    }
    if let Some(file) = file {
        file.replace(states)?;
    }
    match (&arguments.outputs, arguments.json) {
        (_, true) => show::as_json(name, &outputs),
        (None, false) => show::as_text(&outputs),
        (Some(_), false) => Ok(()),
    }
}

fn function<'m>(model: &'m Model, asked: Option<&'m str>) -> Result<(&'m str, &'m Function)> {
    let name = asked.unwrap_or(model.default_name());
    let function = model.function(Some(name)).ok_or_else(|| {
        let all: Vec<&str> = model.program.functions.keys().map(String::as_str).collect();
        Usage(format!("there is no function `{name}`; the package has {}", all.join(", ")))
    })?;
    Ok((name, function))
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
