//! Lines in an SVG.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::prelude::*;

/// A line with its name.
pub(super) struct Line<'a> {
    pub(super) name: &'a str,
    pub(super) colour: RGBColor,
    pub(super) points: &'a [(f64, f64)],
}

/// Draws lines over a common pair of axes that begin at zero.
pub(super) fn draw(path: &Path, title: &str, [x, y]: [&str; 2], lines: &[Line<'_>]) -> Result<()> {
    let failed = |e: &dyn std::fmt::Display| anyhow!("{}: {e}", path.display());
    let all = || lines.iter().flat_map(|line| line.points);
    let (right, top) = all().fold((1.0f64, 1e-9f64), |(right, top), &(x, y)| (right.max(x), top.max(y)));
    let root = SVGBackend::new(path, (760, 420)).into_drawing_area();
    root.fill(&WHITE).map_err(|e| failed(&e))?;
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..right, 0.0..top * 1.05)
        .map_err(|e| failed(&e))?;
    chart.configure_mesh().x_desc(x).y_desc(y).max_light_lines(1).draw().map_err(|e| failed(&e))?;
    for line in lines {
        let colour = line.colour;
        let series = LineSeries::new(line.points.iter().copied(), colour.stroke_width(2));
        let drawn = chart.draw_series(series).map_err(|e| failed(&e))?;
        drawn.label(line.name).legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    let mut legend = chart.configure_series_labels();
    legend.position(SeriesLabelPosition::UpperLeft).border_style(BLACK.mix(0.3)).background_style(WHITE);
    legend.draw().map_err(|e| failed(&e))?;
    root.present().map_err(|e| failed(&e))
}
