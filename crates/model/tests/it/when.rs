//! Traffic that is not there from first to last, against what it is alone, together, and in the simulator.

use proptest::prelude::*;
use trunkline_core::Span;
use trunkline_model::{Figure, Predictions, What, predictions};
use trunkline_scenario::Scenario;

fn scenario(traffic: &str) -> Scenario {
    let text = format!(
        "samples = 'all'\nstop_after = '60min'\n[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n\
         [[link]]\nname = 'l'\nbetween = ['a', 'b']\nrate = '10Mbit/s'\ndelay = '5ms'\nlimit = '512KiB'\n{traffic}"
    );
    let cells = Scenario::parse(&text, "when.toml");
    cells.unwrap_or_else(|error| panic!("{error}\n{text}")).remove(0)
}

fn bulk(name: &str, bytes: &str, keys: &str) -> String {
    format!(
        "[[traffic]]\nname = '{name}'\nkind = 'bulk'\nfrom = 'a'\nto = 'b'\nbytes = '{bytes}'\n{keys}\n"
    )
}

fn urp(name: &str, keys: &str) -> String {
    bulk(
        name,
        "1MB",
        &format!(
            "write = 4096\ntransport = {{ kind = 'urp', block = 4096, outstanding = 7 }}\n{keys}"
        ),
    )
}

fn found(traffic: &str) -> Predictions {
    predictions(&scenario(traffic)).unwrap()
}

/// The time of a transfer, whose terms must add up to it.
fn transfer(found: &Predictions, name: &str) -> Span {
    let is_it = |it: &&trunkline_model::Prediction| it.traffic == name && it.what == What::Transfer;
    let own = found.list.iter().find(is_it).unwrap_or_else(|| panic!("{found:?}"));
    let Figure::Time(total) = own.value else { panic!("{own:?}") };
    assert_eq!(own.terms.iter().map(|term| term.span()).sum::<Span>(), total, "{own:?}");
    total
}

/// Milliseconds in the simulator, of the flow in the middle.
fn simulated(traffic: &str, name: &str) -> f64 {
    let run = trunkline_sim::run(&scenario(traffic)).unwrap();
    let own = run.traffic.iter().find(|it| it.name == name).unwrap();
    let mut spans: Vec<f64> = own.samples.iter().map(|it| it.delay().as_millis_f64()).collect();
    spans.sort_by(f64::total_cmp);
    spans[(spans.len() - 1) / 2]
}

#[test]
fn downloads_a_minute_apart_are_alone() {
    for transport in ["transport = 'tcp'", "transport = { kind = 'urp', outstanding = 7 }"] {
        let one = bulk("one", "10MB", transport);
        let two = bulk("two", "10MB", &format!("{transport}\nstart = '60s'"));
        let (alone, both) = (found(&one), found(&format!("{one}{two}")));
        assert_eq!(transfer(&both, "one"), transfer(&alone, "one"), "{transport}");
        assert_eq!(transfer(&both, "two"), transfer(&alone, "one"), "{transport}");
        let about = |found: &Predictions| found.notes.len();
        assert_eq!(
            about(&both),
            2 * about(&alone),
            "nothing is told of who is not there: {:?}",
            both.notes
        );
    }
}

#[test]
fn flows_that_begin_behind_each_others_ends_are_alone() {
    let many = bulk("t", "100kB", "transport = 'tcp'\ncount = 20\nstagger = '2s'");
    let one = bulk("t", "100kB", "transport = 'tcp'");
    assert_eq!(transfer(&found(&many), "t"), transfer(&found(&one), "t"));
    let run = trunkline_model::predict(&scenario(&many)).unwrap();
    let alone = trunkline_model::predict(&scenario(&one)).unwrap();
    let total = |run: &trunkline_engine::Run| run.traffic[0].total_rate(100_000).unwrap();
    assert_eq!((run.traffic[0].samples.len(), total(&run)), (20, total(&alone)));
}

/// A second transfer begins in the middle of the first: half of the line for a while. The simulator has the same.
#[test]
fn a_transfer_that_shares_its_line_for_a_while_is_made_up_of_parts() {
    let two =
        |start: &str| format!("{}{}", urp("one", ""), urp("two", &format!("start = '{start}'")));
    for start in ["200ms", "500ms", "700ms"] {
        let both = found(&two(start));
        for name in ["one", "two"] {
            let (ours, theirs) =
                (transfer(&both, name).as_millis_f64(), simulated(&two(start), name));
            assert!((ours / theirs - 1.0).abs() < 0.02, "{name}, {start}: {ours} for {theirs} ms");
            let notes: Vec<_> = both.notes.iter().map(ToString::to_string).collect();
            let told = |it: &&String| it.starts_with(name) && it.contains("made up of parts");
            assert_eq!(notes.iter().filter(told).count(), 1, "{notes:?}");
        }
    }
}

/// Flows of one traffic, each a quarter of a transfer behind the one before.
#[test]
fn flows_that_begin_apart_share_while_they_overlap() {
    let text = urp("t", "count = 4\nstagger = '220ms'");
    let (ours, theirs) = (transfer(&found(&text), "t").as_millis_f64(), simulated(&text, "t"));
    assert!((ours / theirs - 1.0).abs() < 0.03, "{ours} for {theirs} ms");
}

/// Messages of the second size are sent when the transfer is over.
#[test]
fn messages_meet_the_traffic_of_their_time() {
    let echo = "[[traffic]]\nname = 'echo'\nkind = 'timed-echo'\nfrom = 'a'\nto = 'b'\nsizes = [16, 256]\nduration = '500ms'\ntransport = 'urp'\n";
    let both = found(&format!("{}{echo}start = '300ms'\n", urp("one", "")));
    let alone = found(echo);
    let round = |found: &Predictions, size, what| found.find("echo", size, what).map(|it| it.value);
    assert_eq!(round(&both, 256, What::RoundTrip), round(&alone, 256, What::RoundTrip));
    let [queued, free] = [&both, &alone].map(|it| round(it, 16, What::RoundTrip).unwrap().time());
    assert!(queued > free, "{queued:?} {free:?}");
}

/// A transfer of which no formula knows how long it takes beside others is not taken for one without them.
#[test]
fn a_transfer_of_unknown_company_has_no_number() {
    let greedy = "[[traffic]]\nname = 'g'\nkind = 'greedy'\nfrom = 'a'\nto = 'b'\nduration = '10s'\ntransport = 'tcp'\n";
    let both = found(&format!("{greedy}{}", urp("one", "start = '1s'")));
    assert!(both.list.iter().all(|it| it.traffic != "one"), "{both:?}");
    let told = |it: &&trunkline_engine::Note| it.text.contains("no formula covers the TCP of g");
    assert_eq!(both.notes.iter().filter(told).count(), 1, "{:?}", both.notes);
}

/// The texts of notes on a traffic.
fn notes(found: &Predictions, name: &str) -> Vec<String> {
    let own = found.notes.iter().filter(|it| it.to_string().starts_with(name));
    own.map(|it| it.text.clone()).collect()
}

/// A connection that begins when others have filled the queue has longer round trips, and slow start ends with what room
/// they leave. Together with them it would take 0.5 s; it takes 2.
#[test]
fn a_connection_that_comes_later_waits_behind_the_others() {
    let tcp = |name: &str, bytes: &str, keys: &str| {
        bulk(name, bytes, &format!("transport = 'tcp'\n{keys}"))
    };
    let long = tcp("long", "15MB", "count = 3");
    let text =
        format!("{long}{}", tcp("short", "200kB", "start = '8s'\ncount = 6\nstagger = '3s'"));
    let both = found(&text);
    let ratio = transfer(&both, "short").as_millis_f64() / simulated(&text, "short");
    assert!((0.67..1.5).contains(&ratio), "{ratio}");
    let behind = |found: &Predictions, name: &str| {
        notes(found, name).iter().filter(|text| text.contains("begins behind the queue")).count()
    };
    assert_eq!((behind(&both, "long"), behind(&both, "short")), (0, 1));
    let together = found(&format!("{long}{}", tcp("short", "200kB", "start = '10ms'")));
    assert_eq!(behind(&together, "short"), 0);
    assert!(
        2.0 * transfer(&together, "short").as_millis_f64()
            < transfer(&both, "short").as_millis_f64()
    );
}

/// Others that are still in slow start have not filled it yet, which is told.
#[test]
fn a_connection_that_comes_a_little_later_is_told_of() {
    let tcp = |name: &str, start: &str| {
        bulk(name, "1MB", &format!("transport = 'tcp'\nstart = '{start}'"))
    };
    let both = found(&format!("{}{}", tcp("one", "0s"), tcp("two", "90ms")));
    let told = |name: &str| {
        notes(&both, name).iter().filter(|text| text.contains("begins when others")).count()
    };
    assert_eq!((told("one"), told("two")), (0, 1), "{:?}", both.notes);
}

/// What waits for another traffic's end, or ends with it, keeps its place beside one that starts later.
#[test]
fn starts_behind_ends_are_heeded_beside_others() {
    let third = urp("three", "start_after = 'one'");
    let all = found(&format!("{}{}{third}", urp("one", ""), urp("two", "start = '60s'")));
    let alone = transfer(&found(&urp("one", "")), "one");
    assert_eq!(["one", "two", "three"].map(|it| transfer(&all, it)), [alone; 3]);
}

#[test]
fn too_many_starts_are_told() {
    let many = bulk("t", "100kB", "transport = 'tcp'\ncount = 300\nstagger = '50ms'");
    let notes = found(&many).notes;
    assert!(notes.iter().any(|it| it.text.contains("there from first to last")), "{notes:?}");
}

/// All begin at once, and most have ended long before the last.
#[test]
fn who_outlasts_the_others_has_the_line_to_itself() {
    let small = urp("small", "count = 4");
    let text = format!("{}{small}", urp("big", "").replace("1MB", "10MB"));
    let (ours, theirs) = (transfer(&found(&text), "big").as_millis_f64(), simulated(&text, "big"));
    assert!((ours / theirs - 1.0).abs() < 0.03, "{ours} for {theirs} ms");
}

/// A trifle of the work, and a good part of its time: 300 kB of 10 MB beside 12 others.
#[test]
fn a_part_is_weighed_by_its_time() {
    let crowd = bulk(
        "crowd",
        "300kB",
        "write = 4096\ncount = 12\nstart = '1s'\ntransport = { kind = 'urp', block = 4096, outstanding = 7 }",
    );
    let text = format!("{}{crowd}", urp("big", "").replace("1MB", "10MB"));
    let both = found(&text);
    let (ours, theirs) = (transfer(&both, "big").as_millis_f64(), simulated(&text, "big"));
    assert!((ours / theirs - 1.0).abs() < 0.03, "{ours} for {theirs} ms");
    assert!(
        notes(&both, "big").iter().any(|it| it.contains("made up of parts")),
        "{:?}",
        both.notes
    );
}

/// What all have in common is worked out once: a thousand downloads take no longer than a thousand times one. (Worked out for each
/// they take minutes.)
#[test]
fn a_thousand_traffics_are_alike() {
    for transport in
        ["transport = 'tcp'", "transport = { kind = 'urp', outstanding = 1, block = 256 }"]
    {
        let name = |index: usize| format!("t{index}");
        let many = |count: usize| -> String {
            (0..count).map(|index| bulk(&name(index), "100kB", transport)).collect()
        };
        let all = found(&many(1000));
        let counted = found(&bulk("t", "100kB", &format!("{transport}\ncount = 1000")));
        let times: Vec<Span> = (0..1000).map(|index| transfer(&all, &name(index))).collect();
        assert_eq!(times, vec![transfer(&counted, "t"); 1000], "{transport}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// A transfer is never faster than alone, nor slower than beside all others from first to last.
    #[test]
    fn a_transfer_lies_between_alone_and_together(
        starts in prop::collection::vec(0u64..3000, 1..5), staggers in prop::collection::vec((1u32..4, 0u64..1500), 5),
    ) {
        let texts = |apart: bool| -> String {
            let each = starts.iter().zip(&staggers).enumerate();
            each.map(|(at, (start, (count, stagger)))| {
                let (start, stagger) = if apart { (*start, *stagger) } else { (0, 0) };
                urp(&format!("t{at}"), &format!("count = {count}\nstart = '{start}ms'\nstagger = '{}ms'", if *count > 1 { stagger } else { 0 }))
            }).collect()
        };
        let (apart, together) = (found(&texts(true)), found(&texts(false)));
        let alone = transfer(&found(&urp("t", "")), "t");
        let most = Span::from_micros(1);
        for at in 0..starts.len() {
            let name = format!("t{at}");
            let (ours, all) = (transfer(&apart, &name), transfer(&together, &name));
            prop_assert!(alone <= ours + most && ours <= all + most, "{name}: {alone} {ours} {all}");
        }
    }
}

/// A second at ten times the line's rate leaves nine of queue, in which a call of half a minute waits for most of its time.
#[test]
fn a_burst_that_fills_a_queue_is_told_to_who_waits_in_it() {
    let notes = |burst: &str, line: &str| {
        let text = format!(
            "host = [{{ name = 'a' }}, {{ name = 'b' }}]\nlink = [{{ between = ['a', 'b'], rate = '1Mbit/s', limit = '2MB'{line} }}]\n\
             [[traffic]]\nname = 'call'\nkind = 'paced'\nfrom = 'a'\nto = 'b'\nsize = 100\nrate = '10kbit/s'\nduration = '30s'\n\
             [[traffic]]\nname = 'burst'\nkind = 'paced'\nfrom = 'a'\nto = 'b'\nsize = 1000\nrate = '{burst}'\nstart = '5s'\nduration = '1s'\n"
        );
        let scenario = Scenario::parse(&text, "when.toml").unwrap().remove(0);
        let found = predictions(&scenario).unwrap();
        let own = found.notes.iter().filter(|note| note.to_string().contains("call: "));
        own.map(|note| note.text.clone()).collect::<Vec<_>>().join("\n")
    };
    let told = notes("10Mbit/s", "");
    assert!(told.contains("burst comes faster than a>b carries") && told.contains("9s"), "{told}");
    assert!(!notes("900kbit/s", "").contains("comes faster"));
    assert!(!notes("10Mbit/s", ", discipline = 'drr'").contains("comes faster"));
}
