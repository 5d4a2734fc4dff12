//! What the tests of this crate have in common.

use trunkline_scenario::Scenario;

/// The scenario that `text` describes.
pub fn scenario(text: &str) -> Scenario {
    let text = format!("name = 'test'\n{text}");
    let mut cells = Scenario::parse(&text, "test.toml").unwrap();
    assert_eq!(cells.len(), 1);
    cells.remove(0)
}
