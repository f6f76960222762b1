//! The report's chart: one group of bars per size.

use super::report::Report;
use crate::failure::{Failure, Result};
use plotters::prelude::*;
use std::path::Path;

/// Width and height, in pixels.
const CANVAS: (u32, u32) = (960, 480);
/// Colours of the drills, in the order in which they first appear.
const COLOURS: [RGBColor; 5] = [
    RGBColor(31, 119, 180),
    RGBColor(160, 160, 160),
    RGBColor(44, 160, 44),
    RGBColor(214, 39, 40),
    RGBColor(255, 127, 14),
];

/// Draws the report's bars into an SVG file.
pub(super) fn write(report: &Report, path: &Path) -> Result<()> {
    draw(report, path).map_err(|error| Failure::unexpected(format!("{}: {error}", path.display())))
}

fn draw(report: &Report, path: &Path) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut names: Vec<&'static str> = Vec::new();
    for (name, _) in report.sizes.iter().flat_map(|size| size.bars()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let seconds_max = report
        .sizes
        .iter()
        .flat_map(|size| size.bars())
        .map(|(_, seconds)| seconds)
        .fold(1.0, f64::max);
    // A group has one place more than bars: the gap to the next.
    let places = names.len() + 1;
    let root = SVGBackend::new(path, CANVAS).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption("Seconds until rows can be used again", ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(32)
        .y_label_area_size(48)
        .build_cartesian_2d(
            0.0..(report.sizes.len() * places) as f64,
            0.0..seconds_max * 1.1,
        )?;
    let group = |x: &f64| {
        let size = report.sizes.get((*x as usize) / places);
        size.map_or_else(String::new, |size| {
            format!("{} MB", size.mot_bytes / 1_000_000)
        })
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(report.sizes.len().max(1))
        .x_label_formatter(&group)
        .y_desc("seconds")
        .draw()?;
    for (number, name) in names.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let bars = report.sizes.iter().enumerate().filter_map(|(at, size)| {
            let (_, seconds) = size.bars().into_iter().find(|(of, _)| of == name)?;
            let left = (at * places + number) as f64;
            Some(Rectangle::new(
                [(left + 0.1, 0.0), (left + 0.9, seconds)],
                colour.filled(),
            ))
        });
        chart
            .draw_series(bars)?
            .label(*name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 10, y + 5)], colour.filled()));
    }
    chart
        .configure_series_labels()
        .border_style(BLACK)
        .background_style(WHITE.mix(0.8))
        .position(SeriesLabelPosition::UpperLeft)
        .draw()?;
    root.present()?;
    Ok(())
}
