//! Whether a function has a signature, and the widths at which it can be called.

use std::collections::BTreeMap;

use anemone_cpu::Varying;
use anemone_mil::types::{Class, Dim, Type};
use anemone_mil::{Function, PortShape, TensorType};

use super::{Call, Feed, Gives, HostCache, Signature};

/// The width of the wide call of functions that take any number of tokens.
const WIDE: usize = 128;
/// The widest call that is made of functions that offer several.
const WIDEST: usize = 128;

/// The calls of a function that has the signature; otherwise everything that it lacks.
pub(super) fn fit(signature: &Signature, name: &str, function: &Function) -> Result<Vec<Call>, Vec<String>> {
    let mut look = Look { function, missing: Vec::new() };
    let mut ports: Vec<(&'static str, Feed, PortShape)> = Vec::new();
    let caches = look.caches(signature);
    for &(input, feed) in signature.inputs.iter().filter(|(_, feed)| !matches!(feed, Feed::Cache(_))) {
        ports.extend(look.input(input, feed).map(|shape| (input, feed, shape)));
    }
    let vocabulary = look.vocabulary(signature.logits);
    look.no_others(signature);
    let context = if signature.caches.is_empty() { look.context() } else { caches };
    let (Some(vocabulary), Some(context), []) = (vocabulary, context, look.missing.as_slice()) else {
        return Err(look.missing);
    };

    // A mask may be bounded more tightly than the states.
    let room = |(_, feed, shape): &(&str, Feed, PortShape)| match feed {
        Feed::Mask => longest(shape, 3),
        _ => usize::MAX,
    };
    let context = ports.iter().map(room).fold(context, usize::min);
    let mut calls = Vec::new();
    for width in widths(&ports, context).into_iter().filter(|&w| w <= context) {
        let mut call = Call {
            function: name.to_owned(),
            width,
            context,
            vocabulary,
            inputs: signature.inputs.iter().map(|&(input, feed)| (input.to_owned(), feed)).collect(),
            gives: Gives::Logits,
            outputs: vec![signature.logits.to_owned()],
            caches: signature.caches.iter().copied().map(HostCache::named).collect(),
            shapes: BTreeMap::new(),
            varying: None,
            tokens: flexible(function, &ports, width),
        };
        for &cache in signature.caches {
            look.host_cache(&HostCache::named(cache), Some(width));
        }
        for (input, feed, shape) in &ports {
            let (least, most) = (feed.shape(width, width), feed.shape(width, context));
            let uneven = matches!(shape, PortShape::Enumerated { .. }) && least != most;
            if uneven || !shape.admits(&least) || !shape.admits(&most) {
                look.missing.push(format!("input `{input}` does not take {least:?} up to {most:?}"));
            }
            if *feed == Feed::Mask {
                let axes = vec![((*input).to_owned(), least.len() - 1)];
                call.varying = Some(Varying { axes, low: width, high: context });
            }
            call.shapes.insert((*input).to_owned(), most);
        }
        calls.push(call);
    }
    if calls.is_empty() {
        look.missing.push(format!("no number of tokens a call fits into the context of {context}"));
    }
    if look.missing.is_empty() { Ok(calls) } else { Err(look.missing) }
}

/// The axes of the tokens in the inputs, if the program leaves their number open and takes any up to this one. That its ports
/// offer some numbers alone is for Core ML; a plan computes any.
fn flexible(function: &Function, ports: &[(&'static str, Feed, PortShape)], width: usize) -> Option<Varying> {
    let axis = |feed: Feed| match feed {
        Feed::Tokens => Some(1),
        Feed::Positions => Some(0),
        Feed::Mask | Feed::WholeMask => Some(2),
        Feed::Start | Feed::Hidden | Feed::Cache(_) => None,
    };
    let axes = ports.iter().filter_map(|&(input, feed, _)| Some((input.to_owned(), axis(feed)?)));
    let axes: Vec<(String, usize)> = axes.collect();
    let open = |(input, axis): &(String, usize)| {
        let value = function.inputs.iter().map(|&id| function.value(id)).find(|v| v.name == *input);
        let shape = value.and_then(|v| v.ty.tensor()?.shape.as_ref());
        shape.is_none_or(|dims| dims.get(*axis) == Some(&Dim::Unknown))
    };
    (width > 3 && axes.iter().all(open)).then_some(Varying { axes, low: 2, high: width })
}

impl HostCache {
    pub(super) fn named((input, columns): (&str, &str)) -> Self {
        Self { input: input.to_owned(), columns: columns.to_owned() }
    }
}

impl Feed {
    /// The shape for so many new tokens, with `extent` columns of old and new tokens; none where the package says it.
    pub(crate) fn shape(self, width: usize, extent: usize) -> Vec<usize> {
        match self {
            Feed::Tokens => vec![1, width],
            Feed::Positions => vec![width],
            Feed::Mask | Feed::WholeMask => vec![1, 1, width, extent],
            Feed::Start => vec![1],
            Feed::Hidden | Feed::Cache(_) => Vec::new(),
        }
    }

    fn class(self) -> Class {
        match self {
            Feed::Tokens | Feed::Positions | Feed::Start => Class::Int,
            Feed::Mask | Feed::WholeMask | Feed::Hidden | Feed::Cache(_) => Class::Float,
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Feed::Tokens => "integers (1, tokens)",
            Feed::Positions => "integers (tokens)",
            Feed::Mask => "floats (1, 1, tokens, past + tokens)",
            Feed::WholeMask => "floats (1, 1, tokens, context)",
            Feed::Start => "integers (1)",
            Feed::Hidden => "floats of fixed shape",
            Feed::Cache(_) => "half floats (…, context, head dim)",
        }
    }
}

/// A function that is looked at, and what it lacks.
pub(super) struct Look<'f> {
    pub(super) function: &'f Function,
    pub(super) missing: Vec<String>,
}

impl Look<'_> {
    /// The shapes that an input takes, if it is there and of the kind that is fed.
    pub(super) fn input(&mut self, name: &str, feed: Feed) -> Option<PortShape> {
        let values = self.function.inputs.iter().map(|&id| self.function.value(id));
        let Some(value) = values.into_iter().find(|v| v.name == name && v.ty.state().is_none()) else {
            self.missing.push(format!("input `{name}` is missing"));
            return None;
        };
        let rank = feed.shape(1, 1).len();
        let fits = |ty: &&TensorType| {
            ty.dtype.class() == feed.class() && ty.shape.as_ref().is_none_or(|s| rank == 0 || s.len() == rank)
        };
        let Some(ty) = value.ty.tensor().filter(fits) else {
            self.missing.push(format!("input `{name}` is {}, not {}", value.ty, feed.words()));
            return None;
        };
        let port = self.function.ports.inputs.iter().find(|p| p.name == name);
        match port.and_then(|p| p.kind.array()) {
            Some((_, shape)) if *shape != PortShape::Unspecified => Some(shape.clone()),
            _ => Some(declared(ty, rank)),
        }
    }

    /// The extent of the last axis of the logits.
    pub(super) fn vocabulary(&mut self, name: &str) -> Option<usize> {
        let values = self.function.body.outputs.iter().map(|&id| self.function.value(id));
        let Some(value) = values.into_iter().find(|v| v.name == name) else {
            self.missing.push(format!("output `{name}` is missing"));
            return None;
        };
        let ty = value.ty.tensor().filter(|ty| ty.dtype.is_float());
        match ty.and_then(|ty| ty.shape.as_ref()?.last()) {
            Some(&Dim::Known(n)) if n > 0 => Some(n),
            _ => {
                self.missing.push(format!("output `{name}` is {}, not floats (…, vocabulary)", value.ty));
                None
            }
        }
    }

    /// Notes every input that nothing is fed to.
    fn no_others(&mut self, signature: &Signature) {
        let is_other = |name: &str| !signature.inputs.iter().any(|(known, _)| *known == name);
        let values = self.function.inputs.iter().map(|&id| self.function.value(id));
        for other in values.filter(|v| !matches!(v.ty, Type::State(_)) && is_other(&v.name)) {
            self.missing.push(format!("input `{}` is not part of it", other.name));
        }
    }

    /// How many positions the caches that are inputs have room for; notes what is wrong with them and their columns.
    fn caches(&mut self, signature: &Signature) -> Option<usize> {
        let mut context = None;
        for &cache in signature.caches {
            let found = self.host_cache(&HostCache::named(cache), None)?;
            if context.is_some_and(|other| other != found) {
                self.missing.push(format!("input `{}` has {found} positions, unlike the others", cache.0));
            }
            context = Some(found);
        }
        context
    }

    /// How many positions a cache that is an input has room for, if it and its columns (of that width) fit each other.
    pub(super) fn host_cache(&mut self, cache: &HostCache, width: Option<usize>) -> Option<usize> {
        let f = self.function;
        let fixed = |ids: &[anemone_mil::ValueId], name: &str| {
            let value = ids.iter().map(|&id| f.value(id)).find(|v| v.name == name)?;
            value.ty.tensor()?.to_static().filter(|ty| ty.dtype == anemone_mil::DType::F16)
        };
        let (ins, outs) = (fixed(&f.inputs, &cache.input), fixed(&f.body.outputs, &cache.columns));
        let Some(all) = ins.filter(|ty| ty.shape.len() >= 2) else {
            let words = Feed::Cache(0).words();
            self.missing.push(format!("input `{}` is missing, or not {words}", cache.input));
            return None;
        };
        let axis = all.shape.len() - 2;
        let same = |columns: &[usize]| {
            let but = |shape: &[usize]| [&shape[..axis], &shape[axis + 1..]].concat();
            columns.len() == all.shape.len() && but(columns) == but(&all.shape)
        };
        match &outs {
            Some(ty) if same(&ty.shape) && width.is_none_or(|width| ty.shape[axis] == width) => Some(all.shape[axis]),
            _ => {
                let found = outs.as_ref().map_or_else(|| "missing".to_owned(), |ty| ty.to_string());
                let (input, columns) = (&cache.input, &cache.columns);
                self.missing.push(format!("output `{columns}` is {found}, not new columns of `{input}` ({all})"));
                None
            }
        }
    }

    /// How many positions the states have room for: the extent of their last axis but one, the same for all.
    pub(super) fn context(&mut self) -> Option<usize> {
        let mut context = None;
        for (_, name, ty) in self.function.states() {
            let length = ty.as_ref().and_then(|ty| ty.shape.len().checked_sub(2).map(|axis| ty.shape[axis]));
            match (length, context) {
                (Some(n), None) if n > 0 => context = Some(n),
                (Some(n), Some(other)) if n == other => {}
                _ => {
                    let found = ty.map_or_else(|| "of no fixed shape".to_owned(), |ty| ty.to_string());
                    self.missing.push(format!("state `{name}` is {found}, not (…, context, head dim) like the others"));
                    return None;
                }
            }
        }
        if context.is_none() {
            self.missing.push("states are missing".to_owned());
        }
        context
    }
}

/// What a type says of the shapes of an input that no port describes.
fn declared(ty: &TensorType, rank: usize) -> PortShape {
    let bounds = match &ty.shape {
        None => vec![(1, None); rank],
        Some(dims) => dims
            .iter()
            .map(|dim| match dim {
                Dim::Known(n) => (*n, Some(*n)),
                Dim::Unknown => (1, None),
            })
            .collect(),
    };
    PortShape::Range { default: Vec::new(), bounds }
}

/// The largest extent that an axis takes.
fn longest(shape: &PortShape, axis: usize) -> usize {
    let at = |s: &Vec<usize>| s.get(axis).copied();
    match shape {
        PortShape::Unspecified => usize::MAX,
        PortShape::Fixed(s) => at(s).unwrap_or(0),
        PortShape::Enumerated { shapes, .. } => shapes.iter().filter_map(at).max().unwrap_or(0),
        PortShape::Range { bounds, .. } => bounds.get(axis).map_or(0, |(_, high)| high.unwrap_or(usize::MAX)),
    }
}

/// The widths to call at: one token if that is allowed, and a wide one.
fn widths(ports: &[(&'static str, Feed, PortShape)], context: usize) -> Vec<usize> {
    let Some((_, _, shape)) = ports.iter().find(|(_, feed, _)| *feed == Feed::Tokens) else { return Vec::new() };
    match shape {
        PortShape::Unspecified => Vec::new(),
        PortShape::Fixed(s) => s.get(1).copied().into_iter().collect(),
        PortShape::Enumerated { shapes, .. } => {
            let offered = || shapes.iter().filter_map(|s| s.get(1).copied());
            let widest = offered().filter(|&w| w <= WIDEST.min(context)).max();
            let mut all: Vec<usize> = offered().min().into_iter().chain(widest).collect();
            all.dedup();
            all
        }
        PortShape::Range { bounds, .. } => {
            let Some(&(low, high)) = bounds.get(1) else { return Vec::new() };
            // Whatever else takes part must take the wide call too.
            let bounded = |(_, feed, shape): &(&str, Feed, PortShape)| match feed {
                Feed::Positions => longest(shape, 0),
                Feed::Mask => longest(shape, 2).min(longest(shape, 3)),
                _ => usize::MAX,
            };
            let limit = ports.iter().map(bounded).fold(high.unwrap_or(context).min(context), usize::min);
            // In a short context there is to be room for a wide call behind another.
            let wide = WIDE.min(context / 2).max(low.max(1));
            let mut all = vec![low.max(1), limit.clamp(low.max(1), wide)];
            all.dedup();
            all
        }
    }
}
