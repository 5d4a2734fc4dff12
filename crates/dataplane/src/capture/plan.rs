//! The interfaces of a capture, and the beginnings and ends of a network's lanes among them.

/// Longest name of an interface in bytes: each record of a drop repeats it.
pub(super) const LONGEST_NAME: usize = 96;

/// The ends of a path at which frames are captured. Drops are recorded whatever the choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CaptureFilter {
    /// The near end only.
    Near,
    /// The far end only.
    Far,
    /// Both ends: each frame that is delivered appears twice.
    #[default]
    Both,
}

/// An interface of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interface {
    pub name: String,
    pub description: String,
    /// Whether frames are recorded there.
    pub taken: bool,
}

/// The interfaces at the ends of a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ends {
    pub entry: u32,
    pub exit: u32,
    /// The text behind the cause for a dropped frame.
    pub entered_at: String,
}

/// The interfaces of a capture, and for each lane those at its two ends. The last interface is `dropped`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturePlan {
    pub(super) interfaces: Vec<Interface>,
    pub(super) lanes: Vec<Ends>,
}

impl CapturePlan {
    /// Paths of two lanes each, from near to far and back: an interface for each end, named after the
    /// path if that has a name.
    pub fn of_paths(names: &[String], filter: CaptureFilter) -> CapturePlan {
        let (mut interfaces, mut lanes) = (Vec::new(), Vec::new());
        for name in names {
            let prefix = if name.is_empty() { String::new() } else { format!("{name}/") };
            let first = interfaces.len() as u32;
            for (end, other) in [("near", CaptureFilter::Far), ("far", CaptureFilter::Near)] {
                let path = if name.is_empty() { "the path".into() } else { format!("path {name}") };
                let name = cut(format!("{prefix}{end}"));
                let description = format!("the {end} end of {path}");
                interfaces.push(Interface { name, description, taken: filter != other });
            }
            for (entry, exit) in [(first, first + 1), (first + 1, first)] {
                let entered_at = entered_at(&interfaces[entry as usize].name);
                lanes.push(Ends { entry, exit, entered_at });
            }
        }
        CapturePlan::with_drops(interfaces, lanes)
    }

    /// Lanes of a network: an interface for each, on which a frame is inbound when it enters the lane and
    /// outbound when it comes out of it.
    pub fn of_lanes<'a>(names: impl Iterator<Item = &'a str>) -> CapturePlan {
        let (mut interfaces, mut lanes) = (Vec::new(), Vec::new());
        for (index, name) in names.enumerate() {
            let name = cut(name.to_string());
            let (index, entered_at) = (index as u32, entered_at(&name));
            lanes.push(Ends { entry: index, exit: index, entered_at });
            let description =
                format!("{name}: inbound where frames enter, outbound where they come out");
            interfaces.push(Interface { name, description, taken: true });
        }
        CapturePlan::with_drops(interfaces, lanes)
    }

    fn with_drops(mut interfaces: Vec<Interface>, lanes: Vec<Ends>) -> CapturePlan {
        let description = "frames that entered the path and never arrived".to_string();
        interfaces.push(Interface { name: "dropped".into(), description, taken: true });
        CapturePlan { interfaces, lanes }
    }
}

fn entered_at(name: &str) -> String {
    format!(" (entered at {name})")
}

/// A name short enough.
fn cut(mut name: String) -> String {
    let mut end = name.len().min(LONGEST_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(plan: &CapturePlan) -> Vec<&str> {
        plan.interfaces.iter().map(|interface| interface.name.as_str()).collect()
    }

    #[test]
    fn paths_have_ends_and_lanes_join_them() {
        let names_of =
            |paths: &[&str]| -> Vec<String> { paths.iter().map(ToString::to_string).collect() };
        let one = CapturePlan::of_paths(&names_of(&[""]), CaptureFilter::Far);
        assert_eq!(names(&one), ["near", "far", "dropped"]);
        let taken: Vec<bool> = one.interfaces.iter().map(|it| it.taken).collect();
        assert_eq!(taken, [false, true, true]);
        let two = CapturePlan::of_paths(&names_of(&["peer", "sat"]), CaptureFilter::Both);
        assert_eq!(names(&two), ["peer/near", "peer/far", "sat/near", "sat/far", "dropped"]);
        let ends: Vec<(u32, u32)> = two.lanes.iter().map(|it| (it.entry, it.exit)).collect();
        assert_eq!(ends, [(0, 1), (1, 0), (2, 3), (3, 2)]);
        assert_eq!(two.lanes[3].entered_at, " (entered at sat/far)");
    }

    #[test]
    fn lanes_have_an_interface_each_and_long_names_are_cut() {
        let long = "é".repeat(100);
        let plan = CapturePlan::of_lanes(["a>n", &long].into_iter());
        assert_eq!(names(&plan)[0], "a>n");
        assert_eq!((names(&plan)[1].len(), names(&plan)[2]), (LONGEST_NAME, "dropped"));
        assert_eq!((plan.lanes[1].entry, plan.lanes[1].exit), (1, 1));
    }
}
