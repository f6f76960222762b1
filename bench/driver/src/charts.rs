//! The charts: bars for what is compared, lines for what happens over time.

use crate::parts::{endurance, ingest, plpgsql, scan, statements, sysbench, tpcc};
use crate::record::{Curve, Record, Series, quantity};
use crate::report::number;
use crate::side::Side;
use ::tpcc::failure::{Failure, Result};
use plotters::prelude::*;
use std::path::Path;

/// Width and height, in pixels.
const CANVAS: (u32, u32) = (1100, 460);
/// Lines below a group of bars, and the height of one.
const LABEL_LINES: i32 = 4;
const LABEL_HEIGHT: i32 = 14;
/// Bars of the statements chart are those of this many clients.
const STATEMENT_CLIENTS: &str = "8 clients";

/// A chart that was drawn.
pub(crate) struct Chart {
    pub part: &'static str,
    pub file: String,
    pub title: &'static str,
}

/// A bar chart: which series, and what they say.
struct Bars {
    part: &'static str,
    file: &'static str,
    title: &'static str,
    quantity: &'static str,
    takes: fn(&Series) -> bool,
}

const BARS: [Bars; 6] = [
    Bars {
        part: statements::PART,
        file: "statements.svg",
        title: "Prepared statements per second, 8 clients, asynchronous commit",
        quantity: quantity::PER_SECOND,
        takes: |series| {
            series.setting.starts_with(STATEMENT_CLIENTS)
                && !series.setting.ends_with(", synchronous")
        },
    },
    Bars {
        part: plpgsql::PART,
        file: "plpgsql.svg",
        title: "Microseconds for a statement in a PL/pgSQL loop",
        quantity: quantity::MICROSECONDS,
        takes: |_| true,
    },
    Bars {
        part: ingest::PART,
        file: "ingest.svg",
        title: "Rows ingested per second",
        quantity: quantity::ROWS_PER_SECOND,
        takes: |series| !series.setting.ends_with(", synchronous"),
    },
    Bars {
        part: scan::PART,
        file: "scan.svg",
        title: "Milliseconds for a full scan",
        quantity: quantity::MILLISECONDS,
        takes: |_| true,
    },
    Bars {
        part: sysbench::PART,
        file: "sysbench.svg",
        title: "sysbench transactions per second",
        quantity: quantity::PER_SECOND,
        takes: |series| matches!(series.work.as_str(), "oltp_read_only" | "oltp_read_write"),
    },
    Bars {
        part: tpcc::PART,
        file: "tpcc.svg",
        title: "TPC-C transactions per second, synchronous commit",
        quantity: quantity::PER_SECOND,
        takes: |series| !series.setting.ends_with(tpcc::EQUAL_LOAD_SUFFIX),
    },
];

/// Draws every chart that the record has figures for.
pub(crate) fn draw_all(record: &Record, directory: &Path) -> Result<Vec<Chart>> {
    let mut charts = Vec::new();
    for bars in &BARS {
        let series: Vec<&Series> = record
            .series
            .iter()
            .filter(|series| {
                series.part == bars.part && series.quantity == bars.quantity && (bars.takes)(series)
            })
            .collect();
        if series.is_empty() {
            continue;
        }
        let path = directory.join(bars.file);
        draw_bars(bars, &series, &path).map_err(|error| at(&path, &error.to_string()))?;
        charts.push(Chart {
            part: bars.part,
            file: bars.file.to_owned(),
            title: bars.title,
        });
    }
    for (part, work, file, title) in [
        (
            tpcc::PART,
            endurance::WORK,
            "tpcc-seconds.svg",
            "TPC-C by procedures, transactions in each second",
        ),
        (
            endurance::PART,
            endurance::WORK,
            "endurance.svg",
            "TPC-C with checkpoints, transactions in each second",
        ),
        (
            endurance::PART,
            endurance::PER_CPU_SECOND,
            "endurance-processor.svg",
            "The same, for each second of the servers' processor time",
        ),
        (
            endurance::PART,
            endurance::READS,
            "endurance-machine.svg",
            "What the machine gave beside it: a probe's reads of memory in a millisecond of processor time",
        ),
    ] {
        let curves: Vec<&Curve> = record
            .curves
            .iter()
            .filter(|curve| curve.part == part && curve.work == work)
            .collect();
        // The first setting is the one that goals speak of.
        let curves: Vec<&Curve> = curves
            .iter()
            .copied()
            .filter(|curve| curve.setting == curves[0].setting)
            .collect();
        if curves.iter().all(|curve| curve.per_second.len() < 2) {
            continue;
        }
        let path = directory.join(file);
        draw_lines(title, &curves, &path).map_err(|error| at(&path, &error.to_string()))?;
        charts.push(Chart {
            part,
            file: file.to_owned(),
            title,
        });
    }
    Ok(charts)
}

fn at(path: &Path, error: &str) -> Failure {
    Failure::unexpected(format!("{}: {error}", path.display()))
}

fn colour(side: Side) -> RGBColor {
    let (red, green, blue) = side.colour();
    RGBColor(red, green, blue)
}

type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;

fn draw_bars(bars: &Bars, series: &[&Series], path: &Path) -> Drawn {
    let mut groups: Vec<(&str, &str)> = Vec::new();
    let mut sides: Vec<Side> = Vec::new();
    for series in series {
        let group = (series.work.as_str(), series.setting.as_str());
        if !groups.contains(&group) {
            groups.push(group);
        }
        if !sides.contains(&series.side) {
            sides.push(series.side);
        }
    }
    sides.sort();
    // A group has one place more than bars: the gap to the next.
    let places = (sides.len() + 1) as f64;
    let top = series
        .iter()
        .map(|series| series.median)
        .fold(0.0, f64::max)
        * 1.15;
    let same_setting = groups.iter().all(|(_, setting)| *setting == groups[0].1);
    let root = SVGBackend::new(path, CANVAS).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(bars.title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(LABEL_LINES * LABEL_HEIGHT)
        .y_label_area_size(72)
        .build_cartesian_2d(
            0.0..groups.len() as f64 * places,
            0.0..top.max(f64::MIN_POSITIVE),
        )?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .disable_x_axis()
        .max_light_lines(0)
        .y_label_formatter(&|value| number(*value))
        .draw()?;
    for &side in &sides {
        let place = sides.iter().position(|of| *of == side).unwrap_or_default() as f64;
        let shapes = series
            .iter()
            .filter(|series| series.side == side)
            .filter_map(|series| {
                let group = groups.iter().position(|(work, setting)| {
                    (series.work.as_str(), series.setting.as_str()) == (*work, *setting)
                })?;
                let left = group as f64 * places + place;
                Some(Rectangle::new(
                    [(left + 0.05, 0.0), (left + 0.95, series.median)],
                    colour(side).filled(),
                ))
            });
        chart
            .draw_series(shapes)?
            .label(side.to_string())
            .legend(move |(x, y)| {
                Rectangle::new([(x, y - 5), (x + 10, y + 5)], colour(side).filled())
            });
    }
    let (area, labels) = (chart.plotting_area().get_pixel_range(), groups.len() as i32);
    for (number, (work, setting)) in groups.iter().enumerate() {
        let width = (area.0.end - area.0.start) / labels;
        let x = area.0.start + width * number as i32 + width / 2;
        let style = TextStyle::from(("sans-serif", 11).into_font()).pos(
            plotters::style::text_anchor::Pos::new(
                plotters::style::text_anchor::HPos::Center,
                plotters::style::text_anchor::VPos::Top,
            ),
        );
        // A part of the setting under the other, for there may be many groups.
        let parts = setting.split(", ").filter(|_| !same_setting);
        let mut y = area.1.end + LABEL_HEIGHT / 2;
        for line in std::iter::once(*work).chain(parts) {
            root.draw(&Text::new(line.to_owned(), (x, y), style.clone()))?;
            y += LABEL_HEIGHT;
        }
    }
    chart
        .configure_series_labels()
        .border_style(BLACK)
        .background_style(WHITE.mix(0.8))
        .position(SeriesLabelPosition::UpperRight)
        .draw()?;
    root.present()?;
    Ok(())
}

fn draw_lines(title: &str, curves: &[&Curve], path: &Path) -> Drawn {
    let seconds = curves
        .iter()
        .map(|curve| curve.per_second.len())
        .max()
        .unwrap_or(1);
    let top = curves
        .iter()
        .flat_map(|curve| &curve.per_second)
        .copied()
        .max()
        .unwrap_or(1);
    let root = SVGBackend::new(path, CANVAS).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(72)
        .build_cartesian_2d(0..seconds, 0..top + top / 10 + 1)?;
    chart.configure_mesh().x_desc("seconds").draw()?;
    for curve in curves {
        let shade = colour(curve.side);
        let points: Vec<(usize, u64)> = curve.per_second.iter().copied().enumerate().collect();
        let line = PathElement::new(points, shade.stroke_width(1));
        chart
            .draw_series([line])?
            .label(curve.side.to_string())
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 10, y + 5)], shade.filled()));
    }
    chart
        .configure_series_labels()
        .border_style(BLACK)
        .background_style(WHITE.mix(0.8))
        .draw()?;
    root.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Place;

    #[test]
    fn charts_are_drawn_for_what_there_is() {
        let directory =
            std::env::temp_dir().join(format!("mot-bench-charts-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let mut record = Record::default();
        let place = Place::new(statements::PART, "update", "8 clients, asynchronous");
        record.add(&place, Side::Mot, quantity::PER_SECOND, 3000.0);
        record.add(&place, Side::Heap, quantity::PER_SECOND, 1000.0);
        let long = Place::new(
            endurance::PART,
            endurance::WORK,
            "10 warehouses, 10 terminals",
        );
        record.add_curve(&long, Side::Mot, vec![10, 20, 30]);
        let charts = draw_all(&record, &directory).unwrap();
        let files: Vec<&str> = charts.iter().map(|chart| chart.file.as_str()).collect();
        assert_eq!(files, ["statements.svg", "endurance.svg"]);
        let text = std::fs::read_to_string(directory.join("statements.svg")).unwrap();
        assert!(text.contains("<svg") && text.contains("update") && text.contains("MOT"));
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
