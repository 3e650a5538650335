//! From a package to a program: [`decode`].
//!
//! What a file may make us do is bounded: nested blocks, types and constants go at most [`MAX_DEPTH`] deep, a tensor has at
//! most [`MAX_ELEMENTS`] elements and [`MAX_RANK`] axes, and nothing is allocated for a constant before its bytes are seen
//! to be there.

use std::cell::RefCell;

use anemone_package::proto::{mil, spec};
use anemone_package::{BlobType, Package};
use bytes::Bytes;

use crate::error::{Fault, MilError};
use crate::model::{MAIN, Metadata, Model};
use crate::place::Place;
use crate::port::Ports;
use crate::program::Program;
use crate::types::DType;
use crate::wire;

mod constant;
mod function;
mod ports;
mod types;

pub(crate) use types::check_size;

/// How deep nested blocks, types and constants may go.
pub const MAX_DEPTH: usize = 24;
/// How many axes a tensor may have.
pub const MAX_RANK: usize = 16;
/// How many elements a tensor may have; axes of extent 0 count as 1.
pub const MAX_ELEMENTS: usize = 1 << 40;

/// Where the bytes of weights come from while a model is decoded or parsed.
pub trait Blobs {
    /// The element type and packed bytes of the blob whose metadata lies at `offset` of `file`.
    ///
    /// # Errors
    /// In words, if there is no such blob.
    fn blob(&self, file: &str, offset: u64) -> Result<(DType, Bytes), String>;
}

/// A package's weight files: ranges of their maps, not copies.
impl Blobs for Package {
    fn blob(&self, file: &str, offset: u64) -> Result<(DType, Bytes), String> {
        let blob = Package::blob(self, file, offset).map_err(|e| e.to_string())?;
        Ok((blob_dtype(blob.dtype), blob.bytes))
    }
}

fn blob_dtype(dtype: BlobType) -> DType {
    wire::BLOBS.into_iter().find(|(_, b)| *b == dtype).expect("every type of blobs is in the table").0
}

/// Reads the program of a package, with what the package says around it. Constants are ranges of the package's files, not
/// copies. Operations that are not in the registry are kept ([`Kind::Unknown`](crate::Kind::Unknown)); [`load`](crate::load())
/// refuses them.
///
/// # Errors
/// [`MilError::Malformed`] if the model does not hold a program that makes sense; its place says where.
pub fn decode(package: &Package) -> Result<Model, MilError> {
    let mut model = decode_model(package.model(), package)?;
    let unknown = package.unknown_fields();
    model.left_out.extend(unknown.nested_paths().iter().map(|path| format!("the unknown field {path}")));
    let more = unknown.nested_count().saturating_sub(unknown.nested_paths().len() as u64);
    if more > 0 {
        model.left_out.push(format!("{more} more unknown fields"));
    }
    Ok(model)
}

/// Reads the program of a model message, with what the package says around it. Operations that are not in the registry are
/// kept ([`Kind::Unknown`](crate::Kind::Unknown)).
///
/// # Errors
/// [`MilError::Malformed`] if the model does not hold a program that makes sense; its place says where.
pub fn decode_model(model: &spec::Model, blobs: &dyn Blobs) -> Result<Model, MilError> {
    let whole = |fault: Fault| fault.at(Place::whole());
    let Some(program) = model.program() else {
        return Err(whole(Fault::new("an ML Program", "no program")));
    };
    let cx = Context { blobs, left_out: RefCell::default() };
    let mut out = Model {
        specification_version: model.specification_version,
        program: Program {
            version: program.version,
            functions: Default::default(),
            attributes: cx.attributes(&program.attributes).map_err(whole)?,
        },
        updatable: model.is_updatable,
        ..Model::default()
    };
    if !program.doc_string.is_empty() {
        cx.leave_out("the program's doc string");
    }
    for (name, function) in &program.functions {
        out.program.functions.insert(name.clone(), cx.function(name, function)?);
    }
    describe(&mut out, model.description.as_ref().unwrap_or(&spec::ModelDescription::default()), &cx)?;
    out.left_out = cx.left_out.into_inner();
    Ok(out)
}

/// Adds what the model description says.
fn describe(out: &mut Model, d: &spec::ModelDescription, cx: &Context<'_>) -> Result<(), MilError> {
    let whole = |fault: Fault| fault.at(Place::whole());
    if let Some(m) = &d.metadata {
        out.metadata = Metadata {
            description: m.short_description.clone(),
            version: m.version_string.clone(),
            author: m.author.clone(),
            license: m.license.clone(),
            user_defined: m.user_defined.clone(),
        };
    }
    out.training_inputs = d.training_input.iter().map(|f| cx.port(f)).collect::<Result<_, _>>().map_err(whole)?;
    let own = Ports {
        inputs: d.input.iter().map(|f| cx.port(f)).collect::<Result<_, _>>().map_err(whole)?,
        outputs: d.output.iter().map(|f| cx.port(f)).collect::<Result<_, _>>().map_err(whole)?,
        states: d.state.iter().map(|f| cx.state_port(f)).collect::<Result<_, _>>().map_err(whole)?,
        predicted_feature: d.predicted_feature_name.clone(),
        predicted_probabilities: d.predicted_probabilities_name.clone(),
    };
    if d.functions.is_empty() {
        if !d.default_function_name.is_empty() {
            cx.leave_out("a default function's name in a description without functions");
        }
        match out.program.functions.get_mut(MAIN) {
            Some(main) => main.ports = own,
            None => {
                let found = out.program.functions.keys().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
                return Err(whole(Fault::new(format!("a function `{MAIN}`"), format!("functions {found}"))));
            }
        }
        return Ok(());
    }
    if !own.is_empty() {
        cx.leave_out("ports of the model as a whole, beside those of its functions");
    }
    out.default_function = Some(d.default_function_name.clone());
    let mut described = std::collections::BTreeSet::new();
    for f in &d.functions {
        let place = || Place::function(&f.name).part("model description");
        let Some(function) = out.program.functions.get_mut(&f.name) else {
            return Err(Fault::new("a function of the program", "none of that name").at(place()));
        };
        if !described.insert(&f.name) {
            return Err(Fault::new("one description", "several").at(place()));
        }
        let at = |fault: Fault| fault.at(place());
        function.ports = Ports {
            inputs: f.input.iter().map(|f| cx.port(f)).collect::<Result<_, _>>().map_err(at)?,
            outputs: f.output.iter().map(|f| cx.port(f)).collect::<Result<_, _>>().map_err(at)?,
            states: f.state.iter().map(|f| cx.state_port(f)).collect::<Result<_, _>>().map_err(at)?,
            predicted_feature: f.predicted_feature_name.clone(),
            predicted_probabilities: f.predicted_probabilities_name.clone(),
        };
    }
    Ok(())
}

/// What the parts of the decoder share.
struct Context<'a> {
    blobs: &'a dyn Blobs,
    left_out: RefCell<Vec<String>>,
}

impl Context<'_> {
    /// Notes something that a [`Model`] has no room for; each kind of thing once.
    fn leave_out(&self, what: impl Into<String>) {
        let what = what.into();
        let mut all = self.left_out.borrow_mut();
        if !all.contains(&what) {
            all.push(what);
        }
    }

    fn attributes(
        &self,
        from: &std::collections::BTreeMap<String, mil::Value>,
    ) -> Result<std::collections::BTreeMap<String, crate::Const>, Fault> {
        from.iter()
            .map(|(name, value)| {
                let value = self.constant(value, 0).map_err(|e| e.in_part(|| format!("attribute `{name}`")))?;
                Ok((name.clone(), value))
            })
            .collect()
    }
}
