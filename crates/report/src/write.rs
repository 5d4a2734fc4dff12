//! The files of a report.

use crate::ReportError;
use crate::chart::{Embed, chart};
use crate::csv;
use crate::gather::figures_of;
use crate::json::write_json;
use crate::page::page_of;
use crate::pictures::drawn;
use crate::report::Report;
use crate::summary::Digest;
use std::collections::BTreeSet;
use std::fs::{File, create_dir_all};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes every file of `report` into `directory`, which is made if it is missing, and returns their
/// names: the CSV files, `run.json`, one SVG for each figure, and `index.html`.
///
/// # Errors
/// [`ReportError::Twice`] and [`ReportError::Figure`] before anything is written;
/// [`ReportError::Write`] if a file cannot be written.
pub fn write(directory: &Path, report: &Report) -> Result<Vec<PathBuf>, ReportError> {
    report.check()?;
    let digest = Digest::of(report);
    let figures = figures_of(&digest);
    let mut names = BTreeSet::new();
    if let Some(twice) =
        figures.iter().map(|figure| figure.slug()).find(|n| !names.insert(n.clone()))
    {
        return Err(ReportError::Figure(twice));
    }
    let at = |path: &Path| {
        let path = path.to_path_buf();
        |cause| ReportError::Write { path, cause }
    };
    create_dir_all(directory).map_err(at(directory))?;
    let mut written = Vec::new();
    let mut put = |name: &str, fill: &dyn Fn(&mut dyn Write) -> io::Result<()>| {
        let path = directory.join(name);
        fill_file(&path, fill).map_err(at(&path))?;
        written.push(path);
        Ok::<(), ReportError>(())
    };
    for file in csv::files() {
        put(file.name, &|out| (file.write)(&digest, out))?;
    }
    for section in &report.sections {
        put(&format!("{}.csv", section.name), &|out| section.csv(out))?;
    }
    put("run.json", &|out| write_json(&digest, out))?;
    for figure in &figures {
        let svg = chart(figure, Embed::File);
        put(&format!("{}.svg", figure.slug()), &|out| out.write_all(svg.as_bytes()))?;
    }
    for (name, picture) in drawn(report) {
        put(&format!("{name}.svg"), &|out| out.write_all(picture.svg.as_bytes()))?;
        put(&format!("{name}.trace.json"), &|out| out.write_all(picture.trace.as_bytes()))?;
    }
    put("index.html", &|out| out.write_all(page_of(&digest, &figures).as_bytes()))?;
    Ok(written)
}

fn fill_file(path: &Path, fill: &dyn Fn(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    fill(&mut out)?;
    out.flush()
}
