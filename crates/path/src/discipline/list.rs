//! What is made of the list of disciplines in `mod.rs`.

/// Makes everything of one line for each discipline: the description and its JSON form, dispatch without boxing,
/// and the registry.
macro_rules! disciplines {
    ($($name:literal => $module:ident::{$Queue:ident, $Settings:ident},)+) => {
        $(pub use $module::{$Queue, $Settings};)+

        /// Which discipline, with its settings.
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(tag = "kind")]
        pub enum DisciplineSpec {
            $(#[doc = concat!("`", $name, "`.")] #[serde(rename = $name)] $Queue($Settings),)+
        }

        $(impl From<$Settings> for DisciplineSpec {
            fn from(settings: $Settings) -> DisciplineSpec {
                DisciplineSpec::$Queue(settings)
            }
        })+

        /// Every kind of discipline, in the order in which help and docs show them.
        pub const KINDS: &[DisciplineKind] = &[$(DisciplineKind::of::<$Settings>($name)),+];

        /// The names of all kinds, for messages.
        const NAMES: &str = $crate::discipline::list::disciplines!(@join $($name)+);

        impl DisciplineSpec {
            /// The name of its kind.
            pub fn kind(&self) -> &'static str {
                match self { $(DisciplineSpec::$Queue(_) => $name,)+ }
            }

            /// Reads the keys of `kind`. `None` if there is no such kind.
            fn read(
                kind: &str,
                given: &mut settings::Given<'_>,
                limit: Limit,
            ) -> Option<Result<DisciplineSpec, DisciplineTextError>> {
                match kind {
                    $($name => Some($Settings::read(given, limit).map(DisciplineSpec::$Queue)),)+
                    _ => None,
                }
            }
        }

        /// Evaluates an expression with the settings of any discipline.
        macro_rules! settings_of {
            ($spec:expr, $it:ident => $body:expr) => {
                match $spec { $(DisciplineSpec::$Queue($it) => $body,)+ }
            };
        }

        use settings_of;

        /// Every discipline there is, chosen when the path is described and dispatched without boxing.
        #[derive(Debug)]
        pub enum AnyDiscipline<P> {
            $(#[doc = concat!("`", $name, "`.")] $Queue($Queue<P>),)+
        }

        macro_rules! each {
            ($any:expr, $it:ident => $body:expr) => {
                match $any { $(AnyDiscipline::$Queue($it) => $body,)+ }
            };
        }

        impl<P: Metered> AnyDiscipline<P> {
            /// The discipline that `spec` describes. What it leaves to chance comes from the stream of `seed` for
            /// the queue of the link called `name`.
            pub fn new(spec: &DisciplineSpec, seed: Seed, name: &str) -> AnyDiscipline<P> {
                let chance = Chance { seed, link: name };
                match spec {
                    $(DisciplineSpec::$Queue(it) => AnyDiscipline::$Queue(it.build(&chance)),)+
                }
            }
        }
    };
    (@join $first:literal $($name:literal)*) => { concat!($first, $(", ", $name),*) };
}
pub(super) use disciplines;
