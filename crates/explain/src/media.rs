//! The constraints that shared media put on a traffic: taking turns, rates, the queues of stations.

use crate::candidates::{Candidate, Ground, candidate, join};
use crate::constraint::Constraint;
use crate::lines::overflows;
use crate::relax::{NO_LIMIT, PRACTICALLY_NOTHING, Relaxation, part};
use trunkline_engine::Run;
use trunkline_measure::LinkRun;
use trunkline_path::MediumSpec;

/// One thing made better of a medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediumEase {
    /// Taking turns costs nothing.
    Turns,
    /// It is so many times as fast.
    Rate(u32),
    /// It is a thousandth as long.
    Distance,
    /// Its queues and buffers hold whatever comes.
    Limits,
}

impl MediumEase {
    pub(crate) fn apply(self, medium: &mut MediumSpec) {
        match self {
            MediumEase::Turns => {
                *medium = medium.without_turns().unwrap_or_else(|| medium.clone());
            }
            MediumEase::Rate(times) => *medium = medium.faster(times),
            MediumEase::Distance => medium.delay = part(medium.delay, PRACTICALLY_NOTHING),
            MediumEase::Limits => *medium = medium.unlimited(NO_LIMIT),
        }
    }

    /// Twice and ten times as fast. What another rate is at odds with is left out: the slot of CSMA/CD with the distance.
    pub(crate) fn rates(media: &[&MediumSpec]) -> Vec<(String, MediumEase)> {
        let fits = |times: &u32| media.iter().all(|spec| spec.faster(*times).check().is_ok());
        let step = |times| (format!("{times} times"), MediumEase::Rate(times));
        [2, 10].into_iter().filter(fits).map(step).collect()
    }
}

/// The limits of a medium's queues, and whether it has others.
pub(crate) fn limits(medium: &MediumSpec) -> String {
    let own = medium.unlimited(0).access != medium.access;
    let own = if own { ", or buffers of its own" } else { "" };
    format!("{} at each station{own}", medium.discipline.limit())
}

impl Ground<'_> {
    /// Those of the media crossed of which something holds.
    pub(crate) fn media_with(&self, holds: impl Fn(&MediumSpec) -> bool) -> Vec<usize> {
        self.media.iter().copied().filter(|&at| holds(&self.scenario.media[at].spec)).collect()
    }

    fn names_of_media(&self, media: &[usize]) -> String {
        join(media.iter().map(|&at| self.scenario.media[at].name.as_str()))
    }

    /// What taking turns costs.
    pub(crate) fn turns(&self) -> Option<Candidate> {
        let media = self.media_with(|spec| spec.without_turns().is_some());
        let kinds = join(media.iter().map(|&at| self.scenario.media[at].spec.access.kind()));
        let place = self.names_of_media(&media);
        let some = !media.is_empty();
        let rungs = some
            .then(|| ("at no cost".into(), Relaxation::Media { media, ease: MediumEase::Turns }));
        candidate(Constraint::Turns, place, kinds, rungs.into_iter().collect())
    }

    /// The rates of media.
    pub(crate) fn medium_rate(&self) -> Option<Candidate> {
        let media = self.media_with(|spec| spec.rate.is_some());
        let specs: Vec<_> = media.iter().map(|&at| &self.scenario.media[at].spec).collect();
        let slowest = specs.iter().filter_map(|spec| spec.rate).min()?;
        let rung = |(to, ease)| (to, Relaxation::Media { media: media.clone(), ease });
        let rungs = MediumEase::rates(&specs).into_iter().map(rung).collect();
        let place = self.names_of_media(&media);
        candidate(Constraint::MediumRate, place, slowest.to_string(), rungs)
    }

    /// Queues of stations that overflow, whoever fills them.
    pub(crate) fn station_limit(&self) -> Option<Candidate> {
        let media: Vec<usize> = self
            .media
            .iter()
            .copied()
            .filter(|&at| stations_overflow(self.run, &self.scenario.media[at].name))
            .collect();
        let now = limits(&self.scenario.media[*media.first()?].spec);
        let place = self.names_of_media(&media);
        let rungs =
            vec![("no limit".into(), Relaxation::Media { media, ease: MediumEase::Limits })];
        candidate(Constraint::QueueLimit, place, now, rungs)
    }
}

/// Whether a station of the medium or cluster of this name, or that itself, gave up anything for want of room.
pub(crate) fn stations_overflow(run: &Run, name: &str) -> bool {
    let is_of = |row: &LinkRun| {
        row.name.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('>'))
    };
    run.links.iter().any(|row| overflows(row) && is_of(row))
}
