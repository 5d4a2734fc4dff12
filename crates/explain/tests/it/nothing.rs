//! Traffic of which nothing arrives: what would let it through is looked for all the same.

use trunkline_explain::{Binding, Constraint, Explanation, explain, text};
use trunkline_scenario::Scenario;
use trunkline_sim::Simulator;

fn explained(link: &str, traffic: &str) -> Explanation {
    let text = format!(
        "stop_after = '25s'\n[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n\
         [[link]]\nname = 'line'\nbetween = ['a', 'b']\nrate = '560kbit/s'\ndelay = '25ms'\n{link}\n\
         [[traffic]]\nname = 'it'\nfrom = 'a'\nto = 'b'\n{traffic}\n"
    );
    let scenario = Scenario::parse(&text, "nothing.toml").expect("a scenario").remove(0);
    explain(&scenario, &Simulator).expect("an explanation")
}

const WHOLE_BLOCKS: &str = "kind = 'greedy'\nduration = '20s'\nwrite = 924\n\
    transport = { kind = 'urp', block = 924, outstanding = 7 }";

/// The queue takes a packet out of each block, and a block that lacks one is none: URP sends all again, for ever.
#[test]
fn a_queue_that_lets_no_block_through_whole_is_named() {
    let explanation = explained("discipline = 'fq-codel'\nlimit = '4000B'", WHOLE_BLOCKS);
    let told = text(&explanation);
    let group = &explanation.traffic[0].groups[0];
    assert_eq!(group.figure().bytes_per_second, 0.0, "{told}");
    assert_eq!(group.binds, Binding::One(Constraint::QueueLimit), "{told}");
    let buffer = group.relaxing(Constraint::QueueLimit).expect("relaxed");
    assert!(buffer.saved == 1.0 && buffer.steps.last().unwrap().figure.bytes_per_second > 6e4);
    assert!(told.contains("it: all of it nothing\n"), "{told}");
    assert!(told.contains("where nothing arrives now"), "{told}");
    assert!(!told.contains("inf") && !told.contains("NaN"), "{told}");
}

/// Nothing passes a line that loses everything, however it is changed but in that.
#[test]
fn a_line_that_loses_everything_is_named() {
    for traffic in [WHOLE_BLOCKS, "kind = 'paced'\nsize = 100\nrate = '16kbit/s'\nduration = '5s'"]
    {
        let explanation = explained("forward = { loss = '100%' }", traffic);
        let told = text(&explanation);
        let group = &explanation.traffic[0].groups[0];
        assert_eq!(group.binds, Binding::One(Constraint::Loss), "{told}");
        assert!(
            group.relaxed.iter().all(|it| it.saved == f64::from(it.constraint == Constraint::Loss))
        );
    }
}

/// The line loses everything, and the queue would let nothing through if it did not.
#[test]
fn two_things_of_which_each_keeps_everything_back_bind_together() {
    let link = "discipline = 'fq-codel'\nlimit = '4000B'\nloss = '100%'";
    let explanation = explained(link, WHOLE_BLOCKS);
    let told = text(&explanation);
    let group = &explanation.traffic[0].groups[0];
    assert_eq!(group.binds, Binding::Two(Constraint::QueueLimit, Constraint::Loss), "{told}");
    assert!(group.relaxed.iter().all(|it| it.saved == 0.0), "{told}");
    assert!(told.contains("loss of line would bring"), "{told}");
    assert!(!told.contains("inf") && !told.contains("NaN"), "{told}");
}
