//! Making the certificates.
//!
//! In: who and for how long. Out: PEM text. Keys are ECDSA on P-256. Envoy's certificate is for clients only, so that it cannot
//! be used in the server's place. The server's is for servers, and for clients of other replicas, which let it do nothing else.

#[cfg(test)]
pub(crate) mod tests;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model::FleetName;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SanType, SerialNumber,
};
use thiserror::Error;

/// The names of the server; the second is Contour's, whose Envoys then connect unchanged.
const SERVER_NAMES: [&str; 2] = ["sesame", "contour"];
/// The name of Envoys.
const ENVOY_NAME: &str = "envoy";
/// Certificates are valid from a little before they are made, for machines whose clocks are behind.
const SKEW: Duration = Duration::from_secs(3600);

/// Why no certificate could be made.
#[derive(Debug, Error)]
pub enum IssueError {
    /// A name that is not valid in a certificate.
    #[error("the name {0:?} is not valid in a certificate")]
    Name(String, #[source] rcgen::Error),
    /// The cryptographic library refused.
    #[error("the certificate of {0} cannot be made")]
    Crypto(&'static str, #[source] rcgen::Error),
    /// The system has no random numbers.
    #[error("the system's random number generator failed")]
    Random,
}

/// Who the certificates are for, and for how long.
#[derive(Clone, Debug)]
pub struct Request {
    /// Where the server runs: part of the names it is reached by.
    pub namespace: String,
    /// The fleet of the Envoy's certificate; none for the shared fleet.
    pub fleet: Option<FleetName>,
    /// How long they are valid.
    pub lifetime: Duration,
    /// The time at which they are made.
    pub now: SystemTime,
}

/// A set that fits together.
#[derive(Clone, Debug)]
pub struct Certificates {
    /// The CA's certificate, in PEM.
    pub ca: String,
    /// The server's.
    pub server: Pair,
    /// Envoy's.
    pub envoy: Pair,
}

impl Certificates {
    /// Makes a CA, has it sign both, and forgets its key.
    pub fn issue(request: &Request) -> Result<Self, IssueError> {
        let authority = Authority::new(request.now, request.lifetime)?;
        Ok(Self {
            server: authority.server(&request.namespace)?,
            envoy: authority.envoy(&request.namespace, request.fleet.as_ref())?,
            ca: authority.pem(),
        })
    }
}

/// A certificate and its private key, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// Its private key (PKCS#8).
    pub key: String,
}

impl std::fmt::Debug for Pair {
    /// Without the key: it must not reach a log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pair").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// A CA that can sign more certificates.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
    now: SystemTime,
    lifetime: Duration,
}

impl Authority {
    /// Makes a CA that is valid as long as what it signs. Each has a name of its own: two of them may be trusted at once.
    pub fn new(now: SystemTime, lifetime: Duration) -> Result<Self, IssueError> {
        let serial = serial()?;
        let name: String = serial.to_bytes().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        let mut params = params(&format!("sesame CA {name}"), now, lifetime)?;
        params.serial_number = Some(serial);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = key("the CA")?;
        let certificate = params.self_signed(&key).map_err(|error| IssueError::Crypto("the CA", error))?.pem();
        Ok(Self { issuer: Issuer::new(params, key), certificate, now, lifetime })
    }

    /// A CA that was made before, whose certificates are valid from now for that long.
    pub fn load(pair: &Pair, now: SystemTime, lifetime: Duration) -> Result<Self, IssueError> {
        let failed = |error| IssueError::Crypto("the CA", error);
        let key = KeyPair::from_pem(&pair.key).map_err(failed)?;
        let issuer = Issuer::from_ca_cert_pem(&pair.certificate, key).map_err(failed)?;
        Ok(Self { issuer, certificate: pair.certificate.clone(), now, lifetime })
    }

    /// The CA's certificate.
    pub fn pem(&self) -> String {
        self.certificate.clone()
    }

    /// The CA's certificate and its key.
    pub fn pair(&self) -> Pair {
        Pair { certificate: self.pem(), key: self.issuer.key().serialize_pem() }
    }

    /// A certificate for the server in this namespace, by every name it may be reached by.
    pub fn server(&self, namespace: &str) -> Result<Pair, IssueError> {
        let names = SERVER_NAMES.iter().flat_map(|name| service_names(name, namespace));
        let sans = names.map(dns).collect::<Result<_, _>>()?;
        let purposes = [ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        self.sign("the server", SERVER_NAMES[0], sans, &purposes)
    }

    /// A certificate for an Envoy; with a fleet, one of that fleet.
    pub fn envoy(&self, namespace: &str, fleet: Option<&FleetName>) -> Result<Pair, IssueError> {
        let mut sans: Vec<SanType> =
            service_names(ENVOY_NAME, namespace).into_iter().map(dns).collect::<Result<_, _>>()?;
        if let Some(fleet) = fleet {
            let uri = fleet_uri(fleet);
            let name = uri.clone().try_into().map_err(|error| IssueError::Name(uri, error))?;
            sans.push(SanType::URI(name));
        }
        self.sign("Envoy", ENVOY_NAME, sans, &[ExtendedKeyUsagePurpose::ClientAuth])
    }

    /// A certificate for a host that clients ask for, which may begin with `*.`.
    pub fn host(&self, name: &str) -> Result<Pair, IssueError> {
        let sans = vec![dns(name.to_owned())?];
        self.sign("a host", name, sans, &[ExtendedKeyUsagePurpose::ServerAuth])
    }

    fn sign(
        &self,
        whose: &'static str,
        common_name: &str,
        sans: Vec<SanType>,
        purposes: &[ExtendedKeyUsagePurpose],
    ) -> Result<Pair, IssueError> {
        let mut params = params(common_name, self.now, self.lifetime)?;
        params.subject_alt_names = sans;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = purposes.to_vec();
        params.use_authority_key_identifier_extension = true;
        params.is_ca = IsCa::ExplicitNoCa;
        let key = key(whose)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(|error| IssueError::Crypto(whose, error))?.pem();
        Ok(Pair { certificate, key: key.serialize_pem() })
    }
}

/// The identity of a fleet.
pub fn fleet_uri(fleet: &FleetName) -> String {
    format!("spiffe://sesame/fleet/{fleet}")
}

fn key(whose: &'static str) -> Result<KeyPair, IssueError> {
    KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(|error| IssueError::Crypto(whose, error))
}

fn params(common_name: &str, now: SystemTime, lifetime: Duration) -> Result<CertificateParams, IssueError> {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let at = |time: SystemTime| epoch + time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "Sesame");
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.not_before = at(now - SKEW);
    params.not_after = at(now + lifetime);
    params.serial_number = Some(serial()?);
    Ok(params)
}

/// A positive number of 16 random bytes.
fn serial() -> Result<SerialNumber, IssueError> {
    let mut bytes = [0; 16];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| IssueError::Random)?;
    bytes[0] = bytes[0] & 0x7f | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}

/// The names of a Service inside a cluster.
fn service_names(service: &str, namespace: &str) -> [String; 4] {
    [
        service.to_owned(),
        format!("{service}.{namespace}"),
        format!("{service}.{namespace}.svc"),
        format!("{service}.{namespace}.svc.cluster.local"),
    ]
}

fn dns(name: String) -> Result<SanType, IssueError> {
    match name.clone().try_into() {
        Ok(text) => Ok(SanType::DnsName(text)),
        Err(error) => Err(IssueError::Name(name, error)),
    }
}
