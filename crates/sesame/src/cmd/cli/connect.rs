//! The connection to the xDS server.

use std::fs;
use std::path::Path;

use anyhow::{Error, Result};
use envoy::name::XDS_SERVER_SANS;
use model::Code;
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
                let is_name = is_wrong_name(&error);
                failure = Err::<(), Error>(error.into())
                    .coded(Code::ConnectionFailed, || cannot(address))
                    .expect_err("it was an error");
                if !is_name {
                    break;
                }
            }
        }
    }
    Err(failure)
}

/// Whether the server's certificate was good but for its name.
fn is_wrong_name(error: &tonic::transport::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let tls = error
            .downcast_ref::<std::io::Error>()
            .and_then(|error| error.get_ref())
            .and_then(|error| error.downcast_ref::<rustls::Error>())
            .or_else(|| error.downcast_ref::<rustls::Error>());
        if let Some(rustls::Error::InvalidCertificate(error)) = tls {
            use rustls::CertificateError::{NotValidForName, NotValidForNameContext};
            return matches!(error, NotValidForName | NotValidForNameContext { .. });
        }
        cause = error.source();
    }
    false
}

fn cannot(address: &str) -> String {
    format!("cannot connect to {address}")
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).coded(Code::FileNotReadable, || format!("{} cannot be read", path.display()))
}
