//! A file over QUIC (crate `quinn`, TLS 1.3 by `rustls` and `ring`), from one process to another: what a small mover on a QUIC
//! stack costs. The receiver proves itself by a certificate that it makes; nothing is hashed.

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use quinn::congestion::{BbrConfig, CubicConfig};
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// The name in the certificate.
const NAME: &str = "localhost";
/// The certificate, and the port when the receiver listens, in the directory that both ends share.
const CERTIFICATE: &str = "certificate";
const PORT: &str = "port";
/// Octets that are read from the file and handed over at once.
const PIECE: usize = 256 << 10;
/// Octets under way at most: more than loopback needs.
const WINDOW: u32 = 16 << 20;

/// How long either end may be silent: longer than the outages of `make peers`.
const SILENCE: Duration = Duration::from_secs(120);

/// What a receiver is told.
#[derive(Debug, Args)]
pub struct Receive {
    /// Where the file goes, and the certificate and the address for the sender
    directory: PathBuf,
    /// Listen at this address
    #[arg(long, default_value_t = Ipv4Addr::LOCALHOST)]
    bind: Ipv4Addr,
}

/// What a sender is told.
#[derive(Debug, Args)]
pub struct Send {
    /// The receiver's directory
    directory: PathBuf,
    file: PathBuf,
    #[arg(long, value_enum, default_value_t = Congestion::Cubic)]
    congestion: Congestion,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Congestion {
    Cubic,
    Bbr,
}

fn runtime() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

fn transport(congestion: Congestion) -> Result<Arc<TransportConfig>> {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(SILENCE.try_into()?));
    match congestion {
        Congestion::Cubic => {
            transport.congestion_controller_factory(Arc::new(CubicConfig::default()))
        }
        Congestion::Bbr => transport.congestion_controller_factory(Arc::new(BbrConfig::default())),
    };
    transport.stream_receive_window(WINDOW.into()).receive_window(WINDOW.into());
    transport.send_window(WINDOW.into());
    Ok(Arc::new(transport))
}

/// Receives one file into the directory, where it leaves its certificate and its port.
pub fn receive(Receive { directory, bind }: &Receive) -> Result<()> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    fs::write(directory.join(CERTIFICATE), made.cert.der())?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut config = ServerConfig::with_single_cert(vec![made.cert.der().clone()], key.into())?;
    // It sends next to nothing.
    config.transport_config(transport(Congestion::Cubic)?);
    runtime()?.block_on(async {
        let endpoint = Endpoint::server(config, (*bind, 0).into())?;
        // Whole or not there: the sender waits for it.
        let unfinished = directory.join("port.new");
        fs::write(&unfinished, endpoint.local_addr()?.to_string())?;
        fs::rename(unfinished, directory.join(PORT))?;
        let connection = endpoint.accept().await.context("nobody came")?.await?;
        let mut stream = connection.accept_uni().await?;
        let mut file = File::create(directory.join("received"))?;
        while let Some(chunk) = stream.read_chunk(PIECE, true).await? {
            file.write_all(&chunk.bytes)?;
        }
        connection.closed().await;
        Ok(())
    })
}

/// Sends the file to the receiver that listens in the directory, and waits until all of it is acknowledged.
pub fn send(Send { directory, file, congestion }: &Send) -> Result<()> {
    let to: SocketAddr = fs::read_to_string(directory.join(PORT))?.parse()?;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(fs::read(directory.join(CERTIFICATE))?))?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(transport(*congestion)?);
    runtime()?.block_on(async {
        let endpoint = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into())?;
        let connection = endpoint.connect_with(config, to, NAME)?.await?;
        let mut stream = connection.open_uni().await?;
        let (mut file, mut piece) = (File::open(file)?, vec![0; PIECE]);
        loop {
            let length = file.read(&mut piece)?;
            if length == 0 {
                break;
            }
            stream.write_all(&piece[..length]).await?;
        }
        stream.finish()?;
        stream.stopped().await?;
        connection.close(0u8.into(), b"");
        endpoint.wait_idle().await;
        Ok(())
    })
}
