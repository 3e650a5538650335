//! Every weight of a package, decoded and compared with its source.

use std::ops::Range;

use anemone_convert::{Source, Tensor};
use anemone_mil::Function;
use anemone_mil::build::identifier;
use anemone_mil::packed::Packed;
use anemone_mil::stored::Stored;
use rayon::prelude::*;
use serde::Serialize;

/// How near a tensor of a package is to that of the source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WeightError {
    /// The tensor's name in the source.
    pub tensor: String,
    /// The root mean square of the differences, divided by that of the weights.
    pub relative: f64,
    /// The largest difference, divided by the largest magnitude.
    pub worst: f64,
}

/// What a comparison of weights found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WeightReport {
    /// Tensors that were compared, the worst first.
    pub errors: Vec<WeightError>,
    /// Tensors of the source of which the package has none of that name and size.
    pub missing: Vec<String>,
}

/// Compares every tensor of the source with that of the functions, one of each package that the model is made of. Packages of
/// other tools name theirs otherwise: all are missing then.
///
/// # Errors
/// In words, if the source cannot be read.
pub fn weights(functions: &[&Function], source: &Source) -> Result<WeightReport, String> {
    let stored: Vec<Stored<'_>> = functions.iter().map(|function| Stored::new(function)).collect();
    let config = source.config();
    let mut report = WeightReport::default();
    for (name, _) in (config.family.tensors)(config) {
        let tensor = source.tensor(&name).map_err(|e| e.to_string())?;
        // Tied weights may be in two packages.
        let found = stored.iter().filter_map(|stored| find(stored, tensor.name(), &tensor));
        let errors = found.map(|rows| compare(name.clone(), &tensor, &rows));
        match errors.max_by(|a, b| a.relative.total_cmp(&b.relative)) {
            Some(worst) => report.errors.push(worst),
            None => report.missing.push(name),
        }
    }
    report.errors.sort_by(|a, b| b.relative.total_cmp(&a.relative));
    Ok(report)
}

/// What is stored of a tensor: all of it, or parts of its rows, each with the rows that it has.
fn find(stored: &Stored<'_>, name: &str, tensor: &Tensor) -> Option<Vec<(Range<usize>, Packed)>> {
    let fits = |packed: &Packed, rows: usize| {
        packed.ty().dtype.is_float() && packed.ty().elements() == rows * tensor.row_len()
    };
    if let Some(whole) = stored.get(&identifier(name)) {
        return fits(&whole, tensor.rows()).then(|| vec![(0..tensor.rows(), whole)]);
    }
    let mut parts: Vec<(Range<usize>, Packed)> = Vec::new();
    let mut first = 0;
    while let Some(part) = stored.get(&identifier(&format!("{name}.{}", parts.len()))) {
        let rows = *part.ty().shape.first()?;
        if !fits(&part, rows) {
            return None;
        }
        parts.push((first..first + rows, part));
        first += rows;
    }
    (first == tensor.rows() && first > 0).then_some(parts)
}

fn compare(tensor_name: String, tensor: &Tensor, parts: &[(Range<usize>, Packed)]) -> WeightError {
    let columns = tensor.row_len();
    let row = |(rows, part): &(Range<usize>, Packed), row: usize| {
        let (mut source, mut stored) = (vec![0.0; columns], vec![0.0; columns]);
        tensor.decode_rows(row..row + 1, &mut source);
        part.decode((row - rows.start) * columns..(row - rows.start + 1) * columns, &mut stored);
        let mut sums = [0f64; 4];
        for (&w, &s) in source.iter().zip(&stored) {
            let (w, off) = (f64::from(w), (f64::from(w) - f64::from(s)).abs());
            sums = join(sums, [off * off, w * w, off, w.abs()]);
        }
        sums
    };
    let part = |part: &(Range<usize>, Packed)| {
        let rows = part.0.clone().into_par_iter().with_min_len(16);
        rows.map(|i| row(part, i)).reduce(Default::default, join)
    };
    let [difference, power, worst, largest] = parts.iter().map(part).fold([0.0; 4], join);
    let share = |a: f64, b: f64| if a == 0.0 { 0.0 } else { a / b };
    WeightError { tensor: tensor_name, relative: share(difference, power).sqrt(), worst: share(worst, largest) }
}

/// Sums of squares are added, the largest of magnitudes is kept.
fn join(a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
    [a[0] + b[0], a[1] + b[1], a[2].max(b[2]), a[3].max(b[3])]
}
