//! The authorization server that the operator names for all routes, of every dialect, whose objects do not say otherwise.

use crate::{
    extensions::{self, ExtensionName},
    settings::ForAuthorization,
};
pub use dialect_httpproxy::authorization::{AuthSettings, of_operator};
use engine::Reads;
use model::{
    Code, Route, Translation, Verdict,
    route::{Action, AuthCheck},
};
use std::sync::Arc;

/// An authorization server for all routes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobalAuthorization {
    /// Which extension it is.
    pub extension: ExtensionName,
    /// How it is asked.
    pub settings: AuthSettings,
}

/// The translation with the server of the operator, where there is one. Redirects to HTTPS ask nobody: what they lead to does.
pub fn with_global(mut translation: Translation, reads: &mut Reads<'_>) -> Translation {
    let Some(global) = reads.get::<ForAuthorization>(&()).and_then(|global| global.as_ref().as_ref()) else {
        return translation;
    };
    if translation.all_routes().next().is_none() {
        return translation;
    }
    let extension = extensions::find(&global.extension, reads).map_err(|rejection| {
        if rejection.code == Code::SecretPending {
            translation.pending.push(translation.subject.clone());
            translation.pending.sort();
            translation.pending.dedup();
        }
        let why = format!("the authorization server for all routes cannot be asked: {}", rejection.why);
        translation.verdicts.push(Verdict::new(rejection.code, translation.subject.at(""), why));
        translation.verdicts.sort();
    });
    let server = Arc::new(global.settings.server(extension.ok()));
    let check = Arc::new(AuthCheck { server, context: global.settings.context.clone() });
    let is_on = !global.settings.disabled;
    let own = translation.routes.iter_mut().map(|piece| &mut piece.route);
    let shared = translation.shared.iter_mut().flat_map(|shared| shared.routes.iter_mut());
    own.chain(shared).for_each(|route| ask(route, &check, is_on));
    translation
}

fn ask(route: &mut Arc<Route>, check: &Arc<AuthCheck>, is_on: bool) {
    if matches!(&route.action, Action::Redirect(redirect) if redirect.is_to_https()) {
        return;
    }
    let authorization = route.policy.authorization.or_default(check, is_on);
    if authorization != route.policy.authorization {
        Arc::make_mut(route).policy.authorization = authorization;
    }
}
