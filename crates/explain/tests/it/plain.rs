//! Plain scenarios, each with one thing in the way.

use trunkline_explain::{Binding, Constraint, Explanation, Options, explain, explain_with, text};
use trunkline_scenario::Scenario;
use trunkline_sim::Simulator;

fn scenario(links: &str, traffic: &str) -> Scenario {
    let hosts = "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[node]]\nname = 'n'\n\
                 [[link]]\nbetween = ['a', 'n']\nrate = '100Mbit/s'\n";
    let file = format!("{hosts}[[link]]\nname = 'trunk'\nbetween = ['n', 'b']\n{links}\n{traffic}");
    Scenario::parse(&file, "plain.toml").expect("a scenario").remove(0)
}

const WIDE: &str = "transport = { kind = 'urp', block = 1024, outstanding = 7 }\n";

fn messages(more: &str) -> String {
    format!(
        "[[traffic]]\nname = 'messages'\nkind = 'interactive'\nfrom = 'a'\nto = 'b'\n{WIDE}{more}\n"
    )
}

fn bulk(more: &str) -> String {
    format!("[[traffic]]\nname = 'bulk'\nkind = 'bulk'\nfrom = 'a'\nto = 'b'\n{more}\n")
}

fn binds(explanation: &Explanation, traffic: &str) -> Binding {
    explanation.traffic(traffic).expect("a traffic").groups[0].binds.clone()
}

#[test]
fn behind_bulk_in_a_fifo_it_is_the_queue() {
    let traffic =
        bulk(&format!("count = 4\nbytes = '1MB'\nrepeat = 1000\nuntil = 'messages'\n{WIDE}"))
            + &messages("sizes = [64]\nrepeat = 300\nstart_after = 'bulk:500kB'");
    let scenario = scenario("rate = '1.5Mbit/s'\ndelay = '1ms'\ndiscipline = 'fifo'", &traffic);
    let explanation = explain(&scenario, &Simulator).unwrap();
    assert_eq!(binds(&explanation, "messages"), Binding::One(Constraint::Queue));
    assert_eq!(binds(&explanation, "bulk"), Binding::One(Constraint::Rate));
    let group = &explanation.traffic("messages").unwrap().groups[0];
    let queue = group.relaxing(Constraint::Queue).unwrap();
    assert_eq!(queue.steps[0].to, "round robin");
    assert!(queue.steps[0].saved > 0.8, "{queue:#?}");
    assert!(queue.steps[1].saved >= queue.steps[0].saved, "{queue:#?}");
    assert!(text(&explanation).contains("The queue binds (fifo, shared with bulk;"));
}

#[test]
fn a_transfer_over_a_slow_trunk_is_bound_by_its_rate() {
    let traffic = bulk(&format!("bytes = '300kB'\n{WIDE}"));
    let explanation =
        explain(&scenario("rate = '64kbit/s'\ndelay = '1ms'", &traffic), &Simulator).unwrap();
    assert_eq!(binds(&explanation, "bulk"), Binding::One(Constraint::Rate));
    let rate = explanation.traffic[0].groups[0].relaxing(Constraint::Rate).unwrap().clone();
    // Twice the rate takes half the time, ten times a tenth.
    assert!((rate.steps[0].saved - 0.5).abs() < 0.02, "{rate:#?}");
    assert!((rate.steps[1].saved - 0.9).abs() < 0.02, "{rate:#?}");
    assert_eq!((rate.place.as_str(), rate.now.as_str()), ("trunk", "64kbit/s"));
}

/// Each of two nearly equal lines hides what the other costs: ten times the rate of one buys 6 % at most.
#[test]
fn lines_nearly_as_slow_as_the_slowest_bind_with_it() {
    let file = "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[node]]\nname = 'n'\n\
                [[link]]\nname = 'access'\nbetween = ['a', 'n']\nrate = '4Mbit/s'\ndelay = '2ms'\n\
                [[link]]\nname = 'trunk'\nbetween = ['n', 'b']\nrate = '3.8Mbit/s'\ndelay = '2ms'\n";
    let file = format!("{file}{}", bulk("bytes = '1MB'\nrepeat = 4"));
    let scenario = Scenario::parse(&file, "plain.toml").expect("a scenario").remove(0);
    let explanation = explain(&scenario, &Simulator).unwrap();
    assert_eq!(binds(&explanation, "bulk"), Binding::One(Constraint::Rate));
    let rate = explanation.traffic[0].groups[0].relaxing(Constraint::Rate).unwrap().clone();
    assert_eq!((rate.place.as_str(), rate.now.as_str()), ("access, trunk", "3.8Mbit/s"));
    assert!(rate.steps[0].saved > 0.4, "{rate:#?}");
}

#[test]
fn over_a_lossy_line_it_is_the_loss() {
    let traffic = bulk(&format!("bytes = '500kB'\n{WIDE}"));
    let link = "rate = '10Mbit/s'\ndelay = '1ms'\nloss = '2%'";
    let explanation = explain(&scenario(link, &traffic), &Simulator).unwrap();
    assert_eq!(binds(&explanation, "bulk"), Binding::One(Constraint::Loss));
    let sender = &explanation.traffic[0].sender;
    assert_eq!(format!("{:?}", sender[0].state), "Recover", "{sender:#?}");
}

#[test]
fn ideal_hosts_far_apart_are_bound_by_distance_and_their_transfers_by_the_window() {
    let traffic = messages("sizes = [1]\nrepeat = 50")
        + &bulk(
            "bytes = '1MB'\nstart_after = 'messages'\ntransport = { kind = 'urp', block = 252, outstanding = 3 }",
        );
    let explanation =
        explain(&scenario("rate = '10Mbit/s'\ndelay = '100ms'", &traffic), &Simulator).unwrap();
    assert_eq!(binds(&explanation, "messages"), Binding::One(Constraint::Distance));
    assert_eq!(binds(&explanation, "bulk"), Binding::One(Constraint::Window));
    let told = text(&explanation).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("nothing can be bought but a shorter path"), "{told}");
    let bulk = &explanation.traffic("bulk").unwrap().groups[0];
    let steps: Vec<&str> =
        bulk.relaxing(Constraint::Window).unwrap().steps.iter().map(|it| it.to.as_str()).collect();
    assert_eq!(steps, ["3072 B", "7168 B", "28672 B"]);
}

#[test]
fn a_window_is_bought_although_the_path_is_long() {
    let traffic = bulk("bytes = '300kB'\ntransport = { kind = 'selective-repeat', frames = 3 }");
    let explanation =
        explain(&scenario("rate = '10Mbit/s'\ndelay = '100ms'", &traffic), &Simulator).unwrap();
    assert_eq!(binds(&explanation, "bulk"), Binding::One(Constraint::Window));
    let told = text(&explanation).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("3 frames of 1024 B"), "{told}");
    assert!(!told.contains("nothing can be bought"), "{told}");
}

#[test]
fn a_pace_is_bound_by_nothing() {
    let traffic = "[[traffic]]\nname = 'paced'\nkind = 'paced'\nfrom = 'a'\nto = 'b'\nsize = 100\n\
                   rate = '10kbit/s'\nduration = '5s'\n";
    let explanation = explain(&scenario("", traffic), &Simulator).unwrap();
    let relaxed = &explanation.traffic[0].groups[0].relaxed;
    assert!(relaxed.iter().all(|it| it.constraint == Constraint::Rate), "{relaxed:#?}");
}

#[test]
fn a_small_queue_that_overflows_is_found() {
    let traffic = bulk(&format!("count = 3\nbytes = '300kB'\n{WIDE}"));
    let link = "rate = '2Mbit/s'\ndelay = '5ms'\nlimit = '3kB'";
    let explanation = explain(&scenario(link, &traffic), &Simulator).unwrap();
    let group = &explanation.traffic[0].groups[0];
    assert!(group.relaxing(Constraint::QueueLimit).is_some_and(|it| it.saved > 0.1), "{group:#?}");
}

#[test]
fn the_same_scenario_has_the_same_explanation() {
    let traffic = messages("sizes = [1, 500]\nrepeat = 20");
    let link = "rate = '1Mbit/s'\ndelay = '3ms'\nloss = '1%'";
    let explained = || explain(&scenario(link, &traffic), &Simulator).unwrap();
    let (one, other) = (explained(), explained());
    assert_eq!(one, other);
    assert_eq!(text(&one), text(&other));
    let json = |it: &Explanation| serde_json::to_string(it).unwrap();
    assert_eq!(json(&one), json(&other));
}

#[test]
fn progress_is_told_and_unknown_traffic_refused() {
    let it = scenario("delay = '3ms'", &messages("sizes = [1]\nrepeat = 3"));
    let mut stages = Vec::new();
    explain_with(&it, &Simulator, &Options::default(), &mut |stage| stages.push(stage)).unwrap();
    assert!(stages.iter().all(|stage| stage.traffic == "messages" && stage.done <= stage.runs));
    assert!(stages.iter().any(|stage| stage.done == stage.runs));
    let options = Options { traffic: vec!["nobody".into()], ..Options::default() };
    let complaint = explain_with(&it, &Simulator, &options, &mut |_| {}).unwrap_err().to_string();
    assert_eq!(complaint, "there is no traffic or cluster 'nobody': the scenario has messages");
}

/// A cluster's laps are told by place and cause, and a livelock by its name.
#[test]
fn a_cluster_is_told_by_its_critical_path() {
    let cluster = |nodes: u32, test: &str| {
        let costs =
            "[costs.c]\nsend = '25us'\ninterrupt = '25us'\nreceive = '25us'\ncycle = '20ns'";
        let file = format!(
            "[[cluster]]\nname = 'c'\nkind = 'fddi'\nrate = '100Mbit/s'\nlimit = '100MB'\nnodes = {nodes}\n\
             protocol = 'traditional'\ncosts = 'c'\ntest = {test}\n{costs}"
        );
        let scenario = Scenario::parse(&file, "plain.toml").expect("a scenario").remove(0);
        explain(&scenario, &Simulator).unwrap()
    };
    let told = text(&cluster(2, "{ kind = 'latency', words = 1, rounds = 20 }"));
    assert!(told.contains("c: a lap") && told.contains("where the time of a lap goes"), "{told}");
    assert!(told.contains("    c processors                        Host"), "{told}");
    let told = text(&cluster(4, "{ kind = 'flood', fragments = 8 }"));
    assert!(told.contains("livelock"), "{told}");
}

/// A token bucket that shapes or polices, before a line that is never full: its rate binds, not its queue's limit, and not
/// nothing.
#[test]
fn behind_a_token_bucket_it_is_the_discipline_s_rate() {
    for (mode, limit) in [("shape", "3p"), ("shape", "1MB"), ("police", "1MB")] {
        let link = format!(
            "rate = '100Mbit/s'\ndelay = '1ms'\nlimit = '{limit}'\n\
             discipline = 'token-bucket:rate=1Mbit/s,burst=20kB,mode={mode}'"
        );
        let traffic = "[[traffic]]\nname = 'paced'\nkind = 'paced'\nfrom = 'a'\nto = 'b'\nsize = 1000\n\
                       rate = '2Mbit/s'\nduration = '10s'\n";
        let explanation = explain(&scenario(&link, traffic), &Simulator).unwrap();
        let told = text(&explanation);
        let group = explanation.traffic("paced").unwrap().groups.last().unwrap().clone();
        assert_eq!(group.binds, Binding::One(Constraint::Shaper), "{mode}, {limit}: {told}");
        let shaper = group.relaxing(Constraint::Shaper).unwrap();
        assert_eq!((shaper.place.as_str(), shaper.now.as_str()), ("trunk", "1Mbit/s"), "{told}");
    }
}

/// Of what saves much, but no more than chance does, it is not said that nothing is to be gained from it.
#[test]
fn what_chance_hides_is_not_called_useless() {
    let links = "rate = '2Mbit/s'\ndelay = '40ms'\nloss = '1%'\nbackward = { rate = '16kbit/s' }";
    let traffic = "[[traffic]]\nname = 'file'\nkind = 'push'\nfrom = 'a'\nto = 'b'\nbytes = '280kB'\nrepeat = 16\n\
                   transport = { kind = 'tcp', congestion = 'reno', sack = false }\n";
    let explanation = explain(&scenario(links, traffic), &Simulator).unwrap();
    let group = &explanation.traffic("file").unwrap().groups[0];
    let loss = group.relaxing(Constraint::Loss).unwrap();
    assert!(!loss.certain && loss.saved > 0.03, "{loss:?}");
    let told = text(&explanation);
    let (before, nothing) = told.split_once("Nothing to be gained from:").unwrap();
    assert!(before.contains("vary by as much as these save:"), "{told}");
    assert!(!nothing.contains("loss"), "{told}");
}
