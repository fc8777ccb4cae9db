//! Which fleet a token belongs to.
//!
//! In: the fleets that exist ([`Tokens::set`]), and tokens that proxies show. Out: the fleet, or why there is none. The API server
//! says whose a token is (TokenReview, for the [audience](AUDIENCE) of the xDS server alone); the ServiceAccount's namespace and
//! name then name one fleet, because the [name](crate::name) is made of the Gateway's namespace, name and uid.
//!
//! The API server reviews each token once in a while, a few at a time, and fewer of one namespace: whoever forges tokens in the
//! name of a namespace delays nobody else. A token whose own claims already name no fleet is refused without a review.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aws_lc_rs::digest;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use kube::api::{Api, PostParams};
use model::FleetName;
use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use xds::{Authenticating, Authenticator, Fleet, TokenError, VerifiedToken};

use crate::name;
use crate::objects::AUDIENCE;

#[cfg(test)]
mod tests;

/// The longest token that is looked at.
const LONGEST: usize = 16 << 10;
/// How long a review of the API server is valid.
const VALIDITY: Duration = Duration::from_secs(60);
/// How many verified tokens are cached.
const CACHED: usize = 4096;
/// How many tokens are reviewed at once, and how many of them may name the same namespace.
const REVIEWS: usize = 16;
const REVIEWS_PER_NAMESPACE: usize = 4;
/// How long a review may take, with the time that it waits for others.
const TIMEOUT: Duration = Duration::from_secs(8);

/// A ServiceAccount, by its namespace and name.
type Account = (String, String);

/// Verifies tokens.
pub struct Tokens {
    client: kube::Client,
    fleets: RwLock<Fleets>,
    /// Tokens that the API server has verified, by their hash, and until when that is valid.
    verified: Mutex<HashMap<[u8; 32], (Account, Instant)>>,
    reviews: Reviews,
}

/// The fleets that exist, both ways.
#[derive(Default)]
struct Fleets {
    by_account: HashMap<Account, FleetName>,
    accounts: HashMap<FleetName, Account>,
}

/// Bounds the reviews that are in flight, of all namespaces and of each.
struct Reviews {
    all: Semaphore,
    by_namespace: Mutex<HashMap<String, Weak<Semaphore>>>,
}

impl Reviews {
    fn new() -> Self {
        Self { all: Semaphore::new(REVIEWS), by_namespace: Mutex::default() }
    }

    /// Runs a review when it may: one of a namespace that has as many as it may waits for those, and keeps no other namespace's
    /// from running.
    async fn run<T>(&self, namespace: &str, review: impl Future<Output = T>) -> T {
        let of_namespace = self.of(namespace);
        let _of_namespace = of_namespace.acquire().await;
        let _of_all = self.all.acquire().await;
        review.await
    }

    fn of(&self, namespace: &str) -> Arc<Semaphore> {
        let mut namespaces = self.by_namespace.lock();
        if let Some(known) = namespaces.get(namespace).and_then(Weak::upgrade) {
            return known;
        }
        namespaces.retain(|_, semaphore| semaphore.strong_count() > 0);
        let new = Arc::new(Semaphore::new(REVIEWS_PER_NAMESPACE));
        namespaces.insert(namespace.to_owned(), Arc::downgrade(&new));
        new
    }
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").field("fleets", &self.fleets.read().accounts.len()).finish_non_exhaustive()
    }
}

impl Tokens {
    /// Knows no fleet yet.
    pub fn new(client: kube::Client) -> Self {
        Self { client, fleets: RwLock::default(), verified: Mutex::default(), reviews: Reviews::new() }
    }

    /// The Gateway with this uid has a fleet; nothing when it has none any more. Says whether it was another Gateway's before:
    /// then its clients must authenticate again.
    pub fn set(&self, fleet: &FleetName, uid: Option<&str>) -> bool {
        let account = uid.map(|uid| (fleet.namespace.to_string(), name::of(fleet, uid)));
        let mut fleets = self.fleets.write();
        let before = match &account {
            Some(account) => fleets.accounts.insert(fleet.clone(), account.clone()),
            None => fleets.accounts.remove(fleet),
        };
        if before == account {
            return false;
        }
        if let Some(before) = &before {
            fleets.by_account.remove(before);
        }
        fleets.by_account.extend(account.map(|account| (account, fleet.clone())));
        before.is_some()
    }

    async fn check(&self, token: &str) -> Result<VerifiedToken, TokenError> {
        if token.len() > LONGEST {
            return Err(refused("it is too long"));
        }
        let claims = Claims::read(token).ok_or_else(|| refused("it is not a token of a ServiceAccount"))?;
        let fleet = self.fleet(&claims.account)?;
        if claims.expires <= SystemTime::now() {
            return Err(refused("it has expired"));
        }
        let hash = hash(token);
        let known = self.verified.lock().get(&hash).cloned();
        if known.is_none_or(|(account, until)| account != claims.account || until <= Instant::now()) {
            let account = self.review(token, &claims.account).await?;
            // What it says of itself is what the API server has verified.
            if account != claims.account {
                return Err(refused("it belongs to another ServiceAccount than it says"));
            }
            self.cache(hash, account);
        }
        // The fleet may have gone meanwhile.
        self.fleet(&claims.account)?;
        Ok(VerifiedToken { fleet: Fleet::named(&fleet.namespace, &fleet.name), expires: claims.expires })
    }

    fn fleet(&self, account: &Account) -> Result<FleetName, TokenError> {
        let (namespace, name) = account;
        let none = || refused(&format!("the ServiceAccount {namespace}/{name} belongs to no Gateway that is served"));
        self.fleets.read().by_account.get(account).cloned().ok_or_else(none)
    }

    /// The ServiceAccount of a token that claims to be of that one.
    async fn review(&self, token: &str, (namespace, _): &Account) -> Result<Account, TokenError> {
        let review = TokenReview {
            spec: TokenReviewSpec { token: Some(token.to_owned()), audiences: Some(vec![AUDIENCE.to_owned()]) },
            ..TokenReview::default()
        };
        let api = Api::<TokenReview>::all(self.client.clone());
        let params = PostParams::default();
        let reviewed = self.reviews.run(namespace, api.create(&params, &review));
        let late = || TokenError::Unavailable(format!("the API server did not review it within {TIMEOUT:?}"));
        let review = timeout(TIMEOUT, reviewed).await.map_err(|_| late())?;
        let review = review.map_err(|error| TokenError::Unavailable(words(&error)))?;
        let status = review.status.unwrap_or_default();
        if status.authenticated != Some(true) {
            return Err(refused(status.error.as_deref().unwrap_or("the API server does not know it")));
        }
        // An API server that knows nothing of audiences names none.
        if !status.audiences.unwrap_or_default().iter().any(|audience| audience == AUDIENCE) {
            return Err(refused(&format!("it is not for {AUDIENCE}")));
        }
        let user = status.user.and_then(|user| user.username).unwrap_or_default();
        account(&user).ok_or_else(|| refused(&format!("{user} is not a ServiceAccount")))
    }

    fn cache(&self, hash: [u8; 32], account: Account) {
        let now = Instant::now();
        let mut verified = self.verified.lock();
        if verified.len() >= CACHED {
            verified.retain(|_, (_, until)| *until > now);
        }
        if verified.len() >= CACHED {
            verified.clear();
        }
        verified.insert(hash, (account, now + VALIDITY));
    }
}

impl Authenticator for Tokens {
    fn authenticate<'a>(&'a self, token: &'a str) -> Authenticating<'a> {
        Box::pin(self.check(token))
    }
}

fn refused(why: &str) -> TokenError {
    TokenError::Refused(why.to_owned())
}

fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

fn hash(token: &str) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest::digest(&digest::SHA256, token.as_bytes()).as_ref());
    hash
}

/// `system:serviceaccount:<namespace>:<name>`.
fn account(user: &str) -> Option<Account> {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    Some((namespace.to_owned(), name.to_owned()))
}

/// What a token says of itself; nothing here is verified.
struct Claims {
    account: Account,
    expires: SystemTime,
}

impl Claims {
    fn read(token: &str) -> Option<Self> {
        let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
        let claims: Value = serde_json::from_slice(&payload).ok()?;
        let expires = UNIX_EPOCH.checked_add(Duration::from_secs(claims["exp"].as_u64()?))?;
        Some(Self { account: account(claims["sub"].as_str()?)?, expires })
    }
}
