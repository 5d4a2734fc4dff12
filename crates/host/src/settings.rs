//! From a scenario's transport to the settings of its protocol.

use trunkline_scenario::{Echo, UrpSettings};
use trunkline_transport::urp::{self, Profile, Settings};

/// Settings of URP on an interface that answers for blocks as `echo` says. Workloads need the ends of their messages, so
/// that modes without trailers carry them too.
///
/// # Errors
/// That there is no such profile, and which there are.
pub fn urp_settings(settings: &UrpSettings, echo: Echo) -> Result<Settings, String> {
    let profile: Profile = settings.profile.parse().map_err(|error| format!("{error}"))?;
    let echo = match echo {
        Echo::Arrival => urp::Echo::Acceptance,
        Echo::Posted | Echo::Consumption => urp::Echo::Consumption,
    };
    Ok(Settings {
        mode: settings.mode,
        eot: true,
        block: settings.block,
        outstanding: settings.outstanding,
        timeout: settings.timeout,
        echo,
        ..Settings::of(profile)
    })
}
