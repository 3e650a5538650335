//! From a program to a package: [`write()`].
//!
//! Values are stored as coremltools stores them: tensors of 10 elements and more in the weight file, where it has their
//! element type (16- and 32-bit integers from specification version 9 on); everything else in the model itself. Equal
//! constants are stored once. The same model gives the same bytes.

use std::collections::BTreeMap;
use std::path::Path;

use anemone_package::proto::{mil, spec};
use anemone_package::{Package, PackageWriter};

use crate::constant::Const;
use crate::error::{Fault, MilError};
use crate::model::{Metadata, Model};
use crate::place::Place;
use crate::port::Ports;
use crate::verify::{Problem, verify_model};

mod constant;
mod function;
mod ports;
mod types;

use constant::Stored;

/// Writes a model as a package at `dest`, in place of a package that may be there.
///
/// # Errors
/// As [`encode`], and if the package cannot be written.
pub fn write(model: &Model, dest: &Path) -> Result<(), MilError> {
    check(model)?;
    let mut writer = PackageWriter::create(dest)?;
    let message = encode_checked(model, &mut writer)?;
    Ok(writer.finish(&message)?)
}

/// As [`write()`], with all that `from`, which the model was read from, holds beside it: other files, what its manifest says.
///
/// # Errors
/// As [`write()`], and if something in `from` cannot be taken over.
pub fn rewrite(model: &Model, from: &Package, dest: &Path) -> Result<(), MilError> {
    check(model)?;
    let mut writer = PackageWriter::create(dest)?;
    writer.carry(from)?;
    let message = encode_checked(model, &mut writer)?;
    Ok(writer.finish(&message)?)
}

/// The message of a model, whose blobs go to `writer`.
///
/// # Errors
/// [`MilError::LeftOut`] if something would be lost, [`MilError::Invalid`] if the program is not valid (operations that
/// are not in the registry are written all the same), and if a blob cannot be written.
pub fn encode(model: &Model, writer: &mut PackageWriter) -> Result<spec::Model, MilError> {
    check(model)?;
    encode_checked(model, writer)
}

fn check(model: &Model) -> Result<(), MilError> {
    if !model.left_out.is_empty() {
        return Err(MilError::LeftOut { all: model.left_out.clone() });
    }
    let mut all = verify_model(model);
    all.retain(|d| !matches!(d.problem, Problem::UnknownOp { .. }));
    if all.is_empty() { Ok(()) } else { Err(MilError::Invalid { all }) }
}

fn encode_checked(model: &Model, writer: &mut PackageWriter) -> Result<spec::Model, MilError> {
    let whole = |fault: Fault| fault.at(Place::whole());
    let description = describe(model)?;
    let mut encoder = Encoder { writer, specification_version: model.specification_version, stored: Stored::default() };
    let mut program = mil::Program {
        version: model.program.version,
        attributes: encoder.attributes(&model.program.attributes, &Place::whole)?,
        ..mil::Program::default()
    };
    for (name, function) in &model.program.functions {
        program.functions.insert(name.clone(), encoder.function(name, function)?);
    }
    Ok(spec::Model {
        specification_version: model.specification_version,
        description: Some(spec::ModelDescription {
            training_input: ports::inputs(&model.training_inputs).map_err(whole)?,
            ..description
        }),
        is_updatable: model.updatable,
        r#type: Some(spec::ModelKind::MlProgram(program)),
    })
}

/// The description, without the inputs of training.
fn describe(model: &Model) -> Result<spec::ModelDescription, MilError> {
    let m = &model.metadata;
    let metadata = spec::Metadata {
        short_description: m.description.clone(),
        version_string: m.version.clone(),
        author: m.author.clone(),
        license: m.license.clone(),
        user_defined: m.user_defined.clone(),
    };
    let mut out = spec::ModelDescription {
        metadata: (*m != Metadata::default()).then_some(metadata),
        ..spec::ModelDescription::default()
    };
    for (name, function) in &model.program.functions {
        let at = |fault: Fault| fault.at(Place::function(name));
        let Ports { inputs, outputs, states, predicted_feature, predicted_probabilities } = &function.ports;
        let input = ports::inputs(inputs).map_err(at)?;
        let output = ports::inputs(outputs).map_err(at)?;
        let state = ports::states(states).map_err(at)?;
        if model.default_function.is_some() {
            out.functions.push(spec::FunctionDescription {
                name: name.clone(),
                input,
                output,
                predicted_feature_name: predicted_feature.clone(),
                predicted_probabilities_name: predicted_probabilities.clone(),
                state,
            });
        } else if name == model.default_name() {
            (out.input, out.output, out.state) = (input, output, state);
            out.predicted_feature_name.clone_from(predicted_feature);
            out.predicted_probabilities_name.clone_from(predicted_probabilities);
        } else if !function.ports.is_empty() {
            let found = format!("ports of `{name}` beside those of `{}`", model.default_name());
            return Err(at(Fault::new("a default function, since there are several with ports", found)));
        }
    }
    out.default_function_name = model.default_function.clone().unwrap_or_default();
    Ok(out)
}

/// Encodes the parts of a program; blobs go to the writer.
struct Encoder<'a> {
    writer: &'a mut PackageWriter,
    specification_version: i32,
    stored: Stored,
}

impl Encoder<'_> {
    fn attributes(
        &mut self,
        all: &BTreeMap<String, Const>,
        place: &dyn Fn() -> Place,
    ) -> Result<BTreeMap<String, mil::Value>, MilError> {
        all.iter()
            .map(|(name, value)| {
                let value = self.constant(value, &|| place().part(format!("attribute `{name}`")))?;
                Ok((name.clone(), value))
            })
            .collect()
    }
}
