//! The inputs of a call, from files and from the command line.

use std::collections::HashSet;
use std::path::Path;

use anemone_cli::given::{Input, ShapeOf, Value};
use anemone_cli::values::{Number, Values, tensor};
use anemone_cli::{causes, npy, tensor_file};
use anemone_mil::interpret::Tensors;
use anemone_mil::port::{PortDefault, PortShape};
use anemone_mil::types::{StaticType, TensorType};
use anemone_mil::{Buffer, Function, Tensor};
use anemone_package::Package;
use anemone_package::bundle::BundleManifest;
use anyhow::{Context, Error, Result, bail};

use crate::exit::Usage;
use crate::report::shape_text;

/// One input for each that the function declares.
pub(super) fn gather(
    function: &Function,
    known: &Known,
    file: Option<&Path>,
    given: &[Input],
    shapes: &[ShapeOf],
) -> Result<Tensors> {
    let declared: Vec<(&str, &TensorType)> = function
        .inputs
        .iter()
        .map(|&id| function.value(id))
        .filter_map(|v| Some((v.name.as_str(), v.ty.tensor()?)))
        .collect();
    let check = |what: &str, name: &str| match declared.iter().any(|(known, _)| *known == name) {
        true => Ok(()),
        false => {
            let known: Vec<&str> = declared.iter().map(|(known, _)| *known).collect();
            let known = if known.is_empty() { "no inputs".to_owned() } else { known.join(", ") };
            Err(Usage(format!("{what}: there is no input `{name}`; the function has {known}")))
        }
    };
    given.iter().try_for_each(|input| check("--input", &input.name))?;
    shapes.iter().try_for_each(|shape| check("--shape", &shape.name))?;
    once("--input", given.iter().map(|input| input.name.as_str()))?;
    once("--shape", shapes.iter().map(|shape| shape.name.as_str()))?;
    let bytes = match file {
        Some(path) => anemone_package::map_file(path).with_context(|| format!("cannot read {}", path.display()))?,
        None => Default::default(),
    };
    let mut from_file = match file {
        Some(path) => tensor_file::read(&bytes).with_context(|| path.display().to_string())?.tensors,
        None => Default::default(),
    };
    from_file.keys().try_for_each(|name| check("--inputs", name))?;

    let mut inputs = Tensors::new();
    for (name, ty) in declared {
        let ports = Ports { function, name, ty, asked: shapes.iter().rfind(|s| s.name == name).map(|s| &s.shape[..]) };
        let given = given.iter().rfind(|input| input.name == name).map(|input| &input.value);
        let made = match (given, from_file.remove(name)) {
            (Some(Value::File(path)), _) => ports.read_npy(path).with_context(|| format!("input `{name}`"))?,
            (Some(value), _) => ports.fixed(value.own_shape()).and_then(|ty| value.to_tensor(&ty)),
            (None, Some(values)) => ports.convert_values(&values),
            (None, None) => ports.left_out(),
        };
        let tensor = made.and_then(|tensor| known.admits(name, &tensor).map(|()| tensor));
        // What the function does not take is a wrong argument, wherever it was given.
        let wrong = |error: Error| Usage(format!("input `{name}`: {}", causes::told(&error)));
        inputs.insert(name.to_owned(), tensor.map_err(wrong)?);
    }
    Ok(inputs)
}

/// Refuses what was given twice.
fn once<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<(), Usage> {
    let mut seen = HashSet::new();
    match names.into_iter().find(|name| !seen.insert(*name)) {
        None => Ok(()),
        Some(twice) => Err(Usage(format!("{what} {twice}: it is given twice; give each input once"))),
    }
}

/// What the manifest of a converted model tells of numbers that inputs may have. To a program alone, a negative index is as
/// good as any: it counts from the end.
#[derive(Default)]
pub(super) struct Known(Vec<(String, &'static str, usize)>);

impl Known {
    /// Of the folder that has the package.
    pub(super) fn of(package: &Path, function: &Function) -> Self {
        let Some(manifest) = package.parent().and_then(|folder| BundleManifest::read(folder).ok()) else {
            return Self::default();
        };
        let name = &manifest.roles.logits;
        let vocabulary = vocabulary(function, name).or_else(|| {
            // Of a model in parts, the last one gives the logits.
            let last = manifest.packages(package.parent()?).ok()?.pop()?;
            let model = anemone_mil::decode(&Package::open(&last).ok()?).ok()?;
            model.program.functions.values().find_map(|function| vocabulary(function, name))
        });
        let tokens = vocabulary.map(|n| (manifest.roles.tokens, "a token of this model", n));
        let positions = (manifest.roles.positions, "a position in its context", manifest.context);
        Self(tokens.into_iter().chain([positions]).collect())
    }

    fn admits(&self, name: &str, tensor: &Tensor) -> Result<()> {
        let (Some((_, what, n)), Buffer::I32(all)) = (self.0.iter().find(|known| known.0 == name), &tensor.data) else {
            return Ok(());
        };
        match all.iter().find(|&&i| !usize::try_from(i).is_ok_and(|i| i < *n)) {
            None => Ok(()),
            Some(wrong) => bail!("{wrong} is not {what}; expected 0 to {}", n - 1),
        }
    }
}

/// The extent of the logits, if the function gives them.
fn vocabulary(function: &Function, logits: &str) -> Option<usize> {
    let logits = function.body.outputs.iter().map(|&id| function.value(id)).find(|v| v.name == logits)?;
    logits.ty.tensor()?.to_static()?.shape.last().copied()
}

/// What is known of one input.
struct Ports<'a> {
    function: &'a Function,
    name: &'a str,
    ty: &'a TensorType,
    /// What `--shape` says.
    asked: Option<&'a [usize]>,
}

impl Ports<'_> {
    fn port(&self) -> Option<&anemone_mil::Port> {
        self.function.ports.inputs.iter().find(|p| p.name == self.name)
    }

    fn port_shape(&self) -> Option<&PortShape> {
        Some(self.port()?.kind.array()?.1)
    }

    /// A scalar passes the border as an array of one element.
    fn inside<'s>(&self, shape: &'s [usize]) -> &'s [usize] {
        let is_scalar = self.ty.shape.as_ref().is_some_and(Vec::is_empty);
        if is_scalar && shape == [1] { &[] } else { shape }
    }

    /// The type to make: of the shape asked for, else the only one there is, else `own`, else the port's default.
    fn fixed(&self, own: Option<Vec<usize>>) -> Result<StaticType> {
        let shape = match (self.asked, self.ty.to_static()) {
            (Some(asked), _) => asked.to_vec(),
            (None, Some(only)) => only.shape.to_vec(),
            (None, None) => match (own, self.port_shape().and_then(PortShape::default_shape)) {
                (Some(own), _) if self.admits(&own).is_ok() => own,
                (Some(_), Some(default)) => default.to_vec(),
                (None, Some(default)) => default.to_vec(),
                (_, None) => bail!("{} has no one shape; give it by --shape {}=…", self.ty, self.name),
            },
        };
        self.admits(&shape)?;
        Ok(StaticType::new(self.ty.dtype, self.inside(&shape)))
    }

    fn admits(&self, shape: &[usize]) -> Result<()> {
        let inside = self.inside(shape);
        let program = self.ty.admits(&StaticType::new(self.ty.dtype, inside));
        let port = self.port_shape();
        let is_scalar = program && inside.is_empty();
        if is_scalar || program && port.is_none_or(|port| port.admits(shape)) {
            return Ok(());
        }
        let expected = match port {
            Some(port) if *port != PortShape::Unspecified => shape_text(port),
            _ => self.ty.to_string(),
        };
        bail!("shape {shape:?}; expected {expected}")
    }

    fn convert_values(&self, values: &Values<'_>) -> Result<Tensor> {
        let shape = self.asked.unwrap_or(&values.shape);
        self.admits(shape)?;
        values.to_tensor(&StaticType::new(self.ty.dtype, self.inside(shape)))
    }

    /// The outer error is of the file, the inner one of what it holds.
    fn read_npy(&self, path: &Path) -> Result<Result<Tensor>> {
        let bytes = anemone_package::map_file(path).with_context(|| format!("cannot read {}", path.display()))?;
        let values = npy::read(&bytes).with_context(|| path.display().to_string())?;
        Ok(self.convert_values(&values).with_context(|| path.display().to_string()))
    }

    /// The value of an input that was not given, if it may be left out.
    fn left_out(&self) -> Result<Tensor> {
        match self.port().and_then(|p| p.optional) {
            Some(PortDefault::Zero) => tensor(&self.fixed(None)?, |_| Number::Int(0)),
            Some(PortDefault::Fill(v)) => tensor(&self.fixed(None)?, |_| Number::Float(v)),
            None => {
                let expected = match self.port_shape() {
                    Some(shape) if *shape != PortShape::Unspecified => {
                        format!("{} {}", self.ty.dtype, shape_text(shape))
                    }
                    _ => self.ty.to_string(),
                };
                bail!("it was not given; expected {expected}, in the file of --inputs or by --input {}=…", self.name)
            }
        }
    }
}
