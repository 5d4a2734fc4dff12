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
