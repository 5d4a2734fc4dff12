//! The studies that are built in: complete, consistent, and covered.

use trunkline_study::{Source, names};

#[test]
fn every_study_and_every_scenario_can_be_read() {
    for name in names() {
        let source = Source::open(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(source.study.name, name);
        assert!(source.scenarios().count() > 0, "{name}");
    }
}
