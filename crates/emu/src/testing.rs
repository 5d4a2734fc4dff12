//! What the tests of this crate have in common.

use crate::plan::Plan;
use trunkline_scenario::{Network, Scenario};

/// Two hosts, a link, and paced datagrams.
pub const PAIR: &str = "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n\
    [[link]]\nbetween = ['a', 'b']\nrate = '10Mbit/s'\ndelay = '5ms'\n\
    [[traffic]]\nname = 't'\nkind = 'paced'\nfrom = 'a'\nto = 'b'\nsize = 100\n\
    rate = '1Mbit/s'\nduration = '1s'\ntransport = { kind = 'udp' }\n";

/// The scenario that `text` describes.
pub fn scenario(text: &str) -> Scenario {
    let text = format!("name = 'test'\n{text}");
    let mut cells = Scenario::parse(&text, "test.toml").unwrap();
    assert_eq!(cells.len(), 1);
    cells.remove(0)
}

/// What `scenario` needs.
pub fn plan(scenario: &Scenario) -> Plan {
    Plan::of(&Network::of(scenario).unwrap()).unwrap()
}
