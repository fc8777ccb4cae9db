//! How an endpoint is chosen: the way, and where it goes by a hash, what that is made of.

use crate::{
    Rejection, Work,
    route::{FieldContext, optional},
};
use kinds::{
    Checked,
    http_proxy::route::{LoadBalancerPolicy, RequestHashPolicy, Strategy},
};
use model::{
    Code, FieldPath, HeaderName,
    cluster::LoadBalancing,
    route::{Hash, HashOf, LONGEST_PARAMETER},
};

/// How many parts of a request are hashed: each costs every request, and is compared with those before it.
const MOST_HASHES: usize = 64;
/// The cookie that Contour gives out: clients keep theirs.
const COOKIE: &str = "X-Contour-Session-Affinity";

/// Reads the policy. What is not known, or has nothing to hash, is in turn, as Contour has it, and told.
pub(crate) fn policy<V>(
    work: &mut Work<'_, V>,
    place: &FieldContext<'_>,
    policy: &Checked<Option<Box<LoadBalancerPolicy>>>,
) -> Result<(LoadBalancing, Vec<Hash>), Rejection> {
    let Some(policy) = optional(policy)? else { return Ok(Default::default()) };
    let field = place.field.field("loadBalancerPolicy");
    let mut ignored =
        |name: FieldPath, why: String| work.report(place.subject, Rejection::new(Code::ProxyIgnored, name, why));
    let hashed = matches!(policy.strategy, Some(Strategy::RequestHash));
    if !policy.request_hash_policies.is_empty() && !hashed {
        let why = "the list has no effect without the strategy RequestHash";
        ignored(field.field("requestHashPolicies"), why.to_owned());
    }
    Ok(match &policy.strategy {
        None | Some(Strategy::RoundRobin) => (LoadBalancing::RoundRobin, Vec::new()),
        Some(Strategy::Random) => (LoadBalancing::Random, Vec::new()),
        Some(Strategy::WeightedLeastRequest) => (LoadBalancing::LeastRequest, Vec::new()),
        Some(Strategy::Cookie) => {
            (LoadBalancing::RingHash, vec![Hash { of: HashOf::Cookie(COOKIE.into()), terminal: false }])
        }
        Some(Strategy::RequestHash) => {
            let mut hashes = Vec::new();
            for (index, entry) in policy.request_hash_policies.iter().enumerate() {
                if index == MOST_HASHES {
                    let why = format!("only the first {MOST_HASHES} entries are used");
                    ignored(field.field("requestHashPolicies"), why);
                    break;
                }
                match hash_of(entry) {
                    Ok(of) if hashes.iter().all(|hash: &Hash| hash.of != of) => {
                        hashes.push(Hash { of, terminal: entry.terminal });
                    }
                    Ok(_) => ignored(field.field("requestHashPolicies").index(index), "duplicate policy".into()),
                    Err(why) => ignored(field.field("requestHashPolicies").index(index), why),
                }
            }
            if hashes.is_empty() {
                ignored(
                    field.field("strategy"),
                    "no valid requestHashPolicies entry; RoundRobin is used instead".into(),
                );
                return Ok(Default::default());
            }
            (LoadBalancing::RingHash, hashes)
        }
        Some(Strategy::Unknown(word)) => {
            if !word.is_empty() {
                let why = format!("unknown strategy `{word}`; RoundRobin is used instead");
                ignored(field.field("strategy"), why);
            }
            (LoadBalancing::RoundRobin, Vec::new())
        }
    })
}

fn hash_of(entry: &RequestHashPolicy) -> Result<HashOf, String> {
    match (&entry.header_hash_options, &entry.query_parameter_hash_options, entry.hash_source_ip) {
        (Some(header), None, false) => {
            HeaderName::parse(&header.header_name).map(HashOf::Header).map_err(|error| error.to_string())
        }
        (None, Some(query), false) => {
            let name = query.parameter_name.to_lowercase();
            let fits = (1..=LONGEST_PARAMETER).contains(&name.len());
            if fits { Ok(HashOf::Query(name.into())) } else { Err("the parameter has no name".to_owned()) }
        }
        (None, None, true) => Ok(HashOf::SourceIp),
        _ => Err("exactly one of a header, a query parameter and the client's address must be there".to_owned()),
    }
}
