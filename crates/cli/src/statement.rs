//! The closing statement of a run, and the exit status that follows from it.

use crate::failure::Failure;
use crate::files;
use crate::options::EmulatorArgs;
use crate::output;
use serde_json::json;
use trunkline_dataplane::Snapshot;
use trunkline_dataplane::accuracy::{Accuracy, Validity};

/// Prints the statement on `snapshot`; an invalid run fails unless best effort was asked for.
pub fn close(snapshot: &Snapshot, args: &EmulatorArgs) -> Result<(), Failure> {
    let accuracy = Accuracy::of(snapshot, args.bound);
    let verdict = accuracy.verdict();
    if args.json || args.report.is_some() {
        let reasons = match &verdict {
            Validity::Valid => Vec::new(),
            Validity::Nothing => vec![accuracy.nothing()],
            Validity::Invalid(reasons) => reasons.clone(),
        };
        let statement = json!({
            "format": 1,
            "verdict": verdict.name(),
            "valid": verdict == Validity::Valid,
            "reasons": reasons,
            "bound": args.bound,
            "state": snapshot,
        });
        let text = format!("{statement}\n");
        files::write(args.report.as_deref(), |out| out.write_all(text.as_bytes()))?;
        if args.json {
            output::line(&statement.to_string())?;
        }
    }
    let is_told = !args.json && (!args.quiet || matches!(verdict, Validity::Invalid(_)));
    if is_told {
        for line in accuracy.to_string().lines() {
            output::tell(line);
        }
    }
    match verdict {
        Validity::Invalid(_) if !args.best_effort => Err(Failure::failed(
            "the run is INVALID, see above; use a quieter machine, --busy, or --best-effort to accept it",
        )),
        _ => Ok(()),
    }
}
