//! The far host's listeners and the redirections that lead to them.

use crate::flows::{DatagramService, Ways};
use crate::names::{self, NameService, Own};
use crate::relay::{Once, Service, pass_on, reset, want_of_files};
use crate::{Entry, Tell};
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, ipproto, listen, socket_with, sockopt,
};
use std::io;
use std::net::{
    IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, TcpListener, TcpStream, UdpSocket,
};
use std::sync::Arc;
use trunkline_netns::{
    Destination, IpNet, LabError, Namespace, Redirection, Redirections, TakenIn, Transport,
    original_destination, set_transparent, tell_destinations,
};

/// The name of the table of nf_tables in the far host.
const TABLE: &str = "tl-gateway";
/// The same for datagrams.
const DATAGRAMS: &str = "tl-gateway-udp";
/// The connections of the far host's listeners.
const SERVED: &str = "host.trunkline and the world outside";
/// Connections that wait to be accepted.
const WAITING: i32 = 128;

/// The families whose connections to the world outside are made by this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Beyond {
    /// IPv4: where the machine does not pass packets on.
    pub v4: bool,
    /// IPv6.
    pub v6: bool,
}

/// The laboratory that a gateway is for.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The far host's device, by which connections come.
    pub device: &'static str,
    /// The address by which programs reach this machine.
    pub machine: Ipv4Addr,
    /// The same of IPv6, if the laboratory has that.
    pub machine6: Option<Ipv6Addr>,
    /// The laboratory's own addresses: its IPv4 and its IPv6 network.
    pub own: (IpNet, IpNet),
    /// What else is passed on.
    pub beyond: Beyond,
    /// The domain of the laboratory's names, which no server outside is asked for.
    pub domain: &'static str,
}

/// The reason why there is no gateway.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The kernel cannot redirect connections.
    #[error(
        "the kernel cannot redirect connections ({0}): load the modules nf_tables, nft_chain_nat, nft_redir and nf_conntrack"
    )]
    NoRedirection(LabError),
    /// The kernel cannot hand datagrams to a socket.
    #[error("the kernel cannot take datagrams in ({0}): load the module nft_tproxy")]
    NoDatagrams(LabError),
    /// The far host cannot be entered.
    #[error(transparent)]
    Laboratory(#[from] LabError),
    /// There is no room for threads or sockets.
    #[error("cannot open the gateway's sockets: {0}")]
    Sockets(#[from] io::Error),
}

/// A gateway at work, until this is dropped.
#[derive(Debug)]
pub struct Gateway {
    ports: Vec<u16>,
    _redirections: Redirections,
    _services: Vec<Service>,
    _names: NameService,
    datagrams: Result<Datagrams, GatewayError>,
}

/// What takes datagrams in.
#[derive(Debug)]
struct Datagrams {
    ports: Vec<u16>,
    _taken_in: Redirections,
    _services: Vec<DatagramService>,
}

impl Gateway {
    /// Opens a gateway in the host `far`, which must have the addresses of `settings`. It answers for the names of
    /// `entries`. `tell` gets a line for each place that could not be reached.
    ///
    /// # Errors
    /// If the kernel cannot redirect connections, or there is no room for threads and sockets.
    pub fn open(
        far: &Namespace,
        settings: Settings,
        entries: &[Entry],
        tell: &Tell,
    ) -> Result<Gateway, GatewayError> {
        let listener = far.run(|| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))??;
        let questions = far.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))??;
        let listener6 = match settings.machine6 {
            Some(_) => Some(far.run(listener6)??),
            None => None,
        };
        let at = listener.local_addr()?.port();
        let at6 = listener6.as_ref().map(TcpListener::local_addr).transpose()?;
        let at6 = at6.map(|address| address.port());
        let names_at = questions.local_addr()?.port();
        let list = settings.redirections(at, at6, names_at);
        let redirections =
            Redirections::create(far, TABLE, &list).map_err(GatewayError::NoRedirection)?;
        let own = Own { domain: settings.domain, entries: entries.to_vec() };
        let serve = |listener| {
            let once = Arc::new(Once::default());
            let (tell, noted, note) = (tell.clone(), Arc::clone(&once), tell.clone());
            let note = move |line: &str| noted.tell(&note, format!("{SERVED}: {line}"));
            Service::start(listener, note, move |client| settings.serve(&client, &once, &tell))
        };
        let services = [Some(listener), listener6].into_iter().flatten().map(serve);
        Ok(Gateway {
            ports: [Some(at), at6, Some(names_at)].into_iter().flatten().collect(),
            _redirections: redirections,
            _services: services.collect::<io::Result<_>>()?,
            _names: NameService::start(questions, own)?,
            datagrams: Datagrams::open(far, settings, tell),
        })
    }

    /// The far host's ports that are the gateway's own.
    pub fn ports(&self) -> Vec<u16> {
        let datagrams = self.datagrams.iter().flat_map(|it| it.ports.iter());
        self.ports.iter().chain(datagrams).copied().collect()
    }

    /// The reason why datagrams are not passed on, if they are not.
    pub fn without_datagrams(&self) -> Option<&GatewayError> {
        self.datagrams.as_ref().err()
    }
}

impl Datagrams {
    fn open(far: &Namespace, settings: Settings, tell: &Tell) -> Result<Datagrams, GatewayError> {
        let listeners = far.run(|| settings.datagram_listeners())??;
        let mut ports = Vec::new();
        for listener in &listeners {
            ports.push(listener.local_addr()?.port());
        }
        for (v6, beyond) in [(false, settings.beyond.v4), (true, settings.beyond.v6)] {
            if beyond {
                far.deliver_datagrams(settings.device, v6)?;
            }
        }
        let list = settings.taken_in(&ports);
        let taken_in =
            Redirections::take_in(far, DATAGRAMS, &list).map_err(GatewayError::NoDatagrams)?;
        let serve = |listener| {
            let ways = Beside { far: far.clone(), settings };
            DatagramService::start(listener, ways, tell.clone())
        };
        let services = listeners.into_iter().map(serve).collect::<io::Result<_>>()?;
        Ok(Datagrams { ports, _taken_in: taken_in, _services: services })
    }
}

/// The ways of datagrams that the far host takes in.
struct Beside {
    far: Namespace,
    settings: Settings,
}

impl Ways for Beside {
    fn places(&self, to: SocketAddr) -> Vec<SocketAddr> {
        match self.settings.target(to) {
            Target::Machine(port) => loopback(port).into(),
            Target::NameServer => names::servers(),
            Target::Elsewhere(to) => vec![to],
            Target::Laboratory => Vec::new(),
        }
    }

    fn front(&self) -> Option<&Namespace> {
        Some(&self.far)
    }

    fn back(&self) -> Option<&Namespace> {
        None
    }

    fn refused(&self, to: SocketAddr, error: &io::Error) -> Option<String> {
        self.settings.target(to).unreached("/udp", error)
    }
}

/// The places at which a server that listens at `localhost` listens.
fn loopback(port: u16) -> [SocketAddr; 2] {
    [(Ipv4Addr::LOCALHOST, port).into(), (Ipv6Addr::LOCALHOST, port).into()]
}

/// A listener for IPv6 alone: connections of IPv4 tell their destination otherwise.
fn listener6() -> io::Result<TcpListener> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET6, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    sockopt::set_ipv6_v6only(&socket, true)?;
    bind(&socket, &SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, 0, 0, 0))?;
    listen(&socket, WAITING)?;
    Ok(socket.into())
}

/// The place that a connection is passed on to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    /// A port of this machine.
    Machine(u16),
    /// The machine's name server.
    NameServer,
    /// A place in the world outside.
    Elsewhere(SocketAddr),
    /// A host of the laboratory: nothing that was redirected goes there.
    Laboratory,
}

impl Settings {
    fn redirections(&self, at: u16, at6: Option<u16>, names_at: u16) -> Vec<Redirection> {
        let tcp = |to, taken_at| Redirection {
            device: Some(self.device),
            transport: Transport::Tcp,
            to,
            port: None,
            taken_at,
        };
        let machine = only(self.machine.into());
        let names = Redirection {
            transport: Transport::Udp,
            port: Some(names::PORT),
            ..tcp(machine, names_at)
        };
        // The far host's own programs reach the machine too.
        let own = |one| Redirection { device: None, ..one };
        let mut list = vec![tcp(machine, at), names, own(tcp(machine, at)), own(names)];
        list.extend(self.beyond.v4.then(|| tcp(Destination::NotIn(self.own.0), at)));
        if let (Some(machine6), Some(at6)) = (self.machine6, at6) {
            list.push(tcp(only(machine6.into()), at6));
            list.extend(self.beyond.v6.then(|| tcp(Destination::NotIn(self.own.1), at6)));
        }
        list
    }

    /// Sockets for datagrams of IPv4 and, if the laboratory has that, IPv6, in the calling thread's namespace.
    fn datagram_listeners(&self) -> io::Result<Vec<UdpSocket>> {
        let v6 = self.machine6.map(|_| Ipv6Addr::UNSPECIFIED.into());
        let families: [Option<IpAddr>; 2] = [Some(Ipv4Addr::UNSPECIFIED.into()), v6];
        let open = |any: IpAddr| {
            let socket = UdpSocket::bind((any, 0))?;
            set_transparent(&socket, any.is_ipv6())?;
            tell_destinations(&socket, any.is_ipv6())?;
            Ok(socket)
        };
        families.into_iter().flatten().map(open).collect()
    }

    /// What is taken in by the sockets at `ports`, of which the second is for IPv6.
    fn taken_in(&self, ports: &[u16]) -> Vec<TakenIn> {
        let machines = [Some(self.machine.into()), self.machine6.map(IpAddr::from)];
        let beyond = [self.beyond.v4.then_some(self.own.0), self.beyond.v6.then_some(self.own.1)];
        let mut list = Vec::new();
        for ((machine, own), &taken_at) in machines.into_iter().flatten().zip(beyond).zip(ports) {
            let arriving = TakenIn { device: Some(self.device), to: only(machine), taken_at };
            list.extend([arriving, TakenIn { device: None, ..arriving }]);
            list.extend(own.map(|own| TakenIn { to: Destination::NotIn(own), ..arriving }));
        }
        list
    }

    fn target(&self, to: SocketAddr) -> Target {
        let machine = to.ip() == self.machine || self.machine6.is_some_and(|it| to.ip() == it);
        match to.port() {
            names::PORT if machine => Target::NameServer,
            port if machine => Target::Machine(port),
            _ if self.own.0.contains(to.ip()) || self.own.1.contains(to.ip()) => Target::Laboratory,
            _ => Target::Elsewhere(to),
        }
    }

    fn serve(&self, client: &TcpStream, once: &Once, tell: &Tell) {
        let to = match original_destination(client) {
            Ok(to) => self.target(to),
            Err(error) => {
                tracing::warn!("nobody knows whom a connection was for: {error}");
                return reset(client);
            }
        };
        match to.connect() {
            Ok(server) => pass_on(client, &server),
            Err(error) => {
                reset(client);
                match to.unreached("", &error) {
                    Some(line) => once.tell(tell, line),
                    None => tracing::debug!(%error, ?to, "not reached"),
                }
            }
        }
    }
}

impl Target {
    fn connect(self) -> io::Result<TcpStream> {
        match self {
            Target::Machine(port) => {
                let [v4, v6] = loopback(port);
                TcpStream::connect(v4).or_else(|_| TcpStream::connect(v6))
            }
            Target::NameServer => names::connect(),
            Target::Elsewhere(to) => TcpStream::connect(to),
            Target::Laboratory => Err(io::ErrorKind::ConnectionRefused.into()),
        }
    }

    /// A line for the person at the terminal, if the place is one of this machine's: that the world outside refuses
    /// connections is the program's to tell.
    fn unreached(self, transport: &str, error: &io::Error) -> Option<String> {
        if let Some(line) = want_of_files(error) {
            return Some(format!("{SERVED}: {line}"));
        }
        match self {
            Target::Machine(port) => Some(format!(
                "host.trunkline:{port}{transport}: nothing answers on this machine at 127.0.0.1:{port} or [::1]:{port} ({error})"
            )),
            Target::NameServer => {
                let by = if transport.is_empty() { "TCP" } else { "UDP" };
                Some(format!("no name server of this machine answers by {by} ({error})"))
            }
            Target::Elsewhere(_) | Target::Laboratory => None,
        }
    }
}

/// One address.
fn only(address: IpAddr) -> Destination {
    let bits = if address.is_ipv4() { 32 } else { 128 };
    Destination::In(IpNet::new(address, bits).expect("the whole address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings {
            device: "tl0",
            machine: Ipv4Addr::new(10, 77, 0, 254),
            machine6: Some("fd00:746c::fe".parse().unwrap()),
            own: ("10.77.0.0/16".parse().unwrap(), "fd00:746c::/32".parse().unwrap()),
            beyond: Beyond { v4: true, v6: true },
            domain: "lab",
        }
    }

    #[test]
    fn places_are_told_apart() {
        let target = |text: &str| settings().target(text.parse().unwrap());
        assert_eq!(target("10.77.0.254:3000"), Target::Machine(3000));
        assert_eq!(target("[fd00:746c::fe]:3000"), Target::Machine(3000));
        assert_eq!(target("10.77.0.254:53"), Target::NameServer);
        assert_eq!(target("10.77.0.1:4000"), Target::Laboratory);
        assert_eq!(target("[fd00:746c::1]:4000"), Target::Laboratory);
        let elsewhere = "192.0.2.1:53".parse().unwrap();
        assert_eq!(target("192.0.2.1:53"), Target::Elsewhere(elsewhere));
    }

    #[test]
    fn want_of_files_is_not_blamed_on_the_server() {
        let told = |error| Target::Machine(80).unreached("", &io::Error::from_raw_os_error(error));
        assert!(told(24).unwrap().contains("ulimit -n"), "{:?}", told(24));
        assert!(told(111).unwrap().contains("nothing answers"), "{:?}", told(111));
    }

    #[test]
    fn only_what_is_asked_for_is_taken_in() {
        let all = settings().redirections(1, Some(2), 3);
        assert_eq!(all.len(), 7);
        let little = Settings { beyond: Beyond::default(), machine6: None, ..settings() };
        let list = little.redirections(1, None, 3);
        assert!(list.iter().all(|one| one.to == only(little.machine.into())), "{list:?}");
        assert_eq!(settings().taken_in(&[1, 2]).len(), 6);
        let list = little.taken_in(&[1]);
        assert!(list.iter().all(|one| one.to == only(little.machine.into())), "{list:?}");
    }
}
