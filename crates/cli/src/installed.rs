//! What is installed beside the command: completions, manual pages, the schema of scenario files.

use crate::failure::Failure;
use crate::output;
use clap::Command;
use clap_complete::Shell;
use std::path::PathBuf;
use trunkline_scenario::Scenario;

const NAME: &str = "trunkline";

/// Print a shell's completion script for this command.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  trunkline completions bash > /etc/bash_completion.d/trunkline
  trunkline completions zsh > /usr/share/zsh/site-functions/_trunkline")]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Prints the completions.
pub fn completions(args: &CompletionsArgs, mut command: Command) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, NAME, &mut text);
    output::stream(|out| out.write_all(&text))
}

/// Print the manual page, or write those of all verbs into a directory.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  trunkline man > trunkline.1
  trunkline man --out man1")]
pub struct ManArgs {
    /// Write a page for each verb into DIR, which is made if it is not there
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints or writes manual pages.
pub fn man(args: &ManArgs, command: Command) -> Result<(), Failure> {
    let Some(directory) = &args.out else {
        let mut text = Vec::new();
        clap_mangen::Man::new(command).render(&mut text)?;
        return output::stream(|out| out.write_all(&text));
    };
    let fail = |error| Failure::failed(format!("cannot write {}: {error}", directory.display()));
    std::fs::create_dir_all(directory).map_err(fail)?;
    clap_mangen::generate_to(command, directory).map_err(fail)
}

/// Print the JSON Schema of scenario files.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  trunkline schema > trunkline.schema.json

then, as the first line of a file: #:schema trunkline.schema.json")]
pub struct SchemaArgs {}

/// Prints the schema.
pub fn schema() -> Result<(), Failure> {
    output::line(&Scenario::json_schema())
}
