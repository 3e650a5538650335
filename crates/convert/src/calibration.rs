//! What the layers of a model read on a text: it tells weights that matter from those that do not.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use half::f16;

mod feedback;

pub(crate) use feedback::Feedback;

/// The inputs of linear layers on a text, by the names of their weights.
#[derive(Default)]
pub struct Calibration {
    inputs: HashMap<String, Arc<Inputs>>,
    /// What was made last: layers that read the same follow each other.
    last: Mutex<Option<(Arc<Inputs>, Arc<Feedback>)>>,
}

/// What one layer, or several, read: a row for each token.
struct Inputs {
    columns: usize,
    /// In units of the scale.
    values: Vec<f16>,
    scale: f32,
}

impl fmt::Debug for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "inputs of {} layers", self.inputs.len())
    }
}

impl Calibration {
    /// Notes that the layers whose weights are called so in Hugging Face's models read `values`, rows of `columns`.
    ///
    /// # Panics
    /// If there are no whole rows.
    pub fn add(&mut self, weights: &[String], columns: usize, values: &[f32]) {
        assert!(columns > 0 && values.len().is_multiple_of(columns), "whole rows of {columns}");
        let top = values.iter().fold(0f32, |m, v| m.max(v.abs()));
        let scale = if top > 0.0 && top.is_finite() { top / 32_768.0 } else { 1.0 };
        let values = values.iter().map(|&v| f16::from_f32(if v.is_finite() { v / scale } else { 0.0 })).collect();
        let inputs = Arc::new(Inputs { columns, values, scale });
        for weight in weights {
            self.inputs.insert(weight.clone(), Arc::clone(&inputs));
        }
    }

    /// Whether anything is known of the layer whose weights are called so.
    #[must_use]
    pub fn knows(&self, weight: &str) -> bool {
        self.inputs.contains_key(weight)
    }

    /// How errors in the columns of a matrix, or of a part of it, count and make up for each other.
    pub(crate) fn feedback(&self, weight: &str, columns: usize) -> Option<Arc<Feedback>> {
        let whole = weight.rsplit_once(".weight").map_or(weight.to_owned(), |(layer, _)| format!("{layer}.weight"));
        let inputs = self.inputs.get(&whole).filter(|inputs| inputs.columns == columns)?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, feedback)) = &*last
            && Arc::ptr_eq(of, inputs)
        {
            return Some(Arc::clone(feedback));
        }
        // The old one makes room first.
        *last = None;
        let feedback = Arc::new(Feedback::of(columns, &inputs.values, inputs.scale));
        *last = Some((Arc::clone(inputs), Arc::clone(&feedback)));
        Some(feedback)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_that_read_the_same_share_it_and_parts_have_that_of_the_whole() {
        let mut calibration = Calibration::default();
        let values: Vec<f32> = (0..12).map(|i| (i * 7 % 5) as f32).collect();
        calibration.add(&["a.weight".to_owned(), "b.weight".to_owned()], 4, &values);
        let feedback = |name: &str, columns| calibration.feedback(name, columns);
        let a = feedback("a.weight", 4).unwrap();
        assert!(Arc::ptr_eq(&a, &feedback("b.weight", 4).unwrap()));
        assert!(Arc::ptr_eq(&a, &feedback("a.weight.3", 4).unwrap()));
        assert!(feedback("a.weight", 8).is_none() && feedback("c.weight", 4).is_none());
        assert!(calibration.knows("b.weight") && !calibration.knows("c.weight"));
    }
}
