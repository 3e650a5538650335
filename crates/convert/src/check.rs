//! After writing: every weight of the package is decoded, by what decodes it when it runs, and compared with its source.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use anemone_mil::Function;
use anemone_mil::build::identifier;
use anemone_mil::packed::Packed;
use anemone_mil::stored::Stored;
use rayon::prelude::*;

use crate::error::{ConvertError, Result};
use crate::quantize::{Form, Promise, Recipe, Watch};
use crate::source::{Source, Tensor};

/// How near the weights of a package are to those of their source.
#[derive(Debug, Clone, Default)]
pub struct Fidelity {
    /// One matrix each, in the order of the model. Vectors are half floats, and are checked but not listed.
    pub matrices: Vec<MatrixFidelity>,
}

/// How near one matrix is to its source.
#[derive(Debug, Clone, PartialEq)]
pub struct MatrixFidelity {
    /// Its name in the source, as Hugging Face has it.
    pub tensor: String,
    /// How the source stores it, as in `Q4_0`.
    pub source: &'static str,
    /// How the package stores it, for people.
    pub form: &'static str,
    /// Whether every weight is the same number.
    pub exact: bool,
    /// Root of the mean square of the errors, as a share of that of the weights.
    pub relative_error: f64,
    /// The largest error of a weight, as a share of the largest magnitude in its row.
    pub worst: f32,
    /// Number of weights.
    pub weights: u64,
}

impl Fidelity {
    /// Root of the mean square of all errors, as a share of the weights: each matrix counts by its weights.
    #[must_use]
    pub fn relative_error(&self) -> f64 {
        let weights: f64 = self.matrices.iter().map(|m| m.weights as f64).sum();
        let errors: f64 = self.matrices.iter().map(|m| m.weights as f64 * m.relative_error.powi(2)).sum();
        if weights == 0.0 { 0.0 } else { (errors / weights).sqrt() }
    }

    /// The matrices that are not exact, from the least to the most faithful.
    #[must_use]
    pub fn worst(&self) -> Vec<&MatrixFidelity> {
        let mut all: Vec<_> = self.matrices.iter().filter(|m| !m.exact).collect();
        all.sort_by(|a, b| b.relative_error.total_cmp(&a.relative_error));
        all
    }
}

/// Compares the packages of a model with their source.
pub(crate) fn check(
    packages: &[PathBuf],
    function: &str,
    source: &Source,
    recipe: &Recipe,
    watch: &Watch,
) -> Result<Fidelity> {
    let models = packages.iter().map(|package| Ok(anemone_mil::load(package)?)).collect::<Result<Vec<_>>>()?;
    let stored = models.iter().map(|model| {
        let function = model.program.functions.get(function);
        Ok(Stored::new(function.ok_or_else(|| internal("the package lacks the function it was written with"))?))
    });
    let stored = stored.collect::<Result<Vec<_>>>()?;
    let config = source.config();
    let mut fidelity = Fidelity::default();
    for (name, shape) in (config.family.tensors)(config) {
        if config.tie_embeddings && name == "lm_head.weight" {
            continue;
        }
        watch.check().map_err(|_| ConvertError::Stopped)?;
        let tensor = source.tensor(&name)?;
        let form = if shape.len() == 2 { recipe.form(&tensor) } else { Form::Halves };
        // Tied weights may be in two of the packages.
        let measured = stored.iter().filter_map(|stored| find_and_compare(stored, &name, &tensor));
        let measured = measured.reduce(|a, b| if b.worst > a.worst || b.worst.is_nan() { b } else { a });
        let measured = measured.ok_or_else(|| internal(&format!("the package lacks the weight {name}")))?;
        watch.done.fetch_add(tensor.len() as u64, Ordering::Relaxed);
        let matrix = measured.told(&tensor, form);
        match form.promise(&tensor) {
            Promise::Exact if !matrix.exact => {
                return Err(internal(&format!("{name} was to be stored exactly, and is off by {:e}", measured.worst)));
            }
            Promise::Within(share) if !measured.within(share) => {
                let problem = format!("a weight of {name} is off by {} of the largest in its row", measured.worst);
                return Err(internal(&problem));
            }
            Promise::Near(share) if !measured.near(share) => {
                let off = matrix.relative_error;
                return Err(internal(&format!("the weights of {name} are off by {off} of their root mean square")));
            }
            _ => {}
        }
        if shape.len() == 2 {
            fidelity.matrices.push(matrix);
        }
    }
    Ok(fidelity)
}

/// How near a tensor is to what a function stores under its name; nothing if it stores nothing of its extents.
pub(crate) fn measure(function: &Function, tensor: &Tensor, form: Form) -> Option<MatrixFidelity> {
    let measured = find_and_compare(&Stored::new(function), tensor.name(), tensor)?;
    Some(measured.told(tensor, form))
}

/// Compares a tensor with what is stored under its name, whole or in parts of its rows; nothing if that has other extents.
/// Extents of 1 do not matter: channels come first on the Neural Engine.
fn find_and_compare(stored: &Stored<'_>, name: &str, tensor: &Tensor) -> Option<Measured> {
    let same = |found: &Packed, tensor: &Tensor| {
        let bare = |shape: &[usize]| shape.iter().copied().filter(|&n| n != 1).collect::<Vec<_>>();
        bare(&found.ty().shape) == bare(tensor.shape())
    };
    if let Some(found) = stored.get(&identifier(name)) {
        return same(&found, tensor).then(|| compare(tensor, &found));
    }
    let (mut rows, mut all) = (0, Measured::default());
    for part in 0.. {
        let Some(found) = stored.get(&identifier(&format!("{name}.{part}"))) else { break };
        let end = rows + *found.ty().shape.first()?;
        let own = tensor.clone().of_rows(rows..end).filter(|own| same(&found, own))?;
        all = all.plus(compare(&own, &found));
        rows = end;
    }
    (rows == tensor.rows()).then_some(all)
}

fn internal(problem: &str) -> ConvertError {
    ConvertError::Internal { problem: problem.to_owned() }
}

/// What a comparison found.
#[derive(Debug, Clone, Copy, Default)]
struct Measured {
    /// Of the errors.
    squares: f64,
    /// Of the weights.
    energy: f64,
    /// The largest error over the largest magnitude of its row.
    worst: f32,
    /// The same, of errors beyond what the smallest half floats are apart.
    worst_beyond_tiny: f32,
    differ: u64,
}

/// The larger one; NaN if there is one, unlike `max`.
fn larger(a: f32, b: f32) -> f32 {
    if a.is_nan() || b <= a { a } else { b }
}

/// Half floats cannot tell smaller differences: half the smallest of them.
const SMALLEST: f32 = 3.0e-8;

impl Measured {
    fn plus(self, other: Self) -> Self {
        Self {
            squares: self.squares + other.squares,
            energy: self.energy + other.energy,
            worst: larger(self.worst, other.worst),
            worst_beyond_tiny: larger(self.worst_beyond_tiny, other.worst_beyond_tiny),
            differ: self.differ + other.differ,
        }
    }

    fn row(expected: &[f32], found: &[f32]) -> Self {
        let top = expected.iter().fold(0f32, |m, v| m.max(v.abs()));
        let mut all = Self::default();
        let mut worst = 0f32;
        for (&e, &f) in expected.iter().zip(found) {
            let error = (e - f).abs();
            all.squares += f64::from(error) * f64::from(error);
            all.energy += f64::from(e) * f64::from(e);
            worst = larger(worst, error);
            all.differ += u64::from(e != f);
        }
        let share = |error: f32| if error == 0.0 { 0.0 } else { error / top };
        all.worst = share(worst);
        all.worst_beyond_tiny = share(if worst < 16.0 * SMALLEST { 0.0 } else { worst });
        all
    }

    fn within(&self, share: f32) -> bool {
        self.worst_beyond_tiny <= share
    }

    fn near(&self, share: f64) -> bool {
        self.squares <= share * share * self.energy || !self.squares.is_nan() && self.worst_beyond_tiny == 0.0
    }

    fn told(&self, tensor: &Tensor, form: Form) -> MatrixFidelity {
        MatrixFidelity {
            tensor: tensor.name().to_owned(),
            source: tensor.kind().name,
            form: form.name(),
            exact: self.differ == 0,
            relative_error: if self.squares == 0.0 { 0.0 } else { (self.squares / self.energy).sqrt() },
            worst: self.worst,
            weights: tensor.len() as u64,
        }
    }
}

fn compare(tensor: &Tensor, found: &Packed) -> Measured {
    let columns = tensor.row_len();
    let one = |room: &mut (Vec<f32>, Vec<f32>), row: usize| {
        let (expected, decoded) = room;
        expected.resize(columns, 0.0);
        decoded.resize(columns, 0.0);
        tensor.decode_rows(row..row + 1, expected);
        found.decode(row * columns..(row + 1) * columns, decoded);
        Measured::row(expected, decoded)
    };
    (0..tensor.rows())
        .into_par_iter()
        .with_min_len(16)
        .map_init(Default::default, one)
        .reduce(Measured::default, Measured::plus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_shares_of_the_row() {
        let m = Measured::row(&[1.0, -4.0, 0.0], &[1.0, -4.5, 0.25]);
        assert_eq!((m.worst, m.differ, m.squares, m.energy), (0.125, 2, 0.3125, 17.0));
        assert!(m.within(0.125) && !m.within(0.1));
        assert!(Measured::row(&[0.0; 2], &[0.0; 2]).within(0.0));
        assert!(Measured::row(&[1e-8], &[0.0]).within(0.0), "no half float is nearer");
        assert!(!Measured::row(&[1.0], &[f32::NAN]).within(10.0));
        assert!(!Measured::row(&[0.0], &[0.5]).within(10.0));
        assert!(m.near(0.15) && !m.near(0.1));
        assert!(Measured::row(&[1e-8], &[0.0]).near(0.0) && !Measured::row(&[1.0], &[f32::NAN]).near(10.0));
    }
}
