//! The constraints that shared media put on a traffic: taking turns, rates, the queues of stations.

use crate::candidates::{Candidate, Ground, candidate, join};
use crate::constraint::Constraint;
use crate::lines::overflows;
use crate::relax::Relaxation;
use trunkline_engine::Run;
use trunkline_measure::LinkRun;
use trunkline_path::MediumSpec;

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
        let rungs = some.then(|| ("at no cost".into(), Relaxation::Turns { media }));
        candidate(Constraint::Turns, place, kinds, rungs.into_iter().collect())
    }

    /// The rates of media. What another rate is at odds with is not tried: the slot of CSMA/CD with the distance.
    pub(crate) fn medium_rate(&self) -> Option<Candidate> {
        let media = self.media_with(|spec| spec.rate.is_some());
        let rates = media.iter().filter_map(|&at| self.scenario.media[at].spec.rate);
        let slowest = rates.min()?;
        let fits = |factor: u32| {
            media.iter().all(|&at| self.scenario.media[at].spec.faster(factor).check().is_ok())
        };
        let rung = |(factor, name): (u32, &str)| {
            (name.to_string(), Relaxation::MediumRate { media: media.clone(), factor })
        };
        let steps = [(2, "2 times"), (10, "10 times")].into_iter().filter(|step| fits(step.0));
        let rungs = steps.map(rung).collect();
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
        let first = &self.scenario.media[*media.first()?].spec;
        let buffers = first.unlimited(0).access != first.access;
        let own = if buffers { ", or buffers of its own" } else { "" };
        let now = format!("{} at each station{own}", first.discipline.limit());
        let place = self.names_of_media(&media);
        let rungs = vec![("no limit".into(), Relaxation::Stations { media })];
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
