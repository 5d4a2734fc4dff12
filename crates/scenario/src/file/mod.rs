//! The scenario file: TOML text to checked scenarios, one for each cell of its grid.

mod checks;
mod clusters;
mod error;
mod grid;
mod hosts;
mod json_schema;
mod keys;
mod links;
mod listed;
mod media;
mod parse;
mod reader;
mod schema;
mod tables;
mod traffic;
mod transport;
mod tree;

pub use error::ScenarioError;

use crate::{Files, Folder, Interface, NodeCosts, Processor, Scenario, Transport};
use error::Wrong;
use grid::Cell;
use hosts::Named;
use reader::Reader;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::Path;
use tables::FILE;
use tree::Node;
use trunkline_core::{Recent, Seed};
use trunkline_measure::Keep;
use trunkline_path::LinkSpec;

impl Scenario {
    /// Reads a scenario file: one scenario for each cell of its grid, the first axis slowest.
    ///
    /// # Errors
    /// If the file cannot be read, and as [`Scenario::parse`].
    pub fn read(path: impl AsRef<Path>) -> Result<Vec<Scenario>, ScenarioError> {
        Scenario::read_with_text(path).map(|(scenarios, _)| scenarios)
    }

    /// As [`Scenario::read`], with the file's text, so that a report can keep what was run.
    ///
    /// # Errors
    /// As [`Scenario::read`].
    pub fn read_with_text(
        path: impl AsRef<Path>,
    ) -> Result<(Vec<Scenario>, String), ScenarioError> {
        let path = path.as_ref();
        let file = match path.as_os_str() == STANDARD_INPUT {
            true => "standard-input".to_string(),
            false => path.display().to_string(),
        };
        let text = contents(path).map_err(|cause| ScenarioError::Unreadable {
            file: error::one_line(&file),
            cause: error::one_line(&cause.to_string()),
        })?;
        Ok((Scenario::parse(&text, &file)?, text))
    }

    /// The scenarios that a text describes: one for each cell of its grid, the first axis slowest.
    /// `file` is named in complaints; its stem is the scenario's name if the text gives none, and
    /// the files that the text names (traces, schedules) are looked for beside it.
    ///
    /// # Errors
    /// The first thing that is wrong: one line with file, line, key, what was found, and what is allowed.
    pub fn parse(text: &str, file: &str) -> Result<Vec<Scenario>, ScenarioError> {
        let folder = Path::new(file).parent().unwrap_or(Path::new(""));
        Scenario::parse_with(text, file, &Folder(folder))
    }

    /// As [`Scenario::parse`], with the files that the text names from `files`.
    ///
    /// # Errors
    /// As [`Scenario::parse`].
    pub fn parse_with(
        text: &str,
        file: &str,
        files: &dyn Files,
    ) -> Result<Vec<Scenario>, ScenarioError> {
        scenarios(text, Path::new(file), files).map_err(|wrong| wrong.of(file, text))
    }
}

/// Longest text that is read from what is no regular file, in bytes: it may have no end.
const LONGEST_STREAM: usize = 1 << 20;

/// What a file holds, at most a little more than is accepted.
fn contents(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    if path.is_dir() {
        return Err(std::io::Error::other(directory(path)));
    }
    let file = match path.as_os_str() == STANDARD_INPUT {
        true => std::fs::File::from(std::io::stdin().as_fd().try_clone_to_owned()?),
        false => std::fs::File::open(path)?,
    };
    let most = if file.metadata()?.is_file() { parse::LONGEST } else { LONGEST_STREAM };
    file.take(most as u64 + 1).read_to_string(&mut text)?;
    // A run keeps its text.
    text.shrink_to_fit();
    match text.len() > most && most == LONGEST_STREAM {
        true => Err(std::io::Error::other(format!(
            "it is no file and longer than {most} bytes: write it to a file"
        ))),
        false => Ok(text),
    }
}

/// The path that stands for standard input, as with other programs.
const STANDARD_INPUT: &str = "-";
/// Files of a directory that are named where one of them has to be chosen.
const MOST_NAMED: usize = 6;

/// What to name instead of a directory.
fn directory(path: &Path) -> String {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let names = entries
        .map(|entry| entry.path())
        .filter(|it| it.extension().is_some_and(|it| it == "toml"));
    let mut names: Vec<String> = names.map(|it| it.display().to_string()).collect();
    names.sort();
    let (count, first) = (names.len(), names.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>());
    match count {
        0 => "it is a directory, and holds no file that ends in .toml".into(),
        _ if count > MOST_NAMED => {
            format!(
                "it is a directory of {count} files that end in .toml, such as {}",
                first.join(", ")
            )
        }
        _ => format!("it is a directory with {}", first.join(", ")),
    }
}

fn scenarios(text: &str, file: &Path, files: &dyn Files) -> Result<Vec<Scenario>, Wrong> {
    let mut root = parse::parse(text)?;
    keys::check(&mut root)?;
    let mut scenarios = Vec::new();
    grid::cells(&root, &mut |tree, cell| {
        scenarios.push(scenario(tree, cell, file, files)?);
        Ok(())
    })?;
    Ok(scenarios)
}

/// The elements of one cell as they stand in the file, for checks across them.
#[derive(Debug)]
struct Elements<'a> {
    file: Reader<'a>,
    hosts: Vec<Reader<'a>>,
    nodes: Vec<Reader<'a>>,
    links: Vec<Reader<'a>>,
    media: Vec<Reader<'a>>,
    traffic: Vec<Reader<'a>>,
    clusters: Vec<Reader<'a>>,
}

impl<'a> Elements<'a> {
    fn of(root: &'a Node) -> Elements<'a> {
        let file = Reader::new(String::new(), root, &FILE);
        let elements = |key: &str| {
            let path = |table: Reader<'a>| table.renamed(|node| keys::element(key, node));
            file.tables(key).into_iter().map(path).collect()
        };
        let (hosts, nodes) = (elements("host"), elements("node"));
        let (links, media) = (elements("link"), elements("medium"));
        let (traffic, clusters) = (elements("traffic"), elements("cluster"));
        Elements { file, hosts, nodes, links, media, traffic, clusters }
    }
}

/// What elements of a file that are described alike share: there may be many.
#[derive(Debug, Default)]
struct Alike {
    processors: Recent<Processor>,
    interfaces: Recent<Interface>,
    links: Recent<LinkSpec>,
    transports: Recent<Transport>,
}

/// The scenario of one cell, its grid resolved.
fn scenario(root: &Node, cell: &Cell, file: &Path, files: &dyn Files) -> Result<Scenario, Wrong> {
    let elements = Elements::of(root);
    let top = &elements.file;
    let modules = top.named("module");
    modules.iter().try_for_each(|(_, module)| links::module(module, files))?;
    checks::names(&elements)?;
    let (processors, interfaces, costs) = (processors(top)?, interfaces(top)?, costs(top)?);
    let mut alike = Alike::default();
    let scenario = Scenario {
        name: top.text("name")?.unwrap_or_else(|| stem(file)),
        about: top.text("about")?.unwrap_or_default(),
        seed: Seed(top.whole("seed")?),
        cell: cell.clone(),
        hosts: (elements.hosts.iter())
            .map(|table| hosts::host(table, &processors, &interfaces, &mut alike))
            .collect::<Result<_, _>>()?,
        nodes: elements.nodes.iter().map(hosts::node).collect::<Result<_, _>>()?,
        links: (elements.links.iter())
            .map(|table| links::link(table, &modules, files, &mut alike))
            .collect::<Result<_, _>>()?,
        media: (elements.media.iter().map(|table| media::medium(table, files)))
            .collect::<Result<_, _>>()?,
        traffic: (elements.traffic.iter())
            .map(|table| traffic::traffic(table, &mut alike))
            .collect::<Result<_, _>>()?,
        clusters: (elements.clusters.iter().map(|table| clusters::cluster(table, &costs, files)))
            .collect::<Result<_, _>>()?,
        stop_after: top.span("stop_after")?,
        sample_backlog: top.optional_span("sample_backlog")?,
        samples: keep(top)?,
        mtu: top.bytes("mtu")?,
    };
    checks::check(&scenario, &elements)?;
    Ok(scenario)
}

/// How many samples are kept.
fn keep(top: &Reader<'_>) -> Result<Keep, Wrong> {
    let number = top.word_or("samples", reader::whole)?;
    let all = || top.node("samples").and_then(Node::text) == Some("all");
    Ok(match number.map(u32::try_from) {
        Some(most) => Keep::AtMost(most.unwrap_or(u32::MAX)),
        None if all() => Keep::All,
        None => Keep::AtMost(0),
    })
}

fn stem(file: &Path) -> String {
    file.file_stem().map_or("scenario".into(), |stem| stem.to_string_lossy().into_owned())
}

fn processors(top: &Reader<'_>) -> Result<Named<Processor>, Wrong> {
    let read = |(name, table): (String, Reader<'_>)| Ok((name, hosts::processor(&table)?));
    top.named("processor").into_iter().map(read).collect()
}

fn costs(top: &Reader<'_>) -> Result<Named<NodeCosts>, Wrong> {
    let read = |(name, table): (String, Reader<'_>)| Ok((name, clusters::costs(&table)?));
    top.named("costs").into_iter().map(read).collect()
}

fn interfaces(top: &Reader<'_>) -> Result<Named<Interface>, Wrong> {
    let read = |(name, table): (String, Reader<'_>)| {
        let interface = hosts::interface(&name, &table)?;
        Ok((name, interface))
    };
    top.named("interface").into_iter().map(read).collect()
}
