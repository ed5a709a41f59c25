//! Medians with their spread, as a table and as JSON.

use crate::server::Contender;
use std::fmt::Write;

/// All samples of one measurement.
pub struct Row {
    name: String,
    unit: &'static str,
    /// Per server, one value per round. Smaller is better.
    pub values: Vec<Vec<f64>>,
    /// Per server, requests per second in each round; empty where that is not measured.
    pub throughput: Vec<Vec<f64>>,
}

impl Row {
    /// No samples yet of so many servers.
    pub fn new(name: &str, unit: &'static str, servers: usize) -> Self {
        Self { name: name.to_owned(), unit, values: vec![Vec::new(); servers], throughput: vec![Vec::new(); servers] }
    }
}

/// The median of some values, the smallest and the largest.
struct Spread {
    median: f64,
    smallest: f64,
    largest: f64,
}

impl Spread {
    fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 { at(middle) } else { (at(middle.wrapping_sub(1)) + at(middle)) / 2.0 };
        Self { median, smallest: at(0), largest: at(sorted.len().wrapping_sub(1)) }
    }

    fn json(&self) -> String {
        let number = |value: f64| if value.is_finite() { format!("{value:.5}") } else { "null".to_owned() };
        format!(
            "{{\"median\": {}, \"smallest\": {}, \"largest\": {}}}",
            number(self.median),
            number(self.smallest),
            number(self.largest)
        )
    }
}

/// Everything measured.
pub struct Report {
    servers: Vec<String>,
    reference: usize,
    rows: Vec<Row>,
}

impl Report {
    /// Nothing measured yet.
    pub fn new(contenders: &[Contender], reference: usize) -> Self {
        Self {
            servers: contenders.iter().map(|contender| contender.name.clone()).collect(),
            reference,
            rows: Vec::new(),
        }
    }

    /// Adds a row and prints it as a part of the table.
    pub fn add_and_print(&mut self, row: Row) {
        if self.rows.is_empty() {
            println!(
                "\n{:28} {:12} {:>9} {:>22} {:>12}  {:>5} {:>14}",
                "workload, unit", "server", "median", "(least to most)", "requests/s", "ratio", "(least to most)"
            );
        }
        // On a terminal the progress line stands here.
        print!("{}", if std::io::IsTerminal::is_terminal(&std::io::stdout()) { "\r\x1b[K" } else { "" });
        println!("{}, {}", row.name, row.unit);
        for (index, server) in self.servers.iter().enumerate() {
            let value = Spread::of(&row.values[index]);
            let ratio = Spread::of(&self.ratios(&row, index));
            let rate = Spread::of(&row.throughput[index]).median;
            println!(
                "{:28} {server:12} {:>9.3} {:>22} {:>12}  {:>5.2} {:>14}",
                "",
                value.median,
                format!("({:.3} to {:.3})", value.smallest, value.largest),
                if rate.is_nan() { String::new() } else { format!("{rate:.0}") },
                ratio.median,
                if index == self.reference {
                    String::new()
                } else {
                    format!("({:.2} to {:.2})", ratio.smallest, ratio.largest)
                },
            );
        }
        self.rows.push(row);
    }

    /// The ratios of one server to the reference, round by round.
    fn ratios(&self, row: &Row, index: usize) -> Vec<f64> {
        row.values[index].iter().zip(&row.values[self.reference]).map(|(one, reference)| one / reference).collect()
    }

    /// All rows as JSON: an array of objects, one per workload and server. Names here need no escapes.
    pub fn json(&self) -> String {
        let mut objects = Vec::new();
        for row in &self.rows {
            for (index, server) in self.servers.iter().enumerate() {
                let mut object = String::new();
                let _ = write!(
                    object,
                    "  {{\"workload\": \"{}\", \"server\": \"{server}\", \"unit\": \"{}\", \"samples\": {}, \"value\": {}, \"requests_per_second\": {}, \"reference\": \"{}\", \"ratio\": {}}}",
                    row.name,
                    row.unit,
                    row.values[index].len(),
                    Spread::of(&row.values[index]).json(),
                    Spread::of(&row.throughput[index]).json(),
                    self.servers[self.reference],
                    Spread::of(&self.ratios(row, index)).json(),
                );
                objects.push(object);
            }
        }
        format!("[\n{}\n]\n", objects.join(",\n"))
    }
}
