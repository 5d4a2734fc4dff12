//! What is made of the list of media in `mod.rs`.

/// Makes everything of one line for each medium: the description, dispatch without boxing, and the registry.
macro_rules! media {
    ($($name:literal => $module:ident::{$Access:ident, $Settings:ident},)+) => {
        $(pub use $module::$Settings;
        use $module::$Access;)+

        /// How stations take turns, with the settings of that.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(tag = "kind")]
        pub enum AccessSpec {
            $(#[doc = concat!("`", $name, "`.")] #[serde(rename = $name)] $Access($Settings),)+
        }

        /// Every kind of medium, in the order in which docs show them.
        pub const KINDS: &[MediumKind] = &[$(MediumKind::of::<$Settings>($name)),+];

        impl AccessSpec {
            /// The name of its kind.
            pub fn kind(&self) -> &'static str {
                match self { $(AccessSpec::$Access(_) => $name,)+ }
            }

            /// Most stations of its kind.
            pub fn most_stations(&self) -> usize {
                match self { $(AccessSpec::$Access(_) => <$Settings as AccessSettings>::MOST_STATIONS,)+ }
            }

            /// What formulas know of how its stations take turns.
            fn by_formula(&self) -> Option<&dyn ByFormula> {
                match self { $(AccessSpec::$Access(it) => it.by_formula(),)+ }
            }

            /// The lines that a frame crosses from one station to another, if it is a fabric of switches.
            fn ports(&self, alone: &Alone, from: StationId, to: StationId) -> Option<Vec<PortLine>> {
                match self { $(AccessSpec::$Access(it) => it.ports(alone, from, to),)+ }
            }

            /// Reads the keys of `kind`. `None` if there is no such kind.
            fn read_kind(
                kind: &str,
                given: &mut Given<'_>,
            ) -> Option<Result<AccessSpec, $crate::DisciplineTextError>> {
                match kind {
                    $($name => Some(
                        <$Settings as Keys>::read(given, spec::NO_LIMIT).map(AccessSpec::$Access),
                    ),)+
                    _ => None,
                }
            }

            /// Checks every setting against its range and against the medium.
            fn check(&self, medium: &MediumSpec) -> Result<(), SpecError> {
                match self {
                    $(AccessSpec::$Access(it) => it.check_ranges().and_then(|()| it.check(medium)),)+
                }
            }
        }

        impl MediumSpec {
            /// A key of its kind that changes nothing beside the others as they were given, with the remedy.
            pub fn idle(&self) -> Option<&'static str> {
                match &self.access {
                    $(AccessSpec::$Access(it) => it.idle(self),)+
                }
            }

            /// A bus in its place, with the same rate and distances, on which taking turns costs nothing. `None` if stations do not
            /// take turns here, or for nothing.
            pub fn without_turns(&self) -> Option<MediumSpec> {
                let (bus, delay) = match &self.access {
                    $(AccessSpec::$Access(it) => it.without_turns(self)?,)+
                };
                Some(MediumSpec { access: AccessSpec::Bus(bus), delay, ..self.clone() })
            }

            /// The medium so many times as fast.
            pub fn faster(&self, times: u32) -> MediumSpec {
                let faster = |rate: Rate| rate.bits_per_second().saturating_mul(times.into());
                let rate = self.rate.map(|rate| Rate::from_bits_per_second(faster(rate)));
                let access = match self.access {
                    $(AccessSpec::$Access(it) => AccessSpec::$Access(it.faster(times)),)+
                };
                MediumSpec { rate, access, ..self.clone() }
            }

            /// The medium with queues and buffers that hold whatever comes, of so many bytes.
            pub fn unlimited(&self, bytes: u64) -> MediumSpec {
                let mut medium = self.clone();
                // Only cells in place of bytes could be refused.
                let _ = medium.discipline.set_limit($crate::Limit::Bytes(bytes));
                medium.access = match self.access {
                    $(AccessSpec::$Access(it) => AccessSpec::$Access(it.unlimited()),)+
                };
                medium
            }

            /// Bytes of the largest frames of which it loses nothing, if it holds senders back and larger frames may be
            /// lost all the same.
            pub fn lossless_up_to(&self) -> Option<u64> {
                match &self.access {
                    $(AccessSpec::$Access(it) => it.lossless_up_to(self),)+
                }
            }

            /// Checks what depends on the number of stations, if that is in range.
            ///
            /// # Errors
            /// A setting at odds with so many stations.
            pub fn check_stations(&self, count: usize) -> Result<(), SpecError> {
                match &self.access {
                    $(AccessSpec::$Access(it) => it.check_stations(self, count),)+
                }
            }
        }

        /// Every access there is, dispatched without boxing.
        #[derive(Debug)]
        enum AnyAccess {
            $($Access($Access),)+
        }

        impl AnyAccess {
            fn new(spec: &AccessSpec, ground: &Ground<'_>) -> AnyAccess {
                match spec { $(AccessSpec::$Access(it) => AnyAccess::$Access(it.build(ground)),)+ }
            }
        }

        impl Access for AnyAccess {
            fn asks<P: Carried>(
                &mut self,
                now: Time,
                station: StationId,
                stations: &mut Stations<P>,
            ) {
                match self { $(AnyAccess::$Access(it) => it.asks(now, station, stations),)+ }
            }
            fn next(&self) -> Option<Time> {
                match self { $(AnyAccess::$Access(it) => it.next(),)+ }
            }
            fn most_held(&self) -> Option<u64> {
                match self { $(AnyAccess::$Access(it) => it.most_held(),)+ }
            }
            fn act<P: Carried>(&mut self, now: Time, stations: &mut Stations<P>) {
                match self { $(AnyAccess::$Access(it) => it.act(now, stations),)+ }
            }
        }
    };
}
pub(super) use media;
