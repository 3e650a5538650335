//! What `adapter_config.json` says.

use std::ops::RangeInclusive;
use std::path::Path;

use serde_json::Value;

use crate::error::{ConvertError, Result};
use crate::source::config::within;
use crate::source::json::Object;

/// What may be said to scale an adapter; below zero it takes away what it was trained to add.
const ALPHAS: RangeInclusive<f64> = -1e6..=1e6;
const CONFIG: &str = "adapter_config.json";
/// The largest `adapter_config.json`, in bytes.
const MAX_CONFIG: u64 = 16 << 20;

/// The settings of an adapter.
pub(super) struct Settings {
    rank: usize,
    alpha: f64,
    stabilized: bool,
    /// Ranks and alphas of modules, by the ends of their names.
    ranks: Vec<(String, usize)>,
    alphas: Vec<(String, f64)>,
    targets: Vec<String>,
}

/// Settings that change what a model computes, each with the values that change nothing.
const CHANGES: [(&str, &[&str]); 10] = [
    ("use_dora", &["false"]),
    ("fan_in_fan_out", &["false"]),
    ("lora_bias", &["false"]),
    ("bias", &["\"none\""]),
    ("modules_to_save", &["[]"]),
    ("layer_replication", &["[]"]),
    ("trainable_token_indices", &["[]", "{}"]),
    ("target_parameters", &["[]"]),
    ("alora_invocation_tokens", &["[]"]),
    ("use_qalora", &["false"]),
];

/// Ways to begin with that also change the weights of the model that is adapted.
const BEGINNINGS: [&str; 4] = ["pissa", "olora", "corda", "loftq"];

impl Settings {
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(CONFIG);
        if !path.is_file() {
            let problem =
                format!("there is no {CONFIG}: it is no folder of an adapter as Hugging Face's PEFT saves it");
            return Err(ConvertError::Malformed { path: folder.to_owned(), problem });
        }
        Self::of(&Object::read(&path, MAX_CONFIG)?)
    }

    fn of(config: &Object) -> Result<Self> {
        let unsupported = |feature: String, remedy: &str| {
            Err(ConvertError::UnsupportedFeature { path: config.path().to_owned(), feature, remedy: remedy.to_owned() })
        };
        let kind = config.required("peft_type", config.str("peft_type")?)?;
        if !kind.eq_ignore_ascii_case("lora") {
            return unsupported(format!("an adapter of the type {kind:?}"), "supported: LORA");
        }
        for (key, harmless) in CHANGES {
            if let Some(value) = config.get(key)
                && !harmless.contains(&value.to_string().as_str())
            {
                let feature = format!("an adapter with `{key}` = {value}");
                return unsupported(feature, "merge it into its model with PEFT's merge_and_unload, and convert that");
            }
        }
        if let Some(Value::String(begin)) = config.get("init_lora_weights")
            && BEGINNINGS.iter().any(|other| begin.to_ascii_lowercase().starts_with(other))
        {
            let remedy = "it changes the model's own weights too; save it as plain LoRA \
                          (path_initial_model_for_weight_conversion of PEFT's save_pretrained), or merge it there";
            return unsupported(format!("an adapter that began as {begin:?}"), remedy);
        }
        let rank = config.required("r", config.usize("r")?)?;
        if rank == 0 {
            return Err(ConvertError::setting(config.path(), "r", "0; expected 1 or more"));
        }
        let targets = match config.get("target_modules") {
            Some(Value::Array(all)) => all.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect(),
            // A pattern, which the names of the tensors have been through.
            _ => Vec::new(),
        };
        let alpha = config.required("lora_alpha", config.f64("lora_alpha")?)?;
        let alphas = patterns(config, "alpha_pattern", Value::as_f64)?;
        within(config.path(), "lora_alpha", alpha, ALPHAS)?;
        alphas.iter().try_for_each(|(_, alpha)| within(config.path(), "alpha_pattern", *alpha, ALPHAS))?;
        Ok(Self {
            rank,
            alpha,
            stabilized: config.bool("use_rslora")?.unwrap_or(false),
            ranks: patterns(config, "rank_pattern", |v| v.as_u64().filter(|&n| n > 0).map(|n| n as usize))?,
            alphas,
            targets,
        })
    }

    /// The modules that it is said to change, by the ends of their names.
    pub(super) fn targets(&self) -> impl Iterator<Item = &str> {
        self.targets.iter().map(String::as_str)
    }

    pub(super) fn rank(&self, module: &str) -> usize {
        first(&self.ranks, module).unwrap_or(self.rank)
    }

    /// What the product is multiplied by.
    pub(super) fn scale(&self, module: &str) -> f64 {
        let (alpha, rank) = (first(&self.alphas, module).unwrap_or(self.alpha), self.rank(module) as f64);
        alpha / if self.stabilized { rank.sqrt() } else { rank }
    }

    pub(super) fn scale_in_words(&self) -> String {
        let root = if self.stabilized { "√" } else { "" };
        let but = if self.alphas.is_empty() && self.ranks.is_empty() { "" } else { " (others for some)" };
        format!("scale {} / {root}{} = {:.4}{but}", self.alpha, self.rank, self.scale(""))
    }
}

fn first<T: Copy>(patterns: &[(String, T)], module: &str) -> Option<T> {
    patterns.iter().find(|(pattern, _)| names(pattern, module)).map(|(_, value)| *value)
}

/// Whether a module is meant by its name, or by the end of it after a dot.
pub(super) fn names(end: &str, module: &str) -> bool {
    let end = end.strip_prefix('^').unwrap_or(end);
    module.strip_suffix(end).is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// Values by the ends of modules' names. PEFT takes regular expressions; those that are more than a name are refused.
fn patterns<T>(config: &Object, key: &str, read: fn(&Value) -> Option<T>) -> Result<Vec<(String, T)>> {
    let Some(Value::Object(all)) = config.get(key) else { return Ok(Vec::new()) };
    let one = |(pattern, value): (&String, &Value)| {
        let plain = pattern.trim_start_matches('^').chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
        match read(value) {
            Some(value) if plain => Ok((pattern.clone(), value)),
            Some(_) => {
                Err(ConvertError::setting(config.path(), key, format!("{pattern:?}; expected the name of a module")))
            }
            None => {
                Err(ConvertError::setting(config.path(), key, format!("{value} for {pattern:?}; expected a number")))
            }
        }
    };
    all.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Settings> {
        Settings::of(&Object::parse(Path::new("adapter_config.json"), json.as_bytes())?)
    }

    #[test]
    fn scales_are_pefts() {
        let plain =
            read(r#"{"peft_type": "LORA", "r": 16, "lora_alpha": 32, "bias": "none", "modules_to_save": null}"#);
        let plain = plain.unwrap();
        assert_eq!((plain.rank("x"), plain.scale("x")), (16, 2.0));
        let other = read(
            r#"{"peft_type": "LORA", "r": 16, "lora_alpha": 8, "use_rslora": true, "target_modules": ["q_proj"],
                "rank_pattern": {"layers.1.self_attn.q_proj": 4}, "alpha_pattern": {"v_proj": 3.0}}"#,
        )
        .unwrap();
        assert_eq!(other.scale("model.layers.0.self_attn.q_proj"), 2.0);
        assert_eq!(other.scale("model.layers.1.self_attn.q_proj"), 4.0);
        assert_eq!(other.scale("model.layers.1.self_attn.v_proj"), 0.75);
        assert_eq!(other.scale("model.layers.11.self_attn.q_proj"), 2.0, "layers.11 is not layers.1");
        assert_eq!(other.targets().collect::<Vec<_>>(), ["q_proj"]);
    }

    #[test]
    fn what_is_more_than_a_product_is_refused_by_its_key() {
        for (more, named) in [
            (r#""use_dora": true"#, "use_dora"),
            (r#""bias": "all""#, "bias"),
            (r#""modules_to_save": ["lm_head"]"#, "modules_to_save"),
            (r#""fan_in_fan_out": true"#, "fan_in_fan_out"),
            (r#""init_lora_weights": "pissa_niter_16""#, "pissa"),
            (r#""rank_pattern": {"(q|k)_proj": 3}"#, "rank_pattern"),
            (r#""alpha_pattern": {"q_proj": "much"}"#, "alpha_pattern"),
        ] {
            let error = read(&format!(r#"{{"peft_type": "LORA", "r": 8, "lora_alpha": 8, {more}}}"#)).map(drop);
            assert!(error.as_ref().is_err_and(|e| e.to_string().contains(named)), "{more}: {error:?}");
        }
        for json in [r#"{"peft_type": "IA3"}"#, r#"{"peft_type": "LORA", "lora_alpha": 1}"#, r#"{"r": 8}"#] {
            assert!(read(json).is_err(), "{json}");
        }
        assert!(read(r#"{"peft_type": "LORA", "r": 0, "lora_alpha": 1}"#).is_err());
    }
}
