//! Two hosts with a path between them that a test may change.

use crate::support::{Host, Running};
use std::process::Command;
use trunkline_core::Span;
use trunkline_dataplane::hosts::{Hosts, inner_devices};
use trunkline_dataplane::{Plan, Session, SessionOptions, SessionThread};
use trunkline_netns::Namespace;
use trunkline_scenario::{PathSpec, Settings};

/// A server and a client host, a path between them, and the server at its far end.
pub struct Between {
    pub host: Host,
    pub hosts: Hosts,
    pub session: Session,
    thread: Option<SessionThread>,
}

impl Between {
    /// Has the machine with a few others at most that mostly wait. Returns nothing if this user may make no laboratory.
    pub fn among_few(path: &str) -> Option<Between> {
        Between::on(Host::among_few(), path)
    }

    /// The same for a test that bears others beside it.
    pub fn beside(path: &str) -> Option<Between> {
        Between::on(Host::beside(), path)
    }

    fn on(host: Host, path: &str) -> Option<Between> {
        host.separate()?;
        let path = spec(path);
        let hosts = Hosts::build(&[path.mtu]).unwrap();
        let (near, far) = inner_devices(0);
        let plan = Plan { name: String::new(), path, namespace: hosts.middle(), near, far };
        let (session, thread) = Session::start(vec![plan], SessionOptions::default()).unwrap();
        Some(Between { host, hosts, session, thread: Some(thread) })
    }

    /// Starts the command on one of the hosts, with a key in its environment.
    pub fn start_in(&self, namespace: &Namespace, arguments: &[&str], key: &str) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
        command.args(arguments).env("TRUNKLINE_KEY", key);
        self.host.start_command_in(namespace, command)
    }

    /// Everything is lost, or nothing more than before.
    pub fn cut(&self, cut: bool) {
        let mut settings = Settings::default();
        settings.add_pair(if cut { "loss=100%" } else { "loss=0%" }).unwrap();
        self.session.change(None, &settings, Span::ZERO).unwrap();
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        self.session.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn spec(path: &str) -> PathSpec {
    let mut settings = Settings::default();
    path.split(' ').for_each(|pair| settings.add_pair(pair).unwrap());
    settings.resolve().unwrap()
}
