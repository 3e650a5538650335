//! The same as a picture.

use plotters::prelude::{
    ChartBuilder, DrawingArea, IntoDrawingArea, LineSeries, RGBColor, SVGBackend, SeriesLabelPosition, WHITE,
};
use plotters::series::DashedLineSeries;
use plotters::style::Color;

use super::{Bench, Measured, Outcome};

/// Colours that people with any sight tell apart (Okabe and Ito).
const COLOURS: [RGBColor; 5] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Drawn = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Two charts as one SVG: tokens a second under load, and the time to the first token of each turn.
///
/// # Errors
/// If it cannot be drawn.
pub fn plot(bench: &Bench) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let mut svg = String::new();
    let measured: Vec<(&str, &Measured)> = bench
        .columns
        .iter()
        .filter_map(|column| match &column.outcome {
            Outcome::Measured(m) => Some((column.subject.as_str(), &**m)),
            _ => None,
        })
        .collect();
    {
        let root = SVGBackend::with_string(&mut svg, (960, 720)).into_drawing_area();
        root.fill(&WHITE)?;
        let (upper, lower) = root.split_vertically(340);
        load(&upper, &format!("{}: tokens a second under load", bench.model), &measured)?;
        turns(&lower, "Milliseconds to the first token of a turn: cache kept (line), read again (dashes)", &measured)?;
        root.present()?;
    }
    Ok(svg)
}

/// A little more than the largest value, so that lines keep off the border.
fn above(values: impl Iterator<Item = f64>) -> f64 {
    let most = values.filter(|v| v.is_finite()).fold(0.0, f64::max);
    if most > 0.0 { most * 1.1 } else { 1.0 }
}

fn load(area: &Area<'_>, title: &str, measured: &[(&str, &Measured)]) -> Drawn {
    let points = || measured.iter().flat_map(|(_, m)| &m.curve);
    let (right, top) = (above(points().map(|p| p.tokens as f64)), above(points().map(|p| p.tokens_per_second)));
    let mut chart = ChartBuilder::on(area);
    chart.caption(title, ("sans-serif", 20)).margin(12).x_label_area_size(36).y_label_area_size(56);
    let mut chart = chart.build_cartesian_2d(0.0..right, 0.0..top)?;
    chart.configure_mesh().x_desc("tokens").y_desc("tokens/s").light_line_style(WHITE).draw()?;
    for (i, (subject, m)) in measured.iter().enumerate() {
        let style = COLOURS[i % COLOURS.len()].stroke_width(2);
        let line = m.curve.iter().map(|p| (p.tokens as f64, p.tokens_per_second));
        chart.draw_series(LineSeries::new(line, style))?.label(*subject).legend(move |(x, y)| legend(x, y, i));
    }
    chart.configure_series_labels().position(SeriesLabelPosition::LowerLeft).background_style(WHITE).draw()?;
    Ok(())
}

fn turns(area: &Area<'_>, title: &str, measured: &[(&str, &Measured)]) -> Drawn {
    let all = || measured.iter().flat_map(|(_, m)| &m.turns);
    let right = above(all().map(|t| (t.before + t.new) as f64));
    let top = above(all().flat_map(|t| [t.kept, t.again]).map(|seconds| seconds * 1000.0));
    let mut chart = ChartBuilder::on(area);
    chart.caption(title, ("sans-serif", 20)).margin(12).x_label_area_size(36).y_label_area_size(56);
    let mut chart = chart.build_cartesian_2d(0.0..right, 0.0..top)?;
    chart.configure_mesh().x_desc("tokens of the conversation").y_desc("ms").light_line_style(WHITE).draw()?;
    for (i, (subject, m)) in measured.iter().enumerate() {
        let style = COLOURS[i % COLOURS.len()].stroke_width(2);
        let at = |seconds: fn(&super::TurnTimes) -> f64| {
            m.turns.iter().map(move |t| ((t.before + t.new) as f64, seconds(t) * 1000.0))
        };
        chart
            .draw_series(LineSeries::new(at(|t| t.kept), style))?
            .label(*subject)
            .legend(move |(x, y)| legend(x, y, i));
        chart.draw_series(DashedLineSeries::new(at(|t| t.again), 8, 5, style))?;
    }
    chart.configure_series_labels().position(SeriesLabelPosition::UpperLeft).background_style(WHITE).draw()?;
    Ok(())
}

fn legend(x: i32, y: i32, series: usize) -> plotters::element::PathElement<(i32, i32)> {
    plotters::element::PathElement::new([(x, y), (x + 20, y)], COLOURS[series % COLOURS.len()].stroke_width(2))
}
