//! What a package for each profile holds: functions, ports, states.

use std::collections::BTreeMap;

use anemone_mil::port::{Port, PortKind, PortShape, Ports, StatePort};
use anemone_mil::types::{Dim, StaticType, TensorType};
use anemone_mil::{Function, ValueId};
use anemone_package::bundle::Roles;

use crate::convert::{DECODE, DEFAULT_CONTEXT, PREFILL};
use crate::error::{ConvertError, Result};
use crate::lint::Profile;
use crate::net::{CACHE, Net, cache_type};
use crate::part::{COLUMNS, Frame, GIVES, Kv, TAKES};
use crate::quantize::Weights;
use crate::source::Source;
use crate::source::config::Config;
use crate::{ane, arch, gpu};

/// Functions by name, and the tokens that a call of each takes.
pub(crate) fn widths(profile: Profile, prefill: usize) -> BTreeMap<String, usize> {
    let widths: &[(&str, usize)] = match profile {
        Profile::Portable | Profile::Ane => &[(DECODE, 1), (PREFILL, prefill)],
        Profile::Gpu => &[(gpu::FUNCTION, prefill)],
    };
    widths.iter().map(|&(name, width)| (name.to_owned(), width)).collect()
}

/// The function that runs when none is named, where there are several.
pub(crate) fn default_function(profile: Profile) -> Option<String> {
    (profile != Profile::Gpu).then(|| DECODE.to_owned())
}

/// Builds the function of a frame, or that of any number of tokens for the GPU.
pub(crate) fn build(profile: Profile, source: &Source, weights: &Weights, frame: &Frame) -> Result<Function> {
    let net = |width| Net::new(source, weights, Frame { width, ..frame.clone() });
    let mut function = match profile {
        Profile::Portable => arch::build(source.config().family)(net(frame.width))?,
        Profile::Ane => ane::build(net(frame.width))?,
        Profile::Gpu => gpu::build(net)?,
    };
    function.ports = ports(&function, profile, frame.context);
    Ok(function)
}

/// The caches of one conversation, by the names of their states or inputs.
pub(crate) fn states(profile: Profile, config: &Config, context: usize) -> Vec<(&'static str, StaticType)> {
    match profile {
        Profile::Portable => vec![(CACHE, cache_type(config, config.layers, context))],
        Profile::Ane => vec![(CACHE, ane::cache_type(config, config.layers, context))],
        Profile::Gpu => gpu::STATES.map(|name| (name, gpu::state_type(config, context))).into(),
    }
}

/// Which port is what.
pub(crate) fn roles(profile: Profile, kv: Kv, config: &Config, context: usize) -> Roles {
    let [tokens, positions] = match profile {
        Profile::Portable | Profile::Ane => ["input_ids", "cache_position"],
        Profile::Gpu => gpu::INPUTS,
    };
    let cache = states(profile, config, context).into_iter().map(|(name, _)| name.to_owned()).collect();
    let columns = if kv == Kv::Io { vec![COLUMNS.to_owned()] } else { Vec::new() };
    Roles { tokens: tokens.into(), positions: positions.into(), logits: "logits".into(), cache, columns }
}

/// What the metadata says of the profile, and, for the GPU, the keys that Hugging Face's swift-transformers looks for.
/// Packages for any hardware say nothing.
pub(crate) fn metadata(profile: Profile, source: &Source) -> Vec<(&'static str, String)> {
    if profile == Profile::Portable {
        return Vec::new();
    }
    let mut all = vec![("anemone.profile", profile.name().to_owned())];
    if profile == Profile::Gpu {
        all.push(("co.huggingface.exporters.name", source.name()));
        let window = source.config().sliding_window;
        all.extend(window.map(|window| ("co.huggingface.exporters.sliding_window", window.to_string())));
    }
    all
}

/// The context of a package whose user asked for `asked`.
///
/// # Errors
/// If the model was not made for it, or the profile does not take it.
pub(crate) fn context(profile: Profile, config: &Config, asked: Option<usize>) -> Result<usize> {
    let trained = config.context_length;
    let usual = trained.min(DEFAULT_CONTEXT);
    let least = if profile == Profile::Gpu { gpu::LEAST_CONTEXT } else { 2 };
    let problem = |problem| Err(ConvertError::Options { option: "context", problem });
    if trained < least {
        let config = "the length that its file gives (`max_position_embeddings`, `context_length`)";
        return problem(format!("{trained}, {config}; a package for {profile} has {least} positions or more"));
    }
    let context = asked.unwrap_or(match profile {
        Profile::Ane => 1 << usual.max(1).ilog2(),
        Profile::Portable | Profile::Gpu => usual,
    });
    if context < least || context > trained {
        return problem(format!("{context}; expected {least} to {trained}, the context that the model was made for"));
    }
    if profile == Profile::Ane && !context.is_power_of_two() {
        let near = 1usize << context.ilog2();
        return problem(format!("{context}; the Neural Engine asks for a power of two, such as {near}"));
    }
    Ok(context)
}

/// What the model description says of a function. Open extents go from 1 to the context.
fn ports(function: &Function, profile: Profile, context: usize) -> Ports {
    let port = |name: &str, ty: &TensorType, shape: PortShape| Port {
        name: name.to_owned(),
        description: describe(name).to_owned(),
        kind: PortKind::Array { dtype: ty.dtype, shape },
        optional: None,
    };
    let fixed = |ty: &TensorType| ty.to_static().map(|ty| PortShape::Fixed(ty.shape.to_vec()));
    let range = |ty: &TensorType| {
        let bounds = |dim: &Dim| match dim {
            Dim::Known(n) => (*n, Some(*n)),
            Dim::Unknown => (1, Some(context)),
        };
        let bounds: Vec<_> = ty.shape.iter().flatten().map(bounds).collect();
        PortShape::Range { default: bounds.iter().map(|(low, _)| *low).collect(), bounds }
    };
    let tensor = |id: ValueId| {
        let value = function.value(id);
        Some((value.name.as_str(), value.ty.tensor()?))
    };
    let inputs = function.inputs.iter().copied().filter_map(tensor);
    let outputs = function.body.outputs.iter().copied().filter_map(tensor);
    Ports {
        inputs: inputs.map(|(name, ty)| port(name, ty, fixed(ty).unwrap_or_else(|| range(ty)))).collect(),
        outputs: outputs.map(|(name, ty)| port(name, ty, fixed(ty).unwrap_or(PortShape::Unspecified))).collect(),
        states: function
            .states()
            .filter_map(|(_, name, ty)| {
                Some(StatePort {
                    name: name.to_owned(),
                    description: describe_state(profile, name).to_owned(),
                    ty: ty?,
                })
            })
            .collect(),
        ..Ports::default()
    }
}

fn describe(port: &str) -> &'static str {
    match port {
        "input_ids" => "Token ids. A call of fewer tokens than its width repeats the last one.",
        "cache_position" => "The position of each token. A call of fewer tokens than its width repeats the last one.",
        "logits" => "Scores of the token after the last one.",
        CACHE => "The key-value cache as far as the host has written it.",
        COLUMNS => "New columns of the key-value cache, for the host to write at the positions of the tokens.",
        TAKES => "What the part before gives.",
        GIVES => "What the next part takes.",
        "inputIds" => "Token ids, any number of them.",
        "causalMask" => "Added to scores. Its last extent is the number of tokens, those of the past included.",
        _ => "",
    }
}

fn describe_state(profile: Profile, state: &str) -> &'static str {
    match profile {
        Profile::Portable => "The key-value cache: keys of all layers, then values of all layers.",
        Profile::Ane => "The key-value cache: for each layer its keys, then its values.",
        Profile::Gpu if state == gpu::STATES[0] => "The keys of the key-value cache.",
        Profile::Gpu => "The values of the key-value cache.",
    }
}
