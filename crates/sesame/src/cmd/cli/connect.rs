//! The connection to the xDS server.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Error, Result};
use envoy::name::XDS_SERVER_SANS;
use model::Code;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use crate::problem::{Coded, Problem};

/// The PEM files of the connection.
pub struct Files<'a> {
    pub ca: &'a Path,
    pub certificate: &'a Path,
    pub key: &'a Path,
}

/// Connects; with files over TLS, and then only to a server whose certificate goes by one of its names, whatever the
/// address it is reached by (a forwarded port, say).
pub async fn connect(address: &str, files: Option<Files<'_>>) -> Result<Channel> {
    let scheme = if files.is_some() { "https" } else { "http" };
    let endpoint = Endpoint::from_shared(format!("{scheme}://{address}"))
        .coded(Code::CommandLine, || format!("{address:?} is not HOST:PORT"))?;
    let Some(files) = files else {
        if wants_tls(address).await {
            let why = format!("{}: the server requires TLS; set --cafile, --cert-file and --key-file", cannot(address));
            return Err(Problem::of(Code::ConnectionFailed, why));
        }
        return endpoint.connect().await.coded(Code::ConnectionFailed, || cannot(address));
    };
    let tls = ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(read(files.ca)?))
        .identity(Identity::from_pem(read(files.certificate)?, read(files.key)?));
    let mut failure = Problem::of(Code::ConnectionFailed, cannot(address));
    for name in XDS_SERVER_SANS {
        let endpoint = endpoint
            .clone()
            .tls_config(tls.clone().domain_name(name))
            .coded(Code::CertificateFiles, || "failed to load the TLS files".to_owned())?;
        match endpoint.connect().await {
            Ok(channel) => return Ok(channel),
            Err(error) => {
                let refusal = HandshakeFailure::of(&error);
                let what = match refusal {
                    HandshakeFailure::Plaintext => {
                        format!(
                            "{}: the server does not use TLS; leave out --cafile, --cert-file and --key-file",
                            cannot(address)
                        )
                    }
                    HandshakeFailure::WrongName | HandshakeFailure::Other => cannot(address),
                };
                failure =
                    Err::<(), Error>(error.into()).coded(Code::ConnectionFailed, || what).expect_err("it was an error");
                if refusal != HandshakeFailure::WrongName {
                    break;
                }
            }
        }
    }
    Err(failure)
}

/// What a server answers first to one who does not speak TLS, if it does: an alert.
const ALERT: u8 = 0x15;
/// What HTTP/2 begins with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How long a server may take to answer it.
const ANSWER: Duration = Duration::from_secs(2);

/// Whether a server answers HTTP/2 without TLS with an alert of TLS.
async fn wants_tls(address: &str) -> bool {
    let asked = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(PREFACE).await?;
        stream.read_u8().await
    };
    matches!(tokio::time::timeout(ANSWER, asked).await, Ok(Ok(ALERT)))
}

/// Why there is no TLS connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HandshakeFailure {
    /// The server's certificate was good but for its name.
    WrongName,
    /// The server does not speak TLS.
    Plaintext,
    /// Something else.
    Other,
}

impl HandshakeFailure {
    fn of(error: &tonic::transport::Error) -> Self {
        let mut cause = std::error::Error::source(error);
        while let Some(error) = cause {
            let tls = error
                .downcast_ref::<std::io::Error>()
                .and_then(|error| error.get_ref())
                .and_then(|error| error.downcast_ref::<rustls::Error>())
                .or_else(|| error.downcast_ref::<rustls::Error>());
            use rustls::CertificateError::{NotValidForName, NotValidForNameContext};
            match tls {
                Some(rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. })) => {
                    return HandshakeFailure::WrongName;
                }
                Some(rustls::Error::InvalidMessage(_)) => return HandshakeFailure::Plaintext,
                Some(_) => return HandshakeFailure::Other,
                None => cause = error.source(),
            }
        }
        HandshakeFailure::Other
    }
}

fn cannot(address: &str) -> String {
    format!("cannot connect to {address}")
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).coded(Code::FileNotReadable, || format!("{} cannot be read", path.display()))
}
