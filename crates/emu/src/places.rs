//! The places under which time is booked: the lanes by their numbers, then the hosts, then what lies between.

use crate::plan::Plan;
use trunkline_endpoint::{EndPlaces, Places};
use trunkline_scenario::{HostPlace, Scenario};

/// Places of one host.
const PER_HOST: usize = 3;

/// The names of all places of a run.
pub fn names(scenario: &Scenario, plan: &Plan) -> Vec<String> {
    let lanes = plan.lanes.iter().map(|lane| lane.name.clone());
    let hosts = scenario.hosts.iter().flat_map(|host| {
        [HostPlace::Host, HostPlace::EarlierRequest, HostPlace::Transport]
            .map(|place| place.of(&host.name))
    });
    let rest = ["emulator", "path"].map(str::to_string);
    lanes.chain(hosts).chain(rest).collect()
}

/// Those of a host.
pub fn of_host(plan: &Plan, host: usize) -> EndPlaces {
    let first = (plan.lanes.len() + PER_HOST * host) as u32;
    EndPlaces { host: first, requests: first + 1, transport: first + 2 }
}

/// Those that are no host's.
pub fn between(scenario: &Scenario, plan: &Plan) -> Places {
    let first = (plan.lanes.len() + PER_HOST * scenario.hosts.len()) as u32;
    let links = (0..plan.lanes.len() as u32).collect();
    Places { links, emulator: first, path: first + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{PAIR, plan, scenario};

    #[test]
    fn names_stand_where_the_places_say() {
        let scenario = scenario(PAIR);
        let plan = plan(&scenario);
        let names = names(&scenario, &plan);
        let own = of_host(&plan, 1);
        let name = |place: u32| names[place as usize].as_str();
        assert_eq!((name(own.host), name(own.transport)), ("b host", "b transport"));
        let between = between(&scenario, &plan);
        assert_eq!((name(between.links[1]), name(between.emulator)), ("b>a", "emulator"));
        assert_eq!(between.path as usize + 1, names.len());
    }
}
