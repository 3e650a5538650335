//! Rotary positions from a Hugging Face `config.json`, in its several spellings.

use super::config::{Rope, RopeScaling};
use super::family::Family;
use super::json::Object;
use crate::error::{ConvertError, Result};

/// The rotary positions, and those of the layers with a window where they are others.
///
/// `rope_theta` beside `rope_scaling`; or `rope_parameters` (transformers 5), perhaps by the kind of attention.
pub(super) fn ropes(
    config: &Object,
    family: &Family,
    head_dim: usize,
    context_length: usize,
) -> Result<(Rope, Option<Rope>)> {
    let reader = Reader { config, family, head_dim, context_length };
    let theta = config.f64("rope_theta")?.unwrap_or(family.defaults.rope_theta);
    let Some(parameters) = config.object("rope_parameters")? else {
        let rope = reader.read(config.object("rope_scaling")?.as_ref(), theta)?;
        let local = config.f64("rope_local_base_freq")?;
        return Ok((rope, local.map(|theta| reader.read(None, theta)).transpose()?));
    };
    match (parameters.object("full_attention")?, parameters.object("sliding_attention")?) {
        (None, None) => Ok((reader.read(Some(&parameters), theta)?, None)),
        (full, local) => {
            let local = local.map(|local| reader.read(Some(&local), theta)).transpose()?;
            Ok((reader.read(full.as_ref(), theta)?, local))
        }
    }
}

struct Reader<'c> {
    config: &'c Object,
    family: &'c Family,
    head_dim: usize,
    context_length: usize,
}

impl Reader<'_> {
    fn read(&self, parameters: Option<&Object>, theta: f64) -> Result<Rope> {
        let of = |key: &str| parameters.map_or(Ok(None), |parameters| parameters.f64(key));
        let partial = self.config.f64("partial_rotary_factor")?.or(of("partial_rotary_factor")?).unwrap_or(1.0);
        if partial != 1.0 && !self.family.partial_rotary {
            return Err(ConvertError::UnsupportedFeature {
                path: self.config.path().to_owned(),
                feature: "a partial rotary embedding".to_owned(),
                remedy: "this family rotates whole heads".to_owned(),
            });
        }
        Ok(Rope {
            theta: of("rope_theta")?.unwrap_or(theta),
            // Refused later if it is out of range.
            dimensions: (self.head_dim as f64 * partial) as usize,
            scaling: parameters.map_or(Ok(RopeScaling::None), |parameters| self.scaling(parameters))?,
        })
    }

    fn scaling(&self, parameters: &Object) -> Result<RopeScaling> {
        let kind = match parameters.str("rope_type")? {
            Some(kind) => Some(kind),
            None => parameters.str("type")?,
        };
        let number = |key: &str| parameters.required(key, parameters.f64(key)?);
        match kind.unwrap_or("default") {
            "default" => Ok(RopeScaling::None),
            "linear" => Ok(RopeScaling::Linear { factor: number("factor")? }),
            "llama3" => Ok(RopeScaling::Llama3 {
                factor: number("factor")?,
                low_freq_factor: number("low_freq_factor")?,
                high_freq_factor: number("high_freq_factor")?,
                original_context: self.original(parameters)?.unwrap_or(self.context_length) as f64,
            }),
            // Phi-3's first checkpoints called it "su".
            "longrope" | "su" => self.longrope(parameters),
            other => Err(super::unsupported_scaling(self.config.path(), other)),
        }
    }

    fn original(&self, parameters: &Object) -> Result<Option<usize>> {
        let key = "original_max_position_embeddings";
        Ok(self.config.usize(key)?.or(parameters.usize(key)?))
    }

    /// The default of the magnitude is that of `_compute_longrope_parameters` in Hugging Face's `modeling_rope_utils.py`.
    fn longrope(&self, parameters: &Object) -> Result<RopeScaling> {
        let list = |key: &str| parameters.required(key, parameters.f32_list(key)?);
        let (original, factor) = match self.original(parameters)? {
            Some(original) => (original, self.context_length as f64 / original as f64),
            None => (self.context_length, parameters.f64("factor")?.unwrap_or(1.0)),
        };
        let magnitude = match parameters.f64("attention_factor")? {
            Some(magnitude) => magnitude,
            None if factor <= 1.0 => 1.0,
            None => (1.0 + factor.ln() / (original as f64).ln()).sqrt(),
        };
        let (short, long) = (list("short_factor")?, list("long_factor")?);
        Ok(RopeScaling::Long { short, long, original_context: original, magnitude })
    }
}
