//! Messages each of which has a connection of the kernel's TCP for itself, so that both ends have their
//! initial congestion windows.

use super::Connection;
use super::carrier::{Carrier, Reply};
use super::connection::{DataStream, TcpEnd};
use super::tcp_carrier::Tcp;
use crate::ProbeError;
use crate::wire::message::FlowSpec;
use std::io;
use trunkline_core::Time;

/// Connections that are opened at once: on a long path one after the other would take long.
const AT_ONCE: u16 = 12;

/// A store of connections that have carried nothing yet.
pub struct Fresh<'a> {
    connection: &'a Connection,
    spec: FlowSpec,
    end: TcpEnd,
    flow: Option<u16>,
    idle: Vec<DataStream>,
    current: Option<Tcp>,
}

impl<'a> Fresh<'a> {
    /// Connections of flows like this one.
    pub fn new(connection: &'a Connection, spec: FlowSpec, end: TcpEnd) -> Fresh<'a> {
        let streams = AT_ONCE.min(connection.limits().streams);
        let spec = FlowSpec { streams, ..spec };
        Fresh { connection, spec, end, flow: None, idle: Vec::new(), current: None }
    }

    fn fill(&mut self) -> Result<(), ProbeError> {
        self.clear()?;
        let flow = self.connection.flow(self.spec.clone())?;
        self.flow = Some(flow);
        self.idle = self.connection.join_all(flow, self.spec.streams, &self.end)?;
        Ok(())
    }

    /// Closes all, so that the server has room for others.
    ///
    /// # Errors
    /// If the server is gone.
    pub fn clear(&mut self) -> Result<(), ProbeError> {
        (self.current, self.idle) = (None, Vec::new());
        self.flow.take().map_or(Ok(()), |flow| self.connection.collect(flow).map(drop))
    }
}

impl Carrier for Fresh<'_> {
    fn send(&mut self, number: u32, size: u32) -> io::Result<Time> {
        self.current = None;
        if self.idle.is_empty() {
            self.fill().map_err(io::Error::other)?;
        }
        let stream = self.idle.pop().ok_or(io::ErrorKind::NotConnected)?;
        self.current.insert(Tcp::over(stream, self.end.window)?).send(number, size)
    }

    fn receive(&mut self, until: Time) -> io::Result<Option<Reply>> {
        let current = self.current.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        current.receive(until)
    }

    fn is_reliable(&self) -> bool {
        true
    }
    fn overhead(&self) -> u32 {
        self.current.as_ref().map_or(0, Carrier::overhead)
    }
    fn is_stamped(&self) -> bool {
        false
    }
    fn is_forged(&self) -> bool {
        self.current.as_ref().is_some_and(Carrier::is_forged)
    }
    fn reading(&self) -> serde_json::Value {
        self.current.as_ref().map_or(serde_json::Value::Null, Carrier::reading)
    }
}
