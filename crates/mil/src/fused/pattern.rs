//! Patterns over a graph of operations, and the one matcher for all of them.

use crate::op::Op;
use crate::program::ValueId;
use crate::types::StaticType;

/// What a matcher sees of a graph.
pub trait Look {
    /// The operation that computes a value as its only result.
    fn producer(&self, value: ValueId) -> Option<&'static dyn Op>;
    /// The operation that `value` is one of several results of, and which one.
    fn part(&self, value: ValueId) -> Option<(&'static dyn Op, usize)>;
    /// The arguments of the operation that computes `value`, by the parameter's name.
    fn arguments(&self, value: ValueId, param: &str) -> &[ValueId];
    /// The first of these.
    fn argument(&self, value: ValueId, param: &str) -> Option<ValueId> {
        self.arguments(value, param).first().copied()
    }
    /// The type of a value.
    fn ty(&self, value: ValueId) -> &StaticType;
    /// Whether a value is a constant, packed or not.
    fn is_constant(&self, value: ValueId) -> bool;
    /// Whether one operation uses a value, once, and nothing else does.
    fn used_once(&self, value: ValueId) -> bool;
    /// The elements of a small constant, integers and truth values as floats.
    fn constant(&self, value: ValueId) -> Option<Vec<f32>>;
}

/// A subgraph.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// Any value; binds it.
    Any(&'static str),
    /// A constant of one element; binds its value.
    Scalar(&'static str),
    /// An operation, with patterns for some of its parameters.
    Op(&'static str, Vec<(&'static str, Pattern)>),
    /// One result of an operation that has several, with patterns for some of its parameters.
    Part(&'static str, usize, Vec<(&'static str, Pattern)>),
    /// An operation, with a pattern for each argument of one parameter.
    Each(&'static str, &'static str, Vec<Pattern>),
    /// An operation of two operands that may change places.
    Either(&'static str, Box<Pattern>, Box<Pattern>),
    /// One of several.
    OneOf(Vec<Pattern>),
    /// The value behind any number of changes of shape alone.
    Reshaped(Box<Pattern>),
    /// The pattern; binds its value too.
    Named(&'static str, Box<Pattern>),
}

impl Pattern {
    /// An operation, with patterns for some of its parameters.
    #[must_use]
    pub fn op<const N: usize>(kind: &'static str, args: [(&'static str, Pattern); N]) -> Self {
        Pattern::Op(kind, args.into())
    }

    /// The same, binding its value.
    #[must_use]
    pub fn named(self, name: &'static str) -> Self {
        Pattern::Named(name, Box::new(self))
    }

    /// The same behind any number of changes of shape alone.
    #[must_use]
    pub fn reshaped(self) -> Self {
        Pattern::Reshaped(Box::new(self))
    }
}

/// What a match bound.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bindings {
    values: Vec<(&'static str, ValueId)>,
    scalars: Vec<(&'static str, f32)>,
}

impl Bindings {
    /// The value bound to `name`.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<ValueId> {
        self.values.iter().find(|(n, _)| *n == name).map(|(_, v)| *v)
    }

    /// The number bound to `name`.
    #[must_use]
    pub fn scalar(&self, name: &str) -> Option<f32> {
        self.scalars.iter().find(|(n, _)| *n == name).map(|(_, v)| *v)
    }

    fn bind(mut self, name: &'static str, value: ValueId) -> Option<Self> {
        match self.value(name) {
            Some(v) => (v == value).then_some(self),
            None => {
                self.values.push((name, value));
                Some(self)
            }
        }
    }
}

/// Operations that change a shape and nothing else.
const RESHAPES: [&str; 3] = ["reshape", "expand_dims", "squeeze"];

/// What `pattern` binds if `value` matches it.
#[must_use]
pub fn find(pattern: &Pattern, value: ValueId, graph: &dyn Look) -> Option<Bindings> {
    go(pattern, value, graph, Bindings::default())
}

fn go(pattern: &Pattern, value: ValueId, graph: &dyn Look, found: Bindings) -> Option<Bindings> {
    match pattern {
        Pattern::Any(name) => found.bind(name, value),
        Pattern::Named(name, inner) => go(inner, value, graph, found.bind(name, value)?),
        Pattern::Scalar(name) => match graph.constant(value)?.as_slice() {
            [v] => {
                let mut found = found;
                found.scalars.push((name, *v));
                Some(found)
            }
            _ => None,
        },
        Pattern::Op(kind, args) => {
            is(graph, value, kind)?;
            args.iter().try_fold(found, |found, (param, p)| go(p, graph.argument(value, param)?, graph, found))
        }
        Pattern::Part(kind, index, args) => {
            let (op, found_index) = graph.part(value)?;
            (op.name() == *kind && found_index == *index).then_some(())?;
            args.iter().try_fold(found, |found, (param, p)| go(p, graph.argument(value, param)?, graph, found))
        }
        Pattern::Each(kind, param, patterns) => {
            is(graph, value, kind)?;
            let values = graph.arguments(value, param);
            (values.len() == patterns.len()).then_some(())?;
            patterns.iter().zip(values).try_fold(found, |found, (p, &v)| go(p, v, graph, found))
        }
        Pattern::Either(kind, a, b) => {
            is(graph, value, kind)?;
            let (x, y) = (graph.argument(value, "x")?, graph.argument(value, "y")?);
            let both =
                |a: ValueId, b: ValueId, p: &Pattern, q: &Pattern| go(q, b, graph, go(p, a, graph, found.clone())?);
            both(x, y, a, b).or_else(|| both(y, x, a, b))
        }
        Pattern::OneOf(all) => all.iter().find_map(|p| go(p, value, graph, found.clone())),
        Pattern::Reshaped(inner) => go(inner, value, graph, found.clone()).or_else(|| {
            let kind = graph.producer(value)?.name();
            RESHAPES.contains(&kind).then_some(())?;
            go(pattern, graph.argument(value, "x")?, graph, found)
        }),
    }
}

fn is(graph: &dyn Look, value: ValueId, kind: &str) -> Option<()> {
    (graph.producer(value)?.name() == kind).then_some(())
}
