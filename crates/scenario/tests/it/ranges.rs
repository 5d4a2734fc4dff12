//! Values outside what their keys take, or what their keys take together: the complaint names the key and says one thing.

use crate::file::one;
use trunkline_scenario::Scenario;

/// A scenario of a line of 5 Mbit/s and 10 ms with these keys of a traffic. They begin on line 10.
fn text(traffic: &str) -> String {
    format!(
        "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[link]]\nbetween = ['a', 'b']\nrate = '5Mbit/s'\ndelay = '10ms'\n\
         [[traffic]]\nname = 't'\nfrom = 'a'\nto = 'b'\n{traffic}\n"
    )
}

fn wrong(traffic: &str) -> String {
    Scenario::parse(&text(traffic), "t.toml").expect_err(traffic).to_string()
}

#[test]
fn a_time_out_of_tcp_is_a_millisecond_at_least() {
    for given in ["1ns", "500us", "999999ns"] {
        let found =
            wrong(&format!("kind = 'bulk'\ntransport = {{ kind = 'tcp', min_rto = '{given}' }}"));
        let expected = format!(
            "t.toml:14: traffic.t.transport.min_rto: found \"{given}\": give a time from 1ms to 3600s, such as \"250ms\""
        );
        assert_eq!(found, expected);
    }
    one(&text("kind = 'bulk'\ntransport = { kind = 'tcp', min_rto = '1ms' }"));
}

/// Other traffic waits for more than is ever sent.
#[test]
fn a_start_behind_more_than_is_sent_is_refused() {
    for (other, most) in [
        // 10 datagrams in each second.
        ("kind = 'paced'\nsize = 100\nrate = '8kbit/s'\nduration = '1s'", 1000),
        ("kind = 'paced'\nsize = 100\nrate = '8kbit/s'\nduration = '1001ms'", 1100),
        ("kind = 'interactive'\nsizes = [10, 30]\nrepeat = 5", 200),
        ("kind = 'bulk'\nbytes = 70\nrepeat = 3", 210),
        ("kind = 'push'\nbytes = 70\nrepeat = 3", 210),
    ] {
        let later = |bytes: u64| {
            let behind = format!(
                "[[traffic]]\nname = 'later'\nkind = 'bulk'\nfrom = 'a'\nto = 'b'\nstart_after = 't:{bytes}B'"
            );
            format!("{other}\n{behind}")
        };
        one(&text(&later(most)));
        let found = wrong(&later(most + 1));
        let told = format!(
            "traffic.later.start_after: found \"t:{}B\": each flow of t sends {most} bytes in all: wait for less",
            most + 1
        );
        assert!(found.ends_with(&told), "{other}: {found}");
    }
    // What goes on until something else ends has no number.
    for endless in
        ["kind = 'paced'\nsize = 100\nrate = '8kbit/s'", "kind = 'interactive'\nsizes = [10]"]
    {
        one(&text(&format!(
            "{endless}\nuntil = 'main'\n\
             [[traffic]]\nname = 'main'\nkind = 'bulk'\nfrom = 'a'\nto = 'b'\nstart_after = 't:1MB'"
        )));
    }
}

/// The range of the key, however far beyond it the value is.
#[test]
fn a_value_far_beyond_its_range_is_told_the_range() {
    for rate in ["0bit/s", "20000Gbit/s", "999999999999999999999999Gbit/s"] {
        let found = wrong(&format!("kind = 'paced'\nsize = 100\nrate = '{rate}'"));
        let told = "which is out of range: a rate lies between 1bit/s and 10000Gbit/s";
        assert_eq!(found, format!("t.toml:15: traffic.t.rate: found \"{rate}\", {told}"));
    }
    for duration in ["0s", "169h", "999999999999999999999999h"] {
        let found = wrong(&format!("kind = 'greedy'\nduration = '{duration}'"));
        let told = "give a time from 1ns to 604800s, such as \"250ms\"";
        assert_eq!(found, format!("t.toml:14: traffic.t.duration: found \"{duration}\": {told}"));
    }
    for bytes in ["2TB", "999999999999999999999999GB"] {
        let found = wrong(&format!("kind = 'bulk'\nbytes = '{bytes}'"));
        let told = "give bytes from 0 to 1000000000000, such as 1024 or \"1KiB\"";
        assert_eq!(found, format!("t.toml:14: traffic.t.bytes: found \"{bytes}\": {told}"));
    }
}

/// The reference page gives ranges to 1 TB and 1 TiB.
#[test]
fn sizes_are_written_in_terabytes_too() {
    one(&text("kind = 'bulk'\nbytes = '1TB'"));
    let board = "[interface.x]\nmemory = '1TiB'\n";
    one(&format!("{board}{}", text("kind = 'bulk'")));
}

/// Where one key of a protocol does not go with another, the complaint stands at one that was written.
#[test]
fn keys_of_protocols_that_do_not_go_together_are_named() {
    for (transport, told) in [
        (
            "kind = 'netblt', rate = '1bit/s'",
            "transport.rate: found \"1bit/s\": it is less than a packet in 65 s: give a higher one or a smaller packet",
        ),
        (
            "kind = 'netblt', interval = '1500us'",
            "transport.interval: found \"1500us\": give whole milliseconds",
        ),
        (
            "kind = 'netblt', death = '10500ms'",
            "transport.death: found \"10500ms\": give whole seconds",
        ),
        ("kind = 'netblt', packets = 65536, frame = 65000", "transport.packets: found 65536: "),
        (
            "kind = 'selective-repeat', buffer = 3",
            "transport.buffer: found 3: it is below frames = 4, of which each may come behind a gap: give buffer = 4 or more, or fewer frames",
        ),
    ] {
        let found = wrong(&format!("kind = 'bulk'\ntransport = {{ {transport} }}"));
        assert!(found.starts_with(&format!("t.toml:14: traffic.t.{told}")), "{transport}: {found}");
    }
}

/// Runs of many events for nothing.
#[test]
fn times_too_short_for_their_traffic_are_told() {
    let told = |traffic: &str| {
        one(&text(traffic)).remarks().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let greedy = |interval: &str| told(&format!("kind = 'greedy'\ninterval = '{interval}'"));
    assert_eq!(
        greedy("10ns"),
        [
            "traffic.t.interval = 10ns makes 900000000 intervals in all, and a run of so many takes long: give interval = 900ns or more, or a shorter duration"
        ]
    );
    assert_eq!(greedy("1ms"), [""; 0]);
    for (transport, key) in [
        ("kind = 'go-back-n', frames = 7, timeout = '1ns'", "1ns"),
        ("kind = 'stop-and-wait', timeout = '19ms'", "19ms"),
        ("kind = 'urp', timeout = '1us'", "1us"),
    ] {
        let found = told(&format!("kind = 'bulk'\ntransport = {{ {transport} }}"));
        let told = format!(
            "traffic.t.transport.timeout = {key} is over before any answer can come, for the way there and back takes 20ms at least: everything is sent or asked for again, and a run may take long; give a longer one"
        );
        assert_eq!(found, [told], "{transport}");
    }
    for transport in ["kind = 'go-back-n', timeout = '40ms'", "kind = 'urp', timeout = '40ms'"] {
        assert_eq!(
            told(&format!("kind = 'bulk'\nwrite = 4096\ntransport = {{ {transport} }}")),
            [""; 0]
        );
    }
}

/// Each end of NETBLT would count the other as dead before it can be heard.
#[test]
fn a_death_before_any_answer_is_told() {
    for (delay, death, least) in [
        ("301s", "", Some(("600s", "602s"))),
        ("299s", "", None),
        ("6s", ", death = '10s'", Some(("10s", "12s"))),
        ("1h", ", death = '7199s'", Some(("7199s", "7200s"))),
        ("1h", ", death = '3h'", None),
    ] {
        let link = format!("delay = '{delay}'");
        let traffic = format!("kind = 'bulk'\ntransport = {{ kind = 'netblt'{death} }}");
        let cell = one(&text(&traffic).replace("delay = '10ms'", &link));
        let found = cell.remarks().iter().map(ToString::to_string).collect::<Vec<_>>();
        let told = least.map(|(death, least)| {
            format!(
                "traffic.t.transport.death = {death} is over before any answer can come, for the way there and back takes {least} at least: both ends give up, and nothing is delivered; give a longer one"
            )
        });
        assert_eq!(found, Vec::from_iter(told), "{delay}{death}");
    }
}
