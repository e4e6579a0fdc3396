//! Plots as SVG: lines over an axis, and bars beside each other.
//!
//! Colours come from the page's style sheet (`c0`, `c1`, …), so that plots follow light and dark. Values are told by
//! `<title>`, which browsers show where the pointer rests; there is no script.

use std::fmt::Write as _;

use super::axis::Axis;
use super::escape;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 44.0;

/// Colours of the style sheet; further lines begin again.
pub(super) const COLORS: usize = 6;

#[derive(Debug, Clone)]
pub(super) struct PlotLine {
    pub(super) points: Vec<(f64, f64)>,
}

/// A stretch of the horizontal axis with what it says where the pointer rests.
#[derive(Debug, Clone)]
pub(super) struct Hover {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) text: String,
}

/// Lines in the order of their colours. Writing to a string cannot fail, so results of `write!` are dropped here.
pub(super) fn lines(title: &str, x: &Axis, y: &Axis, lines: &[PlotLine], hovers: &[Hover]) -> String {
    let mut svg = open(title, HEIGHT);
    let across = |amount: f64| LEFT + x.place(amount) * (WIDTH - LEFT - RIGHT);
    let up = |amount: f64| HEIGHT - BOTTOM - y.place(amount) * (HEIGHT - TOP - BOTTOM);
    for (amount, word) in &y.ticks {
        let place = up(*amount);
        let _ = write!(svg, r#"<path class="grid" d="M{LEFT} {place:.1}H{:.1}"/>"#, WIDTH - RIGHT);
        text(&mut svg, "end", LEFT - 8.0, place + 4.0, word);
    }
    for (amount, word) in &x.ticks {
        let place = across(*amount);
        let _ = write!(svg, r#"<path class="grid" d="M{place:.1} {TOP}V{:.1}"/>"#, HEIGHT - BOTTOM);
        text(&mut svg, "middle", place, HEIGHT - BOTTOM + 16.0, word);
    }
    text(&mut svg, "middle", (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 8.0, x.label);
    let middle = (TOP + HEIGHT - BOTTOM) / 2.0;
    let _ = write!(
        svg,
        r#"<text class="tick" text-anchor="middle" transform="translate(12 {middle:.1}) rotate(-90)">{}</text>"#,
        escape(y.label)
    );
    for (position, line) in lines.iter().enumerate() {
        let _ = write!(svg, r#"<path class="line c{}" d=""#, position % COLORS);
        for (number, (amount, value)) in line.points.iter().enumerate() {
            let command = if number == 0 { 'M' } else { 'L' };
            let _ = write!(svg, "{command}{:.1} {:.1}", across(*amount), up(*value));
        }
        svg.push_str(r#""/>"#);
    }
    for hover in hovers {
        let (from, to) = (across(hover.from), across(hover.to));
        let _ = write!(
            svg,
            r#"<rect class="hover" x="{from:.1}" y="{TOP}" width="{:.1}" height="{:.1}"><title>{}</title></rect>"#,
            (to - from).max(0.5),
            HEIGHT - TOP - BOTTOM,
            escape(&hover.text)
        );
    }
    svg.push_str("</svg>");
    svg
}

/// A name with one value for each run.
#[derive(Debug, Clone)]
pub(super) struct BarGroup {
    pub(super) name: String,
    pub(super) values: Vec<f64>,
}

/// Bars from left to right, one row of them for each name, with their values in words.
pub(super) fn bars(title: &str, groups: &[BarGroup], word: impl Fn(f64) -> String) -> String {
    const BAR: f64 = 11.0;
    const BETWEEN: f64 = 10.0;
    const VALUE_WIDTH: f64 = 64.0;
    let longest = groups.iter().map(|group| group.name.chars().count()).max().unwrap_or(0);
    let left = (longest as f64 * 6.6 + 14.0).clamp(LEFT, WIDTH / 3.0);
    let runs = groups.iter().map(|group| group.values.len()).max().unwrap_or(0);
    let row = runs as f64 * BAR + BETWEEN;
    let height = groups.len() as f64 * row + 8.0;
    let most = groups.iter().flat_map(|group| &group.values).fold(0.0_f64, |most, value| most.max(*value));
    let scale = if most > 0.0 { (WIDTH - left - VALUE_WIDTH) / most } else { 0.0 };
    let mut svg = open(title, height);
    for (position, group) in groups.iter().enumerate() {
        let top = position as f64 * row + 4.0;
        text(&mut svg, "end", left - 8.0, top + (row - BETWEEN) / 2.0 + 4.0, &group.name);
        for (number, value) in group.values.iter().enumerate() {
            let place = top + number as f64 * BAR;
            let width = (value * scale).max(1.0);
            let told = word(*value);
            let _ = write!(
                svg,
                r#"<rect class="bar c{}" x="{left}" y="{place:.1}" width="{width:.1}" height="{}" rx="1.5"><title>{}: {told}</title></rect>"#,
                number % COLORS,
                BAR - 2.0,
                escape(&group.name),
            );
            let _ = write!(
                svg,
                r#"<text class="value" x="{:.1}" y="{:.1}">{told}</text>"#,
                left + width + 5.0,
                place + BAR - 2.5
            );
        }
    }
    svg.push_str("</svg>");
    svg
}

fn open(title: &str, height: f64) -> String {
    let title = escape(title);
    format!(r#"<svg viewBox="0 0 {WIDTH} {height:.0}" role="img" aria-label="{title}">"#)
}

fn text(svg: &mut String, anchor: &str, x: f64, y: f64, words: &str) {
    let words = escape(words);
    let _ = write!(svg, r#"<text class="tick" text-anchor="{anchor}" x="{x:.1}" y="{y:.1}">{words}</text>"#);
}
