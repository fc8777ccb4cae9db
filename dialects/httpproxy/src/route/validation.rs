//! Whom to trust behind the TLS connection to a service.

use crate::{
    HttpProxyView, No, Work,
    route::{Place, said},
    tls::secret_id,
};
use kinds::http_proxy::Service;
use model::{
    Code, HeaderValue,
    cluster::{Protocol, Validation},
};

/// The longest name that a certificate can be asked for.
const LONGEST: usize = 250;
/// The most names.
const MOST: usize = 8;

/// Reads the policy. Without TLS there is nobody to trust or not: that is told.
pub(super) fn policy(
    work: &mut Work<'_, impl HttpProxyView>,
    place: &Place<'_>,
    service: &Service,
    spoken: Protocol,
) -> Result<Option<Validation>, No> {
    let Some(policy) = said(&service.validation)? else { return Ok(None) };
    let field = place.field.field("validation");
    if !spoken.is_tls() {
        let why = "it has no effect: the connection to the service is not encrypted";
        work.tell(place.subject, No::new(Code::ProxyIgnored, field, why));
        return Ok(None);
    }
    let no = |name: &str, why: String| No::new(Code::ProxyUpstreamValidation, field.field(name), why);
    let names: Vec<&str> = match &policy.subject_names[..] {
        [] => vec![&policy.subject_name],
        [first, ..] if !policy.subject_name.is_empty() && **first != *policy.subject_name => {
            return Err(no("subjectNames", "the first of subjectNames must be subjectName".to_owned()));
        }
        names => names.iter().map(|name| &**name).collect(),
    };
    let fits = |name: &&str| (1..=LONGEST).contains(&name.len()) && HeaderValue::parse(name).is_ok();
    if names.len() > MOST || !names.iter().all(fits) {
        return Err(no("subjectName", format!("there must be 1 to {MOST} names of 1 to {LONGEST} characters")));
    }
    let namespace = &place.object.meta.namespace;
    let ca = secret_id(namespace, &policy.ca_secret);
    resolve::trusted(work.view, namespace, &ca).map_err(|found| match found.code {
        Code::DelegationMissing => No::new(Code::ProxyCaNotDelegated, field.field("caSecret"), found.why),
        _ => no("caSecret", found.why.into()),
    })?;
    Ok(Some(Validation { ca, names: names.into_iter().map(Into::into).collect() }))
}
