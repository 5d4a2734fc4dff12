//! Every command that the documents and the help texts show is one that the command line takes.

use crate::{Cli, Verb};
use clap::{CommandFactory, Parser};
use std::fs;
use std::path::Path;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A command line and its place in the pages.
struct Shown {
    place: String,
    text: String,
}

/// The lines of the fenced blocks of a page that begin with a command of ours, continued lines joined.
fn in_blocks(name: &str, page: &str) -> Vec<Shown> {
    let mut found: Vec<Shown> = Vec::new();
    let (mut inside, mut goes_on) = (false, false);
    for (line, number) in page.lines().zip(1..) {
        if line.starts_with("```") {
            (inside, goes_on) = (!inside, false);
            continue;
        }
        let text = line.strip_prefix("$ ").or_else(|| line.strip_prefix("# ")).unwrap_or(line);
        let begins =
            ["trunkline ", "target/release/trunkline "].iter().any(|it| text.starts_with(it));
        if inside && goes_on {
            let last = found.last_mut().unwrap();
            last.text = format!("{} {}", last.text.trim_end_matches('\\'), text.trim());
        } else if inside && begins {
            found.push(Shown { place: format!("{name}:{number}"), text: text.into() });
        }
        goes_on = inside && (begins || goes_on) && line.ends_with('\\');
    }
    found
}

fn pages() -> Vec<Shown> {
    let docs = fs::read_dir(Path::new(ROOT).join("docs")).unwrap();
    let mut paths: Vec<_> = docs.map(|entry| entry.unwrap().path()).collect();
    paths.push(Path::new(ROOT).join("README.md"));
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    paths.sort();
    let of = |path: &std::path::PathBuf| {
        in_blocks(&path.display().to_string(), &fs::read_to_string(path).unwrap())
    };
    paths.iter().flat_map(of).collect()
}

/// The examples at the end of a verb's help, and of those below it.
fn in_help(command: &clap::Command) -> Vec<Shown> {
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let plain: String = text.lines().map(|line| format!("{}\n", line.trim_start())).collect();
    let mut found =
        in_blocks(&format!("help of {}", command.get_name()), &format!("```\n{plain}```"));
    found.extend(command.get_subcommands().flat_map(in_help));
    found
}

/// Each verb with its name, and those below it.
fn all(command: &clap::Command, name: &str) -> Vec<(String, clap::Command)> {
    let name = format!("{name} {}", command.get_name());
    let below = command.get_subcommands().flat_map(|one| all(one, &name)).collect::<Vec<_>>();
    [(name.clone(), command.clone())].into_iter().chain(below).collect()
}

/// On a terminal of 80 columns, and where there is none, as behind a pipe. A line that is wrapped cannot be copied.
#[test]
fn help_fits_eighty_columns() {
    let mut whole = Cli::command();
    whole.build();
    for (name, mut command) in all(&whole, "") {
        for help in [command.render_help(), command.render_long_help()] {
            let text = help.to_string();
            let wide = text.lines().filter(|line| line.chars().count() > 80);
            assert_eq!(wide.collect::<Vec<_>>(), Vec::<&str>::new(), "{name}");
        }
        let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let long = examples.lines().filter(|line| line.chars().count() > 80);
        assert_eq!(long.collect::<Vec<_>>(), Vec::<&str>::new(), "{name}");
    }
}

/// The words of a line as a shell reads them, up to a comment, a pipe, or the next command.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote): (Vec<String>, Option<String>, Option<char>) =
        (Vec::new(), None, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                word.get_or_insert_default();
                quote = Some(c);
            }
            (None, ';' | '|' | '>') => break,
            (None, '#') if word.is_none() => break,
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Takes the command line apart as `main` does, settings of paths and names of files included, and the commands
/// that it hands on.
fn check(line: &str) -> Result<(), String> {
    let words = words(line);
    let cli = Cli::try_parse_from(&words).map_err(|error| error.to_string())?;
    let path = match &cli.verb {
        Verb::Shell(args) => Some(&args.path),
        Verb::Bridge(args) => Some(&args.path),
        Verb::Verify(args) => Some(&args.path),
        _ => None,
    };
    // A recording is made by the line before.
    let path = path.filter(|_| !words.iter().any(|word| word.ends_with(".trace")));
    path.map_or(Ok(()), |path| path.resolve().map(|_| ()))
        .map_err(|error| error.message().to_string())?;
    for word in &words[1..] {
        if word.starts_with("examples/") && !Path::new(ROOT).join(word).exists() {
            return Err(format!("there is no {word}"));
        }
        if let Some(at) = word.find("trunkline ") {
            check(&word[at..])?;
        }
    }
    Ok(())
}

#[test]
fn every_command_shown_is_one_that_the_command_line_takes() {
    let (pages, helps) = (pages(), in_help(&Cli::command()));
    assert!(pages.len() > 50 && helps.len() > 25, "{} and {} commands", pages.len(), helps.len());
    let wrong: Vec<String> = (pages.iter().chain(&helps))
        .filter_map(|shown| {
            let error = check(&shown.text).err()?;
            Some(format!("{}: {}: {error}", shown.place, shown.text))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn commands_that_are_not_taken_are_found() {
    for wrong in [
        "trunkline shell --dealy 50ms -- true",
        "trunkline shell --delay 50 -- true",
        "trunkline bridge eth1 --delay 50ms",
        "trunkline set --after 5s",
        "trunkline run examples/none.toml",
        "trunkline shell --peer 'trunkline serv' -- true",
        "trunkline shell -- sh -c 'sleep 1; trunkline probe rrt {peer}'",
        "trunkline nothing",
    ] {
        assert!(check(wrong).is_err(), "{wrong}");
    }
    let page = "```console\n$ trunkline show \\\n    --watch   # for ever\n# trunkline presets\n```\ntrunkline x";
    let shown: Vec<String> = in_blocks("p", page).into_iter().map(|it| it.text).collect();
    assert_eq!(shown, ["trunkline show  --watch   # for ever", "trunkline presets"]);
    assert_eq!(words(&shown[0]), ["trunkline", "show", "--watch"]);
    assert_eq!(words("a 'b c' d\"e f\" #g"), ["a", "b c", "de f"]);
}

/// The links of a page to other files and to headings.
fn links(page: &str) -> Vec<String> {
    let ends = page.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let local = ends.map(|(link, _)| link).filter(|link| !link.contains("://"));
    local.map(str::to_owned).collect()
}

/// A heading as a forge makes an anchor of it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().chars();
    let kept = kept.filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn every_link_leads_somewhere() {
    let root = Path::new(ROOT);
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.chain(["README.md", "CONTRIBUTING.md"].map(|name| root.join(name)));
    let mut checked = 0;
    for page in pages.filter(|path| path.extension().is_some_and(|ending| ending == "md")) {
        for link in links(&fs::read_to_string(&page).unwrap()) {
            let (file, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target = match file {
                "" => page.clone(),
                file => page.parent().unwrap().join(file),
            };
            assert!(target.exists(), "{}: there is no {link}", page.display());
            if !heading.is_empty() {
                let text = fs::read_to_string(&target).unwrap();
                let mut headings = text.lines().filter(|line| line.starts_with('#')).map(anchor);
                assert!(headings.any(|it| it == heading), "{}: no {link}", page.display());
            }
            checked += 1;
        }
    }
    assert!(checked > 100, "{checked} links");
}

/// The site is made of `docs/`: each page is in its table of contents, and none leads out of it.
#[test]
fn the_site_has_every_page_of_docs() {
    let docs = Path::new(ROOT).join("docs");
    let contents = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let listed = links(&contents);
    let files = fs::read_dir(&docs).unwrap().map(|entry| entry.unwrap().path());
    let pages = files.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    for page in pages.filter(|path| !path.ends_with("SUMMARY.md")) {
        let name = page.file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(listed.iter().filter(|link| **link == name).count(), 1, "{name} in SUMMARY.md");
        let out = links(&fs::read_to_string(&page).unwrap());
        assert!(out.iter().all(|link| !link.starts_with("../")), "{name} leads out of the site");
    }
}
