//! How a model is cut into packages: as few as the hardware takes, a number of them, or by size.

use std::ops::Range;

use anemone_mil::types::elements;

use crate::error::{ConvertError, Result};
use crate::lint::{Look, MOST_BYTES, MOST_OPERATIONS, Os, Profile};
use crate::part::{Frame, Kv, Part};
use crate::profile;
use crate::quantize::{Recipe, Weights};
use crate::source::Source;

/// Into how many packages a model is put.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Split {
    /// One, or for the Neural Engine as few as its limits of operations and bytes allow.
    #[default]
    Auto,
    /// So many: two halves of the layers, or the embeddings, chunks of layers, and the head.
    Count(usize),
    /// The embeddings, chunks of layers of at most so many bytes of weights each, and the head; one if all are no more.
    Bytes(u64),
}

/// What a model is cut for.
pub(crate) struct Cut<'s> {
    pub(crate) source: &'s Source,
    pub(crate) recipe: &'s Recipe,
    pub(crate) profile: Profile,
    pub(crate) kv: Kv,
    pub(crate) widths: Vec<usize>,
    pub(crate) context: usize,
}

/// What `part-size` counts in.
const MEGABYTE: u64 = 1_000_000;

/// Bytes of weights, and how many weights are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) bytes: u64,
    pub(crate) weights: u64,
}

impl Cut<'_> {
    /// The parts, in order.
    ///
    /// # Errors
    /// [`ConvertError::Options`] if the profile does not take parts, or there cannot be so many.
    pub(crate) fn parts(&self, split: Split) -> Result<Vec<Part>> {
        let config = self.source.config();
        let layers = config.layers;
        let whole = || vec![Part::whole(config)];
        let refused = |option, problem| Err(ConvertError::Options { option, problem });
        if self.profile == Profile::Gpu && !matches!(split, Split::Auto | Split::Count(1)) {
            let given = match split {
                Split::Count(n) => n.to_string(),
                _ => "several".to_owned(),
            };
            let why = "the apps that packages for the GPU are made for take one package";
            return refused("parts", format!("{given}; expected 1: {why}"));
        }
        match split {
            Split::Count(1) => Ok(whole()),
            Split::Count(2) if layers >= 2 => Ok(halves(layers)),
            Split::Count(n) if n >= 3 && n - 2 <= layers => Ok(chunks(layers, n - 2)),
            Split::Count(n) => {
                refused("parts", format!("{n}; expected 1 to {}, since there are {layers} layers", layers + 2))
            }
            Split::Bytes(most) => match self.size(&Part::whole(config))?.bytes <= most {
                true => Ok(whole()),
                false => self.fitting(most, usize::MAX),
            },
            Split::Auto if self.profile == Profile::Ane => {
                let one = self.operations(&Part { layers: 0..1, ..Part::whole(config) })?;
                let all = one + (layers - 1) * self.operations_per_layer()?;
                match self.size(&Part::whole(config))?.bytes <= MOST_BYTES && all <= MOST_OPERATIONS {
                    true => Ok(whole()),
                    false => self.fitting(MOST_BYTES, MOST_OPERATIONS),
                }
            }
            Split::Auto => Ok(whole()),
        }
    }

    /// As few chunks of layers as have at most so many bytes and operations each, with the embeddings before and the head
    /// behind them.
    fn fitting(&self, most_bytes: u64, most_operations: usize) -> Result<Vec<Part>> {
        let layers = self.source.config().layers;
        let most_layers = if most_operations == usize::MAX {
            layers
        } else {
            let per_layer = self.operations_per_layer()?;
            let around =
                self.operations(&Part { embeddings: false, layers: 0..1, head: false })?.saturating_sub(per_layer);
            most_operations.saturating_sub(around) / per_layer.max(1)
        };
        for count in 1..=layers {
            let parts = chunks(layers, count);
            let inner = &parts[1..parts.len() - 1];
            let fits = |part: &Part| Ok(part.layers.len() <= most_layers && self.size(part)?.bytes <= most_bytes);
            if inner.iter().map(fits).collect::<Result<Vec<bool>>>()?.into_iter().all(|fits| fits) {
                return Ok(parts);
            }
        }
        let bytes = self.size(&Part { embeddings: false, layers: 0..1, head: false })?.bytes;
        let (most, least) = (most_bytes / MEGABYTE, bytes.div_ceil(MEGABYTE));
        let problem = format!("{most}; expected {least} megabytes or more, which one layer alone has of weights");
        Err(ConvertError::Options { option: "part-size", problem })
    }

    /// The weights of a part.
    pub(crate) fn size(&self, part: &Part) -> Result<Size> {
        let config = self.source.config();
        let mut size = Size::default();
        for (name, shape) in (config.family.tensors)(config) {
            let table = name == "model.embed_tokens.weight";
            let inside = match layer_of(&name) {
                Some(layer) => part.layers.contains(&layer),
                // Tied weights are stored once in a package.
                None if table => part.embeddings || (part.head && config.tie_embeddings),
                None => part.head,
            };
            let n = elements(&shape) as u64;
            match shape[..] {
                _ if !inside => {}
                [_, _] if config.tie_embeddings && name == "lm_head.weight" => {}
                [_, _] => {
                    size.bytes += self.recipe.bytes(&self.source.tensor(&name)?);
                    size.weights += n;
                }
                _ => size.bytes += 2 * n,
            }
        }
        Ok(size)
    }

    /// Bytes of the embedding where it is the output projection too, and other parts than one need it: it is stored in both.
    pub(crate) fn stored_twice(&self, parts: &[Part]) -> Result<Option<u64>> {
        let needed = parts.iter().filter(|part| part.embeddings || part.head).count();
        if !self.source.config().tie_embeddings || needed < 2 {
            return Ok(None);
        }
        Ok(Some(self.recipe.bytes(&self.source.tensor("model.embed_tokens.weight")?)))
    }

    /// Operations of the longest function of a part.
    fn operations(&self, part: &Part) -> Result<usize> {
        let weights = Weights::unwatched(self.recipe);
        let mut most = 0;
        for &width in &self.widths {
            let frame = Frame { width, context: self.context, part: part.clone(), kv: self.kv };
            let function = profile::build(self.profile, self.source, &weights, &frame)?;
            most = most.max(Look::new("", &function, Os::Ios18).computing().count());
        }
        Ok(most)
    }

    fn operations_per_layer(&self) -> Result<usize> {
        let of = |layers: Range<usize>| self.operations(&Part { embeddings: false, layers, head: false });
        match self.source.config().layers {
            1 => of(0..1),
            _ => Ok(of(0..2)?.saturating_sub(of(0..1)?)),
        }
    }
}

/// The layer that a tensor belongs to.
fn layer_of(name: &str) -> Option<usize> {
    name.strip_prefix("model.layers.")?.split('.').next()?.parse().ok()
}

/// The layers in so many ranges of nearly the same length.
fn ranges(layers: usize, count: usize) -> impl Iterator<Item = Range<usize>> {
    (0..count).map(move |i| layers * i / count..layers * (i + 1) / count)
}

/// Two parts.
fn halves(layers: usize) -> Vec<Part> {
    let part = |(i, layers)| Part { embeddings: i == 0, layers, head: i == 1 };
    ranges(layers, 2).enumerate().map(part).collect()
}

/// The embeddings, so many chunks of layers, and the head.
fn chunks(layers: usize, count: usize) -> Vec<Part> {
    let mut parts = vec![Part { embeddings: true, layers: 0..0, head: false }];
    parts.extend(ranges(layers, count).map(|layers| Part { embeddings: false, layers, head: false }));
    parts.push(Part { embeddings: false, layers: layers..layers, head: true });
    parts
}

/// The folders of the packages of parts.
pub(crate) fn names(parts: &[Part]) -> Vec<String> {
    let mut chunk = 0;
    let name = |part: &Part| match part {
        _ if part.is_whole() => anemone_package::bundle::PACKAGE.to_owned(),
        Part { layers, .. } if !layers.is_empty() => {
            chunk += 1;
            format!("layers-{chunk}.mlpackage")
        }
        Part { embeddings: true, .. } => "embeddings.mlpackage".to_owned(),
        Part { .. } => "head.mlpackage".to_owned(),
    };
    parts.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_every_layer_once_in_order() {
        for layers in 1..40 {
            for count in 1..=layers {
                let parts = chunks(layers, count);
                assert_eq!(parts.len(), count + 2);
                let all: Vec<usize> = parts.iter().flat_map(|part| part.layers.clone()).collect();
                assert_eq!(all, (0..layers).collect::<Vec<_>>());
                assert!(parts[1..=count].iter().all(|part| !part.layers.is_empty()));
            }
        }
        let two = halves(5);
        assert_eq!((two[0].layers.clone(), two[1].layers.clone()), (0..2, 2..5));
        assert_eq!(names(&two), ["layers-1.mlpackage", "layers-2.mlpackage"]);
        assert_eq!(names(&chunks(2, 1)), ["embeddings.mlpackage", "layers-1.mlpackage", "head.mlpackage"]);
    }
}
