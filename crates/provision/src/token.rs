//! Which fleet a token proves.
//!
//! In: the fleets that exist ([`Tokens::set`]), and tokens that proxies show. Out: the fleet, or why there is none. The API server
//! says whose a token is (TokenReview, for the [audience](AUDIENCE) of the xDS server alone); the ServiceAccount's namespace and
//! name then name one fleet, because the [name](crate::name) is made of the Gateway's namespace, name and uid.
//!
//! The API server is asked once in a while for each token, by a few requests at a time. A token whose own words already name no
//! fleet is refused without asking, so that a stranger costs nothing.

use std::collections::HashMap;
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
use xds::{Authenticating, Authenticator, Fleet, TokenError, TokenProof};

use crate::name;
use crate::objects::AUDIENCE;

/// The longest token that is looked at.
const LONGEST: usize = 16 << 10;
/// How long what the API server said about a token is believed.
const BELIEVED: Duration = Duration::from_secs(60);
/// How many tokens are remembered.
const REMEMBERED: usize = 4096;
/// How many tokens the API server is asked about at once, and how long one may take.
const CONCURRENT: usize = 16;
const PATIENCE: Duration = Duration::from_secs(8);

/// A ServiceAccount, by its namespace and name.
type Account = (String, String);

/// What is known about tokens.
pub struct Tokens {
    client: kube::Client,
    fleets: RwLock<HashMap<Account, FleetName>>,
    /// Tokens that the API server has vouched for, by their hash, and until when that is believed.
    vouched: Mutex<HashMap<[u8; 32], (Account, Instant)>>,
    asking: Semaphore,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").field("fleets", &self.fleets.read().len()).finish_non_exhaustive()
    }
}

impl Tokens {
    /// Knows no fleet yet.
    pub fn new(client: kube::Client) -> Self {
        Self { client, fleets: RwLock::default(), vouched: Mutex::default(), asking: Semaphore::new(CONCURRENT) }
    }

    /// The Gateway with this uid has a fleet; nothing when it has none any more. Says whether it was another Gateway's before:
    /// then its clients must prove again who they are.
    pub fn set(&self, fleet: &FleetName, uid: Option<&str>) -> bool {
        let account = uid.map(|uid| (fleet.namespace.to_string(), name::of(fleet, uid)));
        let mut fleets = self.fleets.write();
        let before: Vec<Account> =
            fleets.iter().filter(|(_, known)| *known == fleet).map(|(account, _)| account.clone()).collect();
        if account.as_ref().is_some_and(|account| before.contains(account)) {
            return false;
        }
        before.iter().for_each(|account| _ = fleets.remove(account));
        fleets.extend(account.map(|account| (account, fleet.clone())));
        !before.is_empty()
    }

    async fn check(&self, token: &str) -> Result<TokenProof, TokenError> {
        if token.len() > LONGEST {
            return Err(refused("it is too long"));
        }
        let claims = Claims::read(token).ok_or_else(|| refused("it is not a token of a ServiceAccount"))?;
        let fleet = self.fleet(&claims.account)?;
        if claims.expires <= SystemTime::now() {
            return Err(refused("it has expired"));
        }
        let hash = hash(token);
        let known = self.vouched.lock().get(&hash).cloned();
        if known.is_none_or(|(account, until)| account != claims.account || until <= Instant::now()) {
            let account = self.ask(token).await?;
            // What it says of itself is what the API server has verified.
            if account != claims.account {
                return Err(refused("it belongs to another ServiceAccount than it says"));
            }
            self.remember(hash, account);
        }
        // The fleet may have gone meanwhile.
        self.fleet(&claims.account)?;
        Ok(TokenProof { fleet: Fleet::named(&fleet.namespace, &fleet.name), expires: claims.expires })
    }

    fn fleet(&self, account: &Account) -> Result<FleetName, TokenError> {
        let (namespace, name) = account;
        let none = || refused(&format!("the ServiceAccount {namespace}/{name} belongs to no Gateway that is served"));
        self.fleets.read().get(account).cloned().ok_or_else(none)
    }

    async fn ask(&self, token: &str) -> Result<Account, TokenError> {
        let review = TokenReview {
            spec: TokenReviewSpec { token: Some(token.to_owned()), audiences: Some(vec![AUDIENCE.to_owned()]) },
            ..TokenReview::default()
        };
        let asking = async {
            let _permit = self.asking.acquire().await;
            Api::<TokenReview>::all(self.client.clone()).create(&PostParams::default(), &review).await
        };
        let late = || TokenError::Unavailable(format!("the API server did not answer within {PATIENCE:?}"));
        let review = timeout(PATIENCE, asking).await.map_err(|_| late())?;
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

    fn remember(&self, hash: [u8; 32], account: Account) {
        let now = Instant::now();
        let mut vouched = self.vouched.lock();
        if vouched.len() >= REMEMBERED {
            vouched.retain(|_, (_, until)| *until > now);
        }
        if vouched.len() >= REMEMBERED {
            vouched.clear();
        }
        vouched.insert(hash, (account, now + BELIEVED));
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
